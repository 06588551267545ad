"""A model of 1,300,000 words in a file of about 100 MB: saved, loaded, and asked about a document, beside joblib."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

import banbury as bb
from benchmarks import synthetic
from benchmarks.measure import Figure, Peer, Setting, compare, same_classes

WORDS = 1_300_000
MORE = 760_000  # words of each class by Zipf's law, beside its share of all words
PEER = "joblib: CountVectorizer, MultinomialNB"


def figures(setting: Setting) -> Iterator[Figure]:
    texts, document = make_texts(setting.rows(WORDS), setting.rows(MORE))
    model = bb.NaiveBayesClassifier().fit(texts, synthetic.LABELS).model_
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB()).fit(texts, synthetic.LABELS)

    def check(ours: Any, theirs: Any) -> str:
        """The loaded models predict the class of a document."""
        return same_classes(1.0)(ours.predict([document]), theirs.predict([document]))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.banbury"
        peer_path = Path(folder) / "model.joblib"
        bb.save(model, path)
        joblib.dump(pipeline, peer_path)
        sizes = [file.stat().st_size / 1e6 for file in (path, peer_path)]
        data = f"{len(pipeline[0].vocabulary_):,} words, {synthetic.CLASSES} classes, {sizes[0]:.0f} MB"
        save = Peer(PEER, lambda: joblib.dump(pipeline, peer_path))
        load = Peer(PEER, lambda: joblib.load(peer_path))
        ask = Peer(PEER, lambda: joblib.load(peer_path).predict([document]))
        yield compare(("files", "save", data), lambda: bb.save(model, path), lambda *_: "", setting, save)
        yield compare(("files", "load", data), lambda: bb.load(path), check, setting, load)
        where = ("files", "load, then the first document", data)
        yield compare(where, lambda: bb.load(path).predict([document]), same_classes(1.0), setting, ask)
        yield Figure("files", "size", data, *sizes, PEER, unit="MB")


def make_texts(words: int, more: int) -> tuple[list[str], str]:
    """A long text per class: its share of all words, and words by Zipf's law, which begins elsewhere for every class."""
    rng = np.random.default_rng(21)
    vocabulary = np.array(synthetic.vocabulary(words), dtype=object)
    shares = np.array_split(rng.permutation(words), synthetic.CLASSES)
    draws = [(synthetic.zipf(rng, words, more) + c * 7_919) % words for c in range(synthetic.CLASSES)]
    texts = [" ".join(vocabulary[np.concatenate(both)]) for both in zip(shares, draws, strict=True)]
    return texts, " ".join(vocabulary[draws[3][:200]])
