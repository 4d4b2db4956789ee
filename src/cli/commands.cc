// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/advise_command.h"
#include "cli/bundle_command.h"
#include "cli/calibrate_command.h"
#include "cli/command.h"
#include "cli/completion_command.h"
#include "cli/diff_command.h"
#include "cli/doctor_command.h"
#include "cli/experiment_command.h"
#include "cli/export_command.h"
#include "cli/import_command.h"
#include "cli/man_command.h"
#include "cli/model_command.h"
#include "cli/open_command.h"
#include "cli/operation_command.h"
#include "cli/output.h"
#include "cli/predict_command.h"
#include "cli/record_command.h"
#include "cli/report_command.h"
#include "cli/share_command.h"
#include "cli/stat_command.h"
#include "cli/verify_command.h"
#include "model/data_loss.h"

namespace joulemap::cli {
namespace {

constexpr std::array<Command, 19> kCommands = {{
    {"record", Task::measure, "energy, layers, kernels of a run", "record -- python train.py", &add_record_command},
    {"stat", Task::measure, "energy of a command, like perf stat", "stat -r 5 -- python infer.py", &add_stat_command},
    {"import", Task::measure, "traces and power logs of others", "import trace.json --power p.csv",
     &add_import_command},
    {"report", Task::look, "where the energy went, by layer", "report run.joule", &add_report_command},
    {"open", Task::look, "a page of the run in the browser", "open run.joule", &add_open_command},
    {"advise", Task::look, "what to change, and what it saves", "advise run.joule", &add_advise_command},
    {"export", Task::look, "TensorBoard, pprof, CSV and others", "export run.joule --to perfetto", &add_export_command},
    {"diff", Task::compare, "what changed between two runs", "diff old.joule new.joule", &add_diff_command},
    {"experiment", Task::compare, "experiments and their statistics", "experiment run study.toml",
     &add_experiment_command},
    {"predict", Task::predict, "energy of a network before it runs", "predict model.onnx", &add_predict_command},
    {"operation", Task::predict, "energy of one call of an operation", "operation torch.nn.Conv2d",
     &add_operation_command},
    {"model", Task::predict, "fit and evaluate GPU profiles", "model fit data/my-gpu", &add_model_command},
    {"doctor", Task::maintain, "what can be measured here, and how", "doctor", &add_doctor_command},
    {"calibrate", Task::maintain, "measure the sensors themselves", "calibrate", &add_calibrate_command},
    {"share", Task::maintain, "copy it without private names", "share run.joule -o public.joule", &add_share_command},
    {"bundle", Task::maintain, "evidence of a run in one file", "bundle run.joule", &add_bundle_command},
    {"verify", Task::maintain, "check a bundle, number by number", "verify run.bundle", &add_verify_command},
    {"completion", Task::maintain, "completion for bash, zsh or fish", "completion bash", &add_completion_command},
    {"man", Task::maintain, "write man pages to a folder", "man share/man", &add_man_command},
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
  verb.add_flag("--strict", strict, "exit with 3 when data were lost or damaged");
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
