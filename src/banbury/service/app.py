"""The service over HTTP: what can be asked, within limits, and errors as JSON in the words of the library."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import time
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from http import HTTPStatus
from typing import Any, NamedTuple

from banbury import __version__, errors

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as lacking:
    raise errors.MissingLibrary(f"banbury serve needs {lacking.name}: pip install 'banbury[serve]'.") from None

from banbury.service import answers, metrics, openapi, page
from banbury.service.access import Tokens, host_of, is_loopback
from banbury.service.connection import connection_with_limit
from banbury.service.log import DiskFull
from banbury.service.looking import Looking
from banbury.service.parsing import Problem, parse_json, parse_whole_number
from banbury.service.refitting import Refitting, describe_problem
from banbury.service.state import Delete, NotKept, Put, ServedState, StateInUse, Together, Undo, UnknownRow

log = logging.getLogger("banbury.service")
NO_SCRIPT = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
SAFE = {**page.HEADERS, "cache-control": "no-store", **NO_SCRIPT}
STYLED = f"sha256-{b64encode(sha256(openapi.STYLE.encode()).digest()).decode()}"
BESIDE = 1 << 18  # bytes of a request from which on it is answered in a thread
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownRow, 404),
    (NotKept, 409),
    (StateInUse, 409),
    (errors.EmptyData, 409),
    (DiskFull, 507),
    (errors.BanburyError, 422),
)


@dataclass(frozen=True)
class Limits:
    """How much one request may ask, and how many at a time."""

    body: int = 8 << 20  # bytes
    rows: int = 1_000
    text: int = 1 << 20  # characters of one text
    seconds: float = 10.0  # for a request to arrive, and for the next part of an answer to be taken
    requests: int = 64  # at a time
    listed: int = 1_000  # rows or changes in one answer


class Json(Response):
    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        super().__init__(content, status, SAFE if headers is None else {**SAFE, **headers})

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes the escape that JSON has for it


def problem(status: int, detail: str, error: str | None = None, headers: dict[str, str] | None = None) -> Json:
    """An error as RFC 9457 has it."""
    description = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    answer = Json({**description, **({} if error is None else {"error": error})}, status, headers)
    answer.headers["content-type"] = "application/problem+json"
    return answer


@dataclass
class Service:
    """A state with all that stands between it and a network."""

    state: ServedState
    tokens: Tokens | None = None
    limits: Limits = field(default_factory=Limits)
    metrics: metrics.Metrics = field(default_factory=metrics.Metrics)
    name: str = "model"
    refit_every: int | None = None  # changes

    def __post_init__(self) -> None:
        self.looking = Looking(self.state)
        self.refitting = Refitting(self.state)

    # What a request holds

    async def body(self, request: Request) -> bytes:
        """What was sent: not too much of it, and not too slowly."""
        limit = self.limits.body
        too_large = Problem(
            413, f"the request is larger than {limit:,} bytes. Send fewer rows per request.", connection="close"
        )
        if parse_whole_number(request.headers.get("content-length", "0"), limit) is None:
            raise too_large
        parts = []
        size = 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    parts.append(part)
                    size += len(part)
                    if size > limit:
                        raise too_large
        except TimeoutError:
            raise Problem(
                408,
                f"the request did not arrive within {self.limits.seconds:g} seconds. Send it again.",
                connection="close",
            ) from None
        except ClientDisconnect:
            raise Problem(400, "the request body is incomplete.") from None
        return b"".join(parts)

    async def json(
        self, request: Request, allowed_names: tuple[str, ...], empty: bool = False
    ) -> tuple[dict[str, Any], int]:
        """The JSON object that was sent, which has no other names than these; and its size in bytes."""
        body = await self.body(request)
        if empty and not body:
            return {}, 0
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem(415, "the request body must be JSON. Send it with the header Content-Type: application/json.")
        content = parse_json(body)
        expected = f"The request body must be a JSON object with {errors.listed(allowed_names) or 'nothing in it'}."
        if type(content) is not dict:
            raise Problem(400, expected)
        for name in content:
            if name not in allowed_names:
                near = errors.did_you_mean(name, allowed_names)
                raise Problem(422, f"unknown name {errors.shortened(repr(name))} in the request.{near} {expected}")
        return content, len(body)

    def check_rows(self, rows: Any) -> list[Any]:
        """Rows that are not too many, nor too long."""
        if type(rows) is not list:
            raise Problem(422, f"rows must be a list. Got {errors.shortened(repr(rows))} instead.")
        if len(rows) > self.limits.rows:
            raise Problem(
                413,
                f"{len(rows):,} rows exceed the limit of {self.limits.rows:,} per request. Split them over several requests.",
            )
        for row in rows:
            self.check_row(row)
        return rows

    def check_row(self, row: Any) -> Any:
        most = self.limits.text
        values = (row,) if type(row) is str else row.values() if type(row) is dict else row if type(row) is list else ()
        if any(type(value) is str and len(value) > most for value in values):
            raise Problem(413, f"a text is longer than {most:,} characters. Shorten it.")
        return row

    async def change(
        self, change: Put | Delete | Undo | Together, respond: Callable[[dict[str, Any]], Response] = Json
    ) -> Response:
        """Makes a change and waits until it is durable; a change whose response cannot be built is not made."""

        def respond_and_count(answer: dict[str, Any]) -> tuple[Response, list[str]]:
            return respond(answer), [row["action"] for row in answer.get("rows", [answer])]

        response: Response
        response, actions = await asyncio.wrap_future(self.state.submit(change, respond_and_count))
        self.metrics.rows.update(actions)
        if self.refit_every is not None and not self.refitting.under_way:
            learner = self.state.learner
            if learner.settings.weighing is not None and learner.change - (learner.weighed_at or 0) >= self.refit_every:
                await asyncio.to_thread(self._try_refit)
        return response

    def _try_refit(self) -> None:
        try:
            self.refitting.begin()
        except Exception as problem:  # the change is made, whatever becomes of the weights
            self.refit_every = None
            self.refitting.problem = describe_problem(problem)

    def number(self, request: Request, name: str, default: int, most: int) -> int:
        """A whole number of the query."""
        text = request.query_params.get(name, str(default))
        number = parse_whole_number(text, most)
        if number is None:
            raise Problem(
                422, f"{name} must be a whole number from 0 to {most:,}. Got {errors.shortened(repr(text))} instead."
            )
        return number


# What can be asked ----------------------------------------------------------------------------------------------------


async def predict(service: Service, request: Request) -> Any:
    content, size = await service.json(request, ("rows", "row", "posteriors", "unsure", "top", "at_least_one"))
    if ("rows" in content) == ("row" in content):
        raise Problem(422, "send either row, a single row, or rows, a list of rows.")
    rows = service.check_rows(content["rows"] if "rows" in content else [content["row"]])
    service.metrics.rows["predicted"] += len(rows)
    return await _answer(size, answers.predict, service.state.learner, rows, content)


async def _answer(size: int, answer: Callable[..., Any], *of: Any) -> Any:
    """At once where little was sent, which is quicker; else in a thread, so that others need not wait."""
    return await asyncio.to_thread(answer, *of) if size > BESIDE else answer(*of)


async def explain(service: Service, request: Request) -> Any:
    content, _ = await service.json(request, ("row", "against", "label"))
    if "row" not in content:
        raise Problem(422, "send row, the row to explain.")
    service.check_row(content["row"])
    return await asyncio.to_thread(answers.explain, service.state.learner, content["row"], content)


async def put_row(service: Service, request: Request) -> Any:
    content, _ = await service.json(request, ("row", "label", "note", "new_class"))
    return await service.change(_put(service, request.path_params["id"], content), _answer_put)


def _answer_put(answer: dict[str, Any]) -> Response:
    is_new = answer.pop("new", False)
    return Json(answer, 201 if is_new else 200)


def _put(service: Service, id: Any, content: dict[str, Any]) -> Put:
    if content.get("row") is None:
        raise Problem(422, "send row and label: the row to learn and its label.")
    note = content.get("note")
    if note is not None and not (type(note) is str and len(note) <= 2_000):
        raise Problem(422, "note must be a text of at most 2,000 characters.")
    new_class = content.get("new_class", False)
    if type(new_class) is not bool:
        raise Problem(422, "new_class must be true or false.")
    return Put(id, service.check_row(content["row"]), content.get("label"), note, new_class)


async def put_rows(service: Service, request: Request) -> Any:
    content, _ = await service.json(request, ("rows",))
    rows = service.check_rows(content.get("rows"))
    puts = []
    for entry in rows:
        if type(entry) is not dict or not {"id", "row"} <= entry.keys() <= {"id", "row", "label", "note", "new_class"}:
            raise Problem(422, "each entry of rows must be an object with id, row and label, and nothing else.")
        puts.append(_put(service, entry["id"], entry))
    return await service.change(Together(tuple(puts)), _answer_puts)


def _answer_puts(answer: dict[str, Any]) -> Response:
    return Json({"rows": [{name: row[name] for name in ("action", "id", "label", "change")} for row in answer["rows"]]})


async def delete_row(service: Service, request: Request) -> Any:
    await service.json(request, (), empty=True)
    return await service.change(Delete(request.path_params["id"]))


def get_rows(service: Service, request: Request) -> Any:
    n = service.number(request, "n", 100, service.limits.listed)
    labelled = {None: None, "true": True, "false": False}.get(request.query_params.get("labelled"), "?")
    if labelled == "?":
        raise Problem(422, "labelled must be true or false.")
    return {"rows": service.state.rows(request.query_params.get("after", ""), n, labelled)}  # type: ignore[arg-type]


async def undo(service: Service, request: Request) -> Any:
    content, _ = await service.json(request, ("id",), empty=True)
    return await service.change(Undo(content.get("id")))


def history(service: Service, request: Request) -> Any:
    n = service.number(request, "n", 100, service.limits.listed)
    before = service.number(request, "before", 2**62, 2**62)
    return {"changes": service.state.history(request.query_params.get("id"), before, n)}


async def refit(service: Service, request: Request) -> Any:
    await service.json(request, (), empty=True)
    return Json(await asyncio.to_thread(service.refitting.begin), 202)


def get_model(service: Service, request: Request) -> Any:
    description = answers.describe(service.state)
    if "weights" in description:
        description["weights"] |= {"refitting": service.refitting.under_way, "problem": service.refitting.problem}
    return description


async def get_metrics(service: Service, request: Request) -> Any:
    state = service.state
    gauges: dict[str, tuple[str, float]] = {
        "banbury_rows": ("Rows currently counted.", float(state.learner.n_rows)),
        "banbury_classes": ("Classes with at least one row.", len(state.learner.classes)),
        "banbury_change": ("Number of the last change.", state.change_number),
        "banbury_snapshot_change": ("Number of the last change in the latest snapshot.", state.snapshot_at),
        "banbury_commits": ("Commits of changes to the log.", state.commits),
        "banbury_waiting": ("Changes waiting to be written.", state.waiting),
        "banbury_requests_under_way": ("Requests in progress.", service.metrics.under_way),
        "banbury_started_seconds": ("Start time of the service, in seconds since 1970.", service.metrics.started),
    }
    return Response(service.metrics.text(gauges), headers=SAFE, media_type=metrics.KIND)


def get_openapi(service: Service, request: Request) -> Any:
    return openapi.describe(ENDPOINTS, service.state.learner, service.name)


def docs(service: Service, request: Request) -> Any:
    text = openapi.page(
        ENDPOINTS,
        service.state.learner,
        service.name,
        f"{request.url.scheme}://{request.headers.get('host', 'localhost')}",
    )
    style = {"content-security-policy": f"default-src 'none'; style-src '{STYLED}'; frame-ancestors 'none'"}
    return Response(text, headers={**SAFE, **style}, media_type="text/html")


async def health(service: Service, request: Request) -> Any:
    return {"status": "ok", "version": __version__}


UNDONE = "Undo the last change that has not been undone, of all rows or of one row."


class Endpoint(NamedTuple):
    """What can be asked: of whom, and in a sentence. What is answered by a plain function is answered in a thread."""

    method: str
    path: str
    scope: str | None  # None: anybody may
    answer: Callable[[Service, Request], Any]
    summary: str

    @property
    def address(self) -> str:
        """The path as people read it."""
        return self.path.replace("{id:path}", "{id}")


ENDPOINTS = (
    Endpoint("POST", "/predict", "read", predict, "Predict the class of each row, or its labels, with probabilities."),
    Endpoint(
        "POST", "/explain", "read", explain, "Explain why a row gets its class: the weight of evidence, in decibans."
    ),
    Endpoint("PUT", "/rows/{id:path}", "learn", put_row, "Learn a row under an id, or change its label."),
    Endpoint("DELETE", "/rows/{id:path}", "learn", delete_row, "Forget a row exactly and purge its contents."),
    Endpoint(
        "GET", "/rows/{id:path}", "read", lambda s, r: s.state.row(r.path_params["id"]), "Get a row with its label."
    ),
    Endpoint("GET", "/rows", "read", get_rows, "List rows in the order of their ids."),
    Endpoint("POST", "/rows", "learn", put_rows, "Learn several rows: all of them or none."),
    Endpoint("POST", "/undo", "learn", undo, UNDONE),
    Endpoint("GET", "/history", "read", history, "List changes, latest first, of all rows or of one row."),
    Endpoint("POST", "/refit", "learn", refit, "Relearn the weights from all rows in the background."),
    Endpoint("GET", "/model", "read", get_model, "Describe the model: classes, families, digest, age of the weights."),
    Endpoint("GET", "/metrics", "read", get_metrics, "Metrics in the format of Prometheus."),
    Endpoint("GET", "/openapi.json", "read", get_openapi, "The OpenAPI description of this interface."),
    Endpoint("GET", "/docs", "read", docs, "This interface with examples, for people to read."),
    Endpoint("GET", "/health", None, health, "Whether the service is running."),
    *(Endpoint(*which.split(), "read", answer, summary) for which, answer, summary in page.ENDPOINTS),  # type: ignore[arg-type, call-arg]
)
ASSETS = tuple(Endpoint(*asset) for asset in page.ASSETS)


def app(service: Service) -> Starlette:
    """The service as an ASGI application."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        yield
        await asyncio.to_thread(service.refitting.wait)
        await asyncio.to_thread(service.state.close)

    routes = [Route(e.path, _guard(service, e), methods=[e.method]) for e in ENDPOINTS + ASSETS]
    handlers: dict[Any, Any] = {HTTPException: _not_found}
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)


