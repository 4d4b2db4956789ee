"""Programs that fork while their threads measure: children measure, exit, call exec or are killed, and none hangs.

tests/fork_stress does the same from C, with ten thousand forks."""

from __future__ import annotations

import json

PROGRAM = """
import faulthandler, json, os, random, signal, sys, threading, warnings
import joulemap as jm

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later warn of any thread, also of ours
FORKS, HANG_TIMEOUT_S = 40, 60
is_over = threading.Event()


def measure():
    with jm.measure("window") as m, jm.region("region"):
        jm.log(loss=1.0)
    return m.peek()


def work():
    while not is_over.is_set():
        measure()


def run_briefly():
    while not is_over.is_set():
        thread = threading.Thread(target=measure)
        thread.start()
        thread.join()


def child(action, write_end):
    # Says where it hangs, also inside of the library.
    faulthandler.dump_traceback_later(HANG_TIMEOUT_S, exit=True)
    if action == "exits":
        sys.exit(0)
    if action == "exec":
        os.execv("/bin/true", ["true"])
    measure()
    if action == "leaves":
        os._exit(0)
    if action == "nested":
        inner = os.fork()
        if inner == 0:
            measure()
            os._exit(0)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
    if action == "killed":
        os.write(write_end, b"+")
        while True:
            measure()
    sys.exit(0)


def fork(action):
    ready, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(action, write_end)
    os.close(write_end)
    if action == "killed":
        assert os.read(ready, 1) == b"+", "it ended before its first window"
        os.kill(pid, signal.SIGKILL)
    os.close(ready)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code == (-signal.SIGKILL if action == "killed" else 0), (action, code)


PARTS = {"measures": 1, "leaves": 1, "nested": 2, "exits": 0, "exec": 0, "killed": 0}  # that are complete
threads = [threading.Thread(target=target, daemon=True) for target in (work, work, run_briefly)]
for thread in threads:
    thread.start()
choice = random.Random(int(sys.argv[1]))
actions = [choice.choice(list(PARTS)) for _ in range(FORKS)]
try:
    for action in actions:
        fork(action)
finally:
    is_over.set()
for thread in threads:
    thread.join()
print(json.dumps({"complete": sum(map(PARTS.get, actions)) + 1, "killed": actions.count("killed")}))
"""


def test_children_of_a_recorded_program_that_measures_end_and_have_their_parts(record, sysroots):
    recorded_program = record(
        PROGRAM, "1", JOULEMAP_SYSROOT=str(sysroots / "intel-2socket"), JOULEMAP_SENSORS="powercap"
    )
    expected = json.loads(recorded_program.out)
    assert len([part for part in recorded_program.parts if part.of("end")]) == expected["complete"]
    assert len(recorded_program.parts) == expected["complete"] + expected["killed"]


def test_children_of_a_program_that_measures_end(python, sysroots):
    program = "sys.argv.append('2')\n" + PROGRAM
    python(program, JOULEMAP_SYSROOT=str(sysroots / "intel-2socket"), JOULEMAP_SENSORS="powercap")
