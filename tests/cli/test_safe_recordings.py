"""A user's recordings and the files beside them survive every failure of a later recording."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import wait_for

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from small_disk import fill, small_disk  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent


# Counters in the other folders stand still, which is a finding of its own once a command has run for long enough.
SYSROOT_WITHOUT_COUNTERS = "no-sensors"
# A recorder that gets no processor for a while reports missing readings, rightly: without sensors there are none.
NO_SENSOR_OPTIONS = ("--sensors", "powercap")


@pytest.fixture
def record(joulemap, sysroots):
    def run(file: object, *command: object, flags: tuple = (), machine: str = "intel-2socket", **options):
        words = ("record", "--sysroot", sysroots / machine, "--trace", "off", *flags, "-o", file, "--")
        return joulemap(*words, *(command or ("true",)), **options)

    return run


@pytest.fixture
def recorder(binaries, sysroots):
    """Recorders that run until the test ends."""
    recorder_processes = []

    def start(file: Path, **options) -> subprocess.Popen:
        words = ["record", "--sysroot", sysroots / "intel-2socket", "--trace", "off", "-o", file, "--", "sleep", "60"]
        command = [str(word) for word in (binaries / "joulemap", *words)]
        process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True, **options)
        recorder_processes.append(process)
        parts = Path(f"{file}.d")
        wait_for(lambda: any(part.stat().st_size > 0 for part in parts.glob("*.joule")))
        return process

    yield start
    for process in recorder_processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_existing_folders_are_not_overwritten_by_record(record, tmp_path):
    file, marker = tmp_path / "conf", tmp_path / "ran"
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "settings").write_text("precious")
    outcome = record(file, "touch", marker)
    assert outcome.code == 2 and "conf.d" in outcome.err and "->" in outcome.err
    (tmp_path / "run.joule").write_text("older")
    (tmp_path / "run.joule.old").mkdir()
    (tmp_path / "run.joule.old" / "notes").write_text("precious")
    outcome = record(tmp_path / "run.joule", "touch", marker)
    assert outcome.code == 2 and "run.joule.old" in outcome.err and "->" in outcome.err
    assert not marker.exists() and (tmp_path / "run.joule").read_text() == "older"
    assert (tmp_path / "conf.d" / "settings").read_text() == "precious"
    assert (tmp_path / "run.joule.old" / "notes").read_text() == "precious"


def test_a_misspelled_command_costs_neither_the_last_recording_nor_the_one_before(record, tmp_path):
    file = tmp_path / "run.joule"
    for _ in range(2):
        assert record(file).code == 0
    initial_contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(initial_contents) == ["run.joule", "run.joule.old"]
    assert record(file, "/no/such/command").code == 127
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == initial_contents


def test_a_second_recorder_of_the_same_file_is_refused_with_the_process_of_the_first(record, recorder, tmp_path):
    file, marker = tmp_path / "tri.joule", tmp_path / "ran"
    first_recorder = recorder(file)
    (tmp_path / "link.joule").symlink_to("tri.joule")
    (tmp_path / "folder").symlink_to(tmp_path)
    for name in (file, tmp_path / "link.joule", tmp_path / "folder" / "tri.joule", "tri.joule", "./tri.joule"):
        outcome = record(name, "touch", marker, cwd=tmp_path)
        assert outcome.code == 2 and f"process {first_recorder.pid}" in outcome.err and "->" in outcome.err, outcome.err
    assert record(f"{file}/", "touch", marker).code == 2
    assert not marker.exists()
    os.kill(first_recorder.pid, signal.SIGTERM)
    first_recorder.wait(timeout=60)
    assert file.exists() and not Path(f"{file}.d").exists()
    assert record(file).code == 0


def test_recorders_that_begin_together_lose_nothing(binaries, sysroots, joulemap, tmp_path):
    file = tmp_path / "run.joule"
    options = [
        "--sysroot",
        sysroots / SYSROOT_WITHOUT_COUNTERS,
        *NO_SENSOR_OPTIONS,
        "--trace",
        "off",
        "--json",
        "-o",
        file,
    ]
    words = ["record", *options, "--", "true"]
    command = [str(word) for word in (binaries / "joulemap", *words)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(6)]
    process_outputs = [(process, *process.communicate(timeout=60)) for process in processes]
    assert {process.returncode for process, _, _ in process_outputs} <= {0, 2}
    recording_summaries = [
        json.loads(out.splitlines()[-1]) for process, out, _ in process_outputs if process.returncode == 0
    ]
    assert recording_summaries and all(summary["file_bytes"] > 0 for summary in recording_summaries)
    assert joulemap("report", file, "--strict").code == 0
    assert {path.name for path in tmp_path.iterdir()} <= {"run.joule", "run.joule.old"}


def test_a_recorder_is_refused_where_flock_is_missing_too(record, recorder, tmp_path):
    source, library = tmp_path / "no_flock.c", tmp_path / "no_flock.so"
    source.write_text(
        "#include <errno.h>\nint flock(int fd, int operation) { (void)fd; (void)operation; errno = ENOLCK; return -1; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    environment = {**os.environ, "LD_PRELOAD": f"{os.environ.get('LD_PRELOAD', '')} {library}".strip()}
    first_recorder = recorder(tmp_path / "run.joule", env=environment)
    outcome = record(tmp_path / "run.joule", env=environment)
    assert outcome.code == 2 and f"process {first_recorder.pid}" in outcome.err, outcome.err


def test_a_disk_that_is_full_from_the_start_is_reported_as_a_loss(record, joulemap, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        file, marker = disk / "run.joule", tmp_path / "ran"
        fill(disk)
        outcome = record(file, "touch", marker)
        assert outcome.code == 0 and marker.exists(), outcome.err
        assert "none could be written" in outcome.err and "No space left" in outcome.err
        summary = record(disk / "b.joule", flags=("--json",)).json
        assert summary["lost_samples"] >= summary["samples"] > 0 and summary["file_bytes"] == 0
        assert record(disk / "c.joule", flags=("--strict",)).code == 3
        assert record(disk / "d.joule", "sh", "-c", "exit 7", flags=("--strict",)).code == 7


def test_strict_fails_only_on_lost_data(record, joulemap, tmp_path):
    file = tmp_path / "run.joule"
    assert record(file, flags=("--strict", *NO_SENSOR_OPTIONS), machine=SYSROOT_WITHOUT_COUNTERS).code == 0
    assert joulemap("report", file, "--strict").code == 0
    intact_recording, damaged_recording = ROOT / "examples" / "resnet50-h200.joule", tmp_path / "damaged.joule"
    assert joulemap("diff", intact_recording, intact_recording, "--by", "domain", "--strict").code == 0
    content = bytearray(intact_recording.read_bytes())
    content[len(content) // 2] ^= 1
    damaged_recording.write_bytes(content)
    assert joulemap("report", damaged_recording).code == 0
    for words in (
        ("report", damaged_recording),
        ("report", damaged_recording, "--json"),
        ("diff", intact_recording, damaged_recording, "--by", "domain"),
    ):
        outcome = joulemap(*words, "--strict")
        assert outcome.code == 3 and "lost or damaged" in outcome.err, words


def test_the_codes_of_lost_data_are_documented():
    source = (ROOT / "src" / "model" / "data_loss.cc").read_text()
    table = (ROOT / "docs" / "reference" / "diagnostics.md").read_text().split("## Exit code 3")[1].split("\n## ")[0]
    codes = re.findall(r'"([a-z_]+)"', source.split("kDataLossCodes = {")[1].split("};")[0])
    rows = "\n".join(line for line in table.splitlines() if line.startswith("| "))
    assert sorted(codes) == sorted(re.findall(r"`([a-z_]+)`", rows)) and len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", ["fifo", "folder", "link", "device"])
def test_foreign_files_in_the_folder_of_parts_are_skipped(record, joulemap, tmp_path, kind):
    file, foreign_file = tmp_path / "run.joule", tmp_path / "run.joule.d" / "odd.joule"
    make = {
        "fifo": f"mkfifo {foreign_file}",
        "folder": f"mkdir {foreign_file}",
        "link": f"ln -s /dev/zero {foreign_file}",
        "device": f"mknod {foreign_file} c 1 5",
    }[kind]
    outcome = record(file, "sh", "-c", make, flags=("--json",))
    if outcome.code != 0:
        pytest.skip(f"{make}: {outcome.err}")
    assert "recording_part_skipped" in {note["code"] for note in outcome.json["diagnostics"]}
    assert outcome.json["file_bytes"] > 0
    assert joulemap("report", file).code == 0


def test_a_domain_that_no_reading_covers_has_no_joules(joulemap, binaries, tmp_path):
    """The estimate is read once a second: a recorder killed earlier has no energy."""
    file = tmp_path / "run.joule"
    command = [str(binaries / "joulemap"), "record", "--sensors", "estimate", "--trace", "off", "-o", str(file)]
    process = subprocess.Popen([*command, "--", "sleep", "60"], start_new_session=True)
    try:
        parts = tmp_path / "run.joule.d"
        wait_for(lambda: any(part.stat().st_size > 0 for part in parts.glob("*.joule")))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    outcome = joulemap("report", file, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["domains"]
    for domain in outcome.json["domains"]:
        assert domain["measured_j"] is None and domain["uncertainty_j"] is None, domain
    assert outcome.json["estimated_j"] is None and outcome.json["diagnostics"]
    assert " 0 J" not in joulemap("report", file).out
