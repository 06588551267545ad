"""Other trainers of text classifiers, each where it is installed: Vowpal Wabbit, fastText and bogofilter.

    pip install vowpalwabbit fasttext-wheel        apt-get install bogofilter

Vowpal Wabbit and fastText read files of words that someone else has found, so their time is given without and with that.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

import banbury as bb
from benchmarks import applications, datasets
from benchmarks.measure import Figure, Setting, in_turns, ours_on, say

if TYPE_CHECKING:
    from benchmarks.text import Corpus

BENCHMARK = "text, other trainers"
LEARNING_RATE = 0.5  # of fastText; its own is 0.1
BITS = 18  # of Vowpal Wabbit's weights


@dataclass(frozen=True)
class Trainer:
    """A trainer that learns from a file of words, a document a line, and says how often it is right on another."""

    name: str
    module: str  # that Python imports
    package: str  # that pip installs
    settings: str
    line: Callable[[int, str], str]  # a class from 0 on and the words, as it reads them
    run: Callable[[Path, int, int], Any]  # file, number of classes, threads
    right: Callable[[Any, Path, NDArray[np.int64]], float]
    once: bool = False  # it is too slow to have more than one turn

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    def title(self) -> str:
        return f"{self.name} {importlib.metadata.version(self.package)}, {self.settings}"


def figures(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """Each trainer on the same documents as ours."""
    fit = ours_on(setting.threads, lambda: bb.NaiveBayesClassifier().fit(corpus.texts, corpus.labels))
    times, answers = in_turns({"ours": fit}, setting)
    right = f"ours {np.mean(answers['ours'].predict(corpus.held) == corpus.held_labels):.1%} right"
    task = f"fit, {setting.threads} thread{'s' * (setting.threads > 1)}"
    ours = Figure(BENCHMARK, task, corpus.to_learn, times["ours"], None, "", right)
    installed = [trainer for trainer in TRAINERS if trainer.installed]
    for trainer in TRAINERS:
        if trainer not in installed:
            say(f"text: {trainer.name} is not installed (pip install {trainer.package})")
            yield replace(ours, peer_name=f"{trainer.name}: not installed")
    if installed:
        say("text: words for the other trainers")
        found, held = words(corpus.texts), words(corpus.held)
        for trainer in installed:
            yield from of_trainer(trainer, corpus, found, held[0], ours, setting)


def of_trainer(
    trainer: Trainer, corpus: Corpus, found: tuple[list[str], float], held: list[str], ours: Figure, setting: Setting
) -> Iterator[Figure]:
    """Its time without and with finding the words, and how often it is right."""
    say(f"text: {trainer.title()}")
    labels, codes = np.unique(corpus.labels, return_inverse=True)
    truth = np.searchsorted(labels, corpus.held_labels)
    turns = replace(setting, repeats=1) if trainer.once else setting
    with tempfile.TemporaryDirectory() as folder:
        train, test = Path(folder) / "train.txt", Path(folder) / "test.txt"
        writing = written(train, trainer, codes, found[0])
        written(test, trainer, truth, held)
        times, answers = in_turns({"peer": lambda: trainer.run(train, len(labels), setting.threads)}, turns)
        agreement = f"{trainer.right(answers['peer'], test, truth):.1%} right, {ours.agreement}"
    alone, whole = times["peer"], times["peer"] + found[1] + writing
    yield replace(ours, peer=alone, peer_name=f"{trainer.title()}: training alone", agreement=agreement)
    yield replace(ours, peer=whole, peer_name=f"{trainer.name}: with finding the words", agreement=agreement)


def words(texts: Sequence[str]) -> tuple[list[str], float]:
    """The words of each text, parted by blanks, and the seconds it took to find them, in Python's own way."""
    start = time.perf_counter()
    analyse = CountVectorizer().build_analyzer()
    return [" ".join(analyse(text)) for text in texts], time.perf_counter() - start


def written(path: Path, trainer: Trainer, codes: NDArray[np.int64], found: Sequence[str]) -> float:
    """Writes the file that a trainer reads; gives the seconds that took."""
    start = time.perf_counter()
    with path.open("w", encoding="utf-8") as file:
        file.writelines(trainer.line(code, text) for code, text in zip(codes.tolist(), found, strict=True))
    return time.perf_counter() - start


def _train_vowpal_wabbit(path: Path, classes: int, threads: int) -> Any:
    import vowpalwabbit

    return vowpalwabbit.Workspace(f"--oaa {classes} -b {BITS} --loss_function logistic --no_stdin --quiet -d {path}")


