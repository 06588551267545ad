"""Models: priors, decisions, rows that do not quite fit, one row or many."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import banbury as bb
from banbury.errors import BadSetting, BadValue, EmptyData, UnknownClass, UnknownColumn, WrongWidth

WEATHER = bb.datasets.play_tennis()
ROW = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}


@pytest.fixture
def tally() -> bb.Tally:
    return bb.count(WEATHER, target="play")


@pytest.fixture
def model(tally: bb.Tally) -> bb.Model:
    return bb.estimate(tally)


NUMBERS = np.array([[1.0, 10.0], [2.0, 12.0], [6.0, 30.0], [7.0, 29.0]])


@pytest.fixture
def numbers() -> bb.Model:
    return bb.estimate(bb.count(NUMBERS, target=["a", "a", "b", "b"]))


# The textbook


def test_play_tennis_is_mitchells(tally: bb.Tally) -> None:
    joint = np.exp(bb.estimate(tally, how="mle").log_joint(ROW))[0]
    no, yes = 5 / 14 * 3 / 5 * 1 / 5 * 4 / 5 * 3 / 5, 9 / 14 * 2 / 9 * 3 / 9 * 3 / 9 * 3 / 9
    assert joint == pytest.approx([no, yes], rel=1e-12)


def test_the_posterior_is_the_joint_over_its_sum(model: bb.Model) -> None:
    joint = np.exp(model.log_joint(WEATHER))
    np.testing.assert_allclose(model.posterior(WEATHER), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.log_posterior(WEATHER)), model.posterior(WEATHER), rtol=1e-12)


# The class prior


def priors(model: bb.Model) -> list[float]:
    return np.exp(model.log_prior).tolist()


@pytest.mark.parametrize(
    "given, wanted",
    [
        (None, [5 / 14, 9 / 14]),
        ("uniform", [0.5, 0.5]),
        (1, [6 / 16, 10 / 16]),
        (0.5, [5.5 / 15, 9.5 / 15]),
        (0, [5 / 14, 9 / 14]),
        ([0.25, 0.75], [0.25, 0.75]),
        (np.array([0.25, 0.75]), [0.25, 0.75]),
        ({"yes": 0.75, "no": 0.25}, [0.25, 0.75]),
    ],
)
def test_the_class_prior_has_many_forms(tally: bb.Tally, given: Any, wanted: list[float]) -> None:
    assert priors(bb.estimate(tally, class_prior=given)) == pytest.approx(wanted)
    assert priors(bb.estimate(tally).with_class_prior(given)) == pytest.approx(wanted)


@pytest.mark.parametrize(
    "given, kind, words",
    [
        ([0.5, 0.6], BadSetting, "probabilities that sum to 1, one for each class (these sum to 1.1)"),
        ([1.0], BadSetting, "one probability for each of the 2 classes"),
        ([-0.5, 1.5], BadSetting, "probabilities"),
        ([np.nan, 0.5], BadSetting, "probabilities"),
        ({"yes": 1.0}, BadSetting, "class_prior must be a probability for each class; 'no' has none"),
        ({"yes": 0.5, "nay": 0.5}, UnknownClass, "no class 'nay'"),
        ("flat", BadSetting, "class_prior must be one of 'uniform'. Got 'flat' instead."),
        (-1, BadSetting, "class_prior must be a finite number of at least 0"),
        (True, BadSetting, "class_prior"),
    ],
)
def test_a_class_prior_that_is_none_is_refused(tally: bb.Tally, given: Any, kind: type, words: str) -> None:
    for call in (lambda: bb.estimate(tally, class_prior=given), lambda: bb.estimate(tally).with_class_prior(given)):
        with pytest.raises(kind) as caught:
            call()
        assert words in str(caught.value)


def test_another_class_prior_changes_nothing_else(model: bb.Model) -> None:
    uniform = model.with_class_prior("uniform")
    shift = uniform.log_joint(WEATHER) - model.log_joint(WEATHER)
    np.testing.assert_allclose(shift, np.broadcast_to(uniform.log_prior - model.log_prior, shift.shape), atol=1e-12)
    assert uniform.with_class_prior(None).log_prior.tolist() == model.log_prior.tolist()


def test_a_class_of_prior_zero_is_never_the_answer(model: bb.Model) -> None:
    certain = model.with_class_prior({"no": 0.0, "yes": 1.0})
    assert set(certain.predict(WEATHER)) == {"yes"}
    assert certain.posterior(WEATHER).tolist() == [[0.0, 1.0]] * 14


# Settings


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive", "gibbs"])
def test_every_way_of_estimating_answers(tally: bb.Tally, how: str) -> None:
    assert bb.estimate(tally, how=how, alpha=1.5).posterior(WEATHER).sum(axis=1) == pytest.approx(1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"how": "bayes"}, "how must be one of 'mle', 'map', 'mean', 'predictive', 'gibbs'. Got 'bayes' instead."),
        ({"alpha": -1}, "alpha must be a finite number of at least 0. Got -1 instead."),
        ({"alpha": float("nan")}, "alpha must be a finite number of at least 0"),
        ({"alpha": "1"}, "alpha must be a finite number of at least 0. Got '1' instead."),
        ({"alpha": True}, "alpha must be a finite number of at least 0"),
        ({"features": {"wind": "wind"}}, "a family must be one of"),
    ],
)
def test_a_setting_outside_what_it_may_be_is_refused(tally: bb.Tally, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting) as caught:
        bb.estimate(tally, **settings)
    assert words in str(caught.value)


def test_a_feature_that_was_not_counted_has_no_prior(tally: bb.Tally) -> None:
    with pytest.raises(UnknownColumn, match=r"no column 'wnd'. Did you mean 'wind'"):
        bb.estimate(tally, features={"wnd": bb.Categorical(alpha=2)})


def test_a_tally_without_rows_has_no_model(tally: bb.Tally) -> None:
    with pytest.raises(EmptyData, match="the tally has no class"):
        bb.estimate(tally - tally)


def test_one_column_may_have_a_prior_of_its_own(tally: bb.Tally) -> None:
    model = bb.estimate(tally, features={"wind": bb.Categorical(alpha=10)})
    assert model.likelihood("wind", "strong") == pytest.approx({"no": 13 / 25, "yes": 13 / 29})
    assert model.likelihood("humidity", "high") == bb.estimate(tally).likelihood("humidity", "high")
    assert model.tally == tally


def test_estimating_again_never_counts_again(tally: bb.Tally) -> None:
    before = tally.digest()
    for how in ("mle", "map", "mean", "predictive", "gibbs"):
        bb.estimate(tally, how=how)  # type: ignore[arg-type]
    assert tally.digest() == before


# Decisions


def test_predictions_have_the_type_of_the_labels() -> None:
    x = {"x": [1.0, 2.0, 8.0, 9.0]}
    for labels in (["a", "a", "b", "b"], [1, 1, 2, 2], [True, True, False, False], [0.5, 0.5, 1.5, 1.5]):
        found = bb.estimate(bb.count(x, target=labels)).predict(x)
        assert found.tolist() == labels
        assert found.dtype.kind == np.array(labels).dtype.kind


def test_the_cheapest_class_is_predicted_when_errors_cost(model: bb.Model) -> None:
    posterior = model.posterior(WEATHER)
    costs = [[0, 10], [1, 0]]  # true × predicted: saying yes when it is no costs ten
    found = model.predict(WEATHER, costs=costs)
    assert found.tolist() == np.where(posterior[:, 1] > 10 * posterior[:, 0], "yes", "no").tolist()
    assert model.predict(WEATHER, costs={"no": {"yes": 10}}).tolist() == found.tolist()
    assert model.predict(WEATHER, costs=1 - np.eye(2)).tolist() == model.predict(WEATHER).tolist()


@pytest.mark.parametrize(
    "costs, kind", [([[0, 1]], BadSetting), ([[0, np.nan], [1, 0]], BadSetting), ({"nay": {"yes": 1}}, UnknownClass)]
)
def test_costs_that_are_no_matrix_are_refused(model: bb.Model, costs: Any, kind: type) -> None:
    with pytest.raises(kind):
        model.predict(WEATHER, costs=costs)


def test_an_unsure_answer_is_none(model: bb.Model) -> None:
    posterior = model.posterior(WEATHER).max(axis=1)
    found = model.predict(WEATHER, unsure=0.8)
    assert found.dtype == object
    assert 0 < sum(answer is None for answer in found) < 14
    assert [answer is None for answer in found] == (posterior < 0.8).tolist()
    certain = posterior >= 0.8
    assert found[certain].tolist() == model.predict(WEATHER)[certain].tolist()
    assert model.predict(WEATHER, unsure=0).tolist() == model.predict(WEATHER).tolist()


def test_unsure_and_costs_go_together(model: bb.Model) -> None:
    found = model.predict(WEATHER, costs={"no": {"yes": 10}}, unsure=0.6)
    answers = model.predict(WEATHER, costs={"no": {"yes": 10}})
    posterior = dict(zip(model.classes, model.posterior(WEATHER).T, strict=True))
    for i, answer in enumerate(found):
        assert answer == (answers[i] if posterior[answers[i]][i] >= 0.6 else None)


@pytest.mark.parametrize("unsure", [-0.1, 1.1, float("nan")])
def test_unsure_is_a_probability(model: bb.Model, unsure: float) -> None:
    with pytest.raises(BadSetting, match="unsure must be a probability from 0 to 1"):
        model.predict(WEATHER, unsure=unsure)


def test_ties_go_to_the_first_class() -> None:
    model = bb.estimate(bb.count({"x": ["a", "a"], "y": ["q", "p"]}, "y", features="categorical"))
    assert model.predict({"x": ["a"]}).tolist() == ["p"]
    assert model.predict({"x": ["a"]}, costs=1 - np.eye(2)).tolist() == ["p"]


# Rows that do not quite fit


def test_an_absent_column_is_skipped_with_one_warning(model: bb.Model) -> None:
    rows = {name: column for name, column in WEATHER.items() if name not in ("wind", "play")}
    with pytest.warns(bb.BanburyWarning) as caught:
        found = model.posterior(rows)
    assert [str(w.message) for w in caught] == ["these rows have no column 'wind', which is treated as missing"]
    np.testing.assert_allclose(found, model.posterior(rows | {"wind": [None] * 14}), rtol=1e-12)


def test_an_extra_column_is_ignored_with_one_warning(model: bb.Model) -> None:
    with pytest.warns(bb.BanburyWarning) as caught:
        found = model.posterior(WEATHER | {"moon": ["full"] * 14, "sun": [1] * 14})
    assert [str(w.message) for w in caught] == ["columns 'moon', 'sun' were not counted and are ignored"]
    assert np.array_equal(found, model.posterior(WEATHER))


def test_the_column_of_true_classes_is_no_extra_column() -> None:
    rows = {name: column for name, column in WEATHER.items() if name != "play"}
    model = bb.estimate(bb.count(rows, target=WEATHER["play"]))  # which does not know what the target is called
    assert bb.evaluate(model, WEATHER, "play").accuracy == bb.evaluate(model, rows, WEATHER["play"]).accuracy


def test_many_batches_warn_once(model: bb.Model) -> None:
    batch = {name: column for name, column in WEATHER.items() if name != "wind"} | {"moon": [0] * 14}
    with pytest.warns(bb.BanburyWarning) as caught:
        assert len(model.predict([batch, batch, batch])) == 42
    assert len(caught) == 2


def test_the_target_among_the_columns_is_no_surprise(model: bb.Model) -> None:
    without = {name: column for name, column in WEATHER.items() if name != "play"}
    assert model.predict(WEATHER).tolist() == model.predict(without).tolist()


def test_a_column_that_was_left_out_is_no_surprise() -> None:
    table = {"x": [1.0, 2.0, 5.0], "constant": [1, 1, 1], "y": ["a", "a", "b"]}
    assert bb.estimate(bb.count(table, "y")).predict(table).tolist() == ["a", "a", "b"]


def test_columns_are_found_by_name_in_any_order(model: bb.Model) -> None:
    turned = dict(reversed(WEATHER.items()))
    assert np.array_equal(model.posterior(turned), model.posterior(WEATHER))


def test_an_array_of_another_width_is_refused(numbers: bb.Model) -> None:
    with pytest.raises(WrongWidth, match=r"^X has 3 features, but Model is expecting 2 features as input"):
        numbers.predict(np.zeros((2, 3)))


def test_an_array_may_follow_a_frame_and_a_frame_an_array(numbers: bb.Model) -> None:
    frame = pd.DataFrame(NUMBERS, columns=["length", "width"])
    by_frame = bb.estimate(bb.count(frame, target=["a", "a", "b", "b"]))
    assert np.array_equal(by_frame.posterior(NUMBERS), numbers.posterior(NUMBERS))
    assert np.array_equal(numbers.posterior(frame), numbers.posterior(NUMBERS))


def test_a_missing_value_says_nothing(model: bb.Model) -> None:
    blank = {name: [None] for name in ROW}
    assert model.posterior(blank)[0] == pytest.approx([5 / 14, 9 / 14])


def test_a_word_never_seen_is_no_error(model: bb.Model) -> None:
    found = model.posterior(dict(ROW, outlook="snow"))
    assert found.sum() == pytest.approx(1)


def test_a_word_where_a_number_is_needed_is_an_error_with_its_place(numbers: bb.Model) -> None:
    with pytest.raises(BadValue, match="row 1 of column 'x1' contains 'twelve', but must contain a number"):
        numbers.predict([[1.0, 10.0], [2.0, "twelve"]])


def test_infinity_is_an_error_with_its_place(numbers: bb.Model) -> None:
    with pytest.raises(BadValue, match="row 2 of column 'x1' is infinite"):
        numbers.predict(np.array([[1.0, 2.0], [1.0, 2.0], [1.0, -np.inf]]))


def test_rows_come_in_many_forms(model: bb.Model) -> None:
    wanted = model.posterior(ROW)
    frame = pd.DataFrame([ROW])
    for rows in ([ROW], frame, {k: [v] for k, v in ROW.items()}, [frame], iter([frame])):
        assert np.array_equal(model.posterior(rows), wanted)


def test_no_rows_get_no_answers(model: bb.Model) -> None:
    nothing: dict[str, list[str]] = {name: [] for name in ROW}
    assert model.predict(nothing).tolist() == []
    assert model.posterior(nothing).shape == (0, 2)


# Every class impossible


def test_when_every_class_is_impossible_the_class_prior_answers_with_one_warning() -> None:
    table = {"a": ["x", "y"], "b": ["x", "y"], "c": ["p", "q"]}
    model = bb.estimate(bb.count(table, "c"), how="mle", class_prior={"p": 0.3, "q": 0.7})
    odd = {"a": ["x", "x", "y"], "b": ["y", "x", "x"]}
    with pytest.warns(bb.BanburyWarning, match=r"every class is impossible for 2 rows under how='mle'") as caught:
        found = model.posterior(odd)
    assert len(caught) == 1
    assert found == pytest.approx(np.array([[0.3, 0.7], [1.0, 0.0], [0.3, 0.7]]))
    with pytest.warns(bb.BanburyWarning):
        assert model.predict(odd).tolist() == ["q", "p", "q"]
    with pytest.warns(bb.BanburyWarning):
        assert np.exp(model.log_posterior(odd)) == pytest.approx(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isneginf(model.log_joint(odd)[[0, 2]]).all()


# Looking at parameters


def test_the_likelihood_of_one_value_is_told_for_every_class(model: bb.Model) -> None:
    assert model.likelihood("wind", "strong") == pytest.approx({"no": 4 / 7, "yes": 4 / 11})
    with pytest.raises(UnknownColumn, match="Did you mean 'wind'"):
        model.likelihood("wnd", "strong")


def test_samples_have_the_columns_and_the_target(model: bb.Model) -> None:
    drawn = model.sample(50, seed=3)
    assert list(drawn) == list(WEATHER)
    assert set(drawn["play"]) == {"no", "yes"}
    assert set(drawn["outlook"]) <= {"sunny", "overcast", "rain"}
    assert model.sample(0)["play"].tolist() == []
    for n in (-1, 2.5, True):
        with pytest.raises(BadSetting, match="n must be a whole number of at least 0"):
            model.sample(n)  # type: ignore[arg-type]


def test_a_single_class_is_a_density() -> None:
    model = bb.estimate(bb.count({"x": [1.0, 2.0, 3.0], "y": ["a"] * 3}, "y"))
    assert model.posterior({"x": [5.0]}).tolist() == [[1.0]]
    assert model.log_joint({"x": [2.0]})[0, 0] == pytest.approx(-0.5 * np.log(2 * np.pi * 2 / 3))


# Forgetting through a model


def test_a_model_hands_back_the_tally_it_came_from(model: bb.Model, tally: bb.Tally) -> None:
    assert model.tally is tally
    assert model.classes == ("no", "yes")
    assert model.schema is tally.schema


# Looks


def test_a_model_reads_as_a_short_table(model: bb.Model) -> None:
    assert str(model) == repr(model) == MODEL


MODEL = """\
Model of 2 classes, 4 features (how='mean', alpha=1)
  P('no' ) = 0.3571
  P('yes') = 0.6429"""


def test_many_classes_are_abridged() -> None:
    model = bb.estimate(bb.count({"x": np.arange(30.0)}, target=list(range(30))))
    assert str(model).splitlines()[-1] == "  … and 10 more classes"


def test_a_value_of_another_type_is_one_never_seen() -> None:
    tally = bb.count({"x": [1, 2, 2, 3], "y": list("aabb")}, "y", features="categorical")
    model = bb.estimate(tally)
    unseen = model.posterior({"x": [99]})
    for other in ([2.5], ["two"], [None, "two"][1:]):
        np.testing.assert_array_equal(model.posterior({"x": other}), unseen)
    np.testing.assert_array_equal(model.posterior({"x": ["2", "two"]})[0], model.posterior({"x": [2]})[0])
    assert not model.explain({"x": "two"}).evidence[0].seen
    with pytest.raises(bb.BanburyError, match="'two'"):
        tally.count({"x": ["two"], "y": ["a"]})


def test_a_constant_column_has_no_say_in_the_class_however_far_a_row_is_from_it() -> None:
    x = np.array([0.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0])
    table = {"x": x, "constant": np.full(8, 5.0), "y": list("aaaabbbb")}
    model = bb.estimate(bb.count(table, "y", features={"x": bb.Gaussian(), "constant": bb.Gaussian()}))
    for far in (1e3, 1e10, -1e300):
        rows = {"x": x, "constant": np.full(8, far)}
        near = {"x": x, "constant": np.full(8, 5.0)}
        assert model.predict(rows).tolist() == list("aaaabbbb")
        assert model.posterior(rows) == pytest.approx(model.posterior(near), abs=1e-12)
        assert model.log_posterior(rows) == pytest.approx(model.log_posterior(near), rel=1e-12)
        assert np.isfinite(model.log_joint(rows)).all()


def test_cross_validation_is_not_led_astray_by_a_row_far_from_all_others() -> None:
    x = np.tile([0.0, 1.0, 2.0, 6.0, 7.0, 8.0], 4)
    constant = np.full(24, 5.0)
    constant[[1, 10]] = 1e12  # the two are tested together, by a model that has seen neither
    folds = np.arange(24) % 4
    folds[[1, 10]] = 0
    families = {"x": bb.Gaussian(), "constant": bb.Gaussian()}
    found, calm = (
        bb.cross_validate({"x": x, "constant": each, "y": list("aaabbb") * 4}, "y", folds=folds, features=families)
        for each in (constant, np.full(24, 5.0))
    )
    tested = folds == 0
    assert found.posteriors[tested] == pytest.approx(calm.posteriors[tested], abs=1e-9)
