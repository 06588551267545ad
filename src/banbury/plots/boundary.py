"""DecisionBoundaryDisplay: which class wins where, over two numeric features; or how far one class is ahead of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.model.naive_bayes import Model
from banbury.plots.display import Display, colour, ink, legend_beside, library, mark, name, names
from banbury.plots.features import ClassedRows, check_model, column_of, number_of, pair_of, span, table, two_columns


@dataclass(eq=False, repr=False)
class DecisionBoundaryDisplay(Display):
    """Posteriors over two numeric features. The others are missing, or fixed at the values in ``fixed``.

    ``xx0`` and ``xx1`` are the grid, ``posterior`` the posteriors on it (len(xx1) × len(xx0) × classes), and
    ``difference`` the two classes whose posteriors are subtracted, or None.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> flowers, species = load_iris(return_X_y=True)
    >>> model = bb.estimate(bb.count(flowers, species))
    >>> shown = bb.plots.DecisionBoundaryDisplay.from_model(model, ["x2", "x3"], steps=50)
    >>> shown.posterior.shape
    (50, 50, 3)
    """

    features: tuple[str, str]
    classes: tuple[Any, ...]
    xx0: Real
    xx1: Real
    posterior: Real
    difference: tuple[Any, Any] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    n_features: int = 2
    points: tuple[Real, Real, NDArray[np.int64]] | None = None

    @classmethod
    def from_model(
        cls,
        model: Model,
        features: Sequence[str],
        data: Any = None,
        target: Any = None,
        *,
        difference: Sequence[Any] | None = None,
        fixed: Mapping[str, Any] | None = None,
        steps: int = 250,
        ax: Any = None,
        **reading: Any,
    ) -> Self:
        """Draws the decision regions of two features, and the rows of ``data`` as points (at most 2,000).

        The features can be columns of blocks. With ``difference``, a pair of classes, the posterior of the first minus
        that of the second is drawn. ``fixed`` has the values of other columns, which are missing otherwise.
        """
        check_model(model, classes=2)
        pair = two_columns(model, features)
        held_at = dict(fixed or {})
        for feature in held_at:
            if feature in pair or feature not in column_of(model, feature).inputs:
                raise errors.bad_setting("fixed", feature, "a column other than the two drawn")
        if difference is not None:
            difference = pair_of("difference", difference, "two of the model's classes")
            for label in difference:
                number_of(model, label)
        errors.check_whole("steps", steps, 2, 2_000)
        points = None if data is None else ClassedRows(model, data, target, reading).points(pair)
        seen: tuple[Real | None, Real | None] = (None, None) if points is None else points[:2]
        xx0, xx1 = (np.linspace(*span(model, pair[i], seen[i]), steps) for i in (0, 1))
        across, up = np.meshgrid(xx0, xx1)
        columns: dict[str, Any] = {pair[0]: across.ravel(), pair[1]: up.ravel()}
        columns |= {feature: [value] * across.size for feature, value in held_at.items()}
        posterior = model.posterior(table(model, columns)).reshape(steps, steps, -1)
        n_features = sum(len(feature.inputs) for feature in model.schema.features)
        return cls(pair, model.classes, xx0, xx1, posterior, difference, held_at, n_features, points).plot(ax)

    @property
    def response(self) -> Real:
        """What is drawn: the number of the predicted class, or the difference of two posteriors."""
        if self.difference is None:
            return np.asarray(self.posterior.argmax(axis=2))
        a, b = (self.classes.index(label) for label in self.difference)
        return np.asarray(self.posterior[:, :, a] - self.posterior[:, :, b])

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 6.8 if self.difference is None else 7.4, 4.4)
        # Lighter than the points of a class, so that these stand out from its region.
        class_colours = np.array([library().colors.to_rgb(colour(c)) for c in range(len(self.classes))])
        subject = "Most probable class"
        region_colours = 1.0 - 0.5 * (1.0 - class_colours)
        if self.difference is None:  # each class's region in its colour, the paler the less sure; the borders in black
            winner = self.posterior.argmax(axis=2)
            confidence = (self.posterior.max(axis=2) - 1 / len(self.classes)) / (1 - 1 / len(self.classes))
            self._image(ax, 1.0 - (0.25 + 0.7 * confidence)[:, :, None] * (1.0 - region_colours[winner]))
            for c in range(len(self.classes)):
                self._border(ax, self.posterior[:, :, c] - np.delete(self.posterior, c, axis=2).max(axis=2))
        else:
            self._ahead(ax, region_colours)
            subject = f"How far {name(self.difference[0])} is ahead of {name(self.difference[1])}"
        self._rows(ax)
        ax.set(xlim=self.xx0[[0, -1]], ylim=self.xx1[[0, -1]])
        ax.set(xlabel=name(self.features[0], 40), ylabel=name(self.features[1], 40))
        held_at = ", ".join(f"{name(feature)} = {name(value)}" for feature, value in self.fixed.items())
        missing_note = "" if self.n_features == 2 + len(self.fixed) else "other features missing"
        ax.set_title("; ".join(filter(None, [subject, held_at, missing_note])))

    def _image(self, ax: Any, colours: Any, **style: Any) -> Any:
        extent = (self.xx0[0], self.xx0[-1], self.xx1[0], self.xx1[-1])
        return ax.imshow(colours, extent=extent, origin="lower", aspect="auto", zorder=0, **style)

    def _border(self, ax: Any, lead: Real) -> None:
        if lead.min() < 0 < lead.max():
            ax.contour(self.xx0, self.xx1, lead, levels=[0.0], colors=[ink()], linewidths=1.0)

    def _ahead(self, ax: Any, region_colours: Real) -> None:
        assert self.difference is not None
        a, b = (self.classes.index(label) for label in self.difference)
        first, second = (name(label) for label in self.difference)
        shades = library().colors.LinearSegmentedColormap.from_list(
            "ahead", [region_colours[b], (1.0, 1.0, 1.0), region_colours[a]], N=41
        )
        image = self._image(ax, self.response, cmap=shades, vmin=-1.0, vmax=1.0)
        bar = self.figure_.colorbar(image, ax=ax, fraction=0.06, pad=0.02)
        bar.set_label(f"P({first} | row) − P({second} | row)")
        bar.outline.set_visible(False)
        self._border(ax, self.response)

    def _rows(self, ax: Any) -> None:
        called = names(self.classes)
        for c, label in enumerate(called):
            style = {"color": colour(c), "marker": mark(c), "edgecolors": "white", "linewidths": 0.6, "label": label}
            if self.points is not None:
                of_class = self.points[2] == c
                ax.scatter(self.points[0][of_class], self.points[1][of_class], s=24, zorder=3, **style)
            elif self.difference is None:
                ax.scatter([], [], s=40, **{**style, "marker": "s"})
        if self.points is not None or self.difference is None:
            legend_beside(ax)
