"""What is in a file of a weighed model beside its tally: cells, weights, pairs and corrections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.cells import Cells, NamedCells, NumberCells, Tree
from banbury.families.keys import scalars
from banbury.files.checking import Arrays, check, texts
from banbury.tally.tally import Tally
from banbury.weighing import Weighing, Weights
from banbury.weighing.evidence import WeighedPair
from banbury.weighing.learning import COOLEST
from banbury.weighing.model import CorrectedWords
from banbury.weighing.texts import LearnedTexts, Setting

# Fewer than 2⁶³ rows are ever counted: a ridge keeps their weights below 1e11, and C times their number is below 1e23.
HEAVIEST = 1e12  # weight
LARGEST = 1e25  # correction, or strength of a prior; such a number times a weight is finite in 32 bits too
MOST_CUTS = 2**16 - 3  # of a column: its cells, missing ones and those of no value have numbers of 16 bits


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
        "losses": [list(trial) for trial in weights.losses],
        "texts": [
            {
                "column": corrected.column,
                "setting": list(learned.setting),
                "strength": learned.strength,
                "losses": [list(trial) for trial in learned.losses],
            }
            for corrected, learned in zip(weighing.texts, weights.texts, strict=True)
        ],
        "scored": list(weighing.scored),
    }


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
    for t, (corrected, learned) in enumerate(zip(weighing.texts, weights.texts, strict=True)):
        state |= {**state_of_words(t, corrected.words), f"{t}.word_corrections": learned.corrections}
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
    columns = tuple(cells_of(entry, j, arrays, tally) for j, entry in enumerate(about["columns"]))
    classes = scalars("classes", about["classes"])
    of_texts = [_read_texts(entry, t, arrays, tally, len(classes)) for t, entry in enumerate(about.get("texts", []))]
    words = tuple(corrected for corrected, _ in of_texts)
    scored = tuple(tally.schema[name].name for name in about.get("scored", []))
    check(not any(is_text(tally, name) for name in scored), "a column of words is scored by its family")
    check_once([*(cells.feature.name for cells in columns), *(text.column for text in words), *scored])
    trends = tuple(about.get("trends", []))
    pairs = tuple(_pair(entry, len(columns)) for entry in about["pairs"])
    with_trend = tuple(j for j, cells in enumerate(columns) if j in trends and cells.has_trend)
    check(trends == with_trend, "a trend belongs to a column without numbers")
    n = len(columns) + len(trends) + len(pairs) + len(of_texts) + len(scored)
    k = len(classes)
    sizes = [cells.n_cells + 1 for cells in columns]
    sizes += [columns[pair.first].n_fine * columns[pair.second].n_fine for pair in pairs]
    weights = Weights(
        columns,
        trends,
        pairs,
        _reals(arrays, "weights", (n,), HEAVIEST),
        _reals(arrays, "intercepts", (k,)),
        tuple(_reals(arrays, f"{t}.corrections", (size, k)) for t, size in enumerate(sizes)),
        number("strength", about["strength"], 0.0, LARGEST),
        number("temperature", about["temperature"], COOLEST, 1.0),
        losses_of(about),
        tuple(learned for _, learned in of_texts),
    )
    pair_tables = tuple(_reals(arrays, f"{t}.pair", (size, k)) for t, size in enumerate(sizes[len(columns) :]))
    paired = about.get("paired", True)
    sample = about.get("sample")
    check(type(paired) is bool, "pairs_looked_at is neither true nor false")
    check(sample is None or (type(sample) is int and sample >= 0), "the size of the sample is not a number of rows")
    weighing = Weighing(weights, classes, digest_of(about), pair_tables, words, scored, paired, sample)
    check(set(state_of(weighing)) == set(arrays), "there are arrays that do not belong to the weights")
    return weighing


def _pair(about: Any, n_columns: int) -> WeighedPair:
    first, second, strength = about
    places = all(type(j) is int and 0 <= j < n_columns for j in (first, second))
    check(places and first != second, "a pair does not have two columns")
    return WeighedPair(first, second, number("the strength of a pair", strength, 0.0, LARGEST))


def digest_of(about: Mapping[str, Any]) -> str:
    (digest,) = texts("digests", [about["digest"]])
    return digest


def is_text(tally: Tally, name: str) -> bool:
    """Whether the words of a column are weighed."""
    return tally.schema[name].counter.words


def check_once(names: Sequence[str]) -> None:
    check(len(set(names)) == len(names), "a column is weighed twice")


def number(what: str, value: Any, least: float, most: float) -> float:
    fits = type(value) in (int, float) and least <= value <= most
    check(fits, f"{what} is not a number from {least:g} to {most:g}")
    return float(value)


def _reals(arrays: Arrays, name: str, shape: tuple[int, ...], largest: float = LARGEST) -> Real:
    array = arrays[name]
    fits = array.dtype == np.float64 and array.shape == shape and (np.abs(array) <= largest).all()
    check(fits, f"{name!r} is not {shape} finite numbers")
    return array.copy()


def _read_texts(
    about: Mapping[str, Any], t: int, arrays: Arrays, tally: Tally, n_classes: int
) -> tuple[CorrectedWords, LearnedTexts]:
    words = words_of(t, arrays)
    corrections = arrays[f"{t}.word_corrections"]
    fit = corrections.dtype == np.float32 and corrections.shape == (len(words) + 1, n_classes)
    check(fit, "the number of corrections does not match the words")
    learned = LearnedTexts(*read_setting(about, corrections), losses_of(about))
    column = tally.schema[about["column"]].name
    check(is_text(tally, column), f"{column!r} has no words")
    return CorrectedWords(column, words), learned


def read_setting(about: Mapping[str, Any], corrections: Any) -> tuple[Setting, float, Any]:
    """How words count, C, and corrections, which are finite."""
    setting = Setting(*about["setting"])
    check(type(setting.use_counts) is bool, "use_counts is neither true nor false")
    check(type(setting.leave_out) is bool, "leave_out is neither true nor false")
    for name in ("idf_power", "variance_by_evidence", "evidence_weight"):
        number(name, getattr(setting, name), 0.0, 1.0)
    check(bool((np.abs(corrections) <= LARGEST).all()), "corrections are not finite")
    return setting, number("strength", about["strength"], 0.0, LARGEST), corrections.copy()


def losses_of(about: Mapping[str, Any]) -> tuple[tuple[float, float], ...]:
    losses = tuple((strength, loss) for strength, loss in about["losses"])
    check(all(type(figure) in (int, float) for pair in losses for figure in pair), "losses are not numbers")
    return losses


def words_of(t: int, arrays: Arrays) -> tuple[str, ...]:
    """The words of a column of texts."""
    names = arrays[f"{t}.words"]
    ends = arrays[f"{t}.ends"]
    plain = names.dtype == np.uint8 and ends.dtype == np.int64 and names.ndim == ends.ndim == 1
    check(plain, "words are not bytes with their ends")
    limits = [0, *ends.tolist()]
    check(all(a <= b for a, b in pairwise(limits)) and limits[-1] == len(names), "words do not end where they should")
    held = names.tobytes()
    return tuple(held[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(limits))


def cells_of(about: Mapping[str, Any], j: int, arrays: Arrays, tally: Tally) -> Cells:
    """The cells of a column: those of its family, and of values that some row has."""
    feature = tally.schema[about["name"]]
    check(feature.family.has_cells, f"{feature.name!r} has no cells")
    first, rest, plain_first, plain_others = (number("strengths", m, 0.0, LARGEST) for m in about["strengths"])
    check(type(about["told_apart"]) is bool, "told_apart is neither true nor false")
    tree = _tree(arrays[f"{j}.tree"], about["told_apart"])
    plain = _tree(arrays[f"{j}.plain"], False)
    common = feature, tree, (first, rest), plain, (plain_first, plain_others)
    if not feature.family.has_density():
        keys = scalars("keys", about["keys"])
        check(set(keys) <= set(tally.of(feature.name).keys[0]), "a cell has a value that no row has")
        alone = all(np.array_equal(hierarchy.levels, [np.arange(len(keys))]) for hierarchy in (tree, plain))
        check(alone, "a named cell is part of another")
        return NamedCells(*common, keys)
    check(about["keys"] is None, "an interval of numbers has a name")
    cuts = _reals(arrays, f"{j}.cuts", arrays[f"{j}.cuts"].shape, np.finfo(np.float64).max)
    fit = cuts.ndim == 1 and np.all(cuts[1:] >= cuts[:-1]) and len(cuts) <= MOST_CUTS
    check(fit, "cuts are not numbers in order")
    for hierarchy in (tree, plain):
        _check_stretches(hierarchy, len(cuts) + 1)
    check(tree.n_cells == plain.n_cells, "the cells of the trees do not match")
    return NumberCells(*common, cuts)


def _tree(levels: Any, told_apart: bool) -> Tree:
    """Levels that become finer, the last of them with a node for each cell."""
    check(levels.dtype == np.int64 and levels.ndim == 2 and len(levels), "a tree has levels")
    n_cells = levels.shape[1]
    nodes = levels.copy()
    last = np.array_equal(np.sort(nodes[-1]), np.arange(n_cells)) and nodes.min(initial=0) >= 0
    check(last, "the last level of a tree is not that of its cells")
    full = all(len(np.unique(level)) == level.max(initial=-1) + 1 for level in nodes)
    check(full, "a level of a tree has nodes without cells")
    for wide, fine in pairwise(nodes):
        within = len(np.unique(np.stack([wide, fine]), axis=1).T) == fine.max(initial=-1) + 1
        check(within, "a node of a tree is part of two others")
    return Tree(tuple(nodes), told_apart)


def _check_stretches(tree: Tree, n: int) -> None:
    """Raises unless nodes are stretches from the lowest numbers to the highest, and one more, alone, where a value is missing."""
    check(tree.n_cells in (n, n + 1), "the cuts do not match the cells")
    for level in tree.levels:
        steps = np.diff(level[:n], prepend=0)
        beside = ((steps == 0) | (steps == 1)).all() and level[0] == 0
        check(beside and (level[n:] == level[n - 1] + 1).all(), "a node of a tree is not an interval of numbers")
