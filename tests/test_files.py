"""Files: what is saved comes back; what is no Banbury file is refused; a failing write leaves the old file."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sklearn.exceptions import NotFittedError

import banbury as bb
import by_shape
import golden_files
import hostile
import naive_files
from banbury import _core, errors
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
    "histogram, mdl": (bb.Histogram(bins="mdl"), [1.0, 2.5, None, -3.0]),
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
    pairs = [
        (a, b) for x, y in zip(again.tally.sums, tally.sums, strict=True) for a, b in zip(x.keys, y.keys, strict=True)
    ]
    assert all(a == b and list(map(type, a)) == list(map(type, b)) for a, b in pairs)
    np.testing.assert_array_equal(again.log_joint({"x": x}), model.log_joint({"x": x}))


LABELS: dict[str, Any] = {
    "texts": ["a", "ü", "a"],
    "a lone surrogate": ["\ud800", "a", "b"],
    "whole numbers": [1, -7, 1],
    "large numbers": [2**60, 0, 2**60],
    "larger numbers": [-(2**70), 10**400, 0],
    "booleans": [True, False, True],
    "real numbers": [0.1, 1e300, -0.0],
    "infinite numbers": [float("inf"), float("-inf"), 0.0],
    "of many types": [True, 2.5, "x"],
    "numpy's": [np.int64(1), np.int64(2), np.int64(1)],
    "an array of float32": np.array([0.1, 0.5, 0.1], dtype=np.float32),
    "an array of uint64": np.array([2**64 - 1, 0, 1], dtype=np.uint64),
    "an array of booleans": np.array([True, False, True]),
    "an array of texts": np.array(["a", "b", "a"]),
    "an array of objects": np.array([np.str_("a"), np.float64(2.5), 1], dtype=object),
    "dates": [datetime.date(2020, 2, 29), datetime.date(1999, 12, 31), datetime.date(2020, 2, 29)],
    "times": [datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC), datetime.datetime(2020, 1, 1), "never"],
    "an array of dates": np.array(["2020-01-01", "2021-01-01", "2020-01-01"], dtype="datetime64[D]"),
    "bytes": [b"a", b"b", b"a"],
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_every_type_come_back(name: str, path: Path) -> None:
    tally = bb.count({"x": [1.0, 2.0, 3.0]}, target=LABELS[name])
    again = saved_and_loaded(tally, path)
    assert isinstance(again, bb.Tally)
    assert again.classes == tally.classes
    assert [type(c) for c in again.classes] == [type(c) for c in tally.classes]
    assert again + tally == tally * 2
    model = saved_and_loaded(bb.estimate(tally), path)
    assert model.predict({"x": [1.0]}).tolist() == bb.estimate(tally).predict({"x": [1.0]}).tolist()


def test_a_label_that_no_file_can_hold_is_refused_before_anything_is_written(path: Path) -> None:
    tally = bb.count({"x": [1.0, 2.0]}, target=["a", "b"])
    endless = 10 ** (sys.get_int_max_str_digits() + 1)
    bb.save(tally, path)
    before = path.read_bytes()
    with pytest.raises(BadFile, match="cannot be saved"):
        bb.save(bb.Tally(tally.schema, (0, endless), tally.rows, tally.sums), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


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


def test_a_path_is_a_text_or_a_path(model: bb.Model, path: Path) -> None:
    bb.save(model, str(path))
    assert bb.load(str(path)).tally == bb.load(path).tally  # type: ignore[union-attr]


def test_only_models_tallies_and_networks_are_saved(path: Path) -> None:
    with pytest.raises(BadSetting, match="a Model, a LabelModel, a Tally, a BeliefNetwork or a fitted estimator"):
        bb.save("a model", path)  # type: ignore[arg-type]
    with pytest.raises(NotFittedError):
        bb.save(bb.NaiveBayesClassifier(), path)  # type: ignore[arg-type]
    assert not path.exists()


# What is no Banbury file


def refused(path: Path, *words: str, kind: type[BadFile] = BadFile) -> None:
    with pytest.raises(BadFile) as caught:
        bb.load(path)
    assert type(caught.value) is kind
    for word in (str(path), *words):
        assert word in str(caught.value)


def test_a_file_that_is_not_there_is_refused(path: Path) -> None:
    refused(path, "the file does not exist.")
    bb.save(bb.estimate(bb.count(bb.datasets.play_tennis(), "play")), path.with_name("weather.banbury"))
    refused(path.with_name("wether.banbury"), "Did you mean", "weather.banbury")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(path: Path) -> None:
    os.mkfifo(path)
    code = f"import banbury as bb\ntry: bb.load({str(path)!r})\nexcept bb.errors.BadFile as refused: print(refused)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert "it is not a regular file" in done.stdout


def test_a_name_that_is_no_name_is_refused(path: Path) -> None:
    for name in (None, 5.0, "with\0zero"):
        with pytest.raises(BadSetting, match="path must be the name of a file"):
            bb.load(name)  # type: ignore[arg-type]
    with pytest.raises(BadSetting, match="path must be the name of a file"):
        bb.save(bb.count(WEATHER, "play"), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"", b"x", b"hello, this is no model at all", bytes(1000), b"\xff" * 64])
def test_a_file_of_something_else_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, "it is not a Banbury file")


def test_a_safetensors_file_of_someone_else_is_refused(path: Path) -> None:
    save_file({"weights": np.zeros(3)}, path)
    refused(path, "it is not a Banbury file")
    save_file({"weights": np.zeros(3)}, path, {"banbury-1": "not JSON"})
    refused(path, "it is not a Banbury file")


@pytest.mark.parametrize("name", hostile.ATTACKS)
def test_a_file_made_to_do_harm_is_refused(name: str, path: Path) -> None:
    kind, attack = hostile.ATTACKS[name]
    path.write_bytes(attack(hostile.saved(hostile.model())))
    refused(path, kind=getattr(errors, kind))


def test_the_file_that_attacks_are_made_of_is_sound(path: Path) -> None:
    path.write_bytes(naive_files.rewritten(hostile.saved(hostile.model())))
    assert bb.load(path).tally == hostile.model().tally  # type: ignore[union-attr]
    for made in (hostile.blocks(), hostile.fractional(), hostile.weighed(), hostile.rounded(), hostile.golden_texts()):
        assert hostile.loaded(naive_files.rewritten(hostile.saved(made))) == made


# Damage


@pytest.fixture(scope="module")
def smallest() -> bytes:
    """A model of one text column and two classes; as little as has an array of every kind."""
    return hostile.saved(bb.estimate(bb.count(["a b", "b c c"], target=[0, 1], features=bb.Text(tokens="word1"))))


def test_every_flipped_bit_is_found(smallest: bytes, path: Path) -> None:
    for _ in hostile.flipped(smallest, range(8 * len(smallest)), path):
        with pytest.raises(BadFile):
            bb.load(path)


def test_a_flipped_bit_that_is_not_looked_for_does_no_harm(smallest: bytes, path: Path) -> None:
    start = 8 + int.from_bytes(smallest[:8], "little")
    loaded = 0
    for at in range(8 * start, 8 * len(smallest)):
        flipped = bytearray(smallest)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        try:
            model = bb.load(path, verify=False)
        except BanburyError:
            continue
        assert isinstance(model, bb.Model)
        assert np.isfinite(model.posterior(["a b c"])).all()
        loaded += 1
    assert 0 < loaded < 8 * (len(smallest) - start)


def test_without_verifying_the_same_is_loaded(smallest: bytes, path: Path) -> None:
    path.write_bytes(smallest)
    a, b = bb.load(path), bb.load(path, verify=False)
    assert isinstance(a, bb.Model) and isinstance(b, bb.Model)
    assert a.tally == b.tally
    assert a.posterior(["a b"]).tolist() == b.posterior(["a b"]).tolist()


def test_a_truncated_file_is_refused_wherever_it_ends(smallest: bytes, path: Path) -> None:
    for end in range(len(smallest)):
        path.write_bytes(smallest[:end])
        refused(path, kind=errors.DamagedFile if end >= 8 + int.from_bytes(smallest[:8], "little") else BadFile)


def loads_or_is_refused(content: bytes, path: Path, verify: bool) -> Any:
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)
        try:
            return bb.load(path, verify=verify)
        except BanburyError:
            return None


@settings(max_examples=200)
@given(data=st.data())
def test_bytes_that_are_anything_are_loaded_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(hostile.saved(hostile.model()))
    for _ in range(data.draw(st.integers(1, 4))):
        a = data.draw(st.integers(0, len(content)))
        b = data.draw(st.integers(a, min(len(content), a + 16)))
        content[a:b] = data.draw(st.binary(max_size=16))
    loads_or_is_refused(bytes(content), tmp_path_factory.getbasetemp() / "bytes.banbury", data.draw(st.booleans()))


STRANGE: list[Any] = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**30, 0.5, -0.5, 1e308, -1e308, 5e-324, float("inf"), float("nan")),
    *("", "a", "text", "gaussian", "histogram", "\0", "/", [], [[]], {}, [0], ["a"], [1, 2], {"pairs": []}, {"a": 1}),
]  # fmt: skip


def places(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all that is in a JSON text."""
    yield way
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield from places(value, (*way, key))


