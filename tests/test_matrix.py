"""Matrices of occurrences in the Rust core, counted and scored, against their slow twins in naive_matrix.py."""

import itertools
import math
from operator import ge

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
import naive_matrix as naive
from banbury import _core
from banbury._core import BadValue, Matrix, NotThere, Tokeniser, Weights, Words
from kernel_parts import score
from naive_words import NotThere as NotThereSlowly
from naive_words import from_limbs, in_parts
from test_words import assert_equal, assert_sums, codes, pieces, same_bits, weighing

N_CLASSES = 3
UNREAD = Tokeniser("word", True, False, 1, 1, [], False, False)
LAYOUTS = ("C", "F", "strided", "backwards", "sparse", "sparse, strided", "sparse, shuffled", "sparse, apart")
DTYPES = ("float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")


def lay(rows, layout):
    """The values of a matrix, and offsets and columns of a sparse one."""
    if layout == "C":
        return np.ascontiguousarray(rows), None
    if layout == "F":
        return np.asfortranarray(rows), None
    if layout == "strided":
        wide = np.zeros((2 * rows.shape[0], 3 * rows.shape[1]), rows.dtype)
        wide[::2, ::3] = rows
        return wide[::2, ::3], None
    if layout == "backwards":
        return rows[::-1, ::-1].copy()[::-1, ::-1], None
    matrix = sp.csr_array(np.ones(rows.shape))  # zeros that are written down, too
    matrix.data = rows[matrix.nonzero()] if rows.size else matrix.data.astype(rows.dtype)
    if layout != "sparse, strided":
        matrix.eliminate_zeros()
    offsets, columns, values = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data
    if layout == "sparse, strided":
        values = np.repeat(values, 2)[::2]
    elif layout == "sparse, shuffled":
        for a, b in itertools.pairwise(offsets):
            columns[a:b], values[a:b] = columns[a:b][::-1].copy(), values[a:b][::-1].copy()
    elif layout == "sparse, apart":  # cells before the first row and after the last
        offsets, pad = offsets + 2, np.zeros(2, np.int32)
        columns, values = np.r_[pad, columns, pad], np.r_[pad.astype(rows.dtype), values, pad.astype(rows.dtype)]
    return values, (offsets, np.ascontiguousarray(columns, dtype=np.int32))


def given_rows(rows, layout="C", threshold=None, skip=True):
    return Matrix(*lay(rows, layout), rows.shape[1], threshold, skip)


def store(n_columns, n_classes=N_CLASSES):
    return Words(n_classes, n_columns).with_columns(n_columns)


def arguments(rows, classes, weights=None, threshold=None, skip=True, layout="C", threads=1):
    """Of ``count`` and ``forget``."""
    return UNREAD, given_rows(rows, layout, threshold, skip), codes(classes), weighing(weights), threads


def counted(rows, classes, weights=None, threshold=None, skip=True, layout="C", into=None, threads=1):
    words = store(rows.shape[1]) if into is None else into
    return words.count(*arguments(rows, classes, weights, threshold, skip, layout, threads))


def some_of(batch, at):
    rows, classes, weights = batch
    return rows[at], [classes[i] for i in at], None if weights is None else [weights[i] for i in at]


