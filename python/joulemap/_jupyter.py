# SPDX-License-Identifier: Apache-2.0
"""IPython and Jupyter magics: %load_ext joulemap, then %%joules in a cell or %joules before a statement."""

from __future__ import annotations

from typing import Any, Optional


def load_ipython_extension(shell: Any) -> None:
    from . import measure

    def joules(line: str, cell: Optional[str] = None) -> Any:
        """Prints the energy of a cell (or of the rest of the line). %%joules NAME stores the window in the variable
        NAME."""
        code = line if cell is None else cell
        with measure("line" if cell is None else "cell") as window:
            result = shell.run_cell(code)
        print(window.wait())
        name = line.strip()
        if cell is not None and name:
            shell.user_ns[name] = window
        # run_cell has already printed the error; raising stops the rest of a script.
        if not result.success:
            from IPython.core.error import UsageError

            raise UsageError("the code of the cell failed; the energy covers the time until then")

    shell.register_magic_function(joules, magic_kind="line_cell", magic_name="joules")
