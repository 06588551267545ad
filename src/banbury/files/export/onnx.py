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
COUNTS = {"count": "Identity", "log": "Log", "root": "Sqrt", "presence": "Sign"}


def write(model: Any, min_rows: int) -> bytes:
    """The ONNX file of a model."""
    onnx = _onnx()
    tables = model.evidence_table(min_rows=min_rows)
    graph = Graph("banbury")
    columns = input_columns(tables)
    label, shares = posteriors(graph, tables, {name: Tensor(graph, name) for name, *_ in columns}, model.names)
    graph.answer(label, "label")
    graph.answer(shares.cast("FLOAT"), "probabilities")
    info = onnx.helper.make_tensor_value_info
    types = onnx.TensorProto
    k = tables.prior.num_rows
    inputs = [
        info(name, types.STRING if kind == "string" else types.DOUBLE, ["n", width]) for name, kind, width in columns
    ]
    several = tables.answers == "labels"
    kind = types.BOOL if several else types.INT64 if are_whole(model.names) else types.STRING
    answers = [info("label", kind, ["n", k] if several else ["n"]), info("probabilities", types.FLOAT, ["n", k])]
    made = onnx.helper.make_graph(graph.nodes, "banbury", inputs, answers, graph.initializers)
    opsets = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    written = onnx.helper.make_model(made, opset_imports=opsets, ir_version=8, producer_name="banbury")
    onnx.checker.check_model(written)
    return bytes(written.SerializeToString())


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
    except ImportError:
        text = "ONNX export needs the library onnx. Install it with: pip install 'banbury[onnx]'"
        raise errors.MissingLibrary(text, library="onnx") from None
    return onnx


def are_whole(names: Sequence[Any]) -> bool:
    """Whether classes are whole numbers, as which they are answered then; others are strings."""
    return all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names)


def _operator(name: str) -> Callable[[Tensor, Any], Tensor]:
    return lambda one, other: one.apply(name, other)


