// SPDX-License-Identifier: Apache-2.0
//
// The same samples give bit-identical joules on every path: the summary of a measurement, the windows of a program, the
// report of its recording, a part of that report, its steps, the power in its JSON and on its page.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "attribution/analysis/report_builder.h"
#include "attribution/analysis/run_view_builder.h"
#include "base/clock.h"
#include "energy/energy_curves.h"
#include "recording/recording_writer.h"
#include "sampling/meter.h"
#include "sampling/window_engine.h"
#include "support/recordings.h"
#include "support/temporary_directory.h"

namespace joulemap::experiment {
namespace {

using attribution::build_report;
using attribution::RowLevel;

// A machine with random power: a package with a counter that updates every 1 ms, a GPU with a counter that updates
// every 100 ms and a power history, a fan with a gauge, and an estimate of the memory.
class RandomMachine {
 public:
  explicit RandomMachine(std::uint64_t seed) : seed_(seed) {}

  static std::vector<Channel> channels() {
    std::vector<Channel> channel_list(5);
    channel_list[0] = make_recorded_channel("package-0");
    channel_list[0].domain_class = DomainClass::cpu;
    channel_list[1].name = "gpu0-energy";
    channel_list[1].domain = "gpu0";
    channel_list[1].domain_class = DomainClass::gpu;
    channel_list[1].scale = 1e-3;
    channel_list[1].refresh_s = 0.1;
    channel_list[2].name = channel_list[2].domain = "fan";
    channel_list[2].kind = ChannelKind::gauge;
    channel_list[2].quantity = Quantity::power;
    channel_list[2].scale = 1e-3;
    channel_list[2].refresh_s = 0.02;
    channel_list[3].name = channel_list[3].domain = "dram-0";
    channel_list[3].domain_class = DomainClass::memory;
    channel_list[3].scale = 1e-6;
    channel_list[3].provenance = Provenance::estimated;
    channel_list[4] = channel_list[1];
    channel_list[4].name = "gpu0-power-history";
    channel_list[4].kind = ChannelKind::gauge;
    channel_list[4].quantity = Quantity::power_history;
    for (Channel& channel : channel_list) channel.sensor = "random";
    channel_list[1].device = channel_list[4].device = "GPU-1";
    return channel_list;
  }

  // Power that changes every 37 ms, and its integral.
  double watts_at(std::uint64_t domain, std::int64_t time_ns) const {
    std::uint64_t bits =
        (seed_ * 8 + domain) * 0x9E3779B97F4A7C15u ^ static_cast<std::uint64_t>(time_ns / kPowerSegment_ns);
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    return 20 + static_cast<double>((bits ^ bits >> 27) % 500);
  }
  double joules_between(std::uint64_t domain, std::int64_t from_ns, std::int64_t to_ns) const {
    double joules = 0;
    while (from_ns < to_ns) {
      const std::int64_t until_ns = std::min(to_ns, (from_ns / kPowerSegment_ns + 1) * kPowerSegment_ns);
      joules += watts_at(domain, from_ns) * seconds(until_ns - from_ns);
      from_ns = until_ns;
    }
    return joules;
  }

 private:
  static constexpr std::int64_t kPowerSegment_ns = 37 * kNanosecondsPerMillisecond;
  std::uint64_t seed_;
};

// Readings of the machine since `begin_ns`; callers must read in time order.
class RandomSensorReader {
 public:
  RandomSensorReader(std::uint64_t seed, std::int64_t begin_ns) : machine_(seed), begin_ns_(begin_ns) {}

  Reading read(std::uint64_t channel, std::int64_t now_ns) {
    constexpr std::array<std::int64_t, 4> kRefreshPeriods_ns = {kNanosecondsPerMillisecond,
                                                                100 * kNanosecondsPerMillisecond, 1, 1};
    const std::int64_t shown_ns =
        begin_ns_ + (now_ns - begin_ns_) / kRefreshPeriods_ns[channel] * kRefreshPeriods_ns[channel];
    if (channel == 2) return reading(1e3 * machine_.watts_at(2, shown_ns), now_ns);
    CumulativeEnergy& total = totals_[channel];
    if (total.until_ns == 0) total.until_ns = begin_ns_;
    total.joules += machine_.joules_between(channel, total.until_ns, shown_ns);
    total.until_ns = std::max(total.until_ns, shown_ns);
    return reading((channel == 1 ? 1e3 : 1e6) * total.joules, now_ns);
  }
  Reading history(std::int64_t time_ns) const { return reading(1e3 * machine_.watts_at(1, time_ns), time_ns); }

