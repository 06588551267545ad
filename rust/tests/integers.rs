//! Whole numbers of any size, beside those of 128 bits.

use crate::integers::*;

fn array(numbers: &[i128], digits: u32) -> Integers {
    let words = numbers.iter().flat_map(|&n| [n as u64, (n >> 64) as u64]);
    Integers::new(vec![numbers.len()], digits, 2, words.collect()).unwrap()
}

const MANY: [i128; 9] = [
    0,
    1,
    -1,
    i64::MAX as i128,
    i64::MIN as i128,
    1 << 64,
    -(1 << 64) - 1,
    i128::MAX / 3,
    i128::MIN / 3,
];

#[test]
fn sums_and_differences_are_those_of_whole_numbers() {
    for a in MANY {
        for b in MANY {
            let (x, y) = (array(&[a, 5], 0), array(&[b, 7], 0));
            assert_eq!(x.plus(&y).unwrap(), array(&[a + b, 12], 0));
            assert_eq!(x.minus(&y).unwrap(), array(&[a - b, -2], 0));
            assert_eq!(x.plus(&y).unwrap().minus(&y).unwrap(), x);
        }
    }
}

#[test]
fn equal_arrays_have_equal_limbs() {
    let wide = array(&[3, -4], 0);
    assert_eq!((wide.limbs(), wide.digits()), (1, 0));
    let parts = i128::from(PARTS);
    assert_eq!(array(&[3 * parts, -4 * parts], DIGITS), wide);
    assert_eq!(array(&[3 * parts + 1, 0], DIGITS).digits(), DIGITS);
    let half = array(&[parts / 2], DIGITS);
    assert_eq!(half.plus(&half).unwrap(), array(&[1], 0));
    assert_eq!(array(&[2], 0).minus(&half).unwrap().values(0), [1.5]);
}

#[test]
fn values_are_rounded_once() {
    let odd = (1_i128 << 53) + 1;
    for n in MANY.into_iter().chain([odd, odd + 2, (odd << 40) + 1]) {
        assert_eq!(array(&[n], 0).values(0), [n as f64]);
        assert_eq!(array(&[n], 0).values(-3), [n as f64 / 8.0]);
    }
    let tenth = i128::from(PARTS) / 10;
    for (n, expected) in [(1, 0.1), (3, 0.3), (-7, -0.7), (12345678901, 1234567890.1)] {
        assert_eq!(array(&[n * tenth], DIGITS).values(0), [expected]);
    }
    assert_eq!(value(&[1], 2 * DIGITS, 0), 1e-36);
    assert_eq!(Int::<3>::from(u128::MAX).value(0), u128::MAX as f64);
}

#[test]
fn weights_are_the_numbers_that_are_written() {
    let tenth = u128::from(PARTS) / 10;
    for n in 1..2000_u128 {
        assert_eq!(weight_to_parts(n as f64 / 10.0), Some(n * tenth));
        assert_eq!(weight_to_parts(n as f64 / 1000.0), Some(n * tenth / 100));
    }
    assert_eq!(weight_to_parts(1e-9), Some(1_000_000_000));
    assert_eq!(weight_to_parts(0.001_234_567_890_123_45), Some(1_234_567_890_123_450));
    assert_eq!(weight_to_parts(123456789.5), Some(1_234_567_895 * tenth));
    assert_eq!(weight_to_parts(4e18), Some(4 * u128::from(PARTS) * u128::from(PARTS)));
    for (weight, few) in [(0.0, 0), (1e-19, 0), (5e-324, 0), (1e-18, 1), (0.6e-18, 1)] {
        assert_eq!(weight_to_parts(weight), Some(few));
    }
    // 1/3 has more digits than fifteen: what it is, to the nearest part.
    assert_eq!(weight_to_parts(1.0 / 3.0), Some(333_333_333_333_333_315));
    for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e19] {
        assert_eq!(weight_to_parts(wrong), None);
    }
}

