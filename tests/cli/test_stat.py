"""joulemap stat around real commands: exit codes, signals, output, and its JSON contract."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time

import pytest
from commands import wait_for


def test_stat_json_has_the_documented_keys(joulemap):
    report = joulemap("stat", "--json", "--", "sleep", "0.2").json
    assert report["schema"] == "joulemap.stat/1"
    assert report["interval"] == 0.95
    (run,) = report["runs"]
    assert run["elapsed_s"] >= 0.2
    assert run["exit_code"] == 0
    assert "process_share" in run
    for domain in run["domains"]:
        for key in ("name", "joules", "uncertainty_j", "mean_w", "provenance", "counted"):
            assert key in domain
        assert (domain["joules"] is None) == (domain["provenance"] is None)
        assert domain["joules"] is not None or domain["reason"]
    assert [row["name"] for row in report["summary"]] == [domain["name"] for domain in run["domains"]]
    for row in report["summary"]:
        assert row["low_j"] <= row["mean_j"] <= row["high_j"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "exit 77"], 77),
        (["sh", "-c", "kill -KILL $$"], 128 + 9),
        (["sh", "-c", "kill -SEGV $$"], 128 + 11),
        (["joulemap-no-such-command"], 127),
        (["/etc/passwd"], 126),
        (["/"], 126),
        (["-x"], 127),
    ],
)
def test_the_exit_code_of_the_command_is_passed_on(joulemap, command, code):
    assert joulemap("stat", "--", *command).code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ["stat"],
        ["stat", "--"],
        ["stat", "--no-such-option", "--", "true"],
        ["stat", "-r", "0", "--", "true"],
        ["stat", "-r", "many", "--", "true"],
        ["stat", "-I", "-5", "--", "true"],
        ["stat", "-a", "-p", "1", "--", "true"],
        ["stat", "--sensors", "rapl", "--", "true"],
        ["stat", "-r", "3", "-a"],
    ],
)
def test_wrong_usage_exits_with_2_and_prints_the_correct_usage(joulemap, arguments):
    outcome = joulemap(*arguments)
    assert outcome.code == 2
    assert "joulemap: " in outcome.err


def test_an_error_names_the_command_and_a_remedy(joulemap):
    outcome = joulemap("stat", "--", "joulemap-no-such-command")
    assert "joulemap-no-such-command" in outcome.err and "->" in outcome.err


def test_the_table_goes_to_stderr_and_the_command_keeps_stdout(joulemap):
    outcome = joulemap("stat", "--", "sh", "-c", "echo mine; echo also mine >&2")
    assert outcome.out == "mine\n"
    assert "also mine" in outcome.err
    assert "Energy of 'sh -c" in outcome.err


def test_the_json_is_the_last_line_even_after_an_unfinished_one(joulemap):
    outcome = joulemap("stat", "--json", "--", "printf", "no line end")
    assert outcome.out.startswith("no line end\n")
    assert outcome.json["runs"][0]["exit_code"] == 0
    assert json.loads(joulemap("stat", "--json", "--", "true").out)["schema"] == "joulemap.stat/1"


def test_the_result_goes_to_a_file_when_asked(joulemap, tmp_path):
    target = tmp_path / "stat.json"
    outcome = joulemap("stat", "--json", "-o", target, "--", "echo", "x")
    assert outcome.out == "x\n"
    assert json.loads(target.read_text())["schema"] == "joulemap.stat/1"
    joulemap("stat", "-o", tmp_path / "stat.txt", "--", "true")
    assert "Energy of 'true'" in (tmp_path / "stat.txt").read_text()


def test_an_unwritable_file_is_reported_before_the_command_runs(joulemap, tmp_path):
    outcome = joulemap("stat", "--json", "-o", tmp_path / "no" / "folder", "--", "touch", tmp_path / "ran")
    assert outcome.code == 1
    assert "No such file" in outcome.err
    assert not (tmp_path / "ran").exists()


def test_a_result_that_cannot_be_written_in_the_end_goes_to_stderr(joulemap):
    outcome = joulemap("stat", "--json", "-o", "/dev/full", "--", "sh", "-c", "exit 5")
    assert outcome.code == 5
    assert "No space left" in outcome.err and "joulemap.stat/1" in outcome.err


def test_the_file_of_a_result_keeps_its_permissions_and_loses_its_old_content(joulemap, tmp_path):
    target = tmp_path / "stat.json"
    target.write_text("x" * 100_000)
    target.chmod(0o600)
    joulemap("stat", "--json", "-o", target, "--", "true")
    assert json.loads(target.read_text())["schema"] == "joulemap.stat/1"
    assert target.stat().st_mode & 0o777 == 0o600


def test_command_arguments_are_not_parsed_as_options(joulemap):
    assert joulemap("stat", "sh", "-c", "exit $#", "--", "--json", "-r", "2").code == 3
    assert joulemap("stat", "--", "sh", "-c", "exit $#", "--json", "--", "-a").code == 2
    assert joulemap("stat", "sh", "-c", "exit 6", "--").code == 6


def test_repetitions_give_a_mean_and_an_interval(joulemap):
    report = joulemap("stat", "-r", "4", "--json", "--", "sleep", "0.05").json
    assert len(report["runs"]) == 4
    for row in report["summary"]:
        energies = [
            domain["joules"] for run in report["runs"] for domain in run["domains"] if domain["name"] == row["name"]
        ]
        assert row["mean_j"] == pytest.approx(sum(energies) / 4)
        assert row["low_j"] < row["mean_j"] < row["high_j"]


def test_the_first_failure_of_several_runs_is_the_exit_code(joulemap, tmp_path):
    script = f"echo x >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) -ne 2 ]"
    outcome = joulemap("stat", "-r", "3", "--json", "--", "sh", "-c", script)
    assert outcome.code == 1
    assert [run["exit_code"] for run in outcome.json["runs"]] == [0, 1, 0]


def test_intervals_are_printed_as_they_pass_and_add_up(joulemap):
    outcome = joulemap("stat", "-I", "100", "--json", "--", "sleep", "0.55")
    (run,) = outcome.json["runs"]
    intervals = run["intervals"]
    assert [entry["from_s"] for entry in intervals] == [0, *(entry["to_s"] for entry in intervals[:-1])]
    # On a busy machine one may end late. The next one then ends on time and is shorter.
    assert (
        all(entry["to_s"] > entry["from_s"] for entry in intervals) and 1 < len(intervals) <= 1 + run["elapsed_s"] / 0.1
    )
    assert intervals[-1]["to_s"] == pytest.approx(run["elapsed_s"])
    for domain in run["domains"]:
        parts = [
            part["joules"] for entry in run["intervals"] for part in entry["domains"] if part["name"] == domain["name"]
        ]
        assert sum(parts) == pytest.approx(domain["joules"], rel=0.02, abs=0.01)
    assert "seconds" in outcome.err and "watts" in outcome.err


def test_without_any_sensor_the_command_still_runs(joulemap, tmp_path):
    outcome = joulemap("stat", "--json", "--sysroot", tmp_path, "--", "sh", "-c", "echo ran; exit 3")
    assert outcome.code == 3
    assert "ran" in outcome.out
    assert outcome.json["runs"][0]["domains"] == []
    assert outcome.json["runs"][0]["measured_j"] is None
    assert "no_sensor" in {diagnostic["code"] for diagnostic in outcome.json["diagnostics"]}


def test_stat_of_the_machine_without_sensors_exits_with_77(joulemap, tmp_path):
    outcome = joulemap("stat", "-a", "--sysroot", tmp_path)
    assert outcome.code == 77
    assert "joulemap doctor" in outcome.err


def test_a_named_sensor_that_is_absent_is_reported(joulemap, sysroots):
    outcome = joulemap("stat", "--json", "--sensors", "powercap", "--sysroot", sysroots / "no-sensors", "--", "true")
    assert outcome.code == 0
    assert "sensor_absent" in {diagnostic["code"] for diagnostic in outcome.json["diagnostics"]}


@pytest.mark.parametrize(
    "machine", ["frozen-counter", "intel-2socket", "psys-laptop", "mmio-duplicate", "garbage", "wrap"]
)
def test_a_counter_that_does_not_update_is_never_zero_energy(joulemap, sysroots, machine):
    flags = ["--json", "--sensors", "powercap", "--sysroot", sysroots / machine]
    report = joulemap("stat", *flags, "--", "sleep", "0.3").json
    assert report["runs"][0]["measured_j"] is None
    for domain in report["runs"][0]["domains"]:
        assert domain["joules"] is None and domain["reason"] in {"frozen", "garbage"}
    codes = {entry["code"] for entry in report["runs"][0]["diagnostics"] + report["diagnostics"]}
    assert codes & {"counter_frozen", "sensor_absent"}


def test_signals_are_passed_on_to_the_command(binaries, tmp_path):
    ready_marker = tmp_path / "ready"
    script = f"trap 'exit 42' TERM; touch {ready_marker}; while :; do sleep 0.01; done"
    process = subprocess.Popen(
        [binaries / "joulemap", "stat", "--json", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True
    )
    wait_for(ready_marker.exists)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 42
    assert json.loads(out)["runs"][0]["exit_code"] == 42


def test_an_interrupt_ends_the_repetitions_but_not_the_report(binaries, tmp_path):
    ready_marker = tmp_path / "ready"
    script = f"touch {ready_marker}; exec sleep 30"
    process = subprocess.Popen(
        [binaries / "joulemap", "stat", "-r", "5", "--json", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(ready_marker.exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT
    report = json.loads(out)
    assert len(report["runs"]) == 1
    assert report["runs"][0]["signal"] == signal.SIGINT
    assert "interrupted" in {diagnostic["code"] for diagnostic in report["diagnostics"]}


def test_ctrl_c_at_a_terminal_reaches_the_command_once(binaries, tmp_path):
    ready_marker, caught, report = tmp_path / "ready", tmp_path / "caught", tmp_path / "report"
    script = (
        f"trap 'echo x >> {caught}' INT; touch {ready_marker}; "
        f"until [ -e {caught} ]; do sleep 0.01; done; sleep 0.1; exit 9"
    )
    try:
        pid, terminal = pty.fork()
    except OSError as error:
        pytest.skip(f"no terminal to be had: {error}")
    if pid == 0:
        os.execv(binaries / "joulemap", ["joulemap", "stat", "--json", "-o", str(report), "--", "sh", "-c", script])
    wait_for(ready_marker.exists)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 9
    assert caught.read_text() == "x\n"
    assert json.loads(report.read_text())["runs"][0]["exit_code"] == 9


def test_the_machine_is_measured_until_an_interrupt(binaries):
    process = subprocess.Popen(
        [binaries / "joulemap", "stat", "-a", "--json", "-I", "50"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr.readline()  # the first interval has passed: stat is measuring
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert json.loads(out)["runs"][0]["exit_code"] is None


def test_a_delay_leaves_out_the_beginning(joulemap):
    before_ns = time.time_ns()
    (run,) = joulemap("stat", "--json", "-D", "300", "--", "sleep", "0.6").json["runs"]
    assert run["start_unix_ns"] >= before_ns + 300_000_000
    assert run["elapsed_s"] > 0
    (run,) = joulemap("stat", "--json", "-D", "5000", "--", "true").json["runs"]
    assert run["domains"] == []
    assert "ended_before_delay" in {diagnostic["code"] for diagnostic in run["diagnostics"]}


def test_the_command_gets_the_signals_as_we_got_them(joulemap):
    script = "sleep 0.03; grep SigIgn /proc/self/status"
    out = joulemap("stat", "-r", "2", "-I", "5", "--", "sh", "-c", script).out
    # The C library reserves signals 32 and 33: it handles them from the first thread on, even if they were ignored.
    libc_signal_mask = 0b11 << 31
    ignored_signal_masks = [
        int(line.split()[1], 16) & ~libc_signal_mask for line in out.splitlines() if line.startswith("SigIgn")
    ]
    assert len(ignored_signal_masks) == 2 and ignored_signal_masks[0] == ignored_signal_masks[1]


def test_measurement_overhead_is_part_of_the_result(joulemap):
    (run,) = joulemap("stat", "--json", "--", "sleep", "0.3").json["runs"]
    assert 0 < run["overhead"]["cpu_s"] < 0.3
    assert run["overhead"]["share"] == pytest.approx(run["overhead"]["cpu_s"] / run["elapsed_s"])


def test_a_closed_stdout_does_not_kill_the_tool(binaries):
    reader, writer = os.pipe()
    os.close(reader)
    command = [binaries / "joulemap", "stat", "--json", "--", "sh", "-c", "exit 4"]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert process.returncode == 4
    assert "Broken pipe" in process.stderr
