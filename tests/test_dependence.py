"""Mutual information and the diagnosis: against loops over rows, against scikit-learn, and on data with known answers."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, poisson
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import mutual_info_score

import banbury as bb
from banbury.errors import BadSetting, BadValue, BanburyError, EmptyData, LengthMismatch, UnknownColumn
from banbury.insight.dependence import Diagnosis, Pair, diagnose, informative_words, mutual_information

WEATHER = bb.datasets.play_tennis()


# The same, slow and obvious


def entropy(weights: Any) -> float:
    """In bits, of weights that need not sum to one."""
    weights = [w for w in weights if w > 0]
    whole = sum(weights)
    return sum(-w / whole * math.log2(w / whole) for w in weights)


def information(pairs: Sequence[tuple[Any, Any]], weights: Sequence[float] | None = None) -> float:
    """I(first; second) in bits over pairs of which none is missing."""
    first, second, both = Counter(), Counter(), Counter()
    for (a, b), w in zip(pairs, weights or [1.0] * len(pairs), strict=True):
        if a is None or b is None or w == 0:
            continue
        first[a] += w
        second[b] += w
        both[a, b] += w
    return entropy(first.values()) + entropy(second.values()) - entropy(both.values())


def information_given_class(
    a: Sequence[Any], b: Sequence[Any], classes: Sequence[Any], weights: Sequence[float] | None = None
) -> tuple[float, float, float]:
    """I(a; b | class) in bits, Σ (values of a − 1)(values of b − 1), and rows: over classes that have ten rows at least."""
    weights = weights or [1.0] * len(a)
    total = freedom = bits = 0.0
    for label in set(classes):
        rows = [
            (x, y, w)
            for x, y, c, w in zip(a, b, classes, weights, strict=True)
            if c == label and w > 0 and x is not None and y is not None
        ]
        n = sum(w for _, _, w in rows)
        if n < 10:
            continue
        bits += n * information([(x, y) for x, y, _ in rows], [w for _, _, w in rows])
        freedom += (len({x for x, _, _ in rows}) - 1) * (len({y for _, y, _ in rows}) - 1)
        total += n
    return (bits / total if total else 0.0), freedom, total


def beyond_chance(bits: float, freedom: float, rows: float) -> float:
    return max(bits - freedom / (2 * rows * math.log(2)), 0.0)


def by_names(diagnosis: Diagnosis) -> dict[frozenset[str], Pair]:
    return {frozenset((pair.first, pair.second)): pair for pair in diagnosis.pairs}


def idle(diagnosis: Diagnosis) -> list[str]:
    return [column.feature for column in diagnosis.uninformative]


def dependent_table(n: int = 400, seed: int = 0) -> dict[str, list[Any]]:
    """Categories and flags of which each depends on the one before and on the class, some of them missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    a = (y + rng.integers(0, 3, n)) % 4
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 4, n))
    c = np.where(rng.random(n) < 0.6, b > 1, rng.random(n) < 0.5)
    absent = rng.random((n, 2)) < 0.1
    return {
        "a": [None if gone else f"a{x}" for x, gone in zip(a, absent[:, 0], strict=True)],
        "b": [None if gone else f"b{x}" for x, gone in zip(b, absent[:, 1], strict=True)],
        "c": c.tolist(),
        "y": [f"class {label}" for label in y],
    }


# Information about the class, from a tally


@given(st.lists(st.tuples(st.sampled_from(["p", "q", "r", None]), st.sampled_from("xyz")), min_size=1, max_size=40))
def test_categories_are_scikit_learns_in_bits(rows: list[tuple[str | None, str]]) -> None:
    tally = bb.count({"v": [v for v, _ in rows], "y": [y for _, y in rows]}, "y", features={"v": "categorical"})
    found = mutual_information(tally)["v"]
    present = [(v, y) for v, y in rows if v is not None]
    wanted = mutual_info_score(*zip(*present, strict=True)) / math.log(2) if present else 0.0
    assert found == pytest.approx(wanted, abs=1e-12)
    assert found == pytest.approx(information(rows), abs=1e-12)
    assert found >= 0.0


def test_missing_may_be_a_value_of_its_own() -> None:
    table = {"v": ["p", None, "p", None], "y": ["x", "z", "x", "z"]}
    assert mutual_information(bb.count(table, "y", features="categorical"))["v"] == 0.0
    assert mutual_information(bb.count(table, "y", missing="category"))["v"] == pytest.approx(1.0)


def test_flags_are_scikit_learns_in_bits() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.random(200) < 0.4, rng.integers(0, 3, 200)
    found = mutual_information(bb.count({"x": x, "y": y}, "y"))
    assert found["x"] == pytest.approx(mutual_info_score(x, y) / math.log(2), abs=1e-12)


def test_bins_count_as_they_are_joined() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 500)
    x = np.floor(rng.normal(3.0 * y, 2.0))
    bins = mutual_information(bb.count({"x": x, "y": y}, "y", features={"x": bb.Histogram(start=0, width=1)}))
    assert bins["x"] == pytest.approx(mutual_info_score(x, y) / math.log(2), abs=1e-12)
    free = [
        mutual_information(bb.count({"x": x, "y": y}, "y", features=f))["x"] for f in ("histogram", "kernel_density")
    ]
    assert free[0] == free[1] > 0.1


