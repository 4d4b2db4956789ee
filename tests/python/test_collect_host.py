"""The collector and its host: what was measured while it was disturbed, and where the process goes. No GPU."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python" / "joulemap"))

from _collect import host, rows, tables  # noqa: E402


def network_row(name: str, time_s: float, launch_s=None, repeat: int = 0) -> dict:
    parameters = f"name={name};package=timm;batch=8;size=224"
    told = {"kind": "network", "parameters": parameters, "dtype": "fp32", "pass": "inference", "cold": None}
    more = {"way": "eager", "energy_j": 1.0, "slice": "s", "repeat": repeat, "time_s": time_s, "launch_s": launch_s}
    return {"key": tables.key_of(told), **told, **more}


def test_a_network_that_waited_for_an_unknown_host_is_measured_again_once(tmp_path):
    kept = rows.Rows(tmp_path)
    busy = {"waits": 0.004, "works": 0.0099, "known": 0.004}
    for name in busy:
        kept.add(network_row(name, 0.010, 8e-6 if name == "known" else None))
        kept.add_layers({"layers_of": network_row(name, 0)["key"], "busy_us": busy[name] * 1e6})
    later = rows.Rows(tmp_path)
    assert [later.is_settled(network_row(name, 0)["key"]) for name in busy] == [False, True, True]
    later.add(network_row("waits", 0.006, 8e-6))
    assert later.is_settled(network_row("waits", 0)["key"])


def test_a_step_that_neither_its_host_nor_its_gpu_explains_is_measured_again(tmp_path):
    kept = rows.Rows(tmp_path)
    for name, issue_s in {"host": 0.009, "neither": 0.006}.items():
        kept.add({**network_row(name, 0.010, 8e-6), "issue_s": issue_s})
        kept.add_layers({"layers_of": network_row(name, 0)["key"], "busy_us": 4000})
    later = rows.Rows(tmp_path)
    assert [later.is_settled(network_row(name, 0)["key"]) for name in ("host", "neither")] == [True, False]


def test_a_process_goes_where_launches_are_quickest(monkeypatch):
    """Processor 2 is left alone, on the others a launch takes longer."""
    now_s, at, moved = [0.0], [{0, 1, 2, 3}], []
    monkeypatch.setattr(host.os, "sched_getaffinity", lambda task: at[0])
    monkeypatch.setattr(host.os, "sched_setaffinity", lambda task, wanted: move(task, wanted))
    monkeypatch.setattr(host.time, "perf_counter", lambda: now_s[0])

    def move(task: int, wanted: set) -> None:
        at[0] = wanted if task in (0, os.getpid()) else at[0]  # threads of other tests may be here, too
        moved.append(task)

    def launch() -> None:
        now_s[0] += 8e-6 if at[0] == {2} else 12e-6

    quiet = host.Host(launch, lambda: None)
    assert quiet.is_disturbed(12e-6) is False  # nothing faster is known yet
    assert quiet.find_quiet() == pytest.approx(8e-6) and 2 in at[0] and len(at[0]) == host.KEPT
    assert os.getpid() in moved and quiet.is_disturbed(12e-6)
