"""The figures as a table, as JSON, as a record and as the page of docs."""

from __future__ import annotations

import csv
import datetime
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.measure import Figure, Setting

HEADINGS = ["benchmark", "task", "data", "ours", "peer", "its time", "ratio", "aim", "of C", "of memory", "answers"]

OURSELVES = {"trees", "threads", "em"}  # benchmarks whose peer is ours
FURTHEST = 5  # aims that are named in the summary

BUSY = 0.1  # of the machine taken by others: more, and the figures are no longer ours


@dataclass(frozen=True)
class Run:
    """The figures of one run, how it was done, and the share of the machine that others took meanwhile."""

    figures: Sequence[Figure]
    setting: Setting
    others: float | None

    def conditions(self) -> str:
        """How the figures came about, in a sentence or two."""
        turns = f"{self.setting.repeats} turn{'s' * (self.setting.repeats > 1)}"
        said = f"{self.setting.threads} threads for every engine, least of {turns} or more"
        if self.setting.small:
            said += ", small data: no aims"
        if self.others is not None:
            said += f"; other processes took {self.others:.0%} of the machine"
        if self.others is not None and self.others > BUSY:
            said += ". IT WAS NOT IDLE, so no aim is proved met or missed: run it again alone"
        return said


def as_text(run: Run) -> str:
    rows = [HEADINGS, *map(cells, run.figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([f"{machine.description()}; {machine.versions()}", run.conditions(), "", *lines])


def cells(figure: Figure) -> list[str]:
    """A row of the table."""
    return [
        figure.benchmark,
        figure.task,
        figure.data,
        amount(figure.ours, figure.unit),
        figure.peer_name,
        "" if figure.peer is None else amount(figure.peer, figure.unit),
        "" if figure.ratio is None else times(figure.ratio),
        aim(figure),
        share(figure.c_loop, figure.ours),
        share(figure.memory, figure.ours),
        figure.agreement,
    ]


def times(ratio: float) -> str:
    return f"{ratio:.3g}×" if ratio < 100 else f"{ratio:.0f}×"


def aim(figure: Figure) -> str:
    if figure.met is None:
        return ""
    wanted = f"≥ {figure.at_least:.3g}×" if figure.at_most is None else f"≤ {amount(figure.at_most, figure.unit)}"
    return f"{wanted} {'met' if figure.met else 'MISSED'}"


def amount(number: float, unit: str) -> str:
    if unit != "s":
        return f"{number:.2f} {unit}"
    if number < 1e-3:
        return f"{number * 1e6:.0f} µs"
    return f"{number * 1e3:.3g} ms" if number < 0.9995 else f"{number:.2f} s"


def share(limit: float | None, ours: float) -> str:
    return "" if limit is None else f"{limit / ours:.0%}"


def records(run: Run) -> list[dict[str, Any]]:
    """A row of the record per figure, each complete in itself."""
    shared = {
        "threads": run.setting.threads,
        "repeats": run.setting.repeats,
        "small": run.setting.small,
        "others": None if run.others is None else round(run.others, 3),
        "date": datetime.date.today().isoformat(),
        "machine": machine.description(),
        "versions": machine.versions(),
    }
    return [asdict(figure) | {"ratio": figure.ratio, "met": figure.met} | shared for figure in run.figures]


def as_json(run: Run) -> str:
    return json.dumps(records(run), indent=2, ensure_ascii=False)


def default_record() -> Path:
    name = f"{datetime.date.today().isoformat()}-{machine.slug()}.csv"
    return Path(__file__).with_name("record") / name


def write_csv(run: Run, path: Path) -> None:
    rows = records(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)


def write_page(run: Run, path: Path) -> None:
    """Fills page.md, which says what the columns mean, with the figures."""
    speeds = {n: machine.reading_speed(n) for n in sorted({1, run.setting.threads})}
    read = [f"{speed / 1e9:.1f} GB/s on {n} thread{'s' * (n > 1)}" for n, speed in speeds.items() if speed]
    missed = [figure for figure in run.figures if figure.met is False]
    settings = f"--repeats {run.setting.repeats} --threads {run.setting.threads}"
    filled = {
        "command": f"python -m benchmarks {settings}{' --small' * run.setting.small} --page docs/benchmarks.md",
        "date": datetime.date.today().isoformat(),
        "machine": "; memory is read at ".join(
            [machine.description(), ", ".join(read)] if read else [machine.description()]
        ),
        "versions": machine.versions(),
        "conditions": run.conditions(),
        "summary": summary(run.figures),
        "tables": "\n\n".join(tables(run.figures)),
        "missed": "\n".join(map(sentence, missed)) or "Every aim was met in this run.",
    }
    text = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    for name, value in filled.items():
        text = text.replace("{{" + name + "}}", value)
    path.write_text(text, encoding="utf-8")


def summary(figures: Sequence[Figure]) -> str:
    """How fast each benchmark is and how many of its aims are met, and what is furthest from its aim.

    Ratios are those of single rows of the tables, of seconds alone, without the loops in C.
    """
    lines = ["| benchmark | least | middle | most | aims met |", "| --- | --- | --- | --- | --- |"]
    for name in dict.fromkeys(figure.benchmark for figure in figures):
        rows = [figure for figure in figures if figure.benchmark == name]
        timed = [row for row in rows if row.unit == "s" and not row.peer_name.startswith("C:")]
        ratios = [row.ratio for row in timed if row.ratio is not None]
        middle = [statistics.median_low(ratios)] if len(ratios) > 2 else []
        told = [times(min(ratios)), "".join(map(times, middle)), times(max(ratios))] if ratios else [""] * 3
        met = [row.met for row in rows if row.met is not None]
        if ratios or met:
            said = [name + ", beside ours" * (name in OURSELVES), *told, f"{sum(met)} of {len(met)}" if met else ""]
            lines.append("| " + " | ".join(said) + " |")
    aims = [figure for figure in figures if figure.met is not None]
    missed = sorted((figure for figure in aims if not figure.met), key=reached)
    lines += ["", f"{len(aims) - len(missed)} of {len(aims)} aims are met."]
    if missed:
        lines[-1] += " Furthest from theirs ([all that are missed](#aims-missed)):"
        lines += ["", *map(sentence, missed[:FURTHEST])]
    return "\n".join(lines)


def reached(figure: Figure) -> float:
    """Which share of its aim a figure has come to."""
    if figure.at_most is not None:
        return figure.at_most / figure.ours
    return (figure.ratio or 0.0) / (figure.at_least or 1.0)


def tables(figures: Sequence[Figure]) -> list[str]:
    """A Markdown table for each benchmark, without the columns that it has no use for."""
    made = []
    for name in dict.fromkeys(figure.benchmark for figure in figures):
        rows = [cells(figure) for figure in figures if figure.benchmark == name]
        used = [column for column in range(1, len(HEADINGS)) if any(row[column] for row in rows)]
        lines = [[HEADINGS[column] for column in used], ["---"] * len(used)]
        lines += [[row[column] for column in used] for row in rows]
        made.append("\n".join([f"### {name}", "", *("| " + " | ".join(line) + " |" for line in lines)]))
    return made


def sentence(figure: Figure) -> str:
    row = dict(zip(HEADINGS, cells(figure), strict=True))
    return f"- {figure.benchmark}, {figure.task} ({figure.data}): {row['ratio'] or row['ours']}; aim {row['aim']}"
