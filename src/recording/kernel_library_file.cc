// SPDX-License-Identifier: Apache-2.0
#include "recording/kernel_library_file.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "base/file_lock.h"
#include "base/small_file.h"
#include "recording/atomic_recording_file.h"
#include "recording/kernel_power_library.h"
#include "recording/recording_reader.h"
#include "recording/recording_writer.h"

namespace joulemap::recording {
namespace {

// Entries of 50 GPU models, more than any user has; further entries are ignored.
constexpr std::size_t kMaxLoadedKernelPowers = 50 * kMaxKernelPowers;
constexpr std::chrono::milliseconds kLibraryLockTimeout{3000};

class KernelPowerVisitor final : public RecordingVisitor {
 public:
  void on_power(std::uint32_t /*source*/, const KernelPower& kernel_power) override {
    if (!kernel_power.is_from_similar_kernels() && kernel_powers_.size() < kMaxLoadedKernelPowers)
      kernel_powers_.push_back(kernel_power);
  }
  std::vector<KernelPower> take_kernel_powers() { return std::move(kernel_powers_); }

 private:
  std::vector<KernelPower> kernel_powers_;
};

Result<LoadedKernelLibrary> make_loaded_library(Result<RecordingSummary> summary, KernelPowerVisitor& collector,
                                                std::string_view path) {
  if (!summary) return std::move(summary).error();
  LoadedKernelLibrary loaded;
  merge_into_kernel_library(loaded.powers, collector.take_kernel_powers(), kMaxLoadedKernelPowers);
  if (summary->damaged_ranges > 0 || !summary->all_sources_ended) {
    loaded.diagnostics.add({"library_damaged", 1,
                            fmt::format("{} is damaged: {} kernel classes are readable", path, loaded.powers.size()),
                            "joulemap learns the missing classes again"});
  }
  return loaded;
}

}  // namespace

Result<LoadedKernelLibrary> load_kernel_library(const std::string& path) {
  if (!file_exists(path)) return LoadedKernelLibrary{};
  KernelPowerVisitor collector;
  return make_loaded_library(read_recording(path, collector), collector, path);
}

Result<LoadedKernelLibrary> read_kernel_library(ByteSource& bytes, std::string_view name) {
  KernelPowerVisitor collector;
  return make_loaded_library(read_recording(bytes, name, collector), collector, name);
}

Result<Diagnostics> add_to_kernel_library(const std::string& path, std::vector<KernelPower> findings,
                                          std::size_t max_entries) {
  if (Status folder_status = create_parent_folder(path); !folder_status) return std::move(folder_status).error();
  // Locks a separate file, because the library itself is replaced.
  const Result<FileLock> file_lock = FileLock::acquire(path + ".lock", LockScope::shared, kLibraryLockTimeout);
  if (!file_lock) return file_lock.error();
  Result<LoadedKernelLibrary> loaded = load_kernel_library(path);
  // Written by a newer version, or temporarily unreadable: fail and leave the file unchanged.
  if (!loaded && loaded.error().code != ErrorCode::malformed) return std::move(loaded).error();
  LoadedKernelLibrary library = loaded ? std::move(*loaded) : LoadedKernelLibrary{};
  if (!loaded) {
    const std::string damaged_path = path + ".damaged";
    std::error_code error;
    std::filesystem::rename(path, damaged_path, error);
    if (error) return Error{ErrorCode::io, fmt::format("rename {}: {}", path, error.message()), {}};
    library.diagnostics.add(
        {"library_damaged",
         1,
         fmt::format("{}; it was renamed to {}, and joulemap started a new one", loaded.error().message, damaged_path),
         {}});
  }
  const std::size_t dropped_entry_count = merge_into_kernel_library(library.powers, std::move(findings), max_entries);
  if (dropped_entry_count > 0) {
    library.diagnostics.add(
        {"library_full",
         dropped_entry_count,
         fmt::format("{} is limited to {} kernel classes per GPU; those with the least evidence were dropped", path,
                     max_entries),
         {}});
  }
  Status replace_status = replace_recording_atomically(path, "library", [&](RecordingWriter& writer) {
    for (const KernelPower& kernel_power : library.powers) writer.add(kernel_power);
  });
  if (!replace_status) return std::move(replace_status).error();
  return std::move(library.diagnostics);
}

}  // namespace joulemap::recording
