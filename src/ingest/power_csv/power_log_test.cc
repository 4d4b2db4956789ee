// SPDX-License-Identifier: Apache-2.0
#include "ingest/power_csv/power_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace joulemap::ingest {
namespace {

constexpr std::int64_t kUtcOffset_s = 0;
constexpr std::int64_t kLogBegin_ns = 1'700'000'000'000'000'000;

// Values of a channel in its unit.
std::vector<double> values(const PowerLog& log, std::string_view channel) {
  std::vector<double> channel_values;
  for (const Sample& sample : log.samples) {
    const Channel& sample_channel = log.channels[sample.channel];
    if (sample_channel.name == channel)
      channel_values.push_back(static_cast<double>(sample.reading.raw) * sample_channel.scale);
  }
  return channel_values;
}

const Channel* channel(const PowerLog& log, std::string_view name) {
  for (const Channel& log_channel : log.channels) {
    if (log_channel.name == name) return &log_channel;
  }
  return nullptr;
}

TEST(PowerCsv, KindsOfADomainMayInterleave) {
  const Result<PowerLog> log = parse_power_log(
      "time_unix_ns,domain,kind,value\n"
      "1700000000000000000,gpu0,power_w,100.5\n"
      "1700000000000000000,gpu0,energy_j,5000.25\n"
      "1700000000100000000,package-0,energy_j,7\n"
      "1700000000100000000,gpu0,power_w,101\r\n"
      "1700000000100000000,gpu0,energy_j,5010\n",
      "p.csv");
  ASSERT_TRUE(log);
  EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{100.5, 101.0}));
  EXPECT_EQ(values(*log, "gpu0-energy"), (std::vector{5000.25, 5010.0}));
  EXPECT_EQ(channel(*log, "gpu0-energy")->kind, ChannelKind::counter);
  EXPECT_EQ(channel(*log, "gpu0-power")->kind, ChannelKind::gauge);
  EXPECT_EQ(channel(*log, "gpu0-power")->domain_class, DomainClass::gpu);
  EXPECT_EQ(channel(*log, "package-0-energy")->domain_class, DomainClass::cpu);
  EXPECT_EQ(log->samples[0].reading.after_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(log->row_count, 5U);
  EXPECT_EQ(log->dropped_row_count, 0U);
}

TEST(PowerCsv, DropsAndCountsInvalidRows) {
  const Result<PowerLog> log = parse_power_log(
      "time_unix_ns,domain,kind,value\n"
      "1700000000000000001,gpu0,power_w,1\nx,gpu0,power_w,1\n2,,power_w,1\n2,gpu0,volts,1\n2,gpu0,power_w,nan\n"
      "2,gpu0,power_w,-4\n2,gpu0\n2,gpu0,power_w,12,5\n"
      "1700000000000000003,gpu0,power_w,3\n",
      "p.csv");
  ASSERT_TRUE(log);
  EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{1.0, 3.0}));
  EXPECT_EQ(log->dropped_row_count, 7U);
  EXPECT_TRUE(log->diagnostics.contains("power_rows_dropped"));
}

TEST(PowerCsv, RepeatedValuesArePollsAndGiveTheUpdatePeriod) {
  std::string text = "time_unix_ns,domain,kind,value\n";
  for (int i = 0; i < 100; ++i)
    text += std::to_string(kLogBegin_ns + i * 10'000'000LL) + ",gpu0,energy_j," + std::to_string(i / 10) + "\n";
  const Result<PowerLog> log = parse_power_log(text, "p.csv");
  ASSERT_TRUE(log);
  EXPECT_NEAR(channel(*log, "gpu0-energy")->refresh_s, 0.1, 1e-9);
}

TEST(PowerCsv, RowsMayBeInAnyOrder) {
  const Result<PowerLog> log = parse_power_log(
      "domain,value,kind,time_unix_ns\ngpu0,2,power_w,1700000000000000020\n"
      "gpu0,1,power_w,1700000000000000010\n",
      "p.csv");
  ASSERT_TRUE(log);
  EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{1.0, 2.0}));
}

TEST(PowerCsv, TruncatesFractionsOfANanosecond) {
  const Result<PowerLog> log = parse_power_log(
      "time_unix_ns,domain,kind,value\n1700000000000000010.0,gpu0,power_w,1\n"
      "1700000000000000020.75,gpu0,power_w,2\n",
      "p.csv");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->samples.back().reading.after_ns, kLogBegin_ns + 20);
  EXPECT_EQ(log->dropped_row_count, 0U);
}

TEST(PowerCsv, ReportsAGap) {
  std::string text = "time_unix_ns,domain,kind,value\n";
  for (const int time_s : {0, 1, 2, 3, 4, 60, 61, 62})
    text += std::to_string(1'700'000'000 + time_s) + "000000000,gpu0,power_w,5\n";
  const Result<PowerLog> log = parse_power_log(text, "p.csv");
  ASSERT_TRUE(log);
  EXPECT_TRUE(log->diagnostics.contains("power_gap"));
}

TEST(PowerCsv, RefusesOtherContentAndNamesTheExpectedHeader) {
  const Result<PowerLog> log = parse_power_log("a,b,c\n1,2,3\n", "p.csv");
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().remedy.find("time_unix_ns,domain,kind,value"), std::string::npos);
}

