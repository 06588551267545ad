//! Columns of numbers, their classes, and what is counted in them.

use crate::classes::{Rows, Weights};
use crate::columns::{Block, Columns};
use crate::error::{Error, Fault, Number};
use crate::scale::Scale;
use ndarray::{Array2, array};

mod classes {
    use super::*;
    use crate::classes::{by_class, count_classes, counted};
    use crate::integers::{DIGITS, PARTS};

    #[test]
    fn rows_and_weights_per_class() {
        let classes = [0, 2, -1, 2, 2];
        let ones = Rows::new(&classes, 3, Weights::Ones).unwrap();
        assert_eq!(count_classes(&ones, 1), [1, 0, 3]);
        let whole = Rows::new(&classes, 3, Weights::Whole(&[1, 2, 9, 3, 4])).unwrap();
        assert_eq!(count_classes(&whole, 1), [1, 0, 9]);
        let halves = [[PARTS / 2, 0]; 5];
        let parts = Rows::new(&classes, 3, Weights::Parts(&halves)).unwrap();
        let found = count_classes(&parts, 1);
        assert_eq!(found[2], i128::from(PARTS) * 3 / 2);
        assert_eq!(counted(&found, vec![3], DIGITS).unwrap().values(0), [0.5, 0.0, 1.5]);
    }

    #[test]
    fn rows_by_class() {
        let classes = [2, 0, -1, 2, 0];
        let rows = Rows::new(&classes, 4, Weights::Ones).unwrap();
        assert_eq!(by_class(&rows, 1), (vec![1, 4, 0, 3], vec![0, 2, 2, 4, 4]));
    }

    #[test]
    fn many_threads_gather_as_one() {
        let classes: Vec<i32> = (0..300_000).map(|i| i * 7 % 11 % 5 - 1).collect();
        let rows = Rows::on(3, &classes, 4, Weights::Ones).unwrap();
        let (order, starts) = by_class(&rows, 1);
        assert_eq!(by_class(&rows, 3), (order, starts));
        assert!(Rows::on(3, &classes, 3, Weights::Ones).is_err());
    }

    #[test]
    fn a_class_for_each_row() {
        let classes: Vec<i32> = (0..100_000).collect();
        let rows = Rows::new(&classes, 100_000, Weights::Ones).unwrap();
        assert!(count_classes(&rows, 2).iter().all(|&n| n == 1));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Rows::new(&[3], 3, Weights::Ones).is_err());
        assert!(Rows::new(&[-2], 3, Weights::Ones).is_err());
        assert!(Rows::new(&[0], 0, Weights::Ones).is_err());
        assert!(Rows::new(&[0], 1, Weights::Whole(&[])).is_err());
        for weight in [0, -1] {
            assert!(Rows::new(&[0], 1, Weights::Whole(&[weight])).is_err());
            assert!(Rows::new(&[-1], 1, Weights::Whole(&[weight])).is_ok());
        }
        let most = [i64::MAX, 1];
        assert!(Rows::new(&[0, 0], 1, Weights::Whole(&most)).is_err());
        assert!(Rows::new(&[0], 1, Weights::Parts(&[[0, 1 << 60]])).is_err());
    }
}

mod blocks {
    use super::*;
    use crate::columns::{Value, distance_above};
    use crate::flags::Level;

    #[test]
    fn features_count_over_blocks() {
        let reals = array![[1.0, 2.0], [3.0, 4.0]];
        let wholes = array![[5_u8], [6]];
        let none = Array2::<i16>::zeros((2, 0));
        let columns = Columns::new(vec![
            Block::F64(reals.view()),
            Block::I16(none.view()),
            Block::U8(wholes.view()),
        ])
        .unwrap();
        assert_eq!((columns.features(), columns.rows()), (3, Some(2)));
        assert_eq!(columns.value(1, 1), Number::Real(4.0));
        assert_eq!(columns.value(1, 2), Number::Whole(6));
        let pieces: Vec<_> = columns.blocks_of(1..3).map(|(f, _, c)| (f, c)).collect();
        assert_eq!(pieces, [(1, 1..2), (2, 0..1)]);
        assert!(columns.demand_rows(3).is_err());
        assert!(columns.demand_whole().is_err());
    }

