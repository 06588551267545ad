"""Cross-validation in three passes, and ``bb.evaluate``: a model scored on other rows."""

import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold

import banbury as bb
from banbury import errors
from banbury.quality.recipes import Plain
from banbury.quality.validation import validate
from banbury.rows.folds import make_fold_sets
from banbury.rows.labelled import stream_rows

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


def cross_validate_stream(data, target=None, *, folds=10, how="mean", seed=0, **counting):
    """Cross-validation as the command line has it of rows that are too many to be held."""
    rows = stream_rows(data, target, takes_sets=False, **counting)
    return validate(rows, folds, [Plain(how, seed=seed)], seed=seed)[0]


def in_batches(rows, sizes):
    """The rows cut into batches, to be read as often as one likes."""
    ends = np.cumsum(sizes)
    n_rows = len(rows["y"])
    cuts = [0, *(int(end) for end in ends if end < n_rows), n_rows]
    return [{k: v[a:b] for k, v in rows.items()} for a, b in pairwise(cuts)]


FIGURES = (
    "rows folds accuracy standard_error random_guess majority log_loss brier macro_f1 calibration_error classes".split()
)


def same(streamed, held):
    """Every figure that both report, to the last bit."""
    assert streamed.classes == held.classes
    assert streamed.fold_accuracies.tolist() == held.fold_accuracies.tolist()
    assert streamed.confusion.tolist() == held.confusion.tolist()
    assert streamed.confusion.dtype == held.confusion.dtype
    assert [x.tolist() for x in streamed.per_class] == [x.tolist() for x in held.per_class]
    a, b = streamed.to_dict(), held.to_dict()
    assert {name: a[name] for name in FIGURES} == {name: b[name] for name in FIGURES}


TABLES = {
    "gaussian": {"number": "gaussian", "word": None, "text": None},
    "histogram": {"number": "histogram", "word": None, "text": None},
    "kernel density": {"number": "kernel_density", "word": None, "text": None},
    "poisson": {"number": None, "word": None, "text": None, "count": "poisson"},
    "categorical": {"number": None, "word": "categorical", "text": None},
    "block": {("number", "count"): bb.Gaussian(covariance="full"), "word": "categorical", "text": None},
    "joint": {("word", "count"): bb.Joint(), "number": None, "text": None},
    "text": {"number": None, "word": None, "text": "text"},
    "all": {"number": "gaussian", "word": "categorical", "text": "text", "count": "poisson"},
}


@pytest.mark.parametrize("families", TABLES.values(), ids=TABLES)
@given(
    n_rows=st.integers(8, 50),
    n_classes=st.integers(1, 4),
    folds=st.integers(2, 8),
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(1, 20), max_size=5),
    gaps=st.booleans(),
    weights=st.sampled_from([None, "whole", "tenths", "idle"]),
    groups=st.booleans(),
    threads=st.sampled_from([1, 3]),
    how=st.sampled_from(["mean", "predictive", "mle"]),
)
@settings(max_examples=12, deadline=None)
def test_rows_that_are_held_and_rows_that_are_not_give_the_same_bits(
    families, n_rows, n_classes, folds, seed, sizes, gaps, weights, groups, threads, how
):
    rows = table(n_rows, n_classes, seed, gaps)
    rng = np.random.default_rng(seed)
    rows["count"] = rng.poisson(3.0, n_rows)
    drawn = {
        "whole": rng.integers(1, 4, n_rows),
        "tenths": rng.integers(1, 9, n_rows) / 10,
        "idle": np.arange(n_rows) % 3,
    }
    weighed = {} if weights is None else {"weights": drawn[weights]}
    schema = bb.count(rows, target="y", features=families, **weighed).schema
    together = {"groups": rng.integers(0, 9, n_rows), "folds": GroupKFold(2)} if groups else {"folds": folds}
    common = {"schema": schema, "seed": seed, "how": how, **weighed, **together}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = outcome(lambda: bb.cross_validate(rows, target="y", threads=1, **common))
        for data in (rows, in_batches(rows, sizes), iter(in_batches(rows, sizes))):
            streamed = outcome(lambda data=data: cross_validate_stream(data, "y", threads=threads, **common))
            if isinstance(held, tuple):
                assert streamed == held
            else:
                same(streamed, held)
                tally = bb.count(rows, target="y", schema=schema, **weighed)
                counted = stream_rows(rows, "y", threads=threads, schema=schema, **weighed).tally
                assert counted == tally and counted.skipped == tally.skipped


