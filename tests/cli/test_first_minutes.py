"""What a new user types first: the program shows the way, files and levels have defaults, and a recording ends with an
answer."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
GPU_RUN = ROOT / "examples" / "resnet50-h200.joule"
OLD_RECORDING = ROOT / "tests" / "data" / "recordings" / "v1.0.joule"


@pytest.fixture
def run(binaries, tmp_path):
    """Runs the program in an empty folder, without the files of this user."""

    def run(*words: object, **options):
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / "config"), **options.pop("env", {})}
        command = [str(binaries / "joulemap"), *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment, check=False, **options
        )

    return run


def test_the_bare_program_shows_its_verbs_by_task_with_examples(run):
    help_process = run()
    assert help_process.returncode == 0 and not help_process.stderr
    for title in ("Measure", "Look", "Compare", "Predict", "Maintain"):
        assert f"\n{title}\n" in help_process.stdout
    assert "joulemap record -- python train.py" in help_process.stdout
    assert max(map(len, help_process.stdout.splitlines()[:-1])) <= 80
    assert run("--help").stdout.startswith(help_process.stdout)
    assert run("help").stdout == run("--help").stdout


def test_help_of_a_verb_is_its_help_option(run):
    assert run("help", "experiment", "run").stdout == run("experiment", "run", "--help").stdout
    unknown = run("help", "recrod")
    assert unknown.returncode == 2 and "did you mean record?" in unknown.stderr


def test_a_version_is_printed_by_the_short_option_too(run):
    assert run("-V").stdout == run("--version").stdout
    assert run("-V").stdout.startswith("joulemap ")


def test_a_program_given_as_a_recording_is_answered_with_the_command_that_records_it(run, tmp_path):
    (tmp_path / "train.py").write_text("print('training')\n")
    for arguments in (["train.py"], ["report", "train.py"]):
        process = run(*arguments)
        assert process.returncode != 0 and "training" not in process.stdout
        assert "train.py is a program, not a recording" in process.stderr
        assert "joulemap record -- python train.py" in process.stderr


def test_report_reads_run_joule_by_default(run, tmp_path):
    report_process = run("report")
    assert report_process.returncode == 2 and "joulemap record -- python train.py" in report_process.stderr
    shutil.copy(OLD_RECORDING, tmp_path / "run.joule")
    assert run("report").stdout == run("report", "run.joule").stdout
    assert run("run.joule").stdout == run("report").stdout
    assert run("--color", "never", "run.joule").stdout == run("report").stdout


def test_a_report_is_by_layer_where_there_are_layers(run, tmp_path):
    shutil.copy(GPU_RUN, tmp_path / "run.joule")
    assert json.loads(run("report", "--json", "--mode", "integral").stdout)["by"] == "layer"
    assert json.loads(run("report", "--json", OLD_RECORDING).stdout)["by"] == "domain"


def test_colour_can_be_chosen(run):
    assert "\x1b[" in run("--color", "always", "report", OLD_RECORDING).stdout
    assert "\x1b[" in run("report", OLD_RECORDING, "--color=always").stdout
    assert "\x1b[" not in run("report", OLD_RECORDING).stdout


def test_report_quiet_prints_no_notes(run):
    assert " note: " in run("report", GPU_RUN).stdout
    assert " note: " not in run("-q", "report", GPU_RUN).stdout


def test_open_writes_the_page_and_starts_the_browser(run, tmp_path):
    shutil.copy(OLD_RECORDING, tmp_path / "run.joule")
    browser = tmp_path / "browser"
    os.mkfifo(tmp_path / "asked")
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{tmp_path}/asked"\n')
    browser.chmod(0o755)
    reader = os.open(tmp_path / "asked", os.O_RDWR)  # the browser outlives the program: wait for what it was asked
    open_process = run("open", env={"BROWSER": str(browser)})
    assert open_process.returncode == 0 and "run.joule.html" in open_process.stderr
    assert os.read(reader, 4096).decode() == str(tmp_path / "run.joule.html")
    os.close(reader)
    assert (tmp_path / "run.joule.html").read_text().lower().startswith("<!doctype html>")
    no_browser_process = run("open", "--no-browser", "-o", "other.html")
    assert no_browser_process.returncode == 0 and (tmp_path / "other.html").exists()


def test_open_without_a_browser_says_what_to_do(run, tmp_path):
    shutil.copy(OLD_RECORDING, tmp_path / "run.joule")
    open_process = run("open", env={"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""})
    assert open_process.returncode == 0 and "no browser was found" in open_process.stderr


def test_bash_completes_verbs_options_and_values(run, tmp_path):
    script = tmp_path / "completion.bash"
    script.write_text(run("completion", "bash").stdout)

    def completed(*words: str) -> set:
        code = (
            f"source {script}; COMP_WORDS=(joulemap {' '.join(words)}); COMP_CWORD={len(words)}; _joulemap; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        return set(subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True).stdout.split())

    assert completed("rec") == {"record"}
    assert completed("experiment", "ru") == {"run", "run-row"}
    assert "--fail-over" in completed("diff", "--fail")
    assert completed("report", "--by", "lay") == {"layer"}
    assert completed("report", "''") == set(), "files, which bash completes itself"
    assert completed("model", "''") == {"fit", "eval"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_completion(run, shell):
    script = run("completion", shell).stdout
    assert "record" in script and "fail-over" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_man_pages_have_the_options_of_the_help(run, tmp_path):
    assert run("man", "share").returncode == 0
    pages = {page.name: page.read_text().replace("\\-", "-") for page in (tmp_path / "share" / "man1").iterdir()}
    assert "joulemap.1" in pages and "joulemap-experiment-run.1" in pages
    for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", run("record", "--help").stdout, re.MULTILINE):
        assert option in pages["joulemap-record.1"], option


def test_a_configuration_file_sets_defaults_that_options_override(run, tmp_path):
    (tmp_path / "joulemap.toml").write_text('color = "always"\n[record]\nsensors = "estimate"\n')
    assert "\x1b[" in run("report", OLD_RECORDING).stdout
    assert "\x1b[" not in run("report", OLD_RECORDING, "--color", "never").stdout
    assert "\x1b[" not in run("report", OLD_RECORDING, env={"JOULEMAP_CONFIG": "none"}).stdout
    record_process = run("record", "--json", "--", "true")
    assert json.loads(record_process.stdout.splitlines()[-1])["estimated_j"] is not None
    (tmp_path / "config" / "joulemap").mkdir(parents=True)
    (tmp_path / "config" / "joulemap" / "joulemap.toml").write_text('color = "never"\n')
    assert "\x1b[" in run("report", OLD_RECORDING).stdout  # the folder's file wins


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('colour = "always"', "did you mean color?"),
        ('color = "pink"', "joulemap.toml: color"),
        ("[recrod]\nperiod = 3", "unknown verb [recrod]"),
        ("color = [", "joulemap.toml"),
    ],
)
def test_a_wrong_configuration_is_refused(run, tmp_path, text, said):
    (tmp_path / "joulemap.toml").write_text(text)
    report_process = run("report", OLD_RECORDING)
    assert report_process.returncode == 2 or "joulemap.toml" in report_process.stderr
    assert said in report_process.stderr and report_process.stdout == ""


def test_import_detects_the_trace_format(run, tmp_path):
    trace = {"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}]}  # fmt: skip
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    assert run("import", "trace.json", "--json").returncode == 0
    named_format_import = run("import", "kineto", "trace.json", "-o", "named.joule", "--json")
    assert named_format_import.returncode == 0
    rows = [
        json.loads(run("report", "--json", "--by", "op", file).stdout)["rows"] for file in ("run.joule", "named.joule")
    ]
    assert rows[0] == rows[1] and rows[0]
    (tmp_path / "words.txt").write_text("hello\n")
    assert "not recognized" in run("import", "words.txt").stderr


PROGRAM = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(12):
    optimizer.zero_grad()
    model(torch.randn(8, 64)).sum().backward()
    optimizer.step()
"""


