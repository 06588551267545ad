"""banbury.reading: anything → batches of columns."""

import contextlib
import datetime
import gzip
import itertools
import json
import os
import re
import subprocess
import sys
import warnings
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import banbury as bb
from banbury import _core, errors
from banbury.reading import ParserWork, Widened, blocks, encode, read, read_row

# The same rows, through every route.

TABLE = {
    "length": [1.5, None, 2.5, -3.0, 1.5, 4.0],
    "legs": [2, 4, 4, 2, 100000, 6],
    "colour": ["red", "blue", None, "red", "green", "blue"],
    "tame": [True, False, True, True, False, True],
}
ARROW = pa.table(TABLE)
CSV = (
    "length,legs,colour,tame\n1.5,2,red,true\n,4,blue,false\n2.5,4,?,true\n"
    "-3.0,2, red,true\n1.5,100000,green,false\n4.0,6,blue,true\n"
)


def rows_of(table):
    return [dict(zip(table, cells, strict=True)) for cells in zip(*table.values(), strict=True)]


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def saved_parquet(folder):
    pq.write_table(ARROW, folder / "t.parquet", row_group_size=4)
    return folder / "t.parquet"


ROUTES = {
    "csv": lambda folder: written(folder, "t.csv", CSV),
    "csv, windows lines": lambda folder: written(folder, "t.csv", CSV.replace("\n", "\r\n")),
    "tsv": lambda folder: written(folder, "t.tsv", CSV.replace(",", "\t")),
    "semicolons": lambda folder: written(folder, "t.txt", CSV.replace(",", ";")),
    "bars": lambda folder: str(written(folder, "t.data", CSV.replace(",", "|"))),
    "gz": lambda folder: written(folder, "t.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
    "parquet": saved_parquet,
    "ndjson": lambda folder: written(folder, "t.ndjson", "\n".join(map(json.dumps, rows_of(TABLE)))),
    "pandas": lambda folder: pd.DataFrame(TABLE),
    "pandas, nullable": lambda folder: pd.DataFrame(TABLE).convert_dtypes(),
    "pandas, objects": lambda folder: pd.DataFrame(TABLE, dtype=object),
    "pandas, categories": lambda folder: pd.DataFrame(TABLE).astype({"colour": "category"}),
    "polars": lambda folder: pl.DataFrame(TABLE),
    "polars, lazy": lambda folder: pl.LazyFrame(TABLE),
    "polars, categories": lambda folder: pl.DataFrame(TABLE).with_columns(pl.col("colour").cast(pl.Categorical)),
    "arrow table": lambda folder: ARROW,
    "arrow table in chunks": lambda folder: pa.concat_tables([ARROW.slice(0, 2), ARROW.slice(2)]),
    "arrow batch": lambda folder: ARROW.to_batches()[0],
    "arrow reader": lambda folder: ARROW.to_reader(max_chunksize=4),
    "arrow dataset": lambda folder: pa.dataset.dataset(ARROW),
    "arrow sliced": lambda folder: pa.concat_tables([ARROW, ARROW]).combine_chunks().slice(6),
    "arrow dictionary": lambda folder: ARROW.set_column(2, "colour", ARROW["colour"].dictionary_encode()),
    "arrow views": lambda folder: ARROW.set_column(2, "colour", ARROW["colour"].cast(pa.string_view())),
    "mapping": lambda folder: TABLE,
    "mapping of series": lambda folder: {name: pd.Series(values) for name, values in TABLE.items()},
    "records": lambda folder: rows_of(TABLE),
    "batches": lambda folder: (pd.DataFrame(TABLE)[start : start + 4] for start in (0, 4)),
    "batches in another order": lambda folder: [ARROW.slice(0, 3), ARROW.slice(3).select([3, 2, 1, 0])],
    "batches of several kinds": lambda folder: iter([pl.DataFrame(TABLE)[:2], ARROW.slice(2)]),
}


@pytest.fixture(params=ROUTES, ids=list(ROUTES))
def route(request, tmp_path):
    return list(read(ROUTES[request.param](tmp_path)))


def values_of(codes):
    low, values = codes.low, codes.values
    return [values[code - low] if 0 <= code - low < len(values) else None for code in codes.codes.tolist()]


def column(batches, name, wanted=None):
    return [value for batch in batches for value in values_of(batch.codes(name, wanted))]


def numbers(batches, names):
    return np.concatenate([np.column_stack(batch.numbers(names)) for batch in batches])


def test_every_route_gives_the_same_names(route):
    assert {batch.names for batch in route} == {tuple(TABLE)} and all(batch.named for batch in route)


def test_every_route_counts_the_rows(route):
    assert sum(batch.n_rows for batch in route) == 6
    assert [batch.first_row for batch in route] == [sum(b.n_rows for b in route[:k]) for k in range(len(route))]


def test_every_route_gives_the_same_kinds(route):
    assert [route[0].kind(name) for name in TABLE] == ["float", "integer", "string", "boolean"]


def test_every_route_gives_the_same_numbers(route):
    expected = np.array([TABLE["length"], TABLE["legs"], TABLE["tame"]], dtype=float).T
    np.testing.assert_array_equal(numbers(route, ["length", "legs", "tame"]), expected)


@pytest.mark.parametrize("name", TABLE)
def test_every_route_gives_the_same_codes(route, name):
    found = column(route, name)
    assert found == TABLE[name]
    assert [type(value) for value in found] == [type(value) for value in TABLE[name]]


def test_every_route_gives_the_same_strings(route):
    assert column(route, "legs", "string") == ["2", "4", "4", "2", "100000", "6"]


def test_every_route_gives_the_same_head(route):
    assert route[0].head("length", 1) == [1.5] and route[0].head("colour", 2) == ["red", "blue"]


def test_every_route_gives_the_same_first_row(route):
    [batch, *_] = route
    assert batch.first(["length", "colour"]) == [1.5, "red"]
    assert batch.slice(1, 3).first(["length", "colour"]) == [None, "blue"]


@pytest.mark.parametrize("data", [{"a": [None, 2.0], "b": [1.5, None]}, np.array([[np.nan, 1.5], [2.0, np.nan]])])
def test_a_value_missing_from_the_first_row_is_not_taken_from_another(data):
    [batch] = read(data)
    assert batch.first(batch.names) == [None, 1.5]
    assert batch.slice(1, 2).first(batch.names) == [2.0, None]
    assert batch.slice(0, 0).first(batch.names) == [None, None]


def test_every_route_refuses_texts_as_numbers(route):
    with pytest.raises(errors.BadValue, match=r"row 0 of column 'colour'.* contains 'red', but must contain a number"):
        route[0].numbers(["colour"])


def test_every_route_names_an_unknown_column(route):
    with pytest.raises(errors.UnknownColumn, match=r"no column 'colours'.*Did you mean 'colour'"):
        route[0].codes("colours")


# NumPy.


def test_a_matrix_is_never_copied():
    matrix = np.arange(12.0).reshape(4, 3)
    [batch] = read(matrix)
    assert batch.numbers(batch.names)[0] is matrix


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_a_matrix_of_any_native_number_is_kept(dtype):
    matrix = np.arange(6, dtype=dtype).reshape(2, 3)
    [batch] = read(matrix)
    assert batch.numbers(list(batch.names))[0] is matrix


def test_a_matrix_without_names_counts_its_columns():
    [batch] = read(np.zeros((2, 3)))
    assert batch.names == ("x0", "x1", "x2") and not batch.named


def test_a_matrix_takes_names():
    [batch] = read(np.array([[1.0, 2.0]]), columns=["a", "b"])
    assert batch.named and batch.numbers(["b"])[0].tolist() == [2.0]


def test_some_columns_of_a_matrix_are_views():
    matrix = np.arange(6.0).reshape(2, 3)
    [batch] = read(matrix)
    last, first = batch.numbers(["x2", "x0"])
    assert np.shares_memory(last, matrix) and last.tolist() == [2, 5] and first.tolist() == [0, 3]


def test_a_strided_matrix_is_kept():
    matrix = np.arange(24.0).reshape(4, 6)[::2, ::-2]
    [batch] = read(matrix)
    assert batch.numbers(batch.names)[0] is matrix


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, ">f8", ">i4"])
def test_other_numbers_are_converted(dtype):
    [batch] = read(np.array([[1, 2]], dtype=dtype))
    [array] = batch.numbers(batch.names)
    assert array.dtype.isnative and array.dtype in (np.float64, np.int32) and array.tolist() == [[1, 2]]


def test_booleans_are_seen_as_bytes():
    matrix = np.array([[True, False]])
    [batch] = read(matrix)
    [array] = batch.numbers(batch.names)
    assert array.dtype == np.uint8 and np.shares_memory(array, matrix) and batch.kind("x0") == "boolean"


def test_a_masked_matrix_has_gaps():
    [batch] = read(np.ma.array([[1.0, 2.0]], mask=[[False, True]]))
    assert np.isnan(batch.numbers(["x1"])[0]).all()


def test_an_array_of_objects_is_read_by_column():
    [batch] = read(np.array([[1, "a"], [None, "b"]], dtype=object))
    assert batch.kind("x0") == "integer" and values_of(batch.codes("x1")) == ["a", "b"]


@pytest.mark.parametrize("dtype", ["U", "S"])
def test_an_array_of_texts_is_read_by_column(dtype):
    [batch] = read(np.array([["a", "bb"], ["c", "bb"]], dtype=dtype))
    assert batch.codes("x1").values == ["bb"] and batch.head("x0", 5) == ["a", "c"]


def test_a_structured_array_is_read_by_field():
    [batch] = read(np.array([(1, "a", 2.5)], dtype=[("n", "i1"), ("s", "U3"), ("f", "f8")]))
    assert batch.names == ("n", "s", "f") and batch.numbers(["f"])[0].tolist() == [2.5]


