"""Distributed runs: processes that are ranks, recorded together or imported from one trace per rank."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml
from support.kineto_trace import begin_ns, training

GPU = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"  # UUID that the fake CUPTI reports


def report(joulemap, file: Path, by: str) -> dict:
    outcome = joulemap("report", "--json", "--by", by, file)
    assert outcome.code == 0, outcome.err
    return outcome.json


def rows_of(result: dict, device: str = "gpu0") -> dict[str, dict]:
    return {" ".join(row["path"]): row for row in result["rows"] if row["device"] == device}


def test_launched_ranks_split_the_energy_and_share_steps(joulemap, binaries, tmp_path):
    nvml = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", FakeGpu(uuid=GPU, power=[(0.0, 300.0)]))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))}
    environment |= nvml.environment | {"JOULEMAP_CUPTI": str(binaries / "libjoulemap-fake-cupti.so"), "WORLD_SIZE": "2"}
    program = binaries / "joulemap-fake-cuda-program"
    launcher_script = f"RANK=0 {program} 60 8 & RANK=1 {program} 30 8; wait"
    file = tmp_path / "run.joule"
    outcome = joulemap("record", "--sensors", "nvml", "-o", file, "--", "sh", "-c", launcher_script, env=environment)
    assert outcome.code == 0, outcome.err
    ranks = report(joulemap, file, "rank")
    assert ranks["steps"] == 60
    assert set(rows_of(ranks)) == {"rank 0", "rank 1"}
    assert all(row["count"] == 1 for row in rows_of(ranks).values())
    assert rows_of(ranks)["rank 0"]["time_s"] == pytest.approx(2 * rows_of(ranks)["rank 1"]["time_s"], rel=0.1)
    total = ranks["attributed_j"] + ranks["idle_j"] + ranks["unattributed_j"]
    assert total == pytest.approx(ranks["measured_j"], rel=1e-6)
    # Both ranks share one row per path and device.
    by_kernel = report(joulemap, file, "kernel")
    assert rows_of(by_kernel)["gemm"]["count"] == 60 * 4 + 30 * 4
    assert len(by_kernel["rows"]) == len({(tuple(row["path"]), row["device"]) for row in by_kernel["rows"]})
    assert [row["name"] for row in report(joulemap, file, "step")["rows"]] == [str(number) for number in range(60)]


def test_ranks_of_imported_traces_come_from_the_traces(joulemap, tmp_path):
    power = tmp_path / "power.csv"
    lines = ["time_unix_ns,domain,kind,value"]
    lines += [f"{begin_ns() + i * 10_000_000},{gpu},power_w,{watts}" for i in range(-50, 150)
              for gpu, watts in (("gpu0", 100), ("gpu1", 200))]  # fmt: skip
    power.write_text("\n".join(lines))
    traces = []
    for rank in range(2):
        trace = training(pid=rank + 1, device=rank)
        trace.rank = rank
        traces.append(trace.write(tmp_path / f"rank{rank}.json"))
    file = tmp_path / "run.joule"
    assert joulemap("import", "kineto", *traces, "--power", power, "-o", file).code == 0
    result = report(joulemap, file, "rank")
    assert result["steps"] == 2
    assert rows_of(result, "gpu0")["rank 0"]["energy_j"] == pytest.approx(50, rel=0.05)
    assert rows_of(result, "gpu1")["rank 1"]["energy_j"] == pytest.approx(100, rel=0.05)


def test_recordings_of_one_run_are_put_together_and_others_are_not(joulemap, sysroots, tmp_path):
    for file, flags in (("a", ("--run", "job 42")), ("b", ("--run", "job 42")), ("c", ("--run", "job 43")), ("d", ())):
        command = ("record", *flags, "--sysroot", sysroots / "no-sensors", "-o", tmp_path / file, "--", "true")
        assert joulemap(*command).code == 0
    assert joulemap("report", tmp_path / "a", tmp_path / "b").code == 0
    for unrelated_file_name in ("c", "d"):
        report_outcome = joulemap("report", tmp_path / "a", tmp_path / unrelated_file_name)
        assert report_outcome.code == 2 and "--run NAME" in report_outcome.err
    assert joulemap("record", "--run", "", "--", "true").code == 2
