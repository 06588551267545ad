"""Tuning: settings compared by what they say of rows they have not seen. Rows are counted once, and encoded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from threading import Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from banbury import errors
from banbury.distributions import Text
from banbury.distributions.family import HOWS, How, check_positive
from banbury.naive_bayes import ClassPrior, Model, check_seed, estimate
from banbury.schema import Features, Missing, Schema
from banbury.selection.choosing import Choice, choose
from banbury.selection.cross_validation import answers, learned
from banbury.selection.dataset import Dataset, held
from banbury.selection.folds import Round, rounds
from banbury.selection.groups import Groups
from banbury.tally import Label, Tally

Real = NDArray[np.float64]
Scoring = Literal["log_loss", "accuracy", "brier", "macro_f1"]
SCORINGS: tuple[Scoring, ...] = ("log_loss", "accuracy", "brier", "macro_f1")
AUTO = tuple(float(f"{x:.3g}") for x in np.logspace(-3.0, 1.0, 13))  # α's, from next to nothing to ten
SHOWN = 10
TINY = float(np.log(np.finfo(float).tiny))


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
    alphas, hows = _alphas(alpha), _hows(how)
    choosing = isinstance(features, str) and features == "choose"
    rows = held(
        data,
        target,
        schema=schema,
        features="auto" if choosing else features,
        weights=weights,
        missing=missing,
        threads=threads,
        **reading,
    )
    splits = rounds(folds, rows.labels, seed, groups)
    chosen = choose(rows, splits[0], hows[0], seed) if choosing else None
    if chosen is not None:
        rows = replace(rows, schema=chosen.schema)
    grid = [
        {"alpha": a, "how": h, **({"text": t} if t else {})} for t in _texts(text, rows) for h in hows for a in alphas
    ]
    rest = {"class_prior": class_prior, "seed": int(seed)}
    scores, accuracies = _Comparison(rows, splits, grid, rest, scoring).run()
    return Tuning(rows, tuple(grid), scores, accuracies, scoring, rest, chosen)


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """Settings, and how each did on rows it had not seen; ``best`` is the best, and ``model`` what it makes of all rows."""

    rows: Dataset
    settings: tuple[dict[str, Any], ...]
    scores: Real  # one per setting
    accuracies: Real
    scoring: Scoring
    rest: Mapping[str, Any]
    chosen: Choice | None = None

    @property
    def order(self) -> list[int]:
        """The settings' numbers, best first."""
        sign = 1.0 if self.scoring in ("log_loss", "brier") else -1.0
        return [int(i) for i in np.argsort(sign * self.scores, kind="stable")]

    @property
    def best(self) -> dict[str, Any]:
        """The best settings."""
        return dict(self.settings[self.order[0]])

    @property
    def classes(self) -> tuple[Label, ...]:
        return self.rows.classes

    @cached_property
    def tally(self) -> Tally:
        """All rows, counted as the best settings say."""
        schema = with_text(self.rows.schema, self.best.get("text", {}))
        everything = np.zeros(self.rows.n_rows, dtype=np.int32)
        return Groups(self.rows.count(everything, 1, schema), self.rows.classes, 1).total

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
        shown = self.order[:SHOWN]
        texts = [_described(self.settings[i]) for i in shown]
        width = max(len("settings"), *map(len, texts))
        head = f"{len(self.settings):,} settings tried on {int(np.count_nonzero(self.rows.labels >= 0)):,} rows, best first:"
        also = [] if self.scoring == "accuracy" else ["accuracy"]
        lines = [head, "  " + "  ".join([f"{'settings':{width}}", self.scoring.replace("_", " "), *also])]
        for i, text in zip(shown, texts, strict=True):
            numbers = [
                f"{self.scores[i]:{max(8, len(self.scoring))}.4f}",
                *(f"{self.accuracies[i]:8.4f}" for _ in also),
            ]
            lines.append(f"  {text:{width}}  " + "  ".join(numbers))
        hidden = len(self.settings) - len(shown)
        lines += [f"  … and {hidden:,} more"] if hidden else []
        return "\n".join([*lines, *([] if self.chosen is None else str(self.chosen).splitlines())])

    __repr__ = __str__


def _described(settings: Mapping[str, Any]) -> str:
    plain = {**{k: v for k, v in settings.items() if k != "text"}, **settings.get("text", {})}
    return ", ".join(
        f"{name}={value!r}" if not isinstance(value, float) else f"{name}={value:g}" for name, value in plain.items()
    )


# What is tried -------------------------------------------------------------------------------------------------------


def _alphas(alpha: Any) -> list[float]:
    if isinstance(alpha, str):
        if alpha != "auto":
            raise errors.unknown_choice("alpha", alpha, ["auto"])
        return list(AUTO)
    given = list(alpha) if isinstance(alpha, Iterable) else [alpha]
    if not given:
        raise errors.bad_setting("alpha", alpha, "one number at least, or 'auto'")
    for number in given:
        check_positive("alpha", number, zero=True)
    return [float(number) for number in given]


