"""Runs Python programs that use the package: each in its own process, on a simulated machine or on this one."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from truth import TruthLog

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from recorded_program import RecordedProgram, run_recorded  # noqa: E402

BUILD = ROOT / os.environ.get("JOULEMAP_BUILD", "build")
HAS_SANITIZER = any(name in str(BUILD) for name in ("asan", "tsan"))
sys.path.append(str(BUILD / "python"))  # the package, for tests that import it directly
collect_ignore = ["test_energy_provenance.py"] if HAS_SANITIZER else []

# Start of every program.
PROGRAM_PRELUDE = """
import json, os, sys, time
import joulemap as jm

def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass

def describe_energy(energy):
    domains = {domain.name: [domain.joules, domain.uncertainty_j, domain.reason] for domain in energy.domains}
    return {"joules": energy.joules, "uncertainty_j": energy.uncertainty_j, "seconds": energy.seconds,
            "reason": energy.reason, "provenance": energy.provenance, "begin_ns": energy.begin_ns,
            "end_ns": energy.end_ns, "domains": domains, "codes": [entry.code for entry in energy.diagnostics]}

"""


def pytest_collection_modifyitems(items) -> None:
    """A Python without a sanitizer cannot load a library with one: the unit tests cover that build."""
    if not HAS_SANITIZER:
        return
    for item in items:
        if Path(__file__).parent in Path(item.fspath).parents:
            item.add_marker(pytest.mark.skip(reason="the library has a sanitizer inside, Python has not"))


@pytest.fixture
def environment(binaries: Path) -> dict:
    return {**os.environ, "PYTHONPATH": str(binaries.parent / "python"), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def python(environment: dict):
    """Runs a program and returns the last line it prints, parsed as JSON."""

    def run(program: str, *before: object, **more: str):
        command = [*map(str, before), sys.executable, "-c", PROGRAM_PRELUDE + program]
        process = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**environment, **more})
        assert process.returncode == 0, process.stderr + process.stdout
        assert process.stderr == ""
        return json.loads(process.stdout.rstrip("\n").split("\n")[-1])

    return run


@pytest.fixture
def record(binaries: Path, tmp_path: Path):
    """Runs a program as `joulemap record` does; returns what the capture wrote for its processes."""

    def run(program: str, *arguments: str, code: int = 0, **more: str) -> RecordedProgram:
        folder = Path(tempfile.mkdtemp(prefix="recorded-", dir=tmp_path))
        recorded_program = run_recorded(binaries.parent, folder, program, *arguments, **more)
        assert recorded_program.code == code, recorded_program.err
        return recorded_program

    return run


class Simulation:
    """The output of a program on a simulated machine, and the true energies."""

    def __init__(self, result, truth: TruthLog) -> None:
        self.result = result
        self.truth = truth

    def true_joules(self, window: dict, domain: str) -> float:
        return self.truth.joules(domain, window["begin_ns"], window["end_ns"])

    def contains_truth(self, window: dict) -> bool:
        """Whether the interval of every domain covers the true energy."""
        return all(
            joules is not None and joules > 0 and abs(joules - self.true_joules(window, name)) <= uncertainty_j
            for name, (joules, uncertainty_j, _) in window["domains"].items()
        )


@pytest.fixture
def simulate(binaries: Path, memory_directory: Path, python):
    """Runs a program on a simulated machine with the given flags; it measures that machine's counters. Times of faults
    among the flags are seconds since the program calls faults_begin()."""

    def run(program: str, *flags: object) -> Simulation:
        root, fault_trigger_file = memory_directory / "machine", memory_directory / "now"
        machine = [
            binaries / "joulemap-simulated-machine",
            "--root",
            root,
            "--fault-trigger",
            fault_trigger_file,
            *flags,
            "--",
        ]
        start = f"""
jm.start(sysroot=os.environ["JOULEMAP_SIMULATED_ROOT"], sensors="powercap")
def faults_begin():
    open({str(fault_trigger_file)!r}, "w").close()
"""
        result = python(start + program, *machine)
        return Simulation(result, TruthLog(str(root / "truth.csv")))

    return run


@pytest.fixture(autouse=True)
def no_other_event_loop(request):
    """Tests of a browser that ran before in this process leave their event loop suspended, but marked as running in this
    thread: asyncio then refuses to run another one."""
    if not request.module.__name__.split(".")[-1].startswith("test_bench_serve"):
        yield
        return
    suspended_loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(suspended_loop)
