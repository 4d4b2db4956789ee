# SPDX-License-Identifier: Apache-2.0
"""Settings of the machine that jm.tune changes with permission: power limits, clocks, governors.

The previous values are first written to a file of the same format as that of experiments
(src/experiment/run/machine_settings.h). They are restored at the end; if the program is killed, by a child process that
watches it; and if that is killed, too, by the next program. What cannot be restored stays in the file.

Only one program of a machine changes settings. It shares its lock with the child process: the lock is free only after
the values are restored. Only the process that entered the `with` block restores, not its forked children."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import fcntl
import io
import math
import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Optional

from ._library import JoulemapError
from ._output import replace_file_atomically

# Factors of GPUs, and the last part of their paths. Those of CPUs are files in sysfs (kernel documentation:
# admin-guide/pm/cpufreq.rst, power/powercap/powercap.rst).
GPU_SETTINGS = {"gpu_power_limit_w": "power_limit_mw", "gpu_clock_mhz": "clock_mhz"}
SETTING_NAMES = (*GPU_SETTINGS, "cpu_power_limit_w", "cpu_max_mhz", "cpu_governor")
UNLOCKED_CLOCK = "unlocked"  # value of a GPU clock that is not locked: NVML cannot read locked clocks
GOVERNORS = "performance powersave userspace ondemand conservative schedutil"
LOCK_FILE = "run/lock/joulemap-settings.lock"  # one for each machine
LOCK_WAIT_S = 10.0  # longest wait for the lock: a watcher may still restore, and loading NVML takes seconds
LOCK_POLL_PERIOD_S = 0.02
# A driver or a file without the expected content; only its own line is then not restored.
RESTORE_ERRORS = (JoulemapError, OSError, ValueError, csv.Error)


class SettingChange(NamedTuple):
    """A setting, its previous value and the new one."""

    path: str
    before: str
    after: str


def backup_path(root: str = "") -> str:
    """The file with previous values, in the data folder. Its name contains the identifier of the boot: other machines
    can share the folder, and a restart resets the settings."""
    folder = os.environ.get("JOULEMAP_DATA") or os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "joulemap"
    )
    boot = _read_text(f"{root}/proc/sys/kernel/random/boot_id") or os.uname().nodename
    return os.path.join(folder, f"machine-settings-{boot}.csv")


class MachineSettings:
    """Applies settings while its `with` block runs. Unused, it has no effect. `root` contains other folders /sys, /proc
    and /run, for tests."""

    def __init__(self, root: str = "", path: Optional[str] = None) -> None:
        self.notes: list = []  # what could not be restored
        self._system_root = os.path.abspath(root) if root else ""
        self._backup_path = os.path.abspath(path or backup_path(self._system_root))
        self._setting_store = _SettingStore(self._system_root)
        self._setting_changes: dict = {}  # path -> SettingChange with the value before the first change
        self._unrestored_changes: list = []  # changes that stay in the file
        self._lock: Any = None
        self._owner_pid: Optional[int] = None  # process that entered the block
        self._watcher_process: Optional[subprocess.Popen] = None

    def __enter__(self) -> MachineSettings:
        os.makedirs(os.path.dirname(self._backup_path), exist_ok=True)
        self._lock = _acquire_lock(self._system_root, self._backup_path)
        self._owner_pid = os.getpid()
        try:
            notes, self._unrestored_changes = restore_from_backup(self._backup_path, self._setting_store)
        except BaseException:
            self._release_lock()
            raise
        self.notes += notes
        return self

    def __exit__(self, exception_type: Any, *exception: object) -> None:
        if self._owner_pid != os.getpid():
            return
        try:
            self.restore()
        except BaseException:  # Ctrl-C
            self.restore()
            raise
        finally:
            if exception_type is not None:  # the notes do not reach a result
                _print_notes(self.notes)
            self._release_lock()

    def _release_lock(self) -> None:
        if self._watcher_process is None:  # otherwise it holds the lock until it has restored
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # also for forked children, which have inherited the descriptor
        self._lock.close()

    def apply(self, requested_values: Mapping) -> None:
        """Changes settings: factor -> value; None restores the previous value. If one cannot be changed, all are
        restored."""
        if not requested_values:
            return
        if self._owner_pid != os.getpid():
            raise JoulemapError("a forked process cannot change settings of the machine: end it inside train")
        try:
            values_by_path = {
                path: value
                for name, factor in requested_values.items()
                for path, value in self._list_path_values(name, factor)
            }
            for path in values_by_path:
                if path not in self._setting_changes:
                    self._remember_value(path)
            self._save_backup(values_by_path)
            for path, value in values_by_path.items():
                self._setting_store.write(path, value)
        except OSError as error:
            self.restore()
            raise JoulemapError(f"a setting cannot be changed ({error}): run as root, or remove the factor") from error

    def _list_path_values(self, name: str, value: Any) -> list:
        """(path, value as text) of each device."""
        try:
            setting_paths = self._setting_store.find_setting_paths(name)
        except JoulemapError as error:
            raise JoulemapError(f"{error}: remove the factor {name}") from error
        if not setting_paths:
            raise JoulemapError(f"this machine has no setting for {name}: remove the factor")
        path_values = []
        for path in setting_paths:
            if value is not None:
                value_text = self._setting_store.format_value(name, value)
                if reason := self._setting_store.invalid_value_reason(path, value_text):
                    raise JoulemapError(f"{name}={value!r} is not possible: {reason}")
                path_values.append((path, value_text))
            elif path in self._setting_changes:
                path_values.append((path, self._setting_changes[path].before))
        return path_values

    def _remember_value(self, path: str) -> None:
        for change in self._unrestored_changes:
            if change.path == path and not self._setting_store.invalid_backup_reason(path, change.before):
                self._unrestored_changes.remove(change)
                self._setting_changes[path] = change  # the present value is that of a killed program
                return
        self._setting_changes[path] = SettingChange(path, self._setting_store.read(path), "")

    def _save_backup(self, values_by_path: Mapping) -> None:
        """Writes the previous values, and starts the process that restores them, before anything changes."""
        for path, value in values_by_path.items():
            self._setting_changes[path] = self._setting_changes[path]._replace(after=value)
        _write_backup(self._backup_path, [*self._unrestored_changes, *self._setting_changes.values()])
        if self._watcher_process is None and self._setting_changes:
            self._watcher_process = _start_watcher(self._backup_path, self._system_root, self._lock.fileno())

    def restore(self) -> None:
        """Restores all previous values. Values that cannot be written stay in the file for the next program."""
        if self._setting_changes:
            notes, unrestored_changes = _restore_changes(
                self._setting_changes.values(), self._setting_store.write, self._backup_path
            )
            unrestored_changes = [*self._unrestored_changes, *unrestored_changes]
            notes += _rewrite_backup(self._backup_path, unrestored_changes)
            self.notes += notes
            self._unrestored_changes, self._setting_changes = unrestored_changes, {}
        if self._watcher_process is not None:
            self._watcher_process.kill()  # the values are restored already
            self._watcher_process.wait()
            self._watcher_process.stdout.close()  # type: ignore[union-attr]
            self._watcher_process = None


def restore_from_backup(path: str, machine: _SettingStore) -> tuple:
    """Restores what a killed program left changed. Returns notes on what was not restored, and these changes, which
    stay in the file. A file that joulemap cannot have written is renamed."""
    try:
        changes = _read_backup(path)
    except FileNotFoundError:
        return [], []
    except RESTORE_ERRORS as error:
        note = f"settings were not restored: {error}; check the power limits and clocks of this machine"
        with contextlib.suppress(OSError):
            os.replace(path, f"{path}.refused")  # it must not be overwritten
            note += f" with {path}.refused"
        return [note], []
    notes, unrestored_changes = _restore_changes(changes, machine.restore_value, path)
    return notes + _rewrite_backup(path, unrestored_changes), unrestored_changes


def _restore_changes(changes: Iterable, write_setting: Callable, backup_file: str) -> tuple:
    """Writes previous values. Returns notes on those that were not written, and these changes."""
    notes, unrestored_changes = [], []
    for change in changes:
        try:
            write_setting(change.path, change.before)
        except RESTORE_ERRORS as error:
            unrestored_changes.append(change)
            notes.append(
                f"a setting was not restored: {change.path[:200]!r} should be {change.before[:200]!r} ({error}); "
                f"the next search tries again unless the line is removed from {backup_file}"
            )
    return notes, unrestored_changes


def _rewrite_backup(path: str, unrestored_changes: list) -> list:
    """Keeps only these changes in the file, which is removed if there are none. Returns notes on a failure."""
    try:
        if unrestored_changes:
            _write_backup(path, unrestored_changes)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)
    except RESTORE_ERRORS as error:
        return [f"settings were restored, but {path} still contains their previous values ({error}): remove it"]
    return []


def _write_backup(path: str, changes: Iterable) -> None:
    csv_buffer = io.StringIO(newline="")
    csv.writer(csv_buffer, lineterminator="\n").writerows(changes)
    with replace_file_atomically(path) as temporary_path, open(temporary_path, "w", encoding="utf-8") as file:
        file.write(csv_buffer.getvalue())


def _print_notes(notes: Iterable) -> None:
    for note in notes:
        with contextlib.suppress(OSError, ValueError):  # the terminal may be gone
            if sys.stderr is not None:
                print(f"joulemap: {note}", file=sys.stderr, flush=True)


def _acquire_lock(root: str, backup_file: str) -> Any:
    """The locked file: that of the machine or, where it cannot be opened, one beside the backup. Waits for a watcher
    that still restores."""
    lock_path = f"{root}/{LOCK_FILE}"
    try:
        lock_file = open(lock_path, opener=_open_lock)  # noqa: SIM115 - held until the end
    except OSError:
        lock_path = f"{backup_file}.lock"
        lock_file = open(lock_path, opener=_open_lock)  # noqa: SIM115
    deadline_s = time.monotonic() + LOCK_WAIT_S
    try:
        while not _try_lock(lock_file):
            if time.monotonic() >= deadline_s:
                reason = f"another program changes settings of this machine ({lock_path})"
                raise JoulemapError(f"{reason}: wait for it, or end it")
            time.sleep(LOCK_POLL_PERIOD_S)
    except OSError as error:
        lock_file.close()
        raise JoulemapError(f"{lock_path} cannot be locked ({error}): set JOULEMAP_DATA to a local folder") from error
    except BaseException:
        lock_file.close()
        raise
    return lock_file


def _try_lock(lock_file: Any) -> bool:
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_lock(path: str, flags: int) -> int:
    """Opens a file that may belong to another user, for reading: that suffices for a lock."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:  # another program has just created it
        return os.open(path, flags)
    os.fchmod(descriptor, 0o644)  # despite the umask: other users open it, too
    return descriptor


