"""Small files that would take much memory or time: they are read within bounds, or refused by name."""

import csv
import decimal
import gzip
import io
import json
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banbury as bb
from banbury import errors
from banbury.reading import Widened, blocks, delimited, read


def peak(code, *arguments):
    """The memory in MB that a process takes which runs the code, and the lines that it prints."""
    own = "(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM:'))"
    said = f"{code}\nprint(int(next({own})) // 1024)"
    done = subprocess.run([sys.executable, "-c", said, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, size = done.stdout.splitlines()
    return int(size), lines


only_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")


# Many columns.


@pytest.mark.slow
@only_linux
def test_a_hundred_thousand_columns_are_counted_in_little_memory(tmp_path):
    n, path = 100_000, tmp_path / "wide.csv"
    rows = (",".join(str(i * k % 7) for i in range(n)) for k in (1, 2))
    path.write_text("\n".join([",".join(f"c{i}" for i in range(n)), *rows]) + "\n")
    code = "import sys, banbury as bb\nprint(bb.count(sys.argv[1], 'c1').n_rows)"
    size, lines = peak(code, path)
    assert lines == ["2"] and size < 300  # 27 KB a column, as Arrow alone would take, were 2,700


@only_linux
def test_a_megabyte_of_commas_is_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "commas.csv"
    path.write_text(("," * 1_000_000 + "\n") * 2)
    code = """import sys, banbury as bb
try:
    bb.count(sys.argv[1], 'a')
except bb.errors.BadFile as error:
    print(error)"""
    size, [said] = peak(code, path)
    assert "1,000,001 columns" in said and "200,000" in said and size < 150


def test_a_header_longer_than_a_megabyte_is_read_whole(tmp_path):
    path, names = tmp_path / "long.csv", [f"n{i:0>20}" for i in range(60_000)]
    path.write_text("\n".join([",".join(names), ",".join(["1"] * len(names))]))
    [batch] = read(path)
    assert batch.names == tuple(names) and batch.n_rows == 1 and batch.head(names[-1], 1) == [1]


CELLS = st.sampled_from(
    ["", "1", "-2.5", "NA", " NA ", " 7", "true", " False", "2024-03-01", "a b", 'x"y', "x,y", "é", "\n"]
)


def numbers_of(batch):
    """The numbers of a batch, first in order and then in another; and of its cut and of rows taken from it."""
    names = [name for name in batch.names if batch.kind(name) in ("boolean", "integer", "float")]
    mixed = names[1::2] + names[::2]
    parts = [batch, batch.slice(batch.n_rows // 2, batch.n_rows), batch.take(np.array([0, batch.n_rows - 1]))]
    return [
        np.hstack([x.reshape(part.n_rows, -1) for x in part.numbers(few)]).tolist() if few else []
        for part in parts
        for few in (names, mixed)
    ]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_columns_are_the_same_however_few_are_parsed_at_a_time(tmp_path_factory, data):
    n_columns, n_rows = data.draw(st.integers(4, 9)), data.draw(st.integers(1, 6))
    text, end = io.StringIO(newline=""), data.draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(
        text, lineterminator=end, quoting=data.draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    )
    writer.writerow([f"c{j}" for j in range(n_columns)])
    for _ in range(n_rows):
        row = data.draw(st.lists(CELLS, min_size=n_columns, max_size=n_columns))
        stray = data.draw(st.integers(0, 9)) == 0
        text.write(",".join(['5"'] * n_columns) + end) if stray else writer.writerow(row)
        text.write(end * data.draw(st.integers(0, 1)))
    path = tmp_path_factory.mktemp("few") / "t.csv"
    content = text.getvalue()
    path.write_bytes((content if data.draw(st.booleans()) else content.rstrip(end)).encode())
    found = []
    for together in (1000, data.draw(st.integers(3, 4))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delimited, "COLUMNS_TOGETHER", together)
            try:
                batches = list(read(path))
                columns = [(b.kind(name), list(b.column(name).cells())) for b in batches for name in b.names]
                found.append([columns, *map(numbers_of, batches)])
            except (errors.BanburyError, Widened) as error:
                found.append(str(error))
    assert repr(found[0]) == repr(found[1])


def test_a_wide_file_widens_columns_and_names_ragged_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "COLUMNS_TOGETHER", 3)
    names = [f"c{j}" for j in range(10)]
    path = tmp_path / "t.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" * 10) + "\n" + ",".join("2" * 9) + "\n")
    with pytest.raises(errors.BadFile, match="line 3: 9 fields but the header has 10"):
        list(read(path))


# Many keys.


def test_lines_of_many_keys_take_a_time_that_is_linear_in_them(tmp_path):
    path, took = tmp_path / "t.ndjson", {}
    for n in (2_000, 16_000):
        path.write_text("".join(json.dumps({f"k{i}": i * r for i in range(n)}) + "\n" for r in range(2)))
        start = time.process_time()
        [batch] = read(path)
        took[n] = time.process_time() - start
        assert len(batch.names) == n and batch.head(f"k{n - 1}", 2) == [0, n - 1]
    assert took[16_000] < 8 * 4 * took[2_000] + 10.0


@pytest.mark.parametrize("name", ["t.ndjson", "t.csv"])
def test_columns_that_widen_together_begin_reading_again_once(tmp_path, monkeypatch, name):
    n = 40
    monkeypatch.setattr(blocks, "BLOCK", 1024)
    first, later = (1, 2.5) if name == "t.csv" else (None, 2.5)
    rows = [{f"k{i}": first for i in range(n)}] * 50 + [{f"k{i}": later for i in range(n)}] * 50
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / name).write_text("\n".join(lines if name == "t.csv" else map(json.dumps, rows)) + "\n")
    source, n_again = read(tmp_path / name), 0
    while True:
        try:
            found = [x for batch in source for x in batch.column("k39").numbers().tolist()]
            break
        except Widened:
            n_again += 1
    assert n_again == 1 and found[50:] == [2.5] * 50


