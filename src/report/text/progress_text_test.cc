// SPDX-License-Identifier: Apache-2.0
#include "report/text/progress_text.h"

#include <gtest/gtest.h>

namespace joulemap::report {
namespace {

TEST(ProgressText, EstimatesTheTimeLeftFromTheTimeTaken) {
  EXPECT_EQ(progress_text("reading trace.json", 0.25, 4), "reading trace.json: 25 %, about 12 s left");
  EXPECT_EQ(progress_text("calibrating", 0.5, 100), "calibrating: 50 %, about 2 min left");
}

TEST(ProgressText, EstimatesNothingAtTheBeginningAndAtTheEnd) {
  EXPECT_EQ(progress_text("fitting", 0.001, 4), "fitting: 0 %");
  EXPECT_EQ(progress_text("fitting", 1, 4), "fitting: 100 %");
  EXPECT_EQ(progress_text("fitting", 1.7, 4), "fitting: 100 %");
}

}  // namespace
}  // namespace joulemap::report
