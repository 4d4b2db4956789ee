"""Energy of the requests of a serving engine: programs that report steps, on a simulated GPU and without one."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

ROOT = Path(__file__).resolve().parent.parent.parent

# Serves two tenants for about 2 s: each step lasts as long as its work, and the GPU's power does not depend on it.
ENGINE_PROGRAM = """
import random, time
import joulemap as jm

draw = random.Random(5)
waiting = [[f"r{i}", draw.choice(("chat", "search")), draw.randrange(50, 400), draw.randrange(2, 20)] for i in range(24)]
running, context, number = [], {}, 0
while waiting or running:
    if waiting and number % 2 == 0:
        running.append(waiting.pop())
    number += 1
    with jm.engine_step() as step:
        work_s = 0.004
        for request in list(running):
            id, tenant, prompt, left = request
            new = id not in context
            context[id] = context.get(id, 0) + (prompt if new else 1)
            request[3] = left = left - 1
            work_s += 20e-6 * prompt if new else 0.5e-3
            aborted = id == "r3" and left == 0
            step.add(id, prompt=prompt if new else 0, decoded=1, context=context[id], tenant=tenant,
                     finished=left == 0 and not aborted, aborted=aborted, cached=16 if new and id == "r5" else 0)
            if left == 0:
                running.remove(request)
        until = time.monotonic() + work_s
        while time.monotonic() < until:
            pass
    if not running and waiting:
        time.sleep(0.05)
jm.engine_event("nobody", "aborted")
"""

# Dies in the middle of requests, once the capture has written steps.
CRASHING_PROGRAM = """
import os, signal
from pathlib import Path

def written():
    folder = Path(os.environ["JOULEMAP_RECORDING"])
    return sum(part.stat().st_size for part in folder.glob(f"*-{os.getpid()}-*.joule"))

def die():
    before = written()
    while written() == before:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
