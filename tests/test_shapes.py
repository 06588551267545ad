"""bb.plots.shapes: what a model has learned, column by column, in decibans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import banbury as bb
from banbury import errors
from banbury.plots.shape import Shape, shapes_of
from banbury.reports import charts

pytest.importorskip("matplotlib")


def rows(n: int = 600, seed: int = 46) -> dict[str, Any]:
    """Numbers, whole numbers, a category and a category that is often missing, of two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(30 + 8 * y, 6).round(2))
    word = np.where(rng.random(n) < 0.3, None, np.array(["a", "b", "c"])[(y + (rng.random(n) < 0.3)) % 3])
    return {"age": age, "children": rng.poisson(1 + y), "word": word.tolist(), "y": np.array(["no", "yes"])[y].tolist()}


def model_of(kind: str, table: dict[str, Any]) -> Any:
    if kind == "plain":
        return bb.estimate(bb.count(table, "y"))
    return bb.EvidenceClassifier().fit({name: table[name] for name in ("age", "children", "word")}, table["y"]).model_


def models() -> dict[str, Any]:
    return {kind: model_of(kind, rows()) for kind in ("plain", "weighed")}


def read_off(shape: Shape, value: Any) -> float:
    """The evidence of a value, as a reader takes it from the picture."""
    if shape.kind == "numbers":
        if np.isnan(value):
            return float(shape.missing or 0.0)
        assert shape.ends is not None
        return float(
            shape.decibans[np.clip(np.searchsorted(shape.ends, value, side="right") - 1, 0, len(shape.decibans) - 1)]
        )
    text = "missing" if value is None else str(value)
    return float(shape.decibans[shape.names[0].index(text)]) if text in shape.names[0] else 0.0


@pytest.mark.parametrize("kind", ["plain", "weighed"])
def test_the_evidence_of_a_row_can_be_read_off(kind: str) -> None:
    model, table = models()[kind], rows()
    shapes = {shape.feature: shape for shape in shapes_of(model) if shape.kind != "pairs"}
    assert {"age", "children", "word"} <= shapes.keys()
    for k in range(0, 100, 7):
        row = {name: table[name][k] for name in shapes}
        why = model.between("yes", "no").explain(row)
        sign = 1.0 if why.winner == "yes" else -1.0
        for evidence in why.evidence:
            if evidence.feature in shapes:
                read = read_off(shapes[evidence.feature], row[evidence.feature])
                assert read == pytest.approx(sign * evidence.decibans, abs=1e-6 if kind == "weighed" else 1.5)


def test_pictures_end_where_the_numbers_do_and_the_strongest_is_first() -> None:
    for model in models().values():
        shapes = shapes_of(model)
        assert [s.importance for s in shapes] == sorted((s.importance for s in shapes), reverse=True)
        table = rows()
        for shape in shapes:
            if shape.kind == "numbers":
                values = np.asarray(table[shape.feature], dtype=float)
                assert shape.ends is not None
                assert (shape.ends[0], shape.ends[-1]) == (np.nanmin(values), np.nanmax(values))
                assert (np.diff(shape.ends) >= 0).all() and len(shape.ends) == len(shape.decibans) + 1
            if shape.error is not None:
                assert (shape.error > 0).all() and np.isfinite(shape.error).all()
        assert shapes[0].rows.sum() <= 600


@pytest.mark.parametrize("kind", ["plain", pytest.param("weighed", marks=pytest.mark.slow)])
def test_the_band_holds_what_other_rows_would_show(kind: str) -> None:
    samples = [{shape.feature: shape for shape in shapes_of(model_of(kind, rows(seed=seed)))} for seed in range(12)]
    for feature in ("age", "children", "word"):
        covered = []
        for sample in samples:
            shape = sample[feature]
            values = shape.names[0] if shape.ends is None else (shape.ends[1:] + shape.ends[:-1]) / 2.0
            expected = np.mean([[read_off(other[feature], value) for value in values] for other in samples], axis=0)
            covered.append(shape.rows @ (np.abs(expected - shape.decibans) <= shape.error) / shape.rows.sum())
        assert np.mean(covered) > 0.8, feature


def test_whole_numbers_are_marked_alone() -> None:
    shape = Shape("class", "numbers", np.zeros(3), np.ones(3), ends=np.array([1.0, 1.5, 2.5, 3.0]))
    assert [text for _, text in shape.axis_positions()[1]] == ["1", "2", "3"]


