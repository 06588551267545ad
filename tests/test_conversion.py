"""What scikit-learn learned becomes a model here, to be explained, saved, merged and updated; estimators cross-validated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import naive_bayes as theirs
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, LeaveOneOut, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

import banbury as bb
from banbury import errors
from test_laws import law

MAIL = [
    "the cheap pills now!",
    "lunch at noon, ok?",
    "cheap watches: buy",
    "pills and lunch",
    "noon meeting of the board",
]
KINDS = ["spam", "ham", "spam", "spam", "ham"]
NEW = ["cheap lunch today", "board of pills", "nothing", "", "watches watches at noon"]

CLASSIFIERS: dict[str, Any] = {
    "multinomial": lambda: theirs.MultinomialNB(alpha=0.3),
    "multinomial, prior": lambda: theirs.MultinomialNB(class_prior=[0.2, 0.3, 0.5]),
    "multinomial, uniform": lambda: theirs.MultinomialNB(fit_prior=False),
    "multinomial, an alpha for each column": lambda: theirs.MultinomialNB(alpha=np.linspace(0.1, 2.0, 8)),
    "complement": lambda: theirs.ComplementNB(),
    "complement, norm": lambda: theirs.ComplementNB(norm=True),
    "bernoulli": lambda: theirs.BernoulliNB(binarize=1.0),
    "bernoulli, soft": lambda: theirs.BernoulliNB(binarize=None),
    "categorical": lambda: theirs.CategoricalNB(min_categories=9),
    "gaussian": lambda: theirs.GaussianNB(),
    "gaussian, priors": lambda: theirs.GaussianNB(priors=[0.2, 0.3, 0.5], var_smoothing=1e-3),
}
every = pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS.keys())


def table(make: Any, seed: int, n_rows: int = 40) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """A classifier, rows that suit it, and their classes; of three, each of which has rows."""
    rng = np.random.default_rng(seed)
    classifier = make()
    X: Any = rng.poisson(0.8, (n_rows, 8)).astype(float)
    X[:, 3] = 0.0
    if getattr(classifier, "binarize", 0.0) is None:
        X = np.minimum(X / 2.0, 1.0)
    if isinstance(classifier, theirs.GaussianNB):
        X = rng.normal(size=(n_rows, 8)) * [1, 10, 1e3, 1e-5, 1, 1, 1, 1] + 100
    if isinstance(classifier, theirs.CategoricalNB):
        X = np.minimum(X, 8.0).astype(int)
    return classifier, X, np.arange(n_rows) % 3, rng.random(n_rows) + 0.1


@every
@pytest.mark.parametrize("weighted", [False, True])
@law
@given(seed=st.integers(0, 2**32 - 1))
def test_a_fitted_classifier_becomes_a_model_that_predicts_the_same(make, weighted, seed):
    classifier, X, y, weights = table(make, seed)
    classifier.fit(X, y, sample_weight=weights if weighted else None)
    model = bb.from_sklearn(classifier)
    assert model.posterior(X) == pytest.approx(classifier.predict_proba(X), abs=1e-9)
    assert model.classes == (0, 1, 2)


@every
def test_it_is_saved_and_explained(make, tmp_path: Path):
    classifier, X, y, _ = table(make, 1)
    model = bb.from_sklearn(classifier.fit(X, y))
    bb.save(model, tmp_path / "model.banbury")
    again = bb.load(tmp_path / "model.banbury")
    assert isinstance(again, bb.Model)
    assert again.posterior(X) == pytest.approx(model.posterior(X), abs=1e-12)
    why = model.explain(X[0])
    assert why.winner == classifier.predict(X[:1])[0]


@every
def test_it_learns_more_rows(make):
    classifier, X, y, _ = table(make, 2)
    model = bb.from_sklearn(classifier.fit(X[:30], y[:30]))
    more = model.tally + model.tally.count(X[30:], y[30:])
    whole = bb.from_sklearn(make().fit(X, y)).tally
    assert more.rows.value == pytest.approx(whole.rows.value)
    settings = {"how": model.choice.how, "class_prior": model.class_prior if "prior" in str(make()) else None}
    updated = bb.estimate(more, **settings)
    if not isinstance(classifier, theirs.GaussianNB):  # what smoothing adds was settled by the first rows there
        if isinstance(classifier, theirs.ComplementNB):
            updated = updated.with_class_prior("uniform")
        if not classifier.fit_prior:
            updated = updated.with_class_prior("uniform")
        if classifier.class_prior is not None:
            updated = updated.with_class_prior(classifier.class_prior)
        assert updated.posterior(X) == pytest.approx(make().fit(X, y).predict_proba(X), abs=1e-9)


def test_tallies_of_two_classifiers_add():
    rng = np.random.default_rng(3)
    X, y = rng.poisson(1.0, (60, 6)), np.arange(60) % 2
    halves = [bb.from_sklearn(theirs.MultinomialNB().fit(X[part], y[part])) for part in (slice(0, 30), slice(30, 60))]
    together = bb.estimate(halves[0].tally + halves[1].tally)
    assert together.posterior(X) == pytest.approx(theirs.MultinomialNB().fit(X, y).predict_proba(X), abs=1e-12)


VECTORISERS: dict[str, Any] = {
    "plain": CountVectorizer,
    "pairs of words, without stop words": lambda: CountVectorizer(ngram_range=(1, 2), stop_words="english"),
    "words of one letter, as they are written": lambda: CountVectorizer(token_pattern=r"(?u)\b\w+\b", lowercase=False),
    "common words only": lambda: CountVectorizer(min_df=2),
    "once per text": lambda: CountVectorizer(binary=True),
}


@pytest.mark.parametrize("vectoriser", VECTORISERS.values(), ids=VECTORISERS.keys())
@pytest.mark.parametrize("classifier", [theirs.MultinomialNB, theirs.ComplementNB, theirs.BernoulliNB])
def test_a_pipeline_becomes_a_model_of_texts(vectoriser, classifier, tmp_path: Path):
    if vectoriser().binary and classifier is theirs.ComplementNB:
        pytest.skip("complement counts all occurrences")
    pipeline = make_pipeline(vectoriser(), classifier()).fit(MAIL, KINDS)
    model = bb.from_sklearn(pipeline)
    assert model.posterior(NEW) == pytest.approx(pipeline.predict_proba(NEW), abs=1e-10)
    bb.save(model, tmp_path / "mail.banbury")
    again = bb.load(tmp_path / "mail.banbury")
    assert isinstance(again, bb.Model)
    assert again.posterior(NEW) == pytest.approx(model.posterior(NEW), abs=1e-12)
    assert "cheap" in str(model.explain("cheap lunch")) or vectoriser().min_df == 2


def test_a_model_of_texts_learns_more_texts():
    model = bb.from_sklearn(make_pipeline(CountVectorizer(), theirs.MultinomialNB()).fit(MAIL[:3], KINDS[:3]))
    more = bb.estimate(model.tally + model.tally.count(MAIL[3:], KINDS[3:]), features={"text": bb.Text(alpha=1.0)})
    whole = make_pipeline(CountVectorizer(), theirs.MultinomialNB()).fit(MAIL, KINDS)
    assert more.posterior(NEW) == pytest.approx(whole.predict_proba(NEW), abs=1e-10)


def test_names_of_columns_come_along():
    frame = pd.DataFrame({"free": [2, 1, 0], "noon": [0, 0, 3]})
    model = bb.from_sklearn(theirs.MultinomialNB().fit(frame, ["spam", "spam", "ham"]))
    assert model.schema.columns == ("free", "noon")
    assert [e.feature for e in model.explain({"free": 2, "noon": 0}).evidence] == ["free"]


def test_ours_gives_its_own_model():
    X, y = np.eye(3), [0, 1, 1]
    clf = bb.MultinomialNB().fit(X, y)
    assert bb.from_sklearn(clf) is clf.model_


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda: LogisticRegression().fit(np.eye(2), [0, 1]), "none of scikit-learn's naive Bayes"),
        (lambda: make_pipeline(TfidfVectorizer(), theirs.MultinomialNB()).fit(MAIL, KINDS), "no counts of words"),
        (
            lambda: make_pipeline(HashingVectorizer(alternate_sign=False), theirs.MultinomialNB()).fit(MAIL, KINDS),
            "no counts",
        ),
        (
            lambda: make_pipeline(CountVectorizer(), TfidfTransformer(), theirs.MultinomialNB()).fit(MAIL, KINDS),
            "no more",
        ),
        (
            lambda: make_pipeline(CountVectorizer(analyzer="char"), theirs.MultinomialNB()).fit(MAIL, KINDS),
            "analyzer is 'char'",
        ),
        (
            lambda: make_pipeline(CountVectorizer(strip_accents="ascii"), theirs.MultinomialNB()).fit(MAIL, KINDS),
            "strip_accents",
        ),
        (lambda: make_pipeline(CountVectorizer(binary=True), theirs.ComplementNB()).fit(MAIL, KINDS), "binary=True"),
        (lambda: make_pipeline(CountVectorizer(), theirs.BernoulliNB(binarize=2)).fit(MAIL, KINDS), "binarize is 2"),
        (lambda: 7, "this int"),
    ],
)
def test_what_cannot_be_converted_says_why(given, why):
    with pytest.raises(TypeError, match=why):
        bb.from_sklearn(given())


def test_what_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        bb.from_sklearn(theirs.MultinomialNB())


# Cross-validation ----------------------------------------------------------------------------------------------------

COUNTS = np.random.default_rng(5).poisson(0.5, (60, 8))
ESTIMATORS: dict[str, Any] = {
    "multinomial": (bb.MultinomialNB(alpha=0.4), COUNTS),
    "multinomial, sparse": (bb.MultinomialNB(), sp.csr_matrix(COUNTS)),
    "multinomial, fractions": (bb.MultinomialNB(class_prior=[0.2, 0.2, 0.6]), COUNTS * 0.3),
    "multinomial, uniform": (bb.MultinomialNB(fit_prior=False), COUNTS),
    "complement": (bb.ComplementNB(), COUNTS),
    "complement, norm": (bb.ComplementNB(norm=True), COUNTS),
    "bernoulli": (bb.BernoulliNB(), COUNTS),
    "bernoulli, sparse": (bb.BernoulliNB(alpha=0.5), sp.csr_array(COUNTS)),
    "bernoulli, gaps skipped": (bb.BernoulliNB(missing="skip"), COUNTS.astype(float)),
    "categorical": (bb.CategoricalNB(), COUNTS),
    "categorical, at least nine": (bb.CategoricalNB(min_categories=9), COUNTS),
    "gaussian": (bb.GaussianNB(), np.random.default_rng(6).normal(size=(60, 6))),
    "gaussian, priors": (bb.GaussianNB(priors=[0.2, 0.2, 0.6]), COUNTS),
    "any columns": (bb.NaiveBayesClassifier(features="gaussian"), COUNTS),
}


@pytest.mark.parametrize(("estimator", "X"), ESTIMATORS.values(), ids=ESTIMATORS.keys())
@pytest.mark.parametrize("cv", [StratifiedKFold(5), KFold(4, shuffle=True, random_state=1), LeaveOneOut()], ids=str)
def test_cross_validation_of_an_estimator_is_cross_val_predict(estimator, X, cv):
    y = np.arange(60) % 3 + 5
    wanted = cross_val_predict(estimator, X, y, cv=cv, method="predict_proba")
    found = bb.cross_validate(X, y, estimator=estimator, folds="loo" if isinstance(cv, LeaveOneOut) else cv)
    assert found.posteriors == pytest.approx(wanted, abs=1e-10)


def test_an_estimator_says_all_there_is_to_say():
    y = np.arange(60) % 3
    with pytest.raises(errors.BadSetting, match=r"alpha.*left out when an estimator is given"):
        bb.cross_validate(COUNTS, y, estimator=bb.MultinomialNB(), alpha=0.5)
    with pytest.raises(errors.BadSetting, match="one of Banbury's"):
        bb.cross_validate(COUNTS, y, estimator=theirs.MultinomialNB())
