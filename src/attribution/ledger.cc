// SPDX-License-Identifier: Apache-2.0
#include "attribution/ledger.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::array<std::pair<std::string_view, Level>, 10> kLevels = {{{"domain", Level::domain},
                                                                         {"phase", Level::phase},
                                                                         {"layer", Level::layer},
                                                                         {"op", Level::op},
                                                                         {"tensor", Level::tensor},
                                                                         {"function", Level::function},
                                                                         {"region", Level::region},
                                                                         {"kernel", Level::kernel},
                                                                         {"step", Level::step},
                                                                         {"epoch", Level::epoch}}};

constexpr std::string_view kCpu = "cpu";
constexpr double kLeastTime_s = 1e-9;  // as times are told; less is what adding up left over
// Where a program is in no phase, module or region; of use only to tell what functions it is in there.
constexpr std::string_view kOutside = "outside";
constexpr std::string_view kByCpuTime = "cpu-time";

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

double share_inside(const Activity& activity, TimeSpan span) {
  const std::int64_t from_ns = std::max(activity.begin_ns, span.begin_ns);
  const std::int64_t to_ns = std::min(activity.end_ns, span.end_ns);
  return to_ns > from_ns ? seconds(to_ns - from_ns) / seconds(activity.end_ns - activity.begin_ns) : 0;
}

}  // namespace

std::optional<Level> level_named(std::string_view name) {
  for (const auto& [text, level] : kLevels) {
    if (text == name) return level;
  }
  return std::nullopt;
}

std::string_view name_of(Level level) { return kLevels[static_cast<std::size_t>(level)].first; }

// In each cell: how long anything ran (as far as CPU time tells), and what a CPU second of that is worth.
Ledger::Ledger(Level level, const MachineEnergy& energy, ActivitySums& sums)
    : level_(level), energy_(energy), sums_(sums), gpu_shares_(energy, sums) {
  const TimeCurve& captured_s = sums.captured_cpu_s();
  const TimeSpan span = captured_s.span();
  joules_per_cpu_s_ = background_s_ = TimeCurve(span, captured_s.size());
  const double uncaptured_s = std::max(energy.command_cpu_s.value_or(0) - captured_s.total(), 0.0);
  const double own_s = uncaptured_s / static_cast<double>(captured_s.size());
  for (std::size_t cell = 0; cell < captured_s.size(); ++cell) {
    const double machine_s = energy.machine_cpu_s ? (*energy.machine_cpu_s)[cell] : 0;
    const double command_s = captured_s[cell] + own_s;
    const double all_s = std::max(machine_s, command_s);
    const double joules = energy.cpu_j ? (*energy.cpu_j)[cell] : 0;
    const double active = std::min(all_s / captured_s.cell_s(), 1.0);
    // Nobody knows whether a machine was idle while a trace of another tool is silent.
    if (energy.tells_idle) cpu_idle_j_ += joules * (1 - active);
    background_s_.set(cell, all_s - command_s);
    if (all_s > 0) joules_per_cpu_s_.set(cell, joules * active / all_s * captured_s.cell_s());
  }
  joules_per_cpu_s_.finish();
}

std::vector<std::string> Ledger::path_at_level(const PlaceMeaning& meaning) const {
  if (meaning.probes()) return {std::string(kProbeMode)};  // no part of the run's layers
  if (level_ == Level::phase) return meaning.phase_path();
  if (level_ == Level::region) return meaning.regions;
  std::vector<std::string> path = meaning.layer_path();
  if (path.empty() && level_ == Level::function) path = {std::string(kOutside)};
  return path;
}

// What a layer's energy is shared out among.
std::string Ledger::part_at_level(const PlaceMeaning& meaning) const {
  if (meaning.probes()) return {};
  if (level_ == Level::op) return meaning.op;
  if (level_ == Level::tensor) return meaning.op_with_tensors();
  if (level_ != Level::function) return {};
  return meaning.function.empty() ? meaning.op : meaning.function;
}

