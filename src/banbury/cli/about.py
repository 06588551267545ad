"""What is said of a tally, a model or a network: its rows, its classes, and what each column is."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.cli import output
from banbury.errors import many
from banbury.labels import LabelModel
from banbury.model.naive_bayes import Model
from banbury.model.networks import BeliefNetwork, has_tree
from banbury.sums import rows_of
from banbury.tally.label_sets import EVERY
from banbury.tally.tally import Tally
from banbury.weighing import Weighing

Kept: TypeAlias = Model | Tally | BeliefNetwork | LabelModel

SHOWN = 40  # columns
CLASSES_SHOWN = 6


def sums(kept: Kept) -> Tally | BeliefNetwork:
    """What adds and subtracts: of a model its tally."""
    return kept if isinstance(kept, (Tally, BeliefNetwork)) else kept.tally


def summary(kept: Kept) -> dict[str, Any]:
    """What was counted, and how it was estimated, as JSON can hold it."""
    described: Any = {"network": _of_network, "tally": _of_tally, "model of labels": _of_labels, "model": _of_model}
    facts: dict[str, Any] = described[kept.kind](kept)
    return facts


def _of_model(model: Model) -> dict[str, Any]:
    calibration = None if model.calibration is None else str(model.calibration)
    nodes = {"nodes": _nodes(BeliefNetwork.from_model(model))} if has_tree(model) else {}
    return {**_of_tally(model.tally), **estimation(model), "calibration": calibration, **weights_facts(model), **nodes}


def tree(model: Model) -> list[str]:
    """What each column of a tree depends on."""
    return ["", str(BeliefNetwork.from_model(model))] if has_tree(model) else []


def _of_labels(model: LabelModel) -> dict[str, Any]:
    """The labels, how many rows have each, and how probable they must be."""
    facts = _of_tally(model.tally)
    choice = model.choice
    thresholds = dict(zip(model.labels, model.thresholds.probabilities.tolist(), strict=True))
    facts["labels"] = [{**each, "threshold": thresholds[each["label"]]} for each in facts["labels"]]
    weighing, calibration = (None if part is None else str(part) for part in (model.weighing, model.calibration))
    return {**facts, "how": choice.how, "alpha": choice.alpha, "weighing": weighing, "calibration": calibration}


def weights_facts(model: Model) -> dict[str, Any]:
    """What its evidence is worth, where it is weighed."""
    weighing = model.weighing
    if not isinstance(weighing, Weighing):
        return {}
    looked_at, every = weighing.count_pairs()
    facts = {"weights": weighing.worth(), "pairs_looked_at": looked_at, "pairs": every}
    facts |= {"strength": weighing.weights.strength, "temperature": weighing.weights.temperature}
    fitted_texts = zip(weighing.texts, weighing.weights.texts, strict=True)
    texts = {column.column: {"words": len(column.words), "strength": text.strength} for column, text in fitted_texts}
    facts |= {"texts": texts} if texts else {}
    return {"weighing": {**facts, "stale": weighing.is_stale(model.tally)}}


def _of_tally(tally: Tally) -> dict[str, Any]:
    schema = tally.schema
    classes = {"classes": _classes(tally.classes, tally.rows)}
    if schema.labels is not None:
        label_rows = zip(tally.classes, tally.rows.value.tolist(), strict=True)
        classes = {"labels": [{"label": label, "rows": rows} for label, rows in label_rows if label != EVERY]}
    features = [
        {"name": f.name, "family": str(f.family), "why": f.why, "missing": tally.missing[f.name]}
        for f in schema.features
    ]
    facts = {"rows": tally.n_rows, "skipped": tally.skipped, "rounded": tally.rounded, "target": schema.target}
    return {**facts, **classes, "features": features, "left_out": dict(schema.left_out), **_read_with(schema.reading)}


def _of_network(network: BeliefNetwork) -> dict[str, Any]:
    """The same of a network; one whose tables were given has no rows."""
    counted = network.sums
    facts: dict[str, Any] = {"rows": None if counted is None else network.n_rows, "target": network.target}
    if counted is not None and network.target is not None:
        target = network.nodes.index(network.target)
        facts["classes"] = _classes(network.values[network.target], counted.seen[target])
    facts |= {"nodes": _nodes(network), "left_out": dict(network.left_out), **_read_with(network.reading)}
    return facts if counted is None else {**facts, **estimation(network)}


def _read_with(reading: Mapping[str, Any]) -> dict[str, Any]:
    return {"reading": dict(reading)} if reading else {}


def _nodes(network: BeliefNetwork) -> list[dict[str, Any]]:
    """What each node depends on, and the values it may have."""
    parents = network.parents
    descriptions = ((v.name, list(parents[v.name]), v.kind, list(v.values)) for v in network.variables)
    return [dict(zip(("name", "parents", "kind", "values"), facts, strict=True)) for facts in descriptions]


def _classes(names: tuple[Any, ...], rows: Integers) -> list[dict[str, Any]]:
    return [{"class": name, "rows": n} for name, n in zip(names, rows_of(rows).tolist(), strict=True)]


def estimation(model: Model | BeliefNetwork) -> dict[str, Any]:
    """How it was estimated."""
    return {"how": model.choice.how, "alpha": model.choice.alpha, "seed": model.choice.seed}


# In words, of a summary ----------------------------------------------------------------------------------------------


def rows(args: Namespace, facts: Mapping[str, Any]) -> str:
    weighted = getattr(args, "weights", None) is not None or isinstance(facts["rows"], float)
    skipped = f" (and {facts['skipped']:,} without a class)" if facts.get("skipped") else ""
    return f"{facts['rows']:,.15g} row{'s' * (facts['rows'] != 1)}{' by weight' * weighted}{skipped}"


def classes(facts: Mapping[str, Any], of: str = "") -> str:
    """How many classes there are, and how large; of a network without a target the nodes."""
    if "labels" in facts:
        labels = sorted(facts["labels"], key=lambda each: -each["rows"])
        each = (f"{errors.shortened(own['label'])} {own['rows']:,.6g}" for own in labels)
        return f"{many(len(labels), 'label')}{of}: {errors.listed(each, CLASSES_SHOWN)}"
    if "classes" not in facts:
        return many(len(facts["nodes"]), "node")
    numbers = np.array([each["rows"] for each in facts["classes"]], dtype=np.float64)
    if not len(numbers):
        return "no class"
    shares = numbers / numbers.sum()
    names = [errors.shortened(each["class"]) for each in facts["classes"]]
    each = (f"{names[c]} {shares[c]:.1%}" for c in np.argsort(-shares, kind="stable"))
    return f"{many(len(names), 'class')}{of}: {errors.listed(each, CLASSES_SHOWN)}"


def columns(facts: Mapping[str, Any]) -> str:
    """A line for each column: its family and why, how many values are missing if any are; of a network what it depends on."""
    lines: list[tuple[str, ...]] = []
    if "nodes" in facts:
        header = ["column", "values", "given"]
        right = 1
        nodes = [node for node in facts["nodes"] if node["name"] != facts["target"]]
        lines = [(node["name"], f"{len(node['values']):,}", errors.listed(node["parents"])) for node in nodes]
    else:
        any_missing = any(feature["missing"] for feature in facts["features"])
        header = ["column", "family", "why", *["missing"] * any_missing]
        right = 3
        for feature in facts["features"]:
            missing = f"{feature['missing']:,.6g}" if feature["missing"] else ""
            lines.append((feature["name"], feature["family"], feature["why"], *[missing] * any_missing))
    more = [("…", f"{len(lines) - SHOWN:,} more", *[""] * (len(header) - 2))] if len(lines) > SHOWN else []
    return output.table(header, [*lines[:SHOWN], *more], right=[right])


def weights(facts: Mapping[str, Any]) -> list[str]:
    """What the evidence of columns and pairs is worth, the most first; and whether rows came or went since."""
    if "weighing" not in facts:
        return []
    sorted_weights = sorted(facts["weighing"]["weights"].items(), key=lambda pair: -pair[1])
    lines = [(name, f"{weight:.2f}") for name, weight in sorted_weights[:SHOWN]]
    more = [("…", f"{len(sorted_weights) - SHOWN:,} more")] if len(sorted_weights) > SHOWN else []
    stale = (
        ["rows have been learned or forgotten since these weights were learned"] if facts["weighing"]["stale"] else []
    )
    return ["", output.table(["evidence", "weight"], [*lines, *more], right=[1]), *stale]


def columns_left_out(facts: Mapping[str, Any]) -> list[str]:
    if not facts["left_out"]:
        return []
    return ["", output.table(["left out", "why"], list(facts["left_out"].items())[:SHOWN])]
