# SPDX-License-Identifier: Apache-2.0
"""What the portable build (`make dist`) needs of glibc, examined in the build that the tests use: a function newer than the
oldest supported glibc fails here, not only when a release is built."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OLDEST_GLIBC = (2, 28)  # as in tools/make_dist.sh


def list_newer_symbols(file: Path) -> dict[str, str]:
    """Name -> version of the symbols of glibc that a binary needs and that the oldest supported glibc lacks."""
    completed_process = subprocess.run(["objdump", "-T", str(file)], capture_output=True, text=True, check=True)
    needed = re.findall(r"\*UND\*.*\bGLIBC_(\d+)\.(\d+)\)? +(\w+)", completed_process.stdout)
    assert needed, f"objdump shows no symbol of glibc in {file}"
    return {name: f"{major}.{minor}" for major, minor, name in needed if (int(major), int(minor)) > OLDEST_GLIBC}


def list_replaced_symbols() -> set[str]:
    """Symbols that cmake/glibc_floor.cc forwards to older versions or implements."""
    source = (ROOT / "cmake/glibc_floor.cc").read_text()
    forwarded = re.findall(r'^FORWARD_SYMBOL\("(\w+)"', source, re.MULTILINE)
    forwarded += re.findall(r"^FORWARD_STAT\((\w+)", source, re.MULTILINE)
    implemented = r'^__attribute__\(\(visibility\("hidden"\)\)\)[^;{]*?(\w+)\s*(?:\(|;)'
    return {*forwarded, *re.findall(implemented, source, re.MULTILINE)}


@pytest.mark.parametrize("file", ["bin/joulemap", "lib/libjoulemap.so", "lib/libjoulemap_capture.so"])
def test_the_program_calls_no_function_that_the_oldest_supported_glibc_lacks(file: str, binaries: Path) -> None:
    newer = list_newer_symbols(binaries.parent / file)
    unreplaced = {name: version for name, version in newer.items() if name not in list_replaced_symbols()}
    assert not unreplaced, f"avoid them, or add them to cmake/glibc_floor.cc: {unreplaced}"
