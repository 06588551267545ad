"""A converter for skl2onnx, so that it converts a Pipeline that has a classifier of ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from banbury.estimators.classifier import NaiveBayesClassifier
from banbury.estimators.drop_in import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from banbury.estimators.evidence import EvidenceClassifier
from banbury.estimators.multi_label import MultiLabelClassifier
from banbury.files.export import written_model
from banbury.files.export.onnx import OPSETS, Graph, add_posteriors, are_whole, import_library
from banbury.labels import LabelModel

# An ONNX program: inserts shares and flags (rows × labels) into columns for all labels, those without rows too.
ALL_LABELS_PROGRAM = """
    all_shares = MatMul(shares, columns)
    flags = Cast<to = 11>(label)
    flag_columns = MatMul(flags, columns)
    all_flags = Cast<to = 7>(flag_columns)
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
    register = import_library("skl2onnx").update_registered_converter
    booleans = [True, False]
    # The allowed values of skl2onnx's options.
    options = {"zipmap": [*booleans, "columns"], "nocl": booleans, "output_class_labels": booleans}
    for classifier in CLASSIFIERS:
        register(classifier, f"Banbury{classifier.__name__}", _set_types, _convert, options=options)


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
    tables = model.evidence_table()  # everything that scores are computed from
    graph = Graph(scope.get_unique_operator_name("banbury"))
    columns = tables.columns["name"].to_pylist()  # of the model
    input_tensors = [variable.full_name for variable in operator.inputs]  # their names
    if len(input_tensors) == 1 and len(columns) > 1:  # one matrix, with a column of it for each
        matrix = input_tensors[0]
        # The number of each column in the matrix.
        numbers = [[model.schema.columns.index(name)] for name in columns]
        input_tensors = [
            graph.add("x = Gather<axis = 1>(matrix, k)", matrix=matrix, k=number)["x"] for number in numbers
        ]
    inputs = dict(zip(columns, input_tensors, strict=True))  # the name of the tensor of each column
    # Names of the tensors of answers and posteriors.
    label_tensor, posterior_tensor = add_posteriors(graph, tables, inputs, model._names)
    if tables.answers == "labels":
        all_labels = operator.raw_operator.classes_.tolist()
        # The model's labels × all labels: 1 for the same one.
        column_by_label = np.eye(len(all_labels))[[all_labels.index(name) for name in model.labels]]
        tensors = graph.add(ALL_LABELS_PROGRAM, shares=posterior_tensor, label=label_tensor, columns=column_by_label)
        label_tensor = tensors["all_flags"]
        posterior_tensor = tensors["all_shares"]
    graph.add_output(operator.outputs[0].full_name, label_tensor, "Identity")
    graph.add_output(operator.outputs[1].full_name, posterior_tensor, "Cast", to=graph.onnx.TensorProto.FLOAT)
    container.nodes.extend(graph.nodes)
    container.initializers.extend(graph.initializers)
    container.node_domain_version_pair_sets.update(OPSETS)
