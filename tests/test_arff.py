"""ARFF: declared columns, dense and sparse rows, quotes, missing values, weights."""

from __future__ import annotations

import gzip
import io
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import arff as peer

import banbury as bb
from banbury import errors
from banbury.cli import main
from banbury.reading import arff, blocks, read

WEATHER = """\
% the comment's "quote
@RELATION weather
@attribute outlook {sunny, overcast, 'light rain'}
@attribute "temp erature" real
@ATTRIBUTE windy {TRUE, FALSE}
@attribute when date "yyyy-MM-dd"
@attribute note string
@attribute play {yes, no}

@DATA
sunny,85,FALSE,"2001-04-03",'it\\'s hot',no
sunny,80,TRUE,?,'a, b',no
% more
'light rain',70.5,FALSE,"2001-04-04",?,yes
overcast, ?, TRUE,"2001-04-04","100\\%",yes
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANBURY_PROGRESS", "0")


def rows_of(text: str | bytes, name: str = "t.arff", **options: Any) -> list[dict[str, Any]]:
    """The rows of a file as mappings."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    found = []
    for batch in read(name, **options):
        cells = [list(batch.column(each).cells()) for each in batch.names]
        found += [dict(zip(batch.names, row, strict=True)) for row in zip(*cells, strict=True)]
    return [{key: None if value != value else value for key, value in row.items()} for row in found]


def test_what_is_declared_is_what_is_read():
    rows = rows_of(WEATHER)
    assert rows[0] == dict(
        zip(
            ("outlook", "temp erature", "windy", "when", "note", "play"),
            ("sunny", 85.0, "FALSE", "2001-04-03", "it's hot", "no"),
            strict=True,
        )
    )
    assert rows[1]["note"] == "a, b" and rows[1]["when"] is None
    assert rows[2]["outlook"] == "light rain" and rows[2]["note"] is None
    assert rows[3]["temp erature"] is None and rows[3]["note"] == "100%"
    [batch] = read("t.arff")
    kinds = {name: batch.kind(name) for name in batch.names}
    assert list(kinds.values()) == ["string", "float", "string", "date", "string", "string"]
    assert batch.categorical("outlook") and not batch.categorical("note")
    assert batch.codes("outlook").values == ["sunny", "overcast", "light rain"]


def test_a_file_counts_as_a_table_of_the_same_values():
    rows_of(WEATHER)
    tally = bb.count("t.arff", target="play")
    assert tally.n_rows == 4 and tally.classes == ("no", "yes")
    assert dict(tally.schema.left_out) == {"when": "a date or time; convert it to numbers or words to use it"}
    table = {
        "outlook": ["sunny", "sunny", "light rain", "overcast"],
        "temp erature": [85.0, 80.0, 70.5, None],
        "windy": ["FALSE", "TRUE", "FALSE", "TRUE"],
        "note": ["it's hot", "a, b", None, "100%"],
    }
    assert tally == bb.count(table, target=["no", "no", "yes", "yes"], schema=tally.schema)


@pytest.mark.parametrize("number", ["numeric", "REAL", "Integer"])
def test_numbers_are_numbers_whatever_their_word(number):
    assert rows_of(f"@relation r\n@attribute a {number}\n@data\n1.5\n2\n1e3\n") == [
        {"a": 1.5},
        {"a": 2.0},
        {"a": 1000.0},
    ]


def test_sparse_rows_have_zeros_and_first_values():
    text = (
        "@relation r\n@attribute a numeric\n@attribute b {x,'y z'}\n@attribute c numeric\n@attribute d string\n@data\n"
    )
    rows = rows_of(text + "{0 1.5, 1 'y z'}\n{}\n{ 2 ? , 3 \"a, }\" }\n")
    assert rows == [
        {"a": 1.5, "b": "y z", "c": 0.0, "d": None},
        {"a": 0.0, "b": "x", "c": 0.0, "d": None},
        {"a": 0.0, "b": "x", "c": None, "d": "a, }"},
    ]


