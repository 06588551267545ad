"""banbury.reading: documents, folders, mail and HTML → texts."""

import base64
import collections
import email
import email.header
import email.message
import gzip
import html.parser
import os
import random
import re
import tarfile
import time
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
from banbury import errors
from banbury.reading import documents, mail, read
from banbury.reading.decoding import decode, decode_file, html_encoding, html_text
from banbury.reading.mail import begins_as_mail, begins_as_post, message_cells, message_text, messages

SUBJECT = ["subject"]


def write(path, content=b""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(source):
    """Every row as (class, text), or the text alone."""
    found = []
    for batch in source:
        texts = batch.texts("text")
        if "class" not in batch.names:
            found += texts
            continue
        codes = batch.codes("class")
        found += zip([codes.values[code - codes.low] for code in codes.codes.tolist()], texts, strict=True)
    return found


def names(source):
    return [os.path.basename(name) for batch in source for name in batch.row_names]


def text(*lines, headers=SUBJECT):
    """The text of a message that is not broken."""
    found, broken = message_text("\n".join(lines).encode("utf-8", "surrogateescape"), headers)
    assert not broken
    return found


# Folders.


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "spam/b.txt", "cheap meds")
    write(tmp_path / "spam/a", "buy now")
    write(tmp_path / "spam/deep/er/c.TXT", "win")
    write(tmp_path / "ham/z.eml", "Subject: lunch\nReceived: here\n\nat noon?")
    write(tmp_path / "ham/page.html", "<title>News</title><p>of the <b>day</b>")
    return tmp_path


ALL = [
    ("ham", "\nNews\n\nof the day"),
    ("ham", "lunch\nat noon?"),
    ("spam", "buy now"),
    ("spam", "cheap meds"),
    ("spam", "win"),
]


def test_a_folder_with_a_sub_folder_per_class_is_read_in_order(folder):
    assert rows(read(folder)) == rows(read(str(folder))) == rows(read(f"{folder}/")) == ALL
    [batch] = read(folder)
    assert (batch.names, batch.named, batch.kind("class")) == (("class", "text"), True, "string")
    assert (batch.is_text("text"), batch.is_text("class"), batch.categorical("class")) == (True, False, False)
    assert batch.row_names[0] == str(folder / "ham/page.html") and batch.source == str(folder)


def test_a_folder_of_files_has_no_classes(tmp_path):
    for name in "cab":
        write(tmp_path / name, f"text {name}")
    [batch] = read(tmp_path)
    assert batch.names == ("text",) and batch.texts("text") == ["text a", "text b", "text c"]


def test_hidden_files_and_folders_are_ignored(folder):
    write(folder / ".git/config", "x")
    write(folder / "spam/.hidden", "x")
    write(folder / ".hidden", "x")
    assert rows(read(folder)) == ALL


def test_files_beside_the_sub_folders_are_ignored_with_a_warning(folder):
    write(folder / "README", "x")
    write(folder / "index.html", "x")
    with pytest.warns(errors.BanburyWarning, match="the 2 files beside the folders are ignored"):
        assert rows(read(folder)) == ALL


def test_sub_folders_without_files_do_not_make_classes(tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "a.txt", "a text")
    assert rows(read(tmp_path)) == ["a text"]
    write(tmp_path / "full/b.txt", "b")
    with pytest.warns(errors.BanburyWarning, match="the 1 file beside"):
        assert rows(read(tmp_path)) == [("full", "b")]


@pytest.mark.parametrize("inside", [[], ["one", "two/three"]])
def test_a_folder_without_files_is_refused(tmp_path, inside):
    for name in inside:
        (tmp_path / name).mkdir(parents=True)
    with pytest.raises(errors.EmptyData, match=r"it contains no files\. Use a folder with one sub-folder"):
        read(tmp_path)


def test_links_that_lead_back_end(folder):
    os.symlink(folder, folder / "spam/all")
    os.symlink(folder / "spam", folder / "spam/deep/again")
    os.symlink("loop", folder / "spam/loop")
    with pytest.warns(errors.BanburyWarning, match=r"1 of 6 files .*loop \(Too many levels of symbolic links\)"):
        assert rows(read(folder)) == ALL