def _right_by_vowpal_wabbit(model: Any, path: Path, codes: NDArray[np.int64]) -> float:
    lines = path.read_text(encoding="utf-8").splitlines()
    predicted = [model.predict(line.split(" ", 1)[1]) - 1 for line in lines]
    model.finish()
    return float(np.mean(np.array(predicted) == codes))


def _train_fasttext(path: Path, classes: int, threads: int) -> Any:
    import fasttext

    return fasttext.train_supervised(str(path), lr=LEARNING_RATE, thread=threads, verbose=0)


def _right_by_fasttext(model: Any, path: Path, codes: NDArray[np.int64]) -> float:
    n, right, _ = model.test(str(path))
    return float(right * n / len(codes))  # it leaves out what has no word it knows


VOWPAL_WABBIT = Trainer(
    "Vowpal Wabbit",
    "vowpalwabbit",
    "vowpalwabbit",
    f"one pass, {BITS} bits",
    lambda code, text: f"{code + 1} | {text}\n",
    _train_vowpal_wabbit,
    _right_by_vowpal_wabbit,
)
FASTTEXT = Trainer(
    "fastText",
    "fasttext",
    "fasttext-wheel",
    f"learning rate {LEARNING_RATE}",
    lambda code, text: f"__label__{code} {text}\n",
    _train_fasttext,
    _right_by_fasttext,
    once=True,
)
TRAINERS = (VOWPAL_WABBIT, FASTTEXT)


# Mail: bogofilter ----------------------------------------------------------------------------------------------------


def mail(setting: Setting) -> Iterator[Figure]:
    """SpamAssassin's mail, two thirds learned and one third predicted, from files."""
    if not datasets.there("spamassassin"):
        say(f"text: SpamAssassin's mail is left out; {datasets.UNSET}")
        return
    with applications.mail(step=50 if setting.small else 1) as files:
        yield registered(files.train, files.test, setting)


def registered(train: Path, test: Path, setting: Setting) -> Figure:
    learn = ours_on(setting.threads, lambda: bb.estimate(bb.count(str(train), "class")))
    engines: dict[str, Callable[[], Any]] = {"ours": learn}
    if shutil.which("bogofilter"):
        engines["peer"] = lambda: register(train)
    say("text: mail, beside bogofilter")
    times, answers = in_turns(engines, setting)
    files = sorted(path for path in test.rglob("*") if path.is_file())
    truth = np.array([path.parent.name for path in files])
    ours = np.asarray(answers["ours"].predict(str(test)))
    agreement = (
        f"ours {np.mean(ours == applications.texts_of(test)[1]):.1%} right, majority {np.mean(truth == 'ham'):.1%}"
    )
    if "peer" in engines:
        theirs = classified(answers["peer"].name, files)
        agreement += f", bogofilter {np.mean(theirs == truth):.1%}"
        answers["peer"].cleanup()
    learned = [path for path in train.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in learned)
    what = f"SpamAssassin, {size / 1e6:.1f} MB, {len(learned):,} mails, 2 classes"
    name = f"bogofilter {bogofilter_version()}, one thread" if "peer" in engines else "bogofilter: not installed"
    return Figure(BENCHMARK, "mail from files", what, times["ours"], times.get("peer"), name, agreement)


def register(train: Path) -> Any:
    """A folder with bogofilter's words of all mails."""
    folder = tempfile.TemporaryDirectory()
    for kind, flag in ("ham", "-n"), ("spam", "-s"):
        names = "".join(f"{path}\n" for path in sorted((train / kind).iterdir()))
        subprocess.run(["bogofilter", "-d", folder.name, flag, "-b"], input=names, text=True, check=True)
    return folder


def classified(folder: str, files: Sequence[Path]) -> NDArray[np.str_]:
    """Bogofilter's answers: spam where its score is above one half, so that it is never unsure."""
    names = "".join(f"{path}\n" for path in files)
    command = ["bogofilter", "-d", folder, "-b", "-T", "-T"]
    done = subprocess.run(command, input=names, text=True, stdout=subprocess.PIPE)  # its exit status is an answer
    scores = [float(re.split(r"\s+", line.strip())[-1]) for line in done.stdout.splitlines()]
    return np.where(np.array(scores) > 0.5, "spam", "ham")


def bogofilter_version() -> str:
    done = subprocess.run(["bogofilter", "-V"], capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"})
    return (done.stdout + done.stderr).split("\n", 1)[0].split()[-1]
