#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the experiment runner on a real GPU: two data types, a few repetitions of a matrix product each.

    python3 bench/h200/experiment_runner.py --program build/dist/joulemap-*/bin/joulemap --out FOLDER

Runs the plan, interrupts it after its second row, resumes it, and analyzes it. The plan configures the sensors, a
check of the GPU before each row, and a cool-down. The output of every step is written to --out.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from pathlib import Path

LOAD_PROGRAM = """
import json, sys, time, torch
dtype, out = getattr(torch, sys.argv[1]), sys.argv[2]
a = torch.randn(4096, 4096, device="cuda", dtype=dtype)
count, until = 0, time.monotonic() + 1.5
while time.monotonic() < until:
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    count += 20
json.dump({"products": count}, open(out, "w"))
"""

PLAN_TOML = """
name = "types"
command = ["{python}", "{load}", "{{dtype}}", "{{folder}}/metrics.json"]
repetitions = {repetitions}
baseline_s = 2

[factors]
dtype = ["float32", "bfloat16"]

[cool_down]
power_within = 0.2
limit_s = 3

[checks]
preflight = ["{python}", "-c", "import torch; assert torch.cuda.is_available()"]

[metrics.products]
from = "json"
key = "products"
more_is_better = true
"""


def step(options: argparse.Namespace, *words: str, interrupt_after_s: float = 0) -> None:
    command = [str(options.program), "experiment", *words]
    began = time.monotonic()
    with (options.out / "log.txt").open("a") as log:
        print("+", *command, file=log, flush=True)
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=options.out)
        try:
            process.wait(interrupt_after_s or options.limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait(60)
        print(f"ended with {process.returncode} after {time.monotonic() - began:.1f} s", file=log, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="seconds for a step")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.out, options.program = options.out.resolve(), options.program.resolve()
    load = options.out / "load.py"
    load.write_text(LOAD_PROGRAM)
    plan = PLAN_TOML.format(python=sys.executable, load=load, repetitions=options.repetitions)
    (options.out / "experiment.toml").write_text(plan)
    step(options, "run", "experiment.toml", "-o", "types", interrupt_after_s=14)
    step(options, "status", "types")
    step(options, "resume", "types")
    step(options, "analyze", "types")
    print((options.out / "log.txt").read_text()[-5000:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
