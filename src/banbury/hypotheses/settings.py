"""What a space of hypotheses is made from: their names or functions, their prior, noise and labels, each checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, log
from typing import Any, Literal

import numpy as np

from banbury import errors
from banbury.arrays import Real
from banbury.hypotheses.examples import (
    Askable,
    Functions,
    bad_number,
    floats,
    is_hashable,
    is_missing,
    matrix,
    plain,
    unlike_hypotheses,
    vector,
)

Likelihood = Literal["noise_free", "label_noise", "gaussian", "bernoulli"]

LIKELIHOODS = ("noise_free", "label_noise", "gaussian", "bernoulli")
MOST = 10_000_000  # hypotheses that are held
ROUNDING = 1e-6  # by which a prior may miss one: single precision does


def named(hypotheses: Any) -> tuple[Sequence[Any], Askable | None]:
    """The names of the hypotheses, and what can be asked about rows, if anything can."""
    if isinstance(hypotheses, Askable) and isinstance(hypotheses, Sequence):  # as a generator makes them
        return hypotheses, hypotheses
    if isinstance(hypotheses, (int, np.integer)) and not isinstance(hypotheses, bool):
        if not 1 <= hypotheses <= MOST:
            raise errors.bad_setting("hypotheses", hypotheses, f"a number from 1 to {MOST:,}")
        return range(int(hypotheses)), None
    if isinstance(hypotheses, (str, bytes)) or not isinstance(hypotheses, Iterable):
        raise errors.bad_setting("hypotheses", hypotheses, "a list of functions or of names, or how many there are")
    by_name = isinstance(hypotheses, Mapping)
    members = list(hypotheses.values()) if isinstance(hypotheses, Mapping) else [plain(each) for each in hypotheses]
    if not members:
        raise errors.bad_setting("hypotheses", {} if by_name else [], "one at least")
    callables = sum(map(callable, members))
    if callables != len(members) and (callables or by_name):
        odd = next(member for member in members if not callable(member))
        raise errors.bad_setting("hypotheses", odd, "all functions of a row, or all names")
    names = list(hypotheses) if by_name else _function_names(members) if callables else members
    _check_different(names)
    return names, Functions(members) if callables else None


def _function_names(functions: Sequence[Any]) -> list[str]:
    """Their own names if these tell them apart, else h1, h2, …"""
    names = [getattr(function, "__name__", "") for function in functions]
    if len(set(names)) == len(names) and not {"", "<lambda>"} & set(names):
        return names
    return [f"h{i}" for i in range(1, len(names) + 1)]


def _check_different(names: Sequence[Any]) -> None:
    seen = set()
    for name in names:
        if not is_hashable(name):
            raise errors.bad_setting("hypotheses", name, "functions of a row, or names such as texts and numbers")
        if name in seen:
            raise errors.bad_setting("hypotheses", name, "different from each other: this name is there twice")
        seen.add(name)


def log_prior(names: Sequence[Any], prior: Any, lengths: Any) -> Real:
    """log P(h), which sums to one."""
    by_length = isinstance(prior, str) and prior == "description_length"
    if by_length != (lengths is not None):
        wanted = "the bits of each hypothesis, together with prior='description_length'"
        raise errors.bad_setting("lengths", lengths, wanted)
    if by_length:
        bits = _of_each("length", lengths, names)
        shares = -(bits - bits.min()) * log(2)
        return np.asarray(shares - np.log(np.exp(shares).sum()))
    if isinstance(prior, str):
        if prior != "uniform":
            raise errors.unknown_choice("prior", prior, ("uniform", "description_length"))
        return np.full(len(names), -log(len(names)))
    shares = _of_each("prior", prior, names)
    total = float(shares.sum())
    if abs(total - 1.0) > ROUNDING:
        raise errors.BadPrior(
            f"the prior probabilities sum to {total:.12g}, and must sum to 1. Divide them by their sum, or give prior='uniform'.",
            total=total,
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares / total))


def _of_each(what: str, numbers: Any, names: Sequence[Any]) -> Real:
    """A number from 0 up for each hypothesis."""
    array = matrix(by_name(f"the {what}", numbers, names))
    if array.ndim == 0:
        raise errors.bad_setting(f"the {what}", numbers, "a number for each hypothesis")
    if array.shape != (len(names),):
        raise unlike_hypotheses(f"the {what}", array.shape, len(names))
    values = floats(array)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        h = int(wrong.argmax())
        raise bad_number(what, plain(array[h]), names[h], "a finite number from 0 up")
    return values


def by_name(what: str, numbers: Any, names: Sequence[Any]) -> Any:
    """Numbers by name in the order of the hypotheses; others as they are."""
    if not isinstance(numbers, Mapping):
        return numbers
    known = set(names)
    lacking, extra = [name for name in names if name not in numbers], [name for name in numbers if name not in known]
    if extra:
        raise errors.UnknownHypothesis(
            f"{what} names {extra[0]!r}, and there is no such hypothesis.{errors.did_you_mean(extra[0], names)}\n"
            f"  Hypotheses: {errors.listed(names)}",
            name=extra[0],
        )
    if lacking:
        raise errors.UnknownHypothesis(
            f"{what} has no number for {errors.listed(map(repr, lacking))}. Give one for every hypothesis.",
            name=lacking[0],
        )
    return [numbers[name] for name in names]


def checked_noise(likelihood: Any, noise: Any) -> float:
    if not isinstance(likelihood, str) or likelihood not in LIKELIHOODS:
        raise errors.unknown_choice("likelihood", likelihood, LIKELIHOODS)
    if likelihood in ("noise_free", "bernoulli"):
        if noise is not None:
            raise errors.bad_setting("noise", noise, f"left out when likelihood={likelihood!r}")
        return 0.0
    number = isinstance(noise, (int, float, np.integer, np.floating)) and not isinstance(noise, bool)
    if likelihood == "label_noise" and not (number and 0 <= noise < 1):
        raise errors.bad_setting("noise", noise, "the probability of a wrong label: from 0 up, and below 1")
    if likelihood == "gaussian" and not (number and isfinite(noise) and noise > 0):
        raise errors.bad_setting("noise", noise, "the standard deviation of the numbers, above 0")
    return float(noise)


def checked_labels(labels: Any, likelihood: str) -> tuple[Any, ...]:
    values = tuple(vector(labels, "labels").tolist())
    usable = all(is_hashable(label) and not is_missing(label) for label in values)
    if not usable or len(set(values)) < max(len(values), 2) or (likelihood == "bernoulli" and len(values) != 2):
        how_many = "two" if likelihood == "bernoulli" else "two at least"
        raise errors.bad_setting("labels", list(values), f"texts, numbers or booleans, {how_many}, each once")
    return values
