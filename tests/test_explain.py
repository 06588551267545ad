"""Explanations: the weight of evidence in decibans, feature by feature and word by word; and what tells classes apart."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
from banbury.errors import BadSetting, BanburyError, NegativeCount, UnknownClass, UnknownColumn
from banbury.families.evidence import name_interval
from banbury.families.kernel_density import SHAPES
from banbury.model.explain import Explanation, Informative, LikelihoodRatio
from banbury.quality.calibration import Isotonic, Temperature
from banbury.reading import read

ROW = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}


@pytest.fixture
def model() -> bb.Model:
    return bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))


def decibans(ratio: float) -> float:
    return 10 * math.log10(ratio)


def test_evidence_is_ten_times_the_logarithm_of_the_likelihood_ratio(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert (told.winner, told.against) == ("no", "yes")
    assert told.prior == pytest.approx(decibans(5 / 9))
    assert {e.feature: e.decibans for e in told.evidence} == pytest.approx(
        {
            "outlook": decibans((4 / 8) / (3 / 12)),
            "humidity": decibans((5 / 7) / (4 / 11)),
            "wind": decibans((4 / 7) / (4 / 11)),
            "temperature": decibans((2 / 8) / (4 / 12)),
        }
    )


def test_the_strongest_evidence_comes_first(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert [e.feature for e in told.evidence] == ["outlook", "humidity", "wind", "temperature"]
    assert [e.value for e in told.evidence] == ["sunny", "high", "strong", "cool"]


def test_probabilities_are_those_of_the_prediction(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert [told.probability, told.probability_against] == pytest.approx(model.posterior(ROW)[0].tolist(), abs=1e-15)
    assert told.log_odds == pytest.approx(math.log(told.probability / told.probability_against), rel=1e-12)
    assert told.decibans == pytest.approx(decibans(told.probability / told.probability_against))


def test_missing_values_say_nothing_and_are_not_mentioned(model: bb.Model) -> None:
    """Orange's nomogram said 66 % where its prediction said 82 %: it took missing values for something else."""
    row = dict(ROW, outlook=None)
    told = model.explain(row)
    assert "outlook" not in [e.feature for e in told.evidence]
    assert told.probability == pytest.approx(model.posterior(row).max(), abs=1e-15)


def test_an_absent_value_is_missing(model: bb.Model) -> None:
    absent = {name: value for name, value in ROW.items() if name != "wind"}
    with pytest.warns(bb.BanburyWarning, match="these rows have no column 'wind', which is treated as missing"):
        assert model.explain(absent) == model.explain(dict(ROW, wind=None))


def test_a_missing_value_that_is_a_category_speaks() -> None:
    table = {"x": ["a", "a", None, None, None], "y": ["p", "p", "p", "q", "q"]}
    told = bb.estimate(bb.count(table, "y", features=bb.Categorical(missing="category"))).explain({"x": None})
    assert [(e.feature, e.value) for e in told.evidence] == [("x", None)]
    assert told.evidence[0].decibans == pytest.approx(decibans((3 / 4) / (2 / 5)))
    assert "missing" in str(told)


THREE = {"x": [1.0, 2.0, 5.0, 6.0, 20.0, 21.0], "w": list("aabbcc"), "y": ["p", "p", "q", "q", "r", "r"]}


def test_the_winner_is_weighed_against_the_runner_up_or_any_other() -> None:
    model = bb.estimate(bb.count(THREE, "y"))
    row = {"x": 1.5, "w": "a"}
    assert model.explain(row).against == "q"
    told = model.explain(row, against="r")
    assert (told.winner, told.against) == ("p", "r")
    joint = model.log_joint(row)[0]
    assert told.log_odds == pytest.approx(joint[0] - joint[2], rel=1e-12)


def test_the_winner_against_itself_is_weighed_against_the_runner_up() -> None:
    model = bb.estimate(bb.count(THREE, "y"))
    row = {"x": 1.5, "w": "a"}
    assert model.explain(row, against="p") == model.explain(row)
    with pytest.raises(UnknownClass, match="no class 's'"):
        model.explain(row, against="s")


def test_one_class_leaves_nothing_to_explain() -> None:
    model = bb.estimate(bb.count({"x": [1.0, 2.0], "y": ["a", "a"]}, "y"))
    with pytest.raises(BadSetting, match=r"compares two classes, but the model has only 'a'\. .*\.surprise\(row\)"):
        model.explain({"x": 1.0})


def test_one_row_is_explained_at_a_time(model: bb.Model) -> None:
    with pytest.raises(BanburyError, match="14"):
        model.explain(bb.datasets.play_tennis())


@pytest.mark.parametrize("features", [{}, {"a": "gaussian"}, {("a", "b"): "joint"}])
def test_terms_show_the_first_row_whatever_other_rows_have(features: Any) -> None:
    rows = {"a": [1, 2, 1, 2] * 30, "b": [True, True, False, False] * 30}
    model = bb.estimate(bb.count(rows, target=["x", "y", "y", "x"] * 30, features=features))
    [batch] = read({"a": [None, 2], "b": [True, None]})
    log_likelihoods = model._score_features(batch, model.parameters, "parts")[0][0]
    terms = model._terms(batch, model.parameters, log_likelihoods)
    assert [term.value for term in terms] == [(None, True)] if len(terms) == 1 else [None, True]


def test_a_row_comes_in_many_forms() -> None:
    X = np.array([[1.0, 10.0], [2.0, 12.0], [6.0, 30.0], [7.0, 29.0]])
    model = bb.estimate(bb.count(X, target=list("aabb")))
    wanted = model.explain(X[0])
    for row in (X[:1], X[0].tolist(), tuple(X[0].tolist()), {"x0": 1.0, "x1": 10.0}):
        assert model.explain(row) == wanted


def test_a_file_is_read_as_for_predicting(tmp_path: Any) -> None:
    model = bb.estimate(bb.count({"agent": ["007", "008", "007", "9"], "y": list("abab")}, "y"))
    path = tmp_path / "row.csv"
    path.write_text("agent\n007\n")
    told = model.explain(path)
    assert [(e.value, e.seen) for e in told.evidence] == [("007", True)]
    assert told.probability == pytest.approx(model.posterior(path)[0].max(), abs=1e-12)


def test_what_is_impossible_is_infinite_evidence() -> None:
    table = {"x": ["a", "a", "b"], "w": ["u", "v", "v"], "y": ["p", "p", "q"]}
    told = bb.estimate(bb.count(table, "y"), how="mle").explain({"x": "a", "w": "v"})
    assert told.winner == "p"
    assert told.decibans == math.inf
    assert told.evidence[0] == bb.model.explain.Evidence("x", "a", math.inf)  # type: ignore[attr-defined]
    assert "∞" in str(told)


def test_a_row_that_every_class_finds_impossible_is_explained_by_the_prior() -> None:
    table = {"x": ["a", "b"], "w": ["u", "v"], "y": ["p", "q"]}
    model = bb.estimate(bb.count(table, "y"), how="mle", class_prior={"p": 0.75, "q": 0.25})
    told = model.explain({"x": "a", "w": "v"})
    assert (told.winner, told.probability) == ("p", pytest.approx(0.75))
    assert not math.isnan(told.decibans)


