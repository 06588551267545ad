//! Words of rows that were counted elsewhere, and what words weigh.

use crate::classes::{Rows, Weights};
use crate::columns::Block;
use crate::integers::weight_to_parts;
use crate::words::weights::{self, RowArrays};
use crate::words::{Layout, Matrix, Words};
use ndarray::ArrayView2;

const ROWS: usize = 40;
const COLUMNS: usize = 5;

fn counted(values: &[f64], classes: &[i32], weights: Weights, sparse: bool) -> Words {
    with_matrix(values, sparse, |matrix| {
        let mut words = Words::new(3, 8).unwrap();
        let rows = Rows::new(classes, 3, weights).unwrap();
        words.count_matrix(matrix, rows, 2).unwrap();
        words
    })
}

fn with_matrix<R>(values: &[f64], sparse: bool, f: impl FnOnce(&Matrix) -> R) -> R {
    let rows = values.len() / COLUMNS;
    let offsets: Vec<i64> = (0..=rows).map(|row| (row * COLUMNS) as i64).collect();
    let columns: Vec<i32> = (0..values.len()).map(|at| (at % COLUMNS) as i32).collect();
    let shape = if sparse { (values.len(), 1) } else { (rows, COLUMNS) };
    let values = Block::F64(ArrayView2::from_shape(shape, values).unwrap());
    let layout = match sparse {
        false => Layout::Dense(values),
        true => Layout::Sparse { offsets: &offsets, columns: &columns, values },
    };
    f(&Matrix::new(layout, COLUMNS, None, false).unwrap())
}

#[test]
fn any_layout_and_any_order_give_the_same() {
    let classes: Vec<i32> = (0..ROWS as i32).map(|row| row % 4 - 1).collect();
    let whole: Vec<i64> = (1..=ROWS as i64).collect();
    let weights: Vec<[u64; 2]> = (1..=ROWS as u64).map(|n| [(n * n * n) << 40, 0]).collect();
    for unit in [1.0, 0.1, 1.0 / 3.0] {
        let values: Vec<f64> = (0..ROWS * COLUMNS).map(|at| (at * at % 7) as f64 * unit).collect();
        for weights in [Weights::Ones, Weights::Whole(&whole), Weights::Parts(&weights)] {
            let all = counted(&values, &classes, weights, false);
            assert!(all.state() == counted(&values, &classes, weights, true).state());
            let [kept, gone] = [0, 1].map(|i| {
                let keep = |(row, &class)| if row % 2 == i { class } else { -1 };
                classes.iter().enumerate().map(keep).collect::<Vec<i32>>()
            });
            let mut left = all.clone();
            with_matrix(&values, true, |matrix| {
                let rows = Rows::new(&gone, 3, weights).unwrap();
                left.forget_matrix(matrix, rows, 1).unwrap();
                let before = left.state();
                assert!(left.forget_matrix(matrix, rows, 1).is_err());
                assert!(left.state() == before);
            });
            assert!(left.state() == counted(&values, &kept, weights, false).state());
        }
    }
}

#[test]
fn five_times_a_tenth_is_a_half() {
    let values = [0.3, 0.1, 0.0, 7.0, 1e-17];
    let weight = |weight: f64| weight_to_parts(weight).map(|n| [n as u64, 0]).unwrap();
    let five = counted(&values.repeat(5), &[0; 5], Weights::Parts(&[weight(0.1); 5]), false);
    let half = counted(&values, &[0], Weights::Parts(&[weight(0.5)]), true);
    assert!(five.state() == half.state());
    let five = counted(&values.repeat(5), &[0; 5], Weights::Ones, true);
    assert!(five.state() == half.times(10.0).unwrap().0.state());
    let found = five.pairs(&[0, 1, 2, 3], None, 1).unwrap();
    assert_eq!(found.occurrences, [1.5, 0.5, 35.0]);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_changes() {
    let mut words = counted(&[1e18, 0.5, 0.0, 0.0, 1.0], &[0], Weights::Ones, false);
    let before = words.state();
    let rows = Rows::new(&[0, 1], 3, Weights::Whole(&[1, 7])).unwrap();
    for sparse in [false, true] {
        for large in [1.2e18, 4e18, 1e19, 1e300, -1.0, f64::NAN] {
            let mut values = [0.25; 2 * COLUMNS];
            values[COLUMNS + 1] = large;
            with_matrix(&values, sparse, |matrix| {
                assert!(words.count_matrix(matrix, rows, 1).is_err(), "{large}");
            });
            assert!(words.state() == before);
        }
        let large = [2_f64.powi(60), 2_f64.powi(53) + 2.0, 1.0, 0.0, 0.0];
        let found = counted(&large, &[0], Weights::Whole(&[3]), sparse);
        let found = found.occurrences().unwrap();
        assert_eq!(found.words(), [3 * ((1 << 60) + (1 << 53) + 3), 0, 0]);
    }
}

fn read(weights: &weights::Weights, id: u32) -> Option<(Vec<f64>, f64)> {
    let mut row = vec![0.0; weights.n_classes()];
    let scale = weights.read(id, &mut row)?;
    Some((row, scale))
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let mut weights = weights::Weights::new(&[0.0, f64::NEG_INFINITY]).unwrap();
    let good = RowArrays {
        ids: &[7],
        common: &[1.0],
        scale: None,
        starts: &[0, 1],
        classes: &[1],
        values: &[f64::NEG_INFINITY],
    };
    weights.set(&good, 1).unwrap();
    let before = (vec![1.0, f64::NEG_INFINITY], 1.0);
    assert_eq!(read(&weights, 7), Some(before.clone()));
    let bad = [
        RowArrays { ids: &[7, 8], ..good },
        RowArrays { ids: &[1 << 31], ..good },
        RowArrays { common: &[f64::NAN], ..good },
        RowArrays { common: &[f64::INFINITY], ..good },
        RowArrays { scale: Some(&[-1.0]), ..good },
        RowArrays { scale: Some(&[f64::NAN]), ..good },
        RowArrays { starts: &[0, 2], ..good },
        RowArrays { starts: &[-1, 1], ..good },
        RowArrays { starts: &[1, 0], ..good },
        RowArrays { starts: &[0], ..good },
        RowArrays { classes: &[2], ..good },
        RowArrays { classes: &[-1], ..good },
        RowArrays { classes: &[1, 1], values: &[1.0, 2.0], starts: &[0, 2], ..good },
        RowArrays { values: &[f64::NAN], ..good },
        RowArrays { values: &[], ..good },
    ];
    for given in bad {
        assert!(weights.set(&given, 1).is_err(), "{given:?}");
        assert_eq!(read(&weights, 7), Some(before.clone()));
    }
    assert!(weights::Weights::new(&[]).is_err());
    assert!(weights::Weights::new(&[f64::NAN]).is_err());
}
