// SPDX-License-Identifier: Apache-2.0
//
// From the recording file to the verdict, for a program that starts up, warms up and then repeats its step.
#include "attribution/analysis/compared_recordings.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/clock.h"
#include "recording/recording_writer.h"
#include "statistics/random.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::attribution {
namespace {

constexpr std::int64_t kProgramBegin_ns = kNanosecondsPerSecond;
constexpr std::int64_t kReadPeriod_ns = 10 * kNanosecondsPerMillisecond;  // read period of the counter
constexpr std::int64_t kProgramStep_ns = 20 * kNanosecondsPerMillisecond;
constexpr int kProgramStepCount = 150;
constexpr int kWarmUpSteps = 15;
constexpr std::uint64_t kRecordingsSeed = 20261117;

struct SteppedProgram {
  double startup_s = 1;
  double steady_step_w = 300;  // in steady state
  bool has_steps = true;
};

// Records one run: 60 W during start-up, three times `steady_step_w` during warm-up, then `steady_step_w` with noise whose
// autocorrelation decays within half a second.
std::string write_program_recording(const std::string& file, const SteppedProgram& program,
                                    statistics::Random& random) {
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(file, make_recording_source(), 0);
  EXPECT_TRUE(writer);
  Channel channel = make_recorded_channel("package-0");
  channel.domain_class = DomainClass::cpu;
  writer->set_channels({&channel, 1});
  const std::int64_t first_ns = kProgramBegin_ns + static_cast<std::int64_t>(program.startup_s * 1e9);
  const std::int64_t end_ns = first_ns + kProgramStepCount * kProgramStep_ns + 200 * kNanosecondsPerMillisecond;
  writer->add(Mark{kProgramBegin_ns, MarkKind::command_begin, 0, 0, {}});
  double joules = 0;
  double noise = 0;
  for (std::int64_t at_ns = kProgramBegin_ns - 20 * kReadPeriod_ns; at_ns <= end_ns + 20 * kReadPeriod_ns;
       at_ns += kReadPeriod_ns) {
    writer->add(Sample{0, {static_cast<std::uint64_t>(joules * 1e6), at_ns, at_ns, ReadCode::ok}});
    const std::int64_t step = (at_ns - first_ns) / kProgramStep_ns;
    const bool is_step = at_ns >= first_ns && step < kProgramStepCount;
    noise = 0.98 * noise + 0.2 * 0.01 * random.normal();  // standard deviation 1 %
    const double watts = !is_step ? 60 : program.steady_step_w * (step < kWarmUpSteps ? 3 : 1) * (1 + noise);
    joules += watts * seconds(kReadPeriod_ns);
  }
  for (int step = 0; step < kProgramStepCount && program.has_steps; ++step) {
    writer->add(Mark{first_ns + step * kProgramStep_ns, MarkKind::step, static_cast<std::uint64_t>(step), 1, {}});
  }
  writer->add(Mark{end_ns, MarkKind::command_end, 0, 0, {}});
  EXPECT_TRUE(writer->finish({}));
  return file;
}

class SteppedProgramRecorder {
 public:
  explicit SteppedProgramRecorder(std::uint64_t seed) : random_(seed) {}

  // Runs of one program: power varies by the standard deviation of the prior, and start-up takes one to three seconds.
  std::vector<std::string> runs(std::size_t count, double factor = 1) {
    std::vector<std::string> files;
    for (std::size_t i = 0; i < count; ++i) {
      const double run = factor * (1 + kRunVariationPrior.relative_sd * random_.normal());
      files.push_back(write_program_recording(folder_.path() + "/" + std::to_string(count_++) + ".joule",
                                              {.startup_s = 1 + 2 * random_.uniform(), .steady_step_w = 300 * run},
                                              random_));
    }
    return files;
  }
  std::string record(const SteppedProgram& program) {
    return write_program_recording(folder_.path() + "/" + std::to_string(count_++) + ".joule", program, random_);
  }

