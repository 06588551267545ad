"""Connection: what a client may take to say what it asks, and to take the answer: time, and bytes of a head."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

LONGEST_HEAD = 1 << 16  # bytes


def connection_with_limit(seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's connection, which is cut where a head, or taking an answer, takes longer than this, or a head is too long.

    uvicorn itself waits for a head, and for an answer to be taken, as long as the client likes.
    """

    class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._due: dict[str, asyncio.TimerHandle] = {}
            self._in_head = False  # bytes of it
            self._head = 0

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._begin("asking")

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                return self._end("asking")  # what is left of it is waited for where it is read
            self._head += len(data) if self._in_head else 0
            if self._head > LONGEST_HEAD:
                return self.transport.abort()  # type: ignore[no-any-return]
            return self._begin("asking")

        def on_message_begin(self) -> None:  # called by httptools alone; h11 limits heads itself
            self._in_head, self._head = True, 0
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._begin("taking")

        def resume_writing(self) -> None:
            super().resume_writing()
            self._end("taking")

        def connection_lost(self, exc: Exception | None) -> None:
            for name in tuple(self._due):
                self._end(name)
            super().connection_lost(exc)

        def _begin(self, name: str) -> None:
            if name not in self._due:
                self._due[name] = self.loop.call_later(seconds, self.transport.abort)

        def _end(self, name: str) -> None:
            if name in self._due:
                self._due.pop(name).cancel()

    return Connection
