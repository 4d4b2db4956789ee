# SPDX-License-Identifier: Apache-2.0
"""The checks of wheels: what tools/check_wheel.py accepts and refuses, and the description of the package."""

from __future__ import annotations

import base64
import hashlib
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tools"))

from wheel_metadata import make_description, make_metadata  # noqa: E402

MACHINE = platform.machine()
INFO_FOLDER = "joulemap-1.2.3.dist-info"
PROGRAM = Path(shutil.which("true") or "/bin/true").read_bytes()


def write_wheel(folder: Path, glibc: int = 99, machine: str = MACHINE, **file_overrides: bytes) -> Path:
    tag = f"cp39-abi3-manylinux_2_{glibc}_{machine}"
    files = {
        "joulemap/bin/joulemap": PROGRAM,
        f"{INFO_FOLDER}/METADATA": make_metadata("1.2.3", "# Joulemap\n", ["LICENSE"]).encode(),
        f"{INFO_FOLDER}/licenses/LICENSE": b"",
        f"{INFO_FOLDER}/WHEEL": f"Tag: {tag}\n".encode(),
    }
    files.update((name, file_overrides[name]) for name in files if name in file_overrides)
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    path = folder / f"joulemap-1.2.3-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in {
            **files,
            f"{INFO_FOLDER}/RECORD": "".join([*rows, f"{INFO_FOLDER}/RECORD,,\n"]).encode(),
        }.items():
            wheel.writestr(name, data)
        for name, data in file_overrides.items():
            if name not in files:
                wheel.writestr(name, data)
    return path


def check(*wheels: Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, ROOT / "tools" / "check_wheel.py", *wheels], capture_output=True, text=True)


def test_a_wheel_that_holds_what_its_name_promises_passes(tmp_path):
    assert check(write_wheel(tmp_path)).returncode == 0


def test_a_file_that_needs_a_newer_glibc_than_the_tag_is_refused(tmp_path):
    process = check(write_wheel(tmp_path, glibc=5))
    assert process.returncode == 1
    assert "the tag promises 2.5" in process.stderr


def test_a_file_of_another_machine_is_refused(tmp_path):
    foreign_machine = "x86_64" if MACHINE == "aarch64" else "aarch64"
    assert f"not for {foreign_machine}" in check(write_wheel(tmp_path, machine=foreign_machine)).stderr


def test_a_file_that_record_does_not_list_is_refused(tmp_path):
    assert "differ in joulemap/extra.py" in check(write_wheel(tmp_path, **{"joulemap/extra.py": b""})).stderr


@pytest.mark.parametrize("field", ["Summary", "License-Expression", "Requires-Python"])
def test_incomplete_metadata_is_refused(tmp_path, field):
    lines = make_metadata("1.2.3", "# Joulemap\n", ["LICENSE"]).split("\n")
    incomplete = "\n".join(line for line in lines if not line.startswith(field)).encode()
    assert f"METADATA has no {field}" in check(write_wheel(tmp_path, **{f"{INFO_FOLDER}/METADATA": incomplete})).stderr


def test_wheels_with_different_files_are_refused(tmp_path):
    (tmp_path / "second").mkdir()
    larger_wheel = write_wheel(tmp_path / "second", **{"joulemap/extra.py": b""})
    assert "only one of the wheels contains joulemap/extra.py" in check(write_wheel(tmp_path), larger_wheel).stderr


def test_relative_links_become_text_and_pictures_are_left_out():
    text = "# A\n\n![a picture](docs/a.svg)\n\nSee [the page](docs/a.md#b), [a site](https://example.org) and [below](#c).\n"
    assert make_description(text, None) == "# A\n\nSee the page, [a site](https://example.org) and [below](#c).\n"


def test_relative_links_lead_to_the_source_where_its_address_is_known():
    assert make_description("[a](docs/a.md)", "https://example.org/tree/") == "[a](https://example.org/tree/docs/a.md)"
