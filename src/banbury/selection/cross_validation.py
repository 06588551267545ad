"""Exact cross-validation: every fold's model is what all rows add up to, without the fold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions.bag import TextParameters
from banbury.distributions.family import Choice, How, check_positive
from banbury.naive_bayes import ClassPrior, Model, check_seed, estimate, score_each
from banbury.readers import Remembering
from banbury.schema import Features, Missing, Schema
from banbury.selection import leave_one_out
from banbury.selection.dataset import Dataset, chooses, held
from banbury.selection.folds import MOST_FOLDS, Round, Split, refuse_groups, rounds
from banbury.selection.groups import Groups
from banbury.selection.results import CrossValidation
from banbury.tally import Label, Tally

FEW = 32
TOGETHER = 1 << 20  # rows whose columns are made ready at a time, for all models
INNER_FOLDS = 10


def cross_validate(
    data: Any,
    target: Any = None,
    *,
    folds: Any = 10,
    groups: Any = None,
    estimator: Any = None,
    how: How = "mean",
    alpha: float | Iterable[float] | Literal["auto"] = 1.0,
    class_prior: ClassPrior = None,
    features: Features | Literal["choose"] = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "skip",
    seed: int = 0,
    threads: int | None = None,
    **reading: Any,
) -> CrossValidation:
    """How good the model is on rows it has not seen, for the price of one count and one scoring.

    ``folds``: a number (the rows of each class are dealt out in turn, in an order that ``seed`` settles), a fold for each row,
    "loo" to leave out one row at a time, a scikit-learn splitter (``groups`` are given to it), or pairs of row numbers to learn
    from and to test. The rows of each fold are counted apart, and a fold is scored by the model of all rows minus its own,
    which is exactly the model of the others: vocabulary, smoothing, bins and bandwidths too.

    ``estimator``: a classifier of Banbury, fitted or not, whose parameters then say all that follows; the answer is that of
    scikit-learn's ``cross_val_predict``, from one count. ``how``, ``alpha`` and ``class_prior`` are those of ``bb.estimate``; the
    rest is that of ``bb.count``. With several ``alpha``, "auto", or ``features="choose"``, ``bb.tune`` chooses anew within the
    rows that each fold learns from, so that the choice is
    validated as well.

    >>> import banbury as bb
    >>> bb.cross_validate(bb.datasets.play_tennis(), target="play", folds=7)
    7-fold cross-validation: 14 rows, 2 classes
      accuracy           0.5714 ± 0.1304  (random guess 0.5000, majority 0.6429)
      log loss           0.7346
      Brier score        0.2516
      macro F1           0.4750
      AUC                0.5444
      calibration error  0.2090
      class  precision  recall      F1        rows  most often taken for
      'no'      0.3333  0.2000  0.2500           5  'yes' (4)
      'yes'     0.6364  0.7778  0.7000           9  'no' (2)
    """
    check_seed(seed)
    if estimator is not None:
        given = {"how": how != "mean", "alpha": not _is(alpha, 1.0), "class_prior": class_prior is not None}
        given |= {"features": not _is(features, "auto"), "schema": schema is not None, "missing": missing != "skip"}
        for name, said in given.items():
            if said:
                raise errors.bad_setting(name, "given", "left out when an estimator is given, which has its own")
        if isinstance(estimator, type) or not hasattr(estimator, "validation"):
            given_one = f"{type(estimator).__module__}.{type(estimator).__name__}"
            raise errors.bad_setting("estimator", given_one, "one of Banbury's, such as bb.MultinomialNB()")
        data, own = estimator.validation(data, target)
        own = {"seed": seed, "threads": threads, **own}
        return cross_validate(data, target, folds=folds, groups=groups, weights=weights, **own, **reading)
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    rows = held(data, target, groups=groups, **counting, **reading)
    settings: dict[str, Any] = {"how": how, "alpha": alpha, "class_prior": class_prior, "seed": seed}
    tuned = chooses(features) or several(alpha)
    if isinstance(folds, str) and folds == "loo":
        if tuned:
            raise errors.bad_setting("folds", folds, "a number of folds, where settings are chosen within each")
        refuse_groups(groups)
        return _left_one_out(rows, settings)
    splits = rounds(folds, rows.labels, seed, rows.groups)
    what = f"{_told(splits)}-fold cross-validation"
    if tuned:
        settings |= {"features": "choose" if chooses(features) else "auto"}
        what += ", tuned within each fold"
    return _validated(rows, splits, settings, what)


def _is(given: Any, default: Any) -> bool:
    """Whether a setting is the default."""
    return given is default or (isinstance(given, type(default)) and given == default)


def several(alpha: Any) -> bool:
    """Whether a setting is to be chosen: from those given, or "auto"."""
    return isinstance(alpha, Iterable) and not (isinstance(alpha, np.ndarray) and alpha.ndim == 0)


def _told(splits: Sequence[Round]) -> str:
    """How many folds, and how many times."""
    each = [len(one.splits) for one in splits]
    return f"{len(each)} × {each[0]}" if len(each) > 1 and set(each) == {each[0]} != {1} else str(sum(each))


def _left_one_out(rows: Dataset, settings: Mapping[str, Any]) -> CrossValidation:
    """By formula where every family has one, and row by row otherwise."""
    check_positive("alpha", settings["alpha"], zero=True)
    choice = Choice(settings["how"], float(settings["alpha"]), int(settings["seed"]))
    if not leave_one_out.supported(rows, choice):
        n_rows = int(np.count_nonzero(rows.labels >= 0))
        if not 2 <= n_rows <= MOST_FOLDS:
            raise errors.too_many_to_leave_out(n_rows, MOST_FOLDS)
        each = np.full(rows.n_rows, -1, dtype=np.int64)
        each[rows.labels >= 0] = np.arange(n_rows)
        splits = rounds(each, rows.labels, 0, None)
        return _validated(rows, splits, settings, "leave-one-out cross-validation")
    counted = rows.labels >= 0 if rows.weights is None else (rows.labels >= 0) & (rows.weights > 0)
    if np.count_nonzero(counted) < 2:
        raise errors.bad_setting("folds", "loo", "a way to leave out some of two rows at least; there is one")
    tested, scores, impossible, kept = leave_one_out.left_one_out(rows, settings)
    PendingWarnings(impossible).warn(settings["how"])
    weights = None if rows.weights is None else rows.weights[tested]
    notes = (f"of all rows, not of all but one: {', '.join(kept)}",) if kept else ()
    numbers = np.arange(len(tested), dtype=np.int32)
    what = "leave-one-out cross-validation"
    posteriors = normalised(scores)
    return CrossValidation(rows.classes, tested, numbers, rows.labels[tested], posteriors, weights, what, notes)


def counted_and_validated(
    rows: Dataset, folds: Any, settings: Mapping[str, Any]
) -> tuple[Tally, Real, CrossValidation]:
    """The tally of all rows, and their cross-validation with its log posteriors: one counting pass for all of it."""
    tally, scores, tested = left_out(rows, folds, settings)
    (each,) = rounds(folds, rows.labels, int(settings["seed"]), None)
    weights = None if rows.weights is None else rows.weights[tested]
    what = f"{len(each.splits)}-fold cross-validation"
    found = CrossValidation(
        rows.classes, tested, each.groups[tested], rows.labels[tested], normalised(scores), weights, what
    )
    return replace(tally, skipped=int(np.count_nonzero(rows.labels < 0))), scores, found


def left_out(rows: Dataset, folds: Any, settings: Mapping[str, Any]) -> tuple[Tally, Real, Int]:
    """The tally of all rows, and log P(class | row) of each by models that have not seen it: one counting pass for both.

    Also the rows that were scored.
    """
    (each,) = rounds(folds, rows.labels, int(settings["seed"]), None)
    groups = Groups.of(rows, each.groups, each.n_groups)
    total = groups.total
    tested, _, places = _placed(rows, [each], [split.test for split in each.splits])
    scores = np.empty((len(tested), len(rows.classes)))
    _score_all(rows, each, groups, settings, "log_posterior", scores, places, PendingWarnings())
    return total, scores, tested


def normalised(log_joint: Real) -> Real:
    """P(class | row) of log joint probabilities; equal shares in a row in which every class is impossible."""
    top = _over_classes(np.maximum, log_joint)
    impossible = np.isneginf(top)
    if impossible.any():
        log_joint = np.where(impossible[:, None], 0.0, log_joint)
        top = np.where(impossible, 0.0, top)
    shares = np.exp(log_joint - top[:, None])
    shares /= _over_classes(np.add, shares)[:, None]
    return shares


def _over_classes(join: Any, numbers: Real) -> Real:
    """A ufunc over the classes of each row; of few classes one after the other, which NumPy does faster."""
    if numbers.shape[1] > FEW:
        return np.asarray(join.reduce(numbers, axis=1))
    result = numbers[:, 0].copy()
    for c in range(1, numbers.shape[1]):
        join(result, numbers[:, c], out=result)
    return result


def _validated(rows: Dataset, splits: Sequence[Round], settings: Mapping[str, Any], what: str) -> CrossValidation:
    tests = [split.test for each in splits for split in each.splits]
    tested, numbers, places = _placed(rows, splits, tests)
    posteriors, start, told = np.empty((len(tested), len(rows.classes))), 0, PendingWarnings()
    for each in splits:
        stop = start + len(each.splits)
        score(rows, each, settings, "posterior", posteriors, places[start:stop], told)
        start = stop
    told.warn(settings["how"])
    weights = None if rows.weights is None else rows.weights[tested]
    if weights is not None and not weights.any():
        raise errors.tested_nothing()
    return CrossValidation(rows.classes, tested, numbers, rows.labels[tested], posteriors, weights, what)


def _placed(rows: Dataset, splits: Sequence[Round], tests: list[Int]) -> tuple[Int, NDArray[np.int32], list[Int]]:
    """The rows that are tested, the split of each, and the places of each test among them; of one round in order."""
    n_tested = sum(map(len, tests))
    if len(splits) == 1 and n_tested == rows.n_rows:
        return np.arange(rows.n_rows), splits[0].groups, tests
    tested = np.concatenate(tests)
    numbers = np.repeat(np.arange(len(tests), dtype=np.int32), [len(test) for test in tests])
    if len(splits) > 1:
        ends = np.cumsum([0, *map(len, tests)])
        return tested, numbers, [np.arange(a, b) for a, b in pairwise(ends)]
    inside = np.zeros(rows.n_rows, dtype=np.bool_)
    inside[tested] = True
    place = np.cumsum(inside) - 1
    folds = np.empty(n_tested, dtype=np.int32)
    folds[place[tested]] = numbers
    return np.flatnonzero(inside), folds, [place[test] for test in tests]


@dataclass
class PendingWarnings:
    """What is to be told once, however many folds there are."""

    impossible: int = 0  # rows that are impossible in every class
    # Columns none of whose words is left, and how many there were.
    wordless: dict[str, int] = field(default_factory=dict)

    def note(self, model: Model) -> None:
        bags = {group.features[0].name: group for group in model.parameters if isinstance(group, TextParameters)}
        for feature, words in zip(model.tally.schema.texts, model.tally.words, strict=True):
            if feature.name in bags and words.table.n_words and not bags[feature.name].n_words:
                self.wordless[feature.name] = words.table.n_words

    def warn(self, how: str) -> None:
        for column, n_words in self.wordless.items():
            errors.warn(errors.no_words_left(column, n_words))
        if self.impossible:
            errors.warn(errors.all_impossible(self.impossible, f"how={how!r}"))


def score(
    rows: Dataset,
    each: Round,
    settings: Mapping[str, Any],
    want: str,
    out: Real,
    places: Sequence[Int],
    told: PendingWarnings,
) -> None:
    """Puts the scores of every split's test, rows × classes, to its places: one counting pass, one scoring pass."""
    if "features" in settings:
        for split, place in zip(each.splits, places, strict=True):
            model = _tuned(rows, split, each, settings)
            told.impossible += answer(rows, split.test, replace(model, threads=rows.threads), want, out, place)
        return
    _score_all(rows, each, Groups.of(rows, each.groups, each.n_groups), settings, want, out, places, told)


