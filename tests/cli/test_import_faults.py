"""joulemap import of broken, unusual or huge files: no crash, and every guess has a diagnostic."""

from __future__ import annotations

import gzip
import json
import os
import stat
from pathlib import Path

import pytest
from support.kineto_trace import BASE_NS, KinetoTrace, training


@pytest.fixture
def imported(joulemap, tmp_path: Path):
    """imported("kineto", file, ...): the summary of the import; reported(by): the report of the recording."""

    def run(*arguments: object) -> dict:
        outcome = joulemap("import", *arguments, "-o", tmp_path / "imported.joule", "--json")
        assert outcome.code == 0, outcome.err
        return outcome.json

    return run


@pytest.fixture
def report_import(joulemap, tmp_path: Path):
    return lambda report_level: joulemap("report", tmp_path / "imported.joule", "--json", "--by", report_level).json


def result(report: dict) -> dict[str, int]:
    """Count of each diagnostic code."""
    counts: dict[str, int] = {}
    for entry in report["diagnostics"]:
        counts[entry["code"]] = counts.get(entry["code"], 0) + entry["count"]
    return counts


def test_a_device_is_not_replaced_by_a_recording(joulemap, tmp_path):
    trace = training().write(tmp_path / "trace.json")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    outcome = joulemap("import", "kineto", trace, "-o", pipe)
    assert outcome.code == 2 and "not a file" in outcome.err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert joulemap("import", "kineto", trace, "-o", "").code == 2


def write(path: Path, trace: KinetoTrace, **members: object) -> Path:
    path.write_text(json.dumps({"schemaVersion": 1, **members, "traceEvents": trace.events}))
    return path


@pytest.mark.parametrize("base_ns", [None, BASE_NS])
def test_one_damaged_time_does_not_move_or_stretch_the_trace(imported, report_import, tmp_path, base_ns):
    """Without a base, times are Unix microseconds: one timestamp in 1970 must not shift the others."""
    trace = training()
    if base_ns is None:
        for event in trace.events:
            event["ts"] += BASE_NS // 1000
    for wrong_time_us in (0, 3 * 10**15):
        trace.events.append({**trace.events[-1], "ts": wrong_time_us - (0 if base_ns is None else 10**15)})
    summary = imported(
        "kineto", write(tmp_path / "t.json", trace, **({"baseTimeNanoseconds": base_ns} if base_ns else {}))
    )
    assert summary["events_dropped"] == 2
    assert summary["kernels"] == 4 and summary["elapsed_s"] == pytest.approx(1.0)
    assert "import.no-base-time" not in result(summary)
    assert len(report_import("step")["rows"]) == 2


@pytest.mark.parametrize("category, prefix, by", [("user_annotation", "region ", "region"),
                                                  ("python_function", "nn.Module: M_", "layer")])  # fmt: skip
def test_unbounded_nesting_is_counted_with_its_enclosing_scope(imported, report_import, tmp_path, category, prefix, by):
    trace = KinetoTrace()
    nesting_depth = 20_000
    for i in range(nesting_depth):
        trace.add(category, f"{prefix}{i}", i, 2 * (nesting_depth - i))
    summary = imported("kineto", trace.write(tmp_path / "t.json"))
    limit = 64 if by == "region" else 256
    assert result(summary)["nested_too_deep"] == nesting_depth - limit
    rows = report_import(by)["rows"]
    assert len(rows) == limit
    assert sum(row["time_s"] for row in rows) == pytest.approx(2 * nesting_depth * 1e-6)


def test_threads_outside_of_any_scope_cost_nothing(imported, report_import, tmp_path):
    """100,000 short threads, one after another, over 200 seconds."""
    trace = KinetoTrace()
    for i in range(100_000):
        trace.add("cpu_op", "aten::mm", i * 2000, 1000, tid=i)
    assert imported("kineto", trace.write(tmp_path / "t.json"))["thread_s"] == pytest.approx(100)
    assert report_import("op")["rows"][0]["count"] == 100_000


def test_an_operation_has_its_own_time_and_not_that_of_the_optimizer_around_it(imported, report_import, tmp_path):
    trace = KinetoTrace()
    trace.add("user_annotation", "Optimizer.step#SGD.step", 0, 1000)
    for start in (100, 200):
        trace.add("cpu_op", "aten::mul_", start, 10)
    imported("kineto", trace.write(tmp_path / "t.json"))
    times = {" ".join(row["path"]): (row["count"], row["time_s"]) for row in report_import("op")["rows"]}
    assert times == {
        "train optimizer SGD": (1, pytest.approx(980e-6)),
        "train optimizer SGD aten::mul_": (2, pytest.approx(20e-6)),
    }


def test_an_empty_trace_is_reported(imported, tmp_path):
    assert result(imported("kineto", KinetoTrace().write(tmp_path / "t.json")))["no_events"] == 1


def test_begin_and_end_events_are_counted_as_dropped(imported, tmp_path):
    trace = training()
    trace.events += [{**trace.events[0], "ph": "B"}, {**trace.events[0], "ph": "E"}]
    assert imported("kineto", trace.write(tmp_path / "t.json"))["events_dropped"] == 2


