"""Times of operations within networks: from a profiler's trace to rows of the kinds also measured in isolation."""

from __future__ import annotations

import csv
import gzip
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _collect import layer_rows, layer_tables, layers, tables  # noqa: E402

CONVOLUTION_ARGUMENTS = {
    "Input Dims": [[8, 64, 56, 56], [128, 64, 3, 3], [], [], [], [], [], [], []],
    "Input type": ["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"],
    "Input Strides": [[200704, 3136, 56, 1]],
    "Concrete Inputs": ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
}


def call(name, begin, length, number, thread=1, **more):
    entry = {"External id": number, **more}
    return {"cat": "cpu_op", "name": name, "tid": thread, "ts": begin, "dur": length, "args": entry}


def kernel(begin, length, number):
    return {"cat": "kernel", "name": "k", "tid": 7, "ts": begin, "dur": length, "args": {"External id": number}}


# A convolution inside its wrapper, its gradient on another thread with the same sequence number, an optimizer step.
TRACE = [
    call("aten::conv2d", 0, 20, 1, **{"Sequence number": 5}),
    call("aten::convolution", 1, 18, 2, **{"Sequence number": 5}, **CONVOLUTION_ARGUMENTS),
    call("aten::cudnn_convolution", 2, 10, 3),
    call("autograd::engine::evaluate_function: ConvolutionBackward0", 50, 30, 4, thread=2, **{"Sequence number": 5}),
    call("aten::convolution_backward", 52, 20, 5, thread=2),
    {"cat": "user_annotation", "name": "Optimizer.step#SGD.step", "tid": 1, "ts": 90, "dur": 20, "args": {}},
    call("aten::_foreach_add_", 92, 5, 6),
    kernel(10, 7.0, 3),
    kernel(18, 2.0, 3),
    kernel(60, 20.0, 5),
    kernel(95, 4.0, 6),
    kernel(99, 1.0, 77),
]


def test_kernels_belong_to_the_outermost_operation_that_is_not_a_wrapper():
    result = layers.sum_trace_by_operation(TRACE)
    by_phase = {row[0]: row for row in result["operations"]}
    assert by_phase["forward"][1] == "aten::convolution"
    assert by_phase["forward"][-3:] == [1, 9.0, 2]
    assert result["busy_us"] == 34 and result["kernels"] == 5 and result["untold_us"] == 1


def test_a_gradient_is_identified_by_its_forward_operation():
    by_phase = {row[0]: row for row in layers.sum_trace_by_operation(TRACE)["operations"]}
    assert by_phase["backward"][1] == "aten::convolution" and by_phase["backward"][6] == "ConvolutionBackward0"
    assert by_phase["backward"][-2] == 20
    assert by_phase["optimizer"][-2] == 4


def test_operations_of_networks_become_rows_of_the_kinds_that_are_measured_alone():
    line = {"layers_of": "network torchvision/resnet18 8x224 default training", **layers.sum_trace_by_operation(TRACE)}
    rows = {layer.row.pass_name: layer for layer in layer_rows.read_network_operations(line) if layer.row}
    forward = rows["forward"].row
    assert forward.kind == "convolution" and forward.dtype == "tf32"
    assert (
        forward.parameters["channels"] == 64 and forward.parameters["out"] == 128 and forward.parameters["stride"] == 2
    )
    assert round(rows["backward"].time_s * 1e6, 6) == 20 and rows["forward"].launches == 2


def test_the_table_has_a_row_for_each_operation_of_a_family(tmp_path):
    line = {
        "layers_of": "network torchvision/resnet18 8x224 default training",
        "slice": "s",
        **layers.sum_trace_by_operation(TRACE),
    }
    assert layer_tables.write_layer_tables([line], tmp_path, tmp_path) == {"layers": 2, "busy": 1}
    assert [result["layers_of"] for result in tables.read_rows(tmp_path)] == [line["layers_of"]]  # not profiled again
    with gzip.open(tmp_path / "layers.csv.gz", "rt") as file:
        assert {row["source"] for row in csv.DictReader(file)} == {"ResNet"}


def test_a_later_profile_adds_to_the_tables_and_counts_nothing_twice(tmp_path):
    result = layers.sum_trace_by_operation(TRACE)
    small_batch_line, large_batch_line = (
        {"layers_of": f"network torchvision/resnet18 {batch}x224 default training"} for batch in (8, 16)
    )
    layer_tables.write_layer_tables([{**small_batch_line, "slice": "s", **result}], tmp_path, tmp_path)
    profile_lines = [{**line, "slice": "s", **result} for line in (small_batch_line, large_batch_line)]
    assert layer_tables.write_layer_tables(profile_lines, tmp_path, tmp_path) == {"layers": 2, "busy": 2}
    counts = [int(row["count"]) for row in tables.read_csv_records(tmp_path / "layers.csv.gz")]
    assert counts == [
        2 * row.count for row in layer_rows.read_network_operations({**small_batch_line, **result}) if row.row
    ]


def test_dense_layers_and_sums_are_read_from_what_the_dispatcher_saw():
    dense_call = layer_rows.DispatcherCall(
        "addmm", [[10], [8, 64], [64, 10], [], []], ["float"] * 3, [1], ["", "", "", "1", "1"]
    )
    assert layer_rows.classify_call(dense_call) == ("dense", {"rows": 8, "in": 64, "out": 10, "bias": 1})
    mean = layer_rows.DispatcherCall("mean", [[8, 64, 7, 7], [], []], ["float"], [], ["", "[-1, -2]", "True"])
    kind, result = layer_rows.classify_call(mean)
    assert kind == "reduce" and result["over"] == "last" and result["rows"] == 512 and result["width"] == 49
    assert layer_rows.classify_call(layer_rows.DispatcherCall("aten_custom", [[1]], [], [], [])) is None
