"""banbury suspicious and banbury next say what the library says, with rows numbered from 1."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import banbury as bb
from banbury.cli import main
from test_cli import here, refused, said  # noqa: F401
from test_wrong_labels import mail, table

pytestmark = pytest.mark.usefixtures("here")


def numbered(facts):
    """Facts of the library as JSON holds them, rows from 1."""
    facts = json.loads(json.dumps(facts))
    return facts | {"rows": [row | {"row": row["row"] + 1} for row in facts["rows"]]}


def test_suspicious_says_what_the_library_says(capsys):
    texts, labels = mail()
    pd.DataFrame({"text": texts, "kind": labels}).to_csv("mail.csv", index=False)
    facts = said(capsys, "suspicious", "mail.csv", "--target", "kind", "--n", "3", "--plain")
    assert facts == numbered(bb.suspicious("mail.csv", "kind", alpha=1.0, n=3).to_dict())
    assert sorted(row["row"] for row in facts["rows"]) == [4, 18, 41]
    assert main("suspicious mail.csv --target kind --n 2 --by self_confidence --table".split()) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("About 3 of 60 labels seem wrong")
    assert "because of" in shown
    assert main("suspicious mail.csv --target kind --n 2 --csv".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "row,label,suggested,self_confidence,probability,margin"
    assert len(lines) == 3


def test_suspicious_files_are_named(capsys, tmp_path):
    texts, labels = mail(40, (3,))
    for i, (text, label) in enumerate(zip(texts, labels, strict=True)):
        (tmp_path / label).mkdir(exist_ok=True)
        (tmp_path / label / f"{i:02}.txt").write_text(text)
    facts = said(capsys, "suspicious", tmp_path, "--n", "1")
    assert facts["rows"][0]["file"].endswith("ham/03.txt")
    assert main(["suspicious", str(tmp_path), "--n", "1", "--table"]) == 0
    assert "03.txt" in capsys.readouterr().out


def test_next_says_what_the_library_says(capsys):
    frame, kinds = table(120, ())
    frame = frame.assign(kind=np.where(np.arange(120) < 30, kinds, ""))
    frame[:30].to_csv("labelled.csv", index=False)
    frame.to_csv("all.csv", index=False)
    frame[30:].drop(columns="kind").to_csv("pool.csv", index=False)
    said(capsys, "fit", "labelled.csv", "--target", "kind", "--plain", "-o", "kinds.banbury", "--no-cross-validate")
    facts = said(capsys, "next", "kinds.banbury", "pool.csv", "--n", "4", "--share", "0.5", "--seed", "2")
    found = bb.next_to_label(bb.load("kinds.banbury"), "pool.csv", n=4, share=0.5, seed=2)
    assert facts == numbered(found.to_dict())
    assert [row["random"] for row in facts["rows"]] == [False, False, True, True]
    whole = said(capsys, "next", "kinds.banbury", "all.csv", "--n", "5")
    apart = said(capsys, "next", "kinds.banbury", "pool.csv", "--n", "5", "--labelled", "labelled.csv")
    assert whole["labelled"] == 30
    assert [row["row"] for row in whole["rows"]] == [row["row"] + 30 for row in apart["rows"]]
    assert main("next kinds.banbury pool.csv --n 3 --table".split()) == 0
    assert "3 rows to label next, of 90 without a label; 0 at random" in capsys.readouterr().out


def test_what_cannot_be_done_is_said(capsys):
    texts, labels = mail(20, ())
    pd.DataFrame({"text": texts, "kind": labels}).to_csv("mail.csv", index=False)
    for words, message in [
        ("suspicious mail.csv", "--target kind"),
        ("suspicious mail.csv --target kind --by doubt", "--by must be one of 'margin', 'self_confidence'"),
        ("suspicious mail.csv --target kind --n 0", "n must be a whole number of at least 1"),
        ("next mail.csv mail.csv", "mail.csv"),
    ]:
        code, err = refused(capsys, *words.split())
        assert code in (1, 2)
        assert message in err
