"""Every function of the Rust core against its slow twin in naive_core.py."""

import ast
import inspect
import itertools
import math
import pathlib
from fractions import Fraction

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import banbury
import naive_core as naive
from banbury import _core
from banbury._core import BadValue, Integers
from kernel_parts import kernel_part as as_part
from kernel_parts import score

REALS = ["float64", "float32"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"]
LAYOUTS = ["C", "F", "strided", "reversed", "repeated", "columns", "mixed", "packed"]
WEIGHTS = ["none", "whole", "real"]
n_threads = pytest.mark.parametrize("threads", [1, 4])


def lay(matrix, layout):
    """The same numbers, elsewhere in memory."""
    n, k = matrix.shape
    if layout == "C":
        return [np.ascontiguousarray(matrix)]
    if layout == "F":
        return [np.asfortranarray(matrix)]
    if layout == "strided":
        wide = np.full((2 * n, 3 * k), 99, matrix.dtype)
        wide[::2, ::3] = matrix
        return [wide[::2, ::3]]
    if layout == "reversed":
        return [matrix[::-1, ::-1].copy()[::-1, ::-1]]
    if layout == "repeated":
        return [np.broadcast_to(matrix[:, :1], (n, k))] if k else [matrix]
    if layout == "columns":
        return [matrix[:, j].copy() for j in range(k)]
    if layout == "mixed":
        return [matrix[:, 0].copy(), np.asfortranarray(matrix[:, 1:2]), matrix[:, :0], matrix[:, 2:].copy()]
    packed = np.zeros((n, k), [("pad", "u1"), ("value", matrix.dtype)])
    packed["value"] = matrix
    return [packed["value"]]


def rows_of(rng, n, n_classes, kind):
    """Classes, and weights as the twins take them: None, whole numbers, or doubles."""
    classes = rng.integers(-1, n_classes, n).astype(np.int32)
    if kind == "none":
        return classes, None
    if kind == "whole":
        return classes, rng.choice([1, 2, 29, 10**15], n, p=[0.4, 0.3, 0.2, 0.1])
    return classes, rng.choice([0.1, 1 / 3, 0.75, 20.3, 1e-18, 2.0**40 + 1 / 3], n)


def given(weights):
    """Weights as the core takes them."""
    return _core.parts(weights) if weights is not None and weights.dtype == float else weights


def reals(rng, n, k, dtype="float64", missing=0.1):
    x = rng.normal(size=(n, k)).astype(dtype)
    x[rng.random((n, k)) < missing] = np.nan
    return x


def integers(rng, n, k, dtype, low=0, high=7):
    return rng.integers(low if dtype[0] == "i" else max(low, 0), high, (n, k)).astype(dtype)


def assert_sums(found, expected):
    """The same exact numbers, in the one form that they have."""
    assert isinstance(found, Integers)
    assert tuple(found.shape) == expected.shape
    limbs = found.limbs()
    assert limbs.dtype == np.int64
    flat = limbs.reshape(-1, limbs.shape[-1])
    assert (flat.tolist(), found.digits) == naive.limbs(expected.ravel().tolist())


def same(a, b):
    """Equal bit for bit."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Integers):
        return a.same(b) and a.digits == b.digits and same(a.limbs(), b.limbs())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return a == b


def bad_value(call, *expected):
    with pytest.raises(BadValue) as caught:
        call()
    assert caught.value.args == expected
    assert type(caught.value.args[3]) is type(expected[3])


def test_the_stub_names_what_there_is():
    stub = ast.parse(pathlib.Path(banbury.__file__).with_name("_core.pyi").read_text())
    said = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    there = {name for name in dir(_core) if not name.startswith("__")}
    assert said == there


def test_the_stub_names_arguments_and_methods_as_they_are():
    stub = ast.parse(pathlib.Path(banbury.__file__).with_name("_core.pyi").read_text())
    for node in stub.body:
        if isinstance(node, ast.FunctionDef):
            assert_same_arguments(node, getattr(_core, node.name))
        elif isinstance(node, ast.ClassDef) and not issubclass(getattr(_core, node.name), Exception):
            there = getattr(_core, node.name)
            names = {name for name in vars(there) if not name.startswith("__")}
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            fields = {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)}
            assert names == fields | {each.name for each in methods if not each.name.startswith("__")}, node.name
            for method in methods:
                if method.name == "__init__" or not method.name.startswith("__"):
                    assert_same_arguments(method, there if method.name == "__init__" else getattr(there, method.name))


def assert_same_arguments(node, function):
    names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
    found = [name for name in inspect.signature(function).parameters if name != "self"]
    assert found == names, node.name


def test_values_that_are_refused_are_value_errors():
    assert issubclass(BadValue, ValueError)
    assert BadValue.__name__ == "BadValue"


# ---- encoding


@n_threads
@pytest.mark.parametrize("width", [0, 1, 2, 3, 4, 7, 8, 9, 16, 33])
@pytest.mark.parametrize("n", [0, 1, 300])
def test_encode_records(width, n, threads):
    records = np.random.default_rng(width).integers(0, 3, (n, width)).astype(np.uint8)
    for laid in (records, records[::-1].copy()[::-1], np.asfortranarray(records)):
        codes, first, counts = _core.encode_records(laid, threads)
        assert (codes.dtype, first.dtype, counts.dtype) == (np.int32, np.int64, np.int64)
        assert (codes.tolist(), first.tolist(), counts.tolist()) == naive.encode_records(records)


@pytest.mark.parametrize("distinct", [5, 40_000])
@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "i8", "U3", "S5"])
def test_encode_records_in_parallel(dtype, distinct):
    values = np.random.default_rng(1).integers(0, distinct, 100_000).astype(dtype)
    records = values.view(np.uint8).reshape(len(values), -1)
    one = _core.encode_records(records, 1)
    assert same(one, _core.encode_records(records, 4))
    assert (one[0].tolist(), one[1].tolist(), one[2].tolist()) == naive.encode(values.tolist())


STRINGS = [
    b"ham",
    b"",
    b" ham\t",
    b"spam",
    b"\x0b\x0c \r\n",
    b"ham",
    b"a longer string than eight",
    b"spam ",
    b"\xc3\xa9",
]


@n_threads
@pytest.mark.parametrize("strip", [False, True])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("valid_offset", [None, 0, 5])
def test_encode_strings(dtype, strip, valid_offset, threads):
    rng = np.random.default_rng(2)
    strings = [STRINGS[i] for i in rng.integers(0, len(STRINGS), 33_000)]
    offsets = np.concatenate([[3], 3 + np.cumsum([len(s) for s in strings])]).astype(dtype)
    data = np.frombuffer(b"xyz" + b"".join(strings) + b"rest", np.uint8)
    valid = None if valid_offset is None else rng.integers(0, 256, 5002).astype(np.uint8)
    found = _core.encode_strings(offsets, data, valid, valid_offset or 0, strip, threads)
    expected = naive.encode_strings(offsets.tolist(), data, valid, valid_offset or 0, strip)
    assert tuple(a.tolist() for a in found) == expected


NUMBERS = [
    b"0",
    b"0.5",
    b" 51.1743",
    b"-3",
    b"-0.001",
    b"1e-7",
    b"12345678.9",
    b"0.1234567890123456789",
    b"",
    b"NA",
    b"-0",
]
WORDS = [
    *(text for text in STRINGS if not text.strip(b" spamhleongrtit\xc3\xa9")),
    b"spams",
    b"eightong",
    b"longerthanhere",
    b"",
]


@pytest.mark.parametrize("line_end", [b"\n\n", b"\r\n"])
@pytest.mark.parametrize("known", [b"", b"spams\nham\n"])
@pytest.mark.parametrize("delimiter", [b",", b"\t", b" "])
def test_parse_fields(delimiter, known, line_end):
    rng = np.random.default_rng(4)
    drawn = [[each[i] for i in rng.integers(0, len(each), 5000)] for each in (NUMBERS, WORDS)]
    drawn += [[b"%d" % number for number in rng.integers(-(10**17), 10**17, 5000) // 10 ** rng.integers(0, 17, 5000)]]
    places = rng.integers(1, 9, 5000).tolist()
    drawn += [[b"%.*f" % (digits, x) for digits, x in zip(places, rng.normal(size=5000) * 99, strict=True)]]
    columns = [[field.replace(delimiter, b"") for field in column] for column in drawn]
    lines = [delimiter.join(row) for row in zip(*columns, strict=True)]
    data, missing, known = line_end.join(lines), [b"", b"NA"], [b"", known, b"", b""]
    found = _core.parse_fields(np.frombuffer(data, np.uint8), ord(delimiter), ord('"'), "fsif", missing, known)
    expected = naive.parse_fields(data, delimiter, "fsif", missing, known)
    for mine, theirs in zip(found, expected, strict=True):
        if isinstance(mine, tuple):
            assert (mine[0].tolist(), [data[a:b] for a, b in mine[1]]) == theirs
        else:
            assert mine.tobytes() == np.array(theirs).tobytes()


def test_encode_no_strings():
    found = _core.encode_strings(np.zeros(1, np.int32), np.zeros(0, np.uint8), None, 0, False, 1)
    assert [len(a) for a in found] == [0, 0, 0]


class Word(str):
    pass


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["b", "a", "b", None, float("nan"), "", "é" * 9, "a", Word("b"), np.str_("a"), np.float64("nan")],
        ["\ud800", "a", "\ud800", "\udfff"],
        ["a", 1],
        ["a", 1.5],
        ["a", b"a"],
        [True],
        [None, None],
        [str(i % 777) for i in range(5000)],
    ],
)
def test_encode_objects(values):
    found = _core.encode_objects(values)
    expected = naive.encode_objects(values)
    assert (found if found is None else tuple(a.tolist() for a in found)) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.encode_records(np.zeros(3, np.uint8), 1),
        lambda: _core.encode_records(np.zeros((3, 2), np.int8), 1),
        lambda: _core.encode_records(np.zeros((3, 2), np.uint8), 0),
        lambda: _core.encode_records([[1]], 1),
        lambda: strings([]),
        lambda: strings([0, 4]),
        lambda: strings([2, 1]),
        lambda: strings([-1, 1]),
        lambda: strings([0, 2, 1, 3]),
        lambda: strings([0, 1], valid=np.zeros(0, np.uint8)),
        lambda: strings([0, 1], valid=np.zeros(1, np.uint8), valid_offset=8),
        lambda: strings([0, 1], valid=np.zeros(1, np.uint8), valid_offset=-1),
        lambda: strings([0.0, 1.0], dtype=float),
        lambda: strings([0, 1], threads=-1),
    ],
)
def test_encode_refuses(call):
    with pytest.raises(ValueError):
        call()


def strings(offsets, dtype=np.int64, valid=None, valid_offset=0, threads=1):
    data = np.frombuffer(b"abc", np.uint8)
    return _core.encode_strings(np.array(offsets, dtype), data, valid, valid_offset, False, threads)


# ---- weights


WRITTEN = st.integers(1, 10**15 - 1).flatmap(lambda n: st.integers(0, 18).map(lambda d: float(f"{n}e-{d}")))
WEIGHTS_OF_ALL_SIZES = st.one_of(
    st.floats(0, 9.1e18),
    st.floats(0, 1),
    WRITTEN,
    st.integers(-90, 62).map(lambda k: 2.0**k),
    st.integers(2**50, 2**60).map(float),
    st.integers(0, 2000).map(lambda n: (n + 0.5) * 1e-18),
)


def python_parts(limbs):
    assert limbs.dtype == np.uint64
    return [Fraction(low + 2**64 * high, 10**18) for low, high in limbs.reshape(-1, 2).tolist()]


@hypothesis.given(st.lists(WEIGHTS_OF_ALL_SIZES, min_size=1, max_size=9))
def test_parts(weights):
    found = _core.parts(np.array(weights))
    assert found.shape == (len(weights), 2)
    assert python_parts(found) == [naive.parts(w) for w in weights]


@hypothesis.given(WRITTEN)
def test_a_weight_of_fifteen_digits_is_the_number_that_is_written(weight):
    assert Fraction(repr(weight)) == python_parts(_core.parts(np.array([weight])))[0]


@hypothesis.given(st.lists(st.lists(st.floats(0, 1e6), min_size=3, max_size=3), min_size=1, max_size=5))
def test_parts_of_soft_labels(rows):
    found = _core.parts(np.array(rows))
    assert found.shape == (len(rows), 3, 2)
    for row, shares in zip(rows, found, strict=True):
        each, one = python_parts(shares), [naive.parts(w) for w in row]
        largest = one.index(max(one))
        assert each[:largest] + each[largest + 1 :] == one[:largest] + one[largest + 1 :]
        if sum(share > 0 for share in one) < 2:
            assert each == one, "the class that has all of it"
            continue
        total, written = sum(each), Fraction(f"{sum(row):.15g}")
        assert total == Fraction(f"{float(total):.15g}"), "fifteen digits"
        if float(written) == sum(row) and (written * 10**18).denominator == 1:
            assert total == written


@hypothesis.given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12))
def test_soft_labels_of_a_row_are_a_row(numbers):
    row = np.array(numbers) / sum(numbers)
    assert sum(python_parts(_core.parts(row[None]))) == 1


def test_parts_of_nothing_and_of_other_shapes():
    assert _core.parts(np.zeros(0)).shape == (0, 2)
    assert _core.parts(np.zeros((0, 3))).shape == (0, 3, 2)
    assert _core.parts(np.zeros((3, 0))).shape == (3, 0, 2)
    assert _core.parts(np.arange(8.0)[::2]).tolist() == _core.parts(np.array([0.0, 2.0, 4.0, 6.0])).tolist()


@pytest.mark.parametrize("weight", [-1.0, -1e-300, math.nan, math.inf, 2.0**63, 1e300])
def test_parts_refuse(weight):
    for weights in (np.array([weight]), np.array([[0.5, weight]])):
        with pytest.raises(ValueError):
            _core.parts(weights)
    with pytest.raises(ValueError):
        _core.parts(np.array([1]))


# ---- counting


@n_threads
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_count_classes(n, kind, threads):
    classes, weights = rows_of(np.random.default_rng(n), n, 4, kind)
    found = _core.count_classes(classes, 4, given(weights), threads)
    assert_sums(found, naive.count_classes(classes, 4, weights))
    if weights is not None:
        twice = np.repeat(given(weights), 2, axis=0)[::2]
        assert same(found, _core.count_classes(np.repeat(classes, 2)[::2], 4, twice, threads))


@pytest.mark.parametrize("count", [_core.count_moments, _core.count_products])
def test_ones_are_ones_however_they_are_written(count):
    rng = np.random.default_rng(1)
    x = reals(rng, 3000, 3)
    x[::50] *= 1e9
    rest = np.zeros(3), np.ones(3), rng.integers(-1, 2, 3000).astype(np.int32), 2
    ones = count([x], *rest, None, 2)
    assert same(ones, count([x], *rest, np.ones(3000, int), 2))
    assert same(ones, count([x], *rest, _core.parts(np.ones(3000)), 2))
    three = count([np.repeat(x, 3, axis=0)], *rest[:2], np.repeat(rest[2], 3), 2, None, 2)
    assert same(three, count([x], *rest, np.full(3000, 3), 2))
    tenths = count(
        [np.repeat(x, 30, axis=0)], *rest[:2], np.repeat(rest[2], 30), 2, _core.parts(np.full(90_000, 0.1)), 2
    )
    assert same(three, tenths)


def assert_all_sums(found, expected):
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert_sums(ours, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("dtype", REALS + INTEGERS)
def test_count_moments_and_products(dtype, kind, layout):
    rng = np.random.default_rng(3)
    x = reals(rng, 70, 5, dtype) * 3 if dtype in REALS else integers(rng, 70, 5, dtype, -100, 127)
    if dtype in REALS:
        x[rng.random(x.shape) < 0.02] = 1e4
    columns = lay(x, layout)
    origin, unit = rng.normal(size=5), 2.0 ** rng.integers(-2, 5, 5)
    classes, weights = rows_of(rng, 70, 3, kind)
    rest = origin, unit, classes, 3
    found = _core.count_moments(columns, *rest, given(weights), 1)
    assert_all_sums(found, naive.count_moments(columns, *rest, weights))
    found = _core.count_products(columns, *rest, given(weights), 1)
    assert_all_sums(found, naive.count_products(columns, *rest, weights))


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("missing", [0, 0.05])
@pytest.mark.parametrize("name", ["count_moments", "count_products"])
def test_count_moments_and_products_in_parallel(name, kind, missing):
    rng = np.random.default_rng(4)
    x = reals(rng, 20_000, 7, missing=missing)
    x[rng.random(x.shape) < 0.001] = 1e12
    classes, weights = rows_of(rng, len(x), 3, kind)
    count, scale = getattr(_core, name), (np.zeros(7), np.full(7, 0.5))
    one = count([x], *scale, classes, 3, given(weights), 1)
    for layout in ("C", "F", "columns", "reversed"):
        assert same(one, count(lay(x, layout), *scale, classes, 3, given(weights), 4))
    order = rng.permutation(len(x))
    other = None if weights is None else given(weights[order])
    assert same(one, count([x[order]], *scale, classes[order], 3, other, 4))
    parts = [slice(0, 7001), slice(7001, 20_000)]
    first, second = (
        count([x[part]], *scale, classes[part], 3, None if weights is None else given(weights[part]), 2)
        for part in parts
    )
    assert all(same(a + b, both) and same(both - b, a) for a, b, both in zip(first, second, one, strict=True))
    few = slice(0, 1500)
    weights = None if weights is None else weights[few]
    found = count([x[few]], *scale, classes[few], 3, given(weights), 2)
    assert_all_sums(found, getattr(naive, name)([x[few]], *scale, classes[few], 3, weights))


def test_wide_and_many_classes():
    rng = np.random.default_rng(5)
    x = reals(rng, 30, 270)
    classes = rng.integers(-1, 9, 30).astype(np.int32)
    rest = np.zeros(270), np.ones(270), classes, 9, None
    assert_all_sums(_core.count_moments([x], *rest, 4), naive.count_moments([x], *rest))
    rest = np.zeros(60), np.ones(60), classes, 9, None
    assert_all_sums(_core.count_products([x[:, :60]], *rest, 4), naive.count_products([x[:, :60]], *rest))


GRID_EDGES = [
    *(k * 2.0**-58 for k in (1, 3, 5, -1, -3, 7)),  # ties of the grid
    *(1 + k * 2.0**-52 for k in (1, -1, 3)),
    *(k * 2.0**-36 + j * 2.0**-58 for k in (1, -3) for j in (1, -1)),
    *(16.0, -16.0, math.nextafter(16, 0), math.nextafter(16, 17), -math.nextafter(16, 17)),
    *(5e-324, -5e-324, 2.0**-1022, 1e-300, 2.0**-57, 2.0**-59, 0.0, -0.0),
    *(2.0**400, -(2.0**400), math.nextafter(2.0**400, 0), 1e100, -3e50),
]
NASTY = st.one_of(
    st.sampled_from([*GRID_EDGES, math.nan]),
    st.floats(-17, 17),
    st.floats(-1e-15, 1e-15),
    st.floats(-(2.0**400), 2.0**400),
    st.integers(-(2**62), 2**62).map(lambda k: k * 2.0**-58),
)


@hypothesis.given(
    x=st.lists(st.tuples(NASTY, NASTY), min_size=1, max_size=12),
    numbers=st.lists(st.integers(1, 2**58), min_size=12, max_size=12),
    exact=st.lists(WEIGHTS_OF_ALL_SIZES.filter(lambda w: 1e-18 <= w < 2e17), min_size=12, max_size=12),
    kind=st.sampled_from(WEIGHTS),
    unit=st.sampled_from([1.0, 2.0**-30, 2.0**20]),
)
def test_sums_of_nasty_values_are_exact(x, numbers, exact, kind, unit):
    n = len(x)
    columns, classes = [np.array(x) * unit], (np.arange(n) % 3 - 1).astype(np.int32)
    weights = {"none": None, "whole": np.array(numbers[:n]), "real": np.array(exact[:n])}[kind]
    rest = np.zeros(2), np.full(2, unit), classes, 2
    for name in ("count_moments", "count_products"):
        found = getattr(_core, name)(columns, *rest, given(weights), 1)
        assert_all_sums(found, getattr(naive, name)(columns, *rest, weights))


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("value", [*GRID_EDGES[:20], 15.999999999999998, 1 / 3, -0.1])
def test_many_equal_values_have_exactly_so_many_times_the_sum(value, kind):
    n = 10_000
    classes = np.zeros(n, np.int32)
    weights = {"none": None, "whole": np.full(n, 10**14 + 7), "real": np.full(n, 1 / 3)}[kind]
    weight = naive.exact_weights(weights, n)[0]
    z = naive.on_grid(value, 0, 1)
    expected = np.array([n * weight]), np.array([[n * weight * z, n * weight * z * z]])
    x = [np.full(n, value)]
    rest = np.zeros(1), np.ones(1), classes, 1, given(weights), 2
    assert_all_sums(_core.count_products(x, *rest), expected)
    rows, sums = _core.count_moments(x, *rest)
    assert_sums(rows, expected[0][None])
    assert_sums(sums, expected[1][None])
    assert rows.deviations(sums, 1).tolist() == [[[0.0]]]


def test_an_outlier_is_forgotten_exactly():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(1000, 2))
    x[500] = 1e12 + 0.3, -1e120 / 3
    for count in (_core.count_moments, _core.count_products):

        def counted(rows, count=count):
            return count([rows], np.zeros(2), np.ones(2), np.zeros(len(rows), np.int32), 1, None, 1)

        left = [a - b for a, b in zip(counted(x), counted(x[500:501]), strict=True)]
        assert same(tuple(left), counted(np.delete(x, 500, axis=0)))


def test_moments_in_extreme_units():
    for unit in (2.0**1023, 2.0**-1022, 2.0**-1000):
        x = np.array([[3 * (unit / 4)], [unit], [-unit]])
        rest = np.zeros(1), np.array([unit]), np.zeros(3, np.int32), 1, None
        for name in ("count_moments", "count_products"):
            n, sums = getattr(_core, name)([x], *rest, 1)
            assert (n.value.ravel().tolist(), sums.values(-57).ravel()[0]) == ([3.0], 0.75)
            assert sums.values(-114).ravel()[1] == 2.5625
            assert_all_sums((n, sums), getattr(naive, name)([x], *rest))
    wide = np.array([1.5e308]), np.array([2.0**1023]), np.zeros(1, np.int32), 1, None
    for name in ("count_moments", "count_products"):
        found = getattr(_core, name)([np.array([-1.5e308])], *wide, 1)
        assert found[1].values(-57).ravel()[0] == -1.5e308 / 2.0**1023 * 2
        assert_all_sums(found, getattr(naive, name)([np.array([-1.5e308])], *wide))


@pytest.mark.parametrize("layout", ["C", "F", "columns"])
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("name", ["count_moments", "count_products"])
def test_what_cannot_be_summed_is_refused(name, kind, layout):
    x, count = np.random.default_rng(7).normal(size=(300, 5)), getattr(_core, name)
    classes, weights = rows_of(np.random.default_rng(7), 300, 3, kind)
    classes[200] = 1
    rest = np.zeros(5), np.ones(5), classes, 3, given(weights), 2
    for value, what in ((math.inf, "infinite"), (-math.inf, "infinite"), (1e200, "too far"), (-2.6e120, "too far")):
        x[200, 3] = value
        bad_value(lambda: count(lay(x, layout), *rest), what, 3, 200, value)
    x[200, 3] = 2.5e120
    assert_all_sums(count(lay(x, layout), *rest), getattr(naive, name)([x], *rest[:4], weights))
    classes[200], x[200, 3] = -1, math.inf
    count(lay(x, layout), *rest)


@pytest.mark.parametrize("name", ["count_moments", "count_products"])
def test_the_heaviest_row_at_the_farthest_place_is_exact(name):
    rest = np.zeros(1), np.ones(1), np.zeros(1, np.int32), 1
    for x in (2.0**400, -(2.0**400), 16.0, 1 / 3):
        for weights in (np.array([2**63 - 1]), np.array([9.1e18]), np.array([2.0**52 + 0.5])):
            found = getattr(_core, name)([np.array([x])], *rest, given(weights), 1)
            assert_all_sums(found, getattr(naive, name)([np.array([x])], *rest, weights))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_count_codes(dtype, kind, layout):
    rng = np.random.default_rng(8)
    columns = lay(integers(rng, 120, 4, dtype, -5, 9), layout)
    low, size = np.array([-5, 0, 2, 0]), np.array([14, 5, 3, 0])
    classes, weights = rows_of(rng, 120, 3, kind)
    found, outside = _core.count_codes(columns, low, size, classes, 3, given(weights), 1)
    assert_sums(found, naive.count_codes(columns, low, size, classes, 3, weights))
    assert outside
    assert not _core.count_codes(columns, np.full(4, -5), np.full(4, 15), classes, 3, given(weights), 1)[1]


@pytest.mark.parametrize(
    ("kind", "size"),
    [(kind, 50) for kind in WEIGHTS]
    + [
        pytest.param("none", 1_500_000, marks=pytest.mark.slow),
        pytest.param("whole", 750_000, marks=pytest.mark.slow),
        ("real", 300_000),
    ],
)
def test_count_codes_in_parallel(kind, size):
    rng = np.random.default_rng(9)
    x = integers(rng, 15_000, 3, "int64", 0, size)
    classes, weights = rows_of(rng, len(x), 2, kind)
    rest = np.zeros(3, int), np.full(3, size), classes, 2
    one, outside = _core.count_codes([x], *rest, given(weights), 1)
    assert not outside
    assert same(one, _core.count_codes([x], *rest, given(weights), 4)[0])
    assert same(one, _core.count_codes(lay(x, "F"), *rest, given(weights), 3)[0])
    if size == 50:
        assert_sums(one, naive.count_codes([x], *rest, weights))


def test_codes_at_the_ends_of_int64():
    x = np.array([-(2**63), 2**63 - 1, 0, -1])
    classes = np.zeros(4, np.int32)
    for low, expected in ((-(2**63), [1, 0]), (2**63 - 2, [0, 1]), (-1, [1, 1])):
        rows, outside = _core.count_codes([x], np.array([low]), np.array([2]), classes, 1, None, 1)
        assert outside
        assert rows.limbs().ravel().tolist() == expected
    huge = np.array([2**64 - 1, 3], np.uint64)
    rows, _ = _core.count_codes([huge], np.array([-1]), np.array([5]), classes[:2], 1, None, 1)
    assert rows.limbs().ravel().tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("dtype", REALS + INTEGERS)
def test_count_flags(dtype, kind, layout):
    rng = np.random.default_rng(10)
    if dtype in REALS:
        x = reals(rng, 100, 5, dtype, 0.02)
        x[:, 4] = rng.choice([0, 1, math.nan], 100)
    else:
        x = integers(rng, 100, 5, dtype, -3, 9)
        x[:, 4] &= 1
    columns = lay(x, layout)
    threshold = np.array([0.25, -1.0, 300.0, -math.inf, 0.5 if layout == "repeated" else math.nan])
    classes, weights = rows_of(rng, 100, 3, kind)
    found = _core.count_flags(columns, threshold, classes, 3, given(weights), 1)
    assert_sums(found, naive.count_flags(columns, threshold, classes, 3, weights))


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("dtype", ["uint8", "float64", "int16"])
def test_count_flags_in_parallel(dtype, kind):
    rng = np.random.default_rng(11)
    x = rng.integers(0, 2, (40_000, 9)).astype(dtype)
    classes, weights = rows_of(rng, len(x), 3, kind)
    rest = np.full(9, math.nan), classes, 3, given(weights)
    one = _core.count_flags([x], *rest, 1)
    for layout in ("C", "F", "columns"):
        assert same(one, _core.count_flags(lay(x, layout), *rest, 4))
    both = one.merge(np.zeros(2, int), 1, 1)
    rows = _core.count_classes(classes, 3, given(weights), 1)
    assert all(same(both.take(np.array([f]), 0).arranged([3]), rows) for f in range(9))


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("value", [2, -1, 0.5, math.inf])
def test_flags_must_be_flags(value, kind, layout):
    x = np.ones((600, 5), float if isinstance(value, float) else np.int8)
    x[550, 2] = value
    classes, weights = rows_of(np.random.default_rng(12), 600, 3, kind)
    rest = np.full(5, math.nan), classes, 3, given(weights), 2
    classes[550] = 2
    bad_value(lambda: _core.count_flags(lay(x, layout), *rest), "not 0 or 1", 2, 550, value)
    classes[550] = -1
    _core.count_flags(lay(x, layout), *rest)


# ---- values


@n_threads
@pytest.mark.parametrize("dtype", REALS + INTEGERS)
def test_bins(dtype, threads):
    rng = np.random.default_rng(13)
    x = reals(rng, 33_000, 1, dtype) * 9 if dtype in REALS else integers(rng, 33_000, 1, dtype, -90, 90)
    for column in (x, x[:, 0], x[::-1, 0], x[::7]):
        found = _core.bins(column, -0.3, 0.25, threads)
        assert found.dtype == np.int64
        assert found.tolist() == naive.bins(column, -0.3, 0.25)


def test_bins_refuse():
    x = np.zeros(50_000)
    for value, what in ((-math.inf, "infinite"), (2.0**54, "too fine"), (-1e300, "too fine")):
        x[40_001] = value
        bad_value(lambda: _core.bins(x, 0.0, 1.0, 2), what, 0, 40_001, value)
    bad_value(lambda: _core.bins(np.array([2**62]), 0.0, 1.0, 2), "too fine", 0, 0, 2**62)
    assert _core.bins(np.array([2.0**53]), 0.0, 1.0, 1).tolist() == [2**53]


@n_threads
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_span(dtype, layout, threads):
    rng = np.random.default_rng(14)
    columns = lay(integers(rng, 12_000, 3, dtype, -100, 100), layout)
    if dtype == "int64" and layout != "repeated":
        columns[0][rng.random(columns[0].shape) < 0.3] = naive.LOWEST
    low, high = _core.span(columns, threads)
    assert (low.tolist(), high.tolist()) == naive.span(columns)


def test_span_of_little():
    for columns in ([], [np.zeros((0, 2), np.int8)], [np.full(3, naive.LOWEST)]):
        low, high = _core.span(columns, 2)
        assert (low.tolist(), high.tolist()) == naive.span(columns)
    bad_value(lambda: _core.span([np.array([1, 2**63], np.uint64)], 1), "too far", 0, 1, 2**63)


@n_threads
def test_not_counts(threads):
    rng = np.random.default_rng(15)
    x = rng.integers(0, 9, (20_000, 3)).astype(float)
    x[rng.random(x.shape) < 0.1] = math.nan
    x[5, 1] = 2.0**53
    assert _core.not_counts([x, integers(rng, 20_000, 2, "uint8")], threads) is None
    assert _core.not_counts([], threads) is None
    for value in (-1.0, 0.5, math.inf, -math.inf, 2.0**54):
        x[19_999, 2] = value
        bad_value(lambda: _core.not_counts([x[:, :1], np.asfortranarray(x)], threads), "not a count", 3, 19_999, value)
    bad_value(lambda: _core.not_counts([np.array([0, -3])], threads), "not a count", 0, 1, -3)


# ---- what does not fit together


ONE = np.zeros(2, np.int32)
X = np.zeros((2, 1))
CODES = np.zeros((2, 1), int)
UNIT = np.zeros(1), np.ones(1)
RANGE = np.zeros(1, int), np.ones(1, int)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.count_classes(np.array([3], np.int32), 3, None, 1),
        lambda: _core.count_classes(np.array([-2], np.int32), 3, None, 1),
        lambda: _core.count_classes(ONE, 0, None, 1),
        lambda: _core.count_classes(ONE, -1, None, 1),
        lambda: _core.count_classes(ONE, 2**40, None, 1),
        lambda: _core.count_classes(ONE, 1, np.ones(3, int), 1),
        lambda: _core.count_classes(ONE, 1, np.ones(2), 1),
        lambda: _core.count_classes(ONE, 1, np.ones((2, 2)), 1),
        lambda: _core.count_classes(ONE, 1, np.ones(2, np.uint64), 1),
        lambda: _core.count_classes(ONE, 1, np.ones(2, np.int32), 1),
        lambda: _core.count_classes(ONE, 1, np.ones((2, 1), int), 1),
        lambda: _core.count_classes(ONE, 1, np.ones((2, 1), np.uint64), 1),
        lambda: _core.count_classes(ONE, 1, np.ones((3, 2), np.uint64), 1),
        lambda: _core.count_classes(ONE, 1, np.array([1, 0]), 1),
        lambda: _core.count_classes(ONE, 1, np.array([1, -1]), 1),
        lambda: _core.count_classes(ONE, 1, np.array([1, 2**63 - 1]), 1),
        lambda: _core.count_classes(ONE, 1, np.array([[1, 0], [0, 0]], np.uint64), 1),
        lambda: _core.count_classes(ONE, 1, np.array([[1, 0], [0, 2**63]], np.uint64), 1),
        lambda: _core.count_classes(ONE, 1, np.array([[1, 0], [0, 2**59 - 1]], np.uint64), 1),
        lambda: _core.count_classes(ONE, 1, _core.parts(np.full(2, 5e18)), 1),
        lambda: _core.count_classes(ONE, 1, [1, 1], 1),
        lambda: _core.count_classes(ONE.astype(int), 1, None, 1),
        lambda: _core.count_classes(ONE, 1, None, 0),
        lambda: _core.count_moments([X], *UNIT, ONE[:1], 1, None, 1),
        lambda: _core.count_moments([X, X[:1]], np.zeros(2), np.ones(2), ONE, 1, None, 1),
        lambda: _core.count_moments([X], np.zeros(2), np.ones(1), ONE, 1, None, 1),
        lambda: _core.count_moments([X], np.zeros(1), np.ones(0), ONE, 1, None, 1),
        lambda: _core.count_moments([X], np.zeros(1), np.full(1, 3.0), ONE, 1, None, 1),
        lambda: _core.count_moments([X], np.zeros(1), np.full(1, 5e-324), ONE, 1, None, 1),
        lambda: _core.count_moments([X], np.full(1, math.nan), np.ones(1), ONE, 1, None, 1),
        lambda: _core.count_moments([X.astype(complex)], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([X.astype(bool)], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([X.astype(">f8")], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([X.astype(np.float16)], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([X.astype(object)], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([X.reshape(2, 1, 1)], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([np.float64(3)], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([np.array(3.0)], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_moments([[1.0]], *UNIT, ONE, 1, None, 1),
        lambda: _core.count_codes([X], *RANGE, ONE, 1, None, 1),
        lambda: _core.count_codes([CODES], np.zeros(2, int), np.ones(1, int), ONE, 1, None, 1),
        lambda: _core.count_codes([CODES], np.zeros(1, int), -np.ones(1, int), ONE, 1, None, 1),
        lambda: _core.count_codes([CODES], np.full(1, 2**63 - 1), np.full(1, 2), ONE, 1, None, 1),
        lambda: _core.count_codes([CODES], np.zeros(1, int), np.full(1, 2**62), ONE, 1, None, 1),
        lambda: _core.count_codes([CODES], *RANGE, ONE[:1], 1, None, 1),
        lambda: _core.count_flags([X], np.zeros(2), ONE, 1, None, 1),
        lambda: _core.count_flags([X], np.zeros(1), ONE[:1], 1, None, 1),
        lambda: _core.count_flags([X], np.zeros((1, 1)), ONE, 1, None, 1),
        lambda: _core.bins(X, 0.0, 0.0, 1),
        lambda: _core.bins(X, 0.0, math.nan, 1),
        lambda: _core.bins(X, math.inf, 1.0, 1),
        lambda: _core.bins(np.zeros((2, 2)), 0.0, 1.0, 1),
        lambda: _core.span([X], 1),
        lambda: _core.span([CODES, CODES[:1]], 1),
        lambda: _core.not_counts([X, X[:1]], 1),
    ],
)
def test_counting_refuses(call):
    with pytest.raises(ValueError) as caught:
        call()
    assert not isinstance(caught.value, BadValue)


def assert_nothing(found, *shape):
    assert found.shape == list(shape)
    assert found.digits == 0
    assert found.limbs().tolist() == np.zeros((*shape, 1), int).tolist()
    assert found.is_zero().all()


def test_nothing_is_something():
    none = np.zeros(0, np.int32)
    for n_classes in (0, 3):
        for k in (0, 2):
            for columns in ([np.zeros((0, k))], [np.zeros((0, k), order="F")], [np.zeros((4, k))[:0][:, ::-1]]):
                for weights in (None, np.zeros(0, int), np.zeros((0, 2), np.uint64)):
                    rest = none, n_classes, weights, 2
                    scale = np.zeros(k), np.ones(k)
                    assert_nothing(_core.count_classes(*rest), n_classes)
                    n, sums = _core.count_moments(columns, *scale, *rest)
                    assert_nothing(n, k, n_classes)
                    assert_nothing(sums, k, n_classes, 2)
                    n, sums = _core.count_products(columns, *scale, *rest)
                    assert_nothing(n, n_classes)
                    assert_nothing(sums, n_classes, k + k * (k + 1) // 2)
                    assert_nothing(_core.count_flags(columns, np.zeros(k), *rest), k, 2, n_classes)
                    codes = [a.astype(int) for a in columns]
                    assert_nothing(_core.count_codes(codes, np.zeros(k, int), np.ones(k, int), *rest)[0], k, n_classes)
    n, sums = _core.count_moments([], np.zeros(0), np.zeros(0), ONE, 2, None, 1)
    assert_nothing(n, 0, 2)
    assert_nothing(sums, 0, 2, 2)
    assert _core.bins(np.zeros(0), 0.0, 1.0, 1).shape == (0,)


# ---- scoring


def scale(rng, k):
    return rng.normal(size=k), 2.0 ** rng.integers(-2, 3, k)


def normal_part(rng, n, c, layout="C", dtype="float64", student=False, k=5):
    x = reals(rng, n, k, dtype) if dtype in REALS else integers(rng, n, k, dtype, -9, 9)
    mean, precision = rng.normal(size=(k, c)), rng.random((k, c)) + 0.1
    more = (rng.random((k, c)) + 1,) if student else ()
    return (
        "student" if student else "normal",
        lay(x, layout),
        *scale(rng, k),
        mean,
        precision,
        rng.normal(size=(k, c)),
        *more,
    )


def table_part(rng, n, c, layout="C", dtype="int64", k=5):
    x = integers(rng, n, k, dtype, -4, 9)
    table = rng.normal(size=(20, c))
    table[3, 0] = -math.inf
    lookups = [rng.integers(0, 20, size).astype(np.uint32) for size in (8, 0, 13, 5, 1)]
    return ("table", lay(x, layout), np.array([-2, 0, -4, 1, 3]), lookups, np.array([-1, 4, -1, 19, 0]), table)


def flags_part(rng, n, c, layout="C", dtype="uint8"):
    if dtype in REALS:
        x = reals(rng, n, 5, dtype)
        x[:, 4] = rng.choice([0, 1, math.nan], n)
    else:
        x = integers(rng, n, 5, dtype, -2, 5)
        x[:, 4] &= 1
    threshold = np.array([0.2, 1.0, 300.0, -math.inf, 0.3 if layout == "repeated" else math.nan])
    no, yes = rng.normal(size=(5, c)), rng.normal(size=(5, c))
    no[1, 0] = -math.inf
    return ("flags", lay(x, layout), threshold, no, yes)


def histogram_part(rng, n, c, dtype="float64"):
    x = reals(rng, n, 1, dtype) * 4 if dtype in REALS else integers(rng, n, 1, dtype, -9, 9)
    return ("histogram", x[:, 0], -0.25, 0.5, -2, rng.normal(size=(6, c)))


def kernel_part(rng, n, c, kernel="normal", dtype="float64"):
    x = reals(rng, n, 1, dtype) * 4 if dtype in REALS else integers(rng, n, 1, dtype, -9, 9)
    centres = np.sort(rng.normal(size=30))
    weights = rng.random((30, c)) * (rng.random((30, c)) < 0.4)
    weights[:, -1] = 0
    weights /= np.maximum(weights.sum(0), 1e-9)
    bandwidth, constant = rng.random(c) * 0.5 + 0.05, rng.normal(size=c)
    return ("kernel", x[:, 0], 0.25, 2.0, kernel, centres, weights, bandwidth, constant, (0.1, 2.5))


def all_parts(rng, n, c):
    return [
        normal_part(rng, n, c),
        table_part(rng, n, c),
        flags_part(rng, n, c, dtype="float64"),
        histogram_part(rng, n, c),
        kernel_part(rng, n, c),
        kernel_part(rng, n, c, "cosine"),
        normal_part(rng, n, c, student=True),
        flags_part(rng, n, c),
    ]


WANTS = ["log_joint", "posterior", "log_posterior", "class", "parts"]


def assert_score(n, log_prior, parts, threads=1, wants=WANTS, rtol=1e-12):
    each, _ = naive.score(n, log_prior, parts, "parts")
    for want in wants:
        found, lost = score(n, log_prior, parts, want, threads)
        expected, expected_lost = naive.finish(each, log_prior, want)
        assert lost == expected_lost
        assert found.shape == expected.shape
        assert found.dtype == (np.int32 if want == "class" else np.float64)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-11)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", REALS + INTEGERS)
def test_score_of_each_part(dtype, layout):
    rng = np.random.default_rng(16)
    log_prior = np.log([0.5, 0.3, 0.2])
    n = 140 if layout == "C" else 30
    parts = [normal_part(rng, n, 3, layout, dtype), normal_part(rng, n, 3, layout, dtype, student=True)]
    parts += [flags_part(rng, n, 3, layout, dtype)]
    if dtype in INTEGERS:
        parts += [table_part(rng, n, 3, layout, dtype)]
    for part in parts:
        assert_score(n, log_prior, [part], wants=["log_joint", "parts"])


@pytest.mark.parametrize("dtype", REALS + INTEGERS)
def test_score_of_densities(dtype):
    rng = np.random.default_rng(17)
    log_prior = np.log([0.5, 0.3, 0.2])
    assert_score(100, log_prior, [histogram_part(rng, 100, 3, dtype)])
    for kernel in ("normal", *naive.KERNELS):
        wants = WANTS if dtype == "float64" else ["log_joint"]
        assert_score(100, log_prior, [kernel_part(rng, 100, 3, kernel, dtype)], wants=wants, rtol=1e-10)


@pytest.mark.parametrize("bandwidth", [1.0, 2.5, 12.0, 90.0])
def test_score_of_normal_kernels_on_neighbouring_bins(bandwidth):
    rng = np.random.default_rng(19)
    n, log_prior = 2000, np.log([0.5, 0.5])
    bins = np.concatenate([np.arange(-60, 60), np.arange(90, 150), [400, 4000]]) + 0.5
    weights = rng.integers(0, 9, (len(bins), 2)).astype(float)
    weights /= weights.sum(axis=0)
    x = np.concatenate([rng.uniform(-120, 500, n - 100), rng.normal(0, 1e4, 100)])
    kernels = ("normal", bins, weights, np.array([bandwidth, bandwidth * 1.3]), np.zeros(2), (0.0, 1.0))
    part = ("kernel", x, 0.0, 1.0, *kernels)
    found, lost = score(n, log_prior, [part], "log_joint", 1)
    some = slice(0, n, 7)
    wanted, _ = naive.score(len(x[some]), log_prior, [("kernel", x[some], 0.0, 1.0, *kernels)], "log_joint")
    np.testing.assert_allclose(found[some], wanted, rtol=1e-11, atol=1e-11)
    assert lost == 0
    assert np.array_equal(found, score(n, log_prior, [part], "log_joint", 3)[0])
    for i in range(0, n, 191):
        alone = ("kernel", x[i : i + 1], 0.0, 1.0, *kernels)
        assert np.array_equal(score(1, log_prior, [alone], "log_joint", 1)[0], found[i : i + 1])


@pytest.mark.parametrize("c", [*range(1, 10), 20])
@pytest.mark.parametrize("n", [0, 1, 130])
def test_score_of_all_parts(n, c):
    rng = np.random.default_rng(c)
    log_prior = np.log(rng.dirichlet(np.ones(c)))
    assert_score(n, log_prior, all_parts(rng, n, c))


def test_score_of_many_features():
    rng = np.random.default_rng(18)
    log_prior = np.log([0.5, 0.5])
    assert_score(50, log_prior, [normal_part(rng, 50, 2, k=100), normal_part(rng, 50, 2, "F", student=True, k=70)])


def test_score_of_nothing():
    log_prior = np.log([0.2, 0.8])
    assert_score(3, log_prior, [])
    found, lost = score(3, log_prior, [], "class", 1)
    assert found.tolist() == [1, 1, 1]
    assert lost == 0


@pytest.mark.parametrize("want", WANTS)
def test_score_in_parallel(want):
    rng = np.random.default_rng(19)
    n = 20_000
    parts = all_parts(rng, n, 3)
    log_prior = np.log([0.5, 0.3, 0.2])
    one = score(n, log_prior, parts, want, 1)
    assert same(one, score(n, log_prior, parts, want, 4))
    assert not np.isnan(one[0]).any()
    few = [(p[0], [a[777:778] for a in p[1]] if isinstance(p[1], list) else p[1][777:778], *p[2:]) for p in parts]
    alone = score(1, log_prior, few, want, 1)[0]
    assert alone.tobytes() == one[0][777:778].tobytes(), "a row's score depends on its neighbours"


def test_parts_add_up():
    rng = np.random.default_rng(20)
    parts = all_parts(rng, 500, 3)
    log_prior = np.log([0.5, 0.3, 0.2])
    joint, _ = score(500, log_prior, parts, "log_joint", 1)
    each, _ = score(500, log_prior, parts, "parts", 1)
    np.testing.assert_allclose(log_prior + each.sum(1), joint, rtol=1e-12, atol=1e-12)


def test_rows_that_no_class_explains():
    never = np.full((1, 3), -math.inf)
    some = np.array([[-math.inf, -1.0, -2.0]])
    x = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.uint8)
    no, yes = np.vstack([some, some]), np.vstack([never, some])
    log_prior = np.log([0.5, 0.2, 0.3])
    part = ("flags", [x], np.zeros(2), no, yes)
    for threads in (1, 4):
        assert_score(4, log_prior, [part], threads)
        posterior, lost = score(4, log_prior, [part], "posterior", threads)
        assert lost == 2
        np.testing.assert_allclose(posterior[[1, 3]], [[0.5, 0.2, 0.3]] * 2)
    prior = np.array([-math.inf, math.log(0.4), math.log(0.6)])
    assert_score(4, prior, [part])


def test_the_first_of_the_best():
    found, _ = score(2, np.log([0.2, 0.4, 0.4]), [], "class", 1)
    assert found.tolist() == [1, 1]


@pytest.mark.parametrize("x", [1e308, -1e308, 1e200, 2.0**401, 5e-324, 0.0])
def test_nothing_is_nan_far_out(x):
    rng = np.random.default_rng(21)
    column = np.array([x])
    log_prior = np.log([0.5, 0.5])
    unit = np.zeros(1), np.full(1, 2.0**-300)
    square = rng.random((1, 2))
    parts = [
        ("normal", [column], *unit, square, square, square),
        ("student", [column], *unit, square, square, square, square),
        ("histogram", column, 0.0, 1e-300, 0, np.zeros((3, 2))),
        (
            "kernel",
            column,
            0.0,
            2.0**-300,
            "normal",
            np.zeros(1),
            np.ones((1, 2)),
            np.full(2, 1e-9),
            np.zeros(2),
            (0.0, 1.0),
        ),
        (
            "kernel",
            column,
            0.0,
            2.0**-300,
            "box",
            np.zeros(1),
            np.ones((1, 2)),
            np.full(2, 1e-9),
            np.zeros(2),
            (0.0, 1e-9),
        ),
    ]
    for want in WANTS:
        for chosen in ([part] for part in parts):
            assert np.isfinite(score(1, log_prior, chosen, want, 1)[0]).all()
        assert not np.isnan(score(1, log_prior, parts, want, 1)[0]).any()


def test_normal_scores_are_clipped():
    log_prior = np.zeros(1)
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    part = ("normal", [np.array([1e300, -1e300])], np.zeros(1), np.ones(1), zero, one, zero)
    assert score(2, log_prior, [part], "log_joint", 1)[0].tolist() == [[-(2.0**800)], [-(2.0**800)]]


@pytest.mark.parametrize("want", WANTS)
@n_threads
def test_score_refuses_infinite_values(want, threads):
    n = 9000
    rng = np.random.default_rng(22)
    parts = all_parts(rng, n, 2)
    log_prior = np.log([0.5, 0.5])
    first = [0, 5, 10, 15, 16, 17, 18, 23]
    for i, part in enumerate(parts):
        if part[0] == "table" or i == 7:
            continue
        x = part[1][0] if isinstance(part[1], list) else part[1][:, None]
        f = 4 if part[0] == "flags" else x.shape[1] - 1
        old, x[8500, f] = x[8500, f], -math.inf
        what = "not 0 or 1" if part[0] == "flags" else "infinite"
        bad_value(lambda: score(n, log_prior, parts, want, threads), what, first[i] + f, 8500, -math.inf)
        x[8500, f] = old


def test_flags_to_score_must_be_flags():
    x = np.array([[1, 1], [1, 7]], np.int16)
    part = ("flags", [x], np.array([0.0, math.nan]), np.zeros((2, 1)), np.zeros((2, 1)))
    bad_value(lambda: score(2, np.zeros(1), [part], "class", 1), "not 0 or 1", 1, 1, 7)


def spoil(part, at, value):
    return [(*part[:at], value, *part[at + 1 :])]


RNG = np.random.default_rng(23)
NORMAL, STUDENT, TABLE = normal_part(RNG, 2, 2), normal_part(RNG, 2, 2, student=True), table_part(RNG, 2, 2)
FLAGS, HISTOGRAM, KERNEL = flags_part(RNG, 2, 2), histogram_part(RNG, 2, 2), kernel_part(RNG, 2, 2)
BOX = kernel_part(RNG, 2, 2, "box")


@pytest.mark.parametrize(
    "parts",
    [
        *(spoil(NORMAL, at, np.zeros((5, 3))) for at in (1, 4, 5, 6)),
        *(spoil(NORMAL, at, np.zeros((4, 2))) for at in (4, 5, 6)),
        *(spoil(NORMAL, at, np.full((5, 2), math.nan)) for at in (4, 5, 6)),
        *(spoil(NORMAL, at, np.ones(4)) for at in (2, 3)),
        spoil(NORMAL, 3, np.full(5, 3.0)),
        spoil(NORMAL, 1, [np.zeros((3, 5))]),
        spoil(NORMAL, 1, [np.zeros((2, 4))]),
        spoil(NORMAL, 4, np.zeros((5, 2), np.float32)),
        spoil(STUDENT, 7, np.zeros((5, 3))),
        spoil(TABLE, 1, [np.zeros((2, 5))]),
        spoil(TABLE, 2, np.zeros(4, int)),
        spoil(TABLE, 2, np.full(5, 2**63 - 1)),
        spoil(TABLE, 3, TABLE[3][:4]),
        spoil(TABLE, 3, [np.full(30, 20, np.uint32)] * 5),
        spoil(TABLE, 3, [np.full(30, 2**32 - 2, np.uint32)] * 5),
        spoil(TABLE, 3, [np.zeros(3, int)] * 5),
        spoil(TABLE, 4, np.full(5, 20)),
        spoil(TABLE, 4, np.full(5, -2)),
        spoil(TABLE, 5, np.zeros((20, 3))),
        spoil(FLAGS, 2, np.zeros(4)),
        spoil(FLAGS, 3, np.zeros((5, 3))),
        spoil(FLAGS, 4, np.zeros((4, 2))),
        spoil(HISTOGRAM, 1, np.zeros((2, 2))),
        spoil(HISTOGRAM, 1, np.zeros(3)),
        spoil(HISTOGRAM, 2, math.nan),
        spoil(HISTOGRAM, 3, 0.0),
        spoil(HISTOGRAM, 5, np.zeros((0, 2))),
        spoil(HISTOGRAM, 5, np.zeros((2, 3))),
        spoil(KERNEL, 2, math.inf),
        spoil(KERNEL, 3, 3.0),
        spoil(KERNEL, 4, "square"),
        spoil(KERNEL, 5, KERNEL[5][::-1]),
        spoil(KERNEL, 5, np.full(30, math.nan)),
        spoil(KERNEL, 6, np.zeros((29, 2))),
        spoil(KERNEL, 6, np.zeros((30, 3))),
        spoil(KERNEL, 6, -np.ones((30, 2))),
        spoil(KERNEL, 7, np.ones(3)),
        spoil(KERNEL, 7, np.zeros(2)),
        spoil(KERNEL, 8, np.zeros(1)),
        spoil(KERNEL, 8, np.full(2, math.nan)),
        spoil(KERNEL, 9, (1.0,)),
        spoil(BOX, 9, (0.0, 0.0)),
    ],
)
def test_score_refuses_parts(parts):
    with pytest.raises(ValueError) as caught:
        score(2, np.log([0.5, 0.5]), parts, "log_joint", 1)
    assert not isinstance(caught.value, BadValue)


@pytest.mark.parametrize("parts", [[("normal",)], [()], [None], [NORMAL], None])
def test_only_classes_of_parts_are_parts(parts):
    with pytest.raises((ValueError, TypeError), match=r"must be of a class of parts|Sequence"):
        _core.score(2, np.log([0.5, 0.5]), parts, "log_joint", 1)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: _core.count_classes(ONE.astype(int), 1, None, 1), "classes"),
        (lambda: _core.count_classes(ONE, 1, np.ones(2), 1), "weights"),
        (lambda: _core.count_moments([X.astype(complex)], *UNIT, ONE, 1, None, 1), "columns"),
        (lambda: _core.count_flags([X], np.zeros((1, 1)), ONE, 1, None, 1), "threshold"),
        (lambda: _core.score(2, np.zeros((1, 1)), [], "class", 1), "log_prior"),
        (lambda: score(2, np.zeros(2), spoil(FLAGS, 2, np.zeros((5, 1))), "class", 1), "threshold"),
        (lambda: score(2, np.zeros(2), spoil(TABLE, 3, [np.zeros(3, int)] * 5), "class", 1), "lookups"),
    ],
)
def test_errors_name_the_argument(call, name):
    with pytest.raises(ValueError) as caught:
        call()
    assert caught.value.__notes__[0] == f"while processing '{name}'"


@pytest.mark.parametrize(
    ("n", "log_prior", "want", "threads"),
    [
        (-1, np.zeros(1), "class", 1),
        (2, np.zeros(0), "class", 1),
        (2, np.array([math.nan]), "class", 1),
        (2, np.array([math.inf]), "class", 1),
        (2, np.array([-math.inf]), "class", 1),
        (2, np.zeros((1, 1)), "class", 1),
        (2, np.zeros(1), "classes", 1),
        (2, np.zeros(1), "class", 0),
        (2**62, np.zeros(2), "log_joint", 1),
    ],
)
def test_score_refuses(n, log_prior, want, threads):
    with pytest.raises(ValueError):
        score(n, log_prior, [], want, threads)


def test_other_threads_run_meanwhile_and_forks_can_count():
    import multiprocessing

    classes = np.zeros(200_000, np.int32)
    assert _core.count_classes(classes, 1, None, 2).limbs().tolist() == [[200_000]]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        rows = pool.apply_async(_core.count_classes, (classes, 1, None, 2)).get(timeout=600)
    assert rows.limbs().tolist() == [[200_000]]


@pytest.mark.parametrize("n", [1, 127, 128, 1000, 70_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_by_class(n, threads):
    rng = np.random.default_rng(n)
    classes = rng.integers(-1, 4, n).astype(np.int32)
    order, starts = _core.by_class(classes, 5, threads)
    for c in range(5):
        np.testing.assert_array_equal(order[starts[c] : starts[c + 1]], np.flatnonzero(classes == c))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "<U3", "S1", "float64"])
def test_labels_of_numbers(dtype, threads):
    labels, numbers = (
        np.array([3, 1, 2]).astype(dtype),
        np.random.default_rng(1).integers(0, 3, 70_000).astype(np.int32),
    )
    records = labels.view(np.uint8).reshape(3, labels.itemsize)
    np.testing.assert_array_equal(_core.decode_records(records, numbers, threads).view(dtype), labels[numbers])
    with pytest.raises(ValueError):
        _core.decode_records(records, np.array([3], np.int32), threads)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifted(dtype):
    x = integers(np.random.default_rng(2), 70_000, 1, dtype, -5, 9)[:, 0]
    less = x.astype(object) - 2
    expected = np.where((less >= 0) & (less < 4), less, -1).astype(np.int32)
    for threads in (1, 3):
        np.testing.assert_array_equal(_core.shifted(x, 2, 4, threads), expected)


@pytest.mark.parametrize("want", ["log_joint", "posterior", "log_posterior"])
@pytest.mark.parametrize("n, threads", [(0, 1), (1, 1), (300, 1), (20_000, 3)])
def test_each_row_by_its_own_model(want, n, threads):
    rng = np.random.default_rng(7)
    c, models = 3, []
    for seed in range(4):
        log_prior = np.log(np.random.default_rng(seed).dirichlet(np.ones(c)))
        models.append((log_prior, all_parts(np.random.default_rng(seed), n, c)))
    which = rng.integers(-1, 4, n).astype(np.int32)
    out = np.full((n, c), np.nan)
    held = [(log_prior, [as_part(part) for part in parts]) for log_prior, parts in models]
    lost = _core.score_each(which, held, want, threads, out)
    expected, expected_lost = np.zeros((n, c)), 0
    for k, (log_prior, parts) in enumerate(models):
        every, _ = score(n, log_prior, parts, want, 1)
        expected[which == k] = every[which == k]
        joint = score(n, log_prior, parts, "log_joint", 1)[0][which == k]
        expected_lost += int(np.isneginf(joint).all(axis=1).sum())
    np.testing.assert_array_equal(out, expected)
    assert lost == expected_lost


@pytest.mark.parametrize("seed", range(20))
def test_one_row_is_scored_as_many_are(seed):
    rng = np.random.default_rng(seed)
    c = int(rng.integers(2, 20))
    log_prior = np.log(rng.dirichlet(np.ones(c)))
    if seed % 4 == 0:
        log_prior[0] = -np.inf
    parts = all_parts(rng, 1, c)
    best, posterior, log_posterior, likelihoods = _core.score_row(log_prior, [as_part(part) for part in parts])
    assert best == score(1, log_prior, parts, "class", 1)[0][0]
    np.testing.assert_array_equal(posterior, score(1, log_prior, parts, "posterior", 1)[0][0])
    np.testing.assert_array_equal(log_posterior, score(1, log_prior, parts, "log_posterior", 1)[0][0])
    np.testing.assert_array_equal(likelihoods, score(1, log_prior, parts, "parts", 1)[0][0])


@pytest.mark.parametrize(
    "which, classes, out",
    [
        (np.array([0, 2], np.int32), 2, np.zeros((2, 2))),
        (np.array([-2, 0], np.int32), 2, np.zeros((2, 2))),
        (np.array([0], np.int32), 2, np.zeros((1, 3))),
        (np.array([0, 1], np.int32), 2, np.zeros((2, 4))[:, ::2]),
        (np.array([0, 1], np.int32), 2, np.zeros((2, 2), np.float32)),
    ],
)
def test_score_each_refuses(which, classes, out):
    models = [(np.log(np.full(classes, 1 / classes)), [])] * 2
    with pytest.raises(ValueError):
        _core.score_each(which, models, "posterior", 1, out)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, threads", [(40, 1), (300, 3)])
def test_one_less(n, threads, weighted):
    rng = np.random.default_rng(n)
    classes = rng.integers(0, 3, n).astype(np.int32)
    x = rng.normal(classes[:, None], 1.0, (n, 11)).astype(np.float64)
    x[rng.random(x.shape) < 0.1] = np.nan
    weights = rng.uniform(0.5, 3.0, n) if weighted else None
    mean, variance, total, spread = (np.zeros((11, 3)) for _ in range(4))
    for f, c in itertools.product(range(11), range(3)):
        there = (classes == c) & ~np.isnan(x[:, f])
        w = (np.ones(n) if weights is None else weights)[there]
        total[f, c], mean[f, c] = w.sum(), np.average(x[there, f], weights=w)
        spread[f, c] = (w * (x[there, f] - mean[f, c]) ** 2).sum()
        variance[f, c] = spread[f, c] / total[f, c]
    curves = (mean, 0.5 / variance, total, spread, np.full(11, 1e-9))
    enough, one = (1e-4, 4.0), np.ones(11)
    found = _core.one_less([x], np.zeros(11), one, classes, curves, weights, enough, threads)
    np.testing.assert_allclose(found, naive.one_less(x, classes, 3, weights), rtol=1e-9, atol=1e-9)
    alone = _core.one_less([x[:2]], np.zeros(11), one, classes[:2], curves, None, (2.0, 4.0), 1)
    assert np.isnan(alone).all()  # more is to be left than there is
    with pytest.raises(ValueError, match="classes must lie"):
        _core.one_less([x], np.zeros(11), one, classes + 1, curves, weights, enough, threads)
    with pytest.raises(ValueError, match="weight for each row"):
        _core.one_less([x], np.zeros(11), one, classes, curves, np.ones(3), enough, threads)
