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
from banbury.digits import told_apart
from banbury.hypotheses.examples import Chosen, Examples, Predictions
from banbury.hypotheses.space import MOST, Hypotheses, Likelihood
from banbury.hypotheses.values import Array, codes, floats, is_hashable, is_missing, is_scalar, vector

Holds = Callable[[slice], NDArray[np.bool_]]  # of some of the rows, rows × conditions
ODD = frozenset("=<>,'\"")  # in a text, what the name of a hypothesis is made of, too
EXACT = 2.0**53  # whole numbers below this are told apart
DIGITS = 12  # at least, of a cut in the name of a hypothesis
ANYTHING = 0  # the conditions that hold of every row, and of none
NOTHING = 1


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

    >>> import banbury as bb
    >>> days = bb.datasets.enjoy_sport()
    >>> can_be = {"sky": ["sunny", "cloudy", "rainy"], "wind": ["strong", "weak"]}
    >>> space = conjunctions(days, "play", values=can_be, labels=["no", "yes"])
    >>> len(space), len(space.update(days, "play").version_space)
    (973, 6)
    """
    rows = Examples(table)
    declared = dict(values or {})
    chosen = rows.choose_columns(columns, target)
    _check_features("values", declared, chosen)
    tests = [_Equal(name, _distinct(rows.column(name), name, declared.get(name))) for name in chosen]
    tests = [test for test in tests if test.values]
    sizes = [len(test.values) for test in tests]
    if conditions is not None:
        errors.check_whole("conditions", conditions, 0)
    most = len(tests) if conditions is None else min(int(conditions), len(tests))
    sums = [1] + [0] * len(sizes)  # conjunctions of 0, 1, 2, … conditions
    for size in sizes:
        sums = [1, *(here + size * before for before, here in pairwise(sums))]
    _check_number(sum(sums[: most + 1]) + 1, "fewer conditions per hypothesis with conditions=")
    members, lengths = _every_conjunction(sizes, most)
    return _space(_Rules(tests, members), lengths, prior, likelihood, noise, _labels(rows, target, labels))


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
    ``prior="description_length"`` encodes the feature, the side and the cut.

    >>> space = thresholds({"length": [1.4, 1.5, 4.7], "long": [False, False, True]}, "long")
    >>> list(space.names)
    ['anything', 'nothing', 'length>1.45', 'length>3.1', 'length<=1.45', 'length<=3.1']
    """
    rows = Examples(table)
    declared = dict(cuts) if isinstance(cuts, Mapping) else {}
    chosen = rows.choose_columns(columns, target)
    _check_features("cuts", declared, chosen)
    if cuts is not None and not isinstance(cuts, Mapping):
        errors.check_whole("cuts", cuts, 0)
    tests = []
    for name in chosen:
        if name in declared:
            places = floats(vector(declared[name], f"the cuts of {name!r}"))
            errors.require(np.isfinite(places).all(), f"the cuts of {name!r}", list(declared[name]), "finite numbers")
            places = np.unique(places)
        else:
            places = _cuts(rows.column(name), name)
        if isinstance(cuts, (int, np.integer)) and len(places) > cuts:
            places = places[((np.arange(cuts) + 0.5) * len(places) / max(cuts, 1)).astype(np.intp)]
        tests += [_Above(name, places)] * bool(len(places))
    sizes = [2 * len(test.cuts) for test in tests]
    _check_number(2 + sum(sizes), "fewer cuts of each with cuts=")
    lengths = log2(2 + len(tests)) + np.repeat([0.0, *map(log2, sizes)], [2, *sizes])
    rules = _Thresholds(tests, np.arange(2 + sum(sizes))[None, :])
    return _space(rules, lengths, prior, likelihood, noise, _labels(rows, target, labels))


