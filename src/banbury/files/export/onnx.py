"""ONNX: the evidence table as a graph of standard operators, in doubles: each column finds its entry, and nats are added.

Inputs are columns: numbers as doubles, (n, 1), where NaN is missing; strings, (n, 1), where an empty one is; texts as their
tokens, (n, tokens), filled up with empty ones; and blocks of occurrences as doubles, (n, columns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from banbury import errors
from banbury.model.evidence_table import EvidenceTable, Record

OPSETS = (("", 17), ("ai.onnx.ml", 3))  # domains of operators with their versions
MOST_UNITS = 2.0**400  # in a curve's units: numbers farther from a curve's origin are scored as if they were this far
SMALLEST_NORMAL = 2.2250738585072014e-308  # the smallest normal double
IMPOSSIBLE = -1e300  # stands for minus infinity, since 0 times infinity is not a number
# The operator that turns how often a word occurs into the amount by which it counts.
OPERATOR_OF_AMOUNT = {"count": "Identity", "log": "Log", "root": "Sqrt", "presence": "Sign"}
CONSTANTS: dict[str, Any] = {  # inputs of the programs below that are the same for every model
    "axis": [1],
    "all_rows": [-1],
    "column_shape": [-1, 1],
    "one": 1.0,
    "zero": 0.0,
    "missing": np.nan,
    "largest": np.finfo(np.float64).max,
    "far_below": -MOST_UNITS,
    "far_above": MOST_UNITS,
    "tiny": SMALLEST_NORMAL,
    "least_sum": 1e-300,
    "barely_possible": IMPOSSIBLE / 2.0,
    "certain": -IMPOSSIBLE / 2.0,
}

# Programs in the text syntax of ONNX, for ``Graph.add``. x is an input of the model, (n, 1); nats are its evidence, (n, classes).
STRING_PROGRAM = """
    column = ai.onnx.ml.LabelEncoder(x)
    entry = Reshape(column, all_rows)
"""
NUMBER_PROGRAM = """
    doubles = Cast<to = 11>(x)
    column = Reshape(doubles, column_shape)
    size = Abs(column)
    is_number = LessOrEqual(size, largest)
    number = Where(is_number, column, missing)
    is_missing = IsNaN(number)
"""
INTERVAL_PROGRAM = f"""{NUMBER_PROGRAM}
    is_beyond = GreaterOrEqual(number, starts)
    beyond = Cast<to = 7>(is_beyond)
    interval = ReduceSum<keepdims = 0>(beyond, axis)
    is_row_missing = Reshape(is_missing, all_rows)
    entry = Where(is_row_missing, missing_entry, interval)
"""
CURVE_PROGRAM = f"""{NUMBER_PROGRAM}
    offset = Sub(number, curve_origin)
    units = Div(offset, curve_unit)
    near_units = Clip(units, far_below, far_above)
    u = Div(near_units, curve_width)
    z = Sub(u, curve_centre)
    z_squared = Mul(z, z)
    positive_u = Max(u, tiny)
    log_u = Log(positive_u)
    log_less_z = Sub(log_u, z)
    term_of_x = Mul(z, curve_x)
    term_of_x2 = Mul(z_squared, curve_x2)
    term_of_log = Mul(log_less_z, curve_log)
    curves = Sum(curve_one, term_of_x, term_of_x2, term_of_log)
    by_class = MatMul(curves, class_of_curve)
    highest = ReduceMax<axes = [1]>(by_class)
    common = Mul(highest, one_unless_labels)
    less_highest = Sub(by_class, common)
    nats = Where(is_missing, zero, less_highest)
"""
PAIR_PROGRAM = """
    column = Reshape(cell, column_shape)
    other_column = Reshape(other_cell, column_shape)
    cells = Concat<axis = 1>(column, other_column)
    nats = GatherND(table, cells)
"""
TEXT_PROGRAM = """
    times = TfIdfVectorizer<min_gram_length=1, max_gram_length=1, max_skip_count=0, mode="TF", ngram_counts=[0]>(x)
    n = Cast<to = 11>(times)
