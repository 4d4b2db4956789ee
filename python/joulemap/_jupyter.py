# SPDX-License-Identifier: Apache-2.0
"""IPython and Jupyter: %load_ext joulemap, then %%joules in a cell or %joules before a statement."""

from __future__ import annotations

from typing import Any, Optional


def load_ipython_extension(shell: Any) -> None:
    from . import measure

    def joules(line: str, cell: Optional[str] = None) -> Any:
        """Prints what a cell (or the rest of the line) drew. %%joules NAME keeps it in the variable NAME."""
        code = line if cell is None else cell
        with measure("line" if cell is None else "cell") as window:
            result = shell.run_cell(code)
        print(window.wait())
        name = line.strip()
        if cell is not None and name:
            shell.user_ns[name] = window
        # run_cell has shown an error already; what follows in a script is not to run on.
        if not result.success:
            from IPython.core.error import UsageError

            raise UsageError("the code above failed; what it drew until then is told")

    shell.register_magic_function(joules, magic_kind="line_cell", magic_name="joules")
