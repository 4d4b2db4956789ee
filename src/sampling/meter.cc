// SPDX-License-Identifier: Apache-2.0
#include "sampling/meter.h"

#include <algorithm>

#include "base/clock.h"
#include "model/channel_faults.h"
#include "sensors/backends.h"

namespace joulemap::sampling {
namespace {

// A counter misses nothing between two samples; they are for its wraps and faults. A gauge tells only of the moment.
constexpr std::int64_t kCounterPeriod_ns = 50 * kNanosecondsPerMillisecond;
constexpr std::int64_t kGaugePeriod_ns = 20 * kNanosecondsPerMillisecond;
constexpr std::int64_t kEstimatePeriod_ns = kNanosecondsPerSecond;
constexpr std::int64_t kShortestPeriod_ns = kNanosecondsPerMillisecond;
// Far above what any domain draws for long: at this power the range of a counter must outlast two samples.
constexpr double kHighPower_w = 1000;

// Before the window: two steps of a counter that is renewed every millisecond, and one more for luck.
constexpr std::int64_t kPrepareAtMost_ns = 4 * kNanosecondsPerMillisecond;
constexpr std::int64_t kFinePeriod_ns = 100 * kNanosecondsPerMicrosecond;
// Slower counters show their steps at the beginning of the window, at a millisecond each.
constexpr std::int64_t kDensePeriod_ns = kNanosecondsPerMillisecond;
constexpr std::int64_t kDenseAtMost_ns = 250 * kNanosecondsPerMillisecond;
// After the window: the next step of a slow counter, unless the window is so long that it does not matter.
constexpr std::int64_t kSettleAtMost_ns = 150 * kNanosecondsPerMillisecond;
constexpr std::int64_t kRefreshesThatDoNotMatter = 2000;
constexpr std::int64_t kQuickRefresh_ns = 5 * kNanosecondsPerMillisecond;
// A counter that has not stepped for so long at the beginning will not, as far as interval lines are concerned.
constexpr double kStepsComeWithin_s = 1;

std::int64_t period_for(std::span<const Channel> channels) {
  std::int64_t period_ns = kCounterPeriod_ns;
  for (const Channel& channel : channels) {
    if (channel.kind == ChannelKind::gauge) period_ns = std::min(period_ns, kGaugePeriod_ns);
    if (!channel.wrap_range) continue;
    const double range_j = static_cast<double>(*channel.wrap_range) * channel.scale;
    const double safe_ns = range_j / (2 * kHighPower_w) * static_cast<double>(kNanosecondsPerSecond);
    if (safe_ns < static_cast<double>(period_ns)) period_ns = static_cast<std::int64_t>(safe_ns);
  }
  return std::max(period_ns, kShortestPeriod_ns);
}

}  // namespace

Result<Meter> Meter::open(const MeterOptions& options) {
  Result<std::vector<const sensors::SensorBackend*>> backends = sensors::choose_backends(options.sensors);
  if (!backends) return std::move(backends).error();
  Meter meter;
  const sensors::ProbeContext context(options.root, options.program);
  for (const sensors::SensorBackend* backend : *backends) {
    if (!options.sensors.empty() && backend->name == "estimate") meter.check_estimates_ = true;
    sensors::Probe probe = backend->probe(context);
    meter.statuses_.push_back(std::move(probe.status));
    for (std::unique_ptr<sensors::Sensor>& sensor : probe.sensors) {
      for (const Channel& channel : sensor->channels()) meter.channels_.push_back(channel);
      meter.sensors_.push_back(std::move(sensor));
    }
  }
  meter.readings_.resize(meter.channels_.size());
  meter.marks_.resize(meter.channels_.size());
  meter.steps_at_begin_.resize(meter.channels_.size());
  meter.period_ns_ = period_for(meter.channels_);
  return meter;
}

void Meter::read(Which which) noexcept {
  std::size_t first = 0;
  for (const std::unique_ptr<sensors::Sensor>& sensor : sensors_) {
    const std::size_t count = sensor->channels().size();
    const bool estimates = channels_[first].provenance == Provenance::estimated;
    if (which == Which::all || !estimates) {
      sensor->read(std::span(readings_).subspan(first, count));
      for (std::size_t i = first; i < first + count; ++i) windows_[i].observe(readings_[i]);
    }
    first += count;
  }
}

bool Meter::all_settled() const {
  return std::all_of(windows_.begin(), windows_.end(), [](const EnergyWindow& window) { return window.is_settled(); });
}

void Meter::read_until_settled(std::int64_t deadline_ns, std::int64_t period_ns) {
  while (!all_settled() && monotonic_ns() < deadline_ns) {
    sleep_until(monotonic_ns() + period_ns);
    read(Which::measured);
  }
}

std::int64_t Meter::period_ns() const {
  const bool dense = !all_settled() && monotonic_ns() < begin_ns_ + kDenseAtMost_ns;
  return dense ? std::min(kDensePeriod_ns, period_ns_) : period_ns_;
}

std::int64_t Meter::slowest_refresh_ns() const {
  std::int64_t slowest_ns = 0;
  for (const EnergyWindow& window : windows_) slowest_ns = std::max(slowest_ns, window.refresh_ns().value_or(0));
  return slowest_ns;
}

void Meter::prepare() {
  std::vector<EnergyWindow> fresh;
  fresh.reserve(channels_.size());
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    fresh.emplace_back(channels_[i], windows_.empty() ? std::nullopt : windows_[i].refresh_ns());
  }
  windows_ = std::move(fresh);
  read(Which::measured);
  read_until_settled(monotonic_ns() + kPrepareAtMost_ns, kFinePeriod_ns);
}

