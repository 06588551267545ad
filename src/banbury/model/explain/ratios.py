"""What tells each class from the rest: the values, words and stretches of numbers that speak for it, as likelihood ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.evidence import Comparison, LogLikelihood, TellingValues, telling
from banbury.families.family import Parameters
from banbury.model.explain import page
from banbury.model.explain.explanation import strict
from banbury.tally.table import class_number


@dataclass(frozen=True)
class LikelihoodRatio:
    """A value that is evidence for a class: it is ``ratio`` times as probable in the class as in all other classes
    together.

    ``value`` is a word, a category, True or False; for a joint table a tuple of values; for a number an interval such
    as "< 2.1".
    """

    label: Any
    feature: str
    value: Any
    ratio: float
    probability: float
    probability_rest: float


@dataclass(frozen=True)
class Informative:
    """The most informative values of each class, as likelihood ratios by class, highest first.

    ``left_aside`` names blocks whose columns act together, so that no single value can be named.
    """

    ratios: dict[Any, tuple[LikelihoodRatio, ...]]
    words: frozenset[str] = frozenset()  # the features that are text
    alone: bool = False  # whether a text is the only feature there is
    left_aside: tuple[str, ...] = ()
    target: str | None = None  # the column of the classes, which names those that are numbers

    @property
    def note(self) -> str:
        """A sentence about what was left aside, or an empty string."""
        aside = ", ".join(self.left_aside)
        return f"Not listed, because their columns are modelled together: {aside}." if aside else ""

    def of_label(self, label: Any) -> Informative:
        """Returns the same for a label, instead of yes and no."""
        ratios = tuple(replace(ratio, label=label) for ratio in self.ratios[True])
        return replace(self, ratios={label: ratios}, target=None)

    def to_dict(self) -> dict[str, Any]:
        """Returns the same for JSON, as a list, because a class need not be a string."""
        classes = []
        for label, ratios in self.ratios.items():
            rows = [{k: v for k, v in asdict(ratio).items() if k != "label"} for ratio in ratios]
            rows = [{k: strict(v) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
            classes.append({"class": label, "ratios": rows})
        return {"classes": classes}

    def shown(self, ratio: LikelihoodRatio) -> str:
        """Returns the value with its feature, or the word alone if there is only one text column."""
        value = page.printable(", ".join(map(str, ratio.value)) if isinstance(ratio.value, tuple) else ratio.value)
        if ratio.feature in self.words:
            return value if self.alone else f"{ratio.feature}: {value}"
        return f"{ratio.feature} {'' if isinstance(ratio, Stretch) else '= '}{value}"

    def __str__(self) -> str:
        names = {id(r): self.shown(r) for rows in self.ratios.values() for r in rows}
        width = max(map(len, names.values()), default=0)
        lines = []
        for label, rows in self.ratios.items():
            against = f"{label} : rest ="
            lines.append(
                page.quote_class(label, self.target) + ("" if rows else ": nothing separates it from the rest")
            )
            figures = {id(r): page.format_ratio(r.ratio) for r in rows}
            most = max(map(len, figures.values()), default=0)
            lines += [f"  {names[i]:{width}}  {against} {figure:>{most}} : 1" for i, figure in figures.items()]
        return "\n".join([*lines, *filter(None, [self.note])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return page.informative(self)


class Stretch(LikelihoodRatio):
    """The interval of a numeric column that is evidence for a class; for a matrix of occurrences, that a column occurs."""


Scored = tuple[float, LikelihoodRatio]


# Finding them --------------------------------------------------------------------------------------------------------


def informative(
    labels: Sequence[Any],
    parameters: Sequence[Parameters],
    log_prior: Real,
    log_likelihood: LogLikelihood,
    n: int = 10,
    classes: Sequence[Any] | None = None,
) -> Informative:
    """Returns the ``n`` most informative values of each class, ranked as in ``Model.informative``."""
    chosen = _class_numbers(labels, classes)
    errors.check_whole("n", n, 1)
    if len(labels) < 2:
        raise errors.bad_setting("the model", f"one class, {labels[0]!r}", "a model with at least two classes")
    rest = _rest(np.exp(log_prior))
    best: list[list[Scored]] = [[] for _ in labels]
    words = set[str]()
    left_aside = list[str]()
    compared = Comparison(rest, chosen, log_likelihood)
    for group in parameters:
        every = group.telling(compared)
        if every is None:
            left_aside += [feature.name for feature in group.features]
        for values in every or ():
            _take(values, rest, chosen, labels, int(n), best)
            words.update(feature.name for feature in group.features if values.kind == "word")
    alone = len(words) == sum(len(group.features) for group in parameters) == 1
    ratios = {labels[c]: tuple(ratio for _, ratio in best[c]) for c in chosen}
    return Informative(ratios, frozenset(words), alone, tuple(left_aside))


def _class_numbers(labels: Sequence[Any], classes: Any) -> list[int]:
    """The numbers of the classes that are asked for."""
    if classes is None:
        return list(range(len(labels)))
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise errors.bad_setting("classes", classes, "None or a list of classes")
    return list(dict.fromkeys(class_number(label, labels) for label in classes))


def _rest(prior: Real) -> Real:
    """How the other classes are mixed: column c has their shares without class c; equal where their prior is 0."""
    weights = np.repeat(prior[:, None], len(prior), axis=1)
    np.fill_diagonal(weights, 0.0)
    total = weights.sum(axis=0)
    equal = (1.0 - np.eye(len(prior))) / (len(prior) - 1)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), equal)


def _take(
    values: TellingValues, rest: Real, chosen: list[int], labels: Sequence[Any], n: int, best: list[list[Scored]]
) -> None:
    """Keeps of what each class had and of these values the n that tell most."""
    elsewhere = values.share @ rest[:, chosen]
    more = values.had[:, chosen] - (elsewhere if values.had is values.share else values.had @ rest[:, chosen])
    kind = Stretch if values.kind == "stretch" else LikelihoodRatio
    ratio, scores = telling(values.share[:, chosen], elsewhere, more)
    for k, c in enumerate(chosen):
        score = scores[:, k] if values.allowed is None else np.where(values.allowed[:, c], scores[:, k], 0.0)
        least = np.partition(score, -n)[-n] if len(score) > n else 0.0
        places = np.flatnonzero((score >= least) & (score > 0))
        for i in places[np.argsort(-score[places], kind="stable")][:n].tolist():  # of equals the first
            shares = float(ratio[i, k]), float(values.share[i, c]), float(elsewhere[i, k])
            best[c].append((float(score[i]), kind(labels[c], *values.name(i), *shares)))
        best[c].sort(key=lambda scored: (-scored[0], scored[1].feature, str(scored[1].value)))
        del best[c][n:]