""" + ENGINE_PROGRAM.replace("    number += 1\n", "    number += 1\n    if number == 40: die()\n")


GPU_W = 300.0  # in steps, between them, and outside


def record(binaries: Path, folder: Path, program: str) -> tuple[Path, subprocess.CompletedProcess]:
    """Records a program on a GPU of constant power."""
    (folder / "engine.py").write_text(program)
    machine = FakeNvml(folder, binaries / "libjoulemap-fake-nvml.so", FakeGpu(power=[(0.0, GPU_W)]))
    file = folder / "run.joule"
    paths = {"PYTHONPATH": str(binaries.parent / "python"), "JOULEMAP_DATA": str(folder / "data")}
    command = [
        binaries / "joulemap",
        "record",
        "-o",
        file,
        "--sensors",
        "nvml",
        "--",
        sys.executable,
        folder / "engine.py",
    ]
    environment = {**os.environ, **machine.environment, **paths}
    return file, subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def served_recording(binaries, tmp_path_factory):
    file, process = record(binaries, tmp_path_factory.mktemp("serving"), ENGINE_PROGRAM)
    assert process.returncode == 0, process.stderr
    return file


def check_parts(report: dict) -> None:
    """Compares the parts with their true energy. Their sum is the measured energy by definition."""
    serving = report["serving"]
    span_s = serving["end_s"] - serving["begin_s"]
    tolerance_j = 0.05 * report["measured_j"]
    steps_j = serving["requests_j"] + serving["wasted_j"]
    assert steps_j == pytest.approx(GPU_W * serving["busy_s"], abs=tolerance_j)
    assert steps_j + serving["idle_j"] == pytest.approx(GPU_W * span_s, abs=tolerance_j)
    assert serving["outside_j"] == pytest.approx(report["measured_j"] - GPU_W * span_s, abs=tolerance_j)
    assert min(serving["requests_j"], serving["idle_j"], serving["outside_j"]) >= 0


def test_steps_have_their_energy_and_rows_sum_to_it(joulemap, served_recording):
    for report_level in ("request", "token"):
        report = joulemap("report", "--json", "--by", report_level, served_recording).json
        check_parts(report)
        assert sum(row["energy_j"] for row in report["rows"]) == pytest.approx(report["attributed_j"], rel=1e-6)
        assert min(row["energy_j"] for row in report["rows"]) >= 0


def test_requests_have_tokens_shares_and_labels(joulemap, served_recording):
    report = joulemap("report", "--json", "--by", "request", served_recording).json
    serving = report["serving"]
    assert serving["requests_total"] == 24 == len(serving["requests"]) == len(report["rows"])
    assert serving["finished"] == 23 and serving["aborted"] == 1
    by_id = {request["id"]: request for request in serving["requests"]}
    aborted = by_id["r3"]
    assert aborted["status"] == "aborted" and aborted["wasted_j"] == aborted["energy_j"]
    assert serving["wasted"]["aborted_j"] == pytest.approx(aborted["energy_j"])
    assert by_id["r5"]["cached_tokens"] == 16 == serving["cached_tokens"]
    for request in serving["requests"]:
        assert request["prefill_j"] + request["decode_j"] == pytest.approx(request["energy_j"])
        assert request["low_j"] <= request["energy_j"] <= request["high_j"]
        assert 0 <= request["marginal_j"] <= request["energy_j"] * 1.000001
    for share in ("token_j", "time_j", "energy_j"):
        assert sum(request[share] for request in serving["requests"]) == pytest.approx(report["attributed_j"], rel=1e-6)
    tenants = {label["name"]: label for label in serving["labels"] if label["kind"] == "tenant"}
    assert set(tenants) == {"chat", "search"}
    assert sum(label["energy_j"] for label in tenants.values()) == pytest.approx(report["attributed_j"], rel=1e-6)
    assert all(label["avoidable_j"] <= label["energy_j"] * 1.000001 for label in tenants.values())


def test_an_event_of_an_unknown_request_is_a_note(joulemap, served_recording):
    report = joulemap("report", "--json", "--by", "token", served_recording).json
    assert "engine_events_unknown" in {note["code"] for note in report["diagnostics"]}
    assert report["serving"]["requests"] == []


def test_the_text_shows_joules_per_token_and_request(joulemap, served_recording):
    text = joulemap("report", "--by", "token", served_recording).out
    for words in ("24 requests", "J per input token", "J per output token", "P99", "tenant chat", "idle while loaded"):
        assert words in text


def test_other_levels_have_no_serving(joulemap, served_recording):
    assert joulemap("report", "--json", "--by", "domain", served_recording).json["serving"] is None


def test_a_recording_without_engine_steps_has_a_note(joulemap):
    report = joulemap("report", "--json", "--by", "request", ROOT / "tests" / "data" / "recordings" / "v1.2.joule").json
    assert report["serving"] is None and report["rows"] == []
    assert "nothing_captured" in {note["code"] for note in report["diagnostics"]}


def test_csv_has_one_line_per_request(joulemap, served_recording, tmp_path):
    file = tmp_path / "requests.csv"
    assert joulemap("export", served_recording, "--to", "csv", "--by", "request", "-o", file).code == 0
    rows = list(csv.DictReader(file.open()))
    assert len(rows) == 24
    report = joulemap("report", "--json", "--by", "request", served_recording).json
    assert [float(row["energy_j"]) for row in rows] == pytest.approx(
        [request["energy_j"] for request in report["serving"]["requests"]]
    )


def test_tokens_are_stacks(joulemap, served_recording):
    stacks = joulemap("export", served_recording, "--to", "folded", "--by", "token")
    assert stacks.code == 0, stacks.err
    assert "prefill" in stacks.out and "decode" in stacks.out


def test_a_part_of_the_run_is_reported(joulemap, served_recording):
    whole_run_report = joulemap("report", "--json", "--by", "token", served_recording).json
    middle_s = (whole_run_report["serving"]["begin_s"] + whole_run_report["serving"]["end_s"]) / 2
    first_half_report = joulemap(
        "report", "--json", "--by", "token", "--time", f"0,{middle_s:.3f}", served_recording
    ).json
    assert 0 < first_half_report["serving"]["output_tokens"] < whole_run_report["serving"]["output_tokens"]
    # Requests that the part cuts end after it.
    assert first_half_report["serving"]["unfinished"] == 0 < first_half_report["serving"]["finished"]
    assert "requests_unfinished" not in {note["code"] for note in first_half_report["diagnostics"]}


def test_an_engine_that_is_killed_mid_request_loses_no_written_step(joulemap, binaries, tmp_path):
    file, process = record(binaries, tmp_path, CRASHING_PROGRAM)
    assert process.returncode == 128 + 9
    report = joulemap("report", "--json", "--by", "request", file).json
    assert 1 <= report["serving"]["steps"] <= 39
    assert report["serving"]["unfinished"] > 0
    assert "requests_unfinished" in {note["code"] for note in report["diagnostics"]}
    check_parts(report)


def test_shared_recordings_do_not_contain_ids_of_requests(joulemap, served_recording, tmp_path):
    file = tmp_path / "shared.joule"
    assert joulemap("share", served_recording, "-o", file).code == 0
    report = joulemap("report", "--json", "--by", "request", file).json
    assert {request["tenant"] for request in report["serving"]["requests"]} == {"tenant-1", "tenant-2"}
    assert not {"r1", "r2"} & {request["id"] for request in report["serving"]["requests"]}
    assert report["serving"]["requests_j"] == pytest.approx(
        joulemap("report", "--json", "--by", "request", served_recording).json["serving"]["requests_j"]
    )


EVENT_PROGRAM = """
import joulemap as jm

