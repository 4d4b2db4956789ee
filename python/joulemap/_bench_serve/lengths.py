# SPDX-License-Identifier: Apache-2.0
"""Distributions of prompt and output lengths, in tokens. Only Random.random() is used: its values are the same in all
versions of Python."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

MAX_TOKENS = 1_000_000  # of a prompt or an output
LENGTH_SYNTAX = "256, 128..512 (uniform) or lognormal:256,0.5 (median and sigma of the logarithm)"


@dataclass(frozen=True)
class LengthDistribution:
    """A distribution of lengths. A single length has low == high."""

    text: str  # as given by the user
    low: int = 1
    high: int = MAX_TOKENS
    median: float = 0  # of a lognormal distribution; 0: uniform
    sigma: float = 0  # standard deviation of the natural logarithm

    def draw(self, draw: random.Random) -> int:
        """A length; uses the generator twice whatever the distribution is, so that later lengths stay comparable."""
        first_uniform, second_uniform = draw.random(), draw.random()
        if not self.median:
            return self.low + int(first_uniform * (self.high - self.low + 1))
        standard_normal = math.sqrt(-2 * math.log(1 - first_uniform)) * math.cos(2 * math.pi * second_uniform)
        exponent = min(math.log(self.median) + self.sigma * standard_normal, math.log(self.high))
        return max(self.low, round(math.exp(exponent)))


def parse_lengths(text: str) -> LengthDistribution:
    """Raises ValueError if the text is none of LENGTH_SYNTAX."""
    if match := re.fullmatch(r"(\d{1,7})(?:\.\.(\d{1,7}))?", text, re.ASCII):
        low, high = int(match[1]), int(match[2] or match[1])
        if 1 <= low <= high <= MAX_TOKENS:
            return LengthDistribution(text, low, high)
    if match := re.fullmatch(r"lognormal:(\d{1,7}),(\d+(?:\.\d+)?)", text, re.ASCII):
        median, sigma = int(match[1]), float(match[2])
        if 1 <= median <= MAX_TOKENS and 0 <= sigma <= 5:
            return LengthDistribution(text, median=median, sigma=sigma)
    raise ValueError(f"{text!r} is no length in tokens from 1 to {MAX_TOKENS}: {LENGTH_SYNTAX}")
