"""Folds: which rows are tested, and which rows the tested model learns from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from banbury import _core, errors
from banbury.arrays import Int
from banbury.families.family import rows_by_class
from banbury.reading import Batch
from banbury.tally.schema import Schema
from banbury.tally.table import HASH_FACTOR, mix, row_hashes
from banbury.threads import n_threads

Deal = Literal["stratified", "content"]  # how rows are assigned to folds
MOST_FOLDS = 10_000
N_ORDERS = 1024  # random orders of the folds, from which one is drawn for every pass through the folds


@dataclass(frozen=True)
class Split:
    """The rows to test, and the training rows: either groups of rows that are counted separately, or row numbers."""

    test: Int  # row numbers
    is_learned: NDArray[np.bool_] | None  # whether each group is learned from; None if ``rows`` has the training rows
    rows: Int | None = None  # row numbers


@dataclass(frozen=True)
class FoldSet:
    """Splits whose test rows do not overlap, such as the folds of one cross-validation. ``groups`` has the group of each
    row, −1 for none; groups are counted separately.
    """

    groups: NDArray[np.int32]  # from 0 to n_groups − 1, or −1
    n_groups: int
    splits: tuple[Split, ...]  # empty for ``SingleRows``

    def with_other_rows(self) -> FoldSet:
        """Returns the fold set with one more group, of rows elsewhere that all splits learn from. A split's
        ``is_learned`` says of each group whether it learns from it; splits whose training rows are row numbers, not
        groups (it is None), are dropped.
        """
        splits = tuple(
            replace(split, is_learned=np.append(split.is_learned, True))
            for split in self.splits
            if split.is_learned is not None
        )
        return FoldSet(self.groups, self.n_groups + 1, splits)

    @property
    def tested_by(self) -> NDArray[np.int32]:
        """The number of the split that tests each row, or −1. ``groups`` has the group of each row, −1 for none. Group k,
        if there is a split k, is the test rows of this split; groups with higher numbers are not tested.
        """
        is_every_group_tested = self.n_groups == len(self.splits)
        return self.groups if is_every_group_tested else np.where(self.groups < len(self.splits), self.groups, -1)


@dataclass(frozen=True)
class SingleRows(FoldSet):
    """Tests every row with a model of all others. Splits are created only if there is no closed formula."""

    @classmethod
    def of(cls, labels: NDArray[np.int32]) -> SingleRows:
        """Returns the fold set in which every labelled row is a group of its own. ``labels`` has the class number of
        each row, −1 for none.
        """
        row_groups = np.full(len(labels), -1, dtype=np.int32)
        n_rows = int(np.count_nonzero(labels >= 0))
        row_groups[labels >= 0] = np.arange(n_rows)
        return cls(row_groups, n_groups=n_rows, splits=())

    @property
    def tested_by(self) -> NDArray[np.int32]:
        """The group of each row, which is the fold that tests it; −1 for rows without a label."""
        return self.groups

    def split_up(self) -> FoldSet:
        """Returns one split per row. Raises an error if there are too many rows."""
        if not 2 <= self.n_groups <= MOST_FOLDS:
            raise errors.BadSetting(
                f"folds='loo' has no closed formula for these settings, and with {self.n_groups:,} rows it is "
                f"too slow. Row by row, it works for two to {MOST_FOLDS:,} rows. Pass a number of folds, or how='mean'."
            )
        return _partition(self.groups)


@dataclass(frozen=True)
class ContentFolds:
    """Assigns rows to folds by their content, regardless of order: by one column, or by all columns that are counted."""

    n_folds: int
    seed: int
    id: str | None = None  # the column, None for all that are counted

    @classmethod
    def of(cls, folds: Any, seed: int, id: Any) -> ContentFolds:
        """Returns an assignment to ``folds`` folds. ``id`` is the column whose values identify rows that belong
        together, None for none. Raises an error if the number or the column is invalid.
        """
        is_number = isinstance(folds, (int, np.integer)) and not isinstance(folds, bool)
        requirement = f"a whole number from 2 to {MOST_FOLDS:,} when rows are assigned to folds by id= or by content"
        errors.require(is_number and 2 <= folds <= MOST_FOLDS, "folds", folds, requirement)
        expected_id = "the name of a column whose values identify the rows that belong together"
        errors.require(id is None or isinstance(id, str), "id", id, expected_id)
        return cls(int(folds), int(seed), id)

    @classmethod
    def of_settings(cls, folds: Any, seed: int, id: Any, deal: Any) -> ContentFolds | None:
        """Returns how rows are assigned to folds by their content, or None if they are assigned by position. ``folds``
        is the number of folds, ``id`` the column whose values identify rows that belong together (None for none), and
        ``deal`` is "content" or "stratified".
        """
        return None if id is None and deal == "stratified" else cls.of(folds, seed, id)

    def folds(self, batch: Batch, schema: Schema) -> NDArray[np.int32]:
        """Returns the fold of each row of a batch, from 0; identical rows get the same fold. ``id`` is the column that
        decides, None for all columns that ``schema`` counts.
        """
        return self.of_hashes(row_hashes(batch, schema, self.id))

    def of_hashes(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Returns the fold of each row, from 0, by a hash of its content."""
        mixed = mix(hashes * HASH_FACTOR + np.uint64(self.seed))  # of these the highest 53 bits are used
        return ((mixed >> np.uint64(11)) % np.uint64(self.n_folds)).astype(np.int32)


