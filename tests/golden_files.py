"""The files of tests/golden/format-1/, and what they answer. Run as a script, it makes them."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import banbury as bb
from banbury.files import FORMAT

FOLDER = Path(__file__).parent / "golden"
N = 12
MIXED: dict[str, Any] = {
    "flag": [True, False, None, True, True, False, False, True, None, False, True, False],
    "threshold": [0.1, 0.9, 0.4, 3.0, 0.2, 0.7, 0.6, 0.1, None, 2.0, 0.3, 0.8],
    "word": ["ä", "b", "", "b", None, "ä", "c", "b", "ä", "c", "c", "b"],
    "whole": [1, 2, -3, 2, 1, 1, None, 2**60, -3, 2, 1, 1],
    "real": [1.5, -2.25, 1e12, 0.125, None, 3.5, 7.75, -1.0, 2.0, 1.25, 0.5, 4.0],
    "count": [0, 3, 1, 7, 2, 0, None, 5, 1, 1, 4, 2],
    "bins": [0.5, 1.5, 2.5, 2.75, 9.0, None, 4.5, 3.25, 1.0, 0.25, 8.5, 7.0],
    "density": [1.0, 1.25, 3.0, 2.5, None, 7.5, 6.0, 1.75, 2.0, 5.5, 4.0, 3.5],
    "text": ["good lunch", "bad, bad day", "a day", None, "lunch ünder trees", "trees", "good day", "", "bad lunch",
             "day of lunch", "trees and trees", "good good"],
    "class": [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3],
}  # fmt: skip
FAMILIES: dict[str, Any] = {
    "flag": bb.Bernoulli(alpha=2),
    "threshold": bb.Bernoulli(threshold=0.5),
    "word": bb.Categorical(missing="category"),
    "whole": bb.Categorical(alpha={1: 1.0, 2: 2.0, -3: 3.0, 2**60: 0.5}),
    "real": bb.Gaussian("shared", bb.NormalInverseGamma(1, 2, 3, 4)),
    "count": bb.Poisson(1, 2),
    "bins": bb.Histogram(start=0.0, width=0.5),
    "density": bb.KernelDensity("epanechnikov", "silverman"),
    "text": bb.Text(model="complement", idf=True, ngrams=(1, 2), stop_words=["of"]),
}
WEIGHTS = [0.1, 0.7, 1.3, 2.0, 0.1, 1.0, 1.0, 3.5, 0.25, 1.0, 1.0, 0.9]
TEXTS = ["The plain tale", "a tale of trees", "ünder the trees", "plain and simple: trees, trees", "simple as that"]
LABELS = ["tale", "tale", "tree", "tree", "other"]


@cache
def mixed() -> bb.Model:
    """A model of every family, of fractional weights, calibrated."""
    tally = bb.count(MIXED, "class", features=FAMILIES, weights=WEIGHTS)
    model = bb.estimate(tally, how="predictive", alpha=0.5, class_prior={1: 0.25, 2: 0.25, 3: 0.5}, seed=3)
    scores = model.log_posterior({name: column for name, column in MIXED.items() if name != "class"})
    return model.calibrated(bb.calibrate("platt", scores, [label - 1 for label in MIXED["class"]]))


def text() -> bb.Tally:
    """A tally of texts."""
    return bb.count(TEXTS, target=LABELS)


NODES = {name: FAMILIES[name] for name in ("flag", "threshold", "word", "whole")} | {"bins": bb.Histogram(bins=4)}


def tree() -> bb.Model:
    """A model of a tree: flags, values and bins, of fractional weights."""
    tree = bb.ColumnTree(level=None, columns=NODES)
    table = {name: MIXED[name] for name in (*NODES, "class")}
    return bb.estimate(bb.count(table, "class", features=tree, weights=WEIGHTS), how="map", alpha=1.5)


def network() -> bb.BeliefNetwork:
    """A network that was counted: flags, values and bins, of fractional weights."""
    parents = {"flag": ["word"], "bins": ["word", "flag"], "whole": ["bins"], "threshold": []}
    return bb.BeliefNetwork.count(MIXED, parents, how="map", alpha=1.5, features=NODES, weights=WEIGHTS)


def lawn() -> bb.BeliefNetwork:
    """A network of tables that were given."""
    return bb.BeliefNetwork.from_tables(
        {
            "cloudy": {True: 0.5, False: 0.5},
            "sprinkler": [[0.1, 0.5], [0.9, 0.5]],
            "rain": {True: {True: 0.8, False: 0.2}, False: {True: 0.2, False: 0.8}},
            "wet": {
                ("on", True): {True: 0.99, False: 0.01},
                ("on", False): {True: 0.9, False: 0.1},
                ("off", True): {True: 0.9, False: 0.1},
                ("off", False): {True: 0.0, False: 1.0},
            },
        },
        parents={"sprinkler": ["cloudy"], "rain": ["cloudy"], "wet": ["sprinkler", "rain"]},
        values={"sprinkler": ["on", "off"], "cloudy": [True, False]},
    )


MADE: dict[str, Any] = {"mixed": mixed, "text": text, "tree": tree, "network": network, "tables": lawn}
ASKED = {"tables": "wet", "network": "bins"}  # the node that is asked for, where there is no class


def rows(name: str) -> Any:
    if name == "tables":
        return {"cloudy": [True, False, None], "sprinkler": ["on", None, "never"]}
    return TEXTS if name == "text" else {name: column for name, column in MIXED.items() if name != "class"}


def posteriors(thing: bb.Model | bb.Tally | bb.BeliefNetwork, name: str) -> list[list[float]]:
    with warnings.catch_warnings():  # some columns are no nodes of a network, and some nodes no columns
        warnings.simplefilter("ignore", bb.BanburyWarning)
        if name in ASKED:
            return thing.posterior(rows(name), of=ASKED[name]).tolist()  # type: ignore[union-attr]
        model = bb.estimate(thing) if isinstance(thing, bb.Tally) else thing
        return model.posterior(rows(name)).tolist()


def classes(thing: Any, name: str) -> list[Any]:
    return list(thing.values[ASKED[name]] if name in ASKED else thing.classes)


def write() -> None:
    folder = FOLDER / f"format-{FORMAT}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in MADE.items():
        thing = make()
        bb.save(thing, folder / f"{name}.banbury")
        found = {"rows": rows(name), "classes": classes(thing, name), "posteriors": posteriors(thing, name)}
        (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
