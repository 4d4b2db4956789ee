# SPDX-License-Identifier: Apache-2.0
"""Measures the GPU time of every operation of a network inside the network: one step under torch.profiler.

Isolated operations show the energy of a shape; this shows how long the shapes of a network take in context. A line is
one network at one setting. For each distinct operation, `operations` contains its name, sizes, types, strides of its
first tensor and plain arguments as the dispatcher received them. It also contains the number of calls and their total
GPU time. A backward operation is identified by the forward operation whose gradient it computes.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Callable, Iterator, NamedTuple, Optional

# Operations that only call other operations, which are counted instead.
COMPOSITE_OPERATIONS = {
    f"aten::{name}"
    for name in (
        "conv1d conv2d conv3d conv_transpose2d _convolution linear matmul einsum batch_norm _batch_norm_impl_index "
        "layer_norm group_norm instance_norm rms_norm dropout feature_dropout alpha_dropout reshape contiguous to flatten "
        "max_pool2d adaptive_avg_pool2d adaptive_avg_pool1d avg_pool1d scaled_dot_product_attention cross_entropy_loss "
        "nll_loss nll_loss_nd softmax log_softmax upsample_nearest2d upsample_bilinear2d pad silu_backward relu6 hardtanh_ "
        "type_as float half repeat_interleave tile stack chunk split unflatten embedding_backward square __and__ meshgrid "
        "one_hot pixel_shuffle multi_head_attention_forward"
    ).split()
}
BACKWARD_EVENT_PREFIX = "autograd::engine::evaluate_function: "
OPTIMIZER_EVENT_PREFIX = "Optimizer.step"
WARM_UP_STEPS = 2


class OperationIdentity(NamedTuple):
    """Identity of an operation, in the order of the fields of a line."""

    phase: str  # forward, backward, optimizer
    name: str
    sizes: str
    types: str
    strides: str
    arguments: str
    node: str  # name of the autograd node in a backward pass


def profile_operations(torch: Any, call: Callable[[], Any]) -> dict:
    """Returns the operations of one call of a network and the GPU work of each; the call has run before."""
    for _ in range(WARM_UP_STEPS):
        call()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True, acc_events=False) as profiler:
        call()
        torch.cuda.synchronize()
    file_descriptor, path = tempfile.mkstemp(suffix=".json")
    os.close(file_descriptor)
    try:
        profiler.export_chrome_trace(path)
        with open(path) as file:
            return sum_trace_by_operation(json.load(file)["traceEvents"])
    finally:
        os.unlink(path)


def sum_trace_by_operation(events: list[dict]) -> dict:
    """Sums a trace by operation; times in microseconds."""
    calls, parents = find_parent_calls([event for event in events if event.get("cat") in ("cpu_op", "user_annotation")])
    event_ids = [call.get("args", {}).get("External id") for call in calls]
    index_by_event_id = {event_id: index for index, event_id in enumerate(event_ids) if event_id is not None}
    forward_calls = map_sequence_to_forward_call(calls, parents)
    sums_by_operation: dict[OperationIdentity, list[float]] = {}
    counted_calls: set[tuple[OperationIdentity, int]] = set()
    busy_us = kernel_count = unassigned_us = 0.0
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        busy_us, kernel_count = busy_us + event["dur"], kernel_count + 1
        index = index_by_event_id.get(event["args"].get("External id"))
        if index is None:
            unassigned_us += event["dur"]
            continue
        identity, call_index = identify_operation(index, calls, parents, forward_calls)
        operation_sums = sums_by_operation.setdefault(identity, [0, 0.0, 0])
        operation_sums[1] += event["dur"]
        operation_sums[2] += 1
        if (identity, call_index) not in counted_calls:
            counted_calls.add((identity, call_index))
            operation_sums[0] += 1
    operations = [
        [*identity, count, round(time_us, 3), launches]
        for identity, (count, time_us, launches) in sums_by_operation.items()
    ]
    outermost_call_count = sum(1 for call, parent in zip(calls, parents) if parent is None and call["cat"] == "cpu_op")
    return {
        "busy_us": busy_us,
        "kernels": kernel_count,
        "untold_us": unassigned_us,
        "calls": outermost_call_count,
        "operations": operations,
    }


def find_parent_calls(events: list[dict]) -> tuple[list[dict], list[Optional[int]]]:
    """Returns the calls sorted by thread and time, and the index of each call's parent."""
    calls = sorted(events, key=lambda event: (event["tid"], event["ts"], -event["dur"]))
    parents: list[Optional[int]] = []
    open_calls: list[int] = []
    for index, call in enumerate(calls):
        while open_calls and not is_nested_call(call, calls[open_calls[-1]]):
            open_calls.pop()
        parents.append(open_calls[-1] if open_calls else None)
        open_calls.append(index)
    return calls, parents


