"""LabelsDisplay: how good each label is beside how many rows have it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.labels import LabelEvaluation, LabelModel
from banbury.plots.display import COLOURS, FAINT, LINES, SUM, Display, check_type, legend_beside, logarithmic, names
from banbury.quality import evaluate

SMALLEST = 26.0  # the area of a mark, and what each further label adds to it, in square points
MORE = 22.0
WIDTH = 8.6  # inches
HEIGHT = 4.6
LETTER = 0.0095  # of a name: shares of the axes' width and height
LINE = 0.036
BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
# Of a name beside its mark, and where its box begins, in widths and heights of the box.
PLACES = {(1, 0): (0.0, -0.5), (-1, 0): (-1.0, -0.5), (0, 1): (-0.5, 0.0), (0, -1): (-0.5, -1.0)}
NAMED = 60  # labels at most
LONGEST_NAME = 18


class LabelsDisplay(Display):
    """The F1 of every label against its number of rows. ``f1``, ``rows`` and ``labels`` have the numbers, without
    labels that have no rows.

    >>> import banbury as bb
    >>> texts = ["wheat and corn", "crude oil", "corn oil", "a quiet day"] * 5
    >>> topics = [["grain"], ["fuel"], ["fuel", "grain"], []] * 5
    >>> found = bb.cross_validate(texts, topics, folds=4)
    >>> shown = bb.plots.LabelsDisplay.from_evaluation(found)
    >>> shown.labels, shown.rows.tolist(), shown.f1.tolist()
    (('fuel', 'grain'), [10.0, 10.0], [1.0, 1.0])
    """

    def __init__(self, evaluation: LabelEvaluation) -> None:
        expected = "an evaluation of labels, from bb.evaluate or bb.cross_validate"
        check_type("the evaluation", evaluation, LabelEvaluation, expected)
        per = evaluation.per_label
        there = np.flatnonzero(per.rows > 0)
        if not len(there):
            raise errors.empty_data(None, "no row has a label, so there is no F1 to draw")
        self.evaluation, self.labels = evaluation, tuple(evaluation.labels[k] for k in there.tolist())
        self.f1, self.rows = per.f1[there], per.rows[there]

    @classmethod
    def from_evaluation(cls, evaluation: LabelEvaluation, *, ax: Any = None) -> Self:
        """Draws a result of ``bb.evaluate`` or ``bb.cross_validate`` for several labels per row."""
        return cls(evaluation).plot(ax)

    @classmethod
    def from_model(cls, model: LabelModel, data: Any, target: Any = None, *, ax: Any = None, **reading: Any) -> Self:
        """Draws the predictions of a model for rows that it has not learned from."""
        model = getattr(model, "model_", model)
        check_type("the model", model, LabelModel, "a LabelModel (of a bb.MultiLabelClassifier: its model_)")
        evaluation: Any = evaluate(model, data, target, **reading)
        return cls.from_evaluation(evaluation, ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, WIDTH, HEIGHT)
        evaluation = self.evaluation
        low = float(self.rows.min()) / 1.5
        high = float(self.rows.max()) * 2.2
        ax.set(xscale="log", xlim=(low, high), ylim=(-0.06, 1.08))
        for called, level, style in (
            ("micro", evaluation.micro_f1, LINES[0]),
            ("macro", evaluation.macro_f1, LINES[1]),
        ):
            ax.axhline(level, color=FAINT, linestyle=style, linewidth=1.2, zorder=1, label=f"{called} F1 {level:.3f}")
        # Where labels have as many rows and the same F1, one larger mark stands for all of them.
        label_points = np.stack([self.rows, self.f1], axis=1)
        points, owner, n_labels = np.unique(label_points, axis=0, return_inverse=True, return_counts=True)
        ax.scatter(
            *points.T, SMALLEST + MORE * (n_labels - 1), color=COLOURS[0], edgecolors="white", linewidths=0.6, zorder=3
        )
        self._name(ax, np.asarray(owner).ravel(), n_labels, low, high)
        logarithmic(ax, (1.0, 3.0), ",.4g")
        ax.set(xlabel="rows that have the label", ylabel="F1 of the label")
        legend_beside(ax)
        larger = "; a larger mark is several labels" if (n_labels > 1).any() else ""
        ax.set_title(f"{errors.many(len(self.labels), 'label')} on {errors.many(len(evaluation.truth), 'row')}{larger}")

    def _name(self, ax: Any, owner: Any, n_labels: Any, low: float, high: float) -> None:
        """The names of labels, those of most rows first, wherever there is room."""
        x = np.log(self.rows / low) / np.log(high / low)
        y = (self.f1 + 0.06) / 1.14
        marks = [(a - 0.008, b - 0.013, a + 0.008, b + 0.013) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        taken: list[tuple[float, ...]] = []
        called = names([str(label) for label in self.labels], LONGEST_NAME)
        n_named = 0
        shared = set[int]()
        for k in np.lexsort((np.arange(len(x)), -self.rows)).tolist():
            if owner[k] in shared or n_named == NAMED:
                continue
            if n_labels[owner[k]] > 1:
                called[k] = f"{n_labels[owner[k]]:,} labels"
                shared.add(int(owner[k]))
            width = LETTER * len(called[k])
            out = float(n_labels[owner[k]] - 1) ** 0.5
            obstacles = [*taken, *(mark for j, mark in enumerate(marks) if owner[j] != owner[k])]
            for (across, up), (left, bottom) in PLACES.items():
                start = x[k] + across * (0.014 + 0.0015 * out) + left * width
                floor = y[k] + up * (0.02 + 0.004 * out) + bottom * LINE
                box = start, floor, start + width, floor + LINE
                if min(box) < 0.0 or max(box) > 1.0 or any(_overlap(box, other) for other in obstacles):
                    continue
                at = across * (6.0 + 1.3 * out), up * (5.0 + 1.3 * out)
                style: dict[str, Any] = {"fontsize": 7.5, "color": SUM, "zorder": 2, "bbox": BEHIND}
                style |= {"ha": ("right", "center", "left")[across + 1], "va": ("top", "center", "bottom")[up + 1]}
                ax.annotate(called[k], (self.rows[k], self.f1[k]), at, textcoords="offset points", **style)
                taken.append(box)
                n_named += 1
                break


def _overlap(a: Any, b: Any) -> bool:
    return bool(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])