def outcome(validate):
    """What it gives, or what it says is wrong."""
    try:
        return validate()
    except bb.BanburyError as problem:
        return type(problem), str(problem)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("folds", [2, 7, 10])
def test_play_tennis_held_and_not(folds, seed):
    weather = bb.datasets.play_tennis()
    held = bb.cross_validate(weather, target="play", folds=folds, seed=seed)
    same(cross_validate_stream(weather, "play", folds=folds, seed=seed), held)


def test_splitters_that_repeat_and_groups_in_a_column():
    rows = table(60, 3, 5) | {"house": np.arange(60) // 4}
    for folds, groups in (
        (RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), None),
        (GroupKFold(4), "house"),
    ):
        common = {"folds": folds, "groups": groups, "features": FAMILIES if groups else FAMILIES | {"house": None}}
        same(
            cross_validate_stream(in_batches(rows, [25]), "y", **common),
            bb.cross_validate(in_batches(rows, [25]), "y", **common),
        )


def test_the_target_is_no_feature_of_rows_that_are_not_held():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0] * 5, "y": list("abab") * 5})
    rows = stream_rows(frame, frame["y"])
    assert [feature.name for feature in rows.schema.features] == ["x"]


@given(
    classes=st.lists(st.integers(-1, 3), min_size=8, max_size=80),
    n_folds=st.integers(2, 7),
    seed=st.integers(0, 100),
)
def test_dealing_is_even_in_every_class(classes, n_folds, seed):
    numbers = np.array([0, 1] * 4 + classes, dtype=np.int32)
    [dealt] = make_fold_sets(n_folds, numbers, seed, None)
    assert ((dealt.groups >= 0) == (numbers >= 0)).all()
    for c in set(numbers[numbers >= 0].tolist()):
        each = np.bincount(dealt.groups[numbers == c], minlength=n_folds)
        assert each.max() - each.min() <= 1


