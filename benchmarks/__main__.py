"""Time Banbury beside its peers by name, print the table, and fail if an answer is wrong."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, report
from benchmarks.datasets import one_of
from benchmarks.measure import Figure, Setting, WrongAnswer, say

BENCHMARKS = "tables mixed text selection weighed labels files memory start service engines".split()


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    setting = Setting(options.repeats, options.threads, options.small)
    neighbours = machine.Neighbours()
    figures: list[Figure] = []
    problems: list[str] = []
    for name in options.names or BENCHMARKS:
        try:
            for figure in importlib.import_module(f"benchmarks.{name}").figures(setting):
                figures.append(figure)
        except WrongAnswer as problem:
            problems.append(f"{name}: {problem}")
            say(f"WRONG ANSWER in {name}: {problem}")
        except Exception as problem:  # the figures of the other benchmarks are still worth seeing
            problems.append(f"{name}: {type(problem).__name__}: {problem}")
            traceback.print_exc()
    run = report.Run(figures, setting, neighbours.share())
    print(report.as_json(run) if options.json else report.as_text(run))
    if problems:
        say("\n".join(["Nothing is recorded, because answers are wrong or missing:", *problems]))
        return 1
    if options.record:
        report.write_csv(run, report.default_record() if options.record == "auto" else Path(options.record))
    if options.page:
        report.write_page(run, Path(options.page))
    return 0


def parser() -> argparse.ArgumentParser:
    command = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    command.add_argument("names", nargs="*", type=one_of(BENCHMARKS), metavar="name", help=", ".join(BENCHMARKS))
    command.add_argument("--repeats", type=positive, default=3, help="turns of every engine (3)")
    command.add_argument("--threads", type=positive, default=2, help="threads of every engine (2)")
    command.add_argument("--small", action="store_true", help="small data: checks the answers, says little about speed")
    command.add_argument("--json", action="store_true", help="JSON instead of a table")
    command.add_argument("--record", nargs="?", const="auto", metavar="FILE.csv", help="keep the figures")
    command.add_argument("--page", metavar="FILE.md", help="write the tables into this page")
    return command


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
