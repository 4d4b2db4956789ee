// SPDX-License-Identifier: Apache-2.0
//
// joulemap-simulated-machine: runs a command on a machine with simulated RAPL energy counters and logs the energy that
// it "used". This is the known ground truth for tests of energy meters.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"
#include "machine.h"
#include "mount_over_sys.h"

namespace joulemap::simulated {
namespace {

constexpr int kExitOwnFailure = 125;  // as in env(1) and timeout(1)
constexpr int kExitCannotRun = 126;
constexpr int kExitNotFound = 127;
constexpr int kExitNotPermitted = 77;  // means "skipped" to test drivers

struct Options {
  MachineSettings machine;
  bool mounts_over_sys = false;
  bool report = false;
  std::vector<std::string> command;
};

int fail(const Error& error, int exit_code) {
  fmt::print(stderr, "joulemap-simulated-machine: {}\n", error.message);
  if (!error.remedy.empty()) fmt::print(stderr, "  {}\n", error.remedy);
  return exit_code;
}

void add_law_options(CLI::App& app, MachineSettings& machine) {
  const CLI::Range share(0.0, 1.0);
  const CLI::Range watts(0.0, 1e5);
  app.add_option("--sockets", machine.law.sockets, "CPU packages")->check(CLI::Range(1, 64));
  app.add_flag("--psys", machine.has_psys, "Add a zone for the whole platform");
  app.add_option("--idle", machine.law.idle_w, "Power of an idle package, W")->check(watts);
  app.add_option("--max", machine.law.max_w, "Power of a busy package, W")->check(watts);
  app.add_option("--gamma", machine.law.gamma, "Power grows with utilisation to this power")
      ->check(CLI::Range(0.01, 100.0));
  app.add_option("--noise", machine.law.noise, "Standard deviation of the power, as a share of it")->check(share);
  app.add_option("--seed", machine.law.seed, "Seed of noise and jitter");
  app.add_option("--period-us", machine.period_us, "Time between two ticks")->check(CLI::Range(200.0, 1e6));
  app.add_option("--jitter-us", machine.jitter_us, "Standard deviation of a tick's time")->check(CLI::Range(0.0, 1e6));
  app.add_option("--wrap-uj", machine.wrap_uj, "Counters wrap here")->check(CLI::PositiveNumber);
  app.add_option("--start-uj", machine.start_uj, "Counters start here");
}

void add_operation_options(CLI::App& app, MachineSettings& machine) {
  CLI::Option* kinds = app.add_option("--operation-kinds", machine.operation_kinds,
                                      "File of operations that draw otherwise: NAME POWER MEMORY on a line");
  CLI::Option* page = app.add_option("--operation-page", machine.operation_page,
                                     "File in which processes say which operation they are at");
  kinds->needs(page);
  page->needs(kinds);
  app.add_flag("--count-self", machine.counts_self, "The simulator's own CPU time counts, too, as in /proc/stat");
}

void add_fault_options(CLI::App& app, MachineSettings& machine) {
  FaultPlan& faults = machine.faults;
  app.add_option("--fault-zone", machine.fault_zone, "Only this zone is faulty, such as intel-rapl:0; else all");
  app.add_option("--fault-trigger", machine.fault_trigger, "Faults count their seconds from when this file exists");
  CLI::Option* tear = app.add_flag("--tear", faults.tears_writes, "Write every text in two halves, 30 us apart");
  app.add_flag("--replace", faults.replaces_file, "Publish by renaming a new file over the old one")->excludes(tear);
  app.add_option("--freeze-at", faults.freeze_at_s, "Counters stand still, S seconds after the command started");
  app.add_option("--vanish-at", faults.vanish_at_s, "energy_uj is unlinked");
  app.add_option("--reset-at", faults.reset_at_s, "Counters go on from 0");
  app.add_option("--garbage-at", faults.garbage_at_s, "energy_uj is no number any more");
  app.add_option("--deny-at", faults.deny_at_s, "energy_uj gets mode 000 (which does not stop root)");
  app.add_option("--back-at", faults.step_back_at_s, "Counters step back by 500 J once");
}

// Our options end at the first "--"; the option parser does not see the command after it.
std::optional<int> parse(int argc, char** argv, Options& options) {
  char** const end = argv + argc;
  char** const dashes = std::find_if(argv + 1, end, [](const char* word) { return std::string_view(word) == "--"; });
  if (dashes != end) options.command.assign(dashes + 1, end);

  CLI::App app(
      "Runs CMD on a machine that seems to have RAPL energy counters:\n"
      "  joulemap-simulated-machine --root DIR [options] -- CMD ARGS...",
      "joulemap-simulated-machine");
  app.add_option("--root", options.machine.root, "Folder for the fake sys, proc and the truth")->required();
  app.add_flag("--mount", options.mounts_over_sys, "Show the counters at /sys to CMD (needs root)");
  app.add_flag("--report", options.report, "At the end, say on standard error how well the simulator kept up");
  add_law_options(app, options.machine);
  add_operation_options(app, options.machine);
  add_fault_options(app, options.machine);
  try {
    app.parse(static_cast<int>(dashes - argv), argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitOwnFailure;
  }
  if (options.command.empty()) {
    return fail({ErrorCode::usage, "no command", "put it after --, as in -- sleep 1"}, kExitOwnFailure);
  }
  if (options.machine.law.max_w < options.machine.law.idle_w) {
    return fail({ErrorCode::usage, "--max is below --idle", {}}, kExitOwnFailure);
  }
  return std::nullopt;
}

int run(Options& options) {
  MachineSettings& settings = options.machine;
  // Absolute, because the command may change its working directory.
  settings.root = std::filesystem::absolute(settings.root).lexically_normal().string();
  block_signals();
  Result<std::unique_ptr<Machine>> built_machine = Machine::build(settings);
  if (!built_machine) return fail(built_machine.error(), kExitOwnFailure);
  if (options.mounts_over_sys) {
    const Status mounted = mount_over_sys(settings.root);
    if (!mounted) {
      const bool is_permitted = mounted.error().code != ErrorCode::permission;
      return fail(mounted.error(), is_permitted ? kExitOwnFailure : kExitNotPermitted);
    }
  }
  Machine& machine = **built_machine;
  setenv("JOULEMAP_SIMULATED_ROOT", settings.root.c_str(), 1);
  setenv("JOULEMAP_SIMULATED_TRUTH", machine.truth_path().c_str(), 1);

  machine.start();
  const Result<Command> command = Command::start(options.command);
  machine.command_started();
  if (command) command->wait_until_ended();
  const Result<MachineReport> report = machine.stop();
  if (!command) {
    return fail(command.error(), command.error().code == ErrorCode::not_found ? kExitNotFound : kExitCannotRun);
  }
  const int exit_code = command->exit_code();
  if (!report) return fail(report.error(), exit_code == 0 ? kExitOwnFailure : exit_code);
  if (options.report) {
    fmt::print(stderr, "joulemap-simulated-machine: {} ticks, {} missed, {:.2f} % of one CPU\n", report->ticks,
               report->missed_ticks, 100 * report->cpu_share);
  }
  return exit_code;
}

}  // namespace
}  // namespace joulemap::simulated

int main(int argc, char** argv) {
  joulemap::simulated::Options options;
  if (const std::optional<int> exit_code = joulemap::simulated::parse(argc, argv, options)) return *exit_code;
  return joulemap::simulated::run(options);
}
