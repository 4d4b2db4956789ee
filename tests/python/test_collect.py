"""The collector of data for predictions: its design, its arithmetic and its output files. No GPU, no framework."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _collect import (  # noqa: E402
    command,
    corners,
    counter,
    design,
    kind,
    networks,
    power,
    real_layers,
    rows,
    summary,
    tables,
)
from _collect.measure import NotCapturableError, RunResult  # noqa: E402

SEED_LAYERS = {
    *("dense", "convolution", "pooling", "input", "padding", "normalization", "activation", "rescaling", "reshape"),
    *("dropout", "add", "multiply", "concatenate"),
}


@pytest.fixture(scope="module")
def plan():
    return design.plan_designed_rows()


def test_the_design_has_enough_distinct_rows_of_every_kind(plan):
    assert len({row.key for row in plan}) == len(plan) >= 8000
    counts = Counter(row.kind for row in plan)
    assert all(counts[name] >= 200 for name in SEED_LAYERS | {"attention", "embedding", "optimizer"})


def test_every_beginning_of_the_design_has_the_kinds_in_their_shares(plan):
    counts = Counter(row.kind for row in plan)
    for length in (500, 2000, 5000):
        begun = Counter(row.kind for row in plan[:length])
        for name, count in counts.items():
            expected = count * length / len(plan)
            assert abs(begun[name] - expected) <= 3 + 0.1 * expected, (name, length)


def test_the_design_is_the_same_every_time():
    assert [row.key for row in design.plan_designed_rows(["add", "attention"])] == [
        row.key for row in design.plan_designed_rows(["add", "attention"])
    ]


def test_joulemap_module_has_the_collect_command(environment):
    command = [sys.executable, "-m", "joulemap", "collect", "--plan", "--kinds", "add"]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    assert ["add", str(design.OPERATION_KINDS["add"].row_count)] in [line.split()[:2] for line in output.splitlines()]


def test_corner_rows_are_not_in_the_design(plan):
    rows = corners.plan_corner_rows()
    assert [row.key for row in rows] == [row.key for row in corners.plan_corner_rows()]
    assert len({row.key for row in rows} - {row.key for row in plan}) == len(rows) >= 500
    parameters_by_kind = {row.kind: set(row.parameters) for row in plan}
    assert all(set(row.parameters) == parameters_by_kind[row.kind] for row in rows)


def test_no_row_exceeds_the_memory_of_a_measurement(plan):
    assert all(0 < row.cost.bytes <= kind.MAX_OPERATION_BYTES for row in plan)
    assert all(row.cost.flops <= kind.MAX_OPERATION_S * kind.PEAK_FLOPS_PER_S[row.dtype] for row in plan)


def test_held_out_families_are_in_no_collection():
    held_out_families = networks.HELD_OUT_FAMILIES
    assert not held_out_families & {network.family for network in networks.list_all_networks(held_out=False)}
    assert held_out_families == {network.family for network in networks.list_all_networks(held_out=True)}
    assert not held_out_families & {layer.family for layer in real_layers.read_real_layers()}
    assert len(networks.list_all_networks(held_out=False)) >= 80


def test_networks_that_were_never_measured_come_before_disturbed_ones(monkeypatch):
    planned = networks.plan_networks(2)[:4]
    disturbed = {setting.key for settings in planned[:2] for setting in settings}
    row_store = SimpleNamespace(measurement_counts={key: 1 for key in disturbed}, is_settled=lambda key: False)
    begun = []
    monkeypatch.setattr(
        command, "collect_network", lambda session, network_settings, *_: begun.append(network_settings[0].network.name)
    )
    command.collect_networks(SimpleNamespace(rows=row_store, slice_name="now"), planned, math.inf, 0.1)
    names = [settings[0].network.name for settings in planned]
    assert begun == names[2:] + names[:2]


def test_every_network_is_planned_once_before_repeats():
    settings = networks.plan_networks()
    network_count = len(networks.list_all_networks(held_out=False))
    assert len({network_settings[0].network for network_settings in settings[:network_count]}) == network_count
    assert all(
        {setting.pass_name for setting in network_settings} == {"inference", "training"}
        for network_settings in settings[:network_count]
    )


def test_half_of_the_convolutions_are_layers_of_real_networks(plan):
    real_layer_flags = [row.source != "designed" for row in plan if row.kind == "convolution"]
    assert 0.4 < sum(real_layer_flags) / len(real_layer_flags) < 0.6


def test_products_count_two_flops_for_each_multiply_and_add():
    dense_parameters = {"rows": 3, "in": 5, "out": 7, "bias": False}
    dense_work = design.OPERATION_KINDS["dense"].forward_work(dense_parameters)
    assert kind.operation_cost(dense_work, "fp32", "forward") == (2 * 3 * 5 * 7, 4 * (3 * 5 + 5 * 7 + 3 * 7))
    assert kind.operation_cost(dense_work, "fp16", "backward").flops == 2 * 2 * 3 * 5 * 7
    strided = {"batch": 2, "channels": 4, "out": 8, "height": 9, "width": 9, "kernel": 3, "stride": 2, "padding": 1}
    convolution = design.OPERATION_KINDS["convolution"].forward_work(
        {**strided, "dilation": 1, "groups": 4, "bias": False}
    )
    assert convolution.flops == 2 * 2 * 5 * 5 * 8 * 1 * 3 * 3


def test_a_table_that_tokens_are_looked_up_in_has_a_gradient_of_its_own_size():
    embedding_work = design.OPERATION_KINDS["embedding"].forward_work({"vocabulary": 1000, "width": 8, "tokens": 10})
    assert kind.operation_cost(embedding_work, "fp32", "forward").bytes == 4 * 2 * 10 * 8 + 80
    assert kind.operation_cost(embedding_work, "fp32", "backward").bytes == 4 * (2 * 10 * 8 + 1000 * 8) + 80


def test_measured_rows_have_costs_by_current_conventions(plan):
    for row in plan[:300]:
        entry = {**command.row_identity(row), "flops": None, "bytes": None}
        assert design.recompute_cost(entry) == command.row_identity(row)


def make_displayed_samples(
    watts: float, before: float, length_ns: int, phase_ns: int, noise: random.Random
) -> list[power.PowerSample]:
    """Power samples that a driver shows for a load that starts at 0 and is followed by idle."""
    samples = []
    for at_ns in range(phase_ns, length_ns + 60_000_000, 20_000_000):
        since_ns = at_ns - power.POWER_LAG_NS
        transient_power_w = watts + (before - watts) * math.exp(-since_ns / power.POWER_TIME_CONSTANT_NS)
        value = before if since_ns < 0 else transient_power_w if since_ns < length_ns else 120.0
        samples.append(power.PowerSample(at_ns, value * noise.gauss(1, 0.01)))
    return samples


@pytest.mark.parametrize("seed", range(20))
def test_the_power_of_a_row_is_found_whatever_was_before_it(seed):
    chance = random.Random(seed)
    watts, initial_power_w, length_ns = chance.uniform(130, 700), chance.uniform(110, 700), 160_000_000
    power_estimate = power.estimate_steady_power(
        make_displayed_samples(watts, initial_power_w, length_ns, chance.randrange(20_000_000), chance), 0, length_ns
    )
    assert power_estimate is not None
    assert power_estimate.watts == pytest.approx(watts, rel=0.025), f"seed {seed}"


def test_a_row_with_too_few_samples_has_no_power():
    assert power.estimate_steady_power([power.PowerSample(10_000_000, 100.0)], 0, 40_000_000) is None


@pytest.mark.parametrize("phase_ms", [0, 17, 55, 99])
def test_whole_counter_periods_give_the_power_however_late_an_update_is_noticed(phase_ms):
    """100 W until 200 ms, then 300 W; reads see counter updates up to 34 ms late."""
    counter_readings = []
    for at_ms in range(0, 900, 34):
        counter_update_ms = (at_ms - phase_ms) // 100 * 100 + phase_ms
        joules = 0.1 * min(counter_update_ms, 200) + 0.3 * max(0, counter_update_ms - 200)
        counter_readings.append(counter.CounterReading(at_ms * 1_000_000, (at_ms + 4) * 1_000_000, joules))
    assert counter.mean_power_w(counter_readings, 200_000_000, 850_000_000) == pytest.approx(300)
    assert counter.mean_power_w(counter_readings, 200_000_000, 500_000_000) is None


READ_GPU_PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
from _collect import power
gpu = power.NvmlGpu(sys.argv[2])
begin_ns = time.monotonic_ns()
end_ns = begin_ns + 120_000_000
while gpu.last_sample_ns() < end_ns + power.POWER_LAG_NS:
    gpu.read_samples()
estimate = power.estimate_steady_power(gpu.samples, begin_ns, end_ns)
print(json.dumps([estimate, gpu.read_state(), gpu.power_limit_w(), gpu.driver_versions()]))
"""


