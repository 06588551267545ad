"""Leave-one-out: by formula what refitting says without each row; where something stays that of all rows, the notes say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
import by_shape
from banbury import _core, errors
from banbury.families import Text
from banbury.families.family import HOWS
from banbury.quality import CrossValidation
from banbury.rows.folds import MOST_FOLDS
from banbury.weighing.columns import CHOICE, MOST_NATS_BEHIND, WeighedColumns
from pools import choices
from test_laws import CASES, Case, law, parametrized, quietly
from test_selection import EVERY, Data, Splits, mixed_frame, refitted, some_cases, tables, tables_of

HISTOGRAMS, KERNELS = "the bins of histograms", "the bandwidths of kernels"
TREES = "the cut points and prior strengths of quantile trees"


def kept(data: Data) -> set[str]:
    """What stays that of all rows, which the notes must say where there is a formula."""
    names = {family.name for family in data.families.values()}
    found = {"histogram": HISTOGRAMS, "kernel_density": KERNELS, "quantile_tree": TREES}
    return {note for name, note in found.items() if name in names}


def one_by_one(data: Data) -> Splits:
    every = range(len(data))
    return [([j for j in every if j != i], [i]) for i in data.labelled(every)]


def notes_of(found: CrossValidation) -> set[str]:
    if not found.notes:
        return set()
    (note,) = found.notes
    head = "learned from all rows, the one left out included: "
    assert note.startswith(head)
    return set(note.removeprefix(head).split(", "))


def assert_left_out(data: Data, atol: float = 1e-10, **settings: Any) -> CrossValidation:
    """Equal to refitting without each row, unless the notes say what is not."""
    with quietly():
        found = data.validate(folds="loo", **settings)
        classes, tested, expected, sure = refitted(data, one_by_one(data), **settings)
    assert found.classes == classes
    assert found.rows.tolist() == tested.tolist()
    assert found.folds.tolist() == list(range(len(tested)))
    assert [found.classes[c] for c in found.truth] == [data.labels[i] for i in tested]
    assert np.isfinite(found.posteriors).all()
    np.testing.assert_allclose(found.posteriors.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert notes_of(found) <= kept(data)
    if not found.notes:
        np.testing.assert_allclose(found.posteriors[sure], expected[sure], rtol=0, atol=atol)
    return found


def learnable(data: Data) -> bool:
    """Whether some row that counts is left whichever row is left out."""
    return len(data.weighed(range(len(data)))) > 1


def exactness(data: Data, how: str) -> float:
    """Complement counts are smoothed with 1e-10 at least: what is left of a difference shows beside it."""
    tiny = how in ("mle", "map") and any(getattr(f, "model", "") == "complement" for f in data.families.values())
    return 1e-6 if tiny else 1e-10


@pytest.mark.parametrize("how", ["map", "mean"])
def test_a_class_whose_only_row_is_left_out_has_no_mean(how: str) -> None:
    prior, labels = bb.NormalInverseGamma(2, 3, 1.5, 4), ["a", "b", "c"]
    assert_left_out(Data({"x": [0.0, 0.0, -0.1]}, {"x": bb.Gaussian(variance="shared", prior=prior)}, labels), how=how)
    columns, rows = {"x": [0.0, 0.5, -0.1, 2.0, 1.0], "z": [1.0, 0.5, 0.2, 0.3, -1.0]}, [*labels, "b", "b"]
    assert_left_out(Data(columns, dict.fromkeys("xz", bb.Gaussian(covariance="tied", prior=prior)), rows), how=how)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("family", [bb.Exponential(), bb.Exponential(prior_total=2.0), bb.Gamma()])
def test_the_only_number_of_a_column_swallows_no_other_evidence(family: bb.Family, how: Any) -> None:
    for only in ([1.0, None, None, None], [3.0, 1e-9, 1e-9, 1e-9]):
        table = {"only": only, "other": [0.0, 1.0, 5.0, 6.0]}
        features = {"only": family, "other": bb.Gaussian(variance="shared")}
        left_out, refitted = (
            bb.cross_validate(table, target=[*"uuvv"], folds=folds, features=features, how=how).posteriors
            for folds in ("loo", [0, 1, 2, 3])
        )
        np.testing.assert_allclose(left_out, refitted, rtol=1e-9, atol=1e-12)


settings_of = choices(HOWS, (0.3, 1.0, 2.0), (None, "uniform", 1.0, 0.5))


@parametrized(EVERY)
@law
@given(data=st.data())
def test_it_is_refitting_without_each_row(case: Case, data: st.DataObject) -> None:
    drawn = data.draw(tables_of(case))
    settings = data.draw(settings_of)
    if learnable(drawn):
        assert_left_out(drawn, exactness(drawn, settings["how"]), **settings)


@given(data=st.data())
def test_mixed_families(data: st.DataObject) -> None:
    drawn = data.draw(tables(data.draw(some_cases), far=False))
    settings = data.draw(settings_of)
    if learnable(drawn):
        assert_left_out(drawn, exactness(drawn, settings["how"]), **settings)


# Small tables, where a sum becomes empty without the row, and numbers of any size ----------------------------------------

# By the name of the family: the least value, another one, one near the least, and one far away; then two tiny ones that are
# counted without the others, and two huge ones. Of other families four values of the case's pool.
TINY_AND_HUGE = (1e-300, 4e-300, 1e300, 3e300)
EXTREMES: dict[str, tuple[Any, ...]] = {
    "text": ("", "ab", "ab cd x", "ab " * 300),
    "poisson": (0, 1, 2, 10**12),
    "occurrences": (0, 1, 1e-9, 1e9),
    "gamma": (1e-9, 1.0, 2e-9, 1e100, *TINY_AND_HUGE),
    **dict.fromkeys(["gaussian", "exponential"], (0.0, 1.0, 1e-12, 1e100, *TINY_AND_HUGE)),
    **dict.fromkeys(["histogram", "kernel_density", "quantile_tree"], (0.0, 1.0, 1e-3, 1e12, *TINY_AND_HUGE)),
}
# The numbers of such values, a dot where one is missing; labels; and whether rows are weighted.
SMALL_TABLES = [
    ("000", "aab", False),  # all alike
    ("11111", "aaabb", True),
    ("001", "aaa", False),  # one that is not 0
    ("00101", "aaabb", False),
    ("100000", "abbbbb", True),
    ("001", "abc", False),  # a class for each row
    ("0011", "aabb", False),  # each class has one value
    ("0101", "abbb", True),  # a value that only one class has
    ("...", "aab", False),  # values that are missing, all but one
    ("1...", "aabb", True),
    ("00130", "aabbb", False),  # near and far away
    ("301.13", "aaabbb", True),
    ("0202", "aabb", False),
    ("45445", "aaabb", False),
    ("76667", "aaabb", False),
]
SPARSE_WEIGHTS = [0.1, 1 / 3, 2.7, 1e-6, 1e4, 1e-20]  # the last is too small to count


def small_tables(case: Case) -> Iterator[tuple[dict[str, list[Any]], list[str], list[float] | None]]:
    """Tables of two columns, the second one turned round, so that what they say may cancel."""
    values = EXTREMES.get(case.family.name, ([*dict.fromkeys(case.cells)] * 4)[:4])
    fixed = getattr(case.family, "width", None) is not None  # bins do not follow the column's scale
    by_number = dict(zip("0123" if fixed else "01234567", values, strict=False))
    for pattern, labels, weighted in SMALL_TABLES:
        if not set(pattern) <= {".", *by_number}:
            continue
        x = [by_number.get(number) for number in pattern]
        yield {"x": x, "z": x[::-1]}, list(labels), SPARSE_WEIGHTS[: len(x)] if weighted else None


@pytest.mark.parametrize(
    "how", [how if how in ("mle", "mean") else pytest.param(how, marks=pytest.mark.slow) for how in HOWS]
)
@parametrized(CASES)
def test_without_any_row_of_a_small_table_it_is_refitting(case: Case, how: str) -> None:
    exact = case.family.name in ("joint", "occurrences") or how == "gibbs"  # every row is refitted
    for table, labels, weights in small_tables(case):
        settings = {"features": case.features(["x", "z"]), "weights": weights, "how": how, "threads": 1}
        with quietly():
            found = bb.cross_validate(table, labels, folds="loo", **settings)
            expected = bb.cross_validate(table, labels, folds=list(range(len(labels))), **settings)
        assert np.isfinite(found.posteriors).all()
        np.testing.assert_allclose(found.posteriors.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        if exact:
            np.testing.assert_array_equal(found.posteriors, expected.posteriors)
        elif not found.notes:  # terms are added in another order
            atol = 1e-6 if how in ("mle", "map") and getattr(case.family, "weighs", False) else 1e-10
            np.testing.assert_allclose(found.posteriors, expected.posteriors, rtol=0, atol=atol)


@pytest.mark.slow
@parametrized(CASES)
def test_a_row_of_a_small_table_is_explained_as_if_it_had_not_been_counted(case: Case) -> None:
    for table, labels, weights in small_tables(case):
        if weights is not None:
            continue  # a row is left out with a weight of one
        tally = bb.count(table, labels, features=case.features(["x", "z"]))
        for i, label in enumerate(labels):
            rest = [j for j in range(len(labels)) if j != i]
            others = {name: [column[j] for j in rest] for name, column in table.items()}
            if len(tally.classes) < 2 or labels.count(label) < 2:
                continue
            without = bb.count(others, [labels[j] for j in rest], schema=tally.schema)
            row = {name: [column[i]] for name, column in table.items()}
            for how in ("mle", "map", "mean", "predictive"):
                with quietly():
                    told = bb.estimate(tally, how=how).explain(row, held_out=True, label=label)
                    expected = bb.estimate(without, how=how).explain(row)
                assert (told.winner, told.probability) == (expected.winner, expected.probability)
                assert [e.decibans for e in told.evidence] == [e.decibans for e in expected.evidence]


@pytest.mark.slow
@parametrized(CASES)
def test_labels_of_a_small_table_are_doubted_by_the_other_rows(case: Case) -> None:
    for table, labels, weights in small_tables(case):
        for groups in (None, [i // 2 for i in range(len(labels))]):
            settings = {"features": case.features(["x", "z"]), "weights": weights, "groups": groups}
            with quietly(), suppress(errors.BadSetting):  # where no row can speak of another
                found = bb.suspicious(table, labels, **settings)
                for row in found.rows:
                    assert 0 <= row.self_confidence <= 1 and 0 <= row.probability <= 1 and row.label != row.suggested
                assert "nan" not in str(found)


@parametrized(CASES)
def test_evidence_of_a_small_table_is_weighed_as_other_rows_give_it(case: Case) -> None:
    for table, labels, weights in small_tables(case):
        if weights is not None or len(set(labels)) < 2:
            continue
        tally = bb.count(table, labels, features=case.features(["x", "z"]))
        columns = WeighedColumns.of(tally, 1)
        (batch,) = bb.reading.read(table)
        numbers = np.array([tally.classes.index(label) for label in labels], dtype=np.int32)
        says = columns.leave_each_out(tally, batch, numbers, np.ones(len(labels)), 1)
        assert np.isfinite(says).all()
        for k, feature in enumerate(columns.scored):
            if feature.family.leave_one_out_notes() or not feature.family.can_leave_one_out((feature,), CHOICE, False):
                continue
            for i in range(len(labels)):
                rest = [j for j in range(len(labels)) if j != i]
                others = {name: [column[j] for j in rest] for name, column in table.items()}
                model = bb.estimate(bb.count(others, [labels[j] for j in rest], schema=tally.schema))
                row = {name: column[i] if name == feature.name else None for name, column in table.items()}
                expected = (model.log_joint({name: [value] for name, value in row.items()}) - model.log_prior)[0]
                there = [tally.classes.index(label) for label in model.classes]
                gaps = np.maximum(expected - expected.max(), -MOST_NATS_BEHIND)
                own = says[i, k, there]
                np.testing.assert_allclose(own - own.max(), gaps, rtol=1e-9, atol=1e-9)  # of numbers up to 1e12


# A table of each family -----------------------------------------------------------------------------------------------

N = 40
RNG = np.random.default_rng(0)
LABELS: list[Any] = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.4, 0.1]).tolist()
LABELS[3] = "solo"  # a class of one row
WORDS = [f"w{i}" for i in range(30)]
SAID = [" ".join(RNG.choice(WORDS, RNG.integers(0, 12), p=np.arange(30, 0, -1) / 465)) for _ in range(N)]
SAID[5], SAID[7] = "", "only once here once"
COLUMNS: dict[str, list[Any]] = {
    "letter": RNG.choice(list("pqrstuvwxyz"), N).tolist(),
    "gappy": [None if RNG.random() < 0.2 else x for x in RNG.choice(["u", "v"], N).tolist()],
    "on": RNG.integers(0, 2, N).tolist(),
    "size": RNG.normal(size=N).tolist(),
    "large": [None if RNG.random() < 0.2 else x for x in (RNG.normal(size=N) * 100 + 5).tolist()],
    "seen": RNG.poisson(3, N).tolist(),
    "said": SAID,
}
WEIGHTS: dict[str, list[float] | None] = {
    "none": None,
    "fractional": (RNG.random(N) + 0.01).tolist(),
    "whole": RNG.integers(1, 4, N).astype(float).tolist(),
    "some are zero": [0.0 if i % 7 == 2 else 1.0 + i % 3 for i in range(N)],
    "some are zero, fractional": [0.0 if i % 7 == 2 else 0.5 + i % 3 for i in range(N)],
}
PLAIN: dict[str, tuple[list[str], Any]] = {
    "categorical": (["letter", "gappy"], bb.Categorical()),
    "categorical, missing": (["letter", "gappy"], bb.Categorical(missing="category")),
    "categorical, m": (["letter", "gappy"], bb.Categorical(m=3.0)),
    "categorical, declared": (["gappy"], bb.Categorical(values=["u", "v", "never"])),
    "bernoulli": (["on"], bb.Bernoulli()),
    "bernoulli, beta": (["on"], bb.Bernoulli(alpha=2.0, beta=0.5)),
    "gaussian": (["size", "large"], bb.Gaussian()),
    "gaussian, shared": (["size", "large"], bb.Gaussian(variance="shared")),
    "gaussian, prior": (["size", "large"], bb.Gaussian(prior=bb.NormalInverseGamma())),
    "poisson": (["seen"], bb.Poisson()),
}
TEXTS = [
    bb.Text(),
    bb.Text(model="presence"),
    bb.Text(model="complement"),
    bb.Text(model="bernoulli"),
    bb.Text(damping="log"),
    bb.Text(length=True),
    bb.Text(model="complement", damping="log", length=True),
    bb.Text(model="log_odds"),
    bb.Text(model="log_odds", damping="log", length=True),
    bb.Text(model="log_odds", idf=True, min_count=2),
    bb.Text(model="log_odds", vocabulary=["w1", "w2", "nope"]),
    bb.Text(model="presence", damping="log"),
    bb.Text(min_count=3),
    bb.Text(min_count=1.5, damping="log"),
    bb.Text(min_share=0.1, max_share=0.4),
    bb.Text(model="bernoulli", min_count=2, min_share=0.05),
    bb.Text(model="complement", min_count=4),
    bb.Text(model="complement", norm=True),
    bb.Text(vocabulary=["w1", "w2", "nope"]),
    bb.Text(vocabulary=["w1", "w2", "nope"], model="bernoulli"),
    bb.Text(vocabulary=["w1", "w2", "nope"], model="complement", min_count=2),
    bb.Text(ngrams=(1, 2)),
    bb.Text(unit="characters", ngrams=(2, 3), model="presence"),
    bb.Text(stop_words=["w0", "w1"]),
    bb.Text(idf=True),
    bb.Text(idf=True, model="complement", damping="log"),
    bb.Text(idf=True, model="presence", min_count=2),
    bb.Text(idf=True, length=True, max_share=0.5),
]


def table(names: Sequence[str], family: Any, weights: list[float] | None = None) -> Data:
    return Data({name: COLUMNS[name] for name in names}, dict.fromkeys(names, family), LABELS, weights)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", PLAIN)
def test_every_family_estimate_and_weight(name: str, how: str, weights: str) -> None:
    names, family = PLAIN[name]
    found = assert_left_out(table(names, family, WEIGHTS[weights]), how=how)
    assert found.notes == ()
    assert len(found.classes) == 4 and str(found).startswith(
        "leave-one-out cross-validation of plain naive Bayes: 40 rows, 4 classes"
    )


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("family", TEXTS, ids=str)
def test_every_kind_of_text(family: Text, how: str) -> None:
    for weights in (None, WEIGHTS["whole" if how == "map" else "fractional"]):
        assert assert_left_out(table(["said"], family, weights), how=how).notes == ()


@pytest.mark.parametrize("family", TEXTS, ids=str)
def test_texts_of_weight_zero_are_scored_by_all_others(family: Text) -> None:
    assert_left_out(table(["said"], family, WEIGHTS["some are zero"]))


@pytest.mark.parametrize("largest", [1e-3, 1e-5, 1e-9])
@pytest.mark.parametrize("model", ["multinomial", "presence"])
def test_words_of_one_text_of_small_weight_leave_with_it(model: Any, largest: float) -> None:
    """A weight is rounded when it is counted, and may come back a little larger."""
    rng = np.random.default_rng(5)
    texts = [f"shared unique{i} other{rng.integers(4)}" for i in range(40)]
    weights = (rng.random(40) * largest).tolist()
    assert_left_out(Data({"said": texts}, {"said": bb.Text(model=model)}, ["a", "b"] * 20, weights))


@pytest.mark.parametrize("alpha", [0.01, 0.5, 2.0])
@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive"])
@pytest.mark.parametrize("prior", [None, "uniform", 2.0, [0.1, 0.2, 0.3, 0.4]], ids=str)
def test_smoothing_and_class_priors(how: str, alpha: float, prior: Any) -> None:
    data = table(["letter", "gappy"], bb.Categorical())
    if isinstance(prior, list):  # the row of a class of one has no other: the refitted model knows three classes
        data = Data(data.columns, data.families, ["a", "b", "c", "solo"] * (N // 4))
    assert_left_out(data, how=how, alpha=alpha, class_prior=prior)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_mixed_frame(weighted: bool) -> None:
    data = mixed_frame(60, weights=WEIGHTS["fractional"] * 2 if weighted else None, missing=True)  # type: ignore[operator]
    exact = {
        name: family for name, family in data.families.items() if family.name not in ("histogram", "kernel_density")
    }
    some = Data(
        {name: data.columns[name] for name in exact}, exact, data.labels, None if not weighted else data.weights[:60]
    )  # type: ignore[index]
    assert assert_left_out(some).notes == ()


def test_texts_and_tables_from_a_list_a_frame_and_several_batches() -> None:
    data = mixed_frame(40)
    expected = data.validate(folds="loo")
    frame = pd.DataFrame({**data.columns, "y": data.labels})
    pieces = [frame[a : a + 7] for a in range(0, 40, 7)]
    chunked = pa.concat_tables([pa.Table.from_pandas(piece, preserve_index=False) for piece in pieces])
    for given_rows in (frame, pieces, iter(pieces), chunked):
        found = bb.cross_validate(given_rows, "y", schema=data.schema, folds="loo")
        np.testing.assert_allclose(found.posteriors, expected.posteriors, rtol=0, atol=1e-10)
        assert found.notes == expected.notes
    two = data.validate(folds="loo", threads=2)
    np.testing.assert_array_equal(two.posteriors, expected.posteriors)
    texts = Data({"text": SAID}, {"text": bb.Text()}, LABELS)
    np.testing.assert_allclose(
        bb.cross_validate(SAID, LABELS, folds="loo").posteriors, texts.validate(folds="loo").posteriors, rtol=0, atol=0
    )


# What stays that of all rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family, note",
    [
        (bb.Histogram(), HISTOGRAMS),
        (bb.KernelDensity(), KERNELS),
        (bb.KernelDensity(bandwidth="leave-one-out"), KERNELS),
    ],
    ids=str,
)
def test_what_is_not_recomputed_is_told(family: Any, note: str) -> None:
    found = assert_left_out(table(["size", "large"], family))
    assert found.notes == (f"learned from all rows, the one left out included: {note}",)
    assert str(found).endswith(f"  learned from all rows, the one left out included: {note}")
    assert found.to_dict()["notes"] == list(found.notes)


def test_all_that_is_not_recomputed_is_told_once() -> None:
    data = mixed_frame(30)
    families = {**data.families, "said": bb.Text(), "size": bb.Histogram()}
    found = Data(data.columns, families, data.labels).validate(folds="loo")
    assert found.notes == (f"learned from all rows, the one left out included: {HISTOGRAMS}, {KERNELS}",)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    "kernel, atol", [("normal", 1e-10), ("epanechnikov", 1e-4), ("box", 1e-4), ("triweight", 1e-2)]
)
def test_kernels_of_a_fixed_bandwidth_are_nearly_exact(kernel: str, atol: float, weights: str) -> None:
    """The floor under kernels that end somewhere is that of all rows."""
    data = table(["size", "large"], bb.KernelDensity(kernel, 3.0), WEIGHTS[weights])
    found = assert_left_out(data)
    _, _, expected, _ = refitted(data, one_by_one(data))
    np.testing.assert_allclose(found.posteriors, expected, rtol=0, atol=atol)


def test_bins_of_a_fixed_width_are_exact_inside() -> None:
    """Bins are those that some row has; where every other row's bins are the same, nothing stays behind."""
    x = np.tile(np.arange(6.0) + 0.5, 8)
    labels = RNG.choice(["a", "b"], len(x)).tolist()
    data = Data({"x": x.tolist()}, {"x": bb.Histogram(start=0.0, width=1.0)}, labels)
    found = assert_left_out(data)
    np.testing.assert_allclose(found.posteriors, refitted(data, one_by_one(data))[2], rtol=0, atol=1e-10)


