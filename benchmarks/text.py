"""Text from raw strings: 70 MB by Zipf's law and 20 Newsgroups, beside scikit-learn's vectorisers and loops in C.

scikit-learn's vectorisers know one thread, so that one time of theirs stands beside ours on one thread and on all.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

import banbury as bb
from benchmarks import datasets, one_document, trainers, zipf
from benchmarks.measure import Figure, Setting, WrongAnswer, in_turns, limited, ours_on, same_classes, say
from benchmarks.memory import forget_peak, in_child, peak
from benchmarks.words import Loops, Rows
from benchmarks.yardstick import loops

HELD = 20_000  # documents to be predicted
FIT_AT_LEAST = {1: 26.0, 2: 45.0}  # by threads
PREDICT_AT_LEAST = {1: 25.0, 2: 45.0}
NGRAMS_AT_LEAST = 20.0

VECTORISER = "CountVectorizer, MultinomialNB"


@dataclass(frozen=True)
class Corpus:
    """Texts to learn and texts to predict, with their classes."""

    name: str
    texts: list[str]
    labels: NDArray[np.str_]
    held: list[str]
    held_labels: NDArray[np.str_]

    @property
    def size(self) -> int:
        """Bytes to be learned."""
        return sum(map(len, self.texts))

    @property
    def to_learn(self) -> str:
        classes = len(set(self.labels))
        return f"{self.name}, {self.size / 1e6:.1f} MB, {len(self.texts):,} documents, {classes} classes"

    @property
    def to_predict(self) -> str:
        return f"{self.name}, {sum(map(len, self.held)) / 1e6:.1f} MB, {len(self.held):,} documents"

    def first(self, documents: int) -> Corpus:
        return Corpus(self.name, self.texts[:documents], self.labels[:documents], self.held, self.held_labels)

    def spelled(self, name: str, letters: Mapping[int, str]) -> Corpus:
        """The same texts in other letters."""
        texts, held = ([text.translate(letters) for text in part] for part in (self.texts, self.held))
        return Corpus(name, texts, self.labels, held, self.held_labels)


def tasks(setting: Setting) -> Iterator[Figure]:
    with limited(setting.threads):
        yield from every_figure(setting)


def every_figure(setting: Setting) -> Iterator[Figure]:
    made = generated(setting)
    yield from learned_and_predicted(made, setting, yardsticks=True)
    yield from word_pairs(made.first(len(made.texts) // 8), setting)
    yield from weighted(made.first(len(made.texts) // 4), setting)
    yield from damped(made.first(len(made.texts) // 4), setting)
    yield from other_letters(made.first(len(made.texts) // 8), setting)
    yield from memory(made, setting)
    yield from trainers.figures(made, setting)
    del made
    if datasets.there("20news-bydate"):
        yield from learned_and_predicted(newsgroups(setting), setting)
    else:
        say(f"text: 20 Newsgroups are left out; {datasets.UNSET}")
    yield from trainers.mail(setting)
    yield from one_document.figures(setting)


def generated(setting: Setting) -> Corpus:
    texts, labels = zipf.texts(setting.rows(zipf.DOCUMENTS))
    held, held_labels = zipf.texts(setting.rows(HELD), seed=10)
    return Corpus("Zipf", texts, labels, held, held_labels)


def newsgroups(setting: Setting) -> Corpus:
    """The by-date split, headers and all."""
    step = 50 if setting.small else 1
    with datasets.unpacked("20news-bydate") as folder:
        parts = [datasets.texts(folder / f"20news-bydate-{part}", step) for part in ("train", "test")]
    (texts, labels), (held, held_labels) = parts
    return Corpus("20 Newsgroups", texts, np.array(labels), held, np.array(held_labels))


# What is timed -------------------------------------------------------------------------------------------------------


def learned_and_predicted(corpus: Corpus, setting: Setting, yardsticks: bool = False) -> Iterator[Figure]:
    """Learning and predicting on one thread and on all, beside the vectoriser and the best loop in C."""
    c = c_loops(corpus)
    fit = lambda: bb.NaiveBayesClassifier().fit(corpus.texts, corpus.labels)  # noqa: E731
    peer_fit = lambda: make_pipeline(CountVectorizer(), MultinomialNB()).fit(corpus.texts, corpus.labels)  # noqa: E731
    engines = by_threads("ours", fit, setting) | {"peer": peer_fit}
    if c is not None:
        engines |= {f"C {n}": functools.partial(c.rows, n) for n in counts(setting)}
    say(f"text: fit, {corpus.to_learn}")
    times, answers = in_turns(engines, setting)
    peer = answers["peer"]
    ours = {n: answers[f"ours {n}"] for n in counts(setting)}
    predicted = peer.predict(corpus.held)
    for n, model in ours.items():
        agreement = same_classes({"ours": ours_on(n, lambda m=model: m.predict(corpus.held))(), "peer": predicted}, 1.0)
        agreement += f", {accuracy(predicted, corpus.held_labels)} right"
        if c is not None and yardsticks:
            agreement += f"; {same_counts(answers[f'C {n}'], peer)}"
        yield figure("fit", n, corpus.to_learn, times, VECTORISER, agreement, setting, FIT_AT_LEAST)
    if c is not None and yardsticks:
        yield from steps(c, corpus, times, setting)
    yield from predicted_alone(corpus, ours, peer, answers.get(f"C {setting.threads}"), setting)


def predicted_alone(
    corpus: Corpus, ours: Mapping[int, Any], peer: Pipeline, c: Rows | None, setting: Setting
) -> Iterator[Figure]:
    engines = {f"ours {n}": ours_on(n, lambda m=model: m.predict(corpus.held)) for n, model in ours.items()}
    engines["peer"] = lambda: peer.predict(corpus.held)
    if c is not None:
        engines |= c_predict(corpus, peer, c, setting)
    say(f"text: predict, {corpus.to_predict}")
    times, answers = in_turns(engines, setting)
    for n in ours:
        found = {"ours": answers[f"ours {n}"], "peer": answers["peer"]}
        if c is not None and corpus.name == "Zipf":  # the loop knows no letters beyond ASCII
            found["C loop"] = answers[f"C {n}"]
        agreement = same_classes(found, 1.0)
        yield figure("predict", n, corpus.to_predict, times, VECTORISER, agreement, setting, PREDICT_AT_LEAST)


def steps(c: Loops, corpus: Corpus, times: Mapping[str, float], setting: Setting) -> Iterator[Figure]:
    """What the loop in C takes for less than the whole: how much of the time the words alone are."""
    said = {"only": "C: words only", "total": "C: one table of counts", "tables": "C: a table per class"}
    engines = {f"{step} {n}": functools.partial(getattr(c, step), n) for step in said for n in counts(setting)}
    found, answers = in_turns(engines, setting)
    found |= {f"rows {n}": times[f"C {n}"] for n in counts(setting)}
    said["rows"] = "C: one table of words, a row per class"
    tokens = answers["only 1"][0]
    for n in counts(setting):
        if answers[f"only {n}"] != answers["only 1"]:
            raise WrongAnswer(f"the C loop finds other words on {n} threads")
        for step, name in said.items():
            seconds = found[f"{step} {n}"]
            speed = f"{corpus.size / seconds / 1e6:.0f} MB/s; {tokens:,} words in all"
            yield Figure("text", f"fit, {threads(n)}", corpus.to_learn, times[f"ours {n}"], seconds, name, speed)


def word_pairs(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """Single words and pairs of them. scikit-learn takes minutes for all documents, so it is shown an eighth."""
    pair = CountVectorizer(ngram_range=(1, 2)), MultinomialNB()
    fit = lambda: bb.NaiveBayesClassifier(features=bb.Text(ngrams=(1, 2))).fit(corpus.texts, corpus.labels)  # noqa: E731
    peer = lambda: make_pipeline(*pair).fit(corpus.texts, corpus.labels)  # noqa: E731
    aims = dict.fromkeys((1, 2), NGRAMS_AT_LEAST)
    yield from beside("fit, words and pairs", corpus, fit, peer, VECTORISER, setting, aims, exactly=True)


def weighted(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """Documents that count for more or less than one, by fractions."""
    weights = np.random.default_rng(11).uniform(0.1, 2.0, len(corpus.texts))
    fit = lambda: bb.NaiveBayesClassifier().fit(corpus.texts, corpus.labels, weights)  # noqa: E731
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    peer = lambda: pipeline.fit(corpus.texts, corpus.labels, multinomialnb__sample_weight=weights)  # noqa: E731
    yield from beside("fit, weighted", corpus, fit, peer, VECTORISER, setting, {}, exactly=True)


class Idf(TfidfTransformer):
    """log(N / df), which scikit-learn adds 1 to."""

    def __init__(self) -> None:
        super().__init__(norm=None, smooth_idf=False)

    def fit(self, X: Any, y: Any = None) -> Idf:
        super().fit(X, y)
        self.idf_ = self.idf_ - 1.0
        return self


def damped(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """Counts that are no longer whole: log(1 + n), divided by the document's length, times idf.

    Documents that were learned are predicted: to the peer's length, words that it does not know add nothing.
    """
    family = bb.Text(damping="log", length=True, idf=True)
    fit = lambda: bb.NaiveBayesClassifier(features=family).fit(corpus.texts, corpus.labels)  # noqa: E731
    steps = CountVectorizer(), FunctionTransformer(np.log1p, accept_sparse=True), Normalizer(), Idf(), MultinomialNB()
    peer = lambda: make_pipeline(*steps).fit(corpus.texts, corpus.labels)  # noqa: E731
    name = "CountVectorizer, log1p, Normalizer, TfidfTransformer, MultinomialNB"
    known = replace(corpus, held=corpus.texts, held_labels=corpus.labels)
    yield from beside("fit, log, length and idf", known, fit, peer, name, setting, {}, exactly=True)


def other_letters(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """Words beyond ASCII: a quarter of them with an umlaut, then all of them in letters of two bytes, and of three."""
    latin, cyrillic, hindi = "abcdefghijklmnopqrstuvwxyz", "абцдефгхижклмнопярстувшчйз", "कखगघचछजझटठडढणतथदधनपफबभमयरल"
    scripts = {
        "Zipf with umlauts": {"u": "ü", "U": "Ü"},
        "Zipf in Cyrillic": dict(zip(latin + latin.upper(), cyrillic + cyrillic.upper(), strict=True)),
        "Zipf in Devanagari": dict(zip(latin + latin.upper(), 2 * hindi, strict=True)),
    }
    for name, letters in scripts.items():
        spelled = corpus.spelled(name, str.maketrans(letters))
        fit = lambda s=spelled: bb.NaiveBayesClassifier().fit(s.texts, s.labels)  # noqa: E731
        peer = lambda s=spelled: make_pipeline(CountVectorizer(), MultinomialNB()).fit(s.texts, s.labels)  # noqa: E731
        yield from beside("fit", spelled, fit, peer, VECTORISER, setting, {}, exactly=True)


def beside(
    task: str,
    corpus: Corpus,
    fit: Callable[[], Any],
    peer: Callable[[], Any],
    peer_name: str,
    setting: Setting,
    aims: Mapping[int, float],
    exactly: bool,
) -> Iterator[Figure]:
    """A way of learning on one thread and on all beside a peer's; what they predict is compared."""
    say(f"text: {task}, {corpus.to_learn}")
    times, answers = in_turns(by_threads("ours", fit, setting) | {"peer": peer}, setting)
    held, labels = corpus.held[:2000], corpus.held_labels[:2000]
    theirs = answers["peer"].predict(held)
    for n in counts(setting):
        mine = answers[f"ours {n}"].predict(held)
        if exactly:
            agreement = same_classes({"ours": mine, "peer": theirs}, 1.0)
        else:
            agreement = f"{accuracy(mine, labels)} right, the peer {accuracy(theirs, labels)}"
        yield figure(task, n, corpus.to_learn, times, peer_name, agreement, setting, aims)


