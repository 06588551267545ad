"""Files that are rightly signed and say something else: one value of the JSON text or of an array is another.

What is loaded from such a file works, without a NaN, or it is refused by name: ``tests/test_fuzzed_files.py``.
"""

from __future__ import annotations

import copy
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import banbury as bb
import hostile
import naive_files as files

NASTY: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    2**63,
    0.5,
    -1.5,
    1e308,
    math.nan,
    math.inf,
    "",
    "x",
    [],
    [[]],
    {},
    [1, "a"],
)
NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 0.0, 1e308, -1e308, 2.0**-1074)
WHOLE = (-1, 0, 1, 2**31, 2**62, -(2**63), 2**63 - 1)

TEXTS = ["a good one", "bad bad", "good good", "no", "one no", "two bad"]
LABELS = list("ppqqpq")


def rows() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "flag": [True, False, None, True, True, False],
        "word": ["a", "b", "b", None, "c", "a"],
        "x": [1.0, 2.5, 4.0, 8.0, None, 3.0],
        "n": [1, 0, 2, 5, 3, 3],
        "wide": rng.gamma(2.0, size=6).round(3).tolist(),
        "deep": rng.normal(size=6).round(3).tolist(),
        "t": TEXTS,
    }


FAMILIES: dict[str, Any] = {
    "flag": "bernoulli",
    "word": "categorical",
    "x": "gaussian",
    "n": "poisson",
    "wide": "gamma",
    "deep": "kernel_density",
}


def of(**families: Any) -> Callable[[], bb.Model]:
    """The model of some columns, each of a family."""
    used = {name: rows()[name] for name in families}
    return lambda: bb.estimate(bb.count(used, LABELS, features=families))


def weighed() -> bb.Model:
    rng = np.random.default_rng(2)
    table = {"a": rng.normal(size=150).round(2), "b": rng.integers(0, 4, 150), "c": rng.choice(list("uvw"), 150)}
    labels = np.where(table["a"] + table["b"] > 1.5, "p", "q")
    return bb.weigh(bb.count(table, labels), table, labels, pairs=True)


def weighed_texts() -> bb.Model:
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(["good", "bad", "one", "no", "two"], 6)) for _ in range(80)]
    labels = ["p" if "good" in text else "q" for text in texts]
    return bb.weigh(bb.count(texts, labels), texts, labels)


def labels() -> bb.LabelModel:
    return bb.LabelModel.of(bb.count(rows(), [["p"], ["q"], ["p", "q"], [], ["p"], ["r"]], features=FAMILIES))


def calibrated_labels() -> bb.LabelModel:
    """With a slope and a shift for each label."""
    log_odds = np.random.default_rng(0).normal(size=(40, 3))
    return labels().calibrated(bb.calibrate("platt", log_odds, log_odds + log_odds[::-1] > 0))


def weighed_labels() -> bb.LabelModel:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(["good", "bad", "one", "no", "two"], 6)) for _ in range(120)]
    sets = [[name for name, word in (("p", "good"), ("q", "bad")) if word in text] for text in texts]
    table = {"t": texts, "word": rng.choice(["a", "b", "c"], 120).tolist(), "x": rng.normal(size=120)}
    return bb.MultiLabelClassifier().fit(table, sets).model_


