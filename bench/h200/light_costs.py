# SPDX-License-Identifier: Apache-2.0
"""What the light mode costs a launch-bound training: pairs of processes take turns in blocks of steps. In the middle
joulemap begins to watch one of the two. What is added is how much it then became slower than the other one did.

The clock runs on while a process waits for its turn, and steps are followed by the clock: here twice as often as in a
process that has the card for itself.
"""

from __future__ import annotations

import random
import statistics

BLOCK_S = 1.5
BEFORE, AFTER = 5, 9


def light_cost(bench, network: str, most: float, pairs: int) -> None:
    """`bench` makes workers (capture.py)."""
    watched = [bench.recorded(network, "auto", "joulemap-later")[0] for _ in range(pairs)]
    alone = [bench.recorded(network, "off")[0] for _ in range(pairs)]
    if not all([worker.is_ready() for worker in watched + alone]):
        bench.say(f"light mode of {network}: did not start: {watched[0].failure}")
        return
    ratios = [ratio_of(mine, other) for mine, other in zip(watched, alone)]
    for worker in watched + alone:
        worker.end()
    for ratio in ratios:
        print(f"  a pair of processes: before {ratio['before']:+.2%}, after {ratio['after']:+.2%}", flush=True)
    middle, low, high = added(ratios)
    verdict = bench.bar(f"{network}, joulemap light: added time", middle <= most)
    bench.say(
        f"\nLight mode, {pairs} pairs of processes, {BEFORE} blocks of {BLOCK_S} s of each before and {AFTER} after "
        f"joulemap began: **{middle:+.2%}** ({low:+.2%} to {high:+.2%}), <= {most:.0%}: {verdict}"
    )


def ratio_of(mine, other) -> dict:
    """How much slower mine is than the other one, before and after, and block by block."""
    steps = max(5, round(BLOCK_S / mine.run(20)["step_s"]))
    before = take_turns(mine, other, steps, BEFORE)
    mine.process.stdin.write("watch\n")
    mine.run(steps)  # judged to be launch bound, and light from then on
    after = take_turns(mine, other, steps, AFTER)
    return {"before": typical(before), "after": typical(after), "blocks": (before, after)}


def take_turns(mine, other, steps: int, rounds: int) -> list[float]:
    ratios = []
    for number in range(rounds):
        turns = [mine, other] if number % 2 == 0 else [other, mine]
        times = {worker: worker.run(steps)["step_s"] for worker in turns}
        ratios.append(times[mine] / times[other] - 1)
    return ratios


def typical(ratios: list[float]) -> float:
    """Blocks with steps that were followed count: a mean, without the two blocks that something else disturbed most."""
    return statistics.fmean(sorted(ratios)[1:-1])


def added(ratios: list[dict]) -> tuple[float, float, float]:
    """The mean over pairs, and its 95 % interval by drawing pairs, and blocks in them, anew."""
    chance = random.Random(1)

    def draw() -> float:
        differences = []
        for ratio in chance.choices(ratios, k=len(ratios)):
            before, after = (typical(chance.choices(blocks, k=len(blocks))) for blocks in ratio["blocks"])
            differences.append((1 + after) / (1 + before) - 1)
        return statistics.fmean(differences)

    drawn = sorted(draw() for _ in range(4000))
    middle = statistics.fmean((1 + ratio["after"]) / (1 + ratio["before"]) - 1 for ratio in ratios)
    return middle, drawn[100], drawn[-101]
