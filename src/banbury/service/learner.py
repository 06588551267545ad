"""Learner: sums that rows are added to and taken from one at a time, and the model that answers from them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from banbury import errors
from banbury.distributions.family import Choice
from banbury.labels import LabelModel, Thresholds
from banbury.naive_bayes import Calibrates, ClassPrior, LiveModel, Model, class_log_prior, estimated
from banbury.service.rows import JsonRows
from banbury.tally import Growing, Part, Tally, Touched

MANY = 1_000  # rows after which a model is derived anew rather than followed
QUICK = 0.02  # seconds: what is derived faster than this is derived before the next answer, and anything else beside it

PLAIN = Choice()


@dataclass(frozen=True)
class ModelSettings:
    """How a model is derived from sums: all of a model but its tally."""

    choice: Choice = PLAIN
    class_prior: ClassPrior = None
    calibration: Calibrates | None = None
    weighing: Any = None  # what evidence is worth: of a Model or of a LabelModel
    thresholds: Thresholds | None = None  # of sets of labels
    telling: int | None = None
    threads: int | None = None

    @classmethod
    def of(cls, thing: Model | LabelModel | Tally, threads: int | None = None) -> ModelSettings:
        if isinstance(thing, LabelModel):
            kept = {"weighing": thing.weighing, "thresholds": thing.thresholds, "telling": thing.telling}
            return cls(thing.choice, threads=threads, **kept)  # type: ignore[arg-type]
        if isinstance(thing, Model):
            return cls(thing.choice, thing.class_prior, thing.calibration, thing.weighing, threads=threads)
        return cls(threads=threads)

    @property
    def plain(self) -> bool:
        """Whether a row changes a few parameters only, which are followed in place."""
        return self.weighing is None and self.thresholds is None

    def model(self, tally: Tally) -> Model | LabelModel:
        """The model of a tally. Weights and a calibration of other classes than it has are left out."""
        if tally.schema.labels is not None:
            own = {"how": self.choice.how, "alpha": self.choice.alpha, "telling": self.telling}
            made = LabelModel.of(tally, threads=self.threads, **own)  # type: ignore[arg-type]
            made = made if self.weighing is None else made.weighed(self.weighing)
            return made if self.thresholds is None else made.with_thresholds(self.thresholds)
        choice = replace(self.choice, waits=False)  # no answer in the middle of many waits for all words' parameters
        model = replace(estimated(tally, choice, self.class_prior), threads=self.threads)
        if self.weighing is not None and set(tally.classes).issubset(self.weighing.classes):
            model = model.weighed(self.weighing)
        fits = self.calibration is not None and self.calibration.n_classes == len(tally.classes)
        return model.calibrated(self.calibration) if fits else model

    def kept(self, tally: Tally) -> ModelSettings:
        """Without what was learned of words and values that no row has any more."""
        return self if self.weighing is None else replace(self, weighing=self.weighing.kept(tally))


class Learner:
    """One writer adds and takes; any thread asks. Sums are exact at all times.

    The parameters of a plain model follow every row in place. Those of weighed evidence and of sets of labels are derived
    anew: at once where that is quick, or else beside the answers, which say as of which change they are.
    """

    def __init__(self, tally: Tally, settings: ModelSettings, change: int = 0) -> None:
        self.schema, self.settings, self.change = tally.schema, settings, change
        self.rows = JsonRows(tally.schema)
        self.lock = threading.RLock()
        self._growing: Growing | None = Growing.of(tally) if tally.classes else None  # None: no row at all
        self._none = None if tally.classes else tally  # the sums of no rows, where there are none
        self._live: LiveModel | None = None
        self._apart: tuple[int, Model | LabelModel] | None = None
        self._unfollowed: list[Touched] = []  # what rows changed since the live model was last brought up to date
        self._model: Model | LabelModel | None = None
        self._as_of, self._cost = -1, 0.0
        self.weighed_at: int | None = None  # the change as of which weights were learned here
        self._beside: ThreadPoolExecutor | None = None
        self._deriving = False

    @property
    def classes(self) -> tuple[Any, ...]:
        return () if self._growing is None else self._growing.classes

    @property
    def n_rows(self) -> float:
        with self.lock:
            return 0 if self._growing is None else self._growing.seen.n_rows

    def tally(self) -> Tally:
        """The sums as they stand, for keeping."""
        with self.lock:
            if self._growing is None:
                assert self._none is not None
                return self._none
            return self._growing.frozen()

    # Learning

    def part(self, row: Any, label: Any) -> Part:
        """One row, counted apart, of a class that the class prior knows."""
        part = self.rows.part(row, label)
        errors.require(part.tally.classes, "label", label, "a class; null keeps a row without a label")
        return part

    def count(self, row: Any, label: Any) -> None:
        """Adds a row to the sums alone."""
        growing = Growing(self.schema) if self._growing is None else self._growing
        self._growing = growing + self.part(row, label)

    def add(self, part: Part) -> None:
        """Adds a row; if it raises, nothing was changed."""
        with self.lock, self._unless_kept_undone():
            growing = Growing(self.schema) if self._growing is None else self._growing
            self._take_over(growing + part)

    def forget(self, part: Part) -> None:
        """Takes a row out again; if it raises, nothing was changed."""
        with self.lock, self._unless_kept_undone():
            assert self._growing is not None
            try:
                self._take_over(self._growing - part)
            except errors.EmptyData:  # it was the last row
                alone = Growing(self.schema) + part
                nothing = self._growing.frozen() - alone.frozen()
                self.__dict__.update(_none=nothing, _growing=None, _live=None, _model=None, _unfollowed=[])

    @contextmanager
    def _unless_kept_undone(self) -> Iterator[None]:
        """Undoes a change of words that was not taken over."""
        try:
            yield
        finally:
            if self._growing is not None:
                self._growing.keep()

    def _take_over(self, growing: Growing) -> None:
        """Takes over changed sums in one step, and what the model has yet to follow; raises where there is no such model."""
        if self.schema.labels is None:
            class_log_prior(self.settings.class_prior, growing.seen)
        live, unfollowed = self._live, [*self._unfollowed, growing.touched]
        if self._growing is None or growing.classes != self._growing.classes or len(unfollowed) > MANY:
            live = None  # it is derived anew
        self.__dict__.update(_growing=growing, _live=live, _unfollowed=[] if live is None else unfollowed)

    def _followed(self) -> Model:
        """The plain model, brought up to date."""
        assert self._growing is not None
        self._growing.keep()
        if self._live is not None and not self._unfollowed:
            return self._live.model
        live, self._live = self._live, None  # if it is interrupted now, it is derived anew
        seen = self._growing.seen
        if live is None:
            model: Any = self.settings.model(seen)
            live = LiveModel(model)
        else:
            live.follow(seen, self._unfollowed, self.settings.class_prior)
        self.__dict__.update(_live=live, _unfollowed=[])
        return live.model

    # Answering

    @property
    def follows(self) -> bool:
        """Whether the model's parameters follow each row in place, so that it is used while the lock is held."""
        return self.settings.plain and self.schema.labels is None

    def answering(self) -> tuple[Model | LabelModel, int]:
        """The model that answers, and the change as of which it does."""
        with self.lock:
            if self._growing is None:
                text = "nothing was learned yet, so there is nothing to answer from. Learn some rows first."
                raise errors.EmptyData(text)
            if self.follows:
                return self._followed(), self.change
            if self._model is None or (self._as_of != self.change and self._cost <= QUICK):
                self._derived(self._growing.frozen(), self.settings, self.change)
            elif self._as_of != self.change and not self._deriving:
                self._deriving = True
                self._beside = self._beside or ThreadPoolExecutor(1, "banbury-deriving")
                self._beside.submit(self._derive_beside, self._growing.frozen(), self.settings, self.change)
            assert self._model is not None
            return self._model, self._as_of

    def apart(self) -> Model | LabelModel:
        """A model of the rows as they stand that no later row changes, for what takes long: nobody waits for it."""
        model, change = self.answering()
        if not self.follows:
            return model
        kept = self._apart
        if kept is None or kept[0] != change:
            kept = self._apart = (change, self.settings.model(self.tally()))
        return kept[1]

    def _derived(self, tally: Tally, settings: ModelSettings, change: int) -> None:
        start = perf_counter()
        model = settings.model(tally)
        warmed(model)
        cost = perf_counter() - start
        with self.lock:
            if change >= self._as_of and settings is self.settings:
                self._model, self._as_of, self._cost = model, change, cost

    def _derive_beside(self, tally: Tally, settings: ModelSettings, change: int) -> None:
        try:
            self._derived(tally, settings, change)
        finally:
            self._deriving = False

    def use(self, settings: ModelSettings) -> None:
        """From now on models are derived so; answers go on with the old one until the new one is there."""
        with self.lock:
            if settings.plain != self.settings.plain:
                self._live = self._model = None
            self.settings, self._as_of = settings, -1

    def close(self) -> None:
        if self._beside is not None:
            self._beside.shutdown()


def warmed(model: Model | LabelModel) -> None:
    """Has a model of labels make what it makes when it is first asked."""
    if isinstance(model, LabelModel):
        model.as_answering()
        _ = model._weighed, model._words if model.weighing is None else (), model._rest, model.log_prior_odds
