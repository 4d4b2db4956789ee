// SPDX-License-Identifier: Apache-2.0
#include "sensors/remedies.h"

#include <fmt/format.h>

namespace joulemap::sensors {
namespace {

constexpr std::string_view kWorldReadableRaplWarning =
    "(do not make energy_uj world-readable: PLATYPUS, CVE-2020-8694, reads secrets of other users from it)";

// Engines hide /sys/devices/virtual/powercap by a mask and, on hosts with AppArmor, by their profile. Either set of
// options is enough. Without root in the container, added capabilities have no effect and energy_uj is not readable.
constexpr std::string_view kPerfEventContainerOptions = "--user 0 --cap-add PERFMON";
constexpr std::string_view kPowercapContainerOptions =
    "--user 0 --security-opt systempaths=unconfined --security-opt apparmor=unconfined";

std::string_view program_path_or_default(std::string_view program) {
  return program.empty() ? "$(which joulemap)" : program;
}

}  // namespace

std::string remedy_for_denied_powercap(const HostTraits& host, std::string_view program) {
  if (!host.container.empty()) {
    return fmt::format("run the container with: {}\n{}", kPowercapContainerOptions, kWorldReadableRaplWarning);
  }
  return fmt::format(
      "sudo setcap cap_dac_read_search,cap_perfmon+ep {}\n"
      "or, for a group of trusted users:\n"
      "sudo groupadd -f energy && sudo usermod -aG energy $USER && "
      "echo 'SUBSYSTEM==\"powercap\", ACTION==\"add|change\", RUN+=\"/bin/chgrp energy /sys%p/energy_uj\", "
      "RUN+=\"/bin/chmod 0440 /sys%p/energy_uj\"' | sudo tee /etc/udev/rules.d/99-joulemap.rules && "
      "sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=powercap\n{}",
      program_path_or_default(program), kWorldReadableRaplWarning);
}

std::string remedy_for_denied_perf_event(const HostTraits& host, std::string_view program) {
  if (!host.container.empty()) {
    return fmt::format(
        "run the container with: {}\n"
        "(Docker before 23.0 and Podman before 2026 also need --security-opt seccomp=unconfined; "
        "not possible in rootless containers)",
        kPerfEventContainerOptions);
  }
  return fmt::format(
      "sudo setcap cap_perfmon+ep {}\n"
      "or, on a machine whose users all trust each other:\n"
      "sudo sysctl kernel.perf_event_paranoid=0\n"
      "(opens RAPL to every local user: PLATYPUS, CVE-2020-8694)",
      program_path_or_default(program));
}

std::string reason_for_absent_rapl(const HostTraits& host) {
  if (host.is_virtual) return fmt::format("this {} has none: hosts do not expose RAPL to their guests", host.machine);
  if (!host.container.empty()) return fmt::format("this {} container hides it, or its host has none", host.container);
  return "this kernel exposes none";
}

std::string remedy_for_absent_rapl(const HostTraits& host) {
  if (host.is_virtual) {
    return "not possible in this VM; measure on the host or on a bare-metal instance (until then, joulemap estimates)";
  }
  if (!host.container.empty()) {
    return fmt::format("run the container with: {}\nor with: {}", kPerfEventContainerOptions,
                       kPowercapContainerOptions);
  }
  return "sudo modprobe intel_rapl_msr\n"
         "(Intel, and AMD since Zen); CONFIG_INTEL_RAPL and "
         "CONFIG_PERF_EVENTS_INTEL_RAPL "
         "must be set in the kernel";
}

}  // namespace joulemap::sensors
