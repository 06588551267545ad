"""Joint: a block of columns of values as one table, with a cell for every combination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Bool, Int, Real, divide
from banbury.families import dirichlet
from banbury.families.categorical import Categorical, codes_to_score
from banbury.families.dirichlet import log
from banbury.families.family import (
    Choice,
    ColumnReader,
    Feature,
    Features,
    KeyedParameters,
    RowsToCount,
    check_settings,
    line_by_line,
    rows_by_class,
)
from banbury.families.keys import (
    KEY_TYPES,
    KeyCounter,
    KeyedFamily,
    NumberedValues,
    column_kind,
    count_codes,
    number_values,
)
from banbury.reading import Batch, Codes
from banbury.sums import Combinations, Counts, Keys, nonzero_lines, sort_keys

MOST_COMBINATIONS = 2**62
FEWEST_ROWS_TO_WARN = 50  # of a joint table of fractional numbers
FEW_CELLS = 1 << 16  # tables with a cell for every combination may have so many cells × classes ...
CELLS_PER_ROW = 4  # ... or so many for each row
COLUMNS_TOGETHER = 16  # whose tables are filled together: so many stay in the processor's cache


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
        """Raises unless the pseudo-count is at least 0 or None."""
        check_settings(self, "alpha", zero=True)

    def counter(self, feature: Feature) -> CombinationCounter:
        """Returns the counter that turns the values of a feature of this family into sums."""
        return COMBINATIONS

    def estimate(self, features: Features, sums: Counts, choice: Choice, rng: Generator) -> JointParameters:
        """Estimates the table of the only feature, a block, from its counts (``sums``), as ``choice`` says; ``rng``
        draws under "gibbs".
        """
        (block,) = features
        keys: Any = sums.keys[0]  # combinations that rows have, as tuples of values
        rows = sums.cells.value  # combinations × classes
        _warn_of_fractions(block, rows.sum(axis=1))
        values = tuple(frozenset(key[j] for key in keys) for j in range(len(block.inputs)))  # of each column
        shares = SparseShares.estimate(rows, float(prod(map(len, values))), self._alpha(choice), choice, rng)
        has_no_prior = np.isneginf(shares.empty) | (choice.how == "mle")  # of each class
        # Of a combination with a value that was never counted (classes).
        log_unseen = np.where(has_no_prior, 0.0, shares.empty)
        return JointParameters(features, {key: k for k, key in enumerate(keys)}, values, shares, log_unseen)

    def _alpha(self, choice: Choice) -> float:
        """Returns the pseudo-count of a cell: the family's own, or that of ``choice``, which is for all families."""
        return float(choice.alpha if self.alpha is None else self.alpha)

    def log_prior(self, parameters: JointParameters, sums: Counts, choice: Choice) -> float:
        """Returns what the Dirichlet prior adds to the log-likelihood of these parameters, over all cells and classes."""
        return parameters.shares.log_prior(self._alpha(choice), choice)

    def empty_share(self, feature: Feature, sums: Counts) -> float:
        """Returns the share of all combinations of the values seen that no row has. ``sums`` are those of the feature
        alone.
        """
        n_combinations = prod(_sizes(sums.keys[0], len(feature.inputs)))
        return 1.0 - len(sums.keys[0]) / n_combinations if n_combinations else 0.0

    def n_parameters(self, features: Features, sums: Any) -> list[tuple[int, int]]:
        """Returns one pair for each block: the number of combinations less one, which each class has, and 0 that
        classes share. ``sums`` has the combinations that rows have.
        """
        # For each block, the number of values of each column.
        sizes_of_blocks = [_sizes(keys, len(block.inputs)) for block, keys in zip(features, sums.keys, strict=True)]
        return [(max(prod(sizes) - 1, 0), 0) for sizes in sizes_of_blocks]

    def keys_of(self, rows: ColumnReader, feature: Feature, threads: int = 1, strict: bool = True) -> Codes:
        """Returns each row's combination of values as codes, a tuple with None for a missing value; ``strict`` raises
        for a value that does not fit the type of its column.
        """
        return encode_combinations(rows, feature, threads, counting=strict)

    def can_leave_one_out(self, features: Features, choice: Choice, weighted: bool) -> bool:
        """Returns False: there is no formula for leaving one row out."""
        return False  # refitting is quicker


def columns_of_table(feature: Feature) -> tuple[Feature, ...]:
    """Returns the columns of a joint table, each as a feature of its own."""
    names_and_kinds = zip(feature.columns, feature.kinds, strict=False)
    return tuple(Feature(column, Categorical(), kind=kind) for column, kind in names_and_kinds)


