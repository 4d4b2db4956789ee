// SPDX-License-Identifier: Apache-2.0
#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace joulemap {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(OwnedDescriptors, OnlyOwnedDescriptorsAreClosed) {
  OwnedDescriptors owned;
  const int owned_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int released_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const FileDescriptor unowned(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  owned.add(owned_fd);
  owned.add(released_fd);
  owned.remove(released_fd);
  owned.add(-1);         // a failed open
  owned.add(1'000'000);  // beyond the bitmap
  owned.close_all_descriptors();
  EXPECT_FALSE(is_open(owned_fd));
  EXPECT_TRUE(is_open(released_fd));
  EXPECT_TRUE(is_open(unowned.get()));
  ::close(released_fd);
}

TEST(OwnedDescriptors, OwnedDescriptorsAreClosedOnce) {
  OwnedDescriptors owned;
  const int owned_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  owned.add(owned_fd);
  owned.close_all_descriptors();
  const FileDescriptor reused_descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));  // gets the number that was closed
  owned.close_all_descriptors();
  EXPECT_TRUE(is_open(reused_descriptor.get()));
}

}  // namespace
}  // namespace joulemap
