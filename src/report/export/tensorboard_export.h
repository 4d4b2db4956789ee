// SPDX-License-Identifier: Apache-2.0
//
// A run as an event file for TensorBoard: energy, power, loss and energy per loss of each step and epoch, power of domains
// over time, joules of layers forward and backward as curves and histograms, a summary as text, and a line of HParams.
// All tags begin with "joulemap", so that the file can lie beside the user's own. Pure; docs/export.md names the tags.
#pragma once

#include <string>

#include "model/run_view.h"

namespace joulemap::report {

enum class TensorboardFolder {
  own,     // nothing else lies there: HParams' columns are ours to choose
  shared,  // with event files of others, who may have chosen them
};

std::string tensorboard_file(const RunView& view, TensorboardFolder folder);

}  // namespace joulemap::report
