"""No file has a word, a category or a class name that only forgotten rows had, whatever kind of model it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import banbury as bb
import naive_files
from banbury.files import to_bytes
from test_saving import assert_comes_back

N_ROWS = 40
Rows = dict[str, list[Any]]


def draw_rows(seed: int) -> Rows:
    """Rows of which some names stand in few rows: of classes, categories and words. Some begin with a zero byte."""
    rng = np.random.default_rng(seed)
    names = [f"{'' if k % 3 else chr(0)}q{k:02d}é'\"z" for k in range(60)]
    rare = np.minimum(rng.geometric(0.25, (N_ROWS, 3)) - 1, 9)
    return {
        "class": [names[k] for k in rare[:, 0]],
        "word": [names[10 + k] for k in rare[:, 1]],
        "other": [names[20 + k] if k > 2 else None for k in rare[:, 2]],
        "number": rng.normal(size=N_ROWS).round(2).tolist(),
        "text": [" ".join(f"q{k:02d}z" for k in 60 + rng.integers(0, 40, 4)) for _ in range(N_ROWS)],
    }


def take(rows: Rows, at: list[int]) -> Rows:
    return {name: [column[k] for k in at] for name, column in rows.items()}


def without_class(rows: Rows) -> tuple[Rows, list[str]]:
    return {name: column for name, column in rows.items() if name != "class"}, rows["class"]


def names_in(rows: Rows) -> set[str]:
    words = {word for text in rows.get("text", []) for word in text.split()}
    columns = ("class", "word", "other")
    return words.union(*(rows.get(name, []) for name in columns)) - {None}


def strings_in(content: bytes) -> Iterator[str]:
    """All texts of a file: those of its JSON text, and what its arrays of bytes hold."""
    about, arrays = naive_files.unpacked(content)
    pending = [about]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value
    for array in arrays.values():
        if array.dtype == np.uint8:
            yield array.tobytes().decode("utf-8", "surrogatepass")


FEATURES: dict[str, Any] = {"word": "categorical", "other": "categorical", "number": "quantile_tree", "text": bb.Text()}


def subtract(rows: Rows, gone: list[Rows], use: Callable[[Any, bb.Tally], Any]) -> Any:
    """What is made of the model of all rows and of a tally from which some were subtracted."""
    table, classes = without_class(rows)
    tally = bb.count(table, classes, features=FEATURES)
    rest = tally
    for part in gone:
        rest = rest - tally.count(*without_class(part))
    return use(tally, rest)


def weigh_again(tally: bb.Tally, rest: bb.Tally, rows: Rows) -> bb.Model:
    """A model of fewer rows with the weights that all rows had."""
    weighed = bb.weigh(tally, *without_class(rows))
    return bb.estimate(rest).weighed(weighed.weighing)


def calibrate_again(rest: bb.Tally) -> bb.Model:
    scores = np.random.default_rng(0).normal(size=(20, len(rest.classes)))
    numbers = [k % len(rest.classes) for k in range(20)]
    return bb.estimate(rest).calibrated(bb.calibrate("isotonic", scores, numbers))


def fit_and_forget(classifier: Any, *columns: str) -> Callable[[Rows, list[Rows]], Any]:
    def forget(rows: Rows, gone: list[Rows]) -> Any:
        table, classes = without_class(rows)
        classifier.fit({name: table[name] for name in columns or table}, classes)
        for part in gone:
            table, classes = without_class(part)
            classifier.forget({name: table[name] for name in columns or table}, classes)
        return classifier.model_

    return forget


def forget_matrix(classifier: Any) -> Callable[[Rows, list[Rows]], Any]:
    """A drop-in class, which takes numbers: only its classes have names."""

    def as_matrix(rows: Rows) -> tuple[Any, list[str]]:
        columns = [[int(10 * abs(number)) for number in rows["number"]], [len(word) for word in rows["word"]]]
        return np.array(columns).T, rows["class"]

    def forget(rows: Rows, gone: list[Rows]) -> Any:
        classifier.fit(*as_matrix(rows))
        for part in gone:
            classifier.forget(*as_matrix(part))
        return classifier.model_

    return forget


def forget_labels(**settings: Any) -> Callable[[Rows, list[Rows]], bb.LabelModel]:
    def in_sets(rows: Rows) -> tuple[Rows, list[list[str]]]:
        table, classes = without_class(rows)
        return table, [[name, other] if other else [name] for name, other in zip(classes, table["other"], strict=True)]

    def forget(rows: Rows, gone: list[Rows]) -> bb.LabelModel:
        classifier = bb.MultiLabelClassifier(features=FEATURES, **settings)
        classifier.fit(*in_sets(rows))
        for part in gone:
            classifier.forget(*in_sets(part))
        return classifier.model_

    return forget


def count_and_subtract(rows: Rows, gone: list[Rows]) -> bb.BeliefNetwork:
    nodes = [{name: part[name] for name in ("class", "word", "number")} for part in (rows, *gone)]
    network = bb.BeliefNetwork.count(nodes[0], {"word": ["class"], "number": ["word"]})
    rest = network
    for part in nodes[1:]:
        rest = rest - network.count_more(part)
    return rest


FORGETTERS: dict[str, Callable[[Rows, list[Rows]], Any]] = {
    "tally": lambda rows, gone: subtract(rows, gone, lambda _, rest: rest),
    "plain": lambda rows, gone: subtract(rows, gone, lambda _, rest: bb.estimate(rest)),
    "calibrated": lambda rows, gone: subtract(rows, gone, lambda _, rest: calibrate_again(rest)),
    "weighed, of a smaller tally": lambda rows, gone: subtract(
        rows, gone, lambda tally, rest: weigh_again(tally, rest, rows)
    ),
    "NaiveBayesClassifier": fit_and_forget(bb.NaiveBayesClassifier(features=FEATURES)),
    "EvidenceClassifier": fit_and_forget(bb.EvidenceClassifier(features=FEATURES, weigh=True)),
    "EvidenceClassifier of texts": fit_and_forget(bb.EvidenceClassifier(weigh=True), "text"),
    "EvidenceClassifier of categories": fit_and_forget(bb.EvidenceClassifier(weigh=True), "word", "other"),
    "labels": forget_labels(weigh=False, threshold="f1", calibrate="platt"),
    "weighed labels": forget_labels(weigh=True, threshold="f1", calibrate="platt"),
    "network": count_and_subtract,
    "tree": fit_and_forget(bb.TANClassifier(features={"word": "categorical"}), "word", "number"),
    "GaussianNB": forget_matrix(bb.GaussianNB()),
    "MultinomialNB": forget_matrix(bb.MultinomialNB()),
    "ComplementNB": forget_matrix(bb.ComplementNB()),
    "BernoulliNB": forget_matrix(bb.BernoulliNB()),
    "CategoricalNB": forget_matrix(bb.CategoricalNB()),
}


@pytest.mark.parametrize("name", FORGETTERS)
@pytest.mark.parametrize("seed", range(2))
def test_names_of_forgotten_rows_are_not_in_the_file(name: str, seed: int) -> None:
    rows = draw_rows(seed)
    order = np.random.default_rng(seed).permutation(N_ROWS).tolist()
    kept, pieces = order[:12], [order[12:20], order[20:]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        everything = "\n".join(strings_in(to_bytes(FORGETTERS[name](rows, []))))
        thing = FORGETTERS[name](rows, [take(rows, piece) for piece in pieces])
    content = to_bytes(thing)
    texts = "\n".join(strings_in(content))
    gone = names_in(rows) - names_in(take(rows, kept))
    assert any(secret in everything for secret in gone)
    assert not [secret for secret in gone if secret in texts or secret.encode() in content]
    assert any(word in texts for word in names_in(take(rows, kept)))
    assert_comes_back(thing)


@pytest.mark.parametrize(
    "name", ["EvidenceClassifier", "EvidenceClassifier of texts", "EvidenceClassifier of categories"]
)
def test_a_weighed_model_that_has_one_class_left_comes_back(name: str) -> None:
    rows = draw_rows(0)
    common = max(rows["class"], key=rows["class"].count)
    others = [k for k in range(N_ROWS) if rows["class"][k] != common]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FORGETTERS[name](rows, [take(rows, others)])
    assert model.classes == (common,)
    assert model.weighing.classes == (common,)
    assert_comes_back(model)


def test_a_weighed_model_answers_alike_whether_a_class_was_forgotten_or_left_out_of_the_question() -> None:
    """The weights of the other classes stay what they were."""
    rows = draw_rows(3)
    table, classes = without_class(rows)
    model = bb.weigh(bb.count(table, classes, features=FEATURES), table, classes)
    rarest = min(model.classes, key=classes.count)
    rest = [k for k in range(N_ROWS) if classes[k] != rarest]
    smaller = bb.count(*without_class(take(rows, rest)), schema=model.schema)
    weighing = bb.estimate(smaller).weighed(model.weighing).weighing
    places = [model.weighing.classes.index(name) for name in weighing.classes]
    assert rarest not in weighing.classes and len(places) == len(model.classes) - 1
    np.testing.assert_array_equal(weighing.weights.weights, model.weighing.weights.weights)
    np.testing.assert_array_equal(weighing.weights.intercepts, model.weighing.weights.intercepts[places])


def test_weighed_labels_answer_when_all_labels_they_were_learned_with_are_forgotten() -> None:
    rows = draw_rows(0)
    table, classes = without_class(rows)
    old = [[name, "old"] for name in classes]
    classifier = bb.MultiLabelClassifier(features=FEATURES, weigh=True).fit(table, old)
    classifier.partial_fit(table, [["new", "newer"]] * N_ROWS).forget(table, old)
    assert classifier.model_.weighing is not None and classifier.model_.weighing.labels == ()
    assert set(classifier.predict(table)) == {("new", "newer")}
    assert_comes_back(classifier.model_)
