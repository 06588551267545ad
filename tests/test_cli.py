"""banbury.cli: the verbs, said to a shell."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest

import banbury as bb
import shell
from banbury import errors, progress
from banbury.cli import main, parsers

GOLDEN = Path(__file__).parent / "golden" / "help"
DOCS = Path(__file__).parents[1] / "docs"
VERBS = [verb.name for verb in parsers.VERBS]


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    """No progress, a terminal 100 wide; and a command may set the number of threads."""
    monkeypatch.setenv("BANBURY_PROGRESS", "0")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("BANBURY_THREADS", "2")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table, mail, a model of each, and a tally."""
    monkeypatch.chdir(tmp_path)
    weather = bb.datasets.play_tennis()
    write_csv("weather.csv", weather)
    for name, texts in MAIL.items():
        Path("mail", name).mkdir(parents=True)
        for number, text in enumerate(texts):
            Path("mail", name, f"{number}.txt").write_text(text)
    bb.save(bb.estimate(bb.count(weather, target="play")), "play.banbury")
    bb.save(bb.count(weather, target="play"), "tally.banbury")
    bb.save(bb.estimate(bb.count("mail")), "mail.banbury")
    return tmp_path


MAIL = {
    "spam": ["cheap pills, free watches", "you won: claim your free money", "free pills now"],
    "ham": ["lunch at noon with the colleagues", "notes of the meeting on Monday", "lunch on Monday?"],
}


def write_csv(path, table):
    rows = (["" if cell is None else str(cell) for cell in row] for row in zip(*table.values(), strict=True))
    Path(path).write_text("\n".join([",".join(table), *map(",".join, rows)]) + "\n")


def said(capsys, *arguments, code=0):
    """What a command prints as JSON; it must end with this code."""
    assert main(list(map(str, arguments))) == code, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    """The code and the message of a command that fails: nothing on stdout, no traceback."""
    code = main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    assert code != 0 and out == "" and "Traceback" not in err and "\nbanbury: " in f"\n{err}"
    return code, err


def stdin(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


# Help ----------------------------------------------------------------------------------------------------------------


def golden_name(verb, option):
    return f"{verb.replace(' ', '-') or 'banbury'}{option.removeprefix('--help')}.txt"


HELP = [(verb, "--help") for verb in ("", "tally", *VERBS)] + [(verb, "--help-all") for verb in VERBS]


@pytest.mark.parametrize(("verb", "option"), HELP)
def test_help_is_what_it_was(verb, option, capsys):
    """Where a change is meant: BANBURY_GOLDEN=write."""
    assert main([*verb.split(), option]) == 0
    shown, golden = capsys.readouterr().out, GOLDEN / golden_name(verb, option)
    if os.environ.get("BANBURY_GOLDEN") == "write":
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_no_golden_help_is_of_a_command_that_is_gone():
    assert {path.name for path in GOLDEN.glob("*.txt")} == {golden_name(*pair) for pair in HELP}


@pytest.mark.parametrize("verb", parsers.VERBS, ids=lambda verb: verb.name)
def test_help_shows_at_most_eight_options_and_help_all_every_one(verb):
    def options(all_options):
        actions = parsers.parser(verb, all_options)._actions
        return {name for action in actions if action.help != "==SUPPRESS==" for name in action.option_strings}

    usual = options(False) - {"-h", "--help", "--help-all"}
    assert len({name.replace("--no-", "--") for name in usual if name.startswith("--")}) <= 8
    assert verb.usual <= usual  # each of them exists
    assert (
        usual <= options(True) == {name for action in parsers.parser(verb)._actions for name in action.option_strings}
    )


@pytest.mark.parametrize("verb", parsers.VERBS, ids=lambda verb: verb.name)
def test_every_help_has_an_example_that_parses(verb):
    assert verb.examples
    for example in verb.examples:
        words = shlex.split(example.rpartition("| ")[2])
        assert " ".join(words).startswith(f"banbury {verb.name}")
        assert parsers.parser(verb).parse_args(words[1 + len(verb.name.split()) :])


def test_help_is_short_of_nothing(capsys):
    assert main([]) == main(["help"]) == main(["-h"]) == 0
    assert main(["help", "fit"]) == 0
    assert "--target" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["fit", "--help"], ["fit"], ["ift"], ["fit", "--no"]])
def test_help_and_usage_import_nothing_heavy(arguments):
    heavy = ["numpy", "scipy", "pyarrow", "sklearn", "rich", "safetensors", "pandas", "banbury._core"]
    code = (
        f"import sys; from banbury.cli import main; main({arguments}); print([m for m in {heavy} if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert found.stdout.splitlines()[-1] == "[]"


UNASKED = [
    *("scipy", "sklearn", "pandas", "pyarrow.compute", "rich", "safetensors", "email"),
    *(f"banbury.{name}" for name in ("calibration", "dependence", "labels", "networks", "quality", "weighing")),
]


@pytest.mark.parametrize("arguments", [["weather.banbury", "today.csv"], ["none.banbury", "today.csv"]])
def test_one_row_is_predicted_without_what_it_does_not_need(here, arguments):
    Path("today.csv").write_text("outlook,humidity,windy\nsunny,normal,no\n", encoding="utf-8")
    bb.save(bb.estimate(bb.count("weather.csv", target="play")), "weather.banbury")
    code = f"import sys; from banbury.cli import main; main({['predict', *arguments]}); "
    code += f"print([m for m in {UNASKED} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert found.stdout.splitlines()[-1] == "[]"


def test_a_small_table_is_fitted_without_scikit_learn(here):
    code = "import sys; from banbury.cli import main; main(['fit', 'weather.csv', '--target', 'play']); "
    code += "print('sklearn' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert found.stdout.splitlines()[-1] == "False"


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(shell.SOURCE), "BANBURY_PROGRESS": "0", **more}


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["fti"], "Did you mean: banbury fit"),
        (["nonsense"], "Commands: fit, tune"),
        (["--fit"], "Did you mean: banbury fit"),
        (["--nonsense"], "'--nonsense' comes before it"),
        (["count", "a.csv"], "Did you mean: banbury tally count"),
        (["tally", "cuont"], "Did you mean: banbury tally count"),
        (["tally", "nonsense"], "unknown command 'tally nonsense'"),
        (["fit"], "INPUT"),
        (["fit", "a.csv", "--nonsense"], "--nonsense"),
        (["tally", "count", "a.csv"], "-o"),
        (["predict", "m.banbury"], "INPUT"),
        (["fit", "a.csv", "--json", "--csv"], "not allowed with"),
        (["fit", "a.csv", "--seed", "x"], "--seed"),
    ],
)
def test_wrong_usage_says_what_is_right(arguments, words, capsys):
    code, message = refused(capsys, *arguments)
    assert code == 2 and words in message


def test_options_may_be_written_as_the_library_writes_them(here, capsys):
    found = said(capsys, "fit", "weather.csv", "--target=play", "--class_prior=uniform", "--no_cross_validate")
    assert found["rows"] == 14 and "accuracy" not in found


# Fit -----------------------------------------------------------------------------------------------------------------


def test_fit_of_a_table_is_count_and_estimate_and_cross_validate(here, capsys):
    found = said(
        capsys, "fit", "weather.csv", "--target", "play", "-o", "new.banbury", "--alpha", "0.5", "--folds", "7"
    )
    model = bb.load("new.banbury")
    tally = bb.count("weather.csv", target="play")
    assert model.tally == tally and (model.choice.how, model.choice.alpha) == ("mean", 0.5)
    expected = bb.cross_validate("weather.csv", target="play", folds=7, alpha=0.5)
    assert found["accuracy"] == expected.accuracy.value and found["majority"] == expected.majority
    assert found["log_loss"] == pytest.approx(expected.log_loss, rel=1e-12)
    assert found["features"][0] == {"name": "outlook", "family": "categorical", "why": "strings", "missing": 0.0}
    assert found["classes"] == [{"class": "no", "rows": 5}, {"class": "yes", "rows": 9}]


def test_fit_of_a_folder_needs_no_option(here, capsys):
    found = said(capsys, "fit", "mail/", "-o", "new.banbury")
    assert found["rows"] == 6 and found["features"][0]["family"] == "text"
    assert bb.load("new.banbury").tally == bb.count("mail")


def test_fit_says_how_few_whole_numbers_are_had_as_numbers(here):
    lines = [f"{i % 3},{i % 2},{i / 7:.3f},{'ab'[i % 5 == 0]}" for i in range(150)]
    (here / "few.csv").write_text("\n".join(["rooms in all,flag,size,y", *lines, ""]))
    shown, _ = shell.on_a_terminal("banbury fit few.csv --target y --plain", here)
    assert "whole numbers, 3 different" in shown
    override = "--features 'rooms in all=gaussian' --features flag=gaussian"
    assert f"To treat them as numbers, add: {override}" in shown
    shown, _ = shell.on_a_terminal(f"banbury fit few.csv --target y {override}", here)
    assert shown.count("declared") == 2
    assert "whole numbers" not in shown


def test_fit_says_which_families_and_why_and_how_good_beside_the_majority(here):
    Path("rows.csv").write_text(
        "id,x,note,y\n" + "".join(f"{i},{i % 7},all the same words here,{i % 2}\n" for i in range(40))
    )
    shown, code = shell.on_a_terminal("banbury fit rows.csv --target y", here)
    assert code == 0
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert "x gaussian integers" in lines and "id identifiers: a different value in every row" in lines
    assert any(line.startswith("accuracy 0.") and "10-fold cross-validation" in line for line in lines)
    assert any(line.startswith("majority 0.5000") for line in lines)
    assert lines[-1] == "The model was not saved. To save it, add: -o rows.banbury"


def test_large_input_is_read_twice_instead_of_held(here, capsys):
    held = said(capsys, "fit", "weather.csv", "--target", "play", "-o", "held.banbury")
    streamed = said(capsys, "fit", "weather.csv", "--target", "play", "-o", "streamed.banbury", "--hold", "0")
    assert bb.load("held.banbury").tally == bb.load("streamed.banbury").tally
    assert streamed["majority"] == held["majority"] and 2 <= streamed["folds"] <= 10
    shown, _ = shell.on_a_terminal("banbury cross-validate weather.csv --target play --hold 0", here)
    assert "in three passes" in shown


@pytest.mark.parametrize("fold_option", [[], ["--hold", "0"]])
def test_fit_counts_rows_without_a_class(here, capsys, fold_option):
    with Path("weather.csv").open("a") as file:
        file.write("sunny,hot,high,weak,\n")
    found = said(capsys, "fit", "weather.csv", "--target", "play", "-o", "new.banbury", *fold_option)
    assert (found["rows"], found["skipped"]) == (14, 1)
    assert bb.load("new.banbury").tally.skipped == 1


