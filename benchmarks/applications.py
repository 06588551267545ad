"""The lectures' list of applications, from files as they come: `python -m benchmarks.applications` says how often each is right.

Spam in SMS and in mail, kinds of web pages, movie reviews and news: the default model and the complement model, on a third of
the files that was not learned (seed 0), beside scikit-learn's on the same texts. By-date news come with their own split.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import ComplementNB, MultinomialNB

import banbury as bb
from banbury.errors import BanburyWarning
from banbury.readers import read
from benchmarks import datasets
from benchmarks.measure import say

SEED = 0
PAGES = {"format": "html"}  # they begin with the server's headers, so that they do not look it
USUAL_PAGES = ("course", "faculty", "project", "student")


@dataclass(frozen=True)
class Application:
    """Where to learn from and where to test: folders with a sub-folder per class, or files with a column of them."""

    name: str
    train: Path
    test: Path
    reading: dict[str, Any] = field(default_factory=dict)


def main() -> int:
    if not datasets.there("sms-spam"):
        say(datasets.UNSET)
        return 1
    print("".join(word.ljust(width) for word, width in zip(HEADINGS, WIDTHS, strict=True)).rstrip())
    agree = True
    for made in (sms, mail, web_pages, usual_web_pages, reviews, news):
        with made() as application:
            say(f"applications: {application.name}")
            agree &= reported(application)
    return 0 if agree else 1


HEADINGS = [
    "",
    "learned",
    "tested",
    "guess",
    "majority",
    "default",
    "scikit-learn",
    "complement",
    "scikit-learn",
    "same answers",
]
WIDTHS = [26, 9, 9, 8, 10, 9, 14, 12, 14, 12]


def reported(application: Application) -> bool:
    """Prints a line; whether scikit-learn gives the same answers."""
    (texts, labels), (held, truth) = (
        texts_of(path, application.reading) for path in (application.train, application.test)
    )
    cells = [application.name, f"{len(texts):,}", f"{len(held):,}", f"{1 / len(set(labels)):.3f}"]
    names, n = np.unique(labels, return_counts=True)
    cells.append(f"{np.mean(truth == names[n.argmax()]):.4f}")
    vectoriser = CountVectorizer()
    counts, held_counts = vectoriser.fit_transform(texts), vectoriser.transform(held)
    same = []
    # ComplementNB knows no class prior, so neither does ours here.
    for model, prior, peer in ("multinomial", None, MultinomialNB()), ("complement", "uniform", ComplementNB()):
        features = {"text": bb.Text(model=model)}
        tally = bb.count(str(application.train), "class", features=features, **application.reading)
        mine = np.asarray(bb.estimate(tally, class_prior=prior).predict(str(application.test), **application.reading))
        theirs = peer.fit(counts, labels).predict(held_counts)
        cells += [f"{np.mean(answers == truth):.4f}" for answers in (mine, theirs)]
        same.append(float(np.mean(mine == theirs)))
    cells.append(f"{min(same):.4%}")
    print("".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=True)).rstrip(), flush=True)
    return min(same) == 1.0


def texts_of(path: Path, reading: Mapping[str, Any] = MappingProxyType({})) -> tuple[list[str], NDArray[np.str_]]:
    """The texts and classes that our reader finds, for the peer."""
    texts: list[str] = []
    labels: list[str] = []
    there = len(list(documents(path)))
    for batch in read(str(path), **reading):
        texts += batch.head("text", batch.n_rows)
        labels += batch.head("class", batch.n_rows)
    if len(texts) != there:
        say(f"applications: {len(texts):,} texts were read of {there:,} in {path.name}")
    return texts, np.array(labels)


def documents(path: Path) -> Iterator[Any]:
    """The files of a folder, or the lines of a file."""
    return (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else iter(path.open("rb"))


# The data sets, each as its authors publish it, cut in two -----------------------------------------------------------


@contextmanager
def sms() -> Iterator[Application]:
    """A message on each line, after its class and a tab."""
    with datasets.unpacked("sms-spam") as folder:
        lines = (folder / "SMSSpamCollection").read_bytes().splitlines(keepends=True)
        train, test = folder / "train.tsv", folder / "test.tsv"
        held = drawn(len(lines))
        train.write_bytes(b"".join(line for line, out in zip(lines, held, strict=True) if not out))
        test.write_bytes(b"".join(line for line, out in zip(lines, held, strict=True) if out))
        yield Application("SMS spam", train, test, {"columns": ["class", "text"], "delimiter": "\t"})


@contextmanager
def mail(step: int = 1) -> Iterator[Application]:
    """Mails with headers, attachments and odd encodings, a file each; every ``step``-th of them."""
    kinds = {"easy_ham": "ham", "easy_ham_2": "ham", "hard_ham": "ham", "spam": "spam", "spam_2": "spam"}
    with (
        datasets.unpacked("spamassassin") as folder,
        cut(folder / "spamassassin", kinds, step) as (train, test),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", BanburyWarning)  # some of the spam is broken, and we are told so every time
        yield Application("SpamAssassin mail", train, test)


@contextmanager
def web_pages() -> Iterator[Application]:
    """HTML pages of four universities, seven kinds."""
    with datasets.unpacked("webkb") as folder, cut(folder / "webkb") as (train, test):
        yield Application("WebKB pages, 7 kinds", train, test, PAGES)


@contextmanager
def usual_web_pages() -> Iterator[Application]:
    """The four kinds that most reports use."""
    kinds = dict(zip(USUAL_PAGES, USUAL_PAGES, strict=True))
    with datasets.unpacked("webkb") as folder, cut(folder / "webkb", kinds) as (train, test):
        yield Application("WebKB pages, 4 kinds", train, test, PAGES)


@contextmanager
def reviews() -> Iterator[Application]:
    with datasets.unpacked("review-polarity") as folder, cut(folder / "txt_sentoken") as (train, test):
        yield Application("movie reviews", train, test)


@contextmanager
def news() -> Iterator[Application]:
    with datasets.unpacked("20news-bydate") as folder:
        yield Application("20 Newsgroups by date", folder / "20news-bydate-train", folder / "20news-bydate-test")


@contextmanager
def cut(source: Path, kinds: dict[str, str] | None = None, step: int = 1) -> Iterator[tuple[Path, Path]]:
    """Copies files into two folders, with a sub-folder per class each; ``kinds`` joins sub-folders and leaves others out."""
    kinds = kinds or {path.name: path.name for path in source.iterdir()}
    paths = sorted(path for name in kinds for path in (source / name).rglob("*") if path.is_file())[::step]
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder) / "train", Path(folder) / "test"
        for path, held in zip(paths, drawn(len(paths)), strict=True):
            inside = path.relative_to(source)
            place = (test if held else train) / kinds[inside.parts[0]]
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place / "-".join(inside.parts))
        yield train, test


def drawn(n: int) -> list[bool]:
    """Which of n are tested: a third of them."""
    held = np.zeros(n, dtype=np.bool_)
    held[np.random.default_rng(SEED).permutation(n)[: n // 3]] = True
    return held.tolist()


if __name__ == "__main__":
    sys.exit(main())