TEST(PowerCsv, QuotedFieldsMayContainSeparators) {
  for (const std::string comment : {"hi, there", "a; b", "a\tb", R"(say ""hi, there"", twice)"}) {
    const Result<PowerLog> log =
        parse_power_log("time_unix_ns,domain,kind,value,comment\n1700000000000000000,gpu0,power_w,1,\"" + comment +
                            "\"\n1700000000000000001,gpu0,power_w,\"2,5\",\"" + comment + "\"\n",
                        "p.csv");
    ASSERT_TRUE(log);
    EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{1.0, 2.5})) << comment;
    EXPECT_EQ(log->dropped_row_count, 0U);
  }
}

TEST(PowerCsv, RowsMayHaveAnotherSeparatorThanTheHeader) {
  for (const std::string row :
       {"1700000000000000000, \"gpu0\", power_w, 1", "1700000000000000000,gpu0,power_w,1,\"hi, there\"",
        "1700000000000000000;gpu0;power_w;1"}) {
    const Result<PowerLog> log = parse_power_log("time_unix_ns, domain, kind, value, comment\n" + row + "\n", "p.csv");
    ASSERT_TRUE(log);
    EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{1.0})) << row;
  }
}

TEST(PowerCsv, ReportsTimesThatAreProbablyNotInNanoseconds) {
  for (const std::string time : {"0", "1700000000", "1700000000123", "1700000000123456"}) {
    const Result<PowerLog> log =
        parse_power_log("time_unix_ns,domain,kind,value\n" + time + ",gpu0,power_w,1\n", "p.csv");
    ASSERT_TRUE(log) << time;
    EXPECT_TRUE(log->diagnostics.contains("power_before_1990")) << time;
    EXPECT_EQ(log->samples.size(), 1U);
  }
}

TEST(PowerCsv, ThePowerOfAGpusMemoryIsPartOfTheGpu) {
  const Result<PowerLog> log = parse_power_log(
      "time_unix_ns,domain,kind,value\n1700000000000000000,gpu0-memory,power_w,20\n"
      "1700000000000000000,gpu0,power_w,100\n",
      "p.csv");
  ASSERT_TRUE(log);
  EXPECT_EQ(channel(*log, "gpu0-memory-power")->part_of, "gpu0");
  EXPECT_EQ(channel(*log, "gpu0-memory-power")->domain_class, DomainClass::other);
  EXPECT_EQ(channel(*log, "gpu0-power")->part_of, "");
}

TEST(NvidiaSmi, GpusInterleaveAndInstantPowerIsPreferred) {
  const Result<PowerLog> log = parse_power_log(
      "timestamp, index, uuid, power.draw [W], power.draw.instant [W], temperature.gpu\n"
      "2026/11/15 11:23:46.123, 0, GPU-aa, 70.00 W, 100.00 W, 40\n"
      "2026/11/15 11:23:46.124, 1, GPU-bb, 71.00 W, [N/A], 41\n"
      "2026/11/15 11:23:46.223, 0, GPU-aa, 72.00 W, 200.00 W, 42\n"
      "2026/11/15 11:23:46.224, 1, GPU-bb, [Unknown Error], [Not Supported], [N/A]\n"
      "2026/11/15 11:23:46.324, 1, GPU-bb, 73.00 W, [Not Supported], 44\n",
      "smi.csv", kUtcOffset_s);
  ASSERT_TRUE(log);
  EXPECT_EQ(values(*log, "gpu0-power-instant"), (std::vector{100.0, 200.0}));
  EXPECT_EQ(values(*log, "gpu1-power"), (std::vector{71.0, 73.0}));
  EXPECT_EQ(values(*log, "gpu1-temperature"), (std::vector{41.0, 44.0}));
  EXPECT_EQ(log->channels[0].name, "gpu0-power-instant");  // the first channel of a domain is the one that is used
  EXPECT_EQ(channel(*log, "gpu1-power")->device, "GPU-bb");
  EXPECT_EQ(channel(*log, "gpu1-power")->averaging_time_s, 1);
  EXPECT_EQ(log->samples[0].reading.after_ns, 1'794'741'826'123'000'000);
  EXPECT_EQ(log->dropped_row_count, 1U);
}

TEST(NvidiaSmi, IdentifiesColumnsWithoutAHeaderByContent) {
  for (const std::string_view power : {"70.25 W", "70.25", "70,25 W", "70,25"}) {
    const std::string trailing_fields = ", 0, GPU-aa, " + std::string(power) + ", 45\n";
    const std::string text = "2026/11/15 11:23:46.1" + trailing_fields + "2026/11/15 11:23:46.2" + trailing_fields;
    const Result<PowerLog> log = parse_power_log(text, "smi.csv", kUtcOffset_s);
    ASSERT_TRUE(log) << power;
    EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{70.25, 70.25})) << power;
    EXPECT_TRUE(log->diagnostics.contains("columns_guessed"));
  }
}