"""
BLOCK_PROGRAM = """
    doubles = Cast<to = 11>(x)
    is_counted = Greater(doubles, threshold)
    presence = Cast<to = 11>(is_counted)
    n = Where(is_counted, doubles, zero)
"""
BAG_PROGRAM = """
    n_or_next = Add(n, one_if_log)
    amount = {operator}(n_or_next)
    scaled_amount = Mul(amount, scale)
    sums = MatMul(scaled_amount, word_nats)
    squares = Mul(scaled_amount, scaled_amount)
    sum_of_squares = ReduceSum(squares, axis)
    norm = Sqrt(sum_of_squares)
    positive_norm = Max(norm, least_sum)
    length = Pow(positive_norm, one_if_normalised)
    words = Div(sums, length)
    nats = Add(words, common_nats)
"""
LABELS_PROGRAM = """
    slanted = Mul(score, slope)
    odds = Add(slanted, shift)
    shares = Sigmoid(odds)
    label = GreaterOrEqual(shares, threshold)
"""
CLASSES_PROGRAM = """
    highest = ReduceMax<axes = [1]>(score)
    is_impossible_row = Less(highest, barely_possible)
    less_highest = Sub(score, highest)
    relative = Where(is_impossible_row, prior, less_highest)
    is_impossible = Less(relative, barely_possible)
    raised = Max(relative, floor)
    floored = Where(is_impossible, relative, raised)
    heated = Div(floored, temperature)
    shares = Softmax<axis = 1>(heated)
"""
CALIBRATION_PROGRAM = """
    rows = Unsqueeze(heated, axis)
    rivals = Add(rows, impossible_itself)
    rivals_together = ReduceLogSumExp<axes = [2], keepdims = 0>(rivals)
    odds = Sub(heated, rivals_together)
    size = Abs(odds)
    is_certain = Greater(size, certain)
    slanted = Mul(odds, slope)
    shifted = Add(slanted, shift)
    line = Where(is_certain, odds, shifted)
    line_size = Abs(line)
    opposite = Neg(line_size)
    exponential = Exp(opposite)
    one_more = Add(exponential, one)
    log_one_more = Log(one_more)
    at_most_zero = Min(line, zero)
    log_shares = Sub(at_most_zero, log_one_more)
    shares = Softmax<axis = 1>(log_shares)
"""
ISOTONIC_PROGRAM = """
    odds_by_stair = Gather<axis = 1>(odds, class_of_stair)
    is_passed = GreaterOrEqual(odds_by_stair, low)
    passed = Cast<to = 11>(is_passed)
    n_passed = MatMul(passed, is_stair_of_class)
    place = Add(n_passed, place_before)
    stair = Cast<to = 7>(place)
    share_there = Gather(share, stair)
    slope_there = Gather(slope, stair)
    low_there = Gather(low, stair)
    offset = Sub(odds, low_there)
    rise = Mul(offset, slope_there)
    raw_shares = Add(share_there, rise)
    sum = ReduceSum(raw_shares, axis)
    is_positive = Greater(sum, zero)
    divisor = Max(sum, least_sum)
    normalised = Div(raw_shares, divisor)
    shares = Where(is_positive, normalised, equal_share)
"""
BEST_PROGRAM = """
    best = ArgMax<axis = 1, keepdims = 0>(shares)
    label = Gather(names, best)
