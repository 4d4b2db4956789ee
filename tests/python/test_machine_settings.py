"""Power limits, clocks and governors that jm.tune changes in a fake /sys: permitted, checked and restored, also after a
kill. No machine of the tests can set real limits."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

jm = pytest.importorskip("joulemap", reason="the build has a sanitizer inside, Python has not")

from joulemap import JoulemapError, _machine_settings  # noqa: E402
from joulemap._machine_settings import MachineSettings  # noqa: E402

POWER_LIMIT_FILE = "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw"
CLOCK_FILE = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_max_freq"
GOVERNOR_FILE = "sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"


@pytest.fixture
def root(tmp_path) -> Path:
    files = {
        "sys/class/powercap/intel-rapl:0/name": "package-0", POWER_LIMIT_FILE: "200000000",
        "sys/class/powercap/intel-rapl:0/constraint_0_max_power_uw": "250000000",
        "sys/class/powercap/intel-rapl:0:0/name": "dram",
        "sys/class/powercap/intel-rapl:0:0/constraint_0_power_limit_uw": "40000000",
    }  # fmt: skip
    for cpu in (0, 1):
        folder = f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        files.update({CLOCK_FILE.format(cpu): "3000000", f"{folder}/cpuinfo_min_freq": "800000",
                      f"{folder}/cpuinfo_max_freq": "3500000", GOVERNOR_FILE.format(cpu): "performance",
                      f"{folder}/scaling_available_governors": "performance powersave"})  # fmt: skip
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(text + "\n")
    return tmp_path / "root"


@pytest.fixture
def backup_file(tmp_path) -> Path:
    return tmp_path / "data" / "machine-settings.csv"


def read(root: Path, name: str) -> str:
    return (root / name).read_text().strip()


REQUESTED_SETTINGS = {"cpu_power_limit_w": 150, "cpu_max_mhz": 2000, "cpu_governor": "powersave"}
VALUES_BEFORE = {POWER_LIMIT_FILE: "200000000", CLOCK_FILE.format(1): "3000000", GOVERNOR_FILE.format(0): "performance"}
VALUES_DURING = {POWER_LIMIT_FILE: "150000000", CLOCK_FILE.format(1): "2000000", GOVERNOR_FILE.format(0): "powersave"}


def test_settings_are_changed_inside_the_block_and_restored_after_it(root, backup_file):
    with MachineSettings(str(root), str(backup_file)) as settings:
        settings.apply(REQUESTED_SETTINGS)
        assert {name: read(root, name) for name in VALUES_DURING} == VALUES_DURING
        # DRAM is not a package.
        assert read(root, "sys/class/powercap/intel-rapl:0:0/constraint_0_power_limit_uw") == "40000000"
        settings.apply({"cpu_power_limit_w": 100})
        # The format of experiments: path, before, after.
        assert f"{root}/{POWER_LIMIT_FILE},200000000,100000000" in backup_file.read_text()
        settings.apply({"cpu_power_limit_w": None})
        assert read(root, POWER_LIMIT_FILE) == "200000000"
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE
    assert not backup_file.exists() and settings.notes == []


def test_an_exception_restores_settings(root, backup_file):
    with pytest.raises(KeyboardInterrupt), MachineSettings(str(root), str(backup_file)) as settings:
        settings.apply(REQUESTED_SETTINGS)
        raise KeyboardInterrupt
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE


KILLED_PROGRAM = """
import os, sys
from joulemap._machine_settings import MachineSettings
with MachineSettings(sys.argv[1], sys.argv[2]) as settings:
    settings.apply({"cpu_power_limit_w": 150, "cpu_max_mhz": 2000, "cpu_governor": "powersave"})
    print(settings._watcher_process.pid, flush=True)
    sys.stdin.read()
