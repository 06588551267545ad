"""Whole numbers of any size, counts, moments and products: the arithmetic under every tally. All of it is exact."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_core as naive
from banbury import errors, sums
from banbury._core import Integers, parts
from banbury.sums import (
    Combinations,
    Counts,
    Moments,
    Products,
    WholeKeys,
    cells_of,
    decode_weights,
    encode_weights,
    sort_keys,
    to_python_integers,
    zeros,
)

SIZES = st.sampled_from([1, 8, 60, 63, 64, 65, 127, 128, 200, 400])
WHOLE = st.one_of(
    SIZES.flatmap(lambda k: st.integers(-(2**k), 2**k)),
    SIZES.flatmap(lambda k: st.sampled_from([2**k, 2**k - 1, -(2**k), -(2**k) - 1])),
)
NUMBERS = st.one_of(
    WHOLE.map(Fraction),
    WHOLE.map(lambda x: Fraction(x, 10**18)),
    WHOLE.map(lambda x: Fraction(x, 10**36)),
    st.integers(-999, 999).map(lambda x: Fraction(x, 10)),
)
FACTORS = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 0.1, 1 / 3, 0.999, 1e-18, 7.0, 2.0**40, 1e17]),
    st.floats(0, 1, allow_subnormal=False),
    st.floats(0, 1e9),
    st.integers(0, 2**50).map(float),
)


def arrays(size: int | None = None) -> Any:
    return st.lists(NUMBERS, min_size=size or 0, max_size=size if size is not None else 8)


def made(numbers: Any, shape: tuple[int, ...] | None = None) -> Integers:
    """An array of exact numbers."""
    flat = np.array(numbers, dtype=object)
    limbs, digits = naive.limbs(flat.ravel().tolist())
    width = len(limbs[0]) if limbs else 1
    return Integers.of(np.array(limbs, np.int64).reshape(*(flat.shape if shape is None else shape), width), digits)


def exact(found: Integers) -> Any:
    """Its numbers, in its shape."""
    limbs = found.limbs()
    numbers = naive.zeros(*limbs.shape[:-1])
    for at in np.ndindex(*numbers.shape):
        whole = sum(limb % 2**64 << 64 * k for k, limb in enumerate(limbs[at].tolist()))
        whole -= 2 ** (64 * limbs.shape[-1]) if limbs[at][-1] < 0 else 0
        numbers[at] = Fraction(whole, 10**found.digits)
    return numbers


def assert_is(found: Integers, expected: Any) -> None:
    """These numbers, in the one form that they have."""
    expected = np.array(expected, dtype=object)
    assert found.shape == list(expected.shape)
    limbs = found.limbs()
    assert limbs.shape[:-1] == expected.shape
    flat = limbs.reshape(-1, limbs.shape[-1]).tolist()
    assert (flat, found.digits) == naive.limbs(expected.ravel().tolist())


# Whole numbers -------------------------------------------------------------------------------------------------------


@given(numbers=arrays(), spare=st.integers(0, 3), finer=st.integers(0, 1))
def test_equal_arrays_have_one_form(numbers: list[Fraction], spare: int, finer: int) -> None:
    one = made(numbers)
    assert_is(one, numbers)
    digits = one.digits + 18 * finer
    wide = [int(x * 10**digits) for x in numbers]
    size = max([x.bit_length() // 64 + 1 for x in wide], default=1) + spare
    packed = b"".join(x.to_bytes(8 * size, "little", signed=True) for x in wide)
    other = Integers.of(np.frombuffer(packed, np.int64).reshape(len(wide), size), digits)
    assert_is(other, numbers)
    assert other.same(one) and one.same(other)
    assert_is(pickle.loads(pickle.dumps(one)), numbers)
    assert (exact(one) == np.array(numbers, dtype=object)).all()


@given(numbers=arrays(), more=st.integers(0, 2))
def test_pythons_whole_numbers_go_there_and_back(numbers: list[Fraction], more: int) -> None:
    one = made(numbers)
    digits = one.digits + 18 * more
    found = to_python_integers(one, digits)
    assert found.tolist() == [int(x * 10**digits) for x in numbers]
    assert all(type(x) is int for x in found)
    assert_is(sums.from_python_integers(found, digits), numbers)


@given(st.integers(0, 8).flatmap(lambda n: st.tuples(arrays(n), arrays(n))))
def test_sums_and_differences(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    a, b = pair
    one, other = made(a), made(b)
    assert_is(one + other, [x + y for x, y in zip(a, b, strict=True)])
    assert_is(one - other, [x - y for x, y in zip(a, b, strict=True)])
    assert (one + other - other).same(one)
    assert (one + other).same(other + one)
    assert one.same(other) == (a == b)
    assert_is(one - one, [Fraction(0)] * len(a))


def test_a_thousand_tenths_are_a_hundred() -> None:
    tenth, found = made([Fraction(1, 10)]), made([Fraction(0)])
    for _ in range(1000):
        found = found + tenth
    assert_is(found, [Fraction(100)])
    assert found.digits == 0


@given(numbers=arrays(), factor=FACTORS)
def test_multiples_are_exact_or_rounded_down(numbers: list[Fraction], factor: float) -> None:
    found, is_exact = made(numbers).times(factor)
    unit = 10 ** max(made(numbers).digits, 18)
    products = [x * naive.parts(factor) for x in numbers]
    down = [Fraction(math.floor(x * unit), unit) for x in products]
    assert_is(found, down)
    assert is_exact == (down == products)


@pytest.mark.parametrize("factor", [-1.0, -1e-30, math.nan, math.inf, 2.0**63])
def test_factors_that_cannot_be(factor: float) -> None:
    with pytest.raises(ValueError):
        made([Fraction(1)]).times(factor)


def test_numbers_beyond_all_sums_are_refused() -> None:
    one = made([Fraction(2**1200)])
    with pytest.raises(ValueError, match="too large"):
        one.times(2.0**62)[0].times(2.0**62)
    with pytest.raises(ValueError, match="too large"):
        Integers.of(np.full((1, 40), 5), 0)


@given(numbers=arrays(), exponent=st.sampled_from([0, -57, -114, 3, 200, -200]))
def test_values_are_rounded_once(numbers: list[Fraction], exponent: int) -> None:
    found = made(numbers)
    assert found.values(exponent).tolist() == [float(x * Fraction(2) ** exponent) for x in numbers]
    assert found.value.tolist() == [float(x) for x in numbers]
    assert found.values(exponent).shape == (len(numbers),)


@given(st.integers(2**52, 2**53 - 1), st.integers(1, 300), st.sampled_from([-1, 0, 1]), st.sampled_from([0, 18, 36]))
def test_ties_between_two_doubles(mantissa: int, shift: int, beside: int, digits: int) -> None:
    tie = ((2 * mantissa + 1) << shift) * 10**digits + beside
    for number in (tie, -tie):
        found = sums.from_python_integers(np.array([number], dtype=object), digits)
        assert found.value.tolist() == [float(Fraction(number, 10**digits))]


@given(arrays())
def test_signs(numbers: list[Fraction]) -> None:
    found = made(numbers)
    assert found.is_negative().tolist() == [x < 0 for x in numbers]
    assert found.is_zero().tolist() == [x == 0 for x in numbers]
    assert sums.is_nonzero(found).tolist() == [x != 0 for x in numbers]


@given(numbers=arrays(12), axis=st.integers(0, 2), data=st.data())
def test_cells_are_taken_merged_and_joined_along_an_axis(numbers: list[Fraction], axis: int, data: Any) -> None:
    table = np.array(numbers, dtype=object).reshape(2, 3, 2)
    found, n = made(table), table.shape[axis]
    index = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    assert_is(found.take(sums.as_index(index), axis), np.take(table, np.array(index, dtype=int), axis))
    size = data.draw(st.integers(1, 4))
    to = data.draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    merged = naive.zeros(*table.shape[:axis], size, *table.shape[axis + 1 :])
    for i, place in enumerate(to):
        at = (slice(None),) * axis
        merged[(*at, place)] = merged[(*at, place)] + table[(*at, i)]
    assert_is(found.merge(sums.as_index(to), size, axis), merged)
    assert_is(sums.sum_axis(found, axis), table.sum(axis=axis, keepdims=True))
    order = data.draw(st.permutations(range(12)))
    assert_is(found.arranged([3, 4], sums.as_index(order)), table.ravel()[order].reshape(3, 4))
    assert_is(found.arranged([4, 1, 3]), table.reshape(4, 1, 3))
    pieces = [found.take(sums.as_index(part), 0) for part in ([0], [], [1], [0, 1])]
    assert_is(Integers.join(pieces), np.concatenate([table, table]))


@pytest.mark.parametrize(
    "call",
    [
        lambda a: a.take(sums.as_index([2]), 0),
        lambda a: a.take(sums.as_index([-1]), 0),
        lambda a: a.take(sums.as_index([0]), 2),
        lambda a: a.merge(sums.as_index([0]), 1, 0),
        lambda a: a.merge(sums.as_index([0, 1]), 1, 0),
        lambda a: a.merge(sums.as_index([0, 0]), 1, 5),
        lambda a: a.arranged([7]),
        lambda a: a.arranged([6], sums.as_index([0])),
        lambda a: a + sums.zeros(3, 2),
        lambda a: a - sums.zeros(6),
        lambda a: Integers.join([]),
        lambda a: Integers.join([a, sums.zeros(2, 2)]),
        lambda a: Integers.of(np.zeros((2, 0), np.int64), 0),
        lambda a: Integers.of(np.zeros((2, 1)), 0),
        lambda a: Integers.of(np.zeros((2, 1), np.int64), 7),
        lambda a: sums.zeros(2).deviations(sums.zeros(2, 3), 1),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call: Any) -> None:
    with pytest.raises(ValueError):
        call(sums.zeros(2, 3))


def test_numbers_of_rows_as_people_read_them() -> None:
    assert sums.readable_counts(sums.from_python_integers(np.array([3, 4]), 0)).dtype == np.int64
    assert sums.readable_counts(sums.from_python_integers(np.array([[3], [4]]), 0)).tolist() == [[3], [4]]
    assert sums.readable_counts(made([Fraction(1, 2), Fraction(3)])).tolist() == [0.5, 3.0]
    assert sums.readable_counts(made([Fraction(2**70), Fraction(3)])).tolist() == [2.0**70, 3.0]


# Weights -------------------------------------------------------------------------------------------------------------


def test_weights_are_whole_numbers_or_parts() -> None:
    for weights in ([1.0, 2.0, 0.0], [2.0**62, 1.0], []):
        found = encode_weights(np.array(weights))
        assert found.dtype == np.int64
        assert found.tolist() == weights
        assert decode_weights(found).tolist() == weights
        assert sums.has_weight(found).tolist() == [w > 0 for w in weights]
    halves = np.array([0.5, 2.0, 0.0, 20.3, 1e-30])
    found = encode_weights(halves)
    assert found.tolist() == parts(halves).tolist()
    assert decode_weights(found).tolist() == [0.5, 2.0, 0.0, 20.3, 0.0]
    assert sums.has_weight(found).tolist() == [True, True, False, True, False]
    assert encode_weights(np.ones((3, 2))).shape == (3, 2, 2), "soft labels are parts, even whole ones"
    assert encode_weights(np.arange(6.0)[::2] / 4).tolist() == parts(np.array([0.0, 0.5, 1.0])).tolist()


@given(st.lists(st.floats(1e-3, 1e15), min_size=1, max_size=9))
def test_weights_come_back_as_the_doubles_they_were(weights: list[float]) -> None:
    assert decode_weights(encode_weights(np.array(weights))) == pytest.approx(weights, rel=2.0**-50)


@pytest.mark.parametrize("weights", [[2.0**63], [2.0**62, 2.0**62], [math.inf], [math.nan], [2.0**63, 0.5]])
def test_more_rows_than_can_be_counted(weights: list[float]) -> None:
    with pytest.raises(errors.BadSetting, match=r"2\*\*63"):
        encode_weights(np.array(weights))


# Keys ----------------------------------------------------------------------------------------------------------------


def test_keys_have_one_order_whatever_order_they_came_in() -> None:
    assert sort_keys(["b", "a"]) == ("a", "b")
    assert sort_keys([2, 1.5, -1]) == (-1, 1.5, 2)
    assert sort_keys([None, "a", 3, True, False]) == (False, True, 3, "a", None)
    assert sort_keys([True, "a", False, 3, None]) == (False, True, 3, "a", None)
    for more in ([], ["a"], [None], ["a", None]):  # whatever else there is
        assert sort_keys([True, -1, *more]) == (-1, True, *more)
        assert sort_keys([(True, 1), (-1, 2), *((key, 3) for key in more)])[:2] == ((-1, 2), (True, 1))


# Counts --------------------------------------------------------------------------------------------------------------


def counts(**cells: dict[Any, list[Any]]) -> Counts:
    tables = [(sort_keys(keys), [[Fraction(n) for n in keys[k]] for k in sort_keys(keys)]) for keys in cells.values()]
    return Counts.join([(keys, made(rows, (len(keys), 2))) for keys, rows in tables], 2)


def assert_counts(found: Counts, expected: dict[Any, list[Fraction]]) -> None:
    """Of one feature, but for keys that no row has."""
    cells = exact(found.cells)
    there = {k: row.tolist() for k, row in zip(found.keys[0], cells, strict=True) if any(row)}
    assert there == {k: row for k, row in expected.items() if any(row)}


TABLES = st.dictionaries(st.sampled_from("abcdef"), arrays(2), max_size=6)


@given(TABLES, TABLES, FACTORS)
def test_counts_add_subtract_and_scale(a: dict[str, Any], b: dict[str, Any], factor: float) -> None:
    one, other = counts(x=a), counts(x=b)
    none = [Fraction(0)] * 2

    def both(sign: int) -> dict[str, list[Fraction]]:
        keys = a.keys() | b.keys()
        return {k: [x + sign * y for x, y in zip(a.get(k, none), b.get(k, none), strict=True)] for k in keys}

    assert_counts(one + other, both(1))
    assert_counts(one - other, both(-1))
    assert (one + other).same(other + one)
    assert (one + other - other).without_empty([None]).same(one.without_empty([None]))
    scaled, is_exact = one.times(factor)
    cells, told = one.cells.times(factor)
    assert scaled.keys == one.keys and scaled.cells.same(cells) and is_exact == told
    assert_counts(one.take([1, 0]), {k: [y, x] for k, (x, y) in a.items()})
    assert_counts(one.merge([1, 1], 3), {k: [Fraction(0), x + y, Fraction(0)] for k, (x, y) in a.items()})
    present = exact(one.present)
    assert present.tolist() == [[sum((row[c] for row in a.values()), Fraction(0)) for c in range(2)]]
    assert one.same(counts(x=dict(reversed(a.items()))))


def test_counts_of_nothing() -> None:
    none = Counts.join([], 2)
    assert none.cells.shape == [0, 2]
    assert (none + none).same(none)
    assert none.without_empty([]).same(none)
    assert none.present.shape == [0, 2]
    assert not counts(x={"a": [1, 1]}).same(counts(x={"b": [1, 1]}))


def test_a_union_has_the_keys_of_both_and_the_cells_of_each() -> None:
    a, b = counts(x={"a": [1, 0], "c": [2, 2]}), counts(x={"b": [5, 5]})
    left, right = a.union(b)
    assert left.keys == right.keys == (("a", "b", "c"),)
    assert left.cells.value.tolist() == [[1, 0], [0, 0], [2, 2]]
    assert right.cells.value.tolist() == [[0, 0], [5, 5], [0, 0]]


def test_empty_keys_are_dropped_unless_declared() -> None:
    table = counts(x={"a": [0, 0], "b": [1, 0]}, z={"a": [0, 0], "c": [0, 0]})
    assert table.without_empty([None, frozenset("c")]).keys == (("b",), ("c",))


def test_coarsening_joins_neighbouring_bins_and_rounds_down() -> None:
    table = counts(x={-3: [1, 0], -1: [2, 0], 0: [4, 0], 1: [8, 1], 2: [16, 0]})
    coarse = table.coarsen(0, 1)
    assert coarse.keys == ((-2, -1, 0, 1),)
    assert coarse.cells.value[:, 0].tolist() == [1, 2, 12, 16]
    assert table.coarsen(0, 2).same(coarse.coarsen(0, 1))


def test_bins_of_several_columns_are_coarsened_each_so_often() -> None:
    table = counts(x={(0, -1): [1, 0], (1, -1): [2, 0], (1, 0): [4, 1]})
    coarse = table.coarsen(0, np.array([1, 0]))
    assert coarse.keys == (((0, -1), (0, 0)),)
    assert coarse.cells.value.tolist() == [[3, 0], [4, 1]]


def test_features_are_selected_in_order() -> None:
    table = counts(x={"a": [1, 2]}, z={"b": [3, 4], "c": [5, 6]})
    assert table.select([1]).keys == (("b", "c"),)
    assert table.select([1, 0]).cells.value.tolist() == [[3, 4], [5, 6], [1, 2]]
    assert table.select([0, 1]) is table


# Moments and products ------------------------------------------------------------------------------------------------

Z = st.one_of(  # steps of the grid
    st.integers(-(2**61), 2**61),
    st.integers(-9, 9),
    st.sampled_from([2**457, -(2**457), 2**57, 10**30 + 1]),
)
WEIGHTS = st.one_of(
    st.just(Fraction(1)),
    st.integers(1, 2**40).map(Fraction),
    st.integers(1, 2**70).map(lambda k: Fraction(k, 10**18)),
    st.sampled_from([Fraction(1, 10), Fraction(1, 10**18), Fraction(333333333333333315, 10**18)]),
)
Row = tuple[int, int, Fraction, int]  # two columns, weight, class of two
FEW = st.integers(1, 1000).map(lambda k: Fraction(k, 10**18))


def close(centre: tuple[int, int]) -> Any:
    """Rows a step or two apart that weigh next to nothing: the least rounding shows in them."""
    near = [st.integers(-2, 2).map(lambda k, z=z: z + k) for z in centre]
    return st.lists(st.tuples(*near, FEW, st.integers(0, 1)), min_size=1, max_size=5)


ROWS = st.one_of(
    st.lists(st.tuples(Z, Z, WEIGHTS, st.integers(0, 1)), max_size=8),
    st.tuples(Z, Z).flatmap(close),
)
SHIFTS = st.one_of(st.floats(-1e6, 1e6, allow_subnormal=False), st.sampled_from([0.0, 2.0**-57, 1 / 3, -0.1]))
SCALES = st.integers(-70, 70).map(lambda k: 2.0**k)


def moments(rows: list[Row]) -> Moments:
    """Each column by itself."""
    n, found = naive.zeros(2, 2), naive.zeros(2, 2, 2)
    for *z, w, c in rows:
        for f in range(2):
            n[f, c] += w
            found[f, c] += np.array([w * z[f], w * z[f] ** 2], dtype=object)
    return Moments(made(n), made(found))


def products(rows: list[Row]) -> Products:
    """Both together."""
    n, found = naive.zeros(2), naive.zeros(2, 5)
    for a, b, w, c in rows:
        n[c] += w
        found[c] += np.array([w * a, w * b, w * a * a, w * a * b, w * b * b], dtype=object)
    return Products(made(n), made(found))


BOTH = pytest.mark.parametrize("of", [moments, products])


def assert_possible(found: Moments | Products) -> None:
    """Rows can have such sums: none below zero, nothing of nothing, and n Σz² ≥ (Σz)²."""
    n, each = exact(found.n)[..., None], exact(found.sums)
    columns, squares = (slice(0, 1), [1]) if isinstance(found, Moments) else (slice(0, 2), [2, 4])
    assert (n >= 0).all()
    assert not each[n[..., 0] == 0].any()
    assert (n * each[..., squares] >= each[..., columns] ** 2).all()
    spread = found.spread if isinstance(found, Moments) else np.stack([found.scatter[:, i, i] for i in range(2)])
    assert (spread >= 0).all()
    assert not found.below_zero().any()


@BOTH
@given(rows=ROWS, more=ROWS)
def test_moments_and_products_are_those_of_their_rows(of: Any, rows: list[Row], more: list[Row]) -> None:
    one, other, both = of(rows), of(more), of(rows + more)
    assert (one + other).same(both)
    assert (both - other).same(one)
    assert one.same(other) == bool(
        (exact(one.n) == exact(other.n)).all() and (exact(one.sums) == exact(other.sums)).all()
    )
    swapped = of([(a, b, w, 1 - c) for a, b, w, c in rows])
    assert one.take([1, 0]).same(swapped)
    assert one.take([1, 0]).take([1]).same(one.take([0]))
    assert one.merge([1, 0], 2).same(swapped)
    pooled = of([(a, b, w, 0) for a, b, w, _ in rows])
    assert one.merge([0, 0], 2).same(pooled)
    assert_possible(both)
    assert one.merge([0, 0], 1).same(pooled.take([0]))


@given(ROWS)
def test_one_feature_of_several(rows: list[Row]) -> None:
    both = moments(rows)
    swapped = moments([(b, a, w, c) for a, b, w, c in rows])
    assert both.select([1, 0]).same(swapped)
    assert both.select([0, 1]) is both
    assert both.select([1]).same(swapped.take([0], 0))
    assert Moments(zeros(2, 2), zeros(2, 2, 2)).same(moments([]))
    assert Products(zeros(2), zeros(2, 5)).same(products([]))


@BOTH
@given(rows=ROWS, factors=st.lists(FACTORS.filter(lambda f: f <= 1e9), min_size=1, max_size=4))
def test_scaled_sums_are_those_that_rows_can_have(of: Any, rows: list[Row], factors: list[float]) -> None:
    found = of(rows)
    for factor in factors:
        before, (found, is_exact) = found, found.times(factor)
        n, told = before.n.times(factor)
        assert found.n.same(n)
        assert_possible(found)
        if is_exact:
            assert told
            assert (exact(found.sums) == exact(before.sums) * naive.parts(factor)).all()
        if factor == int(factor):
            assert is_exact


SMALL = st.one_of(st.integers(-200, 200), WHOLE)


@given(
    n=SMALL.map(lambda x: abs(x) + 1),
    first=SMALL,
    more=st.integers(0, 3),
    digits=st.sampled_from([18, 36]),
    factor=FACTORS,
)
def test_no_rounding_makes_squares_too_small(n: int, first: int, more: int, digits: int, factor: float) -> None:
    square = -(-(first**2) // n) + more
    unit = 10**digits
    found = sums.scale_sums(
        made([Fraction(n, unit)]), made([[Fraction(first, unit), Fraction(square, unit)]]), factor, 1
    )
    fewer, (less, squares) = exact(found[0])[0], exact(found[1])[0]
    assert fewer * squares >= less**2
    assert abs(less) <= abs(first) * fewer / n
    assert squares >= square * fewer / n
    if more == 0 and first % n == 0:
        assert fewer * squares == less**2, "what was constant"


@BOTH
@given(
    z=st.tuples(Z, Z),
    weights=st.lists(WEIGHTS, min_size=1, max_size=5),
    factors=st.lists(FACTORS.filter(lambda f: f <= 1e9), min_size=1, max_size=4),
)
def test_what_is_constant_stays_so_under_any_factor(of: Any, z: Any, weights: Any, factors: list[float]) -> None:
    found = of([(*z, w, 0) for w in weights])
    for factor in factors:
        found = found.times(factor)[0]
        n, each = exact(found.n), exact(found.sums)
        if isinstance(found, Moments):
            assert not found.spread.any()
            assert all((each[f, 0] == [n[f, 0] * z[f], n[f, 0] * z[f] ** 2]).all() for f in range(2))
        else:
            assert not found.scatter[:, [0, 1], [0, 1]].any()
            assert (each[0, :2] == [n[0] * z[0], n[0] * z[1]]).all()
            assert (each[0, [2, 4]] == [n[0] * z[0] ** 2, n[0] * z[1] ** 2]).all()


def spread_of(values: list[int], others: list[int], weights: list[Fraction]) -> Fraction:
    """Σ w (z - m)(y - k), in units of z."""
    n = sum(weights)
    mean, mate = (sum((w * z for w, z in zip(weights, x, strict=True)), Fraction(0)) / n for x in (values, others))
    each = (w * (z - mean) * (y - mate) for w, z, y in zip(weights, values, others, strict=True))
    return sum(each, Fraction(0)) / 4**57


def assert_close(found: float, expected: Fraction) -> None:
    """But for the rounding of a quotient of doubles; nothing is nothing, and a sign is a sign."""
    assert abs(Fraction(found) - expected) <= abs(expected) * Fraction(4, 2**53)


@given(ROWS)
def test_deviations_are_those_from_exact_means(rows: list[Row]) -> None:
    alone, together = moments(rows), products(rows)
    assert alone.spread.shape == (2, 2)
    assert together.scatter.shape == (2, 2, 2)
    for c in range(2):
        own = [row for row in rows if row[3] == c]
        weights = [row[2] for row in own]
        for i in range(2):
            z = [row[i] for row in own]
            if not own:
                assert alone.mean[i, c] == together.mean[c, i] == alone.spread[i, c] == together.scatter[c, i, i] == 0
                continue
            assert_close(alone.spread[i, c], spread_of(z, z, weights))
            total = sum((w * x for w, x in zip(weights, z, strict=True)), Fraction(0))
            assert_close(alone.mean[i, c], total / sum(weights) / 2**57)
            assert_close(together.mean[c, i], total / sum(weights) / 2**57)
            for j in range(2):
                expected = spread_of(z, [row[j] for row in own], weights)
                assert_close(together.scatter[c, i, j], expected)


@given(ROWS)
def test_pooled_sums_are_those_of_one_class(rows: list[Row]) -> None:
    one = [(a, b, w, 0) for a, b, w, _ in rows]
    for found, expected in zip(moments(rows).pool(), moments(one).pool(), strict=True):
        assert found.tolist() == expected.tolist()
    n, mean, spread = moments(rows).pool()
    all_of_it = moments(one).take([0])
    assert (n.tolist(), mean.tolist()) == (all_of_it.n.value.tolist(), all_of_it.mean.tolist())
    assert spread.tolist() == all_of_it.spread.tolist()
    total, centre, scatter = products(rows).pool()
    together = products(one)
    assert total == together.n.value[0]
    assert (centre.tolist(), scatter.tolist()) == (together.mean[0].tolist(), together.scatter[0].tolist())


def test_nothing_cancels_of_values_that_lie_close_together_far_out() -> None:
    far = 2**57 * 10**12
    rows = [(far + k, -far - 3 * k, Fraction(1, 10), 0) for k in (-1, 0, 1)]
    assert_close(moments(rows).spread[0, 0], Fraction(2, 10) / 4**57)
    assert_close(products(rows).scatter[0, 1, 0], Fraction(-6, 10) / 4**57)
    assert_close(products(rows).scatter[0, 1, 1], Fraction(18, 10) / 4**57)


@BOTH
def test_impossible_sums_are_found(of: Any) -> None:
    one = Fraction(1)

    def some(*numbers: int) -> Any:
        return of([(z, z, one, 0) for z in numbers])

    assert (some(1, 2, 4) - some(9)).below_zero()[..., 0].all()
    assert not (some(1, 2, 4) - some(2)).below_zero().any()
    assert (some(1) - some(3)).below_zero()[..., 0].all(), "something of nothing"
    assert (some(1) - some(1, 1)).below_zero()[..., 0].all(), "less than none"
    assert not (some(1, 5) - some(3)).below_zero().any(), "two halves of a row, as far as sums can tell"
    assert not (some(1, 2, 4) - some(9)).below_zero()[..., 1].any()
    assert not (some(3) - some(3)).below_zero().any()


# Other origins and units ---------------------------------------------------------------------------------------------


@BOTH
@given(rows=ROWS, shift=st.tuples(SHIFTS, SHIFTS), scale=st.tuples(SCALES, SCALES))
def test_about_finer_units_shifting_is_counting_anew(of: Any, rows: Any, shift: Any, scale: Any) -> None:
    by = [round(Fraction(x) * 2**57) for x in shift]
    fine = [max(x, 1 / x) for x in scale]
    anew = [(int(fine[0]) * (a + by[0]), int(fine[1]) * (b + by[1]), w, c) for a, b, w, c in rows]
    found = of(rows).shift(np.array(shift), np.array(fine))
    assert found.same(of(anew))
    back = found.shift(np.zeros(2), 1 / np.array(fine)).shift(-np.array(shift), np.ones(2))
    assert back.same(of(rows)), "and back"


@BOTH
@given(rows=ROWS, shift=st.tuples(SHIFTS, SHIFTS), scale=st.tuples(SCALES, SCALES))
def test_shifted_sums_are_those_that_rows_can_have(of: Any, rows: Any, shift: Any, scale: Any) -> None:
    found = of(rows).shift(np.array(shift), np.array(scale))
    assert found.n.same(of(rows).n)
    assert_possible(found)


@BOTH
@given(
    z=st.tuples(Z, Z),
    weights=st.lists(WEIGHTS, min_size=1, max_size=5),
    shift=st.tuples(SHIFTS, SHIFTS),
    scale=st.tuples(SCALES, SCALES),
)
def test_what_is_constant_stays_so_about_any_origin(of: Any, z: Any, weights: Any, shift: Any, scale: Any) -> None:
    by = [round(Fraction(x) * 2**57) for x in shift]
    moved = [round(Fraction(scale[i]) * (z[i] + by[i])) for i in range(2)]
    found = of([(*z, w, 0) for w in weights]).shift(np.array(shift), np.array(scale))
    expected = of([(*moved, w, 0) for w in weights])
    if isinstance(found, Moments):
        assert found.same(expected)
        assert not found.spread.any()
    else:
        ours, theirs = exact(found.sums), exact(expected.sums)
        assert (ours[:, [0, 1, 2, 4]] == theirs[:, [0, 1, 2, 4]]).all()
        assert not found.scatter[:, [0, 1], [0, 1]].any()


def test_shifting_moments_is_counting_about_another_origin() -> None:
    def of(*numbers: float) -> Moments:
        return moments([(int(x * 2**57), 0, Fraction(1), 0) for x in numbers]).select([0])

    shifted = of(1.0, 2.0, 4.5).shift(np.array([3.0]), np.array([0.5]))
    assert shifted.same(of(2.0, 2.5, 3.75))


# Combinations --------------------------------------------------------------------------------------------------------

AXES = st.tuples(st.sets(st.sampled_from("abcd")), st.sets(st.integers(-3, 3)), st.just({True, False}))


@st.composite
def counts_of_combinations(draw: st.DrawFn) -> tuple[Counts, Counts]:
    """The same counts, with keys that are made when asked for, and with tuples."""
    axes = tuple(sort_keys(axis) for axis in draw(AXES))
    size = math.prod(map(len, axes))
    cells = sorted(draw(st.sets(st.integers(0, size - 1)))) if size else []
    keys = Combinations(axes, np.array(cells, dtype=np.int64))
    rows = Integers.of(np.array([[[1 + k % 5]] for k in cells], dtype=np.int64).reshape(-1, 1, 1), 0)
    return Counts((keys,), rows), Counts((tuple(keys),), rows)  # type: ignore[arg-type]


@given(counts_of_combinations(), counts_of_combinations())
def test_combinations_are_tuples_that_are_made_when_asked_for(one: Any, other: Any) -> None:
    (lazy, plain), (lazy_too, plain_too) = one, other
    assert lazy.same(plain) and plain.same(lazy) and len(lazy.keys[0]) == len(plain.keys[0])
    assert sort_keys(lazy.keys[0]) == plain.keys[0] == pickle.loads(pickle.dumps(lazy)).keys[0]
    assert (lazy.keys[0] == lazy_too.keys[0]) == (plain.keys[0] == plain_too.keys[0])
    for a, b in ((lazy, lazy_too), (lazy, plain_too), (plain, lazy_too)):
        assert (a + b).same(plain + plain_too)
        assert (a + b - b).without_empty([]).same(plain)
    kept = pickle.loads(pickle.dumps(lazy)).keys[0].axes
    assert [set(axis) for axis in kept] == [{key[k] for key in plain.keys[0]} for k in range(3)]
    used = np.arange(len(plain.keys[0])) % 2 == 0
    assert lazy.only(used).same(plain.only(used))
    axes = tuple(sort_keys({*axis, *more}) for axis, more in zip(lazy.keys[0].axes, ("xy", (9,), ()), strict=True))
    np.testing.assert_array_equal(cells_of(lazy.keys[0], axes), cells_of(plain.keys[0], axes))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-9, 9)), st.lists(st.integers(-9, 9)), st.integers(0, 3))
def test_keys_in_an_array_are_those_in_a_tuple(some, others, halved):
    """Whole keys held as an array add, subtract, coarsen and compare as the same keys of Python's."""

    def counts(rows, hold):
        keys = sorted(set(rows))
        cells = np.array([[rows.count(key), 2] for key in keys], dtype=np.int64).reshape(-1, 2, 1)
        return Counts((hold(keys),), Integers.of(cells, 0))

    def array(keys):
        return WholeKeys(np.array(keys, dtype=np.int64))

    (a, b), (c, d) = ([counts(rows, hold) for rows in (some, others)] for hold in (array, tuple))
    for one, other in ((a + b, c + d), (a + d, c + d), (a + b - b, c), ((a - a).without_empty([None]), c - c)):
        other = other.without_empty([None])
        one = one.without_empty([None])
        assert one.same(other) and other.same(one) and list(one.keys[0]) == list(other.keys[0])
    coarse, same = a.coarsen(0, halved), c.coarsen(0, halved)
    assert coarse.same(same) and coarse.keys == same.keys
    held = pickle.loads(pickle.dumps(a.keys[0]))
    assert held == tuple(sorted(set(some))) == held and held[:2] == tuple(held)[:2] and (5 in held) == (5 in some)
    assert repr(held) == repr(tuple(held)) and (not held or type(held[0]) is int) and held != (*held, 99)


@given(st.sets(st.integers(-9, 30)), st.sets(st.integers(-9, 30)))
def test_keys_of_either_are_put_in_order(a: set[int], b: set[int]) -> None:
    both = sums.unite_keys(*(WholeKeys(np.array(sorted(keys), dtype=np.int64)) for keys in (a, b)))
    assert both.numbers.tolist() == sorted(a | b)
