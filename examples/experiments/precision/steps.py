# SPDX-License-Identifier: Apache-2.0
"""A training step and an inference pass in a precision (fp32, tf32, bf16, fp16) and an execution (eager, compiled,
cuda-graphs)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from networks import Task
from torch import nn

LEARNING_RATE = 1e-4
GRAPH_WARM_UP_CALLS = 3  # before the capture of a CUDA graph
AUTOCAST_TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
Call = Callable[[], torch.Tensor]


def select_matmul_precision(precision: str) -> None:
    """TF32 for matrix products and convolutions, or for neither. bf16 and fp16 leave their fp32 operations in fp32."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def autocast(device: torch.device, precision: str, execution: str) -> AbstractContextManager:
    if precision not in AUTOCAST_TYPES:
        return nullcontext()
    # A graph must cast the weights in each replay: a cast that was cached before the capture would keep old weights.
    is_cached = execution != "cuda-graphs"
    return torch.autocast(device.type, dtype=AUTOCAST_TYPES[precision], cache_enabled=is_cached)


def capture_graph(compute: Call) -> Call:
    """Records the kernels of `compute`. The returned function launches them again, on the same memory."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(GRAPH_WARM_UP_CALLS):
            compute()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compute()

    def replay() -> torch.Tensor:
        graph.replay()
        return result

    return replay


def make_training_step(task: Task, device: torch.device, precision: str, execution: str) -> Call:
    """A function that trains one step and returns the loss. A CUDA graph contains all but the optimizer."""
    task.network.train()
    network = torch.compile(task.network) if execution == "compiled" else task.network
    optimizer = torch.optim.AdamW(task.network.parameters(), lr=LEARNING_RATE, fused=True)
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")

    def compute_gradients() -> torch.Tensor:
        optimizer.zero_grad()
        with autocast(device, precision, execution):
            loss = nn.functional.cross_entropy(network(task.inputs), task.targets)
        scaler.scale(loss).backward()
        return loss.detach()

    gradients = capture_graph(compute_gradients) if execution == "cuda-graphs" else compute_gradients

    def train_step() -> torch.Tensor:
        loss = gradients()
        scaler.step(optimizer)
        scaler.update()
        return loss

    return train_step


def make_inference_pass(task: Task, device: torch.device, precision: str, execution: str) -> Call:
    """A function that returns the scores of the batch."""
    task.network.eval()
    network = torch.compile(task.network) if execution == "compiled" else task.network

    def infer() -> torch.Tensor:
        with torch.no_grad(), autocast(device, precision, execution):
            return network(task.inputs)

    return capture_graph(infer) if execution == "cuda-graphs" else infer
