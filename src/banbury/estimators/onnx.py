"""A converter for skl2onnx, so that it converts a Pipeline that has a classifier of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury import errors
from banbury.estimators.classifier import NaiveBayesClassifier
from banbury.estimators.drop_in import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from banbury.estimators.evidence import EvidenceClassifier
from banbury.files.export.onnx import Graph, are_whole, input_columns, posteriors

CLASSIFIERS = (
    EvidenceClassifier,
    NaiveBayesClassifier,
    GaussianNB,
    MultinomialNB,
    ComplementNB,
    BernoulliNB,
    CategoricalNB,
)


def register_converters() -> None:
    """Tells skl2onnx how our classifiers are converted; it is asked for a model once and for all."""
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        text = (
            "converting pipelines needs skl2onnx, which is not installed. Install it with: pip install 'banbury[onnx]'"
        )
        raise errors.MissingLibrary(text, library="skl2onnx") from None
    for classifier in CLASSIFIERS:
        options: dict[str, Any] = {
            "zipmap": [True, False, "columns"],
            "nocl": [True, False],
            "output_class_labels": [False, True],
        }
        update_registered_converter(classifier, f"Banbury{classifier.__name__}", _shape, _convert, options=options)


def _shape(operator: Any) -> None:
    from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

    names = operator.raw_operator.model_.names
    operator.outputs[0].type = (Int64TensorType if are_whole(names) else StringTensorType)([None])
    operator.outputs[1].type = FloatTensorType([None, len(names)])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator.model_
    tables = model.evidence_table()
    graph = Graph(scope.get_unique_operator_name("banbury"))
    columns = input_columns(tables)
    graph_inputs = [variable.full_name for variable in operator.inputs]
    if len(graph_inputs) == 1 and len(columns) > 1:  # one matrix: a column each
        order = {name: k for k, name in enumerate(model.schema.columns)}
        column_inputs = {
            name: graph.add("Gather", graph_inputs[0], graph.constant([order[name]], np.int64), axis=1)
            for name, *_ in columns
        }
    else:
        column_inputs = {name: graph_input for (name, *_), graph_input in zip(columns, graph_inputs, strict=True)}
    inputs = {
        name: graph.cast(column_inputs[name], "DOUBLE") if kind == "double" else column_inputs[name]
        for name, kind, _ in columns
    }
    label, shares = posteriors(graph, tables, inputs, model.names)
    answers = [variable.full_name for variable in operator.outputs]
    node = graph.onnx.helper.make_node
    graph.nodes.append(node("Identity", [label], [answers[0]], name=scope.get_unique_operator_name("label")))
    to = graph.onnx.TensorProto.FLOAT
    graph.nodes.append(node("Cast", [shares], [answers[1]], name=scope.get_unique_operator_name("shares"), to=to))
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.initializers)
    container.node_domain_version_pair_sets.update({("", 17), ("ai.onnx.ml", 3)})
