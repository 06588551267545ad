"""The border: arrays in, arrays out; every call releases the GIL. What has state is at the end: the words of texts.

Shapes: n rows, F features, C classes. ``columns`` is a list of arrays that together hold the F features in order:
a 1-D array is one feature, a 2-D array is one feature per column; any strides; float64, float32, or integers of
8 to 64 bits. ``classes`` holds a class number per row; a row whose class is -1 is passed over. ``weights`` is None for
ones, whole numbers (n,), or parts of a row, 10^-18 each, as limbs (n, 2), which ``parts`` makes; above zero where a class is.

Every sum is a whole number and comes back in ``Integers``. One thread and eight, and rows in any order, give the same bits.
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
    """``args`` is (what, feature, row, value); what: 'infinite', 'too far', 'not 0 or 1', 'not a count', 'too fine'."""

def checksum(bytes: NDArray[np.uint8], threads: int) -> int:
    """A 64-bit sum in which every flipped bit shows; ``docs/format.md`` says what it is."""

def any_leading_zero(data: NDArray[np.uint8]) -> bool:
    """Whether some field of a text may begin with a zero, after a sign or none, and go on with a digit or an x.

    A glance, which may err for yes: fields begin after all that does not stand within numbers, words, dates and times.
    """

def encode_records(records: NDArray[np.uint8], threads: int) -> tuple[Codes, Int, Int]:
    """Numbers the distinct rows of an (n, width) byte matrix in the order they first occur.

    Returns the code of each row, the row at which each code first occurs, and how often each occurs.
    """

def decode_records(records: NDArray[np.uint8], codes: Codes, threads: int) -> NDArray[np.uint8]:
    """The record of each code, one after the other: the bytes of ``records[codes]``."""

def encode_strings(
    offsets: Column,
    data: NDArray[np.uint8],
    valid: NDArray[np.uint8] | None,
    valid_offset: int,
    strip: bool,
    threads: int,
) -> tuple[Codes, Int, Int]:
    """The same for strings data[offsets[i]:offsets[i + 1]]; ``offsets`` is int32 or int64, n + 1 long.

    ``valid`` is Arrow's bitmap (bit valid_offset + i; least significant first); a string that is not valid gets -1.
    ``strip`` takes ASCII white space off both ends first.
    """

def parse_fields(
    data: NDArray[np.uint8], delimiter: int, quote: int | None, kinds: str, missing: list[bytes], known: list[bytes]
) -> list[Real | Int | tuple[Codes, list[tuple[int, int]]]] | None:
    """The columns of plain lines of text, whose ``kinds`` are "f", "i" (whole numbers) or "s"; None where they are not plain.

    ``missing`` texts mean NaN. Words are numbered, blanks around them not counted: the missing ones, those ``known`` of their
    column, each on a line, and then new ones as they come, with the place of each of these in ``data``.
    """

def encode_objects(values: list[Any]) -> tuple[Codes, Int, Int] | None:
    """The same for a list of str; None and float NaN get -1. Any other object in the list: the answer is None."""

class Integers:
    """An array of whole numbers of any size, in units of 10**-digits; immutable. Equal arrays have equal limbs and digits."""

    shape: list[int]
    digits: int  # 0, 18 or 36, as few as will do
    value: Real  # rounded to the nearest double
    @staticmethod
    def zeros(shape: list[int]) -> Integers: ...
    @staticmethod
    def of(limbs: Int, digits: int) -> Integers:
        """From limbs of 64 bits on the last axis, two's complement, least first."""

    @staticmethod
    def join(arrays: list[Integers]) -> Integers:
        """One below the other, along the first axis."""

    def limbs(self) -> Int:
        """As few limbs as hold every number."""

    def values(self, exponent: int) -> Real:
        """Times 2**exponent, rounded once."""

    def is_negative(self) -> NDArray[np.bool_]: ...
    def is_zero(self) -> NDArray[np.bool_]: ...
    def __add__(self, other: Integers) -> Integers: ...
    def __sub__(self, other: Integers) -> Integers: ...
    def times(self, factor: float) -> tuple[Integers, bool]:
        """Times a factor, rounded down to 18 digits, or to those that there are; and whether nothing was lost."""

    def same(self, other: Integers) -> bool: ...
    def take(self, index: Int, axis: int) -> Integers: ...
    def merge(self, index: Int, size: int, axis: int) -> Integers:
        """Cell i of the axis becomes cell index[i] of so many; those that meet are added up."""

    def arranged(self, shape: list[int], index: Int | None = None) -> Integers:
        """In another shape; with ``index``, cell i is cell index[i], both counted in C order."""

    def deviations(self, sums: Integers, columns: int) -> Real:
        """(n * sum(z_i z_j) - sum(z_i) sum(z_j)) / n for every pair of columns, j <= i, exactly but for the last rounding.

        These are numbers of rows; ``sums`` has an axis more, of the columns, then the pairs; z in units of 2**-57. 0 where n is.
        """

