"""Belief networks: tables of each node given its parents, counted; the tree of TAN; exact answers to any question."""

from banbury.naive_bayes import checked_choice
from banbury.networks.network import BeliefNetwork, NetworkClassifier, check_level, checked_bins
from banbury.networks.pairs import Pairs

__all__ = ["BeliefNetwork", "NetworkClassifier", "Pairs", "check_level", "checked_bins", "checked_choice"]
