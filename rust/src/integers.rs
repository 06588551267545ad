//! Whole numbers of any size, and arrays of them: sums that are exact, so that what was added can be subtracted without a trace.
//!
//! A number is a sequence of 64-bit limbs in two's complement, the lowest limb first. An array counts in units of 10^-digits, so
//! that weights such as 0.1 are whole numbers too. Equal arrays have equal limbs, however they were computed.

use crate::error::{Error, demand};
use std::cmp::Ordering;
use std::collections::HashMap;

/// A row has 10^18 parts, the unit of fractional weights. Fixed by the file format.
pub const PARTS: u64 = 1_000_000_000_000_000_000;
/// The decimal digits of a part of a row.
pub const DIGITS: u32 = 18;
/// No number has more limbs: these hold 2^63 times the square of 2^457, the largest z in units of 2^-57, in parts of a row.
const MOST: usize = 24;

/// Weights, and sums of weights, are below 2^63.
const HEAVIEST: f64 = 9_223_372_036_854_775_808.0;

/// A number of `64 * L` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int<const L: usize>(pub [u64; L]);

impl<const L: usize> Default for Int<L> {
    fn default() -> Self {
        Int([0; L])
    }
}

impl<const L: usize> From<u128> for Int<L> {
    fn from(number: u128) -> Self {
        let mut int = Int::default();
        int.add(number, 0, false);
        int
    }
}

impl<const L: usize> PartialOrd for Int<L> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const L: usize> Ord for Int<L> {
    fn cmp(&self, other: &Self) -> Ordering {
        let limbs = |a: &Self| a.0.into_iter().rev();
        let signs = other.is_negative().cmp(&self.is_negative());
        signs.then_with(|| limbs(self).cmp(limbs(other)))
    }
}

impl<const L: usize> Int<L> {
    /// Adds (or, if `negative`, subtracts) `number * 2^shift`.
    pub fn add(&mut self, number: u128, shift: u32, negative: bool) {
        self.add_wide([number as u64, (number >> 64) as u64, 0, 0], shift, negative);
    }

    /// Adds (or, if `negative`, subtracts) a number of four limbs times `2^shift`.
    pub fn add_wide(&mut self, number: [u64; 4], shift: u32, negative: bool) {
        let (from, bits) = ((shift / 64) as usize, shift % 64);
        let mut carried = 0;
        let mut shifted = [0; 5];
        for (to, limb) in shifted.iter_mut().zip(number) {
            *to = limb << bits | carried;
            carried = if bits == 0 { 0 } else { limb >> (64 - bits) };
        }
        shifted[4] = carried;
        let Some(limbs) = self.0.get_mut(from..) else {
            return;
        };
        if negative {
            subtract(limbs, &shifted, 0);
        } else {
            add(limbs, &shifted, 0);
        }
    }

    pub fn merge(&mut self, other: &Self) {
        add(&mut self.0, &other.0, 0);
    }

    pub fn take(&mut self, other: &Self) {
        subtract(&mut self.0, &other.0, 0);
    }

    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|&limb| limb == 0)
    }

    pub fn is_negative(&self) -> bool {
        is_negative(&self.0)
    }

    /// Divides a number that is not negative; what is left.
    #[inline(always)]
    pub fn divide(&mut self, divisor: u64) -> u64 {
        divide(&mut self.0, divisor)
    }

    /// Multiplies a number that is not negative by a number of parts, and rounds down. Also returns whether the product is exact.
    /// It must fit.
    pub fn times(&self, parts: u128) -> (Self, bool) {
        let mut room = [0; MOST];
        multiply(&[parts as u64, (parts >> 64) as u64], &self.0, &mut room);
        let rest = divide(&mut room[..L + 2], PARTS);
        (Int(std::array::from_fn(|i| room[i])), rest == 0)
    }

    /// Rounded to a double, in units of 10^-digits.
    #[cfg(test)]
    pub fn value(&self, digits: u32) -> f64 {
        value(&self.0, digits, 0)
    }
}

/// A sum of 256 bits for loops over rows, in two halves of 128 bits, which processors add quickly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    low: u128,
    high: i128,
}

