//! The loops over rows: arrays in, arrays out, no state.
//!
//! One file per kernel; none of them knows Python, a model or a prior. `python` is the border, and its files alone do.
//! Whatever the number of threads, the answers are the same bits: rows are cut into pieces that depend on the shapes alone.

pub mod bins;
pub mod checksum;
pub mod classes;
pub mod codes;
pub mod columns;
pub mod encode;
pub mod error;
mod exponential;
pub mod fields;
pub mod flags;
pub mod integers;
pub mod leading;
mod logarithm;
pub mod moments;
pub mod numbering;
pub mod one_less;
pub mod products;
pub mod scale;
pub mod score;
pub mod simd;
pub mod text;
pub mod threads;
pub mod trees;
pub mod weighing;
pub mod words;
pub mod zeros;

#[cfg(feature = "python")]
mod python;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod tests;

#[cfg(feature = "python")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;
