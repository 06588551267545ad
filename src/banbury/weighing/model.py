"""A weighed model: the plain one's columns with what each is worth, pairs of them, and corrections, in one table of scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.cells import MANY_NODES, Cells, cells_by_column
from banbury.families.evidence import Comparison, TellingValues
from banbury.families.family import ColumnReader, Feature, Parameters
from banbury.model.naive_bayes import Model, check_seed, estimate
from banbury.progress import Steps
from banbury.rows.sampling import sample_rows
from banbury.sums import Keys
from banbury.tally.table import Table, open_table
from banbury.tally.tally import Tally
from banbury.threads import OneBlasThread, n_threads
from banbury.weighing.columns import WeighedColumns, count_cells
from banbury.weighing.corrections import COMMON
from banbury.weighing.evidence import EvidenceTables, PairedColumns, WeighedPair, most_pair_cells
from banbury.weighing.learning import MOST_PAIRS, Weights, learn_weights, n_columns_to_pair
from banbury.weighing.rows import CountsElsewhere, WeighedRows
from banbury.weighing.words import ScaledParameters, text_parameters

FEWEST_ROWS = 100  # below which weights do not help
LOUDEST = 500.0  # nats that a cell says, at most, where values are compared


class CorrectedWords(NamedTuple):
    """The words of a column of texts, in the order of their corrections."""

    column: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Weighing:
    """Weights and corrections of evidence, with the digest of the tally they were learned from."""

    weights: Weights
    classes: tuple[Any, ...]
    digest: str
    pair_tables: tuple[Real, ...]  # what the cells of each pair say beyond both columns, (cells, classes)
    texts: tuple[CorrectedWords, ...] = ()
    scored: tuple[str, ...] = ()  # columns that are scored by their family
    paired: bool = True  # whether pairs were looked for
    sample: int | None = None  # rows that they were learned from, where these are not all

    @property
    def columns(self) -> tuple[Cells, ...]:
        return self.weights.columns

    def __str__(self) -> str:
        weights = self.weights
        parts = [errors.many(len(weights.columns) + len(self.scored), "column")] * bool(weights.columns or self.scored)
        looked_at, n_pairs = self.count_pairs()
        pairs_note = f" (looked at {looked_at:,} of {n_pairs:,} pairs)" if self.paired and looked_at < n_pairs else ""
        parts += [errors.many(len(weights.pairs), "pair") + pairs_note] * bool(weights.pairs or pairs_note)
        parts += [f"{errors.many(len(text.words), 'word')} of {text.column!r}" for text in self.texts]
        strengths = ", ".join(f"{c:g}" for c in weights.strengths)
        parts += [f"corrected with C = {strengths}"] * bool(strengths)
        parts += [] if self.sample is None else [f"learned from a sample of {self.sample:,} rows"]
        return ", ".join(parts)

    __repr__ = __str__

    def worth(self) -> dict[str, float]:
        """The weight of each column, of each trend, and of each pair of columns."""
        names = [cells.feature.name for cells in self.columns]
        names += [*(f"{names[j]}, by trend" for j in self.weights.trends), *self._pair_names()]
        names += [*(text.column for text in self.texts), *self.scored]
        weights: dict[str, float] = {}
        for name, weight in zip(names, self.weights.weights.tolist(), strict=True):
            while name in weights:  # a column may be called what a trend or a pair is
                name += "*"
            weights[name] = weight
        return weights

    def count_pairs(self) -> tuple[int, int]:
        """How many pairs of columns were looked at, and how many there are: of many columns those that tell most are paired."""
        nodes = [n for n in (cells.n_fine for cells in self.columns) if n > 2]
        n_pairs = len(nodes) * (len(nodes) - 1) // 2
        if not self.paired or n_pairs > MOST_PAIRS:
            n = n_columns_to_pair(len(nodes)) if self.paired else 0
            return n * (n - 1) // 2, n_pairs
        sizes = np.array(nodes, dtype=np.int64)
        return int(np.count_nonzero(np.triu(np.outer(sizes, sizes) <= most_pair_cells(len(self.classes)), 1))), n_pairs

    @property
    def settings(self) -> dict[str, bool]:
        """What ``bb.weigh`` was told, to learn the same of other rows."""
        return {
            "pairs": self.paired,
            "correct": bool(self.weights.losses or any(text.losses for text in self.weights.texts)),
        }

    def _pair_names(self) -> list[str]:
        names = [cells.feature.name for cells in self.columns]
        return [f"{names[pair.first]} with {names[pair.second]}" for pair in self.weights.pairs]

    def _places(self, tally: Tally) -> list[int]:
        """The places of the tally's classes among those that the weights were learned with; some may be gone by now."""
        if not set(tally.classes).issubset(self.classes):
            text = "the tally has classes that the weights do not cover. Relearn the weights with refit(rows)."
            raise errors.BadSetting(text)
        return [self.classes.index(name) for name in tally.classes]

    def is_stale(self, tally: Tally) -> bool:
        """Whether rows were learned or forgotten since."""
        return bool(tally.digest() != self.digest)

    def log_prior(self, log_prior: Real, tally: Tally) -> Real:
        """Intercepts as a prior, under another prior than the frequencies too."""
        rows = tally.rows.value
        shift = log_prior - np.log(np.where(rows > 0, rows, 1.0) / rows.sum())
        scores = self.weights.temperature * self._intercepts[self._places(tally)] + shift
        highest = scores.max()
        return np.asarray(scores - highest - np.log(np.exp(scores - highest).sum()))

    @property
    def _intercepts(self) -> Real:
        """With what all texts have in common."""
        texts_by_weight = zip(self._given, self.weights.texts, strict=False)
        common = (w * COMMON * text.corrections[-1].astype(np.float64) for w, text in texts_by_weight)
        return np.asarray(self.weights.intercepts + sum(common))

    @property
    def _given(self) -> Real:
        """The weights of texts and of columns that are scored."""
        weights = self.weights
        return weights.weights[len(weights.columns) + len(weights.trends) + len(weights.pairs) :]

    def parameters(self, model: Model) -> tuple[Parameters, ...]:
        """The scores of cells and words, from what the tally counts now."""
        tally = model.tally
        at = self._places(model.tally)
        groups: list[Parameters] = [] if not self.columns else [self._of_cells(tally, at)]
        weights = (self.weights.temperature * self._given).tolist()
        for k, (words, learned) in enumerate(zip(self.texts, self.weights.texts, strict=True)):
            sums = tally.of(words.column)
            feature = tally.schema[words.column]
            groups.append(text_parameters(feature, sums, words.words, learned, at, weights[k]))
        for k, name in enumerate(self.scored, len(self.texts)):
            places = ((group, f) for group in model.parameters for f in range(len(group.features)))
            plain = next(group.select([f]) for group, f in places if group.features[f].name == name)
            groups.append(ScaledParameters(plain.features, plain, weights[k], len(tally.classes)))
        return tuple(groups)

    def _of_cells(self, tally: Tally, at: list[int]) -> WeighedParameters:
        weights = self.weights
        evidence = self._evidence(tally)
        n = len(self.columns)
        of_pairs = n + len(weights.trends)
        sizes = evidence.layout.sizes + 1
        deltas = np.concatenate(weights.corrections[:n])[:, at]
        scores = weights.temperature * (np.repeat(weights.weights[:n], sizes)[:, None] * evidence.plain + deltas)
        pairs_by_weight = zip(weights.weights[of_pairs:], self.pair_tables, weights.corrections[n:], strict=False)
        tables = np.split(scores, np.cumsum(sizes)[:-1])
        trends = np.split(evidence.trends(False), np.cumsum(sizes[list(weights.trends)])[:-1])
        for j, w, says in zip(weights.trends, weights.weights[n:of_pairs], trends, strict=False):
            tables[j] = tables[j] + weights.temperature * w * says
        tables += [weights.temperature * (w * table[:, at] + delta[:, at]) for w, table, delta in pairs_by_weight]
        columns = tuple(tally.schema[cells.feature.name] for cells in self.columns)
        names_by_pair = zip(weights.pairs, self._pair_names(), strict=True)
        pairs = tuple(
            columns[p.first]._replace(name=name, columns=(columns[p.first].name, columns[p.second].name))
            for p, name in names_by_pair
        )
        counts = tuple(np.split(evidence.counts, evidence.layout.starts[1:-1]))
        terms = replace(evidence.layout, trends=()).terms
        return WeighedParameters((*columns, *pairs), self.columns, terms, tuple(tables), counts)

    def _evidence(self, tally: Tally) -> EvidenceTables:
        counts = np.concatenate(count_cells(tally, self.columns))
        k = len(tally.classes)
        codes = np.zeros((0, len(self.columns)), np.uint32)
        classes = np.arange(k, dtype=np.int32)
        rows = WeighedRows(codes, classes, tally.rows.value, None, (), np.zeros((k, 0, k)))
        layout = PairedColumns(self.columns, self.weights.trends, self.weights.pairs)
        return EvidenceTables(layout, rows, k, n_threads(None), counts)

    def without_forgotten(self, tally: Tally) -> Weighing:
        """Drops the classes, values and words that no row of the tally has any more."""
        there = set(tally.classes)
        classes = [c for c, name in enumerate(self.classes) if name in there]
        restricted = [cells.restrict(tally.of(cells.feature.name).keys[0]) for cells in self.columns]
        columns = tuple(cells for _, cells in restricted)
        used_words = [_words_in_use(text, tally) for text in self.texts]
        same_cells = all(new is old for new, old in zip(columns, self.columns, strict=True))
        if len(classes) == len(self.classes) and same_cells and all(used.all() for used in used_words):
            return self
        rows = [np.append(places, old.n_cells) for (places, _), old in zip(restricted, self.columns, strict=True)]
        pair_rows = [self._pair_rows(pair, rows) for pair in self.weights.pairs]
        corrections = zip(self.weights.corrections, [*rows, *pair_rows], strict=True)
        of_texts = zip(self.weights.texts, used_words, strict=True)
        weights = replace(
            self.weights,
            columns=columns,
            intercepts=self.weights.intercepts[classes],
            corrections=tuple(table[some][:, classes] for table, some in corrections),
            texts=tuple(
                replace(learned, corrections=learned.corrections[np.append(used, True)][:, classes])
                for learned, used in of_texts
            ),
        )
        pair_tables = zip(self.pair_tables, pair_rows, strict=True)
        return replace(
            self,
            weights=weights,
            classes=tuple(self.classes[c] for c in classes),
            pair_tables=tuple(table[some][:, classes] for table, some in pair_tables),
            texts=tuple(
                CorrectedWords(text.column, tuple(compress(text.words, used)))
                for text, used in zip(self.texts, used_words, strict=True)
            ),
        )

    def _pair_rows(self, pair: WeighedPair, rows: Sequence[Int]) -> Int:
        """The cells of a pair of columns, both of which still have the value; stretches of numbers all stay."""
        first, second = (
            np.arange(self.columns[j].n_fine) if self.columns[j].stretches else rows[j]
            for j in (pair.first, pair.second)
        )
        return np.add.outer(first * self.columns[pair.second].n_fine, second).ravel()


