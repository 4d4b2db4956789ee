"""jm.layer_value: a model whose layers declare their energy; results of one program, because importing PyTorch is slow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree

import pytest

PROGRAM = """
import json, math, random, sys
import torch, torch.nn as nn
import joulemap as jm
from joulemap import Energy, _layer_skip, _layer_value

torch.set_num_threads(1)
spent = 0.0
provenance = "measured"

class Window:
    def __init__(self, name):
        self.begin_j = spent
    def end(self):
        self.joules = spent - self.begin_j
    def wait(self):
        known = self.joules if provenance else None
        return Energy(known, 0.1, 1.0, None, provenance, "" if provenance else "run joulemap doctor", settled=True)

_layer_value.begin = Window

class Costly(nn.Module):
    # Adds a constant to the input; the loss is smallest with the constants of all layers.
    def __init__(self, joules, constant, outputs=4):
        super().__init__()
        self.joules, self.outputs = joules, outputs
        self.constant = nn.Parameter(torch.tensor(float(constant)))
        self.norm = nn.BatchNorm1d(outputs)
    def forward(self, x):
        global spent
        spent += self.joules
        self.norm(torch.randn(3, self.outputs))
        y = x + self.constant
        return y if self.outputs == x.shape[1] else y.mean(1, keepdim=True).expand(-1, self.outputs)

class Recurrent(nn.Module):
    def forward(self, x):
        global spent
        spent += 1.0
        return x * 1.5, (x, x)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.useful, self.useless, self.harmful = Costly(5.0, 1.0), Costly(20.0, 0.0), Costly(2.0, -0.25)
        self.narrow = Costly(3.0, 0.5, outputs=2)
        self.recurrent, self.unused = Recurrent(), nn.Linear(2, 2)
        self.index = nn.Embedding(3, 4)
    def forward(self, x):
        x = self.harmful(self.useless(self.useful(x))) + 0 * self.index(torch.tensor([0]))
        return self.recurrent(self.narrow(x))[0]

torch.manual_seed(0)
model = Model()
calls = []
model.register_forward_hook(lambda *details: calls.append(1))
model.useful.eval()
model.narrow.constant.grad = torch.tensor(7.0)
batches = [torch.zeros(3, 4), torch.zeros(2, 4)]

def evaluate(model):
    with torch.no_grad():
        return sum((model(x) - 3.0).square().mean() for x in batches) / len(batches)

def state():
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = {name: module.training for name, module in model.named_modules()}
    attributes = {name: sorted(module.__dict__) for name, module in model.named_modules()}
    hooks = len(model._forward_hooks)
    versions = [parameter._version for parameter in model.parameters()]
    return tensors, modes, attributes, hooks, torch.get_rng_state(), random.getstate(), model.narrow.constant.grad, versions

def same(before, after):
    tensors = all(torch.equal(before[0][name], after[0][name]) for name in before[0]) and before[0].keys() == after[0].keys()
    return [tensors, before[1] == after[1], before[2] == after[2], before[3] == after[3],
            torch.equal(before[4], after[4]), before[5] == after[5], before[6] is after[6] and float(after[6]) == 7.0,
            before[7] == after[7]]

facts = {}
before = state()
values = jm.layer_value(model, evaluate, layers=[name for name, _ in model.named_children()], rounds=3)
facts["same"] = same(before, state())
facts["rows"] = {row["name"]: row for row in values.to_dicts()}
facts["order"] = [row.name for row in values.rows]
facts["refused"], facts["notes"], facts["text"] = values.refused, values.notes, str(values)
facts["baseline"], facts["provenance"], facts["source"] = values.baseline, values.provenance, values.source
facts["svg"], facts["html"] = values.to_svg(), values.to_html()
values.save(sys.argv[1] + "/layers.csv")
try:
    values.save(sys.argv[1] + "/layers.pdf")
except ValueError as error:
    facts["pdf"] = str(error)

def vandal(model, count=[0]):
    # Changes everything; raises at the fourth call.
    count[0] += 1
    model.train()
    model.useless.extra = 1
    with torch.no_grad():
        model.useful.constant.fill_(math.nan)
        model.narrow.norm.running_mean.fill_(5.0)
    model.useful.constant.requires_grad_(False)
    model.half()
    model.register_forward_pre_hook(lambda *details: None)
    model.narrow.constant.grad.fill_(1.0)
    random.random(), torch.rand(1)
    if count[0] == 4:
        raise KeyboardInterrupt
    return 1.0

