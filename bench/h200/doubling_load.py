#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one network unchanged and with each of its blocks run twice. doubling.py starts it under `joulemap record`.

    doubling_load.py NETWORK --out FOLDER [--modes inference,train] [--seconds 0.8] [--rounds 3] [--plain-s 8] [--probe-s 15]

For each mode: a steady loop of plain passes, which attribution analyses; replays of its modules (probing); then loops
with blocks run twice while capture is paused (none with --rounds 0). Writes FOLDER/NETWORK-MODE.json: the loops and
the times of each part. Loop energy comes from the GPU's counter, read directly at every update; energies of the
library's windows are stored beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path

import torch
from capture_worker import DEVICE, bert, gpt2, resnet50, synchronize, tiny_network, vit
from gpu_load import EnergyCounter

import joulemap as jm  # noqa: E402  the package that record puts on the path
from joulemap import _validate, _validate_rounds  # noqa: E402

START_TIME_S, STDERR = time.monotonic(), sys.stderr  # the original stderr: BlockDoublingSession redirects sys.stderr
COUNTER_PERIOD_S = 0.1  # period of the counter on an H200, accurate to 0.001 %
CHEAP_READ_PHASE = 0.55  # fraction of a period: reads are cheap then, and the recorder reads at another phase
# Upper bound of the counter's lag, in s: an update this soon after the begin of a loop may show energy from before it.
MAX_LAG_S = 0.02


def pairs(stage: str, count: int) -> dict[str, list[str]]:
    return {f"layers {i}-{i + 1}": layers(stage, i, i + 1) for i in range(0, count, 2)}


def layers(stage: str, *numbers: int) -> list[str]:
    return [f"{stage}.{number}" for number in numbers]


# Similar blocks are doubled together, and small blocks not at all. This saves time and makes the remainder of a pass
# more precise.
RESNET50 = {
    "stem": ["conv1", "bn1", "relu", "maxpool"],
    **{f"{stage}.0": layers(stage, 0) for stage in ("layer1", "layer2", "layer3", "layer4")},
    "layer1.1-2": layers("layer1", 1, 2), "layer2.1-3": layers("layer2", 1, 2, 3),
    "layer3.1-5": layers("layer3", 1, 2, 3, 4, 5), "layer4.1-2": layers("layer4", 1, 2),
}  # fmt: skip
VIT = {f"layers {i}-{i + 2}": [f"encoder.layers.encoder_layer_{i + j}" for j in range(3)] for i in range(0, 12, 3)}
NETWORKS = {
    "resnet50": (resnet50, RESNET50),
    "bert": (bert, pairs("bert.encoder.layer", 6)),
    "gpt2": (gpt2, {**pairs("transformer.h", 6), "lm_head": ["lm_head"]}),
    "vit": (vit, VIT),
    "tiny": (tiny_network, None),
}


def print_progress(text: str) -> None:
    print(f"  {time.monotonic() - START_TIME_S:6.1f} s  {text}", file=STDERR, flush=True)


class PhaseLockedMeter:
    """Measures GPU energy by a thread that reads the counter once between any two updates. Updates are periodic: mean
    power comes from whole periods inside a loop, so edges of a loop need no interpolation. The library's windows run
    in parallel."""

    lead_s = 0.0

    def __init__(self, counter: EnergyCounter) -> None:
        self._counter, self._window_spans, self._steps = counter, [], {}
        self._windows = _validate_rounds.WindowMeter("gpu0")
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._read_between_updates, daemon=True)

    def __enter__(self) -> PhaseLockedMeter:
        self._windows.__enter__()
        self._thread.start()
        time.sleep(0.6)
        return self

    def __exit__(self, *exception_details: object) -> None:
        self._stop_event.set()
        self._thread.join()

    def _find_update_time_s(self) -> float:
        """Returns the time of an update, in s of the monotonic clock, from three updates, each bounded by two reads."""
        moments = []
        for _ in range(3):
            before_ns, _, _ = self._counter.wait_for_update()
            moments.append(before_ns * 1e-9)
        update_offsets_s = [
            (update_time_s - moments[0] + COUNTER_PERIOD_S / 2) % COUNTER_PERIOD_S - COUNTER_PERIOD_S / 2
            for update_time_s in moments
        ]
        return moments[0] + max(update_offsets_s)

    def _read_between_updates(self) -> None:
        phase_s, number, previous_energy_mj = self._find_update_time_s(), 0, None
        while not self._stop_event.is_set():
            number = max(number + 1, int((time.monotonic() - phase_s) / COUNTER_PERIOD_S + 1 - CHEAP_READ_PHASE))
            time.sleep(max(0.0, phase_s + (number + CHEAP_READ_PHASE) * COUNTER_PERIOD_S - time.monotonic()))
            begin_s, value = time.monotonic(), self._counter.read_energy_mj()
            number = int((begin_s - phase_s) / COUNTER_PERIOD_S)
            if value == previous_energy_mj:  # no update since the last read: find the phase again
                phase_s, number, value = self._find_update_time_s(), 0, None
            else:
                self._steps[phase_s + number * COUNTER_PERIOD_S] = value * 1e-3
            previous_energy_mj = value

    def begin(self) -> int:
        self._window_spans.append([time.monotonic(), 0.0, self._windows.begin()])
        return len(self._window_spans) - 1

    def end(self, number: int) -> None:
        self._windows.end(self._window_spans[number][2])
        self._window_spans[number][1] = time.monotonic()

    def joules(self, number: int) -> float:
        begin_s, end_s, _ = self._window_spans[number]
        counter_updates = sorted((s, j) for s, j in self._steps.items() if begin_s + MAX_LAG_S < s < end_s)
        if len(counter_updates) < 4:
            raise ValueError(
                f"{len(counter_updates)} counter updates lie in a loop of {end_s - begin_s:.2f} s: --seconds"
            )
        (first_s, first_energy_j), (last_s, last_energy_j) = counter_updates[0], counter_updates[-1]
        return (last_energy_j - first_energy_j) / (last_s - first_s) * (end_s - begin_s)

    def list_window_energies(self) -> list:
        return [self._windows.joules(span[2]) for span in self._window_spans]


