"""Files that are rightly signed and say something else: values of the JSON text or of arrays are others.

What is loaded from such a file answers every question, without a NaN, or it is refused by name: ``tests/test_fuzzed_files.py``.
``python tests/fuzzed_files.py SECONDS [SEED [KIND]]`` goes on for so long with files that no run has had, and shows what fails.
"""

from __future__ import annotations

import copy
import math
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import banbury as bb
import hostile
import naive_files as files
import saved_models

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


def weigh_table() -> bb.Model:
    """Numbers with a trend and with gaps, whole numbers, categories, and pairs of them."""
    rng = np.random.default_rng(2)
    table = {"a": rng.normal(size=150).round(2), "b": rng.integers(0, 4, 150), "c": rng.choice(list("uvw"), 150)}
    labels = np.where((table["a"] > 0) == (table["b"] > 1), "p", "q")
    table["a"][::7] = np.nan
    return bb.weigh(bb.count(table, labels, features={"a": "quantile_tree"}), table, labels)


def weigh_labels() -> bb.LabelModel:
    table = saved_models.draw_table(120)
    return bb.MultiLabelClassifier().fit(table, saved_models.in_sets(table["word"])).model_


def count_texts(**settings: Any) -> Callable[[], bb.Model]:
    texts = saved_models.VALUES["text"]
    return lambda: bb.estimate(bb.count(texts, list("ppqqpq"), features=bb.Text(**settings)))


def declare_values() -> bb.Model:
    """Values and a vocabulary that were declared, and a prior for each value."""
    table = saved_models.draw_table(12)
    families = {
        "word": bb.Categorical(values=list("abcde"), alpha=dict.fromkeys("abcde", 0.5)),
        "whole": bb.Categorical(values=[0, 1, 2, 3, "none"], missing="category"),
        "number": bb.Histogram(start=-4.0, width=0.5),
        "flag": bb.Bernoulli(alpha=0.3),
        "text": bb.Text(vocabulary=["good", "bad"]),
    }
    return bb.estimate(bb.count(table, saved_models.draw_classes(12), features=families), class_prior=[0.25, 0.75])


THINGS: dict[str, Callable[[], Any]] = {
    **{
        name: lambda name=name: saved_models.make(name, *saved_models.shapes()["30 rows"])
        for name in saved_models.KINDS
    },
    "text with lengths": count_texts(length=True),
    "text of pairs, damped": count_texts(ngrams=2, damping="log", model="bernoulli"),
    "declared": declare_values,
    "kernel blocks": hostile.blocks,
    "fractional": hostile.fractional,
    "rounded": hostile.rounded,
    "a network of weights": hostile.network,
    "a given network": hostile.tables,
    "a weighed table": weigh_table,
    "weighed tables of labels": weigh_labels,
}


