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
FIGURES = re.compile(r"(<!-- figures -->\n).*(<!-- end of figures -->)", re.DOTALL)
BUSY = 0.1  # the share of the machine that other processes may take before the figures are doubtful


@dataclass(frozen=True)
class Run:
    """The figures of one run, its setting, and the share of the machine that other processes took."""

    figures: Sequence[Figure]
    setting: Setting
    busy_share: float | None

    def conditions(self) -> str:
        turns = f"{self.setting.repeats} turn{'s' * (self.setting.repeats > 1)}"
        text = f"{self.setting.threads} threads for every engine, least of {turns} or more"
        if self.setting.small:
            text += ", small data"
        if self.busy_share is not None:
            text += f"; other processes took {self.busy_share:.0%} of the machine"
        if self.busy_share is not None and self.busy_share > BUSY:
            text += ". IT WAS NOT IDLE: run it again alone"
        return text


def as_text(run: Run) -> str:
    rows = [HEADINGS, *map(cells, run.figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([machine.describe(), run.conditions(), "", *lines])


def cells(figure: Figure) -> list[str]:
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
    """Replace what stands between the two comments of the page."""
    page = path.read_text(encoding="utf-8")
    if not FIGURES.search(page):
        raise SystemExit(f"{path} has no lines <!-- figures --> and <!-- end of figures --> to write between")
    made = f"Measured on {datetime.date.today().isoformat()}: {machine.describe()}. {run.conditions()}."
    text = "\n\n".join([made, *tables(run.figures)])
    path.write_text(FIGURES.sub(lambda match: f"{match[1]}\n{text}\n\n{match[2]}", page), encoding="utf-8")


def tables(figures: Sequence[Figure]) -> list[str]:
    """A Markdown table for each benchmark, without the columns that it does not use."""
    texts = []
    for name in dict.fromkeys(figure.benchmark for figure in figures):
        rows = [cells(figure) for figure in figures if figure.benchmark == name]
        used = [column for column in range(1, len(HEADINGS)) if any(row[column] for row in rows)]
        lines = [markdown([row[column] for column in used]) for row in [HEADINGS, ["---"] * len(HEADINGS), *rows]]
        texts.append("\n".join([f"### {name}", "", *lines]))
    return texts


def markdown(row: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(row)} |"


def heading(row: Sequence[str]) -> str:
    """The first two rows of a Markdown table."""
    return f"{markdown(row)}\n{markdown(['---'] * len(row))}"
