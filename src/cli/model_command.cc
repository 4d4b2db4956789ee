// SPDX-License-Identifier: Apache-2.0
#include "cli/model_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cli/measured_tables.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/value_checks.h"
#include "page/evaluation_page.h"
#include "predict/evaluation/evaluation.h"
#include "predict/fit/fitting.h"

namespace joulemap::cli {
namespace {

struct ModelFlags {
  std::vector<std::string> measurement_folders;
  std::string device = "h200";
  std::string output;
  std::string predictions_file;
  std::string held_out;
  std::string html_file;
  std::string learner = "boosting";
  bool compares_learners = false;
  int folds = predict::kIntervalFoldCount;
  bool json = false;
};

int run_fit(const ModelFlags& flags, const CommandLine& line) {
  Result<CommandOutput> output = CommandOutput::open(flags.output, measured_table_files(flags.measurement_folders));
  if (!output) return print_error(output.error());
  Result<predict::FitTables> tables = read_measured_tables(flags.measurement_folders, flags.device);
  if (!tables) return print_error(tables.error());
  tables->learner = predict::find_learner(flags.learner).value_or(predict::Learner::boosting);
  std::optional<ProgressLine> progress(std::in_place, "fitting", line);
  const Result<predict::DeviceProfile> profile = predict::fit_profile(*tables, progress->make_progress_callback());
  progress.reset();
  if (!profile) return print_error(profile.error());
  const std::string text = predict::profile_json(*profile) + "\n";
  if (const Status write_status = output->write(text); !write_status) return print_error(write_status.error());
  const Status print_status =
      write_to_stream(StandardStream::out,
                      fmt::format("{}: {}, fitted to {} operations and {} network settings; {} kB\n", flags.output,
                                  profile->device, profile->operations, profile->networks, (text.size() + 999) / 1000));
  return print_status ? kExitSuccess : print_error(print_status.error());
}

// The outputs of `model eval` are different files: otherwise one would replace another after minutes of work.
Status check_outputs_are_distinct(const ModelFlags& flags) {
  std::set<std::string> files;
  for (const std::string& file : {flags.output, flags.predictions_file, flags.html_file}) {
    if (!file.empty() && !files.insert(std::filesystem::path(file).lexically_normal().string()).second)
      return Error{ErrorCode::usage, fmt::format("two outputs have the name {}", file), "write them to two files"};
  }
  return Done{};
}

int run_eval(const ModelFlags& flags, const CommandLine& line) {
  if (const Status output_check = check_outputs_are_distinct(flags); !output_check)
    return print_error(output_check.error());
  std::vector<std::string> inputs = measured_table_files(flags.measurement_folders);
  for (std::string& file : measured_table_files({flags.held_out})) inputs.push_back(std::move(file));
  Result<CommandOutput> output = CommandOutput::open(flags.output, inputs);
  if (!output) return print_error(output.error());
  Result<CommandOutput> predictions = CommandOutput::open(flags.predictions_file, inputs);
  if (!predictions) return print_error(predictions.error());
  Result<CommandOutput> page = CommandOutput::open(flags.html_file, inputs);
  if (!page) return print_error(page.error());
  Result<predict::FitTables> tables = read_measured_tables(flags.measurement_folders, flags.device);
  if (!tables) return print_error(tables.error());
  tables->learner = predict::find_learner(flags.learner).value_or(predict::Learner::boosting);
  if (!flags.held_out.empty()) {
    Result<std::string> networks = read_networks_table(flags.held_out);
    if (!networks) return print_error(networks.error());
    tables->held_out = std::move(*networks);
  }
  std::optional<ProgressLine> progress(std::in_place, "evaluating", line);
  const Result<predict::Evaluation> evaluation =
      predict::evaluate(*tables, {flags.folds, flags.compares_learners}, progress->make_progress_callback());
  progress.reset();
  if (!evaluation) return print_error(evaluation.error());
  if (!flags.predictions_file.empty()) {
    const Status predictions_status = predictions->write(predict::predictions_csv(*evaluation));
    if (!predictions_status) return print_error(predictions_status.error());
  }
  if (!flags.html_file.empty()) {
    if (const Status page_status = page->write(page::evaluation_html(*evaluation)); !page_status)
      return print_error(page_status.error());
    if (flags.output.empty() && !flags.json) return kExitSuccess;
  }
  const Status write_status = output->write(flags.json ? predict::evaluation_json(*evaluation) + "\n"
                                                       : predict::evaluation_markdown(*evaluation));
  return write_status ? kExitSuccess : print_error(write_status.error());
}

void add_table_options(CLI::App& verb, ModelFlags& flags) {
  verb.add_option("FOLDER", flags.measurement_folders,
                  "folder with operations.csv.gz and the other tables of joulemap collect; several are merged")
      ->required();
  verb.add_option("--device", flags.device, "GPU that was measured, for its datasheet; default: h200")->type_name("D");
  verb.add_option("--learner", flags.learner,
                  "learner of what physics and similar operations do not explain: boosting (the default), forest, "
                  "linear, none")
      ->type_name("NAME")
      ->check(word_choice_validator({predict::kLearnerNames.begin(), predict::kLearnerNames.end()}));
}

void add_model_fit_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ModelFlags>();
  add_table_options(verb, *flags);
  verb.add_option("-o,--output", flags->output, "write the profile to FILE, for predict --profile")
      ->type_name("FILE")
      ->required();
  verb.callback([flags, &line] { line.exit_code = run_fit(*flags, line); });
}

void add_model_eval_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<ModelFlags>();
  add_table_options(verb, *flags);
  verb.add_option("--folds", flags->folds, "number of cross-validation folds over families; default: 6")
      ->type_name("N")
      ->check(CLI::Range(2, 1000));
  verb.add_option("--held-out", flags->held_out,
                  "also evaluate on the networks.csv.gz in FOLDER, which the fit does not use")
      ->type_name("FOLDER");
  verb.add_option("--predictions", flags->predictions_file, "write every evaluated prediction to FILE, as CSV")
      ->type_name("FILE");
  verb.add_flag("--compare-learners", flags->compares_learners,
                "also evaluate every learner; takes about four times as long");
  verb.add_option("--html", flags->html_file,
                  "write a self-contained HTML page to FILE: predicted against measured, errors by kind, additivity")
      ->type_name("FILE");
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.evaluation/1)");
  verb.add_option("-o,--output", flags->output, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_eval(*flags, line); });
}

}  // namespace

void add_model_command(CLI::App& verb, CommandLine& line) {
  verb.require_subcommand(1);
  constexpr std::array<Subcommand, 2> kSubcommands = {{
      {"fit", "fit a GPU profile to tables of measurements", &add_model_fit_command},
      {"eval", "evaluate predictions on held-out families, sizes and networks", &add_model_eval_command},
  }};
  for (const Subcommand& command : kSubcommands) {
    CLI::App* const subcommand = verb.add_subcommand(std::string(command.name), std::string(command.summary));
    subcommand->fallthrough();  // options of `model`, such as --sysroot, may follow the subcommand
    command.add(*subcommand, line);
  }
}

}  // namespace joulemap::cli
