"""Secrets on a command line are not written to files, and written files are readable by their owner only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "examples" / "resnet50-h200.joule"
SECRET = "hunter2secret"
COMMAND = ["sh", "-c", "exit 0", "x", "--api-key", SECRET, f"HF_TOKEN={SECRET}", "--tokenizer", "gpt2"]


def read_all_bytes(folder: Path) -> bytes:
    """All bytes of the files in a folder."""
    concatenated_bytes = b""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            concatenated_bytes += path.read_bytes()
    return concatenated_bytes


def test_a_recording_its_page_and_its_exports_contain_no_secret(joulemap, tmp_path: Path) -> None:
    file = tmp_path / "run.joule"
    summary = joulemap("record", "--json", "-o", file, "--", *COMMAND)
    assert summary.code == 0, summary.err
    page, export = tmp_path / "run.html", tmp_path / "run.pb"
    report = joulemap("report", "--json", file)
    joulemap("report", file, "--html", page)
    joulemap("export", file, "--to", "perfetto", "-o", export)
    dump = subprocess.run(
        [sys.executable, ROOT / "tests/support/read_joule.py", file], capture_output=True, text=True, check=True
    ).stdout
    assert SECRET not in dump + summary.out + summary.err + report.out
    assert SECRET.encode() not in read_all_bytes(tmp_path)
    assert report.json["command"] == [*COMMAND[:5], "***", "HF_TOKEN=***", "--tokenizer", "gpt2"]


def test_keep_arguments_writes_the_command_as_it_is(joulemap, tmp_path: Path) -> None:
    file = tmp_path / "run.joule"
    assert joulemap("record", "--keep-arguments", "-o", file, "--", *COMMAND).code == 0
    assert joulemap("report", "--json", file).json["command"] == COMMAND
    assert joulemap("stat", "--keep-arguments", "--json", "--", *COMMAND).json["command"] == COMMAND


def test_stat_prints_no_secret(joulemap) -> None:
    outcome = joulemap("stat", "--json", "--", *COMMAND)
    assert SECRET not in outcome.out and "gpt2" in outcome.out
    assert SECRET not in joulemap("stat", "--", *COMMAND).err


def test_the_command_of_a_watched_process_is_written_without_its_secrets(joulemap, binaries: Path, tmp_path: Path):
    process = subprocess.Popen([sys.executable, "-c", "input()", "--token", SECRET], stdin=subprocess.PIPE)
    file = tmp_path / "run.joule"
    command = [binaries / "joulemap", "record", "-p", str(process.pid), "--announce", "-o", file]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert recorder.stdout.readline()
    process.communicate(b"\n")
    recorder.communicate(timeout=60)
    assert joulemap("report", "--json", file).json["command"][-2:] == ["--token", "***"]


def experiment(tmp_path: Path, keys: str = "") -> Path:
    plan = tmp_path / "experiment.toml"
    words = json.dumps([*COMMAND[:4], "{a}", *COMMAND[4:]])
    plan.write_text(
        f"repetitions = 1\nwarm_up_runs = 0\nbaseline_s = 0\ncommand = {words}\n{keys}"
        '[factors]\na = ["x"]\n[checks]\nrequire = []\n'
    )
    return plan


@pytest.mark.parametrize("keeps", [False, True])
def test_a_row_of_an_experiment_contains_no_secret_unless_the_plan_allows_it(
    joulemap, tmp_path: Path, keeps: bool
) -> None:
    plan = experiment(tmp_path, "keep_arguments = true\n" if keeps else "")
    outcome = joulemap("experiment", "run", plan, "-o", tmp_path / "exp")
    assert outcome.code == 0, outcome.err
    assert (SECRET.encode() in read_all_bytes(tmp_path / "exp/rows")) == keeps
    row = json.loads((tmp_path / "exp/rows/00000/attempt-1/row.json").read_text())
    assert (SECRET in row["command"]) == keeps


def file_modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in folder.rglob("*")}


def test_written_files_are_readable_by_their_owner_only(joulemap, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    file = out / "run.joule"
    outputs = [
        [
            "record",
            "-o",
            file,
            "--",
            "sh",
            "-c",
            f"stat -c %a {file}.d > {out}/folder-mode; chmod 600 {out}/folder-mode",
        ],
        ["report", file, "--html", out / "run.html"],
        ["report", file, "--json", "-o", out / "run.json"],
        ["stat", "-o", out / "stat.txt", "--", "true"],
        ["doctor", "-o", out / "doctor.txt"],
        ["export", RECORDING, "--to", "tensorboard", "-o", out / "events"],
        ["export", RECORDING, "--to", "csv", "-o", out / "rows.csv"],
        ["export", RECORDING, "--to", "sqlite", "-o", out / "rows.sqlite"],
        ["share", RECORDING, "-o", out / "shared.joule"],
        ["experiment", "run", experiment(tmp_path), "-o", out / "exp"],
        ["experiment", "analyze", out / "exp", "--html", out / "exp.html"],
    ]
    for words in outputs:
        outcome = joulemap(*words, umask=0)
        assert outcome.code == 0, (words, outcome.err)
    assert (out / "folder-mode").read_text().strip() == "700"
    files_open_to_others = {name: oct(mode) for name, mode in file_modes(out).items() if mode & 0o077}
    assert not files_open_to_others and len(file_modes(out)) > 12
    assert joulemap("stat", "-o", out / "less.txt", "--", "true", umask=0o277).code == 0
    assert (out / "less.txt").stat().st_mode & 0o777 == 0o400


def test_the_umask_of_the_command_is_its_users(joulemap, tmp_path: Path) -> None:
    outcome = joulemap("record", "-o", tmp_path / "run.joule", "--", "sh", "-c", "umask", umask=0o027)
    assert outcome.out.split()[0] == "0027", os.fsdecode(outcome.out)
