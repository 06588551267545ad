//! Parses plain lines of delimited text into columns: without quotation marks, with as many fields as columns, and with fields of
//! their column's kind. All other text is left to a complete parser.

use crate::encode::{Dictionary, strip_space};
use std::str;

/// The kind of a column's fields.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Real,
    Whole,
    Word,
}

/// A parsed column, one entry per line.
#[derive(Debug, PartialEq)]
pub enum Column {
    /// Numbers, NaN where missing.
    Real(Vec<f64>),
    Whole(Vec<i64>),
    /// The number of each line's word; and where each new word first occurs in the text, its first byte and its end. Words that
    /// mean a missing value are numbered first, then known words, then new ones in the order of their occurrence.
    Word(Vec<i32>, Vec<[i64; 2]>),
}

/// Parses the lines of `data`, whose fields are divided by `delimiter`, into a column for each of `kinds`; None if they are
/// not plain: if a line has another number of fields, a field is not of its kind, or a word contains `quote`. A field that is
/// one of `missing`, perhaps with a blank before or after it, is a missing number. `known` has the known words of each
/// column, each on a line; they are plain. `data` is the text as bytes. Columns are `[line]`.
pub fn parse<'a>(
    data: &'a [u8],
    delimiter: u8,
    quote: Option<u8>,
    kinds: &[Kind],
    missing: &[&'a [u8]],
    known: &[&'a [u8]],
) -> Option<Vec<Column>> {
    // A byte that no word may contain; one that a number may contain.
    let is_forbidden = |byte: &u8| matches!(byte, b'\r' | b'\n') || Some(*byte) == quote;
    let in_number =
        |byte: &u8| byte.is_ascii_alphanumeric() || *byte <= b' ' || b"+-.".contains(byte);
    // Whether a text that means a missing value may be a number, or has a byte that no word may contain.
    let may_be_read_otherwise =
        |text: &&[u8]| text.iter().any(|byte| byte.is_ascii_digit() || is_forbidden(byte));
    if quote.is_some_and(|quote| in_number(&quote)) || missing.iter().any(may_be_read_otherwise) {
        return None;
    }
    let first_line_length = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let line_end: &[u8] = if data[..first_line_length].ends_with(b"\r") { b"\r\n" } else { b"\n" };
    // The bytes that end a field: the delimiter, and the first one of a line end.
    let marks = Marks { delimiter, line: line_end[0] };
    let likely_lines = data.len() / first_line_length.max(1); // the number of lines, roughly
    // The fields of each column that were read.
    let mut columns: Vec<_> = kinds.iter().map(|&kind| Fields::new(kind, likely_lines)).collect();
    for (fields, known_words) in columns.iter_mut().zip(known) {
        fields.number_words(missing, known_words);
    }
    // The next byte to read: the beginning of a line, of a field, and at last the end of the line. Empty lines are passed over.
    let mut at = 0;
    while at < data.len() {
        if data[at] != marks.line {
            for (n_later_fields, fields) in (0..kinds.len()).rev().zip(&mut columns) {
                let end = fields.take(data, at, marks, missing)?; // the byte that ends the field
                let ends_line = data.get(end).is_none_or(|&byte| byte == marks.line);
                if ends_line != (n_later_fields == 0) {
                    return None;
                }
                at = end + 1;
            }
            at -= 1;
        }
        if !data.get(at..)?.starts_with(line_end) && at < data.len() {
            return None;
        }
        at += line_end.len();
    }
    columns
        .into_iter()
        .zip(known)
        .map(|(fields, known_words)| {
            fields.finished(missing.len() + lines(known_words).count(), is_forbidden)
        })
        .collect()
}

/// The lines of a text whose lines all end in a newline.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"))
}

/// The bytes that end a field: the delimiter, and the first byte of a line end.
#[derive(Clone, Copy)]
struct Marks {
    delimiter: u8,
    line: u8,
}

