"""Blocks run twice: the extra cost of a pass is the cost of the block, and the model's results do not change."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Exact synthetic energy: modules declare the cost of a call, forward and backward.
EXACT_COST_PROGRAM = """
import contextlib, random
import torch, torch.nn as nn
from joulemap import _validate, _validate_statistics as numbers

torch.manual_seed(0)
torch.set_num_threads(1)
spent = 0.0

class Spend(torch.autograd.Function):
    @staticmethod
    def forward(context, x, forward_j, backward_j):
        global spent
        spent += forward_j
        context.joules = backward_j
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        global spent
        spent += context.joules
        return gradient, None, None

class Costly(nn.Module):
    def __init__(self, forward_j, backward_j=0.0):
        super().__init__()
        self.costs = forward_j, backward_j
        self.linear = nn.Linear(6, 6)
    def forward(self, x):
        return Spend.apply(self.linear(x), *self.costs)

class CountingMeter:
    lead_s = 0.001
    def __init__(self):
        self.spans = []
    def begin(self):
        self.spans.append([spent, 0.0])
        return len(self.spans) - 1
    def end(self, number):
        self.spans[number][1] = spent
    def joules(self, number):
        return self.spans[number][1] - self.spans[number][0]

def doubled(model, inputs, train=False, blocks=None, loss=None):
    run = _validate.ModelPass(torch, model, _validate._make_model_call(model, inputs, loss, train), train)
    with _validate.BlockDoublingSession(torch, model, run, blocks) as validation:
        blocks = numbers.compute_block_energies(*validation.measure_blocks(CountingMeter(), 0.005, 3, 1, lambda text: None))
    return {extra.block: extra for extra in blocks.extra_energies}, blocks.pass_j, validation

def print_validation(model, inputs, **more):
    found, pass_j, validation = doubled(model, inputs, **more)
    joules = {block: round(extra.joules, 6) for block, extra in found.items()}
    print(json.dumps({"joules": joules, "pass_j": round(pass_j, 6), "refused": validation.refused,
                      "half_widths": [extra.half_width_j for extra in found.values()]}))
"""

NETWORK_PROGRAM = """
class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        return Spend.apply(self.relu(x), 0.25, 0.5)

class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = Costly(1.0, 2.0), Costly(3.0, 4.0)
    def forward(self, x, *, scale=1.0):
        return {"sum": self.one(x) * scale, "unused": self.other(x).detach(), "both": (self.other.linear(x),)}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = Costly(2.0, 3.0)
        self.act = InPlace()
        self.norm = nn.BatchNorm1d(6)
        self.pair = Pair()
        self.drop = nn.Dropout(0.5)
        self.head = Costly(0.5, 1.5)
    def forward(self, x):
        x = self.norm(self.act(self.stem(x)))
        pair = self.pair(x, scale=0.5)
        return self.head(self.drop(pair["sum"] + pair["both"][0]))

net, x = Net(), torch.randn(8, 6)
"""


def test_the_energy_of_a_block_is_the_extra_energy_of_a_pass_that_runs_it_twice(python):
    result = python(EXACT_COST_PROGRAM + NETWORK_PROGRAM + "print_validation(net, x)\n")
    expected_energies_j = {"stem": 2.0, "act": 0.25, "norm": 0.0, "pair": 4.0, "drop": 0.0, "head": 0.5}
    assert result["joules"] == expected_energies_j
    assert result["pass_j"] == sum(expected_energies_j.values())
    assert result["half_widths"] == pytest.approx([0.0] * len(expected_energies_j), abs=1e-9)


def test_in_training_it_costs_its_backward_pass_too(python):
    result = python(EXACT_COST_PROGRAM + NETWORK_PROGRAM + "print_validation(net, x, train=True)\n")
    # No gradient of pair.other's output is needed: it has no backward pass, whether it runs once or twice.
    assert result["joules"] == {"stem": 5.0, "act": 0.75, "norm": 0.0, "pair": 6.0, "drop": 0.0, "head": 2.0}
    assert result["pass_j"] == 13.75


def test_a_recurrent_block_whose_final_state_is_unused_is_run_twice_in_training(python):
    program = """
class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.lstm, self.head = Costly(2.0, 3.0), nn.LSTM(6, 6), Costly(0.5, 1.5)
    def forward(self, x):
        return self.head(self.lstm(self.stem(x))[0])