@st.composite
def matrices(draw, dtypes=DTYPES, min_rows=0, missing=True):
    """Cells that can be counted; those of floats may be missing."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    n, k = draw(st.integers(min_rows, 7)), draw(st.integers(1, 19))
    if dtype.kind == "f":
        values = st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.0, 0.25, 0.1, 1 / 3, 1e-18, 1e-30, 1e13])
        values = values | st.just(math.nan) if missing else values
    else:
        values = st.sampled_from([0, 0, 1, 100])
    cells = draw(st.lists(values, min_size=n * k, max_size=n * k))
    return np.array(cells, dtype).reshape(n, k)


@st.composite
def batches(draw, **more):
    """Rows, classes, and weights: ones, whole numbers, or doubles, some of which are whole, or one part."""
    rows = draw(matrices(**more))
    n = len(rows)
    classes = draw(st.lists(st.integers(-1, N_CLASSES - 1), min_size=n, max_size=n))
    kind = draw(st.sampled_from(["ones", "whole", "real"]))
    if kind == "ones":
        return rows, classes, None
    values = st.integers(1, 1000) if kind == "whole" else st.sampled_from([0.1, 1 / 3, 0.75, 20.3, 2.0, 1e-18])
    return rows, classes, draw(st.lists(values, min_size=n, max_size=n))


@st.composite
def pairs_of_batches(draw, **more):
    """Two batches of the same columns."""
    first, second = draw(batches(**more)), draw(batches(**more))
    k = min(first[0].shape[1], second[0].shape[1])
    return (first[0][:, :k], *first[1:]), (second[0][:, :k], *second[1:])


layouts = st.sampled_from(LAYOUTS)
thresholds = st.sampled_from([None, None, 0.0, 0.5, 1.0])


# ---- counting


@given(batches(), thresholds, layouts)
def test_counts_are_those_of_the_twin(batch, threshold, layout):
    expected = naive.counted(batch[0], batch[1], N_CLASSES, batch[2], threshold)
    assert_equal(counted(*batch, threshold, layout=layout), expected)


@given(batches(min_rows=1), thresholds, st.data())
def test_whatever_the_cut_the_order_and_the_layout(batch, threshold, data):
    words = store(batch[0].shape[1])
    for at in pieces(data, range(len(batch[0]))):
        words = counted(*some_of(batch, at), threshold, layout=data.draw(layouts), into=words)
    together = counted(*batch, threshold)
    assert words.same(together)
    assert same_bits(words, together)


@given(batches(min_rows=1), thresholds, layouts)
def test_the_columns_that_changed_are_those_that_occur(batch, threshold, layout):
    rows, classes, _ = batch
    words = store(rows.shape[1])
    given_arguments = arguments(*batch, threshold, layout=layout)
    cells = naive.read(rows, threshold, True)
    occurring = {
        f"#{j}" for row, c in zip(cells, classes, strict=True) if c >= 0 for j, x in enumerate(row) if in_parts(x) > 0
    }
    words = counted(rows, [0] * len(rows), threshold=threshold)
    more = words.count(*given_arguments)
    left = more.forget(*given_arguments)
    for ids in (more.changed_since(words), left.changed_since(more)):
        if words.n_words:
            assert ids.dtype == np.uint32
            assert sorted(words.words(ids)) == sorted(occurring)
    assert same_bits(left, words)
    words = words.forget(*arguments(rows, [0] * len(rows), threshold=threshold))
    assert words.n_words == 0
    assert words.texts().is_zero().all()
    assert same_bits(words, store(rows.shape[1]))


@given(pairs_of_batches(), thresholds, layouts)
def test_forgetting_undoes_counting(both, threshold, layout):
    first, second = both
    words = counted(*second, threshold, layout=layout, into=counted(*first, threshold, layout=layout))
    words = words.forget(*arguments(*second, threshold, layout=layout))
    assert words.same(counted(*first, threshold))
    assert same_bits(words, counted(*first, threshold))


@given(batches(min_rows=1), thresholds, st.data())
def test_what_is_left_is_what_was_never_forgotten_whatever_the_pieces(batch, threshold, data):
    """Of rows in any order and layout, and forgotten in any pieces, the arrays of the rest alone; at last those of nothing."""
    every = range(len(batch[0]))
    words = store(batch[0].shape[1])
    for at in pieces(data, every):
        words = counted(*some_of(batch, at), threshold, layout=data.draw(layouts), into=words)
    for left in (data.draw(st.lists(st.sampled_from(every), unique=True)), []):
        for at in pieces(data, [row for row in every if row not in left]):
            words = words.forget(*arguments(*some_of(batch, at), threshold, layout=data.draw(layouts)))
        assert same_bits(words, counted(*some_of(batch, left), threshold, layout=data.draw(layouts)))
        every = left


@given(pairs_of_batches(missing=False), layouts)
def test_rows_that_are_not_there_change_nothing(both, layout):
    first, second = both
    slow, gone = (naive.counted(*batch[:2], N_CLASSES, batch[2]) for batch in both)
    words = counted(*first)
    before = words
    try:
        words = words.forget(*arguments(*second, layout=layout))
    except NotThere:
        assert same_bits(words, before)
        with pytest.raises(NotThereSlowly):
            slow.minus(gone)
    else:
        # It may not show: columns of other rows are not looked at.
        assert all(key in slow.cells and min(map(ge, slow.cells[key], cell)) for key, cell in gone.cells.items())
        assert_sums(words.texts(), [a - b for a, b in zip(slow.texts, gone.texts, strict=True)])
        assert not words.texts().is_negative().any()
        words = counted(*second, layout=layout, into=words)
        assert same_bits(words, before)


def test_values_that_are_whole_together_are_whole():
    """Half a token in two rows is a token in two documents."""
    words = counted(np.array([[0.5, 0.0], [0.5, 2.0]]), [0, 0])
    assert words.state()["occurrences"].tolist() == [1, 2]
    assert words.state()["documents"].tolist() == [2, 1]
    again = Words.from_state(N_CLASSES, 2, words.state())
    assert same_bits(again, words)
    words = words.forget(*arguments(np.array([[0.5, 2.0]]), [0]))
    assert same_bits(words, counted(np.array([[0.5, 0.0]]), [0]))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_less_than_half_a_part_does_not_occur(layout):
    rows = np.array([[4e-19, 1.0, 6e-19], [0.0, 4e-19, 4e-19]])
    words = counted(rows, [0, 1], layout=layout)
    assert words.words(words.in_order()) == ["#1", "#2"]
    assert_sums(words.occurrences(), [1 + in_parts(1e-18), 0, 0])
    assert_sums(words.documents(), [2, 0, 0])
    assert_sums(words.texts(), [1, 1, 0])


REFUSED = [
    (math.nan, None, False, "missing"),
    (math.nan, 0.5, False, "missing"),
    (math.inf, None, True, "infinite"),
    (math.inf, 0.5, True, "infinite"),
    (-math.inf, None, True, "infinite"),
    (-math.inf, 0.5, True, "infinite"),
    (-math.inf, 0.0, False, "infinite"),
    (-1.0, None, True, "negative"),
    (-1e-300, None, False, "negative"),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value, threshold, skip, fault", REFUSED)
@pytest.mark.parametrize("n_columns", [3, 17])
def test_a_cell_that_cannot_be_counted_is_named(n_columns, value, threshold, skip, fault, layout):
    rows = np.ones((6, n_columns))
    words = counted(rows, [0, 1, 2, 0, 1, 2])
    before = words
    rows[4, 2] = value
    with pytest.raises(naive.Refused) as told:
        naive.read(rows, threshold, skip)
    for change in (words.count, words.forget):
        with pytest.raises(BadValue) as said:
            change(UNREAD, given_rows(rows, layout, threshold, skip), codes([0, 1, 2, 0, 1, 2]), None, 2)
        assert (*said.value.args[:3],) == told.value.args == (fault, 2, 4)
    assert same_bits(words, before)
    counted(rows[:4], [0, 1, 2, 0], threshold=threshold, skip=skip, layout=layout)


@pytest.mark.parametrize("arranged", [np.array, sp.csr_array])
def test_a_row_without_a_label_may_hold_anything(arranged):
    rows = arranged(np.array([[1.0, 2.0], [-1.0, 0.0], [0.0, 3.0]]))
    tally = bb.count(rows, target=["a", None, "b"], features=bb.Occurrences("multinomial"))
    assert tally.n_rows == 2 and tally.skipped == 1


def test_a_negative_number_below_a_threshold_counts_nothing():
    for layout in LAYOUTS:
        words = counted(np.array([[-1.0, 2.0], [-0.5, 0.0]]), [0, 1], threshold=0.0, layout=layout)
        assert_sums(words.occurrences(), [1, 0, 0])


@pytest.mark.parametrize(
    "matrix, said",
    [
        (Matrix(np.ones((2, 3)), None, 2, None, True), "n_columns"),
        (Matrix(np.ones((2, 3)), None, 3, -1.0, True), "threshold must be finite and not negative"),
        (Matrix(np.ones((2, 3)), None, 3, math.inf, True), "threshold must be finite and not negative"),
        (Matrix(np.ones((3, 3)), None, 3, None, True), "as many classes as rows"),
        (Matrix(np.ones((2, 9)), None, 9, None, True), "more columns than the words"),
        (Matrix(np.ones(1), (np.array([0, 1]), codes([0])), 3, None, True), "as many classes as rows"),
        (Matrix(np.ones(2), (np.array([0, 1, 3]), codes([0, 1])), 3, None, True), "offsets must ascend"),
        (Matrix(np.ones(2), (np.array([0, 2, 1]), codes([0, 1])), 3, None, True), "offsets must ascend"),
        (Matrix(np.ones(2), (np.array([-1, 1, 2]), codes([0, 1])), 3, None, True), "offsets must ascend"),
        (Matrix(np.ones(0), (np.array([], int), codes([])), 3, None, True), "offsets must ascend"),
        (
            Matrix(np.ones(2), (np.array([0, 1, 2]), codes([0, 3])), 3, None, True),
            "columns must lie between 0 and 2, got 3",
        ),
        (Matrix(np.ones(2), (np.array([0, 1, 2]), codes([0, -1])), 3, None, True), "columns must lie between"),
        (Matrix(np.ones(3), (np.array([0, 1, 2]), codes([0, 1])), 3, None, True), "as many values as columns"),
    ],
)
def test_what_does_not_fit_together_is_refused(matrix, said):
    words = store(3)
    with pytest.raises(ValueError, match=said):
        words = words.count(UNREAD, matrix, codes([0, 1]), None, 1)
    assert words.n_words == 0


# ---- scoring


def set_weights(n_columns, rows):
    """The rows of all columns' words, as the core has them."""
    table = store(n_columns, rows.shape[1])
    weights, ids = Weights(rows.shape[1], np.zeros(rows.shape[1])), table.columns()[:n_columns].astype(np.uint32)
    classes = np.tile(np.arange(rows.shape[1], dtype=np.int32), n_columns)
    starts = np.arange(n_columns + 1) * rows.shape[1]
    weights.set(ids, np.zeros(n_columns), None, starts, classes, rows.ravel())
    return table, weights


