"""ServedLearner: a learner that one thread changes row by row while many threads use its model."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple

from banbury import errors
from banbury.learner import Learner, ModelSettings, Settings
from banbury.model.naive_bayes import class_log_prior
from banbury.service.rows import JsonRows
from banbury.tally.schema import Schema
from banbury.tally.tally import Tally

QUICK_SECONDS = 0.02  # a model derived faster than this is updated before each answer, a slower one in the background


class Derived(NamedTuple):
    """A model derived from the counts as of ``change``, its settings, and the seconds that deriving it took."""

    model: Any
    settings: Any
    change: int  # the number of the last change in the counts
    seconds: float


class ServedLearner:
    """One thread adds and removes rows; any thread may use the model. The counts are always exact.

    The parameters of a plain model follow every row in place. Weighed and multi-label models are derived anew: at once
    if that is quick, otherwise in the background, and answers say as of which change they are.
    """

    def __init__(self, tally: Tally, settings: Settings, change: int = 0) -> None:
        """``tally``: the counts to begin with; ``settings``: those with which models are derived; ``change``: the
        number of the last change in the counts.
        """
        self.rows = JsonRows(tally.schema)  # turns rows of JSON into batches
        self.lock = threading.RLock()  # held while the counts change, or a model that follows them is used
        self.change = change
        self.weighed_at: int | None = None  # the last change in the rows from which weights were learned here
        self._learner = Learner(tally, settings)  # the counts, and how models are derived from them
        self._derived: Derived | None = None  # the model that was derived last
        self._executor: ThreadPoolExecutor | None = None  # derives models in the background, once there are any
        self._deriving = False  # whether a model is being derived in the background

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        return self.rows.schema

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes that have rows."""
        return self._learner.classes

    @property
    def settings(self) -> Any:
        """The settings with which models are derived."""
        return self._learner.settings

    @property
    def n_rows(self) -> float:
        """The number of rows that are counted; their weight, if they have weights."""
        return self.tally().n_rows

    def tally(self) -> Tally:
        """Returns a frozen copy of the counts."""
        with self.lock:
            return self._learner.freeze()

    # Learning

    def part(self, row: Any, label: Any) -> Tally:
        """Returns the tally of a single ``row`` of JSON with its label (a class, or a list of labels)."""
        tally = self.rows.part(row, label)
        errors.require(tally.classes, "label", label, "a class, or null to keep a row without a label")
        return tally

    def add(self, tally: Tally) -> None:
        """Adds the tally of a row to the counts. If it raises, nothing has changed."""
        self._change(lambda learner: learner.learn(tally))

    def forget(self, tally: Tally) -> None:
        """Subtracts the tally of a row from the counts. If it raises, nothing has changed."""
        self._change(lambda learner: forget(learner, tally))

    def _change(self, change: Callable[[Learner], Learner]) -> None:
        """Replaces the learner (the counts with their settings) by what the function ``change`` returns for it, unless
        that raises an error or the class prior lacks a class.
        """
        with self.lock:
            learner = change(self._learner)
            if not learner.classes:
                self._derived = None  # no answer may come from forgotten rows
            elif learner.classes != self.classes and isinstance(self.settings, ModelSettings):
                class_log_prior(self.settings.class_prior, learner.freeze())  # raises where it lacks a class
            self._learner = learner

    def use(self, settings: Settings) -> None:
        """Derives models with these settings from now on. The old model is used until a new one has been derived."""
        with self.lock:
            self._learner = self._learner.under(settings)

    # Answering

    @property
    def follows(self) -> bool:
        """Whether the model's parameters follow each row in place, so that it may only be used under the lock."""
        return bool(self.settings.follows)

    def current_model(self) -> tuple[Any, int]:
        """Returns the model to answer with, and the number of the last change in it. Raises EmptyData if there are no
        rows.

        A plain model is always current. Another one is derived anew if that is quick; otherwise a slow one is updated
        in the background.
        """
        with self.lock:
            if not self.classes:
                raise errors.EmptyData("the model has not learned any rows yet. Learn some rows first.")
            if self.follows:
                return self._learner.current, self.change
            derived = self._derived  # the model that was derived last, or None
            if derived is None or (not self._up_to_date and derived.seconds <= QUICK_SECONDS):
                derived = self._derive(self.tally(), self.settings, self.change)
            elif not self._up_to_date and not self._deriving:
                self._deriving = True
                self._executor = self._executor or ThreadPoolExecutor(
                    max_workers=1, thread_name_prefix="banbury-deriving"
                )
                self._executor.submit(self._derive_in_background, self.tally(), self.settings, self.change)
            return derived.model, derived.change

    def snapshot_model(self) -> Any:
        """Returns a model of the current counts that later rows do not change, for long computations without the lock."""
        with self.lock:
            model, _ = self.current_model()
            if not self.follows:
                return model
            if self._derived is not None and self._up_to_date:
                return self._derived.model
            tally = self.tally()
            settings = self.settings
            change = self.change
        return self._derive(tally, settings, change).model

    @property
    def _up_to_date(self) -> bool:
        """Whether the model that was derived last (``_derived``, or None) has the current settings and counts."""
        derived = self._derived
        return derived is not None and derived.settings is self.settings and derived.change == self.change

    def _derive(self, tally: Tally, settings: Any, change: int) -> Derived:
        """Derives a model of the tally as of ``change`` with these settings, and returns it with the seconds that it
        took. Makes it the current one if the settings are, unless that is from a later change.
        """
        start = perf_counter()  # seconds
        model = settings.model(tally)
        model._prepare()
        derived = Derived(model, settings, change, perf_counter() - start)
        with self.lock:
            last = self._derived  # the model that was derived before, or None
            is_later = last is None or last.settings is not settings or last.change <= change
            if settings is self.settings and is_later:
                self._derived = derived
        return derived

    def _derive_in_background(self, tally: Tally, settings: Any, change: int) -> None:
        """Derives a model of the tally as of change number ``change`` with these settings, in the background thread."""
        try:
            self._derive(tally, settings, change)
        finally:
            self._deriving = False

    def close(self) -> None:
        """Waits for the model that is being derived in the background."""
        if self._executor is not None:
            self._executor.shutdown()


def forget(learner: Learner, tally: Tally) -> Learner:
    """Returns the learner without the rows in ``tally``, which may be all its rows."""
    try:
        return learner.forget(tally)
    except errors.EmptyData:
        return Learner(learner.freeze() - tally, learner.settings)
