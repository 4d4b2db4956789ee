// SPDX-License-Identifier: Apache-2.0
#include "sensors/remedies.h"

#include <fmt/format.h>

namespace joulemap::sensors {
namespace {

constexpr std::string_view kPlatypus =
    "(do not make energy_uj world-readable: PLATYPUS, CVE-2020-8694, reads secrets of other users from it)";

std::string_view program_or_name(std::string_view program) { return program.empty() ? "$(which joulemap)" : program; }

}  // namespace

std::string remedy_for_denied_powercap(const HostTraits& host, std::string_view program) {
  if (!host.container.empty()) {
    return fmt::format(
        "run the container as root with: --security-opt systempaths=unconfined "
        "-v /sys/devices/virtual/powercap:/sys/devices/virtual/powercap:ro {}",
        kPlatypus);
  }
  return fmt::format(
      "sudo setcap cap_dac_read_search,cap_perfmon+ep {}\n"
      "or, for a group of trusted users:\n"
      "sudo groupadd -f energy && sudo usermod -aG energy $USER && "
      "echo 'SUBSYSTEM==\"powercap\", ACTION==\"add|change\", RUN+=\"/bin/chgrp energy /sys%p/energy_uj\", "
      "RUN+=\"/bin/chmod 0440 /sys%p/energy_uj\"' | sudo tee /etc/udev/rules.d/99-joulemap.rules && "
      "sudo udevadm control --reload && sudo udevadm trigger --subsystem-match=powercap\n{}",
      program_or_name(program), kPlatypus);
}

std::string remedy_for_denied_perf_event(const HostTraits& host, std::string_view program) {
  if (!host.container.empty()) {
    return "run the container with: --cap-add PERFMON (engines before 2023 also need --security-opt "
           "seccomp=unconfined)";
  }
  return fmt::format(
      "sudo setcap cap_perfmon+ep {}\n"
      "or, on a machine whose users all trust each other:\n"
      "sudo sysctl kernel.perf_event_paranoid=0\n"
      "(opens RAPL to every local user: PLATYPUS, CVE-2020-8694)",
      program_or_name(program));
}

std::string reason_for_absent_rapl(const HostTraits& host) {
  if (host.is_virtual) return fmt::format("this {} has none: hosts do not expose RAPL to their guests", host.machine);
  if (!host.container.empty()) return fmt::format("this {} container hides it", host.container);
  return "this kernel exposes none";
}

std::string remedy_for_absent_rapl(const HostTraits& host) {
  if (host.is_virtual) {
    return "not possible in this VM; measure on the host or on a bare-metal instance (until then, joulemap estimates)";
  }
  if (!host.container.empty()) {
    return "run the container with: --security-opt systempaths=unconfined --cap-add PERFMON";
  }
  return "sudo modprobe intel_rapl_msr\n"
         "(Intel, and AMD since Zen); CONFIG_INTEL_RAPL and "
         "CONFIG_PERF_EVENTS_INTEL_RAPL "
         "must be set in the kernel";
}

}  // namespace joulemap::sensors
