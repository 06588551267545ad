"""banbury.progress: a line on stderr while long work is done."""

import contextlib
import io
import time
from types import SimpleNamespace

import pytest

from banbury import progress
from banbury.progress import watched
from banbury.reading import read


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    """Lines come sooner than they would, so that the tests need not wait for them."""
    monkeypatch.delenv("BANBURY_PROGRESS", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "FIRST", 0.05)
    monkeypatch.setattr(progress, "EVERY", 0.02)


def batch(n_rows=2000, share=None):
    return SimpleNamespace(n_rows=n_rows, share=share)


def worked(batches, stderr, name="mail/", seconds=0.15, then=lambda: None):
    """The batches that came through slow work on them."""
    found = []
    with contextlib.redirect_stderr(stderr):
        for each in watched(batches, "counting", name):
            time.sleep(seconds)
            found.append(each)
            then()
    return found


def lines(stderr):
    return [line.strip() for line in stderr.getvalue().split("\r")]


def test_batches_come_through_as_they_are():
    batches = [batch(), batch()]
    assert worked(batches, Terminal(), seconds=0) == worked(batches, io.StringIO(), seconds=0) == batches
    assert [each.n_rows for each in worked(read(["a text", "b"]), Terminal(), None)] == [2]


def test_long_work_is_told_of_and_the_line_is_cleared():
    stderr = Terminal()
    worked([batch(share=0.25), batch(share=0.5), batch(share=1.0)], stderr)
    assert "counting mail/: 0 rows, 0 s" in lines(stderr) and "counting mail/: 2,000 rows, 25%, 0 s" in lines(stderr)
    *_, last, blank, end = stderr.getvalue().split("\r")
    assert last.strip() and not blank.strip() and len(blank) >= len(last.rstrip()) and end == ""


def test_short_work_is_not_told_of(monkeypatch):
    monkeypatch.setattr(progress, "FIRST", 1.0)
    stderr = Terminal()
    worked([batch()] * 3, stderr, seconds=0.01)
    time.sleep(0.05)
    assert stderr.getvalue() == ""


def test_a_single_long_batch_is_told_of():
    stderr = Terminal()
    worked([batch(5000)], stderr, name=None)
    assert "counting: 0 rows, 0 s" in lines(stderr)


def test_a_few_rows_in_memory_start_no_thread(monkeypatch):
    monkeypatch.setattr(progress.Line, "begin", lambda self: pytest.fail("a thread was started"))
    worked([batch(10)], Terminal(), name=None)


def test_nothing_is_written_where_there_is_no_terminal(monkeypatch):
    stderr = io.StringIO()
    worked([batch()], stderr)
    assert stderr.getvalue() == ""
    monkeypatch.setenv("BANBURY_PROGRESS", "1")
    worked([batch()], stderr)
    assert "counting mail/: 0 rows, 0 s" in lines(stderr)


def test_progress_can_be_silenced(monkeypatch):
    monkeypatch.setenv("BANBURY_PROGRESS", "0")
    stderr = Terminal()
    worked([batch()], stderr)
    assert stderr.getvalue() == ""


def test_the_line_is_cleared_after_an_error():
    stderr = Terminal()

    def fail():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        worked([batch(), batch()], stderr, then=fail)
    time.sleep(0.1)
    assert stderr.getvalue().endswith(" \r")


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_closed_stderr_breaks_nothing(is_closed):
    stderr, batches = Terminal(), [batch()] * 3
    if is_closed:
        stderr.close()
    assert worked(batches, stderr, then=stderr.close) == batches
    assert worked(batches, None) == batches


def test_a_name_cannot_write_to_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stderr = Terminal()
    worked([batch()], stderr, name="\x1b[2J\n" + "x" * 100)
    assert "\x1b" not in stderr.getvalue() and "\n" not in stderr.getvalue()
    assert 0 < max(map(len, lines(stderr))) < 40
