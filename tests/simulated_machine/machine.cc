// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "punctual_thread.h"

namespace joulemap::simulated {
namespace {

constexpr std::int64_t kProcessRefreshPeriod_ns = 10 * kNanosecondsPerMillisecond;
constexpr std::int64_t kOperationLogPeriod_ns = 50 * kNanosecondsPerMillisecond;
constexpr std::int64_t kHalfWriteDelay_ns = 30 * kNanosecondsPerMicrosecond;
constexpr std::int64_t kNotStarted_ns = std::numeric_limits<std::int64_t>::max();

std::int64_t us_to_ns(double duration_us) { return std::llround(duration_us * 1e3); }

Result<std::vector<CounterFile>> create_counters(const MachineSettings& settings, const std::vector<Zone>& zones) {
  std::vector<CounterFile> counters;
  for (const Zone& zone : zones) {
    const bool has_faults = settings.fault_zone.empty() || settings.fault_zone == zone.id;
    Result<CounterFile> counter =
        CounterFile::create(energy_path(settings.root, zone), EnergyCounter(settings.start_uj, settings.wrap_uj),
                            settings.wrap_uj, has_faults ? settings.faults : FaultPlan{});
    if (!counter) return std::move(counter).error();
    counters.push_back(std::move(*counter));
  }
  return counters;
}

Status check_fault_zone(const MachineSettings& settings, const std::vector<Zone>& zones) {
  const auto is_fault_zone = [&](const Zone& zone) { return zone.id == settings.fault_zone; };
  if (settings.fault_zone.empty() || std::any_of(zones.begin(), zones.end(), is_fault_zone)) return Done{};
  return Error{ErrorCode::usage, fmt::format("--fault-zone {}: no such zone", settings.fault_zone),
               fmt::format("zones are {}, {} and so on", zones[0].id, zones[1].id)};
}

}  // namespace

Result<std::unique_ptr<Machine>> Machine::build(const MachineSettings& settings) {
  const std::vector<Zone> zones = list_zones(settings.law.sockets, settings.has_psys);
  if (Status zone_check = check_fault_zone(settings, zones); !zone_check) return std::move(zone_check).error();
  Status build_status = build_powercap_tree(settings.root, zones, {settings.wrap_uj, settings.law.max_w});
  if (!build_status) return std::move(build_status).error();
  Result<std::vector<CounterFile>> counters = create_counters(settings, zones);
  if (!counters) return std::move(counters).error();

  Result<Operations> operations = settings.operation_kinds.empty()
                                      ? Result<Operations>(Operations())
                                      : Operations::open(settings.operation_kinds, settings.operation_page);
  if (!operations) return std::move(operations).error();
  Result<MachineLogs> logs = create_logs(settings, *operations);
  if (!logs) return std::move(logs).error();
  Result<BusyTime> busy = BusyTime::start(settings.counts_self);
  if (!busy) return std::move(busy).error();
  return std::unique_ptr<Machine>(
      new Machine(settings, std::move(*busy), std::move(*operations), std::move(*logs), std::move(*counters)));
}

Result<Machine::MachineLogs> Machine::create_logs(const MachineSettings& settings, const Operations& operations) {
  std::vector<std::string> domains;
  for (const Zone& zone : list_zones(settings.law.sockets, settings.has_psys)) domains.push_back(zone.domain);
  Result<TruthLog> truth = TruthLog::create(settings.root + "/truth.csv", domains);
  if (!truth) return std::move(truth).error();
  MachineLogs logs{std::move(*truth), {}};
  if (settings.operation_kinds.empty()) return logs;
  std::vector<std::string> columns;
  for (const std::string& name : operations.names()) {
    for (const char* const column_suffix : {".cpu_s", ".energy_j", ".dynamic_j"})
      columns.push_back(name + column_suffix);
  }
  Result<TruthLog> operations_log = TruthLog::create(settings.root + "/truth_operations.csv", columns);
  if (!operations_log) return std::move(operations_log).error();
  logs.operations.emplace(std::move(*operations_log));
  return logs;
}

Machine::Machine(const MachineSettings& settings, BusyTime busy, Operations operations, MachineLogs logs,
                 std::vector<CounterFile> counters)
    : settings_(settings),
      truth_path_(settings.root + "/truth.csv"),
      power_law_(settings.law),
      busy_(std::move(busy)),
      operations_(std::move(operations)),
      logs_(std::move(logs)),
      counters_(std::move(counters)),
      energies_j_(counters_.size(), 0.0),
      cpus_(static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)))),
      command_start_ns_(kNotStarted_ns) {}