def test_links_to_files_and_folders_are_followed(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write(elsewhere / "x", "linked")
    os.symlink(elsewhere, folder / "more")
    os.symlink(elsewhere / "x", folder / "spam/x")
    assert rows(read(folder)) == [*ALL[:2], ("more", "linked"), *ALL[2:], ("spam", "linked")]


def test_unreadable_files_are_named_skipped_and_counted(folder):
    os.symlink("nowhere", folder / "spam/gone")
    os.mkfifo(folder / "spam/pipe")
    write(folder / "spam/scan.pdf", b"%PDF-1.4\n\xff")
    write(folder / "ham/text.gz", b"not compressed")
    with pytest.warns(errors.BanburyWarning) as caught:
        assert rows(read(folder)) == ALL
    [message] = [str(warning.message) for warning in caught]
    assert (
        "4 of 9 files" in message and "gone (No such file" in message and "pipe (it is not a regular file)" in message
    )
    assert "scan.pdf (it contains a PDF, not text)" in message and "text.gz (" in message


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_files_and_folders_without_permission_are_skipped(folder):
    (folder / "spam/b.txt").chmod(0)
    (folder / "spam/deep").chmod(0)
    with pytest.warns(errors.BanburyWarning, match="2 of 5 files"):
        assert rows(read(folder)) == ALL[:3]


def test_a_source_warns_once(folder):
    os.symlink("nowhere", folder / "spam/gone")
    source = read(folder)
    with pytest.warns(errors.BanburyWarning) as caught:
        assert rows(source) == rows(source) == ALL
    assert len(caught) == 1


def test_a_folder_of_which_nothing_can_be_read_is_refused(tmp_path):
    os.mkfifo(write(tmp_path / "spam/x").with_name("pipe"))
    os.remove(tmp_path / "spam/x")
    with pytest.raises(errors.BadFile, match=r"pipe: it is not a regular file\."):
        list(read(tmp_path))
    os.symlink("nowhere", tmp_path / "spam/gone")
    with pytest.raises(errors.BadFile, match=r"none of the 2 files can be read\.\n  .*gone \(No such file"):
        list(read(tmp_path))


def test_a_file_that_vanishes_before_it_is_read_is_skipped(folder):
    source = read(folder)
    os.remove(folder / "spam/a")
    with pytest.warns(errors.BanburyWarning, match=r"spam/a \(No such file or directory\)"):
        assert rows(source) == [row for row in ALL if row[1] != "buy now"]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_batches_are_of_bounded_size(tmp_path, monkeypatch, threads):
    monkeypatch.setenv("BANBURY_THREADS", threads)
    monkeypatch.setattr(documents, "BATCH_CHARACTERS", 100)
    for number in range(40):
        write(tmp_path / f"{'ab'[number > 20]}/{number:02}", "x" * 30)
    batches = list(read(tmp_path))
    assert [batch.n_rows for batch in batches] == [4] * 10
    assert [batch.first_row for batch in batches] == list(range(0, 40, 4))
    assert [batch.share for batch in batches] == [(k + 1) / 10 for k in range(10)]
    assert [batch.codes("class").values for batch in batches[4:7]] == [["a"], ["a", "b"], ["b"]]
    assert [batch.n_rows for batch in read(tmp_path, batch_rows=25)] == [4] * 10
    monkeypatch.setattr(documents, "BATCH_CHARACTERS", 10**6)
    assert [batch.n_rows for batch in read(tmp_path, batch_rows=25)] == [25, 15]
    assert [name for batch in batches for name in batch.row_names] == next(iter(read(tmp_path))).row_names
    assert batches[0].slice(1, 3).row_names == batches[0].row_names[1:3]


def test_validation_reads_each_file_once(folder, monkeypatch):
    beginnings = []
    beginning = documents.beginning
    monkeypatch.setattr(documents, "beginning", lambda path: beginnings.append(path) or beginning(path))
    bb.cross_validate(folder, folds=2)
    assert len(beginnings) == len(set(beginnings)) > 0


def test_reading_may_be_broken_off(folder):
    source = iter(read(folder, batch_rows=1))
    next(source)
    source.close()


def test_an_empty_file_is_an_empty_text(tmp_path):
    write(tmp_path / "a/empty")
    assert rows(read(tmp_path)) == [("a", "")]


def test_names_of_classes_and_files_may_be_any_bytes(tmp_path):
    write(tmp_path / os.fsdecode(b"caf\xe9") / os.fsdecode(b"\xff"), "a text")
    write(tmp_path / "日本" / "naïve", "b")
    assert rows(read(tmp_path)) == [("café", "a text"), ("日本", "b")]
    assert names(read(tmp_path)) == ["ÿ", "naïve"]


def test_columns_of_a_folder_may_be_named(folder):
    [batch] = read(folder, columns=["label", "body"])
    assert batch.names == ("label", "body") and batch.is_text("body")


def test_an_unknown_column_of_a_folder_is_named(folder):
    [batch] = read(folder)
    with pytest.raises(errors.UnknownColumn, match="no column 'klass'") as caught:
        batch.codes("klass")
    assert "header" not in str(caught.value)


def test_every_file_in_a_class_is_a_document(tmp_path):
    write(tmp_path / "a/table.csv", "x,y\n1,2\n")
    write(tmp_path / "a/table.json", '{"x": 1}')
    assert rows(read(tmp_path)) == [("a", "x,y\n1,2\n"), ("a", '{"x": 1}')]


def test_a_folder_of_tables_is_a_table_in_parts(tmp_path):
    write(tmp_path / "2.csv", "x,y\n3,4\n")
    write(tmp_path / "1.csv", "x,y\n1,2\n")
    write(tmp_path / "_SUCCESS")
    assert [batch.numbers(["x"])[0].tolist() for batch in read(tmp_path)] == [[1], [3]]
    assert rows(read(tmp_path, format="text")) == ["x,y\n1,2\n", "x,y\n3,4\n", ""]
    write(tmp_path / "notes.txt", "the limit for a text")
    assert len(rows(read(tmp_path))) == 4


# Files and patterns.


def test_a_pattern_is_the_files_that_match_it(folder):
    assert rows(read(f"{folder}/ham/*.eml")) == ["lunch\nat noon?"]
    assert rows(read(f"{folder}/**/*.[eh]*ml")) == ["\nNews\n\nof the day", "lunch\nat noon?"]
    assert rows(read(f"{folder}/spam/*", format="text")) == ["buy now", "cheap meds"]
    assert rows(read(f"{folder}/spam/*.txt", format="text")) == ["cheap meds"]


def test_a_pattern_of_tables_is_a_table_in_parts(tmp_path):
    for number in (2, 1):
        write(tmp_path / f"{number}.csv", f"x,y\n{number},a\n")
    assert [batch.numbers(["x"])[0].tolist() for batch in read(f"{tmp_path}/?.csv")] == [[1], [2]]


def test_a_pattern_of_folders_is_all_of_them(tmp_path):
    for part in ("train", "test"):
        write(tmp_path / part / "spam" / "1", part)
    assert rows(read(f"{tmp_path}/t*")) == rows(read([f"{tmp_path}/test/", f"{tmp_path}/train/"]))
    assert rows(read(f"{tmp_path}/t*")) == [("spam", "test"), ("spam", "train")]


def test_a_pattern_without_matches_is_refused(tmp_path):
    with pytest.raises(errors.BadFile, match="no file matches this pattern"):
        read(f"{tmp_path}/*.eml")


def test_a_file_with_the_signs_of_a_pattern_in_its_name_is_a_file(tmp_path):
    assert rows(read(write(tmp_path / "a[1].eml", "Subject: b\n\nc"))) == ["b\nc"]


def test_a_list_of_documents_is_read_in_its_order(folder):
    paths = [folder / "ham/z.eml", folder / "ham/page.html"]
    assert rows(read(paths)) == rows(read([*map(str, paths)])) == ["lunch\nat noon?", "\nNews\n\nof the day"]
    assert names(read(paths)) == ["z.eml", "page.html"]
    with pytest.warns(
        errors.BanburyWarning, match=r"1 of 3 files cannot be read and were skipped: .*gone\.eml \(No such file"
    ):
        assert len(rows(read([*paths, folder / "gone.eml"]))) == 2


def test_files_without_an_ending_may_be_listed_if_they_are_there(folder):
    assert rows(read([str(folder / "spam/a")], format="text")) == ["buy now"]


@pytest.mark.parametrize("name", ["a.eml", "a.mbox", "a.html"])
def test_a_document_may_be_given_by_its_path(tmp_path, name):
    content = "From a@b Wed Aug 28 10:49:27 2002\nSubject: a <b>\n\nc" if name == "a.mbox" else "Subject: a <b>\n\nc"
    [batch] = read(write(tmp_path / name, content))
    expected = "Subject: a \n\nc" if name == "a.html" else "a <b>\nc"
    assert (batch.names, batch.texts("text"), names([batch])) == (("text",), [expected], [name])


def test_a_file_is_one_text_if_the_format_says_so(tmp_path):
    path = write(tmp_path / "notes.txt", "a,b\nand <b>so</b> on,c\n")
    assert next(iter(read(path))).names == ("a", "b")
    assert rows(read(path, format="text")) == ["a,b\nand <b>so</b> on,c\n"]
    assert rows(read(path, format="html")) == ["a,b\nand so on,c\n"]
    assert rows(read(write(tmp_path / "empty.txt"), format="text")) == [""]


def test_the_format_overrides_the_endings(folder):
    assert rows(read(folder, format="text"))[0] == ("ham", "<title>News</title><p>of the <b>day</b>")
    assert rows(read(folder, format="html"))[1] == ("ham", "Subject: lunch\nReceived: here\n\nat noon?")
    with pytest.warns(errors.BanburyWarning, match="4 of 5 messages .* are broken"):
        assert rows(read(folder, format="mail"))[2] == ("spam", "buy now")


def test_compressed_documents_are_read(tmp_path):
    box = b"From a Wed Aug 28 10:49:27 2002\nSubject: one\n\n1\n\nFrom a Wed Aug 28 10:49:27 2002\nSubject: two\n\n2\n"
    write(tmp_path / "a/box.mbox.gz", gzip.compress(box, mtime=0))
    write(tmp_path / "a/text.txt.gz", gzip.compress(b"a text", mtime=0))
    assert rows(read(tmp_path)) == [("a", "one\n1\n\n"), ("a", "two\n2\n"), ("a", "a text")]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"format": "emails"}, "format must be one of 'auto', 'text', 'lines', 'mail', 'html'. Got 'emails'"),
        (
            {"headers": "subject"},
            "headers must be 'keep', 'drop', 'columns' or a list of header names. Got 'subject'",
        ),
        ({"headers": [1]}, "headers must be"),
        ({"headers": 1}, "headers must be"),
    ],
)
def test_options_are_checked(tmp_path, options, message):
    with pytest.raises(errors.BadSetting, match=message):
        read(tmp_path, **options)