impl Sum {
    /// Adds a number with its sign.
    #[inline(always)]
    pub fn add(&mut self, number: i128) {
        let (low, carry) = self.low.overflowing_add(number as u128);
        (self.low, self.high) = (low, self.high + (number >> 127) + i128::from(carry));
    }

    /// Adds (or, if `negative`, subtracts) a product of less than 2^191.
    #[inline(always)]
    pub fn add_product(&mut self, a: u128, b: u64, negative: bool) {
        let (first, second) = (u128::from(a as u64) * u128::from(b), (a >> 64) * u128::from(b));
        let (low, carry) = first.overflowing_add(second << 64);
        let high = (second >> 64) as i128 + i128::from(carry);
        // Subtracting a number is adding its complement and 1. Without a branch, no prediction can fail.
        let not = if negative { -1_i128 } else { 0 };
        let (low, one) = (low ^ not as u128).overflowing_add(u128::from(negative));
        let (sum, carry) = self.low.overflowing_add(low);
        self.low = sum;
        self.high += (high ^ not) + i128::from(one) + i128::from(carry);
    }

    pub fn merge(&mut self, other: &Self) {
        let (low, carry) = self.low.overflowing_add(other.low);
        (self.low, self.high) = (low, self.high + other.high + i128::from(carry));
    }

    pub fn int(&self) -> Int<4> {
        let (low, high) = (self.low, self.high as u128);
        Int([low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64])
    }
}

/// The product of two numbers.
#[inline(always)]
pub fn product(a: u128, b: u128) -> [u64; 4] {
    let (a0, a1, b0, b1) = (a as u64, (a >> 64) as u64, b as u64, (b >> 64) as u64);
    let each = |x: u64, y: u64| u128::from(x) * u128::from(y);
    let low = each(a0, b0);
    let (first, second) = (each(a0, b1), each(a1, b0));
    let middle = (low >> 64) + (first & u128::from(u64::MAX)) + (second & u128::from(u64::MAX));
    let high = each(a1, b1) + (first >> 64) + (second >> 64) + (middle >> 64);
    [low as u64, middle as u64, high as u64, (high >> 64) as u64]
}

/// Powers of ten, all of them doubles.
const TENS: [u64; DIGITS as usize + 1] = {
    let mut tens = [1; DIGITS as usize + 1];
    let mut i = 1;
    while i < tens.len() {
        tens[i] = 10 * tens[i - 1];
        i += 1;
    }
    tens
};
/// Powers of ten as doubles.
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
const SMALL: f64 = 1.0 / 18_446_744_073_709_551_616.0; // 2^-64

/// Rounds a weight to fifteen decimal digits. Returns it in parts of a row, and as the nearest double.
#[inline(always)]
fn fifteen_digits(weight: f64) -> (u128, f64) {
    // The decimals that leave fifteen digits. The exponent gives their number or one more: log10 2 is a little more than 77 /
    // 256.
    let exponent = (weight.to_bits() >> 52) as i32 - 1023;
    let most = (14 - ((exponent * 77) >> 8)).clamp(0, DIGITS as i32) as usize;
    let decimals = most - usize::from(most > 0 && weight * TENS[most] as f64 >= 1e15);
    let written = (weight * TENS[decimals] as f64 + 0.5) as u64;
    let parts = u128::from(written) * u128::from(TENS[DIGITS as usize - decimals]);
    (parts, written as f64 / TENS[decimals] as f64)
}

/// Converts a weight to parts of a row: exactly as the decimal number that it is written as, if that has at most fifteen digits;
/// rounded otherwise. None if it is negative, NaN or 2^63 and more.
#[inline]
pub fn parts(weight: f64) -> Option<u128> {
    if !(0.0..HEAVIEST).contains(&weight) {
        return None;
    }
    let (written, nearest) = fifteen_digits(weight);
    if nearest == weight {
        return Some(written);
    }
    // A double is m * 2^e; with e below -127, it is less than half a part.
    let bits = weight.to_bits();
    let (mantissa, exponent) = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52) as i32 - 1075);
    let exact = u128::from(mantissa) * u128::from(PARTS);
    match exponent {
        0.. => Some(exact << exponent),
        -127..0 => Some((exact + (1 << (-exponent - 1))) >> -exponent),
        _ => Some(0),
    }
}

