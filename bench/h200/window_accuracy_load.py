#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPU load with varying power: random phases of 30 ms to 1.5 s, each with one kind of work or idle. Run by
window_accuracy.py under record; the same seed gives the same phases.

    window_accuracy_load.py --seconds 50 --seed 1
"""

from __future__ import annotations

import argparse
import random
import time


def make_work_kinds() -> list:
    """Returns kinds of work with different power; each call takes less than a few milliseconds."""
    import torch

    bf16_matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    fp32_matrix = torch.randn(2048, 2048, device="cuda")
    line = torch.randn(64 << 20, device="cuda")
    wide_out, small_out, line_out = torch.empty_like(bf16_matrix), torch.empty_like(fp32_matrix), torch.empty_like(line)
    return [
        lambda: torch.mm(bf16_matrix, bf16_matrix, out=wide_out),
        lambda: torch.mm(fp32_matrix, fp32_matrix, out=small_out),
        lambda: torch.add(line, 1.0, out=line_out),
        lambda: torch.exp(line, out=line_out),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    import torch

    chance = random.Random(arguments.seed)
    works = make_work_kinds()
    for work_function in works:
        work_function()
    torch.cuda.synchronize()
    time.sleep(1)
    end = time.monotonic() + arguments.seconds
    while (current_time_s := time.monotonic()) < end:
        segment_end_s = current_time_s + (
            chance.uniform(0.03, 0.15) if chance.random() < 0.5 else chance.uniform(0.15, 1.5)
        )
        if chance.random() < 0.3:
            time.sleep(segment_end_s - current_time_s)
            continue
        work_function = chance.choice(works)
        while time.monotonic() < segment_end_s:
            for _ in range(4):
                work_function()
            torch.cuda.synchronize()
    time.sleep(1)


if __name__ == "__main__":
    main()
