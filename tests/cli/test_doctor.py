"""joulemap doctor: its output for each fake machine, and its JSON contract."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

MACHINES = [
    "amd-zen4", "frozen-counter", "garbage", "intel-2socket", "mmio-duplicate",
    "no-permission", "no-sensors", "psys-laptop", "wrap",
]  # fmt: skip


def find_sensor(report: dict, name: str) -> dict:
    return next(candidate for candidate in report["sensors"] if candidate["name"] == name)


# In the order of src/sensors/backends.cc.
SENSORS = ["perf_event", "powercap", "nvml", "hwmon", "estimate"]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_sensor_has_a_state_and_a_reason_on_every_machine(joulemap, sysroots, machine):
    outcome = joulemap("doctor", "--json", "--sysroot", sysroots / machine)
    assert outcome.code == 0
    report = outcome.json
    assert report["schema"] == "joulemap.doctor/1"
    assert [entry["name"] for entry in report["sensors"]] == SENSORS
    for entry in report["sensors"]:
        assert entry["state"] in {"measured", "estimated", "denied", "absent"}
        assert entry["reason"]
        assert "remedy" in entry
        assert bool(entry["channels"]) == (entry["state"] in {"measured", "estimated"})
        for channel in entry["channels"]:
            assert channel["unit"] in {"J", "W"}
            assert channel["kind"] in {"counter", "gauge"}


def test_doctor_succeeds_on_the_real_machine(joulemap):
    outcome = joulemap("doctor")
    assert outcome.code == 0
    assert outcome.out.startswith("joulemap ")
    assert not outcome.err


def test_sysroot_is_taken_before_and_after_the_verb(joulemap, sysroots):
    machine = sysroots / "intel-2socket"
    sysroot_first_outcome = joulemap("--sysroot", machine, "doctor", "--json")
    sysroot_last_outcome = joulemap("doctor", "--sysroot", machine, "--json")
    assert sysroot_first_outcome.json == sysroot_last_outcome.json


def test_two_sockets_show_four_counters(joulemap, sysroots):
    report = joulemap("doctor", "--json", "--sysroot", sysroots / "intel-2socket").json
    names = {channel["name"] for channel in find_sensor(report, "powercap")["channels"]}
    assert names == {"package-0", "package-1", "dram-0", "dram-1"}


def test_a_virtual_machine_is_reported_to_have_no_counters(joulemap, sysroots):
    report = joulemap("doctor", "--json", "--sysroot", sysroots / "no-sensors").json
    assert "virtual machine" in find_sensor(report, "powercap")["reason"]
    assert report["host"]["virtual"] is True
    assert find_sensor(report, "estimate")["state"] == "estimated"


def test_control_characters_of_a_file_never_reach_the_terminal(joulemap, sysroots):
    for flags in ([], ["--json"]):
        assert "\x1b" not in joulemap("doctor", "--sysroot", sysroots / "garbage", *flags).out


def test_an_empty_machine_is_no_error(joulemap, tmp_path):
    report = joulemap("doctor", "--json", "--sysroot", tmp_path).json
    assert {entry["state"] for entry in report["sensors"]} == {"absent"}


def test_unknown_sensors_and_verbs_are_wrong_usage(joulemap):
    assert joulemap("doctor", "--sensors", "rapl").code == 2
    assert joulemap("docter").code == 2
    assert joulemap("doctor", "--", "true").code == 2
    assert joulemap("--help").code == 0
    assert joulemap("--version").out.startswith("joulemap ")


def test_a_command_to_paste_is_on_one_line(joulemap, sysroots, tmp_path):
    machine = tmp_path / "machine"
    shutil.copytree(sysroots / "intel-2socket", machine)
    shutil.rmtree(machine / "sys" / "class" / "powercap")
    lines = [line for line in joulemap("doctor", "--sysroot", machine).out.splitlines() if "sudo" in line]
    assert lines and all(line.strip() == "-> sudo modprobe intel_rapl_msr" for line in lines)


def test_output_goes_to_a_file_when_asked(joulemap, tmp_path):
    target = tmp_path / "doctor.json"
    outcome = joulemap("doctor", "--json", "-o", target)
    assert outcome.code == 0 and not outcome.out
    assert json.loads(target.read_text())["schema"] == "joulemap.doctor/1"
    assert joulemap("doctor", "-o", tmp_path / "no" / "such" / "folder").code == 1


def test_a_full_disk_is_reported_as_a_failure(binaries):
    with open("/dev/full", "w") as full_device:
        process = subprocess.run(
            [binaries / "joulemap", "doctor"], stdout=full_device, stderr=subprocess.PIPE, text=True
        )
    assert process.returncode == 1
    assert "No space left" in process.stderr


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv to lose rights")
def test_a_user_without_permission_gets_the_exact_remedy(binaries, sysroots, public_directory):
    machine = public_directory / "machine"
    shutil.copytree(sysroots / "no-permission", machine, symlinks=True)
    for counter in machine.glob("sys/class/powercap/*/energy_uj"):
        counter.chmod(0o400)
    program = shutil.copy(binaries / "joulemap", public_directory / "joulemap")
    nobody_command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    process = subprocess.run(
        [*nobody_command, program, "doctor", "--json", "--sysroot", machine], capture_output=True, text=True, cwd="/"
    )
    powercap = find_sensor(json.loads(process.stdout), "powercap")
    assert powercap["state"] == "denied"
    assert "energy_uj" in powercap["reason"] and "ermission denied" in powercap["reason"]
    assert "setcap cap_dac_read_search" in powercap["remedy"] or "--security-opt" in powercap["remedy"]
    assert "PLATYPUS" in powercap["remedy"]

    stat_process = subprocess.run(
        [*nobody_command, program, "stat", "--json", "--sysroot", machine, "--", "true"],
        capture_output=True,
        text=True,
        cwd="/",
    )
    run = json.loads(stat_process.stdout)
    assert stat_process.returncode == 0
    domains = {domain["name"]: domain for domain in run["runs"][0]["domains"]}
    assert domains["package-0"]["provenance"] == domains["dram-0"]["provenance"] == "estimated"
    assert domains["core-0"]["joules"] is None and domains["core-0"]["reason"] == "denied"
    assert "sensor_denied" in {diagnostic["code"] for diagnostic in run["diagnostics"]}