def memory(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """The most that learning holds beyond the texts it is given."""
    say(f"text: peak memory of fit, {corpus.to_learn}")
    rows = str(len(corpus.texts))
    ours, peer = (in_child("text", engine, rows, threads=setting.threads) for engine in ("ours", "peer"))
    if ours["words"] != peer["words"]:
        raise WrongAnswer(f"{ours['words']:,} words were learned, and {peer['words']:,} by the peer")
    seen = f"{ours['words']:,} words each"
    above = [report["above"] / 1e6 for report in (ours, peer)]
    aim = None if setting.small else 1.0
    yield Figure(
        "text", "peak of fit above the texts", corpus.to_learn, *above, VECTORISER, seen, at_least=aim, unit="MB"
    )


def peak_of_fit(engine: str, documents: int) -> dict[str, int]:
    fit = made_of(engine)
    fit(*zipf.texts(1000))  # libraries that are loaded at first use
    texts, labels = zipf.texts(documents)
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # what making the texts has freed is not to be used again unseen
    forget_peak()
    before = peak()
    model = fit(texts, labels)
    return {"above": peak() - before, "words": n_words(model)}


def made_of(engine: str) -> Callable[..., Any]:
    if engine == "ours":
        return lambda texts, labels: bb.NaiveBayesClassifier().fit(texts, labels)
    return lambda texts, labels: make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, labels)


