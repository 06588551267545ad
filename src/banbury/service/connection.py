"""Limits on slow clients: the time to send a request and to take its response, and the size of its head."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

LONGEST_HEAD = 1 << 16  # bytes


def connection_with_limit(seconds: float) -> type[asyncio.Protocol]:
    """Makes a protocol class for uvicorn with time limits: it closes connections whose head, or whose client taking a
    response, takes longer than ``seconds``, and those with too long a head. uvicorn itself would wait forever.
    """

    class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        """A connection with time limits. Its methods are called by asyncio and by the parser of HTTP."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            """Starts without timers, outside the head of a request."""
            super().__init__(*args, **kwargs)
            self._timers: dict[str, asyncio.TimerHandle] = {}  # those that run, by name
            self._in_head = False  # whether the head of a request is being received
            self._head_bytes = 0  # of it so far

        def connection_made(self, transport: Any) -> None:
            """Starts the timer for the first request. ``transport``: asyncio's, through which bytes are sent."""
            super().connection_made(transport)
            self._start_timer("request")

        def data_received(self, data: bytes) -> None:
            """Passes ``data``, the bytes that have arrived, to uvicorn, and starts the timer for the rest of a
            request, or stops it if the request's head is complete (``cycle`` answers it); closes the connection if its
            head is too long.
            """
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                return self._stop_timer("request")  # the rest of the body has a time limit where it is read
            self._head_bytes += len(data) if self._in_head else 0
            if self._head_bytes > LONGEST_HEAD:
                return self.transport.abort()  # type: ignore[no-any-return]
            return self._start_timer("request")

        def on_message_begin(self) -> None:  # called by httptools alone; h11 limits heads itself
            """Notes that the head of a request begins."""
            self._in_head = True
            self._head_bytes = 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            """Notes that the head of a request has ended."""
            self._in_head = False
            super().on_headers_complete()

        def pause_writing(self) -> None:
            """Starts the timer for a client that takes its response too slowly."""
            super().pause_writing()
            self._start_timer("response")

        def resume_writing(self) -> None:
            """Stops the timer for taking the response, since the client takes it."""
            super().resume_writing()
            self._stop_timer("response")

        def connection_lost(self, exc: Exception | None) -> None:
            """Stops all timers. ``exc``: why the connection was lost; None if it was closed."""
            for name in tuple(self._timers):
                self._stop_timer(name)
            super().connection_lost(exc)

        def _start_timer(self, name: str) -> None:
            """Starts the timer ``name``, "request" or "response", after which the connection is closed, unless it runs
            already.
            """
            if name not in self._timers:
                self._timers[name] = self.loop.call_later(seconds, self.transport.abort)

        def _stop_timer(self, name: str) -> None:
            """Stops the timer ``name`` if it runs."""
            if name in self._timers:
                self._timers.pop(name).cancel()

    return Connection