void Meter::begin() {
  read(Which::all);
  begin_ns_ = monotonic_ns();
  own_cpu_at_begin_ns_ = own_cpu_ns();
  for (EnergyWindow& window : windows_) window.begin(begin_ns_);
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    marks_[i] = {0, windows_[i].steps()};
    steps_at_begin_[i] = windows_[i].steps();
  }
  last_full_read_ns_ = begin_ns_;
}

void Meter::sample() {
  const bool full = monotonic_ns() >= last_full_read_ns_ + kEstimatePeriod_ns;
  read(full ? Which::all : Which::measured);
  if (full) last_full_read_ns_ = monotonic_ns();
}

void Meter::end() {
  read(Which::all);
  end_ns_ = monotonic_ns();
  own_cpu_at_end_ns_ = own_cpu_ns();
  for (EnergyWindow& window : windows_) window.end(end_ns_);
  const std::int64_t refresh_ns = slowest_refresh_ns();
  const bool quick = refresh_ns <= kQuickRefresh_ns;
  if (!quick && refresh_ns * kRefreshesThatDoNotMatter < end_ns_ - begin_ns_) return;
  const std::int64_t wait_ns = std::min(refresh_ns + refresh_ns / 2 + kNanosecondsPerMillisecond, kSettleAtMost_ns);
  read_until_settled(end_ns_ + wait_ns, std::clamp(refresh_ns / 20, kFinePeriod_ns, kDensePeriod_ns));
}

double Meter::elapsed_s() const { return seconds(end_ns_ - begin_ns_); }

double Meter::own_cpu_s() const { return seconds(own_cpu_at_end_ns_ - own_cpu_at_begin_ns_); }

std::vector<DomainEnergy> Meter::interval(double elapsed_s) {
  const bool running = end_ns_ < begin_ns_;
  if (running) read(Which::all);
  // Which channel speaks for a domain is decided by all that was seen since the beginning: a counter that has not stepped
  // since the last interval is neither frozen nor a case for the estimate. Its energy comes with its next step.
  const bool young = seconds(monotonic_ns() - begin_ns_) < kStepsComeWithin_s;
  std::vector<ChannelEnergy> energies;
  std::vector<std::string> waiting;
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    const Mark now{windows_[i].joules_so_far(), windows_[i].steps()};
    ChannelEnergy energy;
    energy.channel = channels_[i];
    const bool stepping = channels_[i].kind == ChannelKind::counter && channels_[i].provenance == Provenance::measured;
    if (!stepping || now.steps > steps_at_begin_[i] || young)
      energy.joules = std::max(now.joules - marks_[i].joules, 0.0);
    if (!energy.joules) energy.reason = "frozen";
    if (stepping && energy.joules && now.steps == marks_[i].steps) waiting.push_back(channels_[i].domain);
    marks_[i] = now;
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

DomainTable Meter::result() const {
  std::vector<ChannelEnergy> energies;
  energies.reserve(windows_.size());
  for (const EnergyWindow& window : windows_) energies.push_back(window.result());
  for (const SensorStatus& status : statuses_) {
    for (const UnreadableChannel& unreadable : status.unreadable) {
      ChannelEnergy energy;
      energy.channel = unreadable.channel;
      energy.reason = unreadable.reason;
      energies.push_back(std::move(energy));
    }
  }
  DomainTable table = make_domain_table(energies, elapsed_s(), check_estimates_);
  for (const ChannelEnergy& energy : energies) table.diagnostics.add_all(describe_faults(energy));
  return table;
}

}  // namespace joulemap::sampling
