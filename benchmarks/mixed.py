"""A file of numbers and words with gaps, read, learned and predicted: beside the usual pipeline, and one tuned by hand."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet
from numpy.typing import NDArray

import banbury as bb
from benchmarks.measure import Setting, Task, same_classes, same_numbers

ROWS, NUMBERS, WORDS = 1_000_000, 8, 8
VALUES = np.geomspace(2, 1000, WORDS).astype(np.int64)  # 2 .. 1,000
LABELS = np.array(["north", "east", "south", "west"])
MISSING = 0.02
NUMERIC, WORDY = [f"number{j}" for j in range(NUMBERS)], [f"word{j}" for j in range(WORDS)]


def table(rows: int) -> pa.Table:
    """Numbers to four decimals and words, leaning by class; 2 % of each column are missing."""
    rng = np.random.default_rng(5)
    classes = rng.integers(0, len(LABELS), rows)
    columns: dict[str, pa.Array] = {}
    for name in NUMERIC:
        centre = 0.5 * rng.standard_normal(len(LABELS))
        numbers = np.round(50.0 + 10.0 * (centre[classes] + rng.standard_normal(rows)), 4)
        columns[name] = pa.array(numbers, mask=rng.random(rows) < MISSING)
    for name, values in zip(WORDY, VALUES, strict=True):
        lean = np.exp(0.3 * rng.standard_normal(len(LABELS)))
        codes = (values * rng.random(rows) ** lean[classes]).astype(np.int32)
        known = pa.array([f"{name}-{k:04d}" for k in range(values)])
        gaps = pa.array(codes, mask=rng.random(rows) < MISSING)
        columns[name] = pa.DictionaryArray.from_arrays(gaps, known).cast(pa.string())
    return pa.table(columns | {"side": pa.array(LABELS[classes])})


def tasks(setting: Setting) -> Iterator[Task]:
    rows = setting.rows(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        whole = table(rows)
        parquet, delimited = Path(folder) / "mixed.parquet", Path(folder) / "mixed.csv"
        pa_parquet.write_table(whole, parquet)
        pa_csv.write_csv(whole, delimited, pa_csv.WriteOptions(quoting_style="none"))
        del whole
        for path in (parquet, delimited):
            kind = "Parquet" if path is parquet else "CSV"
            what = f"{kind}, {rows:,} rows, {NUMBERS} numbers, {WORDS} words, {MISSING:.0%} missing"
            yield from of_file(path, what)


def of_file(path: Path, what: str) -> Iterator[Task]:
    """Learning the file and predicting its rows, each time read from the start."""
    usual, tuned = Usual(path), Tuned(path)
    peers = (
        ("imputers and encoders", usual, 10.0, 0.9),
        ("tuned by hand", tuned, 2.5 if path.suffix == ".csv" else 2.0, 0.99),
    )
    for name, peer, aim, agreeing in peers:

        def agree(answers: Mapping[str, Any], least: float = agreeing) -> str:
            return same_classes(answers, at_least=least)

        yield Task("mixed", "fit and predict", what, lambda: ours(path), agree, peer.both, name, at_least=aim)
    model = fitted(path)
    once = functools.cache(tuned.fit)
    yield Task("mixed", "fit", what, lambda: fitted(path), same_models, tuned.fit, "tuned by hand")
    predict = lambda: model.predict(str(path))  # noqa: E731
    by_hand = lambda: tuned.predict(once())  # noqa: E731
    agree = lambda answers: same_classes(answers, at_least=0.99)  # noqa: E731
    yield Task("mixed", "predict", what, predict, agree, by_hand, "tuned by hand", prepare=once)


def fitted(path: Path) -> bb.Model:
    """The peers' model: bell curves, where numbers alone would be taken for quantile trees."""
    return bb.estimate(bb.count(str(path), target="side", features=dict.fromkeys(NUMERIC, "gaussian")))


def ours(path: Path) -> NDArray[Any]:
    return fitted(path).predict(str(path))


def same_models(answers: Mapping[str, Any]) -> str:
    return same_numbers({"ours": parameters(answers["ours"]), "peer": tuned_parameters(answers["peer"])}, within=1e-6)


def parameters(model: bb.Model) -> tuple[NDArray[np.float64], ...]:
    """Log prior, means, variances, and the log-probabilities of each column's words in order."""
    normal, words = model.parameters
    mean = normal.origin[:, None] + normal.unit[:, None] * normal.mean
    variance = 0.5 / normal.precision * normal.unit[:, None] ** 2
    cuts = zip(words.offsets[:-1], words.offsets[1:], strict=True)
    return model.log_prior, mean.T, variance.T, *(words.table[start:end] for start, end in cuts)


