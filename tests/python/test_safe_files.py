"""The Python package overwrites nothing: recordings stay, results appear complete, one recorder writes to a file."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from small_disk import fill, small_disk  # noqa: E402

EXAMPLE_RECORDING = ROOT / "tests" / "data" / "recordings" / "v1.2.joule"

REFUSED_PROGRAM = """
from joulemap._recorder import Recorder
first = Recorder.begin(os.environ["RUN"], trace="off")
refused = []
for name in (os.environ["RUN"], os.environ["LINK"]):
    try:
        Recorder.begin(name, trace="off")
        refused.append("it began")
    except jm.JoulemapError as error:
        refused.append(str(error))
summary = first.end()
print(json.dumps([first._process is None, refused, summary["file_bytes"]]))
"""


def test_a_file_that_is_being_recorded_is_refused_with_its_process(python, tmp_path):
    (tmp_path / "link.joule").symlink_to("run.joule")
    _, refusal_reasons, size = python(
        REFUSED_PROGRAM, RUN=str(tmp_path / "run.joule"), LINK=str(tmp_path / "link.joule")
    )
    assert all("being recorded by process" in reason for reason in refusal_reasons), refusal_reasons
    assert size > 0 and (tmp_path / "run.joule").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.joule", "run.joule"]


WRITTEN_PROGRAM = """
run = jm.load(os.environ["RUN"])
try:
    run.ledger("domain").to_csv(os.environ["OUT"])
    print(json.dumps("written"))
except (jm.JoulemapError, OSError) as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.parametrize("name", ["run.joule", "link", "hard"])
def test_a_recording_is_not_overwritten_by_a_table_of_it(python, tmp_path, name):
    file = tmp_path / "run.joule"
    shutil.copy(EXAMPLE_RECORDING, file)
    (tmp_path / "link").symlink_to(file)
    (tmp_path / "hard").hardlink_to(file)
    assert "is a recording" in python(WRITTEN_PROGRAM, RUN=str(file), OUT=str(tmp_path / name))
    assert file.read_bytes() == EXAMPLE_RECORDING.read_bytes()


def test_a_full_disk_leaves_the_older_table(python, tmp_path):
    with small_disk(tmp_path / "disk", kilobytes=16) as disk:
        older_table_path = disk / "table.csv"
        older_table_path.write_text("older")
        older_table_path.chmod(0o640)
        fill(disk)
        assert "No space left" in python(WRITTEN_PROGRAM, RUN=str(EXAMPLE_RECORDING), OUT=str(older_table_path))
        assert older_table_path.read_text() == "older" and len(list(disk.iterdir())) == 2
        (disk / "filler").unlink()
        assert python(WRITTEN_PROGRAM, RUN=str(EXAMPLE_RECORDING), OUT=str(older_table_path)) == "written"
        assert older_table_path.stat().st_mode & 0o777 == 0o640 and "," in older_table_path.read_text()
    assert python(WRITTEN_PROGRAM, RUN=str(EXAMPLE_RECORDING), OUT="/dev/null") == "written"


CELLS_PROGRAM = """
from joulemap._output import escape_csv_cell
names = ["=1+2", "@SUM(1)", "-m", "-1.5", "a\\x1b[2J", "\\u202egpj", "plain", 3]
print(json.dumps([escape_csv_cell(name) for name in names]))
"""


def test_cells_are_shown_as_text_and_not_evaluated(python):
    assert python(CELLS_PROGRAM) == ["'=1+2", "'@SUM(1)", "'-m", "-1.5", "a?[2J", "?gpj", "plain", 3]


def test_a_new_table_is_only_for_its_owner(python, tmp_path):
    table = tmp_path / "table.csv"
    assert python(WRITTEN_PROGRAM, RUN=str(EXAMPLE_RECORDING), OUT=str(table)) == "written"
    assert table.stat().st_mode & 0o777 == 0o600
