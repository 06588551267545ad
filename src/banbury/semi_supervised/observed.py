"""Observed: rows that are counted and scored repeatedly, with other soft labels each time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from banbury import _core
from banbury.arrays import Int, Real
from banbury.families.bags.looked_up_texts import LookedUpTexts
from banbury.families.family import Features
from banbury.model.naive_bayes import Model
from banbury.reading import Batch, Codes
from banbury.rows.labelled import WordIdColumn
from banbury.sums import encode_weights
from banbury.tally.schema import Schema
from banbury.tally.tally import Label, Tally, add_tally, count_rows
from banbury.threads import LimitThreads

Limbs = NDArray[np.uint64]  # exact weights, as the kernels take them
LEAST_SHARE = 1e-9  # a class with a smaller share of a row is left out when the row is counted
ROWS_TOGETHER = 1 << 20  # rows that are counted together


@dataclass(frozen=True)
class Observed:
    """The rows of a table under one schema. The words of its texts are looked up only once."""

    schema: Schema
    batch: Batch  # all rows
    texts: tuple[LookedUpTexts, ...]  # of each text column: the numbers of the words of each row
    threads: int

    @classmethod
    def of(cls, batch: Batch, schema: Schema, weights: Real, threads: int) -> Observed:
        """Returns the rows of a batch under a schema, after looking up the words of all texts. ``weights`` (rows,)
        decide which words are too rare, if a family drops such words. ``threads``: how many to use.
        """
        texts = tuple(
            LookedUpTexts.look_up(feature, batch, weights, threads) for feature in schema.features if feature.reads_text
        )
        column_names = schema.features.take(schema.features.where(lambda feature: not feature.reads_text)).inputs
        string_columns = [name for name in column_names if batch.kind(name) == "string"]
        batch = batch.with_codes(string_columns) if string_columns else batch
        return cls(schema, batch, texts, threads)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.batch.n_rows

    @cached_property
    def n_words(self) -> Real:
        """The number of words in each row, over all texts (rows,)."""
        return sum((text.lengths for text in self.texts), np.zeros(self.n_rows))

    def log_joint(self, model: Model) -> Real:
        """Returns log P(class) + log P(row | class) under a model of a ``tally`` of these rows (rows × classes). A row
        that is impossible in every class gets the log prior.
        """
        encoded_texts = {  # by the name of the column
            text.feature.name: WordIdColumn(text.offsets, text.ids, text.times, text.missing) for text in self.texts
        }
        batch = self.batch.with_columns(encoded_texts) if encoded_texts else self.batch
        with LimitThreads(self.threads):
            log_joint: Real = model._score_features(batch, model.parameters, "log_joint")[0]
        is_impossible = np.isneginf(log_joint)  # rows × classes
        if is_impossible.any():
            log_joint[is_impossible.all(axis=1)] = model.log_prior
        return log_joint

    def tally(self, classes: tuple[Label, ...], soft: Real) -> Tally:
        """Returns the tally of the rows with soft labels times weights, ``soft`` (rows × classes). ``classes`` are the
        names of its columns. Words are named by their numbers, which is faster.
        """
        if not self.texts:
            return self.tally_by_name(classes, soft)
        # Each row once for each class in which it has a share: its number, the class, and the encoded weight.
        row_numbers, class_numbers, weights = _repeat_by_class(soft)
        words_by_column = {
            text.feature.name: text.count(row_numbers, class_numbers, weights, len(classes), self.threads)
            for text in self.texts
        }
        features = self.schema.features
        # The numbers of the features that are not texts.
        other_columns = [number for number, name in enumerate(features.names) if name not in words_by_column]
        other_schema = replace(self.schema, features=features.take(other_columns))
        if other_columns:
            other_tally = self._count(other_schema, classes, row_numbers, class_numbers, weights)
        else:
            rows_by_class = _core.count_classes(class_numbers, len(classes), weights, self.threads)
            other_tally = Tally(other_schema, classes, rows_by_class, ())
        # Counting may have made bins wider, so the features are those that were counted.
        counted_features = (*(text.feature for text in self.texts), *other_tally.schema.features)
        feature_of_name = {feature.name: feature for feature in counted_features}
        schema = replace(self.schema, features=Features.of(map(feature_of_name.__getitem__, features.names)))
        sums = tuple(  # what was counted of each group of features
            words_by_column[name] if name in words_by_column else other_tally.sums[other_tally.locate(name).group]
            for name in (group.features.names[0] for group in schema.groups)
        )
        return replace(other_tally, schema=schema, sums=sums)

    def tally_by_name(self, classes: tuple[Label, ...], soft: Real) -> Tally:
        """Returns the tally of the rows with soft labels times weights, ``soft`` (rows × classes), as ``bb.count``
        counts them, with words by name. ``classes`` are the names of the columns of ``soft``.
        """
        return self._count(self.schema, classes, *_repeat_by_class(soft))

    def _count(
        self, schema: Schema, classes: tuple[Label, ...], rows: Int, class_numbers: NDArray[np.int32], weights: Limbs
    ) -> Tally:
        """Returns the tally of the features of a schema. Row ``rows[i]`` has the class ``class_numbers[i]`` and the
        encoded weight ``weights[i]``; a row occurs once for each class in which it has a share.
        ``classes`` has the names of the classes.
        """
        tally_so_far: Tally | None = None
        for start in range(0, max(len(rows), 1), ROWS_TOGETHER):
            piece = slice(start, start + ROWS_TOGETHER)
            piece_batch = self.batch.take(rows[piece])
            # The classes of these rows.
            labels = Codes(class_numbers[piece], low=0, values=list(classes))
            tally_so_far = add_tally(
                tally_so_far, count_rows(piece_batch, schema, labels, weights[piece], self.threads)
            )
        assert tally_so_far is not None
        return tally_so_far._with_classes(classes)


def _repeat_by_class(soft: Real) -> tuple[Int, NDArray[np.int32], Limbs]:
    """Lists every row once for each class in which it has a share. Returns the row numbers, the class numbers and the
    encoded weights (one line of limbs each), in the same order. ``soft`` are soft labels times weights (rows ×
    classes).
    """
    encoded_weights = encode_weights(_drop_small_shares(soft))  # rows × classes × limbs
    row_numbers, class_numbers = np.nonzero(encoded_weights.any(axis=2))
    return row_numbers, class_numbers.astype(np.int32), encoded_weights[row_numbers, class_numbers]


def _drop_small_shares(soft: Real) -> Real:
    """Returns ``soft`` (rows × classes) with the shares of classes that are too small to matter set to 0, and the other
    shares of the row rescaled to the same total.
    """
    totals = soft.sum(axis=1, keepdims=True)  # of each row
    shares = np.where(soft > LEAST_SHARE * totals, soft, 0.0)
    remaining = shares.sum(axis=1, keepdims=True)
    return np.asarray(shares * (totals / np.where(remaining > 0, remaining, 1.0)))
