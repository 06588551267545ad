use super::*;

fn settings(pattern: Pattern) -> Settings {
    Settings {
        pattern,
        lowercase: true,
        characters: false,
        shortest: 1,
        longest: 1,
        stop_words: vec![],
        log: false,
        length: false,
    }
}

fn read(settings: Settings, text: impl AsRef<[u8]>) -> Vec<String> {
    let mut tokens = Tokens::default();
    let tokeniser = Tokeniser::new(settings).unwrap();
    tokeniser.read(text.as_ref(), &mut tokens).unwrap();
    tokens
        .iter()
        .map(|token| String::from_utf8_lossy(token).into_owned())
        .collect()
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
        [
            "the",
            "cat",
            "s",
            "3",
            "hats",
            "snake_case",
            "a",
            "b",
            "cd",
            "été",
            "é"
        ]
    );
    assert_eq!(
        read(
            settings(Pattern::Mail),
            "A b, x.y at 10.0.0.1. O'Neil-- <Me@Example.COM>, é-é"
        ),
        ["x.y", "at", "10.0.0.1", "o'neil", "me@example.com", "é-é"]
    );
}

#[test]
fn lower_cases_that_are_not_one_to_one() {
    let word = || settings(Pattern::Word);
    assert_eq!(
        read(word(), "ΟΔΟΣ ΟΔΟΣ' ΟΔΟΣΑ Σ ΣΣ"),
        ["οδος", "οδος", "οδοσα", "σς"]
    );
    assert_eq!(read(word(), "İSTANBUL"), ["stanbul"]);
    assert_eq!(
        read(
            Settings {
                lowercase: false,
                ..word()
            },
            "İSTANBUL ΟΔΟΣ"
        ),
        ["İSTANBUL", "ΟΔΟΣ"]
    );
}

#[test]
fn grams() {
    let settings = Settings {
        longest: 3,
        stop_words: vec![b"of".to_vec()],
        ..settings(Pattern::Word)
    };
    assert_eq!(
        read(settings.clone(), "City  of\nNew York!"),
        [
            "city",
            "new",
            "york",
            "city new",
            "new york",
            "city new york"
        ]
    );
    assert_eq!(
        read(
            Settings {
                shortest: 2,
                ..settings.clone()
            },
            "City  of\nNew York!"
        ),
        ["city new", "new york", "city new york"]
    );
    assert_eq!(
        read(
            Settings {
                shortest: 3,
                ..settings
            },
            "of New York!"
        ),
        [""; 0]
    );
}

#[test]
fn characters_of_a_text() {
    let settings = Settings {
        characters: true,
        longest: 2,
        ..settings(Pattern::Word)
    };
    assert_eq!(
        read(settings.clone(), "A\t\n é\n"),
        ["a", " ", "é", "\n", "a ", " é", "é\n"]
    );
    assert_eq!(read(settings, ""), [""; 0]);
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(
        read(settings(Pattern::Word), b"ab\xffcd\xe2\x82ef\xed\xa0\x80gh"),
        ["ab", "cd", "ef", "gh"]
    );
    let settings = Settings {
        characters: true,
        ..settings(Pattern::Word)
    };
    let mut tokens = Tokens::default();
    Tokeniser::new(settings)
        .unwrap()
        .read(b"\xff\xe2\x82a", &mut tokens)
        .unwrap();
    assert_eq!(tokens.len(), 4);
    assert_eq!(tokens.get(0), b"\xed\xb3\xbf");
}

#[test]
fn given_tokens() {
    let settings = Settings {
        longest: 2,
        stop_words: vec![b"b".to_vec()],
        ..settings(Pattern::Given)
    };
    let tokeniser = Tokeniser::new(settings).unwrap();
    let mut tokens = Tokens::default();
    tokeniser
        .gather([&b"A"[..], b"b", b"", b"c d"].into_iter(), &mut tokens)
        .unwrap();
    assert_eq!(
        tokens.iter().collect::<Vec<_>>(),
        [&b"A"[..], b"", b"c d", b"A ", b" c d"]
    );
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
    assert!(wrong(
        |s| (s.characters, s.stop_words) = (true, vec![b"a".to_vec()])
    ));
}
