"""Answers of a model to the rows of a partition, as columns that stand beside theirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from banbury.engines.counting import has_no_rows, here
from banbury.files import from_bytes, to_bytes
from banbury.reading import read

KINDS: Mapping[type, str] = {bool: "boolean", int: "integer", float: "float", str: "string"}


@dataclass(frozen=True)
class PartitionAnswers:
    """What a model says of the rows of a partition: a mapping from column to values. The answer to one question."""

    model: Any
    question: str  # "predict", "posterior" or "explain"
    settings: Mapping[str, Any]
    taken: Collection[str] = ()  # names that columns of the rows have

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of the answer, each with its kind: boolean, integer, float, string or list."""
        named = dict[str, str]()
        for name, kind in zip(self._plain_names, self._kinds, strict=True):
            while name in self.taken or name in named:
                name += "_"
            named[name] = kind
        return named

    @property
    def _has_sets(self) -> bool:
        return self.model.schema.labels is not None

    @property
    def _plain_names(self) -> list[str]:
        if self.question == "predict":
            return ["labels" if self._has_sets else "class"]
        if self.question == "posterior":
            return [f"P({name})" for name in self.model.names]
        features = (f"evidence of {feature.name}" for feature in self.model.schema.features)
        return ["class", "against", "probability", "decibans", "prior", *features]

    @property
    def _kinds(self) -> list[str]:
        kinds = {KINDS[type(name)] for name in self.model.names}
        label = kinds.pop() if len(kinds) == 1 else "string"
        if self.question == "predict":
            return ["list" if self._has_sets else label]
        n_numbers = len(self._plain_names)
        return ["float"] * n_numbers if self.question == "posterior" else [label, label, *["float"] * (n_numbers - 2)]

    def __reduce__(self) -> tuple[Any, ...]:
        """A model travels as it is kept in a file."""
        return _receive, (to_bytes(self.model), self.question, self.settings, self.taken)

    def __call__(self, rows: Any) -> dict[str, Any]:
        """The answers to the rows, column by column."""
        with here(rows) as table:
            if has_no_rows(table):
                return {name: [] for name in self.columns}
            return dict(zip(self.columns, map(_plain, self._answers(table)), strict=True))

    def _answers(self, rows: Any) -> list[Any]:
        if self.question == "predict":
            return [self.model.predict(rows, **self.settings)]
        if self.question == "posterior":
            return list(self.model.posterior(rows, **self.settings).T)
        explanations = [
            self._evidence(batch.slice(row, row + 1)) for batch in read(rows) for row in range(batch.n_rows)
        ]
        return [list(column) for column in zip(*explanations, strict=True)]

    def _evidence(self, row: Any) -> list[Any]:
        """Of one row the answer, and what each column says for it, in decibans; with the prior they are all there is."""
        explanation = self.model.explain(row, **self.settings)
        decibans = dict.fromkeys((feature.name for feature in self.model.schema.features), 0.0)
        for term in explanation.evidence:
            block = next((f.name for f in self.model.schema.features if term.feature in f.columns), term.feature)
            decibans[block] = decibans.get(block, 0.0) + term.decibans
        head = [
            explanation.winner,
            explanation.against,
            explanation.probability,
            explanation.decibans,
            explanation.prior + explanation.calibration,
        ]
        return [*head, *(decibans[feature.name] for feature in self.model.schema.features)]


def _receive(model: bytes, question: str, settings: Mapping[str, Any], taken: Collection[str]) -> PartitionAnswers:
    return PartitionAnswers(replace(from_bytes(model, "the serialised model"), threads=1), question, settings, taken)  # type: ignore[arg-type]


def _plain(values: Any) -> Any:
    return values if isinstance(values, np.ndarray) and values.dtype.kind == "f" else list(values)
