"""LIBSVM and SVMlight files: sparse rows with labels."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import banbury as bb
from banbury import errors
from banbury.cli import main
from banbury.readers import Sparse, blocks, read


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANBURY_PROGRESS", "0")


def counts(n_rows: int = 60, n_columns: int = 12, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n_rows) * 2 - 1
    dense = rng.poisson(0.4, (n_rows, n_columns)) + (np.arange(n_columns) < 3) * (labels > 0)[:, None]
    dense[0, -1] = 1
    return sparse.csr_matrix(dense.astype(float)), labels


def names(first: int, n: int) -> list[str]:
    return [str(first + j) for j in range(n)]


@pytest.mark.parametrize("zero_based", [True, False])
def test_a_file_counts_as_its_matrix(zero_based):
    matrix, labels = counts()
    dump_svmlight_file(matrix, labels, "t.libsvm", zero_based=zero_based, comment="made by a test")
    tally = bb.count("t.libsvm")
    assert tally == bb.count(matrix, labels, columns=names(1 - zero_based, 12))
    assert tally.classes == (-1, 1) and tally.schema.target == "class"
    model = bb.estimate(tally)
    assert np.array_equal(model.posterior("t.libsvm"), bb.estimate(bb.count(matrix, labels)).posterior(matrix))
    by_matrix = bb.cross_validate(matrix, labels, folds=3)
    assert bb.cross_validate("t.libsvm", folds=3).accuracy == by_matrix.accuracy
    assert bb.evaluate(model, "t.libsvm").accuracy.value == (model.predict("t.libsvm") == labels).mean()
    assert model.explain(next(iter(read("t.libsvm"))).cut(0, 1)).winner in (-1, 1)


def test_rows_stay_sparse_in_any_cut():
    matrix, labels = counts()
    dump_svmlight_file(matrix, labels, "t.libsvm", zero_based=False)
    [batch] = read("t.libsvm")
    assert isinstance(batch, Sparse) and batch.names == ("class", *names(1, 12))
    rows = np.array([5, 3, 3])
    for part, expected in (
        (batch.take(rows), rows),
        (batch.cut(2, 4), [2, 3]),
        (pickle.loads(pickle.dumps(batch)), range(60)),
    ):
        assert isinstance(part, Sparse)
        assert np.array_equal(part.matrix.toarray(), matrix.toarray()[list(expected)])
        assert list(part.column("class").cells()) == labels[list(expected)].tolist()
    both = np.column_stack(batch.numbers(["class", "2"]))
    assert np.array_equal(both, np.column_stack([labels, matrix.toarray()[:, 1]]))


def test_blocks_change_nothing(monkeypatch):
    matrix, labels = counts(200)
    dump_svmlight_file(matrix, labels, "t.libsvm", zero_based=False)
    whole = bb.count("t.libsvm")
    monkeypatch.setattr(blocks, "BLOCK", 256)
    assert len(list(read("t.libsvm"))) > 5 and bb.count("t.libsvm") == whole


def test_new_rows_may_lack_columns_or_have_others():
    Path("t.libsvm").write_text("1 1:2 3:1\n-1 2:4\n1 1:1 4:1\n-1 2:1 5:1\n")
    model = bb.estimate(bb.count("t.libsvm"))
    Path("few.libsvm").write_text("0 1:1\n")
    assert model.predict("few.libsvm").tolist() == [1]
    assert np.array_equal(model.posterior("few.libsvm"), model.posterior(sparse.csr_matrix([[1.0, 0, 0, 0, 0]])))
    Path("more.libsvm").write_text("0 2:1 7:3\n")
    with pytest.warns(errors.BanburyWarning, match="columns? '6'.*not counted"):
        assert model.predict("more.libsvm").tolist() == [-1]


def test_labels_are_whole_where_all_are():
    Path("t.svm").write_text("+1 1:1\n-1.0 2:1\n")
    assert bb.count("t.svm").classes == (-1, 1)
    Path("t.svm").write_text("0.5 1:1\n1.5 2:1\n")
    assert bb.count("t.svm").classes == (0.5, 1.5)


def test_a_file_is_known_by_what_it_begins_with():
    Path("a9a").write_text("# made by hand\n-1 3:1 11:1\n+1 5:1\n")
    Path("t.data").write_text("a,b\n1,2\n")
    with gzip.open("a9a.svmlight.gz", "wt") as file:
        file.write(Path("a9a").read_text())
    assert bb.count("a9a") == bb.count("a9a.svmlight.gz") and bb.count("a9a").n_rows == 2
    assert next(iter(read("t.data"))).names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:1\n1 qid:3 1:2\n", "line 2 has a qid.*Take the qids out"),
        ("1 1:1\n1,2 1:2\n", "line 2 has several labels"),
        ("1 1:1\n# note\none 1:2\n", "line 3 is not a label and pairs of index:value"),
        ("1 1:1\n1 a:2\n", "line 2 is not a label and pairs"),
        ("1 3:1 2:1\n", "line 1 has indices that do not rise"),
        ("1 1:1 1:2\n", "line 1 has indices that do not rise"),
        ("1 1:nan\n", "line 1 is not a label"),
        ("1 1:1e999\n", "not finite"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, message):
    Path("t.libsvm").write_text(text)
    with pytest.raises(errors.BadFile, match=f"t.libsvm.*{message}"):
        list(read("t.libsvm"))


def test_negative_values_are_named():
    Path("t.libsvm").write_text("1 1:-2\n-1 2:1\n")
    with pytest.raises(errors.BadValue, match=r"column '1'.*nothing occurs fewer than no times.*'gaussian'"):
        bb.count("t.libsvm")
    assert bb.count("t.libsvm", features="gaussian").n_rows == 2


ROWS = st.lists(
    st.tuples(st.integers(-2, 2), st.dictionaries(st.integers(1, 9), st.integers(1, 99), max_size=5)),
    min_size=1,
    max_size=9,
)


@given(ROWS)
def test_what_was_written_is_read_back(rows):
    Path("property.libsvm").write_text(
        "".join(f"{label} {' '.join(f'{j}:{value}' for j, value in sorted(cells.items()))}\n" for label, cells in rows)
    )
    [batch] = read("property.libsvm")
    width = max((j for _, cells in rows for j in cells), default=0)
    assert batch.names == ("class", *names(1, width)) and list(batch.column("class").cells()) == [
        label for label, _ in rows
    ]
    dense = [[cells.get(j + 1, 0) for j in range(width)] for _, cells in rows]
    assert batch.matrix.toarray().tolist() == dense  # type: ignore[attr-defined]


def test_the_command_line_reads_libsvm(capsys, monkeypatch):
    matrix, labels = counts(120)
    dump_svmlight_file(matrix, labels, "t.libsvm", zero_based=False)

    def said(line: str) -> tuple[int, str, str]:
        code = main(shlex.split(line))
        return (code, *capsys.readouterr())

    code, out, _ = said("fit t.libsvm -o m.banbury --json")
    assert code == 0 and json.loads(out)["rows"] == 120 and json.loads(out)["target"] == "class"
    for line in ("predict m.banbury t.libsvm", "evaluate m.banbury t.libsvm", "cross-validate t.libsvm --folds 2",
                 "explain m.banbury t.libsvm --row 2", "count t.libsvm -o t.banbury", "show m.banbury",
                 "count t.libsvm --like t.banbury -o u.banbury"):  # fmt: skip
        assert said(line)[0] == 0, line
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("t.libsvm").read_bytes())))
    assert len(said("predict m.banbury -")[1].splitlines()) == 120