void Ledger::credit(std::vector<std::string> path, const std::string& device, const Amount& amount,
                    const PlaceMeaning& meaning, std::string_view basis, bool has_energy) {
  Entry& entry = entries_[{std::move(path), device}];
  entry.basis = basis;
  entry.has_energy = entry.has_energy || has_energy;
  const auto grow = [&](Amount& sum, bool entered) {
    if (entered) sum.count += amount.count;
    if (entered) sum.sampled += amount.sampled;
    sum.time_s += amount.time_s;
    sum.energy_j += amount.energy_j;
    sum.by_class.add(amount.by_class);
  };
  // Entering an operation or a function is no entering of its layer. A kernel is one of its layer's all the same.
  grow(entry.sum, (meaning.op.empty() && meaning.function.empty()) || device != kCpu);
  if (const std::string part = part_at_level(meaning); !part.empty()) grow(entry.parts[part], true);
}

void Ledger::add_place(std::uint32_t process, const PlaceTally& tally, double joules_per_cpu_s) {
  const PlaceMeaning& meaning = sums_.names(process).places.meaning(tally.place);
  std::vector<std::string> path = path_at_level(meaning);
  if (path.empty()) return;
  const double energy_j = seconds(tally.cpu_ns + tally.helpers_ns) * joules_per_cpu_s;
  credit(std::move(path), std::string(kCpu), {tally.count, tally.sampled, seconds(tally.wall_ns), energy_j}, meaning,
         kByCpuTime, energy_.cpu_j.has_value());
}

void Ledger::add_kernel(std::uint32_t process, const KernelTally& tally, double rate, const std::string& device) {
  ProcessNames& names = sums_.names(process);
  const PlaceMeaning& meaning = names.places.meaning(tally.place);
  const double scale = names.kernel_scale(meaning.probes());
  const double time_s = seconds(tally.time_ns) * scale;
  const auto count = static_cast<std::uint64_t>(std::llround(static_cast<double>(tally.count) * scale));
  const auto gpu = energy_.gpus.find(device);
  const bool has_energy = gpu != energy_.gpus.end();
  const std::string shown = has_energy ? gpu->second.domain : device;
  std::vector<std::string> path;
  if (level_ == Level::kernel && !meaning.probes()) {
    const auto known = names.classes.find(tally.class_id);
    path = {known == names.classes.end() ? "unknown kernel" : known->second.name};
  } else {
    path = path_at_level(meaning);
  }
  const GpuShares::Weight weight = gpu_shares_.weight(device, process, tally.class_id);
  Amount amount{count, 0, time_s, time_s * rate * weight.weight};
  if (weight.known) {
    amount.by_class.add(weight.column, amount.energy_j);
    gpu_shares_.note(shown, amount.by_class);
  }
  if (path.empty()) return;
  credit(std::move(path), shown, amount, meaning, kByTimeShare, has_energy);
}

void Ledger::add(std::uint32_t process, const Activity& activity) {
  // What ran before the command's time or after it has no part in the command's energy.
  const double inside = share_inside(activity, joules_per_cpu_s_.span());
  const double joules_per_cpu_s = inside * joules_per_cpu_s_.mean_rate(activity.begin_ns, activity.end_ns);
  if (level_ != Level::kernel) {
    for (const PlaceTally& tally : activity.place_tallies) add_place(process, tally, joules_per_cpu_s);
  }
  PlacePaths& places = sums_.names(process).places;
  for (const PlaceShare& share : activity.shares) {
    const std::vector<std::string> coarse = path_at_level(places.meaning(share.coarse));
    const PlaceMeaning& fine = places.meaning(share.place);
    std::vector<std::string> path = path_at_level(fine);
    if (const std::string part = part_at_level(fine); !part.empty()) path.push_back(part);
    const bool is_function = !fine.function.empty();
    Amount& sum = (is_function ? function_shares_ : shares_)[coarse][std::move(path)];
    // How often a function was seen, or how many operations a layer has, is not how often it was called.
    if (!is_function && !part_at_level(fine).empty()) sum.count += share.count;
    sum.time_s += seconds(share.time_ns);
  }
  std::map<std::uint32_t, std::pair<std::string, double>> queues;
  for (const KernelTally& tally : activity.kernel_tallies) {
    const auto [known, is_new] = queues.try_emplace(tally.queue);
    auto& [device, rate] = known->second;
    if (is_new) {
      device = sums_.names(process).device_of(tally.queue);
      rate = inside * gpu_shares_.rate(device, activity.begin_ns, activity.end_ns);
    }
    add_kernel(process, tally, rate, device);
  }
}