def test_wide_sparse_rows_are_written_out_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(arff, "MOST_CELLS", 1000)
    header = "".join(f"@attribute a{j} numeric\n" for j in range(100))
    Path("t.arff").write_text(f"@relation r\n{header}@data\n" + "".join(f"{{{j} {j + 1}}}\n" for j in range(95)))
    sizes = [batch.n_rows for batch in read("t.arff")]
    assert max(sizes) == 10 and sum(sizes) == 95
    matrix = np.vstack([np.column_stack(batch.numbers(batch.names)) for batch in read("t.arff")])
    assert np.array_equal(matrix, np.diag(np.arange(1.0, 101.0))[:95])


WEIGHED = "@relation r\n@attribute a {x,y}\n@attribute c {p,q}\n@data\nx,p\ny,q,{5}\nx,q, {0.5} % half\ny,p\n"


def test_weights_weigh():
    assert bb.count(rows_of(WEIGHED) and "t.arff", target="c") == bb.count(
        {"a": list("xyxy"), "c": list("pqqp")}, target="c", weights=[1, 5, 0.5, 1], features="categorical"
    )
    [batch] = read("t.arff")
    assert batch.names == ("a", "c", "instance weight") and batch.non_features == {"instance weight"}
    mine = bb.count("t.arff", target="c", weights=[1, 1, 1, 1])
    assert mine.n_rows == 4 and [f.name for f in mine.schema.features] == ["a"]
    model = bb.estimate(bb.count("t.arff", target="c"))
    assert model.predict("t.arff").shape == (4,)  # and no word of a column that was not counted
    assert bb.cross_validate("t.arff", target="c", folds=2).classes == ("p", "q")
    assert bb.BeliefNetwork.tan("t.arff", target="c") == bb.BeliefNetwork.tan(
        {"a": list("xyxy"), "c": list("pqqp")}, target="c", weights=[1, 5, 0.5, 1], features={"a": "categorical"}
    )


def test_weights_that_come_late_weigh(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    Path("t.arff").write_text(
        "@relation r\n@attribute a {x,y}\n@attribute c {p,q}\n@data\n" + "x,p\ny,p\n" * 50 + "y,q,{7}\n"
    )
    assert bb.count("t.arff", target="c").n_rows == 107
    text = Path("t.arff").read_text().replace("x,p", "{}").replace("y,p", "{0 y}").replace("y,q,{7}", "{0 y, 1 q}, {7}")
    Path("t.arff").write_text(text)
    assert bb.count("t.arff", target="c").n_rows == 107


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@relation r\n@attribute a numeric\n", "it has no @data"),
        ("@relation r\n@data\n1\n", "it has no @attribute before @data"),
        ("@relation r\n@attribute a\n@data\n", "line 2: '@attribute a' cannot be read"),
        ("@relation r\n@attribute a relational\n@data\n", "line 2: attribute 'a' is relational, and numeric"),
        ("@relation r\nhello\n@data\n", "line 2: 'hello' is not part of an ARFF header"),
        ("@relation r\n@attribute a numeric\n@attribute a real\n@data\n", "two columns are named 'a'"),
        (
            "@relation r\n@attribute a numeric\n@data\n1\nx\n",
            "line 5: column 'a' contains 'x', but is declared numeric",
        ),
        ("@relation r\n@attribute a {x,y}\n@data\nx\n%\nz\n", r"line 6: column 'a' contains 'z', .* \(x, y\)"),
        ("@relation r\n@attribute a {one,two}\n@data\ntow\n", r"Did you mean 'two'\?$"),
        (
            "@relation r\n@attribute a numeric\n@attribute b numeric\n@data\n1,2\n1\n",
            "line 6: 1 value but 2 attributes are declared",
        ),
        (
            "@relation r\n@attribute a numeric\n@data\n{1 2}\n",
            "attribute 1 does not exist: attributes are numbered from 0 to 0",
        ),
        ("@relation r\n@attribute a numeric\n@data\n{0 2\n", "line 4: .* or the row has no closing }"),
        ("@relation r\n@attribute a numeric\n@data\n1,{heavy}\n", "is not a weight"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, message):
    Path("t.arff").write_text(text)
    with pytest.raises(errors.BanburyError, match=message):
        list(read("t.arff"))


def test_a_file_is_known_by_what_it_begins_with_and_may_be_packed():
    Path("weather").write_text(WEATHER)
    with gzip.open("weather.arff.gz", "wt") as file:
        file.write(WEATHER)
    expected = rows_of(WEATHER)
    for path in ("weather", "weather.arff.gz"):
        [batch] = read(path)
        assert list(batch.column("note").cells()) == [row["note"] for row in expected]


def test_a_file_without_rows_has_its_columns():
    assert rows_of("@relation r\n@attribute a numeric\n@data\n") == []
    with pytest.raises(errors.EmptyData):
        bb.count("t.arff", target="a")


def test_latin_1_is_read():
    rows = rows_of(
        "@relation r\n@attribute a {grün,rot}\n@attribute b string\n@data\ngrün,für\nrot,'ä'\n".encode("latin-1")
    )
    assert rows == [{"a": "grün", "b": "für"}, {"a": "rot", "b": "ä"}]


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r") + "'"


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zl", "Zp")) | st.sampled_from("'\"\\,{}%?\n\t "),
    max_size=6,
)


