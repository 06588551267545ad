"""The most informative values of each class: categories, words and intervals of numbers, with their likelihood ratios."""

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
    """The most informative values of each class, as likelihood ratios by class, most informative first.

    ``left_aside`` names blocks whose columns act together, so that no single value can be named.
    """

    ratios: dict[Any, tuple[LikelihoodRatio, ...]]
    words: frozenset[str] = frozenset()  # the features that are text
    alone: bool = False  # whether the only feature is a text
    left_aside: tuple[str, ...] = ()
    target: str | None = None  # the column of the classes, which names those that are numbers

    @property
    def note(self) -> str:
        """A sentence about what was left aside, or an empty string."""
        aside = ", ".join(self.left_aside)
        return f"Not listed, because their columns are modelled together: {aside}." if aside else ""

    def of_label(self, label: Any) -> Informative:
        """Returns the ratios of the class True as those of a label."""
        ratios = tuple(replace(ratio, label=label) for ratio in self.ratios[True])
        return replace(self, ratios={label: ratios}, target=None)

    def to_dict(self) -> dict[str, Any]:
        """Returns the ratios for JSON: a list of classes, because a class need not be a string."""
        classes = []
        for label, ratios in self.ratios.items():
            records = [asdict(ratio) for ratio in ratios]
            for record in records:
                del record["label"]
                record.update({name: strict(value) for name, value in record.items() if isinstance(value, float)})
            classes.append({"class": label, "ratios": records})
        return {"classes": classes}

    def shown(self, ratio: LikelihoodRatio) -> str:
        """Returns the value with its feature, or the word alone if there is only one text column."""
        value = page.printable(", ".join(map(str, ratio.value)) if isinstance(ratio.value, tuple) else ratio.value)
        if ratio.feature in self.words:
            return value if self.alone else f"{ratio.feature}: {value}"
        return f"{ratio.feature} {'' if isinstance(ratio, Stretch) else '= '}{value}"

    def __str__(self) -> str:
        value_texts = {id(r): self.shown(r) for class_ratios in self.ratios.values() for r in class_ratios}
        value_width = max(map(len, value_texts.values()), default=0)
        lines = []
        for label, class_ratios in self.ratios.items():
            against = f"{label} : rest ="
            lines.append(
                page.quote_class(label, self.target) + ("" if class_ratios else ": nothing separates it from the rest")
            )
            ratio_texts = {id(r): page.format_ratio(r.ratio) for r in class_ratios}
            ratio_width = max(map(len, ratio_texts.values()), default=0)
            lines += [
                f"  {value_texts[i]:{value_width}}  {against} {ratio_text:>{ratio_width}} : 1"
                for i, ratio_text in ratio_texts.items()
            ]
        return "\n".join([*lines, *filter(None, [self.note])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Shows the ratios as tables in notebooks."""
        return page.informative(self)


class Stretch(LikelihoodRatio):
    """The ratio of an interval of a numeric column; for a matrix of occurrences, of a column that occurs."""


Scored = tuple[float, LikelihoodRatio]  # how informative it is, and the ratio


# Ranking -------------------------------------------------------------------------------------------------------------


def informative(
    labels: Sequence[Any],
    parameters: Sequence[Parameters],
    log_prior: Real,
    log_likelihood: LogLikelihood,
    n: int = 10,
    classes: Sequence[Any] | None = None,
) -> Informative:
    """Returns the ``n`` most informative values of each class, ranked as in ``Model.informative``."""
    class_numbers = _class_numbers(labels, classes)
    errors.check_whole("n", n, 1)
    if len(labels) < 2:
        raise errors.bad_setting("the model", f"one class, {labels[0]!r}", "a model with at least two classes")
    other_classes = _shares_of_other_classes(np.exp(log_prior))
    best: list[list[Scored]] = [[] for _ in labels]  # of each class
    text_features = set[str]()
    left_aside = list[str]()
    comparison = Comparison(other_classes, class_numbers, log_likelihood)
    for group in parameters:
        values_of_group = group.telling(comparison)
        if values_of_group is None:
            left_aside += group.features.names
        for values in values_of_group or ():
            _keep_best(values, other_classes, class_numbers, labels, int(n), best)
            text_features.update(feature.name for feature in group.features if values.kind == "word")
    is_only_text = len(text_features) == sum(len(group.features) for group in parameters) == 1
    ratios = {labels[c]: tuple(ratio for _, ratio in best[c]) for c in class_numbers}
    return Informative(ratios, frozenset(text_features), is_only_text, tuple(left_aside))


def _class_numbers(labels: Sequence[Any], classes: Any) -> list[int]:
    """Returns the numbers of the requested classes; all of them if ``classes`` is None."""
    if classes is None:
        return list(range(len(labels)))
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise errors.bad_setting("classes", classes, "None or a list of classes")
    return list(dict.fromkeys(class_number(label, labels) for label in classes))


def _shares_of_other_classes(prior: Real) -> Real:
    """Returns how the other classes of each class are mixed (classes × classes): column c has their prior shares
    without class c, or equal shares if their prior is 0.
    """
    weights = np.repeat(prior[:, None], len(prior), axis=1)
    np.fill_diagonal(weights, 0.0)
    total = weights.sum(axis=0)
    equal_shares = (1.0 - np.eye(len(prior))) / (len(prior) - 1)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), equal_shares)


def _keep_best(
    values: TellingValues,
    other_classes: Real,
    class_numbers: list[int],
    labels: Sequence[Any],
    n: int,
    best: list[list[Scored]],
) -> None:
    """Adds the most informative of these values to ``best``, which keeps the ``n`` best ratios of each class.

    Args:
        values: Values of one feature, with their probabilities in each class.
        other_classes: How the other classes of each class are mixed (classes × classes).
        class_numbers: The numbers of the requested classes.
        labels: All classes.
    """
    probability_rest = values.share @ other_classes[:, class_numbers]  # values × requested classes
    had_rest = probability_rest if values.had is values.share else values.had @ other_classes[:, class_numbers]
    difference = values.had[:, class_numbers] - had_rest
    ratio_type = Stretch if values.kind == "interval" else LikelihoodRatio
    ratios, scores = telling(values.share[:, class_numbers], probability_rest, difference)
    for k, c in enumerate(class_numbers):
        score = scores[:, k] if values.allowed is None else np.where(values.allowed[:, c], scores[:, k], 0.0)
        threshold = np.partition(score, -n)[-n] if len(score) > n else 0.0
        candidates = np.flatnonzero((score >= threshold) & (score > 0))
        for i in candidates[np.argsort(-score[candidates], kind="stable")][:n].tolist():  # in a tie, the first values
            figures = float(ratios[i, k]), float(values.share[i, c]), float(probability_rest[i, k])
            best[c].append((float(score[i]), ratio_type(labels[c], *values.name(i), *figures)))
        best[c].sort(key=lambda scored: (-scored[0], scored[1].feature, str(scored[1].value)))
        del best[c][n:]
