"""Tally: the sums of a data set; and counting, which makes one of a table."""

from banbury.tally.counting import (
    Labels,
    aligned,
    count,
    count_rows,
    dense_numbers,
    named,
    numbered,
    parts,
    refuse_continuous,
)
from banbury.tally.growing import Growing, Part, Touched, together
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
    "dense_numbers",
    "many",
    "named",
    "numbered",
    "parts",
    "refuse_continuous",
    "together",
]
