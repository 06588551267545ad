"""Tuning: settings compared by what they say of rows they have not seen. Rows are counted once, and encoded once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.arrays import Real
from banbury.distributions.family import HOWS, Family, How, check_positive
from banbury.naive_bayes import ClassPrior, Model, check_seed, estimate
from banbury.schema import Features, Missing, Schema
from banbury.selection.choosing import FamilyChoice, choose
from banbury.selection.dataset import Dataset, chooses, held
from banbury.selection.folds import Round, rounds
from banbury.selection.groups import Groups
from banbury.selection.scoring import answer, fitting_prior, learned
from banbury.tally import Tally

Scoring = Literal["log_loss", "accuracy", "brier", "macro_f1"]
SCORINGS: tuple[Scoring, ...] = ("log_loss", "accuracy", "brier", "macro_f1")
# α's from next to nothing to ten; those near 1 come first, and are taken where it makes no difference
AUTO = tuple(sorted((float(f"{x:.3g}") for x in np.logspace(-3.0, 1.0, 13)), key=lambda x: abs(float(np.log(x)))))
SHOWN = 10
LEAST = float(np.log(np.finfo(float).eps))  # scikit-learn's least log probability


def tune(
    data: Any,
    target: Any = None,
    *,
    alpha: float | Iterable[float] | Literal["auto"] = "auto",
    how: How | Iterable[How] = "mean",
    text: Mapping[str, Any] | None = None,
    scoring: Scoring = "log_loss",
    folds: Any = 10,
    groups: Any = None,
    class_prior: ClassPrior = None,
    features: Features | Literal["choose"] = "auto",
    schema: Schema | None = None,
    weights: Any = None,
    missing: Missing = "skip",
    seed: int = 0,
    threads: int | None = None,
    **reading: Any,
) -> Tuning:
    """The best of many settings, by exact cross-validation: all of them share one count.

    ``alpha``: one number or several; "auto" tries thirteen from 0.001 to 10. ``how``: one or several. ``text``: settings of
    ``bb.Text`` for all columns of text, each one value or a list of them, as in ``{"model": ["multinomial", "complement"],
    "min_count": [1, 2, 5]}``; what changes the tokens themselves is counted once for each. ``features="choose"`` gives every
    column of numbers the family, Gaussian, histogram, kernel density or Poisson, that finds rows it has not seen likeliest.

    ``scoring``: "log_loss", "accuracy", "brier" or "macro_f1". ``folds``, ``groups`` and the rest are those of
    ``bb.cross_validate``.

    >>> import banbury as bb
    >>> found = bb.tune(bb.datasets.play_tennis(), target="play", alpha=[0.1, 1.0, 3.0], folds=7)
    >>> found.best
    {'alpha': 3.0, 'how': 'mean'}
    >>> found.model.choice.alpha
    3.0
    """
    check_seed(seed)
    if scoring not in SCORINGS:
        raise errors.unknown_choice("scoring", scoring, SCORINGS)
    if isinstance(folds, str):
        raise errors.bad_setting("folds", folds, "a number of folds, a fold for each row, or a splitter")
    for name in {"weigh", "estimator"}.intersection(reading):
        wanted = "left out: weighing chooses its own settings within the rows; bb.cross_validate says how good it is"
        raise errors.bad_setting(name, reading[name], wanted)
    alphas, hows = _alphas(alpha), _hows(how)
    counting = {"schema": schema, "features": features, "weights": weights, "missing": missing, "threads": threads}
    rows = held(data, target, groups=groups, **counting, **reading)
    splits = rounds(folds, rows.labels, seed, rows.groups)
    chosen = choose(rows, splits[0], hows[0], seed) if chooses(features) else None
    if chosen is not None:
        rows = replace(rows, schema=chosen.schema)
    grid: list[dict[str, Any]] = [
        {"alpha": a, "how": h, **({"text": t} if t else {})} for t in _texts(text, rows) for h in hows for a in alphas
    ]
    rest = {"class_prior": class_prior, "seed": int(seed)}
    comparison = _Comparison(rows, splits, grid, rest, scoring)
    scores, accuracies = comparison.run()
    best = _order(scores, scoring)[0]
    tally = comparison.totals[_counting(with_text(rows.schema, grid[best].get("text", {})))]
    tally = replace(tally, schema=with_text(tally.schema, grid[best].get("text", {})))
    return Tuning(tally, tuple(grid), scores, accuracies, scoring, rest, chosen)


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
    accuracies: Real
    scoring: Scoring
    rest: Mapping[str, Any]
    chosen: FamilyChoice | None = None

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
        """The model of all rows under the best settings."""
        return estimate(self.tally, how=self.best["how"], alpha=self.best["alpha"], **self.rest)

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
            plain = {k: v for k, v in self.settings[i].items() if k != "text"} | self.settings[i].get("text", {})
            values = {k: f"{v:g}" if isinstance(v, float) else repr(v) for k, v in plain.items()}
            texts.append(", ".join(f"{name}={value}" for name, value in values.items()))
        width = max(len("settings"), *map(len, texts))
        tried = f"{len(self.settings):,} setting{'s' * (len(self.settings) != 1)}"
        head = f"{tried} tried on {self.tally.n_rows:,.6g} rows, best first:"
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


# What is tried -------------------------------------------------------------------------------------------------------


def several(alpha: Any) -> bool:
    """Whether a setting is to be chosen: from those given, or "auto"."""
    return isinstance(alpha, Iterable) and not (isinstance(alpha, np.ndarray) and alpha.ndim == 0)


def _alphas(alpha: Any) -> list[float]:
    if isinstance(alpha, (str, bytes)):
        if alpha != "auto":
            raise errors.bad_setting("alpha", alpha, "a number, several of them, or 'auto'")
        return list(AUTO)
    given = list(alpha) if several(alpha) else [alpha]
    if not given:
        raise errors.bad_setting("alpha", alpha, "one number at least, or 'auto'")
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


def _texts(text: Any, rows: Dataset) -> list[dict[str, Any]]:
    """Every combination of the settings of texts."""
    if text is None:
        return [{}]
    if not isinstance(text, Mapping):
        wanted = "a mapping from settings of bb.Text to values, as in {'min_count': [1, 2]}"
        raise errors.bad_setting("text", text, wanted)
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
    ) -> None:
        self.rows, self.splits, self.grid, self.rest, self.scoring = rows, splits, grid, rest, scoring
        n_splits = sum(len(each.splits) for each in splits)
        self.lost, self.right = np.zeros((len(grid), n_splits)), np.zeros((len(grid), n_splits))
        size = (len(grid), n_splits, len(rows.classes), len(rows.classes)) if scoring == "macro_f1" else (0, 0, 0, 0)
        self.confusion = np.zeros(size)
        self.totals: dict[Any, Tally] = {}  # by how they were counted

    def run(self) -> tuple[Real, Real]:
        """The score and the accuracy of each setting."""
        by_count: dict[Any, list[int]] = {}
        for i, settings in enumerate(self.grid):
            by_count.setdefault(_counting(with_text(self.rows.schema, settings.get("text", {}))), []).append(i)
        for counting, members in by_count.items():
            schema, start = with_text(self.rows.schema, self.grid[members[0]].get("text", {})), 0
            for each in self.splits:
                groups = self._round(replace(self.rows, schema=schema), each, members, start)
                self.totals.setdefault(counting, groups.total)
                start += len(each.splits)
        tests = [split.test for each in self.splits for split in each.splits]
        weight = sum(float(len(test) if self.rows.weights is None else self.rows.weights[test].sum()) for test in tests)
        if not weight > 0:
            raise errors.tested_nothing()
        accuracies = self.right.sum(axis=1) / weight
        if self.scoring == "macro_f1":
            cells = self.confusion.sum(axis=1)
            both = cells.sum(axis=1) + cells.sum(axis=2)
            each_f1 = np.where(both > 0, 2.0 * np.einsum("sii->si", cells) / np.where(both > 0, both, 1.0), 0.0)
            return each_f1.sum(axis=1) / np.maximum((both > 0).sum(axis=1), 1), accuracies
        return (accuracies if self.scoring == "accuracy" else self.lost.sum(axis=1) / weight), accuracies

    def _round(self, rows: Dataset, each: Round, members: list[int], start: int) -> Groups:
        groups = Groups.of(rows, each.groups, each.n_groups)
        encoded = groups.encoded(rows)
        workers = min(rows.threads, len(each.splits))

        def one(number: int) -> None:
            split = each.splits[number]
            tally = learned(rows, split, groups, number, keep=True)
            truth = rows.labels[split.test]
            weights = None if rows.weights is None else rows.weights[split.test]
            taken = (rows if split.learned is None else encoded).only(split.test)  # rows counted anew have other words
            everything = np.arange(len(split.test))
            for i in members:
                settings = self.grid[i]
                known = replace(tally, schema=with_text(tally.schema, settings.get("text", {})))
                chosen = {"how": settings["how"], "alpha": settings["alpha"], **self.rest}
                model = estimate(known, **fitting_prior(chosen, rows.classes, known.classes))
                model = replace(model, threads=rows.threads // workers or 1)
                self._note(i, start + number, answer(taken, everything, model, "log_posterior")[0], truth, weights)

        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(errors.led_from_here(one), range(len(each.splits))):
                pass
        return groups

    def _note(self, i: int, split: int, scores: Real, truth: NDArray[np.int32], weights: Real | None) -> None:
        """What a setting's scores of one test are worth."""
        best, at = scores.argmax(axis=1), np.arange(len(truth))
        weight = np.ones(len(truth)) if weights is None else weights
        self.right[i, split] = weight @ (best == truth)
        if self.scoring == "log_loss":
            self.lost[i, split] = -(weight @ np.maximum(scores[at, truth], LEAST))
        elif self.scoring == "brier":
            shares = np.exp(scores)
            half = 0.5 if scores.shape[1] == 2 else 1.0
            self.lost[i, split] = half * (weight @ ((shares**2).sum(axis=1) - 2.0 * shares[at, truth] + 1.0))
        elif self.scoring == "macro_f1":
            np.add.at(self.confusion[i, split], (truth, best), weight)


def _counting(schema: Schema) -> tuple[Any, ...]:
    """What settings must share to be counted together."""
    return tuple(feature.family.counted() for feature in schema.features if feature.family.text_settings())
