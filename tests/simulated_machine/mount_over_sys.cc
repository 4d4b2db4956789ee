// SPDX-License-Identifier: Apache-2.0
#include "mount_over_sys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file_descriptor.h"
#include "base/small_file.h"
#include "powercap_tree.h"

namespace joulemap::simulated {
namespace {

Status bind_mount_over(const std::string& source, const std::string& target) {
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return system_error("mount over", target, errno);
  }
  return Done{};
}

// Recreates the original at target: a bind mount of a folder or file, or a copy of a link.
Status recreate_original(const std::string& original_path, const std::string& target) {
  struct stat info {};
  if (::lstat(original_path.c_str(), &info) != 0) return system_error("stat", original_path, errno);
  if (S_ISLNK(info.st_mode)) {
    std::error_code error;
    std::filesystem::copy_symlink(original_path, target, error);
    if (error) return system_error("link", target, error.value());
    return Done{};
  }
  if (S_ISDIR(info.st_mode)) {
    if (::mkdir(target.c_str(), 0755) != 0) return system_error("create", target, errno);
  } else {
    const FileDescriptor empty_file(::open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!empty_file.is_open()) return system_error("create", target, errno);
  }
  return bind_mount_over(original_path, target);
}

// Covers a folder with a tmpfs that has the same entries. The original stays accessible through a descriptor.
Status rebuild_on_tmpfs(const std::string& folder) {
  const FileDescriptor original_folder(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!original_folder.is_open()) return system_error("open", folder, errno);
  const std::string original_path = fmt::format("/proc/self/fd/{}", original_folder.get());
  const Result<std::vector<std::string>> names = list_directory(folder);
  if (!names) return names.error();

  if (::mount("tmpfs", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) {
    return system_error("mount a tmpfs over", folder, errno);
  }
  for (const std::string& name : *names) {
    Status recreate_status =
        recreate_original(fmt::format("{}/{}", original_path, name), fmt::format("{}/{}", folder, name));
    if (!recreate_status) return recreate_status;
  }
  return Done{};
}

Status bind_mount_powercap(const std::string& source, const std::string& parent) {
  const std::string target = parent + "/powercap";
  if (!file_exists(target)) {
    if (Status rebuild_status = rebuild_on_tmpfs(parent); !rebuild_status) return rebuild_status;
    if (::mkdir(target.c_str(), 0755) != 0) return system_error("create", target, errno);
  }
  return bind_mount_over(source, target);
}

Status enter_private_namespace() {
  if (::unshare(CLONE_NEWNS) != 0) return system_error("enter", "a private mount namespace", errno);
  // Otherwise our mounts would propagate to the outside.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return system_error("make private", "/", errno);
  }
  return Done{};
}

}  // namespace

Status mount_over_sys(const std::string& root) {
  Status mount_status = enter_private_namespace();
  if (mount_status) mount_status = bind_mount_powercap(powercap_devices_folder(root), "/sys/devices/virtual");
  if (mount_status) mount_status = bind_mount_powercap(powercap_class_folder(root), "/sys/class");
  if (mount_status) return mount_status;
  Error error = std::move(mount_status).error();
  if (error.code == ErrorCode::permission) error.remedy = "--mount needs root (CAP_SYS_ADMIN)";
  return error;
}

}  // namespace joulemap::simulated
