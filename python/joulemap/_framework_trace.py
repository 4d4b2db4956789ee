# SPDX-License-Identifier: Apache-2.0
"""Traces of a few steps, made by the framework's own profiler and stored in the folder of the recording. `joulemap
record` uses them to divide the time of a coarse scope, such as a whole compiled call
(src/ingest/framework_traces.h).

The .meta file is written after its trace, so a trace without one is truncated.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from typing import Iterable, Optional, Sequence, Tuple

from . import _capture_interface as capture

_trace_numbers = itertools.count(1)

# Traces the first calls after compilation, then with doubling intervals: names do not change, and a trace costs time.
_FIRST_TRACED_CALL_COUNT = 3
_MAX_TRACES = 16
_FIRST_TRACE_PAUSE_S = 10.0

MetadataLine = Tuple[str, ...]  # kind and fields of a line: "scope", name in the graph, phase or "", layer


class TracingSchedule:
    """Selects the calls of a compiled function that are profiled."""

    def __init__(self) -> None:
        self._call_count = 0
        self._trace_count = 0
        self._next_trace_s = 0.0

    def is_trace_due(self) -> bool:
        """Whether the current call is profiled. Called once per call of the function; the first call, which compiles,
        is never profiled."""
        self._call_count += 1
        if self._call_count == 1 or self._trace_count >= _MAX_TRACES:
            return False
        now_s = time.monotonic()
        if self._trace_count >= _FIRST_TRACED_CALL_COUNT and now_s < self._next_trace_s:
            return False
        self._trace_count += 1
        self._next_trace_s = now_s + _FIRST_TRACE_PAUSE_S * 2 ** max(self._trace_count - _FIRST_TRACED_CALL_COUNT, 0)
        return True


def _make_trace_folder() -> str:
    trace_folder = os.path.join(os.environ["JOULEMAP_RECORDING"], "traces")
    os.makedirs(trace_folder, exist_ok=True)
    return trace_folder


def _replace_separators(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")


def _write_metadata(
    path_without_suffix: str, coarse_scopes: Sequence[Tuple[str, str]], metadata_lines: Iterable[MetadataLine]
) -> None:
    text_lines = [
        f"coarse\t{scope_kind}\t{_replace_separators(scope_name)}" for scope_kind, scope_name in coarse_scopes
    ]
    text_lines += ["\t".join(map(_replace_separators, line_fields)) for line_fields in metadata_lines]
    with open(path_without_suffix + ".part", "w", encoding="utf-8", errors="replace") as file:
        file.write("\n".join(text_lines) + "\n")
    os.replace(path_without_suffix + ".part", path_without_suffix + ".meta")


def _find_file_with_suffix(folder: str, suffix: str) -> Optional[str]:
    for root, _, file_names in os.walk(folder):
        for file_name in file_names:
            if file_name.endswith(suffix):
                return os.path.join(root, file_name)
    return None


class FrameworkTrace:
    """One trace: the profiler writes into `folder`; then the caller calls store_trace() or drop_trace()."""

    def __init__(self) -> None:
        self._path_without_suffix = os.path.join(_make_trace_folder(), f"{os.getpid()}-{next(_trace_numbers)}")
        self.folder = self._path_without_suffix + ".running"

    def store_trace(self, kind: str, coarse: Sequence[Tuple[str, str]], names: Iterable[MetadataLine] = ()) -> None:
        """Moves the trace to its final name and writes the .meta file. `kind`: xplane.pb or onnxruntime.json. `coarse`:
        the scopes whose time the trace divides. `names`: what the names in the trace mean, as in
        src/ingest/trace_sidecar.h."""
        trace_file = _find_file_with_suffix(self.folder, "." + kind.rpartition(".")[2])
        if trace_file is None:
            capture.diagnose("no_trace", "the framework's profiler wrote no trace: that step has no layers")
        else:
            os.replace(trace_file, f"{self._path_without_suffix}.{kind}")
            _write_metadata(self._path_without_suffix, coarse, names)
        self.drop_trace()

    def drop_trace(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
