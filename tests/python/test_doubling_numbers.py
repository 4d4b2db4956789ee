"""From loops to blocks, and blocks against reports: the arithmetic of jm.validate and bench/h200/doubling.py."""

from __future__ import annotations

import json
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "python" / "joulemap"))

import _validate_statistics as numbers  # noqa: E402  as the benchmark reads it: without the package

BLOCK_ENERGY_J = {"a": 0.4, "b": 0.25, "c": 0.05}
REMAINING_ENERGY_J = 0.1
WATTS = 500.0
LOOP_LENGTH_NS = 800_000_000


def measured(pass_j: float, extra_energy: numbers.ExtraBlockEnergy) -> numbers.MeasuredBlocks:
    return numbers.MeasuredBlocks(pass_j, 0.01, [extra_energy])


def simulate_loops(
    rounds: int = 3, drift: float = 0.0, noise: float = 0.0, seed: int = 1, control_j: float = 0.0
) -> list:
    """Interleaved loops in the order of Rounds; power drifts by the fraction `drift` per loop and has noise."""
    chance, loops, plain_j = random.Random(seed), [], sum(BLOCK_ENERGY_J.values()) + REMAINING_ENERGY_J

    def run_rounds(block, is_control, number):
        extra_j = 0.0 if block is None else control_j + (0.0 if is_control else BLOCK_ENERGY_J[block])
        pass_s = (plain_j + extra_j) / WATTS
        passes = round(LOOP_LENGTH_NS * 1e-9 / pass_s)
        begin_ns = loops[-1].end_ns if loops else 0
        power = 1 + drift * len(loops) + chance.gauss(0, noise)
        joules = passes * (plain_j + extra_j) * power
        end_ns = begin_ns + round(passes * pass_s * 1e9)
        loops.append(numbers.PassLoop(block, is_control, number, passes, begin_ns, end_ns, joules))

    for number in range(rounds):
        order = [(block, False) for block in BLOCK_ENERGY_J] + ([("c", True)] if control_j else [])
        chance.shuffle(order)
        for loop_index, (block, is_control) in enumerate(order):
            if loop_index % 2 == 0:
                run_rounds(None, False, number)
            run_rounds(block, is_control, number)
        run_rounds(None, False, number)
    return loops


def found(loops: list) -> dict:
    return {extra_energy.block: extra_energy for extra_energy in numbers.compute_extra_energies(loops)}


def test_a_steady_machine_gives_each_block_exactly():
    for block, extra_energy in found(simulate_loops()).items():
        assert extra_energy.joules == pytest.approx(BLOCK_ENERGY_J[block], rel=1e-9)
        assert extra_energy.seconds == pytest.approx(BLOCK_ENERGY_J[block] / WATTS, rel=1e-6)
    assert numbers.mean_plain_pass(simulate_loops())[0] == pytest.approx(0.8)


def test_drift_of_the_machine_cancels_because_adjacent_loops_are_compared():
    """Power drifts by 2 % over the run; against the mean of all plain loops the smallest block would be 20 % off."""
    loops = simulate_loops(drift=0.02 / 20)
    for block, extra_energy in found(loops).items():
        assert extra_energy.joules == pytest.approx(BLOCK_ENERGY_J[block], rel=0.025), block


def test_the_cost_of_copies_is_subtracted_for_blocks_that_need_them():
    loops = [loop for loop in simulate_loops(control_j=0.02) if loop.block in (None, "c")]
    assert found(loops)["c"].joules == pytest.approx(BLOCK_ENERGY_J["c"], rel=1e-9)


def test_nine_of_ten_intervals_cover_the_true_value():
    covered_count = interval_count = 0
    for seed in range(400):
        for block, extra_energy in found(simulate_loops(noise=0.002, seed=seed)).items():
            interval_count += 1
            covered_count += abs(extra_energy.joules - BLOCK_ENERGY_J[block]) <= extra_energy.half_width_j
    assert 0.86 <= covered_count / interval_count <= 0.95, covered_count / interval_count


def test_one_round_has_no_interval():
    assert all(
        extra_energy.half_width_j is None for extra_energy in numbers.compute_extra_energies(simulate_loops(rounds=1))
    )


def row(layer: str, joules: float, seconds: float, phase: str = "forward", mode: str = "train") -> dict:
    energy = {"energy_j": joules, "low_j": 0.9 * joules, "high_j": 1.1 * joules, "basis": "regressed"}
    return {"path": [mode, phase, layer], "device": "gpu0", "time_s": seconds, **energy}


