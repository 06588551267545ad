"""Which rows of a state people should look at: labels that look wrong, and unlabelled rows worth labelling."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from banbury import errors
from banbury.files.checking import JsonObject
from banbury.insight.next_labels import next_to_label
from banbury.insight.wrong_labels import suspicious as rank_suspicious
from banbury.reading import Batch
from banbury.service.log import StoredRow
from banbury.service.state import ServedState

ORDERS = ("informative", "id")  # orders of the rows to label next
MOST_RANKED = 5_000  # unlabelled rows that are ranked


def suspicious(state: ServedState, n: int) -> JsonObject:
    """Returns the ``n`` rows whose labels look most wrong, each with the suggested label and an explanation, for JSON."""
    schema = state.learner.schema
    if schema.labels is not None:
        raise errors.BadSetting(
            "wrong labels can be found only when each row has one class, but this model predicts sets of labels. Create a state "
            "for a single label with the classes yes and no."
        )
    rows = state.log.rows(labelled=True)
    labels = labels_of(rows)  # the class of each row
    if len(set(map(str, labels))) < 2:
        return {"rows": []}
    # Rows by number, the most suspicious first, and an explanation of each.
    ranking = rank_suspicious(batch_of(state, rows), labels, n=n, schema=schema)
    # Entries for JSON have the id and the content of the row too.
    suspects = zip(ranking.rows, ranking.explanations, strict=True)
    entries = [
        {**suspect.to_dict(), **row_as_dict(rows[suspect.row]), "explanation": explanation.to_dict()}
        for suspect, explanation in suspects
    ]
    return {"rows": entries}


def next_rows(state: ServedState, n: int, order: str) -> JsonObject:
    """Returns the ``n`` unlabelled rows to label next, for JSON. ``order``: "informative" for those that would teach
    the model most, with some at random, or "id" for the first ones.
    """
    if order not in ORDERS:
        raise errors.unknown_choice("order", order, ORDERS)
    rows = state.log.rows(n=n if order == "id" else MOST_RANKED, labelled=False)  # those without a label
    if not rows or n == 0:
        return {"rows": []}
    classes = state.learner.classes
    if order == "id" or len(classes) < 2 or state.learner.schema.labels is not None:
        return {"rows": [row_as_dict(row) for row in rows[:n]]}
    model = state.learner.snapshot_model()
    ranking = next_to_label(model, batch_of(state, rows), n=min(n, len(rows)), seed=state.change_number)
    return {"rows": [{**candidate.to_dict(), **row_as_dict(rows[candidate.row])} for candidate in ranking.rows]}


def row_as_dict(row: StoredRow) -> JsonObject:
    """Returns the id and the content of a stored row, for JSON."""
    return {"id": row.id, "row": json.loads(row.row)}


def batch_of(state: ServedState, rows: Sequence[StoredRow]) -> Batch:
    """Returns the contents of stored rows as a batch, in the same order."""
    return state.learner.rows.batch([json.loads(row.row) for row in rows])


def labels_of(rows: Sequence[StoredRow]) -> list[Any]:
    """Returns the labels of stored rows (classes, or lists of labels), in the same order; None where there is none."""
    return [json.loads(row.label or "null") for row in rows]
