"""LikelihoodDisplay: P(value | class) of one feature, over the histogram of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.distributions.family import Feature
from banbury.naive_bayes import Model
from banbury.plots.display import Display, colour, line, name, names
from banbury.plots.features import (
    Rows,
    check_model,
    check_whole,
    grid,
    is_numeric,
    keys,
    log_likelihood,
    number_of,
    rows_with,
)

Real = NDArray[np.float64]
MOST_BINS = 50
FAMILIES = {"gaussian": "Gaussian", "poisson": "Poisson", "histogram": "histogram", "kernel_density": "kernel"}


class RowsPerBin(NamedTuple):
    """The histogram of a column: its bins' edges, and the density of each class's rows in them, bins × classes."""

    edges: Real
    density: Real


class LikelihoodDisplay(Display):
    """P(value | class) of one feature: densities of a numeric column, over a histogram if rows are given; else bars.

    ``values`` are those drawn, ``likelihood`` what the model says of them, values × classes, times P(class) where ``prior``
    is true. ``histogram`` has the rows' own densities, or is None.

    >>> import banbury as bb
    >>> model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play"))
    >>> shown = bb.plots.LikelihoodDisplay.from_model(model, "wind")
    >>> shown.classes, shown.values
    (('no', 'yes'), ['strong', 'weak'])
    >>> shown.likelihood.round(3).tolist()
    [[0.571, 0.364], [0.429, 0.636]]
    """

    def __init__(
        self,
        feature: Feature,
        classes: tuple[Any, ...],
        values: Any,
        likelihood: Real,
        *,
        value_names: Sequence[str] = (),
        prior: bool = False,
        histogram: RowsPerBin | None = None,
        hidden: int = 0,
    ) -> None:
        self.feature, self.classes = feature, classes
        self.values, self.likelihood, self.value_names = values, likelihood, list(value_names)
        self.prior, self.histogram, self.hidden = prior, histogram, hidden

    @classmethod
    def from_model(
        cls,
        model: Model,
        feature: str,
        data: Any = None,
        target: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        prior: bool = False,
        bins: int | Sequence[float] | None = None,
        most: int = 20,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws a feature as the model sees it.

        ``data`` and ``target``, as ``bb.count`` takes them, put a histogram under the densities, of so many ``bins`` or with
        these edges. ``classes``: only some of them. ``prior``: times P(class), and the rows' shares likewise. ``most``: of a
        category with more values the most frequent.
        """
        check_model(model)
        check_whole("most", most, 1)
        found = model.schema[feature]
        chosen = model.classes if classes is None else tuple(classes)
        at = [number_of(model, label) for label in chosen]
        if not chosen:
            raise errors.bad_setting("classes", classes, "one of the model's classes at least")
        if found.family.shape == "words":
            raise errors.text_has_no_axis(found.name)
        if is_numeric(found):
            rows = None if data is None else Rows(model, data, target, reading)
            return cls._densities(model, found, chosen, at, rows, prior, bins).plot(ax)
        values, called = keys(model, found)
        kept = np.sort(np.argsort(-rows_with(model, found), kind="stable")[:most]).tolist()
        shown = [values[k] for k in kept]
        likelihood = cls._scaled(model, log_likelihood(model, feature, shown), prior)[:, at]
        value_names = [called[k] for k in kept]
        hidden = len(values) - len(kept)
        return cls(found, chosen, shown, likelihood, value_names=value_names, prior=prior, hidden=hidden).plot(ax)

    @classmethod
    def _densities(
        cls,
        model: Model,
        feature: Feature,
        classes: tuple[Any, ...],
        at: list[int],
        rows: Rows | None,
        prior: bool,
        bins: Any,
    ) -> Self:
        histogram, seen = None, None
        if rows is not None:
            numbers = rows.numbers(feature.name)
            used = np.isin(rows.classes, at) & np.isfinite(numbers)
            if not used.any():
                raise errors.empty_data(None, f"no row of these classes has a value of {feature.name!r}")
            seen, own = numbers[used], rows.classes[used]
            total = int(np.count_nonzero(rows.classes >= 0))
            histogram = _histogram(feature, seen, own, at, bins, total if prior else None)
        values = grid(model, feature, seen)
        likelihood = cls._scaled(model, log_likelihood(model, feature.name, values), prior)[:, at]
        return cls(feature, classes, values, likelihood, prior=prior, histogram=histogram)

    @staticmethod
    def _scaled(model: Model, found: Real, prior: bool) -> Real:
        return np.exp(found + model.log_prior if prior else found)

    def _draw(self, ax: Any) -> None:
        if is_numeric(self.feature):
            self._lines(ax)
        else:
            self._bars(ax)

    def _lines(self, ax: Any) -> None:
        ax = self._begin(ax, 6.4, 3.8)
        called = names(self.classes)
        self._rows(ax)
        counts = self.feature.family.name == "poisson"
        for c, label in enumerate(called):
            style = {"color": colour(c), "linestyle": line(c), "label": label}
            few = counts and len(self.values) <= 60
            ax.plot(self.values, self.likelihood[:, c], marker="o" if few else None, markersize=3.5, **style)
        low, high = self.values[0], self.values[-1]
        ax.set_xlim(low - 0.6 * counts, high + 0.6 * counts)
        ax.set_ylim(0.0, self._top())
        what = "probability" if counts else "density"
        ax.set_xlabel(name(self.feature.name))
        ax.set_ylabel(f"P(class) · {what} given the class" if self.prior else f"{what} given the class")
        if counts:
            ax.xaxis.get_major_locator().set_params(integer=True)
        self._title(f"{name(self.feature.name)}: {FAMILIES[self.feature.family.name]} {what} of each class")
        ax.legend(ncols=2 if len(called) > 8 else 1)

    def _rows(self, ax: Any) -> None:
        if self.histogram is None:
            return
        for c in range(len(self.classes)):
            fill = {"color": colour(c), "alpha": 0.22 if len(self.classes) < 5 else 0.12, "linewidth": 0}
            ax.stairs(self.histogram.density[:, c], self.histogram.edges, fill=True, **fill)
        ax.stairs([0.0], self.histogram.edges[:2], fill=True, color="#CCCCCC", label="histogram of the rows")

    def _top(self) -> float:
        """Room for all densities, and for bars that are not much higher."""
        finite = self.likelihood[np.isfinite(self.likelihood)]
        top = float(finite.max(initial=0.0))
        if self.histogram is not None:
            top = max(top, min(float(self.histogram.density.max(initial=0.0)), 4.0 * top))
        return top * 1.08 or 1.0

    def _bars(self, ax: Any) -> None:
        n_values, n_classes = self.likelihood.shape
        ax = self._begin(ax, 6.4, 1.3 + 0.16 * n_values * min(max(n_classes, 2), 5))
        thick = 0.84 / n_classes
        for c, label in enumerate(names(self.classes)):
            places = np.arange(n_values) - 0.42 + thick * (c + 0.5)
            hatch = {"hatch": "//", "edgecolor": "white"} if c >= 8 else {}
            ax.barh(places, self.likelihood[:, c], thick * 0.9, color=colour(c), label=label, **hatch)
        ax.set_yticks(np.arange(n_values), names(self.value_names))
        ax.set_ylim(n_values - 0.5, -0.5)
        ax.tick_params(axis="y", length=0)
        ax.set_xlim(0.0, float(self.likelihood.max(initial=0.0)) * 1.05 or 1.0)
        ax.set_xlabel("P(class) · P(value | class)" if self.prior else "P(value | class)")
        more = f" ({n_values} most frequent of {n_values + self.hidden} values)" if self.hidden else ""
        self._title(f"{name(self.feature.name)}: probability of each value given the class{more}")
        ax.legend()


