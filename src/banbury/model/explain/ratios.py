"""The most informative values of each class: categories, words and intervals of numbers, with their likelihood ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.evidence import Comparison, InformativeValues, LogLikelihood, measure_informativeness
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

    label: Any  # the class
    feature: str
    value: Any
    ratio: float  # probability / probability_rest
    probability: float  # P(value | class)
    probability_rest: float  # P(value | any other class)


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
        """Returns the ratios of the class True of a yes/no model as those of a label."""
        ratios = tuple(replace(ratio, label=label) for ratio in self.ratios[True])
        return replace(self, ratios={label: ratios}, target=None)

    def to_dict(self) -> dict[str, Any]:
        """Returns the ratios as a dictionary for JSON: a list of classes, because a class need not be a string."""
        classes = []
        for label, ratios in self.ratios.items():
            records = [asdict(ratio) for ratio in ratios]
            for record in records:
                del record["label"]
                record.update({name: strict(value) for name, value in record.items() if isinstance(value, float)})
            classes.append({"class": label, "ratios": records})
        return {"classes": classes}

    def shown(self, ratio: LikelihoodRatio) -> str:
        """Returns the value of a ratio with its feature, as people read it, or the word alone if the only feature is a
        text. ``words`` has the features that are text; a ``Stretch`` is the ratio of an interval of numbers.
        """
        value = page.printable(", ".join(map(str, ratio.value)) if isinstance(ratio.value, tuple) else ratio.value)
        if ratio.feature in self.words:
            return value if self.alone else f"{ratio.feature}: {value}"
        return f"{ratio.feature} {'' if isinstance(ratio, Stretch) else '= '}{value}"

    def __str__(self) -> str:
        """Returns the name of each class, followed by a line for each of its values with the ratio."""
        # By the ratio: its value as people read it.
        value_texts = {id(ratio): self.shown(ratio) for class_ratios in self.ratios.values() for ratio in class_ratios}
        value_width = max(map(len, value_texts.values()), default=0)
        lines = []
        for label, class_ratios in self.ratios.items():
            ratio_label = f"{label} : rest ="
            lines.append(
                page.quote_class(label, self.target) + ("" if class_ratios else ": nothing separates it from the rest")
            )
            ratio_texts = {id(ratio): page.format_ratio(ratio.ratio) for ratio in class_ratios}  # by the ratio
            ratio_width = max(map(len, ratio_texts.values()), default=0)
            lines += [
                f"  {value_texts[ratio_id]:{value_width}}  {ratio_label} {ratio_text:>{ratio_width}} : 1"
                for ratio_id, ratio_text in ratio_texts.items()
            ]
        return "\n".join([*lines, *filter(None, [self.note])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns the ratios as HTML tables for notebooks."""
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
    """Returns the ``n`` most informative values of each class, ranked as in ``Model.informative``.

    Args:
        labels: The classes of the model.
        parameters: Its parameters, by group of features.
        log_prior: The log prior of each class.
        log_likelihood: Returns log P(value | class) of one feature (rows × classes), for a group and values by column.
        n: How many values to return for each class.
        classes: The classes to return; None for all.
    """
    class_numbers = _class_numbers(labels, classes)
    errors.check_whole("n", n, 1)
    if len(labels) < 2:
        raise errors.bad_setting("the model", f"one class, {labels[0]!r}", "a model with at least two classes")
    other_classes = _shares_of_other_classes(np.exp(log_prior))  # column c: how all classes but c are mixed
    best: list[list[Scored]] = [[] for _ in labels]  # the best ratios so far, by class number
    text_features = set[str]()
    left_aside = list[str]()  # features no value of which can be named
    comparison = Comparison(other_classes, class_numbers, log_likelihood)
    for group in parameters:
        values_of_group = group.informative_values(comparison)  # of each feature; None: no value can be named
        if values_of_group is None:
            left_aside += group.features.names
        for values in values_of_group or ():
            _keep_best(values, other_classes, class_numbers, labels, int(n), best)
            text_features.update(feature.name for feature in group.features if values.kind == "word")
    is_only_text = len(text_features) == sum(len(group.features) for group in parameters) == 1
    ratios = {labels[number]: tuple(ratio for _, ratio in best[number]) for number in class_numbers}
    return Informative(ratios, frozenset(text_features), is_only_text, tuple(left_aside))


def _class_numbers(labels: Sequence[Any], classes: Any) -> list[int]:
    """Returns the numbers of the requested classes among all classes (``labels``), each once; all of them if
    ``classes`` is None. Raises an error for an unknown class.
    """
    if classes is None:
        return list(range(len(labels)))
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__iter__"):
        raise errors.bad_setting("classes", classes, "None or a list of classes")
    return list(dict.fromkeys(class_number(label, labels) for label in classes))


def _shares_of_other_classes(prior: Real) -> Real:
    """Returns how the other classes of each class are mixed (classes × classes): column c has the shares of all classes
    but c, which sum to 1, by their ``prior`` (classes,), or equal shares if that is 0.
    """
    weights = np.repeat(prior[:, None], len(prior), axis=1)  # column c: the prior of all classes but c
    np.fill_diagonal(weights, 0.0)
    total = weights.sum(axis=0)
    equal_shares = (1.0 - np.eye(len(prior))) / (len(prior) - 1)
    return np.where(total > 0, weights / np.where(total > 0, total, 1.0), equal_shares)


def _keep_best(
    values: InformativeValues,
    other_classes: Real,
    class_numbers: list[int],
    labels: Sequence[Any],
    n: int,
    best: list[list[Scored]],
) -> None:
    """Adds the most informative of these values to ``best``, which keeps the ``n`` best ratios of each class.

    Args:
        values: Values of one feature (``name`` returns the feature and the value of a number), with P(value | class)
            (``share``) and the share of counted rows that have the value (``had``), values × classes each. ``allowed``
            says which values may be named for which class; None: all.
        other_classes: How the other classes of each class are mixed (classes × classes).
        class_numbers: The numbers of the requested classes.
        labels: All classes.
        n: How many ratios of each class to keep.
        best: The best ratios of each class, by class number, each with its score; changed in place.
    """
    probability_rest = values.share @ other_classes[:, class_numbers]  # values × requested classes
    had_rest = probability_rest if values.had is values.share else values.had @ other_classes[:, class_numbers]
    difference = values.had[:, class_numbers] - had_rest  # of the shares of rows that have the value
    ratio_type = Stretch if values.kind == "interval" else LikelihoodRatio
    ratios, scores = measure_informativeness(values.share[:, class_numbers], probability_rest, difference)
    for column, label_number in enumerate(class_numbers):
        score = (  # of each value
            scores[:, column]
            if values.allowed is None
            else np.where(values.allowed[:, label_number], scores[:, column], 0.0)
        )
        threshold = np.partition(score, -n)[-n] if len(score) > n else 0.0  # the nth best score
        candidates = np.flatnonzero((score >= threshold) & (score > 0))
        # In a tie, the first values.
        for value_number in candidates[np.argsort(-score[candidates], kind="stable")][:n].tolist():
            figures = (
                float(ratios[value_number, column]),
                float(values.share[value_number, label_number]),
                float(probability_rest[value_number, column]),
            )
            best[label_number].append(
                (float(score[value_number]), ratio_type(labels[label_number], *values.name(value_number), *figures))
            )
        best[label_number].sort(key=lambda scored: (-scored[0], scored[1].feature, str(scored[1].value)))
        del best[label_number][n:]
