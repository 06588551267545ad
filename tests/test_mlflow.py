"""A model file of ours in MLflow: packed, loaded and asked, without pickle."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import banbury as bb
import serving
from banbury import errors
from banbury.mlflow import _load_pyfunc


def packed(model: Any, folder: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow.pyfunc

        bb.save(model, folder / "model.banbury")
        data = str(folder / "model.banbury")
        mlflow.pyfunc.save_model(
            str(folder / "packed"), loader_module="banbury.mlflow", data_path=data, pip_requirements=["banbury"]
        )
        assert not list((folder / "packed").rglob("*.pkl"))
        return mlflow.pyfunc.load_model(str(folder / "packed"))


def test_a_table(tmp_path: Path) -> None:
    model, rows = serving.plain_table(), pd.DataFrame(serving.table()).drop(columns="flu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = packed(model, tmp_path).predict(rows)
    assert told["class"].tolist() == model.predict(rows).tolist()
    np.testing.assert_array_equal(told["probability"], model.posterior(rows).max(axis=1))


@pytest.mark.parametrize("rows", [["cheap pills", "lunch"], pd.DataFrame({"any": ["cheap pills", "lunch"]})])
def test_texts_and_labels(rows: Any, tmp_path: Path) -> None:
    for model in (serving.texts_model(), serving.labels_model()):
        bb.save(model, tmp_path / "model.banbury")
        loaded = _load_pyfunc(str(tmp_path / "model.banbury"))
        told = loaded.predict(rows, {"posteriors": True})
        posterior = model.posterior(["cheap pills", "lunch"])
        np.testing.assert_array_equal(told[[name for name in told if name.startswith("P(")]].to_numpy(), posterior)
        with pytest.raises(errors.BadSetting, match="a parameter"):
            loaded.predict(rows, {"posterior": True})


def test_no_name_of_a_file_is_read(tmp_path: Path) -> None:
    bb.save(serving.plain_table(), tmp_path / "model.banbury")
    loaded = _load_pyfunc(str(tmp_path / "model.banbury"))
    for rows in (str(tmp_path / "model.banbury"), ["rows.csv"]):
        with pytest.raises(errors.BadSetting, match="file names are not read"):
            loaded.predict(rows)
    bb.save(serving.plain_table().tally, tmp_path / "tally.banbury")
    with pytest.raises(errors.BadSetting, match=r"bb\.estimate"):
        _load_pyfunc(str(tmp_path / "tally.banbury"))
