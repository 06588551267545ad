"""Tally: the sums of a data set; and counting, which makes one of a table."""

from banbury.table import Labels, aligned, dense_numbers, numbered, refuse_continuous
from banbury.tally.counting import count, count_rows, counted, named, parts
from banbury.tally.growing import Growing, Part, Touched
from banbury.tally.tally import Label, Tally, many

__all__ = [
    "Growing",
    "Label",
    "Labels",
    "Part",
    "Tally",
    "Touched",
    "aligned",
    "count",
    "count_rows",
    "counted",
    "dense_numbers",
    "many",
    "named",
    "numbered",
    "parts",
    "refuse_continuous",
]
