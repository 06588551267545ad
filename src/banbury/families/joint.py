"""Joint: a block of columns of values as one table, with a cell for every combination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.families import dirichlet
from banbury.families.categorical import Categorical, values_of
from banbury.families.dirichlet import log
from banbury.families.family import (
    Choice,
    ColumnReader,
    Feature,
    KeyedParameters,
    RowsToCount,
    by_class,
    check_settings,
)
from banbury.families.keys import KEY_TYPES, KeyCounter, KeyedFamily, count_codes, dense_numbers, kind_of
from banbury.reading import Batch, Codes
from banbury.sums import Combinations, Counts, Keys, in_order, lines_with_some

MOST_COMBINATIONS = 2**62
FEWEST_ALONE = 50  # rows of a joint table before it is doubted
FEW_CELLS = 1 << 16  # of tables that have a cell for every combination
CELLS_PER_ROW = 4
TOGETHER = 16  # columns whose tables are filled together: so many stay in the processor's cache


@dataclass(frozen=True, repr=False)
class Joint(KeyedFamily):
    """Several categorical columns modelled jointly: P(a, b, … | class) from a table with a cell for every combination.

    No independence is assumed, so there are many cells with few rows each; ``tally.empty_cells`` is the share without
    rows. ``alpha`` is the pseudo-count of every cell; under "mle" an empty cell has probability 0. A row that lacks one
    of the values is not counted, and is scored by the values it has.

    >>> import banbury as bb
    >>> table = {"a": ["x", "x", "y", "y"], "b": [0, 1, 0, 1], "kind": ["p", "q", "q", "p"]}
    >>> tally = bb.count(table, target="kind", features={("a", "b"): bb.Joint()})
    >>> bb.estimate(tally).predict({"a": ["x", "y"], "b": [0, 0]}).tolist()
    ['p', 'q']
    """

    alpha: float | None = None

    name: ClassVar[str] = "joint"
    block: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_settings(self, "alpha", zero=True)

    def counter(self, feature: Feature) -> CombinationCounter:
        return COMBINATIONS

    def estimate(
        self, features: tuple[Feature, ...], sums: Counts, choice: Choice, rng: np.random.Generator
    ) -> JointParameters:
        alpha = float(choice.alpha if self.alpha is None else self.alpha)
        tables = []
        for f, block in enumerate(features):
            keys, rows = sums.feature(f)
            _warn_of_fractions(block, rows.value.sum(axis=1))
            tables.append(_table(keys, rows.value, len(block.inputs), alpha, choice, rng))
        return JointParameters(features, tuple(tables))

    def log_prior(self, parameters: JointParameters, sums: Counts, choice: Choice) -> float:
        alpha = float(choice.alpha if self.alpha is None else self.alpha)
        return sum(log_prior_of_cells(t.seen, t.empty, t.n_empty, alpha, choice) for t in parameters.tables)

    def empty_share(self, feature: Feature, sums: Counts) -> float:
        every = prod(_sizes(sums.keys[0], len(feature.inputs)))
        return 1.0 - len(sums.keys[0]) / every if every else 0.0

    def n_parameters(self, features: tuple[Feature, ...], sums: Any) -> list[tuple[int, int]]:
        sizes = [_sizes(keys, len(feature.inputs)) for feature, keys in zip(features, sums.keys, strict=True)]
        return [(max(prod(size) - 1, 0), 0) for size in sizes]

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        numbers, tuples = combinations(rows, feature, threads, counting=strict)
        return Codes(numbers, 0, tuples)  # type: ignore[arg-type]

    def can_leave_one_out(self, features: tuple[Feature, ...], choice: Choice, weighted: bool) -> bool:
        return False  # refitting is quicker


def columns_of_table(feature: Feature) -> tuple[Feature, ...]:
    """The columns of a joint table, one by one."""
    names_and_kinds = zip(feature.columns, feature.kinds, strict=False)
    return tuple(Feature(column, Categorical(), kind=kind) for column, kind in names_and_kinds)


def _warn_of_fractions(block: Feature, rows: Real) -> None:
    """Of fractional numbers that hardly two rows have in common."""
    if "float" in block.kinds and rows.sum() >= FEWEST_ALONE and np.count_nonzero(rows == 1) > rows.sum() / 2:
        text = f"block {block.name!r} is a table of fractional numbers, and more than half of its rows have a "
        text += "combination of values that is unlikely to occur again. Use bb.Histogram() or bb.KernelDensity() "
        errors.warn(errors.BanburyWarning(f"{text}for the block, which group nearby numbers."))


class CombinationCounter(KeyCounter):
    """The rows of each combination of the values of a block; a row that lacks one has none."""

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        return (feature.kinds,)

    def settle(self, features: Sequence[Feature], batch: Batch) -> Sequence[Feature]:
        return [f._replace(kinds=tuple(kind_of(batch, name) for name in f.inputs)) for f in features]

    def count(self, features: Sequence[Feature], rows: RowsToCount) -> tuple[Sequence[Feature], Counts]:
        most = max(FEW_CELLS, CELLS_PER_ROW * rows.batch.n_rows) / max(len(rows.labels), 1)
        parts = []
        once = dict[Any, OrderedColumn]()
        for feature in features:
            block = order_columns(feature, rows, once)
            if prod(len(column.values) for column in block) > most:
                parts += count_codes([feature], [_combination_codes(feature, rows)], rows)
            else:
                (cells,) = fill_tables(block[:1], block[1:], rows)
                used = np.flatnonzero(lines_with_some(cells))
                keys: Any = Combinations(tuple(column.values for column in block), used)
                parts.append((keys, cells.take(used, 0)))
        return features, Counts.join(parts, len(rows.labels))

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        if isinstance(keys, Combinations):  # no file has them: they were made of numbers that were checked
            return keys  # type: ignore[return-value]
        combined: Any = tuple(tuple(key) for key in keys)
        width = len(feature.inputs)
        if len(feature.kinds) != width or not all(len(key) == width for key in combined):
            raise ValueError(f"the keys of {feature.name!r} are not combinations of its columns")
        types = [KEY_TYPES[kind] for kind in feature.kinds]
        for part, of_column in ((part, kind) for key in combined for part, kind in zip(key, types, strict=True)):
            if type(part) is not of_column or part != part:
                raise TypeError(f"the keys of {feature.name!r} are not all combinations of values")
        if in_order(set(combined)) != combined:
            raise ValueError(f"the keys of {feature.name!r} are not distinct and in ascending order")
        return tuple(combined)


@dataclass(frozen=True, eq=False)
class OrderedColumn:
    """A column by the numbers of its values, which are in order; −1 where one is missing."""

    numbers: NDArray[np.int32]
    values: Keys

    @classmethod
    def of(cls, codes: Codes, threads: int) -> OrderedColumn:
        numbers, names = dense_numbers(codes, threads)
        values = in_order(names)
        if values != tuple(names):
            place = {name: k for k, name in enumerate(values)}
            numbers = np.array([*(place[name] for name in names), -1], dtype=np.int32)[numbers]
        return cls(numbers, values)


Block = Sequence[OrderedColumn]


def order_columns(feature: Feature, rows: RowsToCount, once: dict[Any, OrderedColumn]) -> list[OrderedColumn]:
    """The columns of a block, each made ``once``."""
    names = list(zip(feature.inputs, feature.kinds, strict=True))
    for column in names:
        if column not in once:
            once[column] = OrderedColumn.of(rows.batch.codes(*column), rows.threads)
    return [once[column] for column in names]


def fill_tables(outer: Block, inner: Block, rows: RowsToCount, together: int = 1) -> Iterator[Integers]:
    """Tables of first columns, so many one below the other: a line for every combination of its values and the others'."""
    n_classes = len(rows.labels)
    size = prod(len(column.values) for column in inner)
    inner_cells = np.zeros(len(rows.classes), dtype=np.int32)
    for column in inner:
        inner_cells = inner_cells * np.int32(len(column.values)) + column.numbers
    inner_cells = inner_cells * np.int32(n_classes) + rows.classes
    for numbers in (rows.classes, *(column.numbers for column in inner)):
        inner_cells[numbers < 0] = -1
    for start in range(0, len(outer), together):
        outer_columns = outer[start : start + together]
        sizes = np.array([len(column.values) for column in outer_columns], dtype=np.int64)
        codes = [column.numbers for column in outer_columns]
        low = np.zeros(len(sizes), dtype=np.int64)
        cells, _ = _core.count_codes(codes, low, sizes, inner_cells, size * n_classes, rows.weights, rows.threads)
        yield cells.arranged([int(sizes.sum()) * size, n_classes])


