"""SQL in real databases, DuckDB and SQLite here and PostgreSQL as a server: posteriors and classes are those of the model."""

from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from benchmarks.datasets import reuters
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import banbury as bb
import saved_models
from evidence_reader import posterior
from test_evidence_table import EXTREME, KINDS, extreme, model_of_rare_values

Ask = Callable[[str, Any, str], list[tuple[Any, ...]]]  # a script, the rows and a query
WARD = {"ward": ["a", "a", "b", "b"], "kind": ["x", "x", "y", "y"]}


def ask_duckdb(script: str, rows: Any, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as base:
        base.register("frame", rows)
        base.execute('CREATE TABLE "the rows" AS SELECT * FROM frame')
        base.execute(script)
        return base.execute(query).fetchall()


def ask_sqlite(script: str, rows: Any, query: str) -> list[tuple[Any, ...]]:
    base = sqlite3.connect(":memory:")
    rows.to_sql("the rows", base, index=False)
    base.executescript(script)
    answers = base.execute(query).fetchall()
    base.close()
    return answers


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    """A connection to a server that lives as long as the tests of this module."""
    found = [*Path("/usr/lib/postgresql").glob("*/bin"), *map(Path, os.environ["PATH"].split(os.pathsep))]
    home = next((folder for folder in found if (folder / "initdb").exists() and (folder / "postgres").exists()), None)
    if home is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    folder = Path(tempfile.mkdtemp(prefix="banbury-"))  # its socket's path must be short, and other users must reach it
    user: dict[str, Any] = {}
    if os.getuid() == 0:  # the server refuses to be run by root
        nobody = next((name for name in ("postgres", "nobody") if name in {u.pw_name for u in pwd.getpwall()}), None)
        user = {"user": nobody}
        shutil.chown(folder, nobody)
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **user}
    subprocess.run(
        [home / "initdb", "-D", folder / "data", "-U", "tester", "-E", "UTF8", "--locale=C.UTF-8"], check=True, **quiet
    )
    command = [home / "postgres", "-D", folder / "data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    server = subprocess.Popen(command, **quiet)
    try:
        for _ in range(6_000):
            try:
                connection = psycopg.connect(host=str(folder), user="tester", dbname="postgres", autocommit=True)
                break
            except psycopg.OperationalError:
                time.sleep(0.1)
        with connection:
            yield connection
    finally:
        server.terminate()
        server.wait(600)
        shutil.rmtree(folder)


TYPES = {"i": "bigint", "f": "double precision", "b": "boolean", "O": "text"}


def is_flags(column: pd.Series) -> bool:
    """Whether a column has booleans, some of which may be missing."""
    return column.notna().any() and column.dropna().map(lambda value: isinstance(value, bool | np.bool_)).all()


def ask_postgres(connection: Any) -> Ask:
    def ask(script: str, rows: Any, query: str) -> list[tuple[Any, ...]]:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        named = {name: '"' + name.replace('"', '""') + '"' for name in rows.columns}
        kinds = {name: "boolean" if is_flags(rows[name]) else TYPES[rows[name].dtype.kind] for name in rows.columns}
        connection.execute(f'CREATE TABLE "the rows" ({", ".join(f"{named[n]} {kinds[n]}" for n in rows.columns)})')
        with connection.cursor().copy('COPY "the rows" FROM STDIN') as copy:
            for row in rows.astype(object).where(rows.notna(), None).itertuples(index=False):
                copy.write_row(row)
        connection.execute(script)
        return connection.execute(query).fetchall()

    return ask


def compare(model: Any, rows: pd.DataFrame, dialect: str, ask: Ask, folder: Path) -> None:
    """Every posterior of the rows is that of the model to 1e-9, and every class is equal."""
    path = folder / "score.sql"
    path.unlink(missing_ok=True)
    bb.export(model, path, dialect=dialect, table="the rows", key="row key")
    script = path.read_text("utf-8")
    keyed = rows.reset_index(drop=True).assign(**{"row key": np.arange(len(rows))})
    answers = ask(script, keyed, "SELECT * FROM banbury_posterior")
    model = getattr(model, "model_", model)
    wanted = model.posterior(rows)
    place = {str(name): k for k, name in enumerate(model._names)}
    posterior, chosen = np.full(wanted.shape, np.nan), np.zeros(wanted.shape, dtype=np.bool_)
    for key, name, share, _, is_answer in answers:
        posterior[key, place[name]] = share
        chosen[key, place[name]] = is_answer
    assert np.abs(posterior - wanted).max() <= 1e-9
    if isinstance(model, bb.LabelModel):
        assert (chosen == model.flags(wanted)).mean() > 1 - 1e-6
    else:
        assert [model._names[k] for k in chosen.argmax(axis=1)] == list(model.predict(rows))


def frame(columns: dict[str, Any]) -> pd.DataFrame:
    """Columns with the types that a database gives them: integers that miss some are reals."""
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=object if any(isinstance(v, str) for v in values) else None)
            for name, values in columns.items()
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_in_duckdb(kind: str, tmp_path: Path) -> None:
    compare_kind(kind, "duckdb", ask_duckdb, tmp_path)


