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
        errors.require(1 <= hypotheses <= MOST, "hypotheses", hypotheses, f"a number from 1 to {MOST:,}")
        return range(int(hypotheses)), None
    if isinstance(hypotheses, (str, bytes)) or not isinstance(hypotheses, Iterable):
        raise errors.bad_setting("hypotheses", hypotheses, "a list of functions or of names, or how many there are")
    by_name = isinstance(hypotheses, Mapping)
    members = list(hypotheses.values()) if isinstance(hypotheses, Mapping) else [plain(each) for each in hypotheses]
    errors.require(members, "hypotheses", {} if by_name else [], "one at least")
    callables = sum(map(callable, members))
    if callables != len(members) and (callables or by_name):
        odd = next(member for member in members if not callable(member))
        raise errors.bad_setting("hypotheses", odd, "all functions of a row, or all names")
    names = list(hypotheses) if by_name else members
    if callables and not by_name:  # their own names if these tell them apart, else h1, h2, …
        names = [getattr(function, "__name__", "") for function in members]
        if len(set(names)) < len(names) or {"", "<lambda>"} & set(names):
            names = [f"h{i}" for i in range(1, len(names) + 1)]
    seen = set()
    for name in names:
        if not is_hashable(name):
            raise errors.bad_setting("hypotheses", name, "functions of a row, or names such as texts and numbers")
        if name in seen:
            raise errors.bad_setting("hypotheses", name, "different from each other: this name is there twice")
        seen.add(name)
    return names, Functions(members) if callables else None


def log_prior(names: Sequence[Any], prior: Any, lengths: Any) -> Real:
    """log P(h), which sums to one."""
    by_length = isinstance(prior, str) and prior == "description_length"
    wanted = "the bits of each hypothesis, together with prior='description_length'"
    errors.require(by_length == (lengths is not None), "lengths", lengths, wanted)
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
        advice = "Divide them by their sum, or give prior='uniform'."
        raise errors.BadPrior(f"the prior probabilities sum to {total:.12g}, and must sum to 1. {advice}", total=total)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares / total))


def _of_each(what: str, numbers: Any, names: Sequence[Any]) -> Real:
    """A number from 0 up for each hypothesis."""
    array = matrix(by_name(f"the {what}", numbers, names))
    errors.require(array.ndim, f"the {what}", numbers, "a number for each hypothesis")
    if array.shape != (len(names),):
        raise unlike_hypotheses(f"the {what}", array.shape, len(names))
    values = floats(array)
    for h in np.flatnonzero(~(np.isfinite(values) & (values >= 0))).tolist():
        raise bad_number(what, plain(array[h]), names[h], "a finite number from 0 up")
    return values


def by_name(what: str, numbers: Any, names: Sequence[Any]) -> Any:
    """Numbers by name in the order of the hypotheses; others as they are."""
    if not isinstance(numbers, Mapping):
        return numbers
    known = set(names)
    for name in (name for name in numbers if name not in known):
        text = f"{what} names {name!r}, and there is no such hypothesis.{errors.did_you_mean(name, names)}\n"
        raise errors.UnknownHypothesis(f"{text}  Hypotheses: {errors.listed(names)}", name=name)
    if lacking := [name for name in names if name not in numbers]:
        text = f"{what} has no number for {errors.listed(map(repr, lacking))}. Give one for every hypothesis."
        raise errors.UnknownHypothesis(text, name=lacking[0])
    return [numbers[name] for name in names]


def checked_noise(likelihood: Any, noise: Any) -> float:
    if not isinstance(likelihood, str) or likelihood not in LIKELIHOODS:
        raise errors.unknown_choice("likelihood", likelihood, LIKELIHOODS)
    if likelihood in ("noise_free", "bernoulli"):
        errors.require(noise is None, "noise", noise, f"left out when likelihood={likelihood!r}")
        return 0.0
    number = isinstance(noise, (int, float, np.integer, np.floating)) and not isinstance(noise, bool)
    if likelihood == "label_noise":
        share = number and 0 <= noise < 1
        errors.require(share, "noise", noise, "the probability of a wrong label: from 0 up, and below 1")
    else:
        positive = number and isfinite(noise) and noise > 0
        errors.require(positive, "noise", noise, "the standard deviation of the numbers, above 0")
    return float(noise)


def checked_labels(labels: Any, likelihood: str) -> tuple[Any, ...]:
    values = tuple(vector(labels, "labels").tolist())
    usable = all(is_hashable(label) and not is_missing(label) for label in values) and len(set(values)) == len(values)
    yes_or_no = likelihood == "bernoulli"
    wanted = f"texts, numbers or booleans, {'two' if yes_or_no else 'two at least'}, each once"
    errors.require(usable and (len(values) == 2 if yes_or_no else len(values) > 1), "labels", list(values), wanted)
    return values