def test_values_are_shown_as_they_came() -> None:
    model = bb.estimate(bb.count({"n": [3, 4, 9, 8], "b": [True, True, False, True], "y": list("ppqq")}, "y"))
    told = model.explain({"n": 3, "b": True})
    assert {e.feature: e.value for e in told.evidence} == {"n": 3, "b": True}


def test_an_explanation_is_json(model: bb.Model) -> None:
    told = model.explain(ROW).to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["winner"] == "no"
    assert [e["feature"] for e in told["evidence"]] == ["outlook", "humidity", "wind", "temperature"]
    assert told["decibans"] == pytest.approx(told["prior"] + sum(e["decibans"] for e in told["evidence"]))


def test_an_explanation_reads_as_a_table(model: bb.Model) -> None:
    told = model.explain(ROW)
    assert str(told) == repr(told) == EXPLANATION


EXPLANATION = """\
'no' 72.0% against 'yes' 28.0%, in decibans:
  prior                     -2.55  ---
  outlook      = sunny      +3.01  +++
  humidity     = high       +2.93  +++
  wind         = strong     +1.96  ++
  temperature  = cool       -1.25  -
  sum                       +4.10"""


@pytest.mark.parametrize(("yes", "no"), [(1, 0), (True, False)])
def test_classes_that_are_numbers_are_named_with_their_target(yes: Any, no: Any) -> None:
    weather: Any = bb.datasets.play_tennis()
    weather["play"] = [yes if play == "yes" else no for play in weather["play"]]
    model = bb.estimate(bb.count(weather, target="play"))
    told = model.explain(ROW)
    assert str(told).startswith(f"play = {no}: 72.0% against play = {yes}: 28.0%, ")
    assert f"<b>play = {no}</b>" in told._repr_html_() and f"for play = {yes}</span>" in told._repr_html_()
    assert told.to_dict()["winner"] is no
    first_row = {name: column[:1] for name, column in weather.items()}
    assert any(f"in the training data as play = {no};" in n for n in model.explain(first_row, held_out=True).notes)
    assert str(model.informative(1)).startswith(f"play = {no}\n")
    assert f"about 3 labelled play = {yes} look like play = {no}" in str(bb.suspicious(weather, target="play"))
    target = weather.pop("play")
    nameless = bb.estimate(bb.count(weather, target=target)).explain(ROW)
    assert str(nameless).startswith(f"{no} 72.0% against {yes} 28.0%, ")


def test_a_long_explanation_is_abridged_but_its_sum_is_whole() -> None:
    X = np.random.default_rng(0).normal(size=(20, 100)) + np.repeat([0, 1], 10)[:, None]
    told = bb.estimate(bb.count(X, target=np.repeat([0, 1], 10))).explain(X[0])
    lines = str(told).splitlines()
    assert len(told.evidence) == 100
    for side, sign in (("for", 1), ("against", -1)):
        rest = sum(sign * each.decibans > 0 for each in told.evidence[30:])
        assert any(f"and {rest} more {side}" in line for line in lines)
    shown: Any = sum(float(line.split()[-2 if line.split()[-1].strip("+-") == "" else -1]) for line in lines[1:-1])
    assert shown == pytest.approx(told.decibans, abs=0.5)


def test_the_runner_up_is_found_where_posteriors_are_too_small_to_tell() -> None:
    table = {"x": [0.0, 0.1, 500.0, 500.1, 100.0, 100.1], "y": list("ppqqrr")}
    model = bb.estimate(bb.count(table, "y"))
    assert model.posterior({"x": 0.05})[0].tolist() == [1.0, 0.0, 0.0]
    assert model.explain({"x": 0.05}).against == "r"


# Words and where they stand ------------------------------------------------------------------------------------------

MAILS = ["free money, click now", "cheap pills: free offer", "lunch at noon?", "notes of the meeting at noon"]
KINDS = ["spam", "spam", "ham", "ham"]


def mail_model(**settings: Any) -> bb.Model:
    return bb.estimate(bb.count(MAILS, target=KINDS, features=bb.Text(**settings)))


def positions(told: Explanation) -> dict[str, tuple[tuple[int, int], ...]]:
    return {e.value: e.positions for e in told.evidence}


def test_words_have_their_positions() -> None:
    told = mail_model().explain("Free lunch? FREE money!")
    assert positions(told) == {"free": ((0, 4), (12, 16)), "lunch": ((5, 10),), "money": ((17, 22),)}
    assert told.texts == {"text": "Free lunch? FREE money!"}
    assert [e.times for e in told.evidence if e.value == "free"] == [2]


def test_an_n_gram_reaches_from_its_first_word_to_its_last() -> None:
    told = mail_model(ngrams=(2, 2), stop_words=["the"]).explain("The notes of\n THE Meeting")
    assert positions(told) == {"notes of": ((4, 12),), "of meeting": ((10, 25),)}


def test_characters_have_positions_too() -> None:
    told = mail_model(unit="characters", ngrams=(2, 2)).explain("CK  n")
    assert positions(told)["ck"] == ((0, 2),)
    assert positions(told)["k "] == ((1, 4),)  # white space in a row is one space


def test_a_regular_expressions_words_have_positions() -> None:
    told = mail_model(tokens=r"(\w+)[ ,?:]?", ngrams=2).explain("İ at noon, FREE")
    assert positions(told) == {"at": ((2, 4),), "noon": ((5, 9),), "at noon": ((2, 9),), "free": ((11, 15),)}


def test_absent_words_speak_and_stand_nowhere() -> None:
    told = mail_model(model="bernoulli").explain("free lunch")
    assert positions(told)[bb.Text.absent] == ()
    assert positions(told)["free"] == ((0, 4),)


def test_every_column_of_text_has_its_own_positions() -> None:
    table = {"subject": MAILS, "body": MAILS[::-1], "n": [1.0, 2.0, 1.5, 2.5], "kind": KINDS}
    model = bb.estimate(bb.count(table, "kind", features={"subject": "text", "body": "text"}))
    told = model.explain({"subject": "free", "body": "at free", "n": 1.0})
    found = {(e.feature, e.value): e.positions for e in told.evidence}
    assert found[("subject", "free")] == ((0, 4),)
    assert found[("body", "free")] == ((3, 7),)
    assert found[("n", 1.0)] == ()
    assert told.texts == {"subject": "free", "body": "at free"}
    missing = model.explain({"subject": None, "body": "free", "n": 1.0})
    assert missing.texts == {"body": "free"}


def test_a_text_is_shown_as_it_was_read() -> None:
    table = {"text": ["year 1984 ended", "year 2001 began"], "y": ["a", "b"]}
    model = bb.estimate(bb.count(table, "y", features={"text": "text"}))
    assert model.explain({"text": 1984}).texts == {"text": "1984"}
    assert positions(model.explain({"text": 1984})) == {"1984": ((0, 4),)}
    told = model.explain(
        {"text": ["é 1984".encode("latin-1")]}
    )  # bytes are decoded, and the positions are of characters
    assert told.texts == {"text": "é 1984"}
    assert positions(told) == {"1984": ((2, 6),)}


