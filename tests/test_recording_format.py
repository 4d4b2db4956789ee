"""docs/reference/recording-format.md suffices to read a recording: a reader made from it agrees with Joulemap's."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORDINGS = sorted((ROOT / "tests" / "data" / "recordings").glob("*.joule"))
sys.path.insert(0, str(ROOT / "tests" / "support"))

import read_joule  # noqa: E402


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name)
def test_a_reader_made_from_the_page_reads_every_version(recording):
    expected = recording.with_suffix(".txt").read_text().splitlines()
    assert read_joule.dump(recording.read_bytes()) == expected


def test_the_documented_reader_skips_damage():
    data = bytearray(RECORDINGS[0].read_bytes())
    undamaged_lines = read_joule.dump(bytes(data))
    data[data.rfind(read_joule.MAGIC) + 30] ^= 1  # in the payload of the last chunk
    remaining = read_joule.dump(bytes(data))
    assert len(remaining) < len(undamaged_lines) and set(remaining) <= set(undamaged_lines)


def test_the_bytes_shown_on_the_page_are_those_of_the_golden_file():
    page = (ROOT / "docs" / "reference" / "recording-format.md").read_text()
    documented_bytes = bytes.fromhex("".join(re.findall(r"^    [0-9a-f]{8} ((?: [0-9a-f]{2})+)", page, re.MULTILINE)))
    assert len(documented_bytes) >= 24
    assert RECORDINGS[0].read_bytes().startswith(documented_bytes)


def test_every_diagnostic_of_the_page_is_one_the_program_makes():
    page = (ROOT / "docs" / "reference" / "recording-format.md").read_text()
    codes = set(re.findall(r"^\| `([a-z_]+)`", page.split("## Damage")[1].split("##")[0], re.MULTILINE))
    sources = "\n".join(path.read_text() for path in (ROOT / "src" / "recording").glob("*.cc"))
    assert codes
    for code in codes:
        assert f'"{code}"' in sources, code
