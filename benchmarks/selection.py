"""Model selection from one count: cross-validation, leave-one-out, tuning and calibration, beside scikit-learn's.

What takes scikit-learn minutes is run once and in part: two folds of ten, or two settings of twenty; its time is then scaled
to all of them, and the row says so.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, PredefinedSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline

import banbury as bb
from banbury.selection.results import Evaluation
from benchmarks import datasets, gaussian, zipf
from benchmarks.measure import Figure, Setting, WrongAnswer, floored, in_turns, limited, same_classes, say
from benchmarks.report import amount
from benchmarks.text import Corpus, newsgroups

TEN, FIFTY = 10, 50
SHOWN = 2  # folds or settings that scikit-learn is shown where all would take too long
TEXTS_OF_FIT_AND_PREDICT, NUMBERS_OF_FIT_AND_PREDICT = 1.6, 1.8  # what ours may take
OF_TEN_FOLDS, OF_TEN_FOLDS_LOO = 2.0, 3.0
PIPELINE_AT_LEAST, MATRIX_AT_LEAST, GAUSSIAN_AT_LEAST = 100.0, 15.0, 30.0
ADULT_AT_MOST = 1.0
ALPHAS = np.geomspace(1e-3, 10.0, 20).round(6).tolist()
TUNING_OF_FIT, TUNING_AT_LEAST = 12.0, 300.0
CALIBRATIONS = {"temperature": "temperature", "platt": "sigmoid"}  # ours, and what scikit-learn calls it
EXACTLY = 1e-9  # posteriors by subtraction, beside those of a model that has never seen the rows

NUMBERS = dict.fromkeys(
    ("age", "fnlwgt", "capital_gain", "capital_loss", "hours_per_week"), "gaussian"
)  # exact, left out

VECTORISER = "CountVectorizer, MultinomialNB"


@dataclass(frozen=True)
class Rows:
    """What is cross-validated: rows and their classes, and what the columns are taken for."""

    name: str
    rows: Any
    labels: NDArray[Any]
    features: Any = "auto"

    def learned(self, chosen: NDArray[np.bool_] | None = None) -> Any:
        rows, labels = self.chosen(chosen)
        return bb.NaiveBayesClassifier(features=self.features).fit(rows, labels)

    def validated(self, folds: Any, **settings: Any) -> Any:
        """Ours, with its predictions made."""
        found = bb.cross_validate(self.rows, self.labels, folds=folds, **({"features": self.features} | settings))
        assert len(found.predictions) == len(self.labels)
        return found

    def chosen(self, chosen: NDArray[np.bool_] | None) -> tuple[Any, NDArray[Any]]:
        return (self.rows, self.labels) if chosen is None else (taken(self.rows, chosen), self.labels[chosen])


def taken(rows: Any, chosen: NDArray[np.bool_]) -> Any:
    return rows[chosen] if isinstance(rows, np.ndarray) else [rows[i] for i in np.flatnonzero(chosen)]


def tasks(setting: Setting) -> Iterator[Figure]:
    with limited(setting.threads):
        yield from made_text(setting)
        yield from numbers(setting)
        yield from adult(setting) if datasets.there("adult") else left_out("Adult is")
        yield from news(setting) if datasets.there("20news-bydate") else left_out("20 Newsgroups are")


def left_out(what: str) -> Iterator[Figure]:
    say(f"selection: {what} left out; {datasets.UNSET}")
    yield from ()


def made_text(setting: Setting) -> Iterator[Figure]:
    """70 MB by Zipf's law, from strings."""
    texts, labels = zipf.texts(setting.rows(zipf.DOCUMENTS))
    size = sum(map(len, texts)) / 1e6
    rows = Rows(f"Zipf, {size:.1f} MB, {len(texts):,} documents, {zipf.CLASSES} classes", texts, labels)
    times, found = yield from by_folds(rows, setting, TEXTS_OF_FIT_AND_PREDICT)
    yield beside_pipeline(rows, times, found, setting)
    yield beside_matrix(rows, times, found, setting)


def numbers(setting: Setting) -> Iterator[Figure]:
    X, y = gaussian.data(setting.rows(gaussian.ROWS))
    what = f"{len(y):,} × {gaussian.COLUMNS} float64, {gaussian.CLASSES} classes"
    rows = Rows(what, X, y, "gaussian")
    times, found = yield from by_folds(rows, setting, NUMBERS_OF_FIT_AND_PREDICT)
    say(f"selection: cross_val_predict, {what}")
    split = PredefinedSplit(found.folds)
    theirs = lambda: cross_val_predict(GaussianNB(var_smoothing=0.0), X, y, cv=split)  # noqa: E731
    seconds, answers = once(theirs, setting)
    agreement = same_classes({"ours": found.predictions, "peer": answers})
    yield beside(rows, times, seconds, "cross_val_predict of GaussianNB", agreement, GAUSSIAN_AT_LEAST, setting)


