"""ONNX: the evidence table as a graph of standard operators, in doubles: each column finds its entry, and nats are added.

Inputs are columns: numbers as doubles, (n, 1), where NaN is missing; strings, (n, 1), where an empty one is; texts as their
tokens, (n, tokens), filled up with empty ones; and blocks of occurrences as doubles, (n, columns).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from banbury import errors
from banbury.model.evidence_table import EvidenceTable

OPSET = 17
ML_OPSET = 3
FARTHEST = 2.0**400
IMPOSSIBLE = -1e30  # stands for minus infinity, of which 0 times would be no number
COUNTS: dict[str, Callable[[Graph, str], str]] = {
    "count": lambda graph, n: n,
    "log": lambda graph, n: graph.add("Log", graph.add("Add", n, graph.constant(1.0))),
    "root": lambda graph, n: graph.add("Sqrt", n),
    "presence": lambda graph, n: graph.add("Sign", n),
}


def write(model: Any, min_rows: int) -> bytes:
    """The ONNX file of a model."""
    onnx = _onnx()
    tables = model.evidence_table(min_rows=min_rows)
    graph = Graph("banbury")
    inputs = {name: (kind, width) for name, kind, width in input_columns(tables)}
    label, shares = posteriors(graph, tables, {name: name for name in inputs}, model.names)
    graph.nodes.append(onnx.helper.make_node("Identity", [label], ["label"]))
    graph.nodes.append(onnx.helper.make_node("Cast", [shares], ["probabilities"], to=onnx.TensorProto.FLOAT))
    info = onnx.helper.make_tensor_value_info
    types = onnx.TensorProto
    n = "n"
    k = tables.prior.num_rows
    kinds = {"double": types.DOUBLE, "string": types.STRING}
    graph_inputs = [info(name, kinds[kind], [n, width]) for name, (kind, width) in inputs.items()]
    several = tables.answers == "labels"
    kind = types.BOOL if several else types.INT64 if are_whole(model.names) else types.STRING
    graph_outputs = [info("label", kind, [n, k] if several else [n]), info("probabilities", types.FLOAT, [n, k])]
    made = onnx.helper.make_graph(graph.nodes, "banbury", graph_inputs, graph_outputs, graph.initializers)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    written = onnx.helper.make_model(made, opset_imports=opsets, ir_version=8, producer_name="banbury")
    onnx.checker.check_model(written)
    return bytes(written.SerializeToString())


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
    except ImportError:
        text = "ONNX is written with the library onnx, which is not installed: pip install 'banbury[onnx]'"
        raise errors.MissingLibrary(text, library="onnx") from None
    return onnx


def are_whole(names: Sequence[Any]) -> bool:
    """Whether classes are whole numbers, as which they are answered then; others are strings."""
    return all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names)


class Graph:
    """Nodes and constants in the making; what an operator gives has a name of its own."""

    def __init__(self, prefix: str) -> None:
        self.onnx, self.prefix = _onnx(), prefix
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        name = f"{self.prefix}/{len(self.nodes)}"
        node = self.onnx.helper.make_node(operator, list(inputs), [name], name=name, domain=domain, **attributes)
        self.nodes.append(node)
        return name

    def constant(self, value: Any, kind: Any = np.float64) -> str:
        name = f"{self.prefix}/constant/{len(self.initializers)}"
        array = np.asarray(value, dtype=kind)
        if array.dtype.kind == "f":
            array = np.where(np.isneginf(array), IMPOSSIBLE, array)
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def cast(self, value: str, kind: str) -> str:
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def total(self, values: Sequence[str]) -> str:
        return self.add("Sum", *values)

    def row(self, operator: str, value: str) -> str:
        """The maximum or another reduction over classes."""
        return self.add(operator, value, axes=[1], keepdims=1)


def input_columns(tables: EvidenceTable) -> list[tuple[str, str, Any]]:
    """The inputs: name, type and width."""
    inputs = list[tuple[str, str, Any]]()
    for column in tables.columns.to_pylist():
        name = column["name"]
        kind = column["kind"]
        if kind == "text":
            inputs.append((name, "string", "tokens"))
        elif kind == "counts":
            inputs.append((name, "double", len(tables.words_of(column["column"])[0])))
        else:
            inputs.append((name, "string" if kind == "string" else "double", 1))
    return inputs


def posteriors(graph: Graph, tables: EvidenceTable, inputs: Mapping[str, str], names: Sequence[Any]) -> tuple[str, str]:
    """The answers and the posteriors, as doubles, from inputs by column."""
    k = tables.prior.num_rows
    parts = [graph.constant(tables.prior["nats"].to_numpy()[None, :])]
    cells: dict[int, tuple[str, int]] = {}
    curves = tables.curves.to_pylist()
    for column in tables.columns.to_pylist():
        number = column["column"]
        x = inputs[column["name"]]
        if column["kind"] in ("text", "counts"):
            parts.append(_bag(graph, tables, column, x))
        elif column_curves := [curve for curve in curves if curve["column"] == number]:
            parts.append(_curve(graph, column_curves, x, k))
        else:
            parts.append(_entries(graph, tables, column, x, cells))
    pairs: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in tables.pairs.to_pylist():
        pairs.setdefault((row["first"], row["second"]), []).append(row)
    for (first, second), rows in pairs.items():
        (a, n), (b, m) = cells[first], cells[second]
        table = np.zeros((n * m, k))
        for row in rows:
            table[row["first_cell"] * m + row["second_cell"], row["class"]] = row["nats"]
        at = graph.add("Add", graph.add("Mul", a, graph.constant(m, np.int64)), b)
        parts.append(graph.add("Gather", graph.constant(table), at, axis=0))
    return _answers(graph, tables, graph.total(parts), names)


def _entries(
    graph: Graph, tables: EvidenceTable, column: dict[str, Any], x: str, cells: dict[int, tuple[str, int]]
) -> str:
    """What the values of a column say; its cells are kept for pairs."""
    name = "values" if column["kind"] == "string" else "steps"
    entries = [(row, nats) for row, nats in tables.entries_of(name) if row["column"] == column["column"]]
    nothing = len(entries)  # the last says nothing, of what is in no entry
    flat = graph.add("Reshape", x, graph.constant([-1], np.int64))
    if name == "values":
        keys = {(row["value"] or "") if not row["unseen"] else None: i for i, (row, _) in enumerate(entries)}
        unseen = keys.pop(None, nothing)
        coded: dict[str, Any] = {"keys_strings": list(keys), "values_int64s": list(keys.values())}
        at = graph.add("LabelEncoder", flat, domain="ai.onnx.ml", default_int64=unseen, **coded)
    else:
        starts = {row["from"]: i for i, (row, _) in enumerate(entries)}
        missing = starts.pop(None, nothing)
        ends = sorted({*starts, *(row["to"] for row, _ in entries if row["to"] is not None)} - {-np.inf, np.inf})
        above = graph.add("GreaterOrEqual", x, graph.constant(np.reshape(ends, (1, -1))))
        passed = graph.add("ReduceSum", graph.cast(above, "INT64"), graph.constant([1], np.int64), keepdims=0)
        places = [starts.get(end, nothing) for end in (-np.inf, *ends)]
        at = graph.add("Gather", graph.constant(places, np.int64), passed)
        at = graph.add("Where", graph.add("IsNaN", flat), graph.constant(missing, np.int64), at)
    row_cells = [row["cell"] for row, _ in entries]
    if None not in row_cells:
        n = max(row_cells) + 2  # one more for values in no cell
        cells[column["column"]] = graph.add("Gather", graph.constant([*row_cells, n - 1], np.int64), at), n
    nats = [*(nats for _, nats in entries), [0.0] * tables.prior.num_rows]
    return graph.add("Gather", graph.constant(nats), at, axis=0)


def _curve(graph: Graph, curves: Sequence[dict[str, Any]], x: str, k: int) -> str:
    """What a number says of each class."""
    x = graph.add("Reshape", x, graph.constant([-1, 1], np.int64))
    parts = []
    for some in (curves[:k], curves[k:]) if len(curves) <= k else (curves[0::2], curves[1::2]):  # of labels two each
        if not some:
            continue
        coefficients = {name: np.zeros((1, k)) for name in ("centre", "one", "x", "x2", "log_x")} | {
            "width": np.ones((1, k))
        }
        for curve in some:
            for name, values in coefficients.items():
                values[0, curve["class"]] = curve[name]
        z = graph.add("Div", graph.add("Sub", x, graph.constant(some[0]["origin"])), graph.constant(some[0]["unit"]))
        z = graph.add("Clip", z, graph.constant(-FARTHEST), graph.constant(FARTHEST))
        z = graph.add(
            "Div", graph.add("Sub", z, graph.constant(coefficients["centre"])), graph.constant(coefficients["width"])
        )
        terms = [graph.constant(coefficients["one"]), graph.add("Mul", graph.constant(coefficients["x"]), z)]
        terms.append(graph.add("Mul", graph.constant(coefficients["x2"]), graph.add("Mul", z, z)))
        if coefficients["log_x"].any():
            terms.append(graph.add("Mul", graph.constant(coefficients["log_x"]), graph.add("Log", z)))
        parts.append(graph.total(terms))
    says = graph.total(parts)
    return graph.add("Where", graph.add("IsNaN", x), graph.constant(0.0), says)


def _bag(graph: Graph, tables: EvidenceTable, column: dict[str, Any], x: str) -> str:
    """What words, or columns of occurrences, say."""
    words, table, scale, common = tables.words_of(column["column"])
    if column["length"] == "all":
        expected = "False for ONNX: the length of a text counts words that the model does not know, which it cannot see"
        raise errors.bad_setting("length", True, expected)
    if column["kind"] == "text":
        size: dict[str, Any] = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "mode": "TF"}
        pool: dict[str, Any] = {
            "pool_strings": words or [""],
            "ngram_counts": [0],
            "ngram_indexes": list(range(max(len(words), 1))),
        }
        n = graph.cast(graph.add("TfIdfVectorizer", x, **size, **pool), "DOUBLE")
        table, scale = (table, scale) if words else (np.zeros((1, len(common))), np.ones(1))
    else:
        n = graph.add("Where", graph.add("IsNaN", x), graph.constant(0.0), x)
        if column["threshold"] is not None:
            n = graph.cast(graph.add("Greater", n, graph.constant(column["threshold"])), "DOUBLE")
    a = graph.add("Mul", COUNTS[column["count"]](graph, n), graph.constant(scale[None, :]))
    says = graph.add("MatMul", a, graph.constant(table))
    if column["length"] == "known":
        length = graph.add("Sqrt", graph.row("ReduceSumSquare", a))
        says = graph.add("Div", says, graph.add("Max", length, graph.constant(1e-300)))
    return graph.add("Add", says, graph.constant(common[None, :]))


def _answers(graph: Graph, tables: EvidenceTable, score: str, names: Sequence[Any]) -> tuple[str, str]:
    """The answers and the posteriors, from scores."""
    prior = tables.prior["nats"].to_numpy()[None, :]
    if tables.answers == "labels":
        shares = graph.add("Sigmoid", _line(graph, tables, score))
        thresholds = graph.constant(tables.rules("threshold")[None, :, 1])
        return graph.add("GreaterOrEqual", shares, thresholds), shares
    highest = graph.row("ReduceMax", score)
    none = graph.add("Less", highest, graph.constant(IMPOSSIBLE / 2.0))  # then the prior answers
    score = graph.add("Where", none, graph.constant(prior - prior.max()), graph.add("Sub", score, highest))
    best = score
    if len(steps := tables.rules("step")):
        odds = graph.add("Gather", _odds(graph, score, prior.size), graph.constant(steps[:, 0], np.int64), axis=1)
        low, high = steps[:, 1], steps[:, 2]
        place = graph.add("Div", graph.add("Sub", odds, graph.constant(low)), graph.constant(high - low))
        place = graph.add("Clip", place, graph.constant(0.0), graph.constant(1.0))
        heights = np.where(steps[:, :1] == np.arange(prior.size), steps[:, 3:], 0.0)
        digits = graph.constant(1e12)
        rounded = graph.add("Round", graph.add("Mul", graph.add("MatMul", place, graph.constant(heights)), digits))
        shares = best = graph.add("Div", rounded, digits)
        total = graph.add("ReduceSum", shares, graph.constant([1], np.int64), keepdims=1)
        even = graph.constant(np.full((1, prior.size), 1.0 / prior.size))
        divided = graph.add("Div", shares, graph.add("Max", total, graph.constant(1e-300)))
        shares = graph.add("Where", graph.add("Greater", total, graph.constant(0.0)), divided, even)
    elif len(tables.rules("line")):
        odds = _odds(graph, score, prior.size)
        certain = graph.add("Greater", graph.add("Abs", odds), graph.constant(-IMPOSSIBLE / 2.0))
        line = graph.add("Where", certain, odds, _line(graph, tables, odds))
        grown = graph.add("Exp", graph.add("Neg", graph.add("Abs", line)))
        log = graph.add("Log", graph.add("Add", grown, graph.constant(1.0)))
        shares = best = graph.add("Softmax", graph.add("Sub", graph.add("Min", line, graph.constant(0.0)), log), axis=1)
    else:
        _, heat, floor, _ = (tables.rules("temperature").tolist() or [[0, 1.0, IMPOSSIBLE, 0]])[0]
        impossible = graph.add("Less", score, graph.constant(IMPOSSIBLE / 2.0))
        raised = graph.add("Where", impossible, score, graph.add("Max", score, graph.constant(floor)))
        shares = graph.add("Softmax", graph.add("Div", raised, graph.constant(heat)), axis=1)
    place = graph.add("ArgMax", best, axis=1, keepdims=0)
    listed, kind = (names, np.int64) if are_whole(names) else ([*map(str, names)], object)
    return graph.add("Gather", graph.constant(listed, kind), place, axis=0), shares


def _line(graph: Graph, tables: EvidenceTable, x: str) -> str:
    _, slopes, shifts, _ = (graph.constant(numbers[None, :]) for numbers in tables.rules("line").T)
    return graph.add("Add", graph.add("Mul", x, slopes), shifts)


def _odds(graph: Graph, score: str, k: int) -> str:
    """Log-odds of each class against all others."""
    own_class = np.where(np.eye(k, dtype=np.bool_), 100.0 * IMPOSSIBLE, 0.0)[None]
    apart = graph.add("Add", graph.add("Unsqueeze", score, graph.constant([1], np.int64)), graph.constant(own_class))
    return graph.add("Sub", score, graph.add("ReduceLogSumExp", apart, axes=[2], keepdims=0))
