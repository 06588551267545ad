"""The five classes of scikit-learn's names beside scikit-learn's: tables of 10 to 1,000,000 rows, and 20 Newsgroups as matrices.

What one row more costs a model is timed without and with an answer, since ours is brought up to date when it is next asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import naive_bayes as theirs
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import banbury as bb
from benchmarks import datasets, zipf
from benchmarks.measure import Setting, Task, same_classes, same_numbers, say
from benchmarks.yardstick import reading

SIZES = (10, 1_000, 100_000, 1_000_000)
COLUMNS, CLASSES, CATEGORIES = 20, 3, 8
BATCHES = (1, 1_000)  # rows that a model learns more
LEARNED = 100_000  # rows that it knows before
AT_LEAST, AT_LEAST_DENSE = 1.0, 10.0  # at any size, and for the largest dense table
COUNTS_AT_LEAST, TF_IDF_AT_LEAST = (5.0, 4.0), (3.0, 3.0)  # of fit and of predict, for texts
WIDE_CLASSES, WIDE = 20, 2**18
WORDS = 100  # of the row that the wide model learns
ONE_ROW_AT_LEAST = 100.0

Rows = Any  # an array, or a sparse matrix


@dataclass(frozen=True)
class Pair:
    """A class of theirs and ours of its name, set so that both are the same model."""

    name: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]


# scikit-learn's ComplementNB leaves the class prior out; fit_prior=False does so here.
PAIRS = {
    "GaussianNB": Pair("GaussianNB", bb.GaussianNB, theirs.GaussianNB),
    "MultinomialNB": Pair("MultinomialNB", bb.MultinomialNB, theirs.MultinomialNB),
    "ComplementNB": Pair("ComplementNB", functools.partial(bb.ComplementNB, fit_prior=False), theirs.ComplementNB),
    "BernoulliNB": Pair("BernoulliNB", bb.BernoulliNB, theirs.BernoulliNB),
    "CategoricalNB": Pair("CategoricalNB", bb.CategoricalNB, theirs.CategoricalNB),
}
COUNTING = [PAIRS[name] for name in ("MultinomialNB", "ComplementNB", "BernoulliNB")]


def tasks(setting: Setting) -> Iterator[Task]:
    rows = fewer(SIZES[-1], setting)
    yield from of_table([PAIRS["GaussianNB"]], *normal(rows), setting)
    counts, y = occurrences(rows)
    yield from of_table(COUNTING, counts, y, setting)
    yield from of_table(COUNTING, sp.csr_matrix(counts), y, setting)
    del counts
    yield from of_table([PAIRS["CategoricalNB"]], *codes(rows), setting)
    yield from of_wide_model(setting)
    if datasets.there("20_newsgroups"):
        yield from of_texts(setting)
    else:
        say(f"drop_in: 20 Newsgroups are left out; {datasets.UNSET}")


def fewer(rows: int, setting: Setting) -> int:
    return min(rows, setting.rows(rows))


# Data ----------------------------------------------------------------------------------------------------------------


def classes_of(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Every class has a row among the first."""
    y = rng.integers(0, CLASSES, rows)
    y[:CLASSES] = np.arange(CLASSES)
    return y