def report(*rows: dict, total_j: float = 100.0, elapsed_s: float = 1.0) -> dict:
    domains = [{"name": "gpu0", "counted": True, "measured_j": total_j, "provenance": "measured"},
               {"name": "gpu0-memory", "counted": False, "measured_j": 9.0, "provenance": "measured"},
               {"name": "package-0", "counted": True, "measured_j": 50.0, "provenance": "measured"}]  # fmt: skip
    return {"rows": list(rows), "domains": domains, "elapsed_s": elapsed_s, "start_monotonic_ns": 0}


MODULE_GROUPS = {"a": ["layer1"], "b": ["layer2.0", "layer2.1"], "c": ["fc"]}


def test_a_block_sums_the_rows_of_all_its_modules():
    result = report(
        row("layer1.0.conv", 30, 0.3), row("layer1.0.conv", 10, 0.1, "backward"), row("layer10", 5, 0.05),
        row("layer2.0", 20, 0.2), row("layer2.1.bn", 5, 0.05), {**row("fc", 7, 0.1), "device": "cpu"},
        {**row("", 40, 1.0), "path": ["probe"]},
    )  # fmt: skip
    stretch = numbers.make_reported_interval(result, MODULE_GROUPS, "gpu0")
    assert stretch.blocks["a"].share == pytest.approx(0.40)
    assert stretch.blocks["b"].share == pytest.approx(0.25)
    assert stretch.blocks["a"].busy_s == pytest.approx(0.4)
    assert "c" not in stretch.blocks
    assert stretch.idle_share == pytest.approx(0.30)
    assert stretch.idle_w == pytest.approx(30 / 0.3)
    assert [domain["name"] for domain in numbers.device_domains(result, "cpu")] == ["package-0"]


def test_idle_energy_of_a_gpu_is_excluded_from_the_comparison():
    """A launch-bound block: the GPU idles at 100 W for half of the time that a second call takes."""
    stretch = numbers.make_reported_interval(
        report(row("layer1", 90, 0.5), total_j=140, elapsed_s=1.0), MODULE_GROUPS, "gpu0"
    )
    assert stretch.idle_w == pytest.approx(100)
    extra_energy = numbers.ExtraBlockEnergy("a", 1.4, 0.1, 0.010, [1.4])
    block_comparison = numbers.compare_blocks(measured(1.4, extra_energy), stretch, 100, {"said": stretch})[0]
    assert block_comparison.busy_j == pytest.approx(1.4 - 0.005 * 100)
    assert block_comparison.attributed["said"].error == pytest.approx(0.0)


def test_estimates_and_measured_energies_are_not_compared():
    stretch = numbers.make_reported_interval(report(row("layer1", 90, 0.5)), MODULE_GROUPS, "gpu0")
    assert stretch.is_measured
    extra_energy = numbers.ExtraBlockEnergy("a", 1.4, 0.1, 0.010, [1.4])
    interval_by_column = {"said": stretch}
    block_comparison = numbers.compare_blocks(measured(1.4, extra_energy), stretch, 100, interval_by_column, False)[0]
    said = block_comparison.attributed["said"]
    assert said.joules > 0 and said.error is None
    estimated_report = report(row("layer1", 90, 0.5))
    for domain in estimated_report["domains"]:
        domain["provenance"] = "estimated"
    assert not numbers.make_reported_interval(estimated_report, MODULE_GROUPS, "gpu0").is_measured


def test_on_cpus_energy_of_other_processes_is_subtracted_by_their_share():
    rows = [{**row("layer1", 30, 1.0), "device": "cpu"}, {**row("", 10, 1.0), "path": ["background"], "device": "cpu"}]
    stretch = numbers.make_reported_interval(report(*rows), MODULE_GROUPS, "cpu")  # of 50 J in total
    assert (stretch.idle_share, stretch.idle_w) == (pytest.approx(0.4), None)
    measured_blocks = measured(1.0, numbers.ExtraBlockEnergy("a", 1.0, None, 0.01, [1.0]))
    block_comparison = numbers.compare_blocks(measured_blocks, stretch, 1, {"said": stretch})[0]
    assert block_comparison.busy_j == pytest.approx(0.6)
    assert block_comparison.attributed["said"].error == pytest.approx(0.0)


def test_where_the_host_limits_passes_waiting_changes_with_its_speed_and_kernels_do_not():
    # 1 J of kernels and 1 J of waiting in each of 10 recorded passes; measured when the host was slower: 3 J a pass.
    share = numbers.AttributedEnergyShare(0.6, 0.5, 0.7, 0.0, "regressed", waiting_share=(0.2, 0.2, 0.2))
    stretch = numbers.ReportedInterval({"a": share}, 20.0, 0.0, None, True, active_share=0.5)
    extra_energy = numbers.ExtraBlockEnergy("a", 1.6, None, 0.01, [1.6])
    measured_blocks = numbers.MeasuredBlocks(3.0, 0.03, [extra_energy], is_limited_by_host=True)
    said = numbers.compare_blocks(measured_blocks, stretch, 10, {"said": stretch})[0].attributed["said"]
    assert (said.low_j, said.joules, said.high_j) == pytest.approx((0.6 + 0.8, 0.8 + 0.8, 1.0 + 0.8))
    assert said.error == pytest.approx(0.0)


