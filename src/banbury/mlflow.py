"""The loader of MLflow's pyfunc flavour: a model file of ours, without pickle.

``mlflow.pyfunc.save_model(path, loader_module="banbury.mlflow", data_path="mail.banbury")`` packs a file that ``bb.save`` wrote;
``mlflow.pyfunc.load_model`` and ``mlflow models serve`` then answer with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from banbury import errors
from banbury.files import load
from banbury.labels import LabelModel
from banbury.model.naive_bayes import Model
from banbury.reading import is_texts

__all__ = ["PyfuncModel"]


class PyfuncModel:
    """A model that MLflow asks: rows in, a table of answers out."""

    def __init__(self, model: Model | LabelModel) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """A frame with the class and its probability, or with the labels and theirs; ``params={"posteriors": True}``: all.

        Rows are a frame or a mapping of columns, by the names they were counted under; or texts, for a model of one text.
        """
        import pandas as pd

        settings = dict(params or {})
        posteriors = bool(settings.pop("posteriors", False))
        for name in settings:
            raise errors.unknown_choice("a parameter", name, ["posteriors"])
        posterior = self.model.posterior(self._rows(model_input))
        frame = pd.DataFrame(self.model.records(posterior))
        if posteriors:
            frame = frame.assign(**{f"P({name})": posterior[:, k] for k, name in enumerate(self.model.names)})
        return frame

    def _rows(self, rows: Any) -> Any:
        """Rows as the model reads them: a frame of one column is texts, where those are all that it takes."""
        columns = getattr(rows, "columns", None)
        schema = self.model.schema
        alone = len(schema.columns) == 1 and "text" in schema.kinds.values()
        if alone and columns is not None and len(columns) == 1:
            texts = list(rows.iloc[:, 0])
            return {schema.columns[0]: texts} if schema.named else list(map(str, texts))
        if isinstance(rows, (str, bytes, os.PathLike)) or (is_texts(rows) and not alone):
            requirement = (
                "a frame or a mapping of columns, or texts for a model of one text column; file names are not read"
            )
            raise errors.bad_setting("model_input", type(rows).__name__, requirement)
        return rows


def _load_pyfunc(path: str) -> PyfuncModel:
    """What MLflow calls with the path of the file that was packed."""
    model = load(path)
    if not isinstance(model, (Model, LabelModel)):
        raise errors.bad_setting(
            "the loaded file", type(model).__name__, "a model; make one from a tally with bb.estimate"
        )
    return PyfuncModel(model)
