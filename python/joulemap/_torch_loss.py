# SPDX-License-Identifier: Apache-2.0
"""Records the loss as a metric: the value on which backward() was called, read without synchronizing with a GPU."""

from __future__ import annotations

import atexit
import collections
import functools
import sys
import time
import weakref
from typing import Optional

from . import _capture
from ._guard import suppress_failures
from ._torch_versions import get_is_compiling, grad_scaler_class

MAX_PENDING_COPIES = 8
# Least time between copies of a GPU loss during untraced, CPU-bound steps, in ns.
MIN_LOSS_PERIOD_NS = 100_000_000
# Bits of a NaN that no computation produces: while the pinned memory contains them, the copy is pending. Querying an
# event would cost a CUDA call each time and is not allowed everywhere.
NOT_COPIED_BITS = 0x7FDEAD01


class LossLog:
    """A loss in CPU memory is read at once. A loss on a GPU is copied to pinned memory in stream order and read some
    steps later, when the copy has completed."""

    def __init__(self, torch) -> None:
        self._torch = torch
        self._pending_copies: collections.deque = collections.deque()
        self._free_buffers: list = []
        self._has_stopped = False
        self.is_light_mode = False
        self._next_copy_ns = 0  # earliest time of the next copy during untraced steps
        self._scaled_loss: Optional[tuple] = None  # weak reference to a scaled loss, and the original loss
        self._watch_scaling(torch)
        atexit.register(suppress_failures(self._read_completed_copies))

    def _watch_scaling(self, torch) -> None:
        """With mixed precision, backward() is called on a scaled loss."""
        scaler_type, is_compiling = grad_scaler_class(torch), get_is_compiling(torch)
        original_scale = scaler_type.scale

        @functools.wraps(original_scale)
        def scale_and_store_loss(scaler, outputs):
            scaled_loss = original_scale(scaler, outputs)
            if not is_compiling() and isinstance(outputs, torch.Tensor) and scaled_loss is not outputs:
                self._scaled_loss = weakref.ref(scaled_loss), outputs.detach()
            return scaled_loss

        scaler_type.scale = scale_and_store_loss

    def add_loss(self, loss) -> None:
        if self.is_light_mode and time.monotonic_ns() < self._next_copy_ns:
            self._scaled_loss = None
            return
        if self._has_stopped or _program_logs_losses():
            self._has_stopped = True
            return
        if isinstance(loss, (list, tuple)):
            loss = loss[0] if len(loss) == 1 else None
        if self._scaled_loss is not None and self._scaled_loss[0]() is loss:
            loss = self._scaled_loss[1]
        self._scaled_loss = None
        if type(loss) is not self._torch.Tensor or loss.numel() != 1 or not loss.is_floating_point():
            return
        try:
            with self._torch._C.DisableTorchFunction(), self._torch.no_grad():
                self._read_loss(loss.detach())
        except RuntimeError as error:  # a tensor without data
            self._has_stopped = True
            message = f"the loss that backward() was called on cannot be read: {error}"
            _capture.diagnose("loss_not_read", message, "log it with jm.log(loss=...)")

    def _read_loss(self, loss) -> None:
        if loss.device.type == "cpu":
            _capture.metric("loss", float(loss))
        elif loss.device.type == "cuda":
            self._read_completed_copies()
            self._copy_to_host(loss)

    def _copy_to_host(self, loss) -> None:
        torch = self._torch
        now_ns = time.monotonic_ns()
        # CUDA calls during graph capture would abort the capture, and the program with it.
        if len(self._pending_copies) >= MAX_PENDING_COPIES or torch.cuda.is_current_stream_capturing():
            return
        pinned_loss = (
            self._free_buffers.pop() if self._free_buffers else torch.empty((), dtype=torch.float32, pin_memory=True)
        )
        pinned_bits = pinned_loss.view(torch.int32)
        pinned_bits.fill_(NOT_COPIED_BITS)
        _capture.set_joulemap_work(True)
        try:
            pinned_loss.copy_(loss.reshape(()), non_blocking=True)
        finally:
            _capture.set_joulemap_work(False)
        self._pending_copies.append((pinned_loss, pinned_bits, now_ns))
        self._next_copy_ns = now_ns + MIN_LOSS_PERIOD_NS

    def _read_completed_copies(self) -> None:
        while self._pending_copies and self._pending_copies[0][1].item() != NOT_COPIED_BITS:
            pinned_loss, _, time_ns = self._pending_copies.popleft()
            _capture.metric("loss", float(pinned_loss), time_ns)
            self._free_buffers.append(pinned_loss)


def _program_logs_losses() -> bool:
    marks_module = sys.modules.get("joulemap._marks")
    return marks_module is not None and "loss" in marks_module.logged_metric_names
