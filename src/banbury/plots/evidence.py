"""EvidenceDisplay: the evidence of a row as bars of decibans; ComparedEvidenceDisplay: the evidence under two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.model.explain import Evidence, Explanation
from banbury.model.explain.page import percent
from banbury.model.naive_bayes import Model
from banbury.plots.display import (
    AGAINST,
    FAINT,
    FOR,
    SUM,
    Display,
    check_type,
    format_decibans,
    legend_beside,
    short_name,
    text_colour,
)
from banbury.plots.features import check_model


class EvidenceDisplay(Display):
    """The prior, the evidence of every feature or word, and their sum, in decibans. ``explanation`` has the numbers.

    ``labels`` and ``weights`` are the bars from the top: the prior, the strongest evidence, the rest, the sum. If the
    model is calibrated, all of it is calibrated.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    >>> shown = bb.plots.EvidenceDisplay.from_model(model, row)
    >>> shown.labels
    ['prior', 'outlook = sunny', 'humidity = high', 'wind = strong', 'temperature = cool', 'sum']
    >>> [round(weight, 2) for weight in shown.weights]
    [-2.55, 3.01, 2.93, 1.96, -1.25, 4.1]
    """

    def __init__(self, explanation: Explanation, *, n: int = 15) -> None:
        """``explanation``: a result of ``model.explain``; ``n``: how many of the strongest features or words to show."""
        check_type("the explanation", explanation, Explanation, "an Explanation, from model.explain")
        errors.check_whole("n", n, 1, 10**6)
        self.explanation = explanation
        evidence = explanation.evidence  # the strongest first
        is_single_text = len({entry.feature for entry in evidence}) == 1 < len(evidence)  # the words of a text
        # Pairs of label and decibans; before the evidence come the prior and what a calibration adds.
        bars = [*explanation.before, *((_label(entry, is_single_text), entry.decibans) for entry in evidence[:n])]
        if len(evidence) > n:
            bars.append((f"{len(evidence) - n:,} more", sum(entry.decibans for entry in evidence[n:])))
        bars.append(("sum", explanation.decibans))
        self.labels = [label for label, _ in bars]
        self.weights = [float(weight) for _, weight in bars]

    @classmethod
    def from_explanation(cls, explanation: Explanation, *, n: int = 15, ax: Any = None) -> Self:
        """Draws an explanation: the ``n`` strongest features or words, and all others together."""
        return cls(explanation, n=n).plot(ax)

    @classmethod
    def from_model(cls, model: Model, row: Any, against: Any = None, *, n: int = 15, ax: Any = None) -> Self:
        """Draws ``model.explain(row, against)``."""
        check_model(model, classes=2)
        return cls(model.explain(row, against), n=n).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws a bar for each of ``self.labels`` with its weight in decibans; the last one is the sum."""
        weights = np.array(self.weights)  # decibans
        ax = self._begin(ax, width=6.4, height=1.3 + 0.25 * len(weights))
        y_positions = _bar_positions(len(weights))
        lengths = _bar_lengths(weights)  # in decibans, all finite
        colours = [FOR if length >= 0 else AGAINST for length in lengths[:-1]]
        _draw_bars(ax, y_positions, lengths, weights, height=0.72, colours=[*colours, SUM])
        explanation = self.explanation
        _draw_frame(ax, y_positions, self.labels, lengths, explanation)
        winner = f"{short_name(explanation.winner)} {percent(explanation.probability)}"
        against = f"{short_name(explanation.against)} {percent(explanation.probability_against)}"
        ax.set_title(f"Weight of evidence: {winner} against {against}")


