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
  bool json = false;
  std::string output;
  std::string sensors;
};

int run_doctor(const DoctorFlags& flags, const CommandLine& line) {
  const Result<DoctorResult> result = session::examine_sensors(
      {.root = line.root, .sensors = flags.sensors, .program = line.program, .uses_file_capabilities = true});
  if (!result) return print_error(result.error());
  const std::string text = flags.json ? report::doctor_json(*result) + "\n" : report::doctor_text(*result);
  const Status written = write_to_file_or_stdout(flags.output, text, {});
  return written ? kExitSuccess : print_error(written.error());
}

}  // namespace

void add_doctor_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<DoctorFlags>();
  line.verbs_opening_sensors.push_back(&verb);
  verb.add_flag("--json", flags->json, "one line of JSON (schema joulemap.doctor/1)");
  verb.add_option("-o,--output", flags->output, "write to FILE")->type_name("FILE");
  verb.add_option("--sensors", flags->sensors, "check only these sensors, e.g. powercap,estimate")->type_name("LIST");
  verb.callback([flags, &line] { line.exit_code = run_doctor(*flags, line); });
}

}  // namespace joulemap::cli
