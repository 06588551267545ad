"""Weighed evidence: what columns, pairs of columns and their cells are worth, learned from rows that were counted."""

from banbury.weighing.learning import Weights
from banbury.weighing.model import FEWEST_ROWS, Weighing, learn, weigh

__all__ = ["FEWEST_ROWS", "Weighing", "Weights", "learn", "weigh"]
