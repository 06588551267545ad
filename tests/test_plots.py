"""Pictures: every one is drawn, says what it shows, and its numbers are the model's own."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import combinations, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator
from sklearn.datasets import load_iris

import banbury as bb
from banbury import plots
from banbury.errors import BadFile, BadSetting, BanburyError, EmptyData, MissingLibrary, UnknownClass, UnknownColumn
from banbury.labels import LabelEvaluation
from banbury.plots.density import level_inside
from banbury.plots.display import COLOURS, Display
from banbury.plots.layers import along
from banbury.plots.likelihood import RowsPerBin, explain_agreement
from banbury.plots.nomogram import Scale
from banbury.quality.calibration import Temperature, calibrate, reliability
from test_labels import made
from test_networks import alarm

matplotlib = pytest.importorskip("matplotlib")
pyplot = import_module("matplotlib.pyplot")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
LENGTH, WIDTH = "petal length (cm)", "petal width (cm)"
PAIR = [LENGTH, WIDTH]
SEPALS = ["sepal length (cm)", "sepal width (cm)"]
ROW = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
NUMERIC = [bb.Gaussian(), bb.Gaussian("shared"), bb.Histogram(), bb.KernelDensity(), bb.KernelDensity("box")]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def iris() -> dict[str, Any]:
    flowers = load_iris()
    columns = {name: flowers.data[:, j] for j, name in enumerate(flowers.feature_names)}
    return {**columns, "species": flowers.target_names[flowers.target]}


def measured() -> dict[str, Any]:
    return {name: column for name, column in iris().items() if name != "species"}


def blobs(n: int = 3) -> bb.Mixture:
    return bb.Mixture(n, starts=2).fit(measured())


def iris_model(**settings: Any) -> bb.Model:
    return bb.estimate(bb.count(iris(), target="species", **settings))


def tennis(**settings: Any) -> bb.Model:
    return bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"), **settings)


def one_column(values: Any, labels: Any, family: Any = "auto", **settings: Any) -> bb.Model:
    return bb.estimate(bb.count({"x": values}, target=labels, features=family), **settings)


def visits(model: bool = True) -> Any:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(400) < 0.4, "often", "seldom")
    return rng.poisson(np.where(labels == "often", 6, 2)), labels


def kernels() -> bb.Model:
    return one_column(iris()[WIDTH], ["iris"] * 150, bb.KernelDensity())


def poisson() -> Display:
    counts, labels = visits()
    return plots.LikelihoodDisplay.from_model(one_column(counts, labels, "poisson"), "x", {"x": counts}, labels)


def groups(n: int) -> list[str]:
    return [f"a.rather.long.name.of.a.group.{i}" for i in range(n)]


EVERY: dict[str, Callable[[], Display]] = {
    "densities": lambda: plots.LikelihoodDisplay.from_model(iris_model(), LENGTH, iris()),
    "densities alone": lambda: plots.LikelihoodDisplay.from_model(iris_model(), LENGTH, prior=True),
    "kernels": lambda: plots.LikelihoodDisplay.from_model(
        iris_model(features="kernel_density"), WIDTH, iris(), prior=True
    ),
    "bins": lambda: plots.LikelihoodDisplay.from_model(iris_model(features="histogram"), WIDTH, iris()),
    "counts": poisson,
    "bars": lambda: plots.LikelihoodDisplay.from_model(tennis(), "outlook"),
    "flags": lambda: plots.LikelihoodDisplay.from_model(one_column([True, False, True], list("aab")), "x"),
    "regions": lambda: plots.DecisionBoundaryDisplay.from_model(iris_model(), PAIR, iris(), steps=60),
    "regions alone": lambda: plots.DecisionBoundaryDisplay.from_model(iris_model(), PAIR, steps=60),
    "difference": lambda: plots.DecisionBoundaryDisplay.from_model(
        iris_model(), PAIR, iris(), difference=["virginica", "versicolor"], fixed={"sepal width (cm)": 3.0}, steps=60
    ),
    "evidence": lambda: plots.EvidenceDisplay.from_model(tennis(), ROW),
    "words": lambda: plots.EvidenceDisplay.from_model(
        bb.estimate(bb.count(["cheap pills now", "lunch at noon", "pills for lunch"], ["spam", "ham", "ham"])),
        "cheap cheap lunch",
        n=1,
    ),
    "nomogram": lambda: plots.NomogramDisplay.from_model(tennis(), "yes"),
    "nomogram of a row": lambda: plots.NomogramDisplay.from_model(tennis(), "yes", row=dict(ROW, wind=None)),
    "nomogram of numbers": lambda: plots.NomogramDisplay.from_model(
        iris_model(), "virginica", "versicolor", data=iris(), row=dict.fromkeys(iris(), 2.0) | {"species": None}, n=3
    ),
    "confusion": lambda: plots.ConfusionMatrixDisplay.from_cross_validation(bb.cross_validate(iris(), "species")),
    "confusion of twenty": lambda: plots.ConfusionMatrixDisplay.from_predictions(
        groups(20) * 2, groups(20) + groups(20)[::-1], values="shares"
    ),
    "labels": lambda: plots.LabelsDisplay.from_evaluation(sixty_labels()),
    "learning curve": lambda: plots.LearningCurveDisplay.from_learning_curve(
        bb.learning_curve(iris(), "species", sizes=[10, 90], repeats=2, peer="logistic_regression")
    ),
    "calibration": lambda: plots.CalibrationDisplay.from_model(calibrated(), iris()),
    "calibration out of fold": lambda: plots.CalibrationDisplay.from_cross_validation(
        bb.cross_validate(iris(), "species")
    ),
    "bandwidths": lambda: plots.BandwidthDisplay.from_model(kernels(), "x"),
    "convergence": lambda: plots.ConvergenceDisplay.from_estimator(
        bb.Mixture(2, starts=1).fit(np.arange(20.0)[:, None] ** 2)
    ),
    "density": lambda: plots.DensityDisplay.from_density(bb.Density().fit(measured()), PAIR, measured(), steps=40),
    "mixture": lambda: plots.DensityDisplay.from_density(blobs(), PAIR, measured(), steps=40),
    "posterior": lambda: plots.PosteriorDisplay.from_hypotheses(sports(), bb.datasets.enjoy_sport(), "play"),
    "tree": lambda: plots.NetworkDisplay.from_network(
        bb.BeliefNetwork.tan(bb.datasets.play_tennis(), target="play", level=None)
    ),
    "network": lambda: plots.NetworkDisplay.from_network(
        bb.BeliefNetwork.count(
            bb.datasets.play_tennis(), {"play": ["outlook", "wind", "humidity"], "humidity": ["outlook"]}
        )
    ),
    "evidence of long names": lambda: plots.EvidenceDisplay.from_model(long_names(), LONG_ROW),
    "compared evidence of long names": lambda: plots.ComparedEvidenceDisplay.from_explanations(
        {
            "as the rows of the former year have it": long_names().explain(LONG_ROW, against=LONG_CLASSES[1]),
            "as those of this year": long_names().explain(LONG_ROW, against=LONG_CLASSES[1]),
        }
    ),
    "nomogram of long names": lambda: plots.NomogramDisplay.from_model(
        long_names(), LONG_CLASSES[0], against=LONG_CLASSES[1], row=LONG_ROW
    ),
}


LONG_CLASSES = [f"{word} under circumstances of any kind" for word in ("acceptable", "refused", "doubtful")]
LONG_COLUMN = "what is paid for it, in classes of prices"
LONG_ROW = {LONG_COLUMN: "much more than anybody would like to pay"}


def long_names() -> bb.Model:
    values = [LONG_ROW[LONG_COLUMN], "little"] * 12
    return bb.estimate(bb.count({LONG_COLUMN: values}, [LONG_CLASSES[k % 5 % 3] for k in range(24)]))


def sixty_labels() -> LabelEvaluation:
    """Ever rarer ones; one that no row has, and nine that one row has and none is given."""
    rng = np.random.default_rng(0)
    truth = rng.random((400, 60)) < 1.0 / (1 + np.arange(60))
    truth[:, 50:] = False
    truth[0, 51:] = True
    found = truth ^ (rng.random(truth.shape) < 0.02)
    found[:, 51:] = False
    labels = tuple(f"topic-{k}" for k in range(60))
    return LabelEvaluation(labels, np.arange(400), truth, found, found.astype(float))


def sports() -> bb.Hypotheses:
    return bb.conjunctions(bb.datasets.enjoy_sport(), "play", labels=["no", "yes"])


def calibrated(method: Any = "temperature", **settings: Any) -> bb.Model:
    found = bb.cross_validate(iris(), "species", folds=5)
    honest = calibrate(method, np.log(np.maximum(found.posteriors, 1e-300)), found.truth)
    return iris_model(**settings).calibrated(honest)


def pixels(shown: Display) -> np.ndarray:
    shown.figure_.canvas.draw()
    return np.asarray(shown.figure_.canvas.buffer_rgba())[:, :, :3] / 255


def nearest(picture: np.ndarray, colour: str) -> float:
    """How far the colour is from the pixel that is most like it."""
    return float(np.abs(picture - np.array(matplotlib.colors.to_rgb(colour))).max(axis=2).min())


# Every picture


@pytest.fixture(scope="module", params=EVERY)
def shown(request: pytest.FixtureRequest) -> Display:
    """Each picture in turn, drawn once."""
    return EVERY[request.param]()


def test_a_picture_is_drawn_and_says_what_it_shows(shown: Display) -> None:
    axes = np.atleast_1d(shown.ax_)
    for ax in axes:
        assert ax.figure is shown.figure_
        assert ax.get_title(loc="left")
        assert ax.get_xlabel()
    picture = pixels(shown)
    drawn = (picture < 0.98).any(axis=2)
    assert 0.01 < drawn.mean() < 0.99
    assert drawn[len(drawn) // 4 : -len(drawn) // 4].mean() > 0.01  # the middle too, not the frame alone
    assert len(np.unique(picture @ [1.0, 1e3, 1e6])) > 20  # colours


def test_no_word_is_cut_off(shown: Display) -> None:
    shown.figure_.canvas.draw()
    box = shown.figure_.bbox
    for ax in np.atleast_1d(shown.ax_):
        legend = ax.get_legend()
        words = [ax.xaxis.label, ax.yaxis.label, *ax.texts, *(legend.get_texts() if legend else [])]
        words += [ax.title, ax._left_title]
        for each in words:
            found = each.get_window_extent()
            if each.get_text():
                assert found.x0 >= box.x0 - 1 and found.x1 <= box.x1 + 1, each.get_text()
                assert found.y0 >= box.y0 - 1 and found.y1 <= box.y1 + 1, each.get_text()


def test_a_legend_hides_nothing(shown: Display) -> None:
    shown.figure_.canvas.draw()
    for ax in np.atleast_1d(shown.ax_):
        if (legend := ax.get_legend()) is not None:
            assert legend.get_window_extent().x0 >= ax.get_window_extent().x1 - 1  # a pixel, for rounding


def test_a_picture_is_saved_as_png_and_as_svg(shown: Display, tmp_path: Path) -> None:
    assert shown.save(tmp_path / "picture.png") is shown
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    shown.save(str(tmp_path / "picture.svg"))
    assert ElementTree.parse(tmp_path / "picture.svg").getroot().tag.endswith("svg")


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        EVERY["bars"]().save(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


ONE_OF_EACH = ["densities alone", "regions alone", "evidence", "nomogram", "confusion", "calibration", "bandwidths"]


@pytest.mark.parametrize("name", ONE_OF_EACH[:-1])
def test_a_picture_is_drawn_on_the_axes_given(name: str) -> None:
    ax = pyplot.subplots()[1]
    shown = EVERY[name]()
    assert shown.plot(ax) is shown
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure


def test_two_parts_are_drawn_on_two_axes() -> None:
    pair = pyplot.subplots(1, 2)[1]
    shown = plots.BandwidthDisplay.from_model(kernels(), "x", ax=pair)
    assert list(shown.ax_) == list(pair)
    with pytest.raises(BadSetting, match="a pair of axes"):
        shown.plot(pair[0])


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_without_matplotlib_the_error_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'banbury\[plots\]'"):
        EVERY[name]()


def test_the_settings_of_matplotlib_stay_as_they_were() -> None:
    before = dict(matplotlib.rcParams)
    EVERY["bars"]().figure_.canvas.draw()
    assert dict(matplotlib.rcParams) == before


def test_pictures_are_imported_when_they_are_asked_for() -> None:
    code = (
        "import sys, banbury as bb; a = 'banbury.plots' in sys.modules; bb.plots.EvidenceDisplay; "
        "print(a, 'banbury.plots' in sys.modules, 'matplotlib' in sys.modules, 'plots' in dir(bb))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert answer.stdout.split() == ["False", "True", "False", "True"]


def test_only_png_and_svg_are_written(tmp_path: Path) -> None:
    shown = EVERY["bars"]()
    with pytest.raises(BadSetting, match=r"one of '.png', '.svg'. Got '.gif'"):
        shown.save(tmp_path / "picture.gif")
    with pytest.raises(BadFile, match="cannot write"):
        shown.save(tmp_path / "no" / "such" / "folder.png")


def test_names_that_matplotlib_would_read_as_its_own_are_written_as_they_are() -> None:
    labels = ["$a_1$ and $", "_hidden", "two\nlines", "ordinary", "a" * 60, "a" * 61]
    table = {"$x^2$": np.arange(12.0), "_y": list("uvwuvwuvwuvw"), "c": labels * 2}
    model = bb.estimate(bb.count(table, "c"))
    for feature in ("$x^2$", "_y"):
        shown = plots.LikelihoodDisplay.from_model(model, feature)
        texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
        assert len(texts) == 6 and len(set(texts)) >= 5
        assert any("hidden" in text for text in texts)
        assert pixels(shown).min() < 0.5
    row = {"$x^2$": 1.0, "_y": "$$"}
    plots.EvidenceDisplay.from_model(model, row).figure_.canvas.draw()
    plots.NomogramDisplay.from_model(model, labels[0], labels[1], row=row).figure_.canvas.draw()
    plots.ConfusionMatrixDisplay.from_predictions(labels, labels).figure_.canvas.draw()


def test_curves_agree_with_the_histogram_or_the_picture_says_why_not() -> None:
    """Where a weighed column's classes differ by chance alone, the curves coincide and the histograms do not."""
    rng = np.random.default_rng(0)
    n = 800
    x = np.round(rng.normal(30.0, 9.0, n))
    labels = rng.integers(0, 2, n)
    for shift, is_explained in ((0.0, True), (12.0, False)):
        rows = {"x": x + shift * labels, "z": rng.normal(size=n), "y": np.array(["no", "yes"])[labels]}
        model = bb.weigh(bb.estimate(bb.count(rows, target="y")), rows)
        shown = plots.LikelihoodDisplay.from_model(model, "x", rows)
        assert (shown.note is not None) == is_explained
        assert ("treated as chance" in shown.ax_.get_xlabel()) == is_explained
        assert plots.LikelihoodDisplay.from_model(model, "x").note is None


