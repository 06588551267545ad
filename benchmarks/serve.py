"""The service under load, over loopback: how fast it answers and learns, how long it takes to start, and what memory it takes.

    python -m benchmarks.serve [--seconds 5] [--small]

The clients are plain sockets in a process of their own, so that what is measured is the server: one process, one text of
100 words in each request, a model of 20 classes. Rates are those of as many clients as named; the times at 500 requests a
second are from when a request was due, so that a wait in a queue counts; those of nothing are what the machine itself takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import banbury as bb
from benchmarks import zipf

TOKENS = 100  # of each text, at most
AIMS = {
    "predict at 500 a second": "p99 below 5 ms",
    "predict, one at a time": "2,000 a second",
    "predict, 100 at a time": "50,000 rows a second",
    "learn, durably": "500 a second",
}


class Load(NamedTuple):
    """What clients send, and how: so many of them, as fast as they can or at a rate."""

    name: str
    method: str
    path: str
    bodies: list[bytes]
    rows: int = 1  # in each request
    clients: int = 8
    rate: float | None = None  # requests a second


async def _client(port: int, load: Load, number: int, until: float, times: list[float], statuses: list[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = number
    due = time.perf_counter() + (number / load.rate if load.rate else 0.0)
    while time.perf_counter() < until:
        if load.rate:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            start, due = due, due + load.clients / load.rate
        else:
            start = time.perf_counter()
        body = load.bodies[turn % len(load.bodies)]
        path = load.path.format(id=turn)
        head = f"{load.method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - start)
        statuses.append(int(answer[9:12]))
        turn += load.clients
    writer.close()


async def _all_clients(port: int, load: Load, seconds: float) -> dict[str, Any]:
    times, statuses = list[float](), list[int]()
    start = time.perf_counter()
    until = start + seconds
    await asyncio.gather(*(_client(port, load, n, until, times, statuses) for n in range(load.clients)))
    spent = time.perf_counter() - start
    wrong = sum(status >= 300 for status in statuses)
    each = np.array(times) * 1000
    return {
        "load": load.name,
        "a second": round(len(times) * load.rows / spent),
        "p50 ms": round(float(np.percentile(each, 50)), 2),
        "p99 ms": round(float(np.percentile(each, 99)), 2),
        "wrong": wrong,
        "aim": AIMS.get(load.name, ""),
    }


def _generate(port: int, load: Load, seconds: float, answers: Any) -> None:
    answers.put(asyncio.run(_all_clients(port, load, seconds)))


def measured(port: int, load: Load, seconds: float) -> dict[str, Any]:
    """Has another process send a load; what it saw."""
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    process = spawn.Process(target=_generate, args=(port, load, seconds, answers))
    process.start()
    told: dict[str, Any] = answers.get(timeout=seconds + 60)
    process.join()
    return told


def memory(process: int) -> float:
    """What a process holds, in megabytes."""
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) / 1000 for line in status if line.startswith("VmRSS"))


def started(model: Path, state: Path) -> tuple[subprocess.Popen[str], int, float]:
    """A server, its port, and the seconds until it answered for the first time."""
    command = [sys.executable, "-m", "banbury", "serve", str(model), "--state", str(state), "--port", "0", "--json"]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    told = ""
    while not told.endswith("}\n"):
        told += process.stdout.readline()
    return process, int(json.loads(told)["url"].rpartition(":")[2]), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load")
    parser.add_argument("--small", action="store_true", help="a small model, to see whether it runs")
    options = parser.parse_args()
    texts, classes = zipf.texts(1_000 if options.small else zipf.DOCUMENTS)
    texts, labels = [" ".join(text.split()[:TOKENS]) for text in texts], classes.tolist()
    with tempfile.TemporaryDirectory() as folder:
        model, state = Path(folder) / "model.banbury", Path(folder) / "state"
        bb.save(bb.estimate(bb.count(texts, target=labels)), model)
        one = [json.dumps({"row": text}).encode() for text in texts[:500]]
        hundred = [json.dumps({"rows": texts[n : n + 100]}).encode() for n in range(0, 1_000, 100)]
        learn = [json.dumps({"row": t, "label": y}).encode() for t, y in zip(texts[:500], labels, strict=False)]
        loads = [
            Load("nothing at 500 a second", "GET", "/health", [b""], rate=500.0, clients=16),
            Load("predict at 500 a second", "POST", "/predict", one, rate=500.0, clients=16),
            Load("predict, one at a time", "POST", "/predict", one),
            Load("predict, 100 at a time", "POST", "/predict", hundred, rows=100, clients=4),
            Load("learn, durably", "PUT", "/rows/{id}", learn, clients=32),
            Load("explain", "POST", "/explain", one),
        ]
        process, port, _ = started(model, state)
        try:
            print(
                f"{os.cpu_count()} processors; a model of {zipf.CLASSES} classes, {model.stat().st_size / 1e6:.0f} MB"
            )
            for load in loads:
                print(json.dumps(measured(port, load, options.seconds)), flush=True)
            print(json.dumps({"memory MB": round(memory(process.pid))}))
        finally:
            process.terminate()
            process.wait()
        process, _, seconds = started(model, state)
        print(json.dumps({"start, with a snapshot": round(seconds, 2), "memory MB": round(memory(process.pid))}))
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
