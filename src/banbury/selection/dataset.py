"""Dataset: a labelled table that is read once, because its rows are counted and then scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int
from banbury.distributions.bag import missing_texts
from banbury.progress import watched
from banbury.readers import Batch, Codes, Source, Widened, from_texts, is_texts, n_threads, read
from banbury.schema import Features, Missing, Schema, infer
from banbury.sums import in_order, some
from banbury.tally import Growing, Label, Labels, Tally, aligned, dense_numbers, numbered, parts, refuse_continuous

PIECE = 1 << 13  # rows that are copied at a time: a processor's cache holds them until they are scored


@dataclass(frozen=True, eq=False)
class Dataset:
    """The rows of a table under one schema, in batches; of each the number of its class, −1 where it has none, and its weight."""

    schema: Schema
    batches: tuple[Batch, ...]
    classes: tuple[Label, ...]
    labels: NDArray[np.int32]
    weights: NDArray[np.float64] | None
    threads: int
    name: str | None = None
    groups: Any = None  # what a splitter keeps together: one for each row

    @property
    def n_rows(self) -> int:
        return len(self.labels)

    @cached_property
    def starts(self) -> Int:
        """The number of each batch's first row, and of all rows."""
        return np.cumsum([0, *(batch.n_rows for batch in self.batches)], dtype=np.int64)

    def count(self, groups: NDArray[np.int32], n_groups: int, schema: Schema | None = None) -> Tally:
        """The tally whose class ``class * n_groups + group`` has the rows of one class and group; group −1 is not counted."""
        n_classes = len(self.classes)
        codes = self.labels * np.int32(n_groups) + groups
        if int(self.labels.min(initial=0)) < 0 or int(groups.min(initial=0)) < 0:
            codes[(self.labels < 0) | (groups < 0)] = -1
        labels = Labels(
            None, None, Codes(codes, 0, list(range(n_groups * n_classes))), None, self.weights, None, self.threads
        )
        growing = Growing(self.schema if schema is None else schema)
        try:
            for batch in watched(self.batches, "counting", self.name):
                for part in parts(batch, growing.schema, labels):
                    growing.add(part)
        except errors.TooManyCells as many:
            raise errors.too_many_folds(getattr(many, "column", ""), n_groups, n_classes) from None
        return growing.frozen()

    @cached_property
    def any_idle(self) -> bool:
        """Whether some rows weigh nothing: they are scored, and not counted."""
        return self.weights is not None and not bool(self.weights.all())

    def take(self, rows: Int) -> Iterator[Batch]:
        """Rows by their numbers, which ascend: the part that each batch has, in order."""
        ends = np.searchsorted(rows, self.starts)
        for batch, start, a, b in zip(self.batches, self.starts, ends, ends[1:], strict=False):
            if b - a == batch.n_rows:
                yield batch
                continue
            for first in range(a, b, PIECE):
                part = batch.take(rows[first : min(first + PIECE, b)] - start)
                part.threads = 1
                yield part

    def only(self, rows: Int) -> Dataset:
        """Some rows, in the order of their numbers."""
        batches, first = [], 0
        for batch in self.take(rows):
            part = copy(batch)  # labels and weights are found by the number of a batch's first row
            part.first_row = first
            batches.append(part)
            first += part.n_rows
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, batches=tuple(batches), labels=self.labels[rows], weights=weights, groups=None)

    def encoded(self, tables: Mapping[str, _core.Words]) -> Dataset:
        """The same rows, with the words of these columns of text looked up in tables."""
        if not tables:
            return self
        families: dict[str, Any] = {feature.name: feature.family for feature in self.schema.texts}
        batches = []
        for batch in self.batches:
            columns: dict[str, Encoded] = {}
            for name, table in tables.items():
                texts = families[name].texts(batch, name)
                bags = table.bags(families[name].tokeniser, texts, self.threads)
                columns[name] = Encoded(*bags, missing_texts(texts, batch.n_rows))
            batches.append(batch.with_columns(columns))
        return replace(self, batches=tuple(batches))


class Encoded:
    """A column of texts whose words were looked up: offsets, ids, how often each occurs, and which texts are missing."""

    categorical = False
    text = True

    def __init__(
        self, offsets: Int, ids: NDArray[np.int32], times: NDArray[np.int32], missing: NDArray[np.bool_]
    ) -> None:
        self.offsets, self.ids, self.times, self.missing = offsets, ids, times, missing

    def __len__(self) -> int:
        return len(self.missing)

    def texts(self) -> Any:
        return self.offsets, (self.ids, self.times), self.missing

    def take(self, rows: Int) -> Encoded:
        sizes = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(offsets[-1]) + np.repeat(self.offsets[rows] - offsets[:-1], sizes)
        return Encoded(offsets, self.ids[at], self.times[at], self.missing[rows])


