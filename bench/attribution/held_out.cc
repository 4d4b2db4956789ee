// SPDX-License-Identifier: Apache-2.0
//
// Tests whether kernel powers estimated from one part of a run predict the counter in another part:
//
//   build/bin/held_out RECORDING FROM TO [BLOCK_S [INTERVAL_S]]      seconds since its command began
//
// The time is split into blocks. Powers are fitted to the GPU's power history in every other block and predict the
// counter's energy, interval by interval, in the blocks between; then vice versa. The counter's own updates are not
// fitted; they scale the level, as in a report. Baselines: two powers, busy and idle ("by_time_j"), and the power that
// the counter showed before the block ("last_power_prediction_j").
// Prints JSON: {"intervals": [{"begin_s", "end_s", "measured_j", "predicted_j", "low_j", "high_j", "by_time_j",
// "last_power_prediction_j"}]}
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <optional>

#include "attribution/analysis/recording_survey.h"
#include "attribution/gpu/gpu_work.h"
#include "attribution/gpu/power_regression.h"
#include "attribution/ledger/clipped_activity.h"
#include "attribution/ledger/recorded_energy.h"
#include "base/clock.h"
#include "recording/recording_parts.h"
#include "statistics/random.h"

namespace {

using namespace joulemap;
using namespace joulemap::attribution;

// Time at the begin of a block in which an averaging gauge still shows part of the previous block.
constexpr std::int64_t kSettlingTime_ns = 60'000'000;

struct BlockPartition {
  TimeSpan span;
  std::int64_t block_ns;
  std::int64_t interval_ns;

  std::int64_t find_block_index(std::int64_t time_ns) const { return (time_ns - span.begin_ns) / block_ns; }
  bool is_after_settling(std::int64_t time_ns) const {
    return (time_ns - span.begin_ns) % block_ns >= kSettlingTime_ns;
  }
};

// Collects the samples of one recorder, and what ran on its machine.
class SampleCollector final : public recording::RecordingVisitor {
 public:
  SampleCollector(const std::vector<SurveyedSource>& sources, std::uint32_t recorder)
      : sources_(sources),
        recorder_(recorder),
        span_(*sources[recorder].command_span()),
        recorded_energy_(sources[recorder].channels, span_, 1),
        sums_(span_),
        gpu_work_(span_) {}

  void on_samples(std::uint32_t source, std::span<const Sample> samples) override {
    if (source != recorder_) return;
    for (Sample sample : samples) {
      sample.channel -= sources_[source].first_channel;
      recorded_energy_.add(sample);
    }
  }
  void on_activity(std::uint32_t source, const Activity& activity) override {
    if (sources_[source].source.boot_id != sources_[recorder_].source.boot_id) return;
    const Activity clipped_activity = clip_activity(activity, span_);
    sums_.add(source, clipped_activity);
    gpu_work_.add(source, clipped_activity, sums_.process_activity(source).scopes);
  }
  RecordedEnergy::Result energy() { return recorded_energy_.finish(); }
  std::map<std::string, DeviceWork> finish_device_works() {
    sums_.finish();
    return gpu_work_.finish(sums_.processes());
  }

