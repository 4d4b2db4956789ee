"""diff --by operator: equal work is matched whatever its names, and each difference has a cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kineto_trace import begin_ns, training

RECORDING = Path(__file__).resolve().parents[2] / "examples" / "resnet50-h200.joule"
STEPS, STEP_US = 60, 50_000.0


@pytest.fixture
def record_run(joulemap, tmp_path: Path):
    """run_of(name, kernel, module, length): a traced training whose only kernel takes `length` of a step. The GPU uses
    400 W then, else 50 W."""

    def make(name: str, kernel: str, module: str, length: float, dims: list) -> Path:
        trace = training(steps=STEPS, step_us=STEP_US)
        trace.events = [event for event in trace.events if event["name"] != "gemm_backward"]
        for event in trace.events:
            event["name"] = kernel if event["name"] == "gemm" else event["name"].replace("Linear_0", module)
            if event["name"] == "aten::linear":
                event["args"] |= {"Input Dims": dims, "Input type": ["float"] * len(dims)}
            if event["name"] == kernel:
                event["dur"] = length * STEP_US

        def power_w(at_ms: int) -> float:
            share = at_ms * 1000 / STEP_US % 1
            return 400.0 if 0.2 <= share < 0.2 + length and 0 <= at_ms < STEPS * STEP_US / 1000 else 50.0

        rows = [f"{begin_ns() + ms * 1_000_000},gpu0,power_w,{power_w(ms)}" for ms in range(-500, 4000)]
        power = tmp_path / f"{name}.csv"
        power.write_text("\n".join(["time_unix_ns,domain,kind,value", *rows]) + "\n")
        file = tmp_path / f"{name}.joule"
        outcome = joulemap("import", "kineto", trace.write(tmp_path / f"{name}.json"), "--power", power, "-o", file)
        assert outcome.code == 0, outcome.err
        return file

    return make


TENSOR_CORE_KERNEL, SIMT_KERNEL = "cutlass_80_tensorop_s1688gemm_128x128", "cutlass_80_simt_sgemm_256x128"
INPUT_SHAPES = [[32, 128, 768], [2304, 768]]


def find_group(diff_report: dict, *path: str) -> dict:
    return next(entry for entry in diff_report["entries"] if entry["path"] == list(path))


def test_equal_work_under_other_names_is_matched_and_its_precision_is_the_cause(joulemap, record_run):
    tensor_core_recording = record_run("fast", TENSOR_CORE_KERNEL, "Linear_0", 0.2, INPUT_SHAPES)
    simt_recording = record_run("slow", SIMT_KERNEL, "Dense_7", 0.6, INPUT_SHAPES)
    diff_report = joulemap(
        "diff", tensor_core_recording, simt_recording, "--by", "operator", "--run-sd", "0.5%", "--json"
    ).json
    assert diff_report["by"] == "operator" and diff_report["total"]["verdict"] == "grew"
    entry = find_group(diff_report, "matmul", "forward", "4096x2304x768")
    assert entry["a"]["count"] == pytest.approx(1, abs=0.05) and entry["b"]["count"] == pytest.approx(1, abs=0.05)
    assert entry["group"]["cause"] == "precision"
    assert entry["group"]["a"]["precision"] == "tf32" and entry["group"]["b"]["precision"] == "float32"
    assert "precision" in {cause["code"] for cause in diff_report["causes"]}
    text = joulemap("diff", tensor_core_recording, simt_recording, "--by", "operator", "--run-sd", "0.5%").out
    assert "precision: matmul in float32 in B, in tf32 in A" in " ".join(text.split())


def test_a_larger_shape_is_a_cause(joulemap, record_run):
    short = record_run("short", TENSOR_CORE_KERNEL, "Linear_0", 0.2, INPUT_SHAPES)
    padded_recording = record_run("padded", TENSOR_CORE_KERNEL, "Linear_0", 0.6, [[32, 512, 768], [2304, 768]])
    diff_report = joulemap("diff", short, padded_recording, "--by", "operator", "--run-sd", "0.5%", "--json").json
    entry = find_group(diff_report, "matmul", "forward", "4096x2304x768 -> 16384x2304x768")
    assert entry["group"]["cause"] == "shapes"


def test_groups_add_up_to_the_total(joulemap, record_run):
    tensor_core_recording = record_run("fast", TENSOR_CORE_KERNEL, "Linear_0", 0.2, INPUT_SHAPES)
    simt_recording = record_run("slow", SIMT_KERNEL, "Dense_7", 0.6, INPUT_SHAPES)
    for pair in ((tensor_core_recording, simt_recording), (tensor_core_recording, RECORDING)):
        diff_report = joulemap("diff", *pair, "--by", "operator", "--per", "step", "--json").json
        assert sum(entry["difference_j"] for entry in diff_report["entries"]) == pytest.approx(
            diff_report["total"]["difference_j"], rel=1e-6, abs=1e-9
        )
        for side in "ab":
            energies = [entry[side]["energy_j"] for entry in diff_report["entries"] if entry[side]]
            assert sum(energies) == pytest.approx(diff_report["total"][side]["energy_j"], rel=1e-6)


def test_a_run_against_itself_has_no_cause(joulemap):
    diff_report = joulemap("diff", RECORDING, RECORDING, "--by", "operator", "--json").json
    assert diff_report["causes"] == []
    assert {entry["verdict"] for entry in diff_report["entries"]} <= {"within_noise", "unknown"}
    kinds = {entry["group"]["kind"] for entry in diff_report["entries"]}
    assert {"convolution", "normalization", "layout conversion", "optimizer"} <= kinds
    convolutions = [entry for entry in diff_report["entries"] if entry["group"]["kind"] == "convolution"]
    assert any(entry["path"][-1].startswith("[") for entry in convolutions), "shapes of the sampled steps"


def test_diff_at_other_levels_has_neither_groups_nor_causes(joulemap):
    diff_report = joulemap("diff", RECORDING, RECORDING, "--json").json
    assert diff_report["causes"] == [] and all(entry["group"] is None for entry in diff_report["entries"])


def test_the_page_shows_groups(joulemap, record_run, tmp_path):
    page = tmp_path / "diff.html"
    tensor_core_recording = record_run("fast", TENSOR_CORE_KERNEL, "Linear_0", 0.2, INPUT_SHAPES)
    simt_recording = record_run("slow", SIMT_KERNEL, "Dense_7", 0.6, INPUT_SHAPES)
    assert (
        joulemap(
            "diff", tensor_core_recording, simt_recording, "--by", "operator", "--run-sd", "0.5%", "--html", page
        ).code
        == 0
    )
    assert "4096x2304x768" in page.read_text() and "precision" in page.read_text()
