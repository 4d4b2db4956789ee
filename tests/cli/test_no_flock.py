"""Folders on file systems without flock: NFS without a lock server, Lustre, some FUSE file systems."""

from __future__ import annotations

import os
import subprocess

import pytest

NO_FLOCK_SOURCE = (
    "#include <errno.h>\nint flock(int fd, int operation) { (void)fd; (void)operation; errno = ENOLCK; return -1; }\n"
)
PLAN_TOML = """
name = "tiny"
command = ["true"]
repetitions = 2
baseline_s = 0
warm_up_runs = 0
trace = "off"
[factors]
variant = ["a", "b"]
[checks]
require = []
"""


@pytest.fixture
def environment_without_flock(tmp_path) -> dict[str, str]:
    """An environment in which flock fails with the error of an NFS without a lock server."""
    source, library = tmp_path / "no_flock.c", tmp_path / "no_flock.so"
    source.write_text(NO_FLOCK_SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    return {**os.environ, "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()}


def test_a_command_is_recorded_and_the_summary_lists_missing_data(
    joulemap, sysroots, environment_without_flock, tmp_path
):
    recording = tmp_path / "run.joule"
    words = ("--sysroot", sysroots / "intel-2socket", "record", "--json", "-o", recording, "--", "true")
    record_outcome = joulemap(*words, env=environment_without_flock)
    assert record_outcome.code == 0, record_outcome.err
    notes = [note for note in record_outcome.json["diagnostics"] if note["code"] == "flock_missing"]
    assert len(notes) == 1 and notes[0]["remedy"]
    assert sorted(path.name for path in tmp_path.glob("run.joule*")) == ["run.joule"]
    reported = joulemap("report", "--json", recording)
    assert reported.code == 0, reported.err


def test_an_experiment_runs(joulemap, sysroots, environment_without_flock, tmp_path):
    plan = tmp_path / "experiment.toml"
    plan.write_text(PLAN_TOML)
    words = ("--sysroot", sysroots / "intel-2socket", "experiment", "run", plan, "-o", tmp_path / "tiny", "--json")
    experiment_outcome = joulemap(*words, env=environment_without_flock, cwd=tmp_path)
    assert experiment_outcome.code == 0, experiment_outcome.err
    assert [row["state"] for row in experiment_outcome.json["rows"]] == 4 * ["done"]
    assert list((tmp_path / "tiny").glob("owner-*")) == []
