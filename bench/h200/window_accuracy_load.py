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

    wide = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    small = torch.randn(2048, 2048, device="cuda")
    line = torch.randn(64 << 20, device="cuda")
    wide_out, small_out, line_out = torch.empty_like(wide), torch.empty_like(small), torch.empty_like(line)
    return [
        lambda: torch.mm(wide, wide, out=wide_out),
        lambda: torch.mm(small, small, out=small_out),
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
    for work in works:
        work()
    torch.cuda.synchronize()
    time.sleep(1)
    end = time.monotonic() + arguments.seconds
    while (now := time.monotonic()) < end:
        until = now + (chance.uniform(0.03, 0.15) if chance.random() < 0.5 else chance.uniform(0.15, 1.5))
        if chance.random() < 0.3:
            time.sleep(until - now)
            continue
        work = chance.choice(works)
        while time.monotonic() < until:
            for _ in range(4):
                work()
            torch.cuda.synchronize()
    time.sleep(1)


if __name__ == "__main__":
    main()
