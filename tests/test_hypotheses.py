"""Hypothesis spaces: Bayes' theorem over every hypothesis, beside a slow and obvious twin; and what is refused."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import banbury as bb
import naive_hypotheses as naive
from banbury.errors import (
    BadPrior,
    BadSetting,
    BadValue,
    BanburyError,
    DuplicateColumn,
    ImpossibleEvidence,
    LengthMismatch,
    UnknownColumn,
    UnknownHypothesis,
    UnknownLabel,
    UnknownValue,
)
from banbury.hypotheses import space as space_module

LABELS = ("+", "-", "?")
CAN_BE = {"sky": ["sunny", "cloudy", "rainy"], "wind": ["strong", "weak"]}
SAYS = {"never": lambda day: "no", "if sunny": lambda day: "yes" if day["sky"] == "sunny" else "no"}


def sports(**settings: Any) -> bb.Hypotheses:
    return bb.conjunctions(bb.datasets.enjoy_sport(), "play", values=CAN_BE, labels=["no", "yes"], **settings)


def three(**settings: Any) -> bb.Hypotheses:
    return bb.Hypotheses(["h1", "h2", "h3"], prior=[0.4, 0.3, 0.3], labels=["+", "-"], **settings)


def floats(shares: Any) -> list[float]:
    return [float(share) for share in shares]


@st.composite
def priors(draw: st.DrawFn, n: int) -> list[Fraction]:
    parts = draw(st.lists(st.integers(0, 20), min_size=n, max_size=n).filter(any))
    return [Fraction(part, sum(parts)) for part in parts]


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[Fraction], list[list[str]], list[str], Fraction]:
    """A prior, predictions, labels of the rows, and a noise."""
    n, rows = draw(st.integers(1, 6)), draw(st.integers(0, 8))
    said = st.lists(st.sampled_from(LABELS), min_size=n, max_size=n)
    return (
        draw(priors(n)),
        draw(st.lists(said, min_size=rows, max_size=rows)),
        draw(st.lists(st.sampled_from(LABELS), min_size=rows, max_size=rows)),
        Fraction(draw(st.integers(0, 9)), 10),
    )


def matrix(rows: list[list[Any]], width: int, kind: Any = object) -> np.ndarray:
    return np.array(rows, dtype=kind).reshape(-1, width)


# Beside the twin


@given(labelled())
def test_posteriors_are_those_of_exact_fractions(drawn):
    prior, predictions, truth, noise = drawn
    space = bb.Hypotheses(len(prior), floats(prior), likelihood="label_noise", noise=float(noise), labels=LABELS)
    likelihoods = naive.label_likelihoods(predictions, truth, noise, len(LABELS))
    expected = naive.posterior(prior, likelihoods)
    said = matrix(predictions, len(prior))
    if expected is None:
        with pytest.raises(ImpossibleEvidence):
            space.update(predictions=said, target=truth)
        return
    after = space.update(predictions=said, target=truth)
    assert after.posterior == pytest.approx(floats(expected), rel=1e-9, abs=1e-300)
    assert after.n_rows == len(truth)
    evidence = sum(p * np.prod([row[h] for row in likelihoods]) for h, p in enumerate(prior))
    assert after.log_evidence == pytest.approx(np.log(float(evidence)), abs=1e-9)
    assert after.version_space == [h for h, share in enumerate(expected) if share]
    assert expected[after.map] == max(expected)
    shares = [naive.predictive(expected, row, LABELS, noise) for row in predictions]
    assert after.predictive(predictions=said) == pytest.approx(matrix(shares, 3).astype(float), abs=1e-12)
    for answer, row in zip(after.bayes_optimal(predictions=said), shares, strict=True):
        assert row[LABELS.index(answer)] == max(row)


@given(st.data())
def test_probabilities_of_outcomes_and_likelihoods_given_outright_are_weighed_as_they_are(data):
    prior = data.draw(priors(4))
    share = st.integers(0, 10).map(lambda tenths: Fraction(tenths, 10))
    said = data.draw(st.lists(st.lists(share, min_size=4, max_size=4), max_size=5))
    truth = data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said)))
    likelihoods = naive.bernoulli_likelihoods(said, truth)
    expected = naive.posterior(prior, likelihoods)
    assume(expected is not None)
    shares = matrix(said, 4).astype(float)
    after = bb.Hypotheses(4, floats(prior), likelihood="bernoulli").update(predictions=shares, target=truth)
    assert after.posterior == pytest.approx(floats(expected), rel=1e-9)
    given_outright = matrix(likelihoods, 4).astype(float) * 7  # they need not sum to one
    outright = bb.Hypotheses(4, floats(prior)).update(likelihoods=given_outright)
    assert outright.posterior == pytest.approx(after.posterior, rel=1e-9)
    assert outright.log_likelihood - len(said) * np.log(7) == pytest.approx(after.log_likelihood, abs=1e-9)
    with np.errstate(divide="ignore"):
        logs = np.log(given_outright)
    assert bb.Hypotheses(4, floats(prior)).update(log_likelihoods=logs).posterior == pytest.approx(after.posterior)


@given(st.data())
def test_conjunctions_are_those_of_the_twin_and_say_the_same(data):
    values = {name: data.draw(st.lists(st.integers(0, 5), max_size=3, unique=True)) for name in "abc"}
    cell = st.none() | st.integers(0, 6)
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys("abc", cell)), max_size=140))
    truth = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    most = data.draw(st.integers(0, 3))
    table = {name: values[name] + [None] * (3 - len(values[name])) for name in "abc"}
    space = bb.conjunctions(table, conditions=most, likelihood="label_noise", noise=0.1)
    twins = {naive.written(each): each for each in naive.conjunctions(values, most)}
    assert sorted(space.names) == sorted(twins)
    wrong = [
        sum(naive.fulfils(twins[name], row) != label for row, label in zip(rows, truth, strict=True))
        for name in space.names
    ]
    after = space.update(rows, truth)
    expected = [w * np.log(0.1) + (len(rows) - w) * np.log(0.9) for w in wrong]
    assert after.log_likelihood == pytest.approx(np.array(expected), abs=1e-9)
    # The same hypotheses as functions of a row.
    functions = {name: lambda row, each=each: naive.fulfils(each, row) for name, each in twins.items()}
    again = bb.Hypotheses(functions, likelihood="label_noise", noise=0.1).update(rows, truth)
    assert dict(zip(again.names, again.posterior, strict=True)) == pytest.approx(
        dict(zip(after.names, after.posterior, strict=True))
    )


@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.none() | st.sampled_from([1.0, 1 + 2**-52, 1 + 2**-51, 5e-324, 1e-323, np.inf]),
        min_size=1,
        max_size=9,
    ),
)
def test_thresholds_part_every_pair_of_neighbours_once(values):
    space = bb.thresholds({"x": values})
    known = sorted({v for v in values if v is not None and np.isfinite(v)})
    assert len(space) == 2 + 2 * max(len(known) - 1, 0)
    said = set()
    for h in range(len(space)):
        alone = bb.thresholds({"x": values}, prior=np.eye(len(space))[h])
        said.add(tuple(alone.bayes_optimal({"x": known}).astype(int).tolist()))
    above = {tuple(int(v >= cut) for v in known) for cut in [*known, np.inf]}
    below = {tuple(1 - bit for bit in pattern) for pattern in above}
    assert said == above | below
    missing = space.update([{"x": None}], [False])
    assert "anything" not in missing.version_space  # on neither side of any cut
    assert len(missing.version_space) == len(space) - 1


# Laws


@given(labelled(), st.data())
def test_rows_in_any_order_and_in_any_batches_come_to_the_same(drawn, data):
    prior, predictions, truth, noise = drawn
    space = bb.Hypotheses(
        len(prior), floats(prior), likelihood="label_noise", noise=float(noise) or 0.05, labels=LABELS
    )
    said = matrix(predictions, len(prior))
    at_once = space.update(predictions=said, target=truth)
    order = data.draw(st.permutations(range(len(truth))))
    cut = data.draw(st.integers(0, len(truth)))
    in_turn = space
    for part in (order[:cut], order[cut:]):
        in_turn = in_turn.update(predictions=said[part], target=[truth[row] for row in part])
    assert in_turn.posterior == pytest.approx(at_once.posterior, abs=1e-12)
    assert in_turn.log_evidence == pytest.approx(at_once.log_evidence, abs=1e-9)
    assert (in_turn.map, in_turn.ml, in_turn.mdl) == (at_once.map, at_once.ml, at_once.mdl)
    assert in_turn.n_rows == at_once.n_rows
    trace = space.trace(predictions=said, target=truth, n=99)
    assert trace.posteriors[-1] == pytest.approx(at_once.posterior, abs=1e-12)
    assert trace.posteriors.sum(axis=1) == pytest.approx(np.ones(len(truth) + 1))


@given(
    st.lists(
        st.lists(st.floats(-1e300, 1e300) | st.sampled_from([-1e300, 1e20, -np.inf]), min_size=3, max_size=3),
        max_size=5,
    ),
    st.sampled_from([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [1e-300, 0.5, 0.5]]),
)
def test_posteriors_sum_to_one_and_are_never_nan_however_far_apart_likelihoods_are(logs, prior):
    space = bb.Hypotheses(3, prior)
    try:
        after = space.update(log_likelihoods=np.array(logs).reshape(-1, 3))
    except ImpossibleEvidence:
        assert space.posterior == pytest.approx(np.array(prior))
        return
    assert after.posterior.sum() == pytest.approx(1.0, abs=1e-12)
    assert ((after.posterior >= 0) & (after.posterior <= 1)).all()
    assert not np.isnan(after.log_posterior).any()
    assert not np.isnan(after.description_length).any()
    assert np.isfinite(after.log_evidence)
    assert np.exp(after.log_posterior).sum() == pytest.approx(1.0, abs=1e-12)
    trace = space.trace(log_likelihoods=np.array(logs).reshape(-1, 3))
    assert trace.posteriors.sum(axis=1) == pytest.approx(np.ones(len(logs) + 1), abs=1e-12)


@given(labelled(), st.data())
def test_the_most_probable_hypothesis_is_the_one_of_least_description_length(drawn, data):
    _, predictions, truth, noise = drawn
    n = len(predictions[0]) if predictions else 3
    bits = data.draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))
    noise = noise or Fraction(1, 20)
    space = bb.Hypotheses(
        n, "description_length", lengths=bits, likelihood="label_noise", noise=float(noise), labels=LABELS
    )
    after = space.update(predictions=matrix(predictions, n), target=truth)
    assert after.map == after.mdl
    each = naive.label_likelihoods(predictions, truth, noise, len(LABELS))
    lengths = [length - sum(np.log2(float(row[h])) for row in each) for h, length in enumerate(bits)]
    assert lengths[after.map] == pytest.approx(min(lengths))
    # A prior must sum to one, so every length is longer by the same bits.
    surplus = after.description_length - lengths
    assert surplus == pytest.approx(np.full(n, np.log2(sum(2.0**-length for length in bits))), abs=1e-6)


@given(st.data())
def test_maximum_likelihood_under_gaussian_noise_is_least_squares(data):
    number = st.floats(-100, 100)
    said = np.array(data.draw(st.lists(st.lists(number, min_size=5, max_size=5), min_size=1, max_size=6)))
    truth = np.array(data.draw(st.lists(number, min_size=len(said), max_size=len(said))))
    noise = data.draw(st.floats(0.01, 100))
    after = bb.Hypotheses(5, likelihood="gaussian", noise=noise).update(predictions=said, target=truth)
    squares = ((said - truth[:, None]) ** 2).sum(axis=0)
    assert squares[after.ml] == pytest.approx(squares.min(), rel=1e-9, abs=1e-6 * noise**2)
    density = -0.5 * squares / noise**2 - len(truth) * np.log(noise * np.sqrt(2 * np.pi))
    assert after.log_likelihood == pytest.approx(density, rel=1e-9, abs=1e-9)
    assert after.bayes_optimal(predictions=said) == pytest.approx(said @ after.posterior)


@given(st.data())
def test_maximum_likelihood_of_outcomes_is_least_cross_entropy(data):
    share = st.floats(0.001, 0.999)
    said = np.array(data.draw(st.lists(st.lists(share, min_size=5, max_size=5), min_size=1, max_size=6)))
    truth = np.array(data.draw(st.lists(st.booleans(), min_size=len(said), max_size=len(said))))
    after = bb.Hypotheses(5, likelihood="bernoulli").update(predictions=said, target=truth)
    entropy = -(np.log(said[truth]).sum(axis=0) + np.log(1 - said[~truth]).sum(axis=0))
    assert entropy[after.ml] == pytest.approx(entropy.min(), rel=1e-9, abs=1e-11)
    assert after.predictive(predictions=said)[:, 1] == pytest.approx(said @ after.posterior)


@given(labelled())
def test_gibbs_is_expected_to_err_at_most_twice_as_often_as_bayes_optimal(drawn):
    prior, predictions, _, _ = drawn
    space = bb.Hypotheses(len(prior), floats(prior), labels=LABELS)
    shares = space.predictive(predictions=matrix(predictions, len(prior)))
    gibbs, optimal = 1 - (shares**2).sum(axis=1), 1 - shares.max(axis=1, initial=0)
    assert (gibbs <= 2 * optimal + 1e-12).all()


def test_gibbs_draws_hypotheses_as_often_as_they_are_probable():
    votes = [three().gibbs(predictions=["+", "-", "-"], seed=seed).item() for seed in range(2_000)]
    assert votes.count("+") / 2_000 == pytest.approx(0.4, abs=4 * np.sqrt(0.24 / 2_000))
    impossible = bb.Hypotheses(3, [0.0, 1.0, 0.0])
    assert all(impossible.gibbs(predictions=[0, 1, 0], seed=seed).item() for seed in range(50))


def test_one_draw_of_gibbs_answers_all_rows_and_the_seed_decides():
    table = {"x": np.arange(100.0)}
    space = bb.thresholds(table).update({"x": [10.0, 80.0]}, [False, True])
    answers = space.gibbs(table, seed=3)
    assert answers.tolist() == space.gibbs(table, seed=3).tolist()
    assert (np.diff(answers.astype(int)) >= 0).all() and 0 < answers.sum() < 100  # one threshold between
    assert len({space.gibbs(table, seed=seed).sum() for seed in range(20)}) > 5


def test_gibbs_answers_with_a_number_or_the_likelier_outcome():
    first = bb.Hypotheses(["a", "b"], [1.0, 0.0], likelihood="gaussian", noise=1.0)
    assert first.gibbs(predictions=[[1.5, 7.0], [2.5, 7.0]]).tolist() == [1.5, 2.5]
    second = bb.Hypotheses(["a", "b"], [0.0, 1.0], likelihood="bernoulli", labels=["dies", "lives"])
    assert second.gibbs(predictions=[[0.9, 0.2], [0.1, 0.8]]).tolist() == ["dies", "lives"]
    assert second.bayes_optimal(predictions=[[0.9, 0.2], [0.1, 0.8]]).tolist() == ["dies", "lives"]


# What is believed, and by whom


def test_the_space_before_an_update_stays_as_it_was():
    space = sports()
    after = space.update(bb.datasets.enjoy_sport(), "play")
    assert space.n_rows == 0 and after.n_rows == 4
    assert space.posterior == pytest.approx(np.full(973, 1 / 973))
    for array in (space.posterior, space.log_prior, after.log_likelihood, after.posterior):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5
    with pytest.raises(AttributeError):
        space.n_rows = 1  # type: ignore[misc]


def test_functions_of_a_row_see_a_row_of_a_table_without_its_target():
    seen: list[Any] = []

    def says(row: Any) -> str:
        seen.append(row)
        return "yes"

    bb.Hypotheses([says], labels=["no", "yes"]).update({"sky": ["sunny"], "play": ["yes"]}, "play")
    assert seen == [{"sky": "sunny"}]


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table, lambda t: pd.DataFrame(t).to_dict("records")]
)
def test_rows_may_be_any_table(make):
    table = make({"sky": ["sunny", "rainy", None], "wind": [1, 2, 3], "play": ["yes", "no", "no"]})
    says = bb.Hypotheses(SAYS, labels=["no", "yes"]).update(table, "play")
    assert says.version_space == ["if sunny"]
    made = bb.conjunctions(table, "play", labels=["no", "yes"]).update(table, "play")
    assert made.version_space == ["sky=sunny", "wind=1", "sky=sunny, wind=1"]
    cut = bb.thresholds(table, columns=["wind"], labels=["no", "yes"]).update(table, "play")
    assert cut.version_space == ["wind<=1.5"]
    assert made.bayes_optimal({"sky": "sunny", "wind": 1}).tolist() == ["yes"]
    assert made.bayes_optimal(table).tolist() == ["yes", "no", "no"]


def test_rows_may_be_a_matrix_numbers_or_an_iterator():
    rows = np.array([[1.0, 5.0], [2.0, 4.0], [3.0, 3.0]])
    assert bb.thresholds(rows).update(rows, [False, True, True]).version_space == ["0>1.5", "1<=4.5"]
    above = [lambda row, cut=cut: row > cut for cut in (1, 2)]
    space = bb.Hypotheses(above).update((x for x in (1, 2, 3)), [False, False, True])
    assert space.version_space == ["h2"]
    assert space.bayes_optimal(np.array([2, 3])).tolist() == [False, True]


def test_dates_are_texts_whatever_their_unit():
    days = pd.DataFrame({"day": pd.to_datetime(["2026-01-01", "2026-01-02"]), "late": [True, False]})
    space = bb.conjunctions(days, "late")
    seconds = days.assign(day=days["day"].astype("datetime64[s]"))
    assert space.update(days, "late").version_space == space.update(seconds, "late").version_space
    assert len(space.update(days, "late").version_space) == 1


def test_numbers_among_texts_stay_numbers():
    mixed = bb.Hypotheses(2, labels=["a", 1])
    assert mixed.update(predictions=[["a", 1]], target=[1]).version_space == [1]
    assert mixed.update(predictions=(row for row in [["a", 1]]), target=["a"]).version_space == [0]


def test_an_empty_batch_teaches_nothing():
    for space, empty in [(sports(), []), (sports(), {"sky": []}), (three(), np.empty((0, 3)))]:
        given_as = {"predictions": empty} if isinstance(empty, np.ndarray) else {"rows": empty}
        if isinstance(empty, dict):
            given_as = {"rows": {name: [] for name in bb.datasets.enjoy_sport()}}
        after = space.update(**given_as, target=[])
        assert after.posterior.tolist() == space.posterior.tolist()
        assert after.bayes_optimal(**given_as).tolist() == []
        assert after.gibbs(**given_as).tolist() == []


def test_functions_are_named_as_they_are_or_numbered():
    def rain(row: Any) -> bool:
        return True

    def dry(row: Any) -> bool:
        return False

    assert bb.Hypotheses([rain, dry]).names == ["rain", "dry"]
    assert bb.Hypotheses([rain, rain]).names == ["h1", "h2"]
    assert bb.Hypotheses([lambda row: 1, dry]).names == ["h1", "h2"]


def test_priors_and_likelihoods_may_come_by_name():
    space = bb.Hypotheses(["rain", "dry"], prior={"dry": 0.8, "rain": 0.2}).update(likelihoods={"dry": 1, "rain": 4})
    assert space.posterior == pytest.approx(np.array([0.5, 0.5]))
    assert space.most_probable(5) == [("rain", pytest.approx(0.5)), ("dry", pytest.approx(0.5))]
    assert space.ml == "rain"


def test_of_equals_the_first_is_taken_whatever_rounding_says():
    thirds = bb.Hypotheses(3, likelihood="label_noise", noise=0.1)
    said, truth = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0]]), [1, 1, 1]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        after = thirds
        for row in order:
            after = after.update(predictions=said[[row]], target=[truth[row]])
        assert (after.map, after.ml, after.mdl) == (0, 0, 0)
    assert 0.1 + 0.2 > 0.3
    assert bb.Hypotheses(2).update(log_likelihoods=[[0.3, 0.1], [0.0, 0.2]]).map == 0
    assert three().update(likelihoods=[3, 4, 4]).map == "h1"
    assert bb.Hypotheses(2).bayes_optimal(predictions=[True, False]).tolist() == [False]


def test_lengths_of_generated_hypotheses_are_those_of_a_code():
    for space in (
        sports(prior="description_length"),
        sports(prior="description_length", conditions=2),
        bb.thresholds(bb.datasets.wine(), "cultivar", prior="description_length"),
        bb.thresholds(bb.datasets.wine(), "cultivar", prior="description_length", cuts=5),
    ):
        assert np.exp(space.log_prior).sum() == pytest.approx(1.0)  # so that it can be read back: Kraft
    bits = dict(zip(sports().names, sports(prior="description_length").description_length, strict=True))
    assert bits["anything"] == bits["nothing"] == pytest.approx(3)  # 0 to 6 conditions, or nothing
    assert bits["sky=sunny"] == pytest.approx(3 + np.log2(6) + np.log2(3))
    assert bits["sky=sunny, wind=weak"] == pytest.approx(3 + np.log2(15) + np.log2(3) + 1)


def test_blocks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 3, 300) for name in "abcd"}
    truth = (table["a"] == 1) & (table["c"] == 2)
    said = rng.random((300, 50))
    labels_space = bb.conjunctions(table, likelihood="label_noise", noise=0.2)
    outcomes = bb.Hypotheses(50, likelihood="bernoulli")
    whole = labels_space.update(table, truth), outcomes.update(predictions=said, target=truth)
    answers = [
        space.bayes_optimal(table if i == 0 else None, predictions=None if i == 0 else said)
        for i, space in enumerate(whole)
    ]
    monkeypatch.setattr(space_module, "CELLS_PER_BLOCK", 1)
    parts = labels_space.update(table, truth), outcomes.update(predictions=said, target=truth)
    for one, other in zip(whole, parts, strict=True):
        assert other.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    again = [
        space.bayes_optimal(table if i == 0 else None, predictions=None if i == 0 else said)
        for i, space in enumerate(parts)
    ]
    assert [a.tolist() for a in answers] == [a.tolist() for a in again]


def test_thousands_of_hypotheses_about_mushrooms_are_weighed_by_their_mistakes(mushroom):
    space = bb.conjunctions(mushroom, "class", conditions=2, labels=["p", "e"], likelihood="label_noise", noise=0.1)
    after = space.update(mushroom, "class")
    edible = (mushroom["class"] == "e").to_numpy()
    for h in np.random.default_rng(0).choice(len(space) - 1, 100):
        fulfilled = np.ones(len(mushroom), dtype=bool)
        for condition in space.names[h].split(", ") if h else ():
            feature, value = condition.split("=")
            fulfilled &= (mushroom[feature] == value).to_numpy()
        wrong = int((fulfilled != edible).sum())
        assert after.log_likelihood[h] == pytest.approx(wrong * np.log(0.1) + (8124 - wrong) * np.log(0.9))
    assert after.map == "odor=n"
    assert (after.bayes_optimal(mushroom) == mushroom["class"]).sum() == 8124 - 920


def test_a_trace_keeps_those_that_rise_highest_and_counts_rows_on():
    space = bb.Hypotheses(["early", "never", "late", "nor this"]).update(likelihoods=[1, 1, 1, 1])
    trace = space.trace(likelihoods=[[9, 1, 1, 1], [1, 2, 90, 1]], n=2)
    assert trace.names == ["late", "early"]
    expected = [[1 / 4, 1 / 4], [1 / 12, 9 / 12], [90 / 102, 9 / 102]]
    assert trace.posteriors == pytest.approx(np.array(expected))
    assert trace.rest == pytest.approx(1 - np.sum(expected, axis=1))
    assert (trace.first.n_rows, trace.last.n_rows) == (1, 3)
    assert trace.last.posterior == pytest.approx(np.array([9, 2, 90, 1]) / 102)


def test_cuts_may_be_few_or_named():
    table = {"x": np.arange(101.0), "y": np.zeros(101)}
    assert list(bb.thresholds(table, cuts=2).names) == ["anything", "nothing", "x>25.5", "x>75.5", "x<=25.5", "x<=75.5"]
    assert list(bb.thresholds(table, cuts=0).names) == ["anything", "nothing"]
    assert len(bb.thresholds(table, cuts=99)) == 2 + 2 * 99
    named = bb.thresholds(table, cuts={"y": [0.5, 0.5, -1]}, columns=["y"])
    assert list(named.names) == ["anything", "nothing", "y>-1", "y>0.5", "y<=-1", "y<=0.5"]


def test_a_space_prints_the_best_and_how_many_more():
    text = str(sports())
    assert text.splitlines()[0] == "973 hypotheses after 0 rows, 973 of them possible"
    assert text.splitlines()[-1] == "  … and 965 more"
    one = bb.Hypotheses(["a"]).update(likelihoods=[0.5])
    assert repr(one) == "1 hypothesis after 1 row, 1 of them possible\n  1.0000  a"
    assert str(sports().trace([], [])).startswith("Trace of 0 rows\nfrom 973 hypotheses")


# What is refused


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda: bb.Hypotheses([]), BadSetting, "one at least"),
        (lambda: bb.Hypotheses({}), BadSetting, "one at least"),
        (lambda: bb.Hypotheses(0), BadSetting, "a number from 1"),
        (lambda: bb.Hypotheses("abc"), BadSetting, "a list of functions or of names"),
        (lambda: bb.Hypotheses(["a", "a"]), BadSetting, "occurs twice. Got 'a'"),
        (lambda: bb.Hypotheses(["a", print]), BadSetting, "all functions of a row, or all names. Got 'a'"),
        (lambda: bb.Hypotheses({"a": 1}), BadSetting, "all functions of a row"),
        (lambda: bb.Hypotheses([["a"]]), BadSetting, "names such as texts"),
        (lambda: bb.Hypotheses(2, [0.5, 0.4]), BadPrior, "sum to 0.9, but must sum to 1"),
        (lambda: bb.Hypotheses(2, [0.5, np.nan]), BadValue, "prior of hypothesis 1 is nan"),
        (lambda: bb.Hypotheses(2, [1.5, -0.5]), BadValue, "prior of hypothesis 1 is -0.5"),
        (lambda: bb.Hypotheses(2, [0.5, "x"]), BadValue, "prior of hypothesis 1 is 'x'"),
        (lambda: bb.Hypotheses(2, [1.0]), LengthMismatch, r"the shape \(1,\), but there are 2 hypotheses"),
        (lambda: bb.Hypotheses(2, 0.5), BadSetting, "the prior must be a number for each hypothesis"),
        (lambda: bb.Hypotheses(2, None), BadSetting, "the prior must be a number for each hypothesis"),
        (lambda: bb.Hypotheses(2, "flat"), BadSetting, "prior must be one of 'uniform'"),
        (lambda: bb.Hypotheses(["a"], {"b": 1.0}), UnknownHypothesis, "names 'b'"),
        (lambda: bb.Hypotheses(["a", "b"], {"b": 1.0}), UnknownHypothesis, "no number for 'a'"),
        (lambda: bb.Hypotheses(2, "description_length"), BadSetting, "lengths must be the bits"),
        (lambda: bb.Hypotheses(2, lengths=[1, 2]), BadSetting, "together with prior='description_length'"),
        (lambda: bb.Hypotheses(2, "description_length", lengths=[1, -2]), BadValue, "length of hypothesis 1 is -2"),
        (lambda: bb.Hypotheses(2, likelihood="exact"), BadSetting, "likelihood must be one of"),
        (lambda: bb.Hypotheses(2, noise=0.1), BadSetting, "omitted when likelihood='noise_free'"),
        (lambda: bb.Hypotheses(2, likelihood="label_noise"), BadSetting, "probability of a wrong label"),
        (lambda: bb.Hypotheses(2, likelihood="label_noise", noise=1.0), BadSetting, "below 1. Got 1.0"),
        (lambda: bb.Hypotheses(2, likelihood="gaussian", noise=0), BadSetting, "above 0. Got 0"),
        (lambda: bb.Hypotheses(2, likelihood="gaussian", noise=np.nan), BadSetting, "above 0. Got nan"),
        (lambda: bb.Hypotheses(2, labels=["a"]), BadSetting, "at least two and different"),
        (lambda: bb.Hypotheses(2, labels=["a", "a"]), BadSetting, "and different"),
        (lambda: bb.Hypotheses(2, labels=["a", np.nan]), BadSetting, "texts, numbers or booleans"),
        (lambda: bb.Hypotheses(2, labels="ab"), BadSetting, "labels must be a list. Got 'ab'"),
        (lambda: bb.Hypotheses(2, labels=None), BadSetting, "labels must be a list. Got None"),
        (lambda: bb.Hypotheses(2, labels=[1, 2, 3], likelihood="bernoulli"), BadSetting, "two and different"),
    ],
)
def test_what_is_no_space_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    "evidence, kind, words",
    [
        ({}, BadSetting, "one of rows, predictions, likelihoods, log_likelihoods. Got None"),
        ({"likelihoods": [1, 1, 1], "predictions": [[1]]}, BadSetting, "Got 'predictions and likelihoods'"),
        ({"likelihoods": [1, 1, 1], "target": ["+"]}, BadSetting, "omitted when likelihoods are given"),
        ({"likelihoods": [1, 1]}, LengthMismatch, r"likelihoods has the shape \(2,\)"),
        ({"likelihoods": [[1, 1], [1, 1], [1, 1]]}, LengthMismatch, "Transpose it"),
        ({"likelihoods": [[1, 1, 1], [1, 1]]}, LengthMismatch, "row 1 has 2 cells but row 0 has 3"),
        ({"likelihoods": [1, np.nan, 1]}, BadValue, "likelihood of hypothesis 'h2' for row 0 is nan"),
        ({"likelihoods": [1, 1, np.inf]}, BadValue, "'h3' for row 0 is inf"),
        ({"likelihoods": [1, 1, -1]}, BadValue, "is -1"),
        ({"likelihoods": [1, 1, None]}, BadValue, "is None"),
        (
            {"log_likelihoods": [[0, 0, 0], [0, np.inf, 0]]},
            BadValue,
            "log-likelihood of hypothesis 'h2' for row 1 is inf",
        ),
        ({"log_likelihoods": [0, 1e301, 0]}, BadValue, "1e[+]301"),
        ({"likelihoods": [0, 0, 0]}, ImpossibleEvidence, "row 0 has probability zero"),
        ({"predictions": [["+", "-", "-"]]}, BadSetting, "target must be a column's name"),
        ({"predictions": [["+", "-", "-"]], "target": ["+", "-"]}, LengthMismatch, "1 rows but 2 targets"),
        ({"predictions": [["+", "-"]], "target": ["+"]}, LengthMismatch, r"predictions has the shape \(1, 2\)"),
        ({"predictions": [["+"], ["-", "+"]], "target": ["+", "-"]}, LengthMismatch, "row 1 has 2 cells"),
        ({"predictions": [["+", "x", "-"]], "target": ["+"]}, UnknownLabel, "hypothesis 'h2' predicts 'x' for row 0"),
        ({"predictions": [["+", "-", "-"]], "target": ["x"]}, UnknownLabel, "target of row 0 is 'x'"),
        ({"predictions": [["+", "-", "-"]], "target": [None]}, UnknownLabel, "target of row 0 is None"),
        ({"predictions": [["+", "-", "-"]], "target": "+"}, BanburyError, "Pass a list or a 1-D array"),
        ({"predictions": [["-", "-", "-"]], "target": ["+"]}, ImpossibleEvidence, "likelihood='label_noise'"),
        ({"rows": [1], "target": ["+"]}, BadSetting, "only names"),
    ],
)
def test_what_is_no_evidence_is_refused_and_the_space_stays(evidence, kind, words):
    space = three()
    with pytest.raises(kind, match=words), warnings.catch_warnings():
        space.update(**evidence)
    assert space.n_rows == 0
    assert space.posterior == pytest.approx(np.array([0.4, 0.3, 0.3]))


@pytest.mark.parametrize(
    "likelihood, noise, value",
    [
        ("gaussian", 1.0, np.nan),
        ("gaussian", 1.0, "x"),
        ("gaussian", 1.0, 1j),
        ("bernoulli", None, 1.1),
        ("bernoulli", None, np.nan),
        ("bernoulli", None, None),
        ("gaussian", 1.0, 10**400),
    ],
)
def test_a_prediction_that_is_no_number_or_no_probability_is_refused(likelihood, noise, value):
    space = bb.Hypotheses({"a": lambda row: 0.5, "b": lambda row: value}, likelihood=likelihood, noise=noise)
    with pytest.raises(BadValue, match="prediction of hypothesis 'b' for row 0"):
        space.update([1], [1])
    with pytest.raises(BadValue, match="'b' for row 0"):
        space.bayes_optimal([1])


def test_a_wrong_prediction_is_named_in_whatever_block_and_by_whomever_it_stands(monkeypatch):
    monkeypatch.setattr(space_module, "CELLS_PER_BLOCK", 1)
    said = np.array([["+", "-", "+"]] * 20 + [["+", "-", "x"]], dtype=object)
    with pytest.raises(UnknownLabel, match="hypothesis 'h3' predicts 'x' for row 20"):
        three(likelihood="label_noise", noise=0.1).update(predictions=said, target=["+"] * 21)
    alone = bb.Hypotheses(["h1", "h2", "h3"], [0.0, 0.0, 1.0], labels=["+", "-"])
    for answer in (alone.bayes_optimal, alone.gibbs):
        with pytest.raises(UnknownLabel, match="hypothesis 'h3' predicts 'x' for row 20"):
            answer(predictions=said)
    numbers = bb.Hypotheses(["h1", "h2"], [0.0, 1.0], likelihood="gaussian", noise=1.0)
    with pytest.raises(BadValue, match="hypothesis 'h2' for row 9 is nan"):
        numbers.bayes_optimal(predictions=[[1.0, 2.0]] * 9 + [[1.0, np.nan]])


def test_a_target_that_is_no_number_is_refused():
    space = bb.Hypotheses(2, likelihood="gaussian", noise=1.0)
    for value in (np.nan, "x", None, np.inf):
        with pytest.raises(BadValue, match="target of row 1 is"):
            space.update(predictions=[[1, 2], [1, 2]], target=[1.0, value])
    with pytest.raises(BadSetting, match="bayes_optimal has the mean"):
        space.predictive(predictions=[1, 2])


def test_rows_that_rule_out_everything_are_named_wherever_they_stand():
    days = bb.datasets.enjoy_sport()
    table = {name: values + values[:1] for name, values in days.items()}
    table["play"][-1] = "no"
    space = sports()
    for learn in (space.update, space.trace):
        with pytest.raises(ImpossibleEvidence, match=r"row 4 .* still possible \(6 of 973\)") as caught:
            learn(table, "play")
        assert (caught.value.row, caught.value.n_possible) == (4, 6)  # type: ignore[attr-defined]
    assert len(space.version_space) == 973
    noisy = sports(likelihood="label_noise", noise=0.1).update(table, "play")
    assert len(noisy.version_space) == 973


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda days: bb.conjunctions(days, "plays"), UnknownColumn, "Did you mean 'play'"),
        (lambda days: bb.conjunctions(days, columns=["ski"]), UnknownColumn, "Did you mean 'sky'"),
        (lambda days: bb.conjunctions(days, columns=[]), BadSetting, "one at least"),
        (lambda days: bb.conjunctions(days, columns=["sky", "sky"]), BadSetting, "each once"),
        (lambda days: bb.conjunctions([1, 2]), BadSetting, "rows without columns"),
        (lambda days: bb.conjunctions("days.csv"), BadSetting, "rows must be a frame, a mapping of columns"),
        (lambda days: bb.conjunctions(days, values={"sky": ["sunny"]}), UnknownValue, "'rainy'"),
        (lambda days: bb.conjunctions(days, values={"skies": ["sunny"]}), BadSetting, "features that are used"),
        (lambda days: bb.conjunctions(days, conditions=-1), BadSetting, "conditions must be a whole number"),
        (lambda days: bb.conjunctions(days, labels=["a", "b", "c"]), BadSetting, "labels must be two"),
        (lambda days: bb.conjunctions(days, likelihood="gaussian", noise=1), BadSetting, "'noise_free', 'label_noise'"),
        (lambda days: bb.conjunctions({f"c{i}": [0, 1] for i in range(20)}), BadSetting, "3,486,784,402 hypotheses"),
        (lambda days: bb.conjunctions(days, columns="sky"), BadSetting, "columns must be a list. Got 'sky'"),
        (
            lambda days: bb.conjunctions({"a": [[1], [2]]}),
            BadSetting,
            r"column 'a' must be a column of texts.* Got \[1\]",
        ),
        (
            lambda days: bb.conjunctions({"a": 1, "b": [1]}),
            BanburyError,
            "column 'a' is 1, but a column must be a list",
        ),
        (lambda days: bb.conjunctions(pd.DataFrame([[1, 2]], columns=["a", "a"])), DuplicateColumn, "named 'a'"),
        (lambda days: bb.conjunctions(days, values={"sky": "sunny"}), BadSetting, "the values of 'sky' must be a list"),
        (lambda days: bb.thresholds(np.array(3)), BadSetting, "rows must be a frame"),
        (lambda days: bb.thresholds(days), BadValue, "row 0 of column 'sky' contains 'sunny'"),
        (lambda days: bb.thresholds({"x": [1, 2]}, cuts=1.5), BadSetting, "cuts must be a whole number"),
        (lambda days: bb.thresholds({"x": [1, 2]}, cuts={"x": [np.nan]}), BadSetting, "finite numbers"),
        (
            lambda days: bb.thresholds({"x": [1, 2], "y": [1]}),
            LengthMismatch,
            "column 'x' has 2 rows but column 'y' has 1",
        ),
        (lambda days: sports().update({"sky": ["sunny"]}, ["no"]), UnknownColumn, "no column 'temp'"),
        (lambda days: sports().update(days, "enjoyed"), UnknownColumn, "no column 'enjoyed'"),
        (lambda days: sports().gibbs(days, seed=-1), BadSetting, "seed must be a whole number"),
        (lambda days: sports().trace(days, "play", n=0), BadSetting, "n must be a whole number of at least 1"),
        (lambda days: sports().most_probable(-1), BadSetting, "n must be a whole number"),
        (lambda days: sports().bayes_optimal(), BadSetting, "rows must be given, or replaced by predictions="),
    ],
)
def test_what_no_table_can_express_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call(bb.datasets.enjoy_sport())


def test_labels_of_rules_are_those_of_the_target():
    days = bb.datasets.enjoy_sport()
    assert list(bb.conjunctions(days, "play").labels) == ["no", "yes"]
    assert len(bb.conjunctions(days, "play").update(days, "play").version_space) > 0
    flags = {"x": [1.0, 2.0, 3.0], "long": [False, True, True]}
    assert list(bb.thresholds(flags, "long").labels) == [False, True]
    assert list(bb.thresholds({"x": [1.0, 2.0], "long": [True, True]}, "long").labels) == [False, True]
    kinds = {"a": ["u", "v", "w"], "kind": ["p", "q", "r"]}
    with pytest.raises(bb.errors.BadSetting, match="add a column that says whether a row has a particular label"):
        bb.conjunctions(kinds, "kind", labels=["p", "q", "r"])


# Thresholds by cumulative sums ---------------------------------------------------------------------------------------


def by_thresholds(table: dict[str, Any], cuts: dict[str, Any]) -> np.ndarray:
    """What thresholds say, each of every row, one comparison at a time."""
    n = len(next(iter(table.values())))
    said = [[True] * n, [False] * n]
    for name, column in table.items():
        values = [np.nan if value is None else value for value in column]
        said += [[value > cut for value in values] for cut in cuts[name]]
        said += [[value <= cut for value in values] for cut in cuts[name]]
    return np.array(said).T


@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 2.0, np.inf, -np.inf])),
            st.integers(-3, 3),
            st.booleans(),
        ),
        min_size=1,
        max_size=90,
    ),
    cuts=st.lists(st.sampled_from([-1.0, 0.0, 0.25, 1.0, 1.5, 7.0]), max_size=6),
    data=st.data(),
)
def test_thresholds_learn_as_if_every_row_were_compared_with_every_cut(rows, cuts, data):
    table = {"x": [row[0] for row in rows], "y": [row[1] for row in rows]}
    truth = [row[2] for row in rows]
    own = {"x": sorted(set(cuts)), "y": [-2.5, 0.0, 1.5]}
    noise = data.draw(st.sampled_from([0.0, 0.1, 0.5, 0.9]))
    settings: Any = {"likelihood": "label_noise", "noise": noise} if noise else {"likelihood": "noise_free"}
    space = bb.thresholds(table, cuts=own, **settings)
    said = by_thresholds(table, own)
    assert len(space) == said.shape[1]
    plain = bb.Hypotheses(len(space), **settings)
    part = data.draw(st.integers(0, len(rows)))
    if not noise and not (said == np.array(truth)[:, None]).all(axis=0).any():
        with pytest.raises(ImpossibleEvidence) as problem:
            plain.update(predictions=said, target=truth)
        with pytest.raises(ImpossibleEvidence) as caught:
            space.update(table, truth)
        assert str(caught.value) == str(problem.value)
        return
    wanted = plain.update(predictions=said, target=truth)
    found = space.update(table, truth)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, rtol=1e-12)
    pieces = space
    for few in (slice(0, part), slice(part, None)):
        pieces = pieces.update({name: column[few] for name, column in table.items()}, truth[few])
    np.testing.assert_allclose(pieces.log_likelihood, wanted.log_likelihood, rtol=1e-12)
    trace = space.trace(table, truth, n=3)
    np.testing.assert_allclose(trace.last.log_likelihood, wanted.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(space.predictive(table), plain.predictive(predictions=said), rtol=1e-12)


@pytest.mark.parametrize("wrong", [0, 1, 6, 63, 64, 99])
def test_the_row_that_rules_all_out_is_named_wherever_it_stands(wrong):
    table, truth = {"x": np.arange(100.0)}, np.arange(100) >= 50
    truth[wrong] = not truth[wrong]
    for space in (bb.thresholds(table), bb.Hypotheses([lambda row: row["x"] >= 50])):
        with pytest.raises(ImpossibleEvidence) as caught:
            space.update(table, truth)
        row = caught.value.row
        before = space.update({"x": table["x"][:row]}, truth[:row])
        assert caught.value.n_possible == len(before.version_space) > 0
        with pytest.raises(ImpossibleEvidence, match="row 0 has"):
            before.update({"x": table["x"][[row]]}, truth[[row]])
        assert len(space) > 1 or row == wrong


# Names and labels ----------------------------------------------------------------------------------------------------


def test_names_have_as_many_digits_as_tell_cuts_apart():
    late = bb.thresholds({"t": [1_700_000_000_001, 1_700_000_000_002, 1_700_000_000_003]})
    assert list(late.names)[2:4] == ["t>1700000000001.5", "t>1700000000002.5"]
    close = bb.thresholds({"t": np.nextafter(1.0, 2.0) + np.arange(4) * 2.0**-50})
    assert len(set(close.names)) == len(close) == 8


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12))
def test_no_two_thresholds_have_one_name(values):
    space = bb.thresholds({"x": values})
    assert len(set(space.names)) == len(space)


@given(st.lists(st.sampled_from([1, "1", 2.5, "2.5", "'1'", "1, b=2", True, "True", "a"]), min_size=1, max_size=8))
def test_no_two_conjunctions_have_one_name(values):
    space = bb.conjunctions({"a": values, "b": [2, *[1] * (len(values) - 1)], "a=1": [2] * len(values)})
    assert len(set(space.names)) == len(space)
    assert list(bb.conjunctions({"a": [1, "1"]}).names) == ["anything", "a=1", "a='1'", "nothing"]


def test_numbers_that_no_threshold_parts_are_named():
    for column in ([2**53, 2**53 + 1], np.array([2**60, 2**60 + 1, 5])):
        with pytest.raises(BadValue, match=r"too close for a threshold: .* Subtract a constant"):
            bb.thresholds({"x": column})
    assert len(bb.thresholds({"x": [2**53, 2**53 + 2]})) == 4


def test_labels_may_be_given_as_an_array_where_hypotheses_are_made():
    rows = {"x": [1.0, 2.0, 3.0], "kind": ["p", "q", "q"]}
    flags = np.array([False, True, True])
    assert bb.thresholds({"x": rows["x"]}, flags).update({"x": rows["x"]}, flags).version_space == ["x>1.5"]
    series = pd.Series(rows["kind"], name="kind")
    space = bb.conjunctions(pd.DataFrame(rows), series)  # the column itself is none of the features
    assert space.labels == ("p", "q") and len(space) == 5
    assert bb.conjunctions(rows, ["p", "q", "q"], columns=["x"]).labels == ("p", "q")
    with pytest.raises(LengthMismatch, match="3 rows but 2 targets"):
        bb.conjunctions(rows, np.array([0, 1]))