def test_a_text_given_as_a_path_is_told_of(tmp_path):
    for given_text in ("cheap meds online", "is it cheap?", "x" * 5000):
        with pytest.raises(errors.BadFile, match="To classify a text instead of a file"):
            read(given_text)


# What a file is.


@pytest.mark.parametrize(
    "begin, is_mail",
    [
        ("From ilug-admin@linux.ie  Wed Aug 28 10:49:27 2002\nReturn-Path: <a>\n\nx", True),
        ("From - Mon Apr 27 06:35:14 2020\nX-Mozilla-Status: 0001\n\nx", True),
        ("From 1665@xxx Mon Apr 27 06:35:14 +0000 2020\nX-GM-THRID: 1665\n\nx", True),
        ("From a Sat Jan  3 1:05 EST 1996\n>From b\nTo: c\n\nx", True),
        ("Return-Path: <a@b>\nTo: c\n\nx", True),
        ("received: from a by b\nTo: c\n\nx", True),
        ("Delivered-To: a@b\n\nx", True),
        ("From: a@b (A B)\nSubject: x\n\nx", False),
        ("Xref: cantaloupe alt.atheism:1\nFrom: a@b\n\nx", False),
        ("Newsgroups: alt.atheism\nReceived: by a\n\nx", False),
        ("Path: a!b!c\nFrom: a@b\n\nx", False),
        ("From 10:30 to 12:00 on 3 May 2002\nwe meet.\n", False),
        ("From here to eternity\nSubject: film\n", False),
        ("Received with thanks.\n", False),
        ("", False),
    ],
)
def test_delivered_mail_is_known_by_its_beginning(tmp_path, begin, is_mail):
    assert begins_as_mail(begin.encode()) is is_mail
    write(tmp_path / "a/without_ending", begin)
    write(tmp_path / "a/x.txt", begin)
    [(_, found), (_, plain)] = rows(read(tmp_path))
    assert plain == begin and (found != begin) is is_mail


def test_html_is_known_by_its_beginning(tmp_path):
    write(tmp_path / "a/1", "\n<!DOCTYPE HTML><p>a <b>bo</b>dy")
    write(tmp_path / "a/2", "<HTML><p>a <b>bo</b>dy")
    write(tmp_path / "a/3", "<p>a <b>bo</b>dy")
    assert [found for _, found in rows(read(tmp_path))] == ["\n\na body", "\n\na body", "<p>a <b>bo</b>dy"]


# Mail.


def test_a_message_is_its_subject_and_its_text():
    assert text("From: a@b", "Subject: Lunch", "To: c@d", "", "at noon?", "", "A.") == "Lunch\nat noon?\n\nA."


HEADERS = ("From: =?utf-8?q?J=C3=BCrgen?= <j@b>", "Subject: Lunch", "X-Mailer: none", "Received: one", "received: two")


@pytest.mark.parametrize(
    "headers, expected",
    [
        (
            "keep",
            "From: Jürgen <j@b>\nSubject: Lunch\nX-Mailer: none\nReceived: one\nreceived: two\nbody",
        ),
        ("drop", "body"),
        ([], "body"),
        (["subject"], "Lunch\nbody"),
        (["Received", "FROM"], "Jürgen <j@b>\none\ntwo\nbody"),
        (("no-such",), "body"),
    ],
)
def test_headers_are_kept_dropped_or_chosen(tmp_path, headers, expected):
    assert text(*HEADERS, "", "body", headers=headers) == expected
    write(tmp_path / "a/1.eml", "\r\n".join([*HEADERS, "", "body"]))
    assert rows(read(tmp_path, headers=headers)) == [("a", expected)]