def rows_together(groups: Any, id: Any, deal: Any) -> Any:
    """Returns what keeps rows in the same fold: the groups for a splitter, or the name of the column ``id``. Raises an
    error if the settings of ``bb.cross_validate`` contradict each other. ``deal`` says how rows are assigned to folds:
    by "content", or "stratified" by class.
    """
    if deal not in get_args(Deal):
        raise errors.unknown_choice("deal", deal, get_args(Deal))
    by_content = id is not None or deal != "stratified"
    requirement = "omitted when rows are assigned to folds by id= or by content"
    errors.require(groups is None or not by_content, "groups", groups, requirement)
    return groups if id is None else id


def make_fold_sets(folds: Any, labels: NDArray[np.int32], seed: int, groups: Any) -> list[FoldSet]:
    """Returns the fold sets for ``folds``: a number, a fold for each row, a list of splits (training rows, test rows),
    or a scikit-learn splitter. There are several if splits test rows repeatedly. ``labels`` has the class number of
    each row, −1 for none, and ``groups`` the group of each row, which a splitter keeps together, or None.
    """
    is_splitter = hasattr(folds, "split") and not isinstance(folds, (str, bytes, type))
    if not is_splitter:
        refuse_groups(groups)
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        return [_partition(_stratify(labels, int(folds), seed))]
    if is_splitter:
        return list(_divide_into_fold_sets(_run_splitter(folds, labels, groups), labels))
    is_list = isinstance(folds, Iterable) and not isinstance(folds, (str, bytes, type))
    errors.require(is_list and (not isinstance(folds, np.ndarray) or folds.ndim != 0), "folds", folds, EXPECTED_FOLDS)
    fold_list = folds if hasattr(folds, "dtype") else list(folds)
    if isinstance(fold_list, list) and fold_list and all(_is_split(candidate) for candidate in fold_list):
        return list(_divide_into_fold_sets(fold_list, labels))
    return [_partition(_number_folds(fold_list, labels))]


def fold_set_of_numbers(fold: NDArray[Any], labels: NDArray[np.int32]) -> FoldSet:
    """Returns the fold set in which every fold is tested once. ``fold`` has the fold of each row, ``labels`` its class
    number; rows with −1 in either are in no fold. Raises an error if fewer than two folds have rows.
    """
    fold_of_row = np.where(labels >= 0, fold, -1)
    used_folds = np.unique(fold_of_row[fold_of_row >= 0])
    if len(used_folds) < 2:
        raise errors.bad_setting(
            "folds", f"{len(used_folds)} that has rows", "at least two folds; identical rows share a fold"
        )
    return _partition(_renumber(fold_of_row, used_folds))


def rank_folds(hashes: NDArray[np.uint64], labels: NDArray[np.int32], folds: int, seed: int) -> NDArray[np.int32]:
    """Returns the fold of every row, −1 for rows without a label. Labelled rows are assigned to folds in turn, in an
    order that depends on their content and the seed. ``hashes`` has a hash of each row's content, ``labels`` its class
    number, −1 for none; ``folds`` is the number of folds.
    """
    labelled_rows = np.flatnonzero(labels >= 0)
    if len(labelled_rows) < 2:
        raise errors.empty_data(
            None, f"{errors.many(len(labelled_rows), 'row')} with a label and a weight, but folds need two"
        )
    errors.require(
        2 <= folds <= len(labelled_rows), "folds", folds, f"from 2 to {len(labelled_rows):,}, the number of rows"
    )
    # The positions in ``labelled_rows``, sorted by hash.
    order = np.lexsort((labelled_rows, mix(hashes[labelled_rows] + np.uint64(seed))))
    fold_of_row = np.full(len(labels), -1, dtype=np.int32)
    fold_of_row[labelled_rows[order]] = np.arange(len(labelled_rows)) % int(folds)
    return fold_of_row