# What answers must satisfy -------------------------------------------------------------------------------------------


def n_words(model: Any) -> int:
    if isinstance(model, Pipeline):
        return len(model[0].vocabulary_)
    return int(model.tally_.sums[0].table.n_words)


def same_counts(c: Rows, peer: Pipeline) -> str:
    """The loop in C counts what scikit-learn counts."""
    words = c.table.words()
    places = [peer[0].vocabulary_[word] for word in words]
    if len(places) != len(peer[0].vocabulary_):
        raise WrongAnswer(f"the C loop knows {len(words):,} words, and {VECTORISER} {len(peer[0].vocabulary_):,}")
    if not np.array_equal(c.occurrences(), peer[1].feature_count_[:, places]):
        raise WrongAnswer("the C loop counts other words")
    return "same counts in C"


def accuracy(predicted: Any, labels: Any) -> str:
    return f"{np.mean(np.asarray(predicted) == np.asarray(labels)):.1%}"


# Engines and figures -------------------------------------------------------------------------------------------------


def counts(setting: Setting) -> list[int]:
    """Numbers of threads: one, and all."""
    return sorted({1, setting.threads})


def threads(n: int) -> str:
    return f"{n} thread{'s' * (n > 1)}"


def by_threads(name: str, run: Callable[[], Any], setting: Setting) -> dict[str, Callable[[], Any]]:
    return {f"{name} {n}": ours_on(n, run) for n in counts(setting)}


