"""Tuning: settings compared by what they say of rows they have not seen. Rows are counted once, and encoded once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np

from banbury import errors
from banbury.arrays import Int, Real
from banbury.calibration import METHODS, Calibration, Method, calibrate
from banbury.distributions.family import HOWS, Family, How, check_positive
from banbury.labels import tune as tune_labels
from banbury.naive_bayes import ClassPrior, Model, check_seed, estimate, is_auto
from banbury.partitioned import elsewhere, refuse_elsewhere
from banbury.schema import Features, Missing, Schema
from banbury.selection.choosing import LEAST, FamilyChoice, choose
from banbury.selection.dataset import Dataset, chooses, has_sets, held, peeked, several
from banbury.selection.folds import Deal, Dealing, Round, learned_from, rounds
from banbury.selection.groups import Groups
from banbury.selection.scoring import answer, fitting_prior, learned
from banbury.selection.weighing import AS_WEIGHED, check_weighing, tried, weighed, weighed_rows
from banbury.table import Table
from banbury.tally import Tally
from banbury.threads import each_done

Scoring = Literal["log_loss", "accuracy", "brier", "macro_f1"]
SCORINGS: tuple[Scoring, ...] = ("log_loss", "accuracy", "brier", "macro_f1")
# α's from next to nothing to ten; those near 1 come first, and are taken where it makes no difference
AUTO = tuple(sorted((float(f"{x:.3g}") for x in np.logspace(-3.0, 1.0, 13)), key=lambda x: abs(float(np.log(x)))))
SHOWN = 10
FEWEST_ORDERED = 3  # numbers tried, for the best of them to have a side where none was tried


def tune(
    data: Any,
    target: Any = None,
    *,
    alpha: float | Iterable[float] | Literal["auto"] = "auto",
    how: How | Iterable[How] = "mean",
    text: Mapping[str, Any] | None = None,
    scoring: Scoring = "log_loss",
    calibrate: Method | None = None,
    folds: Any = 10,
    groups: Any = None,
    class_prior: ClassPrior = None,
    features: Features | Literal["choose"] = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "skip",
    weigh: Any = False,
    seed: int = 0,
    threads: int | None = None,
    id: str | None = None,
    deal: Deal = "stratified",
    sample: int | None = None,
    engine: Any = None,
    partitions: int | None = None,
    **reading: Any,
) -> Tuning:
    """The best of many settings, by exact cross-validation: all of them share one count.

    ``alpha``: one number or several; "auto" tries thirteen from 0.001 to 10, and, of texts whose family and ``text`` are left
    to it, each with five models: of plain counts and of damped ones. ``how``: one or several. ``text``: settings of ``bb.Text``
    for all columns of text, each one value or a list of them, as in ``{"model": ["multinomial", "log_odds"], "min_count": [1,
    2, 5]}``; what changes the tokens themselves is counted once for each. ``features="choose"`` gives every column of numbers
    the family by which it tells the classes of rows it has not seen best: yes and no, categories, bins, trees, kernels, or one
    of the named densities, as far as its numbers allow them; and it tries the five models of texts, whatever ``alpha`` is.

    ``scoring``: "log_loss", "accuracy", "brier" or "macro_f1". ``calibrate``: "temperature", "platt" or "isotonic" judges each
    setting by what it says of rows it has not seen once that is calibrated, and calibrates the model. ``weigh``: the evidence is
    weighed within the rows that each fold learns from; True, or settings of ``bb.weigh``, each one value or a list of them, as
    in ``{"pairs": [True, False]}``; ``[False, True]`` compares it with all plain settings. It has neither α nor ``how``.
    ``folds``, ``groups``, ``id``, ``deal``, ``sample``, ``engine`` and the rest are those of ``bb.cross_validate``. A warning
    tells where the best of three numbers or more is the least or the largest of them. A target of sets of labels is tuned by
    "log_loss", "micro_f1", "macro_f1", "subset_accuracy" or "hamming_loss", and answered by a ``bb.labels.LabelTuning``.

    >>> import banbury as bb
    >>> found = bb.tune(bb.datasets.play_tennis(), target="play", alpha=[0.1, 1.0], folds=7)
    >>> found.best
    {'alpha': 1.0, 'how': 'mean'}
    >>> found.model.choice.alpha
    1.0
    """
    check_seed(seed)
    if "estimator" in reading:
        wanted = "left out: what is tried is said by alpha, how, text, features and weigh"
        raise errors.bad_setting("estimator", reading["estimator"], wanted)
    settings: dict[str, Any] = {"alpha": alpha, "how": how, "scoring": scoring, "calibrate": calibrate, "seed": seed}
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    rest = {"class_prior": class_prior, "seed": int(seed)}
    if (work := elsewhere(data, engine, partitions)) is not None:
        refuse_elsewhere(text=text, groups=groups, features=features if chooses(features) else None)
        if work.has_sets(target, **counting, **reading):
            refuse_elsewhere(class_prior=class_prior, id=id, weigh=weigh or None)
            return tune_labels(work.held_sets(target, sample, **counting, **reading), folds=folds, **settings)  # type: ignore[return-value]
        dealing = Dealing.of(folds, int(seed), id)
        if weigh is not False or calibrate is not None:
            both = weigh is not False and tried(weigh)[0]
            errors.require(not both, "weigh", weigh, "without False where rows live elsewhere: compare two calls")
            counting |= {} if weigh is False else AS_WEIGHED
            held_rows = work.held(target, dealing, sample, **counting, **reading)
            return tune(held_rows, folds=held_rows.dealt, weigh=weigh, class_prior=class_prior, **settings)
        errors.require(sample is None, "sample", sample, "left out where all rows are validated")
        each = [{"alpha": a, "how": h} for h in _hows(how) for a in _alphas(alpha)]
        return _tuned_elsewhere(work, target, dealing, each, rest, scoring, {**counting, **reading})
    errors.require(sample is None, "sample", sample, "left out where rows are here")
    if (dealt := Dealing.asked(folds, int(seed), id, deal)) is not None:
        errors.require(groups is None, "groups", groups, "left out where rows are dealt by id= or by content")
        groups = id
    data = peeked(data, schema, reading)
    if not isinstance(data, (Dataset, Table)) and has_sets(data, target, reading):
        for name, value in {"class_prior": class_prior, "groups": groups}.items():
            errors.require(value is None, name, value, "left out where rows have sets of labels")
        table = Table.of(data, target, **counting, **reading)
        return tune_labels(table, folds=folds, text=text, weigh=weigh, **settings)  # type: ignore[return-value]
    if scoring not in SCORINGS:
        raise errors.unknown_choice("scoring", scoring, SCORINGS)
    if calibrate is not None and calibrate not in tuple(METHODS):
        raise errors.unknown_choice("calibrate", calibrate, METHODS)
    errors.require(not isinstance(folds, str), "folds", folds, "a number of folds, a fold for each row, or a splitter")
    plain, weighings = tried(weigh)
    wanted = "left out where evidence is weighed, which has a temperature"
    errors.require(not weighings or calibrate is None, "calibrate", calibrate, wanted)
    if weighings and not plain:
        check_weighing(weigh, how, 1.0 if is_auto(alpha) else alpha, features)
        errors.require(text is None, "text", text, "left out where evidence is weighed, which chooses how words count")
    alphas, hows = _alphas(alpha), _hows(how)
    if weighings and schema is None and not isinstance(data, Dataset):  # it may be read twice
        data, reading = Table.of(data, labelled=False, **reading).again().source, {}
    weighed_ones = None
    if weighings:
        own = counting | ({"features": "auto"} if chooses(features) else {})
        weighable = weighed_rows(data, target, dealt, groups=groups, **own, **reading)
        weighed_ones = _Weighed.of(weighable, folds, weighings, rest, scoring)
        if not plain:
            return weighed_ones.best()
    rows = held(data, target, dealt, groups=groups, **counting, **reading)
    folds = folds if rows.dealt is None else rows.dealt
    splits = rounds(folds, rows.labels, seed, rows.groups, rows.others is not None)
    chosen = choose(rows, splits[0], {"how": hows[0], "alpha": alphas[0], **rest}) if chooses(features) else None
    rows = rows if chosen is None else replace(rows, schema=chosen.schema)
    texts = _texts(text, rows, chosen is not None or (schema is None and is_auto(alpha)))
    combined = product(texts, hows, alphas)
    grid: list[dict[str, Any]] = [{"alpha": a, "how": h, **({"text": t} if t else {})} for t, h, a in combined]
    comparison = _Comparison(rows, splits, grid, rest, scoring, calibrate)
    scores, accuracies = comparison.run()
    best = _order(scores, scoring)[0]
    own_text = grid[best].get("text", {})
    tally = comparison.totals[_counting(with_text(rows.schema, own_text))]
    tally = replace(tally, schema=with_text(tally.schema, own_text))
    found = Tuning(tally, tuple(grid), scores, accuracies, scoring, rest, chosen, comparison.calibrations.get(best))
    found = found if weighed_ones is None else weighed_ones.beside(found)
    if not isinstance(data, Dataset):  # who asks from within tells it, or not
        found.warn_of_edges()
    return found


def _tuned_elsewhere(
    work: Any, target: Any, dealing: Dealing, grid: list[Any], rest: Any, scoring: Scoring, counting: Mapping[str, Any]
) -> Tuning:
    """The best of many settings, of rows that live elsewhere: all of them share two passes."""
    if scoring not in SCORINGS:
        raise errors.unknown_choice("scoring", scoring, SCORINGS)
    each = work.validated(target, dealing, [{**settings, **rest} for settings in grid], **counting)
    accuracies = np.array([validation.accuracy.value for validation in each])
    scores = accuracies if scoring == "accuracy" else np.array([getattr(validation, scoring) for validation in each])
    found = Tuning(each[0].tally, tuple(grid), scores, accuracies, scoring, rest)
    found.warn_of_edges()
    return found


def _order(scores: Real, scoring: Scoring) -> list[int]:
    """The settings' numbers, best first; of those that differ by rounding only, in the order they were given."""
    sign = 1.0 if scoring in ("log_loss", "brier") else -1.0
    return [int(i) for i in np.argsort(np.round(sign * scores, 12), kind="stable")]


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """Settings, and how each did on rows it had not seen; ``best`` is the best, and ``model`` what it makes of all rows."""

    tally: Tally  # of all rows, counted as the best settings say
    settings: tuple[dict[str, Any], ...]
    scores: Real  # one per setting
    accuracies: Real  # means over folds
    scoring: Scoring
    rest: Mapping[str, Any]
    chosen: FamilyChoice | None = None
    calibration: Calibration | None = None  # of the best settings
    weighed: Model | None = None  # of all rows, where the best settings weigh their evidence

    @property
    def order(self) -> list[int]:
        """The settings' numbers, best first."""
        return _order(self.scores, self.scoring)

    @property
    def best(self) -> dict[str, Any]:
        """The best settings."""
        return dict(self.settings[self.order[0]])

    @property
    def features(self) -> dict[str, Family]:
        """The family of every column, with its best settings, to be given as ``features=``."""
        return {feature.name: feature.family for feature in self.tally.schema.features}

    @cached_property
    def model(self) -> Model:
        """The model of all rows under the best settings, calibrated if that was asked for."""
        return self.uncalibrated if self.calibration is None else self.uncalibrated.calibrated(self.calibration)

    @cached_property
    def uncalibrated(self) -> Model:
        """The same model before calibration."""
        if self.weighed is not None:
            return self.weighed
        return estimate(self.tally, how=self.best["how"], alpha=self.best["alpha"], **self.rest)

    @property
    def edges(self) -> dict[str, tuple[Any, str]]:
        """The settings of which three numbers or more were tried, and the best is the "least" or the "largest" of them."""
        best, found = _flat(self.best), {}
        score = dict(zip(map(repr, map(_flat, self.settings)), np.round(self.scores, 12).tolist(), strict=True))
        for name, value in best.items():
            given: list[Any] = [each[name] for each in map(_flat, self.settings) if name in each]
            numbers = sorted({n for n in given if isinstance(n, (int, float)) and not isinstance(n, bool)})
            if len(numbers) < FEWEST_ORDERED or value not in (numbers[0], numbers[-1]):
                continue
            side, next_one = ("least", numbers[1]) if value == numbers[0] else ("largest", numbers[-2])
            differs = score[repr(best)] != score[repr({**best, name: next_one})]
            if differs and self._goes_beyond(name, value, side):
                found[name] = value, side
        return found

    def _goes_beyond(self, name: str, value: float, side: str) -> bool:
        """Whether there are smaller numbers than the least, or larger ones than the largest, that a setting can have."""
        sign = -1 if side == "least" else 1
        beyond = value + sign if isinstance(value, int) else value * (1.0 + sign * 1e-3)
        try:
            check_positive("alpha", beyond, zero=True) if name == "alpha" else with_text(
                self.tally.schema, {name: beyond}
            )
        except errors.BanburyError:
            return False
        return beyond != value

    def warn_of_edges(self) -> None:
        """Warns where the best of the numbers that someone gave is at an end, so that better ones may lie beyond it."""
        for name, (value, side) in self.edges.items():
            if name == "alpha" and {each["alpha"] for each in self.settings if name in each} == set(AUTO):
                continue
            further = "smaller" if side == "least" else "larger"
            text = f"the best {name} is {value:g}, the {side} that was tried, and {further} ones may be better. Widen the grid: "
            errors.warn(errors.BanburyWarning(f"{text}try some {further} ones too."))

    def to_dict(self) -> dict[str, Any]:
        """All settings and scores, best first, as JSON can hold them."""
        each = [
            {**self.settings[i], self.scoring: float(self.scores[i]), "accuracy": float(self.accuracies[i])}
            for i in self.order
        ]
        families = {} if self.chosen is None else {"families": self.chosen.names}
        return {"scoring": self.scoring, "best": self.best, "settings": each, **families}

    def __str__(self) -> str:
        shown, texts = self.order[:SHOWN], []
        for i in shown:
            values = {k: f"{v:g}" if isinstance(v, float) else repr(v) for k, v in _flat(self.settings[i]).items()}
            texts.append(", ".join(f"{name}={value}" for name, value in values.items()))
        width = max(len("settings"), *map(len, texts))
        tried = f"{len(self.settings):,} setting{'s' * (len(self.settings) != 1)}"
        calibrated = "" if self.calibration is None else f", each calibrated ({self.calibration.method})"
        head = f"{tried} tried on {self.tally.n_rows:,.6g} rows{calibrated}, best first:"
        also = [] if self.scoring == "accuracy" else ["accuracy"]
        lines = [head, "  " + "  ".join([f"{'settings':{width}}", self.scoring.replace("_", " "), *also])]
        for i, text in zip(shown, texts, strict=True):
            line = f"  {text:{width}}  {self.scores[i]:{max(8, len(self.scoring))}.4f}"
            lines.append(line + (f"  {self.accuracies[i]:8.4f}" if also else ""))
        hidden = len(self.settings) - len(shown)
        lines += [f"  … and {hidden:,} more"] if hidden else []
        if len(self.settings) > 1 and float(np.ptp(np.round(self.scores, 12))) == 0.0:
            lines.append("  (all the same: none of the settings has an effect on these columns)")
        return "\n".join([*lines, *([] if self.chosen is None else str(self.chosen).splitlines())])

    __repr__ = __str__


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, those of texts among them."""
    return {**{name: value for name, value in settings.items() if name != "text"}, **settings.get("text", {})}


# What is tried -------------------------------------------------------------------------------------------------------


def _alphas(alpha: Any) -> list[float]:
    if isinstance(alpha, (str, bytes)):
        errors.require(is_auto(alpha), "alpha", alpha, "a number, several of them, or 'auto'")
        return list(AUTO)
    given = list(alpha) if several(alpha) else [alpha]
    errors.require(given, "alpha", alpha, "one number at least, or 'auto'")
    for number in given:
        check_positive("alpha", number, zero=True)
    return [float(number) for number in given]


def _hows(how: Any) -> list[How]:
    given: list[Any] = [how] if isinstance(how, str) else list(how) if isinstance(how, Iterable) else [how]
    for one in given:
        if not isinstance(one, str) or one not in HOWS:
            raise errors.unknown_choice("how", one, HOWS)
    if not given:
        raise errors.bad_setting("how", how, f"one at least of {errors.listed(HOWS)}")
    return given


def _texts(text: Any, rows: Dataset, choosing: bool) -> list[dict[str, Any]]:
    """Every combination of the settings of texts; those that their families propose, where nobody declared one."""
    if text is None:
        texts = [feature for feature in rows.schema.features if feature.family.text_candidates()]
        left = choosing and texts and not any(feature.declared for feature in texts)
        return [dict(one) for one in texts[0].family.text_candidates()] if left else [{}]
    wanted = "a mapping from settings of bb.Text to values, as in {'min_count': [1, 2]}"
    errors.require(isinstance(text, Mapping), "text", text, wanted)
    known = next((given for f in rows.schema.features if (given := f.family.text_settings())), None)
    if known is None:
        raise errors.bad_setting("text", dict(text), "left out where no column is text")
    for name in text:
        if name not in known:
            raise errors.unknown_choice("a setting of text", name, known)
    each = [[_plain(x) for x in (value if isinstance(value, list) else [value])] for value in text.values()]
    if [] in each:
        raise errors.bad_setting(f"text[{list(text)[each.index([])]!r}]", [], "one value at least")
    combinations = [dict(zip(text, values, strict=True)) for values in product(*each)]
    for one in combinations:
        with_text(rows.schema, one)  # raises what is wrong before anything is counted
    return combinations


def _plain(setting: Any) -> Any:
    """A setting as JSON can hold it."""
    if isinstance(setting, np.generic):
        return setting.item()
    return os.fspath(setting) if isinstance(setting, os.PathLike) else setting


def with_text(schema: Schema, settings: Mapping[str, Any]) -> Schema:
    """The schema with these settings for all columns of text."""
    if not settings:
        return schema
    changed = tuple(
        feature._replace(family=replace(feature.family, **settings)) if feature.family.text_settings() else feature  # type: ignore[type-var]
        for feature in schema.features
    )
    return replace(schema, features=changed)


# How it does ---------------------------------------------------------------------------------------------------------


class _Comparison:
    """Sums of scores over all folds, setting by setting."""

    def __init__(
        self,
        rows: Dataset,
        splits: Sequence[Round],
        grid: list[dict[str, Any]],
        rest: Mapping[str, Any],
        scoring: Scoring,
        method: Method | None = None,
    ) -> None:
        self.rows, self.splits, self.grid, self.rest, self.scoring = rows, splits, grid, rest, scoring
        self.method = method
        self.tests = [split.test for each in splits for split in each.splits]
        n_splits = len(self.tests)
        self.lost, self.right = np.zeros((len(grid), n_splits)), np.zeros((len(grid), n_splits))
        size = (len(grid), n_splits, len(rows.classes), len(rows.classes)) if scoring == "macro_f1" else (0, 0, 0, 0)
        self.confusion = np.zeros(size)
        self.totals: dict[Any, Tally] = {}  # by how they were counted
        self.calibrations: dict[int, Calibration] = {}  # where settings are calibrated before they are judged
        self._counted: tuple[Any, Groups, Dataset] | None = None  # what was counted last

    def run(self) -> tuple[Real, Real]:
        """The score and the accuracy of each setting."""
        by_count: dict[Any, dict[str, list[int]]] = {}  # and by model where scores, which may be large, are held
        for i, settings in enumerate(self.grid):
            text = settings.get("text", {})
            models = by_count.setdefault(_counting(with_text(self.rows.schema, text)), {})
            models.setdefault("" if self.method is None else repr(text), []).append(i)
        for counting, members in ((counting, each) for counting, own in by_count.items() for each in own.values()):
            size = sum(map(len, self.tests)), len(self.rows.classes)  # of all that is said before it is calibrated
            said, start = {} if self.method is None else {i: np.empty(size) for i in members}, 0
            for each in self.splits:
                self._round(counting, each, members, start, said)
                start += len(each.splits)
            for i, scores in said.items():
                self._judge(i, scores)
        return self.figures()

    def _judge(self, i: int, scores: Real) -> None:
        """Calibrates a setting by all it says of tests, and notes what that is worth."""
        rows = np.concatenate(self.tests)
        assert self.method is not None
        own = self.calibrations[i] = calibrate(self.method, scores, self.rows.labels[rows], self._weights(rows))
        for split in range(len(self.tests)):
            self._note(i, split, own.log_apply(scores[self._place(split)]))

    def figures(self) -> tuple[Real, Real]:
        """The score and the accuracy of each setting, of what was noted."""
        each = np.array([float(self._weights(test).sum()) for test in self.tests])
        weight = float(each.sum())
        if not weight > 0:
            raise errors.tested_nothing()
        accuracies = (self.right[:, each > 0] / each[each > 0]).mean(axis=1)  # over folds, as cross_validate has it
        if self.scoring == "macro_f1":
            cells = self.confusion.sum(axis=1)
            both = cells.sum(axis=1) + cells.sum(axis=2)
            each_f1 = np.where(both > 0, 2.0 * np.einsum("sii->si", cells) / np.where(both > 0, both, 1.0), 0.0)
            return each_f1.sum(axis=1) / np.maximum((both > 0).sum(axis=1), 1), accuracies
        return (accuracies if self.scoring == "accuracy" else self.lost.sum(axis=1) / weight), accuracies

    def _grouped(self, counting: Any, rows: Dataset, each: Round) -> tuple[Groups, Dataset]:
        """The rows of a round counted group by group, and encoded: once, for settings that come one after the other."""
        key = (counting, id(each))
        if self._counted is None or self._counted[0] != key:
            self._counted = None  # which may be large
            groups = Groups.of(rows, each.groups, each.n_groups)
            self._counted = key, groups, groups.encoded(rows)
            self.totals.setdefault(counting, groups.total)
        return self._counted[1:]

    def _round(self, counting: Any, each: Round, members: list[int], start: int, said: dict[int, Real]) -> None:
        rows = replace(self.rows, schema=with_text(self.rows.schema, self.grid[members[0]].get("text", {})))
        groups, encoded = self._grouped(counting, rows, each)
        workers = 1 if groups.counted.schema.runs_python else min(rows.threads, len(each.splits))

        def one(number: int) -> None:
            split = each.splits[number]
            tally = learned(rows, split, groups, number, keep=True)
            taken = (rows if split.learned is None else encoded).only(split.test)  # rows counted anew have other words
            everything = np.arange(len(split.test))
            for i in members:
                settings = self.grid[i]
                known = replace(tally, schema=with_text(tally.schema, settings.get("text", {})))
                chosen = {"how": settings["how"], "alpha": settings["alpha"], **self.rest}
                model = estimate(known, **fitting_prior(chosen, rows.classes, known.classes))
                model = replace(model, threads=rows.threads // workers or 1)
                scores = answer(taken, everything, model, "log_posterior")[0]
                if i in said:
                    said[i][self._place(start + number)] = scores
                else:
                    self._note(i, start + number, scores)

        each_done(one, len(each.splits), workers)

    def _place(self, split: int) -> slice:
        """Where a test stands among all."""
        start = sum(map(len, self.tests[:split]))
        return slice(start, start + len(self.tests[split]))

    def _weights(self, rows: Int) -> Real:
        return np.ones(len(rows)) if self.rows.weights is None else self.rows.weights[rows]

    def _note(self, i: int, split: int, scores: Real) -> None:
        """What a setting's scores of one test are worth."""
        truth, weight = self.rows.labels[self.tests[split]], self._weights(self.tests[split])
        best, at = scores.argmax(axis=1), np.arange(len(truth))
        self.right[i, split] = weight @ (best == truth)
        if self.scoring == "log_loss":
            self.lost[i, split] = -(weight @ np.maximum(scores[at, truth], LEAST))
        elif self.scoring == "brier":
            shares = np.exp(scores)
            half = 0.5 if scores.shape[1] == 2 else 1.0
            self.lost[i, split] = half * (weight @ ((shares**2).sum(axis=1) - 2.0 * shares[at, truth] + 1.0))
        elif self.scoring == "macro_f1":
            np.add.at(self.confusion[i, split], (truth, best), weight)


