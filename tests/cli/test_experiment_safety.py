"""The folder and plan of an experiment cannot make Joulemap write, read or execute files elsewhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

GOVERNOR_FILE = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def plan(folder: Path, more: str = "", command: object = ("true",), checks: str = "") -> Path:
    path = folder / "experiment.toml"
    path.write_text(
        f"repetitions = 1\nwarm_up_runs = 0\nbaseline_s = 0\ncommand = {json.dumps(command)}\n{more}"
        f"[factors]\nvariant = ['$(touch injected)', '\\\\']\n[checks]\nrequire = []\n{checks}"
    )
    return path


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    governor = tmp_path / "machine" / GOVERNOR_FILE
    governor.parent.mkdir(parents=True)
    governor.write_text("performance\n")
    (governor.parent / "scaling_available_governors").write_text("performance powersave \n")
    return tmp_path / "machine"


class UnrestoredExperiment:
    """An experiment with a file of settings to restore, as a killed runner leaves it."""

    def __init__(self, joulemap, folder: Path, machine: Path) -> None:
        file = plan(folder, checks="set = ['governor']\n")
        self.folder, self.machine, self.joulemap = folder / "exp", machine, joulemap
        assert joulemap("experiment", "plan", file, "-o", self.folder).code == 0
        node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
        self.memory = self.folder / f"settings-before-{node}.csv"
        self.governor = machine / GOVERNOR_FILE

    def resume(self) -> str:
        outcome = self.joulemap("experiment", "resume", self.folder, "--sysroot", self.machine)
        assert outcome.code == 0, outcome.err
        return outcome.err


@pytest.fixture
def unrestored_experiment(joulemap, tmp_path: Path, machine: Path) -> UnrestoredExperiment:
    return UnrestoredExperiment(joulemap, tmp_path, machine)


def test_only_settings_that_joulemap_changes_are_restored(
    unrestored_experiment: UnrestoredExperiment, tmp_path: Path
) -> None:
    stranger = tmp_path / "stranger"
    stranger.write_text("precious\n")
    lines = [f"{stranger},gone,gone", f"{unrestored_experiment.governor},evil,performance", "one,two"]
    lines += [f"{unrestored_experiment.governor.parent}/../cpufreq/scaling_governor,powersave,performance"]
    unrestored_experiment.memory.write_text("\n".join(lines) + "\n")
    unrestored_experiment.memory.chmod(0o644)
    resume_stderr = unrestored_experiment.resume()
    assert stranger.read_text() == "precious\n"
    assert unrestored_experiment.governor.read_text() == "performance\n"
    assert resume_stderr.count("not restored") == 4 and "evil" in resume_stderr


def test_a_link_in_the_place_of_a_setting_is_not_followed(
    unrestored_experiment: UnrestoredExperiment, tmp_path: Path
) -> None:
    stranger = tmp_path / "stranger"
    stranger.write_text("precious\n")
    linked = unrestored_experiment.machine / "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor"
    linked.parent.mkdir(parents=True)
    linked.symlink_to(stranger)
    outcome = unrestored_experiment.joulemap(
        "experiment", "resume", unrestored_experiment.folder, "--sysroot", unrestored_experiment.machine
    )
    assert outcome.code == 1 and str(linked) in outcome.err
    assert stranger.read_text() == "precious\n"


def test_refused_reads_are_reported(unrestored_experiment: UnrestoredExperiment, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.write_text("precious\n")
    unrestored_experiment.memory.write_text(
        f"{stranger},gone,gone\n{unrestored_experiment.governor},powersave,performance\n"
    )
    unrestored_experiment.memory.chmod(0o644)
    resume_stderr = unrestored_experiment.resume()
    assert "not restored" in resume_stderr and str(stranger) in resume_stderr
    assert stranger.read_text() == "precious\n"
    assert unrestored_experiment.governor.read_text() == "powersave\n", "ours is restored all the same"


@pytest.mark.parametrize("fault", ["writable", "link", "owner"])
def test_settings_that_somebody_else_may_have_written_are_not_restored(
    unrestored_experiment: UnrestoredExperiment, tmp_path, fault
) -> None:
    if fault == "owner" and os.getuid() != 0:
        pytest.skip("only root gives a file to another user")
    text = f"{unrestored_experiment.governor},powersave,performance\n"
    if fault == "link":
        (tmp_path / "elsewhere").write_text(text)
        unrestored_experiment.memory.symlink_to(tmp_path / "elsewhere")
    else:
        unrestored_experiment.memory.write_text(text)
        unrestored_experiment.memory.chmod(0o666 if fault == "writable" else 0o644)
        os.chown(unrestored_experiment.memory, 65534 if fault == "owner" else -1, -1)
    assert "not restored" in unrestored_experiment.resume()
    assert unrestored_experiment.governor.read_text() == "performance\n"


@pytest.mark.parametrize("name", ["../x", "{here}/x", ".", "..", "a/b", "a\\nb", "\\u001b[31m", "x" * 101, ""])
def test_an_experiment_name_that_is_a_path_is_refused(joulemap, tmp_path: Path, name: str) -> None:
    working_folder = tmp_path / "here"
    working_folder.mkdir()
    file = plan(working_folder, more=f'name = "{name}"\n'.replace("{here}", str(working_folder)))
    initial_paths = sorted(tmp_path.rglob("*"))
    outcome = joulemap("experiment", "run", file, cwd=working_folder)
    assert outcome.code == 2 and "name" in outcome.err and "\x1b" not in outcome.err
    assert sorted(tmp_path.rglob("*")) == initial_paths


@pytest.mark.parametrize(
    "command",
    [
        "cat <<EOF\n{variant}\nEOF",
        "# it's\necho '{variant}'",
        "echo \\{variant}",
        "echo `echo {variant}`",
    ],
)
def test_a_level_is_not_executed_where_the_shell_takes_no_quotes(joulemap, tmp_path: Path, command: str) -> None:
    outcome = joulemap("experiment", "run", plan(tmp_path, command=command), "-o", tmp_path / "exp", cwd=tmp_path)
    assert outcome.code == 2 and "{variant}" in outcome.err
    assert not (tmp_path / "injected").exists() and not (tmp_path / "exp").exists()


def test_a_level_beside_a_here_document_is_quoted(joulemap, tmp_path: Path) -> None:
    file = plan(tmp_path, command="cat <<EOF; printf '%s' {variant}\nit's $((1 + 1))\nEOF\n")
    outcome = joulemap("experiment", "run", file, "-o", tmp_path / "exp", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    row_outputs = {path.read_text() for path in (tmp_path / "exp/rows").rglob("stdout.txt")}
    assert any("it's 2\n$(touch injected)" in text for text in row_outputs)
    assert not (tmp_path / "injected").exists()


@pytest.mark.parametrize("file", ["/etc/hostname", "../row.json", "a/../../x", ".."])
def test_a_metric_file_outside_of_the_attempts_folder_is_refused(joulemap, tmp_path: Path, file: str) -> None:
    path = plan(tmp_path, checks=f"[metrics.accuracy]\nfile = '{file}'\n")
    outcome = joulemap("experiment", "run", path, "-o", tmp_path / "exp")
    assert outcome.code == 2 and "folder of the attempt" in outcome.err


def test_a_metric_file_in_a_linked_folder_is_not_followed(joulemap, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/metrics.json").write_text('{"accuracy": 4321}')
    command = f"ln -s {tmp_path}/elsewhere {{folder}}/sub; mkdir {{folder}}/own; "
    command += "echo '{\"loss\": 1}' > {folder}/own/m.json"
    tables = "[metrics.accuracy]\nfile = 'sub/metrics.json'\n[metrics.loss]\nfile = './own//m.json'\n"
    outcome = joulemap("experiment", "run", plan(tmp_path, command=command, checks=tables), "-o", tmp_path / "exp")
    assert outcome.code == 0, outcome.err
    row = json.loads((tmp_path / "exp/rows/00000/attempt-1/row.json").read_text())
    assert row["metrics"] == {"accuracy": None, "loss": 1}


def test_slashes_in_a_slurm_node_name_are_replaced(joulemap, tmp_path: Path) -> None:
    environment = {**os.environ, "SLURMD_NODENAME": "../../x y"}
    outcome = joulemap("experiment", "run", plan(tmp_path), "-o", tmp_path / "exp", env=environment)
    assert outcome.code == 0, outcome.err
    assert list((tmp_path / "exp").glob("runner-.._.._x_y.lock"))