def _warn_of_fractions(block: Feature, rows: Real) -> None:
    """Warns if a block contains fractional numbers whose combinations hardly ever occur twice. ``rows`` has the rows of
    each combination.
    """
    if "float" in block.kinds and rows.sum() >= FEWEST_ROWS_TO_WARN and np.count_nonzero(rows == 1) > rows.sum() / 2:
        text = f"block {block.name!r} is a table of fractional numbers, and more than half of its rows have a "
        text += "combination of values that is unlikely to occur again. Use bb.Histogram() or bb.KernelDensity() "
        errors.warn(errors.BanburyWarning(f"{text}for the block, which group nearby numbers."))


class CombinationCounter(KeyCounter):
    """Counts the rows of each combination of a block's values. A row that lacks one of them is not counted."""

    def scale(self, feature: Feature) -> tuple[Any, ...]:
        """Returns what two blocks must have in common for their counts to be added: the types of their columns
        (``kinds``).
        """
        return (feature.kinds,)

    def settle(self, features: Features, batch: Batch) -> Features:
        """Returns the blocks with the type of each column (``kinds``) in the first rows (``batch``)."""
        return Features.of(
            block._replace(kinds=tuple(column_kind(batch, name) for name in block.inputs)) for block in features
        )

    def count(self, features: Features, rows: RowsToCount) -> tuple[Features, Counts]:
        """Counts the combinations of these rows. Returns the features as they are, and the rows of each combination
        that occurs.
        """
        most_cells_of_table = max(FEW_CELLS, CELLS_PER_ROW * rows.batch.n_rows) / max(len(rows.labels), 1)
        # For each block, the name and type of its columns.
        names_and_kinds = [tuple(zip(feature.inputs, feature.kinds, strict=True)) for feature in features]
        # The numbered values of each column, by its name and type; blocks may share columns.
        columns = {
            column: number_in_order(rows.batch.codes(*column), rows.threads)
            for column in dict.fromkeys(chain.from_iterable(names_and_kinds))
        }
        counts = []  # of each block: combinations that rows have, and their rows (combinations × classes)
        for feature, columns_of_feature in zip(features, names_and_kinds, strict=True):
            block = [columns[column] for column in columns_of_feature]
            if prod(len(column.values) for column in block) > most_cells_of_table:
                counts += count_codes([feature.name], [_combination_codes(feature, rows)], rows)
            else:
                (cells,) = fill_tables(block[:1], block[1:], rows)  # all combinations × classes
                used_cells = np.flatnonzero(nonzero_lines(cells))
                keys: Any = Combinations(tuple(tuple(column.values) for column in block), used_cells)
                counts.append((keys, cells.take(used_cells, 0)))
        return features, Counts.join(counts, len(rows.labels))

    def check_keys(self, feature: Feature, keys: Any) -> Keys:
        """Returns the keys of a block from a file, as tuples of values; raises an error unless they are valid, distinct
        and in order.
        """
        if isinstance(keys, Combinations):  # no file has them: they were made of numbers that were checked
            return keys  # type: ignore[return-value]
        tuples_of_values: Any = tuple(tuple(key) for key in keys)
        n_columns = len(feature.inputs)
        if len(feature.kinds) != n_columns or not all(len(key) == n_columns for key in tuples_of_values):
            raise ValueError(f"the keys of {feature.name!r} are not combinations of its columns")
        types = [KEY_TYPES[kind] for kind in feature.kinds]  # of the values of each column
        for key in tuples_of_values:
            for value, column_type in zip(key, types, strict=True):
                if type(value) is not column_type or value != value:
                    raise TypeError(f"the keys of {feature.name!r} are not all combinations of values")
        if sort_keys(set(tuples_of_values)) != tuples_of_values:
            raise ValueError(f"the keys of {feature.name!r} are not distinct and in ascending order")
        return tuple(tuples_of_values)


def number_in_order(codes: Codes, threads: int) -> NumberedValues:
    """Returns the values of a column (``codes``) in order, and the number of each row's value, from 0 on, −1 if it is
    missing.
    """
    column = number_values(codes, threads)  # distinct values in any order, and the number of each row's value
    values = sort_keys(column.values)
    if values == tuple(column.values):
        return NumberedValues(column.numbers, values)
    number_of = {value: number for number, value in enumerate(values)}
    # The new number of each old one; the last entry is for −1.
    new_numbers = np.array([*(number_of[value] for value in column.values), -1], dtype=np.int32)
    return NumberedValues(new_numbers[column.numbers], values)


