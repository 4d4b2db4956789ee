"""A synthetic training run that the export tests share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

STEPS = 120
LAYER_COUNT = 8


@pytest.fixture(scope="module")
def made(binaries: Path, tmp_path_factory) -> Path:
    """A training run of 120 steps in four epochs with 8 layers and a falling loss; one layer name looks like markup."""
    file = tmp_path_factory.mktemp("export") / "made.joule"
    subprocess.run(
        [binaries / "joulemap-made-recording", file, str(STEPS), str(LAYER_COUNT), "3"], check=True, timeout=60
    )
    return file


@pytest.fixture
def load_report(joulemap, made):
    """Returns the output of report --json at a level."""
    return lambda report_level: joulemap("report", "--json", "--by", report_level, made).json
