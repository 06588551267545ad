"""Learning from rows with sets of labels: the tally, what words are worth, and thresholds, all from the rows given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.distributions.family import How
from banbury.label_calibration import honest_loss
from banbury.label_sets import EVERY, LabelTarget, gathered
from banbury.labels.model import LabelModel, of_features
from banbury.labels.results import LabelEvaluation
from banbury.labels.thresholds import Thresholds
from banbury.labels.validation import CountedFolds, HeldOut, HeldRows, enough
from banbury.labels.weighing import MOST_CELLS, LabelTexts, LabelWeighing, bags_of, learned_labels, words_of
from banbury.labels.words import lexicon_of
from banbury.naive_bayes import is_auto, met
from banbury.readers.columns import missing
from banbury.schema import Schema
from banbury.table import MIX, Labels, Table, label_target, mixed, wants_folders
from banbury.tally import Tally
from banbury.weighing.rows import merge_equal

FOLDS, WEIGHED_FOLDS = 5, 3
ALPHAS = (1.0, 0.1, 0.01)
TELLING = 200  # words of each label that are tried
MANY_ALPHAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
SCORINGS = ("log_loss", "micro_f1", "macro_f1", "subset_accuracy", "hamming_loss")


def fitted(
    rows: HeldRows,
    tally: Tally,
    *,
    how: How = "mean",
    alpha: Any = 1.0,
    weigh: bool = False,
    threshold: Any = "f1",
    calibrate: str | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[LabelModel, HeldOut | None]:
    """The model of rows that a tally counted, and what models without each row say of it, where that was asked.

    Rows that are all alike, or a single one, cannot be held out: then nothing is weighed or chosen.
    """
    model = LabelModel.of(tally, how=how, alpha=1.0 if alpha == "auto" else alpha, threads=threads)
    if not rows.differ or (not weigh and threshold is None and calibrate is None and alpha != "auto"):
        return model, None
    if weigh:
        model, found = weighed(model, rows, seed)
    else:
        folds, some = rows.dealt(FOLDS), enough(rows, len(model.labels))
        model, found = _with_alpha(model, rows, folds, some, alpha)
    if threshold is None and calibrate is None:
        return model, found
    order = np.argsort(rows.hashes()[found.rows], kind="stable")  # sums of other orders may differ in a last bit
    weights = None if found.weights is None else found.weights[order]
    chosen = Thresholds.chosen(found.labels, found.scores[order], found.flags[order], weights, threshold, calibrate)
    return model.with_thresholds(chosen), found


def _with_alpha(model: LabelModel, rows: HeldRows, folds: Int, some: Int, alpha: Any) -> tuple[LabelModel, HeldOut]:
    """The model with the α, of a few, whose log-odds lose least on rows held out; and those log-odds."""
    tried, counted = [], CountedFolds.of(rows, model.labels, folds, some)
    for each in candidates(model, alpha):
        found = counted.held_out(each)
        tried.append((honest_loss(found.scores, found.flags, found.weights) if alpha == "auto" else 0.0, each, found))
    _, model, found = min(tried, key=lambda each: each[0])
    return model, found


def candidates(model: LabelModel, alpha: Any) -> list[LabelModel]:
    """The models that are tried: of this α, or of a few, and of the words that tell most of each label."""
    alphas = ALPHAS if alpha == "auto" else (alpha,)
    plain = [replace(model, choice=replace(model.choice, alpha=float(own))) for own in alphas]
    texts = any(f.family.label_words(model.choice) is not None for f in model.schema.features)
    return plain + [replace(model, telling=TELLING)] * (alpha == "auto" and texts)


def weighed(model: LabelModel, rows: HeldRows, seed: int) -> tuple[LabelModel, HeldOut]:
    """The model with its words and cells weighed, and what was learned without each row says of it."""
    tally, labels = model.tally, model.labels
    names, cells = words_of(tally)
    if not names and not len(cells):
        wanted = "False for rows without texts, categories and numbers: words and cells are weighed for sets of labels"
        raise errors.bad_setting("weigh", True, wanted)
    errors.require(
        rows.differ, "weigh", True, "False for rows that are all alike: none can be held out from the others"
    )
    known = np.flatnonzero(rows.known)
    parts = list(rows.some(known))
    batches = [batch for batch, *_ in parts]
    bags = bags_of(tally, names, batches, rows.threads)
    cells_of_rows = np.concatenate([cells.codes(batch, rows.threads) for batch in batches])
    n_words = sum(each.n_words for each in bags) + len(cells)
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
    given = _given(model, rows, folds, known, (*names, *cells.names))
    texts = LabelTexts(bags, cells, cells_of_rows, (offsets, codes.astype(np.int32)), weights, len(labels), given)
    hashes = rows.hashes()[known] * MIX + flags @ mixed(np.arange(1, flags.shape[1] + 1, dtype=np.uint64))
    first, place, together = merge_equal(mixed(hashes), weights)
    merged = replace(texts.take(first), weights=together)
    found = learned_labels(merged, folds[known][first], seed, rows.threads)
    words = tuple(tuple(column) for column in _words(tally, names))
    learned = found.setting, found.strength, found.corrections
    weighing = LabelWeighing(labels, names, words, *learned, tally.digest(), found.losses, cells)
    own = every if every is None else weights
    return model.weighed(weighing), HeldOut(labels, known, found.scores[place], flags, own, folds[known])


def _words(tally: Tally, names: tuple[str, ...]) -> list[list[str]]:
    every = tally.classes.index(EVERY)
    return [lexicon_of(tally.schema[name], tally.of(name), every).words for name in names]


def _given(model: LabelModel, rows: HeldRows, folds: Int, known: Int, names: tuple[str, ...]) -> Real | None:
    """What columns that are not weighed say of each row when its fold was not counted; None where there are none."""
    rest = [feature.name for feature in model.schema.features if feature.name not in names]
    if not rest:
        return None
    fewer = replace(model, tally=of_features(model.tally, rest))
    schema = replace(rows.schema, features=fewer.schema.features)
    of_rest = HeldRows(schema, rows.batches, rows.sets, rows.weights, rows.threads)
    return CountedFolds.of(of_rest, fewer.labels, folds, known).held_out(fewer).scores - fewer.log_prior_odds


# Validation -----------------------------------------------------------------------------------------------------------


def evaluate(model: LabelModel, data: Any, target: Any = None, **reading: Any) -> LabelEvaluation:
    """The measures of a model of labels on other rows. Labels that it does not know are never given, so they are missed."""
    target = model.schema.labels if target is None and model.schema.labels is not None else target
    if target is None or (isinstance(target, LabelTarget) and not target.columns):
        wanted = "the column of labels, columns of flags, or sets of labels, one for each row"
        raise errors.bad_setting("target", None, wanted)
    delimiter = reading.pop("target_delimiter", None)
    if isinstance(target, LabelTarget) and delimiter is not None and not target.flags:
        (target,) = target.columns
    elif isinstance(target, str) and delimiter is None and model.schema.labels is not None:
        delimiter = model.schema.labels.delimiter
    source = model.read(data, reading)
    if wants_folders(source, target):
        source, target = gathered(source), LabelTarget((str(source.target),), folders=True)
    labels = Labels.of(label_target(source, target, delimiter if isinstance(target, str) else None), None, None, 1)
    wanted = "sets of labels: lists, flags, or texts with target_delimiter="
    errors.require(labels.several is not None, "target", target, wanted)
    sets, posteriors = [], []
    for batch, posterior in model.stream(source):
        sets.append(labels.sets_of(batch))
        posteriors.append(posterior)
    if not sets:
        raise errors.empty_data(source.name)
    labels.check_length(sum(map(len, sets)))
    every: Any
    every, notes = met(model.labels, {name for own in sets for name in own.names}, "label")
    n_new = len(every) - len(model.labels)
    known = np.concatenate([own.known for own in sets])
    truth = np.concatenate([own.flags(every) for own in sets])[known]
    posterior = np.concatenate(posteriors)[known]
    given = np.hstack([model.flags(posterior), np.zeros((len(posterior), n_new), dtype=np.bool_)])
    posterior = np.hstack([posterior, np.zeros((len(posterior), n_new))])
    return LabelEvaluation(every, np.flatnonzero(known), truth, given, posterior, notes=notes)


def cross_validate(
    table: Table | HeldRows,
    folds: Any = 10,
    *,
    how: How = "mean",
    alpha: Any = 1.0,
    weigh: bool = False,
    threshold: Any = "f1",
    calibrate: str | None = None,
    seed: int = 0,
) -> LabelEvaluation:
    """How good labels are on rows that were not counted, from one count of each fold.

    Each row is scored by the model of all other folds. Its thresholds are chosen on the rows of other folds, each scored
    likewise; where words are weighed, they are weighed anew within the rows that each fold learns from.
    """
    rows = table if isinstance(table, HeldRows) else HeldRows.of(table)
    errors.require(isinstance(weigh, (bool, np.bool_)), "weigh", weigh, "True or False where rows have sets of labels")
    errors.require(
        not weigh or rows.others is None, "weigh", weigh, "left out where rows are a sample of those in partitions"
    )
    numbers, labels = _folds(folds, rows, seed), rows.labels
    known = np.flatnonzero(rows.known)
    what = f"{len(np.unique(numbers[known]))}-fold cross-validation"
    if not weigh:
        counted = CountedFolds.of(rows, labels, numbers)
        model = LabelModel.of(counted.total, how=how, alpha=1.0 if alpha == "auto" else alpha)
        tried = [counted.held_out(each) for each in candidates(model, alpha)]
        return replace(_validated(tried, threshold, calibrate), what=what, notes=rows.notes)
    truth = rows.flags(labels)[known]
    posterior, given = np.zeros(truth.shape), np.zeros(truth.shape, dtype=np.bool_)
    weights = None if rows.each_weight is None else rows.each_weight[known]
    for fold in np.unique(numbers[known]).tolist():
        inner = rows.only(np.flatnonzero((numbers != fold) & rows.known))
        chosen = {"threshold": threshold, "calibrate": calibrate, "seed": seed}
        model, _ = fitted(inner, inner.count(), how=how, weigh=True, **chosen)
        place = {label: k for k, label in enumerate(labels)}
        columns = np.array([place[label] for label in model.labels], dtype=np.int64)
        at = np.flatnonzero(numbers[known] == fold)
        for batch, _, _, own in rows.some(known[at]):
            found = model.thresholds.honest(model.scores(batch))
            posterior[np.ix_(at[own], columns)] = found
            given[np.ix_(at[own], columns)] = model.flags(found)
    return LabelEvaluation(labels, known, truth, given, posterior, weights, what)


def validated(found: HeldOut, threshold: Any = "f1", calibrate: str | None = None) -> LabelEvaluation:
    """How good labels are, from what models without each row say of it; thresholds are chosen on the rows of other folds."""
    return _validated([found], threshold, calibrate)


def _validated(tried: Sequence[HeldOut], threshold: Any, calibrate: str | None) -> LabelEvaluation:
    """The same of several, of which that is taken, for each fold, that loses least on the rows of others."""
    truth, folds, weights, labels = tried[0].flags, tried[0].folds, tried[0].weights, tried[0].labels
    posterior, given = np.zeros(truth.shape), np.zeros(truth.shape, dtype=np.bool_)
    for fold in np.unique(folds).tolist():
        here, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        others = None if weights is None else weights[rest]
        losses = [honest_loss(each.scores[rest], truth[rest], others) for each in tried] if len(tried) > 1 else [0.0]
        scores = tried[int(np.argmin(losses))].scores
        chosen = Thresholds.half(labels)
        if (threshold is not None or calibrate is not None) and len(rest):
            chosen = Thresholds.chosen(labels, scores[rest], truth[rest], others, threshold, calibrate)
        posterior[here] = chosen.honest(scores[here])
        given[here] = posterior[here] >= chosen.probabilities
    what = f"{len(np.unique(folds))} folds, each held out"
    return LabelEvaluation(labels, tried[0].rows, truth, given, posterior, weights, what)


def _folds(folds: Any, rows: HeldRows, seed: int) -> Int:
    """The fold of each row: so many, dealt by what rows hold, or one for each row."""
    if isinstance(folds, (int, np.integer)) and not isinstance(folds, bool):
        n_rows = int(rows.known.sum())
        if n_rows < 2:
            raise errors.empty_data(None, f"{errors.many(n_rows, 'row')} with labels and a weight, and folds take two")
        errors.require(2 <= folds <= n_rows, "folds", folds, f"from 2 to {n_rows:,}, the number of rows")
        order = np.lexsort((np.arange(rows.n_rows), mixed(rows.hashes() + np.uint64(seed))))
        numbers = np.empty(rows.n_rows, dtype=np.int64)
        numbers[order] = np.arange(rows.n_rows) % int(folds)
        return numbers
    given = np.asarray(folds) if isinstance(folds, (list, tuple, np.ndarray)) else None
    if given is None or given.shape != (rows.n_rows,) or any(map(missing, given.tolist())):
        wanted = "a number of folds, or a fold for each row, where rows have sets of labels"
        raise errors.bad_setting("folds", folds, wanted)
    names = given.astype(str) if given.dtype == object else given
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


# Tuning ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class LabelTuning:
    """Settings that were tried, each with how good its labels are on rows held out; the best, and the model it makes."""

    best: dict[str, Any]
    model: LabelModel
    tried: tuple[tuple[dict[str, Any], LabelEvaluation], ...]
    scoring: str

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        names = ("micro_f1", "macro_f1", "log_loss")
        rows = [{**settings, **{name: getattr(found, name) for name in names}} for settings, found in self.tried]
        return {"best": self.best, "scoring": self.scoring, "tried": rows}

    def __str__(self) -> str:
        lines = [f"the best of {errors.many(len(self.tried), 'setting')} by {self.scoring}: {_said(self.best)}"]
        for settings, found in sorted(self.tried, key=lambda each: _cost(each[1], self.scoring)):
            figures = f"micro F1 {found.micro_f1:.4f}  macro F1 {found.macro_f1:.4f}  log loss {found.log_loss:.4f}"
            lines.append(f"  {figures}  {_said(settings)}")
        return "\n".join(lines)

    __repr__ = __str__


def _said(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def _cost(found: LabelEvaluation, scoring: str) -> float:
    value = float(getattr(found, scoring))
    return value if scoring in ("log_loss", "hamming_loss") else -value


def tune(
    table: Table | HeldRows,
    *,
    alpha: Any = "auto",
    how: Any = "mean",
    text: Mapping[str, Any] | None = None,
    weigh: Any = False,
    scoring: str = "log_loss",
    folds: int = 5,
    threshold: Any = "f1",
    calibrate: str | None = None,
    seed: int = 0,
) -> LabelTuning:
    """The best of many settings for sets of labels, from one count of each fold."""
    if scoring not in SCORINGS:
        raise errors.unknown_choice("scoring", scoring, SCORINGS)
    rows = table if isinstance(table, HeldRows) else HeldRows.of(table)
    if rows.others is not None:
        wanted = "left out where rows are a sample of those in partitions"
        errors.require(_several(weigh) == [False], "weigh", weigh, wanted)
    candidates = _candidates(rows.schema, alpha, how, text, weigh)
    counted = CountedFolds.of(rows, rows.labels, _folds(folds, rows, seed))
    tally = counted.total
    tried: list[tuple[dict[str, Any], LabelEvaluation]] = []
    models: list[LabelModel] = []
    for settings in candidates:
        if settings.get("weigh"):
            model, found = weighed(LabelModel.of(tally), rows, seed)
        else:
            names = [f.name for f in tally.schema.features if f.family.reads_text()]
            own = {key: value for key, value in settings.items() if key not in ("alpha", "how", "weigh")}
            families = {name: replace(tally.schema[name].family, **own) for name in names} if own else None  # type: ignore[type-var]
            model = LabelModel.of(tally, how=settings["how"], alpha=settings["alpha"], features=families)
            found = counted.held_out(model)
        evaluation = replace(validated(found, threshold, calibrate), notes=rows.notes)
        held = found.labels, found.scores, found.flags, found.weights
        tried.append((settings, evaluation))
        models.append(model.with_thresholds(Thresholds.chosen(*held, threshold, calibrate)))
    best = min(range(len(tried)), key=lambda k: _cost(tried[k][1], scoring))
    return LabelTuning(tried[best][0], models[best], tuple(tried), scoring)


def _candidates(schema: Schema, alpha: Any, how: Any, text: Any, weigh: Any) -> list[dict[str, Any]]:
    """Every combination of settings, each of one value or several."""
    _check_text(schema, text)
    given = {"alpha": alpha, "how": how, "weigh": weigh, **(text or {})}
    for name, value in given.items():
        errors.require(_several(value), name, value, "one value at least")
    for value in _several(weigh):
        errors.require(isinstance(value, (bool, np.bool_)), "weigh", value, "True, False or both")
    alphas = MANY_ALPHAS if is_auto(alpha) else _several(alpha)
    names = ["alpha", "how", *(text or {})]
    values = [alphas, _several(how), *(_several(value) for value in (text or {}).values())]
    plain = [dict(zip(names, each, strict=True)) for each in product(*values)]
    wanted = _several(weigh)
    return [*(plain if False in wanted else []), *([{"weigh": True}] if True in wanted else [])]


def _check_text(schema: Schema, text: Any) -> None:
    if text is None:
        return
    errors.require(isinstance(text, Mapping), "text", text, "settings of bb.Text, each one value or a list of them")
    known = next((given for f in schema.features if (given := f.family.text_settings())), None)
    if known is None:
        raise errors.bad_setting("text", dict(text), "left out where no column is text")
    for name in text:
        if name not in known:
            raise errors.unknown_choice("a setting of text", name, known)


def _several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, np.ndarray)) else [value]
