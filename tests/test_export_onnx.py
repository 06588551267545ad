"""ONNX in onnxruntime: probabilities are the model's to 1e-6, and the class wherever the two best differ by more."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import banbury as bb
import saved_models
from evidence_reader import posterior
from test_evidence_table import EXTREME, KINDS, extreme, model_of_rare_values, rows_like

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install banbury[onnx]")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install banbury[onnx]")


def fed(model: Any, rows: dict[str, list[Any]]) -> dict[str, Any]:
    """The inputs of rows, by the columns of the model's tables."""
    tables = model.evidence_table()
    n = len(next(iter(rows.values())))
    inputs: dict[str, Any] = {}
    for column in tables.columns.to_pylist():
        name = column["name"]
        if column["kind"] == "text":
            found = [bb.tokens(text or "", **column["reading"]) for text in rows[name]]
            width = max(1, *map(len, found))
            inputs[name] = np.array([[*words, *[""] * (width - len(words))] for words in found], dtype=object)
        elif column["kind"] == "counts":
            inputs[name] = np.array(list(rows.values()), dtype=np.float64).T
        elif column["kind"] == "string":
            inputs[name] = np.array([[value or ""] for value in rows[name]], dtype=object)
        else:
            inputs[name] = np.array([[np.nan if value is None else value] for value in rows[name]], dtype=np.float64)
        assert len(inputs[name]) == n
    return inputs


def compare(model: Any, rows: dict[str, list[Any]], folder: Path) -> None:
    path = folder / "model.onnx"
    path.unlink(missing_ok=True)
    bb.export(model, path)
    onnx.checker.check_model(onnx.load(path))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    label, shares = session.run(None, fed(model, rows))
    wanted = model.posterior(rows)
    assert np.abs(shares - wanted).max() <= 1e-6
    if isinstance(model, bb.LabelModel):
        near = np.abs(wanted - model.thresholds.probabilities) <= 1e-6
        assert ((label == model.flags(wanted)) | near).all()
    else:
        two = np.sort(wanted, axis=1)[:, -2:]
        apart = np.ones(len(wanted), dtype=np.bool_) if wanted.shape[1] < 2 else two[:, 1] - two[:, 0] > 1e-6
        same = np.array([str(a) == str(b) for a, b in zip(label, model.predict(rows), strict=True)])
        assert (same | ~apart).all()


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_those_of_the_model(kind: str, tmp_path: Path) -> None:
    table, classes = saved_models.draw_table(150, 3), saved_models.draw_classes(150, 3, 3)
    model = saved_models.make(kind, table, classes)
    rows = rows_like(model, table)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(model, rows, tmp_path)
        if any(column["kind"] == "counts" for column in model.evidence_table().columns.to_pylist()):
            return  # a block in which nothing is missing
        columns = [name for name in rows if not isinstance(rows[name][0], str) or name == "word"]
        compare(model, {**rows, **{name: [None, *rows[name][1:]] for name in columns if len(rows) > 1}}, tmp_path)


@pytest.mark.parametrize("kind", EXTREME)
def test_numbers_that_are_extreme(kind: str, tmp_path: Path) -> None:
    compare(*extreme(kind), tmp_path)


def test_a_number_next_to_a_cut_stays_in_its_stretch(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=400)
    model = bb.estimate(bb.count({"x": numbers}, [int(x > 0.3) for x in numbers], features={"x": "quantile_tree"}))
    cuts = np.array(model.cuts("x"))
    beside = np.concatenate([cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)])
    compare(model, {"x": beside.tolist()}, tmp_path)


def test_entries_that_are_left_out_say_nothing(tmp_path: Path) -> None:
    model, rows = model_of_rare_values()
    bb.export(model, tmp_path / "model.onnx", min_rows=5)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    shares = session.run(None, fed(model, rows))[1]
    assert np.abs(shares - posterior(model.evidence_table(min_rows=5), rows)).max() <= 1e-6


def test_the_length_of_texts_is_refused(tmp_path: Path) -> None:
    model = bb.estimate(bb.count({"t": ["a good one", "bad"]}, ["x", "y"], features={"t": bb.Text(length=True)}))
    with pytest.raises(bb.BanburyError, match="length"):
        bb.export(model, tmp_path / "model.onnx")


