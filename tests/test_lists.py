"""Lists of numbers, one in each row of a column, are one feature: a Gaussian block of shrunk covariance."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import OAS

import banbury as bb
import naive_blocks
from banbury.cli import main
from banbury.families.family import HOWS
from banbury.families.gaussian import shrinkage
from banbury.reading import blocks, read

mpl.use("Agg")

N, D = 80, 100
SHRUNK = bb.Gaussian(covariance="shrunk")


def embeddings(n: int, seed: int, d: int = D) -> dict[str, Any]:
    """Lists that share a few directions, and differ between two classes in others; and a column of numbers beside them."""
    rng = np.random.default_rng(seed)
    kind = np.array(["a", "b"])[np.arange(n) % 2]
    shared = np.random.default_rng(7).standard_normal((8, d))
    e = rng.standard_normal((n, 8)) @ shared + rng.standard_normal((n, d))
    e[kind == "b", : max(d // 5, 2)] += 1.0
    return {"e": e, "x": rng.standard_normal(n), "kind": kind}


def small(n: int = 30) -> dict[str, Any]:
    """Lists of four numbers that a few digits hold."""
    table = embeddings(n, 3, 4)
    return {**table, "e": np.round(table["e"], 3), "x": np.round(table["x"], 3)}


TRAIN, TEST, SMALL = embeddings(N, 0), embeddings(400, 1), small()
MODEL = bb.estimate(bb.count(SMALL, "kind"))
ROW = {"e": [0.5, -1.25, 2.0, 0.125], "x": 0.25}


# Inference and estimation


def test_lists_are_a_block_of_shrunk_covariance() -> None:
    schema = bb.Schema.infer(TRAIN, "kind")
    assert str(schema).splitlines()[1:] == [
        "  e  gaussian(covariance='shrunk')  lists of 100 numbers",
        "  x  gaussian                       floats",
    ]
    assert "lists of 100 numbers, 80 rows that have one" in str(bb.count(TRAIN, "kind"))


def test_rows_fewer_than_numbers_are_learned_from() -> None:
    tally = bb.count(TRAIN, "kind")
    found = (bb.estimate(tally).predict(TEST) == TEST["kind"]).mean()
    naive = bb.count({**{f"e{j}": TRAIN["e"][:, j] for j in range(D)}, "kind": TRAIN["kind"]}, "kind")
    apart = {f"e{j}": TEST["e"][:, j] for j in range(D)}
    alone = (bb.estimate(naive).predict(apart) == TEST["kind"]).mean()
    with pytest.warns(bb.BanburyWarning, match="no inverse"):
        plain = bb.estimate(tally, how="mle")
    assert found > 0.9 > alone + 0.1
    assert found >= (plain.predict(TEST) == TEST["kind"]).mean()


@pytest.mark.parametrize("how", HOWS)
def test_lists_and_the_same_numbers_in_columns_are_one_model(how: Any) -> None:
    columns = {**{f"e{j}": SMALL["e"][:, j] for j in range(4)}, "kind": SMALL["kind"]}
    names = tuple(f"e{j}" for j in range(4))
    apart = bb.estimate(bb.count(columns, "kind", features={names: SHRUNK}), how=how, seed=3)
    lists = bb.estimate(bb.count(SMALL, "kind", features={"x": None}), how=how, seed=3)
    assert lists.log_likelihood(SMALL, "e") == pytest.approx(
        apart.log_likelihood(columns, apart.schema.features[0].name)
    )


@pytest.mark.parametrize("covariance", ["full", "tied", "shrunk"])
def test_lists_take_any_covariance(covariance: Any) -> None:
    model = bb.estimate(bb.count(SMALL, "kind", features={"e": bb.Gaussian(covariance=covariance)}))
    assert (model.predict(SMALL) == SMALL["kind"]).mean() > 0.6


def test_the_share_is_that_of_the_oracle_approximation() -> None:
    """scikit-learn has the formula without its terms in 2/d, which vanish in many columns."""
    x = np.random.default_rng(0).standard_normal((40, 400)) @ np.diag(np.linspace(1, 2, 400))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    r = z.T @ z / 40
    ours = shrinkage(float(np.square(r).sum()), 400, 40.0)
    assert ours == pytest.approx(OAS(assume_centered=True).fit(z).shrinkage_, rel=0.01)


@pytest.mark.parametrize(
    ("squares", "d", "n", "share"), [(1, 1, 9, 1), (2, 2, 9, 1), (3, 2, 0, 1), (4, 2, 9, 4 / 18), (0, 0, 0, 1)]
)
def test_the_share_at_its_ends(squares: float, d: int, n: float, share: float) -> None:
    assert shrinkage(squares, d, n) == pytest.approx(share)


def test_units_have_no_part_in_the_share() -> None:
    units = np.array([1e-6, 1.0, 1e5, 3.0])
    other = bb.estimate(bb.count({**SMALL, "e": SMALL["e"] * units}, "kind"))
    assert other.posterior({**SMALL, "e": SMALL["e"] * units}) == pytest.approx(MODEL.posterior(SMALL))


def test_many_rows_are_hardly_shrunk_and_mle_not_at_all() -> None:
    table = embeddings(4000, 5, 6)
    tally = bb.count(table, "kind", features={"e": SHRUNK, "x": None})
    within = np.cov(
        np.concatenate([table["e"][table["kind"] == c] - table["e"][table["kind"] == c].mean(0) for c in "ab"]).T
    )
    for how, near in (("mean", 0.01), ("mle", 1e-9)):
        mean = table["e"][table["kind"] == "a"].mean(axis=0)
        expected = multivariate_normal(mean, within * 3999 / 4000).logpdf(table["e"])
        found = bb.estimate(tally, how=how).log_likelihood(table, "e")[:, 0]
        assert np.abs(found - expected).mean() < near * 10


# Where lists come from


def sources(folder: Path) -> dict[str, Any]:
    """The same rows, a list of numbers in each, in whatever can hold them."""
    rows = [list(map(float, row)) for row in SMALL["e"]]
    rest = {"x": SMALL["x"].tolist(), "kind": SMALL["kind"].tolist()}
    fixed = pa.array(rows, pa.list_(pa.float64(), 4))
    table = pa.table({"e": fixed, **rest})
    pq.write_table(table, folder / "t.parquet")
    records = [{"e": e, "x": x, "kind": kind} for e, x, kind in zip(rows, *rest.values(), strict=True)]
    (folder / "t.ndjson").write_text("".join(json.dumps(record) + "\n" for record in records))
    objects = np.empty(len(rows), dtype=object)
    objects[:] = [np.array(row) for row in rows]
    return {
        "lists": {"e": rows, **rest},
        "tuples": {"e": list(map(tuple, rows)), **rest},
        "arrays": {"e": list(map(np.array, rows)), **rest},
        "columns in memory order": {"e": np.asfortranarray(SMALL["e"]), **rest},
        "objects": {"e": objects, **rest},
        "records": records,
        "fixed-size lists": table,
        "lists of Arrow": pa.table({"e": pa.array(rows), **rest}),
        "large lists": pa.table({"e": pa.array(rows, pa.large_list(pa.float64())), **rest}),
        "chunks": pa.concat_tables([table.slice(0, 7), table.slice(7)]),
        "pandas": pd.DataFrame({"e": rows, **rest}),
        "pandas, Arrow": table.to_pandas(types_mapper=pd.ArrowDtype),
        "Polars": pl.DataFrame({"e": rows, **rest}),
        "Polars, arrays": pl.DataFrame({"e": pl.Series(rows, dtype=pl.Array(pl.Float64, 4)), **rest}),
        "Parquet": folder / "t.parquet",
        "NDJSON": folder / "t.ndjson",
        "batches": [
            {"e": SMALL["e"][s], "x": SMALL["x"][s], "kind": SMALL["kind"][s]} for s in (slice(20), slice(20, None))
        ],
    }


def test_every_source_counts_the_same(tmp_path: Path) -> None:
    schema = bb.Schema.infer(SMALL, "kind")
    for name, data in sources(tmp_path).items():
        assert bb.count(data, "kind", schema=schema) == bb.count(SMALL, "kind", schema=schema), name
        if name not in ("batches", "chunks"):
            assert bb.Schema.infer(data, "kind") == schema, name
        assert MODEL.posterior(data) == pytest.approx(MODEL.posterior(SMALL), abs=1e-12), name


def test_a_matrix_is_not_copied() -> None:
    [batch] = read(TRAIN)
    assert np.shares_memory(batch.lists("e", D), TRAIN["e"])
    array = pa.FixedSizeListArray.from_arrays(pa.array(TRAIN["e"].ravel()), D)
    [batch] = read(pa.table({"e": array}))
    assert batch.lists("e", D).base is not None and batch.lists("e", D).tolist() == TRAIN["e"].tolist()


GAPS = [[1.0, 2.0], None, [3.0, float("nan")], [5.0, 6.0]]


@pytest.mark.parametrize(
    "column",
    [
        GAPS,
        np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, np.nan], [5.0, 6.0]]),
        np.ma.masked_invalid([[1.0, 2.0], [np.nan, np.nan], [3.0, np.nan], [5.0, 6.0]]),
        pa.array(GAPS, pa.list_(pa.float32(), 2)),
        pa.array([[0, 0], *GAPS], pa.list_(pa.float32(), 2)).slice(1),
        pa.array([[1, 2], None, [3, None], [5, 6]]),
        pa.array([[0, 0, 0], [1, 2], None, [3, None], [5, 6]]).slice(1),
        pd.Series(GAPS),
    ],
    ids=str,
)
def test_a_list_that_lacks_a_number_is_missing(column: Any) -> None:
    [batch] = read({"e": column})
    nan = float("nan")
    assert batch.lists("e", 2) == pytest.approx(np.array([[1, 2], [nan, nan], [nan, nan], [5, 6]]), nan_ok=True)
    assert batch.head("e", 9) == [[1, 2], [5, 6]] and batch.kind("e") == "list"
    assert batch.slice(1, 3).kind("e") == "empty"
    assert batch.take(np.array([3, 1])).lists("e", 2)[0].tolist() == [5, 6]


def test_missing_lists_say_nothing() -> None:
    with_gaps = {"e": [None, [1.0, float("nan"), 3.0, 4.0]], "x": [0.1, 0.1]}
    with pytest.warns(bb.BanburyWarning, match="no column 'e'"):
        without = MODEL.posterior({"x": [0.1, 0.1]})
    assert MODEL.posterior(with_gaps) == pytest.approx(without)
    assert MODEL.posterior({"e": [None, ROW["e"]], "x": [0.1, 0.25]})[1] == pytest.approx(MODEL.posterior([ROW])[0])


@pytest.mark.parametrize("make", [list, pa.array, pd.Series])
def test_a_list_of_another_length_is_named(make: Any) -> None:
    lists = [*SMALL["e"].tolist()[:20], [1.0, 2.0, 3.0], *SMALL["e"].tolist()[21:]]
    with pytest.raises(bb.errors.BadValue, match=r"row 20 of column 'e' is a list of 3 numbers.*have 4"):
        bb.count({**SMALL, "e": make(lists)}, "kind")
    for rows in (lists[20:21], lists[20:22], [None, lists[20]]):
        with pytest.raises(bb.errors.BadValue, match=r"row . of column 'e' is a list of 3 numbers.*have 4"):
            MODEL.predict({"e": make(rows), "x": [0.0] * len(rows)})


def test_what_is_no_list_of_numbers_is_named() -> None:
    for lists in ([3.0], ["a"], [["a", "b", "c", "d"]], [[1.0, 2.0, 3.0, "d"]]):
        with pytest.raises(
            bb.errors.BadValue, match=r"row 0 of column 'e' contains .*must contain a list of 4 numbers"
        ):
            MODEL.predict({"e": lists, "x": [0.0]})
    with pytest.raises(bb.errors.BadValue, match="row 1 of column 'e' is infinite"):
        bb.count({**SMALL, "e": np.where(np.arange(30)[:, None] == 1, np.inf, SMALL["e"])}, "kind")
    with pytest.raises(bb.errors.BadValue, match="row 0 of column 'e' is infinite"):
        MODEL.predict({"e": [[1.0, 2.0, np.inf, 3.0]], "x": [0.0]})
    for family in ("gaussian", "histogram", "kernel_density", "categorical", "text"):
        with pytest.raises(bb.errors.BadValue, match=r"column 'e' contains \[.*… 4|row 0 of column 'e'"):
            bb.count(SMALL, "kind", features={"e": family})


def test_lists_of_any_length_and_of_words_are_left_out() -> None:
    lists = [[1.0] * (1 + i % 5) for i in range(30)]
    schema = bb.Schema.infer({**SMALL, "e": lists, "w": [["a"]] * 30}, "kind")
    assert schema.left_out == {"e": "neither numbers nor words", "w": "neither numbers nor words"}


# What is asked of a feature


def test_tallies_of_lists_add_and_subtract() -> None:
    schema = bb.Schema.infer(SMALL, "kind")
    parts = [{name: column[s] for name, column in SMALL.items()} for s in (slice(11), slice(11, None))]
    a, b = (bb.count(part, "kind", schema=schema) for part in parts)
    assert a + b == bb.count(SMALL, "kind", schema=schema) and (a + b) - b == a
    with pytest.raises(bb.errors.SchemaMismatch):
        a + bb.count({**SMALL, "e": SMALL["e"][:, :3]}, "kind")
    with pytest.raises(bb.errors.SchemaMismatch):
        a.to(bb.Schema.infer({**SMALL, "e": SMALL["e"][:, :3]}, "kind")) + a


def test_files_hold_them(tmp_path: Path) -> None:
    for thing in (MODEL, MODEL.tally):
        bb.save(thing, tmp_path / "t.bb")
        again = bb.load(tmp_path / "t.bb")
        assert getattr(again, "tally", again) == MODEL.tally
    assert bb.load(tmp_path / "t.bb").schema["e"] == MODEL.schema["e"]
    assert pickle.loads(pickle.dumps(MODEL)).posterior(SMALL).tolist() == MODEL.posterior(SMALL).tolist()


@pytest.mark.parametrize("how", ["mean", "predictive"])
def test_leaving_one_out_is_refitting(how: Any) -> None:
    table = small(12)
    found = bb.cross_validate(table, "kind", folds="loo", how=how)
    schema, loss, right = bb.Schema.infer(table, "kind"), [], []
    for row in range(12):
        kept = np.arange(12) != row
        few = bb.count({name: column[kept] for name, column in table.items()}, "kind", schema=schema)
        own = bb.estimate(few, how=how).posterior(
            {name: column[[row]] for name, column in table.items() if name != "kind"}
        )[0]
        loss.append(-np.log(own["ab".index(table["kind"][row])]))
        right.append(own.argmax() == "ab".index(table["kind"][row]))
    assert found.log_loss == pytest.approx(np.mean(loss)) and found.accuracy.value == pytest.approx(np.mean(right))


def test_folds_are_validated() -> None:
    found = bb.cross_validate(TRAIN, "kind", folds=5)
    assert found.accuracy.value > 0.85


def test_a_row_is_explained_by_one_term() -> None:
    explained = MODEL.explain(ROW)
    shown = {e.feature: str(e.value) for e in explained.evidence}
    assert shown == {"e": "[0.5, -1.25, 2, 0.125]", "x": "0.25"}
    values = {e["feature"]: e["value"] for e in json.loads(json.dumps(explained.to_dict()))["evidence"]}
    assert values == ROW
    wide = bb.estimate(bb.count(TRAIN, "kind")).explain({"e": TRAIN["e"][0], "x": 0.25})
    assert f"[{TRAIN['e'][0, 0]:.4g}, {TRAIN['e'][0, 1]:.4g}, … 100 numbers]" in str(wide)


def test_one_row_is_a_mapping_a_record_or_a_table_of_one() -> None:
    one = MODEL.posterior({"e": [ROW["e"]], "x": [ROW["x"]]})
    for row in (ROW, [ROW], {"e": np.array(ROW["e"]), "x": 0.25}, {"e": tuple(ROW["e"]), "x": 0.25}):
        assert MODEL.posterior(row).tolist() == one.tolist()
    only = bb.estimate(bb.count({"e": SMALL["e"], "kind": SMALL["kind"]}, "kind"))
    assert only.posterior([{"e": ROW["e"]}] * 2).shape == (2, 2) and only.posterior({"e": ROW["e"]}).shape == (1, 2)


def test_its_likelihood_is_that_of_the_rows() -> None:
    found = MODEL.likelihood("e", ROW["e"])
    assert list(found.values()) == pytest.approx(np.exp(MODEL.log_likelihood([ROW], "e")[0]))


def test_it_is_sampled_and_tells_bits() -> None:
    drawn = MODEL.sample(2000)
    assert drawn["e"].shape == (2000, 4)
    again = bb.estimate(bb.count(drawn, "kind"))
    assert again.sample(3)["e"].shape == (3, 4)
    told = bb.diagnose(embeddings(300, 2, 4), "kind")
    assert told.columns[0].feature == "e"
    assert MODEL.informative(3).left_aside == ("e",)


def test_pictures_say_that_lists_have_no_axis() -> None:
    for draw in (
        lambda: bb.plots.LikelihoodDisplay.from_model(MODEL, "e"),
        lambda: bb.plots.NomogramDisplay.from_model(MODEL, "a"),
        lambda: bb.plots.DecisionBoundaryDisplay.from_model(MODEL, ("e", "x")),
    ):
        with pytest.raises(bb.errors.BadSetting, match="lists of 4 numbers, which have no axis"):
            draw()
    bb.plots.EvidenceDisplay.from_model(MODEL, ROW)
    bb.plots.LikelihoodDisplay.from_model(MODEL, "x")


def test_a_report_shows_them(tmp_path: Path) -> None:
    bb.report(MODEL, SMALL, "kind", path=tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Gaussian block" in page and ", … 4 numbers]" not in page


def test_density_and_mixture() -> None:
    rows = {"e": SMALL["e"], "x": SMALL["x"]}
    density = bb.Density().fit(rows)
    assert density.log_probability(ROW) == pytest.approx(density.score_samples([ROW])[0])
    assert density.log_probability({"x": 0.25}, given={"e": ROW["e"]}) == pytest.approx(
        density.log_probability({"x": 0.25})
    )
    assert {e.feature for e in density.surprise(ROW).evidence} == {"e", "x"}
    assert density.sample(3)["e"].shape == (3, 4)
    with pytest.raises(bb.errors.BadSetting, match="density"):
        density.log_probability({"e": [ROW["e"], ROW["e"]]})
    assert bb.Mixture(2, seed=0).fit(rows).predict(rows).shape == (30,)


def test_unlabelled_rows_and_drop_in_classes() -> None:
    rows = pd.DataFrame({"e": list(SMALL["e"]), "x": SMALL["x"]})
    classifier = bb.NaiveBayesClassifier().fit(rows, SMALL["kind"])
    assert classifier.predict_proba(rows) == pytest.approx(MODEL.posterior(SMALL))
    some = bb.SemiSupervisedClassifier().fit(rows, np.where(np.arange(30) < 15, SMALL["kind"], None))
    assert some.predict(rows).shape == (30,)


def test_a_network_leaves_them_out() -> None:
    tree = bb.TANClassifier().fit(pd.DataFrame({"e": list(SMALL["e"]), "sky": ["sun", "rain"] * 15}), SMALL["kind"])
    assert tree.network_.left_out == {"e": "lists of 4 numbers, which have no table"}


def test_another_learner_takes_their_numbers() -> None:
    curve = bb.learning_curve(SMALL, "kind", peer="logistic_regression", repeats=2, sizes=[10, 20])
    assert "logistic regression" in str(curve)


def test_lists_that_are_whole_numbers_at_first_stay_lists(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 2000)
    rows = [[i % 7, i % 3] if i < 300 else [i % 7 + 0.5, 1] for i in range(600)]
    rows = [None if i in (5, 400) else row for i, row in enumerate(rows)]
    kinds = ["ab"[i % 2] for i in range(600)]
    lines = (json.dumps({"e": row, "kind": kind}) + "\n" for row, kind in zip(rows, kinds, strict=True))
    (tmp_path / "t.ndjson").write_text("".join(lines))
    schema = bb.Schema.infer({"e": rows, "kind": kinds}, "kind")
    assert bb.count(tmp_path / "t.ndjson", "kind", schema=schema) == bb.count(
        {"e": rows, "kind": kinds}, "kind", schema=schema
    )


def test_numbers_that_are_the_same_in_all_rows_tell_nothing() -> None:
    wider = {**SMALL, "e": np.column_stack([SMALL["e"], np.full(30, 7.0)])}
    assert bb.estimate(bb.count(wider, "kind")).posterior(wider) == pytest.approx(MODEL.posterior(SMALL))


def test_the_twin_agrees() -> None:
    from fractions import Fraction

    feature, sums = MODEL.schema["e"], dict[Any, Any]()
    for value, label in zip(SMALL["e"].tolist(), SMALL["kind"].tolist(), strict=True):
        naive_blocks.add_products(sums, feature, value, label, Fraction(1))
    tally: Any = type("Twin", (), {"sums": {"e": sums}})
    for how in ("mle", "mean", "predictive"):
        found = bb.estimate(MODEL.tally, how=how).log_likelihood([ROW], "e")[0]
        assert found == pytest.approx(
            [naive_blocks.score(tally, feature, ROW["e"], c, how, 1.0) for c in "ab"], abs=1e-9
        )


@pytest.mark.parametrize("ending", ["parquet", "ndjson"])
def test_the_command_line_reads_them(ending: str, tmp_path: Path, capsys: Any) -> None:
    sources(tmp_path)
    table, model = tmp_path / f"t.{ending}", tmp_path / "m.bb"
    assert main(["fit", str(table), "--target", "kind", "--output", str(model)]) == 0
    assert "lists of 4 numbers" in capsys.readouterr().out
    assert main(["predict", str(model), str(table)]) == 0
    answers = [json.loads(line)["class"] for line in capsys.readouterr().out.splitlines()]
    assert answers == bb.load(model).predict(table).tolist()
    assert main(["explain", str(model), str(table), "--row", "1"]) == 0
    evidence = {each["feature"]: each["value"] for each in json.loads(capsys.readouterr().out)["evidence"]}
    assert evidence == {"e": SMALL["e"][0].tolist(), "x": SMALL["x"][0]}


def test_no_warning_is_given() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bb.estimate(bb.count(TRAIN, "kind"), how="predictive").predict(TEST)