def _combination_codes(feature: Feature, rows: RowsToCount) -> Codes:
    """The combinations that rows have, numbered as they occur: there may be many more that none has."""
    numbers, tuples = combinations(rows.batch, feature, rows.threads, counting=True)
    complete = np.array([None not in value for value in tuples], dtype=np.bool_)
    place = np.where(complete, np.cumsum(complete) - 1, -1).astype(np.int32)
    keys: Any = list(compress(tuples, complete))
    return Codes(place[numbers], 0, keys)


COMBINATIONS = CombinationCounter()


def _sizes(keys: Sequence[Any], n_columns: int) -> list[int]:
    return [len({key[j] for key in keys}) for j in range(n_columns)]


@dataclass(frozen=True, eq=False)
class JointTable:
    """Log-probabilities of the cells that rows have, of any other, and of a cell of a value never seen, per class."""

    cells: dict[tuple[Any, ...], int]
    values: tuple[frozenset[Any], ...]
    seen: Real  # (cells, classes)
    empty: Real
    new: Real
    n_empty: float

    def of(self, value: tuple[Any, ...]) -> Real:
        """log P(value | class); where some of it is missing, of the rest."""
        present = [j for j, part in enumerate(value) if part is not None]
        places_of_known = [j for j in present if value[j] in self.values[j]]
        if len(places_of_known) < len(present):  # beside a value never seen all others are as likely as one another
            return np.where(
                self.new < 0, self.new - np.log(float(prod(len(self.values[j]) for j in places_of_known))), self.new
            )
        if len(present) == len(value):
            at = self.cells.get(value)
            return self.empty if at is None else np.asarray(self.seen[at])
        match = [at for key, at in self.cells.items() if all(key[j] == value[j] for j in present)]
        free = prod(len(values) for j, values in enumerate(self.values) if j not in present)
        with np.errstate(divide="ignore"):
            both = np.exp(self.seen[match]).sum(axis=0) + (free - len(match)) * np.exp(self.empty)
            return np.asarray(np.log(both))


