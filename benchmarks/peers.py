"""Learners of other libraries, for `python -m benchmarks.accuracy`: those that are installed (`pip install --group peers`).

Tables: scikit-bayes (MixedNB; AODE, averaged one-dependence estimators) and pyAgrum (TAN, numbers in ten bins of equal shares).
They accept no words, or only words they have seen. So words are numbered, a missing value is a word, an unknown word becomes
the most frequent one, and missing numbers become the median.

Texts: fastText and Vowpal Wabbit, words and pairs of words, a learning rate of 1 as in fastText's tutorial, ten passes.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

BINS = 10
PASSES = 10


def choose_installed(learners: dict[str, tuple[str, Callable[[Any], Any]]]) -> dict[str, Callable[[Any], Any]]:
    """Those whose library is there."""
    return {name: make for name, (library, make) in learners.items() if find_spec(library) is not None}


class Numbered:
    """Turns a table into numbers: words by their rank, the most frequent first."""

    def __init__(self, rows: Any) -> None:
        numeric = set(rows.select_dtypes("number"))
        self.ranks = {name: self._rank_words(rows[name]) for name in rows if name not in numeric}
        self.medians = {name: float(rows[name].median()) for name in numeric}
        self.word_columns = [number for number, name in enumerate(rows) if name not in numeric]

    @staticmethod
    def _rank_words(column: Any) -> dict[Any, int]:
        return {word: rank for rank, word in enumerate(column.astype(object).fillna("?").value_counts().index)}

    def __call__(self, rows: Any) -> Any:
        columns = []
        for name in rows:
            if name in self.ranks:
                ranks = self.ranks[name]
                columns.append([float(ranks.get(word, 0)) for word in rows[name].astype(object).fillna("?")])
            else:
                columns.append(rows[name].astype(float).fillna(self.medians[name]).to_numpy())
        return np.column_stack(columns)


class ScikitBayes:
    """A learner of scikit-bayes: numbers are Gaussian, words are categories."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fit(self, rows: Any, labels: Any) -> ScikitBayes:
        import skbn

        self.numbered = Numbered(rows)
        words = self.numbered.word_columns
        numbers = [number for number in range(len(rows.columns)) if number not in words]
        make = getattr(skbn, self.kind)
        learner = make(categorical_features=words, gaussian_features=numbers, bernoulli_features=[])
        self.model = learner.fit(self.numbered(rows), labels)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, rows: Any) -> Any:
        return self.model.predict_proba(self.numbered(rows))


class PyAgrum:
    """pyAgrum's tree-augmented naive Bayes, smoothed by one row."""

    def fit(self, rows: Any, labels: Any) -> PyAgrum:
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        shares = np.linspace(0, 1, BINS + 1)[1:-1]
        self.cuts = {name: np.unique(rows[name].quantile(shares)) for name in rows.select_dtypes("number")}
        self.numbered = Numbered(self._bin_columns(rows))
        settings = {"learningMethod": "TAN", "prior": "Smoothing", "priorWeight": 1}
        self.model = BNClassifier(type_processor=DiscreteTypeProcessor("NoDiscretization", None), **settings)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self.model.fit(self._words(rows), codes.astype(str))
        self.order = [int(code) for code in self.model.classes_]
        return self

    def _bin_columns(self, rows: Any) -> Any:
        bins = {name: np.searchsorted(cuts, rows[name]).astype(str) for name, cuts in self.cuts.items()}
        return rows.assign(**bins)

    def _words(self, rows: Any) -> Any:
        import pandas as pd

        codes = self.numbered(self._bin_columns(rows)).astype(int).astype(str)
        return pd.DataFrame(codes, columns=[f"c{number}" for number in range(codes.shape[1])])

    def predict_proba(self, rows: Any) -> Any:
        answer = np.asarray(self.model.predict_proba(self._words(rows)), dtype=np.float64)
        posteriors = np.empty_like(answer)
        posteriors[:, self.order] = answer
        return posteriors


class FastText:
    """fastText on one thread, so that it comes out the same every time."""

    def fit(self, texts: Sequence[str], labels: Any) -> FastText:
        import fasttext

        self.classes_, codes = np.unique(labels, return_inverse=True)
        settings = {
            "lr": 1.0,
            "epoch": PASSES,
            "wordNgrams": 2,
            "loss": "softmax",
            "thread": 1,
            "seed": 0,
            "verbose": 0,
        }
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "texts.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"__label__{c} {plain_line(text)}\n" for text, c in zip(texts, codes, strict=True))
            self.model = fasttext.train_supervised(path, **settings)
        return self

    def predict_proba(self, texts: Sequence[str]) -> Any:
        posteriors = np.zeros((len(texts), len(self.classes_)))
        for row, text in enumerate(texts):
            for share, label in self.model.f.predict(f"{plain_line(text)}\n", len(self.classes_), 0.0, "strict"):
                posteriors[row, int(label.removeprefix("__label__"))] = share
        posteriors[~posteriors.any(axis=1)] = 1.0  # texts without a known word
        return posteriors / posteriors.sum(axis=1, keepdims=True)


class VowpalWabbit:
    """Vowpal Wabbit, a logistic loss of each class against the rest, in shuffled passes."""

    def fit(self, texts: Sequence[str], labels: Any) -> VowpalWabbit:
        import vowpalwabbit

        self.classes_, codes = np.unique(labels, return_inverse=True)
        options = f"--oaa {len(self.classes_)} --probabilities --loss_function logistic --ngram 2 -b 24 --quiet"
        self.model = vowpalwabbit.Workspace(options)
        lines = [f"{c + 1} | {plain_line(text)}" for text, c in zip(texts, codes, strict=True)]
        examples = [self.model.parse(line) for line in lines]
        rng = np.random.default_rng(0)
        for _ in range(PASSES):
            for row in rng.permutation(len(lines)):
                self.model.learn(examples[row])
        for example in examples:
            self.model.finish_example(example)
        return self

    def predict_proba(self, texts: Sequence[str]) -> Any:
        shares = np.array([self.model.predict(f"| {plain_line(text)}") for text in texts], dtype=np.float64)
        posteriors = np.clip(shares, 1e-12, 1.0)
        return posteriors / posteriors.sum(axis=1, keepdims=True)


def plain_line(text: str) -> str:
    """The words of a text, without characters that mean something to a file format."""
    return " ".join(re.findall(r"\w+", text.lower()))


TABLES = choose_installed(
    {
        "MixedNB": ("skbn", lambda rows: ScikitBayes("MixedNB")),
        "AODE": ("skbn", lambda rows: ScikitBayes("AnDE")),
        "pyAgrum TAN": ("pyagrum", lambda rows: PyAgrum()),
    }
)
TEXTS = choose_installed(
    {
        "fastText": ("fasttext", lambda rows: FastText()),
        "Vowpal Wabbit": ("vowpalwabbit", lambda rows: VowpalWabbit()),
    }
)
