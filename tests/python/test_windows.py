"""Windows of a Python program on the simulated machine, against the truth, independent of the real machine's load."""

from __future__ import annotations

import pytest


def test_a_one_second_window_matches_the_truth(simulate):
    simulation = simulate("""
with jm.measure("second") as m:
    busy(1.0)
print(json.dumps(describe_energy(m.wait())))
""")
    window = simulation.result
    assert window["seconds"] >= 1.0
    assert window["provenance"] == "measured"
    for name in ("package-0", "core-0", "dram-0"):
        joules, uncertainty_j, _ = window["domains"][name]
        true_energy_j = simulation.true_joules(window, name)
        assert joules == pytest.approx(true_energy_j, abs=max(0.02 * true_energy_j, uncertainty_j))
    # The cores are part of the package and are counted once.
    assert window["joules"] == pytest.approx(window["domains"]["package-0"][0] + window["domains"]["dram-0"][0])
    assert 0 < window["uncertainty_j"] < window["joules"]


def test_a_hundred_overlapping_windows_cover_the_true_energy(simulate):
    simulation = simulate("""
windows = []
for i in range(100):
    windows.append(jm.begin(f"w{i}"))
    busy(0.002)
for window in windows:
    jm.end(window)
    busy(0.001)
print(json.dumps([describe_energy(window.wait()) for window in windows]))
""")
    assert len(simulation.result) == 100
    assert sum(simulation.contains_truth(window) for window in simulation.result) >= 94


def test_a_window_ended_between_updates_matches_the_truth(simulate):
    """The simulator is stopped: its machine uses no energy meanwhile, so load cannot make its counters wrong."""
    simulation = simulate("""
import signal
counter = os.environ["JOULEMAP_SIMULATED_ROOT"] + "/sys/class/powercap/intel-rapl:0/energy_uj"
with jm.measure("cut") as m:
    busy(0.1)
    os.kill(os.getppid(), signal.SIGSTOP)
    busy(0.1)
    stopped_ns = time.monotonic_ns()
    busy(0.2)
resumed_ns = time.monotonic_ns()
shown = open(counter).read()
os.kill(os.getppid(), signal.SIGCONT)
while open(counter).read() == shown:
    pass
print(json.dumps([describe_energy(m.wait()), stopped_ns, resumed_ns]))
""")
    window, stopped_ns, resumed_ns = simulation.result
    two_ticks_j = 0.3  # J at full power: the accuracy of its counters
    for name, (joules, uncertainty_j, _) in window["domains"].items():
        assert simulation.truth.joules(name, stopped_ns, resumed_ns) < two_ticks_j, name
        assert abs(joules - simulation.true_joules(window, name)) <= uncertainty_j + two_ticks_j, name


def test_windows_shorter_than_a_refresh_have_energy_and_interval(simulate):
    simulation = simulate("""
results = []
for i in range(30):
    with jm.measure("short") as m:
        busy(0.0002)
    results.append(describe_energy(m.wait()))
print(json.dumps(results))
""")
    for window in simulation.result:
        assert window["joules"] is None or window["joules"] > 0
        assert window["joules"] is not None or window["reason"]
    measured_windows = [window for window in simulation.result if window["joules"] is not None]
    assert len(measured_windows) >= 25
    short = [
        window for window in measured_windows if window["seconds"] < 0.001
    ]  # a busy machine makes some windows longer
    assert all(window["uncertainty_j"] > 0.3 * window["joules"] for window in short)  # the interval is wide
    assert sum(simulation.contains_truth(window) for window in measured_windows) >= 0.9 * len(measured_windows)


def test_nested_energies_are_ordered(simulate):
    simulation = simulate("""
with jm.measure("outer") as outer:
    with jm.measure("middle") as middle:
        with jm.measure("inner") as inner:
            busy(0.05)
        busy(0.02)
    busy(0.02)
print(json.dumps([m.joules for m in (inner, middle, outer)]))
""")
    inner_window_j, middle_window_j, outer_window_j = simulation.result
    assert 0 < inner_window_j < middle_window_j < outer_window_j


