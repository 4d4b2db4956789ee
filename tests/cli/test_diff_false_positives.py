"""The analysis of bench/h200/diff_false_positives.py: recordings with differences within and beyond the expected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.kineto_trace import begin_ns, training

ANALYSIS_SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "h200" / "diff_false_positives.py"
STEPS, STEP_S = 40, 0.05


@pytest.fixture
def record(joulemap, tmp_path: Path):
    """record(name, watts): a traced training run at that power, in a file named as the script names its recordings."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    trace = training(steps=STEPS, step_us=1e6 * STEP_S).write(tmp_path / "trace.json")

    def make(name: str, watts: float) -> Path:
        moments = range(-50, int(100 * STEPS * STEP_S) + 50)
        rows = [f"{begin_ns() + i * 10_000_000},gpu0,power_w,{watts}" for i in moments]
        power = tmp_path / "power.csv"
        power.write_text("\n".join(["time_unix_ns,domain,kind,value", *rows]) + "\n")
        outcome = joulemap("import", "kineto", trace, "--power", power, "-o", folder / f"{name}.joule")
        assert outcome.code == 0, outcome.err
        return folder

    return make


@pytest.fixture
def analyze(binaries: Path):
    def run(folder: Path, *options: object) -> subprocess.CompletedProcess:
        command = [sys.executable, ANALYSIS_SCRIPT, "--joulemap", binaries / "joulemap", "--analyze", folder, *options]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=False)

    return run


def test_runs_that_differ_as_the_prior_says_pass_and_a_change_is_found(record, analyze, tmp_path):
    for number, watts in enumerate([300, 304, 298, 301, 299, 303]):
        folder = record(f"unet-same-{number:02d}", watts)
    for number, watts in enumerate([360, 362, 358]):
        record(f"unet-changed-{number:02d}", watts)
    packed_folder = tmp_path / "packed"
    subprocess.run(
        [sys.executable, ANALYSIS_SCRIPT, "--joulemap", "joulemap", "--folder", folder, "--pack", packed_folder],
        check=True,
        timeout=60,
    )
    analysis_process = analyze(packed_folder, "--markdown", tmp_path / "out.md")
    assert analysis_process.returncode == 0, analysis_process.stdout + analysis_process.stderr
    assert "**0 of 5 pairs that differ in nothing are called changed**" in analysis_process.stdout
    assert "| unet | 3 | 19.7 %" in analysis_process.stdout and "1 of 1" in analysis_process.stdout
    assert "Missed: nothing" in (tmp_path / "out.md").read_text()


def test_false_positives_above_the_limit_fail_the_benchmark(record, analyze):
    for number, watts in enumerate([300, 400, 300, 400]):
        folder = record(f"mlp-same-{number:02d}", watts)
    analysis_process = analyze(folder)
    assert analysis_process.returncode == 1
    assert "Missed: false positives" in analysis_process.stdout