"""


def start_program(root: Path, backup: Path, environment: dict, text: str = KILLED_PROGRAM, **more) -> tuple:
    """A program that has changed settings and waits; and the pidfd of its watcher."""
    command = [sys.executable, *(["-c", text] if "\n" in text else [text]), str(root), str(backup)]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, **more)
    return program, os.pidfd_open(int(program.stdout.readline()))


def wait_for_end(descriptor: int) -> None:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    assert poller.poll(60_000), "the watcher still runs"
    os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_program_leaves_no_setting_changed(root, backup_file, environment, number):
    program, watcher = start_program(root, backup_file, environment)
    assert {name: read(root, name) for name in VALUES_DURING} == VALUES_DURING
    program.send_signal(number)
    program.communicate()
    wait_for_end(watcher)
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE
    assert not backup_file.exists()


def test_if_the_watcher_is_killed_too_the_next_program_restores(root, backup_file, environment):
    program, watcher = start_program(root, backup_file, environment)
    signal.pidfd_send_signal(watcher, signal.SIGKILL)
    wait_for_end(watcher)
    program.kill()
    program.communicate()
    assert read(root, POWER_LIMIT_FILE) == "150000000"
    with MachineSettings(str(root), str(backup_file)) as settings:
        assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE
    assert settings.notes == [] and not backup_file.exists()


@pytest.fixture
def no_lock_wait(monkeypatch) -> None:
    monkeypatch.setattr(_machine_settings, "LOCK_WAIT_S", 0.0)


def kill_with_watcher(program: subprocess.Popen, watcher: int) -> None:
    signal.pidfd_send_signal(watcher, signal.SIGKILL)
    wait_for_end(watcher)
    program.kill()
    program.communicate()


def leave_settings_changed(root: Path, backup: Path, environment: dict) -> None:
    """Leaves the settings of REQUESTED_SETTINGS, and their previous values in the file."""
    kill_with_watcher(*start_program(root, backup, environment))


def restore(root: Path, backup: Path) -> list:
    """The notes of the next program."""
    with MachineSettings(str(root), str(backup)) as settings:
        return settings.notes


def test_what_cannot_be_restored_stays_in_the_file_for_a_later_program(root, backup_file, environment, monkeypatch):
    leave_settings_changed(root, backup_file, environment)
    lines = {line.split(",")[0]: line for line in backup_file.read_text().splitlines()}
    with monkeypatch.context() as patch:
        write = _machine_settings._SettingStore.write

        def fail(self, path, value):
            if path.endswith("_uw"):
                raise PermissionError(13, "Permission denied", path)
            write(self, path, value)

        patch.setattr(_machine_settings._SettingStore, "write", fail)
        notes = restore(root, backup_file)
        assert len(notes) == 1 and f"{root}/{POWER_LIMIT_FILE}' should be '200000000' (" in notes[0]
        assert backup_file.read_text().splitlines() == [lines[f"{root}/{POWER_LIMIT_FILE}"]]  # the others are restored
        assert read(root, CLOCK_FILE.format(1)) == "3000000"
    assert restore(root, backup_file) == [] and not backup_file.exists()
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE


def test_a_value_that_was_not_restored_is_the_previous_value_of_the_next_change(
    root, backup_file, environment, monkeypatch
):
    leave_settings_changed(root, backup_file, environment)
    with monkeypatch.context() as patch:
        patch.setattr(
            _machine_settings._SettingStore, "restore_value", lambda *_: (_ for _ in ()).throw(OSError(5, "EIO"))
        )
        settings = MachineSettings(str(root), str(backup_file)).__enter__()
        settings.apply({"cpu_power_limit_w": 100})
        assert (
            f"{root}/{POWER_LIMIT_FILE},200000000,100000000" in backup_file.read_text()
        )  # not the 150 W of the killed program
        assert len(backup_file.read_text().splitlines()) == 5
        settings.__exit__(None, None, None)
    assert read(root, POWER_LIMIT_FILE) == "200000000" and read(root, CLOCK_FILE.format(1)) == "2000000"
    assert restore(root, backup_file) == [] and not backup_file.exists()
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE


def test_a_write_that_fails_at_the_end_keeps_only_its_line(root, backup_file, monkeypatch, capsys):
    with pytest.raises(KeyboardInterrupt), MachineSettings(str(root), str(backup_file)) as settings:
        settings.apply(REQUESTED_SETTINGS)
        (root / GOVERNOR_FILE.format(0)).unlink()  # the CPU is switched off
        raise KeyboardInterrupt
    assert backup_file.read_text() == f"{root}/{GOVERNOR_FILE.format(0)},performance,powersave\n"
    assert "should be 'performance'" in capsys.readouterr().err  # an exception has no result with notes
    assert read(root, POWER_LIMIT_FILE) == "200000000"


def test_the_watcher_prints_what_it_could_not_restore(root, backup_file, environment):
    program, watcher = start_program(root, backup_file, environment, stderr=subprocess.PIPE)
    (root / GOVERNOR_FILE.format(0)).unlink()
    program.kill()
    _, errors = program.communicate()
    wait_for_end(watcher)
    assert b"should be 'performance'" in errors
    assert backup_file.read_text() == f"{root}/{GOVERNOR_FILE.format(0)},performance,powersave\n"


def test_the_watcher_loads_nothing_from_the_current_folder(root, backup_file, environment, tmp_path):
    folder = tmp_path / "planted"
    folder.mkdir()
    (folder / "csv.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    (tmp_path / "program.py").write_text(KILLED_PROGRAM)
    relative = os.path.relpath(environment["PYTHONPATH"], folder)
    environment = {**environment, "PYTHONPATH": os.pathsep.join([relative, environment["PYTHONPATH"]])}
    arguments = (os.path.relpath(root, folder), os.path.relpath(backup_file, folder))
    program, watcher = start_program(*arguments, environment, str(tmp_path / "program.py"), cwd=folder)
    program.kill()
    program.communicate()
    wait_for_end(watcher)
    assert not (tmp_path / "executed").exists()
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE and not backup_file.exists()


def test_a_previous_limit_above_the_reported_maximum_is_restored(root, backup_file, environment):
    (root / POWER_LIMIT_FILE).write_text("253000000\n")
    (root / CLOCK_FILE.format(1)).write_text("3600000\n")  # boost
    leave_settings_changed(root, backup_file, environment)
    assert restore(root, backup_file) == [] and not backup_file.exists()
    assert (read(root, POWER_LIMIT_FILE), read(root, CLOCK_FILE.format(1))) == ("253000000", "3600000")


def test_the_next_program_waits_until_the_watcher_has_restored(
    root, backup_file, environment, no_lock_wait, monkeypatch
):
    program, watcher = start_program(root, backup_file, environment)
    signal.pidfd_send_signal(watcher, signal.SIGSTOP)
    program.kill()
    program.communicate()
    next_settings = MachineSettings(str(root), str(backup_file))
    try:
        with pytest.raises(JoulemapError, match="another program"):
            next_settings.__enter__()
    except BaseException:
        signal.pidfd_send_signal(watcher, signal.SIGKILL)  # it is stopped and would stay
        raise
    monkeypatch.setattr(_machine_settings, "LOCK_WAIT_S", 60.0)
    try_lock = _machine_settings._try_lock
    attempts = []

    def try_lock_and_continue(lock) -> bool:
        attempts.append(try_lock(lock))
        if attempts == [False]:
            signal.pidfd_send_signal(watcher, signal.SIGCONT)
        return attempts[-1]

    monkeypatch.setattr(_machine_settings, "_try_lock", try_lock_and_continue)
    with next_settings as settings:
        assert attempts[0] is False and {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE
        wait_for_end(watcher)
        settings.apply({"cpu_power_limit_w": 100})
        assert read(root, POWER_LIMIT_FILE) == "100000000" and backup_file.exists()
    assert read(root, POWER_LIMIT_FILE) == "200000000" and settings.notes == []


def test_a_file_that_disappears_is_no_error(root, backup_file, environment, monkeypatch):
    leave_settings_changed(root, backup_file, environment)
    write = _machine_settings._SettingStore.write
    monkeypatch.setattr(_machine_settings._SettingStore, "write",
                        lambda *arguments: (backup_file.unlink(missing_ok=True), write(*arguments)))  # fmt: skip
    assert restore(root, backup_file) == []
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE


def test_programs_with_different_data_folders_share_the_lock_of_the_machine(root, tmp_path, no_lock_wait):
    (root / "run/lock").mkdir(parents=True)
    first_backup_path, second_backup_path = (str(tmp_path / name / "backup.csv") for name in ("a", "b"))
    with MachineSettings(str(root), first_backup_path), pytest.raises(JoulemapError, match="joulemap-settings.lock"):
        MachineSettings(str(root), second_backup_path).__enter__()
    with MachineSettings(str(root), second_backup_path):
        pass
    assert (root / "run/lock/joulemap-settings.lock").stat().st_mode & 0o777 == 0o644


def test_another_machine_that_shares_the_data_folder_restores_nothing(root, tmp_path, monkeypatch):
    monkeypatch.setenv("JOULEMAP_DATA", str(tmp_path / "shared"))
    boot = root / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("first-boot\n")
    with MachineSettings(str(root)) as settings:
        settings.apply(REQUESTED_SETTINGS)
        assert (tmp_path / "shared/machine-settings-first-boot.csv").exists()
        boot.write_text("second-boot\n")
        with MachineSettings(str(root)) as settings:  # its lock is beside its file, as the root has no /run/lock
            assert settings.notes == [] and read(root, POWER_LIMIT_FILE) == "150000000"
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE


def test_a_forked_child_does_not_keep_the_lock(root, backup_file, no_lock_wait):
    with MachineSettings(str(root), str(backup_file)):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(write_end)
            os.read(read_end, 1)  # until the test has ended
            os._exit(0)
    try:
        assert restore(root, backup_file) == []
    finally:
        os.close(write_end)
        os.close(read_end)
        os.waitpid(child, 0)


def test_a_forked_child_of_a_killed_program_does_not_keep_the_lock(root, backup_file, environment):
    # The child closes its copy of stdout: otherwise the test would wait for output of a program that failed.
    text = KILLED_PROGRAM.replace(
        "    print", "    os.fork() or os.close(1) or os.read(int(sys.argv[3]), 1) or os._exit(0)\n    print"
    )
    read_end, write_end = os.pipe()
    command = [sys.executable, "-c", text, str(root), str(backup_file), str(read_end)]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment,
                              pass_fds=(read_end,)) as program:  # fmt: skip
            watcher = os.pidfd_open(int(program.stdout.readline()))
            program.kill()
        wait_for_end(watcher)
        assert restore(root, backup_file) == []
        assert read(root, POWER_LIMIT_FILE) == "200000000"
    finally:
        os.close(write_end)
        os.close(read_end)


def test_a_forked_child_neither_restores_nor_changes_settings(root, backup_file):
    with MachineSettings(str(root), str(backup_file)) as settings:
        settings.apply(REQUESTED_SETTINGS)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                settings.__exit__(None, None, None)
                try:
                    settings.apply({"cpu_power_limit_w": 100})
                except JoulemapError:
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert {name: read(root, name) for name in VALUES_DURING} == VALUES_DURING
        assert backup_file.exists() and settings._watcher_process.poll() is None
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE


def test_two_programs_do_not_change_settings_at_once(root, backup_file, no_lock_wait):
    with MachineSettings(str(root), str(backup_file)), pytest.raises(JoulemapError, match="another program"):
        MachineSettings(str(root), str(backup_file)).__enter__()


@pytest.mark.parametrize("wanted", [{"cpu_power_limit_w": 400}, {"cpu_max_mhz": 100}, {"cpu_governor": "fast"},
                                    {"cpu_power_limit_w": -5}, {"cpu_power_limit_w": "much"},
                                    {"cpu_max_mhz": float("nan")}, {"cpu_max_mhz": float("inf")}])  # fmt: skip
def test_a_value_that_the_machine_does_not_offer_changes_nothing(root, backup_file, wanted):
    with MachineSettings(str(root), str(backup_file)) as settings, pytest.raises(JoulemapError):
        settings.apply(wanted)
    assert {name: read(root, name) for name in VALUES_BEFORE} == VALUES_BEFORE


def test_applying_an_unavailable_setting_raises_an_error(tmp_path, backup_file, monkeypatch):
    monkeypatch.setenv("JOULEMAP_NVML", str(tmp_path / "none.so"))
    with MachineSettings(str(tmp_path), str(backup_file)) as settings:
        with pytest.raises(JoulemapError, match="no setting for cpu_max_mhz"):
            settings.apply({"cpu_max_mhz": 2000})
        with pytest.raises(JoulemapError, match="no NVIDIA driver"):
            settings.apply({"gpu_power_limit_w": 300})


@pytest.mark.parametrize("line", ["/etc/passwd,root,x", "{limit},rm -rf,1", "{limit},\u00b2,1", "{limit},-5,1",
                                  "{governor},fast,1", "nvml:GPU-1/limit,5,1", "nvml:/clock_mhz,5,1"])  # fmt: skip
def test_lines_that_joulemap_cannot_have_written_are_refused(root, backup_file, line):
    backup_file.parent.mkdir()
    text = line.format(limit=root / POWER_LIMIT_FILE, governor=root / GOVERNOR_FILE.format(0)) + "\n"
    backup_file.write_text(f"{text}{root / CLOCK_FILE.format(1)},2500000,1\n")
    backup_file.chmod(0o600)
    notes = restore(root, backup_file)
    assert len(notes) == 1 and read(root, POWER_LIMIT_FILE) == "200000000"
    assert read(root, CLOCK_FILE.format(1)) == "2500000" and backup_file.read_text() == text  # for its owner to decide


@pytest.mark.parametrize("text", ["{limit},1\n", "\0,1,2\n", "{limit},\udcff,1\n"])
def test_a_file_that_joulemap_cannot_have_written_is_renamed(root, backup_file, text):
    backup_file.parent.mkdir()
    backup_file.write_bytes(text.format(limit=root / POWER_LIMIT_FILE).encode(errors="surrogateescape"))
    backup_file.chmod(0o600)
    original_bytes = backup_file.read_bytes()
    notes = restore(root, backup_file)
    assert len(notes) == 1 and read(root, POWER_LIMIT_FILE) == "200000000"
    # Python 3.11 reads NUL as a character: the line is then refused, and the file keeps its name.
    assert (backup_file if backup_file.exists() else Path(f"{backup_file}.refused")).read_bytes() == original_bytes


def test_a_file_that_others_can_write_is_refused(root, backup_file):
    backup_file.parent.mkdir()
    backup_file.write_text(f"{root / POWER_LIMIT_FILE},1000000,2\n")
    backup_file.chmod(0o666)
    assert "other users can write" in restore(root, backup_file)[0]
    assert read(root, POWER_LIMIT_FILE) == "200000000" and not backup_file.exists()


class Gpu:
    """The functions of NVML that set limits, for one GPU."""

    def __init__(self) -> None:
        self.limit_mw, self.clock_mhz = 300_000, None

    def nvmlInit_v2(self) -> int:  # noqa: N802
        return 0

    def __getattr__(self, name: str):
        calls = {
            "nvmlDeviceGetCount_v2": lambda count: self.store(count, 1),
            "nvmlDeviceGetHandleByIndex_v2": lambda index, device: 0,
            "nvmlDeviceGetHandleByUUID": lambda uuid, device: 0 if uuid == b"GPU-1" else 2,
            "nvmlDeviceGetUUID": lambda device, text, size: self.store_text(text, b"GPU-1"),
            "nvmlDeviceGetPowerManagementLimit": lambda device, limit: self.store(limit, self.limit_mw),
            "nvmlDeviceGetPowerManagementLimitConstraints": lambda device, low, high:
                self.store(low, 100_000) or self.store(high, 400_000),
            "nvmlDeviceGetMaxClockInfo": lambda device, kind, high: self.store(high, 1980),
            "nvmlDeviceSetPowerManagementLimit": lambda device, limit: self.set("limit_mw", limit.value),
            "nvmlDeviceSetGpuLockedClocks": lambda device, low, high: self.set("clock_mhz", high.value),
            "nvmlDeviceResetGpuLockedClocks": lambda device: self.set("clock_mhz", None),
        }  # fmt: skip
        if name not in calls:
            raise AttributeError(name)
        return calls[name]

    def store(self, reference, value: int) -> int:
        reference._obj.value = value
        return 0

    def store_text(self, text, value: bytes) -> int:
        text.value = value
        return 0

    def set(self, name: str, value) -> int:
        setattr(self, name, value)
        return 0


def test_limits_and_clocks_of_gpus_are_restored(root, backup_file, monkeypatch):
    gpu = Gpu()
    monkeypatch.setattr(_machine_settings.ctypes, "CDLL", lambda name: gpu)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with MachineSettings(str(root), str(backup_file)) as settings:
        settings.apply({"gpu_power_limit_w": 250, "gpu_clock_mhz": 1500})
        assert (gpu.limit_mw, gpu.clock_mhz) == (250_000, 1500)
        assert "nvml:GPU-1/power_limit_mw,300000,250000" in backup_file.read_text()
        with pytest.raises(JoulemapError, match="100000 to 400000"):
            settings.apply({"gpu_power_limit_w": 500})
    assert (gpu.limit_mw, gpu.clock_mhz) == (300_000, None)


def test_gpus_that_the_process_may_not_use_are_not_changed(root, backup_file, monkeypatch):
    gpu = Gpu()
    monkeypatch.setattr(_machine_settings.ctypes, "CDLL", lambda name: gpu)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with MachineSettings(str(root), str(backup_file)) as settings, pytest.raises(JoulemapError, match="no setting"):
        settings.apply({"gpu_power_limit_w": 250})
    assert gpu.limit_mw == 300_000


def leave_gpu_settings_changed(gpu: Gpu, root: Path, backup: Path) -> None:
    backup.parent.mkdir()
    backup.write_text(f"nvml:GPU-1/power_limit_mw,300000,250000\n{root / POWER_LIMIT_FILE},200000000,150000000\n")
    backup.chmod(0o600)
    gpu.limit_mw = 250_000
    (root / POWER_LIMIT_FILE).write_text("150000000\n")


def test_gpus_hidden_from_the_next_program_are_restored(root, backup_file, monkeypatch):
    gpu = Gpu()
    leave_gpu_settings_changed(gpu, root, backup_file)
    monkeypatch.setattr(_machine_settings.ctypes, "CDLL", lambda name: gpu)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert restore(root, backup_file) == [] and not backup_file.exists()
    assert gpu.limit_mw == 300_000


@pytest.mark.parametrize("failing", ["nvmlInit_v2", "nvmlDeviceGetHandleByUUID"])
def test_a_gpu_that_does_not_answer_keeps_its_line_and_stops_no_other(root, backup_file, monkeypatch, failing):
    gpu, broken = Gpu(), Gpu()
    setattr(broken, failing, lambda *_: 15)  # the GPU is lost
    leave_gpu_settings_changed(gpu, root, backup_file)
    monkeypatch.setattr(_machine_settings.ctypes, "CDLL", lambda name: broken)
    notes = restore(root, backup_file)
    assert len(notes) == 1 and "GPU-1/power_limit_mw' should be '300000'" in notes[0]
    assert read(root, POWER_LIMIT_FILE) == "200000000"
    monkeypatch.setattr(_machine_settings.ctypes, "CDLL", lambda name: gpu)
    assert restore(root, backup_file) == [] and gpu.limit_mw == 300_000 and not backup_file.exists()


def test_a_machine_without_driver_keeps_the_line_of_its_gpu(root, backup_file, monkeypatch, tmp_path):
    leave_gpu_settings_changed(Gpu(), root, backup_file)
    monkeypatch.setenv("JOULEMAP_NVML", str(tmp_path / "none.so"))
    notes = restore(root, backup_file)
    assert len(notes) == 1 and "no NVIDIA driver" in notes[0] and "remove the factor" not in notes[0]
    assert backup_file.read_text() == "nvml:GPU-1/power_limit_mw,300000,250000\n"


def test_tune_applies_the_setting_of_each_trial_and_restores(root, backup_file, monkeypatch):
    pytest.importorskip("optuna")
    from joulemap import _tune

    joules = [0.0]

    class Window:
        def __init__(self, name: str) -> None:
            self.first, self.last = joules[0], None

        def end(self) -> None:
            self.last = joules[0] if self.last is None else self.last

        def peek(self):
            value = (joules[0] if self.last is None else self.last) - self.first
            return jm.Energy(value, 0.0, value, None, "measured", "")

        wait = peek

    monkeypatch.setattr(_tune, "begin", Window)
    monkeypatch.setattr(_tune, "MachineSettings", lambda: MachineSettings(str(root), str(backup_file)))
    power_limits_w = []

    def train(config, trial):
        power_limits_w.append(int(read(root, POWER_LIMIT_FILE)) // 1_000_000)
        joules[0] += {200: 100, 150: 80, 100: 90}[power_limits_w[-1]]
        trial.report(0, accuracy=1.0)

    space = {"cpu_power_limit_w": [None, 150, 100]}
    result = jm.tune(train, space, at_least={"accuracy": 0.9}, runs_planned=100, set_machine=True)
    assert sorted(power_limits_w) == [100, 150, 200] and power_limits_w[0] == 200
    assert result.best == {"cpu_power_limit_w": 150}
    assert read(root, POWER_LIMIT_FILE) == "200000000" and not backup_file.exists()