def test_a_gpu_reports_power_clocks_and_limit_reasons(binaries, tmp_path):
    fake = FakeGpu(power=[(0.0, 250.0)], statements=["throttle 4"])
    machine = FakeNvml(tmp_path, binaries / "libjoulemap-fake-nvml.so", fake)
    command = [sys.executable, "-c", READ_GPU_PROGRAM, str(ROOT / "python" / "joulemap"), fake.uuid]
    environment = {**os.environ, **machine.environment}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    (watts, _, samples), state, limit_w, versions = json.loads(process.stdout)
    assert watts == pytest.approx(250, rel=1e-3) and samples >= 4
    assert power.GpuState(*state) == power.GpuState(41, 1980, True)
    assert limit_w == 700 and versions["gpu"] == "Fake H200"


class FakeRunner:
    """A runner that takes no time: each row advances its clock by the planned duration."""

    device = "made-up"

    def __init__(self, fails: str = "", cannot_capture: str = "") -> None:
        self.now_ns, self.fails, self.cannot_capture = 0, fails, cannot_capture
        self.in_graph: list[bool] = []

    def allocate_calls(self, make):
        return make

    def run_calls(self, calls, active_s: float, in_graph: bool) -> RunResult:
        del calls
        self.in_graph.append(in_graph)
        begin_ns, self.now_ns = self.now_ns, self.now_ns + int(active_s * 1e9)
        if self.fails and len(self.in_graph) == 2:
            raise RuntimeError(self.fails)
        if self.cannot_capture and in_graph:
            raise NotCapturableError(self.cannot_capture)
        return RunResult(begin_ns, self.now_ns, 10, 0.016, 0.017, "graph", power.GpuState(40, 1980, False))

    def release_memory(self) -> None:
        self.now_ns += 50_000_000


