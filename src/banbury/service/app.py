"""The HTTP service: endpoints, limits on requests, and errors as JSON with the wording of the library."""

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
from banbury.files.checking import JsonObject

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
from banbury.service.inspection import Inspection
from banbury.service.log import DiskFull
from banbury.service.parsing import Problem, parse_json, parse_whole_number
from banbury.service.refitting import Refitting, describe_problem
from banbury.service.state import Delete, NotKept, Put, ServedState, StateInUse, Together, Undo, UnknownRow

log = logging.getLogger("banbury.service")
# Headers of responses.
NO_SCRIPT_HEADERS = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
SAFE_HEADERS = {**page.HEADERS, "cache-control": "no-store", **NO_SCRIPT_HEADERS}
STYLE_HASH = f"sha256-{b64encode(sha256(openapi.STYLE.encode()).digest()).decode()}"
THREAD_BYTES = 1 << 18  # requests of more bytes are answered in a thread
# The HTTP status of each error; the first class that fits decides.
STATUS_OF_ERRORS: tuple[tuple[type[Exception], int], ...] = (
    (UnknownRow, 404),
    (NotKept, 409),
    (StateInUse, 409),
    (errors.EmptyData, 409),
    (DiskFull, 507),
    (errors.BanburyError, 422),
)


@dataclass(frozen=True)
class Limits:
    """How much one request may contain, and how many requests may be in progress."""

    body: int = 8 << 20  # bytes
    rows: int = 1_000
    text: int = 1 << 20  # characters of one text
    seconds: float = 10.0  # for a request to arrive, and for the next part of an answer to be taken
    requests: int = 64  # at a time
    listed: int = 1_000  # rows or changes in one answer