def put(tree: Any, way: tuple[Any, ...], value: Any) -> Any:
    """The JSON text with another value in one place."""
    if not way:
        return value
    if isinstance(tree, list):
        return [put(each, way[1:], value) if i == way[0] else each for i, each in enumerate(tree)]
    return {key: put(each, way[1:], value) if key == way[0] else each for key, each in tree.items()}


FUZZED: dict[str, Any] = {
    "mixed": lambda: (golden_files.mixed(), golden_files.rows("mixed")),
    "small": lambda: (hostile.model(), {"t": ["good no"], "w": ["a"], "x": [3.0]}),
    "text": lambda: (bb.estimate(bb.count(TEXTS, target=CLASSES, features=bb.Text(model="bernoulli"))), TEXTS),
}


@cache
def fuzzed(name: str) -> tuple[bytes, Any]:
    """A file to be changed, and rows for what is in it."""
    thing, rows = FUZZED[name]()
    return hostile.saved(thing), rows


@settings(max_examples=400)
@given(data=st.data())
def test_contents_that_are_anything_are_loaded_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rightly signed, so that nothing but what is in it can be the reason to refuse it; what is loaded answers."""
    content, rows = fuzzed(data.draw(st.sampled_from(sorted(FUZZED))))
    about, arrays = naive_files.unpacked(content)
    for _ in range(data.draw(st.integers(0, 2))):
        way = data.draw(st.sampled_from(sorted(places(about), key=str)))
        about = put(about, way, data.draw(st.sampled_from(STRANGE)))
    for _ in range(data.draw(st.integers(0, 2))):
        name = data.draw(st.sampled_from(sorted(name for name in arrays if arrays[name].size)))
        at, raw = data.draw(st.integers(0, arrays[name].size - 1)), data.draw(st.binary(min_size=8, max_size=8))
        arrays[name].flat[at] = np.frombuffer(raw, dtype=arrays[name].dtype)[0]
    path = tmp_path_factory.getbasetemp() / "contents.banbury"
    loaded = loads_or_is_refused(naive_files.packed(about, arrays), path, verify=True)
    assert str(loaded)
    if loaded is not None:
        with contextlib.suppress(BanburyError), warnings.catch_warnings():
            warnings.simplefilter("ignore", bb.BanburyWarning)
            model = bb.estimate(loaded) if isinstance(loaded, bb.Tally) else loaded
            assert np.isfinite(model.posterior(rows)).all()


# The format


@given(st.binary(max_size=600), st.integers(1, 4))
def test_the_checksum_is_the_one_described(content: bytes, threads: int) -> None:
    found = _core.checksum(np.frombuffer(content, dtype=np.uint8).copy(), threads)
    assert f"{found:016x}" == naive_files.checksum(content)


def test_the_checksum_of_more_than_a_piece_is_the_one_described() -> None:
    content = np.random.default_rng(0).integers(0, 256, 2 * 2**20 + 100, dtype=np.uint8)
    assert f"{_core.checksum(content, 3):016x}" == naive_files.checksum(content.tobytes())


def test_a_file_is_the_one_described(model: bb.Model, path: Path) -> None:
    for thing in (model, model.tally, hostile.model(), golden_files.mixed()):
        bb.save(thing, path)
        content = path.read_bytes()
        about = json.loads(naive_files.header(content)["__metadata__"]["banbury-1"])
        assert about["library"] == bb.__version__
        assert naive_files.packed(*naive_files.unpacked(content)) == content


def test_safetensors_reads_it_too(path: Path) -> None:
    bb.save(hostile.model(), path)
    _, arrays = naive_files.unpacked(path.read_bytes())
    found = load_file(path)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    with safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["banbury-1"])["library"] == bb.__version__


GOLDEN = sorted(golden_files.FOLDER.glob("format-*/*.banbury"))


@pytest.mark.parametrize("file", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_golden_files_are_read_as_they_were_written(file: Path) -> None:
    expected = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    thing = bb.load(file)
    assert golden_files.classes(thing, file.stem) == expected["classes"]
    assert golden_files.rows(file.stem) == expected["rows"]
    found = golden_files.posteriors(thing, file.stem)
    np.testing.assert_allclose(found, expected["posteriors"], rtol=1e-9, atol=1e-12)


def test_golden_files_are_what_is_written_today(path: Path) -> None:
    for name, make in golden_files.MADE.items():
        thing = make()
        assert golden_files.classes(saved_and_loaded(thing, path), name) == golden_files.classes(thing, name)
        golden = bb.load(golden_files.FOLDER / f"format-{bb.files.FORMAT}" / f"{name}.banbury")
        assert (golden.tally if isinstance(golden, bb.Model) else golden) == (
            thing.tally if isinstance(thing, bb.Model) else thing
        )


def forgotten(thing: Any, i: int, weighed: bool) -> Any:
    """A golden tally or network without one of the rows that it was counted of."""
    if isinstance(thing, bb.Tally) and by_shape.words(thing) and len(thing.schema.features) == 1:
        return thing - thing.count(golden_files.TEXTS[i : i + 1], target=golden_files.LABELS[i : i + 1])
    table = {name: column[i : i + 1] for name, column in golden_files.MIXED.items()}
    weights = golden_files.WEIGHTS[i : i + 1] if weighed else None
    if isinstance(thing, bb.BeliefNetwork):
        return thing - thing.count_more({name: table[name] for name in thing.nodes}, weights=weights)
    return thing - thing.count(table, weights=weights)


@pytest.mark.parametrize("file", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_golden_files_are_forgotten_in_any_order(file: Path, seed: int, path: Path) -> None:
    if file.stem == "tables" or (file.parent.name == "format-1" and file.stem != "text"):  # whose sums were rounded
        return
    loaded = bb.load(file)
    left: Any = loaded.tally if isinstance(loaded, bb.Model) else loaded
    n = len(golden_files.TEXTS) if file.stem == "text" else golden_files.N
    for k, i in enumerate(np.random.default_rng(seed).permutation(n)):
        left = forgotten(left, int(i), weighed=file.stem != "text")
        bb.save(left, path)
        assert bb.load(path) == left
        if k == n - 1:
            continue
        if isinstance(left, bb.BeliefNetwork):
            assert all(np.isfinite(table).all() and (table >= 0).all() for table in left.tables.values())
            continue
        assert not any(numbers.is_negative().any() for name, numbers in left.numbers().items() if "sums" not in name)
        assert all(value >= 0 for value in left.missing.values())
        for how in ("mle", "map", "mean", "predictive", "gibbs"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", bb.BanburyWarning)
                found = bb.estimate(left, how=how).posterior(golden_files.rows(file.stem))
            assert np.isfinite(found).all() and (found >= 0).all()
    assert left.n_rows == 0


# Sums that were rounded

PARTS: dict[str, Any] = {
    "x": bb.Gaussian(),
    "n": bb.Poisson(),
    "c": bb.Categorical(),
    "h": bb.Histogram(start=0.0, width=0.5),
    ("u", "v"): bb.Gaussian(covariance="full"),
    "t": bb.Text(),
}
LINE = st.tuples(
    st.one_of(st.none(), st.sampled_from([0.1, 7.3, -1e12, 1e-3, 5.0])),
    st.one_of(st.none(), st.integers(0, 4)),
    st.one_of(st.none(), st.sampled_from("abc")),
    st.one_of(st.none(), st.sampled_from([0.1, -3.7, 8.9, 0.0])),
    st.sampled_from([0.1, -2.0, 1 / 3, 1e-6]),
    st.sampled_from([1e9, 0.5, -3.0]),
    st.one_of(st.none(), st.lists(st.sampled_from(["alpha", "beta", "gamma"]), max_size=4).map(" ".join)),
    st.sampled_from("pq"),
)
FIRST = (1.0, 1, "a", 0.5, 0.0, 0.0, "alpha", "p")  # so that no column is empty
WEIGHT = st.sampled_from([0.1, 1.0, 1 / 3, 2.0, 0.7, 1e-17])
FACTOR = st.sampled_from([0.3, 0.7, 1 / 3, 0.999, 2.0, 1e-9, 1e-17, 1e6])


def lines(rows: list[Any]) -> dict[str, Any]:
    return {name: [row[k] for row in rows] for k, name in enumerate([*"xnchuvt", "y"])}


def assert_comes_back(tally: bb.Tally, path: Path) -> None:
    bb.save(tally, path)
    content = path.read_bytes()
    again = bb.load(path)
    assert isinstance(again, bb.Tally)
    assert again == tally and again.digest() == tally.digest() and again.rounded == tally.rounded
    assert str(again)
    bb.save(again, path)
    assert path.read_bytes() == content
    assert naive_files.packed(*naive_files.unpacked(content)) == content


@settings(max_examples=60)
@given(data=st.data(), rows=st.lists(st.tuples(LINE, WEIGHT), min_size=1, max_size=8))
def test_whatever_was_added_faded_and_forgotten_is_saved_and_loaded(
    data: st.DataObject, rows: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What `save` writes is never refused, not even where sums were rounded."""
    path = tmp_path_factory.getbasetemp() / "rounded.banbury"
    lot, weights = [FIRST, *(row for row, _ in rows)], [1.0, *(w for _, w in rows)]
    schema = bb.count(lines(lot), "y", features=PARTS).schema
    pieces = [bb.count(lines([row]), "y", schema=schema, weights=[w]) for row, w in zip(lot, weights, strict=True)]
    tally = sum(pieces[1:], pieces[0])
    for step in data.draw(st.lists(st.sampled_from(["fade", "add", "forget"]), max_size=5)):
        if step == "fade":
            factor = data.draw(FACTOR)
            with contextlib.suppress(BadSetting):  # too many rows
                tally, pieces = tally * factor, [piece * factor for piece in pieces]
        elif step == "forget" and pieces and not any(each.rounded for each in (tally, *pieces)):
            tally = tally - pieces.pop(data.draw(st.integers(0, len(pieces) - 1)))
        elif step == "add":
            some = data.draw(st.lists(LINE, min_size=1, max_size=3))
            more = tally.count(lines(some), weights=[data.draw(WEIGHT) for _ in some])
            tally, pieces = tally + more, [*pieces, more]
        assert_comes_back(tally, path)
    assert_comes_back(tally * 0.3 * 0.7, path)


