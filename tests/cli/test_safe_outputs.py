"""Results never overwrite their own inputs, nor an older result that they cannot replace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from small_disk import fill, small_disk  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
POWER_CSV = "time_unix_ns,domain,kind,value\n" + "".join(f"170000000{i}000000000,gpu0,power_w,100\n" for i in range(1, 6))


@pytest.fixture
def recording(tmp_path) -> Path:
    """A recording whose parts are not joined yet, as after a crash: the parts are inputs, too."""
    file = tmp_path / "run.joule"
    shutil.copy(ROOT / "tests" / "data" / "recordings" / "v1.2.joule", file)
    (tmp_path / "run.joule.d").mkdir()
    shutil.copy(file, tmp_path / "run.joule.d" / "boot-1-1.joule")
    return file


def read_all_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


READING_COMMANDS = [
    ("report", "{run}", "-o", "{out}"),
    ("report", "{run}", "--json", "-o", "{out}"),
    ("report", "{run}", "--html", "{out}"),
    ("export", "{run}", "--to", "csv", "-o", "{out}"),
    ("export", "{run}", "--to", "sqlite", "-o", "{out}"),
    ("diff", "{run}", "{run}", "--json", "-o", "{out}"),
    ("diff", "{run}", "{run}", "--html", "{out}"),
    ("diff", "{run}", "--baseline", "{run}", "-o", "{out}"),
    ("--replay", "{run}", "stat", "-o", "{out}", "--", "true"),
    ("--replay", "{run}", "record", "-o", "{out}", "--", "true"),
]


@pytest.mark.parametrize("words", READING_COMMANDS, ids=" ".join)
def test_a_recording_is_never_overwritten_by_what_is_made_of_it(joulemap, recording, tmp_path, words):
    (tmp_path / "link").symlink_to("run.joule")
    (tmp_path / "hard").hardlink_to(recording)
    initial_contents = read_all_files(tmp_path)
    for out in (recording, tmp_path / "link", tmp_path / "hard", f"{recording}.d/boot-1-1.joule", f"{recording}.d/new"):
        outcome = joulemap(*(word.format(run=recording, out=out) for word in words))
        assert outcome.code == 2, (out, outcome.err)
        assert "input" in outcome.err and "->" in outcome.err, outcome.err
    assert read_all_files(tmp_path) == initial_contents
    assert (tmp_path / "link").is_symlink()


def test_a_recording_is_not_overwritten_by_a_plot(joulemap, recording, tmp_path):
    (tmp_path / "plot.svg").hardlink_to(recording)
    assert joulemap("report", recording, "--plot", "timeline", "-o", tmp_path / "plot.svg").code == 2
    assert (tmp_path / "plot.svg").read_bytes() == recording.read_bytes()


def test_the_folder_of_parts_is_not_used_for_tensorboard(joulemap, recording, tmp_path):
    initial_contents = read_all_files(tmp_path)
    assert joulemap("export", recording, "--to", "tensorboard", "-o", f"{recording}.d").code == 2
    assert read_all_files(tmp_path) == initial_contents


def test_a_result_replaces_no_other_recording_either(joulemap, recording, tmp_path):
    other_recording = tmp_path / "other.joule"
    shutil.copy(recording, other_recording)
    outcome = joulemap("report", recording, "-o", other_recording)
    assert outcome.code == 2 and "is a recording" in outcome.err
    assert other_recording.read_bytes() == recording.read_bytes()


def test_an_import_overwrites_none_of_its_inputs(joulemap, tmp_path):
    power = tmp_path / "power.csv"
    power.write_text(POWER_CSV)
    (tmp_path / "link").symlink_to(power)
    for out in (power, tmp_path / "link"):
        assert joulemap("import", "csv", power, "-o", out).code == 2
    assert joulemap("import", "csv", power, "--power", power, "-o", power).code == 2
    assert power.read_text() == POWER_CSV
    assert {path.name for path in tmp_path.iterdir()} == {"power.csv", "link"}


def test_a_model_is_not_overwritten_by_its_prediction(joulemap, tmp_path):
    model = tmp_path / "model.onnx"
    shutil.copy(ROOT / "tests" / "data" / "onnx" / "resnet18.onnx", model)
    original_model_bytes = model.read_bytes()
    assert joulemap("predict", model, "-o", model).code == 2
    with model.open("rb") as stdin:
        assert joulemap("predict", "-", "-o", model, stdin=stdin).code == 2
    assert model.read_bytes() == original_model_bytes


def test_tables_of_measurements_are_not_overwritten_by_a_profile(joulemap, tmp_path):
    table = tmp_path / "tables" / "operations.csv"
    table.parent.mkdir()
    table.write_text("kind\n")
    assert joulemap("model", "fit", table.parent, "-o", table).code == 2
    assert joulemap("model", "eval", table.parent, "--predictions", table).code == 2
    assert table.read_text() == "kind\n"


def test_files_of_an_experiment_are_not_overwritten_by_its_analysis(joulemap, tmp_path):
    power, experiment = tmp_path / "run1-a.csv", tmp_path / "exp"
    power.write_text(POWER_CSV)
    import_outcome = joulemap("import", "csv", tmp_path, "--pattern", "run{run}-{variant}.csv", "-o", experiment)
    assert import_outcome.code == 0, import_outcome.err
    initial_contents = read_all_files(experiment)
    for name in [*initial_contents, "rows/new"]:
        for flag in ("-o", "--html"):
            assert joulemap("experiment", "analyze", experiment, flag, experiment / name).code == 2, name
    assert read_all_files(experiment) == initial_contents
    assert joulemap("experiment", "analyze", experiment, "-o", experiment / "analysis.txt").code == 0


def test_a_full_disk_leaves_the_older_result(joulemap, recording, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        older_page = disk / "page.html"
        older_page.write_text("an older page")
        older_page.chmod(0o640)
        fill(disk)
        names = sorted(path.name for path in disk.iterdir())
        for words in (("--html", older_page), ("--json", "-o", older_page)):
            outcome = joulemap("report", recording, *words)
            assert outcome.code == 1 and "No space left" in outcome.err, outcome.err
        assert older_page.read_text() == "an older page"
        assert sorted(path.name for path in disk.iterdir()) == names
        (disk / "filler").unlink()
        assert joulemap("report", recording, "--json", "-o", older_page).code == 0
        assert older_page.read_text().startswith("{") and older_page.stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_mounted_on_its_own_is_written_only_while_it_is_empty(joulemap, recording, tmp_path):
    """Containers mount single files in this way: such a file cannot be replaced by renaming another file over it."""
    mount_source, result = tmp_path / "behind", tmp_path / "result"
    for file in (mount_source, result):
        file.write_text("")
    mount = ["mount", "--bind", str(mount_source), str(result)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        assert joulemap("report", recording, "--json", "-o", result).code == 0
        first_report_text = mount_source.read_text()
        outcome = joulemap("report", recording, "-o", result)
        assert outcome.code == 1 and "->" in outcome.err
        assert first_report_text.startswith("{") and mount_source.read_text() == first_report_text
    finally:
        subprocess.run(["umount", "-l", str(result)], check=False)


def test_streams_and_devices_are_written_directly(joulemap, binaries, recording, tmp_path):
    text = joulemap("report", recording, "--json").out
    assert joulemap("report", recording, "--json", "-o", "/dev/stdout").out == text
    assert joulemap("report", recording, "--json", "-o", "/dev/null").code == 0
    assert joulemap("report", recording, "--json", "-o", "/dev/full").code == 1
    os.mkfifo(tmp_path / "fifo")
    command = [binaries / "joulemap", "report", recording, "--json", "-o", tmp_path / "fifo"]
    with subprocess.Popen(list(map(str, command))) as process:
        assert (tmp_path / "fifo").read_text() == text
    assert process.returncode == 0
    log = tmp_path / "log"
    log.write_text("before\n")
    with log.open("a") as out:
        subprocess.run([*map(str, command[:4]), "-o", "/dev/stdout"], stdout=out, check=True)
    assert log.read_text() == "before\n" + text


def test_a_link_stays_and_its_target_is_replaced(joulemap, recording, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "result").symlink_to("elsewhere/result")
    assert joulemap("report", recording, "-o", tmp_path / "result").code == 0
    assert (tmp_path / "result").is_symlink() and (tmp_path / "elsewhere" / "result").stat().st_size > 0
