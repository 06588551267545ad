"""Text: a bag of words whose rows are texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.bag_of_words import BagOfWords
from banbury.families.bags.leave_one_text_out import leave_each_text_out
from banbury.families.bags.parameters import ClassUrn, RowWord
from banbury.families.bags.text_settings import (
    check_choice,
    check_ngrams,
    find_pattern,
    is_whole,
    read_word_list,
    sort_stop_words,
)
from banbury.families.bags.vocabulary import Learned, Pruning, Vocabulary, core_of, every_word, words_by_name
from banbury.families.family import (
    Choice,
    ColumnReader,
    Family,
    Feature,
    Features,
    HeldOutRows,
    check_positive,
    check_settings,
)
from banbury.sums import Words

__all__ = ["Text", "tokens"]

MODELS = ("multinomial", "presence", "bernoulli", "complement", "log_odds")
NO_WORDS = np.zeros(0, dtype=np.uint32)  # word ids
PLAIN = {"damping": None, "length": False}
DAMPED = {"damping": "log", "length": True}
TEXT_CANDIDATES: tuple[dict[str, Any], ...] = (  # tuning tries these models, and two counts suffice for all of them
    *({"model": model, **PLAIN} for model in ("multinomial", "presence", "bernoulli")),
    *({"model": model, **DAMPED} for model in ("multinomial", "log_odds")),
)


@dataclass(frozen=True, repr=False)
class Text(BagOfWords):
    """A text column as a bag of words: how often each word occurs, regardless of order.

    These settings decide what is counted:

    - ``tokens``: "word" (two or more letters, digits or underscores of any script, as in scikit-learn's
      CountVectorizer), "word1" (one or more), "mail" (keeps host names, addresses and IP numbers whole), or a regular
      expression whose single group, if it has one, is the word. Regular expressions use Python's ``re`` and are slow.
    - ``lowercase``: whether to convert to lower case.
    - ``unit``: "words" or "characters".
    - ``ngrams``: (shortest, longest), from 1 to 5 adjacent units, or n for (1, n).
    - ``stop_words``: words to remove before n-grams are built.
    - ``only``: a list of words, or a text file with one word per line. No other words are counted, which limits memory.
    - ``damping``: "log" counts log(1 + n) for a word that occurs n times in a text.
    - ``length``: whether to divide the damped counts of each text by their Euclidean length.

    These settings decide how the model is estimated, and changing them needs no recount:

    - ``model``: "multinomial", "presence" (each word counts once per text), "bernoulli" (absent words are evidence
      too), "complement" (how little a word belongs to all other classes; Rennie et al. 2003) or "log_odds" (log P(word
      | class) − log P(word | all other classes), times (K − 1) / K for K classes that have texts). Damping does not
      apply to "presence" and "bernoulli".
    - ``alpha``: the pseudo-count of the Dirichlet or Beta prior over the vocabulary.
    - ``vocabulary``: a list, or a text file with one word per line. All of them count, seen or not. By default every
      word that occurs in a text.
    - ``drop_most_frequent``: how many of the words with the most occurrences to drop.
    - ``min_count``: drops words with fewer occurrences.
    - ``min_share`` and ``max_share``: drop words that occur in fewer or more than this share of the texts.
    - ``max_words``: keeps only this many of the remaining words, chosen by ``choose_by``: "count", or
      "mutual_information" between presence and class. Ties are broken by name.
    - ``idf``: multiplies counts by log(N / df) for a word that occurs in df of N texts, both when learning and when
      scoring. Text lengths are computed before that, so that one pass is enough (Rennie et al. compute them after).
    - ``norm``: divides the weights of "complement" in each class by the sum of their absolute values. The scores then
      rank classes but are not probabilities, so use class_prior="uniform".

    Words outside the vocabulary are ignored. Under "mle" and "map" the minimum pseudo-count is 1e-10, but "bernoulli"
    keeps zeros. "predictive" is Pólya's urn for "multinomial" and "presence", and the mean for the others and for
    damped or weighted counts.

    >>> import banbury as bb
    >>> texts = ["cheap pills, cheap watches", "lunch at noon?", "pills and watches", "noon is fine for lunch"]
    >>> tally = bb.count({"text": texts}, target=["spam", "ham", "spam", "ham"], features={"text": bb.Text(stop_words=["and"])})
    >>> bb.estimate(tally).predict({"text": ["cheap lunch", "watches and pills"]}).tolist()
    ['spam', 'spam']
    """

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
    absent: ClassVar[str] = "(all other words absent)"
    counting: ClassVar[tuple[str, ...]] = tuple("tokens lowercase unit ngrams stop_words only damping length".split())

    def __post_init__(self) -> None:
        """Raises unless the settings are valid and go together; lists of words become sorted tuples."""
        for setting in ("lowercase", "length", "idf", "norm"):
            value = getattr(self, setting)
            errors.require(isinstance(value, (bool, np.bool_)), setting, value, "True or False")
        check_choice("unit", self.unit, ("words", "characters"))
        check_choice("damping", self.damping, (None, "log"))
        check_choice("model", self.model, MODELS)
        check_choice("choose_by", self.choose_by, ("count", "mutual_information"))
        find_pattern(self.tokens)
        object.__setattr__(self, "ngrams", check_ngrams(self.ngrams))
        object.__setattr__(self, "stop_words", sort_stop_words(self.stop_words, self.lowercase))
        object.__setattr__(self, "vocabulary", read_word_list("vocabulary", self.vocabulary))
        object.__setattr__(self, "only", read_word_list("only", self.only, self.lowercase))
        self._check_numbers()
        self._check_together()

    def _check_numbers(self) -> None:
        """Raises unless the settings that are numbers are in their ranges."""
        check_settings(self, "alpha", zero=True)
        check_positive("min_count", self.min_count, zero=True)
        for setting in ("min_share", "max_share"):
            share = getattr(self, setting)
            is_number = isinstance(share, (int, float, np.number)) and not isinstance(share, bool)
            errors.require(is_number and 0 <= share <= 1, setting, share, "a share of the texts from 0 to 1")
        errors.check_whole("drop_most_frequent", self.drop_most_frequent, 0)
        max_words = self.max_words
        fits = max_words is None or (is_whole(max_words) and max_words >= 1)
        errors.require(fits, "max_words", max_words, "None or a whole number of at least 1")

    def _check_together(self) -> None:
        """Raises if a setting contradicts another one."""
        has_words = self.unit == "words"
        only_words = "omitted when unit='characters', because then there are no words"
        weighs_presence = self.idf and self.model == "bernoulli"
        # The name of a setting, whether it fits the others, and what would.
        for setting, fits, expected in (
            ("min_share", self.min_share <= self.max_share, f"max_share, {self.max_share:g}, at most"),
            ("tokens", has_words or self.tokens == "word", only_words),
            ("stop_words", has_words or self.stop_words is None, only_words),
            ("choose_by", self.choose_by == "count" or self.max_words is not None, "given together with max_words"),
            ("idf", not weighs_presence, "False when model='bernoulli', which has no counts"),
            ("norm", not self.norm or self.model == "complement", "False unless model='complement'"),
        ):
            errors.require(fits, setting, getattr(self, setting), expected)

    def __getstate__(self) -> dict[str, Any]:
        """Returns what is pickled, the settings alone: a tokeniser is made again where it is needed."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self)}

    # How a text becomes word counts

    @cached_property
    def tokeniser(self) -> _core.Tokeniser:
        """The kernel that turns texts into words as the settings say."""
        shortest, longest = check_ngrams(self.ngrams)  # n-gram
        # The name of the pattern that finds words; "given": Python finds them.
        pattern = "given" if self.split is not None else self.tokens
        characters = self.unit == "characters"  # whether tokens are made of characters, not words
        damping_and_length = (
            self.damping == "log",
            bool(self.length),
        )  # whether counts are damped, and divided by length
        only = list(self.only) if isinstance(self.only, tuple) else []  # the words that alone are counted; empty: all
        stop_words = list(self.stop_words or ())
        return _core.Tokeniser(
            pattern, bool(self.lowercase), characters, shortest, longest, stop_words, *damping_and_length, only
        )

    @cached_property
    def split(self) -> re.Pattern[str] | None:
        """The regular expression that finds words, if ``tokens`` is one; None if the kernel finds them."""
        return find_pattern(self.tokens)

    @property
    def reading(self) -> dict[str, Any]:
        """How exports have to read a text: the settings of the tokeniser and how words count."""
        tokeniser = {name: getattr(self, name) for name in ("tokens", "lowercase", "unit", "stop_words", "only")}
        # How a word counts in a text, and whether all words count for the length by which they are divided.
        count = "presence" if self.once else "log" if self.damping else "count"
        length = "all" if self.length and not self.once else "none"
        return {**tokeniser, "ngrams": check_ngrams(self.ngrams), "count": count, "length": length}

    def empty_table(self, feature: Feature, n_classes: int) -> _core.Words:
        """Returns a table without any word, for ``n_classes`` classes; its words are no columns."""
        return _core.Words(n_classes, 0)

    def kernel_input(self, rows: ColumnReader, feature: Feature) -> Any:
        """Returns the texts of rows for the kernels: as they are, or as the words that the regular expression ``split``
        finds, if there is one.
        """
        column = rows.texts(feature.name)  # a list of strings, bytes as Arrow holds them, or texts that are encoded
        is_encoded = isinstance(column, _core.EncodedTexts)  # whether its words were found before
        return column if self.split is None or is_encoded else self.find_words(strings(column))

    def find_words(self, texts: Iterable[Any]) -> _core.TokenLists:
        """Returns the words of each text that the regular expression finds. Anything but a string is a missing text."""
        assert self.split is not None
        words: list[str] = []  # of all texts
        ends = [0]  # where each text's words end, after a 0
        missing = []  # whether each text is missing
        for text in texts:
            is_missing = not isinstance(text, str)
            if not is_missing:
                words += filter(None, self.split.findall(text.lower() if self.lowercase else text))
            ends.append(len(words))
            missing.append(is_missing)
        return _core.TokenLists(words, np.array(ends, dtype=np.int64), np.array(missing) if any(missing) else None)

    def missing_rows(self, rows: ColumnReader, feature: Feature) -> NDArray[np.bool_]:
        """Returns for each row whether its text is missing (rows)."""
        return missing_texts(self.kernel_input(rows, feature), rows.n_rows)

    def bags(self, rows: ColumnReader, feature: Feature, sums: Words, threads: int) -> tuple[Int, Int, Real]:
        """Returns the distinct known words of each text as three arrays: the word ids of text i, and how often each
        occurs, are at ``offsets[i]`` to ``offsets[i + 1]`` of the other two. ``sums`` has the words that are known.
        """
        texts = self.kernel_input(rows, feature)
        if isinstance(texts, _core.EncodedTexts) and texts.times is not None:  # their words were looked up before
            return texts.offsets, texts.ids, texts.times  # type: ignore[return-value]
        # A table with all words that are known.
        table = sums.table if self.vocabulary is None else self.words_in_use(feature, sums).table
        return core_of(table).bags(self.tokeniser, texts, threads)  # type: ignore[return-value]

    def split_text(self, text: str) -> tuple[Any, list[str]]:
        """Returns one text as the kernels take it (a list of one string, or of its words if Python finds them), and its
        tokens in order.
        """
        if self.split is None:
            return [text], self.tokeniser.tokens(text)
        words = self.find_words([text])
        return words, self.tokeniser.tokens(words.tokens)

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Returns where each token of a text stands, (start, end) in ``text[start:end]``, in the order of the
        tokeniser. An n-gram reaches from its first word to its last.
        """
        if self.split is None:
            starts, ends = self.tokeniser.places(text)  # of each token
            return list(zip(starts.tolist(), ends.tolist(), strict=True))
        lowered = text.lower() if self.lowercase else text  # ``split`` is the regular expression that finds words
        group = self.split.groups  # 1 if the word is a group of the expression, 0 if it is the whole match
        # Of the words.
        matches = [match for match in self.split.finditer(lowered) if match.group(group)]
        index_in_text = [  # of each character of ``lowered``: lower case may be longer
            index for index, character in enumerate(text) for _ in (character.lower() if self.lowercase else character)
        ]
        # Of each token, the number of its first word, and of the first word after it.
        first_words, end_words = self.tokeniser.places([match.group(group) for match in matches])
        spans = [match.span(group) for match in matches]  # of the words, in ``lowered``
        return [
            (index_in_text[spans[first][0]], index_in_text[spans[end - 1][1] - 1] + 1)
            for first, end in zip(first_words.tolist(), end_words.tolist(), strict=True)
        ]

    def first_text(self, rows: ColumnReader, name: str) -> str | None:
        """Returns the text of the first row in the column with this name; None if it is missing."""
        text = next(iter(strings(rows.texts(name))), None)
        return text if isinstance(text, str) else None

    def words_of_row(self, rows: ColumnReader, feature: Feature, table: _core.Words) -> list[RowWord] | None:
        """Returns the words of the first row's text that the table has, in the order of their first occurrence; None if
        the text is missing. A word counts its occurrences, or 1 if the model counts each word once.
        """
        text = self.first_text(rows, feature.name)
        if text is None:
            return None
        text_for_kernel, tokens = self.split_text(text)
        _, ids = table.encode(self.tokeniser, text_for_kernel, 1)  # of each token, −1 if unknown; on one thread
        id_of = dict(zip(tokens, ids.tolist(), strict=True))
        indices_of = dict[str, list[int]]()  # the indices in ``tokens`` at which each distinct token stands
        for index, token in enumerate(tokens):
            indices_of.setdefault(token, []).append(index)
        # Of each distinct token: how often it occurs, and how much it counts.
        occurrences = np.array([len(indices) for indices in indices_of.values()], dtype=np.int32)
        amounts = np.ones(len(occurrences))
        if not self.once:
            amounts = self.count_values(np.array([0, len(occurrences)]), occurrences)
        spans = self.token_spans(text)  # where each token starts and ends in the text
        return [
            RowWord(id_of[token], feature.name, token, amount, len(indices), tuple(spans[index] for index in indices))
            for (token, indices), amount in zip(indices_of.items(), amounts.tolist(), strict=True)
            if id_of[token] >= 0
        ]

    def count_values(self, offsets: Int, times: NDArray[np.int32]) -> Real:
        """Returns how much each word of each text counts (as long as ``times``, which has its occurrences), damped and
        divided by the length of the text if the settings say so.

        The words of text i are ``times[offsets[i]:offsets[i + 1]]``; the length is over all of them.
        """
        amounts = np.log1p(times) if self.damping == "log" else times.astype(np.float64)
        if self.length and len(amounts):
            text_of_word = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))  # the number of each word's text
            lengths = np.sqrt(np.bincount(text_of_word, amounts**2, len(offsets) - 1))  # of each text
            amounts = amounts / lengths[text_of_word]
        return np.asarray(amounts)

    # Which words count

    @property
    def counts_tokens(self) -> bool:
        """Whether a score is a sum over tokens of which each counts one: nothing is damped, scaled or weighted."""
        return not self.idf and (self.model == "presence" or not (self.damping or self.length))

    @property
    def pruning(self) -> Pruning:
        """The settings that drop words as too rare, too common or not informative enough."""
        n_dropped = int(self.drop_most_frequent)
        max_words = None if self.max_words is None else int(self.max_words)
        return Pruning(self.min_count, self.min_share, self.max_share, n_dropped, max_words, self.choose_by)

    def words(self, feature: Feature, table: Any, by_name: bool = False) -> Vocabulary:
        """Returns the words of the vocabulary in ``table`` that pruning leaves; ``by_name`` asks for the order of their
        names.
        """
        pruning = self.pruning
        if self.vocabulary is None:
            return pruning.of(every_word(table, by_name or pruning.ranks))
        return pruning.of(self.vocabulary_words(table))

    def vocabulary_words(self, table: Any) -> Vocabulary:
        """Returns the words of the setting ``vocabulary`` as words of ``table``, whether or not any text has them."""
        assert isinstance(self.vocabulary, tuple)
        return words_by_name(table, map(str.lower, self.vocabulary) if self.lowercase else self.vocabulary)

    def words_to_estimate(self, feature: Feature, table: Any, choice: Choice) -> Vocabulary:
        """Returns the words in ``table`` whose rows an estimate makes at once: all, or, where rows can be made later,
        none or only those that scoring needs. Sums of reals are added up by name, so that row order cannot matter.
        """
        is_partial = isinstance(table, Learned)  # some of the counted texts are left out
        # The ids of the words that scoring needs; None for all.
        needed_words = table.needed_ids if is_partial else NO_WORDS if choice.waits else None
        if needed_words is not None and self.separate_count(choice, alpha=1.0) is not None:
            return Vocabulary(table, needed_words, complete=True, size=table.n_words)
        # Whether the estimate adds up numbers that are not whole.
        adds_reals = self.idf or self.norm or self.model == "bernoulli" or self.pruning.any or choice.how == "gibbs"
        words = self.words(feature, table, by_name=adds_reals)
        if table.n_words and not words.n_words and not is_partial:  # those who leave rows out warn once themselves
            warn_of_no_words(feature.name, table.n_words)
        for needs_every_pair, setting in ((choice.how == "gibbs", "how='gibbs'"), (self.norm, "norm=True")):
            if needs_every_pair:
                event_models.check_size(words, feature.name, setting)
        return words

    def separate_count(self, choice: Choice, alpha: float | Real, n_cells: int = 0) -> float | Real | None:
        """Returns the pseudo-count if a word's row of scores depends on its own counts alone, which a vocabulary and
        pruning rule out; else None. ``alpha`` is the prior's pseudo-count, and ``n_cells`` the number of words ×
        classes.
        """
        if self.vocabulary is not None or self.pruning.any:
            return None
        return super().separate_count(choice, alpha)

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Whether the closed formula for leaving one text out applies under this choice."""
        has_formula = self.model in ("multinomial", "presence") and not self.idf and not self.pruning.any
        return has_formula and choice.how != "gibbs" and not self.draws_from_urn(choice)

    def leave_one_out(self, features: Features, sums: Words, choice: Choice, held_out: HeldOutRows) -> Real:
        """Returns log P(text | class) of each held-out text without itself (texts × classes). ``sums`` are the words of
        all texts.
        """
        pseudo_count = self.pseudo_count(choice, choice.alpha if self.alpha is None else self.alpha)
        return leave_each_text_out(self, features[0], sums, held_out, pseudo_count)

    # Drawing

    @property
    def draws_documents(self) -> bool:
        """Whether the length of a drawn text is the mean number of distinct words, because tokens are not counted."""
        return bool(self.once or self.damping or self.length)

    def draw(
        self, names: list[str], urns: Iterable[ClassUrn], n_rows: int, rng: np.random.Generator
    ) -> list[NDArray[Any]]:
        """Draws ``n_rows`` texts: words with spaces between them; returns them as the only column. Presence draws
        distinct words; Bernoulli throws a coin for each. ``names`` are the words of the vocabulary, and ``urns`` what
        the rows of each class are drawn from.
        """
        texts = np.full(n_rows, "", dtype=object)
        words = np.array(names, dtype=object)
        separator = "" if self.unit == "characters" else " "
        for urn in urns:
            for row, word_indices in zip(urn.rows.tolist(), self._draw_words(urn, rng), strict=True):
                texts[row] = separator.join(words[word_indices])
        return [texts]

    def _draw_words(self, urn: ClassUrn, rng: np.random.Generator) -> Iterable[Int]:
        """Yields for each text to draw of one class (``urn``) its words, as indices in the vocabulary."""
        share = urn.share  # P(word | class) of each word; under Bernoulli, P(word in text | class)
        if self.model == "bernoulli":
            return (np.flatnonzero(rng.random(len(share)) < share) for _ in urn.rows)
        lengths = rng.poisson(urn.length, len(urn.rows))  # words of each text
        if self.once:
            n_possible = int((share > 0).sum())
            return (rng.choice(len(share), min(int(n), n_possible), replace=False, p=share) for n in lengths)
        words_of_all_texts = rng.choice(len(share), int(lengths.sum()), p=share)
        texts = np.split(words_of_all_texts, np.cumsum(lengths)[:-1])
        # ``polya``: the balls in Pólya's urn, None if words are drawn independently.
        return texts if urn.polya is None else (_draw_copies(text, urn.polya, rng) for text in texts)


