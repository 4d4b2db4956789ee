// SPDX-License-Identifier: Apache-2.0
//
// A machine with four CPUs whose layers use different powers, simulated in steps of a millisecond: their true energy is
// known.
#include "attribution/cpu/cpu_attribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "attribution/ledger/ledger.h"
#include "base/clock.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kTick_ns = kNanosecondsPerMillisecond;
constexpr double kTick_s = 1e-3;
constexpr std::uint32_t kProcess = 1;
constexpr double kCpuCount = 4;
constexpr double kIdle_w = 21;
constexpr double kBusy_w = 90;  // power of all CPUs together, above idle

struct SimulatedLayer {
  double cpus = 1;
  double factor = 1;  // power of a busy CPU relative to the usual
  double typical_length_ms = 10;
  double true_j = 0;
};

struct CpuScenario {
  std::vector<SimulatedLayer> layers;
  double neighbour_factor = 1;
  bool has_neighbour = true;
  double pause_ms = 0;  // after each step
  double seconds = 40;
};

// What a recording of the scene contains, and the true energies.
class SimulatedCpu {
 public:
  SimulatedCpu(CpuScenario scenario, std::uint64_t seed) : scenario_(std::move(scenario)), random_(seed) {
    span_ = {0, static_cast<std::int64_t>(scenario_.seconds * 1e9)};
    Activity names;
    names.begin_ns = 0, names.end_ns = 1;
    names.scopes = {{1, 0, ScopeKind::mode, "train"}, {2, 1, ScopeKind::phase, "forward"}};
    for (std::uint32_t i = 0; i < scenario_.layers.size(); ++i) {
      names.scopes.push_back({3 + i, 2, ScopeKind::module, "layer" + std::to_string(i)});
    }
    activities_.push_back(names);
    readings_.push_back({0, 0});
    machine_.push_back({0, 0});
    run();
  }

  LedgerResult attribute_energy(bool regress, bool is_estimated = false, double gain_spread = 0.01) {
    ActivitySums sums(span_);
    CpuWorkCollector work(span_);
    for (const Activity& activity : activities_) sums.add(kProcess, activity), work.add(kProcess, activity);
    sums.finish();
    CpuAttributionInputs cpu_inputs{.cpu_use = work.finish(sums)};
    cpu_inputs.other_cpu_s = other_cpu_curve(machine_, sums.captured_cpu_s(), kCpuCount);
    const std::vector<std::vector<EnergyPoint>> domains = {readings_};
    std::optional<CpuPowers> fitted_powers;
    if (regress) fitted_powers = fit_cpu_powers(cpu_inputs.cpu_use, {machine_, kCpuCount}, domains);
    cpu_inputs.powers = fitted_powers ? *fitted_powers : make_equal_cpu_powers(cpu_inputs.cpu_use.column_count);
    cpu_inputs.is_estimated = is_estimated;
    cpu_inputs.cpu_count = kCpuCount;
    for (const EnergyPoint& energy_reading : readings_)
      cpu_inputs.counter_reading_times_ns.push_back(energy_reading.time_ns);
    draw_gain_replicates(cpu_inputs.powers, gain_spread);
    MachineEnergy energy;
    energy.cpu_energy_j.emplace(span_, cell_count_for_span(span_));
    for (std::size_t i = 1; i < readings_.size(); ++i) {
      energy.cpu_energy_j->add(readings_[i - 1].time_ns, readings_[i].time_ns,
                               readings_[i].joules - readings_[i - 1].joules);
    }
    energy.cpu_energy_j->finish();
    measured_j_ = energy.cpu_energy_j->total();
    energy.cpu_inputs = std::move(cpu_inputs);
    Ledger ledger(RowLevel::layer, energy, sums);
    for (const Activity& activity : activities_) ledger.add(kProcess, activity);
    return ledger.finish();
  }

  const std::vector<SimulatedLayer>& layers() const { return scenario_.layers; }
  double true_background_j() const { return true_background_j_; }
  double idle_j() const { return idle_j_; }
  double measured_j() const { return measured_j_; }

 private:
  double uniform(double min_value, double max_value) {
    return std::uniform_real_distribution<double>(min_value, max_value)(random_);
  }

  void run() {
    std::int64_t remaining_ms = 0;
    std::size_t layer_index = scenario_.layers.size();  // index of the current layer; this value: paused
    std::int64_t neighbour_ms = 0;
    bool neighbour = false;
    const auto ticks = static_cast<std::int64_t>(scenario_.seconds * 1000);
    for (std::int64_t tick = 0; tick < ticks; ++tick) {
      while (remaining_ms <= 0) {
        layer_index = (layer_index + 1) % (scenario_.layers.size() + 1);
        const bool is_pause = layer_index == scenario_.layers.size();
        const double typical_length_ms =
            is_pause ? scenario_.pause_ms : scenario_.layers[layer_index].typical_length_ms;
        remaining_ms = std::llround(uniform(0.7, 1.3) * typical_length_ms);
      }
      if (--neighbour_ms <= 0) {
        neighbour = scenario_.has_neighbour && !neighbour;
        neighbour_ms = std::llround(uniform(300, 3000));
      }
      --remaining_ms;
      simulate_tick(tick, layer_index, neighbour);
    }
  }

