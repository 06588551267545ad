//! Sixty-four bytes at a time: which of them are word characters, as bits.

/// The bytes of a block, as many as a machine word has bits.
pub const BLOCK: usize = 64;

/// A block and what its bytes are. Bit `i` of a mask is about byte `i`.
pub struct ClassifiedBlock {
    /// Word characters in ASCII: `[0-9A-Za-z_]`.
    pub word: u64,
    /// Bytes that may join two words in [`super::Pattern::Mail`].
    pub joiner: u64,
    /// Bytes that are not ASCII.
    pub beyond: u64,
    /// The bytes, with ASCII letters lower-cased on request.
    pub bytes: [u8; BLOCK],
}

/// Instructions for blocks. `classify` is inlined into the loop over a text, which is compiled for that machine.
pub trait Machine: Copy {
    /// Returns what the bytes of a block are, and the bytes, with ASCII letters lower-cased if `lowercase`.
    fn classify(self, block: &[u8; BLOCK], lowercase: bool) -> ClassifiedBlock;
}

/// Whether a byte is one of `-.@'+&`.
#[inline(always)]
pub fn is_joiner(byte: u8) -> bool {
    matches!(byte, b'-' | b'.' | b'@' | b'\'' | b'+' | b'&')
}

/// Instructions that any machine has.
#[derive(Clone, Copy)]
pub struct Plain;

impl Plain {
    /// A mask whose bit `i` is 1 if `holds` is true of byte `i` of the block. `flags` is 1 or 0 for each byte, and `eights`
    /// are the same flags, eight by eight.
    #[inline(always)]
    fn mask(block: &[u8; BLOCK], holds: impl Fn(u8) -> bool) -> u64 {
        let flags = block.map(|byte| u8::from(holds(byte))); // 1 or 0 for each byte
        let (eights, _) = flags.as_chunks::<8>();
        // Eight flags as the bits of a byte: the product moves the lowest bit of byte i to bit 56 + i.
        let bits =
            |&flags: &[u8; 8]| u64::from_le_bytes(flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        eights.iter().rev().fold(0, |mask, flags| mask << 8 | bits(flags))
    }
}

impl Machine for Plain {
    /// Returns what the bytes of a block are, with ASCII letters lower-cased if `lowercase`. Masks have a bit for each byte:
    /// `word` for ASCII word characters, `joiner` for signs that may join words, `beyond` for bytes beyond ASCII.
    #[inline(always)]
    fn classify(self, block: &[u8; BLOCK], lowercase: bool) -> ClassifiedBlock {
        let is_word = |byte: u8| {
            (byte | 0x20).wrapping_sub(b'a') < 26 || byte.wrapping_sub(b'0') < 10 || byte == b'_'
        };
        ClassifiedBlock {
            word: Plain::mask(block, is_word),
            joiner: Plain::mask(block, is_joiner),
            beyond: Plain::mask(block, |byte| byte >= 0x80),
            bytes: match lowercase {
                true => block.map(|byte| byte.to_ascii_lowercase()),
                false => *block,
            },
        }
    }
}

/// The vectors of AVX2, by pulp's safe names for its instructions.
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{BLOCK, ClassifiedBlock, Machine};
    use pulp::bytemuck::cast;
    use pulp::x86::V3;
    use std::arch::x86_64::__m256i;

    // Classes of ASCII such that a byte is in those that both its halves name.
    const DIGIT: u8 = 1;
    /// `A` to `O`, `a` to `o`
    const EARLY: u8 = 2;
    /// `P` to `Z`, `p` to `z`
    const LATE: u8 = 4;
    const UNDERSCORE: u8 = 8;
    /// `&` `'` `+` `-` `.`
    const SIGN: u8 = 16;
    const AT: u8 = 32;
    const WORD: u8 = DIGIT | EARLY | LATE | UNDERSCORE;
    const JOINER: u8 = SIGN | AT;

    const ANY: u8 = DIGIT | EARLY | LATE;
    /// The classes that the lower half of a byte allows, by that half.
    const LOW: [u8; 16] = [
        DIGIT | LATE | AT,
        ANY,
        ANY,
        ANY,
        ANY,
        ANY,
        ANY | SIGN,
        ANY | SIGN,
        ANY,
        ANY,
        EARLY | LATE,
        EARLY | SIGN,
        EARLY,
        EARLY | SIGN,
        EARLY | SIGN,
        EARLY | UNDERSCORE,
    ];
    /// The classes that the upper half of a byte allows, by that half.
    const HIGH: [u8; 16] = {
        let mut high = [0; 16];
        high[2] = SIGN;
        high[3] = DIGIT;
        high[4] = EARLY | AT;
        high[5] = LATE | UNDERSCORE;
        high[6] = EARLY;
        high[7] = LATE;
        high
    };

