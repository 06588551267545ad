"""Wrong labels: what bb.suspicious finds is what the slow twin finds, whatever the order of the rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banbury as bb
import naive
from banbury import errors
from test_laws import law

WORDS = {"spam": "cheap pills now watches offer win".split(), "ham": "lunch noon see you fine home".split()}


def mail(n: int = 60, wrong: tuple[int, ...] = (3, 17, 40), seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts of two kinds, and labels of which some are wrong."""
    rng = np.random.default_rng(seed)
    kinds = ["spam" if i % 3 == 0 else "ham" for i in range(n)]
    texts = [" ".join(rng.choice(WORDS[kind] + ["the", "and"], 6)) for kind in kinds]
    other = {"spam": "ham", "ham": "spam"}
    return texts, [other[kind] if i in wrong else kind for i, kind in enumerate(kinds)]


def table(n: int = 150, wrong: tuple[int, ...] = (5, 60, 99)) -> tuple[pd.DataFrame, list[str]]:
    """Two columns of values, one of texts, one of numbers, three classes."""
    rng = np.random.default_rng(1)
    kinds = rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            "colour": np.array(["red", "green", "blue"])[(kinds + (rng.random(n) < 0.1)) % 3],
            "shape": np.array(["round", "square", "flat"])[(kinds + (rng.random(n) < 0.1)) % 3],
            "size": kinds * 3.0 + rng.normal(size=n),
            "note": [f"{w} thing of some kind {i % 7}" for i, w in enumerate(np.array(["apple", "box", "sky"])[kinds])],
        }
    )
    labels = kinds.copy()
    labels[list(wrong)] = (labels[list(wrong)] + 1) % 3
    return frame, [f"c{label}" for label in labels]


# What is found --------------------------------------------------------------------------------------------------------


@settings(law, max_examples=15)
@given(st.data())
def test_every_row_is_compared_with_what_the_twin_says_without_it(data: st.DataObject) -> None:
    cells = st.lists(st.sampled_from("abc"), min_size=2, max_size=2)
    rows = data.draw(st.lists(cells, min_size=4, max_size=12))
    labels = data.draw(st.lists(st.sampled_from("xyz"), min_size=len(rows), max_size=len(rows)))
    columns = {"p": [a for a, _ in rows], "q": [b for _, b in rows]}
    if len(set(labels)) < 2 or all(labels.count(label) == 1 for label in labels):
        with pytest.raises(errors.BadSetting):
            bb.suspicious(columns, labels, features="categorical")
        return
    found = bb.suspicious(columns, labels, n=len(rows), by="self_confidence", features="categorical")
    schema = bb.count(columns, labels, features="categorical").schema
    table = [{"p": a, "q": b, "label": label} for (a, b), label in zip(rows, labels, strict=True)]
    expected = naive.suspicious(schema, table, "label", 0.1)
    assert len(found.rows) == len(expected.own)
    for row in found.rows:
        assert row.self_confidence == pytest.approx(expected.own[row.row], abs=1e-9)
        assert row.probability == pytest.approx(expected.other[row.row], abs=1e-9)
    confidences = [round(row.self_confidence, 8) for row in found.rows]
    assert confidences == sorted(confidences)


def test_the_planted_errors_come_first_with_their_right_labels() -> None:
    texts, labels = mail()
    found = bb.suspicious(texts, labels, n=3)
    assert sorted(found.indices.tolist()) == [3, 17, 40]
    assert all(row.suggested != row.label == labels[row.row] for row in found.rows)
    assert found.estimated_wrong == pytest.approx(3, abs=1)
    frame, kinds = table()
    for chosen in ({}, {"by": "self_confidence"}, {"groups": np.arange(len(frame)) // 2}):
        found = bb.suspicious(frame, kinds, n=3, **chosen)
        assert sorted(found.indices.tolist()) == [5, 60, 99], chosen


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1])
def test_rows_that_are_hard_to_tell_apart_are_not_taken_for_wrong_labels(share: float) -> None:
    """The classes overlap, so that one row in eight is answered wrongly; only the labels that were changed are wrong."""
    rng = np.random.default_rng(46)
    truth = rng.integers(2, size=4000)
    columns = {f"x{j}": rng.normal(truth * 1.3, 1.0) for j in range(3)}
    changed = rng.random(4000) < share
    found = bb.suspicious(columns, np.where(changed, 1 - truth, truth).tolist(), features="gaussian")
    assert found.estimated_wrong == pytest.approx(changed.sum(), abs=30 + 0.2 * changed.sum())
    margins = [row.margin for row in found.rows]
    assert margins == sorted(margins)


# Laws -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chosen", [{}, {"by": "self_confidence"}, {"groups": "size"}, {"weigh": {"pairs": False, "correct": False}}]
)
def test_neither_the_order_of_rows_nor_threads_change_what_is_found(chosen: dict[str, Any]) -> None:
    frame, kinds = table(120)
    frame = frame.assign(label=kinds)
    found = bb.suspicious(frame, "label", n=12, threads=1, **chosen)
    order = np.random.default_rng(3).permutation(len(frame))
    again = bb.suspicious(frame.iloc[order], "label", n=12, threads=2, **chosen)
    assert order[again.indices].tolist() == found.indices.tolist()
    for a, b in zip(found.rows, again.rows, strict=True):
        assert (a.label, a.suggested) == (b.label, b.suggested)
        assert a.self_confidence == pytest.approx(b.self_confidence, abs=1e-9)
    assert found.noise == pytest.approx(again.noise)
    row, why = found.rows[0], found.explain(0)
    assert {why.winner, why.against} == {row.label, row.suggested}


