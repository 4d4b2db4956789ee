// SPDX-License-Identifier: Apache-2.0
//
// Allocations of this program, and of the libraries it loads, now and then give the processor away: threads then hold their
// locks for long, and a fork is likely to come in between.
#pragma once

// Of this thread, from now on.
void disable_allocation_delays();