try:
    jm.layer_value(model, vandal, layers=["useful", "useless"])
    facts["raised"] = False
except KeyboardInterrupt:
    facts["raised"] = True
facts["same_after_exception"] = same(before, state())[:-1]
facts["requires_grad"] = model.useful.constant.requires_grad

accuracy = jm.layer_value(model, lambda model: -float(evaluate(model)), layers=["useful", "harmful"], higher_is_better=True,
                          rounds=1)
facts["accuracy"] = {row.name: row.earned for row in accuracy.rows}

def noisy(model):
    noisy.count = getattr(noisy, "count", 0) + 1
    return float(evaluate(model)) + 0.01 * (noisy.count % 3)

noisy_rows = jm.layer_value(model, noisy, layers=["useful"]).rows
facts["noisy"] = [[row.earned_low, row.earned, row.earned_high] for row in noisy_rows]
facts["together"] = [row.earned for row in jm.layer_value(model, evaluate, layers={"both": ["useful", "useless"]}).rows]

def fails_without(model):
    if float(model.useful(torch.zeros(1, 4)).sum()) == 0:
        raise RuntimeError("the encoder is missing")
    return float(evaluate(model))

facts["fails"] = jm.layer_value(model, fails_without, layers=["useful", "useless"]).refused
provenance = None
unknown = jm.layer_value(model, evaluate, layers=["useful"], rounds=1)
facts["unknown"] = [unknown.rows[0].energy_j, unknown.provenance, unknown.notes, str(unknown), unknown.to_svg()]

class Recording:
    def ledger(self, by):
        Row = _layer_value.dataclasses.make_dataclass("Row", ["path", "energy_j", "low_j", "high_j"])
        ledger = type("Ledger", (), {})()
        ledger.provenance, ledger.by = "measured", by
        ledger.rows = [Row(("useful",), 40.0, 30.0, 50.0), Row(("useful.norm",), 2.0, 1.0, 3.0),
                       Row(("usefulness",), 9.0, 9.0, 9.0), Row(("useless",), None, None, None)]
        return ledger

recorded = jm.layer_value(model, evaluate, layers=["useful", "useless"], run=Recording())
facts["recorded"] = {row.name: [row.energy_j, row.low_j, row.high_j] for row in recorded.rows}
facts["recorded_notes"], facts["recorded_title"] = recorded.notes, recorded.title()
class Stateful(nn.Module):
    # A sparse gradient, a negative zero, a parameter that is not a number, and containers that forward changes.
    def __init__(self):
        super().__init__()
        self.index, self.layer = nn.Embedding(10, 4, sparse=True), nn.Linear(4, 4)
        self.cache, self.by_call, self.seen = ["start"], {}, set()
        self.shared = self.cache
    def forward(self, i):
        self.cache.append(1)
        self.by_call[len(self.by_call)] = i
        self.seen.add(len(self.seen))
        return self.layer(self.index(i))

stateful, picked = Stateful(), torch.tensor([1, 2])
stateful(picked).sum().backward()
stateful.cache, stateful.by_call = ["start"], {}
stateful.shared = stateful.cache
stateful.seen.clear()
cache, gradient = stateful.cache, stateful.index.weight.grad
dense = gradient.to_dense().clone()
with torch.no_grad():
    stateful.layer.bias[0], stateful.layer.bias[1] = -0.0, math.nan

def changes_bits(model, sparse):
    with torch.no_grad():
        model.layer.bias[0] = 0.0
        if sparse:
            model.index.weight.grad.zero_()
        return float(model(picked)[:, 2:].sum())

facts["stateful"] = []
for sparse in (False, True):
    jm.layer_value(stateful, lambda model: changes_bits(model, sparse), layers=["layer"], rounds=1)
    facts["stateful"] += [
        stateful.index.weight.grad is gradient, torch.equal(gradient.to_dense(), dense),
        stateful.layer.weight.grad is not None, math.copysign(1, stateful.layer.bias[0].item()) == -1.0,
        stateful.cache is cache and stateful.shared is cache and cache == ["start"],
        stateful.by_call == {} and stateful.seen == set(),
    ]

