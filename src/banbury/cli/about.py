"""Describes a tally, a model or a network as JSON and in words: its rows, its classes and its columns."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.cli import output
from banbury.errors import many
from banbury.files.checking import JsonObject
from banbury.labels import LabelModel
from banbury.model.naive_bayes import Model
from banbury.model.networks import BeliefNetwork, has_tree
from banbury.sums import readable_counts
from banbury.tally.label_sets import EVERY
from banbury.tally.tally import Tally
from banbury.weighing import Weighing

# What a file can contain.
Kept: TypeAlias = Model | Tally | BeliefNetwork | LabelModel

MOST_COLUMNS_LISTED = 40  # columns that are listed
MOST_CLASSES_LISTED = 6  # classes that are named


def sums(loaded: Kept) -> Tally | BeliefNetwork:
    """Returns what can be added and subtracted of ``loaded``: a tally or a network itself, of a model its tally."""
    return loaded if isinstance(loaded, (Tally, BeliefNetwork)) else loaded.tally


def summary(loaded: Kept) -> JsonObject:
    """Returns what was counted in ``loaded`` and how it was estimated, as a dictionary for JSON."""
    describe_by_kind: Any = {  # functions that return the summary of an object, by its kind
        "network": _of_network,
        "tally": _of_tally,
        "model of labels": _of_labels,
        "model": _of_model,
    }
    return describe_by_kind[loaded.kind](loaded)  # type: ignore[no-any-return]


def _of_model(model: Model) -> JsonObject:
    """Returns the summary of a single-label model: that of its tally, how it was estimated, its calibration, its
    weights if it is weighed, and its nodes if it is a tree.
    """
    calibration = None if model.calibration is None else str(model.calibration)
    nodes = {"nodes": _nodes(BeliefNetwork.from_model(model))} if has_tree(model) else {}  # the entry of a tree
    return {**_of_tally(model.tally), **estimation(model), "calibration": calibration, **weights_facts(model), **nodes}


def tree(model: Model) -> list[str]:
    """Returns lines (an empty one first) that say what each column of a tree model depends on; none for other models."""
    return ["", str(BeliefNetwork.from_model(model))] if has_tree(model) else []


def _of_labels(model: LabelModel) -> JsonObject:
    """Returns the summary of a multi-label model: its labels with their rows and thresholds, and how it was estimated."""
    facts = _of_tally(model.tally)
    choice = model.choice  # how parameters are estimated
    thresholds = dict(zip(model.labels, model.thresholds.probabilities.tolist(), strict=True))  # by label, from 0 to 1
    facts["labels"] = [{**label, "threshold": thresholds[label["label"]]} for label in facts["labels"]]
    weighing, calibration = (  # as texts; None without them
        None if adjustment is None else str(adjustment) for adjustment in (model.weighing, model.calibration)
    )
    return {**facts, "how": choice.how, "alpha": choice.alpha, "weighing": weighing, "calibration": calibration}


def weights_facts(model: Model) -> JsonObject:
    """Returns the weights of the evidence for the summary, as an object under "weighing"; empty if the model is not
    weighed.
    """
    weighing = model.weighing
    if not isinstance(weighing, Weighing):
        return {}
    n_examined, n_pairs = weighing._count_pairs()  # pairs of columns
    # ``worth`` returns the weight of each column, trend and pair by name.
    facts = {"weights": weighing.worth(), "pairs_examined": n_examined, "pairs": n_pairs}
    facts |= {"strength": weighing.weights.strength, "temperature": weighing.weights.temperature}
    learned_texts = weighing.weights.texts  # the weighed text columns: column, words and strength of each
    texts = {text.column: {"words": len(text.words), "strength": text.strength} for text in learned_texts}
    facts |= {"texts": texts} if texts else {}
    return {"weighing": {**facts, "stale": weighing.is_stale(model.tally)}}


def _of_tally(tally: Tally) -> JsonObject:
    """Returns the summary of a tally: rows, classes or labels, features with their families, columns left out, reading
    options.
    """
    schema = tally.schema
    classes = {"classes": _classes(tally.classes, tally.rows)}  # the entry for classes, or for labels
    if schema.labels is not None:
        label_rows = zip(tally.classes, tally.rows.value.tolist(), strict=True)
        classes = {"labels": [{"label": label, "rows": rows} for label, rows in label_rows if label != EVERY]}
    features = [
        {
            "name": feature.name,
            "family": str(feature.family),
            "why": feature.why,
            "missing": tally.missing[feature.name],
        }
        for feature in schema.features
    ]
    facts = {"rows": tally.n_rows, "skipped": tally.skipped, "rounded": tally.rounded, "target": schema.target}
    return {**facts, **classes, "features": features, "left_out": dict(schema.left_out), **_read_with(schema.reading)}


def _of_network(network: BeliefNetwork) -> JsonObject:
    """Returns the summary of a network: nodes and classes; rows only if its tables were counted."""
    counts = network._counts  # None if the tables were given
    facts: JsonObject = {"rows": None if counts is None else network.n_rows, "target": network.target}
    if counts is not None and network.target is not None:
        target_index = network.nodes.index(network.target)
        facts["classes"] = _classes(network.values[network.target], counts.value_counts[target_index])
    facts |= {"nodes": _nodes(network), "left_out": dict(network.left_out), **_read_with(network._reading)}
    return facts if counts is None else {**facts, **estimation(network)}


def _read_with(reading: Mapping[str, Any]) -> JsonObject:
    """Returns the reading options for the summary as an object under "reading"; empty if all are the defaults."""
    return {"reading": dict(reading)} if reading else {}


def _nodes(network: BeliefNetwork) -> list[JsonObject]:
    """Returns a dictionary for each node: its name, parents, kind and values."""
    parents = network.parents
    descriptions = (
        (variable.name, list(parents[variable.name]), variable.kind, list(variable.values))
        for variable in network._variables
    )
    return [dict(zip(("name", "parents", "kind", "values"), facts, strict=True)) for facts in descriptions]


def _classes(names: tuple[Any, ...], rows: Integers) -> list[JsonObject]:
    """Returns a dictionary for each class: its name and its number of rows. ``rows``: the number of rows of each class,
    in the units of a tally.
    """
    return [{"class": name, "rows": n_rows} for name, n_rows in zip(names, readable_counts(rows).tolist(), strict=True)]


def estimation(model: Model | BeliefNetwork) -> JsonObject:
    """Returns the settings with which a model or network was estimated."""
    return {"how": model.choice.how, "alpha": model.choice.alpha, "seed": model.choice.seed}


# In words, of a summary ----------------------------------------------------------------------------------------------


def rows(args: Namespace, facts: JsonObject) -> str:
    """Returns the number of rows in words, and how many had no class. ``args``: the options, of which ``--weights``
    says that rows have weights; ``facts``: a summary, as ``summary`` returns it.
    """
    is_weighted = getattr(args, "weights", None) is not None or isinstance(facts["rows"], float)
    skipped = f" (and {facts['skipped']:,} without a class)" if facts.get("skipped") else ""
    return f"{facts['rows']:,.15g} row{'s' * (facts['rows'] != 1)}{' by weight' * is_weighted}{skipped}"


def classes(facts: JsonObject, target_phrase: str = "") -> str:
    """Returns the number of classes and the largest ones in words; for a network without a target, the number of nodes.
    ``facts``: a summary, as ``summary`` returns it; ``target_phrase``: such as `` of 'income'``.
    """
    if "labels" in facts:
        labels = sorted(facts["labels"], key=lambda label: -label["rows"])
        label_texts = (f"{errors.shortened(label['label'])} {label['rows']:,.6g}" for label in labels)
        return f"{many(len(labels), 'label')}{target_phrase}: {errors.listed(label_texts, MOST_CLASSES_LISTED)}"
    if "classes" not in facts:
        return many(len(facts["nodes"]), "node")
    rows_by_class = np.array([entry["rows"] for entry in facts["classes"]], dtype=np.float64)
    if not len(rows_by_class):
        return "no class"
    shares = rows_by_class / rows_by_class.sum()  # of the rows, one per class
    names = [errors.shortened(entry["class"]) for entry in facts["classes"]]
    class_texts = (
        f"{names[class_number]} {shares[class_number]:.1%}" for class_number in np.argsort(-shares, kind="stable")
    )
    return f"{many(len(names), 'class')}{target_phrase}: {errors.listed(class_texts, MOST_CLASSES_LISTED)}"


def columns(facts: JsonObject) -> str:
    """Returns a table of the columns: family, reason and missing values; for a network the parents of each node.
    ``facts``: a summary, as ``summary`` returns it.
    """
    lines: list[tuple[str, ...]] = []  # the cells of each line
    if "nodes" in facts:
        header = ["column", "values", "given"]
        number_column = 1  # the index of the column of numbers
        nodes = [node for node in facts["nodes"] if node["name"] != facts["target"]]
        lines = [(node["name"], f"{len(node['values']):,}", errors.listed(node["parents"])) for node in nodes]
    else:
        any_missing = any(feature["missing"] for feature in facts["features"])
        header = ["column", "family", "why", *["missing"] * any_missing]
        number_column = 3
        for feature in facts["features"]:
            # How many rows lack a value, as text.
            missing = f"{feature['missing']:,.6g}" if feature["missing"] else ""
            lines.append((feature["name"], feature["family"], feature["why"], *[missing] * any_missing))
    return output.table(header, _first_lines(lines), right=[number_column])


def _first_lines(lines: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Returns the first MOST_COLUMNS_LISTED ``lines`` of a table (tuples of the texts of their cells), and a line that
    says how many more there are, if there are more.
    """
    n_omitted = len(lines) - MOST_COLUMNS_LISTED
    if n_omitted <= 0:
        return lines
    return [*lines[:MOST_COLUMNS_LISTED], ("…", f"{n_omitted:,} more", *[""] * (len(lines[0]) - 2))]


def weights(facts: JsonObject) -> list[str]:
    """Returns lines with the weight of each column and pair, the largest first, and whether rows have changed since
    they were learned. ``facts``: a summary, as ``summary`` returns it.
    """
    if "weighing" not in facts:
        return []
    # Pairs of the name of a column or pair of columns and its weight.
    sorted_weights = sorted(facts["weighing"]["weights"].items(), key=lambda pair: -pair[1])
    lines = _first_lines([(name, f"{weight:.2f}") for name, weight in sorted_weights])
    warning = "rows have been learned or forgotten since these weights were learned"
    return ["", output.table(["evidence", "weight"], lines, right=[1]), *[warning] * facts["weighing"]["stale"]]


def columns_left_out(facts: JsonObject) -> list[str]:
    """Returns lines with the columns left out and the reasons. ``facts``: a summary, as ``summary`` returns it."""
    if not facts["left_out"]:
        return []
    return ["", output.table(["left out", "why"], list(facts["left_out"].items())[:MOST_COLUMNS_LISTED])]
