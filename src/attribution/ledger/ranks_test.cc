// SPDX-License-Identifier: Apache-2.0
//
// Distributed runs, from the files to the rows: machines with their own clocks, and one process per rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "attribution/analysis/report_builder.h"
#include "base/clock.h"
#include "recording/part_folder.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kRunLength_s = 10;
constexpr double kGpu_w = 300;
constexpr double kPackage_w = 100;

struct ClusterNode {
  std::string host;
  std::string boot;
  std::int64_t begin_ns;  // of the command, CLOCK_MONOTONIC of this machine
  int first_rank;
  int ranks;      // one GPU and one process each
  int steps = 5;  // recorded by each rank
  int exit_code = 0;
  bool is_estimated = false;  // has no sensors: its energy is estimated
};

Channel gpu_channel(const std::string& boot, int gpu) {
  Channel channel = make_recorded_channel(fmt::format("gpu{}", gpu));
  channel.sensor = "nvml";
  channel.domain_class = DomainClass::gpu;
  channel.device = fmt::format("GPU-{}-{}", boot, gpu);
  return channel;
}

std::string write_recorder(const TemporaryDirectory& folder, const ClusterNode& machine, std::int64_t pid = 100) {
  RecordingSource source = make_recording_source(pid);
  source.host = machine.host;
  source.boot_id = machine.boot;
  const std::string path = folder.path() + fmt::format("/{}-{}.joule", machine.boot, pid);
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(path, source, 0);
  EXPECT_TRUE(writer);
  std::vector<Channel> channels = {make_recorded_channel("package-0")};
  channels[0].domain_class = DomainClass::cpu;
  for (int gpu = 0; gpu < machine.ranks; ++gpu) channels.push_back(gpu_channel(machine.boot, gpu));
  for (Channel& channel : channels) {
    if (machine.is_estimated) channel.provenance = Provenance::estimated;
  }
  writer->set_channels(channels);
  const std::int64_t end_ns = machine.begin_ns + kRunLength_s * kNanosecondsPerSecond;
  writer->add(Mark{machine.begin_ns, MarkKind::command_begin, 0, 0, {}});
  writer->add(Mark{end_ns, MarkKind::command_end, 0, 0, {}});
  for (std::int64_t now_ns = machine.begin_ns - kNanosecondsPerSecond; now_ns <= end_ns + kNanosecondsPerSecond;
       now_ns += kNanosecondsPerSecond / 20) {
    const double since_s = static_cast<double>(now_ns - machine.begin_ns + kNanosecondsPerSecond) * 1e-9;
    for (std::uint32_t channel = 0; channel < channels.size(); ++channel) {
      const auto raw_counter_value = static_cast<std::uint64_t>((channel == 0 ? kPackage_w : kGpu_w) * since_s * 1e6);
      writer->add(Sample{channel, {raw_counter_value, now_ns, now_ns, ReadCode::ok}});
    }
  }
  RecordingEnd end;
  end.exit_code = machine.exit_code;
  EXPECT_TRUE(writer->finish(std::move(end)));
  return path;
}

