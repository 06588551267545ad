"""ServedLearner: a learner that many threads ask while one writer changes it, row by row."""

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

QUICK = 0.02  # seconds: what is derived faster than this is derived before the next answer, and anything else beside it


class Derived(NamedTuple):
    """A model that was derived apart from sums that go on growing."""

    model: Any
    settings: Any
    change: int  # as of which it is
    seconds: float  # that it took


class ServedLearner:
    """One writer adds and takes; any thread asks. Sums are exact at all times.

    The parameters of a plain model follow every row in place. Those of weighed evidence and of sets of labels are derived
    anew: at once where that is quick, or else beside the answers, which say as of which change they are.
    """

    def __init__(self, tally: Tally, settings: Settings, change: int = 0) -> None:
        self.rows = JsonRows(tally.schema)
        self.lock = threading.RLock()
        self.change = change
        self.weighed_at: int | None = None  # the change as of which weights were learned here
        self._learner = Learner(tally, settings)
        self._derived: Derived | None = None  # the last one
        self._beside: ThreadPoolExecutor | None = None
        self._deriving = False

    @property
    def schema(self) -> Schema:
        return self.rows.schema

    @property
    def classes(self) -> tuple[Any, ...]:
        return self._learner.classes

    @property
    def settings(self) -> Any:
        return self._learner.settings

    @property
    def n_rows(self) -> float:
        return self.tally().n_rows

    def tally(self) -> Tally:
        """The sums as they stand, for keeping."""
        with self.lock:
            return self._learner.freeze()

    # Learning

    def part(self, row: Any, label: Any) -> Tally:
        """One row, counted apart, of a class that the class prior knows."""
        part = self.rows.part(row, label)
        errors.require(part.classes, "label", label, "a class, or null to keep a row without a label")
        return part

    def add(self, part: Tally) -> None:
        """Adds a row; if it raises, nothing was changed."""
        self._change(lambda learner: learner.learn(part))

    def forget(self, part: Tally) -> None:
        """Takes a row out again; if it raises, nothing was changed."""
        self._change(lambda learner: forget(learner, part))

    def _change(self, change: Callable[[Learner], Learner]) -> None:
        with self.lock:
            learner = change(self._learner)
            if not learner.classes:
                self._derived = None  # nothing may answer from rows that are gone
            elif learner.classes != self.classes and isinstance(self.settings, ModelSettings):
                class_log_prior(self.settings.class_prior, learner.freeze())  # raises where it lacks a class
            self._learner = learner

    def use(self, settings: Settings) -> None:
        """From now on models are derived so; answers go on with the old one until the new one is there."""
        with self.lock:
            self._learner = self._learner.under(settings)

    # Answering

    @property
    def follows(self) -> bool:
        """Whether the model's parameters follow each row in place, so that it is used while the lock is held."""
        return bool(self.settings.follows)

    def answering(self) -> tuple[Any, int]:
        """The model that answers, and the change as of which it does."""
        with self.lock:
            if not self.classes:
                raise errors.EmptyData("the model has not learned any rows yet. Learn some rows first.")
            if self.follows:
                return self._learner.current, self.change
            derived = self._derived
            if derived is None or (not self._up_to_date and derived.seconds <= QUICK):
                derived = self._derive(self.tally(), self.settings, self.change)
            elif not self._up_to_date and not self._deriving:
                self._deriving = True
                self._beside = self._beside or ThreadPoolExecutor(1, "banbury-deriving")
                self._beside.submit(self._derive_beside, self.tally(), self.settings, self.change)
            return derived.model, derived.change

    def apart(self) -> Any:
        """A model of the rows as they stand that no later row changes, for what takes long: nobody waits for it."""
        with self.lock:
            model, _ = self.answering()
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
        derived = self._derived
        return derived is not None and derived.settings is self.settings and derived.change == self.change

    def _derive(self, tally: Tally, settings: Any, change: int) -> Derived:
        start = perf_counter()
        model = settings.model(tally)
        model.prepare()
        derived = Derived(model, settings, change, perf_counter() - start)
        with self.lock:
            last = self._derived
            is_later = last is None or last.settings is not settings or last.change <= change
            if settings is self.settings and is_later:
                self._derived = derived
        return derived

    def _derive_beside(self, tally: Tally, settings: Any, change: int) -> None:
        try:
            self._derive(tally, settings, change)
        finally:
            self._deriving = False

    def close(self) -> None:
        if self._beside is not None:
            self._beside.shutdown()


def forget(learner: Learner, part: Tally) -> Learner:
    """Without rows that were learned, though they may be all that there are."""
    try:
        return learner.forget(part)
    except errors.EmptyData:
        return Learner(learner.freeze() - part, learner.settings)