/// [`parts`] for weights from 2^-64 to 16, with fewer conversions between integers and doubles, which take most of its time. None
/// for other weights.
#[inline(always)]
pub fn light_parts(weight: f64) -> Option<u64> {
    if !(SMALL..16.0).contains(&weight) {
        return None;
    }
    let bits = weight.to_bits();
    let power = (bits >> 52) as i32 - 1023;
    let most = (14 - ((power * 77) >> 8)).clamp(0, DIGITS as i32) as usize;
    let decimals = most - usize::from(weight * POWERS[most] >= 1e15);
    // Adding 2^52 rounds a number, and its last bits are then the whole number.
    let above = weight * POWERS[decimals] + 0.5;
    let nearest = (above + WHOLE) - WHOLE;
    let written = nearest - if nearest > above { 1.0 } else { 0.0 };
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let (exact, shift) = (u128::from(mantissa) * u128::from(PARTS), 52 - power);
    let rounded = ((exact + (1 << (shift - 1))) >> shift) as u64;
    let decimal = ((written + WHOLE).to_bits() & ((1 << 52) - 1))
        .wrapping_mul(TENS[DIGITS as usize - decimals]);
    Some(if written / POWERS[decimals] == weight { decimal } else { rounded })
}

/// Converts the shares of classes in a row to parts. They add up exactly to the weight of the row, which is their sum rounded to
/// fifteen digits: the largest share absorbs the rounding. A class with the only share has the whole weight.
pub fn shares(weights: &[f64]) -> Option<Vec<u128>> {
    let mut shares: Vec<u128> = weights.iter().map(|&w| parts(w)).collect::<Option<_>>()?;
    if shares.iter().filter(|&&share| share > 0).count() < 2 {
        return Some(shares);
    }
    let sum = weights.iter().sum::<f64>();
    let (total, _) = fifteen_digits(Some(sum).filter(|&sum| sum < HEAVIEST)?);
    let gap = total as i128 - shares.iter().sum::<u128>() as i128;
    let largest = (0..shares.len()).rev().max_by_key(|&i| shares[i])?;
    shares[largest] = (shares[largest] as i128 + gap).max(0) as u128;
    Some(shares)
}

// Numbers as slices of limbs ------------------------------------------------------------------------------------------

pub fn is_negative(a: &[u64]) -> bool {
    a.last().is_some_and(|&limb| limb >> 63 == 1)
}

/// The limb that continues a number above its last one.
fn sign(a: &[u64]) -> u64 {
    if is_negative(a) { u64::MAX } else { 0 }
}

/// Adds or subtracts b, as `step` does. `above` continues b above its last limb.
#[inline(always)]
fn carried(a: &mut [u64], b: &[u64], above: u64, step: impl Fn(u64, u64) -> (u64, bool)) {
    let mut carry = false;
    for (i, limb) in a.iter_mut().enumerate() {
        let (sum, first) = step(*limb, b.get(i).copied().unwrap_or(above));
        let (sum, second) = step(sum, u64::from(carry));
        (*limb, carry) = (sum, first | second);
    }
}

#[inline(always)]
fn add(a: &mut [u64], b: &[u64], above: u64) {
    carried(a, b, above, u64::overflowing_add);
}

#[inline(always)]
fn subtract(a: &mut [u64], b: &[u64], above: u64) {
    carried(a, b, above, u64::overflowing_sub);
}

/// Writes the product of two numbers that are not negative over zeros, which must be long enough.
#[inline(always)]
fn multiply(a: &[u64], b: &[u64], found: &mut [u64]) {
    for (i, &a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, &b) in b.iter().enumerate() {
            let sum = u128::from(a) * u128::from(b) + u128::from(found[i + j]) + carry;
            found[i + j] = sum as u64;
            carry = sum >> 64;
        }
        found[i + b.len()] = carry as u64;
    }
}

