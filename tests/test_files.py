"""Files: what is saved comes back; what is no Banbury file is refused; a failing write leaves the old file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import banbury as bb
from banbury.errors import BadFile, BadSetting, BanburyError

WEATHER = bb.datasets.play_tennis()


@pytest.fixture
def model() -> bb.Model:
    return bb.estimate(bb.count(WEATHER, target="play"), alpha=0.5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "play.banbury"


def saved_and_loaded(thing: Any, path: Path) -> Any:
    bb.save(thing, path)
    return bb.load(path)


# Round trips

FAMILIES: dict[str, tuple[Any, list[Any]]] = {
    "bernoulli": (bb.Bernoulli(alpha=2), [True, False, None, True]),
    "bernoulli, yes": (bb.Bernoulli(yes="ü"), ["ü", "n", None, "ü"]),
    "bernoulli, threshold": (bb.Bernoulli(threshold=0.5), [0.1, 0.9, None, 3.0]),
    "words": (bb.Categorical(), ["a", "ß", None, ""]),
    "whole numbers": (bb.Categorical(alpha={1: 1.0, 2: 2.0, -3: 3.0}), [1, 2, None, -3]),
    "real numbers": (bb.Categorical(), [0.1, 2.5, None, 1e300]),
    "booleans": (bb.Categorical(m=2), [True, False, None, True]),
    "missing": (bb.Categorical(missing="category"), ["a", "b", None, "a"]),
    "declared": (bb.Categorical(values=["a", "b", "c"]), ["a", "b", None, "a"]),
    "gaussian": (bb.Gaussian(), [1.0, 2.5, None, -3.0]),
    "gaussian, prior": (bb.Gaussian("shared", bb.NormalInverseGamma(1, 2, 3, 4)), [1.0, 2.5, None, -3.0]),
    "poisson": (bb.Poisson(1, 2), [1, 0, None, 7]),
    "histogram": (bb.Histogram(bins=5), [1.0, 2.5, None, -3.0]),
    "histogram, width": (bb.Histogram(start=0.1, width=0.3), [1.0, 2.5, None, -3.0]),
    "kernel density": (bb.KernelDensity("cosine", "silverman"), [1.0, 2.5, None, -3.0]),
}


@pytest.mark.parametrize("weights", [None, [0.1, 0.7, 1.3, 2.0]], ids=["whole", "weighted"])
@pytest.mark.parametrize("how", ["mle", "mean", "predictive", "gibbs"])
@pytest.mark.parametrize("name", FAMILIES)
def test_models_of_every_family_come_back(name: str, how: str, weights: Any, path: Path) -> None:
    family, x = FAMILIES[name]
    tally = bb.count({"x": x, "y": list("pqpq")}, "y", features={"x": family}, weights=weights)
    model = bb.estimate(tally, how=how, alpha=0.5, class_prior=1.0, seed=5)  # type: ignore[arg-type]
    again = saved_and_loaded(model, path)
    assert isinstance(again, bb.Model)
    assert again.choice == model.choice
    assert again.tally == tally
    assert again.schema.features == tally.schema.features
    assert again.tally.counts.keys == tally.counts.keys
    assert [type(k) for k in sum(again.tally.counts.keys, ())] == [type(k) for k in sum(tally.counts.keys, ())]
    np.testing.assert_array_equal(again.log_joint({"x": x}), model.log_joint({"x": x}))


@pytest.mark.parametrize(
    "labels", [["a", "ü", "a"], [1, -7, 1], [True, False, True], [0.1, 1e300, 0.1], [2**60, 0, 2**60]], ids=str
)
def test_labels_of_every_type_come_back(labels: list[Any], path: Path) -> None:
    tally = bb.count({"x": [1.0, 2.0, 3.0]}, target=labels)
    again = saved_and_loaded(tally, path)
    assert isinstance(again, bb.Tally)
    assert again.classes == tally.classes
    assert [type(c) for c in again.classes] == [type(c) for c in tally.classes]
    model = saved_and_loaded(bb.estimate(tally), path)
    assert model.predict({"x": [1.0]}).tolist() == bb.estimate(tally).predict({"x": [1.0]}).tolist()


@pytest.mark.parametrize(
    "prior", [None, "uniform", 2, 0.5, [0.25, 0.75], {"yes": 0.75, "no": 0.25}, np.array([0.25, 0.75]), np.float64(0.5)]
)
def test_class_priors_of_every_form_come_back(prior: Any, path: Path) -> None:
    model = bb.estimate(bb.count(WEATHER, "play"), class_prior=prior)
    assert saved_and_loaded(model, path).log_prior.tolist() == model.log_prior.tolist()
    other = model.with_class_prior([0.125, 0.875])
    assert saved_and_loaded(other, path).log_prior.tolist() == other.log_prior.tolist()


def test_overridden_families_come_back(path: Path) -> None:
    model = bb.estimate(bb.count(WEATHER, "play"), features={"wind": bb.Categorical(alpha=7)})
    assert saved_and_loaded(model, path).likelihood("wind", "weak") == model.likelihood("wind", "weak")


def test_a_loaded_model_counts_on_forgets_and_estimates_again(model: bb.Model, path: Path) -> None:
    again = saved_and_loaded(model, path)
    rows = {name: column[:3] for name, column in WEATHER.items()}
    assert again.tally - again.tally.count(rows) == model.tally - model.tally.count(rows)
    assert again.tally + model.tally == model.tally * 2
    mle = bb.estimate(again.tally, how="mle")
    assert mle.log_joint(rows).tolist() == bb.estimate(model.tally, how="mle").log_joint(rows).tolist()


def test_skipped_rows_and_what_was_left_out_come_back(path: Path) -> None:
    table = {"x": [1.0, 2.0, 3.0], "c": [1, 1, 1], "y": ["a", None, "b"]}
    again = saved_and_loaded(bb.count(table, "y"), path)
    assert again.skipped == 1
    assert again.schema.left_out == {"c": "one value only"}
    assert str(again) == str(bb.count(table, "y"))


def test_an_empty_tally_comes_back(model: bb.Model, path: Path) -> None:
    nothing = model.tally - model.tally
    assert saved_and_loaded(nothing, path) == nothing


def test_arrays_and_many_features_come_back(path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(30, 500))
    model = bb.estimate(bb.count(X, target=np.arange(30) % 3))
    np.testing.assert_array_equal(saved_and_loaded(model, path).posterior(X), model.posterior(X))


def test_no_byte_of_a_forgotten_word_is_in_the_file(path: Path) -> None:
    tally = bb.count({"x": ["plain", "SECRET", "plain"], "y": ["a", "a", "b"]}, "y")
    bb.save(tally - tally.count({"x": ["SECRET"], "y": ["a"]}), path)
    assert b"plain" in path.read_bytes()
    assert b"SECRET" not in path.read_bytes()


def test_a_path_is_a_text_or_a_path(model: bb.Model, path: Path) -> None:
    bb.save(model, str(path))
    assert bb.load(str(path)).tally == bb.load(path).tally  # type: ignore[union-attr]


def test_only_models_and_tallies_are_saved(path: Path) -> None:
    with pytest.raises(BadSetting, match=r"a Model or a Tally \(of an estimator: its model_ or tally_\)"):
        bb.save(bb.NaiveBayesClassifier(), path)  # type: ignore[arg-type]
    assert not path.exists()


# What is no Banbury file


def refused(path: Path, *words: str) -> None:
    with pytest.raises(BadFile) as caught:
        bb.load(path)
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_a_file_that_is_not_there_is_refused(path: Path) -> None:
    refused(path, "No such file")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path)


@pytest.mark.parametrize("content", [b"", b"x", b"hello, this is no model at all", bytes(1000), b"\xff" * 64])
def test_a_file_of_something_else_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, "it is not a Banbury file")


def test_a_safetensors_file_of_someone_else_is_refused(path: Path) -> None:
    save_file({"weights": np.zeros(3)}, path)
    refused(path, "it is not a Banbury file")
    save_file({"weights": np.zeros(3)}, path, {"banbury": "not JSON"})
    refused(path, "it is not a Banbury file")


def test_a_truncated_file_is_refused_wherever_it_ends(model: bb.Model, path: Path) -> None:
    bb.save(model, path)
    content = path.read_bytes()
    for end in [*range(0, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:end])
        refused(path)


def rewritten(path: Path, change: Any = None, **tensors: Any) -> None:
    """The file again, with another JSON text or other arrays."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        about = json.loads(file.metadata()["banbury"])
    arrays = load_file(path) | tensors
    about = change(about) if change else about
    save_file({k: v for k, v in arrays.items() if v is not None}, path, {"banbury": json.dumps(about)})