#[test]
fn shares_add_up_to_the_row() {
    for row in [&[0.1, 0.2, 0.7][..], &[1.0 / 3.0; 3], &[0.0, 1.0], &[1e-30, 0.25]] {
        let total: u128 = shares_to_parts(row).unwrap().iter().sum();
        assert_eq!(Some(total), weight_to_parts(row.iter().sum()), "{row:?}");
    }
    let alone = 1.2026859090379087;
    assert_eq!(shares_to_parts(&[0.0, alone]), Some(vec![0, weight_to_parts(alone).unwrap()]));
    let third = shares_to_parts(&[1.0 / 3.0; 3]).unwrap();
    assert_eq!(third.iter().sum::<u128>(), u128::from(PARTS));
    assert_eq!(third[1], third[2]);
    assert_eq!(shares_to_parts(&[0.0; 2]), Some(vec![0, 0]));
    assert_eq!(shares_to_parts(&[f64::NAN]), None);
}

#[test]
fn multiples_are_exact_or_rounded_down() {
    let numbers = array(&[10, -10, 3], 0);
    let times =
        |array: &Integers, factor: f64| array.times(weight_to_parts(factor).unwrap()).unwrap();
    assert_eq!(times(&numbers, 7.0), (array(&[70, -70, 21], 0), true));
    let (tenth, exact) = times(&numbers, 0.1);
    assert!(exact);
    assert_eq!(times(&tenth, 10.0), (numbers, true));
    let (third, exact) = times(&array(&[1, -1], DIGITS), 0.5);
    assert!(!exact);
    assert_eq!(third, array(&[0, -1], DIGITS));
    assert!(array(&[i128::MAX], 0).times(u128::MAX).is_ok());
}

#[test]
fn cells_are_taken_and_merged_along_an_axis() {
    let table = Integers::of_i64(vec![2, 3], vec![1, 2, 3, 4, 5, 6]);
    let taken = table.take(&[2, 0], 1).unwrap();
    assert_eq!(taken, Integers::of_i64(vec![2, 2], vec![3, 1, 6, 4]));
    let merged = table.merge(&[1, 1, 0], 2, 1).unwrap();
    assert_eq!(merged, Integers::of_i64(vec![2, 2], vec![3, 3, 6, 9]));
    let large = Integers::of_i64(vec![2], vec![i64::MAX; 2]);
    assert_eq!(large.merge(&[0, 0], 1, 0).unwrap(), array(&[2 * i128::from(i64::MAX)], 0));
    let joined = Integers::concatenate(&[&table, &table.take(&[1], 0).unwrap()]).unwrap();
    assert_eq!(joined, Integers::of_i64(vec![3, 3], vec![1, 2, 3, 4, 5, 6, 4, 5, 6]));
    let turned = table.reshape(vec![3, 2], Some(&[0, 3, 1, 4, 2, 5])).unwrap();
    assert_eq!(turned, Integers::of_i64(vec![3, 2], vec![1, 4, 2, 5, 3, 6]));
    assert!(table.take(&[3], 1).is_err());
    assert!(table.merge(&[0], 1, 1).is_err());
}

#[test]
fn deviations_of_a_constant_are_zero() {
    let z = 3_602_879_701_896_397_i128; // 0.1 in units of 2^-55
    let constant = Integers::of_wide(
        vec![1, 2],
        0,
        &[Int::<4>::from(7 * z as u128), Int::from(7 * (z * z) as u128)],
    );
    let n = Integers::of_i64(vec![1], vec![7]);
    assert_eq!(deviations(&n, &constant.unwrap(), 1), Ok(vec![0.0]));
    let unit = 1_u128 << 57;
    let two = Integers::of_wide(
        vec![1, 2],
        0,
        &[Int::<4>::from(4 * unit), Int::from(product(10 * unit, unit)[1] as u128 * (1 << 64))],
    );
    let n = Integers::of_i64(vec![1], vec![2]);
    assert_eq!(deviations(&n, &two.unwrap(), 1), Ok(vec![2.0])); // 1 and 3
    assert_eq!(
        deviations(
            &Integers::of_i64(vec![1], vec![0]),
            &Integers::of_i64(vec![1, 2], vec![0, 0]),
            1
        ),
        Ok(vec![0.0])
    );
}

/// Numbers that look random and repeat.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state ^ *state >> 29
}

