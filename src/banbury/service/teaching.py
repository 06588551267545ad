"""Which rows of a state to ask people about: labels that look wrong, and rows without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from banbury import errors
from banbury.insight.next_labels import next_to_label
from banbury.insight.wrong_labels import suspicious as found_suspicious
from banbury.reading import Batch
from banbury.service.log import Kept
from banbury.service.state import ServedState

ORDERS = ("telling", "id")
POOL = 5_000  # rows without a label that are looked through


def suspicious(state: ServedState, n: int) -> dict[str, Any]:
    """The rows of the state whose labels look most wrong, each with the label that all others suggest, and why."""
    schema = state.learner.schema
    if schema.labels is not None:
        raise errors.BadSetting(
            "wrong labels can be found only when each row has one class, but this model predicts sets of labels. Create a state "
            "for a single label with the classes yes and no."
        )
    rows = state.log.rows(labelled=True)
    labels = labels_of(rows)
    if len(set(map(str, labels))) < 2:
        return {"rows": []}
    ranking = found_suspicious(batch_of(state, rows), labels, n=n, schema=schema)
    pairs = zip(ranking.rows, ranking.explanations, strict=True)  # the row itself in place of its number
    entries = [
        {**suspect.to_dict(), **row_as_dict(rows[suspect.row]), "explanation": why.to_dict()} for suspect, why in pairs
    ]
    return {"rows": entries}


def next_rows(state: ServedState, n: int, order: str) -> dict[str, Any]:
    """Rows without a label: those whose labels would teach most, some of them at random; or in the order of their ids."""
    if order not in ORDERS:
        raise errors.unknown_choice("order", order, ORDERS)
    rows = state.log.rows(n=n if order == "id" else POOL, labelled=False)
    if not rows or n == 0:
        return {"rows": []}
    classes = state.learner.classes
    if order == "id" or len(classes) < 2 or state.learner.schema.labels is not None:
        return {"rows": [row_as_dict(row) for row in rows[:n]]}
    model = state.learner.apart()
    ranking = next_to_label(model, batch_of(state, rows), n=min(n, len(rows)), seed=state.change_number)
    return {"rows": [{**candidate.to_dict(), **row_as_dict(rows[candidate.row])} for candidate in ranking.rows]}


def row_as_dict(row: Kept) -> dict[str, Any]:
    return {"id": row.id, "row": json.loads(row.row)}


def batch_of(state: ServedState, rows: Sequence[Kept]) -> Batch:
    return state.learner.rows.batch([json.loads(row.row) for row in rows])


def labels_of(rows: Sequence[Kept]) -> list[Any]:
    return [json.loads(row.label or "null") for row in rows]