@pytest.mark.parametrize(
    "kind", ["quantile tree", "poisson", "gamma", "labels by f1, of two columns", "GaussianNB", "MultinomialNB"]
)
def test_tables_in_sqlite(kind: str, tmp_path: Path) -> None:
    compare_kind(kind, "sqlite", ask_sqlite, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_in_postgres(kind: str, postgres: Any, tmp_path: Path) -> None:
    compare_kind(kind, "postgres", ask_postgres(postgres), tmp_path)


def compare_kind(kind: str, dialect: str, ask: Ask, folder: Path) -> None:
    table, classes = saved_models.draw_table(150, 3), saved_models.draw_classes(150, 3, 3)
    model = saved_models.make(kind, table, classes)
    columns = model.schema.columns
    if set(columns) <= set(table):
        counted = {name: table[name][:12] for name in columns}
        counted = {"number": [abs(x) for x in counted["number"]]} if columns == ("number",) else counted
        counted = {name: [None, *values[1:]] for name, values in counted.items()}
    else:
        counted = {name: saved_models.as_counts(table)[:12, k].tolist() for k, name in enumerate(columns)}
    compare(model, frame(counted), dialect, ask, folder)


# Public data ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> tuple[str, Ask]:
    plain: dict[str, Ask] = {"duckdb": ask_duckdb, "sqlite": ask_sqlite}
    return request.param, plain.get(request.param) or ask_postgres(request.getfixturevalue("postgres"))


@pytest.mark.parametrize("kind", EXTREME)
def test_numbers_that_are_extreme(kind: str, database: tuple[str, Ask], tmp_path: Path) -> None:
    model, rows = extreme(kind)
    compare(model, frame(rows), *database, tmp_path)


@pytest.mark.slow
def test_adult_weighed_with_pairs(adult_train: Any, adult_test: Any, database: tuple[str, Ask], tmp_path: Path) -> None:
    model = bb.EvidenceClassifier().fit(adult_train.drop(columns="income"), adult_train["income"])
    assert model.model_.evidence_table().pairs.num_rows
    compare(model, adult_test.drop(columns="income"), *database, tmp_path)


def test_car(car: Any, database: tuple[str, Ask], tmp_path: Path) -> None:
    model = bb.NaiveBayesClassifier().fit(car.drop(columns="class"), car["class"])
    compare(model, car.drop(columns="class"), *database, tmp_path)


def test_auto_mpg_with_missing_values(auto_mpg: Any, database: tuple[str, Ask], tmp_path: Path) -> None:
    rows = auto_mpg.drop(columns=["origin", "name"], errors="ignore")
    for model in (bb.NaiveBayesClassifier(), bb.EvidenceClassifier(weigh=True)):
        compare(model.fit(rows, auto_mpg["origin"].astype(str)), rows, *database, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["duckdb", "postgres"], indirect=True)
def test_sms_beside_numbers(unpacked: Callable[[str], Path], database: tuple[str, Ask], tmp_path: Path) -> None:
    (path,) = (path for path in unpacked("sms-spam").rglob("*") if path.is_file() and "read" not in path.name.lower())
    lines = [line.partition("\t") for line in path.read_text("utf-8").splitlines()]
    texts = [text for _, _, text in lines]
    rows = pd.DataFrame(
        {"text": texts, "length": [len(text) for text in texts], "digits": [sum(map(str.isdigit, t)) for t in texts]}
    )
    model = bb.EvidenceClassifier(weigh=True).fit(rows[:4000], [label for label, _, _ in lines][:4000])
    compare(model, rows[4000:], *database, tmp_path)


@pytest.mark.slow
def test_adult_is_scored_at_the_speed_of_a_database(adult_train: Any, adult_test: Any, tmp_path: Path) -> None:
    model = bb.EvidenceClassifier().fit(adult_train.drop(columns="income"), adult_train["income"])
    bb.export(model, tmp_path / "score.sql", dialect="duckdb", table="people", key="id")
    rows = adult_test.drop(columns="income")
    seconds = {}
    with duckdb.connect(config={"threads": 2}) as base:
        base.register("frame", rows)
        for n in (len(rows), 1_000_000):
            copies = f"SELECT row_number() OVER () AS id, frame.* FROM frame CROSS JOIN range({n // len(rows) + 1}) LIMIT {n}"
            base.execute(f"CREATE OR REPLACE TABLE people AS {copies}")
            if n == len(rows):
                base.execute((tmp_path / "score.sql").read_text("utf-8"))
            start = time.process_time()
            assert base.execute("SELECT COUNT(posterior) FROM banbury_answer").fetchall() == [(n,)]
            seconds[n] = time.process_time() - start
    assert seconds[len(rows)] <= 2.0  # of two threads together: one second of a machine with two cores
    assert seconds[1_000_000] <= 40.0  # twenty seconds there


@pytest.mark.slow
@pytest.mark.parametrize("database", ["duckdb", "postgres"], indirect=True)
def test_topics_of_reuters(unpacked: Callable[[str], Path], database: tuple[str, Ask], tmp_path: Path) -> None:
    unpacked("reuters21578")  # or the test is skipped
    train, test = reuters()
    model = bb.MultiLabelClassifier().fit(train.texts[:2_000], train.topics[:2_000])
    assert model.weighing_ is not None
    compare(model, pd.DataFrame({"text": test.texts[:500]}), *database, tmp_path)


# What a script is given -----------------------------------------------------------------------------------------------


def test_reasons_are_those_of_explain(tmp_path: Path) -> None:
    weather = bb.datasets.play_tennis()
    model = bb.estimate(bb.count(weather, target="play"))
    bb.export(model, tmp_path / "score.sql", dialect="duckdb", table="the rows", reasons=True)
    rows = pd.DataFrame({name: values for name, values in weather.items() if name != "play"})
    query = 'SELECT evidence, value, decibans FROM banbury_reasons WHERE "row" = 3 ORDER BY place'
    answers = ask_duckdb((tmp_path / "score.sql").read_text(), rows, query)
    evidence = model.explain({name: values[2] for name, values in weather.items() if name != "play"}).evidence
    assert [(name, value) for name, value, _ in answers] == [(e.feature, e.value) for e in evidence[:3]]
    assert [weight for *_, weight in answers] == pytest.approx([e.decibans for e in evidence[:3]])


def test_names_that_are_sql_are_names(tmp_path: Path) -> None:
    odd = 'a"b`c\'); DROP TABLE "the rows"; -- 😀 {m} {0} %s\\'
    names = ["'); DELETE FROM banbury_prior; -- {prior}", '𝒳"`\\', "", "\0null"]
    rows = {odd: [name for name in names for _ in range(5)], "number": list(np.linspace(0.0, 1.0, 20))}
    kinds = [names[k % 3] for k in range(20)]
    model = bb.estimate(bb.count(rows, kinds, features={odd: "categorical", "number": "histogram"}))
    compare(model, pd.DataFrame(rows), "duckdb", ask_duckdb, tmp_path)
    fewer = pd.DataFrame(rows)[:15]
    compare(model, fewer, "sqlite", ask_sqlite, tmp_path)


@pytest.mark.slow
def test_many_values_and_long_ones(tmp_path: Path) -> None:
    values = [f"value {k}" for k in range(100_000)] + ["x" * 1_000_000]
    model = bb.estimate(
        bb.count({"v": values}, [f"c{k % 2}" for k in range(len(values))], features={"v": "categorical"})
    )
    compare(model, pd.DataFrame({"v": [*values[:50], values[-1], None, "never seen"]}), "duckdb", ask_duckdb, tmp_path)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    model = bb.estimate(bb.count(WARD, target="kind"))
    with pytest.raises(bb.BanburyError, match="dialect"):
        bb.export(model, tmp_path / "score.sql", dialect="oracle")
    with pytest.raises(bb.BanburyError, match="dialect"):
        bb.export(model, tmp_path / "score.sql")
    with pytest.raises(bb.BanburyError, match="key"):
        bb.export(model, tmp_path / "score.sql", dialect="spark")
    with pytest.raises(bb.BanburyError, match="ending"):
        bb.export(model, tmp_path / "score.txt")
    with pytest.raises(bb.BanburyError, match="dialect"):
        bb.export(model, tmp_path / "ask.html", dialect="duckdb")
    with pytest.raises(bb.BanburyError, match="Tally"):
        bb.export(model.tally, tmp_path / "score.sql", dialect="duckdb")
    with pytest.raises(bb.BanburyError, match=r"cannot write .*Choose a file in an existing, writable folder"):
        bb.export(model, tmp_path / "nowhere" / "ask.html")
    bb.export(model, tmp_path / "score.sql", dialect="duckdb")
    with pytest.raises(bb.BanburyError, match="a new file"):
        bb.export(model, tmp_path / "score.sql", dialect="duckdb")
    texts = bb.estimate(bb.count({"t": ["a good one", "bad"]}, ["x", "y"], features={"t": bb.Text()}))
    with pytest.raises(bb.BanburyError, match="sqlite has no regular expressions"):
        bb.export(texts, tmp_path / "texts.sql", dialect="sqlite")


@pytest.mark.slow
def test_entries_that_are_left_out_say_nothing(tmp_path: Path) -> None:
    model, rows = model_of_rare_values()
    bb.export(model, tmp_path / "score.sql", dialect="duckdb", table="the rows", key="row key", min_rows=5)
    script = (tmp_path / "score.sql").read_text("utf-8")
    keyed = pd.DataFrame(rows).assign(**{"row key": range(4)})
    query = 'SELECT posterior FROM banbury_posterior ORDER BY "row key", class'
    answers = ask_duckdb(script, keyed, query)
    expected = posterior(model.evidence_table(min_rows=5), rows)
    assert np.abs(np.ravel(answers) - expected.ravel()).max() <= 1e-9
    assert np.abs(expected - model.posterior(rows)).max() > 0.01


@pytest.mark.slow
def test_the_last_step_of_a_pipeline_is_written(tmp_path: Path) -> None:
    pipeline = make_pipeline(FunctionTransformer(), bb.GaussianNB())
    numbers = np.arange(20.0).reshape(10, 2)
    pipeline.fit(numbers, [0, 1] * 5)
    bb.export(pipeline, tmp_path / "score.sql", dialect="duckdb")
    assert "banbury_answer" in (tmp_path / "score.sql").read_text()


def refused(model: Any, path: Path, match: str, **settings: Any) -> None:
    with pytest.raises(bb.BanburyError, match=match):
        bb.export(model, path, **settings)
    assert not path.exists()


def test_names_that_a_database_cannot_distinguish_are_refused(tmp_path: Path) -> None:
    script = tmp_path / "score.sql"
    classes = ["x", "y"] * 5
    case = bb.estimate(bb.count({"Age": [1.0, 2.0] * 5, "age": ["a", "b"] * 5}, classes))
    for dialect in ("duckdb", "sqlite", "spark"):
        refused(case, script, "columns", dialect=dialect, key="id")
    bb.export(case, tmp_path / "case.sql", dialect="postgres")
    long = bb.estimate(bb.count({"a" * 63 + "1": ["a", "b"] * 5, "a" * 63 + "2": ["a", "b"] * 5}, classes))
    refused(long, script, "columns", dialect="postgres")
    bb.export(long, tmp_path / "long.sql", dialect="duckdb")
    for name in ("", "a\0"):
        refused(bb.estimate(bb.count({name: ["a", "b"] * 5}, classes)), script, "columns", dialect="duckdb")
    model = bb.estimate(bb.count(WARD, target="kind"))
    for key in ("class", "POSTERIOR", "is_answer", ""):
        refused(model, script, "key", dialect="duckdb", key=key)
    for settings in ({"table": "Banbury_Prior"}, {"table": "banbury_answer"}, {"name": "\0"}, {"table": 3}):
        refused(model, script, "table", dialect="duckdb", **settings)
    refused(model, script, "table", dialect="postgres", name="n" * 63)


def test_texts_that_a_database_cannot_hold(tmp_path: Path) -> None:
    zero = bb.estimate(bb.count({"v": ["a", "b\0"] * 5}, ["x", "\0y"] * 5))
    refused(zero, tmp_path / "score.sql", "classes", dialect="postgres")
    compare(zero, pd.DataFrame({"v": ["a", "b\0", None]}), "duckdb", ask_duckdb, tmp_path)


def test_infinite_numbers_are_missing(database: tuple[str, Ask], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = {"x": rng.normal(size=60).tolist(), "y": rng.normal(size=60).tolist()}
    model = bb.estimate(bb.count(rows, ["a", "b", "c"] * 20, features={"x": "gaussian", "y": "histogram"}))
    bb.export(model, tmp_path / "score.sql", dialect=database[0], table="the rows", key="id")
    odd = [np.inf, -np.inf, *([np.nan] if database[0] != "sqlite" else [])]
    asked = pd.DataFrame({"id": range(len(odd)), "x": odd, "y": odd})
    script = (tmp_path / "score.sql").read_text("utf-8")
    answers = database[1](script, asked, "SELECT posterior FROM banbury_posterior ORDER BY id, class")
    expected = model.posterior({"x": [None] * len(odd), "y": [None] * len(odd)})
    assert np.abs(np.ravel(answers) - expected.ravel()).max() <= 1e-9


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_blocks_of_occurrences(threshold: float, database: tuple[str, Ask], tmp_path: Path) -> None:
    counts = np.random.default_rng(1).poisson(1.0, (40, 5)).astype(np.float64)
    classifier = bb.BernoulliNB(binarize=threshold).fit(counts, [0, 1, 1, 0] * 10)
    rows = pd.DataFrame(counts[:9] - [[0.5], [0.0], [2.0]] * 3, columns=list(classifier.model_.schema.columns))
    compare(classifier, rows, *database, tmp_path)


def test_a_block_of_many_columns_in_sqlite(tmp_path: Path) -> None:
    counts = np.random.default_rng(1).poisson(1.0, (20, 900)).astype(np.float64)
    classifier = bb.MultinomialNB().fit(counts, [0, 1] * 10)
    rows = pd.DataFrame(counts[:3], columns=list(classifier.model_.schema.columns))
    compare(classifier, rows, "sqlite", ask_sqlite, tmp_path)


@pytest.mark.slow
def test_many_classes_and_columns(database: tuple[str, Ask], tmp_path: Path) -> None:
    classes = [f"class {k}" for k in range(600)]
    rows = {f"v{j}": [f"{(k + j) % 3}" for k in range(600)] for j in range(42)}
    model = bb.estimate(bb.count(rows, classes))
    compare(model, pd.DataFrame(rows)[:4], *database, tmp_path)


@pytest.mark.slow
def test_hundreds_of_columns(database: tuple[str, Ask], tmp_path: Path) -> None:
    rows = {f"v{j}": [f"{(k * (j + 1)) % 3}" for k in range(12)] for j in range(500)}
    model = bb.estimate(bb.count(rows, ["a", "b", "c"] * 4, features="categorical"))
    compare(model, pd.DataFrame(rows)[:3], *database, tmp_path)
