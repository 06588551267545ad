"""Every kind of thing that ``bb.save`` takes, made of any rows; rows of awkward shapes; and all that a thing can be asked."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import banbury as bb
from banbury.model.explain import Explanation

Table = dict[str, list[Any]]
WORDS = ["good", "bad", "one", "no", "two", "été"]
FAMILIES = {"word": "categorical", "whole": "categorical", "number": "gaussian", "flag": "bernoulli", "text": bb.Text()}


# Rows -----------------------------------------------------------------------------------------------------------------


def draw_table(n: int, seed: int = 0, scale: float = 1.0) -> Table:
    """A column of each kind: categories, whole numbers, numbers, flags and texts."""
    rng = np.random.default_rng(seed)
    return {
        "word": rng.choice(list("abcd"), n).tolist(),
        "whole": rng.integers(0, 4, n).tolist(),
        "number": (rng.normal(size=n) * scale).tolist(),
        "flag": (rng.random(n) < 0.5).tolist(),
        "text": [" ".join(rng.choice(WORDS, rng.integers(4, 7))) for _ in range(n)],
    }


def draw_classes(n: int, seed: int = 0, n_classes: int = 2) -> list[str]:
    return [f"class {k}" for k in np.random.default_rng(seed).integers(0, n_classes, n)]


def draw_any(seed: int) -> tuple[Table, list[Any]]:
    """Rows of which nothing is known: how many, of how many classes, of which size, and how many values are missing."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    table = draw_table(n, seed, 10.0 ** rng.uniform(-300, 300))
    gaps = {name: rng.random(n) < rng.choice([0.0, 0.2, 0.9]) for name in table}
    table = {name: [None if gaps[name][k] else value for k, value in enumerate(table[name])] for name in table}
    return table, draw_classes(n, seed, int(rng.integers(1, 6)))


def shapes() -> dict[str, tuple[Table, list[Any]]]:
    """Rows and their classes: few rows, few classes, columns that say nothing, and values that are hard to keep."""
    tables = {f"{n} rows": (draw_table(n, n), draw_classes(n, n)) for n in (1, 2, 3, 5, 30)}
    tables |= {f"any rows, {seed}": draw_any(seed) for seed in range(3)}
    rest, twenty = draw_classes(20, 7), draw_table(20, 7)
    constant = {"word": ["a"] * 20, "whole": [3] * 20, "number": [1.5] * 20, "flag": [True] * 20}
    odd_names = ["\x000", "\x001", "", " ", "None", "nan", "é\u2028", '"\\']
    return tables | {
        "one class": (twenty, ["class 0"] * 20),
        "ten classes": (draw_table(40), draw_classes(40, 1, 10)),
        "classes that a column tells": (twenty, [f"class {word}" for word in twenty["word"]]),
        "constant columns": ({**constant, "text": ["one good two bad"] * 20}, rest),
        "missing values alone": ({name: [None] * 20 for name in FAMILIES}, rest),
        "empty texts": ({**twenty, "text": [""] * 20}, rest),
        "huge numbers": (draw_table(20, 7, 1e300), rest),
        "tiny numbers": (draw_table(20, 7, 1e-310), rest),
        "numbers as far apart as can be": ({**twenty, "number": [1.7e308, -1.7e308] * 10}, rest),
        "whole numbers far apart": ({**twenty, "whole": [2**62, -(2**62), 7, 2**53 + 1] * 5}, rest),
        "odd names": ({**twenty, "word": (odd_names * 3)[:20]}, (["", "\x000", "None", "\x001"] * 5)),
        "whole classes": (twenty, [k % 3 for k in range(20)]),
        "flags as classes": (twenty, twenty["flag"]),
    }


# Models ---------------------------------------------------------------------------------------------------------------


def only(table: Table, *names: str) -> Table:
    return {name: table[name] for name in names}


def in_sets(classes: list[Any]) -> list[list[str]]:
    """Sets of labels: of each row its class, that of another row, both or none."""
    rng = np.random.default_rng(len(classes))
    names = [str(name) for name in classes]
    return [sorted({*rng.choice([name, names[k - 1]], k % 3)}) for k, name in enumerate(names)]


def as_matrix(table: Table) -> Any:
    """Three columns of finite numbers."""
    columns = [table["whole"], table["number"], [len(text or "") for text in table["text"]]]
    return np.nan_to_num(np.array(columns, dtype=np.float64).T, posinf=0.0, neginf=0.0)


def as_counts(table: Table) -> Any:
    return np.floor(np.minimum(np.abs(as_matrix(table)), 50.0))


def calibrate_by(method: str, model: Any, table: Table, classes: list[Any]) -> Any:
    """A model or a network that is calibrated on its own rows."""
    numbers = [model.classes.index(name) for name in classes]
    return model.calibrated(bb.calibrate(method, model.log_posterior(table), numbers))  # type: ignore[arg-type]


