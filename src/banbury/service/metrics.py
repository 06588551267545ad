"""Metrics: what the service did, as Prometheus reads it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
KIND = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts requests and their times. Paths are those of the routes, so that no request adds a name."""

    def __init__(self) -> None:
        self.started = time.time()
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: dict[str, list[int]] = {}
        self.total_seconds: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self.under_way = 0

    def done(self, path: str, method: str, status: int, seconds: float) -> None:
        self.requests[path, method, status] += 1
        counts = self.seconds.setdefault(path, [0] * (len(BUCKETS) + 1))
        counts[next((b for b, limit in enumerate(BUCKETS) if seconds <= limit), len(BUCKETS))] += 1
        self.total_seconds[path] += seconds  # type: ignore[assignment]

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All of it; ``gauges`` has more, by name, each with its help."""
        lines = _head("banbury_requests_total", "counter", "Requests answered.")
        for (path, method, status), n in sorted(self.requests.items()):
            lines.append(f'banbury_requests_total{{path="{path}",method="{method}",status="{status}"}} {n}')
        lines += _head("banbury_request_seconds", "histogram", "Time from the first byte of a request to its answer.")
        for path, counts in sorted(self.seconds.items()):
            sums = list(accumulate(counts))
            for limit, n in zip((*map(str, BUCKETS), "+Inf"), sums, strict=True):
                lines.append(f'banbury_request_seconds_bucket{{path="{path}",le="{limit}"}} {n}')
            lines.append(f'banbury_request_seconds_sum{{path="{path}"}} {self.total_seconds[path]:.6f}')
            lines.append(f'banbury_request_seconds_count{{path="{path}"}} {sums[-1]}')
        lines += _head("banbury_rows_total", "counter", "Rows predicted, learned, forgotten and so on.")
        lines += [f'banbury_rows_total{{what="{what}"}} {n}' for what, n in sorted(self.rows.items())]
        for name, (help, value) in gauges.items():
            lines += [*_head(name, "gauge", help), f"{name} {value:g}"]
        return "\n".join([*lines, ""])


def _head(name: str, kind: str, help: str) -> list[str]:
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