@only_linux
@pytest.mark.parametrize(
    "content",
    [
        "".join(f'{{"k{i}": 1}}\n' for i in range(20_000)),
        "{" + ", ".join(f'"k{i}": 1' for i in range(300_000)) + "}\n",
        "{" + ", ".join(f'"k{i}": 1' for i in range(50_000)) + "}\n" + '{"k1": 1}\n' * 10_000,
    ],
    ids=["a key for each line", "too many keys", "many keys in one line of many"],
)
def test_lines_that_would_make_a_table_of_too_many_cells_are_refused(tmp_path, content):
    path = tmp_path / "t.ndjson"
    path.write_text(content)
    code = """import sys, banbury as bb
try:
    bb.count(sys.argv[1], 'k1')
except bb.errors.BadFile as error:
    print(error)"""
    size, [said] = peak(code, path)
    assert "too wide a table" in said and str(path) in said and size < 200


# Archives of nothing.


def zeros(path, begin=b"", n_megabytes=300, line=b"a" * (1 << 20)):
    """A small file that unpacks to a large one."""
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(n_megabytes):
            file.write(line)


@only_linux
@pytest.mark.parametrize(
    ("name", "begin"),
    [("big.txt.gz", b""), ("big.eml.gz", b"Subject: x\n\n"), ("big.html.gz", b"<p>"), ("big.mbox.gz", b"")],
)
def test_a_bomb_in_a_folder_of_documents_is_named_and_skipped(tmp_path, name, begin):
    for label in ("good", "bad"):
        (tmp_path / label).mkdir()
        (tmp_path / label / "one.txt").write_text(f"a {label} text")
    zeros(tmp_path / "bad" / name, begin)
    code = """import sys, warnings, banbury as bb
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(bb.count(sys.argv[1]).n_rows)
print(*(str(each.message) for each in told))"""
    size, [n_rows, said] = peak(code, tmp_path)
    assert name in said and size < 600
    most = "unpacks to more than" if "mbox" in name else "more than 64 MB"  # a mailbox is read message by message
    assert n_rows == "2" and most in said and "skipped" in said


@only_linux
@pytest.mark.parametrize(("name", "begin"), [("t.csv.gz", b"a,b\n1,"), ("u.csv.gz", b""), ("t.ndjson.gz", b'{"a": "')])
def test_a_bomb_of_one_line_is_refused_by_name(tmp_path, name, begin):
    zeros(tmp_path / name, begin)
    code = """import sys, banbury as bb
try:
    bb.count(sys.argv[1], 'a')
except bb.errors.BadFile as error:
    print(error)"""
    size, [said] = peak(code, tmp_path / name)
    assert name in said and "no line break in 64 MB" in said and size < 500


# Columns of rare types, and damaged Parquet.

NUMBERS = [1.5, 2.0, None, 4.0, 1.5, 6.0]


