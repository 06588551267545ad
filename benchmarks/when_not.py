"""When not to use it: `python -m benchmarks.when_not [name ...]` sets naive Bayes beside learners that assume no independence.

Adult (census income) and 20 Newsgroups by date come with their own split; of SMS spam and reviews a third of each class is
tested (seed 0). Each learner is fitted once to the rows to learn from, and asked once for the others; reading the files is not
timed, all else is (imputing, encoding, finding words). Threads are each learner's own affair. The tables are those of
docs/when-not-to-use-it.md and docs/text.md; times are of one run, and good for their order only. A log loss is scikit-learn's,
which takes a probability below 2.2e-16 for that much.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import banbury as bb
from benchmarks import applications, datasets, machine
from benchmarks.measure import say
from benchmarks.tuned import Made, Part, categories, framed, parts_of, share_of_most

SEED = 0
HEADINGS = ["learner", "accuracy", "log loss", "fit", "predict"]
Learner = tuple[str, Any, Part, Part]  # its name, an estimator, and the rows as it wants them


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    names = options.names or list(DATA)
    if not all(datasets.there(FOLDERS[name]) for name in names):
        say(datasets.UNSET)
        return 1
    print(f"{machine.description()}; {machine.versions()}")
    for name in names:
        train, test, learners = DATA[name]()
        print(f"\n{name}: {len(train.labels):,} rows learned, {len(test.labels):,} tested", end="")
        print(f", majority {share_of_most(train, test):.4f}\n")
        print(line(HEADINGS), line(["---"] * len(HEADINGS)), sep="\n")
        for learner in learners:
            say(f"when_not: {name}, {learner[0]}")
            print(line(measured(*learner)), flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.when_not", description=__doc__)
    made.add_argument("names", nargs="*", type=datasets.one_of(DATA), metavar="name", help=", ".join(DATA))
    return made


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def measured(name: str, learner: Any, train: Part, test: Part) -> list[str]:
    """A row of the table."""
    start = time.perf_counter()
    learner.fit(train.rows, train.labels)
    fitted = time.perf_counter()
    answers = learner.predict(test.rows)
    predicted = time.perf_counter()
    return [
        name,
        f"{test.right(answers):.4f}",
        loss(learner, test),
        f"{fitted - start:.2g} s",
        f"{predicted - fitted:.2g} s",
    ]


def loss(learner: Any, test: Part) -> str:
    """A support vector machine has no probabilities."""
    if not hasattr(learner, "predict_proba"):
        return "none"
    return f"{log_loss(test.labels, learner.predict_proba(test.rows), labels=learner.classes_):.3f}"


def adult() -> tuple[Part, Part, Iterator[Learner]]:
    with datasets.adult() as (learned, held, _):
        train, test = (framed(str(path)) for path in (learned, held))
    return train, test, of_columns(train, test)


def of_columns(train: Part, test: Part) -> Iterator[Learner]:
    chosen = bb.NaiveBayesClassifier(features="choose", alpha="auto", calibrate="isotonic")
    yield "Banbury, as it comes", bb.NaiveBayesClassifier(), train, test
    yield "Banbury, calibrated", bb.NaiveBayesClassifier(calibrate="isotonic"), train, test
    yield "Banbury, weighed", bb.EvidenceClassifier(), train, test
    yield "Banbury, families and α chosen, calibrated", chosen, train, test
    yield "logistic regression", logistic_regression(train.rows), train, test
    rows = categories(train.rows, test.rows)
    trees = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=SEED)
    yield "gradient boosting", trees, Part(rows[0], train.labels), Part(rows[1], test.labels)


def logistic_regression(rows: Any) -> Pipeline:
    """Numbers scaled, words as columns of 0 and 1, a missing word as a word of its own."""
    numeric = list(rows.select_dtypes("number"))
    words = [name for name in rows if name not in numeric]
    coded = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer((StandardScaler(), numeric), (coded, words))
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def texts(made: Made, own_split: bool = False) -> tuple[Part, Part, Iterator[Learner]]:
    _, train, test = parts_of(made, own_split)
    return train, test, of_texts(train, test)


def of_texts(train: Part, test: Part) -> Iterator[Learner]:
    tuned = {"alpha": "auto", "calibrate": "temperature"}
    log_odds = bb.Text(model="log_odds", damping="log", length=True)
    yield "Banbury, as it comes", bb.NaiveBayesClassifier(), train, test
    yield "Banbury, calibrated", bb.NaiveBayesClassifier(calibrate="temperature"), train, test
    yield "Banbury, α chosen, calibrated", bb.NaiveBayesClassifier(bb.Text(), **tuned), train, test
    yield "Banbury, log-odds of damped counts, the same", bb.NaiveBayesClassifier(log_odds, **tuned), train, test
    yield "Banbury, model and α chosen, calibrated", bb.NaiveBayesClassifier(**tuned), train, test
    yield "Banbury, weighed", bb.EvidenceClassifier(), train, test
    yield "logistic regression", make_pipeline(tf_idf(), LogisticRegression(C=10.0, max_iter=1000)), train, test
    yield "linear support vectors", make_pipeline(tf_idf(), LinearSVC(random_state=SEED)), train, test


def tf_idf() -> TfidfVectorizer:
    return TfidfVectorizer(sublinear_tf=True)


DATA: dict[str, Callable[[], tuple[Part, Part, Iterator[Learner]]]] = {
    "adult": adult,
    "newsgroups": lambda: texts(applications.news, own_split=True),
    "sms": lambda: texts(applications.sms),
    "reviews": lambda: texts(applications.reviews),
}
FOLDERS = {"adult": "adult", "newsgroups": "20news-bydate", "sms": "sms-spam", "reviews": "review-polarity"}


if __name__ == "__main__":
    sys.exit(main())
