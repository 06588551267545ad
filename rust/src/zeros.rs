//! Finds fields of a text file that are codes although they look like numbers: 00130, 0x1F.

use crate::simd::wide;

/// Bytes that are searched before the loop may stop.
const PIECE: usize = 1 << 13;

/// Whether a field may begin with a zero, or a sign and a zero, that is followed by a digit or an x. There may be false
/// positives.
pub fn any_leading_zero(data: &[u8]) -> bool {
    let ahead = |at: usize, back: usize| at.checked_sub(back).map_or(b',', |at| data[at]);
    let first = |at: usize| begins(ahead(at, 2), ahead(at, 1), data[at], data[at + 1]);
    if (0..data.len().saturating_sub(1).min(2)).any(first) {
        return true;
    }
    let mut at = 0;
    while at + 3 < data.len() {
        let piece = &data[at..data.len().min(at + PIECE + 3)];
        if wide!(any_in(piece)) {
            return true;
        }
        at += PIECE;
    }
    false
}

#[inline(always)]
fn any_in(piece: &[u8]) -> bool {
    let n = piece.len() - 3;
    let (two, one, own, next) = (&piece[..n], &piece[1..=n], &piece[2..n + 2], &piece[3..]);
    let mut found = false;
    for i in 0..n {
        found |= begins(two[i], one[i], own[i], next[i]);
    }
    found
}

/// Whether the byte `own` is the first zero of such a code: `two` and `one` are the bytes before it, `next` is the one after it.
#[inline(always)]
fn begins(two: u8, one: u8, own: u8, next: u8) -> bool {
    let sign = (one == b'+') | (one == b'-');
    let alone = !within(one) | (sign & !within(two));
    (own == b'0') & (digit(next) | (next | 32 == b'x')) & alone
}

/// Whether a byte may occur within a number, a word, a date or a time.
#[inline(always)]
fn within(byte: u8) -> bool {
    let letter = (byte | 32).wrapping_sub(b'a') < 26;
    // The bytes from + to : except the comma are signs, the point, the slash, digits and the colon.
    letter | (byte == b'_') | ((byte.wrapping_sub(b'+') < 16) & (byte != b','))
}

#[inline(always)]
fn digit(byte: u8) -> bool {
    byte.wrapping_sub(b'0') < 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_wherever_they_begin() {
        for code in ["00130", "0x1F", "0X1", "+007", "-01"] {
            for before in ["", "1,", "a;", "10\n", " ", "\"", "ü"] {
                for n in [0, 1, 5, PIECE - 3, PIECE - 2, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE] {
                    let text = format!("{}{before}{code}{}", "1,".repeat(n), "\n2".repeat(n % 7));
                    assert!(
                        any_leading_zero(text.as_bytes()),
                        "{code} after {before:?} and {n} fields"
                    );
                }
            }
        }
    }

    #[test]
    fn zeros_within_numbers_words_and_dates_are_none() {
        for text in [
            "0",
            "0,",
            "0.05,10",
            "1e-05,2",
            "2001-01-02,10:05",
            "a0,b01,x.05",
            "3_001/02",
            "0,0\n0",
            "-0,+0",
        ] {
            assert!(!any_leading_zero(text.as_bytes()), "{text}");
            assert!(!any_leading_zero(format!("{text}\n").repeat(5000).as_bytes()), "{text}");
        }
        assert!(!any_leading_zero(b""));
    }
}