"""


def write(model: Any, min_rows: int) -> bytes:
    """Returns the ONNX file of a model. Values that fewer than ``min_rows`` rows have are left out."""
    tables = model.evidence_table(min_rows=min_rows)
    graph = Graph("banbury")
    describe_tensor = graph.onnx.helper.make_tensor_value_info  # takes a name, a type and a shape
    types = graph.onnx.TensorProto
    inputs = []  # the described tensor of each column
    for column in tables.by_column():
        name = column["name"]
        is_free = name not in ("", "label", "probabilities") and not name.startswith("banbury/")
        errors.require(is_free, "a column name", name, "different from the names of the graph; rename the column")
        # A block of counts has an entry for each of its columns, and one for every row.
        width = {"text": "tokens", "counts": len(column["entries"]) - 1}.get(column["kind"], 1)
        kind = types.STRING if column["kind"] in ("text", "string") else types.DOUBLE
        inputs.append(describe_tensor(name, kind, ["n", width]))
    # The names of the tensors of answers and of posteriors.
    label, shares = add_posteriors(graph, tables, {tensor.name: tensor.name for tensor in inputs}, model._names)
    graph.add_output("label", label, "Identity")
    graph.add_output("probabilities", shares, "Cast", to=types.FLOAT)
    shape = ["n", len(model._names)]  # rows × classes
    label_type = types.INT64 if are_whole(model._names) else types.STRING
    # The type and shape of the answers: flags (rows × labels), or a class per row.
    label_output = (types.BOOL, shape) if tables.answers == "labels" else (label_type, ["n"])
    outputs = [describe_tensor("label", *label_output), describe_tensor("probabilities", types.FLOAT, shape)]
    proto = graph.onnx.helper.make_graph(graph.nodes, "banbury", inputs, outputs, graph.initializers)
    opsets = [graph.onnx.helper.make_opsetid(domain, opset) for domain, opset in OPSETS]
    file = graph.onnx.helper.make_model(proto, opset_imports=opsets, ir_version=8, producer_name="banbury")
    graph.onnx.checker.check_model(file)
    return bytes(file.SerializeToString())


def import_library(name: str) -> Any:
    """Returns the library ``name``, which export to ONNX needs. Raises an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        advice = "Install it with: pip install 'banbury[onnx]'"
        raise errors.MissingLibrary(f"ONNX export needs the library {name}. {advice}", library=name) from None


def are_whole(names: Sequence[Any]) -> bool:
    """Returns whether classes are whole numbers, which are returned as numbers; other classes are returned as strings."""
    return all(isinstance(name, (int, np.integer)) and not isinstance(name, bool) for name in names)


class Graph:
    """Collects the nodes and constants of a graph, in which the names of all tensors begin with ``prefix``."""

    def __init__(self, prefix: str) -> None:
        """Begins an empty graph, whose tensors have names that begin with ``prefix``. Raises an error if onnx is not
        installed.
        """
        self.onnx = import_library("onnx")
        self.prefix = prefix
        self.nodes: list[Any] = []  # operators with the names of their inputs and output, in order
        self.initializers: list[Any] = []  # constant tensors

    def add(self, program: str, attributes: Mapping[str, Any] | None = None, **inputs: Any) -> dict[str, str]:
        """Adds the nodes of a program. ``inputs`` has for each input of the program the name of a tensor in the graph
        (a text) or a constant; other inputs are taken from ``CONSTANTS``. ``attributes`` are those of its first node.
        Returns the name in the graph of each tensor of the program.
        """
        # Names in the graph, by name in the program.
        names = {name: tensor for name, tensor in inputs.items() if isinstance(tensor, str)}
        prefix = f"{self.prefix}/{len(self.nodes)}"
        nodes = self.onnx.parser.parse_graph(f"program () => () {{ {program} }}").node
        for name, setting in (attributes or {}).items():
            nodes[0].attribute.append(self.onnx.helper.make_attribute(name, setting))
        for node in nodes:
            for name in node.input:
                if name not in names:
                    names[name] = f"{prefix}/{name}"
                    array = np.asarray({**CONSTANTS, **inputs}[name])  # the value of a constant
                    if array.dtype.kind == "f":
                        array = np.where(np.isneginf(array), IMPOSSIBLE, array)
                    self.initializers.append(self.onnx.numpy_helper.from_array(array, names[name]))
            node.input[:] = [names[name] for name in node.input]
            names[node.output[0]] = node.output[0] = f"{prefix}/{node.output[0]}"
            self.nodes.append(node)
        return names

    def add_output(self, name: str, tensor: str, operator: str, **attributes: Any) -> None:
        """Adds the output ``name`` of the graph: ``operator``, with its ``attributes``, applied to the tensor of this
        name.
        """
        self.nodes.append(self.onnx.helper.make_node(operator, [tensor], [name], **attributes))


