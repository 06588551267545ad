"""The scripts of examples/ run on the public data, and print what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def printed(name: str) -> str:
    """What a script prints; no warning is allowed."""
    # One thread for scikit-learn: on busy cores its threads wait for each other.
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "BANBURY_PROGRESS": "0", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-W", "error", str(ROOT / "examples" / name)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("data_dir")
def test_a_spam_filter_forgets():
    assert re.search(r"accuracy +0\.98.*\n", shown := printed("spam.py")) and "after forgetting" in shown


@pytest.mark.slow
@pytest.mark.usefixtures("data_dir")
def test_a_census_table_is_learned_next_to_boosting():
    rows = re.findall(r"^([a-z ,A-Z]+?)  +(0\.\d+)  +(0\.\d+)", printed("census.py"), re.M)
    losses = {name: float(loss) for name, _, loss in rows}
    assert losses["weighed evidence"] < losses["gradient boosting"] < losses["naive Bayes"]


@pytest.mark.slow
@pytest.mark.usefixtures("data_dir")
def test_stories_have_several_topics():
    shown = printed("topics.py")
    assert float(re.search(r"weighed: micro F1 (0\.\d+)", shown)[1]) > 0.87 and "'grain'" in shown


def test_every_example_is_listed():
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\((\w+\.py)\)", page)) == {path.name for path in (ROOT / "examples").glob("*.py")}
