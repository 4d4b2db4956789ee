"""A build without npm or its packages succeeds: tools/bundle_page.sh then generates sources for a static page."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def bundle(npm: str, folder: Path) -> subprocess.CompletedProcess:
    command = [ROOT / "tools" / "bundle_page.sh", npm, ROOT / "web", folder / "web", folder / "page_bundle.cc"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("npm", ["is missing", "cannot reach its packages"])
def test_without_npm_the_build_continues_with_a_static_page(npm, tmp_path):
    program = tmp_path / "npm"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    outcome = bundle("" if npm == "is missing" else str(program), tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    assert "the page will be static" in outcome.stderr
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("no compiler")
    check = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT}/src", tmp_path / "page_bundle.cc"]
    checked = subprocess.run(check, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
