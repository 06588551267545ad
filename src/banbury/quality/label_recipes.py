"""Recipes for sets of labels: each label is predicted where its probability, plain or weighed, reaches a threshold."""

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
from banbury.labels.weighing import MOST_CELLS, LabelRows, bags_of, learn_labels, words_of
from banbury.labels.words import lexicon_of
from banbury.model.naive_bayes import choice_of, is_auto
from banbury.quality.recipes import Plain, R, Recipe, Weighed, recipe_of, with_text
from banbury.rows.folds import FoldSet
from banbury.rows.labelled import MemoryRows
from banbury.rows.scoring import PendingWarnings, leave_out, score_rows
from banbury.sums import Words
from banbury.tally.schema import Schema
from banbury.tally.table import HASH_FACTOR, mix
from banbury.tally.tally import Label, Tally
from banbury.weighing.rows import merge_equal

CHOOSING_FOLDS = 5  # in which rows are held out to choose thresholds and α
WEIGHING_FOLDS = 3  # in which rows are held out to weigh words
ALPHAS = (1.0, 0.1, 0.01)  # that "auto" tries
INFORMATIVE_WORDS = 200  # "auto" also tries only so many words of each label
MOST_FLAGS = 1 << 24  # rows × labels that thresholds are chosen on


@dataclass(frozen=True)
class LabelRecipe(Recipe):
    """How rows become a model of labels; ``threshold`` and ``calibrate`` are those of ``bb.MultiLabelClassifier``,
    ``how`` is that of ``bb.estimate``, and ``seed`` decides random choices.
    """

    how: How = "mean"
    threshold: Any = "f1"
    calibrate: str | None = None
    seed: int = 0

    def answer(
        self, rows: MemoryRows, fold_set: FoldSet, pending: PendingWarnings
    ) -> Iterator[tuple[Real, Thresholds]]:
        """Learns from the training rows of each split of the fold set, and yields the log-odds of its test rows (rows ×
        labels) and the thresholds of the labels. ``pending`` collects warnings, which the caller issues once.
        """
        rows = replace(rows, schema=rows.tally.schema)  # all rows settle how finely numbers are kept
        for fold, split in enumerate(fold_set.splits):
            model = replace(self.learn(rows.training_rows(fold_set, fold)), threads=rows.threads)
            log_odds, _ = score_rows(rows, split.test, model, "log_odds")
            yield log_odds, model.thresholds.of(rows.names)

    def leave_out(self, rows: Any, fold_set: FoldSet, want: str, sink: Any, pending: PendingWarnings) -> None:
        """Scores the test rows of each split of the fold set with a model that has not seen them, and puts their
        probabilities (rows × labels) and the thresholds of the split into ``sink``, which collects them. The only kind
        of score is the posterior, whatever ``want`` is. ``pending`` collects warnings, which the caller issues once.
        """
        for fold, (log_odds, thresholds) in enumerate(self.answer(rows, fold_set, pending)):
            test_rows = fold_set.splits[fold].test
            sink.put(test_rows, np.full(len(test_rows), fold, dtype=np.int32), thresholds.honest(log_odds))
            sink.decide(fold, thresholds)

    def _choose_thresholds(self, scores: LabelScores, positions: Int) -> Thresholds:
        """Returns thresholds chosen with the scores of the held-out rows at ``positions`` in ``scores.rows``: their
        log-odds and true labels (both rows × labels). Without rows, and if neither thresholds nor a calibration are
        wanted, they are one half.
        """
        if (self.threshold is None and self.calibrate is None) or not len(positions):
            return Thresholds.half(scores.labels)
        weights = None if scores.weights is None else scores.weights[positions]
        odds_flags_and_weights = scores.odds[positions], scores.flags[positions], weights
        return Thresholds.choose(scores.labels, *odds_flags_and_weights, self.threshold, self.calibrate)

    def _with_thresholds(self, model: LabelModel, rows: MemoryRows, scores: LabelScores) -> LabelModel:
        """Returns the model with thresholds chosen with ``scores``, those of held-out rows of ``rows``; the model
        itself if neither thresholds nor a calibration are wanted.
        """
        if self.threshold is None and self.calibrate is None:
            return model
        # Positions in ``scores.rows``, sorted by content: sums of other orders may differ in a last bit.
        positions = np.argsort(rows.hashes[scores.rows], kind="stable")
        return model.with_thresholds(self._choose_thresholds(scores, positions))