@given(
    rows=st.lists(st.tuples(LINE, WEIGHT, st.integers(0, 2)), min_size=1, max_size=10),
    weighed=st.booleans(),
    seed=st.integers(0, 99),
)
def test_equal_tallies_are_the_same_bytes_however_they_were_made(rows: list[Any], weighed: bool, seed: int) -> None:
    lot, weights, groups = (
        [FIRST, *(r for r, _, _ in rows)],
        [1.0, *(w for _, w, _ in rows)],
        [0, *(g for _, _, g in rows)],
    )
    schema = bb.count(lines(lot), "y", features=PARTS).schema

    def counted(some: list[int]) -> bb.Tally:
        each = [weights[i] for i in some] if weighed else None
        return bb.count(lines([lot[i] for i in some]), "y", schema=schema, weights=each)

    order = np.random.default_rng(seed).permutation(len(lot)).tolist()
    whole = counted(list(range(len(lot))))
    pieces = [counted([i for i in order if groups[i] == g]) for g in set(groups)]
    added = sum(pieces[1:], pieces[0])
    back = whole - pieces[-1] + pieces[-1] if len(pieces) > 1 else whole
    twice = (whole + whole) - whole
    made = [whole, counted(order), added, back, twice, whole * 4.0 - whole * 3, hostile.loaded(hostile.saved(added))]
    assert all(each == whole and each.digest() == whole.digest() for each in made)  # type: ignore[union-attr]
    assert len({hostile.saved(each) for each in made}) == 1
    halves = [(whole + whole) * 0.5, whole * 0.5 + whole * 0.5]
    assert all(hostile.saved(each) == hostile.saved(whole) for each in halves if not each.rounded)


