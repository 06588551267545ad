"""Draws the pictures of docs/reference/gallery.md: `python -m docs.make_pictures [name ...]`, into docs/pictures.

BANBURY_DATA names the folder of public data sets; pictures that need one are left as they are without it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from benchmarks import datasets, suspicious
from matplotlib import pyplot
from PIL import Image
from sklearn.datasets import load_iris

import banbury as bb
from banbury.plots.display import COLOURS as LINE_COLOURS
from banbury.plots.display import MARKS, Display, legend_beside
from banbury.quality.calibration import calibrate
from banbury.reading import read

FOLDER = Path(__file__).parent / "pictures"
COLOURS = 256  # of a picture's palette: files stay small, and nobody sees the difference


def iris() -> dict[str, object]:
    flowers = load_iris()
    columns = {name.removesuffix(" (cm)") + ", cm": flowers.data[:, j] for j, name in enumerate(flowers.feature_names)}
    return {**columns, "species": flowers.target_names[flowers.target]}


def densities() -> Display:
    flowers = iris()
    model = bb.estimate(bb.count(flowers, target="species", features="gaussian"))
    return bb.plots.LikelihoodDisplay.from_model(model, "petal length, cm", flowers)


def kernel_densities() -> Display:
    wines = bb.datasets.wine()
    model = bb.estimate(bb.count(wines, target="cultivar", features=bb.KernelDensity()))
    return bb.plots.LikelihoodDisplay.from_model(model, "proline", wines, prior=True)


def counts() -> Display:
    with datasets.adult() as (train, _, reading):
        features = {"hours_per_week": bb.Histogram(), "education_num": bb.Poisson()}
        model = bb.estimate(bb.count(train, target=datasets.INCOME, features=features, **reading))
        return bb.plots.LikelihoodDisplay.from_model(model, "education_num", read(train, **reading))


def bars() -> Display:
    with datasets.adult() as (train, _, reading):
        model = bb.estimate(bb.count(train, target=datasets.INCOME, **reading))
        return bb.plots.LikelihoodDisplay.from_model(model, "occupation")


def boundary() -> Display:
    flowers = iris()
    model = bb.estimate(bb.count(flowers, target="species", features="gaussian"))
    return bb.plots.DecisionBoundaryDisplay.from_model(model, ["petal length, cm", "petal width, cm"], flowers)


def difference() -> Display:
    flowers = iris()
    model = bb.estimate(bb.count(flowers, target="species", features=bb.Gaussian(variance="shared")))
    two = ["petal length, cm", "petal width, cm"]
    return bb.plots.DecisionBoundaryDisplay.from_model(model, two, flowers, difference=["virginica", "versicolor"])


def evidence() -> Display:
    with datasets.adult() as (train, test, reading):
        model = bb.estimate(bb.count(train, target=datasets.INCOME, **reading))
        rows = np.genfromtxt(test, delimiter=",", dtype=str, max_rows=8, autostrip=True)
        row = dict(zip(datasets.ADULT[:-1], rows[7].tolist(), strict=False))
        row = {name: float(value) if value.lstrip("-").isdigit() else value for name, value in row.items()}
        return bb.plots.EvidenceDisplay.from_model(model, row)


def newsgroups(train: bool = True) -> tuple[list[str], list[str]]:
    with datasets.unpack_folder("20news-bydate") as folder:
        return datasets.texts(folder / f"20news-bydate-{'train' if train else 'test'}")


def words() -> Display:
    model = bb.estimate(bb.count(*newsgroups()))
    text = "The shuttle launch was delayed again: a valve in the main engine froze, and NASA wants the orbit checked."
    return bb.plots.EvidenceDisplay.from_model(model, text, n=12)


def nomogram() -> Display:
    flowers = iris()
    model = bb.estimate(bb.count(flowers, target="species", features="gaussian"))
    return bb.plots.NomogramDisplay.from_model(model, "virginica", "versicolor", data=flowers)


def nomogram_row() -> Display:
    with datasets.adult() as (train, _, reading):
        features = {
            "capital_gain": bb.Bernoulli(threshold=0),
            "capital_loss": bb.Bernoulli(threshold=0),
            "fnlwgt": None,
            "native_country": None,
        }
        model = bb.estimate(bb.count(train, target=datasets.INCOME, features=features, **reading))
        row = {
            "age": 38.0,
            "workclass": "Private",
            "education": "Bachelors",
            "education_num": 13.0,
            "marital_status": "Married-civ-spouse",
            "occupation": None,
            "relationship": "Husband",
            "race": "White",
            "sex": "Male",
            "capital_gain": 0.0,
            "capital_loss": 0.0,
            "hours_per_week": 45.0,
        }
        return bb.plots.NomogramDisplay.from_model(model, ">50K", data=train, row=row, n=8, **reading)


def weighed_census(leave_out: tuple[str, ...] = ()) -> bb.Model:
    with datasets.adult() as (train, _, reading):
        features = dict.fromkeys(leave_out)
        tally = bb.count(train, datasets.INCOME, features=features or "auto", missing="category", **reading)
        return bb.weigh(tally, train, datasets.INCOME, **reading)


MANAGER = {
    "age": 38.0,
    "workclass": "Private",
    "fnlwgt": 200_000.0,
    "education": "Bachelors",
    "education_num": 13.0,
    "marital_status": "Married-civ-spouse",
    "occupation": "Exec-managerial",
    "relationship": "Husband",
    "race": "White",
    "sex": "Male",
    "capital_gain": 0.0,
    "capital_loss": 0.0,
    "hours_per_week": 45.0,
    "native_country": "United-States",
}


def evidence_weighed() -> Display:
    model = weighed_census()
    two = {"plain": model.weighed(None).explain(MANAGER), "weighed": model.explain(MANAGER)}
    return bb.plots.ComparedEvidenceDisplay.from_explanations(two, n=14)


def shapes() -> Display:
    return bb.plots.shapes(weighed_census(("fnlwgt",)), ">50K")


def confusion() -> Display:
    train, train_groups = newsgroups()
    test, test_groups = newsgroups(train=False)
    model = bb.estimate(bb.count(train, train_groups))
    return bb.plots.ConfusionMatrixDisplay.from_predictions(test_groups, model.predict(test))


def learning() -> Display:
    with datasets.unpack_folder("sms-spam") as folder:
        lines = (folder / "SMSSpamCollection").read_text(encoding="utf-8").splitlines()
    kinds, messages = zip(*(line.split("\t", 1) for line in lines), strict=True)
    curve = bb.learning_curve(list(messages), list(kinds), peer="logistic_regression")
    return bb.plots.LearningCurveDisplay.from_learning_curve(curve)


def calibration() -> Display:
    with datasets.adult() as (train, test, reading):
        found = bb.cross_validate(train, target=datasets.INCOME, folds=5, **reading)
        with np.errstate(divide="ignore"):
            honest = calibrate("isotonic", np.log(found.posteriors), found.truth)
        model = bb.estimate(bb.count(train, target=datasets.INCOME, **reading)).calibrated(honest)
        return bb.plots.CalibrationDisplay.from_model(model, test, **reading)


def bandwidth() -> Display:
    wines = {"proline": bb.datasets.wine()["proline"], "drink": ["wine"] * 178}
    model = bb.estimate(bb.count(wines, target="drink", features=bb.KernelDensity()))
    return bb.plots.BandwidthDisplay.from_model(model, "proline")


def posterior() -> Display:
    flowers = {name.removesuffix(", cm"): values for name, values in iris().items()}
    space = bb.thresholds(
        flowers,
        "species",
        labels=["other", "virginica"],
        likelihood="label_noise",
        noise=0.1,
        prior="description_length",
    )
    mixed = np.random.default_rng(0).permutation(150)[:60]
    rows = {name: np.asarray(values)[mixed] for name, values in flowers.items()}
    virginica = np.where(rows["species"] == "virginica", "virginica", "other")
    return bb.plots.PosteriorDisplay.from_hypotheses(space, rows, virginica)


def density() -> Display:
    flowers = {name: column for name, column in iris().items() if name != "species"}
    pair = ("petal length, cm", "petal width, cm")
    fitted = bb.Density(features={pair: bb.Gaussian(covariance="full")}).fit(flowers)
    return bb.plots.DensityDisplay.from_density(fitted, pair, flowers)


def mixture() -> Display:
    pair = ("petal length, cm", "petal width, cm")
    flowers = {name: column for name, column in iris().items() if name in pair}
    fitted = bb.Mixture(3, features={pair: bb.Gaussian(covariance="full")}).fit(flowers)
    return bb.plots.DensityDisplay.from_density(fitted, pair, flowers)


def tree() -> Display:
    with datasets.adult() as (train, _, reading):
        network = bb.BeliefNetwork.tan(train, target=datasets.INCOME, root="occupation", **reading)
    return bb.plots.NetworkDisplay.from_network(network)


def network() -> Display:
    parents = {
        "tuberculosis": ["asia"],
        "cancer": ["smoking"],
        "bronchitis": ["smoking"],
        "either": ["tuberculosis", "cancer"],
        "xray": ["either"],
        "dyspnoea": ["either", "bronchitis"],
    }
    nodes = {name: above for above in parents.values() for name in above} | parents
    tables = {name: np.full([2] * (1 + len(parents.get(name, []))), 0.5) for name in nodes}
    values = {name: ["no", "yes"] for name in nodes}
    return bb.plots.NetworkDisplay.from_network(bb.BeliefNetwork.from_tables(tables, parents, values=values))


ALWAYS = (
    density,
    mixture,
    densities,
    kernel_densities,
    boundary,
    difference,
    nomogram,
    bandwidth,
    posterior,
    network,
)


def convergence() -> Display:
    train, groups = newsgroups()
    posts, labels = np.random.default_rng(0).permutation(len(train))[:10_300], np.array(groups, dtype=object)
    labels[posts[300:]] = None
    features = bb.Text(min_count=3, drop_most_frequent=100)
    learned = bb.SemiSupervisedClassifier(features, alpha=0.01).fit([train[i] for i in posts], labels[posts])
    return bb.plots.ConvergenceDisplay.from_estimator(learned)


def labels() -> Display:
    train, test = datasets.reuters()
    clf = bb.MultiLabelClassifier().fit(train.texts, train.topics)
    return bb.plots.LabelsDisplay.from_model(clf, test.texts, test.topics)


class NextLabels(Display):
    """Learning curves of rows that are asked for and of rows at random, beside each other."""

    def _draw(self, ax: object) -> None:
        self.figure_, places = pyplot.subplots(1, len(suspicious.CURVES), figsize=(10.5, 3.1), layout="constrained")
        self.ax_ = places
        for name, place in zip(suspicious.CURVES, places, strict=True):
            sizes, found = suspicious.curves(name)
            for (what, each), colour, mark in zip(found.items(), LINE_COLOURS, MARKS, strict=False):
                error = each.std(axis=0, ddof=1) / len(each) ** 0.5
                place.errorbar(sizes, each.mean(axis=0), error, color=colour, marker=mark, markersize=4, label=what)
            place.set(title=f"{suspicious.DATA[name][2]}, {len(each)} draws", xlabel="labels")
        places[0].set_ylabel("accuracy on 2,000 rows held out")
        legend_beside(places[-1], title="rows")


def next_labels() -> Display:
    return NextLabels().plot()


WITH_DATA = {
    tree: "adult",
    counts: "adult",
    bars: "adult",
    evidence: "adult",
    nomogram_row: "adult",
    evidence_weighed: "adult",
    shapes: "adult",
    calibration: "adult",
    learning: "sms-spam",
    words: "20news-bydate",
    confusion: "20news-bydate",
    convergence: "20news-bydate",
    labels: "reuters21578",
    next_labels: "20news-bydate",
}


def write(picture: Callable[[], Display]) -> None:
    shown = picture()
    drawn = io.BytesIO()
    shown.figure_.savefig(drawn, format="png", dpi=100)
    path = FOLDER / f"{picture.__name__}.png"
    Image.open(drawn).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    pyplot.close(shown.figure_)
    print(f"{path.name}  {path.stat().st_size / 1000:.0f} kB")


def main(wanted: list[str]) -> None:
    matplotlib.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    for picture in (*ALWAYS, *WITH_DATA):
        if wanted and picture.__name__ not in wanted:
            continue
        if picture in WITH_DATA and not datasets.has_data(WITH_DATA[picture]):
            print(f"{picture.__name__} needs {WITH_DATA[picture]}; {datasets.UNSET}")
            continue
        write(picture)


if __name__ == "__main__":
    main(sys.argv[1:])