@dataclass(frozen=True)
class PlainLabels(LabelRecipe):
    """Plain naive Bayes for every label.

    ``alpha`` is the smoothing; with "auto", a few values are compared on held-out rows. With ``words_per_label``, each label
    uses only its n most informative words. ``text`` has settings of ``bb.Text`` for all text columns.
    """

    alpha: Any = 1.0
    words_per_label: int | None = None
    text: Mapping[str, Any] | None = None
    name: ClassVar[str] = Plain.name

    def check(self) -> None:
        """Raises an error if a setting is invalid."""
        choice_of(self.how, 1.0 if is_auto(self.alpha) else self.alpha, self.seed)  # which checks them

    def under(self, rows: R) -> R:
        """Returns the rows under a schema with this recipe's text settings."""
        return rows.with_schema(with_text(rows.schema, self.text)) if self.text else rows

    def estimate(self, tally: Tally, classes: Sequence[Label]) -> LabelModel:
        """Estimates the model of a tally with this recipe's settings, with thresholds of one half. ``classes``, which
        all recipes take, is not needed.
        """
        if self.text:
            tally = replace(tally, schema=with_text(tally.schema, self.text))
        choice = choice_of(self.how, self.alpha, seed=0)
        return LabelModel(tally, choice, Thresholds.half(labels_of(tally)), words_per_label=self.words_per_label)

    def reads_whole_tables(self, counted: Tally) -> bool:
        """Returns whether some text model cannot score all labels at once, so that each label needs its own table of
        words. ``counted`` is a tally of rows, which says what columns are texts.
        """
        choice = choice_of(self.how, self.alpha, seed=0)  # how models are estimated
        schema = with_text(counted.schema, self.text)
        word_features = [  # those of each group of texts
            group.features for group, sums in zip(schema.groups, counted.sums, strict=True) if isinstance(sums, Words)
        ]
        return any(label_words(feature.family, choice) is None for features in word_features for feature in features)

    def candidates(self, schema: Schema) -> list[PlainLabels]:
        """Returns the recipes to choose from: this one alone, or if α is "auto" one for each candidate α and, if
        columns of the schema are texts, one with only the most informative words of each label.
        """
        if not is_auto(self.alpha):
            return [self]
        recipes = [replace(self, alpha=alpha) for alpha in ALPHAS]
        choice = choice_of(self.how, alpha=1.0, seed=0)  # how models are estimated
        has_texts = any(
            label_words(feature.family, choice) is not None for feature in with_text(schema, self.text).features
        )
        return [*recipes, replace(self, alpha=1.0, words_per_label=INFORMATIVE_WORDS)] if has_texts else recipes

    def learn(self, rows: MemoryRows) -> LabelModel:
        """Learns a model with the candidate that has the lowest loss on held-out rows, and chooses its thresholds
        there, unless neither thresholds nor a calibration are wanted. If all rows are identical, none can be held out,
        and it is the first candidate with thresholds of one half.
        """
        candidates = self.candidates(rows.schema)
        needs_scores = self.threshold is not None or self.calibrate is not None or len(candidates) > 1
        if not needs_scores or not _rows_differ(rows):
            return candidates[0]._learn_counts(rows)
        fold_set = _limit_test_rows(rows, rows.fold_set_of(alike_folds(rows, CHOOSING_FOLDS)))
        # Of each candidate: the log-odds of held-out rows.
        candidate_scores = LabelScores.of(rows, fold_set, candidates, PendingWarnings())
        losses = [scores.loss(positions=slice(None)) for scores in candidate_scores] if len(candidates) > 1 else [0.0]
        best_number = int(np.argmin(losses))  # of the candidate
        return self._with_thresholds(candidates[best_number]._learn_counts(rows), rows, candidate_scores[best_number])

    def _learn_counts(self, rows: MemoryRows) -> LabelModel:
        """Estimates a model from the counts of the rows, with thresholds of one half. Raises an error if no row has a
        label.
        """
        tally = rows.tally
        if not labels_of(tally):
            raise errors.empty_data(None, "no row has a label, so there is nothing to predict")
        return self.estimate(tally, rows.classes)

    def answer(
        self, rows: MemoryRows, fold_set: FoldSet, pending: PendingWarnings
    ) -> Iterator[tuple[Real, Thresholds]]:
        """Takes for each split of the fold set the candidate with the lowest loss on the test rows of other splits.
        Yields its log-odds of the split's test rows in ascending order (rows × labels), and its thresholds, chosen on
        the rows of other splits. ``pending`` collects warnings.
        """
        # Of each candidate recipe: the log-odds of the test rows of all splits, and the split that tests each row.
        candidate_scores = LabelScores.of(rows, fold_set, self.candidates(rows.schema), pending)
        for fold in range(len(fold_set.splits)):
            is_in_fold = candidate_scores[0].folds == fold  # whether the fold tests each scored row
            outside_fold = np.flatnonzero(~is_in_fold)  # positions among the scored rows
            best_scores = candidate_scores[0]
            if len(candidate_scores) > 1:
                best_scores = min(candidate_scores, key=lambda scores: scores.loss(outside_fold))
            yield best_scores.odds[np.flatnonzero(is_in_fold)], self._choose_thresholds(best_scores, outside_fold)

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON."""
        word_settings = (
            {"alpha": self.alpha} if self.words_per_label is None else {"words_per_label": self.words_per_label}
        )
        return {**word_settings, "how": self.how, **({"text": dict(self.text)} if self.text else {})}


@dataclass(frozen=True)
class WeighedLabels(LabelRecipe):
    """Weighed evidence of words and cells for all labels together, or plain naive Bayes if all rows are identical."""

    name: ClassVar[str] = Weighed.name
    weighs: ClassVar[bool] = True

    def rows_from(self, rows: Any, n: int | None = None) -> MemoryRows:
        """Returns the rows in memory, ``n`` at most if it is given. Raises an error if they are a sample, which
        weighing does not support.
        """
        memory_rows: MemoryRows = super().rows_from(rows, n)
        errors.require(memory_rows.tally_of_rest is None, "weigh", True, "omitted when the rows are a sample")
        return memory_rows

    def answer(
        self, rows: MemoryRows, fold_set: FoldSet, pending: PendingWarnings
    ) -> Iterator[tuple[Real, Thresholds]]:
        """Yields for each split of the fold set the log-odds of the tested rows (rows × labels) and thresholds for
        them. ``pending`` collects warnings, which the caller issues once. Raises an error if all rows are identical.
        """
        requirement = "False when all rows are identical, because none can be held out"
        errors.require(_rows_differ(rows), "weigh", True, requirement)
        return super().answer(rows, fold_set, pending)

    def learn(self, rows: MemoryRows) -> LabelModel:
        """Returns a weighed model with thresholds; a plain one if all rows are identical, because thresholds are chosen
        on log-odds of held-out rows and none can be held out.
        """
        model = LabelModel.of(rows.tally, how=self.how)
        if not _rows_differ(rows):
            return model
        weighing, held_out_scores = weigh_labels(model, rows, self.seed)
        return self._with_thresholds(model.weighed(weighing), rows, held_out_scores)

    def to_dict(self) -> dict[str, Any]:
        """Returns the settings for JSON."""
        return {"weigh": True}


@dataclass(frozen=True, eq=False)
class LabelScores:
    """Collects the log-odds of held-out rows: a sink, in which scores are put fold by fold."""

    labels: tuple[Label, ...]
    rows: Int  # row numbers, ascending; all arrays below have one entry for each
    folds: NDArray[Any]  # the fold that tests the row
    flags: Flags  # which labels it has (rows × labels)
    weights: Real | None  # None if all are 1
    odds: Real  # log-odds (rows × labels), filled fold by fold

    @classmethod
    def of(
        cls, rows: MemoryRows, fold_set: FoldSet, recipes: Sequence[PlainLabels], pending: PendingWarnings
    ) -> list[LabelScores]:
        """Scores the test rows of every split with the models of each recipe that learned from the other rows, and
        returns the scores of each recipe. ``pending`` collects warnings.
        """
        assert rows.sets is not None
        tested_rows = np.sort(np.concatenate([split.test for split in fold_set.splits]))
        weights = None if rows.weights is None else rows.weights[tested_rows]
        shared_fields = (  # of ``LabelScores``, in order, up to the log-odds
            rows.names,
            tested_rows,
            fold_set.groups[tested_rows],
            rows.sets.take(tested_rows).flags(rows.names),
            weights,
        )
        recipe_scores = [cls(*shared_fields, np.empty((len(tested_rows), len(rows.names)))) for _ in recipes]
        leave_out(rows, fold_set, recipes, "log_odds", recipe_scores, pending)
        return recipe_scores

    def put(self, rows: Int | slice, folds: Any, scores: Real) -> None:
        """Stores scores, which are log-odds (rows × labels), of the rows with these numbers, which ``self.rows`` has in
        ascending order. Their folds are not needed: they are known.
        """
        self.odds[np.searchsorted(self.rows, rows)] = scores  # type: ignore[arg-type]

    def loss(self, positions: Int | slice) -> float:
        """Returns the log loss of the rows at these positions of ``self.rows`` (slice(None): all), after a slope and a
        shift have calibrated their log-odds, ``self.odds``. ``self.flags`` says which labels they have (both rows ×
        labels).
        """
        weights = None if self.weights is None else self.weights[positions]
        return honest_loss(self.odds[positions], self.flags[positions], weights)


def alike_folds(rows: MemoryRows, n_folds: int) -> Int:
    """Returns the fold of each row, from 0 to ``n_folds`` − 1, chosen by its content, so that identical rows share a
    fold. If that puts all labelled rows into one fold, distinct contents are dealt to the folds in turn.
    """
    # The low bits of a hash are left out.
    folds = (rows.hashes >> np.uint64(11)).astype(np.int64) % n_folds
    is_labelled = rows.labels >= 0
    if len(np.unique(folds[is_labelled])) < 2:
        folds = np.searchsorted(np.unique(rows.hashes[is_labelled]), rows.hashes) % n_folds
    return folds


def _rows_differ(rows: MemoryRows) -> bool:
    """Returns whether the labelled rows are not all identical, so that some can be held out."""
    return len(np.unique(rows.hashes[rows.labels >= 0])) > 1


def _limit_test_rows(rows: MemoryRows, fold_set: FoldSet) -> FoldSet:
    """Returns the fold set with only as many test rows in all splits as thresholds are chosen on. The rows are selected
    by their content, whatever their order.
    """
    labelled = np.flatnonzero(rows.labels >= 0)  # row numbers
    max_rows = max(1, MOST_FLAGS // max(len(rows.names), 1))
    if len(labelled) <= max_rows:
        return fold_set
    selected_rows = labelled[np.argsort(rows.hashes[labelled], kind="stable")[:max_rows]]
    reduced_splits = (replace(split, test=np.intersect1d(split.test, selected_rows)) for split in fold_set.splits)
    return replace(fold_set, splits=tuple(reduced_splits))


@recipe_of.register
def _(model: LabelModel) -> LabelRecipe:
    """Returns the recipe that made a model of labels. A calibrated model has thresholds, which the recipe chooses again
    for the best F1; ``words_per_label`` is the number of words that the model is limited to, or None.
    """
    threshold = None if model.calibration is None else "f1"
    method = getattr(model.calibration, "method", None)
    if model.weighing is not None:
        return WeighedLabels(model.choice.how, threshold, method)
    return PlainLabels(
        model.choice.how, threshold, method, alpha=model.choice.alpha, words_per_label=model.words_per_label
    )


# Weighing -------------------------------------------------------------------------------------------------------------


def weigh_labels(model: LabelModel, rows: MemoryRows, seed: int) -> tuple[LabelWeighing, LabelScores]:
    """Learns the weights of words and cells (categories, intervals of numbers) for every label. Returns them with the
    scores of each labelled row from models that have not seen it. Identical rows are merged before learning; ``seed``
    decides in what order it visits them. Raises an error if no column can be weighed.
    """
    tally = model.tally
    labels = model.labels
    text_columns, cells = words_of(tally)  # the names of the columns of words, and the cells of other columns
    if not text_columns and not len(cells):
        requirement = "False for rows without texts, categories and numbers"
        raise errors.bad_setting("weigh", True, requirement)
    labelled_rows = np.flatnonzero(rows.labels >= 0)  # everything below is about these rows
    batches = list(rows.take(labelled_rows))
    bags = bags_of(tally, text_columns, batches, rows.threads)  # the words of each row, for each text column
    cell_numbers = np.concatenate([cells.codes(batch, rows.threads) for batch in batches])  # rows × columns
    n_words = sum(column_bags.n_words for column_bags in bags) + len(cells)
    _refuse_too_many(len(labels), n_words, len(labelled_rows))
    assert rows.sets is not None
    label_sets = rows.sets.take(labelled_rows)  # the labels of each row
    flags = label_sets.flags(labels)  # rows × labels
    folds_of_all_rows = alike_folds(rows, WEIGHING_FOLDS)
    folds = folds_of_all_rows[labelled_rows]
    weights = np.ones(len(labelled_rows)) if rows.weights is None else rows.weights[labelled_rows]
    weighed_columns = (*text_columns, *cells.names)
    unweighed_scores = _score_unweighed_columns(model, rows, folds_of_all_rows, weighed_columns)
    label_rows = LabelRows(
        bags, cells, cell_numbers, label_sets.codes_of(labels), weights, len(labels), unweighed_scores
    )
    # A hash of the content and the labels of each row.
    hashes = rows.hashes[labelled_rows] * HASH_FACTOR + flags @ mix(np.arange(1, flags.shape[1] + 1, dtype=np.uint64))
    # Of each distinct row its first copy and the weight of all; and which distinct row each row equals.
    first_copies, merged_number, merged_weights = merge_equal(mix(hashes), weights)
    merged_rows = replace(label_rows.take(first_copies), weights=merged_weights)
    learned_labels = learn_labels(merged_rows, folds[first_copies], seed, rows.threads)
    weighing = LabelWeighing(
        labels,
        text_columns,
        tuple(tuple(lexicon_of(tally, name).words) for name in text_columns),
        learned_labels.setting,
        learned_labels.strength,
        learned_labels.corrections,
        tally.digest(),
        learned_labels.losses,
        cells,
    )
    weights_if_any = None if rows.weights is None else weights
    scores = learned_labels.scores[merged_number]  # log-odds (rows × labels)
    return weighing, LabelScores(labels, labelled_rows, folds, flags, weights_if_any, scores)


def _refuse_too_many(n_labels: int, n_words: int, n_rows: int) -> None:
    """Raises an error if there are too many words (with cells) or rows to weigh for each label."""
    if max(n_words, n_rows) * n_labels > MOST_CELLS:
        text = f"there are {n_labels:,} labels, {n_words:,} words and {n_rows:,} rows: too many to weigh every word "
        text += "for each label. Keep fewer words with bb.Text(min_count=..., max_words=...), or do not weigh."
        raise errors.BadSetting(text, setting="weigh")


def _score_unweighed_columns(
    model: LabelModel, rows: MemoryRows, folds: Int, weighed_names: tuple[str, ...]
) -> Real | None:
    """Returns what the columns that are not among ``weighed_names`` add to the log-odds of each labelled row (rows ×
    labels), from models that did not count the row's fold; None if all columns are weighed. ``folds`` has the fold of
    each row.
    """
    unweighed_names = [name for name in model.schema.features.names if name not in weighed_names]
    if not unweighed_names:
        return None
    unweighed_model = replace(model, tally=of_features(model.tally, unweighed_names))
    unweighed_rows = replace(
        rows, schema=replace(rows.schema, features=unweighed_model.schema.features), tally_of_rest=None
    )
    recipe = PlainLabels(how=model.choice.how, alpha=model.choice.alpha)
    [held_out_scores] = LabelScores.of(unweighed_rows, unweighed_rows.fold_set_of(folds), [recipe], PendingWarnings())
    return held_out_scores.odds - unweighed_model._log_prior_odds  # without the prior, which no column adds
