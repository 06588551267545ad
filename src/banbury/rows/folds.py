"""Folds: which rows are tested, and which are learned from meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int
from banbury.families.family import by_class
from banbury.reading import Batch
from banbury.tally.schema import Schema
from banbury.tally.table import MIX, mix, row_hashes
from banbury.threads import n_threads

Deal = Literal["stratified", "content"]  # how rows are dealt to folds
MOST_FOLDS = 10_000
DEALS = 1024  # random orders of the folds, of which one is chosen at random again and again


@dataclass(frozen=True)
class Split:
    """The rows to test, and the training rows: either groups of rows that are counted separately, or row numbers."""

    test: Int
    learned: NDArray[np.bool_] | None  # by group
    rows: Int | None = None


@dataclass(frozen=True)
class Round:
    """Splits whose test rows do not overlap. ``groups`` has the group of each row; groups are counted separately."""

    groups: NDArray[np.int32]
    n_groups: int
    splits: tuple[Split, ...]

    def with_others(self) -> Round:
        """Returns the same round with one more group that all splits learn from."""
        learned = ((split, split.learned) for split in self.splits if split.learned is not None)
        splits = tuple(replace(split, learned=np.append(learned_groups, True)) for split, learned_groups in learned)
        return Round(self.groups, self.n_groups + 1, splits)

    @property
    def tested_by(self) -> NDArray[np.int32]:
        """The split that tests each row, or −1. The first groups are the test rows of the splits."""
        every = self.n_groups == len(self.splits)
        return self.groups if every else np.where(self.groups < len(self.splits), self.groups, -1)


@dataclass(frozen=True)
class SingleRows(Round):
    """Tests every row with a model of all others. Splits are created only if there is no closed formula."""

    @classmethod
    def of(cls, labels: NDArray[np.int32]) -> SingleRows:
        numbers = np.full(len(labels), -1, dtype=np.int32)
        n_rows = int(np.count_nonzero(labels >= 0))
        numbers[labels >= 0] = np.arange(n_rows)
        return cls(numbers, n_rows, ())

    @property
    def tested_by(self) -> NDArray[np.int32]:
        return self.groups

    def split_up(self) -> Round:
        """Returns one split per row. Raises an error if there are too many rows."""
        if not 2 <= self.n_groups <= MOST_FOLDS:
            text = f"folds='loo' has no closed formula for these settings, and with {self.n_groups:,} rows it is "
            raise errors.BadSetting(
                f"{text}too slow. Row by row, it works for two to {MOST_FOLDS:,} rows. Pass a number of folds, or how='mean'."
            )
        return _partition(self.groups)


@dataclass(frozen=True)
class Dealing:
    """Assigns rows to folds by their content, regardless of order: by one column, or by all columns that are counted."""

    n_folds: int
    seed: int
    id: str | None = None

    @classmethod
    def of(cls, folds: Any, seed: int, id: Any) -> Dealing:
        """Checks the number of folds and the column."""
        if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or not 2 <= folds <= MOST_FOLDS:
            allowed = f"a whole number from 2 to {MOST_FOLDS:,} when rows are assigned to folds by id= or by content"
            raise errors.bad_setting("folds", folds, allowed)
        if id is not None and not isinstance(id, str):
            raise errors.bad_setting(
                "id", id, "the name of a column whose values identify the rows that belong together"
            )
        return cls(int(folds), int(seed), id)

    @classmethod
    def of_settings(cls, folds: Any, seed: int, id: Any, deal: Any) -> Dealing | None:
        """Returns how rows are assigned by content, or None if they are assigned by position."""
        return None if id is None and deal == "stratified" else cls.of(folds, seed, id)

    def folds(self, batch: Batch, schema: Schema) -> NDArray[np.int32]:
        """Returns the fold of each row; identical rows get the same fold."""
        return self.of_hashes(row_hashes(batch, schema, self.id))

    def of_hashes(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Returns the fold of each row from a hash of its content."""
        turned = mix(hashes * MIX + np.uint64(self.seed))
        return ((turned >> np.uint64(11)) % np.uint64(self.n_folds)).astype(np.int32)


def rows_together(groups: Any, id: Any, deal: Any) -> Any:
    """Returns what keeps rows together: the groups for a splitter, or the column by which rows are assigned."""
    if deal not in get_args(Deal):
        raise errors.unknown_choice("deal", deal, get_args(Deal))
    by_content = id is not None or deal != "stratified"
    allowed = "omitted when rows are assigned to folds by id= or by content"
    errors.require(groups is None or not by_content, "groups", groups, allowed)
    return groups if id is None else id


