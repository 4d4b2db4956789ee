"""Attribution of unusual, scarce or wrong data: a best estimate, and a diagnostic that names the problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.kineto_trace import KinetoTrace, begin_ns, training

HEADER = "time_unix_ns,domain,kind,value"


@pytest.fixture
def import_and_report(joulemap, tmp_path: Path):
    """import_and_report(trace, power rows): imports them and returns a report function by level."""

    def run(trace: KinetoTrace, power: list[str], *flags: object):
        (tmp_path / "power.csv").write_text("\n".join([HEADER, *power]) + "\n")
        file = tmp_path / "imported.joule"
        outcome = joulemap("import", "kineto", trace.write(tmp_path / "trace.json"), "--power", tmp_path / "power.csv",
                           "-o", file, *flags)  # fmt: skip
        assert outcome.code == 0, outcome.err

        def report(by: str = "layer") -> dict:
            result = joulemap("report", file, "--json", "--by", by)
            assert result.code == 0, result.err
            assert_energy_is_conserved(result.json)
            return result.json

        return report

    return run


def assert_energy_is_conserved(report: dict) -> None:
    if report["attributed_j"] is None:
        assert all(row["energy_j"] is None for row in report["rows"])
        return
    parts = report["attributed_j"] + report["idle_j"] + report["unattributed_j"]
    assert parts == pytest.approx(report["measured_j"], rel=1e-3)
    assert sum(row["energy_j"] or 0 for row in report["rows"]) == pytest.approx(report["attributed_j"], abs=1e-6)


def codes(report: dict) -> dict[str, int]:
    return {entry["code"]: entry["count"] for entry in report["diagnostics"]}


def power_csv_lines(
    watts, begin_s: float = -1, end_s: float = 2, period_s: float = 0.01, domain: str = "gpu0"
) -> list[str]:
    times = [begin_s + i * period_s for i in range(round((end_s - begin_s) / period_s) + 1)]
    return [f"{begin_ns() + round(s * 1e9)},{domain},power_w,{watts(s) if callable(watts) else watts}" for s in times]


def counter_csv_lines(joules, begin_s: float = -1, end_s: float = 2, period_s: float = 0.01) -> list[str]:
    times = [begin_s + i * period_s for i in range(round((end_s - begin_s) / period_s) + 1)]
    return [f"{begin_ns() + round(s * 1e9)},gpu0,energy_j,{joules(s):.6f}" for s in times]


def test_without_kernels_the_energy_of_a_gpu_is_unattributed_and_not_idle(import_and_report):
    trace = training()
    trace.events = [event for event in trace.events if event["cat"] != "kernel"]
    result = import_and_report(trace, power_csv_lines(300.0))()
    assert result["measured_j"] == pytest.approx(300.0 * result["elapsed_s"], rel=1e-3)
    assert result["unattributed_j"] == pytest.approx(result["measured_j"], rel=1e-3)


def test_one_power_sample_gives_no_energy(import_and_report):
    result = import_and_report(training(), power_csv_lines(300.0, begin_s=0.5, end_s=0.5))()
    assert result["measured_j"] is None and result["attributed_j"] is None
    assert result["rows"] and "no_power" in codes(result)


def test_energy_lost_at_a_counter_reset_is_reported_and_the_rest_kept(import_and_report):
    """The counter rises at 300 W and restarts at 0 after 0.5 s."""
    result = import_and_report(
        training(), counter_csv_lines(lambda s: 1000 + 300 * s if s < 0.5 else 300 * (s - 0.5))
    )()
    assert result["measured_j"] == pytest.approx(300.0 * result["elapsed_s"], rel=0.03)
    assert any("reset" in entry["code"] or "reset" in entry["message"] for entry in result["diagnostics"])


def test_power_samples_with_a_clock_set_back_are_reported(import_and_report):
    """After 1 s the clock is set back by 0.5 s: two sections of the log cover the same time."""
    overlapping_power_lines = power_csv_lines(600.0, begin_s=0.5, end_s=1.5)
    result = import_and_report(training(), power_csv_lines(300.0, end_s=1.0) + overlapping_power_lines)()
    assert "power_out_of_order" in codes(result)


def test_power_samples_with_a_clock_set_ahead_have_a_reported_gap(import_and_report):
    result = import_and_report(
        training(steps=20), power_csv_lines(300.0, end_s=1.0) + power_csv_lines(300.0, begin_s=7.0, end_s=11.0)
    )()
    assert codes(result)["power_gap"] == 1


def test_power_samples_outside_the_trace_give_no_energy(import_and_report):
    result = import_and_report(training(), power_csv_lines(300.0, begin_s=100, end_s=101))()
    assert result["measured_j"] is None and "power_does_not_overlap" in codes(result)


def test_a_class_observed_once_is_attributed_by_time_and_reports_it(import_and_report):
    trace = training(steps=10, step_us=100_000)
    trace.kernel("once", 50_000, 20, trace.launch(40_000))
    result = import_and_report(trace, counter_csv_lines(lambda s: 1000 + 300 * s, period_s=0.1))("kernel")
    once = next(row for row in result["rows"] if row["name"] == "once")
    assert once["count"] == 1 and once["basis"] == "time-share"
    assert once["energy_j"] == pytest.approx(300 * 20e-6, rel=1.0)


@pytest.mark.parametrize("bad", ["nan", "-5", "-inf", "inf", "1e400", "", "watts"])
def test_invalid_power_values_are_dropped_and_counted(import_and_report, bad):
    rows = power_csv_lines(lambda s: bad if abs(s - 0.5) < 0.055 else 300.0)
    result = import_and_report(training(), rows)()
    assert result["measured_j"] == pytest.approx(300.0 * result["elapsed_s"], rel=1e-3)
    assert codes(result)["power_rows_dropped"] == 11


def test_events_of_zero_length_count_and_negative_ones_are_dropped_and_reported(import_and_report):
    trace = training()
    trace.kernel("short", 210_000, 0, trace.launch(140_000))
    trace.kernel("negative", 220_000, -5, trace.launch(141_000))
    trace.add("cpu_op", "aten::negative", 150_000, -1)
    result = import_and_report(trace, power_csv_lines(300.0))("kernel")
    rows = {row["name"]: row for row in result["rows"]}
    assert rows["short"]["count"] == 1 and rows["short"]["time_s"] == 0 and rows["short"]["energy_j"] == 0
    assert "negative" not in rows and codes(result)["import.events-dropped"] == 2


def test_a_gpu_with_an_unexpected_index_is_not_mistaken_for_the_first(import_and_report):
    trace = training()
    unexpected_gpu_trace = KinetoTrace(device=5000)
    unexpected_gpu_trace.kernel("elsewhere", 250_000, 1000, 0)
    trace.events += unexpected_gpu_trace.events
    result = import_and_report(trace, power_csv_lines(300.0))("kernel")
    unmeasured_kernel_row = next(row for row in result["rows"] if row["name"] == "elsewhere")
    assert unmeasured_kernel_row["device"] != "gpu0" and unmeasured_kernel_row["energy_j"] is None
    assert codes(result)["import.odd-devices"] == 1 and "gpu_not_measured" in codes(result)


def test_call_counts_of_layers_known_by_name_only_are_null_and_reported(joulemap, tmp_path):
    """ONNX Runtime profiles name nodes after layers but do not contain calls of layers."""
    nodes = [{"cat": "Node", "pid": 1, "tid": 1, "ts": 10 + i * 10, "dur": 7, "ph": "X", "name": f"/fc/{op}_kernel_time",
              "args": {"op_name": op}} for i, op in enumerate(("MatMul", "Add", "MatMul"))]  # fmt: skip
    (tmp_path / "profile.json").write_text(json.dumps(nodes))
    file = tmp_path / "run.joule"
    assert joulemap("import", "onnxruntime", tmp_path / "profile.json", "-o", file).code == 0
    layers = joulemap("report", file, "--json", "--by", "layer").json
    assert [row["count"] for row in layers["rows"]] == [None] and codes(layers)["counts_unknown"] == 1
    operations = joulemap("report", file, "--json", "--by", "op").json
    assert {row["name"]: row["count"] for row in operations["rows"]} == {"MatMul": 2, "Add": 1}
    assert "counts_unknown" not in codes(operations)
