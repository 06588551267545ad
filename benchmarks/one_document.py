"""What one document costs when 20 classes × 262,144 words are known: predicted, learned, and both in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import banbury as bb
from benchmarks import zipf
from benchmarks.measure import Figure, Setting, WrongAnswer, in_turns, limited, say

WORDS = 2**18
TOKENS = 100  # of the document
AT_MOST = {"model.predict": 20e-6, "predict": 25e-6, "partial_fit": 100e-6, "partial_fit, then predict": 120e-6}
PLUS_ITS_WORDS = "model.predict"  # its aim is for the call alone


def figures(setting: Setting) -> Iterator[Figure]:
    """On one thread, as one document has no use for more."""
    say("text: one document")
    with limited(1):
        yield from on_one_thread(setting)


def on_one_thread(setting: Setting) -> Iterator[Figure]:
    words = setting.rows(WORDS)
    texts, labels = known(words)
    document, label = one(words)
    ours = bb.NaiveBayesClassifier().fit(texts, labels)
    model = ours.model_
    vectoriser = HashingVectorizer(n_features=WORDS, alternate_sign=False, norm=None)
    peer = MultinomialNB().partial_fit(vectoriser.transform(texts), labels, classes=zipf.LABELS)
    both = make_pipeline(vectoriser, peer)
    check(ours, both, document)

    def ours_in_turn() -> Any:
        return ours.partial_fit([document], [label]).predict([document])

    def peer_learns() -> Any:
        return peer.partial_fit(vectoriser.transform([document]), [label])

    def peer_in_turn() -> Any:
        peer_learns()
        return both.predict([document])

    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "model.predict": (lambda: model.predict([document]), lambda: both.predict([document])),
        "predict": (lambda: ours.predict([document]), lambda: both.predict([document])),
        "partial_fit": (lambda: ours.partial_fit([document], [label]), peer_learns),
        "partial_fit, then predict": (ours_in_turn, peer_in_turn),
    }
    tokens = seconds_of_tokens(model, document, setting)
    for task, (mine, theirs) in pairs.items():
        times, _ = in_turns({"ours": mine, "peer": theirs}, setting)
        what = f"{TOKENS} words; {zipf.CLASSES} classes × {words:,} words known"
        aim = None if setting.small else AT_MOST[task] + tokens * (task == PLUS_ITS_WORDS)
        agreement = f"its words alone {tokens * 1e6:.0f} µs"
        name = "HashingVectorizer, MultinomialNB"
        yield Figure("text, one document", task, what, times["ours"], times["peer"], name, agreement, at_most=aim)


def known(words: int) -> tuple[list[str], NDArray[np.str_]]:
    """A text per class with every word in it, and again some words of its own: every pair of word and class occurs."""
    vocabulary = np.array(zipf.vocabulary(words), dtype=object)
    rng = np.random.default_rng(11)
    own = [vocabulary[leaning(rng, c, words, words // 4)] for c in range(zipf.CLASSES)]
    return [" ".join([*vocabulary, *more]) for more in own], zipf.LABELS


def one(words: int) -> tuple[str, str]:
    """A document and its class."""
    vocabulary = np.array(zipf.vocabulary(words), dtype=object)
    return " ".join(vocabulary[leaning(np.random.default_rng(12), 3, words, TOKENS)]), str(zipf.LABELS[3])


def leaning(rng: np.random.Generator, c: int, words: int, size: int) -> NDArray[np.int64]:
    """Words by Zipf's law, which begins elsewhere for every class."""
    return (zipf.zipf(rng, words, size) + c * words // zipf.CLASSES) % words


def seconds_of_tokens(model: Any, document: str, setting: Setting) -> float:
    """What the document costs among many, where the call itself costs nothing."""
    many = [document] * 1000
    times, _ = in_turns({"many": lambda: model.predict(many)}, setting)
    return times["many"] / len(many)


def check(ours: Any, peer: Any, document: str) -> None:
    """Both say the same class of the document and of shorter ones, but for words that share a bucket."""
    words = document.split(" ")
    texts = [" ".join(words[start:]) for start in range(0, TOKENS, 5)]
    same = float(np.mean(ours.predict(texts) == peer.predict(texts)))
    if same < 0.95:
        raise WrongAnswer(f"one document: the same class for {same:.0%} of the texts")
