"""Belief networks: tables of each node given its parents, counted; exact answers to any question."""

from banbury.model.networks.network import BeliefNetwork, has_tree

__all__ = ["BeliefNetwork", "has_tree"]
