"""Several labels per row: `python -m benchmarks.labels` has Reuters-21578 labelled by Banbury and by scikit-learn.

The ModApte split: 9,603 stories to learn from, 3,299 to test on, and the 90 topics that both parts have; a story may have
none. A story is its title and its text. Everything is chosen on the stories to learn from. scikit-learn's learners answer one
topic against the rest, at their usual settings. Learners take turns of a second or more, and their least times are kept;
reading the file is not timed, all else is (finding words, choosing thresholds). Ten folds are those of ``bb.cross_validate``,
exact: each story is scored by a model that has not counted it, and its thresholds are chosen on stories of other folds.

`--many` times made-up texts of 43 words, with three of 100, 1,000 and 10,000 labels each, instead.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import banbury as bb
from benchmarks import datasets, machine
from benchmarks.measure import say
from benchmarks.when_not import line

DATA = "reuters21578"
HEADINGS = ["learner", "micro F1", "macro F1", "fit", "predict"]
STORY = re.compile(r"<REUTERS(.*?)>(.*?)</REUTERS>", re.S)
ALPHA = 0.01
Sets = list[list[str]]


@dataclass(frozen=True)
class Stories:
    """Texts, and the topics of each."""

    texts: list[str]
    topics: Sets

    def __len__(self) -> int:
        return len(self.texts)

    def some(self, n: int) -> Stories:
        return Stories(self.texts[:n], self.topics[:n])


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.many:
        print(f"{machine.description()}; {machine.versions()}\n")
        print(line(MANY_HEADINGS), line(["---"] * len(MANY_HEADINGS)), sep="\n")
        for n_labels in (100, 1_000, 10_000):
            print(line(many(n_labels, 20_000, options.repeats)), flush=True)
        return 0
    if not datasets.there(DATA):
        say(datasets.UNSET)
        return 1
    train, test = reuters()
    print(f"{machine.description()}; {machine.versions()}")
    print(f"\n{len(train):,} stories learned, {len(test):,} tested, {len(names_of(train)):,} topics\n")
    print(line(HEADINGS), line(["---"] * len(HEADINGS)), sep="\n")
    for cells in measured(train, test, options.repeats):
        print(line(cells))
    print("\n" + "\n".join(folds(train, test, options.repeats)))
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__)
    made.add_argument("--repeats", type=int, default=2, help="turns of every learner (2)")
    made.add_argument("--many", action="store_true", help="time many labels of texts that are made up")
    return made


def reuters() -> tuple[Stories, Stories]:
    """The stories to learn from and to test on, with the topics that both parts have."""
    parts: dict[str, list[tuple[str, list[str]]]] = {"TRAIN": [], "TEST": []}
    (archive,) = (Path(os.environ["BANBURY_DATA"]) / DATA).glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        files = sorted((m for m in tar if m.name.endswith(".sgm")), key=lambda member: member.name)
        for content in (tar.extractfile(member).read().decode("latin-1") for member in files):  # type: ignore[union-attr]
            for about, story in STORY.findall(content):
                part = re.search(r'LEWISSPLIT="(.*?)"', about)[1]  # type: ignore[index]
                if 'TOPICS="YES"' in about and part in parts:
                    parts[part].append((text_of(story), re.findall("<D>(.*?)</D>", tagged(story, "TOPICS"))))
    both = set.intersection(*({topic for _, own in part for topic in own} for part in parts.values()))
    train, test = (
        Stories(
            [text for text, _ in part], [[topic for topic in dict.fromkeys(own) if topic in both] for _, own in part]
        )
        for part in parts.values()
    )
    return train, test


def tagged(story: str, tag: str) -> str:
    found = re.search(f"<{tag}(?: [^>]*)?>(.*?)</{tag}>", story, re.S)
    return found[1] if found else ""


def text_of(story: str) -> str:
    """The title and the text; of stories that are a text alone, that."""
    body = tagged(story, "BODY") or re.sub("<.*?>", " ", tagged(story, "TEXT"))
    return html.unescape(f"{tagged(story, 'TITLE')}\n{body}")


def names_of(stories: Stories) -> list[str]:
    return sorted({topic for own in stories.topics for topic in own})


def flags(sets: Any, names: list[str]) -> Any:
    place = {name: k for k, name in enumerate(names)}
    found = np.zeros((len(sets), len(names)), dtype=np.int64)
    for row, own in enumerate(sets):
        found[row, [place[name] for name in own]] = 1
    return found


class Counted:
    """A model of the counts alone, with thresholds of one half."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def fit(self, texts: list[str], sets: Sets) -> Counted:
        self.model = bb.LabelModel.of(bb.count(texts, target=sets), alpha=self.alpha)
        return self

    def predict(self, texts: list[str]) -> Any:
        return self.model.predict(texts)


@dataclass(frozen=True)
class Learner:
    """How it is made, and whether it takes sets of labels; it takes flags otherwise."""

    make: Callable[[], Any]
    sets: bool = False