void Machine::start() {
  start_ns_ = last_tick_ns_ = last_refresh_ns_ = monotonic_ns();
  cpu_at_start_ns_ = process_cpu_ns();
  schedule_ = {start_ns_, us_to_ns(settings_.period_us), us_to_ns(settings_.jitter_us), settings_.law.seed};
  clock_nudger_.emplace(schedule_);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Machine::command_started() {
  if (settings_.fault_trigger.empty()) command_start_ns_ = monotonic_ns();
}

Result<MachineReport> Machine::stop() {
  thread_.request_stop();
  thread_.join();
  clock_nudger_.reset();
  if (!state_) return std::move(state_).error();
  if (Status tick_status = tick(monotonic_ns()); !tick_status) return std::move(tick_status).error();
  if (Status flush_status = logs_.truth.flush(); !flush_status) return std::move(flush_status).error();
  last_operation_log_ns_ = 0;
  if (Status logged = log_operations(last_tick_ns_); !logged) return std::move(logged).error();
  if (logs_.operations) {
    if (Status flush_status = logs_.operations->flush(); !flush_status) return std::move(flush_status).error();
  }
  busy_.refresh_processes();
  Status write_status = write_process_truth(settings_.root + "/truth_processes.csv", busy_.shares());
  if (!write_status) return std::move(write_status).error();
  report_.cpu_share = seconds(process_cpu_ns() - cpu_at_start_ns_) / seconds(monotonic_ns() - start_ns_);
  return report_;
}

void Machine::run(const std::stop_token& stop) {
  make_this_thread_punctual();
  state_ = logs_.truth.append(start_ns_, 0, energies_j_);
  std::int64_t tick_number = 0;
  while (state_ && !stop.stop_requested()) {
    const std::int64_t next_tick = std::max(tick_number + 1, schedule_.first_tick_after(monotonic_ns()));
    report_.missed_ticks += next_tick - tick_number - 1;
    tick_number = next_tick;
    sleep_until(schedule_.tick_time_ns(tick_number));
    state_ = tick(monotonic_ns());
  }
}

Status Machine::tick(std::int64_t now_ns) {
  if (now_ns <= last_tick_ns_) return Done{};
  ++report_.ticks;
  const std::int64_t last_ns = std::exchange(last_tick_ns_, now_ns);
  const std::int64_t running_since_ns = schedule_.running_since_ns(last_ns, now_ns);
  if (running_since_ns > last_ns) {
    if (Status appended = logs_.truth.append(running_since_ns, busy_.total_cpu_s(), energies_j_); !appended)
      return appended;
  }
  add_tick_energy(seconds(now_ns - last_ns), seconds(now_ns - running_since_ns));
  if (Status published = publish(now_ns); !published) return published;
  if (now_ns - last_refresh_ns_ >= kProcessRefreshPeriod_ns) {
    last_refresh_ns_ = now_ns;
    busy_.refresh_processes();
  }
  if (Status logged = log_operations(now_ns); !logged) return logged;
  return logs_.truth.append(now_ns, busy_.total_cpu_s(), energies_j_);
}

void Machine::add_tick_energy(double since_last_tick_s, double running_s) {
  const double capacity_s = cpus_ * since_last_tick_s;
  const double utilisation = busy_.advance(capacity_s) / capacity_s;
  operations_.update(busy_.list_charged_processes());
  const MachinePower& power = power_law_.step(utilisation, running_s, operations_.factors());
  operations_.attribute_energy(power, running_s);
  busy_.attribute_energy(power.dynamic_w * running_s);
  std::size_t zone = 0;
  for (const SocketPower& socket : power.sockets) {
    energies_j_[zone++] += socket.package_w * running_s;
    energies_j_[zone++] += socket.core_w * running_s;
    energies_j_[zone++] += socket.dram_w * running_s;
  }
  if (settings_.has_psys) energies_j_[zone] += power.psys_w * running_s;
}

Status Machine::log_operations(std::int64_t now_ns) {
  if (!logs_.operations || now_ns - last_operation_log_ns_ < kOperationLogPeriod_ns) return Done{};
  last_operation_log_ns_ = now_ns;
  std::vector<double> values;
  for (const OperationEnergy& energy : operations_.energies()) {
    values.insert(values.end(), {energy.cpu_s, energy.energy_j, energy.dynamic_j});
  }
  return logs_.operations->append(now_ns, busy_.total_cpu_s(), values);
}

Status Machine::publish(std::int64_t now_ns) {
  const bool is_armed = command_start_ns_ == kNotStarted_ns && !settings_.fault_trigger.empty();
  if (is_armed && ::access(settings_.fault_trigger.c_str(), F_OK) == 0) command_start_ns_ = now_ns;
  const std::int64_t command_ns = command_start_ns_;
  const double command_s = command_ns == kNotStarted_ns ? -1 : seconds(now_ns - command_ns);
  bool has_half_writes = false;
  for (std::size_t zone = 0; zone < counters_.size(); ++zone) {
    if (Status publish_status = counters_[zone].publish(energies_j_[zone], command_s); !publish_status)
      return publish_status;
    has_half_writes = has_half_writes || counters_[zone].writes_in_halves();
  }
  if (!has_half_writes) return Done{};
  sleep_until(monotonic_ns() + kHalfWriteDelay_ns);
  for (CounterFile& counter : counters_) {
    if (Status finish_status = counter.finish(); !finish_status) return finish_status;
  }
  return Done{};
}

}  // namespace joulemap::simulated
