// SPDX-License-Identifier: Apache-2.0
#include "counter_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/small_file.h"

namespace joulemap::simulated {
namespace {

// More than the machine uses while a reader is starved: else the next reading is above the last one before the fault,
// and a single low reading is torn.
constexpr std::uint64_t kStepBackUj = 500'000'000;
constexpr std::string_view kGarbageText = "not a number";

// Returns true once, at or after the time of the fault.
bool consume_due_fault(std::optional<double>& at_s, double now_s) {
  if (!at_s || now_s < *at_s) return false;
  at_s.reset();
  return true;
}

Result<FileDescriptor> create_file(const std::string& path, mode_t mode) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.is_open()) return system_error("create", path, errno);
  if (::fchmod(fd.get(), mode) != 0) return system_error("chmod", path, errno);
  return fd;
}

}  // namespace

Result<CounterFile> CounterFile::create(std::string path, EnergyCounter counter, std::uint64_t wrap_uj,
                                        FaultPlan faults) {
  CounterFile file(std::move(path), counter, std::to_string(wrap_uj - 1).size(), faults);
  Result<FileDescriptor> fd = create_file(file.path_, file.file_mode_);
  if (!fd) return std::move(fd).error();
  file.file_ = std::move(*fd);
  // Written at once, even with `tears_writes`: there is no older text to mix it with.
  file.compose_text(std::to_string(counter.reading_uj(0)));
  if (Status write_status = file.write_piece(file.text_, 0); !write_status) return std::move(write_status).error();
  return file;
}

Status CounterFile::publish(double true_energy_j, double command_s) {
  if (Status triggered = trigger_faults(true_energy_j, command_s); !triggered || is_text_frozen_) return triggered;
  compose_text(fmt::format_int(counter_.reading_uj(true_energy_j)).str());
  if (faults_.replaces_file) return replace_file();
  if (!faults_.tears_writes) return write_piece(text_, 0);
  has_second_half_ = true;
  return write_piece(std::string_view(text_).substr(0, width_ / 2), 0);
}

Status CounterFile::finish() {
  if (!std::exchange(has_second_half_, false)) return Done{};
  return write_piece(std::string_view(text_).substr(width_ / 2), width_ / 2);
}

Status CounterFile::trigger_faults(double true_energy_j, double command_s) {
  if (consume_due_fault(faults_.reset_at_s, command_s)) counter_.restart_at(true_energy_j);
  if (consume_due_fault(faults_.step_back_at_s, command_s)) counter_.step_back(kStepBackUj);
  if (consume_due_fault(faults_.freeze_at_s, command_s)) is_text_frozen_ = true;
  if (consume_due_fault(faults_.deny_at_s, command_s)) {
    file_mode_ = 0;
    if (::fchmod(file_.get(), file_mode_) != 0) return system_error("chmod", path_, errno);
  }
  if (consume_due_fault(faults_.vanish_at_s, command_s)) {
    is_text_frozen_ = true;
    if (::unlink(path_.c_str()) != 0) return system_error("unlink", path_, errno);
  }
  if (consume_due_fault(faults_.garbage_at_s, command_s)) {
    is_text_frozen_ = true;
    compose_text(kGarbageText);
    return faults_.replaces_file ? replace_file() : write_piece(text_, 0);
  }
  return Done{};
}

void CounterFile::compose_text(std::string_view content) {
  text_.assign(content);
  if (text_.size() < width_) text_.resize(width_, ' ');
  text_.push_back('\n');
}

Status CounterFile::write_piece(std::string_view text_part, std::size_t position) {
  const ssize_t written_size = ::pwrite(file_.get(), text_part.data(), text_part.size(), static_cast<off_t>(position));
  if (written_size != static_cast<ssize_t>(text_part.size()))
    return system_error("write", path_, written_size < 0 ? errno : EIO);
  return Done{};
}

Status CounterFile::replace_file() {
  const std::string new_file_path = path_ + ".new";
  Result<FileDescriptor> new_file = create_file(new_file_path, file_mode_);
  if (!new_file) return std::move(new_file).error();
  file_ = std::move(*new_file);
  if (Status write_status = write_piece(text_, 0); !write_status) return write_status;
  if (std::rename(new_file_path.c_str(), path_.c_str()) != 0) return system_error("rename", new_file_path, errno);
  return Done{};
}

}  // namespace joulemap::simulated
