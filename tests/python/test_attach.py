"""jm.attach without `joulemap record` around the program writes an ordinary recording; jm.load reads it."""

from __future__ import annotations

import csv
import subprocess
import sys

import pytest
from torch_version import requires_torch

pytest.importorskip("torch")

NETWORK_PROGRAM = """
import torch, torch.nn as nn

torch.manual_seed(0)

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
    def forward(self, x):
        return self.relu(self.conv(x))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        self.first, self.second = Block(8), Block(8)
        self.head = nn.Linear(8, 4)
    def forward(self, x):
        return self.head(self.second(self.first(self.stem(x))).mean((2, 3)))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()

def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        criterion(net(torch.randn(4, 3, 10, 10)), torch.randint(0, 4, (4,))).backward()
        optimizer.step()

def weights():
    return [parameter.sum().item() for parameter in net.parameters()]

FILE = os.environ["RUN"]
"""


@pytest.fixture
def run(python, tmp_path):
    def run_program(program: str, **more: str):
        return python(NETWORK_PROGRAM + program, RUN=str(tmp_path / "run.joule"), **more)

    return run_program


def test_attach_records_a_program_outside_of_any_recording(run):
    result = run(
        """
attached = jm.attach(net, loss=criterion, optimizer=optimizer, file=FILE)
was_recording = jm.is_recording()
train(3)
attached.detach()
ledger = attached.ledger("layer")
print(json.dumps([was_recording, jm.is_recording(), ledger.is_complete, [row.path for row in ledger.rows],
                  [row.part for row in ledger.rows], len(attached.steps().rows), ledger.provenance]))
"""
    )
    was_recording, is_recording, is_complete, paths, parts, steps, provenance = result
    assert (was_recording, is_recording, is_complete) == (True, False, True)
    for layer in ("first.conv", "second.conv", "first.relu", "head"):  # layers of the same class are distinguished
        assert ["train", "forward", layer] in paths
        assert ["train", "backward", layer] in paths
    assert ["train", "optimizer", "SGD"] in paths
    assert steps == 3
    assert provenance in ("measured", "estimated")
    assert not any("gpu" in part for part in parts)


def test_detach_waits_for_the_gpus_of_the_model(run):
    result = run(
        """
waited = []
torch.cuda.is_initialized, torch.cuda.synchronize = lambda: True, waited.append
with jm.attach(net, file=FILE):
    train(1)
    gpu = torch.device("cuda:1")
    net.parameters = lambda: iter([type("Parameter", (), {"device": gpu}), type("Parameter", (), {"device": gpu})])
print(json.dumps([str(device) for device in waited]))
"""
    )
    assert result == ["cuda:1"]


def test_a_model_trains_identically_whether_attached_or_not(run):
    unattached_weights = run("train(5)\nprint(json.dumps(weights()))")
    attached_weights = run("with jm.attach(net, file=FILE):\n    train(5)\nprint(json.dumps(weights()))")
    assert attached_weights == unattached_weights


@pytest.mark.parametrize("keeps", [False, True])
def test_a_secret_in_the_programs_command_is_recorded_only_when_asked_for(run, joulemap, tmp_path, keeps):
    run(
        f"""
api_token = "hunter2secret"
with jm.attach(net, file=FILE, keep_arguments={keeps}):
    train(1)
print(json.dumps(0))
"""
    )
    command = joulemap("report", "--json", tmp_path / "run.joule").json["command"]
    assert command and any("hunter2secret" in word for word in command) == keeps


def test_detach_leaves_pytorch_and_the_environment_as_they_were(run):
    result = run(
        """
before = nn.Module.__call__, dict(os.environ)
with jm.attach(net, file=FILE):
    train(2)
print(json.dumps([nn.Module.__call__ is before[0], dict(os.environ) == before[1]]))
"""
    )
    assert result == [True, True]


def test_a_second_attach_makes_a_recording_of_its_own(run):
    result = run(
        """
steps = []
for number in (2, 3):
    with jm.attach(net, file=f"{FILE}.{number}") as attached:
        train(number)
    paths = [" ".join(row.path) for row in attached.ledger().rows]
    steps.append([len(attached.steps().rows), "train forward first.conv" in paths])
    train(1)  # belongs to none
print(json.dumps(steps))
"""
    )
    assert result == [[2, True], [3, True]]


def test_a_later_attach_to_the_same_file_does_not_change_an_earlier_result(run):
    result = run(
        """
attached = []
counts = []
for number in (2, 3, 4):
    with jm.attach(net, file=FILE) as run:
        train(number)
    attached.append(run)
    counts.append([len(earlier.steps().rows) for earlier in attached[-2:]])
try:
    attached[0].joules
except Exception as error:
    counts.append(str(error))
print(json.dumps(counts))
"""
    )
    assert result[:3] == [[2], [2, 3], [3, 4]]
    assert "have replaced" in result[3] and "pass another `file`" in result[3]