def test_zeros_have_no_sign_in_a_file() -> None:
    signs = ((0.0, -0.0), (-0.0, 0.0))
    tables = [{"c": [x, -x, 1.5], "y": [y, -y, 2.5]} for x, y in signs]
    a, b = (bb.count(table, "y", features={"c": "categorical"}) for table in tables)
    assert a == b and a.digest() == b.digest() and hostile.saved(a) == hostile.saved(b)


def test_rows_that_weigh_one_together_may_have_a_spread(path: Path) -> None:
    table = {"x": [1.0, 2.0], "u": [1.0, 3.0], "v": [2.0, 7.0], "y": ["p", "p"]}
    families = {"x": bb.Gaussian(), ("u", "v"): bb.Gaussian(covariance="full")}
    assert_comes_back(bb.count(table, "y", features=families, weights=[0.5, 0.5]), path)


def test_blocks_about_other_origins_come_back(path: Path) -> None:
    families = {("u", "v"): bb.Gaussian(covariance="full")}
    near = bb.count({"u": [0.1, 0.7, 0.3], "v": [1e9 / 3] * 3, "y": list("ppq")}, "y", features=families)
    far = bb.count({"u": [3e5, 7e7, 9e9], "v": [5e12, 1e13, 2e13], "y": list("ppq")}, "y", features=families)
    for moved in (near.to(far.schema), far.to(near.schema)):
        assert_comes_back(moved, path)


