"""The service over HTTP: what can be asked and who may ask, limits, and errors in the words of the library."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import banbury as bb
import serving
from banbury import errors
from banbury.cli import main
from banbury.service.access import Tokens, check_address
from banbury.service.app import ENDPOINTS, Limits, Service
from banbury.service.rows import rows_of
from banbury.service.state import ServedState
from banbury.tally.table import Table

READER, TEACHER = "reader-0123456789", "teacher-0123456789"


def serving_at(state: ServedState, **settings: Any) -> AbstractContextManager[httpx.Client]:
    return serving.at_a_socket(Service(state, **settings))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with serving_at(ServedState.of(serving.texts_model(), tmp_path / "state")) as client:
        yield client


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One for tests that change nothing."""
    with serving_at(ServedState.of(serving.texts_model(), tmp_path_factory.mktemp("shared"))) as client:
        yield client


def test_a_model_whose_names_json_cannot_hold_is_not_served(tmp_path: Path) -> None:
    """A client could neither read half of a surrogate pair nor send it."""
    colours = ["red", "red", "blue", "green"] * 5
    for column, label in (("x\ud800", "yes"), ("x", "yes\udfff")):
        table = {column: ["a", "b"] * 10, "colour": colours}
        model = bb.estimate(bb.count(table, target=[label, "no"] * 10))
        for folder in (None, tmp_path / "state"):
            with pytest.raises(bb.errors.BadValue, match="texts must be valid Unicode"):
                ServedState.of(model, folder)


def test_rows_are_learned_moved_forgotten_and_undone(client: httpx.Client) -> None:
    digest = client.get("/model").json()["digest"]
    put = client.put("/rows/a/1", json={"row": "free money", "label": "spam"})
    assert (put.status_code, put.json()) == (201, {"action": "learned", "id": "a/1", "label": "spam", "change": 1})
    again = client.put("/rows/a/1", json={"row": "free money", "label": "spam"})
    assert (again.status_code, again.json()["action"]) == (200, "unchanged")
    moved = client.put("/rows/a/1", json={"row": "free money", "label": "ham"})
    assert (moved.status_code, moved.json()["action"]) == (200, "moved")
    assert client.get("/rows/a/1").json() == {"id": "a/1", "label": "ham", "row": "free money", "change": 2}
    assert client.post("/undo").json()["label"] == "spam"
    assert client.post("/undo", json={"id": "a/1"}).json()["label"] is None
    assert client.get("/model").json()["digest"] == digest
    assert client.get("/rows", params={"labelled": "false"}).json()["rows"][0]["row"] == "free money"
    assert client.delete("/rows/a/1").json() == {"action": "deleted", "id": "a/1", "change": 5}
    gone = client.delete("/rows/a/1")
    assert (gone.status_code, gone.json()["error"]) == (404, "UnknownRow")
    assert [each["action"] for each in client.get("/history", params={"id": "a/1"}).json()["changes"]] == [
        "deleted",
        "undone",
        "undone",
        "moved",
        "learned",
    ]
    assert client.get("/history", params={"n": 1, "before": 3}).json()["changes"][0]["change"] == 2


def test_several_rows_are_learned_together_or_not_at_all(client: httpx.Client) -> None:
    rows = [{"id": str(n), "row": f"word{n}", "label": "ham"} for n in range(5)]
    answer = client.post("/rows", json={"rows": rows})
    assert [each["action"] for each in answer.json()["rows"]] == ["learned"] * 5
    refused = client.post("/rows", json={"rows": [{"id": "9", "row": "good", "label": "ham"}, {"id": "10", "row": 3}]})
    assert refused.status_code == 422
    assert [row["id"] for row in client.get("/rows").json()["rows"]] == ["0", "1", "2", "3", "4"]
    assert [row["id"] for row in client.get("/rows", params={"after": "1", "n": 2}).json()["rows"]] == ["2", "3"]


