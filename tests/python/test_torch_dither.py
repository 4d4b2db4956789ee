"""Dithering: pauses at random scopes delay a program by at most 1 % of its time; its results stay the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from recorded_program import run_without_joulemap

# Pauses of a hundredth of the usual length: as many in seconds as usually in minutes.
SHORTEN_PAUSES = (
    "from joulemap import _torch_dither; _torch_dither.MIN_PAUSE_S, _torch_dither.MAX_PAUSE_S = 0.0002, 0.0004\n"
)

TRAINING_PROGRAM = """
import random, sys
import torch, torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
random.seed(0)
layers = nn.Linear(64, 64), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
net = nn.Sequential(*layers)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(torch.randn(256, 64)), torch.randint(0, 4, (256,)))
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
print([p.double().sum().item() for p in net.parameters()], random.random(), torch.rand(3).tolist())
"""
STEPS = "1500"


def list_pauses(part) -> list[tuple[int, int]]:
    """Begin and end of each pause in ns, from the marks of its region."""
    begins: dict[str, int] = {}
    pauses = []
    for line in part.of("mark"):
        _, time_ns, kind, number, _, name = line.split(" ", 5)
        if name == "joulemap.dither" and kind == "4":
            begins[number] = int(time_ns)
        elif name == "joulemap.dither" and kind == "5":
            pauses.append((begins.pop(number), int(time_ns)))
    assert not begins
    return pauses


def test_a_dithered_program_computes_the_same_results(record, tmp_path):
    unrecorded_process = run_without_joulemap(tmp_path / "alone", TRAINING_PROGRAM, STEPS)
    assert unrecorded_process.returncode == 0, unrecorded_process.stderr
    recorded_program = record(SHORTEN_PAUSES + TRAINING_PROGRAM, STEPS, JOULEMAP_DITHER="7")
    assert recorded_program.out == unrecorded_process.stdout
    assert recorded_program.err == unrecorded_process.stderr
    assert recorded_program.part.diagnostics == []
    assert any(line.split(" ", 1)[1] == "dither_seed 7" for line in recorded_program.part.of("fact"))
    pauses = list_pauses(recorded_program.part)
    assert len(pauses) >= 5
    # Total pause time when the last pause begins. (The length of the last one depends on the machine's load.)
    paused_ns = sum(end - begin for begin, end in pauses[:-1])
    started_ns = int(recorded_program.part.of("source")[0].split()[5])
    assert paused_ns <= 0.01 * (pauses[-1][0] - started_ns)


def test_the_program_is_paused_in_every_phase_of_a_step(record):
    recorded_program = record(SHORTEN_PAUSES + TRAINING_PROGRAM, "3000", JOULEMAP_DITHER="1")
    places = {path[:-1] for path in recorded_program.part.times if path[-1:] == ("joulemap.dither",)}
    phases = {path[1] for path in places if len(path) > 1}
    assert {"forward", "backward"} <= phases, places
    assert len(places) >= 4, places


# 600 s of a program's run time, with a simulated clock.
SIMULATED_PROGRAM = """
import random
from joulemap import _torch_dither

class Clock:
    now = 0.0
class Torch:
    class cuda:
        is_initialized = staticmethod(lambda: False)
    class distributed:
        is_available = staticmethod(lambda: False)

def live(seed):
    clock, slept = Clock(), []
    def sleep(length):
        slept.append((clock.now, length))
        clock.now += length * late.uniform(1, 1.2)
    late = random.Random(5)
    dither = _torch_dither.PauseDither(Torch, seed, lambda: clock.now, sleep)
    worst = 0.0
    while clock.now < 600:
        clock.now += late.uniform(0, 0.004)
        dither.maybe_pause()
        worst = max(worst, dither.paused_s / clock.now)
    return slept, dither.paused_s / clock.now, worst

import torch
first, share, worst = live(1)
assert first == live(1)[0] and first != live(2)[0]
assert 0.006 < share <= 0.01 and worst <= 0.0105, (share, worst)
assert all(0.02 <= length <= 0.04 for _, length in first)
gaps = [b[0] - a[0] for a, b in zip(first, first[1:])]
print(len(first), round(min(gaps), 3), round(max(gaps), 3))
"""


def test_pauses_are_random_and_stay_below_a_hundredth(record):
    recorded_program = record(SIMULATED_PROGRAM)
    count, shortest_gap_s, longest_gap_s = map(float, recorded_program.out.split())
    assert 120 <= count <= 300
    assert shortest_gap_s < 1.5 and longest_gap_s > 6


def test_distributed_processes_are_not_dithered(record):
    program = (
        SHORTEN_PAUSES
        + """
import torch.distributed as dist, time, torch
dist.is_initialized = lambda: True
dist.get_world_size = lambda: 2
dist.get_rank = lambda *group: 0
net = torch.nn.Linear(4, 4)
begin = time.monotonic()
while time.monotonic() < begin + 1:
    net(torch.randn(2, 4))
"""
    )
    recorded_program = record(program, JOULEMAP_DITHER="1")
    assert recorded_program.part.diagnostics == ["not_dithered"]
    assert list_pauses(recorded_program.part) == []


@pytest.fixture
def recorded_report(joulemap, tmp_path: Path):
    def run(program: str, *arguments: str) -> tuple[dict, str]:
        file = tmp_path / "run.joule"
        script = tmp_path / "program.py"
        script.write_text(program)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, script, *arguments]
        outcome = joulemap("record", "--dither", "-o", file, "--", *command, env=environment)
        assert outcome.code == 0, outcome.err
        return joulemap("report", "--json", file).json, joulemap("report", file).out

    return run


def test_record_dither_reports_the_paused_time_and_the_seed(recorded_report):
    result, text = recorded_report(SHORTEN_PAUSES + TRAINING_PROGRAM, STEPS)
    assert (
        0 < result["overhead"]["dither_s"] <= 0.015 * result["elapsed_s"]
    )  # a sleep may last longer on a busy machine
    assert "paused by --dither" in text
    assert int(result["environment"]["dither_seed"]) >= 0
    assert "not_dithered" not in {entry["code"] for entry in result["diagnostics"]}


def test_a_program_without_pytorch_is_reported_as_not_dithered(recorded_report):
    result, text = recorded_report("print('nothing to pause')")
    assert result["overhead"]["dither_s"] is None
    assert "not_dithered" in {entry["code"] for entry in result["diagnostics"]}