def parts(weights: Real) -> NDArray[np.uint64]:
    """Weights in parts of a row, (..., 2) limbs: the decimal number that fifteen digits write, or the nearest.

    Of soft labels, (n, C), a row's parts add up exactly to its sum to fifteen digits.
    """

def count_classes(classes: Codes, n_classes: int, weights: RowWeights, threads: int) -> Integers:
    """Rows per class, (C,)."""

def count_products(
    columns: Sequence[Column],
    origin: Real,
    unit: Real,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> tuple[Integers, Integers]:
    """Rows that have all columns, (C,), and sums of z and z_i z_j, j <= i, (C, F + F(F+1)/2), in units of 2**-57 and 2**-114."""

def has_twins(offsets: Int, columns: NDArray[np.int32], n_columns: int, threads: int) -> bool:
    """Whether some row of a sparse matrix has a column twice; those of row i are columns[offsets[i]:offsets[i + 1]]."""

def kernels_left_out(kernel: str, centres: Real, weights: Real, bandwidth: Real, cells: Int, threads: int) -> Real:
    """Of some cells the log density at their centres, times the rows that there are, without one of their own rows.

    ``centres`` is (cells, columns), ascending in the first; ``bandwidth`` has one number per column.
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
    """What leaving out a row changes in the log density of its values in its own class, (rows,); NaN where that is not exact.

    ``curves``: mean, precision, n and spread of bell curves, (features, classes), and the least variance, (features,).
    ``enough``: what must be left of a sum of squares, as a share of it and as a multiple of the least variance.
    """

def by_class(classes: Codes, n_classes: int, threads: int) -> tuple[Int, Int]:
    """The rows of each class, class after class and within each in order; where each class begins, and their number."""

def shifted(column: Column, low: int, n_values: int, threads: int) -> Codes:
    """Integers less ``low``; -1 where that is not one of 0 .. n_values - 1."""

def count_moments(
    columns: Sequence[Column],
    origin: Real,
    unit: Real,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> tuple[Integers, Integers]:
    """Rows (F, C), and the sums of z and z squared (F, C, 2), z = (x - origin) / unit, in units of 2**-57 and 2**-114.

    z is rounded to such a unit, and its square is exact.
    ``unit`` is a power of two. NaN is passed over. Infinite x and |z| above 2**400 raise BadValue.
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
    """Rows (sum of size, C): feature f's value low[f] + k is row sum(size[:f]) + k.

    Values outside low[f] .. low[f] + size[f] - 1 are passed over; also whether there are such, beside the lowest int64.
    """

def count_flags(
    columns: Sequence[Column],
    threshold: Real,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> Integers:
    """Rows (F, 2, C), no then yes. Yes is x > threshold[f]; a NaN threshold demands x in {0, 1}."""

def bins(column: Column, start: float, width: float, threads: int) -> Int:
    """floor((x - start) / width); NaN gives the lowest int64; infinite x and codes beyond 2**53 raise BadValue."""

def count_leading(
    columns: Sequence[Column],
    shifts: Int,
    most: int,
    classes: Codes,
    n_classes: int,
    weights: RowWeights,
    threads: int,
) -> list[tuple[Int, Integers, int]]:
    """Of each column the keys that occur, in order, the rows of each key and class, and how many bits were dropped.

    A key is the bits of a number, in the order of numbers, without the lowest: as many are dropped as the shift says, and as
    few more as leave ``most`` keys.
    """

def cuts_of(cells: Real) -> list[int]:
    """The bins before which a cut is made, of rows per bin and class, (bins, classes), in the order of the values.

    Cuts tell the classes apart: by entropy, until one costs more than it saves. U. Fayyad and K. Irani, *Multi-interval
    discretization of continuous-valued attributes for classification learning* (1993).
    """

Grown = tuple[Int, tuple[float, float]]

class Trees:
    """Levels of all columns, one after the other, how many each has, and how many cells."""

    def __init__(self, levels: Int, depths: Int, sizes: Int) -> None: ...
    @staticmethod
    def leaves(bins: Real, totals: Real, sizes: Int, most: int, threads: int) -> list[tuple[Int, Real]]:
        """Of each column the leaf of every bin, ``most`` at most and of equally many rows, and rows per leaf and class.

        ``bins`` are rows per bin and class, of all columns; ``totals`` their sums, ``sizes`` the bins of each.
        """

    @staticmethod
    def grown(cells: Real, totals: Real, sizes: Int, priors: Real, threads: int) -> list[tuple[Grown, Grown | None]]:
        """Of each column the tree of halves, (levels, cells), and its strengths; the same of a tree whose first level tells the
        classes apart, where that gains more than it costs. ``cells`` are rows per leaf and class, of all columns."""

    def shares(self, cells: Real, strengths: Real, prior: Real, left_out: bool, threads: int) -> Real:
        """P(class | cell) of all columns, (cells, classes), or (cells, own class, classes); after each column's cells the prior.

        ``strengths`` are two of each column.
        """

    def shares_by_level(self, cells: Real, strengths: tuple[float, float], prior: Real, left_out: bool) -> list[Real]:
        """Of one tree P(class | node) of each level, (nodes, classes), or (nodes, own class, classes)."""

    def strengths(
        self, cells: Real, told_apart: Sequence[bool], prior: Real, threads: int
    ) -> tuple[list[tuple[float, float]], Real]:
        """The strengths under which each column's rows, each left out, are likeliest; how much likelier than by the prior."""

def steps(columns: Sequence[Column], cuts: Sequence[Real], threads: int) -> NDArray[np.uint16]:
    """How many of its column's cuts are not above each number, (n, F); one more than there can be where it is missing."""

def count_cells(
    codes: NDArray[np.uint32], sizes: Int, labels: Codes, weights: Real, n_classes: int, threads: int
) -> Real:
    """What rows of each class weigh in the cells of all columns, (cells, C); a code that is the number of cells is in none."""

Group = tuple[int, NDArray[np.uint32], int, NDArray[np.uint32], Sequence[int]]

class Terms:
    """Where rows find their cells: a term for each level of each column and pair.

    Of each: the column, the cell of its codes on every level, (codes, levels), another column or -1, what its codes add to the
    cell, and the number of cells of each level. Rows are the codes of their columns, (n, columns).
    """

    groups: list[Group]
    columns: list[tuple[int, int]]
    n_cells: int
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
        """intercepts + Σ weight · what a term's cell says, (n, C).

        ``table`` has the cells of all terms, a number for each class; with ``own``, the class of each row, a number for each
        class the row may have, and each class.
        """

    def evidence(
        self, codes: NDArray[np.uint32], table: Real, n_classes: int, own: Codes, given: int, threads: int
    ) -> NDArray[np.float32]:
        """What each term says of each row beyond the last class, (n, C - 1, terms + given); the last ``given`` are left at 0."""

    def correct(self, codes: NDArray[np.uint32], passes: Passes, mu: Real, table: Real) -> None:
        """Passes of dual coordinate ascent that improve μ, (n, C), and ``table``, (cells of all, C), in place."""

    def alike(self, codes: NDArray[np.uint32], threads: int) -> Real:
        """Σ s² over the terms of which two rows share the cell, (n, n)."""

    def spread(self, codes: NDArray[np.uint32], surprise: Real) -> Real:
        """Corrections, (cells of all, C), by what rows surprised by, C (y − μ), (n, C)."""

    def folded(self, table: Real) -> list[Real]:
        """The numbers of all levels, (cells of all, C), summed up for the cells of each column's, or pair's, last level."""

def weighed_slope(
    evidence: NDArray[np.float32], weights: Real, intercepts: Real, labels: Codes, row_weights: Real, threads: int
) -> tuple[float, Real]:
    """-Σ log P(label) over rows, and its slope along each weight, then along each intercept; as ``Terms.evidence`` has it."""

class Passes:
    """Passes over rows that are corrected: C times the weight of each row, the scores it starts from, (n, C), the order of each
    pass, and the mean change of μ at which passes end."""

    def __init__(self, strengths: Real, offsets: Real, orders: Sequence[NDArray[np.uint32]], enough: float) -> None: ...

def correct_alike(alike: Real, labels: Codes, passes: Passes, mu: Real) -> None:
    """``Terms.correct`` by what rows have in common, (n, n); it improves μ."""

def tempered(
    scores: NDArray[np.float32], labels: Codes, row_weights: Real, ridge: float, most: float, threads: int
) -> tuple[float, float]:
    """Returns the least -Σ log P(label) of scores (n, C) times a factor, and that factor, which is at most ``most``.

    ``ridge`` times the square of the factor's distance to 1 is added to the loss.
    """

class Bags:
    """Texts: text i has the words ``offsets[i]`` to ``offsets[i + 1]``, each so many times; ``hashes`` are of all that it has."""

    offsets: Int
    words: NDArray[np.uint32]
    times: Real
    hashes: NDArray[np.uint64]
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
        """Bags of ids, as ``Words.bags`` gives them, by the ranks of ids: offsets, ranks in order, times, and a hash of each
        text. A word of rank 2**32 - 1 is left out."""

    def count(self, labels: LabelSets, weights: Real, n_classes: int) -> Real:
        """The weight of texts that have each word, by class (W, C)."""

    def values(self, often: bool, scale: NDArray[np.float32], threads: int) -> Real:
        """What each word counts in its text: its scale, times the root of times if ``often``; squares of a text sum to 1 or 0."""

    def scores(self, values: Real, table: NDArray[np.float32], threads: int) -> Real:
        """Σ value · row of the word, (n, C)."""

    def left_out(
        self,
        values: Real,
        labels: LabelSets,
        others: NDArray[np.float32],
        own: NDArray[np.float32],
        threads: int,
    ) -> Real:
        """The same by the rows of ``others`` in all classes but the text's own, and of ``own`` in those."""

    def correct(
        self,
        values: NDArray[np.float32],
        common: float,
        text_variances: NDArray[np.float32],
        passes: Passes,
        mu: NDArray[np.float32],
        table: NDArray[np.float32],
    ) -> None:
        """``Terms.correct`` over texts. What all texts have in common counts ``common`` in each; ``text_variances`` is
        Σ variance · value²
        of each text, (n, C).

        ``table`` is (W + 1, 2 C), corrections and variances of words; the last row is of no word, but of all texts.
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
        """The same of labels, each a yes or no of its own, in lanes of 8 or 16, which threads work on side by side.

        Offsets and ``text_variances`` are (lanes · n, labels), ``mu`` is (lanes, n, labels), ``table`` (lanes, W + 1, 2, labels).
        """

    def label_scores(
        self,
        values: Real,
        index: tuple[Int, NDArray[np.uint32], Real, Real],
        slopes: Real,
        threads: int,
    ) -> Real:
        """Σ value · (what the word says of a label + the label's slope), (n, labels), by the pairs that occur.

        ``index``: where each word's pairs begin, their labels, what they say, and what each word says of all labels.
        """

PairRows = tuple[NDArray[np.uint32], Codes, Real, Real]

def pair_gains(
    rows: PairRows,
    nodes: Sequence[Any],
    pairs: Sequence[tuple[int, int]],
    strengths: Real,
    posteriors: Real,
    threads: int,
) -> Real:
    """Of each pair of columns: nats gained over both apart, rows left out; the strength that gains most; slope, curvature.

    ``rows``: codes (n, columns), labels, weights, P(class). Of each column ``nodes`` has the fine node of each code, the coarse
    node of each fine one, P(class | node) of coarse and fine nodes, and the same without a row of each class.
    """

def pair_tables(
    rows: PairRows, nodes: Sequence[Any], pairs: Sequence[tuple[int, int]], strengths: Real, threads: int
) -> list[tuple[Real, Real]]:
    """Of each pair what its cells say beyond both columns, (cells, C), and the same of rows left out, (cells, C, C); flat."""

def span(columns: Sequence[Column], threads: int) -> tuple[Int, Int]:
    """Lowest and highest value of each integer feature, the lowest int64 passed over. Without rows: (0, -1)."""

def not_counts(columns: Sequence[Column], threads: int) -> None:
    """Raises BadValue unless every value is NaN or a whole number from 0 to 2**53."""

class NormalPart:
    """Per (F, C) adds constant - precision * (z - mean)**2, or with ``power``
    constant - power * log1p(precision * (z - mean)**2); z is clipped to +-2**400 first, and NaN adds 0."""

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
    """Integer features: with k = x - low[f], row lookups[f][k] of ``table`` (R, C) is added; outside the lookup row outside[f],
    where -1 adds 0."""

    def __init__(
        self, columns: Sequence[Column], low: Int, lookups: Sequence[NDArray[np.uint32]], outside: Int, table: Real
    ) -> None: ...

class StepsPart:
    """The row of ``table`` of each number's cell between its column's cuts, column after column; NaN adds 0."""

    def __init__(self, columns: Sequence[Column], cuts: Sequence[Real], table: Real) -> None: ...

class FlagsPart:
    """(F, C) tables: x > threshold[f] adds yes, else no; NaN adds 0. A NaN threshold demands x in {0, 1}, or raises BadValue."""

    def __init__(self, columns: Sequence[Column], threshold: Real, no: Real, yes: Real) -> None: ...

class HistogramPart:
    """One feature: ``table`` (B, C) holds log densities of the bins first .. first + B - 1, numbered as ``bins`` numbers them;
    k bins beyond either end the end's value falls by k * log 2. NaN adds 0."""

    def __init__(self, column: Column, start: float, width: float, first: int, table: Real) -> None: ...

class KernelPart:
    """One feature in z units, centres (B,) sorted, weights (B, C), columns summing to 1 (or all 0: adds 0), bandwidth (C,).

    Adds constant[c] + log(sum_b weights[b, c] * K((z - centres[b]) / bandwidth[c]) / bandwidth[c]) for kernel 'normal', far out
    in logs. Compact kernels ('box' on [-1/2, 1/2); 'triangle', 'epanechnikov', 'biweight', 'triweight', 'cosine' on [-1, 1]):
    that density mixed as (1 - 1e-6) * density + 1e-6 * normal(floor[0], floor[1]) (mean, standard deviation in z units).
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
    """One feature: the cells of a row of a matrix times ``weights`` (columns, C), and ``constant``."""

    def __init__(self, matrix: Matrix, weights: Real, constant: Real) -> None: ...

class EllipsePart:
    """One feature of several columns: constant - q / 2, or with ``power`` constant - power * log1p(q), q being the squared
    length of whiten * (z - mean), (C, F, F) and (C, F). A row that lacks a value adds 0."""

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
    """One feature of several columns: a product of kernels about each of ``centres`` (cells, F), ascending in the first column,
    with ``weights`` (cells, C), ``bandwidth`` (C, F) and ``floor`` (2, F), each as in ``KernelPart``."""

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
    """One feature. Of a text that has word w n_w times, x_w = 1 if ``counting`` is True, else what the tokeniser makes of n_w;
    s_w and row_w are the word's scale and row, over the words that are set.

    Adds constant[c] + sum_w x_w s_w (row_w[c] + base[c]). With ``polya`` (C,) and base None:
    constant[c] + sum_w sum_{j < n_w} log(row_w[c] + j) - sum_{t < T} log(polya[c] + t), T = sum_w n_w (n_w = 1 if True).
    With "unit" for ``counting``, x_w is the root of n_w, with "unit once" 1, over the length by which the squares of x_w s_w
    sum to 1. A missing text adds 0. ``rough`` are the same rows in single precision.
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
    """A feature for each of ``terms``, which have no levels: the row of ``table`` (cells of all, C) of a row's cell."""

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
    """Adds the log-likelihoods of all parts to the log prior, row by row, in one pass.

    ``want``: 'log_joint' or 'posterior' or 'log_posterior' (n, C) float64; 'class' (n,) int32, the first of the best;
    'parts' (n, features of all parts in order, C): each feature's own log-likelihood, without the prior.
    Also returns how many rows had every class at -inf; those answer with the prior (for 'posterior',
    'log_posterior', 'class'). Infinite x raises BadValue, whose feature counts over all parts.
    """

# Text ----------------------------------------------------------------------------------------------------------------

class ArrowTexts:
    """As ``encode_strings`` takes them."""

    offsets: Column
    data: NDArray[np.uint8]
    valid: NDArray[np.uint8] | None
    valid_offset: int
    def __init__(
        self, offsets: Column, data: NDArray[np.uint8], valid: NDArray[np.uint8] | None, valid_offset: int
    ) -> None: ...

class TokenLists:
    """The tokens of all texts, those of text i from ``offsets[i]`` to ``offsets[i + 1]``, and which texts are missing."""

    tokens: list[str]
    offsets: Int
    missing: NDArray[np.bool_] | None
    def __init__(self, tokens: list[str], offsets: Int, missing: NDArray[np.bool_] | None) -> None: ...

class EncodedTexts:
    """The ids of all tokens as ``encode`` gives them, or as ``bags`` does with ``times``; they are scored, and not counted."""

    offsets: Int
    ids: Codes
    times: Codes | None
    missing: NDArray[np.bool_] | None
    def __init__(self, offsets: Int, ids: Codes, times: Codes | None, missing: NDArray[np.bool_] | None) -> None: ...

class Matrix:
    """How often each row has each of ``n_columns`` columns: all cells, or, with ``places`` (offsets and columns), some.

    What is above a ``threshold`` counts 1, all else 0. NaN counts nothing if it is to ``skip``, and else is refused.
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
    """Returns the class, posterior, log posterior and 'parts' of a single row, each as ``score`` has it."""

def score_each(which: Codes, models: Sequence[tuple[Real, Sequence[Part]]], want: str, threads: int, out: Real) -> int:
    """Scores each row by the model (log prior, parts) of its number, into ``out``, (n, C); 0 where the number is -1.

    Every part is of all n rows. Returns how many rows had every class at -inf.
    """

class NotThere(ValueError):
    """Subtracting what was never added. ``args`` is (word or None, class number, what is left)."""

class Tokeniser:
    """How a text becomes tokens, and how much each counts; immutable, shared by threads."""

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
        """``pattern``: 'word' (two or more word characters), 'word1' (one or more), 'mail', 'given' (tokens come ready).

        Of words, or of ``characters``, the n-grams from ``shortest`` to ``longest``; stop words are taken out first. A token
        that a text has n times counts n, or log(1 + n) if ``log``; divided by the text's Euclidean length if ``length``. If there
        are ``only`` some tokens, all others are left out once n-grams are made.
        """

    def tokens(self, text: str | list[str]) -> list[str]:
        """Of one text (of a list of tokens for 'given'): 1-grams in order, then 2-grams, and so on."""

    def places(self, text: str | list[str]) -> tuple[Int, Int]:
        """Where these tokens start and end, in characters of the text (for 'given' in tokens of the list)."""

class Words:
    """Sums of one column of text: per (word, class) occurrences and documents, per class texts.

    A value: ``count`` and ``forget`` return others, for the price of the texts' words.
    Every number is exact. An occurrence counts its text's weight times what the tokeniser makes of it, each in parts of 10**-18.
    All occurrences together, and all texts, stay below 2**63: what would be more is a ValueError, and changes nothing.
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
        """With more texts, but those of class -1.

        ``weights``: whole numbers (n,), or numbers of 10**-18 (n, 2), the lower limb first, as ``parts`` gives them. ``more``:
        further classes of each text.
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
        """Without texts that were counted; raises NotThere where a sum would fall below zero. Words keep their ids."""

    def with_columns(self, n_columns: int) -> Words:
        """The same with an id for each of the first n_columns columns."""

    def columns(self) -> Int:
        """By column the id of its word, -1 where it has none."""

    def changed_since(self, old: Words) -> Ids | None:
        """The ids of the words that changed between the two, in order, where one was made from the other and little changed."""

    def plus(self, other: Words) -> Words:
        """Both together, words by name; ids of ours stay. Costs what the smaller has."""

    def minus(self, other: Words) -> Words:
        """Without the other's texts, and without words that no text has any more; raises NotThere."""

    def times(self, factor: float) -> tuple[Words, bool]:
        """Every text so many times, and whether that is exact; else numbers are rounded down.

        Texts and documents are rounded to 10**-18, occurrences to 10**-36; words of which nothing is left are gone.
        """

    def same(self, other: Words) -> bool:
        """Whether all numbers are equal, words by name."""

    def place(self, index: Int, n_classes: int) -> Words:
        """Class c becomes class index[c], together with all others that do."""

    def take(self, index: Int) -> Words:
        """Class i is class index[i] of this one; words that no text has any more are gone."""

    def only(self, ids: Ids) -> Words:
        """The same texts as if they had had these words only."""

    def pairs(self, ids: Ids | None, index: Int | None = None, threads: int = 1) -> tuple[Int, Codes, Real, Real]:
        """starts (n + 1,); then per pair, in class order: class, occurrences, documents, each rounded once.

        None: all ids in order. Pairs without documents are left out. With ``index``, class c is class index[c], together with all
        others that are; -1 is left out.
        """

    def having(self, index: Int) -> Ids:
        """The ids of the words that some text has of a class whose index is not -1, in order."""

    def texts(self) -> Integers:
        """Per class (C,)."""

    def occurrences(self) -> Integers:
        """Per class, over all words."""

    def documents(self) -> Integers:
        """Per class, over all words: of each word the texts that have it."""

    def words(self, ids: Ids | None) -> list[str]: ...
    def find(self, words: list[str]) -> Int:
        """The ids of words; -1 where there is none."""

    def with_words(self, words: list[str]) -> Words:
        """The same with ids for these words too, which no text has."""

    def encode(self, tokeniser: Tokeniser, texts: Texts, threads: int) -> tuple[Int, Codes]:
        """Offsets (n + 1,) and the ids of all tokens in order; -1: unknown."""

    def bags(self, tokeniser: Tokeniser, texts: Texts, threads: int) -> tuple[Int, Codes, Codes]:
        """Offsets (n + 1,), and of each text the ids of its known words, ascending, each once, and how often it has them."""

    def in_order(self) -> Ids:
        """The ids of the words that some text has, by their UTF-8 bytes."""

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, which are equal if all numbers are: words in the order of their bytes, none without texts.

        bytes uint8, and ends (words,) int64 of each word in it; starts (words + 1,) int64 of each word's n cells; classes (n,)
        uint32. If all numbers are whole, and all occurrences together below 2**32: occurrences and documents (n,) uint32; texts
        (C,) int64. If not: parts (n, 2, 3) int64, the occurrences and documents in units of 10**-36, three limbs of 64 bits each,
        least first; texts.parts (C, 3) int64, the same of texts.
        """

    @staticmethod
    def from_state(n_classes: int, n_columns: int, state: Mapping[str, NDArray[Any]], threads: int = 1) -> Words:
        """What ``state`` gave; ValueError for anything that does not fit together."""

class Groups:
    """The cells of words whose classes are groups of texts, by group, of which one at a time is left out."""

    def __init__(self, words: Words, classes: Int, groups: Int, n_groups: int, threads: int = 1) -> None:
        """Class c of the words has the texts of class classes[c] and group groups[c]; classes ascend within a group."""

    def words(self, group: int) -> Ids:
        """The ids of the words that texts of the group have, in order."""

    def gone(self, total: Words, group: int) -> Ids:
        """The ids of those that no other text has; ``total`` is all groups together, with the same ids."""

    def pairs_without(self, total: Words, group: int, ids: Ids) -> tuple[Int, Codes, Real, Real]:
        """``Words.pairs`` of all texts but the group's; ``ids`` ascend."""

class Rough:
    """What columns weigh in single precision: it finds the classes of most rows of a sparse matrix."""

class Weights:
    """A row of numbers per class for each word id; rows of few classes are kept by their pairs. Copies are made on write."""

    def __init__(self, n_classes: int, default: Real, n_words: int = 0) -> None:
        """``default`` (C,) is added to a word's ``common`` number in classes that it has no value for; room for ``n_words``."""

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
        """Row of ids[i]: values[j] in class classes[j], starts[i] <= j < starts[i + 1]; common[i] + default[c] in all others.

        scale[i] multiplies what a token of the word adds; 1 if None.
        """

    def set_counted(
        self,
        words: Words,
        ids: Ids,
        once: bool,
        others: bool,
        values: Real,
        threads: int,
        without: tuple[Groups, int] | None = None,
    ) -> Ids:
        """Rows of words, whatever they had before: values[n] in a class that has a word n times, or whose ``others`` do.

        ``once``: in n texts. ``without`` leaves a group of the texts out. Gives the words that have a count beyond ``values``,
        or one that is not whole: they keep the row they have.
        """

    def follow(self, words: Words, ids: Ids, once: bool, others: bool, values: Real) -> Ids:
        """The same of words that may have a row, which is brought up to date; words that no text has any more lose theirs.

        Words that it gives keep the row they have.
        """

    def skip(self, ids: Ids) -> None:
        """These words are outside the vocabulary, as are ids never set."""

    def rows(self, ids: Ids) -> tuple[NDArray[np.bool_], Real, Real]:
        """Whether set (n,); rows (n, C), zeros where not; scales (n,)."""

    def rough(self, words: Words, base: Real, n_columns: int, threads: int) -> Rough | None:
        """The rows of the first columns in single precision, ``base`` added; None if they are many, or one is not finite."""

    def copy(self) -> Weights: ...