def test_batch_rows_cuts_a_matrix():
    batches = list(read(np.arange(10.0).reshape(5, 2), batch_rows=2))
    assert [batch.n_rows for batch in batches] == [2, 2, 1] and [batch.first_row for batch in batches] == [0, 2, 4]
    assert numbers(batches, ["x1"]).ravel().tolist() == [1, 3, 5, 7, 9]
    assert batches[1].numbers(["x0", "x1"])[0].tolist() == [[4, 5], [6, 7]]


@pytest.mark.parametrize("data", [pd.DataFrame(TABLE), ARROW, TABLE, pd.DataFrame(TABLE).convert_dtypes()])
def test_batch_rows_cuts_other_tables(data):
    batches = list(read(data, batch_rows=4))
    assert [batch.n_rows for batch in batches] == [4, 2]
    assert all(column(batches, name) == TABLE[name] for name in TABLE)


def test_a_list_of_rows_is_a_matrix():
    [batch] = read([[1, 2.5], [3, 4]])
    assert batch.numbers(batch.names)[0].tolist() == [[1, 2.5], [3, 4]]


def test_a_list_of_series_is_a_list_of_rows():
    [batch] = read([pd.Series([1, 2]), pd.Series([3, 4])])
    assert batch.numbers(batch.names)[0].tolist() == [[1, 2], [3, 4]]


def test_numbers_beside_texts_stay_numbers():
    [batch] = read([[1, "a"], (2, "b")])
    assert [batch.kind(name) for name in batch.names] == ["integer", "string"]


# Columns of all kinds.


def one(values, name="c"):
    [batch] = read({name: values})
    return batch


KINDS = [
    ([True, None], "boolean"),
    ([1, None], "integer"),
    ([1, True], "integer"),
    ([1, 2.5], "float"),
    ([1, None, 2.5], "float"),
    ([Decimal("1.5"), None], "float"),
    (["a", float("nan")], "string"),
    (["a", 1], "string"),
    ([None, None], "empty"),
    ([float("nan")], "empty"),
    (np.array([np.nan]), "empty"),
    (pd.Series([pd.NA, pd.NaT], dtype=object), "empty"),
    (pa.nulls(2), "empty"),
    (pa.nulls(2, pa.string()), "empty"),
    (pd.Categorical([None, None], categories=["a"]), "empty"),
    ([datetime.date(2020, 1, 1), None], "date"),
    (np.array(["2020-01-01"], dtype="datetime64[D]"), "date"),
    (np.array([5], dtype="timedelta64[s]"), "date"),
    (pd.Series(pd.to_datetime(["2020-01-01"]).tz_localize("UTC")), "date"),
    (pa.array([datetime.time(1, 2)]), "date"),
    ([[1], [2]], "list"),
    (pa.array([[1], [2]]), "list"),
    ([["a"], ["b"]], "other"),
    (pa.array([["a"], ["b"]]), "other"),
    (pa.array([b"x"]), "other"),
    (pd.Categorical([1, 2]), "integer"),
    (pd.Series([10**30, 1], dtype=object), "integer"),
    (pd.Series(pd.period_range("2020", periods=2, freq="Y")), "date"),
    (pl.Series([1, None]), "integer"),
    (pl.Series(["a"]), "string"),
    (pa.array([Decimal("1.5")]), "float"),
    (range(3), "integer"),
]


@pytest.mark.parametrize("values, kind", KINDS)
def test_a_column_knows_its_kind(values, kind):
    assert one(values).kind("c") == kind


@pytest.mark.parametrize(
    "values, declared",
    [(pd.Categorical([1]), True), (pa.array(["a"]).dictionary_encode(), True), (["a"], False), (pa.array([1]), False)],
)
def test_a_declared_categorical_says_so(values, declared):
    assert one(values).categorical("c") is declared


def test_texts_in_parquet_are_not_declared_categorical(tmp_path):
    [batch, _] = read(saved_parquet(tmp_path), batch_rows=4)
    assert not batch.categorical("colour")


NUMBERS = [
    ([1, None], [1, np.nan]),
    ([True, False], [1, 0]),
    ([Decimal("1.5"), None], [1.5, np.nan]),
    (pd.Series([1, pd.NA], dtype=object), [1, np.nan]),
    (pd.array([1, None], dtype="Int8"), [1, np.nan]),
    (pd.array([True, None], dtype="boolean"), [1, np.nan]),
    (pd.Categorical([3, 1, None]), [3, 1, np.nan]),
    (pa.array([1, None], pa.uint64()), [1, np.nan]),
    (pa.array([1.5, None], pa.float32()), [1.5, np.nan]),
    (pa.array([1.5], pa.float16()), [1.5]),
    (pa.array([Decimal("1.5")]), [1.5]),
    (pa.array([True, None, False]), [1, np.nan, 0]),
    (pa.array([7, None, 7]).dictionary_encode(), [7, np.nan, 7]),
    (pa.nulls(2), [np.nan, np.nan]),
    (pd.arrays.SparseArray([0.0, 1.0]), [0, 1]),
]


@pytest.mark.parametrize("values, expected", NUMBERS)
def test_a_column_gives_its_numbers(values, expected):
    [array] = one(values).numbers(["c"])
    np.testing.assert_array_equal(array, expected)
    assert array.dtype.char in "dfbBhHiIlLqQ"


@pytest.mark.parametrize("values", [["1", "2"], [None, 5, "2"], pa.array([None, "3"]), pd.Categorical(["4"])])
def test_texts_that_look_like_numbers_are_not_parsed(values):
    with pytest.raises(errors.BadValue, match="must contain a number"):
        one(values).numbers(["c"])


def test_the_first_value_that_is_no_number_is_named():
    with pytest.raises(errors.BadValue, match="row 2 of column 'c' contains 'x'") as caught:
        one([1, None, "x", "y"]).numbers(["c"])
    assert (caught.value.row, caught.value.value, caught.value.column) == (2, "x", "c")


def test_the_row_named_counts_the_batches_before():
    first, second = read([{"c": [1, 2]}, {"c": [3, "x"]}])
    assert first.numbers(["c"])[0].tolist() == [1, 2]
    with pytest.raises(errors.BadValue, match="row 3 of column 'c' contains 'x'"):
        second.numbers(["c"])


@pytest.mark.parametrize("values", [[datetime.date(2020, 1, 1)], pa.array([datetime.date(2020, 1, 1)])])
def test_dates_are_no_numbers(values):
    with pytest.raises(errors.BadValue, match="must contain a number"):
        one(values).numbers(["c"])


def test_the_codes_of_dates_are_iso_texts():
    dates = np.array(["2020-01-01", "NaT", "2020-01-01"], dtype="datetime64[D]")
    assert values_of(one(dates).codes("c")) == ["2020-01-01", None, "2020-01-01"]
    assert values_of(one(pa.array(dates)).codes("c")) == ["2020-01-01", None, "2020-01-01"]


CONVERSIONS = [
    ([1, 2, None], "string", ["1", "2", None]),
    ([1.0, 2.5, None], "string", ["1", "2.5", None]),
    ([True, False], "string", ["True", "False"]),
    ([True, False], "integer", [1, 0]),
    ([True, False], "float", [1.0, 0.0]),
    ([1.0, 2.0, None], "integer", [1, 2, None]),
    (["1", "2.0"], "integer", [1, 2]),
    (["1.5", "2"], "float", [1.5, 2.0]),
    ([0, 1, 1], "boolean", [False, True, True]),
    ([0.0, 1.0], "boolean", [False, True]),
    (["True", "false"], "boolean", [True, False]),
    ([1, 2], "float", [1.0, 2.0]),
    ([1, "a"], "string", ["1", "a"]),
    (pd.Categorical([1, 2, 1]), "string", ["1", "2", "1"]),
    (pd.Categorical(["1"], categories=["1", "unused"]), "integer", [1]),
    (pa.array([1, None]), "string", ["1", None]),
]


@pytest.mark.parametrize("values, wanted, expected", CONVERSIONS)
def test_values_are_converted_as_wanted(values, wanted, expected):
    found = values_of(one(values).codes("c", wanted))
    assert found == expected and list(map(type, found)) == list(map(type, expected))


REFUSED = [
    ([1.0, 2.5], "integer", 1),
    ([float("inf")], "integer", 0),
    (["a"], "float", 0),
    ([1, 1, 2], "boolean", 2),
    (["yes"], "boolean", 0),
    (pa.array(["1", None, "x"]), "integer", 2),
]


@pytest.mark.parametrize("values, wanted, row", REFUSED)
def test_a_value_that_cannot_be_converted_is_named(values, wanted, row):
    with pytest.raises(errors.BadValue, match=f"row {row} of column 'c'"):
        one(values).codes("c", wanted)


def test_texts_that_become_equal_are_one_value():
    assert one(["1", "1.0", "2"]).codes("c", "integer").values == [1, 2]


def test_zero_has_no_sign():
    assert one([0.0, -0.0, 1.0]).codes("c").values == [0.0, 1.0]


def test_integers_of_a_small_range_are_their_own_codes():
    array = np.array([5, 7, -3])
    codes = one(array).codes("c")
    assert codes.codes is array and (codes.low, codes.values) == (-3, range(-3, 8))


def test_a_column_of_a_matrix_is_its_own_codes():
    matrix = np.array([[1, 2], [3, 4]], dtype=np.int8)
    [batch] = read(matrix)
    assert np.shares_memory(batch.codes("x1").codes, matrix)


@pytest.mark.parametrize("far", [10**12, 2**63 - 1, -(2**62)])
def test_integers_of_a_wide_range_are_numbered(far):
    codes = one(np.array([1, far, 1])).codes("c")
    assert codes.codes.tolist() == [0, 1, 0] and codes.values == [1, far]


def test_integers_beyond_int64_keep_their_value():
    assert values_of(one(np.array([2**64 - 1, 1], dtype=np.uint64)).codes("c")) == [2**64 - 1, 1]
    assert values_of(one(pa.array([2**64 - 1, None], pa.uint64())).codes("c")) == [2**64 - 1, None]
    assert values_of(one([2**80, 1]).codes("c")) == [2**80, 1]


