"""Where a tree helps: `python -m benchmarks.tan [name ...]` sets TAN beside naive Bayes, with what `bb.diagnose` says.

Ten folds of each class (seed 0). Dependence is I(A; B | class) in bits: of the worst pair, and of all pairs that are beyond
chance together. "the same bins" is naive Bayes on the very values that the tree has, so that what the bins bring to columns of
numbers is not taken for the tree's; "whole tree" is `level=None`. `--in-order`: five folds, rows in the order of the file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import banbury as bb
from benchmarks import datasets
from benchmarks.measure import say

SHUFFLED = StratifiedKFold(10, shuffle=True, random_state=0)


@dataclass(frozen=True)
class Outcome:
    """A line of the table: the dependence, and shares of right answers and log losses of each model."""

    name: str
    n_rows: int
    worst: str
    worst_bits: float
    all_bits: float
    right: dict[str, float]
    loss: dict[str, float]

    def cells(self) -> list[str]:
        shares = (f"{self.right[name]:.4f} ({self.loss[name]:.3f})" for name in MODELS)
        return [self.name, f"{self.n_rows:,}", f"{self.worst_bits:.2f}", f"{self.all_bits:.2f}", *shares]


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if not datasets.there("car"):
        say(datasets.UNSET)
        return 1
    print(line(HEADINGS))
    for name in options.names or DATA:
        say(f"tan: {name}")
        outcome = compared(name, *DATA[name](), StratifiedKFold(5) if options.in_order else SHUFFLED)
        print(line(outcome.cells()))
        print(f"    worst pair: {outcome.worst}", flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.tan", description=__doc__)
    made.add_argument("names", nargs="*", type=datasets.one_of(DATA), metavar="name", help=", ".join(DATA))
    made.add_argument("--in-order", action="store_true", help="five folds, rows in the order of the file")
    return made


def compared(name: str, rows: Any, target: str, folds: StratifiedKFold = SHUFFLED) -> Outcome:
    """Folds of every model: right answers, and log loss in parentheses."""
    labels = rows.pop(target).to_numpy(dtype=np.str_)
    pairs = bb.diagnose(rows, target=labels, n=10_000).pairs
    found = {model: np.zeros((len(labels), len(np.unique(labels)))) for model in MODELS}
    for train, test in folds.split(rows, labels):
        for model, learn in MODELS.items():
            found[model][test] = learn(rows.iloc[train], labels[train])(rows.iloc[test])
    classes = np.unique(labels)
    right = {model: float(np.mean(classes[shares.argmax(axis=1)] == labels)) for model, shares in found.items()}
    loss = {model: float(log_loss(labels, shares)) for model, shares in found.items()}
    worst = f"{pairs[0].first} / {pairs[0].second}" if pairs else "none"
    bits = [pair.bits for pair in pairs]
    return Outcome(name, len(labels), worst, max(bits, default=0.0), sum(bits), right, loss)


Learner = Callable[[Any, NDArray[Any]], Callable[[Any], NDArray[np.float64]]]


def naive(rows: Any, labels: NDArray[Any]) -> Callable[[Any], NDArray[np.float64]]:
    return bb.NaiveBayesClassifier().fit(rows, labels).predict_proba


def same_bins(rows: Any, labels: NDArray[Any]) -> Callable[[Any], NDArray[np.float64]]:
    """Naive Bayes with the tree's bins for values."""
    variables = bb.TANClassifier().fit(rows, labels).network_.variables
    cuts = {variable.name: np.array(variable.cuts) for variable in variables if variable.cuts is not None}

    def coded(some: Any) -> Any:
        return some.assign(**{name: np.searchsorted(at, some[name], "right") for name, at in cuts.items()})

    model = bb.NaiveBayesClassifier(features=dict.fromkeys(cuts, "categorical")).fit(coded(rows), labels)
    return lambda some: model.predict_proba(coded(some))


def tree(rows: Any, labels: NDArray[Any]) -> Callable[[Any], NDArray[np.float64]]:
    return bb.TANClassifier().fit(rows, labels).predict_proba


def whole_tree(rows: Any, labels: NDArray[Any]) -> Callable[[Any], NDArray[np.float64]]:
    return bb.TANClassifier(level=None).fit(rows, labels).predict_proba


MODELS: dict[str, Learner] = {
    "naive Bayes": naive,
    "the same bins": same_bins,
    "TAN": tree,
    "whole tree": whole_tree,
}
HEADINGS = ["", "rows", "worst pair", "all pairs", *MODELS]
WIDTHS = [14, 8, 12, 11, *([17] * len(MODELS))]


def line(cells: Sequence[str]) -> str:
    return "".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip()


DATA: dict[str, Callable[[], tuple[Any, str]]] = {
    "mushroom": lambda: (datasets.frame("mushroom", "agaricus-lepiota.data", datasets.MUSHROOM), "class"),
    "car": lambda: (datasets.frame("car", "car.data", datasets.CAR), "class"),
    "votes": lambda: (datasets.frame("house-votes-84", "house-votes-84.data", datasets.HOUSE_VOTES), "party"),
    "adult": lambda: (datasets.frame("adult", "adult.data", datasets.ADULT), datasets.INCOME),
}


if __name__ == "__main__":
    sys.exit(main())
