"""Refitting: what evidence is worth, learned again from all rows of a state, beside its answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from banbury import errors
from banbury.learner import ModelSettings, Settings, settings_of
from banbury.quality.label_recipes import WeighedLabels
from banbury.rows.labelled import load_rows
from banbury.service.log import Kept
from banbury.service.state import NotKept, ServedState
from banbury.tally.label_sets import LabelSets
from banbury.tally.table import Held, Table
from banbury.tally.tally import Tally
from banbury.weighing import Weighing, learn

Answer = dict[str, Any]


class Refitting:
    """Learns weights again beside the answers, which go on with the old ones; one at a time."""

    def __init__(self, state: ServedState) -> None:
        self.state = state
        self.problem: str | None = None  # what went wrong the last time
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def under_way(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def begin(self) -> Answer:
        """Begins, unless it is under way; raises where weights cannot be learned."""
        with self._lock:
            if not self.under_way:
                settings = self.state.learner.settings
                if settings.weighing is None:
                    raise NotKept("the model is plain: it has no weights to relearn and is always up to date.")
                tally, rows, change = _all_rows(self.state)
                self._thread = threading.Thread(target=self._learn, args=(settings, tally, rows, change), daemon=True)
                self._thread.start()
        return {"refitting": True, "as_of": self.state.change_number}

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _learn(self, settings: Settings, tally: Tally, rows: list[Kept], change: int) -> None:
        try:
            learned = refit_settings(self.state, settings, tally, rows)
            self.state.weigh(learned, change)
            self.problem = None
        except Exception as problem:  # the old weights go on; what went wrong is told
            self.problem = describe_problem(problem)


def describe_problem(problem: Exception) -> str:
    """The message of our own errors; of any other its type alone, since its message may hold what a row holds."""
    return str(problem) if isinstance(problem, errors.BanburyError) else type(problem).__name__


def _all_rows(state: ServedState) -> tuple[Tally, list[Kept], int]:
    """The sums and the rows that make them up; raises where some rows were counted before the state was begun."""
    tally, rows, change = state.standing()
    if len(rows) != tally.n_rows:
        raise NotKept(
            f"weights are learned from rows, but {tally.n_rows - len(rows):,g} of {tally.n_rows:,g} were counted before the "
            "state was created. Create it with them: banbury serve MODEL --state DIR --learned ROWS."
        )
    return tally, rows, change


def refit_settings(state: ServedState, settings: Settings, tally: Tally, rows: Sequence[Kept]) -> Settings:
    """The settings with weights that these rows teach, which a tally counted."""
    batch = state.learner.rows.batch([json.loads(kept.row) for kept in rows])
    labels: Any = [json.loads(kept.label or "") for kept in rows]
    several = tally.schema.labels is not None
    labels = LabelSets.of(labels) if several else labels
    if several:
        rows_of_labels = load_rows(batch, labels, schema=tally.schema, threads=settings.threads)
        learned = settings_of(WeighedLabels(settings.choice.how).learn(rows_of_labels), settings.threads)
        return replace(learned, choice=settings.choice)
    table = Table.of(Held((batch,)), labels, schema=tally.schema, threads=settings.threads)
    assert isinstance(settings, ModelSettings)
    how = settings.weighing.settings if isinstance(settings.weighing, Weighing) else {}
    return replace(settings, weighing=learn(tally, table, **how), calibration=None)
