// SPDX-License-Identifier: Apache-2.0
//
// Summary of a run as Markdown, for the text panel of TensorBoard: energy, rates, domains, layers, notes. Pure.
#pragma once

#include <string>

#include "model/run_view.h"

namespace joulemap::report {

std::string markdown_summary(const RunView& view);

}  // namespace joulemap::report