def test_means_per_step_divide_by_training_steps_and_add_up(run):
    result = run(
        """
with jm.attach(net, file=FILE) as attached:
    for _ in range(3):
        train(2)
        with torch.no_grad():
            net(torch.randn(4, 3, 10, 10))
attached.to_csv(FILE + ".csv", per="mean")
total, mean = attached.ledger(), attached.ledger().per_step(6)
sums = [sum(row.energy_j for row in ledger.rows) + (ledger.idle_j or 0) + (ledger.unattributed_j or 0)
        for ledger in (total, mean)]
print(json.dumps([total.steps, len(attached.steps().rows), total.joules, mean.joules, sums, total.time_s, mean.time_s,
                  [mean.low_j, total.low_j], [row.energy_j for row in mean.rows], str(mean), str(total), FILE]))
""",
        JOULEMAP_SENSORS="estimate",
    )
    steps, rows, total_j, mean_j, sums, total_s, mean_s, lows, row_means_j, mean_text, total_text, file = result
    assert (steps, rows) == (6, 6 + 3)
    assert mean_j == pytest.approx(total_j / 6) and mean_s == pytest.approx(total_s / 6)
    assert lows[0] == pytest.approx(lows[1] / 6)
    assert sums == pytest.approx([total_j, mean_j], rel=1e-6)
    with open(file + ".csv", newline="") as table:
        assert [float(row["energy_j"]) for row in csv.DictReader(table)] == pytest.approx(row_means_j)
    assert f"{mean_j:.4g} J" in mean_text and "train forward head" in mean_text and mean_text != total_text


def test_a_run_can_be_read_while_it_is_recorded_and_is_marked_incomplete(run):
    result = run(
        """
attached = jm.attach(net, file=FILE)
train(2)
print(json.dumps([attached.ledger("domain").is_complete]))
"""
    )
    assert result == [False]


def test_the_end_of_the_program_ends_the_recording(run, tmp_path, joulemap):
    run("jm.attach(net, file=FILE)\ntrain(3)\nprint(json.dumps(None))")
    report = joulemap("report", tmp_path / "run.joule", "--by", "step", "--json").json
    assert report["complete"]
    assert len(report["rows"]) == 3


def test_a_program_that_is_killed_leaves_what_it_did(tmp_path, environment, joulemap):
    program = "import json, os, signal\nimport joulemap as jm\n" + NETWORK_PROGRAM
    program += "jm.attach(net, file=FILE)\ntrain(2)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    path = tmp_path / "run.joule"
    killed_process = subprocess.run([sys.executable, "-c", program], env={**environment, "RUN": str(path)}, timeout=120)
    assert killed_process.returncode == -9
    report = joulemap("report", path, "--json")  # also while the recorder still joins its parts
    assert report.code == 0, report.err


def test_workers_forked_during_the_recording_have_complete_parts(run):
    result = run(
        """
data = torch.utils.data.TensorDataset(torch.randn(16, 3, 10, 10), torch.randint(0, 4, (16,)))
loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context="fork")
leave = os._exit
with jm.attach(net, loader=loader, file=FILE) as attached:
    for images, labels in loader:
        criterion(net(images), labels).backward()
ledger = attached.ledger("region")
counts = {" ".join(row.path): row.count for row in ledger.rows}
print(json.dumps([ledger.is_complete, counts["worker"], counts["worker preprocessing"], os._exit is leave]))
"""
    )
    assert result == [True, 2, 4, True]


@requires_torch(2, 1, "torch.compile hides optimizers")
def test_a_model_compiled_before_is_traced_without_a_warning(run):
    result = run(
        """
import warnings
warnings.filterwarnings("ignore", "Guards may run slower", RuntimeWarning)  # PyTorch's own, of Python 3.13.0
plain, net = net, torch.compile(net, backend="aot_eager")
train(2)
with jm.attach(plain, file=FILE) as attached:
    train(3)
train(1)
print(json.dumps([len(attached.steps().rows), sorted({row.path[1] for row in attached.ledger().rows if len(row.path) > 1})]))
"""
    )
    assert result[0] == 3
    assert {"forward", "backward", "optimizer"} <= set(result[1])


def test_an_exception_ends_the_recording_and_propagates(run):
    result = run(
        """
try:
    with jm.attach(net, file=FILE) as attached:
        train(2)
        raise KeyError("of the program's")
except KeyError as error:
    print(json.dumps([str(error), jm.is_recording(), len(attached.steps().rows)]))
"""
    )
    assert result == [repr("of the program's"), False, 2]


def test_a_forked_child_that_exits_in_the_with_block_keeps_its_exit_code(run):
    result = run(
        """
with jm.attach(net, file=FILE) as attached:
    train(1)
    child = os.fork()
    if child == 0:
        sys.exit(7)  # not os._exit: __exit__ runs in the child, too
    exit_code = os.WEXITSTATUS(os.waitpid(child, 0)[1])
    train(1)
print(json.dumps([exit_code, attached.ledger("domain").is_complete, len(attached.steps().rows)]))
"""
    )
    assert result == [7, True, 2]


