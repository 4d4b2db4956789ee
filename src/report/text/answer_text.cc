// SPDX-License-Identifier: Apache-2.0
#include "report/text/answer_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>

#include "report/text/energy_rows.h"
#include "report/text/energy_text.h"
#include "report/text/text_style.h"
#include "report/text/waiting_text.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxGpuSentences = 2;  // maximum number of GPUs with sentences of their own

std::string total_sentence(const RunView& view) {
  const std::optional<EnergyWithProvenance> total = preferred_energy(view.run.totals);
  const std::string time = duration_text(view.run.elapsed_s);
  if (!total) return fmt::format("This run took {}; its energy is unknown.", time);
  std::string line = fmt::format("This run used {}", energy_text(total->joules));
  if (total->uncertainty_j)
    line += fmt::format(" ± {} ({:.0f} % interval)", energy_text(*total->uncertainty_j), 100 * view.run.interval);
  line += fmt::format(", {}, in {}", to_string(total->provenance), time);
  const std::optional<double> each_j = view.rates.energy_per_unit(view.rates.steps);
  if (each_j && view.rates.steps.value_or(0) > 1)
    line += fmt::format(": {:.0f} steps of {} each", *view.rates.steps, energy_text(*each_j));
  return line + ".";
}

std::string probing_sentence(const RunView& view) {
  const std::optional<EnergyWithProvenance> total = preferred_energy(view.run.totals);
  if (!total || total->joules <= 0 || !view.run.probe || !view.run.probe->energy_j) return {};
  return fmt::format(
      "Probing used {} of it ({:.0f} %): modules were replayed after the run to measure their power. Energy per step "
      "does not include it.",
      energy_text(*view.run.probe->energy_j), 100 * *view.run.probe->energy_j / total->joules);
}

// False for rows of the optimizer, which is a phase: at the level of layers, its rows have the name of the optimizer.
bool is_layer_row(const ReportRow& row) { return row.path.size() < 2 || row.path[1] != "optimizer"; }

// Whether the row has energy and belongs to the measured program: neither other processes nor probing.
bool is_program_row(const ReportRow& row) {
  return !row.path.empty() && row.path[0] != "background" && row.path[0] != "probe" && row.energy_j.value_or(0) > 0;
}

const ReportRow* find_costliest_row(const LevelView* level, const std::set<std::vector<std::string>>& excluded_paths) {
  const ReportRow* most = nullptr;
  if (level == nullptr) return most;
  for (const ReportRow& row : level->rows) {
    if (!is_program_row(row) || excluded_paths.contains(row.path)) continue;
    if (level->by == "layer" && !is_layer_row(row)) continue;
    if (most == nullptr || *row.energy_j > *most->energy_j) most = &row;
  }
  return most;
}

// Energy of a row: "3.83 kJ (22.3 % of all energy)".
std::string row_energy_text(const ReportRow& row, const LevelView& level) {
  const double all_j = level.attributed_j.value_or(0) + level.idle_j.value_or(0) + level.unattributed_j.value_or(0);
  std::string text = energy_text(*row.energy_j);
  if (all_j > 0) text += fmt::format(" ({:.1f} % of all energy)", 100 * *row.energy_j / all_j);
  return text;
}

std::string costliest_sentence(const RunView& view) {
  const LevelView* const phases = view.level("phase");
  const LevelView* const layers = view.level("layer");
  std::set<std::vector<std::string>> phase_paths;
  if (phases != nullptr) {
    for (const ReportRow& row : phases->rows) phase_paths.insert(row.path);
  }
  std::string line;
  if (const ReportRow* phase = find_costliest_row(phases, {}))
    line = fmt::format("The costliest phase is {} on {} with {}", fmt::join(phase->path, " "), phase->device,
                       row_energy_text(*phase, *phases));
  if (const ReportRow* layer = find_costliest_row(layers, phase_paths))
    line += fmt::format("{} layer is {} on {} with {}", line.empty() ? "The costliest" : ", the costliest",
                        fmt::join(layer->path, " "), layer->device, row_energy_text(*layer, *layers));
  return line.empty() ? line : line + ".";
}

// The first level with idle energy by cause, which is the same in every level; null if there is none.
const LevelView* find_level_with_idle(const RunView& view) {
  for (const LevelView& level : view.levels) {
    if (!level.idle.empty()) return &level;
  }
  return nullptr;
}

// Adds sentences on what GPUs used their energy for. Of more than kMaxGpuSentences, describes those with the most idle
// energy.
void add_gpu_sentences(const RunView& view, std::vector<std::string>& sentences) {
  const LevelView* const level = find_level_with_idle(view);
  if (level == nullptr) return;
  std::vector<DeviceIdleShare> shares = device_idle_shares(level->idle, view.run.domains);
  const std::size_t others = shares.size() > kMaxGpuSentences ? shares.size() - kMaxGpuSentences : 0;
  if (others > 0) {
    std::ranges::stable_sort(shares, std::greater<>(), &DeviceIdleShare::idle_share);
    shares.resize(kMaxGpuSentences);
  }
  for (const DeviceIdleShare& share : shares) {
    sentences.push_back(fmt::format("Work on {} used {:.0f} % of its energy.", share.device,
                                    100 * std::clamp(1 - share.idle_share, 0.0, 1.0)));
    sentences.push_back(waiting_sentence(share));
  }
  if (others > 0) sentences.push_back(fmt::format("{} other GPU{} waited less.", others, others == 1 ? "" : "s"));
}

}  // namespace

std::vector<std::string> answer_sentences(const RunView& view) {
  std::vector<std::string> sentences = {total_sentence(view), probing_sentence(view)};
  add_gpu_sentences(view, sentences);
  sentences.push_back(costliest_sentence(view));
  std::erase(sentences, std::string());
  return sentences;
}

}  // namespace joulemap::report
