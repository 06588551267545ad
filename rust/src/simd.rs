//! Wider instructions where the machine has them.

use pulp::{Arch, Simd, WithSimd};

/// A loop with its arguments. `run` must be marked `#[inline(always)]`, and so must be what it calls, to profit.
pub trait Loop {
    type Output;
    fn run(self) -> Self::Output;
}

struct Dispatched<L>(L);

impl<L: Loop> WithSimd for Dispatched<L> {
    type Output = L::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> L::Output {
        self.0.run()
    }
}

/// Runs a loop, compiled for the widest vectors at hand.
///
/// The bits of the answer do not depend on the machine: elements are computed independently, and nothing is fused or reordered.
#[inline(always)]
pub fn wide<L: Loop>(work: L) -> L::Output {
    Arch::new().dispatch(Dispatched(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Sum(f64, f64);

    impl Loop for Sum {
        type Output = f64;
        #[inline(always)]
        fn run(self) -> f64 {
            self.0 + self.1
        }
    }

    #[test]
    fn it_is_a_call() {
        assert_eq!(wide(Sum(1.0, 2.0)), 3.0);
    }
}
