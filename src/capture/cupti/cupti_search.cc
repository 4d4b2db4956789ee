// SPDX-License-Identifier: Apache-2.0
#include "capture/cupti/cupti_search.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>

namespace joulemap::capture::cupti {
namespace {

constexpr int kOldestCudaMajor = 11;
constexpr int kNewestCudaMajor = 13;  // newest CUDA version when this was written

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

std::string_view parent_directory(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view file_name_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Some wheels put a hash into the name: libcupti-8b5a5a1c.so.12.
bool is_cupti_library(std::string_view path) {
  const std::string_view name = file_name_of(path);
  return starts_with(name, "libcupti.so") || (starts_with(name, "libcupti-") && name.find(".so") != name.npos);
}

bool is_cuda_related_library(std::string_view path) {
  for (const std::string_view name :
       {"libcudart", "libtorch_cuda", "libcublas", "libcudnn", "libnvrtc", "libc10_cuda", "libnvToolsExt",
        "libtensorflow", "xla_cuda_plugin", "libjax", "libonnxruntime"}) {
    if (starts_with(file_name_of(path), name)) return true;
  }
  return false;
}

// Prefix of `path` up to and including the last occurrence of `part`; empty when it does not occur.
std::string_view path_prefix_through(std::string_view path, std::string_view part) {
  const std::size_t part_position = path.rfind(part);
  return part_position == std::string_view::npos ? std::string_view() : path.substr(0, part_position + part.size());
}

std::vector<int> list_cuda_majors(int driver_major) {
  std::vector<int> majors;
  for (int major = driver_major > 0 ? driver_major : kNewestCudaMajor; major >= kOldestCudaMajor; --major)
    majors.push_back(major);
  return majors;
}

class CuptiCandidateList {
 public:
  void add_candidate_path(std::string path) {
    if (std::find(candidate_paths_.begin(), candidate_paths_.end(), path) == candidate_paths_.end())
      candidate_paths_.push_back(std::move(path));
  }
  void add_versions_in_directory(const std::string& directory, const std::vector<int>& majors) {
    for (const int major : majors) add_candidate_path(directory + "/libcupti.so." + std::to_string(major));
  }
  // NVIDIA's wheels have one folder for each library up to CUDA 12, and one for all libraries since 13.
  void add_pip_wheels(const std::string& nvidia, const std::vector<int>& majors) {
    add_versions_in_directory(nvidia + "/cuda_cupti/lib", majors);
    for (const int major : majors) add_versions_in_directory(nvidia + "/cu" + std::to_string(major) + "/lib", {major});
  }
  std::vector<std::string> take_candidate_paths() { return std::move(candidate_paths_); }

 private:
  std::vector<std::string> candidate_paths_;
};

void add_candidates_near_library(CuptiCandidateList& candidates, std::string_view library,
                                 const std::vector<int>& majors) {
  const std::string directory(parent_directory(library));
  if (directory.empty()) return;
  candidates.add_versions_in_directory(directory, majors);
  candidates.add_versions_in_directory(directory + "/../extras/CUPTI/lib64", majors);
  const std::string_view nvidia = path_prefix_through(library, "/nvidia/");
  if (!nvidia.empty()) candidates.add_pip_wheels(std::string(nvidia.substr(0, nvidia.size() - 1)), majors);
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const std::string_view root = path_prefix_through(library, packages);
    if (!root.empty()) candidates.add_pip_wheels(std::string(root) + "nvidia", majors);
  }
}

void add_toolkit_candidates(CuptiCandidateList& candidates, const std::vector<int>& majors) {
  for (const int major : majors) candidates.add_candidate_path("libcupti.so." + std::to_string(major));
  std::vector<std::string> toolkits = {"/usr/local/cuda"};
  for (const int major : majors) toolkits.push_back("/usr/local/cuda-" + std::to_string(major));
  for (const std::string& toolkit : toolkits) {
    candidates.add_versions_in_directory(toolkit + "/extras/CUPTI/lib64", majors);
    candidates.add_versions_in_directory(toolkit + "/targets/x86_64-linux/lib", majors);
    candidates.add_versions_in_directory(toolkit + "/targets/sbsa-linux/lib", majors);     // Arm servers
    candidates.add_versions_in_directory(toolkit + "/targets/aarch64-linux/lib", majors);  // Jetson
    candidates.add_versions_in_directory(toolkit + "/lib64", majors);
  }
}

int newest_cuda_major_of_driver() {
  void* driver = find_loaded_driver();
  if (driver == nullptr) return 0;
  const auto version = reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDriverGetVersion"));
  int number = 0;
  if (version == nullptr || version(&number) != 0) return 0;
  return number / 1000;
}

}  // namespace

void* find_loaded_driver() { return ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD); }

CuptiSearchInputs CuptiSearchInputs::read_from_process() {
  CuptiSearchInputs search;
  // secure_getenv: a setuid program must not load a library that its user names.
  const char* requested_library = ::secure_getenv("JOULEMAP_CUPTI");
  search.requested_path = requested_library != nullptr ? requested_library : "";
  ::dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* names) {
        if (library->dlpi_name != nullptr && library->dlpi_name[0] != '\0') {
          static_cast<std::vector<std::string>*>(names)->emplace_back(library->dlpi_name);
        }
        return 0;
      },
      &search.loaded_libraries);
  search.driver_major = newest_cuda_major_of_driver();
  return search;
}

std::vector<std::string> cupti_candidates(const CuptiSearchInputs& search) {
  if (!search.requested_path.empty()) return {search.requested_path};
  CuptiCandidateList candidates;
  for (const std::string& library : search.loaded_libraries) {
    if (is_cupti_library(library)) candidates.add_candidate_path(library);
  }
  const std::vector<int> majors = list_cuda_majors(search.driver_major);
  for (const std::string& library : search.loaded_libraries) {
    if (is_cuda_related_library(library)) add_candidates_near_library(candidates, library, majors);
  }
  add_toolkit_candidates(candidates, majors);
  return candidates.take_candidate_paths();
}

}  // namespace joulemap::capture::cupti
