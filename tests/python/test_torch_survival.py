"""Programs with unusual uses of PyTorch run as they do without Joulemap, and are recorded as well as possible."""

from __future__ import annotations

PROGRAM_PRELUDE = """
import torch, torch.nn as nn, torch.nn.functional as F
from joulemap import _capture
torch.manual_seed(0)

def train(net, steps=4, x=None, context=None, loss_of=lambda out: out.float().square().mean()):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    x = torch.randn(4, 8) if x is None else x
    for _ in range(steps):
        optimizer.zero_grad()
        if context is None:
            loss = loss_of(net(x))
        else:
            with context():
                loss = loss_of(net(x))
        loss.backward()
        optimizer.step()
    return loss

net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))
"""


def test_compiled_models_are_reported_as_one_module_and_not_recompiled(record):
    recorded_program = record(
        PROGRAM_PRELUDE
        + """
import torch._dynamo.testing
counter = torch._dynamo.testing.CompileCounter()
for backend in (counter, "aot_eager"):
    torch._dynamo.reset()
    train(torch.compile(net, backend=backend), 6)
assert counter.frame_count == 1, counter.frame_count
@torch.compile(backend="eager", fullgraph=True)
def inside(x):
    return net(x).sum()
inside(torch.randn(4, 8)).backward()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
torch.compile(optimizer.step, backend="eager")()
@torch.compile(backend="eager")
def whole_step(x):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()
for _ in range(3):
    whole_step(torch.randn(4, 8))
assert _capture.is_on() and _capture.depth() <= 1
""",
        JOULEMAP_TRACE="light",
    )
    part = recorded_program.part
    assert "hooks" not in recorded_program.err
    assert part.count("train", "forward", "Sequential") == 12
    assert part.count("train", "backward", "Sequential") == 12
    assert part.steps == 12
    assert part.diagnostics == []


def test_mixed_precision_memory_formats_and_models_called_twice(record):
    part = record(
        PROGRAM_PRELUDE
        + """
train(net, context=lambda: torch.autocast("cpu", dtype=torch.bfloat16))
conv = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)).to(memory_format=torch.channels_last)
train(conv, x=torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last))
twice = lambda x: net(x) + net(x * 2)
twice.parameters = net.parameters
train(twice)
"""
    ).part
    assert part.diagnostics == []
    assert part.steps == 12
    assert part.count("train", "forward", "Sequential", "2") == 12
    assert part.count("train", "backward", "Sequential", "2") == 12
    assert part.count("train", "backward", "Sequential#2", "0") == 4


def test_traced_scripted_and_transformed_models_run(record):
    recorded_program = record(
        PROGRAM_PRELUDE
        + """
x = torch.randn(4, 8)
train(net)
scripted, traced = torch.jit.script(net), torch.jit.trace(net, x)
for model in (scripted, traced):
    assert torch.allclose(model(x), net(x))
    train(model)
@torch.jit.script
def with_region(x):
    with torch.autograd.profiler.record_function("region"):
        return x + 1
with_region(x)
parameters = dict(net.named_parameters())
def loss(parameters, x):
    return torch.func.functional_call(net, parameters, (x,)).square().mean()
torch.func.grad(loss)(parameters, x)
torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
torch.func.vmap(net)(x)
torch.func.jacrev(net)(x[0])
torch.fx.symbolic_trace(net)(x)
torch.export.export(net, (x,))
from torch.overrides import TorchFunctionMode
class Mode(TorchFunctionMode):
    seen = []
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))
with Mode():
    net(x)
assert not [f for f in Mode.seen if getattr(f, "__name__", "") == "__get__"], Mode.seen
with torch.profiler.profile():
    train(net)
print(_capture.depth(), _capture.is_on())
"""
    )
    assert recorded_program.part.diagnostics == ["profiler_in_process"], recorded_program.part.of("diagnostic")
    assert recorded_program.out.split() == ["0", "True"]
    assert recorded_program.part.diagnostics == ["profiler_in_process"]


