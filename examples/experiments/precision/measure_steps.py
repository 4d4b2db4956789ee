# SPDX-License-Identifier: Apache-2.0
"""Measures the energy of training steps and inference passes of a network in one precision and execution.

python measure_steps.py --network transformer --precision bf16 --execution compiled --folder .
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from networks import Task, make_task
from steps import Call, make_inference_pass, make_training_step, select_matmul_precision

import joulemap as jm

WARM_UP_CALLS = 3
TRIAL_CALLS = 3  # their time gives the number of calls in a window


def wait_for_device(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def time_calls(call: Call, count: int, device: torch.device) -> float:
    """Seconds of `count` calls."""
    wait_for_device(device)
    begin_s = time.perf_counter()
    for _ in range(count):
        call()
    wait_for_device(device)
    return time.perf_counter() - begin_s


def prepare(phase: str, make_call: Callable[[], Call], device: torch.device) -> tuple[Call, dict[str, object]]:
    """The function of a phase after compilation or capture and its first calls, and what these used."""
    with jm.measure(f"prepare {phase}") as window:
        call = make_call()
        time_calls(call, WARM_UP_CALLS, device)
    return call, {f"prepare_{phase}_j": window.energy_j, f"prepare_{phase}_s": window.time_s}


def measure_calls(phase: str, call: Call, time_s: float, device: torch.device) -> dict[str, object]:
    """Energy and time per call, in a window of about `time_s`."""
    trial_s = time_calls(call, TRIAL_CALLS, device)
    count = max(1, round(time_s * TRIAL_CALLS / trial_s))
    with jm.measure(phase) as window:
        time_calls(call, count, device)
    return {
        f"{phase}_j": None if window.energy_j is None else window.energy_j / count,
        f"{phase}_ms": 1000 * window.time_s / count,
        f"{phase}_w": window.watts,
        f"{phase}_calls": count,
        "provenance": window.provenance,
    }


def find_score_error(task: Task, infer: Call, precision: str) -> float:
    """Root mean square of the difference to the scores in fp32, relative to that of the scores."""
    scores = infer().float()
    select_matmul_precision("fp32")
    with torch.no_grad():
        reference = task.network(task.inputs)
    select_matmul_precision(precision)
    return float((scores - reference).square().mean().sqrt() / reference.square().mean().sqrt())


def run(options: argparse.Namespace) -> dict[str, object]:
    """The metrics of a row."""
    device = torch.device(options.device)
    select_matmul_precision(options.precision)
    task = make_task(options.network, options.size, device, options.seed)
    variant = (task, device, options.precision, options.execution)

    train_step, metrics = prepare("training", lambda: make_training_step(*variant), device)
    metrics["first_loss"] = float(train_step())
    metrics |= measure_calls("training", train_step, options.seconds, device)
    metrics["last_loss"] = float(train_step())

    infer, preparation = prepare("inference", lambda: make_inference_pass(*variant), device)
    metrics |= preparation
    metrics |= measure_calls("inference", infer, options.seconds, device)
    metrics["score_error"] = find_score_error(task, infer, options.precision)
    if device.type == "cuda":
        metrics["peak_memory_mib"] = torch.cuda.max_memory_allocated() / 2**20
    return metrics


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--size", choices=["small", "large"], default="small", help="size of network and batch")
    parser.add_argument("--network", choices=["transformer", "resnet"], default="transformer")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--execution", choices=["eager", "compiled", "cuda-graphs"], default="eager")
    parser.add_argument("--seconds", type=float, default=2, help="time of each window")
    parser.add_argument("--seed", type=int, default=1, help="of the weights and the batch")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--folder", type=Path, default=Path("."), help="where metrics.json is written")
    options = parser.parse_args()
    if options.device == "cpu" and (options.precision == "tf32" or options.execution == "cuda-graphs"):
        parser.error("tf32 and cuda-graphs need --device cuda")
    torch.set_num_threads(options.threads)
    metrics = run(options)
    (options.folder / "metrics.json").write_text(json.dumps(metrics) + "\n")
    print(json.dumps(metrics))


if __name__ == "__main__":
    main()
