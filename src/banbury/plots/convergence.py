"""ConvergenceDisplay: how expectation maximisation climbs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from banbury import errors
from banbury.plots.display import Display, colour, library, line, mark

NAMES = ("log-likelihood", "log-likelihood + log prior")


class ConvergenceDisplay(Display):
    """What each iteration of EM has gained since the first: log-likelihood, and what EM maximises, with the log prior.

    >>> import banbury as bb
    >>> from sklearn.datasets import load_iris
    >>> mixture = bb.Mixture(3).fit(load_iris().data)
    >>> shown = bb.plots.ConvergenceDisplay.from_estimator(mixture)
    >>> len(shown.log_likelihoods) == len(shown.objectives) == mixture.n_iter_
    True
    """

    def __init__(self, log_likelihoods: Any, objectives: Any) -> None:
        self.log_likelihoods = np.asarray(log_likelihoods, dtype=np.float64)
        self.objectives = np.asarray(objectives, dtype=np.float64)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draws what a fitted ``bb.SemiSupervisedClassifier`` or ``bb.Mixture`` went through."""
        if not hasattr(estimator, "objectives_"):
            wanted = "a fitted bb.SemiSupervisedClassifier or bb.Mixture"
            raise errors.bad_setting("the estimator", type(estimator).__name__, wanted)
        return cls(estimator.log_likelihoods_, estimator.objectives_).plot(ax)

    def _draw(self, ax: Any) -> None:
        ax = self._begin(ax, 6.4, 4.0)
        iterations = 1 + np.arange(len(self.objectives))
        curves = [self.log_likelihoods, self.objectives]
        if np.allclose(self.log_likelihoods, self.objectives, rtol=1e-12):
            curves = curves[:1]
        for c, each in enumerate(curves):
            ax.plot(iterations, each - each[0], color=colour(c), linestyle=line(c), marker=mark(c), label=NAMES[c])
        ax.xaxis.set_major_locator(library().ticker.MaxNLocator(integer=True))
        ax.yaxis.set_major_formatter(library().ticker.FuncFormatter(lambda gain, _: f"{gain:,.6g}"))
        ax.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        ax.set_axisbelow(True)
        ax.set_xlabel("iteration")
        ax.set_ylabel("gained since the first, in nats")
        ax.legend(loc="lower right")
        self._title(f"Expectation maximisation: {len(iterations):,} iterations")