void Ledger::share_out_place(const std::vector<std::string>& coarse, const Parts& parts) {
  double told_s = 0;
  for (const auto& [path, amount] : parts) told_s += amount.time_s;
  if (told_s <= 0) return;
  std::vector<Key> keys;
  for (const auto& [key, entry] : entries_) {
    if (key.first == coarse && !entry.is_part) keys.push_back(key);
  }
  for (const Key& key : keys) {
    const Entry whole = entries_.extract(key).mapped();
    for (const auto& [path, amount] : parts) {
      const double share = amount.time_s / told_s;
      const double calls = static_cast<double>(amount.count) * whole.sum.time_s / told_s;
      Amount part{static_cast<std::uint64_t>(std::llround(calls)), 0, whole.sum.time_s * share,
                  whole.sum.energy_j * share};
      part.by_class.add(whole.sum.by_class, share);
      const std::vector<std::string>& fine = path.empty() ? coarse : path;
      credit(fine, key.second, part, {}, whole.basis, whole.has_energy);
      entries_[{fine, key.second}].is_part = true;
    }
  }
}

// Where operations were told, they say more than the functions somebody saw the program in now and then.
void Ledger::share_out_places() {
  for (const auto& [coarse, parts] : shares_) share_out_place(coarse, parts);
  if (level_ != Level::function) return;
  for (const auto& [coarse, parts] : function_shares_) share_out_place(coarse, parts);
}

// Every call was told: an operation has its own time, and what the layer did besides stays the layer's.
void Ledger::split_off_parts() {
  std::map<Key, Entry> told;
  for (auto& [key, entry] : entries_) {
    Entry rest = std::move(entry);
    for (const auto& [part, amount] : rest.parts) {
      Key fine = key;
      fine.first.push_back(part);
      told[fine] = {amount, rest.basis, rest.has_energy, {}, true};
      rest.sum.time_s -= amount.time_s;
      rest.sum.energy_j -= amount.energy_j;
      if (key.second != kCpu) rest.sum.count -= amount.count;  // of kernels: each is of one operation
    }
    if (rest.parts.empty() || rest.sum.time_s > kLeastTime_s) told.emplace(key, std::move(rest));
  }
  entries_ = std::move(told);
}

// A layer's time and energy, in all its steps, go to its operations as they share its time in the sampled ones.
void Ledger::share_out_parts() {
  if (!energy_.samples_calls) return split_off_parts();
  std::map<Key, Entry> told;
  for (auto& [key, entry] : entries_) {
    double sampled_s = 0;
    double sampled_j = 0;
    for (const auto& [part, amount] : entry.parts) {
      sampled_s += amount.time_s;
      if (key.second != kCpu) sampled_j += amount.energy_j;
    }
    if (sampled_s <= 0) {
      told.emplace(key, std::move(entry));
      continue;
    }
    for (const auto& [part, amount] : entry.parts) {
      const double share = amount.time_s / sampled_s;
      // Calls are counted exactly in sampled steps; all steps have as many more as the layer was entered more often.
      const double steps = entry.sum.sampled > 0
                               ? static_cast<double>(entry.sum.count) / static_cast<double>(entry.sum.sampled)
                               : entry.sum.time_s / sampled_s;
      Key fine = key;
      fine.first.push_back(part);
      Entry& row = told[fine];
      row.basis = entry.basis;
      row.has_energy = entry.has_energy;
      row.is_part = true;
      row.sum = {static_cast<std::uint64_t>(std::llround(static_cast<double>(amount.count) * steps)), 0,
                 entry.sum.time_s * share, entry.sum.energy_j * share};
      // On a GPU it is known what each of them drew, not only how long it took.
      if (sampled_j > 0) row.sum.energy_j = entry.sum.energy_j * amount.energy_j / sampled_j;
      if (sampled_j > 0) row.sum.by_class.add(amount.by_class, entry.sum.energy_j / sampled_j);
    }
  }
  entries_ = std::move(told);
}

