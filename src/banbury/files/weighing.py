"""What is in a file of a weighed model beside its tally: cells, weights, pairs and corrections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.distributions.cells import Cells, NamedCells, NumberCells
from banbury.distributions.keys import scalars
from banbury.distributions.trees import Tree
from banbury.files.checking import Arrays, check
from banbury.tally import Tally
from banbury.weighing import Weighing, Weights
from banbury.weighing.evidence import WeighedPair
from banbury.weighing.model import CorrectedWords
from banbury.weighing.texts import LearnedTexts, Setting

LARGEST = 1e100  # of a weight: sums of what they are multiplied with stay finite


def about(weighing: Weighing) -> dict[str, Any]:
    """All but the arrays, as JSON can hold it."""
    weights = weighing.weights
    return {
        "columns": [about_cells(cells) for cells in weights.columns],
        "trends": list(weights.trends),
        "pairs": [[pair.first, pair.second, pair.strength] for pair in weights.pairs],
        "classes": list(weighing.classes),
        "digest": weighing.digest,
        "paired": weighing.paired,
        **({} if weighing.sample is None else {"sample": weighing.sample}),
        "strength": weights.strength,
        "temperature": weights.temperature,
        "losses": [list(each) for each in weights.losses],
        "texts": [_texts(own.column, learned) for own, learned in zip(weighing.texts, weights.texts, strict=True)],
        "scored": list(weighing.scored),
    }


def _texts(column: str, learned: LearnedTexts) -> dict[str, Any]:
    losses = [list(each) for each in learned.losses]
    return {"column": column, "setting": list(learned.setting), "strength": learned.strength, "losses": losses}


def about_cells(cells: Cells) -> dict[str, Any]:
    return {
        "name": cells.feature.name,
        "keys": list(cells.keys) if isinstance(cells, NamedCells) else None,
        "told_apart": cells.tree.told_apart,
        "strengths": [*cells.strengths, *cells.plain_strengths],
    }


def state_of(weighing: Weighing) -> Arrays:
    """The arrays, by name."""
    weights = weighing.weights
    state: Arrays = {"weights": weights.weights, "intercepts": weights.intercepts}
    state |= state_of_cells(weights.columns)
    state |= {f"{t}.corrections": table for t, table in enumerate(weights.corrections)}
    for t, (own, learned) in enumerate(zip(weighing.texts, weights.texts, strict=True)):
        state |= {**state_of_words(t, own.words), f"{t}.word_corrections": learned.corrections}
    return state | {f"{t}.pair": table for t, table in enumerate(weighing.pair_tables)}


def state_of_cells(columns: Sequence[Cells]) -> Arrays:
    """The trees and cuts of columns, by name."""
    state: Arrays = {}
    for j, cells in enumerate(columns):
        trees = {"tree": cells.tree, "plain": cells.plain}
        state |= {f"{j}.{name}": np.stack(tree.levels).astype(np.int64) for name, tree in trees.items()}
        if isinstance(cells, NumberCells):
            state[f"{j}.cuts"] = cells.cuts
    return state


def state_of_words(t: int, words: Sequence[str]) -> Arrays:
    """The words of a column of texts, by name: their bytes, and where each ends."""
    names = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(name) for name in names], dtype=np.int64)
    return {f"{t}.words": np.frombuffer(b"".join(names), dtype=np.uint8), f"{t}.ends": ends}


def put_together(about: Mapping[str, Any], arrays: Arrays, tally: Tally) -> Weighing:
    """The weights; whatever does not fit raises some error or other."""
    columns = tuple(cells_of(each, j, arrays, tally) for j, each in enumerate(about["columns"]))
    pairs = tuple(WeighedPair(int(a), int(b), float(m)) for a, b, m in about["pairs"])
    classes = scalars("classes", about["classes"])
    of_texts = [_learned_texts(each, t, arrays, tally, len(classes)) for t, each in enumerate(about.get("texts", []))]
    scored = tuple(tally.schema[name].name for name in about.get("scored", []))
    trends = tuple(about.get("trends", []))
    check(
        trends == tuple(j for j, cells in enumerate(columns) if j in trends and cells.has_trend),
        "a trend is of no numbers",
    )
    n, k = len(columns) + len(trends) + len(pairs) + len(of_texts) + len(scored), len(classes)
    check(all(0 <= j < len(columns) for pair in pairs for j in (pair.first, pair.second)), "a pair is of no columns")
    nodes = [cells.nodes for cells in columns]
    sizes = [cells.n_cells + 1 for cells in columns]
    sizes += [nodes[pair.first].n_fine * nodes[pair.second].n_fine for pair in pairs]
    weights = Weights(
        columns,
        trends,
        pairs,
        _reals(arrays, "weights", (n,)),
        _reals(arrays, "intercepts", (k,)),
        tuple(_reals(arrays, f"{t}.corrections", (size, k)) for t, size in enumerate(sizes)),
        float(about["strength"]),
        float(about["temperature"]),
        losses_of(about),
        tuple(learned for _, learned in of_texts),
    )
    tables = (_reals(arrays, f"{t}.pair", (size, k)) for t, size in enumerate(sizes[len(columns) :]))
    words, paired = tuple(words for words, _ in of_texts), bool(about.get("paired", True))
    sample = None if about.get("sample") is None else int(about["sample"])
    weighing = Weighing(weights, classes, str(about["digest"]), tuple(tables), words, scored, paired, sample)
    alike = set(state_of(weighing)) == set(arrays) and 1 / LARGEST <= weights.temperature <= LARGEST
    check(alike, "there are other arrays than those of weights")
    return weighing


def _reals(arrays: Arrays, name: str, shape: tuple[int, ...], largest: float = LARGEST) -> Real:
    array = arrays[name]
    fits = array.dtype == np.float64 and array.shape == shape and (np.abs(array) <= largest).all()
    check(fits, f"{name!r} is not {shape} finite numbers")
    return array.copy()


def _learned_texts(
    about: Mapping[str, Any], t: int, arrays: Arrays, tally: Tally, n_classes: int
) -> tuple[CorrectedWords, LearnedTexts]:
    words, corrections = words_of(t, arrays), arrays[f"{t}.word_corrections"]
    fit = corrections.dtype == np.float32 and corrections.shape == (len(words) + 1, n_classes)
    check(fit, "there is not a correction for each word")
    learned = LearnedTexts(*how_learned(about, corrections), losses_of(about))
    return CorrectedWords(tally.schema[about["column"]].name, words), learned


def how_learned(about: Mapping[str, Any], corrections: Any) -> tuple[Setting, float, Any]:
    """How words count, C, and corrections, which are finite."""
    setting = Setting(*about["setting"])
    numbers = [float(x) for x in (setting.power, setting.telling, setting.trust, about["strength"])]
    check(bool(np.isfinite(corrections).all()) and all(0 <= x <= 1e6 for x in numbers), "corrections are not finite")
    check(type(setting.often) is bool, "words count how often they occur, or not")
    check(type(setting.left_out) is bool, "a text's own words are left out, or not")
    power, telling, trust, strength = numbers
    return Setting(setting.often, power, telling, trust, setting.left_out), strength, corrections.copy()


def losses_of(about: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    return tuple((float(a), float(b)) for a, b in about["losses"])


def words_of(t: int, arrays: Arrays) -> tuple[str, ...]:
    """The words of a column of texts."""
    names, ends = arrays[f"{t}.words"], arrays[f"{t}.ends"]
    plain = names.dtype == np.uint8 and ends.dtype == np.int64 and names.ndim == ends.ndim == 1
    check(plain, "words are not bytes and where they end")
    limits = [0, *ends.tolist()]
    check(all(a <= b for a, b in pairwise(limits)) and limits[-1] == len(names), "words do not end where they should")
    held = names.tobytes()
    return tuple(held[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(limits))


def cells_of(about: Mapping[str, Any], j: int, arrays: Arrays, tally: Tally) -> Cells:
    feature = tally.schema[about["name"]]
    strengths = [float(m) for m in about["strengths"]]
    check(len(strengths) == 4 and all(0 <= m <= LARGEST for m in strengths), "a column has four strengths")
    trees = _tree(arrays[f"{j}.tree"], bool(about["told_apart"])), _tree(arrays[f"{j}.plain"], False)
    common = feature, trees[0], (strengths[0], strengths[1]), trees[1], (strengths[2], strengths[3])
    if about["keys"] is not None:
        keys = scalars("keys", about["keys"])
        check(len(keys) == trees[0].n_cells, "a cell has no name")
        return NamedCells(*common, keys)
    cuts = _reals(arrays, f"{j}.cuts", arrays[f"{j}.cuts"].shape, np.finfo(np.float64).max)
    fit = cuts.ndim == 1 and np.all(cuts[1:] >= cuts[:-1]) and trees[0].n_cells - len(cuts) in (1, 2)
    check(fit, "cuts are not those of cells")
    return NumberCells(*common, cuts)


def _tree(levels: Any, told_apart: bool) -> Tree:
    """Levels that become finer, the last of them with a node for each cell."""
    check(levels.dtype == np.int64 and levels.ndim == 2 and levels.size, "a tree has levels")
    n_cells, nodes = levels.shape[1], levels.copy()
    last = np.array_equal(np.sort(nodes[-1]), np.arange(n_cells)) and nodes.min() >= 0
    check(last, "the last level of a tree is not that of its cells")
    full = all(len(np.unique(level)) == level.max() + 1 for level in nodes)
    check(full, "a level of a tree has nodes without cells")
    for wide, fine in pairwise(nodes):
        within = len(np.unique(np.stack([wide, fine]), axis=1).T) == fine.max() + 1
        check(within, "a node of a tree is part of two others")
    return Tree(tuple(nodes), told_apart)
