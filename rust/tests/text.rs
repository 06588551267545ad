//! Tokens of texts.

use crate::text::*;

fn settings(pattern: Pattern) -> Settings {
    Settings {
        pattern,
        lowercase: true,
        characters: false,
        shortest: 1,
        longest: 1,
        stop_words: vec![],
        only: vec![],
        log: false,
        length: false,
    }
}

fn read(settings: Settings, text: impl AsRef<[u8]>) -> Vec<String> {
    let mut tokens = Tokens::default();
    let tokeniser = Tokeniser::new(settings).unwrap();
    tokeniser.read(text.as_ref(), &mut tokens).unwrap();
    tokens.iter().map(|token| String::from_utf8_lossy(token).into_owned()).collect()
}

#[test]
fn words() {
    let text = "The cat's 3 hats; snake_case, a\u{0}b\u{0}cd. ÉTÉ é";
    assert_eq!(
        read(settings(Pattern::Word), text),
        ["the", "cat", "hats", "snake_case", "cd", "été"]
    );
    assert_eq!(
        read(settings(Pattern::Word1), text),
        ["the", "cat", "s", "3", "hats", "snake_case", "a", "b", "cd", "été", "é"]
    );
    assert_eq!(
        read(settings(Pattern::Mail), "A b, x.y at 10.0.0.1. O'Neil-- <Me@Example.COM>, é-é"),
        ["x.y", "at", "10.0.0.1", "o'neil", "me@example.com", "é-é"]
    );
}

#[test]
fn lower_cases_that_are_not_one_to_one() {
    let word = || settings(Pattern::Word);
    assert_eq!(read(word(), "ΟΔΟΣ ΟΔΟΣ' ΟΔΟΣΑ Σ ΣΣ"), ["οδος", "οδος", "οδοσα", "σς"]);
    assert_eq!(read(word(), "İSTANBUL"), ["stanbul"]);
    assert_eq!(
        read(Settings { lowercase: false, ..word() }, "İSTANBUL ΟΔΟΣ"),
        ["İSTANBUL", "ΟΔΟΣ"]
    );
}

#[test]
fn grams() {
    let settings =
        Settings { longest: 3, stop_words: vec![b"of".to_vec()], ..settings(Pattern::Word) };
    assert_eq!(
        read(settings.clone(), "City  of\nNew York!"),
        ["city", "new", "york", "city new", "new york", "city new york"]
    );
    assert_eq!(
        read(Settings { shortest: 2, ..settings.clone() }, "City  of\nNew York!"),
        ["city new", "new york", "city new york"]
    );
    let only = vec![b"york".to_vec(), b"city new".to_vec(), b"of".to_vec(), b"new york".to_vec()];
    assert_eq!(
        read(Settings { only, ..settings.clone() }, "City of New York!"),
        ["york", "city new", "new york"]
    );
    assert_eq!(read(Settings { shortest: 3, ..settings }, "of New York!"), [""; 0]);
}

#[test]
fn characters_of_a_text() {
    let settings = Settings { characters: true, longest: 2, ..settings(Pattern::Word) };
    assert_eq!(read(settings.clone(), "A\t\n é\n"), ["a", " ", "é", "\n", "a ", " é", "é\n"]);
    assert_eq!(read(settings, ""), [""; 0]);
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(
        read(settings(Pattern::Word), b"ab\xffcd\xe2\x82ef\xed\xa0\x80gh"),
        ["ab", "cd", "ef", "gh"]
    );
    let settings = Settings { characters: true, ..settings(Pattern::Word) };
    let mut tokens = Tokens::default();
    Tokeniser::new(settings).unwrap().read(b"\xff\xe2\x82a", &mut tokens).unwrap();
    assert_eq!(tokens.len(), 4);
    assert_eq!(tokens.get(0), b"\xed\xb3\xbf");
}

#[test]
fn given_tokens() {
    let settings =
        Settings { longest: 2, stop_words: vec![b"b".to_vec()], ..settings(Pattern::Given) };
    let tokeniser = Tokeniser::new(settings).unwrap();
    let mut tokens = Tokens::default();
    tokeniser.gather([&b"A"[..], b"b", b"", b"c d"].into_iter(), &mut tokens).unwrap();
    assert_eq!(tokens.iter().collect::<Vec<_>>(), [&b"A"[..], b"", b"c d", b"A ", b" c d"]);
    assert!(tokeniser.read(b"A b", &mut tokens).is_err());
}

#[test]
fn settings_that_make_no_sense() {
    let wrong = |change: fn(&mut Settings)| {
        let mut settings = settings(Pattern::Word);
        change(&mut settings);
        Tokeniser::new(settings).is_err()
    };
    assert!(!wrong(|_| ()));
    assert!(wrong(|s| s.shortest = 0));
    assert!(wrong(|s| s.longest = 6));
    assert!(wrong(|s| s.shortest = 2));
    assert!(wrong(|s| (s.characters, s.pattern) = (true, Pattern::Given)));
    assert!(wrong(|s| (s.characters, s.stop_words) = (true, vec![b"a".to_vec()])));
}

