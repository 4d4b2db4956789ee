"""An imported trace and a power log identify the energy of kernels as well as a live recording does."""

from __future__ import annotations

import bisect
import json
import random

import pytest

KINDS = 13
IDLE_W = 120.0
BASE_NS = 1_700_000_000_000_000_000
UPDATE_S = 0.1


class LinearGpu:
    """A GPU whose power is that of the running kernel kind: runs of 2 to 50 ms, idle between some of them."""

    def __init__(self, seconds: float, seed: int) -> None:
        chance = random.Random(seed)
        powers = [150 + 500 * kind / (KINDS - 1) for kind in range(KINDS)]
        chance.shuffle(powers)
        self.kernels: list[tuple[int, float, float]] = []  # kind, start, duration
        self.truth_j = [0.0] * KINDS
        self._segment_starts_s, self._segment_joules, self._segment_watts = [], [], []
        simulated_time_s = joules = self.idle_j = 0.0
        while simulated_time_s < seconds:
            length = chance.uniform(0.002, 0.05)
            kind = None if chance.random() < 0.25 else chance.randrange(KINDS)
            watts = IDLE_W if kind is None else powers[kind]
            self._segment_starts_s.append(simulated_time_s)
            self._segment_joules.append(joules)
            self._segment_watts.append(watts)
            if kind is None:
                self.idle_j += watts * length
            else:
                self.truth_j[kind] += watts * length
                count = max(1, int(length / 0.0005))
                self.kernels += [(kind, simulated_time_s + i * length / count, length / count) for i in range(count)]
            simulated_time_s += length
            joules += watts * length
        self.end = simulated_time_s

    def joules_at(self, time_s: float) -> float:
        segment = max(0, bisect.bisect_right(self._segment_starts_s, time_s) - 1)
        return self._segment_joules[segment] + (time_s - self._segment_starts_s[segment]) * self._segment_watts[segment]

    def write_trace(self, path) -> None:
        events = []
        for number, (kind, start, duration) in enumerate(self.kernels, 1):
            begin_us = BASE_NS / 1e3 + start * 1e6
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                           "ts": begin_us - 5, "dur": 3, "args": {"correlation": number}})  # fmt: skip
            events.append({"ph": "X", "cat": "kernel", "name": f"kernel_{kind}", "pid": 0, "tid": 7, "ts": begin_us,
                           "dur": duration * 1e6, "args": {"correlation": number, "device": 0, "stream": 7, "context": 1,
                                                           "grid": [1, 1, 1], "block": [32, 1, 1]}})  # fmt: skip
        properties = [{"id": 0, "name": "NVIDIA H200"}]
        path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, "deviceProperties": properties,
                                    "traceEvents": events}))  # fmt: skip

    def write_counter_csv(self, path, poll_s: float) -> None:
        """A counter that updates every 100 ms, polled every `poll_s`."""
        lines = ["time_unix_ns,domain,kind,value"]
        for poll in range(int(self.end / poll_s)):
            last_update_s = int(poll * poll_s / UPDATE_S + 1e-9) * UPDATE_S
            lines.append(f"{BASE_NS + int(poll * poll_s * 1e9)},gpu0,energy_j,{self.joules_at(last_update_s):.6f}")
        path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("poll_s", [0.02, UPDATE_S], ids=["five polls per update", "one poll per update"])
def test_kernel_energies_of_an_import_are_within_three_percent(joulemap, tmp_path, poll_s):
    gpu = LinearGpu(seconds=20, seed=1)
    gpu.write_trace(tmp_path / "trace.json")
    gpu.write_counter_csv(tmp_path / "power.csv", poll_s)
    recording = tmp_path / "run.joule"
    import_outcome = joulemap(
        "import", "kineto", tmp_path / "trace.json", "--power", tmp_path / "power.csv", "-o", recording
    )
    assert import_outcome.code == 0, import_outcome.err
    report = joulemap("report", "--by", "kernel", "--json", recording).json
    rows = {row["name"]: row for row in report["rows"]}
    errors = [rows[f"kernel_{kind}"]["energy_j"] / joules - 1 for kind, joules in enumerate(gpu.truth_j)]
    assert (sum(error * error for error in errors) / KINDS) ** 0.5 < 0.03
    assert report["idle_j"] == pytest.approx(gpu.idle_j, rel=0.03)
    intervals = [(rows[f"kernel_{kind}"]["low_j"], rows[f"kernel_{kind}"]["high_j"]) for kind in range(KINDS)]
    assert sum(low <= joules <= high for joules, (low, high) in zip(gpu.truth_j, intervals)) >= 11
