"""PyTorch under `joulemap record`, without changes to the program: its steps, phases and layers in the recording."""

from __future__ import annotations

import re

import pytest
import training_programs
from recorded_program import MARK_EPOCH, MARK_EPOCH_RETRACTION, MARK_STEP, MARK_STEP_RETRACTION, run_without_joulemap
from torch_version import requires_torch


@pytest.mark.parametrize("network", training_programs.NETWORKS)
def test_training_is_the_same_bit_for_bit(record, tmp_path, network):
    program = training_programs.make_training_program(network)
    unrecorded_process = run_without_joulemap(tmp_path / "alone", program)
    recorded_program = record(program)
    assert unrecorded_process.returncode == 0, unrecorded_process.stderr
    assert recorded_program.out == unrecorded_process.stdout
    assert recorded_program.err == unrecorded_process.stderr
    assert recorded_program.part.diagnostics == []
    assert recorded_program.part.steps == 8


@pytest.mark.parametrize("network", training_programs.NETWORKS)
def test_nearly_all_work_of_steps_has_a_phase_and_a_layer(record, network):
    """Uses CPU time of the training's thread, which other load hardly changes."""
    recorded_program = record(training_programs.make_training_program(network), "25")
    part = recorded_program.part
    assert part.steps == 100
    loop_ns = int(recorded_program.out.split()[0])
    assert sum(row[2] for path, row in part.times.items() if len(path) > 1) > 0.95 * loop_ns
    passes = {("forward",), ("backward",), ("recompute",)}
    assert part.cpu_share(lambda path: len(path) > 2, lambda path: path[1:2] in passes) > 0.95


def test_layers_are_named_by_their_path_in_every_pass(record):
    part = record(training_programs.make_training_program("convnet")).part
    blocks = ("Net", "layers", "layers.0")
    for phase, count in (("forward", 8), ("backward", 8)):
        assert part.count("train", phase, *blocks, "layers.0.conv2") == count
        assert part.count("train", phase, *blocks, "layers.0.relu") == 2 * count
        assert part.count("train", phase, "Net", "stem") == count
    assert part.count("train", "optimizer", "SGD") == 8
    assert part.count("train", "zero_grad") == 8
    assert part.count("train", "loss", "CrossEntropyLoss") == 8
    assert part.count("train", "dataloader", "preprocessing") == 8
    assert len(part.of("metric")) == 8


def test_recomputed_activations_are_a_phase_of_their_own(record):
    part = record(training_programs.make_training_program("transformer")).part
    for layer in ("layers.0", "layers.1"):
        assert part.count("train", "recompute", "Net", "layers", layer) == 8
        assert part.count("train", "backward", "Net", "layers", layer, f"{layer}.linear1") == 8
    assert part.count("train", "recompute", "Net", "layers", "layers.2") == 0


@requires_torch(2, 3, "no scaler for CPUs")
def test_the_loss_is_a_metric_unless_the_program_logs_its_own(record):
    program = """
import torch, torch.nn as nn, joulemap as jm
net = nn.Linear(2, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
with torch.no_grad():
    net.weight.fill_(1.0), net.bias.fill_(0.5)
for step in range(3):
    optimizer.zero_grad()
    loss = net(torch.ones(1, 2)).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
net(torch.ones(1, 2)).sum().backward()
torch.autograd.grad(net(torch.ones(1, 2)).sum(), net.weight)
jm.log(loss=7.0)
net(torch.ones(1, 2)).sum().backward()
"""
    results = [line.split()[-2:] for line in record(program).part.of("metric")]
    assert results == [["loss", "2.5"]] * 4 + [["loss", "7"]]


def test_batches_of_an_evaluation_are_evaluation_steps(record):
    program = """
import torch
from torch.utils.data import DataLoader, TensorDataset
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
train, held_out = (DataLoader(TensorDataset(torch.ones(size, 4)), batch_size=2) for size in (6, 4))
def evaluate():
    for (x,) in held_out:  # as transformers' Trainer does: only the call is without gradients
        with torch.no_grad():
            net(x)
evaluate()  # a sanity check before training
for epoch in range(2):
    for (x,) in train:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()
    evaluate()
"""
    marks = [line.split() for line in record(program).part.of("mark")]
    assert sum(kind == "2" for _, _, kind, *_ in marks) == 2 * 3 + 3 * 2
    assert sum(int(number) for _, _, kind, number, *_ in marks if kind == "9") == 3 * 2


@pytest.mark.parametrize("trained", ["net", "torch.nn.DataParallel(net)"])
def test_single_evaluations_of_the_trained_model_are_evaluation_steps(record, trained):
    program = f"""
import torch
net = torch.nn.Linear(4, 1)
trained = {trained}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 4)
for epoch in range(3):
    optimizer.zero_grad()
    trained(x).sum().backward()
    optimizer.step()
    with torch.no_grad():
        net(x)
"""
    marks = [line.split() for line in record(program).part.of("mark")]
    assert sum(kind == "2" for _, _, kind, *_ in marks) == 3 + 3
    assert sum(int(number) for _, _, kind, number, *_ in marks if kind == "9") == 3