impl Marks {
    /// Returns a mask with the high bit of every byte among these eight that ends a field.
    #[inline(always)]
    fn among(self, eight: u64) -> u64 {
        marks(eight, self.delimiter) | marks(eight, self.line)
    }
}

/// Eight bytes of 1, and eight of 127: all bits but the high one of each byte.
const ONES: u64 = u64::MAX / 255;
const LOW: u64 = ONES * 127;

/// Returns a mask with the high bit of every byte among these eight that is equal to `byte`. The eight bytes are those of the
/// number.
#[inline(always)]
fn marks(eight: u64, byte: u8) -> u64 {
    let difference = eight ^ (ONES * u64::from(byte)); // a byte is 0 where they are equal
    !(((difference & LOW) + LOW) | difference | LOW)
}

/// The index of the byte, one of `marks`, that ends the field that begins at byte `at`; the length of the data if none does.
/// `data` is a text as bytes; a field ends with `marks.delimiter` or, at the end of a line, with `marks.line`.
#[inline(always)]
fn end_of(data: &[u8], mut at: usize, marks: Marks) -> usize {
    while let Some(&eight) = data.get(at..).and_then(<[u8]>::first_chunk) {
        let eight = u64::from_le_bytes(eight);
        let high_bits = marks.among(eight); // of the bytes that end a field
        if high_bits != 0 {
            return at + high_bits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let last_bytes = data.get(at..).unwrap_or_default();
    let length = last_bytes.iter().position(|&byte| byte == marks.delimiter || byte == marks.line);
    length.map_or(data.len(), |length| at + length)
}

/// The fields of a column that were read: numbers, or the number of each word and all distinct words.
enum Fields<'a> {
    Real(Vec<f64>),
    Whole(Vec<i64>),
    Word(Vec<i32>, Dictionary<&'a [u8]>),
}

impl<'a> Fields<'a> {
    /// No fields, with room for `n`. A column has numbers, or the number of each word and a dictionary of all distinct words.
    /// `kind` is that of the column: real numbers, whole numbers or words.
    fn new(kind: Kind, n: usize) -> Self {
        match kind {
            Kind::Real => Fields::Real(Vec::with_capacity(n)),
            Kind::Whole => Fields::Whole(Vec::with_capacity(n)),
            Kind::Word => Fields::Word(Vec::with_capacity(n), Dictionary::new()),
        }
    }

    /// Numbers the words that mean a missing value (`missing`), and then the words `known_words`, each on a line, in the
    /// dictionary of all words of the column, before any field is read. Does nothing for a column of numbers.
    fn number_words(&mut self, missing: &[&'a [u8]], known_words: &'a [u8]) {
        if let Fields::Word(_, dictionary) = self {
            // The first byte and the number of occurrences in the text: none, because they were not read from it.
            let (first, times) = (0, 0);
            for word in missing.iter().copied().chain(lines(known_words)) {
                dictionary.code(word, first, times);
            }
        }
    }

    /// Reads the field that begins at byte `at` of the text, and returns the index of the byte that ends it, one of `marks`;
    /// None if it is not of the column's kind. A field that is one of `missing` is a missing number. `data` is the text as
    /// bytes. A column has numbers, or the number of each line's word and the dictionary of all words.
    #[inline(always)]
    fn take(
        &mut self,
        data: &'a [u8],
        at: usize,
        marks: Marks,
        missing: &[&[u8]],
    ) -> Option<usize> {
        let end = end_of(data, at, marks);
        let field = data.get(at..end)?;
        match self {
            Fields::Real(numbers) => numbers.push(match real(field) {
                Some(number) => number,
                None if is_missing(field, missing) => f64::NAN,
                None => return None,
            }),
            Fields::Whole(numbers) => numbers.push(whole(field)?),
            Fields::Word(codes, dictionary) => {
                let is_blank = |byte: Option<&u8>| byte.is_some_and(|&byte| byte <= b' ');
                let (word, start) = match is_blank(field.first()) | is_blank(field.last()) {
                    true => stripped(field)?,
                    false => (field, 0),
                };
                let times = 1;
                codes.push(dictionary.code(word, at + start, times));
            }
        }
        Some(end)
    }

    /// The parsed column. `n_known` words were numbered before any field was read; None if a new word has a forbidden byte,
    /// or there are too many words. The column has numbers, or `codes`, the number of each line's word, and where each new
    /// word begins and ends in the text, in bytes. `dictionary.keys` are all words by number, and `dictionary.first` the
    /// bytes where they first occur.
    fn finished(self, n_known: usize, is_forbidden: impl Fn(&u8) -> bool) -> Option<Column> {
        Some(match self {
            Fields::Real(numbers) => Column::Real(numbers),
            Fields::Whole(numbers) => Column::Whole(numbers),
            Fields::Word(codes, dictionary) => {
                let dictionary = dictionary.checked().ok()?;
                // The index of the first byte of each new word, and the word.
                let new_words = dictionary.first.iter().zip(&dictionary.keys).skip(n_known);
                if new_words.clone().any(|(_, word)| word.iter().any(&is_forbidden)) {
                    return None;
                }
                let spans = new_words.map(|(&at, word)| [at, at + word.len() as i64]);
                Column::Word(codes, spans.collect())
            }
        })
    }
}

/// A word without the blanks around it, and how many bytes are before it; None if the field contains a byte that ends a line.
/// The field is bytes.
#[cold]
fn stripped(field: &[u8]) -> Option<(&[u8], usize)> {
    let word = strip_space(field);
    let start = field.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    (!field.contains(&b'\r') && !field.contains(&b'\n')).then_some((word, start))
}

/// Whether a number is negative, and what follows the sign, without blanks: digits at both ends, anything between them. None
/// if it begins like a code such as 007, or not like a number. The field is bytes.
#[inline(always)]
fn digits_of(field: &[u8]) -> Option<(bool, &[u8])> {
    let mut field = field; // without the blanks that were cut off
    while let [b' ' | b'\t', other_bytes @ ..] | [other_bytes @ .., b' ' | b'\t'] = field {
        field = other_bytes;
    }
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        _ => (false, field),
    };
    match digits {
        [b'0', b'0'..=b'9' | b'x' | b'X', ..] => None,
        [b'0'..=b'9', .., b'0'..=b'9'] | [b'0'..=b'9'] => Some((negative, digits)),
        _ => None,
    }
}

/// Any number of this many digits fits 64 bits; a point takes the place of a digit.
const MOST_DIGITS: usize = 19;
/// Powers of ten, exact as doubles.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// Parses a decimal number to the nearest double; None if it is not a number. The digits and the power of ten are exact
/// doubles, so their quotient is rounded once. The field is bytes.
#[inline(always)]
fn real(field: &[u8]) -> Option<f64> {
    let (negative, digits) = digits_of(field)?;
    let mut number = 0_u64; // of all digits, without the point
    let mut point = digits.len() - 1; // its index; that of the last digit if there is none
    for (at, &byte) in digits.iter().take(MOST_DIGITS).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            number = 10 * number + u64::from(digit);
        } else if byte == b'.' && point == digits.len() - 1 {
            point = at;
        } else {
            return slowly(digits, negative);
        }
    }
    let n_decimals = digits.len() - 1 - point;
    if digits.len() > MOST_DIGITS || number >= 1 << 53 || n_decimals >= POWERS.len() {
        return slowly(digits, negative);
    }
    let number = number as f64 / POWERS[n_decimals];
    Some(if negative { -number } else { number })
}