def parts(rows, weights, constant, layout, threshold=None, skip=True):
    """The same as a product of matrices, as texts of words, and as those whose weights are there in single precision too."""
    given_matrix, n_classes = given_rows(rows, layout, threshold, skip), len(constant)
    table, by_word = set_weights(rows.shape[1], weights)
    words = ("words", given_matrix, UNREAD, table, by_word, np.zeros(n_classes), constant, False, None)
    rough = by_word.rough(table, np.zeros(n_classes), rows.shape[1], 2)
    return [("linear", given_matrix, weights, constant), words, (*words, rough)]


@given(matrices(), thresholds, layouts, st.sampled_from([1, 2, 3, 4, 5, 20]), st.integers(0, 2**32 - 1))
def test_scores_are_those_of_the_twin(rows, threshold, layout, n_classes, seed):
    rng = np.random.default_rng(seed)
    weights, constant = rng.normal(size=(rows.shape[1], n_classes)), rng.normal(size=n_classes)
    prior = np.log(rng.dirichlet(np.ones(n_classes)))
    expected = np.array(naive.scored(rows, weights, constant, threshold)).reshape(len(rows), n_classes)
    size = 1.0 + np.nansum(np.where(rows > 0, rows, 0), axis=1, keepdims=True) * np.abs(weights).max(initial=1.0)
    for part in parts(rows, weights, constant, layout, threshold):
        found, impossible = score(len(rows), prior, [part], "log_joint", 1)
        assert (np.abs(found - expected - prior) <= 1e-13 * size).all()
        assert impossible == 0
        alone = score(len(rows), prior, [part], "parts", 1)[0]
        assert (np.abs(alone[:, 0] - expected) <= 1e-13 * size).all()
        best = score(len(rows), prior, [part], "class", 1)[0]
        assert best.tolist() == found.argmax(axis=1).tolist()
        twice = score(len(rows), prior, [part, part], "log_joint", 1)[0]
        assert (np.abs(twice - 2 * expected - prior) <= 1e-12 * size).all()


