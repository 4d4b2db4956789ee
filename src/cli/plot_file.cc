// SPDX-License-Identifier: Apache-2.0
#include "cli/plot_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "base/child_process.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/write_fully.h"
#include "cli/terminal.h"

namespace joulemap::cli {
namespace {

constexpr std::string_view kSvgConverterProgram = "rsvg-convert";

std::string plot_file_format(const std::string& path) {
  const std::size_t point = path.rfind('.');
  return point == std::string::npos || path.find('/', point) != std::string::npos ? "" : path.substr(point + 1);
}

// Whether PATH contains the program.
bool is_program_installed(std::string_view program) {
  const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): there is one thread
  for (const std::string_view folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    const std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, program);
    if (::access(candidate.c_str(), X_OK) == 0) return true;
  }
  return false;
}

// A temporary file without a name. A child process opens it as /proc/PID/fd/N; it is deleted when this process ends.
Result<FileDescriptor> create_unnamed_temporary_file(std::string_view content) {
  const char* folder = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): there is one thread
  std::string name = fmt::format("{}/joulemap-XXXXXX", folder == nullptr || *folder == '\0' ? "/tmp" : folder);
  FileDescriptor file(::mkstemp(name.data()));
  if (!file.is_open()) return system_error("create", name, errno);
  ::unlink(name.c_str());
  if (const Status write_status = write_fully(file.get(), content, name); !write_status) return write_status.error();
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Reads the whole file, whatever its current offset.
Result<std::string> read_whole_descriptor(const FileDescriptor& file) {
  std::string content;
  std::array<char, 1 << 16> read_buffer;
  while (true) {
    const ssize_t read_byte_count =
        ::pread(file.get(), read_buffer.data(), read_buffer.size(), static_cast<off_t>(content.size()));
    if (read_byte_count < 0 && errno == EINTR) continue;
    if (read_byte_count < 0) return system_error("read", "the converted plot", errno);
    if (read_byte_count == 0) return content;
    content.append(read_buffer.data(), static_cast<std::size_t>(read_byte_count));
  }
}

Result<std::string> convert_svg(const std::string& kind, std::string_view svg) {
  const Result<FileDescriptor> source = create_unnamed_temporary_file(svg);
  if (!source) return source.error();
  const Result<FileDescriptor> picture = create_unnamed_temporary_file("");
  if (!picture) return picture.error();
  const auto descriptor_path = [](const FileDescriptor& file) {
    return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
  };
  // A PNG has twice the width and height of the plot in pixels, to be sharp on high-density screens.
  std::vector<std::string> command = {std::string(kSvgConverterProgram), "--format", kind, "--output",
                                      descriptor_path(*picture)};
  if (kind == "png") command.insert(command.end(), {"--zoom", "2"});
  command.push_back(descriptor_path(*source));
  sigset_t empty_signal_mask;
  sigemptyset(&empty_signal_mask);
  Result<ChildProcess> child = ChildProcess::prepare(command, empty_signal_mask);
  if (!child) return child.error();
  if (const Status start_status = child->execute(); !start_status) return start_status.error();
  int status = 0;
  while (::waitpid(child->pid(), &status, 0) < 0) {
    if (errno != EINTR) return system_error("wait for", std::string(kSvgConverterProgram), errno);
  }
  const ExitStatus exit_status = ExitStatus::from_wait_status(status);
  if (exit_status.code == 0) return read_whole_descriptor(*picture);
  return Error{ErrorCode::io, fmt::format("{} failed with exit code {}", kSvgConverterProgram, exit_status.code),
               "write .svg instead"};
}

// Fails if a plot cannot be written to this path: stdout is a terminal, or the format is unknown or not available.
Status check_plot_path(const std::string& path) {
  if (path.empty()) {
    if (!stdout_is_terminal()) return Done{};
    return Error{ErrorCode::usage, "a terminal cannot show SVG", "write it to a file: -o plot.svg"};
  }
  const std::string kind = plot_file_format(path);
  if (kind == "svg") return Done{};
  if (kind != "png" && kind != "pdf") {
    return Error{ErrorCode::usage,
                 fmt::format("{}: the plot file must end in .svg, .png or .pdf", joulemap::quoted(path, 200)),
                 "-o plot.svg"};
  }
  if (is_program_installed(kSvgConverterProgram)) return Done{};
  return Error{ErrorCode::unsupported,
               fmt::format("a .{} plot needs {}, which is not installed", kind, kSvgConverterProgram),
               "sudo apt install librsvg2-bin, or -o plot.svg"};
}

}  // namespace

Result<PlotFile> PlotFile::open(const std::string& path, std::span<const std::string> inputs) {
  if (Status path_check = check_plot_path(path); !path_check) return std::move(path_check).error();
  Result<CommandOutput> output = CommandOutput::open(path, inputs);
  if (!output) return std::move(output).error();
  return PlotFile(path.empty() ? "svg" : plot_file_format(path), std::move(*output));
}

Status PlotFile::write(std::string_view svg) {
  if (file_format_ == "svg") return output_file_.write(svg);
  const Result<std::string> picture = convert_svg(file_format_, svg);
  return picture ? output_file_.write_bytes(*picture) : Status(picture.error());
}

}  // namespace joulemap::cli