    /// Half a block: the masks of word characters, joiners and bytes beyond ASCII, and the bytes, with ASCII letters
    /// lower-cased if `lowercase`. `bytes` are the half; `machine` is a proof that the processor has AVX2. A mask has a bit
    /// for each byte.
    #[inline(always)]
    fn half(machine: V3, bytes: [u8; 32], lowercase: bool) -> (u32, u32, u32, [u8; 32]) {
        let (avx, avx2) = (machine.avx, machine.avx2);
        let repeat = |byte: u8| avx._mm256_set1_epi8(byte as i8);
        let twice = |table: [u8; 16]| -> __m256i { cast([table, table]) };
        let vector: __m256i = cast(bytes);
        // The upper four bits of each byte.
        let upper = avx2._mm256_and_si256(avx2._mm256_srli_epi16::<4>(vector), repeat(0x0F));
        // The class of each byte.
        let class = avx2._mm256_and_si256(
            // A byte beyond ASCII has no lower half here: the shuffle makes it zero.
            avx2._mm256_shuffle_epi8(twice(LOW), vector),
            avx2._mm256_shuffle_epi8(twice(HIGH), upper),
        );
        // A mask of the bytes that are of one of these classes.
        let mask = |classes: u8| {
            // All ones for each byte that is of none of them.
            let outside = avx2._mm256_cmpeq_epi8(
                avx2._mm256_and_si256(class, repeat(classes)),
                avx._mm256_setzero_si256(),
            );
            !avx2._mm256_movemask_epi8(outside) as u32
        };
        let lowered = match lowercase {
            true => {
                // All ones for each capital letter.
                let capital = avx2._mm256_and_si256(
                    avx2._mm256_cmpgt_epi8(vector, repeat(b'A' - 1)),
                    avx2._mm256_cmpgt_epi8(repeat(b'Z' + 1), vector),
                );
                avx2._mm256_or_si256(vector, avx2._mm256_and_si256(capital, repeat(0x20)))
            }
            false => vector,
        };
        let beyond = avx2._mm256_movemask_epi8(vector) as u32;
        (mask(WORD), mask(JOINER), beyond, cast(lowered))
    }

    impl Machine for V3 {
        /// Returns what the bytes of a block are, half by half, with ASCII letters lower-cased if `lowercase`. Masks have a
        /// bit for each byte: `word` for ASCII word characters, `joiner` for signs that may join words, `beyond` for bytes
        /// beyond ASCII.
        #[inline(always)]
        fn classify(self, block: &[u8; BLOCK], lowercase: bool) -> ClassifiedBlock {
            let [first, second]: [[u8; 32]; 2] = cast(*block);
            let first = half(self, first, lowercase);
            let second = half(self, second, lowercase);
            // The mask of the block, given those of its halves: word characters, joiners and bytes beyond ASCII.
            let both = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
            ClassifiedBlock {
                word: both(first.0, second.0),
                joiner: both(first.1, second.1),
                beyond: both(first.2, second.2),
                bytes: cast([first.3, second.3]),
            }
        }
    }
}

/// A loop over blocks. `run` must be marked `#[inline(always)]`, and so must be what it calls.
pub trait Job {
    type Output;
    /// Does the job with the machine's instructions.
    fn run<M: Machine>(self, machine: M) -> Self::Output;
}

/// Runs a job with the widest instructions at hand, which give the same answer as all others. `On` is a job and the machine,
/// a proof that the processor has AVX2. Returns what the job returns.
#[inline(always)]
pub fn run<J: Job>(job: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(machine) = pulp::x86::V3::try_new() {
        /// A job, and the machine that does it.
        struct On<J>(J, pulp::x86::V3);
        impl<J: Job> pulp::NullaryFnOnce for On<J> {
            type Output = J::Output;
            #[inline(always)]
            fn call(self) -> J::Output {
                self.0.run(self.1)
            }
        }
        return machine.vectorize(On(job, machine));
    }
    job.run(Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks to classify, and whether they are lower-cased.
    struct Look(Vec<[u8; BLOCK]>, bool);

    impl Job for Look {
        /// The masks of word characters, joiners and bytes beyond ASCII of each block, and its bytes.
        type Output = Vec<(u64, u64, u64, [u8; BLOCK])>;
        #[inline(always)]
        fn run<M: Machine>(self, machine: M) -> Self::Output {
            let look = |block| {
                let block = machine.classify(block, self.1);
                (block.word, block.joiner, block.beyond, block.bytes)
            };
            self.0.iter().map(look).collect()
        }
    }

    #[test]
    fn every_byte_at_every_place() {
        let blocks = || {
            (0..=255).map(|byte: u8| std::array::from_fn(|i| (usize::from(byte) + 37 * i) as u8))
        };
        for lowercase in [false, true] {
            let plain = Look(blocks().collect(), lowercase).run(Plain);
            let wide = run(Look(blocks().collect(), lowercase));
            assert_eq!(plain, wide);
            for (block, (word, joiner, beyond, bytes)) in blocks().zip(plain) {
                for (i, byte) in block.into_iter().enumerate() {
                    let bit = |mask: u64| mask >> i & 1 == 1;
                    assert_eq!(bit(word), byte.is_ascii_alphanumeric() || byte == b'_');
                    assert_eq!(bit(joiner), b"-.@'+&".contains(&byte));
                    assert_eq!(bit(beyond), !byte.is_ascii());
                    let lower = byte.to_ascii_lowercase();
                    assert_eq!(bytes[i], if lowercase { lower } else { byte });
                }
            }
        }
    }
}
