"""Banbury beside its peers: speed by `python -m benchmarks`, accuracy and the rest by the modules that docs name."""
