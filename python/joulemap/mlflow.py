# SPDX-License-Identifier: Apache-2.0
"""Energy in MLflow:

    import mlflow, joulemap.mlflow
    with mlflow.start_run(), joulemap.mlflow.EnergyLogger() as energy:
        for batch in batches:
            energy.step()
            train(batch)

Logs metrics of the active run: "energy/step_j", "energy/epoch_j" (energy.epoch()), "energy/train_j", each also as "_w";
"..._estimated_j" if nothing can be measured.
"""

from __future__ import annotations

from typing import Optional

import mlflow

from ._loop_logger import LoopLogger


class EnergyLogger(LoopLogger):
    """Logs to the run that is active when the block begins, and stores the provenance of the energy as a tag."""

    def __enter__(self) -> EnergyLogger:
        run = mlflow.active_run()
        if run is None:
            from ._library import JoulemapError

            raise JoulemapError("no MLflow run is active: use with mlflow.start_run(), joulemap.mlflow.EnergyLogger():")
        self._run_id = run.info.run_id
        return super().__enter__()

    def log(self, metrics: dict, step: Optional[int]) -> None:
        if metrics:
            mlflow.log_metrics(metrics, step=step, run_id=self._run_id)

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        super().__exit__(kind, value, traceback)
        provenance = None if self.energy is None else self.energy.provenance
        mlflow.MlflowClient().set_tag(self._run_id, "energy", provenance or "unknown")
