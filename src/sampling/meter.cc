// SPDX-License-Identifier: Apache-2.0
#include "sampling/meter.h"

#include <algorithm>

#include "base/clock.h"
#include "energy/channel_faults.h"

namespace joulemap::sampling {
namespace {

using sensors::SamplingMode;

// How often the owner processes the samples in the rings: between edges, and near an edge. A ring holds about ten
// seconds of samples.
constexpr std::int64_t kSampleProcessingPeriod_ns = 50 * kNanosecondsPerMillisecond;
constexpr std::int64_t kNearEdgeProcessingPeriod_ns = 5 * kNanosecondsPerMillisecond;

// Longest preparation before a window: enough to see the update period of a counter that updates every millisecond.
constexpr std::int64_t kMaxPreparation_ns = 4 * kNanosecondsPerMillisecond;
constexpr std::int64_t kMinSettlingPollPeriod_ns = 100 * kNanosecondsPerMicrosecond;
// Longest dense reading after the begin of a window, for counters that update less often.
constexpr std::int64_t kMaxDenseReading_ns = 250 * kNanosecondsPerMillisecond;
// Longest wait after a window for the next update of its slowest counter. There is no wait if the window lasts more
// than kMinUpdatesToSkipSettling update periods, unless the period is at most kMaxQuickUpdatePeriod_ns.
constexpr std::int64_t kMaxSettlingWait_ns = 150 * kNanosecondsPerMillisecond;
constexpr std::int64_t kMinUpdatesToSkipSettling = 2000;
constexpr std::int64_t kMaxQuickUpdatePeriod_ns = 5 * kNanosecondsPerMillisecond;
// How long read_all_sensors() waits for the sensors. Reads of GPU energy counters were observed to take up to 30 ms; a
// device that takes longer than this is lost.
constexpr std::int64_t kReadAllSensorsTimeout_ns = 100 * kNanosecondsPerMillisecond;
// In energy_since_last_call(), a counter without an update in this time after begin() counts as frozen.
constexpr double kFrozenCounterDelay_s = 1;

}  // namespace

Result<Meter> Meter::open(const SensorOptions& options) {
  Result<OpenSensors> opened_sensors = open_sensors(options);
  if (!opened_sensors) return std::move(opened_sensors).error();
  Meter meter(std::move(opened_sensors->statuses), Sampler(std::move(opened_sensors->sensors)));
  meter.cross_checks_estimates_ = opened_sensors->are_estimates_requested;
  return meter;
}

Meter::Meter(std::vector<SensorStatus> statuses, Sampler sampler)
    : sensor_statuses_(std::move(statuses)), sampler_(std::move(sampler)) {
  curves_ = EnergyCurves(sampler_.channels());
  curve_states_at_last_call_.resize(curves_.curves().size());
  update_counts_at_begin_.resize(curves_.curves().size());
  energies_at_begin_j_.resize(curves_.curves().size());
}

// Rounds times to the resolution of a recording, so that the summary at the end of a run and a later report of its
// recording use identical samples.
void Meter::process_samples() {
  sampler_.drain([this](const Sample& raw_sample) {
    const Sample sample{raw_sample.channel, round_read_times(raw_sample.reading)};
    if (sample_callback_) sample_callback_(sample);
    curves_.observe(sample);
  });
}

// Whether dense reading of a channel can stop. Before end(): its update period is known, and an update was seen. After
// end(): the next update was seen, or no period is known to wait for. Gauges and estimates have no updates to wait for.
bool Meter::is_settled(const EnergyCurve& curve) const {
  if (!has_counter_updates(curve.channel())) return true;
  if (has_ended_) return curve.count_points_after(end_ns_) > 0 || !curve.is_refresh_known();
  return curve.is_refresh_known() && curve.tally().update_count > 0;
}

bool Meter::is_settled(std::size_t sensor) const {
  const auto [first_channel, count] = sampler_.channels_of(sensor);
  for (std::size_t channel = first_channel; channel < first_channel + count; ++channel) {
    const EnergyCurve* const curve = curves_.curve_of_channel(channel);
    if (curve != nullptr && !is_settled(*curve)) return false;
  }
  return true;
}

bool Meter::are_all_curves_settled() const {
  return std::ranges::all_of(curves_.curves(), [this](const EnergyCurve& curve) { return is_settled(curve); });
}

// Ends the expensive near-edge mode of each sensor as soon as its curves are settled, and of all after
// kMaxDenseReading_ns.
void Meter::relax_settled_sensors() {
  if (are_all_sensors_relaxed_) return;
  const bool is_dense_reading_over = monotonic_ns() >= begin_ns_ + kMaxDenseReading_ns;
  are_all_sensors_relaxed_ = true;
  for (std::size_t sensor = 0; sensor < sampler_.sensor_count(); ++sensor) {
    if (is_dense_reading_over || is_settled(sensor)) {
      sampler_.set_mode(sensor, mode_between_edges_);
    } else {
      are_all_sensors_relaxed_ = false;
    }
  }
}

void Meter::wait_until_settled(std::int64_t deadline_ns, std::int64_t period_ns) {
  while (!are_all_curves_settled() && monotonic_ns() < deadline_ns) {
    sleep_until(monotonic_ns() + period_ns);
    process_samples();
  }
}

std::int64_t Meter::period_ns() const {
  return are_all_sensors_relaxed_ ? kSampleProcessingPeriod_ns : kNearEdgeProcessingPeriod_ns;
}

std::int64_t Meter::slowest_update_period_ns() const {
  std::int64_t slowest_period_ns = 0;
  for (const EnergyCurve& curve : curves_.curves()) {
    if (has_counter_updates(curve.channel()) && curve.is_refresh_known())
      slowest_period_ns = std::max(slowest_period_ns, curve.refresh_ns());
  }
  return slowest_period_ns;
}

void Meter::prepare() {
  curves_ = EnergyCurves(sampler_.channels(), curves_);
  has_ended_ = false;
  sampler_.set_mode(SamplingMode::near_edge);
  are_all_sensors_relaxed_ = false;
  sampler_.start();
  wait_until_settled(monotonic_ns() + kMaxPreparation_ns, kMinSettlingPollPeriod_ns);
}

void Meter::begin() {
  read_all_sensors();
  begin_ns_ = monotonic_ns();
  process_cpu_at_begin_ns_ = process_cpu_ns();
  curves_.retain_points_around(begin_ns_);
  const std::span<const EnergyCurve> curves = curves_.curves();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    curve_states_at_last_call_[i] = {curves[i].tally().joules, curves[i].tally().update_count};
    update_counts_at_begin_[i] = curves[i].tally().update_count;
    energies_at_begin_j_[i] = curves[i].tally().joules;
  }
}

