"""joulemap experiment plan, run, resume, run-row and status: a folder can be resumed whatever ended its runner."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import wait_for

PLAN_TOML = """
name = "two"
command = {command}
repetitions = {repetitions}
baseline_s = {baseline_s}
warm_up_runs = {warm_up_runs}
trace = "off"
{more}
[factors]
variant = ["a", "b'; touch injected; '"]
{tables}
"""


@pytest.fixture
def plan(tmp_path):
    """Writes experiment.toml; `command` is a list of Python strings."""

    def write(command, repetitions=2, baseline_s=0, warm_up_runs=0, more="", tables="", require="[]") -> Path:
        path = tmp_path / "experiment.toml"
        text = PLAN_TOML.format(
            command=json.dumps(command),
            repetitions=repetitions,
            baseline_s=baseline_s,
            warm_up_runs=warm_up_runs,
            more=more,
            tables=tables,
        )
        if "[checks]" not in text:
            text += f"[checks]\nrequire = {require}\n"
        path.write_text(text)
        return path

    return write


def table(folder: Path) -> list[dict]:
    with (folder / "run_table.csv").open() as file:
        return list(csv.DictReader(file))


def row(folder: Path, number: int, attempt: int = 1, kind: str = "rows") -> dict:
    return json.loads((folder / kind / f"{number:05}" / f"attempt-{attempt}" / "row.json").read_text())


def files(folder: Path, without: str = "") -> dict[str, bytes]:
    """Contents of the files of all attempts, except those of row `without`, which may still change."""
    attempts = [
        attempt_folder for attempt_folder in folder.glob("*/*/attempt-*") if attempt_folder.parent.name != without
    ]
    attempt_files = [path for attempt in attempts for path in attempt.rglob("*") if path.is_file()]
    return {str(path): path.read_bytes() for path in attempt_files}


def test_every_row_is_run_measured_and_kept(joulemap, plan, tmp_path):
    metrics = "[metrics.length]\nfrom = 'output'\npattern = 'length=([0-9]+)'\n[metrics.seed]\nkey = 'deep.seed'\n"
    program = (
        "import json, os, sys; print(f'length={len(sys.argv[1])}');"
        "json.dump({'deep': {'seed': int(sys.argv[2])}}, open(os.environ['JOULEMAP_ROW_FOLDER'] + '/metrics.json', 'w'))"
    )
    file = plan([sys.executable, "-c", program, "{variant}", "{seed}"], warm_up_runs=1, tables=metrics)
    folder = tmp_path / "exp"
    outcome = joulemap("experiment", "run", file, "-o", folder, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.json["counts"] == {"todo": 0, "running": 0, "done": 4, "failed": 0}
    rows = table(folder)
    assert [entry["__done"] for entry in rows] == ["DONE"] * 4
    assert [entry["block"] for entry in rows] == ["0", "0", "1", "1"]
    seeds = set()
    for number, entry in enumerate(rows):
        result = row(folder, number)
        assert result["levels"]["variant"] == entry["variant"]
        assert result["metrics"]["length"] == len(entry["variant"])
        assert result["energy_j"] > 0 and result["elapsed_s"] > 0 and result["exit_code"] == 0
        seeds.add(result["metrics"]["seed"])
    assert len(seeds) == 4
    assert (folder / "warm-up" / "00000" / "attempt-1" / "row.json").exists()
    assert joulemap("report", "--json", folder / "rows" / "00000" / "attempt-1" / "run.joule").code == 0


def test_placeholders_reach_a_shell_as_they_are(joulemap, plan, tmp_path):
    file = plan("printf '%s' {variant}", repetitions=1)
    folder = tmp_path / "exp"
    assert joulemap("experiment", "run", file, "-o", folder).code == 0
    outputs = {(folder / "rows" / f"{n:05}" / "attempt-1" / "stdout.txt").read_text() for n in (0, 1)}
    assert outputs == {"a", "b'; touch injected; '"}
    assert not (tmp_path / "injected").exists()


def test_a_row_that_fails_is_kept_and_run_again(joulemap, plan, tmp_path):
    # Row 1 fails until the file `good` exists.
    file = plan(["sh", "-c", '[ "$JOULEMAP_ROW" != 1 ] || [ -e good ] || exit 3'])
    folder = tmp_path / "exp"
    outcome = joulemap("experiment", "run", file, "-o", folder)
    assert outcome.code == 1
    assert "3 of 4 rows done" in outcome.out and "exit code 3" in outcome.err
    assert row(folder, 1)["exit_code"] == 3 and table(folder)[1]["__done"] == "FAILED"
    contents_before_resume = files(folder)
    assert joulemap("experiment", "run", folder).code == 2  # rows have run: only resume is allowed
    (tmp_path / "good").touch()
    resumed = joulemap("experiment", "resume", folder)
    assert resumed.code == 0, resumed.err
    assert table(folder)[1]["attempts"] == "2" and row(folder, 1, 2)["state"] == "done"
    contents_after_resume = files(folder)
    assert contents_before_resume.items() <= contents_after_resume.items(), "what was there is as it was"
    assert len([path for path in contents_after_resume if path.endswith("row.json")]) == 5


def test_a_killed_runner_leaves_a_folder_that_can_be_resumed(binaries, joulemap, plan, tmp_path):
    # Row 2 waits until the file `go` exists; each row writes its process ID to the file `pid`.
    program = 'echo $$ > pid; [ "$JOULEMAP_ROW" != 2 ] || while [ ! -e go ]; do sleep 0.05; done'
    file = plan(["sh", "-c", program])
    folder = tmp_path / "exp"
    runner = subprocess.Popen(
        [binaries / "joulemap", "experiment", "run", file, "-o", folder],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    attempt = folder / "rows" / "00002" / "attempt-1"
    wait_for(lambda: (attempt / "owner").exists() and (tmp_path / "pid").exists())
    wait_for(lambda: table(folder)[2]["__done"] == "RUNNING")
    blocked = joulemap("experiment", "resume", folder)
    assert blocked.code == 2 and "another runner" in blocked.err
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    contents_before_resume = files(folder, without="00002")
    (tmp_path / "go").touch()
    status = joulemap("experiment", "status", folder, "--json").json
    assert status["counts"] == {"todo": 1, "running": 0, "done": 2, "failed": 1}
    resumed = joulemap("experiment", "resume", folder, "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.json["counts"]["done"] == 4
    assert table(folder)[2]["attempts"] == "2"
    assert contents_before_resume and contents_before_resume.items() <= files(folder, without="00002").items()


def test_an_interrupted_row_counts_as_failed(binaries, joulemap, plan, tmp_path):
    file = plan(["sh", "-c", '[ "$JOULEMAP_ROW" = 0 ] || [ -e go ] || exec sleep 60'])
    folder = tmp_path / "exp"
    runner = subprocess.Popen(
        [binaries / "joulemap", "experiment", "run", file, "-o", folder],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The recorder forwards signals from the moment its folder of parts exists.
    wait_for(lambda: (folder / "rows" / "00001" / "attempt-1" / "run.joule.d").exists())
    runner.send_signal(signal.SIGINT)
    _, errors = runner.communicate(timeout=30)
    assert runner.returncode == 1 and "resume" in errors
    assert [entry["__done"] for entry in table(folder)] == ["DONE", "FAILED", "TODO", "TODO"]
    (tmp_path / "go").touch()
    assert joulemap("experiment", "resume", folder).code == 0


def test_a_row_past_its_time_limit_says_so(joulemap, plan, tmp_path):
    folder = tmp_path / "two"
    file = plan(["sh", "-c", "sleep 60; true {variant}"], repetitions=1, more="time_limit_s = 0.3")
    run = joulemap("experiment", "run", file, "-o", folder)
    assert "(exceeded time_limit_s, 0.3 s)" in run.out + run.err
    assert "exceeded time_limit_s, 0.3 s" in joulemap("experiment", "status", folder).out
    file = plan(["sh", "-c", "sleep 60; true {variant}"], more="time_limit_s = 0.3", warm_up_runs=1)
    warm_up = joulemap("experiment", "run", file, "-o", tmp_path / "warm")
    assert "the warm-up run failed: exceeded time_limit_s, 0.3 s" in warm_up.err


def test_a_plan_notes_a_factor_that_the_command_does_not_use(joulemap, plan):
    unused = joulemap("experiment", "plan", plan(["true"]))
    assert "do not contain {variant}" in " ".join((unused.out + unused.err).split())
    used = joulemap("experiment", "plan", plan(["true", "{variant}"]))
    assert "do not contain" not in used.out + used.err


def test_single_rows_and_blocks_can_be_run_by_any_launcher(joulemap, plan, tmp_path):
    folder = tmp_path / "exp"
    assert joulemap("experiment", "plan", plan(["true"]), "-o", folder).code == 0
    assert joulemap("experiment", "run-row", folder, 3).code == 0
    assert [entry["__done"] for entry in table(folder)] == ["TODO", "TODO", "TODO", "DONE"]
    assert joulemap("experiment", "run-row", folder, 3).code == 0
    assert table(folder)[3]["attempts"] == "1", "what is done is left alone"
    assert joulemap("experiment", "run-row", folder, "--block", 0).code == 0
    assert [entry["__done"] for entry in table(folder)] == ["DONE", "DONE", "TODO", "DONE"]
    assert joulemap("experiment", "run-row", folder, 4).code == 2


def test_a_pilot_estimates_the_cost_of_the_experiment(joulemap, plan, tmp_path):
    costs = "[costs]\nprice_per_kwh = 0.3\ncurrency = 'EUR'\ngco2_per_kwh = 400\n"
    folder = tmp_path / "exp"
    outcome = joulemap("experiment", "plan", plan(["true"], tables=costs), "-o", folder, "--pilot", "--json")
    assert outcome.code == 0, outcome.err
    forecast = outcome.json["forecast"]
    assert forecast["based_on"] == 2 and forecast["rows"] == 4
    assert forecast["energy_j"] > 0 and forecast["time_s"] > 0
    assert forecast["co2_g"] == pytest.approx(forecast["energy_j"] / 3.6e6 * 400)
    assert forecast["price"] == pytest.approx(forecast["energy_j"] / 3.6e6 * 0.3)
    assert outcome.json["counts"]["todo"] == 4


def test_a_plan_warns_that_ten_pairs_cannot_resolve_twenty_six_comparisons(joulemap, tmp_path):
    path = tmp_path / "experiment.toml"
    levels = ", ".join(f"'{number}'" for number in range(26))
    path.write_text(f"command = ['true']\n[factors]\nframework = ['torch', 'tensorflow']\nmodel = [{levels}]\n")
    result = joulemap("experiment", "plan", path, "--json").json["statistics"]
    assert result["least_p"] == pytest.approx(2 / 2**10) and not result["can_show"]
    text = joulemap("experiment", "plan", path).out
    assert "0.00195" in text and "nothing can be significant" in " ".join(text.split())


def test_plan_errors_are_reported_with_line_numbers(joulemap, tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text("repetitions = 0\ncommand = ['run', '{modle}']\n[factors]\nmodel = ['a']\n")
    outcome = joulemap("experiment", "plan", path)
    assert outcome.code == 2 and f"{path}:1:" in outcome.err


@pytest.fixture
def fake_machine(sysroots, tmp_path):
    """A machine with a writable frequency governor; its counters are frozen, which suffices for these tests."""
    root = tmp_path / "machine"
    shutil.copytree(sysroots / "intel-2socket", root)
    for cpu in (0, 1):
        folder = root / "sys/devices/system/cpu" / f"cpu{cpu}" / "cpufreq"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "scaling_governor").write_text("powersave\n")
    return root


def read_governors(root: Path) -> set[str]:
    paths = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return {path.read_text().strip() for path in paths}


def test_a_required_check_keeps_rows_from_running(joulemap, plan, tmp_path, fake_machine):
    file = plan(["true"], tables="[checks]\nrequire = ['governor']\n")
    outcome = joulemap("experiment", "run", file, "-o", tmp_path / "exp", "--sysroot", fake_machine)
    assert outcome.code == 77 and "powersave" in outcome.err
    assert not list((tmp_path / "exp" / "rows").iterdir())


def test_the_governor_is_set_for_the_rows_and_restored(joulemap, plan, tmp_path, fake_machine):
    see = f"cat {fake_machine}/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    file = plan(see, repetitions=1, tables="[checks]\nrequire = ['governor']\nset = ['governor']\n")
    folder = tmp_path / "exp"
    outcome = joulemap("experiment", "run", file, "-o", folder, "--sysroot", fake_machine)
    assert outcome.code == 0, outcome.err
    assert (folder / "rows/00000/attempt-1/stdout.txt").read_text().strip() == "performance"
    assert row(folder, 0)["settings"][0]["before"] == "powersave"
    assert read_governors(fake_machine) == {"powersave"}
    assert not list(folder.glob("settings-before-*"))


def test_settings_changed_by_a_killed_runner_are_restored_by_the_next(joulemap, plan, tmp_path, fake_machine):
    file = plan(["true"], repetitions=1, tables="[checks]\nrequire = []\nset = ['governor']\n")
    folder = tmp_path / "exp"
    assert joulemap("experiment", "plan", file, "-o", folder).code == 0
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    paths = sorted((fake_machine / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    lines = [f"{path},powersave,performance" for path in paths]
    (folder / f"settings-before-{node}.csv").write_text("\n".join(lines) + "\n")
    for path in paths:
        path.write_text("performance\n")
    assert joulemap("experiment", "resume", folder, "--sysroot", fake_machine).code == 0
    assert read_governors(fake_machine) == {"powersave"}


def test_a_preflight_that_fails_stops_before_the_first_row(joulemap, plan, tmp_path):
    tables = "[checks]\nrequire = []\npreflight = 'echo no GPU here >&2; exit 1'\n"
    outcome = joulemap("experiment", "run", plan(["true"], tables=tables), "-o", tmp_path / "exp")
    assert outcome.code == 77 and "no GPU here" in outcome.err


def test_rows_store_baseline_power_and_cool_down(joulemap, plan, tmp_path):
    file = plan(["true"], repetitions=1, baseline_s=0.1, tables="[cool_down]\npower_within = 50\n")
    folder = tmp_path / "exp"
    assert joulemap("experiment", "run", file, "-o", folder).code == 0
    result = row(folder, 0)
    assert result["baseline_w"] > 0 and result["first_w"] > 0
    assert result["cool_down"]["reached"]


def test_without_slurm_submit_prints_a_remedy(joulemap, plan, tmp_path):
    folder = tmp_path / "exp"
    assert joulemap("experiment", "plan", plan(["true"]), "-o", folder).code == 0
    outcome = joulemap("experiment", "submit", folder, env={**os.environ, "PATH": "/nonexistent"})
    assert outcome.code == 77 and "run-row" in outcome.err
