"""A made-up training that tests of exports share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

STEPS = 120
LAYERS = 8


@pytest.fixture(scope="module")
def made(binaries: Path, tmp_path_factory) -> Path:
    """A training of 120 steps in four epochs, 8 layers, with a loss that falls; one layer is named like markup."""
    file = tmp_path_factory.mktemp("export") / "made.joule"
    subprocess.run([binaries / "joulemap-made-recording", file, str(STEPS), str(LAYERS), "3"], check=True, timeout=60)
    return file


@pytest.fixture
def told(joulemap, made):
    """What report --json says."""
    return lambda by: joulemap("report", "--json", "--by", by, made).json
