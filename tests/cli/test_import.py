"""joulemap import: traces and power logs of other tools become a recording that report treats like its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.kineto_trace import begin_ns, training

LEVELS = ["domain", "phase", "layer", "op", "tensor", "function", "region", "kernel", "step", "epoch", "rank"]


@pytest.fixture
def imported(joulemap, tmp_path: Path):
    """imported("kineto", file, "--power", csv): a function report(by) with report.summary, the output of the import."""

    def run(*arguments: object):
        file = tmp_path / "imported.joule"
        outcome = joulemap("import", *arguments, "-o", file, "--json")
        assert outcome.code == 0, outcome.err

        def report(by: str = "domain") -> dict:
            result = joulemap("report", file, "--json", "--by", by)
            assert result.code == 0, result.err
            return result.json

        report.summary = outcome.json
        return report

    return run


def rows(report: dict, device: str) -> dict[str, dict]:
    return {" ".join(row["path"]): row for row in report["rows"] if row["device"] == device}


def codes(report: dict) -> set[str]:
    return {entry["code"] for entry in report["diagnostics"]}


def power_csv(path: Path, watts_of: dict, begin_s: float = -1, end_s: float = 2, period_s: float = 0.01) -> Path:
    """`watts_of`: domain -> a function of the seconds since the start of the trace."""
    lines = ["time_unix_ns,domain,kind,value"]
    for i in range(round((end_s - begin_s) / period_s) + 1):
        at_s = begin_s + i * period_s
        for domain, watts in watts_of.items():
            lines.append(f"{begin_ns() + round(at_s * 1e9)},{domain},power_w,{watts(at_s)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_without_power_times_are_reported_and_energies_null(imported, tmp_path):
    report = imported("kineto", training().write(tmp_path / "trace.json"))
    layers = report("layer")
    assert layers["measured_j"] is None and layers["attributed_j"] is None
    gpu, cpu = rows(layers, "gpu0"), rows(layers, "cpu")
    assert gpu["train forward Linear_0"]["time_s"] == pytest.approx(0.2)
    assert gpu["train backward Linear_0"]["time_s"] == pytest.approx(0.3)
    assert cpu["train forward Net"]["count"] == 2
    assert cpu["train optimizer SGD"]["time_s"] == pytest.approx(0.1)
    assert all(row["energy_j"] is None for row in layers["rows"])
    all_rows = [row for level in ("layer", "op", "kernel", "step") for row in report(level)["rows"]]
    assert {row["basis"] for row in all_rows} == {""}, "nothing was attributed"
    assert {row["path"][-1]: row["count"] for row in report("kernel")["rows"]} == {"gemm": 2, "gemm_backward": 2}
    assert len(report("step")["rows"]) == 2


@pytest.mark.parametrize("by", LEVELS)
def test_at_every_level_energies_add_up_to_what_was_measured(imported, tmp_path, by):
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 300.0, "package-0": lambda _: 100.0})
    result = imported("kineto", training().write(tmp_path / "trace.json"), "--power", power)(by)
    assert result["measured_j"] == pytest.approx(400.0, rel=1e-3)
    if result["attributed_j"] is not None:
        parts = result["attributed_j"] + result["idle_j"] + result["unattributed_j"]
        assert parts == pytest.approx(result["measured_j"], rel=1e-3)
        assert sum(row["energy_j"] or 0 for row in result["rows"]) == pytest.approx(result["attributed_j"], abs=1e-6)


def test_by_tensor_operations_of_different_shapes_are_rows_of_their_own(imported, tmp_path):
    trace = training()
    shapes = {"Input type": ["float", "c10::Half", "Scalar"]}
    for step in (0, 1):
        for i, weight_rows in enumerate((4, 4, 8)):
            dims = {"Input Dims": [[2, 3], [weight_rows, 3], []], **shapes}
            trace.add("cpu_op", "aten::matmul", step * 500_000 + 310_000 + i * 10_000, 5_000, **dims)
            trace.kernel("gemm", step * 500_000 + 320_000 + i * 10_000, 1_000,
                         trace.launch(step * 500_000 + 311_000 + i * 10_000))  # fmt: skip
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 300.0, "package-0": lambda _: 100.0})
    report = imported("kineto", trace.write(tmp_path / "trace.json"), "--power", power)
    result = report("tensor")
    matmul_rows = {(row["path"][-1], row["device"]): row for row in result["rows"] if "matmul" in row["path"][-1]}
    small_matmul_name, large_matmul_name = "aten::matmul [2,3] float16[4,3]", "aten::matmul [2,3] float16[8,3]"
    assert {key: row["count"] for key, row in matmul_rows.items()} == {
        (small_matmul_name, "cpu"): 4, (small_matmul_name, "gpu0"): 4,
        (large_matmul_name, "cpu"): 2, (large_matmul_name, "gpu0"): 2,
    }  # fmt: skip
    assert matmul_rows[small_matmul_name, "cpu"]["time_s"] == pytest.approx(0.02)
    assert all(row["energy_j"] > 0 for row in matmul_rows.values())
    by_op = [row for row in report("op")["rows"] if row["path"][-1] == "aten::matmul" and row["device"] == "cpu"]
    assert [row["count"] for row in by_op] == [6]
    unknown = next(entry for entry in result["diagnostics"] if entry["code"] == "shapes_unknown")
    assert unknown["count"] == 2 and "record_shapes=True" in unknown["remedy"]  # the layer and its gradient


def test_gpu_energy_is_attributed_to_layers_running_at_that_time(imported, tmp_path):
    """Power is 100 W during the first step and 300 W during the second."""
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda s: 100.0 if s < 0.5 else 300.0})
    result = imported("kineto", training().write(tmp_path / "trace.json"), "--power", power)("layer")
    gpu = rows(result, "gpu0")
    assert gpu["train forward Linear_0"]["energy_j"] == pytest.approx(0.1 * 100 + 0.1 * 300, rel=0.03)
    assert gpu["train backward Linear_0"]["energy_j"] == pytest.approx(0.15 * 100 + 0.15 * 300, rel=0.03)
    assert result["idle_j"] == pytest.approx(0.25 * 100 + 0.25 * 300, rel=0.03)


def test_cpu_time_that_no_trace_covers_is_not_idle(imported, tmp_path):
    power = power_csv(tmp_path / "power.csv", {"package-0": lambda _: 100.0})
    result = imported("kineto", training().write(tmp_path / "trace.json"), "--power", power)("layer")
    assert result["idle_j"] == 0 and result["unattributed_j"] > 10
    assert "cpu_time_from_trace" in codes(result)


def test_only_where_trace_and_samples_overlap_is_energy(imported, tmp_path):
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 200.0}, begin_s=0.25, end_s=0.75)
    report = imported("kineto", training().write(tmp_path / "trace.json"), "--power", power)
    assert report()["elapsed_s"] == pytest.approx(0.5)
    assert report()["measured_j"] == pytest.approx(100.0, rel=1e-3)


def test_steps_that_the_power_covers_in_part_count_in_part(imported, tmp_path):
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 300.0}, end_s=1.25)
    report = imported("kineto", training(steps=4).write(tmp_path / "trace.json"), "--power", power)
    by_step = report("step")
    assert "power_covers_part" in codes(by_step)
    assert [row["name"] for row in by_step["rows"]] == ["0", "1", "2"]
    assert sum(row["time_s"] for row in by_step["rows"]) == pytest.approx(by_step["elapsed_s"])
    assert by_step["rows"][2]["energy_j"] == pytest.approx(75, rel=0.01)
    assert by_step["steps"] == 3


def test_the_mean_energy_per_step_divides_by_fractions_of_steps(imported, tmp_path, joulemap):
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 300.0}, end_s=1.25)
    imported("kineto", training(steps=4).write(tmp_path / "trace.json"), "--power", power)
    assert "150.0 J each" in joulemap("report", tmp_path / "imported.joule").out


def test_traces_without_a_rank_that_overlap_share_their_steps(imported, tmp_path):
    traces = [training(pid=100 + i, device=i).write(tmp_path / f"{i}.json") for i in range(2)]
    report = imported("kineto", *traces)
    assert report()["steps"] == len(report("step")["rows"]) == 2
    assert {row["name"] for row in report("rank")["rows"]} == {"rank 0", "rank 1"}


def test_power_outside_the_trace_is_reported_and_gives_no_energy(imported, tmp_path):
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 200.0}, begin_s=100, end_s=101)
    report = imported("kineto", training().write(tmp_path / "trace.json"), "--power", power)
    for report_level in ("domain", "layer"):
        assert report(report_level)["measured_j"] is None
    assert all(row["energy_j"] is None for row in report("layer")["rows"])
    assert "power_does_not_overlap" in codes(report())


def test_offset_option_shifts_the_trace_in_time(imported, tmp_path):
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 200.0}, begin_s=99, end_s=103)
    trace = training().write(tmp_path / "trace.json")
    assert imported("kineto", trace, "--power", power, "--offset-ms", "100000")()["measured_j"] == pytest.approx(200.0)


def test_ranks_are_processes_of_one_recording_each_with_its_gpu(imported, tmp_path):
    power = power_csv(tmp_path / "power.csv", {"gpu0": lambda _: 100.0, "gpu1": lambda _: 200.0})
    first_rank_trace = training(pid=1).write(tmp_path / "rank0.json")
    second_rank_trace = training(pid=2).write(tmp_path / "rank1.json")
    result = imported("kineto", first_rank_trace, second_rank_trace, "--power", power, "--map", "1:0=gpu1")("kernel")
    assert rows(result, "gpu0")["gemm"]["energy_j"] == pytest.approx(20, rel=0.03)
    assert rows(result, "gpu1")["gemm"]["energy_j"] == pytest.approx(40, rel=0.03)


def test_the_index_of_a_gpu_does_not_depend_on_which_gpus_were_sampled(imported, tmp_path):
    power = power_csv(tmp_path / "power.csv", {"gpu1": lambda _: 100.0})
    result = imported("kineto", training(device=0).write(tmp_path / "trace.json"), "--power", power)("kernel")
    assert result["measured_j"] == pytest.approx(100, rel=1e-3)
    assert rows(result, "gpu0")["gemm"]["energy_j"] is None
    assert "gpu_not_measured" in codes(result)


def test_a_counter_and_polls_of_it_give_the_energy_between_the_edges(imported, tmp_path):
    lines = ["time_unix_ns,domain,kind,value"]
    for i in range(-100, 300):
        at_s = i * 0.01
        lines.append(f"{begin_ns() + round(at_s * 1e9)},package-0,energy_j,{1000 + 50 * at_s}")
        lines.append(f"{begin_ns() + round(at_s * 1e9)},gpu0,energy_j,{5000 + 300 * (i // 10) * 0.1}")
    power = tmp_path / "power.csv"
    power.write_text("\n".join(lines))
    report = imported("kineto", training().write(tmp_path / "trace.json"), "--power", power)
    domains = {domain["name"]: domain for domain in report()["domains"]}
    assert domains["package-0"]["measured_j"] == pytest.approx(50, rel=0.005)
    assert domains["gpu0"]["measured_j"] == pytest.approx(300, rel=0.05)


def test_a_package_is_counted_once_where_the_platform_was_sampled_too(imported, tmp_path):
    trace = training().write(tmp_path / "trace.json")
    package_power_csv = power_csv(tmp_path / "alone.csv", {"package-0": lambda _: 50.0, "core-0": lambda _: 20.0})
    platform_power_csv = power_csv(tmp_path / "all.csv", {"psys": lambda _: 80.0, "package-0": lambda _: 50.0})
    parts = {
        domain["name"]: domain["part_of"]
        for domain in imported("kineto", trace, "--power", package_power_csv)()["domains"]
    }
    assert parts == {"package-0": None, "core-0": "package-0"}
    assert imported("kineto", trace, "--power", package_power_csv)()["measured_j"] == pytest.approx(50, rel=1e-3)
    assert imported("kineto", trace, "--power", platform_power_csv)()["measured_j"] == pytest.approx(80, rel=1e-3)


def test_a_log_of_nvidia_smi_alone_is_a_recording(imported, tmp_path):
    log = tmp_path / "smi.csv"
    log_rows = [f"2026/11/15 11:23:{46 + i // 10}.{i % 10}00, {gpu}, GPU-{gpu}, {power} W"
                   for i in range(100 // 10) for gpu, power in ((0, "100.00"), (1, "[N/A]"))]  # fmt: skip
    log.write_text("timestamp, index, uuid, power.draw [W]\n" + "\n".join(log_rows) + "\n")
    report = imported("nvidia-smi", log, "--utc-offset", "+01:00")
    assert report()["measured_j"] == pytest.approx(90.0)
    assert report.summary["power_rows_dropped"] == 10
    assert report("layer")["rows"] == []


def test_an_older_file_is_kept_and_a_failure_leaves_nothing(joulemap, tmp_path):
    trace = training().write(tmp_path / "trace.json")
    file = tmp_path / "run.joule"
    file.write_text("older")
    assert joulemap("import", "kineto", tmp_path / "missing.json", "-o", file).code == 1
    assert file.read_text() == "older"
    assert joulemap("import", "kineto", trace, "-o", file).code == 0
    assert (tmp_path / "run.joule.old").read_text() == "older"
    assert not (tmp_path / "run.joule.d").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense", "x"),
        ("kineto",),
        ("kineto", "x", "--map", "a=b"),
        ("kineto", "x", "--utc-offset", "noon"),
        (),
        ("kineto", "x", "--offset-ms", "nan"),
        ("kineto", "x", "--offset-ms", "1e300"),
    ],
)
def test_wrong_usage_exits_with_2(joulemap, tmp_path, arguments):
    assert joulemap("import", *arguments, "-o", tmp_path / "f.joule").code == 2


def test_an_invalid_trace_or_power_file_exits_with_1(joulemap, tmp_path):
    invalid_file = tmp_path / "x"
    invalid_file.write_text("neither")
    trace = training().write(tmp_path / "trace.json")
    assert joulemap("import", "kineto", invalid_file, "-o", tmp_path / "f.joule").code == 1
    outcome = joulemap("import", "kineto", trace, "--power", invalid_file, "-o", tmp_path / "f.joule")
    assert outcome.code == 1 and "time_unix_ns,domain,kind,value" in outcome.err


def test_a_trace_without_a_clock_begins_at_the_given_time_or_with_the_power(imported, tmp_path):
    trace = tmp_path / "ort.json"
    trace.write_text(json.dumps([
        {"cat": "Session", "pid": 1, "tid": 1, "dur": 500000, "ts": 0, "ph": "X", "name": "model_run", "args": {}},
        {"cat": "Node", "pid": 1, "tid": 1, "dur": 400000, "ts": 10, "ph": "X", "name": "/fc/Gemm_kernel_time",
         "args": {"op_name": "Gemm", "provider": "CPUExecutionProvider"}},
    ]))  # fmt: skip
    power = power_csv(tmp_path / "power.csv", {"package-0": lambda _: 100.0}, begin_s=-1, end_s=9)
    report_without_start = imported("onnxruntime", trace, "--power", power)
    assert "clock_not_known" in codes(report_without_start())
    report_with_start = imported("onnxruntime", trace, "--power", power, "--start", begin_ns())
    assert "clock_not_known" not in codes(report_with_start())
    layers = rows(report_with_start("layer"), "cpu")
    assert layers["inference forward fc"]["time_s"] == pytest.approx(0.4)
    assert layers["inference forward fc"]["energy_j"] == pytest.approx(40, rel=0.05)
