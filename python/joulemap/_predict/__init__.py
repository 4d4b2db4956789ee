# SPDX-License-Identifier: Apache-2.0
"""PyTorch modules as lists of operations, for predictions of what they draw before they run (src/predict/graph/operation.h
has the vocabulary).

`trace` runs a module on tensors without data, `recorder` sees every operation that reaches the dispatcher, `layers`
and `elements` say what it is, `on_gpu` has PyTorch choose as it does on a GPU, `fakes` puts a module's tensors aside.
Nothing in here imports the rest of the package, so that it runs without its libraries.
"""
