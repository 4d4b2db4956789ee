// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/calibrate_command.h"
#include "cli/command.h"
#include "cli/data_loss.h"
#include "cli/diff_command.h"
#include "cli/doctor_command.h"
#include "cli/experiment_command.h"
#include "cli/export_command.h"
#include "cli/import_command.h"
#include "cli/model_command.h"
#include "cli/operation_command.h"
#include "cli/output.h"
#include "cli/predict_command.h"
#include "cli/record_command.h"
#include "cli/report_command.h"
#include "cli/share_command.h"
#include "cli/stat_command.h"

namespace joulemap::cli {
namespace {

constexpr std::array<Command, 13> kCommands = {{
    {"doctor", "list available and unavailable sensors, with the reason and the command that fixes it",
     &add_doctor_command},
    {"calibrate", "measure sensor update rate, read cost, latency and idle power (loads each GPU for 20 s)",
     &add_calibrate_command},
    {"operation", "show the energy of one call of an operation by size and precision: operation torch.nn.Conv2d",
     &add_operation_command},
    {"diff", "compare two recordings: increases, decreases and noise", &add_diff_command},
    {"experiment", "plan, run and analyze designed experiments; each row is a recording", &add_experiment_command},
    {"export", "export a recording to TensorBoard, Perfetto, pprof, speedscope, CSV and databases",
     &add_export_command},
    {"import", "convert traces and power logs of other tools to a recording", &add_import_command},
    {"model", "fit and evaluate GPU profiles for predict", &add_model_command},
    {"predict", "predict the energy of a network by layer, for inference and training", &add_predict_command},
    {"record", "record sensor samples and events of a command to a file", &add_record_command},
    {"report", "report energy by domain, layer, kernel, step ... and power over time", &add_report_command},
    {"share", "copy a recording without the names of its machine, users and folders", &add_share_command},
    {"stat", "measure the energy of a command, a process or the machine, by domain", &add_stat_command},
}};

}  // namespace

std::span<const Command> commands() { return kCommands; }

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return kExitUsageError;
    case ErrorCode::unsupported:
      return kExitUnsupported;
    case ErrorCode::command_not_found:
      return 127;
    case ErrorCode::command_not_executable:
      return 126;
    default:
      return kExitFailure;
  }
}

void add_strict_flag(CLI::App& verb, bool& strict) {
  verb.add_flag("--strict", strict, "exit with 3 when data were lost or damaged (docs/record.md)");
}

int strict_exit_code(int code, bool strict, const Diagnostics& diagnostics) {
  if (!strict || code != kExitSuccess || !has_data_loss(diagnostics)) return code;
  // If stderr is closed, the exit code is the only signal left.
  static_cast<void>(write_to(Stream::error, "joulemap: --strict: data were lost or damaged, see the notes\n"));
  return kExitDataLost;
}

int print_error(const Error& error, std::string_view verb) {
  std::string text = fmt::format("joulemap{}{}: {}\n", verb.empty() ? "" : " ", verb, error.message);
  if (!error.remedy.empty()) text += fmt::format("joulemap: -> {}\n", error.remedy);
  static_cast<void>(write_to(Stream::error, text));  // if stderr is closed, the exit code remains
  return exit_code_of(error.code);
}

}  // namespace joulemap::cli