def test_a_column_that_widens_is_counted_from_the_start(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("a,b,y\n" + f"1,{'x' * 500},no\n2,{'x' * 500},no\n" * 5_000 + f"one,{'x' * 500},yes\n" * 100)
    with pytest.warns(bb.BanburyWarning, match="changes type after its first rows"):
        found = cross_validate_stream(path, "y", folds=5)
    with pytest.warns(bb.BanburyWarning, match="changes type after its first rows"):
        assert stream_rows(path, "y").tally == bb.count(path, target="y")
    assert found.accuracy.value == 1.0


@pytest.mark.parametrize("folds", [1, 0, 101, "loo", True, 2.0])
def test_folds_that_cannot_be(folds):
    with pytest.raises(errors.BadSetting, match="folds must be"):
        cross_validate_stream(bb.datasets.play_tennis(), "play", folds=folds)


def test_what_can_be_read_once_only_is_kept(tmp_path, monkeypatch):
    rows = table(60, 3, 5)
    held = bb.cross_validate(in_batches(rows, [25]), "y", folds=4)
    same(cross_validate_stream(iter(in_batches(rows, [25])), "y", folds=4), held)
    monkeypatch.setattr("banbury.tally.table.BYTES_IN_MEMORY", 100)  # bytes, so that it is kept in a file
    same(cross_validate_stream(iter(in_batches(rows, [25])), "y", folds=4), held)


def test_rows_that_change_between_passes_are_refused():
    class Growing:
        """A table that has one more row each time it is read."""

        n = 20

        def __iter__(self):
            self.n += 1
            return iter([{"x": [1.0, 2.0, 4.0] * self.n, "y": list("aba") * self.n}])

    with pytest.raises(bb.BanburyError, match=r"had changed when they were read again\. Keep them in memory"):
        cross_validate_stream(Growing(), "y", folds=2)


def test_no_rows_and_no_classes():
    with pytest.raises(errors.EmptyData, match="no rows"):
        cross_validate_stream({"a": [], "y": []}, "y")
    with pytest.raises(errors.EmptyData, match="missing in all"):
        cross_validate_stream({"a": ["p", "q"], "y": [None, None]}, "y")


@pytest.mark.parametrize(
    ("weights", "problem", "words"),
    [
        ([1.0], errors.BadSetting, "at most the number of labelled rows, 1"),
        ([0.0, 0.0], errors.EmptyData, "every row has a missing label or a weight of zero"),
        ([0.0, 1.0], errors.EmptyData, "."),
    ],
)
def test_rows_that_leave_nothing_to_learn_from_or_to_test(weights, problem, words):
    rows = {"a": ["p", "q"][: len(weights)], "w": weights, "y": ["k", "k"][: len(weights)]}
    for judge in (bb.cross_validate, cross_validate_stream):
        with pytest.raises(problem, match=words):
            judge(rows, "y", folds=2, features={"a": "categorical"}, weights="w")


def test_a_measurement_is_no_class():
    rows = {"a": np.arange(300.0), "y": np.arange(300.0) + 0.5}
    with pytest.raises(errors.BadValue, match="looks continuous"):
        cross_validate_stream(rows, "y")
    with pytest.raises(errors.BadValue, match="looks continuous"):
        bb.cross_validate(rows, target="y")


def test_it_says_what_it_found():
    found = cross_validate_stream(bb.datasets.play_tennis(), "play", folds=7)
    assert found.to_dict()["accuracy"] == found.accuracy.value and found.to_dict()["folds"] == 7
    assert repr(found).startswith("7-fold cross-validation in three passes of plain naive Bayes: 14 rows, 2 classes")


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
    assert bb.evaluate(model, rows, target="z").confusion.tolist() == [[1, 0], [1, 1]]


OWN = "these are the rows that the model was trained on"


def of_mixed(rows):
    return bb.estimate(bb.count(rows, target="y", features=FAMILIES))


def of_weighed(rows):
    return bb.weigh(bb.count(rows, target="y", features=FAMILIES), rows, "y", pairs=False)


def of_tree(rows):
    return bb.estimate(bb.count(rows, target="y", features=bb.ColumnTree(columns=FAMILIES)))


@pytest.mark.parametrize("model_of", [of_mixed, of_weighed, of_tree])
def test_evaluate_says_when_the_rows_are_those_that_were_counted(model_of):
    """In any order and any batches; not when one row differs, there is one more or less, or they can be read but once."""
    rows = table(120, 3, 2)
    model = model_of(rows)
    order = np.random.default_rng(0).permutation(120).tolist()
    shuffled = {name: [column[i] for i in order] for name, column in rows.items()}
    for same in (rows, shuffled, shuffled | {"y": np.array(shuffled["y"], dtype=object)}):
        [note] = bb.evaluate(model, same).notes
        assert note.startswith(OWN) and note in bb.evaluate(model, same).to_dict()["notes"]
        assert note in str(bb.evaluate(model, same)) and model.has_counted(same)
    other = dict(rows, word=[*rows["word"][:-1], "v1" if rows["word"][-1] != "v1" else "v2"])
    fewer = {name: column[1:] for name, column in rows.items()}
    twice = {name: [*column, column[0]] for name, column in rows.items()}
    for others in (other, fewer, twice):
        assert not model.has_counted(others) and not bb.evaluate(model, others).notes
    assert not bb.evaluate(model, iter([rows])).notes


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
    with pytest.raises(errors.EmptyData, match="missing in all"):
        bb.evaluate(play, weather | {"play": [None] * 14})
