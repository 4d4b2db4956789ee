"""joulemap experiment submit on a real Slurm cluster of two nodes: `make test-slurm`, as root."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

SCRIPT_FOLDER = Path(__file__).resolve().parent

pytestmark = pytest.mark.skipif(
    "JOULEMAP_TEST_SLURM" not in os.environ,
    reason="starts a Slurm of its own, as root: make test-slurm",
)


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="joulemap-slurm-"))
    subprocess.run([SCRIPT_FOLDER / "cluster.sh", "start", folder], check=True, timeout=120)
    yield {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    subprocess.run([SCRIPT_FOLDER / "cluster.sh", "stop", folder], timeout=60)


PLAN_TOML = """
name = "blocks"
command = ["true", "{variant}"]
repetitions = 5
baseline_s = 0
warm_up_runs = 0
trace = "off"
[factors]
variant = ["a", "b"]
[checks]
require = []
"""


def test_blocks_run_on_one_node_each_and_all_rows_are_done(cluster, joulemap, tmp_path):
    plan = tmp_path / "experiment.toml"
    plan.write_text(PLAN_TOML)
    folder = tmp_path / "exp"
    assert joulemap("experiment", "plan", plan, "-o", folder).code == 0
    submitted = joulemap("experiment", "submit", folder, "--", "--time=5", env=cluster)
    assert submitted.code == 0, submitted.err
    with (folder / "slurm" / "jobs.csv").open() as file:
        arrays = list(csv.reader(file))
    assert len(arrays) == 2, "five blocks are two arrays where an array has three at most"

    def status() -> dict:
        outcome = joulemap("experiment", "status", folder, "--json", env=cluster)
        assert outcome.code == 0, outcome.err
        return outcome.json

    followed = set()
    end = time.monotonic() + 120
    while (experiment_status := status())["counts"]["done"] < 10:
        followed |= {job["state"] for job in experiment_status["jobs"]}
        logs = [path.read_text() for path in (folder / "slurm").glob("*.txt")]
        assert time.monotonic() < end, (experiment_status["counts"], logs)
        time.sleep(0.2)
    assert followed & {"PENDING", "RUNNING", "COMPLETING", "COMPLETED"}

    nodes: dict[int, set[str]] = {}
    for path in sorted(folder.glob("rows/*/attempt-1/row.json")):
        row = json.loads(path.read_text())
        nodes.setdefault(row["block"], set()).add(row["node"])
    assert len(nodes) == 5 and all(len(names) == 1 for names in nodes.values())
    assert set.union(*nodes.values()) <= {"n1", "n2"}
    second_submission = joulemap("experiment", "submit", folder, env=cluster)
    assert second_submission.code == 0 and "no rows left" in second_submission.out
