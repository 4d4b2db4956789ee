"""joulemap record on a GPU with co-tenants: the fake NVML lists the other processes and their utilization."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # UUID that the fake CUPTI reports
UNKNOWN_PID = 0x3FFFFFF0  # not the ID of any process
INITIAL_PID_NAMESPACE = "pid:[4026531836]"


class SharedMachine:
    """A machine with a GPU at 300 W, which the fake program keeps busy half of the time."""

    def __init__(self, joulemap, binaries: Path, folder: Path, statements: tuple[str, ...]) -> None:
        gpu = FakeGpu(uuid=GPU, power=[(0.0, 300.0)], statements=list(statements))
        nvml = FakeNvml(folder, binaries / "libjoulemap-fake-nvml.so", gpu)
        inherited_environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))
        }
        self.environment = {
            **inherited_environment,
            **nvml.environment,
            "JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so"),
        }
        self.joulemap, self.program, self.file = joulemap, binaries / "joulemap-fake-cuda-program", folder / "run.joule"

    def record(self, steps: str = "60", startup_s: float = 0) -> dict:
        delay_command = ("sh", "-c", f'sleep {startup_s}; exec "$@"', "sh")
        command = (
            "record",
            "--json",
            "--sensors",
            "nvml",
            "-o",
            self.file,
            "--",
            *delay_command,
            self.program,
            steps,
            "8",
        )
        outcome = self.joulemap(*command, env=self.environment)
        assert outcome.code == 0, outcome.err
        return outcome.json

    def report(self, *flags: str) -> dict:
        outcome = self.joulemap("report", "--json", *flags, self.file)
        assert outcome.code == 0, outcome.err
        return outcome.json

    def doctor(self) -> dict:
        (sensor,) = self.joulemap("doctor", "--json", "--sensors", "nvml", env=self.environment).json["sensors"]
        return sensor


@pytest.fixture
def machine(joulemap, binaries, tmp_path):
    return lambda *statements: SharedMachine(joulemap, binaries, tmp_path, statements)


def codes(result: dict) -> set[str]:
    return {entry["code"] for entry in result["diagnostics"]}


def select_background_rows(report: dict) -> list[dict]:
    return [row for row in report["rows"] if row["path"] == ["background"] and row["device"] == "gpu0"]


@pytest.mark.parametrize("startup_s", [0, 0.4])
def test_energy_of_other_processes_on_a_gpu_is_background(machine, startup_s):
    """Independent of load: the program's kernels fill at most half of any interval, other processes 40 % of it."""
    shared_machine = machine(f"process {UNKNOWN_PID} 30", f"process {UNKNOWN_PID + 1} 10")
    shared_machine.record(startup_s=startup_s)
    for level in ("kernel", "region"):
        result = shared_machine.report("--by", level, "--mode", "integral")
        (row,) = select_background_rows(result)
        assert row["basis"] == "time-share"
        assert row["energy_j"] == pytest.approx(0.4 * result["measured_j"], rel=0.02)
        assert row["time_s"] == pytest.approx(0.4 * result["elapsed_s"], rel=0.001)
        total = result["attributed_j"] + result["idle_j"] + result["unattributed_j"]
        assert total == pytest.approx(result["measured_j"], rel=1e-6)
        # The GPU has constant power, so energies are proportional to time.
        own_gpu_s = (
            sum(result_row["time_s"] for result_row in result["rows"] if result_row["device"] == "gpu0") - row["time_s"]
        )
        idle_j = (0.6 - own_gpu_s / result["elapsed_s"]) * result["measured_j"]
        assert result["idle_j"] == pytest.approx(idle_j, abs=0.02 * result["measured_j"])
        assert "gpu_shared" in codes(result)
    (background_row,) = select_background_rows(shared_machine.report("--by", "kernel"))
    assert background_row["basis"] == "time-share"
    assert background_row["low_j"] < background_row["energy_j"] < background_row["high_j"]
    assert shared_machine.report("--by", "kernel") == shared_machine.report("--by", "kernel")


def test_without_other_processes_a_report_does_not_mention_them(machine):
    unshared_machine = machine()
    unshared_machine.record("20")
    result = unshared_machine.report("--by", "kernel")
    assert not select_background_rows(result)
    assert not {"gpu_shared", "gpu_shared_untold"} & codes(result)
    assert "others-utilization" not in json.dumps(result)
    assert "gpu_shared" not in codes(unshared_machine.doctor())


@pytest.mark.parametrize("what", ["denied", "unsupported"])
def test_co_tenants_with_unreadable_utilization_are_reported_and_not_estimated(machine, what):
    restricted_machine = machine(f"process {UNKNOWN_PID} 40", f"{what} process_utilization")
    assert "gpu_shared_untold" in codes(restricted_machine.record("20"))
    result = restricted_machine.report("--by", "kernel")
    assert "gpu_shared_untold" in codes(result)
    assert not select_background_rows(result)


def test_a_driver_that_lists_no_process_causes_no_diagnostic(machine):
    restricted_machine = machine(f"process {UNKNOWN_PID} 40", "denied processes process_utilization")
    assert not {"gpu_shared", "gpu_shared_untold"} & codes(restricted_machine.record("20"))
    assert not select_background_rows(restricted_machine.report("--by", "kernel"))


def test_doctor_lists_the_processes_on_a_gpu(machine):
    sensor = machine(f"process {UNKNOWN_PID} 0").doctor()
    (shared_gpu_diagnostic,) = [entry for entry in sensor["diagnostics"] if entry["code"] == "gpu_shared"]
    assert str(UNKNOWN_PID) in shared_gpu_diagnostic["message"] and "background" in shared_gpu_diagnostic["remedy"]


@pytest.mark.skipif(
    os.readlink("/proc/self/ns/pid") != INITIAL_PID_NAMESPACE, reason="in a container nobody who comes later is known"
)
def test_a_process_that_starts_later_is_background_from_then_on(machine):
    shared_machine = machine(f"process {UNKNOWN_PID} 40 3")
    shared_machine.record("750")
    result = shared_machine.report("--by", "kernel")
    (row,) = select_background_rows(result)
    assert 0 < row["time_s"] < 0.4 * (result["elapsed_s"] - 1)


def test_a_shared_gpu_adds_nothing_to_the_kernel_library(machine, tmp_path):
    shared_machine = machine(f"process {UNKNOWN_PID} 40")
    shared_machine.record("300")
    assert not (tmp_path / "data" / "kernels.joule").exists()
