"""Files without a header, columns named by numbers, and what else a text table may come with: quotes, comments, a preamble."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold

import banbury as bb
from banbury import errors
from banbury.cli import main
from banbury.reading import blocks, read

ROWS = "5.1,3.5,red,setosa\n4.9,3.0,blue,setosa\n6.9,3.1,red,virginica\n6.5,2.8,blue,virginica\n5.0,3.6,red,setosa\n"
NAMED = "length,width,colour,kind\n" + ROWS


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANBURY_PROGRESS", "0")
    Path("rows.csv").write_text(ROWS)
    Path("named.csv").write_text(NAMED)


def said(line: str, capsys: Any) -> tuple[int, str, str]:
    """What a command answers: its exit code, stdout and stderr."""
    code = main(shlex.split(line))
    out, err = capsys.readouterr()
    return code, out, err


def test_columns_without_a_header_are_numbered_from_one():
    [batch] = read("rows.csv", header=False)
    assert batch.names == ("1", "2", "3", "4") and batch.n_rows == 5 and not batch.named


def test_a_file_without_a_header_counts_as_one_with_it():
    without, with_header = bb.count("rows.csv", target=4, header=False), bb.count("named.csv", target="kind")
    assert without.n_rows == with_header.n_rows == 5
    assert [str(f.family) for f in without.schema.features] == [str(f.family) for f in with_header.schema.features]
    one, other = bb.estimate(without), bb.estimate(with_header)
    assert one.posterior("rows.csv", header=False).tolist() == other.posterior("named.csv").tolist()


@pytest.mark.parametrize("target", [1, 4])
def test_a_model_reads_such_files_again_with_and_without_the_target(target):
    Path("rows.csv").write_text(ROWS if target == 4 else ROWS.replace("5.1,3.5,red,setosa", "setosa,3.5,red,5.1"))
    table = [line.split(",") for line in ROWS.splitlines()]
    if target == 1:
        table = [[row[3], row[1], row[2], row[0]] for row in table]
    Path("rows.csv").write_text("".join(f"{','.join(row)}\n" for row in table))
    Path("new.csv").write_text("".join(f"{','.join(row[: target - 1] + row[target:])}\n" for row in table))
    bb.save(bb.estimate(bb.count("rows.csv", target=target, header=False)), "m.banbury")
    model: Any = bb.load("m.banbury")
    answers = model.posterior("rows.csv", header=False)
    assert answers.tolist() == model.posterior("new.csv", header=False).tolist()
    assert model.predict("new.csv", header=False).tolist() == [row[target - 1] for row in table]
    Path("few.csv").write_text("1,2\n")
    with pytest.raises(errors.WrongWidth, match="X has 2 features"):
        model.predict("few.csv", header=False)


def test_a_header_may_be_said_to_be_there_and_renamed():
    [batch] = read("named.csv", columns=["a", "b", "c", "d"], header=True)
    assert batch.names == ("a", "b", "c", "d") and batch.n_rows == 5 and batch.named


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ROWS, "5.1, 3.5 above numbers"),
        ("39,State-gov,77516\n50,Private,83311\n", "39, 77516 above numbers"),
        ("1,2,a\n3,4,b\n5,7,a\n", "1, 2 above numbers"),
        ("0.02,0.37,R\n0.05,0.31,M\n0.01,0.12,M\n", "0.02, 0.37 above numbers"),  # classes are letters
        ("A11 6 A34 4 1\nA12 48 A32 4 2\nA14 12 A34 4 1\n", "6, 4, 1 above numbers"),  # and a value stands there twice
        ("39,?,a\n50,4,b\n12,5,a\n", "39 above numbers"),
        ("p,x,s\np,f,y\ne,x,s\n", "p, x, s also occur below"),
        ("ham\tgo until tomorrow\nspam\twin a new prize\nham\tall right then\n", "ham also occurs below"),
    ],
)
def test_a_first_line_that_looks_like_a_row_is_a_row(text, why):
    Path("t.csv").write_text(text)
    expected = f"t.csv seems to have no header: its first line looks like a row \\({why}\\), so columns are numbered"
    with pytest.warns(errors.BanburyWarning, match=expected) as warned:
        batches = [list(source) for source in [read("t.csv")] * 2]
    assert len(warned) == 1 and "If it is a header, pass header=True." in str(warned[0].message)
    [batch] = batches[0]
    assert batch.n_rows == text.count("\n") and not batch.named and batch.names[:2] == ("1", "2")
    [batch] = read("t.csv", header=False)
    assert batch.n_rows == text.count("\n")
    if len(set(text.split("\n")[0].split(" "))) == len(text.split("\n")[0].split(" ")):
        [batch] = read("t.csv", header=True)
        assert batch.n_rows == text.count("\n") - 1


def test_a_model_remembers_that_its_file_had_no_header(capsys):
    code, out, err = said("fit rows.csv --target last -o m.banbury --json", capsys)
    assert code == 0 and json.loads(out)["rows"] == 5 and err.count("seems to have no header") == 1
    Path("new.csv").write_text("5.1,3.5,red\n")
    code, out, err = said("predict m.banbury new.csv --csv", capsys)
    assert (code, err) == (0, "") and out.splitlines()[1].startswith("1,setosa,")


def test_the_parts_of_a_table_are_read_as_the_first(tmp_path):
    Path("one.csv").write_text(ROWS)
    Path("two.csv").write_text("5.0,3.4,green,setosa\n")  # alone it might be a header
    with pytest.warns(errors.BanburyWarning, match="no header"):
        assert sum(batch.n_rows for batch in read(["one.csv", "two.csv"])) == 6


def test_a_file_with_the_names_of_the_model_has_a_header():
    Path("years.csv").write_text("2019.5,kind\n1.5,a\n2.5,b\n1.4,a\n")
    model = bb.estimate(bb.count("years.csv", target="kind", header=True))
    assert len(model.predict("years.csv")) == 3


@pytest.mark.parametrize("text", ["id,kind\n1,'good'\n2,'bad, really'\n", "'id','kind'\n1,'good'\n2,'it''s bad'\n"])
def test_single_quotes_quote_where_no_others_do(text):
    Path("t.csv").write_text(text)
    [batch] = read("t.csv")
    assert batch.names == ("id", "kind") and batch.head("kind", 1) == ["good"]


@pytest.mark.parametrize(
    "text", ["id,text\n1,'tis the season\n2,to be\n", "id,text\n1,'a' or 'b'\n", "a,b\n'x,\"y'\"\n"]
)
def test_single_quotes_that_do_not_quote_are_letters(text):
    Path("t.csv").write_text(text)
    [batch] = read("t.csv")
    assert batch.head(batch.names[1], 1)[0][0] in "'y" and batch.n_rows == text.count("\n") - 1


@pytest.mark.parametrize(
    "text",
    [
        NAMED,
        "0,1,kind\n5.1,3.5,a\n4.9,3.0,b\n",
        "0,1,2\n5.1,3.5,a\n4.9,3.0,b\n",  # a frame's positions
        "country,1990,1991\na,5.1,3.5\nb,4.9,3.0\n",  # years
        "country,1990,1995,2005\na,5.1,3.5,2\nb,4.9,3.0,2\n",
        ",0\n0,5.5\n1,6.5\n",  # a series of pandas
        "size,spam\n1.5,spam\n2.5,ham\n",
        "text,spam\nbuy now,spam\nlunch,ham\n",
        "a,b\nx,y\n",
    ],
)
def test_a_header_is_not_taken_for_a_row(text):
    Path("t.csv").write_text(text)
    assert list(read("t.csv"))  # and warnings are errors here


def test_a_name_twice_says_what_the_first_line_was_taken_for():
    Path("t.csv").write_text("size,size,kind\n5,3,no\n")
    with pytest.raises(errors.DuplicateColumn, match=r"two columns are named 'size' in t.csv. .*\n.*header=False"):
        read("t.csv")


def test_without_a_header_no_header_is_spoken_of():
    with pytest.raises(errors.UnknownColumn) as raised:
        bb.count("rows.csv", target="9", header=False)
    assert "read as the header" not in str(raised.value)
    Path("t.csv").write_text("1,a\n2\n")
    with pytest.raises(errors.BadFile, match=r"t.csv, line 2: 1 field but the first line has 2: '2'"):
        list(read("t.csv", header=False))


@pytest.mark.parametrize("name", ["header", "quote", "comment", "skip_lines"])
@pytest.mark.parametrize("data", [{"a": [1, 2]}, np.zeros((2, 2)), "t.ndjson"])
def test_what_is_said_of_text_tables_is_refused_of_others(name, data):
    Path("t.ndjson").write_text('{"a": 1}\n')
    value = {"header": False, "quote": "'", "comment": "#", "skip_lines": 1}[name]
    with pytest.raises(errors.BadSetting, match=f"{name}=.* is for .*Omit it"):
        read(data, **{name: value})


@pytest.mark.parametrize(
    "wrong",
    [{"quote": "''"}, {"comment": "//"}, {"skip_lines": -1}, {"header": "no"}, {"quote": ",", "delimiter": ","}],
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(errors.BadSetting, match="must be"):
        read("rows.csv", **wrong)


# Quotes, comments, preambles.


def test_other_quotes_quote():
    Path("t.csv").write_text("a,b\n'x, y',1\n'it''s',2\n'two\nlines',3\n")
    [batch] = read("t.csv", quote="'")
    assert batch.head("a", 3) == ["x, y", "it's", "two\nlines"]


def test_none_quotes():
    Path("t.csv").write_text('a,b\n"x,1\ny",2\n')
    [batch] = read("t.csv", quote="none")
    assert batch.head("a", 2) == ['"x', 'y"']
    Path("t.tsv").write_text('a\tb\n"x\ty"\t1\n')
    [batch] = read("t.tsv", quote='"')
    assert batch.head("a", 2) == ["x\ty"]


def test_comments_are_passed_over_and_lines_keep_their_numbers():
    Path("t.csv").write_text('# it\'s "odd\na,b\n1,x\n# more\n2,"y\n# no comment"\n#\n3,z,z\n')
    with pytest.raises(errors.BadFile, match="line 8: 3 fields but the header has 2"):
        list(read("t.csv", comment="#"))
    Path("t.csv").write_text('# it\'s "odd\na,b\n1,x\n# more\n2,"y\n# no comment"\n#\n3,z\n#')
    [batch] = read("t.csv", comment="#")
    assert batch.names == ("a", "b") and batch.head("a", 9) == [1, 2, 3]
    assert batch.head("b", 9) == ["x", "y\n# no comment", "z"]


def test_lines_are_skipped():
    Path("t.csv").write_text("Export of Monday\n\nby: me, you\na,b\n1,x\n")
    [batch] = read("t.csv", skip_lines=3)
    assert batch.names == ("a", "b") and batch.n_rows == 1
    for skipped, why in [(9, "the file has only 5 lines"), (5, "nothing follows the skipped lines")]:
        with pytest.raises(errors.BadFile, match=why):
            read("t.csv", skip_lines=skipped)


LINE = st.lists(st.text('ab"#\n', max_size=4), min_size=2, max_size=2)


@given(rows=st.lists(LINE, min_size=1, max_size=8), notes=st.lists(st.text('a"#,', max_size=5), max_size=8))
def test_comments_between_rows_change_nothing(rows, notes):
    written = io.StringIO()
    table = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for number, row in enumerate([["one", "two"], *rows]):
        written.write("".join(f"#{note}\n" for note in notes[number : number + 1]))
        table.writerow(row)
    Path("commented.csv").write_text(written.getvalue())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.BanburyWarning)
        [batch] = read("commented.csv", comment="#", missing_values=["none"], kinds={"one": "text", "two": "text"})
    found = zip(batch.column("one").cells(), batch.column("two").cells(), strict=True)
    assert list(found) == [(one.strip(), two.strip()) for one, two in rows]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_comments_are_found_wherever_a_piece_ends(size):
    text, layout = b'#x\na,"b\n#c"\n##\nd,e\n#', blocks.Layout(comment=b"#")
    stream = blocks.Uncommented(io.BytesIO(text), layout)
    pieces = iter(lambda: stream.read(size), b"")
    assert b"".join(pieces) == b'\na,"b\n#c"\n\nd,e\n'


def test_comments_in_many_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    Path("t.csv").write_text("a,b\n" + "".join(f"# note {n}\n{n},x\n" for n in range(200)))
    assert [value for batch in read("t.csv", comment="#") for value in batch.column("a").cells()] == list(range(200))


# Columns that are named by numbers.


FRAME = pandas.DataFrame({0: [1.5, 2.5, 3.5, 4.5] * 6, 7: list("abab") * 6, 20: ["x", "x", "y", "y"] * 6})


def test_a_column_may_be_named_by_a_number():
    named = FRAME.rename(columns=str)
    assert bb.count(FRAME, target=20) == bb.count(named, target="20")
    assert bb.cross_validate(FRAME, target=20).accuracy == bb.cross_validate(named, target="20").accuracy
    assert bb.count(FRAME, target=np.int64(20), weights=0) == bb.count(named, target="20", weights="0")
    assert bb.Schema.infer(FRAME, target=20) == bb.Schema.infer(named, target="20")
    tally = bb.count(FRAME, target=20, features={7: None, 0: "histogram"})
    assert [(f.name, f.family.name) for f in tally.schema.features] == [("0", "histogram")]
    block = bb.count(FRAME.assign(**{"8": 1.0}), target=20, features={(0, 8): bb.Gaussian(covariance="full"), 7: None})
    assert block.schema.features[0].columns == ("0", "8")
    model = bb.estimate(bb.count(FRAME, target=20))
    assert bb.evaluate(model, FRAME, target=20).accuracy == bb.evaluate(model, named).accuracy
    assert model.predict(FRAME[[0, 7]]).tolist() == model.predict(named).tolist()
    assert model.explain({0: 1.5, 7: "a"}).winner == model.explain({"0": 1.5, "7": "a"}).winner
    grouped = [bb.cross_validate(FRAME, target=20, groups=name, folds=GroupKFold(2)) for name in (7, "7")]
    assert grouped[0].accuracy == grouped[1].accuracy
    assert bb.BeliefNetwork.tan(FRAME, target=20).target == "20"
    assert bb.tune(FRAME, target=20, alpha=[0.5, 1.0]).best == bb.tune(named, target="20", alpha=[0.5, 1.0]).best
    curves = [bb.learning_curve(frame, target=name, sizes=[8]) for frame, name in ((FRAME, 20), (named, "20"))]
    assert curves[0].to_dict() == curves[1].to_dict()


def test_a_number_that_names_no_column_is_named():
    with pytest.raises(errors.UnknownColumn, match="no column '21'"):
        bb.count(FRAME, target=21)
    with pytest.raises(errors.UnknownColumn, match="no column 1"):
        bb.count(FRAME, target=20, features={1: None})


def test_names_of_columns_may_be_numbers():
    tally = bb.count("rows.csv", target=4, columns=[1, 2, 3, 4])
    assert tally == bb.count("rows.csv", target=4, columns=["1", "2", "3", "4"])


def test_estimators_take_frames_with_numbered_columns_and_files_without_a_header():
    X, y = FRAME[[0, 7]], FRAME[20]
    for make in (bb.NaiveBayesClassifier, bb.EvidenceClassifier):
        assert (
            make().fit(X, y).predict(X).tolist()
            == make().fit(X.rename(columns=str), y).predict(X.rename(columns=str)).tolist()
        )
    rows = read("rows.csv", header=False)
    labels = [line.rpartition(",")[2] for line in ROWS.splitlines()]
    assert bb.NaiveBayesClassifier().fit(rows, labels).predict(rows).tolist() == labels


# The command line.


def test_the_command_line_reads_files_without_a_header(capsys):
    code, out, err = said("fit rows.csv --no-header --target last -o m.banbury --json", capsys)
    assert (code, err) == (0, "") and json.loads(out)["target"] == "4" and json.loads(out)["rows"] == 5
    assert said("predict m.banbury rows.csv --no-header --csv", capsys)[1].splitlines()[1].startswith("1,setosa,")
    assert said("evaluate m.banbury rows.csv --no-header --json", capsys)[0] == 0
    assert said("evaluate m.banbury rows.csv --no-header --target last --json", capsys)[0] == 0
    assert said("cross-validate rows.csv --no-header --target 4 --folds 2 --json", capsys)[0] == 0
    assert said("explain m.banbury rows.csv --no-header --row 2", capsys)[0] == 0
    assert said("tally count rows.csv --no-header --target 4 -o t.banbury", capsys)[0] == 0
    assert said("tally count rows.csv --no-header --like t.banbury -o u.banbury", capsys)[0] == 0
    assert said("fit rows.csv --no-header --target 4 --tan -o tree.banbury", capsys)[0] == 0
    assert said("predict tree.banbury rows.csv --no-header", capsys)[0] == 0
    assert "4" in said("show m.banbury", capsys)[1]


def test_the_command_line_says_how_to_read_a_file_without_a_header(capsys):
    code, _, err = said("fit rows.csv --target setosa", capsys)
    assert code == 1 and "looks like a row (5.1, 3.5 above numbers), so columns are numbered from 1 to 4" in err
    assert "If it is a header, pass --header." in err and "If its first line is a header, pass --header" in err
    assert said("fit rows.csv --target setosa --header", capsys)[0] == 0
    code, _, err = said("fit named.csv", capsys)
    assert (
        code == 2 and "Columns with few distinct values: colour, kind" in err and "pass --no-header, or --names" in err
    )


def test_the_command_line_reads_odd_tables(capsys, monkeypatch):
    Path("odd.csv").write_text("Export\n% note\nsize;word;kind\n1.5;'a;b';x\n% note\n2.5;'c';y\n")
    odd = '--skip-lines 1 --comment % --quote "\'"'
    assert said(f"fit odd.csv --target kind {odd} -o m.banbury", capsys)[0] == 0
    code, out, _ = said(f"explain m.banbury odd.csv --row 1 {odd}", capsys)
    assert code == 0 and "a;b" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("odd.csv").read_bytes())))
    assert said(f"predict m.banbury - --format csv {odd}", capsys)[0] == 0


def test_a_column_that_is_named_last_is_meant(capsys):
    Path("t.csv").write_text("last,other\na,1.5\nb,2.5\na,1.0\nb,3.0\n")
    assert json.loads(said("fit t.csv --target last --json", capsys)[1])["target"] == "last"


def test_a_name_that_does_not_say_what_a_file_is_has_the_hint_too(capsys):
    Path("Collection").write_text("ham\tgo on\nspam\twin a prize\nham\tok lar\n")
    Path("rows.ndjson").write_text('{"a": 1, "b": 2}\n')
    assert "If it is a row, pass --no-header" in said("fit Collection", capsys)[2]
    assert "If it is a row, pass --no-header" in said("fit Collection --target kind", capsys)[2]
    assert "If it is a row" not in said("fit rows.ndjson", capsys)[2]


def test_a_title_above_the_rows_is_told_how_to_be_passed_over(tmp_path):
    path = tmp_path / "adult.test"
    path.write_text("|1x3 Cross validator\n25, Private, yes\n38, Private, no\n")
    with pytest.raises(bb.errors.BadFile, match=r"line 2: .*If the first line is a title, skip it with skip_lines=1"):
        list(read(path, header=False))
    [batch] = read(path, header=False, skip_lines=1)
    assert batch.n_rows == 2 and len(batch.names) == 3


@pytest.mark.parametrize("cell", ["'", "'tis", "rock 'n' roll"])
def test_an_apostrophe_at_the_start_of_a_cell_is_no_quotation_mark(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"word,class\nx,p\n{cell},q\n")
    tally = bb.count(path, "class", features={"word": "categorical"})
    assert tally == bb.count({"word": ["x", cell], "class": ["p", "q"]}, "class", features={"word": "categorical"})