def test_the_difference_of_curves_is_that_of_their_areas() -> None:
    edges = np.array([0.0, 1.0, 3.0])
    histogram = RowsPerBin(edges, np.array([[1.0, 0.0], [0.0, 0.5]]))  # no row in common
    values = np.linspace(0.0, 3.0, 301)
    alike = np.full((301, 2), 1 / 3)
    assert "by up to 100% of their rows, the curves by 0%" in str(explain_agreement(histogram, values, alike))
    apart = np.stack([values <= 1.0, values > 1.0], axis=1) / [1.0, 2.0]
    assert explain_agreement(histogram, values, apart) is None


def test_classes_are_told_apart_by_colour_and_beyond_eight_by_the_line_too() -> None:
    labels = np.repeat(np.arange(20), 3)
    shown = plots.LikelihoodDisplay.from_model(one_column(labels + np.tile([0.0, 0.3, 0.5], 20), labels), "x")
    lines = shown.ax_.get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 20
    assert len({line.get_color() for line in lines[:8]}) == 8


# Likelihoods


@pytest.mark.parametrize("family", [*NUMERIC, bb.Poisson()], ids=str)
@pytest.mark.parametrize("prior", [False, True])
def test_densities_are_the_models_own(family: Any, prior: bool) -> None:
    values = np.array([1, 2, 3, 4, 5, 6, 2, 2, 9, 4] * 3)
    model = one_column(values, list("aabbbaabba") * 3, {"x": family})
    shown = plots.LikelihoodDisplay.from_model(model, "x", prior=prior)
    for k in (0, len(shown.values) // 3, len(shown.values) - 1):
        expected = model.likelihood("x", float(shown.values[k]))
        scale = np.exp(model.log_prior) if prior else 1.0
        np.testing.assert_allclose(shown.likelihood[k], np.array(list(expected.values())) * scale, rtol=1e-12)
    drawn = shown.ax_.get_lines()[1]
    np.testing.assert_array_equal(drawn.get_ydata(), shown.likelihood[:, 1])
    assert shown.classes == ("a", "b")


def test_a_histogram_has_the_area_of_its_class() -> None:
    flowers, model = iris(), iris_model()
    for prior, area in ((False, 1.0), (True, 1 / 3)):
        shown = plots.LikelihoodDisplay.from_model(model, LENGTH, flowers, prior=prior)
        assert shown.histogram is not None
        edges, density = shown.histogram
        np.testing.assert_allclose(np.diff(edges) @ density, area)
        setosa = flowers[LENGTH][flowers["species"] == "setosa"]
        np.testing.assert_allclose(density[:, 0] / area, np.histogram(setosa, edges, density=True)[0])


def test_whole_numbers_have_whole_bins() -> None:
    counts, labels = visits()
    model = one_column(counts, labels, "poisson")
    shown = plots.LikelihoodDisplay.from_model(model, "x", {"x": counts}, labels)
    assert shown.histogram is not None
    assert set(np.diff(shown.histogram.edges)) == {1.0}
    assert shown.histogram.edges[0] == counts.min() - 0.5
    assert (shown.values == np.round(shown.values)).all()


def test_bins_are_as_many_as_asked_for() -> None:
    for bins, edges in ((7, 8), ([0.0, 2.0, 9.0], 3)):
        shown = plots.LikelihoodDisplay.from_model(iris_model(), LENGTH, iris(), bins=bins)
        assert shown.histogram is not None
        assert len(shown.histogram.edges) == edges
    with pytest.raises(BadSetting, match="bins must be"):
        plots.LikelihoodDisplay.from_model(iris_model(), LENGTH, iris(), bins="many")


def test_missing_values_and_labels_have_no_place_in_a_histogram() -> None:
    table = {"x": [1.0, np.nan, 2.0, 3.0, 5.0], "y": ["a", "a", "b", None, "b"]}
    shown = plots.LikelihoodDisplay.from_model(bb.estimate(bb.count(table, "y")), "x", table, bins=4)
    assert shown.histogram is not None
    np.testing.assert_allclose(shown.histogram.density, [[1.0, 0.0], [0.0, 0.5], [0.0, 0.0], [0.0, 0.5]])


@pytest.mark.parametrize(
    "values, family, called",
    [
        (["u", "v", "u", "w"], bb.Categorical(), ["u", "v", "w"]),
        ([1, 2, 1, 7], bb.Categorical(), ["1", "2", "7"]),
        (["u", None, "u", "w"], bb.Categorical(missing="category"), ["u", "w", "missing"]),
        ([True, False, True, True], bb.Bernoulli(), ["no", "yes"]),
        ([0, 1, 1, 0], bb.Bernoulli(), ["no", "yes"]),
        ([1.0, 2.5, 4.0, 9.0], bb.Bernoulli(threshold=2.5), ["at most 2.5", "above 2.5"]),
        (["y", "n", "n", "y"], bb.Bernoulli(yes="y"), ["not y", "y"]),
        ([3, 4, 5, 3], bb.Bernoulli(yes=3), ["not 3", "3"]),
    ],
)
def test_bars_are_the_models_own(values: Any, family: Any, called: list[str]) -> None:
    model = one_column(values, list("abab"), {"x": family})
    shown = plots.LikelihoodDisplay.from_model(model, "x")
    assert shown.value_names == called
    np.testing.assert_allclose(shown.likelihood.sum(axis=0), 1.0)
    rows = {"x": values}
    joint = np.exp(model.log_likelihood(rows, "x"))
    for row in joint:
        assert np.isclose(shown.likelihood, row).all(axis=1).any()
    widths = sorted(bar.get_width() for bar in shown.ax_.patches)
    np.testing.assert_allclose(widths, np.sort(shown.likelihood.ravel()))


def test_of_many_categories_the_most_frequent_are_drawn() -> None:
    values = [f"v{i:02}" for i in range(30)] + ["v07", "v29"] * 3
    shown = plots.LikelihoodDisplay.from_model(one_column(values, ["a", "b"] * 18, "categorical"), "x", n=2)
    assert shown.values == ["v07", "v29"]
    assert shown.hidden == 28
    assert "2 most frequent of 30 values" in shown.ax_.get_title(loc="left").replace("\n", " ")


def test_some_classes_alone() -> None:
    shown = plots.LikelihoodDisplay.from_model(iris_model(), LENGTH, iris(), classes=["virginica", "setosa"])
    assert shown.classes == ("virginica", "setosa")
    assert shown.likelihood.shape[1] == 2
    assert shown.values[np.argmax(shown.likelihood[:, 0])] > shown.values[np.argmax(shown.likelihood[:, 1])]


def test_of_a_block_one_column_is_drawn() -> None:
    everything = tuple(name for name in iris() if name != "species")
    model = iris_model(features={everything: bb.Gaussian(covariance="full")})
    line = plots.LikelihoodDisplay.from_model(model, everything, iris(), columns=LENGTH)
    alone = plots.LikelihoodDisplay.from_model(iris_model(features="gaussian"), LENGTH, iris())
    assert line.likelihood == pytest.approx(alone.likelihood, rel=1e-6, abs=1e-9)
    assert line.ax_.get_xlabel() == LENGTH
    for wrong in (None, PAIR, "height"):
        with pytest.raises(BadSetting, match=r"has 4 columns .* Name one of them"):
            plots.LikelihoodDisplay.from_model(model, everything, columns=wrong)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="not a block of numbers"):
        plots.LikelihoodDisplay.from_model(tennis(), "wind", columns="wind")