class _Rules(Sequence[str]):
    """Hypotheses that say yes where all their conditions hold: ``members``, (conditions, hypotheses), filled up with ANYTHING."""

    def __init__(self, tests: Sequence[_Equal | _Above], members: NDArray[np.intp]) -> None:
        self.tests = tests
        self.members = members

    @cached_property
    def texts(self) -> list[str]:
        names = _written([test.feature for test in self.tests])
        tests = zip(names, self.tests, strict=True)
        return ["anything", "nothing", *(text for name, test in tests for text in test.texts(name))]

    def __len__(self) -> int:
        return int(self.members.shape[1])

    def __getitem__(self, h: Any) -> Any:
        if isinstance(h, slice):
            return [self[i] for i in range(*h.indices(len(self)))]
        return ", ".join(self.texts[m] for m in self.members[:, h] if m != ANYTHING) or self.texts[ANYTHING]

    def on(self, rows: Examples) -> Predictions:
        """What they say. 64 rows are looked up at once, as the bits of a word, since looking up is what costs."""
        holds = [test.on(rows) for test in self.tests]

        def words(part: slice, chosen: Chosen) -> NDArray[np.uint64]:
            always = np.array([[True, False]]).repeat(part.stop - part.start, axis=0)
            bits = _pack(np.hstack([always, *(holds_of(part) for holds_of in holds)]))
            first, *later_members = self.members if chosen is None else self.members[:, chosen]
            fulfilled: NDArray[np.uint64] = bits.take(first, axis=1)
            for other in later_members:
                fulfilled &= bits.take(other, axis=1)
            return fulfilled

        def mistakes(part: slice, truth: Array, chosen: Chosen) -> Array:
            wrong = words(part, chosen) ^ _pack(truth[:, None].astype(np.bool_))
            return np.asarray(_n_bits(wrong).sum(axis=0, dtype=np.int64))

        def predict(part: slice, chosen: Chosen) -> Array:
            octets = np.ascontiguousarray(words(part, chosen))[:, :, None].view(np.uint8).transpose(0, 2, 1)
            flat = octets.reshape(8 * len(octets), octets.shape[2])
            return np.unpackbits(flat, axis=0, count=part.stop - part.start)

        return Predictions(len(rows), predict, mistakes, 64)


class _Thresholds(_Rules):
    """Thresholds, one condition each: what they get wrong is counted by how many cuts each row is above."""

    def on(self, rows: Examples) -> Predictions:
        tests: Any = self.tests
        places = [(test.places(rows), len(test.cuts)) for test in tests]

        def mistakes(part: slice, truth: Array, chosen: Chosen) -> Array:
            yes = truth.astype(np.bool_)
            n_yes = int(np.count_nonzero(truth))
            wrong = [np.array([len(yes) - n_yes, n_yes])]
            for place, n_cuts in places:
                above = place[part] + 1  # of the column's n_cuts + 2 bins; the first is that of missing values
                gain = np.bincount(above[~yes], minlength=n_cuts + 2) - np.bincount(above[yes], minlength=n_cuts + 2)
                below = np.cumsum(gain[1:])
                wrong += [n_yes + below[-1] - below[:-1], n_yes + below[:-1]]
            every = np.concatenate(wrong)
            return every if chosen is None else every[chosen]

        return replace(super().on(rows), mistakes=mistakes, counted_at_once=max(len(rows), 1))


