# SPDX-License-Identifier: Apache-2.0
"""Converts PyTorch modules into lists of operations, to predict their energy before they run
(src/predict/graph/operation.h defines the vocabulary).

`operation_list` runs a module on fake tensors (without data), `recorder` records every operation that reaches the
dispatcher, `layers` and `elements` classify it. `on_gpu` makes PyTorch select the implementations of a GPU, `fakes`
replaces a module's tensors during the trace. No module here imports the rest of the package, so it runs without its
native libraries.
"""