def test_fit_tells_of_the_edge_of_a_grid(here, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    words = ["ab"[c] if rng.random() < 0.9 else f"w{rng.integers(40)}" for c in y]
    write_csv("words.csv", {"word": words, "y": y})
    assert main(["fit", "words.csv", "--target", "y", "--plain", "--alpha", "1e-6,1e-5,1e-4"]) == 0
    told = capsys.readouterr().err
    assert "warning: the best alpha is 0.0001, the largest value tried, and larger values may be better." in told


def test_fit_chooses_and_calibrates(here, capsys):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    write_csv("numbers.csv", {"x": np.exp(rng.normal(labels, 1.0)), "y": labels})
    found = said(
        capsys, "fit", "numbers.csv", "--target", "y", "--features", "choose", "--alpha", "auto",
        "--calibrate", "platt", "-o", "new.banbury",
    )  # fmt: skip
    clf = bb.NaiveBayesClassifier(features="choose", alpha="auto", calibrate="platt")
    rows = {"x": np.loadtxt("numbers.csv", delimiter=",", skiprows=1)[:, 0]}
    clf.fit(rows, labels)
    model = bb.load("new.banbury")
    assert found["features"][0]["why"] == "chosen by held-out log loss" and found["calibration"].startswith("Platt")
    assert model.choice.alpha == clf.alpha_
    np.testing.assert_allclose(model.posterior(rows), clf.predict_proba(rows), rtol=1e-9)


def test_fit_says_what_calibration_does_to_the_log_loss(here, capsys):
    table = {"x": [str(i % 5) for i in range(60)], "y": [i % 2 if i % 7 else i % 3 % 2 for i in range(60)]}
    write_csv("rows.csv", table | {f"x{i}": table["x"] for i in range(4)})  # the same five times over
    found = said(capsys, "fit", "rows.csv", "--target", "y", "--calibrate", "temperature", "-o", "new.banbury")
    note = found["notes"][-1]
    before, after = (float(word) for word in note.replace(":", "").replace(",", "").split() if word.startswith("0."))
    assert after == pytest.approx(found["log_loss"], abs=5e-5) and 0 < after < before


def checkerboard(n, told=True):
    """Neither column alone tells the class; both together do, or not even they."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, n)).round(3)
    return {"a": a, "b": b, "y": np.where(a * b > 0, "p", "q") if told else rng.choice(["p", "q"], n)}


NO_BETTER = "This is no better than always answering with the most frequent class"


def test_fit_names_what_would_help_and_how_good_that_is(here, capsys):
    write_csv("board.csv", checkerboard(600))
    found = said(capsys, "fit", "board.csv", "--target", "y", "--plain")
    [note] = found["notes"]
    assert (
        note.startswith(f"{NO_BETTER}. These are, in 10-fold cross-validation on 600 rows: --")
        and found["accuracy"] < 0.6
    )
    figures = dict(re.findall(r"(--\w+) (0\.\d+)", note))
    for option, setting in (("--weigh", {"weigh": True}),):
        expected = bb.cross_validate("board.csv", "y", **setting).accuracy.value
        assert float(figures[option]) == pytest.approx(expected, abs=5e-5) and expected > 0.9
    kept = said(capsys, "fit", "board.csv", "--target", "y", "--tan")
    assert kept["accuracy"] > 0.9 and not any(note.startswith("This is no better") for note in kept["notes"])


def test_fit_says_what_did_not_help_either(here, capsys):
    write_csv("noise.csv", checkerboard(500, told=False))
    note = said(capsys, "fit", "noise.csv", "--target", "y")["notes"][0]
    assert note.startswith(f"{NO_BETTER}. Neither are the alternatives, in 10-fold cross-validation on 500 rows: --")
    assert "--weigh" not in note  # which is compared on the next lines
    assert said(capsys, "fit", "noise.csv", "--target", "y", "--hold", "0", "--plain")["notes"] == [f"{NO_BETTER}."]
    Path("one.csv").write_text("a,y\n" + "1,p\n" * 20)
    assert "only one class" in said(capsys, "fit", "one.csv", "--target", "y")["notes"][0]


def test_fit_says_how_whole_numbers_are_taken_and_how_to_have_them_otherwise(here, capsys):
    rng = np.random.default_rng(0)
    columns = {
        "siblings aboard": rng.poisson(30.0, 200),
        "class": rng.integers(1, 4, 200),
        "fare": rng.normal(size=200),
    }
    write_csv("ship.csv", {**columns, "survived": rng.integers(0, 2, 200)})
    shown = lines_of(capsys, "fit", "ship.csv", "--target", "survived", "--plain", "--table")
    [line] = [line for line in shown if line.startswith("Whole numbers are treated as amounts.")]
    added = shlex.split(line.partition("add ")[2].partition(";")[0])
    assert added == ["--features", "siblings aboard=poisson"]
    assert any(line.endswith("add: --features class=gaussian") for line in shown)
    found = said(capsys, "fit", "ship.csv", "--target", "survived", *added)
    assert {each["name"]: each["family"] for each in found["features"]}["siblings aboard"] == "poisson"


def test_fit_says_how_many_values_are_missing(here, capsys):
    Path("rows.csv").write_text(
        "n,word,text,y\n1,,a text of words,a\n,,some more words here,b\n2,up,,a\n3,down,four words are here,b\n"
    )
    found = said(capsys, "fit", "rows.csv", "--target", "y")
    assert {each["name"]: each["missing"] for each in found["features"]} == {"n": 1, "word": 2, "text": 1}
    assert main(["fit", "rows.csv", "--target", "y", "--table"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["column", "family", "why", "missing"] in lines and ["word", "categorical", "strings", "2"] in lines


@pytest.mark.parametrize("n_classes, doubted", [(50, False), (51, True)])
def test_a_target_of_very_many_numbers_is_doubted(n_classes, doubted, here, capsys):
    write_csv("rows.csv", {"x": [i % 3 for i in range(204)], "age": [i % n_classes for i in range(204)]})
    notes = said(capsys, "fit", "rows.csv", "--target", "age", "--no-cross-validate")["notes"]
    assert any("'age' looks numeric" in note for note in notes) == doubted
    if doubted:
        notes = said(capsys, "fit", "rows.csv", "--target", "age")["notes"]
        assert "not weighed, because it would take long; add --weigh to do it anyway" in notes


def test_fit_of_one_row_has_nothing_to_validate(here, capsys):
    Path("one.csv").write_text("a,b\nx,y\n")
    found = said(capsys, "fit", "one.csv", "--target", "b")
    assert "accuracy" not in found and "one row" in found["notes"][0]


def test_settings_reach_the_library(here, capsys):
    Path("rows.tsv").write_text("".join(f"{i}\t{i % 3}.5\tw{i % 2} and more\t{'ab'[i % 2]}\n" for i in range(30)))
    reading = ["--names", "i,x,t,y", "--delimiter", "tab", "--target", "y"]
    said(
        capsys, "fit", "rows.tsv", *reading, "-o", "new.banbury", "--features", "i=none", "--features", "x=histogram,bins=mdl",
        "--features", "t=text", "--text", "ngrams=1,2", "--text", "model=complement", "--text", "stop_words=and", "--how", "map",
        "--class-prior", "a=0.25,b=0.75", "--threads", "1",
    )  # fmt: skip
    model = bb.load("new.banbury")
    text = bb.Text(ngrams=(1, 2), model="complement", stop_words=["and"])
    assert [(f.name, f.family) for f in model.schema.features] == [("x", bb.Histogram(bins="mdl")), ("t", text)]
    assert model.schema.left_out == {"i": "declared"} and model.choice.how == "map"
    np.testing.assert_allclose(np.exp(model.log_prior), [0.25, 0.75])


@pytest.mark.parametrize("hold", [[], ["--hold", "0"]])
def test_a_class_prior_names_classes_as_the_data_have_them(hold, here, capsys):
    Path("rows.csv").write_text("a,y\n" + "p,1\nq,0\np,1\n" * 10)
    said(capsys, "fit", "rows.csv", "--target", "y", "--class-prior", "0=0.75,1=0.25", "-o", "new.banbury", *hold)
    np.testing.assert_allclose(np.exp(bb.load("new.banbury").log_prior), [0.75, 0.25])
    said(capsys, "tally", "estimate", "new.banbury", "--class-prior", "0=0.5,1=0.5", "-o", "new.banbury")
    np.testing.assert_allclose(np.exp(bb.load("new.banbury").log_prior), [0.5, 0.5])
    said(capsys, "cross-validate", "rows.csv", "--target", "y", "--class-prior", "0=0.75,1=0.25", *hold)


def test_columns_are_taken_together(here, capsys):
    joint = said(
        capsys, "fit", "weather.csv", "--target", "play", "--features", "outlook + wind=joint", "-o", "b.banbury"
    )
    assert [each["name"] for each in joint["features"]] == ["temperature", "humidity", "outlook + wind"]
    blocks = {("outlook", "wind"): bb.Joint()}
    model = bb.estimate(bb.count(bb.datasets.play_tennis(), target="play", features=blocks))
    assert bb.load("b.banbury").posterior("weather.csv") == pytest.approx(model.posterior("weather.csv"))
    write_csv("numbers.csv", {"a": [1, 2, 3, 4, 5, 6], "b": [2, 1, 4, 3, 6, 5], "y": list("ppqqpq")})
    family = "a+b=gaussian,covariance=full"
    found = said(capsys, "fit", "numbers.csv", "--target", "y", "--features", family, "--folds", "2")
    assert [(each["name"], each["family"]) for each in found["features"]] == [("a + b", "gaussian(covariance='full')")]
    _, message = refused(capsys, "fit", "numbers.csv", "--target", "y", "--features", "a+c=kernel_density")
    assert "no column 'c'" in message


@pytest.mark.parametrize(
    "features, words",
    [
        ("a+b=gaussian", ["gaussian,covariance=full (or tied, shrunk)", "Got 'a+b=gaussian' instead"]),
        ("a+y=joint", ["column 'y' is the target", "Remove it from --features"]),
        ("a+w=joint", ["column 'w' is named in --weights", "Remove it from --features"]),
        (
            "a+b=joint(alpha=-1)",
            ["settings, separated by commas: joint,SETTING=VALUE", "Got 'joint(alpha=-1)' instead"],
        ),
        ("a=kernel-densty", ["Got 'kernel-densty' instead", "Did you mean 'kernel_density'?"]),
        ("a+b=joint,al-pha=1", ["Got 'al-pha' instead", "Did you mean 'alpha'?"]),
    ],
)
def test_what_cannot_be_taken_together_is_said_as_it_was_typed(features, words, here, capsys):
    write_csv("numbers.csv", {"a": [1, 2, 3, 4], "b": [2, 1, 4, 3], "w": [1, 1, 2, 1], "y": list("ppqq")})
    arguments = ["numbers.csv", "--target", "y", "--weights", "w", "--features", features]
    _, message = refused(capsys, "fit", *arguments)
    assert all(word in message for word in words) and "bb." not in message
    if "=gaussian" in features:
        said(capsys, "tally", "count", *arguments[:-1], f"{features},covariance=full", "-o", "new.banbury")
        _, message = refused(capsys, "tally", "estimate", "new.banbury", "--features", features, "-o", "newer.banbury")
        assert all(word in message for word in words)


def test_a_column_whose_name_has_a_plus_is_meant_before_a_block(here, capsys):
    write_csv("plus.csv", {"a": [1, 2, 3, 4], "b": [2, 1, 2, 1], "a+b": [3, 3, 5, 5], "y": list("ppqq")})
    for family, name in (("joint", "joint"), ("gaussian", "gaussian")):
        found = said(
            capsys, "tally", "count", "plus.csv", "--target", "y", "--features", f"a+b={family}", "-o", "new.banbury"
        )
        assert [each["name"] for each in found["features"]] == ["a", "b", "a+b"]
        assert found["features"][2]["family"] == name
        said(capsys, "tally", "estimate", "new.banbury", "--features", f"a+b={family}", "-o", "newer.banbury")


def test_more_rows_of_a_density_are_counted_like_it(here, capsys):
    rows, more = {"a": [1.0, 2.0, 4.0]}, {"a": [100.0, 300.0]}
    bb.save(bb.Density().fit(rows).tally_, "rows.banbury")
    bb.save(bb.Density().fit(more).tally_, "more.banbury")
    _, message = refused(capsys, "tally", "merge", "rows.banbury", "more.banbury", "-o", "all.banbury")
    assert "banbury tally count rows.csv --like rows.banbury" in message
    write_csv("more.csv", more)
    said(capsys, "tally", "count", "more.csv", "--like", "rows.banbury", "-o", "more.banbury")
    found = said(capsys, "tally", "merge", "rows.banbury", "more.banbury", "-o", "all.banbury")
    assert found["classes"] == [{"class": "all", "rows": 5}]


def test_what_predict_cannot_do_about_a_value_is_not_advised(here, capsys):
    write_csv("rows.csv", {"x": [1, 2, 3, 4], "y": list("ppqq")})
    said(capsys, "fit", "rows.csv", "--target", "y", "-o", "new.banbury")
    Path("bad.csv").write_text("x\n1\ntwo\n")
    _, message = refused(capsys, "predict", "new.banbury", "bad.csv")
    assert "'two'" in message and "--missing-values" in message and "features" not in message
    _, message = refused(
        capsys, "tally", "count", "bad.csv", "--target", "x", "--features", "x=gaussian", "-o", "it.banbury"
    )
    assert "column 'x' is the target" in message


@pytest.mark.parametrize(
    "options, words",
    [
        (["--alpha", "x"], "--alpha must be a number"),
        (["--how", "maen"], "Did you mean 'mean'?"),
        (["--features", "outlook=categorcal"], "Did you mean 'categorical'?"),
        (["--features", "outlook=categorical,bins=2"], "a setting of categorical"),
        (["--features", "gaussian", "--features", "wind=text"], "one family for all columns"),
        (["--text", "ngrams=2"], "no column is text"),
        (["--text", "ngrms=2"], "Did you mean 'ngrams'?"),
        (["--text", "ngrams"], "with a value"),
        (["--class-prior", "yes=much"], "CLASS=PROBABILITY"),
        (["--class-prior", "ye=1"], "'ye'"),
        (["--missing", "what"], "--missing must be one of"),
        (
            ["--folds", "1"],
            "--folds must be a whole number of at least 2; `banbury cross-validate` also accepts loo. Got '1'",
        ),
        (["--folds", "loo"], "--folds must be a whole number of at least 2; `banbury cross-validate` also accepts loo"),
        (["--class-prior", "yes=0.5"], "a probability for each class; 'no' has none"),
        (["--calibrate", "magic"], "temperature"),
        (["--format", "lines"], "lines have no columns"),
        (["--format", "nonsense"], "--format must be one of"),
        (["--threads", "0"], "--threads must be"),
    ],
)
def test_a_setting_that_cannot_be_is_wrong_usage_or_unknown(options, words, here, capsys):
    code, message = refused(capsys, "fit", "weather.csv", "--target", "play", *options)
    assert code == (1 if options[1] == "ye=1" else 2) and words in message


def test_fit_without_a_target_lists_the_columns(here, capsys):
    code, message = refused(capsys, "fit", "weather.csv")
    assert code == 2 and "--target COLUMN\n" in message and "outlook, temperature" in message
    assert "Columns with few distinct values: outlook, temperature, humidity, wind, play" in message
    Path("mixed.csv").write_text("kind,size\na b,1.5\nb,2.5\na b,3.5\nb,4.5\n")
    assert "--target kind\n" in refused(capsys, "fit", "mixed.csv")[1]  # not the last, which has numbers
    Path("films.csv").write_text("y,a,b\n1,x,u\n0,y,v\n1,x,u\n0,y,v\n")
    assert "--target y\n" in refused(capsys, "fit", "films.csv")[1]


def test_files_of_one_text_per_line_are_told_of_the_option(here, capsys):
    Path("rt.pos").write_text("good, old film\nfine\nnice, short, sweet\n")
    Path("rt.neg").write_text("bad film, really\nawful\n")
    message = refused(capsys, "fit", "rt.pos", "rt.neg")[1]
    assert "--format lines" in message
    assert main("fit rt.pos rt.neg --format lines --json".split()) == 0


def test_a_suggested_target_can_be_pasted_and_the_header_is_doubted(here, capsys, monkeypatch):
    Path("rows.data").write_text("39,State-gov,<=50K\n50,Private,>50K\n")
    code, message = refused(capsys, "fit", "rows.data")
    assert code == 2 and "--target COLUMN\n" in message and "If its first line is a header, pass --header" in message
    Path("rows.tsv").write_text("ham\tgo until the point where the line is too long to be a name\nspam\tfree\n")
    message = refused(capsys, "fit", "rows.tsv")[1]
    assert "--target COLUMN\n" in message and "Columns: ham, go until the point where the line is to…\n" in message


def test_a_header_is_doubted_on_stdin_too(here, capsys, monkeypatch):
    Path("rows.csv").write_text("sunny,no\nrain,yes\n")
    expected = refused(capsys, "evaluate", "play.banbury", "rows.csv")[1]
    assert "read as the header" in expected
    stdin(monkeypatch, Path("rows.csv").read_bytes())
    assert refused(capsys, "evaluate", "play.banbury", "-")[1] == expected.replace("rows.csv", "standard input")


def test_several_folders_with_a_folder_per_class_need_no_target(here, capsys):
    found = said(capsys, "tally", "count", "mail", "mail", "-o", "new.banbury")
    assert found["rows"] == 12 and found["target"] == "class"
    assert bb.load("new.banbury") == bb.count("mail") * 2
    code, message = refused(capsys, "fit", "mail/spam")
    assert code == 2 and "the texts in mail/spam have no class, because there are no sub-folders" in message
    code, message = refused(capsys, "fit", "mail/spam", "mail/ham")
    assert code == 2 and "have no class" in message


def test_a_class_that_is_a_long_text_is_shortened(here, capsys):
    Path("rows.csv").write_text("a,y\nx,short\n" + "".join(f'z,"{"word " * 99}{i}"\n' for i in range(3)))
    assert main(["fit", "rows.csv", "--target", "y", "--table"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "short 25.0%" in first and "word word…" in first and len(first) < 250
    said(capsys, "fit", "rows.csv", "--target", "y", "-o", "new.banbury")
    for arguments in (["show", "new.banbury"], ["evaluate", "new.banbury", "rows.csv"]):
        assert max(map(len, lines_of(capsys, *arguments, "--table"))) < 150


@pytest.mark.parametrize(
    "text, family, words",
    [
        ("x,y\n0,a\n2,b\n", "bernoulli", ["row 2 of column 'x'", "--features COLUMN=bernoulli,threshold=..."]),
        ("x,y\nup,a\ndown,b\n", "bernoulli", ["--features COLUMN=bernoulli,yes=..."]),
        (
            "x,y\n0,a\n1e300,b\n",
            "histogram,start=0,width=1",
            ["row 2 of", "--features COLUMN=histogram,start=...,width=..."],
        ),
    ],
)
def test_what_a_column_should_be_is_said_as_a_shell_says_it(text, family, words, here, capsys):
    Path("rows.csv").write_text(text)
    _, message = refused(
        capsys, "tally", "count", "rows.csv", "--target", "y", "--features", f"x={family}", "-o", "new.banbury"
    )
    assert all(word in message for word in words) and "bb." not in message


def test_a_target_that_is_no_class_is_refused_without_python(here, capsys):
    write_csv("rows.csv", {"x": [i % 3 for i in range(300)], "y": [i + 0.5 for i in range(300)]})
    message = refused(capsys, "fit", "rows.csv", "--target", "y")[1]
    assert "it looks continuous" in message and message.endswith("Cut it into classes first.\n")


def test_rows_are_counted_from_1_where_weights_are_wrong(here, capsys):
    Path("rows.csv").write_text("x,w,y\n0,1,a\n1,-2,b\n")
    assert "the weight of row 2 is" in refused(capsys, "fit", "rows.csv", "--target", "y", "--weights", "w")[1]


def test_rows_by_weight_are_called_so(here, capsys):
    Path("rows.csv").write_text("x,w,y\np,3,a\nq,2,b\n")
    assert main(["fit", "rows.csv", "--target", "y", "--weights", "w", "--no-cross-validate", "--table"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("rows.csv: 5 rows by weight, 2 classes") and "\n\n\n" not in shown


def test_a_file_is_suggested_only_if_its_own_name_is_like(here, capsys):
    assert "Did you mean" not in refused(capsys, "fit", "nope.csv", "--target", "play")[1]
    assert "Did you mean" not in refused(capsys, "show", "new.banbury")[1]
    assert "Did you mean 'weather.csv'?" in refused(capsys, "fit", "wether.csv", "--target", "play")[1]
    assert "Did you mean 'weather.csv'?" in refused(capsys, "fit", "weather", "--target", "play")[1]


def test_the_output_does_not_take_the_place_of_the_data(here, capsys):
    before = Path("weather.csv").read_bytes()
    for verb in (["fit"], ["tally", "count"]):
        code, message = refused(capsys, *verb, "weather.csv", "--target", "play", "-o", "weather.csv")
        assert code == 2 and "a different file from the input" in message
    assert Path("weather.csv").read_bytes() == before


# Predict, explain, evaluate ------------------------------------------------------------------------------------------


def lines_of(capsys, *arguments):
    assert main(list(map(str, arguments))) == 0
    return capsys.readouterr().out.splitlines()


def test_predict_says_a_line_for_each_row(here, capsys):
    model = bb.load("play.banbury")
    expected = model.posterior("weather.csv")
    rows = list(map(json.loads, lines_of(capsys, "predict", "play.banbury", "weather.csv", "--posteriors")))
    assert [row["class"] for row in rows] == model.predict("weather.csv").tolist()
    assert [list(row["posteriors"].values()) for row in rows] == expected.tolist()
    header, *table = lines_of(capsys, "predict", "play.banbury", "weather.csv", "--csv", "--posteriors")
    assert header == "row,class,probability,P(no),P(yes)"
    assert [list(map(float, row.split(",")[3:])) for row in table] == expected.tolist()
    assert [row["row"] for row in rows] == [int(row.split(",")[0]) for row in table] == list(range(1, 15))


def test_a_text_file_is_a_text_to_a_model_of_texts(here, capsys):
    Path("letter.txt").write_text("free pills, and cheap\nwatches; click here\n")
    Path("table.txt").write_text("text\tn\nlunch at noon\t1\nfree pills\t2\n")
    model = bb.load("mail.banbury")
    (row,) = map(json.loads, lines_of(capsys, "predict", "mail.banbury", "letter.txt"))
    whole = {"text": [Path("letter.txt").read_text()]}
    assert row["class"] == model.predict(whole)[0] and row["probability"] == model.posterior(whole).max()
    told = json.loads("\n".join(lines_of(capsys, "explain", "mail.banbury", "letter.txt")))
    assert told["winner"] == row["class"]
    with pytest.warns(errors.BanburyWarning, match="column 'n'"):
        assert bb.load("mail.banbury").predict("table.txt").shape == (2,)


def test_predict_declines_when_unsure(here, capsys):
    rows = list(map(json.loads, lines_of(capsys, "predict", "play.banbury", "weather.csv", "--unsure", "0.8")))
    assert [row["class"] for row in rows] == bb.load("play.banbury").predict("weather.csv", unsure=0.8).tolist()
    assert refused(capsys, "predict", "play.banbury", "weather.csv", "--unsure", "2")[0] == 2


@pytest.mark.parametrize("options", [[], ["--posteriors"]])
def test_columns_stay_in_line_where_it_is_unsure(options, here, capsys):
    lines = lines_of(capsys, "predict", "play.banbury", "weather.csv", "--unsure", "0.8", "--table", *options)
    assert {"unsure", "yes"} <= {line.split()[1] for line in lines}
    assert len({len(line.rstrip()) for line in lines}) == 1


def test_predict_gives_the_cheapest_answer(here, capsys):
    rows = lines_of(capsys, "predict", "play.banbury", "weather.csv", "--costs", "no:yes=5", "--costs", "yes:no=0.5")
    expected = bb.load("play.banbury").predict("weather.csv", costs={"no": {"yes": 5.0}, "yes": {"no": 0.5}})
    assert [json.loads(row)["class"] for row in rows] == expected.tolist()
    assert expected.tolist() != bb.load("play.banbury").predict("weather.csv").tolist()
    for wrong in ("no=5x", "no:yes=nan", "no:yes=inf", "no:yes="):
        code, message = refused(capsys, "predict", "play.banbury", "weather.csv", "--costs", wrong)
        assert code == 2 and "TRUE:PREDICTED=NUMBER" in message
    assert refused(capsys, "predict", "play.banbury", "weather.csv", "--costs", "no:ys=5")[0] == 1


def test_each_line_of_stdin_is_a_text_to_a_model_of_text(here, capsys, monkeypatch):
    stdin(monkeypatch, "free pills\r\n\nlunch on Monday\ncaf\xe9".encode("latin-1"))
    rows = list(map(json.loads, lines_of(capsys, "predict", "mail.banbury", "-")))
    expected = bb.load("mail.banbury").predict({"text": ["free pills", "", "lunch on Monday", "café"]})
    assert [row["class"] for row in rows] == expected.tolist()
    Path("lines.txt").write_text("free pills\nlunch on Monday\n")
    rows = list(map(json.loads, lines_of(capsys, "predict", "mail.banbury", "lines.txt", "--format", "lines")))
    assert [row["class"] for row in rows] == ["spam", "ham"]


@pytest.mark.parametrize("options", [[], ["--format", "lines"]])
def test_a_byte_order_mark_on_stdin_is_no_part_of_the_first_line(options, here, capsys, monkeypatch):
    features = bb.Text(tokens=r"\S+")
    bb.save(bb.estimate(bb.count(["pills", "lunch"], ["spam", "ham"], features=features)), "marks.banbury")
    stdin(monkeypatch, "\ufeffpills\n\ufeffpills\npills\n".encode())
    first, marked, last = (
        json.loads(line)["probability"] for line in lines_of(capsys, "predict", "marks.banbury", "-", *options)
    )
    assert first == last > marked


def test_a_byte_order_mark_is_no_part_of_the_first_column(here, capsys):
    Path("marked.txt").write_text("text,class\nfree pills,spam\n", encoding="utf-8-sig")
    assert json.loads(*lines_of(capsys, "predict", "mail.banbury", "marked.txt"))["class"] == "spam"


def test_a_libsvm_file_on_stdin_is_called_so(here, capsys, monkeypatch):
    stdin(monkeypatch, b"+1 1:2 4:1\n-1 2:3\n")
    code, message = refused(capsys, "fit", "-", "-o", "m.banbury")
    assert code == 1 and "cannot read standard input: it is a LIBSVM or SVMlight file" in message


@pytest.mark.parametrize("named", [True, False])
def test_json_on_stdin_is_no_line_of_text(named, here, capsys, monkeypatch):
    if not named:
        bb.save(bb.estimate(bb.count(["free pills", "lunch"], ["spam", "ham"])), "mail.banbury")
    stdin(monkeypatch, b'{"text": "free pills"}\n{"text": "lunch"}\n')
    rows = list(map(json.loads, lines_of(capsys, "predict", "mail.banbury", "-")))
    expected = bb.load("mail.banbury").posterior({"text": ["free pills", "lunch"]}).max(axis=1)
    assert [row["class"] for row in rows] == ["spam", "ham"]
    np.testing.assert_allclose([row["probability"] for row in rows], expected)
    stdin(monkeypatch, '\ufeff{"text": "free pills"}\n{"text": "lunch"}\n'.encode())
    assert list(map(json.loads, lines_of(capsys, "predict", "mail.banbury", "-"))) == rows
    for line in (b"{free pills", b'{"other": "free pills"}', b"{}"):  # a text, however it begins
        stdin(monkeypatch, line)
        [row] = lines_of(capsys, "predict", "mail.banbury", "-")
        assert json.loads(row)["probability"] == bb.load("mail.banbury").posterior([line.decode()]).max()


def test_headers_are_columns_where_asked(here, capsys, monkeypatch):
    for number in range(4):
        for kind, sender in (("ham", "boss@work"), ("spam", "shop@cheap")):
            Path("posts", kind).mkdir(parents=True, exist_ok=True)
            post = f"From: {sender}{number}\nSubject: {kind} again\nOrganization: none\nTo: you\n\nhello, hello\n"
            Path("posts", kind, str(number)).write_text(post)
    apart = ["--headers", "columns"]
    fitted = said(capsys, "fit", "posts", *apart, "-o", "posts.banbury")
    assert [each["name"] for each in fitted["features"]] == ["subject", "from", "to", "organization", "body"]
    assert {each["family"] for each in fitted["features"]} == {"text"} and fitted["accuracy"] == 1
    assert bb.load("posts.banbury").tally == bb.count("posts", headers="columns")
    assert said(capsys, "fit", "posts", *apart, "--weigh")["accuracy"] == 1
    assert said(capsys, "evaluate", "posts.banbury", "posts", *apart)["accuracy"] == 1
    assert said(capsys, "cross-validate", "posts", "--headers", "columns,from", "--folds", "2")["accuracy"] == 1
    for given in (["posts/spam/0"], ["posts/spam/0", "posts/spam/1"], ["posts/spam"], ["posts/s*/*"]):
        assert json.loads(lines_of(capsys, "predict", "posts.banbury", *given, *apart)[0])["class"] == "spam"
    stdin(monkeypatch, Path("posts/spam/0").read_bytes())
    [row] = map(json.loads, lines_of(capsys, "predict", "posts.banbury", "-", *apart))
    assert (row["class"], row["file"]) == ("spam", "stdin")
    told = said(capsys, "explain", "posts.banbury", "posts", "--row", "8", *apart)
    assert told["truth"] == "spam" and {"subject", "from"} <= {each["feature"] for each in told["evidence"]}
    assert json.loads(lines_of(capsys, "predict", "posts.banbury", "posts/spam")[0])["class"] == "spam"
    code, message = refused(capsys, "predict", "posts.banbury", "posts", "--headers", "subject")
    assert code == 1 and "To read mail headers as columns, pass --headers columns." in message
    code, message = refused(capsys, "fit", "posts", "--headers", "columns,form")
    assert code == 2 and "no message in posts has a header 'form'. Did you mean 'from'?" in message
    code, message = refused(capsys, "fit", "mail", *apart)
    assert code == 2 and "no file in mail was read as mail" in message and "--format mail" in message


def test_mail_on_stdin_is_called_so(here, capsys, monkeypatch):
    stdin(monkeypatch, b"Subject: free\npills")
    assert main(["predict", "mail.banbury", "-", "--format", "mail"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["file"] == "stdin" and "1 of 1 messages in standard input" in err and "/" not in err
    stdin(monkeypatch, b"Subject: free\n\npills")
    assert lines_of(capsys, "predict", "mail.banbury", "-", "--format", "mail", "--csv")[1].startswith("1,stdin,spam,")


def test_a_file_without_an_ending_is_one_text_to_a_model_of_text(here, capsys):
    Path("post").write_text("Subject: lunch\n\nOn Monday, at noon, with\nthe colleagues\n")
    [row] = map(json.loads, lines_of(capsys, "predict", "mail.banbury", "post"))
    assert (row["file"], row["class"]) == ("post", "ham")
    assert len(lines_of(capsys, "predict", "mail.banbury", "post", "post")) == 2
    Path("table").write_text("class,text\nspam,free pills\nham,lunch on Monday\n")
    assert said(capsys, "evaluate", "mail.banbury", "table")["rows"] == 2  # its header names the column
    Path("table").write_text("spam,free pills\nham,lunch on Monday\n")
    assert said(capsys, "evaluate", "mail.banbury", "table", "--names", "class,text")["rows"] == 2


def test_stdin_is_csv_or_json_to_a_model_of_columns(here, capsys, monkeypatch):
    expected = bb.load("play.banbury").predict("weather.csv").tolist()
    stdin(monkeypatch, Path("weather.csv").read_bytes())
    assert [json.loads(line)["class"] for line in lines_of(capsys, "predict", "play.banbury", "-")] == expected
    weather = bb.datasets.play_tennis()
    rows = [dict(zip(weather, row, strict=True)) for row in zip(*weather.values(), strict=True)]
    stdin(monkeypatch, "\n".join(map(json.dumps, rows)).encode())
    assert [json.loads(line)["class"] for line in lines_of(capsys, "predict", "play.banbury", "-")] == expected


def test_a_text_is_answered_before_the_next_one_comes(here):
    command = [sys.executable, "-m", "banbury", "predict", "mail.banbury", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), **pipes) as process:
        for text, expected in (("free pills", "spam"), ("lunch on Monday", "ham")):
            process.stdin.write(text + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["class"] == expected
        process.stdin.close()
        assert process.wait(60) == 0


def test_files_are_predicted_by_their_names(here, capsys):
    rows = list(map(json.loads, lines_of(capsys, "predict", "mail.banbury", "mail/spam")))
    assert [(Path(row["file"]).name, row["class"]) for row in rows] == [(f"{i}.txt", "spam") for i in range(3)]
    several = lines_of(
        capsys, "predict", "mail.banbury", "mail/ham/0.txt", "mail/ham/1.txt", "--format", "text", "--csv"
    )
    assert several[0] == "row,file,class,probability" and len(several) == 3
    assert lines_of(capsys, "predict", "mail.banbury", "mail/h*/*.txt", "--format", "text")


def test_several_files_are_one_table(here, capsys):
    lines = Path("weather.csv").read_text().splitlines(keepends=True)
    Path("a.csv").write_text("".join(lines[:6]))
    Path("b.csv").write_text("".join([lines[0], *lines[6:]]))
    for given in (["a.csv", "b.csv"], ["[ab].csv"]):
        assert said(capsys, "tally", "count", *given, "--target", "play", "-o", "new.banbury")["rows"] == 14
        assert bb.load("new.banbury") == bb.load("tally.banbury")


def test_a_table_whose_unused_column_widens_is_predicted_once(here, capsys):
    n, long = 10_000, "x" * 500
    with Path("wide.csv").open("w") as file:
        file.write("other,outlook,wide\n" + f"1,sunny,{long}\n" * n + f"x,rain,{long}\n" * n)
    assert Path("wide.csv").stat().st_size > 4 << 20
    rows = lines_of(capsys, "predict", "play.banbury", "wide.csv")
    assert len(rows) == 2 * n and json.loads(rows[-1])["row"] == 2 * n
    assert json.loads(rows[0])["probability"] != json.loads(rows[-1])["probability"]


def test_explain_a_text_and_a_row(here, capsys):
    model = bb.load("mail.banbury")
    found = said(capsys, "explain", "mail.banbury", "--text", "free lunch")
    assert found == json.loads(json.dumps(model.explain("free lunch").to_dict()))
    weather = bb.datasets.play_tennis()
    row = {name: column[2] for name, column in weather.items()}
    found = said(capsys, "explain", "play.banbury", "weather.csv", "--row", "3", "--against", "no")
    assert (found.pop("truth"), found.pop("in_training_data")) == ("yes", True)
    play = bb.load("play.banbury")
    assert found == json.loads(json.dumps(play.explain(row, against="no", held_out=True).to_dict()))
    found = said(capsys, "explain", "play.banbury", "weather.csv", "--row", "3", "--held-out", "no")
    assert (found.pop("truth"), found.pop("in_training_data")) == ("yes", True)
    assert found == json.loads(json.dumps(play.explain(row).to_dict()))
    assert lines_of(capsys, "explain", "play.banbury", "weather.csv", "--csv")[0].startswith("feature,value,decibans")


def test_an_explanation_says_what_stands_in_the_file_and_whether_the_answer_is_wrong(here, capsys):
    weather, model = bb.datasets.play_tennis(), bb.load("play.banbury")
    rows = [{name: column[i] for name, column in weather.items()} for i in range(14)]
    right = [model.explain(row, held_out=True).winner == row["play"] for row in rows]
    assert not all(right)
    for row in range(14):
        assert main(["explain", "play.banbury", "weather.csv", "--row", str(row + 1), "--table"]) == 0
        last = capsys.readouterr().out.splitlines()[-1]
        assert (
            last
            == f"True class: {bb.datasets.play_tennis()['play'][row]!r}{', so the prediction is wrong' * (not right[row])}."
        )


def tree_of(path: str) -> bb.Model:
    return bb.estimate(bb.count(path, target="play", features=bb.ColumnTree(level=None)))


MAY = "the model may have been trained on this row, which would bias the explanation: leave the row out with --held-out yes"


@pytest.mark.parametrize("model", ["play.banbury", "tree.banbury"])
def test_a_row_is_left_out_where_the_input_is_what_was_counted(here, capsys, monkeypatch, model):
    """What the input holds is counted to see; of more or fewer rows, or of too much to count, it is said what is not known."""
    bb.save(tree_of("weather.csv"), "tree.banbury")
    text = Path("weather.csv").read_text().splitlines()
    Path("fewer.csv").write_text("\n".join(text[:-1]))
    Path("other.csv").write_text("\n".join([text[0], text[1].replace("sunny", "overcast"), *text[2:]]))
    left_out = "this row is in the training data as 'no'; it was left out here"
    for name, counted in (("weather.csv", True), ("fewer.csv", None), ("other.csv", False)):
        assert said(capsys, "explain", model, name)["in_training_data"] is counted
        shown = "\n".join(lines_of(capsys, "explain", model, name, "--table"))
        assert (left_out in shown, MAY in shown) == (counted is True, counted is None)
    assert left_out in "\n".join(lines_of(capsys, "explain", model, "fewer.csv", "--held-out", "yes", "--table"))
    assert "was not counted with class" in refused(capsys, "explain", model, "other.csv", "--held-out", "yes")[1]
    assert "Did you mean" in refused(capsys, "explain", model, "other.csv", "--held-out", "ye")[1]
    monkeypatch.setattr("banbury.cli.predict.MOST_MEGABYTES_COUNTED", 0)
    assert said(capsys, "explain", model, "weather.csv")["in_training_data"] is None


def test_a_class_is_recognised_in_a_file_of_other_types(here, capsys):
    Path("rows.csv").write_text("a,y\n" + "p,1\nq,0\np,1\n" * 10)
    said(capsys, "fit", "rows.csv", "--target", "y", "-o", "new.banbury")
    Path("words.csv").write_text("a,y\nq,0\np,maybe\nq,\n")
    shown = [lines_of(capsys, "explain", "new.banbury", "words.csv", "--row", i, "--table")[-1] for i in (1, 2)]
    assert shown == ["True class: '0'.", "True class: 'maybe', so the prediction is wrong."]
    shown = lines_of(capsys, "predict", "new.banbury", "words.csv", "--table")
    assert [line.split()[:4] for line in shown[:2]] == [["row", "class", "probability"], ["1", "y", "=", "0"]]
    assert lines_of(capsys, "predict", "new.banbury", "words.csv", "--csv")[1].startswith("1,0,")
    assert "truth" not in said(capsys, "explain", "new.banbury", "words.csv", "--row", "3")


def test_a_row_is_found_in_a_later_batch(here, capsys):
    with Path("long.csv").open("w") as file:
        file.write("outlook\n" + "sunny\n" * 900_000 + "overcast\n")
    found = said(capsys, "explain", "play.banbury", "long.csv", "--row", "900001")
    assert found["evidence"][0]["value"] == "overcast"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["play.banbury"], "--text"),
        (["play.banbury", "--text", "sunny"], "outlook, temperature"),
        (["play.banbury", "weather.csv", "--row", "15"], "from 1 to 14"),
        (["play.banbury", "weather.csv", "--row", "0"], "from 1 to 14"),
        (["mail.banbury", "weather.csv", "--text", "free"], "--text must be used without INPUT and --row"),
        (["mail.banbury", "--row", "3", "--text", "free"], "--text must be used without INPUT and --row"),
    ],
)
def test_explain_says_what_it_needs(arguments, words, here, capsys):
    code, message = refused(capsys, "explain", *arguments)
    assert code == 2 and words in message


def test_evaluate_is_what_the_model_says_of_labelled_rows(here, capsys):
    found = said(capsys, "evaluate", "play.banbury", "weather.csv")
    weather = bb.datasets.play_tennis()
    right = bb.load("play.banbury").predict("weather.csv") == np.array(weather["play"])
    assert found["accuracy"] == right.mean() and found["rows"] == 14
    assert found["notes"][0].startswith("these are the rows that the model was trained on")
    of_mail = said(capsys, "evaluate", "mail.banbury", "mail")
    assert of_mail["accuracy"] == 1.0 and of_mail["notes"] == found["notes"]


def test_a_class_the_model_has_not_met_is_never_right(here, capsys):
    Path("new.csv").write_text("outlook,play\nsunny,perhaps\nrain,yes\nsunny,\n")
    found = said(capsys, "evaluate", "play.banbury", "new.csv")
    assert [each["class"] for each in found["classes"]] == ["no", "yes", "perhaps"]
    assert found["rows"] == 2 and found["confusion"][2][2] == 0 and "'perhaps'" in found["notes"][0]


# Looking -------------------------------------------------------------------------------------------------------------


def test_cross_validate_and_learning_curve_do_as_the_library_does(here, capsys):
    def plain(found):
        return json.loads(json.dumps(found.to_dict()))

    found = said(capsys, "cross-validate", "weather.csv", "--target", "play", "--folds", "7", "--seed", "3", "--plain")
    assert found == plain(bb.cross_validate("weather.csv", target="play", folds=7, seed=3))
    found = said(capsys, "cross-validate", "weather.csv", "--target", "play", "--folds", "loo", "--plain")
    assert found == plain(bb.cross_validate("weather.csv", target="play", folds="loo"))
    found = said(capsys, "cross-validate", "weather.csv", "--target", "play", "--groups", "outlook", "--folds", "3")
    assert found["folds"] == 3 and sum(each["rows"] for each in found["classes"]) == 14
    found = said(
        capsys, "learning-curve", "weather.csv", "--target", "play", "--sizes", "4,1.0", "--repeats", "2", "--plain"
    )
    assert found == plain(bb.learning_curve("weather.csv", target="play", sizes=[4, 1.0], repeats=2))
    rows = lines_of(capsys, "learning-curve", "weather.csv", "--target", "play", "--sizes", "4,8", "--csv")
    assert rows[0] == "rows,accuracy,standard_error,log_loss" and [row.split(",")[0] for row in rows[1:]] == ["4", "8"]


def test_show_a_tally_and_a_model(here, capsys):
    assert said(capsys, "show", "tally.banbury")["kind"] == "tally"
    found = said(capsys, "show", "play.banbury")
    assert found["kind"] == "model" and found["how"] == "mean"
    assert bb.Schema.from_dict(found["schema"]) == bb.load("tally.banbury").schema
    assert main(["show", "play.banbury", "--table"]) == 0
    shown = capsys.readouterr().out
    assert str(bb.load("play.banbury")) in shown and str(bb.load("tally.banbury")) in shown


def test_show_lists_the_columns_that_were_named_when_rows_were_read(here, capsys):
    """For people, without the brackets of a Python list: for a tally, a model and a network."""
    columns = list(bb.datasets.play_tennis())
    Path("bare.csv").write_text(Path("weather.csv").read_text().partition("\n")[2])  # without its header
    tally = bb.count("bare.csv", target="play", columns=columns, missing_values=["", "?"])
    bb.save(tally, "bare.banbury")
    bb.save(bb.estimate(tally), "model.banbury")
    bb.save(bb.BeliefNetwork.tan("bare.csv", target="play", columns=columns), "tree.banbury")
    listed = ", ".join(map(repr, columns))
    for file in ("bare.banbury", "model.banbury"):
        lines = lines_of(capsys, "show", file, "--table")
        assert lines[-3:] == ["read with:", f"  columns         {listed}", "  missing_values  '', '?'"]
        assert said(capsys, "show", file)["reading"]["columns"] == columns
    assert lines_of(capsys, "show", "tree.banbury", "--table")[-1] == f"read with columns: {listed}"


def test_show_the_digest_of_what_was_counted(here, capsys):
    tally = bb.load("tally.banbury")
    for file in ("tally.banbury", "play.banbury"):
        assert said(capsys, "show", file, "--digest") == {"file": file, "digest": tally.digest(), "rounded": False}
    assert main(["show", "tally.banbury", "--digest", "--table"]) == 0
    assert capsys.readouterr().out == f"{tally.digest()}\n"
    bb.save(tally * (1 / 3), "faded.banbury")
    assert main(["show", "faded.banbury", "--digest"]) == 0
    told = capsys.readouterr()
    assert '"rounded": true' in told.out and "proves nothing" in told.err
    bb.save(bb.BeliefNetwork.tan("weather.csv", target="play", level=None), "tree.banbury")
    assert main(["show", "tree.banbury", "--digest"]) == 2
    assert "--digest must be omitted" in capsys.readouterr().err


def test_show_a_network(here, capsys):
    network = bb.BeliefNetwork.tan("weather.csv", target="play", level=None)
    bb.save(network, "tree.banbury")
    found = said(capsys, "show", "tree.banbury")
    assert (found["kind"], found["rows"], found["target"], found["how"]) == ("network", 14, "play", "mean")
    assert {node["name"]: tuple(node["parents"]) for node in found["nodes"]} == network.parents
    assert {node["name"]: tuple(node["values"]) for node in found["nodes"]} == network.values
    assert main(["show", "tree.banbury", "--table"]) == 0
    assert capsys.readouterr().out == f"{network}\ntarget: play\n"
    rows = lines_of(capsys, "show", "tree.banbury", "--csv")
    assert rows[:3] == ["name,parents,kind,values", "play,,string,2", "outlook,play,string,3"]
    lawn = bb.BeliefNetwork.from_tables({"rain": {True: 0.2, False: 0.8}})
    bb.save(lawn, "lawn.banbury")
    found = said(capsys, "show", "lawn.banbury")
    assert found["rows"] is None and found["target"] is None and "how" not in found
    assert main(["show", "lawn.banbury", "--table"]) == 0
    assert capsys.readouterr().out == f"{lawn}\n"


def test_predict_by_a_tree(here, capsys, monkeypatch):
    network = tree_of("weather.csv")
    bb.save(network, "tree.banbury")
    rows = [json.loads(line) for line in lines_of(capsys, "predict", "tree.banbury", "weather.csv", "--posteriors")]
    assert [row["class"] for row in rows] == network.predict("weather.csv").tolist()
    assert [list(row["posteriors"].values()) for row in rows] == network.posterior("weather.csv").tolist()
    assert [row["row"] for row in rows] == list(range(1, 15))
    rows = lines_of(capsys, "predict", "tree.banbury", "weather.csv", "--csv", "--unsure", "0.9")
    assert rows[0] == "row,class,probability"
    assert (
        sum(line.split(",")[1] == "" for line in rows[1:]) == (network.posterior("weather.csv").max(axis=1) < 0.9).sum()
    )
    rows = [
        json.loads(line) for line in lines_of(capsys, "predict", "tree.banbury", "weather.csv", "--costs", "no:yes=100")
    ]
    assert {row["class"] for row in rows} == {"no"}
    assert main(["predict", "tree.banbury", "weather.csv", "--table"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 15
    stdin(monkeypatch, b"outlook,temperature,Wind,humidity\nsunny,,strong,\n")
    assert main(["predict", "tree.banbury", "-", "--json"]) == 0
    out, err = capsys.readouterr()
    row = {"outlook": ["sunny"], **{name: [None] for name in ("temperature", "humidity", "wind")}}
    assert json.loads(out)["probability"] == network.posterior(row).max()
    assert err.splitlines() == [
        "warning: these rows have no column 'wind', which is treated as missing",
        "warning: column 'Wind' was not counted and is ignored",
    ]


def test_how_many_values_are_shown_is_one_at_least(here, capsys):
    code, message = refused(capsys, "show", "play.banbury", "--informative", "0")
    assert code == 2 and "--informative must be a whole number of at least 1. Got 0 instead." in message


def test_explain_by_a_tree(here, capsys):
    network = tree_of("weather.csv")
    bb.save(network, "tree.banbury")
    days = bb.datasets.play_tennis()
    found = json.loads("\n".join(lines_of(capsys, "explain", "tree.banbury", "weather.csv", "--row", "6")))
    expected = network.explain({name: column[5] for name, column in days.items()}, held_out=True)
    assert found == {**json.loads(json.dumps(expected.to_dict())), "truth": days["play"][5], "in_training_data": True}
    assert main(["explain", "tree.banbury", "weather.csv", "--row", "6", "--table"]) == 0
    assert capsys.readouterr().out.startswith(str(expected))
    code, message = refused(capsys, "explain", "tree.banbury", "--text", "sunny")
    assert code != 0 and "this model uses tree" in message
    code, message = refused(capsys, "explain", "tree.banbury", "weather.csv", "--row", "15")
    assert code == 2 and "15" in message


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["show", "tree.banbury", "--informative", "2"], 1, "a model is needed"),
        (["report", "tree.banbury", "weather.csv", "-o", "page.html"], 1, "a model is needed"),
        (["tally", "subtract", "tally.banbury", "tree.banbury", "-o", "new.banbury"], 1, "--like tally.banbury"),
        (
            ["tally", "merge", "tree.banbury", "tree.banbury", "play.banbury", "-o", "new.banbury"],
            1,
            "--like tree.banbury",
        ),
        (
            ["tally", "merge", "lawn.banbury", "lawn.banbury", "-o", "new.banbury"],
            2,
            "tables were given rather than counted",
        ),
        (["predict", "lawn.banbury", "weather.csv"], 1, "bb.load('lawn.banbury').query(node, given)"),
        (["evaluate", "tree.banbury", "weather.csv"], 1, "a model is needed"),
        (
            ["tally", "estimate", "tree.banbury", "--class-prior", "uniform", "-o", "new.banbury"],
            2,
            "--class-prior must be",
        ),
        (
            ["tally", "estimate", "tree.banbury", "--alpha", "1,2", "-o", "new.banbury"],
            2,
            "--alpha must be a single number",
        ),
        (
            ["tally", "estimate", "tree.banbury", "--features", "wind=bernoulli", "-o", "new.banbury"],
            2,
            "--features must be",
        ),
    ],
    ids=lambda each: " ".join(each[:2]) if isinstance(each, list) else "",
)
def test_what_a_network_is_not_for_is_said(arguments, code, expected, here, capsys):
    bb.save(bb.BeliefNetwork.tan("weather.csv", target="play"), "tree.banbury")
    bb.save(bb.BeliefNetwork.from_tables({"rain": {True: 0.2, False: 0.8}}), "lawn.banbury")
    found, message = refused(capsys, *arguments)
    assert found == code and expected in message
    assert not Path("new.banbury").exists() and not Path("page.html").exists()


# Trees ---------------------------------------------------------------------------------------------------------------


def patients(n=400, seed=0):
    """Columns that repeat each other, and numbers that do not."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.4
    fever = np.where(rng.random(n) < np.where(ill, 0.8, 0.2), "yes", "no")
    age = np.where(ill, rng.normal(60, 9, n), rng.normal(40, 9, n)).round(1)
    return {
        "fever": fever.tolist(),
        "shivers": np.where(rng.random(n) < 0.9, fever, "no").tolist(),
        "age": [None if k % 11 == 3 else a for k, a in enumerate(age.tolist())],
        "ill": np.where(ill, "ill", "well").tolist(),
    }


@pytest.mark.parametrize(
    "options", [[], ["--bins", "4", "--how", "mle"], ["--alpha", "0.5", "--folds", "5"]], ids=" ".join
)
def test_fit_a_tree(options, here, capsys):
    table = patients()
    write_csv("ill.csv", table)
    given = dict(zip(options[::2], options[1::2], strict=True))
    how, alpha, folds = given.get("--how", "mean"), float(given.get("--alpha", 1)), int(given.get("--folds", 10))
    bins = int(given["--bins"]) if "--bins" in given else "mdl"
    found = said(capsys, "fit", "ill.csv", "--target", "ill", "--tan", "-o", "ill.banbury", *options)
    model = bb.load("ill.banbury")
    assert model.tally == bb.count("ill.csv", "ill", features=bb.ColumnTree(bins=bins))
    network = bb.BeliefNetwork.from_model(model)
    assert (network.choice.how, network.choice.alpha) == (how, alpha)
    assert ("fever", "shivers") in network.edges
    assert {node["name"]: tuple(node["parents"]) for node in found["nodes"]} == network.parents
    assert (found["rows"], found["target"], found["how"], found["folds"]) == (400, "ill", how, folds)
    frame = pandas.DataFrame(table)
    y = frame["ill"].to_numpy()
    naive = bb.cross_validate("ill.csv", "ill", folds=folds)
    answers = np.empty((400, 2))
    for k in range(folds):
        test = naive.rows[naive.folds == k]
        rest = bb.count(frame.drop(index=test), "ill", schema=model.schema)  # with other edges and cuts
        answers[test] = bb.estimate(rest, how=how, alpha=alpha).posterior(frame.loc[test])
    by_fold = [
        np.mean(naive.labels[answers[t].argmax(1)] == y[t])
        for t in (naive.rows[naive.folds == k] for k in range(folds))
    ]
    assert found["accuracy"] == pytest.approx(np.mean(by_fold), abs=1e-12)
    assert found["majority"] == naive.majority
    log_loss = -np.log(answers[np.arange(400), [("ill", "well").index(label) for label in y]]).mean()
    assert found["log_loss"] == pytest.approx(log_loss, rel=1e-9)


def test_a_tree_says_what_depends_on_what_and_how_good_it_is(here, capsys):
    table = patients() | {"one": ["same"] * 400}
    table["ill"][7] = None
    write_csv("ill.csv", table)
    assert main(["fit", "ill.csv", "--target", "ill", "--tan", "--table"]) == 0
    text = capsys.readouterr().out
    assert "column    values   given" in text and "shivers        2   ill, fever" in text
    assert "by 10-fold cross-validation of a tree of columns (TAN)" in text and "majority" in text
    assert "one        one value only" in text and "and 1 without a class" in text
    found = said(capsys, "fit", "ill.csv", "--target", "ill", "--tan", "--no-cross-validate")
    assert "accuracy" not in found and found["rows"] == 399
    found = said(capsys, "fit", "ill.csv", "--target", "ill", "--tan", "--hold", "0")
    assert 0.7 < found["accuracy"] < 1.0 and not found["in_memory"]
    Path("one.csv").write_text("x,y\nu,a\n")
    found = said(capsys, "fit", "one.csv", "--target", "y", "--tan")
    assert found["notes"] == ["there is only one row, so the model cannot be validated"]
    found = said(capsys, "fit", "weather.csv", "--target", "play", "--tan", "--folds", "100")
    assert found["folds"] == 14 and "14 folds: one for each row" in found["notes"]


def test_a_tree_is_evaluated_merged_subtracted_and_estimated_as_in_python(here, capsys):
    table = patients()
    for name, part in (("a", slice(0, 250)), ("b", slice(250, 400))):
        write_csv(f"{name}.csv", {column: values[part] for column, values in table.items()})
    said(capsys, "fit", "a.csv", "--target", "ill", "--tan", "-o", "a.banbury")
    tree = bb.load("a.banbury")
    found = said(capsys, "evaluate", "a.banbury", "b.csv")
    assert found == json.loads(json.dumps(bb.evaluate(tree, "b.csv").to_dict()))
    found = said(capsys, "tally", "count", "b.csv", "--like", "a.banbury", "-o", "b.banbury")
    assert (found["kind"], found["rows"]) == ("tally", 150) and bb.load("b.banbury") == tree.tally.count("b.csv")
    found = said(capsys, "tally", "merge", "a.banbury", "b.banbury", "-o", "both.banbury")
    assert found["rows"] == 400 and bb.load("both.banbury").tally == tree.tally + tree.tally.count("b.csv")
    said(capsys, "tally", "subtract", "both.banbury", "b.banbury", "-o", "rest.banbury")
    assert bb.load("rest.banbury").tally == tree.tally
    found = said(capsys, "tally", "estimate", "both.banbury", "--how", "map", "--alpha", "2", "-o", "map.banbury")
    assert (found["how"], found["alpha"]) == ("map", 2.0)
    assert bb.load("map.banbury").tally == bb.load("both.banbury").tally
    said(capsys, "fit", "b.csv", "--target", "ill", "--tan", "--bins", "3", "-o", "other.banbury")
    code, message = refused(capsys, "tally", "merge", "a.banbury", "other.banbury", "-o", "new.banbury")
    assert code == 1 and "banbury tally count rows.csv --like a.banbury" in message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tan", "--calibrate", "plat"], "Did you mean 'platt'"),
        (["--tan", "--features", "choose"], "--features must be omitted with --tan"),
        (
            ["--tan", "--weigh"],
            "--weigh must be used without --tan, which implies --plain",
        ),
        (["--tan", "--text", "ngrams=2"], "--text must be omitted"),
        (["--tan", "--bins", "many"], "--bins must be a whole number of at least 2"),
        (["--bins", "4"], "--bins must be used with --tan"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_a_tree_does_without_is_said(options, expected, here, capsys):
    code, message = refused(capsys, "fit", "weather.csv", "--target", "play", *options)
    assert code == 2 and expected in message


def test_show_what_tells_classes_apart(here, capsys):
    found = said(capsys, "show", "play.banbury", "--informative", "2")
    assert found == json.loads(json.dumps(bb.load("play.banbury").informative(2).to_dict()))
    rows = lines_of(capsys, "show", "play.banbury", "--informative", "2", "--csv")
    assert rows[0].startswith("class,feature,value,ratio") and len(rows) == 5
    assert refused(capsys, "show", "tally.banbury", "--informative", "2")[0] == 1
    assert refused(capsys, "show", "play.banbury", "--informative", "-2")[0] == 2


# Tallies -------------------------------------------------------------------------------------------------------------


def test_report_writes_a_page_and_says_the_figures(here, capsys):
    found = said(capsys, "report", "play.banbury", "weather.csv", "--folds", "7", "-o", "play.html")
    expected = bb.cross_validate("weather.csv", target="play", folds=7)
    assert found["accuracy"] == expected.accuracy.value and found["path"] == "play.html"
    page = (here / "play.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "Pairs that break independence" in page
    said(capsys, "report", "play.banbury", "weather.csv", "--title", "Tennis & <wind>", "--mistakes", "2")
    assert "Tennis &amp; &lt;wind&gt;" in (here / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["nope.banbury", "weather.csv"], "does not exist"),
        (["play.banbury", "nope.csv"], "does not exist"),
        (["play.banbury", "weather.csv", "-o", "nowhere/report.html"], "does not exist"),
        (["play.banbury", "weather.csv", "-o", "weather.csv"], "a different file from the input"),
        (["play.banbury", "weather.csv", "--folds", "1"], "folds"),
    ],
)
def test_a_report_that_cannot_be_is_refused(arguments, words, here, capsys):
    before = (here / "weather.csv").read_bytes()
    assert words in refused(capsys, "report", *arguments)[1]
    assert (here / "weather.csv").read_bytes() == before and not (here / "report.html").exists()


def test_demo_is_the_demo(here, monkeypatch, capsys):
    from banbury import demo

    folders = []
    monkeypatch.setattr(demo, "main", folders.append)
    assert main(["demo"]) == 0 and main(["demo", "elsewhere"]) == 0
    assert folders == ["banbury-demo", "elsewhere"]


def test_parts_counted_by_several_processes_merge_to_the_whole_and_subtract_again(here):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 900)
    table = {"x": rng.normal(labels, 1e3), "t": [f"w{i % 7} and w{i % 11} and so on" for i in labels], "y": labels}
    write_csv("all.csv", table)
    for part in range(3):
        write_csv(f"{part}.csv", {name: np.asarray(column)[part::3] for name, column in table.items()})

    def banbury(*arguments):
        return subprocess.Popen(
            [sys.executable, "-m", "banbury", *arguments], env=environment(), stdout=subprocess.DEVNULL
        )

    assert banbury("tally", "count", "0.csv", "--target", "y", "-o", "0.banbury").wait() == 0
    together = [banbury("tally", "count", f"{i}.csv", "--like", "0.banbury", "-o", f"{i}.banbury") for i in (1, 2)]
    assert [process.wait() for process in together] == [0, 0]
    assert banbury("tally", "merge", "2.banbury", "0.banbury", "1.banbury", "-o", "merged.banbury").wait() == 0
    first = bb.load("0.banbury")
    whole = bb.count("all.csv", target="y", schema=first.schema)
    assert bb.load("merged.banbury") == whole
    assert banbury("tally", "subtract", "merged.banbury", "1.banbury", "2.banbury", "-o", "merged.banbury").wait() == 0
    assert bb.load("merged.banbury") == first


