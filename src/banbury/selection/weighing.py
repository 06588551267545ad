"""Models whose evidence is weighed, of rows that are held: within each fold, and after so many rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from banbury import errors
from banbury.naive_bayes import ClassPrior, Model, estimate
from banbury.readers import Codes
from banbury.selection.dataset import Dataset, chooses, held, several
from banbury.selection.groups import Groups
from banbury.selection.scoring import fitting_prior
from banbury.table import Held, Labels, Table
from banbury.weighing import FEWEST_ROWS, learn

SETTINGS = ("pairs", "correct", "fewest")


def check_weighing(weigh: Any, how: Any, alpha: Any, features: Any) -> None:
    """Raises where settings are given that weighed evidence has none of."""
    if several(alpha) or alpha != 1.0 or chooses(features) or how != "mean":
        raise errors.bad_setting("weigh", weigh, "left out where how or alpha are given, or families are to be chosen")
    check_weighing_settings(weigh)


def check_weighing_settings(weigh: Any) -> None:
    """Raises unless it is True, or settings of weighing by name."""
    if weigh is not True and not isinstance(weigh, Mapping):
        raise errors.bad_setting("weigh", weigh, "True, False, or settings of bb.weigh such as {'pairs': False}")
    for name in () if weigh is True else weigh:
        if name not in SETTINGS:
            raise errors.unknown_choice("a setting of weigh", name, SETTINGS[:2])


def tried(weigh: Any) -> tuple[bool, list[Any]]:
    """Whether plain evidence is among what is to be tried, and the settings of weighing: of lists every combination."""
    each = weigh if isinstance(weigh, (list, tuple)) else [weigh]
    found: list[Any] = []
    for one in each:
        if one is False:
            continue
        check_weighing_settings(one)
        if one is True or not one:
            found.append(True)
            continue
        values = [value if isinstance(value, (list, tuple)) else [value] for value in one.values()]
        found += [dict(zip(one, combination, strict=True)) for combination in product(*values)]
    if not each or (not found and any(one is not False for one in each)):
        raise errors.bad_setting("weigh", weigh, "True, False, settings of bb.weigh, or several of these to compare")
    return any(one is False for one in each), found


AS_WEIGHED = {"missing": "category", "trees": "all"}  # numbers are quantile trees, and what is missing is a value


def weighed_rows(data: Any, target: Any, dealing: Any = None, **settings: Any) -> Dataset:
    """Rows as evidence is weighed, whatever else is said of missing values."""
    return held(data, target, dealing, **{**settings, **AS_WEIGHED})


def weighed(
    rows: Dataset, seed: int = 0, weigh: bool | Mapping[str, Any] = True, class_prior: ClassPrior = None
) -> Model:
    """The model of these rows, its evidence weighed on them; plain below 100 rows, or ``weigh["fewest"]`` of them."""
    settings = {} if isinstance(weigh, bool) else dict(weigh)
    fewest = settings.pop("fewest", FEWEST_ROWS)
    counted = np.where(rows.labels >= 0, 0, -1).astype(np.int32)
    tally = replace(Groups.of(rows, counted, 1).total, skipped=rows.skipped)
    model = estimate(tally, **fitting_prior({"class_prior": class_prior}, rows.classes, tally.classes))
    if len(tally.classes) < 2 or float(tally.n_rows) < fewest:
        return model
    codes = Codes(rows.labels, 0, list(rows.classes))
    labels = Labels(None, None, codes, None, rows.weights, None, rows.threads, groups=rows.groups)
    table = Table(Held(rows.batches, rows.name), labels, tally.schema)
    sample = None if rows.others is None else int(np.count_nonzero(rows.labels >= 0))
    return model.weighed(learn(tally, table, seed=seed, sample=sample, **settings))