def test_booleans_are_coded_without_a_copy():
    array = np.array([True, False])
    codes = one(array).codes("c")
    assert np.shares_memory(codes.codes, array) and codes.values == [False, True]


def test_codes_of_a_categorical_are_its_own():
    categorical = pd.Categorical(["b", "a", None], categories=["a", "b", "unused"])
    codes = one(categorical).codes("c")
    assert codes.codes.tolist() == [1, 0, -1] and codes.values == ["a", "b", "unused"]


def test_null_slots_of_a_dictionary_are_missing():
    array = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 1], pa.uint8()), ["a", None, "b"])
    assert values_of(one(array).codes("c")) == ["a", None, "b", None]


def test_equal_entries_of_a_dictionary_are_one_value():
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), ["a", "b", "a"])
    codes = one(array).codes("c")
    assert codes.values == ["a", "b"] and codes.codes.tolist() == [0, 1, 0]


def test_lists_in_cells_cannot_be_coded():
    with pytest.raises(errors.BadValue, match=r"row 1 of column 'c' contains \[2\]"):
        one([1, [2]]).codes("c")
    with pytest.raises(errors.BadValue, match=r"row 0 of column 'c' contains \[2\]"):
        one(pa.array([[2]])).codes("c")


def test_head_passes_over_what_is_missing():
    values = [None] * 1000 + list(range(2000))
    for data in (values, pa.array(values), pd.Series(values, dtype="Int64"), np.array(values, dtype=float)):
        assert one(data).head("c", 3) == [0, 1, 2]


def test_head_shows_what_cannot_be_counted():
    assert one([["a"], None]).head("c", 2) == one(pa.array([["a"], None])).head("c", 2) == ["['a']"]


def test_head_gives_all_there_is():
    assert one(["a", None, "b"]).head("c", 10) == ["a", "b"]


def test_a_table_without_rows_keeps_its_columns():
    [batch] = read(pa.schema([("a", pa.int64()), ("b", pa.string())]).empty_table())
    assert (batch.names, batch.n_rows) == (("a", "b"), 0)
    assert batch.numbers(["a", "b"])[1].shape == (0,) and batch.codes("b").values == []


@pytest.mark.parametrize("values", [[], np.array([]), np.array([], dtype="U1"), pa.array([], pa.string())])
def test_a_column_without_rows_has_neither_codes_nor_numbers(values):
    batch = one(values)
    assert len(batch.codes("c").codes) == 0 and len(batch.numbers(["c"])[0]) == 0 and batch.head("c", 3) == []


def test_column_names_become_texts():
    [batch] = read(pd.DataFrame([[1, 2]]))
    assert batch.names == ("0", "1") and batch.named


def test_numeric_columns_of_pandas_are_not_copied():
    frame = pd.DataFrame({"a": np.arange(3.0), "b": ["x", "y", "z"]})
    [batch] = read(frame)
    assert np.shares_memory(batch.numbers(["a"])[0], frame["a"].to_numpy())


def test_a_small_frame_of_numbers_gives_them_at_once():
    [batch] = read(pd.DataFrame({"a": [1, 2], "b": [0.5, np.nan]}))
    [array] = batch.numbers(["a", "b"])
    np.testing.assert_array_equal(array, [[1, 0.5], [2, np.nan]])
    assert [batch.kind("a"), batch.kind("b")] == ["integer", "float"]


def test_numeric_columns_of_arrow_and_polars_are_not_copied():
    frame = pl.DataFrame({"a": np.arange(3.0)})
    [batch] = read(frame)
    assert np.shares_memory(batch.numbers(["a"])[0], frame["a"].to_numpy(allow_copy=False))


def test_records_lack_what_they_do_not_name():
    [batch] = read([{"a": 1}, {"b": "x", "a": 2}, {}])
    assert values_of(batch.codes("a")) == [1, 2, None] and values_of(batch.codes("b")) == [None, "x", None]


# Batches of tables.


def test_an_iterator_can_be_read_only_once():
    assert not read(iter([TABLE])).again and not read(ARROW.to_reader()).again


@pytest.mark.parametrize("data", [[TABLE, TABLE], TABLE, ARROW, np.zeros((1, 1)), pl.DataFrame(TABLE)])
def test_a_table_can_be_read_again(data):
    source = read(data)
    assert source.again and len(list(source)) == len(list(source)) > 0


def test_batches_are_held_one_at_a_time():
    alive = []

    def batches():
        for number in range(3):
            alive.append(number)
            yield np.full((2, 1), float(number))

    source = iter(read(batches()))
    next(source)
    assert alive == [0]


def test_files_are_read_one_after_the_other(tmp_path):
    paths = [written(tmp_path, f"{number}.csv", f"a,b\n{number},x\n") for number in range(3)]
    assert column(read(paths), "a") == [0, 1, 2] and column(read(list(map(str, paths))), "a") == [0, 1, 2]


def test_a_batch_that_lacks_a_column_is_refused():
    with pytest.raises(errors.SchemaMismatch, match="begins at row 2 lacks 'b' and adds 'c'"):
        list(read([{"a": [1, 2], "b": [3, 4]}, {"a": [1], "c": [1]}]))


def test_a_batch_of_another_width_is_refused():
    with pytest.raises(errors.SchemaMismatch, match="adds 'x2'"):
        list(read(iter([np.zeros((1, 2)), np.zeros((1, 3))])))


def test_an_iterator_without_batches_is_refused():
    with pytest.raises(errors.EmptyData, match="yielded no batches"):
        list(read(iter([])))


# Texts.

TEXTS = ["a text", None, "another, längër one", ""]
SEVERAL = pa.chunked_array([["before"], TEXTS[:2], TEXTS[2:]]).slice(1)

TEXT_ROUTES = {
    "list": TEXTS,
    "list with NaN": ["a text", float("nan"), *TEXTS[2:]],
    "list of bytes": [text and text.encode() for text in TEXTS],
    "tuple": tuple(TEXTS),
    "missing first": [None, *TEXTS],
    "object array": np.array(TEXTS, dtype=object),
    "series": pd.Series(TEXTS),
    "series of objects": pd.Series(TEXTS, dtype=object),
    "series of Arrow strings": pd.Series(TEXTS, dtype="string[pyarrow]"),
    "series with another index": pd.Series(TEXTS, index=[7, 3, 5, 1]),
    "series of categories": pd.Series(TEXTS, dtype="category"),
    "index": pd.Index(TEXTS),
    "arrow": pa.array(TEXTS),
    "arrow, large": pa.array(TEXTS, pa.large_string()),
    "arrow, sliced": pa.array(["before", *TEXTS, "after"]).slice(1, 4),
    "arrow, views": pa.array(TEXTS, pa.string_view()),
    "arrow, dictionary": pa.array(TEXTS).dictionary_encode(),
    "arrow, chunks": SEVERAL,
    "polars": pl.Series(TEXTS),
    "polars, categories": pl.Series(TEXTS, dtype=pl.Categorical),
}


