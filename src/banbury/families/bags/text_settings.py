"""What the words of a text are, and which of them count: the settings of ``bb.Text``, checked, and what follows from them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.event_models import WEIGHING
from banbury.families.bags.vocabulary import Pruning, Vocabulary, every_word, words_by_name
from banbury.families.bags.words import WordFamily
from banbury.families.family import Choice, ColumnReader, Feature, check_positive, check_settings

PATTERNS = ("word", "word1", "mail")
LONGEST_NGRAM = 5


@dataclass(frozen=True, repr=False)
class TextSettings(WordFamily):
    """The part of ``bb.Text`` that its parameters ask: how a text is read, and which of its words count how much."""

    tokens: str = "word"
    lowercase: bool = True
    unit: Literal["words", "characters"] = "words"
    ngrams: int | tuple[int, int] = (1, 1)
    stop_words: Sequence[str] | None = None
    only: Sequence[str] | str | os.PathLike[str] | None = None
    damping: Literal["log"] | None = None
    length: bool = False
    model: Literal["multinomial", "presence", "bernoulli", "complement", "log_odds"] = "multinomial"
    alpha: float | None = None
    min_count: float = 0.0
    min_share: float = 0.0
    max_share: float = 1.0
    drop_most_frequent: int = 0
    max_words: int | None = None
    choose_by: Literal["count", "mutual_information"] = "count"
    vocabulary: Sequence[str] | str | os.PathLike[str] | None = None
    idf: bool = False
    norm: bool = False

    name: ClassVar[str] = "text"
    counting: ClassVar[tuple[str, ...]] = tuple("tokens lowercase unit ngrams stop_words only damping length".split())

    def __post_init__(self) -> None:
        for setting in ("lowercase", "length", "idf", "norm"):
            value = getattr(self, setting)
            errors.require(isinstance(value, (bool, np.bool_)), setting, value, "True or False")
        _check_choice("unit", self.unit, ("words", "characters"))
        _check_choice("damping", self.damping, (None, "log"))
        _check_choice("model", self.model, ("multinomial", "presence", "bernoulli", "complement", "log_odds"))
        _check_choice("choose_by", self.choose_by, ("count", "mutual_information"))
        _pattern(self.tokens)
        object.__setattr__(self, "ngrams", _ngrams(self.ngrams))
        object.__setattr__(self, "stop_words", _stop_words(self.stop_words, self.lowercase))
        object.__setattr__(self, "vocabulary", _vocabulary("vocabulary", self.vocabulary))
        object.__setattr__(self, "only", _vocabulary("only", self.only, self.lowercase))
        self._check_numbers()
        self._check_together()

    def _check_numbers(self) -> None:
        check_settings(self, "alpha", zero=True)
        check_positive("min_count", self.min_count, zero=True)
        for setting in ("min_share", "max_share"):
            share = getattr(self, setting)
            number = isinstance(share, (int, float, np.number)) and not isinstance(share, bool)
            errors.require(number and 0 <= share <= 1, setting, share, "a share of the texts from 0 to 1")
        errors.check_whole("drop_most_frequent", self.drop_most_frequent, 0)
        most = self.max_words
        fits = most is None or (_is_whole(most) and most >= 1)
        errors.require(fits, "max_words", most, "None or a whole number of at least 1")

    def _check_together(self) -> None:
        words = self.unit == "words"
        wordless = "omitted when unit='characters', because then there are no words"
        weighed = self.idf and self.model == "bernoulli"
        for setting, fits, expected in (
            ("min_share", self.min_share <= self.max_share, f"max_share, {self.max_share:g}, at most"),
            ("tokens", words or self.tokens == "word", wordless),
            ("stop_words", words or self.stop_words is None, wordless),
            ("choose_by", self.choose_by == "count" or self.max_words is not None, "given together with max_words"),
            ("idf", not weighed, "False when model='bernoulli', which has no counts"),
            ("norm", not self.norm or self.model == "complement", "False unless model='complement'"),
        ):
            errors.require(fits, setting, getattr(self, setting), expected)

    def __getstate__(self) -> dict[str, Any]:
        """The settings alone: a tokeniser is made again where it is needed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    # Counting

    @cached_property
    def tokeniser(self) -> _core.Tokeniser:
        """Turns a text into words, as the settings say; shared by threads."""
        shortest, longest = self.ngrams if isinstance(self.ngrams, tuple) else (1, self.ngrams)
        pattern = "given" if self.split is not None else self.tokens
        characters = self.unit == "characters"
        counts = self.damping == "log", bool(self.length)
        only = list(self.only) if isinstance(self.only, tuple) else []
        stop_words = list(self.stop_words or ())
        return _core.Tokeniser(pattern, bool(self.lowercase), characters, shortest, longest, stop_words, *counts, only)

    @cached_property
    def split(self) -> re.Pattern[str] | None:
        """The regular expression that finds words, where one is given."""
        return _pattern(self.tokens)

    def empty_table(self, feature: Feature, n_classes: int) -> _core.Words:
        return _core.Words(n_classes, 0)

    def kernel_input(self, rows: ColumnReader, feature: Feature) -> Any:
        return self.texts(rows, feature.name)

    def texts(self, rows: ColumnReader, name: str) -> Any:
        column = rows.texts(name)
        looked_up = isinstance(column, _core.EncodedTexts)
        return column if self.split is None or looked_up else self.find_words(strings(column))

    def find_words(self, texts: Iterable[Any]) -> _core.TokenLists:
        """The words that the regular expression finds in each text: all of them, where each text's begin, which are missing."""
        assert self.split is not None
        words: list[str] = []
        ends = [0]
        missing = []
        for text in texts:
            absent = not isinstance(text, str)
            if not absent:
                words += filter(None, self.split.findall(text.lower() if self.lowercase else text))
            ends.append(len(words))
            missing.append(absent)
        return _core.TokenLists(words, np.array(ends, dtype=np.int64), np.array(missing) if any(missing) else None)

    def one(self, text: str) -> tuple[Any, list[str]]:
        """One text as the kernels take it, and its tokens in order."""
        if self.split is None:
            return [text], self.tokeniser.tokens(text)
        kernel_texts = self.find_words([text])
        return kernel_texts, self.tokeniser.tokens(kernel_texts.tokens)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where each of these tokens stands: text[start:end]; an n-gram reaches from its first word to its last."""
        if self.split is None:
            starts, ends = self.tokeniser.places(text)
            return list(zip(starts.tolist(), ends.tolist(), strict=True))
        lowered = text.lower() if self.lowercase else text
        group = self.split.groups
        matches = [match for match in self.split.finditer(lowered) if match.group(group)]
        written = [i for i, character in enumerate(text) for _ in (character.lower() if self.lowercase else character)]
        first, last = self.tokeniser.places([match.group(group) for match in matches])
        spans = [match.span(group) for match in matches]
        token_spans = zip(first.tolist(), last.tolist(), strict=True)
        return [(written[spans[a][0]], written[spans[b - 1][1] - 1] + 1) for a, b in token_spans]

    # Which words count

    @property
    def once(self) -> bool:
        """Whether a text has a word or not, however often."""
        return self.model in ("presence", "bernoulli")

    @property
    def weighs(self) -> bool:
        """Whether the model weighs words and gives them no probability."""
        return self.model in WEIGHING

    @property
    def pruning(self) -> Pruning:
        drop = int(self.drop_most_frequent)
        most = None if self.max_words is None else int(self.max_words)
        return Pruning(self.min_count, self.min_share, self.max_share, drop, most, self.choose_by)

    def words(self, table: Any, by_name: bool = False) -> Vocabulary:
        """The words an estimate uses; ``by_name``: in an order that does not depend on where they were met."""
        pruning = self.pruning
        every = (
            self.vocabulary_words(table) if self.vocabulary is not None else every_word(table, by_name or pruning.ranks)
        )
        return pruning.of(every)

    def vocabulary_words(self, table: Any) -> Vocabulary:
        assert isinstance(self.vocabulary, tuple)
        return words_by_name(table, map(str.lower, self.vocabulary) if self.lowercase else self.vocabulary)

    def prior(self, choice: Choice) -> float:
        return float(choice.alpha if self.alpha is None else self.alpha)

    def alpha_of(self, choice: Choice, words: Vocabulary) -> float:
        """The pseudo-count of the prior, the same for all words."""
        return self.prior(choice)

    def damp(self, times: Int, every: NDArray[Any]) -> Real:
        """What words count that a text has so many times; ``every``: how often it has each of all its words."""
        if self.once:
            return np.ones(len(times))
        damp = np.log1p if self.damping == "log" else np.float64
        length = float(np.sqrt(np.square(damp(every)).sum())) if self.length and len(every) else 1.0
        return np.asarray(damp(times) / length)

    def count_values(self, offsets: Int, times: NDArray[np.int32]) -> Real:
        """What each word of each text counts that the text has so many times, as the tokeniser would have it."""
        values = np.log1p(times) if self.damping == "log" else times.astype(np.float64)
        if self.length and len(values):
            owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            lengths = np.sqrt(np.bincount(owners, values**2, len(offsets) - 1))
            values = values / lengths[owners]
        return np.asarray(values)

    @property
    def reading(self) -> dict[str, Any]:
        """How a text is read, for those who do it elsewhere."""
        shortest, longest = self.ngrams if isinstance(self.ngrams, tuple) else (1, self.ngrams)
        tokeniser = {name: getattr(self, name) for name in ("tokens", "lowercase", "unit", "stop_words", "only")}
        count = "presence" if self.once else "log" if self.damping else "count"
        length = "all" if self.length and not self.once else "none"
        return {**tokeniser, "shortest": shortest, "longest": longest, "count": count, "length": length}

    @property
    def counts_tokens(self) -> bool:
        """Whether scores are those of so many tokens, each of which counts one."""
        return not self.idf and (self.model == "presence" or not (self.damping or self.length))


def _is_whole(number: Any) -> bool:
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def _check_choice(setting: str, choice: Any, choices: tuple[str | None, ...]) -> None:
    if not (choice is None or isinstance(choice, str)) or choice not in choices:
        raise errors.unknown_choice(setting, choice, choices)


def _pattern(tokens: Any) -> re.Pattern[str] | None:
    """The regular expression, or None for a pattern by name; raises if it is neither."""
    if not isinstance(tokens, str) or (tokens not in PATTERNS and re.fullmatch(r"\w*", tokens)):
        raise errors.unknown_choice("tokens", tokens, [*PATTERNS, "a regular expression"])
    if tokens in PATTERNS:
        return None
    try:
        pattern = re.compile(tokens)
    except re.error as problem:
        raise errors.bad_setting("tokens", tokens, f"a regular expression ({problem})") from None
    expected = f"a regular expression with at most one group, the word (this one has {pattern.groups})"
    errors.require(pattern.groups <= 1, "tokens", tokens, expected)
    return pattern


def _ngrams(ngrams: Any) -> tuple[int, int]:
    span = (1, ngrams) if _is_whole(ngrams) else tuple(ngrams) if isinstance(ngrams, (tuple, list)) else ()
    fits = len(span) == 2 and all(map(_is_whole, span)) and 1 <= span[0] <= span[1] <= LONGEST_NGRAM
    expected = f"(shortest, longest) from 1 to {LONGEST_NGRAM}, or the longest, as in 2 for (1, 2)"
    errors.require(fits, "ngrams", ngrams, expected)
    return int(span[0]), int(span[1])


def _strings_of(setting: str, word_list: Any) -> list[str]:
    english = " (scikit-learn has one for English: sklearn.feature_extraction.text.ENGLISH_STOP_WORDS)"
    expected = "a list of words" + english * (setting == "stop_words")
    errors.require(
        not isinstance(word_list, (str, bytes)) and isinstance(word_list, Iterable), setting, word_list, expected
    )
    words = list(word_list)
    errors.require(all(isinstance(word, str) for word in words), setting, word_list, expected)
    return [str(word) for word in words]


def _stop_words(stop_words: Any, lowercase: bool) -> tuple[str, ...] | None:
    words = [] if stop_words is None else _strings_of("stop_words", stop_words)
    return tuple(sorted({word.lower() if lowercase else word for word in words})) or None


def _vocabulary(setting: str, word_list: Any, lowercase: bool = False) -> tuple[str, ...] | None:
    """The words in order, each once; those of a file are its lines."""
    if word_list is None:
        return None
    words = _lines(word_list) if isinstance(word_list, (str, os.PathLike)) else _strings_of(setting, word_list)
    kept = sorted({word.lower() if lowercase else word for word in words} - {""})
    errors.require(kept, setting, word_list, "a list of at least one word, or a text file with a word on each line")
    return tuple(kept)


def _lines(path: str | os.PathLike[str]) -> list[str]:
    if os.path.exists(path) and not os.path.isfile(path):
        raise errors.bad_file(path, "it is not a file of words.")
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as problem:
        raise errors.bad_file(path, getattr(problem, "strerror", None) or str(problem)) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return [line.strip() for line in text.splitlines()]


def strings(column: Any) -> Iterable[Any]:
    """The texts of a column one by one; None where missing."""
    if isinstance(column, list):
        return column
    content = column.data.tobytes()
    texts: list[str | None] = [content[a:b].decode("utf-8", "replace") for a, b in pairwise(column.offsets.tolist())]
    if column.valid is not None:
        bits = np.unpackbits(column.valid, bitorder="little")[column.valid_offset :][: len(texts)]
        texts = [text if bit else None for text, bit in zip(texts, bits.tolist(), strict=True)]
    return texts
