"""The figures as a table, as JSON, as a record, and as the tables of benchmarks/record/figures.md."""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.measure import Figure, Setting

HEADINGS = ["benchmark", "task", "data", "ours", "peer", "its time", "ratio", "answers"]
FIGURES = re.compile(r"(<!-- figures -->\n)(.*)(<!-- end of figures -->)", re.DOTALL)
SECTION = re.compile(r"^### (\w+)\n\n(.*?)\s*(?=^### |\Z)", re.DOTALL | re.MULTILINE)
BUSY = 0.1  # the share of the machine that other processes may take before the figures are doubtful


@dataclass(frozen=True)
class Run:
    """The figures of one run, its setting, and the share of the machine that other processes took."""

    figures: Sequence[Figure]
    setting: Setting
    busy_share: float | None

    def conditions(self) -> str:
        n = self.setting.repeats
        turns = f"up to {n} turns" if n > 1 else "one turn"
        text = f"{self.setting.threads} thread{'s' * (self.setting.threads > 1)} for every engine, the least time of {turns}"
        if self.setting.small:
            text += ", small data"
        if self.busy_share is not None:
            text += f"; other processes took {self.busy_share:.0%} of the machine"
        if self.busy_share is not None and self.busy_share > BUSY:
            text += ". IT WAS NOT IDLE: run it again alone"
        return text


def as_text(run: Run) -> str:
    rows = [HEADINGS, *map(table_row, run.figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([machine.describe(), run.conditions(), "", *lines])


def table_row(figure: Figure) -> list[str]:
    """A row of the table."""
    return [
        figure.benchmark,
        figure.task,
        figure.data,
        amount(figure.ours, figure.unit),
        figure.peer_name,
        "" if figure.peer is None else amount(figure.peer, figure.unit),
        "" if figure.ratio is None else f"{figure.ratio:.3g}×" if figure.ratio < 100 else f"{figure.ratio:.0f}×",
        figure.answers,
    ]


def amount(number: float, unit: str = "s") -> str:
    if unit != "s":
        return f"{number:,.2f} {unit}" if number < 100 else f"{number:,.0f} {unit}"
    if number < 1e-3:
        return f"{number * 1e6:.0f} µs"
    return f"{number * 1e3:.3g} ms" if number < 0.9995 else f"{number:.2f} s"


def records(run: Run) -> list[dict[str, Any]]:
    """A complete record of each figure."""
    shared = {
        "threads": run.setting.threads,
        "repeats": run.setting.repeats,
        "small": run.setting.small,
        "others": None if run.busy_share is None else round(run.busy_share, 3),
        "date": datetime.date.today().isoformat(),
        "machine": machine.describe(),
    }
    return [asdict(figure) | {"ratio": figure.ratio} | shared for figure in run.figures]


def as_json(run: Run) -> str:
    return json.dumps(records(run), indent=2, ensure_ascii=False)


def default_record() -> Path:
    return Path(__file__).with_name("record") / f"{datetime.date.today().isoformat()}-{machine.slug()}.csv"


def write_csv(run: Run, path: Path) -> None:
    rows = records(run)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


def write_page(run: Run, path: Path) -> None:
    """Writes a section for each benchmark of the run between the two comments of the page; those of other benchmarks stay."""
    page = path.read_text(encoding="utf-8")
    match = FIGURES.search(page)
    if match is None:
        raise SystemExit(f"{path} has no lines <!-- figures --> and <!-- end of figures --> to write between")
    sections = dict(SECTION.findall(match[2]))
    conditions = f"Measured on {datetime.date.today().isoformat()}: {machine.describe()}. {run.conditions()}."
    for name, table in tables(run.figures).items():
        sections[name] = f"{conditions}\n\n{table}"
    text = "\n\n".join(f"### {name}\n\n{section}" for name, section in sections.items())
    path.write_text(f"{page[: match.start()]}{match[1]}\n{text}\n\n{match[3]}{page[match.end() :]}", encoding="utf-8")


def tables(figures: Sequence[Figure]) -> dict[str, str]:
    """Returns a Markdown table for each benchmark, without the columns that it does not use."""
    table_by_benchmark = {}
    for name in dict.fromkeys(figure.benchmark for figure in figures):
        rows = [table_row(figure) for figure in figures if figure.benchmark == name]
        used = [column for column in range(1, len(HEADINGS)) if any(row[column] for row in rows)]
        lines = [markdown([row[column] for column in used]) for row in [HEADINGS, ["---"] * len(HEADINGS), *rows]]
        table_by_benchmark[name] = "\n".join(lines)
    return table_by_benchmark


def markdown(row: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(row)} |"


def heading(row: Sequence[str]) -> str:
    """The first two rows of a Markdown table."""
    return f"{markdown(row)}\n{markdown(['---'] * len(row))}"
