"""Every posterior of a model from its evidence table, with NumPy: texts, curves and calibrations too.

python examples/read_evidence.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import banbury as bb

AMOUNTS = {"count": float, "log": np.log1p, "root": np.sqrt, "presence": np.sign}
READING = "tokens", "lowercase", "unit", "stop_words", "only"


def posterior(table: Any, rows: dict[str, Any]) -> np.ndarray:
    """P(class | row), or P(label | row), of rows that are a mapping of columns."""
    columns, pairs = table.by_column(), table.entries("pairs")
    scores = [
        row_score(table, columns, pairs, dict(zip(rows, row, strict=True))) for row in zip(*rows.values(), strict=True)
    ]
    return np.array([calibrated(table, score) for score in scores]).reshape(-1, table.prior.num_rows)


def row_score(table: Any, columns: list[Any], pairs: list[Any], row: dict[str, Any]) -> np.ndarray:
    """What the prior, the columns and the pairs of columns say of each class."""
    prior = table.prior["nats"].to_numpy()
    score, cells = prior, {}
    for column in columns:
        for entry, times in hits(column, row):
            score = score + np.multiply(times, entry["nats"])
            cells[column["column"]] = entry.get("cell")
        score = score + curves(column, row, len(prior), table.answers)
    for pair in pairs:
        if (cells.get(pair["first"]), cells.get(pair["second"])) == (pair["first_cell"], pair["second_cell"]):
            score = score + pair["nats"]
    return score if score.max() > -np.inf else prior


def number_or_text(x: Any) -> Any:
    """None where a value is missing, a float of a number or a flag."""
    return None if x is None or x != x else x if isinstance(x, str) else float(x)


def hits(column: dict[str, Any], row: dict[str, Any]) -> Iterator[tuple[dict[str, Any], float]]:
    """The entries that a row has of a column, each with how often it counts."""
    if column["words"]:
        amounts = word_amounts(column, row)
        yield from ((entry, amounts[entry["word"]]) for entry in column["words"] if amounts.get(entry["word"]))
        return
    x = number_or_text(row.get(column["name"]))
    listed = [entry for entry in column["values"] if entry["value"] == x and not entry["unseen"]]
    yield from ((entry, 1.0) for entry in listed or [entry for entry in column["values"] if entry["unseen"]])
    for step in column["steps"]:
        if step["from"] == x or (None not in (x, step["from"]) and step["from"] <= x < step["to"]):
            yield step, 1.0


def word_amounts(column: dict[str, Any], row: dict[str, Any]) -> dict[str | None, float]:
    """How much each word of a row counts; None stands for what every text says."""
    scale = {entry["word"]: entry["scale"] for entry in column["words"][1:]}
    if column["kind"] == "text":
        if row[column["name"]] is None:
            return {}
        ngrams = column["shortest"], column["longest"]
        n = Counter(bb.tokens(row[column["name"]], ngrams=ngrams, **{name: column[name] for name in READING}))
    else:
        n = {word: number_or_text(row[word]) or 0.0 for word in scale}
        n = n if column["threshold"] is None else {word: float(n[word] > column["threshold"]) for word in n}
    amounts = {word: AMOUNTS[column["count"]](n[word]) * scale.get(word, 1.0) for word in n}
    lengths = {"none": [1.0], "all": [*amounts.values()], "known": [amounts[word] for word in amounts if word in scale]}
    size = np.linalg.norm(lengths[column["length"]]) or 1.0
    return {word: amounts[word] / size for word in amounts} | {None: 1.0}


def curves(column: dict[str, Any], row: dict[str, Any], n_classes: int, answers: str) -> np.ndarray:
    """What the density of a number says of each class."""
    nats = np.zeros(n_classes)
    x = number_or_text(row.get(column["name"])) if column["curves"] else None
    for curve in column["curves"] if x is not None else ():
        z = np.clip((x - curve["origin"]) / curve["unit"], -(2.0**400), 2.0**400) - curve["centre"]
        nats[curve["class"]] += curve["one"] + curve["x"] * z + curve["x2"] * z * z
        nats[curve["class"]] += curve["log_x"] and curve["log_x"] * np.log(z)
    return nats - nats.max() if answers == "classes" else nats


def calibrated(table: Any, score: np.ndarray) -> np.ndarray:
    """Posteriors of scores."""
    columns = ("temperature", "floor", "slope", "shift")
    heat, floor, slope, shift = (table.calibration[name].to_numpy() for name in columns)
    if table.answers == "labels":
        return 1.0 / (1.0 + np.exp(-(slope * score + shift)))
    score = score - score.max()
    score = np.where(np.isneginf(score), score, np.maximum(score, floor) / heat)
    odds = np.array([score[c] - np.logaddexp.reduce(np.delete(score, c)) for c in range(len(score))])
    odds = np.clip(odds, -1e300, 1e300)
    logs = -np.logaddexp(0.0, -np.where(np.abs(odds) < 1e300, slope * odds + shift, odds))
    share = np.exp(logs - logs.max())
    for step in table.stairs.to_pylist():
        if step["from"] <= odds[step["class"]] < step["to"]:
            share[step["class"]] = step["share"] + step["slope"] * (odds[step["class"]] - step["from"])
    return share / share.sum() if share.any() else np.full(len(share), 1.0 / len(share))


if __name__ == "__main__":
    weather = bb.datasets.play_tennis()
    model = bb.estimate(bb.count(weather, target="play"))
    difference = np.abs(posterior(model.evidence_table(), weather) - model.posterior(weather)).max()
    print(f"the posteriors of {len(weather['play'])} rows differ by less than {max(float(difference), 1e-15):.0e}")