    #[test]
    fn limits_compare_without_rounding() {
        let whole = 1_i64 << 53;
        assert!((whole + 1).raised() > whole as f64 && whole.raised() <= whole as f64);
        assert!(
            i64::MAX.raised() > i64::MAX as f64 - 1024.0 && u64::MAX.raised() >= 2_f64.powi(64)
        );
        assert_eq!((-whole - 1).raised(), -whole as f64);
        assert!(u8::limit(-0.5).is_some_and(|limit| 0_u8.exceeds(limit)));
        assert!(u8::limit(0.0).is_some_and(|limit| !0_u8.exceeds(limit) && 1_u8.exceeds(limit)));
        assert_eq!(u8::limit(255.0), None);
        assert_eq!(u8::limit(f64::INFINITY), None);
        assert_eq!(u8::limit(f64::NEG_INFINITY), Some(0));
    }

    #[test]
    fn what_no_i64_can_hold_is_in_no_range() {
        assert_eq!(distance_above(7, 5), 2);
        assert_eq!(distance_above(i64::MIN, i64::MIN), 0);
        assert!(distance_above(-1, 0) > u64::MAX / 2);
        let values = array![[7_u64, u64::MAX], [1 << 63, i64::MAX as u64]];
        let (block, mut room) = (Block::U64(values.view()), vec![]);
        let low = [i64::MIN, i64::MAX - 3];
        let found = block.integers(0..2, 0..2, &low, &mut room);
        assert_eq!(found, array![[7, -1], [i64::MAX, i64::MAX]]);
        assert!(distance_above(found[[0, 1]], low[1]) > 4);
    }
}

mod scale {
    use super::*;

    #[test]
    fn extreme_units_are_exact() {
        let unit = [2_f64.powi(1023), 2_f64.powi(-1022)];
        let origin = [-1.7e308, 0.0];
        let scale = Scale::new(&origin, &unit, 2).unwrap();
        let z = scale.z_without_overflow(1.7e308, 0);
        assert!((z - 2.0 * (1.7e308 / unit[0])).abs() < 1e-15);
        assert_eq!(scale.z_without_overflow(unit[1] * 3.0, 1), 3.0);
    }

    #[test]
    fn other_units_are_refused() {
        for unit in [0.0, -1.0, 3.0, f64::NAN, f64::INFINITY, 5e-324] {
            assert!(Scale::new(&[0.0], &[unit], 1).is_err());
        }
        assert!(Scale::new(&[f64::NAN], &[1.0], 1).is_err());
        assert!(Scale::new(&[], &[1.0], 1).is_err());
    }
}

mod bins {
    use super::*;
    use crate::bins::{MISSING, bins, demand_counts};

    #[test]
    fn floor_missing_and_refusals() {
        let x = array![[-0.5], [0.0], [f64::NAN], [2.5]];
        let found = bins(&Block::F64(x.view()), 0.0, 1.0, 1);
        assert_eq!(found, Ok(vec![-1, 0, MISSING, 2]));
        for (x, expected) in [(f64::INFINITY, Fault::Infinite), (1e300, Fault::TooFine)] {
            let error = bins(&Block::F64(array![[x]].view()), 0.0, 1.0, 1).unwrap_err();
            assert!(matches!(error, Error::BadValue { fault, .. } if fault == expected));
        }
        assert!(bins(&Block::F64(x.view()), 0.0, 0.0, 1).is_err());
    }

    #[test]
    fn bins_near_and_far_from_zero() {
        let (edge, largest) = (2_f64.powi(51), 2_f64.powi(53));
        let far = [edge, -edge, edge + 1.0, -edge - 1.0, largest, -largest, -0.0, -1e-300];
        for other in [0.5, f64::NAN, 1e15] {
            for x in far {
                let found = bins(&Block::F64(array![[x], [other]].view()), 0.0, 1.0, 1).unwrap();
                assert_eq!(found[0], x.floor() as i64);
                assert_eq!(found[1], if other.is_nan() { MISSING } else { other as i64 });
            }
        }
    }