@given(
    values=st.lists(WORDS, min_size=1, max_size=4, unique=True),
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.none() | st.floats(allow_nan=False, allow_infinity=False), WORDS), max_size=6
    ),
    sparse=st.booleans(),
)
def test_what_was_written_is_read_back(values, rows, sparse):
    header = f"@relation r\n@attribute n {{{','.join(map(quoted, values))}}}\n@attribute x numeric\n@attribute s string\n@data\n"
    table = [(values[k % len(values)], number, text) for k, number, text in rows]
    lines = [[quoted(word), "?" if number is None else repr(number), quoted(text)] for word, number, text in table]
    if sparse:
        body = "".join("{" + ", ".join(f"{j} {cell}" for j, cell in enumerate(cells)) + "}\n" for cells in lines)
    else:
        body = "".join(f"{', '.join(cells)}\n" for cells in lines)
    found = rows_of(header + body, "property.arff")
    assert [(row["n"], row["x"], row["s"]) for row in found] == table


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.floats(-1e6, 1e6) | st.none()), min_size=1, max_size=20))
def test_plain_rows_are_read_as_scipy_reads_them(rows):
    body = "".join(f"{word},{'?' if number is None else repr(number)}\n" for word, number in rows)
    text = f"@relation r\n@attribute w {{a,b}}\n@attribute x real\n@data\n{body}"
    data, _ = peer.loadarff(io.StringIO(text))
    found = rows_of(text, "peer.arff")
    assert [row["w"] for row in found] == [word.decode() for word in data["w"]]
    assert np.array_equal([np.nan if row["x"] is None else row["x"] for row in found], data["x"], equal_nan=True)


def test_the_command_line_reads_arff(capsys):
    Path("weather.arff").write_text(WEATHER)

    def said(line: str) -> tuple[int, str, str]:
        code = main(shlex.split(line))
        return (code, *capsys.readouterr())

    code, _, err = said("fit weather.arff")
    assert code == 2 and "windy, play" in err and "header" not in err
    assert said("fit weather.arff --target play -o m.banbury")[0] == 0
    code, out, _ = said("predict m.banbury weather.arff")
    assert code == 0 and json.loads(out.splitlines()[0])["class"] == "no"
    for line in ("evaluate m.banbury weather.arff", "cross-validate weather.arff --target last --folds 2",
                 "explain m.banbury weather.arff --row 2", "tally count weather.arff --target play -o t.banbury"):  # fmt: skip
        assert said(line)[0] == 0
