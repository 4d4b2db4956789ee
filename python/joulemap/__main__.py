# SPDX-License-Identifier: Apache-2.0
"""`python -m joulemap`."""

from ._program import main

main()