TEXTS = st.lists(
    st.sampled_from(
        ["free", "FREE", "lunch", "İlunch", "at", "é", "<b>", "&amp;", "\n", "中文", "new", '"', "\ud800", ", "]
    ),
    max_size=9,
).map(" ".join)
BAGS: dict[str, dict[str, Any]] = {
    "words": {},
    "pairs": {"ngrams": 2},
    "characters": {"unit": "characters", "ngrams": (1, 3)},
    "bernoulli": {"model": "bernoulli"},
    "complement": {"model": "complement", "damping": "log", "length": True, "idf": True},
    "log-odds": {"model": "log_odds", "damping": "log", "length": True},
    "regular expression": {"tokens": r"\w+"},
}
every_bag = pytest.mark.parametrize("settings", BAGS.values(), ids=BAGS)


@every_bag
@given(text=TEXTS)
def test_what_stands_at_a_position_is_the_word(text: str, settings: dict[str, Any]) -> None:
    model = mail_model(**settings)
    family = model.schema["text"].family
    assert isinstance(family, bb.Text)
    told = model.explain({"text": text})
    for e in told.evidence:
        assert len(e.positions) == (0 if e.value == bb.Text.absent else e.times)
        for start, end in e.positions:
            assert e.value in family.split_text(text[start:end])[1]


# Rows that were counted ----------------------------------------------------------------------------------------------


def mixed(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 3, n)
    said = [" ".join([*rng.choice(["red", "green", "blue", f"own{c}"], 3), f"word{i}"]) for i, c in enumerate(labels)]
    columns = {"number": rng.normal(labels, 1.0), "few": rng.integers(0, 4, n), "colour": [f"v{v}" for v in labels % 2]}
    return {**columns, "text": said, "y": [f"class {c}" for c in labels]}


FAMILIES: Any = {"number": "quantile_tree", "few": "poisson", "colour": "categorical", "text": "text"}


@pytest.mark.parametrize(
    "settings", [{}, {"how": "mle"}, {"how": "predictive"}, {"class_prior": "uniform"}, {"alpha": 0.1}]
)
def test_a_row_that_is_held_out_is_explained_by_the_model_of_all_others(settings: Any) -> None:
    rows = mixed()
    tally = bb.count(rows, "y", features=FAMILIES)
    model = bb.estimate(tally, **settings)
    honest = model.calibrated(
        bb.calibrate("temperature", model.log_posterior(rows), [model.classes.index(c) for c in rows["y"]])
    )
    for i in range(0, 60, 7):
        row = {name: column[i] for name, column in rows.items()}
        others = {name: np.delete(np.asarray(column, dtype=object), i).tolist() for name, column in rows.items()}
        for whole in (model, honest):
            rest = bb.estimate(bb.count(others, "y", schema=tally.schema), **settings).calibrated(whole.calibration)
            told, expected = whole.explain(row, held_out=True), rest.explain(row)
            assert told.held_out and replace(told, held_out=False, remarks=()) == expected
            assert f"this row is in the training data as {row['y']!r}; it was left out here" in str(told)
            assert told.to_dict()["held_out"] is True and "held_out" not in expected.to_dict()
            without = {name: value for name, value in row.items() if name != "y"}
            assert whole.explain(without, held_out=True, label=row["y"]) == told
    assert model.tally == tally  # nothing was forgotten


def test_a_text_that_is_held_out_no_longer_knows_its_own_words() -> None:
    rows = mixed()
    clf = bb.NaiveBayesClassifier().fit(rows["text"], rows["y"])
    before = clf.tally_.digest()
    told = clf.explain(rows["text"][4], held_out=True, label=rows["y"][4])
    assert told.unknown == ("word4",) and not clf.explain(rows["text"][4]).unknown
    assert clf.tally_.digest() == before and clf.explain(rows["text"][4]).held_out is False


def test_weights_that_were_learned_with_the_row_stay_and_are_told_of() -> None:
    rows = {name: column for name, column in mixed(150).items() if name != "text"}
    clf = bb.EvidenceClassifier().fit({k: v for k, v in rows.items() if k != "y"}, rows["y"])
    row = {name: column[3] for name, column in rows.items() if name != "y"}
    told = clf.explain(row, held_out=True, label=rows["y"][3])
    assert not told.stale and "the weights of evidence were learned with it and do not change" in str(told)
    assert told.decibans != clf.explain(row).decibans


def test_what_cannot_be_held_out(model: bb.Model) -> None:
    weather = bb.datasets.play_tennis()
    first = {name: column[0] for name, column in weather.items()}
    with pytest.raises(BadSetting, match=r"class is needed .* Pass label=..., or include it .* as column 'play'"):
        model.explain({**first, "play": None}, held_out=True)
    with pytest.raises(BadSetting, match=r"Pass label=\.\.\.\.$"):
        bb.NaiveBayesClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 1]).explain([1.0], held_out=True)
    with pytest.raises(UnknownClass, match="perhaps"):
        model.explain(first, held_out=True, label="perhaps")
    with pytest.raises(NegativeCount, match=r"was not counted with class 'no', .* Explain it without held_out=True"):
        model.explain({**first, "outlook": "overcast"}, held_out=True)
    with pytest.raises(UnknownColumn, match="outlook"):
        model.explain({name: value for name, value in first.items() if name != "outlook"}, held_out=True)
    alone = bb.estimate(bb.count({"x": ["a", "b", "b"], "y": ["n", "m", "m"]}, "y"))
    with pytest.raises(BadSetting, match="the only row of class 'n'"):
        alone.explain({"x": "a", "y": "n"}, held_out=True)


