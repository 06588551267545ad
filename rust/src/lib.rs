//! The loops over rows: arrays in, arrays out, no state.
//!
//! One file per kernel; none of them knows Python, a model or a prior. `python` is the border, and its files alone do.
//! Results have the same bits whatever the number of threads: rows are divided into pieces that depend on the shapes alone.

// With Python, unused code is an error; without it, only the tests use the kernels.
#![cfg_attr(not(feature = "python"), allow(dead_code, unused_imports))]

mod bins;
mod checksum;
mod classes;
mod codes;
mod columns;
mod encode;
mod error;
mod exponential;
mod fields;
mod flags;
mod hash_table;
mod integers;
mod leading;
mod logarithm;
mod moments;
mod one_less;
mod products;
mod scale;
mod score;
mod simd;
mod text;
mod threads;
mod trees;
mod weighing;
mod words;
mod zeros;

#[cfg(feature = "python")]
mod python;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod tests;

#[cfg(feature = "python")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;
