"""Conjunctions and thresholds: every hypothesis of a kind that a table's columns can express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from math import comb, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real, plain
from banbury.digits import format_distinctly
from banbury.hypotheses.examples import Examples, HypothesisNumbers, Predictions
from banbury.hypotheses.space import MOST_HYPOTHESES, Hypotheses, Likelihood
from banbury.hypotheses.values import Array, codes, floats, is_hashable, is_missing, is_scalar, vector

Holds = Callable[[slice], NDArray[np.bool_]]  # which conditions hold in a slice of the rows, rows × conditions
SPECIAL_CHARACTERS = frozenset("=<>,'\"")  # characters with a meaning in the name of a hypothesis
EXACT_BELOW = 2.0**53  # doubles distinguish all whole numbers below this
MIN_DIGITS_OF_CUT = 12  # fewest digits of a cut in the name of a hypothesis
ALWAYS_TRUE = 0  # the number of the condition that holds for every row
NEVER_TRUE = 1  # the number of the condition that holds for no row
FIRST_OF_FEATURES = 2  # the number of the first condition on a feature


def conjunctions(
    table: Any,
    target: Any = None,
    *,
    columns: Iterable[Any] | None = None,
    values: Mapping[Any, Iterable[Any]] | None = None,
    conditions: int | None = None,
    prior: Any = "uniform",
    likelihood: Likelihood = "noise_free",
    noise: float | None = None,
    labels: Iterable[Any] | None = None,
) -> Hypotheses:
    """Returns every conjunction of conditions "feature=value", with at most one for each feature, and the hypothesis
    that no row satisfies.

    A row that satisfies a hypothesis has the second of two ``labels``: those of the target (a column or an array) in
    order, or else False and True. ``columns`` are all except the target unless given. Their values are those in the
    table, or those in ``values``. ``conditions`` is the maximum number in one hypothesis. A missing value satisfies no
    condition. ``prior="description_length"`` encodes how many conditions there are, which features and which values.
    ``likelihood`` and ``noise`` are those of ``Hypotheses``.

    >>> import banbury as bb
    >>> days = bb.datasets.enjoy_sport()
    >>> can_be = {"sky": ["sunny", "cloudy", "rainy"], "wind": ["strong", "weak"]}
    >>> space = conjunctions(days, "play", values=can_be, labels=["no", "yes"])
    >>> len(space), len(space.update(days, "play").version_space)
    (973, 6)
    """
    examples = Examples(table)
    declared = dict(values or {})  # the user's values by feature
    feature_names = examples.choose_columns(columns, target)
    _check_features("values", declared, feature_names)
    tests = [_Equal(name, _distinct(examples.column(name), name, declared.get(name))) for name in feature_names]
    tests = [test for test in tests if test.values]  # the conditions of each feature
    sizes = [len(test.values) for test in tests]  # how many conditions each feature has
    if conditions is not None:
        errors.check_whole("conditions", conditions, low=0)
    max_conditions = len(tests) if conditions is None else min(int(conditions), len(tests))
    n_by_length = [1] + [0] * len(sizes)  # conjunctions of 0, 1, 2, … conditions
    for size in sizes:  # with one feature more, a conjunction has none of its conditions, or one of them
        n_by_length = [1, *(n + size * n_shorter for n_shorter, n in pairwise(n_by_length))]
    _check_number(sum(n_by_length[: max_conditions + 1]) + 1, "fewer conditions per hypothesis with conditions=")
    # Condition numbers (conditions × hypotheses), and the bits of each hypothesis.
    members, lengths = _every_conjunction(sizes, max_conditions)
    return _make_space(_Rules(tests, members), lengths, prior, likelihood, noise, _labels(examples, target, labels))


def thresholds(
    table: Any,
    target: Any = None,
    *,
    columns: Iterable[Any] | None = None,
    cuts: int | Mapping[Any, Iterable[float]] | None = None,
    prior: Any = "uniform",
    likelihood: Likelihood = "noise_free",
    noise: float | None = None,
    labels: Iterable[Any] | None = None,
) -> Hypotheses:
    """Returns every hypothesis "feature>cut" and "feature<=cut", and those that all rows and no rows satisfy.

    A row that satisfies a hypothesis has the second of two ``labels``: those of the target (a column or an array) in
    order, or else False and True. Cuts are midway between neighbouring values of the table; ``cuts`` is their maximum
    number for each feature, evenly spread over its values, or lists the cuts. A missing value is on neither side.
    ``prior="description_length"`` encodes the feature, the side and the cut. ``likelihood`` and ``noise`` are those of
    ``Hypotheses``.

    >>> space = thresholds({"length": [1.4, 1.5, 4.7], "long": [False, False, True]}, "long")
    >>> list(space.names)
    ['anything', 'nothing', 'length>1.45', 'length>3.1', 'length<=1.45', 'length<=3.1']
    """
    examples = Examples(table)
    declared = dict(cuts) if isinstance(cuts, Mapping) else {}  # the user's cuts by feature
    feature_names = examples.choose_columns(columns, target)
    _check_features("cuts", declared, feature_names)
    if cuts is not None and not isinstance(cuts, Mapping):
        errors.check_whole("cuts", cuts, low=0)
    tests = []  # the conditions of each feature that has cuts
    for name in feature_names:
        if name in declared:
            cut_points = floats(vector(declared[name], f"the cuts of {name!r}"))
            errors.require(
                np.isfinite(cut_points).all(), f"the cuts of {name!r}", list(declared[name]), "finite numbers"
            )
            cut_points = np.unique(cut_points)
        else:
            cut_points = _cuts(examples.column(name), name)
        if isinstance(cuts, (int, np.integer)) and len(cut_points) > cuts:  # keep so many, evenly spread
            cut_points = cut_points[((np.arange(cuts) + 0.5) * len(cut_points) / max(cuts, 1)).astype(np.intp)]
        tests += [_Above(name, cut_points)] * bool(len(cut_points))
    sizes = [2 * len(test.cuts) for test in tests]  # how many conditions each feature has
    _check_number(2 + sum(sizes), "fewer cuts of each with cuts=")
    # The bits of each hypothesis: those that say which feature, or anything or nothing; and those that say which
    # condition.
    lengths = log2(2 + len(tests)) + np.repeat([0.0, *map(log2, sizes)], [2, *sizes])
    rules = _Thresholds(tests, members=np.arange(2 + sum(sizes))[None, :])  # each hypothesis is one condition
    return _make_space(rules, lengths, prior, likelihood, noise, _labels(examples, target, labels))


class _Rules(Sequence[str]):
    """Hypotheses that predict yes where all their conditions hold; as a sequence, their names."""

    def __init__(self, tests: Sequence[_Equal | _Above], members: NDArray[np.intp]) -> None:
        """Stores the hypotheses. ``tests`` has the conditions of each feature. ``members`` has for each hypothesis the
        numbers of its conditions (conditions × hypotheses), padded with ALWAYS_TRUE. Conditions are numbered from
        FIRST_OF_FEATURES, in the order of the tests.
        """
        self.tests = tests  # one for each feature
        self.members = members  # condition numbers (conditions × hypotheses)

    @cached_property
    def texts(self) -> list[str]:
        """The text of each condition, in the order of their numbers: 0 holds for every row, 1 for none."""
        names = _texts_of([test.feature for test in self.tests])
        named_tests = zip(names, self.tests, strict=True)
        return ["anything", "nothing", *(text for name, test in named_tests for text in test.texts(name))]

    def __len__(self) -> int:
        """Returns the number of hypotheses."""
        return int(self.members.shape[1])

    def __getitem__(self, h: Any) -> Any:
        """Returns the name of hypothesis number ``h``: the texts of its conditions, whose numbers are in its column of
        ``members`` (conditions × hypotheses). For a slice, returns a list of names.
        """
        if isinstance(h, slice):
            return [self[number] for number in range(*h.indices(len(self)))]
        return (
            ", ".join(self.texts[condition] for condition in self.members[:, h] if condition != ALWAYS_TRUE)
            or self.texts[ALWAYS_TRUE]
        )

    def on(self, rows: Examples) -> Predictions:
        """Returns the predictions for these rows (0 or 1) and their mistakes, computed when they are asked for. Rows
        are packed 64 to a word, since lookups dominate the time. ``tests`` has the conditions of each feature, and
        ``members`` the numbers of the conditions of each hypothesis (conditions × hypotheses).
        """
        # For each feature a function of a slice of the rows: which of its conditions hold (rows × conditions).
        tests_on_rows = [test.on(rows) for test in self.tests]

        def prediction_words(row_slice: slice, hypothesis_numbers: HypothesisNumbers) -> NDArray[np.uint64]:
            """Returns the predictions of some hypotheses for a slice of rows, 64 rows to a word (words × hypotheses).
            ``tests_on_rows`` has for each feature a function that says which of its conditions hold, and
            ``self.members`` the numbers of the conditions of each hypothesis (conditions × hypotheses).
            """
            # The first two conditions, ALWAYS_TRUE and NEVER_TRUE: rows × conditions.
            constant_conditions = np.array([[True, False]]).repeat(row_slice.stop - row_slice.start, axis=0)
            # Which conditions hold, 64 rows to a word (words × conditions).
            bits = _pack(np.hstack([constant_conditions, *(holds_of(row_slice) for holds_of in tests_on_rows)]))
            # Of every hypothesis its first condition, its second and so on.
            first_conditions, *later_conditions = self.members[:, hypothesis_numbers]
            predictions: NDArray[np.uint64] = bits.take(first_conditions, axis=1)
            for conditions in later_conditions:
                predictions &= bits.take(conditions, axis=1)
            return predictions

        def mistakes(row_slice: slice, truth: Array, hypothesis_numbers: HypothesisNumbers) -> Array:
            """Returns the number of mistakes of each hypothesis in a slice of rows. ``truth`` has the correct
            predictions, 0 or 1.
            """
            # 1 for each mistake, 64 rows to a word (words × hypotheses).
            mistake_bits = prediction_words(row_slice, hypothesis_numbers) ^ _pack(truth[:, None].astype(np.bool_))
            return np.asarray(_n_bits(mistake_bits).sum(axis=0, dtype=np.int64))

        def predict(row_slice: slice, hypothesis_numbers: HypothesisNumbers) -> Array:
            """Returns the predictions of some hypotheses for a slice of rows as 0 and 1 (rows × hypotheses)."""
            word_bytes = (  # words × bytes of a word × hypotheses; a byte has eight rows
                np.ascontiguousarray(prediction_words(row_slice, hypothesis_numbers))[:, :, None]
                .view(np.uint8)
                .transpose(0, 2, 1)
            )
            flat_bytes = word_bytes.reshape(8 * len(word_bytes), word_bytes.shape[2])
            return np.unpackbits(flat_bytes, axis=0, count=row_slice.stop - row_slice.start)

        return Predictions(len(rows), predict, mistakes, at_once=64)


class _Thresholds(_Rules):
    """Hypotheses of one threshold each. Mistakes are counted by how many cuts each row is above."""

    def on(self, rows: Examples) -> Predictions:
        """Returns the predictions for these rows; mistakes of all thresholds of a column come from one histogram.
        ``tests`` has the cuts of each feature.
        """
        tests: Any = self.tests
        # For each feature, how many cuts are below the value of each row (−1: missing), and how many cuts it has.
        cuts_below_and_counts = [(test.n_cuts_below(rows), len(test.cuts)) for test in tests]

        def mistakes(row_slice: slice, truth: Array, hypothesis_numbers: HypothesisNumbers) -> Array:
            """Returns the number of mistakes of each hypothesis in a slice of rows. ``truth`` has the correct
            predictions, 0 or 1.
            """
            is_positive = truth.astype(np.bool_)
            n_yes = int(np.count_nonzero(truth))  # rows
            mistake_counts = [np.array([len(is_positive) - n_yes, n_yes])]  # of always yes, and of always no
            # Of each feature: how many cuts are below each row's value (−1: missing), and how many cuts there are.
            for cuts_below_rows, n_cuts in cuts_below_and_counts:
                # The column has n_cuts + 2 bins; the first is that of missing values.
                bin_of_row = cuts_below_rows[row_slice] + 1
                # By how much predicting yes in a bin changes the number of mistakes, and in all bins up to each cut.
                net_mistakes = np.bincount(bin_of_row[~is_positive], minlength=n_cuts + 2) - np.bincount(
                    bin_of_row[is_positive], minlength=n_cuts + 2
                )
                net_mistakes_up_to = np.cumsum(net_mistakes[1:])
                mistake_counts += [  # of yes above each cut, and of yes up to each cut
                    n_yes + net_mistakes_up_to[-1] - net_mistakes_up_to[:-1],
                    n_yes + net_mistakes_up_to[:-1],
                ]
            return np.concatenate(mistake_counts)[hypothesis_numbers]

        return replace(super().on(rows), mistakes=mistakes, counted_at_once=max(len(rows), 1))


def _pack(flags: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Packs boolean flags (rows × columns) along the rows, 64 to a word (words × columns)."""
    n_words = -(-len(flags) // 64)
    padded = np.zeros((64 * n_words, flags.shape[1]), dtype=np.bool_)
    padded[: len(flags)] = flags
    # The eight bytes of each word (words × bytes × columns); a byte has eight rows.
    packed_bytes = np.packbits(padded, axis=0).reshape(n_words, 8, flags.shape[1])
    return np.ascontiguousarray(packed_bytes.transpose(0, 2, 1)).view(np.uint64)[:, :, 0]


def _n_bits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Returns the number of bits set in each of the 64-bit ``words``, counted in pairs, fours and bytes, which a
    product adds up.
    """
    pair_counts = words - ((words >> 1) & 0x5555555555555555)
    four_bit_counts = (pair_counts & 0x3333333333333333) + ((pair_counts >> 2) & 0x3333333333333333)
    byte_counts = (four_bit_counts + (four_bit_counts >> 4)) & 0x0F0F0F0F0F0F0F0F
    return np.asarray((byte_counts * 0x0101010101010101) >> 56)


@dataclass(frozen=True)
class _Equal:
    """The conditions "feature=value" of one feature."""

    feature: Any  # the name of the column
    values: list[Any]  # one for each condition

    def on(self, rows: Examples) -> Holds:
        """Returns a function that takes a slice of these rows and returns whether each condition holds (rows ×
        conditions): whether the ``feature`` has each of the ``values``.
        """
        # Of each row the index of its value, −1 if it is another.
        value_numbers = codes(rows.column(self.feature), self.values)
        all_numbers = np.arange(len(self.values))
        return lambda row_slice: value_numbers[row_slice, None] == all_numbers

    def texts(self, name: str) -> Iterator[str]:
        """Yields the text of each condition. ``name`` is the feature as a text."""
        return (f"{name}={value}" for value in _texts_of(self.values))


@dataclass(frozen=True)
class _Above:
    """The conditions "feature>cut" for each cut, and then "feature<=cut" for each cut, of one feature."""

    feature: Any  # the name of the column
    cuts: Real  # ascending

    def on(self, rows: Examples) -> Holds:
        """Returns a function that takes a slice of these rows and returns whether each condition holds (rows ×
        conditions): whether the ``feature`` is above each of the ``cuts``, and then whether it is not.
        """
        values = _numbers(rows.column(self.feature), self.feature)  # of each row; NaN: missing, for which nothing holds
        return lambda row_slice: np.hstack([values[row_slice, None] > self.cuts, values[row_slice, None] <= self.cuts])

    def n_cuts_below(self, rows: Examples) -> NDArray[np.intp]:
        """Returns for each row how many cuts are below its value; −1 where that is missing."""
        values = _numbers(rows.column(self.feature), self.feature)
        return np.where(np.isnan(values), -1, np.searchsorted(self.cuts, values))

    def texts(self, name: str) -> Iterator[str]:
        """Yields the text of each condition. ``name`` is the feature as a text."""
        cut_texts = format_distinctly(self.cuts.tolist(), MIN_DIGITS_OF_CUT)
        return (f"{name}{sign}{cut}" for sign, cut in product((">", "<="), cut_texts))


def _texts_of(values: Sequence[Any]) -> list[str]:
    """Returns each value as a text, in quotation marks where that could be mistaken for something else."""
    frequencies = Counter(map(str, values))  # of the values as texts
    needs_quotes = [
        isinstance(value, str) and (frequencies[value] > 1 or not SPECIAL_CHARACTERS.isdisjoint(value))
        for value in values
    ]
    return [repr(value) if quoted else str(value) for value, quoted in zip(values, needs_quotes, strict=True)]


def _labels(examples: Examples, target: Any, labels: Iterable[Any] | None) -> Any:
    """Returns the two labels, for rows that do not satisfy a hypothesis and for rows that do: those given, or the
    target's two values in order, or else False and True. ``target`` is the name of a column of the examples, or has one
    label per row, or is None.
    """
    if labels is not None or target is None:
        return (False, True) if labels is None else labels
    target_values = _distinct(examples.target(target), target if is_scalar(target) else "target", declared=None)
    return (
        sorted(target_values, key=lambda value: (type(value).__name__, value))
        if len(target_values) == 2
        else (False, True)
    )


def _make_space(rules: _Rules, lengths: Real, prior: Any, likelihood: Any, noise: Any, labels: Any) -> Hypotheses:
    """Returns the hypothesis space of these rules. ``lengths`` has the description length of each in bits, for a prior
    that needs it. ``prior``, ``likelihood``, ``noise`` and ``labels`` are those of ``conjunctions``, and are checked
    here.
    """
    if likelihood not in ("noise_free", "label_noise"):
        raise errors.unknown_choice("likelihood", likelihood, ("noise_free", "label_noise"))
    labels = vector(labels, "labels")
    errors.require(
        len(labels) == 2,
        "labels",
        labels.tolist(),
        "two labels: for rows that do not fulfil a hypothesis and for rows that do. If there are more, add a column that says "
        "whether a row has a particular label",
    )
    bits = lengths if isinstance(prior, str) and prior == "description_length" else None
    return Hypotheses(rules, prior, lengths=bits, likelihood=likelihood, noise=noise, labels=labels)


def _every_conjunction(sizes: Sequence[int], max_conditions: int) -> tuple[NDArray[np.intp], Real]:
    """Returns all conjunctions with at most ``max_conditions`` conditions, shortest first, and last the one that no row
    satisfies: condition numbers (conditions × hypotheses), and the description length of each in bits. ``sizes`` has
    the number of values of each feature.
    """
    # So far there is one hypothesis, without conditions: its condition numbers (conditions × hypotheses, where 0 holds
    # for every row), how many conditions it has, and the bits that say which values these name.
    members = np.zeros((max(max_conditions, 1), 1), dtype=np.intp)
    n_conditions = np.zeros(1, dtype=np.intp)
    bits = np.zeros(1)
    first_condition = FIRST_OF_FEATURES  # the number of the feature's first condition
    for size in sizes:
        extendable = np.flatnonzero(n_conditions < max_conditions)  # hypotheses that may get one more condition
        extended = members[:, extendable].repeat(size, axis=1)  # these get one condition of the feature each
        extended[n_conditions[extendable].repeat(size), np.arange(extended.shape[1])] = first_condition + np.tile(
            np.arange(size), len(extendable)
        )
        members = np.hstack([members, extended])
        bits = np.concatenate([bits, bits[extendable].repeat(size) + log2(size)])
        n_conditions = np.concatenate([n_conditions, n_conditions[extendable].repeat(size) + 1])
        first_condition += size
    order = np.argsort(n_conditions, kind="stable")  # of the hypotheses
    # For each number of conditions, the bits that say which features they are about.
    feature_bits = np.array([log2(comb(len(sizes), n)) for n in range(max_conditions + 1)])
    # The conditions of the hypothesis that no row satisfies (conditions × 1).
    never_true = np.where(np.arange(len(members)) == 0, NEVER_TRUE, ALWAYS_TRUE)[:, None]
    lengths = log2(max_conditions + 2) + np.append((bits + feature_bits[n_conditions])[order], 0.0)
    return np.hstack([members[:, order], never_true]), lengths


def _distinct(column: Array, name: Any, declared: Iterable[Any] | None) -> list[Any]:
    """Returns the distinct values of a column, without missing ones, in order of occurrence; or the ``declared`` ones.
    Raises an error for a value that was not declared. ``name`` is that of the column, for messages.
    """
    present = [plain(value) for value in column.tolist() if not is_missing(value)]
    for value in present:
        errors.require(is_hashable(value), f"column {name!r}", value, "a column of texts, numbers or booleans")
    values_in_column = list(dict.fromkeys(present))
    if declared is None:
        return values_in_column
    values = list(dict.fromkeys(vector(declared, f"the values of {name!r}").tolist()))
    for value in values_in_column:
        if value not in values:
            raise errors.unknown_value(value, str(name), values)
    return values


def _cuts(column: Array, name: Any) -> Real:
    """Returns the midpoints between neighbouring values of a column, ascending. Raises BadValue if values are too close
    for doubles. ``name`` is that of the column, for messages.
    """
    values = _numbers(column, name)
    large_values = sorted({plain(value) for value in column[np.abs(values) >= EXACT_BELOW].tolist()})
    for value, next_value in pairwise(large_values):
        if float(value) == float(next_value):
            raise errors.BadValue(
                f"column {name!r} contains {value!r} and {next_value!r}, which are too close for a threshold: numbers have 53 "
                "bits. Subtract a constant from the column, or name other columns with columns=[...].",
                column=name,
                value=next_value,
            )
    distinct = np.unique(values[np.isfinite(values)])
    low = distinct[:-1]  # the neighbours of each cut
    high = distinct[1:]
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)


def _numbers(column: Array, name: Any) -> Real:
    """Returns the column as floats, NaN where missing. Raises BadValue for other values. ``name`` is that of the
    column, for messages.
    """
    values = floats(column)
    for row in np.flatnonzero(np.isnan(values)).tolist():
        if not is_missing(value := plain(column[row])):
            raise errors.BadValue(
                f"row {row:,} of column {name!r} contains {value!r}, but thresholds need numbers. Name the numeric columns "
                "with columns=[...].",
                column=name,
                value=value,
                row=row,
            )
    return values


def _check_number(n_hypotheses: int, advice: str) -> None:
    """Raises BadSetting for too many hypotheses. ``advice`` is further advice for the message."""
    if n_hypotheses > MOST_HYPOTHESES:
        raise errors.BadSetting(
            f"these features make {n_hypotheses:,} hypotheses, but the limit is {MOST_HYPOTHESES:,}. Name fewer columns=, "
            f"or allow {advice}.",
            n_hypotheses=n_hypotheses,
        )


def _check_features(what: str, declared: Mapping[Any, Any], feature_names: Sequence[Any]) -> None:
    """Raises BadSetting if a setting names a feature that is not used. ``what`` is the name of the setting, and
    ``declared`` has its entries by feature; ``feature_names`` are the features in use.
    """
    for name in declared:
        if name not in feature_names:
            raise errors.bad_setting(
                what, name, f"given only for features that are used ({errors.listed(feature_names)})"
            )
