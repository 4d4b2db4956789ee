"""Kernel powers learned from earlier recordings: stored in the data folder, copied into recordings, named by report."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "support"))

import read_joule  # noqa: E402
from joule_writer import KernelPower, write_library  # noqa: E402

GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # UUID that the fake CUPTI reports
GPU_MODEL = "Fake H200"


@pytest.fixture
def record(binaries: Path, joulemap, tmp_path):
    """record("a.joule"): gemm and relu on a GPU at 300 W, too short to identify the power of each class."""

    def run(name: str, *flags: str, data: Path | None = None):
        nvml = FakeNvml(
            tmp_path, binaries / "libjoulemap-fake-nvml.so", FakeGpu(uuid=GPU, name=GPU_MODEL, power=[(0.0, 300.0)])
        )
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "NVTX_"))}
        environment |= nvml.environment | {"JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so")}
        if data is not None:
            environment["JOULEMAP_DATA"] = str(data)
        file = tmp_path / name
        command = (binaries / "joulemap-fake-cuda-program", "5", "8")
        outcome = joulemap("record", "--sensors", "nvml", *flags, "-o", file, "--", *command, env=environment)
        assert outcome.code == 0, outcome.err
        return file, outcome

    return run


@pytest.fixture
def report(joulemap):
    def run(file: Path, *flags: object) -> dict:
        outcome = joulemap("report", "--json", "--by", "kernel", *flags, file)
        assert outcome.code == 0, outcome.err
        return outcome.json

    return run


def rows_of(result: dict) -> dict[str, dict]:
    return {row["name"]: row for row in result["rows"] if row["device"] == "gpu0"}


def codes(result: dict) -> set[str]:
    return {entry["code"] for entry in result["diagnostics"]}


def library_entries_for(file: Path, watts: dict[str, float], gpu: str = GPU_MODEL) -> list[KernelPower]:
    """Library entries for the kernel classes of a recording."""
    powers = []
    for line in read_joule.dump(file.read_bytes()):
        if not line.startswith("class "):
            continue
        *sides, name = line.split(" ", 10)[4:]
        threads = math.prod(max(int(side), 1) for side in sides)
        if name in watts and name not in {power.name for power in powers}:
            powers.append(KernelPower(gpu, name, threads.bit_length(), watts[name]))
    return powers


@pytest.fixture
def recording_and_library(record, tmp_path):
    """A recording, and library entries in which gemm has three times the power of relu."""
    file, _ = record("first.joule", "--no-learn")
    powers = library_entries_for(file, {"gemm": 450.0, "relu": 150.0})
    assert len(powers) == 2
    return file, powers


def test_a_named_kernel_library_provides_powers_that_a_short_run_cannot(recording_and_library, report, tmp_path):
    file, powers = recording_and_library
    report_without_library, result = (
        report(file),
        report(file, "--library", write_library(tmp_path / "library.joule", powers)),
    )
    assert {row["basis"] for row in rows_of(report_without_library).values()} == {"time-share"}
    gemm, relu = rows_of(result)["gemm"], rows_of(result)["relu"]
    assert gemm["basis"] == relu["basis"] == "library"
    assert gemm["power_w"] / relu["power_w"] == pytest.approx(3, rel=0.05)
    assert gemm["low_j"] < gemm["energy_j"] < gemm["high_j"]
    assert "kernels_by_library" in codes(result) and "kernels_by_time" not in codes(result)
    total = result["attributed_j"] + result["idle_j"] + result["unattributed_j"]
    assert total == pytest.approx(result["measured_j"], rel=1e-6)


def test_a_kernel_library_of_another_gpu_changes_nothing(recording_and_library, report, tmp_path):
    file, powers = recording_and_library
    report_without_library = report(file)
    assert report(file, "--library", "none") == report_without_library
    other_gpu_powers = [KernelPower("Another", power.name, power.size, power.watts) for power in powers]
    assert (
        report(file, "--library", write_library(tmp_path / "other.joule", other_gpu_powers)) == report_without_library
    )


def test_known_kernel_powers_are_stored_in_the_recording(recording_and_library, record, report, tmp_path):
    _, powers = recording_and_library
    library = write_library(tmp_path / "known" / "kernels.joule", powers)
    file, _ = record("second.joule", "--no-learn", data=library.parent)
    result = report(file)
    assert rows_of(result)["gemm"]["basis"] == "library"
    library.write_bytes(b"")
    assert report(file) == result
    library.unlink()
    assert report(file) == result
    assert rows_of(report(file, "--library", "none"))["gemm"]["basis"] == "time-share"


def test_a_damaged_kernel_library_is_reported_and_loses_no_recording(
    recording_and_library, record, report, joulemap, tmp_path
):
    file, powers = recording_and_library
    library = write_library(tmp_path / "known" / "kernels.joule", powers)
    data = bytearray(library.read_bytes())
    data[data.rfind(b"gemm")] ^= 1
    library.write_bytes(data)
    assert "library_damaged" in codes(report(file, "--library", library))
    library.write_bytes(b"no library")
    _, outcome = record("second.joule", data=library.parent)
    assert "no library" not in outcome.out and "kernels.joule" in outcome.err
    assert joulemap("report", "--library", library, file).code != 0
    assert joulemap("report", "--library", tmp_path / "nowhere", file).code != 0


def test_a_data_folder_that_cannot_be_written_costs_no_recording(record, report, tmp_path):
    (tmp_path / "file").write_text("")
    file, _ = record("run.joule", data=tmp_path / "file" / "data")
    assert rows_of(report(file))["gemm"]["energy_j"] > 0