/// Divides a number that is not negative; what is left.
#[inline(always)]
fn divide(a: &mut [u64], divisor: u64) -> u64 {
    let mut rest = 0;
    for limb in a.iter_mut().rev() {
        let number = rest << 64 | u128::from(*limb);
        *limb = (number / u128::from(divisor)) as u64;
        rest = number % u128::from(divisor);
    }
    rest as u64
}

/// How many limbs a number and its sign need.
fn needed(a: &[u64]) -> usize {
    let above = sign(a);
    let mut n = a.len();
    while n > 1 && a[n - 1] == above && (a[n - 2] ^ above) >> 63 == 0 {
        n -= 1;
    }
    n
}

/// The absolute value of a number, with room for products, and its sign.
#[derive(Clone, Copy)]
struct Magnitude {
    limbs: [u64; 2 * MOST],
    len: usize,
    negative: bool,
}

impl Magnitude {
    fn of(a: &[u64]) -> Self {
        let (mut limbs, negative) = ([0; 2 * MOST], is_negative(a));
        limbs[..a.len()].copy_from_slice(a);
        if negative {
            limbs[..a.len()].fill(0);
            subtract(&mut limbs[..a.len()], a, 0);
        }
        Magnitude { limbs, len: a.len(), negative }.trimmed()
    }

    fn trimmed(mut self) -> Self {
        while self.len > 0 && self.limbs[self.len - 1] == 0 {
            self.len -= 1;
        }
        self
    }

    fn used(&self) -> &[u64] {
        &self.limbs[..self.len]
    }

    fn times(&self, other: &Self) -> Self {
        let (mut limbs, negative) = ([0; 2 * MOST], self.negative != other.negative);
        multiply(self.used(), other.used(), &mut limbs);
        Magnitude { limbs, len: self.len + other.len, negative }.trimmed()
    }

    /// Divides, and returns the remainder.
    fn divide(&mut self, divisor: u64) -> u64 {
        let rest = divide(&mut self.limbs[..self.len], divisor);
        *self = self.trimmed();
        rest
    }

    /// Rounds to 64 significant bits. Returns them as a double, and the power of two to multiply it by. `rest`: a remainder was
    /// cut off before.
    fn rounded(&self, rest: bool) -> (f64, i32) {
        let Some(&top) = self.used().last() else {
            return (0.0, 0);
        };
        let (below, zeros) = (&self.limbs[..self.len - 1], top.leading_zeros());
        let next = below.last().copied().unwrap_or(0);
        let bits = (u128::from(top) << 64 | u128::from(next)) << zeros;
        let cut = bits as u64 != 0 || below.iter().rev().skip(1).any(|&limb| limb != 0);
        // If anything was cut off, the lowest bit is set, so that ties are rounded correctly. It is far below a double's
        // precision.
        let bits = (bits >> 64) as u64 | u64::from(cut || rest);
        (bits as f64, 64 * (self.len as i32 - 1) - zeros as i32)
    }

    fn signed(&self, x: f64) -> f64 {
        if self.negative { -x } else { x }
    }

    fn write(&self, cell: &mut [u64]) {
        let n = cell.len();
        cell.fill(0);
        match self.negative {
            false => cell.copy_from_slice(&self.limbs[..n]),
            true => subtract(cell, &self.limbs[..n], 0),
        }
    }
}

/// `x * 2^exponent`.
fn scaled(mut x: f64, exponent: i32) -> f64 {
    let mut exponent = exponent.clamp(-100_000, 100_000);
    while exponent != 0 && x != 0.0 && x.is_finite() {
        let step = exponent.clamp(-960, 960);
        x *= f64::from_bits(((1023 + step) as u64) << 52);
        exponent -= step;
    }
    x
}

/// `a * 2^exponent * 10^-digits`, rounded once.
pub fn value(a: &[u64], digits: u32, exponent: i32) -> f64 {
    let mut number = Magnitude::of(a);
    let (mut rest, mut exponent) = (false, exponent);
    if digits > 0 && number.len > 0 {
        let room = 1 + (digits / DIGITS) as usize;
        number.limbs.copy_within(..number.len, room);
        number.limbs[..room].fill(0);
        number.len += room;
        exponent = exponent.saturating_sub(64 * room as i32);
        for _ in 0..digits / DIGITS {
            rest |= number.divide(PARTS) != 0;
        }
    }
    let (x, shift) = number.rounded(rest);
    number.signed(scaled(x, exponent.saturating_add(shift)))
}

