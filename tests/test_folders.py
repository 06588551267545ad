"""Where the classes of texts are told: by folders of any level, by names of files, by files whose lines are texts."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import banbury as bb
from banbury import errors
from banbury.cli import main
from banbury.reading import read
from banbury.reading.documents import PART

TEXTS = {"pos": ["a fine film", "fine and moving"], "neg": ["a dull film", "dull, long"]}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BANBURY_PROGRESS", "0")


def said(line: str, capsys: Any) -> tuple[int, str, str]:
    """What a command answers: its exit code, stdout and stderr."""
    code = main(shlex.split(line))
    out, err = capsys.readouterr()
    return code, out, err


def write(folder: str, texts: dict[str, list[str]] = TEXTS) -> None:
    """A folder with a folder per class."""
    for label, each in texts.items():
        Path(folder, label).mkdir(parents=True)
        for number, text in enumerate(each):
            Path(folder, label, f"{number}.txt").write_text(text)


# Levels.


def split(parts: str = "train test") -> None:
    for part in parts.split():
        write(f"films/{part}")


@pytest.mark.parametrize(
    "parts", ["train test", "Train val", "x-train x-test", "train dev test2", "train", "fold1 fold2"]
)
def test_train_and_test_are_asked_about(parts):
    split(parts)
    with pytest.raises(
        errors.BadSetting, match=r"which contain the folders neg, pos. Which of the two are the classes"
    ) as raised:
        bb.count("films")
    for way in ("Read only one of them, such as films/", "classes_at=2 to predict neg, pos", "classes_at=1 to predict"):
        assert way in str(raised.value)


def test_either_level_may_be_asked_for():
    split()
    whole = bb.count("films", classes_at=2)
    assert whole == bb.count(["films/train/", "films/test/"]) == bb.count("films/train") + bb.count("films/test")
    assert bb.count("films", classes_at=1).classes == ("test", "train")
    assert bb.cross_validate("films", classes_at=2, folds=2).classes == ("neg", "pos")
    model = bb.estimate(whole)
    assert bb.evaluate(model, "films", classes_at=2).accuracy.value == 1.0
    assert bb.Schema.infer("films", classes_at=2).target == "class"


def test_parts_without_folders_are_asked_about():
    write("mail", {"part1": ["a text", "another"], "part2": ["a third"]})
    with pytest.raises(errors.BadSetting, match=r"look like parts of one collection rather than classes.*class_from="):
        bb.count("mail")


@pytest.mark.parametrize("folders", ["bus car train", "ham spam", "dev ops test", "easy_ham easy_ham_2", "part whole"])
def test_other_folders_are_classes(folders):
    write("mail", {name: ["a text", "another one"] for name in folders.split()})
    assert bb.count("mail").classes == tuple(sorted(folders.split()))


def test_folders_that_repeat_below_classes_are_not_parts():
    for label in ("course", "staff"):
        write(f"pages/{label}", {"cornell": ["a page"], "texas": ["another"]})
    assert bb.count("pages").classes == ("course", "staff")
    assert bb.count("pages", classes_at=2).classes == ("cornell", "texas")


def test_files_that_lie_too_high_are_named():
    split()
    Path("films/README").write_text("read me")
    Path("films/train/labels.txt").write_text("0 1")
    with pytest.warns(
        errors.BanburyWarning, match="the 2 files beside the folders are ignored: README, train/labels.txt"
    ):
        assert bb.count("films", classes_at=2).n_rows == 8
    with pytest.raises(errors.BadSetting, match="classes_at must be 2 at most, because no file in films lies deeper"):
        bb.count("films", classes_at=3)
    with pytest.warns(errors.BanburyWarning, match=r"the 1 file beside the folders is ignored: labels.txt"):
        bb.count("films/train")


@pytest.mark.parametrize("level", [0, "2", 1.5])
def test_a_level_is_a_whole_number(level):
    split()
    with pytest.raises(errors.BadSetting, match="classes_at must be a whole number of at least 1"):
        bb.count("films", classes_at=level)


def test_a_level_is_for_folders():
    Path("a.txt").write_text("text")
    for data in ("a.txt", ["a.txt", "a.txt"], {"a": [1]}):
        with pytest.raises(errors.BadSetting, match="classes_at=1 is for"):
            list(read(data, classes_at=1))
    Path("flat").mkdir()
    Path("flat/a.txt").write_text("text")
    with pytest.raises(errors.BadSetting, match="omitted: flat has no folders"):
        read("flat", classes_at=1)


@given(st.sampled_from(["train", "TEST", "val", "valid", "validation", "dev", "eval", "held-out"]), st.integers(0, 99))
def test_names_of_parts(name, number):
    for shown in (name, f"{name}{number}", f"{name}_{number}", f"my-{name}", f"my_{name}-{number}"):
        assert PART.search(shown)
    for shown in (f"{name}x", f"x{name}", "ham", "part", "fold", "spam_2"):
        assert not PART.search(shown) or re.fullmatch("(?i)(training|testing|valid|dev.*)", shown)


# Names of files.


def ling_spam() -> None:
    for part in ("part1", "part2"):
        Path("ling", part).mkdir(parents=True)
        for name, text in {
            "spmsg1": "buy now",
            "spmsg2": "cheap",
            "3-1msg1": "a conference",
            "9-2": "call for papers",
        }.items():
            Path("ling", part, f"{name}.txt").write_text(f"{text} {part}")


@pytest.mark.parametrize("given", ["spmsg*=spam,*=ham", {"spmsg*": "spam", "*": "ham"}])
def test_names_of_files_tell_the_class(given):
    ling_spam()
    tally = bb.count("ling", class_from=given)
    assert tally.classes == ("ham", "spam") and tally.n_rows == 8
    files = sorted(map(str, Path("ling").glob("*/*.txt")))
    assert bb.count(files, class_from=given) == bb.count("ling/*/*.txt", class_from=given) == tally
    assert bb.cross_validate("ling", class_from=given, folds=2).classes == ("ham", "spam")


def test_a_pattern_with_a_slash_is_held_against_the_path():
    write("mail", {"easy_ham": ["a"], "hard_ham": ["b", "c"], "spam_2": ["d"]})
    tally = bb.count("mail", class_from={"*ham/*": "ham", "spam*/*": "spam"})
    assert tally.classes == ("ham", "spam")
    assert tally == bb.count(["a", "b", "c", "d"], ["ham", "ham", "ham", "spam"])


def test_a_file_that_no_pattern_fits_is_named():
    ling_spam()
    with pytest.warns(
        errors.BanburyWarning, match=r"4 files in ling match no pattern in class_from= .*: ling/part1/3-1msg1.txt"
    ):
        assert bb.count("ling", class_from="spmsg*=spam").n_rows == 4
    with pytest.raises(errors.EmptyData, match="match no pattern"):
        bb.count("ling", class_from="x*=spam")


@pytest.mark.parametrize("wrong", ["spam", "", "=spam", "a*=", {}, {"a": 1}, ["a"]])
def test_patterns_have_classes(wrong):
    ling_spam()
    with pytest.raises(errors.BadSetting, match="class_from must be patterns for file names, with their classes"):
        read("ling", class_from=wrong)


# Lines.


def lines() -> None:
    Path("films").mkdir()
    for label, texts in TEXTS.items():
        Path(f"films/{label}.txt").write_text("".join(f"{text}\n" for text in texts))


def test_each_line_is_a_text_and_each_file_a_class():
    lines()
    tally = bb.count(["films/pos.txt", "films/neg.txt"], format="lines")
    assert tally == bb.count("films", format="lines") == bb.count("films/*.txt", format="lines")
    assert tally == bb.count(
        {"text": TEXTS["pos"] + TEXTS["neg"]}, ["pos"] * 2 + ["neg"] * 2, features={"text": bb.Text()}
    )
    model = bb.estimate(tally)
    assert model.predict("films/pos.txt", format="lines").tolist() == ["pos", "pos"]
    assert bb.evaluate(model, "films", format="lines").accuracy.value == 1.0


def test_folders_of_such_files_are_classes():
    for label, texts in TEXTS.items():
        Path("films", label).mkdir(parents=True)
        for number, text in enumerate(texts):
            Path("films", label, f"part{number}.txt").write_text(f"{text}\n{text} again\r\n")
    tally = bb.count("films", format="lines")
    assert tally.classes == ("neg", "pos") and tally.n_rows == 8


def test_lines_are_kept_as_they_are(tmp_path):
    Path("a.txt").write_bytes(b'\xef\xbb\xbfone\r\n\nthr\xe9e "x" , y\nfour')
    [batch] = read("a.txt", format="lines")
    assert list(batch.column("text").cells()) == ["one", "", 'thrée "x" , y', "four"]
    assert batch.row_names is None and not batch.named
    with gzip.open("a.txt.gz", "wb") as file:
        file.write(Path("a.txt").read_bytes())
    [packed] = read("a.txt.gz", format="lines")
    assert list(packed.column("text").cells()) == list(batch.column("text").cells())


def test_names_of_files_keep_what_is_no_ending_of_texts():
    for name in ("rt.pos", "rt.neg", "x.txt.gz"):
        with (gzip.open if name.endswith("gz") else open)(name, "wt") as file:
            file.write("a text\n")
    [batch] = read([Path("rt.pos"), Path("rt.neg"), Path("x.txt.gz")], format="lines")
    assert list(batch.column("class").cells()) == ["rt.pos", "rt.neg", "x"]
    [batch] = read([Path("rt.pos"), Path("rt.neg")], format="lines", class_from="*.pos=good,*=bad")
    assert list(batch.column("class").cells()) == ["good", "bad"]


def test_lines_come_in_batches():
    Path("a.txt").write_text("a text\n" * 100)
    sizes = [batch.n_rows for batch in read("a.txt", format="lines", batch_rows=30)]
    assert sizes == [30, 30, 30, 10]


# The command line.


def test_the_command_line_asks_about_train_and_test(capsys):
    split()
    code, _, err = said("fit films", capsys)
    assert code == 2 and "such as films/train; or pass --classes-at 2 to predict neg, pos" in err
    code, out, _ = said("fit films --classes-at 2 -o m.banbury --json", capsys)
    assert code == 0 and json.loads(out)["rows"] == 8
    assert said("evaluate m.banbury films/test", capsys)[0] == 0
    assert said("evaluate m.banbury films --classes-at 2", capsys)[0] == 0
    assert said("predict m.banbury films/test", capsys)[0] == 0
    assert said("cross-validate films --classes-at 2 --folds 2", capsys)[0] == 0
    assert said("tally count films --classes-at 2 -o t.banbury", capsys)[0] == 0


def test_the_command_line_takes_classes_from_names(capsys):
    ling_spam()
    code, _, err = said("fit ling", capsys)
    assert code == 2 and "--class-from 'spm*=spam,*=ham' if the file names show" in err
    code, out, _ = said("fit ling --class-from 'spmsg*=spam,*=ham' -o m.banbury --json", capsys)
    assert code == 0 and {each["class"] for each in json.loads(out)["classes"]} == {"ham", "spam"}
    assert said("evaluate m.banbury ling --class-from 'spmsg*=spam,*=ham'", capsys)[0] == 0


def test_the_command_line_learns_from_lines(capsys):
    lines()
    for command in ("fit films/pos.txt films/neg.txt --format lines", "fit films --format lines"):
        code, out, _ = said(f"{command} -o m.banbury --json", capsys)
        assert code == 0 and json.loads(out)["rows"] == 4
    code, out, _ = said("predict m.banbury films/pos.txt films/neg.txt --format lines", capsys)
    assert [json.loads(line)["class"] for line in out.splitlines()] == ["pos", "pos", "neg", "neg"]
    assert json.loads(out.splitlines()[-1])["row"] == 4
    assert said("evaluate m.banbury films --format lines", capsys)[0] == 0
    assert said("explain m.banbury films/pos.txt --format lines --row 2", capsys)[0] == 0
    code, _, err = said("fit films/pos.txt films/neg.txt", capsys)
    assert code == 2 and "add --format lines" in err
    code, _, err = said("fit films/pos.txt --format lines", capsys)
    assert code == 2 and "have no class" in err
    code, _, err = said("fit films", capsys)
    assert code == 2 and "--class-from" in err and "--format lines" in err


def test_one_folder_of_folders_is_doubted():
    for label in ("neg", "pos"):
        write("archive/films", {label: ["a film", "another"]})
    said = "archive has only one folder, films, .* the folders inside it are neg, pos. "
    said += "If these .* read archive/films or pass classes_at=2"
    with pytest.warns(errors.BanburyWarning, match=said):
        assert bb.count("archive").classes == ("films",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bb.count("archive", classes_at=2) == bb.count("archive/films")
        assert bb.count("archive", classes_at=1).classes == ("films",)
        Path("archive/films/1.txt").write_text("a film of no folder")
        assert bb.count("archive").classes == ("films",)
