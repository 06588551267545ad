"""The Open Inference Protocol, version 2, over HTTP: health, metadata and infer, as other model servers have them.

An input is a column: a tensor of one value for each row, by the column's name. The outputs are ``class``, or ``labels`` where
rows have several, and ``posteriors``, (rows, classes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from banbury import errors
from banbury.labels import LabelModel
from banbury.service import answers
from banbury.service.learner import Learner
from banbury.service.rows import key

NUMBERS = ("BOOL", *(f"{kind}{bits}" for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)), "FP16", "FP32", "FP64")
KINDS = (*NUMBERS, "BYTES")
KNOWN = ("id", "inputs", "outputs", "parameters")
VERSION = "1"


def metadata(name: str, learner: Learner) -> dict[str, Any]:
    """What the model takes and gives: of each column the kind of its values."""
    kinds = {"text": "BYTES", "string": "BYTES", "number": "FP64", "list": "FP64"}
    inputs = []
    for column in learner.rows.columns:
        kind = learner.rows.kinds.get(column)
        shape = [-1, -1] if kind == "list" else [-1, 1]
        inputs.append({"name": column, "datatype": kinds.get(str(kind), "BYTES"), "shape": shape})
    several = learner.schema.labels is not None
    outputs = [
        {"name": "labels" if several else "class", "datatype": "BYTES", "shape": [-1, 1]},
        {"name": "posteriors", "datatype": "FP64", "shape": [-1, max(0, len(learner.classes) - several)]},
    ]
    return {"name": name, "versions": [VERSION], "platform": "banbury", "inputs": inputs, "outputs": outputs}


def infer(name: str, learner: Learner, given: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The answer to an inference request."""
    rows = rows_of(learner, given.get("inputs"), most)
    model, posterior, _ = answers.posteriors(learner, rows)
    if isinstance(model, LabelModel):
        kind, names, said = "labels", [*map(str, model.labels)], [key(list(own)) for own in model.chosen(posterior)]
    else:
        kind, names = "class", [*map(str, model.classes)]
        said = [names[k] for k in posterior.argmax(axis=1).tolist()]
    first = _output(kind, "BYTES", [len(rows), 1], said)
    each = _output("posteriors", "FP64", list(posterior.shape), posterior.ravel().tolist())
    each["parameters"] = {"classes": key(names)}
    outputs = {kind: first, "posteriors": each}
    wanted = _wanted(given.get("outputs"), outputs)
    told = {} if given.get("id") is None else {"id": str(given["id"])[:200]}
    return {"model_name": name, "model_version": VERSION, **told, "outputs": [outputs[one] for one in wanted]}


def _output(name: str, kind: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": kind, "shape": shape, "data": data}


def _wanted(given: Any, known: Mapping[str, Any]) -> list[str]:
    if given is None or given == []:
        return list(known)
    names = [each.get("name") if type(each) is dict else None for each in given] if type(given) is list else [None]
    for name in names:
        if type(name) is not str or name not in known:
            raise errors.unknown_choice("the name of an output", name, known)
    return names  # type: ignore[return-value]


def rows_of(learner: Learner, inputs: Any, most: int) -> list[Any]:
    """The rows of tensors: one for each column, or a single one of all columns, (rows, columns)."""
    if type(inputs) is not list or not inputs or not all(type(each) is dict for each in inputs):
        raise errors.bad_setting("inputs", inputs, "a list of tensors, with name, shape, datatype and data")
    rows, columns = learner.rows, dict[str, list[Any]]()
    for each in inputs:
        name, shape, kind, data = (each.get(part) for part in ("name", "shape", "datatype", "data"))
        if type(name) is not str or kind not in KINDS:
            raise errors.bad_setting("a tensor", kind, f"one with a name and a datatype of {', '.join(KINDS)}")
        if type(shape) is not list or not 1 <= len(shape) <= 2 or not all(type(n) is int and n >= 0 for n in shape):
            raise errors.bad_setting("shape", shape, "the number of rows, and of columns if there are several")
        flat = _flat(data)
        n, width = shape[0], shape[1] if len(shape) == 2 else 1
        if n * width != len(flat) or n > most:
            raise errors.bad_setting("shape", shape, f"that of its {len(flat):,} values, and of {most:,} rows at most")
        if len(inputs) == 1 and width == len(rows.columns) > 1:
            return [flat[at : at + width] for at in range(0, n * width, width)]
        wide = rows.kinds.get(name) == "list"
        values = [flat[at : at + width] for at in range(0, n * width, width)] if wide else flat
        if not wide and width != 1:
            raise errors.bad_setting("shape", shape, f"one value for each row of {errors.shortened(repr(name))}")
        columns[name] = [None if type(value) is float and value != value else value for value in values]
    if len({len(values) for values in columns.values()}) != 1:
        raise errors.bad_setting("inputs", [len(values) for values in columns.values()], "tensors of as many rows each")
    if rows.text is not None and len(columns) == 1:
        return next(iter(columns.values()))
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _flat(data: Any) -> list[Any]:
    errors.require(type(data) is list, "data", data, "a list of values, row by row")
    if any(type(value) is list for value in data):
        data = [value for row in data for value in (row if type(row) is list else [row])]
    return data  # type: ignore[no-any-return]
