# SPDX-License-Identifier: Apache-2.0
"""Installs the wheel into a new environment as users do. Collected where JOULEMAP_WHEEL contains the path of the wheel:
`make test-wheel` sets it, and tools/test_matrix.py does so for several Pythons."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
collect_ignore_glob = [] if os.environ.get("JOULEMAP_WHEEL") else ["test_*.py"]


class FreshEnvironment:
    """A Python environment with the wheel and the packages of the Python that runs the tests."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._folder = folder
        self.python = folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        site = Path(self.output("-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        (site / "others.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
        subprocess.run([*install, "--disable-pip-version-check", str(wheel)], check=True, timeout=120)

    @property
    def program(self) -> Path:
        """The program where `pip install --target` puts scripts of packages."""
        return next(self._folder.rglob("site-packages/bin/joulemap"))

    def run(self, *arguments: object, **options: object) -> subprocess.CompletedProcess:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment.update(JOULEMAP_SENSORS="estimate", KERAS_BACKEND="torch", WANDB_MODE="offline")
        command = [str(self.python), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, **options)

    def output(self, *arguments: object, **options: object) -> str:
        process = self.run(*arguments, **options)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout


class BareEnvironment:
    """A Python environment with the wheel and nothing else, and a folder to work in with a copy of examples/."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.binaries = folder / "venv" / "bin"
        self.work = folder / "work"
        shutil.copytree(ROOT / "examples", self.work / "examples")
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        install = [str(self.binaries / "pip"), "install", "--quiet", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*install, str(wheel)], check=True, timeout=120)

    def run(self, command: str) -> subprocess.CompletedProcess:
        """Runs a line of shell with the environment activated."""
        inherited_variables = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")
        }
        settings = {
            **inherited_variables,
            "PATH": f"{self.binaries}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(self.binaries.parent),
        }
        settings.update(JOULEMAP_DATA=str(self.work / "data"), HOME=str(self.work), LC_ALL="C.UTF-8")
        options = {"cwd": self.work, "env": settings, "capture_output": True, "text": True, "timeout": 300}
        return subprocess.run(["sh", "-c", command], **options)

    def output(self, command: str) -> str:
        process = self.run(command)
        assert process.returncode == 0, f"{command}\n{process.stdout}{process.stderr}"
        return process.stdout


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel for this machine."""
    return Path(os.environ["JOULEMAP_WHEEL"]).resolve()


@pytest.fixture(scope="session")
def bare_environment(tmp_path_factory, wheel: Path) -> BareEnvironment:
    return BareEnvironment(tmp_path_factory.mktemp("bare"), wheel)


@pytest.fixture(scope="session")
def fresh_environment(tmp_path_factory) -> FreshEnvironment:
    return FreshEnvironment(tmp_path_factory.mktemp("fresh") / "venv", Path(os.environ["JOULEMAP_WHEEL"]).resolve())
