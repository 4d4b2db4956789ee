// SPDX-License-Identifier: Apache-2.0
#include "cli/import_experiment.h"

#include "cli/output.h"
#include "experiment/run/experiment_folder.h"
#include "ingest/epoch_logs/power_experiment.h"
#include "ingest/prengdl/prengdl.h"
#include "report/text/experiment_import.h"

namespace joulemap::cli {
namespace {

Result<ExperimentData> read(const ExperimentImport& import) {
  if (import.format != kPrengdl) {
    return ingest::read_power_experiment({import.inputs, import.pattern, import.epochs, import.utc_offset_s});
  }
  if (import.inputs.size() == 1) return ingest::read_prengdl(import.inputs.front());
  return Error{ErrorCode::usage, "prengdl takes one folder", "the one that holds measurements_train"};
}

}  // namespace

int run_experiment_import(const ExperimentImport& import) {
  const Result<ExperimentData> data = read(import);
  if (!data) return fail(data.error());
  if (const Status written = experiment::write_experiment(import.output, *data); !written) return fail(written.error());
  const report::ExperimentImported imported{import.format, import.inputs, import.output};
  const Status told = import.json ? write_to(Stream::out, report::experiment_import_json(*data, imported) + "\n")
                                  : write_to(Stream::error, report::experiment_import_text(*data, imported));
  return told ? kDone : fail(told.error());
}

}  // namespace joulemap::cli