@pytest.fixture
def collect(tmp_path, monkeypatch):
    """Runs the command without a GPU; returns its exit code and the rows of the folder."""
    backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False)))
    backends.cudnn = SimpleNamespace(allow_tf32=True, version=lambda: 1)
    torch = SimpleNamespace(backends=backends, __version__="made up", version=SimpleNamespace(cuda=None))

    def run(runner: FakeRunner, *more: str):
        gpu = power.SimulatedGpu(lambda: runner.now_ns)
        monkeypatch.setattr(command, "open_device", lambda options: (torch, runner, gpu))
        monkeypatch.setattr(command.CollectorRun, "warm_up", lambda session: None)
        monkeypatch.setattr(command.time, "sleep", lambda seconds: runner.release_memory())
        code = command.main(["--out", str(tmp_path), "--scale", "0.03", "--kinds", "add", "embedding", *more])
        return code, list(rows.read_json_lines(tmp_path))

    return run


def test_a_second_run_goes_on_with_what_is_missing(collect, tmp_path):
    _, first_run_lines = collect(FakeRunner(), "--kinds", "add")
    _, both_runs_lines = collect(FakeRunner())
    measured = Counter(line["key"] for line in both_runs_lines if "energy_j" in line)
    first_run_keys = {line["key"] for line in first_run_lines if "energy_j" in line}
    assert set(measured) == {
        row.key for row in design.plan_designed_rows(["add", "embedding"], 0.03)
    } and first_run_keys < set(measured)
    # Only rows that are repeated on purpose occur twice.
    assert sum(measured.values()) <= len(measured) + 3
    assert sum("seconds" in line for line in both_runs_lines) == 2
    assert all(line["energy_j"] == pytest.approx(100 * 0.016) for line in both_runs_lines if "energy_j" in line)


