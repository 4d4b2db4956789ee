// SPDX-License-Identifier: Apache-2.0
#include "session/record_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/blocked_signals.h"
#include "base/clock.h"
#include "base/redaction.h"
#include "model/energy_totals.h"
#include "recording/live_steps.h"
#include "recording/part_folder.h"
#include "recording/part_list.h"
#include "recording/recording_writer.h"
#include "session/command_cpu_time.h"
#include "session/cpu_time_log.h"
#include "session/measured_command.h"

namespace joulemap::session {
namespace {

// Period of writing samples to the file: a crash loses less than a second of data.
constexpr std::int64_t kRecordingFlushPeriod_ns = 900 * kNanosecondsPerMillisecond;
constexpr std::int64_t kClockPairPeriod_ns = kNanosecondsPerSecond;

std::vector<std::string> make_stored_command(const RecordOptions& options) {
  return options.keep_arguments ? options.command : redact_arguments(options.command);
}

// One recording, from the first sample to the last.
class RecordingSession {
 public:
  RecordingSession(sampling::Meter& meter, const RecordOptions& options, BlockedSignals& signals,
                   recording::PartFolder& folder, recording::RecordingWriter writer)
      : meter_(meter),
        options_(options),
        part_folder_(folder),
        writer_(std::move(writer)),
        command_(signals),
        live_steps_(folder.path()) {}

  Status start();
  void run();
  RecordResult finish();

 private:
  void flush_recording();
  void report_status();
  void update_energy_per_step(LiveStatus& live_status);
  void add_clock_pair();
  void read_cpu_times();
  void add_mark(MarkKind kind, std::int64_t time_ns);