def test_a_class_of_several_is_drawn_against_all_others() -> None:
    iris = {"size": [1.0, 2.0, 3.0] * 20, "colour": ["red", "blue", "red", "green", "blue", "red"] * 10}
    model = bb.estimate(bb.count(iris, ["a", "b", "c"] * 20))
    (shape,) = [each for each in shapes_of(model, "a") if each.feature == "colour"]
    counts = {"red": (10, 20), "green": (10, 0), "blue": (0, 20)}  # of class a and of the others, by hand
    n = {"a": 20, "rest": 40}
    expected = {
        value: 10 * np.log10((own + 1) / (n["a"] + 3) / ((others + 2) / (n["rest"] + 6)))
        for value, (own, others) in counts.items()
    }
    assert dict(zip(shape.names[0], shape.decibans.tolist(), strict=True)) == pytest.approx(expected)
    assert shape.decibans.tolist() == sorted(shape.decibans.tolist(), reverse=True)
    one_other = {s.feature: s for s in shapes_of(model, "a", "b")}
    assert sorted(one_other["colour"].decibans) != sorted(shape.decibans)
    with pytest.raises(errors.BadSetting, match="against"):
        shapes_of(model, "a", "a")


def test_shapes_are_drawn_for_every_kind(tmp_path: Any) -> None:
    drawn = bb.plots.shapes(models()["weighed"], n=4).save(tmp_path / "shapes.png")
    assert len(drawn.ax_) == min(4, len(drawn.shapes)) and (tmp_path / "shapes.png").stat().st_size > 10_000
    texts = ["cheap pills now", "cheap watches", "lunch at noon", "see you at noon"] * 5
    spam = bb.plots.shapes(bb.estimate(bb.count(texts, target=["spam", "spam", "ham", "ham"] * 5)), "spam")
    (words,) = spam.shapes
    assert (
        words.kind == "words"
        and words.names[0][0] in "cheap pills watches now"
        and words.names[0][-1] in "lunch noon see you at"
    )
    with pytest.raises(errors.BadSetting, match="ax"):
        spam.plot(ax=object())


def test_a_report_has_a_picture_for_every_column() -> None:
    table = rows()
    model = bb.estimate(bb.count(table, "y"))
    html = bb.report(model, table, target="y", alternatives=False).html
    section = html.partition('<section id="shapes">')[2].partition("</section>")[0]
    assert section.count("<svg") == 3 and "evidence in decibans" in section


def test_the_pictures_of_a_report_are_small() -> None:
    """Thirteen columns of a hundred stretches each for three classes, with what a pointer is told of them."""
    from sklearn.datasets import load_wine

    wine = load_wine()
    table = dict(zip(wine.feature_names, wine.data.T, strict=True))
    target = wine.target_names[wine.target]
    report = bb.report(bb.EvidenceClassifier().fit(table, target).model_, table, target, alternatives=False)
    assert len(report.html.encode()) < 400_000
    assert report.html.count("<svg") > 39 and "decibans</title>" in report.html


def test_a_staircase_is_the_path_of_its_stretches() -> None:
    chart = charts.Chart("evidence", charts.linear_axis("", 0.0, 1.0, str), charts.linear_axis("", 0.0, 1.0, str))
    chart.draw_staircase([0.0, 0.25, 0.5, 1.0], [0.0, 1.0, 1.0], "one")
    width = charts.CHART_WIDTH - charts.LEFT_MARGIN - charts.RIGHT_MARGIN
    bottom, top = charts.CHART_HEIGHT - charts.BOTTOM_MARGIN, charts.TOP_MARGIN
    quarter = charts.LEFT_MARGIN + width / 4
    path = f'd="M{charts.LEFT_MARGIN} {bottom}H{quarter:g}V{top}H{charts.LEFT_MARGIN + width}"'
    assert path in str(chart)
    chart.add_tooltips([0.0, 0.01, 0.25, 1.0], lambda first, last: f"{first} to {last}")
    assert "<title>0 to 2</title>" in str(chart) and "<title>2 to 3</title>" in str(chart)  # the narrow one is joined
    chart.draw_strip([0.0, 0.25, 0.5, 1.0], [0.0, 0.5, 0.5])
    assert str(chart).count('class="strip"') == 1  # nothing where there are no rows, and one path of each shade


def test_lines_are_seen_on_a_dark_background() -> None:
    import matplotlib.pyplot as plt

    model = model_of("plain", rows())
    with plt.style.context("dark_background"):
        for picture in (
            bb.plots.ShapesDisplay.from_model(model, "yes"),
            bb.plots.NomogramDisplay.from_model(model, "yes"),
        ):
            for ax in picture.figure_.axes:
                colours = [line.get_color() for line in ax.lines]
                colours += [colour for drawn in ax.collections for colour in drawn.get_facecolor()[:, :3].tolist()]
                assert not [colour for colour in colours if tuple(colour) == (0.0, 0.0, 0.0) or colour == "black"]


def test_words_are_shown_for_both_classes_whichever_they_are() -> None:
    texts = ["apple", "apple tart", "bread", "bread roll", "cheese", "cheese board"]
    model = bb.estimate(bb.count(texts * 3, ["a", "a", "b", "b", "c", "c"] * 3))
    for against in ("a", "b"):
        (words,) = shapes_of(model, "c", against)
        assert {"cheese", {"a": "apple", "b": "bread"}[against]} <= set(words.names[0])
