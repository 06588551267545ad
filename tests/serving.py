"""What tests of the service share: models of every kind with rows for them, and a state that is killed while clients change it.

    python tests/serving.py STATE LOOPS SEED

runs the second: a loop of forked processes, each with eight clients that learn, move, undo and forget, and each killed in the
middle of it. It prints a line of JSON for each loop: what was acknowledged, what was under way, and the rows that were found.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import banbury as bb
from banbury.service.app import Service, server
from banbury.service.state import Delete, Put, ServedState

WORDS = "cheap pills watches lunch noon meeting budget free money team report friday offer win".split()
CLIENTS = 8


def text(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 8)))


def texts_model(weighed: bool = False) -> bb.Model:
    rng = random.Random(1)
    texts = [text(rng) for _ in range(40)]
    labels = [rng.choice(["ham", "spam"]) for _ in texts]
    model = bb.estimate(bb.count(texts, target=labels))
    return bb.weigh(model, texts, labels) if weighed else model


def table(n: int = 120) -> dict[str, list[Any]]:
    rng = random.Random(2)
    return {
        "age": [rng.gauss(40, 12) for _ in range(n)],
        "ward": [rng.choice(["a", "b", "c"]) for _ in range(n)],
        "beds": [rng.randint(1, 4) for _ in range(n)],
        "fever": [rng.random() < 0.4 for _ in range(n)],
        "note": [text(rng) + " and more to say" for _ in range(n)],
        "flu": [rng.choice(["yes", "no"]) for _ in range(n)],
    }


def table_row(rng: random.Random) -> dict[str, Any]:
    row: dict[str, Any] = {
        "age": rng.choice([round(rng.gauss(40, 12), 2), 41, None]),
        "ward": rng.choice(["a", "b", "d", None]),
        "beds": rng.randint(1, 5),
        "fever": rng.choice([True, False, None]),
        "note": text(rng),
    }
    return {name: value for name, value in row.items() if rng.random() < 0.9} or {"beds": 1}


def labels_model(weighed: bool = False) -> bb.LabelModel:
    rng = random.Random(3)
    texts = [text(rng) for _ in range(60)]
    sets = [[name for name in ("grain", "fuel", "trade") if rng.random() < 0.4] for _ in texts]
    if weighed:
        return bb.MultiLabelClassifier(weigh=True).fit(texts, sets).model_
    return bb.LabelModel.of(bb.count(texts, target=sets))


def plain_table() -> bb.Model:
    return bb.estimate(bb.count(table(), target="flu"))


def weighed_table() -> bb.Model:
    rows = table()
    return bb.weigh(bb.count(rows, target="flu"), rows, "flu")


def numbers() -> bb.Model:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    families = {"x1": "histogram", "x2": "kernel_density"}
    return bb.estimate(bb.count(x, (x[:, 0] > 0).astype(int).tolist(), features={"x0": "gaussian", **families}))


def families_row(rng: random.Random) -> dict[str, Any]:
    """A number of every family of numbers, with a category, a truth value and a list of numbers."""
    return {
        "gaussian": rng.gauss(0, 1),
        "poisson": rng.randint(0, 9),
        "exponential": rng.expovariate(1),
        "gamma": rng.gammavariate(2, 1),
        "log_normal": rng.lognormvariate(0, 1),
        "histogram": rng.gauss(0, 1),
        "kernel_density": rng.gauss(0, 1),
        "quantile_tree": rng.gauss(0, 1),
        "categorical": rng.randint(1, 3),
        "bernoulli": rng.random() < 0.5,
        "list": [rng.gauss(0, 1), rng.gauss(0, 1)],
    }


def families_model() -> bb.Model:
    rng = random.Random(4)
    rows = [families_row(rng) for _ in range(60)]
    families = {name: name for name in rows[0] if name != "list"}
    labels = [rng.choice([0.5, 2.0]) for _ in rows]
    return bb.estimate(bb.count(rows, labels, features=families))


def one_of(*names: Any) -> Callable[[random.Random], Any]:
    return lambda rng: rng.choice(names)


# Of each kind of model: what makes it, a row for it, and a label.
KINDS: dict[str, tuple[Callable[[], Any], Callable[[random.Random], Any], Callable[[random.Random], Any]]] = {
    "texts": (texts_model, text, one_of("ham", "spam", "news")),
    "weighed texts": (lambda: texts_model(True), text, one_of("ham", "spam", "news")),
    "table": (plain_table, table_row, one_of("yes", "no", "perhaps")),
    "weighed table": (weighed_table, table_row, one_of("yes", "no")),
    "numbers": (numbers, lambda rng: [round(rng.gauss(0, 3), 3), rng.gauss(0, 40), rng.gauss(0, 1)], one_of(0, 1)),
    "families": (families_model, families_row, one_of(0.5, 2.0, 3)),
    "labels": (labels_model, text, one_of([], ["grain"], ["fuel", "grain"], ["new"])),
    "weighed labels": (lambda: labels_model(True), text, one_of([], ["grain"], ["trade", "fuel"])),
}


# Over HTTP ------------------------------------------------------------------------------------------------------------


@contextmanager
def at_a_socket(service: Service) -> Iterator[httpx.Client]:
    """A client of the service, which answers in a thread as long as it is asked."""
    listening = socket.create_server(("127.0.0.1", 0))
    running = server(service)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        while not running.started:
            time.sleep(0.005)
        with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
            yield client
    finally:
        running.should_exit = True
        thread.join()


# Killing --------------------------------------------------------------------------------------------------------------


def _client(state: ServedState, number: int, seed: int, say: Callable[[dict[str, Any]], None]) -> None:
    rng = random.Random(seed * 100 + number)
    while True:
        id, row, label = f"{number}-{rng.randint(0, 9)}", text(rng), rng.choice(["ham", "spam", None])
        forget = rng.random() < 0.3
        say({"begun": id, "to": None if forget else [row, label]})
        with suppress(bb.errors.BanburyError):  # there was no such row
            state.change(Delete(id) if forget else Put(id, row, label, new_class=True))
        say({"done": id})


def _run(folder: Path, seed: int, pipe: int) -> None:
    state = ServedState.of(None, folder)
    lock = threading.Lock()

    def say(told: dict[str, Any]) -> None:
        with lock:
            os.write(pipe, json.dumps(told).encode() + b"\n")

    say({"ready": True})
    for number in range(CLIENTS):
        threading.Thread(target=_client, args=(state, number, seed, say), daemon=True).start()
    time.sleep(60)


def _looked(folder: Path) -> dict[str, Any]:
    with ServedState.of(None, folder) as state:
        rows = {row["id"]: [row["row"], row["label"]] for row in state.rows(n=-1)}
        return {"rows": rows, "equal": state.verify()["equal"]}


def _forked(work: Callable[[int], None], until: Callable[[int, Any], None]) -> bytes:
    """What a forked process wrote; ``until`` waits, or kills it."""
    ours, its = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(ours)
        try:
            work(its)
        finally:
            os._exit(0)
    os.close(its)
    with os.fdopen(ours, "rb") as pipe:
        first = pipe.readline()
        until(process, pipe)
        told = first + pipe.read()
    os.waitpid(process, 0)
    return told


def main() -> None:
    folder, loops, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
    bb.save(texts_model(), folder.with_suffix(".banbury"))

    def begin(pipe: int) -> None:
        ServedState.of(bb.load(folder.with_suffix(".banbury")), folder).close()

    _forked(begin, lambda process, pipe: None)
    for loop in range(loops):
        seed = rng.randint(0, 2**30)

        def killed(process: int, pipe: Any) -> None:
            time.sleep(rng.random() * 0.25)
            os.kill(process, signal.SIGKILL)

        lines = _forked(lambda pipe: _run(folder, seed, pipe), killed).splitlines(keepends=True)  # noqa: B023
        told = [json.loads(line) for line in lines if line.endswith(b"\n")]
        found = _forked(lambda pipe: os.write(pipe, json.dumps(_looked(folder)).encode()), lambda process, pipe: None)
        print(json.dumps({"loop": loop, "told": told, "found": json.loads(found)}), flush=True)


if __name__ == "__main__":
    main()
