"""banbury.tally.table: one way from any data to counting, in parts that can be counted elsewhere, started again where need be."""

import pickle
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import banbury as bb
from banbury.reading import blocks
from banbury.tally.table import Spooled, Table, open_source

N = 90


def frame():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, N)
    texts = [" ".join(rng.choice(["red", "green", "blue", f"w{label}"], 4)) for label in labels]
    return pd.DataFrame(
        {"x": rng.normal(labels), "word": [f"v{v}" for v in rng.integers(0, 4, N)], "text": texts, "y": labels}
    )


def elsewhere(table):
    return pickle.loads(pickle.dumps(table))


FAMILIES = {"x": "gaussian", "word": "categorical", "text": "text"}


@pytest.mark.parametrize("labels", ["column", "array", "soft"])
def test_parts_counted_elsewhere_add_up(labels):
    rows = frame()
    settings = (
        {"target": "y", "weights": np.arange(N) % 4 / 2} if labels == "column" else {"target": rows["y"].to_numpy()}
    )
    if labels == "soft":
        settings = {"weights": np.random.default_rng(1).random((N, 3))}
    if labels != "column":
        rows = rows.drop(columns="y")
    whole = bb.count(rows, features=FAMILIES, **settings)
    parts = list(Table.of(rows, batch_rows=17, schema=whole.schema, **settings).parts())
    assert len(parts) == 6
    assert reduce(add, [bb.count(elsewhere(part), schema=whole.schema) for part in parts]) == whole


def test_a_part_of_several_files_is_a_file_to_be_opened_there(tmp_path):
    paths = [tmp_path / f"{k}.csv" for k in range(3)]
    for k, path in enumerate(paths):
        frame()[k::3].to_csv(path, index=False)
    whole = bb.count(paths, target="y", features=FAMILIES)
    parts = list(Table.of(paths, "y", features=FAMILIES).parts())
    assert [part.data for part in parts] == paths
    assert all(len(pickle.dumps(part)) < 2_000 for part in parts)
    assert reduce(add, [bb.count(elsewhere(part), schema=whole.schema) for part in parts]) == whole


@pytest.mark.parametrize(
    "data", [np.arange(12.0).reshape(6, 2), sparse.csr_array(np.eye(6, 2)), ["one text", "two"] * 3]
)
def test_what_comes_once_is_kept_in_memory_or_in_a_file(data, monkeypatch):
    labels = list("ababab")
    whole = bb.count(data, labels)
    for size in (1 << 26, 10):
        monkeypatch.setattr("banbury.tally.table.BYTES_IN_MEMORY", size)
        source = Spooled(open_source(data, None, {}))
        assert bb.count(source, labels) == bb.count(source, labels) == whole


