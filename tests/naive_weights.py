"""Weights of words and the scores of texts again, slow and obvious: dictionaries, loops and math.log."""

import math
from collections import Counter

import numpy as np

import naive_core


class Weights:
    """A row of numbers per class for each word id."""

    def __init__(self, n_classes, default):
        self.n_classes, self.default = n_classes, default.tolist()
        self.table = {}

    def set(self, ids, common, scale, starts, classes, values):
        for i, word in enumerate(ids.tolist()):
            row = [common[i] + default for default in self.default]
            for j in range(starts[i], starts[i + 1]):
                row[classes[j]] = values[j]
            self.table[word] = (row, 1.0 if scale is None else scale[i])

    def set_counted(self, pairs, ids, once, others, values):
        """From the pairs of these words as ``Words.pairs`` gives them; the words that have a count without a value."""
        starts, classes, occurrences, documents = (each.tolist() for each in pairs)
        counts, left = documents if once else occurrences, []
        for i, word in enumerate(ids.tolist()):
            own = {classes[j]: counts[j] for j in range(starts[i], starts[i + 1])}
            every = sum(own.values())
            n = [every - own.get(c, 0) if others else own.get(c, 0) for c in range(self.n_classes)]
            if every in range(len(values)) if others else all(count in range(len(values)) for count in n):
                row = [values[int(count)] for count in n]
                nothing = [default * (c not in own) for c, default in enumerate(self.default)]
                self.table[word] = ([x + y for x, y in zip(row, nothing, strict=True)], 1.0)
            else:
                left.append(word)
        return left

    def follow(self, pairs, ids, once, others, values):
        """The same to words that may have a row; those without a pair have none."""
        starts = pairs[0]
        left = self.set_counted(pairs, ids, once, others, values)
        self.skip(ids[starts[1:] == starts[:-1]])
        return left

    def skip(self, ids):
        for word in ids.tolist():
            self.table.pop(word, None)

    def copy(self):
        copy = Weights(self.n_classes, np.array(self.default))
        copy.table = dict(self.table)
        return copy

    def rows(self, ids):
        nothing = [0.0] * self.n_classes, 0.0
        found = [self.table.get(word, nothing) for word in ids.tolist()]
        rows = np.array([row for row, _ in found]).reshape(len(found), self.n_classes)
        return np.array([word in self.table for word in ids.tolist()], bool), rows, np.array([s for _, s in found])


def times(tokens, log, length, once):
    """How often each distinct token of a text counts."""
    counts = Counter(tokens)
    if once:
        return dict.fromkeys(counts, 1.0)
    damped = {token: math.log1p(n) if log else float(n) for token, n in counts.items()}
    norm = math.sqrt(math.fsum(x * x for x in damped.values())) if length else 1.0
    return {token: x / norm for token, x in damped.items()}


def log_likelihood(tokens, ids, weights, base, constant, log, length, once, polya):
    """Of a text's tokens (None: missing) per class; ``ids`` is a dictionary from words to ids."""
    if tokens is None:
        return [0.0] * len(constant)
    known = [token for token in tokens if ids.get(token) in weights.table]
    totals = constant.tolist()
    if polya is not None:
        counts = Counter(set(known) if once else known)
        for c in range(len(totals)):
            for token, n in counts.items():
                for j in range(n):
                    urn = weights.table[ids[token]][0][c] + j
                    totals[c] += math.log(urn) if urn > 0 else -math.inf
            totals[c] -= math.fsum(math.log(polya[c] + t) for t in range(counts.total()))
        return totals
    counted = times(tokens, log, length, once)
    for token in dict.fromkeys(known):
        row, scale = weights.table[ids[token]]
        x = counted[token] * scale
        if x > 0:
            for c in range(len(totals)):
                totals[c] += x * (row[c] + (0.0 if base is None else base[c]))
    return totals


def score(texts, ids, weights, log_prior, rest, want):
    """Of texts given by their tokens; ``rest`` are the last arguments of ``log_likelihood``."""
    each = np.array([log_likelihood(tokens, ids, weights, *rest) for tokens in texts])
    return naive_core.finish(each.reshape(len(texts), 1, len(log_prior)), log_prior, want)
