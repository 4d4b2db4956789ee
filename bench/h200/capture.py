#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time and energy overhead of capture on a real GPU, beside other tools, and the share that is captured.

    make dist
    python3 bench/h200/capture.py --joulemap build/dist/joulemap-*/bin/joulemap --markdown OUT.md

Workers (capture_worker.py) share the GPU and take turns in blocks of steps: one without any tool, one under `joulemap
record`, and one each under torch.profiler, Zeus, codecarbon and GATorch where they support it. A round is one block of
each worker; a ratio compares two blocks of the same round. Settings of the GPU are not changed. Exits 1 when a bar is
missed.

The time of launch-bound steps differs by a tenth between two processes of the same program, and from second to second.
For these, captured and uncaptured steps alternate in one process (light_costs.py).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER))
from coverage import KernelTimeCoverage  # noqa: E402
from findings import Findings  # noqa: E402
from light_costs import write_light_overhead  # noqa: E402

# Network: modes of capture with the largest overhead in time that each may add (None: reported, no bar).
MAX_OVERHEADS = {
    "resnet50": {"full": 0.01},
    "bert": {"full": 0.01},
    "mobilenet": {"full": None},
}
COVERAGE_NETWORKS = ["resnet50", "bert", "gpt2", "vit", "resnet50-inference", "bert-inference", "gpt2-inference"]
MIN_PHASE_COVERAGE, MIN_MODULE_COVERAGE = 0.995, 0.98
MAX_BYTES_PER_KERNEL = 24
MAX_LIGHT_OVERHEAD = {name: 0.02 for name in ("mobilenet", "llama", "llama-inference", "efficientnet")}


