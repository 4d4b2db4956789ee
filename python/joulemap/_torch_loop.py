# SPDX-License-Identifier: Apache-2.0
"""Captures the training loop around the model: batches, optimizers, and the workers that make batches."""

from __future__ import annotations

import functools
import threading
import time
import weakref

from . import _capture
from ._guard import wrap_function, suppress_failures, wrap_in_phase
from ._torch_versions import get_is_compiling

EVENT_LOADER_NEW, EVENT_LOADER_NEXT, EVENT_OPTIMIZER_DONE, EVENT_LOADER_END = 0, 1, 6, 10
SCOPE_MODULE, SCOPE_OP, SCOPE_REGION = 2, 3, 5
MODE_TRAIN, MODE_INFERENCE = 1, 2
# The first two batches of a worker are sampled, then about 1 % of its time.
SAMPLED_FIRST_BATCHES, SAMPLE_PERIOD_FACTOR = 2, 100


def install(torch, operation_recorder) -> None:
    _watch_optimizers(torch)
    _watch_loaders(torch)
    _watch_batch_fetching(torch, operation_recorder)


def _watch_optimizers(torch) -> None:
    from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    open_steps = OpenOptimizerSteps()
    is_compiling = get_is_compiling(torch)

    def before_optimizer_step(optimizer, args, kwargs):
        if is_compiling():
            return
        open_steps.begin_step(optimizer)

    def after_optimizer_step(optimizer, args, kwargs):
        if is_compiling():
            return
        open_steps.end_step()

    register_optimizer_step_pre_hook(before_optimizer_step)
    register_optimizer_step_post_hook(after_optimizer_step)
    _watch_failed_steps(torch.autograd.profiler.record_function, open_steps, is_compiling)
    wrap_in_phase(Optimizer, "zero_grad", is_compiling, "zero_grad", MODE_TRAIN)


def _watch_failed_steps(record_function, open_steps: OpenOptimizerSteps, is_compiling) -> None:
    """PyTorch runs each optimizer step inside record_function, whose exit is called even if the step raises. Programs
    use record_function for much else: its exit costs next to nothing while no step is open."""
    original_exit = record_function.__exit__

    @functools.wraps(original_exit)
    def exit(self, *error):
        if is_compiling():
            return original_exit(self, *error)
        try:
            return original_exit(self, *error)
        finally:
            if open_steps.scope_depths and error and error[0] is not None:
                open_steps.abandon_step(self)

    record_function.__exit__ = exit


class OpenOptimizerSteps(threading.local):
    """Optimizer steps that this thread has begun; they may nest."""

    def __init__(self) -> None:
        self.scope_depths: list[int] = []
        self.begin_step = suppress_failures(self._begin_optimizer_step)
        self.end_step, self.abandon_step = (
            suppress_failures(self._end_optimizer_step, runs_when_capture_off=True),
            suppress_failures(self._abandon_step, runs_when_capture_off=True),
        )

    def _begin_optimizer_step(self, optimizer) -> None:
        self.scope_depths.append(_capture.phase_begin("optimizer", type(optimizer).__name__, MODE_TRAIN))

    def _end_optimizer_step(self) -> None:
        if self.scope_depths:
            _capture.leave_to(self.scope_depths.pop())
            _capture.on_event(EVENT_OPTIMIZER_DONE)

    def _abandon_step(self, profiler_range) -> None:
        if self.scope_depths and profiler_range.name.startswith("Optimizer.step#"):
            _capture.leave_to(self.scope_depths.pop())


def _watch_loaders(torch) -> None:
    from torch.utils.data import DataLoader, dataloader
    from torch.utils.data._utils import worker

    is_compiling = get_is_compiling(torch)
    is_grad_enabled = torch.is_grad_enabled

    iterator_numbers = IteratorNumbers()

    def begin_iterator(args):
        iterator_numbers.add_iterator()
        _capture.on_event(EVENT_LOADER_NEW)
        return _capture.phase_begin("dataloader", None, MODE_TRAIN if is_grad_enabled() else MODE_INFERENCE)

    def begin_batch_fetch(args):
        depth = _capture.phase_begin("dataloader", None, MODE_TRAIN if is_grad_enabled() else MODE_INFERENCE)
        event = EVENT_LOADER_END if _is_iterator_exhausted(args[0]) else EVENT_LOADER_NEXT
        _capture.on_loader_event(event, iterator_numbers.find_number(args[0]))
        return depth

    def leave(depth, returned, args):
        _capture.leave_to(depth)

    def end_batch_fetch(depth, returned, args):
        _capture.leave_to(depth)
        if returned:
            _capture.begin_phase_gap("input")

    def begin_worker(args):
        depth = _capture.phase_begin("dataloader", "worker", MODE_TRAIN)
        _capture.enter_child_scope(SCOPE_REGION, "worker")
        return depth

    wrap_function(DataLoader, "__iter__", is_compiling, begin_iterator, leave)
    wrap_function(dataloader._BaseDataLoaderIter, "__next__", is_compiling, begin_batch_fetch, end_batch_fetch)
    wrap_function(worker, "_worker_loop", is_compiling, begin_worker, leave)