def test_a_model_forgets_and_stays_a_model(here, capsys):
    weather = bb.datasets.play_tennis()
    write_csv("part.csv", {name: column[:4] for name, column in weather.items()})
    said(capsys, "tally", "estimate", "tally.banbury", "--how", "predictive", "--alpha", "0.5", "-o", "model.banbury")
    said(capsys, "tally", "count", "part.csv", "--like", "model.banbury", "-o", "part.banbury")
    found = said(capsys, "tally", "subtract", "model.banbury", "part.banbury", "-o", "model.banbury")
    rest = bb.count({name: column[4:] for name, column in weather.items()}, target="play")
    model = bb.load("model.banbury")
    assert found["kind"] == "model" and model.tally == rest
    assert (model.choice.how, model.choice.alpha) == ("predictive", 0.5)


def test_a_merged_model_is_no_longer_calibrated(here, capsys):
    assert main(["fit", "weather.csv", "--target", "play", "--calibrate", "temperature", "-o", "hot.banbury"]) == 0
    capsys.readouterr()
    assert main(["tally", "merge", "hot.banbury", "tally.banbury", "-o", "both.banbury"]) == 0
    assert "warning: after merge the probabilities are no longer calibrated" in capsys.readouterr().err
    assert bb.load("both.banbury").calibration is None