  void simulate_tick(std::int64_t tick, std::size_t layer_index, bool neighbour) {
    SimulatedLayer no_layer{0, 0, 0, 0};
    SimulatedLayer& layer = layer_index < scenario_.layers.size() ? scenario_.layers[layer_index] : no_layer;
    const double neighbour_cpus = neighbour ? 1 : 0;
    const double total_cpus = layer.cpus + neighbour_cpus;
    const double mean_power_factor =
        total_cpus > 0 ? (layer.cpus * layer.factor + neighbour_cpus * scenario_.neighbour_factor) / total_cpus : 0;
    noise_ = 0.8 * noise_ + 0.6 * std::normal_distribution<double>(0, 0.03)(random_);
    const double dynamic_j =
        kBusy_w * std::pow(total_cpus / kCpuCount, 0.8) * mean_power_factor * (1 + noise_) * kTick_s;
    if (total_cpus > 0) {
      const double share = layer.cpus * layer.factor / (total_cpus * mean_power_factor);
      layer.true_j += dynamic_j * share + kIdle_w * kTick_s * layer.cpus / total_cpus;
      true_background_j_ += dynamic_j * (1 - share) + kIdle_w * kTick_s * neighbour_cpus / total_cpus;
    } else {
      idle_j_ += kIdle_w * kTick_s;
    }
    joules_ += dynamic_j + kIdle_w * kTick_s;
    machine_s_ += total_cpus * kTick_s;
    if (layer_index < scenario_.layers.size()) add_time(layer_index, layer.cpus);
    if ((tick + 1) % 10 == 0) finish_activity((tick + 1) * kTick_ns);
    if ((tick + 1) % 50 == 0) {
      readings_.push_back({(tick + 1) * kTick_ns, joules_});
      machine_.push_back({(tick + 1) * kTick_ns, std::floor(machine_s_ * 100) / 100});
    }
  }

  void add_time(std::size_t layer_index, double cpus) {
    const auto scope = static_cast<std::uint32_t>(3 + layer_index);
    auto tally = std::find_if(tallies_.begin(), tallies_.end(), [&](const ScopeTally& t) { return t.scope == scope; });
    if (tally == tallies_.end()) tally = tallies_.insert(tallies_.end(), ScopeTally{.scope = scope, .count = 1});
    tally->wall_ns += kTick_ns;
    tally->cpu_ns += kTick_ns;
    tally->helper_threads_cpu_ns += static_cast<std::int64_t>((cpus - 1) * static_cast<double>(kTick_ns));
  }

  void finish_activity(std::int64_t now_ns) {
    Activity activity;
    activity.begin_ns = now_ns - 10 * kTick_ns;
    activity.end_ns = now_ns;
    activity.scope_tallies = std::exchange(tallies_, {});
    activities_.push_back(std::move(activity));
  }

  CpuScenario scenario_;
  std::mt19937_64 random_;
  TimeSpan span_;
  std::vector<Activity> activities_;
  std::vector<ScopeTally> tallies_;
  std::vector<EnergyPoint> readings_;
  std::vector<CpuTimePoint> machine_;
  double noise_ = 0;
  double joules_ = 0;
  double machine_s_ = 0;
  double true_background_j_ = 0;
  double idle_j_ = 0;
  double measured_j_ = 0;
};

// Layers of 12 to 40 ms, on one CPU or several, whose powers differ by a factor of two and more.
CpuScenario training(std::uint64_t seed) {
  std::mt19937_64 random(seed * 77 + 5);
  const auto uniform = [&](double min_value, double max_value) {
    return std::uniform_real_distribution<double>(min_value, max_value)(random);
  };
  CpuScenario scenario;
  for (const double cpus : {1, 3, 2, 3, 1, 2}) scenario.layers.push_back({cpus, uniform(0.6, 1.5), uniform(12, 40), 0});
  scenario.neighbour_factor = uniform(0.6, 1.5);
  return scenario;
}

