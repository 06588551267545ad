"""The loader for MLflow's pyfunc flavour, which reads a Banbury file without pickle.

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
    """A model that MLflow can call: rows in, a frame of predictions out."""

    def __init__(self, model: Model | LabelModel) -> None:
        """``model``: the model that predicts."""
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Returns a frame with the class of each row and its probability, or with its labels and theirs.
        ``params={"posteriors": True}`` adds all probabilities; another parameter raises an error. ``model_input`` has the
        rows: a frame or a mapping of columns by their names, or texts for a model of a single text column.
        """
        import pandas as pd

        settings = dict(params or {})
        posteriors = bool(settings.pop("posteriors", False))
        for name in settings:
            raise errors.unknown_choice("a parameter", name, ["posteriors"])
        posterior = self.model.posterior(self._rows(model_input))  # rows × classes or labels
        frame = pd.DataFrame(self.model._records(posterior))
        if posteriors:
            # ``_names`` are the classes or labels, in the order of the posterior's columns.
            frame = frame.assign(
                **{f"P({name})": posterior[:, number] for number, name in enumerate(self.model._names)}
            )
        return frame

    def _rows(self, rows: Any) -> Any:
        """Returns the rows in a form that the model reads; a frame with one column becomes texts if the model takes
        only these. Raises an error for file names, and for texts if the model has other columns.
        """
        columns = getattr(rows, "columns", None)
        schema = self.model.schema
        is_single_text = len(schema.columns) == 1 and "text" in schema.kinds.values()
        if is_single_text and columns is not None and len(columns) == 1:
            texts = list(rows.iloc[:, 0])
            return {schema.columns[0]: texts} if schema.named else list(map(str, texts))
        if isinstance(rows, (str, bytes, os.PathLike)) or (is_texts(rows) and not is_single_text):
            requirement = (
                "a frame or a mapping of columns, or texts for a model of one text column; file names are not read"
            )
            raise errors.bad_setting("model_input", type(rows).__name__, requirement)
        return rows


def _load_pyfunc(path: str) -> PyfuncModel:
    """Returns the model in the packed file at ``path``; MLflow calls this. Raises an error if the file has no model."""
    model = load(path)
    if not isinstance(model, (Model, LabelModel)):
        raise errors.bad_setting(
            "the loaded file", type(model).__name__, "a model; make one from a tally with bb.estimate"
        )
    return PyfuncModel(model)