/// Digit by digit.
fn naive_parts(weight: f64) -> u128 {
    let (mut decimals, mut tens) = (18, 1e18);
    while decimals > 0 && weight * tens >= 1e15 {
        (decimals, tens) = (decimals - 1, tens / 10.0);
    }
    let written = (weight * tens).round();
    if written < 1e15 && written / tens == weight {
        return written as u128 * 10_u128.pow(18 - decimals);
    }
    let exponent = (weight.to_bits() >> 52) as i32 - 1075;
    let mantissa = weight.to_bits() & ((1 << 52) - 1) | 1 << 52;
    let exact = u128::from(mantissa) * u128::from(PARTS);
    match exponent {
        0.. => exact << exponent,
        -127..0 => (exact + (1 << (-exponent - 1))) >> -exponent,
        _ => 0,
    }
}

#[test]
fn parts_are_those_of_the_naive_way() {
    let mut state = 1;
    for i in 0..200_000 {
        let decimal = (random(&mut state) >> (i % 60)) as f64 / 10_f64.powi(i % 19);
        let power = 2_f64.powi(i % 140 - 80);
        let binary = random(&mut state) as f64 / 2_f64.powi(64) * power;
        for weight in [decimal, binary, power, 10_f64.powi(i % 40 - 22)] {
            if weight < 9.2e18 {
                assert_eq!(weight_to_parts(weight), Some(naive_parts(weight)), "{weight:e}");
            }
        }
    }
    assert_eq!(weight_to_parts(0.1), Some(u128::from(PARTS / 10)));
    assert_eq!([f64::NAN, -0.1, 1e19].map(weight_to_parts), [None; 3]);
}

#[test]
fn short_values_are_rounded_as_long_ones() {
    let mut state = 1;
    let check = |number: Int<3>| {
        assert_eq!(value_of_36_digits(&number.0), number.value(36), "{number:?}");
    };
    for i in 0..50_000_u32 {
        let limbs = [random(&mut state), random(&mut state), random(&mut state) >> 8];
        let shift = i % 184;
        let mut number =
            [0, 1, 2].map(|at| limbs.get(at + shift as usize / 64).copied().unwrap_or(0));
        number[2] >>= shift % 56;
        check(Int(number));
        // Whole numbers, halves, and ties between two doubles.
        let whole = u128::from(random(&mut state) >> (i % 64));
        for unit in [1, 2, 1 << 11, 1 << 12] {
            let mut tie = Int([0; 3]);
            tie.add_wide(product(whole, u128::from(PARTS) * u128::from(PARTS) / unit), 0, false);
            check(tie);
            tie.add(1, 0, i % 2 == 0 && whole > 0);
            check(tie);
        }
    }
    check(Int([0; 3]));
    check(Int([1, 0, 0]));
}

#[test]
fn numbers_compare_multiply_and_divide() {
    let [one, two] = [1, 2].map(|n: u128| Int::<3>::from(n));
    let mut less = one;
    less.subtract(&two);
    assert!(less < one && one < two && Int([0, 0, 1]) > two && less < Int([0, 0, 1]));
    let big = Int([7, u64::MAX, 5]);
    assert_eq!(big.times(u128::from(PARTS)), (big, true));
    let half = big.times(u128::from(PARTS / 2));
    assert!(!half.1 && half.0 == Int([u64::MAX / 2 + 1 + 3, u64::MAX / 2 + (1 << 63), 2]));
    let mut rest = half.0;
    rest.merge(&half.0);
    rest.merge(&one);
    assert_eq!(rest, big);
    assert_eq!(
        (rest.divide(10), rest.0[2]),
        (
            big.0.iter().rev().fold(0, |r, &l| ((u128::from(r) << 64 | u128::from(l)) % 10) as u64),
            0
        )
    );
}

#[test]
fn light_weights_are_what_any_are() {
    let mut state = 1_u64;
    for step in 0..200_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let share = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let weight = match step % 4 {
            0 => share,
            1 => (share * 1e6).round() / 1e5,
            2 => share * 16.0 * 2_f64.powi(-((state % 70) as i32)),
            _ => ((state % 1000) as f64).powi(5) / 1e15,
        };
        if let Some(light) = light_weight_to_parts(weight) {
            assert_eq!(Some(u128::from(light)), weight_to_parts(weight), "{weight:e}");
        }
    }
    assert_eq!(light_weight_to_parts(15.75), Some(15_750_000_000_000_000_000));
    for other in [0.0, 16.0, -1.0, f64::NAN, f64::INFINITY, 1e-20] {
        assert_eq!(light_weight_to_parts(other), None);
    }
}
