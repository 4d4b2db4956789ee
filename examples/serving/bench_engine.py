# SPDX-License-Identifier: Apache-2.0
"""The example engine for `joulemap bench serve`, in the process of the benchmark:

    joulemap bench serve --engine examples/serving/bench_engine.py:tiny --rate 1,2,4

Any engine can be measured with such an adapter: docs/how-to/benchmark-serving.md describes its functions.
"""

from __future__ import annotations

from typing import Any

import torch
from engine import SHAPES, Engine, Request


class BenchEngine:
    """The engine with the functions that the benchmark calls, all from one thread."""

    def __init__(self, shape: str, device: str) -> None:
        self.engine = Engine(SHAPES[shape], device, cache_blocks=4096 if device != "cpu" else 1024)
        self.engine.capture_graphs()
        self.vocabulary = SHAPES[shape].vocabulary

    def submit(self, submitted_request: Any) -> None:
        """`submitted_request` has id, prompt (token ids), max_new_tokens, tenant, and on_token(token, is_last)."""
        self.engine.submit(
            Request(
                submitted_request.id,
                submitted_request.prompt,
                submitted_request.max_new_tokens,
                submitted_request.tenant,
                submitted_request.on_token,
            )
        )

    def step(self) -> None:
        self.engine.step()

    def has_work(self) -> bool:
        return self.engine.has_work()

    def abort(self, id: str) -> None:
        self.engine.abort(id)


def tiny() -> BenchEngine:
    """A network of 2 layers, on the CPU."""
    torch.manual_seed(1)
    return BenchEngine("tiny", "cpu")


def one_billion() -> BenchEngine:
    """A network of the size of Llama 3.2 1B, on a GPU."""
    torch.manual_seed(1)
    return BenchEngine("1b", "cuda")
