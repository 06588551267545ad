"""Tally: the sums of a data set; and counting, which makes one of a table."""

from banbury.distributions.family import named
from banbury.distributions.keys import dense_numbers
from banbury.errors import many
from banbury.table import Labels, aligned, numbered, refuse_continuous
from banbury.tally.counting import count, count_rows, counted, parts
from banbury.tally.growing import Growing, Part, Touched, together
from banbury.tally.tally import Label, Tally

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
    "together",
]
