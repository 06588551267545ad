"""What a notebook shows of an object, and its frame: every figure of the text, nothing that a page could run."""

from __future__ import annotations

import re
from importlib.util import find_spec as real_find_spec

import pandas
import polars
import pyarrow
import pytest

import banbury as bb
from banbury import notebooks


def results():
    weather, wine = bb.datasets.play_tennis(), bb.datasets.wine()
    model = bb.estimate(bb.count(wine, target="cultivar"))
    evil = {"text": ["<script>alert(1)</script> words here", "some other words here"], "<b>": ["<i>", "b"]}
    return {
        "tally": bb.count(weather, target="play"),
        "tally of labels": bb.count(["a b", "b c"], target=[["x"], ["x", "y"]]),
        "model": model,
        "cross-validation": bb.cross_validate(wine, target="cultivar", folds=3),
        "evaluation": bb.evaluate(model, wine),
        "diagnosis": bb.diagnose(wine, target="cultivar", n=3),
        "suspicious": bb.suspicious(wine, target="cultivar", n=3),
        "next": bb.next_to_label(model, {name: wine[name] for name in wine if name != "cultivar"}, n=3),
        "learning curve": bb.learning_curve(wine, target="cultivar", sizes=[20, 60], repeats=2),
        "network": bb.BeliefNetwork.count(weather, parents={"play": ["wind"]}),
        "tuning": bb.tune(wine, target="cultivar", alpha=[0.1, 1.0, 10.0], how=["mean", "map"]),
        "markup": bb.count(evil, target="<b>"),
    }


@pytest.fixture(scope="module")
def shown():
    return results()


def test_every_result_is_html_of_one_style_and_escapes_what_it_shows(shown):
    for name, each in shown.items():
        page = each._repr_html_()
        assert page.startswith(notebooks.STYLE) and page.count("<table") == page.count("</table>") >= 1, name
        assert "<script" not in page and "http" not in page, name
    assert "&lt;i&gt;" in shown["markup"]._repr_html_() and "<i>" not in shown["markup"]._repr_html_()


def test_tables_have_the_figures_of_the_objects(shown):
    assert re.search(r">no</td><td class=\"number\">5</td><td class=\"value\">35.7%<", shown["tally"]._repr_html_())
    assert "accuracy" in shown["cross-validation"]._repr_html_() and "precision" in shown["evaluation"]._repr_html_()
    assert "play" in shown["network"]._repr_html_() and "wind" in shown["network"]._repr_html_()


def test_frames_have_a_row_for_each_row_of_the_table(shown):
    validation = shown["cross-validation"].to_frame()
    assert isinstance(validation, pandas.DataFrame) and len(validation) == 178
    right = (validation["truth"] == validation["prediction"]).mean()
    assert right == pytest.approx(float(shown["evaluation"].accuracy), abs=0.05)
    assert validation.filter(like="P(").sum(axis=1).to_numpy() == pytest.approx(1.0)
    assert shown["tuning"].to_frame()["log_loss"].is_monotonic_increasing
    assert shown["learning curve"].to_frame()["rows"].tolist() == [20, 60]
    assert shown["suspicious"].to_frame()["row"].tolist() == shown["suspicious"].indices.tolist()
    assert shown["next"].to_frame()["row"].tolist() == shown["next"].indices.tolist()
    assert shown["diagnosis"].to_frame()["bits"].tolist() == [pair.bits for pair in shown["diagnosis"].pairs]


def test_without_pandas_frames_are_polars_and_without_both_arrow(shown, monkeypatch):
    missing = {"pandas"}
    monkeypatch.setattr(notebooks, "find_spec", lambda name: None if name in missing else real_find_spec(name))
    frame = shown["tuning"].to_frame()
    assert isinstance(frame, polars.DataFrame) and frame.height == len(shown["tuning"].settings)
    missing.add("polars")
    assert isinstance(shown["suspicious"].to_frame(), pyarrow.Table)


def test_values_of_several_types_are_texts_where_a_column_has_one():
    assert notebooks.values_of_one_type([1, "a", None]) == ["1", "a", None]
    assert notebooks.values_of_one_type([1, 2.5]) == [1, 2.5]
    assert notebooks.columns_of([{"a": 1}, {"b": 2}]) == {"a": [1, None], "b": [None, 2]}
