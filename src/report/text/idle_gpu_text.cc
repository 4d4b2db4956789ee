// SPDX-License-Identifier: Apache-2.0
#include "report/text/idle_gpu_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "report/text/energy_rows.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

// Idle energy below this fraction of the energy of its device is not mentioned in sentences.
constexpr double kMinMentionedIdleShare = 0.05;
constexpr std::size_t kMaxShownWaits = 5;

constexpr std::array<std::string_view, kIdleCauseNames.size()> kIdleCausePhrases = {
    "start-up: before its first work",
    "the DataLoader",
    "the host to launch kernels",
    "the host, which had synchronized with it",
    "compilation",
    "evaluation",
    "a checkpoint to be saved or loaded",
    "other ranks",
    "other code of the program",
    "the next step",
    "shutdown: after its last work",
    "unknown",
};

// The cause as part of a sentence.
std::string idle_cause_phrase(IdleCause cause) {
  if (cause == IdleCause::startup) return "before its first work";
  if (cause == IdleCause::shutdown) return "after its last work";
  if (cause == IdleCause::unknown) return "for unknown reasons";
  return fmt::format("waiting for {}", idle_cause_words(cause));
}

using JoulesByCause = std::map<IdleCause, double>;

// Idle energy by device and cause, without CPUs, for which causes are unknown.
std::map<std::string, JoulesByCause> sum_idle_by_cause(const std::vector<IdleEntry>& idle) {
  std::map<std::string, JoulesByCause> devices;
  for (const IdleEntry& entry : idle) {
    if (!is_cpu_device(entry.device)) devices[entry.device][entry.cause] += entry.energy_j.value_or(0);
  }
  return devices;
}

std::vector<std::pair<IdleCause, double>> sort_causes_by_energy(const JoulesByCause& causes) {
  std::vector<std::pair<IdleCause, double>> sorted_causes(causes.begin(), causes.end());
  std::ranges::stable_sort(sorted_causes, std::greater(), [](const auto& entry) { return entry.second; });
  return sorted_causes;
}

std::optional<double> energy_of_device_j(const std::vector<DomainEnergy>& domains, const std::string& device) {
  for (const DomainEnergy& domain : domains) {
    if (domain.name == device) return domain.joules;
  }
  return std::nullopt;
}

std::string largest_waits_text(const ReportResult& result, const TextStyle& style) {
  std::vector<const ReportRow*> rows;
  for (const ReportRow& row : result.rows) {
    if (row.waiting_j.value_or(0) > 0) rows.push_back(&row);
  }
  if (rows.empty()) return {};
  std::ranges::stable_sort(rows, std::greater(), [](const ReportRow* row) { return *row->waiting_j; });
  if (rows.size() > kMaxShownWaits) rows.resize(kMaxShownWaits);
  std::string out = "   of it, waiting for\n";
  for (const ReportRow* row : rows) {
    const std::string path = printable(fmt::format("{}", fmt::join(row->path, " > ")));
    out += fmt::format("  {:>11} J  {:>8} s  {}\n", format_number(*row->waiting_j), format_number(*row->waiting_s, 3),
                       shorten_to_columns(path, style.columns - 28));
  }
  return out;
}

}  // namespace

bool is_cpu_device(std::string_view device) { return device == "cpu" || device.ends_with("/cpu"); }

std::string_view idle_cause_words(IdleCause cause) { return kIdleCausePhrases[static_cast<std::size_t>(cause)]; }

std::vector<DeviceIdleShare> device_idle_shares(const std::vector<IdleEntry>& idle,
                                                const std::vector<DomainEnergy>& domains) {
  std::vector<DeviceIdleShare> shares;
  for (const auto& [device, causes] : sum_idle_by_cause(idle)) {
    const std::optional<double> energy_j = energy_of_device_j(domains, device);
    if (!energy_j || *energy_j <= 0) continue;
    DeviceIdleShare& share = shares.emplace_back(DeviceIdleShare{device, 0, {}});
    for (const auto& [cause, joules] : sort_causes_by_energy(causes)) {
      share.idle_share += joules / *energy_j;
      share.shares_by_cause.emplace_back(cause, joules / *energy_j);
    }
  }
  return shares;
}

std::string idle_gpu_sentence(const DeviceIdleShare& share) {
  if (share.idle_share < kMinMentionedIdleShare) return {};
  const auto& causes = share.shares_by_cause;
  std::string line =
      fmt::format("{:.0f} % of the energy of {} was used while it was idle: {:.0f} % {}", 100 * share.idle_share,
                  share.device, 100 * causes[0].second, idle_cause_phrase(causes[0].first));
  if (causes.size() > 1 && causes[1].second >= kMinMentionedIdleShare)
    line += fmt::format(", {:.0f} % {}", 100 * causes[1].second, idle_cause_phrase(causes[1].first));
  return line + ".";
}

std::string idle_gpu_headline(const ReportResult& result) {
  std::string out;
  for (const DeviceIdleShare& share : device_idle_shares(result.idle, result.domains)) {
    if (const std::string sentence = idle_gpu_sentence(share); !sentence.empty()) out += wrap_text(" ", sentence);
  }
  return out;
}

std::string idle_gpu_table(const ReportResult& result, const TextStyle& style) {
  std::string out;
  for (const auto& [device, causes] : sum_idle_by_cause(result.idle)) {
    const std::optional<double> energy_j = energy_of_device_j(result.domains, device);
    if (!energy_j || *energy_j <= 0) continue;
    out += "\n" + style.bold(fmt::format(" {} idle, by what it waited for", device)) + "\n";
    for (const auto& [cause, joules] : sort_causes_by_energy(causes)) {
      if (joules <= 0) continue;
      out += fmt::format("  {:>11} J  {:>5.1f} %  {}\n", format_number(joules), 100 * joules / *energy_j,
                         idle_cause_words(cause));
    }
  }
  return out.empty() ? out : out + largest_waits_text(result, style);
}

}  // namespace joulemap::report