@pytest.mark.parametrize("evaluation", ["student(x)", "teacher(x); teacher(x)"])
def test_a_teachers_call_belongs_to_the_training_step_also_after_an_evaluation(record, evaluation):
    program = f"""
import torch
teacher, student = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
x = torch.ones(2, 4)
for step in range(6):
    with torch.no_grad():
        wanted = teacher(x)
    loss = (student(x) - wanted).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 2:
        with torch.no_grad():
            {evaluation}
"""
    # After calls of the teacher alone, its next one looks like a further one.
    expected = 3 if evaluation == "student(x)" else 3 + 3 + 2
    assert record(program).part.count_marked_steps() == (6, expected)


@pytest.mark.parametrize(
    "loss",
    [
        "(net(a) - net(b)).square().mean()",  # siamese network
        "torch.nn.TripletMarginLoss()(net(a), net(b), net(a + b))",
        "(-teach(a) + net(a)).square().mean()",
        "(-teach(a) + net(a)).square().mean() + net(b).mean()",
        "(net(a) - teach(a)).square().mean()",  # student first
        "torch.stack([net(a).mean() for _ in range(9)]).sum()",  # an episode
    ],
)
def test_all_calls_of_a_training_step_belong_to_it_from_the_first_step_on(record, loss):
    program = f"""
import copy, torch
net = torch.nn.Linear(4, 4)
teacher = copy.deepcopy(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def teach(x):
    with torch.no_grad():
        return teacher(x)
for step in range(5):
    a, b = torch.randn(2, 4), torch.randn(2, 4)
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    assert record(program).part.count_marked_steps() == (5, 0)


LOADER_PROGRAM = """
import sys, torch, joulemap as jm
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
class Stream(IterableDataset):
    def __iter__(self):
        yield from torch.ones(12, 4)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.ones(24, 4)), batch_size=2)
held_out = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2)
def train(batch):
    optimizer.zero_grad()
    net(batch).sum().backward()
    optimizer.step()
def evaluate():
    for (batch,) in held_out:
        net(batch)
"""


@pytest.mark.parametrize("evaluation", ["torch.no_grad()(evaluate)()", "evaluate()"])
@pytest.mark.parametrize("workers", [0, 1])
def test_a_validation_within_an_epoch_begins_no_epoch(record, evaluation, workers):
    program = f"""{LOADER_PROGRAM}
if __name__ == "__main__":
    loader = DataLoader(loader.dataset, batch_size=2, num_workers={workers}, persistent_workers={workers > 0})
    for epoch in range(2):
        for i, (batch,) in enumerate(loader):
            train(batch)
            if i % 5 == 4:
                {evaluation}
"""
    parts = record(program).parts
    marks = [line.split() for part in parts for line in part.of("mark")]
    assert sum(kind == MARK_EPOCH for _, _, kind, *_ in marks) == 2
    assert [part.count_marked_steps() for part in parts if part.of("mark")] == [(24, 4 * 4)]


@pytest.mark.parametrize("begin, end", [("jm.step()", ""), ("jm.step(i)", ""), ("", "jm.step()")])
def test_steps_that_the_program_marks_replace_those_inferred_before(record, begin, end):
    program = f"""{LOADER_PROGRAM}
for i, (batch,) in enumerate(loader):
    {begin}
    train(batch)
    {end}
jm.epoch()
"""
    part = record(program).part
    assert part.count_marked_steps() == (12, 0)
    marks = [line.split() for line in part.of("mark")]
    retraction = next(i for i, mark in enumerate(marks) if mark[2] == MARK_STEP_RETRACTION)
    assert [int(number) for _, _, kind, number, *_ in marks[retraction:] if kind == MARK_STEP] == list(range(12))
    assert [mark[2:4] for mark in marks][-2:] == [[MARK_EPOCH_RETRACTION, "1"], [MARK_EPOCH, "0"]]


@pytest.mark.parametrize(
    "epoch, steps",
    [("for batch in DataLoader(Stream(), batch_size=2): train(batch)", 6), ("train(next(iter(loader))[0])", 1)],
)
def test_a_batch_that_does_not_come_is_no_step(record, epoch, steps):
    program = f"""{LOADER_PROGRAM}
for _ in range(3):
    {epoch}
"""
    assert record(program).part.count_marked_steps() == (3 * steps, 0)


def test_a_loop_left_after_its_next_batch_has_no_further_step(record):
    program = f"""{LOADER_PROGRAM}
for i, (batch,) in enumerate(loader):
    if i == 3:
        break
    train(batch)
"""
    assert record(program).part.count_marked_steps() == (3, 0)


def test_an_interrupted_program_completes_its_part(record):
    program = f"""{LOADER_PROGRAM}
for (batch,) in loader:
    train(batch)
torch.no_grad()(evaluate)()
raise KeyboardInterrupt
"""
    part = record(program, code=-2).part
    assert part.count_marked_steps() == (12, 4)
    assert part.of("end"), "the part is complete"


def test_a_traced_graph_is_that_of_the_program_alone(record, tmp_path):
    program = """
