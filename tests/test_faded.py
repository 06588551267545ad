"""Forget before you fade: from sums that were rounded nothing can be taken out, and from all others exactly what was added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
from banbury import cli
from banbury.errors import RoundedTally
from banbury.files import to_bytes
from banbury.learner import Learner, ModelSettings
from banbury.service.learner import ServedLearner
from banbury.service.state import ServedState
from banbury.tally.tally import Growing, Part
from hostile import loaded
from test_laws import Case, every_family, law, several

FADE = 1 / 3  # which no decimal number is
REFUSED = "Forget before you fade: keep the unfaded tally, subtract the rows there, and fade a copy"


def made(a: bb.Tally, b: bb.Tally, steps: list[Any]) -> bb.Tally:
    """What some steps make of ``a``: factors, additions, and a file."""
    for step in steps:
        if step == "add":
            a = a + b
        elif step == "add faded":
            a = a + b * FADE
        elif step == "file":
            a = loaded(to_bytes(a))  # type: ignore[assignment]
        else:
            a = a * step
    return a


STEPS = st.lists(st.sampled_from([2, 3, 0.5, 0.1, 0.97, FADE, "add", "add faded", "file"]), max_size=4)


@every_family
@law
@given(data=st.data())
def test_a_tally_gives_back_what_was_added_or_was_rounded_and_refuses(case: Case, data: st.DataObject) -> None:
    first, more = data.draw(several(case, 2))
    tally, other = made(first, more, data.draw(STEPS)), made(more, first, data.draw(STEPS))
    before = tally.digest()
    if tally.rounded or other.rounded:
        assert (tally + other).rounded
        for whole, part in ((tally, other), (tally + other, other), (loaded(to_bytes(tally + other)), other)):
            with pytest.raises(RoundedTally, match=REFUSED):
                whole - part  # type: ignore[operator]
    else:
        assert tally + other - other == tally
        assert loaded(to_bytes(tally + other)) - other == tally  # type: ignore[operator]
    assert tally.digest() == before


@every_family
@law
@given(data=st.data())
def test_a_growing_tally_refuses_alike(case: Case, data: st.DataObject) -> None:
    first, more = data.draw(several(case, 2))
    faded = first * FADE + more
    if not faded.classes:
        return
    growing = Growing.of(faded)
    if not faded.rounded:
        return
    with pytest.raises(RoundedTally, match=REFUSED):
        growing - Part(more, None)  # type: ignore[arg-type]
    assert growing.frozen() == faded and growing.frozen().rounded


WORDS = ["cheap pills now", "lunch at noon", "cheap watches", "noon meeting"]
LABELS = ["spam", "ham", "spam", "ham"]
NUMBERS = np.arange(8.0).reshape(4, 2) % 3
ESTIMATORS: dict[str, tuple[Any, Any, Any]] = {
    "texts": (bb.NaiveBayesClassifier(), WORDS, LABELS),
    "numbers": (bb.NaiveBayesClassifier(), NUMBERS, LABELS),
    "weighed": (bb.EvidenceClassifier(), WORDS * 10, LABELS * 10),
    "sets of labels": (bb.MultiLabelClassifier(), WORDS, [["a"], ["b"], ["a", "b"], []]),
    **{
        name: (getattr(bb, name)(), NUMBERS.astype(int), LABELS)
        for name in ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB")
    },
}


@pytest.mark.parametrize(("clf", "X", "y"), ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_every_estimator_refuses_and_changes_nothing(clf: Any, X: Any, y: Any) -> None:
    clf.fit(X, y)
    faded = clf.tally_ * FADE
    clf._learner = Learner.of(faded, clf._learner.settings, clf.tally_.classes)
    answers = np.asarray(clf.predict_proba(X))
    with pytest.raises(RoundedTally, match=REFUSED):
        clf.forget(X[:1], y[:1])
    assert clf._learner._growing.frozen() == faded
    assert np.array_equal(clf.predict_proba(X), answers)


def test_a_row_is_not_left_out_of_a_faded_model() -> None:
    model = bb.estimate(bb.count(WORDS, LABELS) * FADE)
    with pytest.raises(RoundedTally, match=REFUSED):
        model.explain(WORDS[0], held_out=True, label="spam")
    weather = bb.datasets.play_tennis()
    network = bb.BeliefNetwork.tan(weather, "play") * FADE
    day = {name: column[:1] for name, column in weather.items()}
    with pytest.raises(RoundedTally, match=REFUSED):
        network - network.count_more(day)


def test_the_service_refuses_a_faded_model_and_changes_nothing(tmp_path: Path) -> None:
    faded = bb.count(WORDS, LABELS) * FADE
    for served in (faded, bb.estimate(faded)):
        with pytest.raises(RoundedTally, match=REFUSED):
            ServedState.of(served, tmp_path / "state")
    with ServedState.of(faded) as state:  # without a folder it answers, and learns nothing
        assert state.learner.tally() == faded
    learner = ServedLearner(faded, ModelSettings())
    with pytest.raises(RoundedTally, match=REFUSED):
        learner.forget(learner.part(WORDS[0], "spam"))
    assert learner.tally() == faded


def test_the_command_line_refuses_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = bb.count({"x": ["u", "v", "u"], "y": ["a", "b", "b"]}, "y")
    files = [str(tmp_path / f"{name}.banbury") for name in ("faded", "part", "left")]
    bb.save(tally * FADE, files[0])
    bb.save(tally.count({"x": ["u"], "y": ["a"]}), files[1])
    for first, second in (files[:2], files[1::-1]):
        assert cli.main(["tally", "subtract", first, second, "-o", files[2]]) != 0
        assert REFUSED in " ".join(capsys.readouterr().err.split())
        assert not Path(files[2]).exists()
