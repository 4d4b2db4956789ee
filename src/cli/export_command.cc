// SPDX-License-Identifier: Apache-2.0
#include "cli/export_command.h"

#include <fmt/format.h>

#include <memory>

#include "attribution/run_view_builder.h"
#include "cli/event_folder.h"
#include "cli/output.h"
#include "cli/question.h"
#include "cli/terminal.h"
#include "report/tensorboard_export.h"

namespace joulemap::cli {
namespace {

struct ExportFlags {
  std::vector<std::string> files;
  std::string to;
  std::string by;
  QuestionFlags question;
  std::string output;
};

// All steps and values one by one: those who read an export count on it. Power is told as finely as sensors tell it.
constexpr ViewLimits kAll = {
    .slices = 10'000, .stages = 1U << 30U, .metric_points = 1U << 30U, .spreads = 2000, .layer_points = 2000};

Result<RunView> view_of(const ExportFlags& flags, const std::vector<attribution::Level>& levels) {
  Result<Question> question = question_of(flags.question);
  if (!question) return std::move(question).error();
  Result<RunView> view = attribution::build_run_view(
      flags.files, {question->mode, question->within, std::move(question->library), false, levels, kAll});
  if (view) view->run.diagnostics.add_all(question->diagnostics);
  return view;
}

int export_to_tensorboard(const ExportFlags& flags) {
  if (flags.output.empty())
    return fail({ErrorCode::usage, "TensorBoard reads folders: -o names one", "-o runs/joules"});
  const Result<EventFolder> folder = EventFolder::open(flags.output);
  if (!folder) return fail(folder.error());
  const Result<RunView> view = view_of(flags, {attribution::Level::layer});
  if (!view) return fail(view.error());
  const auto kind = folder->is_shared() ? report::TensorboardFolder::shared : report::TensorboardFolder::own;
  const std::string host = view->run.hosts.empty() ? "" : view->run.hosts.front();
  const Result<std::string> file = folder->add_file(host, report::tensorboard_file(*view, kind));
  return file ? kDone : fail(file.error());
}

int run_export(const ExportFlags& flags, const CommandLine& line) {
  if (line.has_dashes) return fail({ErrorCode::usage, "export runs no command", "leave out what stands after --"});
  if (flags.to == "parquet") {
    return fail({ErrorCode::unsupported, "Parquet is written by the Python package",
                 fmt::format("python3 -c 'import joulemap as jm; jm.load({:?}).to_parquet(\"run.parquet\")'",
                             flags.files.front())});
  }
  return export_to_tensorboard(flags);
}

}  // namespace

void add_export_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ExportFlags>();
  verb.add_option("FILE", flags->files, "recordings; several parts of one run are put together")->required();
  verb.add_option("--to", flags->to, "tensorboard (-o is a folder, which may be the run's own)")
      ->type_name("FORMAT")
      ->required()
      ->check(CLI::IsMember({"tensorboard", "parquet"}));
  add_question_flags(verb, flags->question);
  verb.add_option("-o,--output", flags->output, "write to FILE, or into FOLDER")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_export(*flags, line); });
}

}  // namespace joulemap::cli
