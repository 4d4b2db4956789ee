// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "cli/command.h"
#include "cli/doctor_command.h"
#include "cli/stat_command.h"

namespace joulemap::cli {
namespace {

constexpr std::array<Command, 2> kCommands = {{
    {"doctor", "what can be measured here, what not, why, and the line that would fix it",
     &add_doctor_command},
    {"stat", "energy of a command, of a process's time or of the machine, by domain", &add_stat_command},
}};

}  // namespace

std::span<const Command> commands() { return kCommands; }

int fail(const Error& error) {
  fmt::print(stderr, "joulemap: {}\n", error.message);
  if (!error.remedy.empty()) fmt::print(stderr, "joulemap: -> {}\n", error.remedy);
  return error.code == ErrorCode::usage ? kWrongUsage : kFailed;
}

}  // namespace joulemap::cli