def texts_of(batch, name="text"):
    """What the kernel would see."""
    found = batch.texts(name)
    if isinstance(found, list):
        return [None if text is None or text != text else text for text in found]
    offsets, data, valid, shift = found.offsets, found.data, found.valid, found.valid_offset
    assert offsets.dtype in (np.int32, np.int64) and data.dtype == np.uint8
    present = [valid is None or bool(valid[(shift + i) // 8] >> (shift + i) % 8 & 1) for i in range(len(offsets) - 1)]
    cells = [data[start:stop].tobytes().decode() for start, stop in itertools.pairwise(offsets.tolist())]
    return [cell if is_there else None for cell, is_there in zip(cells, present, strict=True)]


@pytest.mark.parametrize("route", TEXT_ROUTES)
def test_plain_texts_are_a_table_of_one_column(route):
    batches = list(read(TEXT_ROUTES[route]))
    expected = [None, *TEXTS] if route == "missing first" else TEXTS
    assert [text for batch in batches for text in texts_of(batch)] == expected
    for batch in batches:
        assert (batch.names, batch.named, batch.is_text("text")) == (("text",), False, True)


@pytest.mark.parametrize("route", TEXT_ROUTES)
def test_texts_stay_texts_when_they_are_cut_or_renamed(route):
    batches = list(read(TEXT_ROUTES[route], batch_rows=2))
    assert len(batches) >= 2 and all(batch.is_text("text") for batch in batches)
    assert [text for batch in batches for text in texts_of(batch)][-4:] == TEXTS
    assert batches[0].rename(("other",)).is_text("other")


def test_fixed_width_texts_have_no_gaps():
    for dtype in ("U", "S"):
        [batch] = read(np.array(["a text", "b"], dtype=dtype))
        assert texts_of(batch) == ["a text", "b"] and batch.is_text("text")


def test_texts_may_be_given_a_name():
    [batch] = read(["a text", "b"], columns=["message"])
    assert (batch.names, batch.named, batch.is_text("message")) == (("message",), True, True)
    [batch] = read(pa.array(["a text"]), columns=["message"])
    assert (batch.names, batch.named, batch.is_text("message")) == (("message",), True, True)


def test_a_list_of_texts_is_not_copied():
    texts = ["a text", None, float("nan")]
    [batch] = read(texts)
    assert batch.texts("text") is texts


def test_the_buffers_of_arrow_texts_are_not_copied():
    array = pa.array(["before", "a text", None, "b"]).slice(1)
    [batch] = read(array)
    texts = batch.texts("text")
    offsets, data, valid = texts.offsets, texts.data, texts.valid
    assert data.ctypes.data == array.buffers()[2].address and texts.valid_offset == 1
    assert offsets.ctypes.data == array.buffers()[1].address + 4 and valid.ctypes.data == array.buffers()[0].address


@pytest.mark.parametrize(
    "texts", [["see data.csv"], ["see data.csv", "b"], ["a.csv\nb.csv"], ["and/or"], ["note.txt", "and so on"]]
)
def test_a_text_that_looks_like_a_file_is_a_text(texts):
    [batch] = read(texts)
    assert batch.texts("text") == texts


def test_a_file_with_a_blank_in_its_name_is_a_file_if_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert next(iter(read(["my data.csv"]))).is_text("text")
    written(tmp_path, "my data.csv", CSV)
    assert next(iter(read(["my data.csv"]))).names == tuple(TABLE)


def test_a_list_of_files_one_of_which_is_missing_is_not_one_of_texts(tmp_path):
    with pytest.raises(errors.BadFile, match=r"b\.csv: the file does not exist"):
        list(read([str(written(tmp_path, "a.csv", CSV)), str(tmp_path / "b.csv")]))


def test_texts_in_a_list_may_be_messages_or_pages():
    [batch] = read(["Subject: hello\n\nA <b>body</b>", None, b"Subject: b\n\nytes"], format="mail")
    assert batch.texts("text") == ["hello\nA <b>body</b>", None, "b\nytes"]
    [batch] = read(pd.Series(["<p>A <b>bo</b>dy &amp; more", None]), format="html")
    assert batch.texts("text") == ["\nA body & more", None]
    with pytest.warns(errors.BanburyWarning, match="1 of 2 messages are broken.*row 1"):
        read(["Subject: a\n\nb", "no header"], format="mail")


# Columns of tables as texts.

AS_TEXTS = [
    (["a b", None, float("nan")], ["a b", None, None]),
    ([1.0, 2.5, None], ["1", "2.5", None]),
    ([True, 3, "a"], ["True", "3", "a"]),
    ([b"caf\xc3\xa9", b"caf\xe9"], ["café", "café"]),
    (["a", pd.NA, pd.NaT, np.str_("b")], ["a", None, None, "b"]),
    ([Decimal("1.5"), datetime.date(2020, 1, 2)], ["1.5", "2020-01-02"]),
    (np.array([1, 2]), ["1", "2"]),
    (np.array([1.5, np.nan]), ["1.5", None]),
    (np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), ["2020-01-01", None]),
    (pa.array([1, None]), ["1", None]),
    (pa.array([b"caf\xe9", None]), ["café", None]),
    (pa.array([datetime.date(2020, 1, 2), None]), ["2020-01-02", None]),
    (pa.nulls(2), [None, None]),
    (pd.Categorical(["b", None, "b"]), ["b", None, "b"]),
    (pd.Categorical([2, 1]), ["2", "1"]),
    ([], []),
]


@pytest.mark.parametrize("values, expected", AS_TEXTS)
def test_any_column_can_be_read_as_texts(values, expected):
    batch = one(values)
    assert texts_of(batch, "c") == expected and not batch.is_text("c")


@pytest.mark.parametrize("values", [["a", ["b"]], pa.array([["a"], ["b"]]), ["a", {"b": 1}]])
def test_what_is_no_text_is_named_with_its_row(values):
    with pytest.raises(errors.BadValue, match=r"row [01] of column 'c' contains .*a text"):
        one(values).texts("c")


def test_texts_in_arrow_that_are_not_utf8_are_latin_1():
    array = pa.array([b"caf\xe9", b"caf\xc3\xa9", None]).view(pa.string())
    assert one(array).texts("c") == ["café", "café", None]


def test_a_row_gives_its_text():
    batch = read_row({"text": "cheap meds", "n": 5}, ("text", "n"), True)
    assert batch.texts("text") == ["cheap meds"] and batch.texts("n") == ["5"]
    assert read_row({"n": 5}, ("text", "n"), True).texts("text") == [None]
    assert read_row(["cheap meds"], ("text",), False).texts("text") == ["cheap meds"]
    with pytest.raises(errors.UnknownColumn, match="no column 'texts'"):
        batch.texts("texts")


LETTERS = ["one two three four", "five, six", None, "seven " * 30]


def text_tables(folder):
    table = pa.table({"n": range(4), "message": LETTERS})
    pq.write_table(table, folder / "t.parquet")
    pa_csv.write_csv(table, folder / "t.csv")
    written(folder, "t.ndjson", "".join(f"{json.dumps(row)}\n" for row in table.to_pylist()))
    return [folder / name for name in ("t.parquet", "t.csv", "t.ndjson")]


@pytest.mark.parametrize("kinds", [None, {"message": "text"}])
def test_a_column_of_a_file_can_be_read_as_texts(tmp_path, kinds):
    for path in text_tables(tmp_path):
        [batch] = read(path, kinds=kinds)
        assert [text and text.strip() for text in texts_of(batch, "message")] == [t and t.strip() for t in LETTERS]


def test_texts_are_not_read_as_codes_from_parquet(tmp_path):
    path = text_tables(tmp_path)[0]
    for names in (None, ["k", "body"]):
        name = "message" if names is None else "body"
        [batch] = read(path, kinds={name: "text"}, columns=names)
        assert isinstance(batch.texts(name), _core.ArrowTexts)


def test_blanks_around_texts_of_a_file_do_not_count(tmp_path):
    batch = read_text(tmp_path, "a,b\n  x y  ,1\n   ?  ,2\n,3\nz,4\n", kinds={"a": "text"})
    assert texts_of(batch, "a") == ["x y", None, None, "z"]


def test_texts_of_a_latin_1_file_are_read(tmp_path):
    with pytest.warns(errors.BanburyWarning, match="Latin-1"):
        batch = read_text(tmp_path, "a,b\n fünf Äpfel ,1\nacht,2\n".encode("latin-1"), kinds={"a": "text"})
    assert texts_of(batch, "a") == ["fünf Äpfel", "acht"]


def test_numbers_and_dates_in_a_text_column_stay_as_they_are_written(tmp_path):
    batch = read_text(tmp_path, "a,b\n007,1\n1.50,2\n", kinds={"a": "text"})
    assert texts_of(batch, "a") == ["007", "1.50"]
    batch = read_text(tmp_path, '{"b": 1, "a": "2020-01-01"}\n', "t.ndjson", kinds={"a": "text"})
    assert texts_of(batch, "a") == ["2020-01-01"] and batch.names == ("b", "a")


def test_batches_say_how_much_of_the_file_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 16)
    for path in text_tables(tmp_path):
        shares = [batch.share for batch in read(path, batch_rows=2)]
        assert shares == sorted(shares) and 0 < shares[0] < shares[-1] == 1.0


# What is not a table.


@pytest.mark.parametrize(
    "data, kind, message",
    [
        (np.array([1.0, 2.0]), ValueError, "Expected 2D array, got 1D array instead(.|\n)*Reshape your data"),
        ([1, 2], ValueError, "Reshape your data"),
        (pd.Series([1, 2]), ValueError, "Reshape your data"),
        (np.array(5.0), ValueError, "Expected 2D array, got scalar array instead"),
        (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3"),
        ([[[1]]], ValueError, "Found array with dim 3"),
        (scipy.sparse.eye(3, dtype=complex).tocsr(), TypeError, "sparse matrix of complex128.*float64"),
        (np.zeros((2, 2), complex), ValueError, "Complex data not supported"),
        ([[1j]], ValueError, "Complex data not supported"),
        (np.array([1, 2], dtype=object), ValueError, "Reshape your data"),
        ([None, 2.5], ValueError, "Reshape your data"),
        ([], errors.EmptyData, "the list is empty"),
        ([[1, 2], [3]], errors.LengthMismatch, "row 1 has 1 cells but row 0 has 2"),
        ({"a": [1, 2], "b": [1]}, errors.LengthMismatch, "column 'a' has 2 rows and column 'b' has 1"),
        ({"a": 1, "b": [2]}, ValueError, "column 'a' is 1, but a column must be a list"),
        ({"a": "text", "b": [2]}, ValueError, "column 'a' is 'text'"),
        ({"a": np.zeros((2, 2, 2))}, ValueError, "shape \\(2, 2, 2\\)"),
        ({1: [1], "1": [2]}, errors.DuplicateColumn, "two columns are named '1'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), errors.DuplicateColumn, "two columns are named 'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), errors.DuplicateColumn, "two columns are named 'a'"),
        (pl.Series([1, 2]), ValueError, "Reshape your data"),
        (pa.array([1, 2]), ValueError, "Reshape your data"),
        (pa.chunked_array([[1, 2]]), ValueError, "Reshape your data"),
        (5, TypeError, "cannot read rows from int"),
        (None, TypeError, "cannot read rows from NoneType"),
    ],
)
def test_what_is_not_a_table_is_refused(data, kind, message):
    with pytest.raises(kind, match=message):
        list(read(data))


@pytest.mark.parametrize("data", [np.zeros((1, 2)), [[1, 2]], pd.DataFrame([[1, 2]]), {"a": [1], "b": [2]}])
def test_names_must_be_as_many_as_the_columns(data):
    with pytest.raises(errors.LengthMismatch, match="columns= names 1 entry, but the data have 2 columns"):
        read(data, columns=["a"])


def test_names_must_differ():
    with pytest.raises(errors.DuplicateColumn, match="two columns are named 'a'"):
        read(np.zeros((1, 2)), columns=["a", "a"])


def test_batch_rows_must_be_positive():
    with pytest.raises(errors.BadSetting, match="batch_rows must be"):
        read(TABLE, batch_rows=0)


# Delimited files.


def read_text(folder, text, name="t.csv", **options):
    [batch] = read(written(folder, name, text), **options)
    return batch


def test_a_file_with_names_has_no_header(tmp_path):
    batch = read_text(tmp_path, "1,a\n2,b\n", columns=["n", "s"])
    assert values_of(batch.codes("n")) == [1, 2] and batch.named


def test_names_must_be_as_many_as_a_files_columns(tmp_path):
    with pytest.raises(
        errors.LengthMismatch, match=r"t.csv, line 1: 2 fields separated by ',', but there are 3 column names: '1,a'"
    ):
        read(written(tmp_path, "t.csv", "1,a\n"), columns=["a", "b", "c"])


def test_a_header_of_numbers_is_warned_of(tmp_path):
    with pytest.warns(errors.BanburyWarning, match="looks like a row"):
        read_text(tmp_path, "5.1,3.5,setosa\n4.9,3.0,setosa\n")


def test_a_space_divides_when_nothing_else_does(tmp_path):
    assert read_text(tmp_path, "a b\n1 2\n3 4\n").names == ("a", "b")


def test_a_file_of_one_column_is_not_divided(tmp_path):
    assert read_text(tmp_path, "name\nJohn Smith\nJo\n").head("name", 2) == ["John Smith", "Jo"]


def test_a_delimiter_in_quotes_does_not_divide(tmp_path):
    assert read_text(tmp_path, 'a;b\n"x,y,z";1\n"u,v,w";2\n').head("a", 1) == ["x,y,z"]


def test_decimal_commas_do_not_divide(tmp_path):
    assert read_text(tmp_path, "a;b\n1,5;2,5\n").names == ("a", "b")


def test_the_delimiter_may_be_given(tmp_path):
    assert read_text(tmp_path, "a:b,c\n1:2,3\n", delimiter=":").names == ("a", "b,c")


@pytest.mark.parametrize("delimiter", ["", "||", "→", 5])
def test_the_delimiter_is_one_character(tmp_path, delimiter):
    with pytest.raises(errors.BadSetting, match="delimiter must be one ASCII character"):
        read_text(tmp_path, CSV, delimiter=delimiter)


def test_blanks_around_texts_do_not_count(tmp_path):
    batch = read_text(tmp_path, "a,b\n x,1\nx  ,2\n\tx,3\n")
    assert batch.codes("a").values == ["x"] and batch.head("a", 3) == ["x", "x", "x"]


def test_blanks_around_names_do_not_count(tmp_path):
    assert read_text(tmp_path, "a, b\n1, 2\n").names == ("a", "b")


def test_blanks_around_numbers_do_not_count(tmp_path):
    assert read_text(tmp_path, "a, b\n1, 2\n2, 3\n").kind("b") == "integer"


@pytest.mark.parametrize("text", ["", "NA", "NaN", "null", "?", " NA", "NA ", "   ?  ", '"NA"'])
def test_missing_values_of_texts_are_missing(tmp_path, text):
    batch = read_text(tmp_path, f"a,b\nx,1\n{text},2\n")
    assert values_of(batch.codes("a")) == ["x", None] and batch.head("a", 2) == ["x"]


@pytest.mark.parametrize("text", ["", "NA", "NaN", "null", "?", " NA", "NA ", " ? "])
def test_missing_values_of_numbers_are_missing(tmp_path, text):
    batch = read_text(tmp_path, f"a,b\n1,1\n{text},2\n")
    assert batch.kind("a") == "integer" and values_of(batch.codes("a")) == [1, None]


def test_missing_values_may_be_given(tmp_path):
    batch = read_text(tmp_path, "a,b\nx,1\n-,2\n?,-\n", missing_values=["-"])
    assert values_of(batch.codes("a")) == ["x", None, "?"] and values_of(batch.codes("b")) == [1, 2, None]


def test_a_column_without_a_name_is_named_by_its_place(tmp_path):
    assert read_text(tmp_path, ",a\n0,1\n").names == ("x0", "a")


ARFF = "@relation r\n@attribute x string\n@attribute y {a, b}\n@data\n\ufeffu,a\n'\ufeff v',b\n"
MAIL = "Received: by b\nSubject: \ufeffhello\n\n\ufeffbody\n"
MAILBOX = f"From a@b.org Mon Jan  1 00:00:00 2024\n{MAIL}\n\nFrom c@d.org Mon Jan  1 00:00:00 2024\n{MAIL}"
JSON = '{"x": "\ufeffu", "y": "a"}\n{"x": "v", "y": "\ufeff"}\n'

# A file's name, what it holds and how it is read. Each holds U+FEFF as a character, too, at the start of lines and cells.
TEXT_FORMATS = {
    "comma": ("t.csv", "x,y\n\ufeffu,a\nv,\ufeff\n", {}),
    "quoted header": ("t.csv", '"x","y"\n"\ufeff,u",a\n', {}),
    "comment first": ("t.csv", "# note\nx,y\n\ufeffu,a\n", {"comment": "#"}),
    "no header": ("t.csv", "1,a\n2,\ufeff\n", {"header": False}),
    "line to skip": ("t.csv", "title\nx,y\n\ufeffu,a\n", {"skip_lines": 1}),
    "tab": ("t.tsv", "x\ty\n\ufeffu\ta\n", {}),
    "no ending": ("table", "x,y\n\ufeffu,a\n", {}),
    "gzip": ("t.csv.gz", "x,y\n\ufeffu,a\n", {}),
    "zip": ("t.zip", "x,y\n\ufeffu,a\n", {}),
    "json": ("t.ndjson", JSON, {}),
    "json, no ending": ("table", JSON, {}),
    "json, gzip": ("t.jsonl.gz", JSON, {}),
    "arff": ("t.arff", ARFF, {}),
    "arff, no ending": ("table", ARFF, {}),
    "text": ("t.txt", "space \ufeff\n\ufeff", {"format": "text"}),
    "text, gzip": ("t.txt.gz", "space \ufeff\n\ufeff", {"format": "text"}),
    "lines": ("t.txt", "one\n\ufefftwo\n", {"format": "lines"}),
    "lines, gzip": ("t.txt.gz", "one\n\ufefftwo\n", {"format": "lines"}),
    "folder": ("spam/1", "free \ufeffpills", {}),
    "page": ("t.html", "<p>\ufeffpills", {}),
    "page, no ending": ("page", "<html><p>\ufeffpills", {}),
    "mail": ("t.eml", MAIL, {}),
    "mail, no ending": ("mail", MAIL, {}),
    "mailbox": ("t.mbox", MAILBOX, {}),
    "mailbox, no ending": ("mail", MAILBOX, {}),
}


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_a_byte_order_mark_is_skipped_where_a_file_begins_and_nowhere_else(tmp_path, name):
    file, text, options = TEXT_FORMATS[name]

    def table(content):
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("t.csv", content)
        else:
            path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        batches = list(read(tmp_path if path.parent != tmp_path else path, **options))
        return [(name, [cell for batch in batches for cell in batch.column(name).cells()]) for name in batches[0].names]

    cells = table(text.encode())
    assert str(cells).count("\\ufeff") == text.count("\ufeff")
    assert table(text.encode("utf-8-sig")) == cells


def test_a_second_byte_order_mark_is_a_character(tmp_path):
    assert read_text(tmp_path, "\ufeff\ufeffa,b\n1,2\n").names == ("\ufeffa", "b")


def test_a_message_in_memory_may_begin_with_a_byte_order_mark():
    messages = ["Subject: a\n\nb", "\ufeffSubject: a\n\nb", "Subject: a\n\nb".encode("utf-8-sig")]
    [batch] = read(messages, format="mail")
    assert len(set(batch.texts("text"))) == 1


def test_old_macintosh_lines_are_lines(tmp_path):
    assert read_text(tmp_path, "a,b\r1,2\r3,4\r").n_rows == 2


def test_dates_are_dates(tmp_path):
    assert read_text(tmp_path, "a,b\n2020-01-01,1\n").kind("a") == "date"


def test_a_file_with_only_a_header_gives_one_batch_without_rows(tmp_path):
    for text in ("a,b\n", "a,b", "a,b\n\n"):
        batch = read_text(tmp_path, text)
        assert (batch.names, batch.n_rows) == (("a", "b"), 0)


def test_kinds_make_numbers(tmp_path):
    batch = read_text(tmp_path, "a,b\n1,2\n,\n", kinds={"a": "number", "b": "string", "elsewhere": "number"})
    assert batch.kind("a") == "float" and values_of(batch.codes("b")) == ["2", None]


def test_a_value_that_kinds_rule_out_is_named_with_its_line(tmp_path):
    with pytest.raises(
        errors.BadValue, match=r"t.csv, line 5: column 'a' contains 'x', but must contain a number"
    ) as caught:
        read_text(tmp_path, 'a,b\n1,"two\nlines"\n\nx,2\n', kinds={"a": "number"})
    assert caught.value.line == 5


@pytest.mark.parametrize("value", ["\v1", "x y", "1,5", "é"])
def test_whatever_kinds_rule_out_is_shown_as_it_stands(tmp_path, value):
    text = "a;b\n" + "1;2\n" * 1000 + f"{value};2\n" + "2;z\n" * 1000
    with pytest.raises(errors.BadValue, match=re.escape(f"line 1,002: column 'a' contains {value!r}")):
        read_text(tmp_path, text, kinds={"a": "number"}, delimiter=";")


@pytest.mark.parametrize("first", ["1", "true", "2020-01-01", "2020-01-01 10:00:00", "10:00:00"])
@pytest.mark.parametrize("later", [" 2020-01-02", "0", "TRUE ", "é", "1e3", "25:00:00", '"a\nb"'])
@pytest.mark.usefixtures("small_blocks")
def test_any_type_widens_to_what_holds_both(tmp_path, first, later):
    source = read(written(tmp_path, "t.csv", "a,b\n" + f"{first},1\n" * 50 + f"{later},1\n" * 3))
    with contextlib.suppress(Widened):
        list(source)
    assert sum(batch.n_rows for batch in source) == 53


@pytest.mark.parametrize("row", ["1,2,3", "1", "1,2,"])
def test_a_broken_row_is_named_with_its_line(tmp_path, row):
    with pytest.raises(errors.BadFile, match=r"t.csv, line 6: (1 field|3 fields) but the header has 2") as caught:
        read_text(tmp_path, f'a,b\n1,2\n\n1,"two\nlines"\n{row}\n1,2\n')
    assert caught.value.line == 6


def test_a_name_twice_in_a_header_is_refused(tmp_path):
    with pytest.raises(errors.DuplicateColumn, match=r"two columns are named 'a' in .*t.csv"):
        read_text(tmp_path, "a,b,a\n1,2,3\n")


def test_latin_1_is_read_with_a_warning(tmp_path):
    with pytest.warns(errors.BanburyWarning, match="not UTF-8, so it was read as Latin-1"):
        batch = read_text(tmp_path, "größe,b\nfünf,x\n".encode("latin-1"))
    assert batch.names == ("größe", "b") and batch.head("größe", 1) == ["fünf"]


def test_utf_8_is_read_without_a_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_text(tmp_path, "größe,b\nfünf,😀\n").head("b", 1) == ["😀"]


# Files of many blocks.


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_give_every_row_once_and_in_order(tmp_path):
    text = "a,b\n" + "".join(f"{row},name {row % 7}\n" for row in range(500))
    batches = list(read(written(tmp_path, "t.csv", text)))
    assert len(batches) > 50 and column(batches, "a") == list(range(500))
    assert [batch.first_row for batch in batches] == list(np.cumsum([0] + [batch.n_rows for batch in batches[:-1]]))


@pytest.mark.usefixtures("small_blocks")
@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(st.tuples(st.integers(0, 9), st.text('ab",;\n é', min_size=1)), min_size=1, max_size=40),
    quoting=st.sampled_from(["needed", "all_valid"]),
)
def test_what_csv_wrote_is_read_back(tmp_path_factory, cells, quoting):
    folder = tmp_path_factory.mktemp("csv")
    table = pa.table({"n": [n for n, _ in cells], "s": [f"x{s}x" for _, s in cells]})
    pa_csv.write_csv(table, folder / "t.csv", pa_csv.WriteOptions(quoting_style=quoting))
    batches = list(read(folder / "t.csv"))
    assert column(batches, "s") == table["s"].to_pylist() and column(batches, "n") == table["n"].to_pylist()


@pytest.mark.usefixtures("small_blocks")
def test_quoted_line_breaks_longer_than_a_block_are_one_value(tmp_path):
    long = "line\n" * 100
    text = "a,b\n" + "".join(f'{row},"{long}{row}"\n' for row in range(5))
    assert column(read(written(tmp_path, "t.csv", text)), "b") == [f"{long}{row}" for row in range(5)]


@pytest.mark.usefixtures("small_blocks")
def test_a_stray_quotation_mark_is_borne_with(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST_RECORD", 1024)
    text = "a,b\n" + "".join(
        f"{row},{5 if row == 3 else 4}{'in' if row != 3 else chr(34)} pipe\n" for row in range(300)
    )
    assert column(read(written(tmp_path, "t.csv", text)), "a") == list(range(300))


@pytest.mark.usefixtures("small_blocks")
def test_a_file_without_lines_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST_RECORD", 1024)
    with pytest.raises(errors.BadFile, match="no line break"):
        list(read(written(tmp_path, "t.csv", "a,b\n" + "x" * 5000)))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "first, later, kind, values",
    [
        ("1", "2.5", "float", [1.0, 2.5]),
        ("1", "x", "string", ["1", "x"]),
        ("1.5", "x", "string", ["1.5", "x"]),
        ("true", "x", "string", ["true", "x"]),
        ("", "3", "integer", [None, 3]),
        ("", "3.5", "float", [None, 3.5]),
        ("", "x", "string", [None, "x"]),
        ("2020-01-01", "x", "string", ["2020-01-01", "x"]),
        ("1", "9" * 30, "float", [1.0, 1e30]),
    ],
)
def test_a_later_block_widens_a_column(tmp_path, first, later, kind, values):
    source = read(written(tmp_path, "t.csv", "a,b\n" + f"{first},1\n" * 50 + f"{later},1\n"))
    with pytest.raises(Widened) as caught:
        list(source)
    assert (caught.value.column, caught.value.kind) == ("a", kind)
    assert column(source, "a") == [values[0]] * 50 + [values[1]]


@pytest.mark.usefixtures("small_blocks")
def test_a_column_may_widen_twice(tmp_path):
    source = read(written(tmp_path, "t.csv", "a,b\n" + "1,1\n" * 50 + "2.5,1\n" + "1,1\n" * 50 + "x,1\n"))
    for kind in ("float", "string"):
        with pytest.raises(Widened) as caught:
            list(source)
        assert caught.value.kind == kind
    assert set(column(source, "a")) == {"1", "2.5", "x"}


@pytest.mark.usefixtures("small_blocks")
def test_a_file_among_batches_remembers_what_it_widened(tmp_path):
    source = read([written(tmp_path, "t.csv", "a,b\n" + "1,1\n" * 50 + "x,1\n")])
    with pytest.raises(Widened):
        list(source)
    assert set(column(source, "a")) == {"1", "x"}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_broken_row_in_a_later_block_is_named_with_its_line(tmp_path, name):
    text = ("a,b\n" + '1,"x\ny"\n\n' * 50 + "1,2,3\n").encode()
    path = written(tmp_path, name, gzip.compress(text) if name.endswith(".gz") else text)
    with pytest.raises(errors.BadFile, match="line 152: 3 fields but the header has 2: '1,2,3'"):
        list(read(path))


@pytest.mark.usefixtures("small_blocks")
def test_latin_1_in_a_later_block_is_read(tmp_path):
    path = written(tmp_path, "t.csv", b"a,b\n" + b"x,1\n" * 50 + b"f\xfcnf,1\n" * 50)
    with pytest.warns(errors.BanburyWarning) as caught:
        found = column(read(path), "a")
    assert found == ["x"] * 50 + ["fünf"] * 50 and len(caught) == 1


@pytest.mark.usefixtures("small_blocks")
def test_reading_may_be_broken_off(tmp_path):
    source = iter(read(written(tmp_path, "t.csv", "a,b\n" + "1,2\n" * 5000)))
    next(source), next(source)
    source.close()


@pytest.mark.parametrize("threads", ["1", "2", "8"])
def test_codes_ahead_of_what_is_read_change_nothing_before_them(tmp_path, monkeypatch, small_blocks, threads):
    """A thread that parses a later block may find codes there before an earlier block is taken: a word, or what is infinite."""
    monkeypatch.setenv("BANBURY_THREADS", threads)
    rows = [f"{i}.5,{'xy'[i % 2]}" for i in range(200)]
    for at, value in ((50, "1 2"), (70, "007")):
        rows[at] = f"{value},x"
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["a,b", *rows]))
    for _ in range(10):
        with pytest.warns(errors.BanburyWarning, match="reading it as strings"):
            assert bb.count(path, "b").n_rows == 200
    path.write_text("\n".join(["a,b", *rows]).replace("1 2", "inf"))
    for _ in range(10):
        with pytest.raises(errors.BadValue, match="row 50 of column"):
            bb.count(path, "b")