def test_estimate_gives_a_tally_other_settings(here, capsys):
    said(
        capsys,
        "tally",
        "estimate",
        "mail.banbury",
        "--text",
        "model=complement",
        "--text",
        "min_count=2",
        "-o",
        "new.banbury",
    )
    assert bb.load("new.banbury").schema["text"].family == bb.Text(model="complement", min_count=2)
    code, message = refused(capsys, "tally", "estimate", "mail.banbury", "--text", "ngrams=2", "-o", "new.banbury")
    assert code == 1 and "was counted with ngrams" in message


def test_tallies_of_other_things_do_not_merge_and_the_message_says_how(here, capsys):
    code, message = refused(capsys, "tally", "merge", "tally.banbury", "mail.banbury", "-o", "both.banbury")
    assert code == 1 and "--like tally.banbury" in message and not Path("both.banbury").exists()
    code, message = refused(capsys, "tally", "merge", "tally.banbury", "-o", "both.banbury")
    assert code == 2 and "two files" in message


def test_subtracting_what_was_never_added_says_no(here, capsys):
    said(capsys, "tally", "merge", "tally.banbury", "tally.banbury", "-o", "twice.banbury")
    code, message = refused(capsys, "tally", "subtract", "tally.banbury", "twice.banbury", "-o", "new.banbury")
    assert code == 1 and "was not part of this one" in message and not Path("new.banbury").exists()


