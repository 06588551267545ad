//! Whole numbers of any size, and arrays of them: sums that are exact, so that what was added can be subtracted without a trace.
//!
//! A number is a sequence of 64-bit limbs in two's complement, the lowest limb first. An array counts in units of 10^-digits, so
//! that weights such as 0.1 are whole numbers too. Equal arrays have equal limbs, however they were computed.

use crate::error::{Error, demand};
use std::cmp::Ordering;

/// A row has 10^18 parts, the unit of fractional weights. Fixed by the file format.
pub const PARTS: u64 = 1_000_000_000_000_000_000;
/// The decimal digits of a part of a row.
pub const DIGITS: u32 = 18;
/// No number has more limbs: these hold 2^63 times the square of 2^457, the largest z in units of 2^-57, in parts of a row.
const MOST_LIMBS: usize = 24;

/// 2^63: weights, and sums of weights, in rows, are below this.
const HEAVIEST: f64 = 9_223_372_036_854_775_808.0;

/// A number of `64 * L` bits: its limbs in two's complement, the lowest first. Sums that do not fit wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int<const L: usize>(pub [u64; L]);

impl<const L: usize> Default for Int<L> {
    fn default() -> Self {
        Int([0; L])
    }
}

impl<const L: usize> From<u128> for Int<L> {
    /// The number, which is not negative, as limbs in two's complement.
    fn from(number: u128) -> Self {
        let mut int = Int::default();
        let (shift, negative) = (0, false);
        int.add(number, shift, negative);
        int
    }
}

impl<const L: usize> PartialOrd for Int<L> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const L: usize> Ord for Int<L> {
    /// Compares the signs, then the limbs from the highest to the lowest. `int.0` are the limbs of a number, the lowest
    /// first.
    fn cmp(&self, other: &Self) -> Ordering {
        let highest_first = |int: &Self| int.0.into_iter().rev();
        let signs = other.is_negative().cmp(&self.is_negative());
        signs.then_with(|| highest_first(self).cmp(highest_first(other)))
    }
}

impl<const L: usize> Int<L> {
    /// Adds (or, if `negative`, subtracts) `number * 2^shift`. `shift` is in bits; `number` becomes four limbs, the lowest
    /// first.
    pub fn add(&mut self, number: u128, shift: u32, negative: bool) {
        self.add_wide([number as u64, (number >> 64) as u64, 0, 0], shift, negative);
    }

    /// Adds (or, if `negative`, subtracts) a number of four limbs times `2^shift`. Limbs have 64 bits, the lowest first;
    /// `self.0` are those of this number, and `shift` is in bits. `carry` are the bits that go from a limb to the next one
    /// above.
    pub fn add_wide(&mut self, number: [u64; 4], shift: u32, negative: bool) {
        let (first_limb, bits) = ((shift / 64) as usize, shift % 64); // whole limbs, and bits beyond them
        let mut carry = 0;
        let mut shifted = [0; 5]; // the number times 2^bits
        for (shifted_limb, limb) in shifted.iter_mut().zip(number) {
            *shifted_limb = limb << bits | carry;
            carry = if bits == 0 { 0 } else { limb >> (64 - bits) };
        }
        shifted[4] = carry;
        if let Some(limbs) = self.0.get_mut(first_limb..) {
            add_signed(limbs, &shifted, 0, negative);
        }
    }

    /// Adds another number.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.0, &other.0, 0);
    }

    /// Subtracts another number.
    pub fn subtract(&mut self, other: &Self) {
        subtract(&mut self.0, &other.0, 0);
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|&limb| limb == 0)
    }

    pub fn is_negative(&self) -> bool {
        is_negative(&self.0)
    }

    /// Divides the number, which is not negative, in place, rounding down. Returns the remainder.
    #[inline(always)]
    pub fn divide(&mut self, divisor: u64) -> u64 {
        divide(&mut self.0, divisor)
    }

    /// The number, which is not negative, times `parts` / 10^18, rounded down; and whether that is exact. The product must
    /// fit. `self.0` are the limbs of the number, `L` of them, the lowest first.
    pub fn times(&self, parts: u128) -> (Self, bool) {
        let mut product = [0; MOST_LIMBS];
        multiply(&[parts as u64, (parts >> 64) as u64], &self.0, &mut product);
        let remainder = divide(&mut product[..L + 2], PARTS); // of the division by 10^18
        (Int(std::array::from_fn(|limb| product[limb])), remainder == 0)
    }

    /// The number times 10^-digits, rounded to a double.
    #[cfg(test)]
    pub fn value(&self, digits: u32) -> f64 {
        value(&self.0, digits, 0)
    }
}

/// A sum of 256 bits for loops over rows, in two halves of 128 bits, which processors add quickly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum256 {
    low: u128,
    high: i128,
}

impl Sum256 {
    /// Adds a number with its sign. `self.low` and `self.high` are the lower and the upper 128 bits of the sum.
    #[inline(always)]
    pub fn add(&mut self, number: i128) {
        let (low, carry) = self.low.overflowing_add(number as u128);
        let high_of_number = number >> 127; // -1 if it is negative, else 0
        (self.low, self.high) = (low, self.high + high_of_number + i128::from(carry));
    }

