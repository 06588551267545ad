"""scikit-learn's own tests of its naive Bayes classes, with ours in their place.

They are read from the installed scikit-learn and run as they are, but for those that call its private methods.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Collection
from typing import Any

import pytest
from sklearn import naive_bayes as theirs

import banbury as bb

CLASSES = ("BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB")
PRIVATE = {
    "test_gnb_check_update_with_no_data": "calls GaussianNB._update_mean_variance, the formula that sums stand for here",
}


def _tests() -> Any:
    """The module of their tests, made anew while the names stand for our classes."""
    name = "sklearn.tests.test_naive_bayes"
    kept = {each: getattr(theirs, each) for each in CLASSES}
    sys.modules.pop(name, None)
    try:
        for each in CLASSES:
            setattr(theirs, each, getattr(bb, each))
        return importlib.import_module(name)
    finally:
        for each, was in kept.items():
            setattr(theirs, each, was)
        sys.modules.pop(name, None)


def _list_pictures(test: Any) -> Any:
    """The test with its cases in lists: some are generators, which pytest no longer likes."""
    marks = getattr(test, "pytestmark", [])
    for at, mark in enumerate(marks):
        if mark.name == "parametrize" and not isinstance(mark.args[1], Collection):
            marks[at] = pytest.mark.parametrize(mark.args[0], list(mark.args[1]), **mark.kwargs).mark
    return test


pytestmark = pytest.mark.filterwarnings("default::UserWarning")  # their tests do not expect warnings to be errors
MODULE = _tests()
globals().update(
    {
        name: _list_pictures(test)
        for name, test in vars(MODULE).items()
        if name.startswith("test_") and name not in PRIVATE
    }
)


@pytest.fixture
def global_random_seed() -> int:
    """As scikit-learn's own runs have it unless told otherwise."""
    return 42


@pytest.fixture(params=["float32", "float64"])
def global_dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_their_tests_are_about_our_classes() -> None:
    assert {each.__module__.rpartition(".")[0] for each in MODULE.ALL_NAIVE_BAYES_CLASSES} == {
        "banbury.estimators.drop_in"
    }
    assert set(PRIVATE) <= set(vars(MODULE))
