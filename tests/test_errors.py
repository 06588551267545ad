"""Every error a user can meet: some public call raises it, and its text names the value, the place and the next step.

EVERY holds one call at least for every function of errors.py; a new one without a call here fails the last test. A name with
spaces is that of a sentence that stands where it is raised.
"""

from __future__ import annotations

import inspect
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import banbury as bb
import hostile
from banbury import datasets, demo, errors
from banbury.cli import main
from banbury.insight.dependence import diagnose
from banbury.quality import learning_curve
from banbury.quality.calibration import Calibration, calibrate

XY = {"x": [1.0, 2.0, 4.0], "y": ["a", "b", "a"]}
WORDS = {"x": ["u", "v", "u"], "y": ["a", "b", "a"]}


def counted(table: Any = XY, target: Any = "y", **settings: Any) -> bb.Tally:
    return bb.count(table, target, **settings)


def model(**settings: Any) -> bb.Model:
    return bb.estimate(counted(), **settings)


def two_columns() -> bb.Model:
    table = {"x": [1.0, 2.0, 4.0, 3.0], "y": [0.0, 1.0, 1.0, 5.0]}
    block = {("x", "y"): bb.Gaussian(covariance="tied")}
    return bb.estimate(bb.count(table, ["a", "b", "a", "b"], features=block))


def file(folder: Path, text: str | bytes, name: str = "rows.csv") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def folder(path: Path) -> None:
    """Two texts, each in the folder of its class."""
    for label, text in (("ham", "lunch at noon tomorrow"), ("spam", "cheap meds for you")):
        (path / label).mkdir()
        file(path / label, text, "a.txt")


class Restless:
    """Batches of which there is one more each time they are read."""

    n = 0

    def __iter__(self) -> Any:
        self.n += 1
        return iter([WORDS | {"z": WORDS["x"]}] * self.n)


def broken() -> Any:
    """A stream of batches that breaks off."""
    schema = pa.schema([("x", pa.float64()), ("y", pa.string())])

    def batches() -> Any:
        yield pa.record_batch([[1.0], ["a"]], schema=schema)
        raise pa.ArrowInvalid("the wire was cut")

    return pa.RecordBatchReader.from_batches(schema, batches())


def widening(folder: Path) -> str:
    """A file whose second megabytes are not what its first were."""
    return file(folder, "x,y\n" + "1,a\n2,b\n" * 600_000 + "word,a\n")


def too_many() -> bb.Tally:
    tally = counted(weights=[2**51] * 3)
    for _ in range(13):
        tally = tally + tally
    return tally


def many_words() -> bb.Tally:
    """More words times classes than a table could hold, each word in one class only."""
    names = [f"word{i}" for i in range(16_400)]
    return bb.count(names, target=names)