# Whole numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "poisson", "histogram", "kernel_density", "quantile_tree"])
@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_are_told_by_whole_numbers(family: Any, seed: int) -> None:
    """ "SibSp from -0.2 to 1.2" was said of how many siblings were aboard."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 300)
    rows = {"siblings": rng.poisson(np.where(y, 0.4, 1.6)), "weight": rng.normal(y, 1.0).round(2), "y": y}
    found = bb.estimate(bb.count(rows, "y", features={"siblings": family, "weight": "gaussian"})).informative(2)
    told = [ratio for ratios in found.ratios.values() for ratio in ratios if ratio.feature == "siblings"]
    assert len(told) == 2
    for ratio in told:
        assert re.fullmatch(r"= -?\d+|[≤≥] -?\d+|from -?\d+ to -?\d+", ratio.value)
        assert found.shown(ratio) == f"siblings {ratio.value}"


def test_a_stretch_of_whole_numbers_holds_its_values_and_no_other() -> None:
    for low, high in [
        (-0.5, 1.5),
        (-0.2, 1.2),
        (0.0, 1.0),
        (2.5, np.inf),
        (3.0, np.inf),
        (-np.inf, 4.0),
        (-np.inf, 4.2),
    ]:
        inside = [v for v in range(-3, 10) if low <= v < high]
        said = name_interval(low, high, whole_numbers=True)
        numbers = [int(word) for word in re.findall(r"-?\d+", said)]
        assert {"=": numbers == inside, "f": numbers == [inside[0], inside[-1]]}.get(
            said[0], numbers == [inside[-1] if said[0] == "≤" else inside[0]]
        )


def test_weighed_numbers_are_told_by_their_stretches() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    rows = {"siblings": rng.poisson(np.where(y, 0.4, 1.6)), "weight": rng.normal(y, 1.0)}
    found = bb.EvidenceClassifier().fit(rows, y).informative(3)
    shown = [found.shown(ratio) for ratios in found.ratios.values() for ratio in ratios]
    assert any(name.startswith("siblings ") for name in shown)
    for name in shown:
        assert re.fullmatch(r"siblings ([=≤≥] \d+|from \d+ to \d+)|weight ([<≥] \S+|from \S+ to \S+)", name)


# Calibrated models ---------------------------------------------------------------------------------------------------


class Upside:
    """A calibration that turns all posteriors round."""

    n_classes = 2
    keeps_order = only_scales = False
    scale = 1.0

    def apply(self, log_posteriors: Any) -> Any:
        return np.exp(log_posteriors)[:, ::-1]

    def log_apply(self, log_posteriors: Any) -> Any:
        return np.asarray(log_posteriors)[:, ::-1]


def test_the_winner_is_what_a_calibrated_model_predicts(model: bb.Model) -> None:
    turned = model.calibrated(Upside())
    told, plain = turned.explain(ROW), model.explain(ROW)
    assert (told.winner, told.against) == (turned.predict(ROW)[0], "no") == ("yes", "no")
    assert (told.probability, told.probability_against) == tuple(turned.posterior(ROW)[0, [1, 0]])
    assert told.uncalibrated == plain.probability_against
    assert told.decibans == pytest.approx(plain.decibans, rel=1e-12)
    assert told.decibans == pytest.approx(decibans(told.probability / told.probability_against), rel=1e-12)
    assert told.calibration == pytest.approx(2 * plain.decibans, rel=1e-12)  # the evidence speaks against it


def test_a_calibrated_model_leads_with_what_is_calibrated(model: bb.Model) -> None:
    told = model.calibrated(Upside()).explain(ROW)
    lines = str(told).splitlines()
    assert lines[0] == "'yes' 72.0% against 'no' 28.0%, in decibans:"
    assert lines[2].split() == ["calibration", "+8.21", "++++++++"]
    assert lines[-1] == "  calibrated: before that, 'yes' had 28.0%"
    assert told.to_dict()["uncalibrated"] == told.uncalibrated
    assert told.to_dict()["calibration"] == told.calibration
    page = told._repr_html_()
    assert "before that, &#x27;yes&#x27; had 28.0%" in page and "<td>calibration</td>" in page
    assert model.explain(ROW).uncalibrated is None and "uncalibrated" not in model.explain(ROW).to_dict()
    assert "calibrat" not in str(model.explain(ROW)) + model.explain(ROW)._repr_html_()


def test_the_sum_has_a_bar_on_the_scale_of_its_parts() -> None:
    why = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play")).explain(ROW)
    widths = [float(width) for width in re.findall(r'<i style="width:([0-9.]+)%', why._repr_html_())]
    weights = [
        abs(weight) for weight in [*(w for _, w in why.before), *(e.decibans for e in why.evidence), why.decibans]
    ]
    assert widths == [pytest.approx(100 * weight / max(weights), abs=0.06) for weight in weights]


def test_a_temperature_makes_all_evidence_lighter_by_the_same_factor(model: bb.Model) -> None:
    plain, told = model.explain(ROW), model.calibrated(Temperature(2, 4.0)).explain(ROW)
    assert (told.scale, told.calibration) == (0.25, 0.0)
    assert told.prior == plain.prior / 4
    assert [e.decibans for e in told.evidence] == [e.decibans / 4 for e in plain.evidence]
    assert "evidence is scaled by 0.25; before that, 'no' had 72.0%" in str(told)


def test_what_a_floor_takes_away_is_told(model: bb.Model) -> None:
    """A posterior far below the best counts for more than it is: then evidence does not add up by itself."""
    told = model.calibrated(Temperature(2, 2.0, floor=-0.5)).explain(ROW)
    assert told.log_odds == pytest.approx(0.25) and told.calibration < 0
    assert told.decibans == pytest.approx(told.prior + told.calibration + sum(e.decibans for e in told.evidence))


@pytest.mark.parametrize("calibration", [Temperature(2, 3.0), Isotonic(2, np.array([1]), np.zeros(1), np.ones(1))])
def test_certain_answers_of_calibrated_models_have_infinite_sums(calibration: Any) -> None:
    """A class that is impossible stays so; one that calibration rules out is, too."""
    sure = bb.estimate(bb.count({"x": ["a", "a", "b", "b"], "y": ["n", "n", "y", "y"]}, "y"), how="mle")
    told = sure.calibrated(calibration).explain({"x": "b"})
    assert (told.winner, told.decibans, told.probability_against) == ("y", math.inf, 0.0)
    assert told.calibration == 0.0  # the evidence is infinite already
    assert str(told).startswith("'y' > 99.9% against 'n' < 0.1%")
    unsure = sure.calibrated(calibration).explain({"x": None})
    if isinstance(calibration, Isotonic):
        assert (unsure.winner, unsure.calibration, unsure.decibans) == ("y", math.inf, math.inf)
    else:
        assert (unsure.calibration, unsure.decibans) == (0.0, 0.0)


def test_probabilities_that_are_all_but_certain_are_not_said_to_be(model: bb.Model) -> None:
    told = replace(model.explain(ROW), probability=1.0 - 9.3e-65, probability_against=9.3e-65)
    assert str(told).startswith("'no' > 99.9% against 'yes' < 0.1%, in decibans:")
    assert "</b> &gt; 99.9% against" in told._repr_html_()


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_explanations_agree_with_calibrated_predictions(method: str) -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 200)
    X = np.repeat(rng.normal(y, 1.5)[:, None], 3, axis=1) + rng.normal(0, 0.1, (200, 3))
    clf = bb.NaiveBayesClassifier(calibrate=method).fit(X, y)
    plain = clf.model_.calibrated(None)
    for row in X[:40]:
        told = clf.explain(row)
        honest = clf.predict_proba([row])[0]
        assert told.winner == clf.predict([row])[0]
        assert told.probability == pytest.approx(honest[told.winner], abs=1e-12)
        assert told.probability_against == pytest.approx(honest[told.against], abs=1e-12)
        assert told.uncalibrated == pytest.approx(plain.posterior([row])[0, told.winner], abs=1e-12)
        others = [c for c in range(3) if c != told.winner]
        assert honest[told.against] == max(honest[others])
        with np.errstate(divide="ignore"):
            assert told.log_odds == pytest.approx(
                np.log(honest[told.winner] / honest[told.against]), rel=1e-9, abs=1e-9
            )
        added = told.prior + told.calibration + sum(e.decibans for e in told.evidence)
        assert added == pytest.approx(told.decibans, rel=1e-9, abs=1e-9)
        joint = plain.log_joint([row])[0]
        counted = (told.decibans - told.calibration) / told.scale if np.isfinite(told.decibans) else 0.0
        if np.isfinite(told.decibans):
            assert counted == pytest.approx(
                decibans(np.exp(joint[told.winner] - joint[told.against])), rel=1e-9, abs=1e-9
            )


# JSON and HTML -------------------------------------------------------------------------------------------------------


def test_positions_and_texts_are_json() -> None:
    told = mail_model().explain("free free pills")
    found = told.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["texts"] == {"text": "free free pills"}
    assert found["evidence"][0]["positions"] == [[0, 4], [5, 9]]


class Page(HTMLParser):
    """A page's elements with their attributes, the letters in each, and whether all that was opened was closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[dict[str, Any]] = []
        self.all: list[dict[str, Any]] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        element = {"tag": tag, "letters": "", **dict(attrs)}
        self.all.append(element)
        self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element["letters"] += data

    def of(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        return (e for e in self.all if all(e.get(name) == value for name, value in wanted.items()))


def shades(told: Explanation) -> dict[str, tuple[str, float]]:
    """The colour of each shaded stretch of text, and how dense it is."""
    spans = [e for e in Page(told._repr_html_()).of(tag="span") if "title" in e]
    found = [(e["letters"], re.fullmatch(r"background:rgba\((.*), ([\d.]+)\)", e["style"])) for e in spans]
    return {letters: (match[1], float(match[2])) for letters, match in found if match}


def test_words_are_shaded_by_their_evidence() -> None:
    told = mail_model().explain("Free lunch, money back")
    shaded = shades(told)
    assert list(shaded) == ["Free", "lunch", "money"]
    assert shaded["Free"][0] == shaded["money"][0] != shaded["lunch"][0]
    weights = {e.value: e.decibans for e in told.evidence}
    assert shaded["lunch"][1] / shaded["money"][1] == pytest.approx(-weights["lunch"] / weights["money"], rel=0.01)
    titles = [e["title"] for e in Page(told._repr_html_()).of(tag="span", letters="Free")]
    assert titles == [f"free: +{weights['free']:.2f} decibans"]


def test_each_of_several_occurrences_has_its_part_of_the_evidence() -> None:
    told = mail_model().explain("free free pills")
    (first, _) = (e["title"] for e in Page(told._repr_html_()).of(tag="span", letters="free"))
    weight = told.evidence[0].decibans
    assert first == f"free: +{weight / 2:.2f} decibans, 2 times: +{weight:.2f}"


@every_bag
@given(text=TEXTS)
def test_the_page_has_the_text_as_it_was(text: str, settings: dict[str, Any]) -> None:
    page = Page(mail_model(**settings).explain({"text": text})._repr_html_())
    (shown,) = page.of(**{"class": "text"})
    assert shown["letters"] == text.encode("utf-8", "replace").decode()


def test_a_long_text_is_cut() -> None:
    page = Page(mail_model(ngrams=2).explain("free lunch " * 5_000)._repr_html_())
    (shown,) = page.of(**{"class": "text"})
    assert shown["letters"] == ("free lunch " * 5_000)[:10_000] + "… and 45,000 more characters"


EVIL = "<script>alert(1)</script>\" onload='x' &amp;"


def test_nothing_that_is_shown_is_markup() -> None:
    table = {
        EVIL: ["a", EVIL, "b", EVIL],
        "text": [EVIL, "script alert", "b c d e f g", "b"],
        "kind": [EVIL, "p", "p", "q"],
    }
    model = bb.estimate(bb.count(table, "kind", features={EVIL: "categorical", "text": "text"}))
    for page in (
        model.explain({EVIL: EVIL, "text": EVIL})._repr_html_(),
        mail_model(unit="characters").explain(EVIL)._repr_html_(),
        model.informative()._repr_html_(),
    ):
        tags = {e["tag"] for e in Page(page).all}
        assert tags <= {"style", "div", "p", "b", "span", "table", "tr", "td", "i", "caption"}
        assert not any("onload" in e for e in Page(page).all)
        assert "http" not in page and "<script" not in page


def test_a_page_can_be_written_to_a_file() -> None:
    told = mail_model(unit="characters").explain({"text": "free \ud800 lunch"})
    assert "\ud800" not in told._repr_html_()
    told._repr_html_().encode("utf-8")


def test_infinite_evidence_has_a_bar() -> None:
    table = {"x": ["a", "a", "b"], "w": ["u", "v", "v"], "y": ["p", "p", "q"]}
    page = bb.estimate(bb.count(table, "y"), how="mle").explain({"x": "a", "w": "v"})._repr_html_()
    assert "+∞" in page and "width:100.0%" in page


# Informative values --------------------------------------------------------------------------------------------------


def ratios(found: Informative, label: Any) -> dict[Any, float]:
    return {(r.feature, r.value): r.ratio for r in found.ratios[label]}


def test_ratios_are_those_of_the_class_and_the_rest(model: bb.Model) -> None:
    found = model.informative()
    assert ratios(found, "no") == pytest.approx(
        {
            ("humidity", "high"): (5 / 7) / (4 / 11),
            ("outlook", "sunny"): (4 / 8) / (3 / 12),
            ("wind", "strong"): (4 / 7) / (4 / 11),
            ("temperature", "hot"): (3 / 8) / (3 / 12),
            ("outlook", "rain"): (3 / 8) / (4 / 12),
        }
    )
    assert list(found.ratios) == ["no", "yes"]


def test_the_rest_are_the_other_classes_mixed_by_their_prior() -> None:
    table = {"x": list("aabababbbb"), "y": list("pppqqqqqrr")}
    model = bb.estimate(bb.count(table, "y", features="categorical"), class_prior={"p": 0.5, "q": 0.1, "r": 0.4})
    (first,) = model.informative(1, classes=["p"]).ratios["p"]
    in_q, in_r = (model.likelihood("x", "a")[c] for c in "qr")
    assert (first.feature, first.value) == ("x", "a")
    assert first.probability == model.likelihood("x", "a")["p"]
    assert first.probability_rest == pytest.approx((0.1 * in_q + 0.4 * in_r) / 0.5)
    assert first.ratio == pytest.approx(first.probability / first.probability_rest)


def test_a_class_that_is_all_there_is_has_a_rest_too() -> None:
    table = {"x": list("aabb"), "y": list("ppqq")}
    model = bb.estimate(bb.count(table, "y", features="categorical"), class_prior={"p": 1.0, "q": 0.0})
    assert ratios(model.informative(), "p") == pytest.approx({("x", "a"): 3.0})


SPACE = ["orbit of the moon", "the orbit", "orbit and launch of the zebra", "orbit of mars and moon"]
GOD = ["the church of the saints", "faith and the church", "the church of faith", "of the church and the bell"]


def test_a_word_must_be_common_in_its_class_as_well_as_rare_elsewhere() -> None:
    found = bb.estimate(bb.count(SPACE + GOD, target=["space"] * 4 + ["god"] * 4)).informative(2)
    assert [r.value for r in found.ratios["space"]] == ["orbit", "moon"]  # neither 'zebra' nor 'of'
    assert [r.value for r in found.ratios["god"]] == ["church", "faith"]
    assert found.ratios["space"][0].ratio == pytest.approx((5 / (17 + 12)) / (1 / (19 + 12)))


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive", "gibbs"])
@pytest.mark.parametrize("model", ["multinomial", "presence", "bernoulli", "complement", "log_odds"])
def test_every_model_of_text_names_its_words(model: str, how: Any) -> None:
    tally = bb.count(
        SPACE + GOD, target=["space"] * 4 + ["god"] * 4, features=bb.Text(model=model, idf=model == "presence")
    )  # type: ignore[arg-type]
    found = bb.estimate(tally, how=how, alpha=2.0).informative(3)
    assert found.ratios["space"][0].value == "orbit"
    assert found.ratios["god"][0].value == "church"
    for rows in found.ratios.values():
        assert all(r.ratio > 1 and 0 < r.probability <= 1 and 0 <= r.probability_rest < r.probability for r in rows)
    if how == "mle" and model == "bernoulli":
        assert found.ratios["space"][0].ratio == math.inf
        assert "space : rest = ∞ : 1" in str(found)
    elif how == "mle":  # 1e-10 is the least that a word counts
        assert 1e10 < found.ratios["space"][0].ratio < 1e11


def test_yes_and_no_are_values() -> None:
    table = {"flag": [True, True, True, False, False, False], "y": list("aaabbb")}
    found = bb.estimate(bb.count(table, "y")).informative()
    assert ratios(found, "a") == pytest.approx({("flag", True): 4.0})
    assert ratios(found, "b") == pytest.approx({("flag", False): 4.0})


NUMBERS: dict[str, Any] = {
    "gaussian": bb.Gaussian(),
    "poisson": bb.Poisson(),
    "histogram": bb.Histogram(),
    "histogram, mdl": bb.Histogram(bins="mdl"),
    "histogram, bins": bb.Histogram(start=-1, width=3),
} | {kernel: bb.KernelDensity(kernel) for kernel in SHAPES}  # type: ignore[arg-type]


def number_model(family: Any, how: Any) -> bb.Model:
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 60)
    x = rng.poisson(np.array([3.0, 12.0, 30.0])[y])
    return bb.estimate(bb.count({"x": x}, target=y, features=family), how=how)


