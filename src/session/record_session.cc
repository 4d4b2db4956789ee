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
constexpr std::int64_t kFlushPeriod_ns = 900 * kNanosecondsPerMillisecond;
constexpr std::int64_t kClockPeriod_ns = kNanosecondsPerSecond;

std::vector<std::string> written_command(const RecordOptions& options) {
  return options.keep_arguments ? options.command : redacted_arguments(options.command);
}

// One recording, from the first sample to the last.
class Recorder {
 public:
  Recorder(sampling::Meter& meter, const RecordOptions& options, BlockedSignals& signals, recording::PartFolder& folder,
           recording::RecordingWriter writer)
      : meter_(meter),
        options_(options),
        folder_(folder),
        writer_(std::move(writer)),
        command_(signals),
        steps_(folder.path()) {}

  Status start();
  void run();
  RecordResult finish();

 private:
  void flush();
  void report_status();
  void update_energy_per_step(LiveStatus& now);
  void pair_clocks();
  void read_cpu_times();
  void mark(MarkKind kind, std::int64_t time_ns);

  sampling::Meter& meter_;
  const RecordOptions& options_;
  recording::PartFolder& folder_;
  recording::RecordingWriter writer_;
  MeasuredCommand command_;
  std::optional<CpuTimeLog> cpu_times_;
  RecordResult result_;
  std::int64_t next_flush_ns_ = 0;
  std::optional<LiveStatus> updated_status_;  // the last one whose energy differs from the one before
  std::optional<LiveStatus> first_status_with_steps_;
  std::uint64_t shown_steps_ = 0;
  std::optional<double> step_j_;
  recording::LiveSteps steps_;
  std::int64_t next_clock_ns_ = 0;
};

void Recorder::mark(MarkKind kind, std::int64_t time_ns) {
  Mark mark;
  mark.kind = kind;
  mark.time_ns = time_ns;
  writer_.add(std::move(mark));
}

void Recorder::pair_clocks() {
  writer_.add(ClockPair{monotonic_ns(), unix_ns()});
  next_clock_ns_ = monotonic_ns() + kClockPeriod_ns;
}

void Recorder::read_cpu_times() {
  for (const Sample& sample : cpu_times_->read()) writer_.add(sample);
}

// A failed write becomes a diagnostic: it must not stop the command.
void Recorder::flush() {
  const Status written = writer_.flush();
  if (!written) {
    result_.diagnostics.add({"write_failed", 1, written.error().message,
                             "free space on that disk; unwritten data is missing from the recording"});
  }
  next_flush_ns_ = monotonic_ns() + kFlushPeriod_ns;
}

void Recorder::report_status() {
  if (!options_.on_status) return;
  LiveStatus now;
  now.elapsed_s = static_cast<double>(monotonic_ns() - meter_.begin_ns()) * 1e-9;
  now.steps = steps_.count();
  if (const auto energy = preferred_energy(total_energy(meter_.energy_so_far()))) {
    now.energy_j = energy->joules;
    now.is_estimated = energy->provenance == Provenance::estimated;
    // A sensor that has no new value since the last status does not show a power of 0.
    const bool is_updated = !updated_status_ || *now.energy_j != *updated_status_->energy_j;
    if (!is_updated) {
      now.power_w = updated_status_->power_w;
    } else if (updated_status_ && now.elapsed_s > updated_status_->elapsed_s) {
      now.power_w = (*now.energy_j - *updated_status_->energy_j) / (now.elapsed_s - updated_status_->elapsed_s);
    }
    if (is_updated) updated_status_ = now;
    update_energy_per_step(now);
  }
  options_.on_status(now);
}

// From the status that first showed a step to the one that first showed the latest step, so that a long step which is
// half done does not count as none.
void Recorder::update_energy_per_step(LiveStatus& now) {
  if (now.steps > 0 && !first_status_with_steps_) first_status_with_steps_ = now;
  if (now.steps != shown_steps_ && first_status_with_steps_ && now.steps > first_status_with_steps_->steps) {
    step_j_ = (*now.energy_j - *first_status_with_steps_->energy_j) /
              static_cast<double>(now.steps - first_status_with_steps_->steps);
  }
  shown_steps_ = now.steps;
  now.step_j = step_j_;
}

Status Recorder::start() {
  std::vector<std::string> environment = folder_.environment();
  environment.insert(environment.end(), options_.variables.begin(), options_.variables.end());
  Status ready =
      options_.attached_pid ? command_.attach(*options_.attached_pid) : command_.prepare(options_.command, environment);
  if (!ready) return ready;
  result_.diagnostics = options_.diagnostics;
  folder_.add_lock_diagnostics(result_.diagnostics);
  std::vector<Channel> channels(meter_.channels().begin(), meter_.channels().end());
  cpu_times_.emplace(static_cast<std::uint32_t>(channels.size()), options_.attached_pid);
  for (Channel& channel : CpuTimeLog::channels()) channels.push_back(std::move(channel));
  writer_.set_channels(channels);
  for (const EnvironmentFact& fact : options_.environment) writer_.add(fact);
  for (const ChannelCalibration& known : options_.calibration) writer_.add(known);
  meter_.set_sample_callback([this](const Sample& sample) {
    ++result_.samples;
    writer_.add(sample);
  });
  meter_.prepare();
  pair_clocks();
  read_cpu_times();
  meter_.begin();
  mark(MarkKind::command_begin, meter_.begin_ns());
  flush();
  if (options_.on_begun) {
    if (Status begun = options_.on_begun(environment); !begun) return begun;
  }
  return command_.release();
}