def figure(
    task: str,
    n: int,
    data: str,
    times: Mapping[str, float],
    peer_name: str,
    agreement: str,
    setting: Setting,
    aims: Mapping[int, float],
) -> Figure:
    aim = None if setting.small else aims.get(n)
    mine, theirs = times[f"ours {n}"], times["peer"]
    name = f"{task}, {threads(n)}"
    c = times.get(f"C {n}")
    return Figure("text", name, data, mine, theirs, peer_name, agreement, at_least=aim, c_loop=c)


def c_loops(corpus: Corpus) -> Loops | None:
    if loops() is None:
        return None
    classes, codes = np.unique(corpus.labels, return_inverse=True)
    return Loops(corpus.texts, codes, len(classes), zipf.WORDS)


def c_predict(corpus: Corpus, peer: Pipeline, learned: Rows, setting: Setting) -> dict[str, Callable[[], Any]]:
    """The loop that scores, given the words it learned and the peer's weights for them."""
    classes = peer[1].classes_
    known = peer[0].vocabulary_
    words = learned.table.words()
    # Words that only the loop knows, since it cuts at letters beyond ASCII, weigh nothing.
    places = np.array([known.get(word, -1) for word in words])
    weights = np.where(places[:, None] >= 0, peer[1].feature_log_prob_.T[places], 0.0)
    held = Loops(corpus.held, np.zeros(len(corpus.held), dtype=np.int64), len(classes), zipf.WORDS)
    run = lambda n: classes[held.predict(learned.table, weights, peer[1].class_log_prior_, n)]  # noqa: E731
    return {f"C {n}": functools.partial(run, n) for n in counts(setting)}


if __name__ == "__main__":
    print(json.dumps(peak_of_fit(sys.argv[1], int(sys.argv[2]))))
