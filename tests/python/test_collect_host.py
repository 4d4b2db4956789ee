"""The collector and its host: detection of disturbed measurements, and the choice of CPUs for the process. No GPU."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _collect import host, measure, rows, tables, windows  # noqa: E402
from _collect.power import GpuState  # noqa: E402


def network_row(name: str, time_s: float, launch_s=None, repeat: int = 0) -> dict:
    parameters = f"name={name};package=timm;batch=8;size=224"
    entry = {"kind": "network", "parameters": parameters, "dtype": "fp32", "pass": "inference", "cold": None}
    measurement_fields = {
        "way": "eager",
        "energy_j": 1.0,
        "slice": "s",
        "repeat": repeat,
        "time_s": time_s,
        "launch_s": launch_s,
    }
    return {"key": tables.row_key(entry), **entry, **measurement_fields}


def test_a_network_that_waited_for_an_unknown_host_is_measured_again_once(tmp_path):
    row_store = rows.RowStore(tmp_path)
    busy = {"waits": 0.004, "works": 0.0099, "known": 0.004}
    for name in busy:
        entry = {"launch_s": 8e-6, "quiet_windows": 9} if name == "known" else {}
        row_store.add_row({**network_row(name, 0.010), **entry})
        row_store.add_layers({"layers_of": network_row(name, 0)["key"], "busy_us": busy[name] * 1e6})
    reopened_row_store = rows.RowStore(tmp_path)
    assert [reopened_row_store.is_settled(network_row(name, 0)["key"]) for name in busy] == [False, True, True]
    reopened_row_store.add_row({**network_row("waits", 0.006, 8e-6), "quiet_windows": 9})
    assert reopened_row_store.is_settled(network_row("waits", 0)["key"])


def test_a_step_that_neither_its_host_nor_its_gpu_explains_is_measured_again(tmp_path):
    row_store = rows.RowStore(tmp_path)
    for name, busy_us in {"gpu": 8000, "neither": 4000}.items():
        row_store.add_row({**network_row(name, 0.010, 8e-6), "issue_s": 0.006})
        row_store.add_layers({"layers_of": network_row(name, 0)["key"], "busy_us": busy_us})
    reopened_row_store = rows.RowStore(tmp_path)
    assert [reopened_row_store.is_settled(network_row(name, 0)["key"]) for name in ("gpu", "neither")] == [True, False]


def test_process_moves_to_the_cpu_with_fastest_launches(monkeypatch):
    """Processor 2 is idle; on the others a launch takes longer."""
    now_s, affinity_state, moved_tasks = [0.0], [{0, 1, 2, 3}], []
    monkeypatch.setattr(host.os, "sched_getaffinity", lambda task: affinity_state[0])
    monkeypatch.setattr(host.os, "sched_setaffinity", lambda task, processor_set: move(task, processor_set))
    monkeypatch.setattr(host.time, "perf_counter", lambda: now_s[0])

    def move(task: int, processor_set: set) -> None:
        affinity_state[0] = (
            processor_set if task in (0, os.getpid()) else affinity_state[0]
        )  # threads of other tests may exist in this process
        moved_tasks.append(task)

    def launch() -> None:
        now_s[0] += 8e-6 if affinity_state[0] == {2} else 12e-6

    undisturbed = host.HostSpeedMeter(launch, lambda: None)
    assert undisturbed.fastest_launch_s == pytest.approx(12e-6)  # no faster launch seen yet
    assert (
        undisturbed.move_to_fastest_processors() == pytest.approx(8e-6)
        and 2 in affinity_state[0]
        and len(affinity_state[0]) == host.LAUNCH_PROCESSOR_COUNT
    )
    assert os.getpid() in moved_tasks and undisturbed.fastest_launch_s == pytest.approx(8e-6)


class FakeHost:
    """A step takes 10 ms and a launch 8 us; in disturbed windows both take 1.5 times as long."""

    def __init__(self, disturbed_in: set[int]) -> None:
        self.fastest_launch_s, self.move_count, self._windows, self._disturbed_in = 8e-6, 0, 0, disturbed_in

    def time_launch_s(self) -> float:
        return 12e-6 if self._windows in self._disturbed_in else 8e-6

    def move_to_fastest_processors(self) -> float:
        self.move_count += 1
        return 8e-6

    def timed(self, steps: int) -> float:
        self._windows += 1
        return steps * (0.015 if self._windows in self._disturbed_in else 0.010)


def test_windows_with_a_disturbed_host_do_not_count():
    fake = FakeHost(disturbed_in={2, 3})
    ran, steps = windows.run_windows(fake, fake.timed, step_s=0.010, active_s=0.2)
    assert windows.summarize_windows(ran, 8e-6) == windows.StepWindowSummary(
        pytest.approx(0.010), pytest.approx(8e-6), 5
    )
    assert (len(ran), steps, fake.move_count) == (7, 21, 2)  # each window: two steps after one to fill the queue


def test_a_host_that_never_settles_is_given_up_and_reported(monkeypatch):
    now_s = [0.0]
    monkeypatch.setattr(windows.time, "monotonic", lambda: now_s[0])

    def timed(steps: int) -> float:
        now_s[0] += 0.0625
        return steps * (0.010 + 0.1 * now_s[0])

    ran, _ = windows.run_windows(FakeHost(set()), timed, step_s=0.010, active_s=0.1)
    mean_s = 0.010 + 0.1 * 0.0625 * 3
    assert len(ran) == 5 and windows.summarize_windows(ran, 8e-6) == windows.StepWindowSummary(
        pytest.approx(mean_s), pytest.approx(8e-6), 0
    )


def test_a_co_tenant_that_is_always_active_is_detected_by_launch_times():
    equal_windows = [windows.StepWindow(0.015, 12e-6)] * 9
    assert (
        windows.summarize_windows(equal_windows, 12e-6).undisturbed == 9
        and windows.summarize_windows(equal_windows, 8e-6).undisturbed == 0
    )


def test_energy_is_that_of_a_step_with_an_undisturbed_host():
    """100 W idle power and 0.5 J per step above it: 12 steps of 10 ms and 12 of 15 ms."""
    run_s = 12 * 0.010 + 12 * 0.015
    watts = (24 * 0.5 + 100 * run_s) / run_s
    assert windows.undisturbed_energy_j(watts, run_s, 24, 0.010, 100) == pytest.approx(0.5 + 100 * 0.010)


def test_a_network_that_waits_for_its_host_is_settled_by_quiet_windows_alone(tmp_path):
    row_store = rows.RowStore(tmp_path)
    entry = {"old": (None, 8e-6), "never": (0, 8e-6), "slow": (5, 11e-6), "quiet": (5, 8e-6)}
    for name, (undisturbed, launch_s) in entry.items():
        row_store.add_row({**network_row(name, 0.010, launch_s), "issue_s": 0.0095, "quiet_windows": undisturbed})
    reopened_row_store = rows.RowStore(tmp_path)
    assert [reopened_row_store.is_settled(network_row(name, 0)["key"]) for name in entry] == [False, False, False, True]


class FakeCuda:
    """The part of torch that runs a network: issuing a step takes host time, waiting for it takes GPU time."""

    def __init__(self, issue_s: float, gpu_s: float) -> None:
        self.now_s, self.gpu_busy_until_s, self._issue_s, self._gpu_s, fake_cuda = 0.0, 0.0, issue_s, gpu_s, self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing

            def record(self, _) -> None:
                self.at_s = max(fake_cuda.now_s, fake_cuda.gpu_busy_until_s)

            def elapsed_time(self, end) -> float:
                return 1e3 * (end.at_s - self.at_s)

        self.cuda, self.Event = self, Event

    def Stream(self):  # noqa: N802 as torch calls it
        return self

    def stream(self, _):
        return contextlib.nullcontext()

    def synchronize(self) -> None:
        self.now_s = max(self.now_s, self.gpu_busy_until_s)

    def zeros(self, *_, **__):
        return FakeTensor(self)

    def step(self) -> None:
        self.now_s += self._issue_s
        self.gpu_busy_until_s = max(self.now_s, self.gpu_busy_until_s) + self._gpu_s


class FakeTensor:
    def __init__(self, cuda: FakeCuda) -> None:
        self._cuda = cuda

    def __add__(self, _):
        return self

    def add_(self, _) -> None:
        self._cuda.now_s += 8e-6


@pytest.mark.parametrize(("issue_s", "gpu_s", "in_windows"), [(0.010, 0.004, True), (0.002, 0.010, False)])
def test_a_network_is_timed_in_windows_where_it_waits_for_its_host(monkeypatch, issue_s, gpu_s, in_windows):
    fake = FakeCuda(issue_s, gpu_s)
    for module in (host, windows, measure):
        monkeypatch.setattr(module.time, "perf_counter", lambda: fake.now_s)
        monkeypatch.setattr(module.time, "monotonic", lambda: fake.now_s)
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: int(fake.now_s * 1e9))
        monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    runner = measure.CudaRunner(fake, lambda: GpuState(40, 1980, False))
    run = runner.run_network(fake.step, active_s=0.35, min_calls=4)
    assert run.time_s == pytest.approx(max(issue_s, gpu_s), rel=0.01) and run.issue_s == pytest.approx(issue_s)
    assert run.launch_s == pytest.approx(8e-6) and bool(run.quiet_windows) == in_windows