def _histogram(feature: Feature, values: Real, classes: Any, at: list[int], bins: Any, total: int | None) -> RowsPerBin:
    """The rows' density in each bin; of each class it integrates to one, or, with a total, to the class's share of the rows."""
    edges = _edges(feature, values, [values[classes == c] for c in at], bins)
    columns = []
    for c in at:
        own = values[classes == c]
        counts = np.histogram(own, edges)[0]
        columns.append(counts / (np.diff(edges) * max(len(own) if total is None else total, 1)))
    return RowsPerBin(edges, np.stack(columns, axis=1))


def _edges(feature: Feature, values: Real, each: Sequence[Real], bins: Any) -> Real:
    """Those given, or bins of the width that Freedman and Diaconis have for the class in the middle; whole numbers stay whole."""
    if bins is not None:
        try:
            return np.asarray(np.histogram_bin_edges(values, bins), dtype=np.float64)
        except (TypeError, ValueError):
            raise errors.bad_setting("bins", bins, "a whole number from 1 up, or ascending edges") from None
    low, high = float(values.min()), float(values.max())
    widths = [
        2.0 * float(np.subtract(*np.quantile(own, [0.75, 0.25]))) / len(own) ** (1 / 3) for own in each if len(own)
    ]
    width = float(np.clip(np.median(widths), (high - low) / MOST_BINS, (high - low) / 10)) or 1.0
    if not np.array_equal(values, np.floor(values)):
        return np.asarray(low + width * np.arange(np.floor((high - low) / width) + 2.0))
    width = max(np.round(width), 1.0)
    return np.asarray(low - 0.5 + width * np.arange(np.floor((high - low) / width) + 2.0))
