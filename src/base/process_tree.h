// SPDX-License-Identifier: Apache-2.0
//
// Who started a process, from /proc. Any thread; allocates nothing, so that a sampling thread may ask.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace joulemap {

// From the text of /proc/PID/stat, or from the file itself. Nothing when the process is gone.
std::optional<pid_t> parse_parent(std::string_view proc_pid_stat) noexcept;
std::optional<pid_t> parent_of(pid_t pid) noexcept;

// `pid` is `ancestor`, or was started by it or by one of its descendants. A process that is gone descends from nobody.
bool descends_from(pid_t pid, pid_t ancestor) noexcept;

// Whether we number processes as the kernel's drivers do. In most containers we do not: there they tell numbers that mean
// nothing to us, or another process.
bool numbers_processes_as_drivers_do() noexcept;

}  // namespace joulemap
