"""joulemap record around a program that uses a GPU, simulated by the fake CUPTI and the fake NVML."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # UUID that the fake CUPTI reports


@pytest.fixture
def record(binaries: Path, joulemap, tmp_path):
    """record("20", "10"): the fake program with these arguments, on a machine with a GPU at 300 W; then report(by)."""

    def run(*arguments: str, flags: tuple = (), program: tuple = (), statements: tuple = ()):
        # A model whose idle power is not known: here it is that of a busy GPU.
        gpu = FakeGpu(uuid=GPU, name="Fake GPU", power=[(0.0, 300.0)], statements=list(statements))
        nvml = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", gpu)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))}
        environment |= nvml.environment | {"JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so")}
        file = tmp_path / "run.joule"
        command = program or (binaries / "joulemap-fake-cuda-program", *arguments)
        outcome = joulemap("record", "--sensors", "nvml", *flags, "-o", file, "--", *command, env=environment)
        assert outcome.code == 0, outcome.err

        def report(by: str, *flags: str) -> dict:
            result = joulemap("report", "--json", "--by", by, *flags, file)
            assert result.code == 0, result.err
            return result.json

        return report

    return run


def rows_of(report: dict, device: str = "gpu0") -> dict[str, dict]:
    return {" ".join(row["path"]): row for row in report["rows"] if row["device"] == device}


def codes(report: dict) -> set[str]:
    return {entry["code"] for entry in report["diagnostics"]}


def test_every_kernel_has_its_scope_and_its_share_of_the_energy(record):
    report = record("60", "8")
    by_kernel = rows_of(report("kernel"))
    assert by_kernel["gemm"]["count"] == by_kernel["relu"]["count"] == 60 * 4
    assert by_kernel["gemm"]["time_s"] == pytest.approx(3 * by_kernel["relu"]["time_s"], rel=0.01)
    by_region = report("region")
    places = rows_of(by_region)
    assert places["first"]["count"] == 60 * 4
    assert places["first"]["energy_j"] == pytest.approx(3 * places["second"]["energy_j"], rel=0.1)
    assert places["first"]["power_w"] == pytest.approx(300, rel=0.1)
    # Power is constant, so the idle share of energy equals the share of time without a kernel: half of each step.
    total = by_region["attributed_j"] + by_region["idle_j"] + by_region["unattributed_j"]
    assert total == pytest.approx(by_region["measured_j"], rel=1e-3)
    busy_share = sum(row["time_s"] for row in places.values()) / by_region["elapsed_s"]
    assert by_region["idle_j"] == pytest.approx(by_region["measured_j"] * (1 - busy_share), rel=0.05)


def test_every_attribution_mode_conserves_energy_and_is_deterministic(record):
    report = record("60", "8")
    for mode in ("regress", "integral", "hold"):
        result = report("kernel", "--mode", mode)
        total = result["attributed_j"] + result["idle_j"] + result["unattributed_j"]
        assert total == pytest.approx(result["measured_j"], rel=1e-6), mode
        assert sum(row["energy_j"] for row in result["rows"]) == pytest.approx(result["attributed_j"], rel=1e-6)
        assert report("kernel", "--mode", mode) == result
    by_kernel = report("kernel")
    # The similarity of steps depends on the machine. Rows that the readings cannot separate are marked and noted once.
    assert ("kernels_by_time" in codes(by_kernel)) == any(row["basis"] == "time-share" for row in by_kernel["rows"])
    assert all(row["low_j"] < row["energy_j"] < row["high_j"] for row in by_kernel["rows"])


def test_a_gpu_at_its_power_limit_is_reported(record):
    assert "power_limited" in codes(record("150", "20", statements=("throttle 4",))("kernel"))
    assert "power_limited" not in codes(record("150", "20")("kernel"))


def test_a_time_range_has_its_share_of_energy_and_kernels(record, joulemap, tmp_path):
    report = record("150", "20", flags=("--trace", "full"))
    whole_run_report = report("kernel")
    assert whole_run_report["elapsed_s"] > 2.5
    begin, end = 0.25 * whole_run_report["elapsed_s"], 0.75 * whole_run_report["elapsed_s"]
    half_run_report = report("kernel", "--time", f"{begin},{end}")
    assert half_run_report["elapsed_s"] == pytest.approx(end - begin)
    assert half_run_report["measured_j"] == pytest.approx(300 * (end - begin), rel=0.05)
    assert rows_of(half_run_report)["gemm"]["count"] == pytest.approx(
        rows_of(whole_run_report)["gemm"]["count"] / 2, rel=0.25
    )
    total = half_run_report["attributed_j"] + half_run_report["idle_j"] + half_run_report["unattributed_j"]
    assert total == pytest.approx(half_run_report["measured_j"], rel=1e-3)
    for window, code in (("1,2", 0), ("1", 0), ("1000", 2), ("2,1", 2), ("-1", 2), ("x", 2), ("1,", 2)):
        outcome = joulemap("report", "--time", window, tmp_path / "run.joule")
        assert outcome.code == code, window


def test_steps_sum_to_the_energy_of_the_run(record):
    result = record("50", "4")("step")
    assert [row["name"] for row in result["rows"]] == [str(number) for number in range(50)]
    # On a busy machine the recorder may see a counter update too late for a few steps.
    assert median(row["power_w"] for row in result["rows"]) == pytest.approx(300, rel=0.1)
    energy_j = sum(row["energy_j"] for row in result["rows"])
    time_s = sum(row["time_s"] for row in result["rows"])
    assert energy_j == pytest.approx(300 * time_s, rel=0.1)


def test_a_program_without_steps_has_its_kernels_reported(record):
    result = record("20", "4", "no-steps")("kernel")
    assert rows_of(result)["gemm"]["count"] == 40


def test_an_exit_without_cleanup_loses_at_most_the_last_second(record):
    result = record("120", "4", "quick-exit")("kernel")
    assert rows_of(result)["gemm"]["count"] >= 2 * (120 - 60)
    assert not result["complete"]


def test_a_forked_child_is_recorded_separately_and_its_parent_continues(record):
    report = record("20", "4", "fork")
    assert rows_of(report("kernel"))["gemm"]["count"] == 40
    assert "child" in rows_of(report("region"), "cpu")


def test_records_taken_by_another_profiler_are_reported_as_lost_and_recovered_later(record):
    result = record("300", "4", "thief")("kernel")
    assert "kernels_lost" in codes(result)
    lost_steps = 300 - rows_of(result)["gemm"]["count"] / 2
    assert 0 < lost_steps < 300
    assert result["unattributed_j"] > 0.5 * 300 * 0.5  # energy used while records were lost: unattributed, not idle


def test_trace_option_selects_kernels_only_or_nothing(record):
    assert rows_of(record("10", "4", flags=("--trace", "kernels"))("kernel"))
    environment = record(program=("sh", "-c", 'test -z "$CUDA_INJECTION64_PATH$PYTHONPATH"'), flags=("--trace", "off"))
    assert "nothing_captured" in codes(environment("kernel"))
