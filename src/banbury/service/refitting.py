"""Relearns the weights of the evidence from all rows of a state, in the background."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from banbury import errors
from banbury.files.checking import JsonObject
from banbury.learner import ModelSettings, Settings, settings_of
from banbury.quality.label_recipes import WeighedLabels
from banbury.reading import Source
from banbury.rows.labelled import load_rows
from banbury.service.log import StoredRow
from banbury.service.state import NotKept, ServedState
from banbury.tally.label_sets import LabelSets
from banbury.tally.table import Table
from banbury.tally.tally import Tally
from banbury.weighing import Weighing, learn


@dataclass
class Refitting:
    """Relearns the weights of a state in a background thread, one at a time, while the service answers with the old
    ones.
    """

    state: ServedState
    problem: str | None = None  # the message of the last error; None if weights were learned since
    _thread: threading.Thread | None = None  # learns weights, or has learned them last
    _lock: threading.Lock = field(default_factory=threading.Lock)  # held while a thread is started

    @property
    def under_way(self) -> bool:
        """Whether weights are being learned."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self) -> JsonObject:
        """Starts to relearn the weights, unless that is in progress, and returns the answer for JSON. Raises NotKept if
        they cannot be learned.
        """
        with self._lock:
            if not self.under_way:
                settings = self.state.learner.settings  # with which models are derived
                if settings.weighing is None:
                    raise NotKept("the model is plain: it has no weights to relearn and is always up to date.")
                tally, rows, change = _all_rows(self.state)
                self._thread = threading.Thread(target=self._learn, args=(settings, tally, rows, change), daemon=True)
                self._thread.start()
        return {"refitting": True, "as_of": self.state.change_number}

    def wait(self) -> None:
        """Waits until no weights are being learned."""
        if self._thread is not None:
            self._thread.join()

    def _learn(self, settings: Settings, tally: Tally, rows: list[StoredRow], change: int) -> None:
        """Learns the weights and has the state use them; sets ``problem`` if that fails. ``settings``: those of the
        model so far; ``tally``, ``rows``: the counts, and the labelled rows in them; ``change``: the last change in
        both.
        """
        try:
            new_settings = refit_settings(self.state, settings, tally, rows)
            self.state.weigh(new_settings, change)
            self.problem = None
        except Exception as error:  # the old weights stay in use
            self.problem = describe_problem(error)


def describe_problem(error: Exception) -> str:
    """Returns the message of an error of ours; of others only the type, since the message may contain data."""
    return str(error) if isinstance(error, errors.BanburyError) else type(error).__name__


def _all_rows(state: ServedState) -> tuple[Tally, list[StoredRow], int]:
    """Returns the counts, the labelled rows, and the last change in both. Raises NotKept if some counted rows are not
    in the state.
    """
    tally, rows, change = state.rows_with_labels()
    if len(rows) != tally.n_rows:
        raise NotKept(
            f"weights are learned from rows, but {tally.n_rows - len(rows):,g} of {tally.n_rows:,g} were counted before the "
            "state was created. Create it with them: banbury serve MODEL --state DIR --learned ROWS."
        )
    return tally, rows, change


def refit_settings(state: ServedState, settings: Settings, tally: Tally, rows: Sequence[StoredRow]) -> Settings:
    """Returns ``settings`` with weights learned anew from these rows, whose counts are ``tally``. A model of one class
    per row is no longer calibrated then.
    """
    batch = state.learner.rows.batch([json.loads(stored.row) for stored in rows])
    labels = [json.loads(stored.label or "") for stored in rows]  # classes, or lists of labels
    if tally.schema.labels is not None:
        labelled_rows = load_rows(batch, LabelSets.of(labels), schema=tally.schema, threads=settings.threads)
        new_settings = settings_of(WeighedLabels(settings.choice.how).learn(labelled_rows), settings.threads)
        return replace(new_settings, choice=settings.choice)
    table = Table.of(Source.of([batch]), labels, schema=tally.schema, threads=settings.threads)
    assert isinstance(settings, ModelSettings)
    # With which the old weights were learned, by name.
    weighing_options = settings.weighing.settings if isinstance(settings.weighing, Weighing) else {}
    return replace(settings, weighing=learn(tally, table, **weighing_options), calibration=None)
