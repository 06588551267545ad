"""Learner: a growing tally and the model that follows it, and the settings that say how a model is derived from a tally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

from banbury.families.family import Choice
from banbury.labels import LabelModel, LabelWeighing, Thresholds
from banbury.model.naive_bayes import UNUSED, Calibrates, ClassPrior, Model, class_log_prior, estimated
from banbury.tally.label_sets import EVERY
from banbury.tally.schema import Schema
from banbury.tally.tally import Growing, Label, Part, Tally, Touched, together

MOST_NOTED = 256  # changes that are noted one by one until the model is asked for; a stream may never ask
PLAIN = Choice()


@dataclass(frozen=True, eq=False)
class ModelSettings:
    """How a ``Model`` is derived from a tally: all that it has beside the tally."""

    choice: Choice = PLAIN
    class_prior: ClassPrior = None
    calibration: Calibrates | None = None
    weighing: Any = None  # what evidence is worth
    threads: int | None = None

    @property
    def follows(self) -> bool:
        """Whether a row changes a few parameters only, which a model then changes in place."""
        return self.weighing is None and self.choice.how != "gibbs"

    def prior(self, tally: Tally) -> ClassPrior:
        """The class prior of a tally's classes."""
        return self.class_prior

    def model(self, tally: Tally) -> Model:
        """The model of a tally. Weights and a calibration that do not fit its classes are left out."""
        model = estimated(tally, self.choice, self.prior(tally))
        if self.threads is not None:
            model = replace(model, threads=self.threads)
        if self.weighing is not None and set(tally.classes).issubset(self.weighing.classes):
            model = model.weighed(self.weighing)
        fits = self.calibration is not None and self.calibration.n_classes == len(tally.classes)
        return model.calibrated(self.calibration) if fits else model

    def follow(self, model: Model, tally: Tally, touched: Touched) -> Model:
        """The model brought up to date with a tally of the same classes in which these words changed; the old one is spent."""
        groups = zip(model.parameters, tally.groups, strict=True)
        parameters = tuple(
            group if group.follow(sums, touched) else family.estimate(features, sums, model.choice, UNUSED)
            for group, (family, features, sums) in groups
        )
        prior = self.prior(tally)
        log_prior = class_log_prior(prior, tally)
        return replace(model, tally=tally, class_prior=prior, log_prior=log_prior, parameters=parameters)

    def derives_like(self, other: Self) -> bool:
        """Whether models under both differ in their class prior at most."""
        same = self.calibration is other.calibration and self.weighing is other.weighing
        return same and self.choice == other.choice

    def without_forgotten(self, tally: Tally) -> Self:
        """Without what was learned about words and values that no row has any more."""
        return self if self.weighing is None else replace(self, weighing=self.weighing.without_forgotten(tally))


@dataclass(frozen=True, eq=False)
class LabelSettings:
    """How a ``LabelModel`` is derived from a tally of sets of labels; it never follows rows in place."""

    choice: Choice
    thresholds: Thresholds
    weighing: LabelWeighing | None = None
    telling: int | None = None
    threads: int | None = None

    follows = False
    class_prior = calibration = None

    def model(self, tally: Tally) -> LabelModel:
        choice = self.choice
        model = LabelModel.of(tally, how=choice.how, alpha=choice.alpha, telling=self.telling, threads=self.threads)
        return model.weighed(self.weighing).with_thresholds(self.thresholds)

    def without_forgotten(self, tally: Tally) -> LabelSettings:
        """Without what was learned about labels, words and values that no row has any more."""
        weighing = None if self.weighing is None else self.weighing.without_forgotten(tally)
        thresholds = self.thresholds.of([label for label in tally.classes if label != EVERY])
        return replace(self, weighing=weighing, thresholds=thresholds)


Settings: TypeAlias = ModelSettings | LabelSettings


def settings_of(model: Model | LabelModel | Tally, threads: int | None = None) -> Settings:
    """The settings that derive this model from its tally; of a tally alone, the plain ones."""
    choice = PLAIN if isinstance(model, Tally) else replace(model.choice, waits=False)
    if isinstance(model, Model):
        return ModelSettings(choice, model.class_prior, model.calibration, model.weighing, threads)
    if not isinstance(model, Tally):
        return LabelSettings(choice, model.thresholds, model.weighing, model.telling, threads)
    if model.schema.labels is not None:
        return LabelSettings(choice, Thresholds.half(()), threads=threads)
    return ModelSettings(threads=threads)