/// [`real`] for the text of any number without its sign; None if it is not a number, or one that is 0, infinite or subnormal.
/// `digits` are bytes, `negative` says whether a minus comes before them.
#[cold]
fn slowly(digits: &[u8], negative: bool) -> Option<f64> {
    let number: f64 = str::from_utf8(digits).ok()?.parse().ok()?;
    number.is_normal().then_some(if negative { -number } else { number })
}

/// Parses a whole number; None if it is not one or has 19 digits or more. The field is bytes.
#[inline(always)]
fn whole(field: &[u8]) -> Option<i64> {
    let (negative, digits) = digits_of(field)?;
    if digits.len() >= MOST_DIGITS {
        return None;
    }
    let mut number = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = 10 * number + i64::from(digit);
    }
    Some(if negative { -number } else { number })
}

/// Whether a field is one of `missing`, as it is or without a blank before it, after it, or both. All are bytes.
#[cold]
fn is_missing(field: &[u8], missing: &[&[u8]]) -> bool {
    let after_blank = field.strip_prefix(b" ").unwrap_or(field);
    // The length of a text without a blank at its end.
    let end = |text: &'_ [u8]| text.len() - usize::from(text.ends_with(b" "));
    [field, after_blank, &field[..end(field)], &after_blank[..end(after_blank)]]
        .iter()
        .any(|text| missing.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Kind; 3] = [Kind::Real, Kind::Whole, Kind::Word];

    /// Three columns, of a real, a whole number and a word: "b" is a known word, and an empty field and NA are missing values.
    fn parsed(text: &str) -> Option<Vec<Column>> {
        parse(text.as_bytes(), b',', Some(b'"'), &ALL, &[b"", b"NA"], &[b"", b"", b"b\n"])
    }

    #[test]
    fn plain_lines_are_columns() {
        let text = "1.5,2, a \n\n-0.25,-3,b\n 1e3 ,18,a";
        // Words 0 and 1 are the missing texts, 2 is the known "b", and 3 is "a", which first is byte 7 of the text.
        let columns = vec![
            Column::Real(vec![1.5, -0.25, 1000.0]),
            Column::Whole(vec![2, -3, 18]),
            Column::Word(vec![3, 2, 3], vec![[7, 8]]),
        ];
        assert_eq!(parsed(text), Some(columns));
        assert_eq!(parsed("1,2,a\r\n\r\n3,4,b"), parsed("1,2,a\n3,4,b"));
        let Some(columns) = parsed(" NA,1,a\n,1,a\n") else { panic!() };
        let Column::Real(numbers) = &columns[0] else { panic!() };
        assert!(numbers.iter().all(|number| number.is_nan()) && numbers.len() == 2);
    }

    #[test]
    fn what_is_not_plain_is_left_alone() {
        for line in [
            "1,2",
            "1,2,a,b",
            "\"1\",2,a",
            "1,2,a\r",
            "1,2,a\r\n1,2,b\n",
            "1,2,a\n1,2,b\r\n",
            "1,2,a\r\n\r1,2,a\r\n",
            "1,2,a\r\n1,2,a\r1,2,a\r\n",
            "1,2, b\"",
            "007,2,a",
            "1,07,a",
            "0x1F,2,a",
            ".5,2,a",
            "5.,2,a",
            "+5,2,a",
            "1.5,2.5,a",
            "1,,a",
            "1.2.3,2,a",
            "inf,2,a",
            "1e999,2,a",
            "x,2,a",
            "-,2,a",
            "1,2,",
        ] {
            // An empty word is plain.
            assert_eq!(parsed(line).is_none(), line != "1,2,", "{line}");
        }
        // A missing text that could be a number, and a quotation mark that may occur in numbers.
        assert_eq!(parse(b"1", b',', None, &[Kind::Real], &[b"-9"], &[b""]), None);
        assert_eq!(parse(b"1", b',', Some(b'1'), &[Kind::Real], &[], &[b""]), None);
    }

    #[test]
    fn decimals_are_rounded_once() {
        for text in [
            "0.1",
            "51.1743",
            "9007199254740993",
            "123456789.123456789",
            "1.7976931348623157e308",
            "3.14159265358979323846",
        ] {
            let (quote, missing, known) = (None, &[], &[&b""[..]]);
            let Some(columns) = parse(text.as_bytes(), b',', quote, &[Kind::Real], missing, known)
            else {
                panic!("{text}")
            };
            // The standard library's parser rounds once.
            assert_eq!(columns, [Column::Real(vec![text.parse().unwrap()])]);
        }
    }
}
