"""Exported SQL on Spark: tables, texts and labels; posteriors and answers are those of the model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_on_spark_are_those_of_the_model(kind: str, spark: Any, tmp_path: Path) -> None:
    table, classes = saved_models.draw_table(150, 3), saved_models.draw_classes(150, 3, 3)
    model = saved_models.make(kind, table, classes)
    if set(model.schema.columns) <= set(table):
        rows = {name: table[name][:6] for name in model.schema.columns}
        rows = {name: [None, *values[1:]] for name, values in rows.items()}
    else:
        rows = {name: saved_models.as_counts(table)[:6, k].tolist() for k, name in enumerate(model.schema.columns)}
    script = tmp_path / "score.sql"
    bb.export(model, script, dialect="spark", table="rows", key="id", name=f"m{KINDS.index(kind)}", reasons=True)
    lines = [
        dict(zip(rows, values, strict=True)) | {"id": k} for k, values in enumerate(zip(*rows.values(), strict=True))
    ]
    kinds = {str: "string", float: "double", int: "bigint", bool: "boolean"}
    types = ", ".join(f"`{name}` {kinds[type(values[-1])]}" for name, values in rows.items())
    spark.createDataFrame(lines, f"{types}, id bigint").createOrReplaceTempView("rows")
    for statement in script.read_text("utf-8").split(";\n\n"):
        statement = statement.strip().removesuffix(";").replace("CREATE VIEW", "CREATE TEMPORARY VIEW")
        spark.sql(statement)
    wanted = model.posterior(rows)
    place = {str(name): k for k, name in enumerate(model.names)}
    found = np.full(wanted.shape, np.nan)
    for row in spark.sql(f"SELECT id, class, posterior FROM m{KINDS.index(kind)}_posterior").collect():
        found[row["id"], place[row["class"]]] = row["posterior"]
    assert np.abs(found - wanted).max() <= 1e-9
    reasons = spark.sql(f"SELECT * FROM m{KINDS.index(kind)}_reasons").collect()
    assert all(row["place"] <= 3 for row in reasons)