/// 2^247 / 10^36, rounded down: a number of 128 bits.
const RECIPROCAL: u128 = 226_156_424_291_633_194_186_662_080_095_093_570_025;

/// [`value`] of a number that is not negative, in units of 10^-36, in a tenth of the time.
pub fn value36(a: &[u64; 3]) -> f64 {
    let zeros = match a {
        [0, 0, 0] => return 0.0,
        [low, 0, 0] => 128 + low.leading_zeros(),
        [_, middle, 0] => 64 + middle.leading_zeros(),
        [_, _, high] => high.leading_zeros(),
    };
    // The first 128 bits.
    let joined = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    let top = match zeros {
        0 => joined(a[2], a[1]),
        1..64 => joined(a[2], a[1]) << zeros | u128::from(a[0] >> (64 - zeros)),
        64.. => joined(a[1], a[0]) << (zeros - 64),
    };
    let [_, _, low, high] = product(top, RECIPROCAL);
    let quotient = joined(high, low);
    // The bits that were cut off add less than six to this.
    let shift = quotient.leading_zeros();
    let (first, rest) = (quotient << shift >> 75, quotient << shift & ((1 << 75) - 1));
    if ((1 << 74) - 6..=1 << 74).contains(&rest) {
        return value(a, 36, 0);
    }
    let rounded = first as u64 + (rest >> 74) as u64;
    scaled(rounded as f64, 64 - zeros as i32 - 44 - shift as i32)
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
    words: Vec<u64>,
}

const TOO_LARGE: &str = "a sum has become too large to be held";

impl Integers {
    pub fn new(
        shape: Vec<usize>,
        digits: u32,
        limbs: usize,
        words: Vec<u64>,
    ) -> Result<Self, Error> {
        let fits = cells(&shape).and_then(|n| n.checked_mul(limbs)) == Some(words.len());
        demand(fits && limbs > 0, "limbs must fill the shape")?;
        demand(limbs <= MOST - 4, TOO_LARGE)?;
        demand(
            digits.is_multiple_of(DIGITS) && digits <= 4 * DIGITS,
            "digits come in eighteens, four of them at most",
        )?;
        let made = Integers { shape, limbs, digits, words };
        made.settled()
    }

    pub fn whole(shape: Vec<usize>, numbers: Vec<i64>) -> Self {
        Integers {
            shape,
            limbs: 1,
            digits: 0,
            words: numbers.into_iter().map(|n| n as u64).collect(),
        }
    }

    pub fn of<const L: usize>(
        shape: Vec<usize>,
        digits: u32,
        numbers: &[Int<L>],
    ) -> Result<Self, Error> {
        Integers::new(shape, digits, L, numbers.iter().flat_map(|n| n.0).collect())
    }

    /// Returns the array with numbers, in units of 10^-digits, added to some cells.
    pub fn with<const L: usize>(
        &self,
        more: &HashMap<usize, Int<L>>,
        digits: u32,
    ) -> Result<Self, Error> {
        if more.is_empty() {
            return Ok(self.clone());
        }
        let limbs = more.values().map(|int| needed(&int.0)).max().unwrap_or(1);
        let finer = self.finer(digits);
        let limbs = limbs.max(finer.limbs) + 1;
        let mut sum = finer.with_limbs(limbs);
        for (&cell, int) in more {
            let cell = &mut sum.words[cell * limbs..(cell + 1) * limbs];
            add(cell, &int.0[..L.min(limbs)], sign(&int.0));
        }
        sum.settled()
    }

    pub fn digits(&self) -> u32 {
        self.digits
    }

    pub fn limbs(&self) -> usize {
        self.limbs
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub fn len(&self) -> usize {
        self.words.len() / self.limbs
    }

    pub fn cells(&self) -> impl ExactSizeIterator<Item = &[u64]> + '_ {
        self.words.chunks_exact(self.limbs)
    }

