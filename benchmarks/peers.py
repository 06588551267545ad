"""Learners of other libraries, for `python -m benchmarks.accuracy`: those that are installed (`pip install --group peers`).

Tables: scikit-bayes (MixedNB; AODE, averaged one-dependence estimators) and pyAgrum (TAN, numbers in ten bins of equal shares).
They take no words as they come, or none that they have not seen, so words are numbered, what is missing is a word, and a word
that was not learned is the most frequent one; missing numbers are the median.

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

SEED = 0
BINS = 10
PASSES = 10
WORD = re.compile(r"\w+")


def installed(learners: dict[str, tuple[str, Callable[[Any], Any]]]) -> dict[str, Callable[[Any], Any]]:
    """Those whose library is there."""
    return {name: made for name, (library, made) in learners.items() if find_spec(library) is not None}


class Numbered:
    """A table as numbers: words by their rank, the most frequent first; and which columns hold words."""

    def __init__(self, rows: Any) -> None:
        numeric = set(rows.select_dtypes("number"))
        self.words = {name: self._ranks(rows[name]) for name in rows if name not in numeric}
        self.medians = {name: float(rows[name].median()) for name in numeric}
        self.places = [place for place, name in enumerate(rows) if name not in numeric]

    @staticmethod
    def _ranks(column: Any) -> dict[Any, int]:
        return {word: rank for rank, word in enumerate(column.astype(object).fillna("?").value_counts().index)}

    def __call__(self, rows: Any) -> Any:
        columns = []
        for name in rows:
            if name in self.words:
                ranks = self.words[name]
                columns.append([float(ranks.get(word, 0)) for word in rows[name].astype(object).fillna("?")])
            else:
                columns.append(rows[name].astype(float).fillna(self.medians[name]).to_numpy())
        return np.column_stack(columns)


class OfScikitBayes:
    """A learner of scikit-bayes: numbers are Gaussian, words are categories."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def fit(self, rows: Any, labels: Any) -> OfScikitBayes:
        import skbn

        self.numbered = Numbered(rows)
        numbers = [place for place in range(len(rows.columns)) if place not in self.numbered.places]
        told = {"categorical_features": self.numbered.places, "gaussian_features": numbers, "bernoulli_features": []}
        self.model = getattr(skbn, self.kind)(**told).fit(self.numbered(rows), labels)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, rows: Any) -> Any:
        return self.model.predict_proba(self.numbered(rows))


class OfPyAgrum:
    """pyAgrum's tree-augmented naive Bayes, smoothed by one row."""

    def fit(self, rows: Any, labels: Any) -> OfPyAgrum:
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        shares = np.linspace(0, 1, BINS + 1)[1:-1]
        self.cuts = {name: np.unique(rows[name].quantile(shares)) for name in rows.select_dtypes("number")}
        self.numbered = Numbered(self._cut(rows))
        settings = {"learningMethod": "TAN", "prior": "Smoothing", "priorWeight": 1}
        self.model = BNClassifier(type_processor=DiscreteTypeProcessor("NoDiscretization", None), **settings)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        self.model.fit(self._words(rows), codes.astype(str))
        self.order = [int(code) for code in self.model.classes_]
        return self

    def _cut(self, rows: Any) -> Any:
        bins = {name: np.searchsorted(cuts, rows[name]).astype(str) for name, cuts in self.cuts.items()}
        return rows.assign(**bins)

    def _words(self, rows: Any) -> Any:
        import pandas as pd

        codes = self.numbered(self._cut(rows)).astype(int).astype(str)
        return pd.DataFrame(codes, columns=[f"c{place}" for place in range(codes.shape[1])])

    def predict_proba(self, rows: Any) -> Any:
        found = np.asarray(self.model.predict_proba(self._words(rows)), dtype=np.float64)
        shares = np.empty_like(found)
        shares[:, self.order] = found
        return shares


class FastText:
    """fastText: words and pairs of them, ten passes; one thread, so that it comes out the same."""

    def fit(self, texts: Sequence[str], labels: Any) -> FastText:
        import fasttext

        self.classes_, codes = np.unique(labels, return_inverse=True)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "texts.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"__label__{c} {_line(text)}\n" for text, c in zip(texts, codes, strict=True))
            settings = {
                "lr": 1.0,
                "epoch": PASSES,
                "wordNgrams": 2,
                "loss": "softmax",
                "thread": 1,
                "seed": SEED,
                "verbose": 0,
            }
            self.model = fasttext.train_supervised(path, **settings)
        return self

    def predict_proba(self, texts: Sequence[str]) -> Any:
        shares = np.zeros((len(texts), len(self.classes_)))
        for row, text in enumerate(texts):
            for share, label in self.model.f.predict(f"{_line(text)}\n", len(self.classes_), 0.0, "strict"):
                shares[row, int(label.removeprefix("__label__"))] = share
        empty = ~shares.any(axis=1)  # no word that it knows
        shares[empty] = 1.0 / len(self.classes_)
        return shares / shares.sum(axis=1, keepdims=True)


class VowpalWabbit:
    """Vowpal Wabbit, a logistic loss of each class against the rest: words and pairs of them, ten shuffled passes."""

    def fit(self, texts: Sequence[str], labels: Any) -> VowpalWabbit:
        import vowpalwabbit

        self.classes_, codes = np.unique(labels, return_inverse=True)
        options = f"--oaa {len(self.classes_)} --probabilities --loss_function logistic --ngram 2 -b 24 --quiet"
        self.model = vowpalwabbit.Workspace(options)
        lines, rng = (
            [f"{c + 1} | {_line(text)}" for text, c in zip(texts, codes, strict=True)],
            np.random.default_rng(SEED),
        )
        examples = [self.model.parse(line) for line in lines]
        for _ in range(PASSES):
            for row in rng.permutation(len(lines)):
                self.model.learn(examples[row])
        for example in examples:
            self.model.finish_example(example)
        return self

    def predict_proba(self, texts: Sequence[str]) -> Any:
        shares = np.array([self.model.predict(f"| {_line(text)}") for text in texts], dtype=np.float64)
        return np.clip(shares, 1e-12, 1.0) / np.clip(shares, 1e-12, 1.0).sum(axis=1, keepdims=True)


def _line(text: str) -> str:
    """The words of a text, none of which means anything to a file format."""
    return " ".join(WORD.findall(text.lower()))


TABLES = installed(
    {
        "MixedNB": ("skbn", lambda rows: OfScikitBayes("MixedNB")),
        "AODE": ("skbn", lambda rows: OfScikitBayes("AnDE")),
        "pyAgrum TAN": ("pyagrum", lambda rows: OfPyAgrum()),
    }
)
TEXTS = installed(
    {
        "fastText": ("fasttext", lambda rows: FastText()),
        "Vowpal Wabbit": ("vowpalwabbit", lambda rows: VowpalWabbit()),
    }
)