def add_posteriors(
    graph: Graph, tables: EvidenceTable, inputs: Mapping[str, str], names: Sequence[Any]
) -> tuple[str, str]:
    """Adds to the graph everything from inputs to answers. ``tables`` has the model's evidence, ``inputs`` the name of
    the tensor of each column, and ``names`` are the classes. Returns the names of the tensors of answers and of
    posteriors.
    """
    prior = tables.prior["nats"].to_numpy()[None, :]  # (1, classes)
    nats_tensors = []  # the names of the tensors of evidence, (n, classes)
    cells_of_column: dict[int, tuple[str, int]] = {}  # the tensor of a column's cells, and the number of cells
    for column in tables.by_column():
        tensor = inputs[column["name"]]  # the name of the column's tensor
        if column["kind"] in ("text", "counts"):
            nats_tensors.append(_add_bag(graph, column, tensor))
        elif column["curves"]:
            # The inputs of the program by name: of each curve its class and the coefficients of its terms.
            program_inputs: dict[str, Any] = {f"curve_{name}": numbers for name, numbers in column["curves"].items()}
            # (curves, classes): 1 for the curve's class.
            program_inputs["class_of_curve"] = np.eye(prior.size)[program_inputs["curve_class"]]
            program_inputs["one_unless_labels"] = float(tables.answers == "classes")
            nats_tensors.append(graph.add(CURVE_PROGRAM, x=tensor, **program_inputs)["nats"])
        else:
            entries = [*column["entries"].values(), column["unseen"]]
            cells = [-1 if entry["cell"] is None else entry["cell"] for entry in entries]  # −1: the last cell
            # Looks up each row's nats and cell by the number of its entry.
            program = "nats = Gather(table, entry)\n cell = Gather(cells, entry)"
            nats = [entry["nats"] for entry in entries]  # entries × classes
            tensors = graph.add(program, entry=_add_entry(graph, column, tensor), table=nats, cells=cells)
            nats_tensors.append(tensors["nats"])
            cells_of_column[column["column"]] = tensors["cell"], max(cells) + 2  # with the last, of values in no cell
    pairs: dict[tuple[int, int], Any] = {}  # nats (cells, cells, classes) by the two columns
    for pair in tables.entries("pairs"):
        columns = pair["first"], pair["second"]  # their numbers
        shape = *(cells_of_column[column][1] for column in columns), prior.size  # of the table of all pairs of cells
        table = pairs.setdefault(columns, np.zeros(shape))
        table[pair["first_cell"], pair["second_cell"]] = pair["nats"]
    for (first, second), table in pairs.items():
        cell, other_cell = (  # the names of the tensors of both columns' cells
            cells_of_column[column][0] for column in (first, second)
        )
        nats_tensors.append(graph.add(PAIR_PROGRAM, table=table, cell=cell, other_cell=other_cell)["nats"])
    score: Any = prior  # then the name of the tensor of the sum so far
    for nats_tensor in nats_tensors:
        score = graph.add("sum = Add(total, nats)", total=score, nats=nats_tensor)["sum"]
    return _add_answers(graph, tables, score, names)


def _add_entry(graph: Graph, column: Record, x: str) -> str:
    """Adds to the graph the search for the entry of each row's value or number, and returns the name of the tensor of
    entry numbers, (n,). The entry for unseen values is the last. ``column`` is an entry of ``EvidenceTable.by_column``;
    ``x`` is the name of its input tensor.
    """
    keys = [*column["entries"]]  # values, or where intervals start; None for missing, which comes last for numbers
    if column["kind"] == "number":
        return graph.add(INTERVAL_PROGRAM, x=x, starts=[keys[1:-1]], missing_entry=len(keys) - 1)["entry"]
    entry_numbers = {key or "": number for number, key in enumerate(keys)}  # by value; a missing one is empty
    encoding = {
        "keys_strings": [*entry_numbers],
        "values_int64s": [*entry_numbers.values()],
        "default_int64": len(keys),
    }
    return graph.add(STRING_PROGRAM, encoding, x=x)["entry"]