print_validation(Recurrent(), torch.randn(8, 6), train=True, blocks=["stem", "lstm", "head"])
"""
    result = python(EXACT_COST_PROGRAM + program)
    assert result["refused"] == {}
    assert result["joules"] == {"stem": 5.0, "lstm": 0.0, "head": 2.0}


def test_blocks_may_be_named_and_put_together(python):
    blocks = {"front": ["stem", "norm"], "pair": ["pair.one"], "head": ["head"]}
    result = python(EXACT_COST_PROGRAM + NETWORK_PROGRAM + f"print_validation(net, x, train=True, blocks={blocks!r})\n")
    assert result["joules"] == {"front": 5.0, "pair": 3.0, "head": 2.0}
    result = python(EXACT_COST_PROGRAM + NETWORK_PROGRAM + 'print_validation(net, x, blocks=["pair.one", "head"])\n')
    assert result["joules"] == {"pair.one": 1.0, "head": 0.5}


def test_a_block_of_another_name_is_refused_at_once(python):
    program = "try:\n    print_validation(net, x, blocks=['steam'])\n"
    program += "except ValueError as error:\n    print(json.dumps(str(error)))\n"
    assert "no module 'steam'" in python(EXACT_COST_PROGRAM + NETWORK_PROGRAM + program)


UNDISTURBED_PROGRAM = """
def state():
    tensors = [*net.state_dict().values(), *(p.grad for p in net.parameters() if p.grad is not None)]
    flags = [(name, module.training, sorted(module.__dict__)) for name, module in net.named_modules()]
    return [tensor.tolist() for tensor in tensors], flags, [id(p.grad) for p in net.parameters()], len(called), x.tolist()

def randoms():
    return random.random(), torch.rand(3).tolist()

called = []
net.head.register_forward_hook(lambda *arguments: called.append(1))
net.head.linear.weight.register_hook(lambda gradient: called.append(2))
net(x).sum().backward()
net.drop.eval()
random.seed(5); torch.manual_seed(5)
expected = randoms()
random.seed(5); torch.manual_seed(5)
before = state()
for train in (False, True):
    doubled(net, x, train=train, loss=lambda output: output.square().mean())
same = [before == state(), expected == randoms(), torch.is_grad_enabled()]
net(x).sum().backward()
print(json.dumps([*same, len(called)]))
"""


def test_the_model_its_gradients_buffers_and_random_numbers_are_left_as_they_were(python):
    assert python(EXACT_COST_PROGRAM + NETWORK_PROGRAM + UNDISTURBED_PROGRAM) == [True, True, True, 4]


REFUSALS_PROGRAM = """
class Cache: pass

class TakesCache(nn.Module):
    def forward(self, x, cache):
        return x * 2

class Speaks(nn.Module):
    def forward(self, x):
        return "hello"

class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.good, self.shared, self.unused = Costly(1.0), Costly(2.0), Costly(9.0)
        self.cache, self.speaks, self.moody = TakesCache(), Speaks(), Moody()
    def forward(self, x):
        self.speaks(x)
        return self.moody(self.cache(self.shared(self.shared(self.good(x))), Cache()))

class Moody(nn.Module):
    def forward(self, x):
        if getattr(self, "last", None) is x:
            self.last = None
            raise RuntimeError("not the same again")
        self.last = x
        return x

print_validation(Odd(), torch.randn(4, 6))
"""


def test_blocks_that_cannot_be_run_twice_are_listed_with_a_reason_and_the_others_are_measured(python):
    result = python(EXACT_COST_PROGRAM + REFUSALS_PROGRAM)
    assert result["joules"] == {"good": 1.0}
    assert result["refused"] == {
        "shared": "called 2 times in a pass",
        "unused": "not called in a pass",
        "cache": "takes a Cache, which a second call may change",
        "speaks": "its output is a str without tensors",
        "moody": "RuntimeError: not the same again",
    }


def test_a_model_with_few_children_is_split_at_its_largest_child(python):
    program = """
import torch.nn as nn
from joulemap._validate_blocks import choose_blocks

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.out = nn.MultiheadAttention(8, 2), nn.Linear(8, 8)

class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(5))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.encoder, self.head = nn.Embedding(9, 8), Encoder(), nn.Linear(8, 2)

names = lambda model: [block.name for block in choose_blocks(model)]
print(json.dumps([names(Net()), len(names(nn.Sequential(*(nn.Linear(2, 2) for _ in range(60)))))]))
"""
    block_names, chosen_block_count = python(program)
    assert block_names == ["words", *(f"encoder.layers.{i}" for i in range(5)), "head"]
    assert chosen_block_count == 40


def test_outside_of_a_recording_the_error_contains_a_remedy(environment):
    program = "import joulemap as jm, torch\njm.validate(torch.nn.Linear(2, 2), torch.ones(1, 2))\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert "joulemap record -- python" in ran.stderr.splitlines()[-1]


VALIDATED_PROGRAM = """
import json, os
import torch, torch.nn as nn
import joulemap as jm
from joulemap import _torch_probe

