"""What the tests of the program share: how to run it, and machines to run it on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

# A job in the background of a script is started with interrupts ignored, and hands that on. The programs under test must
# be interruptible wherever the tests run.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "simulated_machine"))
sys.path.append(str(ROOT / "tests"))


REAL_TIME = "real_time: beside other load it tells of that load; runs alone, skipped where processors are taken away"
# Of the processors' time, taken away by the machine that this one runs on: then a simulated machine stands still while
# the clock goes on, and nothing can be said of what was measured on it.
MOST_STOLEN = 0.05


def stolen_s() -> float:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", REAL_TIME)


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    began, stolen_before = time.monotonic(), stolen_s()
    outcome = yield
    if outcome.excinfo is None or pyfuncitem.get_closest_marker("real_time") is None:
        return
    stolen = (stolen_s() - stolen_before) / ((time.monotonic() - began) * (os.cpu_count() or 1))
    if stolen > MOST_STOLEN:
        outcome.force_exception(pytest.skip.Exception(f"{100 * stolen:.0f} % of the processors' time was taken away"))


@pytest.fixture(scope="session")
def binaries() -> Path:
    """Where the programs under test are; JOULEMAP_BUILD names another build (a sanitizer's, say)."""
    return ROOT / os.environ.get("JOULEMAP_BUILD", "build") / "bin"


@pytest.fixture(scope="session")
def sysroots() -> Path:
    return ROOT / "tests" / "sysroots"


class Outcome:
    """How a run of joulemap ended."""

    def __init__(self, process: subprocess.CompletedProcess) -> None:
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def json(self) -> dict:
        """The last line of stdout."""
        return json.loads(self.out.rstrip("\n").split("\n")[-1])


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path, monkeypatch):
    """What a test teaches is not for the user's own recordings, nor for other tests."""
    monkeypatch.setenv("JOULEMAP_DATA", str(tmp_path / "data"))


@pytest.fixture
def joulemap(binaries: Path):
    """Runs the program: joulemap("stat", "--", "true")."""

    def run(*arguments: object, **options: object) -> Outcome:
        command = [str(binaries / "joulemap"), *map(str, arguments)]
        return Outcome(subprocess.run(command, capture_output=True, text=True, timeout=120, **options))

    return run


@pytest.fixture
def public_directory():
    """A folder that other users may enter, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="joulemap-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def memory_directory():
    """A folder in memory, where a simulated machine can write a thousand times a second."""
    parent = "/dev/shm" if os.path.isdir("/dev/shm") else None
    path = Path(tempfile.mkdtemp(prefix="joulemap-", dir=parent))
    yield path
    shutil.rmtree(path, ignore_errors=True)
