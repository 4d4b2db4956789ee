#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs kinds of GPU work alone and then mixed at random: the reference for attribution. mixtures.py starts it under
record.

    mixture_load.py --kinds A|B --seed N --truth-s S --mix-s S --out truth.json

Alone: a kind alternates with one other kind and with idle time, in bursts as long as those of the mixture. Temperature
and power limit then have the same effect as in the mixture (a GPU that has just worked has a higher idle power). The
energy counter is read directly at its updates. These measurements run before and after the mixture, to show drift.
Each kind is a region of the recording: "KIND" in the mixture and "KIND alone". Tiny kernels run in CUDA graphs of a
thousand: launched one by one they would leave the GPU idle most of the time.
"""

from __future__ import annotations

import argparse
import json
import random
import time

import joulemap as jm
import torch
from gpu_load import EnergyCounter
from torch.nn import functional as F

MIN_BURST_S, MAX_BURST_S = 0.002, 0.06
IDLE_SHARE = 0.1
COMPANION_KERNEL = "add"


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def capture_cuda_graph(call):
    """Captures a thousand calls into one CUDA graph. Its kernels belong to the region of the launch, like all
    kernels."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(1000):
            call()
    return graph.replay


def make_kernel_set_a() -> dict:
    big, bf16_matrix, fp32_matrix = randn(64 << 20), randn(8192, 8192, dtype=torch.bfloat16), randn(4096, 4096)
    rows, small_matrix, output_vector = randn(16384, 4096), randn(128, 128), torch.empty(64 << 20, device="cuda")
    image, weight = randn(32, 128, 56, 56), randn(128, 128, 3, 3)
    table, tokens = randn(50000, 1024), torch.randint(0, 50000, (32768,), device="cuda")
    half_out, wide_out, small_out = (
        torch.empty_like(bf16_matrix),
        torch.empty_like(fp32_matrix),
        torch.empty_like(small_matrix),
    )
    layernorm_gain = randn(4096)
    return {
        "gemm-bf16": lambda: torch.mm(bf16_matrix, bf16_matrix, out=half_out),
        "gemm-fp32": lambda: torch.mm(fp32_matrix, fp32_matrix, out=wide_out),
        "add": lambda: torch.add(big, 1.0, out=output_vector),
        "exp": lambda: torch.exp(big, out=output_vector),
        "conv": lambda: F.conv2d(image, weight, padding=1),
        "softmax": lambda: torch.softmax(rows, 1),
        "layernorm": lambda: F.layer_norm(rows, (4096,), layernorm_gain, layernorm_gain),
        "tiny-gemm": capture_cuda_graph(lambda: torch.mm(small_matrix, small_matrix, out=small_out)),
        "embedding": lambda: F.embedding(tokens, table),
        "copy": lambda: output_vector.copy_(big),
        "sum": lambda: big.sum(),
        "tiny-add": capture_cuda_graph(lambda: torch.add(small_matrix, 1.0, out=small_out)),
    }


def make_kernel_set_b() -> dict:
    big, fp16_matrix, rows = randn(64 << 20), randn(4096, 4096, dtype=torch.float16), randn(8192, 8192)
    attention_tensor = randn(16, 12, 512, 64, dtype=torch.bfloat16)
    image, depthwise, pointwise_weight = randn(32, 256, 56, 56), randn(256, 1, 3, 3), randn(64, 256, 1, 1)
    out, half_out, batchnorm_gain = torch.empty_like(big), torch.empty_like(fp16_matrix), randn(256)
    index = torch.randint(0, 32 << 20, (8 << 20,), device="cuda")
    batch = randn(64, 256, 256, dtype=torch.bfloat16)
    batch_out, line = torch.empty_like(batch), randn(4096)
    return {
        "add": lambda: torch.add(big, 1.0, out=out),
        "gemm-fp16": lambda: torch.mm(fp16_matrix, fp16_matrix, out=half_out),
        "attention": lambda: F.scaled_dot_product_attention(attention_tensor, attention_tensor, attention_tensor),
        "conv-depthwise": lambda: F.conv2d(image, depthwise, padding=1, groups=256),
        "conv-1x1": lambda: F.conv2d(image, pointwise_weight),
        "batchnorm": lambda: F.batch_norm(image, None, None, batchnorm_gain, batchnorm_gain, training=True),
        "maxpool": lambda: F.max_pool2d(image, 3, 2, 1),
        "gelu": lambda: F.gelu(big),
        "transpose": lambda: rows.t().contiguous(),
        "cumsum": lambda: torch.cumsum(rows, 1),
        "gather": lambda: torch.index_select(big, 0, index),
        "bmm": lambda: torch.bmm(batch, batch, out=batch_out),
        "fill": lambda: out.zero_(),
        "tiny-relu": capture_cuda_graph(lambda: torch.relu(line)),
    }


