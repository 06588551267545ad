//! Tests of kernels through what they offer each other; those that look inside stand beside the code. One binary has all of them.

mod columns;
mod encode;
mod integers;
mod score;
mod text;
mod threads;
mod utf8;
mod words;