    fn cell(&self, i: usize) -> &[u64] {
        &self.words[i * self.limbs..(i + 1) * self.limbs]
    }

    /// Reduces limbs and digits to as few as possible, so that equal arrays are equal in memory.
    fn settled(mut self) -> Result<Self, Error> {
        let whole = |cell: &[u64]| Magnitude::of(cell).divide(PARTS) == 0;
        while self.digits > 0 && self.cells().all(whole) {
            for cell in self.words.chunks_exact_mut(self.limbs) {
                let mut number = Magnitude::of(cell);
                number.divide(PARTS);
                number.write(cell);
            }
            self.digits -= DIGITS;
        }
        let limbs = match self.limbs {
            1 => 1,
            _ => self.cells().map(needed).max().unwrap_or(1),
        };
        demand(limbs <= MOST - 4, TOO_LARGE)?;
        Ok(self.with_limbs(limbs))
    }

    fn with_limbs(self, limbs: usize) -> Self {
        if limbs == self.limbs {
            return self;
        }
        let mut words = Vec::with_capacity(self.len() * limbs);
        for cell in self.cells() {
            let above = sign(cell);
            words.extend((0..limbs).map(|i| cell.get(i).copied().unwrap_or(above)));
        }
        Integers { limbs, words, ..self }
    }

    /// Converts to finer units.
    fn finer(&self, digits: u32) -> Self {
        let mut finer = self.clone();
        while finer.digits < digits {
            finer = finer.multiplied(&Magnitude::of(&[PARTS, 0]), 1);
            finer.digits += DIGITS;
        }
        finer
    }

    fn multiplied(&self, factor: &Magnitude, spare: usize) -> Self {
        let mut product = self.clone().with_limbs(self.limbs + spare);
        for cell in product.words.chunks_exact_mut(product.limbs) {
            if cell.iter().any(|&limb| limb != 0) {
                Magnitude::of(cell).times(factor).write(cell);
            }
        }
        product
    }

    fn combined(&self, other: &Self, minus: bool) -> Result<Self, Error> {
        demand(self.shape == other.shape, "arrays must have one shape")?;
        if self.limbs == 1 && other.limbs == 1 && self.digits == other.digits {
            let both = self.words.iter().zip(&other.words);
            let each = |(&a, &b): (&u64, &u64)| match minus {
                false => (a as i64).checked_add(b as i64),
                true => (a as i64).checked_sub(b as i64),
            };
            if let Some(words) = both.map(|pair| each(pair).map(|sum| sum as u64)).collect() {
                let found = Integers { words, ..self.like() };
                return if self.digits == 0 { Ok(found) } else { found.settled() };
            }
        }
        let digits = self.digits.max(other.digits);
        let (mut sum, other) = (self.finer(digits), other.finer(digits));
        let limbs = sum.limbs.max(other.limbs) + 1;
        sum = sum.with_limbs(limbs);
        for (a, b) in sum.words.chunks_exact_mut(limbs).zip(other.cells()) {
            match minus {
                false => add(a, b, sign(b)),
                true => subtract(a, b, sign(b)),
            }
        }
        sum.settled()
    }

    /// An array without numbers, of the same shape, limbs and digits.
    fn like(&self) -> Self {
        Integers { shape: self.shape.clone(), words: vec![], ..*self }
    }

    pub fn plus(&self, other: &Self) -> Result<Self, Error> {
        self.combined(other, false)
    }

    pub fn minus(&self, other: &Self) -> Result<Self, Error> {
        self.combined(other, true)
    }

    /// Multiplies by a number of parts, and rounds down to parts. Also returns whether the product is exact.
    pub fn times(&self, factor: u128) -> Result<(Self, bool), Error> {
        let whole = factor.is_multiple_of(u128::from(PARTS));
        let parts = if whole { factor / u128::from(PARTS) } else { factor };
        let parts = Magnitude::of(&[parts as u64, (parts >> 64) as u64, 0]);
        let mut product = self.multiplied(&parts, 2);
        let (limbs, mut exact) = (product.limbs, true);
        if !whole && self.digits > 0 {
            for cell in product.words.chunks_exact_mut(limbs) {
                let mut number = Magnitude::of(cell);
                let rest = number.divide(PARTS) != 0;
                number.write(cell);
                if rest && number.negative {
                    subtract(cell, &[1], 0);
                }
                exact &= !rest;
            }
        } else if !whole {
            product.digits = DIGITS;
        }
        Ok((product.settled()?, exact))
    }