// Writes the file of one rank, which keeps a CPU busy with one layer all the time, and its GPU half of the time.
std::string write_rank_recording(const TemporaryDirectory& folder, const ClusterNode& machine, int local_rank,
                                 std::int64_t pid = 200) {
  RecordingSource source = make_recording_source(pid + local_rank);
  source.started_ns = machine.begin_ns + kNanosecondsPerSecond / 2;
  source.role = "process";
  source.host = machine.host;
  source.boot_id = machine.boot;
  const std::string path = folder.path() + fmt::format("/{}-rank{}.joule", machine.boot, source.pid);
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(path, source, 0);
  EXPECT_TRUE(writer);
  writer->add(EnvironmentFact{std::string(recording::kRankFactName), std::to_string(machine.first_rank + local_rank)});
  for (int step = 0; step < machine.steps; ++step) {
    const std::int64_t time_ns = machine.begin_ns + step * kRunLength_s * kNanosecondsPerSecond / machine.steps;
    writer->add(Mark{time_ns, MarkKind::step, static_cast<std::uint64_t>(step), 0, {}});
  }
  for (std::int64_t elapsed_s = 0; elapsed_s < kRunLength_s; ++elapsed_s) {
    Activity activity;
    if (elapsed_s == 0) {
      activity.scopes = {
          {1, 0, ScopeKind::mode, "train"}, {2, 1, ScopeKind::phase, "forward"}, {3, 2, ScopeKind::module, "conv"}};
      activity.classes = {{0, KernelKind::kernel, "gemm", {}, {}}};
      activity.queues = {{0, gpu_channel(machine.boot, local_rank).device, 0, 1, 7}};
    }
    activity.begin_ns = machine.begin_ns + elapsed_s * kNanosecondsPerSecond;
    activity.end_ns = activity.begin_ns + kNanosecondsPerSecond;
    activity.scope_tallies = {{3, 1, 0, kNanosecondsPerSecond, kNanosecondsPerSecond, 0}};
    activity.kernel_tallies = {{0, 0, 3, 10, kNanosecondsPerSecond / 2}};
    writer->add(std::move(activity));
  }
  EXPECT_TRUE(writer->finish({}));
  return path;
}

std::vector<std::string> write_run(const TemporaryDirectory& folder, const std::vector<ClusterNode>& machines) {
  std::vector<std::string> files;
  for (const ClusterNode& machine : machines) {
    files.push_back(write_recorder(folder, machine));
    for (int local_rank = 0; local_rank < machine.ranks; ++local_rank)
      files.push_back(write_rank_recording(folder, machine, local_rank));
  }
  return files;
}

ReportResult build_expected_report(std::span<const std::string> files, RowLevel level) {
  const Result<ReportResult> result = build_report(files, {level, AttributionMode::integral});
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : ReportResult();
}

const ReportRow* find(const ReportResult& result, const std::vector<std::string>& path, const std::string& device) {
  for (const ReportRow& row : result.rows) {
    if (row.path == path && row.device == device) return &row;
  }
  return nullptr;
}

void expect_consistent_ledger(const ReportResult& result) {
  std::set<std::pair<std::vector<std::string>, std::string>> keys;
  double rows_j = 0;
  double shares = 0;
  for (const ReportRow& row : result.rows) {
    EXPECT_TRUE(keys.emplace(row.path, row.device).second) << row.name << " on " << row.device << " twice";
    rows_j += row.energy_j.value_or(0);
    shares += row.share.value_or(0);
  }
  std::set<std::string> domains;
  for (const DomainEnergy& domain : result.domains) EXPECT_TRUE(domains.insert(domain.name).second) << domain.name;
  ASSERT_TRUE(joules_of(result.totals.measured) && result.attributed_j);
  EXPECT_NEAR(rows_j, *result.attributed_j, 1e-6);
  EXPECT_NEAR(shares, 1, 1e-6);
  EXPECT_NEAR(*result.attributed_j + *result.idle_j + *result.unattributed_j, *joules_of(result.totals.measured), 1);
}

