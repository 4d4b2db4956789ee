// SPDX-License-Identifier: Apache-2.0
#include "cli/overview.h"

#include <fmt/format.h>

#include <algorithm>

namespace joulemap::cli {
namespace {

std::string_view user_task_title(UserTask task) {
  constexpr std::array<std::string_view, kUserTasks.size()> kUserTaskTitles = {"Measure", "Look", "Compare", "Predict",
                                                                               "Maintain"};
  return kUserTaskTitles.at(static_cast<std::size_t>(task));
}

std::size_t example_column_width(std::span<const Command> commands) {
  std::size_t columns = 0;
  for (const Command& command : commands) columns = std::max(columns, command.example.size());
  return columns;
}

}  // namespace

std::string command_overview_text(std::span<const Command> commands, const report::TextStyle& style) {
  std::string out = "Joulemap maps the energy of a run to the code that uses it.\n";
  const std::size_t columns = example_column_width(commands);
  for (const UserTask task : kUserTasks) {
    out += fmt::format("\n{}\n", style.bold(user_task_title(task)));
    for (const Command& command : commands) {
      if (command.user_task == task)
        out += fmt::format("  joulemap {:<{}}  {}\n", command.example, columns, command.summary);
    }
  }
  return out + "\njoulemap help VERB shows the options of a verb; joulemap FILE.joule is joulemap report FILE.joule.\n";
}

}  // namespace joulemap::cli
