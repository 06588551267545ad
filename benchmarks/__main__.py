"""The command: runs benchmarks by name, prints their table, and fails if an answer is wrong."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import machine, report
from benchmarks.measure import Figure, Setting, Task, WrongAnswer, measured, say

BENCHMARKS = (
    "gaussian trees weighted blocks categorical bernoulli mixed text files selection drop_in tiny start threads memory kernels "
    "kernel_density em networks"
).split()
ONLY_WHEN_NAMED = ["many_classes", "bigfile"]


def figures(name: str, setting: Setting) -> Iterator[Figure]:
    """A benchmark's figures, one by one; its module has tasks to be timed, or figures of its own."""
    module = importlib.import_module(f"benchmarks.{name}")
    made: Iterator[Task | Figure] = module.tasks(setting)
    for task in made:
        yield measured(task, setting) if isinstance(task, Task) else task


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    setting = Setting(options.repeats, options.threads, options.small)
    neighbours = machine.Neighbours()
    found: list[Figure] = []
    wrong: list[str] = []
    for name in options.names or BENCHMARKS:
        try:
            for figure in figures(name, setting):
                found.append(figure)
        except WrongAnswer as why:
            wrong.append(f"{name}: {why}")
            say(f"WRONG ANSWER in {name}: {why}")
        except Exception as why:  # the others' figures are still worth seeing
            wrong.append(f"{name}: {type(why).__name__}: {why}")
            traceback.print_exc()
    run = report.Run(found, setting, neighbours.share())
    print(report.as_json(run) if options.json else report.as_text(run))
    if wrong:
        say("\n".join(["Nothing is recorded, because answers are wrong or missing:", *wrong]))
        return 1
    if options.record:
        report.write_csv(run, report.default_record() if options.record == "auto" else Path(options.record))
    if options.page:
        report.write_page(run, Path(options.page))
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument(
        "names", nargs="*", type=known, metavar="name", help=f"{', '.join(BENCHMARKS)}; or {', '.join(ONLY_WHEN_NAMED)}"
    )
    made.add_argument("--repeats", type=positive, default=3, help="turns of every engine (3)")
    made.add_argument("--threads", type=positive, default=2, help="threads of every engine (2)")
    made.add_argument("--small", action="store_true", help="small data: checks the answers, says little about speed")
    made.add_argument("--json", action="store_true", help="JSON instead of a table")
    made.add_argument("--record", nargs="?", const="auto", metavar="FILE.csv", help="keep the figures")
    made.add_argument("--page", metavar="FILE.md", help="write the page of docs")
    return made


def known(name: str) -> str:
    if name not in BENCHMARKS + ONLY_WHEN_NAMED:
        raise argparse.ArgumentTypeError(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS + ONLY_WHEN_NAMED)}")
    return name


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
