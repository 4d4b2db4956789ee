"""The package from a user's view: import cost, decorators, marks, texts, errors."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


def test_importing_loads_nothing_heavy_and_starts_nothing(environment):
    program = """
import sys, threading
before = set(sys.modules)
import joulemap
new = set(sys.modules) - before
heavy = {"numpy", "torch", "asyncio", "ctypes", "dataclasses", "inspect", "json", "typing", "subprocess"} & new
import os
print(sorted(heavy), len(os.listdir("/proc/self/task")), "threads")
"""
    out = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert out.stdout == "[] 1 threads\n"


def test_a_measurement_prints_as_one_line(simulate):
    result = simulate("""
with jm.measure("epoch") as m:
    busy(0.2)
unused = jm.measure("unused")
print(json.dumps([repr(m), repr(unused)]))
""").result
    number = r"\d+(\.\d+)?"
    assert re.fullmatch(
        rf"epoch: {number} J ± {number} J in {number} s \(package-0 {number} J, dram-0 {number} J\), measured",
        result[0],
    )
    assert result[1] == "unused: not begun"


def test_decorators_measure_functions_coroutines_and_generators(python):
    result = python("""
import asyncio, inspect

@jm.measure
def plain(a, b=2):
    "Adds."
    return a + b

@jm.measure("named")
def named():
    raise KeyError("x")

@jm.measure
async def later():
    await asyncio.sleep(0.02)
    return "later"

@jm.measure("numbers")
def numbers():
    got = yield 1
    yield got
    return "end"

@jm.measure
async def stream():
    yield 1
    yield 2

async def collect():
    return [value async for value in stream()]

generator = numbers()
first = next(generator)
second = generator.send("sent")
try:
    next(generator)
except StopIteration as stop:
    last = stop.value
try:
    named()
except KeyError:
    pass
print(json.dumps({
    "plain": [plain(1), plain.__name__, plain.__doc__, plain.calls, plain.last.name],
    "named": [named.calls, named.last.name, named.last.ended],
    "later": [asyncio.run(later()), inspect.iscoroutinefunction(later), later.last.seconds],
    "numbers": [first, second, last, numbers.last.name],
    "stream": asyncio.run(collect()),
}))
""")
    assert result["plain"] == [3, "plain", "Adds.", 1, "plain"]
    assert result["named"] == [1, "named", True]
    assert result["later"][:2] == ["later", True] and result["later"][2] >= 0.02
    assert result["numbers"] == [1, "sent", "end", "numbers"]
    assert result["stream"] == [1, 2]


def test_marks_do_nothing_and_complain_of_nothing_outside_of_a_recording(python):
    result = python("""
class Scalar:
    device = "cpu"
    def __float__(self): return 0.5
with jm.region("outer"), jm.region("inner"):
    jm.step(); jm.step(7); jm.epoch(); jm.epoch(1)
    jm.log(loss=0.5, accuracy=1, scalar=Scalar())
print(json.dumps(jm.is_recording()))
""")
    assert result is False


def test_a_tensor_on_a_gpu_is_refused_instead_of_waited_for(python):
    result = python("""
class Device:
    type = "cuda"
    def __str__(self): return "cuda:0"
class Tensor:
    device = Device()
    def __float__(self): raise AssertionError("it was read")
try:
    jm.log(loss=Tensor())
except TypeError as error:
    print(json.dumps(str(error)))
""")
    assert "cuda:0" in result and "loss.item()" in result


@pytest.mark.parametrize("call", ["jm.measure(3)", "jm.region(3)", "jm.log(loss='x')", "jm.step('x')"])
def test_nonsense_is_a_python_error(environment, call):
    program = f"import joulemap as jm\n{call}"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert out.returncode == 1
    assert re.search(r"^(TypeError|ValueError): .", out.stderr, re.MULTILINE)


def test_starting_twice_and_unknown_sensors_are_reported(python):
    result = python("""
errors = []
for options in ({"sensors": "none-such"}, {}, {}):
    try:
        jm.start(**options)
    except jm.JoulemapError as error:
        errors.append(str(error))
jm.stop()
with jm.measure("after") as m:
    pass
print(json.dumps([errors, m.seconds]))
""")
    errors, seconds = result
    assert "none-such" in errors[0] and "known sensors" in errors[0]
    assert "already" in errors[1]
    assert seconds >= 0


def test_ended_windows_can_be_read_after_stop(simulate):
    result = simulate("""
with jm.measure("kept") as m:
    busy(0.1)
jm.stop()
print(json.dumps([m.joules, m.seconds]))
""").result
    assert result[0] > 0


def test_the_doctor_is_the_programs(python, joulemap, sysroots):
    result = python(f'print(json.dumps(jm.doctor(sysroot="{sysroots}/intel-2socket")))')
    expected = joulemap("doctor", "--json", "--sysroot", sysroots / "intel-2socket").json
    assert [sensor["name"] for sensor in result["sensors"]] == [sensor["name"] for sensor in expected["sensors"]]
    assert result["schema"] == "joulemap.doctor/1"


def test_a_million_windows_leave_no_memory_behind(python):
    result = python("""
import resource
def loop(count):
    for _ in range(count):
        with jm.measure("x"):
            pass
loop(20000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
loop(1000000)
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
""")
    assert result < 20_000  # kB


def test_marks_of_a_recorded_program_are_in_the_recording(binaries, environment, memory_directory):
    program = """
import os, sys
import joulemap as jm
assert jm.is_recording()
for number in range(3):
    jm.step()
    with jm.region("forward"), jm.measure("window"):
        pass
    jm.log(loss=1 / (number + 1))
if os.fork() == 0:  # a child has a part of its own
    jm.epoch(5)
    sys.exit(0)
os.wait()
"""
    file = memory_directory / "run.joule"
    record = [binaries / "joulemap", "record", "-o", file, "--", sys.executable, "-c", program]
    completed_process = subprocess.run(record, capture_output=True, text=True, env=environment, timeout=120)
    assert completed_process.returncode == 0, completed_process.stderr
    result = file.read_bytes()
    assert result and not (memory_directory / "run.joule.d").exists()  # all parts were joined