    /// Adds (or, if `negative`, subtracts) a · b, which is less than 2^191. A number is its lower and its upper 128 bits,
    /// `low` and `high`. `self.low` and `self.high` are those of the sum.
    #[inline(always)]
    pub fn add_product(&mut self, a: u128, b: u64, negative: bool) {
        let low_product = u128::from(a as u64) * u128::from(b);
        let high_product = (a >> 64) * u128::from(b);
        let (low, carry) = low_product.overflowing_add(high_product << 64);
        let high = (high_product >> 64) as i128 + i128::from(carry);
        // Subtracting a number is adding its complement and 1. Without a branch, no prediction can fail.
        let flip = if negative { -1_i128 } else { 0 };
        let (low, carry) = (low ^ flip as u128).overflowing_add(u128::from(negative));
        let high = (high ^ flip) + i128::from(carry);
        let (low, carry) = self.low.overflowing_add(low);
        self.low = low;
        self.high += high + i128::from(carry);
    }

    /// Adds another sum. `low` and `high` are the lower and the upper 128 bits of a sum. `carry` goes from the lower to the
    /// upper ones.
    pub fn merge(&mut self, other: &Self) {
        let (low, carry) = self.low.overflowing_add(other.low);
        (self.low, self.high) = (low, self.high + other.high + i128::from(carry));
    }

    /// The sum as four limbs. Limbs have 64 bits, the lowest first; `self.low` and `self.high` are the lower and the upper
    /// 128 bits of the sum.
    pub fn int(&self) -> Int<4> {
        let (low, high) = (self.low, self.high as u128);
        Int([low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64])
    }
}

/// The four limbs of a · b, the lowest first. Limbs have 64 bits; numbers are not negative.
#[inline(always)]
pub fn product(a: u128, b: u128) -> [u64; 4] {
    let mut limbs = [0; 4];
    multiply(&[a as u64, (a >> 64) as u64], &[b as u64, (b >> 64) as u64], &mut limbs);
    limbs
}

/// 10^0 to 10^18, each of which is exact as a double.
const TENS: [u64; DIGITS as usize + 1] = {
    let mut tens = [1; DIGITS as usize + 1];
    let mut i = 1;
    while i < tens.len() {
        tens[i] = 10 * tens[i - 1];
        i += 1;
    }
    tens
};
/// 10^0 to 10^18 as doubles.
const POWERS: [f64; DIGITS as usize + 1] = {
    let (mut powers, mut i) = ([1.0; DIGITS as usize + 1], 0);
    while i < powers.len() {
        powers[i] = TENS[i] as f64;
        i += 1;
    }
    powers
};
/// Doubles from here on are whole, and one apart up to twice this.
pub const WHOLE: f64 = 4_503_599_627_370_496.0; // 2^52
/// The lightest weight that [`light_weight_to_parts`] converts.
const LIGHTEST: f64 = 1.0 / 18_446_744_073_709_551_616.0; // 2^-64

/// Rounds a weight, in rows, to fifteen decimal digits. Returns it in parts of a row, and as the nearest double, in rows. A
/// part is 10^-18 rows.
#[inline(always)]
fn round_to_fifteen_digits(weight: f64) -> (u128, f64) {
    // How many decimals leave fifteen digits. The exponent gives their number or one more: log10 2 is a little more than 77 /
    // 256.
    let exponent = (weight.to_bits() >> 52) as i32 - 1023;
    // `exponent` is that of the weight, to the base 2; `most_decimals` is the number of decimals or one more.
    let most_decimals = (14 - ((exponent * 77) >> 8)).clamp(0, DIGITS as i32) as usize;
    let is_one_too_many = most_decimals > 0 && weight * TENS[most_decimals] as f64 >= 1e15;
    let decimals = most_decimals - usize::from(is_one_too_many);
    let digits = (weight * TENS[decimals] as f64 + 0.5) as u64; // the rounded weight is digits / 10^decimals
    let parts = u128::from(digits) * u128::from(TENS[DIGITS as usize - decimals]);
    (parts, digits as f64 / TENS[decimals] as f64)
}

/// Converts a weight, in rows, to parts of a row: exactly as the decimal number that it is written as, if that has at most
/// fifteen digits; rounded otherwise. None if it is negative, NaN or 2^63 and more. A part is 10^-18 rows.
#[inline]
pub fn weight_to_parts(weight: f64) -> Option<u128> {
    if !(0.0..HEAVIEST).contains(&weight) {
        return None;
    }
    // The weight, rounded to fifteen digits, in parts, and as a double in rows.
    let (decimal_parts, nearest) = round_to_fifteen_digits(weight);
    if nearest == weight {
        return Some(decimal_parts);
    }
    // The double is mantissa * 2^exponent; with an exponent below -127, it is less than half a part.
    let bits = weight.to_bits();
    let (mantissa, exponent) = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52) as i32 - 1075);
    let exact = u128::from(mantissa) * u128::from(PARTS); // parts times 2^-exponent
    match exponent {
        0.. => Some(exact << exponent),
        -127..0 => Some((exact + (1 << (-exponent - 1))) >> -exponent),
        _ => Some(0),
    }
}