def test_a_weight_of_two_is_two_rows_and_a_weight_of_zero_none() -> None:
    texts, labels = mail(30, (3, 17))
    weights = np.ones(30)
    weights[[4, 9]] = 0.0
    kept = [i for i in range(30) if weights[i]]
    found = bb.suspicious(texts, labels, n=30, weights=weights)
    fewer = bb.suspicious([texts[i] for i in kept], [labels[i] for i in kept], n=30)
    assert found.indices.tolist() == [kept[i] for i in fewer.indices]
    twice = bb.suspicious(texts, labels, n=2, weights=np.full(30, 2.0))
    assert sorted(twice.indices.tolist()) == [3, 17]
    row, why = twice.rows[0], twice.explanations[0]  # both of its copies are left out
    assert why.probability_against == pytest.approx(row.self_confidence, abs=1e-9)


def test_rows_without_a_label_are_skipped_and_those_alone_left_aside() -> None:
    texts, labels = mail(30, (3,))
    some: list[Any] = [None if i in (1, 2) else label for i, label in enumerate(labels)]
    some[5] = "once"
    found = bb.suspicious(texts, some, n=30)
    assert found.skipped == 2
    assert found.not_compared == 1
    assert found.n_rows == 27
    assert not {1, 2, 5} & set(found.indices.tolist())
    assert found.rows[0].row == 3
    assert "2 rows without a label skipped" in str(found)
    assert "1 row not judged, because no other row has the same label" in str(found)


def test_rows_of_a_group_do_not_speak_for_each_other() -> None:
    """Copies of a wrongly labelled row vouch for each other, unless they are known to belong together."""
    texts, labels = mail(60, ())
    copies = [*texts, *["lunch noon home copy copy copy"] * 4]
    given_labels = [*labels, *["spam"] * 4]
    groups = [*range(60), *[60] * 4]
    alone = bb.suspicious(copies, given_labels, n=4)
    together = bb.suspicious(copies, given_labels, n=4, groups=groups)
    assert sorted(together.indices.tolist()) == [60, 61, 62, 63]
    assert alone.rows[0].self_confidence > together.rows[0].self_confidence


# Explanations and forms -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [{}, {"groups": np.arange(150) // 3}])
def test_the_explanation_weighs_the_two_labels_with_the_row_left_out(chosen: dict[str, Any]) -> None:
    frame, kinds = table()
    found = bb.suspicious(frame, kinds, n=5, **chosen)
    for row, why in zip(found.rows, found.explanations, strict=True):
        assert {why.winner, why.against} == {row.label, row.suggested}
        shares = {why.winner: why.probability, why.against: why.probability_against}
        assert shares[row.label] == pytest.approx(row.self_confidence, abs=1e-9)
        assert shares[row.suggested] == pytest.approx(row.probability, abs=1e-9)
    assert found.explain(2).to_dict() == found.explanations[2].to_dict()
    with pytest.raises(errors.BadSetting, match="k must be a whole number from 0 to 4"):
        found.explain(5)


def test_as_json_and_as_text() -> None:
    texts, labels = mail()
    found = bb.suspicious(texts, labels, n=3)
    told = json.loads(json.dumps(found.to_dict()))
    assert [row["row"] for row in told["rows"]] == found.indices.tolist()
    assert told["rows"][0]["explanation"]["held_out"] is True
    assert "explanation" not in found.to_dict(explanations=False)["rows"][0]
    assert [(pair["label"], pair["suggested"]) for pair in told["pairs"]] == [("spam", "ham"), ("ham", "spam")]
    text = str(found)
    assert text.startswith("About 3 of 60 labels seem wrong, by leaving out one row at a time")
    assert "about 2 labelled 'spam' look like 'ham'\n  about 1 labelled 'ham' looks like 'spam'" in text


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chosen, message",
    [
        ({"n": 0}, "n must be a whole number of at least 1"),
        ({"n": 2.5}, "n must be a whole number of at least 1"),
        ({"by": "doubt"}, "by must be one of 'margin', 'self_confidence'"),
        ({"alpha": -1}, "alpha"),
        ({"weigh": "yes"}, "weigh must be True, False, or settings"),
        ({"weigh": {"pair": False}}, "a setting of weigh must be one of"),
        ({"target": None}, "target must be"),
        ({"target": ["a"] * 60}, "at least two classes"),
        ({"target": ["a"] * 59}, "60 rows but 59 labels"),
        ({"target": [None] * 60}, "is missing in all 60 rows"),
        ({"target": [["a", "b"]] * 60}, "sets of labels"),
        ({"groups": [1] * 60}, "at least two different groups"),
        ({"groups": [1] * 7}, "60 rows but 7 groups"),
        ({"target": [str(i) for i in range(60)]}, "no class has two rows"),
    ],
)
def test_bad_input_is_named(chosen: dict[str, Any], message: str) -> None:
    texts, labels = mail()
    with pytest.raises(errors.BanburyError, match=message):
        bb.suspicious(texts, **({"target": labels} | chosen))
