"""Spark in processes of its own: the address of a master, with workers on two hosts, and Connect."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from engine_rows import SPARK

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed: make test-engines installs it")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17 or newer, and there is none", allow_module_level=True)


def elsewhere() -> dict[str, str]:
    """The environment of another process, which begins with no session."""
    environment = {**os.environ, **SPARK}
    for name in ("SPARK_CONNECT_MODE_ENABLED", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        environment.pop(name, None)
    return environment


@pytest.fixture
def master(tmp_path: Path) -> Any:
    """The address of a master of Spark's own kind of cluster, and two workers, which it takes for two hosts."""
    spark = Path(pyspark.__file__).parent / "bin" / "spark-class"
    environment = elsewhere() | {"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1"}

    processes = list[subprocess.Popen[bytes]]()

    def begin(kind: str, host: str, *settings: str) -> Path:
        command = [spark, f"org.apache.spark.deploy.{kind}", "--host", host, "--webui-port", "0", *settings]
        log = tmp_path / f"{kind} at {host}"
        with log.open("wb") as file:
            processes.append(
                subprocess.Popen(command, env=environment, stdout=file, stderr=file, start_new_session=True)
            )
        return log

    def said(log: Path, wanted: str) -> str:
        until = time.monotonic() + 600
        while time.monotonic() < until:
            if found := re.search(wanted, log.read_text()):
                return found[1]
            time.sleep(0.1)
        pytest.skip(f"Spark's {log.name} does not start here: {log.read_text()[-300:]}")

    try:
        address = said(begin("master.Master", "127.0.0.1", "--port", "0"), r"Starting Spark master at (spark://\S+)")
        work = ("--cores", "1", "--memory", "512m", "--work-dir", str(tmp_path / "work"), address)
        for log in [begin("worker.Worker", host, *work) for host in ("127.0.0.1", "127.0.0.2")]:
            said(log, r"(Successfully registered with master)")
        yield address
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_beside(script: str, *arguments: str | Path) -> None:
    """Runs a script of this folder, which says that it is done, in a process of its own."""
    command = [sys.executable, Path(__file__).parent / script, *arguments]
    done = subprocess.run(command, env=elsewhere(), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout.split()[-1:] == ["done"], done.stdout + done.stderr


def test_the_address_of_a_master_and_tasks_that_are_speculated(master: str, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    run_beside("spark_master.py", master, tmp_path / "parts")
    assert len(list((tmp_path / "work").glob("app-*/*"))) >= 2  # executors that the workers started


def test_connect() -> None:
    """A process has sessions of one kind: those of Connect are in another one, which ends with a session that is stopped."""
    run_beside("spark_connect.py")
