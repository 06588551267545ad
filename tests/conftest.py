"""What tests share: the hypothesis profiles, the lectures' figures, and the public data sets that are too large to ship.

Those last are looked for in the folder that BANBURY_DATA names, and unpacked into pytest's own temporary folder; a test that
needs one is skipped when the variable is unset.
"""

from __future__ import annotations

import gc
import gzip
import os
import shutil
import signal
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, settings

import durations
import lectures

# The same examples everywhere and every time; `make test-all` draws others, and twenty times as many. Let the profile say how
# many examples a law is tried on: a number given to one test's @settings would not grow with it.
settings.register_profile(
    "same",
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fresh", settings.get_profile("same"), derandomize=False)
settings.register_profile("thorough", settings.get_profile("same"), max_examples=2_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# Threads of scikit-learn that spin until others are done take minutes on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# A shell has its background jobs ignore Ctrl-C, and Python then does as well: tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# What is collected lives until the end, and is not looked through for garbage again and again.
def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


# What was skipped, and which command would run it.
WOULD_RUN = {
    "BANBURY_DATA": "BANBURY_DATA=FOLDER make test (public data sets: see CONTRIBUTING.md)",
    "Chromium": "apt-get install chromium, then make test-slow",
}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    skipped: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        skipped[reason] = skipped.get(reason, 0) + 1
    without_slow = config.option.markexpr == "not slow"
    if skipped or without_slow:
        terminalreporter.section("skipped")
    for reason, n in sorted(skipped.items()):
        command = next((f" → {command}" for part, command in WOULD_RUN.items() if part.lower() in reason.lower()), "")
        terminalreporter.write_line(f"{n:5}  {reason.removeprefix('Skipped: ')}{command}")
    if without_slow:
        terminalreporter.write_line("       all slow tests → make test-slow")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-lectures", action="store_true", help="put the figures found into docs/explanation/lectures.md"
    )
    parser.addoption("--record-durations", action="store_true", help="write processor times into tests/durations.json")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-durations"):
        config.pluginmanager.register(durations.Recorder(writes=not hasattr(config, "workerinput")))


@pytest.fixture
def figure(pytestconfig: pytest.Config) -> Callable[[int, str, str, str, str], None]:
    """``figure(row, what, said, found, call)`` checks a line of docs/explanation/lectures.md, or writes it when asked."""

    def told(row: int, what: str, said: str, found: str, call: str) -> None:
        made = lectures.line(row, what, said, found, call)
        if pytestconfig.getoption("--write-lectures"):
            lectures.write(made)
        assert made in lectures.lines(), (
            f"docs/explanation/lectures.md has another figure; {lectures.COMMAND} writes it anew"
        )

    return told


ADULT = """age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain
    capital_loss hours_per_week native_country income""".split()

MUSHROOM = """class cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing gill_size gill_color
    stalk_shape stalk_root stalk_surface_above_ring stalk_surface_below_ring stalk_color_above_ring
    stalk_color_below_ring veil_type veil_color ring_number ring_type spore_print_color population habitat""".split()

CAR = "buying maint doors persons lug_boot safety class".split()

HOUSE_VOTES = """party handicapped_infants water_project_cost_sharing adoption_of_the_budget_resolution
    physician_fee_freeze el_salvador_aid religious_groups_in_schools anti_satellite_test_ban
    aid_to_nicaraguan_contras mx_missile immigration synfuels_corporation_cutback education_spending
    superfund_right_to_sue crime duty_free_exports export_administration_act_south_africa""".split()

AUTO_MPG = "mpg cylinders displacement horsepower weight acceleration model_year origin car_name".split()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of public data sets."""
    folder = os.environ.get("BANBURY_DATA")
    if not folder:
        pytest.skip("BANBURY_DATA is unset: it names the folder of public data sets this test reads")
    if not Path(folder).is_dir():
        pytest.fail(f"BANBURY_DATA is {folder!r}, which is not a folder")
    return Path(folder)


@pytest.fixture(scope="session")
def unpacked(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """``unpacked("adult")`` is a temporary folder with the files of that data set as their authors published them.

    Workers of one run share it: whoever has unpacked a data set first gives it its name. Nobody changes it.
    """
    own = tmp_path_factory.getbasetemp()
    shared = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "data"
    shared.mkdir(exist_ok=True)

    def unpack(name: str) -> Path:
        if not (shared / name).exists():
            folder = tmp_path_factory.mktemp(name)
            for archive in sorted((data_dir / name).glob("*.gz")):
                if archive.name.endswith(".tar.gz"):
                    with tarfile.open(archive) as tar:
                        tar.extractall(folder, filter="data")
                else:
                    with gzip.open(archive) as source, open(folder / archive.stem, "wb") as copy:
                        shutil.copyfileobj(source, copy)
            with suppress(OSError):  # another worker was faster
                folder.rename(shared / name)
        return shared / name

    return unpack


@pytest.fixture(scope="session")
def archived(data_dir: Path) -> Callable[[str], dict[str, bytes]]:
    """``archived("webkb")`` has the contents of every file of that data set by its path, in order, without unpacking it."""

    def contents(name: str) -> dict[str, bytes]:
        (archive,) = (data_dir / name).glob("*.tar.gz")
        with tarfile.open(archive) as tar:
            found = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
        return dict(sorted(found.items()))

    return contents


def read(path: Path, names: list[str], sep: str = ",", skiprows: int = 0) -> pd.DataFrame:
    """A table as the UCI repository publishes it: no header, ``?`` for missing and nothing else for missing."""
    return pd.read_csv(
        path,
        names=names,
        sep=sep,
        skiprows=skiprows,
        skipinitialspace=True,
        na_values=["?"],
        keep_default_na=False,
    )


@pytest.fixture(scope="session")
def adult_train(unpacked: Callable[[str], Path]) -> pd.DataFrame:
    """Census income, 32,561 rows of mixed columns; the target is ``income``."""
    return read(unpacked("adult") / "adult.data", ADULT)


@pytest.fixture(scope="session")
def adult_test(unpacked: Callable[[str], Path]) -> pd.DataFrame:
    """The other 16,281 rows; the full stop that their labels end with in the file is removed."""
    frame = read(unpacked("adult") / "adult.test", ADULT, skiprows=1)
    return frame.assign(income=frame["income"].str.removesuffix("."))


@pytest.fixture(scope="session")
def mushroom(unpacked: Callable[[str], Path]) -> pd.DataFrame:
    """8,124 mushrooms, 22 categorical columns; the target ``class`` is e (edible) or p (poisonous)."""
    return read(unpacked("mushroom") / "agaricus-lepiota.data", MUSHROOM)


@pytest.fixture(scope="session")
def car(unpacked: Callable[[str], Path]) -> pd.DataFrame:
    """1,728 cars, six categorical columns; the target ``class`` has four values."""
    return read(unpacked("car") / "car.data", CAR)


@pytest.fixture(scope="session")
def house_votes(unpacked: Callable[[str], Path]) -> pd.DataFrame:
    """435 members of the US House of 1984, sixteen votes; the target is ``party``."""
    return read(unpacked("house-votes-84") / "house-votes-84.data", HOUSE_VOTES)


@pytest.fixture(scope="session")
def auto_mpg(unpacked: Callable[[str], Path]) -> pd.DataFrame:
    """398 cars with their fuel consumption; six of them lack ``horsepower``."""
    return read(unpacked("auto-mpg") / "auto-mpg.data", AUTO_MPG, sep=r"\s+")
