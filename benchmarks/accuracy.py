"""How right it is: `python -m benchmarks.accuracy [name ...]` sets weighed evidence beside learners that people use for tables.

Adult comes with its own split; of the others each row is tested once, in ten stratified folds (digits and mushroom: five) of
shuffled rows. Everything that a learner chooses, it chooses within the rows it learns from. A cell has the share of right
answers and the log loss; times are of all fits together, and good for their order only. Plain is NaiveBayesClassifier, trees
the same with a temperature, W weights alone, WP with pairs, weighed EvidenceClassifier as it comes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn import datasets as published
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import banbury as bb
from benchmarks import datasets, machine
from benchmarks.measure import say
from benchmarks.tuned import categories, framed

SEED = 0
Split = tuple[Any, Any, Any, Any]  # rows and labels to learn from, and to test on
LEARNERS: dict[str, Callable[[Any], Any]] = {
    "Gaussian": lambda rows: bb.NaiveBayesClassifier(features=gaussian(rows)),
    "plain": lambda rows: bb.NaiveBayesClassifier(),
    "trees": lambda rows: bb.NaiveBayesClassifier(calibrate="temperature"),
    "W": lambda rows: bb.EvidenceClassifier(pairs=False, correct=False),
    "WP": lambda rows: bb.EvidenceClassifier(correct=False),
    "weighed": lambda rows: bb.EvidenceClassifier(),
    "logistic regression": lambda rows: logistic_regression(rows),
    "boosting": lambda rows: HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=SEED),
}


def gaussian(rows: Any) -> Any:
    """Numbers as Gaussian columns, whatever they look like; all else as it comes."""
    return {name: "gaussian" for name in rows.select_dtypes("number") if rows[name].nunique() > 1} or "auto"


def logistic_regression(rows: Any) -> Any:
    numeric = list(rows.select_dtypes("number"))
    words = [name for name in rows if name not in numeric]
    coded = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore"))
    scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return make_pipeline(make_column_transformer((scaled, numeric), (coded, words)), LogisticRegression(max_iter=2000))


def adult() -> Iterator[Split]:
    with datasets.adult() as (learned, held, _):
        train, test = (framed(str(path)) for path in (learned, held))
    yield train.rows, np.asarray(train.labels), test.rows, np.asarray(test.labels)


def folds(rows: Any, labels: Any, n: int, seed: int = SEED) -> Iterator[Split]:
    labels = np.asarray(labels)
    for train, test in StratifiedKFold(n, shuffle=True, random_state=seed).split(rows, labels):
        yield rows.iloc[train], labels[train], rows.iloc[test], labels[test]


def votes() -> Iterator[Split]:
    table = datasets.frame("house-votes-84", "house-votes-84.data", datasets.HOUSE_VOTES)
    for seed in range(5):
        yield from folds(table.drop(columns="party"), table["party"], 10, seed)


def published_table(load: Callable[..., Any], n: int = 10) -> Callable[[], Iterator[Split]]:
    def splits() -> Iterator[Split]:
        bunch = load(as_frame=True)
        return folds(bunch.data, bunch.target, n)

    return splits


def uci(name: str, file: str, names: list[str], target: str, n: int = 10) -> Callable[[], Iterator[Split]]:
    def splits() -> Iterator[Split]:
        table = datasets.frame(name, file, names)
        return folds(table.drop(columns=target), table[target], n)

    return splits


def miles() -> Iterator[Split]:
    """Where a car was made, from all else that is known of it."""
    import pandas as pd

    with datasets.unpacked("auto-mpg") as folder:
        names = ["mpg", "cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin", "name"]
        file = next(path for path in sorted(folder.iterdir()) if path.suffix == ".data" or "mpg" in path.name)
        table = pd.read_csv(file, sep=r"\s+", names=names, na_values=["?"])
    return folds(table.drop(columns=["origin", "name"]), table["origin"], 10)


DATA: dict[str, Callable[[], Iterator[Split]]] = {
    "adult": adult,
    "car": uci("car", "car.data", datasets.CAR, "class"),
    "mushroom": uci("mushroom", "agaricus-lepiota.data", datasets.MUSHROOM, "class", 5),
    "house-votes": votes,
    "auto-mpg": miles,
    "iris": published_table(published.load_iris),
    "wine": published_table(published.load_wine),
    "wdbc": published_table(published.load_breast_cancer),
    "digits": published_table(published.load_digits, 5),
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    learners = options.learners.split(",") if options.learners else list(LEARNERS)
    print(f"{machine.description()}; {machine.versions()}\n")
    cells = ["data", *learners]
    print(line(cells), line(["---"] * len(cells)), sep="\n")
    for name in options.names or DATA:
        print(line([name, *(measured(name, learner) for learner in learners)]), flush=True)
    return 0


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def measured(name: str, learner: str) -> str:
    say(f"accuracy: {name}, {learner}")
    right, losses, took = [], [], 0.0
    for rows, labels, tested, truth in DATA[name]():
        if learner == "boosting":
            rows, tested = categories(rows, tested)
        model = LEARNERS[learner](rows)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            model.fit(rows, labels)
            took += time.perf_counter() - start
            posterior = model.predict_proba(tested)
        right.append(model.classes_[posterior.argmax(axis=1)] == truth)
        losses.append(len(truth) * log_loss(truth, posterior, labels=model.classes_))
    every = np.concatenate(right)
    return f"{every.mean():.4f} / {sum(losses) / len(every):.4f} ({took:.1f} s)"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    made.add_argument("names", nargs="*", type=datasets.one_of(DATA), metavar="name", help=", ".join(DATA))
    made.add_argument("--learners", help="only these, with commas between them")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