def test_a_row_that_cannot_be_measured_is_reported_and_not_retried(collect):
    _, result = collect(FakeRunner(fails="no such kernel"))
    failure_lines = [line for line in result if "failed" in line]
    assert [line["failed"] for line in failure_lines] == ["RuntimeError: no such kernel"]
    _, result = collect(FakeRunner())
    assert not [line for line in result if line.get("key") == failure_lines[0]["key"] and "energy_j" in line]


def test_a_row_that_ends_the_process_is_skipped_the_next_time(collect, tmp_path):
    first_key = design.plan_designed_rows(["add", "embedding"], 0.03)[0].key
    rows.RowStore(tmp_path).begin_row(first_key)
    _, result = collect(FakeRunner())
    assert [line["failed"] for line in result if line.get("key") == first_key] == ["the process that measured it ended"]


def test_uncapturable_operations_run_without_a_graph_in_a_new_process(collect):
    with pytest.raises(SystemExit, match="cannot be captured"):
        collect(FakeRunner(cannot_capture="it waits"), "--kinds", "embedding")
    runner = FakeRunner()
    collect(runner, "--kinds", "embedding")
    assert False in runner.in_graph


def test_a_line_that_a_killed_run_left_half_written_is_stepped_over(tmp_path):
    row = {"key": "a", "kind": "network", "energy_j": 1.0}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + '\n{"key": "b", "ener')
    assert list(rows.RowStore(tmp_path).measurement_counts) == ["a"]


def test_a_row_that_was_wrongly_run_without_a_graph_is_measured_again(tmp_path):
    row = {"key": "a", "kind": "add", "parameters": "form=same", "pass": "forward", "energy_j": 1.0, "way": "eager"}
    (tmp_path / "rows.jsonl").write_text(json.dumps({**row, "time_s": 1e-4}) + "\n")
    assert not rows.RowStore(tmp_path).is_settled("a")
    rows.RowStore(tmp_path).add_uncapturable_group("add same forward", "it cannot be")
    assert rows.RowStore(tmp_path).is_settled("a")


def test_a_summary_reports_the_spread_of_repeated_rows():
    row = {
        "key": "a",
        "kind": "add",
        "dtype": "fp32",
        "pass": "forward",
        "limited": False,
        "power_error_w": 1.0,
        "slice": "1",
    }
    repeated_rows = [{**row, "time_s": 1e-4, "power_w": watts, "energy_j": 1e-4 * watts} for watts in (99.0, 101.0)]
    text = summary.summarize_rows(repeated_rows)
    assert "| add | 1 | 100..100..100 us |" in text
    assert "| operations, calls above 20 us, same slice | 1 | 1.41% (median 1.41%) | 0.00%" in text


def test_a_summary_counts_networks_and_families():
    row = {"key": "a", "kind": "network", "dtype": "bf16", "pass": "training", "limited": False, "slice": "1"}
    row |= {"power_error_w": 1.0, "time_s": 1e-2, "power_w": 400.0, "energy_j": 4.0}
    network_rows = [{**row, "source": "resnet", "parameters": f"resnet{depth};batch=32"} for depth in (18, 50)]
    assert "2 networks of 1 families:" in summary.summarize_rows(network_rows)


def test_a_network_is_found_again_in_a_table(tmp_path):
    setting = networks.plan_networks()[0][0]
    entry = {"kind": "network", "dtype": setting.dtype, "pass": setting.pass_name, "slice": "1", "repeat": 0}
    entry |= {"key": setting.key, "parameters": design.format_parameters(setting.parameters), "energy_j": 1.0}
    tables.write_tables([entry], [], tmp_path)
    assert rows.RowStore(tmp_path).is_settled(setting.key)


def test_a_table_has_a_line_for_every_measurement(collect, tmp_path):
    _, result = collect(FakeRunner())
    command.main(["--out", str(tmp_path), "--tables", str(tmp_path / "tables")])
    with gzip.open(tmp_path / "tables" / "operations.csv.gz", "rt", newline="") as file:
        table = list(csv.DictReader(file))
    assert len(table) == sum("energy_j" in line for line in result)
    assert rows.RowStore(tmp_path / "tables").measurement_counts == rows.RowStore(tmp_path).measurement_counts
    assert {float(line["power_w"]) for line in table} == {100.0} and {line["sm_clock_mhz"] for line in table} == {
        "1980"
    }
