// SPDX-License-Identifier: Apache-2.0
#include "attribution/requests/serving_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace joulemap::attribution {
namespace {

// Sums of the rows, and the energy outside of all rows.
void set_energy_totals(LedgerResult& result, const ServingResult& serving) {
  if (!serving.has_energy) return;
  const double attributed_j = serving.requests_j + serving.wasted_j();
  result.attributed_j = attributed_j;
  result.idle_j = serving.idle_j;
  result.unattributed_j = serving.outside_steps_j;
  IdleEntry idle;
  idle.cause = IdleCause::between;
  idle.time_s = std::max(serving.end_s - serving.begin_s - serving.busy_s, 0.0);
  idle.energy_j = serving.idle_j;
  if (serving.idle_j > 0) result.idle.push_back(std::move(idle));
  for (ReportRow& row : result.rows) {
    if (attributed_j > 0 && row.energy_j) row.share = *row.energy_j / attributed_j;
  }
}

std::string serving_basis_name(const ServingResult& serving) {
  return serving.model.is_regressed ? "regressed" : "time-share";
}

ReportRow make_serving_row(std::vector<std::string> path, std::uint64_t count, double time_s) {
  ReportRow row;
  row.name = row.display_name = path.back();
  row.path = std::move(path);
  row.count = count;
  row.time_s = time_s;
  return row;
}

void set_row_energy(ReportRow& row, const ServingResult& serving, const EnergyInterval& energy) {
  if (!serving.has_energy) return;
  row.basis = serving_basis_name(serving);
  row.energy_j = energy.energy_j;
  row.low_j = energy.low_j;
  row.high_j = energy.high_j;
  if (row.time_s > 0) row.power_w = energy.energy_j / row.time_s;
}

// Gives each row a path of its own: the second request "a" of a tenant is "a (2)".
class UniqueRequestNames {
 public:
  std::string add(const std::string& tenant, const std::string& id) {
    std::uint64_t& use_count = use_counts_[tenant + '\0' + id];
    std::string name = id;
    while (++use_count > 1) {
      name = fmt::format("{} ({})", id, use_count);
      if (use_counts_.try_emplace(tenant + '\0' + name, 1).second) break;
    }
    return name;
  }

 private:
  std::unordered_map<std::string, std::uint64_t> use_counts_;  // by tenant and name
};

// Without `wasted_j`. Rounding must not leave energy below zero.
EnergyInterval subtract_waste(const EnergyInterval& energy, double wasted_j) {
  constexpr double kRelativeRoundingError = 1e-9;
  const double useful_energy_j = energy.energy_j - wasted_j;
  return {std::abs(useful_energy_j) <= kRelativeRoundingError * energy.energy_j ? 0 : useful_energy_j,
          std::max(energy.low_j - wasted_j, 0.0), std::max(energy.high_j - wasted_j, 0.0)};
}

// The sum of the rows below `path`, with an interval of the serving ledger.
ReportRow make_group(const std::vector<ReportRow>& rows, std::vector<std::string> path, const ServingResult& serving,
                     const EnergyInterval& energy) {
  ReportRow group = path.empty() ? ReportRow{} : make_serving_row(path, 0, 0);
  group.count = 0;
  for (const ReportRow& row : rows) {
    if (row.path.size() < path.size() || !std::equal(path.begin(), path.end(), row.path.begin())) continue;
    *group.count += row.count.value_or(0);
    group.time_s += row.time_s;
  }
  set_row_energy(group, serving, energy);
  return group;
}

}  // namespace

LedgerResult make_request_rows(const ServingResult& serving) {
  LedgerResult result;
  UniqueRequestNames names;
  double listed_energy_j = 0;
  for (const ServedRequest& request : serving.listed_requests) {
    std::vector<std::string> path;
    if (!request.tenant.empty()) path.push_back(request.tenant);
    path.push_back(names.add(request.tenant, request.id));
    ReportRow row = make_serving_row(std::move(path), request.steps, request.step_s);
    set_row_energy(row, serving, {request.shares.shapley_j, request.low_j, request.high_j});
    row.power_w.reset();  // several requests share each step
    listed_energy_j += request.shares.shapley_j;
    result.rows.push_back(std::move(row));
  }
  const double unlisted_j = serving.requests_j + serving.wasted_j() - listed_energy_j;
  if (serving.requests > serving.listed_requests.size()) {
    ReportRow row =
        make_serving_row({names.add("", "requests not listed")}, serving.requests - serving.listed_requests.size(), 0);
    if (serving.has_energy) {
      row.basis = serving_basis_name(serving);
      row.energy_j = unlisted_j;
    }
    result.rows.push_back(std::move(row));
  }
  result.groups.push_back(make_group(result.rows, {}, serving, serving.all_steps));
  for (const LabelEnergy& label : serving.labels) {
    if (label.kind != "tenant") continue;
    result.groups.push_back(
        make_group(result.rows, {label.name}, serving, {label.energy_j, label.low_j, label.high_j}));
  }
  set_energy_totals(result, serving);
  return result;
}

LedgerResult make_token_rows(const ServingResult& serving) {
  LedgerResult result;
  const double steps_j = serving.prefill.energy_j + serving.decode.energy_j;
  const auto add = [&](std::vector<std::string> path, std::uint64_t count, const EnergyInterval& energy) {
    const double share = steps_j > 0 ? energy.energy_j / steps_j : 0;
    ReportRow row = make_serving_row(std::move(path), count, serving.busy_s * share);
    set_row_energy(row, serving, energy);
    result.rows.push_back(std::move(row));
  };
  // Waste was computed in prefill and decode. Without it they are the energy of useful tokens.
  const double wasted_prefill_j = serving.wasted_preempted_j + serving.wasted_aborted_prefill_j;
  add({"prefill"}, serving.prompt_tokens, subtract_waste(serving.prefill, wasted_prefill_j));
  add({"decode"}, serving.output_tokens, subtract_waste(serving.decode, serving.wasted_j() - wasted_prefill_j));
  const auto add_waste = [&](const char* cause, double wasted_j, std::uint64_t count) {
    if (wasted_j <= 0) return;
    ReportRow row = make_serving_row({"waste", cause}, count, steps_j > 0 ? serving.busy_s * wasted_j / steps_j : 0);
    row.basis = serving_basis_name(serving);
    row.energy_j = wasted_j;
    result.rows.push_back(std::move(row));
  };
  add_waste("preempted", serving.wasted_preempted_j, serving.recomputed_tokens);
  add_waste("aborted", serving.wasted_aborted_j, serving.aborted);
  add_waste("rejected", serving.wasted_rejected_j, serving.rejected_tokens);
  result.groups.push_back(make_group(result.rows, {}, serving, serving.all_steps));
  set_energy_totals(result, serving);
  return result;
}

}  // namespace joulemap::attribution
