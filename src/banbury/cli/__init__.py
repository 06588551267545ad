"""The command line.

Only what parses the arguments is imported here; the module of a command, and with it everything heavy, is imported when it runs.
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

DONE = 0  # exit codes
BAD_DATA = 1
WRONG_USAGE = 2
INTERRUPTED = 130
PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code: 0 done, 1 the data could not be processed, 2 wrong usage, 130
    interrupted. ``arguments``: the words of the command line after ``banbury``; those of this process unless given.

    If the reader of the output has gone the code is 141, as for any program in a closed pipe; 1 if there is no stdout
    at all.

    >>> main(["--version"])
    banbury 0.1.0
    0
    """
    _prepare_streams()
    if "numpy" not in sys.modules:  # whose other threads would be started and stopped again: ours do the work
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = DONE  # the exit code of the command
    try:
        with _exit_on_signals():
            code = _run(list(sys.argv[1:] if arguments is None else arguments))
            sys.stdout.flush()
            if code or not getattr(sys.stdout, "lost", False):  # nothing was written to a closed stdout
                return code
            _print_message(
                "stdout is closed, so the output is lost. Redirect it to a file, or to /dev/null to discard it."
            )
            return BAD_DATA
    except SystemExit as end:  # argparse has said all there is to say
        return end.code if isinstance(end.code, int) else DONE
    except KeyboardInterrupt:
        _print_message("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        _close_quietly()
        return code or PIPE_CLOSED
    except OSError as problem:  # the last of the output could not be written
        _close_quietly()
        return code or _report_failure(problem)


def _run(arguments: list[str]) -> int:
    """Parses ``arguments``, the words of a command line, carries out the command, and returns the exit code.
    ``args.module`` and ``args.function`` name the function that carries it out.
    """
    try:
        args = parsers.parse(arguments)
    except parsers.Usage as usage:
        _print_message(str(usage))
        return WRONG_USAGE
    if args is None:
        return DONE
    if args.threads is not None:
        os.environ["BANBURY_THREADS"] = str(args.threads)
    try:
        with warnings.catch_warnings():
            _show_warnings(args)
            command = getattr(import_module(f"banbury.cli.{args.module}"), args.function)  # takes ``args``
            default_display = progress.display  # the class that shows progress
            progress.display = Bar
            try:
                command(args)
            finally:
                progress.display = default_display
        return DONE
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        if args.debug:
            raise
        return _report_failure(error, args)


def _report_failure(error: Exception, args: Namespace | None = None) -> int:
    """Prints an error as one message without a traceback and returns the exit code. ``args``: the options, if they were
    parsed.
    """
    if isinstance(error, errors.BanburyError):
        message = str(error)
    elif isinstance(error, OSError):  # no space left, no permission, a disk that fails
        message = f"operating system error: {error.strerror or error}{errors.where(error.filename)}."
    else:
        reason = (str(error).splitlines() or ["no reason was given"])[0]  # the first line of the error's message
        message = (
            f"unexpected error ({type(error).__name__}: {reason}). Run it again with --debug to see the traceback."
        )
    _print_message(for_the_shell(message, args))
    return WRONG_USAGE if isinstance(error, errors.BadSetting) else BAD_DATA


def _show_warnings(args: Namespace) -> None:
    """Prints warnings on stderr from now on, each once and on one line. ``args``: the options, by which keywords in
    them become options.
    """
    printed: set[str] = set()  # texts of warnings

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Prints one of our warnings unless it has been printed."""
        if issubclass(category, errors.BanburyWarning) and str(message) not in printed:
            printed.add(str(message))
            _print_message(f"warning: {for_the_shell(str(message), args)}", prefix="")

    warnings.simplefilter("always")
    warnings.showwarning = show


def _print_message(message: str, prefix: str = "banbury: ") -> None:
    """Prints a message on stderr, after ``prefix``. Does nothing if stderr is closed."""
    with suppress(OSError, ValueError, AttributeError):  # stderr may be closed
        print(f"{prefix}{printable(message)}", file=sys.stderr, flush=True)


def _prepare_streams() -> None:
    """Has stdout and stderr escape characters that the terminal cannot show, and opens them to nowhere if they are
    closed.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _ClosedStream(open(os.devnull, "wb"), encoding="utf-8"))  # noqa: SIM115
    if isinstance(getattr(sys.stdout, "buffer", None), io.RawIOBase):  # it drops what a pipe does not take at once
        sys.stdout = open(sys.stdout.fileno(), "w", buffering=1, encoding=sys.stdout.encoding, closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


class _ClosedStream(io.TextIOWrapper):
    """Stands for a stream that was closed before the program began. ``lost``: whether anything was written to it."""

    lost = False

    def write(self, text: str) -> int:
        """Drops the text, and notes that there was one."""
        self.lost = self.lost or bool(text)
        return super().write(text)


@contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Raises SystemExit if the command is terminated or loses its terminal, so that no half-written file
    remains.
    """

    def exit_for_signal(signal_number: int, frame: object) -> None:
        """Handles a signal by raising SystemExit with the exit code that shells use for it."""
        raise SystemExit(128 + signal_number)

    # Their numbers, as far as this system has them.
    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        old_handlers = {  # the default ones by signal number
            number: signal.signal(number, exit_for_signal)
            for number in signals
            if signal.getsignal(number) is signal.SIG_DFL
        }
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _close_quietly() -> None:
    """Redirects stdout to nowhere, so that Python's flush at exit cannot fail."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
