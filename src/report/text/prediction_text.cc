// SPDX-License-Identifier: Apache-2.0
#include "report/text/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "report/text/diagnostics_text.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_text.h"
#include "report/text/wrapped_text.h"

namespace joulemap::report {
namespace {

using predict::LayerPrediction;
using predict::Prediction;
using predict::PredictionReport;

constexpr std::size_t kOperationColumns = 10;
constexpr std::size_t kEnergyWidth = 23;  // "12.3 mJ (10.1 .. 15.2)"
constexpr std::size_t kBarWidth = 6;
constexpr std::size_t kShareWidth = 6;
constexpr std::size_t kTimeWidth = 7;
constexpr std::size_t kWidthBesideName = kOperationColumns + kEnergyWidth + kBarWidth + kShareWidth + kTimeWidth + 6;
constexpr std::size_t kMinNameWidth = 12;

std::string labelled_value_line(std::string_view value, std::string_view label) {
  return fmt::format("  {:>12}  {}\n", value, label);
}

std::string_view per_pass_or_step_text(const Prediction& prediction) {
  return prediction.training ? "per training step" : "per pass";
}

std::string prediction_title(const PredictionReport& report, const TextStyle& style) {
  const Prediction& prediction = report.prediction;
  const std::string name = report.model.empty() ? "A network" : printable(report.model);
  std::string title = fmt::format("{} on {}: {}", shorten_to_columns(name, 40), prediction.device,
                                  prediction.training ? "one training step" : "inference");
  if (report.batch) title += fmt::format(" with batch {}", *report.batch);
  const std::string settings_text =
      fmt::format(" {}, {}{}, predicted{}\n", report.precision == "default" ? "default types" : report.precision,
                  name_of(report.mode), report.optimizer.empty() ? "" : ", " + report.optimizer,
                  prediction.has_fitted_profile ? "" : " from its datasheet");
  const std::string warning = predict::lower_bound_warning(prediction);
  const std::string bound = warning.empty() ? "" : wrap_text(" WARNING: ", printable(warning), style.columns);
  return "\n " + style.bold(title) + "\n" + settings_text + bound + "\n";
}

std::string prediction_headline(const PredictionReport& report) {
  const Prediction& prediction = report.prediction;
  const std::string interval =
      prediction.high_j ? fmt::format("90 %: {} .. {}", energy_text(prediction.low_j), energy_text(*prediction.high_j))
                        : "lower bound";
  std::string out = labelled_value_line((prediction.high_j ? "" : ">= ") + energy_text(prediction.energy_j),
                                        fmt::format("{} ({}), GPU only", per_pass_or_step_text(prediction), interval));
  if (report.batch && *report.batch > 1) {
    out += labelled_value_line(energy_text(prediction.energy_j / static_cast<double>(*report.batch)), "per sample");
  }
  out += labelled_value_line(duration_text(prediction.time_s),
                             fmt::format("GPU compute {}, host launches {}", duration_text(prediction.gpu_s),
                                         duration_text(prediction.host_s)));
  out += labelled_value_line(fmt::format("{} W", format_number(prediction.power_w, 3)), "mean power");
  if (prediction.flops > 0) {
    out += labelled_value_line(
        si_prefixed_text(prediction.flops) + "FLOP",
        fmt::format("{} pJ per FLOP", format_number(1e12 * prediction.energy_j / prediction.flops, 3)));
  }
  return out;
}

class LayerTable {
 public:
  LayerTable(const Prediction& prediction, const TextStyle& style)
      : style_(style),
        name_width_(std::max(kMinNameWidth, style.columns > kWidthBesideName ? style.columns - kWidthBesideName : 0)),
        total_j_(prediction.energy_j) {}

  std::string header() const {
    return style_.dimmed(fmt::format(" {:<{}} {:<{}} {:>{}} {:<{}} {:>{}} {:>{}}", "layer", name_width_, "operation",
                                     kOperationColumns, "energy (90 %)", kEnergyWidth, "", kBarWidth, "share",
                                     kShareWidth, "time", kTimeWidth)) +
           "\n";
  }
  std::string layer_line(const LayerPrediction& layer) const {
    const std::string energy =
        layer.high_j ? interval_text(layer.energy_j, layer.low_j, *layer.high_j) : ">= " + energy_text(layer.energy_j);
    return format_columns(layer.name, layer.op, energy, layer.energy_j, duration_text(layer.time_s));
  }
  std::string format_columns(std::string_view name, std::string_view op, std::string_view energy, double energy_j,
                             std::string_view time) const {
    const double share = total_j_ > 0 ? energy_j / total_j_ : 0;
    std::string out =
        fmt::format(" {} {} {} {} {} {}", align_left(shorten_to_columns(printable(name), name_width_), name_width_),
                    align_left(shorten_to_columns(printable(op), kOperationColumns), kOperationColumns),
                    align_right(energy, kEnergyWidth),
                    style_.cyan(align_left(bar_text(share, kBarWidth, style_.character_set), kBarWidth)),
                    align_right(percent_text(share), kShareWidth), align_right(time, kTimeWidth));
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  }

