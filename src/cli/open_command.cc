// SPDX-License-Identifier: Apache-2.0
#include "cli/open_command.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/child_process.h"
#include "base/file_descriptor.h"
#include "cli/output.h"
#include "cli/page_file.h"

namespace joulemap::cli {
namespace {

struct OpenFlags {
  std::vector<std::string> recording_files;
  std::string output_file;
  bool skips_browser = false;
};

bool is_environment_variable_set(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
  return value != nullptr && *value != '\0';
}

// Command that opens the page: $BROWSER, else xdg-open if there is a display, else none. $BROWSER must be the name of a
// program: it is not split into words.
std::vector<std::string> browser_command(const std::string& page) {
  if (is_environment_variable_set("BROWSER")) return {std::getenv("BROWSER"), page};  // NOLINT(concurrency-mt-unsafe)
  if (is_environment_variable_set("DISPLAY") || is_environment_variable_set("WAYLAND_DISPLAY"))
    return {"xdg-open", page};
  return {};
}

// Starts the browser with its output discarded and does not wait for it. Returns whether it was started.
bool start_browser(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  sigset_t empty_signal_mask;
  sigemptyset(&empty_signal_mask);
  const FileDescriptor null_device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ChildProcessOptions options;
  options.stdout_fd = options.stderr_fd = null_device.get();
  Result<ChildProcess> child = ChildProcess::prepare(command, empty_signal_mask, {}, options);
  return child && child->execute();
}

int run_open(const OpenFlags& flags, const CommandLine& line) {
  const Result<std::vector<std::string>> files = recordings_or_default(flags.recording_files, "open");
  if (!files) return print_error(files.error());
  const std::string page = flags.output_file.empty() ? files->front() + ".html" : flags.output_file;
  const Result<Diagnostics> notes = write_page(*files, page, {}, line);
  if (!notes) return print_error(notes.error());
  std::error_code error;
  const std::string absolute_page_path = std::filesystem::absolute(page, error);
  const bool has_browser_started =
      !flags.skips_browser && start_browser(browser_command(error ? page : absolute_page_path));
  const Status write_status = write_to_stream(
      StandardStream::error, has_browser_started ? fmt::format("joulemap: {} opens in the browser\n", page)
                             : flags.skips_browser
                                 ? fmt::format("joulemap: wrote {}\n", page)
                                 : fmt::format("joulemap: wrote {}; no browser was found: open it on a machine "
                                               "with one, it needs no other file\n",
                                               page));
  return write_status ? kExitSuccess : print_error(write_status.error());
}

}  // namespace

void add_open_command(CLI::App& verb, CommandLine& line) {
  const auto flags = std::make_shared<OpenFlags>();
  verb.add_option("FILE", flags->recording_files,
                  "recordings; default: run.joule; several parts of one run are merged");
  verb.add_option("-o,--output", flags->output_file, "write the page to FILE; default: the recording's name with .html")
      ->type_name("FILE");
  verb.add_flag("--no-browser", flags->skips_browser, "only write the page; $BROWSER chooses another browser");
  verb.callback([flags, &line] { line.exit_code = run_open(*flags, line); });
}

}  // namespace joulemap::cli
