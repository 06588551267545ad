//! Codes of records and strings.

use crate::encode::*;

#[test]
fn codes_follow_first_occurrence() {
    let found = encode_records(b"bbaacbba", 4, 2, 1).unwrap();
    assert_eq!(found.codes, [0, 1, 2, 3]);
    let found = encode_records(b"bbaabbaa", 8, 1, 1).unwrap();
    assert_eq!(found.codes, [0, 0, 1, 1, 0, 0, 1, 1]);
    assert_eq!((found.first, found.counts), (vec![0, 2], vec![4, 4]));
    assert_eq!(encode_records(b"", 3, 0, 1).unwrap().codes, [0, 0, 0]);
    assert_eq!(encode_records(b"", 0, 3, 1).unwrap(), Encoded::default());
    assert!(encode_records(b"abc", 2, 2, 1).is_err());
}

#[test]
fn codes_as_records() {
    for width in [1, 2, 3, 4, 8] {
        let records: Vec<u8> = (0..5 * width as u8).collect();
        let codes: Vec<i32> = (0..70_000).map(|i| i * 3 % 5).collect();
        let expected: Vec<u8> =
            codes.iter().flat_map(|&c| records[c as usize * width..][..width].to_vec()).collect();
        for threads in [1, 3] {
            assert_eq!(decode_records(&records, width, &codes, threads), Ok(expected.clone()));
        }
        assert!(decode_records(&records, width, &[0, 5], 1).is_err());
        assert!(decode_records(&records, width, &[-1], 1).is_err());
    }
    assert_eq!(decode_records(&[], 0, &[0, 0], 1), Ok(vec![]));
}

#[test]
fn every_width_and_thread_count_agrees() {
    for width in 1..=9 {
        let n = 70_000;
        let records: Vec<u8> = (0..n * width)
            .map(|i| if i % width == 0 { (i / width * 31 % 251) as u8 } else { (i % 2) as u8 })
            .collect();
        let one = encode_records(&records, n, width, 1).unwrap();
        assert_eq!(one, encode_records(&records, n, width, 3).unwrap());
        for row in [0, 1, 250, 69_999] {
            let first = one.first[one.codes[row] as usize] as usize;
            assert_eq!(
                records[row * width..(row + 1) * width],
                records[first * width..(first + 1) * width]
            );
        }
    }
}

#[test]
fn many_distinct_keys_grow_the_index() {
    let n = 10_000_u64;
    let records: Vec<u8> = (0..2 * n).flat_map(|i| ((i % n) << 40).to_le_bytes()).collect();
    let found = encode_records(&records, 2 * n as usize, 8, 1).unwrap();
    assert_eq!(found.first, (0..n as i64).collect::<Vec<_>>());
    assert!(found.counts.iter().all(|&count| count == 2));
}

#[test]
fn strings_missing_and_stripped() {
    let data = b"a bb a\x0b\t";
    let offsets = [0_i32, 1, 2, 5, 8];
    let valid = [0b1101_0000_u8];
    let strings = Strings::new(Offsets::Narrow(&offsets), data, Some((&valid, 4))).unwrap();
    assert_eq!(encode_strings(&strings, false, 1).unwrap().codes, [0, -1, 1, 2]);
    let strings = Strings::new(Offsets::Narrow(&offsets), data, None).unwrap();
    let found = encode_strings(&strings, true, 1).unwrap();
    assert_eq!(found.codes, [0, 1, 2, 0]);
    assert_eq!(found.first, [0, 1, 2]);
}

#[test]
fn wrong_offsets_are_refused() {
    for offsets in [vec![], vec![0_i64, 9], vec![2, 1], vec![-1, 1]] {
        assert!(Strings::new(Offsets::Wide(&offsets), b"abc", None).is_err());
    }
    assert!(Strings::new(Offsets::Wide(&[0, 1, 1]), b"abc", Some((&[255], 7))).is_err());
}