def run_network(network: str, mode: str, options: argparse.Namespace) -> dict:
    make, blocks = NETWORKS[network]
    torch.manual_seed(0)
    model, compute_loss, answer = make()
    if hasattr(model, "config"):
        model.config.use_cache = False  # a second call would append to the cache
    train = mode == "train"
    model.train(train)
    run = _validate.ModelPass(torch, model, compute_loss if train else answer, train)
    with _validate.BlockDoublingSession(torch, model, run, blocks) as validation:
        load_log = {"network": network, "mode": mode, "device": "gpu0" if DEVICE == "cuda" else "cpu"}
        load_log["recorded"], load_log["probed"] = record_plain(model, run, options)
        print_progress(f"{mode}: recorded {load_log['recorded']['passes']} passes, probed")
        load_log["groups"], load_log["refused"] = validation.groups, validation.refused
        if options.rounds == 0:
            return load_log
        meter = PhaseLockedMeter(EnergyCounter()) if DEVICE == "cuda" else _validate_rounds.WindowMeter(None)
        with meter:
            loops = validation.measure_blocks(meter, options.seconds, options.rounds, options.seed, print_progress)
        load_log["loops"] = [list(loop) for loop in loops]
        load_log["joules_by_windows"] = read_window_energies(meter) if DEVICE == "cuda" else None
    return load_log


def read_window_energies(meter: PhaseLockedMeter) -> list[float] | None:
    """Returns the joules of each loop by windows of jm.measure, for comparison only: the reference does not depend on
    them. None if a window has no energy."""
    try:
        return meter.list_window_energies()
    except ValueError as error:
        print_progress(f"no windows: {error}")
        return None


def record_plain(model, run, options: argparse.Namespace) -> tuple[dict, dict | None]:
    """Runs the plain passes that attribution analyses, then probing. Passes also run before and after the analysed
    span, so that the load at its edges is the same as within it."""
    attachment = jm.attach(model, probe=True) if options.probe_s > 0 else None
    for _ in range(20):
        run()
    synchronize()
    spans, passes = [], 0
    for seconds in (options.plain_s / 4, options.plain_s, options.plain_s / 8):
        begin_ns, passes_at_begin = time.monotonic_ns(), passes
        while time.monotonic_ns() - begin_ns < seconds * 1e9:
            for _ in range(5):
                run()
            synchronize()
            passes += 5
        spans.append({"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": passes - passes_at_begin})
    if attachment is None:
        return spans[1], None
    attachment.detach()
    return spans[1], {"begin_ns": spans[1]["begin_ns"], "end_ns": time.monotonic_ns()}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--modes", default="inference,train")
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plain-s", type=float, default=8)
    parser.add_argument("--probe-s", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ["JOULEMAP_PROBE"] = str(options.probe_s)  # time limit of replays by jm.attach, s
    exit_code = 0
    for mode in options.modes.split(","):
        try:
            load_log = run_network(options.network, mode, options)
            (options.out / f"{options.network}-{mode}.json").write_text(json.dumps(load_log))
        except Exception:  # noqa: BLE001 - a mode that fails is a finding; the other mode still runs
            print_progress(f"{mode} failed:\n{traceback.format_exc()}")
            exit_code = 1
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
