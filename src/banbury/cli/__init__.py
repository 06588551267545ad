"""The command line: the verbs of the library, said to a shell.

Only what is needed to read the arguments is imported here; a verb's own module, and with it everything heavy, comes after.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from banbury.cli import parsers

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["main"]

DONE, DATA_SAYS_NO, WRONG_USAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives back its exit code: 0 done, 1 the data says no, 2 wrong usage, 130 interrupted.

    >>> main(["--version"])
    banbury 0.1.0
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    _speak_any_language()
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _terminated)
    try:
        code = _run(given)
        sys.stdout.flush()
        return code
    except SystemExit as end:  # argparse has said all there is to say
        return end.code if isinstance(end.code, int) else DONE
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        _close_quietly()
        return DONE


def _run(given: list[str]) -> int:
    try:
        arguments = parsers.parsed(given)
    except parsers.Usage as wrong:
        _say(str(wrong))
        return WRONG_USAGE
    if arguments is None:
        return DONE
    if arguments.threads is not None:
        os.environ["BANBURY_THREADS"] = str(arguments.threads)
    try:
        with warnings.catch_warnings():
            _show_warnings()
            _draw_bars()
            verb = getattr(import_module(f"banbury.cli.{arguments.module}"), arguments.function)
            verb(arguments)
        return DONE
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as problem:
        if arguments.debug:
            raise
        return _told(problem, arguments)


def _told(problem: Exception, arguments: Namespace) -> int:
    """Says what went wrong, in one breath and without a traceback; gives back the exit code."""
    from banbury import errors
    from banbury.cli.wording import for_the_shell

    if isinstance(problem, errors.BanburyError):
        message = for_the_shell(str(problem), arguments)
        if isinstance(problem, errors.SchemaMismatch) and arguments.verb in ("merge", "subtract"):
            message = f"{message.splitlines()[0]}\n  {errors.count_like(arguments.files[0])}"
        _say(message)
        return WRONG_USAGE if isinstance(problem, errors.BadSetting) else DATA_SAYS_NO
    _say(errors.unexpected(problem))
    return DATA_SAYS_NO


def _show_warnings() -> None:
    """Warnings as one line each on stderr, and each once."""
    from banbury.cli.wording import for_the_shell

    said: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        from banbury.errors import BanburyWarning

        if issubclass(category, BanburyWarning) and str(message) not in said:
            said.add(str(message))
            _say(f"warning: {for_the_shell(str(message))}", name="")

    warnings.simplefilter("always")
    warnings.showwarning = show


def _draw_bars() -> None:
    from banbury import progress
    from banbury.cli.bar import Bar

    progress.display = Bar


def _say(message: str, name: str = "banbury: ") -> None:
    from banbury.cli.wording import printable

    with suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        print(f"{name}{printable(message)}", file=sys.stderr, flush=True)


def _speak_any_language() -> None:
    """A character that the terminal cannot show is spelt out; it never ends the program."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _terminated(number: int, frame: object) -> None:
    raise SystemExit(TERMINATED)


def _close_quietly() -> None:
    """Python flushes stdout when it ends; let that go nowhere."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
