// SPDX-License-Identifier: Apache-2.0
//
// The text that `joulemap` and `joulemap --help` print: the verbs by task, with an example of each. Pure.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"
#include "report/text/text_style.h"

namespace joulemap::cli {

std::string command_overview_text(std::span<const Command> commands, const report::TextStyle& style);

}  // namespace joulemap::cli