# Cross-validation beside learning and predicting once ----------------------------------------------------------------


def by_folds(rows: Rows, setting: Setting, of_fit_and_predict: float) -> Iterator[Figure]:
    """Ten folds, fifty and one for each row, as multiples; gives their times, and what ten folds found."""
    say(f"selection: {TEN} folds, {FIFTY}, leave-one-out, {rows.name}")
    engines: dict[str, Callable[[], Any]] = {
        "once": lambda: rows.learned().predict(rows.rows),
        "ten": lambda: rows.validated(TEN),
        "fifty": lambda: rows.validated(FIFTY),
        "loo": lambda: rows.validated("loo"),
    }
    times, answers = in_turns(engines, setting)
    compared = [
        (f"{TEN} folds", "ten", "once", "× fit and predict", of_fit_and_predict),
        (f"{FIFTY} folds", "fifty", "ten", f"× {TEN} folds", OF_TEN_FOLDS),
        ("leave-one-out", "loo", "ten", f"× {TEN} folds", OF_TEN_FOLDS_LOO),
    ]
    for task, mine, other, unit, aim in compared:
        found = answers[mine]
        told = f"{amount(times[mine], 's')} beside {amount(times[other], 's')}; {refitted(rows, found)}"
        told += f"; {np.mean(found.best == found.truth):.1%} right"
        ratio = times[mine] / times[other]
        limit = None if setting.small else aim
        yield Figure("selection", task, rows.name, ratio, None, "", told, at_most=limit, unit=unit)
    return times, answers["ten"]


def refitted(rows: Rows, found: Any) -> str:
    """The first fold and the last again, by models that were never shown them."""
    gaps = []
    for fold in (0, int(found.folds.max())):
        own = found.folds == fold
        expected = rows.learned(~own).predict_proba(taken(rows.rows, own))
        gaps.append(np.abs(found.posteriors[own] - expected).max())
    return within(gaps, found.what)


def within(gaps: Sequence[float], what: str) -> str:
    """How far posteriors are from those of models that were never shown the rows; NaN is far."""
    widest = float(np.max(gaps))
    if not widest <= EXACTLY:
        raise WrongAnswer(f"posteriors of {what} are {widest:.1e} away from those of refitted models")
    return "as refitted" if widest == 0.0 else f"within {widest:.0e} of refitted"


def once(run: Callable[[], Any], setting: Setting) -> tuple[float, Any]:
    """The time and the answer of a peer that has one turn."""
    times, answers = in_turns({"peer": run}, replace(setting, repeats=1))
    return times["peer"], answers["peer"]


def beside(
    rows: Rows, times: dict[str, float], seconds: float, name: str, agreement: str, aim: float, setting: Setting
) -> Figure:
    limit = None if setting.small else aim
    return Figure("selection", f"{TEN} folds", rows.name, times["ten"], seconds, name, agreement, at_least=limit)


def beside_pipeline(rows: Rows, times: dict[str, float], found: Any, setting: Setting) -> Figure:
    """Vectoriser and model learned anew for each fold, as cross_val_predict does: both sides know the same words."""
    say(f"selection: cross_val_predict of a pipeline, {SHOWN} folds, {rows.name}")
    run = lambda: some_folds(make_pipeline(CountVectorizer(), MultinomialNB()), rows, found.folds)  # noqa: E731
    seconds, theirs = once(run, setting)
    agreement = same_classes({"ours": found.predictions[found.folds < SHOWN], "peer": theirs}, 1.0)
    name = f"cross_val_predict of {VECTORISER}: {SHOWN} folds, times {TEN / SHOWN:g}"
    return beside(rows, times, seconds * TEN / SHOWN, name, agreement, PIPELINE_AT_LEAST, setting)


def some_folds(pipeline: Pipeline, rows: Rows, folds: NDArray[np.int32]) -> NDArray[Any]:
    """The first folds, each predicted by what the others teach; in the order of the rows."""
    answers = np.empty_like(rows.labels)
    for fold in range(SHOWN):
        own = folds == fold
        texts, labels = rows.chosen(~own)
        answers[own] = clone(pipeline).fit(texts, labels).predict(taken(rows.rows, own))
    return answers[folds < SHOWN]


