# SPDX-License-Identifier: Apache-2.0
"""Runs one operation over and over for a fraction of a second, on a GPU by CUDA graphs, so that launches do not
bound it.

A `Runner` prepares (a first call, how long one takes, a graph of many) and then runs; what it gives is when it ran,
how often, and how long a call took. Eager calls are timed beside it: what a program without graphs waits for.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Any, Callable, NamedTuple, Optional, Sequence

from .host import Host
from .power import State
from .rows import AHEAD
from .windows import run_windows, told_by

Call = Callable[[], Any]

# A call that takes longer is queued by itself: its launch does not matter.
GRAPH_BELOW_S = 0.001
# Of eager calls in one graph; more would take long to capture.
GRAPH_S = 0.004
MOST_IN_GRAPH = 256
# Of the time that a row runs.
STATE_AT = 0.7
ISSUES = 4
ISSUES_S = 0.1
ISSUED_BELOW_S = 0.02
# Memory that is cached and belongs to no row, beyond which it is given back.
MOST_RESERVED = 60e9


class NotCapturable(Exception):
    """What waits for the GPU cannot be captured. PyTorch's memory is in no state to go on with: begin a new process."""


class Run(NamedTuple):
    begin_ns: int
    end_ns: int
    calls: int
    time_s: float  # of a call
    eager_s: float  # of a call that Python makes, as fast as it can
    way: str  # "graph" or "eager"
    state: State
    issue_s: Optional[float] = None  # of a network: that the host needs for a call when it waits for nothing
    launch_s: Optional[float] = None  # of a launch beside it
    quiet_windows: Optional[int] = None  # of a network that waits for its host: those that found it left alone


