"""The tokeniser: against its naive twin, Python's own ``re``, and scikit-learn's CountVectorizer."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

import naive_text
from banbury import _core


def tokeniser(pattern: str = "word", **changed: Any) -> _core.Tokeniser:
    options: dict[str, Any] = {
        "lowercase": True,
        "characters": False,
        "shortest": 1,
        "longest": 1,
        "stop_words": [],
        "log": False,
        "length": False,
    }
    return _core.Tokeniser(pattern, **(options | changed))


# Letters of several scripts and widths, what lower-cases to another width or by its neighbours, marks, joiners of mail,
# white space of all kinds, digits, emoji, surrogates, right-to-left.
TELLING = (
    "aAbzZ019__ \t\n\r\x00\x1c\x1f\x7f\x85\xa0\u2003\u2028\u3000-.@'+&,!éÉßẞñ\u00aa\u00b5ΑαΣΣΣσςΆ\u0345ЖжİıſȺⱥKÅΩ"
    "\u0300\u0307\u00ad\u02b0\u2019\u200d\ufeff中文あカ한글ไทย٣۳Ⅷⅷⓐ½²👍🏽🇬🇧𝐀𐐀𐐨אבגعرب\u202e\ud800\udbff\udc00\udfff\U0010ffff"
)
EVERY = [chr(code) for code in range(sys.maxunicode + 1)]
ONLY = [
    "quick",
    "quick brown",
    "lazy",
    "lazy dog",
    "fox jumps over",
    "οδος",
    "οδος οδος",
    "σ",
    "a",
    "é",
    "中",
    "ze",
    "的",
]
STOP_WORDS = ["the", "ab", "aa", "a", "é", "σ", "中文", "a.a", "missing"]

PROSE = (
    "The quick brown fox, jumps over THE lazy dog's back; it_was 1 of 2 such days, I say: see x.y@z.com or 10.0.0.1!\n"
)

# Prose of several scripts, with letters that stand alone, capitals whose lower case has another width, and no spaces at all.
SCRIPTS = [
    "Съешь Же Ещё ЭТИХ мягких французских булок, да ы я выпей чаю; Ѐ Ӏ ",
    "ΞΕΣΚΕΠΆΖΩ τὴν Ψυχοφθόρα βδελυγμία ὁ ἡ ΟΔΟΣ. ᾼ Ὼ ",
    "Zwölf Boxkämpfer jagen Viktor QUER über den großen ẞ Sylter Deich; ȺȾ é à ",
    "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت و ٣ ",
    "ऋषियों को सताने वाले दुष्ट राक्षसों क ख के राजा ",
    "いろはにほへと、ちりぬるを。私は　東京タワー（ＡＢＣ）へ行きました",
    "天地玄黃宇宙洪荒，日月盈昃辰宿列張。我",
    "키스의 고유조건은 입술끼리 만나야 하고 ",
    "👍🏽 ok👍🏽ok 𝐀𝐁 𐐀𐐨 x👍 ",
]

CUTS = sorted({script[start:stop] for script in SCRIPTS for start in range(40) for stop in range(start, 80)}, key=len)

pieces = st.one_of(
    st.sampled_from(CUTS),
    st.text(TELLING, max_size=8),
    st.integers(0, sys.maxunicode).map(chr),
    st.integers(1, len(PROSE)).map(lambda size: PROSE[-size:]),
    st.sampled_from(["the ", "ΟΔΟΣ ", "  ", "-", "é", "a" * 63, "И" * 40, "中" * 25, "Σ'", "'Σ", "İ"]),
)
texts = st.lists(pieces, max_size=8).map("".join)

# Each of the twenty settings is tried on as many texts as the profile says, 2,000 in all; thoroughly on 100,000.
enough = settings(max_examples=5_000 if settings.default.max_examples > 1_000 else settings.default.max_examples)


@pytest.mark.parametrize("shortest, longest", [(1, 1), (2, 4), (1, 5)])
@pytest.mark.parametrize("lowercase", [True, False])
@enough
@given(text=texts)
def test_characters_are_those_of_the_naive_twin(text: str, lowercase: bool, shortest: int, longest: int) -> None:
    options: dict[str, Any] = {"lowercase": lowercase, "characters": True, "shortest": shortest, "longest": longest}
    assert tokeniser(**options).tokens(text) == naive_text.tokens(text, **options)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("pattern", ["word", "word1", "mail"])
@enough
@given(text=texts)
def test_words_are_those_of_the_naive_twin(text: str, pattern: str, lowercase: bool) -> None:
    found = tokeniser(pattern, lowercase=lowercase).tokens(text)
    assert found == naive_text.tokens(text, pattern, lowercase)


@pytest.mark.parametrize("stop_words, only", [([], []), (STOP_WORDS, []), (STOP_WORDS[:1], ONLY)])
@pytest.mark.parametrize("pattern, shortest, longest", [("word", 1, 2), ("word1", 2, 3), ("mail", 1, 5)])
@enough
@given(text=texts)
def test_word_n_grams_are_those_of_the_naive_twin(
    text: str, pattern: str, shortest: int, longest: int, stop_words: list[str], only: list[str]
) -> None:
    options: dict[str, Any] = {"shortest": shortest, "longest": longest, "stop_words": stop_words, "only": only}
    assert tokeniser(pattern, **options).tokens(text) == naive_text.tokens(text, pattern, **options)


@pytest.mark.parametrize("shortest, longest", [(1, 1), (1, 3)])
@enough
@given(
    words=st.lists(
        st.sampled_from(["The", "the", "a", "", "new york", "é", "\ud800", "ΣΣ", "\0"]) | st.text(), max_size=9
    )
)
def test_given_tokens_are_those_of_the_naive_twin(words: list[str], shortest: int, longest: int) -> None:
    options: dict[str, Any] = {"shortest": shortest, "longest": longest, "stop_words": STOP_WORDS}
    assert tokeniser("given", **options).tokens(words) == naive_text.tokens(words, "given", **options)
    options["only"] = ["The", "The The", "new york", "", " ", "\ud800 ΣΣ", "é"]
    assert tokeniser("given", **options).tokens(words) == naive_text.tokens(words, "given", **options)


# Places --------------------------------------------------------------------------------------------------------------

SETTINGS: dict[str, dict[str, Any]] = {
    "words": {},
    "words as written": {"pattern": "word1", "lowercase": False},
    "words of mail, in pairs": {"pattern": "mail", "longest": 2, "stop_words": STOP_WORDS},
    "some words, in pairs": {"longest": 2, "only": ONLY},
    "characters": {"characters": True, "longest": 3},
    "some characters": {"characters": True, "longest": 2, "only": ["a", "e ", "é", "fo", " ", "Σ", "σ"]},
    "characters as written": {"characters": True, "lowercase": False, "shortest": 2, "longest": 2},
}
every_setting = pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)


def places(options: dict[str, Any], text: str | list[str]) -> list[tuple[int, int]]:
    starts, ends = tokeniser(**options).places(text)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@every_setting
@enough
@given(text=texts)
def test_places_are_those_of_the_naive_twin(text: str, options: dict[str, Any]) -> None:
    assert places(options, text) == naive_text.places(text, **options)


@every_setting
@enough
@given(text=texts)
def test_a_token_is_found_where_it_stands(text: str, options: dict[str, Any]) -> None:
    """Cut out, a word is that word again; but the lower case of a capital sigma depends on what stood around it."""
    read = tokeniser(**options).tokens
    for token, (start, end) in zip(read(text), places(options, text), strict=True):
        again = [each.replace("ς", "σ") for each in read(text[start:end])]
        assert token.replace("ς", "σ") in again
        if " " not in token and not options.get("characters"):
            assert len(again) == 1


@given(words=st.lists(st.sampled_from(["The", "the", "a", "", "new york", "é"]), max_size=9))
def test_places_of_given_tokens_are_their_numbers(words: list[str]) -> None:
    options: dict[str, Any] = {"pattern": "given", "longest": 3, "stop_words": STOP_WORDS}
    assert places(options, words) == naive_text.places(words, **options)


def test_characters_of_all_kinds_have_their_places() -> None:
    """All that have another case, and every sixteenth of the others."""
    some = [c for i, c in enumerate(EVERY) if i % 16 == 0 or c.lower() != c or c.upper() != c]
    text = "".join(f"{character} x{character}." for character in some)
    for options in (SETTINGS["words"], {"pattern": "word1"}, {"characters": True}):
        assert places(options, text) == naive_text.places(text, **options)


def test_places_in_facts() -> None:
    assert places({}, "The cat's hat") == [(0, 3), (4, 7), (10, 13)]
    assert places({}, "xİ, İSTANBUL") == [(0, 2), (5, 12)]  # a combining dot is no word character
    assert places({"longest": 2, "stop_words": ["the"]}, "see the sea") == [(0, 3), (8, 11), (0, 11)]
    assert places({"characters": True}, "a \t\nb") == [(0, 1), (1, 4), (4, 5)]
    assert places({"pattern": "given", "longest": 2}, ["a", "b"]) == [(0, 1), (1, 2), (0, 2)]
    assert places({"longest": 2, "only": ["cat", "the cat"]}, "The cat, a hat") == [(4, 7), (0, 7)]
    with pytest.raises(TypeError, match="must be a str"):
        tokeniser().places(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="takes texts"):
        tokeniser().places(["a"])
    with pytest.raises(ValueError, match="come ready"):
        tokeniser("given").places("a")


@pytest.mark.parametrize(
    "ours, theirs",
    [
        ({}, {}),
        ({"lowercase": False}, {"lowercase": False}),
        ({"shortest": 2, "longest": 3}, {"ngram_range": (2, 3)}),
        ({"longest": 2, "stop_words": STOP_WORDS}, {"ngram_range": (1, 2), "stop_words": STOP_WORDS}),
        ({"characters": True, "longest": 3}, {"analyzer": "char", "ngram_range": (1, 3)}),
    ],
)
@given(text=texts)
def test_tokens_are_those_of_scikit_learn(text: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert tokeniser(**ours).tokens(text) == CountVectorizer(**theirs).build_analyzer()(text)


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("pattern", ["word", "word1", "mail"])
def test_every_character_there_is(pattern: str, lowercase: bool) -> None:
    text = "".join(EVERY) + "".join(f"{character} x{character}." for character in EVERY)
    assert tokeniser(pattern, lowercase=lowercase).tokens(text) == naive_text.tokens(text, pattern, lowercase)


def test_every_character_as_a_character() -> None:
    text = "".join(EVERY)
    assert tokeniser(characters=True).tokens(text) == naive_text.tokens(text, characters=True)


@pytest.mark.parametrize("frame", ["A{}Σ {}Σ ", "AΣ{}A "])
def test_a_capital_sigma_next_to_every_character(frame: str) -> None:
    text = "".join(character.join(frame.split("{}")) for character in EVERY)
    assert tokeniser("word1").tokens(text) == naive_text.tokens(text, "word1")


def test_facts() -> None:
    words, mail = tokeniser().tokens, tokeniser("mail").tokens
    assert words("") == [] and words(" ") == [] and words("a") == []
    assert words("The cat's 3 hats, snake_case") == ["the", "cat", "hats", "snake_case"]
    assert words("nul\0bytes\0\0cut") == ["nul", "bytes", "cut"]
    assert words("İSTANBUL ΟΔΟΣ") == ["stanbul", "οδος"]  # a combining dot is no word character
    assert words("东京 都に") == ["东京", "都に"]  # not cut: a run of such characters is one token
    assert mail("From: O'Neil <Me+x@Example.com>, 10.0.0.1; a -- b.") == [
        "from",
        "o'neil",
        "me+x@example.com",
        "10.0.0.1",
    ]
    assert tokeniser(log=True).log and not tokeniser(log=True).length


def test_a_text_of_100_megabytes() -> None:
    blank = "ab" + " " * 100_000_000 + "cd"
    assert tokeniser(longest=2).tokens(blank) == ["ab", "cd", "ab cd"]
    word = "A" * 100_000_000
    assert tokeniser().tokens(word) == [word.lower()]
    found = tokeniser().tokens(("x" * 999 + " ") * 100_000)
    assert len(found) == 100_000 and set(found) == {"x" * 999}


FIRST_MEETING = """
import sys, threading
from banbury import _core
read = _core.Tokeniser("word", True, False, 1, 1, [], False, False).tokens
found = [read("plain ASCII needs no table")]
assert "banbury.characters" not in sys.modules
threads = [threading.Thread(target=lambda: found.append(read("ÉTÉ ΟΔΟΣ"))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found[1:] == [["été", "οδος"]] * 8, found
"""


def test_threads_may_meet_the_first_character_beyond_ascii_together() -> None:
    subprocess.run([sys.executable, "-c", FIRST_MEETING], check=True, timeout=600)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"pattern": "wort"}, "pattern must be 'word', 'word1', 'mail' or 'given', got \"wort\""),
        ({"shortest": 0}, "from 1 or more to 5 or less"),
        ({"longest": 6}, "from 1 or more to 5 or less"),
        ({"shortest": -1}, "got -1"),
        ({"longest": 1 << 40}, "got 1099511627776"),
        ({"shortest": 3, "longest": 2}, "shortest first; got 3 to 2"),
        ({"pattern": "given", "characters": True}, "tokens that come ready are words"),
        ({"characters": True, "stop_words": ["the"]}, "stop words are words"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        tokeniser(**options)


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="must be a str"):
        tokeniser().tokens(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="takes texts"):
        tokeniser().tokens(["a"])
    with pytest.raises(ValueError, match="come ready"):
        tokeniser("given").tokens("a")
