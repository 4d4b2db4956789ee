// SPDX-License-Identifier: Apache-2.0
#include "recording/library_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file_descriptor.h"
#include "base/small_file.h"
#include "recording/kept_file.h"
#include "recording/recording_reader.h"
#include "recording/recording_writer.h"

namespace joulemap::recording {
namespace {

// More GPUs than one user has; a file that says more is not ours.
constexpr std::size_t kMostLoaded = 50 * kMostKernelPowers;
constexpr int kLockTries = 300;
constexpr std::chrono::milliseconds kLockPause{10};

class Collector final : public RecordingVisitor {
 public:
  void on_power(std::uint32_t /*source*/, const KernelPower& known) override {
    if (!known.is_borrowed() && powers_.size() < kMostLoaded) powers_.push_back(known);
  }
  std::vector<KernelPower> take() { return std::move(powers_); }

 private:
  std::vector<KernelPower> powers_;
};

// Of a file beside it: the library itself is replaced.
Result<FileDescriptor> lock(const std::string& path) {
  const std::string name = path + ".lock";
  FileDescriptor fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd.is_open()) return system_error("open", name, errno);
  for (int tries = 0; tries < kLockTries; ++tries) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR) return system_error("lock", name, errno);
    std::this_thread::sleep_for(kLockPause);
  }
  return Error{ErrorCode::io, fmt::format("{} is held by another process", name), "record again when it has ended"};
}

}  // namespace

Result<LoadedLibrary> load_library(const std::string& path) {
  if (!file_exists(path)) return LoadedLibrary{};
  Collector collector;
  Result<RecordingSummary> read = read_recording(path, collector);
  if (!read) return std::move(read).error();
  LoadedLibrary loaded;
  merge_all(loaded.powers, collector.take(), kMostLoaded);
  if (read->damaged_places > 0 || !read->ended) {
    loaded.diagnostics.add({"library_damaged", 1,
                            fmt::format("{} is damaged: {} classes of kernels can be read", path, loaded.powers.size()),
                            "what is missing is learnt again"});
  }
  return loaded;
}

Result<Diagnostics> add_to_library(const std::string& path, std::vector<KernelPower> findings, std::size_t most) {
  if (Status made = make_folder_of(path); !made) return std::move(made).error();
  const Result<FileDescriptor> held = lock(path);
  if (!held) return held.error();
  Result<LoadedLibrary> loaded = load_library(path);
  LoadedLibrary library = loaded ? std::move(*loaded) : LoadedLibrary{};
  if (!loaded) {
    const std::string aside = path + ".damaged";
    std::error_code error;
    std::filesystem::rename(path, aside, error);
    if (error) return Error{ErrorCode::io, fmt::format("rename {}: {}", path, error.message()), {}};
    library.diagnostics.add({"library_damaged",
                             1,
                             fmt::format("{}; it is now {}, and a new one is begun", loaded.error().message, aside),
                             {}});
  }
  const std::size_t dropped = merge_all(library.powers, std::move(findings), most);
  if (dropped > 0) {
    library.diagnostics.add({"library_full",
                             dropped,
                             fmt::format("{} holds {} classes of kernels for each GPU; those with the least evidence "
                                         "were dropped",
                                         path, most),
                             {}});
  }
  Status replaced = replace_kept_file(path, path + ".tmp", "library", [&](RecordingWriter& writer) {
    for (const KernelPower& known : library.powers) writer.add(known);
  });
  if (!replaced) return std::move(replaced).error();
  return std::move(library.diagnostics);
}

}  // namespace joulemap::recording
