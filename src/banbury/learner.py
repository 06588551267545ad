"""Learner: a tally that learns and forgets, the model that follows it, and the settings that derive a model from a tally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

from banbury import errors
from banbury.families.family import Choice
from banbury.labels import LabelModel, LabelWeighing, Thresholds
from banbury.model.naive_bayes import UNUSED_GENERATOR, Calibrates, ClassPrior, Model, class_log_prior, model_under
from banbury.tally.label_sets import EVERY
from banbury.tally.schema import Schema
from banbury.tally.tally import Label, Tally

PLAIN = Choice()


@dataclass(frozen=True, eq=False)
class ModelSettings:
    """How a ``Model`` is estimated from a tally: everything it has in addition to the tally."""

    choice: Choice = PLAIN
    class_prior: ClassPrior = None
    calibration: Calibrates | None = None
    weighing: Any = None  # the weights of evidence; None if evidence is not weighed
    threads: int | None = None

    @property
    def follows(self) -> bool:
        """Whether one row changes only a few parameters, so that a model can be updated in place."""
        return self.weighing is None and self.choice.how != "gibbs"

    def prior(self, tally: Tally) -> ClassPrior:
        """Returns the class prior for models of a tally. Here it is the same for all tallies; subclasses may choose by
        the tally.
        """
        return self.class_prior

    def model(self, tally: Tally) -> Model:
        """Returns the model of a tally, estimated anew. Weights of evidence and a calibration that do not fit its
        classes are dropped.
        """
        # ``choice`` has the estimator, the pseudo-count and the seed.
        model = model_under(tally, self.choice, self.prior(tally))
        if self.threads is not None:
            model = replace(model, threads=self.threads)
        if self.weighing is not None and set(tally.classes).issubset(self.weighing.classes):
            model = model.weighed(self.weighing)
        calibration_fits = self.calibration is not None and self.calibration.n_classes == len(tally.classes)
        return model.calibrated(self.calibration) if calibration_fits else model

    def follow(self, model: Model, tally: Tally) -> Model:
        """Returns the model updated to a tally with the same classes. Parameters are changed in place where possible,
        so the old model must not be used any more.
        """
        # Pairs of a group's parameters, and its family, features and sums.
        parameters_and_groups = zip(model.parameters, tally.groups, strict=True)
        parameters = tuple(
            group_parameters
            if group_parameters.follow(sums)
            else family.estimate(features, sums, model.choice, UNUSED_GENERATOR)  # models that draw never follow
            for group_parameters, (family, features, sums) in parameters_and_groups
        )
        class_prior = self.prior(tally)
        log_prior = class_log_prior(class_prior, tally)
        return replace(model, tally=tally, class_prior=class_prior, log_prior=log_prior, parameters=parameters)

    def derives_like(self, other: Self) -> bool:
        """Whether models under both settings differ at most in their class prior."""
        shares_evidence = self.calibration is other.calibration and self.weighing is other.weighing
        return shares_evidence and self.choice == other.choice

    def without_forgotten(self, tally: Tally) -> Self:
        """Returns the settings without corrections for words and values that no row has any more."""
        return self if self.weighing is None else replace(self, weighing=self.weighing._without_forgotten(tally))


@dataclass(frozen=True, eq=False)
class LabelSettings:
    """How a ``LabelModel`` is estimated from a tally of label sets. It is never updated in place. ``words_per_label`` is how
    many words of each label count, the most informative ones; None for all.
    """

    choice: Choice
    thresholds: Thresholds
    weighing: LabelWeighing | None = None  # the weights of evidence; None if evidence is not weighed
    words_per_label: int | None = None
    threads: int | None = None

    follows = False
    class_prior = None
    calibration = None

    def model(self, tally: Tally) -> LabelModel:
        """Returns the model of a tally, estimated anew, with the weights and the thresholds of these settings."""
        choice = self.choice
        model = LabelModel.of(
            tally, how=choice.how, alpha=choice.alpha, words_per_label=self.words_per_label, threads=self.threads
        )
        return model.weighed(self.weighing).with_thresholds(self.thresholds)

    def without_forgotten(self, tally: Tally) -> LabelSettings:
        """Returns the settings without corrections for labels, words and values that no row has any more."""
        weighing = None if self.weighing is None else self.weighing._without_forgotten(tally)
        thresholds = self.thresholds.of([label for label in tally.classes if label != EVERY])
        return replace(self, weighing=weighing, thresholds=thresholds)


Settings: TypeAlias = ModelSettings | LabelSettings


def settings_of(model: Model | LabelModel | Tally, threads: int | None = None) -> Settings:
    """Returns the settings with which a model was estimated from its tally. For a tally they are the defaults for its
    kind.
    """
    # The estimator, the pseudo-count and the seed.
    choice = PLAIN if isinstance(model, Tally) else replace(model.choice, waits=False)
    if isinstance(model, Model):
        return ModelSettings(choice, model.class_prior, model.calibration, model.weighing, threads)
    if not isinstance(model, Tally):
        return LabelSettings(choice, model.thresholds, model.weighing, model.words_per_label, threads)
    if model.schema.labels is not None:
        return LabelSettings(choice, Thresholds.half(()), threads=threads)
    return ModelSettings(threads=threads)


class Learner:
    """A growing tally and the model that follows it. ``learn`` and ``forget`` return a new learner and leave this one
    unchanged.

    ``tally`` and ``model`` never change, so that anyone may keep them. ``current`` is a model of the same rows that costs
    only what changed since the last call. Its parameters change in place when the next row is learned, so only the owner
    of the learner may use it. Copied and unpickled learners do not share it.
    """

    __slots__ = ("_declared", "_live", "_model", "_sums", "_tally", "notes", "settings")

    def __init__(self, tally: Tally, settings: Any, declared: tuple[Label, ...] = ()) -> None:
        """Starts with a tally. ``settings`` derive its model (``ModelSettings`` or ``LabelSettings``); ``declared`` has
        the classes to keep even if they have no rows.
        """
        sums = tally._with_classes(declared)._read_texts() if declared else tally._read_texts()
        self._set(sums, settings, declared, live=[])

    def _set(self, sums: Tally, settings: Any, declared: tuple[Label, ...], live: list[tuple[Any, Tally, Any]]) -> None:
        """Sets all attributes. ``sums``: the tally, which may have words that no text contains any more; ``declared``:
        classes to keep even without rows; ``live``: the current model as (settings, tally, model), or nothing.
        """
        self._sums = sums
        self._declared = declared
        self.settings = settings
        self._tally: Tally | None = None  # the tally without such words, once it is asked for
        self._model: Any = None  # its model, once it is asked for
        # The current model as (settings, tally, model); empty while it is updated. Learners made from one another share it.
        self._live = live
        self.notes: dict[str, Any] = {}  # what the owner of the learner computed from the current model

    @property
    def schema(self) -> Schema:
        """The schema of the tally."""
        return self._sums.schema

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes of the tally, and those that were declared."""
        return self._sums.classes

    # Learning and forgetting

    def learn(self, new_rows: Tally, settings: Any = None) -> Learner:
        """Returns a learner with the rows of another tally added, and with other ``settings`` if given."""
        return self._with(self._sums + new_rows, settings or self.settings)

    def learn_texts(self, texts: list[str], labels: list[str], threads: int) -> Learner | None:
        """Returns a learner with more texts of known classes, without building a batch; None if that is not possible.
        ``labels`` are the class names of the texts.
        """
        tally = self._sums._add_texts(texts, labels, threads)
        return None if tally is None else self._with(tally, self.settings)

    def forget(self, forgotten_rows: Tally, settings: Any = None) -> Learner:
        """Returns a learner without the rows of another tally, and with other ``settings`` if given. Raises an error if
        they were never learned, or if no row would be left.
        """
        remaining_tally = self._sums._minus(forgotten_rows, self._declared)
        if not remaining_tally.rows.value.any():
            raise errors.empty_data(None, "forgetting these rows would leave no rows")
        return self._with(remaining_tally, settings or self.settings)

    def under(self, settings: Any) -> Learner:
        """Returns a learner of the same rows under these settings."""
        if settings is self.settings:
            return self
        learner = self._with(self._sums, settings)
        learner._tally = self._tally
        return learner

    def declare(self, classes: Sequence[Label]) -> Learner:
        """Returns a learner that keeps classes with these names even if they have no rows."""
        learner = self._with(self._sums._with_classes(tuple(classes)), self.settings)
        learner._declared = tuple(classes)
        return learner

    def _with(self, sums: Tally, settings: Any) -> Learner:
        """Returns a learner with the tally ``sums`` and these settings, which shares the current model with this one."""
        learner = object.__new__(Learner)
        learner._set(sums, settings, self._declared, self._live)
        return learner

    # The tally and the model

    def freeze(self) -> Tally:
        """Returns the current tally without words that no text contains any more."""
        return self._sums._drop_absent_words()

    @property
    def tally(self) -> Tally:
        """The current tally: the same object until the next change."""
        if self._tally is None:
            self._tally = self.freeze()
        return self._tally

    @property
    def model(self) -> Any:
        """The model of the current tally: updated in place if it has no words, otherwise estimated once and kept."""
        if self.settings.follows and not self._sums._has_words:
            return self.current
        if self._model is None:
            self._model = self.settings.model(self.tally)
        return self._model

    @property
    def current(self) -> Any:
        """A model of the current tally (``_sums``), updated in place if ``settings.follows`` says that it can be. Its
        parameters change when the next row is learned.
        """
        if not self.settings.follows:
            return self.model
        # The last model, with the settings and the tally that it was made of. It is taken out while it is updated:
        # after an interruption it is estimated anew.
        settings, tally, model = self._live.pop() if self._live else (None, None, None)
        estimates_alike = settings is self.settings or (settings is not None and settings.derives_like(self.settings))
        if tally is None or not estimates_alike or tally.classes != self.classes:
            model = self.settings.model(self._sums)
        elif tally is not self._sums or settings is not self.settings:
            model = self.settings.follow(model, self._sums)
        self._live[:] = [(self.settings, self._sums, model)]
        return model

    @property
    def weights_stale(self) -> bool:
        """Whether rows were learned or forgotten since the evidence was weighed."""
        weighing = self.settings.weighing
        return weighing is not None and weighing.is_stale(self.tally)

    def __getstate__(self) -> Any:
        """What is pickled: everything but the current model."""
        return self.tally, self.settings, self._declared

    def __setstate__(self, state: Any) -> None:
        """Starts from a pickled tally, settings and declared classes."""
        self.__init__(*state)  # type: ignore[misc]