def test_names_of_files_from_an_iterator_are_kept(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("x,y\n" + "1,a\n2,b\n" * 600_000 + "word,a\n")
    with pytest.warns(bb.BanburyWarning, match="changes type after its first rows"):
        once = bb.count(iter([path]), target="y")
    with pytest.warns(bb.BanburyWarning, match="changes type after its first rows"):
        assert once == bb.count([path], target="y")


def test_one_place_starts_a_reading_again():
    source = Path(bb.__file__).parent
    places = [
        path.name for path in source.rglob("*.py") for line in path.read_text().splitlines() if "except Widened" in line
    ]
    assert places == ["table.py"]


# Whole numbers that turn out to be none


def pieces(last):
    whole = {"x": np.arange(200.0) % 4, "w": [1, 2] * 100, "y": [0, 1] * 100}
    return [pd.DataFrame(whole), pd.DataFrame({**whole, "x": [*range(199), last]})]


AS_FLOATS = "column 'x' changes type after its first rows: counting again from the start, reading it as floats"


def test_a_fraction_in_a_later_batch_makes_numbers_of_a_column():
    with pytest.warns(bb.errors.BanburyWarning, match=AS_FLOATS):
        tally = bb.count(pieces(0.5), target="y")
    assert [f.family.name for f in tally.schema.features] == ["quantile_tree", "categorical"]
    assert tally == bb.count(pieces(0.5), target="y", features={"x": "quantile_tree"})
    assert [f.family.name for f in bb.count(pieces(7), target="y").schema.features] == ["categorical", "categorical"]


def test_batches_that_were_read_before_can_be_read_as_something_else():
    table = Table.of(pieces(0.5), "y")
    held = Table.of(pieces(0.5)[0], "y", batch_rows=150)
    with pytest.warns(bb.errors.BanburyWarning, match=AS_FLOATS):
        first = bb.count(table)
    assert bb.count(table) == first  # the table knows by now what its rows have shown
    assert bb.count(held) == bb.count(pieces(0.5)[0], target="y")


def test_a_fraction_after_the_first_block_of_a_file_makes_numbers_of_a_column(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "HEAD", 1 << 10)
    monkeypatch.setattr(blocks, "BLOCK", 1 << 10)
    for name, first in ("whole.csv", "1"), ("floats.csv", "1.0"):
        lines = [f"{i % 2},{first if i % 3 else 2},{i % 5}" for i in range(3000)]
        (tmp_path / name).write_text("\n".join(["y,x,w", *lines, "1,2.5,3", ""]))
        with pytest.warns(bb.errors.BanburyWarning, match="reading it as floats"):
            tally = bb.count(tmp_path / name, target="y")
        assert [f.family.name for f in tally.schema.features] == ["quantile_tree", "categorical"]
        assert len(bb.cross_validate(tmp_path / name, "y", folds=3).truth) == 3001


def test_a_fraction_in_a_stream_that_cannot_be_read_again_is_explained():
    with pytest.raises(bb.errors.BadValue, match=r"'x' changes type .* features=\{'x': 'gaussian'\}"):
        bb.count(iter(pieces(0.5)), target="y")
    assert bb.count(iter(pieces(0.5)), target="y", features={"x": "gaussian"}).n_rows == 400


def test_a_fraction_under_a_schema_of_whole_numbers_is_explained():
    first, later = pieces(0.5)
    schema = bb.count(first, target="y").schema
    with pytest.raises(bb.errors.BadValue, match=r"row 199 of column 'x' contains 0.5.*features=\{'x': 'gaussian'\}"):
        bb.count(later, target="y", schema=schema)


def test_validation_dependence_and_trees_read_again_where_fractions_come_late():
    assert len(bb.cross_validate(pieces(0.5), "y", folds=3).truth) == 400
    assert bb.diagnose(pieces(0.5), "y") == bb.diagnose(pieces(0.5), "y", features={"x": "gaussian"})
    with pytest.warns(bb.BanburyWarning, match="counting again from the start"):
        tree = bb.BeliefNetwork.tan(pieces(0.5), "y", bins=3)
    assert [variable.cuts is not None for variable in tree._variables if variable.name in "xw"] == [True, False]


# Targets that look like measurements.


def measured(n: int, whole: bool = False) -> dict[str, list[object]]:
    """Rows whose target has n different numbers, each of them several times."""
    return {"x": ["a", "b"] * (2 * n), "y": [float(k) if whole else k + 0.25 for k in range(n)] * 4}


@pytest.mark.parametrize("count", [bb.count, lambda *a, **k: bb.cross_validate(*a, folds=2, **k), bb.BeliefNetwork.tan])
def test_many_fractions_are_doubted_as_classes(count):
    with pytest.warns(
        bb.BanburyWarning, match="248 different fractional numbers, and each one becomes a class"
    ) as told:
        count(measured(248), target="y")
    [message] = {str(each.message) for each in told}
    assert (
        "With more than 20 they look like measurements" in message
        and "Cut the target into a few classes" in message
        and "convert it to texts" in message
    )


@pytest.mark.parametrize("table", [measured(20), measured(248, whole=True)], ids=["few", "whole"])
def test_few_fractions_and_whole_numbers_are_classes(table):
    assert bb.count(table, target="y").n_rows == len(table["x"])  # and warnings are errors here


def test_texts_of_numbers_are_classes_on_purpose():
    table = measured(248)
    assert len(bb.count({**table, "y": list(map(str, table["y"]))}, target="y").classes) == 248
