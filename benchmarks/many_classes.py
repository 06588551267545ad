"""A thousand classes × a million words, 20 million pairs of which occur: the memory to train, save, load and score them.

Only when asked for by name. The texts are made batch by batch and never held at once.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Figure, Setting, WrongAnswer, say
from benchmarks.memory import forget_peak, in_child, peak

CLASSES, WORDS, PER_CLASS = 1_000, 1_000_003, 20_000  # a prime number of words
BATCHES = 20  # each with a document per class
AT_MOST = 1500.0  # MB
STAGES = ("train", "save", "load", "score")


def tasks(setting: Setting) -> Iterator[Figure]:
    classes = CLASSES // 20 if setting.small else CLASSES
    say(f"many classes: {classes:,} classes × {WORDS:,} words")
    report = in_child("many_classes", str(classes), threads=setting.threads)
    if report["pairs"] != classes * PER_CLASS:
        raise WrongAnswer(f"{report['pairs']:,} pairs were counted of {classes * PER_CLASS:,}")
    if report["right"] < 0.99:
        raise WrongAnswer(f"{report['right']:.1%} of the documents are given their class")
    what = f"{classes:,} classes × {report['words']:,} words, {report['pairs'] / 1e6:.0f} million pairs"
    aim = None if setting.small else AT_MOST
    for stage in STAGES:
        megabytes, seconds = report[stage]["peak"] / 1e6, report[stage]["seconds"]
        seen = f"{seconds:.1f} s" + (f"; {report['right']:.1%} right" if stage == "score" else "")
        seen += f"; the file has {report['file'] / 1e6:.0f} MB" if stage == "save" else ""
        yield Figure("many_classes", f"peak, {stage}", what, megabytes, None, "", seen, at_most=aim, unit="MB")


def words_of(classes: NDArray[np.int64], start: int, end: int) -> NDArray[np.int64]:
    """Words start .. end of those that each class has, (classes, end - start): different ones, because WORDS is prime."""
    first, step = classes[:, None] * 7_919 + 17, classes[:, None] * 104_729 % (WORDS - 1) + 1
    return (first + step * np.arange(start, end)) % WORDS


def texts(numbers: NDArray[np.int64]) -> list[str]:
    return [" ".join(map("w{:x}".format, row)) for row in numbers.tolist()]


def batches(classes: int) -> Iterator[tuple[list[str], NDArray[np.int64]]]:
    every, size = np.arange(classes), PER_CLASS // BATCHES
    for start in range(0, PER_CLASS, size):
        yield texts(words_of(every, start, start + size)), every


def run(n_classes: int) -> dict[str, Any]:
    import banbury as bb

    report: dict[str, Any] = {}

    def noted(stage: str, since: float) -> None:
        report[stage] = {"peak": peak(), "seconds": time.perf_counter() - since}
        forget_peak()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.banbury"
        start = time.perf_counter()
        learner = bb.NaiveBayesClassifier()
        for documents, labels in batches(n_classes):
            learner.partial_fit(documents, labels)
        model = learner.model_
        noted("train", start)
        report |= {"words": model.tally.sums[0].table.n_words, "pairs": n_pairs(model.tally)}
        del learner
        forget_peak()
        start = time.perf_counter()
        bb.save(model, str(path))
        noted("save", start)
        report["file"] = path.stat().st_size
        del model
        gc.collect()
        forget_peak()
        start = time.perf_counter()
        loaded = bb.load(str(path))
        noted("load", start)
    every = np.arange(n_classes)
    held = texts(words_of(every, 0, PER_CLASS)[:, :: PER_CLASS // 100])  # a hundred words of each class
    forget_peak()
    start = time.perf_counter()
    report["right"] = float(np.mean(np.asarray(loaded.predict(held)) == every))
    noted("score", start)
    return report


def n_pairs(tally: Any) -> int:
    """Pairs of word and class that occur, counted some words at a time."""
    table = tally.sums[0].table
    cuts = range(0, table.n_ids, 1 << 16)
    ids = (np.arange(start, min(start + (1 << 16), table.n_ids), dtype=np.uint32) for start in cuts)
    return sum(len(table.pairs(some)[1]) for some in ids)


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]))))
