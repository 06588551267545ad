"""What is found, as values that print readably: information about the class, pairs, a diagnosis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from banbury.notebooks import NotebookTable, Tabular, columns_of
from banbury.tally.tally import Label


@dataclass(frozen=True, repr=False, eq=False)
class Information(Mapping[str, float]):
    """I(feature; class) of every feature: a mapping from feature to bits, highest first.

    ``words`` has the most informative words of each text column with their own figures. ``entropy`` is that of the
    class, the upper limit.
    """

    bits: Mapping[str, float]
    words: Mapping[str, Mapping[str, float]]
    entropy: float

    def __getitem__(self, feature: str) -> float:
        return self.bits[feature]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bits)

    def __len__(self) -> int:
        return len(self.bits)

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures for JSON."""
        words = {feature: dict(bits_of_words) for feature, bits_of_words in self.words.items()}
        return {"bits": dict(self.bits), "words": words, "entropy": self.entropy}

    def __str__(self) -> str:
        lines = [f"Information about the class, in bits (the class has {self.entropy:.3f}):"]
        rows = [(name, f"{bits:.3f}", first_words(self.words.get(name, {}))) for name, bits in self.bits.items()]
        return "\n".join(lines + table(rows[:40], 1) + more(len(rows) - 40, "feature"))

    __repr__ = __str__


@dataclass(frozen=True)
class Pair:
    """Two columns or words that depend on each other given the class.

    ``bits`` is I(first; second | class) minus what chance alone would give. ``share`` is its share of the maximum, the
    smaller of their entropies given the class: 1 if one column determines the other. A pair is ``duplicated`` if the
    share is at least 0.95, and not only within a class. ``p`` is the p-value of the likelihood-ratio test, and ``rows``
    the weight of the rows that have both values.
    """

    first: str
    second: str
    bits: float
    share: float
    p: float
    rows: float
    duplicated: bool


@dataclass(frozen=True)
class Telling:
    """A column and its information about the class: bits minus what chance alone would give, and the p-value of the
    test.

    For a text, these are the figures of its most informative word, with p corrected for the number of words; ``words``
    lists the best. The columns of a matrix of occurrences are treated as words.
    """

    feature: str
    bits: float
    p: float
    words: Mapping[str, float]


@dataclass(frozen=True)
class Uninformative:
    """A column without detectable information about the class, and the reason; ``p`` if it was tested."""

    feature: str
    why: str
    p: float | None = None


