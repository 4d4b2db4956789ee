# SPDX-License-Identifier: Apache-2.0
"""Generates a trace in the format of PyTorch's profiler, of any size: training steps with operations and their shapes,
Python functions and modules, runtime calls, kernels, copies and flows, in the mix of real traces. The same seed gives
the same bytes.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Iterator

PROCESS_ID = 461
AUTOGRAD_THREAD = 487
OPERATOR_NAMES = [
    "aten::conv2d",
    "aten::_convolution",
    "aten::cudnn_convolution",
    "aten::batch_norm",
    "aten::relu_",
    "aten::add_",
    "aten::empty_like",
    "aten::addmm",
    "aten::copy_",
    "aten::max_pool2d",
]
NODE_NAMES = ["ConvolutionBackward0", "CudnnBatchNormBackward0", "ReluBackward0", "AddmmBackward0"]
KERNEL_NAMES = [
    "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>"
    "(cudnn::engines_precompiled::nchw2nhwc_params_t<float>, float const*, float*)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)",
    "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda()#7}::operator()() const::{lambda(float)#1}>"
    "(at::TensorIteratorBase&, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&))>(int)",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
]
HEADER = """
{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150109880320,
      "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }
  ],
  "with_stack": 1,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1790857026000000000,
  "traceEvents": [
"""


class TraceMaker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ns = 3_845_405_596_490_532
        self.index = 0
        self.correlation = 11

    def _format_time_us(self, ns: int) -> str:
        return f"{ns // 1000}.{ns % 1000:03}"

    def _complete_event(
        self, category: str, name: str, tid: int, start_ns: int, duration_ns: int, args: str, pid=PROCESS_ID
    ) -> str:
        return (
            f'  {{\n    "ph": "X", "cat": "{category}", "name": "{name}", "pid": {pid}, "tid": {tid},\n'
            f'    "ts": {self._format_time_us(start_ns)}, "dur": {self._format_time_us(duration_ns)},\n'
            f'    "args": {{\n      {args}\n    }}\n  }}'
        )

    def _flow_event(self, phase: str, pid: int, tid: int, number: int, start_ns: int) -> str:
        end = ', "bp": "e"' if phase == "f" else ""
        return (
            f'  {{\n    "ph": "{phase}", "id": {number}, "pid": {pid}, "tid": {tid},\n'
            f'    "ts": {self._format_time_us(start_ns)}, "cat": "ac2g", "name": "ac2g"{end}\n  }}'
        )

    def _launch(self, tid: int) -> Iterator[str]:
        """Yields a runtime call, the kernel that it launches, and the flow between them."""
        self.correlation += self.random.choice((1, 2, 5))
        number, start_ns = self.correlation, self.now_ns
        launch_id_fields = f'"External id": {self.index}, "cbid": 211, "correlation": {number}'
        yield self._complete_event(
            "cuda_runtime", "cudaLaunchKernel", tid, start_ns, self.random.randrange(3000, 9000), launch_id_fields
        )
        yield self._flow_event("s", PROCESS_ID, tid, number, start_ns)
        begin_ns, duration_ns = start_ns + 40_000, self.random.randrange(1500, 400_000)
        queue = f'"device": 0, "context": 1, "stream": 7, "correlation": {number}'
        if self.random.random() < 0.1:
            args = (
                f'"External id": {self.index}, {queue}, "bytes": {4 << number % 20}, "memory bandwidth (GB/s)": 0.005'
            )
            yield self._complete_event("gpu_memset", "Memset (Device)", 7, begin_ns, duration_ns, args, pid=0)
        else:
            grid = self.random.choice((1, 64, 2048, 12544))
            args = (
                f'"External id": {self.index}, "queued": 0, {queue},\n      "registers per thread": 32,\n'
                f'      "shared memory": 4224,\n      "blocks per SM": 760.242432,\n      "warps per SM": 6081.939453,\n'
                f'      "grid": [{grid}, 1, 1],\n      "block": [256, 1, 1],\n      "est. achieved occupancy %": 62'
            )
            yield self._complete_event(
                "kernel", self.random.choice(KERNEL_NAMES), 7, begin_ns, duration_ns, args, pid=0
            )
        yield self._flow_event("f", 0, 7, number, begin_ns)

    def _operation_events(self, step: int) -> Iterator[str]:
        self.index += 1
        self.now_ns += self.random.randrange(2_000, 30_000)
        is_backward = self.random.random() < 0.3
        tid = AUTOGRAD_THREAD if is_backward else PROCESS_ID
        name = self.random.choice(NODE_NAMES if is_backward else OPERATOR_NAMES)
        sequence = f'"Sequence number": {4000 + self.index}, "Fwd thread id": {int(is_backward)}, '
        if not is_backward and self.index % 3 != 0:
            sequence = ""
        n = self.random.choice((32, 64, 256))
        shapes = (
            '"Concrete Inputs": ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "1"], '
            '"Input type": ["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"], '
            f'"Input Strides": [[{n * 3136}, 3136, 56, 1], [{n * 9}, 9, 3, 1], [], [], [], [], []], '
            f'"Input Dims": [[32, {n}, 56, 56], [{n}, {n}, 3, 3], [], [], [], [], []], '
        )
        args = f'"External id": {self.index},{sequence}"Record function id": 0, {shapes}"Ev Idx": {self.index}'
        yield self._complete_event("cpu_op", name, tid, self.now_ns, self.random.randrange(5_000, 90_000), args)
        module = f"nn.Module: Conv2d_{self.index % 53}"
        for depth, function in enumerate((f"torch/nn/modules/module.py({1700 + self.index % 90}): _call_impl", module)):
            args = f'"Python parent id": {self.index}, "Python id": {self.index + depth}, "Ev Idx": {self.index}'
            yield self._complete_event("python_function", function, PROCESS_ID, self.now_ns, 95_000, args)
        yield from self._launch(tid)
        if self.index % 500 == 1:
            name = f"ProfilerStep#{step}"
            yield self._complete_event("user_annotation", name, PROCESS_ID, self.now_ns, 40_000_000, '"External id": 1')

    def events(self) -> Iterator[str]:
        step = 0
        while True:
            step += 1
            for _ in range(500):
                yield from self._operation_events(step)


def write_trace(path: Path, size: int, seed: int = 1) -> None:
    """Writes at least `size` bytes."""
    maker = TraceMaker(seed)
    with path.open("w") as out:
        written_size = out.write(HEADER)
        for event in maker.events():
            if written_size >= size:
                break
            written_size += out.write(event + ",\n")
        out.write('  {\n    "name": "Record Window End", "ph": "i", "s": "g",\n')
        out.write('    "pid": "", "tid": "", "ts": 3845405773131.261\n  }\n')
        out.write('  ],\n  "traceName": "bench.json"\n}\n')
