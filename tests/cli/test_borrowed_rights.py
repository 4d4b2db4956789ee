"""A program with file capabilities (setcap) uses them only to read sensors; a setuid program refuses to run."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

NOBODY_UID = 65534
ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "examples" / "resnet50-h200.joule"
POWERCAP_FOLDER = ROOT / "tests" / "sysroots" / "intel-2socket" / "sys" / "class" / "powercap"

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root gives capabilities to a file"),
    pytest.mark.skipif(shutil.which("setcap") is None, reason="needs setcap (libcap2-bin)"),
]


class InstalledProgram:
    """A copy of the program with capabilities, in a folder that its user, `nobody_command`, can write to."""

    def __init__(self, binaries: Path, folder: Path, capabilities: str = "cap_dac_read_search+ep") -> None:
        self.folder = folder
        self.program = folder / "bin" / "joulemap"
        self.program.parent.mkdir()
        shutil.copy(binaries / "joulemap", self.program)
        if capabilities:
            subprocess.run(["setcap", capabilities, self.program], check=True)
        self.home = folder / "home"
        self.home.mkdir()
        os.chown(self.home, NOBODY_UID, NOBODY_UID)
        self.secrets = folder / "secrets"
        self.secrets.mkdir()

    def secret(self, name: str, content: bytes) -> Path:
        path = self.secrets / name
        path.write_bytes(content)
        path.chmod(0o600)
        return path

    def command(self, *arguments: object) -> list[str]:
        nobody_command = ["setpriv", f"--reuid={NOBODY_UID}", f"--regid={NOBODY_UID}", "--clear-groups"]
        return [*nobody_command, str(self.program), *map(str, arguments)]

    def run(self, *arguments: object, **variables: str) -> subprocess.CompletedProcess:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **variables}
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, timeout=120, cwd=self.home, env=environment
        )


@pytest.fixture
def installed(binaries: Path, public_directory: Path) -> InstalledProgram:
    return InstalledProgram(binaries, public_directory)


def test_another_users_recording_stays_unread(installed: InstalledProgram) -> None:
    secret = installed.secret("run.joule", RECORDING.read_bytes())
    for verb in (["report", "--json"], ["diff", "--json", RECORDING], ["share", "-o", "copy.joule"], ["--replay"]):
        words = [*verb, secret, "stat", "-a"] if verb == ["--replay"] else [*verb, secret]
        outcome = installed.run(*words)
        assert outcome.returncode == 1 and "ermission denied" in outcome.stderr, outcome
    assert not list(installed.home.iterdir())


@pytest.mark.parametrize("verb", ["report", "stat", "record", "doctor", "experiment"])
def test_files_in_folders_the_user_cannot_enter_are_not_opened(installed: InstalledProgram, verb: str) -> None:
    """Folders that the user cannot enter stay inaccessible, both for what a verb writes and for what it reads."""
    inaccessible_folder = installed.folder / "closed"
    (inaccessible_folder / "open").mkdir(parents=True)
    (inaccessible_folder / "open").chmod(0o777)
    inaccessible_folder.chmod(0o700)
    file = inaccessible_folder / "open" / "file"
    words = {
        "report": ["report", RECORDING, "--html", file],
        "stat": ["stat", "-o", file, "--", "true"],
        "record": ["record", "-o", file, "--", "true"],
        "doctor": ["doctor", "-o", file],
        "experiment": ["experiment", "plan", file],
    }[verb]
    assert installed.run(*words).returncode == 1
    assert not list((inaccessible_folder / "open").iterdir())


def test_a_metric_file_is_read_in_the_attempts_folder_only(installed: InstalledProgram) -> None:
    secret = installed.secret("salary.json", b'{"accuracy": 4321}')
    plan = installed.home / "experiment.toml"
    text = 'name = "e"\nrepetitions = 1\nwarm_up_runs = 0\nbaseline_s = 0\n'
    text += f'command = "ln -s {secret} {{folder}}/metrics.json"\n'
    text += "[factors]\na = [1]\n[checks]\nrequire = []\n[metrics.accuracy]\n"
    plan.write_text(text)
    completed_process = installed.run("experiment", "run", plan, "-o", "exp")
    assert completed_process.returncode == 0, completed_process.stderr
    row = json.loads((installed.home / "exp/rows/00000/attempt-1/row.json").read_text())
    assert row["metrics"]["accuracy"] is None
    assert any("symbolic link" in note["message"] for note in row["diagnostics"])
    plan.write_text(text + f'file = "{secret}"\n')
    refused_process = installed.run("experiment", "run", plan, "-o", "absolute")
    assert refused_process.returncode == 2 and "folder of the attempt" in refused_process.stderr
    assert "4321" not in completed_process.stdout + completed_process.stderr + refused_process.stderr


def powercap_of_root(installed: InstalledProgram, *arguments: object) -> subprocess.CompletedProcess:
    """Runs the program with a /sys/class/powercap whose counters only root can read."""
    script = 'mount -t tmpfs none /sys/class && cp -r "$0" /sys/class/powercap && chown -R 0:0 /sys/class/powercap'
    script += ' && chmod 0400 /sys/class/powercap/*/energy_uj && exec "$@"'
    command = ["unshare", "-m", "sh", "-c", script, str(POWERCAP_FOLDER), *installed.command(*arguments)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(installed.home)}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=installed.home, env=environment)


@pytest.fixture
def skip_without_mounts():
    if subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/sys/class"], capture_output=True).returncode:
        pytest.skip("no mounts are allowed here, and --sysroot is refused with capabilities")


def find_sensor(outcome: subprocess.CompletedProcess, name: str) -> dict:
    assert outcome.returncode == 0, outcome.stderr
    return next(entry for entry in json.loads(outcome.stdout)["sensors"] if entry["name"] == name)


def test_counters_of_root_are_read(
    binaries: Path, public_directory: Path, installed: InstalledProgram, skip_without_mounts
) -> None:
    unprivileged_folder = public_directory / "without"
    unprivileged_folder.mkdir()
    unprivileged_process = powercap_of_root(InstalledProgram(binaries, unprivileged_folder, ""), "doctor", "--json")
    assert find_sensor(unprivileged_process, "powercap")["state"] == "denied"
    assert find_sensor(powercap_of_root(installed, "doctor", "--json"), "powercap")["state"] == "measured"


def test_a_recorded_command_has_neither_the_capability_nor_the_open_counters(
    installed: InstalledProgram, skip_without_mounts
) -> None:
    print_rights_script = "grep -h ^Cap /proc/self/status; ls -l /proc/self/fd; grep ^Cap /proc/$PPID/status"
    outcome = powercap_of_root(installed, "record", "-o", "run.joule", "--", "sh", "-c", print_rights_script)
    assert outcome.returncode == 0, outcome.stderr
    sets = ("CapInh", "CapPrm", "CapEff", "CapAmb")
    capability_masks = {line.split()[1] for line in outcome.stdout.splitlines() if line.startswith(sets)}
    assert capability_masks == {"0" * 16}, outcome.stdout
    assert "energy_uj" not in outcome.stdout
    outcome = installed.run("report", "--json", "run.joule")
    assert "package-0" in {domain["name"] for domain in json.loads(outcome.stdout)["domains"]}, outcome.stderr


def test_rows_of_an_experiment_are_watched_by_the_same_counters(
    installed: InstalledProgram, skip_without_mounts
) -> None:
    plan = installed.home / "experiment.toml"
    plan.write_text(
        'name = "e"\nrepetitions = 2\nwarm_up_runs = 0\nbaseline_s = 0.1\ncommand = ["true"]\n[factors]\na = [1]\n'
        "[checks]\nrequire = ['sensors']\n"
    )
    outcome = powercap_of_root(installed, "experiment", "run", plan, "-o", "exp")
    assert outcome.returncode == 0, outcome.stderr
    for number in (0, 1):
        row = json.loads((installed.home / f"exp/rows/0000{number}/attempt-1/row.json").read_text())
        assert "package-0" in {domain["name"] for domain in row["domains"]}


def test_no_library_that_the_environment_names_is_loaded(binaries: Path, installed: InstalledProgram) -> None:
    library = installed.folder / "libfake.so"
    shutil.copy(binaries / "libjoulemap-fake-nvml.so", library)
    outcome = installed.run("doctor", "--json", JOULEMAP_NVML=str(library))
    assert find_sensor(outcome, "nvml")["state"] == "absent"


@pytest.mark.parametrize("bit", [stat.S_ISUID, stat.S_ISGID])
def test_a_setuid_or_setgid_program_is_refused(binaries: Path, public_directory: Path, bit: int) -> None:
    installed = InstalledProgram(binaries, public_directory, "")
    installed.program.chmod(0o755 | bit)
    for words in (["record", "-o", "run.joule", "--", "id", "-u"], ["--version"], ["report", RECORDING]):
        outcome = installed.run(*words)
        assert outcome.returncode == 2 and outcome.stdout == ""
        assert "setuid or setgid" in outcome.stderr and "setcap" in outcome.stderr
    assert not list(installed.home.iterdir())


def test_root_keeps_its_rights_for_its_commands(joulemap, tmp_path: Path) -> None:
    print_status_command = [sys.executable, "-c", "print(open('/proc/self/status').read())"]
    status_text = subprocess.run(print_status_command, capture_output=True, text=True, check=True).stdout
    outcome = joulemap("record", "-o", tmp_path / "run.joule", "--", *print_status_command)
    capabilities = [line for line in status_text.splitlines() if line.startswith("CapEff")]
    assert capabilities[0] in outcome.out