def _hows(how: Any) -> list[How]:
    given: list[Any] = [how] if isinstance(how, str) else list(how) if isinstance(how, Iterable) else [how]
    for one in given:
        if one not in HOWS:
            raise errors.unknown_choice("how", one, HOWS)
    if not given:
        raise errors.bad_setting("how", how, f"one at least of {errors.listed(HOWS)}")
    return given


def _texts(text: Any, rows: Dataset) -> list[dict[str, Any]]:
    """Every combination of the settings of texts."""
    if text is None:
        return [{}]
    if not isinstance(text, Mapping):
        raise errors.bad_setting(
            "text", text, "a mapping from settings of bb.Text to values, as in {'min_count': [1, 2]}"
        )
    known = [field.name for field in fields(Text)]
    for name in text:
        if name not in known:
            raise errors.unknown_choice("a setting of text", name, known)
    if not rows.schema.texts:
        raise errors.bad_setting("text", dict(text), "left out where no column is text")
    each = [value if isinstance(value, list) else [value] for value in text.values()]
    found = [dict(zip(text, values, strict=True)) for values in product(*each)]
    for one in found:
        with_text(rows.schema, one)  # raises what is wrong before anything is counted
    return found


def with_text(schema: Schema, settings: Mapping[str, Any]) -> Schema:
    """The schema with these settings for all columns of text."""
    if not settings:
        return schema
    changed = tuple(
        replace(feature, family=replace(feature.family, **settings)) if isinstance(feature.family, Text) else feature
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
        self.lost, self.right, self.weight = np.zeros(len(grid)), np.zeros(len(grid)), 0.0
        size = (len(grid), len(rows.classes), len(rows.classes)) if scoring == "macro_f1" else (0, 0, 0)
        self.confusion = np.zeros(size)
        self.lock = Lock()

    def run(self) -> tuple[Real, Real]:
        """The score and the accuracy of each setting."""
        by_count: dict[Any, list[int]] = {}
        for i, settings in enumerate(self.grid):
            by_count.setdefault(_counting(with_text(self.rows.schema, settings.get("text", {}))), []).append(i)
        for first, members in enumerate(by_count.values()):
            schema = with_text(self.rows.schema, self.grid[members[0]].get("text", {}))
            for each in self.splits:
                self._round(replace(self.rows, schema=schema), each, members, first == 0)
        if self.scoring == "macro_f1":
            return _macro_f1(self.confusion), self.right / self.weight
        return (self.right if self.scoring == "accuracy" else self.lost) / self.weight, self.right / self.weight

    def _round(self, rows: Dataset, each: Round, members: list[int], weigh: bool) -> None:
        groups = Groups.of(rows, each.groups, each.n_groups)
        encoded = groups.encoded(rows)
        workers = min(rows.threads, len(each.splits))

        def one(number: int) -> None:
            split = each.splits[number]
            tally = learned(rows, split, groups, number, keep=True)
            truth = rows.labels[split.test]
            weights = None if rows.weights is None else rows.weights[split.test]
            taken = encoded.only(split.test)
            everything = np.arange(len(split.test))
            for i in members:
                settings = self.grid[i]
                known = replace(tally, schema=with_text(tally.schema, settings.get("text", {})))
                model = estimate(known, how=settings["how"], alpha=settings["alpha"], **self.rest)
                found = answers(
                    taken, everything, replace(model, threads=rows.threads // workers or 1), "log_posterior"
                )
                self._add(i, found, truth, weights)
            with self.lock:
                self.weight += (len(truth) if weights is None else float(weights.sum())) if weigh else 0.0

        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(one, range(len(each.splits))):
                pass

    def _add(self, i: int, scores: Real, truth: NDArray[np.int32], weights: Real | None) -> None:
        best, at = scores.argmax(axis=1), np.arange(len(truth))
        right = (best == truth).astype(np.float64)
        lost = np.zeros(1)
        if self.scoring == "log_loss":
            lost = -np.maximum(scores[at, truth], TINY)
        elif self.scoring == "brier":
            shares = np.exp(scores)
            lost = (shares**2).sum(axis=1) - 2.0 * shares[at, truth] + 1.0
        weight = np.ones(len(truth)) if weights is None else weights
        with self.lock:
            self.right[i] += weight @ right
            if self.scoring in ("log_loss", "brier"):
                self.lost[i] += weight @ lost
            if self.scoring == "macro_f1":
                np.add.at(self.confusion[i], (truth, best), weight)


def _counting(schema: Schema) -> tuple[Any, ...]:
    """What settings must share to be counted together."""
    return tuple(feature.family.counted() for feature in schema.texts)


def _macro_f1(confusion: Real) -> Real:
    right = np.einsum("sii->si", confusion)
    both = confusion.sum(axis=1) + confusion.sum(axis=2)
    return np.asarray(np.where(both > 0, 2.0 * right / np.where(both > 0, both, 1.0), 0.0).mean(axis=1))