# What is wrong with the data -----------------------------------------------------------------------------------------

BAD_DATA = {
    "missing.csv": None,
    "empty.csv": b"",
    "blank.csv": b"\n\n\n",
    "header.csv": b"outlook,play\n",
    "binary.csv": bytes(range(256)) * 40,
    "packed.csv": b"PK\x03\x04" + bytes(100),
    "ragged.csv": b"outlook,play\nsunny,no\nsunny,no,yes,no\n",
    "twice.csv": b"play,play\nsunny,no\n",
    "bad.ndjson": b'{"outlook": "sunny", "play": "no"}\n{"outlook":\n',
    "bad.parquet": b"PAR1" + bytes(100) + b"PAR1",
    "bad.csv.gz": b"\x1f\x8b" + bytes(50),
    "\x1b[31mred.csv": None,
}
ON_DATA = [
    ["fit", "DATA", "--target", "play"],
    ["fit", "DATA", "--target", "play", "--hold", "0"],
    ["tally", "count", "DATA", "--target", "play", "-o", "new.banbury"],
    ["tally", "count", "DATA", "--like", "tally.banbury", "-o", "new.banbury"],
    ["predict", "play.banbury", "DATA"],
    ["explain", "play.banbury", "DATA"],
    ["evaluate", "play.banbury", "DATA"],
    ["cross-validate", "DATA", "--target", "play"],
    ["learning-curve", "DATA", "--target", "play"],
]


