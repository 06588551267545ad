//! The hash table of the crate: open addressing with linear probing, for entries that can be copied; and the numbering of keys.

/// A value with a hash.
pub trait Key: Copy + Eq + Send + Sync {
    /// A number of which all bits look random; equal keys have equal hashes.
    fn hash(self) -> u64;
}

/// The upper half of the product of two numbers, of 128 bits, xor the lower half: every bit of the arguments affects all bits.
#[inline(always)]
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Odd numbers whose bits look random, with which keys are mixed: 2^64 divided by the golden ratio, and another.
pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
pub(crate) const STEP: u64 = 0xd6e8_feb8_6659_fd93;

impl Key for u64 {
    /// The hash of the number: the number mixed with constants, so that all bits look random.
    #[inline(always)]
    fn hash(self) -> u64 {
        mix(self ^ SEED, STEP)
    }
}

impl Key for &[u8] {
    /// The hash of some bytes: the length in bytes and then eight bytes at a time, mixed with constants, so that all bits look
    /// random. `state` is the hash so far.
    #[inline(always)]
    fn hash(self) -> u64 {
        let mut state = mix(self.len() as u64 ^ SEED, STEP);
        let blocks = self.chunks_exact(8);
        let last_block = blocks.remainder(); // the bytes after the blocks of eight
        for block in blocks {
            state = mix(state ^ little_endian(block), STEP) ^ SEED;
        }
        mix(state ^ little_endian(last_block), STEP)
    }
}

/// Up to eight bytes as a number, the least significant byte first.
#[inline(always)]
fn little_endian(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(eight_bytes) => u64::from_le_bytes(eight_bytes),
        Err(_) => bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)),
    }
}

/// An entry of a [`HashTable`]. The default, all zeros, is an empty slot.
pub trait Entry: Copy + Default {
    /// Whether the slot is empty.
    fn is_empty(&self) -> bool;
    /// The hash of the entry's key, whose low bits say in which slot it belongs.
    fn hash(&self) -> u64;
}

/// A set of entries, each in the slot where its hash belongs, or in the next one that is free.
#[derive(Clone, Debug)]
pub struct HashTable<E> {
    /// A power of two of slots; see [`fits`] for how many may be taken.
    slots: Vec<E>,
    /// How many slots are taken.
    len: usize,
}

/// A power of two. Counting damped texts, each with a table of its own, took 276, 290 and 268 ms with 4, 16 and 64: equally long
/// within the noise.
const FEWEST_SLOTS: usize = 16;

/// Whether so many entries leave enough of the slots empty. With at most 4, 5 or 6 in eight taken, encoding 400,000 strings, most
/// of them distinct, took 71, 76 and 66 ms. With four times the slots at half full, 600,000 distinct codes took 73 ms instead of
/// 50.
fn fits(entries: usize, slots: usize) -> bool {
    8 * entries <= 5 * slots
}

impl<E: Entry> HashTable<E> {
    /// A table that need not grow for so many entries.
    pub fn with_room(entries: usize) -> Self {
        let mut table = HashTable { slots: vec![], len: 0 };
        table.clear(entries);
        table
    }

