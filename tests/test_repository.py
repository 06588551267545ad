"""Facts about the repository as a whole that a change can break without touching the code that depends on them."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

import banbury
import house
import lectures
from banbury import _core
from banbury.families import FAMILIES

ROOT = Path(__file__).parents[1]


def files_under_version_control() -> list[Path]:
    """The files git tracks, and those it would track once added."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_help_lists_every_command() -> None:
    shown = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    commands = {line.split()[0] for line in shown.splitlines()}
    assert commands == {
        "help",
        "demo",
        "serve-demo",
        "docs",
        "test",
        "test-slow",
        "test-rust",
        "test-engines",
        "test-all",
        "lint",
        "lint-rust",
        "bench",
        "wheel",
        "clean",
    }

    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    assert commands == set(phony[1].split()) - {"FORCE"}


def test_no_file_names_a_place_on_someones_machine() -> None:
    private = re.compile(rb"(?<![\w.-])/((home|Users)/\w|(root|work)/)")
    offenders = {
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in files_under_version_control()
        if (match := private.search(path.read_bytes()))
    }
    assert not offenders


# Workflows -----------------------------------------------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HOSTS = re.compile(r"https?://|--(extra-)?index-url|PIP_INDEX|CARGO_REGISTRIES|replace-with")
EXPRESSION = re.compile(r"\$\{\{ *matrix\.(\w+) *\}\}")


def rows_of(job: dict[str, Any]) -> list[dict[str, Any]]:
    """What each run of a job has for its matrix: the product of the lists, filled up and followed by what is included."""
    matrix = dict(job.get("strategy", {}).get("matrix", {}))
    included = matrix.pop("include", [])
    rows = [dict(zip(matrix, values, strict=True)) for values in product(*matrix.values())] if matrix else []
    alone = []
    for more in included:
        alike = [row for row in rows if all(row[name] == more.get(name, row[name]) for name in matrix)]
        alone += [] if alike else [dict(more)]
        for row in alike:
            row |= more
    return rows + alone or [{}]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_yaml_whose_parts_are_there(path: Path) -> None:
    text = path.read_text()
    assert not HOSTS.search(text)
    workflow = yaml.safe_load(text)
    assert workflow.keys() >= {"name", True, "permissions", "jobs"}  # "on" is a yes to YAML
    jobs = workflow["jobs"]
    for name, job in jobs.items():
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else set(needs) <= set(jobs), name
        for row in rows_of(job):
            assert set(EXPRESSION.findall(yaml.safe_dump(job))) <= set(row), name
        assert job["steps"], name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), (name, step)
            assert "uses" not in step or re.fullmatch(r"[\w.-]+/[\w.-]+@(v\d+|release/v\d+)", step["uses"]), step


def test_wheels_are_made_for_each_system_and_tried_there() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())["jobs"]
    built = {row["name"]: row for row in rows_of(jobs["wheel"])}
    assert set(built) == {"linux-x86_64", "linux-aarch64", "macos-arm64", "macos-x86_64", "windows-x64"}
    for name, row in built.items():
        system = {"linux": "ubuntu", "macos": "macos", "windows": "windows"}[name.partition("-")[0]]
        assert row["system"].startswith(system)
    tried = [row["name"] for job in ("bare-linux", "bare-elsewhere") for row in rows_of(jobs[job])]
    assert set(tried) == set(built)
    assert {"sdist", "bare-linux", "bare-elsewhere"} <= set(jobs["publish"]["needs"])
    [maturin] = [step for step in jobs["wheel"]["steps"] if "maturin" in step.get("uses", "")]
    assert "--locked" in maturin["with"]["args"] and maturin["with"]["manylinux"] == "auto"


def test_one_wheel_serves_every_python_from_the_oldest_on() -> None:
    oldest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    core = tomllib.loads((ROOT / "rust" / "Cargo.toml").read_text())["dependencies"]["pyo3"]
    assert f"abi3-py{oldest.replace('.', '')}" in core["features"]


