#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Injects faults of NVML, CUPTI and Inductor into a recorded training and checks that it ends as it does alone.

    make dist
    python3 bench/h200/faults.py --joulemap build/dist/joulemap-*/bin/joulemap --markdown OUT.md

The faults come from a library between Joulemap and the real one (fault_library.c, compiled here). It forwards every
call and fails where JOULEMAP_FAULT requests it. For each fault: the training's checksum and exit code equal those of
the training alone, it ends in time, `report` can read the recording, and a note names the fault. The GPU's average
power is either unknown or physically possible. Exits 1 when a check fails. Takes about three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from findings import Findings  # noqa: E402

PROGRAM = """
import sys, time, torch
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
device = sys.argv[1]
net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
net, x, y = net.to(device), torch.randn(64, 3, 32, 32, device=device), torch.randint(0, 10, (64,), device=device)
net(x)
run = torch.compile(net) if "compile" in sys.argv else net
optimizer = torch.optim.SGD(net.parameters(), 0.01)
begin = time.monotonic()
step = 0
while step < 40 or time.monotonic() - begin < float(sys.argv[2]):
    loss = torch.nn.functional.cross_entropy(run(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step == 40:
        checked = loss.item()
    if step % 50 == 0:
        torch.cuda.synchronize() if device == "cuda" else None
print(f"checksum {checked!r}")
"""
FAULT_AFTER_S = 4.0  # time of the fault, s after NVML was loaded; the training runs longer
MAX_DELAY_S = 25.0  # a recorded training may take this much longer than the training alone, s
PLAUSIBLE_POWER_W = (40.0, 900.0)


@dataclass
class FaultCase:
    name: str
    nvml: str = ""  # JOULEMAP_FAULT_NVML of the library in front of NVML; "" uses NVML itself
    cupti: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    compiled: bool = False
    kill_signal: int = 0  # signal sent to the training while it compiles
    is_fault_reported: bool = True  # whether a note or a warning must report the fault


CASES = [
    FaultCase("nothing fails", is_fault_reported=False),
    FaultCase("libraries in between, nothing fails", nvml="none", cupti="none", is_fault_reported=False),
    FaultCase("nvmlInit: driver and library mismatch", nvml="init"),
    FaultCase("the counter needs permission", nvml="permission"),
    FaultCase("the GPU is lost", nvml="lost"),
    FaultCase("the GPU does not answer for 3 s", nvml="away"),
    FaultCase("one call takes 4 s", nvml="stuck"),
    FaultCase("the counter starts again at 0", nvml="reset"),
    FaultCase("one absurd reading", nvml="wild"),
    FaultCase("no libcupti", variables={"JOULEMAP_CUPTI": "/nowhere/libcupti.so.12"}),
    FaultCase("libcupti is no library", variables={"JOULEMAP_CUPTI": str(SCRIPT_FOLDER / "faults.py")}),
    FaultCase("CUPTI: insufficient privileges", cupti="privileges"),
    FaultCase("CUPTI: another subscriber", cupti="subscriber"),
    FaultCase("CUPTI: records end in an error", cupti="records"),
    FaultCase("CUPTI: flush fails", cupti="flush"),
    FaultCase("CUPTI: 1000 records dropped", cupti="dropped"),
    FaultCase("Inductor", compiled=True, is_fault_reported=False),
    FaultCase("Inductor, CUPTI without privileges", compiled=True, cupti="privileges"),
    FaultCase("Inductor, SIGKILL while it compiles", compiled=True, kill_signal=signal.SIGKILL),
    FaultCase("Inductor, SIGTERM while it compiles", compiled=True, kill_signal=signal.SIGTERM),
]


def find_library(name: str) -> str:
    """Returns the path of library `name` as the training would load it."""
    program = (
        "import ctypes, torch\n"
        "torch.cuda.is_available() and torch.cuda.init()\n"
        f"try: ctypes.CDLL({name!r})\n"
        "except OSError: pass\n"
        f"print([l.split()[-1] for l in open('/proc/self/maps') if {name.split('.so')[0]!r} in l][0])"
    )
    completed_process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return completed_process.stdout.strip()


class FaultLibraries:
    """Compiled copies of fault_library.c, one in front of NVML and one in front of CUPTI."""

    def __init__(self, folder: Path, nvml: str, cupti: str) -> None:
        self.folder, self.real = folder, {"NVML": nvml, "CUPTI": cupti}
        for kind in self.real:
            compiler = ["cc", "-O1", "-shared", "-fPIC", f"-DFOR_{kind}", "-o", str(self.path(kind))]
            subprocess.run([*compiler, str(SCRIPT_FOLDER / "fault_library.c"), "-ldl"], check=True)

    def path(self, kind: str) -> Path:
        return self.folder / f"libfault_{kind.lower()}.so"

    def variables(self, case: FaultCase) -> dict[str, str]:
        fault_variables = {}
        for kind, fault in (("NVML", case.nvml), ("CUPTI", case.cupti)):
            if fault:
                fault_variables[f"JOULEMAP_{kind}"] = str(self.path(kind))
                fault_variables[f"JOULEMAP_FAULT_{kind}"] = fault
                fault_variables[f"JOULEMAP_REAL_{kind}"] = self.real[kind]
        return {**fault_variables, "JOULEMAP_FAULT_AFTER_S": str(FAULT_AFTER_S), **case.variables}


