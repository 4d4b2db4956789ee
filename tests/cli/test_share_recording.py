"""A recording that is given away tells what was measured and not whose machine it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from fake_nvml.truth import FakeGpu, FakeNvml

ROOT = Path(__file__).resolve().parents[2]
GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # what the fake CUPTI says it is
# What tells where a file lies, and what is meant to differ.
OWN = {"inputs", "command", "hosts", "environment", "file_bytes"}


def test_a_shared_recording_has_the_same_ledger_and_no_names_of_the_machine(binaries: Path, joulemap, tmp_path):
    nvml = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", FakeGpu(uuid=GPU, power=[(0.0, 300.0)]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))}
    environment |= nvml.environment | {"JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so")}
    own, shared = tmp_path / "own.joule", tmp_path / "shared.joule"
    program = binaries / "joulemap-fake-cuda-program"
    recorded = joulemap("record", "--sensors", "nvml", "-o", own, "--", program, "40", "8", env=environment)
    assert recorded.code == 0, recorded.err
    subprocess.run([sys.executable, ROOT / "tools" / "share_recording.py", own, shared], check=True)

    dump = [sys.executable, ROOT / "tests" / "support" / "read_joule.py"]
    told = subprocess.run([*dump, shared], capture_output=True, text=True, check=True).stdout
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for secret in (str(program.parent), GPU, boot):
        assert secret not in told
    assert "joulemap-fake-cuda-program" in told
    reports = [joulemap("report", "--json", "--by", "kernel", file).json for file in (own, shared)]
    mine, other = ({key: value for key, value in report.items() if key not in OWN} for report in reports)
    assert json.dumps(mine) == json.dumps(other)
    assert mine["rows"]
