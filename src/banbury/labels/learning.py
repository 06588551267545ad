"""Learning from rows with sets of labels: the tally, what words are worth, and thresholds, all from the rows given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions.family import How
from banbury.label_sets import EVERY
from banbury.labels.model import LabelModel, of_features
from banbury.labels.thresholds import Thresholds, honest_loss
from banbury.labels.validation import HeldOut, HeldRows, enough, held_out
from banbury.labels.weighing import MOST_CELLS, LabelTexts, LabelWeighing, bags_of, learned_labels
from banbury.labels.words import lexicon_of
from banbury.tally import Tally

FOLDS, WEIGHED_FOLDS = 5, 3
ALPHAS = (1.0, 0.1, 0.01)


def fitted(
    rows: HeldRows,
    tally: Tally,
    *,
    how: How = "mean",
    alpha: Any = 1.0,
    weigh: bool = False,
    threshold: Any = "f1",
    seed: int = 0,
    threads: int | None = None,
) -> tuple[LabelModel, HeldOut | None]:
    """The model of rows that a tally counted, and what models without each row say of it, where that was asked."""
    model = LabelModel.of(tally, how=how, alpha=1.0 if alpha == "auto" else alpha, threads=threads)
    if weigh:
        model, found = weighed(model, rows, seed)
    elif threshold is None and alpha != "auto":
        return model, None
    else:
        folds, some = rows.dealt(FOLDS), enough(rows, len(model.labels))
        if len(np.unique(folds[some])) < 2:
            return model, None
        model, found = _with_alpha(model, rows, folds, some, alpha)
    if threshold is None:
        return model, found
    chosen = Thresholds.chosen(found.labels, found.scores, found.flags, found.weights, threshold)
    return model.with_thresholds(chosen), found


def _with_alpha(model: LabelModel, rows: HeldRows, folds: Int, some: Int, alpha: Any) -> tuple[LabelModel, HeldOut]:
    """The model with the α, of a few, whose log-odds lose least on rows held out; and those log-odds."""
    tried = []
    for own in ALPHAS if alpha == "auto" else (alpha,):
        each = replace(model, choice=replace(model.choice, alpha=float(own)))
        found = held_out(each, rows, folds, some)
        tried.append((honest_loss(found.scores, found.flags, found.weights) if alpha == "auto" else 0.0, each, found))
    _, model, found = min(tried, key=lambda each: each[0])
    return model, found


def weighed(model: LabelModel, rows: HeldRows, seed: int) -> tuple[LabelModel, HeldOut]:
    """The model with its words weighed, and what was learned without each row says of it."""
    tally, labels = model.tally, model.labels
    names = tuple(f.name for f in tally.schema.features if f.family.used_words(f, tally.of(f.name)) is not None)
    if not names:
        wanted = "False for rows without a column of texts: it is words that are weighed for sets of labels"
        raise errors.bad_setting("weigh", True, wanted)
    known = np.flatnonzero(rows.known)
    parts = list(rows.some(known))
    bags = bags_of(tally, names, [batch for batch, *_ in parts], rows.threads)
    n_words = sum(each.n_words for each in bags)
    if max(n_words, len(known)) * len(labels) > MOST_CELLS:
        text = f"there are {len(labels):,} labels, {n_words:,} words and {len(known):,} rows: too many to weigh every word for "
        text += "each label. Keep fewer words with bb.Text(min_count=..., max_words=...), or do not weigh."
        raise errors.BadSetting(text, setting="weigh")
    flags = rows.flags(labels)[known]
    at, codes = np.nonzero(flags)
    offsets = np.searchsorted(at, np.arange(len(known) + 1)).astype(np.int64)
    every = rows.each_weight
    weights = np.ones(len(known)) if every is None else every[known]
    folds = rows.dealt(WEIGHED_FOLDS)
    given = _given(model, rows, folds, known, names)
    texts = LabelTexts(bags, (offsets, codes.astype(np.int32)), weights, len(labels), given)
    order = np.lexsort((np.arange(len(known)), rows.hashes()[known]))  # no order of rows changes the answer
    strength, corrections, scores, losses = learned_labels(texts.take(order), folds[known][order], seed, rows.threads)
    back = np.empty_like(scores)
    back[order] = scores
    words = tuple(tuple(column) for column in _words(tally, names))
    weighing = LabelWeighing(labels, names, words, strength, corrections, tally.digest(), losses)
    return model.weighed(weighing), HeldOut(labels, known, back, flags, every if every is None else weights, folds[known])


def _words(tally: Tally, names: tuple[str, ...]) -> list[list[str]]:
    every = tally.classes.index(EVERY)
    return [lexicon_of(tally.schema[name], tally.of(name), every).words for name in names]


def _given(model: LabelModel, rows: HeldRows, folds: Int, known: Int, names: tuple[str, ...]) -> Real | None:
    """What columns that are no texts say of each row when its fold was not counted; None where there are none."""
    rest = [feature.name for feature in model.schema.features if feature.name not in names]
    if not rest:
        return None
    fewer = replace(model, tally=of_features(model.tally, rest))
    of_rest = HeldRows(replace(rows.schema, features=fewer.schema.features), rows.batches, rows.sets, rows.weights, rows.threads)
    return held_out(fewer, of_rest, folds, known).scores - fewer.log_prior_odds