def rounds(
    folds: Any,
    labels: NDArray[np.int32],
    seed: int,
    groups: Any,
    has_other_rows: bool = False,
    fold: NDArray[Any] | None = None,
    hashes: NDArray[np.uint64] | None = None,
) -> list[Round]:
    """Returns the splits for ``folds``: a number, a fold for each row, "loo", or a scikit-learn splitter.

    With ``others``, there are rows elsewhere, which form a group that all splits learn from. Rows that already have a
    ``fold`` keep it. With ``hashes``, rows are assigned by content.
    """
    if isinstance(folds, str) and folds == "loo":
        refuse_groups(groups)
        return [SingleRows.of(labels)]
    if fold is None and hashes is not None:
        fold = rank_folds(hashes, labels, int(folds), seed)
    fold_rounds = _read_folds(folds, labels, seed, groups) if fold is None else [round_of_folds(fold, labels)]
    return [fold_round.with_others() if has_other_rows else fold_round for fold_round in fold_rounds]


def _read_folds(folds: Any, labels: NDArray[np.int32], seed: int, groups: Any) -> list[Round]:
    splitter = hasattr(folds, "split") and not isinstance(folds, (str, bytes, type))
    if not splitter:
        refuse_groups(groups)
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        return [_partition(_stratify(labels, int(folds), seed))]
    if splitter:
        return list(_rounds(_of_splitter(folds, labels, groups), labels))
    listed = isinstance(folds, Iterable) and not isinstance(folds, (str, bytes, type))
    errors.require(listed and (not isinstance(folds, np.ndarray) or folds.ndim != 0), "folds", folds, WANTED)
    fold_list = folds if hasattr(folds, "dtype") else list(folds)
    if isinstance(fold_list, list) and fold_list and all(_is_split(part) for part in fold_list):
        return list(_rounds(fold_list, labels))
    return [_partition(_number_folds(fold_list, labels))]


def round_of_folds(fold: NDArray[Any], labels: NDArray[np.int32]) -> Round:
    """Returns the round for rows that were assigned by content. A row with fold −1 or without a label is in none."""
    numbers = np.where(labels >= 0, fold, -1)
    used = np.unique(numbers[numbers >= 0])
    if len(used) < 2:
        raise errors.bad_setting(
            "folds", f"{len(used)} that has rows", "at least two folds; identical rows share a fold"
        )
    return _partition(np.where(numbers >= 0, np.searchsorted(used, numbers), -1).astype(np.int32))


def rank_folds(hashes: NDArray[np.uint64], labels: NDArray[np.int32], folds: int, seed: int) -> NDArray[np.int32]:
    """Returns a fold for every labelled row. The rows of each class are assigned in turn, in an order that depends on
    their content and the seed.
    """
    rows = np.flatnonzero(labels >= 0)
    if len(rows) < 2:
        raise errors.empty_data(None, f"{errors.many(len(rows), 'row')} with a label and a weight, but folds need two")
    errors.require(2 <= folds <= len(rows), "folds", folds, f"from 2 to {len(rows):,}, the number of rows")
    order = np.lexsort((rows, mix(hashes[rows] + np.uint64(seed))))
    numbers = np.full(len(labels), -1, dtype=np.int32)
    numbers[rows[order]] = np.arange(len(rows)) % int(folds)
    return numbers


def n_folds(splits: Sequence[Round]) -> str:
    """Returns the number of folds, and of repeats, in words."""
    numbers = [len(one.splits) for one in splits]
    return (
        f"{len(numbers)} × {numbers[0]}"
        if len(numbers) > 1 and set(numbers) == {numbers[0]} != {1}
        else str(sum(numbers))
    )


def refuse_groups(groups: Any) -> None:
    """Raises an error if groups are given without a splitter that uses them."""
    if groups is not None:
        allowed = "used with a splitter that keeps groups together, such as folds=GroupKFold()"
        raise errors.bad_setting("groups", "given", allowed)


def _is_split(part: Any) -> bool:
    pair = isinstance(part, (tuple, list)) and len(part) == 2
    return pair and all(hasattr(rows, "__len__") and not isinstance(rows, str) for rows in part)