    #[test]
    fn counts_are_whole_and_not_negative() {
        let good = array![[0.0, f64::NAN], [3.0, 2_f64.powi(53)]];
        let columns = Columns::new(vec![Block::F64(good.view())]).unwrap();
        assert_eq!(demand_counts(&columns, 2), Ok(()));
        for x in [-1.0, 0.5, f64::INFINITY, 1e17] {
            let bad = array![[0.0, 1.0], [1.0, x]];
            let columns = Columns::new(vec![Block::F64(bad.view())]).unwrap();
            let error = demand_counts(&columns, 1).unwrap_err();
            assert!(matches!(error, Error::BadValue { feature: 1, row: 1, .. }));
        }
    }
}

mod codes {
    use super::*;
    use crate::codes::{Ranges, count_codes, shifted, span};

    #[test]
    fn counts_values_in_range() {
        let x = array![[3_i64, -1], [4, 0], [9, -1], [3, i64::MIN]];
        let columns = Columns::new(vec![Block::I64(x.view())]).unwrap();
        let classes = [0, 1, 0, 0];
        let rows = Rows::new(&classes, 2, Weights::Ones).unwrap();
        let ranges = Ranges::new(&[3, -1], &[2, 1], 2, 2).unwrap();
        let (found, outside) = count_codes(&columns, &ranges, &rows, 1).unwrap();
        assert_eq!(found.values(0), [2., 0., 0., 1., 2., 0.]);
        assert!(outside);
        let ranges = Ranges::new(&[3, -1], &[7, 2], 2, 2).unwrap();
        assert!(!count_codes(&columns, &ranges, &rows, 1).unwrap().1);
        let column = Block::I64(x.slice(ndarray::s![.., 1..]));
        assert_eq!(shifted(&column, -1, 1, 1), Ok(vec![0, -1, 0, -1]));
        assert_eq!(span(&columns, 1), Ok((vec![3, -1], vec![9, 0])));
    }

    #[test]
    fn many_threads_one_answer() {
        let x = Array2::from_shape_fn((50_000, 3), |(i, j)| (i * (j + 3) % 101) as i16);
        let columns = Columns::new(vec![Block::I16(x.view())]).unwrap();
        let classes: Vec<i32> = (0..50_000).map(|i| i % 4 - 1).collect();
        let weights: Vec<[u64; 2]> = (0..50_000).map(|i| [7 + i % 5, i % 7]).collect();
        let rows = Rows::new(&classes, 3, Weights::Parts(&weights)).unwrap();
        let ranges = Ranges::new(&[0, 0, 0], &[101, 50, 101], 3, 3).unwrap();
        let one = count_codes(&columns, &ranges, &rows, 1).unwrap();
        let four = count_codes(&columns, &ranges, &rows, 4).unwrap();
        assert_eq!(one, four);
    }

    #[test]
    fn spans_of_nothing_and_of_too_much() {
        let none = Array2::<i32>::zeros((0, 2));
        let columns = Columns::new(vec![Block::I32(none.view())]).unwrap();
        assert_eq!(span(&columns, 1), Ok((vec![0, 0], vec![-1, -1])));
        let huge = array![[0_u64], [u64::MAX]];
        let columns = Columns::new(vec![Block::U64(huge.view())]).unwrap();
        assert!(matches!(span(&columns, 1), Err(Error::BadValue { row: 1, .. })));
    }
}

mod flags {
    use super::*;
    use crate::flags::{Thresholds, count_flags};