# Words

TEXTS = ["good good lunch", "bad lunch", "a good day, a day", "trees trees trees under trees", "bad day under trees"]
CLASSES = ["yes", "no", "yes", "maybe", "no"]
MODELS: dict[str, dict[str, Any]] = {
    "multinomial": {},
    "presence": {"model": "presence"},
    "bernoulli": {"model": "bernoulli"},
    "complement": {"model": "complement"},
    "log-odds": {"model": "log_odds", "damping": "log", "length": True},
    "complement, as its authors": {"model": "complement", "idf": True, "norm": True, "damping": "log", "length": True},
    "idf": {"idf": True},
    "pruned": {"min_count": 2, "max_words": 4},
    "by information": {"max_words": 3, "choose_by": "mutual_information"},
    "a vocabulary": {"vocabulary": ["good", "bad", "unheard"]},
    "n-grams": {"ngrams": (1, 2), "stop_words": ["under"]},
    "characters": {"unit": "characters", "ngrams": (2, 3)},
    "an expression": {"tokens": r"[a-z]{3,}"},
    "only some": {"only": ["good", "lunch", "a good", "unheard"], "ngrams": 2},
}


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 0.1, 2.0, 1.0]], ids=["whole", "weighted"])
@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive", "gibbs"])
@pytest.mark.parametrize("name", MODELS)
def test_models_of_text_come_back_and_answer_alike(name: str, how: Any, weights: Any, path: Path) -> None:
    tally = bb.count(TEXTS, target=CLASSES, features=bb.Text(**MODELS[name]), weights=weights)
    model = bb.estimate(tally, how=how, alpha=1.5)
    again = saved_and_loaded(model, path)
    assert again.tally == tally
    assert str(again.schema) == str(model.schema)
    for rows in (TEXTS[:1], TEXTS[3:], ["nothing known"], TEXTS, TEXTS * 100, TEXTS[:1]):  # few words, then all
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bb.BanburyWarning)
            np.testing.assert_array_equal(again.log_joint(rows), model.log_joint(rows))