class Tensor:
    """What an operator of a graph gives; to operators, arrays and numbers are constants."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph = graph
        self.name = name

    def apply(self, operator: str, *more: Any, domain: str = "", **attributes: Any) -> Tensor:
        graph = self.graph
        name = f"{graph.prefix}/{len(graph.nodes)}"
        inputs = [graph.constant(x).name if not isinstance(x, Tensor) else x.name for x in (self, *more)]
        node = graph.onnx.helper.make_node(operator, inputs, [name], name=name, domain=domain, **attributes)
        graph.nodes.append(node)
        return Tensor(graph, name)

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")
    __matmul__ = _operator("MatMul")
    __lt__ = _operator("Less")
    __gt__ = _operator("Greater")
    __ge__ = _operator("GreaterOrEqual")

    def cast(self, kind: str) -> Tensor:
        return self.apply("Cast", to=getattr(self.graph.onnx.TensorProto, kind))

    def where(self, one: Any, other: Any) -> Tensor:
        return self.apply("Where", one, other)

    def clip(self, low: float, high: float) -> Tensor:
        return self.apply("Clip", low, high)

    def sum(self, keepdims: int = 1) -> Tensor:
        """The sum of each row."""
        return self.apply("ReduceSum", [1], keepdims=keepdims)


class Graph:
    """Nodes and constants in the making."""

    def __init__(self, prefix: str) -> None:
        self.onnx = _onnx()
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def constant(self, value: Any) -> Tensor:
        name = f"{self.prefix}/constant/{len(self.initializers)}"
        array = np.asarray(value)
        array = np.where(np.isneginf(array), IMPOSSIBLE, array) if array.dtype.kind == "f" else array
        array = array.astype(object) if array.dtype.kind == "U" else array
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        return Tensor(self, name)

    def answer(self, tensor: Tensor, name: str) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [tensor.name], [name]))


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


def posteriors(
    graph: Graph, tables: EvidenceTable, inputs: Mapping[str, Tensor], names: Sequence[Any]
) -> tuple[Tensor, Tensor]:
    """The answers and the posteriors, as doubles, from inputs by column."""
    score = graph.constant(tables.prior["nats"].to_numpy()[None, :])
    cells: dict[int, tuple[Tensor, int]] = {}
    curves = tables.curves.to_pylist()
    for column in tables.columns.to_pylist():
        x = inputs[column["name"]]
        column_curves = [curve for curve in curves if curve["column"] == column["column"]]
        if column["count"]:
            score += _bag(tables, column, x)
        elif column_curves:
            score += _curve(tables, column_curves, x)
        else:
            score += _entries(graph, tables, column, x, cells)
    pairs: dict[tuple[int, int], Any] = {}
    for row, nats in tables.entries_of("pairs"):
        (a, n), (b, m) = cells[row["first"]], cells[row["second"]]
        place = row["first"], row["second"]
        if place not in pairs:
            pairs[place] = a * m + b, np.zeros((n * m, tables.prior.num_rows))
        pairs[place][1][row["first_cell"] * m + row["second_cell"]] = nats
    for at, table in pairs.values():
        score += graph.constant(table).apply("Gather", at)
    return _answers(graph, tables, score, names)


def _entries(
    graph: Graph, tables: EvidenceTable, column: dict[str, Any], x: Tensor, cells: dict[int, tuple[Tensor, int]]
) -> Tensor:
    """What the values of a column say; its cells are kept for pairs."""
    name = "values" if column["kind"] == "string" else "steps"
    entries = [(row, nats) for row, nats in tables.entries_of(name) if row["column"] == column["column"]]
    nothing = len(entries)  # the last says nothing, of what is in no entry
    flat = x.apply("Reshape", [-1])
    if name == "values":
        keys = {(row["value"] or "") if not row["unseen"] else None: i for i, (row, _) in enumerate(entries)}
        unseen = keys.pop(None, nothing)
        coded: dict[str, Any] = {"keys_strings": list(keys), "values_int64s": list(keys.values())}
        at = flat.apply("LabelEncoder", domain="ai.onnx.ml", default_int64=unseen, **coded)
    else:
        starts = {row["from"]: i for i, (row, _) in enumerate(entries)}
        missing = starts.pop(None, nothing)
        ends = sorted({*starts, *(row["to"] for row, _ in entries if row["to"] is not None)} - {-np.inf, np.inf})
        passed = (x >= np.reshape(ends, (1, -1))).cast("INT64").sum(keepdims=0)
        at = graph.constant([starts.get(end, nothing) for end in (-np.inf, *ends)]).apply("Gather", passed)
        at = flat.apply("IsNaN").where(missing, at)
    row_cells = [row["cell"] for row, _ in entries]
    if None not in row_cells:
        n = max(row_cells) + 2  # one more for values in no cell
        cells[column["column"]] = graph.constant([*row_cells, n - 1]).apply("Gather", at), n
    nats = [*(nats for _, nats in entries), [0.0] * tables.prior.num_rows]
    return graph.constant(nats).apply("Gather", at)


def _curve(tables: EvidenceTable, curves: Sequence[dict[str, Any]], x: Tensor) -> Tensor:
    """What a number says of each class; a label has two curves."""
    x = x.apply("Reshape", [-1, 1])
    each = {name: np.array([curve[name] for curve in curves]) for name in curves[0]}
    z = ((x - each["origin"]) / each["unit"]).clip(-FARTHEST, FARTHEST)
    z = (z - each["centre"]) / each["width"]
    says = z * z * each["x2"] + z * each["x"] + each["one"]
    if each["log_x"].any():
        says += z.apply("Log") * each["log_x"]
    says @= np.where(each["class"][:, None] == np.arange(tables.prior.num_rows), 1.0, 0.0)
    return x.apply("IsNaN").where(0.0, says)


def _bag(tables: EvidenceTable, column: dict[str, Any], x: Tensor) -> Tensor:
    """What words, or columns of occurrences, say."""
    words, table, scale, common = tables.words_of(column["column"])
    if column["length"] == "all":
        expected = "False for ONNX, because text length includes words that the exported model cannot see"
        raise errors.bad_setting("length", True, expected)
    if column["kind"] == "text":
        words, table, scale = ([*words, ""], np.vstack([table, 0.0 * common]), np.append(scale, 0.0))
        size: dict[str, Any] = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "mode": "TF"}
        pool: dict[str, Any] = {"pool_strings": words, "ngram_counts": [0], "ngram_indexes": list(range(len(words)))}
        n = x.apply("TfIdfVectorizer", **size, **pool).cast("DOUBLE")
    else:
        n = x.apply("IsNaN").where(0.0, x)
        if column["threshold"] is not None:
            n = (n > column["threshold"]).cast("DOUBLE")
    n = n + 1.0 if column["count"] == "log" else n
    a = n.apply(COUNTS[column["count"]]) * scale[None, :]
    says = a @ table
    if column["length"] == "known":
        says /= (a * a).sum().apply("Sqrt").apply("Max", 1e-300)
    return says + common[None, :]


def _answers(graph: Graph, tables: EvidenceTable, score: Tensor, names: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The answers and the posteriors, from scores."""
    prior = tables.prior["nats"].to_numpy()[None, :]
    _, slopes, shifts, _ = tables.rules("line").reshape(-1, 4).T
    if tables.answers == "labels":
        shares = (score * slopes + shifts).apply("Sigmoid")
        return shares >= tables.rules("threshold")[:, 1], shares
    highest = score.apply("ReduceMax", axes=[1])
    none = highest < IMPOSSIBLE / 2.0  # then the prior answers
    score = none.where(prior - prior.max(), score - highest)
    steps = tables.rules("step")
    if not len(steps) and not len(slopes):
        _, heat, floor, _ = (tables.rules("temperature").tolist() or [[0, 1.0, IMPOSSIBLE, 0]])[0]
        raised = (score < IMPOSSIBLE / 2.0).where(score, score.apply("Max", floor))
        return _class_of(score, names), (raised / heat).apply("Softmax", axis=1)
    apart = score.apply("Unsqueeze", [1]) + np.where(np.eye(prior.size, dtype=np.bool_), 100.0 * IMPOSSIBLE, 0.0)
    odds = score - apart.apply("ReduceLogSumExp", axes=[2], keepdims=0)
    if len(slopes):
        line = (odds.apply("Abs") > -IMPOSSIBLE / 2.0).where(odds, odds * slopes + shifts)
        rest = (line.apply("Abs").apply("Neg").apply("Exp") + 1.0).apply("Log")
        shares = (line.apply("Min", 0.0) - rest).apply("Softmax", axis=1)
        return _class_of(shares, names), shares
    low, high = steps[:, 1], steps[:, 2]
    place = (odds.apply("Gather", steps[:, 0].astype(np.int64), axis=1) - low) / (high - low)
    heights = np.where(steps[:, :1] == np.arange(prior.size), steps[:, 3:], 0.0)
    shares = ((place.clip(0.0, 1.0) @ heights) * 1e12).apply("Round") / 1e12
    total = shares.sum()
    return _class_of(shares, names), (total > 0.0).where(shares / total.apply("Max", 1e-300), 1.0 / prior.size)


def _class_of(scores: Tensor, names: Sequence[Any]) -> Tensor:
    """The class of the highest score of each row."""
    listed = list(names) if are_whole(names) else [*map(str, names)]
    return scores.graph.constant(listed).apply("Gather", scores.apply("ArgMax", axis=1, keepdims=0))