 private:
  const std::vector<SurveyedSource>& sources_;
  std::uint32_t recorder_;
  TimeSpan span_;
  RecordedEnergy recorded_energy_;
  ActivitySums sums_;
  GpuWorkCollector gpu_work_;
};

// The first GPU of the recording: its energy, the kernels that ran on it, and its sensor model.
struct Gpu {
  RecordedEnergy::Result::DomainCurve curve;
  DeviceWork work;
  SensorModel known;
};

struct HeldOutPrediction {
  std::int64_t begin_ns;
  std::int64_t end_ns;
  double measured_j;
  double predicted_j;
  std::pair<double, double> central_interval_j;
  double by_time_j;
  double last_power_prediction_j;
};

std::optional<std::uint32_t> find_recorder_source(const std::vector<SurveyedSource>& sources) {
  for (std::uint32_t i = 0; i < sources.size(); ++i) {
    if (sources[i].source.role == "recorder" && sources[i].command_span() && !sources[i].channels.empty()) return i;
  }
  return std::nullopt;
}

Result<Gpu> read_gpu(const std::string& path, RecordingSurvey& survey, const CommandTimeRange& time_range) {
  Result<std::vector<recording::RecordingFile>> files = recording::open_recording({&path, 1});
  if (!files) return std::move(files).error();
  if (const auto read_status = recording::read_recording(*files, survey); !read_status) return read_status.error();
  if (const Status clip = survey.limit_time_range(time_range); !clip) return clip.error();
  const std::optional<std::uint32_t> recorder = find_recorder_source(survey.sources());
  if (!recorder) return Error{ErrorCode::not_found, "the recording holds no samples", "record with sensors"};
  SampleCollector sample_collector(survey.sources(), *recorder);
  if (const auto read_status = recording::read_recording(*files, sample_collector); !read_status)
    return read_status.error();
  RecordedEnergy::Result energy = sample_collector.energy();
  std::map<std::string, DeviceWork> work_by_device = sample_collector.finish_device_works();
  for (RecordedEnergy::Result::DomainCurve& curve : energy.domain_curves) {
    if (curve.domain_class != DomainClass::gpu) continue;
    auto device_work = work_by_device.find(curve.device);
    if (device_work == work_by_device.end()) device_work = work_by_device.find("ordinal 0");
    if (device_work == work_by_device.end() || device_work->second.timeline.empty()) continue;
    const SurveyedSource& source = survey.sources()[*recorder];
    const SensorModel sensor_model = find_calibrated_sensor_model(source.calibration, source.channels, curve.device);
    return Gpu{std::move(curve), std::move(device_work->second), sensor_model};
  }
  return Error{ErrorCode::not_found, "the recording tells of no GPU both what it drew and what ran on it",
               "record --trace full on a GPU"};
}

// Power history of the blocks whose number modulo 2 is `parity`.
std::vector<PowerPoint> select_block_history(const Gpu& gpu, const BlockPartition& partition, std::int64_t parity) {
  std::vector<PowerPoint> block_history;
  for (const PowerPoint& point : gpu.curve.power_history) {
    const bool is_inside = point.time_ns >= partition.span.begin_ns && point.time_ns < partition.span.end_ns;
    if (is_inside && partition.find_block_index(point.time_ns) % 2 == parity &&
        partition.is_after_settling(point.time_ns))
      block_history.push_back(point);
  }
  return block_history;
}

// Counter updates that bound the intervals of one block.
std::vector<EnergyPoint> find_block_updates(const Gpu& gpu, const BlockPartition& partition, std::int64_t block) {
  std::vector<EnergyPoint> edges;
  for (const EnergyPoint& step : gpu.curve.counter_updates) {
    if (step.time_ns < partition.span.begin_ns || step.time_ns >= partition.span.end_ns ||
        partition.find_block_index(step.time_ns) != block)
      continue;
    if (!partition.is_after_settling(step.time_ns)) continue;
    // Updates come at whole periods: one that is slightly early still ends the interval.
    const bool is_due =
        edges.empty() || step.time_ns - edges.back().time_ns >= partition.interval_ns - kSettlingTime_ns;
    if (is_due) edges.push_back(step);
  }
  return edges;
}

// Power of the counter between its last two updates before a time.
double counter_power_before_w(const Gpu& gpu, std::int64_t time_ns) {
  double watts = 0;
  for (std::size_t i = 1; i < gpu.curve.counter_updates.size() && gpu.curve.counter_updates[i].time_ns < time_ns; ++i) {
    const EnergyPoint& previous_update = gpu.curve.counter_updates[i - 1];
    const EnergyPoint& current_update = gpu.curve.counter_updates[i];
    if (current_update.time_ns > previous_update.time_ns)
      watts =
          (current_update.joules - previous_update.joules) / seconds(current_update.time_ns - previous_update.time_ns);
  }
  return watts;
}

// The intervals between counter updates of one block: measured energy, and busy time of each kernel class.
struct BlockObservations {
  std::vector<EnergyPoint> edges;
  BusyTimeMatrix busy_times;