@pytest.mark.parametrize("columns", [("outlook", "wind"), ("wind",)])
def test_a_joint_table_has_bars_and_lines_of_its_combinations(columns: tuple[str, ...]) -> None:
    weather = bb.datasets.play_tennis()
    model = bb.estimate(bb.count(weather, target="play", features={columns: bb.Joint()}))
    shown = plots.LikelihoodDisplay.from_model(model, columns)
    for value, likelihood in zip(shown.values, shown.likelihood, strict=True):
        assert likelihood == pytest.approx(list(model.likelihood(columns, value).values()))
    assert shown.value_names == [", ".join(value) for value in shown.values]
    sheet = plots.NomogramDisplay.from_model(model, "yes", row=ROW)
    told = model.explain(ROW)
    signs = 1.0 if told.winner == "yes" else -1.0
    assert sheet.points(ROW) == pytest.approx({e.feature: signs * e.decibans for e in told.evidence})
    place = sheet.scales[model.schema[columns].name]
    row = tuple(ROW[name] for name in columns)
    assert place.decibans[list(place.values).index(row)] == pytest.approx(sheet.points(ROW)[place.feature])


@pytest.mark.parametrize(
    "family", [bb.Occurrences(), bb.Occurrences("bernoulli", threshold=0.0), bb.Occurrences("complement")]
)
def test_a_block_of_occurrences_has_bars_of_its_most_informative_columns(family: bb.Occurrences) -> None:
    rng = np.random.default_rng(2)
    kinds = np.arange(200) % 2
    times = rng.poisson(np.where(np.arange(30) == 7, 0.2 + 3.0 * kinds[:, None], 1.0))
    model = bb.estimate(bb.count(times, kinds, features=family))
    shown = plots.LikelihoodDisplay.from_model(model, model.schema.features[0].name, n=5)
    assert shown.values[0] == "x7" and shown.likelihood.shape == (5, 2) and shown.hidden == 25
    assert shown.likelihood[0, 1] > 2 * shown.likelihood[0, 0]
    assert "5 most informative of 30 columns" in shown.ax_.get_title("left").replace("\n", " ")
    if family.model == "multinomial":
        assert shown.likelihood[0] == pytest.approx(np.exp(model.linear().weights[7]))
    with pytest.raises(BadSetting, match="models 30 columns together as occurrences"):
        plots.NomogramDisplay.from_model(model, 0)


def test_what_cannot_be_drawn_of_a_likelihood() -> None:
    model = iris_model()
    draw = plots.LikelihoodDisplay.from_model
    with pytest.raises(UnknownColumn, match=r"no column 'petal lenth \(cm\)'"):
        draw(model, "petal lenth (cm)")
    with pytest.raises(UnknownClass, match="no class 'rose'"):
        draw(model, LENGTH, classes=["rose"])
    with pytest.raises(BadSetting, match="one of the model's classes"):
        draw(model, LENGTH, classes=[])
    with pytest.raises(BadSetting, match=r"a Model, from bb.estimate"):
        draw(model.tally, LENGTH)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="column 'text' is text"):
        draw(bb.estimate(bb.count(["a text", "another"], ["a", "b"])), "text")
    with pytest.raises(UnknownClass, match="no class 'rose'"):
        draw(model, LENGTH, {**iris(), "species": ["rose"] * 150})
    with pytest.raises(EmptyData, match="has a value of"):
        draw(model, LENGTH, {**iris(), LENGTH: [np.nan] * 150})
    arrays = bb.estimate(bb.count(load_iris().data, load_iris().target))
    with pytest.raises(BadSetting, match="target must be"):
        draw(arrays, "x0", load_iris().data)


# Boundaries


def test_posteriors_over_two_features_are_the_models_own() -> None:
    model = iris_model()
    shown = plots.DecisionBoundaryDisplay.from_model(model, PAIR, iris(), steps=20)
    for i, j in ((0, 0), (7, 13), (19, 4)):
        row = dict.fromkeys(model.schema.columns, np.nan) | {LENGTH: shown.xx0[j], WIDTH: shown.xx1[i]}
        np.testing.assert_allclose(shown.posterior[i, j], model.posterior(row)[0], rtol=1e-12)
    np.testing.assert_array_equal(shown.response, shown.posterior.argmax(axis=2))


def test_other_features_are_held_where_they_are_fixed() -> None:
    weather = {**bb.datasets.play_tennis(), "a": np.arange(14.0), "b": np.arange(14.0) % 5}
    model = bb.estimate(bb.count(weather, "play"))
    shown = plots.DecisionBoundaryDisplay.from_model(model, ["a", "b"], fixed={"outlook": "overcast"}, steps=5)
    row = dict.fromkeys(model.schema.columns) | {"a": shown.xx0[3], "b": shown.xx1[1], "outlook": "overcast"}
    np.testing.assert_allclose(shown.posterior[1, 3], model.posterior(row)[0], rtol=1e-12)
    assert "outlook = overcast; other features missing" in shown.ax_.get_title(loc="left").replace("\n", " ")


def test_the_difference_of_two_classes() -> None:
    shown = plots.DecisionBoundaryDisplay.from_model(iris_model(), PAIR, difference=["virginica", "setosa"], steps=30)
    np.testing.assert_allclose(shown.response, shown.posterior[:, :, 2] - shown.posterior[:, :, 0])
    assert shown.response.min() < -0.9 and shown.response.max() > 0.9


def test_the_border_is_a_straight_line_where_variances_are_shared(figure: Any) -> None:
    """Iris, as the lectures draw it: the log-odds of two classes are linear in the features."""
    for variance, straight in (("shared", True), ("own", False)):
        family = bb.Gaussian(variance="shared") if variance == "shared" else bb.Gaussian()
        model = iris_model(features=family)
        shown = plots.DecisionBoundaryDisplay.from_model(model, PAIR, iris(), steps=40)
        with np.errstate(divide="ignore"):
            odds = np.log(shown.posterior[:, :, 2]) - np.log(shown.posterior[:, :, 1])
        bends = np.abs(np.diff(odds, 2, axis=0)).max() + np.abs(np.diff(odds, 2, axis=1)).max()
        assert (bends < 1e-6) == straight
        if straight:
            figure(
                33,
                "the border between two irises where classes share their variances ([picture](../pictures/difference.png))",
                "a straight line",
                f"log-odds bend by {bends:.6f} from step to step",
                'bb.plots.DecisionBoundaryDisplay, bb.Gaussian(variance="shared")',
            )


def test_the_colours_of_regions_are_those_of_the_classes() -> None:
    picture = pixels(plots.DecisionBoundaryDisplay.from_model(iris_model(), PAIR, iris(), steps=60))
    assert all(nearest(picture, colour) < 0.02 for colour in COLOURS[:3])
    assert nearest(picture, COLOURS[3]) > 0.1