def normal(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Columns of like scales: the peer takes what it adds to variances from its last batch, which here makes no difference."""
    rng = np.random.default_rng(21)
    y = classes_of(rng, rows)
    X = rng.standard_normal((rows, COLUMNS))
    X += 0.4 * rng.standard_normal((CLASSES, COLUMNS))[y]
    return X, y


def occurrences(rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Whole numbers, as doubles, which the peer multiplies as they are; about three in four are 0."""
    rng = np.random.default_rng(22)
    y = classes_of(rng, rows)
    rates = 0.6 * rng.random((CLASSES, COLUMNS))
    return rng.poisson(rates[y]).astype(np.float64), y


def codes(rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Categories by number; the first rows have all of them, since the peer refuses those that it has not seen."""
    rng = np.random.default_rng(23)
    y = classes_of(rng, rows)
    X = rng.integers(0, CATEGORIES, (rows, COLUMNS))
    X += y[:, None] * (X > CATEGORIES // 2)
    X %= CATEGORIES
    X[:CATEGORIES] = np.arange(CATEGORIES)[:, None]
    return X, y


def posts(setting: Setting) -> tuple[list[str], NDArray[np.str_]]:
    """All posts of 20 Newsgroups as they were collected, and their groups."""
    with datasets.unpacked("20_newsgroups") as folder:
        texts, names = datasets.texts(folder / "20_newsgroups", step=50 if setting.small else 1)
    return texts, np.array(names)


# Tables --------------------------------------------------------------------------------------------------------------


def of_table(pairs: list[Pair], X: Rows, y: NDArray[np.int64], setting: Setting) -> Iterator[Task]:
    """Every class on the first rows of a table, ever more of them; then a batch more for a model of many."""
    for pair in pairs:
        for size in SIZES:
            largest = size == SIZES[-1]
            rows = fewer(size, setting)
            aim = AT_LEAST_DENSE if largest and not sp.issparse(X) else AT_LEAST
            limit = memory(X, setting) if largest else None
            yield from fit_and_predict(pair, X[:rows], y[:rows], table(X, rows), aim, aim, limit)
        yield from more_rows(pair, X, y, setting)


def table(X: Rows, rows: int) -> str:
    kind = f"{X.dtype}, sparse" if sp.issparse(X) else f"{X.dtype}"
    return f"{rows:,} × {X.shape[1]} {kind}, {CLASSES} classes"


def memory(X: Rows, setting: Setting) -> Callable[[], Any] | None:
    """Reads all that a table holds."""
    if not sp.issparse(X):
        return reading(X, setting.threads)
    parts = [reading(part, setting.threads) for part in (X.data, X.indices, X.indptr)]
    return None if None in parts else lambda: [part() for part in parts if part is not None]


def fit_and_predict(
    pair: Pair,
    X: Rows,
    y: NDArray[Any],
    what: str,
    fit_at_least: float,
    predict_at_least: float,
    limit: Callable[[], Any] | None = None,
) -> Iterator[Task]:
    ours_fit = lambda: pair.ours().fit(X, y)  # noqa: E731
    peer_fit = lambda: pair.theirs().fit(X, y)  # noqa: E731
    name = pair.name
    yield Task(
        "drop_in",
        f"{name}.fit",
        what,
        ours_fit,
        same_parameters,
        peer_fit,
        memory=limit,
        at_least=fit_at_least,
    )
    ours, peer = ours_fit(), functools.cache(peer_fit)
    yield Task(
        "drop_in",
        f"{name}.predict",
        what,
        lambda: ours.predict(X),
        same_classes,
        lambda: peer().predict(X),
        memory=limit,
        at_least=predict_at_least,
        prepare=peer,
    )


def more_rows(pair: Pair, X: Rows, y: NDArray[np.int64], setting: Setting) -> Iterator[Task]:
    """What it costs a model to learn a batch more."""
    learned = fewer(LEARNED, setting)
    for size in BATCHES:
        batch, labels = X[:size], y[:size]
        what = f"{table(X, size)}; {learned:,} rows known"
        yield from partial_fit(pair, X[:learned], y[:learned], batch, labels, what, AT_LEAST)


def partial_fit(
    pair: Pair, known: Rows, classes: NDArray[Any], batch: Rows, labels: NDArray[Any], what: str, aim: float
) -> Iterator[Task]:
    """A batch learned, and a batch learned and predicted. Each engine learns it as often as its turns allow."""
    ours, peer = pair.ours().fit(known, classes), pair.theirs().fit(known, classes)

    def once_each(_: Mapping[str, Any]) -> str:
        """Models that have learned the batch once are the same, and answer alike."""
        makers = {"ours": pair.ours, "peer": pair.theirs}
        learned = {name: make().fit(known, classes).partial_fit(batch, labels) for name, make in makers.items()}
        answers = {name: model.predict(batch) for name, model in learned.items()}
        return f"{same_parameters(learned)}, {same_classes(answers)}"

    run = {
        "partial_fit": lambda model: model.partial_fit(batch, labels),
        "partial_fit, then predict": lambda model: model.partial_fit(batch, labels).predict(batch),
    }
    for task, call in run.items():
        yield Task(
            "drop_in",
            f"{pair.name}.{task}",
            what,
            functools.partial(call, ours),
            once_each,
            functools.partial(call, peer),
            at_least=aim,
        )


# Text as matrices, and a wide model ----------------------------------------------------------------------------------


def of_texts(setting: Setting) -> Iterator[Task]:
    """20 Newsgroups as CountVectorizer gives them, whole numbers of 64 bits; then as TfidfTransformer does, doubles."""
    texts, y = posts(setting)
    counts = CountVectorizer(dtype=np.int64).fit_transform(texts)
    del texts
    weighted = TfidfTransformer().fit_transform(counts)
    both = PAIRS["MultinomialNB"], PAIRS["ComplementNB"]
    for name, X, pairs, aims in (
        ("counts", counts, COUNTING, COUNTS_AT_LEAST),
        ("tf-idf", weighted, both, TF_IDF_AT_LEAST),
    ):
        what = f"20 Newsgroups, {name}, {X.shape[0]:,} × {X.shape[1]:,} {X.dtype}, sparse, {len(np.unique(y))} classes"
        limit = memory(X, setting)
        for pair in pairs:
            yield from fit_and_predict(pair, X, y, what, *aims, limit)


def of_wide_model(setting: Setting) -> Iterator[Task]:
    """One sparse row for a model of many columns, every one of which occurs in every class."""
    columns = fewer(WIDE, setting)
    rng = np.random.default_rng(24)
    known = sp.csr_matrix(rng.integers(1, 4, (WIDE_CLASSES, columns)).astype(np.float64))
    row = np.zeros((1, columns))
    np.add.at(row[0], zipf.zipf(rng, columns, WORDS), 1.0)
    what = f"1 × {columns:,} float64, sparse, {WORDS} occurrences; {WIDE_CLASSES} classes known"
    for pair in COUNTING:
        yield from partial_fit(
            pair, known, np.arange(WIDE_CLASSES), sp.csr_matrix(row), np.array([3]), what, ONE_ROW_AT_LEAST
        )


# What answers must satisfy -------------------------------------------------------------------------------------------


def same_parameters(answers: Mapping[str, Any]) -> str:
    return same_numbers({name: parameters(answers[name]) for name in ("ours", "peer")}, within=1e-6)


def parameters(model: Any) -> tuple[NDArray[np.float64], ...]:
    """Rows of every class, and what each column says of it."""
    if isinstance(model, theirs.GaussianNB):
        return model.class_count_, model.theta_, model.var_
    if isinstance(model, theirs.CategoricalNB):
        return model.class_count_, *model.feature_log_prob_
    return model.class_count_, model.feature_log_prob_
