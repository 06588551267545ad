//! A fast checksum for files. It never changes, because files contain it:
//!
//! - Bytes are cut into *pieces* of 2^20 bytes; the last may be shorter.
//! - The sum of a piece: its bytes, filled up with zeros to a multiple of 64, are little-endian 64-bit words, which eight
//!   lanes take in turn. Lane k starts at `k + 1`; for each of its words `lane = step(lane, word)`, where `step(a, b)` is
//!   `(a ^ b) * FACTOR`, xored with its own upper half. From the piece's length in bytes on, `sum = step(sum, lane)` for each
//!   of the lanes.
//! - The checksum is the sum of a piece again, of the sums of all pieces as little-endian bytes.
//!
//! Every step is invertible, so that changing a single word, and hence flipping a bit, always changes the sum.

use crate::threads;

// All three are part of the format. A piece is in bytes; a lane takes words of 8 bytes.
const PIECE: usize = 1 << 20;
const LANES: usize = 8;
const FACTOR: u64 = 0x9fb2_1c65_1e98_df25;

/// Mixes two numbers into one; for each `b` it is invertible in `a`, and the other way round. The product is taken modulo
/// 2^64.
#[inline(always)]
fn step(a: u64, b: u64) -> u64 {
    let product = (a ^ b).wrapping_mul(FACTOR);
    product ^ product >> 32
}

/// Mixes the eight words of a block into the lanes, one into each. A lane is a sum of the words that it took; a word has 8
/// bytes.
#[inline(always)]
fn add_block(lanes: &mut [u64; LANES], block: &[u8; 8 * LANES]) {
    let (words, _) = block.as_chunks();
    for (lane, &word) in lanes.iter_mut().zip(words) {
        *lane = step(*lane, u64::from_le_bytes(word));
    }
}

/// The sum of a piece of bytes, of any length: its last block is filled up with zeros, and its length is part of the sum.
/// `lanes` are eight sums, each of every eighth word of 8 bytes.
fn sum_of_piece(piece: &[u8]) -> u64 {
    // Lane k starts at k + 1.
    let mut lanes = [1, 2, 3, 4, 5, 6, 7, 8];
    let (blocks, last_bytes) = piece.as_chunks();
    for block in blocks {
        add_block(&mut lanes, block);
    }
    if !last_bytes.is_empty() {
        let mut block = [0; 8 * LANES];
        block[..last_bytes.len()].copy_from_slice(last_bytes);
        add_block(&mut lanes, &block);
    }
    lanes.into_iter().fold(piece.len() as u64, step)
}

/// The checksum of these bytes, which does not depend on the number of threads (at most `threads`). It is the sum of the sums
/// of all pieces.
pub fn checksum(bytes: &[u8], threads: usize) -> u64 {
    let n_words = bytes.len() / 8;
    let threads = threads::worth(threads, n_words);
    let sums = threads::ranges(threads, bytes.len(), PIECE, |range| sum_of_piece(&bytes[range]));
    let sum_bytes: Vec<u8> = sums.into_iter().flat_map(u64::to_le_bytes).collect();
    sum_of_piece(&sum_bytes)
}
