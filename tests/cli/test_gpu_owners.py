"""Ownership of processes on a GPU: record, record -p and a program that records itself, inside and outside containers.

The fake NVML lists the processes that hold the lock of a file in a folder. A measured process adds itself under the
process ID that a given driver would list: its ID on the host, its ID in the namespace, 0, or none. It also opens a file
that looks like CUDA's.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_nvml.truth import FakeGpu, FakeNvml

UNKNOWN_PID = 0x3FFFFFF0  # not the ID of any process

# Registers itself as a process on the GPU, prints "listed", and executes the program.
CLIENT_PROGRAM = """
import fcntl, os, sys
os.set_inheritable(os.open(os.environ["FAKE_UVM"], os.O_RDONLY), True)
numbers = {"host": os.readlink(os.environ["HOST_PROC"] + "/self"), "namespace": str(os.getpid()), "zero": "0"}
if os.environ["LISTED_AS"] in numbers:
    file = os.open(f"{os.environ['CLIENTS']}/{os.getpid()}", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(file, True)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.write(file, (numbers[os.environ["LISTED_AS"]] + " 60").encode())
print("listed", flush=True)
os.execv(sys.argv[1], sys.argv[1:])
"""

# Runs until the recorder has read the list of processes twice more: between the two readings it has examined who uses the
# GPU, and found this process alive.
WORK_PROGRAM = """
import os, time
def reads():
    return os.path.getsize(os.environ["CLIENTS"] + "/reads")
before = reads()
while reads() < before + 2:
    time.sleep(0.01)
"""

WATCHED_PROGRAM = """
import json, os, subprocess, sys
client = subprocess.Popen([sys.executable, "-c", os.environ["CLIENT"], sys.executable, "-c", "import sys; sys.stdin.read()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
client.stdout.readline()
recorder = subprocess.Popen([*sys.argv[1:], "--announce", "-p", str(client.pid)], stdout=subprocess.PIPE)
json.loads(recorder.stdout.readline())
client.stdin.close()
sys.exit(recorder.wait())
"""

ATTACHED_PROGRAM = """
import os
from joulemap._recorder import Recorder
Recorder.begin(os.environ["RUN"], sensors="nvml").end()
"""

ENTER_NAMESPACE_SCRIPT = 'mount --rbind /proc "$HOST_PROC" && mount -t proc proc /proc && exec "$@"'


@pytest.fixture(scope="session")
def namespace_command(tmp_path_factory) -> list[str]:
    """A command prefix that runs a command in its own pid and mount namespaces with its own /proc, as containers do."""
    user_namespace_options = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = [
        "unshare",
        *user_namespace_options,
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        ENTER_NAMESPACE_SCRIPT,
        "sh",
    ]
    folder = tmp_path_factory.mktemp("proc")
    try:
        subprocess.run(
            [*command, "true"], env={**os.environ, "HOST_PROC": str(folder)}, check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not make pid namespaces")
    return command


class Machine:
    def __init__(self, joulemap, binaries: Path, folder: Path, prefix: list[str], listed_as: str) -> None:
        clients = folder / "clients"
        clients.mkdir()
        (folder / "nvidia-uvm").write_text("")
        (folder / "proc").mkdir()
        gpu = FakeGpu(power=[(0.0, 300.0)], statements=[f"clients {clients}"])
        nvml = FakeNvml(folder, binaries / "libjoulemap-fake-nvml.so", gpu)
        inherited_environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NVTX_"))
        }
        self.environment = {
            **inherited_environment, **nvml.environment, "FAKE_UVM": str(folder / "nvidia-uvm"), "CLIENTS": str(clients),
            "CLIENT": CLIENT_PROGRAM, "LISTED_AS": listed_as,
            "HOST_PROC": str(folder / "proc") if prefix else "/proc", "WORK": WORK_PROGRAM,
            "RUN": str(folder / "run.joule"), "PYTHONPATH": str(binaries.parent / "python"),
        }  # fmt: skip
        self.joulemap, self.program, self.prefix = joulemap, str(binaries / "joulemap"), prefix
        self.clients, self.file = clients, folder / "run.joule"

    def add_unknown_process(self) -> None:
        self.stranger = (self.clients / "stranger").open("w")
        fcntl.flock(self.stranger, fcntl.LOCK_EX)
        print(UNKNOWN_PID, 30, file=self.stranger, flush=True)

    def _run(self, *command: str) -> None:
        completed_process = subprocess.run(
            [*self.prefix, *command], env=self.environment, capture_output=True, text=True, timeout=120
        )
        assert completed_process.returncode == 0, completed_process.stdout + completed_process.stderr

    def record(self) -> None:
        client = (sys.executable, "-c", CLIENT_PROGRAM, sys.executable, "-c", WORK_PROGRAM)
        self._run(self.program, "record", "--sensors", "nvml", "-o", str(self.file), "--", *client)

    def record_by_pid(self) -> None:
        record = (self.program, "record", "--sensors", "nvml", "-o", str(self.file))
        self._run(sys.executable, "-c", WATCHED_PROGRAM, *record)

    def attach(self) -> None:
        self._run(sys.executable, "-c", CLIENT_PROGRAM, sys.executable, "-c", ATTACHED_PROGRAM)

    def enter(self, entry: str) -> dict:
        {"record": self.record, "record -p": self.record_by_pid, "attach": self.attach}[entry]()
        outcome = self.joulemap("report", "--json", "--by", "phase", self.file)
        assert outcome.code == 0, outcome.err
        return outcome.json


@pytest.fixture
def machine_outside_container(joulemap, binaries, tmp_path):
    return lambda listed_as: Machine(joulemap, binaries, tmp_path, [], listed_as)


@pytest.fixture
def machine_in_container(joulemap, binaries, tmp_path, namespace_command):
    return lambda listed_as: Machine(joulemap, binaries, tmp_path, namespace_command, listed_as)


def codes(report: dict) -> set[str]:
    return {entry["code"] for entry in report["diagnostics"] if entry["code"].startswith("gpu_")}


def background_s(report: dict) -> float:
    return sum(row["time_s"] for row in report["rows"] if row["path"] == ["background"] and row["device"] == "gpu0")


START_METHODS = ["record", "record -p", "attach"]


@pytest.mark.parametrize("entry", START_METHODS)
def test_a_measured_process_is_not_another_process_on_its_gpu(machine_outside_container, entry):
    report = machine_outside_container("namespace").enter(entry)
    assert background_s(report) == 0
    assert not codes(report)


@pytest.mark.parametrize("entry", START_METHODS)
def test_another_process_is_background_and_named(machine_outside_container, entry):
    machine = machine_outside_container("namespace")
    machine.add_unknown_process()
    report = machine.enter(entry)
    assert codes(report) == {"gpu_shared"}, report
    assert background_s(report) == pytest.approx(0.3 * report["elapsed_s"], rel=0.05), report
    assert str(UNKNOWN_PID) in json.dumps(report["diagnostics"])


@pytest.mark.parametrize("listed_as", ["host", "namespace", "zero"])
@pytest.mark.parametrize("entry", START_METHODS)
def test_in_a_container_a_measured_process_is_recognized_whatever_its_pid_in_the_driver(
    machine_in_container, entry, listed_as
):
    report = machine_in_container(listed_as).enter(entry)
    assert background_s(report) == 0
    assert not codes(report)


@pytest.mark.parametrize("entry", START_METHODS)
def test_a_driver_that_does_not_list_our_process_cannot_identify_other_processes(machine_in_container, entry):
    report = machine_in_container("nowhere").enter(entry)
    assert background_s(report) == 0
    assert codes(report) == {"gpu_shared_untold"}


def test_in_a_container_processes_older_than_the_command_are_background(machine_in_container):
    machine = machine_in_container("host")
    machine.add_unknown_process()
    report = machine.enter("record")
    assert background_s(report) == pytest.approx(0.3 * report["elapsed_s"], rel=0.05)
    assert codes(report) == {"gpu_shared"}


@pytest.mark.parametrize("entry", ["record -p", "attach"])
def test_in_a_container_processes_indistinguishable_from_the_program_are_reported_and_not_background(
    machine_in_container, entry
):
    machine = machine_in_container("host")
    machine.add_unknown_process()
    report = machine.enter(entry)
    assert background_s(report) == 0
    assert codes(report) == {"gpu_owner_unknown", "gpu_shared_untold"}


def test_a_worker_that_outlives_its_parent_is_still_measured(machine_outside_container):
    machine = machine_outside_container("namespace")
    orphan = (  # its child exits at once, its grandchild uses the GPU
        "import os, sys\n"
        "end, held = os.pipe()\n"
        "os.set_inheritable(held, True)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        f"        work = [sys.executable, '-c', {WORK_PROGRAM!r}]\n"
        f"        os.execv(sys.executable, [sys.executable, '-c', {CLIENT_PROGRAM!r}, *work])\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "os.close(held)\n"
        "os.read(end, 1)\n"
    )
    machine._run(
        machine.program, "record", "--sensors", "nvml", "-o", str(machine.file), "--", sys.executable, "-c", orphan
    )
    report = machine.joulemap("report", "--json", "--by", "phase", machine.file).json
    assert background_s(report) == 0
    assert not codes(report)


def test_ranks_with_separate_recorders_recognize_each_other(machine_outside_container):
    machine = machine_outside_container("namespace")

    def record(rank: int, *program_arguments: str) -> list[str]:
        file = f"{machine.file}{rank}"
        client = (sys.executable, "-c", CLIENT_PROGRAM, sys.executable, "-c", *program_arguments)
        return [machine.program, "record", "--run", "job", "--sensors", "nvml", "-o", file, "--", *client]

    waits = record(0, "import sys; sys.stdin.read()")
    with subprocess.Popen(
        waits, env=machine.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as first_rank_process:
        assert first_rank_process.stdout.readline() == b"listed\n"
        machine._run(*record(1, WORK_PROGRAM))
        first_rank_process.stdin.close()
        assert first_rank_process.wait(timeout=120) == 0
    report = machine.joulemap("report", "--json", "--by", "phase", f"{machine.file}1").json
    assert background_s(report) == 0
    assert not codes(report)
