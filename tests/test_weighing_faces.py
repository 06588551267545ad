"""Weighed models where people meet them: reports, learning curves, the command line, and what is said of pairs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import banbury as bb
from banbury import cli, errors
from banbury.reading import read
from banbury.weighing import evidence, learning
from banbury.weighing.evidence import CountedEvidence
from test_weighing_bad_input import DATA, LABELS, N, rows


@pytest.fixture(scope="module")
def fitted() -> bb.EvidenceClassifier:
    return bb.EvidenceClassifier().fit(DATA, LABELS)


# Pairs that were looked at --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "cells"), [(5_000, 1 << 16), (5_000, 60), (9, 1 << 16)])
def test_how_many_pairs_were_looked_at_is_said(most: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(N, 5)), rng.integers(0, 3, (N, 2))])
    looked_at, gains = [], CountedEvidence.pair_gains

    def counted(self: CountedEvidence, pairs: Any, *rest: Any) -> Any:
        looked_at.append(len(pairs))
        return gains(self, pairs, *rest)

    monkeypatch.setattr(CountedEvidence, "pair_gains", counted)
    monkeypatch.setattr(evidence, "MOST_PAIR_CELLS", cells)
    for module in (learning, bb.weighing.model):
        monkeypatch.setattr(module, "MOST_PAIRS", most)
    weighing = bb.EvidenceClassifier(correct=False).fit(X, LABELS).weighing_
    assert weighing is not None
    assert weighing._count_pairs() == (looked_at[0], 21)
    said = f"(looked at {looked_at[0]} of 21 pairs)"
    assert (said in str(weighing)) == (looked_at[0] < 21) and (looked_at[0] < 21) == (most == 9 or cells == 60)
    none = bb.EvidenceClassifier(pairs=False, correct=False).fit(X, LABELS).weighing_
    assert none is not None and str(none) == "7 columns" and none._count_pairs() == (0, 21)


def test_what_was_asked_for_is_kept_in_a_file(tmp_path: Path) -> None:
    for pairs, correct in ((True, True), (False, True), (True, False)):
        model = bb.EvidenceClassifier(pairs=pairs, correct=correct).fit(DATA, LABELS).model_
        bb.save(model, tmp_path / "weighed.banbury")
        loaded: Any = bb.load(tmp_path / "weighed.banbury")
        assert loaded.weighing.settings == {"pairs": pairs, "correct": correct}


# Validation -----------------------------------------------------------------------------------------------------------


def test_a_learning_curve_weighs_on_the_rows_of_each_size() -> None:
    curve = bb.learning_curve(DATA, LABELS, weigh=True, sizes=[50, 200], repeats=2)
    plain = bb.learning_curve(DATA, LABELS, sizes=[50, 200], repeats=2, missing="category")
    assert "Learning curve of weighed evidence" in str(curve)
    assert curve.mean_accuracy[1] > 0.8 > plain.mean_accuracy[1]
    alone = bb.learning_curve(DATA, LABELS, weigh={"pairs": False, "correct": False}, sizes=[50, 200], repeats=2)
    assert alone.mean_accuracy[1] < 0.8  # the class is in a pair of columns
    uniform = bb.learning_curve(DATA, LABELS, weigh=True, class_prior="uniform", sizes=[200], repeats=1)
    assert uniform.log_loss[0, 0] != curve.log_loss[0, 1]
    with pytest.raises(errors.BadSetting, match="weigh must be omitted if how or alpha is given"):
        bb.learning_curve(DATA, LABELS, weigh=True, alpha=2.0)


def test_few_rows_are_weighed_in_folds_where_the_estimator_weighs_them() -> None:
    data, labels = rows(60, seed=5)
    auto = bb.cross_validate(bb.EvidenceClassifier(), data, labels, folds=3)
    always = bb.cross_validate(bb.EvidenceClassifier(weigh=True), data, labels, folds=3)
    assert not np.array_equal(auto.posteriors, always.posteriors)
    fold = always.folds == 0
    clf = bb.EvidenceClassifier(weigh=True).fit(data[~fold], labels[~fold])
    np.testing.assert_allclose(clf.predict_proba(data[fold]), always.posteriors[fold], atol=1e-9)


def test_a_report_of_a_weighed_model_is_of_weighed_folds(fitted: bb.EvidenceClassifier) -> None:
    made = bb.report(fitted.model_, DATA, LABELS, folds=3, mistakes=3)
    found, same = made.findings.validation, bb.cross_validate(DATA, LABELS, folds=3, weigh=True)
    np.testing.assert_allclose(found.posteriors, same.posteriors, atol=1e-9)
    assert made.findings.learning_curve is not None and made.findings.learning_curve.name == "weighed evidence"
    for mistake in made.findings.mistakes:
        assert mistake.explanation is not None
        sure = max(mistake.explanation.probability, mistake.explanation.probability_against)
        assert sure == pytest.approx(mistake.probability, abs=1e-9)
    assert any(" with " in e.feature for m in made.findings.mistakes for e in m.explanation.evidence)  # type: ignore[union-attr]
    assert fitted.weighing_ is not None
    for name, weight in fitted.weighing_.worth().items():
        assert f"<th>{name}</th>" in made.html and f"</span>{weight:.2f}</td>" in made.html
    for said in (
        "Weighed evidence",
        "weights were learned again from those rows",
        "<dt>temperature</dt>",
        f"<dd>{fitted.weighing_}</dd>",
    ):
        assert said in made.html
    assert np.exp(fitted.model_.log_prior[0]) != pytest.approx(share := (LABELS == "no").mean(), abs=0.001)
    assert made.html.count(f"</span>{share:.1%}</td>") == 1
    assert "<dt>stale</dt>" not in made.html and "<dt>not weighed</dt>" not in made.html
    assert "Weights of the evidence" not in bb.report(fitted.model_.weighed(None), DATA, LABELS, folds=3).html


def test_a_report_says_that_corrections_speak_beside_weights() -> None:
    scores = np.random.default_rng(0).integers(0, 4, (N, 4))
    data = {name: [f"v{k}" for k in column] for name, column in zip("abcd", scores.T, strict=True)}
    passed = scores.sum(axis=1) > 6
    corrected = bb.weigh(bb.count(data, passed, missing="category"), data, passed, pairs=False)
    assert corrected.weighing is not None and corrected.weighing.weights.strengths  # type: ignore[attr-defined]
    html = bb.report(corrected, data, passed, folds=3, alternatives=False).html
    assert "0: ignored. Corrections are added to it, even where the weight is 0." in html


def test_a_report_says_what_is_stale_and_what_is_left_out() -> None:
    data = DATA.assign(twin=2.0 * DATA.a)
    clf = bb.EvidenceClassifier(correct=False).fit(data, LABELS).forget(data[:5], LABELS[:5])
    html = bb.report(clf.model_, data, LABELS, folds=3).html
    assert "<dt>stale</dt><dd>rows have been learned or forgotten" in html
    assert "<dt>not weighed</dt><dd>twin: another column repeats it</dd>" in html
    assert "<dt>corrections</dt><dd>none (C = 0)</dd>" in html and "Corrections are added" not in html
    given = clf.model_.with_class_prior({"no": 0.2, "yes": 0.8})
    assert bb.report(given, data, LABELS, folds=3).findings.validation.log_loss > 0


# The command line -----------------------------------------------------------------------------------------------------


def test_commands_take_a_weighed_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, part, model, tally = (str(tmp_path / name) for name in ("rows.csv", "part.csv", "m.banbury", "t.banbury"))
    DATA.assign(y=LABELS).to_csv(file, index=False)
    DATA.assign(y=LABELS)[:50].to_csv(part, index=False)

    def said(*words: str, warned: str = "") -> str:
        assert cli.main(list(words)) == 0
        output = capsys.readouterr()
        assert warned in output.err
        return output.out

    said("fit", file, "--target", "y", "--weigh", "--no-cross-validate", "-o", model)
    facts = json.loads(said("show", model, "--json"))["weighing"]
    assert set(facts["weights"]) >= {"a", "b", "word", "a with b"} and facts["stale"] is False
    assert facts["pairs_examined"] == facts["pairs"] == 3
    shown = said("show", model, "--table")
    assert "a with b" in shown and f"P('no' ) = {(LABELS == 'no').mean():.4f}" in shown  # the share, not an intercept
    assert json.loads(said("evaluate", model, file, "--json"))["accuracy"] > 0.85
    assert len(said("predict", model, file, "--csv").splitlines()) == N + 1
    assert "a with b" in said("explain", model, file, "--row", "3", "--table")
    assert "= " in said("show", model, "--informative", "2", "--table")
    report = json.loads(said("report", model, file, "--folds", "3", "-o", str(tmp_path / "r.html"), "--json"))
    weighed = json.loads(said("cross-validate", file, "--target", "y", "--weigh", "--folds", "3", "--json"))
    assert weighed["log_loss"] == pytest.approx(report["log_loss"], abs=1e-9)
    plain = json.loads(said("cross-validate", file, "--target", "y", "--folds", "3", "--plain", "--json"))
    assert weighed["accuracy"] > plain["accuracy"] + 0.2
    curve = json.loads(
        said("learning-curve", file, "--target", "y", "--weigh", "--sizes", "200", "--repeats", "1", "--json")
    )
    assert curve["name"] == "weighed evidence"
    said("tally", "count", part, "--like", model, "-o", tally)
    said("tally", "subtract", model, tally, "-o", model, warned="are kept, but they were learned from other rows")
    assert json.loads(said("show", model, "--json"))["weighing"]["stale"] is True
    said("tally", "estimate", model, "-o", model, warned="are not part of the new model")
    assert "weighing" not in json.loads(said("show", model, "--json"))


def test_a_value_never_seen_is_said_to_be() -> None:
    rng = np.random.default_rng(3)
    rows = {"colour": rng.choice(["red", "blue"], 200).tolist(), "size": rng.normal(size=200).tolist()}
    labels = [colour == "red" for colour in rows["colour"]]
    model = bb.EvidenceClassifier(weigh=True).fit(rows, labels).model_
    for colour, seen in (("red", True), ("green", False)):
        evidence = model.explain({"colour": colour, "size": 0.5}).evidence
        assert {e.feature: e.seen for e in evidence if " with " not in e.feature} == {"colour": seen, "size": True}
    assert all(e.seen for e in model.explain({"colour": None, "size": 0.5}).evidence)
    [batch] = read({"colour": ["red", None, "green"], "size": [0.5, 0.5, None]})
    is_new = model.parameters[0].never_seen(batch)
    assert is_new[:, 0].tolist() == [False, False, True] and not is_new[:, 1:].any()