const std::vector<ClusterNode> kTwoMachines = {{"node-1", "boot-a", 50 * kNanosecondsPerSecond, 0, 2},
                                               {"node-2", "boot-b", 90'000 * kNanosecondsPerSecond, 2, 1}};
constexpr double kTotal_j = kRunLength_s * (2 * kPackage_w + 3 * kGpu_w);

TEST(Ranks, OfOneMachineMakeOneRowPerPathAndDevice) {
  const TemporaryDirectory folder;
  const ReportResult layers = build_expected_report(write_run(folder, {kTwoMachines[0]}), RowLevel::layer);
  expect_consistent_ledger(layers);
  EXPECT_EQ(layers.rows.size(), 3u);  // the CPUs together, and two GPUs
  EXPECT_NEAR(find(layers, {"train", "forward", "conv"}, "cpu")->energy_j.value_or(0), kRunLength_s * kPackage_w, 10);
  EXPECT_EQ(find(layers, {"train", "forward", "conv"}, "cpu")->count, 20u);
  EXPECT_NEAR(find(layers, {"train", "forward", "conv"}, "gpu1")->energy_j.value_or(0), kRunLength_s * kGpu_w / 2, 20);
  EXPECT_EQ(layers.steps, 5u);  // merged over ranks
}

TEST(Ranks, OfTwoMachinesHaveSeparateDevices) {
  const TemporaryDirectory folder;
  const std::vector<std::string> files = write_run(folder, kTwoMachines);
  for (const RowLevel level : {RowLevel::domain, RowLevel::phase, RowLevel::layer, RowLevel::kernel, RowLevel::rank}) {
    SCOPED_TRACE(row_level_name(level));
    const ReportResult result = build_expected_report(files, level);
    expect_consistent_ledger(result);
    EXPECT_NEAR(*joules_of(result.totals.measured), kTotal_j, 0.01 * kTotal_j);
  }
  const ReportResult layers = build_expected_report(files, RowLevel::layer);
  std::set<std::string> devices;
  for (const ReportRow& row : layers.rows) devices.insert(row.device);
  EXPECT_EQ(devices, (std::set<std::string>{"node-1/cpu", "node-1/gpu0", "node-1/gpu1", "node-2/cpu", "node-2/gpu0"}));
  EXPECT_EQ(layers.hosts, (std::vector<std::string>{"node-1", "node-2"}));
}

TEST(Ranks, OfAMachineWithoutSensorsAreNotAddedToMeasuredOnes) {
  const TemporaryDirectory folder;
  std::vector<ClusterNode> machines = kTwoMachines;
  machines[1].is_estimated = true;
  const std::vector<std::string> files = write_run(folder, machines);
  for (const RowLevel level : {RowLevel::domain, RowLevel::phase, RowLevel::layer, RowLevel::kernel, RowLevel::step}) {
    SCOPED_TRACE(row_level_name(level));
    const ReportResult result = build_expected_report(files, level);
    const double measured_j = joules_of(result.totals.measured).value_or(0);
    EXPECT_NEAR(measured_j, kRunLength_s * (kPackage_w + 2 * kGpu_w), 0.01 * measured_j);
    EXPECT_NEAR(joules_of(result.totals.estimated).value_or(0), kRunLength_s * (kPackage_w + kGpu_w),
                0.01 * measured_j);
    EXPECT_NEAR(*result.attributed_j + *result.idle_j + *result.unattributed_j, measured_j, 1);
    EXPECT_TRUE(result.diagnostics.contains("estimates_not_added"));
  }
}

TEST(Ranks, HaveOneShareEach) {
  const TemporaryDirectory folder;
  const ReportResult ranks = build_expected_report(write_run(folder, kTwoMachines), RowLevel::rank);
  const ReportRow* const rank0_gpu_row = find(ranks, {"rank 0"}, "node-1/gpu0");
  const ReportRow* const on_cpu = find(ranks, {"rank 1"}, "node-1/cpu");
  const ReportRow* const rank2_cpu_row = find(ranks, {"rank 2"}, "node-2/cpu");
  ASSERT_TRUE(rank0_gpu_row != nullptr && on_cpu != nullptr && rank2_cpu_row != nullptr);
  EXPECT_NEAR(rank0_gpu_row->energy_j.value_or(0), kRunLength_s * kGpu_w / 2, 20);
  EXPECT_EQ(rank0_gpu_row->count, 1u);
  EXPECT_NEAR(on_cpu->energy_j.value_or(0), kRunLength_s * kPackage_w / 2, 10);  // two ranks share a package
  EXPECT_NEAR(rank2_cpu_row->energy_j.value_or(0), kRunLength_s * kPackage_w, 10);
}

TEST(Ranks, WithTheSameStepNumberShareAStepDespiteClockOffsets) {
  const TemporaryDirectory folder;
  std::vector<ClusterNode> machines = kTwoMachines;
  machines[1].steps = 4;  // slower: 4 steps of 2.5 s instead of 5 of 2 s
  const ReportResult steps = build_expected_report(write_run(folder, machines), RowLevel::step);
  expect_consistent_ledger(steps);
  ASSERT_EQ(steps.rows.size(), 5u);
  EXPECT_NEAR(steps.rows[0].energy_j.value_or(0), 2 * (kPackage_w + 2 * kGpu_w) + 2.5 * (kPackage_w + kGpu_w), 20);
  EXPECT_NEAR(steps.rows[0].time_s, 2.5, 1e-3);  // of the slower machine
  EXPECT_NEAR(steps.rows[4].energy_j.value_or(0), 2 * (kPackage_w + 2 * kGpu_w), 20);
  EXPECT_EQ(steps.steps, 5u);
}

TEST(Ranks, OfMachinesWithTheSameNameAreDistinguished) {
  const TemporaryDirectory folder;
  std::vector<ClusterNode> machines = kTwoMachines;
  machines[1].host = "node-1";
  const ReportResult result = build_expected_report(write_run(folder, machines), RowLevel::kernel);
  expect_consistent_ledger(result);
  EXPECT_NE(find(result, {"gemm"}, "node-1:0/gpu0"), nullptr);
  EXPECT_NE(find(result, {"gemm"}, "node-1:1/gpu0"), nullptr);
}

TEST(Ranks, ThatFailOnOneMachineFailTheRun) {
  const TemporaryDirectory folder;
  std::vector<ClusterNode> machines = kTwoMachines;
  machines[0].exit_code = 3;
  EXPECT_EQ(build_expected_report(write_run(folder, machines), RowLevel::domain).exit_code, 3);
}

TEST(Ranks, OfAMachineWithTwoSamplersAreMeasuredOnce) {
  const TemporaryDirectory folder;
  std::vector<std::string> files = write_run(folder, {kTwoMachines[0]});
  const double single_recorder_j =
      joules_of(build_expected_report(files, RowLevel::domain).totals.measured).value_or(0);
  ClusterNode second_recorder = kTwoMachines[0];
  second_recorder.begin_ns += kNanosecondsPerSecond / 10;  // two ranks that each started a recorder
  files.push_back(write_recorder(folder, second_recorder, 101));
  for (const RowLevel level : {RowLevel::domain, RowLevel::layer, RowLevel::rank}) {
    const ReportResult result = build_expected_report(files, level);
    EXPECT_NEAR(joules_of(result.totals.measured).value_or(0), single_recorder_j, 1e-3 * single_recorder_j)
        << row_level_name(level);
    EXPECT_TRUE(result.diagnostics.contains("duplicate_samples"));
    expect_consistent_ledger(result);
    EXPECT_EQ(result.domains.front().name, "package-0");
  }
}

TEST(Ranks, OfAMachineRecordedTwiceInARowAreSummed) {
  const TemporaryDirectory folder;
  ClusterNode later_recording = kTwoMachines[0];
  later_recording.begin_ns += 100 * kNanosecondsPerSecond;
  std::vector<std::string> files = write_run(folder, {kTwoMachines[0]});
  const double single_recording_j = build_expected_report(files, RowLevel::layer).attributed_j.value_or(0);
  files.push_back(write_recorder(folder, later_recording, 101));
  files.push_back(write_rank_recording(folder, later_recording, 0, 301));
  const ReportResult combined_report = build_expected_report(files, RowLevel::layer);
  EXPECT_GT(combined_report.attributed_j.value_or(0), 1.4 * single_recording_j);
  EXPECT_EQ(combined_report.rows.size(), 3u);
  EXPECT_EQ(find(combined_report, {"train", "forward", "conv"}, "cpu")->count, 30u);
}

TEST(Ranks, AreEmptyWithoutRankInformation) {
  const TemporaryDirectory folder;
  std::vector<std::string> files = {write_recorder(folder, kTwoMachines[0])};
  const ReportResult result = build_expected_report(files, RowLevel::rank);
  EXPECT_TRUE(result.diagnostics.contains("nothing_captured"));
}

}  // namespace
}  // namespace joulemap::attribution
