"""NVIDIA GPUs, simulated by the fake NVML of tests/fake_nvml: the output of doctor and the measurements of stat."""

from __future__ import annotations

import os

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

FIRST_GPU, SECOND_GPU = "GPU-aaaaaaaa-0000", "GPU-bbbbbbbb-0000"


@pytest.fixture
def fake_nvml(binaries, tmp_path):
    """fake_nvml(gpu, ...): a machine with these GPUs. `old`: only with the functions of an old driver."""

    def make(*gpus: FakeGpu, old: bool = False) -> FakeNvml:
        library = "libjoulemap-old-fake-nvml.so" if old else "libjoulemap-fake-nvml.so"
        return FakeNvml(tmp_path, binaries / library, *gpus)

    return make


def doctor(joulemap, machine: FakeNvml, **environment: str) -> dict:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    outcome = joulemap("doctor", "--json", "--sensors", "nvml", env={**clean, **machine.environment, **environment})
    assert outcome.code == 0
    (sensor,) = outcome.json["sensors"]
    return sensor


def list_domains(sensor: dict) -> set[str]:
    return {channel["domain"] for channel in sensor["channels"]}


def codes(diagnostics: list[dict]) -> set[str]:
    return {diagnostic["code"] for diagnostic in diagnostics}


def run_stat(joulemap, machine: FakeNvml, *command: str) -> tuple[dict, dict[str, dict]]:
    outcome = joulemap("stat", "--json", "--sensors", "nvml", "--", *command, env={**os.environ, **machine.environment})
    assert outcome.code == 0
    (run,) = outcome.json["runs"]
    return run, {domain["name"]: domain for domain in run["domains"]}


def true_joules(machine: FakeNvml, run: dict, gpu: int = 0) -> float:
    begin = run["start_monotonic_ns"] * 1e-9
    return machine.joules(begin, begin + run["elapsed_s"], gpu)


def is_energy_accurate(domain: dict, true_energy_j: float) -> bool:
    """True to 1 % or within the reported uncertainty: on a busy machine some readings come late."""
    return abs(domain["joules"] - true_energy_j) <= max(0.01 * true_energy_j, domain["uncertainty_j"])


def test_doctor_lists_the_gpu_and_its_channels(joulemap, fake_nvml):
    sensor = doctor(joulemap, fake_nvml(FakeGpu()))
    assert sensor["state"] == "measured"
    assert "gpu0 (Fake H200)" in sensor["reason"]
    units = {channel["name"]: (channel["kind"], channel["unit"]) for channel in sensor["channels"]}
    assert units["gpu0-energy"] == ("counter", "J")
    assert units["gpu0-power-instant"] == ("gauge", "W")
    assert units["gpu0-temperature"] == ("gauge", "degC")
    assert units["gpu0-sm-clock"] == ("gauge", "MHz")


def test_a_missing_driver_is_reported(joulemap):
    environment = {name: value for name, value in os.environ.items() if name != "JOULEMAP_NVML"}
    (sensor,) = joulemap("doctor", "--json", "--sensors", "nvml", env=environment).json["sensors"]
    if sensor["state"] == "absent":
        assert "no NVIDIA driver" in sensor["reason"] or "GPU" in sensor["reason"]


def test_a_sysroot_takes_a_named_library_but_not_the_real_one(joulemap, sysroots, fake_nvml):
    machine = fake_nvml(FakeGpu())
    arguments = ["doctor", "--json", "--sensors", "nvml", "--sysroot", sysroots / "no-sensors"]
    environment = {name: value for name, value in os.environ.items() if name != "JOULEMAP_NVML"}
    assert joulemap(*arguments, env=environment).json["sensors"][0]["state"] == "absent"
    doctor_outcome = joulemap(*arguments, env={**environment, **machine.environment})
    assert doctor_outcome.json["sensors"][0]["state"] == "measured"


@pytest.mark.parametrize(
    ("visible", "domains"),
    [
        ("0", {"gpu0", "gpu0-memory"}),
        ("1", {"gpu1", "gpu1-memory"}),
        ("1,0", {"gpu0", "gpu0-memory", "gpu1", "gpu1-memory"}),
        ("GPU-bbbb", {"gpu1", "gpu1-memory"}),
        ("0,-1,1", {"gpu0", "gpu0-memory"}),
        ("7", set()),
        ("", set()),
    ],
)
def test_only_visible_gpus_are_measured(joulemap, fake_nvml, visible, domains):
    machine = fake_nvml(
        FakeGpu(FIRST_GPU, statements=["pci 00000000:01:00.0"]),
        FakeGpu(SECOND_GPU, statements=["pci 00000000:02:00.0"]),
    )
    sensor = doctor(joulemap, machine, CUDA_VISIBLE_DEVICES=visible)
    assert list_domains(sensor) == domains
    assert sensor["state"] == ("measured" if domains else "absent")
    if len(domains) < 4:
        assert "CUDA_VISIBLE_DEVICES hides" in sensor["reason"]
    assert ("cuda_visible_devices_invalid" in codes(sensor["diagnostics"])) == (visible == "7")


