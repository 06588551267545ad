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
    """Returns the ONNX file of a model."""
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
    """Whether classes are whole numbers, which are returned as numbers; other classes are returned as strings."""
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

    def pick(self, table: Any) -> Tensor:
        """The entries of a table at these places."""
        return self.graph.constant(table).apply("Gather", self)

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
    for column in tables.by_column():
        width = {"text": "tokens", "counts": len(column["words"]) - 1}.get(column["kind"], 1)
        inputs.append((column["name"], "string" if column["kind"] in ("text", "string") else "double", width))
    return inputs


def posteriors(
    graph: Graph, tables: EvidenceTable, inputs: Mapping[str, Tensor], names: Sequence[Any]
) -> tuple[Tensor, Tensor]:
    """The answers and the posteriors, as doubles, from inputs by column."""
    score = graph.constant(tables.prior["nats"].to_numpy()[None, :])
    cells: dict[int, tuple[Tensor, int]] = {}
    for column in tables.by_column():
        x = inputs[column["name"]]
        if column["words"]:
            score += _bag(column, x)
        elif column["curves"]:
            score += _curve(column["curves"], tables.prior.num_rows, x)
        else:
            score += _entries(column, tables.prior.num_rows, x, cells)
    pairs: dict[tuple[int, int], tuple[Tensor, Any]] = {}
    for pair in tables.entries("pairs"):
        (a, n), (b, m) = cells[pair["first"]], cells[pair["second"]]
        nothing = np.zeros((n * m, tables.prior.num_rows))
        _, table = pairs.setdefault((pair["first"], pair["second"]), (a * m + b, nothing))
        table[pair["first_cell"] * m + pair["second_cell"]] = pair["nats"]
    for at, table in pairs.values():
        score += at.pick(table)
    return _answers(tables, score, names)


def _entries(column: dict[str, Any], n_classes: int, x: Tensor, cells: dict[int, tuple[Tensor, int]]) -> Tensor:
    """What the values of a column say; its cells are kept for pairs."""
    entries = column["values"] or column["steps"]
    flat = x.apply("Reshape", [-1])
    no_entry = len(entries)  # the last says nothing, of what is in no entry
    if column["values"]:
        place = {None if entry["unseen"] else entry["value"] or "": i for i, entry in enumerate(entries)}
        unseen = place.pop(None, no_entry)
        coded: dict[str, Any] = {"keys_strings": list(place), "values_int64s": list(place.values())}
        entry_numbers = flat.apply("LabelEncoder", domain="ai.onnx.ml", default_int64=unseen, **coded)
    else:
        place = {entry["from"]: i for i, entry in enumerate(entries)}
        missing = place.pop(None, no_entry)
        ends = sorted({*place, *(entry["to"] for entry in entries if entry["to"] is not None)} - {-np.inf, np.inf})
        ends_passed = (x >= np.reshape(ends, (1, -1))).cast("INT64").sum(keepdims=0)
        entry_numbers = flat.apply("IsNaN").where(
            missing, ends_passed.pick([place.get(end, no_entry) for end in (-np.inf, *ends)])
        )
    row_cells = [entry["cell"] for entry in entries]
    if None not in row_cells:
        n = max(row_cells) + 2  # one more for values in no cell
        cells[column["column"]] = entry_numbers.pick([*row_cells, n - 1]), n
    return entry_numbers.pick([*(entry["nats"] for entry in entries), [0.0] * n_classes])


def _curve(curves: Sequence[dict[str, Any]], k: int, x: Tensor) -> Tensor:
    """What a number says of each class; a label has two curves."""
    x = x.apply("Reshape", [-1, 1])
    numbers = {name: np.array([curve[name] for curve in curves]) for name in curves[0]}
    z = ((x - numbers["origin"]) / numbers["unit"]).clip(-FARTHEST, FARTHEST) - numbers["centre"]
    says = z * z * numbers["x2"] + z * numbers["x"] + numbers["one"]
    if numbers["log_x"].any():
        says += z.apply("Log") * numbers["log_x"]
    says @= np.eye(k)[numbers["class"]]
    return x.apply("IsNaN").where(0.0, says)


