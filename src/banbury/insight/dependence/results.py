"""Results that print readably: information about the class, pairs of columns, and a diagnosis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from banbury.errors import many
from banbury.notebooks import NotebookTable, Tabular, align_columns, columns_of, more_line
from banbury.tally.tally import Label


@dataclass(frozen=True, repr=False, eq=False)
class Information(Mapping[str, float]):
    """I(feature; class) of every feature: a mapping from feature to bits, highest first.

    ``words`` has the most informative words of each text column with their own figures. ``entropy`` is that of the
    class, the upper limit.
    """

    bits: Mapping[str, float]  # of each feature
    words: Mapping[str, Mapping[str, float]]  # of each text column: its best words with their bits
    entropy: float  # in bits

    def __getitem__(self, feature: str) -> float:
        """Returns the information of a feature about the class in bits."""
        return self.bits[feature]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bits)

    def __len__(self) -> int:
        return len(self.bits)

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as a dictionary for JSON."""
        words = {feature: dict(bits_of_words) for feature, bits_of_words in self.words.items()}
        return {"bits": dict(self.bits), "words": words, "entropy": self.entropy}

    def __str__(self) -> str:
        """Returns the figures as text, the 40 highest first, with the best words of each text column."""
        lines = [f"Information about the class, in bits (the class has {self.entropy:.3f}):"]
        rows = [(name, f"{bits:.3f}", list_words(self.words.get(name, {}))) for name, bits in self.bits.items()]
        return "\n".join(lines + align_columns(rows[:40], right_aligned=[1]) + more_line(len(rows) - 40, "feature"))

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
class ColumnInformation:
    """A column and its information about the class: bits minus what chance alone would give, and the p-value of the
    test.

    For a text, these are the figures of its most informative word, with p corrected for the number of words; ``words``
    lists the best. The columns of a matrix of occurrences are treated as words.
    """

    feature: str
    bits: float
    p: float
    words: Mapping[str, float]  # the best words of a text with their bits; empty for other columns


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

    ``pairs`` are sorted from the most dependent; ``columns`` has all columns, the most informative first;
    ``uninformative`` those without information. ``notes`` say what was ignored. The information of a block has the name
    of the block, while its columns occur in pairs one by one.
    """

    n_rows: float
    classes: tuple[Label, ...]
    entropy: float  # the entropy of the class, in bits
    pairs: tuple[Pair, ...]
    columns: tuple[ColumnInformation, ...]
    uninformative: tuple[Uninformative, ...]
    n_pairs: int = 0  # the number of pairs that were compared
    notes: tuple[str, ...] = ()
    blocks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # columns that are modelled together
    n_columns: int = 0
    joined_by: Mapping[str, str] = field(default_factory=dict)  # the family that models two such columns together

    @property
    def advice(self) -> str:
        """A sentence or two on how to improve the model."""
        double_counting = "Counting evidence twice pushes probabilities towards 0 and 1"
        bits = {entry.feature: entry.bits for entry in self.columns}  # about the class, also of the columns of a block
        bits |= {column: bits[name] for name, block in self.blocks.items() for column in block}
        column_pairs = [pair for pair in self.pairs if pair.first in bits and pair.second in bits]
        for pair in column_pairs:
            if pair.duplicated:
                less_informative, more_informative = sorted((pair.second, pair.first), key=bits.__getitem__)
                return f"{double_counting}: leave out {less_informative}, which adds little to {more_informative}."
        if column_pairs:
            worst = column_pairs[0]
            dependence = (
                f"{worst.first} and {worst.second} depend on each other given the class, which naive Bayes does not see"
            )
            joining_advice = self._joining_advice(worst.first, worst.second)
            return f"{dependence}: weigh the evidence with bb.EvidenceClassifier(), {joining_advice}."
        if self.pairs:
            ranking = "words that occur together count twice: trust the ranking of the probabilities, not their size"
            return f"{double_counting}, and {ranking}."
        if self.n_pairs:
            return "No pair of columns depends on each other beyond chance: the independence assumption is reasonable here."
        return "There are no pairs to compare."

    def _joining_advice(self, first: str, second: str) -> str:
        """Returns half a sentence on how to model the two columns ``first`` and ``second`` together. ``blocks`` has the
        columns of each block, and ``joined_by`` the family, as text, that models each column with others.
        """
        block_of = {column: name for name, block in self.blocks.items() for column in block}
        if first in block_of and second in block_of:
            return f"or make one block of {block_of[first]} and {block_of[second]}"
        if first in block_of or second in block_of:
            block, other_column = (block_of[first], second) if first in block_of else (block_of[second], first)
            return f"or add {other_column} to the block {block} if its family allows it"
        tree_advice = "or learn which columns depend on each other with bb.TANClassifier()"
        family = self.joined_by[first]
        if family != self.joined_by[second]:  # no family takes both together
            return tree_advice
        return f"model the two together with features={{({first!r}, {second!r}): {family}}}, {tree_advice}"

    def to_dict(self) -> dict[str, Any]:
        """Returns the diagnosis as a dictionary for JSON."""
        columns = [{**vars(entry), "words": dict(entry.words)} for entry in self.columns]
        return {
            "n_rows": self.n_rows,
            "classes": list(self.classes),
            "entropy": self.entropy,
            "pairs": [asdict(pair) for pair in self.pairs],
            "columns": columns,
            "uninformative": [asdict(column) for column in self.uninformative],
            "n_pairs": self.n_pairs,
            "notes": list(self.notes),
            "blocks": {name: list(columns) for name, columns in self.blocks.items()},
            "advice": self.advice,
        }

    def _frame_columns(self) -> dict[str, list[Any]]:
        """Returns the columns of a table with a row for each pair: a list of values by the name of the field."""
        names = [entry.name for entry in fields(Pair)]
        return {name: [getattr(pair, name) for pair in self.pairs] for name in names}

    def _notebook_tables(self) -> list[NotebookTable]:
        """Returns the tables that a notebook shows, those that have rows: pairs, the information of all columns, and
        uninformative columns.
        """
        pairs = NotebookTable("Pairs that depend on each other given the class, in bits", self._frame_columns())
        columns = columns_of({"column": entry.feature, "bits": entry.bits, "p": entry.p} for entry in self.columns)
        uninformative = columns_of({"column": column.feature, "why": column.why} for column in self.uninformative)
        tables = [pairs, NotebookTable("Information of each column about the class, in bits", columns)]
        tables.append(NotebookTable("Columns without information about the class", uninformative))
        return [table for table in tables if any(table.columns.values())]

    def __str__(self) -> str:
        """Returns the diagnosis as text: the pairs, the information of the columns about the class, those without any,
        notes and advice.
        """
        n_columns = self.n_columns or len(self.columns)
        rows = f"{self.n_rows:,.12g} row{'s' * (self.n_rows != 1)}"
        lines = [f"Diagnosis of {rows}, {many(len(self.classes), 'class')}, {many(n_columns, 'column')}"]
        if self.pairs:
            lines.append(f"Pairs that depend on each other given the class (of {self.n_pairs:,}), in bits:")
            pair_rows = [
                (f"{pair.first} / {pair.second}", pair.bits, pair.share, "duplicated" * pair.duplicated)
                for pair in self.pairs
            ]
            lines += align_columns(
                [(names, f"{bits:.3f}", f"{share:.0%}", remark) for names, bits, share, remark in pair_rows],
                right_aligned=[1, 2],
            )
        informative = [
            entry for entry in self.columns if not any(entry.feature == column.feature for column in self.uninformative)
        ]
        if informative:
            lines.append(f"Information of each column about the class, in bits (the class has {self.entropy:.3f}):")
            lines += align_columns(
                [(entry.feature, f"{entry.bits:.3f}", list_words(entry.words)) for entry in informative[:20]],
                right_aligned=[1],
            )
            lines += more_line(len(informative) - 20, "column")
        if self.uninformative:
            lines.append("Columns without information about the class in these rows:")
            lines += align_columns([(column.feature, column.why) for column in self.uninformative[:40]])
            lines += more_line(len(self.uninformative) - 40, "column")
        return "\n".join([*lines, *self.notes, self.advice])

    __repr__ = __str__


def list_words(words: Mapping[str, float]) -> str:
    """Returns the first six words, quoted, as one text."""
    return ", ".join(map(repr, list(words)[:6]))
