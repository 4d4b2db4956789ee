# SPDX-License-Identifier: Apache-2.0
"""The wheel for the other architecture, beside the one for this machine. `make wheel` builds both."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MACHINE = "aarch64" if platform.machine() == "x86_64" else "x86_64"
LIBRARY_SYSROOT = ROOT / "build" / f"sysroot-{MACHINE}"  # what tools/make_sysroot.sh unpacked for the cross compiler


@pytest.fixture(scope="module")
def other(wheel: Path) -> Path:
    foreign_wheels = sorted(wheel.parent.glob(f"joulemap-*_{MACHINE}.whl"))
    if not foreign_wheels:
        pytest.skip(f"no wheel for {MACHINE} beside {wheel.name}")
    return foreign_wheels[0]


def test_both_wheels_hold_what_their_names_promise_and_the_same_files(wheel, other):
    command = [sys.executable, ROOT / "tools" / "check_wheel.py", wheel, other]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("newest glibc symbol") == 2


@pytest.fixture(scope="module")
def run_emulated(tmp_path_factory, other: Path):
    """Runs a program of the wheel under an emulator with the libraries of the cross compiler."""
    emulator = shutil.which(f"qemu-{MACHINE}-static")
    if emulator is None or not LIBRARY_SYSROOT.exists():
        pytest.skip(f"needs qemu-{MACHINE}-static (Debian: qemu-user-static) and {LIBRARY_SYSROOT.name}")
    folder = tmp_path_factory.mktemp("other")
    zipfile.ZipFile(other).extractall(folder)
    (folder / "joulemap" / "bin" / "joulemap").chmod(0o755)

    def run(program: Path, *arguments: str, **variables: str) -> str:
        settings = [part for name, value in variables.items() for part in ("-E", f"{name}={value}")]
        command = [emulator, "-L", str(LIBRARY_SYSROOT), *settings, str(program), *arguments]
        process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    run.folder = folder
    return run


def test_the_program_runs_under_an_emulator(run_emulated):
    program = run_emulated.folder / "joulemap" / "bin" / "joulemap"
    assert run_emulated(program, "--version").startswith("joulemap ")
    assert run_emulated(program, "doctor").startswith("joulemap ")


def test_the_package_measures_under_an_emulator(run_emulated):
    python_paths = sorted((LIBRARY_SYSROOT / "usr" / "bin").glob("python3.*[0-9]"))
    if not python_paths:
        pytest.skip(f"{LIBRARY_SYSROOT.name} contains no Python")
    program = "import joulemap as jm\nwith jm.measure('work') as m:\n    sum(range(100000))\nprint(m.provenance)"
    variables = {
        "PYTHONHOME": str(LIBRARY_SYSROOT / "usr"),
        "PYTHONPATH": str(run_emulated.folder),
        "JOULEMAP_SENSORS": "estimate",
    }
    assert run_emulated(python_paths[0], "-c", program, **variables) == "estimated\n"