def test_one_thread_reads_what_two_read(tmp_path, monkeypatch, small_blocks):
    path = written(tmp_path, "t.csv", "a,b\n" + "".join(f"{row},{row}\n" for row in range(300)))
    monkeypatch.setenv("BANBURY_THREADS", "1")
    assert column(read(path), "a") == list(range(300))


# Newline-delimited JSON.


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "first, later, column_name, values",
    [
        ('{"a": 1}', '{"a": 2.5}', "a", [1.0, 2.5]),
        ('{"a": null}', '{"a": "x"}', "a", [None, "x"]),
        ('{"a": 1}', '{"a": 1, "b": "late"}', "b", [None, "late"]),
        ('{"a": "2020-01-01"}', '{"a": "x"}', "a", ["2020-01-01", "x"]),
    ],
)
def test_a_later_line_widens_a_column(tmp_path, first, later, column_name, values):
    source = read(written(tmp_path, "t.jsonl", f"{first}\n" * 20 + later))
    with pytest.raises(Widened) as caught:
        list(source)
    assert caught.value.column == column_name
    assert column(source, column_name) == [values[0]] * 20 + [values[1]]


@pytest.mark.usefixtures("small_blocks")
def test_integers_after_floats_are_floats(tmp_path):
    path = written(tmp_path, "t.jsonl", '{"a": 1.5}\n' * 20 + '{"a": 2}\n' * 20)
    assert column(read(path), "a") == [1.5] * 20 + [2.0] * 20


