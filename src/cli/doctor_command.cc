// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_command.h"

#include <memory>

#include "cli/output.h"
#include "report/json/doctor_json.h"
#include "report/text/doctor_text.h"
#include "session/doctor.h"

namespace joulemap::cli {
namespace {

struct DoctorFlags {
  bool as_json = false;
  std::string output_file;
  std::string sensor_filter;
};

int run_doctor(const DoctorFlags& flags, const CommandLine& line) {
  const Result<DoctorResult> result = session::examine_sensors({.root = line.system_root,
                                                                .sensors = flags.sensor_filter,
                                                                .program = line.program_path,
                                                                .uses_file_capabilities = true});
  if (!result) return print_error(result.error());
  const std::string text = flags.as_json ? report::doctor_json(*result) + "\n" : report::doctor_text(*result);
  const Status write_status = write_to_file_or_stdout(flags.output_file, text, {});
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_doctor_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<DoctorFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  verb.add_flag("--json", flags->as_json, "one line of JSON (schema joulemap.doctor/1)");
  verb.add_option("-o,--output", flags->output_file, "write to FILE")->type_name("FILE");
  verb.add_option("--sensors", flags->sensor_filter, "check only these sensors, e.g. powercap,estimate")
      ->type_name("LIST");
  verb.callback([flags, &line] { line.exit_code = run_doctor(*flags, line); });
}

}  // namespace joulemap::cli