def beside_matrix(rows: Rows, times: dict[str, float], found: Any, setting: Setting) -> Figure:
    """All texts vectorised once, which is quicker and leaks: words of the held-out fold alone are in the vocabulary.

    So its answers are compared with ours when ours is given those very words, apart from the time; the row also says how
    many answers the leak changes.
    """
    say(f"selection: cross_val_predict of a matrix, {rows.name}")

    def run() -> tuple[Any, Any]:
        vectoriser = CountVectorizer()
        matrix = vectoriser.fit_transform(rows.rows)
        predicted = cross_val_predict(MultinomialNB(), matrix, rows.labels, cv=PredefinedSplit(found.folds))
        return predicted, vectoriser.get_feature_names_out()

    seconds, (theirs, words) = once(run, setting)
    leaking = rows.validated(found.folds, features=bb.Text(vocabulary=words.tolist()))
    agreement = same_classes({"ours": leaking.predictions, "peer": theirs}, 1.0) + " when ours is given its words"
    agreement += f", {floored(float(np.mean(found.predictions == theirs)))} without"
    name = f"vectorised once: CountVectorizer, cross_val_predict of {MultinomialNB.__name__}"
    return beside(rows, times, seconds, name, agreement, MATRIX_AT_LEAST, setting)


# Leave-one-out of a small file ---------------------------------------------------------------------------------------


def adult(setting: Setting) -> Iterator[Figure]:
    """Census data from the file; each row is left out of the rest."""
    say("selection: leave-one-out, Adult")
    with datasets.adult() as (path, _, reading):
        run = lambda: bb.cross_validate(str(path), datasets.INCOME, folds="loo", features=NUMBERS, **reading)  # noqa: E731
        times, answers = in_turns({"ours": run}, setting)
        found = answers["ours"]
        told = f"{without_lines(path, reading, found)}; {np.mean(found.best == found.truth):.1%} right"
    schema = f"{len(datasets.ADULT) - 1} mixed columns"
    what = f"Adult, CSV, {len(found.rows):,} rows, {schema}, {len(found.classes)} classes"
    limit = None if setting.small else ADULT_AT_MOST
    yield Figure("selection", "leave-one-out", what, times["ours"], None, "", told, at_most=limit)


def without_lines(path: Path, reading: dict[str, Any], found: Any) -> str:
    """Some rows again, each by a model of a file that lacks its line."""
    lines = path.read_bytes().splitlines(keepends=True)
    schema = bb.count(str(path), datasets.INCOME, features=NUMBERS, **reading).schema
    gaps = []
    with tempfile.TemporaryDirectory() as folder:
        rest, own = Path(folder) / "rest.csv", Path(folder) / "own.csv"
        for at in np.linspace(0, len(found.rows) - 1, 5).astype(np.int64).tolist():
            row = int(found.rows[at])
            rest.write_bytes(b"".join(lines[:row] + lines[row + 1 :]))
            own.write_bytes(lines[row])
            model = bb.estimate(bb.count(str(rest), datasets.INCOME, schema=schema, **reading))
            gaps.append(np.abs(found.posteriors[at] - model.posterior(str(own), **reading)[0]).max())
    return within(gaps, f"{found.what}, Adult")


# Tuning and calibration, on 20 Newsgroups by date --------------------------------------------------------------------


def news(setting: Setting) -> Iterator[Figure]:
    corpus = newsgroups(setting)
    if hasattr(bb, "tune"):
        yield from tuned(corpus, setting)
    if "calibrate" in inspect.signature(bb.NaiveBayesClassifier).parameters:
        yield from calibrated(corpus, setting)


