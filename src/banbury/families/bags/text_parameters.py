"""A bag of words with what was estimated for it: it scores, explains, changes with its counts, and draws texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags import event_models
from banbury.families.bags.event_models import CERTAIN, WordScores
from banbury.families.bags.lexicon import Lexicon
from banbury.families.bags.parameters import BagParameters, Ids
from banbury.families.bags.text_settings import strings
from banbury.families.bags.vocabulary import CELLS, Vocabulary, WordClassPairs, every_word, pairs_of
from banbury.families.evidence import Comparison, TellingValues, Term
from banbury.families.family import (
    Choice,
    ColumnReader,
    LinearWords,
    Parameters,
    by_class,
)

OTHERS = "(all other words absent)"
COMMON = 0.25  # of the texts that were counted have a common word
SOME_WORDS = 1 << 16  # that are looked at together
MOST_ROWS = 1 << 26  # numbers of words × classes that texts are drawn from together


class KnownWord(NamedTuple):
    """A word of a text that is in the vocabulary: which of the text's tokens it is, and whether many texts have it."""

    name: str
    tokens: list[int]
    common: bool


@dataclass(eq=False)
class TextParameters(BagParameters):
    """What every word of a column of text says of each class.

    ``waiting``: rows are made when a text asks for them, and all of them once so many more bytes of text have asked; None: all
    are made.
    """

    waiting: float | None = None

    # Scoring

    def _part(self, rows: ColumnReader) -> _core.Part:
        family = self.family
        scores = self.scores
        texts = family.texts(rows, self.features[0].name)
        self._make_rows_of(texts)
        base = scores.base if scores.polya is None else None
        rows_of_words = self.table, scores.weights, base, scores.constant
        return _core.WordsPart(texts, family.tokeniser, *rows_of_words, self.counting, scores.polya, None)

    @property
    def counting(self) -> bool | str:
        """Whether words count once however often they occur; or as the kernel calls another way."""
        return bool(self.family.once)

    def _missing(self, rows: ColumnReader) -> NDArray[np.bool_]:
        return missing_texts(self.family.texts(rows, self.features[0].name), rows.n_rows)

    # Waiting

    def _make_rows(self, ids: NDArray[Any]) -> None:
        """Makes the rows of these words, −1 aside, if they wait for it."""
        if self.waiting is not None:
            self._set(pairs_of(self.table, np.unique(ids[ids >= 0]).astype(np.uint32)))

    def _make_rows_of(self, texts: Any) -> None:
        """The same of the words of these texts; of all words once enough texts have come."""
        if self.waiting is None:
            return
        self.waiting -= _length(texts)
        if self.waiting < 0:
            self._make_all_rows()
        else:
            self._make_rows(self.table.encode(self.family.tokeniser, texts, 1)[1])

    def _make_all_rows(self) -> None:
        if self.waiting is not None:
            for pairs in every_word(self.table, by_name=False):
                self._set(pairs)
            self.waiting = None

    def _set(self, pairs: WordClassPairs) -> None:
        assert self.pseudo_count is not None
        pairs = pairs.only(pairs.sizes > 0)
        family = self.family
        counts = pairs.documents if family.once else pairs.occurrences
        event_models.set_rows(self.scores, pairs, counts, self.pseudo_count, family.model)

    # Growing

    @property
    def live(self) -> bool:
        """Whether ``follow`` costs the words of a text only."""
        return self.pseudo_count is not None

    def _update_rows(self, ids: Ids) -> None:
        a = self.pseudo_count
        model = self.family.model
        if self.scores.polya is None and model != "log_odds":
            assert isinstance(a, float)
            weights = self.scores.weights
            ids = event_models.follow_whole_counts(weights, self.table, ids, self.family.once, a, model)
        if len(ids):
            pairs = pairs_of(self.table, ids)
            self.scores.weights.skip(pairs.ids[pairs.sizes == 0])
            self._set(pairs)
        self.n_words = self.table.n_words

    # Looking

    def _words_of(self, text: str) -> tuple[list[KnownWord], Real, Real, Real]:
        """The words of a text that are in the vocabulary, in order: with their counts x, rows and scales."""
        family, (texts, tokens) = self.family, self.family.one(text)
        _, ids = self.table.encode(family.tokeniser, texts, 1)
        self._make_rows(ids)
        tokens_of_words: dict[int, tuple[str, list[int]]] = {}
        for i, (token, number) in enumerate(zip(tokens, ids.tolist(), strict=True)):
            if number >= 0:
                tokens_of_words.setdefault(number, (token, []))[1].append(i)
        times = np.array([len(numbers) for _, numbers in tokens_of_words.values()], dtype=np.int64)
        x = family.damp(times, self._every(texts) if family.length else times)
        every = np.array(list(tokens_of_words), dtype=np.uint32)
        there, rows, scale = self.scores.weights.rows(every)
        candidates = zip(tokens_of_words.values(), self._common(every), there.tolist(), strict=True)
        words = [KnownWord(*word, common) for word, common, inside in candidates if inside]
        return words, x[there], rows[there], scale[there]

    def _common(self, ids: Ids) -> list[bool]:
        pairs = pairs_of(self.table, ids)
        least = COMMON * float(self.table.texts().value.sum())
        return [bool(n >= least) for n in pairs.per_word(pairs.documents).tolist()]

    def terms(self, rows: ColumnReader, log_likelihoods: Real) -> list[Term]:
        if not (texts := self.texts(rows)):
            return super().terms(rows, log_likelihoods)
        return [term for text in texts.values() for term in self.evidence(text)]

    def texts(self, rows: ColumnReader) -> dict[str, str]:
        """Decoded, and a number written out."""
        (name,) = self.features[0].inputs
        text = next(iter(strings(rows.texts(name))), None)
        return {name: text} if isinstance(text, str) else {}

    def _unknown(self, text: str) -> list[str]:
        texts, tokens = self.family.one(text)
        _, ids = self.table.encode(self.family.tokeniser, texts, 1)
        self._make_rows(ids)
        there, _, _ = self.scores.weights.rows(np.maximum(ids, 0).astype(np.uint32))
        outside = (ids < 0) | ~there
        return list(dict.fromkeys(token for token, out in zip(tokens, outside.tolist(), strict=True) if out))

    def _every(self, texts: Any) -> NDArray[np.int32]:
        """How often each of a text's words occurs, those outside the table too, which have a part in the text's length."""
        alone = _core.Words(1, 0).count(self.family.tokeniser, texts, np.zeros(1, dtype=np.int32), None, 1)
        return alone.bags(self.family.tokeniser, texts, 1)[2]

    def evidence(self, text: str) -> list[Term]:
        """What each of a text's known words says of every class, in the order they first occur; the sum is the likelihood.

        Under a Bernoulli model the last entry is what all the absent words say together. Under Pólya's urn each token takes an
        equal part in what the text's length says.
        """
        words, x, rows, scale = self._words_of(text)
        scores = self.scores
        rest = scores.constant
        if scores.polya is not None:
            log_likelihoods = _urn(rows, x.astype(np.int64), scores.polya)
        elif scores.certain is not None:
            sure = rows == CERTAIN
            log_likelihoods = np.where(sure, 0.0, rows)
            rest = np.where(sure.sum(axis=0) < scores.certain, -np.inf, rest)
        else:
            log_likelihoods = (x * scale)[:, None] * (rows + scores.base)
        name = self.features[0].name
        places = self.family.places(text)
        word_evidence = zip(
            words, log_likelihoods, (tuple(places[i] for i in word.tokens) for word in words), strict=True
        )
        terms = [Term(name, w.name, says, True, len(w.tokens), stands, w.common) for w, says, stands in word_evidence]
        return [*terms, Term(name, OTHERS, rest)] if rest.any() else terms

    def log_coefficient(self, rows: ColumnReader) -> Real:
        """In how many orders the known words of each text can stand, as a logarithm: the multinomial coefficient."""
        family = self.family
        if family.weighs or not (family.model == "bernoulli" or family.counts_tokens):
            raise errors.bad_setting("the text's family", family, "a model that gives texts a probability")
        texts = strings(rows.texts(self.features[0].name))
        return np.array([self._log_orders(text) if isinstance(text, str) else 0.0 for text in texts])

    def _log_orders(self, text: str) -> float:
        if self.family.model == "bernoulli":
            return 0.0
        times = [1 if self.family.once else len(word.tokens) for word in self._words_of(text)[0]]
        return math.lgamma(sum(times) + 1) - sum(math.lgamma(n + 1) for n in times)

    @property
    def vocabulary(self) -> Vocabulary:
        if self.kept is None:
            return every_word(self.table, by_name=True)
        names = self.table.words(self.kept)
        order = sorted(range(len(names)), key=names.__getitem__)
        return Vocabulary(self.table, self.kept[order], False)

    # Drawing

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        """Texts: words drawn one by one, as many as a Poisson variate with the class's mean says, with spaces between them.

        Presence draws different words, Bernoulli throws a coin for every word.
        """
        if self.family.weighs:
            raise errors.bad_setting(
                "model", self.family.model, "a model that can generate texts, such as 'multinomial'"
            )
        words = self.vocabulary
        texts = np.full(len(classes), "", dtype=object)
        names = np.array(words.table.words(words.ids), dtype=object)
        space = "" if self.family.unit == "characters" else " "
        lengths = self._lengths(words)
        places = by_class(classes, words.n_classes)
        drawn_classes = [c for c, rows in enumerate(places) if len(rows)] if len(names) else []
        step = max(1, MOST_ROWS // max(len(names), 1))
        for block in (drawn_classes[start : start + step] for start in range(0, len(drawn_classes), step)):
            for c, rows in zip(block, self._rows_of(words, block).T, strict=True):
                drawn = self._draw_texts(c, rows, lengths[c], len(places[c]), rng)
                for row, numbers in zip(places[c].tolist(), drawn, strict=True):
                    texts[row] = space.join(names[numbers])
        return [texts]

    def _lengths(self, words: Vocabulary) -> Real:
        """The mean number of a text's tokens in each class; of all where one has no text. Of damped tokens: of its words."""
        family = self.family
        once = family.once or family.damping or family.length
        total = np.zeros(words.n_classes)
        for start in range(0, words.n_words, step := max(1, CELLS // max(words.n_classes, 1))):
            _, classes, occurrences, documents = words.table.pairs(words.ids[start : start + step])
            total += np.bincount(classes, documents if once else occurrences, words.n_classes)
        texts = words.table.texts().value
        pooled = total.sum() / max(float(texts.sum()), 1e-300)
        return np.where(texts > 0, total / np.where(texts > 0, texts, 1.0), pooled)

    def _draw_texts(self, c: int, rows: Real, length: float, n: int, rng: np.random.Generator) -> Iterable[Int]:
        if self.family.model == "bernoulli":
            share = self._share(rows, self.scores)
            return (np.flatnonzero(rng.random(len(share)) < share) for _ in range(n))
        share = rows if self.scores.polya is not None else np.exp(rows - max(float(rows.max()), -1e300))
        share = share / share.sum() if share.any() else np.full(len(rows), 1.0 / len(rows))
        lengths = rng.poisson(length, n)
        if self.family.once:
            possible = int((share > 0).sum())
            return (rng.choice(len(share), min(int(k), possible), replace=False, p=share) for k in lengths)
        drawn = rng.choice(len(share), int(lengths.sum()), p=share)
        texts = np.split(drawn, np.cumsum(lengths)[:-1])
        if self.scores.polya is not None:
            return (_draw_copies(text, float(self.scores.polya[c]), rng) for text in texts)
        return texts

    def _rows_of(self, words: Vocabulary, classes: list[int]) -> Real:
        """The rows of all words in some of the classes; words that are not set have none."""
        self._make_all_rows()
        result = np.empty((words.n_words, len(classes)))
        step = max(1, CELLS // words.n_classes)
        for start in range(0, words.n_words, step):
            there, rows, _ = self.scores.weights.rows(words.ids[start : start + step])
            nothing = -np.inf if self.scores.polya is None else 0.0
            result[start : start + step] = np.where(there[:, None], rows[:, classes], nothing)
        return result


def texts_and_unknown_words(groups: Iterable[Parameters], rows: ColumnReader) -> tuple[dict[str, str], list[str]]:
    """The texts of the first row, by feature, as they are read; and words of them of which nothing is known, each once."""
    texts = dict[str, str]()
    unknown = list[str]()
    for group in groups:
        if isinstance(group, TextParameters):
            group_texts = group.texts(rows)
            texts |= group_texts
            unknown += [word for text in group_texts.values() for word in group._unknown(text)]
    return texts, unknown


def log_orders(parameters: Parameters, rows: ColumnReader) -> Any:
    """What P(value | class) has beside the score, the same in every class: the multinomial coefficients of texts."""
    return parameters.log_coefficient(rows) if isinstance(parameters, TextParameters) else 0.0


def lost_words(parameters: Parameters, sums: Any) -> int:
    """How many words were counted, if the parameters are left with none of them."""
    return sums.table.n_words if isinstance(parameters, TextParameters) and not parameters.n_words else 0


def missing_texts(texts: Any, n_texts: int) -> NDArray[np.bool_]:
    """Which texts there are not, of texts as the kernels take them."""
    if isinstance(texts, list):
        return np.array([type(text) is not str and not isinstance(text, str) for text in texts], dtype=np.bool_)
    if not isinstance(texts, _core.ArrowTexts):
        return np.zeros(n_texts, dtype=np.bool_) if texts.missing is None else np.asarray(texts.missing)
    if texts.valid is None:
        return np.zeros(n_texts, dtype=np.bool_)
    bits = np.unpackbits(texts.valid, bitorder="little")[texts.valid_offset :][:n_texts]
    return np.asarray(bits == 0)


def _length(texts: Any) -> float:
    """How many bytes texts have that the kernels take, about; without end where their words were looked up before."""
    if isinstance(texts, list):
        return sum(len(text) for text in texts if isinstance(text, str))
    if isinstance(texts, _core.ArrowTexts):
        return len(texts.data)
    return 8 * len(texts.tokens) if isinstance(texts, _core.TokenLists) else np.inf


def _urn(rows: Real, times: Int, polya: Real) -> Real:
    """Log-probability of words under Pólya's urn, (words, classes): a token makes its word likelier from then on."""
    total = int(times.sum())
    length = np.log(polya + np.arange(total)[:, None]).sum(axis=0)
    logs = [np.log(row + np.arange(n)[:, None]).sum(axis=0) for row, n in zip(rows, times.tolist(), strict=True)]
    return np.array(logs).reshape(rows.shape) - np.outer(times / max(total, 1), length)


def _draw_copies(fresh: Int, strength: float, rng: np.random.Generator) -> Int:
    """A draw from Pólya's urn: token t is a copy of one of the t before it with probability t / (strength + t)."""
    text = fresh.copy()
    at = np.floor(rng.random(len(text)) * (strength + np.arange(len(text))) - strength).astype(np.int64)
    for t in np.flatnonzero(at >= 0).tolist():
        text[t] = text[min(int(at[t]), t - 1)]
    return text


# Weighed words ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class WeighedTextParameters(TextParameters):
    """The scores of words; of ``often`` a word counts by the root of how often it occurs, else once.

    ``documents`` are the texts of each class that have each word of the lexicon, ``n_texts`` all of them.
    """

    lexicon: Lexicon | None = None
    often: bool = True
    documents: Real | None = None
    n_texts: Real | None = None

    @property
    def counting(self) -> bool | str:
        return "unit" if self.often else "unit once"

    def _words_of(self, text: str) -> tuple[list[KnownWord], Real, Real, Real]:
        words, _, rows, scale = super()._words_of(text)
        times = np.array([len(tokens) for _, tokens, _ in words], dtype=np.float64)
        x = np.sqrt(times) if self.often else np.ones(len(times))
        length = float(np.sqrt(np.sum((x * scale) ** 2)))
        return words, x / length if length else x, rows, scale

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        raise NotImplementedError  # a model draws from its plain parameters

    def log_coefficient(self, rows: ColumnReader) -> Real:
        raise errors.bad_setting("the text", "weighed", "plain to have a probability; use model.weighed(None)")

    def linear(self) -> LinearWords:
        """The same; a text's words count their share of its length."""
        words, weights, scale = self._every_word()
        reading = {**self.family.reading, "count": "root" if self.often else "presence", "length": "known"}
        return LinearWords(words, weights, self.scores.constant, reading, scale)

    def telling(self, compared: Comparison) -> Iterator[TellingValues]:
        """Words by what one of them says in a text of the usual length."""
        assert self.lexicon is not None and self.documents is not None and self.n_texts is not None
        ids = self.lexicon.used.ids
        texts = np.maximum(self.n_texts, 1e-300)
        every = [ids[start : start + SOME_WORDS] for start in range(0, len(ids), SOME_WORDS)]
        rows_and_scales = [self.scores.weights.rows(some)[1:] for some in every]
        having = self.documents.sum(axis=1)
        scale = np.concatenate([scale for _, scale in rows_and_scales]) if rows_and_scales else np.zeros(0)
        usual = max(float(having @ scale**2 / texts.sum()), 1e-300) ** 0.5
        for k, (some, (rows, word_scale)) in enumerate(zip(every, rows_and_scales, strict=True)):
            at = slice(k * SOME_WORDS, k * SOME_WORDS + len(some))
            share = (having[at] / texts.sum())[:, None] * np.exp(
                np.minimum((word_scale / usual)[:, None] * rows, 700.0)
            )
            yield TellingValues(share, self.documents[at] / texts, partial(self._word, some), kind="word")


def weigh_texts(
    lexicon: Lexicon,
    scale: NDArray[np.float32],
    table: NDArray[np.floating[Any]],
    often: bool,
    documents: Real,
    n_texts: Real,
) -> WeighedTextParameters:
    """From the scores of a lexicon's words, (words, classes), and how much each word counts for its rarity."""
    n_words, n_classes = table.shape
    weights = _core.Weights(n_classes, np.zeros(n_classes))
    starts = np.arange(0, (n_words + 1) * n_classes, n_classes, dtype=np.int64)
    classes = np.tile(np.arange(n_classes, dtype=np.int32), n_words)
    rows = table.astype(np.float64).ravel()
    weights.set(lexicon.used.ids, np.zeros(n_words), scale.astype(np.float64), starts, classes, rows)
    scores = WordScores(weights, np.zeros(n_classes), np.zeros(n_classes))
    plain = lexicon.used.table, lexicon.used.ids, n_words, scores, None, None
    return WeighedTextParameters((lexicon.feature,), Choice(), *plain, lexicon, often, documents, n_texts)