@pytest.mark.parametrize("first", ["explain", "linear", "sample", "log_likelihood", "a table"])
def test_words_that_wait_are_there_whatever_is_asked_first(first: str, path: Path) -> None:
    table = {"text": [*TEXTS, None], "n": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": [*CLASSES, "no"]}
    features = {"text": bb.Text()} if first == "linear" else {"text": bb.Text(), "n": bb.Gaussian()}
    model = bb.estimate(bb.count({name: table[name] for name in (*features, "y")}, "y", features=features))
    again = saved_and_loaded(model, path)
    row = {name: table[name][4] for name in features}
    asked: dict[str, Any] = {
        "explain": lambda m: str(m.explain(row)),
        "linear": lambda m: (m.linear().words, m.linear().weights.tolist()),
        "sample": lambda m: m.sample(20, seed=1)["text"].tolist(),
        "log_likelihood": lambda m: m.log_likelihood({name: table[name] for name in features}, "text").tolist(),
        "a table": lambda m: m.posterior({name: table[name] for name in features}).tolist(),
    }
    assert asked[first](again) == asked[first](model)


def test_settings_given_to_an_estimate_come_back(path: Path) -> None:
    tally = bb.count(TEXTS, target=CLASSES)
    name = tally.schema.features[0].name
    model = bb.estimate(
        tally, features={name: bb.Text(model="bernoulli", min_count=2, alpha=0.25)}, class_prior="uniform"
    )
    again = saved_and_loaded(model, path)
    assert again.schema.features == model.schema.features
    assert again.posterior(TEXTS).tolist() == model.posterior(TEXTS).tolist()


@pytest.mark.parametrize("weights", [None, [0.5, 1.0, 0.1, 2.0, 1.0]], ids=["whole", "weighted"])
@pytest.mark.parametrize("model", ["multinomial", "presence", "bernoulli", "complement", "log_odds"])
@pytest.mark.parametrize("min_count", [1, 2, 2.5, 4, 100])
def test_saving_without_rare_words_is_pruning(min_count: float, model: Any, weights: Any, path: Path) -> None:
    tally = bb.count(TEXTS, target=CLASSES, weights=weights)
    name = tally.schema.features[0].name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bb.BanburyWarning)  # that no word is left
        bb.save(bb.estimate(tally, features={name: bb.Text(model=model)}), path, min_count=min_count)
        pruned = bb.estimate(tally, features={name: bb.Text(model=model, min_count=min_count)})
        found = bb.load(path)
        assert isinstance(found, bb.Model)
        np.testing.assert_allclose(found.log_joint(TEXTS), pruned.log_joint(TEXTS), rtol=1e-12, atol=1e-12)
    assert found.tally.rows.same(tally.rows)