void Meter::sample() {
  process_samples();
  relax_settled_sensors();
}

void Meter::set_reading_every_update(bool reads_every_update) {
  const SamplingMode requested_mode = reads_every_update ? SamplingMode::every_update : SamplingMode::relaxed;
  if (requested_mode == mode_between_edges_) return;
  mode_between_edges_ = requested_mode;
  if (are_all_sensors_relaxed_) sampler_.set_mode(requested_mode);
}

void Meter::read_all_sensors() {
  // A sensor that does not answer in time has no reading, and the result of the window reports that.
  static_cast<void>(sampler_.read_all_sensors(kReadAllSensorsTimeout_ns));
  process_samples();
}

void Meter::end() {
  end_ns_ = monotonic_ns();
  has_ended_ = true;
  curves_.retain_points_around(end_ns_);
  sampler_.set_mode(SamplingMode::near_edge);
  read_all_sensors();
  process_cpu_at_end_ns_ = process_cpu_ns();
  const std::int64_t refresh_ns = slowest_update_period_ns();
  const bool has_quick_updates = refresh_ns <= kMaxQuickUpdatePeriod_ns;
  if (has_quick_updates || refresh_ns * kMinUpdatesToSkipSettling >= end_ns_ - begin_ns_) {
    const std::int64_t wait_ns =
        std::min(refresh_ns + refresh_ns / 2 + kNanosecondsPerMillisecond, kMaxSettlingWait_ns);
    wait_until_settled(end_ns_ + wait_ns,
                       std::clamp(refresh_ns / 20, kMinSettlingPollPeriod_ns, kNanosecondsPerMillisecond));
  }
  sampler_.stop();
  process_samples();
  sampler_costs_ = sampler_.costs();
}

