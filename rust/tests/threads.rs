//! What every kernel stands on: threads, and the checksum of files.

mod pools {
    use crate::threads::*;

    #[test]
    fn order_is_kept_and_the_first_error_wins() {
        assert_eq!(map(4, 5, |i| i * i), [0, 1, 4, 9, 16]);
        let error = try_map(4, 100, |i| if i % 10 == 7 { Err(i) } else { Ok(i) });
        assert_eq!(error, Err(7));
        let mut out = [0; 10];
        let found: Result<Vec<usize>, ()> = try_pieces(3, &mut out, 4, |i, piece| {
            piece.fill(i);
            Ok(piece.len())
        });
        assert_eq!(found, Ok(vec![4, 4, 2]));
        assert_eq!(out, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn small_work_stays_here() {
        assert_eq!(worth(8, 100), 1);
        assert_eq!(worth(8, 1 << 20), 8);
        assert_eq!(worth(0, 1 << 20), 1);
    }
}

mod checksum {
    use crate::checksum::checksum;

    const PIECE: usize = 1 << 20;

    fn some_bytes(n: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..n).map(next).collect()
    }

    #[test]
    fn threads_and_pieces_change_nothing() {
        for n in [0, 1, 63, 64, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 77] {
            let bytes = some_bytes(n);
            assert_eq!(checksum(&bytes, 1), checksum(&bytes, 4));
        }
    }

    #[test]
    fn every_flipped_bit_and_every_length_shows() {
        let bytes = some_bytes(200);
        let whole = checksum(&bytes, 1);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(checksum(&flipped, 1), whole);
        }
        let zeros = [0; 200];
        let mut seen: Vec<u64> = (0..=200).map(|n| checksum(&zeros[..n], 1)).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 201);
    }
}
