# SPDX-License-Identifier: Apache-2.0
"""Energy in Weights & Biases, also offline:

    import wandb, joulemap.wandb
    run = wandb.init(mode="offline")
    with joulemap.wandb.EnergyLogger(run) as energy:
        for batch in batches:
            energy.step()
            train(batch)

Energies have a separate axis, "energy/step", because the energy of a step is known only after W&B has closed the step.
They are separate rows of the history; the total and its provenance are in the run's summary.
"""

from __future__ import annotations

from typing import Any, Optional

from ._loop_logger import LoopLogger


class EnergyLogger(LoopLogger):
    """Logs to `run`, and stores the provenance of the energy in its summary."""

    def __init__(self, run: Any, total_file: Any = None) -> None:
        super().__init__(total_file)
        self._run = run
        run.define_metric("energy/step")
        run.define_metric("energy/*", step_metric="energy/step")

    def log(self, metrics: dict, step: Optional[int]) -> None:
        if metrics:
            self._run.log({**metrics, "energy/step": step or 0})

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        super().__exit__(kind, value, traceback)
        provenance = None if self.energy is None else self.energy.provenance
        self._run.summary["energy/provenance"] = provenance or "unknown"
