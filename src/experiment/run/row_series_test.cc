// SPDX-License-Identifier: Apache-2.0
#include "experiment/run/row_series.h"

#include <gtest/gtest.h>

namespace joulemap::experiment {
namespace {

DomainEnergy domain(const char* name, Provenance provenance) {
  DomainEnergy energy;
  energy.name = name;
  energy.joules = 1;
  energy.provenance = provenance;
  energy.is_counted = true;
  return energy;
}

ReportResult make_four_second_report() {
  ReportResult run;
  run.slice_s = 1;
  run.domains = {domain("gpu0", Provenance::measured), domain("cpu", Provenance::estimated)};
  run.power = {{"gpu0", {100, 200, std::nullopt, 400}}, {"cpu", {9, 9, 9, 9}}};
  run.tracks = {{"gpu0-temperature", Quantity::temperature, {40, 50, 60, 55}},
                {"gpu1-temperature", Quantity::temperature, {41, 70, 42, 42}},
                {"gpu0-utilization", Quantity::utilization, {0, 50, 100, 100}},
                {"gpu0-others-utilization", Quantity::utilization, {9, 9, 9, 9}},
                {"gpu0-memory-used", Quantity::memory, {0, 1048576, 3145728, 2097152}}};
  return run;
}

TEST(RowSeries, RowSeriesHasThePowerOfMeasuredDomainsAndGauges) {
  const RowSeries series = make_row_series(make_four_second_report());
  EXPECT_EQ(series.slice_s, 1);
  ASSERT_EQ(series.channels.size(), 4U);
  EXPECT_EQ(series.channels[0].name, "gpu0") << "an estimate is not added to measurements";
  EXPECT_EQ(series.channels[0].values[2], std::nullopt);
  EXPECT_EQ(series.channels[1].name, "temperature");
  EXPECT_EQ(series.channels[1].values[1], 50) << "of the first GPU";
  EXPECT_EQ(series.channels[3].name, "memory_used");
  EXPECT_EQ(series.channels[3].values[2], 3) << "in MiB";
}

TEST(RowSeries, MergesSlicesOfLongRuns) {
  ReportResult run = make_four_second_report();
  run.power[0].watts.assign(1000, 5);
  run.power[0].watts[3] = 9;
  const RowSeries series = make_row_series(run);
  EXPECT_EQ(series.slice_s, 4);
  EXPECT_EQ(series.channels[0].values.size(), 250U);
  EXPECT_EQ(series.channels[0].values[0], 6);
}

TEST(RowGauges, RowGaugesAreMeansOrMaximaOfTheInterval) {
  const GaugeValues gauges = mean_gauges_in_interval(make_four_second_report(), 0.5, 2);
  EXPECT_NEAR(*gauges[0], 50.0 / 1.5, 1e-9) << "half a second at 0, one at 50 %";
  EXPECT_FALSE(gauges[1]);
  EXPECT_EQ(gauges[2], 1);
  EXPECT_EQ(gauges[3], 70) << "the hotter GPU";
  for (const std::optional<double>& gauge_mean : mean_gauges_in_interval(make_four_second_report(), 10, 20))
    EXPECT_FALSE(gauge_mean);
}

}  // namespace
}  // namespace joulemap::experiment
