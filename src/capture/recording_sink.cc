// SPDX-License-Identifier: Apache-2.0
#include "capture/recording_sink.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "recording/part_folder.h"
#include "recording/recording_parts.h"
#include "recording/recording_writer.h"

namespace joulemap::capture {
namespace {

class RecordingSink final : public CaptureSink {
 public:
  explicit RecordingSink(recording::RecordingWriter writer) : writer_(std::move(writer)) {}

  void add(Mark mark) override { writer_.add(std::move(mark)); }
  void add(Metric metric) override { writer_.add(std::move(metric)); }
  void add(EnvironmentFact fact) override { writer_.add(std::move(fact)); }
  void add(Activity activity) override { writer_.add(std::move(activity)); }
  void add(EngineSteps steps) override { writer_.add(steps); }

  // Writes nothing when nothing was added since the last flush.
  Status flush() override {
    if (writer_.pending_item_count() == 0) return Done{};
    writer_.add(ClockPair{monotonic_ns(), unix_ns()});
    return writer_.flush();
  }

  Status finish(Diagnostics diagnostics) override {
    RecordingEnd end;
    end.diagnostics = std::move(diagnostics);
    return writer_.finish(std::move(end));
  }

 private:
  recording::RecordingWriter writer_;
};

std::string read_environment_variable(std::string_view name) {
  const char* const value = ::secure_getenv(std::string(name).c_str());
  return value == nullptr ? std::string() : std::string(value);
}

// The rank from the variables of torchrun, Open MPI, MPICH and Slurm. JOULEMAP_RANK comes first: a program that got its
// rank in another way passes it to its children in this variable.
std::string rank_of_this_process() {
  if (std::string joulemap_rank = read_environment_variable("JOULEMAP_RANK"); !joulemap_rank.empty())
    return joulemap_rank;
  if (!read_environment_variable("WORLD_SIZE").empty()) return read_environment_variable("RANK");
  for (const std::string_view name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (std::string rank = read_environment_variable(name); !rank.empty()) return rank;
  }
  // Every Slurm job sets SLURM_PROCID, even a job with a single task.
  const std::string tasks = read_environment_variable("SLURM_NTASKS");
  return tasks.empty() || tasks == "1" ? std::string() : read_environment_variable("SLURM_PROCID");
}

}  // namespace

std::unique_ptr<CaptureSink> open_recording_sink() {
  const std::string folder = read_environment_variable(recording::kRecordingFolderVariable);
  const std::string id = read_environment_variable(recording::kRecordingIdVariable);
  if (folder.empty() || id.empty()) return nullptr;
  const RecordingSource source = recording::describe_this_process(id, "process");
  Result<recording::RecordingWriter> writer =
      recording::RecordingWriter::create(recording::recording_part_path(folder, source), source);
  if (!writer) {
    fmt::print(stderr, "joulemap: process {} is not recorded: {}\n", source.pid, writer.error().message);
    return nullptr;
  }
  if (std::string rank = rank_of_this_process(); !rank.empty())
    writer->add(EnvironmentFact{std::string(recording::kRankFactName), std::move(rank)});
  return std::make_unique<RecordingSink>(std::move(*writer));
}

}  // namespace joulemap::capture
