// SPDX-License-Identifier: Apache-2.0
#include "cli/import_experiment.h"

#include "cli/output.h"
#include "experiment/run/experiment_folder.h"
#include "ingest/cprofile/cprofile.h"
#include "ingest/epoch_logs/power_experiment.h"
#include "ingest/prengdl/prengdl.h"
#include "report/text/experiment_import.h"

namespace joulemap::cli {
namespace {

Result<ExperimentData> read_experiment_files(const ExperimentImportOptions& import) {
  if (import.format == ingest::kCprofileFormat)
    return ingest::read_profile_experiment({import.input_paths, import.file_name_pattern});
  if (import.format != kPrengdlFormat) {
    return ingest::read_power_experiment(
        {import.input_paths, import.file_name_pattern, import.epoch_log_pattern, import.utc_offset_s});
  }
  if (import.input_paths.size() == 1) return ingest::read_prengdl(import.input_paths.front());
  return Error{ErrorCode::usage, "prengdl takes one folder", "pass the folder that contains measurements_train"};
}

}  // namespace

int run_experiment_import(const ExperimentImportOptions& import) {
  const Result<ExperimentData> data = read_experiment_files(import);
  if (!data) return print_error(data.error());
  if (const Status write_status = experiment::write_experiment(import.output_folder, *data); !write_status)
    return print_error(write_status.error());
  const report::ExperimentImportSummary import_summary{import.format, import.input_paths, import.output_folder};
  const Status print_status =
      import.as_json
          ? write_to_stream(StandardStream::out, report::experiment_import_json(*data, import_summary) + "\n")
          : write_to_stream(StandardStream::error, report::experiment_import_text(*data, import_summary));
  return print_status ? kExitSuccess : print_error(print_status.error());
}

}  // namespace joulemap::cli