/// [`weight_to_parts`] for weights from 2^-64 to below 16, with fewer conversions between integers and doubles, which take
/// most of its time. None for other weights. `weight` is in rows; a part is 10^-18 rows.
#[inline(always)]
pub fn light_weight_to_parts(weight: f64) -> Option<u64> {
    if !(LIGHTEST..16.0).contains(&weight) {
        return None;
    }
    let bits = weight.to_bits(); // of the double
    let exponent = (bits >> 52) as i32 - 1023; // of the weight, to the base 2
    // How many decimals leave fifteen digits, or one more; then their number, as in [`round_to_fifteen_digits`].
    let most_decimals = (14 - ((exponent * 77) >> 8)).clamp(0, DIGITS as i32) as usize;
    let decimals = most_decimals - usize::from(weight * POWERS[most_decimals] >= 1e15);
    // Adding 2^52 rounds a number, and its last bits are then the whole number.
    // `shifted` is half a unit above the weight in units of its last decimal, `nearest` the whole number next to it, and
    // `digits` that weight rounded: the whole number that its decimal digits write.
    let shifted = weight * POWERS[decimals] + 0.5;
    let nearest = (shifted + WHOLE) - WHOLE;
    let digits = nearest - if nearest > shifted { 1.0 } else { 0.0 }; // rounded down
    // The weight in parts is exact / 2^shift; the double is mantissa * 2^(exponent - 52).
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let exact = u128::from(mantissa) * u128::from(PARTS);
    let shift = 52 - exponent; // in bits
    // The weight in parts, rounded from the double, and as its decimal digits write it.
    let rounded_parts = ((exact + (1 << (shift - 1))) >> shift) as u64;
    let decimal_parts = ((digits + WHOLE).to_bits() & ((1 << 52) - 1))
        .wrapping_mul(TENS[DIGITS as usize - decimals]);
    Some(if digits / POWERS[decimals] == weight { decimal_parts } else { rounded_parts })
}

/// Converts one row's weights, `[class]`, to parts of a row. They add up exactly to the weight of the row, which is their sum
/// rounded to fifteen digits: the largest share absorbs the rounding. A class with the only share has the whole weight. None
/// if a weight or their sum is negative, NaN or 2^63 and more. A part is 10^-18 rows, and the parts are returned `[class]`.
pub fn shares_to_parts(weights: &[f64]) -> Option<Vec<u128>> {
    let mut parts: Vec<u128> =
        weights.iter().map(|&weight| weight_to_parts(weight)).collect::<Option<_>>()?;
    if parts.iter().filter(|&&parts| parts > 0).count() < 2 {
        return Some(parts);
    }
    let sum = weights.iter().sum::<f64>(); // in rows
    let (total, _) = round_to_fifteen_digits(Some(sum).filter(|&sum| sum < HEAVIEST)?);
    // What the parts lack to `total`, the weight of the row in parts.
    let missing_parts = total as i128 - parts.iter().sum::<u128>() as i128;
    // The class with the most parts, the first of them.
    let largest = (0..parts.len()).rev().max_by_key(|&class| parts[class])?;
    parts[largest] = (parts[largest] as i128 + missing_parts).max(0) as u128;
    Some(parts)
}

// Numbers as slices of limbs ------------------------------------------------------------------------------------------

/// Whether a number, limbs in two's complement, is negative.
pub fn is_negative(a: &[u64]) -> bool {
    a.last().is_some_and(|&limb| limb >> 63 == 1)
}

/// The limb that continues a number above its last one: all ones if it is negative.
fn sign_limb(a: &[u64]) -> u64 {
    if is_negative(a) { u64::MAX } else { 0 }
}

/// Combines two numbers, a and b, limb by limb from the lowest on, in a, with `step`, which adds or subtracts two limbs and
/// returns the result and the carry. `extension` is the limb that continues b above its last one. Limbs have 64 bits. `carry`
/// is what goes from a limb to the next one above.
#[inline(always)]
fn combine_limbs(a: &mut [u64], b: &[u64], extension: u64, step: impl Fn(u64, u64) -> (u64, bool)) {
    let mut carry = false;
    for (i, limb) in a.iter_mut().enumerate() {
        let (sum, carry_of_b) = step(*limb, b.get(i).copied().unwrap_or(extension));
        let (sum, carry_of_carry) = step(sum, u64::from(carry));
        (*limb, carry) = (sum, carry_of_b | carry_of_carry);
    }
}

/// Adds b to a, limbs of which the lowest is the first. `extension` is the limb that continues b above its last one.
#[inline(always)]
fn add(a: &mut [u64], b: &[u64], extension: u64) {
    combine_limbs(a, b, extension, u64::overflowing_add);
}

/// Subtracts b from a, limbs of which the lowest is the first. `extension` is the limb that continues b above its last one.
#[inline(always)]
fn subtract(a: &mut [u64], b: &[u64], extension: u64) {
    combine_limbs(a, b, extension, u64::overflowing_sub);
}

/// Adds b to a or, if `negative`, subtracts it: limbs of which the lowest is the first. `extension` is the limb that
/// continues b above its last one. Limbs have 64 bits, in two's complement.
#[inline(always)]
fn add_signed(a: &mut [u64], b: &[u64], extension: u64, negative: bool) {
    match negative {
        false => add(a, b, extension),
        true => subtract(a, b, extension),
    }
}

/// Writes the product of two numbers that are not negative over the zeros of `product`, which must be long enough: limbs of
/// which the lowest is the first. Limbs have 64 bits; `carry` is what goes to the next one above.
#[inline(always)]
fn multiply(a: &[u64], b: &[u64], product: &mut [u64]) {
    for (i, &a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, &b) in b.iter().enumerate() {
            let sum = u128::from(a) * u128::from(b) + u128::from(product[i + j]) + carry;
            product[i + j] = sum as u64;
            carry = sum >> 64;
        }
        product[i + b.len()] = carry as u64;
    }
}

/// Divides a number that is not negative, limbs of which the lowest is the first, in place, rounding down. Returns the
/// remainder. Limbs have 64 bits.
#[inline(always)]
fn divide(a: &mut [u64], divisor: u64) -> u64 {
    let mut remainder = 0;
    for limb in a.iter_mut().rev() {
        let dividend = remainder << 64 | u128::from(*limb);
        *limb = (dividend / u128::from(divisor)) as u64;
        remainder = dividend % u128::from(divisor);
    }
    remainder as u64
}