@pytest.mark.parametrize("n_classes", [1, 2, 7, 8, 20, 40, 63, 64])
@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_rough_weights_find_the_classes_of_exact_ones(n_classes, kind):
    """Rows of close calls, ties, numbers below zero and huge ones among them."""
    rng = np.random.default_rng(n_classes)
    weights = -rng.gamma(3.0, size=(50, n_classes))
    weights[25:] = weights[25:, :1] + 1e-9 * weights[25:]
    weights[:, -1] = weights[:, 0]
    rows = rng.poisson(0.2, (400, 50)) * rng.choice([1, 1, 1, 3000, 2**40], (400, 1))
    rows[::7] *= rng.choice([-1, 1], 50)
    rows[::5, :25] = 0
    exact, rough = parts(rows.astype(kind), weights, np.zeros(n_classes), "sparse")[1:]
    assert (rough[-1] is None) == (n_classes == 64)
    found = [score(400, np.zeros(n_classes), [part], "class", 2)[0] for part in (exact, rough)]
    assert found[0].tolist() == found[1].tolist()


@given(matrices(min_rows=1), thresholds, layouts)
def test_weights_of_minus_infinity_are_met_only_where_a_column_occurs(rows, threshold, layout):
    weights = np.zeros((rows.shape[1], 2))
    weights[0, 0] = -math.inf
    _, part, rough = parts(rows, weights, np.array([-1.0, -2.0]), layout, threshold)
    assert rough[-1] is None
    found = score(len(rows), np.zeros(2), [part], "log_joint", 1)[0]
    occurs = [row[0] != 0 for row in naive.read(rows, threshold, True)]
    assert found.tolist() == [[-math.inf if there else -1.0, -2.0] for there in occurs]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", [0, 1])