@pytest.mark.parametrize("kind", serving.KINDS)
def test_answers_are_those_of_the_model(kind: str, tmp_path: Path) -> None:
    """Of any kind of model: classes or labels with probabilities, and the explanation that the library gives."""
    model, rng = serving.KINDS[kind][0](), random.Random(5)
    rows = [serving.KINDS[kind][1](rng) for _ in range(7)]
    with serving_at(ServedState.of(model, tmp_path / "state")) as client:
        told = client.post("/predict", json={"rows": rows, "posteriors": True}).json()
        same: Any = rows
        if isinstance(rows[0], dict):
            same = {name: [row.get(name) for row in rows] for name in model.schema.columns}
        posterior = model.posterior(np.array(rows) if isinstance(rows[0], list) else same)
        each = [list(own["posteriors"].values()) for own in told["predictions"]]
        np.testing.assert_allclose(each, posterior, rtol=1e-12)
        assert told["as_of"] == 0
        if isinstance(model, bb.LabelModel):
            assert [tuple(own["labels"]) for own in told["predictions"]] == model.predict(rows)
            top = client.post("/predict", json={"row": rows[0], "top": 2}).json()["predictions"][0]["labels"]
            assert tuple(top) == model.predict(rows[:1], top=2)[0]
            said = client.post("/explain", json={"row": rows[0], "label": "fuel"}).json()
            assert said["decibans"] == pytest.approx(model.explain(rows[0], "fuel").decibans)
        else:
            best = posterior.argmax(axis=1)
            assert [own["class"] for own in told["predictions"]] == [model.classes[k] for k in best]
            said = client.post("/explain", json={"row": rows[0]}).json()
            assert said["probability"] == pytest.approx(posterior[0].max())
            assert said["decibans"] == pytest.approx(said["prior"] + sum(e["decibans"] for e in said["evidence"]))
            unsure = client.post("/predict", json={"row": rows[0], "unsure": 1.0}).json()["predictions"][0]
            assert unsure["class"] is None
        facts = client.get("/model").json()
        assert facts["digest"] == model.tally.digest()
        assert [each["name"] for each in facts["features"]] == [f.name for f in model.schema.features]


def test_without_a_state_it_answers_and_learns_nothing() -> None:
    with serving_at(ServedState.of(serving.texts_model())) as client:
        assert client.post("/predict", json={"row": "cheap"}).status_code == 200
        refused = client.put("/rows/1", json={"row": "cheap", "label": "spam"})
        assert (refused.status_code, refused.json()["error"]) == (409, "NotKept")
        assert "--state" in refused.json()["detail"]
        assert client.get("/history").status_code == 409