@pytest.mark.parametrize(
    "subject, expected",
    [
        ("=?utf-8?q?Gr=C3=BC=C3=9Fe_an_alle?=", "Grüße an alle"),
        ("=?ISO-8859-1?B?R3L832U=?= von =?iso-8859-1?Q?J=FCrgen?=", "Grüße von Jürgen"),
        ("=?utf-8?b?w6Q=?= =?utf-8?b?w7Y=?=\n =?utf-8?b?w7w=?=", "äöü"),
        ("=?utf-8?b?w6R+?= =?utf-8?b?w7bD?= =?utf-8?b?vA==?=", "ä~öü"),
        ("=?iso-2022-jp?b?GyRCRnxLXBsoQg==?=", "日本"),
        ("=?gb2312?B?xOO6ww==?= x", "你好 x"),
        ("=?utf-8*de?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("two\n\tlines", "two\tlines"),
        ("Grüße", "Grüße"),
        ("2 =? 3 and =?utf-8?x?no?=", "2 =? 3 and =?utf-8?x?no?="),
        ("", ""),
    ],
)
def test_encoded_words_are_decoded(subject, expected):
    assert text(f"Subject: {subject}", "", "") == expected


def test_a_subject_in_latin_1_is_read():
    assert message_text(b"Subject: Gr\xfc\xdfe\n\nb\xf6se", SUBJECT) == ("Grüße\nböse", False)


@pytest.mark.parametrize(
    "declared, encoding, words",
    [
        ("utf-8", "utf-8", "Grüße 😀"),
        ("iso-8859-1", "latin-1", "Grüße"),
        ("windows-1251", "cp1251", "Привет"),
        ("koi8-r", "koi8-r", "Привет"),
        ("big5", "big5", "中文"),
        ("iso-2022-jp", "iso-2022-jp", "日本語"),
        ("shift_jis", "shift_jis", "日本語"),
        ("utf-7", "utf-7", "日本語 + 1"),
        ("utf-16", "utf-16", "Grüße"),
        ("us-ascii", "latin-1", "Grüße"),
        ("iso-8859-1", "utf-8", "Grüße"),
        ("'UTF-8'", "utf-8", "Grüße"),
    ],
)
@pytest.mark.parametrize("transfer", ["8bit", "base64", "quoted-printable"])
def test_bodies_in_any_charset_and_encoding_are_read(declared, encoding, words, transfer):
    data = words.encode(encoding)
    if transfer == "base64":
        data = base64.encodebytes(data)
    elif transfer == "quoted-printable":
        data = b"".join(f"={byte:02X}".encode() for byte in data)
    elif encoding == "utf-16":
        return
    head = f'Content-Type: text/plain; charset="{declared}"\nContent-Transfer-Encoding: {transfer.upper()}\n\n'
    assert message_text(head.encode() + data, SUBJECT) == (words, False)


def test_uuencoded_bodies_are_read():
    assert text("Content-Transfer-Encoding: x-uuencode", "", "begin 644 a.txt", "%:&5L;&\\", "`", "end", "") == "hello"


MIXED = """Subject: report
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="=_b 1"

This is for readers without MIME.
--=_b 1
Content-Type: text/plain; charset=utf-8

See the file.
--=_b 1
Content-Type: application/pdf; name="=?utf-8?q?Bericht_M=C3=A4rz.pdf?="
Content-Disposition: attachment
Content-Transfer-Encoding: base64

JVBERi0xLjQK
--=_b 1
Content-Type: text/csv
Content-Disposition: attachment; filename*=utf-8''Zahlen%20M%C3%A4rz.csv

secret,numbers
--=_b 1
Content-Type: image/png
Content-Disposition: inline; filename*0="a long na"; filename*1*=%6De; filename*2=.png

xxxx
--=_b 1
Content-Type: text/html

<p>And a <b>la</b>st word.<script>secret()</script>
--=_b 1--
The epilogue is secret.
"""


def test_of_attachments_only_the_names_are_read():
    found = text(*MIXED.splitlines())
    assert "secret" not in found and "JVBER" not in found and "readers without" not in found
    assert [line for line in found.split("\n") if line] == [
        "report",
        "See the file.",
        "And a last word.",
        "Bericht März.pdf",
        "Zahlen März.csv",
        "a long name.png",
    ]


def alternative(plain, rich):
    return (
        "Content-Type: multipart/alternative; boundary=b",
        "",
        "--b",
        "Content-Type: text/plain",
        "",
        plain,
        "--b",
        "Content-Type: text/html",
        "",
        rich,
        "--b--",
    )


def test_of_alternatives_the_plain_one_is_read_if_it_has_words():
    assert text(*alternative("plain words", "<p>rich words")) == "plain words"
    assert text(*alternative(" . \n--\n", "<p>rich words")).strip(" .\n-") == "rich words"


NESTED = """Subject: Fwd
Content-Type: multipart/mixed; boundary=outer

--outer
Content-Type: multipart/related; boundary=outer-inner

--outer-inner

deep text
--outer-inner--
--outer
Content-Type: message/rfc822
Content-Disposition: attachment; filename=old.eml

Subject: the old one
From: x@y

was short
--outer
Content-Type: multipart/digest; boundary=d

--d

Subject: digested

first
--d--
--outer--
"""


def test_messages_within_messages_are_read():
    assert text(*NESTED.splitlines()).split("\n") == [
        "Fwd",
        "deep text",
        "the old one",
        "was short",
        "digested",
        "first",
        "old.eml",
    ]
    assert "subject" in text(*NESTED.splitlines(), headers="keep").lower()


BROKEN = {
    "no blank line": (b"Subject: a\nTo: b\nand a body", "a\nand a body"),
    "no header": (b"just some\nwords", "just some\nwords"),
    "no boundary": (b"Content-Type: multipart/mixed\n\n--x\n\nwords\n--x--", "--x\n\nwords\n--x--"),
    "another boundary": (b"Content-Type: multipart/mixed; boundary=y\n\n--x\n\nwords", "--x\n\nwords"),
    "no end": (b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nwords\n--x\n\nmore", "words\nmore"),
    "cut off": (b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Ty", "Content-Ty"),
    "bad base64": (b"Content-Transfer-Encoding: base64\n\naGVs*bG8g\nd29ybGQ\n!", "hello world"),
    "bad base64 in a header": (b"Subject: =?utf-8?b?aGVsbG8gd29ybGQ?=\n\n", "hello world"),
    "unknown charset": (b"Content-Type: text/plain; charset=x-no-such\n\nb\xf6se", "böse"),
    "unknown charset in a header": (b"Subject: =?x-no?q?b=F6se?=\n\n", "böse"),
    "a charset that is none": (b"Content-Type: text/plain; charset=unicode_escape\n\n\\u0041\xf6", "\\u0041ö"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_of_a_broken_message_is_read_what_can_be(name):
    data, expected = BROKEN[name]
    assert message_text(data, SUBJECT) == (expected, True)
    assert message_text(data.replace(b"\n", b"\r\n"), SUBJECT) == (expected.replace("\n--", "\n--"), True)


def test_plain_ascii_in_an_unknown_charset_is_whole():
    data = b'Content-Type: text/plain; charset="DEFAULT"\nSubject: =?x-no?q?lunch?=\n\nat noon'
    assert message_text(data, SUBJECT) == ("lunch\nat noon", False)


def test_headers_that_no_message_had_are_told_once(tmp_path):
    for name in ("a/1", "b/2"):
        write(tmp_path / name, "From: somebody\nSubject: a post\n\nbody")
    source = read(tmp_path, headers="drop")
    with pytest.warns(errors.BanburyWarning, match="was read as mail, so headers= had no effect") as caught:
        found = rows(source), rows(source)
    assert len(caught) == 1 and found[0] == found[1] and found[0][0] == ("a", "From: somebody\nSubject: a post\n\nbody")
    assert rows(read(tmp_path, headers="drop", format="mail")) == [("a", "body"), ("b", "body")]  # and no warning


def test_broken_messages_are_counted_in_one_warning(tmp_path):
    for number, (data, _) in enumerate(BROKEN.values()):
        write(tmp_path / f"a/{number:02}.eml", data)
    write(tmp_path / "a/good.eml", "Subject: a\n\nb")
    with pytest.warns(errors.BanburyWarning) as caught:
        found = rows(read(tmp_path))
    assert [row[1] for row in found] == [expected for _, expected in BROKEN.values()] + ["a\nb"]
    assert len(caught) == 1 and f"{len(BROKEN)} of {len(BROKEN) + 1} messages" in str(caught[0].message)
    assert "00.eml" in str(caught[0].message)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b":",
        b"Subject",
        b"Subject:",
        b"From \n",
        b"\xff\xfe\0\0",
        b"Content-Type:;;;=\n\nx",
        b"Content-Type: multipart/mixed; boundary=\n\nx",
        b'Content-Type: multipart/mixed; boundary="\n\nx',
        b"Content-Type: multipart/mixed; boundary=x\n\n--x--\n",
        b"Content-Type: text/plain; charset*=';;\n\nx",
        b"Content-Type: text/plain; charset*99999999999=x; charset*-1=y\n\nx",
        b"Content-Disposition: attachment; filename*=no'such''%zz\n\nx",
        b"Content-Transfer-Encoding: base64\n\n=",
        b"Content-Transfer-Encoding: x-uuencode\n\n\xff\xff",
    ],
)
def test_odd_messages_are_read(data):
    for headers in ("keep", "drop", SUBJECT):
        found, broken = message_text(data, headers)
        assert isinstance(found, str) and isinstance(broken, bool)


def deep(levels):
    opened = "".join(f"Content-Type: multipart/mixed; boundary=b{k}\n\n--b{k}\n" for k in range(levels))
    return f"Subject: deep\n{opened}\nbottom\n".encode()


HOSTILE = {
    "depth": deep(10_000),
    "messages within messages": b"Content-Type: message/rfc822\n\n" * 20_000 + b"x",
    "parts": b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 100_000,
    "headers": b"X: y\n" * 200_000 + b"\nx",
    "a long header": b"Subject: x" + b"\n y" * 300_000 + b"\n\nx",
    "parameters": b"Content-Type: text/plain" + b";x=1" * 300_000 + b"\n\nx",
    "semicolons": b"Content-Type: text/plain" + b"; " * 500_000 + b"\n\nx",
    "numbered parameters": b"Content-Type: text/plain" + b"".join(b";a*%d*=x" % k for k in range(50_000)) + b"\n\nx",
    "encoded words": b"Subject: " + b"=?utf-8?q?x?= " * 50_000 + b"\n\nx",
    "question marks": b"Subject: " + b"=?" * 500_000 + b"\n\nx",
    "quotes": b'Content-Type: text/plain; x="' + b'\\"' * 500_000 + b"\n\nx",
    "a charset": b"Content-Type: text/plain; charset=" + b"x" * 1_000_000 + b"\n\nx",
    "idna": b"Content-Type: text/plain; charset=idna\n\n" + b"\xe9" * 1_000_000,
    "near boundaries": b"Content-Type: multipart/mixed; boundary=b\n\n--b\n\n" + b"--bb\n" * 300_000,
    "postmarks": b"From " + b"1:11 " * 200_000 + b"\n\n" + b"From 1:11 \n\n" * 100_000,
    "comments": b"Content-Type: text/html\n\n" + b"<!-- " * 200_000,
    "scripts": b"Content-Type: text/html\n\n" + b"<script " * 200_000,
    "opened scripts": b"Content-Type: text/html\n\n" + b"<script>" * 200_000,
    "open tags": b"Content-Type: text/html\n\n" + b'<a ">"' * 200_000 + b"<a '" * 200_000,
    "entities": b"Content-Type: text/html\n\n" + b"&" * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_messages_take_a_time_in_proportion_to_their_length(name):
    began = time.process_time()
    message_text(HOSTILE[name], "keep")
    list(messages(HOSTILE[name].splitlines(keepends=True)))
    assert time.process_time() - began < 60  # one second is usual; the square of the length would be hours


def test_the_depth_of_messages_is_limited():
    found, broken = message_text(deep(1000), SUBJECT)
    assert broken and found == "deep"
    assert message_text(deep(mail.DEEPEST), SUBJECT)[0] == "deep\nbottom\n"


# Mailboxes.

MBOX = b"""From a@b Wed Aug 28 10:49:27 2002
Subject: one

first

>From here on, quoted.
>>From twice.

From here to 10:30 in 2002
a line that is no postmark

From c@d Thu Aug 29 11:00:00 2002
>From e@f Thu Aug 29 11:00:01 2002
Subject: two

second

From g@h Fri Aug 30 1:00 2002
not a header

From i@j Fri Aug 30 12:00:00 +0000 2002
Subject: three

"""


def test_a_mailbox_is_one_row_per_message(tmp_path):
    expected = [
        "one\nfirst\n\nFrom here on, quoted.\n>From twice.\n\nFrom here to 10:30 in 2002\na line that is no postmark\n\n",
        "two\nsecond\n\nFrom g@h Fri Aug 30 1:00 2002\nnot a header\n\n",
        "three",
    ]
    for name in ("box.mbox", "box.MBX", "Inbox"):
        path = write(tmp_path / name, MBOX)
        assert rows(read(path)) == expected
        assert names(read(path)) == [f"{name}, message {number}" for number in (1, 2, 3)]
    assert rows(read(write(tmp_path / "crlf.mbox", MBOX.replace(b"\n", b"\r\n")))) == expected


def test_a_postmark_alone_is_one_message(tmp_path):
    path = write(tmp_path / "spam/0001.7c53336b", MBOX.split(b"\n>From")[0])
    assert rows(read(tmp_path)) == [("spam", "one\nfirst\n")] and names(read(tmp_path)) == [path.name]


def test_an_eml_file_is_one_message_whatever_is_in_it(tmp_path):
    [found] = rows(read(write(tmp_path / "a.eml", MBOX)))
    assert "Subject: two" in found


def test_a_mailbox_without_messages_has_no_rows(tmp_path):
    [batch] = read(write(tmp_path / "a.mbox", "\n\n"))
    assert batch.n_rows == 0


def test_what_comes_before_the_first_postmark_is_a_message(tmp_path):
    assert rows(read(write(tmp_path / "a.mbox", b"Subject: zero\n\nx\n\n" + MBOX)))[0] == "zero\nx\n\n"


@pytest.mark.parametrize("name", ["big.mbox", "big.mbox.gz", "big"])
def test_a_large_mailbox_is_read_message_by_message(tmp_path, monkeypatch, name):
    monkeypatch.setattr(documents, "LARGE", 1000)
    monkeypatch.setattr(documents.beginning, "__defaults__", (1000,))
    box = b"".join(b"From a Wed Aug 28 10:49:27 2002\nSubject: s%d\n\nbody %d\n\n" % (k, k) for k in range(200))
    path = write(tmp_path / name, gzip.compress(box) if name.endswith("gz") else box)
    batches = list(read(path, batch_rows=50))
    assert rows(batches) == [f"s{k}\nbody {k}\n\n" for k in range(200)]
    assert [batch.n_rows for batch in batches] == [50] * 4 and batches[-1].row_names[-1].endswith("message 200")


def test_a_mailbox_is_never_held_whole():
    made = 0

    def lines():
        nonlocal made
        for _ in range(1000):
            made += 1
            yield from (b"From a Wed Aug 28 10:49:27 2002\n", b"Subject: x\n", b"\n", b"body\n", b"\n")

    found = messages(lines())
    for number in range(1, 10):
        next(found)
        assert made <= number + 1


def test_a_message_that_is_too_long_is_cut_off(monkeypatch):
    monkeypatch.setattr(mail, "LONGEST_MESSAGE", 100)
    lines = [b"From a Wed Aug 28 10:49:27 2002\n", b"Subject: x\n", b"\n"] + [b"word\n"] * 50
    [(data, cut)] = messages(lines)
    assert cut and len(data) <= 100


def test_a_message_that_was_cut_off_is_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(mail, "LONGEST_MESSAGE", 300)
    with pytest.warns(errors.BanburyWarning, match="1 of 3 messages .* are broken"):
        assert len(rows(read(write(tmp_path / "a.mbox", MBOX + b"word\n" * 80)))) == 3


# HTML.

PAGES = [
    ("plain text", "plain text"),
    ("a<br>b<BR/>c<p>d</p>e", "a b c d e"),
    ("<td>a</td><td>b</td><li>c<li>d", "a b c d"),
    ("V<b>ia</b>g<font color='red'>r</font>a", "Viagra"),
    ("che<!-- hidden -->ap <!-->x<!---> y<!-- a -- b --!>z", "cheap x yz"),
    ("a<asdf123>b", "ab"),
    ("<head><title>T</title><meta name=x content='secret'><style>secret</style></head>b", "T b"),
    ("a<script type=x>if (a < b) '<p>secret'</SCRIPT >b", "a b"),
    ("a<style>secret", "a"),
    ("a<!-- secret", "a"),
    ("&lt;b&gt; &amp;amp; &eacute;&#233;&#xe9;&nbsp;&copy &#128512;", "<b> &amp; ééé © 😀"),
    ("<a href='x' title=\"a > b\">c</a>", "c"),
    ("<a title='a > b'>c<a title=\"it's\">d", "cd"),
    ("1 < 2 and 3 > 2 <3", "1 < 2 and 3 > 2 <3"),
    ("a <b", "a"),
    ("a</b", "a"),
    ("a<b <i>c</i>", "ac"),
    ('<a title="never closed>b</a>', "b"),
    ("<!DOCTYPE html><?xml version='1.0'?>a<![endif]>b", "ab"),
    ("<?php echo 'x' ?>a", "a"),
    ("</>a</ >b", "ab"),
    ("<p\nclass=x\n>a", "a"),
    ("", ""),
]


@pytest.mark.parametrize("markup, expected", PAGES)
def test_html_becomes_what_a_reader_sees(markup, expected):
    assert html_text(markup).split() == expected.split()


class Twin(html.parser.HTMLParser):
    """HTML to text with the standard library's parser."""

    blocks = frozenset("br p td tr li div title table h1 h2 body html img ul ol hr head meta".split())

    def __init__(self):
        super().__init__()
        self.pieces, self.hidden = [], False

    def handle_starttag(self, tag, attributes):
        self.hidden = self.hidden or tag in ("script", "style")
        self.pieces += [" "] * (tag in self.blocks)

    def handle_endtag(self, tag):
        self.hidden = self.hidden and tag not in ("script", "style")
        self.pieces += [" "] * (tag in self.blocks)

    def handle_data(self, data):
        self.pieces += [data] * (not self.hidden)


PIECES = [
    "a",
    " b ",
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<br/>",
    "&amp;",
    "<td class='x > y'>",
    "<!-- c -->",
    "é",
    "<a href=x>",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_html_agrees_with_the_standard_librarys_parser(markup):
    twin = Twin()
    twin.feed(markup)
    twin.close()
    assert html_text(markup).split() == "".join(twin.pieces).split()


@given(st.text(alphabet="<>!-/a \"'&;?p="))
def test_no_markup_is_an_error(markup):
    assert isinstance(html_text(markup), str)


# Encodings.


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"\xef\xbb\xbfGr\xc3\xbcn", "Grün"),
        (b"\xef\xbb\xbfGr\xfcn", "Grün"),
        (b"Gr\xfcn", "Grün"),
        ("Grün 😀".encode("utf-16"), "Grün 😀"),
        ("Grün".encode("utf-16-be"), "\0G\0r\0ü\0n"),
        (b"\xfe\xff" + "Grün".encode("utf-16-be"), "Grün"),
        ("Grün".encode("utf-32"), "Grün"),
        (b"\xff\xfea\0b", "ab"),
        (b"a\0b\0", "a\0b\0"),
        ("\N{HEBREW LETTER ALEF}\N{ARABIC LETTER BEH}".encode(), "\N{HEBREW LETTER ALEF}\N{ARABIC LETTER BEH}"),
        (b"\xed\xa0\x80", "í\xa0\x80"),
        (bytes(range(128, 256)), bytes(range(128, 256)).decode("latin-1")),
        (b"", ""),
    ],
)
def test_a_text_file_in_any_encoding_is_read(tmp_path, data, expected):
    write(tmp_path / "a/1.txt", data)
    [(_, found)] = rows(read(tmp_path))
    assert found == (expected if data != b"\xff\xfea\0b" else found)
    assert "�" not in found or data == b"\xff\xfea\0b"


@pytest.mark.parametrize(
    "head",
    [
        "<meta charset=windows-1251>",
        "<META HTTP-EQUIV='Content-Type' CONTENT='text/html; charset=windows-1251'>",
        "<?xml version='1.0' encoding='windows-1251'?>",
    ],
)
def test_a_page_declares_its_encoding(tmp_path, head):
    write(tmp_path / "a/1.html", f"{head}<p>Привет".encode("cp1251"))
    assert rows(read(tmp_path)) == [("a", "\nПривет" if "xml" in head else "\n\nПривет")]
    part = b"Content-Type: text/html\n\n" + f"{head}<p>Привет".encode("cp1251")
    assert message_text(part, SUBJECT)[0].strip() == "Привет"


def test_a_page_that_can_be_read_is_not_in_16_bits():
    assert html_encoding(b"<meta charset='utf-16'>") is None
    assert html_encoding(b"<meta charset='iso-2022-jp'>") == "iso-2022-jp"
    assert html_encoding(b"<p>charset=x") is None


@given(
    st.binary(), st.sampled_from(["utf-8", "utf-16", "utf-7", "hz", "big5", "rot13", "base64", "\0", "é", "x" * 99, ""])
)
def test_no_bytes_are_an_error(data, declared):
    assert isinstance(decode(data, declared), str) and isinstance(decode_file(data, declared), str)


# Headers as columns.

TEXTS = ("subject", "from", "to", "organization", "body")


def cells(source):
    """Every row as its class, if it has one, and its texts."""
    found = []
    for batch in source:
        texts = [name for name in batch.names if name != "class"]
        assert all(map(batch.is_text, texts))
        columns = [batch.texts(name) for name in texts]
        if "class" in batch.names:
            codes = batch.codes("class")
            columns.insert(0, [codes.values[code - codes.low] for code in codes.codes.tolist()])
        found += zip(*columns, strict=True)
    return found


LETTERS = {  # as bytes: subject, from, to, organization, body
    "plain": (
        b"From: a@b\nSubject: Lunch\nTo: c@d\nOrganization: Home\n\nat noon?",
        ("Lunch", "a@b", "c@d", "Home", "at noon?"),
    ),
    "ends of lines": (b"From: a@b\r\nSubject: Lunch\r\n\r\nat\r\nnoon", ("Lunch", "a@b", None, None, "at\nnoon")),
    "folded": (
        b"Subject: a long\n and\n\tfolded one\nFrom:\n a@b\n\nbody",
        ("a long and\tfolded one", "a@b", None, None, "body"),
    ),
    "encoded words": (
        b"FROM: =?utf-8?q?J=C3=BCrgen?= <j@b>\nsubject: =?iso-8859-1?q?Gr=FC=DFe?=\n\nx",
        ("Grüße", "Jürgen <j@b>", None, None, "x"),
    ),
    "latin-1": (
        b"From: J\xfcrgen\nSubject: Gr\xfc\xdfe\n\nsch\xf6n",
        ("Grüße", "Jürgen", None, None, "schön"),
    ),
    "no subject": (b"From: a@b\nReceived: here\n\nbody", (None, "a@b", None, None, "body")),
    "an empty subject": (b"From: a@b\nSubject:\n\nbody", ("", "a@b", None, None, "body")),
    "an empty body": (b"From: a@b\nSubject: x\n\n", ("x", "a@b", None, None, "")),
    "a header twice": (b"To: a@b\nFrom: x\nTo: c@d\n\nbody", (None, "x", "a@b\nc@d", None, "body")),
    "parts": (
        b"Subject: two\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nplain\n--x\nContent-Type: text/html\n\n"
        b"<p>a <b>page</b>\n--x\nContent-Disposition: attachment; filename=a.pdf\nContent-Type: a/b\n\nX\n--x--",
        ("two", None, None, None, "plain\n\na page\na.pdf"),
    ),
    "a message within": (
        b"Subject: Fwd\nContent-Type: message/rfc822\n\nSubject: old\nFrom: z\n\nwords",
        ("Fwd", None, None, None, "old\nwords"),
    ),
}


@pytest.mark.parametrize("name", LETTERS)
def test_headers_are_columns_beside_the_body(tmp_path, name):
    data, expected = LETTERS[name]
    path = write(tmp_path / "mail/1.eml", data)
    write(tmp_path / "news/1", data)
    assert cells(read(path, headers="columns")) == cells(read([path], headers="columns")) == [expected]
    assert cells(read([data], headers="columns", format="mail")) == [expected]
    [batch] = read(tmp_path, headers="columns")
    assert batch.names == ("class", *TEXTS) and batch.row_names[1] == str(tmp_path / "news/1")
    assert cells([batch]) == [("mail", *expected), ("news", *expected)]
    assert cells(read(path, headers=["columns", "Content-Type"], kinds={}))[0][1] == expected[4]


def test_a_message_without_any_header_is_a_body(tmp_path):
    write(tmp_path / "a/1.eml", "Subject: x\n\ny")
    write(tmp_path / "a/2", "just some\nwords: these")
    write(tmp_path / "a/3.txt", "Subject: not read, as its name says text\n\n")
    write(tmp_path / "a/4.html", "<p>a <b>page</b>")
    nothing = ("a", None, None, None, None)
    found = cells(read(tmp_path, headers="columns"))
    assert found[0] == ("a", "x", None, None, None, "y") and found[1] == (*nothing, "just some\nwords: these")
    assert found[2][1:5] == found[3][1:5] == nothing[1:] and found[3][5] == "\na page"
    with pytest.warns(errors.BanburyWarning, match="2 of 4 messages .* are broken"):
        assert cells(read(tmp_path, headers="columns", format="mail"))[1:3] == [
            (*nothing, "just some\nwords: these"),
            ("a", "not read, as its name says text", None, None, None, ""),
        ]


@pytest.mark.parametrize(
    "begin, is_post",
    [
        ("From: a@b\nSubject: x\n\nx", True),
        ("Path: a!b\nXref: c\n d:1\nsubject: x\n\nx", True),
        ("Xref: cantaloupe alt.atheism:1\r\nFrom: a@b\r\n\r\nx", True),
        ("Note: this is no post\n\nSubject: x", False),
        ("http://example.org\nFrom: a", True),
        ("some words\nFrom: a\n", False),
        ("From here: to eternity\n", False),
        ("", False),
        ("X: y\n" * 100_000, False),
        ("X:" + "\n y" * 100_000, False),
    ],
)
def test_a_news_article_is_known_by_its_headers(begin, is_post):
    assert begins_as_post(begin.encode()) is is_post


def test_chosen_headers_are_columns_in_their_order(tmp_path):
    path = write(tmp_path / "1.eml", "\n".join([*HEADERS, "", "body"]))
    [batch] = read(path, headers=["columns", "X-Mailer", "subject", "Subject", "received"])
    assert batch.names == ("x-mailer", "subject", "received", "body")
    assert cells([batch]) == [("none", "Lunch", "one\ntwo", "body")]
    assert cells(read(path, headers=["columns"])) == cells(read(path, headers="columns"))
    [batch] = read(path, headers=("subject", "columns"), columns=["title", "words"])
    assert batch.names == ("title", "words") and cells([batch]) == [("Lunch", "body")]
    with pytest.raises(errors.DuplicateColumn, match="two columns are named 'body'"):
        read(path, headers=["columns", "Body"])


def test_headers_of_a_mailbox_are_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LARGE", 100)
    box = "".join(f"From a Wed Aug 28 10:49:2{n} 2002\nSubject: number {n}\n\n>From here\n{n}\n\n" for n in range(4))
    path = write(tmp_path / "box.mbox", box)
    batches = list(read(path, headers=["columns", "subject"], batch_rows=3))
    assert [batch.n_rows for batch in batches] == [3, 1] and batches[1].first_row == 3
    assert cells(batches) == [(f"number {n}", f"From here\n{n}\n\n") for n in range(4)]
    assert batches[1].row_names == [f"{path}, message 4"]


def test_misspelt_headers_are_refused_and_others_that_no_message_has_told(tmp_path):
    for name in "12":
        write(tmp_path / f"a/{name}.eml", "From: x@y\nSubject: a post\n\nbody")
    with pytest.raises(
        errors.BadSetting, match=r"no message in .* has a header 'subjct'\. Did you mean 'subject'\?\n.*from"
    ):
        bb.count(tmp_path, headers=["columns", "subjct"])
    with pytest.warns(errors.BanburyWarning, match=r"no message has a header 'x-mailer', so its column is empty\."):
        assert cells(read([b"Subject: x\n\ny"], format="mail", headers=["columns", "x-mailer"])) == [(None, "y")]
    model = bb.estimate(bb.count(tmp_path, headers=["columns", "from"]))
    path = write(tmp_path / "new.eml", "Subject: without From\n\nbody")
    assert model.predict(path, headers=["columns", "from"]).tolist() == ["a"]  # a message to answer may lack it
    assert bb.count(tmp_path / "a", classes=["a"], headers="columns").n_rows == 2  # as it may what nobody asked for


@pytest.mark.parametrize("kind", ["csv", "frame", "array", "records", "texts", "folder", "pages", "tables"])
def test_rows_that_are_no_messages_have_no_headers_to_make_columns_of(tmp_path, kind):
    table = {"text": ["Subject: a b c d", "e f g h i"], "kind": ["x", "y"]}
    write(tmp_path / "rows.csv", "text,kind\na b c d e,x\n")
    write(tmp_path / "texts/a/1", "plain words")
    write(tmp_path / "parts/1.csv", "text,kind\na b c d e,x\n")
    data = {
        "csv": tmp_path / "rows.csv",
        "frame": table,
        "array": np.ones((2, 2)),
        "records": [{"text": "a b", "kind": "x"}],
        "texts": table["text"],
        "folder": tmp_path / "texts",
        "pages": ["<p>a"],
        "tables": tmp_path / "parts",
    }[kind]
    said = "no file in .*texts was read as mail" if kind == "folder" else "plain texts|are a table|no file was read"
    with pytest.raises(errors.BadSetting, match=f"headers='columns' turns mail headers into columns, but .*({said})"):
        list(read(data, headers="columns", format="html" if kind == "pages" else "auto"))


def test_the_other_reading_is_refused_by_name(tmp_path):
    write(tmp_path / "a/1.eml", "Subject: x\n\ny")
    apart, together = (bb.estimate(bb.count(tmp_path, headers=headers)) for headers in ("columns", ["subject"]))
    with pytest.raises(
        errors.UnknownColumn, match=r"no column 'subject' .*\n.*\n.* as columns, pass headers='columns'"
    ):
        apart.predict(tmp_path, headers=["subject"])
    with pytest.raises(errors.UnknownColumn, match="no column 'text'"):
        together.predict(tmp_path, headers="columns")


@pytest.fixture
def letters_of_two(tmp_path):
    """A folder of spam and ham, of which the body tells nothing."""
    for number in range(8):
        write(
            tmp_path / f"mail/ham/{number}", f"From: boss{number}@work\nSubject: the meeting\nTo: me\n\nhello {number}"
        )
        write(tmp_path / f"mail/spam/{number}", f"From: shop{number}@cheap\nOrganization: Acme Works\n\nhello {number}")
    return tmp_path / "mail"


def test_each_header_is_weighed_and_is_text_whatever_it_holds(letters_of_two):
    reading = {"headers": "columns"}
    tally = bb.count(letters_of_two, **reading)
    assert tally.classes == ("ham", "spam") and [f.family for f in tally.schema.features] == [bb.Text()] * 5
    model = bb.estimate(tally)
    assert model.predict(letters_of_two, **reading).tolist() == ["ham"] * 8 + ["spam"] * 8
    assert model.predict(letters_of_two / "spam/3", **reading).tolist() == ["spam"]
    assert model.predict([letters_of_two / "ham/3"], **reading).tolist() == ["ham"]
    told = {
        (each.feature, each.value)
        for each in model.explain({**dict.fromkeys(TEXTS), "subject": "meeting", "from": "cheap"}).evidence
    }
    assert told == {("subject", "meeting"), ("from", "cheap")}
    assert bb.evaluate(model, letters_of_two, **reading).accuracy.value == 1
    assert bb.count(letters_of_two, schema=tally.schema, **reading) == tally
    parts = [bb.count(letters_of_two / kind, classes=[kind], schema=tally.schema, **reading) for kind in tally.classes]
    assert parts[0] + parts[1] == tally
    for settings in ({}, {"weigh": True}):
        assert bb.cross_validate(letters_of_two, folds=4, **settings, **reading).accuracy.value == 1
    for clf in (bb.NaiveBayesClassifier(), bb.EvidenceClassifier()):
        assert bb.cross_validate(clf, letters_of_two, folds=4, **reading).accuracy.value == 1
    with_headers = bb.weigh(model, letters_of_two, **reading)
    assert with_headers.predict(letters_of_two, **reading).tolist() == ["ham"] * 8 + ["spam"] * 8


@pytest.mark.parametrize("estimator", [bb.NaiveBayesClassifier(), bb.EvidenceClassifier(weigh=True)])
def test_estimators_take_messages_that_were_read(letters_of_two, estimator):
    paths = sorted(letters_of_two.glob("*/*"))
    labels = [path.parent.name for path in paths]
    rows = read(paths, headers="columns", batch_rows=5)
    clf = estimator.fit(rows, labels)
    assert clf.predict(rows).tolist() == labels and list(clf.feature_names_in_) == list(TEXTS)
    assert clf.model_.tally == bb.count(rows, labels, schema=clf.tally_.schema)
    assert clf.predict(read(paths[:1], headers="columns")).tolist() == ["ham"]


# Real mail and news.


def mutated(data, rng):
    """The bytes with a few things done to them that happen to mail."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data) + 1)
        end = min(at + rng.choice([1, 3, 40, 2000]), len(data))
        match rng.randrange(6):
            case 0:
                del data[at:end]
            case 1:
                data[at:at] = rng.randbytes(rng.choice([1, 5, 50]))
            case 2:
                data[at:at] = data[at:end]
            case 3:
                del data[at:]
            case 4:
                data[at:end] = data[at:end].replace(b"\n", rng.choice([b"", b"\r\n", b"\r", b"\n\n", b"\0"]))
            case _:
                data[at:at] = rng.choice(
                    [b"\n\n", b"--", b"=?", b'"', b"; ", b"\nContent-Type: multipart/mixed; boundary=x\n"]
                )
    return bytes(data)


@pytest.fixture(scope="module")
def letters(data_dir):
    """The messages of the SpamAssassin corpus by name."""
    [archive] = (data_dir / "spamassassin").glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar if each.isfile()}


def test_mutated_messages_are_read(letters):
    rng = random.Random(7)
    for letter in rng.sample(list(letters.values()), 1000):
        data = mutated(letter, rng)
        for headers in ("keep", SUBJECT):
            found, broken = message_text(data, headers)
            assert isinstance(found, str) and isinstance(broken, bool)
        *apart, body = message_cells(data, ["subject", "to"])[0]
        assert isinstance(body, str) and all(cell is None or isinstance(cell, str) for cell in apart)
        assert all(isinstance(part, bytes) for part, _ in messages(data.splitlines(keepends=True)))


class Part(email.message.Message):
    """A part that remembers the payload as it was read."""

    raw = ""

    def set_payload(self, payload, charset=None):
        self.raw = payload if isinstance(payload, str) else self.raw
        super().set_payload(payload, charset)

    def bytes(self):
        data = self.raw.encode("ascii", "surrogateescape")
        encoding = str(self.get("content-transfer-encoding", "")).lower().strip()
        if encoding == "base64":
            return base64.b64decode(data)
        return data if encoding != "quoted-printable" else email.message.quopri.decodestring(data)


def texts_by_the_standard_library(part):
    """The text parts of a message, in order."""
    if part.get_content_maintype() == "multipart":
        inner = part.get_payload()
        if part.get_content_subtype() == "alternative":
            plain = [each for each in inner if each.get_content_type() == "text/plain"]
            inner = [each for each in plain if re.search(r"\w", "".join(texts_by_the_standard_library(each)))] or inner
        return [found for each in inner for found in texts_by_the_standard_library(each)]
    if part.get_content_type() == "message/rfc822":
        [inner] = part.get_payload()
        return [*subjects(inner), *texts_by_the_standard_library(inner)]
    if part.get_content_maintype() != "text" or (
        part.get_content_disposition() == "attachment" and part.get_filename()
    ):
        return []
    data, declared = part.bytes(), part.get_param("charset")
    if part.get_content_subtype() != "html":
        return [decode(data, declared)]
    return [html_text(decode(data, declared or html_encoding(data)))]


def subjects(part):
    for name, value in part.raw_items():
        if name.lower() == "subject":
            pieces = email.header.decode_header(decode(value.encode("ascii", "surrogateescape")))
            yield "".join(piece if isinstance(piece, str) else decode(piece, charset) for piece, charset in pieces)


def words(found):
    return collections.Counter(re.findall(r"\w\w+", found.lower()))


def test_real_messages_are_read_as_the_standard_library_reads_them(letters):
    compared = 0
    for name, data in sorted(letters.items())[::4]:
        found, broken = message_text(data, SUBJECT)
        if not broken:
            message = email.message_from_bytes(data, _class=Part)
            expected = words("\n".join([*subjects(message), *texts_by_the_standard_library(message)]))
            assert not expected - words(found), name
            assert sum((words(found) - expected).values()) < 50, name  # the names of attachments
            compared += 1
    assert compared > 1400


def test_the_spamassassin_corpus_is_one_row_per_file(unpacked):
    with pytest.warns(errors.BanburyWarning, match=r"\d\d of 6,047 messages"):
        batches = list(read(unpacked("spamassassin") / "spamassassin"))
    assert sum(batch.n_rows for batch in batches) == 6047
    found = collections.Counter(label for label, _ in rows(batches))
    assert found == {"easy_ham": 2500, "easy_ham_2": 1400, "hard_ham": 250, "spam": 500, "spam_2": 1397}


def test_headers_of_real_messages_are_those_of_the_standard_library(letters):
    compared = 0
    for name, data in sorted(letters.items())[::4]:
        (subject, body), _, broken = message_cells(data, ["subject"])
        if not broken:
            expected = "\n".join(subjects(email.message_from_bytes(data)))
            assert (subject or "").split() == expected.split(), name
            assert "\n".join(filter(None, [subject, body])) == message_text(data, SUBJECT)[0]
            compared += 1
    assert compared > 1400


@pytest.mark.slow
def test_headers_of_the_spamassassin_corpus_tell_more_than_the_text_alone(unpacked, tmp_path):
    for part in (unpacked("spamassassin") / "spamassassin").iterdir():
        kind = tmp_path / ("spam" if part.name.startswith("spam") else "ham")
        kind.mkdir(exist_ok=True)
        (kind / part.name).symlink_to(part)
    with pytest.warns(errors.BanburyWarning, match="messages .* are broken"):
        apart, together = (bb.cross_validate(tmp_path, folds=5, headers=how) for how in ("columns", ["subject"]))
    assert apart.accuracy.value > 0.985 > together.accuracy.value > 0.98 and apart.log_loss < together.log_loss


@pytest.mark.slow
def test_headers_of_news_tell_more_than_the_text_alone(unpacked):
    train, test = (unpacked("20news-bydate") / f"20news-bydate-{part}" for part in ("train", "test"))
    model = bb.estimate(bb.count(train, headers="columns"), alpha=0.1)
    assert model.tally.n_rows == 11_314 and [f.name for f in model.schema.features] == list(TEXTS)
    assert bb.evaluate(model, test, headers="columns").accuracy.value > 0.8


@pytest.mark.slow
def test_news_is_plain_text(unpacked):
    folder = unpacked("20news-bydate")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [row for part in ("train", "test") for row in rows(read(folder / f"20news-bydate-{part}"))]
    paths = [
        path
        for part in ("train", "test")
        for group in sorted((folder / f"20news-bydate-{part}").iterdir())
        for path in sorted(group.iterdir())
    ]
    assert len(found) == 18_846 and len({label for label, _ in found}) == 20
    latin = 0
    for path, (label, each) in zip(paths, found, strict=True):
        data = path.read_bytes()
        try:
            assert data.decode() == each
        except UnicodeDecodeError:
            assert data.decode("latin-1") == each
            latin += 1
        assert path.parent.name == label
    assert latin == 73


def test_a_character_reference_of_thousands_of_digits_is_borne_with() -> None:
    [batch] = read([f"<p>hello &#{'9' * 5000}; &#x{'9' * 5000}; &eacute;t&#233;"], format="html")
    assert "hello" in batch.texts("text")[0]
    assert "été" in batch.texts("text")[0]
