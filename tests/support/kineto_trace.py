"""Synthetic traces of PyTorch's profiler: by default two steps of a training on a GPU, in microseconds."""

from __future__ import annotations

import json
from pathlib import Path

BASE_NS = 1_735_632_360_000_000_000
START_US = 5_000_000


class KinetoTrace:
    """Event times are relative to the start of the trace, in microseconds."""

    def __init__(self, pid: int = 100, device: int = 0) -> None:
        self.pid, self.device, self.events, self._correlation = pid, device, [], 0
        self.rank: int | None = None  # in a distributed run

    def add(self, category: str, name: str, start: float, length: float, tid: int = 1, **args: object) -> None:
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": self.pid, "tid": tid,
                            "ts": START_US + start, "dur": length, "args": args})  # fmt: skip

    def launch(self, start: float, tid: int = 1) -> int:
        self._correlation += 1
        self.add("cuda_runtime", "cudaLaunchKernel", start, 2, tid, correlation=self._correlation)
        return self._correlation

    def kernel(self, name: str, start: float, length: float, correlation: int) -> None:
        self.events.append({"ph": "X", "cat": "kernel", "name": name, "pid": self.device, "tid": 7,
                            "ts": START_US + start, "dur": length,
                            "args": {"device": self.device, "stream": 7, "context": 1, "correlation": correlation,
                                     "grid": [1, 1, 1], "block": [32, 1, 1]}})  # fmt: skip

    def write(self, path: Path) -> Path:
        distributed = {} if self.rank is None else {"distributedInfo": {"backend": "nccl", "rank": self.rank}}
        path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "baseTimeNanoseconds": BASE_NS,
                                    **distributed, "traceEvents": self.events}))  # fmt: skip
        return path


def training(steps: int = 2, step_us: float = 500_000, device: int = 0, pid: int = 100) -> KinetoTrace:
    """Each step: forward pass of Net's one layer, backward pass on its own thread, optimizer; kernels fill half."""
    trace = KinetoTrace(pid, device)
    for step in range(steps):
        begin = step * step_us
        time_in_step_us = lambda share: begin + share * step_us  # noqa: E731
        trace.add("user_annotation", f"ProfilerStep#{step}", begin, step_us)
        trace.add("python_function", "nn.Module: Net_0", time_in_step_us(0.1), 0.2 * step_us)
        trace.add("python_function", "nn.Module: Linear_0", time_in_step_us(0.12), 0.1 * step_us)
        trace.add("cpu_op", "aten::linear", time_in_step_us(0.13), 0.05 * step_us, **{"Sequence number": step})
        forward = trace.launch(time_in_step_us(0.14))
        trace.add("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", time_in_step_us(0.4), 0.2 * step_us, 2,
                  **{"Sequence number": step, "Fwd thread id": 1})  # fmt: skip
        backward = trace.launch(time_in_step_us(0.45), 2)
        trace.add("user_annotation", "Optimizer.step#SGD.step", time_in_step_us(0.7), 0.1 * step_us)
        trace.kernel("gemm", time_in_step_us(0.2), 0.2 * step_us, forward)
        trace.kernel("gemm_backward", time_in_step_us(0.5), 0.3 * step_us, backward)
    return trace


def begin_ns() -> int:
    return BASE_NS + START_US * 1000
