// SPDX-License-Identifier: Apache-2.0
#include "cli/operation_command.h"

#include <memory>

#include "cli/device_profile.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "predict/evaluation/operation_table.h"
#include "report/text/operation_text.h"

namespace joulemap::cli {
namespace {

struct OperationFlags {
  std::string operation_name;
  DeviceFlags device_flags;
  bool as_json = false;
  std::string output_file;
};

int run_operation(const OperationFlags& flags, const CommandLine& line) {
  const Result<predict::NamedOperation> subject = predict::find_operation(flags.operation_name);
  if (!subject) return print_error(subject.error());
  const Result<predict::DeviceProfile> profile = load_device_profile(flags.device_flags);
  if (!profile) return print_error(profile.error());
  const predict::OperationTable table = predict::make_operation_table(*profile, *subject);
  report::TextStyle style = style_of_stdout(line.colour);
  if (!flags.output_file.empty()) style.colour = false;
  const std::string text =
      flags.as_json ? report::operation_table_json(table) + "\n" : report::operation_table_text(table, style);
  const Status write_status =
      write_to_file_or_stdout(flags.output_file, text, std::vector{flags.device_flags.profile_file});
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_operation_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<OperationFlags>();
  verb.add_option("NAME", flags->operation_name,
                  "operation of PyTorch, Keras or ONNX: torch.nn.Conv2d, keras.layers.Dense, Gemm ...")
      ->required();
  add_device_options(verb, flags->device_flags);
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.card/1)");
  verb.add_option("-o,--output", flags->output_file, "write to FILE")->type_name("FILE");
  verb.callback([flags, &line] { line.exit_code = run_operation(*flags, line); });
}

}  // namespace joulemap::cli