@pytest.mark.parametrize("name", BAD_DATA, ids=repr)
@pytest.mark.parametrize("arguments", ON_DATA, ids=" ".join)
def test_bad_data_are_refused_in_one_message(name, arguments, here, capsys):
    if BAD_DATA[name] is not None:
        Path(name).write_bytes(BAD_DATA[name])
    if name == "header.csv" and arguments[0] == "predict":
        assert lines_of(capsys, "predict", "play.banbury", name) == []  # no rows, no answers
        return
    code, message = refused(capsys, *(name if word == "DATA" else word for word in arguments))
    assert code in (1, 2) and "\x1b" not in message and "unexpected" not in message
    assert not Path("new.banbury").exists()


@pytest.mark.parametrize("arguments", ON_DATA, ids=" ".join)
def test_what_is_no_file_is_refused_too(arguments, here, capsys):
    os.mkfifo("pipe.csv")
    Path("hollow").mkdir()
    for name in ("pipe.csv", "hollow", "*.nothing"):
        assert refused(capsys, *(name if word == "DATA" else word for word in arguments))[0] == 1


@pytest.mark.parametrize("arguments", ON_DATA, ids=" ".join)
def test_what_may_not_be_read_is_refused(arguments, here, capsys, monkeypatch):
    Path("secret.csv").write_text("outlook,play\nsunny,no\n")
    allowed = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: path != "secret.csv" and allowed(path, mode)
    )  # root may read all
    assert "permission" in refused(capsys, *("secret.csv" if word == "DATA" else word for word in arguments))[1]