@pytest.mark.parametrize("blocks_of", [64, 4 << 20])
def test_a_column_of_two_types_is_named_with_its_line(tmp_path, monkeypatch, blocks_of):
    monkeypatch.setattr(blocks, "BLOCK", blocks_of)
    with pytest.raises(errors.BadFile, match=r"line \d+: column 'a' contains .* after"):
        list(read(written(tmp_path, "t.ndjson", '{"a": 1}\n' * 20 + '{"a": "x"}\n' * 20)))


def test_the_line_of_a_changed_type_is_right(tmp_path):
    with pytest.raises(errors.BadFile, match="line 3: column 'a' contains a text after a number"):
        list(read(written(tmp_path, "t.ndjson", '{"a": 1}\n\n{"a": "x"}\n')))


def test_kinds_make_numbers_of_lines(tmp_path):
    batch = read_text(tmp_path, '{"a": 1}\n', "t.ndjson", kinds={"a": "number"})
    assert batch.kind("a") == "float"


def test_a_text_where_kinds_want_a_number_is_named_with_its_line(tmp_path):
    with pytest.raises(errors.BadValue, match="line 2: column 'a' contains 'x', but must contain a number"):
        read_text(tmp_path, '{"a": 1}\n{"a": "x"}\n', "t.ndjson", kinds={"a": "number"})


def test_kinds_do_not_make_up_columns(tmp_path):
    batch = read_text(tmp_path, '{"a": 1}\n', "t.ndjson", kinds={"b": "number"})
    assert batch.names == ("a",)


