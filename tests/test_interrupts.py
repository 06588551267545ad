"""Every change happens completely or not at all, wherever an interrupt strikes: learning, forgetting and merging."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import banbury as bb
from banbury import _core
from banbury.learner import settings_of
from banbury.service.learner import ServedLearner

SOURCES = str(Path(bb.__file__).parent)
STRIDE = 23  # of the lines that are tried: a prime number, so that all kinds of lines come in turn


class Struck(KeyboardInterrupt):
    """What the interrupts of these tests raise, so that no other interrupt is taken for one."""


@contextmanager
def struck_after_kernel(n: int) -> Iterator[None]:
    """Raises as soon as the n-th call of the compiled core has returned, as Ctrl-C does that was pressed during it."""
    left = n

    def profile(frame: FrameType, event: str, function: Any) -> None:
        nonlocal left
        if event == "c_return" and _is_kernel(function):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise Struck

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def _is_kernel(function: Any) -> bool:
    owner = getattr(function, "__self__", None)
    module = getattr(owner, "__name__", None) or type(owner).__module__
    return module == _core.__name__ or type(owner).__module__ == _core.__name__


@contextmanager
def struck_at_line(n: int) -> Iterator[None]:
    """Raises before the n-th line of the package's own code."""
    left = n

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise Struck
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


@dataclass(frozen=True)
class Case:
    """Something that learns: how it begins, how it changes, and what it answers."""

    begin: Callable[[], Any]
    change: Callable[[Any], Any]
    look: Callable[[Any], Any]


WORDS = "red green blue round flat heavy light old new late".split()


def texts(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 4)) for _ in range(n)]


def frame(n: int, seed: int) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    columns = {"colour": rng.choice(["a", "b", "c"], n).tolist(), "size": rng.normal(size=n).tolist()}
    return {**columns, "title": texts(n, seed + 1), "body": texts(n, seed + 2)}


def labels(n: int, seed: int, names: str = "xy") -> list[str]:
    return np.random.default_rng(seed).choice(list(names), n).tolist()


def sets(n: int, seed: int) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [[name for name in "pq" if rng.random() < 0.5] for _ in range(n)]


FIRST, MORE = frame(40, 1), frame(12, 2)
Y_FIRST, Y_MORE, Y_NEW = labels(40, 3), labels(12, 4), labels(12, 5, "yz")
COUNTS = np.random.default_rng(6).integers(0, 4, (52, 6)).astype(float)


def look(clf: Any) -> Any:
    """All that was learned, and what it answers."""
    tally = clf.tally_
    classes = [str(name) for name in clf.classes_]
    return tally.digest(), tally.n_rows, classes, clf.predict_proba(MORE).tolist(), clf.model_.posterior(MORE).tolist()


def look_at_matrix(clf: Any) -> Any:
    return clf.tally_.digest(), clf.classes_.tolist(), clf.predict_proba(COUNTS).tolist(), clf.n_features_in_


def estimator(make: Callable[[], Any], change: Callable[[Any], Any]) -> Case:
    return Case(lambda: make().fit(FIRST, Y_FIRST), change, look)


def drop_in(make: Callable[[], Any], change: Callable[[Any], Any]) -> Case:
    def begin() -> Any:
        return make().partial_fit(COUNTS[:40], Y_FIRST, classes=["x", "y"])

    return Case(begin, change, look_at_matrix)


def weighed(weigh: bool) -> Any:
    return bb.EvidenceClassifier(weigh=weigh, pairs=False)


def labelled() -> Any:
    return bb.MultiLabelClassifier(weigh=False, threshold=None, alpha=1.0)


def learner() -> ServedLearner:
    tally = bb.count(FIRST, target=Y_FIRST)
    made = ServedLearner(tally, settings_of(bb.estimate(tally)))
    made.current_model()[0].posterior(MORE)
    return made


def service_rows(learner: ServedLearner, change: Callable[[Any], None]) -> None:
    """One row after the other, each of which is a change of its own."""
    row = {name: column[0] for name, column in MORE.items()}
    change(learner.part(row, "x"))