@pytest.mark.parametrize("means, deviations, shares", [
    ([0.0, 1.0], [1.0, 1.0], [0.5, 0.5]),
    ([0.0, 0.0], [1.0, 4.0], [0.3, 0.7]),
    ([-5.0, 0.0, 2.0], [1.0, 0.1, 3.0], [0.2, 0.5, 0.3]),
    ([0.0, 0.0], [1.0, 0.001], [0.5, 0.5]),
])  # fmt: skip
def test_gaussians_are_integrated(means: list[float], deviations: list[float], shares: list[float]) -> None:
    columns = [
        (m + s * np.array([-1.0, 1.0]), int(1000 * p)) for m, s, p in zip(means, deviations, shares, strict=True)
    ]
    x = np.concatenate([np.tile(values, n) for values, n in columns])
    y = np.repeat(np.arange(len(means)), [2 * n for _, n in columns])
    found = mutual_information(bb.count({"x": x, "y": y}, "y", features="gaussian"))["x"]

    def integrand(z: float) -> float:
        each = np.array([p * norm.pdf(z, m, s) for m, s, p in zip(means, deviations, shares, strict=True)])
        some = each > 1e-300
        return float(np.sum(each[some] * np.log2(each[some] / np.array(shares)[some] / each.sum())))

    ends = sorted(
        {m + k * s for m, s in zip(means, deviations, strict=True) for k in (-12, -6, -3, -1, 0, 1, 3, 6, 12)}
    )
    wanted = sum(quad(integrand, a, b, epsabs=1e-12)[0] for a, b in pairwise(ends))
    assert found == pytest.approx(wanted, abs=2e-4)


def test_gaussians_alike_tell_nothing_and_far_apart_all() -> None:
    y = np.repeat([0, 1, 2], 100)
    noise = np.tile(np.linspace(-1, 1, 100), 3)
    found = mutual_information(
        bb.count(
            {"alike": noise, "apart": noise + 1e6 * y, "tiny": 1e-280 * (noise + 50 * y), "y": y},
            "y",
            features="gaussian",
        )
    )
    assert found["alike"] == pytest.approx(0.0, abs=1e-9)
    assert found["apart"] == pytest.approx(math.log2(3), abs=1e-9) == found["tiny"]
    assert found["apart"] <= found.entropy + 1e-12


