# SPDX-License-Identifier: Apache-2.0
"""tools/release.sh refuses to start where a release would not be what its version promises."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with the script and the two files whose versions it compares."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "release.sh", tmp_path / "tools")
    (tmp_path / "CMakeLists.txt").write_text("project(joulemap VERSION 1.2.3 LANGUAGES CXX)\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (unreleased)\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")


def refusal(folder: Path, *arguments: str) -> str:
    process = subprocess.run([folder / "tools" / "release.sh", *arguments], capture_output=True, text=True, timeout=60)
    assert process.returncode != 0
    return process.stderr


@pytest.mark.parametrize("arguments", [(), ("v1.2.3",), ("1.2",), ("--dry-run",)])
def test_it_needs_a_version_of_three_numbers(tree, arguments):
    assert "usage:" in refusal(tree, *arguments)


def test_it_refuses_a_tree_with_changes(tree):
    (tree / "new.txt").write_text("")
    assert "not committed" in refusal(tree, "--dry-run", "1.2.3")


def test_it_refuses_a_version_that_is_not_the_one_of_the_build(tree):
    assert "CMakeLists.txt is of version 1.2.3" in refusal(tree, "--dry-run", "1.2.4")


def test_it_refuses_a_version_that_the_changelog_lacks(tree):
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.30\n")
    commit(tree)
    assert "no heading '## 1.2.3'" in refusal(tree, "--dry-run", "1.2.3")


def test_it_refuses_to_tag_an_unreleased_version(tree):
    assert "write the date there" in refusal(tree, "1.2.3")


def test_it_refuses_a_tag_that_exists(tree):
    git(tree, "tag", "v1.2.3")
    assert "the tag v1.2.3 exists" in refusal(tree, "1.2.3")