def describe_n_folds(fold_sets: Sequence[FoldSet]) -> str:
    """Returns the number of splits in all fold sets as text; ``3 × 10`` for three sets of ten folds."""
    split_counts = [len(fold_set.splits) for fold_set in fold_sets]
    if len(split_counts) > 1 and set(split_counts) == {split_counts[0]} != {1}:
        return f"{len(split_counts)} × {split_counts[0]}"
    return str(sum(split_counts))


def refuse_groups(groups: Any) -> None:
    """Raises an error if groups are given without a splitter that uses them."""
    allowed = "used with a splitter that keeps groups together, such as folds=GroupKFold()"
    errors.require(groups is None, "groups", "given", allowed)


def _is_split(candidate: Any) -> bool:
    """Whether this is a pair of training and test rows, each a list or an array."""
    is_pair = isinstance(candidate, (tuple, list)) and len(candidate) == 2
    return is_pair and all(hasattr(rows, "__len__") and not isinstance(rows, str) for rows in candidate)


def _run_splitter(splitter: Any, labels: NDArray[np.int32], groups: Any) -> Iterator[tuple[Int, Int]]:
    """Yields for each split of a scikit-learn splitter the numbers of its training and test rows among all rows, though
    the splitter sees only labelled rows. ``labels`` has the class number of each row, −1 for none; ``groups`` the group
    of each row, or None.
    """
    labelled_rows = np.flatnonzero(labels >= 0)
    labelled_groups = None if groups is None else _check_groups(groups, labels)[labelled_rows]
    # A split is two arrays of positions in ``labelled_rows``: training rows and test rows.
    for split in splitter.split(np.zeros((len(labelled_rows), 1)), labels[labelled_rows], labelled_groups):
        if not _is_split(split):
            raise errors.bad_setting(
                "folds", "a splitter of other objects", "a splitter that yields pairs of row numbers"
            )
        training_rows, test_rows = (
            labelled_rows[_check_row_numbers(positions, len(labelled_rows))] for positions in split
        )
        yield training_rows, test_rows


def _check_groups(groups: Any, labels: NDArray[np.int32]) -> NDArray[Any]:
    """Returns the groups of the rows as an array. Raises an error unless they are one number or name per row, none
    missing. ``labels`` has an entry per row.
    """
    requirement = "a column, or one number or name per row, with none missing"
    is_list = hasattr(groups, "__len__") and not isinstance(groups, (str, bytes)) and getattr(groups, "ndim", 1) == 1
    errors.require(is_list, "groups", groups, requirement)
    _check_names("groups", groups, len(labels), requirement)
    return np.asarray(groups)


def _check_names(setting: str, names: Any, n_rows: int, requirement: str) -> None:
    """Raises an error unless there are only numbers or only names, one per row and none missing. ``setting`` and
    ``requirement`` are for messages.
    """
    if len(names) != n_rows:
        raise errors.length_mismatch(setting, len(names), n_rows)
    is_masked = isinstance(names, np.ma.MaskedArray) and bool(np.ma.getmaskarray(names).any())
    values: list[Any] = [None] if is_masked else np.asarray(names, dtype=object).tolist()
    are_scalars = all(
        isinstance(value, (bool, int, float, str, np.generic)) or hasattr(value, "isoformat") for value in values
    )
    if not are_scalars or any(value != value for value in values):
        raise errors.bad_setting(setting, "an array with NaN or values other than numbers and names", requirement)
    if len({isinstance(value, str) for value in values}) > 1:
        raise _mixed_names(setting)


def _mixed_names(setting: str) -> errors.BadSetting:
    """Returns an error that says that a setting has both numbers and names."""
    return errors.bad_setting(setting, "an array of numbers and names", "an array of only numbers or only names")


def _check_row_numbers(rows_or_mask: Any, n_rows: int) -> Int:
    """Returns the row numbers that the user passes as such or as a mask of rows. Raises an error if they are not from 0
    to ``n_rows`` − 1.
    """
    try:
        row_numbers = np.asarray(rows_or_mask)
    except ValueError:  # lists of different lengths
        row_numbers = np.empty((0, 0))
    if row_numbers.ndim != 1 or (len(row_numbers) and row_numbers.dtype.kind not in "biu"):
        raise errors.bad_setting("folds", "a split of values that are not row numbers", EXPECTED_FOLDS)
    if row_numbers.dtype.kind == "b":
        # A mask of another length becomes a number that is refused below.
        row_numbers = np.flatnonzero(row_numbers) if len(row_numbers) == n_rows else np.array([n_rows])
    if len(row_numbers) and not 0 <= row_numbers.min() <= row_numbers.max() < n_rows:
        raise errors.bad_setting("folds", "a split with invalid row numbers", f"row numbers from 0 to {n_rows - 1:,}")
    return row_numbers.astype(np.int64)


