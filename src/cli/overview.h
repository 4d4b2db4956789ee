// SPDX-License-Identifier: Apache-2.0
//
// What `joulemap` and `joulemap --help` show: the verbs by task, with an example of each. Pure.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "report/text/text_style.h"

namespace joulemap::cli {

std::string overview_text(std::span<const Command> commands, const report::TextStyle& style);

}  // namespace joulemap::cli