@pytest.mark.parametrize("how", ["mean", "predictive"])
@pytest.mark.parametrize("family", NUMBERS.values(), ids=NUMBERS)
def test_shares_of_stretches_are_the_integrals_of_densities(family: Any, how: Any) -> None:
    model = number_model(family, how)
    (group,) = model.parameters
    cuts = np.array([-90.0, -3.0, 0.0, 2.0, 7.0, 13.0, 41.0, 90.0])
    cuts = cuts[cuts > 0] if isinstance(family, bb.Poisson) else cuts
    below, above = group.tails(0, cuts)  # type: ignore[attr-defined]
    np.testing.assert_allclose(below + above, 1.0, atol=1e-9)
    for i in range(len(cuts) - 1):
        if isinstance(family, bb.Poisson):
            wanted = np.exp(model.log_likelihood({"x": np.arange(cuts[i], cuts[i + 1], dtype=int)})).sum(axis=0)
        else:
            step = (cuts[i + 1] - cuts[i]) / 20_000
            middles = cuts[i] + step * (np.arange(20_000) + 0.5)
            wanted = np.exp(model.log_likelihood({"x": middles})).sum(axis=0) * step
        np.testing.assert_allclose(below[i + 1] - below[i], wanted, atol=1e-4)


@pytest.mark.parametrize("how", ["mean", "predictive", "gibbs"])
@pytest.mark.parametrize("family", NUMBERS.values(), ids=NUMBERS)
def test_a_number_speaks_by_the_stretch_that_tells_most(family: Any, how: Any) -> None:
    found = number_model(family, how).informative()
    (low,), (middle,), (high,) = (found.ratios[c] for c in range(3))
    assert re.fullmatch(r"(≤|<|from \S+ to) [4-9](\.5)?", low.value)
    assert re.fullmatch(r"from \S+ to \S+", middle.value)
    assert high.value.startswith("≥ ") or high.value.startswith("from ")
    for row in (low, middle, high):
        assert row.ratio == pytest.approx(row.probability / row.probability_rest)
        assert row.ratio > 3 and row.probability > 0.3


