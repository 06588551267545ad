"""OpenAPI: what can be asked of the service, with examples for the model it serves, as JSON and as a page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from typing import Any

from banbury import __version__, errors
from banbury.files.checking import JsonObject
from banbury.service.learner import ServedLearner
from banbury.tally.label_sets import EVERY

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}
pre{overflow:auto;padding:.7rem;border:1px solid #8886;border-radius:4px}h2{font-size:1.1rem;margin-top:2rem}
code{font-family:ui-monospace,monospace}:root{color-scheme:light dark}"""
SCOPES_IN_WORDS = {None: "no token needed", "read": "needs the scope read", "learn": "needs the scope learn"}


def example_row(learner: ServedLearner) -> Any:
    """Returns a row that the model might see, drawn from what it counted: a text, or a dictionary of
    values by column.
    """
    try:
        model, _ = learner.current_model()
        plain_model = model._reading_model()  # it can draw rows
        with learner.lock:
            sampled_columns = plain_model.sample(n=1, seed=0)  # by name, with one value each
        row = {name: _plain(sampled_columns[name][0]) for name in learner.rows.columns if name in sampled_columns}
    except (errors.BanburyError, NotImplementedError):
        row = {}
    if learner.rows.text is not None:
        return str(row.get(learner.rows.text) or "a short example text")
    return {name: value for name, value in row.items() if value is not None} or {learner.rows.columns[0]: None}


def _plain(value: Any) -> Any:
    """Returns ``value``, a cell of a sampled row, for JSON; None for a number that is not finite."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if not isinstance(value, float):
        return value
    return round(value, 6) if math.isfinite(value) else None


def examples(learner: ServedLearner) -> dict[tuple[str, str], JsonObject]:
    """Returns an example of what to send, by method and path: a dictionary with a body, an id or a query."""
    row = example_row(learner)  # of JSON
    classes = [label for label in learner.classes if label != EVERY]
    example_class = classes[0] if classes else "yes"
    # A class, or a list of labels.
    label = [example_class] if learner.schema.labels is not None else example_class
    return {
        ("POST", "/predict"): {"body": {"rows": [row], "posteriors": True}},
        ("POST", "/explain"): {"body": {"row": row}},
        ("PUT", "/rows/{id}"): {"id": "1", "body": {"row": row, "label": label}},
        ("GET", "/rows/{id}"): {"id": "1"},
        ("DELETE", "/rows/{id}"): {"id": "1"},
        ("GET", "/rows"): {"query": {"n": 10}},
        ("POST", "/rows"): {"body": {"rows": [{"id": "1", "row": row, "label": label}, {"id": "2", "row": row}]}},
        ("POST", "/undo"): {"body": {}},
        ("POST", "/refit"): {"body": {}},
        ("POST", "/nomogram"): {"body": {"row": row}},
        ("GET", "/next"): {"query": {"n": 10}},
        ("GET", "/suspicious"): {"query": {"n": 10}},
        ("GET", "/inspect/rows"): {"query": {"truth": 0, "predicted": 0}},
        ("GET", "/export"): {"query": {"format": "ndjson"}},
        ("GET", "/history"): {"query": {"n": 10}},
    }


def describe(endpoints: Sequence[Any], learner: ServedLearner, name: str) -> JsonObject:
    """Returns the description of the service by OpenAPI 3.1. ``endpoints``: those of ``banbury.service.app``; ``name``:
    that of the service.
    """
    example_requests = examples(learner)  # a body, an id or a query, by method and path
    paths = dict[str, JsonObject]()
    for endpoint in endpoints:
        path = endpoint.address
        example_request = example_requests.get((endpoint.method, path), {})
        # What OpenAPI says of the endpoint.
        about: JsonObject = {"summary": endpoint.summary, "responses": {"200": {"description": "The answer."}}}
        parameters = [_parameter("id", "path", example_request.get("id", "1"))] if "{id}" in path else []
        parameters += [_parameter(key, "query", value) for key, value in example_request.get("query", {}).items()]
        about |= {"parameters": parameters} if parameters else {}
        if "body" in example_request:
            example = {"schema": {"type": "object"}, "example": example_request["body"]}
            about["requestBody"] = {"content": {"application/json": example}}
        if endpoint.scope is not None:
            about["security"] = [{"token": [endpoint.scope]}]
            about["responses"]["default"] = {"description": "The error, as application/problem+json."}
        paths.setdefault(path, {})[endpoint.method.lower()] = about
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Banbury: {name}", "version": __version__},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _parameter(name: str, place: str, example: Any) -> JsonObject:
    """Returns the parameter ``name`` for OpenAPI. ``place``: "path" or "query"; ``example``: a value, whose type is
    that of the parameter.
    """
    kind = "integer" if isinstance(example, int) else "string"
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": kind}, "example": example}


def page(endpoints: Sequence[Any], learner: ServedLearner, name: str, url: str) -> str:
    """Returns the description of the service as an HTML page for people: no script, and nothing from other hosts.
    ``endpoints``: those to describe; ``name``, ``url``: of the service.
    """
    example_requests = examples(learner)  # a body, an id or a query, by method and path
    fragments = list[str]()  # of the HTML
    for endpoint in endpoints:
        path = endpoint.address
        example = example_requests.get((endpoint.method, path), {})
        fragments += [f"<h2><code>{endpoint.method} {escape(path)}</code></h2><p>{escape(endpoint.summary)}"]
        fragments += [f" It {SCOPES_IN_WORDS[endpoint.scope]}.</p>" if endpoint.scope else "No token is needed.</p>"]
        fragments += [f"<pre>{escape(_curl(endpoint.method, path, example, url))}</pre>"]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Banbury: {escape(name)}</title><style>{STYLE}</style>'
    about = f"<h1>{escape(name)}</h1><p>Served by Banbury {__version__}. Rows and answers are JSON.</p>"
    return "".join([head, about, *fragments, "</html>"])


def _curl(method: str, path: str, example: JsonObject, url: str) -> str:
    """Returns the command that sends an example request with curl. ``example``: its body, id or query; ``url``: of the
    service.
    """
    path = path.replace("{id}", str(example.get("id", "1")))
    query = "&".join(f"{key}={value}" for key, value in example.get("query", {}).items())
    # curl chooses GET, or POST if there is a body.
    names_method = method != "GET" and (method != "POST" or "body" not in example)
    words = ["curl", "-s", *(["-X", method] if names_method else []), f"'{url}{path}{'?' + query if query else ''}'"]
    if "body" in example:
        text = json.dumps(example["body"], ensure_ascii=False).replace("'", "'\\''")
        words.append(f"-H 'Content-Type: application/json' \\\n  -d '{text}'")
    return " ".join(words)