Block = Sequence[NumberedValues]


def fill_tables(outer: Block, inner: Block, rows: RowsToCount, columns_together: int = 1) -> Iterator[Integers]:
    """Counts the rows of each combination of a value of one ``outer`` column and values of all ``inner`` columns.
    Yields tables of counts (combinations × classes), each of ``columns_together`` outer columns, one below the other.
    Line i of an outer column's table has the value i // n of this column, where n is the number of inner combinations.
    """
    n_classes = len(rows.labels)
    n_inner = prod(len(column.values) for column in inner)  # combinations of inner values
    # The cell of each row's inner values and class; −1 if it lacks one of them.
    inner_cells = np.zeros(len(rows.classes), dtype=np.int32)
    for column in inner:
        inner_cells = inner_cells * np.int32(len(column.values)) + column.numbers
    inner_cells = inner_cells * np.int32(n_classes) + rows.classes
    for numbers in (rows.classes, *(column.numbers for column in inner)):
        inner_cells[numbers < 0] = -1
    for start in range(0, len(outer), columns_together):
        outer_columns = outer[start : start + columns_together]
        sizes = np.array([len(column.values) for column in outer_columns], dtype=np.int64)  # how many values each has
        value_numbers = [column.numbers for column in outer_columns]  # of each row; −1: missing
        lowest_numbers = np.zeros(len(sizes), dtype=np.int64)
        cells, _ = _core.count_codes(
            value_numbers, lowest_numbers, sizes, inner_cells, n_inner * n_classes, rows.weights, rows.threads
        )
        yield cells.arranged([int(sizes.sum()) * n_inner, n_classes])


def _combination_codes(feature: Feature, rows: RowsToCount) -> Codes:
    """Returns the combinations of rows as codes, numbered as they occur, because far more are possible. A row that
    lacks a value has none (−1).
    """
    combinations = encode_combinations(rows.batch, feature, rows.threads, counting=True)
    tuples: Any = combinations.values  # the distinct combinations
    is_complete = np.array([None not in values for values in tuples], dtype=np.bool_)  # of each
    new_code = np.where(is_complete, np.cumsum(is_complete) - 1, -1).astype(np.int32)
    return Codes(new_code[combinations.codes], low=0, values=list(compress(tuples, is_complete)))


COMBINATIONS = CombinationCounter()


def _sizes(keys: Sequence[Any], n_columns: int) -> list[int]:
    """Returns for each column of a block how many distinct values it has. ``keys`` are its combinations of values."""
    return [len({key[j] for key in keys}) for j in range(n_columns)]


@dataclass(frozen=True)
class SparseShares:
    """The log-shares of the cells of a table, most of which have no rows.

    Args:
        seen: The log-shares of the cells that rows have (cells × classes).
        empty: The log-share of a cell that no row has (classes).
        n_empty: How many cells no row has.
    """

    seen: Real
    empty: Real
    n_empty: float

    @classmethod
    def estimate(cls, rows: Real, n_cells: float, alpha: float, choice: Choice, rng: Generator) -> SparseShares:
        """Estimates the log-shares of ``n_cells`` cells with the pseudo-count ``alpha`` each, from the ``rows`` of the
        occupied ones (cells × classes), as ``choice`` says; ``rng`` draws under "gibbs".
        """
        n_empty = n_cells - len(rows)  # cells without rows
        pseudo_count = dirichlet.prior_counts(alpha, choice.how)  # added to each cell; below 0 at some modes
        weights = np.maximum(rows + pseudo_count, 0.0)  # of the occupied cells (cells × classes)
        empty_count = max(pseudo_count, 0.0)
        empty_weight: Any = np.full(rows.shape[1], empty_count)  # of each other cell (classes)
        if choice.how == "gibbs":
            tiny = np.finfo(float).tiny
            weights = np.maximum(rng.standard_gamma(weights), tiny)
            if n_empty > 0:
                empty_weight = np.maximum(rng.standard_gamma(empty_count * n_empty, rows.shape[1]), tiny) / n_empty
        total = weights.sum(axis=0) + n_empty * empty_weight  # of each class
        equal_share = 1.0 / max(n_cells, 1.0)  # of a cell in a class whose total is 0
        seen = log(divide(weights, total, equal_share))
        return cls(seen, log(divide(empty_weight, total, equal_share)), n_empty)

    def log_prior(self, alpha: float, choice: Choice) -> float:
        """Returns what the prior adds to the log-likelihood, over all classes: the pseudo-count ``alpha`` times the
        log-share of every cell.
        """
        # ``seen`` has the log-shares of the cells that rows have (cells × classes), ``empty`` of any other (classes).
        of_seen_cells = dirichlet.log_prior(self.seen, np.full(len(self.seen), alpha), choice.how)
        if not self.n_empty > 0:  # the number of other cells
            return of_seen_cells
        return of_seen_cells + self.n_empty * dirichlet.log_prior(self.empty[None], np.array([alpha]), choice.how)

    def draw(self, n: int, c: int, rng: Generator) -> Int:
        """Draws n cells of class number c, each as its index in ``seen`` (the log-shares of the cells that rows have);
        the index after the last stands for any other cell.
        """
        # Of each of these cells, and of all others together: there are ``n_empty``, each with the log-share ``empty``.
        share = np.append(np.exp(self.seen[:, c]), self.n_empty * np.exp(self.empty[c]))
        return rng.choice(len(share), n, p=share / share.sum())


