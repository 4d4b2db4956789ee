"""Names from a trace, a model, an experiment or a command line are displayed but never interpreted."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from attack.hostile_text import NAMES, find_formulas, hostile_recording, find_interpreted_characters
from support import onnx_bytes


@pytest.fixture(scope="session")
def recording(binaries: Path, tmp_path_factory) -> Path:
    """A recording with hostile names, stored in files that also have hostile names."""
    folder = tmp_path_factory.mktemp("hostile")
    return hostile_recording(binaries, folder, NAMES, "\u009b2Jhostile.joule", "\x1b[2J\u202enet.json")


def run_in_pseudo_terminal(program: Path, *arguments: object) -> str:
    """Returns what the program writes to a pseudo-terminal."""
    main, side = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLUMNS": "200"}
    process = subprocess.Popen([program, *map(str, arguments)], stdout=side, stderr=side, env=environment)
    os.close(side)
    terminal_output = b""
    while True:
        try:
            output_chunk = os.read(main, 65536)
        except OSError:  # the other end of the pseudo-terminal is closed
            break
        if not output_chunk:
            break
        terminal_output += output_chunk
    process.wait(timeout=60)
    os.close(main)
    # The terminal ends lines with CR LF, as CSV does.
    return terminal_output.decode(errors="replace").replace("\r\n", "\n").replace("\r\n", "\n")


VIEW_COMMANDS = [
    *(
        ("report", "--top", "0", "--by", report_level)
        for report_level in ("layer", "op", "kernel", "phase", "function", "stack", "domain")
    ),
    ("report", "--json"),
    ("report", "--top", "0", "--by", "layer", "--filter", "\x1b[2J\u202e"),
    *(("report", "--format", form, "--by", "kernel") for form in ("markdown", "latex", "csv")),
    *(("export", "--to", form) for form in ("csv", "folded", "dot", "speedscope")),
]


@pytest.mark.parametrize("view", VIEW_COMMANDS, ids=" ".join)
def test_a_terminal_receives_no_control_sequences(binaries, recording, view):
    terminal_output = run_in_pseudo_terminal(binaries / "joulemap", view[0], recording, *view[1:])
    assert len(terminal_output) > 100
    assert find_interpreted_characters(terminal_output) == set()


@pytest.mark.parametrize("view", VIEW_COMMANDS, ids=" ".join)
def test_pipes_and_files_receive_no_control_sequences(joulemap, recording, tmp_path, view):
    file = tmp_path / "out"
    piped_outcome = joulemap(view[0], recording, *view[1:])
    file_outcome = joulemap(view[0], recording, *view[1:], "-o", file)
    assert (piped_outcome.code, file_outcome.code) == (0, 0), piped_outcome.err + file_outcome.err
    assert find_interpreted_characters(piped_outcome.out) | find_interpreted_characters(file.read_text()) == set()


def test_json_contains_the_original_names(joulemap, recording):
    rows = joulemap("report", recording, "--json", "--by", "kernel").json["rows"]
    names = {row["name"] for row in rows}
    assert {name for name in NAMES if "\x00" not in name} <= names


@pytest.mark.parametrize("view", [("report", "--format", "csv"), ("export", "--to", "csv")], ids=" ".join)
def test_csv_contains_no_spreadsheet_formulas(joulemap, recording, view):
    outcome = joulemap(view[0], recording, *view[1:], "--by", "kernel")
    assert "HYPERLINK" in outcome.out
    assert find_formulas(outcome.out) == []


def test_a_file_that_is_not_a_recording_is_rejected_with_an_escaped_name(binaries, tmp_path):
    for name in NAMES:
        if "/" in name or "\x00" in name:
            continue
        file = tmp_path / name
        file.write_text("no recording")
        for verb in ("report", "diff", "export", "predict"):
            assert find_interpreted_characters(run_in_pseudo_terminal(binaries / "joulemap", verb, file, file)) == set()


def test_a_network_with_such_names_is_predicted_without_them(joulemap, binaries, tmp_path):
    nodes, last_tensor_name = [], "x"
    for i, name in enumerate(name for name in NAMES if "\x00" not in name):
        nodes.append(onnx_bytes.node("Relu", [last_tensor_name], [f"{name}{i}"]) + onnx_bytes.bytes_field(3, name))
        last_tensor_name = f"{name}{i}"
    onnx_model_bytes = onnx_bytes.model(
        nodes, [onnx_bytes.value("x", [1, 8])], [onnx_bytes.value(last_tensor_name, [1, 8])]
    )
    file = tmp_path / "\u202enet.onnx"
    file.write_bytes(onnx_model_bytes)
    terminal_output = run_in_pseudo_terminal(binaries / "joulemap", "predict", file, "--device", "h200")
    assert "Relu" in terminal_output
    assert find_interpreted_characters(terminal_output) == set()
    outcome = joulemap("predict", file, "--device", "h200", "--json")
    assert outcome.code == 0, outcome.err
    assert find_interpreted_characters(outcome.out) == set()


def test_levels_and_notes_of_an_experiment_are_shown_as_text(binaries, tmp_path):
    levels = [name for name in NAMES if "\x00" not in name and "`" not in name and "'" not in name]
    experiment_plan_file = tmp_path / "hostile.toml"
    experiment_plan_file.write_text(
        f'name = "hostile"\ncommand = "true"\nrepetitions = 2\n[factors]\nlevel = {json.dumps(levels, ensure_ascii=True)}\n'
    )
    terminal_output = run_in_pseudo_terminal(binaries / "joulemap", "experiment", "plan", experiment_plan_file)
    assert "hostile" in terminal_output
    assert find_interpreted_characters(terminal_output) == set()