def test_an_unused_mapping_is_reported(imported, tmp_path):
    trace = training().write(tmp_path / "t.json")
    assert "map_not_used" not in result(imported("kineto", trace, "--map", "0=gpu1"))
    assert (
        result(imported("kineto", trace, "--map", "5=gpu1", "--map", "3:0=gpu1", "--map", "0=gpu1"))["map_not_used"]
        == 2
    )


def test_power_that_was_read_once_is_reported_as_such(imported, tmp_path):
    power = tmp_path / "power.csv"
    power.write_text(f"time_unix_ns,domain,kind,value\n{BASE_NS + 5_500_000_000},gpu0,power_w,100\n")
    codes = result(imported("kineto", training().write(tmp_path / "t.json"), "--power", power))
    assert "power_told_once" in codes and "power_does_not_overlap" not in codes


def test_a_domain_that_does_not_overlap_has_no_readings(joulemap, tmp_path):
    power = tmp_path / "power.csv"
    rows = [f"{BASE_NS + i * 100_000_000},gpu0,power_w,100" for i in range(20)]
    rows += [f"{BASE_NS + 60_000_000_000 + i * 100_000_000},package-0,energy_j,{i}" for i in range(20)]
    power.write_text("\n".join(["time_unix_ns,domain,kind,value", *rows]) + "\n")
    assert joulemap("import", "csv", power, "-o", tmp_path / "imported.joule").code == 0
    report = joulemap("report", tmp_path / "imported.joule", "--json").json
    assert {domain["name"]: domain["reason"] for domain in report["domains"]}["package-0"] == "no-readings"
    assert {"power_does_not_overlap", "energy_missing"} <= result(report).keys()
    assert "window_too_short" not in result(report)
    assert report["overhead"]["cpu_s"] is None, "an import has no recorder"


def test_a_missing_input_is_no_unknown_format(joulemap, tmp_path):
    for name in ("missing.json", "./missing"):
        outcome = joulemap("import", name, cwd=tmp_path)
        assert outcome.code == 1 and "No such file" in outcome.err, outcome.err
    assert joulemap("import", "missing", cwd=tmp_path).code == 2


ONNXRUNTIME_TRACE = [
    {"cat": "Session", "pid": 1, "tid": 1, "dur": 500000, "ts": 0, "ph": "X", "name": "model_run", "args": {}},
    {"cat": "Node", "pid": 1, "tid": 1, "dur": 400000, "ts": 10, "ph": "X", "name": "/fc/Gemm_kernel_time",
     "args": {"op_name": "Gemm", "provider": "CPUExecutionProvider"}},
]  # fmt: skip


def test_every_format_that_is_text_may_be_compressed(imported, tmp_path):
    trace = tmp_path / "ort.json.gz"
    trace.write_bytes(gzip.compress(json.dumps(ONNXRUNTIME_TRACE).encode()))
    power = tmp_path / "power.csv.gz"
    rows = "".join(f"{BASE_NS + i * 100_000_000},package-0,power_w,{100 + i % 7}\n" for i in range(1000))
    compressed_log = gzip.compress(("time_unix_ns,domain,kind,value\n" + rows).encode())
    power.write_bytes(compressed_log)
    summary = imported("onnxruntime", trace, "--power", power, "--start", BASE_NS)
    assert summary["samples"] == 1000 and summary["thread_s"] == pytest.approx(0.5, rel=0.2)
    assert "file_cut" not in result(summary)
    power.write_bytes(compressed_log[: len(compressed_log) // 2])
    summary = imported("onnxruntime", trace, "--power", power, "--start", BASE_NS)
    assert 0 < summary["samples"] < 1000 and result(summary)["file_cut"] == 1


def test_a_compressed_database_is_rejected_with_the_command_that_unpacks_it(joulemap, tmp_path):
    file = tmp_path / "report.sqlite.gz"
    file.write_bytes(gzip.compress(b"SQLite format 3\0"))
    outcome = joulemap("import", "nsys", file, "-o", tmp_path / "f.joule")
    assert outcome.code == 1 and "gzip -dk" in outcome.err


def test_a_truncated_power_log_of_an_experiment_is_reported(joulemap, tmp_path):
    rows = [f"{BASE_NS + i * 10**8},gpu0,power_w,{100 + i * i % 97}\n" for i in range(1, 2000)]
    compressed = gzip.compress(("time_unix_ns,domain,kind,value\n" + "".join(rows)).encode())
    (tmp_path / "run1-a.csv").write_bytes(compressed[: len(compressed) // 2])
    import_outcome = joulemap("import", "csv", tmp_path, "--pattern", "run{run}-{variant}.csv", "-o", tmp_path / "exp")
    assert import_outcome.code == 0, import_outcome.err
    experiment_documents = [json.loads(file.read_text()) for file in (tmp_path / "exp").rglob("*.json")]
    assert "file_cut" in json.dumps(experiment_documents), experiment_documents