def test_a_stretch_has_round_ends() -> None:
    rng = np.random.default_rng(0)
    table = {"petal_length": np.concatenate([rng.normal(1.46, 0.17, 500), rng.normal(4.9, 0.8, 500)])}
    found = bb.estimate(bb.count(table, target=["setosa"] * 500 + ["other"] * 500, features="gaussian")).informative()
    assert [r.value for r in found.ratios["setosa"]] == ["< 1.95"]
    assert "petal_length < 1.95  setosa : rest =" in str(found)


@pytest.mark.parametrize(
    "low, high, shown",
    [(-0.0, 2.5, "from 0 to 2.5"), (-1.0, -0.0, "from -1 to 0"), (-np.inf, -0.0, "< 0"), (-0.0, np.inf, "≥ 0")],
)
def test_a_stretch_that_ends_at_zero_has_no_sign_there(low: float, high: float, shown: str) -> None:
    assert name_interval(low, high) == shown


def test_a_column_that_says_nothing_is_not_mentioned() -> None:
    found = bb.estimate(bb.count({"x": ["a", "b", "a", "b"], "y": list("ppqq")}, "y")).informative()
    assert found.ratios == {"p": (), "q": ()}
    assert str(found) == "'p': nothing separates it from the rest\n'q': nothing separates it from the rest"
    assert "banbury" in found._repr_html_()


def test_informative_values_read_as_tables(model: bb.Model) -> None:
    found = model.informative(1)
    assert str(found) == repr(found) == INFORMATIVE
    alone = bb.estimate(bb.count(SPACE + GOD, target=["sci.space"] * 4 + ["god"] * 4)).informative(1)
    assert "  orbit   sci.space : rest = 5.3 : 1" in str(alone).splitlines()
    table = {"subject": SPACE + GOD, "n": list(range(8))}
    mixed = bb.estimate(bb.count(table, target=["space"] * 4 + ["god"] * 4)).informative(3)
    assert "  subject: orbit " in str(mixed)


INFORMATIVE = """\
'no'
  humidity = high     no : rest = 2.0 : 1
'yes'
  outlook = overcast  yes : rest = 3.3 : 1"""


def test_informative_values_are_json(model: bb.Model) -> None:
    found = model.informative(2, classes=["yes"]).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert [each["class"] for each in found["classes"]] == ["yes"]
    first = found["classes"][0]["ratios"][0]
    assert (first["feature"], first["value"]) == ("outlook", "overcast")
    assert first["ratio"] == pytest.approx(first["probability"] / first["probability_rest"])


