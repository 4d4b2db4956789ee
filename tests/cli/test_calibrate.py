"""`joulemap calibrate` on a simulated GPU: the fake CUDA driver takes the load, and the fake NVML reports it.

src/calibration/calibration_test.cc tests the accuracy of lags, windows and gains in virtual time.
"""

from __future__ import annotations

import os

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

UUID = "GPU-11111111-2222-3333-4444-555555555555"
IDLE_W, ACTIVE_IDLE_W, LOADED_W = 76, 130, 480


@pytest.fixture
def machine(binaries, tmp_path):
    """machine("counter_lag_ms 10", cuda=["fail cuInit 100"]): the environment of a machine whose GPU has these traits."""

    def make(*traits: str, follows_load: bool = True, cuda: list[str] | None = None) -> dict[str, str]:
        log = tmp_path / "load-log"
        load = [f"load {log} {IDLE_W} {ACTIVE_IDLE_W} {LOADED_W}"] if follows_load else []
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


def channels_of(result: dict) -> dict[str, dict]:
    return {entry["channel"]: entry for entry in result["calibration"]}


def messages_by_code(result: dict) -> dict[str, str]:
    return {entry["code"]: entry["message"] for entry in result["diagnostics"]}


def test_calibration_by_square_waves_is_stored_in_recordings(joulemap, machine, tmp_path):
    # A history of 200 ms: a reader that gets no processor for a while loses none of it.
    environment = machine("counter_lag_ms 10", "history_memory_ms 200", "sleep 0.8 100", "counter_spin_us 2000")
    result = calibrate(joulemap, environment, seconds=1)
    assert result["loaded"] == ["gpu0"] and "gpu_not_loaded" not in messages_by_code(result)
    calibrated_channels = channels_of(result)
    for name in ("gpu0-energy", "gpu0-power-instant", "gpu0-power-average", "gpu0-power-history"):
        levels = [calibrated_channels[name][level] for level in ("idle_w", "active_idle_w", "loaded_w")]
        assert None not in levels and levels == sorted(levels), (name, levels, result["diagnostics"])

    recording = tmp_path / "run.joule"
    assert joulemap("record", "-o", recording, "--sensors", "nvml", "--", "true", env=environment).code == 0
    recorded_channels = channels_of(joulemap("report", "--json", recording).json)
    for name, key in (("gpu0-energy", "lag_s"), ("gpu0-energy", "loaded_w"), ("gpu0-power-history", "memory_s")):
        assert recorded_channels[name][key] == calibrated_channels[name][key], (name, key)


def test_no_load_option_runs_no_gpu_load(joulemap, machine, tmp_path):
    result = calibrate(joulemap, machine(), "--no-load")
    assert result["loaded"] == [] and "gpu_not_loaded" not in messages_by_code(result)
    assert channels_of(result)["gpu0-energy"]["lag_s"] is None
    assert not (tmp_path / "load-log").exists() or not any((tmp_path / "load-log").read_bytes()[:8])


def test_calibration_without_cuda_measures_read_times(joulemap, machine):
    environment = machine()
    environment["JOULEMAP_CUDA"] = "/nowhere/libcuda.so.1"
    result = calibrate(joulemap, environment)
    assert "/nowhere/libcuda.so.1" in messages_by_code(result)["gpu_not_loaded"]
    assert channels_of(result)["gpu0-power-average"]["read_wall_s"] > 0


@pytest.mark.parametrize("call", ["cuInit", "cuCtxCreate_v2", "cuModuleLoadData", "cuLaunchKernel", "cuCtxSynchronize"])
def test_failed_cuda_calls_are_reported_and_calibration_continues(joulemap, machine, call):
    result = calibrate(joulemap, machine(cuda=[f"fail {call} 2"]))
    message = messages_by_code(result)["gpu_not_loaded"]
    assert call.removesuffix("_v2") in message and "pretended failure (CUDA error 2)" in message
    assert channels_of(result)["gpu0-power-average"]["read_wall_s"] > 0


def test_calibration_does_not_load_a_gpu_in_use(joulemap, machine, tmp_path):
    result = calibrate(joulemap, machine(follows_load=False), seconds=1.2)
    assert {"not_idle", "gpu_not_loaded"} <= set(messages_by_code(result))
    assert "other processes run on it" in messages_by_code(result)["gpu_not_loaded"]
    assert not (tmp_path / "load-log").exists()
