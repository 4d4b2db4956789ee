# SPDX-License-Identifier: Apache-2.0
"""Captures regions that a program names for other profilers (record_function, NVTX ranges), those profilers themselves,
and CUDA graphs."""

from __future__ import annotations

import threading
import weakref

from . import _capture
from ._guard import wrap_function
from ._torch_versions import get_is_compiling

SCOPE_REGION = 5
# Prefixes of PyTorch's own regions, which are captured in other ways.
FRAMEWORK_PREFIXES = (
    "Optimizer.",
    "enumerate(DataLoader)",
    "ProfilerStep",
    "nccl:",
    "gloo:",
    "DistributedDataParallel.",
)


def install(torch) -> None:
    _watch_record_function(torch)
    _watch_nvtx(torch)
    _watch_profilers(torch)
    _watch_cuda_graphs(torch)


class OpenRegions(threading.local):
    """Scope depths at which this thread has entered regions, innermost last; None for a region that is not recorded."""

    def __init__(self) -> None:
        self.depths: list = []

    def enter_region(self, name: str) -> None:
        is_recorded = not name.startswith(FRAMEWORK_PREFIXES)
        self.depths.append(_capture.enter_child_scope(SCOPE_REGION, name) if is_recorded else None)

    def leave_region(self) -> None:
        depth = self.depths.pop() if self.depths else None
        if depth is not None:
            _capture.leave_to(depth)


def _watch_record_function(torch) -> None:
    open_regions = OpenRegions()
    record_function = torch.autograd.profiler.record_function
    wrap_function(
        record_function,
        "__enter__",
        get_is_compiling(torch),
        lambda args: open_regions.enter_region(args[0].name),
        _ignore_return,
    )
    wrap_function(
        record_function, "__exit__", get_is_compiling(torch), lambda args: open_regions.leave_region(), _ignore_return
    )


def _ignore_return(token, has_returned, args) -> None:
    pass


def _watch_nvtx(torch) -> None:
    open_regions = OpenRegions()

    def after_range_push(token, has_returned, args):
        if has_returned:
            open_regions.enter_region(str(args[0]))

    def after_range_pop(token, has_returned, args):
        if has_returned:
            open_regions.leave_region()

    wrap_function(torch.cuda.nvtx, "range_push", get_is_compiling(torch), lambda args: True, after_range_push)
    wrap_function(torch.cuda.nvtx, "range_pop", get_is_compiling(torch), lambda args: True, after_range_pop)


def _watch_profilers(torch) -> None:
    """Wraps torch.autograd.profiler.profile, which all profilers of PyTorch use. CUPTI serves one client: the capture
    releases it before a profiler begins and takes it back after its end."""
    profile_type = torch.autograd.profiler.profile

    def before_profiler_start(args) -> None:
        if _is_on_cpu_only(args[0]):
            _capture.diagnose("profiler_in_process", "another profiler ran in this process and slowed the program", "")
        else:
            _capture.set_other_profiler(True)

    def after_profiler_exit(token, returned, args) -> None:
        if not _is_on_cpu_only(args[0]):
            _capture.set_other_profiler(False)

    for name in ("_prepare_trace", "_start_trace", "__enter__"):
        if hasattr(profile_type, name):
            wrap_function(profile_type, name, get_is_compiling(torch), before_profiler_start, _ignore_return)
    wrap_function(profile_type, "__exit__", get_is_compiling(torch), lambda args: True, after_profiler_exit)


def _watch_cuda_graphs(torch) -> None:
    """The capture closes CUPTI during untraced steps. Kernels of a CUDA graph captured then would have no scopes, so
    CUPTI stays open from the first graph capture on.

    A replay runs no Python code of the training loop, so it repeats the loop's events of the graph's capture: a replay of
    a whole training step is a step."""
    graph_type = getattr(torch.cuda, "CUDAGraph", None)
    if not all(hasattr(graph_type, method) for method in ("capture_begin", "capture_end", "replay")):
        return
    is_compiling = get_is_compiling(torch)
    events_by_graph: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
    _capture.allow_cupti_detach(True)

    def before_capture_begin(args) -> None:
        _capture.allow_cupti_detach(False)
        _capture.begin_graph_capture()

    def after_capture_end(token, has_returned, args) -> None:
        events = _capture.end_graph_capture()
        if events:
            events_by_graph[args[0]] = events

    def before_replay(args):
        events = events_by_graph.get(args[0])
        if events:
            _capture.begin_graph_replay(events)
        return events

    def after_replay(events, has_returned, args) -> None:
        _capture.end_graph_replay(events)

    wrap_function(graph_type, "capture_begin", is_compiling, before_capture_begin, _ignore_return)
    wrap_function(graph_type, "capture_end", is_compiling, lambda args: True, after_capture_end)
    wrap_function(graph_type, "replay", is_compiling, before_replay, after_replay)


def _is_on_cpu_only(profile) -> bool:
    """Whether the profile uses no GPU records."""
    activities = getattr(profile, "kineto_activities", None)
    return activities is not None and {activity.name for activity in activities} == {"CPU"}
