// SPDX-License-Identifier: Apache-2.0
//
// Properties of attribution that hold whatever ran: recordings of random runs, from the file to the rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "attribution/analysis/report_builder.h"
#include "attribution/analysis/run_view_builder.h"
#include "recording/recording_writer.h"
#include "support/recordings.h"
#include "support/simulated_gpu.h"
#include "support/temporary_directory.h"

namespace joulemap::attribution {
namespace {

constexpr int kProcessCount = 3;
constexpr double kRunLength_s = 8;
constexpr std::int64_t kChunkLength_ns = 1'000'000'000;
constexpr std::uint64_t kSeeds[] = {1, 2, 3};

Activity make_named_activity(std::mt19937_64& random) {
  Activity activity;
  activity.scopes = {
      {1, 0, ScopeKind::mode, "train"}, {2, 1, ScopeKind::phase, "forward"}, {3, 1, ScopeKind::phase, "backward"}};
  for (std::uint32_t id = 4; id < 12; ++id) {
    activity.scopes.push_back({id, 2 + id % 2, ScopeKind::module, fmt::format("layer{}", random() % 4)});
    activity.scopes.push_back({id + 10, id, ScopeKind::op, fmt::format("op{}", random() % 3)});
    activity.scopes.push_back({id + 20, id + 10, ScopeKind::tensors, fmt::format("[{}]", random() % 3)});
  }
  for (std::uint32_t kind = 0; kind < 9; ++kind) {
    activity.classes.push_back({kind, KernelKind::kernel, fmt::format("k{}", kind), {}, {}});
  }
  activity.queues = {{0, "GPU-1", 0, 1, 7}};
  return activity;
}

// The kernels of one process (every kProcessCount-th burst), one second at a time, and its CPU time.
void write_process(recording::RecordingWriter& writer, const SimulatedRun& run, int process, std::uint64_t seed,
                   std::int64_t shift_ns) {
  std::mt19937_64 random(seed * 100 + static_cast<std::uint64_t>(process));
  Activity names = make_named_activity(random);
  for (std::int64_t begin_ns = run.begin_ns; begin_ns < run.end_ns; begin_ns += kChunkLength_ns) {
    Activity activity = std::exchange(names, {});
    activity.begin_ns = begin_ns + shift_ns;
    activity.end_ns = std::min(begin_ns + kChunkLength_ns, run.end_ns) + shift_ns;
    for (const SimulatedKernel& kernel : run.kernels) {
      const bool belongs_to_process = static_cast<int>(kernel.start_ns / 50'000'000 % kProcessCount) == process;
      if (!belongs_to_process || kernel.start_ns < begin_ns || kernel.start_ns >= begin_ns + kChunkLength_ns) continue;
      const auto scope = static_cast<std::uint32_t>(random() % 34);
      activity.kernels.push_back({kernel.start_ns + shift_ns, kernel.end_ns + shift_ns, kernel.kind, 0, scope, 0, 0});
      activity.kernel_tallies.push_back({kernel.kind, 0, scope, 1, kernel.end_ns - kernel.start_ns});
    }
    for (std::uint32_t scope = 0; scope < 34; ++scope) {
      const auto time_ns = static_cast<std::int64_t>(random() % 10'000'000);
      activity.scope_tallies.push_back({scope, 1 + random() % 5, 1, time_ns, time_ns / 2, time_ns / 3});
    }
    writer.add(std::move(activity));
  }
}

// Writes the files of the recorder and of each process, with all times shifted by `shift_ns`.
std::vector<std::string> record(const TemporaryDirectory& folder, std::uint64_t seed, std::int64_t shift_ns) {
  const SimulatedRun run = SimulatedGpu({}, seed).simulate_mixture(kRunLength_s);
  std::vector<std::string> files;
  for (int process = -1; process < kProcessCount; ++process) {
    const bool is_recorder = process < 0;
    RecordingSource source = make_recording_source(100 + process);
    source.role = is_recorder ? "recorder" : "process";
    source.started_ns += shift_ns;
    files.push_back(folder.path() + fmt::format("/{}-{}-{}.joule", seed, shift_ns, process));
    Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(files.back(), source, 0);
    EXPECT_TRUE(writer);
    if (is_recorder) {
      const std::vector<Channel> channels = {SimulatedGpu::channel(), make_recorded_channel("package-0")};
      writer->set_channels(channels);
      writer->add(Mark{run.begin_ns + shift_ns, MarkKind::command_begin, 0, 0, {}});
      writer->add(Mark{run.end_ns + shift_ns, MarkKind::command_end, 0, 0, {}});
      for (Sample sample : run.samples) {
        sample.reading.before_ns += shift_ns;
        sample.reading.after_ns += shift_ns;
        writer->add(sample);
        sample.channel = 1;
        sample.reading.raw = static_cast<std::uint64_t>((sample.reading.after_ns - shift_ns) / 20);  // 50 W in uJ
        writer->add(sample);
      }
    } else {
      write_process(*writer, run, process, seed, shift_ns);
    }
    EXPECT_TRUE(writer->finish({}));
  }
  return files;
}

ReportResult build_expected_report(std::span<const std::string> files, RowLevel level) {
  const Result<ReportResult> result = build_report(files, {level});
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : ReportResult();
}

// The ledger as text, with all numbers to the last bit.
std::string format_ledger(const ReportResult& result) {
  std::string text = fmt::format("{:a} {:a} {:a}\n", result.attributed_j.value_or(-1), result.idle_j.value_or(-1),
                                 result.unattributed_j.value_or(-1));
  for (const ReportRow& row : result.rows) {
    text +=
        fmt::format("{} {} {} {:a} {:a} {:a} {:a} {}\n", fmt::join(row.path, "/"), row.device, row.count.value_or(0),
                    row.time_s, row.energy_j.value_or(-1), row.low_j.value_or(-1), row.high_j.value_or(-1), row.basis);
  }
  for (const Diagnostic& diagnostic : result.diagnostics.list())
    text += fmt::format("{} {}\n", diagnostic.code, diagnostic.message);
  return text;
}

constexpr RowLevel kRowLevels[] = {RowLevel::phase,  RowLevel::layer,    RowLevel::op,
                                   RowLevel::tensor, RowLevel::function, RowLevel::kernel};

TEST(ReportProperties, AttributedIdleAndUnattributedSumToMeasured) {
  const TemporaryDirectory folder;
  for (const std::uint64_t seed : kSeeds) {
    const std::vector<std::string> files = record(folder, seed, 0);
    std::vector<RowLevel> levels(std::begin(kRowLevels), std::end(kRowLevels));
    levels.push_back(RowLevel::work);  // of comparisons; views do not contain it
    for (const RowLevel level : levels) {
      SCOPED_TRACE(fmt::format("seed {} by {}", seed, row_level_name(level)));
      const ReportResult result = build_expected_report(files, level);
      ASSERT_TRUE(joules_of(result.totals.measured) && result.attributed_j && result.idle_j && result.unattributed_j);
      const double total_energy_j = *result.attributed_j + *result.idle_j + *result.unattributed_j;
      EXPECT_NEAR(total_energy_j, *joules_of(result.totals.measured), 1e-3 * *joules_of(result.totals.measured));
      double rows_j = 0;
      for (const ReportRow& row : result.rows) {
        rows_j += row.energy_j.value_or(0);
        EXPECT_GE(row.energy_j.value_or(0), 0);
        EXPECT_GE(row.time_s, 0);
      }
      EXPECT_NEAR(rows_j, *result.attributed_j, 1e-9 * total_energy_j);
      EXPECT_GE(*result.idle_j, 0);
      EXPECT_GE(*result.unattributed_j, -1e-3 * total_energy_j);
      EXPECT_GT(*result.attributed_j, 0);
    }
  }
}

// The interval of a branch is at most as wide as the sum of the widths of its rows.
TEST(ReportProperties, BranchesSumTheirRowsAndTheirIntervalsUseErrorCorrelation) {
  const TemporaryDirectory folder;
  for (const std::uint64_t seed : kSeeds) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::vector<std::string> files = record(folder, seed, 0);
    ReportQuery query;
    query.level = RowLevel::layer;
    query.grouping = {true, ""};
    const Result<ReportResult> result = build_report(files, query);
    ASSERT_TRUE(result);
    ASSERT_FALSE(result->groups.empty());
    for (const ReportRow& group : result->groups) {
      double energy_j = 0;
      double row_widths_sum_j = 0;
      for (const ReportRow& row : result->rows) {
        const bool is_within = row.device == group.device && row.path.size() >= group.path.size() &&
                               std::equal(group.path.begin(), group.path.end(), row.path.begin());
        if (!is_within) continue;
        energy_j += row.energy_j.value_or(0);
        row_widths_sum_j += row.high_j.value_or(0) - row.low_j.value_or(0);
      }
      SCOPED_TRACE(fmt::format("{} on {}", fmt::join(group.path, "/"), group.device));
      EXPECT_NEAR(group.energy_j.value_or(0), energy_j, 1e-9 * *result->attributed_j);
      const double branch_width_j = group.high_j.value_or(0) - group.low_j.value_or(0);
      EXPECT_LE(branch_width_j, 1.05 * row_widths_sum_j + 1e-9);
    }
  }
}

TEST(ReportProperties, TheOrderOfFilesDoesNotChangeABit) {
  const TemporaryDirectory folder;
  for (const std::uint64_t seed : kSeeds) {
    std::vector<std::string> files = record(folder, seed, 0);
    std::mt19937_64 random(seed);
    for (const RowLevel level : kRowLevels) {
      const std::string expected_ledger_text = format_ledger(build_expected_report(files, level));
      for (int i = 0; i < 3; ++i) {
        SCOPED_TRACE(fmt::format("seed {} by {}", seed, row_level_name(level)));
        std::shuffle(files.begin(), files.end(), random);
        EXPECT_EQ(format_ledger(build_expected_report(files, level)), expected_ledger_text);
      }
    }
  }
}

TEST(ReportProperties, AViewOfAllLevelsEqualsTheReportOfEachLevelBitForBit) {
  const TemporaryDirectory folder;
  for (const std::uint64_t seed : kSeeds) {
    const std::vector<std::string> files = record(folder, seed, 0);
    const Result<RunView> view = build_run_view(files);
    ASSERT_TRUE(view) << view.error().message;
    for (const RowLevel level : kRowLevels) {
      SCOPED_TRACE(fmt::format("seed {} by {}", seed, row_level_name(level)));
      const LevelView* const level_view = view->level(row_level_name(level));
      ASSERT_NE(level_view, nullptr);
      const ReportResult expected = build_expected_report(files, level);
      ReportResult view_report;
      view_report.rows = level_view->rows;
      view_report.attributed_j = level_view->attributed_j;
      view_report.idle_j = level_view->idle_j;
      view_report.unattributed_j = level_view->unattributed_j;
      view_report.diagnostics = expected.diagnostics;
      EXPECT_EQ(format_ledger(view_report), format_ledger(expected));
      for (const Diagnostic& note : level_view->diagnostics.list())
        EXPECT_TRUE(expected.diagnostics.contains(note.code));
    }
  }
}

TEST(ReportProperties, ShiftingAllTimesChangesNothing) {
  const TemporaryDirectory folder;
  for (const std::uint64_t seed : kSeeds) {
    const std::vector<std::string> files = record(folder, seed, 0);
    for (const std::int64_t shift_ns : {std::int64_t{1}, std::int64_t{123'456'789'123}, std::int64_t{1} << 50}) {
      const std::vector<std::string> shifted_files = record(folder, seed, shift_ns);
      for (const RowLevel level : {RowLevel::op, RowLevel::kernel}) {
        SCOPED_TRACE(fmt::format("seed {} moved by {} ns, by {}", seed, shift_ns, row_level_name(level)));
        const ReportResult original_report = build_expected_report(files, level);
        const ReportResult shifted_report = build_expected_report(shifted_files, level);
        EXPECT_NEAR(*shifted_report.attributed_j, *original_report.attributed_j, 1e-6 * *original_report.attributed_j);
        EXPECT_NEAR(*shifted_report.idle_j, *original_report.idle_j, 1e-6 * *original_report.attributed_j);
        ASSERT_EQ(shifted_report.rows.size(), original_report.rows.size());
        for (const ReportRow& row : original_report.rows) {
          const auto shifted_row =
              std::find_if(shifted_report.rows.begin(), shifted_report.rows.end(), [&](const ReportRow& candidate_row) {
                return candidate_row.path == row.path && candidate_row.device == row.device;
              });
          ASSERT_NE(shifted_row, shifted_report.rows.end());
          EXPECT_NEAR(shifted_row->energy_j.value_or(0), row.energy_j.value_or(0),
                      1e-6 * *original_report.attributed_j);
          EXPECT_EQ(shifted_row->count, row.count);
          EXPECT_EQ(shifted_row->basis, row.basis);
        }
      }
    }
  }
}

}  // namespace
}  // namespace joulemap::attribution
