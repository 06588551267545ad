"""A converter for skl2onnx, so that it converts a Pipeline that has a classifier of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury import errors
from banbury.estimators.classifier import NaiveBayesClassifier
from banbury.estimators.drop_in import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from banbury.estimators.evidence import EvidenceClassifier
from banbury.estimators.multi_label import MultiLabelClassifier
from banbury.files.export import written_model
from banbury.files.export.onnx import ML_OPSET, OPSET, Graph, Tensor, are_whole, input_columns, posteriors
from banbury.labels import LabelModel

CLASSIFIERS: tuple[type, ...] = (
    EvidenceClassifier,
    NaiveBayesClassifier,
    MultiLabelClassifier,
    GaussianNB,
    MultinomialNB,
)
CLASSIFIERS += (ComplementNB, BernoulliNB, CategoricalNB)


def register_converters() -> None:
    """Registers the converters of Banbury's classifiers with skl2onnx. Call it once before converting."""
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        text = (
            "converting pipelines needs skl2onnx, which is not installed. Install it with: pip install 'banbury[onnx]'"
        )
        raise errors.MissingLibrary(text, library="skl2onnx") from None
    flags = [True, False]
    options = {"zipmap": [*flags, "columns"], "nocl": flags, "output_class_labels": flags}
    for classifier in CLASSIFIERS:
        update_registered_converter(classifier, f"Banbury{classifier.__name__}", _set_types, _convert, options=options)


def _set_types(operator: Any) -> None:
    from skl2onnx.common import data_types

    model = written_model(operator.raw_operator)
    labels = isinstance(model, LabelModel)
    n_columns = len(operator.raw_operator.classes_)
    label = data_types.Int64TensorType if labels or are_whole(model.names) else data_types.StringTensorType
    operator.outputs[0].type = label([None, n_columns] if labels else [None])
    operator.outputs[1].type = data_types.FloatTensorType([None, n_columns])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = written_model(operator.raw_operator)
    tables = model.evidence_table()
    graph = Graph(scope.get_unique_operator_name("banbury"))
    columns = input_columns(tables)
    inputs = [Tensor(graph, variable.full_name) for variable in operator.inputs]
    if len(inputs) == 1 and len(columns) > 1:  # one matrix: a column each
        inputs = [inputs[0].apply("Gather", [model.schema.columns.index(name)], axis=1) for name, *_ in columns]
    by_name = {
        name: x.cast("DOUBLE") if kind == "double" else x for (name, kind, _), x in zip(columns, inputs, strict=True)
    }
    label, shares = posteriors(graph, tables, by_name, model.names)
    if tables.answers == "labels":  # a column for each label, those without rows too
        names = operator.raw_operator.classes_.tolist()
        columns_of_labels = np.eye(len(names))[[names.index(name) for name in model.labels]]
        shares @= columns_of_labels
        label = (label.cast("DOUBLE") @ columns_of_labels).cast("INT64")
    graph.answer(label, operator.outputs[0].full_name)
    graph.answer(shares.cast("FLOAT"), operator.outputs[1].full_name)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.initializers)
    container.node_domain_version_pair_sets.update({("", OPSET), ("ai.onnx.ml", ML_OPSET)})