def test_a_recording_that_cannot_be_read_does_not_replace_an_exception(run):
    result = run(
        """
from joulemap import _attach
failures = [FileNotFoundError("gone"), jm.JoulemapError("unreadable")]
def fail(file):
    raise failure
_attach._read_start_ns = fail
errors = []
for failure in failures:
    try:
        with jm.attach(net, file=FILE):
            raise KeyError("of the program's")
    except Exception as error:
        errors.append(type(error).__name__)
print(json.dumps(errors))
"""
    )
    assert result == ["KeyError", "KeyError"]


def test_untraceable_arguments_are_rejected_before_anything_begins(run, tmp_path):
    result = run(
        """
errors = []
for arguments in ({"optimizer": object()}, {"loader": [1, 2]}, {"exclude": ["tpu"]}, {"exclude": ["cpu", "ram", "gpu"]},
                  {"trace": "off"}):
    try:
        jm.attach(net, file=FILE, **arguments)
    except (TypeError, ValueError) as error:
        errors.append(type(error).__name__)
try:
    jm.attach(object())
except TypeError as error:
    errors.append(str(error))
print(json.dumps(errors))
"""
    )
    assert result == ["TypeError", "TypeError", "ValueError", "ValueError", "ValueError",
                    "jm.attach needs a PyTorch module, not a object"]  # fmt: skip
    assert not (tmp_path / "run.joule").exists()


def test_a_recorder_that_cannot_start_reports_the_cause(run):
    result = run(
        """
try:
    jm.attach(net, file="/nowhere/run.joule")
except jm.JoulemapError as error:
    print(json.dumps([str(error), jm.is_recording()]))
"""
    )
    assert "/nowhere" in result[0]
    assert result[1] is False


def test_parts_of_the_machine_can_be_excluded_or_listed_separately(run):
    result = run(
        """
with jm.attach(net, file=FILE, exclude=["ram"]) as attached:
    train(20)
def sums(ledger):
    parts = {row.part for row in ledger.rows}
    return {part: sum(row.energy_j or 0 for row in ledger.rows if row.part == part) for part in parts}
everything = jm.load(FILE)
print(json.dumps([sums(attached.ledger()), sums(everything.ledger()), sums(everything.ledger(apart=True))]))
""",
        JOULEMAP_SENSORS="estimate",
    )
    without_ram, combined_energies, separate_energies = result
    assert set(without_ram) == {"cpu"}
    assert set(combined_energies) == {"cpu+ram"}
    assert set(separate_energies) == {"cpu", "ram"}
    assert separate_energies["cpu"] == pytest.approx(without_ram["cpu"])
    assert separate_energies["cpu"] + separate_energies["ram"] == pytest.approx(combined_energies["cpu+ram"], rel=0.02)


def test_tables_contain_the_rows_and_inner_modules_their_sums(run, tmp_path):
    result = run(
        """
with jm.attach(net, file=FILE) as attached:
    train(10)
attached.to_csv(FILE + ".csv", per="mean")
nested = {" ".join(row.path): row.energy_j for row in attached.ledger().nested().rows}
modules = {" ".join(row.path): row.energy_j for row in attached.ledger("module").nested().rows}
plain = {" ".join(row.path): row.energy_j for row in attached.ledger().rows}
print(json.dumps([nested, plain, modules]))
"""
    )
    nested, flat_energies, modules = result
    all_passes_j = sum(
        joules for path, joules in nested.items() if path.split()[-1] == "first" and len(path.split()) == 3
    )
    assert modules["first"] == pytest.approx(all_passes_j)
    inner_module_sum_j = (
        flat_energies["train forward first.conv"]
        + flat_energies["train forward first.relu"]
        + flat_energies.get("train forward first", 0)
    )
    assert nested["train forward first"] == pytest.approx(inner_module_sum_j)
    with open(tmp_path / "run.joule.csv", newline="") as file:
        rows = {row["path"]: float(row["energy_j"]) for row in csv.DictReader(file)}
    assert rows["train backward head"] == pytest.approx(flat_energies["train backward head"] / 10)


def test_to_pandas_without_pandas_names_the_missing_package(run):
    result = run(
        """
with jm.attach(net, file=FILE) as attached:
    train(2)
sys.modules["pandas"] = None
try:
    attached.to_pandas()
except jm.JoulemapError as error:
    print(json.dumps(str(error)))
"""
    )
    assert result == "pandas is not installed: pip install pandas"


def test_load_raises_if_the_recording_does_not_exist(python):
    result = python(
        "try:\n    jm.load('no.joule')\nexcept FileNotFoundError as error:\n    print(json.dumps(str(error)))"
    )
    assert result == "no.joule: no such recording"


def test_under_record_attach_is_part_of_that_recording(record):
    program = "import os, json\nimport joulemap as jm\nos.environ['RUN'] = ''\n" + NETWORK_PROGRAM
    recorded_program = record(program + "with jm.attach(net) as attached:\n    train(2)\nprint(attached.files[0])")
    assert not recorded_program.out.strip().endswith(".d")
