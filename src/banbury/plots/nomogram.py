"""NomogramDisplay: a whole model on one sheet, with the decibans of every value, which are added to a probability by hand."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.family import Feature, Parameters, first_value
from banbury.model.explain import DECIBANS, Explanation, Term, make_explanation
from banbury.model.explain.page import percent, printable
from banbury.model.naive_bayes import Model
from banbury.plots.display import (
    AGAINST,
    FAINT,
    FOR,
    Display,
    format_decibans,
    import_matplotlib,
    short_name,
    text_colour,
)
from banbury.plots.features import ClassedRows, check_axis, check_model, evidence_factor, number_of
from banbury.plots.scales import CATEGORY_STRIP, Scale, plain_scale
from banbury.reading import Batch

FARTHEST_SUM = 40.0  # decibans: odds of ten thousand to one
# The probabilities on the scale of sums.
PROBABILITIES = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999)
WIDTH = 7.6  # of the sheet, in inches
SMALL_LETTER_WIDTH = 0.062  # in inches
SMALL_FONT = 7.5  # points


class NomogramDisplay(Display):
    """The evidence of each value of each feature for ``label`` against ``against``, in decibans, and the probability of
    the sum.

    The numbers are those of ``model.explain``: ``prior`` plus the decibans of a row's values in ``scales`` is ten times
    log10 of the odds, and ``probability`` converts the sum to the posterior, including a calibration. For a text, the
    most informative words have a place each, as if each occurred alone; ``points(row)`` returns the decibans of a row,
    including all its words. A missing value adds nothing. For a numeric feature, the height of the curve is the value.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> row = {"outlook": "sunny", "temperature": None, "humidity": "high", "wind": "strong"}
    >>> sheet = bb.plots.NomogramDisplay.from_model(model, "yes", row=row)
    >>> {feature: round(weight, 2) for feature, weight in sheet.points(row).items()}
    {'outlook': -3.01, 'temperature': 0.0, 'humidity': -2.93, 'wind': -1.96}
    >>> round(float(sheet.probability(sheet.decibans(row))), 3), model.posterior(row).round(3).tolist()
    (0.226, [[0.774, 0.226]])
    """

    def __init__(
        self,
        model: Model,
        label: Any,
        against: Any,
        scales: Sequence[Scale],
        *,
        row: Any = None,
        n: int = 12,
        limit: float = 50.0,
    ) -> None:
        """Stores what to draw: evidence for ``label`` against ``against``. ``scales``: the values of each feature with
        their decibans; ``row``: the row to mark, or None; ``n``: how many features to draw; ``limit``: the largest
        distance from 0 to draw, in decibans.
        """
        self.model = model
        self.label = label
        self.against = against
        self.scales = {scale.feature: scale for scale in scales}
        self.row = row
        self.n = n
        self.limit = limit
        self.prior = self._explain_terms([]).prior  # in decibans

    @classmethod
    def from_model(
        cls,
        model: Model,
        label: Any,
        against: Any = None,
        *,
        data: Any = None,
        target: Any = None,
        row: Any = None,
        n: int = 12,
        limit: float = 50.0,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws the evidence for the class ``label`` against the class ``against``, which can be omitted if there are
        two.

        ``row`` marks the values of one row and their sum. Numbers are drawn over the range of ``data`` (with its
        ``target``, as in ``bb.count``), or over the range that the model knows. ``n`` is the number of most informative
        features, and ``limit`` the largest distance from 0 to draw, in decibans.
        """
        if not isinstance(limit, (int, float)) or isinstance(limit, bool) or not 1 <= limit <= 1e6:
            raise errors.bad_setting("limit", limit, "a number of decibans from 1 to 1,000,000")
        errors.check_whole("n", n, 1, 10**6)
        sheet = cls.of(model, label, against, data=data, target=target, **reading)
        sheet.row = row
        sheet.n = n
        sheet.limit = float(limit)
        return sheet.plot(ax)

    @classmethod
    def of(
        cls, model: Model, label: Any, against: Any = None, *, data: Any = None, target: Any = None, **reading: Any
    ) -> Self:
        """Returns the display with its numbers, without drawing it: evidence for the class ``label`` against the class
        ``against`` (the other one of two). Numbers are drawn over the range of ``data``, rows with the labels
        ``target``, if given. Raises an error for a model that cannot be drawn: one that weighs its evidence, or has a
        block of numbers.
        """
        check_model(model, classes=2)
        class_number = number_of(model, label)
        if against is None and len(model.classes) > 2:
            rivals = errors.listed((repr(class_name) for class_name in model.classes if class_name != label), 6)
            text = f"of {len(model.classes):,} classes {label!r} cannot be compared with all others at once, "
            text += "because that evidence does not add up feature by feature. Name one class with against= "
            raise errors.BadSetting(
                f"{text}({rivals}), or use a target with two classes, {label!r} and the rest.", label=label
            )
        # The class to compare with.
        opponent = model.classes[1 - class_number] if against is None else against
        if number_of(model, opponent) == class_number:
            raise errors.bad_setting("against", against, "a class other than the one it is compared with")
        for feature in model.schema.features:
            check_axis(feature)
        if model.weighing is not None:
            text = "the model weighs its evidence, and a sheet with all its columns and pairs cannot be read. Draw what it has "
            text += "learned with bb.plots.shapes(model), or the evidence as it was counted: model.weighed(None)."
            raise errors.BadSetting(text)
        rows = None if data is None else ClassedRows(model, data, target, reading)  # over whose range numbers are drawn
        sheet = cls(model, label, opponent, scales=[])  # the scales, a dictionary by feature, are filled here
        for feature in model.schema.features:
            sheet.scales[feature.name] = plain_scale(model, feature, sheet._decibans_of, rows, (label, opponent))
        return sheet

    # The numbers

    def _decibans_of(self, log_likelihoods: Real) -> Real:
        """Returns the decibans of each value for the label against the other class. ``log_likelihoods``: log P(value |
        class), values × classes.
        """
        explanation = self._explain_terms(
            [Term("", number, log_likelihood) for number, log_likelihood in enumerate(log_likelihoods)]
        )
        decibans = np.zeros(len(log_likelihoods))
        # The explanation sorts its evidence; the value of each entry is the number of its term.
        decibans[[entry.value for entry in explanation.evidence]] = [entry.decibans for entry in explanation.evidence]
        return decibans

    def _explain_terms(self, terms: Sequence[Term]) -> Explanation:
        """Returns the explanation of these terms (each a feature, a value and its log-likelihood by class), with the
        label as the winner against ``self.against``.
        """
        classes = self.model.classes
        # Of the label and of the class it is compared with.
        class_numbers = classes.index(self.label), classes.index(self.against)
        log_prior = self.model.log_prior
        scale = evidence_factor(self.model)  # by which a calibration multiplies evidence
        return make_explanation(classes, log_prior, terms, np.exp(log_prior), *class_numbers, scale=scale)

    def points(self, row: Any) -> dict[str, float]:
        """Returns the decibans of each feature of ``row`` by name; 0 where its value is missing."""
        return {feature: self._explain_terms([term]).evidence[0].decibans for feature, term in self._terms(row).items()}

    def decibans(self, row: Any) -> float:
        """Returns the sum of the prior and of the evidence of ``row``, in decibans for the label."""
        return self._explain_terms(list(self._terms(row).values())).decibans

    def _terms(self, row: Any) -> dict[str, Term]:
        """Returns the evidence of each feature of a row by its name: a term with the log-likelihood by class, which is
        zero where the value is missing.
        """
        batch, parameters = self._read(row)  # groups of parameters, each with its features
        names = [feature.name for group in parameters for feature in group.features]
        # The log-likelihood of the row's value by class, for each feature.
        scores = dict(zip(names, self.model._score_features(batch, parameters, "parts")[0][0], strict=True))
        no_evidence = np.zeros(len(self.model.classes))
        return {
            feature: Term(feature, value=0, log_likelihood=scores.get(feature, no_evidence)) for feature in self.scales
        }

    def _read(self, row: Any) -> tuple[Batch, Sequence[Parameters]]:
        """Returns a row as a batch with the model's columns, and the parameters of the columns that it has."""
        return self.model._align(self.model._one_row(row), {"absent", "extra"})

    def probability(self, decibans: Any) -> Any:
        """Converts a sum of decibans (a number or an array) to P(label | row), calibrated if the model is; with more
        than two classes, to P(label | row, one of the two).
        """
        # In nats: the logarithm of the odds.
        odds = np.asarray(decibans, dtype=np.float64) / DECIBANS
        if self.model.calibration is None or len(self.model.classes) > 2:
            return np.exp(-np.logaddexp(0.0, -odds))
        class_number = self.model.classes.index(self.label)
        sides = np.where(np.arange(2) == class_number, 1.0, -1.0)  # of each of the two classes
        # Of the two classes before calibration (sums × 2); the higher of the two is 0.
        scores = np.minimum(np.outer(odds / evidence_factor(self.model), sides), 0.0)
        return self.model.calibration.apply(scores)[:, class_number].reshape(odds.shape)

    # The picture

    def _draw(self, ax: Any) -> None:
        """Draws a strip for the prior, each of the ``self.n`` most informative features and the sum, one below the
        other; marks the values of ``self.row``, if there is one. ``self.scales``: the values of each feature with their
        decibans; ``self.limit``: the largest distance from 0 to draw, in decibans.
        """
        drawn_scales = sorted(self.scales.values(), key=lambda scale: -scale.range)[: self.n]
        # Of the strips: the prior, the features and the sum.
        heights = [CATEGORY_STRIP, *(scale.height for scale in drawn_scales), 1.5 * CATEGORY_STRIP]
        ax = self._begin(ax, width=WIDTH, height=0.9 + 0.44 * sum(heights))
        batch = None if self.row is None else self._read(self.row)[0]
        points = {} if batch is None else self.points(batch)  # the decibans of the row, by feature
        decibans_of_scales = [scale.decibans for scale in drawn_scales]
        # Everything that is drawn, to find the breadth of the sheet.
        all_decibans = np.concatenate([[0.0, self.prior], *decibans_of_scales, list(points.values())])
        all_decibans = np.clip(all_decibans, -self.limit, self.limit)
        margin = 0.06 * float(np.ptp(all_decibans)) or 1.0
        sheet = Sheet(ax, float(all_decibans.min()) - margin, float(all_decibans.max()) + margin)
        strip_middles = sheet.draw_strips(heights)  # vertical positions: of the prior, the features and the sum
        sheet.draw_values(np.array([self.prior]), [format_decibans(self.prior)], np.ones(1), strip_middles[0])
        for scale, middle in zip(drawn_scales, strip_middles[1:-1], strict=True):
            if scale.numeric:
                sheet.draw_curve(scale, middle)
            else:
                sheet.draw_values(scale.decibans, scale.names, scale.rows, middle, 2 if scale.words else 1)
        sheet.draw_sums(self.probability, strip_middles[-1])
        features = {feature.name: feature for group in self.model.parameters for feature in group.features}
        values: dict[str, Any] = {}  # of the row, by feature
        caption = f"sum in decibans, and below it {self._meaning}"
        if batch is not None:
            values = {scale.feature: _value_of(batch, features[scale.feature]) for scale in drawn_scales}
            total = self.decibans(batch)  # of the row, with the prior
            sheet.mark_value(self.prior, strip_middles[0])
            for scale, middle in zip(drawn_scales, strip_middles[1:-1], strict=True):
                value = values[scale.feature]
                weight = points[scale.feature]  # decibans
                if value is not None or weight != 0:  # what is missing has a mark where it is a value of its own
                    sheet.mark_value(weight, float(scale.heights(value, middle)) if scale.numeric else middle)
            sheet.mark_sum(total, strip_middles[-1])
            caption = f"{format_decibans(total)} decibans: {self._meaning} {percent(float(self.probability(total)))}"
        caption = textwrap.fill(caption, 60)
        ax.text((sheet.low + sheet.high) / 2, strip_middles[-1] - 0.52, caption, ha="center", va="top", fontsize=8)
        # The texts beside the strips.
        labels = [scale.label([values[scale.feature]] if values else []) for scale in drawn_scales]
        self._draw_frame(ax, strip_middles, ["prior", *labels, "sum"])
        curves_note = "; a curve's height is the value" if any(scale.numeric for scale in drawn_scales) else ""
        fewer_note = (
            f"; {self.n} features of {len(self.scales)}, those that tell most" if self.n < len(self.scales) else ""
        )
        ax.set_title(f"Nomogram: {short_name(self.label)} against {short_name(self.against)}{curves_note}{fewer_note}")

    def _draw_frame(self, ax: Any, strip_middles: Real, labels: list[str]) -> None:
        """Labels the strips, whose vertical middles are ``strip_middles``, and draws the axis of decibans at
        the top.
        """
        ax.set_yticks(strip_middles, labels)
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        ax.spines[["left", "bottom", "right"]].set_visible(False)
        ax.spines["top"].set_visible(True)
        ax.set_xlabel(
            f"decibans: to the right for {short_name(self.label)}, to the left for {short_name(self.against)}"
        )

    @property
    def _meaning(self) -> str:
        """What the probability of a sum means, in words."""
        label = short_name(self.label)
        if len(self.model.classes) == 2:
            return f"P({label})"
        calibration = self.model.calibration
        calibration_note = ", before calibration" if calibration is not None and not calibration.only_scales else ""
        return f"P({label} | {label} or {short_name(self.against)}){calibration_note}"