LEARNERS = {
    "Banbury, counted, and nothing chosen": Learner(lambda: Counted(1.0), True),
    "Banbury, plain, α and thresholds chosen": Learner(lambda: bb.MultiLabelClassifier(weigh=False), True),
    "Banbury, weighed (as it comes)": Learner(bb.MultiLabelClassifier, True),
    "multinomial naive Bayes on counts, one against the rest": Learner(
        lambda: make_pipeline(CountVectorizer(), OneVsRestClassifier(MultinomialNB()))
    ),
    "complement naive Bayes on TF-IDF, one against the rest": Learner(
        lambda: make_pipeline(TfidfVectorizer(), OneVsRestClassifier(ComplementNB()))
    ),
    "linear support vectors on TF-IDF, one against the rest": Learner(
        lambda: make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LinearSVC(random_state=0)))
    ),
}


def measured(train: Stories, test: Stories, repeats: int) -> Iterator[list[str]]:
    """The rows of the table."""
    names = names_of(train)
    truth, answers = flags(test.topics, names), dict[str, Any]()
    least = dict.fromkeys(LEARNERS, (np.inf, np.inf))
    for turn in range(repeats):
        for name, learner in LEARNERS.items():
            say(f"labels: {name}, turn {turn + 1}")
            target: Any = train.topics if learner.sets else flags(train.topics, names)
            made = learner.make()
            fitted, made = quickest(lambda made=made, target=target: made.fit(train.texts, target))  # type: ignore[misc]
            predicted, found = quickest(lambda made=made: made.predict(test.texts), 0.0)  # type: ignore[misc]
            least[name] = min(least[name][0], fitted), min(least[name][1], predicted)
            answers[name] = flags(found, names) if learner.sets else found
    for name, found in answers.items():
        micro, macro = (f1_score(truth, found, average=how, zero_division=0) for how in ("micro", "macro"))
        yield [name, f"{micro:.3f}", f"{macro:.3f}", *(f"{seconds:.2g} s" for seconds in least[name])]


def quickest(run: Callable[[], Any], enough: float = 1.0) -> tuple[float, Any]:
    """The least time of runs until they took a second together, and what the last one gave."""
    least, spent = np.inf, 0.0
    while True:
        start = time.perf_counter()
        answer = run()
        seconds = time.perf_counter() - start
        least, spent = min(least, seconds), spent + seconds
        if spent >= enough:
            return least, answer


def folds(train: Stories, test: Stories, repeats: int) -> Iterator[str]:
    """Ten exact folds of a plain classifier beside one fit and one prediction of it, at one half and at thresholds chosen."""
    for said, threshold in (("thresholds of one half", None), ("thresholds chosen within each fold", "f1")):
        once, ten, found = np.inf, np.inf, None
        for _ in range(max(repeats, 3)):
            clf: Any = bb.MultiLabelClassifier(weigh=False, alpha=ALPHA) if threshold else Counted(ALPHA)
            start = time.perf_counter()
            clf.fit(train.texts, train.topics).predict(test.texts)
            once = min(once, time.perf_counter() - start)
            start = time.perf_counter()
            found = bb.cross_validate(train.texts, train.topics, folds=10, alpha=ALPHA, threshold=threshold)
            ten = min(ten, time.perf_counter() - start)
        assert found is not None
        yield f"ten exact folds, plain, α = {ALPHA}, {said}: {ten:.2g} s; fit and predict: {once:.2g} s; ratio {ten / once:.1f}"
        yield f"  micro F1 {found.micro_f1:.3f}, macro F1 {found.macro_f1:.3f} on the stories to learn from, each held out"


MANY_HEADINGS = ["labels", "pairs of word and label", "count 20,000 texts", "score a text"]


def many(n_labels: int, n_texts: int, repeats: int) -> list[str]:
    """A row of the table of many labels: words of any text after Zipf, and one that only texts of a label have."""
    rng = np.random.default_rng(0)
    sets = [[f"t{k}" for k in set(row)] for row in rng.integers(0, n_labels, (n_texts, 3)).tolist()]
    words = np.minimum(rng.zipf(1.3, (n_texts, 40)), 50_000).tolist()
    texts = [
        " ".join([*(f"w{w}" for w in row), *(f"own{k}" for k in own)]) for row, own in zip(words, sets, strict=True)
    ]
    counted, scored, some = np.inf, np.inf, texts[:2_000]
    for _ in range(repeats):
        start = time.perf_counter()
        tally = bb.count(texts, target=sets)
        counted = min(counted, time.perf_counter() - start)
        model = bb.LabelModel.of(tally, alpha=ALPHA)
        model.posterior(some[:1])  # what words say of labels is made once
        start = time.perf_counter()
        model.posterior(some)
        scored = min(scored, time.perf_counter() - start)
    (words_said,) = model._words
    pairs = f"{len(words_said.labels):,}"
    return [f"{n_labels:,}", pairs, f"{counted:.2g} s", f"{1e6 * scored / len(some):.0f} µs"]


if __name__ == "__main__":
    sys.exit(main())
