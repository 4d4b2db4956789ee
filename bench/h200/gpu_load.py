#!/usr/bin/env python3
"""A GPU load that reads the energy counter directly: the reference for the values of other tools.

    python3 gpu_load.py --seconds 20 --out hand.json

Reads the counter right after one of its updates, before and after the load, so that the energy between those two times
is exact and neither reading is stale. Idles briefly at both ends, so that the excess of a tool's window is small and
known.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import time


class EnergyCounter:
    """Total energy of GPU 0, through NVML only."""

    def __init__(self) -> None:
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        assert self.nvml.nvmlInit_v2() == 0
        self.device = ctypes.c_void_p()
        assert self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0

    def read_energy_mj(self) -> int:
        value = ctypes.c_ulonglong()
        assert self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value)) == 0
        return value.value

    def wait_for_update(self) -> tuple[int, int, int]:
        """Waits for an update of the counter. Returns its earliest time in ns, the end of the read that showed it in
        ns, and the counter in mJ."""
        last_ns = time.monotonic_ns()
        previous_energy_mj = self.read_energy_mj()
        while True:
            now_ns = time.monotonic_ns()
            value = self.read_energy_mj()
            if value != previous_energy_mj:
                return last_ns, time.monotonic_ns(), value
            last_ns = now_ns


def run_load_waves(seconds: float, wave_s: float) -> None:
    """Runs matrix products for half of each wave, memory traffic for a quarter, and idles for the rest."""
    import torch

    matrix = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(64 * 1024 * 1024, device="cuda")
    torch.cuda.synchronize()
    end = time.monotonic() + seconds
    while (current_time_s := time.monotonic()) < end:
        wave_position_s = current_time_s % wave_s if wave_s > 0 else 0.0
        if wave_s == 0 or wave_position_s < wave_s / 2:
            for _ in range(4):
                matrix @ matrix
        elif wave_position_s < wave_s * 3 / 4:
            for _ in range(20):
                b.add_(1)
        else:
            time.sleep(0.005)
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--wave", type=float, default=0.73, help="length of a wave of load in seconds")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    counter = EnergyCounter()
    begin = counter.wait_for_update()
    if arguments.seconds > 0:
        run_load_waves(arguments.seconds, arguments.wave)
    time.sleep(0.3)
    end = counter.wait_for_update()
    with open(arguments.out, "w") as file:
        json.dump({"begin_ns": begin[1], "end_ns": end[1], "joules": (end[2] - begin[2]) / 1e3}, file)


if __name__ == "__main__":
    main()