def estimated(how: Any) -> Callable[[Table, list[Any]], bb.Model]:
    return lambda table, classes: bb.estimate(bb.count(table, classes, features=FAMILIES), how=how)


def of_one_family(family: str, name: str) -> Callable[[Table, list[Any]], bb.Model]:
    """A model of one column of numbers, none of which is below zero."""

    def make(table: Table, classes: list[Any]) -> bb.Model:
        column = [None if value is None else abs(value) for value in table[name]]
        return bb.estimate(bb.count({name: column}, classes, features={name: family}))

    return make


def fitted(classifier: Callable[[], Any], *names: str) -> Callable[[Table, list[Any]], Any]:
    """The model of an estimator, of some columns or of all."""
    return lambda table, classes: classifier().fit(only(table, *names or table), classes).model_


def of_labels(**settings: Any) -> Callable[[Table, list[Any]], bb.LabelModel]:
    return lambda table, classes: bb.MultiLabelClassifier(**settings).fit(table, in_sets(classes)).model_


def of_two_columns(table: Table, classes: list[Any]) -> bb.LabelModel:
    settings = bb.MultiLabelClassifier(threshold="f1")
    return settings.fit(only(table, "word", "whole"), in_sets(classes)).model_


def weigh_text(table: Table, classes: list[Any]) -> bb.Model:
    texts = only(table, "text")
    return bb.weigh(bb.count(texts, classes, features={"text": bb.Text()}), texts, classes)


def weigh_families(table: Table, classes: list[Any]) -> bb.Model:
    """Weighed columns of which some are scored by their family."""
    return bb.weigh(bb.count(table, classes, features=FAMILIES), table, classes)


def draw_tree(table: Table, classes: list[Any], **settings: Any) -> bb.Model:
    return bb.TANClassifier(**settings).fit(table, classes).model_


def count_network(table: Table, classes: list[Any]) -> bb.BeliefNetwork:
    columns = {**only(table, "word", "whole", "number"), "class": classes}
    return bb.BeliefNetwork.count(columns, {"word": ["class"], "number": ["class", "word"], "whole": []})


def fit_semi_supervised(table: Table, classes: list[Any]) -> bb.Model:
    some = [name if k % 2 == 0 else None for k, name in enumerate(classes)]
    return bb.SemiSupervisedClassifier().fit(table, some).model_


BLOCKS = {("number", "whole"): bb.Gaussian(covariance="full"), ("word", "flag"): bb.Joint()}
KINDS: dict[str, Callable[[Table, list[Any]], Any]] = {
    "tally": lambda table, classes: bb.count(table, classes),
    "faded": lambda table, classes: bb.estimate(bb.count(table, classes) * 0.3 * (1 / 3)),
    "weighted rows": lambda table, classes: bb.count(table, classes, weights=np.linspace(0.1, 2.0, len(classes))),
    **{how: estimated(how) for how in ("mle", "map", "mean", "predictive", "gibbs")},
    "class prior": lambda table, classes: bb.estimate(bb.count(table, classes), class_prior="uniform"),
    **{family: of_one_family(family, "number") for family in ("gamma", "exponential", "histogram", "kernel_density")},
    "quantile tree": of_one_family("quantile_tree", "number"),
    "poisson": of_one_family("poisson", "whole"),
    "blocks": lambda table, classes: bb.estimate(bb.count(table, classes, features=BLOCKS)),
    "tuned": fitted(lambda: bb.NaiveBayesClassifier(alpha="auto", features="choose"), "number"),
    "calibrated by temperature": fitted(lambda: bb.NaiveBayesClassifier(calibrate="temperature")),
    "calibrated by platt": fitted(lambda: bb.NaiveBayesClassifier(calibrate="platt", how="mle")),
    "calibrated by isotonic": fitted(lambda: bb.NaiveBayesClassifier(calibrate="isotonic")),
    "weighed": fitted(lambda: bb.EvidenceClassifier(weigh=True)),
    "weighed without pairs": fitted(lambda: bb.EvidenceClassifier(weigh=True, pairs=False, correct=False)),
    "weighed by a sample": fitted(lambda: bb.EvidenceClassifier(weigh=True, sample=10)),
    "weighed texts": weigh_text,
    "weighed, of many families": weigh_families,
    "weighed and calibrated": lambda table, classes: calibrate_by("platt", weigh_text(table, classes), table, classes),
    "labels": of_labels(),
    "labels by f1": of_labels(threshold="f1"),
    "labels by f1, of two columns": of_two_columns,
    "labels by f1, calibrated by temperature": of_labels(threshold="f1", calibrate="temperature"),
    "labels by f1, calibrated by platt": of_labels(threshold="f1", calibrate="platt"),
    "labels of mle, calibrated by platt": of_labels(how="mle", threshold=0.3, calibrate="platt", weigh=False),
    "labels, all or none": of_labels(threshold=1.0, calibrate="temperature"),
    "weighed labels": of_labels(weigh=True, threshold=0.0),
    "weighed labels, calibrated by platt": of_labels(weigh=True, threshold="f1", calibrate="platt"),
    "network": count_network,
    "tree": draw_tree,
    "tree of mle": lambda table, classes: draw_tree(table, classes, how="mle", level=None),
    "calibrated tree": lambda table, classes: calibrate_by("isotonic", draw_tree(table, classes), table, classes),
    "density": lambda table, _: bb.Density().fit(table).model_,
    "mixture": lambda table, _: bb.Mixture(2, starts=2).fit(only(table, "word", "number")).model_,
    "semi-supervised": fit_semi_supervised,
    "GaussianNB": lambda table, classes: bb.GaussianNB().fit(as_matrix(table), classes).model_,
    "MultinomialNB": lambda table, classes: bb.MultinomialNB().fit(as_counts(table), classes).model_,
    "ComplementNB": lambda table, classes: bb.ComplementNB().fit(as_counts(table), classes).model_,
    "BernoulliNB": lambda table, classes: bb.BernoulliNB().fit(as_counts(table), classes).model_,
    "CategoricalNB": lambda table, classes: bb.CategoricalNB().fit(as_counts(table).astype(int), classes).model_,
}