/// How many limbs a number, limbs in two's complement, and its sign need. Limbs have 64 bits; the highest ones that only
/// repeat the sign are not needed. `sign` is the limb that continues the number above its last one.
fn n_limbs_needed(a: &[u64]) -> usize {
    let sign = sign_limb(a);
    let mut n_limbs = a.len();
    while n_limbs > 1 && a[n_limbs - 1] == sign && (a[n_limbs - 2] ^ sign) >> 63 == 0 {
        n_limbs -= 1;
    }
    n_limbs
}

/// The absolute value of a number, with room for products, and its sign.
#[derive(Clone, Copy)]
struct Magnitude {
    limbs: [u64; 2 * MOST_LIMBS],
    /// The limbs in use: the highest of them is not 0.
    len: usize,
    negative: bool,
}

impl Magnitude {
    /// The absolute value and the sign of a number in two's complement, of at most twice [`MOST_LIMBS`] limbs. `a` are its
    /// limbs of 64 bits, the lowest first; `len` is how many limbs of the absolute value are in use.
    fn of(a: &[u64]) -> Self {
        let (mut limbs, negative) = ([0; 2 * MOST_LIMBS], is_negative(a));
        limbs[..a.len()].copy_from_slice(a);
        if negative {
            limbs[..a.len()].fill(0);
            subtract(&mut limbs[..a.len()], a, 0);
        }
        Magnitude { limbs, len: a.len(), negative }.without_leading_zeros()
    }

    /// The same number, with `len` such that the highest limb in use is not 0. `limbs` are those of the absolute value, 64
    /// bits each, the lowest first; the first `len` of them are in use.
    fn without_leading_zeros(mut self) -> Self {
        while self.len > 0 && self.limbs[self.len - 1] == 0 {
            self.len -= 1;
        }
        self
    }

    /// The limbs in use.
    fn limbs(&self) -> &[u64] {
        &self.limbs[..self.len]
    }

    /// The product with its sign. `limbs` are those of an absolute value, 64 bits each, the lowest first, of which the first
    /// `len` are in use; `negative` is its sign.
    fn times(&self, other: &Self) -> Self {
        let (mut limbs, negative) = ([0; 2 * MOST_LIMBS], self.negative != other.negative);
        multiply(self.limbs(), other.limbs(), &mut limbs);
        Magnitude { limbs, len: self.len + other.len, negative }.without_leading_zeros()
    }

    /// Divides the absolute value in place, rounding down, and returns the remainder. `limbs` are those of the absolute
    /// value, 64 bits each, the lowest first, of which the first `len` are in use.
    fn divide(&mut self, divisor: u64) -> u64 {
        let remainder = divide(&mut self.limbs[..self.len], divisor);
        *self = self.without_leading_zeros();
        remainder
    }

    /// The absolute value, rounded to 64 significant bits, and those to a double. `has_remainder`: a remainder was cut off
    /// before. Returns `mantissa` and `exponent`: the number is about `mantissa * 2^exponent`. `self.len` is the number of
    /// limbs of 64 bits.
    fn round(&self, has_remainder: bool) -> ScaledDouble {
        let Some((&highest, lower)) = self.limbs().split_last() else {
            return ScaledDouble { mantissa: 0.0, exponent: 0 };
        };
        // The highest 128 bits, the first of which is 1.
        let zeros = highest.leading_zeros(); // bits
        let second = lower.last().copied().unwrap_or(0); // the limb below the highest
        let bits = (u128::from(highest) << 64 | u128::from(second)) << zeros;
        let is_cut_off = bits as u64 != 0 || lower.iter().rev().skip(1).any(|&limb| limb != 0);
        // If anything was cut off, the lowest bit is set, so that ties are rounded correctly. It is far below a double's
        // precision.
        let mantissa = (bits >> 64) as u64 | u64::from(is_cut_off || has_remainder);
        let exponent = 64 * (self.len as i32 - 1) - zeros as i32;
        ScaledDouble { mantissa: mantissa as f64, exponent }
    }

    /// x with the sign of this number.
    fn with_sign(&self, x: f64) -> f64 {
        if self.negative { -x } else { x }
    }

    /// Writes the number with its sign into all limbs of `cell`, in two's complement. Limbs have 64 bits, the lowest first.
    /// `self.limbs` are those of the absolute value, and `self.negative` is the sign.
    fn write(&self, cell: &mut [u64]) {
        let n_limbs = cell.len();
        cell.fill(0);
        let extension = 0; // the limb beyond those of an absolute value
        add_signed(cell, &self.limbs[..n_limbs], extension, self.negative);
    }
}

/// `mantissa * 2^exponent`, which may be too large or too small for a double.
struct ScaledDouble {
    mantissa: f64,
    exponent: i32,
}

/// `x * 2^exponent`.
fn scale_by_power(mut x: f64, exponent: i32) -> f64 {
    let mut exponent = exponent.clamp(-100_000, 100_000);
    while exponent != 0 && x != 0.0 && x.is_finite() {
        let step = exponent.clamp(-960, 960); // 2^step is a normal double
        x *= f64::from_bits(((1023 + step) as u64) << 52);
        exponent -= step;
    }
    x
}

