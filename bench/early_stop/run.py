#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares jm.EarlyStop with patience on the four trainings of bench/predict_total: joules saved, and loss given up.

    bench/early_stop/run.py [--device cuda] [--price 500] [--length 1] [--wide 1] [-o FILE.json]

Each training runs once to its end with 40 evaluations; every rule sees the same losses, and its row is where it would
have stopped. `loss given up` is the best loss at the stop minus the best loss of the whole training. `J per loss` is
what the energy after the stop paid for a unit of loss. Prices are in J for a unit of validation loss. `--cpu-time` as in
bench/predict_total/run.py.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "predict_total"))

import torch
from run import CpuTimeWindow
from trainings import TRAINING_NAMES, Training, make_training

import joulemap as jm
from joulemap import _early_stop

EVALUATION_COUNT = 40


@dataclass
class PatienceRule:
    """The usual rule: stop after `limit` evaluations without a new best loss."""

    limit: int
    best: float = float("inf")
    evaluations_without_improvement: int = 0
    reason: str = ""

    def update(self, loss: float) -> bool:
        self.evaluations_without_improvement = 0 if loss < self.best else self.evaluations_without_improvement + 1
        self.best = min(self.best, loss)
        return self.evaluations_without_improvement >= self.limit


def run_training(training: Training, energy_prices: list) -> dict:
    """The losses and energies of a whole training, and the evaluation at which each rule stops."""
    training.evaluate_every = max(1, training.steps // EVALUATION_COUNT)
    rules: dict = {f"EarlyStop {price:g} J": jm.EarlyStop(price) for price in energy_prices}
    rules.update({f"patience {limit}": PatienceRule(limit) for limit in (3, 5)})
    window = _early_stop.begin("training")
    losses: list = []
    energies: list = []
    stops: dict = {}
    for index in range(training.steps):
        training.step(index)
        if (index + 1) % training.evaluate_every:
            continue
        losses.append(training.evaluate())
        energies.append(window.peek().joules)
        for name, rule in rules.items():
            if name not in stops and rule.update(losses[-1]):
                stops[name] = {"evaluation": len(losses), "reason": rule.reason}
    return {"name": training.name, "losses": losses, "energies_j": energies, "rules": list(rules), "stops": stops}


def rows_of(result: dict) -> list:
    rows = []
    total_j, min_loss = result["energies_j"][-1], min(result["losses"])
    for rule in result["rules"]:
        stop_record = result["stops"].get(rule, {"evaluation": len(result["losses"]), "reason": "never"})
        spent_j = result["energies_j"][stop_record["evaluation"] - 1]
        excess_loss = min(result["losses"][: stop_record["evaluation"]]) - min_loss
        rows.append({
            "training": result["name"], "rule": rule, "stop": stop_record["evaluation"],
            "evaluations": len(result["losses"]), "spent_j": spent_j, "total_j": total_j,
            "saved": 1 - spent_j / total_j, "given_up": excess_loss, "best": min_loss, "first": result["losses"][0],
            "price_j": (total_j - spent_j) / excess_loss if excess_loss > 0 else None, "reason": stop_record["reason"],
        })  # fmt: skip
    return rows


def print_row(row: dict) -> None:
    price = "-" if row["price_j"] is None else f"{row['price_j']:.0f}"
    print(
        f"{row['training']:12} {row['rule']:18} {row['stop']:3}/{row['evaluations']:<3} {row['spent_j']:8.0f} "
        f"{row['total_j']:8.0f} {row['saved']:7.0%} {row['given_up']:14.4f} {row['best']:9.4f} {price:>11}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--price", type=float, action="append")
    parser.add_argument("--length", type=float, default=1.0)
    parser.add_argument("--wide", type=int, default=1)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--only", choices=TRAINING_NAMES, action="append")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.cpu_time:
        _early_stop.begin = CpuTimeWindow
    head = ("training", "rule", "stop", "J", "full J", "saved", "loss given up", "best loss", "J per loss")
    print("{:12} {:18} {:>7} {:>8} {:>8} {:>7} {:>14} {:>9} {:>11}".format(*head))
    rows = []
    for name in options.only or TRAINING_NAMES:
        training = make_training(name, options.device, options.length, options.wide)
        for row in rows_of(run_training(training, options.price or [500.0, 5000.0])):
            print_row(row)
            rows.append(row)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