def training(options: argparse.Namespace, folder: Path, compiled: bool) -> list[str]:
    script = folder / "training.py"
    script.write_text(PROGRAM)
    return [sys.executable, str(script), options.device, str(options.seconds), *(["compile"] if compiled else [])]


def run(command: list[str], cache: Path, kill: int = 0, **variables: str) -> tuple[int, str, str, float]:
    """Returns exit code, checksum, output and seconds. `kill`: signal sent once Inductor starts to write."""
    base_variables = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    begin = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **base_variables, **variables},
    )
    if kill:
        while not any(cache.glob("*")) and process.poll() is None:
            time.sleep(0.01)
        subprocess.run(["pkill", f"-{kill}", "-f", f"^{command[command.index('--') + 1]} .*{command[-4]}"], check=False)
    try:
        out, errors = process.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        return -1, "", "hangs: " + errors, time.monotonic() - begin
    checksum = next((line for line in out.splitlines() if line.startswith("checksum")), "")
    return process.returncode, checksum, errors, time.monotonic() - begin


def report(joulemap: str, file: Path) -> tuple[dict, str]:
    command = [joulemap, "report", "--json", str(file)]
    completed_process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return (
        (json.loads(completed_process.stdout), "")
        if completed_process.returncode == 0
        else ({}, completed_process.stderr.strip())
    )


def mean_power_w(result: dict) -> float | None:
    """Mean power over the time that was measured, W."""
    gpus = [domain for domain in result["domains"] if domain["name"].startswith("gpu") and domain["counted"]]
    return gpus[0]["mean_w"] if gpus else None


def list_unexpected_results(
    case: FaultCase, outcome: tuple[int, str, str, float], reference_outcome: tuple, result: dict, unreadable: str
) -> list[str]:
    code, checksum, errors, took_s = outcome
    unexpected_results = []
    if case.kill_signal:
        if code != 128 + case.kill_signal:
            unexpected_results.append(f"exit code {code}")
    else:
        if code != 0:
            unexpected_results.append(f"exit code {code}")
        if checksum != reference_outcome[1] or not checksum:
            unexpected_results.append(f"computes {checksum or 'nothing'}, alone {reference_outcome[1]}")
    if took_s > reference_outcome[3] + MAX_DELAY_S:
        unexpected_results.append(f"took {took_s:.0f} s, alone {reference_outcome[3]:.0f} s")
    if unreadable:
        return [*unexpected_results, f"no report: {unreadable}"]
    power_w = mean_power_w(result)
    if power_w is not None and not PLAUSIBLE_POWER_W[0] <= power_w <= PLAUSIBLE_POWER_W[1]:
        unexpected_results.append(f"{power_w:.0f} W on average")
    if case.is_fault_reported and not result["diagnostics"] and "warning" not in errors:
        unexpected_results.append("neither a note nor a warning")
    return unexpected_results


def run_fault_case(
    options: argparse.Namespace, case: FaultCase, number: int, libraries: FaultLibraries, reference_outcomes: dict
) -> dict:
    folder = options.folder / f"{number:02d}"
    (folder / "cache").mkdir(parents=True)
    file = folder / "run.joule"
    command = [str(options.joulemap), "record", "-o", str(file), "--", *training(options, folder, case.compiled)]
    variables = {**libraries.variables(case), "JOULEMAP_DATA": str(folder / "data")}
    outcome = run(command, folder / "cache", case.kill_signal, **variables)
    result, unreadable = report(str(options.joulemap), file)
    return {
        "name": case.name,
        "wrong": list_unexpected_results(case, outcome, reference_outcomes[case.compiled], result, unreadable),
        "power_w": mean_power_w(result) if result else None,
        "codes": sorted({entry["code"] for entry in result.get("diagnostics", [])}),
        "errors": outcome[2][-1500:],
        "took_s": outcome[3],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each training")
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--nvml", default="", help="the real library, where it is not found by itself")
    parser.add_argument("--cupti", default="")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="", help="cases whose name contains it")
    options = parser.parse_args()
    options.joulemap = options.joulemap.resolve()
    cases = [case for case in CASES if options.only in case.name]
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = Path(temporary)
        nvml, cupti = options.nvml or find_library("libnvidia-ml.so.1"), options.cupti or find_library("libcupti.so")
        libraries = FaultLibraries(options.folder, nvml, cupti)
        compilation_modes = {case.compiled for case in cases}
        reference_outcomes = {
            is_compiled: run(training(options, options.folder, is_compiled), options.folder / "cache")
            for is_compiled in compilation_modes
        }
        with ThreadPoolExecutor(options.jobs) as pool:
            case_futures = [
                pool.submit(run_fault_case, options, case, n, libraries, reference_outcomes)
                for n, case in enumerate(cases)
            ]
            results = [case_future.result() for case_future in case_futures]
    findings = Findings()
    rows = []
    for case_result in results:
        findings.bar(case_result["name"], not case_result["wrong"])
        power = "unknown" if case_result["power_w"] is None else f"{case_result['power_w']:.0f} W"
        outcome, notes = "; ".join(case_result["wrong"]) or "as alone", ", ".join(case_result["codes"]) or "-"
        rows.append([case_result["name"], outcome, power, f"{case_result['took_s']:.0f} s", notes])
    findings.table(["fault", "training", "GPU", "took", "notes"], rows)
    for case_result in results:
        if case_result["wrong"]:
            print(json.dumps(case_result), file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return findings.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