EXPECTED_FOLDS = (
    "a number of folds, at least 2, a fold for each row, 'loo', or a scikit-learn splitter such as GroupKFold()"
)


def _stratify(labels: NDArray[np.int32], folds: int, seed: int) -> NDArray[np.int32]:
    """Returns the fold of every labelled row, −1 for others: the rows of a class are assigned to all folds in turn, in
    random order. ``labels`` has the class number of each row, −1 for none; ``folds`` is the number of folds.
    """
    requirement = EXPECTED_FOLDS if folds < 2 else f"{MOST_FOLDS:,} at most, or 'loo' for one per row"
    errors.require(2 <= folds <= MOST_FOLDS, "folds", folds, requirement)
    n_rows = int(np.count_nonzero(labels >= 0))
    errors.require(folds <= n_rows, "folds", folds, f"at most the number of labelled rows, {n_rows:,}")
    rng = np.random.default_rng(seed)
    random_orders = rng.permuted(np.tile(np.arange(folds, dtype=np.int32), (N_ORDERS, 1)), axis=1)  # orders × folds
    n_classes = int(labels.max(initial=-1)) + 1
    threads = n_threads(None)
    folds_by_class = list[NDArray[np.int32]]()  # the folds of the rows of class 0, then of class 1, and so on
    next_fold = int(rng.integers(folds))  # the first fold that gets one row more of the class
    for n_class_rows in _core.count_classes(labels, n_classes, None, threads).value.astype(np.int64).tolist():
        n_passes, n_left = divmod(n_class_rows, folds)  # passes through all folds, and rows left over
        folds_by_class.append(random_orders.take(rng.integers(N_ORDERS, size=n_passes), axis=0).reshape(-1))
        folds_by_class.append(rng.permutation((next_fold + np.arange(n_left)) % folds).astype(np.int32))
        next_fold = (next_fold + n_left) % folds
    fold_numbers = np.full(len(labels), -1, dtype=np.int32)
    rows_by_class, _ = _core.by_class(labels, n_classes, threads)  # the row numbers of class 0, then of class 1, …
    fold_numbers[rows_by_class] = np.concatenate(folds_by_class)
    return fold_numbers


