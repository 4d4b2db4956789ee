# SPDX-License-Identifier: Apache-2.0
"""Generates a profile as JAX's profiler writes it on a machine with a GPU, of any size: kernels with a dozen values
each, launching calls, Python functions, instructions on the CPU. Encodes the wire format of protocol buffers
directly."""

from __future__ import annotations

from pathlib import Path

KERNEL_STAT_NAMES = (
    "correlation_id",
    "context_id",
    "theoretical_occupancy_pct",
    "occupancy_min_grid_size",
    "occupancy_suggested_block_size",
    "kernel_details",
    "tf_op",
    "name",
    "hlo_op",
    "unique_hlo_op_id",
    "hlo_module",
    "program_id",
)
KERNEL_DETAILS = "regs:{} static_shared:0 dynamic_shared:16384 grid:{},1,1 block:128,1,1 occ_pct:43.75"


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def number_field(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def bytes_field(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


class Plane:
    """One plane; strings are stored once and referenced, as in the profiler's output."""

    def __init__(self, name: str) -> None:
        self.lines: list[bytes] = []
        self._name = name
        self._events: dict[str, int] = {}
        self._texts: dict[str, int] = {}

    def event(self, name: str, begin_ns: int, time_ns: int, values: bytes = b"") -> bytes:
        identity = self._events.setdefault(name, len(self._events) + 1)
        return bytes_field(
            4, number_field(1, identity) + number_field(2, begin_ns * 1000) + number_field(3, time_ns * 1000) + values
        )

    def value(self, key: str, value: int | str) -> bytes:
        kind = number_field(7, self._text(value)) if isinstance(value, str) else number_field(4, value)
        return bytes_field(4, number_field(1, self._text(key)) + kind)

    def line(self, identity: int, name: str, events: list[bytes]) -> None:
        self.lines.append(
            bytes_field(3, number_field(1, identity) + bytes_field(2, name) + number_field(3, 9000) + b"".join(events))
        )

    def bytes(self) -> bytes:
        names = [
            bytes_field(4, number_field(1, i) + bytes_field(2, number_field(1, i) + bytes_field(2, name)))
            for name, i in self._events.items()
        ]
        texts = [
            bytes_field(5, number_field(1, i) + bytes_field(2, number_field(1, i) + bytes_field(2, text)))
            for text, i in self._texts.items()
        ]
        return bytes_field(1, bytes_field(2, self._name) + b"".join(self.lines + names + texts))

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts) + 1)


def gpu_plane(kernels: int) -> bytes:
    plane = Plane("/device:GPU:0")
    events = []
    for i in range(kernels):
        layer = i % 240
        kernel_stat_values = (
            i + 1,
            "$$1",
            44,
            264,
            1024,
            KERNEL_DETAILS.format(16 + layer % 96, layer),
            "XlaModule:",
            f"jit(step)/jvp(Net)/block_{layer}/Dense_0/dot_general",
            f"gemm_fusion_dot.{layer}",
            115964117000 + layer,
            "jit_step",
            10605,
        )
        values = b"".join(plane.value(key, value) for key, value in zip(KERNEL_STAT_NAMES, kernel_stat_values))
        events.append(plane.event(f"gemm_fusion_dot_{layer}", 5000 * i, 4000, values))
    plane.line(14, "Stream #14(Compute)", events)
    plane.line(99, "XLA Ops", events[: kernels // 4])  # a derived line, as profile viewers add
    return plane.bytes()


def host_plane(calls: int) -> bytes:
    plane = Plane("/host:CPU")
    python, pool = [], []
    for i in range(calls):
        launch = plane.value("device_id", 0) + plane.value("correlation_id", i + 1) + plane.value("context_id", "$$1")
        python.append(plane.event("cuLaunchKernelEx", 5000 * i, 900, launch))
        for depth in range(12):
            python.append(
                plane.event(f"$file_{depth}.py:{i % 300} function_{i % 300}", 5000 * i + depth, 4900 - 2 * depth)
            )
        producer_stats = plane.value("_pt", 15) + plane.value("_p", i)
        for name in ("Record", "StartRegion", "StopRegion"):
            pool.append(plane.event(f"ThreadpoolListener::{name}", 5000 * i, 0, producer_stats))
        run = plane.value("hlo_op", f"fusion.{i % 240}") + plane.value("hlo_module", "jit_step")
        run += plane.value("program_id", 7)
        pool.append(plane.event(f"fusion.{i % 240}", 5000 * i, 3000, run))
    plane.line(1, "python", python)
    plane.line(2, "tf_XLAEigen/2", pool)
    return plane.bytes()


def write_profile(path: Path, kernels: int, calls: int) -> None:
    path.write_bytes(gpu_plane(kernels) + host_plane(calls))
