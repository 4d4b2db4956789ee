// SPDX-License-Identifier: Apache-2.0
//
// Removes secrets from command lines before they are written. The name of an option, variable or header decides, word
// by word: "hf-token" ends in the word "token", "max-tokens" and "tokenizer" do not. Passwords in URLs and tokens with
// a known prefix ("hf_", "ghp_") are removed, too. A secret without a meaningful name (`-p hunter2`, a positional
// argument) is not detected. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemap {

inline constexpr std::string_view kRedactionPlaceholder = "***";

// Whether an option or variable of this name contains a secret: "api-key", "HF_TOKEN", "auth.apiKey".
bool is_secret_name(std::string_view name);

// Replaces X by *** in `--api-key X`, `--api-key=X`, `HF_TOKEN=X`, also inside shell or interpreter code.
std::vector<std::string> redact_arguments(std::span<const std::string> arguments);

}  // namespace joulemap