THINGS: dict[str, Callable[[], Any]] = {
    "simple": of(**FAMILIES),
    "exponential, histogram, tree": of(wide="exponential", deep="histogram", x="quantile_tree"),
    "text": of(t=bb.Text()),
    "text with lengths": of(t=bb.Text(length=True)),
    "text of pairs, damped": of(t=bb.Text(ngrams=2, damping="log", model="bernoulli")),
    "calibrated": hostile.model,
    "blocks": hostile.blocks,
    "fractional": hostile.fractional,
    "rounded": hostile.rounded,
    "a counted network": hostile.network,
    "a given network": hostile.tables,
    "weighed": weighed,
    "weighed texts": weighed_texts,
    "labels": labels,
    "calibrated labels": calibrated_labels,
    "weighed labels": weighed_labels,
}


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a JSON text stand, those that hold others too."""
    if place:
        yield place
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*place, name))
    elif isinstance(value, list):
        for number in range(min(len(value), 3)):
            yield from leaves(value[number], (*place, number))


def changed(about: Any, place: tuple[Any, ...], new: Any, how: str) -> Any:
    made = copy.deepcopy(about)
    inner = made
    for step in place[:-1]:
        inner = inner[step]
    if how == "missing":
        del inner[place[-1]]
    elif how == "longer" and isinstance(inner[place[-1]], list):
        inner[place[-1]] = inner[place[-1]] * 2 or [0]
    elif how == "more" and isinstance(inner[place[-1]], dict):
        inner[place[-1]] = inner[place[-1]] | {"more": new}
    else:
        inner[place[-1]] = new
    return made


def of_headers(content: bytes, rng: np.random.Generator, n: int) -> Iterator[tuple[str, bytes]]:
    """Files of which one value of the JSON text is another."""
    about = files.unpacked(content)[0]
    places = [place for place in leaves(about) if place[0] not in ("checksums", "format", "library")]
    for _ in range(n):
        place = places[rng.integers(len(places))]
        how = rng.choice(["other"] * 6 + ["missing", "longer", "more"])
        new = NASTY[rng.integers(len(NASTY))]
        try:
            yield (
                f"{place} {how} {new!r}",
                files.rewritten(content, lambda old, p=place, v=new, h=how: changed(old, p, v, h)),
            )
        except (TypeError, KeyError, AttributeError):  # no file of ours could be made of it
            continue


def of_arrays(content: bytes, rng: np.random.Generator, n: int) -> Iterator[tuple[str, bytes]]:
    """Files of which some numbers of one array are others, or which has more of them or fewer."""
    arrays = {name: array for name, array in files.unpacked(content)[1].items() if array.size}
    names = list(arrays)
    for _ in range(n):
        name = names[rng.integers(len(names))]
        array = arrays[name].copy()
        nasty = NUMBERS if array.dtype.kind == "f" else WHOLE
        flat, kind = array.reshape(-1), rng.integers(8)
        new = np.array(nasty)[rng.integers(len(nasty))]
        with np.errstate(all="ignore"):
            value = np.asarray(new).astype(array.dtype)
        if kind == 0:
            array = array[:-1]
        elif kind == 1:
            array = np.concatenate([array, array])
        elif kind == 2:
            flat[:] = value
        else:
            flat[rng.integers(len(flat), size=min(int(kind), 3))] = value
        yield f"{name} {kind} {new!r}", files.rewritten(content, arrays={name: np.ascontiguousarray(array)})


def used(thing: Any) -> None:
    """Does what can be done with a thing; raises AssertionError where an answer is a NaN."""
    if isinstance(thing, bb.BeliefNetwork):
        str(thing)
        for node in thing.variables:
            found = thing.query(node.name)
            assert not any(math.isnan(p) for p in dict(found).values())
        return
    tally = thing if isinstance(thing, bb.Tally) else thing.tally
    str(tally)
    again = tally + tally
    assert (again - tally).n_rows == tally.n_rows
    with tempfile.TemporaryDirectory() as folder:
        bb.save(thing, Path(folder) / "again.banbury")
        bb.load(Path(folder) / "again.banbury")
    several = isinstance(thing, bb.LabelModel)
    model = thing if several or isinstance(thing, bb.Model) else bb.estimate(thing)
    table = {name: rows().get(name, [0.5, 1.0, None, -2.0, 7.0, 1.0]) for name in model.schema.columns}
    for feature in model.schema.features:
        for name in set(feature.inputs) - rows().keys():
            if feature.family.reads_text():
                table[name] = TEXTS
            elif feature.kind in ("string", "integer"):
                table[name] = [1, 0, None, 2, 3, 1] if feature.kind == "integer" else ["a", "b", None, "u", "v", "w"]
    posterior = model.posterior(table)
    assert not np.isnan(posterior).any()
    model.predict(table)
    row = {name: values[0] for name, values in table.items()}
    explanation = model.explain(row, model.labels[0]) if several else model.explain(row)
    assert not any(math.isnan(each.decibans) for each in explanation.evidence)
    str(explanation)


def tried(content: bytes) -> str:
    """What becomes of a file: "works", the name of the error, or all that is said of one that has no name."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            used(hostile.loaded(content))
        return "works"
    except bb.errors.BanburyError as error:
        return type(error).__name__