# Errors and limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method, path, body, status, words",
    [
        ("POST", "/predict", b"{", 400, "not valid JSON"),
        ("POST", "/predict", b"[1]", 400, "a JSON object"),
        ("DELETE", "/rows/1", b'{"row": "a"}', 422, "a JSON object with nothing in it"),
        ("POST", "/predict", b'{"row": NaN}', 400, "NaN"),
        ("POST", "/predict", b'{"row": "\\ud800"}', 422, "half of a surrogate pair"),
        ("POST", "/predict", b'{"row": ' + b"[" * 100_000, 422, "nested too deeply"),
        ("POST", "/predict", b'{"row": ' + b"[" * 40 + b"]" * 40 + b"}", 422, "nested too deeply"),
        ("POST", "/predict", b'{"row": ' + b"9" * 5_000 + b"}", 422, "too large"),
        ("POST", "/predict", b'{"row": {"text": [1, -1e400]}}', 422, "the number -1e400 is too large"),
        ("POST", "/predict", b'{"row": "a", "row": "b"}', 422, "the name 'row' 2 times"),
        ("POST", "/predict", '{"row": "a"}'.encode("utf-16"), 400, "not valid JSON"),
        ("POST", "/predict", b'{"row": "\xed\xa0\x80"}', 400, "not valid JSON"),
        ("POST", "/predict", b"\xff\xfe", 400, "not valid JSON"),
        ("POST", "/predict", b"{}", 422, "send either row"),
        ("POST", "/predict", b'{"rows": []}', 409, "has no rows"),
        ("POST", "/predict", b'{"rows": {"a": 1}}', 422, "must be a list"),
        ("POST", "/predict", b'{"rwo": "a"}', 422, "Did you mean 'row'"),
        ("POST", "/predict", b'{"row": "a", "unsure": 2}', 422, "a probability"),
        ("POST", "/predict", b'{"row": "a", "top": 2}', 422, "a multi-label model"),
        ("POST", "/explain", b'{"row": "a", "against": "news"}', 422, "no class 'news'"),
        ("POST", "/explain", b"{}", 422, "send row"),
        ("PUT", "/rows/1", b'{"label": "ham"}', 422, "send row"),
        ("PUT", "/rows/1", b'{"row": "a", "label": "ham", "note": 3}', 422, "note must be"),
        ("PUT", "/rows/%00", b'{"row": "a", "label": "ham"}', 422, "id must be"),
        ("PUT", "/rows/%ff", b'{"row": "a", "label": "ham"}', 422, "id must be"),
        ("GET", "/history?n=x", b"", 422, "n must be"),
        ("GET", "/history?n=9999999", b"", 422, "n must be"),
        ("GET", "/rows?n=" + "0" * 20 + "9999999", b"", 422, "n must be"),
        ("GET", "/rows?n=" + "0" * 5_000 + "1001", b"", 422, "n must be"),
        ("GET", "/history?before=" + "0" * 20 + "9" * 40, b"", 422, "before must be"),
        ("GET", "/rows?labelled=maybe", b"", 422, "true or false"),
        ("GET", "/nowhere", b"", 404, "not found"),
        ("PATCH", "/predict", b"", 405, "method not allowed"),
        ("POST", "/undo", b"", 404, "no change to undo"),
    ],
)
def test_what_is_wrong_is_said(
    shared: httpx.Client, method: str, path: str, body: bytes, status: int, words: str
) -> None:
    answer = shared.request(method, path, content=body, headers={"content-type": "application/json"} if body else {})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert answer.headers["x-content-type-options"] == "nosniff"


UNSUITABLE = [
    "1e400",
    "-1e400",
    "NaN",
    "-Infinity",
    "7" * 5_000,
    "[[1e400]]",
    '"\\ud800"',
    '{"\\udc00":1}',
    '{"a":1,"a":1}',
]


@pytest.mark.parametrize("value", UNSUITABLE, ids=lambda value: value[:12])
def test_what_json_cannot_give_back_is_refused_and_nothing_is_stored(value: str, tmp_path: Path) -> None:
    """As a label, a cell, a row, a note and an id: nothing is refused only after it was stored."""
    good = '"row": [1, 2, 3], "label": 1'
    bodies = [
        ("PUT", "/rows/1", f'{{"row": [1, 2, 3], "label": {value}}}'),
        ("PUT", "/rows/1", f'{{"row": [1, 2, {value}]}}'),
        ("PUT", "/rows/1", f'{{"row": {value}, "label": 1}}'),
        ("PUT", "/rows/1", f'{{{good}, "note": {value}}}'),
        ("POST", "/rows", f'{{"rows": [{{"id": "1", {good}}}, {{"id": {value}, {good}}}]}}'),
        ("POST", "/rows", f'{{"rows": [{{"id": "1", {good}}}, {{"id": "2", "row": [1, 2, 3], "label": {value}}}]}}'),
        ("POST", "/undo", f'{{"id": {value}}}'),
    ]
    state = ServedState.of(serving.numbers(), tmp_path / "state")
    digest = state.digest()
    with serving_at(state) as client:
        for method, path, body in bodies:
            answer = client.request(method, path, content=body, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 422), (path, body, answer.text)
            assert (state.digest(), state.rows(), state.history()) == (digest, [], [])


