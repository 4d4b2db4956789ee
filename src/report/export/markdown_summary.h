// SPDX-License-Identifier: Apache-2.0
//
// What a run was and what it drew, as Markdown: for the viewers of others that show a text. Pure.
#pragma once

#include <string>

#include "model/run_view.h"

namespace joulemap::report {

std::string markdown_summary(const RunView& view);

}  // namespace joulemap::report