    fn count<'a>(
        block: Block<'a>,
        thresholds: &[f64],
        weights: Weights,
    ) -> Result<Vec<f64>, Error> {
        let columns = Columns::new(vec![block])?;
        let classes: Vec<i32> =
            (0..columns.rows().unwrap_or(0)).map(|i| i as i32 % 3 - 1).collect();
        let rows = Rows::new(&classes, 2, weights)?;
        let thresholds = Thresholds::new(thresholds, columns.features())?;
        Ok(count_flags(&columns, &thresholds, &rows, 2)?.values(0))
    }

    #[test]
    fn no_yes_and_missing() {
        let x = array![[9.0, 9.0], [1.0, 0.2], [0.0, 0.7], [0.0, 9.0], [f64::NAN, 0.9]];
        let found = count(Block::F64(x.view()), &[f64::NAN, 0.5], Weights::Ones).unwrap();
        assert_eq!(found, [0., 1., 1., 0., 1., 0., 1., 1.]);
        let turned = x.t().to_owned();
        let found =
            count(Block::F64(turned.t()), &[f64::NAN, 0.5], Weights::Whole(&[1, 2, 3, 4, 5]))
                .unwrap();
        assert_eq!(found, [0., 3., 2., 0., 2., 0., 5., 3.]);
    }

    #[test]
    fn what_is_not_a_flag_is_refused() {
        let x = array![[1_u8, 7], [0, 1], [1, 2]];
        let error = count(Block::U8(x.view()), &[f64::NAN; 2], Weights::Ones).unwrap_err();
        assert!(matches!(error, Error::BadValue { feature: 1, row: 2, .. }));
        let error = count(Block::U8(x.view()), &[f64::NAN; 2], Weights::Whole(&[1; 3]));
        assert!(matches!(error, Err(Error::BadValue { feature: 1, row: 2, .. })));
    }

    #[test]
    fn small_counts_do_not_overflow() {
        let x = Array2::<u8>::ones((3000, 5));
        let found = count(Block::U8(x.view()), &[0.0; 5], Weights::Ones).unwrap();
        assert_eq!(found[..4], [0., 0., 1000., 1000.]);
        let found = count(Block::U8(x.view()), &[300.0; 5], Weights::Ones).unwrap();
        assert_eq!(found[..4], [1000., 1000., 0., 0.]);
    }
}

mod moments {
    use super::*;
    use crate::integers::{Int, Integers};
    use crate::moments::{ClassSums, count_moments, round_near_to_grid};

    fn count(x: &Array2<f64>, weights: Weights, threads: usize) -> Result<ClassSums, Error> {
        let classes = vec![0; x.nrows()];
        let columns = Columns::new(vec![Block::F64(x.view())])?;
        let (origin, unit) = (vec![0.0; x.ncols()], vec![1.0; x.ncols()]);
        let scale = Scale::new(&origin, &unit, x.ncols())?;
        count_moments(&columns, &scale, &Rows::new(&classes, 1, weights)?, threads)
    }

    #[test]
    fn missing_far_and_near_values() {
        let far = 2_f64.powi(40);
        let x = array![[1.0, f64::NAN], [2.0, 3.0], [-far, f64::NAN]];
        let found = count(&x, Weights::Ones, 1).unwrap();
        assert_eq!(found.rows.values(0), [3.0, 1.0]);
        assert_eq!(found.sums.values(-57)[0], 3.0 - far);
        let near = count(&array![[1.0, f64::NAN], [2.0, 3.0]], Weights::Ones, 1).unwrap();
        let alone = count(&array![[-far, f64::NAN]], Weights::Ones, 1).unwrap();
        assert_eq!(found.sums.minus(&alone.sums).unwrap(), near.sums);
        assert_eq!(near.sums.values(-114)[3], 9.0);
        let weights = [0.5, 20.0, 0.25].map(|w| (w * 1e18) as u128);
        let weights = weights.map(|w| [w as u64, (w >> 64) as u64]);
        let found = count(&x, Weights::Parts(&weights), 1).unwrap();
        assert_eq!(found.rows.values(0), [20.75, 20.0]);
        assert_eq!(found.sums.values(-114)[3], 180.0);
    }

    /// Every way to a sum gives the whole numbers that plain arithmetic gives.
    #[test]
    fn sums_are_those_of_whole_numbers() {
        let values = |i: usize| match i % 7 {
            0 => 0.1 * (i % 90) as f64 - 2.0,
            1 => 15.999999999999998,
            2 => -16.0,
            3 => 5e-324,
            4 => 1e-17 * i as f64,
            _ => ((i * 7919) as f64).sin() * 9.0,
        };
        let x = Array2::from_shape_fn((9000, 3), |(i, j)| values(i + j));
        let mut expected = vec![[Int::<5>::default(); 2]; 3];
        for (i, &z) in x.iter().enumerate() {
            let whole = i128::from(round_near_to_grid(z));
            expected[i % 3][0].add(whole.unsigned_abs(), 0, whole < 0);
            expected[i % 3][1].add((whole * whole) as u128, 0, false);
        }
        let expected = Integers::of_wide(vec![3, 1, 2], 0, expected.as_flattened()).unwrap();
        let ones = count(&x, Weights::Ones, 2).unwrap();
        assert_eq!(ones.sums, expected);
        let twice = count(&x, Weights::Whole(&vec![2; 9000]), 1).unwrap();
        assert_eq!(twice.sums, ones.sums.plus(&ones.sums).unwrap());
        let most = count(&x, Weights::Whole(&vec![16; 9000]), 1).unwrap();
        assert_eq!(most.sums, ones.sums.times(16_000_000_000_000_000_000).unwrap().0);
        let weights: Vec<i64> = (0..9000).map(|i| [1, 16, 17, 1 << 40][i % 4]).collect();
        let parts: Vec<[u64; 2]> = weights
            .iter()
            .map(|&w| w as u128 * 1_000_000_000_000_000_000)
            .map(|w| [w as u64, (w >> 64) as u64])
            .collect();
        let mixed = count(&x, Weights::Whole(&weights), 2).unwrap();
        assert_eq!(mixed.sums, count(&x, Weights::Parts(&parts), 1).unwrap().sums);
        let heavy = count(&x, Weights::Parts(&vec![[0, 1]; 9000]), 1).unwrap();
        assert_eq!(heavy.sums, ones.sums.times(1 << 64).unwrap().0);
    }

