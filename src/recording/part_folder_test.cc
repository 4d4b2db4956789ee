// SPDX-License-Identifier: Apache-2.0
#include "recording/part_folder.h"

#include <gtest/gtest.h>
