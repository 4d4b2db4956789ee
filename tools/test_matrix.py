#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the wheel and the package with several versions of Python and PyTorch, each pair in a temporary environment.
Reports pairs whose interpreter is missing instead of skipping them silently.

    make dist build && tools/test_matrix.py                     # all pairs; some GB of downloads each
    tools/test_matrix.py 3.9+2.0.1 3.13+2.15.0 --keep           # these; --keep leaves the environments

It searches for interpreters on the PATH and in ~/.pyenv/versions. The table printed last is the one of README.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent
# The oldest and the newest PyTorch, and for each Python the newest PyTorch that has a wheel for it.
PYTHON_TORCH_PAIRS = (
    "3.9+2.0.1",
    "3.9+2.8.0",
    "3.10+2.14.1",
    "3.11+2.13.0",
    "3.12+2.15.0",
    "3.13+2.15.0",
    "3.14+2.15.0",
)
REQUIRED_PACKAGES = ("pytest", "zstandard", "setuptools<81")  # PyTorch 2.0 needs what later setuptools removed
TEST_NAMES = ("package", "windows", "injection", "pytest_plugin", "attach", "torch_capture", "torch_names")
TESTS = ("tests/wheel", *(f"tests/python/test_{part}.py" for part in TEST_NAMES))


class PairOutcome(NamedTuple):
    python: str
    torch: str
    outcome_text: str
    is_good: Optional[bool]  # None: could not be tested


def find_interpreter(version: str) -> Optional[str]:
    interpreter_path = shutil.which(f"python{version}")
    if (
        interpreter_path
        and subprocess.run([interpreter_path, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0
    ):
        return interpreter_path
    pyenv_interpreters = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    return str(pyenv_interpreters[-1]) if pyenv_interpreters else None


def make_environment(folder: Path, python: str, torch: str) -> Path:
    """Creates an environment with the packages that the tests need; returns its Python."""
    environment_python = folder / "bin" / "python"
    if not environment_python.exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    numpy = "numpy<2" if torch.startswith("2.0") else "numpy"
    install = [
        str(environment_python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-cache-dir",
    ]
    subprocess.run([*install, f"torch=={torch}", numpy, *REQUIRED_PACKAGES], check=True, timeout=3600)
    return environment_python


def run_tests(python: Path, wheel: Path) -> tuple[str, bool]:
    """Returns the last line of the output of pytest without its duration, and whether all tests passed."""
    command = [str(python), "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=short"]
    environment = {**os.environ, "JOULEMAP_WHEEL": str(wheel)}
    options = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True, "timeout": 3600}
    completed_process = subprocess.run([*command, *TESTS], **options)
    lines = completed_process.stdout.strip().split("\n")
    if completed_process.returncode != 0:
        print("\n".join(lines[-60:]), file=sys.stderr)
    return re.sub(r" in [0-9.]+s.*", "", lines[-1]), completed_process.returncode == 0


def run_version_pair(pair: str, wheel: Path, folder: Path, is_environment_kept: bool) -> PairOutcome:
    version, torch = pair.split("+")
    interpreter_path = find_interpreter(version)
    if interpreter_path is None:
        return PairOutcome(version, torch, f"not tested: Python {version} is not installed", None)
    environment = folder / pair
    try:
        outcome_text, is_good = run_tests(make_environment(environment, interpreter_path, torch), wheel)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        return PairOutcome(version, torch, f"not tested: {str(error)[:120]}", None)
    finally:
        if not is_environment_kept:
            shutil.rmtree(environment, ignore_errors=True)
    return PairOutcome(version, torch, outcome_text, is_good)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=PYTHON_TORCH_PAIRS, help="PYTHON+TORCH")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "matrix")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    wheels = sorted((ROOT / "build" / "dist").glob("joulemap-*.whl"))
    if not wheels:
        parser.error("no wheel in build/dist; run make dist")
    outcomes = []
    for pair in options.pairs:
        outcomes.append(run_version_pair(pair, wheels[-1], options.folder, options.keep))
        print(f"test_matrix: {pair}: {outcomes[-1].outcome_text}", file=sys.stderr, flush=True)
    print("| Python | PyTorch | |\n|---|---|---|")
    for outcome in outcomes:
        print(f"| {outcome.python} | {outcome.torch} | {outcome.outcome_text} |")
    return 1 if any(outcome.is_good is False for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
