// SPDX-License-Identifier: Apache-2.0
#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace joulemap {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(OwnedDescriptors, CloseWhatIsOwnedAndNothingElse) {
  OwnedDescriptors owned;
  const int ours = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int given_up = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const FileDescriptor unowned(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  owned.add(ours);
  owned.add(given_up);
  owned.remove(given_up);
  owned.add(-1);         // a failed open
  owned.add(1'000'000);  // beyond the bitmap
  owned.close_all();
  EXPECT_FALSE(is_open(ours));
  EXPECT_TRUE(is_open(given_up));
  EXPECT_TRUE(is_open(unowned.get()));
  ::close(given_up);
}

TEST(OwnedDescriptors, AreClosedOnce) {
  OwnedDescriptors owned;
  const int ours = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  owned.add(ours);
  owned.close_all();
  const FileDescriptor another(::open("/dev/null", O_RDONLY | O_CLOEXEC));  // gets the number that was closed
  owned.close_all();
  EXPECT_TRUE(is_open(another.get()));
}

}  // namespace
}  // namespace joulemap
