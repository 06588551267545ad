"""Public data sets that are too large to ship, from the folder that BANBURY_DATA names."""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNSET = "BANBURY_DATA is unset: it names the folder of public data sets"
ADULT = """age workclass fnlwgt education education_num marital_status occupation relationship race sex capital_gain
    capital_loss hours_per_week native_country income""".split()
INCOME = ADULT[-1]
MUSHROOM = """class cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing gill_size gill_color stalk_shape
    stalk_root stalk_surface_above_ring stalk_surface_below_ring stalk_color_above_ring stalk_color_below_ring veil_type
    veil_color ring_number ring_type spore_print_color population habitat""".split()
CAR = "buying maint doors persons lug_boot safety class".split()
HOUSE_VOTES = ["party", *(f"vote{k}" for k in range(1, 17))]


def there(name: str) -> bool:
    folder = os.environ.get("BANBURY_DATA")
    return bool(folder) and (Path(folder or "") / name).is_dir()


@contextmanager
def unpacked(name: str) -> Iterator[Path]:
    """A temporary folder with the files of a data set as their authors published them."""
    with tempfile.TemporaryDirectory() as folder:
        for archive in sorted((Path(os.environ["BANBURY_DATA"]) / name).glob("*.gz")):
            if archive.name.endswith(".tar.gz"):
                with tarfile.open(archive) as tar:
                    tar.extractall(folder, filter="data")
            else:
                with gzip.open(archive) as source, open(Path(folder) / archive.stem, "wb") as copy:
                    shutil.copyfileobj(source, copy)
        yield Path(folder)


@contextmanager
def adult() -> Iterator[tuple[Path, Path, dict[str, Any]]]:
    """Adult's rows to learn from and to test on, and how to read them; both files spell the classes alike."""
    with unpacked("adult") as folder:
        train, test = folder / "adult.data", folder / "test.csv"
        train.write_bytes(train.read_bytes().strip() + b"\n")
        lines = (folder / "adult.test").read_text(encoding="utf-8").splitlines()[1:]  # the first is no row
        test.write_text("".join(f"{line.removesuffix('.')}\n" for line in lines if line), encoding="utf-8")
        yield train, test, {"columns": ADULT}


def frame(name: str, file: str, names: list[str]) -> Any:
    """A table as the UCI repository publishes it: no header, ``?`` for missing and nothing else for missing."""
    import pandas as pd

    with unpacked(name) as folder:
        return pd.read_csv(folder / file, names=names, skipinitialspace=True, na_values=["?"], keep_default_na=False)


def texts(folder: Path, step: int = 1) -> tuple[list[str], list[str]]:
    """The files below a folder, by name, and the sub-folder each is in; every ``step``-th of them."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())[::step]
    return [decoded(path.read_bytes()) for path in paths], [path.relative_to(folder).parts[0] for path in paths]


def decoded(content: bytes) -> str:
    """UTF-8, or Latin-1 where it is not."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """What argparse takes for the name of a data set."""

    def known(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"no data set {name!r}; there are {', '.join(names)}")
        return name

    return known
