"""Hypothesis spaces again, slow and obvious: exact fractions, one hypothesis and one row at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

Rows = Sequence[Sequence[Any]]  # rows × hypotheses


def posterior(prior: Sequence[Fraction], likelihoods: Rows) -> list[Fraction] | None:
    """P(h | rows) by Bayes' theorem; None where the rows are impossible."""
    joint = [p * prod(row[h] for row in likelihoods) for h, p in enumerate(prior)]
    total = sum(joint)
    return [share / total for share in joint] if total else None


def label_likelihoods(predictions: Rows, truth: Sequence[Any], noise: Fraction, n_labels: int) -> Rows:
    """The label predicted, or with probability ``noise`` one of the others."""
    return [
        [1 - noise if said == label else noise / (n_labels - 1) for said in row]
        for row, label in zip(predictions, truth, strict=True)
    ]


def bernoulli_likelihoods(predictions: Rows, truth: Sequence[Any]) -> Rows:
    return [[said if happened else 1 - said for said in row] for row, happened in zip(predictions, truth, strict=True)]


def predictive(
    shares: Sequence[Fraction], row: Sequence[Any], labels: Sequence[Any], noise: Fraction
) -> list[Fraction]:
    """P(label): every hypothesis is heard with its share."""
    return [
        sum(
            (
                share * (1 - noise if said == label else noise / (len(labels) - 1))
                for share, said in zip(shares, row, strict=True)
            ),
            Fraction(0),
        )
        for label in labels
    ]


def conjunctions(values: Mapping[str, Sequence[Any]], most: int) -> Iterator[dict[str, Any] | None]:
    """For each feature one of its values, or any; and None, which nothing fulfils."""
    anything = object()
    for chosen in product(*([anything, *each] for each in values.values())):
        conditions = {name: value for name, value in zip(values, chosen, strict=True) if value is not anything}
        if len(conditions) <= most:
            yield conditions
    yield None


def fulfils(conditions: Mapping[str, Any] | None, row: Mapping[str, Any]) -> bool:
    return conditions is not None and all(row[name] == value for name, value in conditions.items())


def written(conditions: Mapping[str, Any] | None) -> str:
    if conditions is None:
        return "nothing"
    return ", ".join(f"{name}={value}" for name, value in conditions.items()) or "anything"