def look_at_learner(learner: ServedLearner) -> Any:
    tally = learner.tally()
    return tally.digest(), tally.n_rows, learner.current_model()[0].posterior(MORE).tolist()


def taught() -> ServedLearner:
    made = learner()
    service_rows(made, made.add)
    return made


CASES = {
    "partial_fit": estimator(bb.NaiveBayesClassifier, lambda clf: clf.partial_fit(MORE, Y_MORE)),
    "partial_fit, another class": estimator(bb.NaiveBayesClassifier, lambda clf: clf.partial_fit(MORE, Y_NEW)),
    "forget": Case(
        lambda: bb.NaiveBayesClassifier().fit(FIRST, Y_FIRST).partial_fit(MORE, Y_NEW),
        lambda clf: clf.forget(MORE, Y_NEW),
        look,
    ),
    "forget, calibrated": Case(
        lambda: bb.NaiveBayesClassifier(calibrate="temperature").fit(FIRST, Y_FIRST),
        lambda clf: clf.forget({name: column[:5] for name, column in FIRST.items()}, Y_FIRST[:5]),
        look,
    ),
    "fit again": estimator(bb.NaiveBayesClassifier, lambda clf: clf.fit(MORE, Y_NEW)),
    "texts": Case(
        lambda: bb.NaiveBayesClassifier().fit(FIRST["title"], Y_FIRST),
        lambda clf: clf.partial_fit(MORE["title"], Y_MORE),
        lambda clf: (clf.tally_.digest(), clf.predict_proba(MORE["title"]).tolist()),
    ),
    "counts only, partial_fit": estimator(lambda: weighed(False), lambda clf: clf.partial_fit(MORE, Y_NEW)),
    "weighed, forget": Case(
        lambda: weighed(True).fit(FIRST, Y_FIRST),
        lambda clf: clf.forget({name: column[:5] for name, column in FIRST.items()}, Y_FIRST[:5]),
        look,
    ),
    "labels, partial_fit": Case(
        lambda: labelled().fit(FIRST, sets(40, 7)), lambda clf: clf.partial_fit(MORE, sets(12, 8)), look
    ),
    "labels, forget": Case(
        lambda: labelled().fit(FIRST, sets(40, 7)).partial_fit(MORE, sets(12, 8)),
        lambda clf: clf.forget(MORE, sets(12, 8)),
        look,
    ),
    "MultinomialNB": drop_in(bb.MultinomialNB, lambda clf: clf.partial_fit(COUNTS[40:], Y_MORE)),
    "BernoulliNB": drop_in(bb.BernoulliNB, lambda clf: clf.forget(COUNTS[:10], Y_FIRST[:10])),
    "GaussianNB": drop_in(bb.GaussianNB, lambda clf: clf.forget(COUNTS[:10], Y_FIRST[:10])),
    "service, learn": Case(learner, lambda made: service_rows(made, made.add), look_at_learner),
    "service, forget": Case(taught, lambda made: service_rows(made, made.forget), look_at_learner),
}


def fitted_again(make: Callable[[], Any], look: Callable[[Any], Any]) -> Case:
    """One that is fitted to other rows, with fewer columns and other names."""
    rows = {"size": MORE["size"], "weight": MORE["size"][::-1]}
    return Case(lambda: make().fit(FIRST_NUMBERS, Y_FIRST), lambda fitted: fitted.fit(rows, Y_NEW), look)


FIRST_NUMBERS = {"size": FIRST["size"], "colour": FIRST["colour"], "length": FIRST["size"][::-1]}
SEEN = ("classes_", "n_features_in_", "feature_names_in_", "n_components_", "n_iter_")


def look_at_fit(fitted: Any) -> Any:
    """What was noted of the rows, and what it answers to such rows."""
    noted = [np.asarray(getattr(fitted, name)).tolist() for name in SEEN if hasattr(fitted, name)]
    rows = (
        FIRST_NUMBERS if "colour" in fitted.feature_names_in_ else {"size": MORE["size"], "weight": MORE["size"][::-1]}
    )
    ask = fitted.score_samples if hasattr(fitted, "score_samples") else fitted.predict_proba
    return noted, ask(rows).tolist()


