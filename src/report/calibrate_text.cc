// SPDX-License-Identifier: Apache-2.0
#include "report/calibrate_text.h"

#include <fmt/format.h>

#include "report/diagnostics_text.h"
#include "report/energy_rows.h"

namespace joulemap::report {
namespace {

std::string duration(const std::optional<double>& time_s) {
  if (!time_s) return "-";
  if (*time_s < 1e-3) return fmt::format("{} us", number(*time_s * 1e6, 3));
  if (*time_s < 1) return fmt::format("{} ms", number(*time_s * 1e3, 3));
  return fmt::format("{} s", number(*time_s, 3));
}

}  // namespace

std::string calibrate_text(const CalibrateResult& result) {
  std::string out = fmt::format("\n Sensors watched for {} s\n\n", number(result.watched_s, 3));
  out += fmt::format("  {:<22} {:>9} {:>9} {:>9} {:>9} {:>10}\n", "channel", "refresh", "+-", "read", "CPU", "idle");
  for (const ChannelCalibration& found : result.findings) {
    const std::string idle = found.idle_w ? fmt::format("{} W", number(*found.idle_w)) : "-";
    out += fmt::format("  {:<22} {:>9} {:>9} {:>9} {:>9} {:>10}\n", found.channel, duration(found.refresh_s),
                       duration(found.refresh_spread_s), duration(found.read_wall_s), duration(found.read_cpu_s), idle);
  }
  for (const ChannelCalibration& found : result.findings) {
    if (!found.phase_s) continue;
    out += fmt::format("  {} is renewed {} after {}\n", found.channel, duration(found.phase_s), found.phase_of);
  }
  if (!result.kept_in.empty()) out += fmt::format("\n kept in {}\n", result.kept_in);
  const std::string notes = diagnostics_text(result.diagnostics);
  if (!notes.empty()) out += "\n" + notes;
  return out + "\n";
}

}  // namespace joulemap::report
