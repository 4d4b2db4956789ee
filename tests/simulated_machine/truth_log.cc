// SPDX-License-Identifier: Apache-2.0
#include "truth_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <string_view>

#include "base/clock.h"
#include "base/small_file.h"

namespace joulemap::simulated {
namespace {

constexpr std::int64_t kFlushPeriod_ns = 100 * kNanosecondsPerMillisecond;

Result<FileDescriptor> create_file(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.is_open()) return system_error("create", path, errno);
  return fd;
}

Status write_whole_text(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written_size = ::write(fd, text.data(), text.size());
    if (written_size < 0 && errno == EINTR) continue;
    if (written_size < 0) return system_error("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(written_size));
  }
  return Done{};
}

// A process may have any name: quotes are doubled, control characters become '?'.
std::string csv_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(static_cast<unsigned char>(c) < 32 ? '?' : c);
  }
  out.push_back('"');
  return out;
}

}  // namespace

Result<TruthLog> TruthLog::create(std::string path, const std::vector<std::string>& domains) {
  Result<FileDescriptor> file = create_file(path);
  if (!file) return std::move(file).error();
  TruthLog log(std::move(path), std::move(*file));
  log.pending_text_ = "monotonic_ns,cpu_s";
  for (const std::string& domain : domains) log.pending_text_ += "," + domain;
  log.pending_text_ += "\n";
  if (Status flush_status = log.flush(); !flush_status) return std::move(flush_status).error();
  return log;
}

Status TruthLog::append(std::int64_t tick_ns, double cpu_s, const std::vector<double>& energies_j) {
  auto out = std::back_inserter(pending_text_);
  fmt::format_to(out, "{},{:.9f}", tick_ns, cpu_s);
  for (const double energy_j : energies_j) fmt::format_to(out, ",{:.9f}", energy_j);
  pending_text_.push_back('\n');
  if (tick_ns - flushed_ns_ < kFlushPeriod_ns) return Done{};
  flushed_ns_ = tick_ns;
  return flush();
}

Status TruthLog::flush() {
  Status write_status = write_whole_text(file_.get(), pending_text_, path_);
  pending_text_.clear();
  return write_status;
}

Status write_process_truth(const std::string& path, const std::vector<ProcessShare>& shares) {
  Result<FileDescriptor> file = create_file(path);
  if (!file) return std::move(file).error();
  std::string text = "pid,comm,cpu_s,joules_package\n";
  for (const ProcessShare& share : shares) {
    fmt::format_to(std::back_inserter(text), "{},{},{:.9f},{:.9f}\n", share.pid, csv_text(share.comm), share.cpu_s,
                   share.joules_package);
  }
  return write_whole_text(file->get(), text, path);
}

}  // namespace joulemap::simulated
