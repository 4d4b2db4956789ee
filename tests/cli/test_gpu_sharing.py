"""joulemap record on a GPU with co-tenants: the fake NVML lists the other processes and their utilization."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # UUID that the fake CUPTI reports
SOMEBODY = 0x3FFFFFF0  # not the ID of any process
FIRST_NAMESPACE = "pid:[4026531836]"


class SharedMachine:
    """A machine with a GPU at 300 W, which the fake program keeps busy half of the time."""

    def __init__(self, joulemap, binaries: Path, folder: Path, statements: tuple[str, ...]) -> None:
        gpu = FakeGpu(uuid=GPU, power=[(0.0, 300.0)], statements=list(statements))
        nvml = FakeNvml(folder, binaries / "libjoulemap-fake-nvml.so", gpu)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))}
        self.environment = {**kept, **nvml.environment, "JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so")}
        self.joulemap, self.program, self.file = joulemap, binaries / "joulemap-fake-cuda-program", folder / "run.joule"

    def record(self, steps: str = "60", startup_s: float = 0) -> dict:
        late = ("sh", "-c", f'sleep {startup_s}; exec "$@"', "sh")
        command = ("record", "--json", "--sensors", "nvml", "-o", self.file, "--", *late, self.program, steps, "8")
        outcome = self.joulemap(*command, env=self.environment)
        assert outcome.code == 0, outcome.err
        return outcome.json

    def report(self, *flags: str) -> dict:
        told = self.joulemap("report", "--json", *flags, self.file)
        assert told.code == 0, told.err
        return told.json

    def doctor(self) -> dict:
        (sensor,) = self.joulemap("doctor", "--json", "--sensors", "nvml", env=self.environment).json["sensors"]
        return sensor


@pytest.fixture
def machine(joulemap, binaries, tmp_path):
    return lambda *statements: SharedMachine(joulemap, binaries, tmp_path, statements)


def codes(result: dict) -> set[str]:
    return {entry["code"] for entry in result["diagnostics"]}


def background(report: dict) -> list[dict]:
    return [row for row in report["rows"] if row["path"] == ["background"] and row["device"] == "gpu0"]


@pytest.mark.parametrize("startup_s", [0, 0.4])
def test_what_others_use_on_a_gpu_is_background_and_neither_idle_nor_ours(machine, startup_s):
    """Independent of load: the program's kernels fill at most half of any interval, other processes 40 % of it."""
    shared = machine(f"process {SOMEBODY} 30", f"process {SOMEBODY + 1} 10")
    shared.record(startup_s=startup_s)
    for level in ("kernel", "region"):
        told = shared.report("--by", level, "--mode", "integral")
        (row,) = background(told)
        assert row["basis"] == "time-share"
        assert row["energy_j"] == pytest.approx(0.4 * told["measured_j"], rel=0.02)
        assert row["time_s"] == pytest.approx(0.4 * told["elapsed_s"], rel=0.001)
        total = told["attributed_j"] + told["idle_j"] + told["unattributed_j"]
        assert total == pytest.approx(told["measured_j"], rel=1e-6)
        # The GPU has constant power, so energies are proportional to time.
        ours_s = sum(one["time_s"] for one in told["rows"] if one["device"] == "gpu0") - row["time_s"]
        idle_j = (0.6 - ours_s / told["elapsed_s"]) * told["measured_j"]
        assert told["idle_j"] == pytest.approx(idle_j, abs=0.02 * told["measured_j"])
        assert "gpu_shared" in codes(told)
    (fitted,) = background(shared.report("--by", "kernel"))
    assert fitted["basis"] == "time-share"
    assert fitted["low_j"] < fitted["energy_j"] < fitted["high_j"]
    assert shared.report("--by", "kernel") == shared.report("--by", "kernel")


def test_without_others_a_report_does_not_mention_them(machine):
    alone = machine()
    alone.record("20")
    told = alone.report("--by", "kernel")
    assert not background(told)
    assert not {"gpu_shared", "gpu_shared_untold"} & codes(told)
    assert "others-utilization" not in json.dumps(told)
    assert "gpu_shared" not in codes(alone.doctor())


@pytest.mark.parametrize("what", ["denied", "unsupported"])
def test_others_whose_use_cannot_be_read_are_said_and_not_guessed(machine, what):
    closed = machine(f"process {SOMEBODY} 40", f"{what} process_utilization")
    assert "gpu_shared_untold" in codes(closed.record("20"))
    told = closed.report("--by", "kernel")
    assert "gpu_shared_untold" in codes(told)
    assert not background(told)


def test_a_driver_that_lists_nobody_is_no_reason_to_say_anything(machine):
    closed = machine(f"process {SOMEBODY} 40", "denied processes process_utilization")
    assert not {"gpu_shared", "gpu_shared_untold"} & codes(closed.record("20"))
    assert not background(closed.report("--by", "kernel"))


def test_doctor_says_who_is_on_a_gpu_now(machine):
    sensor = machine(f"process {SOMEBODY} 0").doctor()
    (found,) = [entry for entry in sensor["diagnostics"] if entry["code"] == "gpu_shared"]
    assert str(SOMEBODY) in found["message"] and "background" in found["remedy"]


@pytest.mark.skipif(
    os.readlink("/proc/self/ns/pid") != FIRST_NAMESPACE, reason="in a container nobody who comes later is known"
)
def test_who_comes_later_is_background_from_then_on(machine):
    shared = machine(f"process {SOMEBODY} 40 3")
    shared.record("750")
    told = shared.report("--by", "kernel")
    (row,) = background(told)
    assert 0 < row["time_s"] < 0.4 * (told["elapsed_s"] - 1)


def test_a_shared_gpu_teaches_the_kernel_library_nothing(machine, tmp_path):
    shared = machine(f"process {SOMEBODY} 40")
    shared.record("300")
    assert not (tmp_path / "data" / "kernels.joule").exists()