with _layer_skip.ModelStateRestorer(torch, stateful) as restored:
    original = _layer_skip._restore_tensor
    def fails_once(torch, tensor, copy):
        if tensor is stateful.index.weight:
            raise RuntimeError("one tensor cannot be restored")
        original(torch, tensor, copy)
    _layer_skip._restore_tensor = fails_once
    with torch.no_grad():
        stateful.layer.bias[2] += 1
    bias = restored._tensors[-1][1][2].item()
    try:
        restored.restore_model()
    except RuntimeError as error:
        facts["partly"] = [str(error), stateful.layer.weight.grad is not None, stateful.layer.bias[2].item() == bias]
    _layer_skip._restore_tensor = original

facts["baseline_errors"] = []
for bad in (math.nan, math.inf):
    try:
        jm.layer_value(model, lambda model: bad * float(evaluate(model)), layers=["useful"])
    except ValueError as error:
        facts["baseline_errors"].append(str(error))

def sometimes(model):
    whole = "forward" not in vars(model.useful)
    sometimes.whole = getattr(sometimes, "whole", 0) + whole
    return math.nan if whole and sometimes.whole == 3 else float(evaluate(model))

later = jm.layer_value(model, sometimes, layers=["useful"], rounds=3)
facts["later"] = [later.rows[0].metric is not None, later.rows[0].earned, later.notes[-1],
                  "no layer has both" in later.to_svg()]

class OptimizedModule(nn.Module):  # as torch.compile returns
    pass

for wrong in (3, OptimizedModule()):
    try:
        jm.layer_value(wrong, evaluate)
    except TypeError as error:
        facts.setdefault("wrong", []).append(str(error))

for options in ({"layers": {"both": []}}, {"layers": {"both": "useful"}}, {"run": "run.joule"}):
    try:
        jm.layer_value(model, evaluate, **options)
    except (TypeError, ValueError) as error:
        facts.setdefault("wrong_options", []).append(f"{type(error).__name__}: {error}")
childless = jm.layer_value(nn.Linear(2, 2), lambda linear: linear(torch.ones(1, 2)).sum().item())
facts["childless"] = [len(childless), childless.notes[-1]]
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("layers")


@pytest.fixture(scope="module")
def layer_value_results(binaries, folder):
    environment = {**os.environ, "PYTHONPATH": str(binaries.parent / "python")}
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def test_the_cost_of_a_layer_is_the_energy_saved_without_it(layer_value_results):
    cost = {name: row["energy_j"] for name, row in layer_value_results["rows"].items()}
    assert cost["useful"] == pytest.approx(10.0)  # two batches
    assert cost["useless"] == pytest.approx(40.0) and cost["harmful"] == pytest.approx(4.0)
    assert (
        layer_value_results["rows"]["useless"]["low_j"]
        == pytest.approx(40.0)
        == layer_value_results["rows"]["useless"]["high_j"]
    )
    assert (layer_value_results["provenance"], layer_value_results["source"]) == ("measured", "skipping")


def test_value_of_a_layer_is_the_metric_lost_without_it(layer_value_results):
    earned = {name: row["earned"] for name, row in layer_value_results["rows"].items()}
    assert earned["useful"] > 1 and earned["useless"] == 0 and earned["harmful"] < 0
    row = layer_value_results["rows"]["useful"]
    assert row["metric"] == pytest.approx(layer_value_results["baseline"] + row["earned"])
    assert row["earned_low"] == row["earned"] == row["earned_high"]  # evaluate is deterministic
    assert layer_value_results["accuracy"]["useful"] == pytest.approx(earned["useful"])  # an accuracy is lost
    assert layer_value_results["accuracy"]["harmful"] == pytest.approx(earned["harmful"])