def test_a_cell_that_cannot_be_scored_is_named(which, layout):
    for value, threshold, skip, fault in REFUSED:
        if fault == "negative":
            continue
        rows = np.ones((6, 5))
        rows[4, 2] = value
        part = parts(rows, np.ones((5, 2)), np.zeros(2), layout, threshold, skip)[which]
        with pytest.raises(BadValue) as said:
            score(6, np.zeros(2), [part], "log_joint", 2)
        assert (*said.value.args[:3],) == (fault, 2, 4)


@pytest.mark.parametrize(
    "weights, constant, said",
    [
        (np.ones((2, 2)), np.zeros(2), "weights must be"),
        (np.ones((3, 1)), np.zeros(2), "weights"),
        (np.ones((3, 2)), np.zeros(3), "weights must be"),
        (np.full((3, 2), -np.inf), np.zeros(2), "must be finite"),
        (np.ones((3, 2)), np.array([np.nan, 0.0]), "must be finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, constant, said):
    with pytest.raises(ValueError, match=said):
        score(
            4,
            np.zeros(2),
            [("linear", Matrix(np.ones((4, 3)), None, 3, None, True), weights, constant)],
            "log_joint",
            1,
        )


# ---- threads


@pytest.fixture(scope="module")
def large():
    """Rows that keep several threads busy: those of few columns, and those of many."""
    rng = np.random.default_rng(0)
    few = rng.poisson(0.6, (60_000, 40)).astype(np.float64)
    columns = rng.integers(0, 250, (4_000, 1)) + 250 * np.arange(360)  # of 90,000
    values = rng.integers(1, 6, columns.size).astype(np.float64)
    return {"few": few, "many": (np.arange(4_001) * 360, columns.ravel().astype(np.int32), values)}


@pytest.mark.parametrize("kind", ["whole", "whole weights", "parts", "real weights"])
@pytest.mark.parametrize("which", ["few", "few, columns first", "many"])
def test_one_thread_equals_eight_bit_for_bit(large, which, kind):
    rng = np.random.default_rng(1)
    cells = large[which.partition(",")[0]]
    n, k = (len(cells[0]) - 1, 90_000) if isinstance(cells, tuple) else cells.shape
    if kind == "parts":
        cells = (*cells[:2], cells[2] / 3) if isinstance(cells, tuple) else cells / 3
    if which == "few, columns first":
        cells = np.asfortranarray(cells)
    classes = rng.integers(-1, N_CLASSES, n).astype(np.int32)
    weights = {"whole weights": rng.integers(1, 9, n), "real weights": _core.parts(rng.random(n) + 0.1)}.get(kind)
    found = []
    values_and_places = (cells[2], cells[:2]) if isinstance(cells, tuple) else (cells, None)
    given_matrix = Matrix(*values_and_places, k, None, False)
    for threads in (1, 8):
        words = store(k)
        batch = UNREAD, given_matrix, classes, weights, threads
        words = words.count(*batch)
        left = words.forget(*batch)
        assert left.n_words == 0
        assert same_bits(left, store(k))
        found.append(words)
    assert same_bits(*found)
    values, constant = rng.normal(size=(k, 4)), rng.normal(size=4)
    part = ("linear", given_matrix, values, constant)
    answers = [score(n, np.zeros(4), [part], "log_joint", threads)[0] for threads in (1, 8)]
    assert answers[0].tobytes() == answers[1].tobytes()
    if isinstance(cells, tuple):
        matrix = sp.csr_array((cells[2], cells[1], cells[0]), shape=(n, k))
    else:
        matrix = cells
    np.testing.assert_allclose(answers[0], matrix @ values + constant, rtol=1e-11, atol=1e-9)
    assert_sums(found[0].occurrences(), exact_sums(cells, n, classes, weights))


def exact_sums(cells, n, classes, weights):
    """Per class what all rows have, value by value: how often each row has it, what the row weighs, and how many parts it is."""
    if isinstance(cells, tuple):
        of_row, values = np.repeat(np.arange(n), np.diff(cells[0])), cells[2]
    else:
        of_row, values = np.repeat(np.arange(n), cells.shape[1]), cells.ravel()
    if weights is None:
        row_weights = [1] * n
    else:
        row_weights = weights.tolist() if weights.ndim == 1 else from_limbs(np.pad(weights, ((0, 0), (0, 1))), 18)
    found = [0] * N_CLASSES
    for value in np.unique(values[values > 0]):
        times = np.bincount(of_row[values == value], minlength=n).tolist()
        sums = [0] * N_CLASSES
        for c, weight, number in zip(classes.tolist(), row_weights, times, strict=True):
            if c >= 0 and number:
                sums[c] += weight * number
        found = [total + in_parts(float(value)) * more for total, more in zip(found, sums, strict=True)]
    return found
