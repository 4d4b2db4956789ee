// SPDX-License-Identifier: Apache-2.0
#include "report/export/tensorboard_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "report/export/markdown_summary.h"
#include "report/export/tensorboard_events.h"
#include "report/text/command_energy.h"

namespace joulemap::report {
namespace {

// A histogram contains at least 10 values. More than 20 histograms over time could not be distinguished.
constexpr std::size_t kMinHistogramValues = 10;
constexpr std::size_t kMaxHistogramsPerTag = 20;

// A tag of TensorBoard, which groups tags by the text before the first slash: "joulemap_step/energy_j".
std::string make_group_tag(std::string group, std::string_view name) {
  std::ranges::replace(group, '/', '_');
  std::ranges::replace(group, ' ', '_');
  return to_valid_utf8("joulemap_" + group + "/" + std::string(name));
}

// "gpu0 train forward", for the layer [train, forward, conv1].
std::string layer_pass_name(const LayerDistribution& layer_distribution) {
  std::string pass = layer_distribution.device;
  for (std::size_t i = 0; i + 1 < layer_distribution.path.size(); ++i) pass += " " + layer_distribution.path[i];
  return pass;
}

std::string layer_tag(const LayerDistribution& layer_distribution) {
  return make_group_tag(layer_pass_name(layer_distribution),
                        layer_distribution.path.empty() ? "all" : std::string_view(layer_distribution.path.back()));
}

// A regular expression that matches the text and nothing else.
std::string escape_regex(std::string_view text) {
  std::string pattern;
  for (const char letter : text) {
    if (std::string_view(R"(.^$*+?()[]{}|\)").find(letter) != std::string_view::npos) pattern += '\\';
    pattern += letter;
  }
  return pattern;
}

// The options of the command line as hyperparameters: "--lr 0.1 --name=x --amp" gives a number, a text and true.
std::vector<HyperParameter> parse_command_hyper_parameters(const std::vector<std::string>& command) {
  std::vector<HyperParameter> parameters;
  for (std::size_t i = 0; i < command.size(); ++i) {
    std::string_view name = command[i];
    if (!name.starts_with("--") || name.size() == 2) continue;
    name.remove_prefix(2);
    std::optional<std::string_view> text;
    if (const std::size_t equals_position = name.find('='); equals_position != std::string_view::npos) {
      text = name.substr(equals_position + 1);
      name = name.substr(0, equals_position);
    } else if (i + 1 < command.size() && !command[i + 1].starts_with("--")) {
      text = command[++i];
    }
    const auto has_same_name = [&](const HyperParameter& earlier_parameter) { return earlier_parameter.name == name; };
    if (name.empty() || std::ranges::any_of(parameters, has_same_name)) continue;
    HyperParameter parameter{std::string(name), true};
    if (text) parameter.value = std::string(*text);
    if (const std::optional<double> number = text ? parse_double(*text) : std::nullopt) parameter.value = *number;
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

class TensorboardExport {
 public:
  explicit TensorboardExport(const RunView& view)
      : view_(view), begin_s_(static_cast<double>(view.run.start_unix_ns.value_or(0)) * 1e-9), events_(begin_s_) {}

  void add_step_or_epoch_scalars(const std::vector<StepOrEpochView>& steps_or_epochs, const std::string& group);
  void add_power_scalars();
  void add_metrics();
  void add_layer_energies();
  void add_pass_energies(std::span<const LayerDistribution> passes);
  // Charts with all layers of a pass, and with all passes.
  void add_charts();
  void add_final_values();
  void add_run_summary() { events_.add_text("joulemap_summary/run", 0, begin_s_, markdown_summary(view_)); }
  void add_hparams(TensorboardFolderSharing folder);
  const std::string& bytes() const { return events_.bytes(); }

 private:
  std::int64_t training_step_at(double time_s) const;
  std::int64_t step_of_point(const LayerEnergyPoint& point) const {
    return point.step.value_or(training_step_at(point.time_s));
  }
  void add_slice_scalars(const std::string& tag, const std::vector<std::optional<double>>& values);
  void add_histograms(const std::string& tag, const std::vector<LayerEnergyPoint>& points);

  const RunView& view_;
  double begin_s_;  // start of the run in Unix seconds; 0 if unknown
  TensorboardEvents events_;
  std::vector<std::string> final_value_tags_;
  std::map<std::string, std::string> chart_titles_by_tag_group_;  // title by group of tags
};

// Number of the training step at time_s; in a run without steps, time_s in milliseconds.
std::int64_t TensorboardExport::training_step_at(double time_s) const {
  if (view_.steps.empty()) return std::llround(time_s * 1e3);
  const auto following_step = std::ranges::upper_bound(view_.steps, time_s, {}, &StepOrEpochView::begin_s);
  const StepOrEpochView& step = following_step == view_.steps.begin() ? *following_step : *std::prev(following_step);
  const double length_s = step.end_s - step.begin_s;
  const double part = length_s > 0 ? std::clamp((time_s - step.begin_s) / length_s, 0.0, 1.0) : 0;
  const auto step_offset = static_cast<std::uint64_t>(part * static_cast<double>(step.count));
  return static_cast<std::int64_t>(step.number + std::min(step_offset, step.count - 1));
}

// Adds the scalars of each step or epoch. Of several that were merged into one entry, adds energy and time per step.
void TensorboardExport::add_step_or_epoch_scalars(const std::vector<StepOrEpochView>& steps_or_epochs,
                                                  const std::string& group) {
  const std::string energy = make_group_tag(group, "energy_j");
  const std::string energy_so_far_tag = make_group_tag(group, "energy_so_far_j");
  const std::string power = make_group_tag(group, "power_w");
  const std::string time = make_group_tag(group, "time_s");
  const std::string loss = make_group_tag(group, "loss");
  const std::string joules_per_loss_tag = make_group_tag(group, "joules_per_loss");
  std::vector<TaggedScalar> numbers;
  std::vector<LayerEnergyPoint> points;
  double sum_j = 0;
  for (const StepOrEpochView& step_or_epoch : steps_or_epochs) {
    const auto count = static_cast<double>(step_or_epoch.count);
    numbers.clear();
    if (step_or_epoch.energy_j) {
      sum_j += *step_or_epoch.energy_j;
      numbers.push_back({energy, *step_or_epoch.energy_j / count});
      numbers.push_back({energy_so_far_tag, sum_j});
      if (step_or_epoch.time_s > 0) numbers.push_back({power, *step_or_epoch.energy_j / step_or_epoch.time_s});
      points.push_back(
          {step_or_epoch.begin_s, *step_or_epoch.energy_j / count, static_cast<std::int64_t>(step_or_epoch.number)});
    }
    numbers.push_back({time, step_or_epoch.time_s / count});
    if (step_or_epoch.loss) numbers.push_back({loss, *step_or_epoch.loss});
    if (step_or_epoch.joules_per_loss) numbers.push_back({joules_per_loss_tag, *step_or_epoch.joules_per_loss});
    events_.add_scalars(static_cast<std::int64_t>(step_or_epoch.number), begin_s_ + step_or_epoch.end_s, numbers);
  }
  add_histograms(energy, points);
}

void TensorboardExport::add_slice_scalars(const std::string& tag, const std::vector<std::optional<double>>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double centre_s = (static_cast<double>(i) + 0.5) * view_.run.slice_s;
    if (values[i]) events_.add_scalar(tag, std::llround(centre_s * 1e3), begin_s_ + centre_s, *values[i]);
  }
}

void TensorboardExport::add_power_scalars() {
  for (const PowerSeries& series : view_.run.power)
    add_slice_scalars(make_group_tag("power", series.domain + "_w"), series.watts);
  for (const ReportTrack& track : view_.run.tracks)
    add_slice_scalars(make_group_tag("track", track.name), track.values);
}

void TensorboardExport::add_metrics() {
  for (const MetricSeries& series : view_.metrics) {
    const std::string tag = make_group_tag("metric", series.name);
    for (const MetricPoint& point : series.points) {
      events_.add_scalar(tag, point.step.value_or(training_step_at(point.time_s)), begin_s_ + point.time_s,
                         point.value);
    }
  }
}

// Adds histograms of the energies, each over a part of the run. They have a tag of their own, TAG/spread, because a tag
// of TensorBoard has either scalars or histograms.
void TensorboardExport::add_histograms(const std::string& tag, const std::vector<LayerEnergyPoint>& points) {
  const std::size_t histogram_count = std::min(points.size() / kMinHistogramValues, kMaxHistogramsPerTag);
  for (std::size_t histogram_index = 0; histogram_index < histogram_count; ++histogram_index) {
    std::vector<double> joules;
    const std::size_t end = (histogram_index + 1) * points.size() / histogram_count;
    for (std::size_t i = histogram_index * points.size() / histogram_count; i < end; ++i)
      joules.push_back(points[i].energy_j);
    const LayerEnergyPoint& last_point = points[end - 1];
    events_.add_histogram(tag + "/spread", step_of_point(last_point), begin_s_ + last_point.time_s,
                          make_histogram_buckets(joules));
  }
}

void TensorboardExport::add_layer_energies() {
  for (const LayerDistribution& layer_distribution : view_.layer_distributions) {
    const std::string tag = layer_tag(layer_distribution);
    chart_titles_by_tag_group_.emplace(tag.substr(0, tag.find('/')), layer_pass_name(layer_distribution));
    for (const LayerEnergyPoint& point : layer_distribution.points) {
      events_.add_scalar(tag, step_of_point(point), begin_s_ + point.time_s, point.energy_j);
    }
    add_histograms(tag, layer_distribution.points);
  }
}

void TensorboardExport::add_pass_energies(std::span<const LayerDistribution> passes) {
  for (const LayerDistribution& pass : passes) {
    const std::string tag = make_group_tag("pass", fmt::format("{} {}", pass.device, fmt::join(pass.path, " ")));
    for (const LayerEnergyPoint& point : pass.points)
      events_.add_scalar(tag, step_of_point(point), begin_s_ + point.time_s, point.energy_j);
  }
}

void TensorboardExport::add_charts() {
  std::vector<TensorboardEvents::Chart> charts = {{"energy of each pass in a step, J", "joulemap_pass/.*"}};
  for (const auto& [group, pass] : chart_titles_by_tag_group_) {
    charts.push_back({fmt::format("energy of each layer in a step, J: {}", pass), escape_regex(group) + "/.*"});
  }
  events_.add_chart_layout(begin_s_, "joulemap", charts);
}

void TensorboardExport::add_final_values() {
  const RunRates rates = command_rates(view_);
  const auto add = [&](std::string_view name, const std::optional<double>& value) {
    if (!value) return;
    final_value_tags_.push_back(make_group_tag("run", name));
    events_.add_scalar(final_value_tags_.back(), 0, begin_s_ + view_.run.elapsed_s, *value);
  };
  add(rates.is_estimated() ? "energy_estimated_j" : "energy_j", view_.rates.energy_j);
  if (noticeable_background_j(view_) > 0) add("command_energy_j", rates.energy_j);
  add("time_s", rates.time_s);
  add("joules_per_step", rates.energy_per_unit(rates.steps));
  add("joules_per_epoch", rates.energy_per_unit(rates.epochs));
  add("joules_per_sample", rates.energy_per_unit(rates.samples));
  add("samples_per_s", rates.samples_per_s());
  add("energy_delay_js", rates.energy_delay_js());
}

void TensorboardExport::add_hparams(TensorboardFolderSharing folder) {
  HparamsSession session{
      parse_command_hyper_parameters(view_.run.command), begin_s_, begin_s_ + view_.run.elapsed_s, {}};
  std::string hosts;
  for (const std::string& host : view_.run.hosts) hosts += (hosts.empty() ? "" : ", ") + host;
  session.parameters.push_back({"joulemap host", hosts});
  if (view_.run.exit_code) session.succeeded = *view_.run.exit_code == 0;
  if (folder == TensorboardFolderSharing::exclusive)
    events_.add_hparams_columns(begin_s_, session.parameters, final_value_tags_);
  events_.add_hparams_session(session);
}

}  // namespace

std::string tensorboard_file(const RunView& view, std::span<const LayerDistribution> passes,
                             TensorboardFolderSharing folder) {
  TensorboardExport out(view);
  out.add_run_summary();
  out.add_step_or_epoch_scalars(view.steps, "step");
  out.add_step_or_epoch_scalars(view.epochs, "epoch");
  out.add_power_scalars();
  out.add_metrics();
  out.add_layer_energies();
  out.add_pass_energies(passes);
  if (folder == TensorboardFolderSharing::exclusive) out.add_charts();
  out.add_final_values();
  out.add_hparams(folder);
  return out.bytes();
}

}  // namespace joulemap::report
