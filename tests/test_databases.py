"""Anything that speaks Arrow's stream protocol, and databases that do: DuckDB, ADBC."""

from __future__ import annotations

from typing import Any

import adbc_driver_sqlite.dbapi
import duckdb
import numpy as np
import pyarrow
import pytest

import banbury as bb
from banbury import errors
from banbury.reading import read

TABLE = pyarrow.table({"x": [1.5, 2.5, 3.5, 4.5] * 30, "w": list("abca") * 30, "y": list("pqqp") * 30})
EXPECTED = bb.count(TABLE, target="y")


class Speaks:
    """An object that has the method, and nothing else."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


class Frame(Speaks):
    """One that looks like a frame, and iterates over its names, as frames do."""

    columns = TABLE.column_names
    schema = None

    def __len__(self) -> int:
        return len(TABLE)

    def __iter__(self) -> Any:
        return iter(self.columns)


class Matrix(Speaks):
    """One that can make an array of itself, without names."""

    shape = (120, 3)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros((120, 3))


class Once(Speaks):
    """One that gives its stream but once."""

    given = False

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if self.given:
            raise RuntimeError("the result was fetched already")
        self.given = True
        return super().__arrow_c_stream__(requested_schema)


class Array:
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return TABLE.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("kind", [Speaks, Frame, Matrix, Once, Array])
def test_anything_that_speaks_arrow_is_a_table(kind):
    assert bb.count(kind(), target="y") == EXPECTED
    if kind is not Once:  # a list is taken for one that can be read again
        assert bb.count([kind(), kind()], target="y") == EXPECTED + EXPECTED
    assert bb.count((kind() for _ in range(2)), target="y") == EXPECTED + EXPECTED
    assert (
        bb.cross_validate(kind(), target="y", folds=3).accuracy
        == bb.cross_validate(TABLE, target="y", folds=3).accuracy
    )
    assert bb.estimate(EXPECTED).predict(kind()).tolist() == bb.estimate(EXPECTED).predict(TABLE).tolist()
    X, y = TABLE.drop_columns(["y"]), TABLE["y"].to_pylist()
    clf = bb.NaiveBayesClassifier().fit(X, y)
    assert clf.predict(X).shape == (120,)


def test_what_can_be_read_once_is_known_to_be():
    assert read(Speaks()).again and not read(Once()).again
    source = read(Speaks())
    assert [sum(batch.n_rows for batch in source) for _ in range(3)] == [120, 120, 120]


def test_readers_in_a_list_are_read_once_and_whole():
    def readers() -> list[Any]:
        return [
            pyarrow.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=30)) for _ in range(2)
        ]

    assert not read(readers()).again
    assert bb.count(readers(), target="y", schema=EXPECTED.schema) == EXPECTED + EXPECTED
    assert bb.cross_validate(readers(), target="y", folds=3).confusion.sum() == 240


def test_decimals_are_the_floats_of_their_names():
    decimals = pyarrow.array([38.9, 36.6, None, 0.1]).cast(pyarrow.decimal128(5, 1), safe=False)
    [batch] = read(pyarrow.table({"x": decimals}))
    assert np.array_equal(batch.numbers(["x"])[0], [38.9, 36.6, np.nan, 0.1], equal_nan=True)


def test_what_gives_no_stream_is_named():
    class Broken:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise RuntimeError("the connection is closed\nand more")

    class Column:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return TABLE["w"].__arrow_c_stream__(requested_schema)

    with pytest.raises(
        errors.BanburyError,
        match=r"this Broken does not provide a stream of batches .*RuntimeError: the connection is closed\)",
    ):
        read(Broken())
    with pytest.raises(errors.BadValue, match="this Column is a single column, but a table is needed"):
        read(Column())


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        connection.register("given", TABLE)
        connection.execute("create table rows as select * from given")
        yield connection


def test_a_relation_of_duckdb_is_a_table(database):
    relation = database.sql("select * from rows")
    assert bb.count(relation, target="y") == EXPECTED == bb.count(relation, target="y")
    found, expected = (bb.cross_validate(data, target="y", folds=3) for data in (relation, TABLE))
    assert found.accuracy == expected.accuracy
    model = bb.estimate(EXPECTED)
    assert model.predict(relation.filter("x > 2")).shape == (90,)
    assert bb.evaluate(model, relation).accuracy == bb.evaluate(model, TABLE).accuracy


@pytest.mark.parametrize("fetch", ["fetch_record_batch", "fetch_arrow", "fetch_arrow_table"])
def test_what_an_adbc_cursor_fetches_is_a_table(fetch):
    with adbc_driver_sqlite.dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("rows", TABLE)
        cursor.execute("select * from rows")
        assert bb.count(getattr(cursor, fetch)(), target="y") == EXPECTED
        cursor.execute("select * from rows")
        found = bb.cross_validate(getattr(cursor, fetch)(), target="y", folds=3)
        assert found.accuracy == bb.cross_validate(TABLE, target="y", folds=3).accuracy
        cursor.execute("select * from rows")
        with pytest.raises(TypeError, match=r"is a database cursor.*fetch_record_batch\(\)"):
            bb.count(cursor, target="y")
