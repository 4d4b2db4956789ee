"""Shared fixtures: how to run the program, and machines to run it on."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

# Background jobs of a script start with SIGINT ignored and pass that on to their children. The programs under test must
# be interruptible wherever the tests run.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Threads of PyTorch that wait for one another sleep instead of spinning: many programs share few processors here.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "simulated_machine"))
sys.path.append(str(ROOT / "tests"))


REAL_TIME_MARKER = (
    "real_time: needs the processor in time, as its docstring explains; runs alone, and skips where it is not given"
)
MAX_SKIPPED = 5  # limit of skipped real_time tests: more could hide a defect


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", REAL_TIME_MARKER)


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    skipped_test_ids = [report.nodeid for report in reports if "real_time" in report.keywords]
    if len(skipped_test_ids) > MAX_SKIPPED:
        reporter.write_line(
            f"\n{len(skipped_test_ids)} tests of the group real_time skipped, {MAX_SKIPPED} may", red=True
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def binaries() -> Path:
    """Folder of the programs under test; JOULEMAP_BUILD selects another build, such as one with a sanitizer."""
    return ROOT / os.environ.get("JOULEMAP_BUILD", "build") / "bin"


@pytest.fixture(scope="session")
def sysroots() -> Path:
    return ROOT / "tests" / "sysroots"


class Outcome:
    """The result of a run of joulemap."""

    def __init__(self, process: subprocess.CompletedProcess) -> None:
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def json(self) -> dict:
        """The last line of stdout as JSON."""
        return json.loads(self.out.rstrip("\n").split("\n")[-1])


@pytest.fixture(autouse=True)
def use_temporary_data_folder(tmp_path, monkeypatch):
    """Each test has its own data folder: its kernel library affects neither the user's recordings nor other tests."""
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
    """A folder that other users can enter, unlike pytest's own."""
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