  BlockObservations(const Gpu& gpu, const BlockPartition& partition, std::int64_t block)
      : edges(find_block_updates(gpu, partition, block)) {
    std::vector<std::int64_t> lag_corrected_ns;
    for (const EnergyPoint& edge : edges) lag_corrected_ns.push_back(edge.time_ns - gpu.known.counter_lag_ns());
    if (edges.size() > 1) busy_times = gpu.work.timeline.busy_times(lag_corrected_ns);
  }
  std::size_t size() const { return edges.size() > 1 ? edges.size() - 1 : 0; }
  double measured_j(std::size_t i) const { return edges[i + 1].joules - edges[i].joules; }
  double length_s(std::size_t i) const { return seconds(edges[i + 1].time_ns - edges[i].time_ns); }
};

double sum_j(std::span<const double> watts, std::span<const double> busy_s) {
  double joules = 0;
  for (std::size_t k = 0; k < busy_s.size(); ++k) joules += watts[k] * busy_s[k];
  return joules;
}

// Powers from the blocks of one parity. As in a report, they give the proportions and the counter gives the amount: all
// powers, including replicates, are scaled to the counter's energy in those blocks.
class BlockPowers {
 public:
  BlockPowers(const Gpu& gpu, const BlockPartition& partition, const std::vector<PowerPoint>& history,
              const PowerFit& fit)
      : gpu_(gpu), partition_(partition) {
    const UsablePowerEvidence usable_evidence(gpu.work.timeline, {{}, history, {}, gpu.known});
    const PowerPrior busy_idle_prior =
        fit_busy_and_idle_prior(usable_evidence.make_observations({fit.lag_ns, fit.time_constant_ns}));
    time_proportional_w_.assign(fit.classes.size(), busy_idle_prior.busy_w);
    time_proportional_w_.back() = busy_idle_prior.idle_w;
    for (const KernelClassPower& class_power : fit.classes) class_power_w_.push_back(class_power.watts);
    for (std::size_t replicate_index = 0; replicate_index < fit.gain_replicates.size(); ++replicate_index) {
      std::vector<double>& watts = bootstrap_powers_w_.emplace_back();
      for (const std::vector<double>& class_replicates : fit.power_replicates)
        watts.push_back(class_replicates[replicate_index]);
    }
  }

  // Scales the powers to the counter in these blocks, and estimates the residual noise of an interval.
  void level(std::span<const std::int64_t> blocks) {
    std::vector<BlockObservations> block_observations;
    for (const std::int64_t block : blocks) block_observations.emplace_back(gpu_, partition_, block);
    std::vector<double> busy_s(class_power_w_.size());
    double measured_j = 0;
    for_each(block_observations, [&](const BlockObservations& rows, std::size_t i) {
      measured_j += rows.measured_j(i);
      for (std::size_t k = 0; k < busy_s.size(); ++k) busy_s[k] += rows.busy_times[i][k];
    });
    const auto scale_to_measured = [&](std::vector<double>& watts) {
      const double modelled_j = sum_j(watts, busy_s);
      if (modelled_j <= 0 || measured_j <= 0) return;
      for (double& power_w : watts) power_w *= measured_j / modelled_j;
    };
    scale_to_measured(class_power_w_);
    scale_to_measured(time_proportional_w_);
    for (std::vector<double>& watts : bootstrap_powers_w_) scale_to_measured(watts);
    double squares = 0;
    double count = 0;
    for_each(block_observations, [&](const BlockObservations& rows, std::size_t i) {
      squares += std::pow(rows.measured_j(i) - sum_j(class_power_w_, rows.busy_times[i]), 2);
      ++count;
    });
    noise_j_ = count > 1 ? std::sqrt(squares / (count - 1)) : 0;
  }