@pytest.mark.parametrize("number", [0, 2, 99, None, "1"])
def test_a_file_of_another_format_says_which_is_read(model: bb.Model, path: Path, number: Any) -> None:
    bb.save(model, path)
    rewritten(path, lambda about: about | {"format": number})
    refused(path, f"format {number}", "reads format 1")


HOSTILE: dict[str, Any] = {
    "a list": lambda about: [about],
    "a number": lambda about: 1,
    "no tally": lambda about: {k: v for k, v in about.items() if k != "tally"},
    "no model": lambda about: {k: v for k, v in about.items() if k != "model"},
    "no schema": lambda about: about | {"tally": {k: v for k, v in about["tally"].items() if k != "schema"}},
    "classes that are no list": lambda about: about | {"tally": about["tally"] | {"classes": 5}},
    "too many classes": lambda about: about | {"tally": about["tally"] | {"classes": ["a", "b", "c"]}},
    "a class twice": lambda about: about | {"tally": about["tally"] | {"classes": ["no", "no"]}},
    "a list for a class": lambda about: about | {"tally": about["tally"] | {"classes": [["no"], "yes"]}},
    "fewer keys": lambda about: about | {"tally": about["tally"] | {"keys": about["tally"]["keys"][:-1]}},
    "a key too many": lambda about: about | {"tally": about["tally"] | {"keys": [["z"] * 4, *about["tally"]["keys"][1:]]}},
    "an unknown family": lambda about: with_feature(about, family="os.system"),
    "an unknown setting": lambda about: with_feature(about, settings={"colour": 1}),
    "a setting out of range": lambda about: with_feature(about, settings={"alpha": -1}),
    "a family of another shape": lambda about: with_feature(about, family="gaussian"),
    "a feature without a name": lambda about: with_feature(about, name=None),
    "an unknown how": lambda about: about | {"model": about["model"] | {"how": "magic"}},
    "an unknown model setting": lambda about: about | {"model": about["model"] | {"x": 1}},
    "a class prior for others": lambda about: about | {"model": about["model"] | {"class_prior": [1.0]}},
}  # fmt: skip


