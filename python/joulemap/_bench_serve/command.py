# SPDX-License-Identifier: Apache-2.0
"""joulemap bench serve: plans the load levels, runs them one after another, and prints the report."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import sys
from typing import Callable, Iterator, Optional, Sequence, Union

from .._library import JoulemapError
from .._output import replace_file_atomically
from . import arguments, energy, load, notes, output, result
from .endpoint import Endpoint, EndpointOptions
from .engine import EngineTarget, load_engine
from .http_stream import parse_address
from .outcome import BenchError
from .plan import LoadLevel, Workload, plan_load_level, plan_warm_up
from .trace_file import ArrivalTraceError, read_arrival_trace

AnyTarget = Union[Endpoint, EngineTarget]


def main(words: Optional[Sequence[str]] = None) -> int:
    """Returns the exit code: 0 done, 1 failed, 2 wrong usage, 77 not possible here."""
    options = arguments.parse_options(words)
    try:
        return run_benchmark(options)
    except BenchError as error:
        print(f"joulemap bench serve: {error}", file=sys.stderr)
        if error.remedy:
            print(f"joulemap: -> {error.remedy}", file=sys.stderr)
        return error.exit_code
    except (JoulemapError, OSError) as error:
        print(f"joulemap bench serve: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run_benchmark(options: argparse.Namespace) -> int:
    check_output_path(options.output, options.trace)
    workload = make_workload(options)
    levels = plan_load_levels(options, workload)
    target = make_request_target(options)
    raise_open_file_limit()
    results = asyncio.run(run_load_levels(options, workload, levels, target))
    diagnostics = notes.diagnose_load_levels(results, target.url, target.is_local)
    settings = make_reported_settings(options, target)
    if options.json:
        report_text = output.to_json(settings, results, diagnostics) + "\n"
    else:
        report_text = output.to_text(settings, results, diagnostics, with_notes=not options.quiet)
    write_report(options.output, report_text)
    return 0 if all(level.succeeded for level in results) and len(results) == len(levels) else 1


def make_workload(options: argparse.Namespace) -> Workload:
    try:
        trace = read_arrival_trace(options.trace) if options.trace else []
    except (OSError, ArrivalTraceError) as error:
        raise BenchError(f"{options.trace}: {getattr(error, 'strerror', None) or error}") from error
    return Workload(
        options.seed, options.prompt_tokens, options.output_tokens, options.tenant, tuple(trace), options.requests,
        options.duration,
    )  # fmt: skip


def plan_load_levels(options: argparse.Namespace, workload: Workload) -> list[LoadLevel]:
    rates = options.rate or ([None] if workload.trace else [1.0])
    try:
        levels = [plan_load_level(workload, rate, index, options.ramp) for index, rate in enumerate(rates)]
    except ValueError as error:
        raise BenchError(str(error), exit_code=2) from error
    if not all(level.requests for level in levels):
        raise BenchError("no request arrives in a load level", "use a longer --duration, or --requests", 2)
    return levels


def make_request_target(options: argparse.Namespace) -> AnyTarget:
    if options.engine:
        return load_engine(options.engine)
    try:
        address = parse_address(options.endpoint)
    except ValueError as error:
        raise BenchError(f"--endpoint: {error}", exit_code=2) from error
    api_key = os.environ.get(options.api_key_env) if options.api_key_env else None
    if options.api_key_env and not api_key:
        raise BenchError(f"--api-key-env: the environment has no {options.api_key_env}", exit_code=2)
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        raise BenchError(f"--api-key-env: {options.api_key_env} is no API key", exit_code=2)
    return Endpoint(
        options.endpoint, address, EndpointOptions(options.model, options.chat, options.ignore_eos, api_key)
    )


async def run_load_levels(
    options: argparse.Namespace, workload: Workload, levels: Sequence[LoadLevel], target: AnyTarget
) -> list[result.LoadLevelResult]:
    """Runs the levels until the time limit; those that it does not reach are missing."""
    loop = asyncio.get_running_loop()
    await target.open(options.timeout)
    meter = energy.WindowMeter() if target.is_local else energy.NullMeter()
    meter.start()
    try:
        await load.warm_up(plan_warm_up(workload, options.warm_up), target, options.timeout)
        deadline_s = loop.time() + options.max_duration
        results = []
        for level in levels:
            with show_progress_line(options, level) as progress:
                level_run = await load.run_load_level(level, target, meter, options.timeout, deadline_s, progress)
            measured_energy = await loop.run_in_executor(None, meter.read)
            results.append(result.summarize_load_level(level_run, measured_energy, target.has_one_token_per_chunk))
            if level_run.was_stopped_by_deadline:
                break
        return results
    finally:
        await target.close()


@contextlib.contextmanager
def show_progress_line(options: argparse.Namespace, level: LoadLevel) -> Iterator[Callable[[int, int], None]]:
    """A line on the terminal that shows how many requests were sent and have ended."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda sent_request_count, ended_request_count: None
        return
    rate_text = "" if level.rate_per_s is None else f" at {level.rate_per_s:.4g} requests/s"

    def show_progress(sent: int, ended: int) -> None:
        progress_text = f"{sent} of {len(level.requests)} requests sent{rate_text}, {sent - ended} in flight"
        print(f"\r\x1b[K{progress_text}", end="", file=sys.stderr, flush=True)

    try:
        yield show_progress
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def make_reported_settings(options: argparse.Namespace, target: AnyTarget) -> output.ReportedSettings:
    is_endpoint = options.endpoint is not None
    return output.ReportedSettings(
        kind="endpoint" if is_endpoint else "engine",
        address=target.url,
        model=target.model,
        api=("chat" if options.chat else "completions") if is_endpoint else None,
        is_local=target.is_local,
        arrivals="trace" if options.trace else "poisson",
        trace_file=options.trace,
        seed=options.seed,
        prompt_tokens=None if options.trace else options.prompt_tokens.text,
        output_tokens=None if options.trace else options.output_tokens.text,
        timeout_s=options.timeout,
        ramp_share=options.ramp,
        warm_up_requests=options.warm_up,
    )


def check_output_path(path: Optional[str], trace: Optional[str]) -> None:
    """Fails before the benchmark runs rather than after it."""
    if path is None:
        return
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise BenchError(f"{folder} is no folder that can be written to", "choose another -o FILE")
    if os.path.isdir(path):
        raise BenchError(f"{path} is a folder", "choose another -o FILE")
    if trace is not None and os.path.realpath(path) == os.path.realpath(trace):
        raise BenchError(f"{path} is the trace and would be overwritten", "choose another -o FILE", 2)


def write_report(path: Optional[str], text: str) -> None:
    if path is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    with replace_file_atomically(path) as temporary_path, open(temporary_path, "w", encoding="utf-8") as file:
        file.write(text)


def raise_open_file_limit() -> None:
    """Each request in flight needs a file descriptor."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
