"""PyTorch under `joulemap record`, without changes to the program: its steps, phases and layers in the recording."""

from __future__ import annotations

import pytest
import training_programs
from recorded_program import run_without_joulemap
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
    marks = [line.split() for line in record(program).part.of("mark")]
    evaluation_steps = sum(int(number) for _, _, kind, number, *_ in marks if kind == "9")
    # The first call of the teacher is a step of its own: nothing has trained yet. After calls of the teacher alone, its
    # next one looks like a further one.
    expected = 1 + 3 if evaluation == "student(x)" else 1 + 3 + 3 + 2
    assert evaluation_steps == expected
    assert sum(kind == "2" for _, _, kind, *_ in marks) == 6 + expected


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
