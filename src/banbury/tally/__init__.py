"""Tally: the sums of a data set; and counting, which makes one of a table."""

from banbury.tally.counting import aligned, count, named
from banbury.tally.tally import Label, Tally

__all__ = ["Label", "Tally", "aligned", "count", "named"]