def held(
    data: Any,
    target: Any,
    *,
    schema: Schema | None = None,
    features: Features | Literal["choose"] = "auto",
    weights: Any = None,
    missing: Missing = "skip",
    threads: int | None = None,
    groups: Any = None,
    **reading: Any,
) -> Dataset:
    """Reads a labelled table into memory; what it is counted as is inferred from the first batch, as ``bb.count`` does.

    ``groups`` says which rows belong together: one for each row, or a column, which is then no feature. Families that are
    still to be chosen are inferred.
    """
    if isinstance(data, Dataset):
        return data
    aside = groups if isinstance(groups, str) else None
    features = "auto" if chooses(features) else features
    if schema is not None and not (isinstance(features, str) and features == "auto"):
        raise errors.bad_setting("features", features, "left out when a schema is given, which has its families")
    if schema is not None and not isinstance(schema, Schema):
        raise errors.bad_setting("schema", schema, "a Schema, such as tally.schema")
    if np.ndim(weights) > 1:
        raise errors.bad_setting("weights", "a matrix", "one number per row")
    known = schema is not None and bool(schema.texts) and is_texts(data)
    kinds = schema.kinds() if schema is not None else None
    source = from_texts(data, None, None) if known else read(data, kinds=kinds, **reading)
    target = source.target if target is None else target
    labels = Labels.of(target, weights, None, n_threads(threads))
    batches = _all(source)
    labels.check_length(sum(batch.n_rows for batch in batches))
    for batch in batches:
        batch.threads = labels.threads
    if schema is None:
        reserved = {} if aside is None else {aside: "named in groups="}
        if labels.column is not None and labels.column in batches[0].names:
            reserved[labels.column] = "the target"
        reserved |= labels.reserved()
        if isinstance(features, Mapping):
            features = {name: given for name, given in features.items() if name != aside}
        schema = infer(batches[0], reserved, labels.name, features, missing)
    found = [numbered(batch, schema, labels) for batch in batches]
    for codes, names, _ in found:
        refuse_continuous(names, len(codes))
    fitting = tuple(_fitting(batch, schema, labels, aside) for batch in batches)
    weighed = None if found[0][2] is None else np.concatenate([w for _, _, w in found if w is not None])
    counted = [codes if w is None else np.where(w > 0, codes, -1) for codes, _, w in found]
    classes: Any = in_order(
        set[Label]().union(*(used_names(names, codes) for codes, (_, names, _) in zip(counted, found, strict=True)))
    )
    if not classes and any(bool((codes >= 0).any()) for codes, _, _ in found):
        raise errors.empty_data(source.name, "every row has a weight of zero or a missing label")
    if not classes:
        raise errors.no_target(sum(batch.n_rows for batch in batches), labels.name)
    numbers = renumbered([(names, codes) for codes, names, _ in found], classes)
    if aside is not None:
        groups = _groups([dense_numbers(batch.codes(aside), labels.threads) for batch in batches])
    return Dataset(schema, fitting, classes, numbers, weighed, labels.threads, source.name, groups)


def chooses(features: Any) -> bool:
    """Whether families are to be chosen by held-out likelihood."""
    return isinstance(features, str) and features == "choose"


def _fitting(batch: Batch, schema: Schema, labels: Labels, aside: str | None) -> Batch:
    """The columns of the schema alone; those of words as codes, since they are asked for many times."""
    reserved = [*labels.reserved(), *filter(None, [aside])]
    fits = aligned(batch, schema, reserved)
    extra = [name for name in fits.names if name not in schema.columns]
    for name in extra:
        fits = fits.without(name)
    return _encoded(fits, schema)


def _encoded(batch: Batch, schema: Schema) -> Batch:
    """The batch with its words as codes: they are asked for many times."""
    keyed = (name for f in schema.keyed if f.family.shape == "keys" for name in f.inputs)
    names = [name for name in keyed if batch.kind(name) == "string"]
    return batch.coded(names) if names else batch


def _all(source: Source) -> list[Batch]:
    """Every batch of a table."""
    while True:
        try:
            batches = [batch for batch in watched(source, "reading", source.name) if batch.n_rows]
        except Widened as wider:
            if not source.again:
                raise errors.cannot_restart(wider.column, wider.kind) from None
            continue
        if not batches:
            raise errors.empty_data(source.name)
        return batches


def used_names(names: Sequence[Label], codes: NDArray[np.int32]) -> set[Label]:
    """The names that occur."""
    return {names[c] for c in np.flatnonzero(some(_core.count_classes(codes, len(names), None, 1))).tolist()}


def renumbered(parts: Sequence[tuple[Sequence[Label], NDArray[np.int32]]], names: Sequence[Label]) -> NDArray[np.int32]:
    """Numbers of batches, each with its own names, over all names; −1 for those that are not among them."""
    if all(list(own) == list(names) for own, _ in parts):
        return parts[0][1] if len(parts) == 1 else np.concatenate([codes for _, codes in parts])
    place = {name: c for c, name in enumerate(names)}
    lookups = [np.array([*(place.get(name, -1) for name in own), -1], dtype=np.int32) for own, _ in parts]
    return np.concatenate([lookup[codes] for lookup, (_, codes) in zip(lookups, parts, strict=True)])


def _groups(found: Sequence[tuple[NDArray[np.int32], Sequence[Label]]]) -> NDArray[np.int32]:
    names = in_order(set[Label]().union(*(used_names(names, codes) for codes, names in found)))
    return renumbered([(own, codes) for codes, own in found], names)  # type: ignore[arg-type]
