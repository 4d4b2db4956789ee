# SPDX-License-Identifier: Apache-2.0
"""A co-tenant process that alternates between load and idle until it is killed: noisy_neighbour.py PAGE KINDS SEED."""

import random
import sys
import time

from announcer import Announcer

if __name__ == "__main__":
    announcer = Announcer(sys.argv[1], sys.argv[2], slot=1)
    announcer.at("neighbour")
    random_source = random.Random(int(sys.argv[3]))
    while True:
        end = time.monotonic() + random_source.uniform(0.5, 4)
        while time.monotonic() < end:
            sum(i * i for i in range(2000))
        time.sleep(random_source.uniform(0.5, 4))