@pytest.mark.parametrize("rates", [(1.0, 3.0), (0.0, 40.0), (90.0, 110.0), (30.0, 2e6), (1e6, 1.002e6)])
def test_poissons_are_summed(rates: tuple[float, float]) -> None:
    x, y = np.repeat(rates, 5000), np.repeat([0, 1], 5000)
    tally = bb.count({"x": x, "y": y}, "y", features={"x": "poisson"})
    model = bb.estimate(tally)
    low, high = model.parameters[0].rate[0]  # type: ignore[attr-defined]
    near = [np.arange(max(r - 12 * r**0.5 - 30, 0) // 1, r + 12 * r**0.5 + 30) for r in (low, high)]
    k = np.unique(np.concatenate(near))
    each = np.stack([poisson.pmf(k, low), poisson.pmf(k, high)]) / 2
    wanted = entropy([1, 1]) + sum(-entropy(column) * sum(column) for column in each.T if sum(column) > 0)
    assert mutual_information(tally)["x"] == pytest.approx(wanted, abs=1e-4)


TEXTS = ["free pills now", "pills, pills and more pills", "lunch now", "", "see you at lunch", "free lunch"]
KINDS = ["spam", "spam", "ham", "ham", "ham", "spam"]


def test_words_tell_by_their_presence() -> None:
    tally = bb.count(TEXTS, KINDS)
    words = {word for text in TEXTS for word in text.replace(",", "").split()}
    wanted = {
        w: information([(w in t.replace(",", "").split(), k) for t, k in zip(TEXTS, KINDS, strict=True)]) for w in words
    }
    found = informative_words(tally, n=100)
    assert found == pytest.approx(wanted, abs=1e-12)
    assert list(found) == sorted(wanted, key=lambda w: (-round(wanted[w], 9), w))
    whole = mutual_information(tally, n=2)
    assert whole["text"] == max(found.values())
    assert dict(whole.words["text"]) == {w: found[w] for w in ("free", "pills")}
    assert str(whole).endswith("text  0.459  'free', 'pills'")


def test_informative_words_of_one_of_several_columns() -> None:
    table = {"subject": ["a word too many", "and one more word"] * 4, "body": TEXTS + TEXTS[:2], "n": list(range(8))}
    tally = bb.count(table, KINDS + KINDS[:2], features={"subject": "text", "body": bb.Text(min_count=3)})
    assert list(informative_words(tally, "body")) == ["pills", "free", "lunch", "now"]
    with pytest.raises(
        BadSetting, match=r"feature must be a column of text, or a block of occurrences \(subject, body\). Got None"
    ):
        informative_words(tally)
    with pytest.raises(BadSetting, match=r"Got 'n' instead"):
        informative_words(tally, "n")
    with pytest.raises(UnknownColumn, match="no column 'bod'"):
        informative_words(tally, "bod")


def test_information_is_a_mapping_and_goes_to_json() -> None:
    found = mutual_information(bb.count(WEATHER, "play"))
    assert list(found) == ["outlook", "humidity", "wind", "temperature"] and len(found) == 4
    assert found["outlook"] == pytest.approx(0.24675, abs=1e-5)  # Mitchell, Machine Learning, 1997, table 3.2
    assert json.loads(json.dumps(found.to_dict()))["bits"] == dict(found)
    assert found == dict(found)


def test_information_needs_a_tally_with_classes() -> None:
    with pytest.raises(BadSetting, match=r"the tally must be a Tally, as bb.count makes it. Got 'dict'"):
        mutual_information({})  # type: ignore[arg-type]
    with pytest.raises(EmptyData, match="the tally has no class"):
        mutual_information(bb.count(WEATHER, "play") * 0)
    with pytest.raises(BadSetting, match=r"n must be a whole number of at least 1. Got 0"):
        mutual_information(bb.count(WEATHER, "play"), n=0)


def test_one_class_has_nothing_to_tell() -> None:
    found = mutual_information(
        bb.count({"g": [1.0, 2.0], "v": ["a", "b"], "n": [1, 2]}, ["x", "x"], features={"n": "poisson"})
    )
    assert dict(found) == {"g": 0.0, "v": 0.0, "n": 0.0} and found.entropy == 0.0


# Pairs


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_those_of_loops_over_rows(seed: int) -> None:
    table = dependent_table(seed=seed)
    diagnosis = diagnose(table, "y", missing="skip")
    assert diagnosis.n_pairs == 3
    found = by_names(diagnosis)
    for a, b in combinations("abc", 2):
        bits, freedom, rows = information_given_class(table[a], table[b], table["y"])
        if frozenset((a, b)) in found:
            pair = found[frozenset((a, b))]
            assert pair.bits == pytest.approx(beyond_chance(bits, freedom, rows), abs=1e-12)
            assert pair.rows == pytest.approx(rows) and 0 < pair.share < 1 and pair.p < 0.05 / 3
    assert [frozenset("ab"), frozenset("bc")] == list(found)[:2]
    assert [pair.bits for pair in diagnosis.pairs] == sorted((pair.bits for pair in diagnosis.pairs), reverse=True)


def test_pairs_are_scikit_learns_class_by_class() -> None:
    table = {
        name: [v or "none" for v in column] if name in "ab" else column for name, column in dependent_table().items()
    }
    frame = pd.DataFrame(table)
    by_class = [
        len(rows) / len(frame) * mutual_info_score(rows["a"], rows["b"]) / math.log(2) for _, rows in frame.groupby("y")
    ]
    pair = by_names(diagnose(frame, "y"))[frozenset("ab")]
    freedom = sum((r["a"].nunique() - 1) * (r["b"].nunique() - 1) for _, r in frame.groupby("y"))
    assert pair.bits == pytest.approx(beyond_chance(sum(by_class), freedom, len(frame)), abs=1e-12)


def test_pairs_are_symmetric_and_know_no_order_of_rows() -> None:
    table = dependent_table()
    found = by_names(diagnose(table, "y"))
    turned = by_names(diagnose({name: table[name] for name in ("c", "y", "b", "a")}, "y"))
    order = np.random.default_rng(5).permutation(len(table["y"]))
    shuffled = diagnose({name: [column[i] for i in order] for name, column in table.items()}, "y")
    for other in (turned, by_names(shuffled)):
        assert other.keys() == found.keys()
        for names, pair in found.items():
            assert other[names].bits == pytest.approx(pair.bits, abs=1e-12)
            assert other[names].share == pytest.approx(pair.share, abs=1e-12)


def test_a_weight_is_so_many_rows_and_none_is_no_row() -> None:
    table = dependent_table(120)
    weights = np.random.default_rng(6).integers(0, 4, 120)
    repeated = {
        name: [v for v, w in zip(column, weights, strict=True) for _ in range(w)] for name, column in table.items()
    }
    wanted = diagnose(repeated, "y")
    for given_weights in (weights, weights.tolist()):
        assert diagnose(table, "y", weights=given_weights) == wanted
    assert diagnose({**table, "w": weights}, "y", weights="w") == wanted


def test_fractional_weights_are_summed_and_tested_as_kish_has_it() -> None:
    table = dependent_table(300)
    weights = np.random.default_rng(7).random(300).tolist()
    found, tenfold = (diagnose(table, "y", weights=[k * w for w in weights], missing="skip") for k in (1.0, 10.1))
    bits, freedom, _ = information_given_class(table["a"], table["b"], table["y"], weights)
    present = sum(w for w, a, b in zip(weights, table["a"], table["b"], strict=True) if a is not None and b is not None)
    rows = present * sum(weights) / sum(w * w for w in weights)
    pair = by_names(found)[frozenset("ab")]
    assert pair.bits == pytest.approx(beyond_chance(bits, freedom, rows), abs=1e-9)
    assert [p.p for p in tenfold.pairs] == pytest.approx([p.p for p in found.pairs], rel=1e-6)
    assert found.n_rows == pytest.approx(sum(weights))


def test_soft_labels_that_are_sure_are_labels() -> None:
    table = dependent_table(200)
    labels = sorted(set(table["y"]))
    soft = np.array([[float(y == label) for label in labels] for y in table["y"]])
    features = {name: table[name] for name in "abc"}
    found, wanted = diagnose(features, weights=soft), diagnose(features, table["y"])
    assert found.classes == (0, 1, 2)
    assert [(p.first, p.second, p.bits) for p in found.pairs] == [(p.first, p.second, p.bits) for p in wanted.pairs]
    assert found.uninformative == wanted.uninformative


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_numbers_come_near_the_information_of_normals(rho: float) -> None:
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, 40_000)
    a = rng.normal(size=len(y))
    b = rho * a + math.sqrt(1 - rho**2) * rng.normal(size=len(y))
    pairs = diagnose({"a": a + 5 * y, "b": (b - 3 * y) * 1e-5, "y": y}, "y").pairs
    true = -0.5 * math.log2(1 - rho**2)
    assert not pairs if rho == 0 else pairs[0].bits == pytest.approx(true, rel=0.15) and pairs[0].bits < true


def test_a_column_of_few_values_and_a_far_one() -> None:
    y = np.tile([0, 1], 200)
    rooms = np.tile([1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 50.0, 50.0], 50)
    diagnosis = diagnose(
        {"rooms": rooms, "size": rooms * 20 + 7, "zeros": np.where(rooms > 2, 0.0, rooms), "y": y}, "y"
    )
    assert by_names(diagnosis)[frozenset(("rooms", "size"))].duplicated
    assert by_names(diagnosis)[frozenset(("rooms", "zeros"))].duplicated  # rooms determine zeros, if not the reverse
    assert by_names(diagnosis)[frozenset(("rooms", "size"))].share == 1.0


def test_every_family_is_compared() -> None:
    rng = np.random.default_rng(9)
    k = rng.poisson(4, 2000)
    columns = {
        "p": k,
        "h": k + rng.random(2000),
        "k": -k + 0.1 * rng.random(2000),
        "b": k > 3,
        "t": k.astype(float),
        "w": [f"w{i}" for i in k],
    }
    families = {"p": "poisson", "h": "histogram", "k": "kernel_density", "t": bb.Bernoulli(threshold=3.5)}
    diagnosis = diagnose(columns, rng.integers(0, 2, 2000), features=families)
    assert len(diagnosis.pairs) == diagnosis.n_pairs == 15
    assert by_names(diagnosis)[frozenset("bt")].duplicated and by_names(diagnosis)[frozenset("pw")].duplicated
    assert sorted(idle(diagnosis)) == sorted("phkbtw")
    flags = diagnose(
        {"yes": ["y" if x > 3 else "n" for x in k], "b": k > 3}, k % 2, features={"yes": bb.Bernoulli(yes="y")}
    )
    assert flags.pairs[0].duplicated


def test_missing_as_a_value_is_compared_too() -> None:
    present = np.random.default_rng(10).random(300) < 0.5
    table = {"a": [None if p else "x" for p in present], "b": present, "y": [0, 1, 2] * 100}
    assert not diagnose(table, "y", features={"a": "categorical"}).pairs
    assert diagnose(table, "y", missing="category", features={"b": "bernoulli"}).pairs[0].duplicated


def test_a_value_far_out_is_no_matter() -> None:
    rng = np.random.default_rng(11)
    a = rng.normal(size=500)
    far = a.copy()
    far[7] = 1e9
    pairs = diagnose({"a": a, "far": far}, rng.integers(0, 2, 500)).pairs
    assert pairs[0].share > 0.95


@pytest.mark.parametrize("distance", [1e17, -1e300])
def test_a_value_too_far_for_bins_is_the_farthest(distance: float) -> None:
    rng = np.random.default_rng(11)
    a, y = rng.normal(size=500), rng.integers(0, 2, 500)
    far = a.copy()
    far[[7, 8]] = distance, distance / 2
    labels: list[Any] = [*y.tolist(), None]
    diagnosis = diagnose({"a": [*a, 1e301], "far": [*far, np.nan], "again": [*far, 1e302]}, labels)
    assert by_names(diagnosis)[frozenset(("far", "again"))].duplicated
    assert by_names(diagnosis)[frozenset(("far", "again"))].rows == 500
    with pytest.raises(BadValue, match="bins from the start"):
        diagnose({"far": far}, y, features={"far": bb.Histogram(start=0, width=0.1)})


def test_small_classes_are_left_aside() -> None:
    n = 9
    table = {"a": [True, False] * n, "b": [True, False] * n, "y": ["x"] * n + ["z"] * n}
    assert not diagnose(table, "y").pairs
    more = {name: [*column, column[0]] for name, column in table.items()}
    assert diagnose(more, "y").pairs[0].rows == 10


# How it is read


def test_the_answer_does_not_depend_on_batches_threads_or_form(tmp_path: Path) -> None:
    frame = pd.DataFrame(dependent_table(600)).assign(g=np.random.default_rng(12).normal(size=600).round(3))
    wanted = diagnose(frame, "y")
    assert wanted.pairs
    assert diagnose(frame, "y", threads=1) == wanted == diagnose(frame, "y", threads=3)
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert diagnose(tmp_path / "table.csv", "y") == wanted
    assert diagnose(iter([frame]), "y") == wanted  # can be read once only
    halves = [frame[:300], frame[300:]]
    schema = bb.count(frame, "y", missing="category").schema
    assert diagnose(halves, "y", schema=schema) == diagnose(frame, "y", schema=schema) == wanted


def test_large_tables_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame(dependent_table(600)).assign(text=["a few words here", "and a few there"] * 300)
    wanted = diagnose(frame, "y")
    monkeypatch.setattr("banbury.insight.dependence.pairs.ROWS_TOGETHER", 70)
    found = diagnose(frame, "y")
    assert found == wanted and any(pair.first.startswith("text:") for pair in found.pairs)


def widening(folder: Path) -> Path:
    """A file whose second megabytes are not what its first were."""
    path = folder / "wide.csv"
    path.write_text("a,b,y\n" + "1,1,0\n2,2,1\n1,1,1\n2,2,0\n" * 250_000 + "word,word,1\n")
    return path


def test_a_file_whose_column_widens_is_read_again(tmp_path: Path) -> None:
    diagnosis = diagnose(widening(tmp_path), "y")
    assert diagnosis.n_rows == 1_000_001 and diagnosis.pairs[0].duplicated
    assert diagnose(iter([widening(tmp_path)]), "y") == diagnosis  # the names of files are kept


def test_data_that_change_between_readings_are_refused() -> None:
    class Growing:
        """A table that has one more row each time it is read."""

        n = 20

        def __iter__(self) -> Any:
            self.n += 1
            return iter(
                [
                    {
                        "a": [True, False] * self.n,
                        "b": [True, False] * self.n,
                        "y": [0, 0, 1, 1] * (self.n // 2) + [0, 1] * (self.n % 2),
                    }
                ]
            )

    with pytest.raises(BanburyError, match="the rows had changed when they were read a second time"):
        diagnose(Growing(), "y")


def test_rows_without_a_target_are_left_out_and_told() -> None:
    table = dependent_table(200)
    wanted = diagnose(table, "y")
    more = {name: [*column, column[0], column[1]] for name, column in table.items()} | {"y": [*table["y"], None, None]}
    found = diagnose(more, "y")
    assert found.pairs == wanted.pairs and found.n_rows == 200
    assert found.notes == ("Skipped: 2 rows without a target.",)


def test_many_columns_are_the_most_informative_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banbury.insight.dependence.pairs.MOST_COLUMNS", 3)
    rng = np.random.default_rng(13)
    x = rng.normal(size=(2000, 8))
    y = (x[:, 2] + x[:, 6] > 0).astype(int)
    x[:, 7] = x[:, 6]
    diagnosis = diagnose(x, y)
    assert diagnosis.n_pairs == 3 and {t.feature for t in diagnosis.columns[:3]} == {"x2", "x6", "x7"}
    assert diagnosis.notes == ("Only pairs of the 3 most informative of 8 columns were compared.",)
    assert by_names(diagnosis)[frozenset(("x6", "x7"))].duplicated


def test_many_classes_and_values_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("banbury.insight.dependence.pairs.MOST_CELLS", 5000)
    rng = np.random.default_rng(14)
    v = rng.integers(0, 400, 8000)
    diagnosis = diagnose(
        {"a": v.astype(str), "b": v.astype(str), "n": rng.normal(size=8000)}, rng.integers(0, 50, 8000)
    )
    assert diagnosis.pairs[0].duplicated and len(diagnosis.pairs) == 1


# Text


def corpus() -> tuple[list[str], list[str]]:
    """In politics 'donald' and 'trump' come together, in half of the texts; 'goal' is in every other text of sport."""
    politics = ["donald trump speaks", "the house speaks"] * 20
    sport = ["goal at last", "at last nothing", "at the end", "at the end a goal"] * 10
    return politics + sport, ["politics"] * 40 + ["sport"] * 40


def test_words_that_come_together_are_named() -> None:
    diagnosis = diagnose(*corpus())
    pair = by_names(diagnosis)[frozenset(("text:'donald'", "text:'trump'"))]
    # Half of the 40 texts of politics have both: one bit there, none in sport, and chance gives 1 / (2 · 80 · ln 2).
    assert pair.bits == pytest.approx(0.5 - 1 / (160 * math.log(2)), abs=1e-12)
    assert pair.duplicated and pair.share == 1.0 and pair.rows == 80
    assert frozenset(("text:'goal'", "text:'end'")) not in by_names(diagnosis)
    assert frozenset(("text:'last'", "text:'end'")) in by_names(diagnosis)  # one or the other
    assert "words that occur together" in diagnosis.advice
    assert next(iter(diagnosis.columns[0].words)) in ("at", "speaks")


@pytest.mark.parametrize(
    "settings",
    [{}, {"tokens": r"(\w+)"}, {"damping": "log"}, {"vocabulary": ["donald", "trump", "never"]}],
)
def test_pairs_of_words_are_those_of_loops_over_texts(settings: dict[str, Any]) -> None:
    texts, kinds = corpus()
    texts = [None if i % 17 == 0 else text for i, text in enumerate(texts)]
    weights = [1.0 + i % 3 for i in range(80)]
    diagnosis = diagnose({"text": texts}, kinds, features={"text": bb.Text(**settings)}, weights=weights, n=200)
    found = by_names(diagnosis)
    assert found
    for pair in found.values():
        columns = []
        for name in (pair.first, pair.second):
            word = name.removeprefix("text:").strip("'")
            columns.append([None if text is None else word in text.split() for text in texts])
        bits, freedom, rows = information_given_class(*columns, kinds, weights)
        assert pair.bits == pytest.approx(beyond_chance(bits, freedom, rows), abs=1e-9)
        assert pair.rows == pytest.approx(rows)


def test_words_of_two_columns_are_compared_where_both_have_a_text() -> None:
    texts, kinds = corpus()
    titles = [None if i % 5 == 0 else f"on {text}" for i, text in enumerate(texts)]
    diagnosis = diagnose({"title": titles, "body": texts}, kinds, features="text", n=500)
    pair = by_names(diagnosis)[frozenset(("title:'goal'", "body:'goal'"))]
    a, b = ([None if t is None else "goal" in t for t in column] for column in (titles, texts))
    bits, freedom, rows = information_given_class(a, b, kinds)
    assert pair.duplicated and pair.rows == rows == 64
    assert pair.bits == pytest.approx(beyond_chance(bits, freedom, rows), abs=1e-12)


def test_text_beside_columns_and_text_that_tells_nothing() -> None:
    rng = np.random.default_rng(15)
    words = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta"])
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)]
    y = rng.integers(0, 2, 300)
    diagnosis = diagnose({"text": texts, "n": y + rng.normal(size=300), "empty": [None] * 300}, y)
    assert idle(diagnosis) == ["text", "empty"] and diagnosis.columns[0].feature == "n"
    assert set(diagnosis.columns[1].words) == set(words)
    assert diagnosis.uninformative[1].why == "left out: no value"