double Meter::elapsed_s() const { return seconds(end_ns_ - begin_ns_); }

double Meter::overhead_cpu_s() const { return seconds(process_cpu_at_end_ns_ - process_cpu_at_begin_ns_); }

std::vector<DomainEnergy> Meter::energy_since_last_call(double elapsed_s) {
  if (!has_ended_) read_all_sensors();
  // All samples since begin() decide which channel represents a domain. A counter without an update since the last
  // interval is not frozen, and no estimate replaces it. Its energy belongs to the interval of its next update.
  const bool is_before_frozen_delay = seconds(monotonic_ns() - begin_ns_) < kFrozenCounterDelay_s;
  std::vector<ChannelEnergy> energies;
  std::vector<std::string> waiting;
  const std::span<const EnergyCurve> curves = curves_.curves();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const Channel& channel = curves[i].channel();
    const EnergyTally& tally = curves[i].tally();
    const CurveState curve_state{has_ended_ ? std::min(curves[i].joules_at(end_ns_), tally.joules) : tally.joules,
                                 tally.update_count};
    ChannelEnergy energy;
    energy.channel = channel;
    const bool has_updates = channel.kind == ChannelKind::counter && channel.provenance == Provenance::measured;
    if (!has_updates || curve_state.update_count > update_counts_at_begin_[i] || is_before_frozen_delay)
      energy.joules = std::max(curve_state.joules - curve_states_at_last_call_[i].joules, 0.0);
    if (!energy.joules) energy.missing_reason = "frozen";
    if (has_updates && energy.joules && curve_state.update_count == curve_states_at_last_call_[i].update_count)
      waiting.push_back(channel.domain);
    curve_states_at_last_call_[i] = curve_state;
    energies.push_back(std::move(energy));
  }
  std::vector<DomainEnergy> rows = make_domain_table(energies, elapsed_s).rows;
  for (DomainEnergy& row : rows) {
    row.uncertainty_j.reset();
    row.checks.clear();
    const bool waits = std::find(waiting.begin(), waiting.end(), row.name) != waiting.end();
    if (!waits || row.provenance != Provenance::measured) continue;
    row.joules = row.mean_w = std::nullopt;
    row.provenance.reset();
    row.reason = "no-step";
  }
  return rows;
}

std::vector<DomainEnergy> Meter::energy_since_begin() const {
  std::vector<ChannelEnergy> energies;
  const std::span<const EnergyCurve> curves = curves_.curves();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    ChannelEnergy energy;
    energy.channel = curves[i].channel();
    const bool is_frozen =
        has_counter_updates(curves[i].channel()) && curves[i].tally().update_count == update_counts_at_begin_[i];
    if (!is_frozen) energy.joules = std::max(curves[i].tally().joules - energies_at_begin_j_[i], 0.0);
    if (is_frozen) energy.missing_reason = "frozen";
    energies.push_back(std::move(energy));
  }
  return make_domain_table(energies, seconds(monotonic_ns() - begin_ns_)).rows;
}

DomainTable Meter::result() const {
  std::vector<ChannelEnergy> energies;
  for (const EnergyCurve& curve : curves_.curves()) energies.push_back(curve.energy_between(begin_ns_, end_ns_));
  for (const SensorStatus& status : sensor_statuses_) {
    for (const UnreadableChannel& unreadable : status.unreadable) {
      ChannelEnergy energy;
      energy.channel = unreadable.channel;
      energy.missing_reason = unreadable.reason;
      energies.push_back(std::move(energy));
    }
  }
  DomainTable table = make_domain_table(energies, elapsed_s(), cross_checks_estimates_);
  if (sampler_.hanging_thread_count() > 0) {
    table.diagnostics.add({"sensor_hangs", sampler_.hanging_thread_count(),
                           "a sensor read did not return: the sensor is not read any more",
                           "see dmesg: the device or its driver hangs"});
  }
  for (const ChannelEnergy& energy : energies) table.diagnostics.add_all(describe_faults(energy));
  return table;
}

}  // namespace joulemap::sampling
