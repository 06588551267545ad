"""How accurate it is: `python -m benchmarks.accuracy [name ...]` sets weighed evidence beside learners that people use.

Adult comes with its own split; the other tables are tested in ten stratified folds of shuffled rows (digits and mushroom: five,
house votes: five times ten). Whatever a learner chooses, it chooses within the rows it learns from. A cell has the accuracy and
the log loss; times are of all fits together, and show the order of magnitude only. Plain is NaiveBayesClassifier, trees adds a
temperature, W is weights alone, WP adds pairs, weighed is EvidenceClassifier with its defaults.

Texts have learners of their own. Newsgroups are split by date, and `newsgroups-20` to `newsgroups-1000` learn from so few posts;
`lectures` is the older collection without the headers that name the group, a third of it tested; WebKB is tested university by
university. Logistic regression and support vector machines choose C and whether TF-IDF is damped on the training rows; NBSVM is
Wang and Manning's, with words and pairs. Learners of other libraries (benchmarks/peers.py) stand beside them where they are
installed: `pip install --group peers`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn import datasets as published
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, LeaveOneGroupOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import banbury as bb
from benchmarks import datasets, machine, peers, quality
from benchmarks.datasets import Part
from benchmarks.measure import say
from benchmarks.report import heading, markdown

Splits = Iterator[tuple[Part, Part]]
Learners = dict[str, Callable[[Any], Any]]  # makes a learner for these rows


class Boosting:
    """Gradient boosting, which is given words as pandas categories."""

    def __init__(self) -> None:
        self.learner = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)

    def fit(self, rows: Any, labels: Any) -> Boosting:
        self.rows = rows
        self.learner.fit(datasets.as_categories(rows, rows)[0], labels)
        self.classes_ = self.learner.classes_
        return self

    def predict(self, rows: Any) -> Any:
        return self.learner.predict(datasets.as_categories(self.rows, rows)[1])

    def predict_proba(self, rows: Any) -> Any:
        return self.learner.predict_proba(datasets.as_categories(self.rows, rows)[1])


LEARNERS: Learners = {
    "Gaussian": lambda rows: bb.NaiveBayesClassifier(features=gaussian(rows)),
    "plain": lambda rows: bb.NaiveBayesClassifier(),
    "trees": lambda rows: bb.NaiveBayesClassifier(calibrate="temperature"),
    "TAN": lambda rows: bb.TANClassifier(),
    "W": lambda rows: bb.EvidenceClassifier(pairs=False, correct=False),
    "WP": lambda rows: bb.EvidenceClassifier(correct=False),
    "weighed": lambda rows: bb.EvidenceClassifier(),
    "logistic regression": quality.logistic_regression,
    "boosting": lambda rows: Boosting(),
    **peers.TABLES,
}
TEXT_LEARNERS: Learners = {
    "plain": lambda rows: bb.NaiveBayesClassifier(),
    "weighed": lambda rows: bb.EvidenceClassifier(),
    "logistic regression": lambda rows: search(LogisticRegression(max_iter=300), [1.0, 10.0, 100.0], "neg_log_loss"),
    "support vectors": lambda rows: search(LinearSVC(), [0.1, 1.0], "accuracy"),
    "NBSVM": lambda rows: NBSVM(),
    **peers.TEXTS,
}


def gaussian(rows: Any) -> Any:
    """All numbers as Gaussian columns, and the other columns with their defaults."""
    return {name: "gaussian" for name in rows.select_dtypes("number") if rows[name].nunique() > 1} or "auto"


def search(learner: Any, penalties: list[float], scoring: str) -> GridSearchCV:
    """TF-IDF and a learner, their settings chosen by three folds."""
    grid = {"tfidfvectorizer__sublinear_tf": [False, True], f"{type(learner).__name__.lower()}__C": penalties}
    return GridSearchCV(make_pipeline(TfidfVectorizer(), learner), grid, scoring=scoring, cv=3)


class NBSVM:
    """Support vectors over the presence of words and pairs, times their log-count ratios; interpolated with the mean weight."""

    def fit(self, texts: Sequence[str], labels: Any) -> NBSVM:
        self.words = CountVectorizer(binary=True, ngram_range=(1, 2))
        counts = self.words.fit_transform(texts)
        self.classes_ = np.unique(labels)
        self.weights = []
        self.intercepts = []
        for name in self.classes_[1:] if len(self.classes_) == 2 else self.classes_:
            inside = labels == name
            p, q = (np.asarray(counts[rows].sum(axis=0)).ravel() + 1.0 for rows in (inside, ~inside))
            ratio = np.log(p / p.sum()) - np.log(q / q.sum())
            machine = LinearSVC(C=1.0).fit(counts.multiply(ratio).tocsr(), inside)
            mean = np.abs(machine.coef_).mean()
            self.weights.append(ratio * (0.75 * mean + 0.25 * machine.coef_.ravel()))
            self.intercepts.append(0.25 * float(machine.intercept_[0]))
        return self

    def predict(self, texts: Sequence[str]) -> Any:
        scores = self.words.transform(texts) @ np.stack(self.weights, axis=1) + self.intercepts
        return self.classes_[scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)]


# Data -----------------------------------------------------------------------------------------------------------------


def single_split(read: Callable[[], tuple[Part, Part]]) -> Callable[[], Splits]:
    """A data set with a split of its own."""
    return lambda: iter([read()])


def folds(read: Callable[[], Part], n: int = 10, seeds: Iterable[int] = (0,)) -> Callable[[], Splits]:
    """Every row is tested once for each seed."""

    def splits() -> Splits:
        part = read()
        for seed in seeds:
            cut = StratifiedKFold(n, shuffle=True, random_state=seed)
            yield from ((part.take(train), part.take(test)) for train, test in cut.split(part.labels, part.labels))

    return splits


def load_table(load: Callable[..., Any]) -> Part:
    bunch = load(as_frame=True)
    return Part(bunch.data, bunch.target.to_numpy())


def lectures() -> tuple[Part, Part]:
    part = datasets.load_older_newsgroups()
    return next(folds(lambda: Part([datasets.without_headers(post) for post in part.rows], part.labels), 3)())


def universities() -> Splits:
    part = datasets.web_pages()
    for train, test in LeaveOneGroupOut().split(part.labels, part.labels, part.groups):
        yield part.take(train), part.take(test)


def few_newsgroups(n: int) -> Splits:
    """Newsgroups by date, but so few posts to learn from; of 20 one of each group. Five draws."""
    train, test = datasets.newsgroups()
    groups = np.unique(train.labels)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        one_each = [rng.choice(np.flatnonzero(train.labels == group)) for group in groups]
        yield train.take(one_each if n == len(groups) else rng.permutation(len(train))[:n]), test


TABLES: dict[str, Callable[[], Splits]] = {
    "adult": single_split(datasets.adult_split),
    "car": folds(partial(datasets.table, "car")),
    "mushroom": folds(partial(datasets.table, "mushroom"), 5),
    "house-votes": folds(partial(datasets.table, "house-votes"), seeds=range(5)),
    "auto-mpg": folds(partial(datasets.table, "auto-mpg")),
    "iris": folds(partial(load_table, published.load_iris)),
    "wine": folds(partial(load_table, published.load_wine)),
    "wdbc": folds(partial(load_table, published.load_breast_cancer)),
    "digits": folds(partial(load_table, published.load_digits), 5),
}
TEXTS: dict[str, Callable[[], Splits]] = {
    "newsgroups": single_split(datasets.newsgroups),
    "lectures": single_split(lectures),
    "sms": folds(datasets.sms),
    "reviews": folds(datasets.reviews),
    "spamassassin": folds(datasets.mail, 5),
    "webkb": universities,
}
FEW = {
    f"newsgroups-{n}": partial(few_newsgroups, n) for n in (20, 100, 300, 1000)
}  # only when named: peers need more rows


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    print(machine.describe())
    for learners, data in ((LEARNERS, TABLES), (TEXT_LEARNERS, TEXTS | FEW)):
        names = [name for name in data if name in (options.names or TABLES | TEXTS)]
        chosen = {name: make for name, make in learners.items() if name in (options.learners or learners)}
        if names:
            print("", heading(["data", *chosen]), sep="\n")
        for name in names:
            print(
                markdown([name, *(table_cell(name, learner, make, data[name]()) for learner, make in chosen.items())])
            )
    return 0


def table_cell(name: str, learner: str, make: Callable[[Any], Any], splits: Splits) -> str:
    say(f"accuracy: {name}, {learner}")
    result = quality.measure(make, splits)
    loss = "—" if result.log_loss is None else f"{result.log_loss:.4f}"
    return f"{result.accuracy:.4f} / {loss} ({result.fit:.1f} s)"


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    names = list(TABLES | TEXTS | FEW)
    command.add_argument("names", nargs="*", type=datasets.one_of(names), metavar="name", help=", ".join(names))
    learners = datasets.one_of(LEARNERS | TEXT_LEARNERS)
    command.add_argument("--learners", type=lambda text: [learners(name) for name in text.split(",")], help="a, b, ...")
    return command


if __name__ == "__main__":
    raise SystemExit(main())