 private:
  struct CumulativeEnergy {
    std::int64_t until_ns = 0;
    double joules = 0;
  };
  static Reading reading(double raw_value, std::int64_t now_ns) {
    return {static_cast<std::uint64_t>(raw_value), now_ns, now_ns + 3000, ReadCode::ok};
  }
  RandomMachine machine_;
  std::int64_t begin_ns_;
  std::array<CumulativeEnergy, 4> totals_;
};

// The machine as a sensor that can log its samples.
class RandomSensor final : public sensors::Sensor {
 public:
  RandomSensor(std::uint64_t seed, std::atomic<std::uint64_t>& read_count, std::vector<Sample>* log = nullptr)
      : reader_(seed, monotonic_ns()), reads_(read_count), log_(log), channels_(RandomMachine::channels()) {}
  std::span<const Channel> channels() const override { return channels_; }
  void read(std::span<Reading> readings, sensors::SamplingMode /*mode*/) noexcept override {
    const std::int64_t now_ns = monotonic_ns();
    for (std::uint32_t i = 0; i < 4; ++i) readings[i] = reader_.read(i, now_ns);
    readings[4].code = ReadCode::skipped;
    history_.clear();
    if (now_ns / (20 * kNanosecondsPerMillisecond) > history_index_) {
      history_index_ = now_ns / (20 * kNanosecondsPerMillisecond);
      history_.push_back({4, reader_.history(history_index_ * 20 * kNanosecondsPerMillisecond)});
    }
    if (log_ != nullptr) {
      for (std::uint32_t i = 0; i < 4; ++i) log_->push_back({i, readings[i]});
      log_->insert(log_->end(), history_.begin(), history_.end());
    }
    ++reads_;
  }
  std::span<const Sample> history() const noexcept override { return history_; }
  std::int64_t next_read_ns(std::int64_t last_ns, sensors::SamplingMode mode) const noexcept override {
    return last_ns +
           (mode == sensors::SamplingMode::near_edge ? kNanosecondsPerMillisecond / 4 : 3 * kNanosecondsPerMillisecond);
  }

 private:
  RandomSensorReader reader_;
  std::atomic<std::uint64_t>& reads_;
  std::vector<Sample>* log_;
  std::vector<Channel> channels_;
  std::vector<Sample> history_;
  std::int64_t history_index_ = 0;
};

// Samples that a recorder would read at random times over several seconds.
struct RandomRun {
  std::vector<Sample> samples;
  TimeSpan span;
};
RandomRun random_recording(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between_ms = [&](double low, double high) {
    return static_cast<std::int64_t>(std::uniform_real_distribution<>(low, high)(random) * 1e6);
  };
  RandomRun recorded_run;
  const std::int64_t begin_ns = 1'000'000 * kNanosecondsPerMillisecond;
  recorded_run.span = {begin_ns + 500 * kNanosecondsPerMillisecond + between_ms(0, 100),
                       begin_ns + 9'000 * kNanosecondsPerMillisecond + between_ms(0, 500)};
  RandomSensorReader reader(seed, begin_ns);
  std::array<std::int64_t, 4> next_ns;
  next_ns.fill(begin_ns);
  std::int64_t next_history_ns = begin_ns;
  for (std::int64_t now_ns = begin_ns; now_ns < recorded_run.span.end_ns + 300 * kNanosecondsPerMillisecond;
       now_ns += kNanosecondsPerMillisecond / 2) {
    const bool is_near_span_edge =
        std::min(std::abs(now_ns - recorded_run.span.begin_ns), std::abs(now_ns - recorded_run.span.end_ns)) <
        200 * kNanosecondsPerMillisecond;
    for (std::uint32_t channel = 0; channel < 4; ++channel) {
      if (now_ns < next_ns[channel]) continue;
      recorded_run.samples.push_back({channel, round_read_times(reader.read(channel, now_ns))});
      const std::int64_t pause_ns = channel == 1 ? between_ms(500, 2500) : between_ms(5, 80);
      next_ns[channel] = now_ns + (is_near_span_edge ? between_ms(0.5, 4) : pause_ns);
      for (const std::int64_t edge_ns : {recorded_run.span.begin_ns - 200 * kNanosecondsPerMillisecond,
                                         recorded_run.span.end_ns - 200 * kNanosecondsPerMillisecond})
        if (now_ns < edge_ns) next_ns[channel] = std::min(next_ns[channel], edge_ns);
      if (random() % 50 == 0) recorded_run.samples.back().reading.code = ReadCode::failed;
    }
    if (now_ns < next_history_ns) continue;
    recorded_run.samples.push_back({4, round_read_times(reader.history(now_ns))});
    next_history_ns = now_ns + 20 * kNanosecondsPerMillisecond;
  }
  return recorded_run;
}

std::string write_recording(const TemporaryDirectory& folder, const RandomRun& recorded_run,
                            const std::vector<std::int64_t>& steps_ns = {}) {
  const std::string file = folder.path() + fmt::format("/{}.joule", recorded_run.span.begin_ns);
  Result<recording::RecordingWriter> writer = recording::RecordingWriter::create(file, make_recording_source());
  EXPECT_TRUE(writer);
  writer->set_channels(RandomMachine::channels());
  writer->add(Mark{recorded_run.span.begin_ns, MarkKind::command_begin, 0, 0, {}});
  for (std::size_t i = 0; i < steps_ns.size(); ++i) writer->add(Mark{steps_ns[i], MarkKind::step, i, 1, {}});
  std::int64_t flush_ns = 0;
  for (const Sample& sample : recorded_run.samples) {
    writer->add(sample);
    if (sample.reading.after_ns < flush_ns) continue;
    EXPECT_TRUE(writer->flush());
    flush_ns = sample.reading.after_ns + 900 * kNanosecondsPerMillisecond;
  }
  writer->add(Mark{recorded_run.span.end_ns, MarkKind::command_end, 0, 0, {}});
  EXPECT_TRUE(writer->finish({}));
  return file;
}

ReportResult build_expected_report(const std::string& file, const attribution::ReportQuery& query) {
  const Result<ReportResult> result = build_report({&file, 1}, query);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : ReportResult();
}

void expect_same_rows(std::span<const DomainEnergy> expected, std::span<const DomainEnergy> actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].name, actual[i].name);
    EXPECT_EQ(expected[i].joules, actual[i].joules) << expected[i].name;
    EXPECT_EQ(expected[i].mean_w, actual[i].mean_w) << expected[i].name;
  }
}

class EnergyAgreementTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(EnergyAgreementTest, SummaryAgreesWithTheReportOfItsRecording) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  std::atomic<std::uint64_t> read_count{0};
  std::vector<std::unique_ptr<sensors::Sensor>> sensors;
  sensors.push_back(std::make_unique<RandomSensor>(GetParam(), read_count));
  sampling::Meter meter({}, sampling::Sampler(std::move(sensors)));
  RandomRun recorded_run;
  meter.set_sample_callback([&](const Sample& sample) { recorded_run.samples.push_back(sample); });
  meter.prepare();
  meter.begin();
  while (read_count < 200 + GetParam() % 7 * 30) meter.sample();
  meter.end();
  recorded_run.span = {meter.begin_ns(), meter.end_ns()};
  const DomainTable summary = meter.result();
  const TemporaryDirectory folder;
  const ReportResult report = build_expected_report(write_recording(folder, recorded_run), {});
  expect_same_rows(summary.rows, report.domains);
  EXPECT_EQ(joules_of(summary.totals.measured), joules_of(report.totals.measured));
  EXPECT_EQ(joules_of(summary.totals.estimated), joules_of(report.totals.estimated));
}

TEST_P(EnergyAgreementTest, WindowsAgreeWithTheCurvesOfTheirSensors) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  std::atomic<std::uint64_t> read_count{0};
  std::vector<Sample> log;
  sampling::WindowTable table(1);
  sampling::OpenSensors open_sensors;
  open_sensors.sensors.push_back(std::make_unique<RandomSensor>(GetParam(), read_count, &log));
  const std::unique_ptr<sampling::WindowEngine> engine = sampling::WindowEngine::start(table, std::move(open_sensors));
  const auto wait_for_reads = [&](std::uint64_t additional_reads) {
    for (const std::uint64_t target_read_count = read_count + additional_reads; read_count < target_read_count;)
      std::this_thread::yield();
  };
  std::vector<sampling::WindowId> windows;
  wait_for_reads(100);
  for (int i = 0; i < 5; ++i) {
    windows.push_back(table.begin());
    wait_for_reads(3 + GetParam() % 5);
  }
  for (const sampling::WindowId window : windows) table.end(window);
  wait_for_reads(150);
  engine->stop();
  EnergyCurves curves(RandomMachine::channels());
  for (const Sample& sample : log) curves.observe(sample);
  for (const sampling::WindowId window : windows) {
    const Result<sampling::WindowResult> result = engine->result(window, sampling::WaitPolicy::none);
    ASSERT_TRUE(result);
    for (const DomainEnergy& row : result->energy.rows) {
      if (row.name == "gpu0") continue;  // `curves` has seen more updates of its counter than the engine had
      const auto channel = static_cast<std::size_t>(row.name == "package-0" ? 0 : row.name == "fan" ? 2 : 3);
      const ChannelEnergy curve_energy =
          curves.curve_of_channel(channel)->energy_between(result->begin_ns, result->end_ns);
      EXPECT_EQ(row.joules, curve_energy.joules) << row.name;
    }
  }
}

