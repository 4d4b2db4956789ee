// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/calibrate_command.h"
#include "cli/card_command.h"
#include "cli/command.h"
#include "cli/diff_command.h"
#include "cli/doctor_command.h"
#include "cli/experiment_command.h"
#include "cli/export_command.h"
#include "cli/import_command.h"
#include "cli/model_command.h"
#include "cli/output.h"
#include "cli/predict_command.h"
#include "cli/record_command.h"
#include "cli/report_command.h"
#include "cli/share_command.h"
#include "cli/stat_command.h"
#include "model/data_loss.h"

namespace joulemap::cli {
namespace {

constexpr std::array<Command, 13> kCommands = {{
    {"doctor", "what can be measured here, what not, why, and the line that would fix it", &add_doctor_command},
    {"calibrate",
     "finds how often sensors are renewed, what a read costs, what is drawn idle; loads GPUs for 20 s to see how late "
     "they are",
     &add_calibrate_command},
    {"card", "what one call of an operation draws, by size and precision: card torch.nn.Conv2d", &add_card_command},
    {"diff", "what changed between two recordings: what grew, what shrank, what is only noise", &add_diff_command},
    {"experiment", "designed comparisons: plan, run, resume, status, analyze ...; each row is a recording",
     &add_experiment_command},
    {"export", "a recording for TensorBoard, Perfetto, pprof, speedscope, spreadsheets and databases",
     &add_export_command},
    {"import", "traces and power that other tools have written, into a file as record makes it", &add_import_command},
    {"model", "profiles of GPUs for predict: fit them to measurements, see how good they are", &add_model_command},
    {"predict", "the energy of a network before it runs, layer by layer, for inference and training",
     &add_predict_command},
    {"record", "samples and events of a command, into a file", &add_record_command},
    {"report", "what a recording says: energy by domain, layer, kernel, step ...; power over time",
     &add_report_command},
    {"share", "a copy of a recording without the names of its machine, users and folders, to give away",
     &add_share_command},
    {"stat", "energy of a command, of a process's time or of the machine, by domain", &add_stat_command},
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
