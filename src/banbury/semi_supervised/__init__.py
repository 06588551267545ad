"""Semi-supervised learning: expectation maximisation, for rows of which some, or all, have no label."""

from banbury.semi_supervised.expectation_maximisation import (
    HOWS,
    TRIAL,
    Climb,
    Task,
    climb,
    labelled_starts,
    narrowed,
    onward,
    seeded_start,
    with_starts,
)
from banbury.semi_supervised.observed import Observed

__all__ = [
    "HOWS",
    "TRIAL",
    "Climb",
    "Observed",
    "Task",
    "climb",
    "labelled_starts",
    "narrowed",
    "onward",
    "seeded_start",
    "with_starts",
]