import torch, warnings
warnings.simplefilter("always")
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        hidden = self.inner(x)
        return torch.relu(hidden) * 2
def double(x):
    doubled = x * 2
    return doubled + x.shape[0]
torch.manual_seed(0)
net = Net()
for _ in range(3):  # operations of the third step are recorded
    net(torch.ones(1, 4))
print(torch.jit.trace(net, torch.ones(1, 4)).graph, torch.jit.trace(double, torch.ones(2)).graph)
"""
    unrecorded_process = run_without_joulemap(tmp_path / "alone", program)
    recorded_program = record(program)
    graph, alone_graph = (
        re.sub(r"#.*/(program|[a-z_]+)\.py", r"# \1", text) for text in (recorded_program.out, unrecorded_process.stdout)
    )
    assert "double" in graph and graph == alone_graph
    assert recorded_program.err.count("Warning: ") == unrecorded_process.stderr.count("Warning: ")


def test_a_loss_with_gradients_can_be_logged_and_negative_numbers_of_steps_cannot(record):
    program = """
import torch, joulemap as jm
jm.log(loss=torch.ones(1, requires_grad=True).sum())
for mark in (jm.step, jm.epoch):
    try:
        mark(-3)
    except ValueError as error:
        print(error)
"""
    recorded_program = record(program, PYTHONWARNINGS="error")
    assert recorded_program.out.count("must be 0 or more") == 2
    assert [line.split()[-2:] for line in recorded_program.part.of("metric")] == [["loss", "1"]]


@pytest.mark.parametrize("calls_before", [[], ["with torch.no_grad(): encoder(torch.ones(2, 4))"]])
def test_an_encoder_and_a_decoder_share_the_first_step(record, calls_before):
    program = f"""
import torch
encoder, decoder = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
{"".join(calls_before)}
optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
for step in range(3):
    loss = decoder(encoder(torch.ones(2, 4))).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    marks = [line.split() for line in record(program).part.of("mark")]
    assert sum(kind == "2" for _, _, kind, *_ in marks) == 3 + len(calls_before)
    assert sum(int(number) for _, _, kind, number, *_ in marks if kind == "9") == len(calls_before)


def test_models_called_in_turns_without_training_form_steps(record):
    program = """
import torch
warm_up, encoder, decoder = (torch.nn.Linear(4, 4) for _ in range(3))
warm_up(torch.ones(2, 4))
for i in range(5):
    decoder(encoder(torch.ones(2, 4)))
"""
    marks = [line.split() for line in record(program).part.of("mark")]
    assert sum(kind == "2" for _, _, kind, *_ in marks) == 5, "the first pair belongs to the step of the warm-up"


# PyTorch without CUDA has no graphs: a graph of nothing, whose methods are watched like those of the real class.
GRAPH_CLASS = """
import torch
from joulemap import _torch_regions
class Graph:
    def capture_begin(self): pass
    def capture_end(self): pass
    def replay(self): pass
torch.cuda.CUDAGraph = Graph
_torch_regions._watch_cuda_graphs(torch)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 4)
graph = Graph()
"""


@pytest.mark.parametrize("update", ["in graph", "after replay"])
def test_a_replayed_cuda_graph_of_a_training_step_is_a_step(record, update):
    program = f"""{GRAPH_CLASS}
def step(updates):
    optimizer.zero_grad()
    net(x).sum().backward()
    if updates:
        optimizer.step()
for _ in range(3):
    step(True)
graph.capture_begin()
step({update == "in graph"})
graph.capture_end()
for _ in range(10):
    graph.replay()
    if {update == "after replay"}:
        optimizer.step()
"""
    marks = [line.split() for line in record(program).part.of("mark")]
    # Without an update, the capture and the first replay look like accumulated gradients.
    assert sum(kind == "2" for _, _, kind, *_ in marks) == (3 + 1 + 10 if update == "in graph" else 3 + 10)
    assert not [line for line in marks if line[2] == "9"]


def test_a_replayed_cuda_graph_without_gradients_is_an_inference_step(record):
    program = f"""{GRAPH_CLASS}
with torch.no_grad():
    graph.capture_begin()
    net(x)
    graph.capture_end()
for _ in range(10):
    graph.replay()
"""
    marks = [line.split() for line in record(program).part.of("mark")]
    assert sum(kind == "2" for _, _, kind, *_ in marks) == 1 + 10


def test_cuda_graphs_inside_of_a_module_add_no_steps(record):
    program = f"""{GRAPH_CLASS}
class Graphed(torch.nn.Module):
    def forward(self, x):
        graph.capture_begin()
        result = net(x)
        graph.capture_end()
        graph.replay()
        return result
graphed = Graphed()
for _ in range(4):
    graphed(x).sum().backward()
    optimizer.step()
"""
    marks = [line.split() for line in record(program).part.of("mark")]
    assert sum(kind == "2" for _, _, kind, *_ in marks) == 4
