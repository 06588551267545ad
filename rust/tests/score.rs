//! Scores of a few rows, worked out by hand.

use crate::columns::{Block, Columns};
use crate::error::{Error, Fault};
use crate::flags::Thresholds;
use crate::scale::Scale;
use crate::score::kernel::{Kernel, Shape};
use crate::score::{Part, ScoreKind, Scoring, flags, histogram, normal, table};
use ndarray::{Array2, array};
use std::f64::consts::LN_2;

const PRIOR: [f64; 2] = [-1.0, -2.0];

fn real(x: &Array2<f64>) -> Columns<'_> {
    Columns::new(vec![Block::F64(x.view())]).unwrap()
}

fn log_joint(n: usize, part: Part) -> Result<Vec<f64>, Error> {
    Ok(Scoring::new(n, &PRIOR, vec![part])?.scores(ScoreKind::LogJoint, 1)?.0)
}

fn normal<'a>(x: &'a Array2<f64>, power: Option<&'a [f64]>) -> Part<'a> {
    let scale = Scale::new(&[1.0], &[2.0], 1).unwrap();
    let curves: [&[f64]; 3] = [&[0.0, 1.0], &[1.0, 3.0], &[0.5, 0.25]];
    Part::Normal(normal::Normal::new(real(x), scale, curves, power, 2).unwrap())
}

#[test]
fn normal_and_student() {
    let x = array![[5.0], [f64::NAN]];
    let found = log_joint(2, normal(&x, None)).unwrap();
    assert_eq!(found, [-1.0 + 0.5 - 4.0, -2.0 + 0.25 - 3.0, -1.0, -2.0]);
    let found = log_joint(2, normal(&x, Some(&[2.0, 1.0]))).unwrap();
    assert_eq!(found[..2], [-1.0 + (0.5 - 2.0 * 4_f64.ln_1p()), -2.0 + (0.25 - 3_f64.ln_1p())]);
    let error = log_joint(1, normal(&array![[f64::INFINITY]], None)).unwrap_err();
    assert!(matches!(error, Error::BadValue { fault: Fault::Infinite, row: 0, .. }));
}

#[test]
fn table_rows_and_what_lies_outside() {
    let x = array![[3_i16], [4], [9]];
    let logs = [-1.0, -2.0, f64::NEG_INFINITY, -4.0];
    let part = |outside: i64, lookup: &'static [u32]| {
        let columns = Columns::new(vec![Block::I16(x.view())])?;
        table::LookupTable::new(columns, &[3], vec![lookup], &[outside], &logs, 2).map(Part::Table)
    };
    let found = log_joint(3, part(-1, &[1, 0]).unwrap()).unwrap();
    assert_eq!(found, [f64::NEG_INFINITY, -6.0, -2.0, -4.0, -1.0, -2.0]);
    assert!(log_joint(3, part(0, &[1, 2]).unwrap()).is_err());
    assert!(part(2, &[]).is_err());
}

#[test]
fn flags_yes_no_and_missing() {
    let x = array![[1.0], [0.0], [f64::NAN]];
    let thresholds = Thresholds::new(&[f64::NAN], 1).unwrap();
    let part = flags::Flags::new(real(&x), thresholds, &[-1.0, -2.0], &[-3.0, -4.0], 2).unwrap();
    let found = log_joint(3, Part::Flags(part)).unwrap();
    assert_eq!(found, [-4.0, -6.0, -2.0, -4.0, -1.0, -2.0]);
}

#[test]
fn histograms_fall_by_half_beyond_their_ends() {
    let x = array![[0.5], [-1.5], [3.0], [1e308]];
    let part =
        histogram::Histogram::new(real(&x), 2.0, 1.0, -2, &[-1.0, -2.0, -3.0, -4.0], 2).unwrap();
    let found = log_joint(4, Part::Histogram(part)).unwrap();
    assert_eq!(found[..2], [-2.0, -4.0]);
    assert_eq!(found[2..4], [-1.0 + (-1.0 - 2.0 * LN_2), -2.0 + (-2.0 - 2.0 * LN_2)]);
    assert_eq!(found[4..6], [-1.0 + (-3.0 - 2.0 * LN_2), -2.0 + (-4.0 - 2.0 * LN_2)]);
    assert!(found[6].is_finite());
}

#[test]
fn kernels_near_and_far() {
    let x = array![[0.0], [1e100]];
    let scale = || Scale::new(&[0.0], &[1.0], 1).unwrap();
    let part = |shape| {
        let (centres, weights) = ([0.0, 9.0], [1.0, 0.0, 0.0, 0.0]);
        let (bandwidth, constant) = ([0.5, 0.5], [0.0, 7.0]);
        let floor = [0.0, 1.0];
        Kernel::new(real(&x), scale(), shape, &centres, &weights, &bandwidth, &constant, floor)
    };
    for (shape, density) in [(Shape::Normal, 2.0 / std::f64::consts::TAU.sqrt()), (Shape::Box, 2.0)]
    {
        let found = log_joint(2, Part::Kernel(part(shape).unwrap())).unwrap();
        assert!((found[0] + 1.0 - f64::ln(density)).abs() < 1e-5);
        assert!(found[2].is_finite() && found[2] < -1e100);
        assert_eq!((found[1], found[3]), (-2.0, -2.0), "a class without weights adds nothing");
    }
}

#[test]
fn what_no_class_explains_gets_the_prior() {
    let x = array![[1_u8], [0]];
    let never = [f64::NEG_INFINITY; 2];
    let columns = Columns::new(vec![Block::U8(x.view())]).unwrap();
    let thresholds = Thresholds::new(&[0.0], 1).unwrap();
    let part = flags::Flags::new(columns, thresholds, &[-9.0, -1.0], &never, 2).unwrap();
    let task = Scoring::new(2, &PRIOR, vec![Part::Flags(part)]).unwrap();
    assert_eq!(task.classes(1), Ok((vec![0, 1], 1)));
    let (posterior, lost) = task.scores(ScoreKind::Posterior, 1).unwrap();
    assert_eq!(lost, 1);
    assert!((posterior[0] - 1.0 / (1.0 + (-1_f64).exp())).abs() < 1e-15);
    assert_eq!(task.likelihoods(1).unwrap().0, [never[0], never[1], -9.0, -1.0]);
}