def record(run, tmp_path, binaries, *options: str):
    (tmp_path / "train.py").write_text(PROGRAM)
    environment = {"PYTHONPATH": str(binaries.parent / "python"), "OMP_NUM_THREADS": "1"}
    return run(*options, "record", "--", sys.executable, "train.py", env=environment)


def test_record_ends_with_a_summary_and_the_next_command(run, tmp_path, binaries):
    record_process = record(run, tmp_path, binaries)
    assert record_process.returncode == 0, record_process.stderr
    assert "12 steps" in record_process.stderr and "costliest layers" in record_process.stderr
    assert "joulemap report --by module run.joule" in record_process.stderr
    # Whether there is a finding depends on the speed of the machine.
    next_verb = "advise" if "to try: " in record_process.stderr else "open"
    assert f"joulemap {next_verb} run.joule" in record_process.stderr
    assert "by this command" in record_process.stderr
    assert "run.joule.old" not in record_process.stderr
    assert "\x1b" not in record_process.stderr  # no live line and no colour in a pipe


def test_a_second_recording_names_the_renamed_first_one(run, tmp_path, binaries):
    (tmp_path / "run.joule").write_bytes((binaries.parents[1] / "tests/data/recordings/v1.0.joule").read_bytes())
    record_process = run("record", "--trace", "off", "--", "true")
    assert "the previous run.joule is now run.joule.old" in record_process.stderr, record_process.stderr
    assert (tmp_path / "run.joule.old").exists()


def test_record_quiet_prints_nothing(run, tmp_path, binaries):
    record_process = record(run, tmp_path, binaries, "-q")
    assert record_process.returncode == 0 and record_process.stderr == ""


def test_record_shows_and_clears_a_status_line_on_a_terminal(binaries, tmp_path):
    """The command ends once the terminal has shown the line, so no time is assumed."""
    pty_controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.mkfifo(tmp_path / "go")
    program = ["sh", "-c", "echo begun; read line < go; echo ended"]
    command = [str(binaries / "joulemap"), "record", "-o", "r.joule", "--", *program]
    process = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path, env={**os.environ, "TERM": "xterm"}
    )
    os.close(terminal)
    terminal_output = ""
    while not re.search(r"joulemap: [\d.]+ m?s ", terminal_output):
        terminal_output += os.read(pty_controller, 65536).decode()
    (tmp_path / "go").write_text("\n")
    while True:
        try:
            output_chunk = os.read(pty_controller, 65536).decode()
        except OSError:  # the terminal is closed
            break
        terminal_output += output_chunk
    assert process.wait(60) == 0
    assert "\x1b[1;23r" in terminal_output  # the last line does not scroll
    assert (
        terminal_output.index("\x1b[1;23r")
        < terminal_output.rindex("\x1b[r")
        < terminal_output.index("next: joulemap report")
    )
