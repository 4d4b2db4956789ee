# SPDX-License-Identifier: Apache-2.0
"""The loop that all programs of user_program_set.py run in: it times steps and takes the checksum of the first ones."""

from __future__ import annotations

import hashlib
import itertools
import json
import statistics
import time

# The checksum covers a fixed number of steps, so that a slower run gives the same checksum.
CHECKED_STEPS = 8


class TimedLoop:
    """Yields steps until the time is over, keeps their durations, and takes the checksum after CHECKED_STEPS."""

    def __init__(self, seconds: float, checksum) -> None:
        self.seconds, self.checksum = seconds, checksum
        self.digest, self.durations_s = None, []

    def __iter__(self):
        began = previous = time.perf_counter()
        for step in itertools.count():
            if step == CHECKED_STEPS:
                self.digest = self.checksum()
                began = previous = time.perf_counter()
            if step > CHECKED_STEPS:
                current_time_s = time.perf_counter()
                self.durations_s.append(current_time_s - previous)
                previous = current_time_s
                if current_time_s - began > self.seconds:
                    return
            yield step

    def print(self) -> None:
        result = {"checksum": self.digest, "step_s": None, "mean_s": None, "steps": len(self.durations_s)}
        if self.durations_s:
            result |= {"step_s": statistics.median(self.durations_s), "mean_s": statistics.mean(self.durations_s)}
        print(json.dumps(result), flush=True)


def checksum_of_tensors(tensors) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def checksum_of_module(module):
    return lambda: checksum_of_tensors(module.state_dict().values())


def set_up_torch():
    import torch

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    return torch
