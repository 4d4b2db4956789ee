# SPDX-License-Identifier: Apache-2.0
"""LSTM, GRU and plain recurrent layers as a GPU runs them: a stack of layers is one cuDNN call, a cell is two
products and one kernel for its gates. On fake tensors PyTorch decomposes both, step by step or as the CPU library
does."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

from .shapes import OperationSpec, shape_to_batch_rows_width

GATE_COUNTS = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# Forms, indexed by the argument `mode` of _cudnn_rnn.
FORM_BY_CUDNN_RNN_MODE = ("rnn_relu", "rnn_tanh", "lstm", "gru")


class RecurrentStack(NamedTuple):
    """A stack of layers; `projection_width` is 0 if the output is as wide as the state."""

    form: str
    batch: int
    steps: int
    input_width: int
    hidden_width: int
    layers: int
    directions: int
    bias: bool
    projection_width: int = 0

    @property
    def output_width(self) -> int:
        return self.projection_width or self.hidden_width

    def spec(self) -> OperationSpec:
        sizes = {"batch": self.batch, "steps": self.steps, "in": self.input_width, "hidden": self.hidden_width}
        sizes |= {"layers": self.layers, "directions": self.directions, "bias": int(self.bias)}
        sizes |= {"projection": self.projection_width} if self.projection_width else {}
        return OperationSpec("recurrent", self.form, {name: int(size) for name, size in sizes.items()})


def make_stack_from_input(
    form: str, x: Any, params: Sequence, layers: int, bidirectional: bool, bias: bool, batch_first: bool
) -> RecurrentStack:
    steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    return make_stack_from_weights(form, steps, batch, x.shape[-1], params, layers, bidirectional, bias)


def make_stack_from_weights(
    form: str, steps: int, batch: int, input_width: int, params: Sequence, layers: int, bidirectional: bool, bias: bool
) -> RecurrentStack:
    """Derives sizes from the weights: the first is (gates * hidden_width, in), the second (gates * hidden_width,
    output_width)."""
    hidden_width, output_width = int(params[0].shape[0]) // GATE_COUNTS[form], int(params[1].shape[1])
    projection_width = output_width if output_width != hidden_width else 0
    return RecurrentStack(
        form,
        int(batch),
        int(steps),
        int(input_width),
        hidden_width,
        int(layers),
        1 + bool(bidirectional),
        bias,
        projection_width,
    )


def classify_cudnn_rnn(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    """Arguments: (input, weights, weights of a layer, buffer, hx, cx, mode, hidden, projection, layers, batch first,
    dropout, train, bidirectional)."""
    x, weights, form = args[0], args[1], FORM_BY_CUDNN_RNN_MODE[int(args[6])]
    return [make_stack_from_input(form, x, weights, args[9], args[13], int(args[2]) > 2, args[10]).spec()]


def classify_fused_gates(name: str, args: Sequence, outputs: Sequence) -> Sequence[OperationSpec]:
    return [make_gates_spec(name.removeprefix("_thnn_fused_"), args[0])]


def make_gates_spec(form: str, products: Any) -> OperationSpec:
    rows = GATE_COUNTS[form.removesuffix("_cell")]
    return OperationSpec("activation", form, {"batch": int(products.shape[0]), "rows": rows,
                                     "width": int(products.shape[1]) // rows})  # fmt: skip


class RecurrentKernels:
    """Replacement kernels for the recurrent layers and cells of one trace. `autocast` is the type that it casts to;
    recurrent layers then run in fp16, whatever that type is."""

    def __init__(self, torch: Any, recorder: Any, single_kernel: Callable, is_traced: Callable, autocast: Any) -> None:
        self._torch, self._recorder, self._single_kernel = torch, recorder, single_kernel
        self._is_traced, self._autocast = is_traced, autocast

    def kernels_by_name(self) -> dict[str, Callable]:
        layer_kernels: dict[str, Callable] = {}
        for form in GATE_COUNTS:
            layer_kernels[f"{form}.input"] = self._make_layers_kernel(form)
            layer_kernels[f"{form}.data"] = self._make_packed_layers_kernel(form)
        cell_kernels = {"lstm_cell": self.lstm_cell, "gru_cell": self.gru_cell}
        return (
            layer_kernels
            | cell_kernels
            | {"_pack_padded_sequence": self.pack_sequences, "_pad_packed_sequence": self.unpack_sequences}
        )

    def _make_layers_kernel(self, form: str) -> Callable:
        def run(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
            if not self._is_traced([x, *params]):
                aten_operation = getattr(self._torch.ops.aten, form).input
                return aten_operation.decompose(
                    x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
                )
            x = x.transpose(0, 1).contiguous() if batch_first else x  # cuDNN reads time steps one after the other
            stack = make_stack_from_input(form, x, params, num_layers, bidirectional, has_biases, False)
            y, *states = self._call_single_kernel(stack, f"aten.{form}", x, hx, params, [stack.steps, stack.batch])
            return (y.transpose(0, 1) if batch_first else y, *states)

        return run

    def _make_packed_layers_kernel(self, form: str) -> Callable:
        def run(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
            if not self._is_traced([data, *params]):
                aten_operation = getattr(self._torch.ops.aten, form).data
                return aten_operation.decompose(
                    data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional
                )
            rows, steps = int(data.shape[0]), int(batch_sizes.shape[0])
            batch = -(-rows // max(1, steps))  # sequence lengths differ: mean number of sequences active at a time step
            stack = make_stack_from_weights(
                form, steps, batch, data.shape[-1], params, num_layers, bidirectional, has_biases
            )
            return self._call_single_kernel(stack, f"aten.{form}", data, hx, params, [rows])

        return run

    def pack_sequences(self, x, lengths, batch_first):
        """Packs with the longest length for every sequence, since fake tensors contain no lengths."""
        if not self._is_traced((x,)):
            with self._torch._C._AutoDispatchBelowAutograd():
                return self._torch.ops.aten._pack_padded_sequence(x, lengths, batch_first)
        note = "packed sequences of different lengths: each counts as the longest"
        self._recorder.notes += [] if note in self._recorder.notes else [note]
        rows, steps = int(x.shape[0]) * int(x.shape[1]), int(x.shape[1 if batch_first else 0])
        operation_spec = OperationSpec("reshape", "gather", shape_to_batch_rows_width([rows, *x.shape[2:]]))
        (data,) = self._single_kernel(operation_spec, "aten._pack_padded_sequence", [[rows, *x.shape[2:]]], x)
        with self._recorder.pause_recording():
            return data, self._torch.full((steps,), rows // max(1, steps), dtype=self._torch.int64)

    def unpack_sequences(self, data, batch_sizes, batch_first, padding_value, total_length):
        if not self._is_traced((data,)):
            aten_operation = self._torch.ops.aten._pad_packed_sequence.default
            return aten_operation.decompose(data, batch_sizes, batch_first, padding_value, total_length)
        steps = int(batch_sizes.shape[0])
        batch = int(data.shape[0]) // max(1, steps)
        shape = [batch, steps, *data.shape[1:]] if batch_first else [steps, batch, *data.shape[1:]]
        operation_spec = OperationSpec("reshape", "gather", shape_to_batch_rows_width(data.shape))
        (padded_sequences,) = self._single_kernel(operation_spec, "aten._pad_packed_sequence", [shape], data)
        with self._recorder.pause_recording():
            return padded_sequences, self._torch.full((batch,), steps, dtype=self._torch.int64)

    def _call_single_kernel(
        self, stack: RecurrentStack, source: str, x: Any, hx: Any, params: Sequence, leading_sizes: Sequence[int]
    ) -> tuple:
        hx = [hx] if not isinstance(hx, (list, tuple)) else list(hx)
        input_tensors = [self._to_fp16(tensor) for tensor in (x, *hx, *params)]
        shapes = [[*leading_sizes, stack.directions * stack.output_width], *[list(tensor.shape) for tensor in hx]]
        return self._single_kernel(stack.spec(), source, shapes, *input_tensors)

    def _to_fp16(self, tensor: Any) -> Any:
        is_cast = self._autocast is not None and tensor.dtype == self._torch.float32
        return tensor.to(self._torch.float16) if is_cast else tensor

    def lstm_cell(self, x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        if not self._is_traced((x, w_ih)):
            return self._torch.ops.aten.lstm_cell.default.decompose(x, hx, w_ih, w_hh, b_ih, b_hh)
        input_gate_products, state_gate_products = self._compute_gate_products(x, hx[0], w_ih, w_hh)
        shapes = [list(hx[0].shape), list(hx[1].shape)]
        biases = [bias for bias in (b_ih, b_hh) if bias is not None]
        gates_spec = make_gates_spec("lstm_cell", input_gate_products)
        return self._single_kernel(
            gates_spec, "aten._thnn_fused_lstm_cell", shapes, input_gate_products, state_gate_products, hx[1], *biases
        )

    def gru_cell(self, x, hx, w_ih, w_hh, b_ih=None, b_hh=None):
        if not self._is_traced((x, w_ih)):
            return self._torch.ops.aten.gru_cell.default.decompose(x, hx, w_ih, w_hh, b_ih, b_hh)
        input_gate_products, state_gate_products = self._compute_gate_products(x, hx, w_ih, w_hh)
        biases = [bias for bias in (b_ih, b_hh) if bias is not None]
        gates_spec = make_gates_spec("gru_cell", input_gate_products)
        shapes = [list(hx.shape)]
        return self._single_kernel(
            gates_spec, "aten._thnn_fused_gru_cell", shapes, input_gate_products, state_gate_products, hx, *biases
        )[0]

    def _compute_gate_products(self, x: Any, state: Any, w_ih: Any, w_hh: Any) -> tuple:
        return self._torch.matmul(x, w_ih.t()), self._torch.matmul(state, w_hh.t())
