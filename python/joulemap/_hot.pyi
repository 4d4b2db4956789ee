from typing import Optional
from types import TracebackType
from typing_extensions import Self

class Window:
    name: str  # name of the window
    id: int
    ended: bool  # True once the window is closed
    def __init__(self, name: str) -> None: ...
    def begin(self) -> Self:
        """Opens the window."""
    def end(self) -> None:
        """Closes the window. Closing it twice has no effect."""
    def release(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None: ...

class Region:
    """Names a part of the program, for `joulemap report --by region`. Regions of a thread nest. Outside of a recording
    it does nothing.

        with jm.region("augment"):
            batch = augment(batch)
    """

    def __init__(self, name: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None: ...

class EngineStep:
    """A forward step of a serving engine, for `joulemap report --by request` and `--by token`. Outside of a recording it
    does nothing. End the block after the GPU has finished, for example once the new tokens are on the CPU.

        with jm.engine_step() as step:
            tokens = forward(batch).tolist()
            for request in batch:
                step.add(request.id, prompt=request.chunk, decoded=request.new_tokens, context=request.length)
    """

    def __init__(self) -> None: ...
    def add(self, id: object, prompt: int = 0, decoded: int = 0, context: int = 0, cached: int = 0, rejected: int = 0, finished: bool = False, preempted: bool = False, aborted: bool = False, tenant: Optional[object] = None, model: Optional[object] = None) -> None:
        """Adds a request to the step: prompt tokens computed, tokens generated, length of the KV cache after the step,
        prompt tokens from a prefix cache (in the first step), rejected speculative tokens, and what happened to the
        request. `tenant` and `model` are labels, read in the first step of the request."""
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None: ...

def engine_event(id: object, events: int) -> None: ...
def step(number: Optional[int]) -> None: ...
def epoch(number: Optional[int]) -> None: ...
def log_value(name: str, value: float) -> None: ...
def is_recording() -> bool:
    """True if `joulemap record` or attach() records this process."""