def test_cuda_indices_of_different_gpus_are_warned_about(joulemap, fake_nvml):
    machine = fake_nvml(FakeGpu(FIRST_GPU), FakeGpu(SECOND_GPU, name="Fake RTX"))
    assert "cuda_device_order" in codes(doctor(joulemap, machine, CUDA_VISIBLE_DEVICES="0")["diagnostics"])
    sure = doctor(joulemap, machine, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert "cuda_device_order" not in codes(sure["diagnostics"])


def test_a_mig_instance_is_measured_as_its_whole_gpu(joulemap, fake_nvml):
    machine = fake_nvml(FakeGpu(FIRST_GPU), FakeGpu(SECOND_GPU, statements=["mig MIG-1234"]))
    sensor = doctor(joulemap, machine, CUDA_VISIBLE_DEVICES="MIG-1234")
    assert list_domains(sensor) == {"gpu1", "gpu1-memory"}
    assert {"mig_whole_gpu", "mig_mode"} <= codes(sensor["diagnostics"])


def test_stat_measures_what_the_gpu_used(joulemap, fake_nvml):
    statements = ["counter_spin_us 2000", "counter_phase_ms 37", "power_phase_ms 57"]
    machine = fake_nvml(FakeGpu(power=[(0, 100), (0.4, 500)], repeat_s=0.9, statements=statements))
    run, domains = run_stat(joulemap, machine, "sleep", "2")
    gpu = domains["gpu0"]
    truth = true_joules(machine, run)
    assert gpu["provenance"] == "measured" and gpu["counted"] is True
    assert is_energy_accurate(gpu, truth)
    assert gpu["uncertainty_j"] < 0.2 * truth
    assert domains["gpu0-memory"]["counted"] is False
    assert run["measured_j"] == pytest.approx(gpu["joules"])
    assert {check["channel"] for check in gpu["checks"]} == {"gpu0-power-instant", "gpu0-power-average"}


def test_averaging_lag_is_not_reported_as_sensor_disagreement(joulemap, fake_nvml):
    statements = ["unsupported instant"]
    machine = fake_nvml(FakeGpu(power=[(0, 80), (0.3, 700)], statements=statements))
    run, _ = run_stat(joulemap, machine, "sleep", "1")
    assert "sensors_disagree" not in codes(run["diagnostics"])


def test_a_card_without_a_counter_is_measured_by_its_power(joulemap, fake_nvml):
    machine = fake_nvml(FakeGpu(power=[(0, 300)], statements=["unsupported energy"]))
    assert "no_energy_counter" in codes(doctor(joulemap, machine)["diagnostics"])
    run, domains = run_stat(joulemap, machine, "sleep", "0.5")
    assert is_energy_accurate(domains["gpu0"], true_joules(machine, run))


def test_an_old_driver_provides_power_samples(joulemap, fake_nvml):
    machine = fake_nvml(FakeGpu(power=[(0, 300)]), old=True)
    run, domains = run_stat(joulemap, machine, "sleep", "0.5")
    assert is_energy_accurate(domains["gpu0"], true_joules(machine, run))


def test_a_gpu_lost_from_the_bus_keeps_its_data_so_far_and_other_gpus_keep_all(joulemap, fake_nvml, tmp_path):
    loss_trigger_file = tmp_path / "gone"
    machine = fake_nvml(
        FakeGpu(FIRST_GPU, power=[(0, 200)], statements=[f"lost_when {loss_trigger_file}"]),
        FakeGpu(SECOND_GPU, power=[(0, 300)]),
    )
    run, domains = run_stat(joulemap, machine, "sh", "-c", f"sleep 1.2; touch {loss_trigger_file}; sleep 1.2")
    lost_unix_s = loss_trigger_file.stat().st_mtime_ns * 1e-9
    used_j = 200 * (lost_unix_s - run["start_unix_ns"] * 1e-9)
    lost_gpu_domain = domains["gpu0"]
    assert 0 < lost_gpu_domain["joules"] < used_j + lost_gpu_domain["uncertainty_j"]
    assert lost_gpu_domain["joules"] + lost_gpu_domain["uncertainty_j"] > true_joules(
        machine, run
    )  # it may have kept its power
    assert {"sensor_vanished", "energy_missing"} <= codes(run["diagnostics"])
    assert is_energy_accurate(domains["gpu1"], true_joules(machine, run, 1))


def test_a_denied_gpu_gets_a_reason_and_a_remedy(joulemap, fake_nvml):
    machine = fake_nvml(FakeGpu(statements=["denied energy instant average usage memory_power"]))
    sensor = doctor(joulemap, machine)
    assert sensor["state"] == "denied"
    assert "Insufficient Permissions" in sensor["reason"] and "/dev/nvidia" in sensor["remedy"]
