"""Banbury beside its peers and beside the machine: one run, the same threads, answers compared.

python -m benchmarks [name …] [--repeats 3] [--threads 2] [--small] [--json] [--record [FILE.csv]] [--page FILE.md]
"""
