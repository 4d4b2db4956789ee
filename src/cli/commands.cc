// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "cli/advise_command.h"
#include "cli/bench_command.h"
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

constexpr std::array<Command, 20> kCommands = {{
    {"record", UserTask::measure, "record energy, layers and kernels", "record -- python train.py",
     &add_record_command},
    {"stat", UserTask::measure, "measure a command, like perf stat", "stat -r 5 -- python infer.py", &add_stat_command},
    {"bench", UserTask::measure, "benchmark a serving engine", "bench serve --endpoint URL", &add_bench_command},
    {"import", UserTask::measure, "import traces and power logs", "import trace.json --power p.csv",
     &add_import_command},
    {"report", UserTask::inspect, "show where the energy went", "report run.joule", &add_report_command},
    {"open", UserTask::inspect, "open the page of a recording", "open run.joule", &add_open_command},
    {"advise", UserTask::inspect, "suggest changes that save energy", "advise run.joule", &add_advise_command},
    {"export", UserTask::inspect, "export to TensorBoard, pprof, CSV", "export run.joule --to perfetto",
     &add_export_command},
    {"diff", UserTask::compare, "compare recordings", "diff old.joule new.joule", &add_diff_command},
    {"experiment", UserTask::compare, "plan, run and analyze experiments", "experiment run study.toml",
     &add_experiment_command},
    {"predict", UserTask::predict, "predict the energy of a network", "predict model.onnx", &add_predict_command},
    {"operation", UserTask::predict, "tabulate energies of an operation", "operation torch.nn.Conv2d",
     &add_operation_command},
    {"model", UserTask::predict, "fit and evaluate GPU profiles", "model fit data/my-gpu", &add_model_command},
    {"doctor", UserTask::maintain, "show sensors and how to enable them", "doctor", &add_doctor_command},
    {"calibrate", UserTask::maintain, "measure sensor lag, rate and noise", "calibrate", &add_calibrate_command},
    {"share", UserTask::maintain, "write an anonymized copy", "share run.joule -o public.joule", &add_share_command},
    {"bundle", UserTask::maintain, "pack a recording with its report", "bundle run.joule", &add_bundle_command},
    {"verify", UserTask::maintain, "recompute the numbers of a bundle", "verify run.bundle", &add_verify_command},
    {"completion", UserTask::maintain, "print completion for a shell", "completion bash", &add_completion_command},
    {"man", UserTask::maintain, "write man pages to a folder", "man share/man", &add_man_command},
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

void add_strict_flag(CLI::App& verb, bool& is_strict) {
  verb.add_flag("--strict", is_strict, "exit with 3 when data were lost or damaged");
}

int strict_exit_code(int code, bool is_strict, const Diagnostics& diagnostics) {
  if (!is_strict || code != kExitSuccess || !has_data_loss(diagnostics)) return code;
  // If stderr is closed, the exit code is the only signal left.
  static_cast<void>(
      write_to_stream(StandardStream::error, "joulemap: --strict: data were lost or damaged, see the notes\n"));
  return kExitDataLost;
}

int print_error(const Error& error, std::string_view verb) {
  std::string text = fmt::format("joulemap{}{}: {}\n", verb.empty() ? "" : " ", verb, error.message);
  if (!error.remedy.empty()) text += fmt::format("joulemap: -> {}\n", error.remedy);
  static_cast<void>(write_to_stream(StandardStream::error, text));  // if stderr is closed, the exit code remains
  return exit_code_of(error.code);
}

}  // namespace joulemap::cli
