// SPDX-License-Identifier: Apache-2.0
//
// A run as a TensorBoard event file: energy, power, loss, and energy per unit of loss reduction of each step and epoch;
// power of domains over time; energy of layers (forward and backward) as curves and histograms; a text summary; and a
// row of the HParams table. All tags begin with "joulemap", so that the file can be in the same folder as the user's
// files. Pure; docs/reference/exports.md lists the tags.
#pragma once

#include <span>
#include <string>

#include "model/run_view.h"

namespace joulemap::report {

enum class TensorboardFolderSharing {
  exclusive,  // contains no other event files: the file defines the HParams columns
  shared,     // contains other event files, which may define the columns: the file does not
};

// Returns the bytes of the file. `passes`: energy of each phase per step, as the layer_distributions of a view with
// DistributionLevel::phase.
std::string tensorboard_file(const RunView& view, std::span<const LayerDistribution> passes,
                             TensorboardFolderSharing folder);

}  // namespace joulemap::report
