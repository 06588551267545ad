"""How much processor time each test takes: recorded in durations.json, and listed where a test is slow and not marked so.

make test PYTEST_FLAGS="-n auto --record-durations"     records the tests that ran
python tests/durations.py                               lists unmarked tests above 3 seconds; it never fails
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).with_name("durations.json")
ROOT = FILE.parents[1]
LEAST = 0.5  # seconds: what takes less is not recorded
MOST = 3.0  # seconds of a test that is not marked as slow
BEGUN = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """What this process and its finished children have used."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Recorder:
    """Measures each test where it runs, and writes all of them down where results come together."""

    def __init__(self, writes: bool) -> None:
        self.writes = writes
        self.seconds: dict[str, list[Any]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        item.stash[BEGUN] = cpu_seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        report = yield
        if report.when == "teardown":
            taken = cpu_seconds() - item.stash[BEGUN]
            report.user_properties.append(("cpu", (round(taken, 1), item.get_closest_marker("slow") is not None)))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == "cpu":
                self.seconds[report.nodeid] = list(value)

    def pytest_sessionfinish(self) -> None:
        if not self.writes:
            return
        known = json.loads(FILE.read_text()) if FILE.exists() else {}
        known = {test: times for test, times in known.items() if (ROOT / test.partition("::")[0]).exists()}
        for test, (seconds, slow) in self.seconds.items():
            known.pop(test, None)
            if seconds >= LEAST:
                known[test] = [seconds, slow]
        lines = (f"  {json.dumps(test)}: {json.dumps(known[test])}" for test in sorted(known))
        FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def slow_and_unmarked() -> list[str]:
    """Tests that took more than they may, the slowest first."""
    known = json.loads(FILE.read_text())
    tests = sorted(((seconds, test) for test, (seconds, slow) in known.items() if not slow and seconds > MOST))
    return [f"{seconds:6.1f} s  {test}" for seconds, test in reversed(tests)]


if __name__ == "__main__":
    listed = slow_and_unmarked()
    print(
        f"{len(listed)} tests take more than {MOST:g} s of processor time and are not marked as slow"
        + ":" * bool(listed)
    )
    print(*listed, sep="\n")
