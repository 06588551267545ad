"""What scikit-learn learned, as a model here: the sums that its attributes hold, and the prior that goes with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import naive_bayes as theirs
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from banbury import _core, errors
from banbury._core import Integers
from banbury.arrays import Real
from banbury.distributions import Categorical, Gaussian, Occurrences, Text
from banbury.distributions.categorical import CategoricalParameters
from banbury.distributions.family import Feature
from banbury.distributions.occurrences import OccurrencesParameters
from banbury.estimators.drop_in.base import DropIn, shares_of
from banbury.estimators.drop_in.categorical import log_shares_by_column
from banbury.naive_bayes import Model, estimate
from banbury.readers.batches import positions
from banbury.schema import Schema, block
from banbury.sums import GRID, Counts, Moments, Words, in_parts, integers, python_integers, some, whole
from banbury.tally import Tally

WORD = r"(?u)\b\w\w+\b"
CHANGED = (
    "What it answers by does not follow from its counts and parameters: something was changed since it was fitted."
)
PATTERNS = {WORD: "word", r"(?u)\b\w+\b": "word1", r"\b\w\w+\b": "word", r"\b\w+\b": "word1"}
DISCRETE: dict[type, str] = {
    theirs.MultinomialNB: "multinomial",
    theirs.ComplementNB: "complement",
    theirs.BernoulliNB: "bernoulli",
}


def from_sklearn(fitted: Any) -> Model:
    """A fitted scikit-learn naive Bayes, or a pipeline of CountVectorizer and one, as a model that predicts the same.

    It can then be explained, saved in a file that runs no code, merged with others and taught more rows:
    ``bb.estimate(model.tally + model.tally.count(rows, labels))``. A pipeline becomes a model of texts. Counts of columns are all
    that scikit-learn keeps: in how many rows each occurs is not known, and taken to be as many as possible.

    >>> import banbury as bb
    >>> from sklearn.feature_extraction.text import CountVectorizer
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from sklearn.pipeline import make_pipeline
    >>> mail, kinds = ["cheap pills now", "lunch at noon", "cheap watches"], ["spam", "ham", "spam"]
    >>> model = bb.from_sklearn(make_pipeline(CountVectorizer(), MultinomialNB()).fit(mail, kinds))
    >>> model.explain("cheap lunch")
    'spam' 67.6% against 'ham' 32.4%, in decibans:
      prior              +3.01  +++
      text   = cheap     +3.98  ++++
      text   = lunch     -3.80  ----
      sum                +3.19
    """
    if isinstance(fitted, DropIn):
        fitted._fitted()
        return fitted.model_
    if isinstance(fitted, Pipeline):
        return _of_pipeline(fitted)
    if not isinstance(fitted, (*DISCRETE, theirs.GaussianNB, theirs.CategoricalNB)):
        raise errors.cannot_convert(fitted, "It is none of scikit-learn's naive Bayes classes.")
    check_is_fitted(fitted)
    _check_plain(fitted)
    if isinstance(fitted, theirs.GaussianNB):
        return _of_gaussian(fitted)
    if isinstance(fitted, theirs.CategoricalNB):
        return _same(fitted, _of_categorical(fitted))
    return _same(fitted, _of_counts(fitted))


def _check_plain(fitted: Any) -> None:
    """Raises for a class that answers in its own way."""
    known: Any = next(each for each in type(fitted).__mro__ if each.__module__ == theirs.__name__)
    if not isinstance(fitted, DropIn) and type(fitted)._joint_log_likelihood is not known._joint_log_likelihood:
        raise errors.cannot_convert(fitted, "It has a _joint_log_likelihood of its own.")


def _same(fitted: Any, model: Model) -> Model:
    """The model, if its numbers are those that the classifier answers by."""
    group = model.parameters[0]
    theirs_: Any = fitted.feature_log_prob_
    if isinstance(group, CategoricalParameters):
        pairs = zip(log_shares_by_column(model), theirs_, strict=True)
        if not all(np.allclose(a, np.asarray(b), rtol=1e-7, atol=1e-9, equal_nan=True) for a, b in pairs):
            raise errors.cannot_convert(fitted, CHANGED)
        return model
    assert isinstance(group, OccurrencesParameters)
    ours = group.weights.T
    if group.family.model == "bernoulli":
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            theirs_ = theirs_ - np.log(-np.expm1(theirs_))
        near = np.isfinite(theirs_) & (np.abs(theirs_) < 20)  # beyond, one of the two is all rounding
        theirs_, ours = np.where(near, theirs_, 0.0), np.where(near, ours, 0.0)
    finite = np.isfinite(theirs_) | np.isfinite(ours)
    if not np.allclose(np.where(finite, ours, 0.0), np.where(finite, theirs_, 0.0), rtol=1e-6, atol=1e-8):
        raise errors.cannot_convert(fitted, CHANGED)
    return model


# What all have in common ---------------------------------------------------------------------------------------------


def _classes(fitted: Any, every: bool = True) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """The classes, or those that have rows, and their numbers."""
    rows = np.asarray(fitted.class_count_)
    if not np.all(rows >= 0):
        raise errors.cannot_convert(fitted, "Some rows of it weigh less than nothing.")
    kept = np.arange(len(rows)) if every else np.flatnonzero(rows > 0)
    return tuple(np.asarray(fitted.classes_)[kept].tolist()), kept


def _names(fitted: Any) -> tuple[tuple[str, ...], bool]:
    names = getattr(fitted, "feature_names_in_", None)
    return (positions(fitted.n_features_in_), False) if names is None else (tuple(map(str, names)), True)


def _rows(numbers: Any) -> Integers:
    """Sums of weights as whole numbers of rows, or of parts of them."""
    sums = np.asarray(numbers, dtype=np.float64)
    parts = in_parts(sums.ravel())
    if parts.ndim == 1:
        return whole(parts.reshape(sums.shape))
    return Integers.of(parts.view(np.int64), 18).arranged(list(sums.shape))


def _prior(log_prior: Any, kept: NDArray[np.int64]) -> list[float]:
    return shares_of(np.asarray(log_prior, dtype=np.float64)[kept])


def _alpha(fitted: Any) -> Any:
    """The pseudo-count that was used: a number, or one for each column."""
    alpha = np.asarray(fitted.alpha, dtype=np.float64)
    alpha = alpha if fitted.force_alpha else np.maximum(alpha, 1e-10)
    return float(alpha) if alpha.ndim == 0 else tuple(alpha.tolist())


def _model(fitted: Any, schema: Schema, classes: Any, kept: NDArray[np.int64], sums: Any, prior: Any) -> Model:
    tally = Tally(schema, classes, _rows(np.asarray(fitted.class_count_)[kept]), (sums,))
    return estimate(tally, how="mle" if _alpha(fitted) == 0 else "mean", class_prior=prior)


# Class by class ------------------------------------------------------------------------------------------------------


def _of_gaussian(fitted: Any) -> Model:
    classes, kept = _classes(fitted, every=False)
    names, named = _names(fitted)
    n = np.asarray(fitted.class_count_, dtype=np.float64)[kept]
    mean = np.asarray(fitted.theta_, dtype=np.float64)[kept].T  # (columns, classes)
    variance = np.maximum(np.asarray(fitted.var_, dtype=np.float64)[kept].T - float(fitted.epsilon_), 0.0)
    centre = (mean * n).sum(axis=1) / n.sum()
    spread = np.sqrt((n * (variance + (mean - centre[:, None]) ** 2)).sum(axis=1) / n.sum())
    unit = np.ldexp(1.0, np.frexp(np.where(spread > 0, spread, 1.0))[1])
    origin = np.rint(centre / unit) * unit
    largest = float(np.square(spread).max(initial=0.0))
    family = Gaussian(smoothing=float(fitted.epsilon_) / largest if largest > 0 else 0.0)
    scales = zip(names, origin.tolist(), unit.tolist(), strict=True)
    features = tuple(Feature(name, family, start, width, "float") for name, start, width in scales)
    z = (mean - origin[:, None]) / unit[:, None]
    rows = _rows(n)
    each = rows.arranged([1, len(n)]).take(np.zeros(len(names), dtype=np.int64), 0)
    sums = _moments(each, z, variance / np.square(unit)[:, None])
    schema = Schema(features, None, names, named)
    tally = Tally(schema, classes, rows, (Moments(each, sums),), rounded=True)
    return estimate(tally, class_prior=_prior(np.log(np.maximum(fitted.class_prior_, 1e-300)), kept))


def _moments(n: Integers, mean: Real, variance: Real) -> Integers:
    """Sums of z and of z² of so many rows with these means and variances; of squares upwards, so that rows can have them."""
    rows, step = python_integers(n, 18), 2**GRID
    first = np.vectorize(lambda x: round(Fraction(x) * step), otypes=[object])(mean)
    second = np.vectorize(lambda x: math.ceil(Fraction(x) * step * step), otypes=[object])(variance)
    return integers(np.stack([rows * first, rows * (first * first + second)], axis=-1), 18)


def _of_categorical(fitted: Any) -> Model:
    classes, kept = _classes(fitted)
    names, named = _names(fitted)
    alpha = _alpha(fitted)
    parts, features = [], []
    for name, cells in zip(names, fitted.category_count_, strict=True):
        counted = _rows(np.asarray(cells)[kept].T)
        used = np.flatnonzero(some(counted).any(axis=1))
        parts.append((tuple(used.tolist()), counted.take(used, 0)))
        features.append(Feature(name, Categorical(alpha=alpha, codes=int(cells.shape[1])), kind="integer"))
    schema = Schema(tuple(features), None, names, named)
    sums = Counts.join(parts, len(classes))
    return _model(fitted, schema, classes, kept, sums, _prior(fitted.class_log_prior_, kept))


def _kind(fitted: Any) -> str:
    return next(kind for known, kind in DISCRETE.items() if isinstance(fitted, known))


def _prior_of_counts(fitted: Any, kept: NDArray[np.int64]) -> Any:
    """The prior that decides there: scikit-learn's complement has none."""
    if isinstance(fitted, DropIn):
        return _prior(fitted._state.current().log_prior, kept)
    return "uniform" if _kind(fitted) == "complement" else _prior(fitted.class_log_prior_, kept)