def test_rare_words_of_every_column_are_left_out_of_the_bytes(path: Path) -> None:
    table = {"a": ["often often", "RARE", "often"], "b": ["SELDOM", "much", "much"], "y": list("ppq")}
    tally = bb.count(table, "y", features={"a": bb.Text(lowercase=False), "b": bb.Text(lowercase=False)})
    bb.save(tally, path, min_count=2)
    content = path.read_bytes()
    assert b"often" in content and b"much" in content
    assert b"RARE" not in content and b"SELDOM" not in content
    again = bb.load(path)
    assert isinstance(again, bb.Tally)
    assert by_shape.words(again)[0].texts.same(by_shape.words(tally)[0].texts)
    bb.save(tally, path)
    assert b"RARE" in path.read_bytes()


def test_rare_words_of_rows_with_labels_are_left_out_however_many_labels_they_have(path: Path) -> None:
    texts, labels = ["often RARE", "often"], [["p", "q", "r"], ["p"]]
    tally = bb.count(texts, labels, features=bb.Text(lowercase=False))
    for thing in (tally, bb.LabelModel.of(tally)):
        bb.save(thing, path, min_count=2)
        content = path.read_bytes()
        assert b"often" in content and b"RARE" not in content
        bb.load(path)


@pytest.mark.parametrize("min_count", [-1, float("nan"), float("inf"), "2", None, True])
def test_a_min_count_that_is_none_is_refused(min_count: Any, path: Path) -> None:
    with pytest.raises(BadSetting, match="min_count"):
        bb.save(bb.count(TEXTS, target=CLASSES), path, min_count=min_count)
    assert not path.exists()


def test_a_calibration_is_not_kept_for_other_words(path: Path) -> None:
    model = hostile.model()
    with pytest.raises(BadSetting, match=r"min_count must be omitted for a calibrated model"):
        bb.save(model, path, min_count=2)
    bb.save(model, path, min_count=1)  # which leaves all there is
    bb.save(model.calibrated(None), path, min_count=2)
    assert isinstance(bb.load(path), bb.Model)


def test_a_calibration_of_someone_elses_is_refused(model: bb.Model, path: Path) -> None:
    class Theirs:
        n_classes, keeps_order = 2, True
        log_apply = None

    with pytest.raises(BadSetting, match=r"calibration must be a calibration from bb\.calibrate"):
        bb.save(model.calibrated(Theirs()), path)  # type: ignore[arg-type]
    assert not path.exists()


NUMBER = st.integers(0, 10**6)
WORD = NUMBER.map(lambda n: f"q{n:06x}z")
ROW = st.tuples(st.lists(WORD, max_size=4), WORD, NUMBER.map(lambda n: f"y{n:06x}z"))


