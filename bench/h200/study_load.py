# SPDX-License-Identifier: Apache-2.0
"""Shared code of study loads: a log of what they did and when, and loops that keep a device busy. Runs under
`joulemap record`.

Times are nanoseconds of CLOCK_MONOTONIC, as in the recording.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any, Callable

START_TIME_S = time.monotonic()
# Synchronizing after every pass would leave the device partly idle.
SYNCHRONIZE_INTERVAL_S = 0.05
MIN_SPAN_S = 0.3


def print_progress(text: str) -> None:
    print(f"  {time.monotonic() - START_TIME_S:6.1f} s  {text}", file=sys.stderr, flush=True)


class LoadLog:
    """Log of what was done and when. It is written to disk after every entry, so that an interrupted load loses
    nothing."""

    def __init__(self, file: Path, device: str, **load_metadata: Any) -> None:
        self._file = file
        self.document = {"device": "gpu0" if device == "cuda" else "cpu", **load_metadata, "entries": [], "failed": []}

    def add(self, **entry: Any) -> None:
        self.document["entries"].append(entry)
        self._write()

    def log_exception(self, part_description: str) -> None:
        """Logs the current exception; call it from an exception handler. The other parts of the load continue."""
        print_progress(f"{part_description} failed:\n{traceback.format_exc()}")
        self.document["failed"].append(f"{part_description}: {sys.exc_info()[1]!r}"[:300])
        self._write()

    def _write(self) -> None:
        temporary_file = self._file.with_suffix(".writing")
        temporary_file.write_text(json.dumps(self.document))
        os.replace(temporary_file, self._file)


class Device:
    def __init__(self, torch: Any, name: str) -> None:
        self.torch, self.name = torch, name
        if name == "cpu":  # sizes are tiny on the CPU: threads would only wait for one another
            torch.set_num_threads(1)

    def wait(self) -> None:
        if self.name == "cuda":
            self.torch.cuda.synchronize()

    def run(self, call: Callable[[], object], seconds: float) -> dict:
        """Repeats calls for that many seconds, at least once. Returns the span and the count; the device is idle at
        its edges."""
        passes, at_once, begin_ns = 0, 1, time.monotonic_ns()
        while passes == 0 or time.monotonic_ns() - begin_ns < seconds * 1e9:
            for _ in range(at_once):
                call()
            self.wait()
            passes += at_once
            at_once = max(1, int(SYNCHRONIZE_INTERVAL_S * passes * 1e9 / (time.monotonic_ns() - begin_ns + 1)))
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": passes}

    def rest(self, seconds: float) -> dict:
        """Leaves an initialized device idle: a device that was never used sleeps and has lower power."""
        self.torch.ones(1, device=self.name).add_(1)
        self.wait()
        begin_ns = time.monotonic_ns()
        time.sleep(seconds)
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": 0}

    def free_memory(self) -> None:
        """Frees memory for the next network."""
        if self.name == "cuda":
            self.torch.cuda.empty_cache()


def remaining_s(options: argparse.Namespace) -> float:
    return options.until_ns * 1e-9 - time.monotonic()


def make_load_parser(text: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the diary, JSON")
    parser.add_argument("--until-ns", type=int, required=True, help="of CLOCK_MONOTONIC: be done by then")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="sizes for a machine without a GPU")
    return parser
