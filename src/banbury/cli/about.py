"""What is said of a tally, a model or a network: its rows, its classes, and what each column is."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from banbury import errors
from banbury._core import Integers
from banbury.cli import output
from banbury.naive_bayes import Model
from banbury.sums import rows_of
from banbury.tally import Tally, many

if TYPE_CHECKING:
    from banbury.networks import BeliefNetwork

Kept: TypeAlias = "Model | Tally | BeliefNetwork"

SHOWN = 40  # columns
CLASSES_SHOWN = 6


def kind(thing: Kept) -> str:
    if isinstance(thing, (Model, Tally)):
        return "model" if isinstance(thing, Model) else "tally"
    return "network"


def summary(thing: Kept) -> dict[str, Any]:
    """What was counted, and how it was estimated, as JSON can hold it."""
    if isinstance(thing, Tally):
        return _of_tally(thing)
    if isinstance(thing, Model):
        calibration = None if thing.calibration is None else str(thing.calibration)
        return {**_of_tally(thing.tally), **_choice(thing), "calibration": calibration}
    return _of_network(thing)


def _of_tally(tally: Tally) -> dict[str, Any]:
    return {
        "rows": tally.n_rows,
        "skipped": tally.skipped,
        "rounded": tally.rounded,
        "target": tally.schema.target,
        "classes": _classes(tally.classes, tally.rows),
        "features": [
            {"name": f.name, "family": str(f.family), "why": f.why, "missing": tally.missing[f.name]}
            for f in tally.schema.features
        ],
        "left_out": dict(tally.schema.left_out),
    }


def _of_network(network: BeliefNetwork) -> dict[str, Any]:
    """The same of a network; one whose tables were given has no rows."""
    found: dict[str, Any] = {"rows": None if network.sums is None else network.n_rows, "target": network.target}
    if network.sums is not None and network.target is not None:
        found["classes"] = _classes(network.classes, network.sums.seen[network.nodes.index(network.target)])
    found["nodes"] = [
        {"name": v.name, "parents": list(network.parents[v.name]), "kind": v.kind, "values": list(v.values)}
        for v in network.variables
    ]
    found["left_out"] = dict(network.left_out)
    return found if network.sums is None else {**found, **_choice(network)}


def _classes(names: tuple[Any, ...], rows: Integers) -> list[dict[str, Any]]:
    numbers = rows_of(rows)
    return [{"class": name, "rows": n} for name, n in zip(names, numbers.tolist(), strict=True)]


def _choice(thing: Model | BeliefNetwork) -> dict[str, Any]:
    return {"how": thing.choice.how, "alpha": thing.choice.alpha, "seed": thing.choice.seed}


# In words, of a summary ----------------------------------------------------------------------------------------------


def rows(given: Namespace, found: Mapping[str, Any]) -> str:
    weighted = getattr(given, "weights", None) is not None or isinstance(found["rows"], float)
    skipped = f" ({found['skipped']:,} more without a class)" if found.get("skipped") else ""
    return f"{found['rows']:,.15g} row{'s' * (found['rows'] != 1)}{' by weight' * weighted}{skipped}"


def classes(found: Mapping[str, Any], of: str = "") -> str:
    """How many classes there are, and how large; of a network without a target the nodes."""
    if "classes" not in found:
        return many(len(found["nodes"]), "node")
    numbers = np.array([each["rows"] for each in found["classes"]], dtype=np.float64)
    if not len(numbers):
        return "no class"
    shares = numbers / numbers.sum()
    order = np.argsort(-shares, kind="stable")
    names = [errors.shortened(each["class"]) for each in found["classes"]]
    shown = errors.listed((f"{names[c]} {shares[c]:.1%}" for c in order), CLASSES_SHOWN)
    return f"{many(len(names), 'class')}{of}: {shown}"


def columns(found: Mapping[str, Any]) -> str:
    """A line for each column."""
    header, lines, right = _nodes(found) if "nodes" in found else _features(found["features"])
    more = [("…", f"{len(lines) - SHOWN:,} more", *[""] * (len(header) - 2))] if len(lines) > SHOWN else []
    return output.table(header, [*lines[:SHOWN], *more], right=[right])


def _features(features: list[dict[str, Any]]) -> tuple[list[str], list[tuple[str, ...]], int]:
    """The family of each column and why; how many of its values are missing, if any column's are."""
    n = 4 if any(each["missing"] for each in features) else 3
    lines = [
        (each["name"], each["family"], each["why"], f"{each['missing']:,.6g}" if each["missing"] else "")
        for each in features
    ]
    return ["column", "family", "why", "missing"][:n], [line[:n] for line in lines], 3


def _nodes(found: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, ...]], int]:
    """How many values each column has, and what it depends on."""
    nodes = [node for node in found["nodes"] if node["name"] != found["target"]]
    lines: list[tuple[str, ...]] = [
        (node["name"], f"{len(node['values']):,}", errors.listed(node["parents"])) for node in nodes
    ]
    return ["column", "values", "given"], lines, 1


def left_out(found: Mapping[str, Any]) -> list[str]:
    if not found["left_out"]:
        return []
    return ["", output.table(["left out", "why"], list(found["left_out"].items())[:SHOWN])]
