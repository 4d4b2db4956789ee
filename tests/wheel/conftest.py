# SPDX-License-Identifier: Apache-2.0
"""Installs the wheel into a new environment as users do. Collected where JOULEMAP_WHEEL contains the path of the wheel:
`make test-wheel` sets it, and tools/test_matrix.py does so for several Pythons."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture(scope="session")
def fresh(tmp_path_factory) -> FreshEnvironment:
    return FreshEnvironment(tmp_path_factory.mktemp("fresh") / "venv", Path(os.environ["JOULEMAP_WHEEL"]).resolve())