TEST_P(EnergyAgreementTest, ReportAgreesWithItsWindowsStepsPowerAndPage) {
  SCOPED_TRACE(testing::Message() << "seed " << GetParam());
  const RandomRun recorded_run = random_recording(GetParam());
  std::vector<std::int64_t> steps_ns;
  std::mt19937_64 random(GetParam());
  for (std::int64_t at_ns = recorded_run.span.begin_ns + 300 * kNanosecondsPerMillisecond;
       at_ns < recorded_run.span.end_ns; at_ns += static_cast<std::int64_t>(random() % 300'000'000))
    steps_ns.push_back(at_ns);
  const TemporaryDirectory folder;
  const std::string file = write_recording(folder, recorded_run, steps_ns);
  EnergyCurves curves(RandomMachine::channels());
  for (const Sample& sample : recorded_run.samples) curves.observe(sample);
  const auto joules = [&](std::size_t channel, std::int64_t from_ns, std::int64_t to_ns) {
    return curves.curve_of_channel(channel)->joules_at(to_ns) - curves.curve_of_channel(channel)->joules_at(from_ns);
  };

  const ReportResult full_report = build_expected_report(file, {});
  ASSERT_EQ(full_report.domains.size(), 4u);
  for (const DomainEnergy& row : full_report.domains) {
    const auto channel = static_cast<std::size_t>(&row - full_report.domains.data());
    EXPECT_EQ(row.joules.value(), joules(channel, recorded_run.span.begin_ns, recorded_run.span.end_ns)) << row.name;
  }
  // Energy of a report that --time restricts to a part of the run.
  for (int part = 0; part < 10; ++part) {
    const double from_s = std::uniform_real_distribution<>(0, 6.5)(random);
    const double to_s = from_s + std::uniform_real_distribution<>(0.1, 1.5)(random);
    const ReportResult clipped_report = build_expected_report(file, {.time_range = {from_s, to_s}});
    const std::int64_t from_ns = recorded_run.span.begin_ns + static_cast<std::int64_t>(from_s * 1e9);
    const std::int64_t to_ns = recorded_run.span.begin_ns + static_cast<std::int64_t>(to_s * 1e9);
    for (const DomainEnergy& row : clipped_report.domains) {
      const auto channel = static_cast<std::size_t>(&row - clipped_report.domains.data());
      EXPECT_EQ(row.joules.value(), joules(channel, from_ns, to_ns)) << row.name;
    }
  }
  // The energy of a step sums all measured channels.
  const ReportResult by_step = build_expected_report(file, {.level = RowLevel::step});
  ASSERT_EQ(by_step.rows.size(), steps_ns.size());
  for (std::size_t i = 0; i + 1 < steps_ns.size(); ++i) {
    double sum_j = 0;
    for (const std::size_t channel : {0, 1, 2}) sum_j += joules(channel, steps_ns[i], steps_ns[i + 1]);
    EXPECT_EQ(by_step.rows[i].energy_j.value(), sum_j) << "step " << i;
  }
  // Power in the slices of the JSON and of the page.
  const Result<RunView> view = attribution::build_run_view({&file, 1});
  ASSERT_TRUE(view);
  for (const ReportResult* report : {&full_report, &view->run}) {
    for (const PowerSeries& series : report->power) {
      const auto channel = static_cast<std::size_t>(&series - report->power.data());
      const auto length_ns = static_cast<double>(recorded_run.span.end_ns - recorded_run.span.begin_ns);
      const auto edge_ns = [&](std::size_t i) {
        return recorded_run.span.begin_ns +
               static_cast<std::int64_t>(length_ns / static_cast<double>(series.watts.size()) * static_cast<double>(i));
      };
      for (std::size_t i = 0; i + 1 < series.watts.size(); ++i) {
        const double length_s = seconds(edge_ns(i + 1) - edge_ns(i));
        EXPECT_EQ(series.watts[i].value(), joules(channel, edge_ns(i), edge_ns(i + 1)) / length_s) << series.domain;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EnergyAgreementTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace joulemap::experiment
