// SPDX-License-Identifier: Apache-2.0
//
// A run as a TensorBoard event file: energy, power, loss and energy per loss of each step and epoch, power of domains
// over time, energy of layers (forward and backward) as curves and histograms, a text summary, and an HParams row. All
// tags begin with "joulemap", so that the file can share a folder with the user's files. Pure; docs/export.md lists the
// tags.
#pragma once

#include <string>

#include "model/run_view.h"

namespace joulemap::report {

enum class TensorboardFolder {
  exclusive,  // only Joulemap files: Joulemap defines the HParams columns
  shared,     // other event files exist, which may define the columns
};

std::string tensorboard_file(const RunView& view, TensorboardFolder folder);

}  // namespace joulemap::report
