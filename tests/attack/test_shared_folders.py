"""World-writable folders such as /tmp: Joulemap does not follow, replace or remove files planted by another user.

Runs as root, with an unprivileged user as the attacker.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ATTACKER_UID = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as two users")


@pytest.fixture
def sticky_folder():
    """A folder with the permissions of /tmp, owned by root."""
    path = Path(tempfile.mkdtemp(prefix="joulemap-sticky-"))
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def root_file(tmp_path: Path) -> Path:
    """A file of root that the attacker cannot write to."""
    file = tmp_path / "precious"
    file.write_text("precious")
    file.chmod(0o600)
    return file


def run_as_attacker(*command: object) -> None:
    switch = ["setpriv", f"--reuid={ATTACKER_UID}", f"--regid={ATTACKER_UID}", "--clear-groups"]
    subprocess.run([*switch, *map(str, command)], check=True, timeout=30)


def record(joulemap, file: Path, sysroots: Path):
    return joulemap("--sysroot", sysroots / "no-sensors", "record", "-o", file, "--", "true")


def test_a_planted_link_does_not_lead_a_recording_to_a_file_of_root(joulemap, sysroots, sticky_folder, root_file):
    file = sticky_folder / "run.joule"
    run_as_attacker("ln", "-s", root_file, file)
    outcome = record(joulemap, file, sysroots)
    assert (outcome.code, root_file.read_text()) == (2, "precious")
    assert "belongs to another user" in outcome.err


@pytest.mark.parametrize("name", ["run.joule.d", "run.joule.old", "run.joule.old.d"])
def test_a_folder_of_another_user_is_neither_used_nor_removed(joulemap, sysroots, sticky_folder, name):
    run_as_attacker("mkdir", sticky_folder / name)
    run_as_attacker("touch", sticky_folder / name / "thesis.tex")
    outcome = record(joulemap, sticky_folder / "run.joule", sysroots)
    assert (sticky_folder / name / "thesis.tex").exists()
    if name == "run.joule.d":
        assert outcome.code == 2, outcome.err


def test_a_planted_symlink_for_the_parts_folder_is_not_followed(joulemap, sysroots, sticky_folder, tmp_path):
    symlink_target_folder = tmp_path / "elsewhere"
    symlink_target_folder.mkdir()
    (symlink_target_folder / "kept").write_text("kept")
    run_as_attacker("ln", "-s", symlink_target_folder, sticky_folder / "run.joule.d")
    record(joulemap, sticky_folder / "run.joule", sysroots)
    assert [path.name for path in symlink_target_folder.iterdir()] == ["kept"]


@pytest.mark.parametrize("output", ["report.txt", "page.html"])
def test_a_planted_link_does_not_lead_a_report_to_a_file_of_root(joulemap, sticky_folder, root_file, output):
    run_as_attacker("ln", "-s", root_file, sticky_folder / output)
    example = Path(__file__).resolve().parent.parent / "data" / "recordings" / "v1.2.joule"
    option = "--html" if output.endswith("html") else "-o"
    outcome = joulemap("report", example, option, sticky_folder / output)
    assert root_file.read_text() == "precious"
    assert outcome.code == 2 and "belongs to another user" in outcome.err


@pytest.mark.parametrize("content", ["", "older"])
def test_a_planted_file_does_not_take_a_report_that_its_owner_could_read(joulemap, sticky_folder, content):
    run_as_attacker(
        "sh", "-c", f"printf '{content}' > {sticky_folder}/report.txt && chmod 666 {sticky_folder}/report.txt"
    )
    example = Path(__file__).resolve().parent.parent / "data" / "recordings" / "v1.2.joule"
    outcome = joulemap("report", example, "-o", sticky_folder / "report.txt")
    assert outcome.code == 2 and (sticky_folder / "report.txt").read_text() == content


def test_a_symlink_of_the_same_user_is_followed(joulemap, sticky_folder, root_file):
    (sticky_folder / "report.txt").symlink_to(root_file)
    example = Path(__file__).resolve().parent.parent / "data" / "recordings" / "v1.2.joule"
    assert joulemap("report", example, "-o", sticky_folder / "report.txt").code == 0
    assert "Energy of" in root_file.read_text()