def encode_combinations(rows: ColumnReader, feature: Feature, threads: int = 1, counting: bool = False) -> Codes:
    """Returns for each row its combination of values as codes; the distinct combinations are tuples in the order in
    which they occur, with None for a missing value.

    ``counting``: whether a value that does not fit its column's type raises an error, rather than being read as it is.
    """
    columns = [  # the values of each column, and the codes of the rows
        rows.codes(name, kind) if counting else codes_to_score(rows, Feature(name, feature.family, kind=kind))
        for name, kind in zip(feature.inputs, feature.kinds, strict=True)
    ]
    if prod(len(column.values) + 1 for column in columns) > MOST_COMBINATIONS:
        raise too_many_combinations(feature.name, len(feature.inputs))
    codes_and_values = []  # of each column: the place of each row's value among its values, and these values
    stride = 1  # how many combinations the columns so far have
    combination_codes = np.zeros(rows.n_rows, dtype=np.int64)  # Σ place · stride, of each row
    for column in columns:
        codes = np.asarray(column.codes).astype(np.int64) - column.low
        codes = np.where((codes < 0) | (codes >= len(column.values)), len(column.values), codes)
        codes_and_values.append((codes, [*column.values, None]))  # the last is for missing values
        combination_codes += codes * stride
        stride *= len(column.values) + 1
    # Numbers distinct codes as they occur, from their 8 bytes each: the number of each row, and each one's first row.
    combination_numbers, first_rows, _ = _core.encode_records(
        np.ascontiguousarray(combination_codes).view(np.uint8).reshape(-1, 8), threads
    )
    tuples: Any = [tuple(values[int(codes[row])] for codes, values in codes_and_values) for row in first_rows.tolist()]
    return Codes(combination_numbers, low=0, values=tuples)