TEXT_SETTINGS = tuple(field.name for field in fields(Text))


def tokens(texts: str | Iterable[str], **settings: Any) -> list[Any]:
    """Returns the tokens of a text in order, or of each of several texts, by the settings of ``bb.Text``.

    >>> import banbury as bb
    >>> bb.tokens("Lunch at noon? At noon!", ngrams=(1, 2), stop_words=["at"])
    ['lunch', 'noon', 'noon', 'lunch noon', 'noon noon']
    """
    family = Text(**settings)
    return family.split_text(texts)[1] if isinstance(texts, str) else [family.split_text(text)[1] for text in texts]


def label_words(family: Family, choice: Choice) -> tuple[bool, float] | None:
    """Returns whether a word counts once in a text, and its pseudo-count, if a word's evidence for a label depends only
    on how often both occur and how often the label does; None for other families and models.
    """
    if not isinstance(family, Text) or choice.how not in ("mean", "map") or family.choose_by != "count":
        return None
    if family.model not in ("multinomial", "presence") or not family.counts_tokens or family.vocabulary is not None:
        return None
    return family.once, family.pseudo_count(choice, choice.alpha if family.alpha is None else family.alpha)


def warn_of_no_words(column: str, n_words: int) -> None:
    """Warns that pruning removed all ``n_words`` words of a column."""
    text = f"none of the {n_words:,} words of column {column!r} is left, so its texts carry no information. Prune "
    errors.warn(
        errors.BanburyWarning(f"{text}less: see min_count, min_share, max_share and drop_most_frequent of bb.Text.")
    )


