"""The command line: the verbs of the library, said to a shell.

Only what is needed to read the arguments is imported here; a verb's own module, and with it everything heavy, comes after.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import banbury.engines  # noqa: F401 (data of Dask and Spark are opened from now on)
from banbury import errors, progress
from banbury.cli import parsers
from banbury.cli.bar import Bar
from banbury.cli.wording import for_the_shell, printable

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["main"]

DONE = 0
DATA_SAYS_NO = 1
WRONG_USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; gives back its exit code: 0 done, 1 the data says no, 2 wrong usage, 130 interrupted.

    Where nobody takes the output it is 141, as for any program in a pipe that is closed, or 1 where there is no stdout at all.

    >>> main(["--version"])
    banbury 0.1.0
    0
    """
    _speak_any_language()
    if "numpy" not in sys.modules:  # whose other threads would be started and stopped again: ours do the work
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = DONE
    try:
        with _end_in_order():
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()
            if code or not getattr(sys.stdout, "lost", False):
                return code
            _say("stdout is closed, so the output is lost. Redirect it to a file, or to /dev/null to discard it.")
            return DATA_SAYS_NO
    except SystemExit as end:  # argparse has said all there is to say
        return end.code if isinstance(end.code, int) else DONE
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        _close_quietly()
        return code or PIPE_CLOSED
    except OSError as problem:  # the last of the output could not be written
        _close_quietly()
        return code or _report_failure(problem)


def _run(words: list[str]) -> int:
    try:
        args = parsers.parse(words)
    except parsers.Usage as wrong:
        _say(str(wrong))
        return WRONG_USAGE
    if args is None:
        return DONE
    if args.threads is not None:
        os.environ["BANBURY_THREADS"] = str(args.threads)
    try:
        with warnings.catch_warnings():
            _show_warnings(args)
            verb = getattr(import_module(f"banbury.cli.{args.module}"), args.function)
            before, progress.display = progress.display, Bar
            try:
                verb(args)
            finally:
                progress.display = before
        return DONE
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as problem:
        if args.debug:
            raise
        return _report_failure(problem, args)


def _report_failure(problem: Exception, args: Namespace | None = None) -> int:
    """Says what went wrong, in one breath and without a traceback; gives back the exit code."""
    if isinstance(problem, errors.BanburyError):
        message = str(problem)
    elif isinstance(problem, OSError):  # no space left, no permission, a disk that fails
        message = f"operating system error: {problem.strerror or problem}{errors.where(problem.filename)}."
    else:
        reason = (str(problem).splitlines() or ["no reason was given"])[0]
        message = (
            f"unexpected error ({type(problem).__name__}: {reason}). Run it again with --debug to see the traceback."
        )
    _say(for_the_shell(message, args))
    return WRONG_USAGE if isinstance(problem, errors.BadSetting) else DATA_SAYS_NO


def _show_warnings(args: Namespace) -> None:
    """Warnings as one line each on stderr, and each once."""
    shown_messages: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, errors.BanburyWarning) and str(message) not in shown_messages:
            shown_messages.add(str(message))
            _say(f"warning: {for_the_shell(str(message), args)}", name="")

    warnings.simplefilter("always")
    warnings.showwarning = show


def _say(message: str, name: str = "banbury: ") -> None:
    with suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        print(f"{name}{printable(message)}", file=sys.stderr, flush=True)


def _speak_any_language() -> None:
    """A character that the terminal cannot show is spelt out; it never ends the program. What is closed swallows all."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _Nowhere(open(os.devnull, "wb"), encoding="utf-8"))  # noqa: SIM115
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):  # it drops what a pipe does not take at once
        sys.stdout = open(sys.stdout.fileno(), "w", 1, encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


class _Nowhere(io.TextIOWrapper):
    """Stands for a stream that was closed before the program began, and knows whether something was written to it."""

    lost = False

    def write(self, text: str) -> int:
        self.lost = self.lost or bool(text)
        return super().write(text)


@contextmanager
def _end_in_order() -> Iterator[None]:
    """Being terminated, or losing the terminal, is an exception meanwhile, so that nothing half written is left."""

    def terminated(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    names = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        before = {name: signal.signal(name, terminated) for name in names if signal.getsignal(name) is signal.SIG_DFL}
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _close_quietly() -> None:
    """Python flushes stdout when it ends; let that go nowhere."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