# Where there is no formula --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names, family, how",
    [
        (["letter", "gappy"], bb.Categorical(), "gibbs"),
        (["on"], bb.Bernoulli(), "gibbs"),
        (["said"], bb.Text(), "gibbs"),
        (["said"], bb.Text(), "predictive"),
        (["said"], bb.Text(model="presence", max_words=5), "predictive"),
        (["said"], bb.Text(model="bernoulli"), "mean"),
        (["said"], bb.Text(model="complement"), "mean"),
        (["said"], bb.Text(model="log_odds"), "mean"),
        (["said"], bb.Text(idf=True), "mean"),
        (["said"], bb.Text(min_count=2), "mean"),
        (["said"], bb.Text(max_words=5), "mean"),
        (["said"], bb.Text(model="bernoulli"), "mle"),
        (["said"], bb.Text(model="complement", norm=True), "mean"),
        (["said"], bb.Text(model="bernoulli", max_words=5), "map"),
    ],
    ids=str,
)
def test_without_a_formula_it_is_refitting(names: list[str], family: Any, how: str) -> None:
    data = table(names, family)
    with quietly():
        found = data.validate(folds="loo", how=how, seed=2)
        expected = refitted(data, one_by_one(data), how=how, seed=2)[2]
    if "bernoulli" in str(family):
        # Models are equal bit for bit; a text's words are added in the order of their numbers, another one without a row.
        np.testing.assert_allclose(found.posteriors, expected, rtol=1e-13, atol=0)
    else:
        np.testing.assert_array_equal(found.posteriors, expected)
    assert found.notes == () and found.what == "leave-one-out cross-validation of plain naive Bayes"