def test_links_between_pages_lead_somewhere() -> None:
    link, code = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)"), re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    broken = {
        f"{page.relative_to(ROOT)}: {target}"
        for page in files_under_version_control()
        if page.suffix == ".md"
        for target in link.findall(code.sub("", page.read_text(encoding="utf-8")))
        if not (page.parent / target).exists()
    }
    assert not broken


def test_every_line_of_the_lectures_page_comes_from_a_test() -> None:
    assert [lectures.key(line) for line in lectures.lines()] == lectures.declared()


def test_one_version_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    crate = tomllib.loads((ROOT / "rust" / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    assert project["version"] == crate["version"] == banbury.__version__
    assert f"## {banbury.__version__} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_import_banbury_leaves_heavy_libraries_alone() -> None:
    heavy = ["pyarrow", "pandas", "polars", "scipy.stats", "matplotlib", "rich"]
    code = f"import sys, banbury; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == "[]", "`import banbury` imports them; import them where they are used"


def test_the_stub_names_what_the_core_has() -> None:
    stub = ast.parse((ROOT / "src" / "banbury" / "_core.pyi").read_text(encoding="utf-8"))
    declared = {node.name for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert declared == {name for name in dir(_core) if not name.startswith("_")}


def test_families_are_named_only_where_one_is_chosen() -> None:
    closed = house.concrete(house.modules())
    assert closed.keys() > {family.__name__ for family in FAMILIES.values()}
    assert {"GaussianParameters", "HistogramBlockParameters", "BagParameters"} < closed.keys()
    assert not closed.keys() & {"Family", "Parameters", "NumericParameters", "KeyedParameters"}


@pytest.mark.parametrize(
    "line, said",
    [
        ("from banbury.families import Poisson", "names Poisson"),
        (
            "if TYPE_CHECKING:\n    from banbury.families.bags.parameters import BagParameters as T",
            "names BagParameters",
        ),
        ("import banbury as bb\nisinstance(x, bb.Histogram)", "names Histogram"),
        ("from banbury.families import gaussian\ngaussian.Gaussian()", "names Gaussian"),
        ("isinstance(x, FAMILIES['text'])", "guesses what a family is or has"),
        ("hasattr(feature.family, 'bins')", "guesses what a family is or has"),
        ("feature.family.name == 'poisson'", "tells families apart by a word"),
        ("feature.family.shape in ('keys', 'bins')", "tells families apart by a word"),
        ("type(given).__name__ == 'Gaussian'", "tells families apart by a word"),
        ("match feature.family.name:\n    case _: pass", "tells families apart by a word"),
        ("from banbury.quality import tune", "imports tune from the package it is in"),
    ],
)
def test_what_opens_the_families_again_is_found(line: str, said: str) -> None:
    every = house.modules()
    found = list(house.offences("banbury.quality.new", ast.parse(line), every, house.concrete(every)))
    assert len(found) == 1 and said in found[0]


@pytest.mark.parametrize(
    "line, n_found",
    [
        ("ax.legend()", 1),
        ("figure.legend(title='rows', ncols=2)", 1),
        ("ax.legend(loc='best')", 1),
        ("ax.legend(handles, labels, loc=0)", 1),
        ("ax.legend(loc='upper left')", 0),
        ("ax.legend(loc=place)", 0),
        ("ax.get_legend()", 0),
    ],
)
def test_a_legend_without_a_place_is_found(line: str, n_found: int) -> None:
    assert len(list(house.legends(ast.parse(line)))) == n_found


def test_an_exception_that_is_none_any_more_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {"banbury.model.networks.variables": {"Bernoulli", "Categorical", "Histogram"}}
    monkeypatch.setattr(house, "STILL_NAME", allowed)
    changed = ast.parse("from banbury.families import Bernoulli, Histogram")
    every = {**house.modules(), "banbury.model.networks.variables": changed}
    assert [each.split(";")[0] for each in house.unused(every, house.concrete(every))] == [
        "banbury.model.networks.variables names Categorical no more"
    ]
