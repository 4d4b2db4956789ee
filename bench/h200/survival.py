#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that programs with unusual GPU usage run under `joulemap record` as they run alone, and are captured.

    make dist
    python3 bench/h200/survival.py --joulemap build/dist/joulemap-*/bin/joulemap --markdown OUT.md

Runs each program of gpu_programs.py alone and recorded. Exit code and last line (a checksum of the trained network,
with deterministic algorithms) must be equal, kernels captured, and most of their time with a phase. Exits 1 on
failure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from coverage import KernelTimeCoverage  # noqa: E402
from findings import Findings  # noqa: E402
from gpu_programs import PROGRAMS  # noqa: E402

# Least share of kernel time with a phase and with a layer, where less than usual is possible: compiled code has no
# layers.
MIN_COVERAGE_BY_PROGRAM = {"compiled": (0.95, 0.0), "jax": (0.95, 0.95), "cuda": (0.0, 0.0)}
DEFAULT_MIN_COVERAGE = (0.97, 0.9)
MIN_KERNELS = {"profiled": 300_000}  # most of its kernels start after the profiler has ended

CUDA_PROGRAM = r"""
#include <cstdio>
__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 1.5f; }
int main() {
  float* x; cudaMalloc(&x, 1 << 26); cudaMemset(x, 0, 1 << 26);
  for (int i = 0; i < 2000; ++i) scale<<<(1 << 24) / 256, 256>>>(x, 1 << 24);
  float first; cudaMemcpy(&first, x, sizeof first, cudaMemcpyDeviceToHost);
  std::printf("%g\n", first);
}
"""


def run(command: list[str]) -> subprocess.CompletedProcess:
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment, check=False)


def list_commands(folder: Path, program_names: list[str]) -> dict[str, list[str]]:
    commands_by_program = {name: [sys.executable, str(SCRIPT_FOLDER / "gpu_programs.py"), name] for name in PROGRAMS}
    compiler = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if Path(compiler).exists():
        source, program = folder / "scale.cu", folder / "scale"
        source.write_text(CUDA_PROGRAM)
        subprocess.run([compiler, "-O2", "-o", str(program), str(source)], check=True)
        commands_by_program["cuda"] = [str(program)]
    return {
        name: command for name, command in commands_by_program.items() if not program_names or name in program_names
    }


def check_survival(findings: Findings, joulemap: str, name: str, command: list[str], folder: Path) -> None:
    file = folder / f"{name}.joule"
    unrecorded_process = run(command)
    recorded_process = run([joulemap, "record", "--trace", "full", "-o", str(file), "--", *command])
    code = (
        unrecorded_process.returncode if unrecorded_process.returncode >= 0 else 128 - unrecorded_process.returncode
    )  # exit code of a shell for a signal
    has_same_exit_code = code == recorded_process.returncode
    has_same_output = unrecorded_process.stdout.splitlines()[-1:] == recorded_process.stdout.splitlines()[-1:] and bool(
        unrecorded_process.stdout
    )
    if not file.exists():
        return findings.add_line(
            f"| {name} | {findings.bar(name, False)} | no recording: {recorded_process.stderr[-300:]!r} | | | | |"
        )
    coverage = KernelTimeCoverage(joulemap, file)
    min_phase_coverage, min_module_coverage = MIN_COVERAGE_BY_PROGRAM.get(name, DEFAULT_MIN_COVERAGE)
    is_coverage_sufficient = (
        coverage.kernels >= MIN_KERNELS.get(name, 1)
        and coverage.phase >= min_phase_coverage
        and coverage.module >= min_module_coverage
    )
    codes = ", ".join(sorted({entry["code"] for entry in coverage.diagnostics})) or "none"
    output_bar = findings.bar(f"{name}: exit and output", has_same_exit_code and has_same_output)
    coverage_bar = findings.bar(f"{name}: coverage", is_coverage_sufficient)
    findings.add_line(
        f"| {name} | {output_bar} | {coverage.kernels} | {100 * coverage.phase:.1f} % | "
        f"{100 * coverage.module:.1f} % | {coverage_bar} | {codes} |"
    )
    if not (has_same_exit_code and has_same_output and is_coverage_sufficient):
        print(
            f"alone {unrecorded_process.returncode} {unrecorded_process.stdout[-200:]!r} "
            f"recorded {recorded_process.returncode} {recorded_process.stdout[-200:]!r}"
        )
        print(recorded_process.stderr[-1500:])
        print(json.dumps(coverage.largest_rows(12), indent=1), json.dumps(coverage.diagnostics, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--programs", default="", help="of gpu_programs.py, and cuda; all unless named")
    parser.add_argument("--at-once", type=int, default=4, help="programs that share the GPU: nothing here is timed")
    options = parser.parse_args()
    findings = Findings()
    findings.add_line(
        "| program | same exit and result | kernels | with a phase | with a layer | covered | diagnostics |"
    )
    findings.add_line("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.at_once) as several:
        program_names = [name for name in options.programs.split(",") if name]

        def one(entry: tuple[str, list[str]]) -> None:
            try:
                check_survival(findings, str(options.joulemap.resolve()), *entry, Path(folder))
            except subprocess.TimeoutExpired as timeout_error:
                findings.add_line(
                    f"| {entry[0]} | {findings.bar(entry[0], False)} | ran past {timeout_error.timeout} s | | | | |"
                )

        list(several.map(one, list_commands(Path(folder), program_names).items()))
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
