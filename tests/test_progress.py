"""banbury.progress: a line on stderr while long work is done."""

import contextlib
import io
import time
from types import SimpleNamespace

import pytest

from banbury import progress
from banbury.progress import watch
from banbury.reading import read


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    """Lines come sooner than they would, so that the tests need not wait for them."""
    monkeypatch.delenv("BANBURY_PROGRESS", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "SECONDS_BEFORE_FIRST", 0.05)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.02)


def batch(n_rows=2000, share=None):
    return SimpleNamespace(n_rows=n_rows, share=share)


def worked(batches, stderr, name="mail/", seconds=0.15, then=lambda: None):
    """The batches that came through slow work on them."""
    found = []
    with contextlib.redirect_stderr(stderr):
        for each in watch(batches, "counting", name):
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
    assert "counting mail/: 0 rows, 0 s" in lines(
        stderr
    ) and "counting mail/: 2,000 rows, 25%, 0 s, about 0 s left" in lines(stderr)
    *_, last, blank, end = stderr.getvalue().split("\r")
    assert last.strip() and not blank.strip() and len(blank) >= len(last.rstrip()) and end == ""


def test_short_work_is_not_told_of(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_FIRST", 1.0)
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


class Recorded(progress.Line):
    """A line that keeps what it would have written."""

    def __init__(self):
        super().__init__()
        jobs.append(self)
        self.shown = []

    def write(self):
        self.shown.append((self.title, self.share, self.seconds_left))
        return True


jobs = []


@pytest.fixture
def recorded(monkeypatch):
    jobs.clear()
    monkeypatch.setenv("BANBURY_PROGRESS", "1")
    monkeypatch.setattr(progress, "display", Recorded)
    return jobs


def test_steps_of_steps_share_one_line_that_never_moves_back(recorded):
    with progress.Steps() as steps:
        steps.begin("reading", 0.1, timed=False, reads=True)
        for _ in watch([batch(share=0.5), batch(share=1.0)], "counting", "mail/"):
            time.sleep(0.1)
        steps.begin("", 1.0)
        for k in progress.each_step(range(2), lambda k: f"fold {k + 1} of 2"):
            for _ in watch([batch(share=1.0)] * 3, "scoring", "mail/"):  # rows in memory that are read again
                time.sleep(0.05 + 0.1 * k)
    (line,) = recorded
    titles = list(dict.fromkeys(title for title, _, _ in line.shown))
    assert titles == ["reading", "fold 1 of 2", "fold 2 of 2"]
    shares = [share or 0.0 for _, share, _ in line.shown]
    assert shares == sorted(shares)
    by_title = {title: share for title, share, _ in line.shown}
    assert by_title["reading"] == 0.05 and by_title["fold 1 of 2"] == pytest.approx(0.1)
    assert by_title["fold 2 of 2"] == pytest.approx(0.1 + 0.9 / 2)


def test_the_end_is_estimated_from_work_that_was_timed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    line = progress.Line()
    line.move(0.0)
    now[0] = 5.0  # a slow reading, which says nothing of the rest
    line.estimate_from(0.1)
    line.move(0.1)
    assert line.seconds_left is None
    now[0] = 15.0
    line.move(0.3)
    assert line.seconds_left == pytest.approx(10.0 * 0.7 / 0.2)
    assert line.facts() == "30%, 15 s, about 35 s left"


def test_a_step_that_fails_leaves_the_line_to_the_next_job(recorded):
    for _ in range(2):
        with contextlib.suppress(RuntimeError), progress.Steps() as steps:
            steps.begin("reading", 0.5)
            raise RuntimeError
    assert progress.Job.current is None and len(recorded) == 2


def test_work_of_another_thread_has_no_line(recorded):
    import threading

    with progress.Steps() as steps:
        steps.begin("weighing", 1.0)
        other = threading.Thread(target=lambda: list(watch([batch()], "counting", "mail/")))
        other.start()
        other.join()
    assert len(recorded) == 1 and recorded[0].n_rows is None


def test_fit_shows_one_line_with_its_folds(recorded, monkeypatch, tmp_path):
    from banbury import cli

    monkeypatch.setattr(cli, "Bar", Recorded)
    monkeypatch.setattr(progress, "SECONDS_BEFORE_FIRST", 0.0)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_UPDATES", 0.001)
    rows = [f"{k % 7},{k % 11},{'ab'[k % 3 == 0]}" for k in range(600)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["x,y,label", *rows]))
    assert cli.main(["fit", str(path), "--target", "label", "--folds", "4", "-o", str(tmp_path / "m.banbury")]) == 0
    (line,) = recorded
    titles = list(dict.fromkeys(title for title, _, _ in line.shown))
    folds = [title for title in titles if title.endswith("weighing")]
    assert folds == [*(f"fold {k} of 4, weighing" for k in (1, 2, 3, 4)), "all rows, weighing"]
    shares = [share or 0.0 for _, share, _ in line.shown]
    assert shares == sorted(shares) and shares[-1] > 0.7