def tuned(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """Twenty values of alpha over ten folds, beside one fit of ours and beside GridSearchCV on two of the values."""
    rows = Rows(corpus.to_learn, corpus.texts, corpus.labels)
    folds = rows.validated(TEN).folds
    task = f"tune, {len(ALPHAS)} values of alpha, {TEN} folds"
    say(f"selection: {task}, {rows.name}")
    run = lambda: bb.tune(rows.rows, rows.labels, alpha=ALPHAS, folds=folds, scoring="log_loss")  # noqa: E731
    times, answers = in_turns({"fit": rows.learned, "tune": run}, setting)
    tuning = answers["tune"]
    best = f"best {tuning.best['alpha']:g}"
    told = f"{amount(times['tune'], 's')} beside {amount(times['fit'], 's')}; {best}"
    aims = (None, None) if setting.small else (TUNING_OF_FIT, TUNING_AT_LEAST)
    ratio = times["tune"] / times["fit"]
    yield Figure("selection", task, rows.name, ratio, None, "", told, at_most=aims[0], unit="× fit")

    shown = [tuning.best["alpha"], ALPHAS[0] if tuning.best["alpha"] == ALPHAS[-1] else ALPHAS[-1]]
    say(f"selection: GridSearchCV, {len(shown)} values of alpha, {rows.name}")
    grid = {"multinomialnb__alpha": shown}
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    every = np.unique(rows.labels)  # a small fold may lack a class
    scoring = make_scorer(log_loss, greater_is_better=False, response_method="predict_proba", labels=every)
    search = GridSearchCV(pipeline, grid, scoring=scoring, cv=PredefinedSplit(folds), refit=False)
    seconds, found = once(lambda: search.fit(rows.rows, rows.labels), setting)
    theirs = -found.cv_results_["mean_test_score"]
    told = f"{same_losses(rows, folds, tuning, shown, theirs)}; the peer's: "
    told += ", ".join(f"{loss:.3f} for {alpha:g}" for alpha, loss in zip(shown, theirs, strict=True))
    name = f"GridSearchCV of {VECTORISER}: {len(shown)} values, times {len(ALPHAS) / len(shown):g}"
    seconds *= len(ALPHAS) / len(shown)
    yield Figure("selection", task, rows.name, times["tune"], seconds, name, told, at_least=aims[1])


def same_losses(
    rows: Rows, folds: NDArray[np.int32], tuning: Any, shown: Sequence[float], theirs: NDArray[np.float64]
) -> str:
    """The log losses of the values that the peer was shown.

    scikit-learn takes a posterior below 2e-16 for that much and gives every fold the same weight; ours does neither. So our
    posteriors are measured its way beside its figures, and our way beside what was tuned by.
    """
    gaps = []
    for alpha, loss in zip(shown, theirs.tolist(), strict=True):
        found = rows.validated(folds, alpha=alpha)
        parts = [(found.truth[folds == k], found.posteriors[folds == k]) for k in range(TEN)]
        numbers = np.arange(len(found.classes))
        its_way = np.mean([log_loss(truth, shares, labels=numbers) for truth, shares in parts])
        place = [setting["alpha"] for setting in tuning.settings].index(alpha)
        gaps += [abs(its_way / loss - 1.0), abs(tuning.scores[place] / found.log_loss - 1.0)]
    widest = float(np.max(gaps))
    if not widest <= 1e-6:
        raise WrongAnswer(
            f"log losses of alpha {shown} are {widest:.1e} away from the peer's, or from cross_validate's"
        )
    return f"log losses within {widest:.0e}"


def calibrated(corpus: Corpus, setting: Setting) -> Iterator[Figure]:
    """Learning with calibration. Log loss, calibration error and right answers are those of the newer posts."""
    plain = bb.NaiveBayesClassifier().fit(corpus.texts, corpus.labels)
    before = Quality.of(plain, corpus)
    for mine, method in CALIBRATIONS.items():
        say(f"selection: calibration, {method}, {corpus.to_learn}")
        ours = lambda m=mine: bb.NaiveBayesClassifier(calibrate=m).fit(corpus.texts, corpus.labels)  # noqa: E731
        times, answers = in_turns({"ours": ours}, setting)
        pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
        peer = CalibratedClassifierCV(pipeline, method=method)
        seconds, learned = once(lambda p=peer: p.fit(corpus.texts, corpus.labels), setting)
        after, theirs = Quality.of(answers["ours"], corpus), Quality.of(learned, corpus)
        if mine == "temperature" and after.right != before.right:
            raise WrongAnswer(f"a temperature has changed {before.right:.4%} right answers to {after.right:.4%}")
        if not setting.small and not (after.loss < before.loss and after.error < before.error):
            raise WrongAnswer(f"calibrated by {mine}: {after}; before: {before}")
        told = f"{after}; before: {before}; the peer: {theirs}"
        name = f"CalibratedClassifierCV of {VECTORISER}, {method}"
        yield Figure("selection", f"fit, calibrate={mine!r}", corpus.to_learn, times["ours"], seconds, name, told)


@dataclass(frozen=True)
class Quality:
    """Log loss and calibration error of posteriors, and how often the most probable class is right."""

    loss: float
    error: float
    right: float

    @classmethod
    def of(cls, model: Any, corpus: Corpus) -> Quality:
        posteriors = model.predict_proba(corpus.held)
        right = model.classes_[posteriors.argmax(axis=1)] == corpus.held_labels
        loss = float(log_loss(corpus.held_labels, posteriors, labels=model.classes_))
        truth = np.searchsorted(model.classes_, corpus.held_labels).astype(np.int32)
        said = Evaluation(tuple(model.classes_.tolist()), np.arange(len(truth)), truth, posteriors, None)
        return cls(loss, said.calibration_error, float(right.mean()))

    def __str__(self) -> str:
        return f"log loss {self.loss:.3f}, calibration error {self.error:.3f}, {self.right:.2%} right"