def _bag(column: dict[str, Any], x: Tensor) -> Tensor:
    """What words, or columns of occurrences, say."""
    if column["length"] == "all":
        expected = "False for ONNX, because text length includes words that the exported model cannot see"
        raise errors.bad_setting("length", True, expected)
    common, *words = column["words"]
    scale = np.array([[word["scale"] for word in words]])
    if column["kind"] == "text":
        words.append({"word": "", "nats": [0.0] * len(common["nats"])})  # what texts are filled up with
        scale = np.append(scale, [[0.0]], axis=1)
        size: dict[str, Any] = {"min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "mode": "TF"}
        pool: dict[str, Any] = {
            "pool_strings": [word["word"] for word in words],
            "ngram_indexes": list(range(len(words))),
        }
        n = x.apply("TfIdfVectorizer", **size, **pool, ngram_counts=[0]).cast("DOUBLE")
    else:
        n = x.apply("IsNaN").where(0.0, x)
        if column["threshold"] is not None:
            n = (n > column["threshold"]).cast("DOUBLE")
    n = n + 1.0 if column["count"] == "log" else n
    a = n.apply(COUNTS[column["count"]]) * scale
    says = a @ np.array([word["nats"] for word in words])
    if column["length"] == "known":
        says /= (a * a).sum().apply("Sqrt").apply("Max", 1e-300)
    return says + np.array([common["nats"]])


def _answers(tables: EvidenceTable, score: Tensor, names: Sequence[Any]) -> tuple[Tensor, Tensor]:
    """The answers and the posteriors, from scores."""
    prior = tables.prior["nats"].to_numpy()[None, :]
    _, heat, floor, slope, shift, threshold = (column.to_numpy()[None, :] for column in tables.calibration.columns)
    if tables.answers == "labels":
        shares = (score * slope + shift).apply("Sigmoid")
        return shares >= threshold, shares
    highest = score.apply("ReduceMax", axes=[1])
    none = highest < IMPOSSIBLE / 2.0  # then the prior answers
    score = none.where(prior - prior.max(), score - highest)
    score = (score < IMPOSSIBLE / 2.0).where(score, score.apply("Max", floor)) / heat
    if not tables.bends:
        return _class_of(score, names), score.apply("Softmax", axis=1)
    apart = score.apply("Unsqueeze", [1]) + 100.0 * IMPOSSIBLE * np.eye(prior.size)
    odds = score - apart.apply("ReduceLogSumExp", axes=[2], keepdims=0)
    line = (odds.apply("Abs") > -IMPOSSIBLE / 2.0).where(odds, odds * slope + shift)
    rest = (line.apply("Abs").apply("Neg").apply("Exp") + 1.0).apply("Log")
    shares = (line.apply("Min", 0.0) - rest).apply("Softmax", axis=1)
    if tables.stairs.num_rows:
        classes, low, _, height, rise = (column.to_numpy() for column in tables.stairs.columns)
        starts = np.searchsorted(classes, np.arange(prior.size))
        passed = (odds.apply("Gather", classes, axis=1) >= low).cast("DOUBLE") @ np.eye(prior.size)[classes]
        at = (passed + (starts - 1.0)).cast("INT64")
        shares = at.pick(height) + at.pick(rise) * (odds - at.pick(low))
        total = shares.sum()
        shares = (total > 0.0).where(shares / total.apply("Max", 1e-300), 1.0 / prior.size)
    return _class_of(shares, names), shares


def _class_of(scores: Tensor, names: Sequence[Any]) -> Tensor:
    """The class of the highest score of each row."""
    return scores.apply("ArgMax", axis=1, keepdims=0).pick(list(names) if are_whole(names) else [*map(str, names)])