class ComparedEvidenceDisplay(Display):
    """Two explanations of one row side by side, such as plain and weighed. ``explanations`` has the numbers by name.

    ``labels`` are the prior, the strongest evidence in either, the rest and the sum; ``weights`` has the decibans of
    each (labels × 2) in favour of the winner of the first. Evidence that one of them does not have, such as a pair of
    columns, has no bar there.

    >>> import banbury as bb
    >>> weather = bb.datasets.play_tennis()
    >>> plain = bb.estimate(bb.count(weather, target="play"))
    >>> weighed = bb.weigh(plain, weather, "play", pairs=False)
    >>> row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    >>> two = {"plain": plain.explain(row), "weighed": weighed.explain(row)}
    >>> shown = bb.plots.ComparedEvidenceDisplay.from_explanations(two)
    >>> shown.labels[1], shown.weights[1].round(2).tolist()
    ('outlook = sunny', [3.01, 2.56])
    """

    def __init__(self, explanations: Mapping[str, Explanation], *, n: int = 15) -> None:
        """``explanations``: two explanations of the same classes by name; ``n``: how many of the strongest features or
        words to show.
        """
        if not isinstance(explanations, Mapping) or len(explanations) != 2:
            raise errors.bad_setting("explanations", explanations, "two of them by name, as {'plain': …, 'weighed': …}")
        for explanation in explanations.values():
            check_type("an explanation", explanation, Explanation, "an Explanation, from model.explain")
        errors.check_whole("n", n, 1, 10**6)
        self.explanations = dict(explanations)
        first, second = self.explanations.values()
        if {first.winner, first.against} != {second.winner, second.against}:
            classes = f"{second.winner!r} against {second.against!r}"
            expected = f"of the same two classes, {first.winner!r} and {first.against!r}; use explain(row, against=...)"
            raise errors.bad_setting("the second explanation", classes, expected)
        # The factor that makes the second's decibans evidence for the first's winner.
        sign = 1.0 if first.winner == second.winner else -1.0
        # The evidence of each feature and value, with its decibans under both models; NaN where a model has none.
        terms: dict[tuple[str, str], tuple[Evidence, list[float]]] = {}
        for model_number, (explanation, factor) in enumerate(((first, 1.0), (second, sign))):
            for entry in explanation.evidence:
                # ``pair`` has the decibans under both models.
                _, pair = terms.setdefault((entry.feature, str(entry.value)), (entry, [np.nan, np.nan]))
                pair[model_number] = factor * entry.decibans
        # The strongest first: an entry of evidence and its two numbers of decibans.
        ranked = sorted(terms.values(), key=lambda term: -np.nanmax(np.abs(term[1])))
        first_before = dict(first.before)  # the prior and what a calibration adds, in decibans
        second_before = dict(second.before)
        bars = [  # pairs of label and the decibans under both models
            (name, [first_before.get(name, np.nan), sign * second_before.get(name, np.nan)])
            for name in first_before | second_before
        ]
        bars += [(_label(entry, is_single_text=False), pair) for entry, pair in ranked[:n]]
        if len(ranked) > n:
            bars.append((f"{len(ranked) - n:,} more", np.nansum([pair for _, pair in ranked[n:]], axis=0).tolist()))
        bars.append(("sum", [first.decibans, sign * second.decibans]))
        self.labels = [label for label, _ in bars]
        self.weights = np.array([pair for _, pair in bars])

    @classmethod
    def from_explanations(cls, explanations: Mapping[str, Explanation], *, n: int = 15, ax: Any = None) -> Self:
        """Draws two explanations of the same two classes: the ``n`` strongest features or words, and all others
        together.
        """
        return cls(explanations, n=n).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws two bars for each label, one per explanation. ``self.weights`` has their decibans (labels × 2), NaN for
        no bar.
        """
        ax = self._begin(ax, width=8.4, height=1.5 + 0.36 * len(self.labels))
        y_positions = _bar_positions(len(self.labels))
        lengths = _bar_lengths(self.weights)  # labels × 2, in decibans, all finite
        first = next(iter(self.explanations.values()))  # whose winner evidence is for
        sides = []  # the name of each explanation and its probability of the first's winner
        for number, (name, explanation) in enumerate(self.explanations.items()):
            has_weight = ~np.isnan(self.weights[:, number])
            weights = self.weights[has_weight, number]
            offset = (number - 0.5) * 0.38  # above or below the middle of the pair
            colour = FOR if number else AGAINST
            bars = _draw_bars(
                ax, y_positions[has_weight] + offset, lengths[has_weight, number], weights, height=0.36, colours=colour
            )
            bars.set_label(short_name(name))
            has_same_winner = explanation.winner == first.winner
            probability = explanation.probability if has_same_winner else explanation.probability_against
            sides.append(f"{short_name(name)} {percent(probability)}")
        _draw_frame(ax, y_positions, self.labels, lengths, first)
        legend_beside(ax)
        ax.set_title(f"{short_name(first.winner)} against {short_name(first.against)}\n{', '.join(sides)}")


# What both have -------------------------------------------------------------------------------------------------------


def _label(evidence: Evidence, is_single_text: bool) -> str:
    """Returns the label of a bar: feature and value, how often it occurs if more than once, and whether it was never
    counted; without the feature if ``is_single_text``.
    """
    value_text = (
        short_name(evidence.value, 28)
        + (f" × {evidence.times}" if evidence.times > 1 else "")
        + ("" if evidence.seen else " (never seen)")
    )
    return value_text if is_single_text else f"{short_name(evidence.feature, 40)} = {value_text}"


def _bar_positions(n: int) -> Real:
    """Returns the vertical positions of n bars; the last one, the sum, stands a little apart."""
    return np.append(np.arange(n - 1.0), n - 0.65)


def _bar_lengths(weights: Real) -> Real:
    """Returns the lengths of bars with these weights (any shape); infinite ones are a little longer than the longest
    finite one, and NaN, for no bar, becomes 0.
    """
    # In decibans.
    longest = float(np.abs(weights[np.isfinite(weights)]).max(initial=0.0)) or 1.0
    return np.asarray(np.clip(np.nan_to_num(weights, nan=0.0), -1.1 * longest, 1.1 * longest))


def _draw_bars(ax: Any, positions: Real, lengths: Real, weights: Real, height: float, colours: Any) -> Any:
    """Draws horizontal bars with their weights as text, and returns matplotlib's bars. ``positions``: their vertical
    positions; ``lengths``: of the bars; ``weights``: the decibans to write, which may be infinite; ``height``: of each
    bar; ``colours``: one for all bars, or one each.
    """
    bars = ax.barh(positions, lengths, height, color=colours)
    for position, length, weight in zip(positions, lengths, weights, strict=True):
        # Beside the end of the bar.
        alignment = {"ha": "left", "xytext": (3, 0)} if length >= 0 else {"ha": "right", "xytext": (-3, 0)}
        text_style = {"textcoords": "offset points", "va": "center_baseline", "fontsize": 8, **alignment}
        ax.annotate(format_decibans(weight), (length, position), **text_style)
    return bars


def _draw_frame(ax: Any, positions: Real, labels: Sequence[str], lengths: Real, explanation: Explanation) -> None:
    """Draws the zero line and the line above the sum, and labels the bars and the axis. ``positions``: the vertical
    positions of the bars, and ``lengths``: theirs; ``explanation``: names the class for which evidence speaks on either
    side.
    """
    ax.axvline(0.0, color=text_colour(), linewidth=0.8)
    ax.axhline(positions[-1] - 0.68, color=FAINT, linewidth=0.8)
    ax.set_yticks(positions, labels)
    low = min(lengths.min(), 0.0)  # decibans, like all horizontal positions
    high = max(lengths.max(), 0.0)
    margin = 0.14 * (high - low) or 1.0  # for a number beside the longest bar
    ax.set(xlim=(low - margin, high + margin), ylim=(positions[-1] + 0.6, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    winner = short_name(explanation.winner)
    ax.set_xlabel(f"decibans: to the right for {winner}, to the left for {short_name(explanation.against)}")