def test_columns_from_arrow_have_their_missing_texts() -> None:
    pl = pytest.importorskip("polars")
    texts, kinds = corpus()
    texts = [None if i % 9 == 0 else text for i, text in enumerate(texts)]
    frame = pl.DataFrame({"text": texts, "kind": kinds})
    assert diagnose(frame, "kind", features={"text": "text"}) == diagnose(
        {"text": texts, "kind": kinds}, "kind", features={"text": "text"}
    )


# Columns that tell nothing


def test_columns_left_out_are_listed_with_the_reason() -> None:
    table = {
        "row_id": list(range(100)),
        "same": ["x"] * 100,
        "when": pd.date_range("2020-01-01", periods=100),
        "v": [1.0, 2.0] * 50,
        "y": [0, 1] * 50,
    }
    diagnosis = diagnose(pd.DataFrame(table), "y")
    assert {u.feature: u.why for u in diagnosis.uninformative} == {
        "row_id": "left out: identifiers: a different value in every row",
        "same": "left out: one value only",
        "when": "left out: a date or time; convert it to numbers or words to use it",
    }
    assert diagnosis.columns[0].bits == pytest.approx(1.0, abs=0.01)


def test_declared_columns_of_one_value_or_none() -> None:
    table = {"same": ["x"] * 40, "none": [None] * 40, "nan": np.full(40, np.nan), "v": [True, False] * 20}
    diagnosis = diagnose(
        table, [0, 0, 1, 1] * 10, features={"same": "categorical", "none": "categorical", "nan": "gaussian"}
    )
    assert [(u.feature, u.why) for u in diagnosis.uninformative] == [
        ("same", "one value only"),
        ("none", "no value"),
        ("nan", "no value"),
        ("v", "p = 1"),
    ]
    assert diagnosis.n_pairs == 0 and diagnosis.advice == "There are no pairs to compare."


