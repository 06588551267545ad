"""Which line to use: `python -m benchmarks.which_line [name ...]` runs every line of docs/how-to/which-line.md on real data.

A line is what a newcomer would paste, with nothing chosen. Adult and 20 Newsgroups by date come with their own split; of SMS
spam and mail a third of each class is tested, and of scikit-learn's tables (breast cancer, digits) every third row. Times are of
one run, and show the order of magnitude only.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import MultinomialNB

import banbury as bb
from benchmarks import datasets, machine
from benchmarks.datasets import Part
from benchmarks.measure import Setting, WrongAnswer, largest_gap, say, take_turns
from benchmarks.quality import measure

FORGOTTEN = 1_000  # rows
LABELLED = 60  # rows
Split = tuple[Part, Part]


def main(arguments: Sequence[str] | None = None) -> int:
    names = parser().parse_args(arguments).names or list(LINES)
    if not datasets.has_data(*(FOLDERS[name] for name in names if name in FOLDERS)):
        say(datasets.UNSET)
        return 1
    print(f"{machine.describe()}\n")
    for name in names:
        say(f"which_line: {name}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(f"| {name} | {LINES[name]()} |", flush=True)
    return 0


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.which_line", description=__doc__)
    command.add_argument("names", nargs="*", type=datasets.one_of(LINES), metavar="name", help=", ".join(LINES))
    return command


# Data -----------------------------------------------------------------------------------------------------------------


def sms() -> Split:
    return datasets.thirds(datasets.sms())


def every_third(rows: Any, labels: Any) -> Split:
    part = Part(rows, np.asarray(labels))
    tested = np.arange(len(part)) % 3 == 0
    return part.take(np.flatnonzero(~tested)), part.take(np.flatnonzero(tested))


def cancer() -> Split:
    return every_third(*load_breast_cancer(as_frame=True, return_X_y=True))


def digits() -> Split:
    return every_third(*load_digits(return_X_y=True))


# Lines ----------------------------------------------------------------------------------------------------------------


def quality(learner: Any, split: Split) -> str:
    result = measure(lambda _: learner, [split])
    return f"{result.accuracy:.3f} right, log loss {result.log_loss:.3f}, fitted in {result.fit:.2g} s"


def mail_folder() -> str:
    """Mail as it is on a disk: a file for each message, in a folder for each class."""
    with datasets.unpack_folder("spamassassin") as source, tempfile.TemporaryDirectory() as folder:
        paths = sorted(path for path in source.rglob("*") if path.is_file())
        kinds = np.array(["ham" if "ham" in path.parent.name else "spam" for path in paths])
        train, test = Path(folder, "train"), Path(folder, "test")
        for part, split_folder in zip(datasets.thirds(Part(paths, kinds)), (train, test), strict=True):
            for number, (path, kind) in enumerate(zip(part.rows, part.labels, strict=True)):
                class_folder = split_folder / kind
                class_folder.mkdir(parents=True, exist_ok=True)
                (class_folder / str(number)).symlink_to(path)
        start = time.perf_counter()
        model = bb.weigh(bb.count(train), train)
        seconds = time.perf_counter() - start
        result = bb.evaluate(model, test)
    return f"{result.accuracy.value:.3f} right, log loss {result.log_loss:.3f}, fitted in {seconds:.2g} s"


def with_length() -> str:
    """Texts beside a number."""
    train, test = (
        Part({"text": part.rows, "length": [len(text) for text in part.rows]}, part.labels) for part in sms()
    )
    return quality(bb.EvidenceClassifier(), (train, test))


def embeddings() -> str:
    """A list of numbers in each row."""
    train, test = (Part({"vector": part.rows.tolist()}, part.labels) for part in digits())
    return quality(bb.NaiveBayesClassifier(), (train, test))


def several_labels() -> str:
    train, test = datasets.reuters()
    start = time.perf_counter()
    clf = bb.MultiLabelClassifier().fit(train.texts, train.topics)
    took = time.perf_counter() - start
    result = bb.evaluate(clf.model_, test.texts, test.topics)
    return f"micro F1 {result.micro_f1:.3f}, macro F1 {result.macro_f1:.3f}, fitted in {took:.2g} s"


def few_labels() -> str:
    train, test = digits()
    labels = np.where(np.arange(len(train)) < LABELLED, train.labels, -1)
    alone = bb.NaiveBayesClassifier(features="poisson").fit(train.rows[:LABELLED], train.labels[:LABELLED])
    learner = bb.SemiSupervisedClassifier(features="poisson", unlabelled=-1).fit(train.rows, labels)
    both, labelled_only = (test.accuracy(model.predict(test.rows)) for model in (learner, alone))
    return f"{both:.3f} right with {LABELLED} labels of {len(labels):,} rows; {labelled_only:.3f} from these alone"


def outliers() -> str:
    train, test = cancer()
    density = bb.Density().fit(train.rows[train.labels == 1])
    auc = roc_auc_score(test.labels == 0, -density.score_samples(test.rows))
    return f"malignant ones stand out with an AUC of {auc:.3f}, learned from benign ones alone"


def stream_from_disk() -> str:
    with datasets.adult() as (path, _, reading):
        run = lambda: bb.count(path, target="income", **reading)  # noqa: E731
        times, tallies = take_turns({"count": run}, Setting())
    return f"{tallies['count'].n_rows / times['count']:,.0f} rows a second of 14 columns, one batch in memory"


def forget_rows() -> str:
    train, _ = datasets.adult_split()
    clf = bb.NaiveBayesClassifier().fit(train.rows, train.labels)
    schema = clf.tally_.schema
    start = time.perf_counter()
    clf.forget(train.rows[:FORGOTTEN], train.labels[:FORGOTTEN])
    took = time.perf_counter() - start
    rest = bb.count(train.rows[FORGOTTEN:], target=train.labels[FORGOTTEN:], schema=schema)
    if clf.tally_.digest() != rest.digest():
        raise WrongAnswer("the tally after forgetting is not the tally of the other rows")
    return f"{FORGOTTEN:,} of {len(train):,} rows in {took:.2g} s; the digest is that of a count without them"


def calibrate_temperature() -> str:
    split = datasets.adult_split()
    after = quality(bb.NaiveBayesClassifier(calibrate="temperature"), split)
    return f"{after}; uncalibrated {quality(bb.NaiveBayesClassifier(), split)}"


def drop_in() -> str:
    train, test = digits()
    ours, theirs = (learner.fit(train.rows, train.labels) for learner in (bb.MultinomialNB(), MultinomialNB()))
    gap = largest_gap(ours.predict_proba(test.rows), theirs.predict_proba(test.rows), within=1e-9)
    accuracy = test.accuracy(ours.predict(test.rows))
    return f"{accuracy:.3f} right, probabilities within {gap:.0e} of scikit-learn's"


POISSON = {"features": "poisson", "calibrate": "temperature"}
LINES: dict[str, Callable[[], str]] = {
    "SMS spam": lambda: quality(bb.EvidenceClassifier(), sms()),
    "mail": mail_folder,
    "newsgroups": lambda: quality(bb.EvidenceClassifier(), datasets.newsgroups()),
    "newsgroups, counted": lambda: quality(bb.NaiveBayesClassifier(calibrate="temperature"), datasets.newsgroups()),
    "census": lambda: quality(bb.EvidenceClassifier(), datasets.adult_split()),
    "text and numbers": with_length,
    "numbers": lambda: quality(bb.EvidenceClassifier(), cancer()),
    "counts": lambda: quality(bb.EvidenceClassifier(), digits()),
    "counts, as such": lambda: quality(bb.NaiveBayesClassifier(**POISSON), digits()),
    "embeddings": embeddings,
    "several labels": several_labels,
    "few labels": few_labels,
    "outliers": outliers,
    "large files": stream_from_disk,
    "forgetting": forget_rows,
    "calibrated": calibrate_temperature,
    "drop-in": drop_in,
}
FOLDERS = {
    "SMS spam": "sms-spam",
    "text and numbers": "sms-spam",
    "mail": "spamassassin",
    "newsgroups": "20news-bydate",
    "newsgroups, counted": "20news-bydate",
    "several labels": "reuters21578",
    **dict.fromkeys(("census", "large files", "forgetting", "calibrated"), "adult"),
}


if __name__ == "__main__":
    sys.exit(main())