def _value_of(batch: Batch, feature: Feature) -> Any:
    """Returns the value of a feature in a batch of one row, or of a block's columns joined to a text; None if missing
    or not in the batch.
    """
    if not set(feature.inputs).issubset(batch.names):
        return None
    value = first_value(batch, feature)  # of a block a tuple
    if not isinstance(value, tuple):
        return value
    has_value = any(column_value is not None for column_value in value)
    return ", ".join(map(printable, value)) if has_value and len(value) > 1 else value[0]


# The sheet: values along lines and curves, the marks of a row, and the scale of sums ------------------------------------


@dataclass(frozen=True)
class Sheet:
    """Axes whose breadth is ``low`` to ``high`` decibans. Vertical positions are heights of strips, 0 at the top and
    negative below.
    """

    ax: Any
    low: float
    high: float

    @property
    def _letter_width(self) -> float:
        """The width of a letter, in decibans. The names of strips take 2.2 inches of the sheet."""
        return (self.high - self.low) / (WIDTH - 2.2) * SMALL_LETTER_WIDTH

    def draw_strips(self, heights: Sequence[float]) -> Real:
        """Draws the lines between strips of these heights, and returns the vertical position of each strip's middle."""
        edges = -np.cumsum(heights)  # the lower edge of each strip
        for edge in edges[:-1]:
            self.ax.axhline(edge, color=FAINT, linewidth=0.5)
        self.ax.plot([0.0, 0.0], [0.0, edges[-2]], color=FAINT, linewidth=1.0, zorder=0)
        self.ax.set(xlim=(self.low, self.high), ylim=(edges[-1], 0.0))
        return np.asarray(edges + np.array(heights) / 2)

    def draw_values(self, decibans: Real, names: Sequence[str], rows: Real, middle: float, levels: int = 1) -> None:
        """Draws a tick for each value with its name above or below, the ends and the most frequent first, where there
        is room. ``decibans``, ``names``: of each value; ``rows``: how many rows have each value; ``middle``: the
        vertical position of the line; ``levels``: lines of names on either side.
        """
        positions = np.clip(decibans, self.low, self.high)  # horizontal ones, in decibans
        self.ax.plot([positions.min(), positions.max()], [middle, middle], color=text_colour(), linewidth=0.8)
        self.ax.plot(positions, np.full(len(positions), middle), "|", color=text_colour(), markersize=6)
        ends = {int(positions.argmin()), int(positions.argmax())}  # the numbers of the values at both ends
        # Of the lines of names, from the middle: above it, and below it.
        heights = [side * (0.12 + 0.34 * level) for level in range(levels) for side in (1, -1)]
        # The horizontal spans (left, right) that names take up already, by height.
        spans_by_height: dict[float, list[tuple[float, float]]] = {height: [] for height in heights}
        for number in sorted(range(len(positions)), key=lambda number: (number not in ends, -rows[number])):
            text = names[number] if np.isfinite(decibans[number]) else f"{names[number]} (∞)"
            half_width = self._letter_width * (len(text) + 1) / 2
            # Of the name, in decibans.
            centre = float(np.clip(positions[number], self.low + half_width, self.high - half_width))
            free_heights = [  # of lines where the name overlaps no other
                height
                for height, spans in spans_by_height.items()
                if all(centre + half_width <= left or right <= centre - half_width for left, right in spans)
            ]
            if free_heights:
                spans_by_height[free_heights[0]].append((centre - half_width, centre + half_width))
                alignment = "bottom" if free_heights[0] > 0 else "top"
                y = middle + free_heights[0]
                if levels > 1:
                    self.ax.plot([positions[number], centre], [middle, y], color=FAINT, linewidth=0.6, zorder=1)
                self.ax.text(centre, y, text, ha="center", va=alignment, fontsize=SMALL_FONT)

    def draw_curve(self, scale: Scale, middle: float) -> None:
        """Draws the curve of a numeric feature, decibans across and the value upwards, with some values beside it.
        ``middle``: the vertical position of the middle of its strip.
        """
        values = scale.values  # ascending numbers
        decibans = scale.decibans  # of each value
        self.ax.plot(decibans, scale.heights(values, middle), color=FOR, linewidth=1.4)
        ticks = import_matplotlib().ticker.MaxNLocator(4).tick_values(values[0], values[-1])  # round values
        ticks = ticks[(ticks >= values[0]) & (ticks <= values[-1])]
        tick_decibans = np.interp(ticks, values, decibans)
        # A little further along the curve, which says to which side it leans.
        next_decibans = np.interp(ticks + (values[-1] - values[0]) / len(values), values, decibans)
        for tick, x, next_x in zip(ticks, tick_decibans, next_decibans, strict=True):
            if self.low <= x <= self.high:
                y = float(scale.heights(tick, middle))
                self.ax.plot([x], [y], ".", color=FOR, markersize=4)
                # Where the text stands beside the curve.
                side = {"va": "top", "xytext": (2, -1)} if next_x >= x else {"va": "bottom", "xytext": (2, 1)}
                self.ax.annotate(f"{tick:,.6g}", (x, y), textcoords="offset points", fontsize=SMALL_FONT, **side)

    def mark_value(self, decibans: float, height: float) -> None:
        """Marks the value of a row at the vertical position ``height``; with an arrow at the edge if its decibans lie
        outside.
        """
        # The shape of the mark.
        sign = "o" if self.low <= decibans <= self.high else ">" if decibans > self.high else "<"
        position = float(np.clip(decibans, self.low, self.high))
        style = {"color": AGAINST, "markersize": 7, "markeredgecolor": "white", "zorder": 4, "clip_on": False}
        self.ax.plot([position], [height], sign, **style)

    def _position_of_sum(self, decibans: Any) -> Any:
        """Returns the horizontal position of a sum of decibans (a number or several) on its own scale, which takes the
        breadth of the axes.
        """
        margin = 0.03 * (self.high - self.low)
        return np.interp(decibans, [-FARTHEST_SUM, FARTHEST_SUM], [self.low + margin, self.high - margin])

    def draw_sums(self, probability: Callable[[Any], Any], middle: float) -> None:
        """Draws the scale of sums in the strip around ``middle``: decibans above the line, probabilities below.
        ``probability``: converts decibans, an array of them, to probabilities.
        """
        self.ax.plot(
            self._position_of_sum([-FARTHEST_SUM, FARTHEST_SUM]), [middle, middle], color=text_colour(), linewidth=1.2
        )
        for decibans in np.arange(-FARTHEST_SUM, FARTHEST_SUM + 1.0, 10.0):
            text = f"{decibans:+.0f}".replace("-", "−") if decibans else "0"
            self._draw_tick(float(self._position_of_sum(decibans)), middle, side=1, text=text)
        totals = np.linspace(-FARTHEST_SUM, FARTHEST_SUM, 8_001)  # where probabilities are looked for
        right_end = -np.inf  # of the last text
        probabilities = np.asarray(probability(totals))  # of each total, ascending
        for tick_probability in PROBABILITIES:
            if probabilities[0] - 1e-12 <= tick_probability <= probabilities[-1] + 1e-12:
                # The first total whose probability is at least that of the tick.
                first_reaching = min(int(np.searchsorted(probabilities, tick_probability)), len(totals) - 1)
                position = float(self._position_of_sum(totals[first_reaching]))
                text = f"{100 * tick_probability:.6g}%"
                half_width = self._letter_width * (len(text) + 0.5) / 2
                has_room = position - half_width >= right_end
                self._draw_tick(position, middle, side=-1, text=text if has_room else "")
                right_end = position + half_width if has_room else right_end

    def _draw_tick(self, position: float, middle: float, side: int, text: str) -> None:
        """Draws a tick at the horizontal ``position`` with a text above (side 1) or below (side −1) the line at the
        vertical position ``middle``.
        """
        self.ax.plot([position, position], [middle, middle + 0.12 * side], color=text_colour(), linewidth=0.8)
        alignment = "bottom" if side > 0 else "top"
        self.ax.text(position, middle + 0.16 * side, text, ha="center", va=alignment, fontsize=SMALL_FONT)

    def mark_sum(self, decibans: float, middle: float) -> None:
        """Marks ``decibans``, the sum of a row, on the scale of sums around ``middle``; with an arrow if it is beyond
        the scale.
        """
        outside = np.inf if decibans > FARTHEST_SUM else -np.inf if decibans < -FARTHEST_SUM else 0.0
        self.mark_value(float(self._position_of_sum(decibans)) + outside, middle)