TEST(NvidiaSmi, ARunThatWasAppendedMayHaveOtherColumns) {
  const std::string text =
      "timestamp, index, power.draw [W]\n2026/11/15 11:23:46.100, 0, 70.00 W\n2026/11/15 11:23:46.200, 0, 71.00 W\n"
      "timestamp, power.draw [W], index\n2026/11/15 11:24:46.100, 80.00 W, 0\n2026/11/15 11:24:46.200, 81.00 W, 0\n";
  const Result<PowerLog> log = parse_power_log(text, "smi.csv", kUtcOffset_s);
  ASSERT_TRUE(log);
  EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{70.0, 71.0, 80.0, 81.0}));
}

TEST(NvidiaSmi, DistinguishesGpusByBusIdAsALastResort) {
  for (const std::string_view header : {"timestamp, name, pci.bus_id, power.draw [W]\n", ""}) {
    std::string text(header);
    for (int i = 0; i < 3; ++i) {
      const std::string time = "2026/11/15 11:23:4" + std::to_string(i) + ".10";
      text += time + "0, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 70.00 W\n";
      text += time + "1, NVIDIA A100-SXM4-40GB, 00000000:0F:00.0, 90.00 W\n";
    }
    const Result<PowerLog> log = parse_power_log(text, "smi.csv", kUtcOffset_s);
    ASSERT_TRUE(log) << header;
    EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{70.0, 70.0, 70.0})) << header;
    EXPECT_EQ(values(*log, "gpu1-power"), (std::vector{90.0, 90.0, 90.0})) << header;
    EXPECT_TRUE(log->diagnostics.contains("gpus_numbered"));
  }
}

TEST(NvidiaSmi, ReportsRowsOfSeveralGpusWithoutAnIdentifier) {
  for (const int gpus : {1, 2, 4}) {
    std::string text = "timestamp, name, power.draw [W]\n";
    for (int i = 0; i < 10 * gpus; ++i) {
      text += "2026/11/15 11:23:4" + std::to_string(i / gpus) + ".10" + std::to_string(i % gpus) + ", A100, 70.00 W\n";
    }
    const Result<PowerLog> log = parse_power_log(text, "smi.csv", kUtcOffset_s);
    ASSERT_TRUE(log) << gpus;
    EXPECT_EQ(log->diagnostics.contains("gpus_not_told_apart"), gpus > 1) << gpus;
  }
}

TEST(NvidiaSmi, RefusesPowersWithoutTimesAndNamesTheMissingOption) {
  for (const std::string_view text : {"36.24 W\n36.04 W\n", "index, power.draw [W]\n0, 36.24 W\n"}) {
    const Result<PowerLog> log = parse_power_log(text, "smi.csv", kUtcOffset_s);
    ASSERT_FALSE(log) << text;
    EXPECT_NE(log.error().message.find("no times"), std::string::npos) << text;
    EXPECT_NE(log.error().remedy.find("timestamp"), std::string::npos) << text;
  }
}

TEST(NvidiaSmi, TimesUseTheGivenTimeZone) {
  const std::string text =
      "timestamp, power.draw [W]\n2026/11/15 11:00:00.000, 5.00 W\n2026/11/15 11:00:01.000, 5.00 W\n";
  const Result<PowerLog> local_log = parse_power_log(text, "smi.csv", 3600);
  const Result<PowerLog> utc_log = parse_power_log(text, "smi.csv", kUtcOffset_s);
  ASSERT_TRUE(local_log && utc_log);
  EXPECT_EQ(utc_log->samples[0].reading.after_ns - local_log->samples[0].reading.after_ns, 3'600'000'000'000);
  EXPECT_FALSE(utc_log->diagnostics.contains("local_time"));
  EXPECT_TRUE(parse_power_log(text, "smi.csv")->diagnostics.contains("local_time"));
}

TEST(NvidiaSmi, DropsTimesThatGoBack) {
  const Result<PowerLog> log = parse_power_log(
      "timestamp, index, power.draw [W]\n2026/10/25 02:59:59.0, 0, 5.00 W\n2026/10/25 02:00:00.0, 0, 6.00 W\n"
      "2026/10/25 03:00:00.0, 0, 7.00 W\n",
      "smi.csv", kUtcOffset_s);
  ASSERT_TRUE(log);
  EXPECT_EQ(values(*log, "gpu0-power"), (std::vector{5.0, 7.0}));
  EXPECT_EQ(log->dropped_row_count, 1U);
}

TEST(PowerLogs, PowerLogsUseTheFirstOfDuplicateChannels) {
  const std::string text =
      "time_unix_ns,domain,kind,value\n1700000000000000001,gpu0,power_w,1\n1700000000000000002,gpu0,power_w,1\n";
  std::vector<PowerLog> logs = {*parse_power_log(text, "a"), *parse_power_log(text, "b")};
  const PowerLog merged_log = merge_power_logs(std::move(logs));
  EXPECT_EQ(merged_log.samples.size(), 2U);
  EXPECT_TRUE(merged_log.diagnostics.contains("power_told_twice"));
}

}  // namespace
}  // namespace joulemap::ingest
