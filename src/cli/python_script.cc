// SPDX-License-Identifier: Apache-2.0
#include "cli/python_script.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/small_file.h"
#include "cli/capture_files.h"

namespace joulemap::cli {
namespace {

// NOLINTBEGIN(concurrency-mt-unsafe): there is one thread
std::string environment_variable_or(const char* name, const char* default_value) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? default_value : value;
}

void set_python_environment(const CommandLine& line) {
  const Result<CaptureFiles> files = find_capture_files(line.program_path);
  if (files && !files->sitecustomize_folder.empty()) {
    const std::string path = environment_variable_or("PYTHONPATH", "");
    const std::string packages = files->sitecustomize_folder + "/../..";
    ::setenv("PYTHONPATH", (path.empty() ? packages : packages + ":" + path).c_str(), 1);
  }
  if (!line.system_root.prefix.empty()) ::setenv("JOULEMAP_SYSROOT", line.system_root.prefix.c_str(), 1);
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

Error exec_python_script(const CommandLine& line, std::string_view script, const std::vector<std::string>& arguments) {
  set_python_environment(line);
  std::vector<std::string> words = {environment_variable_or("JOULEMAP_PYTHON", "python3"), "-c", std::string(script)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv.front(), argv.data());
  return Error{ErrorCode::unsupported, system_error("execute", words.front(), errno).message,
               "set JOULEMAP_PYTHON to a Python interpreter, 3.9 or later"};
}

}  // namespace joulemap::cli
