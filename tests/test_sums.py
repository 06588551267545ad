"""Expansions, rows, counts and moments: the arithmetic under every tally."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banbury.sums import Counts, Moments, Rows, expansion, in_order, plus, times, total, value

NUMBERS = st.floats(-1e30, 1e30, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-30)


def exact(a: Any) -> Fraction:
    return sum(map(Fraction, np.asarray(a).tolist()), Fraction(0))


def summed(numbers: list[float]) -> np.ndarray:
    result = np.zeros(3)
    for number in numbers:
        result = plus(result, expansion(number))
    return result


# Expansions


@given(st.lists(NUMBERS, max_size=8))
def test_sums_of_expansions_keep_forty_digits(numbers: list[float]) -> None:
    wanted = sum(map(Fraction, numbers), Fraction(0))
    size = sum(abs(Fraction(x)) for x in numbers)
    assert abs(exact(summed(numbers)) - wanted) <= size * Fraction(1, 10**40)


@given(NUMBERS, NUMBERS, st.floats(-1e6, 1e6, allow_subnormal=False))
def test_products_of_expansions_keep_forty_digits(a: float, b: float, factor: float) -> None:
    wanted = (Fraction(a) + Fraction(b)) * Fraction(factor)
    size = (abs(Fraction(a)) + abs(Fraction(b))) * abs(Fraction(factor)) + Fraction(1, 10**250)
    assert abs(exact(times(summed([a, b]), factor)) - wanted) <= size * Fraction(1, 10**40)


@given(NUMBERS, NUMBERS)
def test_what_is_added_to_an_expansion_can_be_taken_out(a: float, b: float) -> None:
    assert exact(plus(summed([a, b]), -expansion(b))) == Fraction(a)


@given(st.lists(NUMBERS, min_size=1, max_size=8))
def test_an_expansion_is_sorted_by_size_and_rounds_to_its_value(numbers: list[float]) -> None:
    found = summed(numbers)
    assert abs(found[0]) >= abs(found[1]) >= abs(found[2])
    assert value(found) == pytest.approx(float(sum(map(Fraction, numbers))), rel=1e-15, abs=1e-300)


def test_a_total_is_the_sum_along_its_axis() -> None:
    numbers = np.random.default_rng(0).normal(size=(5, 2, 3))
    parts = expansion(numbers)
    for axis in range(3):
        assert value(total(parts, axis)) == pytest.approx(numbers.sum(axis=axis))


def test_a_thousand_tenths_are_a_hundred_to_the_last_digit() -> None:
    assert exact(summed([0.1] * 1000)) == 1000 * Fraction(0.1)


# Keys


def test_keys_have_one_order_whatever_order_they_came_in() -> None:
    assert in_order(["b", "a"]) == ("a", "b")
    assert in_order([2, 1.5, -1]) == (-1, 1.5, 2)
    assert in_order([None, "a", 3, True, False]) == (False, True, 3, "a", None)
    assert in_order([True, "a", False, 3, None]) == (False, True, 3, "a", None)


# Rows


def test_rows_are_whole_until_a_weight_is_fractional() -> None:
    plain = Rows(np.array([2, 0]))
    weighted = Rows(np.array([1, 1]), expansion([0.5, 0.25]))
    assert (plain + plain).weights is None
    assert (plain + weighted).value.tolist() == [2.5, 0.25]
    assert (plain + weighted).rows.tolist() == [3, 1]


def test_an_emptied_cell_of_weights_is_exactly_zero() -> None:
    a = Rows(np.array([1]), expansion([0.1]))
    b = Rows(np.array([1]), expansion([0.7]))
    left = (a + b) - b - a
    assert left.rows.tolist() == [0]
    assert left.value.tolist() == [0.0]


def test_whole_rows_are_the_same_only_if_equal_and_weights_if_close() -> None:
    assert not Rows(np.array([10**15])).same(Rows(np.array([10**15 + 1])))
    near = Rows(np.array([1]), expansion([1.0 + 1e-14]))
    far = Rows(np.array([1]), expansion([1.0 + 1e-10]))
    assert near.same(Rows(np.array([1])))
    assert not far.same(Rows(np.array([1])))


def test_rows_take_place_and_merge_along_an_axis() -> None:
    rows = Rows(np.array([[1, 2], [3, 4]]), expansion([[0.5, 1.0], [1.5, 2.0]]))
    assert rows.take([1], 0).value.tolist() == [[1.5, 2.0]]
    placed = rows.place(np.array([2, 0]), 3, 0)
    assert placed.rows.tolist() == [[3, 4], [0, 0], [1, 2]]
    assert rows.merge(np.array([0])).value.tolist() == [[2.0, 3.0]]


# Counts


def counts(**cells: dict[Any, list[int]]) -> Counts:
    parts = [(in_order(keys), Rows(np.array([keys[k] for k in in_order(keys)]))) for keys in cells.values()]
    return Counts.join(parts, 2)


def test_a_union_has_the_keys_of_both_and_the_cells_of_each() -> None:
    a, b = counts(x={"a": [1, 0], "c": [2, 2]}), counts(x={"b": [5, 5]})
    left, right = a.union(b)
    assert left.keys == right.keys == (("a", "b", "c"),)
    assert left.cells.rows.tolist() == [[1, 0], [0, 0], [2, 2]]
    assert right.cells.rows.tolist() == [[0, 0], [5, 5], [0, 0]]


def test_empty_keys_are_dropped_unless_declared() -> None:
    table = counts(x={"a": [0, 0], "b": [1, 0]}, z={"a": [0, 0], "c": [0, 0]})
    assert table.without_empty([None, frozenset("c")]).keys == (("b",), ("c",))


def test_coarsening_joins_neighbouring_bins_and_rounds_down() -> None:
    table = counts(x={-3: [1, 0], -1: [2, 0], 0: [4, 0], 1: [8, 1], 2: [16, 0]})
    coarse = table.coarsen(0, 1)
    assert coarse.keys == ((-2, -1, 0, 1),)
    assert coarse.cells.rows[:, 0].tolist() == [1, 2, 12, 16]
    assert table.coarsen(0, 2).same(coarse.coarsen(0, 1))


def test_features_are_selected_in_order() -> None:
    table = counts(x={"a": [1, 2]}, z={"b": [3, 4], "c": [5, 6]})
    assert table.select([1]).keys == (("b", "c"),)
    assert table.select([1, 0]).cells.rows.tolist() == [[3, 4], [5, 6], [1, 2]]


# Moments


def moments(*numbers: float) -> Moments:
    sums = np.stack([summed(list(numbers)), sum_of_squares(numbers)])[None, None]
    return Moments(Rows(np.array([[len(numbers)]])), sums)


def sum_of_squares(numbers: tuple[float, ...]) -> np.ndarray:
    result = np.zeros(3)
    for number in numbers:
        result = plus(result, times(expansion(number), number))
    return result


def test_moments_add_and_subtract() -> None:
    a, b = moments(1.0, 2.0, 4.0), moments(1e12, 0.1)
    assert (a + b - b).same(a)
    assert (a + b - b).spread[0, 0] == pytest.approx(a.spread[0, 0], rel=1e-12)
    assert a.mean[0, 0] == pytest.approx(7 / 3)
    assert a.spread[0, 0] == pytest.approx(14 / 3)


def test_impossible_moments_are_found() -> None:
    a, stranger = moments(1.0, 2.0, 4.0), moments(9.0)
    assert (a - stranger).below_zero(a).all()
    assert not (a - moments(2.0)).below_zero(a).any()
    assert (moments(1.0) - moments(3.0)).below_zero(moments(1.0)).all()


def test_shifting_moments_is_counting_about_another_origin() -> None:
    a = moments(1.0, 2.0, 4.5)
    shifted = a.shift(np.array([3.0]), np.array([0.5]))
    assert shifted.same(moments(2.0, 2.5, 3.75))