def test_layer_replacement_depends_on_its_shapes(layer_value_results):
    layer_replacements = {name: row["skip"] for name, row in layer_value_results["rows"].items()}
    assert layer_replacements["useful"] == layer_replacements["useless"] == "identity"
    assert layer_replacements["narrow"] == "shrink"  # of (zero, shrink), with which the loss is smaller
    assert layer_replacements["recurrent"] == "identity"  # its first output; it still runs
    assert layer_replacements["index"] == "zero"
    assert layer_value_results["rows"]["recurrent"]["energy_j"] == pytest.approx(0.0)
    assert layer_value_results["refused"] == {"unused": "the evaluation does not call it"}
    assert layer_value_results["fails"] == {
        "useful": "skipped by identity, the evaluation fails: RuntimeError: the encoder is missing"
    }


def test_layers_that_cost_most_for_what_they_earn_are_first(layer_value_results):
    assert layer_value_results["order"][0] == "useless" and layer_value_results["rows"]["useless"]["is_front"]
    assert layer_value_results["rows"]["harmful"]["is_front"] and not layer_value_results["rows"]["useful"]["is_front"]
    assert "skip first" in layer_value_results["text"] and "loss added" in layer_value_results["text"]


def test_the_model_is_unchanged(layer_value_results):
    assert layer_value_results["same"] == [True] * 8


def test_the_model_is_restored_after_an_exception(layer_value_results):
    assert layer_value_results["raised"] and layer_value_results["requires_grad"]
    assert layer_value_results["same_after_exception"] == [True] * 7


def test_a_random_evaluation_has_an_interval(layer_value_results):
    low, earned, high = layer_value_results["noisy"][0]
    assert low < earned < high


def test_layers_can_be_skipped_together(layer_value_results):
    assert layer_value_results["together"] == [pytest.approx(layer_value_results["rows"]["useful"]["earned"])]


def test_unknown_layer_energy_has_a_reason(layer_value_results):
    energy_j, provenance, notes, text, picture = layer_value_results["unknown"]
    assert energy_j is None and provenance is None
    assert "joulemap doctor" in notes[0] and "energy unknown" in text
    assert "no layer has both" in picture


def test_a_recording_provides_the_costs(layer_value_results):
    assert layer_value_results["recorded"] == {"useful": [42.0, 31.0, 53.0], "useless": [None, None, None]}
    assert layer_value_results["recorded_notes"] == ["the recording contains no energy of useless"]
    assert "in the recording, measured" in layer_value_results["recorded_title"]


def test_picture_page_and_table_contain_the_layers(layer_value_results, folder):
    picture = xml.etree.ElementTree.fromstring(layer_value_results["svg"])
    texts = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "useless" in texts and "loss added when skipped" in texts
    assert layer_value_results["html"].startswith("<!doctype html>") and layer_value_results["html"].count(
        "<tr>"
    ) == 1 + len(layer_value_results["rows"])
    assert (folder / "layers.csv").read_text().splitlines()[0].startswith("name,kind,parameters,skip,energy_j")
    assert "must end in .svg, .html or .csv" in layer_value_results["pdf"]


def test_models_that_hide_their_modules_are_rejected(layer_value_results):
    assert "needs a PyTorch module, not a int" in layer_value_results["wrong"][0]
    assert "OptimizedModule hides" in layer_value_results["wrong"][1]


def test_options_that_are_no_layers_or_no_recording_are_rejected(layer_value_results):
    assert layer_value_results["wrong_options"] == [
        "ValueError: 'both' must be a list of modules, not []",
        "ValueError: 'both' must be a list of modules, not 'useful'",
        "TypeError: run must be a recording, as jm.load() returns it, not 'run.joule'",
    ]


def test_a_model_without_layers_has_a_note(layer_value_results):
    assert layer_value_results["childless"] == [0, "the model has no layers to skip: it contains no other modules"]


def test_all_kinds_of_state_are_restored(layer_value_results):
    assert layer_value_results["stateful"] == [True] * 12


def test_a_tensor_that_cannot_be_restored_does_not_lose_the_others(layer_value_results):
    assert layer_value_results["partly"] == ["one tensor cannot be restored", True, True]


def test_a_baseline_must_be_finite(layer_value_results):
    assert [message.split(":")[0] for message in layer_value_results["baseline_errors"]] == [
        "evaluate returned nan with all layers", "evaluate returned inf with all layers",
    ]  # fmt: skip
    has_metric, earned, note, is_empty = layer_value_results["later"]
    assert has_metric and earned is None and is_empty
    assert note == "evaluate did not always return a finite result with all layers: what layers earn is unknown"
