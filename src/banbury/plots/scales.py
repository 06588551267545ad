"""Scale: the values of a column on a nomogram, each with its decibans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banbury.arrays import Real
from banbury.families.family import Feature
from banbury.model.naive_bayes import Model
from banbury.plots.display import short_name, short_names
from banbury.plots.features import ClassedRows, axis_values, feature_parts_of, log_likelihood, values_by_name
from banbury.reading import read

# Takes log-likelihoods (values × classes), returns the decibans of each value for one class against another.
ToDecibans = Callable[[Real], Real]
CURVE_POINTS = 200  # points of a numeric feature's curve
CATEGORY_STRIP = 1.0  # the heights of the strips of features: categories, the curve of a number, and words
CURVE_STRIP = 1.7
WORD_STRIP = 2.2
WORDS_PER_CLASS = 10  # words drawn for each class
VALUES_SEARCHED = 100  # so many of the most informative values of each class are searched for words


@dataclass(frozen=True)
class Scale:
    """The values of a feature that are drawn in its strip of a nomogram, and the decibans of each."""

    feature: str  # the name of the feature
    values: Any  # an array of numbers, ascending, or a list of values as rows have them
    decibans: Real  # of each value
    names: list[str]  # of each value, as drawn
    rows: Real  # how many rows have each value, if values are counted
    numeric: bool  # whether the feature is a number, drawn as a curve; ``names`` is empty then
    words: bool = False  # whether the values are words of a text, each as if it occurred alone

    @property
    def range(self) -> float:
        """The difference between the highest and the lowest decibans."""
        if not len(self.decibans):
            return 0.0
        return float(np.ptp(self.decibans)) if np.isfinite(self.decibans).all() else np.inf

    def label(self, row_values: Sequence[Any] = ()) -> str:
        """Returns the text beside the strip: the feature. ``row_values``: its value in the row that is marked, in a
        list, or nothing if no row is.
        """
        if self.words:
            return "\n= ".join(
                [f"{short_name(self.feature)}: words, each alone", *(short_name(value, 26) for value in row_values)]
            )
        return " = ".join([short_name(self.feature), *(short_name(value, 18) for value in row_values)])

    @property
    def height(self) -> float:
        """The height of the strip, in strips of a category."""
        return CURVE_STRIP if self.numeric else WORD_STRIP if self.words else CATEGORY_STRIP

    def heights(self, values: Any, middle: float) -> Any:
        """Returns the vertical positions of numbers in their strip, whose middle is at ``middle``: from the lowest to
        the highest of ``self.values``, which is ascending, over 0.8 of the strip.
        """
        low = self.values[0]
        high = self.values[-1]
        share = (np.asarray(values, dtype=np.float64) - low) / (high - low)  # of the way from low to high
        return middle + 0.8 * CURVE_STRIP * (np.clip(share, 0.0, 1.0) - 0.5)


def text_scale(model: Model, feature: Feature, to_decibans: ToDecibans, classes: Sequence[Any]) -> Scale:
    """Returns the scale of a text column: its most informative words for ``classes``, each as if it occurred alone.
    ``to_decibans``: converts log-likelihoods (values × classes) to one number for each value.
    """
    # The parameters of this column alone, which score words.
    group = next(
        parameters.select([position])
        for parameters in model.parameters
        for position, group_feature in enumerate(parameters.features)
        if group_feature.name == feature.name
    )
    # The most informative values of each class, of all columns.
    ratios_of_classes = model.informative(VALUES_SEARCHED, classes).ratios.values()
    words_of_classes = (
        [str(ratio.value) for ratio in ratios if ratio.feature == feature.name][:WORDS_PER_CLASS]
        for ratios in ratios_of_classes
    )
    log_likelihood_of_word: dict[str, Real] = {}  # log P(word | class) of each class
    for word in dict.fromkeys(word for words in words_of_classes for word in words):
        # A text of this word alone, and the evidence of its words.
        batch = next(iter(read({feature.name: [word]}, kinds={feature.name: "text"})))
        terms = group.terms(batch, model._score_features(batch, [group], "parts")[0][0])
        log_likelihood_of_word |= {term.value: term.log_likelihood for term in terms if term.value == word}
    log_likelihoods = list(log_likelihood_of_word.values())
    decibans = to_decibans(np.array(log_likelihoods)) if log_likelihoods else np.zeros(0)  # of each word
    return Scale(
        feature.name,
        list(log_likelihood_of_word),
        decibans,
        short_names(list(log_likelihood_of_word)),
        np.abs(decibans),  # in place of numbers of rows, so that the strongest words are named first
        numeric=False,
        words=True,
    )


def plain_scale(
    model: Model, feature: Feature, to_decibans: ToDecibans, rows: ClassedRows | None, classes: Sequence[Any]
) -> Scale:
    """Returns the scale of a feature whose evidence is not weighed. ``rows``: rows over whose range numbers are drawn,
    or None; ``classes``: those for which words are drawn; ``to_decibans``: converts log-likelihoods (values × classes)
    to one number for each value.
    """
    if feature.reads_text:
        return text_scale(model, feature, to_decibans, classes)
    feature_parts = feature_parts_of(model, feature.name)  # says whether it is numeric
    if feature_parts.is_numeric:
        values: Any = axis_values(
            model, feature, feature.inputs[0], _numbers_of(rows, feature), CURVE_POINTS, margin_share=0.0
        )
        value_names = list[str]()
        row_counts = np.empty(0)  # numbers have neither names nor counts
    else:
        values, value_names, row_counts, *_ = values_by_name(model, feature_parts)
    decibans = to_decibans(log_likelihood(model, feature, values))
    return Scale(feature.name, values, decibans, short_names(value_names), row_counts, feature_parts.is_numeric)


def _numbers_of(rows: ClassedRows | None, feature: Feature) -> Real | None:
    """Returns the finite numbers of a column in the rows; None without any."""
    numbers = np.zeros(0) if rows is None else rows.numbers(feature.inputs[0])
    numbers = numbers[np.isfinite(numbers)]
    return numbers if len(numbers) else None
