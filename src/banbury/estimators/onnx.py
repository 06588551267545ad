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
from banbury.files.export.onnx import ML_OPSET, OPSET, Graph, add_posteriors, are_whole
from banbury.labels import LabelModel

# An ONNX program: inserts the flags (rows × labels) into columns for all labels, those without rows too.
FLAGS_PROGRAM = """
    flags = Cast<to = 11>(label)
    all_flags = MatMul(flags, columns)
    all = Cast<to = 7>(all_flags)
"""
CLASSIFIERS: tuple[type, ...] = (
    EvidenceClassifier,
    NaiveBayesClassifier,
    MultiLabelClassifier,
    GaussianNB,
    MultinomialNB,
    ComplementNB,
    BernoulliNB,
    CategoricalNB,
)


def register_converters() -> None:
    """Registers the converters of Banbury's classifiers with skl2onnx. Call it once before converting."""
    try:
        from skl2onnx import update_registered_converter
    except ImportError:
        text = (
            "converting pipelines needs skl2onnx, which is not installed. Install it with: pip install 'banbury[onnx]'"
        )
        raise errors.MissingLibrary(text, library="skl2onnx") from None
    booleans = [True, False]
    options = {"zipmap": [*booleans, "columns"], "nocl": booleans, "output_class_labels": booleans}
    for classifier in CLASSIFIERS:
        update_registered_converter(classifier, f"Banbury{classifier.__name__}", _set_types, _convert, options=options)


def _set_types(operator: Any) -> None:
    """Sets the types of an operator's two outputs: the labels, and the posteriors (rows × classes or labels)."""
    from skl2onnx.common import data_types

    model = written_model(operator.raw_operator)
    has_label_flags = isinstance(model, LabelModel)
    n_columns = len(operator.raw_operator.classes_)
    tensor_type = (
        data_types.Int64TensorType if has_label_flags or are_whole(model._names) else data_types.StringTensorType
    )
    operator.outputs[0].type = tensor_type([None, n_columns] if has_label_flags else [None])
    operator.outputs[1].type = data_types.FloatTensorType([None, n_columns])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Adds the graph of a classifier to the graph of its Pipeline. ``scope``, ``operator``, ``container``: those of
    skl2onnx's converters: a source of unused names, the classifier with its inputs and outputs, and the graph to
    extend.
    """
    model = written_model(operator.raw_operator)
    tables = model.evidence_table()
    graph = Graph(scope.get_unique_operator_name("banbury"))
    columns = tables.columns["name"].to_pylist()
    input_tensors = [variable.full_name for variable in operator.inputs]
    if len(input_tensors) == 1 and len(columns) > 1:  # one matrix, with a column of it for each
        column_numbers = [model.schema.columns.index(name) for name in columns]
        input_tensors = [
            graph.add("column = Gather<axis = 1>(x, place)", x=input_tensors[0], place=[k])["column"]
            for k in column_numbers
        ]
    label_tensor, posterior_tensor = add_posteriors(
        graph, tables, dict(zip(columns, input_tensors, strict=True)), model._names
    )
    if tables.answers == "labels":  # a column for each label, those without rows too
        all_labels = operator.raw_operator.classes_.tolist()
        column_by_label = np.eye(len(all_labels))[[all_labels.index(name) for name in model.labels]]
        posterior_tensor = graph.add("all = MatMul(shares, columns)", shares=posterior_tensor, columns=column_by_label)[
            "all"
        ]
        label_tensor = graph.add(FLAGS_PROGRAM, label=label_tensor, columns=column_by_label)["all"]
    graph.add_output(operator.outputs[0].full_name, label_tensor, "Identity")
    graph.add_output(operator.outputs[1].full_name, posterior_tensor, "Cast", to=graph.onnx.TensorProto.FLOAT)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.initializers)
    container.node_domain_version_pair_sets.update({("", OPSET), ("ai.onnx.ml", ML_OPSET)})
