// SPDX-License-Identifier: Apache-2.0
#include "experiment/plan/experiment_spec.h"

#include <gtest/gtest.h>

namespace joulemap::experiment {
namespace {

constexpr std::string_view kSpecWithAllKeys = R"(name = "frameworks"
command = ["python", "train.py", "--batch", "{batch}"]
repetitions = 5
order = "random"
seed = 42
alpha = 0.01
directory = "src"
time_limit_s = 600
warm_up_runs = 2
baseline_s = 20
trace = "off"

[factors]
framework = ["torch", "jax"]
batch = [32, 64]
rate = [0.1, 1.0]

[[exclude]]
framework = "jax"
batch = [64]

[environment]
OMP_NUM_THREADS = 4
BATCH = "{batch}"

[cool_down]
power_within = 0.05
temperature_within_c = 2
limit_s = 300

[checks]
require = ["governor", "sensors"]
warn = []
set = ["governor"]
turbo = false
preflight = "python -c 'import torch'"

[metrics.accuracy]
from = "json"
key = "test.accuracy"
more_is_better = true

[metrics.loss]
from = "output"
pattern = 'loss=([0-9.]+)'
take = "lowest"

[costs]
price_per_kwh = 0.3
currency = "EUR"
gco2_per_kwh = 400
)";

std::string parse_error_of(std::string_view toml) {
  const Result<ExperimentSpec> spec = parse_spec(toml, "e.toml");
  return spec ? "none" : spec.error().message;
}

TEST(ExperimentSpec, EveryKeyOfThePlanIsRead) {
  const Result<ExperimentSpec> spec = parse_spec(kSpecWithAllKeys, "e.toml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->name, "frameworks");
  EXPECT_EQ(spec->command.arguments.back(), "{batch}");
  EXPECT_EQ(spec->repetitions, 5u);
  EXPECT_EQ(spec->row_order, RowOrder::random);
  EXPECT_EQ(spec->seed, 42u);
  ASSERT_EQ(spec->factors.size(), 3u);
  EXPECT_EQ(spec->factors[0].name, "framework");
  EXPECT_EQ(spec->factors[1].levels, (std::vector<std::string>{"32", "64"}));
  ASSERT_EQ(spec->exclusions.size(), 1u);
  EXPECT_EQ(spec->exclusions[0], (Exclusion{{1}, {1}, {}}));
  EXPECT_EQ(spec->environment[0], std::pair(std::string("OMP_NUM_THREADS"), std::string("4")));
  EXPECT_EQ(spec->cool_down.time_limit_s, 300);
  EXPECT_EQ(spec->checks.required_checks.size(), 2u);
  EXPECT_TRUE(spec->checks.warning_checks.empty());
  EXPECT_EQ(spec->checks.turbo, false);
  EXPECT_FALSE(spec->checks.preflight_command.is_empty());
  ASSERT_EQ(spec->metrics.size(), 2u);
  EXPECT_TRUE(spec->metrics[0].metric.more_is_better);
  EXPECT_EQ(spec->metrics[0].json_key, "test.accuracy");
  EXPECT_EQ(spec->metrics[1].reduction, MetricReduction::lowest);
  EXPECT_EQ(spec->costs.gco2_per_kwh, 400);
}

TEST(ExperimentSpec, MostKeysAreOptional) {
  const Result<ExperimentSpec> spec = parse_spec("command = ['x', '{v}']\n[factors]\nv = ['a', 'b']\n", "e.toml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->repetitions, 10u);
  EXPECT_EQ(spec->row_order, RowOrder::blocked_random);
  EXPECT_EQ(spec->warm_up_runs, 1u);
  EXPECT_EQ(spec->checks.required_checks, std::vector<std::string>{"sensors"});
  EXPECT_FALSE(spec->checks.warning_checks.empty());
}

TEST(ExperimentSpec, TheSameTextGivesTheSameSeed) {
  const std::string text = "command = ['x', '{v}']\n[factors]\nv = ['a', 'b']\n";
  EXPECT_EQ(parse_spec(text, "a")->seed, parse_spec(text, "b")->seed);
  EXPECT_NE(parse_spec(text, "a")->seed, parse_spec(text + "# more", "a")->seed);
}

TEST(ExperimentSpec, ReportsErrorsWithTheirLines) {
  const std::string factors_section = "\n[factors]\nv = ['a', 'b']\n";
  EXPECT_EQ(parse_error_of("repetitions = 0" + factors_section),
            "e.toml:1: repetitions must be a whole number from 1 to 100000");
  EXPECT_EQ(parse_error_of("order = 'shuffled'" + factors_section),
            "e.toml:1: order must be one of \"blocked-random\", \"blocked\", \"random\", \"sequential\"");
  EXPECT_EQ(parse_error_of("\n[factors]\nv = ['a', 'a']"), "e.toml:3: v has the level 'a' twice");
  EXPECT_EQ(parse_error_of("\n[factors]\nv = 3"), "e.toml:3: v needs a list of levels: [\"a\", \"b\"]");
  EXPECT_EQ(parse_error_of("command = ['{w}']" + factors_section),
            "e.toml:1: {w} is not a factor; write {{w}} for the literal text");
  EXPECT_EQ(parse_error_of(factors_section + "[[exclude]]\nw = 'a'"), "e.toml:5: [[exclude]]: unknown factor 'w'");
  EXPECT_EQ(parse_error_of(factors_section + "[checks]\nrequire = ['govenor']")
                .find("e.toml:5: require of [checks]: unknown name"),
            0u);
  EXPECT_EQ(parse_error_of(factors_section + "[metrics.m]\nfrom = 'output'\npattern = '(['")
                .find("e.toml:4: the pattern of m is not a"),
            0u);
  EXPECT_EQ(parse_error_of(factors_section + "[metrics.m]\nfrom = 'output'\npattern = 'a'")
                .find("e.toml:4: the pattern of m needs one"),
            0u);
  EXPECT_EQ(parse_error_of("name = \n").find("e.toml:1: "), 0u);
  EXPECT_EQ(parse_error_of("\n[factors]\ntime_s = ['1', '2']"),
            "e.toml:3: [factors] 'time_s': results of rows have this name; choose another");
  for (const std::string name : {"energy_j", "package", "v"}) {
    EXPECT_EQ(parse_error_of(factors_section + "[metrics." + name + "]\nfrom = 'json'\n"),
              "e.toml:4: [metrics] '" + name + "': results of rows have this name; choose another");
  }
}

TEST(ExperimentSpec, ReportsAMistypedKey) {
  const std::string mistake = parse_error_of("repetition = 3\n[factors]\nv = ['a']\n[cool_down]\nlimit = 3\n");
  EXPECT_NE(mistake.find("e.toml:1: top level: unknown key 'repetition'"), std::string::npos) << mistake;
  EXPECT_NE(mistake.find("e.toml:5: [cool_down]: unknown key 'limit'"), std::string::npos) << mistake;
}

TEST(ExperimentSpec, RoundTripsAPlanOfImportedRows) {
  ExperimentData data;
  data.name = "a \"study\"";
  data.factors = {{"model", {"x\\y", "z"}}};
  data.metrics = {{"f1", "%", true}};
  data.rows.resize(3);
  data.rows[2].block = 4;
  const Result<ExperimentSpec> spec = parse_spec(imported_experiment_toml(data), "e.toml");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->name, data.name);
  EXPECT_EQ(spec->repetitions, 5u);
  EXPECT_EQ(spec->factors[0].levels, data.factors[0].levels);
  EXPECT_TRUE(spec->metrics[0].metric.more_is_better);
  EXPECT_TRUE(spec->command.is_empty());
}

}  // namespace
}  // namespace joulemap::experiment