    /// Removes all entries, and makes room for `entries` of them in the same memory: the slots become a power of two.
    pub fn clear(&mut self, entries: usize) {
        let mut slots = FEWEST_SLOTS; // how many
        while !fits(entries, slots) {
            slots *= 2;
        }
        self.slots.clear();
        self.slots.resize(slots, E::default());
        self.len = 0;
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// The entry in the slot where an entry of this hash belongs, whatever it is; empty if the slot is. The low bits of the
    /// hash are the number of the slot.
    #[inline(always)]
    pub fn peek(&self, hash: u64) -> E {
        self.slots[hash as usize & (self.slots.len() - 1)]
    }

    /// Loads the slots where these hashes belong into the cache. No load waits for another, so memory answers all at once.
    #[inline(always)]
    pub fn load(&self, hashes: impl Iterator<Item = u64>) {
        // Whether the number of empty slots is odd: something that depends on all slots.
        let parity = hashes.fold(false, |parity, hash| parity ^ self.peek(hash).is_empty());
        std::hint::black_box(parity);
    }

    /// The number of the slot of the entry with this hash that `is_match` accepts, or of the empty slot where it would be.
    /// Looks at the slot where the hash belongs, and then at one slot after the other.
    #[inline(always)]
    fn slot(&self, hash: u64, is_match: impl Fn(E) -> bool) -> usize {
        let mask = self.slots.len() - 1; // the bits of a hash that are the number of a slot
        let mut at = hash as usize & mask; // number of a slot
        while !self.slots[at].is_empty() && !is_match(self.slots[at]) {
            at = (at + 1) & mask;
        }
        at
    }

    /// The entry with this hash that `is_match` accepts, or an empty one.
    #[inline(always)]
    pub fn find(&self, hash: u64, is_match: impl Fn(E) -> bool) -> E {
        self.slots[self.slot(hash, is_match)]
    }

    /// The entry with this hash that `is_match` accepts; if there is none, the entry `new()` is inserted and returned.
    #[inline(always)]
    pub fn find_or_insert(
        &mut self,
        hash: u64,
        is_match: impl Fn(E) -> bool,
        new: impl FnOnce() -> E,
    ) -> E {
        let at = self.slot(hash, is_match); // number of the entry's slot
        if self.slots[at].is_empty() {
            let entry = new();
            self.slots[at] = entry;
            self.len += 1;
            // There is always room for one more.
            if !fits(self.len + 1, self.slots.len()) {
                self.grow();
            }
            return entry;
        }
        self.slots[at]
    }

    /// Inserts the entry `new`, whose key no entry has.
    #[inline(always)]
    pub fn insert(&mut self, new: E) {
        self.find_or_insert(new.hash(), |_| false, || new);
    }

    /// Replaces the entry with the hash of `new` that `is_match` accepts by `new`.
    #[inline(always)]
    pub fn replace(&mut self, new: E, is_match: impl Fn(E) -> bool) {
        let at = self.slot(new.hash(), is_match);
        self.slots[at] = new;
    }

    /// All entries, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = E> {
        self.slots.iter().copied().filter(|entry| !entry.is_empty())
    }

    /// Doubles the slots and puts each entry where it belongs now. Neighbours stay neighbours, in two runs of slots, so this is
    /// quick.
    #[cold]
    fn grow(&mut self) {
        let mut larger = HashTable { slots: vec![], len: self.len };
        // Filled, and not allocated as zeros: pages that are read before they are written to cost two page faults.
        larger.slots.resize(2 * self.slots.len(), E::default());
        for entry in self.iter() {
            let at = larger.slot(entry.hash(), |_| false);
            larger.slots[at] = entry;
        }
        *self = larger;
    }
}

/// The upper half of a key's hash, and its number + 1.
#[derive(Clone, Copy, Debug, Default)]
struct Numbered {
    /// The upper half of the key's hash.
    hash: u32,
    /// The key's number + 1; 0 if the slot is empty.
    number_plus_one: u32,
}

impl Entry for Numbered {
    /// Whether no key has the slot.
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.number_plus_one == 0
    }

    /// The upper half of the key's hash, which is kept.
    #[inline(always)]
    fn hash(&self) -> u64 {
        u64::from(self.hash)
    }
}

/// The numbers of keys in the order in which they first come, by their hashes. The keys stay with the caller, who compares them.
#[derive(Clone, Debug)]
pub struct Numbering(HashTable<Numbered>);

impl Default for Numbering {
    /// A numbering with room for 20 keys.
    fn default() -> Self {
        Numbering::with_room(20)
    }
}

impl Numbering {
    /// A numbering that need not grow for so many keys.
    pub fn with_room(keys: usize) -> Self {
        Numbering(HashTable::with_room(keys))
    }

    /// Removes all keys, and makes room for so many.
    pub fn clear(&mut self, keys: usize) {
        self.0.clear(keys);
    }

    /// The number of the key with this hash for which `is_equal` is true, which is called with the number of a key that may be
    /// it; the next number for a new key.
    #[inline(always)]
    pub fn number(&mut self, hash: u64, is_equal: impl Fn(usize) -> bool) -> usize {
        let hash = (hash >> 32) as u32; // the upper half, which entries keep
        let number_plus_one = self.0.len() as u32 + 1; // of a new key
        let is_match =
            |entry: Numbered| entry.hash == hash && is_equal(entry.number_plus_one as usize - 1);
        let new = || Numbered { hash, number_plus_one };
        self.0.find_or_insert(u64::from(hash), is_match, new).number_plus_one as usize - 1
    }

    /// Whether there is a key with this hash for which `is_equal` is true, which is called with the number of a key that may be
    /// it.
    #[inline(always)]
    pub fn has(&self, hash: u64, is_equal: impl Fn(usize) -> bool) -> bool {
        let hash = (hash >> 32) as u32; // the upper half, which entries keep
        let is_match =
            |entry: Numbered| entry.hash == hash && is_equal(entry.number_plus_one as usize - 1);
        !self.0.find(u64::from(hash), is_match).is_empty()
    }
}
