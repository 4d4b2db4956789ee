# SPDX-License-Identifier: Apache-2.0
"""Measures the energy of operations and whole networks on this machine's GPU (`joulemap collect`), as training data
for predictions.

`kinds_*` define what can be measured: the shapes to draw, the tensors to allocate, FLOPs and bytes. `design` orders
the rows so that every prefix is a balanced design. `measure` runs one row, `power` reads the GPU and estimates the
power of a row, `rows` stores results, `command` implements the command. No module here imports the rest of the
package, so the collector runs without its native libraries.
"""
