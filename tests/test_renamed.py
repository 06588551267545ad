"""Old names work for this version, and say the new ones."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import banbury as bb
from banbury import errors
from banbury.renamed import takes_old

PICKLES = Path(__file__).parent / "golden" / "pickles-0.1"  # as 0.1 wrote them
LOADED = {"calibration", "curve", "cv", "diagnosis", "family", "nb_unfitted", "network_given", "schema"}


@takes_old(most="n")
def listed(things: list[int], n: int = 2) -> list[int]:
    return things[:n]


def test_an_old_name_works_and_says_the_new_one() -> None:
    assert listed([1, 2, 3], n=1) == listed([1, 2, 3], 1) == [1]
    with pytest.warns(DeprecationWarning, match="most= is now called n=") as told:
        assert listed([1, 2, 3], most=1) == [1]  # type: ignore[call-arg]
    assert told[0].filename == __file__


def test_both_names_at_once_are_refused() -> None:
    with pytest.raises(TypeError, match="takes n= or, as it was called before, most="):
        listed([1], n=1, most=1)  # type: ignore[call-arg]


# Pickles of 0.1 ------------------------------------------------------------------------------------------------------


def unpickled(name: str) -> Any:
    return pickle.loads((PICKLES / f"{name}.pickle").read_bytes())


@pytest.mark.parametrize("name", sorted(path.stem for path in PICKLES.glob("*.pickle")))
def test_a_pickle_of_the_first_version_loads_or_says_what_to_do(name: str) -> None:
    if name in LOADED:
        assert repr(unpickled(name))
        return
    with pytest.raises(errors.UnknownFormat, match=r"made by Banbury 0\.1 .*bb\.save\(model, .*bb\.load\("):
        unpickled(name)


def test_what_loads_of_the_first_version_works() -> None:
    rows = bb.datasets.play_tennis()
    clf = unpickled("nb_unfitted")
    assert clone(clf).get_params() == clf.get_params() == bb.NaiveBayesClassifier(alpha=0.5).get_params()
    X, y = np.random.default_rng(0).normal(size=(20, 2)), [0, 1] * 10
    assert np.array_equal(clf.fit(X, y).predict_proba(X), bb.NaiveBayesClassifier(alpha=0.5).fit(X, y).predict_proba(X))
    assert unpickled("schema") == bb.Schema.infer(rows, target="play")
    assert bb.count(rows, target="play", schema=unpickled("schema")) == bb.count(rows, target="play")
    assert unpickled("family") == bb.Gaussian(variance="shared")
    assert unpickled("network_given").query("coin") == {"heads": 0.5, "tails": 0.5}
    assert unpickled("cv").log_loss == pytest.approx(
        bb.cross_validate(rows, target="play", folds=7).log_loss, rel=1e-12
    )
    assert np.array_equal(unpickled("cv").folds, bb.cross_validate(rows, target="play", folds=7).folds)
    assert unpickled("calibration").apply(np.log([[0.5, 0.5]])).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    "module, name", [("bernoulli", "BernoulliNB"), ("complement", "ComplementNB"), ("multinomial", "MultinomialNB")]
)
def test_an_estimator_that_moved_is_found_where_it_was(module: str, name: str) -> None:
    packed = f"cbanbury.estimators.drop_in.{module}\n{name}\n.".encode()  # a name, as protocol 0 has it
    assert pickle.loads(packed) is getattr(bb, name)


def test_todays_pickles_are_none_of_the_first_version() -> None:
    rows = bb.datasets.play_tennis()
    model = bb.estimate(bb.count(rows, target="play"))
    told = model.explain({name: column[0] for name, column in rows.items() if name != "play"})
    assert pickle.loads(pickle.dumps(told)) == told
    assert pickle.loads(pickle.dumps(model.tally)) == model.tally
    tree = bb.BeliefNetwork.tan(rows, "play")
    assert pickle.loads(pickle.dumps(tree)) == tree