def test_a_missing_value_that_is_a_category_tells() -> None:
    table = {"x": ["a", "a", "a", None, None, None], "y": list("pppqqq")}
    found = bb.estimate(bb.count(table, "y", features=bb.Categorical(missing="category"))).informative()
    assert found.ratios["q"][0] == LikelihoodRatio("q", "x", None, pytest.approx(4.0), 0.8, pytest.approx(0.2))
    assert "x = missing" in str(found)


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "ten", None])
def test_n_is_a_number_of_values(model: bb.Model, n: Any) -> None:
    with pytest.raises(BadSetting, match="n must be a whole number of at least 1"):
        model.informative(n)


def test_classes_are_those_of_the_model(model: bb.Model) -> None:
    assert list(model.informative(classes=["yes", "no", "yes"]).ratios) == ["yes", "no"]
    with pytest.raises(UnknownClass, match="no class 'maybe'"):
        model.informative(classes=["maybe"])
    with pytest.raises(BadSetting, match="classes must be None or a list of classes"):
        model.informative(classes="yes")
    alone = bb.estimate(bb.count({"x": [1.0, 2.0], "y": ["a", "a"]}, "y"))
    with pytest.raises(BadSetting, match="at least two classes"):
        alone.informative()


def test_the_estimator_explains_and_names_what_tells() -> None:
    clf = bb.NaiveBayesClassifier().fit(SPACE + GOD, ["space"] * 4 + ["god"] * 4)
    assert clf.informative(1, classes=["space"]).ratios["space"][0].value == "orbit"
    clf.partial_fit(["quasar quasar", "quasar", "the quasar", "a quasar", "one quasar"], ["space"] * 5)
    assert clf.informative(1, classes=["space"]) == clf.model_.informative(1, classes=["space"])
    assert clf.informative(1).ratios["space"][0].value == "quasar"


@pytest.mark.slow
def test_twenty_newsgroups_are_told_apart_by_their_topics(data_dir: Any, unpacked: Any) -> None:
    model = bb.estimate(bb.count(unpacked("20news-bydate") / "20news-bydate-train"))
    found = model.informative(20)
    for label, topic in {
        "sci.space": "orbit",
        "rec.motorcycles": "bike",
        "sci.crypt": "encryption",
        "rec.autos": "cars",
    }.items():
        assert topic in [r.value for r in found.ratios[label]]
        assert not {"the", "of", "and", "to"} & {r.value for r in found.ratios[label]}


def test_infinite_evidence_is_strict_json():
    model = bb.estimate(bb.count({"x": ["a", "b", "a"], "y": ["p", "q", "q"]}, target="y"), how="mle")
    told = model.explain({"x": "b"}).to_dict()
    assert json.loads(json.dumps(told, allow_nan=False))["evidence"][0]["decibans"] == "inf"
    json.dumps(model.informative(3).to_dict(), allow_nan=False)


@pytest.mark.parametrize("row", [[], (), np.array([])])
def test_no_row_is_not_one(row):
    model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    with pytest.raises(BanburyError, match="one row is needed"):
        model.explain(row)


# Rows far from every class -------------------------------------------------------------------------------------------


def agrees(model: bb.Model, row: dict[str, Any]) -> None:
    """Posterior, log posterior, prediction and explanation of one row say the same."""
    table = {name: [value] for name, value in row.items()}
    posterior, log_posterior = model.posterior(table)[0], model.log_posterior(table)[0]
    assert posterior.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.exp(log_posterior) == pytest.approx(posterior, abs=1e-9)
    told = model.explain(row)
    winner, against = model.classes.index(told.winner), model.classes.index(told.against)
    assert model.predict(table)[0] == told.winner
    assert winner == posterior.argmax()
    assert (told.probability, told.probability_against) == (posterior[winner], posterior[against])
    assert not math.isnan(told.decibans) and not any(math.isnan(e.decibans) for e in told.evidence)
    stated = 1.0 / (1.0 + math.exp(-min(told.log_odds, 700.0)))
    assert stated == pytest.approx(posterior[winner] / (posterior[winner] + posterior[against]), abs=1e-9)


FAR_FAMILIES: list[Any] = [
    bb.Gaussian(),
    bb.Gaussian(variance="shared"),
    bb.Gaussian(smoothing=1e-9),
    bb.Gaussian(prior=bb.NormalInverseGamma(kappa=1.0, nu=3.0)),
    bb.Histogram(),
    bb.KernelDensity(),
    bb.KernelDensity(kernel="epanechnikov"),
]


def constant_beside_informative(family: Any) -> bb.Tally:
    x = [0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.5]
    table = {"x": x, "constant": [5.0] * 8, "y": list("aaaabbbb")}
    return bb.count(table, "y", features={"x": bb.Gaussian(), "constant": family})


@pytest.mark.parametrize("value", [1e3, 1e5, 1e10, -1e18, 1e150, 1e300])
@pytest.mark.parametrize("how", ["mean", "mle", "predictive"])
@pytest.mark.parametrize("family", FAR_FAMILIES)
@pytest.mark.filterwarnings("ignore:every class is impossible")
def test_a_constant_column_decides_nothing_however_far_a_row_is_from_it(family: Any, how: Any, value: float) -> None:
    model = bb.estimate(constant_beside_informative(family), how=how)
    agrees(model, {"x": 2.25, "constant": value})
    told = model.explain({"x": 2.25, "constant": value})
    if not told.impossible:
        assert {e.feature: e.decibans for e in told.evidence}["constant"] == pytest.approx(0.0, abs=1e-6)
        near = model.posterior({"x": [2.25], "constant": [5.0]})[0]
        assert model.posterior({"x": [2.25], "constant": [value]})[0] == pytest.approx(near, abs=1e-6)


def test_evidence_that_cancels_leaves_the_rest() -> None:
    table = {"u": [0.0, 2.0, 9.0, 11.0], "v": [9.0, 11.0, 0.0, 2.0], "x": [1.0, 2.0, 2.5, 3.5], "y": list("aabb")}
    model = bb.estimate(bb.count(table, "y"))
    agrees(model, {"u": 1e30, "v": 1e30, "x": 1.25})
    assert model.predict({"u": [1e30], "v": [1e30], "x": [1.25]}).tolist() == ["a"]
    told = model.explain({"u": 1e30, "v": 1e30, "x": 1.25})
    assert told.decibans == pytest.approx({e.feature: e.decibans for e in told.evidence}["x"])


def test_a_column_that_occurs_alike_in_all_classes_swallows_no_other() -> None:
    counts = {"the": [5, 5, 5, 5], "free": [3, 2, 1, 0], "noon": [0, 1, 2, 3], "y": list("sshh")}
    for model in ("multinomial", "complement"):
        block = {("the", "free", "noon"): bb.Occurrences(model=model)}  # type: ignore[arg-type]
        found = bb.estimate(bb.count(counts, "y", features=block))
        for n in (1e6, 1e18, 1e140):
            agrees(found, {"the": n, "free": 2.0, "noon": 1.0})
            few, many = ({"the": [k], "free": [2.0], "noon": [1.0]} for k in (1.0, n))
            assert found.posterior(many) == pytest.approx(found.posterior(few), abs=1e-9)