def _number_folds(folds: Any, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Returns the number of each row's fold, from 0 without gaps; −1 for rows without a label. ``folds`` has a fold
    number or name per row, ``labels`` its class number, −1 for none.
    """
    _check_names("folds", folds, len(labels), EXPECTED_FOLDS)
    try:
        # The distinct folds, and the index of each row's fold among them.
        names, fold_numbers = np.unique(np.asarray(folds), return_inverse=True)
    except TypeError:
        raise _mixed_names("folds") from None
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise errors.bad_setting("folds", "an array with NaN or infinite numbers", "a fold for each row")
    fold_numbers = np.where(labels >= 0, fold_numbers.reshape(-1), -1).astype(np.int32)
    used_folds = np.unique(fold_numbers[fold_numbers >= 0])
    if not 2 <= len(used_folds) <= MOST_FOLDS:
        different = f"an array of {len(used_folds):,} different folds"
        raise errors.bad_setting("folds", different, "an array with at least two folds")
    return _renumber(fold_numbers, used_folds)


def _renumber(fold_of_row: NDArray[Any], used_folds: NDArray[Any]) -> NDArray[np.int32]:
    """Returns the index of each row's fold among the used folds, which are sorted; −1 stays."""
    return np.where(fold_of_row >= 0, np.searchsorted(used_folds, fold_of_row), -1).astype(np.int32)


def _partition(folds: NDArray[np.int32]) -> FoldSet:
    """Returns the fold set in which each fold is tested once with a model of all other folds: fold k is group k, which
    split k tests. ``folds`` has the fold of each row, from 0 without gaps, −1 for none.
    """
    n_folds = int(folds.max()) + 1
    is_learned = ~np.eye(n_folds, dtype=np.bool_)  # splits × groups: every group but the split's own
    return FoldSet(
        folds,
        n_folds,
        tuple(Split(test_rows, is_learned[fold]) for fold, test_rows in enumerate(rows_by_class(folds, n_folds))),
    )


def _divide_into_fold_sets(splits: Iterable[Any], labels: NDArray[np.int32]) -> Iterator[FoldSet]:
    """Yields fold sets that together have all splits, which are pairs of training and test rows (numbers or masks). A
    new fold set begins when a row would be tested twice. ``labels`` has the class number of each row, −1 for none; rows
    without a label are dropped. Warns if a split tests rows that it learns from.
    """
    splits_of_set: list[tuple[Int, Int]] = []  # of the fold set that is being filled
    is_tested = np.zeros(len(labels), dtype=np.bool_)  # whether it tests each row
    n_splits = 0
    is_overlapping = False
    for training_rows, test_rows in splits:
        labelled_training = _numbers_with_label(training_rows, labels)
        labelled_test = _numbers_with_label(test_rows, labels)
        n_splits += 1
        is_overlapping = is_overlapping or bool(np.isin(labelled_test, labelled_training, assume_unique=True).any())
        if not len(labelled_test) or not len(labelled_training):
            requirement = "a split with labelled rows both for training and for testing"
            raise errors.bad_setting("folds", f"split {n_splits}", requirement)
        if is_tested[labelled_test].any():
            yield _build_fold_set(splits_of_set, labels)
            splits_of_set = []
            is_tested[:] = False
        is_tested[labelled_test] = True
        splits_of_set.append((labelled_training, labelled_test))
    if is_overlapping:
        errors.warn(
            "a split tests rows that it also learns from, so its figures are not those of a model "
            "that has not seen the rows."
        )
    errors.require(n_splits, "folds", "no splits", EXPECTED_FOLDS)
    yield _build_fold_set(splits_of_set, labels)


def _numbers_with_label(rows_or_mask: Any, labels: NDArray[np.int32]) -> Int:
    """Returns the numbers of the labelled rows among those that a split trains on, or tests, in ascending order; the
    user passes them as numbers or as a mask. Raises an error if a row occurs twice. ``labels`` has the class number of
    each row, −1 for none.
    """
    row_numbers = _check_row_numbers(rows_or_mask, len(labels))
    distinct_numbers = np.unique(row_numbers)
    if len(distinct_numbers) < len(row_numbers):
        requirement = "each row at most once in each part of a split"
        raise errors.bad_setting("folds", "a split that contains a row twice", requirement)
    return distinct_numbers[labels[distinct_numbers] >= 0]


def _build_fold_set(splits_of_set: list[tuple[Int, Int]], labels: NDArray[np.int32]) -> FoldSet:
    """Returns a fold set of splits that are pairs of training and test row numbers, in their order. No row is tested
    twice. ``labels`` has the class number of each row, −1 for none.

    The test rows of split k form group k, and all other labelled rows form the last group. A split's training rows are
    stored as ``is_learned``, a boolean per group, if they are whole groups, otherwise as row numbers in ``rows``.
    """
    groups = np.where(labels >= 0, len(splits_of_set), -1).astype(np.int32)  # of each row
    for fold, (_, test_rows) in enumerate(splits_of_set):
        groups[test_rows] = fold
    group_sizes = np.bincount(groups[groups >= 0], minlength=len(splits_of_set) + 1)
    splits = []
    for training_rows, test_rows in splits_of_set:
        n_training_by_group = np.bincount(groups[training_rows], minlength=len(group_sizes))
        if np.all((n_training_by_group == 0) | (n_training_by_group == group_sizes)):
            splits.append(Split(test_rows, is_learned=n_training_by_group > 0))
        else:
            splits.append(Split(test_rows, is_learned=None, rows=training_rows))
    return FoldSet(groups, len(group_sizes), tuple(splits))


def training_rows(split: Split, fold_set: FoldSet) -> Int:
    """Returns the numbers of the rows that a split of the fold set learns from, ascending. Raises an error if there are
    fewer than two.

    ``fold_set.groups`` has the group of each row, −1 for none. The split has its training rows as row numbers in
    ``rows``; if that is None, ``is_learned`` has a boolean per group.
    """
    is_in_group = fold_set.groups >= 0
    row_numbers = split.rows
    if row_numbers is None:
        assert split.is_learned is not None
        row_numbers = np.flatnonzero(is_in_group & split.is_learned[np.where(is_in_group, fold_set.groups, 0)])
    if len(row_numbers) < 2:
        raise errors.bad_setting("folds", "a split that learns from one row", "at least two rows to choose settings")
    return row_numbers