def _not_found(request: Request, wrong: Exception) -> Json:
    assert isinstance(wrong, HTTPException)
    text = "not found. See /docs." if wrong.status_code == 404 else "method not allowed. See /docs."
    return problem(wrong.status_code, text, headers=dict(wrong.headers or {}))


def _guard(service: Service, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """The answer to those who may ask, when there is room; and whatever goes wrong as JSON."""
    plain = not inspect.iscoroutinefunction(endpoint.answer)
    ask: Any = partial(asyncio.to_thread, endpoint.answer) if plain else endpoint.answer  # type: ignore[call-arg]

    async def answered(request: Request) -> Response:
        start = time.perf_counter()
        service.metrics.under_way += 1
        try:
            response = await _respond(service, endpoint, ask, request)
        finally:
            service.metrics.under_way -= 1
        service.metrics.done(endpoint.address, endpoint.method, response.status_code, time.perf_counter() - start)
        return response

    return answered


async def _respond(service: Service, endpoint: Endpoint, ask: Any, request: Request) -> Response:
    try:
        _check_caller(service, endpoint, request)
        if service.metrics.under_way > service.limits.requests:
            raise Problem(429, "too many concurrent requests. Try again.", **{"retry-after": "1"})
        answer = await ask(service, request)
        return answer if isinstance(answer, Response) else Json(answer)
    except Problem as wrong:
        return problem(wrong.status, wrong.detail, headers=wrong.headers)
    except errors.BanburyError as wrong:
        status = next(status for kind, status in STATUS if isinstance(wrong, kind))
        return problem(status, str(wrong), type(wrong).__name__)
    except Exception as wrong:  # its message may hold what a row holds
        at = traceback.extract_tb(wrong.__traceback__)[-1]
        log.error("%s %s: %s at %s:%s", endpoint.method, endpoint.path, type(wrong).__name__, at.filename, at.lineno)
        return problem(500, "internal error. See the log of the service for details.", type(wrong).__name__)


def _check_caller(service: Service, endpoint: Endpoint, request: Request) -> None:
    """Raises where a token is lacking, or where a page elsewhere has a browser on this machine ask."""
    headers = request.headers
    if service.tokens is None:
        host = host_of(headers.get("host", ""))
        origin = headers.get("origin")
        if not is_loopback(host):
            raise Problem(
                421,
                "the service accepts requests from this machine only. Use the name localhost, or start it with --tokens.",
            )
        if origin is not None and not is_loopback(host_of(origin.partition("://")[2])):
            raise Problem(403, "requests from pages of other hosts are not allowed.")
        return
    if endpoint.scope is None:
        return
    scopes = service.tokens.scopes(headers.get("authorization", ""))
    if scopes is None:
        raise Problem(
            401, "a token is required. Send the header Authorization: Bearer TOKEN.", **{"www-authenticate": "Bearer"}
        )
    if endpoint.scope not in scopes:
        raise Problem(403, f"this token lacks the scope {endpoint.scope!r}.")


def server(service: Service) -> uvicorn.Server:
    """What answers at a socket: ``server(service).run(sockets=[...])``."""
    config = uvicorn.Config(
        app(service),
        http=connection_with_limit(service.limits.seconds),
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        limit_concurrency=4 * service.limits.requests + 64,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
    )
    return uvicorn.Server(config)