void Recorder::run() {
  std::int64_t next_tick_ns = meter_.begin_ns();
  while (!command_.ended()) {
    command_.wait_until(next_tick_ns);
    const std::int64_t now_ns = monotonic_ns();
    if (now_ns < next_tick_ns) continue;
    meter_.sample();
    meter_.read_every_update(folder_.is_probing_active());
    if (now_ns >= next_clock_ns_) pair_clocks();
    if (now_ns >= cpu_times_->next_read_ns()) read_cpu_times();
    if (now_ns >= next_flush_ns_) {
      flush();
      report_status();
    }
    const std::int64_t period_ns = meter_.period_ns();
    next_tick_ns += ((now_ns - next_tick_ns) / period_ns + 1) * period_ns;
  }
}

RecordResult Recorder::finish() {
  meter_.end();
  mark(MarkKind::command_end, meter_.end_ns());
  cpu_times_->force_search();
  pair_clocks();
  read_cpu_times();
  meter_.set_sample_callback({});
  result_.command = written_command(options_);
  result_.elapsed_s = meter_.elapsed_s();
  result_.energy = meter_.result();
  result_.overhead_cpu_s = meter_.overhead_cpu_s();
  result_.samplers = meter_.costs();
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
  const Status ended = writer_.finish(std::move(end));
  result_.lost_samples = writer_.lost_samples();
  result_.is_written = writer_.bytes_written() > 0;
  if (!ended) result_.diagnostics.add({"write_failed", 1, ended.error().message, "free space on that disk"});
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
  const Status written = writer ? writer->finish(std::move(end)) : Status(std::move(writer).error());
  if (!written) {
    result.diagnostics.add({"write_failed", 1, written.error().message, "free space on that disk; layers are missing"});
  }
  result.diagnostics.add_all(traces.diagnostics);
}

// Stores the kernel powers that the kernel library knows before this run, so that the run's reports do not change when
// the library later learns more.
void store_known_powers(const recording::PartFolder& folder, const RecordOptions& options, RecordResult& result) {
  if (!options.known_powers) return;
  std::vector<KernelPower> powers = options.known_powers(folder.path(), result.diagnostics);
  if (powers.empty()) return;
  Result<recording::RecordingWriter> writer = folder.open_additional_part("process");
  if (writer) {
    for (KernelPower& known : powers) writer->add(std::move(known));
  }
  const Status written = writer ? writer->finish({}) : Status(std::move(writer).error());
  if (!written) {
    result.diagnostics.add({"write_failed", 1, written.error().message,
                            "free space on that disk; priors of the kernel library are missing"});
  }
}

// Joins the parts into the recording file. Parts that could not be joined stay in the folder, where `report` also finds
// them.
void join(recording::PartFolder& folder, RecordResult& result) {
  Result<recording::JoinSummary> joined = folder.join();
  if (joined) {
    result.file = folder.file();
    result.file_bytes = joined->bytes;
    result.diagnostics.add_all(joined->diagnostics);
    return;
  }
  result.file = folder.path();
  result.diagnostics.add({"not_joined", 1, joined.error().message,
                          fmt::format("joulemap report {} reads the parts in {}", folder.file(), folder.path())});
}

}  // namespace

Result<RecordResult> record(sampling::Meter& meter, const RecordOptions& options) {
  Result<BlockedSignals> signals = BlockedSignals::open();
  if (!signals) return std::move(signals).error();
  Result<recording::PartFolder> folder =
      recording::PartFolder::create(options.file, written_command(options), options.recording_id);
  if (!folder) return std::move(folder).error();
  Result<recording::RecordingWriter> writer = folder->open_part("recorder");
  if (!writer) {
    folder->remove();
    return std::move(writer).error();
  }
  if (!options.attached_pid) become_subreaper();
  Recorder recorder(meter, options, *signals, *folder, std::move(*writer));
  if (Status started = recorder.start(); !started) {
    folder->remove();
    return std::move(started).error();
  }
  const Status renamed = folder->rename_older_recording();
  recorder.run();
  RecordResult result = recorder.finish();
  if (!renamed) result.diagnostics.add({"older_not_kept", 1, renamed.error().message, renamed.error().remedy});
  add_framework_traces(*folder, options, result);
  store_known_powers(*folder, options, result);
  join(*folder, result);
  return result;
}

}  // namespace joulemap::session