def _of_splitter(splitter: Any, labels: NDArray[np.int32], groups: Any) -> Iterator[tuple[Int, Int]]:
    """A splitter's splits of the labelled rows, which are all it sees."""
    rows = np.flatnonzero(labels >= 0)
    kept = None if groups is None else _check_groups(groups, labels)[rows]
    for split in splitter.split(np.zeros((len(rows), 1)), labels[rows], kept):
        if not _is_split(split):
            raise errors.bad_setting(
                "folds", "a splitter of other objects", "a splitter that yields pairs of row numbers"
            )
        train, test = (rows[_numbers(part, len(rows))] for part in split)
        yield train, test


def _check_groups(groups: Any, labels: NDArray[np.int32]) -> NDArray[Any]:
    """A group for each row, none of them missing."""
    allowed = "a column, or one number or name per row, with none missing"
    if isinstance(groups, (str, bytes)) or not hasattr(groups, "__len__"):
        raise errors.bad_setting("groups", groups, allowed)
    try:
        group_array = np.asarray(groups)
    except ValueError:
        raise errors.bad_setting("groups", "lists of different lengths", allowed) from None
    if group_array.ndim != 1:
        raise errors.bad_setting("groups", f"an array of {group_array.ndim} dimensions", allowed)
    if len(group_array) != len(labels):
        raise errors.length_mismatch("groups", len(group_array), len(labels))
    values = list(groups) if isinstance(groups, (list, tuple)) else group_array.tolist()
    if group_array.dtype.kind == "O" and not all(isinstance(x, (bool, int, float, str)) for x in values):
        raise errors.bad_setting("groups", "an array with values other than numbers and names", allowed)
    if group_array.dtype.kind in "Of" and any(x != x for x in values):
        raise errors.bad_setting("groups", "an array with NaN", allowed)
    if group_array.dtype.kind in "OU" and len({isinstance(x, str) for x in values}) > 1:
        raise errors.bad_setting("groups", "an array of numbers and names", "an array of only numbers or only names")
    return group_array


def _numbers(chosen: Any, n_rows: int) -> Int:
    """The numbers of chosen rows, which may be given as a mask."""
    try:
        numbers = np.asarray(chosen)
    except ValueError:  # lists of different lengths
        numbers = np.empty((0, 0))
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "biu"):
        raise errors.bad_setting("folds", "a split of values that are not row numbers", WANTED)
    if numbers.dtype.kind == "b":
        numbers = np.flatnonzero(numbers) if len(numbers) == n_rows else np.array([n_rows])
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < n_rows:
        raise errors.bad_setting("folds", "a split with invalid row numbers", f"row numbers from 0 to {n_rows - 1:,}")
    return numbers.astype(np.int64)


WANTED = "a number of folds, at least 2, a fold for each row, 'loo', or a scikit-learn splitter such as GroupKFold()"


def _stratify(labels: NDArray[np.int32], folds: int, seed: int) -> NDArray[np.int32]:
    """A fold for every labelled row. Of each class so many rows in turn go to different folds, in random order."""
    allowed = WANTED if folds < 2 else f"{MOST_FOLDS:,} at most, or 'loo' for one per row"
    errors.require(2 <= folds <= MOST_FOLDS, "folds", folds, allowed)
    if folds > (n_rows := int(np.count_nonzero(labels >= 0))):
        raise errors.bad_setting("folds", folds, f"at most the number of labelled rows, {n_rows:,}")
    rng = np.random.default_rng(seed)
    deals = rng.permuted(np.tile(np.arange(folds, dtype=np.int32), (DEALS, 1)), axis=1)
    n_classes = int(labels.max(initial=-1)) + 1
    threads = n_threads(None)
    dealt = list[NDArray[np.int32]]()
    next_fold = int(rng.integers(folds))
    for size in _core.count_classes(labels, n_classes, None, threads).value.astype(np.int64).tolist():
        rounds, rest = divmod(size, folds)
        dealt.append(deals[rng.integers(DEALS, size=rounds)].reshape(-1))
        dealt.append(rng.permutation((next_fold + np.arange(rest)) % folds).astype(np.int32))
        next_fold = (next_fold + rest) % folds
    return _core.deal(labels, n_classes, np.concatenate(dealt), threads)


