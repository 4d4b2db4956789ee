"""`joulemap calibrate` on a GPU that is not there: the fake CUDA driver is loaded, and the fake NVML shows it."""

from __future__ import annotations

import os

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

pytestmark = pytest.mark.real_time

UUID = "GPU-11111111-2222-3333-4444-555555555555"
IDLE, ACTIVE_IDLE, LOADED = 76, 130, 480


@pytest.fixture
def machine(binaries, tmp_path):
    """machine("counter_lag_ms 10", cuda=["fail cuInit 100"]): the environment of a machine whose GPU has these traits."""

    def make(*traits: str, follows_load: bool = True, cuda: list[str] | None = None) -> dict[str, str]:
        log = tmp_path / "load-log"
        load = [f"load {log} {IDLE} {ACTIVE_IDLE} {LOADED}"] if follows_load else []
        nvml = FakeNvml(
            tmp_path, binaries / "libjoulemap-fake-nvml.so", FakeGpu(uuid=UUID, statements=[*load, *traits])
        )
        script = tmp_path / "fake-cuda-script"
        script.write_text("\n".join([f"device {UUID}", f"log {log}", *(cuda or [])]))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
        return {
            **clean,
            **nvml.environment,
            "JOULEMAP_CUDA": str(binaries / "libjoulemap-fake-cuda.so"),
            "JOULEMAP_FAKE_CUDA": str(script),
            "JOULEMAP_DATA": str(tmp_path / "data"),
        }

    return make


def calibrate(joulemap, environment: dict[str, str], *flags: str, seconds: float = 0.3) -> dict:
    arguments = ["calibrate", "--json", "--sensors", "nvml", "--seconds", seconds, *flags]
    outcome = joulemap(*arguments, env=environment)
    assert outcome.code == 0, outcome.err
    return outcome.json


def channels_of(told: dict) -> dict[str, dict]:
    return {entry["channel"]: entry for entry in told["calibration"]}


def diagnostics_of(told: dict) -> dict[str, str]:
    return {entry["code"]: entry["message"] for entry in told["diagnostics"]}


def test_square_waves_tell_how_every_sensor_follows(joulemap, machine, tmp_path):
    environment = machine(
        "counter_lag_ms 10", "instant_window_ms 30", "instant_gain 1.0076", "history_memory_ms 12", "sleep 0.8 100",
        "counter_spin_us 2000",
    )  # fmt: skip
    told = calibrate(joulemap, environment, seconds=3)
    assert told["loaded"] == ["gpu0"] and not {"gpu_not_loaded", "lag_not_found"} & set(diagnostics_of(told))
    found = channels_of(told)
    counter, instant = found["gpu0-energy"], found["gpu0-power-instant"]
    average, history = found["gpu0-power-average"], found["gpu0-power-history"]
    assert counter["lag_s"] == pytest.approx(0.010, abs=0.003)
    assert counter["lag_low_s"] < counter["lag_s"] < counter["lag_high_s"] < counter["lag_low_s"] + 0.01
    assert counter["window_s"] is None and counter["memory_s"] is None
    assert instant["window_s"] == pytest.approx(0.030, abs=0.006) and instant["memory_s"] is None
    assert instant["lag_s"] == pytest.approx(0, abs=0.005)
    assert average["window_s"] == pytest.approx(1, abs=0.05)
    assert history["memory_s"] == pytest.approx(0.012, abs=0.002) and history["window_s"] is None
    assert history["lag_s"] == pytest.approx(0, abs=0.003)
    for entry in (counter, instant, average, history):
        assert entry["idle_w"] == pytest.approx(IDLE, rel=0.02)
        assert entry["active_idle_w"] == pytest.approx(ACTIVE_IDLE, rel=0.03)
        assert entry["loaded_w"] == pytest.approx(LOADED, rel=0.03)
    assert instant["gain"] == pytest.approx(1.0076, abs=0.004) and instant["gain_of"] == "gpu0-energy"
    assert history["gain"] == pytest.approx(1, abs=0.004)
    assert counter["gain"] is None and counter["gain_spread"] == pytest.approx(0.005, abs=0.002)
    assert history["settle_s"] == pytest.approx(0, abs=0.03)
    assert history["sleep_s"] == pytest.approx(0.8, abs=0.06) and history["sleep_w"] == pytest.approx(100, rel=0.05)

    # It is kept, and frozen into recordings.
    recording = tmp_path / "run.joule"
    assert joulemap("record", "-o", recording, "--sensors", "nvml", "--", "true", env=environment).code == 0
    kept = channels_of(joulemap("report", "--json", recording).json)
    assert kept["gpu0-energy"]["lag_s"] == counter["lag_s"]
    assert kept["gpu0-power-history"]["memory_s"] == history["memory_s"]


def test_no_load_means_none(joulemap, machine, tmp_path):
    told = calibrate(joulemap, machine(), "--no-load")
    assert told["loaded"] == [] and "gpu_not_loaded" not in diagnostics_of(told)
    assert channels_of(told)["gpu0-energy"]["lag_s"] is None
    assert not (tmp_path / "load-log").exists() or not any((tmp_path / "load-log").read_bytes()[:8])


def test_a_machine_without_cuda_is_calibrated_as_far_as_it_goes(joulemap, machine):
    environment = machine()
    environment["JOULEMAP_CUDA"] = "/nowhere/libcuda.so.1"
    told = calibrate(joulemap, environment)
    assert "/nowhere/libcuda.so.1" in diagnostics_of(told)["gpu_not_loaded"]
    assert channels_of(told)["gpu0-power-average"]["read_wall_s"] > 0


@pytest.mark.parametrize("call", ["cuInit", "cuCtxCreate_v2", "cuModuleLoadData", "cuLaunchKernel", "cuCtxSynchronize"])
def test_what_the_driver_refuses_is_told_and_nothing_else_is_lost(joulemap, machine, call):
    told = calibrate(joulemap, machine(cuda=[f"fail {call} 2"]))
    message = diagnostics_of(told)["gpu_not_loaded"]
    assert call.removesuffix("_v2") in message and "pretended failure (CUDA error 2)" in message
    assert channels_of(told)["gpu0-power-average"]["read_wall_s"] > 0


def test_a_gpu_that_somebody_uses_is_left_alone(joulemap, machine, tmp_path):
    told = calibrate(joulemap, machine(follows_load=False), seconds=1.2)
    assert {"not_idle", "gpu_not_loaded"} <= set(diagnostics_of(told))
    assert "something else runs on it" in diagnostics_of(told)["gpu_not_loaded"]
    assert not (tmp_path / "load-log").exists()