@pytest.mark.usefixtures("small_blocks")
def test_numbers_that_kinds_demand_never_widen(tmp_path):
    path = written(tmp_path, "t.ndjson", '{"a": null}\n' * 20 + '{"a": 1}\n' * 20 + '{"a": 2.5}\n' * 20)
    assert column(read(path, kinds={"a": "number"}), "a") == [None] * 20 + [1.0] * 20 + [2.5] * 20


def test_a_column_of_texts_where_kinds_want_numbers_is_refused(tmp_path):
    with pytest.raises(errors.BadValue, match="line 2: column 'a' contains 'x', but must contain a number"):
        read_text(tmp_path, '{"a": null}\n{"a": "x"}\n', "t.ndjson", kinds={"a": "number"})


def test_nested_values_are_other(tmp_path):
    batch = read_text(tmp_path, '{"a": {"b": 1}, "c": ["x"], "d": [1]}\n', "t.json")
    assert [batch.kind(name) for name in batch.names] == ["other", "other", "list"]


# Files that are not what they should be.


def test_a_missing_file_is_named_with_one_that_is_near(tmp_path):
    written(tmp_path, "orders.csv", CSV)
    with pytest.raises(errors.BadFile, match=r"order\.csv: the file does not exist\. Did you mean '.*orders\.csv'"):
        read(tmp_path / "order.csv")


def test_a_missing_folder_is_a_missing_file():
    with pytest.raises(errors.BadFile, match="the file does not exist"):
        read("nowhere/at/all.csv")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    path = written(tmp_path, "t.csv", CSV)
    path.chmod(0)
    with pytest.raises(errors.BadFile, match="permission denied"):
        read(path)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("t.csv", b"", "it is empty"),
        ("t.csv", b"\n\n", "it is empty"),
        ("t.csv", b"PAR1xxxx", "it contains Parquet, not CSV"),
        ("t.csv", gzip.compress(b"a,b\n1,2\n", mtime=0), "it contains gzip, not CSV. Rename it to end in .gz"),
        ("t.csv", b"PK\x03\x04xx", "a zip archive or a spreadsheet"),
        ("t.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16 text"),
        ("t.csv", b"a,b\n1,\0\n", "it is not text \\(byte 6 is zero\\)"),
        ("t.csv", b"a,b\n" + b"1,2\n" * 300_000 + b"1,\0\n", "it is not text \\(byte 1,200,006 is zero\\)"),
        ("t.ndjson", b'{"a": 1}\n' * 300_000 + b'{"a":\0 1}\n', "it is not text \\(byte 2,700,005 is zero\\)"),
        ("t.csv.gz", b"a,b\n1,2\n", "not compressed as its name suggests"),
        ("t.csv.gz", gzip.compress(np.random.default_rng(0).bytes(9999), mtime=0)[:5000], "damaged"),
        ("t.parquet", b"a,b\n1,2\n", "it is not a Parquet file"),
        ("t.parquet", b"", "it is empty"),
        ("t.json", b'[{"a": 1}]', "It contains one JSON list"),
        ("t.ndjson", b"a,b\n1,2\n", "not newline-delimited JSON"),
        ("t.ndjson", b'{"a": 1}\n{"a": \n', "line 2: it is not one JSON object"),
        ("t.ndjson", b'{"a": 1, "a": 2}\n', "line 1: .*specified twice"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path, name, content, message):
    with pytest.raises(errors.BadFile, match=message):
        list(read(written(tmp_path, name, content)))


@pytest.mark.parametrize("content", ["1 2147483647:1\n-1 1:1\n", "# a note\n\n+1 qid:3 1:.5 # 1\n"])
@pytest.mark.parametrize("name", ["t.libsvm", "t.SVM", "t.svmlight.gz", "t.zip", "a9a", "a9a.t", "a9a.scale.gz"])
def test_libsvm_files_are_left_to_scikit_learn(tmp_path, name, content):
    path = written(tmp_path, name, gzip.compress(content.encode()) if name.endswith(".gz") else content)
    if name == "t.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("README", "Rows.")
            archive.writestr("t.libsvm", content)
    for data in (path, [path], [str(path)]):
        with pytest.raises(
            errors.BadFile, match=r"SVMlight.*scikit-learn: X, y = sklearn\.datasets\.load_svmlight_file"
        ):
            list(read(data))


def test_times_of_day_are_no_libsvm_file(tmp_path):
    assert read(written(tmp_path, "t.txt", "1 10:30\n2 11:15\n"), header=False).name.endswith("t.txt")


def test_a_damaged_parquet_file_is_refused(tmp_path):
    content = bytearray(saved_parquet(tmp_path).read_bytes())
    content[4:200] = os.urandom(196)
    with pytest.raises(errors.BadFile, match="damaged"):
        list(read(written(tmp_path, "t.parquet", bytes(content))))


@pytest.mark.parametrize("lines", ["\n", " \t\r\n", "# note\n", "%\n"])
def test_many_blank_lines_before_a_table_take_no_time(tmp_path, lines):
    assert next(iter(read(written(tmp_path, "table", lines * 10_000 + "a,b\n1,2\n"), skip_lines=10_000))).names == (
        "a",
        "b",
    )


def test_a_file_without_a_known_ending_is_known_by_its_content(tmp_path):
    assert read_text(tmp_path, CSV, "table").names == tuple(TABLE)
    assert read_text(tmp_path, '{"a": 1}', "lines").names == ("a",)
    path = written(tmp_path, "parquet", saved_parquet(tmp_path).read_bytes())
    assert column(read(path), "legs") == TABLE["legs"]


def test_a_source_names_its_file(tmp_path):
    path = written(tmp_path, "t.csv", CSV)
    assert read(path).name == str(path) and next(iter(read(path))).source == str(path)


# One row.

NAMES = ("length", "colour")


@pytest.mark.parametrize(
    "row",
    [
        {"length": 2.5, "colour": "red"},
        {"colour": "red", "length": 2.5, "other": [1, 2][0]},
        [2.5, "red"],
        (2.5, "red"),
        np.array([2.5, "red"], dtype=object),
        pd.Series({"length": 2.5, "colour": "red"}),
        pd.DataFrame({"colour": ["red"], "length": [2.5]}),
        pl.DataFrame({"colour": ["red"], "length": [2.5]}),
        pa.table({"colour": ["red"], "length": [2.5]}),
        {"colour": ["red"], "length": [2.5]},
        [{"colour": "red", "length": 2.5}],
        [[2.5, "red"]],
    ],
    ids=lambda row: type(row).__name__,
)
def test_a_row_may_come_in_any_form(row):
    batch = read_row(row, NAMES, True)
    assert batch.n_rows == 1 and np.concatenate(batch.numbers(["length"]), axis=None).tolist() == [2.5]
    assert values_of(batch.codes("colour")) == ["red"] and batch.kind("length") == "float"


def test_a_row_of_numbers_is_not_copied():
    row = np.array([1.0, 2.0])
    assert np.shares_memory(read_row(row, NAMES, False).numbers(NAMES)[0], row)


def test_a_series_without_names_is_read_by_position():
    assert read_row(pd.Series([1.0, 2.0]), ("x0", "x1"), False).numbers(["x1"])[0].tolist() == [[2.0]]


def test_what_a_row_does_not_name_is_missing():
    batch = read_row({"colour": None, "other": 1, "length": pd.NA}, NAMES, True)
    assert np.isnan(batch.numbers(["length"])[0]).all() and batch.codes("colour").codes.tolist() == [-1]


def test_a_row_that_names_no_column_is_refused():
    with pytest.raises(errors.UnknownColumn, match=r"no column 'length'. Did you mean 'lengths'"):
        read_row({"lengths": 1}, NAMES, True)


def test_a_row_of_another_length_is_refused():
    with pytest.raises(errors.LengthMismatch, match="columns= names 2 entries"):
        read_row([1, 2, 3], NAMES, True)


def test_a_text_is_no_number_in_a_row():
    with pytest.raises(errors.BadValue, match=r"row 0 of column 'length' contains '2.5', but must contain a number"):
        read_row({"length": "2.5"}, NAMES, True).numbers(["length"])


def test_several_rows_are_not_one():
    with pytest.raises(ValueError, match="one row is needed, but this table has 6"):
        read_row(pd.DataFrame(TABLE), ("length",), True)


def test_a_table_that_lacks_a_column_is_no_row():
    with pytest.raises(errors.UnknownColumn, match="no column 'colour'"):
        read_row(pd.DataFrame({"length": [1]}), NAMES, True)


# Labels.


def labels_of(labels):
    return values_of(encode(labels))


@pytest.mark.parametrize(
    "labels, expected",
    [
        (["b", "a", "b", None], ["b", "a", "b", None]),
        (("b", "a"), ["b", "a"]),
        ([1, 2, 1], [1, 2, 1]),
        ([True, False], [True, False]),
        ([1.5, float("nan")], [1.5, None]),
        ([1, None, 2], [1, None, 2]),
        ([1, "a", None], [1, "a", None]),
        (["a", 1], ["a", 1]),
        (np.array(["b", "aa", "b"]), ["b", "aa", "b"]),
        (np.array(["", ""]), ["", ""]),
        (np.array([b"b", b"a"]), ["b", "a"]),
        (np.array(["b", None], dtype=object), ["b", None]),
        (np.array([3, 1], dtype=np.uint8), [3, 1]),
        (np.array([3, 1], dtype=">i4"), [3, 1]),
        (np.arange(6)[::2], [0, 2, 4]),
        (np.array(["a", "b", "c"])[::-2], ["c", "a"]),
        (np.array([0.0, -0.0, np.nan, 2.5]), [0.0, 0.0, None, 2.5]),
        (np.array([0.5, np.nan], dtype=np.float32), [0.5, None]),
        (np.array([True, False]), [True, False]),
        ([np.int64(1), "a", np.str_("b")], [1, "a", "b"]),
        (pd.Series(["b", None, "b"]), ["b", None, "b"]),
        (pd.Series(["b", None], dtype=object), ["b", None]),
        (pd.Series([1, pd.NA], dtype="Int64"), [1, None]),
        (pd.Series([True, None], dtype=object), [True, None]),
        (pd.Index(["b", "a"]), ["b", "a"]),
        (pd.RangeIndex(3), [0, 1, 2]),
        (pd.Categorical(["b", None, "a"]), ["b", None, "a"]),
        (pd.Series(["b", "a"], dtype="category"), ["b", "a"]),
        (pl.Series(["b", None]), ["b", None]),
        (pl.Series([1, 2]), [1, 2]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ["b", "a"]),
        (pa.array(["b", None]), ["b", None]),
        (pa.array(["x", "b", None, "c"]).slice(1), ["b", None, "c"]),
        (pa.chunked_array([["b"], ["a", "b"]]), ["b", "a", "b"]),
        (iter(["b", "a"]), ["b", "a"]),
        ([], []),
        (np.array([]), []),
        ([None, None], [None, None]),
    ],
)
def test_labels_of_every_kind_are_encoded(labels, expected):
    found = labels_of(labels)
    assert found == expected and list(map(type, found)) == list(map(type, expected))


