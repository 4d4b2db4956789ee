# SPDX-License-Identifier: Apache-2.0
"""Data for predictions: what operations and whole networks draw on this machine's GPU, row by row (`joulemap
collect`).

`kinds_*` say what can be measured: shapes to draw, tensors to make, arithmetic and bytes. `design` puts them into
an order of which every beginning is a balanced design, `measure` runs one of them, `power` reads the GPU and finds
the watts of a row, `rows` keeps what was measured, `command` is the command. Nothing in here imports the rest of
the package, so that it runs without its libraries.
"""
