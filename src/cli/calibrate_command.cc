// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_command.h"

#include <memory>
#include <optional>

#include "base/clock.h"
#include "calibration/calibration.h"
#include "calibration/cuda_driver.h"
#include "cli/calibrate_prediction.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/value_checks.h"
#include "recording/calibration_file.h"
#include "report/json/calibrate_json.h"
#include "report/text/calibrate_text.h"
#include "sampling/open_sensors.h"

namespace joulemap::cli {
namespace {

struct CalibrateFlags {
  double measuring_time_s = 5;
  std::string sensor_filter;
  bool skips_gpu_load = false;
  bool as_json = false;
  std::string output_file;
  bool calibrates_prediction = false;
  PredictionCalibrationOptions prediction_options;
};

int run_calibrate(const CalibrateFlags& flags, const CommandLine& line) {
  if (flags.calibrates_prediction) return calibrate_prediction(flags.prediction_options, flags.output_file);
  Result<CommandOutput> output =
      CommandOutput::open(flags.output_file, std::vector{line.replay_option, calibration_path()});
  if (!output) return print_error(output.error());
  sampling::SensorOptions sensors{.root = line.system_root,
                                  .sensors = flags.sensor_filter,
                                  .program = line.program_path,
                                  .replay = line.replay_option};
  sensors.uses_file_capabilities = true;
  Result<sampling::OpenSensors> opened_sensors = sampling::open_sensors(sensors);
  if (!opened_sensors) return print_error(opened_sensors.error());
  sampling::Sampler sampler(std::move(opened_sensors->sensors));
  if (sampler.channels().empty()) {
    return print_error({ErrorCode::unsupported, "no sensor to calibrate on this machine", "run joulemap doctor"});
  }
  calibration::CalibrationOptions options;
  options.idle_duration_ns =
      static_cast<std::int64_t>(flags.measuring_time_s * static_cast<double>(kNanosecondsPerSecond));
  options.is_gpu_load_enabled = !flags.skips_gpu_load && line.replay_option.empty();
  options.cuda_library = calibration::choose_cuda_library(line.system_root.is_this_machine());
  ProgressLine progress("calibrating", line);
  options.on_progress = progress.make_progress_callback();
  CalibrateResult result = calibration::calibrate(sampler, options);
  // With --sysroot or --replay the sensors are not those of this machine, so nothing is stored.
  if (line.system_root.is_this_machine() && line.replay_option.empty()) {
    const std::string path = calibration_path();
    const Status merge_status = recording::merge_into_calibration_file(path, result.findings);
    if (merge_status) {
      result.calibration_file = path;
    } else {
      result.diagnostics.add({"not_kept", 1, merge_status.error().message, "set JOULEMAP_DATA to a writable folder"});
    }
  }
  const std::string text = flags.as_json ? report::calibrate_json(result) + "\n" : report::calibrate_text(result);
  const Status write_status = output->write(text);
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_calibrate_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<CalibrateFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  line.verbs_replaying.push_back(&verb);
  verb.add_option("--seconds", flags->measuring_time_s,
                  "duration of the idle measurement; default: 5; run nothing else meanwhile")
      ->type_name("S")
      ->check(number_range_validator(0.1, 600));
  verb.add_flag("--no-load", flags->skips_gpu_load,
                "do not load GPUs; by default each NVIDIA GPU is loaded for 20 s to measure sensor latency");
  verb.add_option("--sensors", flags->sensor_filter, "use only these sensors, e.g. nvml,powercap")->type_name("LIST");
  verb.add_flag("--predict", flags->calibrates_prediction,
                "instead of sensors, measure operations on this GPU and fit a profile for predict");
  verb.add_option("--minutes", flags->prediction_options.measuring_minutes,
                  "with --predict: measurement time in minutes; default: 8")
      ->type_name("N")
      ->check(number_range_validator(0.05, 600));
  verb.add_option("--python", flags->prediction_options.python_program,
                  "with --predict: Python interpreter with PyTorch and joulemap; default: python3")
      ->type_name("FILE");
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.calibrate/1)");
  verb.add_option("-o,--output", flags->output_file, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_calibrate(*flags, line); });
}

}  // namespace joulemap::cli