@dataclass(frozen=True)
class JointParameters(KeyedParameters):
    """The table of a block.

    Args:
        features: The block.
        cells: The number of each combination that rows have.
        seen_values: The values of each column.
        shares: The log-shares of the combinations that rows have, and of all other combinations of these values.
        log_unseen: The log-probability of a combination with a value that was never counted (classes).
    """

    features: Features
    cells: dict[tuple[Any, ...], int]
    seen_values: tuple[frozenset[Any], ...]
    shares: SparseShares
    log_unseen: Real

    def parts(self, rows: ColumnReader) -> list[_core.Part]:
        """Returns the part with which the kernel adds log P(combination | class) of these rows. ``log_unseen`` has a
        number per class.
        """
        combinations = encode_combinations(rows, self.features[0])
        table = np.zeros((len(combinations.values), len(self.log_unseen)))  # distinct combinations × classes
        for k, values in enumerate(combinations.values):
            table[k] = self.log_probability(values)  # type: ignore[arg-type]
        return [line_by_line(combinations.codes, table)]

    def log_probability(self, combination: tuple[Any, ...]) -> Real:
        """Returns log P(combination | class) of a tuple of values (classes). Missing values, which are None, are summed
        out; 0 if all are missing. ``self.seen_values`` has the values of each column that rows had, ``self.shares`` the
        log-shares of combinations, ``self.cells`` the number of each that rows had, and ``self.log_unseen`` the
        log-probability of one with a value that no row had (classes).
        """
        present_columns = [j for j, value in enumerate(combination) if value is not None]
        if not present_columns:
            return np.zeros_like(self.log_unseen)
        seen_columns = [j for j in present_columns if combination[j] in self.seen_values[j]]
        if len(seen_columns) < len(present_columns):  # all values of the other columns are equally likely
            n_equally_likely = float(prod(len(self.seen_values[j]) for j in seen_columns))
            return np.where(self.log_unseen < 0, self.log_unseen - np.log(n_equally_likely), self.log_unseen)
        shares = self.shares
        if len(present_columns) == len(combination):
            cell = self.cells.get(combination)  # its line among the shares; None if no row had it
            return shares.empty if cell is None else np.asarray(shares.seen[cell])
        # The occupied cells, and the number of all cells, that have these values; and the share of the empty ones.
        matching_cells = [
            cell for key, cell in self.cells.items() if all(key[j] == combination[j] for j in present_columns)
        ]
        n_combinations = prod(len(values) for j, values in enumerate(self.seen_values) if j not in present_columns)
        share_of_empty = (n_combinations - len(matching_cells)) * np.exp(shares.empty)
        return log(np.exp(shares.seen[matching_cells]).sum(axis=0) + share_of_empty)

    def categories(self, f: int, column: str) -> Keys:
        """Returns the values that rows had in one column of the block, by its name, in order (``seen_values`` has them
        for each column). ``f`` is 0, the only feature.
        """
        return sort_keys(self.seen_values[self.features[0].columns.index(column)])

    def never_seen(self, rows: ColumnReader) -> Bool:
        """Returns whether each row has a value that no counted row had in its column (rows × 1)."""
        combinations = encode_combinations(rows, self.features[0])
        tuples: Any = combinations.values  # the distinct combinations
        is_unseen = [  # of each; ``seen_values`` has the values of each column that rows had
            any(value is not None and value not in seen for value, seen in zip(values, self.seen_values, strict=True))
            for values in tuples
        ]
        # The last entry is for code −1.
        return np.array([*is_unseen, False], dtype=np.bool_)[combinations.codes][:, None]

    def values(self) -> tuple[Real, list[tuple[int, Any]]]:
        """Returns P(combination | class) of the combinations that rows had (combinations × classes), and for each line
        the feature's number, 0, and the combination. ``cells`` has the number of each such combination, and
        ``shares.seen`` their log-shares.
        """
        return np.exp(self.shares.seen), [(0, key) for key in self.cells]

    def sample(self, classes: Int, rng: Generator) -> list[NDArray[Any]]:
        """Draws a combination for each of these ``classes`` (class numbers): one that rows had, or another if smoothing
        gives it a share. Returns one array per column. ``seen_values`` are the values of each column that rows had.
        """
        keys = list(self.cells)  # the combinations that rows had
        drawn = np.empty((len(classes), len(self.seen_values)), dtype=object)  # values (rows × columns)
        values_by_column = [sorted(values, key=str) for values in self.seen_values]
        for c, rows in enumerate(rows_by_class(classes, len(self.log_unseen))):
            if not keys:  # no row had all values
                continue
            # k is the place of a combination among the keys, or the number of keys for any other.
            for row, k in zip(rows.tolist(), self.shares.draw(len(rows), c, rng), strict=True):
                drawn[row] = keys[k] if k < len(keys) else self._draw_unoccupied(values_by_column, rng)
        return [np.array(column.tolist()) for column in drawn.T]

    def _draw_unoccupied(self, values_by_column: list[list[Any]], rng: Generator) -> tuple[Any, ...]:
        """Draws a combination that no row had, a tuple with one of the values of each column (``values_by_column``).
        ``self.cells`` has the combinations that rows had.
        """
        while True:
            combination = tuple(values[int(rng.integers(len(values)))] for values in values_by_column)
            if combination not in self.cells:
                return combination


def too_many_combinations(block: str, n_columns: int) -> errors.BanburyError:
    """Returns the error for a block (by name) of ``n_columns`` columns whose table would be too large."""
    problem = f"block {block!r} of {n_columns} columns has too many combinations of values (more than 2**62)"
    return errors.BanburyError(f"{problem}. Use fewer columns.")


# Every two columns ----------------------------------------------------------------------------------------------------


JOINT = Joint()


def stack_columns(columns: Sequence[Sequence[Any]]) -> Any:
    """Returns the values of all columns, one column after the other, as a tuple of pairs of the column's number and the
    value.
    """
    return tuple((k, value) for k, values in enumerate(columns) for value in values)


def table_of(columns: Sequence[str]) -> Feature:
    """Returns a feature that is a table of columns, with a cell for every combination. Its name is that of the first
    column.
    """
    kinds: Any = (None,) * len(columns)
    return Feature(columns[0], JOINT, columns=tuple(columns), kinds=kinds)