def _tuned(rows: Dataset, split: Split, each: Round, settings: Mapping[str, Any]) -> Model:
    """The model of the settings that are best for the rows that a split learns from, by folds of those rows."""
    from banbury.selection.tuning import tune

    inside = each.groups >= 0
    chosen = split.rows
    if chosen is None:
        assert split.learned is not None
        chosen = np.flatnonzero(inside & split.learned[np.where(inside, each.groups, 0)])
    if len(chosen) < 2:
        raise errors.bad_setting("folds", "a split that learns from one row", "two rows at least to choose settings by")
    return tune(rows.only(chosen), folds=min(INNER_FOLDS, len(chosen)), **settings).model


def _score_all(
    rows: Dataset,
    each: Round,
    groups: Groups,
    settings: Mapping[str, Any],
    want: str,
    out: Real,
    places: Sequence[Int],
    told: PendingWarnings,
) -> None:
    def model_of(number: int) -> Model:
        tally = learned(rows, each.splits[number], groups, number)
        model = estimate(tally, **fitting_prior(settings, rows.classes, tally.classes))
        told.note(model)
        return model

    numbers = range(len(each.splits))
    if not rows.schema.texts:
        models = [model_of(number) for number in numbers]
        if all(model.classes == rows.classes for model in models):
            _score_each(rows, each, models, want, out, places, told)
            return
    # A model of text is large: one at a time, and all rows of its test.
    workers = min(rows.threads, len(each.splits))

    def whole(number: int) -> int:
        model = replace(model_of(number), threads=rows.threads // workers or 1)
        return answer(rows, each.splits[number].test, model, want, out, places[number])

    with ThreadPoolExecutor(workers) as pool:
        told.impossible += sum(pool.map(errors.led_from_here(whole), numbers))


def _score_each(
    rows: Dataset,
    each: Round,
    models: Sequence[Model],
    want: str,
    out: Real,
    places: Sequence[Int],
    told: PendingWarnings,
) -> None:
    """Every row by the model of its own split, in the order in which they lie."""
    in_place = len(out) == rows.n_rows and all(
        place is split.test for place, split in zip(places, each.splits, strict=True)
    )
    found = out if in_place else np.empty((rows.n_rows, out.shape[1]))
    which = each.tested_by
    for batch, start in zip(rows.batches, rows.starts.tolist(), strict=False):
        for first in range(0, batch.n_rows, TOGETHER):
            part = Remembering(batch.cut(first, first + TOGETHER))
            at = slice(start + first, start + first + part.n_rows)
            told.impossible += score_each(models, part, which[at], want, rows.threads, found[at])
    if not in_place:
        for split, place in zip(each.splits, places, strict=True):
            out[place] = found[split.test]


def fitting_prior(settings: Mapping[str, Any], classes: Sequence[Label], known: Sequence[Label]) -> Mapping[str, Any]:
    """The settings, with given probabilities of all classes shared among those that are known."""
    prior = settings["class_prior"]
    if len(known) == len(classes) or prior is None or isinstance(prior, (str, int, float)):
        return settings
    try:
        given = dict(prior) if isinstance(prior, Mapping) else dict(zip(classes, prior, strict=True))
        kept = {name: float(given[name]) for name in known}
    except (KeyError, TypeError, ValueError):
        return settings  # estimating says what is wrong with it
    total = sum(kept.values())
    if not abs(sum(float(p) for p in given.values()) - 1.0) <= 1e-9:
        return settings
    if not total > 0:
        raise errors.bad_setting(
            "class_prior",
            prior,
            f"one that leaves some class possible where only {errors.listed(map(repr, known))} are learned",
        )
    return {**settings, "class_prior": {name: p / total for name, p in kept.items()}}


def learned(rows: Dataset, split: Split, groups: Groups, number: int, keep: bool = False) -> Tally:
    """The tally of what a split learns from; ``keep``: several models will be made of it."""
    if split.learned is not None:
        return groups.learned(split.learned, number, keep, every=rows.any_idle)
    assert split.rows is not None
    chosen = np.full(rows.n_rows, -1, dtype=np.int32)
    chosen[split.rows] = 0
    return Groups(rows.count(chosen, 1, groups.counted.schema), rows.classes, 1).total


def answer(rows: Dataset, test: Int, model: Model, want: str, out: Real, place: Int) -> int:
    """Puts what a model says of rows to their places, in the order of all classes: one that it does not know is impossible.

    Returns how many rows are impossible in every class.
    """
    start = impossible = 0
    for batch in rows.take(test):
        at = place[start : start + batch.n_rows]
        found, lost = model._kernel(batch, model.parameters, want)
        impossible += lost
        if model.classes == rows.classes:
            out[at] = found
        else:
            out[at] = 0.0 if want == "posterior" else -np.inf
            columns = np.array([rows.classes.index(name) for name in model.classes])
            out[at[:, None], columns] = found
        start += batch.n_rows
    return impossible


def answers(rows: Dataset, test: Int, model: Model, want: str) -> Real:
    """The same, rows × classes."""
    out = np.empty((len(test), len(rows.classes)))
    answer(rows, test, model, want, out, np.arange(len(test)))
    return out
