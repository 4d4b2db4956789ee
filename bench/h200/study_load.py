# SPDX-License-Identifier: Apache-2.0
"""What loads of studies share: a diary of when they did what, and loops that keep a device busy. Run under `joulemap
record`.

Moments are nanoseconds of CLOCK_MONOTONIC, as in the recording.
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

BEGUN_S = time.monotonic()
# A device that is waited for after every pass is not as busy as it would be.
BETWEEN_WAITS_S = 0.05
LEAST_SPAN_S = 0.3


def progress(text: str) -> None:
    print(f"  {time.monotonic() - BEGUN_S:6.1f} s  {text}", file=sys.stderr, flush=True)


class Diary:
    """What was done and when: on disk after every entry, so that a load that is cut off leaves what it has."""

    def __init__(self, file: Path, device: str, **facts: Any) -> None:
        self._file = file
        self.told = {"device": "gpu0" if device == "cuda" else "cpu", **facts, "entries": [], "failed": []}

    def add(self, **entry: Any) -> None:
        self.told["entries"].append(entry)
        self._write()

    def fail(self, what: str) -> None:
        """Within an exception's handler: one piece that fails leaves the others alone."""
        progress(f"{what} failed:\n{traceback.format_exc()}")
        self.told["failed"].append(f"{what}: {sys.exc_info()[1]!r}"[:300])
        self._write()

    def _write(self) -> None:
        written = self._file.with_suffix(".writing")
        written.write_text(json.dumps(self.told))
        os.replace(written, self._file)


class Device:
    def __init__(self, torch: Any, name: str) -> None:
        self.torch, self.name = torch, name
        if name == "cpu":  # sizes are tiny there: threads would only wait for one another
            torch.set_num_threads(1)

    def wait(self) -> None:
        if self.name == "cuda":
            self.torch.cuda.synchronize()

    def run(self, call: Callable[[], object], seconds: float) -> dict:
        """Calls for so long, at least one: the span, and how many. The device has nothing to do at both edges."""
        passes, at_once, begin_ns = 0, 1, time.monotonic_ns()
        while passes == 0 or time.monotonic_ns() - begin_ns < seconds * 1e9:
            for _ in range(at_once):
                call()
            self.wait()
            passes += at_once
            at_once = max(1, int(BETWEEN_WAITS_S * passes * 1e9 / (time.monotonic_ns() - begin_ns + 1)))
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": passes}

    def rest(self, seconds: float) -> dict:
        """Nothing is asked of a device that is awake: one that was never used sleeps, and draws less."""
        self.torch.ones(1, device=self.name).add_(1)
        self.wait()
        begin_ns = time.monotonic_ns()
        time.sleep(seconds)
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "passes": 0}

    def forget(self) -> None:
        """Gives memory back, so that the next network finds room."""
        if self.name == "cuda":
            self.torch.cuda.empty_cache()


def left_s(options: argparse.Namespace) -> float:
    return options.until_ns * 1e-9 - time.monotonic()


def load_parser(text: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the diary, JSON")
    parser.add_argument("--until-ns", type=int, required=True, help="of CLOCK_MONOTONIC: be done by then")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--tiny", action="store_true", help="sizes for a machine without a GPU")
    return parser
