# SPDX-License-Identifier: Apache-2.0
"""The command line of `joulemap bench serve`. src/cli/bench_command.cc declares the same options for the program, whose help
is in docs/reference/cli.md; tests/cli/test_bench.py compares the two."""

from __future__ import annotations

import argparse
import math
from typing import Callable, NoReturn, Optional, Sequence

from .._collect.arguments import StrictArgumentParser, parse_count
from .lengths import LengthDistribution, parse_lengths

MAX_DURATION_S = 1e6
MAX_RATE_PER_S = 1e5  # requests per second
DEFAULT_DURATION_S = 60.0


class BenchServeParser(StrictArgumentParser):
    """Prints errors as the program does."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\njoulemap: -> see {self.prog} --help\n")


def make_bench_parser() -> argparse.ArgumentParser:
    parser = BenchServeParser(
        prog="joulemap bench serve", description="measure latency and energy per token of a serving engine"
    )
    target_group = parser.add_mutually_exclusive_group(required=True)
    target_group.add_argument(
        "--endpoint", metavar="URL",
        help="address of an OpenAI-compatible server: http://127.0.0.1:8000/v1",
    )  # fmt: skip
    target_group.add_argument(
        "--engine", metavar="FILE",
        help="FILE.py:FUNCTION, which creates an engine in this process",
    )  # fmt: skip
    parser.add_argument("--model", metavar="NAME", help="model of the server; default: the first that it lists")
    parser.add_argument("--chat", action="store_true", help="send chat completions instead of completions")
    parser.add_argument(
        "--ignore-eos", action="store_true",
        help="ask for answers of full length, as vLLM, SGLang and llama.cpp support",
    )  # fmt: skip
    parser.add_argument("--api-key-env", metavar="VARIABLE", help="environment variable that contains the API key")
    parser.add_argument(
        "--rate", type=parse_rates, metavar="LIST",
        help="requests per second of each load level, such as 1,2,4; default: 1",
    )  # fmt: skip
    parser.add_argument("--arrivals", nargs="+", metavar="KIND", help="poisson (the default), or trace and a CSV file")
    amount_group = parser.add_mutually_exclusive_group()
    amount_group.add_argument("--requests", type=parse_count, metavar="N", help="requests of each load level")
    amount_group.add_argument(
        "--duration", type=parse_seconds, metavar="S",
        help="time in which requests arrive, for each load level; default: 60",
    )  # fmt: skip
    parser.add_argument(
        "--seed", type=parse_whole_number, default=1, metavar="N",
        help="seed of arrivals, lengths and prompts; default: 1",
    )  # fmt: skip
    parser.add_argument(
        "--prompt-tokens", type=parse_lengths_option, metavar="D",
        help="length of prompts: 256, 128..512 or lognormal:256,0.5",
    )  # fmt: skip
    parser.add_argument("--output-tokens", type=parse_lengths_option, metavar="D", help="length of answers, likewise")
    parser.add_argument(
        "--tenant", type=parse_tenants, default=(), metavar="LIST",
        help="tenants with weights, such as chat=3,search=1",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=parse_seconds, default=120.0, metavar="S",
        help="time limit of a request; default: 120",
    )  # fmt: skip
    parser.add_argument(
        "--max-duration", type=parse_seconds, default=3600.0, metavar="S",
        help="time limit of all load levels; default: 3600",
    )  # fmt: skip
    parser.add_argument(
        "--ramp", type=parse_share, default=0.2, metavar="SHARE",
        help="leave out the first SHARE of the arrival period; default: 20%%",
    )  # fmt: skip
    parser.add_argument(
        "--warm-up", type=parse_whole_number, default=2, metavar="N",
        help="requests before the first load level; default: 2",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="one line of JSON (schema joulemap.bench_serve/1)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE")
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes, no progress")
    return parser


def parse_options(words: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Ends the process with exit code 2 for wrong usage."""
    parser = make_bench_parser()
    options = parser.parse_args(words)
    options.trace = arrival_trace_path(parser, options.arrivals or ["poisson"])
    if options.trace and (options.prompt_tokens or options.output_tokens or options.tenant):
        parser.error(
            "a trace contains lengths and tenants: --prompt-tokens, --output-tokens and --tenant are for poisson"
        )
    if options.engine and (options.model or options.chat or options.ignore_eos or options.api_key_env):
        parser.error("--model, --chat, --ignore-eos and --api-key-env are for --endpoint")
    options.prompt_tokens = options.prompt_tokens or parse_lengths("128..512")
    options.output_tokens = options.output_tokens or parse_lengths("64..256")
    if options.requests is None and options.duration is None and not options.trace:
        options.duration = DEFAULT_DURATION_S
    return options


def arrival_trace_path(cli: argparse.ArgumentParser, arrivals: Sequence[str]) -> Optional[str]:
    """The file of `--arrivals trace FILE`; None for `--arrivals poisson`."""
    if list(arrivals) == ["poisson"]:
        return None
    if len(arrivals) == 2 and arrivals[0] == "trace":
        return arrivals[1]
    cli.error(f"argument --arrivals: {' '.join(arrivals)} is neither poisson nor trace FILE")


def parse_number_in_range(low: float, high: float, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low:g} to {high:g}")
    return value


def parse_seconds(text: str) -> float:
    return parse_number_in_range(0.001, MAX_DURATION_S, text)


def parse_whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def parse_rates(text: str) -> tuple[float, ...]:
    return tuple(parse_number_in_range(1e-6, MAX_RATE_PER_S, rate_text) for rate_text in text.split(","))


def parse_share(text: str) -> float:
    """A share from 0 to 90 %, as 0.2 or 20%."""
    share = parse_number_in_range(0, 90, text[:-1]) / 100 if text.endswith("%") else parse_number_in_range(0, 0.9, text)
    return share


def parse_or_reject(parse_text: Callable[[str], LengthDistribution], text: str) -> LengthDistribution:
    try:
        return parse_text(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parse_lengths_option(text: str) -> LengthDistribution:
    return parse_or_reject(parse_lengths, text)


def parse_tenants(text: str) -> tuple[tuple[str, float], ...]:
    """Names with weights: chat=3,search=1. Without a weight: 1."""
    weight_by_tenant: dict[str, float] = {}
    for tenant_text in text.split(","):
        name, separator, weight_text = tenant_text.partition("=")
        if not name.isprintable() or not name.strip() or name in weight_by_tenant or len(name) > 64:
            raise argparse.ArgumentTypeError(f"{text!r} is no list of distinct names such as chat=3,search=1")
        weight_by_tenant[name] = parse_number_in_range(1e-6, 1e6, weight_text) if separator else 1.0
    return tuple(weight_by_tenant.items())