def _words_in_use(text: CorrectedWords, tally: Tally) -> NDArray[np.bool_]:
    """Which of the corrected words still occur in the tally and are used by the family."""
    words = Lexicon.of(tally.schema[text.column], tally.of(text.column)).words
    if tuple(words) == text.words:
        return np.ones(len(words), dtype=np.bool_)
    there = set(words)
    return np.array([word in there for word in text.words], dtype=np.bool_)


@dataclass(frozen=True)
class WeighedParameters(Parameters):
    """The scores of the cells of columns and of pairs, (cells, classes), as they are added up."""

    features: tuple[Feature, ...]
    cells: tuple[Cells, ...]  # of columns
    found_by: _core.Terms
    tables: tuple[Real, ...]
    counts: tuple[Real, ...]  # rows per cell and class, of columns

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        columns = cells_by_column(self.cells, rows, n_threads(None))
        return [_core.CellsPart(columns, self.found_by, self._table)]

    @cached_property
    def _table(self) -> Real:
        return np.concatenate(self.tables)

    def select(self, index: Sequence[int]) -> Self:
        groups = self.found_by.groups
        used = sorted({j for t in index for j in (groups[t][0], groups[t][2]) if j >= 0})
        place = {-1: -1} | {j: k for k, j in enumerate(used)}
        selected = (groups[t] for t in index)
        terms = _core.Terms([(place[a], first, place[b], second, sizes) for a, first, b, second, sizes in selected])
        features = tuple(self.features[t] for t in index)
        tables = tuple(self.tables[t] for t in index)
        cells = tuple(self.cells[j] for j in used)
        counts = tuple(self.counts[j] for j in used)
        return type(self)(features, cells, terms, tables, counts)

    def sample(self, classes: Int, rng: np.random.Generator) -> list[NDArray[Any]]:
        raise NotImplementedError  # a model draws from its plain parameters

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_]:
        new = np.zeros((rows.n_rows, len(self.features)), dtype=np.bool_)
        for f, (j, other) in enumerate(self.found_by.columns):
            cells = self.cells[j]
            if other < 0 and not cells.stretches and rows.first([self.features[f].name])[0] is not None:
                new[:, f] = cells.find(rows, 1) < 0
        return new

    def categories(self, f: int, column: str) -> Keys | None:
        """The named values of a column, or of one of a pair."""
        return self._cells_of(column).categories

    def cuts(self, column: str | None) -> list[float] | None:
        """The cuts of a column of numbers, or of one of a pair."""
        return self._cells_of(column or self.features[0].name).listed_cuts

    def _cells_of(self, column: str) -> Cells:
        return next(cells for cells in self.cells if cells.feature.name == column)

    def telling(self, compared: Comparison) -> Iterator[TellingValues]:
        """Values, and stretches of numbers that are not too narrow, by what their cells are worth."""
        for t, (feature, (j, other)) in enumerate(zip(self.features, self.found_by.columns, strict=True)):
            if other >= 0:
                continue
            cells = self.cells[j]
            rows = self.counts[j]
            nodes = cells.plain.levels[cells.plain.up_to(MANY_NODES)]
            first = np.unique(nodes, return_index=True)[1]
            last = len(nodes) - 1 - np.unique(nodes[::-1], return_index=True)[1]
            odds = np.exp(np.clip(self.tables[t][: len(rows)], -LOUDEST, LOUDEST))
            worth = (rows.sum(axis=1) / max(float(rows.sum()), 1e-300))[:, None] * odds
            share, had = np.zeros((2, len(first), rows.shape[1]))
            np.add.at(share, nodes, worth)
            np.add.at(had, nodes, rows / np.maximum(rows.sum(axis=0), 1e-300))
            ends = zip(first.tolist(), last.tolist(), strict=True)
            names = [(feature.name, cells.name(a, b)) for a, b in ends]
            yield TellingValues(share, had, names.__getitem__, kind="stretch" if cells.stretches else "value")