// The same function, wherever it was called from. Of a layer that no sampled step told more about there is none.
void Ledger::gather_functions() {
  std::map<Key, Entry> functions;
  for (auto& [key, entry] : entries_) {
    if (!entry.is_part && key.first.front() != kProbeMode) continue;
    Entry& sum = functions[{{key.first.back()}, key.second}];
    sum.basis = entry.basis;
    sum.has_energy = entry.has_energy;
    sum.sum.count += entry.sum.count;
    sum.sum.time_s += entry.sum.time_s;
    sum.sum.energy_j += entry.sum.energy_j;
    sum.sum.by_class.add(entry.sum.by_class);
  }
  entries_ = std::move(functions);
}

void Ledger::add_background() {
  if (level_ == Level::kernel) return;
  double energy_j = 0;
  double time_s = 0;
  for (std::size_t cell = 0; cell < background_s_.size(); ++cell) {
    energy_j += background_s_[cell] * joules_per_cpu_s_[cell] / background_s_.cell_s();
    time_s += background_s_[cell];
  }
  if (time_s <= 0) return;
  credit({"background"}, std::string(kCpu), {0, 0, time_s, energy_j}, {}, kByCpuTime, energy_.cpu_j.has_value());
}

ReportRow Ledger::row_of(const Key& key, const Entry& entry) const {
  ReportRow row;
  row.path = key.first;
  row.name = row.path.back();
  row.display_name = level_ == Level::kernel ? demangled(row.name) : row.name;
  row.device = key.second;
  row.count = entry.sum.count;
  row.time_s = entry.sum.time_s;
  row.basis = entry.basis;
  if (!entry.has_energy) return row;
  row.energy_j = entry.sum.energy_j;
  if (row.time_s > 0) row.power_w = entry.sum.energy_j / row.time_s;
  if (row.basis == kByTimeShare) gpu_shares_.describe(row, entry.sum.by_class);
  return row;
}

// What is nobody's, and each row's share of what is somebody's. Nothing where no energy is known.
void Ledger::balance(LedgerResult& result) const {
  double measured_j = energy_.cpu_j ? energy_.cpu_j->total() : 0;
  std::map<std::string, double> gpus;  // each is there under two names
  for (const auto& [device, gpu] : energy_.gpus) gpus[gpu.domain] = gpu.energy_j.total();
  for (const auto& [domain, joules] : gpus) measured_j += joules;
  if (!energy_.cpu_j && gpus.empty()) return;
  double attributed_j = 0;
  for (const ReportRow& row : result.rows) attributed_j += row.energy_j.value_or(0);
  const bool only_gpus = level_ == Level::kernel;
  result.attributed_j = attributed_j;
  result.idle_j = (only_gpus ? 0 : cpu_idle_j_) + gpu_shares_.idle_j();
  result.unattributed_j = measured_j - attributed_j - *result.idle_j;
  for (ReportRow& row : result.rows) {
    if (row.energy_j && attributed_j > 0) row.share = *row.energy_j / attributed_j;
  }
}

LedgerResult Ledger::finish() {
  if (level_ == Level::op || level_ == Level::tensor || level_ == Level::function) share_out_parts();
  share_out_places();
  if (level_ == Level::function) gather_functions();
  add_background();
  LedgerResult result;
  for (const auto& [key, entry] : entries_) result.rows.push_back(row_of(key, entry));
  std::sort(result.rows.begin(), result.rows.end(), [](const ReportRow& a, const ReportRow& b) {
    return std::pair(a.energy_j.value_or(0), a.time_s) > std::pair(b.energy_j.value_or(0), b.time_s);
  });
  for (const auto& [device, busy_s] : sums_.gpu_busy_s()) {
    if (energy_.gpus.contains(device)) continue;
    result.diagnostics.add({"gpu_not_measured", 1, "kernels ran on " + device + ", whose energy was not recorded",
                            "joulemap doctor tells why"});
  }
  gpu_shares_.diagnose(result.diagnostics);
  balance(result);
  return result;
}

}  // namespace joulemap::attribution
