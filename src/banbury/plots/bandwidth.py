"""BandwidthDisplay: a kernel density under, at and over its best bandwidth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.families.kernel_density import try_bandwidths
from banbury.model.naive_bayes import Model, estimate
from banbury.plots.display import COLOURS, FAINT, Display, import_matplotlib, legend_beside, short_name, text_colour
from banbury.plots.features import axis_values, check_axis, check_model, feature_parts_of, log_likelihood, number_of

# The description, colour and line style of each density.
CURVES = (("far under", COLOURS[4], "-"), ("best", COLOURS[0], "-"), ("far over", COLOURS[1], "--"))


@dataclass(eq=False, repr=False)
class BandwidthDisplay(Display):
    """The leave-one-out log-likelihood over bandwidths of a kernel density (left), and three of the densities (right).

    ``bandwidths`` are the ones tried, in the units of the column; ``log_likelihood`` is the mean over rows, in nats;
    ``best`` is the bandwidth with the highest. ``shown`` are the three bandwidths drawn, and ``density`` their
    densities at ``values``.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> widths = {"petal width": load_iris().data[:, 3], "kind": ["iris"] * 150}
    >>> model = bb.estimate(bb.count(widths, target="kind", features=bb.KernelDensity()))
    >>> shown = bb.plots.BandwidthDisplay.from_model(model, "petal width")
    >>> shown.density.shape, bool(shown.best == shown.bandwidths[shown.log_likelihood.argmax()])
    ((1000, 3), True)
    """

    feature: str
    label: Any  # the class whose density is drawn
    bandwidths: Real
    log_likelihood: Real  # of each bandwidth
    shown: tuple[float, float, float]
    values: Real
    density: Real  # values × the three bandwidths

    @property
    def best(self) -> float:
        """The bandwidth with the highest leave-one-out log-likelihood."""
        return float(self.bandwidths[self.log_likelihood.argmax()])

    @classmethod
    def from_model(cls, model: Model, feature: str, label: Any = None, *, times: float = 8.0, ax: Any = None) -> Self:
        """Draws a kernel density of one class with its best bandwidth, and with one ``times`` narrower and one
        ``times`` wider.

        ``label`` can be omitted if there is one class. Bandwidths are at least as wide as a bin of the tally. Another
        family, or a column of fewer than two different values, raises an error.
        """
        check_model(model)
        feature_parts = feature_parts_of(model, feature)  # the column, its position in its sums, and these
        column = feature_parts.feature
        family = column.family
        class_number = 0 if label is None else number_of(model, label)
        check_axis(column)
        bandwidths_and_scores = try_bandwidths(column, feature_parts.sums, feature_parts.position, class_number)
        if bandwidths_and_scores is None:
            text = f"column {feature!r} is counted as {family.name}, which has no bandwidth. Name a column of family "
            text += f"kernel_density or, if it is numeric, use features={{{feature!r}: 'kernel_density'}}."
            raise errors.BadSetting(text, column=feature, family=family.name)
        if label is None and len(model.classes) > 1:
            raise errors.bad_setting("label", label, f"one of the classes ({errors.listed(model.classes)})")
        if isinstance(times, bool) or not isinstance(times, (int, float)) or not 1 < times <= 1e6:
            raise errors.bad_setting("times", times, "a number above 1, 1,000,000 at most")
        bandwidths, scores = bandwidths_and_scores  # scores: the mean log-likelihood of a row left out, in nats
        if len(bandwidths) < 2:
            problem = f"too few values in class {model.classes[class_number]!r}"
            raise errors.bad_setting(f"column {feature!r}", problem, "a column with at least two different values")
        best = float(bandwidths[scores.argmax()])
        # At least as wide as a bin.
        drawn_bandwidths = max(best / times, column.unit), best, best * times
        values = axis_values(model, column, column.inputs[0])  # at which the densities are drawn
        choice = model.choice
        # Arguments of ``estimate``.
        settings = {"how": choice.how, "alpha": choice.alpha, "seed": choice.seed}
        families = ({feature: replace(family, bandwidth=bandwidth)} for bandwidth in drawn_bandwidths)  # type: ignore[type-var]
        models = (estimate(model.tally, **settings, features=features) for features in families)  # type: ignore[arg-type]
        # Values × bandwidths.
        density = np.exp([log_likelihood(variant, column, values)[:, class_number] for variant in models]).T
        return cls(feature, model.classes[class_number], bandwidths, scores, drawn_bandwidths, values, density).plot(ax)

    def _draw(self, ax: Any) -> None:
        """Draws the log-likelihood over bandwidths on the left axes, and the densities with the three bandwidths
        ``self.shown`` (``self.density``, values × bandwidths) on the right. ``ax``: a pair of axes; None: new ones.
        """
        if ax is None:
            ax = import_matplotlib().pyplot.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")[1]
        try:
            left_axes, right_axes = ax
        except (TypeError, ValueError):
            raise errors.bad_setting("ax", ax, "a pair of axes: this picture has two parts") from None
        self.ax_ = np.array([left_axes, right_axes], dtype=object)
        self.figure_ = left_axes.figure
        left_axes.plot(
            self.bandwidths, self.log_likelihood, color=text_colour(), marker=".", markersize=4, linewidth=1.0
        )
        for (description, colour, style), bandwidth, density in zip(CURVES, self.shown, self.density.T, strict=True):
            left_axes.axvline(bandwidth, color=colour, linestyle=style, linewidth=1.4)
            right_axes.plot(
                self.values, density, color=colour, linestyle=style, label=f"{description}: {bandwidth:.3g}"
            )
        highest = self.log_likelihood.max()  # nats
        feature_name = short_name(self.feature)
        left_axes.set(xscale="log", ylim=(max(self.log_likelihood.min(), highest - 3.0) - 0.05, highest + 0.15))
        left_axes.set(
            xlabel=f"bandwidth, in units of {feature_name}", ylabel="mean log-likelihood of a row left out (nats)"
        )
        left_axes.set_title(f"The best bandwidth is {self.best:.3g}")
        left_axes.grid(axis="y", color=FAINT, linewidth=0.4)
        right_axes.set(xlim=self.values[[0, -1]], ylim=(0.0, None))
        right_axes.set(xlabel=feature_name, ylabel=f"density given {short_name(self.label)}")
        right_axes.set_title("Kernel densities by bandwidth")
        legend_beside(right_axes)
