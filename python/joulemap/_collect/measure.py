# SPDX-License-Identifier: Apache-2.0
"""Runs one operation repeatedly for a fraction of a second, on a GPU by CUDA graphs, so that launches are not the
bottleneck.

A `Runner` prepares (a first call, the duration of one call, a graph of many calls) and then runs. It returns when it
ran, the number of calls and the time of a call. It also times eager calls: the time that a program without graphs
needs.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Any, Callable, NamedTuple, Optional, Sequence

from .host import HostSpeedMeter
from .power import GpuState
from .rows import MAX_ISSUE_SHARE
from .windows import run_windows, summarize_windows

OperationCall = Callable[[], Any]

# A call that takes longer, in s, is launched without a graph: its launch overhead is negligible.
MAX_GRAPH_CALL_S = 0.001
# Total duration of the eager calls in one graph; more would take long to capture.
MAX_CALLS_IN_GRAPH_S = 0.004
MAX_CALLS_IN_GRAPH = 256
# When to read clocks and limits, as a share of the run time of a row.
STATE_READ_TIME_SHARE = 0.7
MAX_TIMED_ISSUES = 4
MAX_ISSUE_TIME_S = 0.1
MAX_ISSUE_TIMED_CALL_S = 0.02
# Cached memory (bytes) above which it is released between rows.
MAX_RESERVED_BYTES = 60e9


class NotCapturableError(Exception):
    """Raised for operations that wait for the GPU and so cannot be captured in a CUDA graph. PyTorch's allocator is
    unusable afterwards: start a new process."""


class RunResult(NamedTuple):
    begin_ns: int
    end_ns: int
    calls: int
    time_s: float  # time of a call
    eager_s: float  # time of an eager call without gaps between calls
    launch_mode: str  # "graph" or "eager"
    state: GpuState
    issue_s: Optional[float] = None  # networks only: time until a call returns on the host, with an idle GPU before it
    launch_s: Optional[float] = None  # duration of a trivial kernel launch during the run: the speed of the host
    quiet_windows: Optional[int] = None  # host-bound networks only: number of windows with an undisturbed host


class CudaRunner:
    """Runs calls on one stream of one device. Graphs share the memory pool of `_memory_pool_graph`; only one other graph
    exists at a time."""

    device = "cuda"

    def __init__(self, torch: Any, read_state: Callable[[], GpuState]) -> None:
        self.torch, self._read_state = torch, read_state
        self._cuda_stream = torch.cuda.Stream()
        self._memory_pool_graph: Optional[Any] = None
        self._host_speed: Optional[HostSpeedMeter] = None
        self._small_tensor = torch.zeros(8, device="cuda") + 1  # loads the kernel of + before a graph captures it
        torch.cuda.synchronize()

    def allocate_calls(self, make_calls: Callable[[], Any]) -> Any:
        """Allocates tensors on the stream that uses them."""
        with self.torch.cuda.stream(self._cuda_stream):
            return make_calls()

    def run_calls(self, calls: Sequence[OperationCall], active_s: float, in_graph: bool) -> RunResult:
        with self.torch.cuda.stream(self._cuda_stream):
            return self._run_on_stream(calls, active_s, in_graph)

    def _run_on_stream(self, calls: Sequence[OperationCall], active_s: float, in_graph: bool) -> RunResult:
        for call in calls[:2]:
            call()
        call()
        # The first of two timings may include loading a CUDA module. The call would then seem too slow for a CUDA graph.
        call_s = min(self._time_calls_s(calls, 1) for _ in range(2))
        eager_s = self._time_calls_s(calls, max(1, min(20, int(0.003 / call_s)))) if call_s < 0.003 else call_s
        if not in_graph or eager_s >= MAX_GRAPH_CALL_S:
            run_result = self._run_for_duration(itertools.cycle(calls).__next__, 1, active_s, eager_s, "eager")
            # An operation that launches many kernels per call may be host-bound.
            return (
                run_result
                if in_graph or eager_s > MAX_ISSUE_TIMED_CALL_S
                else run_result._replace(issue_s=self._time_issue_s(calls[0])[0])
            )
        calls_per_replay = max(4, min(MAX_CALLS_IN_GRAPH, math.ceil(MAX_CALLS_IN_GRAPH_S / eager_s)))
        calls_per_replay = math.ceil(calls_per_replay / len(calls)) * len(calls)
        try:
            graph = self._make_graph(calls, calls_per_replay)
        except RuntimeError as error:
            raise NotCapturableError(str(error)) from error
        graph.replay()
        replay_s = self._time_calls_s([graph.replay], 2)
        return self._run_for_duration(
            lambda: graph.replay, calls_per_replay, active_s, replay_s / calls_per_replay, "graph"
        )._replace(eager_s=eager_s)

    def run_network(self, call: OperationCall, active_s: float, min_calls: int) -> RunResult:
        """Times a network; where the host is the bottleneck, times it in windows with an undisturbed host."""
        with self.torch.cuda.stream(self._cuda_stream):
            for _ in range(3):
                call()
            if self._host_speed is None:
                self._host_speed = HostSpeedMeter(lambda: self._small_tensor.add_(1), self._cuda_stream.synchronize)
            launch_s = self._host_speed.move_to_fastest_processors()
            issue_s, call_s = self._time_issue_s(call)
            active_s = max(active_s, min_calls * call_s)
            if issue_s >= MAX_ISSUE_SHARE * call_s:
                return self._run_windows(call, active_s, call_s)._replace(issue_s=issue_s)
            run_result = self._run_for_duration(lambda: call, 1, active_s, call_s, "eager")
            if issue_s >= MAX_ISSUE_SHARE * run_result.time_s:  # back-to-back calls take less time than a single one
                return self._run_windows(call, active_s, run_result.time_s)._replace(issue_s=issue_s)
            return run_result._replace(issue_s=issue_s, launch_s=max(launch_s, self._host_speed.time_launch_s()))

    def _run_windows(self, call: OperationCall, active_s: float, step_s: float) -> RunResult:
        self._cuda_stream.synchronize()
        begin_ns = time.monotonic_ns()
        windows, step_count_total = run_windows(
            self._host_speed, lambda step_count: self._time_window_s(call, step_count), step_s, active_s
        )
        state, end_ns = self._read_state(), time.monotonic_ns()
        summary = summarize_windows(windows, self._host_speed.fastest_launch_s)
        return RunResult(
            begin_ns, end_ns, step_count_total, summary.time_s, summary.time_s, "eager", state,
            launch_s=summary.launch_s, quiet_windows=summary.undisturbed,
        )  # fmt: skip

    def _time_window_s(self, call: OperationCall, step_count: int) -> float:
        begin_event, end_event = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        call()
        begin_event.record(self._cuda_stream)
        for _ in range(step_count):
            call()
        end_event.record(self._cuda_stream)
        self._cuda_stream.synchronize()
        return begin_event.elapsed_time(end_event) * 1e-3

    def _time_issue_s(self, call: OperationCall) -> tuple[float, float]:
        """Returns the time until a call returns and the time until the GPU has finished it, in s; the fastest of a
        few."""
        issue_times_s, finish_times_s = [], []
        while len(finish_times_s) < MAX_TIMED_ISSUES and sum(finish_times_s) < MAX_ISSUE_TIME_S:
            self._cuda_stream.synchronize()
            begin_s = time.perf_counter()
            call()
            issue_times_s.append(time.perf_counter() - begin_s)
            self._cuda_stream.synchronize()
            finish_times_s.append(time.perf_counter() - begin_s)
        return min(issue_times_s), min(finish_times_s)

    def _time_calls_s(self, calls: Sequence[OperationCall], call_count: int) -> float:
        self._cuda_stream.synchronize()
        begin_s = time.perf_counter()
        for call in itertools.islice(itertools.cycle(calls), call_count):
            call()
        self._cuda_stream.synchronize()
        return max(1e-7, (time.perf_counter() - begin_s) / call_count)

    def _run_for_duration(
        self,
        next_call: Callable[[], OperationCall],
        calls_per_replay: int,
        active_s: float,
        call_s: float,
        launch_mode: str,
    ) -> RunResult:
        event_type = self.torch.cuda.Event
        begin_event, end_event, repetition_count = (
            event_type(enable_timing=True),
            event_type(enable_timing=True),
            max(1, round(active_s / call_s / calls_per_replay)),
        )
        self._cuda_stream.synchronize()
        begin_ns = time.monotonic_ns()
        begin_event.record(self._cuda_stream)
        for _ in range(repetition_count):
            next_call()()
        end_event.record(self._cuda_stream)
        state = self._read_state_near_end(begin_ns, active_s)
        self._cuda_stream.synchronize()
        end_ns = time.monotonic_ns()
        time_s = begin_event.elapsed_time(end_event) * 1e-3 / (repetition_count * calls_per_replay)
        return RunResult(begin_ns, end_ns, repetition_count * calls_per_replay, time_s, time_s, launch_mode, state)

    def _read_state_near_end(self, begin_ns: int, active_s: float) -> GpuState:
        """Reads clocks and limits late in the run: they change within tens of milliseconds."""
        time.sleep(max(0.0, STATE_READ_TIME_SHARE * active_s - (time.monotonic_ns() - begin_ns) * 1e-9))
        return self._read_state()

    def _make_graph(self, calls: Sequence[OperationCall], call_count: int) -> Any:
        if self._memory_pool_graph is None:
            self._memory_pool_graph = self.torch.cuda.CUDAGraph()
            self._capture_graph(
                self._memory_pool_graph, [lambda: self._small_tensor + 1], 1, self.torch.cuda.graph_pool_handle()
            )
        graph = self.torch.cuda.CUDAGraph()
        self._capture_graph(graph, calls, call_count, self._memory_pool_graph.pool())
        return graph

    def _capture_graph(self, graph: Any, calls: Sequence[OperationCall], call_count: int, memory_pool: Any) -> None:
        """Captures like torch.cuda.graph, but without garbage collection and emptying caches: those take longer than
        a row."""
        self._cuda_stream.synchronize()
        graph.capture_begin(pool=memory_pool, capture_error_mode="thread_local")
        try:
            for call in itertools.islice(itertools.cycle(calls), call_count):
                call()
        finally:
            graph.capture_end()

    def release_memory(self) -> None:
        if self.torch.cuda.memory_reserved() > MAX_RESERVED_BYTES:
            self._memory_pool_graph = None
            self.torch.cuda.empty_cache()


class CpuRunner:
    """Runs calls on the CPU, to test the collector without a GPU."""

    device = "cpu"

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def allocate_calls(self, make_calls: Callable[[], Any]) -> Any:
        return make_calls()

    def run_network(self, call: OperationCall, active_s: float, min_calls: int) -> RunResult:
        del min_calls
        return self.run_calls([call], active_s, False)

    def run_calls(self, calls: Sequence[OperationCall], active_s: float, in_graph: bool) -> RunResult:
        del in_graph
        calls[0]()
        begin_ns, finished_calls = time.monotonic_ns(), 0
        for call in itertools.cycle(calls):
            call()
            finished_calls += 1
            if time.monotonic_ns() - begin_ns >= active_s * 1e9:
                break
        end_ns = time.monotonic_ns()
        time_s = (end_ns - begin_ns) * 1e-9 / finished_calls
        return RunResult(begin_ns, end_ns, finished_calls, time_s, time_s, "eager", GpuState(None, None, None))

    def release_memory(self) -> None:
        pass
