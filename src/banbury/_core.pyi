"""The compiled core: functions take arrays and return arrays, and release the GIL. Classes with state are at the end.

Shapes: n rows, F features, C classes. ``columns`` is a list of arrays that together hold the F features in order:
a 1-D array is one feature, a 2-D array is one feature per column; any strides; float64, float32, or integers of
8 to 64 bits. ``classes`` holds the class of each row; rows of class -1 are passed over. ``weights`` holds the weight of
each row, above zero where the row has a class: None for ones, whole numbers (n,), or units of 10**-18 rows as limbs
(n, 2), the lower limb first, which ``parts`` makes. ``threads`` is the most threads that a function uses.

Counts and sums are exact and come back as ``Integers``. The number of threads and the order of the rows change no bit.
``z`` is (x - origin) / unit, with an ``origin`` and a ``unit`` (a power of two) for each feature.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Int = NDArray[np.int64]
Codes = NDArray[np.int32]
Real = NDArray[np.float64]
Column = NDArray[Any]
LabelSets = tuple[Int, Codes]  # classes of each row: offsets and numbers
RowWeights = NDArray[np.int64] | NDArray[np.uint64] | None

class BadValue(ValueError):
    """A value is refused. ``args`` is (what, feature, row, value).

    what: 'infinite', 'too far', 'not 0 or 1', 'not a count', 'too fine', 'missing' or 'negative'.
    """

def checksum(bytes: NDArray[np.uint8], threads: int) -> int:
    """Returns a 64-bit checksum of the bytes, which every flipped bit changes; ``docs/format.md`` defines it."""

def any_leading_zero(data: NDArray[np.uint8]) -> bool:
    """Says whether some field of a text file, given as bytes, may be a code that looks like a number: 007, -01, 0x1F.

    The answer may be a false yes.
    """

def encode_records(records: NDArray[np.uint8], threads: int) -> tuple[Codes, Int, Int]:
    """Numbers the distinct rows of an (n, width) byte matrix from 0, in the order they first occur.

    Returns the number of each row (its code), the row at which each code first occurs, and how often each code occurs.
    """

def decode_records(records: NDArray[np.uint8], codes: Codes, threads: int) -> NDArray[np.uint8]:
    """Returns the record of each code, one after the other: the bytes of ``records[codes]``."""

def encode_strings(
    offsets: Column,
    data: NDArray[np.uint8],
    valid: NDArray[np.uint8] | None,
    valid_offset: int,
    strip: bool,
    threads: int,
) -> tuple[Codes, Int, Int]:
    """Numbers distinct strings as ``encode_records`` does; string i is data[offsets[i]:offsets[i + 1]].

    ``offsets`` is int32 or int64, n + 1 long. ``valid`` is Arrow's bitmap (string i has bit valid_offset + i, least
    significant first): a string that is not valid gets code -1. ``strip`` removes ASCII white space from both ends
    first.
    """

def parse_fields(
    data: NDArray[np.uint8], delimiter: int, quote: int | None, kinds: str, missing: list[bytes], known: list[bytes]
) -> list[Real | Int | tuple[Codes, list[tuple[int, int]]]] | None:
    """Parses plain lines of text into columns; returns None if the lines are not plain (see ``fields.rs``).

    ``delimiter`` and ``quote`` are bytes; ``kinds`` has a letter for each column: "f" (doubles), "i" (int64) or "s"
    (words). A field that is one of the ``missing`` texts is NaN. Words become codes: the missing texts are numbered
    first, then the words ``known`` of the column, each on a line, then new words in the order they occur. A column of
    words comes with the (first byte, end) in ``data`` of each new word.
    """

def encode_objects(values: list[Any]) -> tuple[Codes, Int, Int] | None:
    """Numbers the distinct str of a list as ``encode_records`` does; None and float NaN get -1.

    Returns None if the list contains any other object.
    """

class Integers:
    """An array of whole numbers of any size, in units of 10**-digits; immutable.

    Equal arrays have equal limbs and digits.
    """

    shape: list[int]
    digits: int  # 0, 18, 36 or more: the lowest multiple of 18 in which all numbers are whole
    value: Real  # the numbers rounded to the nearest double, in this shape
    @staticmethod
    def zeros(shape: list[int]) -> Integers: ...
    @staticmethod
    def of(limbs: Int, digits: int) -> Integers:
        """Makes an array from limbs of 64 bits on the last axis, in two's complement, the lowest limb first."""

    @staticmethod
    def join(arrays: list[Integers]) -> Integers:
        """Concatenates arrays along the first axis."""

    def limbs(self) -> Int:
        """Returns the limbs as ``of`` takes them: (*shape, as few limbs as hold every number)."""

    def values(self, exponent: int) -> Real:
        """Returns the numbers times 2**exponent, each rounded once to a double."""

    def is_negative(self) -> NDArray[np.bool_]:
        """Says for each number whether it is below 0."""

    def is_zero(self) -> NDArray[np.bool_]:
        """Says for each number whether it is 0."""

    def __add__(self, other: Integers) -> Integers: ...
    def __sub__(self, other: Integers) -> Integers: ...
    def times(self, factor: float) -> tuple[Integers, bool]:
        """Multiplies by a factor, rounding down to 18 digits or to those that the array has.

        Also says whether the product is exact.
        """

    def same(self, other: Integers) -> bool:
        """Says whether shape and numbers are equal."""

    def take(self, index: Int, axis: int) -> Integers:
        """Returns cells index[0], index[1] and so on along the axis."""

    def merge(self, index: Int, size: int, axis: int) -> Integers:
        """Moves cell i along the axis to cell index[i] of ``size``, and adds up cells that move to the same one."""

    def arranged(self, shape: list[int], index: Int | None = None) -> Integers:
        """Reshapes the array; with ``index``, cell i of the result is cell index[i], both counted in C order."""

    def deviations(self, sums: Integers, columns: int) -> Real:
        """Returns (n * sum(z_i z_j) - sum(z_i) sum(z_j)) / n for every pair of columns (i, j), j <= i; 0 where n is 0.

        This array holds n, the number of rows of each cell; ``sums`` has one more axis, the sums of the columns' z and
        then of the pairs' products, as ``count_products`` returns them. The result is exact but for the last rounding.
        """