def test_regions_of_other_profilers_are_regions(record):
    part = record(
        PROGRAM_PRELUDE
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = net
    def forward(self, x):
        with torch.profiler.record_function("attention"):
            x = x * 2
        return self.body(x)
with torch.autograd.profiler.record_function("outside"):
    train(Net())
try:
    torch.cuda.nvtx.range_push("no NVTX here")
except RuntimeError:
    pass
print(_capture.depth())
"""
    ).part
    assert part.count("train", "forward", "Net", "attention") == 4
    assert part.count("outside") == 1
    assert not [path for path in part.times if "no NVTX here" in path or any(n.startswith("Optimizer.") for n in path)]


def test_sampled_steps_contain_operations_of_both_passes(record):
    part = record(PROGRAM_PRELUDE + "train(net, 6)\nassert torch._C._len_torch_function_stack() == 0\n").part
    forward, backward = ("train", "forward", "Sequential"), ("train", "backward", "Sequential")
    assert part.count(*forward, "0", "torch.nn.functional.linear") == 1
    assert part.count(*backward, "0", "AddmmBackward0") == 1
    assert part.count(*backward, "1", "ReluBackward0") == 1
    assert part.count("train", "backward", "MeanBackward0") == 1


def test_a_step_that_never_ends_is_not_traced_forever(record):
    calls = "for _ in range(2):\n    net(x)\nfor _ in range(60):\n    net(x).sum().backward()\n"
    part = record(PROGRAM_PRELUDE + "x = torch.ones(1, 8)\n" + calls).part
    assert part.count("train", "backward", "Sequential", "0") > 50
    assert 0 < part.count("train", "backward", "Sequential", "0", "AddmmBackward0") < 20


def test_launch_bound_programs_are_traced_in_few_steps_only(record):
    part = record(
        PROGRAM_PRELUDE
        + """
plain = nn.Module._wrapped_call_impl
seen = []
net.register_forward_hook(lambda *_: seen.append(nn.Module.__call__ is plain))
train(net, 300)
assert True in seen and False in seen
""",
        JOULEMAP_TRACE="light",
    ).part
    assert part.steps == 300
    # Twelve traced steps to measure the cost; two more after eight seconds, which only a busy machine reaches.
    assert part.count("train", "forward", "Sequential", "0") in (12, 14)
    assert part.count("train", "forward") > 270
    assert part.diagnostics == []


def test_ranks_of_distributed_training_have_a_part_each(record):
    recorded_program = record(
        """
import os, sys
import torch, torch.nn as nn
import torch.distributed as dist, torch.multiprocessing as mp

def rank_main(rank, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 2)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(4, 8)).square().mean().backward()
        optimizer.step()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(rank_main, (os.path.abspath("rendezvous"),), nprocs=2)
"""
    )
    ranks = [part for part in recorded_program.parts if part.steps]
    assert len(ranks) == 2
    for part in ranks:
        assert part.steps == 3
        assert part.count("train", "forward", "Sequential", "0") == 3
        assert part.count("train", "backward", "Sequential", "0") == 3
        assert part.diagnostics == []
    assert sorted(find_rank(part) for part in ranks) == ["0", "1"]


def find_rank(part) -> str:
    """The rank among the part's facts; empty if the process is not a rank."""
    return "".join(text.split(" ", 2)[2] for text in part.of("fact") if text.split(" ")[1] == "rank")


def test_a_rank_set_by_a_launcher_applies_to_its_loader_workers(record):
    program = """
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    net = torch.nn.Linear(4, 4)
    for (batch,) in DataLoader(TensorDataset(torch.randn(16, 4)), batch_size=4, num_workers=1):
        net(batch).sum().backward()
"""
    ranks_without_world_size = [find_rank(part) for part in record(program, RANK="3").parts]
    assert ranks_without_world_size and set(ranks_without_world_size) == {
        ""
    }  # RANK without WORLD_SIZE is the user's own variable
    ranks_with_world_size = [find_rank(part) for part in record(program, RANK="3", WORLD_SIZE="4").parts]
    assert ranks_with_world_size == ["3"] * len(ranks_without_world_size)


def test_models_of_other_threads_are_distinguished_from_those_of_the_loop(record):
    recorded_program = record(
        PROGRAM_PRELUDE
        + """
import threading
other = nn.Sequential(nn.Linear(8, 8))
def serve():
    with torch.no_grad():
        for _ in range(20):
            other(torch.randn(1, 8))
    print(_capture.depth())
threads = [threading.Thread(target=serve) for _ in range(2)]
for thread in threads: thread.start()
train(net, 20)
for thread in threads: thread.join()
"""
    )
    part = recorded_program.part
    served = [path for path in part.times if path[:2] == ("inference", "forward") and len(path) == 4]
    assert sum(part.count(*path) for path in served) == 40
    trained = [path for path in part.times if path[:2] == ("train", "forward") and path[-1] == "2"]
    assert [part.count(*path) for path in trained] == [20]
    assert recorded_program.out.split() == ["0", "0"]
    assert part.diagnostics == []
