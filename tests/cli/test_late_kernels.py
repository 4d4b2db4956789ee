"""A program that already uses a GPU when recording starts, and records twice: with the fake CUPTI and the fake NVML."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from fake_nvml.truth import FakeGpu, FakeNvml

GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # UUID that the fake CUPTI reports

# The first members of the control structure in tests/fake_cupti/fake_cupti.h.
PROGRAM = """
import ctypes, json, os, sys, time
import joulemap as jm
from joulemap._recorder import Recorder

class Launch(ctypes.Structure):
    _fields_ = [("work", ctypes.c_uint8), ("name", ctypes.c_char_p), ("grid", ctypes.c_uint32 * 3),
                ("block", ctypes.c_uint32 * 3), ("device", ctypes.c_uint32), ("stream", ctypes.c_uint32),
                ("duration_ns", ctypes.c_int64), ("bytes", ctypes.c_uint64), ("copy_kind", ctypes.c_uint8),
                ("graph_node", ctypes.c_uint64), ("correlation", ctypes.c_uint32), ("keeps_running", ctypes.c_bool)]

class Levers(ctypes.Structure):
    _fields_ = [("reset", ctypes.CFUNCTYPE(None, ctypes.c_uint32)),
                ("launch", ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.POINTER(Launch)))]

fake = ctypes.CDLL(os.environ["JOULEMAP_CUPTI"])
fake.fake_cupti.restype = ctypes.POINTER(Levers)
levers = fake.fake_cupti().contents
levers.reset(130001)
driver = ctypes.CDLL("libcuda.so.1")

def work(name, kernels):
    for _ in range(kernels):
        with jm.region("first"):
            launch = Launch(name=name, grid=(1, 1, 1), block=(1, 1, 1), stream=7, duration_ns=10_000_000, copy_kind=1)
            levers.launch(ctypes.byref(launch))
        time.sleep(0.02)

found = []
for number, name in enumerate((b"gemm", b"relu")):
    work(b"before", 2)
    recorder = Recorder.begin(f"{sys.argv[1]}.{number}", sensors="nvml")
    work(name, 20 + number)
    recorder.end()
    rows = jm.load(recorder.file).ledger("kernel").rows
    found.append({row.name: row.count for row in rows if row.part == "gpu"})
print(json.dumps(found))
"""


def test_kernels_are_recorded_after_cuda_is_loaded_late(binaries, tmp_path):
    (tmp_path / "libcuda.so.1").symlink_to(binaries / "libjoulemap-fake-nvml.so")  # only the name matters
    nvml = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", FakeGpu(uuid=GPU, power=[(0.0, 300.0)]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))}
    environment |= nvml.environment | {
        "JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so"), "LD_LIBRARY_PATH": str(tmp_path),
        "PYTHONPATH": str(binaries.parent / "python"),
    }  # fmt: skip
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run.joule")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == [{"gemm": 20}, {"relu": 21}]