@given(kept=st.lists(ROW, min_size=1, max_size=6), gone=st.lists(ROW, min_size=1, max_size=6), real=st.booleans())
def test_no_byte_of_a_forgotten_row_s_own_words_is_in_the_file(
    kept: list[Any], gone: list[Any], real: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "forgotten.banbury"

    def table(rows: list[Any]) -> dict[str, Any]:
        return {"t": [" ".join(row[0]) for row in rows], "c": [row[1] for row in rows], "y": [row[2] for row in rows]}

    families = {"t": bb.Text(), "c": bb.Categorical()}
    weights = (lambda n: [0.3] * n) if real else (lambda n: None)
    tally = bb.count(table(kept + gone), "y", features=families, weights=weights(len(kept + gone)))
    bb.save(tally - tally.count(table(gone), weights=weights(len(gone))), path)
    content = path.read_bytes()
    words = [{word for row in rows for word in (*row[0], row[1], row[2])} for rows in (kept, gone)]
    assert all(word.encode() in content for word in words[0])
    assert not any(word.encode() in content for word in words[1] - words[0])


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


STOPS = {"while it is written": "fsync", "before it is moved": "replace"}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("step", STOPS)
def test_a_save_that_is_killed_leaves_the_old_file_whole(step: str, model: bb.Model, path: Path) -> None:
    bb.save(model, path)
    before = path.read_bytes()
    code = f"""if True:
        import os, time
        import banbury as bb
        thing = bb.load({str(path)!r}).tally * 3
        def stop(*_):
            print("there", flush=True)
            time.sleep(600)
        os.{STOPS[step]} = stop
        bb.save(thing, {str(path)!r})
    """
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "there\n"
    (part,) = set(os.listdir(path.parent)) - {path.name}
    assert part.endswith(".part")
    bb.save(model, path)
    assert set(os.listdir(path.parent)) == {path.name, part}  # it is still being written
    child.kill()
    child.communicate()
    assert path.read_bytes() == before
    others = {f"{path.name}.part", f"{path.name}ABCDEFGH.part", f"other{part}", "mine.part"}
    for name in others:
        (path.parent / name).write_text("not of a save to this place")
    bb.save(model.tally * 2, path)
    assert bb.load(path) == model.tally * 2
    assert set(os.listdir(path.parent)) == {path.name, *others}


def test_saves_at_once_to_one_place_leave_a_whole_file_and_nothing_else(model: bb.Model, path: Path) -> None:
    things = [model.tally * k for k in range(1, 5)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda thing: [bb.save(thing, path) for _ in range(15)], things))
    assert bb.load(path) in things and os.listdir(path.parent) == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="there is no umask")
def test_a_save_leaves_the_umask_alone_and_goes_by_it(
    model: bb.Model, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("it is one for all threads"))
        bb.save(model, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        bb.save(model, path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        monkeypatch.undo()
        os.umask(before)


def test_a_loaded_model_does_not_need_its_file_any_more(path: Path) -> None:
    model = saved_and_loaded(hostile.model(), path)
    expected = hostile.model().posterior({"t": ["good no"], "w": ["a"], "x": [3.0]}).tolist()
    path.write_bytes(bytes(path.stat().st_size))
    assert model.posterior({"t": ["good no"], "w": ["a"], "x": [3.0]}).tolist() == expected
    path.unlink()
    assert model.tally == hostile.model().tally


@pytest.mark.parametrize("model", ["multinomial", "presence", "bernoulli", "complement", "log_odds"])
def test_a_loaded_text_model_says_all_that_it_said(model: str, path: Path) -> None:
    """A loaded model weighs its words when they are asked for: whatever asks for them."""
    texts, labels = ["free money now", "free offer now", "lunch at noon", "notes at noon"], ["s", "s", "h", "h"]
    saved = bb.estimate(bb.count(texts, labels, features=bb.Text(model=model)))
    bb.save(saved, path)
    for ask in (
        lambda m: m.informative(3).to_dict(),
        lambda m: m.explain("free lunch").to_dict(),
        lambda m: m.linear().weights.tolist(),
        lambda m: (
            m.log_likelihood(["free lunch", "noon"]).tolist() if model not in ("complement", "log_odds") else None
        ),
        lambda m: m.likelihood("text", "free money"),
        lambda m: m.posterior(texts).tolist(),
        lambda m: m.sample(3)["text"].tolist() if model not in ("complement", "log_odds") else None,
    ):
        assert ask(bb.load(path)) == ask(saved)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_named(name: str, model: bb.Model) -> None:
    with pytest.raises(BadSetting, match="the name of a file"):
        bb.save(model, name)


def test_what_is_no_regular_file_stays_what_it_is(model: bb.Model, path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(BadFile, match="not a regular file"):
        bb.save(model, path)
    assert path.is_fifo()
    link = path.with_name("link.banbury")
    link.symlink_to(path.with_name("real.banbury"))
    bb.save(model, link)
    assert link.is_symlink() and bb.load(path.with_name("real.banbury")).tally == model.tally
