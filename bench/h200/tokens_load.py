# SPDX-License-Identifier: Apache-2.0
"""Load of tokens.py: serves mixtures of request classes with examples/serving/engine.py, whole and without one class
each, and writes when each run was and how many tokens it made. Requests arrive at step numbers, not at times: leaving
out a class does not change what the steps compute for the others.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

import torch

SCRIPT_FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPT_FOLDER.parent.parent / "examples" / "serving"))
from engine import SHAPES, Engine, Request  # noqa: E402

# Prompt and output tokens of each class.
REQUEST_CLASSES = {"short": (256, 48), "prompt": (3072, 24), "output": (64, 128)}
# Arrivals of each class per step.
ARRIVAL_RATES = {
    "even": {"short": 0.3, "prompt": 0.04, "output": 0.1},
    "chat": {"short": 0.5, "prompt": 0.02, "output": 0.15},
    "retrieval": {"short": 0.15, "prompt": 0.12, "output": 0.05},
    "writing": {"short": 0.15, "prompt": 0.02, "output": 0.3},
    "sparse": {"short": 0.1, "prompt": 0.02, "output": 0.02},
    "dense": {"short": 0.6, "prompt": 0.08, "output": 0.2},
}
# Batch size, prompt and output tokens of static batches.
PHASES = ((1, 4096, 96), (4, 1024, 96), (16, 512, 96), (64, 128, 64))
WARM_UP_LABEL = "warm-up"
PAUSE_BETWEEN_RUNS_S = 0.4  # pause between runs, so that the counter shows their edges


class ServingLoad:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.shape = SHAPES[arguments.shape]
        self.scale = arguments.scale
        self.run_s = arguments.run_s
        self.repeats = arguments.repeats
        self.engine = Engine(
            self.shape,
            arguments.device,
            arguments.cache_blocks,
            most_requests=96,
            chunk_tokens=2048,
            use_graphs=False if arguments.no_graphs else None,
        )
        self.engine.capture_graphs()
        self.runs: list[dict] = []
        self.serial = 0
        self.label = WARM_UP_LABEL  # number of the run, or WARM_UP

    def request(self, name: str, draw: random.Random) -> Request:
        prompt, output = (
            max(2, round(tokens * self.scale * draw.uniform(0.6, 1.4))) for tokens in REQUEST_CLASSES[name]
        )
        return self.make_request(name, prompt, output, draw)

    def make_request(self, name: str, prompt: int, output: int, draw: random.Random) -> Request:
        """A request whose tenant is its class and the number of the run: labels of the report distinguish runs."""
        self.serial += 1
        tokens = [draw.randrange(self.shape.vocabulary) for _ in range(prompt)]
        return Request(f"{name}-{self.serial}", tokens, output, f"{name}@{self.label}")

    def plan(self, mix: str, steps: int, seed: int) -> list[tuple[int, str]]:
        """Arrival step and class of each request."""
        draw = random.Random(seed)
        arrivals = []
        for name, rate in ARRIVAL_RATES[mix].items():
            arrival_step = draw.expovariate(rate)
            arrivals += [(0, name)]
            while arrival_step < steps:
                arrivals.append((int(arrival_step), name))
                arrival_step += draw.expovariate(rate)
        return sorted(arrivals)

    def serve_arrivals(
        self, arrivals: list[tuple[int, str]], left_out: str | None, seed: int, max_steps: int = 10**9
    ) -> dict:
        """Serves the requests and returns the times of the run and its tokens."""
        pending = []
        for number, (step, name) in enumerate(arrivals):  # a request is the same with and without the others
            request = self.request(name, random.Random(seed * 1_000_003 + number))
            if name != left_out:
                pending.append((step, request))
        time.sleep(PAUSE_BETWEEN_RUNS_S)
        begin_ns = time.monotonic_ns()
        step, tokens, next_request_index = 0, 0, 0
        while (next_request_index < len(pending) or self.engine.has_work()) and step < max_steps:
            while next_request_index < len(pending) and pending[next_request_index][0] <= step:
                self.engine.submit(pending[next_request_index][1])
                next_request_index += 1
            if self.engine.has_work():
                tokens += sum(len(request.output) for request in self.engine.step())
            step += 1
        end_ns = time.monotonic_ns()
        while self.engine.has_work():
            self.engine.step()
        return {"begin_ns": begin_ns, "end_ns": end_ns, "output_tokens": tokens, "steps": step}

    def step_s(self, mix: str) -> float:
        """Mean duration of a step of the mixture."""
        self.label = WARM_UP_LABEL
        steps = 60 if self.scale == 1 else 20
        for _ in range(2):  # kernels of new shapes are loaded at first
            run = self.serve_arrivals(self.plan(mix, steps, 1), None, 1, max_steps=steps)
        return (run["end_ns"] - run["begin_ns"]) * 1e-9 / steps

    def replay(self, mix: str, seed: int) -> None:
        """The mixture, then without each class; several times, because a shared host stalls now and then."""
        arrivals = self.plan(mix, max(30, round(self.run_s / self.step_s(mix))), seed)
        self.label = WARM_UP_LABEL
        self.serve_arrivals(arrivals, None, seed)
        for left_out in (None, *REQUEST_CLASSES) * self.repeats:
            self.label = str(len(self.runs))
            run = self.serve_arrivals(arrivals, left_out, seed)
            self.runs.append({"kind": "replay", "mix": mix, "left_out": left_out, **run})

    def phases(self, batch: int, prompt: int, output: int) -> None:
        """A static batch: all prompts, then all outputs; then only the prompts, then only the outputs. Once before, so
        that kernels of new shapes are loaded."""
        prompt, output = max(2, round(prompt * self.scale)), max(2, round(output * self.scale))
        for phase in (None, "both", "prefill", "decode"):
            self.label = WARM_UP_LABEL if phase is None else str(len(self.runs))
            time.sleep(PAUSE_BETWEEN_RUNS_S)
            begin_ns = time.monotonic_ns()
            rounds = 0
            while rounds < 1 or (phase is not None and (time.monotonic_ns() - begin_ns) * 1e-9 < self.run_s):
                draw = random.Random(rounds)
                for _ in range(batch):
                    request = self.make_request(
                        phase or WARM_UP_LABEL, prompt, 1 if phase == "prefill" else output, draw
                    )
                    if phase == "decode":  # its prompt counts as computed: the cache contains other tokens
                        self.engine.cache.reserve_blocks(request, prompt + output)
                        request.computed, request.output = prompt, [0]
                        self.engine.running.append(request)
                    else:
                        self.engine.submit(request)
                while self.engine.has_work():
                    self.engine.step()
                rounds += 1
            if phase is None:
                continue
            run = {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "rounds": rounds}
            self.runs.append(
                {"kind": "phases", "batch": batch, "phase": phase, "prompt": prompt, "output": output, **run}
            )

    def throughput(self) -> None:
        """Tokens per second of a fixed mixture, for runs with and without a recording."""
        arrivals = self.plan("even", 150 if self.scale == 1 else 20, 7)
        self.serve_arrivals(arrivals, None, 7)
        for _ in range(5):
            self.label = str(len(self.runs))
            run = self.serve_arrivals(arrivals, None, 7)
            self.runs.append({"kind": "throughput", **run})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", required=True)
    parser.add_argument("--run-s", type=float, default=4.0)
    parser.add_argument("--repeats", type=int, default=3, help="runs of each mixture and of each without a class")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of prompt and output lengths")
    parser.add_argument("--mixes", default=",".join(ARRIVAL_RATES))
    parser.add_argument("--cache-blocks", type=int, default=24_000)
    parser.add_argument("--only-throughput", action="store_true")
    parser.add_argument("--only-replays", action="store_true")
    parser.add_argument("--no-graphs", action="store_true", help="decode without CUDA graphs")
    arguments = parser.parse_args()
    if arguments.device == "cpu":
        torch.set_num_threads(1)  # threads that wait for each other disturb a trial on a busy machine
    load = ServingLoad(arguments)
    if not arguments.only_throughput:
        for number, mix in enumerate(arguments.mixes.split(",")):
            load.replay(mix, seed=11 + number)
        for batch, prompt, output in PHASES:
            load.phases(batch, prompt, output)
    if not arguments.only_replays:
        load.throughput()
    if arguments.device.startswith("cuda"):
        torch.cuda.synchronize()
    Path(arguments.out).write_text(json.dumps({"shape": arguments.shape, "runs": load.runs}))


if __name__ == "__main__":
    main()