@pytest.mark.parametrize(
    "labels, message",
    [
        (["a", ["b"]], r"row 1 of column 'labels' contains \['b'\]"),
        (["a", None, {"b"}], "row 2 of column 'labels'"),
        ([(1, 2)], r"row 0 of column 'labels' contains \[1, 2\]"),
        (pa.array([[1]]), r"row 0 of column 'labels' contains \[1\]"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
        (pd.DataFrame({"a": [1]}), r"shape \(1, 1\)"),
        ({"a": 1}, "this is {'a': 1}"),
        ("text", "this is 'text'"),
        (5, "this is 5"),
        (np.array([1j]), "Complex data not supported"),
    ],
)
def test_what_is_no_label_is_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        encode(labels)


@given(st.lists(st.one_of(st.none(), st.text(max_size=3), st.integers(-5, 5), st.just(float("nan")))))
def test_encoding_agrees_with_a_dict(labels):
    numbering = {}
    for label in labels:
        if label is not None and label == label:
            numbering.setdefault(label, len(numbering))
    codes = encode(labels)
    assert values_of(codes) == [label if label in numbering else None for label in labels]
    assert set(codes.values) >= set(numbering)


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1)))
def test_integers_of_any_size_are_encoded(labels):
    assert labels_of(np.array(labels, dtype=np.int64)) == labels


@given(st.lists(st.floats()))
def test_floats_of_any_size_are_encoded(labels):
    assert labels_of(np.array(labels)) == [None if label != label else label for label in labels]


@given(st.lists(st.one_of(st.none(), st.text())))
def test_texts_through_arrow_objects_and_numpy_agree(labels):
    assert labels_of(pa.array(labels, pa.string())) == labels_of(labels) == labels


def test_codes_are_a_column():
    codes = encode(["a", None, "b", "a"])
    assert list(codes.cells()) == ["a", None, "b", "a"] and codes.kind() == "string"
    assert list(codes.slice(1, 3).cells()) == [None, "b"]
    assert list(codes.take(np.array([3, 1])).texts()) == ["a", None]


# What is imported. The package's own __init__ is left out: what it imports is not the readers' doing.

ALONE = f"""
import sys, types, numpy as np
package = sys.modules["banbury"] = types.ModuleType("banbury")
package.__path__ = [{os.path.dirname(errors.__file__)!r}]
from banbury.reading import encode, read, read_row
"""


def imported_by(script):
    found = "print(*[m for m in ('pyarrow', 'pandas', 'polars') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ALONE + script + found], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_numpy_does_not_import_pyarrow():
    script = (
        "[batch] = read(np.zeros((2, 2))); batch.numbers(batch.names); batch.codes('x0'); encode(['a', 'b'])\n"
        "[texts] = read(['a text', 'see a.csv']); texts.texts('text')\n"
        "read_row({'x0': 1}, batch.names, False)\n"
    )
    assert imported_by(script) == []


@pytest.mark.parametrize("route", ["csv", "parquet", "ndjson"])
def test_a_file_does_not_import_pandas(tmp_path, route):
    path = ROUTES[route](tmp_path)
    script = (
        f"for batch in read({str(path)!r}):\n"
        "    batch.numbers(['length', 'legs', 'tame'])\n"
        "    [(batch.codes(name), batch.kind(name), batch.head(name, 3)) for name in batch.names]\n"
    )
    assert imported_by(script) == ["pyarrow"]


def test_one_row_is_a_table_of_one_row() -> None:
    row = {"length": 1.5, "colour": "red", "gap": None}
    for table in (row, pd.Series(row)):
        [batch] = read(table)
        assert (batch.n_rows, batch.names) == (1, ("length", "colour", "gap"))
        assert (batch.head("length", 1), batch.head("colour", 1), batch.kind("gap")) == ([1.5], ["red"], "empty")


def test_spellings_of_missing_values_are_for_text_files_only() -> None:
    for table in ({"a": ["?", "b"]}, pd.DataFrame({"a": ["?", "b"]})):
        with pytest.raises(errors.BadSetting, match="missing_values= is only for text files"):
            read(table, missing_values=["?"])


def test_two_spellings_of_one_text_in_bytes_are_one_value(tmp_path: Path) -> None:
    path = tmp_path / "mixed.csv"
    path.write_bytes(b"a,y\n\xc3\xa9,p\n\xc3\xa9,p\n\xe9,q\nb,q\n")
    with pytest.warns(errors.BanburyWarning, match="UTF-8"):
        [batch] = read(str(path))
    codes = batch.codes("a")
    assert codes.values == ["é", "b"]
    assert codes.codes.tolist() == [0, 0, 0, 1]


def test_whole_numbers_beyond_a_double_stay_apart() -> None:
    codes = encode([2**53 + 1, 2**53, float("nan"), 2**63 + 1, 2**63])
    assert len(set(codes.values)) == 4


def test_a_quotation_mark_in_tab_separated_text_is_a_letter(tmp_path: Path) -> None:
    path = tmp_path / "messages.tsv"
    path.write_text('kind\ttext\nham\t"Hello there\nspam\tsay "free" now\nham\tbye"\n')
    [batch] = read(path)
    assert batch.head("text", 9) == ['"Hello there', 'say "free" now', 'bye"']
    path.write_text('"kind"\t"text"\nham\t"two\nlines"\n')
    [batch] = read(path)
    assert batch.head("text", 9) == ["two\nlines"]


@pytest.mark.parametrize("line", ['{"a":' * 10_000 + "1" + "}" * 10_000, '{"y":1,"a":' + "[" * 70 + "]" * 70 + "}"])
def test_a_line_of_json_that_is_nested_too_deep_is_named(tmp_path, line):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"a":1,"y":2}\n' + line + "\n")
    with pytest.raises(errors.BadFile, match=r"line 2: it is nested more than 64 levels deep"):
        list(read(str(path)))


def test_brackets_inside_of_texts_do_not_nest(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps({"a": '[{"' * 500, "y": "\\\\" + "[" * 100}) + "\n" + '{"a":"x","y":"y"}\n')
    assert [value for batch in read(str(path)) for value in batch.head("a", 5)] == ['[{"' * 500, "x"]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_few_blocks_are_read_ahead_and_no_more(tmp_path, monkeypatch, threads):
    monkeypatch.setenv("BANBURY_THREADS", str(threads))
    monkeypatch.setattr(blocks, "BLOCK", 1000)
    (tmp_path / "long.csv").write_text("a,b\n" + "".join(f"{row},x\n" for row in range(9000)), encoding="utf-8")
    cut = blocks.split_into_blocks
    n_cut = 0

    def counted(*arguments):
        nonlocal n_cut
        for block in cut(*arguments):
            n_cut += 1
            yield block

    monkeypatch.setattr(blocks, "split_into_blocks", counted)
    n_rows = 0
    for done, batch in enumerate(read(str(tmp_path / "long.csv")), 1):
        assert n_cut <= done + threads + 2
        n_rows += batch.n_rows
    assert n_rows == 9000
    assert done == n_cut > 50


ODD_ROWS = {
    "plain": "1.5,3,a,yes",
    "quoted": '1.5,3,"a",yes',
    "code": "007,3,a,yes",
    "windows": "1.5,3,a,yes\r",
    "new word": "1.5,3,ab,yes",
    "missing": " NA ,3, a ,no",
    "blank": "\n",
    "Latin-1": "1.5,3,ä,no",
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("odd", ODD_ROWS)
@pytest.mark.filterwarnings("ignore::banbury.errors.BanburyWarning")
def test_blocks_are_the_same_whoever_parses_and_counts_them(odd, line_end, tmp_path, monkeypatch):
    """Our parser leaves to Arrow's what is not plain; threads that parse also count and score."""
    monkeypatch.setattr(blocks, "BLOCK", 1 << 12)
    rows = [f"{i % 97 / 8 - 5},{i % 13},{'abc'[i % 3]},{'yes' if i % 7 else 'no'}" for i in range(3000)]
    rows[2000] = ODD_ROWS[odd]
    path = tmp_path / "rows.csv"
    path.write_bytes(line_end.join(["x,n,word,answer", *rows]).encode("latin-1"))
    tallies = [bb.count(path, "answer", threads=threads) for threads in (1, 2, 5)]
    answers = [bb.estimate(tally).posterior(path) for tally in tallies]
    monkeypatch.setattr(_core, "parse_fields", lambda *_: None)
    monkeypatch.setattr(ParserWork, "__call__", lambda *_: None)
    expected = bb.count(path, "answer")
    assert all(tally == expected for tally in tallies)
    assert all((answer == bb.estimate(expected).posterior(path)).all() for answer in answers)