/// `a * 2^exponent * 10^-digits`, rounded once, for limbs `a` in two's complement and digits that are a multiple of
/// [`DIGITS`]. Limbs have 64 bits, the lowest first.
pub fn value(a: &[u64], digits: u32, exponent: i32) -> f64 {
    let mut number = Magnitude::of(a); // its absolute value, with the number `len` of limbs in use, and its sign
    // Whether a division had a remainder, and the exponent of 2.
    let (mut has_remainder, mut exponent) = (false, exponent);
    if digits > 0 && number.len > 0 {
        // Limbs below the point, so that the quotient keeps more bits than a double has.
        let n_fraction_limbs = 1 + (digits / DIGITS) as usize;
        number.limbs.copy_within(..number.len, n_fraction_limbs);
        number.limbs[..n_fraction_limbs].fill(0);
        number.len += n_fraction_limbs;
        exponent = exponent.saturating_sub(64 * n_fraction_limbs as i32);
        for _ in 0..digits / DIGITS {
            has_remainder |= number.divide(PARTS) != 0;
        }
    }
    let rounded = number.round(has_remainder); // a mantissa and an exponent of 2
    let exponent = exponent.saturating_add(rounded.exponent);
    number.with_sign(scale_by_power(rounded.mantissa, exponent))
}

/// 2^247 / 10^36, rounded down: a number of 128 bits.
const RECIPROCAL: u128 = 226_156_424_291_633_194_186_662_080_095_093_570_025;

/// `a * 10^-36`, rounded once, for the limbs `a` of a number that is not negative, the lowest first: the same as [`value`],
/// in a tenth of the time. Limbs have 64 bits.
pub fn value_of_36_digits(a: &[u64; 3]) -> f64 {
    // The leading zeros of the number's 192 bits.
    let zeros = match a {
        [0, 0, 0] => return 0.0,
        [low, 0, 0] => 128 + low.leading_zeros(),
        [_, middle, 0] => 64 + middle.leading_zeros(),
        [_, _, high] => high.leading_zeros(),
    };
    let two_limbs = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    // The number's 128 bits from the first 1 on.
    let first_bits = match zeros {
        0 => two_limbs(a[2], a[1]),
        1..64 => two_limbs(a[2], a[1]) << zeros | u128::from(a[0] >> (64 - zeros)),
        64.. => two_limbs(a[1], a[0]) << (zeros - 64),
    };
    // The two highest limbs of the product, which are the quotient by 10^36.
    let [_, _, low, high] = product(first_bits, RECIPROCAL);
    let quotient = two_limbs(high, low);
    // The quotient is the first 128 bits times 2^119 / 10^36; the bits that were cut off add less than six to its last place.
    let shift = quotient.leading_zeros();
    // The quotient's 53 bits from the first 1 on, and the 75 bits below them.
    let mantissa = quotient << shift >> 75;
    let below_mantissa = quotient << shift & ((1 << 75) - 1);
    if ((1 << 74) - 6..=1 << 74).contains(&below_mantissa) {
        return value(a, 36, 0);
    }
    let rounded = mantissa as u64 + (below_mantissa >> 74) as u64;
    // The number is 2^(64 - zeros) times its first 128 bits, and the quotient 2^(75 - shift) times its mantissa.
    scale_by_power(rounded as f64, 64 - zeros as i32 - 119 + 75 - shift as i32)
}

// Arrays --------------------------------------------------------------------------------------------------------------

/// An array of whole numbers in units of 10^-digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Integers {
    pub shape: Vec<usize>,
    /// Limbs per number: as few as possible.
    limbs: usize,
    /// A multiple of [`DIGITS`], as small as possible.
    digits: u32,
    /// The limbs of all numbers, cell by cell.
    words: Vec<u64>,
}

const TOO_LARGE: &str = "a sum has become too large to be held";

impl Integers {
    /// Numbers in units of 10^-digits; `words` has `limbs` limbs of each cell, cell by cell. An error if they do not fill the
    /// shape, are too many, or `digits` is not a multiple of 18 up to 72. The limbs of a cell are in two's complement, the
    /// lowest first.
    pub fn new(
        shape: Vec<usize>,
        digits: u32,
        limbs: usize,
        words: Vec<u64>,
    ) -> Result<Self, Error> {
        let fits = n_cells(&shape).and_then(|n| n.checked_mul(limbs)) == Some(words.len());
        demand(fits && limbs > 0, "limbs must fill the shape")?;
        demand(limbs <= MOST_LIMBS - 4, TOO_LARGE)?;
        demand(
            digits.is_multiple_of(DIGITS) && digits <= 4 * DIGITS,
            "digits come in eighteens, four of them at most",
        )?;
        Integers { shape, limbs, digits, words }.canonical()
    }

    /// An array of these numbers, one per cell of the shape. Their unit is 1. A number is one limb of 64 bits.
    pub fn of_i64(shape: Vec<usize>, numbers: Vec<i64>) -> Self {
        let words = numbers.into_iter().map(|n| n as u64).collect();
        Integers { shape, limbs: 1, digits: 0, words }
    }

    /// An array of these numbers, one per cell of the shape, in units of 10^-digits; an error as in [`Integers::new`].
    /// Numbers have `L` limbs of 64 bits.
    pub fn of_wide<const L: usize>(
        shape: Vec<usize>,
        digits: u32,
        numbers: &[Int<L>],
    ) -> Result<Self, Error> {
        Integers::new(shape, digits, L, numbers.iter().flat_map(|n| n.0).collect())
    }

    /// The unit is 10^-digits.
    pub fn digits(&self) -> u32 {
        self.digits
    }