class MixtureLoad:
    def __init__(self, kinds: dict, seed: int) -> None:
        self.kinds, self.random, self.counter = kinds, random.Random(seed), EnergyCounter()
        self.calls: dict[str, int] = {}  # number of calls by region
        self.call_s = {name: self._measure_call_s(call) for name, call in kinds.items()}

    def _measure_call_s(self, call) -> float:
        """Mean time of a call when calls run back to back, s. For tiny kernels it is the time of a launch."""
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        begin = time.monotonic()
        for _ in range(50):
            call()
        torch.cuda.synchronize()
        return (time.monotonic() - begin) / 50

    def burst(self, name: str, length_s: float, region: str = "") -> None:
        call = self.kinds[name]
        calls = max(1, round(length_s / self.call_s[name]))
        with jm.region(region or name):
            for _ in range(calls):
                call()
        torch.cuda.synchronize()
        self.calls[region or name] = self.calls.get(region or name, 0) + calls

    def measure_with_companion(self, name: str | None, length_s: float) -> dict:
        """Measures bursts of a kind, of the companion kind and idle time in random order, between two updates of the
        counter. `name` None measures idle time beside the companion; the companion's own name measures the companion
        alone."""
        begin_calls = dict(self.calls)
        self._run_turns_until(name, time.monotonic() + 0.25)
        begin, inside_calls = self._find_counter_step(name), dict(self.calls)
        self._run_turns_until(name, time.monotonic() + length_s)
        end = self._find_counter_step(name)
        entry = {"kind": name, "begin_ns": begin[1], "end_ns": end[1], "joules": (end[2] - begin[2]) * 1e-3}
        since = lambda calls: {region: count - calls.get(region, 0) for region, count in self.calls.items()}  # noqa: E731
        return {**entry, "calls": since(inside_calls), "all_calls": since(begin_calls)}

    def _run_turn(self, name: str | None, length_s: float) -> None:
        if name is None:
            time.sleep(length_s)
        else:
            self.burst(name, length_s, f"{name} alone")

    def _run_turns_until(self, name: str | None, end_s: float) -> None:
        while time.monotonic() < end_s:
            kernel_names = [name, COMPANION_KERNEL, None]
            self.random.shuffle(kernel_names)
            for kernel_name in kernel_names:
                self._run_turn(kernel_name, self.random.uniform(MIN_BURST_S, MAX_BURST_S))

    def _find_counter_step(self, name: str | None) -> tuple[int, int, int]:
        """Waits for an update of the counter while the load continues."""
        last_ns, previous_energy_mj = time.monotonic_ns(), self.counter.read_energy_mj()
        while True:
            self._run_turn(name, MIN_BURST_S)
            self._run_turn(COMPANION_KERNEL, MIN_BURST_S)
            now_ns = time.monotonic_ns()
            value = self.counter.read_energy_mj()
            if value != previous_energy_mj:
                return last_ns, (now_ns + time.monotonic_ns()) // 2, value
            last_ns, previous_energy_mj = now_ns, value

    def run_mixture(self, length_s: float) -> dict:
        begin_ns = time.monotonic_ns()
        names = sorted(self.kinds)
        while time.monotonic_ns() - begin_ns < length_s * 1e9:
            burst_s = self.random.uniform(MIN_BURST_S, MAX_BURST_S)
            if self.random.random() < IDLE_SHARE:
                time.sleep(burst_s)
            else:
                self.burst(self.random.choice(names), burst_s)
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kinds", choices=["A", "B"], default="A")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--truth-s", type=float, default=2)
    parser.add_argument("--mix-s", type=float, default=80)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with torch.no_grad():
        load = MixtureLoad({"A": make_kernel_set_a, "B": make_kernel_set_b}[options.kinds](), options.seed)
        load.run_mixture(3)  # warm-up
        order = [None, *load.kinds]
        truth = [load.measure_with_companion(name, options.truth_s) for name in order]
        run_mixture = load.run_mixture(options.mix_s)
        truth += [load.measure_with_companion(name, options.truth_s) for name in reversed(order)]
    with open(options.out, "w") as file:
        json.dump({"kinds": options.kinds, "seed": options.seed, "truth": truth, "mixture": run_mixture}, file)


if __name__ == "__main__":
    main()
