#!/usr/bin/env python3
"""Measures the overhead of capture in PyTorch: a training step with and without capture, and a module call, on the CPU.

    PYTHON bench/capture/torch_hooks.py [--build build] [--rounds 5]

Runs recorded and unrecorded processes in turns, so that drift of the machine's speed affects both equally. Each
returns a low quantile of its thread's CPU time, which is robust against noise of a busy machine; their medians are
compared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

PROGRAM = """
import json, statistics, sys, time
import torch, torch.nn as nn
torch.set_num_threads(1)
torch.manual_seed(0)

def per_call_ns(function, calls, repeats=100):
    times = []
    for _ in range(repeats):
        begin = time.thread_time_ns()
        function()
        times.append((time.thread_time_ns() - begin) / calls)
    return sorted(times)[repeats // 10]

class Scale(nn.Module):
    def forward(self, x):
        return x * 2

chain = nn.Sequential(*[Scale() for _ in range(200)])
x = torch.ones(1, requires_grad=True)
update = torch.optim.SGD([x], lr=0)  # ends a step: else the one that is looked at closely would go on for ever
def forward_only():
    with torch.no_grad():
        chain(x)
def with_graph():
    chain(x)
    update.step()
def with_backward():
    chain(x).backward()
    update.step()
for warm_up in range(5):
    forward_only(), with_graph(), with_backward()
result = {"forward_call_ns": per_call_ns(forward_only, 200), "forward_call_with_graph_ns": per_call_ns(with_graph, 200),
          "forward_and_backward_ns": per_call_ns(with_backward, 200)}

net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.Conv2d(16, 16, 3),
                    nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
images, labels = torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
criterion = nn.CrossEntropyLoss()
def step():
    optimizer.zero_grad()
    criterion(net(images), labels).backward()
    optimizer.step()
for warm_up in range(20):
    step()
result["small_step_ns"] = per_call_ns(step, 1, 200)
print(json.dumps(result))
"""


def measure(build: Path, recorded: bool) -> dict:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("JOULEMAP_", "PYTHONPATH"))
    }
    with tempfile.TemporaryDirectory() as folder:
        if recorded:
            environment["JOULEMAP_RECORDING"] = folder
            environment["JOULEMAP_RECORDING_ID"] = "0" * 32
            environment["PYTHONPATH"] = str(build / "python" / "joulemap" / "inject")
        command = [sys.executable, "-c", PROGRAM]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=folder)
    return json.loads(process.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    results: dict[bool, list[dict]] = {False: [], True: []}
    for _ in range(options.rounds):
        for recorded in (False, True):
            results[recorded].append(measure(options.build.resolve(), recorded))
    print(f"{'':28}{'alone':>12}{'recorded':>12}{'difference':>12}")
    for name in results[False][0]:
        baseline_median, recorded = (
            statistics.median(run[name] for run in results[is_recorded]) for is_recorded in (False, True)
        )
        print(
            f"{name:28}{baseline_median:12.0f}{recorded:12.0f}{recorded - baseline_median:12.0f}  "
            f"{100 * (recorded / baseline_median - 1):+.1f} %"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