def _pack(yes: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows × anything, 64 rows to a word."""
    n_words = -(-len(yes) // 64)
    padded = np.zeros((64 * n_words, yes.shape[1]), dtype=np.bool_)
    padded[: len(yes)] = yes
    octets = np.packbits(padded, axis=0).reshape(n_words, 8, yes.shape[1])
    return np.ascontiguousarray(octets.transpose(0, 2, 1)).view(np.uint64)[:, :, 0]


def _n_bits(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """How many bits are set in each word: counted in pairs, fours and octets, which a product then adds up."""
    pairs = words - ((words >> 1) & 0x5555555555555555)
    fours = (pairs & 0x3333333333333333) + ((pairs >> 2) & 0x3333333333333333)
    octets = (fours + (fours >> 4)) & 0x0F0F0F0F0F0F0F0F
    return np.asarray((octets * 0x0101010101010101) >> 56)


@dataclass(frozen=True)
class _Equal:
    """The conditions "feature=value" of one feature."""

    feature: Any
    values: list[Any]

    def on(self, rows: Examples) -> Holds:
        numbers = codes(rows.column(self.feature), self.values)
        every = np.arange(len(self.values))
        return lambda part: numbers[part, None] == every

    def texts(self, name: str) -> Iterator[str]:
        return (f"{name}={value}" for value in _written(self.values))


@dataclass(frozen=True)
class _Above:
    """The conditions "feature>cut" and "feature<=cut" of one feature."""

    feature: Any
    cuts: Real

    def on(self, rows: Examples) -> Holds:
        values = _numbers(rows.column(self.feature), self.feature)
        return lambda part: np.hstack([values[part, None] > self.cuts, values[part, None] <= self.cuts])

    def places(self, rows: Examples) -> NDArray[np.intp]:
        """How many cuts each row is above; −1 where its value is missing."""
        values = _numbers(rows.column(self.feature), self.feature)
        return np.where(np.isnan(values), -1, np.searchsorted(self.cuts, values))

    def texts(self, name: str) -> Iterator[str]:
        cuts = told_apart(self.cuts.tolist(), DIGITS)
        return (f"{name}{sign}{cut}" for sign, cut in product((">", "<="), cuts))


def _written(values: Sequence[Any]) -> list[str]:
    """The values as they are read; texts in quotation marks where they could be taken for something else."""
    seen = Counter(map(str, values))
    odd = [isinstance(value, str) and (seen[value] > 1 or not ODD.isdisjoint(value)) for value in values]
    return [repr(value) if quoted else str(value) for value, quoted in zip(values, odd, strict=True)]


def _labels(rows: Examples, target: Any, labels: Iterable[Any] | None) -> Any:
    """Two labels: these, or the target's values in order where it has two; flags otherwise."""
    if labels is not None or target is None:
        return (False, True) if labels is None else labels
    seen = _distinct(rows.target(target), target if is_scalar(target) else "target", None)
    return sorted(seen, key=lambda value: (type(value).__name__, value)) if len(seen) == 2 else (False, True)


def _space(rules: _Rules, lengths: Real, prior: Any, likelihood: Any, noise: Any, labels: Any) -> Hypotheses:
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


def _every_conjunction(sizes: Sequence[int], most: int) -> tuple[NDArray[np.intp], Real]:
    """The conditions of each, those with fewest first and that of nothing last; and the bits that tell it."""
    members = np.zeros((max(most, 1), 1), dtype=np.intp)
    n = np.zeros(1, dtype=np.intp)
    bits = np.zeros(1)
    first = 2
    for size in sizes:
        room = np.flatnonzero(n < most)
        grown = members[:, room].repeat(size, axis=1)
        grown[n[room].repeat(size), np.arange(grown.shape[1])] = first + np.tile(np.arange(size), len(room))
        members = np.hstack([members, grown])
        bits = np.concatenate([bits, bits[room].repeat(size) + log2(size)])
        n = np.concatenate([n, n[room].repeat(size) + 1])
        first += size
    order = np.argsort(n, kind="stable")
    which = np.array([log2(comb(len(sizes), k)) for k in range(most + 1)])  # of the features
    nothing = np.where(np.arange(len(members)) == 0, NOTHING, ANYTHING)[:, None]
    lengths = log2(most + 2) + np.append((bits + which[n])[order], 0.0)
    return np.hstack([members[:, order], nothing]), lengths


def _distinct(column: Array, name: Any, declared: Iterable[Any] | None) -> list[Any]:
    """The values of a column, in the order in which they come; or those declared, among which they must be."""
    present = [plain(value) for value in column.tolist() if not is_missing(value)]
    for value in present:
        errors.require(is_hashable(value), f"column {name!r}", value, "a column of texts, numbers or booleans")
    seen = list(dict.fromkeys(present))
    if declared is None:
        return seen
    values = list(dict.fromkeys(vector(declared, f"the values of {name!r}").tolist()))
    for value in seen:
        if value not in values:
            raise errors.unknown_value(value, str(name), values)
    return values


def _cuts(column: Array, name: Any) -> Real:
    """Midway between neighbouring values."""
    values = _numbers(column, name)
    far = sorted({plain(value) for value in column[np.abs(values) >= EXACT].tolist()})
    for one, other in pairwise(far):
        if float(one) == float(other):
            raise errors.BadValue(
                f"column {name!r} contains {one!r} and {other!r}, which are too close for a threshold: numbers have 53 "
                "bits. Subtract a constant from the column, or name other columns with columns=[...].",
                column=name,
                value=other,
            )
    distinct = np.unique(values[np.isfinite(values)])
    low = distinct[:-1]
    high = distinct[1:]
    middle = low / 2 + high / 2
    return np.where((middle >= low) & (middle < high), middle, low)


def _numbers(column: Array, name: Any) -> Real:
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


def _check_number(n_hypotheses: int, otherwise: str) -> None:
    if n_hypotheses > MOST:
        raise errors.BadSetting(
            f"these features make {n_hypotheses:,} hypotheses, but the limit is {MOST:,}. Name fewer columns=, "
            f"or allow {otherwise}.",
            n_hypotheses=n_hypotheses,
        )


def _check_features(what: str, declared: Mapping[Any, Any], chosen: Sequence[Any]) -> None:
    for name in declared:
        if name not in chosen:
            raise errors.bad_setting(what, name, f"given only for features that are used ({errors.listed(chosen)})")
