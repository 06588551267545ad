"""A model remembers how its files were read: what was said once need not be said again, and may be said otherwise."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banbury as bb
from banbury import errors
from banbury.cli import main
from banbury.files import from_bytes, to_bytes
from banbury.reading import read
from naive_files import rewritten

ROWS = [
    ["5.1", "3.5", "red", "setosa"],
    ["4.9", "3.0", "blue", "setosa"],
    ["6.9", "-9", "red", "virginica"],
    ["6.5", "2.8", "blue", "virginica"],
    ["5.0", "3.6", "red", "setosa"],
    ["6.7", "3.1", "blue", "virginica"],
]
NAMES = ["length", "width", "colour", "kind"]
TEXTS = {"ham": ["lunch at noon", "see you at lunch"], "spam": ["cheap pills", "free pills now", "cheap, cheap"]}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANBURY_PROGRESS", "0")


def table(delimiter: str = ",", header: bool = True, rows: list[list[str]] = ROWS) -> str:
    return "".join(f"{delimiter.join(row)}\n" for row in [NAMES] * header + rows)


def files(contents: dict[str, str]) -> None:
    for name, content in contents.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def letters(folder: str, name: str = "{label}-{number}.txt", form: str = "{text}\n") -> dict[str, str]:
    each = ((label, number, text) for label, texts in TEXTS.items() for number, text in enumerate(texts))
    return {
        f"{folder}/{name.format(label=label, number=number)}": form.format(text=text, label=label)
        for label, number, text in each
    }


QUOTED = [[row[0], row[1], f"'{row[2]}, {row[2]}'", row[3]] for row in ROWS]
MAIL = "Subject: {text}\nX-Kind: {label}\n\nhello\n"
SAID: dict[str, tuple[dict[str, str], str, str]] = {  # files, input and target, how they are read
    "header": ({"t.csv": table(header=False)}, "t.csv --target 4", "--no-header"),
    "names": ({"t.csv": table(header=False)}, "t.csv --target d", "--names a,b,c,d"),
    "header renamed": ({"t.csv": table()}, "t.csv --target d", "--header --names a,b,c,d"),
    "delimiter": ({"t.csv": table("/")}, "t.csv --target kind", "--delimiter /"),
    "tab": ({"t.csv": table("\t")}, "t.csv --target kind", "--delimiter tab"),
    "quote": ({"t.csv": table(rows=QUOTED)}, "t.csv --target kind", '--quote "\'"'),
    "no quote": ({"t.csv": table().replace("red", '"red')}, "t.csv --target kind", "--quote none"),
    "comment": ({"t.csv": table().replace("4.9", "% note, of\n4.9")}, "t.csv --target kind", "--comment %"),
    "skipped lines": ({"t.csv": f"An export\nof Monday\n{table()}"}, "t.csv --target kind", "--skip-lines 2"),
    "missing values": ({"t.csv": table()}, "t.csv --target kind", "--missing-values=-9,none"),
    "several files": ({"a.csv": table("/"), "b.csv": table("/")}, "a.csv b.csv --target kind", "--delimiter /"),
    "no ending": ({"Rows": table(header=False)}, "Rows --target 4", "--no-header"),
    "lines": ({f"{name}.txt": "\n".join(texts) for name, texts in TEXTS.items()}, "ham.txt spam.txt", "--format lines"),
    "class from": (letters("mail"), "mail", "--class-from 'spam*=spam,*=ham'"),
    "classes at": (letters("mail", "in/{label}/{number}.txt"), "mail", "--classes-at 2"),
    "mail": (letters("mail", "{label}/{number}.txt", MAIL), "mail", "--format mail --headers drop"),
    "headers": (letters("mail", "{label}/{number}.eml", MAIL), "mail", "--headers columns,x-kind"),
}


def said(line: str, capsys: Any, fails: bool = False) -> str:
    """What a command prints; if it fails, what it complains of."""
    code = main(shlex.split(line))
    out, err = capsys.readouterr()
    assert (code != 0) == fails, err
    return err if fails else out


def told(model: str, data: str, how: str, capsys: Any) -> list[str]:
    """What every command that has a model and an input answers."""
    few = "--no-alternatives --folds 2 --mistakes 0 -o r.html"
    verbs = [f"predict {model} {data} --posteriors", f"explain {model} {data} --row 2", f"evaluate {model} {data}"]
    verbs += [f"tally count {data} --like {model} -o part.banbury", f"report {model} {data} {few}"]
    return [said(f"{verb} {how} --json", capsys) for verb in verbs]


@pytest.mark.parametrize("case", SAID)
def test_no_command_has_to_be_told_again(case, capsys):
    contents, data, how = SAID[case]
    files(contents)
    said(f"fit {data} {how} --no-cross-validate --plain -o m.banbury", capsys)
    data = data.partition(" --")[0]
    assert told("m.banbury", data, "", capsys) == told("m.banbury", data, how, capsys)
    assert "read with" in said("show m.banbury --table", capsys)
    assert bb.load("part.banbury") == bb.load("m.banbury").tally  # type: ignore[union-attr]


@pytest.mark.parametrize("case", ["header", "names", "tab", "skipped lines", "missing values"])
def test_a_tree_and_its_network_remember_too(case, capsys):
    contents, data, how = SAID[case]
    files(contents)
    said(f"fit {data} {how} --tan --no-cross-validate -o m.banbury", capsys)
    for verb in ("predict", "explain", "evaluate"):
        assert said(f"{verb} m.banbury t.csv --json", capsys) == said(f"{verb} m.banbury t.csv {how} --json", capsys)
    assert "read with" in said("show m.banbury --table", capsys)
    tree: Any = bb.load("m.banbury")
    network = bb.BeliefNetwork.from_model(tree)
    assert tree.has_counted("t.csv") and (network + network.count_more("t.csv"))._reading == network._reading != {}


def test_labels_remember_too(capsys):
    Path("t.csv").write_text(
        "a;b/cheap pills for all of us\nb/lunch at noon for all\na/free pills at noon for all\n" * 4
    )
    how = "--no-header --delimiter /"
    said(f"fit t.csv --target 1 --target-delimiter ';' {how} -o m.banbury", capsys)
    for verb in ("predict m.banbury t.csv", "explain m.banbury t.csv --row 2", "evaluate m.banbury t.csv"):
        assert said(f"{verb} --json", capsys) == said(f"{verb} {how} --json", capsys)
    assert "read with" in said("show m.banbury --table", capsys)


def test_standard_input_and_the_last_column_are_read_likewise(capsys, monkeypatch):
    files({"t.csv": table("/", header=False)})
    said("fit t.csv --no-header --delimiter / --target last -o m.banbury", capsys)
    answers = said("predict m.banbury t.csv --json", capsys)
    for verb in ("predict m.banbury -", "evaluate m.banbury - --target last", "evaluate m.banbury t.csv --target last"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("t.csv").read_bytes())))
        out = said(f"{verb} --json", capsys)
        assert out == answers or json.loads(out)["rows"] == len(ROWS)


def test_pictures_are_drawn_of_files_that_are_read_likewise(capsys):
    pytest.importorskip("matplotlib")
    files({"t.csv": table(header=False)})
    said("fit t.csv --no-header --target 4 -o m.banbury", capsys)
    for picture in ("likelihood m.banbury t.csv --columns 1", "confusion m.banbury t.csv --target last"):
        said(f"plot {picture} -o p.svg", capsys)


def test_lines_come_from_standard_input_and_files_of_any_ending_but_tables(capsys, monkeypatch):
    files({f"{name}.txt": "\n".join(texts) for name, texts in TEXTS.items()})
    files({"new.txt": "cheap pills\nlunch\n", "new.csv": "text\ncheap pills\nlunch\n"})
    said("fit ham.txt spam.txt --format lines -o m.banbury", capsys)
    answers = said("predict m.banbury new.txt --json", capsys)
    assert [json.loads(line)["class"] for line in answers.splitlines()] == ["spam", "ham"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"cheap pills\nlunch\n")))
    assert said("predict m.banbury - --json", capsys) == answers
    assert said("predict m.banbury new.csv --json", capsys) == answers
    text = said("predict m.banbury new.txt --format text --json", capsys)
    assert len(text.splitlines()) == 1


# What is said wins.


def test_what_is_said_wins(capsys):
    files({"t.csv": table("/", header=False), "named.csv": table(","), "other.csv": f"title\n{table(';')}"})
    said("fit t.csv --no-header --delimiter / --target 4 -o m.banbury", capsys)
    answers = said("predict m.banbury t.csv --json", capsys)
    assert said("predict m.banbury named.csv --header --delimiter , --json", capsys) == answers
    assert (
        said("predict m.banbury other.csv --comment none --header --delimiter ';' --skip-lines 1 --json", capsys)
        == answers
    )
    evaluation = json.loads(said("evaluate m.banbury named.csv --header --delimiter , --json", capsys))
    assert evaluation["rows"] == len(ROWS)
    model: Any = bb.load("m.banbury")
    named = model.posterior("named.csv", header=True, delimiter=",")
    assert named.tolist() == model.posterior("t.csv").tolist()
    files({"skipped.csv": f"title\n{table()}"})
    tally = bb.count("skipped.csv", target="kind", skip_lines=1, missing_values=["-9"])
    assert tally == tally.count("skipped.csv") == tally.count("named.csv", skip_lines=0)
    assert tally != tally.count("named.csv", skip_lines=0, missing_values=["none"])


@pytest.mark.parametrize("how", ["--no-header --target 4", "--names a,b,c,d --target d"])
def test_a_file_with_a_header_is_told_from_one_without(how, capsys):
    files({"t.csv": table(header=False), "named.csv": table()})
    said(f"fit t.csv {how} -o m.banbury", capsys)
    complaint = said("predict m.banbury named.csv", capsys, fails=True)
    assert "contains 'length'" in complaint and "If its first line is a header, pass --header" in complaint


def test_columns_by_number_are_found_below_a_header_with_or_without_the_target(capsys):
    front = [[row[3], *row[:3]] for row in ROWS]
    files({"t.csv": table(header=False, rows=front)})
    files({"new.csv": "a,b,c\n" + "".join(f"{','.join(row[:3])}\n" for row in ROWS)})
    said("fit t.csv --no-header --target 1 -o m.banbury", capsys)
    assert said("predict m.banbury new.csv --header --json", capsys) == said("predict m.banbury t.csv --json", capsys)
    assert "pass --header" in said("predict m.banbury new.csv", capsys, fails=True)


# In Python.


LAYOUTS = st.fixed_dictionaries(
    {},
    optional={
        "delimiter": st.sampled_from([";", "\t", "|", "/"]),
        "quote": st.just("'"),
        "comment": st.just("%"),
        "skip_lines": st.integers(1, 3),
        "missing_values": st.just(["-9", "none"]),
        "header": st.booleans(),
        "columns": st.just(["a", "b", "c", "d"]),
    },
)


@settings(max_examples=60)
@given(layout=LAYOUTS)
def test_whatever_the_layout_it_is_remembered(layout):
    written = io.StringIO()
    written.write("% title, 'and\n" * layout.get("skip_lines", 0))
    mark, quote = layout.get("delimiter", ","), layout.get("quote", '"')
    has_header = layout.get("header", "columns" not in layout)
    quoting: Any = csv.QUOTE_MINIMAL if mark == "\t" else csv.QUOTE_ALL  # where tabs divide, few programs quote
    writer = csv.writer(written, delimiter=mark, quotechar=quote, quoting=quoting, lineterminator="\n")
    writer.writerows([NAMES] * has_header + ROWS)
    if "comment" in layout:
        written.write("% the end\n")
    Path("layout.csv").write_text(written.getvalue())
    target = "d" if "columns" in layout else "kind" if has_header else 4
    tally = bb.count("layout.csv", target=target, **layout)
    model: Any = from_bytes(to_bytes(bb.estimate(tally)), "it")
    assert model.schema.reading == layout
    assert model.posterior("layout.csv").tolist() == model.posterior("layout.csv", **layout).tolist()
    assert tally.count("layout.csv") == bb.count("layout.csv", target=target, schema=tally.schema) == tally
    assert model.has_counted("layout.csv")
    frame = pandas.DataFrame(ROWS, columns=[f.name for f in model.schema.features] + [str(target)])
    frame = frame.astype(dict.fromkeys(frame.columns[:2], float))
    frame = frame.mask(frame == -9) if "missing_values" in layout else frame
    assert model.predict(frame).tolist() == model.predict("layout.csv").tolist()


def tallied(**reading: Any) -> bb.Tally:
    """A tally of a file that is read so."""
    files({"t.csv": table(reading.get("delimiter", ","), header="columns" not in reading)})
    return bb.count("t.csv", target="kind", **reading)


def test_it_is_no_part_of_what_was_counted():
    plain, other = tallied(), tallied(delimiter="/", quote="'")
    assert plain == other and plain.schema == other.schema and plain.digest() == other.digest()
    assert hash(plain.schema) == hash(other.schema) and plain.schema._explain_difference(other.schema) is None
    assert plain.schema.reading == {} and "reading" not in plain.schema.to_dict()
    assert other.schema.reading == {"delimiter": "/", "quote": "'"}


def test_the_first_of_tallies_says_how_to_read_on():
    plain, other, third = tallied(), tallied(delimiter="/"), tallied(delimiter=";")
    assert (other + other).schema.reading == (other + third).schema.reading == (other - other).schema.reading
    assert (other + third).schema.reading == {"delimiter": "/"} == (other * 2).schema.reading
    assert (plain + other).schema.reading == {}
    model = bb.estimate(other, features={"length": bb.Gaussian()})
    assert model.schema.reading == other.schema._with_families({"length": bb.Gaussian()}).reading == {"delimiter": "/"}


def test_validated_weighed_and_inferred_schemas_remember():
    many = [[f"{i % 7 + i / 100}", f"{i % 5}.5", "red" if i % 3 else "blue", "ab"[i % 2]] for i in range(120)]
    files({"t.csv": table("/", rows=many)})
    how: Any = {"delimiter": "/"}
    assert bb.Schema.infer("t.csv", "kind", **how).reading == how
    assert bb.tune("t.csv", "kind", alpha=[0.5, 1.0], **how).model.schema.reading == how
    weighed = bb.weigh(bb.estimate(bb.count("t.csv", "kind", **how)), "t.csv")
    assert weighed.schema.reading == how and weighed.posterior("t.csv").shape == (120, 2)
    network: Any = bb.BeliefNetwork.count("t.csv", {"kind": ["colour"]}, **how)
    assert network._reading == how and len(network.predict("t.csv", of="kind")) == 120


def test_data_that_are_no_such_files_are_read_as_they_are(tmp_path):
    reading: Any = {"header": False, "delimiter": "/", "skip_lines": 1, "missing_values": ["-9"], "quote": "'"}
    files({"t.csv": "title\n" + table("/", header=False)})
    model = bb.estimate(bb.count("t.csv", target=4, **reading))
    answers = model.predict("t.csv").tolist()
    frame = pandas.DataFrame(ROWS, columns=list("1234")).astype({"1": float, "2": float}).replace(-9.0, None)
    frame["2"] = frame["2"].astype(float)
    for data in (frame, frame.to_dict("list"), frame.to_dict("records")):
        assert model.predict(data).tolist() == answers
    frame.to_json("t.ndjson", orient="records", lines=True)
    Path("json").write_text(Path("t.ndjson").read_text())
    pytest.importorskip("pyarrow")
    frame.to_parquet("t.parquet")
    for path in ("t.ndjson", "json", "t.parquet"):
        assert model.predict(path).tolist() == answers
    assert read(frame, remembered=reading).reading == {}
    assert bb.count(frame.to_numpy(), target=frame["4"], columns=list("abcd")).schema.reading == {}


def test_patterns_that_are_remembered_leave_no_file_out():
    files(letters("mail"))
    files({"new/x-1.txt": "cheap pills\n", "new/ham-1.txt": "lunch\n", "rows.csv": "text\ncheap pills\nlunch\n"})
    model = bb.estimate(bb.count("mail", class_from="spam*=spam,ham*=ham"))
    assert model.schema.reading == {"class_from": {"spam*": "spam", "ham*": "ham"}}
    assert model.predict("new").tolist() == ["ham", "spam"]
    assert model.predict("rows.csv").tolist() == ["spam", "ham"]
    assert model.predict(["cheap pills"]).tolist() == ["spam"]
    deep = bb.estimate(bb.count("mail", class_from={"*": "all"}))
    assert deep.predict("new").tolist() == ["all", "all"]


def test_a_level_of_folders_that_is_remembered_is_that_of_folders_so_deep():
    files(letters("mail", "in/{label}/{number}.txt"))
    files({"flat/1.txt": "cheap pills\n", "wide/any/1.txt": "cheap pills\n"})
    model = bb.estimate(bb.count("mail", classes_at=2))
    assert model.predict("flat").tolist() == model.predict("wide").tolist() == ["spam"]
    assert bb.evaluate(model, "mail").accuracy.value == 1.0


# Files made to do harm.


HOSTILE: list[Any] = [
    ["header"],
    "header=False",
    {"path": "/etc/passwd"},
    {"kinds": {"x": "number"}},
    {"remembered": {"header": False}},
    {"header": "no"},
    {"header": 2},
    {"header": None},
    {"delimiter": "/" * 1_000_000},
    {"delimiter": "\n"},
    {"delimiter": 1},
    {"quote": "quote"},
    {"comment": ""},
    {"skip_lines": -1},
    {"skip_lines": 1.5},
    {"skip_lines": True},
    {"skip_lines": [1]},
    {"columns": "abcd"},
    {"columns": [1, 2]},
    {"columns": [["a"]]},
    {"missing_values": "?"},
    {"missing_values": [None]},
    {"missing_values": {"a": 1}},
    {"format": "exec"},
    {"format": ["lines"]},
    {"headers": 3},
    {"headers": [3]},
    {"headers": {"keep": 1}},
    {"classes_at": 0},
    {"classes_at": "2"},
    {"class_from": "spm*=spam"},
    {"class_from": {"spm*": 1}},
    {"class_from": {}},
]


@pytest.mark.parametrize("reading", HOSTILE, ids=lambda reading: str(reading)[:40])
def test_settings_that_cannot_be_are_refused(reading):
    files({"t.csv": table("/")})
    tally = bb.count("t.csv", "kind", delimiter="/")
    network: Any = bb.BeliefNetwork.count("t.csv", {"kind": ["colour"]}, delimiter="/")

    def of_tally(about: dict[str, Any]) -> dict[str, Any]:
        about["tally"]["schema"]["reading"] = reading
        return about

    def of_network(about: dict[str, Any]) -> dict[str, Any]:
        about["network"]["reading"] = reading
        return about

    for thing, change in ((tally, of_tally), (network, of_network)):
        assert from_bytes(rewritten(to_bytes(thing), lambda about: about), "it") == thing
        with pytest.raises(errors.BadFile, match="its contents do not fit together"):
            from_bytes(rewritten(to_bytes(thing), change), "it")