    /// The number of limbs of each cell.
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// The limbs of all cells, cell by cell, the lowest of each first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.words.len() / self.limbs
    }

    /// The limbs of each cell, in order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = &[u64]> + '_ {
        self.words.chunks_exact(self.limbs)
    }

    /// The limbs of cell i.
    fn cell(&self, i: usize) -> &[u64] {
        &self.words[i * self.limbs..(i + 1) * self.limbs]
    }

    /// The same array with as few limbs and digits as possible, so that equal arrays are equal in memory. `digits` gives the
    /// unit of the numbers, 10^-digits; `limbs` is the number of limbs of each cell, and `words` has the limbs of all cells,
    /// cell by cell, the lowest first. A `number` is an absolute value with its sign; 10^18 of the unit make the next one.
    fn canonical(mut self) -> Result<Self, Error> {
        let is_whole = |cell: &[u64]| Magnitude::of(cell).divide(PARTS) == 0;
        while self.digits > 0 && self.cells().all(is_whole) {
            for cell in self.words.chunks_exact_mut(self.limbs) {
                let mut number = Magnitude::of(cell);
                number.divide(PARTS);
                number.write(cell);
            }
            self.digits -= DIGITS;
        }
        // How many limbs every cell needs.
        let limbs = match self.limbs {
            1 => 1,
            _ => self.cells().map(n_limbs_needed).max().unwrap_or(1),
        };
        demand(limbs <= MOST_LIMBS - 4, TOO_LARGE)?;
        Ok(self.with_limbs(limbs))
    }

    /// The same numbers with so many limbs each, which must be enough. `self.limbs` is how many each cell has, and `words`
    /// are the limbs of all cells, cell by cell, the lowest first. Limbs have 64 bits, in two's complement.
    fn with_limbs(self, limbs: usize) -> Self {
        if limbs == self.limbs {
            return self;
        }
        let mut words = Vec::with_capacity(self.len() * limbs);
        for cell in self.cells() {
            let sign = sign_limb(cell); // the limb that continues the number
            words.extend((0..limbs).map(|i| cell.get(i).copied().unwrap_or(sign)));
        }
        Integers { limbs, words, ..self }
    }

    /// The same numbers in units of at most 10^-digits. `finer` are the numbers in units that are 10^18 times smaller at each
    /// step. A limb has 64 bits.
    fn with_digits(&self, digits: u32) -> Self {
        let mut finer = self.clone();
        while finer.digits < digits {
            let factor_limbs = 1;
            finer = finer.multiply(&Magnitude::of(&[PARTS, 0]), factor_limbs);
            finer.digits += DIGITS;
        }
        finer
    }

    /// All numbers times a factor, which has at most `factor_limbs` limbs. `product.words` has `product.limbs` limbs of each
    /// cell, cell by cell. Limbs have 64 bits, the lowest of a cell first.
    fn multiply(&self, factor: &Magnitude, factor_limbs: usize) -> Self {
        let mut product = self.clone().with_limbs(self.limbs + factor_limbs);
        for cell in product.words.chunks_exact_mut(product.limbs) {
            if cell.iter().any(|&limb| limb != 0) {
                Magnitude::of(cell).times(factor).write(cell);
            }
        }
        product
    }

    /// The sum with an array of the same shape or, if `negative`, the difference; an error if it is too large. Numbers are in
    /// units of 10^-digits; `words` has the limbs of all cells, `limbs` of each, cell by cell. Limbs have 64 bits, in two's
    /// complement, the lowest of a cell first.
    fn plus_signed(&self, other: &Self, negative: bool) -> Result<Self, Error> {
        demand(self.shape == other.shape, "arrays must have one shape")?;
        if self.limbs == 1 && other.limbs == 1 && self.digits == other.digits {
            // A million numbers take 3 ms instead of 14 ms.
            let add_one_limb = |(&a, &b): (&u64, &u64)| match negative {
                false => (a as i64).checked_add(b as i64),
                true => (a as i64).checked_sub(b as i64),
            };
            let sums = self.words.iter().zip(&other.words).map(add_one_limb);
            if let Some(words) = sums.map(|sum| sum.map(|sum| sum as u64)).collect() {
                return Integers { shape: self.shape.clone(), words, ..*self }.canonical();
            }
        }
        let digits = self.digits.max(other.digits);
        // Both arrays in the finer of their units, and limbs enough for the sum.
        let (sum, other) = (self.with_digits(digits), other.with_digits(digits));
        let limbs = sum.limbs.max(other.limbs) + 1;
        let mut sum = sum.with_limbs(limbs);
        for (a, b) in sum.words.chunks_exact_mut(limbs).zip(other.cells()) {
            add_signed(a, b, sign_limb(b), negative);
        }
        sum.canonical()
    }

    /// The sum, cell by cell; an error if the shapes differ or a sum is too large.
    pub fn plus(&self, other: &Self) -> Result<Self, Error> {
        self.plus_signed(other, false)
    }

    /// The difference, cell by cell; an error as in [`Integers::plus`].
    pub fn minus(&self, other: &Self) -> Result<Self, Error> {
        self.plus_signed(other, true)
    }

    /// The array times `factor` / 10^18, rounded down to 18 digits, or to those that it has; and whether that is exact.
    /// `self.digits` are the digits that it has: its unit is 10^-digits. `product.words` has `product.limbs` limbs of each
    /// cell. Limbs have 64 bits, in two's complement, the lowest of a cell first.
    pub fn times(&self, factor: u128) -> Result<(Self, bool), Error> {
        let is_whole = factor.is_multiple_of(u128::from(PARTS));
        // A whole number if it is one, otherwise a number of 10^-18.
        let factor = if is_whole { factor / u128::from(PARTS) } else { factor };
        let factor = Magnitude::of(&[factor as u64, (factor >> 64) as u64, 0]);
        let factor_limbs = 2;
        let mut product = self.multiply(&factor, factor_limbs);
        let (limbs, mut is_exact) = (product.limbs, true);
        if !is_whole && self.digits > 0 {
            for cell in product.words.chunks_exact_mut(limbs) {
                let mut number = Magnitude::of(cell);
                let has_remainder = number.divide(PARTS) != 0;
                number.write(cell);
                if has_remainder && number.negative {
                    // The absolute value was rounded down; so is the number, to the next one below.
                    subtract(cell, &[1], 0);
                }
                is_exact &= !has_remainder;
            }
        } else if !is_whole {
            product.digits = DIGITS;
        }
        Ok((product.canonical()?, is_exact))
    }

    /// Selects cells along an axis: cell i of the result is cell `index[i]`. An error if there is no such axis or cell. The
    /// limbs of the cells are `[block][index along the axis][limb]`: `n_blocks` blocks of `length` entries of `width` limbs.
    /// `words` has those of the result.
    pub fn take(&self, index: &[usize], axis: usize) -> Result<Self, Error> {
        let AxisLayout { n_blocks, length, width } = self.axis_layout(axis)?;
        demand(index.iter().all(|&i| i < length), "an index is beyond the end of the axis")?;
        let mut words = Vec::with_capacity(n_blocks * index.len() * width);
        for block in 0..n_blocks {
            for &i in index {
                let start = (block * length + i) * width; // the first limb of cell i
                words.extend_from_slice(&self.words[start..start + width]);
            }
        }
        self.with_axis(axis, index.len(), words)
    }

    /// Moves cell i along an axis of the new length `size` to `index[i]`, and adds up cells that move to the same index; 0
    /// where none does. An error if there is no such axis, or an index is missing or not below `size`. The limbs of the cells
    /// are `[block][index along the axis][limb]`: `n_blocks` blocks of `length` entries of `width` limbs. `is_taken` says
    /// which new indices some cell moves to, and `is_sum` whether two cells move to the same one. Limbs have 64 bits, in
    /// two's complement, the lowest of a cell first. `target` is the new index of cell i.
    pub fn merge(&self, index: &[usize], size: usize, axis: usize) -> Result<Self, Error> {
        let AxisLayout { n_blocks, length, width } = self.axis_layout(axis)?;
        demand(
            index.len() == length && index.iter().all(|&i| i < size),
            "there must be an index below the new length for each cell of the axis",
        )?;
        let mut is_taken = vec![false; size];
        let is_sum = index.iter().any(|&i| std::mem::replace(&mut is_taken[i], true));
        // With room for sums, if cells are added up.
        let wide = self.clone().with_limbs(self.limbs + usize::from(is_sum));
        let (limbs, width) = (wide.limbs, width / self.limbs * wide.limbs);
        let mut words = vec![0; n_blocks * size * width];
        for block in 0..n_blocks {
            for (i, &target) in index.iter().enumerate() {
                let cells = &wide.words[(block * length + i) * width..][..width];
                let sums = &mut words[(block * size + target) * width..][..width];
                for (sum, cell) in sums.chunks_exact_mut(limbs).zip(cells.chunks_exact(limbs)) {
                    add(sum, cell, 0);
                }
            }
        }
        wide.with_axis(axis, size, words)
    }

    /// How the cells lie along this axis: blocks of `length` entries of `width` limbs. An error if there is no such axis. The
    /// limbs are `[block][index along the axis][limb]`. `self.shape` has the length of each axis, and `self.limbs` is the
    /// number of limbs of each cell.
    fn axis_layout(&self, axis: usize) -> Result<AxisLayout, Error> {
        demand(axis < self.shape.len(), "there is no such axis")?;
        Ok(AxisLayout {
            n_blocks: self.shape[..axis].iter().product(),
            length: self.shape[axis],
            width: self.shape[axis + 1..].iter().product::<usize>() * self.limbs,
        })
    }

    /// An array of these limbs, whose shape differs in the length of one axis. `length` is the new length of `axis`; `words`
    /// has the limbs of the new cells, cell by cell, as many for each as this array has.
    fn with_axis(&self, axis: usize, length: usize, words: Vec<u64>) -> Result<Self, Error> {
        let mut shape = self.shape.clone();
        shape[axis] = length;
        Integers { shape, words, ..*self }.canonical()
    }

    /// The array in another shape. With an index, cell i of the result is cell `index[i]`, both counted in C order; without,
    /// cells keep their order. An error if the number of cells is not that of the shape. `words` are the limbs of all cells,
    /// cell by cell.
    pub fn reshape(&self, shape: Vec<usize>, index: Option<&[usize]>) -> Result<Self, Error> {
        let mut reshaped = Integers { shape, ..self.clone() };
        if let Some(index) = index {
            demand(index.iter().all(|&i| i < self.len()), "there is no such cell")?;
            // The limbs of the cells, cell by cell.
            reshaped.words = index.iter().flat_map(|&i| self.cell(i)).copied().collect();
        }
        let fits = n_cells(&reshaped.shape) == Some(reshaped.len());
        demand(fits, "the shape must have as many cells")?;
        if index.is_some() { reshaped.canonical() } else { Ok(reshaped) }
    }

    /// Concatenates arrays along the first axis; an error if there is none, or if they differ in another axis. Numbers are in
    /// units of 10^-digits; each has `limbs` limbs, and `words` has those of all cells, cell by cell. Limbs have 64 bits, in
    /// two's complement.
    pub fn concatenate(arrays: &[&Integers]) -> Result<Self, Error> {
        let digits = arrays.iter().map(|array| array.digits).max().unwrap_or(0);
        // The arrays in the smallest of their units, 10^-digits.
        let finer: Vec<Integers> = arrays.iter().map(|array| array.with_digits(digits)).collect();
        let limbs = finer.iter().map(|array| array.limbs).max().unwrap_or(1);
        let first = arrays.first().ok_or(Error::malformed("nothing to join"))?;
        let mut shape = first.shape.clone();
        let fits =
            |array: &&Integers| !array.shape.is_empty() && array.shape[1..] == first.shape[1..];
        demand(
            !shape.is_empty() && arrays.iter().all(fits),
            "arrays must have the same shape except along the first axis",
        )?;
        shape[0] = arrays.iter().map(|array| array.shape[0]).sum();
        let words = finer.into_iter().flat_map(|array| array.with_limbs(limbs).words);
        Integers::new(shape, digits, limbs, words.collect())
    }

    /// The numbers times 2^exponent, each rounded once to a double, cell by cell. Numbers are in units of 10^-`self.digits`,
    /// and `self.words` has `self.limbs` limbs of each. A limb has 64 bits; with a single one, a `word` is the number itself.
    pub fn values(&self, exponent: i32) -> Vec<f64> {
        if self.limbs == 1 && self.digits == 0 {
            // A million numbers take 0.6 ms instead of 49 ms.
            let value = |&word: &u64| scale_by_power(word as i64 as f64, exponent);
            return self.words.iter().map(value).collect();
        }
        self.cells().map(|cell| value(cell, self.digits, exponent)).collect()
    }

    /// Whether each cell's number is negative, cell by cell.
    pub fn is_negative(&self) -> Vec<bool> {
        self.cells().map(is_negative).collect()
    }

    /// Whether each cell's number is 0, cell by cell.
    pub fn is_zero(&self) -> Vec<bool> {
        self.cells().map(|cell| cell.iter().all(|&limb| limb == 0)).collect()
    }
}

