"""Text from raw strings: 70 MB by Zipf's law and 20 Newsgroups beside scikit-learn's vectorisers; and one document at a time.

scikit-learn's vectorisers use one thread, so their time stands beside ours on one thread and on all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import banbury as bb
from benchmarks import datasets, synthetic
from benchmarks.datasets import Part
from benchmarks.measure import Figure, Peer, Setting, compare, limit_threads, same_classes, say

VECTORISER = "CountVectorizer, MultinomialNB"
PAIRS = (1, 2)  # single words and pairs of words
KNOWN = 2**18  # words that the model of one document knows
TOKENS = 100  # of the document


def figures(setting: Setting) -> Iterator[Figure]:
    train = Part(*synthetic.texts(setting.rows(synthetic.DOCUMENTS)))
    test = Part(*synthetic.texts(setting.rows(synthetic.DOCUMENTS // 4), seed=10))
    yield from fit_and_predict("Zipf", train, test, setting)
    # scikit-learn takes minutes to find the pairs of words in all documents.
    eighth = train.take(np.arange(len(train) // 8))
    yield from fit("Zipf", eighth, test, setting, ngrams=PAIRS)
    if datasets.has_data("20news-bydate"):
        train, test = datasets.newsgroups(step=50 if setting.small else 1)
        yield from fit_and_predict("20 Newsgroups", train, test, setting)
    else:
        say(f"text: 20 Newsgroups are left out; {datasets.UNSET}")
    with limit_threads(1):
        yield from one_document(setting)


def fit_and_predict(name: str, train: Part, test: Part, setting: Setting) -> Iterator[Figure]:
    yield from fit(name, train, test, setting)
    ours = bb.NaiveBayesClassifier().fit(train.rows, train.labels)
    vectoriser = make_pipeline(CountVectorizer(), MultinomialNB()).fit(train.rows, train.labels)
    peer = Peer(VECTORISER, lambda: vectoriser.predict(test.rows))
    data = f"{name}, {megabytes(test)} MB, {len(test):,} documents"
    for n in thread_counts(setting):
        where = ("text", f"predict, {n} thread{'s' * (n > 1)}", data)
        yield compare(where, lambda: ours.predict(test.rows), same_classes(1.0), setting, peer, threads=n)


def fit(name: str, train: Part, test: Part, setting: Setting, ngrams: tuple[int, int] = (1, 1)) -> Iterator[Figure]:
    data = f"{name}, {megabytes(train)} MB, {len(train):,} documents, {len(set(train.labels))} classes"
    task = "fit, words and pairs" if ngrams == PAIRS else "fit"

    def run(learner: Any) -> Callable[[], Any]:
        return lambda: learner.fit(train.rows, train.labels)

    def check(ours: Any, theirs: Any) -> str:
        """Same classes of the documents to predict."""
        answers = ours.predict(test.rows)
        return f"{same_classes(1.0)(answers, theirs.predict(test.rows))}, {test.accuracy(answers):.1%} right"

    peer = Peer(VECTORISER, run(make_pipeline(CountVectorizer(ngram_range=ngrams), MultinomialNB())))
    ours = run(bb.NaiveBayesClassifier(features=bb.Text(ngrams=ngrams)))
    for n in thread_counts(setting):
        where = ("text", f"{task}, {n} thread{'s' * (n > 1)}", data)
        yield compare(where, ours, check, setting, peer, threads=n)


def thread_counts(setting: Setting) -> list[int]:
    return sorted({1, setting.threads})


def megabytes(part: Part) -> str:
    return f"{sum(map(len, part.rows)) / 1e6:.1f}"


# One document, when 20 classes and 262,144 words are known ------------------------------------------------------------


def one_document(setting: Setting) -> Iterator[Figure]:
    """Beside HashingVectorizer and partial_fit, the only way in which scikit-learn learns new words as they come."""
    words = setting.rows(KNOWN)
    vocabulary = np.array(synthetic.vocabulary(words), dtype=object)
    rng = np.random.default_rng(11)
    texts = [
        " ".join([*vocabulary, *vocabulary[draw_words(rng, c, words, words // 4)]]) for c in range(synthetic.CLASSES)
    ]
    document = " ".join(vocabulary[draw_words(np.random.default_rng(12), 3, words, TOKENS)])
    label = str(synthetic.LABELS[3])
    ours = bb.NaiveBayesClassifier().fit(texts, synthetic.LABELS)
    vectoriser = HashingVectorizer(n_features=KNOWN, alternate_sign=False, norm=None)
    peer = MultinomialNB().partial_fit(vectoriser.transform(texts), synthetic.LABELS, classes=synthetic.LABELS)

    def peer_predicts(documents: list[str]) -> Any:
        return peer.predict(vectoriser.transform(documents))

    def peer_learns() -> Any:
        return peer.partial_fit(vectoriser.transform([document]), [label])

    tasks: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "predict": (lambda: ours.predict([document]), lambda: peer_predicts([document])),
        "partial_fit": (lambda: ours.partial_fit([document], [label]), peer_learns),
        "partial_fit, then predict": (
            lambda: ours.partial_fit([document], [label]).predict([document]),
            lambda: [peer_learns(), peer_predicts([document])],
        ),
    }

    def check(_: Any, __: Any) -> str:
        """Both predict the same class of parts of the document, but for words that share a bucket of the hash."""
        tokens = document.split(" ")
        parts = [" ".join(tokens[start:]) for start in range(0, TOKENS, 5)]
        return same_classes(0.95)(ours.predict(parts), peer_predicts(parts))

    data = f"{TOKENS} words; {synthetic.CLASSES} classes × {words:,} words known"
    for task, (mine, other) in tasks.items():
        where = ("text", f"one document: {task}", data)
        yield compare(where, mine, check, setting, Peer("HashingVectorizer, MultinomialNB", other), threads=1)


def draw_words(rng: np.random.Generator, c: int, words: int, size: int) -> NDArray[np.int64]:
    """Words by Zipf's law, which begins elsewhere for every class."""
    return (synthetic.zipf(rng, words, size) + c * words // synthetic.CLASSES) % words
