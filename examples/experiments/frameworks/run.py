# SPDX-License-Identifier: Apache-2.0
"""Trains a network to a target loss and runs its inference in one framework; measures the energy of both.

python run.py --network ncf --framework jax --folder results
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import time
from collections.abc import Callable
from pathlib import Path

import joulemap as jm
import numpy as np

from quality import QUALITY_MEASURES, compute_quality
from sizes import SIZES, WARM_UP_STEPS
from synthetic_data import Batch, make_batches

# Package of the networks, options of its trainer, and distributions whose versions are recorded.
FRAMEWORKS: dict[str, tuple[str, dict, list[str]]] = {
    "pytorch": ("networks_pytorch", {}, ["torch"]),
    "pytorch-eager": ("networks_pytorch", {}, ["torch"]),
    "pytorch-compiled": ("networks_pytorch", {"is_compiled": True}, ["torch"]),
    "tensorflow": ("networks_tensorflow", {}, ["tensorflow", "tensorflow-cpu", "keras"]),
    "jax": ("networks_jax", {}, ["jax", "jaxlib"]),
}


class Run:
    """One process: start-up, training, inference."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.settings = SIZES[arguments.network][arguments.size]
        self.train_batches, self.inference_batches = make_batches(arguments.network, self.settings)
        self.losses: list = []

    def start_up(self) -> None:
        """Imports the framework, copies the data to the device, compiles training and inference."""
        import_begin_s = time.perf_counter()
        package, options, _ = FRAMEWORKS[self.arguments.framework]
        trainer_class = importlib.import_module(f"{package}.trainer").Trainer
        self.import_s = time.perf_counter() - import_begin_s
        self.trainer = trainer_class(self.arguments.network, self.settings, self.arguments.device, **options)
        self.train_inputs = [self.trainer.put(batch) for batch in self.train_batches]
        self.inference_inputs = [self.trainer.put(batch) for batch in self.inference_batches]
        for step in range(WARM_UP_STEPS):
            self.losses.append(self.trainer.train_step(self.train_inputs[step % len(self.train_inputs)]))
        self.trainer.fetch(self.losses)
        self.trainer.fetch(self.trainer.predict(self.inference_inputs[0]))

    def train_to_target(self) -> None:
        """Reads the losses only every `check_every` steps: reading waits for the device."""
        check_every = self.settings["check_every"]
        for step in range(WARM_UP_STEPS, self.settings["step_limit"]):
            self.losses.append(self.trainer.train_step(self.train_inputs[step % len(self.train_inputs)]))
            if (step + 1) % check_every == 0:
                self.final_loss = float(np.mean(self.trainer.fetch(self.losses[-check_every:])))
                if self.final_loss <= self.settings["target_loss"]:
                    break

    def infer(self) -> None:
        inputs = self.inference_inputs
        outputs = [self.trainer.predict(inputs[i % len(inputs)]) for i in range(self.settings["inference_batches"])]
        self.outputs: list[Batch] = self.trainer.fetch(outputs[-len(inputs) :])

    def collect_metrics(self, windows: dict[str, dict]) -> dict:
        network, framework = self.arguments.network, self.arguments.framework
        first_batch_index = self.settings["inference_batches"] % len(self.inference_batches)
        answered = self.inference_batches[first_batch_index:] + self.inference_batches[:first_batch_index]
        steps = len(self.losses)
        metrics = {
            "network": network,
            "framework": framework,
            "device": self.arguments.device,
            "size": self.arguments.size,
            "versions": find_versions(FRAMEWORKS[framework][2]),
            "parameters": self.trainer.count_parameters(),
            "import_s": self.import_s,
            "steps": steps,
            "final_loss": self.final_loss,
            "reached": int(self.final_loss <= self.settings["target_loss"]),
            "quality": compute_quality(network, answered, self.outputs),
            "quality_measure": QUALITY_MEASURES[network][0],
        }
        for phase, window in windows.items():
            metrics |= {f"{phase}_{name}": value for name, value in window.items()}
        if metrics["training_j"] is not None:
            metrics["training_step_j"] = metrics["training_j"] / (steps - WARM_UP_STEPS)
        return metrics


def measure_phase(name: str, phase: Callable[[], None]) -> dict[str, float | str | None]:
    """Energy, time, and CPU time of this process."""
    cpu_started = time.process_time()
    with jm.measure(name) as window:
        phase()
    cpu_s = time.process_time() - cpu_started
    return {
        "s": window.time_s,
        "cpu_s": cpu_s,
        "j": window.energy_j,
        "low_j": window.low_j,
        "high_j": window.high_j,
        "provenance": window.provenance,
    }


def find_versions(distributions: list[str]) -> dict[str, str]:
    versions = {}
    for name in distributions:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=SIZES, required=True)
    parser.add_argument("--framework", choices=FRAMEWORKS, required=True)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--folder", type=Path, required=True, help="folder for metrics.json")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    run = Run(arguments)
    jm.start()
    phases = {"startup": run.start_up, "training": run.train_to_target, "inference": run.infer}
    windows = {name: measure_phase(name, phase) for name, phase in phases.items()}
    metrics = run.collect_metrics(windows)
    (arguments.folder / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
    for name in phases:
        print(f"{name}: {windows[name]['s']:.2f} s, {windows[name]['j']} J, {windows[name]['provenance']}")
    print(f"steps {metrics['steps']}, loss {metrics['final_loss']:.3f}, quality {metrics['quality']:.3f}")


if __name__ == "__main__":
    main()
