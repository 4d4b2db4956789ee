"""joulemap stat on the simulated machine: energy against the truth, with every fault a counter can have.

The assertions also hold on a busy machine: they allow an error of 1 % or the uncertainty that the run reports, because
late readings widen its interval. The benchmark (`make bench`) measures the accuracy on an idle machine.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from truth import TruthLog

BUSY_PROGRAM = """
import pathlib, sys, time
def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
"""


class Simulation:
    def __init__(self, report: dict, truth: TruthLog) -> None:
        self.report = report
        self.run = report["runs"][0]
        self.truth = truth
        self.start_ns = self.run["start_monotonic_ns"]
        self.end_ns = self.start_ns + round(self.run["elapsed_s"] * 1e9)
        self.codes = {entry["code"] for entry in self.run["diagnostics"] + report["diagnostics"]}

    def domain(self, name: str) -> dict:
        return next(domain for domain in self.run["domains"] if domain["name"] == name)

    def true_joules(self, name: str) -> float:
        return self.truth.joules(name, self.start_ns, self.end_ns)

    def error(self, name: str) -> float:
        return self.domain(name)["joules"] / self.true_joules(name) - 1

    def list_ticks_at_ends(self) -> list:
        """Seconds of the simulator's ticks around the start and the end of the command, from its start on."""
        times = [self.truth.ticks_around(at_ns, 5) for at_ns in (self.start_ns, self.end_ns)]
        return [
            [round((time_ns - self.start_ns) * 1e-9, 6) for time_ns in nearby_ticks_ns] for nearby_ticks_ns in times
        ]

    def is_energy_accurate(self, name: str, within: float = 0.01) -> bool:
        """Whether the energy matches the truth to the relative error `within` or to the reported uncertainty."""
        domain, true_energy_j = self.domain(name), self.true_joules(name)
        return abs(domain["joules"] - true_energy_j) <= max(within * true_energy_j, domain["uncertainty_j"])


@pytest.fixture
def simulate(binaries: Path, memory_directory: Path):
    """Runs a busy command under joulemap stat on a simulated machine with the given flags. Faults among the flags start
    after one second; the command then runs for `seconds`."""

    def run(*flags: object, seconds: float = 1.0, stat_flags: tuple = ()) -> Simulation:
        root, fault_trigger_file = memory_directory / "machine", memory_directory / "now"
        machine = [
            binaries / "joulemap-simulated-machine",
            "--root",
            root,
            "--fault-trigger",
            fault_trigger_file,
            *flags,
            "--",
        ]
        stat_command = [binaries / "joulemap", "stat", "--json", "--sysroot", root, *stat_flags, "--"]
        load = [
            sys.executable,
            "-c",
            f"{BUSY_PROGRAM}busy(1)\npathlib.Path({str(fault_trigger_file)!r}).touch()\nbusy({seconds})",
        ]
        command = [str(word) for word in [*machine, *stat_command, *load]]
        process = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert process.returncode == 0, process.stderr
        return Simulation(json.loads(process.stdout), TruthLog(str(root / "truth.csv")))

    return run


def test_measured_load_energy_matches_the_truth(simulate):
    simulation = simulate()
    for name in ("package-0", "core-0", "dram-0"):
        assert simulation.is_energy_accurate(name)
    assert simulation.run["measured_j"] == pytest.approx(
        simulation.domain("package-0")["joules"] + simulation.domain("dram-0")["joules"]
    )
    assert simulation.run["estimated_j"] is None


def test_two_sockets_and_a_platform_are_added_once(simulate):
    simulation = simulate("--sockets", 2, "--psys")
    assert simulation.is_energy_accurate("psys")
    assert simulation.run["measured_j"] == pytest.approx(simulation.domain("psys")["joules"])
    assert simulation.domain("package-1")["part_of"] == "psys"


def test_a_counter_that_wraps_many_times_loses_nothing(simulate):
    simulation = simulate("--wrap-uj", 50_000_000)  # wraps twice a second: a reader that misses a wrap cannot detect it
    assert simulation.true_joules("package-0") > 100  # it wrapped
    assert simulation.is_energy_accurate("package-0")