def test_a_pipeline_is_converted_by_skl2onnx() -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed: pip install banbury[onnx]")
    from banbury.estimators.onnx import register_converters

    register_converters()
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(300, 3))
    classes = np.where(numbers[:, 0] + numbers[:, 1] > 0, "up", "down")
    flags = np.stack([numbers[:, 0] > 0, numbers[:, 1] + numbers[:, 2] > 0], axis=1).astype(np.int64)
    single = (bb.GaussianNB(), bb.NaiveBayesClassifier(), bb.EvidenceClassifier(weigh=True))
    for classifier in (*single, bb.MultiLabelClassifier()):
        target = classes if classifier in single else flags
        pipeline = make_pipeline(StandardScaler(), classifier).fit(numbers, target)
        kinds = [("X", skl2onnx.common.data_types.DoubleTensorType([None, 3]))]
        converted = skl2onnx.convert_sklearn(pipeline, initial_types=kinds, options={"zipmap": False})
        session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
        label, shares = session.run(None, {"X": numbers})
        assert np.abs(shares - pipeline.predict_proba(numbers)).max() <= 1e-6
        assert (label == pipeline.predict(numbers)).all()


def test_flags_that_no_row_has_keep_their_column() -> None:
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed: pip install banbury[onnx]")
    from banbury.estimators.onnx import register_converters

    register_converters()
    numbers = np.random.default_rng(1).normal(size=(300, 2))
    flags = np.stack([numbers[:, 0] > 0, numbers[:, 0] > 9, numbers[:, 1] > 0], axis=1).astype(np.int64)
    classifier = bb.MultiLabelClassifier().fit(numbers, flags)
    kinds = [("X", skl2onnx.common.data_types.DoubleTensorType([None, 2]))]
    converted = skl2onnx.convert_sklearn(classifier, initial_types=kinds, options={"zipmap": False})
    session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    label, shares = session.run(None, {"X": numbers})
    assert np.abs(shares - classifier.predict_proba(numbers)).max() <= 1e-6
    assert (label == classifier.predict(numbers)).all()
    assert not label[:, 1].any()


def test_one_label_per_row_is_refused(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=(60, 1))
    classifier = bb.MultiLabelClassifier().fit(numbers, np.where(numbers[:, 0] > 0, "up", "down"))
    with pytest.raises(bb.BanburyError, match="one label per row"):
        bb.export(classifier, tmp_path / "model.onnx")


def test_at_least_one_label_is_refused(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=(60, 1))
    classifier = bb.MultiLabelClassifier(at_least_one=True).fit(numbers, (numbers > [[0.0, 1.0]]).astype(np.int64))
    with pytest.raises(bb.BanburyError, match="at_least_one"):
        bb.export(classifier, tmp_path / "model.onnx")


@pytest.mark.parametrize("name", ["label", "probabilities", "banbury/0/x", ""])
def test_columns_with_names_of_the_graph_are_refused(name: str, tmp_path: Path) -> None:
    model = bb.estimate(bb.count({name: [1.0, 2.0] * 5}, ["x", "y"] * 5))
    with pytest.raises(bb.BanburyError, match="rename the column"):
        bb.export(model, tmp_path / "model.onnx")


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_blocks_of_occurrences_above_a_threshold(threshold: float, tmp_path: Path) -> None:
    counts = np.random.default_rng(1).poisson(1.0, (40, 5)).astype(np.float64)
    model = bb.BernoulliNB(binarize=threshold).fit(counts, [0, 1, 1, 0] * 10).model_
    rows = counts[:9] - [[0.5], [0.0], [2.0]] * 3
    compare(model, dict(zip(model.schema.columns, rows.T.tolist(), strict=True)), tmp_path)


def test_infinite_numbers_are_missing(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).normal(size=60)
    rows = {"x": numbers.tolist(), "y": numbers.tolist()}
    model = bb.estimate(bb.count(rows, ["a", "b", "c"] * 20, features={"x": "gaussian", "y": "histogram"}))
    bb.export(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    odd = np.array([[np.inf], [-np.inf], [np.nan]])
    shares = session.run(None, {"x": odd, "y": odd})[1]
    assert np.abs(shares - model.posterior({"x": [None], "y": [None]})).max() <= 1e-6