def _of_counts(fitted: Any) -> Model:
    classes, kept = _classes(fitted)
    names, named = _names(fitted)
    alpha, kind = _alpha(fitted), _kind(fitted)
    threshold = fitted.binarize if kind == "bernoulli" else None
    norm, threshold = bool(getattr(fitted, "norm", False)), None if threshold is None else float(threshold)
    family = Occurrences(kind, threshold, alpha, norm=norm)  # type: ignore[arg-type]
    feature = block(names, family)
    words = [f"#{j}" for j in range(len(names))]
    table = _table(fitted, kept, words, family.empty_table(feature, len(classes)).buckets)
    schema = Schema((feature,), None, names, named)
    return _model(fitted, schema, classes, kept, Words(table), _prior_of_counts(fitted, kept))


def _table(fitted: Any, kept: NDArray[np.int64], words: Sequence[str], buckets: int) -> _core.Words:
    """The counts of words in classes, (classes, words), as a table of words."""
    cells = np.asarray(fitted.feature_count_, dtype=np.float64)[kept].T
    texts = np.asarray(fitted.class_count_, dtype=np.float64)[kept]
    if _kind(fitted) == "bernoulli":
        cells = np.minimum(cells, texts)  # a sum of weights may be rounded otherwise than its parts
    encoded = [word.encode("utf-8", "surrogatepass") for word in words]
    order = [j for j in sorted(range(len(words)), key=encoded.__getitem__) if cells[j].any()]
    cells = cells[order]
    at, classes = np.nonzero(cells)
    sums = np.stack([cells[at, classes], np.minimum(cells[at, classes], texts[classes])], axis=-1)  # (pairs, 2)
    state: dict[str, Any] = {
        "bytes": np.frombuffer(b"".join(encoded[j] for j in order), dtype=np.uint8),
        "ends": np.cumsum([len(encoded[j]) for j in order], dtype=np.int64),
        "starts": np.concatenate([[0], np.cumsum(np.count_nonzero(cells, axis=1))]).astype(np.int64),
        "classes": classes.astype(np.uint32),
        **_numbers(_rows(np.concatenate([sums.ravel(), texts])), len(texts)),
    }
    if not buckets:  # the index of words in order is that of a text that has each of them once
        given, once = _core.Tokeniser("given", False, False, 1, 1, [], False, False), _core.Words(1, 0)
        text = [words[j] for j in order], np.array([0, len(order)], dtype=np.int64), None
        once.count(given, text, np.zeros(1, dtype=np.int32), None, 1)
        state["slots"] = once.state()["slots"]
    return _core.Words.from_state(len(texts), buckets, state)