class CudaRunner:
    """One stream, one device. Graphs share a pool of memory that `_keeper` keeps: only one of them is alive at a time."""

    device = "cuda"

    def __init__(self, torch: Any, read_state: Callable[[], State]) -> None:
        self.torch, self._read_state = torch, read_state
        self._stream = torch.cuda.Stream()
        self._keeper: Optional[Any] = None
        self._host: Optional[Host] = None
        self._some = torch.zeros(8, device="cuda") + 1  # so that this kernel is loaded before it is captured
        torch.cuda.synchronize()

    def prepared(self, make: Callable[[], Any]) -> Any:
        """Tensors are made on the stream that uses them."""
        with self.torch.cuda.stream(self._stream):
            return make()

    def run(self, calls: Sequence[Call], active_s: float, in_graph: bool) -> Run:
        with self.torch.cuda.stream(self._stream):
            return self._run(calls, active_s, in_graph)

    def _run(self, calls: Sequence[Call], active_s: float, in_graph: bool) -> Run:
        for call in calls[:2]:
            call()
        call()
        # The faster of two: what is loaded at a first call makes it seem too long for a graph.
        one_s = min(self._timed_s(calls, 1) for _ in range(2))
        eager_s = self._timed_s(calls, max(1, min(20, int(0.003 / one_s)))) if one_s < 0.003 else one_s
        if not in_graph or eager_s >= GRAPH_BELOW_S:
            run = self._active(itertools.cycle(calls).__next__, 1, active_s, eager_s, "eager")
            # What launches many kernels in one call may wait for the host.
            return run if in_graph or eager_s > ISSUED_BELOW_S else run._replace(issue_s=self._issued_s(calls[0])[0])
        each = max(4, min(MOST_IN_GRAPH, math.ceil(GRAPH_S / eager_s)))
        each = math.ceil(each / len(calls)) * len(calls)
        try:
            graph = self._captured(calls, each)
        except RuntimeError as error:
            raise NotCapturable(str(error)) from error
        graph.replay()
        replay_s = self._timed_s([graph.replay], 2)
        return self._active(lambda: graph.replay, each, active_s, replay_s / each, "graph")._replace(eager_s=eager_s)

    def run_network(self, call: Call, active_s: float, least: int) -> Run:
        """Where the host sets the time, while it is left alone."""
        with self.torch.cuda.stream(self._stream):
            for _ in range(3):
                call()
            if self._host is None:
                self._host = Host(lambda: self._some.add_(1), self._stream.synchronize)
            launch_s = self._host.find_quiet()
            issue_s, one_s = self._issued_s(call)
            active_s = max(active_s, least * one_s)
            if issue_s >= AHEAD * one_s:
                return self._run_windows(call, active_s, one_s)._replace(issue_s=issue_s)
            run = self._active(lambda: call, 1, active_s, one_s, "eager")
            if issue_s >= AHEAD * run.time_s:  # a call after another takes less than one by itself
                return self._run_windows(call, active_s, run.time_s)._replace(issue_s=issue_s)
            return run._replace(issue_s=issue_s, launch_s=max(launch_s, self._host.launch_s()))

    def _run_windows(self, call: Call, active_s: float, step_s: float) -> Run:
        self._stream.synchronize()
        begin_ns = time.monotonic_ns()
        windows, steps = run_windows(self._host, lambda count: self._window_s(call, count), step_s, active_s)
        state, end_ns = self._read_state(), time.monotonic_ns()
        steady = told_by(windows, self._host.quickest_s)
        return Run(
            begin_ns, end_ns, steps, steady.time_s, steady.time_s, "eager", state,
            launch_s=steady.launch_s, quiet_windows=steady.quiet,
        )  # fmt: skip

    def _window_s(self, call: Call, count: int) -> float:
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        call()
        begin.record(self._stream)
        for _ in range(count):
            call()
        end.record(self._stream)
        self._stream.synchronize()
        return begin.elapsed_time(end) * 1e-3

    def _issued_s(self, call: Call) -> tuple[float, float]:
        """Until a call returns, and until the GPU has done it; the fastest of a few."""
        issued, done = [], []
        while len(done) < ISSUES and sum(done) < ISSUES_S:
            self._stream.synchronize()
            begin = time.perf_counter()
            call()
            issued.append(time.perf_counter() - begin)
            self._stream.synchronize()
            done.append(time.perf_counter() - begin)
        return min(issued), min(done)

    def _timed_s(self, calls: Sequence[Call], count: int) -> float:
        self._stream.synchronize()
        begin = time.perf_counter()
        for call in itertools.islice(itertools.cycle(calls), count):
            call()
        self._stream.synchronize()
        return max(1e-7, (time.perf_counter() - begin) / count)

    def _active(self, next_call: Callable[[], Call], each: int, active_s: float, call_s: float, way: str) -> Run:
        event = self.torch.cuda.Event
        begin, end, times = (
            event(enable_timing=True),
            event(enable_timing=True),
            max(1, round(active_s / call_s / each)),
        )
        self._stream.synchronize()
        begin_ns = time.monotonic_ns()
        begin.record(self._stream)
        for _ in range(times):
            next_call()()
        end.record(self._stream)
        state = self._late_state(begin_ns, active_s)
        self._stream.synchronize()
        end_ns = time.monotonic_ns()
        time_s = begin.elapsed_time(end) * 1e-3 / (times * each)
        return Run(begin_ns, end_ns, times * each, time_s, time_s, way, state)

    def _late_state(self, begin_ns: int, active_s: float) -> State:
        """Clocks and limits are asked for late: they change within tens of milliseconds."""
        time.sleep(max(0.0, STATE_AT * active_s - (time.monotonic_ns() - begin_ns) * 1e-9))
        return self._read_state()

    def _captured(self, calls: Sequence[Call], count: int) -> Any:
        if self._keeper is None:
            self._keeper = self.torch.cuda.CUDAGraph()
            self._capture(self._keeper, [lambda: self._some + 1], 1, self.torch.cuda.graph_pool_handle())
        graph = self.torch.cuda.CUDAGraph()
        self._capture(graph, calls, count, self._keeper.pool())
        return graph

    def _capture(self, graph: Any, calls: Sequence[Call], count: int, pool: Any) -> None:
        """As torch.cuda.graph does it, but without collecting garbage and emptying caches: that takes longer than a row."""
        self._stream.synchronize()
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            for call in itertools.islice(itertools.cycle(calls), count):
                call()
        finally:
            graph.capture_end()

    def tidy(self) -> None:
        if self.torch.cuda.memory_reserved() > MOST_RESERVED:
            self._keeper = None
            self.torch.cuda.empty_cache()


class CpuRunner:
    """For trying the collector where there is no GPU."""

    device = "cpu"

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def prepared(self, make: Callable[[], Any]) -> Any:
        return make()

    def run_network(self, call: Call, active_s: float, least: int) -> Run:
        del least
        return self.run([call], active_s, False)

    def run(self, calls: Sequence[Call], active_s: float, in_graph: bool) -> Run:
        del in_graph
        calls[0]()
        begin_ns, done = time.monotonic_ns(), 0
        for call in itertools.cycle(calls):
            call()
            done += 1
            if time.monotonic_ns() - begin_ns >= active_s * 1e9:
                break
        end_ns = time.monotonic_ns()
        time_s = (end_ns - begin_ns) * 1e-9 / done
        return Run(begin_ns, end_ns, done, time_s, time_s, "eager", State(None, None, None))

    def tidy(self) -> None:
        pass