def _add_bag(graph: Graph, column: Record, x: str) -> str:
    """Adds to the graph the evidence of a text or of a block of counts. ``column`` is an entry of
    ``EvidenceTable.by_column``; ``x`` is the name of its input tensor. Returns the name of the tensor of nats, (n,
    classes).
    """
    if column["length"] and column["unseen"]["scale"]:
        raise errors.bad_setting(
            "length", True, "False for ONNX, because text length includes words that the exported model cannot see"
        )
    entry_of_every_text = column["entries"].pop(None)  # its nats belong to every text
    words = [*column["entries"]]
    entries = [*column["entries"].values()]  # of each word: the scale of its amount, and its nats, one per class
    if column["kind"] == "text":
        words.append("")  # fills up the tokens of short texts
        entries.append({"scale": 0.0, "nats": 0.0 * entry_of_every_text["nats"]})
        vocabulary = {"pool_strings": words, "ngram_indexes": [*range(len(words))]}
        n = graph.add(TEXT_PROGRAM, vocabulary, x=x)["n"]  # the tensor of how often each text has each word
    else:
        block = graph.add(BLOCK_PROGRAM, x=x, threshold=column["threshold"])
        n = block["presence" if column["count"] == "presence" else "n"]
    program = BAG_PROGRAM.format(operator=OPERATOR_OF_AMOUNT[column["count"]])
    tensors = graph.add(
        program,
        n=n,
        one_if_log=float(column["count"] == "log"),
        scale=[[entry["scale"] for entry in entries]],
        word_nats=[entry["nats"] for entry in entries],
        one_if_normalised=float(column["length"]),
        common_nats=entry_of_every_text["nats"],
    )
    return tensors["nats"]


def _add_answers(graph: Graph, tables: EvidenceTable, score: str, names: Sequence[Any]) -> tuple[str, str]:
    """Adds to the graph the calibration of scores and the choice of the answer. ``tables`` has the model's prior and
    calibration. ``score`` is the name of the tensor of scores, (n, classes), and ``names`` are the classes. Returns the
    names of the tensors of answers and of posteriors.
    """
    prior = tables.prior["nats"].to_numpy()[None, :]  # (1, classes), as each of the rules
    rule_names = tables.calibration.column_names[1:6]  # temperature, floor, slope, shift and threshold
    rules = {name: tables.calibration[name].to_numpy()[None, :] for name in rule_names}
    if tables.answers == "labels":
        tensors = graph.add(LABELS_PROGRAM, score=score, **rules)
        return tensors["label"], tensors["shares"]
    tensors = graph.add(CLASSES_PROGRAM, score=score, prior=prior - prior.max(), **rules)
    ranking = tensors["heated"]  # the tensor whose largest entry decides the answer
    if tables.bends:
        identity = np.eye(prior.size)  # (classes, classes)
        tensors = graph.add(
            CALIBRATION_PROGRAM, heated=ranking, impossible_itself=100.0 * IMPOSSIBLE * identity, **rules
        )
        if stairs := [*tables.stairs()]:
            # Of each stair: its class, the log-odds at which it begins, the share there and the slope.
            class_of_stair, low, _, share, slope = map(np.array, zip(*stairs, strict=True))
            tensors = graph.add(
                ISOTONIC_PROGRAM,
                odds=tensors["odds"],
                class_of_stair=class_of_stair,
                low=low,
                share=share,
                slope=slope,
                is_stair_of_class=identity[class_of_stair],
                place_before=np.searchsorted(class_of_stair, np.arange(prior.size)) - 1.0,
                equal_share=1.0 / prior.size,
            )
        ranking = tensors["shares"]
    answers = np.array([*names]) if are_whole(names) else np.array([*map(str, names)], dtype=object)
    return graph.add(BEST_PROGRAM, shares=ranking, names=answers)["label"], tensors["shares"]