@cache
def content_of(name: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hostile.saved(THINGS[name]())


# Changes --------------------------------------------------------------------------------------------------------------


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the values of a JSON text stand, those that hold others too."""
    if place:
        yield place
    if isinstance(value, dict):
        for name in value:
            yield from leaves(value[name], (*place, name))
    elif isinstance(value, list):
        for number in range(min(len(value), 6)):
            yield from leaves(value[number], (*place, number))


def value_at(about: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        about = about[step]
    return about


def change_value(old: Any, rng: np.random.Generator, about: Any, places: list[tuple[Any, ...]]) -> Any:
    """Another value: any, one of another place of the file, or one that is near."""
    how = rng.integers(4)
    if how == 0:
        return NASTY[rng.integers(len(NASTY))]
    if how == 1:
        return copy.deepcopy(value_at(about, places[rng.integers(len(places))]))
    if isinstance(old, bool) or old is None:
        return not old
    if isinstance(old, (int, float)):
        return [old + 1, old - 1, -old, old * 2, float(old), str(old), old + 0.5][rng.integers(7)]
    if isinstance(old, str):
        return [old + "x", old[:-1], old.upper(), "0"][rng.integers(4)]
    if isinstance(old, list) and old:
        at = int(rng.integers(len(old)))
        return [old[:at] + old[at + 1 :], old[: at + 1] + old[at:], old[::-1], sorted(old, key=repr)][rng.integers(4)]
    if isinstance(old, dict) and old:
        name = list(old)[rng.integers(len(old))]
        return [old | {"more": 1}, {key: old[key] for key in old if key != name}][rng.integers(2)]
    return NASTY[rng.integers(len(NASTY))]


def change_text(about: Any, rng: np.random.Generator) -> tuple[str, Any]:
    """The JSON text with one value that is another, there or wherever it stands."""
    places = [place for place in leaves(about) if place[0] not in ("checksums", "format", "library")]
    place = places[rng.integers(len(places))]
    old = value_at(about, place)
    new = change_value(old, rng, about, places)
    everywhere = rng.random() < 0.3 and not isinstance(old, (dict, list))
    same = [other for other in places if value_at(about, other) == old] if everywhere else [place]
    made = copy.deepcopy(about)
    for *way, last in same:
        value_at(made, tuple(way))[last] = copy.deepcopy(new)
    return f"{place}{'…' * everywhere}: {str(old)[:40]!r} -> {str(new)[:40]!r}", made


def change_array(old: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    """Other numbers in an array, in another order, more or fewer."""
    array = old.copy()
    flat = array.reshape(-1)
    nasty = np.array(NUMBERS if array.dtype.kind == "f" else WHOLE)
    some = rng.integers(len(flat), size=int(rng.integers(1, 4)))
    axis = int(rng.integers(array.ndim))
    at = int(rng.integers(array.shape[axis]))
    ways: dict[str, Callable[[], Any]] = {
        "without": lambda: np.delete(array, at, axis),
        "twice": lambda: np.insert(array, at, np.take(array, at, axis), axis),
        "doubled": lambda: np.concatenate([array, array]),
        "all": lambda: np.full_like(array, value),
        "more": lambda: put(flat[some] + 1),
        "less": lambda: put(flat[some] - 1),
        "of others": lambda: put(flat[rng.integers(len(flat), size=len(some))]),
        "times two": lambda: put(flat[some] * 2),
        "negative": lambda: put(-flat[some]),
        "nasty": lambda: put(value),
        "at most": lambda: np.minimum(array, flat[some[0]]),
        "sorted": lambda: np.sort(array, axis),
        "reversed": lambda: np.flip(array, axis),
        "rolled": lambda: np.roll(array, 1, axis),
        "shuffled": lambda: rng.permutation(array, axis),
    }

    def put(numbers: Any) -> np.ndarray:
        flat[some] = numbers
        return array

    how = list(ways)[rng.integers(len(ways))]
    with np.errstate(all="ignore"):
        value = np.asarray(nasty[rng.integers(len(nasty))]).astype(array.dtype)
        made = ways[how]()
    return f"{how} {axis} {at} {some} {value!r}", np.ascontiguousarray(made)


def changed_files(content: bytes, rng: np.random.Generator, n: int) -> Iterator[tuple[str, bytes]]:
    """Files of which one or two things are others, in the JSON text or in arrays."""
    for _ in range(n):
        about, arrays = files.unpacked(content)
        names = [name for name in arrays if arrays[name].size]
        said = []
        for _ in range(int(rng.integers(1, 3))):
            if rng.random() < 0.6 or not names:
                what, about = change_text(about, rng)
            else:
                name = names[rng.integers(len(names))]
                if not arrays[name].size:
                    continue
                how, arrays[name] = change_array(arrays[name], rng)
                what = f"{name} {how}"
            said.append(what)
        try:
            yield " and ".join(said), files.packed(about, arrays)
        except (TypeError, KeyError, AttributeError):  # no file of ours could be made of it
            continue


# What becomes of them -------------------------------------------------------------------------------------------------


def use(content: bytes) -> str:
    """What becomes of a file: "works", or the name of the error that refuses it; raises any other error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            thing = hostile.loaded(content)
        except bb.BanburyError as error:
            return type(error).__name__
        saved_models.ask(thing)
        again = hostile.saved(thing)
        assert hostile.saved(hostile.loaded(again)) == again
    return "works"


def main(seconds: float, seed: int, part: str) -> None:
    """Changes files of every kind whose name has this part until the time is over, and shows each kind of failure once."""
    end, shown, outcomes = time.monotonic() + seconds, set[str](), dict[str, int]()
    while time.monotonic() < end:
        for name in (name for name in THINGS if part in name):
            rng = np.random.default_rng([seed, list(THINGS).index(name)])
            for what, changed in changed_files(content_of(name), rng, 20):
                try:
                    outcome = use(changed)
                except Exception as error:
                    frames = traceback.extract_tb(error.__traceback__)
                    outcome = f"{type(error).__name__} at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}"
                    if outcome not in shown:
                        shown.add(outcome)
                        ours = [f for f in frames if "/banbury/" in f.filename]
                        where = " < ".join(
                            f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.name}" for f in ours[::-1][:6]
                        )
                        print(f"{name}, seed {seed}: {what}\n    {error!r}\n    {where}", flush=True)
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            if time.monotonic() > end:
                break
        seed += 1
    print(f"up to seed {seed}: {outcomes}")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, " ".join(sys.argv[3:]))