 private:
  TemporaryDirectory folder_;
  statistics::Random random_;
  int count_ = 0;
};

Result<RunDifference> compare_files(const std::vector<std::string>& files_a, const std::vector<std::string>& files_b,
                                    const ComparisonQuery& query = {}) {
  return compare_recordings(files_a, files_b, RowLevel::domain, query);
}

TEST(ComparedRecordings, ExcludesStartUpAndWarmUpFromTheSteadyStep) {
  SteppedProgramRecorder recorder(kRecordingsSeed);
  const std::vector<std::string> short_startup_files = {recorder.record({.startup_s = 0.5})};
  const std::vector<std::string> long_startup_files = {recorder.record({.startup_s = 6})};
  const Result<RunDifference> run_difference = compare_files(short_startup_files, long_startup_files);
  ASSERT_TRUE(run_difference);
  EXPECT_TRUE(run_difference->is_steady);
  EXPECT_NEAR(run_difference->total.a->energy_j, 6, 0.1);
  EXPECT_NEAR(*run_difference->total.relative_change, 0, 0.02);
  EXPECT_EQ(run_difference->total.verdict, ChangeVerdict::within_noise);
  ASSERT_EQ(run_difference->entries.size(), 1u);
  EXPECT_NEAR(run_difference->entries[0].a->energy_j, 6, 0.15) << "rows are of the steady state, too";
  EXPECT_GE(run_difference->b.recordings[0].exclusion->warm_up_steps, static_cast<std::size_t>(kWarmUpSteps));
  EXPECT_GT(run_difference->b.recordings[0].exclusion->time_s, 6);
  const Result<RunDifference> whole_run_difference =
      compare_files(short_startup_files, long_startup_files, {.whole_run = true});
  EXPECT_FALSE(whole_run_difference->is_steady);
  EXPECT_EQ(whole_run_difference->total.verdict, ChangeVerdict::grew) << "5 s more of start-up";
}

TEST(ComparedRecordings, ComparesWholeRecordingsWithoutSteps) {
  SteppedProgramRecorder recorder(kRecordingsSeed);
  const std::vector<std::string> files_without_steps = {recorder.record({.has_steps = false})};
  const Result<RunDifference> run_difference = compare_files(files_without_steps, files_without_steps);
  ASSERT_TRUE(run_difference);
  EXPECT_EQ(run_difference->per, "run");
  EXPECT_FALSE(run_difference->is_steady);
}

TEST(ComparedRecordings, ReportsAtMostTenPercentFalseChanges) {
  RecordProperty("seed", std::to_string(kRecordingsSeed));
  SteppedProgramRecorder recorder(kRecordingsSeed + 1);
  int false_change_count = 0;
  int covering_interval_count = 0;
  for (int pair = 0; pair < 200; ++pair) {
    const Result<RunDifference> record = compare_files(recorder.runs(1), recorder.runs(1), {.per = "step"});
    ASSERT_TRUE(record) << record.error().message;
    false_change_count += record->total.verdict == ChangeVerdict::within_noise ? 0 : 1;
    covering_interval_count += *record->total.low_j <= 0 && *record->total.high_j >= 0 ? 1 : 0;
  }
  EXPECT_LE(false_change_count, 20) << "seed " << kRecordingsSeed + 1;
  EXPECT_GE(covering_interval_count, 180);
}

// The printed change is detected in 80 % of the cases (730 of 900 in a longer trial of this test). By chance fewer than
// 38 of 60 are detected once in a thousand times; which ones they are depends on the processor's rounding.
TEST(ComparedRecordings, ThreeRecordingsPerSideDetectThePrintedChange) {
  SteppedProgramRecorder recorder(kRecordingsSeed + 2);
  int detected_change_count = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const double detectable_change = *compare_files(recorder.runs(3), recorder.runs(3))->smallest_detectable_change;
    const Result<RunDifference> run_difference =
        compare_files(recorder.runs(3), recorder.runs(3, 1 + detectable_change));
    detected_change_count += run_difference->total.verdict == ChangeVerdict::grew ? 1 : 0;
  }
  EXPECT_GE(detected_change_count, 38) << "of 60, seed " << kRecordingsSeed + 2;
}

}  // namespace
}  // namespace joulemap::attribution
