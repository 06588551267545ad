"""banbury.selection.streaming and evaluation: cross-validation in two passes, and a model scored on other rows."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
from banbury import errors
from banbury.selection.streaming import _Deal, cross_validate_stream

FAMILIES = {"number": "gaussian", "word": "categorical", "text": "text"}


def table(n_rows, n_classes, seed, gaps=False):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    number = rng.normal(labels, 1.0)
    if gaps:
        number[::5] = np.nan
    texts = [" ".join(rng.choice(["red", "green", "blue", f"w{label}"], 4)) for label in labels]
    names = [None if gaps and i % 7 == 3 else f"class {label}" for i, label in enumerate(labels)]
    return {"number": number, "word": [f"v{v}" for v in rng.integers(0, 4, n_rows)], "text": texts, "y": names}


def in_batches(rows, sizes):
    """The rows cut into batches, to be read as often as one likes."""
    ends = np.cumsum(sizes)
    n_rows = len(rows["y"])
    cuts = [0, *(int(end) for end in ends if end < n_rows), n_rows]
    return [{k: v[a:b] for k, v in rows.items()} for a, b in pairwise(cuts)]


def dealt(rows, n_folds, seed):
    """The fold of each row, by name of its class in the order in which they are met; −1 without one."""
    met = {}
    numbers = [met.setdefault(name, len(met)) if name is not None else -1 for name in rows["y"]]
    return np.array(numbers), _Deal(n_folds, seed).folds(np.array(numbers, dtype=np.int32))


@given(
    n_rows=st.integers(12, 60),
    n_classes=st.integers(2, 4),
    n_folds=st.integers(2, 5),
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(1, 20), max_size=5),
    gaps=st.booleans(),
)
def test_two_passes_are_the_cross_validation_of_the_same_folds(n_rows, n_classes, n_folds, seed, sizes, gaps):
    rows = table(n_rows, n_classes, seed, gaps)
    schema = bb.count(rows, target="y", features=FAMILIES).schema
    numbers, folds = dealt(rows, n_folds, seed)
    if len(set(folds[numbers >= 0].tolist())) < 2:
        return
    found = cross_validate_stream(in_batches(rows, sizes), "y", folds=n_folds, schema=schema, seed=seed)
    expected = bb.cross_validate(rows, target="y", folds=folds, schema=schema, seed=seed)
    assert found.classes == expected.classes
    assert found.confusion.tolist() == expected.confusion.tolist()
    np.testing.assert_allclose(found.fold_accuracies, expected.fold_accuracies, rtol=1e-12)
    np.testing.assert_allclose(found.log_loss, expected.log_loss, rtol=1e-9)
    assert (found.majority, found.random_guess) == (expected.majority, expected.random_guess)
    tally = bb.count(rows, target="y", schema=schema)
    assert found.tally == tally and found.tally.skipped == tally.skipped


def test_weights_count_as_in_one_pass():
    rows = table(60, 2, 0) | {"weight": np.tile([0.0, 0.5, 2.0], 20)}
    schema = bb.count(rows, target="y", features=FAMILIES, weights="weight").schema
    _, folds = dealt(rows, 4, 0)
    found = cross_validate_stream(in_batches(rows, [7, 30]), "y", folds=4, schema=schema, weights="weight")
    expected = bb.cross_validate(rows, target="y", folds=folds, schema=schema, weights="weight")
    np.testing.assert_allclose(found.confusion, expected.confusion, rtol=1e-12)
    np.testing.assert_allclose(found.log_loss, expected.log_loss, rtol=1e-9)


@given(
    classes=st.lists(st.integers(-1, 3), min_size=1, max_size=80),
    cut=st.integers(0, 80),
    n_folds=st.integers(2, 7),
    seed=st.integers(0, 100),
)
def test_dealing_is_even_in_every_class_and_does_not_depend_on_batches(classes, cut, n_folds, seed):
    numbers = np.array(classes, dtype=np.int32)
    whole = _Deal(n_folds, seed).folds(numbers)
    deal = _Deal(n_folds, seed)
    parts = np.concatenate([deal.folds(numbers[:cut]), deal.folds(numbers[cut:])])
    labelled = numbers >= 0
    assert whole[labelled].tolist() == parts[labelled].tolist()
    for c in set(numbers[labelled].tolist()):
        each = np.bincount(whole[numbers == c], minlength=n_folds)
        assert each.max() - each.min() <= 1


def test_a_column_that_widens_is_counted_from_the_start(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("a,b,y\n" + f"1,{'x' * 500},no\n2,{'x' * 500},no\n" * 5_000 + f"one,{'x' * 500},yes\n" * 100)
    with pytest.warns(bb.BanburyWarning, match="does not stay what its first rows were"):
        found = cross_validate_stream(path, "y", folds=5)
    with pytest.warns(bb.BanburyWarning, match="does not stay what its first rows were"):
        assert found.tally == bb.count(path, target="y")
    assert found.accuracy.value == 1.0


@pytest.mark.parametrize("folds", [1, 0, 101, "loo", True, 2.0])
def test_folds_that_cannot_be(folds):
    with pytest.raises(errors.BadSetting, match="folds must be"):
        cross_validate_stream(bb.datasets.play_tennis(), "play", folds=folds)


def test_what_can_be_read_once_only_is_refused():
    with pytest.raises(bb.BanburyError, match="reads them twice"):
        cross_validate_stream(iter([bb.datasets.play_tennis()]), "play", folds=2)


def test_no_rows_and_no_classes():
    with pytest.raises(errors.EmptyData, match="no rows"):
        cross_validate_stream({"a": [], "y": []}, "y")
    with pytest.raises(errors.EmptyData, match="missing target"):
        cross_validate_stream({"a": ["p", "q"], "y": [None, None]}, "y")


@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.0], [0.0, 1.0]])
def test_rows_that_leave_nothing_to_learn_from_or_to_test(weights):
    rows = {"a": ["p", "q"][: len(weights)], "w": weights, "y": ["k", "k"][: len(weights)]}
    with pytest.raises(errors.BadSetting, match="two labelled rows at least"):
        cross_validate_stream(rows, "y", folds=2, features={"a": "categorical"}, weights="w")


def test_a_measurement_is_no_class():
    rows = {"a": np.arange(300.0), "y": np.arange(300.0) + 0.5}
    with pytest.raises(errors.BadValue, match="looks continuous"):
        cross_validate_stream(rows, "y")
    with pytest.raises(errors.BadValue, match="looks continuous"):
        bb.cross_validate(rows, target="y")


def test_it_says_what_it_found():
    found = cross_validate_stream(bb.datasets.play_tennis(), "play", folds=7)
    assert found.to_dict()["accuracy"] == found.accuracy.value and found.to_dict()["folds"] == 7
    assert repr(found).startswith("7-fold cross-validation in two passes: 14 rows, 2 classes")


# Streams of answers --------------------------------------------------------------------------------------------------


@given(sizes=st.lists(st.integers(1, 20), max_size=5), calibrated=st.booleans())
def test_a_stream_of_posteriors_is_all_of_them(sizes, calibrated):
    rows = table(50, 3, 1)
    model = bb.estimate(bb.count(rows, target="y", features=FAMILIES))
    if calibrated:
        model = model.calibrated(bb.calibrate("temperature", model.log_posterior(rows), [0] * 50))
    found = list(model.stream(in_batches(rows, sizes)))
    np.testing.assert_allclose(np.concatenate([each for _, each in found]), model.posterior(rows), rtol=1e-12)
    assert [batch.first_row for batch, _ in found] == np.cumsum([0, *(b.n_rows for b, _ in found)])[:-1].tolist()


def test_a_stream_can_be_of_plain_texts():
    model = bb.estimate(bb.count(["good", "bad"], target=["yes", "no"]))
    [(batch, posterior)] = model.stream(["good bad good", "bad"])
    assert batch.n_rows == 2 and posterior.tolist() == model.posterior(["good bad good", "bad"]).tolist()


# Evaluation ----------------------------------------------------------------------------------------------------------


def test_evaluate_measures_what_the_model_says():
    learned, other = table(80, 3, 2), table(40, 3, 3, gaps=True)
    model = bb.estimate(bb.count(learned, target="y", features=FAMILIES))
    found = bb.evaluate(model, in_batches(other, [11, 13]))
    kept = [i for i, name in enumerate(other["y"]) if name is not None]
    truth = np.array([other["y"][i] for i in kept])
    assert found.rows.tolist() == kept
    np.testing.assert_allclose(found.posteriors, model.posterior(other)[kept], rtol=1e-12)
    assert found.accuracy.value == (model.predict(other)[kept] == truth).mean()
    assert [found.classes[c] for c in found.truth] == truth.tolist()


def test_evaluate_takes_another_column_as_the_truth():
    rows = {"a": ["p", "q", "p"], "y": [0, 1, 0], "z": [1, 1, 0]}
    model = bb.estimate(bb.count({"a": rows["a"], "y": rows["y"]}, target="y"))
    with pytest.warns(bb.BanburyWarning, match="'z' was not counted"):
        assert bb.evaluate(model, rows, target="z").confusion.tolist() == [[1, 0], [1, 1]]


def test_evaluate_says_what_it_lacks():
    model = bb.estimate(bb.count(["good", "bad"], target=["yes", "no"]))
    with pytest.raises(errors.BadSetting, match="target must be"):
        bb.evaluate(model, ["good"])
    with pytest.raises(errors.BadSetting, match="a Model"):
        bb.evaluate(model.tally, ["good"])
    weather = bb.datasets.play_tennis()
    play = bb.estimate(bb.count(weather, target="play"))
    with pytest.raises(errors.UnknownColumn, match="'play'"):
        bb.evaluate(play, {name: column for name, column in weather.items() if name != "play"})
    with pytest.raises(errors.EmptyData, match="missing target"):
        bb.evaluate(play, weather | {"play": [None] * 14})
