"""Words again, slow and obvious: dictionaries of cells, regular expressions and fractions."""

import math
import re
from fractions import Fraction

from naive_core import weights_of

IMPOSSIBLE = Fraction(10) ** -9
ROUNDING = Fraction(10) ** -12
PATTERNS = {"word": r"(?u)\b\w\w+\b", "word1": r"(?u)\b\w+\b"}


def tokens(text, pattern="word", lowercase=True, shortest=1, longest=1, stop_words=()):
    """The tokens of one text, or of a list of given words: words, then pairs of them, and so on."""
    if isinstance(text, str):
        text = re.findall(PATTERNS[pattern], text.lower() if lowercase else text)
    found = [word for word in text if word not in stop_words]
    grams = [[" ".join(found[i : i + n]) for i in range(len(found) - n + 1)] for n in range(shortest, longest + 1)]
    return [gram for same_length in grams for gram in same_length]


def amounts(words, log, length):
    """How much each word of a text counts."""
    times = {word: words.count(word) for word in dict.fromkeys(words)}
    damped = {word: math.log1p(n) if log else float(n) for word, n in times.items()}
    size = math.sqrt(sum(d * d for d in sorted(damped.values()))) if length and words else 1.0
    return {word: (times[word], damped[word] / size) for word in times}


class Sum:
    """How many, and the sum of their weights."""

    def __init__(self, rows=0, weight=Fraction(0)):
        self.rows, self.weight = rows, weight

    def __add__(self, other):
        return Sum(self.rows + other.rows, self.weight + other.weight)

    def minus(self, other, real):
        rows, weight = self.rows - other.rows, self.weight - other.weight
        if not real:
            return Sum(rows, Fraction(rows))
        nothing = abs(weight) <= IMPOSSIBLE * (self.weight + other.weight)
        if nothing and (rows <= 0 or weight < 0):
            weight = Fraction(0)
        return Sum(max(rows, 0 if nothing else 1), weight)

    def times(self, factor, whole):
        return Sum(self.rows * int(factor) if whole else self.rows, self.weight * Fraction(factor))

    def below_zero(self, real):
        return self.weight < 0 if real else self.rows < 0

    def same(self, other, real):
        if not real:
            return self.rows == other.rows
        gap = abs(self.weight - other.weight)
        return (self.rows > 0) == (other.rows > 0) and gap <= ROUNDING * max(self.weight, other.weight)


class NotThere(Exception):
    pass


class Words:
    """(word, class) → occurrences and documents; class → texts."""

    def __init__(self, n_classes):
        self.n_classes, self.real = n_classes, False
        self.cells, self.texts = {}, [Sum() for _ in range(n_classes)]

    def copied(self):
        copy = Words(self.n_classes)
        copy.real, copy.cells, copy.texts = self.real, dict(self.cells), list(self.texts)
        return copy

    def add(self, word, c, occurrences, documents):
        old = self.cells.get((word, c), (Sum(), Sum()))
        self.cells[word, c] = old[0] + occurrences, old[1] + documents

    def count(self, texts, classes, weights=None, whole=True, log=False, length=False):
        """Adds texts, given as lists of tokens; None is missing."""
        real = not whole or log or length
        number, weight = weights_of(weights, not real, len(texts))
        self.real = self.real or real
        for i, (words, c) in enumerate(zip(texts, classes, strict=True)):
            if c < 0 or words is None:
                continue
            self.texts[c] += Sum(number[i], weight[i])
            for word, (n, x) in amounts(words, log, length).items():
                share = Fraction(float(weight[i]) * x) if real else weight[i] * n
                self.add(word, c, Sum(number[i] * n, share), Sum(number[i], weight[i]))

    def plus(self, other):
        result = self.copied()
        result.real = self.real or other.real
        for (word, c), (occurrences, documents) in other.cells.items():
            result.add(word, c, occurrences, documents)
        result.texts = [a + b for a, b in zip(self.texts, other.texts, strict=True)]
        return result

    def minus(self, other):
        result = self.copied()
        result.real = real = self.real or other.real
        result.texts = [a.minus(b, real) for a, b in zip(self.texts, other.texts, strict=True)]
        for key, (occurrences, documents) in other.cells.items():
            old = self.cells.get(key, (Sum(), Sum()))
            result.cells[key] = old[0].minus(occurrences, real), old[1].minus(documents, real)
        if any(total.below_zero(real) for total in result.texts):
            raise NotThere
        for (_, c), (occurrences, documents) in result.cells.items():
            if occurrences.below_zero(real) or documents.below_zero(real):
                raise NotThere
            if not real and not (documents.rows <= occurrences.rows and documents.rows <= result.texts[c].rows):
                raise NotThere
            if documents.rows == 0 and occurrences.rows > 0 and occurrences.weight > IMPOSSIBLE:
                raise NotThere
        result.cells = {key: cell for key, cell in result.cells.items() if cell[1].rows > 0}
        return result

    def times(self, factor):
        result = self.copied()
        if factor == 0:
            result.cells, result.texts = {}, [Sum() for _ in self.texts]
            return result
        largest = max([1, sum(total.rows for total in self.texts), sum(cell[0].rows for cell in self.cells.values())])
        whole = factor == int(factor) and factor * largest < 2**53
        result.real = self.real or not whole
        result.cells = {key: tuple(s.times(factor, whole) for s in cell) for key, cell in self.cells.items()}
        result.texts = [total.times(factor, whole) for total in self.texts]
        return result

    def same(self, other):
        real = self.real or other.real
        if self.cells.keys() != other.cells.keys():
            return False
        pairs = [(a, b) for key, cell in self.cells.items() for a, b in zip(cell, other.cells[key], strict=True)]
        pairs += zip(self.texts, other.texts, strict=True)
        return all(a.same(b, real) for a, b in pairs)

    def take(self, index):
        result = Words(len(index))
        result.real = self.real
        result.texts = [self.texts[c] for c in index]
        for i, old in enumerate(index):
            result.cells.update({(word, i): cell for (word, c), cell in self.cells.items() if c == old})
        return result

    def place(self, index, n_classes):
        result = Words(n_classes)
        result.real = self.real
        for c, new in enumerate(index):
            result.texts[new] = result.texts[new] + self.texts[c]
        for (word, c), cell in self.cells.items():
            known = result.cells.get((word, index[c]))
            result.cells[word, index[c]] = cell if known is None else [a + b for a, b in zip(known, cell, strict=True)]
        return result

    def total(self, which):
        """Per class, the sum of occurrences (0) or documents (1) of all words."""
        found = [Sum() for _ in range(self.n_classes)]
        for (_, c), cell in self.cells.items():
            found[c] += cell[which]
        return found

    def words(self):
        """In the order of their UTF-8."""
        return sorted({word for word, _ in self.cells}, key=lambda word: word.encode("utf-8", "surrogatepass"))
