"""DecisionBoundaryDisplay: the most probable class over two numeric features, or how far one class is ahead of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.model.naive_bayes import Model
from banbury.plots.display import (
    Display,
    colour,
    import_matplotlib,
    legend_beside,
    mark,
    short_name,
    short_names,
    text_colour,
)
from banbury.plots.features import (
    ClassedRows,
    axis_range,
    check_model,
    column_of,
    complete_rows,
    number_of,
    pair_of,
    two_columns,
)


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
    points: tuple[Real, Real, NDArray[np.int64]] | None = None  # x, y and class number of the rows

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
        that of the second is drawn. ``target`` are the classes of the rows, or the column of them. ``fixed`` has the
        values of other columns, which are missing otherwise. The grid has ``steps`` values of each feature.
        """
        check_model(model, classes=2)
        feature_names = two_columns(model, features)
        fixed_values = dict(fixed or {})
        for feature in fixed_values:
            if feature in feature_names or feature not in column_of(model, feature).inputs:
                raise errors.bad_setting("fixed", feature, "a column other than the two drawn")
        if difference is not None:
            difference = pair_of("difference", difference, "two of the model's classes")
            for label in difference:
                number_of(model, label)
        errors.check_whole("steps", steps, 2, 2_000)
        # x, y and class number of each row.
        points = None if data is None else ClassedRows(model, data, target, reading).points(feature_names)
        # The values of the rows, over whose range the grid goes.
        row_values: tuple[Real | None, Real | None] = (None, None) if points is None else points[:2]
        xx0, xx1 = (np.linspace(*axis_range(model, feature_names[k], row_values[k]), steps) for k in (0, 1))
        grid_x, grid_y = np.meshgrid(xx0, xx1)  # the x and the y of each point of the grid
        # Of the grid's points as rows: values by column.
        columns: dict[str, Any] = {feature_names[0]: grid_x.ravel(), feature_names[1]: grid_y.ravel()}
        columns |= {feature: [value] * grid_x.size for feature, value in fixed_values.items()}
        posterior = model.posterior(complete_rows(model, columns)).reshape(steps, steps, -1)
        n_features = len(model.schema.features.inputs)
        return cls(
            feature_names, model.classes, xx0, xx1, posterior, difference, fixed_values, n_features, points
        ).plot(ax)

    @property
    def response(self) -> Real:
        """What is drawn (len(xx1) × len(xx0)): the number of the predicted class, or the difference of two posteriors."""
        if self.difference is None:
            return np.asarray(self.posterior.argmax(axis=2))
        first, second = (self.classes.index(label) for label in self.difference)  # class numbers
        return np.asarray(self.posterior[:, :, first] - self.posterior[:, :, second])

    def _draw(self, ax: Any) -> None:
        """Draws the regions or the difference, and the rows. ``self.posterior`` is len(xx1) × len(xx0) × classes."""
        ax = self._begin(ax, width=6.8 if self.difference is None else 7.4, height=4.4)
        class_numbers = range(len(self.classes))
        # Classes × RGB, as below.
        class_colours = import_matplotlib().colors.to_rgba_array(
            [colour(class_number) for class_number in class_numbers]
        )[:, :3]
        subject = "Most probable class"
        # Lighter than the points of a class, so that these stand out from its region.
        region_colours = 1.0 - 0.5 * (1.0 - class_colours)
        if self.difference is None:  # each class's region in its colour, the paler the less sure; the borders in black
            winner = self.posterior.argmax(axis=2)  # the most probable class of each point of the grid, by number
            # From 0, where all classes are equally probable, to 1.
            confidence = (self.posterior.max(axis=2) - 1 / len(self.classes)) / (1 - 1 / len(self.classes))
            self._image(ax, 1.0 - (0.25 + 0.7 * confidence)[:, :, None] * (1.0 - region_colours[winner]))
            for class_number in class_numbers:
                highest_of_others = np.delete(self.posterior, class_number, axis=2).max(axis=2)
                self._border(ax, self.posterior[:, :, class_number] - highest_of_others)
        else:
            self._draw_difference(ax, region_colours)
            subject = f"How far {short_name(self.difference[0])} is ahead of {short_name(self.difference[1])}"
        self._draw_rows(ax)
        ax.set(xlim=self.xx0[[0, -1]], ylim=self.xx1[[0, -1]])
        ax.set(xlabel=short_name(self.features[0], 40), ylabel=short_name(self.features[1], 40))
        fixed_values = ", ".join(
            f"{short_name(feature)} = {short_name(value)}" for feature, value in self.fixed.items()
        )
        missing_note = "" if self.n_features == 2 + len(self.fixed) else "other features missing"
        ax.set_title("; ".join(filter(None, [subject, fixed_values, missing_note])))

    def _image(self, ax: Any, colours: Any, **style: Any) -> Any:
        """Draws colours or numbers (len(xx1) × len(xx0)) as an image on the grid, whose values are ``self.xx0`` across
        and ``self.xx1`` upwards. Returns matplotlib's image. ``style``: options of ``imshow``.
        """
        extent = (self.xx0[0], self.xx0[-1], self.xx1[0], self.xx1[-1])
        return ax.imshow(colours, extent=extent, origin="lower", aspect="auto", zorder=0, **style)

    def _border(self, ax: Any, lead: Real) -> None:
        """Draws the line on which ``lead``, how far a class is ahead (len(xx1) × len(xx0)), is zero."""
        if lead.min() < 0 < lead.max():
            ax.contour(self.xx0, self.xx1, lead, levels=[0.0], colors=[text_colour()], linewidths=1.0)

    def _draw_difference(self, ax: Any, region_colours: Real) -> None:
        """Draws how far the first class is ahead of the second, with a colour bar. ``region_colours``: classes × RGB."""
        assert self.difference is not None
        first_number, second_number = (self.classes.index(label) for label in self.difference)
        first_name, second_name = (short_name(label) for label in self.difference)
        colour_map = import_matplotlib().colors.LinearSegmentedColormap.from_list(
            "ahead", [region_colours[second_number], (1.0, 1.0, 1.0), region_colours[first_number]], N=41
        )
        image = self._image(ax, self.response, cmap=colour_map, vmin=-1.0, vmax=1.0)
        colour_bar = self.figure_.colorbar(image, ax=ax, fraction=0.06, pad=0.02)
        colour_bar.set_label(f"P({first_name} | row) − P({second_name} | row)")
        colour_bar.outline.set_visible(False)
        self._border(ax, self.response)

    def _draw_rows(self, ax: Any) -> None:
        """Draws the rows as points in the colours of their classes, and a legend. ``self.points`` has their x, y and
        class numbers; None without rows, so that only the legend is drawn, if the picture has regions.
        """
        for class_number, label in enumerate(short_names(self.classes)):
            style = {"color": colour(class_number), "edgecolors": "white", "linewidths": 0.6, "label": label}
            if self.points is not None:
                x, y, class_of_point = self.points
                has_class = class_of_point == class_number
                ax.scatter(x[has_class], y[has_class], s=24, marker=mark(class_number), zorder=3, **style)
            elif self.difference is None:
                ax.scatter([], [], s=40, marker="s", **style)
        if self.points is not None or self.difference is None:
            legend_beside(ax)