def test_many_rows_are_drawn_as_some_points() -> None:
    rng = np.random.default_rng(0)
    table = {"a": rng.random(9_000), "b": rng.random(9_000), "c": rng.choice(["u", "v"], 9_000)}
    shown = plots.DecisionBoundaryDisplay.from_model(bb.estimate(bb.count(table, "c")), ["a", "b"], table, steps=9)
    assert shown.points is not None
    assert len(shown.points[0]) == 2_000


def test_columns_of_a_block_have_boundaries_and_may_be_held_fixed() -> None:
    block = {("sepal length (cm)", *PAIR): bb.Gaussian(covariance="full")}
    model = iris_model(features=block)
    shown = plots.DecisionBoundaryDisplay.from_model(model, PAIR, iris(), steps=20)
    rest = {name: [np.nan] for name in model.schema.columns}
    row = rest | {LENGTH: [shown.xx0[3]], WIDTH: [shown.xx1[7]]}
    assert shown.posterior[7, 3] == pytest.approx(model.posterior(row)[0])
    assert shown.ax_.get_title("left") == "Most probable class; other features missing"
    fixed = {"sepal length (cm)": 6.0, "sepal width (cm)": 3.0}
    shown = plots.DecisionBoundaryDisplay.from_model(model, PAIR, fixed=fixed, steps=20)
    said = shown.ax_.get_title("left").replace("\n", " ")
    assert said == "Most probable class; sepal length (cm) = 6, sepal width (cm) = 3"
    with pytest.raises(BadSetting, match="fixed must be a column other than"):
        plots.DecisionBoundaryDisplay.from_model(model, PAIR, fixed={model.schema.features[-1].name: 6.0}, steps=20)


def test_what_cannot_be_drawn_of_a_boundary() -> None:
    model = iris_model()
    draw = plots.DecisionBoundaryDisplay.from_model
    for wrong in ([LENGTH], [*PAIR, "sepal width (cm)"], LENGTH, [LENGTH, LENGTH]):
        with pytest.raises(BadSetting, match="features must be the names of two numeric columns"):
            draw(model, wrong)
    with pytest.raises(UnknownColumn):
        draw(model, [LENGTH, "height"])
    with pytest.raises(BadSetting, match=r"column 'outlook' is of family categorical.*kernel_density, quantile_tree"):
        draw(tennis(), ["outlook", "wind"])
    with pytest.raises(BadSetting, match="at least two classes"):
        draw(bb.estimate(bb.count({"a": [1.0, 2.0], "b": [1.0, 2.0]}, ["c", "c"])), ["a", "b"])
    with pytest.raises(BadSetting, match="difference must be two of the model's classes"):
        draw(model, PAIR, difference=["setosa"])
    with pytest.raises(UnknownClass):
        draw(model, PAIR, difference=["setosa", "rose"])
    with pytest.raises(BadSetting, match="a column other than the two drawn"):
        draw(model, PAIR, fixed={LENGTH: 1.0})
    with pytest.raises(UnknownColumn):
        draw(model, PAIR, fixed={"height": 1.0})
    with pytest.raises(BadSetting, match="steps"):
        draw(model, PAIR, steps=1)
    with pytest.raises(EmptyData, match="no row has values of both"):
        draw(model, PAIR, {**iris(), LENGTH: [np.nan] * 150})


# Evidence


def test_bars_of_evidence_are_those_of_the_explanation() -> None:
    model = tennis()
    told = model.explain(ROW)
    shown = plots.EvidenceDisplay.from_explanation(told)
    assert shown.weights == [told.prior, *(e.decibans for e in told.evidence), told.decibans]
    drawn = [bar.get_width() for bar in shown.ax_.patches]
    np.testing.assert_allclose(drawn, shown.weights)
    assert shown.ax_.get_title(loc="left") == "Weight of evidence: no 72.0% against yes 28.0%"
    assert "decibans" in shown.ax_.get_xlabel()
    assert plots.EvidenceDisplay.from_model(model, ROW, "yes").weights == shown.weights


def test_the_weakest_evidence_is_added_up() -> None:
    shown = plots.EvidenceDisplay.from_model(tennis(), ROW, n=2)
    assert shown.labels == ["prior", "outlook = sunny", "humidity = high", "2 more", "sum"]
    assert sum(shown.weights[:-1]) == pytest.approx(shown.weights[-1])


def test_words_are_named_without_their_column() -> None:
    model = bb.estimate(bb.count(["cheap pills", "noon lunch"], ["spam", "ham"]))
    shown = plots.EvidenceDisplay.from_model(model, "cheap cheap lunch")
    assert shown.labels == ["prior", "cheap × 2", "lunch", "sum"]


def test_infinite_evidence_is_drawn_and_said_to_be_so() -> None:
    model = tennis(how="mle")
    shown = plots.EvidenceDisplay.from_model(model, {**ROW, "outlook": "overcast"})
    assert np.inf in shown.weights
    assert "+∞" in [text.get_text() for text in shown.ax_.texts]
    assert np.isfinite([bar.get_width() for bar in shown.ax_.patches]).all()


def test_what_cannot_be_drawn_of_evidence() -> None:
    with pytest.raises(BadSetting, match=r"an Explanation, from model.explain"):
        plots.EvidenceDisplay.from_explanation("why")  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="n must be"):
        plots.EvidenceDisplay.from_model(tennis(), ROW, n=0)
    with pytest.raises(BadSetting, match="at least two classes"):
        plots.EvidenceDisplay.from_model(one_column([1.0], ["a"]), {"x": 1.0})


# Nomograms


def test_points_on_the_sheet_add_up_to_the_posterior() -> None:
    """Orange's nomogram said 66 % where its prediction said 82 %."""
    model = tennis()
    sheet = plots.NomogramDisplay.from_model(model, "yes")
    weather = bb.datasets.play_tennis()
    for i in range(14):
        for missing in (None, "outlook", "wind"):
            row = {name: weather[name][i] for name in model.schema.columns if name != missing} | (
                {missing: None} if missing else {}
            )
            total = sheet.prior
            for feature, value in row.items():
                scale = sheet.scales[feature]
                total += 0.0 if value is None else scale.decibans[scale.values.index(value)]
            assert sheet.probability(total) == pytest.approx(model.posterior(row)[0, 1], abs=1e-12)


def test_a_nomogram_of_rows_ends_at_their_least_and_greatest_numbers() -> None:
    rng = np.random.default_rng(46)
    rows = {
        "age": rng.gamma(2.0, 15.0, 300).round(1),
        "children": rng.poisson(1.5, 300),
        "y": rng.choice(["a", "b"], 300),
    }
    plain = bb.estimate(bb.count(rows, "y"))
    gaussian = bb.estimate(bb.count(rows, "y", features="gaussian"))
    for model in (plain, gaussian):
        for scale in plots.NomogramDisplay.of(model, "a", data=rows).scales.values():
            if scale.numeric:
                column = rows[scale.feature]
                assert (scale.values[0], scale.values[-1]) == (column.min(), column.max())


def test_a_curve_on_the_sheet_is_what_explain_says() -> None:
    model = iris_model(features="gaussian")
    sheet = plots.NomogramDisplay.from_model(model, "virginica", "versicolor", data=iris())
    scale = sheet.scales[LENGTH]
    for k in (100, 150, 199):  # where virginica wins, and explain weighs it against versicolor
        row = dict.fromkeys(model.schema.columns, np.nan) | {LENGTH: scale.values[k]}
        told = model.explain(row)
        sign = 1.0 if told.winner == "virginica" else -1.0
        assert {told.winner, told.against} == {"virginica", "versicolor"}
        assert scale.decibans[k] == pytest.approx(sign * told.evidence[0].decibans, rel=1e-12)


cells = st.fixed_dictionaries(
    {
        "gauss": st.none() | st.floats(-5, 5),
        "kernel": st.none() | st.floats(-5, 5),
        "bins": st.none() | st.floats(-5, 5),
        "count": st.none() | st.integers(0, 9),
        "word": st.none() | st.sampled_from(["u", "v", "w", "never seen"]),
        "told": st.none() | st.sampled_from(["p", "q"]),
        "flag": st.none() | st.booleans(),
    }
)
FAMILIES = {
    "gauss": bb.Gaussian(),
    "kernel": bb.KernelDensity(),
    "bins": bb.Histogram(),
    "count": bb.Poisson(),
    "word": bb.Categorical(),
    "told": bb.Categorical(missing="category"),
    "flag": bb.Bernoulli(),
}


def mixed(n_classes: int, how: Any = "mean") -> bb.Model:
    rng = np.random.default_rng(n_classes)
    labels = rng.integers(0, n_classes, 60)
    table = {
        "gauss": rng.normal(labels, 1.0),
        "kernel": rng.normal(-labels, 2.0),
        "bins": rng.normal(labels, 1.5),
        "count": rng.poisson(1 + labels),
        "word": rng.choice(["u", "v", "w"], 60).tolist(),
        "told": rng.choice(np.array(["p", "q", None], dtype=object), 60).tolist(),
        "flag": (rng.random(60) < 0.5).tolist(),
    }
    names = np.array(["a", "b", "c"])[labels]
    return bb.estimate(bb.count(table, names, features=FAMILIES), how=how)


SHEETS = {
    n: plots.NomogramDisplay(mixed(n), "b", "a", [Scale(f, [], np.zeros(0), [], np.zeros(0), False) for f in FAMILIES])
    for n in (2, 3)
}