  sampling::Meter& meter_;
  const RecordOptions& options_;
  recording::PartFolder& part_folder_;
  recording::RecordingWriter writer_;
  MeasuredCommand command_;
  std::optional<CpuTimeLog> cpu_time_log_;
  RecordResult result_;
  std::int64_t next_flush_ns_ = 0;
  std::optional<LiveStatus> last_updated_status_;  // the last one whose energy differs from the one before
  std::optional<LiveStatus> first_status_with_steps_;
  std::uint64_t reported_step_count_ = 0;
  std::optional<double> energy_per_step_j_;
  recording::LiveSteps live_steps_;
  std::int64_t next_clock_pair_ns_ = 0;
};

void RecordingSession::add_mark(MarkKind kind, std::int64_t time_ns) {
  Mark mark;
  mark.kind = kind;
  mark.time_ns = time_ns;
  writer_.add(std::move(mark));
}

void RecordingSession::add_clock_pair() {
  writer_.add(ClockPair{monotonic_ns(), unix_ns()});
  next_clock_pair_ns_ = monotonic_ns() + kClockPairPeriod_ns;
}

void RecordingSession::read_cpu_times() {
  for (const Sample& sample : cpu_time_log_->read_samples()) writer_.add(sample);
}

// A failed write becomes a diagnostic: it must not stop the command.
void RecordingSession::flush_recording() {
  const Status flush_status = writer_.flush();
  if (!flush_status) {
    result_.diagnostics.add({"write_failed", 1, flush_status.error().message,
                             "free space on that disk; unwritten data is missing from the recording"});
  }
  next_flush_ns_ = monotonic_ns() + kRecordingFlushPeriod_ns;
}

void RecordingSession::report_status() {
  if (!options_.on_status) return;
  LiveStatus live_status;
  live_status.elapsed_s = static_cast<double>(monotonic_ns() - meter_.begin_ns()) * 1e-9;
  live_status.steps = live_steps_.count_steps();
  if (const auto energy = preferred_energy(total_energy(meter_.energy_since_begin()))) {
    live_status.energy_j = energy->joules;
    live_status.is_estimated = energy->provenance == Provenance::estimated;
    // A sensor that has no new value since the last status does not show a power of 0.
    const bool is_updated = !last_updated_status_ || *live_status.energy_j != *last_updated_status_->energy_j;
    if (!is_updated) {
      live_status.power_w = last_updated_status_->power_w;
    } else if (last_updated_status_ && live_status.elapsed_s > last_updated_status_->elapsed_s) {
      live_status.power_w = (*live_status.energy_j - *last_updated_status_->energy_j) /
                            (live_status.elapsed_s - last_updated_status_->elapsed_s);
    }
    if (is_updated) last_updated_status_ = live_status;
    update_energy_per_step(live_status);
  }
  options_.on_status(live_status);
}

// From the status that first showed a step to the one that first showed the latest step, so that a long step which is
// half done does not count as none.
void RecordingSession::update_energy_per_step(LiveStatus& live_status) {
  if (live_status.steps > 0 && !first_status_with_steps_) first_status_with_steps_ = live_status;
  if (live_status.steps != reported_step_count_ && first_status_with_steps_ &&
      live_status.steps > first_status_with_steps_->steps) {
    energy_per_step_j_ = (*live_status.energy_j - *first_status_with_steps_->energy_j) /
                         static_cast<double>(live_status.steps - first_status_with_steps_->steps);
  }
  reported_step_count_ = live_status.steps;
  live_status.step_j = energy_per_step_j_;
}

Status RecordingSession::start() {
  std::vector<std::string> environment = part_folder_.environment_variables();
  environment.insert(environment.end(), options_.command_variables.begin(), options_.command_variables.end());
  Status command_status =
      options_.attached_pid ? command_.attach(*options_.attached_pid) : command_.prepare(options_.command, environment);
  if (!command_status) return command_status;
  result_.diagnostics = options_.setup_diagnostics;
  part_folder_.add_lock_diagnostics(result_.diagnostics);
  std::vector<Channel> channels(meter_.channels().begin(), meter_.channels().end());
  cpu_time_log_.emplace(static_cast<std::uint32_t>(channels.size()), options_.attached_pid);
  for (Channel& channel : CpuTimeLog::make_channels()) channels.push_back(std::move(channel));
  writer_.set_channels(channels);
  for (const EnvironmentFact& fact : options_.environment_facts) writer_.add(fact);
  for (const ChannelCalibration& calibration : options_.channel_calibrations) writer_.add(calibration);
  meter_.set_sample_callback([this](const Sample& sample) {
    ++result_.samples;
    writer_.add(sample);
  });
  meter_.prepare();
  add_clock_pair();
  read_cpu_times();
  meter_.begin();
  add_mark(MarkKind::command_begin, meter_.begin_ns());
  flush_recording();
  if (options_.on_recording_begun) {
    if (Status begun = options_.on_recording_begun(environment); !begun) return begun;
  }
  return command_.execute_command();
}

void RecordingSession::run() {
  std::int64_t next_tick_ns = meter_.begin_ns();
  while (!command_.has_ended()) {
    command_.wait_until(next_tick_ns);
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns < next_tick_ns) continue;
    meter_.sample();
    meter_.set_reading_every_update(part_folder_.is_probing_active());
    if (now_ns >= next_clock_pair_ns_) add_clock_pair();
    if (now_ns >= cpu_time_log_->next_read_ns()) read_cpu_times();
    if (now_ns >= next_flush_ns_) {
      flush_recording();
      report_status();
    }
    const std::int64_t period_ns = meter_.period_ns();
    next_tick_ns += ((now_ns - next_tick_ns) / period_ns + 1) * period_ns;
  }
}

RecordResult RecordingSession::finish() {
  meter_.end();
  add_mark(MarkKind::command_end, meter_.end_ns());
  cpu_time_log_->search_processes_at_next_read();
  add_clock_pair();
  read_cpu_times();
  meter_.set_sample_callback({});
  result_.command = make_stored_command(options_);
  result_.elapsed_s = meter_.elapsed_s();
  result_.energy = meter_.result();
  result_.overhead_cpu_s = meter_.overhead_cpu_s();
  result_.samplers = meter_.sampler_costs();
  RecordingEnd end;
  if (command_.exit_status()) {
    end.exit_code = result_.exit_code = command_.exit_status()->code;
    end.signal = result_.signal = command_.exit_status()->signal;
  }
  end.overhead_cpu_s = result_.overhead_cpu_s;
  for (const SamplerCost& cost : result_.samplers) {
    end.missed_ticks += cost.missed_ticks;
    end.lost_samples += cost.lost_samples;
  }
  end.diagnostics = result_.diagnostics;
  for (const SensorStatus& sensor : meter_.sensors()) end.diagnostics.add_all(sensor.diagnostics);
  const Status finish_status = writer_.finish(std::move(end));
  result_.lost_samples = writer_.lost_samples();
  result_.is_written = writer_.bytes_written() > 0;
  if (!finish_status)
    result_.diagnostics.add({"write_failed", 1, finish_status.error().message, "free space on that disk"});
  return std::move(result_);
}

// Reads and removes the trace files of framework profilers. Their content becomes a part of the recording, which is
// joined with the other parts.
void add_framework_traces(const recording::PartFolder& folder, const RecordOptions& options, RecordResult& result) {
  if (!options.read_framework_traces) return;
  FrameworkActivity traces =
      options.read_framework_traces(fmt::format("{}/{}", folder.path(), recording::kTracesFolderName));
  if (traces.activity.empty() && traces.diagnostics.empty()) return;
  Result<recording::RecordingWriter> writer = folder.open_additional_part("process");
  RecordingEnd end;
  end.diagnostics = traces.diagnostics;
  if (writer) writer->add(std::move(traces.activity));
  const Status finish_status = writer ? writer->finish(std::move(end)) : Status(std::move(writer).error());
  if (!finish_status) {
    result.diagnostics.add(
        {"write_failed", 1, finish_status.error().message, "free space on that disk; layers are missing"});
  }
  result.diagnostics.add_all(traces.diagnostics);
}

// Stores the kernel powers that the kernel library knows before this run, so that the run's reports do not change when
// the library later learns more.
void store_known_kernel_powers(const recording::PartFolder& folder, const RecordOptions& options,
                               RecordResult& result) {
  if (!options.find_known_kernel_powers) return;
  std::vector<KernelPower> powers = options.find_known_kernel_powers(folder.path(), result.diagnostics);
  if (powers.empty()) return;
  Result<recording::RecordingWriter> writer = folder.open_additional_part("process");
  if (writer) {
    for (KernelPower& kernel_power : powers) writer->add(std::move(kernel_power));
  }
  const Status finish_status = writer ? writer->finish({}) : Status(std::move(writer).error());
  if (!finish_status) {
    result.diagnostics.add({"write_failed", 1, finish_status.error().message,
                            "free space on that disk; priors of the kernel library are missing"});
  }
}

// Joins the parts into the recording file. Parts that could not be joined stay in the folder, where `report` also finds
// them.
void join_recording_parts(recording::PartFolder& folder, RecordResult& result) {
  Result<recording::JoinSummary> join_summary = folder.join();
  if (join_summary) {
    result.file = folder.file();
    result.file_bytes = join_summary->bytes;
    result.diagnostics.add_all(join_summary->diagnostics);
    return;
  }
  result.file = folder.path();
  result.diagnostics.add({"not_joined", 1, join_summary.error().message,
                          fmt::format("joulemap report {} reads the parts in {}", folder.file(), folder.path())});
}

}  // namespace

Result<RecordResult> record_command(sampling::Meter& meter, const RecordOptions& options) {
  Result<BlockedSignals> signals = BlockedSignals::open();
  if (!signals) return std::move(signals).error();
  Result<recording::PartFolder> folder =
      recording::PartFolder::create(options.output_file, make_stored_command(options), options.recording_id);
  if (!folder) return std::move(folder).error();
  Result<recording::RecordingWriter> writer = folder->open_part("recorder");
  if (!writer) {
    folder->remove();
    return std::move(writer).error();
  }
  if (!options.attached_pid) become_subreaper();
  RecordingSession recorder(meter, options, *signals, *folder, std::move(*writer));
  if (Status start_status = recorder.start(); !start_status) {
    folder->remove();
    return std::move(start_status).error();
  }
  const Status rename_status = folder->rename_older_recording();
  recorder.run();
  RecordResult result = recorder.finish();
  if (!rename_status)
    result.diagnostics.add({"older_not_kept", 1, rename_status.error().message, rename_status.error().remedy});
  add_framework_traces(*folder, options, result);
  store_known_kernel_powers(*folder, options, result);
  join_recording_parts(*folder, result);
  return result;
}

}  // namespace joulemap::session