class Learner:
    """A growing tally and the model that follows it. ``learn`` and ``forget`` return a changed learner.

    ``tally`` and ``model`` are frozen and may be handed out. ``current`` is a model of the same rows that costs what changed
    since it was last asked for; its words change in place with the next row, so only the learner's owner may use it.

    Until ``keep`` is called, and ``current`` calls it, the learner before the last change can be used as if the change had
    never begun: after an interrupt, say. A copy, or what is unpickled, learns apart.
    """

    __slots__ = ("_changes", "_growing", "_live", "_model", "_tally", "notes", "settings")

    def __init__(self, growing: Growing, settings: Any) -> None:
        self._growing = growing
        self.settings = settings
        self._tally: Tally | None = None
        self._model: Any = None
        self._live: Any = None  # the model that follows, as of some changes ago
        self._changes: list[Touched] = []  # the words that changed since
        self.notes: dict[str, Any] = {}  # what the owner has read off the current model

    @classmethod
    def of(cls, tally: Tally, settings: Any, declared: tuple[Label, ...] = ()) -> Learner:
        """One that begins with these sums; classes that are declared stay, with rows or without."""
        return cls(Growing.of(tally, declared), settings)

    @property
    def schema(self) -> Schema:
        return self._growing.schema

    @property
    def classes(self) -> tuple[Label, ...]:
        return self._growing.classes

    # Changing

    def learn(self, part: Part, settings: Any = None) -> Learner:
        """With more rows, and under other settings where some are given."""
        return self._changed(self._growing + part, settings or self.settings)

    def learn_texts(self, texts: list[str], labels: list[str], threads: int) -> Learner | None:
        """With more texts of known classes, without making a batch of them; None where that cannot be done."""
        growing = self._growing.add_texts(texts, labels, threads)
        return None if growing is None else self._changed(growing, self.settings)

    def forget(self, part: Part, settings: Any = None) -> Learner:
        """Without rows that were learned; raises where they were not, or where no row would be left."""
        return self._changed(self._growing - part, settings or self.settings)

    def under(self, settings: Any) -> Learner:
        """The same rows under these settings."""
        if settings is self.settings:
            return self
        learner = Learner(self._growing, settings)
        learner._tally = self._tally
        return learner

    def declare(self, classes: Sequence[Label]) -> Learner:
        """The same, whose classes of these names stay, with rows or without."""
        return self._changed(self._growing.declare(tuple(classes)), self.settings)

    def keep(self) -> None:
        """Makes the last change final."""
        self._growing.keep()

    def _changed(self, growing: Growing, settings: Any) -> Learner:
        learner = Learner(growing, settings)
        # Classes that came or went may have given words other ids, so then the model is derived anew.
        follows = self._live is not None and growing.classes == self._growing.classes
        if follows and (settings is self.settings or settings.derives_like(self.settings)):
            learner._live = self._live
            changes = [*self._changes, growing.touched]
            learner._changes = changes if len(changes) <= MOST_NOTED else [together(changes)]
        return learner

    # Asking

    def freeze(self) -> Tally:
        """The sums as they stand, for whoever soon lets go of them: a row that comes while they are held copies all words."""
        return self._growing.frozen()

    @property
    def tally(self) -> Tally:
        """The sums as they stand: the same object until the next change."""
        if self._tally is None:
            self._tally = self.freeze()
        return self._tally

    @property
    def model(self) -> Any:
        """The model of the tally as it stands."""
        if self.settings.follows and not self._growing.grows_in_place:
            return self.current
        if self._model is None:
            self._model = self.settings.model(self.tally)
        return self._model

    @property
    def current(self) -> Any:
        """The same model, brought up to date in place where that can be done."""
        self._growing.keep()
        if self._live is not None and not self._changes:
            return self._live
        if not self.settings.follows:
            return self.model
        live, self._live = self._live, None  # if it is interrupted now, it is derived anew
        seen = self._growing.seen
        if live is None:
            live = self.settings.model(seen)
        else:
            live = self.settings.follow(live, seen, together(self._changes))
        self._changes = []
        self._live = live
        return live

    @property
    def weights_stale(self) -> bool:
        """Whether rows were learned or forgotten since the evidence was weighed."""
        weighing = self.settings.weighing
        return weighing is not None and weighing.is_stale(self.tally)

    def __getstate__(self) -> Any:
        return self.tally, self.settings, self._growing.declared

    def __setstate__(self, state: Any) -> None:
        tally, settings, declared = state
        self.__init__(Growing.of(tally, declared), settings)  # type: ignore[misc]
