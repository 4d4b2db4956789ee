"""Probing: modules are replayed after the run, without side effects on the program."""

from __future__ import annotations

import pytest
from recorded_program import run_without_joulemap

# Each module is probed for a tenth of a second; the total limit is far away, however busy the machine is.
SHORTEN_PROBING = "from joulemap import _torch_probe; _torch_probe.MAX_TIME_PER_MODULE_S = 0.1\n"

NETWORK_PROGRAM = """
import random, sys
import torch, torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
random.seed(0)
called = []

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.calls = 0
    def forward(self, x, *, scale=1.0):
        self.calls += 1
        print("forward", random.random())
        return x + scale * self.relu(self.norm(self.conv(x)))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.block = Block(8)
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(8, 4)
    def forward(self, x):
        x = self.block(self.stem(x), scale=0.5)
        x, _ = self.lstm(x.flatten(2).transpose(1, 2))
        return self.head(self.drop(self.normed(x[:, -1])))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net.head.register_forward_hook(lambda *arguments: called.append("module"))
net.head.weight.register_hook(lambda gradient: called.append("parameter"))

def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(torch.randn(4, 3, 10, 10)), torch.randint(0, 4, (4,)))
        loss.backward()
        optimizer.step()
        print(loss.item())

def tell_state():
    print(sum(p.double().sum().item() for p in net.parameters()), [p.grad.double().sum().item() for p in net.parameters()])
    print([b.double().sum().item() for b in net.buffers()], [m.training for m in net.modules()])
    print(net.block.calls, called, random.random(), torch.rand(3).tolist(), torch.is_grad_enabled())
"""

ON = "run = jm.attach(net, probe=True)\ntrain(4)\nrun.detach()\n"
TRAIN_WITHOUT_ATTACH = "train(4)\n"
CONTINUE_TRAINING = "tell_state()\ntrain(4)\ntell_state()\n"


def probed_modules(part) -> dict:
    return {path[1:]: row for path, row in part.times.items() if path[:1] == ("probe",) and path[1:2] != ("keep",)}


def test_training_goes_on_bit_for_bit_after_probing(record, tmp_path):
    unrecorded_process = run_without_joulemap(
        tmp_path / "alone", NETWORK_PROGRAM + TRAIN_WITHOUT_ATTACH + CONTINUE_TRAINING
    )
    assert unrecorded_process.returncode == 0, unrecorded_process.stderr
    recorded_program = record(
        SHORTEN_PROBING + NETWORK_PROGRAM + "import joulemap as jm\n" + ON + CONTINUE_TRAINING, JOULEMAP_PROBE="60"
    )
    assert recorded_program.out == unrecorded_process.stdout
    assert recorded_program.err == unrecorded_process.stderr
    assert recorded_program.part.diagnostics == []
    assert recorded_program.part.steps == 8
    assert probed_modules(recorded_program.part)


def test_each_module_is_replayed_forward_and_backward_at_the_end(record, tmp_path):
    unrecorded_process = run_without_joulemap(tmp_path / "alone", NETWORK_PROGRAM + TRAIN_WITHOUT_ATTACH)
    recorded_program = record(SHORTEN_PROBING + NETWORK_PROGRAM + TRAIN_WITHOUT_ATTACH, JOULEMAP_PROBE="60")
    assert recorded_program.out == unrecorded_process.stdout and recorded_program.err == unrecorded_process.stderr
    part = recorded_program.part
    assert part.diagnostics == []
    times = probed_modules(part)
    for layer in ("stem", "block", "block.conv", "block.norm", "block.relu", "lstm", "normed", "drop", "head", "Net"):
        for phase in ("forward", "backward"):
            assert times[(phase, layer)][0] >= 3, (phase, layer, sorted(times))
    assert part.count("train", "forward", "Net", "stem") == 4
    marks = [line for line in part.of("mark") if line.endswith("joulemap.probe")]
    assert len(marks) == 2, part.of("mark")
    assert any("seed" in fact_line for fact_line in part.of("fact"))


def test_inference_is_replayed_without_gradients(record):
    program = "net.eval()\nwith torch.no_grad():\n    [net(torch.randn(4, 3, 10, 10)) for _ in range(2)]\n"
    part = record(SHORTEN_PROBING + NETWORK_PROGRAM + program, JOULEMAP_PROBE="60").part
    assert {path[0] for path in probed_modules(part)} == {"forward"}


def test_equal_modules_are_replayed_once(record):
    program = """
import torch, torch.nn as nn
net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)), nn.Linear(8, 2))
for _ in range(2):
    net(torch.randn(4, 8)).sum().backward()
"""
    part = record(SHORTEN_PROBING + program, JOULEMAP_PROBE="60").part
    # The first layer needs no gradient of its input.
    assert {path[1] for path in probed_modules(part) if path[0] == "forward"} == {"0", "1", "6"}


def test_without_free_memory_inputs_are_generated(record):
    program = """
import torch, torch.nn as nn
from joulemap import _torch_probe_inputs
_torch_probe_inputs.SHARE_OF_FREE_MEMORY = 0
net = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 2))
for _ in range(3):
    net(torch.randint(3, 10, (4, 5))).sum().backward()
"""
    part = record(SHORTEN_PROBING + program, JOULEMAP_PROBE="60").part
    assert {path[1] for path in probed_modules(part)} == {"0", "1"}
    assert part.diagnostics == []


@pytest.mark.parametrize(
    "ending, code", [("raise ValueError('no')", 1), ("import os; os._exit(4)", 4), ("os.kill(os.getpid(), 15)", -15)]
)
def test_a_program_that_does_not_end_well_is_not_probed(record, ending, code):
    recorded_program = record(
        NETWORK_PROGRAM + "import os\n" + TRAIN_WITHOUT_ATTACH + ending + "\n", code=code, JOULEMAP_PROBE="60"
    )
    assert not probed_modules(recorded_program.part)
    if code == 1:
        assert recorded_program.part.diagnostics == ["not_probed"]


def test_the_exit_code_stays_the_program_s_own(record):
    recorded_program = record(
        SHORTEN_PROBING + NETWORK_PROGRAM + TRAIN_WITHOUT_ATTACH + "sys.exit(3)\n", code=3, JOULEMAP_PROBE="60"
    )
    assert probed_modules(recorded_program.part)


def test_a_module_that_fails_is_left_out_and_named(record):
    program = """
import torch, torch.nn as nn
class Once(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most
    def forward(self, x):
        if getattr(self, "done", 0) > self.most:
            raise RuntimeError("never again")
        self.done = getattr(self, "done", 0) + 1
        return x * 2
class Cache:
    pass
class TakesACache(nn.Module):
    def forward(self, x, cache):
        return x
net = nn.Sequential(nn.Linear(4, 4), Once(3), nn.Linear(4, 3), Once(8))
for _ in range(4):
    net(torch.randn(2, 4)).sum().backward()
taker = TakesACache()
for _ in range(2):
    taker(torch.randn(2), Cache())
"""
    part = record(SHORTEN_PROBING + program, JOULEMAP_PROBE="60").part
    results = [line for line in part.of("diagnostic") if line.startswith("probe_skipped")]
    assert [line.split()[2] for line in results] == ["TakesACache", "1", "3"], results
    assert ("forward", "0") in probed_modules(part)
    assert "not_probed" not in part.diagnostics


def test_nothing_is_kept_unless_probing_was_asked_for(record):
    part = record(NETWORK_PROGRAM + TRAIN_WITHOUT_ATTACH).part
    assert not any(path[:1] == ("probe",) for path in part.times)