def test_huge_counts_that_cancel_swallow_no_other() -> None:
    """Of a Bernoulli block weights have both signs: terms of 1e18 may cancel, and leave a sum that looks small."""
    counts = {"a": [1, 1, 0, 0, 1], "b": [0, 0, 1, 1, 0], "c": [1, 1, 1, 0, 1], "y": list("sshhs")}
    block = {("a", "b", "c"): bb.Occurrences(model="bernoulli", threshold=None)}
    found = bb.estimate(bb.count(counts, "y", features=block))
    for n in (1.0, 3.0, 1e6, 1e9, 1e18):
        agrees(found, {"a": n, "b": n, "c": 1.0})


@pytest.mark.parametrize("settings", [{}, {"model": "complement"}, {"model": "log_odds"}, {"model": "bernoulli"}])
@pytest.mark.parametrize("how", ["mean", "predictive"])
def test_a_long_text_swallows_no_word(settings: dict[str, Any], how: Any) -> None:
    model = bb.estimate(
        bb.count(["same a b b", "same a a b"], target=["p", "q"], features=bb.Text(**settings)), how=how
    )
    for text in ("same " * 500_000 + "a", "a b " * 250_000 + "b"):
        told = model.explain(text)
        posterior = model.posterior([text])[0]
        winner = model.classes.index(told.winner)
        assert 1.0 / (1.0 + math.exp(-told.log_odds)) == pytest.approx(posterior[winner], abs=1e-9)


def test_a_text_beside_a_far_number_is_heard() -> None:
    table = {"t": ["good", "good", "bad", "bad good"], "k": [1.0] * 4, "y": list("ppqq")}
    model = bb.estimate(bb.count(table, "y", features={"t": bb.Text(), "k": bb.Gaussian()}))
    agrees(model, {"t": "good good", "k": 1e12})
    assert model.posterior({"t": ["good"], "k": [1e12]}) == pytest.approx(
        model.posterior({"t": ["good"], "k": [1.0]}), abs=1e-9
    )


def test_what_is_impossible_in_every_class_is_said_to_be_answered_by_the_prior() -> None:
    table = {"x": list("aabc"), "w": list("uvvz"), "n": [1.0, 2.0, 4.0, 5.0], "y": list("pqpr")}
    model = bb.estimate(bb.count(table, "y", features={"n": bb.Gaussian(), "x": bb.Categorical()}), how="mle")
    with pytest.warns(bb.errors.BanburyWarning):
        posterior = model.posterior({"x": ["c"], "w": ["u"], "n": [3.0]})[0]
    told = model.explain({"x": "c", "w": "u", "n": 3.0}, against="q")
    assert told.log_odds == pytest.approx(math.log(posterior[0] / posterior[1]))
    assert told.impossible and "the prior decides" in str(told)


def test_answers_far_away_do_not_depend_on_the_neighbours_or_threads() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 3))
    X[:, 2] = 7.0
    model = bb.estimate(bb.count(X[:100], target=(X[:100, 0] > 0).astype(int)))
    X[rng.random(3000) < 0.1, 2] = 1e15
    alone = np.concatenate([model.posterior(X[i : i + 1]) for i in range(0, 3000, 50)])
    X[::7, 1] = np.nan
    alone = np.concatenate([model.posterior(X[i : i + 1]) for i in range(0, 3000, 50)])
    for threads in (1, 2, 5):
        assert np.array_equal(replace(model, threads=threads).posterior(X)[::50], alone)


HOSTILE = [0.0, 5.0, 1e10, -1e18, 1e150, -1e300, 5e-324, -3e-310, 2.0**53, 131_072.0, 1e5]
SMALL = st.sampled_from([0.0, 1.0, 2.0, 5.0, 5.5, -3.0, 1e-3, 100.0])


@given(
    rows=st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=6, max_size=12),
    families=st.tuples(*[st.sampled_from(FAR_FAMILIES)] * 3),
    block=st.sampled_from([None, "full", "tied", "kernel"]),
    n_classes=st.integers(2, 3),
    how=st.sampled_from(["mean", "mle", "map", "predictive", "gibbs"]),
    row=st.tuples(*[st.sampled_from(HOSTILE)] * 3),
)
@pytest.mark.filterwarnings("ignore")
def test_posteriors_agree_with_explanations_of_any_row(
    rows: Any, families: Any, block: str | None, n_classes: int, how: Any, row: Any
) -> None:
    columns: dict[str, Any] = dict(zip("uvx", map(list, zip(*rows, strict=True)), strict=True))
    columns["y"] = ["abc"[i % n_classes] for i in range(len(rows))]
    features: dict[Any, Any] = dict(zip("uvx", families, strict=True))
    if block is not None:
        pair = bb.KernelDensity() if block == "kernel" else bb.Gaussian(covariance=block)  # type: ignore[arg-type]
        features = {("u", "v"): pair, "x": families[2]}
    agrees(bb.estimate(bb.count(columns, "y", features=features), how=how), dict(zip("uvx", row, strict=True)))


@pytest.mark.parametrize("weigh", [False, True])
def test_common_words_of_a_long_text_are_told_together(weigh: bool) -> None:
    rng = np.random.default_rng(5)
    names = {label: np.array([f"{label}{i}" for i in range(60)]) for label in ("sea", "sky")}
    labels = ["sea", "sky"] * 60
    texts = [f"the and {' '.join(rng.choice(names[label], 12))}" + " of" * (label == "sea") for label in labels]
    model = bb.EvidenceClassifier(weigh=weigh).fit(texts, labels)
    long = f"the the and of {' '.join(names['sea'])} sky1"
    why = model.explain([long])
    assert {e.value for e in why.evidence if e.common} == {"the", "and", "of"}
    *_, last = lines = str(why).splitlines()
    together = [line for line in lines if "common word" in line or line.lstrip().startswith("and ")]
    assert any("the" in line and "common word" in line for line in together) and "sum" in last
    shown = [float(found[0]) for line in lines[1:] if (found := re.search(r"[+-]\d+\.\d\d", line))]
    assert len(shown) == 1 + 30 + len(together) + 1
    assert sum(shown[:-1]) == pytest.approx(shown[-1], abs=0.005 * len(shown))
    assert sum(e.decibans for e in why.evidence) + why.prior == pytest.approx(why.decibans, abs=1e-9)
    assert "common word" in why._repr_html_()
    assert "common word" not in str(model.explain(["the and of sea1 sea2"]))


def test_a_row_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bb.estimate(bb.count({"x": [1.0, 2.0, 8.0, 9.0], "y": list("aabb")}, "y", features="gaussian"))
    parameters = type(model.parameters[0])
    look_up, lookups = parameters.parts, []
    monkeypatch.setattr(parameters, "parts", lambda *rows: lookups.append(1) or look_up(*rows))
    model.explain({"x": 3.0})
    assert len(lookups) == 1
