"""A weighed model: the weights of a plain model's columns and of pairs of them, and corrections, in tables of scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from math import comb
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int, Real
from banbury.families.bags.lexicon import Lexicon
from banbury.families.cells import MANY_NODES, Cells, find_cells
from banbury.families.evidence import Comparison, InformativeValues
from banbury.families.family import ColumnReader, Features, Parameters
from banbury.families.keys import number_values
from banbury.model.naive_bayes import Model, check_seed, estimate
from banbury.progress import Steps
from banbury.rows.sampling import sample_rows
from banbury.sums import Keys
from banbury.tally.table import Table, open_table
from banbury.tally.tally import Tally
from banbury.threads import OneBlasThread, n_threads
from banbury.weighing.columns import WeighedColumns, count_cells
from banbury.weighing.corrections import COMMON_WORD_VALUE
from banbury.weighing.evidence import CountedEvidence, PairedColumns, WeighedPair, most_pair_cells
from banbury.weighing.learning import MOST_PAIRS, Weights, learn_weights, n_columns_to_pair
from banbury.weighing.rows import CountsOutsideSample, WeighedRows
from banbury.weighing.texts import LearnedTexts
from banbury.weighing.words import ScaledParameters, text_parameters

FEWEST_ROWS = 100  # below which weights do not help
MOST_NATS = 500.0  # larger scores of a cell count as this when values are compared, so that their exponential is finite


@dataclass(frozen=True)
class Weighing:
    """Weights and corrections of evidence, with the digest of the tally they were learned from."""

    weights: Weights
    classes: tuple[Any, ...]  # in the order of the learned arrays
    digest: str
    paired: bool = True  # whether pairs were looked for
    sample: int | None = None  # the number of rows that they were learned from, if these are not all

    @property
    def columns(self) -> tuple[Cells, ...]:
        """The columns that have cells."""
        return self.weights.columns

    def __str__(self) -> str:
        """Names the number of columns, pairs and words that are weighed, and the strength of the corrections."""
        weights = self.weights
        n_columns = len(weights.columns) + len(weights.scored)
        phrases = [errors.many(n_columns, "column")] * bool(n_columns)
        n_examined, n_pairs = self._count_pairs()  # pairs that were examined, and all pairs
        pairs_note = f" (looked at {n_examined:,} of {n_pairs:,} pairs)" if self.paired and n_examined < n_pairs else ""
        phrases += [errors.many(len(weights.pairs), "pair") + pairs_note] * bool(weights.pairs or pairs_note)
        phrases += [f"{errors.many(len(text.words), 'word')} of {text.column!r}" for text in weights.texts]
        strengths = ", ".join(f"{strength:g}" for strength in weights.strengths)  # the values of C
        phrases += [f"corrected with C = {strengths}"] * bool(strengths)
        phrases += [] if self.sample is None else [f"learned from a sample of {self.sample:,} rows"]
        return ", ".join(phrases)

    __repr__ = __str__

    def worth(self) -> dict[str, float]:
        """The weight of each column with cells, of each trend, of each pair of columns, of each text column, and of
        each other column, by name.
        """
        names = [cells.feature.name for cells in self.columns]  # in the order of the weights
        names += [*(f"{names[column]}, by trend" for column in self.weights.trends), *self._pair_names()]
        names += [*(text.column for text in self.weights.texts), *self.weights.scored]
        weights: dict[str, float] = {}
        for name, weight in zip(names, self.weights.weights.tolist(), strict=True):
            while name in weights:  # a column may have the name of a trend or a pair
                name += "*"
            weights[name] = weight
        return weights

    def _count_pairs(self) -> tuple[int, int]:
        """Returns how many pairs of columns were examined, and how many there are.

        A pair with too many cells is not examined. If there are more than MOST_PAIRS pairs, only those of the strongest
        columns are.
        """
        # The number of fine nodes of each column that has more than one, besides that for unknown values.
        sizes = np.array([cells.n_fine for cells in self.columns if cells.n_fine > 2], dtype=np.int64)
        n_pairs = comb(len(sizes), 2)
        if not self.paired:
            return 0, n_pairs
        if n_pairs > MOST_PAIRS:
            return comb(n_columns_to_pair(len(sizes)), 2), n_pairs
        can_be_examined = np.outer(sizes, sizes) <= most_pair_cells(len(self.classes))  # columns × columns
        return int(np.count_nonzero(np.triu(can_be_examined, 1))), n_pairs

    @property
    def settings(self) -> dict[str, bool]:
        """The options of ``bb.weigh``, by name, with which the same can be learned from other rows."""
        tried_corrections = self.weights.losses or any(text.losses for text in self.weights.texts)
        return {"pairs": self.paired, "correct": bool(tried_corrections)}

    def _pair_names(self) -> list[str]:
        """Returns the name of each pair, such as ``age with sex``."""
        names = [cells.feature.name for cells in self.columns]
        return [f"{names[pair.first]} with {names[pair.second]}" for pair in self.weights.pairs]

    def _class_numbers(self, tally: Tally) -> list[int]:
        """Returns the number of each of the tally's classes among the classes that the weights were learned with.
        Raises an error if one is not among them.
        """
        if not set(tally.classes).issubset(self.classes):
            text = "the tally has classes that the weights do not cover. Relearn the weights with refit(rows)."
            raise errors.BadSetting(text)
        return [self.classes.index(name) for name in tally.classes]

    def is_stale(self, tally: Tally) -> bool:
        """Whether the tally has learned or forgotten rows since the weights were learned."""
        return bool(tally.digest() != self.digest)

    def log_prior(self, log_prior: Real, tally: Tally) -> Real:
        """Returns the intercepts as a log prior, by class of the tally; another ``log_prior`` (classes,) than that of
        the class frequencies shifts them.
        """
        rows_by_class = tally.rows.value
        # How far the log prior is from that of the class frequencies.
        shift = log_prior - np.log(np.where(rows_by_class > 0, rows_by_class, 1.0) / rows_by_class.sum())
        scores = self.weights.temperature * self._intercepts[self._class_numbers(tally)] + shift
        highest = scores.max()
        return np.asarray(scores - highest - np.log(np.exp(scores - highest).sum()))

    @property
    def _intercepts(self) -> Real:
        """The intercept of each learned class (classes,), including the correction that all texts share."""
        # ``by_kind[3]`` has the weights of text columns, then those of columns that their family scores.
        texts_by_weight = zip(self.weights.by_kind[3], self.weights.texts, strict=False)
        shared_corrections = (
            weight * COMMON_WORD_VALUE * text.corrections[-1].astype(np.float64) for weight, text in texts_by_weight
        )
        return np.asarray(self.weights.intercepts + sum(shared_corrections))

    def parameters(self, model: Model) -> tuple[Parameters, ...]:
        """Returns the parameters that score cells, words and other columns, from what the model's tally counts now: one
        for all columns with cells, one for each text column, and one for each other column.
        """
        tally = model.tally
        class_numbers = self._class_numbers(tally)  # of the tally's classes among those learned
        parameters: list[Parameters] = [] if not self.columns else [self._score_cells(tally, class_numbers)]
        weights = (self.weights.temperature * self.weights.by_kind[3]).tolist()  # of texts, then of other columns
        texts = self.weights.texts
        for weight, learned in zip(weights, texts, strict=False):
            feature = tally.schema[learned.column]
            parameters.append(text_parameters(feature, tally.of(learned.column), learned, class_numbers, weight))
        for weight, name in zip(weights[len(texts) :], self.weights.scored, strict=True):
            own_parameters = next(  # those that the family estimated
                group.select([group.features.names.index(name)])
                for group in model.parameters
                if name in group.features.names
            )
            parameters.append(ScaledParameters(own_parameters.features, own_parameters, weight, len(tally.classes)))
        return tuple(parameters)

    def _score_cells(self, tally: Tally, class_numbers: list[int]) -> WeighedParameters:
        """Returns the weighed scores of the cells of columns and pairs; the scores of a trend are added to those of its
        column. ``class_numbers`` has the number of each of the tally's classes in the learned arrays.
        """
        weights = self.weights
        temperature = weights.temperature
        column_weights, trend_weights, pair_weights, _ = weights.by_kind  # one for each column, trend and pair
        evidence = self._evidence(tally)
        sizes = evidence.layout.sizes + 1  # cells of each column, with one for unknown values
        # The unweighed evidence of each column and pair (cells × classes).
        evidence_tables = [
            *np.split(evidence.by_all_rows, np.cumsum(sizes)[:-1]),
            *(table[:, class_numbers] for table in weights.pair_tables),
        ]
        # The weighed scores of each column and pair (cells × classes).
        tables = [
            temperature * (weight * table + corrections[:, class_numbers])
            for weight, table, corrections in zip(
                [*column_weights, *pair_weights], evidence_tables, weights.corrections, strict=True
            )
        ]
        # The unweighed evidence of each trend (cells × classes).
        trends = np.split(evidence.trends(leave_out=False), np.cumsum(sizes[list(weights.trends)])[:-1])
        for column, weight, trend_evidence in zip(weights.trends, trend_weights, trends, strict=False):
            tables[column] = tables[column] + temperature * weight * trend_evidence
        columns = [
            tally.schema[cells.feature.name] for cells in self.columns
        ]  # as features; then a feature for each pair
        pairs = [
            columns[pair.first]._replace(name=name, columns=(columns[pair.first].name, columns[pair.second].name))
            for pair, name in zip(weights.pairs, self._pair_names(), strict=True)
        ]
        counts = tuple(np.split(evidence.counts, evidence.layout.starts[1:-1]))  # of each column (cells × classes)
        terms = replace(evidence.layout, trends=()).scoring_terms  # for the kernel: columns and pairs
        return WeighedParameters(Features.of([*columns, *pairs]), self.columns, terms, tuple(tables), counts)

    def _evidence(self, tally: Tally) -> CountedEvidence:
        """Returns the evidence of the cells of all columns, from what the tally counts now."""
        counts = np.concatenate(count_cells(tally, self.columns))  # cells of all columns × classes
        n_classes = len(tally.classes)
        codes = np.zeros((0, len(self.columns)), np.uint32)  # no row has cells, because ``counts`` has them all
        classes = np.arange(n_classes, dtype=np.int32)
        # One row for each class, with the weight of all its rows, because only the prior is computed from them.
        rows = WeighedRows(
            codes,
            labels=classes,
            weights=tally.rows.value,
            groups=None,
            bags=(),
            column_scores=np.zeros((n_classes, 0, n_classes)),
        )
        layout = PairedColumns(self.columns, self.weights.trends, self.weights.pairs)
        return CountedEvidence(layout, rows, n_classes, n_threads(None), counts)

    def _without_forgotten(self, tally: Tally) -> Weighing:
        """Returns the weighing without classes, values and words that no row of the tally has any more.

        The last row of each table, which is for values in no cell or for all texts together, stays.
        """
        weights = self.weights
        tally_classes = set(tally.classes)
        class_numbers = [number for number, name in enumerate(self.classes) if name in tally_classes]  # that are left
        # Of each column: the numbers of the cells that are left, and these cells.
        restricted = [cells.restrict(tally.of(cells.feature.name).keys[0]) for cells in self.columns]
        columns = tuple(cells for _, cells in restricted)
        # Of each text column: whether each of its words is left.
        uses_words = [_words_in_use(text, tally) for text in weights.texts]
        keeps_cells = all(new is old for new, old in zip(columns, self.columns, strict=True))
        if len(class_numbers) == len(self.classes) and keeps_cells and all(used.all() for used in uses_words):
            return self
        cells_left = [  # numbers of cells, and of the row of the table for values in no cell
            np.append(cell_numbers, old.n_cells)
            for (cell_numbers, _), old in zip(restricted, self.columns, strict=True)
        ]
        pair_cells_left = [self._pair_cells(pair, cells_left) for pair in weights.pairs]

        def restrict(tables: Sequence[Any], lines_left: Sequence[Any]) -> tuple[Any, ...]:
            """Returns tables (lines × classes) with only the lines that are left of each (their numbers, or whether each
            is left), and only the classes that are left (``class_numbers``).
            """
            return tuple(table[lines][:, class_numbers] for table, lines in zip(tables, lines_left, strict=True))

        word_corrections = restrict(
            [text.corrections for text in weights.texts], [np.append(used, True) for used in uses_words]
        )
        texts = tuple(
            replace(text, words=tuple(compress(text.words, used)), corrections=corrections)
            for text, used, corrections in zip(weights.texts, uses_words, word_corrections, strict=True)
        )
        weights = replace(
            weights,
            columns=columns,
            intercepts=weights.intercepts[class_numbers],
            corrections=restrict(weights.corrections, [*cells_left, *pair_cells_left]),
            pair_tables=restrict(weights.pair_tables, pair_cells_left),
            texts=texts,
        )
        return replace(self, weights=weights, classes=tuple(self.classes[number] for number in class_numbers))

    def _pair_cells(self, pair: WeighedPair, cells_left: Sequence[Int]) -> Int:
        """Returns the numbers of a pair's cells whose two values are both left; ``cells_left`` has the numbers of the
        cells left of each column. All intervals of numbers stay.
        """
        first_cells, second_cells = (  # of the two columns: the numbers of the cells that are left
            np.arange(self.columns[column].n_fine) if self.columns[column].are_intervals else cells_left[column]
            for column in (pair.first, pair.second)
        )
        return np.add.outer(first_cells * self.columns[pair.second].n_fine, second_cells).ravel()


def _words_in_use(text: LearnedTexts, tally: Tally) -> NDArray[np.bool_]:
    """Returns for each of the corrected words of a text column (words,) whether it still occurs in the tally and is
    used by the family. ``text`` is what was learned of the column.
    """
    words = Lexicon.of(tally.schema[text.column], tally.of(text.column)).words  # those that are used now
    if tuple(words) == text.words:
        return np.ones(len(words), dtype=np.bool_)
    words_in_tally = set(words)
    return np.array([word in words_in_tally for word in text.words], dtype=np.bool_)


@dataclass(frozen=True)
class WeighedParameters(Parameters):
    """The weighed scores of the cells of columns and of pairs of columns, which are added up. They draw no rows: a model
    uses its plain parameters for that.

    Attributes:
        features: The columns, and a feature for each pair.
        cells: How the values of each column become cells.
        kernel_terms: For the kernel, how rows find the cells of each feature.
        tables: The scores of the cells of each feature (cells × classes); the last cell is for values never seen.
        counts: The number of rows in each cell of each column (cells × classes).
    """

    features: Features
    cells: tuple[Cells, ...]
    kernel_terms: _core.Terms
    tables: tuple[Real, ...]
    counts: tuple[Real, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns one part for the scoring kernel: the cells of these rows, and the scores of all cells."""
        columns = find_cells(self.cells, rows, n_threads(None))  # the cell of each row, one array per column
        return [_core.CellsPart(columns, self.kernel_terms, self._table)]

    @cached_property
    def _table(self) -> Real:
        """The scores of the cells of all features, one feature after the other (cells of all × classes)."""
        return np.concatenate(self.tables)

    def select(self, index: Sequence[int]) -> Self:
        """Returns the parameters of the features with the numbers in ``index``, in this order."""
        # Of each feature: its column, the cell of each code, the second column (−1: none), what each of its codes adds
        # to the cell, and the number of cells.
        groups = self.kernel_terms.groups
        used_columns = sorted({column for f in index for column in (groups[f][0], groups[f][2]) if column >= 0})
        new_number = {-1: -1} | {column: number for number, column in enumerate(used_columns)}
        selected_groups = (groups[f] for f in index)
        terms = _core.Terms(
            [
                (new_number[first], first_cells, new_number[second], second_cells, sizes)
                for first, first_cells, second, second_cells, sizes in selected_groups
            ]
        )
        features = self.features.take(index)
        tables = tuple(self.tables[f] for f in index)
        cells = tuple(self.cells[column] for column in used_columns)
        counts = tuple(self.counts[column] for column in used_columns)
        return type(self)(features, cells, terms, tables, counts)

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_]:
        """Returns whether each row has a value that no counted row had (rows × features). Pairs and numbers are never
        new.
        """
        is_new = np.zeros((rows.n_rows, len(self.features)), dtype=np.bool_)
        for f, (column, second_column) in enumerate(self.kernel_terms.columns):  # −1: no second column
            cells = self.cells[column]
            if second_column < 0 and not cells.are_intervals:
                value_numbers, _ = number_values(rows.codes(self.features.names[f]), threads=1)  # −1: missing
                is_new[:, f] = (cells.find(rows, threads=1) < 0) & (value_numbers >= 0)
        return is_new

    def categories(self, f: int, column: str) -> Keys | None:
        """Returns the named values of the column with this name, which may be one of a pair; None if it has none. The
        number ``f`` of the feature is not needed.
        """
        return self._cells_of(column).categories

    def cuts(self, column: str | None) -> list[float] | None:
        """Returns the cuts of a column of numbers, in order; None for other columns. ``column`` is its name, which is
        needed for one of a pair.
        """
        return self._cells_of(column or self.features.names[0]).cuts_if_numbers

    def _cells_of(self, column: str) -> Cells:
        """Returns the cells of the column with this name."""
        return next(cells for cells in self.cells if cells.feature.name == column)

    def informative_values(self, compared: Comparison) -> Iterator[InformativeValues]:
        """Yields for each column its values, or intervals of numbers that are not too narrow, so that the most
        informative can be chosen. ``compared`` is not needed here.
        """
        for f, (feature, (column, second_column)) in enumerate(
            zip(self.features, self.kernel_terms.columns, strict=True)
        ):
            if second_column >= 0:  # a pair
                continue
            cells = self.cells[column]
            cell_counts = self.counts[column]
            # Neighbouring cells are joined to nodes, those of the finest level with at most MANY_NODES nodes.
            node_of_cell = cells.plain.levels[cells.plain.up_to(MANY_NODES)]
            first_cells = np.unique(node_of_cell, return_index=True)[1]  # of each node
            last_cells = len(node_of_cell) - 1 - np.unique(node_of_cell[::-1], return_index=True)[1]
            # How much a cell favours each class, without the last cell, which is for values that were never seen.
            odds = np.exp(np.clip(self.tables[f][: len(cell_counts)], -MOST_NATS, MOST_NATS))  # cells × classes
            share_of_rows = cell_counts.sum(axis=1) / max(float(cell_counts.sum()), 1e-300)  # of each cell
            # Of each node: the share of rows that have it, times the odds; and the share of the rows of each class.
            weighted_share, share_in_class = np.zeros((2, len(first_cells), cell_counts.shape[1]))
            np.add.at(weighted_share, node_of_cell, share_of_rows[:, None] * odds)
            np.add.at(share_in_class, node_of_cell, cell_counts / np.maximum(cell_counts.sum(axis=0), 1e-300))
            ends = zip(first_cells.tolist(), last_cells.tolist(), strict=True)
            # Of each node: the column, and the value or interval.
            names = [(feature.name, cells.name(first_cell, last_cell)) for first_cell, last_cell in ends]
            yield InformativeValues(
                weighted_share, share_in_class, names.__getitem__, kind="interval" if cells.are_intervals else "value"
            )


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
        seed: Decides the order in which rows are visited.
        threads: How many threads to use; all cores unless given.
        sample: The maximum number of distinct rows to learn from, with at least one of every class. They are selected
            by their content, so the order of rows does not matter. All rows unless given; 100,000 if they are on an
            engine. ``model.weighing`` has the number of rows used.
        engine: Where to read the rows, as for ``bb.count``.
        partitions: The number of parts that a table in memory is split into for an engine.
        **reading: Options for reading files, as for ``bb.count``.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> model = bb.weigh(bb.count(weather, target="play"), weather)
    >>> model.posterior(weather).shape
    (14, 2)
    """
    check_seed(seed)
    model = estimate(model) if isinstance(model, Tally) else model
    errors.require(isinstance(model, Model), "the model", type(model).__name__, "a Model or a Tally")
    settings: dict[str, Any] = {"pairs": pairs, "correct": correct, "seed": seed}
    target = model.schema.target if target is None and np.ndim(weights) < 2 else target
    reading |= {"engine": engine, "partitions": partitions}
    table = open_table(data, target, schema=model.schema, weights=weights, groups=groups, threads=threads, **reading)
    return model.weighed(learn_table(model.tally, table, sample, threads, **settings))


def learn_table(tally: Tally, table: Any, n_sampled: int | None, threads: int | None, **settings: Any) -> Weighing:
    """Returns weights learned from a table that a tally counted: from a sample of ``n_sampled`` rows, or if that is
    None, from all rows. A table in partitions is always sampled. ``threads`` says how many may read the sample, None
    for all cores; ``settings`` are keyword arguments of ``learn``.
    """
    n_sampled = table.sample_size if n_sampled is None else n_sampled
    if n_sampled is None:
        return learn(tally, table, **settings)
    sample = sample_rows(table, tally, n_sampled)
    n_learned = None if sample.is_whole else sample.n_sampled  # None: all rows
    return learn(tally, sample.table(tally.schema, n_threads(threads)), sample=n_learned, **settings)


def learn(
    tally: Tally,
    table: Table,
    *,
    pairs: bool = True,
    correct: bool = True,
    seed: int = 0,
    sample: int | None = None,
) -> Weighing:
    """Returns weights learned from the rows of a table that a tally counted.

    Args:
        tally: The counts of all rows.
        table: The rows to learn from.
        pairs: Whether to look for pairs of columns.
        correct: Whether to learn corrections.
        seed: Decides the order in which rows are visited.
        sample: If the table is a sample, its number of rows; otherwise None.
    """
    if len(tally.classes) < 2:
        requirement = "at least two classes"
        raise errors.bad_setting("the classes", f"one, {tally.classes[0]!r}", requirement)
    threads = table.labels.threads
    n_classes = len(tally.classes)
    columns = WeighedColumns.of(tally, threads)
    rows = WeighedRows.of(table, tally, columns)
    class_numbers = np.flatnonzero(rows.class_weights(n_classes) > 0).tolist()  # of the classes that have rows
    if len(class_numbers) < 2:
        no_rows = "no row with a weight and a class of the tally"
        problem = f"rows of {tally.classes[class_numbers[0]]!r} alone" if class_numbers else no_rows
        raise errors.bad_setting("the rows", problem, "the rows that were counted, with at least two classes")
    rows = rows if sample is None else replace(rows, outside_sample=CountsOutsideSample.of(tally, columns, rows))
    rows, columns_left = rows.drop_duplicate_columns(columns.cells)  # and the numbers of the columns that stay
    columns = replace(columns, cells=tuple(columns.cells[column] for column in columns_left))
    with OneBlasThread(), Steps() as steps:
        steps.begin("weighing", 1.0)
        weights = learn_weights(columns, rows, n_classes, pairs=pairs, correct=correct, seed=seed, threads=threads)
    return Weighing(weights, tally.classes, tally.digest(), bool(pairs), sample)
