# SPDX-License-Identifier: Apache-2.0
"""The contents of `pip install joulemap-*.whl`: the package, the program, the pytest plugin, the integrations."""

from __future__ import annotations

import importlib.util
import json

import pytest

BUDGET_PROGRAM = """
import pytest

def test_free():
    pass

@pytest.mark.joules(budget=1e-9)
def test_wasteful():
    import time
    end = time.perf_counter() + 1
    while time.perf_counter() < end:
        pass
"""

TRAINING_PROGRAM = """
import sys, torch
import joulemap as jm
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(inplace=True), torch.nn.Linear(64, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train():
    for _ in range(5):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.randn(32, 64)), torch.zeros(32, dtype=torch.long)).backward()
        optimizer.step()
"""


def test_the_package_is_the_one_of_the_wheel_and_measures(fresh_environment):
    program = """
import json, joulemap as jm
with jm.measure("work") as m:
    sum(range(100000))
print(json.dumps([jm.__file__, m.seconds > 0, m.provenance]))
"""
    file, has_elapsed_time, provenance = json.loads(fresh_environment.output("-c", program))
    assert str(fresh_environment.python.parent.parent) in file
    assert has_elapsed_time
    assert provenance == "estimated"


def test_the_program_is_there_as_a_command_and_as_a_module(fresh_environment):
    for words in ([fresh_environment.program, "--version"], ["-m", "joulemap", "--version"]):
        assert fresh_environment.output(*words).startswith("joulemap ")


def test_pytest_finds_the_plugin_by_itself(fresh_environment, tmp_path):
    (tmp_path / "test_it.py").write_text(BUDGET_PROGRAM)
    output = fresh_environment.run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "--joules", "test_it.py", cwd=tmp_path
    ).stdout
    assert "the budget is 1e-09 J" in output
    assert "test_it.py::test_free:" in output
    assert "1 failed, 1 passed" in output


def test_a_training_is_traced_by_layer_with_attach_and_with_record(fresh_environment, tmp_path):
    pytest.importorskip("torch")
    attach_code = "with jm.attach(net, file='attached.joule'):\n    train()\n"
    fresh_environment.output("-c", TRAINING_PROGRAM + attach_code, cwd=tmp_path)
    (tmp_path / "train.py").write_text(TRAINING_PROGRAM + "train()\n")
    fresh_environment.output(
        "-m", "joulemap", "record", "-o", "recorded.joule", "--", fresh_environment.python, "train.py", cwd=tmp_path
    )
    ask = (
        "import json, sys, joulemap as jm\nprint(json.dumps([row.path for row in jm.load(sys.argv[1]).ledger().rows]))"
    )
    for file in ("attached.joule", "recorded.joule"):
        paths = json.loads(fresh_environment.output("-c", ask, file, cwd=tmp_path))
        for layer in ("0", "1", "2"):
            assert ["train", "forward", layer] in paths
            assert ["train", "backward", layer] in paths
        assert ["train", "optimizer", "SGD"] in paths


@pytest.mark.parametrize(
    ("package", "module"),
    [("keras", "keras"), ("lightning", "lightning"), ("transformers", "huggingface"), ("mlflow", "mlflow"),
     ("wandb", "wandb"), ("pytest", "_pytest_plugin"), ("IPython", "_jupyter")],
)  # fmt: skip
def test_each_integration_can_be_imported_from_the_wheel(fresh_environment, package, module):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    result = fresh_environment.output("-c", f"import joulemap.{module} as made; print(made.__file__)")
    assert str(fresh_environment.python.parent.parent) in result
