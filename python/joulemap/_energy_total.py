# SPDX-License-Identifier: Apache-2.0
"""EnergyTotal: the energy of several runs in one file, with one entry per run, including interrupted, resumed and
failed runs."""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import Any, Optional

from ._energy import Energy
from ._library import JoulemapError
from ._output import replace_file_atomically

SCHEMA = "joulemap.total/1"


class EnergyTotal:
    """Rewrites the file during a run, so that a killed run counts with the energy it had used until the last update.
    Measured and estimated joules are summed separately. Concurrent runs need separate files."""

    def __init__(self, path: Any) -> None:
        self._path = os.fspath(path)
        self.runs: list = self._read_runs()
        self._current_run_entry: Optional[dict] = None

    def _read_runs(self) -> list:
        if not os.path.exists(self._path):
            return []
        try:
            with open(self._path, encoding="utf-8") as file:
                document = json.load(file)
            if document["schema"] != SCHEMA:
                raise ValueError(f"its schema is {document['schema']}")
            return list(document["runs"])
        except (ValueError, KeyError, TypeError) as error:
            raise JoulemapError(f"{self._path} is not a file of energy totals ({error}): use another path") from None

    def update(self, energy: Energy, state: str) -> None:
        """Stores the energy of the current run so far. `state`: running, ended or failed."""
        if self._current_run_entry is None:
            self._current_run_entry = {"id": uuid.uuid4().hex, "began_unix_s": time.time() - (energy.seconds or 0)}
            self.runs.append(self._current_run_entry)
        self._current_run_entry.update(
            state=state, seconds=energy.seconds, measured_j=energy.measured_j, estimated_j=energy.estimated_j
        )
        with replace_file_atomically(self._path) as temporary_path, open(temporary_path, "w", encoding="utf-8") as file:
            json.dump({"schema": SCHEMA, "runs": self.runs}, file, indent=1)

    def _sum_over_runs(self, field_name: str) -> Optional[float]:
        known_values = [run[field_name] for run in self.runs if run.get(field_name) is not None]
        return sum(known_values) if known_values else None

    @property
    def measured_j(self) -> Optional[float]:
        return self._sum_over_runs("measured_j")

    @property
    def estimated_j(self) -> Optional[float]:
        return self._sum_over_runs("estimated_j")

    @property
    def seconds(self) -> Optional[float]:
        return self._sum_over_runs("seconds")