def test_values_in_one_class_only_and_texts_without_words() -> None:
    table = {"late": [None, "a"] * 10 + [None, "b"] * 10, "mute": ["?", ""] * 20}
    diagnosis = diagnose(table, [0, 1] * 20, features={"late": "categorical", "mute": "text"})
    assert [u.why for u in diagnosis.uninformative] == ["values in one class only", "no words"]
    assert [t.bits for t in diagnosis.columns] == [0.0, 0.0]


def test_a_test_is_wrong_as_often_as_it_says() -> None:
    """Of columns of noise one in twenty seems to tell something; a false pair is in one table of twenty."""
    rng = np.random.default_rng(16)
    alarms = pairs = 0
    for _ in range(20):
        table: dict[str, Any] = {f"n{i}": rng.normal(size=300) for i in range(4)}
        table |= {f"v{k}": [f"v{x}" for x in rng.integers(0, k, 300)] for k in (2, 5, 12, 40)}
        table |= {"zeros": rng.exponential(size=300) * (rng.random(300) < 0.3), "flag": rng.random(300) < 0.1}
        diagnosis = diagnose(table, rng.integers(0, 3, 300))
        alarms += len(diagnosis.columns) - len(diagnosis.uninformative)
        pairs += bool(diagnosis.pairs)
    assert alarms <= 20  # 10 of 200 are expected
    assert pairs <= 4