def parts(weights: Real) -> NDArray[np.uint64]:
    """Converts weights in rows to units of 10**-18 rows, (..., 2) limbs; exactly if fifteen digits write a weight.

    For soft labels, (n, C), the parts of a row add up exactly to the sum of its weights, rounded to fifteen digits.
    """

def count_classes(classes: Codes, n_classes: int, weights: RowWeights, threads: int) -> Integers:
    """Returns the weight of the rows of each class, (C,)."""

def count_products(
    columns: Sequence[Column],
    origin: Real,
    unit: Real,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> tuple[Integers, Integers]:
    """Sums z and the products z_i z_j, j <= i, over the rows of each class that have all columns.

    Returns the weight of these rows, (C,), and the sums, (C, F + F(F+1)/2): of z in units of 2**-57, then of products
    in units of 2**-114. Infinite x and |z| above 2**400 raise BadValue.
    """

def has_twins(offsets: Int, columns: NDArray[np.int32], n_columns: int, threads: int) -> bool:
    """Says whether some row of a sparse matrix has a column twice; row i has columns[offsets[i]:offsets[i + 1]]."""

def kernels_left_out(kernel: str, centres: Real, weights: Real, bandwidth: Real, cells: Int, threads: int) -> Real:
    """Computes the log density at the centre of each of ``cells``, leaving out one of the cell's own rows.

    The density is not divided by the number of rows. ``centres`` is (all cells, columns), ascending in the first
    column; ``weights`` are the rows of each cell; ``bandwidth`` has one number per column; ``cells`` are indices.
    """

def one_less(
    columns: Sequence[Column],
    origin: Real,
    unit: Real,
    classes: Codes,
    curves: tuple[Real, Real, Real, Real, Real],
    weights: Real | None,
    enough: tuple[float, float],
    threads: int,
) -> Real:
    """Computes by how much leaving out a row changes the log density of its values in its own class, (rows,).

    The change is NaN where it would not be exact. ``curves`` are the mean, precision, number of rows and spread of
    normal densities, (features, classes) each, and the least variance, (features,). ``enough`` is how much must be left
    of a sum of squares: as a share of it, and as a multiple of the least variance.
    """

def by_class(classes: Codes, n_classes: int, threads: int) -> tuple[Int, Int]:
    """Sorts the rows that have a class by class, keeping their order within each class.

    Returns the rows, and where each class begins among them, then their number, (C + 1,).
    """

def shifted(column: Column, low: int, n_values: int, threads: int) -> Codes:
    """Subtracts ``low`` from each integer; returns -1 where the difference is not one of 0 .. n_values - 1."""

def count_moments(
    columns: Sequence[Column],
    origin: Real,
    unit: Real,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> tuple[Integers, Integers]:
    """Sums z and its square over the rows of each class that have a value, feature by feature.

    Returns the weight of these rows, (F, C), and the sums, (F, C, 2), of z in units of 2**-57 and of z squared in units
    of 2**-114; z is rounded to its unit, and its square is exact. Infinite x and |z| above 2**400 raise BadValue.
    """

def count_codes(
    columns: Sequence[Column],
    low: Int,
    size: Int,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> tuple[Integers, bool]:
    """Counts the rows of each class by value.

    Returns counts, (sum of size, C): those of value low[f] + k of feature f are row sum(size[:f]) + k. Values outside
    low[f] .. low[f] + size[f] - 1 are passed over. Also returns whether some value other than the lowest int64 was
    passed over.
    """

def count_flags(
    columns: Sequence[Column],
    threshold: Real,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> Integers:
    """Counts the rows of each class with x <= threshold[f] (no) and x > threshold[f] (yes), (F, 2, C); NaN is neither.

    If the threshold is NaN, yes is 1, no is 0, and any other number raises BadValue.
    """

def bins(column: Column, start: float, width: float, threads: int) -> Int:
    """Returns floor((x - start) / width) for each row, and the lowest int64 for NaN.

    Infinite x and bins beyond 2**53 raise BadValue.
    """

def count_leading(
    columns: Sequence[Column],
    shifts: Int,
    most: int,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> list[tuple[Int, Integers, int]]:
    """Counts the rows of each class by key: returns each column's keys, ascending, counts (keys, C) and dropped bits.

    A key is the bits of a number, ordered as numbers are, without the lowest bits: ``shifts`` has how many bits are
    dropped in each column at least; more are dropped, as few as possible, until at most ``most`` keys are left.
    """

def cuts_of(cells: Real) -> list[int]:
    """Cuts bins where the classes differ: returns the bins before which it cuts. ``cells`` are rows (bins, classes).

    It cuts by entropy until a cut costs more bits than it saves. U. Fayyad and K. Irani, *Multi-interval discretization
    of continuous-valued attributes for classification learning* (1993).
    """

# The node of each cell, (levels, cells); the strengths of the first level and of all later ones.
Grown = tuple[Int, tuple[float, float]]

class Trees:
    """One tree per column: a tree's levels say to which node each cell belongs, from the widest nodes to the finest.

    ``levels`` has for each column and level the node of each cell. ``cells`` below are rows (cells of all columns, C);
    ``left_out`` means that one row of each class in turn is left out, its own class. Strengths are the rows that a
    prior counts for.
    """

    def __init__(self, levels: Sequence[Sequence[Int]]) -> None: ...
    @staticmethod
    def leaves(bins: Real, totals: Real, sizes: Int, most: int, threads: int) -> list[tuple[Int, Real]]:
        """Joins the bins of each column to at most ``most`` leaves of nearly equally many rows.

        Returns for each column the leaf of every bin, and the rows (leaves, C). ``bins`` are rows (bins of all columns,
        C), ``totals`` the rows of each bin, and ``sizes`` the number of bins of each column.
        """

    @staticmethod
    def grown(cells: Real, totals: Real, sizes: Int, priors: Real, threads: int) -> list[tuple[Grown, Grown | None]]:
        """Grows two trees per column: one by halving, and one that is first cut where the classes differ.

        The second one is None if its cuts gain less than they cost. ``totals`` are the rows of each cell, ``sizes`` the
        number of cells of each column, and ``priors`` the prior of each column, (columns, C).
        """

    def shares(self, cells: Real, strengths: Real, prior: Real, left_out: bool, threads: int) -> Real:
        """Returns P(class | cell) of all columns, (cells, C), or (cells, own class, C) if ``left_out``.

        The prior follows the cells of each column, for values in no cell. ``strengths`` is (columns, 2).
        """

    def shares_by_level(self, cells: Real, strengths: tuple[float, float], prior: Real, left_out: bool) -> list[Real]:
        """Returns P(class | node) of each level of one tree, (nodes, C), or (nodes, own class, C) if ``left_out``."""

    def strengths(
        self, cells: Real, told_apart: Sequence[bool], prior: Real, threads: int
    ) -> tuple[list[tuple[float, float]], Real]:
        """Chooses the strengths that make each column's rows, each left out of its nodes, most likely.

        Returns (first level, later levels) for each column, and its log likelihood minus that under the prior alone.
        ``told_apart`` says for each column whether its first level was cut where the classes differ.
        """

def steps(columns: Sequence[Column], cuts: Sequence[Real], threads: int) -> NDArray[np.uint16]:
    """Counts for each number the cuts of its column that are not above it, (n, F).

    A missing number gets the number of its column's cuts and 1.
    """

def count_cells(
    codes: NDArray[np.uint32], sizes: Int, labels: Codes, weights: Real, n_classes: int, threads: int
) -> Real:
    """Sums the weights of rows by cell and class, (cells of all columns, C).

    ``codes`` is (n, columns), ``sizes`` the number of cells of each column; a code equal to that number is in no cell.
    """

# Column; cell of each code, (codes, levels); second column or -1; what its codes add to the cell; cells of each level.
Group = tuple[int, NDArray[np.uint32], int, NDArray[np.uint32], Sequence[int]]

class Terms:
    """Finds the cells of rows: there is a term for each level of each column and of each pair of columns (a group).

    Rows are the codes of their columns, (n, columns). A table has a row for every cell of all terms, term after term.
    """

    groups: list[Group]
    columns: list[tuple[int, int]]  # of each group: its column and its second column or -1
    n_cells: int  # of all terms
    def __init__(self, groups: Sequence[Group]) -> None: ...
    def __len__(self) -> int: ...
    def scores(
        self,
        codes: NDArray[np.uint32],
        table: Real,
        weights: Real,
        intercepts: Real,
        own: Codes | None,
        threads: int,
    ) -> Real:
        """Adds up for each row the table's rows of its cells, times their terms' weights, and the intercepts: (n, C).

        ``table`` is (cells, C). If ``own``, the class of each row, is not None, it is (cells, own class, C).
        """

    def evidence(
        self, codes: NDArray[np.uint32], table: Real, n_classes: int, own: Codes, given: int, threads: int
    ) -> NDArray[np.float32]:
        """Returns for each row, class and term the table's number for the class minus that for the last class.

        The result is (n, C - 1, terms + given); the last ``given`` columns are left at 0. ``own`` is the class of each
        row.
        """

    def correct(self, codes: NDArray[np.uint32], passes: Passes, mu: Real, table: Real) -> None:
        """Improves μ, (n, C), and corrections, ``table`` (cells, C), in place by passes of dual coordinate ascent."""

    def alike(self, codes: NDArray[np.uint32], threads: int) -> Real:
        """Sums s² over the terms in which two rows share the cell, for every two rows, (n, n)."""

    def spread(self, codes: NDArray[np.uint32], surprise: Real) -> Real:
        """Returns s² times the sum of ``surprise``, C (y − μ) (n, C), over the rows of each cell, (cells, C)."""

def weighed_slope(
    evidence: NDArray[np.float32], weights: Real, intercepts: Real, labels: Codes, row_weights: Real, threads: int
) -> tuple[float, Real]:
    """Returns -Σ log P(label) over rows, and its slope along each weight, then along each intercept.

    ``evidence`` is (n, C - 1, terms), as ``Terms.evidence`` returns it.
    """

class Passes:
    """Settings of dual coordinate ascent over rows.

    ``strengths`` is C (the penalty) times the weight of each row; ``offsets`` the scores each row starts from, (n, C);
    ``orders`` the order of the rows in each pass; ``enough`` the mean change of μ at which passes end.
    """

    def __init__(self, strengths: Real, offsets: Real, orders: Sequence[NDArray[np.uint32]], enough: float) -> None: ...

def correct_alike(alike: Real, labels: Codes, passes: Passes, mu: Real) -> None:
    """Improves μ, (n, C), in place as ``Terms.correct`` does; ``alike`` is what ``Terms.alike`` returns, (n, n)."""

def tempered(
    scores: NDArray[np.float32], labels: Codes, row_weights: Real, ridge: float, most: float, threads: int
) -> tuple[float, float]:
    """Finds the factor, at most ``most``, that makes -Σ log P(label) of scores (n, C) times the factor lowest.

    Returns the lowest loss and the factor. ``ridge`` times (factor - 1)² is added to the loss.
    """

class Bags:
    """Texts as bags of words: text i has the words from ``offsets[i]`` to ``offsets[i + 1]``. W is ``n_words``."""

    offsets: Int
    words: NDArray[np.uint32]
    times: Real  # how often the text has each of its words
    hashes: NDArray[np.uint64]  # of each text, with all its words
    n_words: int
    def __new__(
        cls,
        offsets: Int,
        words: NDArray[np.uint32],
        times: Real,
        hashes: NDArray[np.uint64],
        n_words: int,
    ) -> Self: ...
    @staticmethod
    def ranked(
        offsets: Int, ids: Codes, times: Real, ranks: NDArray[np.uint32], threads: int
    ) -> tuple[Int, NDArray[np.uint32], Real, NDArray[np.uint64]]:
        """Replaces the ids of bags, as ``Words.bags`` returns them, by their ranks; leaves out words of rank 2**32 - 1.

        Returns offsets, ranks (ascending in each text), times, and a hash of each text.
        """

    def count(self, labels: LabelSets, weights: Real, n_classes: int) -> Real:
        """Sums the weights of the texts that have each word, by class, (W, C)."""

    def values(self, often: bool, scale: NDArray[np.float32], threads: int) -> Real:
        """Returns what each word counts in its text: its scale, times the square root of times if ``often``.

        The counts of a text are divided by their Euclidean length, unless that is 0.
        """

    def scores(self, values: Real, table: NDArray[np.float32], threads: int) -> Real:
        """Sums value · table[word] over the words of each text, (n, C); ``table`` is (W, C)."""

    def left_out(
        self,
        values: Real,
        labels: LabelSets,
        others: NDArray[np.float32],
        own: NDArray[np.float32],
        threads: int,
    ) -> Real:
        """Sums as ``scores`` does, by the rows of ``own`` in the text's own classes and of ``others`` in all others."""

    def correct(
        self,
        values: NDArray[np.float32],
        common: float,
        text_variances: NDArray[np.float32],
        passes: Passes,
        mu: NDArray[np.float32],
        table: NDArray[np.float32],
    ) -> None:
        """Improves μ, (n, C), and the corrections in ``table`` in place as ``Terms.correct`` does, over texts.

        ``table`` is (W + 1, 2 C), corrections and then variances of words; its last row belongs to no word but to all
        texts, in each of which it counts ``common``. ``text_variances`` is Σ variance · value² of each text, (n, C).
        """

    def correct_labels(
        self,
        values: NDArray[np.float32],
        common: float,
        text_variances: NDArray[np.float32],
        passes: Passes,
        mu: NDArray[np.float32],
        table: NDArray[np.float32],
        threads: int,
    ) -> None:
        """Improves μ and ``table`` in place as ``correct`` does, for labels that are each a yes or no of its own.

        Labels are worked on in lanes of 8 or 16. The offsets of ``passes`` and ``text_variances`` are (lanes · n,
        labels), ``mu`` is (lanes, n, labels), and ``table`` is (lanes, W + 1, 2, labels).
        """

    def label_scores(
        self,
        values: Real,
        index: tuple[Int, NDArray[np.uint32], Real, Real],
        slopes: Real,
        threads: int,
    ) -> Real:
        """Sums value · (weight of word and label + slope of the label) over the words of each text, (n, labels).

        ``index`` has the weights: where the pairs of each word begin, the label of each pair and what it adds to the
        word's weight for that label, and the weight of each word for every label.
        """

PairRows = tuple[NDArray[np.uint32], Codes, Real, Real]  # codes (n, columns), labels (n,), weights (n,), P(class) (C,)

def pair_gains(
    rows: PairRows,
    nodes: Sequence[Any],
    pairs: Sequence[tuple[int, int]],
    strengths: Real,
    posteriors: Real,
    threads: int,
) -> Real:
    """Measures how much each pair of columns gains over both columns apart, in nats, each row left out of its cells.

    Returns (pairs, 4): the gain, the strength that gains most, and the first and second slope of the loss along the
    pair's weight. ``posteriors`` is P(class) of each row so far, (n, C). ``nodes`` has for each column the fine node of
    each code, the coarse node of each fine one, P(class | node) of coarse and of fine nodes, and the same without a row
    of each class.
    """

def pair_tables(
    rows: PairRows, nodes: Sequence[Any], pairs: Sequence[tuple[int, int]], strengths: Real, threads: int
) -> list[tuple[Real, Real]]:
    """Computes what the cells of each pair say of the classes beyond both columns.

    Returns for each pair two flat arrays: (cells, C), and the same with one row of a class left out, (cells, C, C).
    """

def span(columns: Sequence[Column], threads: int) -> tuple[Int, Int]:
    """Returns the lowest and the highest value of each integer feature, (F,) each; 0 and -1 if it has none.

    The lowest int64, which stands for a missing value, is passed over.
    """

def not_counts(columns: Sequence[Column], threads: int) -> None:
    """Raises BadValue unless every value is NaN or a whole number from 0 to 2**53."""

class NormalPart:
    """Adds constant - precision * (z - mean)**2 for each feature and class, all (F, C).

    With ``power``, adds constant - power * log1p(precision * (z - mean)**2). z is clipped to +-2**400 first; NaN adds
    0.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        origin: Real,
        unit: Real,
        mean: Real,
        precision: Real,
        constant: Real,
        power: Real | None,
    ) -> None: ...

class TablePart:
    """Adds for the integer x of feature f row lookups[f][x - low[f]] of ``table``, (R, C).

    Where the lookup ends, adds row outside[f], or 0 if that is -1.
    """

    def __init__(
        self, columns: Sequence[Column], low: Int, lookups: Sequence[NDArray[np.uint32]], outside: Int, table: Real
    ) -> None: ...

class StepsPart:
    """Adds the row of ``table`` that belongs to each number's cell between its column's cuts; NaN adds 0.

    ``table`` is (cells, C), column after column; n cuts make n + 1 cells.
    """

    def __init__(self, columns: Sequence[Column], cuts: Sequence[Real], table: Real) -> None: ...

class FlagsPart:
    """Adds the row of ``yes`` where x > threshold[f], else of ``no``, (F, C) both; NaN adds 0.

    If the threshold is NaN, a number other than 0 and 1 raises BadValue.
    """

    def __init__(self, columns: Sequence[Column], threshold: Real, no: Real, yes: Real) -> None: ...

class HistogramPart:
    """Adds the log densities of the bin of one column's number; NaN adds 0.

    ``table`` (B, C) has those of the bins first .. first + B - 1, numbered as ``bins`` numbers them. k bins beyond
    either end, the log density of the last bin falls by k * log 2.
    """

    def __init__(self, column: Column, start: float, width: float, first: int, table: Real) -> None: ...

class KernelPart:
    """Adds the log of a kernel density of one column; NaN adds 0.

    In z units: ``centres`` (B,) ascend; ``weights`` (B, C) sum to 1 for each class (or are all 0: adds 0);
    ``bandwidth`` (C,). Adds constant[c] + log(sum_b weights[b, c] * K((z - centres[b]) / bandwidth[c]) / bandwidth[c])
    for kernel 'normal', far out in logs. Compact kernels ('box' on [-1/2, 1/2); 'triangle', 'epanechnikov', 'biweight',
    'triweight', 'cosine' on [-1, 1]): that density mixed as (1 - 1e-6) * density + 1e-6 * normal(floor[0], floor[1])
    (mean, standard deviation in z units).
    """

    def __init__(
        self,
        column: Column,
        origin: float,
        unit: float,
        kernel: str,
        centres: Real,
        weights: Real,
        bandwidth: Real,
        constant: Real,
        floor: Sequence[float] | Real,
    ) -> None: ...

class LinearPart:
    """Adds the cells of a matrix's row times ``weights`` (columns, C), and ``constant`` (C,), as one feature."""

    def __init__(self, matrix: Matrix, weights: Real, constant: Real) -> None: ...

class EllipsePart:
    """Adds constant - q / 2, or with ``power`` constant - power * log1p(q), as one feature of several columns.

    q is the squared length of whiten * (z - mean); ``whiten`` is (C, F, F), ``mean`` (C, F), ``constant`` and ``power``
    (C,). A row that lacks a value adds 0.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        origin: Real,
        unit: Real,
        mean: Real,
        whiten: Real,
        constant: Real,
        power: Real | None,
    ) -> None: ...

class ProductPart:
    """Adds the log of a kernel density of several columns, as one feature: a product of kernels about each centre.

    ``centres`` (cells, F) ascend in the first column; ``weights`` (cells, C), ``bandwidth`` (C, F) and ``floor`` (2, F)
    are as in ``KernelPart``. The density is that of the columns that a row has.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        origin: Real,
        unit: Real,
        kernel: str,
        centres: Real,
        weights: Real,
        bandwidth: Real,
        floor: Real,
    ) -> None: ...

class WordsPart:
    """Adds the score of a text, as one feature: constant[c] + sum_w x_w s_w (row_w[c] + base[c]) over its words w.

    s_w and row_w are the scale and the row of word w in ``weights``; words without a row are ignored, and a missing
    text adds 0. If the text has the word n_w times, x_w is 1 if ``counting`` is True, what the tokeniser makes of n_w
    if False, and for "unit" the square root of n_w, for "unit once" 1, divided so that the squares of x_w s_w sum to 1.

    With ``polya`` (C,), and None for ``base``, adds instead constant[c] + sum_w sum_{j < n_w} log(row_w[c] + j) -
    sum_{t < T} log(polya[c] + t), T = sum_w n_w (n_w = 1 if ``counting`` is True). ``rough`` has the same rows in
    single precision, or is None.
    """

    def __init__(
        self,
        texts: Any,
        tokeniser: Tokeniser,
        words: Words,
        weights: Weights,
        base: Real | None,
        constant: Real,
        counting: bool | str,
        polya: Real | None,
        rough: Rough | None,
    ) -> None: ...

class CellsPart:
    """Adds for each term the row of ``table`` (cells of all terms, C) that belongs to the row's cell.

    Each term is a feature; terms have a single level.
    """

    def __init__(self, columns: Sequence[Column], terms: Terms, table: Real) -> None: ...

Part = (
    NormalPart
    | TablePart
    | StepsPart
    | FlagsPart
    | HistogramPart
    | KernelPart
    | LinearPart
    | EllipsePart
    | ProductPart
    | WordsPart
    | CellsPart
)

def score(n_rows: int, log_prior: Real, parts: Sequence[Part], want: str, threads: int) -> tuple[NDArray[Any], int]:
    """Adds the log-likelihoods of all parts to the log prior, (C,), row by row, in one pass.

    ``want`` says what is returned: 'log_joint', 'posterior' or 'log_posterior', (n, C) float64; 'class', (n,) int32,
    the first of the best; 'parts', (n, features of all parts in order, C), each feature's own log-likelihood without
    the prior. Also returns how many rows are impossible in every class (-inf): these get the prior for 'posterior',
    'log_posterior' and 'class'. Infinite x raises BadValue, whose feature counts over all parts.
    """

# Text ----------------------------------------------------------------------------------------------------------------

class ArrowTexts:
    """Texts in Arrow's arrays, which are the arguments of ``encode_strings``."""

    offsets: Column
    data: NDArray[np.uint8]
    valid: NDArray[np.uint8] | None
    valid_offset: int
    def __init__(
        self, offsets: Column, data: NDArray[np.uint8], valid: NDArray[np.uint8] | None, valid_offset: int
    ) -> None: ...

class TokenLists:
    """The tokens of all texts, those of text i from ``offsets[i]`` to ``offsets[i + 1]``; ``missing`` flags texts."""

    tokens: list[str]
    offsets: Int
    missing: NDArray[np.bool_] | None
    def __init__(self, tokens: list[str], offsets: Int, missing: NDArray[np.bool_] | None) -> None: ...

class EncodedTexts:
    """Texts to be scored: the ids that ``Words.encode`` returns or, with ``times``, that ``Words.bags`` returns."""

    offsets: Int
    ids: Codes
    times: Codes | None
    missing: NDArray[np.bool_] | None
    def __init__(self, offsets: Int, ids: Codes, times: Codes | None, missing: NDArray[np.bool_] | None) -> None: ...

class Matrix:
    """How often each row has each of ``n_columns`` columns: ``values`` (n, columns), or those of a sparse matrix.

    The values of row i of a sparse matrix are values[offsets[i]:offsets[i + 1]], in as many columns; ``places`` is
    (offsets, columns). With a ``threshold``, a value above it counts 1, any other 0. NaN counts 0 if ``skip``, and is
    refused otherwise.
    """

    values: Column
    places: tuple[Int, Codes] | None
    n_columns: int
    threshold: float | None
    skip: bool
    def __init__(
        self, values: Column, places: tuple[Int, Codes] | None, n_columns: int, threshold: float | None, skip: bool
    ) -> None: ...

# In a list None and float NaN are missing texts, and lone surrogates are allowed.
Texts = list[Any] | ArrowTexts | TokenLists | EncodedTexts | Matrix
Ids = NDArray[np.uint32]

def score_row(log_prior: Real, parts: Sequence[Part]) -> tuple[int, Real, Real, Real]:
    """Scores a single row: returns its class, posterior (C,), log posterior (C,) and 'parts' (features, C)."""

def score_each(which: Codes, models: Sequence[tuple[Real, Sequence[Part]]], want: str, threads: int, out: Real) -> int:
    """Scores row i by model which[i], a (log prior, parts), and writes to ``out``, (n, C); 0 where which[i] is -1.

    Every part has all n rows. Returns how many rows are impossible in every class.
    """

class NotThere(ValueError):
    """Somebody subtracts what was never added. ``args`` is (word or None for texts, class, the negative remainder)."""

class Tokeniser:
    """Cuts texts into tokens, and says how much each token counts; immutable, shared by threads."""

    log: bool
    length: bool
    def __init__(
        self,
        pattern: str,
        lowercase: bool,
        characters: bool,
        shortest: int,
        longest: int,
        stop_words: list[str],
        log: bool,
        length: bool,
        only: list[str] = ...,
    ) -> None:
        """Takes a ``pattern``: 'word' (two word characters or more), 'word1', 'mail', or 'given' (tokens come ready).

        Tokens are n-grams of words, or of ``characters``, with ``shortest`` to ``longest`` of them; stop words are
        removed first. If ``only`` is not empty, all tokens that it does not contain are removed last. A token that a
        text has n times counts n, or log(1 + n) if ``log``, divided by the Euclidean length of the text's counts if
        ``length``.
        """

    def tokens(self, text: str | list[str]) -> list[str]:
        """Cuts one text (for 'given' a list of tokens) into tokens: 1-grams in order, then 2-grams, and so on."""

    def places(self, text: str | list[str]) -> tuple[Int, Int]:
        """Returns where these tokens start and end, in characters of the text (for 'given' in tokens of the list)."""

class Words:
    """Sums of one column of text: occurrences and documents of each word in each class, and texts of each class.

    Immutable: ``count`` and ``forget`` return new sums, in time proportional to the texts' words. Every number is
    exact. An occurrence counts its text's weight times what the tokeniser makes of it, each in units of 10**-18. A
    document is a text that has the word. All occurrences together, and all texts, stay below 2**63; more raise
    OverflowError.
    """

    n_classes: int
    n_words: int  # words that some text has
    n_ids: int  # ids given out, 0 .. n_ids - 1, those of forgotten words included
    n_columns: int  # 0: words by name; else the columns of a matrix, named '#17'

    def __init__(self, n_classes: int, n_columns: int) -> None: ...
    def count(
        self,
        tokeniser: Tokeniser,
        texts: Texts,
        classes: Codes,
        weights: Int | NDArray[np.uint64] | None,
        threads: int,
        more: LabelSets | None = None,
    ) -> Words:
        """Adds texts, except those of class -1, and returns the new sums.

        ``weights``: None for ones, whole numbers (n,), or units of 10**-18 (n, 2), as ``parts`` makes them. ``more``
        has further classes of each text.
        """

    def forget(
        self,
        tokeniser: Tokeniser,
        texts: Texts,
        classes: Codes,
        weights: Int | NDArray[np.uint64] | None,
        threads: int,
        more: LabelSets | None = None,
    ) -> Words:
        """Subtracts texts that were counted, and returns the new sums; words keep their ids.

        Raises NotThere where a sum would fall below zero.
        """

    def with_columns(self, n_columns: int) -> Words:
        """Returns the same sums with an id for each of the first n_columns columns."""

    def columns(self) -> Int:
        """Returns the id of each column's word, -1 where it has none."""

    def changed_since(self, old: Words) -> Ids | None:
        """Returns the ids, ascending, of the words that changed since ``old``.

        Returns None unless one was made from the other and little changed.
        """

    def plus(self, other: Words) -> Words:
        """Adds the sums of both, words by name; words of this one keep their ids. Costs what the smaller one has."""

    def minus(self, other: Words) -> Words:
        """Subtracts the other's sums, and drops words that no text has any more; raises NotThere as ``forget`` does."""

    def times(self, factor: float) -> tuple[Words, bool]:
        """Multiplies all sums by a factor; also says whether that is exact, or numbers were rounded down.

        Texts and documents are rounded to 10**-18, occurrences to 10**-36; words of which nothing is left are dropped.
        """

    def same(self, other: Words) -> bool:
        """Says whether all numbers are equal, words by name."""

    def place(self, index: Int, n_classes: int) -> Words:
        """Moves class c to class index[c] of ``n_classes``, and adds up classes that move to the same one."""

    def take(self, index: Int) -> Words:
        """Selects classes: class i of the result is class index[i] here. Drops words that no text has any more."""

    def only(self, ids: Ids) -> Words:
        """Returns the sums of the same texts as if they had had only these words."""

    def pairs(self, ids: Ids | None, index: Int | None = None, threads: int = 1) -> tuple[Int, Codes, Real, Real]:
        """Returns the pairs of these words and the classes of the texts that have them.

        First ``starts`` (n + 1,): word i has the pairs from starts[i] to starts[i + 1]; then for each pair, by word and
        ascending class, its class, occurrences and documents, each rounded once. ``ids`` None means all ids in order.
        With ``index``, class c counts as class index[c], added up with others that do; -1 leaves it out.
        """

    def having(self, index: Int) -> Ids:
        """Returns the ids, ascending, of the words that some text has of a class whose index is not -1."""

    def texts(self) -> Integers:
        """Returns the number of texts of each class, (C,)."""

    def occurrences(self) -> Integers:
        """Returns the occurrences of all words in each class, (C,)."""

    def documents(self) -> Integers:
        """Returns the documents of all words in each class, (C,): a text counts once for each word that it has."""

    def words(self, ids: Ids | None) -> list[str]:
        """Returns the names of these words, or of all if ``ids`` is None."""

    def find(self, words: list[str]) -> Int:
        """Returns the id of each word; -1 where there is none."""

    def with_words(self, words: list[str]) -> Words:
        """Returns the same sums with ids for these words too, which no text has."""

    def encode(self, tokeniser: Tokeniser, texts: Texts, threads: int) -> tuple[Int, Codes]:
        """Returns offsets (n + 1,), and the ids of all texts' tokens in order, -1 for unknown ones."""

    def bags(self, tokeniser: Tokeniser, texts: Texts, threads: int) -> tuple[Int, Codes, Codes]:
        """Returns offsets (n + 1,), the ids of each text's known words, ascending, and how often the text has each."""

    def in_order(self) -> Ids:
        """Returns the ids of the words that some text has, in the order of their UTF-8 bytes."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Returns all numbers as arrays, which are equal if all numbers are: words in the order of their bytes.

        Words without texts are left out. bytes uint8, and ends (words,) int64 of each word in it; starts (words + 1,)
        int64 of each word's n cells; classes (n,) uint32. If all numbers are whole, and all occurrences together below
        2**32: occurrences and documents (n,) uint32; texts (C,) int64. If not: parts (n, 2, 3) int64, the occurrences
        and documents in units of 10**-36, three limbs of 64 bits each, least first; texts.parts (C, 3) int64, the same
        of texts.
        """

    @staticmethod
    def from_state(n_classes: int, n_columns: int, state: Mapping[str, NDArray[Any]], threads: int = 1) -> Words:
        """Makes the sums whose ``state`` this is; raises ValueError if arrays do not fit together."""

class Groups:
    """The sums of words by group of texts, of which one group at a time is left out."""

    def __init__(self, words: Words, classes: Int, groups: Int, n_groups: int, threads: int = 1) -> None:
        """Class c of ``words`` has the texts of class classes[c] and group groups[c]; classes ascend within a group."""

    def words(self, group: int) -> Ids:
        """Returns the ids, ascending, of the words that texts of the group have."""

    def gone(self, total: Words, group: int) -> Ids:
        """Returns the ids of the group's words that no other text has; ``total`` has all groups, with the same ids."""

    def pairs_without(self, total: Words, group: int, ids: Ids) -> tuple[Int, Codes, Real, Real]:
        """Returns ``Words.pairs`` of all texts except the group's; ``ids`` ascend."""

class Rough:
    """The weights of columns in single precision, which find the classes of most rows of a sparse matrix."""

class Weights:
    """A row of weights, one per class, for each word id; ``set`` and its like change it in place.

    Rows with few classes are kept as pairs of class and weight. Copies share memory until one is changed.
    """

    def __init__(self, n_classes: int, default: Real, n_words: int = 0) -> None:
        """Adds ``default`` (C,) to a word's ``common`` number in classes without a value; has room for ``n_words``."""

    def set(
        self,
        ids: Ids,
        common: Real,
        scale: Real | None,
        starts: Int,
        classes: Codes,
        values: Real,
        threads: int = 1,
    ) -> None:
        """Sets the row of word ids[i]: values[j] in class classes[j] for starts[i] <= j < starts[i + 1].

        Its weight is common[i] + default[c] in every other class c. scale[i] multiplies what a token of the word adds;
        1 if ``scale`` is None.
        """

    def set_counted(
        self,
        words: Words,
        ids: Ids,
        once: bool,
        complement: bool,
        values: Real,
        threads: int,
        left_out: tuple[Groups, int] | None = None,
    ) -> Ids:
        """Sets the rows of words by their counts: values[n] in a class that has a word n times (``once``: in n texts).

        If ``complement``, n is the count of all other classes together. ``left_out`` is a group of texts that does not count.
        Returns the words that keep their rows, because a count is not whole or beyond ``values``.
        """

    def follow(self, words: Words, ids: Ids, once: bool, complement: bool, values: Real) -> Ids:
        """Updates rows as ``set_counted`` sets them; words that no text has any more lose their rows.

        Returns the words that keep their rows as ``set_counted`` does.
        """

    def skip(self, ids: Ids) -> None:
        """Removes the rows of these words: they are ignored in texts, as are words that were never set."""

    def rows(self, ids: Ids) -> tuple[NDArray[np.bool_], Real, Real]:
        """Returns whether each word has a row, (n,); the rows, (n, C), zeros where there is none; the scales, (n,)."""

    def rough(self, words: Words, base: Real, n_columns: int, threads: int) -> Rough | None:
        """Converts the rows of the first columns' words, plus ``base`` (C,), to single precision.

        Returns None if there are too many classes, or a number is not finite.
        """

    def copy(self) -> Weights: ...
