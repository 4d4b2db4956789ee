// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the readers of experiment inputs: plans, run tables, row results, epoch logs, measurements of the study
// PrEnGDL. No reader may crash, and results must be consistent. The first byte selects the reader.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "experiment/plan/experiment_spec.h"
#include "experiment/run/row_json.h"
#include "experiment/run/run_table.h"
#include "ingest/epoch_logs/epoch_log.h"
#include "ingest/prengdl/prengdl.h"

namespace {

using namespace joulemap;

ExperimentData make_two_factor_data() {
  ExperimentData data;
  data.factors = {{"framework", {"pytorch", "tensorflow"}, true}, {"batch", {"32", "64"}, true}};
  data.metrics = {{"accuracy", "", true}};
  return data;
}

void read_plan(std::string_view text) {
  const Result<experiment::ExperimentSpec> spec = experiment::parse_spec(text, "experiment.toml");
  if (!spec) return;
  JOULEMAP_CHECK(spec->repetitions >= 1 && !spec->factors.empty(), "a plan without rows");
  for (const ExperimentFactor& factor : spec->factors)
    JOULEMAP_CHECK(!factor.levels.empty(), "a factor without levels");
}

void check_row_json(std::string_view text) {
  const ExperimentData data = make_two_factor_data();
  const Result<ExperimentRow> row = experiment::parse_row_json(text, "row.json", data);
  if (!row) return;
  JOULEMAP_CHECK(row->metrics.size() == data.metrics.size(), "metrics that nobody declared");
}

void read_epochs(std::string_view text) {
  const Result<ingest::EpochLog> log = ingest::parse_epoch_log(text, "epochs.csv", 0);
  if (!log) return;
  for (std::size_t i = 1; i < log->epoch_ends.size(); ++i) {
    JOULEMAP_CHECK(log->epoch_ends[i - 1].time_ns <= log->epoch_ends[i].time_ns, "epochs out of order");
  }
}

void check_published_logs(std::string_view text) {
  for (const double watts : ingest::parse_power_samples(text).watts) JOULEMAP_CHECK(std::isfinite(watts), "no power");
  const ingest::PerfEnergies energies = ingest::parse_perf_energies(text);
  if (energies.package_j) JOULEMAP_CHECK(std::isfinite(*energies.package_j), "no energy");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 't':
      read_plan(text);
      break;
    case 'c':
      static_cast<void>(experiment::parse_run_table(text, make_two_factor_data().factors));
      break;
    case 'r':
      check_row_json(text);
      break;
    case 'e':
      read_epochs(text);
      break;
    default:
      check_published_logs(text);
  }
  return 0;
}
