"""joulemap record -p: a running process, and one that joins later; report --exclude: excludes parts of the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import make_busy_command

EXAMPLE_RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"


@pytest.fixture
def recorder(binaries, tmp_path):
    """`joulemap record -p PID` in progress; its announcement has been read."""
    begun = []

    def begin(pid: int, *options: object):
        command = [binaries / "joulemap", "record", "-p", pid, "-o", tmp_path / "run.joule", "--announce", "--json"]
        process = subprocess.Popen(
            [str(word) for word in [*command, "--sensors", "estimate", *options]],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        begun.append(process)
        return process, json.loads(process.stdout.readline())

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


def test_a_running_process_is_recorded_until_it_ends(recorder, joulemap, tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as watched_process:
        process, announcement = recorder(watched_process.pid)
        assert announcement["schema"] == "joulemap.recording/1"
        watched_process.stdin.close()
        result, _ = process.communicate(timeout=60)
    summary = json.loads(result.splitlines()[-1])
    assert process.returncode == 0
    assert summary["command"] == watched_process.args
    report = joulemap("report", tmp_path / "run.joule", "--json").json
    assert report["complete"]
    assert report["exit_code"] is None
    assert report["estimated_j"] == summary["estimated_j"], "the same samples, the same code"


def test_a_stop_request_ends_the_recording_and_not_the_process(recorder, joulemap, tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as watched_process:
        process, _ = recorder(watched_process.pid)
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert watched_process.poll() is None
        watched_process.stdin.close()
    assert joulemap("report", tmp_path / "run.joule", "--json").json["complete"]


def test_a_process_with_the_announced_variables_is_part_of_the_recording(recorder, joulemap, binaries, tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as watched_process:
        process, announcement = recorder(watched_process.pid)
        variables = announcement["variables"]
        assert variables["JOULEMAP_RECORDING"] == str(tmp_path / "run.joule.d")
        program = "import joulemap as jm\nwith jm.region('joined'):\n    sum(range(2_000_000))"
        paths = f"{variables['PYTHONPATH']}:{binaries.parent / 'python'}"
        environment = {**os.environ, **variables, "PYTHONPATH": paths}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
        watched_process.stdin.close()
        process.communicate(timeout=60)
    report = joulemap("report", tmp_path / "run.joule", "--by", "region", "--json").json
    assert "joined" in [row["name"] for row in report["rows"]]


def test_options_that_conflict_with_a_process_are_rejected(joulemap):
    assert joulemap("record", "-p", os.getpid(), "--", "true").code == 2
    assert joulemap("record", "-p", os.getpid(), "--probe").code == 2
    exited_process = subprocess.Popen(["true"])
    exited_process.wait()
    outcome = joulemap("record", "-p", exited_process.pid)
    assert outcome.code != 0
    assert "no process" in outcome.err


def test_a_process_that_has_ended_but_was_not_waited_for_is_rejected(joulemap):
    with subprocess.Popen(["true"]) as zombie_process:
        os.waitid(os.P_PID, zombie_process.pid, os.WEXITED | os.WNOWAIT)
        outcome = joulemap("record", "-p", zombie_process.pid)
    assert outcome.code == 1
    assert f"process {zombie_process.pid} has already ended" in outcome.err


def test_report_excludes_parts_of_the_machine(joulemap, tmp_path):
    path = tmp_path / "run.joule"
    assert joulemap("record", "--sensors", "estimate", "-o", path, "--", *make_busy_command(0.3)).code == 0

    def counted(*options: str) -> set:
        report = joulemap("report", "--json", *options, path).json
        assert report["attributed_j"] == pytest.approx(sum(row["energy_j"] for row in report["rows"]))
        return {row["name"].rstrip("0123456789") for row in report["rows"]}

    assert counted() == {"package-", "dram-"}
    assert counted("--exclude", "ram") == {"package-"}
    assert counted("--exclude", "cpu") == {"dram-"}
    assert counted("--exclude", "gpu,ram") == {"package-"}
    assert joulemap("report", path, "--exclude", "tpu").code == 2


def test_an_excluded_gpu_keeps_its_name_and_is_no_fault(joulemap):
    report = joulemap("report", EXAMPLE_RECORDING, "--json", "--by", "kernel", "--exclude", "gpu").json
    assert {row["device"] for row in report["rows"]} == {"gpu0"}
    assert all(row["energy_j"] is None for row in report["rows"])
    assert "gpu_not_measured" not in {diagnostic["code"] for diagnostic in report["diagnostics"]}