_torch_probe.MAX_TIME_PER_MODULE_S = 0.1
torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(inplace=True), nn.Linear(512, 256), nn.Tanh(), nn.Linear(256, 8))
before = {name: value.clone() for name, value in net.state_dict().items()}
for train in (False, True):
    result = jm.validate(net, torch.randn(32, 64), train=train, seconds=0.05, rounds=2, recorded_s=0.5, probe=train)
    print(json.dumps([result.device, sorted(block.name for block in result.blocks), result.refused, result.is_measured,
                      [block.basis for block in result.blocks if block.attributed_j], result.pass_j > 0,
                      train == any(block.probed_j is not None for block in result.blocks)]))
print(all(torch.equal(before[name], value) for name, value in net.state_dict().items()))
"""


def test_under_record_one_call_compares_blocks_with_the_recording(binaries, memory_directory, tmp_path):
    """Uses the simulated machine, whose counters follow the CPU time of the processes that run."""
    program, root = tmp_path / "program.py", memory_directory / "machine"
    program.write_text(VALIDATED_PROGRAM)
    words = [binaries / "joulemap-simulated-machine", "--root", root, "--"]
    words += [binaries / "joulemap", "record", "--sysroot", root, "-o", tmp_path / "run.joule", "--"]
    ran = subprocess.run(
        [*map(str, words), "/bin/sh", "-c", f'JOULEMAP_SYSROOT="{root}" exec "{sys.executable}" "{program}"'],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    results = [json.loads(line) for line in lines if line.startswith("[")]
    for device, blocks, refused_blocks, is_measured, bases, has_energy, is_probed_where_asked in results:
        assert (device, blocks, refused_blocks) == ("cpu", ["0", "1", "2", "3", "4"], {})
        assert is_measured and has_energy and bases and is_probed_where_asked
    assert len(results) == 2 and lines[-1] == "True"
    assert [line for line in lines if line.startswith("Sequential, ")] == [
        line for line in lines if " J in " in line and line.endswith("on cpu")
    ]
    assert sum(line.startswith("sum of blocks: ") for line in lines) == 2
    assert "round 2 of 2" in ran.stderr


def test_a_table_of_energies_that_are_not_comparable_has_no_errors(python):
    result = python("""
from joulemap._validate_report import Validated, ValidatedBlock
block = ValidatedBlock("a", 1.0, 0.1, 1.0, 0.5, 2.0, 1.5, 2.5, None, "regressed", 2.0, None)
print(json.dumps(str(Validated("Net, inference", "cpu", 2.0, 0.1, [block], is_measured=False, is_comparable=False))))
""")
    assert "energy is estimated here and measured in the recording, so they are not compared" in result
    assert "root mean square" not in result and "attributed rest" not in result


def test_a_host_whose_speed_drifts_does_not_change_the_energy_of_a_block(python):
    result = python("""
import json, random
from joulemap import _validate_statistics as numbers

random_number = random.Random(7)
seconds, above_j, idle_w = {None: 5e-3, "a": 6e-3, "b": 5.6e-3}, {None: 0.7, "a": 0.85, "b": 0.9}, 128.0
loops, speed, now_ns = [], 1.0, 0

def drifted():
    global speed
    speed = min(max(speed + random_number.gauss(0, 0.1), 0.8), 1.6)
    return speed

for number in range(4):
    for block in (None, "a", None, "b", None):
        pass_s = seconds[block] * drifted()
        passes = int(1 / pass_s)
        end_ns = now_ns + int(1e9 * passes * pass_s)
        joules = passes * (above_j[block] + idle_w * pass_s) + random_number.gauss(0, 1)
        loops.append(numbers.PassLoop(block, False, number, passes, now_ns, end_ns, joules))
        now_ns = end_ns + 100_000_000
times = {(block, False): [] for block in seconds}
for _ in range(600):
    drifted()
    for block, usual_s in seconds.items():
        times[block, False].append(usual_s * speed * (1 + random_number.gauss(0, 0.08)))
found = numbers.compute_block_energies(loops, times)
speed = found.pass_s / seconds[None]
wanted = {block: above_j[block] - above_j[None] + idle_w * speed * (seconds[block] - seconds[None]) for block in "ab"}
print(json.dumps({"limited": numbers.is_limited_by_host(loops),
                  "errors": [one.joules / wanted[one.block] - 1 for one in found.extra_energies],
                  "half_widths": [one.half_width_j / one.joules for one in found.extra_energies]}))
""")
    assert result["limited"]
    assert result["errors"] == pytest.approx([0, 0], abs=0.06)
    assert all(abs(error) < 2 * half_width for error, half_width in zip(result["errors"], result["half_widths"]))
