// SPDX-License-Identifier: Apache-2.0
#include "recording/anonymizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/hash.h"
#include "base/redaction.h"

namespace joulemap::recording {
namespace {

constexpr std::size_t kUuidSize = 36;
constexpr std::size_t kMinReplacedNameLength = 3;  // shorter names are too likely to be ordinary words

// Hash of an ID. The IDs are random numbers of 122 bits, which cannot be guessed from the hash.
std::uint64_t hash_with_salt(std::string_view salt, std::string_view text) {
  std::uint64_t hash = kFnvOffsetBasis;
  for (const std::string_view part : {salt, text}) hash = fnv1a(0xff, fnv1a(part, hash));
  return mix_bits(hash);
}

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

bool is_uuid(std::string_view text) {
  if (text.size() != kUuidSize) return false;
  for (std::size_t i = 0; i < kUuidSize; ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_path_delimiter(char c) { return std::string_view(" \t\n\"'`,;:|()[]{}<>=").find(c) != std::string_view::npos; }

// Kernel file systems are the same on every machine.
bool is_kernel_filesystem_path(std::string_view path) {
  return path.starts_with("/sys/") || path.starts_with("/proc/") || path.starts_with("/dev/");
}

std::string strip_folders_from_paths(std::string_view text) {
  std::string out;
  for (std::size_t position = 0; position < text.size();) {
    std::size_t end = position;
    while (end < text.size() && !is_path_delimiter(text[end])) ++end;
    const std::string_view run = text.substr(position, end - position);
    const bool is_path =
        run.starts_with('/') || run.starts_with("~") || run.starts_with("./") || run.starts_with("../");
    const std::size_t slash = run.find_last_not_of('/') == std::string_view::npos
                                  ? std::string_view::npos
                                  : run.rfind('/', run.find_last_not_of('/'));
    const bool strips_folders = is_path && !is_kernel_filesystem_path(run) && slash != std::string_view::npos;
    out += strips_folders ? run.substr(slash + 1) : run;
    if (end < text.size()) out += text[end++];
    position = end;
  }
  return out;
}

// User names in the home folders of a text: "bob" for "/home/bob/train.py".
std::set<std::string> find_home_folder_users(std::string_view text) {
  std::set<std::string> users;
  for (const std::string_view home_root : {"/home/", "/Users/"}) {
    for (std::size_t position = text.find(home_root); position != std::string_view::npos;
         position = text.find(home_root, position + 1)) {
      const std::size_t begin = position + home_root.size();
      std::size_t end = begin;
      while (end < text.size() && text[end] != '/' && !is_path_delimiter(text[end])) ++end;
      users.emplace(text.substr(begin, end - begin));
    }
  }
  return users;
}

}  // namespace

void Anonymizer::add_user_name(std::string_view user) {
  if (user.size() >= kMinReplacedNameLength && user != "root")
    name_replacements_.try_emplace(std::string(user), "user");
}

std::string Anonymizer::anonymize_host(const RecordingSource& source) const {
  if (!is_imported(source)) return fmt::format("host-{:04x}", hash_with_salt(recording_id_, source.boot_id) & 0xffff);
  const auto imported_host = std::find(imported_hosts_.begin(), imported_hosts_.end(), source.host);
  return fmt::format("host-{}", imported_host - imported_hosts_.begin() + 1);
}

void Anonymizer::collect_names(const RecordingSource& source) {
  recording_id_ = source.recording_id;
  for (const std::string& word : source.command) {
    for (const std::string& user : find_home_folder_users(word)) add_user_name(user);
  }
  if (source.host.empty()) return;
  if (is_imported(source) && std::ranges::count(imported_hosts_, source.host) == 0) {
    imported_hosts_.push_back(source.host);
  }
  const std::string brief = source.host.substr(0, source.host.find('.'));
  for (const std::string& name : {source.host, brief}) {
    if (name.size() >= kMinReplacedNameLength && name != "localhost")
      name_replacements_.insert_or_assign(name, anonymize_host(source));
  }
}

RecordingSource Anonymizer::anonymize_source(const RecordingSource& source) {
  RecordingSource anonymized_source = source;
  if (!source.host.empty()) anonymized_source.host = anonymize_host(source);
  if (!is_imported(source)) {
    anonymized_source.boot_id = fmt::format("{:016x}", hash_with_salt(recording_id_, source.boot_id));
    const auto next_anonymous_pid = static_cast<std::int64_t>(anonymous_pids_.size()) + 1;
    anonymized_source.pid = anonymous_pids_.try_emplace({source.boot_id, source.pid}, next_anonymous_pid).first->second;
  }
  anonymized_source.command = anonymize_command(source.command);
  return anonymized_source;
}

std::vector<std::string> Anonymizer::anonymize_command(const std::vector<std::string>& words) const {
  std::vector<std::string> anonymized_words;
  for (const std::string& word : redact_arguments(words)) {
    const std::size_t scheme = word.find("://");
    if (scheme != std::string::npos) {
      anonymized_words.push_back(word.substr(0, scheme + 3) + std::string(kRedactionPlaceholder));
      continue;
    }
    // A plain word with folders, "src/bob/train.py", counts as a path, too.
    const bool is_plain = std::ranges::none_of(word, is_path_delimiter) && !is_kernel_filesystem_path(word);
    const std::size_t last_non_slash = word.find_last_not_of('/');
    const std::size_t slash =
        is_plain && last_non_slash != std::string::npos ? word.rfind('/', last_non_slash) : std::string::npos;
    anonymized_words.push_back(slash == std::string::npos ? anonymize_text(word)
                                                          : anonymize_name(std::string_view(word).substr(slash + 1)));
  }
  return anonymized_words;
}

std::string Anonymizer::replace_uuids(std::string text) const {
  for (const std::string_view prefix : {"GPU-", "MIG-"}) {
    for (std::size_t position = text.find(prefix); position != std::string::npos;
         position = text.find(prefix, position + 1)) {
      const std::size_t begin = position + prefix.size();
      if (begin + kUuidSize > text.size()) break;
      const std::string uuid = text.substr(begin, kUuidSize);
      if (!is_uuid(uuid)) continue;
      const std::string hex =
          fmt::format("{:016x}{:016x}", hash_with_salt(recording_id_, uuid), hash_with_salt(uuid, recording_id_));
      std::size_t hex_index = 0;
      for (std::size_t i = 0; i < kUuidSize; ++i) {
        if (uuid[i] != '-') text[begin + i] = hex[hex_index++];
      }
    }
  }
  return text;
}

std::string Anonymizer::replace_names(std::string_view text) const {
  std::string out;
  for (std::size_t position = 0; position < text.size();) {
    const bool is_word_start = position == 0 || !is_word_character(text[position - 1]);
    const auto name_replacement =
        !is_word_start ? name_replacements_.end() : std::ranges::find_if(name_replacements_, [&](const auto& word) {
          const std::string_view remaining_text = text.substr(position);
          return remaining_text.starts_with(word.first) &&
                 (remaining_text.size() == word.first.size() || !is_word_character(remaining_text[word.first.size()]));
        });
    if (name_replacement == name_replacements_.end()) {
      out += text[position++];
    } else {
      out += name_replacement->second;
      position += name_replacement->first.size();
    }
  }
  return out;
}

std::string Anonymizer::anonymize_name(std::string_view name) const { return replace_uuids(replace_names(name)); }

std::string Anonymizer::anonymize_text(std::string_view text) const {
  return anonymize_name(strip_folders_from_paths(text));
}

}  // namespace joulemap::recording
