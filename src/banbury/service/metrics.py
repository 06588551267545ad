"""Metrics of the service in the format of Prometheus."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate

BUCKETS = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)  # seconds: upper limits of durations that are counted together
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts requests and their durations by path. Paths are those of the routes, so that no request adds a name."""

    def __init__(self) -> None:
        """Counts from zero."""
        self.started = time.time()  # seconds since 1970
        self.requests: Counter[tuple[str, str, int]] = Counter()  # by path, method and status
        # By path: how many requests fall into each bucket, whose upper limits are BUCKETS; and last, longer ones.
        self.durations: dict[str, list[int]] = {}
        self.total_seconds: Counter[str] = Counter()  # of all requests, by path
        self.rows: Counter[str] = Counter()  # by action, such as learned
        self.under_way = 0  # requests in progress

    def done(self, path: str, method: str, status: int, seconds: float) -> None:
        """Counts a completed request by path, method and HTTP status, and its duration by path, in total and by bucket."""
        self.requests[path, method, status] += 1
        counts = self.durations.setdefault(path, [0] * (len(BUCKETS) + 1))  # of requests, by bucket of seconds
        counts[next((bucket for bucket, limit in enumerate(BUCKETS) if seconds <= limit), len(BUCKETS))] += 1
        self.total_seconds[path] += seconds  # type: ignore[assignment]

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Returns all metrics as text. ``gauges``: further ones, from names to help text and value."""
        lines = _head("banbury_requests_total", "counter", "Requests answered.")
        for (path, method, status), count in sorted(self.requests.items()):
            lines.append(f'banbury_requests_total{{path="{path}",method="{method}",status="{status}"}} {count}')
        lines += _head("banbury_request_seconds", "histogram", "Time from the first byte of a request to its answer.")
        for path, counts in sorted(self.durations.items()):
            cumulative_counts = list(accumulate(counts))
            for limit, count in zip((*map(str, BUCKETS), "+Inf"), cumulative_counts, strict=True):
                lines.append(f'banbury_request_seconds_bucket{{path="{path}",le="{limit}"}} {count}')
            lines.append(f'banbury_request_seconds_sum{{path="{path}"}} {self.total_seconds[path]:.6f}')
            lines.append(f'banbury_request_seconds_count{{path="{path}"}} {cumulative_counts[-1]}')
        lines += _head("banbury_rows_total", "counter", "Rows predicted, learned, forgotten and so on.")
        lines += [f'banbury_rows_total{{action="{action}"}} {count}' for action, count in sorted(self.rows.items())]
        for name, (help, value) in gauges.items():
            lines += [*_head(name, "gauge", help), f"{name} {value:g}"]
        return "\n".join([*lines, ""])


def _head(name: str, kind: str, help: str) -> list[str]:
    """Returns the two lines before a metric: its ``help`` text, and its ``kind``, such as "counter"."""
    return [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
