"""Small files that would take much memory or time: they are read within bounds, or refused by name."""

import csv
import gzip
import io
import json
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banbury import errors
from banbury.readers import Widened, blocks, delimited, read


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


@only_linux
def test_a_hundred_thousand_columns_are_counted_in_little_memory(tmp_path):
    n, path = 100_000, tmp_path / "wide.csv"
    rows = (",".join(str(i * k % 7) for i in range(n)) for k in (1, 2))
    path.write_text("\n".join([",".join(f"c{i}" for i in range(n)), *rows]) + "\n")
    code = "import sys, banbury as bb\nprint(bb.count(sys.argv[1], 'c1').n_rows)"
    size, lines = peak(code, path)
    assert lines == ["2"] and size < 300


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
            patch.setattr(delimited, "TOGETHER", together)
            try:
                batches = list(read(path))
                columns = [(b.kind(name), list(b.column(name).cells())) for b in batches for name in b.names]
                found.append(columns)
            except (errors.BanburyError, Widened) as error:
                found.append(str(error))
    assert repr(found[0]) == repr(found[1])


def test_a_wide_file_widens_columns_and_names_ragged_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "TOGETHER", 3)
    names = [f"c{j}" for j in range(10)]
    path = tmp_path / "t.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" * 10) + "\n" + ",".join("2" * 9) + "\n")
    with pytest.raises(errors.BadFile, match="line 3: 9 fields where the header has 10"):
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
    assert took[16_000] < 8 * 4 * took[2_000] + 1.0


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
    if "mbox" in name:
        assert n_rows == "3" and "broken" in said  # its first 64 MB are a message
    else:
        assert n_rows == "2" and "more than 64 MB" in said and "skipped" in said


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
