// SPDX-License-Identifier: Apache-2.0
//
// Reads one recording of every format version, tests/data/recordings/v<major>.<minor>.joule, and compares its content
// with a text file. These files are never regenerated. For a new version, create new files: run this test once with
// JOULEMAP_UPDATE_GOLDENS=1.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "recording/chunk.h"
#include "recording/recording_parts.h"
#include "recording/recording_writer.h"
#include "support/recording_dump.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::recording {
namespace {

std::vector<Channel> golden_channels() {
  std::vector<Channel> channels = make_recorded_channels(2);
  Channel& gauge = channels.emplace_back(make_recorded_channel("gpu0-power"));
  gauge.sensor = "nvml";
  gauge.device = "GPU-5a1e";
  gauge.domain = "gpu0";
  gauge.domain_class = DomainClass::gpu;
  gauge.kind = ChannelKind::gauge;
  gauge.quantity = Quantity::power;
  gauge.scale = 0.001;
  gauge.wrap_range.reset();
  gauge.refresh_s = 0.1;
  gauge.averaging_time_s = 1;
  return channels;
}

void write_recorder(const std::string& folder) {
  const RecordingSource source = make_recording_source(4711);
  RecordingWriter writer = *RecordingWriter::create(recording_part_path(folder, source), source);
  writer.set_channels(golden_channels());
  writer.add(EnvironmentFact{"governor", "performance"});
  ChannelCalibration calibration;
  calibration.channel = "gpu0-power";
  calibration.device = "GPU-5a1e";
  calibration.driver = "580.1";
  calibration.refresh_s = 0.1;
  calibration.idle_w = 55.25;
  calibration.created_unix_ns = 1'750'000'000'000'000'000;
  writer.add(calibration);
  writer.add(KernelPower{
      "NVIDIA H200", {KernelKind::kernel, "_Z4gemmPf", 14}, 128, 128, 3.2e-05, 512.5, 1600, 1280000, 2.5, 12.5, 2});
  writer.add(KernelPower{"NVIDIA H200", {KernelKind::copy, "HtoD", 1}, 1, 1, 6.4e-05, 210, 16, 256, 0, 0, 0});
  std::uint64_t quanta = 1'000'000;
  for (std::int64_t tick = 0; tick < 60; ++tick) {
    const std::int64_t late_ns = tick * tick * 7919 % 50'000;
    for (std::uint32_t channel = 0; channel < 2; ++channel) {
      Sample sample = make_recorded_sample(channel, tick);
      quanta += 40'960 + static_cast<std::uint64_t>(tick * 131 % 512);
      sample.reading.raw = channel == 0 ? quanta * 61035 / 1000 : quanta << 18;
      sample.reading.before_ns += late_ns;
      sample.reading.after_ns += late_ns + 1700;
      if (tick == 33) sample.reading = {0, sample.reading.before_ns, sample.reading.after_ns, ReadCode::denied};
      writer.add(sample);
    }
    Sample gauge = make_recorded_sample(2, tick);
    gauge.reading.raw = 300'000 + static_cast<std::uint64_t>(tick / 10 * 1234);
    writer.add(gauge);
    if (tick % 20 == 19) {
      writer.add(ClockPair{gauge.reading.after_ns, 1'760'000'000'000'000'000 + tick});
      EXPECT_TRUE(writer.flush());
    }
  }
  RecordingEnd end;
  end.exit_code = 0;
  end.overhead_cpu_s = 0.125;
  end.missed_ticks = 1;
  end.diagnostics.add({"sensor_denied", 2, "powercap: permission denied", "chmod"});
  EXPECT_TRUE(writer.finish(end));
}

Activity golden_activity() {
  Activity activity;
  activity.begin_ns = 1'100'000'000;
  activity.end_ns = 3'800'000'000;
  activity.scopes = {
      {1, 0, ScopeKind::mode, "train"}, {2, 1, ScopeKind::phase, "forward"}, {3, 2, ScopeKind::module, "fc"}};
  activity.classes = {{0, KernelKind::kernel, "_Z4gemmPf", {64, 2, 1}, {128, 1, 1}},
                      {1, KernelKind::copy, "HtoD", {}, {}}};
  activity.queues = {{0, "GPU-5a1e", 0, 1, 7}};
  activity.scope_tallies = {{0, 0, 0, 32'000'000, 16'000'000, 0}, {3, 30, 2, 1'600'000'000, 800'000'000, 32'000}};
  activity.kernel_tallies = {{0, 0, 3, 30, 960'000}, {1, 0, 0, 1, 64'000}};
  for (std::int64_t step = 0; step < 30; ++step) {
    const std::int64_t begin_ns = 1'100'000'000 + step * 90'000'032;
    activity.steps.push_back({step, begin_ns, begin_ns + 90'000'032, 0x1234'5678'9abc'def1, 1, 32'000, true, step < 3});
    const auto correlation = static_cast<std::uint32_t>(100 + step * 3);
    const std::int64_t start_ns = begin_ns + 6'400 + step % 5 * 32;
    if (step < 3) activity.kernels.push_back({start_ns, start_ns + 32'000 + step * 32, 0, 0, 3, correlation, 0});
  }
  activity.kernels.push_back({1'500'000'000, 1'500'064'000, 1, 0, 0, 7, 4096});
  activity.shares = {{1, 3, 5, 640'000}};
  return activity;
}

EngineSteps golden_engine_steps() {
  EngineSteps engine;
  engine.requests = {{0, "chat-7", "acme", "llama"}, {1, "chat-8", "", ""}};
  engine.steps = {{1'200'000'000, 1'240'000'000, 1},
                  {1'240'100'000, 1'262'000'000, 2},
                  {1'262'100'000, 1'280'000'123, 2},
                  {1'300'000'000, 1'300'000'000, 1}};
  engine.entries = {{0, 512, 64, 0, 0, 576, 0},
                    {0, 100, 0, 1, 0, 677, 0},
                    {1, 32, 0, 1, 0, 33, kRequestPreempted},
                    {0, 0, 0, 2, 3, 679, kRequestFinished},
                    {1, 33, 0, 1, 0, 34, 0},
                    {1, 0, 0, 0, 0, 34, kRequestAborted}};
  return engine;
}

void write_process(const std::string& folder) {
  RecordingSource source = make_recording_source(4712);
  source.role = "process";
  source.command.clear();
  RecordingWriter writer = *RecordingWriter::create(recording_part_path(folder, source), source);
  for (std::uint64_t step = 0; step < 30; ++step) {
    const auto time_ns = static_cast<std::int64_t>(1'100'000'000 + step * 90'000'017);
    writer.add(Mark{time_ns, MarkKind::step, step, 4712, "train"});
    writer.add(Metric{time_ns, static_cast<std::int64_t>(step), "loss", 2.5 / static_cast<double>(step + 1)});
  }
  writer.add(Mark{-5, MarkKind::command_begin, 18'000'000'000'000'000'000u, 1, "\xC3\xA9poque"});
  writer.add(Mark{1'500'000'000, MarkKind::evaluation, 2, 4712, ""});
  writer.add(Mark{1'500'000'001, MarkKind::step_retraction, 1, 4712, ""});
  writer.add(Mark{1'500'000'002, MarkKind::epoch_retraction, 3, 4712, ""});
  writer.add(Metric{7, std::nullopt, "accuracy", -0.5});
  writer.add(golden_engine_steps());
  writer.add(golden_activity());
  EXPECT_TRUE(writer.flush());  // no end chunk: the process was killed
}

std::string make_golden() {
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/parts";
  const std::string path = directory.path() + "/golden.joule";
  std::filesystem::create_directory(folder);
  write_recorder(folder);
  write_process(folder);
  EXPECT_TRUE(join_parts(folder, path));
  return file_bytes(path);
}

std::string dump(const std::string& bytes) {
  RecordingDump dump;
  MemorySource source(bytes);
  const Result<RecordingSummary> summary = read_recording(source, "golden", dump);
  EXPECT_TRUE(summary);
  return dump.text();
}

std::string golden_path(int minor, const char* ending) {
  return fmt::format("{}/v{}.{}.{}", JOULEMAP_RECORDINGS, int{kFormatMajor}, minor, ending);
}

TEST(RecordingGolden, ReadsEveryVersionAsBefore) {
  const std::string newest_path = golden_path(kFormatMinor, "joule");
  if (std::getenv("JOULEMAP_UPDATE_GOLDENS") != nullptr && !std::filesystem::exists(newest_path)) {
    const std::string bytes = make_golden();
    std::ofstream(newest_path, std::ios::binary) << bytes;
    std::ofstream(golden_path(kFormatMinor, "txt"), std::ios::binary) << dump(bytes);
  }
  for (int minor = 0; minor <= kFormatMinor; ++minor) {
    const std::string bytes = file_bytes(golden_path(minor, "joule"));
    ASSERT_FALSE(bytes.empty()) << "the recording of version 1." << minor << " is missing";
    EXPECT_EQ(dump(bytes), file_bytes(golden_path(minor, "txt")));
  }
}

TEST(RecordingGolden, TheCurrentWriterWritesTheSameContent) {
  EXPECT_EQ(dump(make_golden()), file_bytes(golden_path(kFormatMinor, "txt")));
}

}  // namespace
}  // namespace joulemap::recording