def test_many_small_classes_are_no_information() -> None:
    rng = np.random.default_rng(17)
    diagnosis = diagnose(rng.normal(size=(2000, 10)), rng.integers(0, 400, 2000))
    assert len(diagnosis.uninformative) >= 8 and not diagnosis.pairs


# What cannot be diagnosed


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(BadSetting, match="target must be a column's name"):
        diagnose({"a": [1.0]})
    with pytest.raises(UnknownColumn, match=r"no column 'plai'.* Did you mean 'play'"):
        diagnose(WEATHER, "plai")
    with pytest.raises(EmptyData, match="nothing to count"):
        diagnose({"a": [], "y": []}, "y")
    with pytest.raises(EmptyData, match="the target 'y' is missing in all 2 rows"):
        diagnose({"a": [1.0, 2.0], "y": [None, None]}, "y")
    with pytest.raises(EmptyData, match="no row has a positive weight"):
        diagnose({"a": [1.0, 2.0], "y": [0, 1]}, "y", weights=[0, 0])
    with pytest.raises(LengthMismatch, match="2 rows but 3 labels"):
        diagnose({"a": [1.0, 2.0]}, [0, 1, 1])
    with pytest.raises(BadSetting, match=r"n must be a whole number of at least 1. Got True"):
        diagnose(WEATHER, "play", n=True)
    with pytest.raises(BadSetting, match="schema must be a Schema"):
        diagnose(WEATHER, "play", schema={})  # type: ignore[arg-type]
    schema = bb.Schema.infer(WEATHER, "play")
    with pytest.raises(BadSetting, match="features must be omitted when a schema is given"):
        diagnose(WEATHER, "play", schema=schema, features="categorical")
    with pytest.raises(BadValue, match="row 1 of column 'a' is infinite"):
        diagnose({"a": [1.0, math.inf, 2.0], "y": [0, 1, 0]}, "y")
    with pytest.raises(BadValue, match="row 1 of column 'a' is -1, but a Poisson column"):
        diagnose({"a": [1, -1, 2], "y": [0, 1, 0]}, "y", features={"a": "poisson"})