def weigh(
    model: Model | Tally,
    data: Any,
    target: Any = None,
    *,
    pairs: bool = True,
    correct: bool = True,
    weights: Any = None,
    groups: Any = None,
    seed: int = 0,
    threads: int | None = None,
    sample: int | None = None,
    engine: Any = None,
    partitions: int | None = None,
    **reading: Any,
) -> Model:
    """Weighs the evidence of a model: learns a weight for each column, pairs of columns that add information, and
    corrections.

    The log-odds remain a sum, which ``explain`` shows. Weights are learned from the leave-one-out evidence of every
    row.

    Args:
        model: A model whose tally counted the rows.
        data: These rows.
        target: Their target; the model's target column unless given.
        pairs: Whether to look for pairs of columns.
        correct: Whether to learn corrections.
        weights: The weights with which the rows were counted.
        groups: The group of each row. Rows of a group stay in the same fold where settings are chosen.
        sample: The maximum number of distinct rows to learn from, with at least one of every class. They are selected
            by their content, so the order of rows does not matter. All rows unless given; 100,000 if they are on an
            engine. ``model.weighing`` has the number of rows used.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> model = bb.weigh(bb.count(weather, target="play"), weather)
    >>> model.posterior(weather).shape
    (14, 2)
    """
    check_seed(seed)
    model = estimate(model) if isinstance(model, Tally) else model
    errors.require(isinstance(model, Model), "the model", type(model).__name__, "a Model or a Tally")
    how: dict[str, Any] = {"pairs": pairs, "correct": correct, "seed": seed}
    target = model.schema.target if target is None and np.ndim(weights) < 2 else target
    reading |= {"engine": engine, "partitions": partitions}
    table = open_table(data, target, schema=model.schema, weights=weights, groups=groups, threads=threads, **reading)
    return model.weighed(learn_table(model.tally, table, sample, threads, **how))


