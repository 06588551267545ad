"""Exported SQL on Spark: tables, texts and labels; posteriors and answers are those of the model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.datasets import reuters

import banbury as bb
import saved_models

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed: make test-engines installs it")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or newer, and there is none", allow_module_level=True)

from pyspark.sql import SparkSession  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KINDS = ["mean"]  # categories, numbers, flags and texts


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("spark")
    build = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(folder / "warehouse"))
    build = build.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "2")
    session = build.config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}").getOrCreate()
    yield session
    session.stop()


def compare(model: Any, rows: dict[str, list[Any]], name: str, spark: Any, folder: Path) -> None:
    """Every posterior of the rows is that of the model to 1e-9, and every class is equal."""
    script = folder / f"{name}.sql"
    bb.export(model, script, dialect="spark", table="rows", key="id", name=name, reasons=True)
    lines = [
        dict(zip(rows, values, strict=True)) | {"id": k} for k, values in enumerate(zip(*rows.values(), strict=True))
    ]
    kinds = {str: "string", float: "double", int: "bigint", bool: "boolean"}
    present = {column: next(value for value in values if value is not None) for column, values in rows.items()}
    types = ", ".join(f"`{column}` {kinds[type(value)]}" for column, value in present.items())
    spark.createDataFrame(lines, f"{types}, id bigint").createOrReplaceTempView("rows")
    for statement in script.read_text("utf-8").split(";\n\n"):
        spark.sql(statement.strip().removesuffix(";").replace("CREATE VIEW", "CREATE TEMPORARY VIEW"))
    model = getattr(model, "model_", model)
    expected = model.posterior(rows)
    place = {str(class_name): k for k, class_name in enumerate(model._names)}
    posterior = np.full(expected.shape, np.nan)
    answers = np.zeros(expected.shape, dtype=np.bool_)
    for row in spark.sql(f"SELECT id, class, posterior, is_answer FROM {name}_posterior").collect():
        posterior[row["id"], place[row["class"]]] = row["posterior"]
        answers[row["id"], place[row["class"]]] = row["is_answer"]
    assert np.abs(posterior - expected).max() <= 1e-9
    if isinstance(model, bb.LabelModel):
        assert (answers == model.flags(expected)).all()
    else:
        assert [model._names[k] for k in answers.argmax(axis=1)] == list(model.predict(rows))


def columns_of(frame: Any) -> dict[str, list[Any]]:
    return {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame.columns}


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_on_spark_are_those_of_the_model(kind: str, spark: Any, tmp_path: Path) -> None:
    table, classes = saved_models.draw_table(150, 3), saved_models.draw_classes(150, 3, 3)
    model = saved_models.make(kind, table, classes)
    name = f"m{KINDS.index(kind)}"
    compare(model, {name: [None, *table[name][1:6]] for name in model.schema.columns}, name, spark, tmp_path)
    reasons = spark.sql(f"SELECT * FROM {name}_reasons").collect()
    assert {row["place"] for row in reasons} <= {1, 2, 3}
    assert reasons


def test_car_on_spark(car: Any, spark: Any, tmp_path: Path) -> None:
    model = bb.NaiveBayesClassifier().fit(car.drop(columns="class"), car["class"])
    compare(model, columns_of(car.drop(columns="class")), "car", spark, tmp_path)


def test_auto_mpg_with_missing_values_on_spark(auto_mpg: Any, spark: Any, tmp_path: Path) -> None:
    rows = columns_of(auto_mpg.drop(columns=["origin", "name"], errors="ignore"))
    model = bb.EvidenceClassifier(weigh=True).fit(rows, auto_mpg["origin"].astype(str).tolist())
    compare(model, rows, "auto", spark, tmp_path)


def test_adult_on_spark(adult_train: Any, adult_test: Any, spark: Any, tmp_path: Path) -> None:
    train = adult_train[:5_000]
    model = bb.EvidenceClassifier().fit(columns_of(train.drop(columns="income")), train["income"].tolist())
    assert model.model_.evidence_table().pairs.num_rows
    compare(model, columns_of(adult_test.drop(columns="income")[:1_000]), "adult", spark, tmp_path)


def test_texts_with_several_labels_on_spark(spark: Any, tmp_path: Path) -> None:
    texts = ["wheat and corn", "crude oil", "corn oil, été", "a quiet day", "Wheat, wheat!"] * 30
    topics = [["grain"], ["fuel"], ["fuel", "grain"], [], ["grain"]] * 30
    model = bb.MultiLabelClassifier(weigh=True).fit({"text": texts}, topics)
    compare(model, {"text": [*texts[:5], None, "never seen", "OIL_1 Ωmega oil"]}, "topics", spark, tmp_path)


def test_sms_beside_numbers_on_spark(unpacked: Callable[[str], Path], spark: Any, tmp_path: Path) -> None:
    (path,) = (path for path in unpacked("sms-spam").rglob("*") if path.is_file() and "read" not in path.name.lower())
    lines = [line.partition("\t") for line in path.read_text("utf-8").splitlines()]
    texts = [text for _, _, text in lines]
    rows: dict[str, list[Any]] = {"text": texts, "length": [len(text) for text in texts]}
    model = bb.EvidenceClassifier(weigh=True)
    model.fit({name: column[:4000] for name, column in rows.items()}, [label for label, _, _ in lines][:4000])
    compare(model, {name: column[4000:4500] for name, column in rows.items()}, "sms", spark, tmp_path)


def test_topics_of_reuters_on_spark(unpacked: Callable[[str], Path], spark: Any, tmp_path: Path) -> None:
    unpacked("reuters21578")  # or the test is skipped
    train, test = reuters()
    common = {"earn", "acq", "crude", "grain", "trade"}  # a table of Spark is written row by row
    topics = [sorted(common & set(named)) for named in train.topics[:150]]
    model = bb.MultiLabelClassifier().fit({"text": train.texts[:150]}, topics)
    compare(model, {"text": list(test.texts[:20])}, "reuters", spark, tmp_path)
