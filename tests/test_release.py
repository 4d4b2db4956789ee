# SPDX-License-Identifier: Apache-2.0
"""tools/release.sh refuses to start where a release would not be what its version promises."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def release_tree(tmp_path: Path) -> Path:
    """A repository with the script and the two files whose versions it compares."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "release.sh", tmp_path / "tools")
    (tmp_path / "CMakeLists.txt").write_text("project(joulemap VERSION 1.2.3 LANGUAGES CXX)\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (unreleased)\n")
    git(tmp_path, "init", "--quiet")
    commit_all(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit_all(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")


def refusal_message(folder: Path, *arguments: str) -> str:
    process = subprocess.run([folder / "tools" / "release.sh", *arguments], capture_output=True, text=True, timeout=60)
    assert process.returncode != 0
    return process.stderr


@pytest.mark.parametrize("arguments", [(), ("v1.2.3",), ("1.2",), ("--dry-run",)])
def test_release_needs_a_version_of_three_numbers(release_tree, arguments):
    assert "usage:" in refusal_message(release_tree, *arguments)


def test_release_refuses_uncommitted_changes(release_tree):
    (release_tree / "new.txt").write_text("")
    assert "not committed" in refusal_message(release_tree, "--dry-run", "1.2.3")


def test_release_refuses_a_version_other_than_the_build(release_tree):
    assert "CMakeLists.txt is of version 1.2.3" in refusal_message(release_tree, "--dry-run", "1.2.4")


def test_release_refuses_a_version_missing_in_changelog(release_tree):
    (release_tree / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.30\n")
    commit_all(release_tree)
    assert "no heading '## 1.2.3'" in refusal_message(release_tree, "--dry-run", "1.2.3")


def test_release_refuses_an_unreleased_changelog_entry(release_tree):
    assert "write the date there" in refusal_message(release_tree, "1.2.3")


def test_release_refuses_an_existing_tag(release_tree):
    git(release_tree, "tag", "v1.2.3")
    assert "the tag v1.2.3 exists" in refusal_message(release_tree, "1.2.3")


FAKE_MAKEFILE = """\
wheel:
	@mkdir -p build/wheels build/dist/joulemap-1.2.3-linux-$(shell uname -m)/bin
	@touch build/wheels/joulemap-1.2.3-any_$(shell uname -m).whl build/dist/joulemap-1.2.3-linux-any.tar.gz
	@printf '#!/bin/sh\\necho joulemap 1.2.3\\n' >build/dist/joulemap-1.2.3-linux-$(shell uname -m)/bin/joulemap
	@chmod +x build/dist/joulemap-1.2.3-linux-$(shell uname -m)/bin/joulemap
deb:
	@mkdir -p build/deb && touch build/deb/joulemap_1.2.3_any.deb
"""


@pytest.fixture
def buildable_tree(release_tree: Path) -> Path:
    """A released version whose build and checks succeed at once."""
    (release_tree / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-01-01)\n")
    (release_tree / "Makefile").write_text(FAKE_MAKEFILE)
    (release_tree / ".gitignore").write_text("/build/\n")
    python = release_tree / "build" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    commit_all(release_tree)
    git(release_tree, "config", "user.name", "test")
    git(release_tree, "config", "user.email", "test@localhost")
    return release_tree


def release(folder: Path, *arguments: str) -> str:
    process = subprocess.run([folder / "tools" / "release.sh", *arguments], capture_output=True, text=True, timeout=60)
    assert process.returncode == 0, process.stderr
    return process.stdout


def read_tag_type(folder: Path) -> str:
    command = ["git", "cat-file", "-t", "v1.2.3"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout.strip()


def test_a_dry_run_builds_everything_and_does_not_tag(buildable_tree):
    assert "v1.2.3 is not tagged" in release(buildable_tree, "--dry-run", "1.2.3")
    assert read_tag_type(buildable_tree) == ""
    sums = (buildable_tree / "build" / "release-1.2.3" / "SHA256SUMS").read_text()
    assert len(sums.splitlines()) == 4, "wheel, folder, Debian package and source archive"


def test_a_release_is_an_annotated_tag_and_the_commands_that_publish_it(buildable_tree):
    release_output = release(buildable_tree, "1.2.3")
    assert read_tag_type(buildable_tree) == "tag"
    assert "git push origin v1.2.3" in release_output
    assert "twine upload build/release-1.2.3/*.whl" in release_output


def test_failed_checks_prevent_the_tag(buildable_tree):
    (buildable_tree / "build" / "venv" / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    refusal_message(buildable_tree, "1.2.3")
    assert read_tag_type(buildable_tree) == ""
