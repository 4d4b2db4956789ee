"""joulemap record and report on the simulated machine: recordings match the truth under every fault."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import make_busy_command, wait_for
from truth import TruthLog


@pytest.fixture
def machine(binaries: Path, memory_directory: Path):
    """Runs command lines on a simulated machine; JOULEMAP in a command line is replaced by the program."""

    class Machine:
        root = memory_directory / "machine"
        joulemap = str(binaries / "joulemap")
        runs = 0

        def command(self, *words: object, flags: tuple = ()) -> list[str]:
            simulator = [binaries / "joulemap-simulated-machine", "--root", self.root, *flags, "--"]
            return [str(word) for word in [*simulator, *words]]

        def record(self, file: Path, *command: object, flags: tuple = (), record_flags: tuple = (), **options):
            self.runs += 1
            self.root = memory_directory / f"machine-{self.runs}"
            words = [self.joulemap, "record", "--sysroot", self.root, *record_flags, "-o", file, "--", *command]
            return subprocess.run(
                self.command(*words, flags=flags), capture_output=True, text=True, timeout=120, **options
            )

        def truth(self) -> TruthLog:
            return TruthLog(str(self.root / "truth.csv"))

    return Machine()


@pytest.fixture
def report(joulemap):
    def run(*files: object) -> dict:
        outcome = joulemap("report", "--json", *files)
        assert outcome.code == 0, outcome.err
        return outcome.json

    return run


def find_domain(report: dict, name: str) -> dict:
    return next(entry for entry in report["domains"] if entry["name"] == name)


def codes(report: dict) -> set[str]:
    return {entry["code"] for entry in report["diagnostics"]}


def test_a_recording_contains_the_energy_of_the_command(machine, report, tmp_path):
    file = tmp_path / "run.joule"
    process = machine.record(file, *make_busy_command(1.5))
    assert process.returncode == 0, process.stderr
    assert "measured" in process.stderr and str(file) in process.stderr
    result = report(file)
    start_ns = result["start_monotonic_ns"]
    end_ns = start_ns + round(result["elapsed_s"] * 1e9)
    for name in ("package-0", "dram-0"):
        true_energy_j = machine.truth().joules(name, start_ns, end_ns)
        assert find_domain(result, name)["measured_j"] == pytest.approx(true_energy_j, rel=0.01)
    assert result["complete"] and result["exit_code"] == 0
    assert result["attributed_j"] + result["idle_j"] + result["unattributed_j"] == pytest.approx(
        result["measured_j"], rel=1e-3
    )
    assert sum(row["energy_j"] for row in result["rows"]) == pytest.approx(result["attributed_j"])
    assert not (tmp_path / "run.joule.d").exists()


def test_power_over_time_adds_up_to_the_energy(machine, report, tmp_path):
    machine.record(tmp_path / "run.joule", *make_busy_command(1.0))
    result = report(tmp_path / "run.joule")
    for series in result["power"]["domains"]:
        joules = sum(watts * result["power"]["slice_s"] for watts in series["watts"] if watts is not None)
        assert joules == pytest.approx(find_domain(result, series["name"])["measured_j"], rel=0.05)


def test_the_text_of_a_report_has_energy_power_and_time(machine, joulemap, tmp_path):
    machine.record(tmp_path / "run.joule", *make_busy_command(0.5))
    text = joulemap("report", tmp_path / "run.joule").out
    assert "package-0" in text and "Power over" in text and "s elapsed" in text and "total measured" in text
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_the_exit_code_is_the_commands(machine, report, tmp_path, script, code):
    process = machine.record(tmp_path / "run.joule", "sh", "-c", script)
    assert process.returncode == code
    result = report(tmp_path / "run.joule")
    assert result["exit_code"] == code and result["complete"]


def test_a_command_that_cannot_be_started_leaves_nothing_behind(joulemap, tmp_path):
    file = tmp_path / "run.joule"
    file.write_text("an older recording")
    assert joulemap("record", "-o", file, "--", "/no/such/command").code == 127
    assert joulemap("record", "-o", file, "--", str(tmp_path)).code == 126
    assert [path.name for path in tmp_path.iterdir()] == ["run.joule"]
    assert file.read_text() == "an older recording"


def test_an_older_recording_is_kept(machine, report, tmp_path):
    file = tmp_path / "run.joule"
    machine.record(file, "sh", "-c", "exit 1")
    machine.record(file, "sh", "-c", "exit 2")
    assert report(file)["exit_code"] == 2
    assert report(tmp_path / "run.joule.old")["exit_code"] == 1


def test_wrong_usage_is_reported_before_anything_runs(joulemap, tmp_path):
    marker = tmp_path / "ran"
    touch = ["touch", str(marker)]
    assert joulemap("record").code == 2
    assert joulemap("record", "--period", "0", "--", *touch).code == 2
    assert joulemap("record", "--no-such-option", "--", *touch).code == 2
    assert joulemap("record", "-o", tmp_path, "--", *touch).code == 2
    assert joulemap("record", "-o", tmp_path / "missing" / "run.joule", "--", *touch).code == 1
    assert not marker.exists()


def test_the_recorder_killed_at_any_moment_keeps_what_it_has_written(machine, report, tmp_path):
    """The recorder writes once a second, so at most one second is lost. Delays on a busy machine are not tested."""
    file = tmp_path / "run.joule"
    record = [machine.joulemap, "record", "--sysroot", machine.root, "-o", file, "--", "sleep", "60"]
    simulator = subprocess.Popen(machine.command(*record), start_new_session=True)
    try:
        parts = tmp_path / "run.joule.d"
        wait_for(lambda: list(parts.glob("*.joule")))
        part = next(parts.glob("*.joule"))
        size = part.stat().st_size
        wait_for(
            lambda: part.stat().st_size > size + 2000 and find_domain(report(parts), "package-0")["measured_j"] > 0
        )
        recorder = int(part.name.split("-")[-2])
        os.kill(recorder, signal.SIGKILL)
        simulator.wait(timeout=60)
    finally:
        os.killpg(simulator.pid, signal.SIGKILL)
    result = report(file)  # the file does not exist: report finds its parts
    assert not result["complete"] and "cut_off" in codes(result)
    # Everything read before the last write is present.
    written_s = (part.stat().st_mtime_ns - result["start_unix_ns"]) * 1e-9
    assert written_s - 0.5 < result["elapsed_s"] < written_s + 0.1
    assert find_domain(result, "package-0")["measured_j"] > 0
    assert report(parts)["elapsed_s"] == result["elapsed_s"]


def test_a_summary_and_its_report_are_the_same_to_the_last_bit(machine, report, tmp_path):
    process = machine.record(tmp_path / "run.joule", *make_busy_command(1.0), record_flags=("--json",))
    summary = json.loads(process.stdout.splitlines()[-1])
    result = report(tmp_path / "run.joule")
    assert result["measured_j"] == summary["measured_j"]


def test_a_recorder_that_was_suspended_reports_it(machine, report, tmp_path):
    file = tmp_path / "run.joule"
    record = [machine.joulemap, "record", "--sysroot", machine.root, "-o", file, "--", "sleep", "9"]
    simulator = subprocess.Popen(machine.command(*record), start_new_session=True, stderr=subprocess.PIPE, text=True)
    try:
        parts = tmp_path / "run.joule.d"
        wait_for(lambda: list(parts.glob("*.joule")) and next(parts.glob("*.joule")).stat().st_size > 2000)
        recorder = int(next(parts.glob("*.joule")).name.split("-")[-2])
        os.kill(recorder, signal.SIGSTOP)
        time.sleep(5)
        os.kill(recorder, signal.SIGCONT)
        _, summary = simulator.communicate(timeout=60)
    except BaseException:
        os.killpg(simulator.pid, signal.SIGKILL)
        raise
    result = report(file)
    assert "readings_paused" in codes(result)
    assert "was not read for" in summary
    start_ns = result["start_monotonic_ns"]
    true_energy_j = machine.truth().joules("package-0", start_ns, start_ns + round(result["elapsed_s"] * 1e9))
    assert find_domain(result, "package-0")["measured_j"] == pytest.approx(true_energy_j, rel=0.02), (
        "the counter went on"
    )


def test_a_full_disk_loses_only_what_does_not_fit_and_the_command_continues(machine, report, tmp_path):
    """The file cannot exceed 6 kB: report reads what was written before and lists what is missing."""
    file = tmp_path / "run.joule"
    marker = tmp_path / "ran"

    script = f"sleep 6; touch {marker}"
    record = [
        machine.joulemap,
        "record",
        "--sysroot",
        machine.root,
        "--period",
        "5",
        "-o",
        file,
        "--",
        "sh",
        "-c",
        script,
    ]
    # The limit applies to the recorder only: the simulator must write its truth file.
    limited = [sys.executable, "-c", LIMITED_PROGRAM, *map(str, record)]
    process = subprocess.run(machine.command(*limited), capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    assert marker.exists()
    assert "write" in process.stderr or "File too large" in process.stderr
    result = report(file)
    assert find_domain(result, "package-0")["measured_j"] > 0
    assert not result["complete"] and codes(result)


LIMITED_PROGRAM = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_losing_permissions_during_recording_keeps_read_data(machine, report, tmp_path):
    """The recording's folder becomes read-only during the run: the parts stay in place and report reads them."""
    file = tmp_path / "run.joule"
    permission_loss_script = (
        f"sleep 1; chmod 000 {machine.root}/sys/class/powercap/intel-rapl:0/energy_uj; chmod 500 {tmp_path}; sleep 0.5"
    )
    try:
        process = machine.record(file, "sh", "-c", permission_loss_script)
    finally:
        tmp_path.chmod(0o700)
    assert process.returncode == 0
    assert find_domain(report(file), "package-0")["measured_j"] > 0