class Json(Response):
    """A response in JSON."""

    media_type = "application/json"

    def __init__(self, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        """``content``: what is sent; ``status``: the HTTP status; ``headers``: in addition to those of every response."""
        super().__init__(content, status, SAFE_HEADERS if headers is None else {**SAFE_HEADERS, **headers})

    def render(self, content: Any) -> bytes:
        """Returns the content as JSON in UTF-8."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes the escape that JSON has for it


def problem(status: int, detail: str, error: str | None = None, headers: dict[str, str] | None = None) -> Json:
    """Returns an error response in the format of RFC 9457. ``status``: the HTTP status; ``detail``: the message;
    ``error``: the name of the exception class; ``headers``: in addition to those of every response.
    """
    description = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    response = Json({**description, **({} if error is None else {"error": error})}, status, headers)
    response.headers["content-type"] = "application/problem+json"
    return response


@dataclass
class Service:
    """A state with its tokens, limits and metrics: everything that the endpoints need."""

    state: ServedState
    tokens: Tokens | None = None  # None: only this machine has access, without a token
    limits: Limits = field(default_factory=Limits)
    metrics: metrics.Metrics = field(default_factory=metrics.Metrics)
    name: str = "model"  # of the service
    refit_every: int | None = None  # changes after which weights are learned again; None for never

    def __post_init__(self) -> None:
        """Adds the measures of the model and the refitting of its weights."""
        self.inspection = Inspection(self.state)  # measures of the model
        self.refitting = Refitting(self.state)  # relearns weights in the background

    # What a request holds

    async def body(self, request: Request) -> bytes:
        """Returns the body of a request. Raises Problem if it is too large, too slow or incomplete."""
        limit = self.limits.body  # bytes
        too_large = Problem(
            413, f"the request is larger than {limit:,} bytes. Send fewer rows per request.", connection="close"
        )
        if parse_whole_number(request.headers.get("content-length", "0"), limit) is None:
            raise too_large
        chunks = []  # the pieces of the body, as bytes
        size = 0  # bytes so far
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for chunk in request.stream():
                    chunks.append(chunk)
                    size += len(chunk)
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
        return b"".join(chunks)

    async def json(
        self, request: Request, allowed_names: tuple[str, ...], empty: bool = False
    ) -> tuple[JsonObject, int]:
        """Returns the JSON object in the body of a request, and its size in bytes. Raises Problem for names that are
        not allowed.

        ``empty``: whether an empty body counts as an empty object.
        """
        body = await self.body(request)
        if empty and not body:
            return {}, 0
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type != "application/json":
            raise Problem(415, "the request body must be JSON. Send it with the header Content-Type: application/json.")
        content = parse_json(body)
        # The end of the error messages.
        expected = f"The request body must be a JSON object with {errors.listed(allowed_names) or 'nothing in it'}."
        if type(content) is not dict:
            raise Problem(400, expected)
        for name in content:
            if name not in allowed_names:
                suggestion = errors.did_you_mean(name, allowed_names)
                raise Problem(
                    422, f"unknown name {errors.shortened(repr(name))} in the request.{suggestion} {expected}"
                )
        return content, len(body)

    def check_rows(self, rows: Any) -> list[Any]:
        """Returns the rows of a request, whatever they are. Raises Problem unless they are a list, if there are too
        many, or if a text in them is too long.
        """
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
        """Returns the row (a text, a dictionary or a list). Raises Problem if it contains too long a text."""
        max_characters = self.limits.text
        # The cells of the row.
        values = (row,) if type(row) is str else row.values() if type(row) is dict else row if type(row) is list else ()
        if any(type(value) is str and len(value) > max_characters for value in values):
            raise Problem(413, f"a text is longer than {max_characters:,} characters. Shorten it.")
        return row

    async def change(
        self, change: Put | Delete | Undo | Together, respond: Callable[[JsonObject], Response] = Json
    ) -> Response:
        """Makes a change, waits until it is durable, starts to refit the weights if ``refit_every`` changes have
        accumulated, and returns the response. ``respond``: makes the response from the answer of the state.
        """

        def respond_and_count(answer: JsonObject) -> tuple[Response, list[str]]:
            """Returns the response to what the state answered, and the action of each row for the metrics."""
            return respond(answer), [row["action"] for row in answer.get("rows", [answer])]

        response: Response
        # The response, and what was done with each row, such as "learned".
        response, actions = await asyncio.wrap_future(self.state.submit(change, respond_and_count))
        self.metrics.rows.update(actions)
        if self.refit_every is not None and not self.refitting.under_way:
            learner = self.state.learner  # ``change``: the last one; ``weighed_at``: the last one in the weights
            if learner.settings.weighing is not None and learner.change - (learner.weighed_at or 0) >= self.refit_every:
                await asyncio.to_thread(self._try_refit)
        return response

    def _try_refit(self) -> None:
        """Starts to refit the weights. If that fails, refitting is switched off and the error is shown with the model."""
        try:
            self.refitting.begin()
        except Exception as error:  # the change has been made in any case
            self.refit_every = None
            self.refitting.problem = describe_problem(error)

    def number(self, request: Request, name: str, default: int, largest: int) -> int:
        """Returns the whole number that the query string gives as ``name``, or ``default`` if it does not. Raises
        Problem unless it is from 0 to ``largest``.
        """
        text = request.query_params.get(name, str(default))
        number = parse_whole_number(text, largest)
        if number is None:
            raise Problem(
                422, f"{name} must be a whole number from 0 to {largest:,}. Got {errors.shortened(repr(text))} instead."
            )
        return number


# What can be asked ----------------------------------------------------------------------------------------------------


async def predict(service: Service, request: Request) -> Any:
    """Endpoint: returns the predictions for rows."""
    # The JSON object, and the size of the request in bytes.
    content, size = await service.json(
        request, allowed_names=("rows", "row", "posteriors", "unsure", "top", "at_least_one")
    )
    if ("rows" in content) == ("row" in content):
        raise Problem(422, "send either row, a single row, or rows, a list of rows.")
    rows = service.check_rows(content["rows"] if "rows" in content else [content["row"]])
    service.metrics.rows["predicted"] += len(rows)
    return await _answer(size, answers.predict, service.state.learner, rows, content)


async def _answer(size: int, answer: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the function ``answer`` with these arguments and returns what it returns: directly for a small request,
    which is quicker, in a thread for a large one. ``size``: the bytes of the request.
    """
    return await asyncio.to_thread(answer, *arguments) if size > THREAD_BYTES else answer(*arguments)


async def explain(service: Service, request: Request) -> Any:
    """Endpoint: says why a row gets its class or a label."""
    content, _ = await service.json(request, allowed_names=("row", "against", "label"))  # the JSON object
    if "row" not in content:
        raise Problem(422, "send row, the row to explain.")
    service.check_row(content["row"])
    return await asyncio.to_thread(answers.explain, service.state.learner, content["row"], content)


async def put_row(service: Service, request: Request) -> Any:
    """Endpoint: stores a row under its id and learns it."""
    # The JSON object of the request.
    content, _ = await service.json(request, allowed_names=("row", "label", "note", "new_class"))
    return await service.change(_put(service, request.path_params["id"], content), _answer_put)


def _answer_put(answer: JsonObject) -> Response:
    """Returns the response to a stored row: status 201 for a new row. ``answer``: that of the state."""
    is_new = answer.pop("new", False)
    return Json(answer, status=201 if is_new else 200)


def _put(service: Service, id: Any, content: JsonObject) -> Put:
    """Returns the change that a request for one row describes. Raises Problem if it is malformed. ``id``: the id of the
    row; ``content``: the JSON object of the request.
    """
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
    """Endpoint: stores several rows, all or none."""
    content, _ = await service.json(request, allowed_names=("rows",))  # the JSON object of the request
    puts = []  # the changes, one per row
    for entry in service.check_rows(content.get("rows")):
        if type(entry) is not dict or not {"id", "row"} <= entry.keys() <= {"id", "row", "label", "note", "new_class"}:
            raise Problem(422, "each entry of rows must be an object with id, row and label, and nothing else.")
        puts.append(_put(service, entry["id"], entry))
    return await service.change(Together(tuple(puts)), _answer_puts)


def _answer_puts(answer: JsonObject) -> Response:
    """Returns the response to several stored rows. ``answer``: that of the state, with an entry for each row."""
    return Json({"rows": [{name: row[name] for name in ("action", "id", "label", "change")} for row in answer["rows"]]})


async def delete_row(service: Service, request: Request) -> Any:
    """Endpoint: forgets a row."""
    await service.json(request, allowed_names=(), empty=True)
    return await service.change(Delete(request.path_params["id"]))


def get_rows(service: Service, request: Request) -> Any:
    """Endpoint: lists at most ``n`` rows, those with or without a label if requested."""
    n = service.number(request, "n", default=100, largest=service.limits.listed)
    # True for rows with a label, False for those without, None for both.
    labelled = {None: None, "true": True, "false": False}.get(request.query_params.get("labelled"), "?")
    if labelled == "?":
        raise Problem(422, "labelled must be true or false.")
    return {"rows": service.state.rows(request.query_params.get("after", ""), n, labelled)}  # type: ignore[arg-type]


async def undo(service: Service, request: Request) -> Any:
    """Endpoint: undoes the last change."""
    content, _ = await service.json(request, allowed_names=("id",), empty=True)  # may name the row
    return await service.change(Undo(content.get("id")))


def history(service: Service, request: Request) -> Any:
    """Endpoint: lists the last ``n`` changes before a change number, of all rows or of one."""
    n = service.number(request, "n", default=100, largest=service.limits.listed)
    before = service.number(request, "before", default=2**62, largest=2**62)  # by default after all changes
    return {"changes": service.state.history(request.query_params.get("id"), before, n)}


async def refit(service: Service, request: Request) -> Any:
    """Endpoint: relearns the weights in the background."""
    await service.json(request, allowed_names=(), empty=True)
    return Json(await asyncio.to_thread(service.refitting.begin), status=202)  # accepted


def get_model(service: Service, request: Request) -> Any:
    """Endpoint: describes the model."""
    description = answers.describe(service.state)
    if "weights" in description:
        description["weights"] |= {"refitting": service.refitting.under_way, "problem": service.refitting.problem}
    return description


async def get_metrics(service: Service, request: Request) -> Any:
    """Endpoint: returns metrics for Prometheus. Each gauge has a help text and a value."""
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
    return Response(service.metrics.text(gauges), headers=SAFE_HEADERS, media_type=metrics.CONTENT_TYPE)


def get_openapi(service: Service, request: Request) -> Any:
    """Endpoint: returns the description of this interface in OpenAPI."""
    return openapi.describe(ENDPOINTS, service.state.learner, service.name)


def docs(service: Service, request: Request) -> Any:
    """Endpoint: returns the documentation page."""
    text = openapi.page(
        ENDPOINTS,
        service.state.learner,
        service.name,
        f"{request.url.scheme}://{request.headers.get('host', 'localhost')}",
    )
    # The header that allows the page's own style, and nothing else.
    style = {"content-security-policy": f"default-src 'none'; style-src '{STYLE_HASH}'; frame-ancestors 'none'"}
    return Response(text, headers={**SAFE_HEADERS, **style}, media_type="text/html")


async def health(service: Service, request: Request) -> Any:
    """Endpoint: says that the service is running."""
    return {"status": "ok", "version": __version__}


UNDONE = "Undo the last change that has not been undone, of all rows or of one row."


class Endpoint(NamedTuple):
    """An endpoint: method, path, the scope that a token needs (None: anyone), the function that answers, and a summary.

    Functions that are not coroutines are called in a thread.
    """

    method: str
    path: str  # as Starlette writes it, such as /rows/{id:path}
    scope: str | None
    answer: Callable[[Service, Request], Any]
    summary: str

    @property
    def address(self) -> str:
        """The path as people read it, such as /rows/{id}."""
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
    """Returns the service as an ASGI application."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        """When the application ends, waits for refitting and closes the state."""
        yield
        await asyncio.to_thread(service.refitting.wait)
        await asyncio.to_thread(service.state.close)

    routes = [
        Route(endpoint.path, _guard(service, endpoint), methods=[endpoint.method]) for endpoint in ENDPOINTS + ASSETS
    ]
    handlers: dict[Any, Any] = {HTTPException: _not_found}  # by the class of the exception
    return Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)


def _not_found(request: Request, error: Exception) -> Json:
    """Returns the response to an unknown path or method. ``error``: Starlette's, with the HTTP status."""
    assert isinstance(error, HTTPException)
    text = "not found. See /docs." if error.status_code == 404 else "method not allowed. See /docs."
    return problem(error.status_code, text, headers=dict(error.headers or {}))


def _guard(service: Service, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    """Returns the handler of an endpoint, which measures each request and calls ``_respond``."""
    needs_thread = not inspect.iscoroutinefunction(endpoint.answer)
    # Takes the service and the request; returns an awaitable of what the endpoint answers.
    call_answer: Any = partial(asyncio.to_thread, endpoint.answer) if needs_thread else endpoint.answer  # type: ignore[call-arg]

    async def handle(request: Request) -> Response:
        """Returns the response to a request to this endpoint."""
        start = time.perf_counter()  # seconds
        service.metrics.under_way += 1
        try:
            response = await _respond(service, endpoint, call_answer, request)
        finally:
            service.metrics.under_way -= 1
        service.metrics.done(endpoint.address, endpoint.method, response.status_code, time.perf_counter() - start)
        return response

    return handle


async def _respond(service: Service, endpoint: Endpoint, call_answer: Any, request: Request) -> Response:
    """Returns the response to a request: checks the caller and the load, calls ``call_answer`` (which takes the service
    and the request), and turns exceptions into JSON errors.
    """
    try:
        _check_caller(service, endpoint, request)
        if service.metrics.under_way > service.limits.requests:
            raise Problem(429, "too many concurrent requests. Try again.", **{"retry-after": "1"})
        answer = await call_answer(service, request)
        return answer if isinstance(answer, Response) else Json(answer)
    except Problem as error:
        return problem(error.status, error.detail, headers=error.headers)
    except errors.BanburyError as error:
        status = next(status for error_class, status in STATUS_OF_ERRORS if isinstance(error, error_class))
        return problem(status, str(error), error=type(error).__name__)
    except Exception as error:  # its message may contain data, so it is not shown
        # Where the error was raised.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        log.error(
            "%s %s: %s at %s:%s", endpoint.method, endpoint.path, type(error).__name__, frame.filename, frame.lineno
        )
        return problem(500, "internal error. See the log of the service for details.", error=type(error).__name__)


def _check_caller(service: Service, endpoint: Endpoint, request: Request) -> None:
    """Raises Problem if a token is missing or lacks the scope of the endpoint; without tokens (None), if the request
    comes from another machine or another host's page.
    """
    headers = request.headers
    if service.tokens is None:
        host = host_of(headers.get("host", ""))  # that the caller asked for
        origin = headers.get("origin")  # of the page that sends the request, None without a page
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
    """Returns the server of a service; start it with ``server(service).run(sockets=[...])``."""
    config = uvicorn.Config(
        app(service),
        http=connection_with_limit(service.limits.seconds),
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        limit_concurrency=4 * service.limits.requests + 64,  # connections; the service refuses requests before
        timeout_keep_alive=30,  # seconds
        timeout_graceful_shutdown=10,  # seconds
    )
    return uvicorn.Server(config)
