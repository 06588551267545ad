"""The predictions of a model for the rows of a partition, as additional columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from banbury.engines.counting import as_local, has_no_rows
from banbury.files import from_bytes, to_bytes
from banbury.reading import read

KIND_BY_TYPE: Mapping[type, str] = {bool: "boolean", int: "integer", float: "float", str: "string"}


@dataclass(frozen=True)
class PartitionAnswers:
    """A function of the rows of a partition that returns a model's answers to one question, as a mapping from columns
    to values.
    """

    model: Any
    question: str  # "predict", "posterior" or "explain"
    settings: Mapping[str, Any]  # keyword arguments of the model's method
    row_columns: Collection[str] = ()  # names of the rows' own columns, which the answer's must not repeat

    @cached_property
    def columns(self) -> dict[str, str]:
        """The columns of the answer, each with its kind: boolean, integer, float, string or list."""
        kind_by_name = dict[str, str]()
        for name, kind in self._names_and_kinds():
            while name in self.row_columns or name in kind_by_name:
                name += "_"
            kind_by_name[name] = kind
        return kind_by_name

    def _names_and_kinds(self) -> list[tuple[str, str]]:
        """Returns the name, before it is made unique, and the kind of each column that the answer to ``question`` has:
        boolean, integer, float, string or list.
        """
        if self.question == "posterior":
            return [(f"P({name})", "float") for name in self.model._names]
        label_kinds = {KIND_BY_TYPE[type(name)] for name in self.model._names}  # the names are classes or labels
        label_kind = label_kinds.pop() if len(label_kinds) == 1 else "string"
        if self.question == "predict":
            return [("class", label_kind) if self.model.schema.labels is None else ("labels", "list")]
        features = (f"evidence of {name}" for name in self.model.schema.features.names)
        numbers = ("probability", "decibans", "prior", *features)
        return [("class", label_kind), ("against", label_kind), *((name, "float") for name in numbers)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the model in the format of its files."""
        return _receive, (to_bytes(self.model), self.question, self.settings, self.row_columns)

    def __call__(self, rows: Any) -> dict[str, Any]:
        """Returns the answers to the rows of a partition: for each column of the answer a value per row."""
        with as_local(rows) as table:
            if has_no_rows(table):
                return {name: [] for name in self.columns}
            return dict(zip(self.columns, map(_plain, self._answers(table)), strict=True))

    def _answers(self, rows: Any) -> list[Any]:
        """Returns the columns of the answer, in the order of ``columns``, each with a value per row. ``question`` is
        "predict", "posterior" or "explain", and ``settings`` has keyword arguments of that method of the model.
        """
        if self.question == "predict":
            return [self.model.predict(rows, **self.settings)]
        if self.question == "posterior":
            return list(self.model.posterior(rows, **self.settings).T)
        explanations = [
            self._evidence(batch.slice(row, row + 1)) for batch in read(rows) for row in range(batch.n_rows)
        ]
        return [list(column) for column in zip(*explanations, strict=True)]

    def _evidence(self, row: Any) -> list[Any]:
        """Returns the answer for ``row``, a batch of one row: its class, the rival class, the probability of the class,
        its log odds against the rival in decibans, and the part of the prior and the calibration; then the part of each
        feature of the schema. The parts add up to the log odds. A column in a block counts towards its block.
        """
        explanation = self.model.explain(row, **self.settings)
        features = self.model.schema.features
        decibans = dict.fromkeys(features.names, 0.0)  # by feature
        for term in explanation.evidence:
            feature_name = next((feature.name for feature in features if term.feature in feature.columns), term.feature)
            decibans[feature_name] = decibans.get(feature_name, 0.0) + term.decibans
        return [
            explanation.winner,
            explanation.against,
            explanation.probability,
            explanation.decibans,
            explanation.prior + explanation.calibration,
            *map(decibans.__getitem__, features.names),
        ]


def _receive(
    model: bytes, question: str, settings: Mapping[str, Any], column_names: Collection[str]
) -> PartitionAnswers:
    """Restores a pickled PartitionAnswers. ``model`` has the bytes of a model file; ``column_names`` are the names of
    the rows' own columns, and ``question`` and ``settings`` are fields of PartitionAnswers.
    """
    restored: Any = from_bytes(model, "the serialised model")
    return PartitionAnswers(replace(restored, threads=1), question, settings, column_names)


def _plain(values: Any) -> Any:
    """Returns one value per row (``values``) as an array if it is an array of floats, otherwise as a list."""
    return values if isinstance(values, np.ndarray) and values.dtype.kind == "f" else list(values)
