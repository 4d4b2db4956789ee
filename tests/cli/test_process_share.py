"""joulemap stat attributes CPU time: to the command, its descendants, a watched process, or other processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

from commands import make_busy_command, wait_for


def test_a_process_is_watched_until_it_ends(binaries):
    watched_process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = subprocess.Popen(
        [binaries / "joulemap", "stat", "--json", "-p", str(watched_process.pid)], stdout=subprocess.PIPE, text=True
    )
    wait_for(lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 1)  # the sensor threads have started
    watched_process.communicate(timeout=20)
    out, _ = process.communicate(timeout=20)
    report = json.loads(out)
    assert process.returncode == 0
    assert report["pid"] == watched_process.pid
    assert report["runs"][0]["exit_code"] is None
    assert report["runs"][0]["elapsed_s"] > 0


def test_a_process_that_does_not_exist_is_reported(joulemap):
    outcome = joulemap("stat", "-p", "4194303")
    assert outcome.code == 1
    assert "no process 4194303" in outcome.err
    assert joulemap("stat", "-p", "4194303", "--", "true").code == 1
    assert joulemap("stat", "-p", "0").code == 2


def test_children_and_orphans_of_the_command_are_counted(joulemap, tmp_path):
    burn_program = (
        f"import time, pathlib\nwhile time.process_time() < 0.5: pass\npathlib.Path('{tmp_path}/done').touch()"
    )
    # The orphan outlives the shell that started it; the command itself only waits for the orphan's file.
    script = f'({sys.executable} -c "{burn_program}" &); until [ -e {tmp_path}/done ]; do sleep 0.01; done'
    (run,) = joulemap("stat", "--json", "--", "sh", "-c", script).json["runs"]
    assert run["process_cpu_s"] >= 0.49


def test_a_busy_neighbour_shows_in_the_process_share(joulemap):
    neighbour = subprocess.Popen(make_busy_command(60))
    try:
        (sleeping_run,) = joulemap("stat", "--json", "--", "sleep", "1").json["runs"]
        (busy_run,) = joulemap("stat", "--json", "--", *make_busy_command(1)).json["runs"]
    finally:
        neighbour.kill()
        neighbour.wait()
    assert sleeping_run["process_share"] < 0.1
    assert sleeping_run["process_share"] < busy_run["process_share"] < 0.95


def test_energy_left_from_an_earlier_run_is_not_attributed_to_the_next(joulemap, tmp_path):
    burn_program = (
        "import time, pathlib\nwhile time.process_time() < 0.4: pass\n"
        f"pathlib.Path('{tmp_path}/done').touch()\ntime.sleep(60)"
    )
    script = (
        f"if [ -e {tmp_path}/done ]; then sleep 0.3; else"
        f' ({sys.executable} -c "{burn_program}" > /dev/null 2>&1 & echo $! > {tmp_path}/pid);'
        f" until [ -e {tmp_path}/done ]; do sleep 0.01; done; fi"
    )
    try:
        first_run, second_run = joulemap("stat", "-r", "2", "--json", "--", "sh", "-c", script).json["runs"]
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert first_run["process_cpu_s"] >= 0.39
    assert second_run["process_cpu_s"] < 0.2


def test_without_a_command_there_is_no_share_and_no_exit_code(binaries):
    process = subprocess.Popen([binaries / "joulemap", "stat", "-a", "--json", "-I", "50"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    (run,) = json.loads(process.communicate(timeout=20)[0])["runs"]
    assert run["process_share"] is None and run["process_cpu_s"] is None and run["user_s"] is None
    assert "no_process_share" in {entry["code"] for entry in run["diagnostics"]}