def uncommon():
    """Columns of rare types, each with the cells that it must be read as; None: it may be refused, by name."""
    n, c = len(NUMBERS), pa.array(NUMBERS)
    words, whole = ["a", "b", None, "a", "long " * 9, "b"], [3, 3, 3, 4, 4, 4]
    runs = pa.RunEndEncodedArray.from_arrays
    coded = pa.DictionaryArray.from_arrays
    lists = [[1.0, 2.0], [3.0, 4.0], None, [5.0, 6.0], [1.0, 2.0], [7.0, 8.0]]
    decimals = [None if x is None else decimal.Decimal(x) for x in NUMBERS]
    at = pa.array([0, 1, None, 0, 1, 1], pa.int8())
    yield "runs of numbers", runs(pa.array([3, 6], pa.int32()), pa.array([3, 4])), whole
    yield "runs of texts", runs(pa.array([3, 6], pa.int16()), pa.array(["x", None])), ["x"] * 3 + [None] * 3
    yield "runs of a sliced array", runs(pa.array([1, 4, 9], pa.int64()), pa.array([9, 3, 4]))[1:7], whole
    yield (
        "a dictionary of lists",
        coded(at, pa.array([[1.0, 2.0], [3.0, 4.0]])),
        [lists[0], lists[1], None, *lists[:1], *[lists[1]] * 2],
    )
    yield (
        "a dictionary of decimals",
        coded(at, pa.array([decimal.Decimal("1.5"), decimal.Decimal(2)])),
        [1.5, 2, None, 1.5, 2, 2],
    )
    yield "a dictionary of mappings", coded(at, pa.array([{"a": 1}, {"a": 2}])), None
    yield "a dictionary of nothing", coded(at, pa.nulls(2)), [None] * n
    yield "views of lists", pa.array(lists, pa.list_view(pa.float64())), lists
    yield "large views of lists", pa.array(lists, pa.large_list_view(pa.float64()))[:4], lists[:4]
    yield "views of texts", pa.array(words, pa.string_view()), words
    yield "views of bytes", pa.array([b"a", b"b"] * 3, pa.binary_view()), None
    yield "decimals of 256 bits", pa.array(decimals, pa.decimal256(60, 4)), NUMBERS
    yield "half precision", c.cast(pa.float16()), NUMBERS
    yield "nothing", pa.nulls(n), [None] * n
    yield (
        "an extension of a tensor",
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.float32(), [2]), pa.array([[1.0, 2.0]] * n, pa.list_(pa.float32(), 2))
        ),
        [[1.0, 2.0]] * n,
    )
    yield (
        "an extension of bytes",
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16] * n, pa.binary(16))),
        None,
    )
    yield "an extension of texts", pa.ExtensionArray.from_storage(pa.json_(), pa.array(["1", "2"] * 3)), ["1", "2"] * 3
    yield (
        "a union",
        pa.UnionArray.from_sparse(pa.array([0, 1] * 3, pa.int8()), [pa.array(whole), pa.array(words)]),
        None,
    )
    yield "spans of time", pa.array([pa.MonthDayNano([1, 2, 3])] * n), None
    yield (
        "integers of 64 bits without a sign",
        pa.array([2**63 + x for x in whole], pa.uint64()),
        [2**63 + x for x in whole],
    )
    for dtype in (pl.Int128, pl.UInt128):
        yield f"Polars' {dtype}", pl.Series(whole, dtype=dtype), whole
    yield "large integers of Polars", pl.Series([2**100, None], dtype=pl.Int128), [float(2**100), None]


@pytest.mark.filterwarnings("ignore::banbury.errors.BanburyWarning")
@pytest.mark.parametrize(("values", "cells"), [pytest.param(*each, id=name) for name, *each in uncommon()])
def test_columns_of_rare_types_are_read_or_refused_by_name(values, cells):
    frame = pl.DataFrame({"c": values}) if isinstance(values, pl.Series) else pa.table({"c": values})
    said = []
    for table in (frame, {"c": values}):
        [batch] = read(table)
        found = [None if x is None or x != x else x for x in batch.column("c").cells()]
        if cells is not None:
            assert [list(x) if isinstance(x, tuple) else x for x in found] == cells
        labels = ["p", "q", "q", "p", "p", "q"][: len(values)]
        for family in ("auto", "categorical", "gaussian", "bernoulli", "text", "poisson", "quantile_tree"):
            try:
                tally = bb.count(table, labels, features="auto" if family == "auto" else {"c": family})
                assert np.isfinite(bb.estimate(tally).posterior(table)).all()
            except errors.BanburyError as error:
                said.append(str(error))
    assert all("'c'" in each for each in said)


