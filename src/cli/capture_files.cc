// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <filesystem>

namespace joulemap::cli {
namespace {

namespace fs = std::filesystem;

std::string find_first_existing(const fs::path& folder, std::initializer_list<const char*> candidates) {
  std::error_code path_error;  // a path that cannot be examined counts as missing
  for (const char* candidate : candidates) {
    const fs::path path = folder / candidate;
    // Not canonical(), which resolves links: in a build tree sitecustomize.py is a link, and the files that it needs
    // are next to the link.
    if (fs::exists(path, path_error)) return path.lexically_normal();
  }
  return {};
}

std::string environment_variable_text(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
  return value == nullptr ? std::string() : std::string(value);
}

// Sets an injection variable, by which CUDA or NVTX loads one library. If another tool has set it, leaves it unchanged
// and adds a diagnostic.
void set_injection_variable(CaptureEnvironment& capture_environment, const char* variable, const std::string& library,
                            std::string_view unrecorded_data) {
  const std::string current_variable_value = environment_variable_text(variable);
  if (current_variable_value.empty()) {
    capture_environment.variables.push_back(fmt::format("{}={}", variable, library));
  } else if (current_variable_value != library) {
    capture_environment.diagnostics.add(
        {"injection_taken", 1,
         fmt::format("{} is already set to {}: {} are not recorded", variable, current_variable_value, unrecorded_data),
         fmt::format("unset {}", variable)});
  }
}

}  // namespace

std::string program_path() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string();
}

Result<CaptureFiles> find_capture_files(const std::string& program) {
  const fs::path folder = fs::path(program).parent_path();
  CaptureFiles files;
  // In the order in which the Python package searches: if CUDA and Python loaded different copies, a process would be
  // captured twice.
  files.capture_library = find_first_existing(
      folder,
      {"../libjoulemap_capture.so", "../python/joulemap/libjoulemap_capture.so", "../lib/libjoulemap_capture.so"});
  if (files.capture_library.empty()) {
    return Error{ErrorCode::not_found,
                 "libjoulemap_capture.so is not next to the joulemap program: kernels and layers are not recorded",
                 "install the complete package: the wheel, or the folder that make dist creates"};
  }
  const std::string sitecustomize_path =
      find_first_existing(folder, {"../inject/sitecustomize.py", "../python/joulemap/inject/sitecustomize.py"});
  if (!sitecustomize_path.empty()) files.sitecustomize_folder = fs::path(sitecustomize_path).parent_path();
  return files;
}

CaptureEnvironment make_capture_environment(const CaptureFiles& files, std::string_view trace) {
  CaptureEnvironment capture_environment;
  if (trace == "off") return capture_environment;
  capture_environment.variables.push_back(fmt::format("JOULEMAP_TRACE={}", trace));
  set_injection_variable(capture_environment, "CUDA_INJECTION64_PATH", files.capture_library, "kernels");
  if (trace == "kernels") return capture_environment;
  set_injection_variable(capture_environment, "NVTX_INJECTION64_PATH", files.capture_library, "NVTX ranges");
  if (files.sitecustomize_folder.empty()) {
    capture_environment.diagnostics.add(
        {"no_python_capture", 1, "the Python package is not next to the joulemap program: layers are not recorded",
         "install the complete package: the wheel, or the folder that make dist creates"});
    return capture_environment;
  }
  const std::string path = environment_variable_text("PYTHONPATH");
  capture_environment.variables.push_back(
      fmt::format("PYTHONPATH={}{}{}", files.sitecustomize_folder, path.empty() ? "" : ":", path));
  return capture_environment;
}

}  // namespace joulemap::cli
