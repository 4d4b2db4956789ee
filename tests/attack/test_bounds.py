"""Inputs that try to exhaust memory, time or stack: readers handle each within bounds or refuse it with a reason."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

MAX_MEMORY_BYTES = 1 << 30
MAX_CPU_S = 60
HAS_SANITIZER = "san" in os.environ.get("JOULEMAP_BUILD", "")  # sanitizers reserve terabytes of address space


def run_with_limits(program: Path, *arguments: object) -> subprocess.CompletedProcess:
    """Runs a program under limits of address space and CPU time that the kernel enforces."""

    def set_limits() -> None:
        if not HAS_SANITIZER:
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S))

    return subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, timeout=600, preexec_fn=set_limits, check=False
    )


@pytest.fixture
def program(binaries: Path) -> Path:
    return binaries / "joulemap"


NESTING_DEPTH = 20_000
DEEP_TOML = {
    "a key": "a." * NESTING_DEPTH + "b = 1\n",
    "a table": "[" + "a." * NESTING_DEPTH + "b]\n",
    "arrays": "a = " + "[" * NESTING_DEPTH + "]" * NESTING_DEPTH + "\n",
    "inline tables": "a = " + "{a=" * NESTING_DEPTH + "1" + "}" * NESTING_DEPTH + "\n",
    "inline tables with keys": "a = " + "{a.a.a.a.a.a.a.a.a.a=" * 60 + "1" + "}" * 60 + "\n",
    "keys in quotes": '"a".' * NESTING_DEPTH + "b = 1\n",
}


@pytest.mark.parametrize("verb", ["plan", "status", "analyze", "run"])
@pytest.mark.parametrize("shape", DEEP_TOML)
def test_an_experiment_that_is_nested_deep_is_refused(program, tmp_path, verb, shape):
    folder = tmp_path / "deep"
    folder.mkdir()
    file = folder / "experiment.toml"
    file.write_text('name = "deep"\ncommand = "true"\n' + DEEP_TOML[shape])
    outcome = run_with_limits(program, "experiment", verb, file if verb in ("plan", "run") else folder)
    assert outcome.returncode in (1, 2), outcome
    assert "joulemap" in outcome.stderr


def test_dots_in_toml_values_do_not_count_as_nesting(program, tmp_path):
    file = tmp_path / "usual.toml"
    command = "echo 1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9 {a}"
    file.write_text(f'name = "usual"\ncommand = "{command}"\nrepetitions = 2\n[factors]\na = [1.5, 2]\n')
    assert run_with_limits(program, "experiment", "plan", file).returncode == 0


def write_kernel_trace(path: Path, kernels: int, name_length: int = 0) -> Path:
    """A trace in which each kernel has its own name and its own stream."""
    with open(path, "w") as file:
        file.write('{"schemaVersion":1,"traceEvents":[')
        for i in range(kernels):
            args = {"device": 0, "stream": i, "correlation": i, "grid": [1, 1, 1], "block": [32, 1, 1]}
            event = {"ph": "X", "cat": "kernel", "name": f"kernel_{i}".ljust(name_length, "_"), "pid": 0, "tid": i,
                     "ts": 1000 + 2 * i, "dur": 1 + (i < 10), "args": args}  # fmt: skip
            file.write(("," if i else "") + json.dumps(event))
        file.write("]}")
    return path


def test_many_different_kernels_are_grouped_with_a_diagnostic(program, tmp_path):
    recording_file = tmp_path / "many.joule"
    trace = write_kernel_trace(tmp_path / "many.json", 200_000)
    outcome = run_with_limits(program, "import", "kineto", trace, "-o", recording_file)
    assert outcome.returncode == 0, outcome.stderr
    outcome = run_with_limits(program, "report", recording_file, "--by", "kernel", "--json")
    assert outcome.returncode == 0, outcome.stderr
    result = json.loads(outcome.stdout)
    rows = {row["name"]: row for row in result["rows"]}
    assert len(rows) == 20_001
    assert rows["other kernels"]["count"] == 180_000
    assert {f"kernel_{i}" for i in range(10)} <= rows.keys(), "those with the most time have rows"
    assert "kernels_grouped" in {note["code"] for note in result["diagnostics"]}


@pytest.mark.parametrize("plot", ["bars", "flame", "heatmap"])
def test_very_long_names_are_plotted_within_the_cpu_limit(program, tmp_path, plot):
    recording_file = tmp_path / "long.joule"
    trace = write_kernel_trace(tmp_path / "long.json", 60, name_length=100_000)
    assert run_with_limits(program, "import", "kineto", trace, "-o", recording_file).returncode == 0
    outcome = run_with_limits(
        program, "report", recording_file, "--by", "kernel", "--plot", plot, "-o", tmp_path / "long.svg"
    )
    assert outcome.returncode in (0, 1, 2), outcome  # -9 or -24: killed for exceeding the CPU limit