def is_nested_call(inner: dict, outer: dict) -> bool:
    return inner["tid"] == outer["tid"] and inner["ts"] < outer["ts"] + outer["dur"]


def enclosing_calls(index: Optional[int], parents: list[Optional[int]]) -> Iterator[int]:
    while index is not None:
        yield index
        index = parents[index]


def map_sequence_to_forward_call(calls: list[dict], parents: list[Optional[int]]) -> dict[int, int]:
    """Maps the sequence number of an autograd node to the forward call that created it: the last call with that
    number."""
    forward_calls = {}
    for index, call in enumerate(calls):
        sequence_number = call.get("args", {}).get("Sequence number", -1)
        if sequence_number >= 0 and call["name"].startswith("aten::") and call["name"] not in COMPOSITE_OPERATIONS:
            forward_calls[sequence_number] = find_outermost_operation(index, calls, parents)
    return forward_calls


def find_outermost_operation(index: int, calls: list[dict], parents: list[Optional[int]]) -> int:
    """Returns the outermost call that is not a wrapper; the innermost call if all are wrappers."""
    operations = [
        ancestor for ancestor in enclosing_calls(index, parents) if calls[ancestor]["name"].startswith("aten::")
    ]
    inner_operations = [ancestor for ancestor in operations if calls[ancestor]["name"] not in COMPOSITE_OPERATIONS]
    return inner_operations[-1] if inner_operations else operations[0] if operations else index


def identify_operation(
    index: int, calls: list[dict], parents: list[Optional[int]], forward_calls: dict[int, int]
) -> tuple[OperationIdentity, int]:
    for ancestor in enclosing_calls(index, parents):
        call = calls[ancestor]
        if call["name"].startswith(OPTIMIZER_EVENT_PREFIX):
            return OperationIdentity("optimizer", call["name"], "", "", "", "", ""), ancestor
        if call["name"].startswith(BACKWARD_EVENT_PREFIX):
            forward_call = forward_calls.get(call.get("args", {}).get("Sequence number", -1))
            node_name = call["name"][len(BACKWARD_EVENT_PREFIX) :]
            inner_call = forward_call if forward_call is not None else find_outermost_operation(index, calls, parents)
            return identify_call(
                "backward" if forward_call is not None else "accumulate", calls[inner_call], node_name
            ), ancestor
    inner_call = find_outermost_operation(index, calls, parents)
    return identify_call("forward", calls[inner_call], ""), inner_call


def identify_call(phase: str, call: dict, node_name: str) -> OperationIdentity:
    arguments_of_call = call.get("args", {})
    strides = arguments_of_call.get("Input Strides") or [[]]
    shape_texts = [
        json.dumps(arguments_of_call.get(name, []), separators=(",", ":")) for name in ("Input Dims", "Input type")
    ]
    arguments = json.dumps(arguments_of_call.get("Concrete Inputs", []), separators=(",", ":"))
    return OperationIdentity(
        phase, call["name"], *shape_texts, json.dumps(strides[0], separators=(",", ":")), arguments, node_name
    )
