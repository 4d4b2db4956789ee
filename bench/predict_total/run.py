#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the predictions of jm.predict_total with the energy and time of four trainings, after 2, 5, 10 and 25 % of
their steps. The last column is the prediction of carbontracker 2.4.7: the number of epochs times the energy of the first
epoch. It is computed from the same meter, because carbontracker assumes a constant power where it finds no counters.

    bench/predict_total/run.py [--device cuda] [--length 1] [--wide 1] [-o FILE.json]

`--length` multiplies the steps of an epoch, `--wide` the width of the networks. Needs only joulemap and PyTorch.

Run it on an otherwise idle machine: no prediction contains the future load of other programs. Where that is impossible,
`--cpu-time` shows what remains: time is the CPU time of this process, energy that time at 10 W.
"""

from __future__ import annotations

import argparse
import json
import time
import types

import torch
from trainings import TRAINING_NAMES, Training, make_training

import joulemap as jm
from joulemap import Energy, _forecast

CPU_TIME_W = 10.0
TRAINING_FRACTIONS = (0.02, 0.05, 0.10, 0.25, 0.50)


class CpuTimeWindow:
    """A window in CPU time of this process, with energy in proportion to it."""

    def __init__(self, name: str) -> None:
        self._begin_s, self._seconds = time.process_time(), 0.0

    def end(self) -> None:
        self._seconds = time.process_time() - self._begin_s

    def wait(self) -> Energy:
        return _estimate_from_cpu_time(self._seconds)

    def peek(self) -> Energy:
        return _estimate_from_cpu_time(self._seconds or time.process_time() - self._begin_s)


def _estimate_from_cpu_time(seconds: float) -> Energy:
    return Energy(CPU_TIME_W * seconds, 0.0, seconds, CPU_TIME_W, "estimated", "", settled=True)


def use_cpu_time_energy() -> None:
    _forecast.begin = jm.begin = CpuTimeWindow
    _forecast.time = types.SimpleNamespace(monotonic=time.process_time)


def run_training(training: Training, device: str) -> dict:
    """Predictions at each of SHARES, the prediction from the first epoch, and the measured total."""
    event_intervals = {"evaluation": training.evaluate_every, "checkpoint": training.save_every}
    points = {max(2, round(share * training.steps)): share for share in TRAINING_FRACTIONS}
    predictions, epoch = {}, jm.begin("first epoch")
    forecast = jm.predict_total(training.steps, every=event_intervals, evaluation_steps=training.validation)
    for index in training.run():
        forecast.step()
        if index in points:
            predictions[points[index]] = forecast.total()
        if index == len(training.batches):
            epoch.end()
    if device != "cpu":
        torch.cuda.synchronize()
    energy = forecast.end()
    return {"name": training.name, "steps": training.steps, "epochs": training.epochs, "predictions": predictions,
            "energy": energy, "first_epoch": epoch.wait()}  # fmt: skip


def rows_of(result: dict) -> list:
    energy, first_epoch = result["energy"], result["first_epoch"]
    epoch_extrapolation_j = None if first_epoch.joules is None else result["epochs"] * first_epoch.joules
    rows = []
    for share, total in result["predictions"].items():
        rows.append({
            "training": result["name"], "steps": result["steps"], "share": share, "final_j": energy.joules,
            "final_s": energy.seconds, "predicted_j": total.energy_j, "low_j": total.low_j, "high_j": total.high_j,
            "predicted_s": total.time_s, "low_s": total.low_s, "high_s": total.high_s, "provenance": total.provenance,
            "notes": total.notes,
            # the first epoch must have ended
            "carbontracker_j": epoch_extrapolation_j if share >= 1 / result["epochs"] else None,
        })  # fmt: skip
    return rows


def error_text(predicted: float | None, final: float | None) -> str:
    return "-" if predicted is None or final is None else f"{100 * (predicted / final - 1):+.1f} %"


def print_row(row: dict) -> None:
    is_energy_in_interval = row["low_j"] is not None and row["low_j"] <= row["final_j"] <= row["high_j"]
    covered_s = row["low_s"] is not None and row["low_s"] <= row["final_s"] <= row["high_s"]
    predicted, final = (
        "-" if joules is None else f"{joules:.0f}" for joules in (row["predicted_j"], row["final_j"])
    )
    interval = "-" if row["low_j"] is None else f"{row['low_j']:.0f} .. {row['high_j']:.0f}"
    print(
        f"{row['training']:12} {row['share']:5.0%} {predicted:>9} {interval:>16} {final:>9} "
        f"{error_text(row['predicted_j'], row['final_j']):>8} {'yes' if is_energy_in_interval else 'no':>7} "
        f"{error_text(row['predicted_s'], row['final_s']):>8} {'yes' if covered_s else 'no':>7} "
        f"{error_text(row['carbontracker_j'], row['final_j']):>13}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--length", type=float, default=1.0)
    parser.add_argument("--wide", type=int, default=1)
    parser.add_argument("--only", choices=TRAINING_NAMES, action="append")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.cpu_time:
        use_cpu_time_energy()
    head = ("training", "steps", "J", "90 % interval", "final J", "error", "covers", "time", "covers", "carbontracker")
    print("{:12} {:>5} {:>9} {:>16} {:>9} {:>8} {:>7} {:>8} {:>7} {:>13}".format(*head))
    rows = []
    for name in options.only or TRAINING_NAMES:
        training = make_training(name, options.device, options.length, options.wide)
        for row in rows_of(run_training(training, options.device)):
            print_row(row)
            rows.append(row)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
