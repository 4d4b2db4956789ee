"""Members of SGLang's Req and ScheduleBatch that Joulemap's adapter uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, auto
from typing import Optional


class ForwardMode(IntEnum):
    EXTEND = auto()
    DECODE = auto()
    MIXED = auto()
    IDLE = auto()

    def is_extend(self) -> bool:
        return self in (ForwardMode.EXTEND, ForwardMode.MIXED)

    def is_decode(self) -> bool:
        return self == ForwardMode.DECODE


class SpeculativeAlgorithm(IntEnum):
    EAGLE = auto()
    NONE = auto()

    def is_none(self) -> bool:
        return self == SpeculativeAlgorithm.NONE


class FINISH_LENGTH:  # noqa: N801 - its name in SGLang
    pass


class FINISH_ABORT:  # noqa: N801
    pass


class Req:
    def __init__(self, rid: str, prompt_tokens: int, max_new_tokens: int) -> None:
        self.rid = rid
        self.origin_input_ids = list(range(prompt_tokens))
        self.output_ids: list[int] = []
        self.max_new_tokens = max_new_tokens
        self.finished_reason: Optional[object] = None
        self.to_finish: Optional[object] = None
        self.computed = 0
        self.prefix_hit = 0

    def finished(self) -> bool:
        return self.finished_reason is not None

    def reset_for_retract(self) -> None:
        self.computed = 0


@dataclass
class ScheduleBatch:
    reqs: list[Req]
    forward_mode: ForwardMode
    prefix_lens: list[int] = field(default_factory=list)
    extend_lens: list[int] = field(default_factory=list)
    spec_algorithm: SpeculativeAlgorithm = SpeculativeAlgorithm.NONE

    def copy(self) -> ScheduleBatch:
        return ScheduleBatch(self.reqs[:], self.forward_mode, self.prefix_lens, self.extend_lens, self.spec_algorithm)


class GenerationBatchResult:
    pass