/// The text as code points, one by one lower-cased.
fn codes(text: &[u8], lowercase: bool) -> Vec<u32> {
    let table = characters::characters().unwrap();
    let (mut at, mut codes) = (0, vec![]);
    while at < text.len() {
        let character = utf8::first(&text[at..]);
        match table.lower(text, at, character, lowercase).unwrap() {
            characters::Lowered::One(code) => codes.push(code),
            characters::Lowered::DottedI => {
                codes.extend([u32::from(b'i'), characters::DOT_ABOVE]);
            }
        }
        at += character.width;
    }
    codes
}

/// The words, found the slow and obvious way.
fn naive(text: &[u8], pattern: Pattern, lowercase: bool) -> Vec<Vec<u8>> {
    let table = characters::characters().unwrap();
    let codes = codes(text, lowercase);
    let is_word = |i: usize| codes.get(i).is_some_and(|&code| table.get(code).is_word(false));
    let is_inner = |i: usize| {
        let joins = u8::try_from(codes[i]).is_ok_and(|byte| b"-.@'+&".contains(&byte));
        pattern == Pattern::Mail && joins && i > 0 && is_word(i - 1) && is_word(i + 1)
    };
    let mut words = vec![];
    let mut from = 0;
    for i in 0..=codes.len() {
        if i < codes.len() && (is_word(i) || is_inner(i)) {
            continue;
        }
        let mut word = vec![];
        codes[from..i].iter().for_each(|&code| utf8::push(&mut word, code));
        if i - from >= if pattern == Pattern::Word1 { 1 } else { 2 } {
            words.push(word);
        }
        from = i + 1;
    }
    words
}

/// Bytes that put every branch to the test, well-formed or not.
fn random_text(random: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let pieces: [&[u8]; 34] = [
        b"a",
        b"Bc",
        b"the",
        b"WORD",
        b" ",
        b"  ",
        b"\n",
        b"_",
        b"9",
        b"-",
        b".",
        b"@",
        b"'",
        b"+&",
        b"\0",
        b"\x7f",
        "é".as_bytes(),
        "É".as_bytes(),
        "Σ".as_bytes(),
        "ΑΣ".as_bytes(),
        "\u{300}".as_bytes(),
        "İ".as_bytes(),
        "Ⱥ".as_bytes(),
        "ẞ".as_bytes(),
        "\u{a0}".as_bytes(),
        "中文".as_bytes(),
        "👍".as_bytes(),
        "𐐀".as_bytes(),
        b"\xff",
        b"\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x9f",
        b"\xf4\x90\x80\x80",
    ];
    let mut text = vec![];
    for _ in 0..random(60) {
        let times = if random(8) == 0 { random(70) } else { 1 };
        let piece = pieces[random(pieces.len())];
        (0..times).for_each(|_| text.extend_from_slice(piece));
    }
    text
}

#[test]
fn any_bytes_give_the_words_of_the_naive_way() {
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut tokens = Tokens::default();
    for _ in 0..1_000 {
        let text = random_text(&mut random);
        for pattern in [Pattern::Word, Pattern::Word1, Pattern::Mail] {
            for lowercase in [false, true] {
                let settings = Settings { lowercase, ..settings(pattern) };
                Tokeniser::new(settings).unwrap().read(&text, &mut tokens).unwrap();
                let found: Vec<_> = tokens.iter().map(<[u8]>::to_vec).collect();
                assert_eq!(
                    found,
                    naive(&text, pattern, lowercase),
                    "{text:x?} {pattern:?} {lowercase}"
                );
                assert!(
                    tokens.text.len()
                        >= Tokens::PADDING
                            + tokens.spans.last().map_or(0, |span| span.end as usize)
                );
            }
        }
        let settings = Settings { characters: true, ..settings(Pattern::Word) };
        Tokeniser::new(settings).unwrap().read(&text, &mut tokens).unwrap();
    }
}

fn places(settings: Settings, text: &str) -> Vec<(u32, u32)> {
    let mut tokens = Tokens::default();
    let tokeniser = Tokeniser::new(settings).unwrap();
    tokeniser.places(text.as_bytes(), &mut tokens).unwrap();
    let spans = tokens.spans.iter();
    spans.map(|span| (span.start, span.end)).collect()
}

#[test]
fn places_are_those_of_characters_as_written() {
    let words =
        Settings { longest: 2, stop_words: vec![b"the".to_vec()], ..settings(Pattern::Word) };
    assert_eq!(
        places(words, "Été, THE xİ a İSTANBUL"),
        [(0, 3), (9, 11), (15, 22), (0, 11), (9, 22)]
    );
    let letters = Settings { characters: true, longest: 2, ..settings(Pattern::Word) };
    assert_eq!(
        places(letters, "İ \u{2003}\tb"),
        [(0, 1), (0, 1), (1, 4), (4, 5), (0, 1), (0, 4), (1, 5)]
    );
}
