# SPDX-License-Identifier: Apache-2.0
"""Serves random requests with the example engine, and prints how fast it was.

    joulemap record -o serving.joule -- python examples/serving/serve.py
    joulemap report serving.joule --by request
    joulemap report serving.joule --by token

Two tenants: "chat" sends short prompts and wants long answers, "search" the other way round.
"""

from __future__ import annotations

import argparse
import random
import time

from engine import SHAPES, Engine, Request


def make_requests(count: int, vocabulary: int, rate: float, scale: float, seed: int) -> list[tuple[float, Request]]:
    """Requests and their arrival times in s: a Poisson process of `rate` requests per second; 0: all at once."""
    draw = random.Random(seed)
    requests, arrival_s = [], 0.0
    for number in range(count):
        arrival_s += draw.expovariate(rate) if rate > 0 else 0.0
        tenant = draw.choice(("chat", "search"))
        prompt, output = (32, 96) if tenant == "chat" else (256, 8)
        prompt = max(1, round(prompt * scale * draw.uniform(0.5, 1.5)))
        output = max(1, round(output * scale * draw.uniform(0.5, 1.5)))
        tokens = [draw.randrange(vocabulary) for _ in range(prompt)]
        requests.append((arrival_s, Request(f"{tenant}-{number}", tokens, output, tenant)))
    return requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda for a GPU")
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--rate", type=float, default=20, help="arrivals per second; 0: all at once")
    parser.add_argument("--scale", type=float, default=1, help="factor of prompt and output lengths")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()

    shape = SHAPES[arguments.shape]
    engine = Engine(shape, arguments.device, cache_blocks=4096 if arguments.device != "cpu" else 1024)
    arrivals = make_requests(arguments.requests, shape.vocabulary, arguments.rate, arguments.scale, arguments.seed)
    began = time.perf_counter()
    tokens = 0
    while arrivals or engine.has_work():
        now_s = time.perf_counter() - began
        while arrivals and arrivals[0][0] <= now_s:
            engine.submit(arrivals.pop(0)[1])
        if not engine.has_work():
            time.sleep(arrivals[0][0] - now_s)
            continue
        tokens += sum(len(request.output) for request in engine.step())
    elapsed_s = time.perf_counter() - began
    print(f"{tokens} output tokens in {elapsed_s:.2f} s: {tokens / elapsed_s:.1f} tokens per s, {engine.steps} steps")


if __name__ == "__main__":
    main()
