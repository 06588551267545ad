"""Converts evidence weights to JSON and arrays and back: cells, weights, pairs and corrections."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.cells import Cells, NamedCells, NumberCells, Strengths, Tree
from banbury.families.keys import check_scalars
from banbury.files.checking import Arrays, JsonObject, check, texts
from banbury.tally.tally import Tally
from banbury.weighing import Weighing, Weights
from banbury.weighing.evidence import WeighedPair
from banbury.weighing.learning import LEAST_TEMPERATURE
from banbury.weighing.texts import LearnedTexts, Setting

# Fewer than 2⁶³ rows are ever counted: a ridge keeps their weights below 1e11, and C times their number is below 1e23.
HEAVIEST = 1e12  # weight
LARGEST = 1e25  # correction, or strength of a prior; such a number times a weight is finite in 32 bits too
MOST_CUTS = 2**16 - 3  # of a column: its cells, missing ones and those of no value have numbers of 16 bits


def about(weighing: Weighing) -> JsonObject:
    """Returns the weights (``weighing``) as JSON: columns, trends, pairs, corrected texts, and the columns scored by
    their families; without the arrays.
    """
    weights = weighing.weights
    return {
        "columns": [about_cells(cells) for cells in weights.columns],
        "trends": list(weights.trends),
        "pairs": [[pair.first, pair.second, pair.strength] for pair in weights.pairs],
        "classes": list(weighing.classes),
        "digest": weighing.digest,
        "paired": weighing.paired,  # whether pairs were looked for
        **({} if weighing.sample is None else {"sample": weighing.sample}),
        "strength": weights.strength,
        "temperature": weights.temperature,
        "losses": [list(trial) for trial in weights.losses],  # pairs of strength and loss
        "texts": [
            {
                "column": learned.column,
                "setting": list(learned.setting),
                "strength": learned.strength,
                "losses": [list(trial) for trial in learned.losses],
            }
            for learned in weights.texts
        ],
        "scored": list(weights.scored),
    }


def about_cells(cells: Cells) -> JsonObject:
    """Returns the cells of a column for JSON: its name, the keys of its cells (None for intervals of numbers), whether
    the tree's cuts depend on the classes, and two strengths for each of its two trees.
    """
    return {
        "name": cells.feature.name,
        "keys": list(cells.keys) if isinstance(cells, NamedCells) else None,
        "told_apart": cells.tree.cut_by_class,
        "strengths": [*cells.tree.strengths, *cells.plain.strengths],
    }


def state_of(weighing: Weighing) -> Arrays:
    """Returns the arrays of the weights (``weighing``) by name: a weight per column, trend, pair, text and scored
    column; an intercept per class; corrections and pair tables (cells × classes); cells; and words with their
    corrections (words × classes).
    """
    weights = weighing.weights
    state: Arrays = {"weights": weights.weights, "intercepts": weights.intercepts}
    state |= state_of_cells(weights.columns)
    state |= {f"{number}.corrections": table for number, table in enumerate(weights.corrections)}
    for number, learned in enumerate(weights.texts):
        state |= {**state_of_words(number, learned.words), f"{number}.word_corrections": learned.corrections}
    return state | {f"{number}.pair": table for number, table in enumerate(weights.pair_tables)}


def state_of_cells(columns: Sequence[Cells]) -> Arrays:
    """Returns for each column, by names that begin with its index in ``columns``: two trees (levels × cells, the node
    of each cell), and the cuts of numbers.
    """
    state: Arrays = {}
    for column_number, cells in enumerate(columns):
        trees = {"tree": cells.tree, "plain": cells.plain}
        state |= {f"{column_number}.{name}": np.stack(tree.levels).astype(np.int64) for name, tree in trees.items()}
        if isinstance(cells, NumberCells):
            state[f"{column_number}.cuts"] = cells.cuts
    return state


def state_of_words(text_number: int, words: Sequence[str]) -> Arrays:
    """Returns the words of text column number ``text_number`` as arrays by name: the bytes of all words, and the
    position in them at which each word ends.
    """
    encoded_words = [word.encode("utf-8", "surrogatepass") for word in words]
    ends = np.cumsum([len(encoded) for encoded in encoded_words], dtype=np.int64)
    return {f"{text_number}.words": np.frombuffer(b"".join(encoded_words), dtype=np.uint8), f"{text_number}.ends": ends}


def from_json_and_arrays(about: JsonObject, arrays: Arrays, tally: Tally) -> Weighing:
    """Returns the weights of a file: ``about`` is their JSON object, and ``arrays`` are theirs, without the prefix.
    ``tally`` has the counts of the model. Raises some exception if the contents are inconsistent.
    """
    columns = tuple(
        cells_of(entry, column_number, arrays, tally) for column_number, entry in enumerate(about["columns"])
    )
    classes = check_scalars("classes", about["classes"])
    learned_texts = tuple(
        _read_texts(entry, index, arrays, tally, len(classes)) for index, entry in enumerate(about.get("texts", []))
    )
    # The names of the columns that their families score.
    scored = tuple(tally.schema[name].name for name in about.get("scored", []))
    check(not any(is_text(tally, name) for name in scored), "a column of words is scored by its family")
    check_once([*(cells.feature.name for cells in columns), *(text.column for text in learned_texts), *scored])
    trends = tuple(about.get("trends", []))  # the numbers of the columns whose trend is weighed too
    pairs = tuple(_pair(entry, len(columns)) for entry in about["pairs"])
    with_trend = tuple(
        column_number for column_number, cells in enumerate(columns) if column_number in trends and cells.has_trend
    )
    check(trends == with_trend, "a trend belongs to a column without numbers")
    n_weights = len(columns) + len(trends) + len(pairs) + len(learned_texts) + len(scored)
    n_classes = len(classes)
    # The cells of each column, with one for values in no cell; and of each pair.
    sizes = [cells.n_cells + 1 for cells in columns]
    sizes += [columns[pair.first].n_fine * columns[pair.second].n_fine for pair in pairs]
    weights = Weights(
        columns,
        trends,
        pairs,
        _reals(arrays, "weights", (n_weights,), HEAVIEST),
        _reals(arrays, "intercepts", (n_classes,)),
        tuple(_reals(arrays, f"{index}.corrections", (size, n_classes)) for index, size in enumerate(sizes)),
        tuple(_reals(arrays, f"{index}.pair", (size, n_classes)) for index, size in enumerate(sizes[len(columns) :])),
        number("strength", about["strength"], least=0.0, most=LARGEST),
        number("temperature", about["temperature"], least=LEAST_TEMPERATURE, most=1.0),
        losses_of(about),
        learned_texts,
        scored,
    )
    paired = about.get("paired", True)  # whether pairs were looked for
    sample = about.get("sample")  # how many rows weights were learned from, if not from all
    check(type(paired) is bool, "paired is neither true nor false")
    check(sample is None or (type(sample) is int and sample >= 0), "the size of the sample is not a number of rows")
    weighing = Weighing(weights, classes, digest_of(about), paired, sample)
    check(set(state_of(weighing)) == set(arrays), "there are arrays that do not belong to the weights")
    return weighing


def _pair(about: Any, n_columns: int) -> WeighedPair:
    """Returns a weighed pair in a file. ``about`` has the numbers of its columns, and its strength; there are
    ``n_columns`` columns. Raises ValueError if it is invalid.
    """
    first, second, strength = about
    are_columns = all(type(column) is int and 0 <= column < n_columns for column in (first, second))
    check(are_columns and first != second, "a pair does not have two columns")
    return WeighedPair(first, second, number("the strength of a pair", strength, least=0.0, most=LARGEST))


def digest_of(about: JsonObject) -> str:
    """Returns the digest of the tally from which weights were learned. ``about`` is the JSON object of the weights."""
    (digest,) = texts("digests", [about["digest"]])
    return digest


def is_text(tally: Tally, name: str) -> bool:
    """Returns whether the column ``name`` is counted as words, so that its words can be weighed."""
    return tally.schema[name].counter.words


def check_once(names: Sequence[str]) -> None:
    """Raises ValueError if one of the columns ``names`` occurs twice."""
    check(len(set(names)) == len(names), "a column is weighed twice")


def number(what: str, value: Any, least: float, most: float) -> float:
    """Returns the value as a float. Raises ValueError unless it is a number from ``least`` to ``most``. ``what`` says
    what it is, for the message.
    """
    is_valid = type(value) in (int, float) and least <= value <= most
    check(is_valid, f"{what} is not a number from {least:g} to {most:g}")
    return float(value)


def _reals(arrays: Arrays, name: str, shape: tuple[int, ...], largest: float = LARGEST) -> Real:
    """Returns a copy of the array ``name`` of floats. Raises ValueError for another type or shape, or for numbers whose
    absolute value exceeds ``largest``.
    """
    array = arrays[name]
    is_valid = array.dtype == np.float64 and array.shape == shape and (np.abs(array) <= largest).all()
    check(is_valid, f"{name!r} is not {shape} finite numbers")
    return array.copy()


def _read_texts(about: JsonObject, text_number: int, arrays: Arrays, tally: Tally, n_classes: int) -> LearnedTexts:
    """Returns what was learned of text column number ``text_number``: its words, how they count, the strength C, and
    the corrections (words + 1, classes). ``about`` is its JSON object, and ``arrays`` are those of the weights;
    ``tally`` has the counts of the model. Raises ValueError if something is invalid.
    """
    words = words_of(text_number, arrays)
    corrections = arrays[f"{text_number}.word_corrections"]
    has_shape = corrections.dtype == np.float32 and corrections.shape == (len(words) + 1, n_classes)
    check(has_shape, "the number of corrections does not match the words")
    setting, strength, corrections = read_setting(about, corrections)
    column = tally.schema[about["column"]].name
    check(is_text(tally, column), f"{column!r} has no words")
    return LearnedTexts(column, words, setting, strength, corrections, losses_of(about))


def read_setting(about: JsonObject, corrections: Any) -> tuple[Setting, float, Any]:
    """Returns the setting for words, the strength C, and a copy of the corrections. ``about`` is the JSON object with
    the first two. Raises ValueError if something is invalid.
    """
    setting = Setting(*about["setting"])
    check(type(setting.use_counts) is bool, "use_counts is neither true nor false")
    check(type(setting.leave_out) is bool, "leave_out is neither true nor false")
    for name in ("idf_power", "variance_by_evidence", "evidence_weight"):
        number(name, getattr(setting, name), least=0.0, most=1.0)
    check(bool((np.abs(corrections) <= LARGEST).all()), "corrections are not finite")
    return setting, number("strength", about["strength"], least=0.0, most=LARGEST), corrections.copy()


def losses_of(about: JsonObject) -> tuple[tuple[float, float], ...]:
    """Returns the losses of the strengths that were tried, as pairs of strength and loss. ``about`` is the JSON object
    with them.
    """
    losses = tuple((strength, loss) for strength, loss in about["losses"])
    check(all(type(number) in (int, float) for pair in losses for number in pair), "losses are not numbers")
    return losses


def words_of(text_number: int, arrays: Arrays) -> tuple[str, ...]:
    """Returns the words of text column number ``text_number``, whose bytes are among the ``arrays`` of the weights.
    Raises ValueError if they are inconsistent.
    """
    word_bytes = arrays[f"{text_number}.words"]
    ends = arrays[f"{text_number}.ends"]  # where each word ends in the bytes
    are_bytes = word_bytes.dtype == np.uint8 and ends.dtype == np.int64 and word_bytes.ndim == ends.ndim == 1
    check(are_bytes, "words are not bytes with their ends")
    limits = [0, *ends.tolist()]
    check(
        all(start <= end for start, end in pairwise(limits)) and limits[-1] == len(word_bytes),
        "words do not end where they should",
    )
    all_bytes = word_bytes.tobytes()
    return tuple(all_bytes[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(limits))


def cells_of(about: JsonObject, column_number: int, arrays: Arrays, tally: Tally) -> Cells:
    """Returns the cells of column number ``column_number`` in a file, with two trees of them: one whose cuts may depend
    on the classes, and a plain one. ``about`` is their JSON object, and ``arrays`` are those of the weights. Raises
    ValueError if they do not fit the column of the tally.
    """
    feature = tally.schema[about["name"]]
    check(feature.family.has_cells, f"{feature.name!r} has no cells")
    strengths = [number("strengths", strength, least=0.0, most=LARGEST) for strength in about["strengths"]]
    check(len(strengths) == 4, "two trees do not have four strengths")
    check(type(about["told_apart"]) is bool, "told_apart is neither true nor false")
    tree = _tree(arrays[f"{column_number}.tree"], (strengths[0], strengths[1]), about["told_apart"])
    plain_tree = _tree(arrays[f"{column_number}.plain"], (strengths[2], strengths[3]), cut_by_class=False)
    if not feature.family.has_density():
        keys = check_scalars("keys", about["keys"])
        check(set(keys) <= set(tally.of(feature.name).keys[0]), "a cell has a value that no row has")
        are_leaves = all(np.array_equal(hierarchy.levels, [np.arange(len(keys))]) for hierarchy in (tree, plain_tree))
        check(are_leaves, "a named cell is part of another")
        return NamedCells(feature, tree, plain_tree, keys)
    check(about["keys"] is None, "an interval of numbers has a name")
    cuts = _reals(arrays, f"{column_number}.cuts", arrays[f"{column_number}.cuts"].shape, np.finfo(np.float64).max)
    are_ascending = cuts.ndim == 1 and np.all(cuts[1:] >= cuts[:-1]) and len(cuts) <= MOST_CUTS
    check(are_ascending, "cuts are not ascending numbers")
    for hierarchy in (tree, plain_tree):
        _check_intervals(hierarchy, len(cuts) + 1)
    check(tree.n_cells == plain_tree.n_cells, "the cells of the trees do not match")
    return NumberCells(feature, tree, plain_tree, cuts)


def _tree(levels: Any, strengths: Strengths, cut_by_class: bool) -> Tree:
    """Returns the tree with these levels (levels × cells: the number of the node of each cell), from wide nodes to
    single cells, and two strengths. ``cut_by_class`` says whether its cuts depend on the classes. Raises ValueError if
    the nodes are not nested.
    """
    check(levels.dtype == np.int64 and levels.ndim == 2 and len(levels), "a tree has levels")
    n_cells = levels.shape[1]
    nodes = levels.copy()  # levels × cells
    has_cells_last = np.array_equal(np.sort(nodes[-1]), np.arange(n_cells)) and nodes.min(initial=0) >= 0
    check(has_cells_last, "the last level of a tree is not that of its cells")
    has_no_gaps = all(len(np.unique(level)) == level.max(initial=-1) + 1 for level in nodes)
    check(has_no_gaps, "a level of a tree has nodes without cells")
    for wider_nodes, finer_nodes in pairwise(nodes):
        is_nested = len(np.unique(np.stack([wider_nodes, finer_nodes]), axis=1).T) == finer_nodes.max(initial=-1) + 1
        check(is_nested, "a node of a tree is part of two others")
    return Tree(tuple(nodes), strengths, cut_by_class)


def _check_intervals(tree: Tree, n: int) -> None:
    """Raises ValueError unless the nodes of each level of the tree are ascending intervals of the first ``n`` cells,
    followed by a node of its own for missing values, if they have a cell.
    """
    check(tree.n_cells in (n, n + 1), "the cuts do not match the cells")
    for level in tree.levels:  # the number of the node of each cell
        steps = np.diff(level[:n], prepend=0)  # from the node of a cell to that of the next
        are_consecutive = ((steps == 0) | (steps == 1)).all() and level[0] == 0
        check(
            are_consecutive and (level[n:] == level[n - 1] + 1).all(), "a node of a tree is not an interval of numbers"
        )