def test_windows_of_threads_and_tasks_are_their_own(simulate):
    simulation = simulate("""
import asyncio, threading
results = []
def work():
    with jm.measure("thread") as m:
        time.sleep(0.1)
    results.append(describe_energy(m.wait()))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
async def task(seconds):
    with jm.measure("task") as m:
        await asyncio.sleep(seconds)
    return m
async def main():
    return await asyncio.gather(*(task(0.05 * i) for i in range(1, 5)))
tasks = [describe_energy(m.wait()) for m in asyncio.run(main())]
print(json.dumps([results, tasks]))
""")
    threads, tasks = simulation.result
    assert len(threads) == 8
    assert sum(simulation.contains_truth(window) for window in threads + tasks) >= 11
    assert [window["joules"] for window in tasks] == sorted(window["joules"] for window in tasks)


def test_an_exception_closes_the_window_and_propagates(python):
    result = python("""
try:
    with jm.measure("failing") as m:
        busy(0.01)
        raise ValueError("mine")
except ValueError as error:
    print(json.dumps([str(error), m.ended, describe_energy(m.wait())]))
""")
    assert result[:2] == ["mine", True]
    assert result[2]["seconds"] >= 0.01


def test_a_child_of_a_fork_measures_anew_and_exits_cleanly(simulate):
    simulation = simulate("""
with jm.measure("before") as before:
    busy(0.02)
crossing = jm.begin("crossing")
inner, outer = os.pipe()
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of any thread, also of ours
pid = os.fork()
if pid == 0:
    jm.end(crossing)
    with jm.measure("child") as m:
        busy(0.1)
    os.write(outer, json.dumps([describe_energy(m.wait()), describe_energy(crossing.wait())]).encode())
    sys.exit(3)
child, lost = json.loads(os.read(inner, 100000))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
jm.end(crossing)
print(json.dumps([child, lost, status, describe_energy(before.wait()), describe_energy(crossing.wait())]))
""")
    child, lost_window, status, pre_fork_window, crossing = simulation.result
    assert status == 3
    for window in (child, pre_fork_window, crossing):
        assert simulation.contains_truth(window)
    assert lost_window["joules"] is None and "fork" in lost_window["reason"]


def test_a_process_with_an_open_window_exits(python):
    # At interpreter exit and through os._exit, each with an open window.
    assert python('window = jm.begin("open")\nprint("1")') == 1
    assert python('window = jm.begin("open")\nprint("2", flush=True)\nos._exit(0)') == 2


def test_peek_returns_the_energy_of_an_open_window_so_far(simulate):
    simulation = simulate("""
with jm.measure("open") as m:
    busy(0.1)
    first = m.peek()
    busy(0.1)
    second = m.peek()
    try:
        m.joules
    except jm.JoulemapError as error:
        refused = str(error)
print(json.dumps([first.joules, second.joules, m.joules, first.settled, refused]))
""")
    first_peek_j, second_peek_j, window_energy_j, is_peek_settled, refusal_message = simulation.result
    assert 0 < first_peek_j < second_peek_j < window_energy_j * 1.1
    assert not is_peek_settled
    assert "has not ended" in refusal_message


@pytest.mark.parametrize(("fault", "code"), [("--vanish-at", "sensor_vanished"), ("--garbage-at", "garbage_reading")])
def test_problems_in_a_window_are_reported_with_it(simulate, fault, code):
    simulation = simulate(
        """
with jm.measure("broken") as m:
    busy(0.5)
    faults_begin()
    busy(0.5)
print(json.dumps(describe_energy(m.wait())))
""",
        fault,
        0,
    )
    assert code in simulation.result["codes"]
    assert simulation.result["joules"] > 0  # the energy before the fault is kept
    assert simulation.result["joules"] + simulation.result["uncertainty_j"] > simulation.true_joules(
        simulation.result, "package-0"
    )


def test_without_sensors_the_time_is_right_and_the_energy_has_a_reason(python, tmp_path):
    result = python(f"""
jm.start(sysroot={str(tmp_path)!r}, sensors="powercap")
with jm.measure("blind") as m:
    time.sleep(0.05)
print(json.dumps([describe_energy(m.wait()), repr(m)]))
""")
    assert result[0]["joules"] is None and "doctor" in result[0]["reason"]
    assert result[0]["seconds"] >= 0.05
    assert "energy unknown" in result[1]