ON_FILES = [
    ["predict", "FILE", "weather.csv"],
    ["explain", "FILE", "weather.csv"],
    ["evaluate", "FILE", "weather.csv"],
    ["tally", "merge", "FILE", "tally.banbury", "-o", "new.banbury"],
    ["tally", "subtract", "tally.banbury", "FILE", "-o", "new.banbury"],
    ["tally", "estimate", "FILE", "-o", "new.banbury"],
    ["tally", "count", "weather.csv", "--like", "FILE", "-o", "new.banbury"],
    ["show", "FILE"],
]


@pytest.mark.parametrize("arguments", ON_FILES, ids=" ".join)
def test_bad_files_are_refused_in_one_message(arguments, here, capsys):
    whole = Path("play.banbury").read_bytes()
    bad = {
        "empty": b"",
        "cut": whole[:-20],
        "text": b"outlook,play\n",
        "binary": bytes(range(256)),
        "changed": b"\xff" + whole,
    }
    for name, content in bad.items():
        Path(f"{name}.banbury").write_bytes(content)
    Path("folder.banbury").mkdir()
    for name in [*bad, "folder", "missing", "[a-z]"]:
        code, message = refused(capsys, *(f"{name}.banbury" if word == "FILE" else word for word in arguments))
        assert code == 1 and f"{name}.banbury" in message and not Path("new.banbury").exists()


def test_a_tally_is_no_model(here, capsys):
    assert "banbury tally estimate tally.banbury" in refused(capsys, "predict", "tally.banbury", "weather.csv")[1]


def test_what_cannot_be_written_is_refused(here, capsys):
    Path("folder").mkdir()
    for verb in (
        ["fit", "weather.csv"],
        ["tally", "count", "weather.csv"],
        ["tally", "merge", "tally.banbury", "tally.banbury"],
        ["tally", "estimate", "no"],
    ):
        target = [] if verb[1] in ("merge", "estimate") else ["--target", "play"]
        for place in ("no/such/folder/x.banbury", "folder"):
            code, message = refused(capsys, *verb, *target, "-o", place)
            assert code == 1 and f"cannot write {place}" in message


def test_empty_stdin(here, capsys, monkeypatch):
    stdin(monkeypatch, b"")
    assert lines_of(capsys, "predict", "mail.banbury", "-") == []  # no lines, no answers
    for arguments in (["predict", "play.banbury", "-"], ["fit", "-", "--target", "play"]):
        stdin(monkeypatch, b"")
        code, message = refused(capsys, *arguments)
        assert code == 1 and "standard input" in message and "banbury-" not in message


def test_stdin_is_fitted_as_a_file_is(here, capsys, monkeypatch):
    expected = said(capsys, "fit", "weather.csv", "--target", "play")
    stdin(monkeypatch, Path("weather.csv").read_bytes())
    assert said(capsys, "fit", "-", "--target", "play") == expected


def test_a_command_leaves_the_process_as_it_was(here, capsys):
    before = signal.getsignal(signal.SIGTERM), progress.display
    assert main(["show", "tally.banbury"]) == 0
    assert (signal.getsignal(signal.SIGTERM), progress.display) == before


def test_names_in_the_data_cannot_write_on_the_terminal(here, capsys):
    Path("rows.csv").write_text("a\x1b[2Jb,y\nx,\x1b]0;title\x07no\nz,yes\n" * 1)
    assert main(["fit", "rows.csv", "--target", "y", "-o", "new.banbury", "--table"]) == 0
    assert main(["show", "new.banbury", "--table"]) == 0
    assert main(["predict", "new.banbury", "rows.csv", "--table"]) == 0
    assert main(["explain", "new.banbury", "rows.csv", "--table"]) == 0
    out, err = capsys.readouterr()
    assert "\\x1b" in out and "\x1b" not in out + err and "\x07" not in out + err