def _number_folds(folds: Any, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Fold numbers or names, one per row."""
    if len(folds) != len(labels):
        raise errors.length_mismatch("folds", len(folds), len(labels))
    masked = isinstance(folds, np.ma.MaskedArray) and bool(np.ma.getmaskarray(folds).any())
    values: list[Any] = [] if masked else np.asarray(folds, dtype=object).tolist()
    plain = all(isinstance(x, (bool, int, float, str, np.generic)) or hasattr(x, "isoformat") for x in values)
    if masked or not plain or any(x != x for x in values):
        raise errors.bad_setting("folds", "an array with NaN or values other than numbers and names", WANTED)
    if len({isinstance(x, str) for x in values}) > 1:
        raise errors.bad_setting("folds", "an array of numbers and names", "an array of only numbers or only names")
    try:
        names, numbers = np.unique(np.asarray(folds), return_inverse=True)
    except TypeError:
        raise errors.bad_setting(
            "folds", "an array of numbers and names", "an array of only numbers or only names"
        ) from None
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise errors.bad_setting("folds", "an array with NaN or infinite numbers", "a fold for each row")
    numbers = np.where(labels >= 0, numbers.reshape(-1), -1).astype(np.int32)
    used = np.unique(numbers[numbers >= 0])
    if not 2 <= len(used) <= MOST_FOLDS:
        different = f"an array of {len(used):,} different folds"
        raise errors.bad_setting("folds", different, "an array with at least two folds")
    return np.where(numbers >= 0, np.searchsorted(used, numbers), -1).astype(np.int32)


def _partition(folds: NDArray[np.int32]) -> Round:
    """Every fold tested once, by what all the others say."""
    n_folds = int(folds.max()) + 1
    learned = ~np.eye(n_folds, dtype=np.bool_)
    return Round(folds, n_folds, tuple(Split(test, learned[k]) for k, test in enumerate(by_class(folds, n_folds))))


def _rounds(splits: Iterable[Any], labels: NDArray[np.int32]) -> Iterator[Round]:
    """Splits in rounds: a new one begins where a row would be tested twice."""
    pending: list[tuple[Int, Int]] = []
    tested = np.zeros(len(labels), dtype=np.bool_)
    n_splits = 0
    overlapping = False
    for train, test in splits:
        rows = _numbers_with_label(train, labels)
        test = _numbers_with_label(test, labels)
        n_splits += 1
        overlapping = overlapping or bool(np.isin(test, rows, assume_unique=True).any())
        if not len(test) or not len(rows):
            allowed = "a split with labelled rows both for training and for testing"
            raise errors.bad_setting("folds", f"split {n_splits}", allowed)
        if tested[test].any():
            yield _round(pending, labels)
            pending, tested[:] = [], False
        tested[test] = True
        pending.append((rows, test))
    if overlapping:
        text = "a split tests rows that it also learns from, so its figures are not those of a model that has not seen the rows."
        errors.warn(errors.BanburyWarning(text))
    errors.require(n_splits, "folds", "no splits", WANTED)
    yield _round(pending, labels)


def _numbers_with_label(rows: Any, labels: NDArray[np.int32]) -> Int:
    """Row numbers in order, without those that have no label."""
    numbers = _numbers(rows, len(labels))
    unique = np.unique(numbers)
    if len(unique) < len(numbers):
        allowed = "each row at most once in each part of a split"
        raise errors.bad_setting("folds", "a split that contains a row twice", allowed)
    return np.asarray(unique[labels[unique] >= 0])


def _round(pending: list[tuple[Int, Int]], labels: NDArray[np.int32]) -> Round:
    """Each test is counted apart, and so are the rows of none; what is learned from is made of these where it can be."""
    groups = np.where(labels >= 0, len(pending), -1).astype(np.int32)
    for k, (_, test) in enumerate(pending):
        groups[test] = k
    sizes = np.bincount(groups[groups >= 0], minlength=len(pending) + 1)
    splits = []
    for rows, test in pending:
        inside = np.bincount(groups[rows], minlength=len(sizes))
        has_whole_groups = bool(np.all((inside == 0) | (inside == sizes)))
        splits.append(Split(test, inside > 0, None) if has_whole_groups else Split(test, None, rows))
    return Round(groups, len(sizes), tuple(splits))


def training_rows(split: Split, splits: Round) -> Int:
    """Returns the rows that a split learns from."""
    inside = splits.groups >= 0
    chosen = split.rows
    if chosen is None:
        assert split.learned is not None
        chosen = np.flatnonzero(inside & split.learned[np.where(inside, splits.groups, 0)])
    if len(chosen) < 2:
        raise errors.bad_setting("folds", "a split that learns from one row", "at least two rows to choose settings")
    return chosen
