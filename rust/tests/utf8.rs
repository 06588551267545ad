//! Characters from bytes and back.

use crate::text::utf8::{Character, first, last, push};

#[test]
fn every_code_point_there_and_back() {
    for code in 0..0x11_0000 {
        let mut bytes = vec![];
        push(&mut bytes, code);
        let width = bytes.len();
        assert_eq!(first(&bytes), Character { code, width });
        assert_eq!(last(&bytes), Character { code, width });
        if let Some(char) = char::from_u32(code) {
            assert_eq!(bytes, char.to_string().as_bytes());
        }
    }
}

/// All sequences of up to four bytes that matter: each byte at an edge of a range.
fn edges(mut check: impl FnMut(&[u8])) {
    let edge = [
        0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED,
        0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF,
    ];
    for a in edge {
        for b in edge {
            for c in edge {
                for d in edge {
                    check(&[a, b, c, d]);
                }
            }
        }
    }
}

#[test]
fn what_is_well_formed_agrees_with_std_but_for_surrogates() {
    edges(|bytes| {
        let found = first(bytes);
        let std = (1..=4).find_map(|n| std::str::from_utf8(&bytes[..n]).ok());
        match std.and_then(|text| text.chars().next()) {
            Some(char) => assert_eq!(found.code, char as u32, "{bytes:x?}"),
            None if found.width == 1 => assert_eq!(found.code, 0xDC00 + u32::from(bytes[0])),
            None => assert!((0xD800..0xE000).contains(&found.code), "{bytes:x?}"),
        }
    });
}

#[test]
fn the_last_one_is_where_the_first_ones_end() {
    edges(|bytes| {
        let mut at = 0;
        while at < bytes.len() {
            let found = first(&bytes[at..]);
            at += found.width;
            assert_eq!(last(&bytes[..at]), found, "{bytes:x?}");
        }
    });
}
