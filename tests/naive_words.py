"""Words again, slow and obvious: dictionaries of cells, regular expressions and fractions."""

import math
import re
from fractions import Fraction

import numpy as np

PARTS = 10**18  # of a row, and of a token
MOST = 2**63  # all texts together, and all occurrences, stay below this
PATTERNS = {"word": r"(?u)\b\w\w+\b", "word1": r"(?u)\b\w+\b"}


def tokens(text, pattern="word", lowercase=True, shortest=1, longest=1, stop_words=()):
    """The tokens of one text, or of a list of given words: words, then pairs of them, and so on."""
    if isinstance(text, str):
        text = re.findall(PATTERNS[pattern], text.lower() if lowercase else text)
    found = [word for word in text if word not in stop_words]
    grams = [[" ".join(found[i : i + n]) for i in range(len(found) - n + 1)] for n in range(shortest, longest + 1)]
    return [gram for same_length in grams for gram in same_length]


# Numbers --------------------------------------------------------------------------------------------------------------


def in_units(number, digits):
    """Whether it is a whole number of 10**-digits."""
    return 10**digits % number.denominator == 0


def down(number, digits):
    """Rounded down to a whole number of 10**-digits."""
    return Fraction(math.floor(number * 10**digits), 10**digits)


def in_parts(x):
    """A double as a whole number of parts: whole numbers are what they are, and others are the decimal number that fifteen
    digits write, if the double is its nearest; or else they are rounded."""
    if x == math.floor(x):
        return Fraction(x)
    written = Fraction(format(x, ".15g"))
    if float(written) == x and in_units(written, 18):
        return written
    return down(Fraction(x) + Fraction(1, 2 * PARTS), 18)


def weights_of(weights, n):
    """What each row weighs: whole numbers weigh what they are, and doubles are rounded to parts."""
    if weights is None:
        return [Fraction(1)] * n
    return [Fraction(w) if isinstance(w, int) else in_parts(w) for w in weights]


def from_limbs(limbs, digits):
    """Numbers of 64-bit limbs on the last axis, two's complement, least first, in units of 10**-digits; in a flat list."""
    rows = np.asarray(limbs).reshape(-1, limbs.shape[-1])
    numbers = [int.from_bytes(row.astype("<i8").tobytes(), "little", signed=True) for row in rows]
    return [Fraction(number, 10**digits) for number in numbers]


# Texts ----------------------------------------------------------------------------------------------------------------


def amounts(words, log, length):
    """How much each word of a text counts."""
    times = {word: words.count(word) for word in dict.fromkeys(words)}
    if not (log or length):
        return {word: Fraction(n) for word, n in times.items()}
    damped = {word: math.log1p(n) if log else float(n) for word, n in times.items()}
    squares = 0.0
    for x in sorted(damped.values()):
        squares += x * x
    size = math.sqrt(squares) if length else 1.0
    return {word: in_parts(x / size) for word, x in damped.items()}


class NotThere(Exception):
    pass


class TooMany(Exception):
    pass


class Words:
    """(word, class) → occurrences and documents; class → texts. A cell has both or is not there."""

    def __init__(self, n_classes):
        self.n_classes = n_classes
        self.cells, self.texts = {}, [Fraction(0)] * n_classes

    def copied(self):
        copy = Words(self.n_classes)
        copy.cells, copy.texts = dict(self.cells), list(self.texts)
        return copy

    def add(self, word, c, occurrences, documents):
        if occurrences:
            old = self.cells.get((word, c), (0, 0))
            self.cells[word, c] = old[0] + occurrences, old[1] + documents

    def count(self, texts, classes, weights=None, log=False, length=False):
        """Adds texts, given as lists of tokens; None is missing."""
        for words, c, weight in zip(texts, classes, weights_of(weights, len(texts)), strict=True):
            if c < 0 or words is None:
                continue
            self.texts[c] += weight
            for word, x in amounts(words, log, length).items():
                self.add(word, c, weight * x, weight)

    def plus(self, other):
        result = self.copied()
        for (word, c), cell in other.cells.items():
            result.add(word, c, *cell)
        result.texts = [a + b for a, b in zip(self.texts, other.texts, strict=True)]
        return result

    def minus(self, other, plain=False):
        """What is left; ``plain``: no token counts less than once."""
        result = self.copied()
        result.texts = [a - b for a, b in zip(self.texts, other.texts, strict=True)]
        for key, cell in other.cells.items():
            result.cells[key] = tuple(a - b for a, b in zip(self.cells.get(key, (0, 0)), cell, strict=True))
        if min(result.texts, default=0) < 0:
            raise NotThere
        for (_, c), (occurrences, documents) in result.cells.items():
            fewer = min(occurrences, documents) < 0 or (plain and occurrences < documents)
            if fewer or (occurrences == 0) != (documents == 0) or documents > result.texts[c]:
                raise NotThere
        result.cells = {key: cell for key, cell in result.cells.items() if cell[0] > 0}
        return result

    def times(self, factor):
        """Every text so often, rounded down; and whether nothing was lost."""
        by = in_parts(factor)
        for total in (sum(self.texts), sum(self.total(0))):
            if math.floor(math.ceil(total) * by) >= MOST:
                raise TooMany
        result = Words(self.n_classes)
        result.texts = [down(n * by, 18) for n in self.texts]
        for key, (occurrences, documents) in self.cells.items():
            cell = down(occurrences * by, 36), down(documents * by, 18)
            if min(cell) > 0:
                result.cells[key] = cell
        exact = by > 0 and result.texts == [n * by for n in self.texts]
        exact = exact and result.cells == {key: tuple(n * by for n in cell) for key, cell in self.cells.items()}
        return result, exact or factor == 0

    def same(self, other):
        return (self.cells, self.texts) == (other.cells, other.texts)

    def take(self, index):
        result = Words(len(index))
        result.texts = [self.texts[c] for c in index]
        for i, old in enumerate(index):
            result.cells.update({(word, i): cell for (word, c), cell in self.cells.items() if c == old})
        return result

    def place(self, index, n_classes):
        result = Words(n_classes)
        for c, new in enumerate(index):
            result.texts[new] += self.texts[c]
        for (word, c), cell in self.cells.items():
            result.add(word, index[c], *cell)
        return result

    def total(self, which):
        """Per class, the sum of occurrences (0) or documents (1) of all words."""
        found = [Fraction(0)] * self.n_classes
        for (_, c), cell in self.cells.items():
            found[c] += cell[which]
        return found

    def numbers(self):
        """All there are."""
        return [*self.texts, *(number for cell in self.cells.values() for number in cell)]

    def words(self):
        """In the order of their UTF-8."""
        return sorted({word for word, _ in self.cells}, key=lambda word: word.encode("utf-8", "surrogatepass"))
