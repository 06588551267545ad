//! Loops compiled for wider vectors, used where the machine has them.

use pulp::{Arch, Simd, WithSimd};

/// A closure that pulp runs, compiled for the widest vectors of the machine.
struct Dispatched<F> {
    work: F,
}

impl<R, F: FnOnce() -> R> WithSimd for Dispatched<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> R {
        (self.work)()
    }
}

/// The result of `work`, compiled for the widest vectors of the machine; see [`wide`].
#[inline(always)]
pub(crate) fn dispatch<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(Dispatched { work })
}

/// Runs an expression that is compiled for the widest vectors of the machine. Functions that it calls must be
/// `#[inline(always)]`.
///
/// The bits of the result do not depend on the machine: elements are computed independently, and nothing is fused or reordered.
macro_rules! wide {
    ($work:expr) => {
        $crate::simd::dispatch(
            #[inline(always)]
            move || $work,
        )
    };
}
pub(crate) use wide;

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_a_call() {
        let (a, b) = (1.0, 2.0);
        assert_eq!(wide!(a + b), 3.0);
    }
}
