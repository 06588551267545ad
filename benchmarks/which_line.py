"""Which line to use: `python -m benchmarks.which_line [name ...]` runs every line of docs/which-line.md on real data.

A line is what a newcomer would paste, with nothing chosen. Adult and 20 Newsgroups by date come with their own split; of SMS spam
a third of each class is tested, and of scikit-learn's tables (breast cancer, digits) every third row. Times are of one run, good
for their order only.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.naive_bayes import MultinomialNB

import banbury as bb
from benchmarks import applications, datasets, labels, machine
from benchmarks.measure import say
from benchmarks.tuned import Part, framed, parts_of

FORGOTTEN = 1_000  # rows
LABELLED = 60  # rows


def main(arguments: Sequence[str] | None = None) -> int:
    made = argparse.ArgumentParser(prog="python -m benchmarks.which_line", description=__doc__)
    made.add_argument("names", nargs="*", type=datasets.one_of(LINES), metavar="name", help=", ".join(LINES))
    names = made.parse_args(arguments).names or list(LINES)
    folders = {folder for name in names if (folder := FOLDERS.get(name)) is not None}
    if not all(map(datasets.there, folders)):
        say(datasets.UNSET)
        return 1
    print(f"{machine.description()}; {machine.versions()}\n")
    for name in names:
        say(f"which_line: {name}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(f"| {name} | {LINES[name]()} |", flush=True)
    return 0


# How good a line is ---------------------------------------------------------------------------------------------------


def good(learner: Any, train: Part, test: Part) -> str:
    start = time.perf_counter()
    learner.fit(train.rows, train.labels)
    took = time.perf_counter() - start
    lost = log_loss(test.labels, learner.predict_proba(test.rows), labels=learner.classes_)
    return f"{test.right(learner.predict(test.rows)):.3f} right, log loss {lost:.3f}, fitted in {took:.2g} s"


def thirds(rows: Any, labels: Any) -> tuple[Part, Part]:
    """Every third row is tested."""
    tested = np.arange(len(labels)) % 3 == 0
    learned, held = (rows[which] if isinstance(rows, np.ndarray) else rows.loc[which] for which in (~tested, tested))
    return Part(learned, labels[~tested]), Part(held, labels[tested])


def sms() -> tuple[Part, Part]:
    return parts_of(applications.sms)[1:]


def mail() -> tuple[Part, Part]:
    return parts_of(applications.mail)[1:]


def news() -> tuple[Part, Part]:
    return parts_of(applications.news, own_split=True)[1:]


def adult() -> tuple[Part, Part]:
    with datasets.adult() as (learned, held, _):
        train, test = (framed(str(path)) for path in (learned, held))
    return train, test


def cancer() -> tuple[Part, Part]:
    table = load_breast_cancer(as_frame=True)
    return thirds(table.data, table.target.to_numpy())


def digits() -> tuple[Part, Part]:
    return thirds(*load_digits(return_X_y=True))


# The lines ------------------------------------------------------------------------------------------------------------


def with_length() -> str:
    """Texts beside a number."""
    train, test = (
        Part({"text": list(part.rows), "length": [len(text) for text in part.rows]}, part.labels) for part in sms()
    )
    return good(bb.EvidenceClassifier(), train, test)


def embeddings() -> str:
    """Lists of numbers, of which each row has one."""
    train, test = (Part({"vector": part.rows.tolist()}, part.labels) for part in digits())
    return good(bb.NaiveBayesClassifier(), train, test)


def several_labels() -> str:
    train, test = labels.reuters()
    start = time.perf_counter()
    clf = bb.MultiLabelClassifier().fit(train.texts, train.topics)
    took = time.perf_counter() - start
    found = bb.evaluate(clf.model_, test.texts, test.topics)
    return f"micro F1 {found.micro_f1:.3f}, macro F1 {found.macro_f1:.3f}, fitted in {took:.2g} s"


def few_labels() -> str:
    train, test = digits()
    labels = np.where(np.arange(len(train.labels)) < LABELLED, train.labels, -1)
    alone = bb.NaiveBayesClassifier(features="poisson").fit(train.rows[:LABELLED], train.labels[:LABELLED])
    learner = bb.SemiSupervisedClassifier(features="poisson", unlabelled=-1).fit(train.rows, labels)
    figures = test.right(learner.predict(test.rows)), test.right(alone.predict(test.rows))
    return f"{figures[0]:.3f} right with {LABELLED} labels of {len(labels):,} rows; {figures[1]:.3f} from the labelled ones alone"


def outliers() -> str:
    train, test = cancer()
    density = bb.Density().fit(train.rows[train.labels == 1])
    found = roc_auc_score(test.labels == 0, -density.score_samples(test.rows))
    return f"malignant ones stand out with an AUC of {found:.3f}, learned from benign ones alone"


def streamed() -> str:
    with datasets.adult() as (learned, _, reading):
        took = np.inf
        for _ in range(3):  # the first one loads what reads files
            start = time.perf_counter()
            tally = bb.count(learned, target="income", **reading)
            took = min(took, time.perf_counter() - start)
    return f"{float(tally.n_rows) / took:,.0f} rows a second of 14 columns, one batch in memory"


def forgotten() -> str:
    train, _ = adult()
    some, others = train.rows[:FORGOTTEN], train.rows[FORGOTTEN:]
    clf = bb.NaiveBayesClassifier().fit(train.rows, train.labels)
    schema = clf.tally_.schema
    start = time.perf_counter()
    clf.forget(some, train.labels[:FORGOTTEN])
    took = time.perf_counter() - start
    same = clf.tally_.digest() == bb.count(others, target=train.labels[FORGOTTEN:], schema=schema).digest()
    if not same:
        raise AssertionError("what is left is not what was never forgotten")
    return f"{FORGOTTEN:,} of {len(train.labels):,} rows in {took:.2g} s; the digest is that of a count without them"


def calibrated() -> str:
    train, test = adult()
    plain, honest = bb.NaiveBayesClassifier(), bb.NaiveBayesClassifier(calibrate="temperature")
    return f"{good(honest, train, test)}; uncalibrated {good(plain, train, test)}"


def drop_in() -> str:
    train, test = digits()
    own, theirs = (each.fit(train.rows, train.labels) for each in (bb.MultinomialNB(), MultinomialNB()))
    most = np.abs(own.predict_proba(test.rows) - theirs.predict_proba(test.rows)).max()
    return f"{test.right(own.predict(test.rows)):.3f} right, probabilities within {most:.0e} of scikit-learn's"


LINES: dict[str, Callable[[], str]] = {
    "SMS spam": lambda: good(bb.EvidenceClassifier(), *sms()),
    "mail": lambda: good(bb.EvidenceClassifier(), *mail()),
    "newsgroups": lambda: good(bb.EvidenceClassifier(), *news()),
    "newsgroups, counted": lambda: good(bb.NaiveBayesClassifier(calibrate="temperature"), *news()),
    "census": lambda: good(bb.EvidenceClassifier(), *adult()),
    "text and numbers": with_length,
    "numbers": lambda: good(bb.EvidenceClassifier(), *cancer()),
    "counts": lambda: good(bb.EvidenceClassifier(), *digits()),
    "counts, as such": lambda: good(bb.NaiveBayesClassifier(features="poisson", calibrate="temperature"), *digits()),
    "embeddings": embeddings,
    "several labels": several_labels,
    "few labels": few_labels,
    "outliers": outliers,
    "large files": streamed,
    "forgetting": forgotten,
    "calibrated": calibrated,
    "drop-in": drop_in,
}
FOLDERS = {
    "SMS spam": "sms-spam",
    "text and numbers": "sms-spam",
    "mail": "spamassassin",
    "newsgroups": "20news-bydate",
    "newsgroups, counted": "20news-bydate",
    "several labels": labels.DATA,
    **dict.fromkeys(("census", "large files", "forgetting", "calibrated"), "adult"),
}


if __name__ == "__main__":
    sys.exit(main())
