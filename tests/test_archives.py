"""Tables in zip archives and compressed files; what is packed so that it fills memory; what is no table at all."""

from __future__ import annotations

import gzip
import io
import os
import shlex
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import banbury as bb
from banbury import errors
from banbury.cli import main
from banbury.reading import blocks, read

CSV = "size,kind\n1.5,a\n2.5,b\n1.0,a\n3.0,b\n"
ARFF = "@relation r\n@attribute size numeric\n@attribute kind {a,b}\n@data\n1.5,a\n2.5,b\n1.0,a\n3.0,b\n"
NDJSON = "".join(
    f'{{"size": {size}, "kind": "{kind}"}}\n' for size, kind in ((1.5, "a"), (2.5, "b"), (1.0, "a"), (3.0, "b"))
)


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANBURY_PROGRESS", "0")


def packed(name: str, members: dict[str, str | bytes]) -> str:
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return name


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("t.csv", CSV),
        ("a folder/t.csv", CSV),
        ("t.tsv", CSV.replace(",", "\t")),
        ("t.ndjson", NDJSON),
        ("t.arff", ARFF),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0)),
        ("table", CSV),
    ],
    ids=["csv", "folder", "tsv", "ndjson", "arff", "gz", "unnamed"],
)
def test_the_one_table_of_an_archive_is_read(member, content):
    Path("t.csv").write_text(CSV)
    expected = bb.count("t.csv", target="kind")
    path = packed("t.zip", {member: content, "__MACOSX/._t.csv": "x", ".hidden": "y"})
    for each in (path, f"{path}/{member}", Path(path), [path]):
        assert bb.count(each, target="kind", schema=expected.schema) == expected
    assert next(iter(read(path))).source == os.path.join(path, member)
    assert bb.estimate(expected).predict(path).tolist() == ["a", "b", "a", "b"]
    assert bb.cross_validate(path, target="kind", folds=2).classes == ("a", "b")


def test_a_table_among_other_files_is_found():
    assert bb.count(packed("t.zip", {"README": "read me", "names.doc": "x", "t.csv": CSV}), target="kind").n_rows == 4


def test_several_tables_are_named():
    path = packed("t.zip", {"train.csv": CSV, "test.csv": CSV, "README": "x"})
    with pytest.raises(errors.BadFile, match=r"contains the 2 files train.csv, test.csv, .* Name one: t.zip/train.csv"):
        read(path)
    assert bb.count("t.zip/test.csv", target="kind").n_rows == 4
    with pytest.raises(
        errors.BadFile, match=r"t.zip does not contain 'tset.csv'. Did you mean 'test.csv'\? It contains train.csv, "
    ):
        read("t.zip/tset.csv")


def test_an_archive_of_texts_is_to_be_unpacked():
    with pytest.raises(errors.BadFile, match="contains the 2 files spam/1, ham/1"):
        read(packed("t.zip", {"spam/1": "x", "ham/1": "y"}))
    with pytest.raises(errors.BadFile, match="contains no file"):
        read(packed("empty.zip", {}))


def test_what_is_no_archive_is_named():
    Path("t.zip").write_text(CSV)
    with pytest.raises(errors.BadFile, match="it is not a zip archive, or it is damaged"):
        read("t.zip")
    whole = Path(packed("whole.zip", {"t.csv": CSV * 1000})).read_bytes()
    Path("broken.zip").write_bytes(whole.replace(whole[60:70], b"0123456789"))
    with pytest.raises(errors.BadFile, match=r"broken.zip.*damaged"):
        list(read("broken.zip"))
    packed("book.zip", {"[Content_Types].xml": "x", "xl/sheet.xml": "y"})
    with pytest.raises(errors.BadFile, match=r"office document. Save the sheet as CSV"):
        read("book.zip")
    Path("t.csv").write_bytes(whole)
    with pytest.raises(errors.BadFile, match=r"contains a zip archive or a spreadsheet.*Rename it to end in .zip"):
        read("t.csv")


def test_an_encrypted_archive_is_named():
    path = Path(packed("t.zip", {"t.csv": CSV}))
    data = bytearray(path.read_bytes())
    for begin, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(begin) + at] |= 1
    path.write_bytes(data)
    with pytest.raises(errors.BadFile, match=r"t.zip/t.csv: it cannot be unpacked .*encrypted"):
        read("t.zip")


def test_parquet_in_an_archive_is_to_be_taken_out(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table({"a": [1]}), buffer)
    with pytest.raises(errors.BadFile, match=r"it contains Parquet.*extract it"):
        read(packed("t.zip", {"t.parquet": buffer.getvalue()}))


@pytest.mark.parametrize("name", ["bomb.zip", "bomb.csv.gz"])
@pytest.mark.parametrize("line", [b"1,a\n", b"\n", b"x"])
def test_what_unpacks_without_end_is_refused(name, line, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_UNPACKED", 1 << 22)
    monkeypatch.setattr(blocks, "BLOCK", 1 << 18)
    content = b"size,kind\n" + line * ((8 << 20) // len(line))
    if name.endswith("zip"):
        packed(name, {"t.csv": content})
    else:
        Path(name).write_bytes(gzip.compress(content))
    with pytest.raises(errors.BadFile, match=r"unpacks to more than 4 MB, 200 times its size"):
        bb.count(name, target="kind", features={"size": "gaussian"})


def test_a_file_that_is_merely_large_is_read(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_UNPACKED", 1 << 10)
    path = packed(
        "t.zip", {"t.csv": "size,kind\n" + "".join(f"{n * 7919 % 1009},{'ab'[n % 2]}\n" for n in range(5000))}
    )
    assert bb.count(path, target="kind").n_rows == 5000


def test_archives_of_tar_and_markup_are_refused_with_a_word():
    with tarfile.open("t.tar.gz", "w:gz") as archive:
        Path("t.csv").write_text(CSV)
        archive.add("t.csv")
    with pytest.raises(errors.BadFile, match=r"it is a tar archive. Unpack it with tar xf"):
        read("t.tar.gz")
    Path("reut2.sgm").write_text('<!DOCTYPE lewis SYSTEM "lewis.dtd">\n<REUTERS TOPICS="YES">\n<BODY>Showers</BODY>\n')
    Path("t.xml").write_text("<rows><row/></rows>")
    for path in ("reut2.sgm", "t.xml"):
        with pytest.raises(
            errors.BadFile, match=r"it contains markup \(SGML or XML\), not a table.*one row per document"
        ):
            read(path)
    Path("ticks.csv").write_text("<DATE>,<OPEN>\n20010403,1.5\n20010404,2.5\n")
    assert next(iter(read("ticks.csv"))).names == ("<DATE>", "<OPEN>")


def test_the_command_line_reads_archives(capsys):
    def said(line: str) -> tuple[int, Any]:
        code = main(shlex.split(line))
        return code, capsys.readouterr()

    packed("t.zip", {"train.csv": CSV, "test.csv": CSV})
    code, output = said("fit t.zip --target kind")
    assert code == 1 and "Name one: t.zip/train.csv" in output.err
    assert said("fit t.zip/train.csv --target kind -o m.banbury")[0] == 0
    assert said("evaluate m.banbury t.zip/test.csv")[0] == 0
    code, output = said("fit t.zip/none.csv --target kind")
    assert code == 1 and "t.zip does not contain 'none.csv'" in output.err
