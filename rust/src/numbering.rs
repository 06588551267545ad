//! The one hash table: it numbers keys in the order in which they first come.

/// What can be numbered: integers, and slices of bytes.
pub trait Key: Copy + Eq + Send + Sync {
    fn hash(self) -> u64;
}

/// The two halves of a wide product, mixed: every bit of the input reaches every part of the result.
#[inline(always)]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
pub(crate) const STEP: u64 = 0xd6e8_feb8_6659_fd93;

impl Key for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        mix(self ^ SEED, STEP)
    }
}

impl Key for &[u8] {
    #[inline(always)]
    fn hash(self) -> u64 {
        let mut state = mix(self.len() as u64 ^ SEED, STEP);
        let words = self.chunks_exact(8);
        let rest = words.remainder();
        for word in words {
            state = mix(state ^ little_endian(word), STEP) ^ SEED;
        }
        mix(state ^ little_endian(rest), STEP)
    }
}

/// Up to eight bytes as a number.
#[inline(always)]
fn little_endian(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(word) => u64::from_le_bytes(word),
        Err(_) => bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

/// Open addressing: the slot at which to stop, from the one on where a hash belongs. There are a power of two of them.
#[inline(always)]
pub fn probe<S: Copy>(slots: &[S], hash: u64, stops: impl Fn(S) -> bool) -> usize {
    let mask = slots.len() - 1;
    let mut at = hash as usize & mask;
    while !stops(slots[at]) {
        at = (at + 1) & mask;
    }
    at
}

/// The numbers of keys in the order in which they first come, by their hashes: a table with open addressing. The keys stay with the
/// caller, who compares them.
#[derive(Debug)]
pub struct Numbering {
    /// (upper half of the hash, number + 1); 0 is an empty slot. At most half are taken.
    slots: Vec<(u32, u32)>,
    /// By number, to place it anew when the slots grow.
    hashes: Vec<u64>,
}

impl Default for Numbering {
    fn default() -> Self {
        Numbering::with_room(32)
    }
}

impl Numbering {
    /// One that need not grow for so many keys.
    pub fn with_room(keys: usize) -> Self {
        Numbering { slots: vec![(0, 0); (2 * keys).next_power_of_two()], hashes: vec![] }
    }

    pub fn clear(&mut self) {
        self.slots.fill((0, 0));
        self.hashes.clear();
    }

    /// The number of the key with this hash: that of an equal one, or the next new one.
    #[inline(always)]
    pub fn number(&mut self, hash: u64, is_equal: impl Fn(usize) -> bool) -> usize {
        let tag = (hash >> 32) as u32;
        let at = probe(&self.slots, hash, |(other, code)| {
            code == 0 || other == tag && is_equal(code as usize - 1)
        });
        match self.slots[at].1 {
            0 => self.insert(at, hash),
            code => code as usize - 1,
        }
    }

    #[cold]
    fn insert(&mut self, at: usize, hash: u64) -> usize {
        self.hashes.push(hash);
        self.slots[at] = ((hash >> 32) as u32, self.hashes.len() as u32);
        if 2 * self.hashes.len() > self.slots.len() {
            self.grow();
        }
        self.hashes.len() - 1
    }

    fn grow(&mut self) {
        let size = 4 * self.slots.len();
        self.slots = vec![(0, 0); size];
        for (code, &hash) in self.hashes.iter().enumerate() {
            let at = probe(&self.slots, hash, |(_, code)| code == 0);
            self.slots[at] = ((hash >> 32) as u32, code as u32 + 1);
        }
    }
}