def plotted_without_matplotlib() -> Any:
    curve = learning_curve({"x": [1.0, 2.0, 4.0, 5.0] * 3, "y": ["a", "b"] * 6}, "y", repeats=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        return bb.plots.LearningCurveDisplay.from_learning_curve(curve)


def docstrings_that_were_stripped() -> Any:
    """As `python -OO` has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "_docstring", lambda _: "")
        return datasets.docstrings()


# The function of errors.py, a call that leads to it (given a folder), the class, and what the text must say.
def banbury(*arguments: Any) -> None:
    main([*map(str, arguments), "--debug"])


def kept(thing: Any, folder: Path, name: str = "kept") -> Path:
    bb.save(thing, folder / f"{name}.banbury")
    return folder / f"{name}.banbury"


def raised(problem: Exception) -> None:
    raise problem


def tree() -> bb.BeliefNetwork:
    return bb.BeliefNetwork.tan(TWO_WORDS, target="y")


TWO_WORDS = {"x": ["u", "v", "u"], "z": ["s", "t", "t"], "y": ["a", "b", "b"]}


def network() -> bb.BeliefNetwork:
    return bb.BeliefNetwork.count(TWO_WORDS, {"x": ["z"], "y": ["z"]})


def many_values(n_columns: int = 3) -> dict[str, list[str]]:
    """Columns in which no two rows agree, and two in which every other one does."""
    columns = {chr(ord("a") + k): [f"v{i}" for i in range(800)] for k in range(n_columns)}
    halves = ["yes", "no"] * 400
    return {**columns, "d" if n_columns == 3 else "t2": [f"w{i % 8}" for i in range(800)], "t": halves}


EVERY: list[tuple[str, Callable[[Path], Any], type[Exception], list[str]]] = [
    ("unknown_column", lambda _: counted(target="z"), errors.UnknownColumn, ["no column 'z'", "Columns: x, y"]),
    (
        "unknown_column",
        lambda d: counted(file(d, "length,y\n1,a\n2,b\n"), "lenght"),
        errors.UnknownColumn,
        ["'lenght'", "rows.csv", "Did you mean 'length'?"],
    ),
    (
        "reserved column",
        lambda _: counted(TWO_WORDS, features={("x", "y"): bb.Joint()}),
        errors.BadSetting,
        ["column 'y' is the target", "part of a block", "Remove it from features="],
    ),
    (
        "reserved column",
        lambda _: counted(TWO_WORDS | {"w": [1, 2, 1]}, weights="w", features={("x", "w"): bb.Joint()}),
        errors.BadSetting,
        ["column 'w' is named in weights=", "Remove it"],
    ),
    (
        "reserved column",
        lambda _: bb.cross_validate(TWO_WORDS, "y", groups="z", folds=2, features={("x", "z"): bb.Joint()}),
        errors.BadSetting,
        ["column 'z' is named in groups=", "Remove it"],
    ),
    (
        "column in block",
        lambda _: two_columns().likelihood("x", 18.0),
        errors.UnknownColumn,
        ["column 'x' has no distribution of its own", "in the block ('x', 'y')", "Name the block"],
    ),
    (
        "unknown_class",
        lambda _: model().explain({"x": 1.0}, against="c"),
        errors.UnknownClass,
        ["no class 'c'", "Classes: a, b"],
    ),
    (
        "unknown_value",
        lambda _: counted(WORDS, features={"x": bb.Categorical(values=["u", "w"])}),
        errors.UnknownValue,
        ["'x' contains 'v'", "Declared: u, w", "Declare this value too"],
    ),
    ("empty_data", lambda _: counted({"x": [], "y": []}), errors.EmptyData, ["nothing to count", "no rows"]),
    (
        "no_target",
        lambda _: counted({"x": [1.0], "y": [None]}),
        errors.EmptyData,
        ["is missing in all 1 rows", "'y'", "check the column's name"],
    ),
    (
        "no labels",
        lambda _: bb.SemiSupervisedClassifier().fit([[1.0], [2.0]], [None, None]),
        errors.EmptyData,
        ["none of the 2 rows", "Label a few rows", "bb.Mixture"],
    ),
    (
        "nothing to score",
        lambda _: bb.SemiSupervisedClassifier().fit([[1.0], [2.0]], ["a", "b"]).score([[3.0]], [None]),
        errors.EmptyData,
        ["none of the 1 rows", "Score rows whose class is known"],
    ),
    (
        "bad question",
        lambda _: bb.Density().fit({"age": [1.0, 2.0]}).probability({"age": "old"}),
        errors.BadValue,
        ["column 'age'", "'old'", "a number is needed"],
    ),
    (
        "density has no sum",
        lambda _: bb.Density().fit({"age": [1.0, 2.0]}).probability({"age": [1.0, 2.0]}),
        errors.BadSetting,
        ["column 'age'", "'gaussian'", "one number at a time"],
    ),
    (
        "empty class",
        lambda _: bb.SemiSupervisedClassifier().fit([[1.0], [2.0], [3.0]], ["a", "b", None], [0, 1, 1]),
        errors.EmptyData,
        ["class 'a' has no row", "weight above zero"],
    ),
    (
        "bad_value",
        lambda _: counted({"x": [1.0, np.inf], "y": ["a", "b"]}),
        errors.BadValue,
        ["row 1 of column 'x' is infinite (inf)", "Replace it"],
    ),
    (
        "bad_value",
        lambda _: counted({"x": [1e300], "y": ["a"]}, schema=counted().schema),
        errors.BadValue,
        ["row 0 of column 'x' is 1e+300", "2**400", "infer the schema"],
    ),
    (
        "bad_value",
        lambda _: counted({"x": [0, 2], "y": ["a", "b"]}, features="bernoulli"),
        errors.BadValue,
        ["row 1 of column 'x' is 2", "0 and 1", "threshold="],
    ),
    (
        "bad_value",
        lambda _: counted({"x": [0, -2], "y": ["a", "b"]}, features="poisson"),
        errors.BadValue,
        ["row 1 of column 'x' is -2", "non-negative whole numbers", "'gaussian'"],
    ),
    (
        "bad_value",
        lambda _: counted({"x": [0, 1e300], "y": ["a", "b"]}, features=bb.Histogram(start=0, width=1)),
        errors.BadValue,
        ["row 1 of column 'x' is 1e+300", "2**53 bins", "wider bins"],
    ),
    (
        "wrong_type",
        lambda _: counted(WORDS, features="gaussian"),
        errors.BadValue,
        ["row 0 of column 'x' contains 'u'", "must contain a number", "another family"],
    ),
    (
        "bad weight",
        lambda _: counted(weights=[1, -2, 1]),
        errors.BadWeight,
        ["row 1 is negative (-2.0)", "subtract their tally"],
    ),
    ("bad weight", lambda _: counted(weights=[1, np.nan, 1]), errors.BadWeight, ["row 1 is missing"]),
    ("bad weight", lambda _: counted(weights=[1, 1, np.inf]), errors.BadWeight, ["row 2 is infinite"]),
    ("bad weight", lambda _: counted(weights=[1, 1, 1e200]), errors.BadWeight, ["row 2 is too large"]),
    (
        "bad weight",
        lambda _: counted({"x": [1.0, 2.0]}, None, weights=[[0.5, 0.5], [1.0, -1.0]]),
        errors.BadWeight,
        ["row 1 is negative (-1.0)"],
    ),
    (
        "bad score",
        lambda _: calibrate("platt", [[0.0, -1.0], [0.0, np.nan]], [0, 1]),
        errors.BadValue,
        ["log_posteriors contains nan in row 1 for class number 1", "a number or −inf", "Remove these rows"],
    ),
    (
        "unknown class number",
        lambda _: calibrate("platt", [[0.0, -1.0]], [2]),
        errors.UnknownClass,
        ["row 0 has the number 2", "2 classes, numbered from 0", "Number the classes"],
    ),
    (
        "bad calibration",
        lambda _: Calibration.from_state("platt", {"n_classes": np.array([2])}),
        errors.BadValue,
        ["'slopes' of this platt calibration must be an array", "result of state()"],
    ),
    (
        "too many to leave out",
        lambda _: bb.cross_validate({"a": ["x"], "y": [0]}, "y", features="categorical", folds="loo", how="gibbs"),
        errors.BadSetting,
        ["folds='loo' has no closed formula", "with 1 rows", "Pass a number of folds"],
    ),
    (
        "no_test_rows",
        lambda _: bb.cross_validate(XY, "y", folds=[([0, 1], [2])], weights=[1, 1, 0]),
        errors.EmptyData,
        ["test row has a weight of zero", "a positive weight"],
    ),
    (
        "unknown_keyword",
        lambda _: bb.cross_validate(XY, "y", cv=5),
        errors.UnknownKeyword,
        ["unknown keyword 'cv'", "Did you mean 'folds'"],
    ),
    (
        "unknown_keyword",
        lambda _: bb.cross_validate(XY, "y", zz=5),
        errors.UnknownKeyword,
        ["unknown keyword 'zz'", "missing_values"],
    ),
    (
        "length_mismatch",
        lambda _: counted(weights=[1, 2]),
        errors.LengthMismatch,
        ["3 rows but 2 weights", "same length"],
    ),
    ("length_mismatch", lambda _: counted(target=["a"]), errors.LengthMismatch, ["3 rows but 1 labels"]),
    ("length_mismatch", lambda _: counted([XY, XY], target=["a"] * 7), errors.LengthMismatch, ["6 rows but 7 labels"]),
    (
        "duplicate column",
        lambda _: bb.count(np.zeros((2, 2)), ["a", "b"], columns=["p", "p"]),
        errors.DuplicateColumn,
        ["two columns are named 'p'", "Rename one"],
    ),
    ("duplicate column", lambda d: counted(file(d, "x,x,y\n1,2,a\n")), errors.DuplicateColumn, ["'x'", "rows.csv"]),
    (
        "empty_data",
        lambda d: counted(str(d), "class"),
        errors.EmptyData,
        ["it contains no files", "Use a folder with one sub-folder"],
    ),
    (
        "bad_file",
        lambda d: [os.mkfifo(d / "pipe"), counted(d / "pipe")],
        errors.BadFile,
        ["pipe", "not a regular file"],
    ),
    (
        "nothing_readable",
        lambda d: [os.symlink("nowhere", d / "one"), os.symlink("nowhere", d / "two"), bb.count(d, ["a", "b"])],
        errors.BadFile,
        ["none of the 2 files can be read", "one (No such file or directory)", "two (No such"],
    ),
    ("bad_file", lambda d: counted(file(d, "")), errors.BadFile, ["rows.csv", "it is empty"]),
    (
        "missing_file",
        lambda d: [file(d, "x,y\n1,a\n"), counted(d / "rosw.csv")],
        errors.BadFile,
        ["rosw.csv", "the file does not exist", "rows.csv"],
    ),
    (
        "missing_file",
        lambda _: bb.count("no file.", ["a"]),
        errors.BadFile,
        ["no file.", "To classify a text instead of a file"],
    ),
    (
        "unwritable_file",
        lambda d: bb.save(model(), d / "no/such.banbury"),
        errors.BadFile,
        ["cannot write", "such.banbury", "No such file"],
    ),
    (
        "cannot be saved",
        lambda d: bb.save(counted({"x": [1.0, 2.0], "y": [0, 10**5000]}), d / "it.banbury"),
        errors.BadFile,
        ["it.banbury", "cannot be saved", "Make it a text"],
    ),
    (
        "header too long",
        lambda d: bb.save(counted({"x": [1.0, 2.0], "y": ["a", "ü" * 15_000_000]}), d / "it.banbury"),
        errors.BadFile,
        ["it.banbury", "the limit is 100,000,000", "leave them out"],
    ),
    (
        "damaged_file",
        lambda d: [bb.save(model(), d / "it"), (d / "it").write_bytes((d / "it").read_bytes()[:-1]), bb.load(d / "it")],
        errors.DamagedFile,
        ["incomplete", "copy or save it again"],
    ),
    (
        "unknown format",
        lambda _: hostile.loaded(hostile.ATTACKS["format-999"][1](hostile.saved(hostile.model()))),
        errors.UnknownFormat,
        ["format 999", "reads format 1", "Install the version that wrote it"],
    ),
    (
        "unwritable_folder",
        lambda d: demo.main(d / file(d, "x\n") / "demo"),
        errors.BadFile,
        ["cannot write into the folder", "demo", "Not a directory", "writable folder"],
    ),
    (
        "no_docstrings",
        lambda _: docstrings_that_were_stripped(),
        errors.EmptyData,
        ["no docstrings in asyncio, collections", "-OO", "Run it without"],
    ),
    (
        "changed_data",
        lambda _: diagnose(Restless(), "y"),
        errors.BanburyError,
        ["had changed", "a second time", "a copy"],
    ),
    (
        "cannot restart",
        lambda d: counted(iter([{"x": [1], "y": ["a"]}, widening(d)])),
        errors.BadValue,
        ["column 'x'", "read twice", "Pass a list"],
    ),
    (
        "too many cells",
        lambda _: counted({"x": list(map(str, range(70_000))), "y": list(range(70_000))}, features="categorical"),
        errors.TooManyCells,
        ["'x' has 70,000 values", "70,000 classes", "features={'x': None}"],
    ),
    (
        "too many folds",
        lambda _: bb.cross_validate(
            {"x": list(map(str, range(30_000))), "y": [i % 100 for i in range(30_000)]},
            "y",
            features="categorical",
            folds=[i % 300 for i in range(30_000)],
        ),
        errors.BadSetting,
        ["'x' has too many values", "300 folds", "Use fewer folds"],
    ),
    (
        "cannot choose",
        lambda _: bb.NaiveBayesClassifier(alpha="auto").partial_fit([[1.0], [2.0]], [0, 1]),
        errors.BadSetting,
        ["alpha='auto'", "partial_fit sees only some", "Choose with fit"],
    ),
    ("not_a_tally", lambda _: counted() - 1, errors.NotATally, ["a tally and a int", "tally.count(rows)"]),
    (
        "forget_before_fading",
        lambda _: counted() - counted() * (1 / 3),
        errors.RoundedTally,
        ["the sums of the tally to be subtracted were rounded", "(tally - rows) * 0.9"],
    ),
    (
        "part_twice",
        lambda _: replace(counted(), parts=frozenset({"a"})) + replace(counted(), parts=frozenset({"a", "b"})),
        errors.PartTwice,
        ["part 'a' would be counted twice", "Add each part once"],
    ),
    ("too_many_rows", lambda _: too_many(), errors.BadSetting, ["2**63 rows", "scale the tallies down"]),
    (
        "unusable_column",
        lambda _: counted({"x": [Decimal("sNaN"), Decimal(1)], "y": ["a", "b"]}, features="gaussian"),
        errors.BadValue,
        ["column 'x'", "features={'x': None}"],
    ),
    (
        "continuous target",
        lambda _: counted({"x": np.arange(300.0), "y": np.sqrt(np.arange(2.0, 302.0) * 2 + 0.1)}),
        errors.BadValue,
        ["300 different fractional numbers in 300 rows", "Cut it into classes"],
    ),
    (
        "only_for_texts",
        lambda _: counted(pd.DataFrame(XY), missing_values=["?"]),
        errors.BadSetting,
        ["missing_values= is only for text files", "replace"],
    ),
    (
        "broken_row",
        lambda d: counted(file(d, "x,y\n1,a\n2,b,c\n")),
        errors.BadFile,
        ["rows.csv, line 3", "3 fields but the header has 2", "'2,b,c'", "delimiter="],
    ),
    (
        "wrong type in line",
        lambda d: bb.estimate(counted(file(d, "x,y\n1,a\n2,b\n"))).predict(file(d, "x\n1\ntwo\n", "more.csv")),
        errors.BadValue,
        ["more.csv, line 3", "'x' contains 'two'", "must contain a number", "missing_values="],
    ),
    (
        "bad line",
        lambda d: counted(file(d, '{"x": 1, "y": "a"}\n{"x": 2, "y"\n', "rows.ndjson")),
        errors.BadFile,
        ["rows.ndjson, line 2"],
    ),
    (
        "bad_setting",
        lambda _: model(alpha=-1),
        errors.BadSetting,
        ["alpha must be a finite number of at least 0", "Got -1 instead"],
    ),
    (
        "bad_setting",
        lambda _: counted(threads=0),
        errors.BadSetting,
        ["threads must be a whole number of at least 1", "Got 0"],
    ),
    ("bad_setting", lambda _: counted(target=None), errors.BadSetting, ["target must be a column's name"]),
    (
        "bad_setting",
        lambda _: counted(classes=["a"]),
        errors.BadSetting,
        ["classes must be omitted unless weights are soft labels"],
    ),
    (
        "bad_setting",
        lambda _: counted(target=["a", "b", "a"], weights=[[1, 0]] * 3),
        errors.BadSetting,
        ["target must be omitted"],
    ),
    (
        "bad_setting",
        lambda _: counted(weights=[[1, 0]] * 3, classes=["a"]),
        errors.BadSetting,
        ["one name for each of the 2 columns of weights"],
    ),
    ("bad_setting", lambda _: counted(weights=["a", "b", "c"]), errors.BadSetting, ["weights must be numbers"]),
    (
        "unknown_choice",
        lambda _: model(how="bayes"),
        errors.BadSetting,
        ["how must be one of 'mle'", "Got 'bayes' instead"],
    ),
    ("unknown_choice", lambda _: counted(features={"x": "gausian"}), errors.BadSetting, ["Did you mean 'gaussian'?"]),
    (
        "unknown_choice",
        lambda _: counted(missing="drop"),
        errors.BadSetting,
        ["missing must be one of 'skip', 'category'"],
    ),
    (
        "schema_mismatch",
        lambda _: counted() + counted(WORDS),
        errors.SchemaMismatch,
        ["'x' is gaussian", "categorical", "tally.to(schema)"],
    ),
    (
        "negative_count",
        lambda _: counted() - counted() * 2,
        errors.NegativeCount,
        ["-2 rows of class 'a'", "nothing was changed", "Subtract only what was added"],
    ),
    (
        "impossible_sums",
        lambda _: counted() - counted(schema=counted().schema).count({"x": [9.0], "y": ["a"]}),
        errors.NegativeCount,
        ["'x'", "class 'a'", "nothing was changed"],
    ),
    (
        "wrong_width",
        lambda _: bb.estimate(bb.count(np.eye(4), list("abab"))).predict(np.zeros((1, 3))),
        errors.WrongWidth,
        ["X has 3 features, but Model is expecting 4 features as input"],
    ),
    (
        "not_a_table",
        lambda _: bb.count(np.zeros(3), list("aba")),
        errors.BanburyError,
        ["Expected 2D array, got 1D array", "reshape(-1, 1)"],
    ),
    (
        "not_a_table",
        lambda _: bb.count(np.zeros((3, 1, 1)), list("aba")),
        errors.BanburyError,
        ["dim 3", "rows and columns"],
    ),
    (
        "sparse_data",
        lambda _: bb.count(sparse.eye(3, dtype=complex).tocsr(), list("aba")),
        TypeError,
        ["complex128", "float64"],
    ),
    (
        "empty table",
        lambda _: bb.Density().fit(np.zeros((3, 0))),
        errors.EmptyData,
        ["Found array with 0 feature(s) (shape=(3, 0))"],
    ),
    (
        "impossible condition",
        lambda _: (
            bb.Density(features={("a", "b", "c"): bb.Joint()}, how="mle")
            .fit({"a": [0, 1], "b": [0, 1], "c": [0, 1]})
            .probability({"c": 1}, given={"a": 0, "b": 1})
        ),
        errors.ImpossibleEvidence,
        ["a = 0, b = 1", "how='mean'"],
    ),
    (
        "too many combinations",
        lambda _: bb.count(
            {f"x{j}": list(range(200)) for j in range(9)},
            [0, 1] * 100,
            features={tuple(f"x{j}" for j in range(9)): bb.Joint()},
        ),
        errors.BanburyError,
        ["x0 … x8", "9 columns", "fewer columns"],
    ),
    ("unreadable_data", lambda _: bb.count(5, ["a"]), TypeError, ["from int", "a frame, a mapping of columns"]),
    (
        "no_column",
        lambda _: bb.count(XY, np.zeros((3, 2, 1))),
        errors.BanburyError,
        ["shape (3, 2, 1)", "Pass a 1-D array"],
    ),
    ("unknown_column", lambda _: bb.count(XY, 3), errors.UnknownColumn, ["no column '3'", "Columns: x, y"]),
    (
        "scalar for column",
        lambda _: counted({"x": 3, "y": ["a"]}),
        errors.BanburyError,
        ["column 'x' is 3", "a list that contains one mapping"],
    ),
    (
        "uneven columns",
        lambda _: counted({"x": [1.0, 2.0], "y": ["a"]}),
        errors.LengthMismatch,
        ["'x' has 2 rows", "'y' has 1", "the same length"],
    ),
    (
        "ragged rows",
        lambda _: bb.count([[1, 2], [3]], ["a", "b"]),
        errors.LengthMismatch,
        ["row 1 has 1 cells", "row 0 has 2"],
    ),
    (
        "wrong_number_of_names",
        lambda _: bb.count(np.zeros((2, 2)), ["a", "b"], columns=["p"]),
        errors.LengthMismatch,
        ["columns= names 1 entry, but the data have 2 columns"],
    ),
    (
        "names_unlike_line",
        lambda d: counted(file(d, "|1x3 a note\n1,2,a\n3,4,b\n"), columns=["x", "z", "y"]),
        errors.LengthMismatch,
        [
            "rows.csv, line 1: 2 fields separated by '|'",
            "there are 3 column names",
            "'|1x3 a note'",
            "delimiter=",
            "skip_lines=",
        ],
    ),
    (
        "names_unlike_line",
        lambda d: counted(file(d, "\na note\n1,2,a\n"), columns=["x", "z", "y"], delimiter=","),
        errors.LengthMismatch,
        ["rows.csv, line 2: 1 field, but there are 3 column names: 'a note'"],
    ),
    (
        "other_columns",
        lambda _: counted([XY, {"x": [1.0], "z": ["a"]}]),
        errors.SchemaMismatch,
        ["row 3", "lacks 'y' and adds 'z'", "columns of the first"],
    ),
    ("broken_stream", lambda _: counted(broken()), errors.BanburyError, ["ended early", "the wire was cut"]),
    ("not_one_row", lambda _: model().explain({"x": [1.0, 2.0]}), errors.BanburyError, ["2", "Pass a single row"]),
    (
        "too many words",
        lambda _: bb.estimate(many_words(), how="gibbs"),
        errors.BadSetting,
        ["column 'text' has 16,400 words", "16,400 classes", "max_words"],
    ),
    (
        "counted otherwise",
        lambda _: bb.estimate(bb.count(["one text", "two texts"], ["a", "b"]), features={"text": bb.Text(ngrams=2)}),
        errors.SchemaMismatch,
        ["'text' was counted with ngrams=(1, 1), not (1, 2)", "bb.count"],
    ),
    (
        "not numeric",
        lambda _: bb.plots.DecisionBoundaryDisplay.from_model(
            bb.estimate(counted(WORDS | {"z": [1.0, 2.0, 3.0]})), ["x", "z"]
        ),
        errors.BadSetting,
        ["column 'x' is of family categorical", "kernel_density, quantile_tree", "features="],
    ),
    (
        "text has no axis",
        lambda _: bb.plots.LikelihoodDisplay.from_model(bb.estimate(bb.count(["one text", "two"], ["a", "b"])), "text"),
        errors.BadSetting,
        ["column 'text' is text", "bb.plots.EvidenceDisplay", "features={'text': None}"],
    ),
    (
        "block has no axis",
        lambda _: bb.plots.NomogramDisplay.from_model(two_columns(), "a"),
        errors.BadSetting,
        ["block 'x + y' models 2 columns together as gaussian", "bb.plots.LikelihoodDisplay"],
    ),
    (
        "too many axes",
        lambda _: bb.plots.LikelihoodDisplay.from_model(two_columns(), "x + y", columns="z"),
        errors.BadSetting,
        ["block 'x + y' has 2 columns (x, y)", "columns='x'", "'z'"],
    ),
    (
        "evidence against the rest",
        lambda _: bb.plots.NomogramDisplay.from_model(bb.estimate(bb.count({"x": [1.0, 2.0, 3.0]}, list("abc"))), "a"),
        errors.BadSetting,
        ["of 3 classes 'a' cannot be compared with all others", "against= ('b', 'c')", "'a' and the rest"],
    ),
    (
        "only_a_tally",
        lambda d: banbury("predict", kept(counted(), d), file(d, "x,y\n1,a\n")),
        errors.BadFile,
        ["kept.banbury contains a tally", "banbury tally estimate"],
    ),
    (
        "only a network",
        lambda d: banbury("report", kept(tree(), d), file(d, "x,z,y\nu,s,a\n"), "-o", d / "page.html"),
        errors.BadFile,
        ["kept.banbury contains a belief network", "a model is needed", "--tan"],
    ),
    (
        "tally beside network",
        lambda d: banbury("tally", "merge", kept(tree(), d), kept(counted(), d, "other"), "-o", d / "both.banbury"),
        errors.SchemaMismatch,
        [
            "other.banbury contains a tally",
            "kept.banbury a network",
            "banbury tally count rows.csv --like",
            "kept.banbury -o",
        ],
    ),
    (
        "network to predict",
        lambda d: banbury("predict", kept(bb.BeliefNetwork.count(TWO_WORDS, {"z": ["x"]}), d), file(d, "x\nu\n")),
        errors.BadFile,
        ["contains a belief network", "a model is needed", "query the network in Python"],
    ),
    (
        "target needed",
        lambda d: banbury("fit", file(d, "x,y\n1,a\n")),
        errors.BadSetting,
        ["rows.csv", "--target y", "Columns: x, y"],
    ),
    (
        "texts without classes",
        lambda d: [file(d, "lunch at noon", "a.txt"), banbury("fit", d)],
        errors.BadSetting,
        ["the texts in", "have no class", "the folder that contains one folder"],
    ),
    (
        "counted unlike",
        lambda d: banbury(
            "tally", "merge", kept(counted(), d), kept(bb.count(["a text"], ["a"]), d, "b"), "-o", d / "c"
        ),
        errors.SchemaMismatch,
        ["only in the first [x], only in the second [text]", "--like", "kept.banbury"],
    ),
    (
        "nothing to explain",
        lambda d: banbury("explain", kept(model(), d)),
        errors.BadSetting,
        ["nothing to explain", "--text", "--row"],
    ),
    (
        "not one text",
        lambda d: banbury("explain", kept(model(), d), "--text", "some"),
        errors.BadSetting,
        ["uses x", "Give a file and --row"],
    ),
    (
        "no such row",
        lambda d: banbury("explain", kept(model(), d), file(d, "x,y\n1,a\n2,b\n"), "--row", 3),
        errors.BadSetting,
        ["row 3 does not exist", "from 1 to 2"],
    ),
    (
        "one class to report",
        lambda _: bb.report(model(), {"x": [1.0, 2.0], "y": ["a", "a"]}),
        errors.BadSetting,
        ["the data must have at least two classes", "'a'", "check the target"],
    ),
    (
        "bad_prior",
        lambda _: bb.Hypotheses(["a", "b"], prior=[0.5, 0.4]),
        errors.BadPrior,
        ["sum to 0.9", "must sum to 1", "Divide them by their sum"],
    ),
    (
        "unknown_hypothesis",
        lambda _: bb.Hypotheses(["rain", "dry"]).update(likelihoods={"rain": 0.1, "dri": 0.5}),
        errors.UnknownHypothesis,
        ["'dri'", "Did you mean 'dry'?", "Hypotheses: rain, dry"],
    ),
    (
        "unlike_hypotheses",
        lambda _: bb.Hypotheses(["a", "b"]).update(predictions=[[1, 0, 1], [1, 0, 0]], target=[True, False]),
        errors.LengthMismatch,
        ["predictions has the shape (2, 3)", "2 hypotheses", "Transpose it"],
    ),
    (
        "bad_number",
        lambda _: bb.Hypotheses(["a", "b"]).update(likelihoods=[[0.5, 0.5], [0.5, np.nan]]),
        errors.BadValue,
        ["likelihood of hypothesis 'b' for row 1 is nan", "at least 0", "Fix it"],
    ),
    (
        "bad_outcome",
        lambda _: bb.Hypotheses(1, likelihood="gaussian", noise=1.0).update(predictions=[[1.0]], target=["far"]),
        errors.BadValue,
        ["target of row 0 is 'far'", "a finite number", "likelihood="],
    ),
    (
        "unknown_prediction",
        lambda _: bb.Hypotheses({"coin": lambda row: "heads"}, labels=["+", "-"]).update([1], ["+"]),
        errors.UnknownLabel,
        ["hypothesis 'coin' predicts 'heads' for row 0", "Labels: '+', '-'", "labels=[...]"],
    ),
    (
        "unknown_label",
        lambda _: bb.Hypotheses(1, labels=["no", "yes"]).update(predictions=[["no"]], target=["yess"]),
        errors.UnknownLabel,
        ["target of row 0 is 'yess'", "Did you mean 'yes'?", "Labels: 'no', 'yes'"],
    ),
    (
        "impossible_evidence",
        lambda _: bb.Hypotheses(2).update(predictions=[[1, 0], [1, 0]], target=[True, False]),
        errors.ImpossibleEvidence,
        ["row 1 has probability zero", "(1 of 2)", "as it was before", "likelihood='label_noise'"],
    ),
    (
        "known_by_name_only",
        lambda _: bb.Hypotheses(["a", "b"]).bayes_optimal([1, 2]),
        errors.BadSetting,
        ["only names", "predictions="],
    ),
    (
        "too_many_hypotheses",
        lambda _: bb.conjunctions({f"c{i}": [0, 1] for i in range(20)}),
        errors.BadSetting,
        ["3,486,784,402 hypotheses", "10,000,000", "columns=", "conditions="],
    ),
    (
        "too_many_hypotheses",
        lambda _: bb.thresholds({"x": np.arange(5_000_001.0)}),
        errors.BadSetting,
        ["10,000,002 hypotheses", "columns=", "fewer cuts of each with cuts="],
    ),
    (
        "too_close",
        lambda _: bb.thresholds({"id": [2**53, 2**53 + 1]}),
        errors.BadValue,
        ["column 'id' contains 9007199254740992 and 9007199254740993", "53 bits", "columns=[...]"],
    ),
    (
        "numbers_needed",
        lambda _: bb.thresholds({"x": [1.0, 2.0], "sky": ["sunny", "rainy"]}),
        errors.BadValue,
        ["row 0 of column 'sky' contains 'sunny'", "columns=[...]"],
    ),
    (
        "cyclic structure",
        lambda _: bb.BeliefNetwork.count(TWO_WORDS, {"x": ["z"], "z": ["x"]}),
        errors.CyclicStructure,
        ["a cycle", "x → z", "remove one of these edges"],
    ),
    (
        "value_never_seen",
        lambda _: network().query("x", {"z": "tt"}),
        errors.UnknownValue,
        ["'z' has no value 'tt'", "Values: 's', 't'"],
    ),
    (
        "values left out",
        lambda _: network().query("x", {"z": {"s": 0.7}}),
        errors.BadSetting,
        ["the soft evidence of 'z'", "for 't'", "0 for impossible ones: 't': 0"],
    ),
    (
        "impossible_given",
        lambda _: network().estimate("mle").query("x", {"x": "u", "z": "s", "y": "b"}),
        errors.ImpossibleEvidence,
        ["x = 'u', z = 's', y = 'b'", "probability zero", "how='mean'"],
    ),
    (
        "table too large",
        lambda _: bb.BeliefNetwork.count(many_values(), {"d": ["a", "b", "c"]}, features="categorical"),
        errors.TooManyCells,
        ["'d' given its 3 parents", "4,096,000,000 cells", "800 of 'a'", "fewer parents"],
    ),
    (
        "pairs too large",
        lambda _: bb.BeliefNetwork.tan(many_values(20), "t", features="categorical"),
        errors.TooManyCells,
        ["pairs of columns", "cells", "800 values", "features={'a': None}"],
    ),
    (
        "elimination too large",
        lambda _: bb.BeliefNetwork.from_tables({f"n{k}": {0: 0.5, 1: 0.5} for k in range(28)}).query(
            [f"n{k}" for k in range(28)]
        ),
        errors.TooManyCells,
        ["268,435,456 cells", "67,108,864", "fewer variables at once"],
    ),
    (
        "not in a network",
        lambda _: bb.BeliefNetwork.count(XY, {"y": ["x"]}, features={"x": "gaussian"}),
        errors.BadSetting,
        ["column 'x' cannot be a node as gaussian", "bb.Histogram(bins=...)"],
    ),
    (
        "no block in a network",
        lambda _: bb.BeliefNetwork.count(XY, {"y": ["x"]}, features={("x", "y"): bb.Joint()}),
        errors.BadSetting,
        ["block 'x + y' cannot be a node", "features="],
    ),
    (
        "left out of network",
        lambda _: bb.BeliefNetwork.count({"x": [None, None], "y": ["a", "b"]}, {"y": ["x"]}),
        errors.BadSetting,
        ["'x' is named in parents=", "no value", "features="],
    ),
    (
        "network by hand",
        lambda _: bb.BeliefNetwork({"wet": ["rain"]}),
        errors.BadSetting,
        ["BeliefNetwork.count(data, parents)", "BeliefNetwork.from_tables(", "BeliefNetwork.tan("],
    ),
    (
        "left out of tree",
        lambda _: bb.BeliefNetwork.tan(TWO_WORDS | {"same": [1, 1, 1]}, target="y").query("same"),
        errors.UnknownColumn,
        ["column 'same' is not a node", "left out (one value only)", "features="],
    ),
    (
        "negative_rows",
        lambda _: network() - (network() + network()),
        errors.NegativeCount,
        ["-3 rows", "nothing was changed", "Subtract only what was added"],
    ),
    (
        "unlike_networks",
        lambda _: network() + bb.BeliefNetwork.count(TWO_WORDS, {"x": ["z"], "y": []}),
        errors.SchemaMismatch,
        ["the parents of 'y' are z in one", "network.count_more(rows)"],
    ),
    (
        "given not counted",
        lambda _: bb.BeliefNetwork.from_tables({"a": {0: 1.0}}).bic,
        errors.BadSetting,
        ["given rather than counted", "bb.BeliefNetwork.count"],
    ),
    (
        "bad_table",
        lambda _: bb.BeliefNetwork.from_tables({"a": {0: 0.5, 1: 0.6}}),
        errors.BadSetting,
        ["table of 'a'", "sum to 1.1"],
    ),
    (
        "empty node",
        lambda _: (network() - network()).query("x"),
        errors.EmptyData,
        ["a value of 'z'", "Count rows with a value"],
    ),
    (
        "no target in network",
        lambda _: network().predict({"x": ["u"]}),
        errors.BadSetting,
        ["of=", "has no target"],
    ),
    (
        "dense needed",
        lambda _: bb.TANClassifier().fit(sparse.eye(3).tocsr(), list("aba")),
        TypeError,
        ["Sparse data", ".toarray()"],
    ),
    (
        "missing library",
        lambda _: plotted_without_matplotlib(),
        errors.MissingLibrary,
        ["pictures need matplotlib", "pip install 'banbury[plots]'"],
    ),
]


@pytest.mark.parametrize("name, call, kind, words", EVERY, ids=[f"{i}-{entry[0]}" for i, entry in enumerate(EVERY)])
def test_errors_name_the_value_the_place_and_the_next_step(
    name: str, call: Callable[[Path], Any], kind: type[Exception], words: list[str], tmp_path: Path
) -> None:
    with pytest.raises(kind) as caught:
        call(tmp_path)
    assert type(caught.value) is kind
    text = str(caught.value)
    for word in words:
        assert word in text
    assert "!" not in text


WARNED: list[tuple[str, Callable[[Path], Any], list[str]]] = [
    (
        "too light",
        lambda _: bb.count({"x": ["u", "v"], "y": ["a", "b"]}, "y", weights=[1.0, 1e-30]),
        ["1 row weighs less than 5e-19", "Multiply all weights"],
    ),
    (
        "narrowed to a value",
        lambda _: bb.Mixture(2).fit({"hours": [*range(30), *[40.0] * 30]}),
        ["component", "hours = 40", "'histogram'", "NormalInverseGamma", "fewer components"],
    ),
    (
        "never counted",
        lambda _: bb.Density().fit({"fee": ["y", "n"]}).probability({"fee": "Y"}),
        ["column 'fee' never had the value 'Y'", "never had the value", "Did you mean 'y'?"],
    ),
    (
        "components emptied",
        lambda _: bb.Mixture(4, bb.Gaussian(prior=bb.NormalInverseGamma(nu=3)), starts=1).fit(
            [[0], [1], [3], [4], [90]]
        ),
        ["ended with less than half a row", "of 4", "n_components=", "starts=", "seed="],
    ),
    (
        "minus one is a class",
        lambda _: bb.SemiSupervisedClassifier().fit([[1.0], [2.0], [4.0]], [0, 1, -1]),
        ["1 row of label -1 is treated as a class", "pass unlabelled=-1"],
    ),
    (
        "loose covariance",
        lambda _: bb.estimate(
            bb.count(
                {"a": [1.0, 2, 4], "b": [2.0, 4, 8]}, [0, 0, 0], features={("a", "b"): bb.Gaussian(covariance="full")}
            )
        ),
        ["a + b", "3 rows", "tied"],
    ),
    (
        "combinations of one row",
        lambda _: bb.estimate(
            bb.count({"a": np.sqrt(np.arange(50.0)), "b": np.arange(50) % 2}, ["p", "q"] * 25, features=bb.Joint())
        ),
        ["'a + b'", "more than half of its rows", "bb.Histogram() or bb.KernelDensity()"],
    ),
    (
        "no complete row",
        lambda _: bb.estimate(
            bb.count(
                {"a": [1.0, None], "b": [None, 2.0]}, [0, 1], features={("a", "b"): bb.Gaussian(covariance="full")}
            )
        ),
        ["no row has all of a, b", "'a + b' cannot separate the classes", "Fill the gaps"],
    ),
    (
        "tested what it learned",
        lambda _: bb.cross_validate(XY, "y", folds=[([0, 1], [1, 2])]),
        ["tests rows that it also learns from"],
    ),
    (
        "all_impossible",
        lambda _: bb.estimate(counted({"x": ["u", "v"], "z": ["s", "t"], "y": ["a", "b"]}), how="mle").predict(
            {"x": ["u"], "z": ["t"]}
        ),
        ["1 rows", "how='mle'", "how='mean'"],
    ),
    (
        "not_calibrated",
        lambda _: bb.NaiveBayesClassifier(calibrate="platt").partial_fit([[1.0], [2.0]], [0, 1]),
        ["after partial_fit", "no longer calibrated", "Call fit again"],
    ),
    (
        "impossible rows",
        lambda _: bb.BeliefNetwork.tan({"x": ["u", "v"], "z": ["s", "t"], "y": ["a", "b"]}, "y", how="mle").predict(
            {"x": ["u"], "z": ["t"]}
        ),
        ["1 row of probability zero", "how='mle'", "without evidence", "how='mean'"],
    ),
    (
        "other columns than counted",
        lambda _: bb.estimate(counted(TWO_WORDS)).predict({"x": ["u"]}),
        ["'z'", "treated as missing"],
    ),
    ("header_of_numbers", lambda d: counted(file(d, "1,2,a\n3,4,b\n5,7,a\n"), "3"), ["rows.csv", "header=True"]),
    ("not_utf8", lambda d: counted(file(d, "x,y\nGr\xfcn,a\nrot,b\n".encode("latin-1"))), ["rows.csv", "UTF-8"]),
    (
        "unreadable_files",
        lambda d: [folder(d), os.symlink("nowhere", d / "ham" / "gone"), counted(d, "class")],
        ["1 of 3 files", "gone (No such file or directory)", "skipped", "count again"],
    ),
    (
        "broken_messages",
        lambda d: [folder(d), file(d / "ham", "Subject: lunch\nat noon", "b.eml"), counted(d, "class")],
        ["1 of 1 messages", "b.eml", "only their readable parts"],
    ),
    (
        "headers_without_mail",
        lambda d: [folder(d), counted(d, "class", headers="drop")],
        ["no file in", "headers= had no effect", "format='mail'"],
    ),
    (
        "files_beside_folders",
        lambda d: [folder(d), file(d, "x", "README"), counted(d, "class")],
        ["the 1 file beside", "ignored", "move it"],
    ),
    (
        "widened",
        lambda d: counted(file(d, "x,y\n" + f"1{' ' * 500},a\n2{' ' * 500},b\n" * 5_000 + "z,a\n")),
        ["column 'x' in", "rows.csv", "counting again from the start, reading it as strings"],
    ),
    ("nothing chosen", lambda _: counted({"x": [1, 1], "y": ["a", "b"]}), ["'x'", "features="]),
    (
        "no words left",
        lambda _: bb.estimate(bb.count(["one text", "two texts"], ["a", "b"]), features={"text": bb.Text(min_count=9)}),
        ["none of the 4 words of column 'text'", "min_count"],
    ),
]


@pytest.mark.parametrize("name, call, words", WARNED, ids=[entry[0] for entry in WARNED])
def test_warnings_name_the_place_and_the_next_step(
    name: str, call: Callable[[Path], Any], words: list[str], tmp_path: Path
) -> None:
    with pytest.warns(bb.BanburyWarning) as caught:
        call(tmp_path)
    for word in words:
        assert word in str(caught[0].message)


@pytest.mark.parametrize("name, call, words", WARNED, ids=[entry[0] for entry in WARNED])
def test_warnings_point_at_the_line_that_led_to_them(
    name: str, call: Callable[[Path], Any], words: list[str], tmp_path: Path
) -> None:
    with pytest.warns(bb.BanburyWarning) as caught:
        call(tmp_path)
    assert {each.filename for each in caught} == {__file__}


FLAT = {"a": [1.0, 2.0, 4.0, 8.0], "b": [2.0, 4.0, 8.0, 16.0]}
FLAT_BLOCK = {("a", "b"): bb.Gaussian(covariance="full")}
LABELS = ["p", "q", "p", "p"]
LED_TO: dict[str, Callable[[], Any]] = {
    "estimate": lambda: bb.estimate(bb.count(FLAT, LABELS, features=FLAT_BLOCK)),
    "density": lambda: bb.Density(features=FLAT_BLOCK).fit(FLAT),
    "density of fewer columns": lambda: bb.Density().fit(FLAT).score_samples({"a": [1.0]}),
    "mixture": lambda: bb.Mixture(1, features=FLAT_BLOCK).fit(FLAT),
    "classifier": lambda: bb.NaiveBayesClassifier(features=FLAT_BLOCK).fit(FLAT, LABELS).predict(FLAT),
    "semi-supervised": lambda: bb.SemiSupervisedClassifier(features=FLAT_BLOCK).fit(FLAT, LABELS),
    "cross-validation on threads": lambda: bb.cross_validate(FLAT, LABELS, folds=2, features=FLAT_BLOCK),
    "tuning": lambda: bb.tune(FLAT, ["p", "q"] * 2, folds=2, features=FLAT_BLOCK),
    "tree": lambda: (
        bb.TANClassifier(how="mle")
        .fit({"x": ["u", "v"], "z": ["s", "t"]}, ["a", "b"])
        .predict({"x": ["u"], "z": ["t"]})
    ),
}


@pytest.mark.parametrize("name", LED_TO)
def test_warnings_point_at_no_line_of_the_package(name: str) -> None:
    with pytest.warns(bb.BanburyWarning) as caught:
        LED_TO[name]()
    assert {each.filename for each in caught} == {__file__}


def test_every_function_of_errors_is_met_by_a_public_call() -> None:
    makers = {
        name
        for name, function in inspect.getmembers(errors, inspect.isfunction)
        if "->" in str(inspect.signature(function))
        and function.__module__ == errors.__name__
        and name
        not in (
            "listed",
            "did_you_mean",
            "shortened",
            "many",
            "where",
            "warn",
            "warn_at_callers_line",
            "collect_warnings",
            "header_hint",
            "require",
            "check_whole",
        )
        and not name.startswith("_")
    }
    tested = {entry[0] for entry in [*EVERY, *WARNED]}  # other names are of sentences that stand where they are raised
    assert makers == {name for name in tested if hasattr(errors, name)}


def test_one_base_class_catches_all_and_is_a_value_error() -> None:
    kinds = [
        k
        for _, k in inspect.getmembers(errors, inspect.isclass)
        if issubclass(k, Exception) and "Warning" not in k.__name__
    ]
    assert all(issubclass(kind, bb.BanburyError) for kind in kinds)
    assert issubclass(bb.BanburyError, ValueError)


def test_the_parts_of_a_message_are_attributes() -> None:
    with pytest.raises(errors.UnknownColumn) as column:
        counted(target="z")
    assert (column.value.column, column.value.known) == ("z", ["x", "y"])  # type: ignore[attr-defined]
    with pytest.raises(errors.BadValue) as value:
        counted({"x": [1.0, np.inf], "y": ["a", "b"]})
    found: Any = value.value
    assert (found.what, found.value, found.column, found.row) == ("infinite", np.inf, "x", 1)


def test_errors_survive_pickling() -> None:
    with pytest.raises(errors.NegativeCount) as caught:
        counted() - counted() * 2
    again: Any = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is errors.NegativeCount
    assert str(again) == str(caught.value)
    assert again.label == "a"


@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.parametrize("given", ["abc", "0", "-1", "1.5"])
def test_a_wrong_number_of_threads_is_refused_wherever_it_is_read(
    given: str, threads: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = np.array(["u", "v"] * 40_000, dtype=object)
    monkeypatch.setenv("BANBURY_THREADS", given)
    if threads is None:
        with pytest.raises(errors.BadSetting, match="BANBURY_THREADS must be a whole number of at least 1"):
            counted({"x": words, "y": words})
    else:  # what is said in the call needs no other word
        assert counted({"x": words, "y": words}, threads=threads).n_rows == 80_000


# Bad input changes nothing


BAD: dict[str, tuple[Any, Any, Any]] = {
    "infinity": ({"x": [1.0, np.inf], "w": ["u", "v"]}, ["a", "b"], None),
    "a word": ({"x": [1.0, "two"], "w": ["u", "v"]}, ["a", "b"], None),
    "too few labels": ({"x": [1.0, 2.0], "w": ["u", "v"]}, ["a"], None),
    "a negative weight": ({"x": [1.0, 2.0], "w": ["u", "v"]}, ["a", "b"], [1.0, -1.0]),
    "a column less": ({"x": [1.0, 2.0]}, ["a", "b"], None),
    "uneven columns": ({"x": [1.0, 2.0], "w": ["u"]}, ["a", "b"], None),
    "no labels": ({"x": [1.0, 2.0], "w": ["u", "v"]}, [None, None], None),
}
GOOD = {"x": [1.0, 2.0, 5.0], "w": ["u", "v", "u"]}


@pytest.mark.parametrize("name", BAD)
def test_partial_fit_after_an_error_is_as_if_it_had_not_been_called(name: str) -> None:
    X, y, weights = BAD[name]
    more = {"x": [7.0], "w": ["z"]}
    plain = bb.NaiveBayesClassifier().partial_fit(GOOD, list("aba")).partial_fit(more, ["c"])
    tried = bb.NaiveBayesClassifier().partial_fit(GOOD, list("aba"))
    for method in (tried.partial_fit, tried.forget):
        with pytest.raises(bb.BanburyError):
            method(X, y, sample_weight=weights)
    tried.partial_fit(more, ["c"])
    assert tried.tally_ == plain.tally_
    assert tried.classes_.tolist() == plain.classes_.tolist()
    assert tried.predict_proba(GOOD).tolist() == plain.predict_proba(GOOD).tolist()


@pytest.mark.parametrize("name", BAD)
def test_a_first_partial_fit_that_fails_leaves_the_estimator_unfitted(name: str) -> None:
    X, y, weights = BAD[name]
    if name in ("a word", "a column less"):
        return  # a first batch may hold these
    tried = bb.NaiveBayesClassifier()
    with pytest.raises(bb.BanburyError):
        tried.partial_fit(X, y, sample_weight=weights)
    tried.partial_fit(GOOD, list("aba"))
    plain = bb.NaiveBayesClassifier().fit(GOOD, list("aba"))
    assert tried.tally_ == plain.tally_
    assert tried.classes_.tolist() == plain.classes_.tolist()


@pytest.mark.parametrize("name", BAD)
def test_counting_on_with_bad_rows_leaves_the_tally(name: str) -> None:
    X, y, weights = BAD[name]
    tally = bb.count(GOOD, list("aba"))
    before = tally.digest()
    with pytest.raises(bb.BanburyError):
        tally + tally.count(X, y, weights=weights)
    assert tally.digest() == before


def test_forgetting_rows_that_were_never_learned_changes_nothing() -> None:
    clf = bb.NaiveBayesClassifier().fit(GOOD, list("aba"))
    before = clf.tally_, clf.predict_proba(GOOD).tolist()
    for X, y in (
        ({"x": [1.0], "w": ["never"]}, ["a"]),
        ({"x": [99.0], "w": ["u"]}, ["a"]),
        (GOOD, list("bbb")),
        (GOOD, list("aba")),
    ):
        with pytest.raises(bb.BanburyError):
            clf.forget(X, y)
        assert clf.tally_ is before[0]
        assert clf.predict_proba(GOOD).tolist() == before[1]