def test_damaged_parquet_is_refused_by_name(tmp_path):
    names = {f"grün{j}": [1.0, 2.0, 3.0] for j in range(6)} | {"y": ["a", "b", "b"]}
    pq.write_table(pa.table(names), tmp_path / "whole.parquet", compression="none", store_schema=False)
    whole = (tmp_path / "whole.parquet").read_bytes()
    rng, path, told = np.random.default_rng(5), tmp_path / "damaged.parquet", 0
    places = [i for i in range(len(whole)) if whole.startswith("grün".encode(), i)]
    for k in range(150):
        content = bytearray(whole)
        at = places[k % len(places)] + 2 if k < 2 * len(places) else int(rng.integers(4, len(whole)))
        content[at] = int(rng.integers(128, 256)) if k % 2 else 0xFF
        path.write_bytes(content)
        try:
            bb.estimate(bb.count(path, "y")).predict(path)
        except errors.BanburyError as error:
            told += "damaged" in str(error)
    assert told > 10


# Patterns that take for ever.

SLOW = {
    "counting": "bb.count(['a' * 60 + '!'] * 4, target=list('pqpq'), features=bb.Text(tokens='(?:a+)+b'))",
    "answering": "model.predict(['a' * 60 + '!'])",
    "explaining": "model.explain('a' * 60 + '!')",
    "validating": "bb.cross_validate(texts, target=list('pq') * 20, features=family)",
    "tuning": "bb.tune(texts, target=list('pq') * 20, features=family, alpha=[0.5, 1])",
}


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("doing", SLOW)
def test_ctrl_c_ends_a_slow_pattern(doing):
    code = f"""if True:
        import threading, time
        import banbury as bb
        from banbury.quality import tuning
        from banbury.rows import scoring
        family = bb.Text(tokens=r"(?:a+)+b|\\w+")
        model = bb.estimate(bb.count(["one two", "three"], target=["p", "q"], features=family))
        texts = ["one two " + "a" * 16 + "!", "three"] * 20
        def later(*given):  # of each fold the texts are slow, once all are counted
            texts_of = bb.Text.kernel_input
            bb.Text.kernel_input = lambda self, *rest: self.split.findall("a" * 60 + "!") and texts_of(self, *rest)
            print("there", flush=True)
            return run_in_threads(*given)
        run_in_threads = scoring.run_in_threads
        scoring.run_in_threads = tuning.run_in_threads = later
        {"pass" if doing in ("validating", "tuning") else "print('there', flush=True)"}
        {SLOW[doing]}
    """
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "there\n", process.communicate()[1]
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)  # what it does would take for ever
        assert said.rstrip().endswith("KeyboardInterrupt")
    finally:
        process.kill()
        process.communicate()


# A great many columns in memory.


@pytest.mark.slow
def test_a_model_of_a_great_many_columns_is_saved_loaded_and_explained(tmp_path):
    n = 3_000
    X = np.random.default_rng(0).normal(size=(120, n))
    labels = ["p", "q"] * 60
    families = {f"x{j}": "gaussian" for j in range(0, n, 1500)} | {"x7": bb.Histogram(bins=4)}
    tally = bb.count(X, labels, features=families)
    model = bb.estimate(tally)
    bb.save(model, tmp_path / "wide.banbury")
    found = bb.load(tmp_path / "wide.banbury")
    assert found.tally == tally and found.tally.schema == tally.schema
    np.testing.assert_array_equal(found.posterior(X), model.posterior(X))
    row = X[3].copy()
    row[5] = np.nan
    by_name = {f"x{j}": None if x != x else x for j, x in enumerate(row.tolist())}
    one, other = model.explain(row), model.explain(by_name)
    assert one.evidence == other.evidence and len(one.evidence) == n - 1


def test_the_header_of_a_great_many_columns_is_small(tmp_path):
    n = 100_000
    tally = bb.count(np.random.default_rng(0).normal(size=(4, n)), list("pqpq"))
    bb.save(tally, tmp_path / "wide.banbury")
    with open(tmp_path / "wide.banbury", "rb") as file:
        assert int.from_bytes(file.read(8), "little") < 100 * n
    assert bb.load(tmp_path / "wide.banbury") == tally
