"""joulemap share: a shared recording contains the measurements but nothing that identifies the machine or its user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

ROOT = Path(__file__).resolve().parents[2]
GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # UUID that the fake CUPTI reports
SECRET = "hunter2secret"
# Members that contain file locations or that are expected to differ.
INPUT_SPECIFIC_KEYS = {"inputs", "command", "hosts", "environment", "file_bytes"}


def dump_recording(file: Path) -> str:
    command = [sys.executable, ROOT / "tests" / "support" / "read_joule.py", file]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def own(binaries: Path, joulemap, tmp_path: Path) -> Path:
    """A recording with everything that identifies a machine: a GPU, folders, secrets, a region named like a path."""
    nvml = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", FakeGpu(uuid=GPU, power=[(0.0, 300.0)]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))}
    environment |= nvml.environment | {"JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so")}
    home_folder = tmp_path / "home" / "bobby"
    home_folder.mkdir(parents=True)
    program = shutil.copy(binaries / "joulemap-fake-cuda-program", home_folder)
    words = [program, "40", "8", "--user", "bobby", f"--data={home_folder}/set", "--token", SECRET, "src/mine/run.py"]
    file = tmp_path / "own.joule"
    record_outcome = joulemap(
        "record", "--keep-arguments", "--sensors", "nvml", "-o", file, "--", *words, env=environment
    )
    assert record_outcome.code == 0, record_outcome.err
    return file


def test_a_shared_recording_has_the_same_ledger_and_no_names_of_the_machine(joulemap, own: Path, tmp_path: Path):
    shared_recording = tmp_path / "shared.joule"
    outcome = joulemap("share", own, "-o", shared_recording, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["file_bytes"] == shared_recording.stat().st_size and outcome.json["diagnostics"] == []
    dumped_text = dump_recording(shared_recording)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    for secret in (str(tmp_path), "bobby", SECRET, GPU, boot, os.uname().release, "src/mine"):
        assert secret in dump_recording(own), secret
        assert secret not in dumped_text
    assert os.uname().nodename in dump_recording(own).split() and os.uname().nodename not in dumped_text.split()
    reports = [joulemap("report", "--json", "--by", "kernel", file).json for file in (own, shared_recording)]
    assert reports[1]["command"] == [
        "joulemap-fake-cuda-program", "40", "8", "--user", "user", "--data=set", "--token", "***", "run.py"
    ]  # fmt: skip
    original_report, shared_report = (
        {key: value for key, value in report.items() if key not in INPUT_SPECIFIC_KEYS} for report in reports
    )
    assert json.dumps(original_report) == json.dumps(shared_report)
    assert original_report["rows"]


def test_a_shared_example_reports_the_same(joulemap, tmp_path: Path):
    example, shared_recording = ROOT / "examples" / "resnet50-h200.joule", tmp_path / "shared.joule"
    assert joulemap("share", example, "-o", shared_recording).code == 0
    for level in ("layer", "step"):
        reports = [
            joulemap("report", "--json", "--by", level, "--mode", "integral", recording).json
            for recording in (example, shared_recording)
        ]
        original_report, shared_report = (
            {key: value for key, value in report.items() if key not in INPUT_SPECIFIC_KEYS} for report in reports
        )
        assert json.dumps(original_report) == json.dumps(shared_report)


def test_share_overwrites_no_existing_file(joulemap, own: Path, tmp_path: Path):
    original_bytes = own.read_bytes()
    assert joulemap("share", own, "-o", own).code == 1
    assert own.read_bytes() == original_bytes
    note = tmp_path / "note.txt"
    note.write_text("precious")
    outcome = joulemap("share", own, "-o", note)
    assert outcome.code == 1 and note.read_text() == "precious"
    assert joulemap("share", note, "-o", tmp_path / "copy").code == 1 and not (tmp_path / "copy").exists()


def test_bytes_outside_of_chunks_are_not_copied(joulemap, own: Path, tmp_path: Path):
    damaged_recording, shared_recording = tmp_path / "damaged.joule", tmp_path / "shared.joule"
    damaged_recording.write_bytes(own.read_bytes() + b"my diary")
    outcome = joulemap("share", damaged_recording, "-o", shared_recording, "--json")
    assert outcome.code == 0 and outcome.json["dropped_bytes"] == len("my diary")
    assert outcome.json["diagnostics"][0]["code"] == "recording_damaged"
    assert b"my diary" not in shared_recording.read_bytes()


def test_parts_that_are_not_joined_are_refused(joulemap, tmp_path: Path):
    (tmp_path / "run.joule.d").mkdir()
    outcome = joulemap("share", tmp_path / "run.joule", "-o", tmp_path / "copy.joule")
    assert outcome.code == 2 and "not merged" in outcome.err