for request in range(20):
    with jm.engine_step() as step:
        for count in (-1, 2**32, 2**70):
            try:
                step.add(request, prompt=count)
                raise AssertionError(count)
            except ValueError as error:
                assert f"not {count}" in str(error), error
        step.add(request, prompt=100, decoded=1, context=100)
        sum(range(200000))
    jm.engine_event(request, "preempted")
    with jm.engine_step() as step:
        step.add(request, prompt=101, decoded=1, context=101, finished=True)
        sum(range(200000))
"""


def test_a_preemption_between_steps_is_waste_and_token_counts_do_not_wrap(joulemap, binaries, tmp_path):
    file, process = record(binaries, tmp_path, EVENT_PROGRAM)
    assert process.returncode == 0, process.stderr
    serving = joulemap("report", "--json", "--by", "token", file).json["serving"]
    assert serving["prompt_tokens"] == 20 * 101 and serving["wasted"]["preempted_j"] > 0  # 100 of 201 are computed again


C_PROGRAM = """
import ctypes, os, time
from pathlib import Path

class Work(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_char_p) for name in ("id", "tenant", "model")),
                *((name, ctypes.c_uint32) for name in ("prompt", "cached", "decoded", "rejected", "context", "events")),
                ("later", ctypes.c_uint64)]  # a member of a later version

class Step(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("begin_ns", ctypes.c_int64), ("end_ns", ctypes.c_int64),
                ("requests", ctypes.POINTER(Work)), ("count", ctypes.c_size_t)]

library = ctypes.CDLL(os.environ["LIBRARY"])
library.jm_last_error.restype = ctypes.c_char_p
size = ctypes.sizeof(Work)
works = (Work * 2)(Work(size, b"a", b"t", None, 10, 0, 1, 0, 10, 0), Work(size, b"b", None, None, 0, 0, 2, 1, 5, 1))
now = time.monotonic_ns()
step = Step(ctypes.sizeof(Step), now, now + 1000, works, 2)
assert library.jm_engine_step(ctypes.byref(step)) == 0, library.jm_last_error()
assert library.jm_engine_step(None) == 2
works[1].later = 1
assert library.jm_engine_step(ctypes.byref(step)) == 2 and b"does not support" in library.jm_last_error()
works[1].later, works[0].id = 0, None
assert library.jm_engine_step(ctypes.byref(step)) == 2 and b"id" in library.jm_last_error()
works[0].id, works[0].events = b"a", 64
assert library.jm_engine_step(ctypes.byref(step)) == 2 and b"events" in library.jm_last_error()
works[0].events, works[0].size = 0, 0
assert library.jm_engine_step(ctypes.byref(step)) == 2 and b"size" in library.jm_last_error()
step.requests, step.size = None, 8
assert library.jm_engine_step(ctypes.byref(step)) == 2
"""


def test_the_c_interface_records_steps_and_refuses_invalid_ones(joulemap, binaries, tmp_path, monkeypatch):
    monkeypatch.setenv("LIBRARY", str(binaries.parent / "lib" / "libjoulemap.so"))
    file, process = record(binaries, tmp_path, C_PROGRAM)
    assert process.returncode == 0, process.stderr
    serving = joulemap("report", "--json", "--by", "request", file).json["serving"]
    assert serving["steps"] == 1
    assert [
        (request["id"], request["tenant"], request["prompt_tokens"], request["output_tokens"])
        for request in serving["requests"]
    ] == [
        ("a", "t", 10, 1), ("b", None, 0, 2)
    ]  # fmt: skip