def with_feature(about: dict[str, Any], **changes: Any) -> dict[str, Any]:
    schema = about["tally"]["schema"]
    features = [schema["features"][0] | changes, *schema["features"][1:]]
    return about | {"tally": about["tally"] | {"schema": schema | {"features": features}}}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_whose_text_does_not_fit_is_refused(name: str, model: bb.Model, path: Path) -> None:
    bb.save(model, path)
    rewritten(path, HOSTILE[name])
    refused(path)


ARRAYS: dict[str, dict[str, Any]] = {
    "no rows": {"classes.rows": None},
    "rows of another shape": {"classes.rows": np.zeros((2, 2), dtype=np.int64)},
    "rows of another type": {"classes.rows": np.array([5.0, 9.0])},
    "rows below zero": {"classes.rows": np.array([-5, 9])},
    "no sums": {"moments.sums": None},
    "sums of another shape": {"moments.sums": np.zeros((1, 2, 2))},
    "sums that are no numbers": {"moments.sums": np.full((1, 2, 2, 3), np.nan)},
    "weights of another shape": {"classes.weights": np.zeros((2, 2))},
    "fewer counts": {"counts.rows": np.zeros((1, 2), dtype=np.int64)},
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_file_whose_arrays_do_not_fit_is_refused(name: str, path: Path) -> None:
    table = {"x": [1.0, 2.0, 3.0], "w": list("aba"), "y": list("ppq")}
    bb.save(bb.estimate(bb.count(table, "y")), path)
    rewritten(path, **ARRAYS[name])
    refused(path)


# Writing


def test_a_failing_write_leaves_the_old_file(model: bb.Model, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bb.save(model, path)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(BadFile) as caught:
        bb.save(model.tally * 2, path)
    assert "No space left on device" in str(caught.value)
    assert "cannot write" in str(caught.value)
    assert "cannot read" not in str(caught.value)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_is_not_there_is_named(model: bb.Model, tmp_path: Path) -> None:
    with pytest.raises(BanburyError, match=r"no/such/play.banbury") as caught:
        bb.save(model, tmp_path / "no/such/play.banbury")
    assert "cannot read" not in str(caught.value)


def test_a_file_may_be_read_by_those_who_may_read_other_files(model: bb.Model, path: Path) -> None:
    other = path.with_suffix(".txt")
    other.write_text("as any file is made")
    bb.save(model, path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_saving_the_same_thing_twice_writes_the_same_bytes(model: bb.Model, path: Path) -> None:
    bb.save(model, path)
    once = path.read_bytes()
    bb.save(model, path)
    assert path.read_bytes() == once