@dataclass(frozen=True, repr=False)
class Diagnosis(Tabular):
    """What limits naive Bayes on a table: pairs of columns that depend on each other given the class, and uninformative
    columns.

    ``pairs`` are sorted from the most dependent; ``telling`` has all columns, the most informative first;
    ``uninformative`` those without information. ``notes`` say what was ignored. The information of a block has the name
    of the block, while its columns occur in pairs one by one.
    """

    n_rows: float
    classes: tuple[Label, ...]
    entropy: float  # of the class, in bits
    pairs: tuple[Pair, ...]
    telling: tuple[Telling, ...]
    uninformative: tuple[Uninformative, ...]
    n_pairs: int = 0  # compared
    notes: tuple[str, ...] = ()
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # columns that are modelled together
    n_columns: int = 0
    joined_by: Mapping[str, str] = field(default_factory=dict)  # the family that models two such columns together

    @property
    def advice(self) -> str:
        """What to do about it, in one or two sentences."""
        again = "Counting evidence twice pushes probabilities towards 0 and 1"
        bits = {t.feature: t.bits for t in self.telling}
        bits |= {column: bits[name] for name, block in self.blocks.items() for column in block}
        between = [pair for pair in self.pairs if pair.first in bits and pair.second in bits]
        for pair in between:
            if pair.duplicated:
                less, more = sorted((pair.second, pair.first), key=bits.__getitem__)
                return f"{again}: leave out {less}, which adds little to {more}."
        if between:
            first = between[0].first
            second = between[0].second
            apart = f"{first} and {second} depend on each other given the class, which naive Bayes does not see"
            return f"{apart}: weigh the evidence with bb.EvidenceClassifier(), {self._joining(first, second)}."
        if self.pairs:
            return f"{again}, and words that occur together count twice: trust the ranking of the probabilities, not their size."
        if self.n_pairs:
            return "No pair of columns depends on each other beyond chance: the independence assumption is reasonable here."
        return "There are no pairs to compare."

    def _joining(self, first: str, second: str) -> str:
        """How two columns become one feature."""
        blocks = {column: name for name, block in self.blocks.items() for column in block}
        if first in blocks and second in blocks:
            return f"or make one block of {blocks[first]} and {blocks[second]}"
        if first in blocks or second in blocks:
            block, other = (blocks[first], second) if first in blocks else (blocks[second], first)
            return f"or add {other} to the block {block} if its family allows it"
        tree = "or learn which columns depend on each other with bb.TANClassifier()"
        family = self.joined_by[first]
        if family != self.joined_by[second]:  # no family takes both together
            return tree
        return f"model the two together with features={{({first!r}, {second!r}): {family}}}, {tree}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the diagnosis for JSON."""
        telling = [{**vars(t), "words": dict(t.words)} for t in self.telling]
        return {
            "n_rows": self.n_rows,
            "classes": list(self.classes),
            "entropy": self.entropy,
            "pairs": [asdict(pair) for pair in self.pairs],
            "telling": telling,
            "uninformative": [asdict(column) for column in self.uninformative],
            "n_pairs": self.n_pairs,
            "notes": list(self.notes),
            "blocks": {name: list(columns) for name, columns in self.blocks.items()},
            "advice": self.advice,
        }

    def _frame_columns(self) -> dict[str, list[Any]]:
        """A row for each pair."""
        names = [entry.name for entry in fields(Pair)]
        return {name: [getattr(pair, name) for pair in self.pairs] for name in names}

    def _notebook_tables(self) -> list[NotebookTable]:
        pairs = NotebookTable("Pairs that depend on each other given the class, in bits", self._frame_columns())
        telling = columns_of({"column": t.feature, "bits": t.bits, "p": t.p} for t in self.telling)
        idle = columns_of({"column": column.feature, "why": column.why} for column in self.uninformative)
        tables = [pairs, NotebookTable("Information of each column about the class, in bits", telling)]
        tables.append(NotebookTable("Columns without information about the class", idle))
        return [table for table in tables if any(table.columns.values())]

    def __str__(self) -> str:
        sizes = f"{self.n_rows:,.12g} row{'s' * (self.n_rows != 1)}, {len(self.classes):,} class{'es' * (len(self.classes) != 1)}"
        n_columns = self.n_columns or len(self.telling)
        lines = [f"Diagnosis of {sizes}, {n_columns:,} column{'s' * (n_columns != 1)}"]
        if self.pairs:
            lines.append(f"Pairs that depend on each other given the class (of {self.n_pairs:,}), in bits:")
            shown = [(f"{p.first} / {p.second}", p.bits, p.share, "duplicated" * p.duplicated) for p in self.pairs]
            lines += table([(names, f"{bits:.3f}", f"{share:.0%}", tag) for names, bits, share, tag in shown], 1, 2)
        informative = [t for t in self.telling if not any(t.feature == column.feature for column in self.uninformative)]
        if informative:
            lines.append(f"Information of each column about the class, in bits (the class has {self.entropy:.3f}):")
            lines += table([(t.feature, f"{t.bits:.3f}", first_words(t.words)) for t in informative[:20]], 1)
            lines += more(len(informative) - 20, "column")
        if self.uninformative:
            lines.append("Columns without information about the class in these rows:")
            lines += table([(column.feature, column.why) for column in self.uninformative[:40]])
            lines += more(len(self.uninformative) - 40, "column")
        return "\n".join([*lines, *self.notes, self.advice])

    __repr__ = __str__


def table(rows: Sequence[tuple[str, ...]], *numbers: int) -> list[str]:
    """Formats columns side by side; those in ``numbers`` are aligned to the right."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    signs = [">" if i in numbers else "<" for i in range(len(widths))]
    cells_of_rows = (zip(row, signs, widths, strict=True) for row in rows)
    return ["  " + "  ".join(f"{cell:{sign}{width}}" for cell, sign, width in row).rstrip() for row in cells_of_rows]


def more(n: int, what: str) -> list[str]:
    return [f"  … and {n:,} more {what}{'s' * (n != 1)}"] if n > 0 else []


def first_words(words: Mapping[str, float]) -> str:
    return ", ".join(map(repr, list(words)[:6]))
