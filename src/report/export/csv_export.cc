// SPDX-License-Identifier: Apache-2.0
//
// export --to csv: one table as CSV (RFC 4180): rows of a level, domains, steps, epochs, layers by step, or power over
// time. Numbers have full precision; unknown values are empty.
#include <fmt/format.h>

#include <cmath>

#include "report/export/exports.h"
#include "report/export/table_escapes.h"
#include "report/plot/plots.h"

namespace joulemap::report {
namespace {

class CsvLine {
 public:
  CsvLine& add(std::string_view text) { return append_escaped_cell(escape_csv_field(text)); }
  CsvLine& add(const char* text) { return add(std::string_view(text)); }
  CsvLine& add(const std::string& text) { return add(std::string_view(text)); }
  CsvLine& add(double number) { return append_escaped_cell(std::isfinite(number) ? fmt::format("{}", number) : ""); }
  CsvLine& add(std::uint64_t number) { return append_escaped_cell(fmt::format("{}", number)); }
  template <class T>
  CsvLine& add(const std::optional<T>& optional_value) {
    return optional_value ? add(*optional_value) : append_escaped_cell("");
  }
  std::string take_line() && { return std::move(line_) + "\r\n"; }

 private:
  CsvLine& append_escaped_cell(std::string_view cell) {
    if (has_cells_) line_ += ',';
    has_cells_ = true;
    line_ += cell;
    return *this;
  }
  std::string line_;
  bool has_cells_ = false;
};

std::string steps_or_epochs_csv(const std::vector<StepOrEpochView>& steps_or_epochs) {
  std::string out = "number,begin_s,end_s,time_s,energy_j,power_w,loss,joules_per_loss\r\n";
  for (const StepOrEpochView& step_or_epoch : steps_or_epochs) {
    CsvLine line;
    line.add(step_or_epoch.number)
        .add(step_or_epoch.begin_s)
        .add(step_or_epoch.end_s)
        .add(step_or_epoch.time_s)
        .add(step_or_epoch.energy_j);
    const bool has_power = step_or_epoch.energy_j && step_or_epoch.time_s > 0;
    line.add(has_power ? std::optional(*step_or_epoch.energy_j / step_or_epoch.time_s) : std::nullopt);
    out += std::move(line.add(step_or_epoch.loss).add(step_or_epoch.joules_per_loss)).take_line();
  }
  return out;
}

// One line per layer and sample. On GPUs a sample is the energy of the layer in a step. On CPUs it is the mean energy
// per call over an interval, and the column `step` is empty.
std::string layer_steps_csv(const std::vector<LayerDistribution>& layers) {
  std::string out = "device,path,per,step,time_s,energy_j\r\n";
  for (const LayerDistribution& layer : layers) {
    for (const LayerEnergyPoint& point : layer.points) {
      CsvLine line;
      line.add(layer.device).add(scope_path_text(layer.path)).add(layer.per);
      line.add(point.step ? std::optional(fmt::format("{}", *point.step)) : std::nullopt);
      out += std::move(line.add(point.time_s).add(point.energy_j)).take_line();
    }
  }
  return out;
}

std::string domains_csv(const std::vector<DomainEnergy>& domains) {
  std::string out = "domain,energy_j,uncertainty_j,power_w,provenance,counted,part_of,sensor,reason\r\n";
  for (const DomainEnergy& domain : domains) {
    CsvLine line;
    line.add(domain.name).add(domain.joules).add(domain.uncertainty_j).add(domain.mean_w);
    line.add(domain.provenance ? to_string(*domain.provenance) : std::string_view());
    line.add(domain.is_counted ? "true" : "false").add(domain.part_of).add(domain.sensor).add(domain.reason);
    out += std::move(line).take_line();
  }
  return out;
}

std::string power_series_csv(const ReportResult& run) {
  CsvLine head;
  head.add("time_s");
  for (const PowerSeries& series : run.power) head.add(series.domain + "_w");
  std::string out = std::move(head).take_line();
  const std::size_t slices = run.power.empty() ? 0 : run.power.front().watts.size();
  for (std::size_t i = 0; i < slices; ++i) {
    CsvLine line;
    line.add((static_cast<double>(i) + 0.5) * run.slice_s);
    for (const PowerSeries& series : run.power) line.add(i < series.watts.size() ? series.watts[i] : std::nullopt);
    out += std::move(line).take_line();
  }
  return out;
}

std::string level_rows_csv(const LevelView& level) {
  std::string out =
      "device,path,name,count,time_s,energy_j,low_j,high_j,dynamic_j,power_w,share,basis,cause,cause_basis";
  for (const EnergyCauseClass cause_class : kCauseClasses) out += fmt::format(",{}_s", to_string(cause_class));
  out += ",waiting_s,waiting_j,waiting_low_j,waiting_high_j\r\n";
  for (const ReportRow& row : level.rows) {
    CsvLine line;
    line.add(row.device).add(scope_path_text(row.path)).add(row.display_name).add(row.count).add(row.time_s);
    line.add(row.energy_j).add(row.low_j).add(row.high_j).add(row.dynamic_j).add(row.power_w).add(row.share);
    line.add(row.basis).add(row.cause ? to_string(row.cause->largest_class) : std::string_view());
    line.add(row.cause ? to_string(row.cause->basis) : std::string_view());
    for (const EnergyCauseClass cause_class : kCauseClasses)
      line.add(row.cause ? std::optional(row.cause->times_s[cause_class]) : std::nullopt);
    line.add(row.waiting_s).add(row.waiting_j).add(row.waiting_low_j).add(row.waiting_high_j);
    out += std::move(line).take_line();
  }
  const auto add_unattributed_row = [&](std::string_view name, const std::optional<double>& energy_j) {
    if (energy_j) out += fmt::format(",{0},{0},,,{1},,,,,,,,,,,,,,,,\r\n", name, *energy_j);
  };
  add_unattributed_row("idle", level.idle_j);
  add_unattributed_row("not attributed", level.unattributed_j);
  return out;
}

std::string serving_requests_csv(const ServingResult& serving) {
  static constexpr std::string_view kStatus[] = {"unfinished", "finished", "aborted"};
  std::string out =
      "id,tenant,model,status,prompt_tokens,cached_tokens,output_tokens,rejected_tokens,steps,begin_s,end_s,first_"
      "token_s,"
      "step_s,energy_j,low_j,high_j,token_j,time_j,marginal_j,prefill_j,decode_j,fixed_j,context_j,wasted_j\r\n";
  const auto energy_if_known = [&](double energy_j) {
    return serving.has_energy ? std::optional(energy_j) : std::nullopt;
  };
  for (const ServedRequest& request : serving.listed_requests) {
    CsvLine line;
    line.add(request.id).add(request.tenant).add(request.model);
    line.add(kStatus[static_cast<std::size_t>(request.status)]).add(request.prompt_tokens).add(request.cached_tokens);
    line.add(request.output_tokens).add(request.rejected_tokens).add(request.steps).add(request.begin_s);
    line.add(request.end_s)
        .add(request.first_token_s)
        .add(request.step_s)
        .add(energy_if_known(request.shares.shapley_j));
    line.add(energy_if_known(request.low_j))
        .add(energy_if_known(request.high_j))
        .add(energy_if_known(request.shares.token_share_j));
    line.add(energy_if_known(request.shares.step_share_j))
        .add(energy_if_known(request.shares.saved_without_request_j))
        .add(energy_if_known(request.prefill_j));
    line.add(energy_if_known(request.decode_j))
        .add(energy_if_known(request.fixed_j))
        .add(energy_if_known(request.kv_cache_read_j));
    out += std::move(line.add(energy_if_known(request.wasted_j))).take_line();
  }
  return out;
}

}  // namespace

Result<std::string> csv_text(const RunView& view, const ExportOptions& query) {
  if (query.by == "step") return steps_or_epochs_csv(view.steps);
  if (query.by == "epoch") return steps_or_epochs_csv(view.epochs);
  if (query.by == "layer-step") return layer_steps_csv(view.layer_distributions);
  if (query.by == "domain") return domains_csv(view.run.domains);
  if (query.by == "power") return power_series_csv(view.run);
  if (query.by == "request" && view.run.serving) return serving_requests_csv(*view.run.serving);
  const LevelView* const level = find_level(view, query.by);
  if (level != nullptr) return level_rows_csv(*level);
  if (query.by.empty()) return domains_csv(view.run.domains);  // as a report without --by
  return Error{ErrorCode::not_found, fmt::format("the recording contains no rows by {}", query.by),
               fmt::format("run joulemap report --by {} for the reason", query.by)};
}

}  // namespace joulemap::report
