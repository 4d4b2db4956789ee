# SPDX-License-Identifier: Apache-2.0
"""Every command of README.md runs in an environment with the wheel alone, or is listed below with the reason why not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()
PROGRAMS = ("joulemap", "python", "python3", "pip", "make")
# Placeholders of the README and what replaces them, in this order.
PLACEHOLDERS = {
    r"(\S*python3?) (-c \S+ )?examples/train_digits\.py\S*( --\w+ \w+)*": "python examples/add_numbers.py builtin",
    r"\bpython3? train\.py": "python examples/add_numbers.py builtin",
    r"\bCMD\b": "python examples/add_numbers.py builtin",
    r"\bdiff A B\b": "diff first.joule second.joule",
    r"--to FORMAT\b": "--to csv",
    r"\bexperiment$": "experiment plan examples/experiment.toml",
    r"\breport --plot flame$": "report examples/resnet50-h200.joule --plot flame",
}
# Commands that cannot run in this environment, and why.
SKIPPED_COMMANDS = {
    r"^make ": "needs the source tree and a compiler",
    r"^pip install joulemap": "the fixture installs the wheel from its file",
    r"collect": "needs PyTorch and an NVIDIA GPU",
    r"\bmodel fit\b": "needs XGBoost, the extra fit, and measured data; tests/cli/test_predict.py covers it",
    r"\bimport FORMAT\b": "needs traces of another tool; tests/cli/test_import.py covers it",
}


def commands_of(text: str) -> list[str]:
    """The commands of code blocks, fenced or indented, and those in the text."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks += re.findall(r"(?:^(?: {4}.*)?\n)+", text, re.MULTILINE)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.split("\n")]
    lines += re.findall(r"(?<!`)`((?:joulemap|python -m joulemap) [^`\n]+)`", text)
    without_comments = [re.sub(r"\s+#.*", "", line) for line in lines]
    return [line for line in dict.fromkeys(without_comments) if line.split(" ")[0] in PROGRAMS]


def find_skip_reason(command: str) -> str | None:
    return next((reason for pattern, reason in SKIPPED_COMMANDS.items() if re.search(pattern, command)), None)


def fill(command: str) -> str:
    for pattern, value in PLACEHOLDERS.items():
        command = re.sub(pattern, value, command)
    return command


@pytest.fixture(scope="module")
def recordings(bare_environment):
    """The files that commands of the README name."""
    for name in ("run", "first", "second"):
        bare_environment.output(f"joulemap record -o {name}.joule -- python examples/add_numbers.py builtin")
    shutil.copy(ROOT / "tests" / "data" / "onnx" / "resnet18.onnx", bare_environment.work / "model.onnx")
    return bare_environment


def test_the_readme_contains_commands():
    assert len(commands_of(README)) >= 5


@pytest.mark.parametrize("command", commands_of(README))
def test_each_command_of_the_readme_runs(recordings, command):
    if reason := find_skip_reason(command):
        pytest.skip(f"{command}: {reason}")
    process = recordings.run(fill(command))
    assert process.returncode == 0, f"{fill(command)}\n{process.stdout}{process.stderr}"


def test_the_description_renders_as_on_a_package_index(bare_environment):
    renderer = pytest.importorskip("readme_renderer.markdown")
    text = bare_environment.output(
        "python -c \"from importlib.metadata import metadata; print(metadata('joulemap').get_payload())\""
    )
    page = renderer.render(text)
    assert page is not None and "<h1" in page and "<table" in page
    for target in re.findall(r"(?:href|src)=\"([^\"]+)\"", page):
        assert re.match(r"https?:|#|mailto:", target), target