@dataclass(frozen=True, eq=False)
class _Weighed:
    """Weighed evidence under some settings, and how each did over the folds."""

    rows: Dataset
    settings: tuple[dict[str, Any], ...]
    scores: Real
    accuracies: Real
    rest: Mapping[str, Any]
    scoring: Scoring

    @classmethod
    def of(
        cls, rows: Dataset, folds: Any, weighings: Sequence[Any], rest: Mapping[str, Any], scoring: Scoring
    ) -> _Weighed:
        """Weighs anew within the rows that each fold learns from."""
        dealt = folds if rows.dealt is None else rows.dealt
        splits = rounds(dealt, rows.labels, rest["seed"], rows.groups, rows.others is not None)
        grid = [{"weigh": weigh} for weigh in weighings]
        comparison, number = _Comparison(rows, splits, grid, rest, scoring), 0
        for each in splits:
            for split in each.splits:
                chosen = rows.only(learned_from(split, each))
                for i, weigh in enumerate(weighings):
                    model = replace(weighed(chosen, weigh=weigh, **rest), threads=rows.threads)
                    comparison._note(i, number, answer(rows, split.test, model, "log_posterior")[0])
                number += 1
        return cls(rows, tuple(grid), *comparison.figures(), rest, scoring)

    def best(self) -> Tuning:
        """The best of them."""
        model = weighed(self.rows, weigh=self.settings[_order(self.scores, self.scoring)[0]]["weigh"], **self.rest)
        figures = self.settings, self.scores, self.accuracies, self.scoring
        return Tuning(model.tally, *figures, self.rest, weighed=model)

    def beside(self, plain: Tuning) -> Tuning:
        """The best of them and of plain settings."""
        scores = np.concatenate([plain.scores, self.scores])
        settings, accuracies = (*plain.settings, *self.settings), np.concatenate([plain.accuracies, self.accuracies])
        best = plain if _order(scores, self.scoring)[0] < len(plain.scores) else self.best()
        return replace(best, settings=settings, scores=scores, accuracies=accuracies)


def _counting(schema: Schema) -> tuple[Any, ...]:
    """What settings must share to be counted together."""
    return tuple(feature.family.counted() for feature in schema.features if feature.family.text_settings())