def test_other_files_are_refused_with_a_reason(joulemap, tmp_path):
    empty_file = tmp_path / "empty.joule"
    empty_file.write_bytes(b"")
    text = tmp_path / "text.joule"
    text.write_text("This is no recording.\n" * 100)
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "missing.joule", empty_file, text, folder):
        outcome = joulemap("report", path)
        assert outcome.code == 1, path
        assert str(path) in outcome.err and "->" in outcome.err, outcome.err
        assert not outcome.out
    assert joulemap("report").code == 2


def test_recordings_of_different_runs_are_not_added_up(machine, joulemap, tmp_path):
    machine.record(tmp_path / "a.joule", "true")
    machine.record(tmp_path / "b.joule", "true")
    outcome = joulemap("report", tmp_path / "a.joule", tmp_path / "b.joule")
    assert outcome.code == 2
    assert "different" in outcome.err
    assert joulemap("report", tmp_path / "a.joule", tmp_path / "a.joule").code == 0


def test_a_recording_can_be_replayed_on_a_machine_without_its_sensors(machine, joulemap, report, tmp_path):
    constant = ("--idle", 60, "--max", 60, "--noise", 0)  # whatever else runs: the replay plays a part of the recording
    machine.record(tmp_path / "run.joule", *make_busy_command(2.0), flags=constant)
    result = report(tmp_path / "run.joule")
    recorded_domain = find_domain(result, "package-0")
    start_ns = result["start_monotonic_ns"]
    true_energy_j = machine.truth().joules("package-0", start_ns, start_ns + round(result["elapsed_s"] * 1e9))
    assert recorded_domain["measured_j"] == pytest.approx(true_energy_j, rel=0.01, abs=recorded_domain["uncertainty_j"])
    outcome = joulemap("--replay", tmp_path / "run.joule", "stat", "--json", "--", "sleep", "1")
    assert outcome.code == 0, outcome.err
    replayed_domain = next(entry for entry in outcome.json["runs"][0]["domains"] if entry["name"] == "package-0")
    assert replayed_domain["provenance"] == "measured"
    # The replay plays one second of the recording. Their powers differ if the simulated machine got no processor for a
    # while, which the truth contains.
    spans = [f"{tenth / 10},{tenth / 10 + 1}" for tenth in range(11)]
    reports = [joulemap("report", "--json", "--time", span, tmp_path / "run.joule").json for span in spans]
    mean_powers_w = [find_domain(interval_report, "package-0")["measured_j"] for interval_report in reports]
    uncertainty_w = (
        recorded_domain["uncertainty_j"] / recorded_domain["measured_j"] * recorded_domain["mean_w"] + 0.02 * 60
    )
    assert min(mean_powers_w) - uncertainty_w <= replayed_domain["mean_w"] <= max(mean_powers_w) + uncertainty_w
    assert joulemap("--replay", tmp_path / "missing", "stat", "--", "true").code == 1


def test_a_period_can_be_chosen(joulemap, tmp_path):
    """Of an estimate: the edges of a counter's window are sampled closely, for longer on a busy machine."""
    rates = []
    for period_ms in ("1000", "5"):
        outcome = joulemap("record", "--json", "--sensors", "estimate", "--period", period_ms,
                           "-o", tmp_path / f"{period_ms}.joule", "--", "sleep", "1")  # fmt: skip
        rates.append(outcome.json["samples"] / outcome.json["elapsed_s"])
    assert rates[1] > 2 * rates[0]


def test_json_of_record_is_its_last_line(machine, tmp_path):
    process = machine.record(tmp_path / "run.joule", "echo", "out", record_flags=("--json",))
    result = json.loads(process.stdout.splitlines()[-1])
    assert result["schema"] == "joulemap.record/1" and result["file"] == str(tmp_path / "run.joule")
    assert result["file_bytes"] == (tmp_path / "run.joule").stat().st_size
    assert result["overhead"]["sensors"][0]["late_us"]["max"] >= 0
