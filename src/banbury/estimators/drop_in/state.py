"""What was learned, and the parameters as they stood."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from banbury.arrays import Real
from banbury.distributions.family import Family, How
from banbury.estimators.guard import noted
from banbury.naive_bayes import LiveModel, Model, estimate
from banbury.tally import Growing, Tally, Touched


@dataclass(frozen=True)
class Settings:
    """The parameters as they stood when rows were last learned."""

    family: Family | tuple[Family, ...]  # of all columns, or of each
    how: How
    log_prior: Real | None  # of the classes; None: by their rows

    def families(self, n_features: int) -> tuple[Family, ...]:
        return self.family if isinstance(self.family, tuple) else (self.family,) * n_features


@dataclass
class State:
    """What was learned: the sums, the model that was made of them, and what was read off both."""

    growing: Growing
    settings: Settings
    counted_under: Settings  # the settings that the schema was made with
    float_dtype: Any
    home: tuple[Any, Any] | None = None  # the namespace and device of rows that were no NumPy arrays
    live: LiveModel | None = None
    touched: list[Touched] = field(default_factory=list)
    read: dict[str, Any] = field(default_factory=dict)

    def changed(self, touched: Touched, classes: tuple[Any, ...], settings: Settings) -> None:
        """Notes the columns that changed; under other classes or settings the model is made anew."""
        self.touched = noted(self.touched, touched)
        self.read = {}
        if self.growing.classes != classes or settings.family != self.settings.family:
            self.live, self.touched = None, []
        self.settings = settings

    def refuse_other_sums(self, settings: Settings) -> None:
        """Raises where parameters were changed to some that need other sums than those there are."""
        then, now = self.counted_under.family, settings.family
        first, second = (family[0] if isinstance(family, tuple) else family for family in (then, now))
        coded = [getattr(family, "codes", None) is not None for family in (first, second)]
        if type(first) is not type(second) or coded[0] != coded[1]:
            text = "missing, or categories, was changed since the first rows were learned, and needs other sums. "
            raise ValueError(text + "Call fit with all rows.")

    def current(self) -> Model:
        """The model of what was counted, brought up to date."""
        if self.live is not None and not self.touched:
            return self.live.model
        seen = self.under_settings(self.growing.seen)
        if self.live is None:
            self.live = LiveModel(estimate(seen, how=self.settings.how))
        else:
            self.live.follow(seen, self.touched)
        if self.settings.log_prior is not None:
            self.live.model = replace(self.live.model, log_prior=self.settings.log_prior)
        self.touched = []
        return self.live.model

    def under_settings(self, tally: Tally) -> Tally:
        """The sums, to be estimated as the settings say."""
        schema = tally.schema
        if self.settings is self.counted_under or self.settings.family == self.counted_under.family:
            return tally
        pairs = zip(schema.features, self.settings.families(len(schema.features)), strict=True)
        features = tuple(feature._replace(family=family) for feature, family in pairs)
        return replace(tally, schema=replace(schema, features=features))

    def __getstate__(self) -> dict[str, Any]:
        kept = ("growing", "settings", "counted_under", "float_dtype", "home")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