@pytest.mark.parametrize("zeros", [0, 1, 20, 5_000])
def test_leading_zeros_change_no_number(shared: httpx.Client, zeros: int) -> None:
    for query in ("/rows?n=", "/history?n=", "/history?before=", "/next?n="):
        assert shared.get(f"{query}{'0' * zeros}7").status_code == 200
        assert shared.get(f"{query}{'0' * zeros}{'9' * 40}").status_code == 422


def test_json_must_be_called_so(client: httpx.Client) -> None:
    """A form of another page cannot be sent as JSON without asking first."""
    assert client.post("/predict", content=b'{"row": "a"}').status_code == 415
    assert client.post("/predict", content=b'{"row": "a"}', headers={"content-type": "text/plain"}).status_code == 415


def test_limits(tmp_path: Path) -> None:
    limits = Limits(body=2_000, rows=3, text=50)
    with serving_at(ServedState.of(serving.texts_model(), tmp_path / "state"), limits=limits) as client:
        assert client.post("/predict", json={"row": "a" * 3_000}).status_code == 413
        assert client.post("/predict", json={"row": "a" * 51}).status_code == 413
        assert client.post("/predict", json={"rows": ["a"] * 4}).status_code == 413
        assert client.post("/predict", json={"rows": ["a"] * 3}).status_code == 200
        assert client.put("/rows/1", json={"row": {"text": "a" * 51}, "label": "ham"}).status_code == 413

        def chunks() -> Iterator[bytes]:
            yield b'{"row": "'
            yield from (b"a" * 1_000 for _ in range(4))

        headers = {"content-type": "application/json"}
        assert client.post("/predict", content=chunks(), headers=headers).status_code == 413  # type: ignore[arg-type]


