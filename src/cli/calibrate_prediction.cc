// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_prediction.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "base/child_process.h"
#include "base/private_files.h"
#include "base/small_file.h"
#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/measured_tables.h"
#include "cli/output.h"
#include "formats/csv.h"
#include "predict/fit/fitting.h"

namespace joulemap::cli {
namespace {

constexpr double kSecondsPerMinute = 60;

Status collect_measurements(const PredictionCalibrationOptions& calibration_options, std::vector<std::string> options) {
  std::vector<std::string> argv = {calibration_options.python_program, "-m", "joulemap", "collect"};
  argv.insert(argv.end(), options.begin(), options.end());
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  Result<ChildProcess> child = ChildProcess::prepare(argv, mask);
  if (!child) return std::move(child).error();
  if (Status start_status = child->execute(); !start_status) return start_status;
  int status = 0;
  while (::waitpid(child->pid(), &status, 0) < 0 && errno == EINTR) {
  }
  const ExitStatus end = ExitStatus::from_wait_status(status);
  if (end.code == 0) return Done{};
  return Error{
      ErrorCode::unsupported,
      fmt::format("{} -m joulemap collect failed with exit code {}", calibration_options.python_program, end.code),
      "choose an interpreter with PyTorch and the joulemap package: --python FILE"};
}

// The GPU in the last row of slices.csv, which the collector wrote; empty if the file or its column is missing.
std::string read_measured_gpu_name(const std::string& folder) {
  const Result<std::string> text = read_small_file(folder + "/slices.csv");
  if (!text) return "";
  const std::vector<formats::CsvRecord> records = formats::read_csv(*text);
  for (std::size_t column = 0; !records.empty() && column < records.front().size(); ++column) {
    if (records.front()[column] == "gpu" && column < records.back().size()) return records.back()[column];
  }
  return "";
}

}  // namespace

int calibrate_prediction(const PredictionCalibrationOptions& options, const std::string& output) {
  const std::string rows = prediction_measurements_folder() + "/rows";
  const std::string tables = prediction_measurements_folder() + "/tables";
  if (const Status folder_status = make_private_folders(rows); !folder_status)
    return print_error(folder_status.error());
  const std::string seconds = fmt::format("{:.0f}", options.measuring_minutes * kSecondsPerMinute);
  if (const Status collection_status = collect_measurements(options, {"--out", rows, "--seconds", seconds});
      !collection_status)
    return print_error(collection_status.error());
  if (const Status collection_status = collect_measurements(options, {"--out", rows, "--tables", tables});
      !collection_status)
    return print_error(collection_status.error());
  const std::string gpu = read_measured_gpu_name(tables);
  const Result<predict::FitTables> measured_tables = read_measured_tables({tables}, gpu.empty() ? "GPU" : gpu);
  if (!measured_tables) return print_error(measured_tables.error());
  const Result<predict::DeviceProfile> profile = predict::fit_profile(*measured_tables);
  if (!profile) return print_error(profile.error());
  const std::string path = output.empty() ? device_profile_path(profile->device) : output;
  if (const Status folder_status = make_private_folders(std::filesystem::path(path).parent_path().string());
      !folder_status) {
    return print_error(folder_status.error());
  }
  if (const Status write_status =
          write_to_file_or_stdout(path, predict::profile_json(*profile), measured_table_files({tables}));
      !write_status) {
    return print_error(write_status.error());
  }
  const Status print_status = write_to_stream(
      StandardStream::out,
      fmt::format("{}: {}, fitted to {} operations\njoulemap predict MODEL --{}\n", path, profile->device,
                  profile->operations, output.empty() ? "device \"" + profile->device + "\"" : "profile " + path));
  return print_status ? kExitSuccess : print_error(print_status.error());
}

}  // namespace joulemap::cli