    #[test]
    fn refusals_name_the_value() {
        for (x, fault) in
            [(f64::INFINITY, Fault::Infinite), (1e150, Fault::TooFar), (-1e300, Fault::TooFar)]
        {
            let error = count(&array![[0.0, 0.0], [0.0, x]], Weights::Ones, 1).unwrap_err();
            let value = Number::Real(x);
            let (feature, row) = (1, 1);
            assert_eq!(error, Error::BadValue { fault, feature, row, value });
        }
    }

    #[test]
    fn threads_and_layout_do_not_matter() {
        let x = Array2::from_shape_fn((40_000, 5), |(i, j)| ((i * 7 + j) as f64).sin() * 9.0);
        let one = count(&x, Weights::Ones, 1).unwrap();
        let four = count(&x, Weights::Ones, 4).unwrap();
        assert_eq!(one.sums, four.sums);
        let mut turned = Array2::zeros((5, 40_000));
        turned.assign(&x.t());
        let columnar = count(&turned.reversed_axes(), Weights::Ones, 3).unwrap();
        assert_eq!(one.sums, columnar.sums);
    }
}

mod products {
    use super::*;
    use crate::moments::ClassSums;
    use crate::products::count_products;
    use ndarray::s;

    fn count(x: &Array2<f64>, weights: Weights, threads: usize) -> ClassSums {
        let classes: Vec<i32> = (0..x.nrows() as i32).map(|i| i % 3 - 1).collect();
        let columns = Columns::new(vec![Block::F64(x.view())]).unwrap();
        let (origin, unit) = (vec![0.25; x.ncols()], vec![2.0; x.ncols()]);
        let scale = Scale::new(&origin, &unit, x.ncols()).unwrap();
        let rows = Rows::new(&classes, 2, weights).unwrap();
        count_products(&columns, &scale, &rows, threads).unwrap()
    }

    #[test]
    fn weights_threads_and_pieces_do_not_matter() {
        let x = Array2::from_shape_fn((30_000, 3), |(i, j)| match i * (j + 1) % 100 {
            0 => 1e12 + i as f64,
            1 => f64::NAN,
            k => (k as f64).sin() * 0.1 - 0.2,
        });
        let ones = count(&x, Weights::Ones, 1);
        assert_eq!(ones.sums, count(&x, Weights::Ones, 4).sums);
        let weights = |weight| vec![[weight, 0]; x.nrows()];
        let parts = count(&x, Weights::Parts(&weights(crate::integers::PARTS)), 2);
        assert_eq!((&ones.rows, &ones.sums), (&parts.rows, &parts.sums));
        let seven = count(&x, Weights::Whole(&vec![7; x.nrows()]), 2);
        assert_eq!(seven.sums, ones.sums.times(7_000_000_000_000_000_000).unwrap().0);
        let (first, rest) = (x.slice(s![..9000, ..]), x.slice(s![9000.., ..]));
        let both = [first, rest].map(|part| count(&part.to_owned(), Weights::Ones, 1));
        assert_eq!(both[0].sums.plus(&both[1].sums).unwrap(), ones.sums);
        assert_eq!(both[0].rows.plus(&both[1].rows).unwrap(), ones.rows);
    }
}