  void predict(std::int64_t block, std::vector<HeldOutPrediction>& predictions) {
    const BlockObservations rows(gpu_, partition_, block);
    const double last_counter_power_w =
        counter_power_before_w(gpu_, partition_.span.begin_ns + block * partition_.block_ns);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::span<const double> busy_s = rows.busy_times[i];
      // Predictive distribution: replicates of the powers plus residual noise of the counter.
      std::vector<double> draws_j;
      for (const std::vector<double>& watts : bootstrap_powers_w_) {
        draws_j.push_back(sum_j(watts, busy_s) + noise_j_ * random_.normal());
      }
      predictions.push_back({rows.edges[i].time_ns, rows.edges[i + 1].time_ns, rows.measured_j(i),
                             sum_j(class_power_w_, busy_s), central_interval(std::move(draws_j), 0.9),
                             sum_j(time_proportional_w_, busy_s), last_counter_power_w * rows.length_s(i)});
    }
  }

 private:
  template <class Use>
  static void for_each(const std::vector<BlockObservations>& blocks, Use&& use) {
    for (const BlockObservations& rows : blocks) {
      for (std::size_t i = 0; i < rows.size(); ++i) use(rows, i);
    }
  }

  const Gpu& gpu_;
  const BlockPartition& partition_;
  std::vector<double> class_power_w_;  // by class, idle last
  std::vector<double> time_proportional_w_;
  std::vector<std::vector<double>> bootstrap_powers_w_;
  double noise_j_ = 0;  // residual standard deviation of an interval
  statistics::Random random_{1};
};

Result<std::vector<HeldOutPrediction>> predict_held_out_blocks(const Gpu& gpu, const BlockPartition& partition) {
  std::vector<HeldOutPrediction> predictions;
  const std::int64_t blocks = (partition.span.end_ns - partition.span.begin_ns) / partition.block_ns;
  for (const std::int64_t parity : {0, 1}) {
    const std::vector<PowerPoint> history = select_block_history(gpu, partition, parity);
    const std::optional<PowerFit> fit = fit_powers(gpu.work.timeline, {{}, history, {}, gpu.known});
    if (!fit)
      return Error{ErrorCode::not_found,
                   fmt::format("{} values of the GPU's power are too few to find powers", history.size()),
                   "a longer recording, or a driver that keeps its power"};
    std::vector<std::int64_t> training_blocks;
    for (std::int64_t block = parity; block < blocks; block += 2) training_blocks.push_back(block);
    BlockPowers fold(gpu, partition, history, *fit);
    fold.level(training_blocks);
    for (std::int64_t block = 1 - parity; block < blocks; block += 2) fold.predict(block, predictions);
  }
  return predictions;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 6) {
    fmt::print(stderr, "usage: held_out RECORDING FROM TO [BLOCK_S [INTERVAL_S]]\n");
    return 2;
  }
  const double block_s = argc > 4 ? std::atof(argv[4]) : 2;
  const double interval_s = argc > 5 ? std::atof(argv[5]) : 1;
  RecordingSurvey survey;
  const Result<Gpu> gpu = read_gpu(argv[1], survey, {std::atof(argv[2]), std::atof(argv[3])});
  if (!gpu) return fmt::print(stderr, "{}\n", gpu.error().message), 1;
  const TimeSpan span = *survey.sources()[*find_recorder_source(survey.sources())].command_span();
  const BlockPartition partition{span, static_cast<std::int64_t>(1e9 * block_s),
                                 static_cast<std::int64_t>(1e9 * interval_s)};
  const Result<std::vector<HeldOutPrediction>> predicted = predict_held_out_blocks(*gpu, partition);
  if (!predicted) return fmt::print(stderr, "{}\n", predicted.error().message), 1;
  std::string separator = "";
  fmt::print("{{\"intervals\":[");
  for (const HeldOutPrediction& prediction : *predicted) {
    fmt::print(R"({}{{"begin_s":{:.6f},"end_s":{:.6f},"measured_j":{},"predicted_j":{},"low_j":{},"high_j":{},)"
               R"("by_time_j":{},"held_j":{}}})",
               separator, seconds(prediction.begin_ns - span.begin_ns), seconds(prediction.end_ns - span.begin_ns),
               prediction.measured_j, prediction.predicted_j, prediction.central_interval_j.first,
               prediction.central_interval_j.second, prediction.by_time_j, prediction.last_power_prediction_j);
    separator = ",\n";
  }
  fmt::print("]}}\n");
  return 0;
}
