# SPDX-License-Identifier: Apache-2.0
"""jm.attach: a model that a program points out itself. So far it names the model and probes it."""

from __future__ import annotations

from typing import Any, Optional

from . import _hot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._torch_probe import Probe


class Attachment:
    """What attach() returns: detach() ends it, and so does the end of a with block."""

    def __init__(self, model: Any, probe: Optional[Probe], limit_s: float) -> None:
        self._model, self._probe, self._limit_s = model, probe, limit_s

    def detach(self) -> None:
        """Ends it: with probe=True the model's modules are replayed now, which takes up to half a minute. Parameters,
        gradients, buffers, random numbers and flags are afterwards what they were."""
        model, probe = self._model, self._probe
        self._model = self._probe = None
        if probe is not None:
            probe.run(self._limit_s, model)

    def __enter__(self) -> Attachment:
        return self

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if kind is None:
            self.detach()
        elif self._probe is not None:
            from ._torch_probe import not_probed

            not_probed("the with block of jm.attach ended by an exception")


def attach(
    model: Any, *, optimizer: Any = None, loader: Any = None, loss: Any = None, disable: Any = (), probe: bool = False
) -> Attachment:
    """Follows `model`, a module of PyTorch, in a program that runs under `joulemap record`.

    probe=True: when it is detached each of its modules is replayed, to find out what it draws. What else there is in the
    signature is to come and is refused.
    """
    from ._library import JoulemapError

    asked = {"optimizer": optimizer, "loader": loader, "loss": loss, "disable": disable or None}
    for name, value in asked.items():
        if value is not None:
            raise NotImplementedError(f"jm.attach: {name} is not there yet; joulemap record sees it without")
    if not hasattr(model, "named_modules"):
        raise TypeError(f"jm.attach takes a module of PyTorch, not a {type(model).__name__}")
    if not _hot.is_recording():
        raise JoulemapError("jm.attach works in a recorded program so far: joulemap record -- python PROGRAM")
    from . import _torch_capture

    if _torch_capture.session is None:
        raise JoulemapError("modules are not watched here: leave --trace off and --trace kernels out of joulemap record")
    return _torch_capture.session.attach(model, probe)
