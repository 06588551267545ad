"""One law for every kind of model and every row: the answer is the sum that ``explain`` shows, to 1e-9."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import banbury as bb
from banbury.model.explain import Explanation

TOLERANCE = 1e-9
N_ROWS = 160  # more than the 100 from which on evidence is weighed
TEXT = ("text",)
NUMBERS = ("x", "twin", "noise")
TABLE = (*NUMBERS, "colour", "flag", "switch")
BOTH = (*TEXT, *TABLE)
COUNTS = ("n0", "n1", "n2", "n3", "n4", "n5")
LONG_TEXT = "a1 " * 12_000 + "w3 b2 unheard " * 4_000


# Rows ----------------------------------------------------------------------------------------------------------------


@cache
def learned() -> tuple[dict[str, Any], np.ndarray]:
    """Columns that depend on a class, 0 to 2; "switch" tells nothing of it except beside "flag"."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, N_ROWS)
    x = rng.normal(code, 1.0)
    flag = rng.random(N_ROWS) < 0.5
    frame = {"x": x, "twin": x + rng.normal(0, 0.4, N_ROWS), "noise": rng.normal(0, 1.0 + code), "flag": flag}
    frame["switch"] = flag ^ (code == 1)
    frame["colour"] = np.where(rng.random(N_ROWS) < 0.6, np.array(["red", "green", "blue"])[code], "grey").tolist()
    own_words = [[f"{'abc'[c]}{rng.integers(6)}" for _ in range(3)] for c in code]
    frame["text"] = [" ".join([*own, *(f"w{rng.integers(40)}" for _ in range(6))]) for own in own_words]
    counts = rng.poisson(0.3 + 1.5 * (np.arange(6) % 3 == code[:, None]))
    sizes = rng.choice([1.0, 0.3, 1e9], counts.shape, p=[0.6, 0.39, 0.01])
    frame |= dict(zip(COUNTS, (counts * sizes).T, strict=True))
    frame["x"][::9] = np.nan
    frame["colour"][2::11] = [None] * len(frame["colour"][2::11])
    return frame, code


@cache
def asked() -> dict[str, Any]:
    """Some learned rows, rows of missing, unseen, far or endless values, and rows that mix these with learned values."""
    rng = np.random.default_rng(1)
    strange: dict[str, list[Any]] = {
        "text": ["", "unheard words alone", None, LONG_TEXT, "a1 a1 a1 b2", "?!", "a1"],
        "x": [np.nan, 1e12, -1e300, 0.0, 5e-324, 3.5, -4.0],
        "twin": [np.nan, -1e12, 1e300, 0.0, 1e5, 0.5, -4.0],
        "noise": [np.nan, 0.0, 1e150, 1.0, -1e5, 2.0**53, 0.1],
        "colour": [None, "purple", "red", "green", "", "purple", "grey"],
        "flag": [True, False, True, False, True, False, True],
        "switch": [True, False, False, True, True, True, False],
    } | {name: [0.0, 1e9, 0.3, 1.0, 0.0, 1e-12, 2.0] for name in COUNTS}
    rows = {}
    for name, column in strange.items():
        first = list(learned()[0][name][:8])
        pool = [value for value in (*first, *column) if value is not LONG_TEXT]
        values = [*first[:4], *column, *(pool[k] for k in rng.integers(0, len(pool), 6))]
        rows[name] = values if name in ("text", "colour") else np.array(values)
    return rows


def rows_of(names: Sequence[str]) -> dict[str, Any]:
    return {name: learned()[0][name] for name in names}