class Worker:
    """A worker process that runs a block of steps on request."""

    def __init__(self, network: str, tool: str, wrapper: list[str]) -> None:
        self.failure = "it ended"
        self.blocks: list[dict] = []
        command = [*wrapper, sys.executable, str(SCRIPT_FOLDER / "capture_worker.py"), network, tool]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def is_ready(self) -> bool:
        """Waits for the worker's "ready"; tools may print other lines before and between the worker's own."""
        for line in self.process.stdout:
            if line.startswith("failed"):
                self.failure = line.removeprefix("failed").strip()
            if line.strip() == "ready":
                return True
        return False

    def run(self, steps: int) -> dict:
        return self.ask(f"run {steps}")

    def ask(self, words: str) -> dict:
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return json.loads(next(line for line in self.process.stdout if line.startswith("{")))

    def end(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()


class CaptureBenchmark(Findings):
    def __init__(self, joulemap: str, folder: Path, rounds: int, block_s: float) -> None:
        super().__init__()
        self.joulemap, self.folder, self.rounds, self.block_s = joulemap, folder, rounds, block_s
        self.recordings = 0

    def recorded(self, network: str, trace: str, tool: str = "nothing") -> tuple[Worker, Path]:
        self.recordings += 1
        file = self.folder / f"{network}-{trace}-{self.recordings}.joule"
        wrapper = [self.joulemap, "record", "--trace", trace, "-o", str(file), "--"]
        return Worker(network, tool, wrapper), file


def compute_median_interval(ratios: list[float]) -> tuple[float, float, float]:
    """Returns the median and its 95 % interval by order statistics."""
    sorted_ratios = sorted(ratios)
    count = len(sorted_ratios)
    lower_rank = int(math.floor(count / 2 - 0.98 * math.sqrt(count)))
    low = sorted_ratios[max(lower_rank, 0)]
    high = sorted_ratios[min(count - 1 - lower_rank, count - 1)]
    return statistics.median(sorted_ratios), low, high


def energy_meter():
    """Returns the GPU's energy counter, or None without one."""
    try:
        from gpu_load import EnergyCounter

        return EnergyCounter()
    except Exception as error:  # noqa: BLE001 - no GPU, no NVML
        print(f"no energy counter: {error}", file=sys.stderr)
        return None


def run_interleaved_blocks(bench: CaptureBenchmark, workers: list[Worker], steps: int) -> None:
    counter = energy_meter()
    for number in range(bench.rounds):
        for worker in random.Random(number).sample(workers, len(workers)):
            begin_energy_mj = counter.read_energy_mj() if counter else None
            block = worker.run(steps)
            block["joules"] = (counter.read_energy_mj() - begin_energy_mj) * 1e-3 if counter else None
            worker.blocks.append(block)


def cost(bench: CaptureBenchmark, network: str, bars: dict[str, float | None], tools: list[str]) -> None:
    workers = {"nothing": Worker(network, "nothing", [])}
    workers |= {f"joulemap {trace}": bench.recorded(network, trace)[0] for trace in bars}
    workers |= {tool: Worker(network, tool, []) for tool in tools}
    bench.add_line(f"\n### {network}\n")
    for name, worker in list(workers.items()):
        if not worker.is_ready():
            bench.add_line(f"{name} did not start: {worker.failure}\n")
            del workers[name]
    steps = max(5, round(bench.block_s / workers["nothing"].run(10)["step_s"]))
    run_interleaved_blocks(bench, list(workers.values()), steps)
    for worker in workers.values():
        worker.end()
    bench.add_line(f"{bench.rounds} rounds of {steps} steps\n")
    bench.add_line(
        "| tool | step, median | added time | 95 % | added joules | 95 % | bar |\n|---|---|---|---|---|---|---|"
    )
    baseline_blocks = workers["nothing"].blocks
    for name, worker in workers.items():
        tool_blocks = worker.blocks
        max_overhead = bars.get(name.removeprefix("joulemap "))
        median, low, high = median_overhead(tool_blocks, baseline_blocks, "step_s")
        verdict = (
            ""
            if max_overhead is None
            else f"<= {max_overhead:.0%}: {bench.bar(f'{network}, {name}: added time', median <= max_overhead)}"
        )
        energy_overhead, overhead_low, overhead_high = median_overhead(tool_blocks, baseline_blocks, "joules")
        step_ms = 1e3 * statistics.median(block["step_s"] for block in tool_blocks)
        bench.add_line(
            f"| {name} | {step_ms:.3f} ms | {median:+.2%} | {low:+.2%} to {high:+.2%} | {energy_overhead:+.2%} | "
            f"{overhead_low:+.2%} to {overhead_high:+.2%} | {verdict} |"
        )


def median_overhead(
    tool_blocks: list[dict], baseline_blocks: list[dict], quantity_key: str
) -> tuple[float, float, float]:
    """Median overhead of a block over the block without a tool in the same round, with its 95 % interval."""
    if tool_blocks[0][quantity_key] is None:
        return math.nan, math.nan, math.nan
    return compute_median_interval(
        [
            tool_block[quantity_key] / baseline_block[quantity_key] - 1
            for tool_block, baseline_block in zip(tool_blocks, baseline_blocks)
        ]
    )


def measure_coverage(bench: CaptureBenchmark, networks: list[str]) -> None:
    """Measures the captured share of kernel time; the workers start together and run one after the other."""
    bench.add_line("\n## What is captured (--trace full)\n")
    bench.add_line(
        "| network | kernels | with a phase | with a module | bytes a kernel | bars |\n|---|---|---|---|---|---|"
    )
    recorded_workers = {network: bench.recorded(network, "full") for network in networks}
    for network, (worker, _) in recorded_workers.items():
        if worker.is_ready():
            worker.run(60)
            worker.end()
    for network, (worker, file) in recorded_workers.items():
        if not file.exists():
            bench.add_line(f"| {network} | did not start: {worker.failure} | | | | |")
            continue
        coverage = KernelTimeCoverage(bench.joulemap, file)
        is_trace_compact = coverage.bytes_per_kernel <= MAX_BYTES_PER_KERNEL
        is_bar_met = (
            coverage.phase >= MIN_PHASE_COVERAGE and coverage.module >= MIN_MODULE_COVERAGE and is_trace_compact
        )
        bench.add_line(
            f"| {network} | {coverage.kernels} | {coverage.phase:.2%} | {coverage.module:.2%} | "
            f"{coverage.bytes_per_kernel:.2f} | {bench.bar(f'{network}: coverage', is_bar_met)} |"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joulemap", type=Path, required=True)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--processes", type=int, default=3, help="one after the other, for the light mode")
    parser.add_argument("--turns-s", type=float, default=40, help="of each of those")
    parser.add_argument("--ways", help="of joulemap to watch, for the costs: full,light")
    parser.add_argument("--block-s", type=float, default=1.5)
    parser.add_argument("--only", choices=["costs", "light", "coverage"])
    parser.add_argument(
        "--networks", help="of the costs: resnet50,mobilenet; of the coverage and of light mode likewise"
    )
    parser.add_argument("--tools", default="torch-profiler,zeus,codecarbon,gatorch")
    options = parser.parse_args()
    selected_networks = options.networks.split(",") if options.networks else None
    with tempfile.TemporaryDirectory() as folder:
        bench = CaptureBenchmark(str(options.joulemap.resolve()), Path(folder), options.rounds, options.block_s)
        if options.only in (None, "costs"):
            bench.add_line("## What capture costs")
            tools = [tool for tool in options.tools.split(",") if tool]
            for network in selected_networks or MAX_OVERHEADS:
                bars = MAX_OVERHEADS.get(network, {"auto": None})
                trace_modes = options.ways.split(",") if options.ways else bars
                cost(bench, network, {trace_mode: bars.get(trace_mode) for trace_mode in trace_modes}, tools)
        if options.only in (None, "light"):
            for network in selected_networks or MAX_LIGHT_OVERHEAD:
                if options.only == "light" or network in MAX_LIGHT_OVERHEAD:
                    max_overhead = MAX_LIGHT_OVERHEAD.get(network, 0.02)
                    write_light_overhead(bench, network, max_overhead, options.processes, options.turns_s)
        if options.only in (None, "coverage"):
            measure_coverage(bench, selected_networks or COVERAGE_NETWORKS)
    return bench.conclude(options.markdown)


if __name__ == "__main__":
    sys.exit(main())