def test_too_many_at_a_time_are_told_to_come_back(tmp_path: Path) -> None:
    service = Service(ServedState.of(serving.texts_model(), tmp_path / "state"), limits=Limits(requests=2))
    with serving.at_a_socket(service) as client:
        service.metrics.under_way = 2
        answer = client.post("/predict", json={"row": "a"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        service.metrics.under_way = 0
        assert client.post("/predict", json={"row": "a"}).status_code == 200


def test_a_full_disk_is_507_and_answers_go_on(tmp_path: Path) -> None:
    state = ServedState.of(serving.texts_model(), tmp_path / "state")
    with serving_at(state) as client:
        pages = state.log._write_connection.execute("PRAGMA page_count").fetchone()[0]
        state.log._write_connection.execute(f"PRAGMA max_page_count = {pages}")
        answer = client.put("/rows/1", json={"row": "long " * 9_000, "label": "ham"})
        assert (answer.status_code, answer.json()["error"]) == (507, "DiskFull")
        assert client.post("/predict", json={"row": "cheap"}).status_code == 200
        assert client.get("/rows/1").status_code == 404


# Who may ask ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[httpx.Client]:
    file = tmp_path / "tokens"
    file.write_text(f"# who may ask\n{READER} read\n{TEACHER} read learn # both\n")
    file.chmod(0o600)
    state = ServedState.of(serving.texts_model(), tmp_path / "state")
    with serving_at(state, tokens=Tokens.read(file)) as client:
        yield client


def asked(client: httpx.Client, method: str, path: str, token: str | None) -> httpx.Response:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return client.request(method, path.replace("{id:path}", "1"), headers=headers)


def test_tokens_say_who_may_ask_and_who_may_teach(guarded: httpx.Client) -> None:
    for endpoint in ENDPOINTS:
        if endpoint.scope is None:
            assert asked(guarded, endpoint.method, endpoint.path, None).status_code == 200
            continue
        for token in (None, "x", "wrong", READER[:-1], READER + "x"):
            answer = asked(guarded, endpoint.method, endpoint.path, token)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        reads = asked(guarded, endpoint.method, endpoint.path, READER).status_code
        assert (reads == 403) == (endpoint.scope == "learn")
        assert asked(guarded, endpoint.method, endpoint.path, TEACHER).status_code not in (401, 403)


@pytest.mark.parametrize(
    "text, words",
    [("", "no token"), ("short read", "line 1"), ("a" * 20, "line 1"), ("\n" + "a" * 20 + " write", "line 2")],
)
def test_a_file_of_tokens_that_is_none(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(text)
    (tmp_path / "tokens").chmod(0o600)
    with pytest.raises(errors.BadFile, match=words) as raised:
        Tokens.read(tmp_path / "tokens")
    assert "aaaa" not in str(raised.value)


def test_others_may_not_read_the_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("a" * 20 + " read")
    (tmp_path / "tokens").chmod(0o644)
    with pytest.warns(errors.BanburyWarning, match="chmod 600"):
        Tokens.read(tmp_path / "tokens")
    with pytest.raises(errors.BadFile, match="No such file"):
        Tokens.read(tmp_path / "other")


def test_without_tokens_only_this_machine_may_ask(client: httpx.Client) -> None:
    assert client.get("/model", headers={"host": "evil.example"}).status_code == 421
    assert client.get("/model", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get("/model", headers={"origin": "http://localhost:3000"}).status_code == 200
    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        check_address(host, None)
    for host in ("0.0.0.0", "::", "192.168.1.2", "example.org"):
        with pytest.raises(errors.BadSetting, match="--tokens"):
            check_address(host, None)


def test_metrics(client: httpx.Client) -> None:
    client.post("/predict", json={"rows": ["a", "b"]})
    client.put("/rows/1", json={"row": "a", "label": "ham"})
    text = client.get("/metrics").text
    assert 'banbury_requests_total{path="/predict",method="POST",status="200"} 1' in text
    assert 'banbury_rows_total{action="predicted"} 2' in text
    assert 'banbury_rows_total{action="learned"} 1' in text
    assert 'banbury_request_seconds_bucket{path="/predict",le="+Inf"} 1' in text
    assert "banbury_rows 41" in text
    for line in text.splitlines():
        assert line.startswith("#") or (len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0)
    assert json.loads(client.get("/health").text)["status"] == "ok"


# OpenAPI --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", serving.KINDS)
def test_the_examples_of_the_docs_run(kind: str, tmp_path: Path) -> None:
    """Every operation that OpenAPI names is sent as its example has it, and is answered."""
    with serving_at(ServedState.of(serving.KINDS[kind][0](), tmp_path / "state"), name=kind) as client:
        described = client.get("/openapi.json").json()
        assert described["openapi"] == "3.1.0"
        operations = [(method, path, own) for path, each in described["paths"].items() for method, own in each.items()]
        assert len(operations) == len(ENDPOINTS)
        last = ("delete", "undo")
        for method, path, own in sorted(operations, key=lambda each: (each[0] != "put", each[0] in last, each[1])):
            given = {each["name"]: each["example"] for each in own.get("parameters", [])}
            body = own.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            place = path.format(**given)
            query = {each["name"]: each["example"] for each in own.get("parameters", []) if each["in"] == "query"}
            answer = client.request(method, place, json=body, params=query)
            # Too few rows to measure; no wrong labels among sets of them; a plain model, or rows that are not known.
            may = (409, 422) if path.startswith(("/inspect", "/suspicious", "/refit")) else ()
            if path == "/nomogram" and not client.get("/fields").json()["has_nomogram"]:
                may = (422,)
            assert answer.status_code in (200, 201, *may), (method, path, answer.text)
        text = client.get("/docs").text
        assert all(summary in text for summary in ("/predict", "curl"))
        assert "<script" not in text


def test_one_class_has_no_nomogram(tmp_path: Path) -> None:
    model = bb.estimate(bb.count(["cheap", "lunch"], target=["ham", "ham"]))
    with serving_at(ServedState.of(model, tmp_path / "state")) as client:
        answer = client.post("/nomogram", json={"row": "cheap"})
        assert (answer.status_code, answer.json()["error"]) == (409, "EmptyData")
        assert "'ham' is the only class so far" in answer.json()["detail"]
        assert client.get("/fields").json()["has_nomogram"] is False


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # squares of these numbers overflow
@pytest.mark.parametrize(
    "values", [[1.7976931348623157e308], [1.7976931348623157e308, -1.7976931348623157e308], [5e-324]]
)
def test_the_largest_and_smallest_numbers_are_answered(values: list[float], tmp_path: Path) -> None:
    data = {"x": values * 20, "y": [0.0, 1.0] * 10 * len(values)}
    model = bb.estimate(bb.count(data, ["a", "a", "b", "b"] * 5 * len(values), features="quantile_tree"))
    with serving_at(ServedState.of(model, tmp_path / "state")) as client:
        for n, value in enumerate(values * 3):
            row = {"x": value, "y": 1.0}
            assert client.put(f"/rows/{n}", json={"row": row, "label": "ab"[n % 2]}).status_code == 201
            for path in ("/predict", "/explain", "/nomogram"):
                assert client.post(path, json={"row": row}).status_code == 200
        for path in ("/fields", "/openapi.json", "/docs", "/accuracy", "/next", "/suspicious", "/inspect"):
            assert client.get(path).status_code == 200


def test_wrong_labels_are_not_looked_for_among_sets(tmp_path: Path) -> None:
    with serving_at(ServedState.of(serving.labels_model(), tmp_path / "state")) as client:
        answer = client.get("/suspicious")
        assert (answer.status_code, answer.json()["error"]) == (422, "BadSetting")
        assert "this model predicts sets of labels. Create a state for a single label" in answer.json()["detail"]


def test_refitting_over_http(tmp_path: Path) -> None:
    """By request, or after so many changes; answers go on meanwhile, and the model says how old its weights are."""
    rng = random.Random(0)
    texts = [serving.text(rng) for _ in range(40)]
    labels = [rng.choice(["ham", "spam"]) for _ in texts]
    model = bb.weigh(bb.count(texts, target=labels), texts, labels)
    state = ServedState.of(
        model, tmp_path / "state", learned=lambda tally: rows_of(Table.of(texts, labels, schema=tally.schema))
    )
    service = Service(state, refit_every=43)
    with serving.at_a_socket(service) as client:
        for n in range(2):
            client.put(f"/rows/{n}-more", json={"row": "cheap lunch", "label": "ham"})
        weights = client.get("/model").json()["weights"]
        assert weights == {"stale": True, "change": None, "refitting": False, "problem": None}
        client.put("/rows/3-more", json={"row": "cheap lunch", "label": "ham"})
        service.refitting.wait()
        assert client.get("/model").json()["weights"]["change"] == 43
        assert client.post("/refit").status_code == 202
        assert client.post("/predict", json={"row": "cheap lunch"}).status_code == 200
        service.refitting.wait()
        assert client.get("/model").json()["weights"]["stale"] is False


@pytest.mark.parametrize("value", [3, 1e300, 0.5])
def test_a_weighed_model_names_a_value_that_it_cannot_score(value: Any) -> None:
    with pytest.raises(errors.BadValue, match="'fever'"):
        serving.weighed_table().posterior([{**serving.table_row(random.Random(0)), "fever": value}])


# The page of the docs -------------------------------------------------------------------------------------------------

TEXTS = {"ham": ["lunch at noon", "noon is fine", "see you"], "spam": ["cheap watches", "cheap pills", "free pills"]}
BLOCK = re.compile(r"```console\n(.*?)```", re.S)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_what_the_docs_show_is_what_is_answered(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "service.md").read_text()
    labels = [label for label, texts in TEXTS.items() for _ in texts]
    model = bb.estimate(bb.count([text for texts in TEXTS.values() for text in texts], target=labels))
    n = 0
    with serving_at(ServedState.of(model, tmp_path / "state")) as client:
        at = f"localhost:{client.base_url.port}"
        for command, answer in re.findall(r"^\$ (curl .*)\n(.*)$", "\n".join(BLOCK.findall(page)), re.M):
            found = subprocess.run(
                ["bash", "-c", command.replace("localhost:8000", at)], capture_output=True, text=True
            )
            expected = ".*".join(map(re.escape, answer.split("...")))
            assert re.fullmatch(expected, found.stdout.strip()), f"{command}\n{found.stdout}"
            n += 1
    assert n >= 11


# The command ----------------------------------------------------------------------------------------------------------


def banbury(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "banbury", *words], capture_output=True, text=True, env=ENVIRONMENT)


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(bb.__file__).parents[1])}


@pytest.mark.slow
def test_the_command_serves_ends_in_order_and_is_killed(tmp_path: Path) -> None:
    """Started, asked, refused twice, killed while eight clients learn, started again, verified."""
    model, state = tmp_path / "mail.banbury", tmp_path / "state"
    bb.save(serving.texts_model(), model)
    acknowledged: set[str] = set()
    for end in (signal.SIGKILL, signal.SIGTERM):
        command = [sys.executable, "-m", "banbury", "serve", str(model), "--state", str(state), "--port", "0", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
            assert process.stdout is not None
            told = "".join(iter(process.stdout.readline, "}\n")) + "}"
            url = json.loads(told)["url"]

            def learn(number: int) -> None:
                with suppress(httpx.HTTPError), httpx.Client(base_url=url, timeout=None, trust_env=False) as client:  # noqa: B023
                    for n in range(1_000):
                        id = f"{end.name}-{number}-{n}"  # noqa: B023
                        if client.put(f"/rows/{id}", json={"row": f"text {n}", "label": "ham"}).status_code == 201:
                            acknowledged.add(id)

            clients = [threading.Thread(target=learn, args=(number,)) for number in range(8)]
            for thread in clients:
                thread.start()
            while len(acknowledged) < 40 and any(thread.is_alive() for thread in clients):
                time.sleep(0.01)
            assert len(acknowledged) >= 40
            if end == signal.SIGKILL:
                second = banbury("serve", "--state", str(state), "--port", "0")
                assert (second.returncode, "another server is using" in second.stderr) == (1, True)
            process.send_signal(end)
            for thread in clients:
                thread.join()
        assert process.returncode in (-signal.SIGKILL, 128 + signal.SIGTERM, 0)
    verified = banbury("serve", "--state", str(state), "--verify", "--json")
    assert verified.returncode == 0, verified.stderr
    assert json.loads(verified.stdout)["equal"]
    with ServedState.of(None, state) as again:
        assert acknowledged <= {row["id"] for row in again.rows(n=-1)}


def test_the_command_refuses_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "mail.banbury")
    bb.save(serving.texts_model(), model)
    for words, said in (
        ((), "MODEL must be"),
        ((model, "--host", "0.0.0.0"), "--tokens"),
        ((model, "--port", "99999"), "--port"),
        ((model, "--max-body", "0"), "--max-body"),
        ((model, "--learned", "rows.csv"), "--learned"),
        ((str(tmp_path / "none.banbury"),), "none.banbury"),
        (("--state", str(tmp_path / "none")), "state cannot be created there"),
    ):
        assert main(["serve", *words]) in (1, 2)
        assert said in capsys.readouterr().err


def test_the_service_imports_nothing_that_it_does_not_need() -> None:
    code = "import sys, banbury.cli.serve; print(*({'sklearn', 'scipy', 'pandas', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


@pytest.mark.parametrize("words", [["serve", "x.banbury"], ["label", "x.csv"], ["demo", "--page"]], ids=" ".join)
def test_without_the_extra_it_says_what_to_install(words: list[str]) -> None:
    code = f"import sys; sys.modules['starlette'] = None; from banbury.cli import main; sys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("banbury: banbury serve needs starlette"), done.stderr
    assert "pip install 'banbury[serve]'" in done.stderr
