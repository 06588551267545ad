"""What mail headers add: `python -m benchmarks.headers [name ...]` reads them with the text, and as columns of their own.

Newsgroups: the older posts are learned, and the newer tested. SpamAssassin: every mail is tested once, in five stratified
folds. A cell has the accuracy and the log loss, of a plain model and of a weighed one.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import banbury as bb
from benchmarks import datasets, machine
from benchmarks.measure import say
from benchmarks.report import heading, markdown

READINGS: dict[str, dict[str, Any]] = {
    "subject and body as one text": {"format": "mail", "headers": ["subject"]},
    'headers=["columns", "subject"]': {"headers": ["columns", "subject"]},
    'headers="columns"': {"headers": "columns"},
}


def newsgroups(reading: dict[str, Any], weigh: bool) -> Any:
    with datasets.unpack_folder("20news-bydate") as folder:
        older, newer = (str(folder / f"20news-bydate-{part}") for part in ("train", "test"))
        model = bb.estimate(bb.count(older, **reading))
        return bb.evaluate(bb.weigh(model, older, **reading) if weigh else model, newer, **reading)


def spamassassin(reading: dict[str, Any], weigh: bool) -> Any:
    with datasets.unpack_folder("spamassassin") as folder, tempfile.TemporaryDirectory() as classes:
        for part in (folder / "spamassassin").iterdir():
            kind = Path(classes, "spam" if part.name.startswith("spam") else "ham")
            kind.mkdir(exist_ok=True)
            (kind / part.name).symlink_to(part)
        return bb.cross_validate(classes, folds=5, weigh=weigh, **reading)


DATA: dict[str, Callable[[dict[str, Any], bool], Any]] = {"newsgroups": newsgroups, "spamassassin": spamassassin}


def main(arguments: Sequence[str] | None = None) -> int:
    names = parser().parse_args(arguments).names or list(DATA)
    print(f"{machine.describe()}\n\n{heading(['', *names])}")
    for weigh in (False, True):
        for reading in READINGS:
            label = f"{reading}, {'weighed' if weigh else 'plain'}"
            print(markdown([label, *(table_cell(name, reading, weigh) for name in names)]), flush=True)
    return 0


def table_cell(name: str, reading: str, weigh: bool) -> str:
    say(f"headers: {name}, {reading}, {'weighed' if weigh else 'plain'}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about broken messages
        result = DATA[name](READINGS[reading], weigh)
    return f"{result.accuracy.value:.4f} / {result.log_loss:.4f}"


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks.headers", description=__doc__)
    command.add_argument("names", nargs="*", type=datasets.one_of(DATA), metavar="name", help=", ".join(DATA))
    return command


if __name__ == "__main__":
    raise SystemExit(main())