def test_one_class_only_has_pairs_and_nothing_to_tell() -> None:
    diagnosis = diagnose({"a": [True, False] * 20, "b": [True, False] * 20}, ["x"] * 40)
    assert [u.why for u in diagnosis.uninformative] == ["there is one class only"] * 2
    assert diagnosis.pairs[0].duplicated and diagnosis.entropy == 0.0
    assert "Diagnosis of 40 rows, 1 class, 2 columns" in str(diagnosis)


def test_one_column_or_one_row_only() -> None:
    assert diagnose({"a": [1.0, 2.0] * 20}, [0, 1] * 20).pairs == ()
    one = diagnose({"a": [1.0], "b": ["v"]}, ["x"])
    assert one.pairs == () and one.n_rows == 1 and len(one.uninformative) == 2


def test_all_missing_leaves_nothing() -> None:
    with pytest.warns(bb.BanburyWarning, match="there is no column to learn from"):
        diagnosis = diagnose({"a": [None, None], "y": [0, 1]}, "y")
    assert idle(diagnosis) == ["a"] and diagnosis.columns == ()


# What it looks like


def test_a_diagnosis_prints_and_goes_to_json() -> None:
    y = np.tile([0, 0, 1, 1, 1], 80)
    table = {
        "a": [f"v{i % 8 // 2}" for i in range(400)],
        "again": [f"v{i % 8 // 2}" for i in range(400)],
        "told": y == 1,
        "id": range(400),
    }
    diagnosis = diagnose(table | {"y": y}, "y")
    assert str(diagnosis) == repr(diagnosis) == (
        "Diagnosis of 400 rows, 2 classes, 3 columns\n"
        "Pairs that depend on each other given the class (of 3), in bits:\n"
        "  a / again  1.968  100%  duplicated\n"
        "Information of each column about the class, in bits (the class has 0.971):\n"
        "  told  0.969\n"
        "Columns without information about the class in these rows:\n"
        "  a      p = 1\n"
        "  again  p = 1\n"
        "  id     left out: identifiers: a different value in every row\n"
        "Counting evidence twice pushes probabilities towards 0 and 1: leave out again, which adds little to "
        "a."
    )  # fmt: skip
    plain = json.loads(json.dumps(diagnosis.to_dict()))
    assert plain["pairs"][0]["first"] == "a" and plain["pairs"][0]["duplicated"] is True
    assert plain["uninformative"][2] == {
        "feature": "id",
        "why": "left out: identifiers: a different value in every row",
        "p": None,
    }
    assert pickle.loads(pickle.dumps(diagnosis)) == diagnosis
    assert len(diagnose(dependent_table(), "y", n=1).pairs) == 1


def test_independent_columns_are_said_to_be() -> None:
    diagnosis = diagnose(np.random.default_rng(18).normal(size=(500, 4)), np.tile([0, 1], 250))
    assert "No pair of columns depends on each other beyond chance" in str(diagnosis)


# The lectures


def test_row_30_a_duplicated_column_pushes_posteriors_to_0_and_1_and_is_named() -> None:
    iris = load_iris(as_frame=True)
    frame = iris.data.rename(columns=lambda name: name.replace(" (cm)", ""))[["sepal length", "sepal width"]]
    sure = []
    for copies in range(4):
        more = frame.assign(**{f"copy {i}": frame["sepal length"] for i in range(copies)})
        posterior = bb.estimate(bb.count(more, target=iris.target)).posterior(more)
        sure.append(float(np.mean(posterior.max(axis=1))))
        named = {frozenset((p.first, p.second)) for p in diagnose(more, iris.target).pairs if p.duplicated}
        same = ["sepal length", *(f"copy {i}" for i in range(copies))]
        assert named == {frozenset(pair) for pair in combinations(same, 2)}
    assert sure == sorted(sure) and sure[3] > sure[0] + 0.05
    many = frame.assign(**{f"copy {i}": frame["sepal length"] for i in range(60)})
    posterior = bb.estimate(bb.count(many, target=iris.target)).posterior(many)
    assert np.median(posterior.max(axis=1)) > 0.999 and np.median(posterior.min(axis=1)) < 1e-6


def test_row_30_petals_and_sepals_depend_on_each_other_given_the_species() -> None:
    iris = load_iris(as_frame=True)
    worst = diagnose(iris.data, iris.target).pairs[0]
    assert {worst.first, worst.second} == {"sepal length (cm)", "petal length (cm)"}


def accuracy(train: pd.DataFrame, train_y: Any, test: pd.DataFrame, test_y: Any) -> float:
    return float(np.mean(bb.estimate(bb.count(train, target=train_y)).predict(test) == np.asarray(test_y)))