CASES |= {
    "TAN, fit again": fitted_again(bb.TANClassifier, look_at_fit),
    "semi-supervised, fit again": fitted_again(bb.SemiSupervisedClassifier, look_at_fit),
    "mixture, fit again": fitted_again(lambda: bb.Mixture(2, starts=1, max_iter=3), look_at_fit),
    "density, fit again": fitted_again(bb.Density, look_at_fit),
}
IGNORED = "ignore:.*calibrat:banbury.errors.BanburyWarning"


def answer(case: Case, changing: bool) -> Any:
    thing = case.begin()
    case.look(thing)  # so that there is a model, which then has to follow
    if changing:
        case.change(thing)
    return case.look(thing)


def copier(case: Case) -> Callable[[], Any]:
    """Begins anew; an estimator is pickled for that, which is quicker than to fit it."""
    thing = case.begin()
    if isinstance(thing, ServedLearner):
        return case.begin
    state = pickle.dumps(thing)
    return lambda: pickle.loads(state)


def check_each(case: Case, strike: Callable[[int], Any], first: int, step: int) -> int:
    """Strikes everywhere in turn, until the change gets through; how often it was struck.

    What is left answers like one that never changed, or like one that did; and then changes like any other.
    """
    before, after = answer(case, False), answer(case, True)
    assert before != after
    again = copier(case)
    struck, n = 0, first
    while True:
        thing = again()
        case.look(thing)
        try:
            with strike(n):
                case.change(thing)
        except Struck:
            struck += 1
        else:
            assert case.look(thing) == after
            return struck
        left = case.look(thing)
        assert left in (before, after), f"half a change is left by an interrupt at {n}"
        if left == before:
            case.change(thing)
            assert case.look(thing) == after, f"the change cannot be made after an interrupt at {n}"
        n += step


@pytest.mark.filterwarnings(IGNORED)
@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_after_any_kernel_call_leaves_all_or_nothing(name: str) -> None:
    assert check_each(CASES[name], struck_after_kernel, 1, 1) >= 2


@pytest.mark.filterwarnings(IGNORED)
@pytest.mark.parametrize("name", CASES)
def test_an_interrupt_at_any_line_leaves_all_or_nothing(name: str) -> None:
    assert check_each(CASES[name], struck_at_line, 1 + len(name) % STRIDE, STRIDE) >= 2


@pytest.mark.filterwarnings(IGNORED)
def test_an_interrupt_while_a_model_follows_its_sums_leaves_it_right() -> None:
    def begin() -> Any:
        clf = bb.NaiveBayesClassifier().fit(FIRST["title"], Y_FIRST)
        clf.predict(MORE["title"])
        return clf.partial_fit(MORE["title"], Y_MORE)

    expected = begin().predict_proba(FIRST["title"]).tolist()
    n = 1
    while True:
        clf = begin()
        try:
            with struck_at_line(n):
                clf.predict(MORE["title"])
        except Struck:
            n += 3
        else:
            break
        assert clf.predict_proba(FIRST["title"]).tolist() == expected
    assert n > 30


def test_rows_that_are_refused_by_one_column_change_no_other() -> None:
    clf = bb.NaiveBayesClassifier().fit(FIRST, Y_FIRST)
    before = look(clf)
    other = {**MORE, "body": texts(12, 99)}
    clf.partial_fit(MORE, Y_MORE)
    grown = look(clf)
    with pytest.raises(bb.errors.NegativeCount):  # the title was learned, the body was not
        clf.forget(other, Y_MORE)
    assert look(clf) == grown
    assert look(clf.forget(MORE, Y_MORE)) == before


def test_a_copy_of_what_was_interrupted_is_whole() -> None:
    clf = bb.NaiveBayesClassifier().fit(FIRST["title"], Y_FIRST)
    before = clf.tally_.digest()
    after = copy.copy(clf).partial_fit(MORE["title"], Y_MORE).tally_.digest()
    with pytest.raises(Struck), struck_after_kernel(3):
        clf.partial_fit(MORE["title"], Y_MORE)
    assert copy.copy(clf).tally_.digest() in (before, after)
