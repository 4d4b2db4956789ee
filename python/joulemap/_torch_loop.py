# SPDX-License-Identifier: Apache-2.0
"""The training loop around the model: batches, optimizers, and the workers that make batches."""

from __future__ import annotations

import threading

from . import _capture
from ._guard import around, guarded, in_phase
from ._torch_versions import compiling_check

LOADER_NEW, LOADER_NEXT, OPTIMIZER_DONE = 0, 1, 6
REGION = 5
TRAIN, INFERENCE = 1, 2


def install(torch) -> None:
    _watch_optimizers(torch)
    _watch_loaders(torch)


def _watch_optimizers(torch) -> None:
    from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    open_steps = StepsUnderWay()
    is_compiling = compiling_check(torch)

    def before(optimizer, args, kwargs):
        if is_compiling():
            return
        open_steps.begin(optimizer)

    def after(optimizer, args, kwargs):
        if is_compiling():
            return
        open_steps.end()

    register_optimizer_step_pre_hook(before)
    register_optimizer_step_post_hook(after)
    record_function = torch.autograd.profiler.record_function

    # An optimizer's step runs inside a record_function of PyTorch's own: its end is seen even where the step has failed.
    def step_ends(args):
        return args[0].name if args and args[0].name.startswith("Optimizer.step#") else None

    def step_ended(name, returned, args):
        open_steps.abandon()

    around(record_function, "__exit__", is_compiling, step_ends, step_ended)
    in_phase(Optimizer, "zero_grad", is_compiling, "zero_grad", TRAIN)


class StepsUnderWay(threading.local):
    """Steps of optimizers that this thread has begun; one may run another's."""

    def __init__(self) -> None:
        self._depths: list[int] = []
        self.begin = guarded(self._begin)
        self.end, self.abandon = guarded(self._end, even_when_off=True), guarded(self._abandon, even_when_off=True)

    def _begin(self, optimizer) -> None:
        self._depths.append(_capture.phase_begin("optimizer", type(optimizer).__name__, TRAIN))

    def _end(self) -> None:
        if self._depths:
            _capture.leave_to(self._depths.pop())
            _capture.tell_event(OPTIMIZER_DONE)

    def _abandon(self) -> None:
        if self._depths:
            _capture.leave_to(self._depths.pop())


def _watch_loaders(torch) -> None:
    from torch.utils.data import DataLoader, dataloader
    from torch.utils.data._utils import fetch, worker

    is_compiling = compiling_check(torch)
    is_grad_enabled = torch.is_grad_enabled

    def new_iterator(args):
        _capture.tell_event(LOADER_NEW)
        return _capture.phase_begin("dataloader", None, TRAIN if is_grad_enabled() else INFERENCE)

    def next_batch(args):
        depth = _capture.phase_begin("dataloader", None, TRAIN if is_grad_enabled() else INFERENCE)
        if not _is_exhausted(args[0]):
            _capture.tell_event(LOADER_NEXT)
        return depth

    def leave(depth, returned, args):
        _capture.leave_to(depth)

    def got_batch(depth, returned, args):
        _capture.leave_to(depth)
        if returned:
            _capture.begin_between("input")

    def in_region(name):
        return lambda args: _capture.enter_within(REGION, name)

    def worker_begins(args):
        depth = _capture.phase_begin("dataloader", None, TRAIN)
        _capture.enter_within(REGION, "worker")
        return depth

    around(DataLoader, "__iter__", is_compiling, new_iterator, leave)
    around(dataloader._BaseDataLoaderIter, "__next__", is_compiling, next_batch, got_batch)
    around(worker, "_worker_loop", is_compiling, worker_begins, leave)
    for fetcher in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        around(fetcher, "fetch", is_compiling, in_region("preprocessing"), leave)


def _is_exhausted(iterator) -> bool:
    """Whether the batch that is asked for will not come: that is the end of an epoch and no new step. Unknown is no."""
    try:
        return iterator._num_yielded >= len(iterator._index_sampler)
    except TypeError:  # samplers need not have a length
        return False