def tuned_parameters(model: Learned) -> tuple[NDArray[np.float64], ...]:
    order = np.argsort(model.classes)
    words = zip(model.values, model.tables, strict=True)
    tables = (logs[np.argsort(known.to_numpy(zero_copy_only=False))][:, order] for known, logs in words)
    return model.log_prior[order], model.means[order], model.variances[order], *tables


@dataclass(frozen=True)
class Usual:
    """The pipelines one finds in tutorials: gaps filled, words numbered, and two classifiers whose posteriors multiply."""

    path: Path

    def both(self) -> NDArray[Any]:
        X, y = self.read()
        models = [made.fit(X[names], y) for made, names in zip(self.pipelines(), (NUMERIC, WORDY), strict=True)]
        X, _ = self.read()
        scores = [model.predict_log_proba(X[names]) for model, names in zip(models, (NUMERIC, WORDY), strict=True)]
        prior = np.log(models[0][-1].class_prior_)
        return np.asarray(models[0].classes_[(scores[0] + scores[1] - prior).argmax(axis=1)])

    def read(self) -> tuple[Any, Any]:
        import pandas as pd

        frame = pd.read_parquet(self.path) if self.path.suffix == ".parquet" else pd.read_csv(self.path)
        return frame, frame.pop("side")

    def pipelines(self) -> tuple[Any, Any]:
        from sklearn.impute import SimpleImputer
        from sklearn.naive_bayes import CategoricalNB, GaussianNB
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OrdinalEncoder

        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=int(max(VALUES)))
        words = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder, CategoricalNB())
        return make_pipeline(SimpleImputer(), GaussianNB()), words


@dataclass(frozen=True)
class Learned:
    """The tuned model: log prior, and per column what it adds to it."""

    classes: NDArray[Any]
    log_prior: NDArray[np.float64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    values: list[Any]
    tables: list[NDArray[np.float64]]


@dataclass(frozen=True)
class Tuned:
    """The same model as ours, by someone who knows NumPy and Arrow: words as codes, labels as integers, sums by BLAS."""

    path: Path

    def both(self) -> NDArray[Any]:
        return self.predict(self.fit())

    def read(self) -> pa.Table:
        if self.path.suffix == ".parquet":
            return pa_parquet.read_table(self.path)
        return pa_csv.read_csv(self.path, convert_options=pa_csv.ConvertOptions(strings_can_be_null=True))

    def fit(self) -> Learned:
        read = self.read()
        y, classes = factorised(read["side"])
        n = np.bincount(y)
        indicators = (y == np.arange(len(classes))[:, None]).astype(np.float64)
        X = numbers(read)
        present = ~np.isnan(X)
        X[~present] = 0.0
        rows = indicators @ present
        means = indicators @ X / rows
        X *= X
        variances = indicators @ X / rows - means**2
        values, tables = [], []
        for name in WORDY:
            codes, known = factorised(read[name])
            size = len(known) + 1  # the last is for what is missing
            counts = np.bincount(codes * len(classes) + y, minlength=size * len(classes)).reshape(size, -1)[:-1] + 1.0
            logs = np.log(counts / counts.sum(axis=0))
            tables.append(np.vstack([logs, np.zeros(len(classes))]))
            values.append(known)
        return Learned(np.asarray(classes), np.log(n / n.sum()), means, variances, values, tables)

    def predict(self, model: Learned) -> NDArray[Any]:
        import pyarrow.compute as pc

        read = self.read()
        X = numbers(read)
        present = (~np.isnan(X)).astype(np.float64)
        X = np.nan_to_num(X, copy=False)
        precision = 0.5 / model.variances
        constant = -0.5 * np.log(2.0 * np.pi * model.variances) - precision * model.means**2
        scores = model.log_prior + present @ constant.T + X @ (2.0 * precision * model.means).T
        scores -= (X * X) @ precision.T
        for name, known, logs in zip(WORDY, model.values, model.tables, strict=True):
            codes, met = factorised(read[name])
            place = np.append(pc.index_in(met, value_set=known).fill_null(len(known)).to_numpy(), len(known))
            scores += np.take(logs[place], codes, axis=0)
        return model.classes[scores.argmax(axis=1)]


def factorised(column: pa.ChunkedArray) -> tuple[NDArray[Any], Any]:
    """Codes and values of a column of words; what is missing has the code after the last."""
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(), encoded.dictionary


def numbers(read: pa.Table) -> NDArray[np.float64]:
    """The numeric columns, rows × columns; what is missing is NaN."""
    return np.column_stack([read[name].to_numpy() for name in NUMERIC])