 private:
  TextStyle style_;
  std::size_t name_width_;
  double total_j_;
};

std::vector<const LayerPrediction*> costliest_layers(const Prediction& prediction, std::size_t top) {
  std::vector<const LayerPrediction*> layers;
  for (const LayerPrediction& layer : prediction.layers) layers.push_back(&layer);
  if (top == 0) return layers;
  std::stable_sort(layers.begin(), layers.end(),
                   [](const LayerPrediction* a, const LayerPrediction* b) { return a->energy_j > b->energy_j; });
  layers.resize(std::min(top, layers.size()));
  return layers;
}

std::string layer_table_text(const Prediction& prediction, std::size_t top, const TextStyle& style) {
  if (prediction.layers.empty()) return {};
  const LayerTable table(prediction, style);
  const std::vector<const LayerPrediction*> shown_layers = costliest_layers(prediction, top);
  std::string out = "\n" + table.header();
  double remaining_energy_j = prediction.energy_j - prediction.idle_j;
  for (const LayerPrediction* layer : shown_layers) {
    out += table.layer_line(*layer);
    remaining_energy_j -= layer->energy_j;
  }
  if (const std::size_t hidden_layer_count = prediction.layers.size() - shown_layers.size(); hidden_layer_count > 0) {
    out += table.format_columns(fmt::format("and {} more", hidden_layer_count), "",
                                energy_text(std::max(0.0, remaining_energy_j)), remaining_energy_j, "");
  }
  if (prediction.idle_j > 0) {
    out += table.format_columns("(GPU idle)", "", energy_text(prediction.idle_j), prediction.idle_j,
                                duration_text(std::max(0.0, prediction.time_s - prediction.gpu_s)));
  }
  return out;
}

std::string unknown_operations_text(const Prediction& prediction, const TextStyle& style) {
  if (prediction.unknown_operations.empty()) return {};
  std::string out =
      "\n " + style.bold(fmt::format("Unknown operations ({})", prediction.unknown_operations.size())) + "\n";
  constexpr std::size_t kMaxShownUnknownOperations = 20;
  for (std::size_t index = 0; index < std::min(kMaxShownUnknownOperations, prediction.unknown_operations.size());
       ++index) {
    const predict::UnknownOperation& unknown_operation = prediction.unknown_operations[index];
    const std::string layer_text = unknown_operation.layer.empty() ? "" : " in " + printable(unknown_operation.layer);
    out += wrap_text(
        "   ",
        fmt::format("{}{}: {}; {}", printable(unknown_operation.source), layer_text,
                    printable(unknown_operation.reason),
                    unknown_operation.has_lower_bound ? "counted as a copy of its tensors" : "not in the total"),
        style.columns);
  }
  if (prediction.unknown_operations.size() > kMaxShownUnknownOperations)
    out += fmt::format("   and {} more\n", prediction.unknown_operations.size() - kMaxShownUnknownOperations);
  return out;
}

std::string energy_cost_text(double energy_j, const predict::EnergyTariff& tariff) {
  const predict::Footprint footprint = compute_footprint(energy_j, tariff);
  std::string out = si_prefixed_text(1000 * footprint.co2_kg) + "g CO2";
  if (footprint.price) out += fmt::format(", cost {}", format_number(*footprint.price, 3));
  return out;
}

std::string tariff_text(const predict::EnergyTariff& tariff) {
  std::string out = fmt::format("At {} g/kWh", format_number(tariff.grid_intensity_gco2_per_kwh(), 3));
  if (!tariff.grid_gco2_kwh) out += ", about the world average (set --gco2-per-kwh)";
  if (tariff.price_kwh) out += fmt::format(", {} per kWh", format_number(*tariff.price_kwh, 3));
  out += tariff.pue > 1 ? fmt::format(", PUE {}", format_number(tariff.pue, 3))
                        : ", without data-center overhead (set --pue)";
  return out + ".";
}

std::string footprint_text(const PredictionReport& report, const TextStyle& style) {
  const Prediction& prediction = report.prediction;
  std::string out = fmt::format("\n {}: {}\n", prediction.training ? "A step" : "A pass",
                                energy_cost_text(prediction.energy_j, report.tariff));
  if (const std::optional<predict::LifetimeEnergy>& life = report.lifetime) {
    std::string usage_text;
    if (life->steps > 0) usage_text += fmt::format("{} training steps", life->steps);
    if (life->inferences > 0)
      usage_text += fmt::format("{}{} passes", usage_text.empty() ? "" : " and ", life->inferences);
    const std::string energy = life->high_j ? interval_text(life->energy_j, life->low_j, *life->high_j)
                                            : "at least " + energy_text(life->energy_j);
    out +=
        wrap_text(" ", fmt::format("{}: {}, {}", usage_text, energy, energy_cost_text(life->energy_j, report.tariff)),
                  style.columns);
  }
  return out + wrap_text(" ", tariff_text(report.tariff), style.columns);
}

}  // namespace

std::string prediction_text(const PredictionReport& report, std::size_t top, const TextStyle& style) {
  const Prediction& prediction = report.prediction;
  std::string out = prediction_title(report, style) + prediction_headline(report) +
                    layer_table_text(prediction, top, style) + unknown_operations_text(prediction, style) +
                    footprint_text(report, style);
  if (!prediction.notes.empty()) out += "\n";
  for (const std::string& note : prediction.notes) out += wrap_text(" note: ", printable(note), style.columns);
  const std::string notes = diagnostics_text(report.diagnostics);
  if (!notes.empty()) out += "\n" + notes;
  return out + prediction_explanation_text(report, style) + "\n";
}

}  // namespace joulemap::report