def learn_table(tally: Tally, table: Any, n_sampled: int | None, threads: int | None, **how: Any) -> Weighing:
    """Weights of so many rows of a table, which a tally counted; of all rows if not given, but for rows in partitions."""
    n_sampled = table.n_held if n_sampled is None else n_sampled
    if n_sampled is None:
        return learn(tally, table, **how)
    sample = sample_rows(table, tally, n_sampled)
    n_learned = None if sample.is_whole else sample.n_sampled
    return learn(tally, sample.table(tally.schema, n_threads(threads)), sample=n_learned, **how)


def learn(
    tally: Tally,
    table: Table,
    *,
    pairs: bool = True,
    correct: bool = True,
    seed: int = 0,
    sample: int | None = None,
) -> Weighing:
    """Weights of the rows of a table, which a tally counted; those of a ``sample`` of so many of them, on evidence of all."""
    if len(tally.classes) < 2:
        requirement = "at least two classes"
        raise errors.bad_setting("the classes", f"one, {tally.classes[0]!r}", requirement)
    threads = table.labels.threads
    weighed = WeighedColumns.of(tally, threads)
    rows = WeighedRows.of(table, tally, weighed)
    class_numbers = np.flatnonzero(rows.class_weights(len(tally.classes)) > 0).tolist()
    if len(class_numbers) < 2:
        nothing = "no row with a weight and a class of the tally"
        problem = f"rows of {tally.classes[class_numbers[0]]!r} alone" if class_numbers else nothing
        raise errors.bad_setting("the rows", problem, "the rows that were counted, with at least two classes")
    rows = rows if sample is None else replace(rows, elsewhere=CountsElsewhere.of(tally, weighed, rows))
    rows, columns_left = rows.without_twins(weighed.cells)
    columns = tuple(weighed.cells[j] for j in columns_left)
    with OneBlasThread(), Steps() as steps:
        steps.begin("weighing", 1.0)
        k = len(tally.classes)
        how = {"pairs": pairs, "correct": correct}
        weights, tables = learn_weights(columns, rows, k, **how, seed=seed, threads=threads)
    texts = tuple(CorrectedWords(words.feature.name, tuple(words.words)) for words in weighed.texts)
    scored = tuple(feature.name for feature in weighed.scored)
    return Weighing(weights, tally.classes, tally.digest(), tables, texts, scored, bool(pairs), sample)