def make(kind: str, table: Table, classes: list[Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KINDS[kind](table, classes)


# Questions ------------------------------------------------------------------------------------------------------------

VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None, True, True, False],
    "integer": [1, 0, None, 2, 3, 10**9],
    "float": [0.5, 1.0, None, -2.0, 7.0, 1e9],
    "string": ["a", "b", None, "c", "never counted", "d"],
    "text": ["a good one", "bad bad", "good good", "", "never counted", "two bad"],
}


def rows_for(model: Any) -> Table:
    """Six rows that a model can be asked about, by what its columns hold."""
    rows = dict.fromkeys(model.schema.columns, VALUES["string"])
    for feature in model.schema.features:
        kinds = feature.kinds or (feature.kind,) * len(feature.inputs)
        for name, kind in zip(feature.inputs, kinds, strict=True):
            rows[name] = VALUES["text" if feature.reads_text else kind]
    return rows


def ask(thing: Any) -> dict[str, Any]:
    """The answers of a thing to every question; where a question is refused by name, the name of the error.

    Raises AssertionError where an answer is a NaN, and whatever is raised that is not an error of ours.
    """
    answers = {}
    for question, answer in questions(thing):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answers[question] = answer()
            except bb.BanburyError as error:
                answers[question] = type(error).__name__
    for question, answer in answers.items():
        if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
            assert not np.isnan(answer).any(), f"{question}: {answer}"
        answers[question] = repr(answer.tolist() if isinstance(answer, np.ndarray) else answer)
    return answers


def questions(thing: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "str", lambda: str(thing)
    if isinstance(thing, bb.BeliefNetwork):
        yield from questions_of_network(thing)
        return
    tally = thing if isinstance(thing, bb.Tally) else thing.tally
    yield "tally", lambda: (str(tally), tally.digest(), (tally + tally - tally).n_rows)
    if isinstance(thing, bb.Tally):
        return
    table = rows_for(thing)
    row = {name: values[0] for name, values in table.items()}
    yield "posterior", lambda: thing.posterior(table)
    yield "predict", lambda: list(thing.predict(table))
    if isinstance(thing, bb.LabelModel):
        for label in thing.labels[:2]:
            yield f"explain {label}", lambda label=label: evidence_of(thing.explain(row, label))
            yield f"informative {label}", lambda label=label: str(thing.informative(label, 3))
        yield "log odds", lambda: thing.log_odds(table)
        return
    yield "log posterior", lambda: np.exp(thing.log_posterior(table))
    yield "explain", lambda: evidence_of(thing.explain(row))
    yield "informative", lambda: str(thing.informative(3))
    yield "sample", lambda: {name: list(column) for name, column in thing.sample(5).items()}


def questions_of_network(network: bb.BeliefNetwork) -> Iterator[tuple[str, Callable[[], Any]]]:
    for node in network._variables:
        yield f"query {node.name}", lambda node=node: np.array(list(network.query(node.name).values()))
    yield "sample", lambda: {name: list(column) for name, column in network.sample(5).items()}
    if network.target is not None:
        rows = {node.name: VALUES[node.kind] for node in network._variables if node.name != network.target}
        rows = {name: rows.get(name, VALUES["string"]) for name in network.columns}
        yield "posterior", lambda: network.posterior(rows)
        yield "predict", lambda: list(network.predict(rows))


def evidence_of(explanation: Explanation) -> tuple[str, list[float]]:
    decibans = [part.decibans for part in explanation.evidence]
    assert not any(math.isnan(part) for part in decibans), explanation
    return str(explanation), decibans