    /// Selects cells along an axis.
    pub fn take(&self, index: &[usize], axis: usize) -> Result<Self, Error> {
        let (outer, n, inner) = self.around(axis)?;
        demand(index.iter().all(|&i| i < n), "there is no such place to take from")?;
        let mut words = Vec::with_capacity(outer * index.len() * inner);
        for o in 0..outer {
            for &i in index {
                let from = (o * n + i) * inner;
                words.extend_from_slice(&self.words[from..from + inner]);
            }
        }
        let mut found = Integers { words, ..self.like() };
        found.shape[axis] = index.len();
        found.settled()
    }

    /// Moves cell i along an axis of the new length `size` to `index[i]`, and adds up cells that move to the same place.
    pub fn merge(&self, index: &[usize], size: usize, axis: usize) -> Result<Self, Error> {
        let (outer, n, inner) = self.around(axis)?;
        demand(
            index.len() == n && index.iter().all(|&i| i < size),
            "there must be a place for each of the cells",
        )?;
        if self.limbs == 1
            && let Some(words) = self.merge_short(index, size, (outer, n, inner))
        {
            let mut found = Integers { words, ..self.like() };
            found.shape[axis] = size;
            return if self.digits == 0 { Ok(found) } else { found.settled() };
        }
        let mut met = vec![false; size];
        let meet = index.iter().any(|&i| std::mem::replace(&mut met[i], true));
        let wide = self.clone().with_limbs(self.limbs + usize::from(meet));
        let (limbs, inner) = (wide.limbs, inner / self.limbs * wide.limbs);
        let mut words = vec![0; outer * size * inner];
        for o in 0..outer {
            for (i, &to) in index.iter().enumerate() {
                let from = &wide.words[(o * n + i) * inner..][..inner];
                let into = &mut words[(o * size + to) * inner..][..inner];
                for (a, b) in into.chunks_exact_mut(limbs).zip(from.chunks_exact(limbs)) {
                    add(a, b, 0);
                }
            }
        }
        let mut found = Integers { words, ..wide.like() };
        found.shape[axis] = size;
        found.settled()
    }

    /// [`Integers::merge`] for numbers of one limb; None if a sum needs more.
    fn merge_short(
        &self,
        index: &[usize],
        size: usize,
        (outer, n, inner): (usize, usize, usize),
    ) -> Option<Vec<u64>> {
        let mut words = vec![0; outer * size * inner];
        for o in 0..outer {
            for (i, &to) in index.iter().enumerate() {
                let from = &self.words[(o * n + i) * inner..][..inner];
                let into = &mut words[(o * size + to) * inner..][..inner];
                for (a, &b) in into.iter_mut().zip(from) {
                    *a = (*a as i64).checked_add(b as i64)? as u64;
                }
            }
        }
        Some(words)
    }

    /// The sizes before an axis, along it, and after it; the last in limbs.
    fn around(&self, axis: usize) -> Result<(usize, usize, usize), Error> {
        demand(axis < self.shape.len(), "there is no such axis")?;
        let outer = self.shape[..axis].iter().product();
        let inner: usize = self.shape[axis + 1..].iter().product();
        Ok((outer, self.shape[axis], inner * self.limbs))
    }

    /// Reshapes the array. With an index, cell i of the result is cell `index[i]`.
    pub fn arranged(&self, shape: Vec<usize>, index: Option<&[usize]>) -> Result<Self, Error> {
        let mut found = self.clone();
        if let Some(index) = index {
            let there = index.iter().all(|&i| i < self.len());
            demand(there, "there is no such cell")?;
            let cells = index.iter().flat_map(|&i| self.cell(i));
            found.words = cells.copied().collect();
        }
        demand(cells(&shape) == Some(found.len()), "the shape must have as many cells")?;
        found.shape = shape;
        if index.is_some() { found.settled() } else { Ok(found) }
    }

