"""Recipes for sets of labels: a yes or no for every label, plain or weighed, given where it reaches a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Int, Real
from banbury.families.bags.text import label_words
from banbury.families.family import How
from banbury.labels import LabelModel, LabelWeighing, Thresholds
from banbury.labels.calibration import Flags, honest_loss
from banbury.labels.model import labels_of, of_features
from banbury.labels.weighing import MOST_CELLS, LabelTexts, bags_of, learn_labels, words_of
from banbury.labels.words import lexicon_of
from banbury.model.naive_bayes import choice_of, is_auto
from banbury.quality.recipes import Plain, R, Recipe, Weighed, recipe_of, with_text
from banbury.rows.folds import Round
from banbury.rows.labelled import MemoryRows
from banbury.rows.scoring import PendingWarnings, leave_out, score_rows
from banbury.sums import Words
from banbury.tally.label_sets import EVERY
from banbury.tally.schema import Schema
from banbury.tally.table import MIX, mix
from banbury.tally.tally import Label, Tally
from banbury.weighing.rows import merge_equal

FOLDS = 5  # in which rows are left out to choose thresholds and α
WEIGHED_FOLDS = 3  # in which rows are left out to weigh words
ALPHAS = (1.0, 0.1, 0.01)  # that "auto" tries
TELLING = 200  # words of each label that "auto" tries beside them
CELLS = 1 << 24  # rows × labels that thresholds are chosen on


@dataclass(frozen=True)
class LabelRecipe(Recipe):
    """How rows become a model of labels; ``threshold`` and ``calibrate`` are those of ``bb.MultiLabelClassifier``."""

    how: How = "mean"
    threshold: Any = "f1"
    calibrate: str | None = None
    seed: int = 0

    def answer(self, rows: MemoryRows, splits: Round, pending: PendingWarnings) -> Iterator[tuple[Real, Thresholds]]:
        """For each split the log-odds of the rows it tests, and its thresholds, by what it learns from."""
        rows = replace(rows, schema=rows.tally.schema)  # all rows settle how finely numbers are kept
        for number, split in enumerate(splits.splits):
            model = replace(self.learn(rows.training_rows(splits, number)), threads=rows.threads)
            odds, _ = score_rows(rows, split.test, model, "log_odds")
            yield odds, model.thresholds.of(rows.names)

    def leave_out(self, rows: Any, splits: Round, want: str, sink: Any, pending: PendingWarnings) -> None:
        for number, (odds, thresholds) in enumerate(self.answer(rows, splits, pending)):
            test = splits.splits[number].test
            sink.put(test, np.full(len(test), number, dtype=np.int32), thresholds.honest(odds))
            sink.decide(number, thresholds)

    def _choose(self, scores: LabelScores, some: Int) -> Thresholds:
        """Thresholds by some of the rows that were left out."""
        if (self.threshold is None and self.calibrate is None) or not len(some):
            return Thresholds.half(scores.labels)
        weights = None if scores.weights is None else scores.weights[some]
        left_out = scores.odds[some], scores.flags[some], weights
        return Thresholds.choose(scores.labels, *left_out, self.threshold, self.calibrate)

    def _with_thresholds(self, model: LabelModel, rows: MemoryRows, scores: LabelScores) -> LabelModel:
        """The model with thresholds that are chosen by all rows that were left out."""
        if self.threshold is None and self.calibrate is None:
            return model
        order = np.argsort(rows.hashes[scores.rows], kind="stable")  # sums of other orders may differ in a last bit
        return model.with_thresholds(self._choose(scores, order))


@dataclass(frozen=True)
class PlainLabels(LabelRecipe):
    """Naive Bayes for every label as the rows are counted; ``alpha="auto"`` is chosen of a few on rows that are left out.

    ``telling``: of each label the n words that tell most of it; ``text`` has settings of ``bb.Text`` for all columns of text.
    """

    alpha: Any = 1.0
    telling: int | None = None
    text: Mapping[str, Any] | None = None
    name: ClassVar[str] = Plain.name

    def check(self) -> None:
        """Raises where a setting is not one."""
        choice_of(self.how, 1.0 if is_auto(self.alpha) else self.alpha, self.seed)

    def under(self, rows: R) -> R:
        return rows.with_schema(with_text(rows.schema, self.text)) if self.text else rows

    def estimate(self, tally: Tally, classes: Sequence[Label]) -> LabelModel:
        """The model of a tally, with thresholds of one half."""
        if self.text:
            tally = replace(tally, schema=with_text(tally.schema, self.text))
        choice = choice_of(self.how, self.alpha, 0)
        return LabelModel(tally, choice, Thresholds.half(labels_of(tally)), telling=self.telling)

    def reads_whole_tables(self, counted: Tally) -> bool:
        """Whether words are not scored for all labels at once somewhere, so that each label needs tables of its own."""
        choice = choice_of(self.how, self.alpha, 0)
        schema = with_text(counted.schema, self.text)
        in_tables = [
            name.features for name, sums in zip(schema.groups, counted.sums, strict=True) if isinstance(sums, Words)
        ]
        return any(label_words(f.family, choice) is None for features in in_tables for f in features)

    def candidates(self, schema: Schema) -> list[PlainLabels]:
        """What is tried: this α, or a few, and the words that tell most of each label."""
        if not is_auto(self.alpha):
            return [self]
        tried = [replace(self, alpha=alpha) for alpha in ALPHAS]
        choice = choice_of(self.how, 1.0, 0)
        texts = any(label_words(f.family, choice) is not None for f in with_text(schema, self.text).features)
        return [*tried, replace(self, alpha=1.0, telling=TELLING)] if texts else tried

    def learn(self, rows: MemoryRows) -> LabelModel:
        candidates = self.candidates(rows.schema)
        chooses = self.threshold is not None or self.calibrate is not None or len(candidates) > 1
        if not chooses or not _differ(rows):
            return candidates[0]._learn_counts(rows)
        splits = _fewer_tests(rows, rows.round_of(alike_folds(rows, FOLDS)))
        every = LabelScores.of(rows, splits, candidates, PendingWarnings())
        best = 0 if len(every) == 1 else int(np.argmin([scores.loss(slice(None)) for scores in every]))
        return self._with_thresholds(candidates[best]._learn_counts(rows), rows, every[best])

    def _learn_counts(self, rows: MemoryRows) -> LabelModel:
        tally = rows.tally
        if not labels_of(tally):
            raise errors.empty_data(None, "no row has a label, so there is nothing to predict")
        return self.estimate(tally, rows.classes)

    def answer(self, rows: MemoryRows, splits: Round, pending: PendingWarnings) -> Iterator[tuple[Real, Thresholds]]:
        """Where there are several candidates, that is taken for each split that loses least on the rows of others."""
        candidate_scores = LabelScores.of(rows, splits, self.candidates(rows.schema), pending)
        for number in range(len(splits.splits)):
            is_tested = candidate_scores[0].split == number
            untested = np.flatnonzero(~is_tested)
            best = candidate_scores[0]
            if len(candidate_scores) > 1:
                best = min(candidate_scores, key=lambda scores: scores.loss(untested))
            yield best.odds[np.flatnonzero(is_tested)], self._choose(best, untested)

    def to_dict(self) -> dict[str, Any]:
        """The settings, as JSON can hold them."""
        words = {"alpha": self.alpha} if self.telling is None else {"telling": self.telling}
        return {**words, "how": self.how, **({"text": dict(self.text)} if self.text else {})}


@dataclass(frozen=True)
class WeighedLabels(LabelRecipe):
    """Words and cells weighed for all labels together; rows that are all alike are counted plainly."""

    name: ClassVar[str] = Weighed.name
    weighs: ClassVar[bool] = True

    def rows_from(self, rows: Any, n: int | None = None) -> MemoryRows:
        held: MemoryRows = super().rows_from(rows, n)
        errors.require(held.tally_of_rest is None, "weigh", True, "omitted when the rows are a sample")
        return held

    def answer(self, rows: MemoryRows, splits: Round, pending: PendingWarnings) -> Iterator[tuple[Real, Thresholds]]:
        requirement = "False when all rows are identical, because none can be held out"
        errors.require(_differ(rows), "weigh", True, requirement)
        return super().answer(rows, splits, pending)

    def learn(self, rows: MemoryRows) -> LabelModel:
        model = LabelModel.of(rows.tally, how=self.how)
        if not _differ(rows):
            return model
        weighing, scores = weigh_labels(model, rows, self.seed)
        return self._with_thresholds(model.weighed(weighing), rows, scores)

    def to_dict(self) -> dict[str, Any]:
        """The settings, as JSON can hold them."""
        return {"weigh": True}


@dataclass(frozen=True, eq=False)
class LabelScores:
    """The log-odds of rows that were left out, (rows, labels); the rows, the split that tests each, and their labels. A sink."""

    labels: tuple[Label, ...]
    rows: Int
    split: NDArray[Any]
    flags: Flags
    weights: Real | None
    odds: Real

    @classmethod
    def of(
        cls, rows: MemoryRows, splits: Round, recipes: Sequence[PlainLabels], pending: PendingWarnings
    ) -> list[LabelScores]:
        """By the model of each recipe of what each split learns from."""
        assert rows.sets is not None
        tested = np.sort(np.concatenate([split.test for split in splits.splits]))
        weights = None if rows.weights is None else rows.weights[tested]
        common = rows.names, tested, splits.groups[tested], rows.sets.take(tested).flags(rows.names), weights
        every = [cls(*common, np.empty((len(tested), len(rows.names)))) for _ in recipes]
        leave_out(rows, splits, recipes, "log_odds", every, pending)
        return every

    def put(self, rows: Int | slice, splits: Any, scores: Real) -> None:
        self.odds[np.searchsorted(self.rows, rows)] = scores  # type: ignore[arg-type]

    def loss(self, some: Int | slice) -> float:
        """What some of them lose when a slope and a shift make them honest."""
        weights = None if self.weights is None else self.weights[some]
        return honest_loss(self.odds[some], self.flags[some], weights)


def alike_folds(rows: MemoryRows, n: int) -> Int:
    """The fold of each row, by what it holds: rows that are alike share one, and not all rows are in one."""
    folds = (rows.hashes >> np.uint64(11)).astype(np.int64) % n
    if len(np.unique(folds[rows.labels >= 0])) < 2:
        folds = np.unique(rows.hashes, return_inverse=True)[1].reshape(-1) % n
    return folds


def _differ(rows: MemoryRows) -> bool:
    """Whether some rows can be left out, since not all are alike."""
    return len(np.unique(rows.hashes[rows.labels >= 0])) > 1


def _fewer_tests(rows: MemoryRows, splits: Round) -> Round:
    """The round with no more rows tested than thresholds are chosen on, taken by what they hold."""
    labelled = np.flatnonzero(rows.labels >= 0)
    most = max(1, CELLS // max(len(rows.names), 1))
    if len(labelled) <= most:
        return splits
    chosen = labelled[np.argsort(rows.hashes[labelled], kind="stable")[:most]]
    fewer = (replace(split, test=np.intersect1d(split.test, chosen)) for split in splits.splits)
    return replace(splits, splits=tuple(fewer))


@recipe_of.register
def _(model: LabelModel) -> LabelRecipe:
    calibration = model.calibration
    common = model.choice.how, None if calibration is None else "f1", getattr(calibration, "method", None)
    if model.weighing is not None:
        return WeighedLabels(*common)
    return PlainLabels(*common, alpha=model.choice.alpha, telling=model.telling)


# Weighing -------------------------------------------------------------------------------------------------------------


def weigh_labels(model: LabelModel, rows: MemoryRows, seed: int) -> tuple[LabelWeighing, LabelScores]:
    """What the words and cells of rows are worth, and what was learned without each row says of it."""
    tally = model.tally
    labels = model.labels
    names, cells = words_of(tally)
    if not names and not len(cells):
        requirement = "False for rows without texts, categories and numbers"
        raise errors.bad_setting("weigh", True, requirement)
    labelled = np.flatnonzero(rows.labels >= 0)
    batches = list(rows.take(labelled))
    bags = bags_of(tally, names, batches, rows.threads)
    codes = np.concatenate([cells.codes(batch, rows.threads) for batch in batches])
    n_words = sum(column_bags.n_words for column_bags in bags) + len(cells)
    if max(n_words, len(labelled)) * len(labels) > MOST_CELLS:
        text = f"there are {len(labels):,} labels, {n_words:,} words and {len(labelled):,} rows: too many to weigh every word "
        text += "for each label. Keep fewer words with bb.Text(min_count=..., max_words=...), or do not weigh."
        raise errors.BadSetting(text, setting="weigh")
    assert rows.sets is not None
    own_sets = rows.sets.take(labelled)
    flags = own_sets.flags(labels)
    folds = alike_folds(rows, WEIGHED_FOLDS)
    weights = np.ones(len(labelled)) if rows.weights is None else rows.weights[labelled]
    rest = _score_rest(model, rows, folds, (*names, *cells.names))
    texts = LabelTexts(bags, cells, codes, own_sets.codes_of(labels), weights, len(labels), rest)
    hashes = rows.hashes[labelled] * MIX + flags @ mix(np.arange(1, flags.shape[1] + 1, dtype=np.uint64))
    first, place, together = merge_equal(mix(hashes), weights)
    learned = learn_labels(replace(texts.take(first), weights=together), folds[labelled][first], seed, rows.threads)
    every = tally.classes.index(EVERY)
    words = tuple(tuple(lexicon_of(tally.schema[name], tally.of(name), every).words) for name in names)
    settled = learned.setting, learned.strength, learned.corrections
    weighing = LabelWeighing(labels, names, words, *settled, tally.digest(), learned.losses, cells)
    given_weights = None if rows.weights is None else weights
    return weighing, LabelScores(labels, labelled, folds[labelled], flags, given_weights, learned.scores[place])


def _score_rest(model: LabelModel, rows: MemoryRows, folds: Int, names: tuple[str, ...]) -> Real | None:
    """What columns that are not weighed say of each row when its fold was not counted; None where there are none."""
    rest = [feature.name for feature in model.schema.features if feature.name not in names]
    if not rest:
        return None
    fewer = replace(model, tally=of_features(model.tally, rest))
    of_rest = replace(rows, schema=replace(rows.schema, features=fewer.schema.features), tally_of_rest=None)
    recipe = PlainLabels(how=model.choice.how, alpha=model.choice.alpha)
    [scores] = LabelScores.of(of_rest, of_rest.round_of(folds), [recipe], PendingWarnings())
    return scores.odds - fewer.log_prior_odds
