// SPDX-License-Identifier: Apache-2.0
#include "report/text/kernel_names.h"

#include "report/text/text_style.h"

namespace joulemap::report {
namespace {

// The name up to the "(" of its parameters. Skips "(anonymous namespace)" and parentheses in template arguments.
std::string_view strip_parameters(std::string_view name) {
  constexpr std::string_view kAnonymousNamespacePrefix = "(anonymous";
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>' && depth > 0) --depth;
    if (name[i] == '(' && depth == 0 && i > 0 && !name.substr(i).starts_with(kAnonymousNamespacePrefix))
      return name.substr(0, i);
  }
  return name;
}

struct KernelNameParts {
  std::string_view namespaces;          // "at::native::"
  std::string_view base_name;           // "vectorized_elementwise_kernel"
  std::string_view template_arguments;  // template arguments: "4, float"
};

KernelNameParts split_kernel_name(std::string_view name) {
  const std::size_t open_position = name.find('<');
  const std::string_view name_without_arguments = name.substr(0, open_position);
  const std::size_t colons_position = name_without_arguments.rfind("::");
  const std::size_t begin = colons_position == std::string_view::npos ? 0 : colons_position + 2;
  KernelNameParts parts{name_without_arguments.substr(0, begin), name_without_arguments.substr(begin), {}};
  const std::size_t close = name.rfind('>');
  if (open_position != std::string_view::npos && close != std::string_view::npos && close > open_position)
    parts.template_arguments = name.substr(open_position + 1, close - open_position - 1);
  return parts;
}

}  // namespace

std::string brief_kernel_name(std::string_view name, std::size_t columns) {
  constexpr std::string_view kVoidReturnPrefix = "void ";
  constexpr std::size_t kMinArgumentColumns = 4;
  if (name.starts_with(kVoidReturnPrefix)) name.remove_prefix(kVoidReturnPrefix.size());
  const std::string_view name_without_parameters = strip_parameters(name);
  if (count_display_columns(name_without_parameters) <= columns) return std::string(name_without_parameters);
  const KernelNameParts parts = split_kernel_name(name_without_parameters);
  if (parts.template_arguments.empty()) return shorten_to_columns(parts.base_name, columns);
  std::string full_name = std::string(parts.base_name) + "<" + std::string(parts.template_arguments) + ">";
  if (count_display_columns(full_name) <= columns) return full_name;
  const std::size_t fixed_columns = count_display_columns(parts.base_name) + 4;  // "<..", ">"
  if (fixed_columns + kMinArgumentColumns > columns) return shorten_to_columns(parts.base_name, columns);
  const std::size_t argument_columns = columns - fixed_columns;
  return std::string(parts.base_name) + "<.." +
         std::string(parts.template_arguments.substr(parts.template_arguments.size() - argument_columns)) + ">";
}

}  // namespace joulemap::report