def strings(column: Any) -> Iterable[Any]:
    """Returns the texts of a column one by one, None where missing; the column is a list, or bytes as Arrow holds them."""
    if isinstance(column, list):
        return column
    content = column.data.tobytes()  # of all texts, in UTF-8; ``offsets`` says where each starts and ends
    texts = [content[start:end].decode("utf-8", "replace") for start, end in pairwise(column.offsets.tolist())]
    missing = missing_texts(column, len(texts)).tolist()
    return [None if is_missing else text for text, is_missing in zip(texts, missing, strict=True)]


def missing_texts(texts: Any, n_texts: int) -> NDArray[np.bool_]:
    """Returns for each of ``n_texts`` texts, as the kernels take them, whether it is missing."""
    if isinstance(texts, list):
        return np.array([not isinstance(text, str) for text in texts], dtype=np.bool_)
    missing = None  # of each text; None: no text is missing
    if not isinstance(texts, _core.ArrowTexts):
        missing = texts.missing
    elif texts.valid is not None:  # one bit per text, from bit ``valid_offset`` on: 0 if it is missing
        missing = np.unpackbits(texts.valid, bitorder="little")[texts.valid_offset :][:n_texts] == 0
    return np.zeros(n_texts, dtype=np.bool_) if missing is None else np.asarray(missing)


def _draw_copies(words: Int, n_balls: float, rng: np.random.Generator) -> Int:
    """Returns words of one text that were drawn independently (their numbers) turned into draws from Pólya's urn with
    ``n_balls`` balls: word t copies an earlier one with probability t / (n_balls + t).
    """
    text = words.copy()
    # Of each word, the index of the earlier word that it copies; below 0: none.
    index_to_copy = np.floor(rng.random(len(text)) * (n_balls + np.arange(len(text))) - n_balls).astype(np.int64)
    for t in np.flatnonzero(index_to_copy >= 0).tolist():
        text[t] = text[min(int(index_to_copy[t]), t - 1)]
    return text
