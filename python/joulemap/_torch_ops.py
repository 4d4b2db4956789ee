# SPDX-License-Identifier: Apache-2.0
"""Operations, in the steps that are looked at closely."""

from __future__ import annotations


class Operations:
    def __init__(self, torch, compiled) -> None:
        pass

    def look(self, is_sampled: bool) -> None:
        pass

    def look_at_backward(self, root) -> None:
        pass