/// How cells lie along an axis: the limbs are `[block][index along the axis][limb]`; these are the three lengths.
struct AxisLayout {
    n_blocks: usize,
    length: usize,
    width: usize,
}

/// The number of cells of a shape; None if it is 2^48 or more. `shape` has the length of each axis.
pub fn n_cells(shape: &[usize]) -> Option<usize> {
    // None if the product overflows.
    let multiply = |n: usize, &length: &usize| n.checked_mul(length);
    shape.iter().try_fold(1, multiply).filter(|&n| n < 1 << 48)
}

/// The pairs of so many columns, (i, j) with j <= i, i by i.
fn column_pairs(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..columns).flat_map(|i| (0..=i).map(move |j| (i, j)))
}

/// The sum of products of deviations from the mean for each pair of columns: `(n Σab - Σa Σb) / n`, exact and then rounded once
/// or twice, `[cell][pair]`; 0 where n is 0.
///
/// `n` has the number of rows of each cell, and `sums` is `[cell][the columns, then the pairs]`; sums of columns are in units
/// of 2^-57, those of pairs in units of 2^-114. Pairs are (i, j) with j <= i, i by i. An error if the lengths do not fit
/// together. a is the z of column i and b that of column j. z is (x - origin) / unit of a column. `n_rows` and the sums are
/// absolute values with signs.
pub fn deviations(n: &Integers, sums: &Integers, columns: usize) -> Result<Vec<f64>, Error> {
    let width = columns + columns * (columns + 1) / 2; // columns and pairs, the sums of a cell
    demand(sums.len() == n.len() * width, "sums must go with the numbers of rows")?;
    let digits = n.digits.max(sums.digits);
    let (n, sums) = (n.with_digits(digits), sums.with_digits(digits));
    // Of `n` and of `sums`: one of them cancels in the quotient.
    let unit = 10_f64.powi(-(digits as i32));
    let mut deviations = Vec::with_capacity(n.len() * (width - columns));
    for (cell, n_rows) in n.cells().enumerate() {
        let n_rows = Magnitude::of(n_rows); // of the cell; `len` is 0 if there are none
        let divisor = n_rows.round(false); // no remainder was cut off
        // The i-th sum of the cell.
        let sum = |i: usize| Magnitude::of(sums.cell(cell * width + i));
        let column_sums: Vec<Magnitude> = (0..columns).map(sum).collect();
        for (pair, (i, j)) in column_pairs(columns).enumerate() {
            if n_rows.len == 0 {
                deviations.push(0.0);
                continue;
            }
            let n_times_products = n_rows.times(&sum(columns + pair));
            let product_of_sums = column_sums[i].times(&column_sums[j]);
            let difference = difference(&n_times_products, &product_of_sums);
            let dividend = difference.round(false); // no remainder was cut off
            let exponent = dividend.exponent - divisor.exponent - 114; // sums of pairs count 2^-114
            let deviation = scale_by_power(dividend.mantissa / divisor.mantissa, exponent);
            deviations.push(difference.with_sign(deviation * unit));
        }
    }
    Ok(deviations)
}

/// a - b. All are absolute values with signs; `minuend` and `subtrahend` are the limbs of a and b in two's complement.
fn difference(a: &Magnitude, b: &Magnitude) -> Magnitude {
    let [mut minuend, mut subtrahend] = [[0; 2 * MOST_LIMBS]; 2];
    a.write(&mut minuend);
    b.write(&mut subtrahend);
    subtract(&mut minuend, &subtrahend, 0);
    Magnitude::of(&minuend)
}
