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

def step(number: Optional[int]) -> None: ...
def epoch(number: Optional[int]) -> None: ...
def log_value(name: str, value: float) -> None: ...
def is_recording() -> bool:
    """True if `joulemap record`, or attach(), records this process."""