def test_a_block_that_costs_nothing_has_no_error():
    stretch = numbers.make_reported_interval(report(row("fc", 1, 0.01)), MODULE_GROUPS, "gpu0")
    measured_blocks = measured(1.0, numbers.ExtraBlockEnergy("c", -0.001, 0.01, 0.0, []))
    block_comparisons = numbers.compare_blocks(measured_blocks, stretch, 1, {"said": stretch})
    assert block_comparisons[0].attributed["said"].error is None
    assert numbers.attribution_errors(block_comparisons, "said", -1) == []


def test_nested_blocks_have_shared_modules():
    assert numbers.has_shared_modules({"a": ["layer1"], "b": ["layer1.0"]})
    assert numbers.has_shared_modules({"a": ["x"], "b": ["x"]})
    assert not numbers.has_shared_modules({"a": ["layer1"], "b": ["layer10"]})


FAKE_JOULEMAP_SCRIPT = """#!/bin/sh
# joulemap report: probing tells more of a (20 to 30 s), a library nothing but the truth.
case "$*" in
*--help*) echo "{flags}" ;;
*integral*) cat "$(dirname "$0")/time.json" ;;
*"10.000000,30.000000"*) cat "$(dirname "$0")/probe.json" ;;
*) cat "$(dirname "$0")/regression.json" ;;
esac
"""


@pytest.fixture
def doubling_folder(tmp_path: Path):
    """A folder as doubling_load.py writes it, and a fake joulemap that returns prepared reports."""
    joules = {"time": (30, 30, 10), "regression": (42, 25, 5), "probe": (40, 25, 5)}  # of a, b, c and a rest
    for name, (a, b, c) in joules.items():
        rows = [row("layer1", a, 0.40), row("layer2.0", b, 0.25), row("fc", c, 0.05), row("Net", 80 - a - b - c, 0.1)]
        (tmp_path / f"{name}.json").write_text(json.dumps(report(*rows, total_j=80, elapsed_s=0.8)))
    entry = {"network": "net", "mode": "train", "device": "gpu0", "groups": MODULE_GROUPS, "refused": {"x": "it is shared"},
            "recorded": {"begin_ns": 10**10, "end_ns": 2 * 10**10, "passes": 100},
            "probed": {"begin_ns": 10**10, "end_ns": 3 * 10**10},
            "loops": [list(loop) for loop in simulate_loops()], "joules_by_windows": None}  # fmt: skip
    (tmp_path / "net-train.json").write_text(json.dumps(entry))
    (tmp_path / "net.joule").write_text("")
    program = tmp_path / "joulemap"
    program.write_text(FAKE_JOULEMAP_SCRIPT.replace("{flags}", "--by --time"))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def analyse(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    script = ROOT / "bench" / "h200" / "doubling.py"
    command = [sys.executable, str(script), "--joulemap", str(folder / "joulemap"), "--folder", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_benchmark_compares_each_attribution_mode_with_the_truth(doubling_folder):
    ran = analyse(doubling_folder)
    lines = ran.stdout.splitlines()
    assert ran.returncode == 0, ran.stderr
    assert "| a | 0.4000 +- 0.0000 J | 50.0% | 0.4000 J | -25.0% | +5.0% | -0.0% | regressed |" in lines
    assert any(line.startswith("| x | not run twice: it is shared |") for line in lines)
    assert any("Blocks add up to 0.875 of the plain pass." in line for line in lines)
    assert any(line.startswith("| net, train | 3 | ") for line in lines)
    assert any("<= 7%: yes" in line and "<= 3%: yes" in line for line in lines)


def test_the_benchmark_omits_the_library_if_the_program_has_none(doubling_folder):
    ran = analyse(doubling_folder, "--library", "powers.json")
    assert "no --library" in ran.stdout and "| library |" not in ran.stdout
    (doubling_folder / "joulemap").write_text(FAKE_JOULEMAP_SCRIPT.replace("{flags}", "--by --library FILE"))
    ran = analyse(doubling_folder, "--library", "powers.json")
    assert "| time | library | regression | probe |" in ran.stdout


def test_the_benchmark_continues_after_an_unreadable_network(doubling_folder):
    (doubling_folder / "bad-train.json").write_text(json.dumps({"network": "bad", "mode": "train"}))
    ran = analyse(doubling_folder)
    assert ran.returncode == 1
    assert "bad-train.json: **not analysed**" in ran.stdout
    assert "| net, train | 3 | " in ran.stdout
