"""Files of numbers and words with gaps, read, learned and predicted, beside the pipeline that tutorials build."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

import banbury as bb
from benchmarks import synthetic
from benchmarks.measure import Figure, Peer, Setting, WrongAnswer, compare, same_classes
from benchmarks.synthetic import NUMERIC, WORDY

ROWS = 1_000_000
FAMILIES = dict.fromkeys(NUMERIC, "gaussian")  # as in the pipeline; numbers alone would be quantile trees


def figures(setting: Setting) -> Iterator[Figure]:
    rows = setting.rows(ROWS)
    table = synthetic.mixed_table(rows)
    model = bb.estimate(bb.count(table, target="side", features=FAMILIES))
    in_memory = model.predict(table)

    def check(ours: Any, theirs: Any) -> str:
        """The pipeline fills gaps, which ours skips; but a file must give the answers of the table in memory."""
        if not np.array_equal(ours, in_memory):
            raise WrongAnswer("the file and the table in memory give different classes")
        return same_classes(0.9)(ours, theirs)

    with tempfile.TemporaryDirectory() as folder:
        for kind, path in write(table, Path(folder)).items():
            data = f"{kind}, {rows:,} rows, {len(NUMERIC)} numbers, {len(WORDY)} words, {synthetic.MISSING:.0%} missing"
            peer = Peer("SimpleImputer, OrdinalEncoder, GaussianNB, CategoricalNB", lambda path=path: pipeline(path))
            yield compare(
                ("mixed", "fit and predict", data), lambda path=path: ours_on_file(path), check, setting, peer
            )


def write(table: pa.Table, folder: Path) -> dict[str, Path]:
    paths = {"Parquet": folder / "mixed.parquet", "CSV": folder / "mixed.csv"}
    pa_parquet.write_table(table, paths["Parquet"])
    pa_csv.write_csv(table, paths["CSV"], pa_csv.WriteOptions(quoting_style="none"))
    return paths


def ours_on_file(path: Path) -> Any:
    return bb.estimate(bb.count(path, target="side", features=FAMILIES)).predict(path)


def pipeline(path: Path) -> Any:
    """Gaps filled, words numbered, and two classifiers whose posteriors multiply; the file is read twice, as by ours."""
    from sklearn.impute import SimpleImputer
    from sklearn.naive_bayes import CategoricalNB, GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=1000)
    models = {
        "numbers": make_pipeline(SimpleImputer(), GaussianNB()),
        "words": make_pipeline(SimpleImputer(strategy="most_frequent"), encoder, CategoricalNB()),
    }
    columns = {"numbers": NUMERIC, "words": WORDY}
    frame = read(path)
    for name, model in models.items():
        model.fit(frame[columns[name]], frame["side"])
    frame = read(path)
    scores = sum(model.predict_log_proba(frame[columns[name]]) for name, model in models.items())
    prior = np.log(models["numbers"][-1].class_prior_)
    return models["numbers"].classes_[(scores - prior).argmax(axis=1)]


def read(path: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