const ReportRow* find_row(const LedgerResult& result, const std::string& name) {
  for (const ReportRow& row : result.rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

struct IntervalScore {
  double sum_of_squares = 0;
  std::size_t rows = 0;
  std::size_t held = 0;
  double rms() const { return std::sqrt(sum_of_squares / static_cast<double>(rows)); }
  double coverage() const { return static_cast<double>(held) / static_cast<double>(rows); }

  void add(const ReportRow* row, double true_energy_j) {
    ASSERT_NE(row, nullptr);
    ASSERT_TRUE(row->energy_j && row->low_j && row->high_j);
    sum_of_squares += std::pow(*row->energy_j / true_energy_j - 1, 2);
    held += *row->low_j <= true_energy_j && true_energy_j <= *row->high_j ? 1 : 0;
    ++rows;
  }
};

void expect_energy_is_conserved(const LedgerResult& result, double measured_j) {
  double rows_j = 0;
  for (const ReportRow& row : result.rows) rows_j += row.energy_j.value_or(0);
  EXPECT_NEAR(rows_j, result.attributed_j.value_or(-1), 1e-6 * measured_j);
  EXPECT_NEAR(rows_j + *result.idle_j, measured_j, 1e-3 * measured_j);  // all of the program is in a layer
  EXPECT_NEAR(*result.unattributed_j, 0, 1e-3 * measured_j);
}

TEST(CpuAttribution, EstimatesLayerPowersBesideANoisyCoTenantAndIntervalsCover) {
  IntervalScore regression_score;
  IntervalScore time_split_score;
  IntervalScore background;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulatedCpu machine(training(seed), seed);
    const LedgerResult regressed = machine.attribute_energy(true);
    const LedgerResult time_split_ledger = machine.attribute_energy(false);
    expect_energy_is_conserved(regressed, machine.measured_j());
    expect_energy_is_conserved(time_split_ledger, machine.measured_j());
    for (std::size_t i = 0; i < machine.layers().size(); ++i) {
      const std::string name = "layer" + std::to_string(i);
      regression_score.add(find_row(regressed, name), machine.layers()[i].true_j);
      time_split_score.add(find_row(time_split_ledger, name), machine.layers()[i].true_j);
      EXPECT_EQ(find_row(regressed, name)->basis, "regressed");
      EXPECT_EQ(find_row(time_split_ledger, name)->basis, "cpu-time");
    }
    background.add(find_row(regressed, "background"), machine.true_background_j());
  }
  std::printf(
      "layers: %.1f %% RMS, by CPU time %.1f %%; background %.1f %%; intervals hold %.0f %%, by CPU time %.0f %%\n",
      100 * regression_score.rms(), 100 * time_split_score.rms(), 100 * background.rms(),
      100 * regression_score.coverage(), 100 * time_split_score.coverage());
  EXPECT_LT(regression_score.rms(), 0.08);
  EXPECT_LT(regression_score.rms(), time_split_score.rms() / 2);
  EXPECT_LT(background.rms(), 0.05);
  EXPECT_GE(regression_score.coverage(), 0.80);  // 90 % of 72 rows, with allowance for chance
  EXPECT_GE(time_split_score.coverage(), 0.80);
  EXPECT_GE(background.held, 9u);
}

TEST(CpuAttribution, UnidentifiablePowersAreSplitByCpuTimeWithAWideInterval) {
  CpuScenario scenario;
  scenario.layers = {{1, 0.7, 1, 0}, {1, 1.4, 1, 0}};  // each recorded interval contains equal parts of both
  scenario.has_neighbour = false;
  SimulatedCpu machine(scenario, 7);
  const LedgerResult result = machine.attribute_energy(true);
  for (std::size_t i = 0; i < 2; ++i) {
    const ReportRow* const row = find_row(result, "layer" + std::to_string(i));
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->basis, "cpu-time");
    EXPECT_LE(*row->low_j, machine.layers()[i].true_j);
    EXPECT_GE(*row->high_j, machine.layers()[i].true_j);
  }
}

TEST(CpuAttribution, SeparatesIdlePowerWhenTheMachineIdles) {
  CpuScenario scenario = training(3);
  scenario.pause_ms = 150;
  scenario.has_neighbour = false;
  SimulatedCpu machine(scenario, 3);
  const LedgerResult result = machine.attribute_energy(true);
  expect_energy_is_conserved(result, machine.measured_j());
  EXPECT_NEAR(*result.idle_j, machine.idle_j(), 0.1 * machine.idle_j());
  const ReportRow* const row = find_row(result, "layer1");
  ASSERT_TRUE(row != nullptr && row->dynamic_j);
  EXPECT_LT(*row->dynamic_j, *row->energy_j);
  EXPECT_GT(*row->dynamic_j, 0.5 * *row->energy_j);
}

TEST(CpuAttribution, AnEstimateHasItsProvenanceAndTheUncertaintyOfItsModel) {
  SimulatedCpu machine(training(5), 5);
  const LedgerResult result = machine.attribute_energy(false, true, 0.25);
  for (const ReportRow& row : result.rows) {
    EXPECT_EQ(row.basis, "estimated");
    EXPECT_LT(*row.low_j, 0.75 * *row.energy_j);
    EXPECT_GT(*row.high_j, 1.25 * *row.energy_j);
  }
}

}  // namespace
}  // namespace joulemap::attribution