def with_noise(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {f"noise {i}": rng.normal(size=len(frame)) for i in range(10)}
    values = {f"noise {i}": rng.choice(["p", "q", "r"], len(frame)) for i in range(10, 20)}
    return frame.assign(**numbers, **values)


def test_row_27_noise_moves_the_accuracy_by_less_than_a_point_and_is_listed_adult(
    adult_train: pd.DataFrame, adult_test: pd.DataFrame
) -> None:
    train, test = adult_train.drop(columns="income"), adult_test.drop(columns="income")
    plain = accuracy(train, adult_train["income"], test, adult_test["income"])
    noisy = with_noise(train, 1)
    assert abs(accuracy(noisy, adult_train["income"], with_noise(test, 2), adult_test["income"]) - plain) < 0.01
    diagnosis = diagnose(noisy, adult_train["income"])
    assert sum(name.startswith("noise") for name in idle(diagnosis)) >= 16
    assert not [name for name in idle(diagnosis) if not name.startswith("noise")]
    assert {diagnosis.pairs[0].first, diagnosis.pairs[0].second} == {"education", "education_num"}
    assert diagnosis.pairs[0].duplicated
    assert not [p for p in diagnosis.pairs if p.first.startswith("noise") or p.second.startswith("noise")]


def test_row_27_noise_is_listed_wine() -> None:
    wine = load_wine(as_frame=True)
    noisy = with_noise(wine.data, 3)
    gaps = []
    for seed in range(10):
        rows = np.random.default_rng(seed).permutation(len(noisy))
        train, test = rows[:120], rows[120:]
        each = [
            accuracy(frame.iloc[train], wine.target[train], frame.iloc[test], wine.target[test])
            for frame in (wine.data, noisy)
        ]
        gaps.append(each[1] - each[0])
    assert abs(float(np.mean(gaps))) < 0.01
    diagnosis = diagnose(noisy, wine.target)
    assert sum(name.startswith("noise") for name in idle(diagnosis)) >= 16
    assert not [name for name in idle(diagnosis) if not name.startswith("noise")]


@pytest.mark.parametrize("kinds, remedy", [
    ("words", "model the two together with features={('a', 'b'): bb.Joint()}, "),
    ("numbers", "model the two together with features={('a', 'b'): bb.Gaussian(covariance='full')}, "),
    ("both", ""),
])  # fmt: skip
def test_advice_names_a_block_that_the_columns_can_be_in_and_a_tree(kinds: str, remedy: str) -> None:
    rng = np.random.default_rng(3)
    y = np.arange(600) % 2
    a = rng.normal(size=600) + y
    b = a + rng.normal(size=600)
    words = {name: np.where(column > 0.5, "high", "low") for name, column in (("a", a), ("b", b))}
    table = {"words": words, "numbers": {"a": a, "b": b}, "both": {"a": a, "b": words["b"]}}[kinds]
    diagnosis = diagnose(table | {"y": y}, "y")
    assert diagnosis.advice == (
        "a and b depend on each other given the class, which naive Bayes does not see: weigh the evidence "
        f"with bb.EvidenceClassifier(), {remedy}or learn which columns depend on each other with bb.TANClassifier()."
    )
    if remedy:  # what it says to do leaves no pair to complain of
        features = eval(remedy.partition("features=")[2].rpartition(", ")[0], {"bb": bb})
        assert not diagnose(table | {"y": y}, "y", features=features).pairs


@pytest.mark.parametrize("columns, duplicated", [("ab", False), ("ac", True), ("ad", True)])
def test_columns_that_tell_more_together_are_no_copies(columns: str, duplicated: bool) -> None:
    a, b = np.tile([0, 0, 1, 1], 250), np.tile([0, 1, 0, 1], 250)
    nearly = np.where(np.arange(1000) % 250 == 0, 1 - a, a)
    table = {name: each for name, each in zip("abcd", (a, b, 1 - a, nearly), strict=True) if name in columns}
    diagnosis = diagnose(table, a ^ b)
    assert diagnosis.pairs[0].share > 0.95 and diagnosis.pairs[0].duplicated == duplicated
    assert ("leave out" in diagnosis.advice) == duplicated
    assert ("bb.EvidenceClassifier()" in diagnosis.advice) != duplicated


def test_the_copy_that_tells_less_is_left_out() -> None:
    x = np.random.default_rng(5).integers(0, 8, 800)
    told = diagnose({"coarse": x // 2, "fine": x}, x > 2, features="categorical")
    assert told.advice.endswith("leave out coarse, which adds little to fine.")


def passengers(n: int = 800) -> dict[str, list[Any]]:
    """A table in which a cabin and an age are mostly missing: whether they are tells who survived."""
    rng = np.random.default_rng(46)
    survived = rng.random(n) < 0.4
    has_cabin = rng.random(n) < np.where(survived, 0.4, 0.1)
    has_age = rng.random(n) < np.where(survived, 0.95, 0.6)
    cabins = np.array([f"C{number % 50}" for number in range(n)], dtype=object)
    return {
        "cabin": np.where(has_cabin, rng.permutation(cabins), None).tolist(),
        "age": np.where(has_age, rng.normal(30, 10, n).round(1), np.nan).tolist(),
        "survived": survived.astype(int).tolist(),
    }


def test_a_missing_value_tells_as_much_as_it_tells_the_weighed_model(tmp_path: Any) -> None:
    rows = passengers()
    found = diagnose(rows, "survived")
    assert not found.uninformative and all(each.bits > 0.02 for each in found.columns)
    assert {each.feature for each in diagnose(rows, "survived", missing="skip").uninformative} == {"cabin", "age"}
    model = bb.EvidenceClassifier().fit({name: rows[name] for name in ("cabin", "age")}, rows["survived"]).model_
    report = bb.report(model, {**rows, "class": rows["survived"]}, target="class", alternatives=False)
    assert not report.findings.diagnosis.uninformative


def test_a_long_list_of_columns_says_how_many_are_left_out() -> None:
    rows = {f"c{number:02}": ["x", "y"] * 10 for number in range(43)}
    found = bb.mutual_information(bb.count(rows, target=["a", "b"] * 10))
    assert str(found).splitlines()[-1] == "  … and 3 more features"