def asked_of(names: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The rows that are asked about, as columns, and one by one."""
    rows = {name: asked()[name] for name in names}
    return rows, [dict(zip(names, values, strict=True)) for values in zip(*rows.values(), strict=True)]


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    """Banbury warns of rows that are impossible in every class; here they are asked on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        yield


def agree(one: float, other: float, size: float = 1.0) -> bool:
    """Whether two numbers are the same but for rounding; ``size`` is that of the largest number in their sum."""
    return one == other or abs(one - other) <= TOLERANCE * max(1.0, size)


def probability(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > -700.0 else 0.0


def assert_terms_sum_to_the_total(told: Explanation) -> None:
    terms = [told.prior, told.calibration]
    if not told.impossible:  # else the prior answers
        terms += [each.decibans for each in told.evidence]
    finite = all(map(math.isfinite, terms))
    assert agree(math.fsum(terms) if finite else sum(terms), told.decibans, max(map(abs, terms)) if finite else 1.0)
    assert agree(told.decibans, told.log_odds * 10.0 / math.log(10.0), abs(told.decibans))


# Classes -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """The columns that a model of classes learned from, and what it is asked."""

    names: Sequence[str]
    classes: Sequence[Any]
    explain: Callable[..., Explanation]
    predict: Callable[[Any], Any]
    posterior: Callable[[Any], np.ndarray]
    log_posterior: Callable[[Any], np.ndarray] | None = None


def class_names(n_classes: int = 3) -> np.ndarray:
    return np.array(["low", "middle", "high"])[learned()[1] % n_classes]


def answers_of(model: Any, names: Sequence[str]) -> Answers:
    return Answers(names, model.classes, model.explain, model.predict, model.posterior, model.log_posterior)


def fitted(clf: Any, names: Sequence[str], labels: Any = None) -> Answers:
    clf.fit(rows_of(names), class_names() if labels is None else labels)
    logs = getattr(clf, "predict_log_proba", None)
    classes = clf.model_.classes if isinstance(clf, bb.Mixture) else clf.classes_.tolist()
    return Answers(names, classes, clf.explain, clf.predict, clf.predict_proba, logs)


def counted(names: Sequence[str], n_classes: int = 3, features: Any = "auto") -> bb.Tally:
    return bb.count(rows_of(names), class_names(n_classes), features=features)


def plain(names: Sequence[str], features: Any = "auto", **settings: Any) -> Answers:
    return answers_of(bb.estimate(counted(names, 3, features), **settings), names)


def weighed_model(names: Sequence[str], n_classes: int = 3, features: Any = "auto", **settings: Any) -> bb.Model:
    return bb.weigh(counted(names, n_classes, features), rows_of(names), class_names(n_classes), **settings)


def weighed(names: Sequence[str], n_classes: int = 3, features: Any = "auto", **settings: Any) -> Answers:
    return answers_of(weighed_model(names, n_classes, features, **settings), names)


def tree() -> bb.Model:
    return bb.estimate(bb.count({**rows_of(TABLE), "y": class_names()}, "y", features=bb.ColumnTree()))


def calibrated(model: Any, method: Any, names: Sequence[str]) -> Answers:
    truth = [model.classes.index(name) for name in class_names()]
    return answers_of(model.calibrated(bb.calibrate(method, model.log_posterior(rows_of(names)), truth)), names)


def grown(clf: Any) -> Answers:
    """Taught once more, and made to forget: words of its model were changed in place, and its weights are stale."""
    rows, labels, answers = rows_of(BOTH), class_names(), fitted(clf, BOTH)
    once_more, forgotten = ({name: column[part] for name, column in rows.items()} for part in (slice(5), slice(5, 9)))
    clf.partial_fit(once_more, labels[:5])
    clf.predict_proba(once_more)
    clf.forget(forgotten, labels[5:9])
    return answers


BLOCKS = {("x", "twin"): bb.Gaussian(covariance="tied"), ("colour", "flag"): bb.Joint()}
CURVES = {"x": bb.KernelDensity(), "twin": bb.Histogram(), "noise": bb.QuantileTree()}
OCCURRENCES = {COUNTS: bb.Occurrences()}
METHODS = ("temperature", "platt", "isotonic")
TEXTS = {
    "multinomial": bb.Text(),
    "presence": bb.Text(model="presence"),
    "bernoulli": bb.Text(model="bernoulli"),
    "complement": bb.Text(model="complement", idf=True),
    "log-odds": bb.Text(model="log_odds"),
    "damped": bb.Text(damping="log", length=True),
    "pairs of words": bb.Text(ngrams=(1, 2), min_count=2),
}
SOME_LABELLED = [None if k % 3 == 0 else str(name) for k, name in enumerate(class_names())]
MODELS: dict[str, Callable[[], Answers]] = {
    **{f"plain, {how}": partial(plain, BOTH, how=how) for how in ("mle", "map", "mean", "predictive", "gibbs")},
    **{f"text, {name}": partial(plain, TEXT, {"text": family}) for name, family in TEXTS.items()},
    **{f"weighed text, {name}": partial(weighed, TEXT, 3, {"text": family}) for name, family in TEXTS.items()},
    **{f"weighed text of {n} classes": partial(weighed, TEXT, n) for n in (2, 3)},
    **{f"weighed table of {n} classes": partial(weighed, TABLE, n) for n in (2, 3)},
    **{f"weighed text and table of {n} classes": partial(weighed, BOTH, n) for n in (2, 3)},
    **{f"weighed counts of {n} classes": partial(weighed, COUNTS, n, OCCURRENCES) for n in (2, 3)},
    "weighed, without pairs or corrections": partial(weighed, TABLE, 3, pairs=False, correct=False),
    "weighed, beside blocks": partial(weighed, BOTH, 3, BLOCKS),
    "blocks": partial(plain, TABLE, BLOCKS),
    "curves": partial(plain, NUMBERS, CURVES),
    "counts": partial(plain, COUNTS, OCCURRENCES),
    "another prior": partial(plain, BOTH, class_prior=[0.9, 0.1, 0.0]),
    "tree": lambda: answers_of(tree(), TABLE),
    **{f"tree, {method}": lambda method=method: calibrated(tree(), method, TABLE) for method in METHODS},
    **{f"weighed, {m}": lambda m=m: calibrated(weighed_model(BOTH), m, BOTH) for m in METHODS},
    **{f"NaiveBayesClassifier, {m}": lambda m=m: fitted(bb.NaiveBayesClassifier(calibrate=m), BOTH) for m in METHODS},
    "NaiveBayesClassifier, balanced": lambda: fitted(bb.NaiveBayesClassifier(class_weight="balanced"), BOTH),
    "NaiveBayesClassifier, grown": lambda: grown(bb.NaiveBayesClassifier()),
    "EvidenceClassifier": lambda: fitted(bb.EvidenceClassifier(), BOTH),
    "EvidenceClassifier, grown": lambda: grown(bb.EvidenceClassifier()),
    "TANClassifier": lambda: fitted(bb.TANClassifier(), TABLE),
    "SemiSupervisedClassifier": lambda: fitted(bb.SemiSupervisedClassifier(), BOTH, SOME_LABELLED),
    "Mixture": lambda: fitted(bb.Mixture(3), TABLE),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_class_is_answered_by_the_sum_that_explain_shows(kind: str) -> None:
    model = MODELS[kind]()
    rows, one_by_one = asked_of(model.names)
    posterior, predictions = model.posterior(rows), model.predict(rows)
    classes = list(model.classes)
    for i, row in enumerate(one_by_one):
        for against in classes:
            if against == predictions[i]:
                continue
            told = model.explain(row, against)
            assert (told.winner, told.against) == (predictions[i], against)
            assert_terms_sum_to_the_total(told)
            for_winner, for_other = (posterior[i, classes.index(name)] for name in (told.winner, told.against))
            assert agree(told.probability, for_winner) and agree(told.probability_against, for_other)
            if for_winner + for_other > 0:
                assert agree(probability(told.log_odds), for_winner / (for_winner + for_other))
            if model.log_posterior is None:
                continue
            logs = model.log_posterior({name: [value] for name, value in row.items()})[0]
            winner, other = classes.index(told.winner), classes.index(told.against)
            assert agree(math.exp(logs[winner]), for_winner)
            if not np.isneginf(logs[[winner, other]]).all():
                assert agree(told.log_odds, logs[winner] - logs[other], abs(told.log_odds))


@pytest.mark.parametrize("name", ["MultinomialNB", "ComplementNB", "BernoulliNB", "CategoricalNB", "GaussianNB"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_drop_in_class_is_answered_by_the_sum_that_explain_shows(name: str, n_classes: int) -> None:
    code = learned()[1] % n_classes
    X = np.random.default_rng(2).poisson(0.4 + (np.arange(5) % n_classes == code[:, None]))
    clf = getattr(bb, name)().fit(X if name == "CategoricalNB" else 0.3 * X, code)
    rows = (X if name == "CategoricalNB" else 0.3 * X)[:12]
    posterior, logs, predictions = clf.predict_proba(rows), clf.predict_log_proba(rows), clf.predict(rows)
    for i, row in enumerate(rows):
        for against in set(range(n_classes)) - {predictions[i]}:
            told = clf.explain(row, against)
            assert told.winner == predictions[i]
            assert_terms_sum_to_the_total(told)
            assert agree(told.probability, posterior[i, told.winner])
            assert agree(told.probability_against, posterior[i, against])
            assert agree(told.log_odds, logs[i, told.winner] - logs[i, against], abs(told.log_odds))


def test_weighed_models_of_these_rows_have_all_that_is_weighed() -> None:
    """Pairs, trends and corrections of cells, corrections of words, and columns that are scored by their family."""
    weights = weighed_model(TABLE).weighing.weights
    assert weights.pairs and weights.trends and weights.strengths
    both = weighed_model(BOTH, 3, BLOCKS).weighing.weights
    assert both.texts and both.scored and np.abs(both.texts[0].corrections).max() > 0


def test_every_public_model_is_asked() -> None:
    """A new class that explains has to stand in a table above."""
    explaining = {name for name in bb.__all__ if hasattr(getattr(bb, name), "explain")}
    asked_above = {"Model", "LabelModel", "MultiLabelClassifier", "NaiveBayesClassifier", "Mixture"}
    asked_above |= {"EvidenceClassifier", "SemiSupervisedClassifier", "TANClassifier", "BernoulliNB", "CategoricalNB"}
    asked_above |= {"ComplementNB", "GaussianNB", "MultinomialNB"}
    assert explaining - {"Suspicious"} == asked_above  # which explains by the model of all other rows


def test_counts_are_shown_as_the_row_has_them() -> None:
    row = dict.fromkeys(COUNTS, 0.0) | {"n1": 0.3, "n2": 2.0**24 + 1.0}
    assert {e.feature: e.value for e in weighed(COUNTS, 3, OCCURRENCES).explain(row).evidence} == {
        "n1": 0.3,
        "n2": 2.0**24 + 1.0,
    }


# Labels --------------------------------------------------------------------------------------------------------------


@cache
def label_sets() -> list[list[str]]:
    """The labels of each row: that of its class, one by chance, a rare one, and "all", which every row has."""
    rng = np.random.default_rng(3)
    own = np.array(["a", "b", "c"])[learned()[1]].tolist()
    by_chance = rng.choice(["a", "b", "c"], N_ROWS).tolist()
    rare = rng.random(N_ROWS) < 0.05
    return [sorted({"all", own[i], by_chance[i]} | ({"rare"} if rare[i] else set())) for i in range(N_ROWS)]


def label_model(names: Sequence[str], features: Any = "auto", **settings: Any) -> bb.LabelModel:
    return bb.LabelModel.of(bb.count(rows_of(names), target=label_sets(), features=features), **settings)


def multi_label(names: Sequence[str], **settings: Any) -> bb.LabelModel:
    return bb.MultiLabelClassifier(**settings).fit(rows_of(names), label_sets()).model_


def grown_labels(names: Sequence[str]) -> bb.LabelModel:
    """Taught once more, with a new label: weights are stale."""
    clf = bb.MultiLabelClassifier().fit(rows_of(names), label_sets())
    few = {name: column[:2] for name, column in rows_of(names).items()}
    return clf.partial_fit(few, [["a", "new"], ["rare"]]).model_


# A column of which some values are impossible, beside texts, which never are.
IMPOSSIBLE = {"text": bb.Text(), "colour": bb.Categorical(alpha=0.0)}
LABEL_MODELS: dict[str, tuple[Sequence[str], Callable[[], bb.LabelModel]]] = {
    **{
        f"plain, {how}": (BOTH, partial(label_model, BOTH, how=how))
        for how in ("mle", "map", "mean", "predictive", "gibbs")
    },
    "plain, map and alpha 2": (BOTH, partial(label_model, BOTH, how="map", alpha=2.0)),
    "the most informative words": (BOTH, partial(label_model, BOTH, words_per_label=20)),
    "impossible values beside texts": (("text", "colour"), partial(label_model, ("text", "colour"), IMPOSSIBLE)),
    "blocks": (BOTH, partial(label_model, BOTH, BLOCKS)),
    "curves": (NUMBERS, partial(label_model, NUMBERS, CURVES)),
    "counts": (COUNTS, partial(label_model, COUNTS, OCCURRENCES)),
    **{f"text, {name}": (TEXT, partial(label_model, TEXT, {"text": family})) for name, family in TEXTS.items()},
    **{f"weighed text, {name}": (TEXT, partial(multi_label, TEXT, features=family)) for name, family in TEXTS.items()},
    "weighed counts": (COUNTS, partial(multi_label, COUNTS, features=OCCURRENCES, weigh=True)),
    "weighed table": (TABLE, partial(multi_label, TABLE)),
    "weighed text and table": (BOTH, partial(multi_label, BOTH)),
    "weighed, beside blocks": (BOTH, partial(multi_label, BOTH, features=BLOCKS, weigh=True)),
    **{f"threshold {cut}": (BOTH, partial(multi_label, BOTH, threshold=cut)) for cut in (None, 0.3, "f1", {"a": 0.9})},
    **{
        f"weighed, {method}": (BOTH, partial(multi_label, BOTH, calibrate=method))
        for method in ("temperature", "platt")
    },
    **{
        f"not weighed, {method}": (BOTH, partial(multi_label, BOTH, weigh=False, calibrate=method))
        for method in ("temperature", "platt")
    },
    "grown text": (TEXT, partial(grown_labels, TEXT)),
    "grown text and table": (BOTH, partial(grown_labels, BOTH)),
}


@pytest.mark.parametrize("kind", LABEL_MODELS)
def test_a_label_is_answered_by_the_sum_that_explain_shows(kind: str) -> None:
    names, make = LABEL_MODELS[kind]
    model = make()
    rows, one_by_one = asked_of(names)
    posterior, log_odds = model.posterior(rows), model.log_odds(rows)
    if model.calibration is not None:
        log_odds = model.calibration.odds(log_odds)
    for i, row in enumerate(one_by_one):
        for k, label in enumerate(model.labels):
            told = model.explain(row, label)
            assert_terms_sum_to_the_total(told)
            yes = told.winner == label
            assert {told.winner, told.against} == {label, f"not {label}"}
            with_it, without = told.probability, told.probability_against
            with_it, without = (with_it, without) if yes else (without, with_it)
            assert agree(with_it, posterior[i, k]) and agree(without, 1.0 - posterior[i, k])
            odds = told.log_odds if yes else -told.log_odds
            assert agree(odds, log_odds[i, k], abs(odds)) and agree(probability(odds), posterior[i, k])


def test_a_label_that_every_row_has_is_answered_by_the_prior() -> None:
    for model in (label_model(BOTH), multi_label(BOTH, weigh=True, threshold=None)):
        posterior = model.posterior(asked_of(BOTH)[0])[:, model.labels.index("all")]
        assert posterior.min() == posterior.max() > 0.99
        told = model.explain(asked_of(BOTH)[1][0], "all")
        assert (told.winner, told.evidence) == ("all", ())
        assert "every row has this label" in str(told)
        with pytest.raises(bb.BanburyError, match="label must be a label that some rows do not have"):
            model.informative("all")