def _numbers(counts: Integers, n_classes: int) -> dict[str, Any]:
    """Occurrences and documents of each pair, and the texts of each class, which stand last; as a table of words has them."""
    if counts.digits == 0:
        pairs, texts = np.split(counts.limbs()[:, 0], [-n_classes])
        width = np.uint32 if int(pairs[::2].sum()) < 2**32 else np.int64
        return {"occurrences": pairs[::2].astype(width), "documents": pairs[1::2].astype(width), "texts": texts.copy()}
    packed = b"".join(number.to_bytes(24, "little") for number in python_integers(counts, 36))
    pairs, texts = np.split(np.frombuffer(packed, dtype="<i8").reshape(-1, 3).astype(np.int64), [-n_classes])
    return {"parts": pairs.reshape(-1, 2, 3), "texts.parts": texts.copy()}


# Pipelines -----------------------------------------------------------------------------------------------------------


def _of_pipeline(pipeline: Any) -> Model:
    steps = [step for _, step in pipeline.steps if step not in (None, "passthrough")]
    if len(steps) != 2 or not isinstance(steps[1], tuple(DISCRETE)):
        only = "A pipeline has to be a CountVectorizer and a naive Bayes that counts, no more."
        raise errors.cannot_convert(pipeline, only)
    vectoriser, fitted = steps
    check_is_fitted(fitted)
    if not isinstance(vectoriser, CountVectorizer) or isinstance(vectoriser, TfidfVectorizer):
        raise errors.cannot_convert(vectoriser, "Its numbers are no counts of words.")
    if type(vectoriser) is not CountVectorizer:
        raise errors.cannot_convert(vectoriser, "It is a CountVectorizer of another kind.")
    if vectoriser.lowercase and any(word != word.lower() for word in vectoriser.vocabulary_):
        raise errors.cannot_convert(vectoriser, "Its vocabulary has words that its lowercase=True never finds.")
    _check_plain(fitted)
    family = _text(vectoriser, fitted)
    classes, kept = _classes(fitted)
    vocabulary: Mapping[str, int] = vectoriser.vocabulary_
    words = sorted(vocabulary, key=lambda word: vocabulary[word])
    schema = Schema((Feature("text", family),), None, ("text",), False)
    table = _table(fitted, kept, words, 0)
    return _model(fitted, schema, classes, kept, Words(table), _prior_of_counts(fitted, kept))