def _table(
    keys: Sequence[Any], cells: Real, n_columns: int, alpha: float, choice: Choice, rng: np.random.Generator
) -> JointTable:
    values = tuple(frozenset(key[j] for key in keys) for j in range(n_columns))
    every = float(prod(map(len, values)))
    seen, empty = shares(cells, every, alpha, choice, rng)
    new = np.zeros_like(empty) if choice.how == "mle" else np.where(np.isneginf(empty), 0.0, empty)
    return JointTable({key: k for k, key in enumerate(keys)}, values, seen, empty, new, every - len(keys))


def shares(cells: Real, every: float, alpha: float, choice: Choice, rng: np.random.Generator) -> tuple[Real, Real]:
    """Log-shares of the cells that rows have, (cells, classes), and of each of the others, of ``every`` so many in all."""
    n_empty = every - len(cells)
    more = dirichlet.prior_counts(alpha, choice.how)
    weights = np.maximum(cells + more, 0.0)
    rest = max(more, 0.0)
    empty_weight: Any = np.full(cells.shape[1], rest)
    if choice.how == "gibbs":
        tiny = np.finfo(float).tiny
        weights = np.maximum(rng.standard_gamma(weights), tiny)
        if n_empty > 0:
            empty_weight = np.maximum(rng.standard_gamma(rest * n_empty, cells.shape[1]), tiny) / n_empty
    total = weights.sum(axis=0) + n_empty * empty_weight
    nothing = total <= 0
    safe = np.where(nothing, 1.0, total)
    equal = 1.0 / max(every, 1.0)
    return log(np.where(nothing, equal, weights / safe)), log(np.where(nothing, equal, empty_weight / safe))


def log_prior_of_cells(seen: Real, empty: Real, n_empty: float, alpha: float, choice: Choice) -> float:
    """What the prior of a table adds to the log-likelihood: the pseudo-count of every cell times its log-probability."""
    both = np.concatenate([seen, empty[None]])
    pseudo = np.full(len(both), alpha)
    rest = dirichlet.log_prior(both[-1:], pseudo[-1:], choice.how) if n_empty > 0 else 0.0
    return dirichlet.log_prior(both[:-1], pseudo[:-1], choice.how) + n_empty * rest


def combinations(
    rows: ColumnReader, feature: Feature, threads: int = 1, counting: bool = False
) -> tuple[NDArray[np.int32], list[tuple[Any, ...]]]:
    """The number of each row's combination of values, and the combinations, in which None stands for what is missing.

    ``counting``: a value that is not of its column's kind is an error, and not merely one that was never seen.
    """
    names_and_kinds = zip(feature.inputs, feature.kinds, strict=True)
    read = rows.codes if counting else lambda name, kind: values_of(rows, Feature(name, feature.family, kind=kind))
    columns = [read(name, kind) for name, kind in names_and_kinds]
    if prod(len(column.values) + 1 for column in columns) > MOST_COMBINATIONS:
        raise too_many_combinations(feature.name, len(feature.inputs))
    parts = []
    stride = 1
    total = np.zeros(rows.n_rows, dtype=np.int64)
    for column in columns:
        codes = np.asarray(column.codes).astype(np.int64) - column.low
        codes = np.where((codes < 0) | (codes >= len(column.values)), len(column.values), codes)
        parts.append((codes, [*column.values, None]))
        total += codes * stride
        stride *= len(column.values) + 1
    numbers, first, _ = _core.encode_records(np.ascontiguousarray(total).view(np.uint8).reshape(-1, 8), threads)
    tuples = [tuple(values[int(codes[row])] for codes, values in parts) for row in first.tolist()]
    return numbers, tuples


