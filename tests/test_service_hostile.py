"""Hostile requests: whatever is sent, the service never fails, never grows, and goes on answering."""

from __future__ import annotations

import json
import os
import random
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

import serving
from banbury.service.app import ENDPOINTS, Limits, Service
from banbury.service.state import ServedState

REQUESTS = 10_000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 1_000
SCALARS: list[Any] = [
    None, True, False, 0, -1, 1.5, 1e308, -1e308, 5e-324, 2**53, 2**63, 2**64, 10**30, "", "a", "\0", "\u202e", "é" * 300,
    "../../etc/passwd", "/etc/passwd", "file:///etc/passwd", "cos\nsystem\n(S'true'\ntR.", "'; DROP TABLE rows; --", "NaN",
    "1e999", "\u2028", "a" * 5_000, "grain", "ham", "yes", 41,
]  # fmt: skip
NAMES = ["row", "rows", "label", "id", "note", "posteriors", "unsure", "top", "against", "text", "age",
         "ward", "beds", "fever", "flu", "x0", "", "__class__", "\0", "name"]  # fmt: skip
RAW = [
    b"", b"{", b"[]", b"null", b'"', b"{}" * 10, b"\xff\xfe\x00", b"[" * 50_000, b'{"row":' * 20_000, b'{"row": NaN}',
    b'{"row": 1e9999}', b'{"row": ' + b"1" * 10_000 + b"}", b'{"row": "\\ud800"}', b'{"row": "\\udc00\\ud800"}', b"\0" * 100,
    b'{"row": "a", "row": "b"}', b"\xef\xbb\xbf{}", '{"row": "ü"}'.encode("utf-16"), b'{"row": -0}', b'{"row": "a"} x',
]  # fmt: skip


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.random()
    if depth > 3 or kind < 0.6:
        return rng.choice(SCALARS)
    if kind < 0.8:
        return [value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return {rng.choice(NAMES): value(rng, depth + 1) for _ in range(rng.randint(0, 4))}


def body(rng: random.Random, kind: str, path: str) -> bytes:
    """Bytes; JSON of anything; or what is asked for, with something wrong in it."""
    how = rng.random()
    if how < 0.15:
        return rng.choice(RAW)
    if how < 0.4:
        return json.dumps(value(rng)).encode()
    row: Any = serving.KINDS[kind][1](rng)
    if isinstance(row, dict):
        row[rng.choice([*row, *NAMES])] = value(rng)
    elif isinstance(row, list):
        row[rng.randrange(len(row))] = value(rng)
    elif rng.random() < 0.5:
        row = value(rng)
    known = {
        "row": row,
        "rows": [row, value(rng)],
        "label": rng.choice([value(rng), "ham", ["grain"], 0]),
    }
    wanted = {
        "/predict": ["row"] if rng.random() < 0.7 else ["rows"],
        "/explain": ["row"],
        "/rows/{id:path}": ["row", "label"],
    }.get(path, [])
    given = {name: known[name] for name in wanted}
    if path == "/rows":
        given = {"rows": [{"id": rng.choice(["1", value(rng)]), "row": row, "label": known["label"]}]}
    if rng.random() < 0.2:
        given[rng.choice(NAMES)] = value(rng)
    return json.dumps(given).encode()


def place(rng: random.Random, path: str) -> str:
    id = rng.choice(
        ["1", "2", "..%2f..", "%00", "%ff%fe", "a" * 3_000, "%e2%80%ae", "%20", "' OR 1=1", "%5c..%5c", "1", "1"]
    )
    query = rng.choice(
        ["", "", f"?n={rng.choice(['-1', '1e9', '%00', '5', '9' * 400])}", "?after=%00", "?before=x", "?id=%ff", "?x"]
    )
    return path.replace("{id:path}", id) + query


@pytest.mark.parametrize("kind", ["texts", "table", "numbers", "labels", "weighed table"])
def test_hostile_requests_get_answers_and_no_500(kind: str, tmp_path: Path) -> None:
    rng, statuses = random.Random(kind), dict[int, int]()
    state = ServedState.of(serving.KINDS[kind][0](), tmp_path / "state")
    with serving.at_a_socket(Service(state, limits=Limits(body=200_000, rows=50, text=4_000))) as client:
        for _ in range(REQUESTS // 5):
            endpoint = rng.choice(ENDPOINTS)
            sent = body(rng, kind, endpoint.path) if endpoint.method != "GET" else b""
            headers = {"content-type": "application/json"} if rng.random() < 0.95 else {}
            url = place(rng, endpoint.path)
            answer = client.request(endpoint.method, url, content=sent, headers=headers)
            assert answer.status_code < 500, (endpoint, url, sent, answer.text)
            if answer.status_code >= 400:
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["detail"]
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        assert client.get("/health").status_code == 200
        assert statuses.keys() >= {200, 400, 404, 422}
        assert state.verified()["equal"]


def test_memory_does_not_grow(tmp_path: Path) -> None:
    """What is refused leaves nothing behind; metrics and messages have no names from requests."""
    rng = random.Random(1)
    state = ServedState.of(serving.texts_model())

    def some(client: httpx.Client, n: int) -> None:
        for _ in range(n):
            content = json.dumps({"row": "".join(rng.choices("abcdefghij ", k=3_000)), rng.choice(NAMES): rng.random()})
            headers = {"content-type": "application/json", f"x-{rng.random()}": "y" * 500}
            client.post("/predict", content=content, headers=headers)
            client.get(f"/{rng.random()}", headers=headers)

    with serving.at_a_socket(Service(state)) as client:
        some(client, 150)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        some(client, REQUESTS // 4)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[str, int]]:
    limits = Limits(seconds=0.3)
    with serving.at_a_socket(Service(ServedState.of(serving.texts_model()), limits=limits)) as client:
        yield "127.0.0.1", client.base_url.port or 0


def test_a_slow_body_is_408_and_others_do_not_wait(slow: tuple[str, int]) -> None:
    head = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(slow) as one, socket.create_connection(slow) as other:
        one.sendall(head + b'{"row"')
        start = time.monotonic()
        other.sendall(head.replace(b"100", b"12") + b'{"row": "a"}')
        assert other.recv(1000).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - start < 0.3
        assert one.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_slow_head_is_cut_off(slow: tuple[str, int]) -> None:
    """Of one that says nothing, of one that trickles, of a second request, and of one without end."""
    whole = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    for before in (b"", whole, whole + b"\r\n" + whole):
        with socket.create_connection(slow) as one:
            one.settimeout(5)
            one.sendall(before)
            start = time.monotonic()
            with suppress(OSError):
                while time.monotonic() - start < 5 and before:
                    one.sendall(b"X-A: b\r\n")
                    time.sleep(0.02)
            with suppress(ConnectionResetError):
                while one.recv(10_000):
                    pass
            assert 0.2 < time.monotonic() - start < 3
    with socket.create_connection(slow) as one, pytest.raises(OSError):
        one.sendall(whole + b"X-A: " + b"b" * 5_000_000)


def test_an_answer_that_nobody_takes_is_cut_off(tmp_path: Path) -> None:
    service = Service(ServedState.of(serving.texts_model(), tmp_path / "state"), limits=Limits(seconds=0.3))
    with serving.at_a_socket(service) as client:
        rows = [{"id": f"{n}", "row": "lunch " * 20_000} for n in range(60)]
        assert client.post("/rows", json={"rows": rows}).status_code == 200
        with socket.create_connection(("127.0.0.1", client.base_url.port or 0)) as one:
            one.settimeout(5)
            one.sendall(b"GET /rows HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(1)
            size = 0
            with suppress(ConnectionResetError):
                while part := one.recv(1 << 16):
                    size += len(part)
        assert size < len(client.get("/rows").content)


@pytest.mark.parametrize(
    "sent",
    [
        b"\0\0\0\0\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500,
    ],
)
def test_what_is_no_http_is_refused_or_ignored(slow: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(slow) as one:
        one.settimeout(5)
        one.sendall(sent)
        one.shutdown(socket.SHUT_WR)
        answer = one.recv(10_000)
        assert not answer.startswith(b"HTTP/1.1 5")
    with httpx.Client(base_url=f"http://127.0.0.1:{slow[1]}", trust_env=False) as client:
        assert client.get("/health").status_code == 200
