"""A billion words: `python -m benchmarks.billion` counts them from a stream that is on no disk, saves, loads and evaluates.

The law of the stream: a word is the r-th most frequent one or a rarer one with a chance of (1 + r / 3) ** -0.25, so that words
that were never seen before come all the time. The first 40,000 are written in syllables; a rarer word is drawn when it is met, of
eight letters. Each class draws one word in fifty from 2,000 words of its own. The most probable class by this very law is what no
classifier betters.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

import banbury as bb
from banbury.threads import n_threads
from benchmarks import machine
from benchmarks.measure import WrongAnswer, limited, say
from benchmarks.memory import forget_peak, peak

CLASSES, LENGTH = 10, 200  # words of a document, on average
FLAT, TAIL = 3.0, 0.25  # of the law
HEAD = 40_000  # words that have a number
OWN, SHARE = 2_000, 0.02  # words that a class has of its own, and how many of its words are drawn from them
DRAWS = 1 << 20  # equally probable cells that a word is drawn from
LETTERS = 8  # of a rarer word
BATCH = 4_000_000  # words
OFTEN = 5  # times that a part of the stream has a word that is counted by its name
LABELS = pa.array([f"class{c}" for c in range(CLASSES)])


@cache
def head() -> pa.StringArray:
    """The frequent words: one syllable or two, and consonants at the end, which tell where syllables begin."""
    syllables = ["".join(pair) for pair in product("bcdfghjklmnprstvwxyz", "aeiou")]
    ends = ("n", "st", "rk", "lms")
    words = [s + end for s in syllables for end in ends]
    words += [a + b + end for a, b in product(syllables, syllables) for end in ends]
    return pa.array(words[:HEAD])


@cache
def draws() -> NDArray[np.uint16]:
    """(CLASSES, DRAWS): numbers of words, HEAD for a rarer one; a word is as probable as it has cells."""
    rng = np.random.default_rng(5)
    at_least = (1 + np.arange(HEAD + 1) / FLAT) ** -TAIL
    common = _cells(np.append(at_least[:-1] - at_least[1:], at_least[-1]), DRAWS - int(SHARE * DRAWS))
    own = _cells(1 / np.arange(10, OWN + 10), int(SHARE * DRAWS))
    special = np.array([rng.choice(np.arange(200, HEAD), OWN, replace=False) for _ in range(CLASSES)])
    cells = [np.concatenate([np.repeat(np.arange(HEAD + 1), common), np.repeat(each, own)]) for each in special]
    return np.array(cells, dtype=np.uint16)


def _cells(shares: NDArray[np.float64], cells: int) -> NDArray[np.int64]:
    """So many cells, dealt out by these shares."""
    ends = np.round(np.cumsum(shares) / shares.sum() * cells).astype(np.int64)
    return np.diff(ends, prepend=0)


class Block(NamedTuple):
    """Some documents; ``numbers`` are those of their words, which of document i end at ``ends[i]``."""

    table: pa.Table
    classes: NDArray[np.int64]
    numbers: NDArray[np.uint16]
    ends: NDArray[np.int32]

    @property
    def size(self) -> int:
        """Bytes of text."""
        return int(pc.sum(pc.binary_length(self.table["text"])).as_py())


def block(seed: Sequence[int], words: int) -> Block:
    """Documents of so many words in all."""
    rng = np.random.Generator(np.random.SFC64(list(seed)))
    ends = np.cumsum(rng.integers(LENGTH // 2, LENGTH + LENGTH // 2, 1 + 2 * words // LENGTH))
    ends = np.append(ends[ends < words], words).astype(np.int32)
    lengths, classes = np.diff(ends, prepend=0), rng.integers(0, CLASSES, len(ends))
    cells = rng.integers(0, DRAWS, words, dtype=np.uint32)
    numbers = draws().reshape(-1)[cells + np.repeat((classes * DRAWS).astype(np.uint32), lengths)]
    rare = np.flatnonzero(numbers == HEAD)
    places = numbers.astype(np.int32)
    places[rare] += np.arange(len(rare), dtype=np.int32)
    spelled = pa.concat_arrays([head(), fresh(rng, len(rare))]).take(pa.array(places))
    texts = pc.binary_join(pa.ListArray.from_arrays(pa.array(np.insert(ends, 0, 0)), spelled), " ")
    table = pa.table({"text": texts, "class": LABELS.take(pa.array(classes))})
    return Block(table, classes, numbers, ends)


def fresh(rng: np.random.Generator, n: int) -> pa.StringArray:
    """So many rarer words, by the law: the more, the more were never seen before."""
    share = (1 + HEAD / FLAT) ** -TAIL * (1.0 - rng.random(n))
    ranks = np.minimum(FLAT * (share ** (-1 / TAIL) - 1), 2.0**62).astype(np.int64)
    letters = np.empty((n, LETTERS), dtype=np.uint8)
    for k in range(LETTERS):
        letters[:, k] = 97 + ranks % 26
        ranks //= 26
    offsets = np.arange(0, LETTERS * (n + 1), LETTERS, dtype=np.int32)
    return pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(letters))


def best_classes(made: Block) -> NDArray[np.int64]:
    """The most probable class of each document by the law itself."""
    cells = np.array([np.bincount(each, minlength=HEAD + 1) for each in draws()])
    with np.errstate(divide="ignore"):
        logs = np.log(cells).T
    return np.add.reduceat(logs[made.numbers], np.insert(made.ends[:-1], 0, 0)).argmax(axis=1)


class Stream:
    """Documents of so many words, made while they are asked for; how many words and bytes of text that were."""

    def __init__(self, seed: int, words: int) -> None:
        self.seed, self.asked = seed, words
        self.words = self.size = 0

    def __iter__(self) -> Iterator[pa.Table]:
        return (made.table for made in self.blocks())

    def blocks(self) -> Iterator[Block]:
        self.words = self.size = 0
        start, told = time.perf_counter(), 0.0
        for i, done in enumerate(range(0, self.asked, BATCH)):
            made = block((self.seed, i), min(BATCH, self.asked - done))
            self.words, self.size = self.words + len(made.numbers), self.size + made.size
            if (passed := time.perf_counter() - start) > told + 10:
                say(f"billion: {self.words / 1e6:,.0f} million words, {passed:,.0f} s")
                told = passed
            yield made


class Line(NamedTuple):
    """What was done to how many words and bytes of text, the seconds it took, and the most memory the process held meanwhile."""

    task: str
    words: int
    size: int
    seconds: float
    memory: int
    note: str = ""

    def __str__(self) -> str:
        speed = (
            f"{self.words / self.seconds / 1e6:,.1f} | {self.size / self.seconds / 1e6:,.0f}" if self.words else " | "
        )
        return f"| {self.task} | {self.seconds:,.2f} | {speed} | {self.memory / 1e6:,.0f} | {self.note} |"


HEADER = "| | s | million words/s | MB/s | peak, MB | |\n|---|---|---|---|---|---|"
Timed = tuple[Any, float, int]


def timed(work: Callable[..., Any], *arguments: Any) -> Timed:
    """What came of it, the seconds, and the peak of memory."""
    gc.collect()
    forget_peak()
    start = time.perf_counter()
    done = work(*arguments)
    return done, time.perf_counter() - start, peak()


def lines(words: int, seed: int, path: Path) -> Iterator[Line]:
    """Line by line what is done; raises WrongAnswer where it went wrong."""
    few = Stream(seed, max(words // 100, 100_000))
    first, *cost = timed(lambda: bb.count(few, "class", features={"text": bb.Text()}))
    if (found := float(first.of("text").occurrences.value.sum())) != few.words:
        raise WrongAnswer(f"{found:,.0f} words were counted of {few.words:,}")
    test = Stream(seed + 1, max(words // 100, 100_000))
    yield Line("counting all words of a hundredth", few.words, few.size, *cost, quality(first, test))
    often = bb.estimate(first, features={"text": bb.Text(min_count=OFTEN)}).linear().words
    family = bb.Text(only=often)
    del first

    def count(tables: Any, threads: int | None = None) -> bb.Tally:
        return bb.count(tables, "class", features={"text": family}, threads=threads)

    say(f"the stream is counted by the {len(often):,} words that the hundredth has {OFTEN} times")
    whole = Stream(seed, words)
    tally, *cost = timed(count, whole)
    what = f"{whole.words:,} words, {whole.size / 1e9:.2f} GB, {tally.n_rows:,} documents"
    yield Line("**counting the stream while it is made**", whole.words, whole.size, *cost, what)
    _, *cost = timed(bb.save, tally, str(path))
    yield Line("saving the tally", 0, 0, *cost, f"a file of {path.stat().st_size / 1e6:,.1f} MB")
    loaded, *cost = timed(bb.load, str(path))
    if loaded != tally:
        raise WrongAnswer("the tally that was loaded is not the one that was saved")
    yield Line("loading it", 0, 0, *cost, "equal")
    model, *cost = timed(bb.estimate, loaded)
    yield Line("estimating", 0, 0, *cost)
    found, *cost = timed(bb.evaluate, model, test)
    best = [best_classes(made) == made.classes for made in test.blocks()]
    what = f"{found.accuracy.value:.2%} right of {len(found.rows):,} documents, by the law {np.concatenate(best).mean():.2%}"
    yield Line("evaluating on other documents", test.words, test.size, *cost, what)
    part = Stream(seed, min(words, 10 * BATCH))
    held, *cost = timed(list, part)
    yield Line("making a part of the stream, which is held", part.words, part.size, *cost)
    for threads in (1, n_threads(None)):
        _, *cost = min((timed(count, held, threads) for _ in range(3)), key=lambda found: found[1])
        yield Line(f"counting it, threads: {threads}, least of three", part.words, part.size, *cost)


def quality(tally: bb.Tally, test: Stream) -> str:
    """How many words a tally has, and how good its model is."""
    right, table = bb.evaluate(bb.estimate(tally), test).accuracy.value, tally.of("text").table
    return f"{table.n_words:,} words, {right:.2%} right"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    head(), draws()
    neighbours = machine.Neighbours()
    print(f"{machine.description()}; {machine.versions()}; {options.threads} threads")
    print(f"before anything is counted the process holds {peak() / 1e6:,.0f} MB\n\n{HEADER}", flush=True)
    with limited(options.threads), tempfile.TemporaryDirectory() as folder:
        for line in lines(int(options.words), options.seed, Path(folder) / "billion.banbury"):
            print(line, flush=True)
    if (share := neighbours.share()) is not None:
        print(f"\nOther processes took {share:.0%} of the machine.")
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.billion", description=__doc__)
    made.add_argument("--words", type=float, default=1e9, help="how many (1e9); 1e7 takes seconds")
    made.add_argument("--threads", type=int, default=2, help="of counting (2)")
    made.add_argument("--seed", type=int, default=0)
    return made


if __name__ == "__main__":
    sys.exit(main())