def _text(vectoriser: Any, fitted: Any) -> Text:
    """The family that cuts texts as the vectoriser does, and counts their words as the classifier."""
    kind, alpha = _kind(fitted), _alpha(fitted)
    own = ("preprocessor", "tokenizer", "strip_accents")
    refused = next((name for name in own if getattr(vectoriser, name) is not None), None)
    if refused is not None:
        raise errors.cannot_convert(vectoriser, f"Its {refused} is its own.")
    if vectoriser.analyzer != "word":
        raise errors.cannot_convert(vectoriser, f"Its analyzer is {vectoriser.analyzer!r}, and 'word' is understood.")
    if isinstance(alpha, tuple):
        raise errors.cannot_convert(fitted, "It has a pseudo-count of its own for each word.")
    if kind == "bernoulli" and fitted.binarize not in (0.0, None if vectoriser.binary else 0.0):
        raise errors.cannot_convert(fitted, f"Its binarize is {fitted.binarize!r}, and a word is there or not.")
    if kind == "complement" and vectoriser.binary:
        raise errors.cannot_convert(vectoriser, "Complement counts all occurrences, and binary=True is one of each.")
    if kind == "multinomial" and vectoriser.binary:
        kind = "presence"
    stop_words = vectoriser.get_stop_words()
    return Text(
        tokens=PATTERNS.get(vectoriser.token_pattern, vectoriser.token_pattern),
        lowercase=bool(vectoriser.lowercase),
        ngrams=tuple(vectoriser.ngram_range),
        stop_words=None if stop_words is None else sorted(stop_words),
        model=kind,  # type: ignore[arg-type]
        alpha=alpha,
        vocabulary=tuple(sorted(vectoriser.vocabulary_)),
        norm=bool(getattr(fitted, "norm", False)),
    )
