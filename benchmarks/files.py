"""A model of 1,300,000 words in a file of about 100 MB: saved, loaded, and the first document answered, beside joblib."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import banbury as bb
from benchmarks import zipf
from benchmarks.measure import Figure, Setting, Task, WrongAnswer, in_turns, limited, same_classes, say

WORDS = 1_300_000
MORE = 760_000  # words of each class by Zipf's law, beside its share of all words
TOKENS = 200  # of the document that is asked for
FIRST_ANSWER = 0.150  # seconds
PEER = "joblib: CountVectorizer, MultinomialNB"


def tasks(setting: Setting) -> Iterator[Task | Figure]:
    texts, document = made(setting.rows(WORDS), setting.rows(MORE))
    model = bb.estimate(bb.count(texts, target=list(zipf.LABELS)))
    vectoriser = CountVectorizer()
    both = vectoriser, MultinomialNB().fit(vectoriser.fit_transform(texts), zipf.LABELS)
    with tempfile.TemporaryDirectory() as folder:
        yield from of_files(setting, Path(folder), model, both, document)


def of_files(setting: Setting, folder: Path, model: Any, both: Any, document: str) -> Iterator[Task | Figure]:
    ours, peers = folder / "it.banbury", folder / "it.joblib"
    words = model.tally.sums[0].table.n_words
    if words != len(both[0].vocabulary_):
        raise WrongAnswer(f"we know {words:,} words, and scikit-learn {len(both[0].vocabulary_):,}")
    bb.save(model, ours)
    joblib.dump(both, peers)
    sizes = [path.stat().st_size / 1e6 for path in (ours, peers)]
    what = f"{words:,} words, {zipf.CLASSES} classes, {sizes[0]:.0f} MB"

    def theirs() -> Any:
        vectoriser, peer = joblib.load(peers)
        return peer.predict(vectoriser.transform([document]))

    def same(answers: Mapping[str, Any]) -> str:
        found = {name: answered(answer, document) for name, answer in answers.items()}
        return same_classes(found)

    saving = lambda: bb.save(model, ours)  # noqa: E731
    yield Task("files", "save", what, saving, lambda _: "", lambda: joblib.dump(both, peers), PEER)
    yield Task("files", "load", what, lambda: bb.load(ours), same, lambda: joblib.load(peers), PEER)
    unseen = lambda: bb.load(ours, verify=False)  # noqa: E731
    yield Task("files", "load, verify=False", what, unseen, same)
    yield first_answer(setting, what, lambda: bb.load(ours).predict([document]), theirs)  # type: ignore[union-attr]
    yield Figure("files", "size", what, sizes[0], sizes[1], PEER, "", unit="MB")


def first_answer(setting: Setting, what: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> Figure:
    """From the file to the class of one document; the file is in the system's memory, as its last reader left it there."""
    say(f"files: load, then the first document, {what}")
    with limited(setting.threads):
        times, answers = in_turns({"ours": ours, "peer": theirs}, setting)
    aim = None if setting.small else FIRST_ANSWER
    name = "load, then the first document"
    return Figure("files", name, what, times["ours"], times["peer"], PEER, same_classes(answers), at_most=aim)


def answered(loaded: Any, document: str) -> Any:
    """What a loaded model says of the document."""
    if isinstance(loaded, bb.Model):
        return loaded.predict([document])
    vectoriser, peer = loaded
    return peer.predict(vectoriser.transform([document]))


def made(words: int, more: int) -> tuple[list[str], str]:
    """A long text per class: its share of all words, and words by Zipf's law, which begins elsewhere for every class."""
    rng = np.random.default_rng(21)
    vocabulary = np.array(zipf.vocabulary(words), dtype=object)
    shares = np.array_split(rng.permutation(words), zipf.CLASSES)
    drawn = [(zipf.zipf(rng, words, more) + c * 7_919) % words for c in range(zipf.CLASSES)]
    texts = [" ".join(vocabulary[np.concatenate(both)]) for both in zip(shares, drawn, strict=True)]
    return texts, " ".join(vocabulary[drawn[3][:TOKENS]])
