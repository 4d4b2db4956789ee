# SPDX-License-Identifier: Apache-2.0
"""`python -m joulemap._bench_serve`: what `joulemap bench serve` starts."""

import sys

from .command import main

sys.exit(main())
