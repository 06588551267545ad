"""The service under load, over loopback: how fast it answers, learns and starts.

The clients are plain sockets in a process of their own, so that the server is what is measured: one process, texts of 100 words,
a model of 20 classes. At 500 requests a second, times count from when a request was due, so that waiting in a queue counts.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import banbury as bb
from benchmarks import synthetic
from benchmarks.measure import Figure, Setting, WrongAnswer, say

TOKENS = 100  # of each text, at most


class Load(NamedTuple):
    """What clients send, and how many clients there are; as fast as they can, or at a rate."""

    name: str
    method: str
    path: str
    bodies: list[bytes]
    rows: int = 1  # in each request
    clients: int = 8
    rate: float | None = None  # requests a second


class Answers(NamedTuple):
    """Seconds until each answer, seconds in all, and how many requests failed."""

    times: list[float]
    seconds: float
    failures: int


def figures(setting: Setting) -> Iterator[Figure]:
    seconds = 0.3 if setting.small else 5.0
    texts, labels = synthetic.texts(setting.rows(synthetic.DOCUMENTS))
    texts = [" ".join(text.split()[:TOKENS]) for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.banbury"
        bb.save(bb.estimate(bb.count(texts, target=labels.tolist())), model)
        data = f"{TOKENS} words a text; a model of {synthetic.CLASSES} classes, {model.stat().st_size / 1e6:.0f} MB"
        with serve(model, Path(folder) / "state") as (port, start):
            yield Figure("service", "start, until the first answer", data, start)
            for load in loads(texts, labels.tolist()):
                say(f"service: {load.name}")
                yield figure(load, send(port, load, seconds), data)


def loads(texts: list[str], labels: list[str]) -> list[Load]:
    one = [json.dumps({"row": text}).encode() for text in texts[:500]]
    hundred = [json.dumps({"rows": texts[n : n + 100]}).encode() for n in range(0, min(len(texts), 1_000), 100)]
    learn = [json.dumps({"row": text, "label": y}).encode() for text, y in zip(texts[:500], labels, strict=False)]
    return [
        Load("health, 500 requests a second", "GET", "/health", [b""], rate=500.0, clients=16),
        Load("predict, 500 requests a second", "POST", "/predict", one, rate=500.0, clients=16),
        Load("predict, one text in each request, 8 clients", "POST", "/predict", one),
        Load("predict, 100 texts in each request, 4 clients", "POST", "/predict", hundred, rows=100, clients=4),
        Load("learn, durably, 32 clients", "PUT", "/rows/{id}", learn, clients=32),
        Load("explain, 8 clients", "POST", "/explain", one),
    ]


def figure(load: Load, answers: Answers, data: str) -> Figure:
    """Rows a second; of requests at a rate the median time."""
    if answers.failures:
        raise WrongAnswer(f"{load.name}: {answers.failures} of {len(answers.times)} requests failed")
    median, late = np.percentile(answers.times, [50, 99]) * 1000
    percentiles = f"median {median:.1f} ms, 99 % within {late:.1f} ms"
    if load.rate:
        return Figure("service", load.name, data, median / 1000, answers=percentiles)
    rate = len(answers.times) * load.rows / answers.seconds
    return Figure("service", load.name, data, rate, answers=percentiles, unit="texts a second")


@contextmanager
def serve(model: Path, state: Path) -> Iterator[tuple[int, float]]:
    """A server's port, and the seconds until it said that it answers."""
    command = [sys.executable, "-m", "banbury", "serve", str(model), "--state", str(state), "--port", "0", "--json"]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            output = ""
            while not output.endswith("}\n"):
                line = process.stdout.readline()
                if not line:
                    raise WrongAnswer(f"the server ended with status {process.wait()}")
                output += line
            yield int(json.loads(output)["url"].rpartition(":")[2]), time.perf_counter() - start
        finally:
            process.terminate()


# Clients --------------------------------------------------------------------------------------------------------------


def send(port: int, load: Load, seconds: float) -> Answers:
    """Have another process send a load."""
    spawn = multiprocessing.get_context("spawn")
    answers = spawn.Queue()
    process = spawn.Process(target=_send_here, args=(port, load, seconds, answers))
    process.start()
    result: Answers = answers.get(timeout=seconds + 60)
    process.join()
    return result


def _send_here(port: int, load: Load, seconds: float, answers: Any) -> None:
    answers.put(asyncio.run(_run_clients(port, load, seconds)))


async def _run_clients(port: int, load: Load, seconds: float) -> Answers:
    times: list[float] = []
    statuses: list[int] = []
    start = time.perf_counter()
    clients = (_run_client(port, load, n, start + seconds, times, statuses) for n in range(load.clients))
    await asyncio.gather(*clients)
    return Answers(times, time.perf_counter() - start, sum(status >= 300 for status in statuses))


async def _run_client(
    port: int, load: Load, number: int, until: float, times: list[float], statuses: list[int]
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    turn = number
    due = time.perf_counter() + (number / load.rate if load.rate else 0.0)
    while time.perf_counter() < until:
        if load.rate:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            start = due
            due += load.clients / load.rate
        else:
            start = time.perf_counter()
        body = load.bodies[turn % len(load.bodies)]
        head = f"{load.method} {load.path.format(id=turn)} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - start)
        statuses.append(int(answer[9:12]))
        turn += load.clients
    writer.close()