def test_warnings_are_a_line_on_stderr(here, capsys):
    Path("part.csv").write_text("outlook,hour\nsunny,3\n")
    assert main(["predict", "play.banbury", "part.csv"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["class"] in ("no", "yes")
    assert all(line.startswith("warning: ") for line in err.splitlines()) and "'hour' was not counted" in err


def test_the_unexpected_is_one_line_and_debug_shows_where(here, capsys, monkeypatch):
    from banbury.cli import show

    def broken(given):
        raise RuntimeError("a bug\nof two lines")

    monkeypatch.setattr(show, "show", broken)
    code, message = refused(capsys, "show", "tally.banbury")
    assert code == 1 and "RuntimeError: a bug)" in message and "--debug" in message
    with pytest.raises(RuntimeError):
        main(["show", "tally.banbury", "--debug"])


def test_what_the_system_refuses_is_one_line_with_its_file(here, capsys, monkeypatch):
    from banbury.cli import show

    def broken(args):
        raise OSError(28, "No space left on device", "out.txt")

    monkeypatch.setattr(show, "show", broken)
    code, message = refused(capsys, "show", "tally.banbury")
    assert code == 1 and "operating system error: No space left on device in out.txt." in message


def test_one_family_for_all_columns_of_a_tally_is_refused(here, capsys):
    code, message = refused(capsys, "tally", "estimate", "tally.banbury", "--features", "gaussian", "-o", "new.banbury")
    assert (
        code == 2
        and "--features must be COLUMN=FAMILY, because each column already has a family. Got 'gaussian'" in message
    )


def test_json_has_neither_nan_nor_infinity(here, capsys):
    Path("rows.csv").write_text("a,y\n" + "x,1\n" * 3 + "z,2\n" * 3)
    said(capsys, "fit", "rows.csv", "--target", "y", "--how", "mle", "-o", "new.banbury")
    assert main(["explain", "new.banbury", "rows.csv"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert found["evidence"][0]["decibans"] == "inf"


# Pipes and interruptions ---------------------------------------------------------------------------------------------


def test_a_closed_pipe_ends_it_quietly(here):
    Path("lines.txt").write_text("free pills\n" * 200_000)
    command = "set -o pipefail; banbury predict mail.banbury - < lines.txt | head -1"
    found = subprocess.run(["bash", "-c", command], env=shell.environment(here), capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (141, "") and json.loads(found.stdout)["class"] == "spam"
    command = "set -o pipefail; banbury predict mail.banbury - < lines.txt | head -0"
    found = subprocess.run(["bash", "-c", command], env=shell.environment(here), capture_output=True, text=True)
    assert (found.returncode, found.stdout, found.stderr) == (141, "", "")
    found = subprocess.run(["bash", "-c", "banbury --help | true"], env=shell.environment(here), capture_output=True)
    assert found.stderr == b""


def test_a_pipe_takes_all_or_it_is_said(here):
    """One batch of answers is more than a pipe holds, and Python itself would drop the rest where output is unbuffered."""
    Path("lines.txt").write_text("free pills\n" * 4_000)
    for reader, expected in [("(sleep 0.2; wc -l)", (0, b"4000\n")), ("(sleep 0.2; head -1 > /dev/null)", (141, b""))]:
        command = f"set -o pipefail; banbury predict mail.banbury - < lines.txt | {reader}"
        env = shell.environment(here) | {"PYTHONUNBUFFERED": "1"}
        found = subprocess.run(["bash", "-c", command], env=env, capture_output=True)
        assert (found.returncode, found.stdout, found.stderr) == (*expected, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    ("command", "unbuffered"),
    [
        ("--help", ""),
        ("fit weather.csv --target play", ""),
        ("predict play.banbury weather.csv", ""),
        ("predict play.banbury weather.csv", "1"),
    ],
)
def test_a_full_disk_is_one_message(command, unbuffered, here):
    env = shell.environment(here) | {"PYTHONUNBUFFERED": unbuffered}
    shown = subprocess.run(["bash", "-c", f"banbury {command} > /dev/full"], env=env, capture_output=True)
    assert shown.returncode == 1 and shown.stderr == b"banbury: operating system error: No space left on device.\n"


def test_a_line_of_many_megabytes_is_a_text(here, capsys, monkeypatch):
    stdin(monkeypatch, b"free " * 4_000_000 + b"\nlunch")
    assert [json.loads(line)["class"] for line in lines_of(capsys, "predict", "mail.banbury", "-")] == ["spam", "ham"]


def test_ctrl_c_while_reading(here):
    command = [sys.executable, "-m", "banbury", "fit", "-", "--target", "play", "-o", "new.banbury"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    folder = here / "temporary"
    folder.mkdir()
    with subprocess.Popen(command, env=environment(TMPDIR=str(folder)), **pipes) as process:
        process.stdin.write(b"outlook,play\nsunny,no\n")
        process.stdin.flush()
        until = time.monotonic() + 600
        while not list(folder.glob("*/stdin*")) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out, err) == (130, b"", b"banbury: interrupted\n")
    assert not Path("new.banbury").exists() and not list(folder.iterdir())


@pytest.mark.parametrize("end, code", [(KeyboardInterrupt, 130), (SystemExit(143), 143)])
def test_an_interrupted_write_leaves_what_was_there(end, code, here, capsys, monkeypatch):
    before = Path("tally.banbury").read_bytes()
    files = sorted(os.listdir())

    def interrupted(*_):
        raise end

    monkeypatch.setattr(os, "replace", interrupted)  # all is written, and not yet in its place
    assert main(["tally", "merge", "tally.banbury", "tally.banbury", "-o", "tally.banbury"]) == code
    assert Path("tally.banbury").read_bytes() == before and sorted(os.listdir()) == files


# A terminal ----------------------------------------------------------------------------------------------------------


def test_a_terminal_gets_tables_and_a_pipe_json(here):
    shown, _ = shell.on_a_terminal("banbury predict mail.banbury mail/spam", here)
    assert shown.splitlines()[0].split() == ["row", "class", "probability"]
    shown, _ = shell.on_a_terminal("banbury predict mail.banbury mail/spam | cat", here)
    assert [json.loads(line)["class"] for line in shown.splitlines()] == ["spam"] * 3


def test_progress_is_a_bar_on_stderr_that_goes_away(monkeypatch):
    from banbury.cli.bar import Bar

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(progress, "SECONDS_BEFORE_FIRST", 0.01)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.01)
    monkeypatch.setattr(progress, "display", Bar)
    monkeypatch.delenv("BANBURY_PROGRESS")
    monkeypatch.setenv("TERM", "xterm")
    terminal, read = Terminal(), []
    with contextlib.redirect_stderr(terminal):
        for batch in progress.watch(batches(5), "counting", "mail/"):
            time.sleep(0.1)
            read.append(batch)
    shown = terminal.getvalue()
    assert len(read) == 5 and "counting mail/" in shown and "s left" in shown
    assert shown.endswith("\x1b[2K")  # the line is wiped


def batches(n):
    from types import SimpleNamespace

    return [SimpleNamespace(n_rows=2000, share=(i + 1) / n) for i in range(n)]


@pytest.mark.parametrize(("page", "at_least"), [("reference/command-line", 25), ("how-to/several-labels", 5)])
def test_the_page_says_what_happens(page, at_least, tmp_path):
    checker = doctest.OutputChecker()
    found = shell.examples(DOCS / f"{page}.md")
    assert len(found) > at_least
    with shell.ready() as address:
        for command, expected in found:
            shown, _ = shell.on_a_terminal(command, tmp_path, address)
            got = "\n".join(line.rstrip() for line in shown.rstrip().splitlines())
            assert checker.check_output(expected + "\n", got + "\n", doctest.ELLIPSIS), f"$ {command}\n{got}"


# Large files ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path):
    """A file four times as long takes hardly more memory. BANBURY_LARGE_MB=1000 tries a gigabyte."""
    most = float(os.environ.get("BANBURY_LARGE_MB", "60"))
    peaks = [peak_of_fit(tmp_path, megabytes) for megabytes in (most / 4, most)]
    assert peaks[1] - peaks[0] < most / 8


def peak_of_fit(folder, megabytes):
    """How many megabytes a fit takes at most."""
    path = folder / f"{megabytes:g}.csv"
    rng = np.random.default_rng(0)
    rows = [f"{x:.4f},{y % 90},{'red' if y % 3 else 'blue'},some words of number w{y} here,{y % 2}\n"
            for x, y in zip(rng.normal(size=5000), rng.integers(0, 1000, 5000), strict=True)]  # fmt: skip
    block = "".join(rows)
    with path.open("w") as file:
        file.write("amount,age,colour,note,label\n")
        for _ in range(int(megabytes * 1e6 / len(block))):
            file.write(block)
    code = (
        "import resource, sys; from banbury.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    arguments = ["fit", str(path), "--target", "label", "--hold", "1", "--plain", "-o", str(folder / "new.banbury")]
    found = subprocess.run([sys.executable, "-c", code, *arguments], env=environment(), capture_output=True, text=True)
    assert found.returncode == 0 and json.loads(found.stdout)["folds"] == 10
    kilobytes = int(found.stderr.split()[-1])
    return kilobytes / 1e3 if sys.platform != "darwin" else kilobytes / 1e6


def test_every_word_of_an_option_that_messages_name_is_an_option():
    from banbury.cli.wording import OPTIONS

    known = {
        option for verb in parsers.VERBS for action in parsers.parser(verb)._actions for option in action.option_strings
    }
    assert {f"--{name.replace('_', '-')}" for name in OPTIONS.split()} <= known
    assert issubclass(errors.BadSetting, errors.BanburyError)


# Streams that are closed, or hold less than all letters ---------------------------------------------------------------


def bash(here, command, **more):
    return subprocess.run(
        ["bash", "-c", command], cwd=here, env=shell.environment(here) | more, capture_output=True, timeout=600
    )


@pytest.mark.parametrize("command", ["--help", "predict play.banbury weather.csv", "show play.banbury"])
def test_output_that_goes_nowhere_is_no_success(here, command):
    done = bash(here, f"banbury {command} >&-")
    assert (
        done.returncode == 1 and done.stderr.startswith(b"banbury: stdout is closed") and done.stderr.count(b"\n") == 1
    )
    assert bash(here, f"banbury {command} > /dev/null").returncode == 0


def test_a_model_is_kept_though_stdout_is_closed(here):
    done = bash(here, "banbury fit weather.csv --target play -o new.banbury >&-")
    assert done.returncode == 1 and (here / "new.banbury").exists()
    assert bash(here, "banbury fit nope.csv --target play -o new.banbury >&-").stderr.count(b"\n") == 1


def test_with_stderr_closed_messages_are_no_results(here):
    done = bash(here, "banbury fit nope.csv --target play 2>&-")
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_is_json_whatever_the_encoding(encoding, here):
    bb.save(bb.estimate(bb.count({"x": ["a", "b"], "y": ["ü😀\x9b", "\u202eλ"]}, target="y")), here / "odd.banbury")
    done = bash(here, "banbury show odd.banbury --json", PYTHONIOENCODING=encoding)
    shown = done.stdout.decode(encoding)
    assert [each["class"] for each in json.loads(shown)["classes"]] == ["ü😀\x9b", "\u202eλ"]
    assert "\x9b" not in shown and "\u202e" not in shown


def test_csv_on_a_terminal_moves_no_cursor(here):
    bb.save(bb.estimate(bb.count({"x": ["a", "b"], "y": ["\x1b[31mred", "plain"]}, target="y")), here / "odd.banbury")
    (here / "new.csv").write_text("x\na\n")
    shown, code = shell.on_a_terminal("banbury predict odd.banbury new.csv --csv", here)
    assert code == 0 and "\x1b" not in shown and "\\x1b[31mred" in shown
    assert "\x1b[31mred" in bash(here, "banbury predict odd.banbury new.csv --csv").stdout.decode()


@pytest.mark.parametrize("kind", ["fifo", "link", "folder", ""])
def test_the_output_is_a_file_or_becomes_one(kind, here, capsys):
    place = here / "out.banbury"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "link":
        place.symlink_to(here / "real.banbury")
    elif kind == "folder":
        place.mkdir()
    given = ["tally", "count", "weather.csv", "--target", "play", "-o", str(place) if kind else ""]
    if kind == "link":
        said(capsys, *given)
        assert place.is_symlink() and bb.load(here / "real.banbury") == bb.load("tally.banbury")
        return
    refused(capsys, *given)
    assert not kind or (place.is_fifo() if kind == "fifo" else place.is_dir())
    assert not list(here.glob("*.part"))


def test_a_terminal_that_hangs_up_leaves_nothing_half_written(here):
    command = [sys.executable, "-m", "banbury", "predict", "play.banbury", "-", "--format", "csv"]
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)}  # though the tests run under nohup
    with subprocess.Popen(command, env=environment(TMPDIR=str(here)), stdin=subprocess.PIPE, **heard) as run:
        until = time.monotonic() + 600
        while not list(here.glob("banbury-*/stdin*")) and time.monotonic() < until:
            time.sleep(0.02)
        assert list(here.glob("banbury-*/stdin*"))
        run.send_signal(signal.SIGHUP)
        assert run.wait(timeout=600) == 129
    assert not list(here.glob("banbury-*"))


# Densities -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def density(here):
    found = bb.Density().fit({"x": [1.0, 2.0, 3.0, 2.0], "s": ["a", "a", "b", "a"]})
    bb.save(found.model_, "rows.banbury")
    write_csv("new.csv", {"x": [2.0, 9.0], "s": ["a", "c"]})
    return found


def test_of_a_density_the_probability_of_every_row_is_said(density, capsys):
    logs = density.score_samples({"x": [2.0, 9.0], "s": ["a", "c"]}).tolist()
    assert main(["predict", "rows.banbury", "new.csv"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [{"row": 1, "log_probability": logs[0]}, {"row": 2, "log_probability": logs[1]}]
    assert main(["predict", "rows.banbury", "new.csv", "--csv"]) == 0
    assert capsys.readouterr().out == f"row,log_probability\n1,{logs[0]}\n2,{logs[1]}\n"


def test_of_a_density_a_row_is_explained_by_what_is_unusual(density, capsys):
    shown = said(capsys, "explain", "rows.banbury", "new.csv", "--row", "2")
    assert shown == density.surprise({"x": [9.0], "s": ["c"]}).to_dict()
    _, message = refused(capsys, "explain", "rows.banbury", "new.csv", "--against", "a")
    assert "--against must be omitted for a density" in message


def test_on_a_terminal_a_density_is_a_table(density, here):
    shown, _ = shell.on_a_terminal("banbury predict rows.banbury new.csv", here)
    first = density.score_samples({"x": [2.0], "s": ["a"]})[0]
    assert shown.splitlines()[:2] == ["    row  log P(row)", f"      1  {first:10.4f}"]