@given(row=cells, n_classes=st.sampled_from([2, 3]))
def test_the_sum_of_a_rows_points_is_its_log_odds(row: dict[str, Any], n_classes: int) -> None:
    sheet = SHEETS[n_classes]
    total = sheet.prior + sum(sheet.points(row).values())
    assert total == pytest.approx(sheet.decibans(row), abs=1e-9)
    posterior = sheet.model.posterior([row])[0]
    assert sheet.probability(total) == pytest.approx(posterior[1] / (posterior[0] + posterior[1]), abs=1e-12)
    assert all(weight == 0 for f, weight in sheet.points(row).items() if row[f] is None and f != "told")


def test_every_scale_agrees_with_the_points_of_its_values() -> None:
    model = mixed(2)
    sheet = plots.NomogramDisplay.from_model(model, "b")
    assert set(sheet.scales) == set(FAMILIES)
    for feature, scale in sheet.scales.items():
        for value, weight in list(zip(scale.values, scale.decibans, strict=True))[::20]:
            row = dict.fromkeys(FAMILIES) | {feature: value}
            assert sheet.points(row)[feature] == pytest.approx(weight, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_the_sums_meaning_is_calibrated_where_the_model_is(method: Any) -> None:
    flowers = {**iris(), "species": np.where(iris()["species"] == "virginica", "virginica", "other")}
    found = bb.cross_validate(flowers, "species", folds=5)
    honest = calibrate(method, np.log(np.maximum(found.posteriors, 1e-300)), found.truth)
    model = bb.estimate(bb.count(flowers, "species")).calibrated(honest)
    for label, c in (("other", 0), ("virginica", 1)):
        sheet = plots.NomogramDisplay.from_model(model, label)
        for i in (0, 70, 77, 106, 133):
            row = {name: flowers[name][i] for name in model.schema.columns}
            assert sheet.probability(sheet.decibans(row)) == pytest.approx(model.posterior(row)[0, c], abs=1e-9)
            told = model.explain(row)
            sign = 1.0 if told.winner == label else -1.0
            points = {e.feature: sign * e.decibans for e in told.evidence}
            assert sheet.points(row) == pytest.approx(points, rel=1e-9, abs=1e-9)
            assert sheet.prior == pytest.approx(sign * told.prior, rel=1e-9)


def test_of_more_classes_a_temperature_makes_the_scales_shorter_and_the_sum_stays_right() -> None:
    model, row = iris_model(), {name: iris()[name][70] for name in iris_model().schema.columns}
    honest = model.calibrated(Temperature(3, 2.5))
    plain, sheet = (plots.NomogramDisplay.from_model(m, "virginica", "versicolor", row=row) for m in (model, honest))
    assert sheet.decibans(row) == pytest.approx(plain.decibans(row) / 2.5)
    posterior = honest.posterior(row)[0]
    assert float(sheet.probability(sheet.decibans(row))) == pytest.approx(posterior[2] / (posterior[1] + posterior[2]))
    assert "before calibration" not in " ".join(text.get_text() for text in sheet.ax_.texts)
    floored = plots.NomogramDisplay.from_model(model.calibrated(Temperature(3, 2.5, -36.0)), "virginica", "versicolor")
    assert floored.prior == plain.prior  # what a floor does depends on all classes
    assert "before calibration" in " ".join(text.get_text() for text in floored.ax_.texts)


@pytest.mark.parametrize("method", ["temperature", "platt", "isotonic"])
def test_the_evidence_drawn_of_a_calibrated_model_adds_up_to_its_probability(method: Any) -> None:
    model = calibrated(method)
    row = {name: iris()[name][70] for name in model.schema.columns}
    shown = plots.EvidenceDisplay.from_model(model, row)
    assert sum(shown.weights[:-1]) == pytest.approx(shown.weights[-1])
    told, posterior = shown.explanation, dict(zip(model.classes, model.posterior(row)[0].tolist(), strict=True))
    assert shown.weights[-1] == pytest.approx(10 * np.log10(posterior[told.winner] / posterior[told.against]), rel=1e-9)
    assert f"{told.winner} {posterior[told.winner]:.1%} against" in shown.ax_.get_title(loc="left")
    plain = model.calibrated(None).explain(row, told.against)
    two = plots.ComparedEvidenceDisplay.from_explanations({"calibrated": told, "plain": plain})
    np.testing.assert_allclose(np.nansum(two.weights[:-1], axis=0), two.weights[-1])


@pytest.mark.parametrize(
    "settings", [{}, {"ngrams": (1, 2)}, {"model": "bernoulli"}, {"damping": "log", "length": True}]
)
def test_a_text_has_the_words_that_tell_most(settings: Any) -> None:
    """Each stands where `explain` puts it, alone in a text; a row's mark is what all of its words say."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 150)
    texts = [" ".join(rng.choice(["red", "green", "blue", f"own{c}", f"of{c}"], 6)) for c in y]
    rows = {"t": texts, "size": rng.normal(y), "y": [f"class {c}" for c in y]}
    model = bb.estimate(bb.count(rows, "y", features={"t": bb.Text(**settings)}))
    row = {"t": "own2 red blue of2", "size": 1.0}
    sheet = plots.NomogramDisplay.from_model(model, "class 2", "class 0", row=row)
    scale = sheet.scales["t"]
    assert scale.words and {"own2", "own0"} <= set(scale.values)
    for word, weight in zip(scale.values, scale.decibans, strict=True):
        told = model.explain({"t": word, "size": None}, against=None)
        said = {e.value: e.decibans for e in told.evidence if e.feature == "t"}
        if {told.winner, told.against} == {"class 2", "class 0"}:
            assert weight == pytest.approx(said[word] if told.winner == "class 2" else -said[word], abs=1e-9)
    total = sheet.prior + sum(sheet.points(row).values())
    joint = model.log_joint(row)[0]
    assert sheet.decibans(row) == pytest.approx(10 * (joint[2] - joint[0]) / np.log(10.0), rel=1e-9, abs=1e-9)
    assert total == pytest.approx(sheet.decibans(row))
    shown = {text.get_text() for text in sheet.ax_.texts}
    assert {"own2", "own0"} <= shown
    assert any("t: words, each alone" in label.get_text() for label in sheet.ax_.get_yticklabels())


def test_among_more_classes_the_sum_speaks_of_two() -> None:
    model = iris_model()
    row = {name: iris()[name][70] for name in model.schema.columns}
    sheet = plots.NomogramDisplay.from_model(model, "virginica", "versicolor", row=row)
    said = " ".join(text.get_text() for text in sheet.ax_.texts)
    assert "P(virginica | virginica or versicolor)" in said
    posterior = model.posterior(row)[0]
    assert f"{posterior[2] / (posterior[1] + posterior[2]):.1%}" in said


def test_rows_may_be_given_by_position() -> None:
    flowers, species = load_iris(return_X_y=True)
    model = bb.estimate(bb.count(flowers, species))
    sheet = plots.NomogramDisplay.from_model(model, 2, 1, row=flowers[70])
    assert sheet.points(flowers[70]) == sheet.points(flowers[70].tolist()) == sheet.points(flowers[70:71])
    assert list(sheet.points(flowers[70])) == ["x0", "x1", "x2", "x3"]


def test_a_column_that_the_row_lacks_adds_nothing() -> None:
    model = mixed(2)
    sheet = plots.NomogramDisplay.from_model(model, "b", row={"gauss": 0.3, "word": "u"})
    with pytest.warns(bb.BanburyWarning, match="treated as missing"):
        posterior = model.posterior({"gauss": [0.3], "word": ["u"]})[0]
    assert [feature for feature, weight in sheet.points(sheet.row).items() if weight] == ["gauss", "word"]
    assert sheet.probability(sheet.decibans(sheet.row)) == pytest.approx(posterior[1], abs=1e-12)


def test_a_zero_that_stays_zero_is_infinite_evidence_on_the_sheet() -> None:
    model = tennis(how="mle")
    sheet = plots.NomogramDisplay.from_model(model, "yes", row={**ROW, "outlook": "overcast"})
    scale = sheet.scales["outlook"]
    assert scale.decibans[scale.values.index("overcast")] == np.inf
    assert "overcast (∞)" in [text.get_text() for text in sheet.ax_.texts]
    assert sheet.probability(sheet.decibans(sheet.row)) == 1.0
    assert pixels(sheet).min() < 0.5


def test_the_features_that_tell_most_are_drawn_first() -> None:
    sheet = plots.NomogramDisplay.from_model(tennis(), "yes", n=2)
    ranges = {feature: np.ptp(scale.decibans) for feature, scale in sheet.scales.items()}
    best = sorted(ranges, key=lambda feature: -ranges[feature])[:2]
    labels = [label.get_text() for label in sheet.ax_.get_yticklabels()]
    assert labels == ["prior", *best, "sum"]
    assert "2 features of 4" in sheet.ax_.get_title(loc="left").replace("\n", " ")


def test_a_sheet_ends_at_its_limit() -> None:
    model = iris_model()
    sheet = plots.NomogramDisplay.from_model(
        model, "setosa", "virginica", limit=20, row=dict.fromkeys(model.schema.columns, 9.0)
    )
    low, high = sheet.ax_.get_xlim()
    assert -25 < low < high < 25


def test_what_cannot_be_drawn_of_a_nomogram() -> None:
    draw = plots.NomogramDisplay.from_model
    with pytest.raises(
        BadSetting, match=r"of 3 classes 'setosa' cannot be compared .*against= \('versicolor', 'virginica'\)"
    ):
        draw(iris_model(), "setosa")
    with pytest.raises(UnknownClass):
        draw(tennis(), "perhaps")
    with pytest.raises(UnknownClass):
        draw(tennis(), "yes", "perhaps")
    with pytest.raises(BadSetting, match="a class other than"):
        draw(tennis(), "yes", "yes")
    with pytest.raises(BadSetting, match="at least two classes"):
        draw(one_column([1.0], ["a"]), "a")
    with pytest.raises(BadSetting, match="limit"):
        draw(tennis(), "yes", limit=0)
    with pytest.raises(BadSetting, match="n must be"):
        draw(tennis(), "yes", n=0)
    with pytest.raises(BanburyError, match="one row is needed, but this table has 14"):
        draw(tennis(), "yes", row=bb.datasets.play_tennis())
    flowers, species = load_iris(return_X_y=True)
    with pytest.raises(BanburyError, match="X has 2 features"):
        draw(bb.estimate(bb.count(flowers, species)), 2, 1, row=[1.0, 2.0])


# Results


def test_a_confusion_matrix_is_that_of_the_result() -> None:
    found = bb.cross_validate(bb.datasets.wine(), target="cultivar")
    shown = plots.ConfusionMatrixDisplay.from_cross_validation(found)
    np.testing.assert_array_equal(shown.confusion_matrix, found.confusion)
    assert shown.accuracy == np.mean(found.best == found.truth)
    np.testing.assert_allclose(shown.shares.sum(axis=1), 1.0)
    cells = [text.get_text() for text in shown.ax_.texts]
    assert cells == [str(n) for n in found.confusion.ravel() if n]
    labels = found.labels
    again = plots.ConfusionMatrixDisplay.from_predictions(labels[found.truth], found.predictions)
    np.testing.assert_array_equal(again.confusion_matrix, found.confusion)
    assert again.classes == found.classes


def test_a_class_without_rows_has_a_place_if_it_is_named() -> None:
    shown = plots.ConfusionMatrixDisplay.from_predictions([1, 1, 2], [1, 2, 2], classes=[2, 1, 0])
    assert shown.confusion_matrix.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert shown.shares.tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]]


def test_twenty_long_names_do_not_overlap() -> None:
    shown = plots.ConfusionMatrixDisplay.from_predictions(groups(20), groups(20))
    shown.figure_.canvas.draw()
    for labels, low, high in (
        (shown.ax_.get_yticklabels(), "y0", "y1"),
        (shown.ax_.get_xticklabels(), "x0", "x1"),
    ):
        assert len({label.get_text() for label in labels}) == 20
        boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: getattr(box, low))
        assert all(getattr(a, high) <= getattr(b, low) for a, b in pairwise(boxes))


def test_what_cannot_be_drawn_of_answers() -> None:
    draw = plots.ConfusionMatrixDisplay.from_predictions
    with pytest.raises(BanburyError, match="3 rows but 2 predictions"):
        draw([1, 2, 3], [1, 2])
    with pytest.raises(EmptyData):
        draw([], [])
    with pytest.raises(UnknownClass, match="no class 3"):
        draw([1, 3], [1, 1], classes=[1, 2])
    with pytest.raises(BadSetting, match="values must be one of"):
        draw([1], [1], values="both")  # type: ignore[arg-type]
    for wrong in ([[1, 2]], [[-1]], [["a"]], [[np.nan]], []):
        with pytest.raises(BadSetting, match="confusion_matrix must be"):
            plots.ConfusionMatrixDisplay(wrong)
    with pytest.raises(BadSetting, match="classes must be one name for each"):
        plots.ConfusionMatrixDisplay([[1]], ["a", "b"])
    for display in (plots.ConfusionMatrixDisplay, plots.CalibrationDisplay):
        with pytest.raises(BadSetting, match=r"a CrossValidation, from bb.cross_validate"):
            display.from_cross_validation([[1]])  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match=r"a LearningCurve, from bb.learning_curve"):
        plots.LearningCurveDisplay.from_learning_curve([1])  # type: ignore[arg-type]


def test_labels_are_drawn_where_they_are_and_their_names_overlap_nothing() -> None:
    found = sixty_labels()
    shown = plots.LabelsDisplay.from_evaluation(found)
    assert shown.labels == tuple(label for label in found.labels if label != "topic-50")
    np.testing.assert_array_equal(shown.f1, np.delete(found.per_label.f1, 50))
    np.testing.assert_array_equal(shown.rows, np.delete(found.per_label.rows, 50))
    points = shown.ax_.collections[0].get_offsets()
    np.testing.assert_allclose(points, np.unique(np.stack([shown.rows, shown.f1], axis=1), axis=0))
    said = [text.get_text() for text in shown.ax_.texts]
    assert "9 labels" in said
    assert "topic-0" in said
    own = [name for name in said if name.startswith("topic")]
    assert len(own) == len(set(own)) > 10
    shown.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in shown.ax_.texts]
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    legend = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert legend == [f"micro F1 {found.micro_f1:.3f}", f"macro F1 {found.macro_f1:.3f}"]


def test_labels_of_a_model_are_those_of_its_evaluation() -> None:
    texts, sets = made(150)
    clf = bb.MultiLabelClassifier().fit(texts, sets)
    for model in (clf, clf.model_):
        shown = plots.LabelsDisplay.from_model(model, {"text": texts}, sets)
        np.testing.assert_array_equal(shown.f1, bb.evaluate(clf.model_, {"text": texts}, sets).per_label.f1)
    with pytest.raises(BadSetting, match="a LabelModel"):
        plots.LabelsDisplay.from_model(tennis(), bb.datasets.play_tennis())  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="an evaluation of labels"):
        plots.LabelsDisplay.from_evaluation(bb.cross_validate(iris(), "species"))  # type: ignore[arg-type]
    with pytest.raises(EmptyData, match="no row has a label"):
        plots.LabelsDisplay.from_model(clf, {"text": texts[:2]}, [[], []])


def test_a_learning_curve_has_its_figures_and_the_others() -> None:
    curve = bb.learning_curve(iris(), "species", sizes=[10, 40, 90], repeats=3, peer="logistic_regression")
    shown = plots.LearningCurveDisplay.from_learning_curve(curve)
    assert shown.ax_.get_xscale() == "log"
    lines = {tuple(np.round(line.get_ydata(), 12)) for line in shown.ax_.get_lines()}
    assert curve.peer is not None
    assert tuple(np.round(curve.mean_accuracy, 12)) in lines
    assert tuple(np.round(curve.peer.mean_accuracy, 12)) in lines
    bars = [bar.get_label() for bar in shown.ax_.containers]
    assert bars == ["plain naive Bayes", "logistic regression"]
    shown.figure_.canvas.draw()
    assert "10" in [label.get_text() for label in shown.ax_.get_xticklabels()]


def test_a_calibrated_model_is_drawn_before_and_after() -> None:
    model = calibrated()
    flowers = iris()
    shown = plots.CalibrationDisplay.from_model(model, flowers, bins=8)
    truth = np.array([model.classes.index(name) for name in flowers["species"]])
    rows = {name: flowers[name] for name in model.schema.columns}
    for name, which in (("before calibration", model.calibrated(None)), ("after calibration", model)):
        expected = reliability(which.posterior(rows), truth, bins=8)
        np.testing.assert_array_equal(shown.curves[name].accuracy, expected.accuracy)
        np.testing.assert_array_equal(shown.curves[name].confidence, expected.confidence)
    assert list(plots.CalibrationDisplay.from_model(model.calibrated(None), flowers).curves) == ["posteriors"]


def test_a_model_of_a_tree_is_drawn_as_any_model_is() -> None:
    days = bb.datasets.play_tennis()
    tree = bb.estimate(bb.count(days, "play", features=bb.ColumnTree(level=None)))
    found = plots.EvidenceDisplay.from_model(tree, ROW, "yes").explanation
    assert found == tree.explain(ROW, "yes")
    shown = plots.CalibrationDisplay.from_model(tree, days, bins=5)
    expected = reliability(tree.posterior(days), [tree.classes.index(label) for label in days["play"]], bins=5)
    np.testing.assert_array_equal(shown.curves["posteriors"].accuracy, expected.accuracy)
    np.testing.assert_array_equal(shown.curves["posteriors"].confidence, expected.confidence)


def test_a_picture_that_a_network_cannot_have_says_what_it_has() -> None:
    days = bb.datasets.play_tennis()
    tree = bb.BeliefNetwork.tan(days, "play")
    for wrong in (tree, bb.TANClassifier().fit([[0], [1]], ["a", "b"]), bb.NaiveBayesClassifier()):
        with pytest.raises(BadSetting, match=r"a Model, .* the model_ of a classifier"):
            plots.LikelihoodDisplay.from_model(wrong, "outlook")  # type: ignore[arg-type]
        with pytest.raises(BadSetting, match=r"a Model, .* the model_ of a classifier"):
            plots.EvidenceDisplay.from_model(wrong, ROW)  # type: ignore[arg-type]
    alone = bb.estimate(bb.count({"x": [True, False], "y": ["a", "a"]}, "y", features=bb.ColumnTree()))
    with pytest.raises(BadSetting, match="at least two classes"):
        plots.EvidenceDisplay.from_model(alone, {"x": True})


def test_curves_of_reliability_are_drawn_by_name() -> None:
    one = reliability([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    shown = plots.CalibrationDisplay.from_reliability({"mine": one, "yours": one, "theirs": one})
    labels = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert [label.split(":")[0] for label in labels] == ["perfect calibration", "mine", "yours", "theirs"]
    assert list(plots.CalibrationDisplay.from_reliability(one).curves) == ["posteriors"]
    for wrong in ({}, {"mine": 1.0}):
        with pytest.raises(BadSetting, match="curves must be"):
            plots.CalibrationDisplay.from_reliability(wrong)  # type: ignore[arg-type]


# Bandwidths


def test_the_best_bandwidth_is_the_one_leave_one_out_takes() -> None:
    values = np.concatenate([np.random.default_rng(0).normal(m, 1.0, 60) for m in (0.0, 6.0)])
    model = one_column(values, ["all"] * 120, bb.KernelDensity(bandwidth="leave-one-out"))
    shown = plots.BandwidthDisplay.from_model(model, "x", "all")
    grid = np.linspace(-3, 9, 50)
    at_best = one_column(values, ["all"] * 120, bb.KernelDensity(bandwidth=shown.best))
    np.testing.assert_allclose(
        at_best.log_likelihood({"x": grid}, "x"), model.log_likelihood({"x": grid}, "x"), rtol=1e-9
    )
    assert shown.shown[0] < shown.best == shown.shown[1] < shown.shown[2]


def test_the_likelihood_of_rows_left_out_is_that_of_models_without_them() -> None:
    values = np.array([0.0, 1.0, 1.5, 4.0, 4.25, 7.0])
    family = bb.KernelDensity(start=0.0, width=0.125)
    shown = plots.BandwidthDisplay.from_model(one_column(values + 0.0625, ["all"] * 6, family), "x")
    k = int(np.argmin(np.abs(shown.bandwidths - 1.0)))
    each = []
    for i in range(6):
        h = bb.KernelDensity(start=0.0, width=0.125, bandwidth=float(shown.bandwidths[k]))
        others = one_column(np.delete(values, i) + 0.0625, ["all"] * 5, h)
        each.append(others.log_likelihood({"x": [values[i] + 0.0625]}, "x")[0, 0])
    assert shown.log_likelihood[k] == pytest.approx(np.mean(each), rel=1e-9)


def test_three_densities_are_the_models_own_at_their_bandwidths() -> None:
    shown = plots.BandwidthDisplay.from_model(kernels(), "x", times=4)
    for h, density in zip(shown.shown, shown.density.T, strict=True):
        model = one_column(iris()[WIDTH], ["iris"] * 150, bb.KernelDensity(bandwidth=h))
        np.testing.assert_allclose(density, np.exp(model.log_likelihood({"x": shown.values}, "x"))[:, 0], rtol=1e-9)
    assert shown.shown[2] == pytest.approx(4 * shown.best)


def test_what_cannot_be_drawn_of_bandwidths() -> None:
    draw = plots.BandwidthDisplay.from_model
    told = (
        r"column 'outlook' is counted as categorical, which has no bandwidth.*features=\{'outlook': 'kernel_density'\}"
    )
    with pytest.raises(BadSetting, match=told):
        draw(tennis(), "outlook")  # whatever the class
    with pytest.raises(UnknownColumn):
        draw(kernels(), "y")
    two = iris_model(features="kernel_density")
    with pytest.raises(BadSetting, match=r"label must be one of the classes \(setosa, versicolor, virginica\)"):
        draw(two, LENGTH)
    with pytest.raises(UnknownClass):
        draw(two, LENGTH, "rose")
    with pytest.raises(BadSetting, match="times"):
        draw(kernels(), "x", times=1)
    with pytest.raises(BadSetting, match="two different values"):
        draw(one_column([1.0, 1.0, 2.0], ["a", "a", "b"], bb.KernelDensity()), "x", "b")


# Numbers at the edges


@pytest.mark.parametrize(
    "family", [NUMERIC[0], *(pytest.param(family, marks=pytest.mark.slow) for family in NUMERIC[1:4])], ids=str
)
@pytest.mark.parametrize("values", [[0.0] * 6, [1e300, 2e300] * 3, [1e-300] * 6, [1e8 + 0.1] * 6], ids=str)
def test_constants_and_extremes_are_drawn(family: Any, values: list[float]) -> None:
    table = {"x": values, "z": np.arange(6.0), "c": list("aabbab")}
    model = bb.estimate(bb.count(table, "c", features={"x": family, "z": "gaussian"}))
    for data in (None, table):
        for picture in (
            plots.LikelihoodDisplay.from_model(model, "x", data),
            plots.DecisionBoundaryDisplay.from_model(model, ["x", "z"], data, steps=9),
            plots.NomogramDisplay.from_model(model, "a", data=data, row={"x": values[0], "z": None}),
        ):
            assert pixels(picture).min() < 0.5
            pyplot.close(picture.figure_)


# The posterior of hypotheses


def test_bands_of_the_posterior_are_the_trace_and_reach_one() -> None:
    shown = EVERY["posterior"]()
    trace = sports().trace(bb.datasets.enjoy_sport(), "play")
    assert shown.trace.posteriors == pytest.approx(trace.posteriors, abs=0)
    tops = [band.get_paths()[0].get_extents().y1 for band in shown.ax_.collections]
    assert tops[-1] == pytest.approx(1.0)
    assert len(tops) == len(trace.names) + 1
    texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert texts == [f"all others ({487 - 7})", *trace.names[::-1]]
    assert "6 of 487 are left" in shown.ax_.get_title(loc="left")


def test_a_posterior_of_few_hypotheses_has_no_others() -> None:
    space = bb.Hypotheses(["rain", "dry"]).update(likelihoods=[1, 1])
    shown = plots.PosteriorDisplay.from_trace(space.trace(likelihoods=[[0.1, 0.5], [0.2, 0.2]]))
    assert [text.get_text() for text in shown.ax_.get_legend().get_texts()] == ["dry", "rain"]
    assert shown.ax_.get_xlim() == (1.0, 3.0)  # rows seen, the first before the trace
    assert "left" not in shown.ax_.get_title(loc="left")


def test_what_is_no_trace_is_not_drawn() -> None:
    with pytest.raises(BadSetting, match="a Trace, from space"):
        plots.PosteriorDisplay.from_trace([[0.5, 0.5]])  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="must be Hypotheses"):
        plots.PosteriorDisplay.from_hypotheses(tennis(), ROW)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="a trace of at least one row"):
        plots.PosteriorDisplay.from_trace(sports().trace([], []))
    with pytest.raises(BadSetting, match="at most 7 hypotheses"):
        plots.PosteriorDisplay.from_hypotheses(sports(), bb.datasets.enjoy_sport(), "play", n=8)


def test_the_components_of_a_mixture_add_up_to_its_density() -> None:
    shown = EVERY["mixture"]()
    assert isinstance(shown, plots.DensityDisplay)
    across, up = np.meshgrid(shown.xx0, shown.xx1)
    rest = {name: [None] * across.size for name in measured()}
    wanted = blobs().score_samples(rest | {LENGTH: across.ravel(), WIDTH: up.ravel()})
    np.testing.assert_allclose(shown.log_density.ravel(), wanted, rtol=1e-9)
    assert list(shown.components) == [0, 1, 2]
    np.testing.assert_allclose(sum(np.exp(part) for part in shown.components.values()), np.exp(shown.log_density))
    texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert texts == ["component 0", "component 1", "component 2"]


def test_the_model_of_a_density_is_drawn_over_rows_that_have_no_label() -> None:
    table = measured()
    shown = plots.LikelihoodDisplay.from_model(bb.Density().fit(table).model_, LENGTH, table)
    assert shown.classes == ("all",) and shown.histogram is not None
    areas = np.diff(shown.histogram.edges) @ shown.histogram.density
    np.testing.assert_allclose(areas, [1.0])


def test_a_broken_line_holds_half_of_its_component() -> None:
    values = {"x": np.tile([-2.0, 2.0], 20), "y": np.repeat([-2.0, 2.0], 20)}
    mixture = bb.Mixture(1).fit(values)
    part = plots.DensityDisplay.from_density(mixture, ["x", "y"], {"x": [-12, 12], "y": [-12, 12]}).log_density
    level = float(np.log(level_inside(np.exp(part), 0.5)))  # type: ignore[arg-type]
    assert np.exp(part[part >= level]).sum() / np.exp(part).sum() == pytest.approx(0.5, abs=0.01)
    height = float(mixture.model_.log_joint({"x": [0.0], "y": [0.0]})[0, 0])
    assert height - level == pytest.approx(
        np.log(2.0), abs=0.02
    )  # half of a bell in two dimensions is within r² = 2 log 2


def test_contours_hold_the_rows_that_they_say_and_peaks_too_narrow_are_told_of() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=1000), np.where(rng.random(1000) < 0.5, 0.0, rng.normal(size=1000))
    with pytest.warns(bb.BanburyWarning, match="collapsed to a single value"):
        spiked = bb.Mixture(2).fit({"x": x, "y": y})
    smooth = bb.Density().fit({"x": x, "y": y})
    for density, hidden in ((spiked, np.mean(y == 0.0)), (smooth, 0.0)):
        shown = plots.DensityDisplay.from_density(density, ["x", "y"], {"x": x, "y": y}, steps=150)
        assert shown.hidden == pytest.approx(hidden, abs=0.02)
        assert ("peaks too narrow to draw" in shown.ax_.get_title(loc="left").replace("\n", " ")) == (hidden > 0)
        inside = RegularGridInterpolator((shown.xx1, shown.xx0), shown.log_density)(np.column_stack([y, x]))
        shares = [np.mean(inside >= level) for level in shown.levels]
        np.testing.assert_allclose(shares, [0.99, 0.9, 0.5, 0.1], atol=0.01)


def test_of_many_components_the_largest_are_drawn_and_of_one_none() -> None:
    with pytest.warns(bb.BanburyWarning, match="fewer components"):
        ten = blobs(10)
    many = plots.DensityDisplay.from_density(ten, PAIR, measured(), steps=20)
    assert len(many.components) == 7
    alone = EVERY["density"]()
    assert isinstance(alone, plots.DensityDisplay) and not alone.components
    assert alone.ax_.get_legend() is None
    with pytest.raises(BadSetting, match="the density must be a fitted"):
        plots.DensityDisplay.from_density(iris_model(), PAIR, iris())  # type: ignore[arg-type]


def test_convergence_shows_what_every_iteration_gained() -> None:
    learned = bb.SemiSupervisedClassifier(max_iter=5, tol=0).fit(
        ["a1 b1", "c1 d1", "a1 c1", "b1"], ["x", "y", None, None]
    )
    shown = plots.ConvergenceDisplay.from_estimator(learned)
    likelihood, objective = shown.ax_.get_lines()
    assert objective.get_ydata() == pytest.approx(learned.objectives_ - learned.objectives_[0])
    assert likelihood.get_ydata() == pytest.approx(learned.log_likelihoods_ - learned.log_likelihoods_[0])
    plain = bb.SemiSupervisedClassifier(how="mle", max_iter=5).fit([[0.0], [9.0], [1.0]], [0, 1, None])
    assert len(plots.ConvergenceDisplay.from_estimator(plain).ax_.get_lines()) == 1
    with pytest.raises(BadSetting, match="the estimator must be a fitted"):
        plots.ConvergenceDisplay.from_estimator(bb.Mixture(2))


# The gallery


@pytest.fixture
def maker() -> Iterator[ModuleType]:
    """What draws the pictures of the gallery, as `python -m docs.make_pictures` runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield import_module("docs.make_pictures")


def test_the_gallery_shows_every_picture_and_nothing_else(maker: ModuleType) -> None:
    page = (ROOT / "docs" / "reference" / "gallery.md").read_text(encoding="utf-8")
    files = {path.stem for path in (ROOT / "docs" / "pictures").iterdir()}
    assert files == {picture.__name__ for picture in (*maker.ALWAYS, *maker.WITH_DATA)}
    assert all(f"](../pictures/{name}.png)" in page for name in files)
    assert all(display in page for display in plots.__all__)
    assert all(path.stat().st_size <= 60_000 for path in (ROOT / "docs" / "pictures").iterdir())


def test_pictures_that_need_no_data_can_be_drawn_anywhere(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(maker, "FOLDER", tmp_path)
    monkeypatch.delenv("BANBURY_DATA", raising=False)
    maker.main([])
    assert {path.stem for path in tmp_path.iterdir()} == {picture.__name__ for picture in maker.ALWAYS}
    assert "BANBURY_DATA is unset" in capsys.readouterr().out


# Networks


def test_children_stand_to_the_right_of_their_parents_and_nobody_on_another() -> None:
    rng = np.random.default_rng(0)
    names = [f"node {k}" for k in range(25)]
    parents = {node: [str(n) for n in rng.choice(names[:k], min(k, 2), replace=False)] for k, node in enumerate(names)}
    tables = {node: np.full([2] * (1 + len(above)), 0.5) for node, above in parents.items()}
    values = {node: [0, 1] for node in names}
    shown = plots.NetworkDisplay.from_network(bb.BeliefNetwork.from_tables(tables, parents, values=values))
    assert len(shown.edges) == sum(map(len, parents.values())) and len(set(shown.positions.values())) == 25
    for parent, child in shown.edges:
        assert shown.positions[parent][0] < shown.positions[child][0]
    rows = sorted(shown.positions.values())
    assert all(a[0] != b[0] or b[1] - a[1] > 0.3 for a, b in pairwise(rows))


def graph(parents: dict[str, list[str]], counted: bool = True) -> bb.BeliefNetwork:
    """A network of this shape: counted from rows drawn at random, or of tables that are given."""
    nodes = list(dict.fromkeys([each for above in parents.values() for each in above] + list(parents)))
    if not counted:
        tables = {node: np.full([2] * (1 + len(parents.get(node, []))), 0.5) for node in nodes}
        return bb.BeliefNetwork.from_tables(tables, parents, values={node: [0, 1] for node in nodes})
    rng = np.random.default_rng(0)
    return bb.BeliefNetwork.count({node: rng.random(60) < 0.5 for node in nodes}, parents)


def all_before(names: list[str]) -> dict[str, list[str]]:
    """Every node depends on all before it."""
    return {name: names[:k] for k, name in enumerate(names)}


GRAPHS: dict[str, Callable[[], bb.BeliefNetwork]] = {
    "an edge that skips a node": lambda: graph({"fee": ["party"], "crime": ["fee", "party"]}),
    "each on all before it": lambda: graph(all_before(list("abcde"))),
    "long and short names": lambda: graph(all_before(["W" * 24, "i", "M" * 30, "日 1", "a_$b$"])),
    "a short parent above long ones": lambda: graph({"z": ["i"], "y": ["i"], "x": ["i", "W" * 20], "w": ["W" * 19]}),
    "thirty-seven": alarm,
    "eight and some alone": lambda: graph(all_before(list("abcdefgh")) | {"alone": [], "beside": []}, counted=False),
    "tree": lambda: bb.BeliefNetwork.tan(bb.datasets.play_tennis(), target="play", level=None),
    "no edge": lambda: graph({"a": [], "b": []}),
}


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("made", GRAPHS.values(), ids=list(GRAPHS))
def test_no_edge_runs_through_a_node_and_no_number_lies_on_another_or_on_a_node(
    made: Callable[[], bb.BeliefNetwork],
) -> None:
    shown = plots.NetworkDisplay.from_network(made())
    shown.figure_.canvas.draw()
    drawn = [text.get_bbox_patch().get_window_extent() for text in shown.ax_.texts]
    for k, one in enumerate(drawn):
        assert not any(one.overlaps(other) for other in drawn[:k])
    boxes = dict(zip(shown.positions, drawn, strict=False))
    assert list(shown.positions) == shown.nodes and len(shown.ax_.patches) == len(shown.edges)
    for edge in shown.edges:
        points = shown.ax_.transData.transform(along(shown.curves[edge], 100))
        assert not any(box.contains(*point) for node, box in boxes.items() if node not in edge for point in points)
        start, end = points[[0, -1]]
        parent, child = (boxes[node] for node in edge)
        assert parent.contains(*start)
        assert abs(end[0] - child.x0) < 3 and child.y0 < end[1] < child.y1


def test_edges_cross_where_they_must_alone() -> None:
    crossed = graph({"x": ["b"], "y": ["a"], "z": ["x", "y"]}, counted=False)
    shown = plots.NetworkDisplay(crossed)
    up = {node: y for node, (_, y) in shown.positions.items()}
    assert (up["a"] < up["b"]) == (up["y"] < up["x"])


def test_the_target_of_a_tree_is_named_and_its_edges_are_not_drawn() -> None:
    network = bb.BeliefNetwork.tan(bb.datasets.play_tennis(), target="play", level=None)
    shown = plots.NetworkDisplay.from_network(network)
    assert shown.target == "play" and "play" not in shown.positions and len(shown.edges) == 3
    assert "'play'" in shown.ax_.get_title("left")
    drawn = {text.get_text() for text in shown.ax_.texts}
    assert {f"{network.information[edge]:.2f}" for edge in shown.edges} <= drawn
    with pytest.raises(bb.BanburyError, match="a BeliefNetwork"):
        plots.NetworkDisplay.from_network(network.tables)  # type: ignore[arg-type]
    wide = {f"x{k}": {0: 0.5, 1: 0.5} for k in range(151)}
    with pytest.raises(bb.BanburyError, match="at most 150 nodes"):
        plots.NetworkDisplay(bb.BeliefNetwork.from_tables(wide))


def test_the_steps_of_a_histogram_are_shaded(tmp_path):
    rng = np.random.default_rng(0)
    table = {"a": np.round(rng.normal(40, 3, 2000)), "b": rng.normal(0, 1, 2000)}
    density = bb.Density("histogram").fit(table)
    shown = bb.plots.DensityDisplay.from_density(density, ("a", "b"), table)
    assert shown.stepped and shown.hidden == 0.0  # a bin of whole numbers is no narrow peak
    (shades,) = shown.ax_.collections[1:]
    bands = shades.get_array()
    assert {text.get_text() for text in shown.ax_.get_legend().get_texts()} == {"99%", "90%", "50%", "10%"}
    own = np.asarray(density.score_samples(table))
    assert [round(float(np.mean(own >= level)), 2) for level in shown.levels] == pytest.approx(shown.inside, abs=0.05)
    assert bands.max() == 4 and bands.mask.any()
    assert not bb.plots.DensityDisplay.from_density(bb.Density().fit(table), ("a", "b"), table).stepped
    joined = bb.Density({("a", "b"): bb.Histogram()}).fit(table)
    assert bb.plots.DensityDisplay.from_density(joined, ("a", "b"), table).stepped


def test_a_column_of_values_has_no_axis_in_a_density() -> None:
    cars = {"mpg": np.arange(20.0), "origin": ["usa", "japan"] * 10, "weight": np.arange(20.0) ** 2}
    for density in (bb.Mixture(2, starts=1).fit(cars), bb.Density().fit(cars)):
        with pytest.raises(BadSetting, match="column 'origin' is of family categorical, but a numeric column"):
            plots.DensityDisplay.from_density(density, ("mpg", "origin"), cars)
        with pytest.raises(UnknownColumn, match="no column 'wieght'"):
            plots.DensityDisplay.from_density(density, ("mpg", "wieght"), cars)


def test_components_without_rows_do_not_hinder_the_picture() -> None:
    rng = np.random.default_rng(0)
    table = {"age": rng.integers(17, 90, 400), "hours": np.where(rng.random(400) < 0.5, 40, rng.integers(1, 99, 400))}
    with pytest.warns(bb.BanburyWarning, match="ended with less than half a row"):
        mixture = bb.Mixture(4, features="histogram", starts=1).fit(table)
    assert np.isneginf(mixture.model_.log_prior).any()
    shown = plots.DensityDisplay.from_density(mixture, ["age", "hours"], table, steps=30)
    assert np.isfinite(shown.log_density).all()
    assert set(shown.components) == set(np.flatnonzero(np.isfinite(mixture.model_.log_prior)).tolist())
