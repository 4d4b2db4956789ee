// SPDX-License-Identifier: Apache-2.0
#include "report/text/stat_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/printable_text.h"
#include "base/text.h"
#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

std::string stat_title(const StatResult& result) {
  std::string subject = "the whole machine";
  if (!result.command.empty()) {
    subject.clear();
    for (const std::string& argument : result.command) subject += (subject.empty() ? "" : " ") + argument;
    subject = quoted(subject, 56);
  } else if (result.attached_pid) {
    subject = fmt::format("the machine while process {} ran", *result.attached_pid);
  }
  std::string out = fmt::format("\n Energy of {}\n", subject);
  if (result.runs.size() > 1) {
    out +=
        fmt::format(" mean of {} runs, +- half of its {:.0f} % interval\n", result.runs.size(), 100 * result.interval);
  } else {
    out += fmt::format(" +- half of the {:.0f} % interval\n", 100 * result.interval);
  }
  return out + "\n";
}

double mean_elapsed_s(const StatResult& result) {
  double sum_s = 0;
  for (const StatRun& run : result.runs) sum_s += run.elapsed_s;
  return sum_s / static_cast<double>(result.runs.size());
}

// The entry of a domain whose origin is printed: from the last run that measured it, else estimated it, else has it.
const DomainEnergy* choose_described_domain(const StatResult& result, const std::string& name) {
  const auto rank = [](const DomainEnergy& domain) {
    return !domain.joules ? 0 : domain.provenance == Provenance::estimated ? 1 : 2;
  };
  const DomainEnergy* best_domain = nullptr;
  for (const StatRun& run : result.runs) {
    for (const DomainEnergy& domain : run.domains) {
      if (domain.name == name && (best_domain == nullptr || rank(domain) >= rank(*best_domain))) best_domain = &domain;
    }
  }
  return best_domain;
}

// Mean power over the runs in which the domain has the provenance of `described_domain`; none if there is no such run.
std::optional<double> mean_power_w(const StatResult& result, const DomainEnergy& described_domain) {
  double sum_w = 0;
  double runs = 0;
  for (const StatRun& run : result.runs) {
    for (const DomainEnergy& domain : run.domains) {
      if (domain.name != described_domain.name || domain.provenance != described_domain.provenance || !domain.mean_w)
        continue;
      sum_w += *domain.mean_w;
      ++runs;
    }
  }
  if (runs == 0) return std::nullopt;
  return sum_w / runs;
}

std::string domain_energy_rows_text(const StatResult& result) {
  std::string out;
  for (const StatSummary& summary : result.summary) {
    const DomainEnergy* domain = choose_described_domain(result, summary.name);
    if (domain == nullptr) continue;
    EnergyRow row{(domain->part_of.empty() || domain->is_counted ? "" : "  ") + summary.name,
                  summary.mean_j,
                  {},
                  {},
                  domain_origin_text(*domain)};
    if (summary.mean_j) row.half_width_j = *summary.high_j - *summary.mean_j;
    row.mean_power_w = mean_power_w(result, *domain);
    out += energy_row_text(row);
  }
  return out;
}

// Mean total over the runs that have values of all domains; the total of other runs would be too low.
std::string total_energy_row_text(const StatResult& result, Provenance provenance) {
  std::set<std::string> domains;
  std::vector<std::pair<EnergyWithProvenance, double>> totals;  // (total, elapsed s)
  for (const StatRun& run : result.runs) {
    std::optional<EnergyWithProvenance> total = energy_by_provenance(run.totals, provenance);
    if (!total) continue;
    domains.insert(total->domains.begin(), total->domains.end());
    totals.emplace_back(std::move(*total), run.elapsed_s);
  }
  double sum_j = 0;
  double sum_s = 0;
  std::size_t runs = 0;
  for (const auto& [total, elapsed_s] : totals) {
    if (total.domains.size() < domains.size()) continue;
    sum_j += total.joules;
    sum_s += elapsed_s;
    ++runs;
  }
  const std::string name = fmt::format("total {}", to_string(provenance));
  if (totals.empty()) return {};
  if (runs == 0) return energy_row_text({name, {}, {}, {}, "no value: no run has all domains"});
  const std::optional<double> watts = sum_s > 0 ? std::optional(sum_j / sum_s) : std::nullopt;
  const std::string run_count_text =
      runs < result.runs.size() ? fmt::format("{} of {} runs", runs, result.runs.size()) : "";
  return energy_row_text({name, sum_j / static_cast<double>(runs), {}, watts, run_count_text});
}