def test_more_rows_than_can_be_left_out_one_by_one_raise() -> None:
    n = MOST_FOLDS + 1
    data, labels = {"x": ["u", "v"] * (n // 2) + ["u"]}, ["a", "b"] * (n // 2) + ["a"]
    with pytest.raises(bb.BanburyError, match=r"folds='loo' has no closed formula .* 10,001 rows"):
        bb.cross_validate(data, labels, features="categorical", folds="loo", how="gibbs")
    found = bb.cross_validate(data, labels, features="categorical", folds="loo")
    assert len(found.rows) == n and found.accuracy.value == pytest.approx(1.0)


# Numbers far out ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive"])
@pytest.mark.parametrize("variance", ["class", "shared"])
@pytest.mark.parametrize("weighted", [False, True])
def test_an_outlier_leaves_no_trace_when_it_is_left_out(how: str, variance: str, weighted: bool) -> None:
    rng = np.random.default_rng(5)
    x = [*rng.normal(size=30).tolist(), 1e12, *rng.normal(2.0, 1.0, 30).tolist()]
    labels = ["a"] * 31 + ["b"] * 30
    family = bb.Gaussian() if variance == "class" else bb.Gaussian(variance="shared")
    weights = rng.random(61).tolist() if weighted else None
    data = Data({"x": x}, {"x": family}, labels, weights)
    with quietly():
        found = data.validate(folds="loo", how=how)
        expected = refitted(data, one_by_one(data), how=how)[2]
    np.testing.assert_allclose(found.posteriors, expected, rtol=0, atol=1e-9)
    assert np.isfinite(found.posteriors).all()


def test_a_class_of_two_rows_one_of_them_far_out() -> None:
    data = Data({"x": [0.0, 1e12, 0.5, 1.0, 1.5, 2.0]}, {"x": bb.Gaussian()}, ["a", "a", "b", "b", "b", "b"])
    assert_left_out(data)


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive"])
def test_columns_of_one_value_and_of_next_to_no_variance(how: str) -> None:
    x = [1.0, 1.0, 1.0, 1.0, 5.0, 1.0, 1.0 + 1e-12, 1.0]
    data = Data({"x": x, "w": [3.0] * 8}, dict.fromkeys("xw", bb.Gaussian()), ["a", "b"] * 4)
    assert_left_out(data, how=how)


# Few rows, rows without a label ---------------------------------------------------------------------------------------


def test_rows_without_a_label_are_neither_learned_from_nor_left_out() -> None:
    labels = [None if i % 5 == 0 else label for i, label in enumerate(LABELS)]
    for names, family in ((["letter", "gappy"], bb.Categorical()), (["size"], bb.Gaussian()), (["said"], bb.Text())):
        data = Data({name: COLUMNS[name] for name in names}, dict.fromkeys(names, family), labels)
        found = assert_left_out(data)
        assert found.rows.tolist() == [i for i, label in enumerate(labels) if label is not None]


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive"])
@pytest.mark.parametrize("family", [bb.Categorical(), bb.Gaussian(), bb.Poisson(), bb.Text(), bb.Bernoulli()], ids=str)
def test_every_class_has_one_row(family: Any, how: str) -> None:
    values = {"text": ["ab cd", "cd ef", "ab"], "categorical": ["u", "v", "u"]}.get(family.name, [0, 1, 1])
    assert_left_out(Data({"x": values}, {"x": family}, ["a", "b", "c"]), how=how)


def test_one_class_is_certain() -> None:
    data = Data({"x": ["u", "v", "u"]}, {"x": bb.Categorical()}, ["a"] * 3)
    np.testing.assert_array_equal(assert_left_out(data).posteriors, np.ones((3, 1)))


def test_rows_that_are_impossible_in_every_class_get_the_prior() -> None:
    data = {"x": ["u", "u", "v", "w"], "z": ["p", "q", "q", "p"]}
    labels = ["a", "a", "b", "b"]
    columns = Data(data, dict.fromkeys("xz", bb.Categorical()), labels)
    assert_left_out(columns, how="mle")


# Bags -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [bb.Text(), bb.Text(ngrams=(1, 2)), bb.Text(unit="characters", ngrams=2)], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_bags_are_counters_of_ids(family: Text, threads: int) -> None:
    texts = [*SAID, None, "unheard of words", "w1 unheard w1", "ÜBER über w1"]
    tally = bb.count({"said": SAID}, LABELS, features={"said": family})
    table: _core.Words = by_shape.words(tally)[0].table
    (batch,) = bb.reading.read({"said": texts})
    given_texts = family.kernel_input(batch, tally.schema["said"])
    offsets, ids, times = table.bags(family.tokeniser, given_texts, threads)
    starts, every = table.encode(family.tokeniser, given_texts, threads)
    assert offsets[0] == 0 and len(offsets) == len(texts) + 1
    for i in range(len(texts)):
        expected = Counter(x for x in every[starts[i] : starts[i + 1]].tolist() if x >= 0)
        own = slice(offsets[i], offsets[i + 1])
        assert ids[own].tolist() == sorted(expected)
        assert times[own].tolist() == [expected[x] for x in sorted(expected)]
    if family == bb.Text():
        names = table.words(ids.astype(np.uint32))
        for i, said in enumerate(SAID):
            own = slice(offsets[i], offsets[i + 1])
            assert dict(zip(names[own], times[own].tolist(), strict=True)) == Counter(said.split())


# Defects --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family, weights",
    [
        pytest.param(bb.Categorical(), None),
        pytest.param(bb.KernelDensity(), None),
        pytest.param(bb.Gaussian(), None),
        (bb.Bernoulli(), None),
        (bb.Poisson(), None),
        (bb.Poisson(), [0.5, 0.75, 0.25]),
        (bb.Histogram(), None),
        (bb.Histogram(bins="mdl"), None),
        (bb.Text(), [0.5, 0.75, 0.25]),
    ],
    ids=str,
)
def test_a_column_without_values(family: Any, weights: list[float] | None) -> None:
    assert_left_out(Data({"x": [None, None, None]}, {"x": family}, ["a", "b", "b"], weights))


@pytest.mark.parametrize("how", ["mle", "map", "mean"])
def test_a_class_without_values_in_a_column_of_numbers(how: str) -> None:
    labels = ["a", "a", "a", "b", "b", "c", "c"]
    assert_left_out(Data({"x": [1.0, 2.0, 4.0, 3.0, 5.0, None, None]}, {"x": bb.Gaussian()}, labels), how=how)


@pytest.mark.parametrize("family", [bb.Poisson(), bb.Gaussian(variance="shared")], ids=str)
def test_a_row_of_weight_zero_is_scored_by_its_numbers(family: Any) -> None:
    assert_left_out(Data({"x": [9, 8, 1, 0, 9]}, {"x": family}, ["a", "a", "b", "b", "b"], [1.0, 1.0, 1.0, 1.0, 0.0]))


def test_a_row_of_weight_zero_is_scored_by_its_category() -> None:
    assert_left_out(Data({"x": ["a", "b", None]}, {"x": bb.Categorical()}, ["y", "n", "n"], [1.0, 0.0, 1.0]))


def test_a_row_of_weight_zero_under_kernels() -> None:
    with quietly():
        found = bb.cross_validate(
            {"x": [1.0, 2.0, 9.0]}, ["a", "b", "b"], weights=[1, 1, 0], folds="loo", features={"x": bb.KernelDensity()}
        )
    assert np.isfinite(found.posteriors).all()


def test_a_rate_of_which_rounding_is_left() -> None:
    weights = [2.0, 2.833427008387224, 3.261702975351809]
    assert_left_out(Data({"x": [0, 12, 3]}, {"x": bb.Poisson()}, ["a", "b", "a"], weights), how="mle")


@pytest.mark.parametrize(
    "data, settings",
    [
        (Data({"x": ["u", "a", "a", None]}, {"x": bb.Categorical()}, ["y", "y", "n", "n"]), {"alpha": 0.0}),
    ],
    ids=["categorical"],
)
def test_next_to_no_smoothing_is_as_exact_as_any(data: Data, settings: dict[str, Any]) -> None:
    assert_left_out(data, **settings)


def test_rows_that_are_impossible_in_every_class_are_told_once() -> None:
    data = {"x": ["u", "u", "v", "v"], "z": ["p", "q", "p", "q"]}
    with pytest.warns(bb.BanburyWarning, match="every class is impossible for 4 rows") as told:
        bb.cross_validate(data, list("aabb"), features="categorical", folds="loo", how="mle")
    assert len(told) == 1


@pytest.mark.parametrize(
    "labels, weights", [(["y"], None), (["y", "y"], [1.0, 0.0]), (["y", None], None)], ids=["row", "weight", "label"]
)
def test_one_row_cannot_be_left_out(labels: list[Any], weights: list[float] | None) -> None:
    data = {"x": ["a", "b"][: len(labels)]}
    with pytest.raises(bb.BanburyError):
        bb.cross_validate(data, labels, weights=weights, features="categorical", folds="loo")


def test_groups_are_refused() -> None:
    with pytest.raises(bb.BanburyError, match="groups"):
        bb.cross_validate({"x": ["a", "b"] * 3}, ["y", "n"] * 3, groups=[1] * 6, features="categorical", folds="loo")


@pytest.mark.parametrize("prior", [[0.1, 0.2, 0.3, 0.4], {"a": 0.1, "b": 0.2, "c": 0.3, "solo": 0.4}], ids=str)
def test_given_priors_are_shared_among_the_classes_that_are_left(prior: Any) -> None:
    data = table(["letter", "gappy"], bb.Categorical())
    one, other = data.validate(folds="loo", class_prior=prior), data.validate(folds=list(range(N)), class_prior=prior)
    np.testing.assert_allclose(one.posteriors, other.posteriors, rtol=0, atol=1e-10)


@pytest.mark.parametrize("offset, spread", [(1e15, 4.0), (1e12, 0.01), (1.7e9, 1e-3)])
def test_a_gaussian_far_from_zero_keeps_its_digits(offset, spread):
    rng = np.random.default_rng(0)
    x = offset + rng.normal(0, spread, (40, 1))
    y = list("ab") * 20
    found = bb.cross_validate(x, y, folds="loo").posteriors
    np.testing.assert_allclose(found, bb.cross_validate(x, y, folds=np.arange(40)).posteriors, atol=1e-12)


def test_a_row_that_outweighs_its_class_leaves_the_class():
    data, y, weights = {"k": list("ppqpqq")}, list("aaabbb"), [1e13, 1, 1, 1, 1, 1]
    found = bb.cross_validate(data, y, folds="loo", weights=weights).posteriors
    np.testing.assert_allclose(found, bb.cross_validate(data, y, folds=np.arange(6), weights=weights).posteriors)
