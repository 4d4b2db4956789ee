// SPDX-License-Identifier: Apache-2.0
#include "report/text/run_summary_sentences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "model/background_row.h"
#include "report/text/command_energy.h"
#include "report/text/costliest_layers.h"
#include "report/text/energy_rows.h"
#include "report/text/energy_text.h"
#include "report/text/idle_gpu_text.h"
#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

constexpr std::size_t kMaxGpuSentences = 2;  // maximum number of GPUs with sentences of their own
constexpr std::size_t kMaxSummarizedLayers = 3;

// ": 50 steps of 12.0 J each", without other processes and probing; empty if there are no steps.
std::string energy_of_steps_text(const RunView& view) {
  const RunRates rates = command_rates(view);
  if (!rates.energy_j || rates.steps.value_or(0) <= 1) return {};
  return fmt::format(": {:.0f} steps of {} each{}", *rates.steps, energy_text(*rates.energy_per_unit(rates.steps)),
                     rates.evaluation_steps ? " with evaluation" : "");
}

std::string total_energy_sentence(const RunView& view) {
  const std::optional<EnergyWithProvenance> total = preferred_energy(view.run.totals);
  const std::string time = duration_text(view.run.elapsed_s);
  if (!total) return fmt::format("This run took {}; its energy is unknown.", time);
  std::string line = fmt::format("This run used {}", energy_text(total->joules));
  if (total->uncertainty_j)
    line += fmt::format(" ± {} ({:.0f} % interval)", energy_text(*total->uncertainty_j), 100 * view.run.interval);
  line += fmt::format(", {}, in {}", to_string(total->provenance), time);
  return line + (noticeable_background_j(view) > 0 ? "" : energy_of_steps_text(view)) + ".";
}

std::string probing_sentence(const RunView& view) {
  const std::optional<EnergyWithProvenance> total = preferred_energy(view.run.totals);
  if (!total || total->joules <= 0 || !view.run.probe || !view.run.probe->energy_j) return {};
  return fmt::format(
      "Probing used {} of it ({:.0f} %): modules were replayed after the run to measure their power. Energy per step "
      "does not include it.",
      energy_text(*view.run.probe->energy_j), 100 * *view.run.probe->energy_j / total->joules);
}

// What the program itself used, where other processes used a noticeable part.
std::string program_sentence(const RunView& view) {
  const double background_j = noticeable_background_j(view);
  const std::optional<EnergyWithProvenance> total = preferred_energy(view.run.totals);
  if (background_j <= 0 || !total) return {};
  return fmt::format("The command itself used {} of it{}; the rest went to other processes and idle parts.",
                     energy_text(std::max(total->joules - background_j, 0.0)), energy_of_steps_text(view));
}

// Whether the row has energy and belongs to the measured program: neither other processes nor probing.
bool is_program_row(const ReportRow& row) {
  return !row.path.empty() && !is_background_row(row) && row.path[0] != "probe" && row.energy_j.value_or(0) > 0;
}

// All energy of the level but that of other processes.
double program_energy_j(const LevelView& level) {
  return level.attributed_j.value_or(0) + level.idle_j.value_or(0) + level.unattributed_j.value_or(0) -
         background_energy_j(level.rows);
}

// "3.83 kJ (22.3 %)".
std::string energy_share_text(double joules, const LevelView& level) {
  const double total_energy_j = program_energy_j(level);
  return energy_text(joules) + (total_energy_j > 0 ? fmt::format(" ({:.1f} %)", 100 * joules / total_energy_j) : "");
}

std::string costliest_phase_sentence(const RunView& view) {
  const LevelView* const phases = view.level("phase");
  const ReportRow* costliest_row = nullptr;
  if (phases == nullptr) return {};
  for (const ReportRow& row : phases->rows) {
    if (is_program_row(row) && (costliest_row == nullptr || *row.energy_j > *costliest_row->energy_j))
      costliest_row = &row;
  }
  if (costliest_row == nullptr) return {};
  return fmt::format("The costliest phase is {} on {} with {} of the command's energy.",
                     fmt::join(costliest_row->path, " "), costliest_row->device,
                     energy_share_text(*costliest_row->energy_j, *phases));
}

std::string costliest_layers_sentence(const RunView& view) {
  const LevelView* const layers = view.level("layer");
  const LevelView* const modules = view.level("module");
  if (layers == nullptr || modules == nullptr) return {};
  std::vector<std::string> parts;
  for (const LayerCost& layer : costliest_layers(layers->rows, modules->rows, LayerCostUnit::joules)) {
    if (parts.size() == kMaxSummarizedLayers || layer.cost_j_or_s <= 0) break;
    parts.push_back(fmt::format("{} with {}", layer.name, energy_share_text(layer.cost_j_or_s, *layers)));
  }
  if (parts.empty()) return {};
  return fmt::format("Costliest layers, all passes together: {}.", fmt::join(parts, ", "));
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
  const std::size_t omitted_gpu_count = shares.size() > kMaxGpuSentences ? shares.size() - kMaxGpuSentences : 0;
  if (omitted_gpu_count > 0) {
    std::ranges::stable_sort(shares, std::greater<>(), &DeviceIdleShare::idle_share);
    shares.resize(kMaxGpuSentences);
  }
  for (const DeviceIdleShare& share : shares) {
    sentences.push_back(fmt::format("Work on {} used {:.0f} % of its energy.", share.device,
                                    100 * std::clamp(1 - share.idle_share, 0.0, 1.0)));
    sentences.push_back(idle_gpu_sentence(share));
  }
  if (omitted_gpu_count > 0)
    sentences.push_back(
        fmt::format("{} other GPU{} waited less.", omitted_gpu_count, omitted_gpu_count == 1 ? "" : "s"));
}

}  // namespace

std::vector<std::string> run_summary_sentences(const RunView& view) {
  std::vector<std::string> sentences = {total_energy_sentence(view), program_sentence(view), probing_sentence(view)};
  add_gpu_sentences(view, sentences);
  sentences.push_back(costliest_phase_sentence(view));
  sentences.push_back(costliest_layers_sentence(view));
  std::erase(sentences, std::string());
  return sentences;
}

}  // namespace joulemap::report
