// SPDX-License-Identifier: Apache-2.0
//
// Summary of a run and its energy as Markdown, for external viewers that show text. Pure.
#pragma once

#include <string>

#include "model/run_view.h"

namespace joulemap::report {

std::string markdown_summary(const RunView& view);

}  // namespace joulemap::report