@pytest.mark.parametrize("fault", ["--tear", "--replace"])
def test_half_written_and_replaced_files_do_not_disturb_the_sum(simulate, fault):
    simulation = simulate(fault)
    assert simulation.is_energy_accurate("package-0", within=0.02)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("--freeze-at", "counter_frozen"),
        ("--vanish-at", "sensor_vanished"),
        ("--garbage-at", "garbage_reading"),
    ],
)
def test_data_from_before_a_counter_failure_are_kept(simulate, fault, code):
    simulation = simulate(fault, 0, "--fault-zone", "intel-rapl:0", seconds=1.5)
    assert code in simulation.codes
    package = simulation.domain("package-0")
    truth = simulation.true_joules("package-0")
    assert 0 < package["joules"] < 0.9 * truth
    assert package["joules"] + package["uncertainty_j"] > truth  # the interval covers the missing energy
    assert simulation.is_energy_accurate("dram-0")  # the other counters are unaffected


def test_denying_an_open_counter_loses_no_energy(simulate):
    simulation = simulate("--deny-at", 0)
    assert simulation.is_energy_accurate("package-0")


@pytest.mark.parametrize("period_us", [3_000, 20_000, 100_000])
def test_slow_counters_are_interpolated_and_the_interval_covers_the_truth(simulate, period_us):
    simulation = simulate("--period-us", period_us, "--jitter-us", 0, seconds=0)
    package = simulation.domain("package-0")
    # A delayed simulator makes the counter irregular: allow for the delay at full power (95 W).
    late_s = simulation.truth.longest_tick_interval_ns(simulation.start_ns, simulation.end_ns) * 1e-9 - period_us * 1e-6
    error_j = abs(package["joules"] - simulation.true_joules("package-0"))
    assert error_j <= package["uncertainty_j"] + 95 * late_s, (simulation.run, simulation.list_ticks_at_ends())
    assert simulation.is_energy_accurate("package-0", within=0.05)


@pytest.mark.parametrize(("period_us", "interval_ms"), [(1_000, 100), (100_000, 50)])
def test_intervals_of_moving_counters_add_up_and_are_never_estimated(simulate, period_us, interval_ms):
    simulation = simulate("--period-us", period_us, seconds=0, stat_flags=("-I", interval_ms))
    parts = [part for entry in simulation.run["intervals"] for part in entry["domains"] if part["name"] == "package-0"]
    assert {part["provenance"] for part in parts} <= {"measured", None}
    assert all(part["reason"] == "no-step" for part in parts if part["joules"] is None)
    total, package = sum(part["joules"] or 0 for part in parts), simulation.domain("package-0")
    step_j = simulation.true_joules("package-0") / simulation.run["elapsed_s"] * period_us * 1e-6
    assert total == pytest.approx(package["joules"], abs=2 * step_j + 0.5 + package["uncertainty_j"])


def test_one_denied_socket_keeps_its_row(joulemap, sysroots, tmp_path):
    machine = tmp_path / "machine"
    shutil.copytree(sysroots / "intel-2socket", machine)
    counter = machine / "sys/class/powercap/intel-rapl:1/energy_uj"
    counter.unlink()
    counter.mkdir()  # a folder: reading it as a file fails even for root
    report = joulemap("stat", "--json", "--sensors", "powercap", "--sysroot", machine, "--", "true").json
    domains = {domain["name"]: domain for domain in report["runs"][0]["domains"]}
    assert domains["package-1"]["joules"] is None and domains["package-1"]["reason"] == "failed"
    assert any("intel-rapl:1/energy_uj" in entry["message"] for entry in report["diagnostics"])


@pytest.mark.parametrize("fault", ["--reset-at", "--back-at"])
def test_a_counter_reset_loses_one_interval_and_is_reported(simulate, fault):
    simulation = simulate(fault, 0)
    assert "counter_reset" in simulation.codes
    assert simulation.is_energy_accurate("package-0", within=0.06)
    assert simulation.domain("package-0")["joules"] <= 1.01 * simulation.true_joules("package-0")


def test_commands_shorter_than_a_counter_update_have_energy(binaries, memory_directory):
    root = memory_directory / "machine"
    command = [
        binaries / "joulemap-simulated-machine", "--root", root, "--",
        binaries / "joulemap", "stat", "-r", "20", "--json", "--sysroot", root, "--", "true",
    ]  # fmt: skip
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    runs = json.loads(process.stdout)["runs"]
    for run in runs:
        package = next(domain for domain in run["domains"] if domain["name"] == "package-0")
        assert package["joules"] is None or package["joules"] > 0
    assert sum(domain["joules"] is not None for run in runs for domain in run["domains"]) > len(runs)


def test_the_interval_depends_on_how_the_estimate_is_made(simulate):
    simulation = simulate(stat_flags=("--sensors", "estimate"))
    package = simulation.domain("package-0")
    assert package["provenance"] == "estimated"
    assert "W" in package["model"]
    assert simulation.run["measured_j"] is None
    assert "only_estimated" in simulation.codes