def _read_backup(path: str) -> list:
    """The changes in the file. Refuses a file that another user could have written, who would choose what is
    restored."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="utf-8", newline="") as file:
        file_status = os.fstat(descriptor)
        if not stat.S_ISREG(file_status.st_mode):
            raise ValueError(f"{path} is not a regular file")
        if file_status.st_uid != os.geteuid() or file_status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError(f"other users can write {path}")
        records = list(csv.reader(file))
    if any(len(record) != 3 for record in records):
        raise ValueError(f"a line of {path} does not have three fields")
    return [SettingChange(*record) for record in records]


class _SettingStore:
    """Reads and writes settings. A path is a file in sysfs, or nvml:UUID/power_limit_mw."""

    def __init__(self, root: str) -> None:
        self._system_root = root
        self._loaded_nvml: Optional[_Nvml] = None

    def _get_nvml(self) -> _Nvml:
        if self._loaded_nvml is None:
            self._loaded_nvml = _Nvml()
        return self._loaded_nvml

    def find_setting_paths(self, name: str) -> list:
        """All paths of a factor on this machine."""
        if name in GPU_SETTINGS:
            return [f"nvml:{uuid}/{GPU_SETTINGS[name]}" for uuid in self._get_nvml().list_gpu_uuids()]
        if name == "cpu_power_limit_w":
            folder = f"{self._system_root}/sys/class/powercap"
            powercap_zones = [
                f"{folder}/{powercap_zone}" for powercap_zone in _list_folder(folder) if powercap_zone.count(":") == 1
            ]
            files = [
                f"{powercap_zone}/constraint_0_power_limit_uw"
                for powercap_zone in powercap_zones
                if _read_text(f"{powercap_zone}/name").startswith("package")
            ]
        else:
            folder = f"{self._system_root}/sys/devices/system/cpu"
            file_name = "scaling_governor" if name == "cpu_governor" else "scaling_max_freq"
            files = [
                f"{folder}/{cpu}/cpufreq/{file_name}"
                for cpu in _list_folder(folder)
                if cpu[:3] == "cpu" and cpu[3:].isdigit()
            ]
        return [path for path in files if os.path.isfile(path)]

    def format_value(self, name: str, value: Any) -> str:
        """The value of a factor in the unit of its path."""
        scale_by_setting = {
            "gpu_power_limit_w": 1000,
            "gpu_clock_mhz": 1,
            "cpu_power_limit_w": 1_000_000,
            "cpu_max_mhz": 1000,
        }
        if name == "cpu_governor":
            return str(value)
        if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
            raise JoulemapError(f"{name} must be a positive number or None, not {value!r}")
        return str(round(value * scale_by_setting[name]))

    def read(self, path: str) -> str:
        return self._get_nvml().read(path) if path.startswith("nvml:") else _read_text(path, strict=True)

    def write(self, path: str, value: str) -> None:
        if path.startswith("nvml:"):
            self._get_nvml().write(path, value)
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.write(descriptor, (value + "\n").encode())
        finally:
            os.close(descriptor)

    def invalid_value_reason(self, path: str, value: str) -> str:
        """Why the device does not offer this value; empty if it does."""
        if path.endswith("/scaling_governor"):
            available_governors = (
                _read_text(path.replace("scaling_governor", "scaling_available_governors")) or GOVERNORS
            )
            return "" if value in available_governors.split() else f"the governors are {available_governors}"
        if path.endswith("/clock_mhz") and value == UNLOCKED_CLOCK:
            return ""
        if not _is_decimal(value):
            return f"{value!r} is not a number"
        if path.startswith("nvml:"):
            low_text, high_text = self._get_nvml().value_range(path)
        elif path.endswith("/scaling_max_freq"):
            low_text, high_text = (
                _read_text(path.replace("scaling_max_freq", f"cpuinfo_{bound_name}_freq"))
                for bound_name in ("min", "max")
            )
        else:
            low_text, high_text = "1", _read_text(path.replace("power_limit_uw", "max_power_uw"))
        # The kernel reports a maximum of 0 where it is unknown.
        is_inside = (not low_text or int(value) >= int(low_text)) and (
            not high_text or int(high_text) == 0 or int(value) <= int(high_text)
        )
        return "" if is_inside else f"{path} offers {low_text or '?'} to {high_text or '?'}, not {value}"

    def restore_value(self, path: str, previous_value: str) -> None:
        """Writes a previous value from the file, which joulemap may not have written."""
        if reason := self.invalid_backup_reason(path, previous_value):
            raise ValueError(reason)
        self.write(path, previous_value)

    def invalid_backup_reason(self, path: str, previous_value: str) -> str:
        """Why joulemap cannot have written a line of the file; empty if the line is valid. The value may lie outside
        the range: firmware sets power limits above the maximum that the kernel reports."""
        if path.startswith("nvml:"):
            # Any GPU, also one that CUDA_VISIBLE_DEVICES now excludes. write() fails if it is absent.
            uuid, _, setting_kind = path[len("nvml:") :].rpartition("/")
            is_known = bool(uuid) and uuid.isascii() and setting_kind in GPU_SETTINGS.values()
        else:
            is_known = any(path in self.find_setting_paths(name) for name in SETTING_NAMES if name not in GPU_SETTINGS)
        if not is_known:
            return f"{path[:200]!r} is not a setting of this machine"
        if path.endswith("/scaling_governor"):
            return self.invalid_value_reason(path, previous_value)
        if path.endswith("/clock_mhz") and previous_value == UNLOCKED_CLOCK:
            return ""
        return "" if _is_decimal(previous_value) else f"{previous_value[:200]!r} is not a number"


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.isdigit()


class _Nvml:
    """The part of NVML that sets power limits and clocks; JOULEMAP_NVML names another library. Power limits are in
    mW."""

    def __init__(self) -> None:
        library_name = os.environ.get("JOULEMAP_NVML") or "libnvidia-ml.so.1"
        try:
            self._nvml_library = ctypes.CDLL(library_name)
        except OSError as error:
            raise JoulemapError(f"no NVIDIA driver was found ({error})") from error
        self._call_nvml("nvmlInit_v2")

    def _call_nvml(self, function: str, *arguments: Any) -> None:
        try:
            error_code = getattr(self._nvml_library, function)(*arguments)
        except AttributeError as error:
            raise OSError(f"the driver has no {function}") from error
        if error_code != 0:
            raise OSError(f"{function} returned error {error_code}" + (": no permission" if error_code == 4 else ""))

    def list_gpu_uuids(self) -> list:
        """GPUs that this process may use (CUDA_VISIBLE_DEVICES), by UUID."""
        device_count = ctypes.c_uint()
        self._call_nvml("nvmlDeviceGetCount_v2", ctypes.byref(device_count))
        gpu_uuids = []
        for index in range(device_count.value):
            device, uuid_buffer = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            self._call_nvml("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
            self._call_nvml("nvmlDeviceGetUUID", device, uuid_buffer, ctypes.c_uint(96))
            gpu_uuids.append(uuid_buffer.value.decode())
        visible_devices = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible_devices is None:
            return gpu_uuids
        visible_entries = [entry.strip() for entry in visible_devices.split(",") if entry.strip()]
        return [
            uuid for index, uuid in enumerate(gpu_uuids)
            if any(entry == str(index) or (entry[:4] == "GPU-" and uuid.startswith(entry)) for entry in visible_entries)
        ]  # fmt: skip

    def _device_handle(self, path: str) -> tuple:
        uuid, setting_kind = path[len("nvml:") :].rsplit("/", 1)
        device = ctypes.c_void_p()
        self._call_nvml("nvmlDeviceGetHandleByUUID", uuid.encode(), ctypes.byref(device))
        return device, setting_kind

    def read(self, path: str) -> str:
        device, setting_kind = self._device_handle(path)
        if setting_kind == "clock_mhz":
            return UNLOCKED_CLOCK
        power_limit_mw = ctypes.c_uint()
        self._call_nvml("nvmlDeviceGetPowerManagementLimit", device, ctypes.byref(power_limit_mw))
        return str(power_limit_mw.value)

    def write(self, path: str, value: str) -> None:
        device, setting_kind = self._device_handle(path)
        if setting_kind == "power_limit_mw":
            self._call_nvml("nvmlDeviceSetPowerManagementLimit", device, ctypes.c_uint(int(value)))
        elif value == UNLOCKED_CLOCK:
            self._call_nvml("nvmlDeviceResetGpuLockedClocks", device)
        else:
            clock_mhz = ctypes.c_uint(int(value))
            self._call_nvml("nvmlDeviceSetGpuLockedClocks", device, clock_mhz, clock_mhz)

    def value_range(self, path: str) -> tuple:
        """(least, greatest) value as text; empty if unknown."""
        device, setting_kind = self._device_handle(path)
        if setting_kind == "clock_mhz":
            high = ctypes.c_uint()
            self._call_nvml("nvmlDeviceGetMaxClockInfo", device, ctypes.c_int(1), ctypes.byref(high))  # NVML_CLOCK_SM
            return "1", str(high.value)
        low, high = ctypes.c_uint(), ctypes.c_uint()
        self._call_nvml("nvmlDeviceGetPowerManagementLimitConstraints", device, ctypes.byref(low), ctypes.byref(high))
        return str(low.value), str(high.value)


def _read_text(path: str, strict: bool = False) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(4096).strip()
    except OSError:
        if strict:
            raise
        return ""


def _list_folder(folder: str) -> list:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _start_watcher(path: str, root: str, lock_descriptor: int) -> subprocess.Popen:
    """Starts the process that restores the settings if this one ends without doing so. Returns when it watches. It
    shares the lock, so that no other program changes settings before they are restored."""
    package_parent_folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    # The process often runs as root: it must not load modules and libraries of the current folder.
    python_path_entries = [
        os.path.abspath(path_entry) for path_entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path_entry
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package_parent_folder, *python_path_entries])}
    if os.path.dirname(os.environ.get("JOULEMAP_NVML", "")):  # a plain name is searched in the system's folders
        environment["JOULEMAP_NVML"] = os.path.abspath(os.environ["JOULEMAP_NVML"])
    command = [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else []), "-m"]
    arguments = [f"{__package__}._machine_settings", path, root, str(os.getpid()), str(lock_descriptor)]
    # Its own session: Ctrl-C and the end of the terminal do not reach it.
    watcher = subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       env=environment, cwd="/", pass_fds=(lock_descriptor,),
                                       start_new_session=True)  # fmt: skip
    assert watcher.stdout is not None
    if watcher.stdout.readline() != b"watching\n":
        watcher.kill()
        watcher.wait()
        watcher.stdout.close()
        raise OSError("the process that restores settings did not start")
    return watcher


def _wait_for_end_of_parent(parent_pid: int) -> None:
    """Returns when the parent process has ended."""
    try:
        process_descriptor = os.pidfd_open(parent_pid)
    except (AttributeError, OSError):  # before Linux 5.3
        while os.getppid() == parent_pid:
            time.sleep(0.5)
        return
    exit_poller = select.poll()
    exit_poller.register(process_descriptor, select.POLLIN)
    while os.getppid() == parent_pid and not exit_poller.poll():
        pass


def _restore_at_end_of_parent(path: str, root: str, parent_pid: int, lock_descriptor: int) -> None:
    for signal_number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signal_number, signal.SIG_IGN)
    sys.stdout.write("watching\n")
    sys.stdout.flush()
    _wait_for_end_of_parent(parent_pid)
    notes, _ = restore_from_backup(path, _SettingStore(root))
    fcntl.flock(lock_descriptor, fcntl.LOCK_UN)  # children of the ended program may still have the descriptor open
    _print_notes(notes)


if __name__ == "__main__":
    _restore_at_end_of_parent(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