std::string total_energy_rows_text(const StatResult& result) {
  return total_energy_row_text(result, Provenance::measured) + total_energy_row_text(result, Provenance::estimated);
}

std::string elapsed_time_text(const StatResult& result) {
  const auto runs = static_cast<double>(result.runs.size());
  double user_s = 0;
  double system_s = 0;
  double share = 0;
  double recorder_cpu_s = 0;
  std::size_t shares = 0;
  bool has_times = false;
  for (const StatRun& run : result.runs) {
    has_times = has_times || run.user_s;
    user_s += run.user_s.value_or(0) / runs;
    system_s += run.system_s.value_or(0) / runs;
    recorder_cpu_s += run.overhead_cpu_s / runs;
    if (!run.process_share) continue;
    share += *run.process_share;
    ++shares;
  }
  const double elapsed_s = mean_elapsed_s(result);
  std::string out = fmt::format("  {:>11} s elapsed", format_number(elapsed_s));
  if (has_times) out += fmt::format("   {} s user   {} s system", format_number(user_s), format_number(system_s));
  out += "\n";
  if (shares > 0) {
    const std::string_view cpu_time_owner = result.attached_pid ? "that process" : "the command";
    out += fmt::format("  {:>11} % of the machine's CPU time used by {}\n",
                       format_number(100 * share / static_cast<double>(shares)), cpu_time_owner);
  }
  const double joulemap_cpu_percent = elapsed_s > 0 ? 100 * recorder_cpu_s / elapsed_s : 0;
  out += fmt::format("  {:>11} s CPU time used by joulemap ({:.2g} %)\n", format_number(recorder_cpu_s),
                     joulemap_cpu_percent);
  return out;
}

std::string exit_status_text(const StatResult& result) {
  for (const StatRun& run : result.runs) {
    if (run.signal)
      return fmt::format("  the command was killed by signal {} (exit code {})\n", *run.signal, *run.exit_code);
    if (run.exit_code.value_or(0) != 0) return fmt::format("  the command failed with exit code {}\n", *run.exit_code);
  }
  return {};
}

std::string power_model_text(const StatResult& result) {
  std::string out;
  std::set<std::string> described_models;
  for (const StatSummary& summary : result.summary) {
    const DomainEnergy* domain = choose_described_domain(result, summary.name);
    if (domain == nullptr || domain->model.empty() || !described_models.insert(domain->model).second) continue;
    out += wrap_text(fmt::format(" estimate of {}: ", printable(domain->name)), domain->model);
  }
  return out;
}

}  // namespace

std::string stat_text(const StatResult& result) {
  std::string out = stat_title(result);
  if (!result.runs.empty()) {
    const std::string rows = domain_energy_rows_text(result);
    out += rows.empty() ? "  no sensor returned a value\n" : rows;
    const std::string totals = total_energy_rows_text(result);
    if (!totals.empty()) out += "  -----------\n" + totals;
    out += "\n" + elapsed_time_text(result) + exit_status_text(result);
  }
  Diagnostics all_diagnostics = result.diagnostics;
  for (const StatRun& run : result.runs) all_diagnostics.add_all(run.diagnostics);
  const std::string notes = power_model_text(result) + diagnostics_text(all_diagnostics);
  if (!notes.empty()) out += "\n" + notes;
  return out + "\n";
}

std::string stat_interval_text(const StatInterval& interval, bool has_header) {
  std::string out;
  if (has_header) out += fmt::format("#{:>11} {:>12} {:>10}  {}\n", "seconds", "joules", "watts", "domain");
  for (const DomainEnergy& domain : interval.domains) {
    const std::string label = domain.provenance == Provenance::estimated ? " (estimated)" : "";
    out += fmt::format("{:>12.3f} {:>12} {:>10}  {}{}\n", interval.to_s, format_optional_number(domain.joules),
                       format_optional_number(domain.mean_w), printable(domain.name),
                       domain.joules ? label : " (" + domain.reason + ")");
  }
  return out;
}

}  // namespace joulemap::report