@dataclass(frozen=True)
class JointParameters(KeyedParameters):
    """The tables of some blocks."""

    features: tuple[Feature, ...]
    tables: tuple[JointTable, ...]

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        columns = []
        lookups = []
        tables = []
        start = 0
        for feature, table in zip(self.features, self.tables, strict=True):
            numbers, tuples = combinations(rows, feature)
            nothing = np.array([all(part is None for part in value) for value in tuples], dtype=np.bool_)
            columns.append(np.where(nothing[numbers], -1, numbers) if len(tuples) else numbers)
            lookups.append(np.arange(start, start + len(tuples), dtype=np.uint32))
            zero = np.zeros_like(table.empty)
            tuples_and_gaps = zip(tuples, nothing, strict=True)
            scores = [zero if gone else table.of(value) for value, gone in tuples_and_gaps]
            tables.append(np.array(scores).reshape(len(tuples), len(table.empty)))
            start += len(tuples)
        low = np.zeros(len(columns), dtype=np.int64)
        outside = np.full(len(columns), -1, dtype=np.int64)
        return [_core.TablePart(columns, low, lookups, outside, np.concatenate(tables))]

    def categories(self, f: int, column: str) -> Keys:
        return in_order(self.tables[f].values[self.features[f].columns.index(column)])

    def never_seen(self, rows: ColumnReader) -> NDArray[np.bool_]:
        columns = []
        for feature, table in zip(self.features, self.tables, strict=True):
            numbers, tuples = combinations(rows, feature)
            parts = [zip(value, table.values, strict=True) for value in tuples]
            unseen = [any(part is not None and part not in seen for part, seen in cell) for cell in parts]
            columns.append(np.array([*unseen, False], dtype=np.bool_)[numbers])
        return np.stack(columns, axis=1)

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        names = [(f, key) for f, table in enumerate(self.tables) for key in table.cells]
        return np.exp(np.concatenate([table.seen for table in self.tables])), names

    @cached_property
    def _orders(self) -> list[list[tuple[Any, ...]]]:
        return [list(table.cells) for table in self.tables]

    def sample(self, classes: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[Any]]:
        """Combinations that rows had, or any other where smoothing gives it a share: its values are then drawn one by one."""
        columns: list[NDArray[Any]] = []
        for feature, table, keys in zip(self.features, self.tables, self._orders, strict=True):
            drawn = np.empty((len(classes), len(feature.inputs)), dtype=object)
            options = [sorted(values, key=str) for values in table.values]
            for c, rows in enumerate(by_class(classes, len(table.empty))):
                if not keys:  # no row had all values: none is known
                    continue
                share = np.append(np.exp(table.seen[:, c]), table.n_empty * np.exp(table.empty[c]))
                for row, k in zip(rows.tolist(), rng.choice(len(share), len(rows), p=share / share.sum()), strict=True):
                    drawn[row] = keys[k] if k < len(keys) else self._other(table, options, rng)
            columns += [np.array(column.tolist()) for column in drawn.T]
        return columns

    def _other(self, table: JointTable, options: list[list[Any]], rng: np.random.Generator) -> tuple[Any, ...]:
        while True:
            value = tuple(values[int(rng.integers(len(values)))] for values in options)
            if value not in table.cells:
                return value


def too_many_combinations(block: str, n_columns: int) -> errors.BanburyError:
    what = f"block {block!r} of {n_columns} columns has too many combinations of values (more than 2**62)"
    return errors.BanburyError(f"{what}. Use fewer columns.")


# Every two columns ----------------------------------------------------------------------------------------------------


JOINT = Joint()


def stack_columns(columns: Sequence[Keys]) -> Any:
    """The values of columns, one column below the other, each with the column's number."""
    return tuple((k, value) for k, values in enumerate(columns) for value in values)


def table_of(columns: Sequence[str]) -> Feature:
    """A table of columns, with a cell for every combination; it is called by the first of them."""
    kinds: Any = (None,) * len(columns)
    return Feature(columns[0], JOINT, columns=tuple(columns), kinds=kinds)
