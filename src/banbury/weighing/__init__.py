"""Weighed evidence: what columns, pairs of columns and their cells are worth, learned from rows that were counted."""

from banbury.rows.sampling import MOST_ROWS
from banbury.weighing.learning import Weights
from banbury.weighing.model import FEWEST_ROWS, Weighing, learn, learn_table, weigh

__all__ = ["FEWEST_ROWS", "MOST_ROWS", "Weighing", "Weights", "learn", "learn_table", "weigh"]
