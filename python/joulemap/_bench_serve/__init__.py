# SPDX-License-Identifier: Apache-2.0
"""joulemap bench serve: sends requests to a serving engine at given loads, and reports latency, throughput and energy per
token by load.

Stages, with plain data between them:

    plan.py (pure: arrivals, lengths and prompts from a seed)
      -> load.py (sends each request when it is due; endpoint.py and engine.py are the targets, energy.py the meter)
      -> result.py (pure: percentiles, rates and energy per token) -> notes.py (pure: diagnostics)
      -> output.py (text and JSON)

Time is that of the running event loop, so tests run a loop with virtual time.
"""