class IteratorNumbers:
    """Numbers the iterators of loaders. The number is that of the iterators created before its first batch."""

    def __init__(self) -> None:
        self._iterator_count = 0
        self._number_by_iterator: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def add_iterator(self) -> None:
        self._iterator_count += 1

    def find_number(self, iterator) -> int:
        """A loader with persistent workers returns the same iterator again, for another epoch."""
        if iterator._num_yielded == 0 or iterator not in self._number_by_iterator:
            self._number_by_iterator[iterator] = self._iterator_count
        return self._number_by_iterator[iterator]


def _watch_batch_fetching(torch, operation_recorder) -> None:
    """Captures the making of a batch. In a worker it gets a module scope of its own, so that its operations do not
    receive the worker's waiting time. Operations of a worker are recorded in some batches, because a worker has no
    steps. While operations are recorded, the dataset's method counts as one: it receives the time outside of PyTorch
    operations."""
    from torch.utils.data._utils import fetch, worker

    from . import _capture_interface as interface

    batch_sampler = BatchSampler()

    def begin(args):
        is_worker = worker.get_worker_info() is not None
        # Enters module and region at once: entering the module first would count as another entry of the worker's
        # region.
        enclosing_scope = _capture.current_scope()
        if is_worker:
            enclosing_scope = interface.child_scope(enclosing_scope, SCOPE_MODULE, "worker.preprocessing")
        depth = interface.enter(interface.child_scope(enclosing_scope, SCOPE_REGION, "preprocessing"))
        is_sampled = is_worker and batch_sampler.begin_batch()
        if is_sampled:
            operation_recorder.set_recording(True)
        if operation_recorder.is_recording:
            _capture.enter_child_scope(SCOPE_OP, dataset_method_name(torch, args[0]))
        return depth, is_sampled

    def end(depth_and_sampled, returned, args):
        depth, is_sampled = depth_and_sampled
        if is_sampled:
            operation_recorder.set_recording(False)
            batch_sampler.end_batch()
        _capture.leave_to(depth)

    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        wrap_function(fetcher, "fetch", get_is_compiling(torch), begin, end)


class BatchSampler:
    """Selects the batches of a worker whose operations are recorded, which costs some microseconds per operation."""

    def __init__(self) -> None:
        self._batch_count = 0
        self._batch_begin_s = self._next_sample_s = 0.0

    def begin_batch(self) -> bool:
        self._batch_count += 1
        self._batch_begin_s = time.perf_counter()
        return self._batch_count <= SAMPLED_FIRST_BATCHES or self._batch_begin_s >= self._next_sample_s

    def end_batch(self) -> None:
        now_s = time.perf_counter()
        self._next_sample_s = now_s + SAMPLE_PERIOD_FACTOR * (now_s - self._batch_begin_s)


def dataset_method_name(torch, fetcher) -> str:
    """Qualified name of the dataset's method that makes its batches: "__main__.Images.__getitem__"."""
    dataset = fetcher.dataset
    while isinstance(dataset, torch.utils.data.Subset):
        dataset = dataset.dataset
    dataset_type = type(dataset)
    is_iterable = isinstance(dataset, torch.utils.data.IterableDataset)
    has_batched_getitem = fetcher.auto_collation and getattr(dataset, "__getitems__", None)
    method_name = "__iter__" if is_iterable else "__getitems__" if has_batched_getitem else "__getitem__"
    module_name = (
        "__main__" if dataset_type.__module__ == "__mp_main__" else dataset_type.__module__
    )  # main module of a spawned process
    return f"{module_name}.{dataset_type.__qualname__}.{method_name}"


def _is_iterator_exhausted(iterator) -> bool:
    """Whether the requested batch does not exist: that is the end of an epoch and not a new step. False if unknown."""
    try:
        return iterator._num_yielded >= len(iterator._index_sampler)
    except TypeError:  # samplers without a length
        return False
