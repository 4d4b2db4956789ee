# SPDX-License-Identifier: Apache-2.0
"""IPython and Jupyter: `%%joules` measures a cell, `%joules` a statement.

    %load_ext joulemap

    %%joules spent
    train()

It prints the energy of the cell, and a table of layers if PyTorch modules ran in it. The optional name stores
the Measurement in a variable, here `spent`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any, Optional

from . import _hot


def load_ipython_extension(shell: Any) -> None:
    from . import measure

    def joules(line: str, cell: Optional[str] = None) -> Any:
        """Shows the energy of a cell (or of the rest of the line), and its layers if PyTorch modules ran in it.
        %%joules NAME stores the window in the variable NAME."""
        code = line if cell is None else cell
        recorded_cell = None if cell is None else _RecordedCell.begin_cell()
        try:
            with measure("line" if cell is None else "cell") as cell_window:
                cell_result = shell.run_cell(code)
        finally:
            run = recorded_cell.end_cell() if recorded_cell else None
        print(cell_window.wait())
        if run is not None and any(len(row.path) > 1 for row in run.ledger().rows):
            from IPython.display import display

            display(run)
        variable_name = line.strip()
        if cell is not None and variable_name:
            shell.user_ns[variable_name] = cell_window
        # run_cell has already printed the error of the cell. Raising stops a script that runs the cells one by one.
        if not cell_result.success:
            from IPython.core.error import UsageError

            raise UsageError("the code of the cell failed; the energy covers the time until then")

    shell.register_magic_function(joules, magic_kind="line_cell", magic_name="joules")


class _RecordedCell:
    """A recording of this process in a temporary folder, while a cell runs."""

    def __init__(self, temporary_folder: tempfile.TemporaryDirectory, recorder: Any) -> None:
        self._temporary_folder, self._recorder = temporary_folder, recorder

    @classmethod
    def begin_cell(cls) -> Optional[_RecordedCell]:
        """Starts to record. None where modules cannot be recorded: without PyTorch, or within another recording."""
        if "torch" not in sys.modules or _hot.is_recording():
            return None
        from . import _torch_capture
        from ._library import JoulemapError
        from ._recorder import Recorder

        temporary_folder = tempfile.TemporaryDirectory(prefix="joulemap-")
        try:
            recorder = Recorder.begin(os.path.join(temporary_folder.name, "cell.joule"), "auto", None, False)
        except JoulemapError:
            temporary_folder.cleanup()
            return None
        _torch_capture.install_or_resume(sys.modules["torch"])
        return cls(temporary_folder, recorder)

    def end_cell(self) -> Any:
        from . import _torch_capture
        from ._run import Run

        if _torch_capture.capture_session is not None:
            _torch_capture.capture_session.pause()
        self._recorder.end()
        run = Run([self._recorder.file])
        run.folder = self._temporary_folder  # type: ignore[attr-defined]  # removed with the run
        return run
