"""Why a row is unusual: how much less likely than usual each of its values is, in decibans."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from banbury.model.explain.explanation import DECIBANS, Evidence, lines_of, strict

SHOWN = ("feature", "value", "decibans", "seen")


@dataclass(frozen=True)
class Surprise:
    """How much each value contributes to how unusual a row is, the most unusual first.

    ``decibans`` of a value are ten times log10 of P(value | the row's other values), minus the average of that over
    rows drawn from the same density: −10 means that it is ten times less likely than usual. ``log_probability`` is log
    P(row) and ``usual`` its average. If the columns are independent, the decibans add up to the difference.
    """

    log_probability: float  # log P(row)
    usual: float  # its average over drawn rows
    evidence: tuple[Evidence, ...]  # one per value, the most unusual first

    @property
    def decibans(self) -> float:
        """How much less likely than usual the whole row is, in decibans: negative if it is unusual."""
        return (self.log_probability - self.usual) * DECIBANS

    def to_dict(self) -> dict[str, Any]:
        """Returns the surprise as a dictionary for JSON; infinite numbers are strings."""
        return {
            "log_probability": strict(self.log_probability),
            "usual": strict(self.usual),
            "decibans": strict(self.decibans),
            "evidence": [
                {
                    key: value
                    for key, value in {**asdict(evidence), "decibans": strict(evidence.decibans)}.items()
                    if key in SHOWN
                }
                for evidence in self.evidence
            ],
        }

    def __str__(self) -> str:
        """Returns a line for each value with its decibans, and one for the whole row."""
        title = f"log P(row) {self.log_probability:.2f}, usually {self.usual:.2f}; each value given the others, in decibans:"
        return "\n".join([title, *lines_of([], self.evidence, self.decibans, "row")])

    __repr__ = __str__
