"""serve: a model that answers, learns and forgets over HTTP."""

from __future__ import annotations

import gc
import socket
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

from banbury import errors
from banbury.cli import output
from banbury.service.access import Tokens, check_address
from banbury.service.answers import predict
from banbury.service.app import Limits, Service, server
from banbury.service.rows import rows_of
from banbury.service.state import ServedState, give_back
from banbury.tally.table import Table
from banbury.tally.tally import Tally


def serve(args: Namespace) -> None:
    """Serves a model over HTTP until the process is told to end; or verifies or compacts its state."""
    if args.model is None and args.state is None:
        raise errors.bad_setting(
            "MODEL", None, "the file of a model, or give --state a folder that was created with a model"
        )
    tokens = read_tokens(args)
    errors.require(args.max_body > 0, "--max-body", args.max_body, "a positive number of megabytes")
    model_path = None if args.model is None else Path(args.model)
    with ServedState.of(model_path, args.state, learned=_training_rows(args), threads=args.threads) as state:
        if args.verify:
            return _verify(args, state.verify())
        if args.compact:
            state.compact()
            facts = {"state": args.state, "change": state.change_number}
            return output.result(args, facts, f"{args.state} has been compacted.")
        name = Path(args.model if args.model is not None else args.state).stem  # of the service: that of its file
        limits = Limits(body=int(args.max_body * 1e6), rows=args.max_rows, requests=args.max_requests)
        service = Service(state, tokens, limits, name=name, refit_every=args.refit)
        return run(args, service, facts={"model": args.model}, doing=f"Serving {name} on")


def read_tokens(args: Namespace) -> Tokens | None:
    """Returns the access tokens in ``--tokens``, None without it. Raises BadSetting if the address or the port is not
    allowed.
    """
    tokens = None if args.tokens is None else Tokens.read(args.tokens)
    check_address(args.host, tokens)
    check_port(args.port)
    return tokens


def check_port(port: int) -> None:
    """Raises BadSetting unless the port is valid; 0 is any free one."""
    errors.require(0 <= port < 65536, "--port", port, "a whole number from 0 to 65,535")


def _training_rows(args: Namespace) -> Callable[[Tally], Iterable[tuple[Any, Any]]] | None:
    """Returns a function that takes a tally and yields the rows in ``--learned``, with which the model was trained, as
    pairs of row and label; None if the option is not given.
    """
    if args.learned is None:
        return None
    has_state = args.model is not None and args.state is not None
    errors.require(has_state, "--learned", args.learned, "used with MODEL and --state")

    def read(tally: Tally) -> Iterable[tuple[Any, Any]]:
        """Returns pairs of row and label, read with the schema of the tally."""
        target: Any = tally.schema.labels if tally.schema.labels is not None else tally.schema.target
        return rows_of(Table.of(args.learned, target, schema=tally.schema, threads=args.threads))

    return read


def run(args: Namespace, service: Service, facts: dict[str, object], doing: str) -> None:
    """Prints the address and serves requests until the process is told to end. ``facts``: further facts to print as
    JSON; ``doing``: the words before the address in the printed line, such as "Serving mail on".
    """
    state = service.state
    listening_socket = _listen(args.host, args.port)
    warnings.simplefilter("ignore", errors.BanburyWarning)  # they are about rows, which no log names
    host, port = listening_socket.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    n_rows = state.learner.n_rows
    facts = {"url": url, **facts, "state": args.state, "rows": n_rows, "change": state.change_number}
    output.result(args, facts, f"{doing} {url} ({n_rows:,g} rows). Press Ctrl-C to stop.")
    sys.stdout.flush()
    gc.collect()
    gc.freeze()  # no search for cycles goes through what stays anyway
    sys.setswitchinterval(0.0005)  # seconds: the thread that answers does not wait long for the one that writes
    Thread(target=_warm, args=(state,), daemon=True).start()
    server(service).run(sockets=[listening_socket])


def _warm(state: ServedState) -> None:
    """Derives the model and fills caches with a first prediction, so that the first request need not wait."""
    kinds = state.learner.schema.kinds  # the type of each column by name
    row = {name: "naïve Ж" if kinds.get(name) == "text" else None for name in state.learner.schema.columns}
    with suppress(errors.BanburyError):
        predict(state.learner, [row], settings={})
    give_back()  # memory used for reading and deriving


def _verify(args: Namespace, verification: dict[str, object]) -> None:
    """Prints whether the state equals a recount of its log. ``verification``: what ``ServedState.verify`` returned.
    Raises DamagedFile if it does not.
    """
    # The digest of the recounted rows; then how it compares with that of the state.
    text = f"{verification['rows']:,} rows were recounted as of change {verification['change']:,}. Their digest is "
    comparison = ", which matches" if verification["equal"] else f", and that of the state {verification['digest']}"
    output.result(args, verification, f"{text}{verification['recounted_digest']}{comparison}.")
    if not verification["equal"]:
        raise errors.DamagedFile(f"the state in {args.state} does not match its rows. Rebuild it from its log.")


def _listen(host: str, port: int) -> socket.socket:
    """Returns a socket that listens on the port of this host (a name or an address). Raises BadSetting if the port
    cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening_socket = socket.socket(family, socket.SOCK_STREAM)
    listening_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening_socket.bind((host, port))
        listening_socket.listen(2048)  # connections that may wait: clients that hear of the address may connect at once
    except OSError as error:
        listening_socket.close()
        raise errors.bad_setting("--port", port, f"a free port on {host} ({error.strerror or error})") from None
    return listening_socket
