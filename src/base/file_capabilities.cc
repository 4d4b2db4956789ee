// SPDX-License-Identifier: Apache-2.0
#include "base/file_capabilities.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/small_file.h"

namespace joulemap {
namespace {

// Two words of 32 capabilities each (capget(2), version 3).
using CapabilitySets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

__user_cap_header_struct make_capability_header() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

Result<CapabilitySets> read_capabilities() {
  __user_cap_header_struct header = make_capability_header();
  CapabilitySets sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return system_error("read", "capabilities", errno);
  return sets;
}

Status set_capabilities(const CapabilitySets& sets) {
  __user_cap_header_struct header = make_capability_header();
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return system_error("set", "capabilities", errno);
  return Done{};
}

// Sets the effective set to the permitted set, or clears it.
Status set_effective_capabilities(bool raises_all_permitted) {
  if (!has_file_capabilities()) return Done{};
  Result<CapabilitySets> sets = read_capabilities();
  if (!sets) return std::move(sets).error();
  for (__user_cap_data_struct& word : *sets) word.effective = raises_all_permitted ? word.permitted : 0;
  return set_capabilities(*sets);
}

}  // namespace

bool has_file_capabilities() { return ::getauxval(AT_SECURE) != 0 && ::getuid() != 0; }

Status check_not_setuid(const std::string& program) {
  if (::getuid() == ::geteuid() && ::getgid() == ::getegid()) return Done{};
  return Error{ErrorCode::usage,
               "this program is installed setuid or setgid: it would read and write files with another user's rights",
               fmt::format("sudo chmod u-s,g-s {0} && sudo setcap cap_dac_read_search,cap_perfmon+ep {0}",
                           program.empty() ? "$(which joulemap)" : program)};
}

Status clear_effective_capabilities() { return set_effective_capabilities(false); }

Status raise_permitted_capabilities() { return set_effective_capabilities(true); }

Status drop_capabilities() {
  if (!has_file_capabilities()) return Done{};
  // Kernels before 4.3 lack the ambient set (EINVAL).
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) {
    return system_error("clear", "ambient capabilities", errno);
  }
  if (Status clear_status = set_capabilities({}); !clear_status) return clear_status;
  const Result<CapabilitySets> remaining_capabilities = read_capabilities();
  if (!remaining_capabilities) return remaining_capabilities.error();
  for (const __user_cap_data_struct& word : *remaining_capabilities) {
    JOULEMAP_CHECK((word.effective | word.permitted | word.inheritable) == 0, "capset gave up every capability");
  }
  return Done{};
}

}  // namespace joulemap
