# SPDX-License-Identifier: Apache-2.0
"""What the capture of TensorFlow writes about the names in a graph."""

from __future__ import annotations

from joulemap._graph_names import GraphNames, is_gradient_operation


def test_sizes_that_differ_between_traces_of_a_function_are_unknown():
    names = GraphNames()
    for batch in (64, 32, 64):
        names.add_tensors("net/MatMul", f"[{batch},3] int64[{batch}]")
        names.add_tensors("net/Reshape", "[64]" if batch == 64 else "[32,1]")
        names.add_tensors("net/Same", "[8,3] and 2 more")
    assert list(names.metadata_lines()) == [
        ("tensors", "net/MatMul", "[-1,3] int64[-1]"),
        ("tensors", "net/Same", "[8,3] and 2 more"),
    ]


def test_an_operation_belongs_to_the_innermost_scope_around_it():
    names = GraphNames()
    names.add_scope("net", "", "net")
    names.add_scope("net/dense_1", "", "dense")
    names.add_update("AssignSub", "net/dense_1/Read")
    assert names.find_module("gradient_tape/net/dense_1/MatMul/MatMul_1") == "dense"
    assert names.find_module("net/Relu") == "net"
    assert names.find_module("other/Relu") is None
    assert names.contains_operation("AssignSub") and not names.contains_operation("AssignSub_1")


def test_gradients_are_recognized_by_their_scopes():
    assert is_gradient_operation("gradient_tape/net/ReluGrad")
    assert is_gradient_operation("train/gradients_1/net/MatMul_grad/MatMul")
    assert not is_gradient_operation("net/gradients")
    assert not is_gradient_operation("net/dense/MatMul")