    /// Concatenates arrays along the first axis.
    pub fn joined(parts: &[&Integers]) -> Result<Self, Error> {
        let digits = parts.iter().map(|part| part.digits).max().unwrap_or(0);
        let finer: Vec<Integers> = parts.iter().map(|part| part.finer(digits)).collect();
        let limbs = finer.iter().map(|part| part.limbs).max().unwrap_or(1);
        let first = parts.first().ok_or(Error::malformed("nothing to join"))?;
        let mut shape = first.shape.clone();
        let alike =
            |part: &&Integers| !part.shape.is_empty() && part.shape[1..] == first.shape[1..];
        demand(
            !shape.is_empty() && parts.iter().all(alike),
            "arrays must be alike but along the first axis",
        )?;
        shape[0] = parts.iter().map(|part| part.shape[0]).sum();
        let words = finer.into_iter().flat_map(|part| part.with_limbs(limbs).words);
        Integers::new(shape, digits, limbs, words.collect())
    }

    /// Rounded to doubles, times a power of two.
    pub fn values(&self, exponent: i32) -> Vec<f64> {
        if self.limbs == 1 && self.digits == 0 {
            let one = |&word: &u64| scaled(word as i64 as f64, exponent);
            return self.words.iter().map(one).collect();
        }
        self.cells().map(|cell| value(cell, self.digits, exponent)).collect()
    }

    pub fn is_negative(&self) -> Vec<bool> {
        self.cells().map(is_negative).collect()
    }

    pub fn is_zero(&self) -> Vec<bool> {
        self.cells().map(|cell| cell.iter().all(|&limb| limb == 0)).collect()
    }
}

/// The number of cells of a shape; None if it is 2^48 or more.
pub fn cells(shape: &[usize]) -> Option<usize> {
    let count = |n: usize, &size: &usize| n.checked_mul(size);
    shape.iter().try_fold(1, count).filter(|&n| n < 1 << 48)
}

/// Pairs of columns of a block, (i, j), j <= i, i by i.
fn pairs(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..columns).flat_map(|i| (0..=i).map(move |j| (i, j)))
}

/// The sum of products of deviations from the mean for each pair of columns: `(n Σab - Σa Σb) / n`, exact and then rounded once
/// or twice.
///
/// `sums` is `[cell][the columns, then the pairs]`; the sums of pairs are in units of 2^-114.
pub fn deviations(n: &Integers, sums: &Integers, columns: usize) -> Result<Vec<f64>, Error> {
    let width = columns + columns * (columns + 1) / 2;
    demand(sums.len() == n.len() * width, "sums must go with the numbers of rows")?;
    let digits = n.digits.max(sums.digits);
    let (n, sums) = (n.finer(digits), sums.finer(digits));
    let mut found = Vec::with_capacity(n.len() * (width - columns));
    for (c, rows) in n.cells().enumerate() {
        let rows = Magnitude::of(rows);
        let (divisor, below) = rows.rounded(false);
        let first: Vec<Magnitude> =
            (0..columns).map(|i| Magnitude::of(sums.cell(c * width + i))).collect();
        for (at, (i, j)) in pairs(columns).enumerate() {
            if rows.len == 0 {
                found.push(0.0);
                continue;
            }
            let all = rows.times(&Magnitude::of(sums.cell(c * width + columns + at)));
            let gap = difference(&all, &first[i].times(&first[j]));
            let (x, above) = gap.rounded(false);
            let spread = scaled(x / divisor, above - below - 114);
            let parts = 10_f64.powi(-(digits as i32));
            found.push(gap.signed(spread * parts));
        }
    }
    Ok(found)
}

fn difference(a: &Magnitude, b: &Magnitude) -> Magnitude {
    let [mut room, mut other] = [[0; 2 * MOST]; 2];
    a.write(&mut room);
    b.write(&mut other);
    subtract(&mut room, &other, 0);
    Magnitude::of(&room)
}
