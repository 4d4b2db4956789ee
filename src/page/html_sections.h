// SPDX-License-Identifier: Apache-2.0
//
// Parts of the pages of `experiment analyze` and `model eval`: a self-contained page of sections with tables and
// pictures, without scripts. All texts are escaped. Pure.
#pragma once

#include <string>
#include <string_view>

#include "report/text/text_table.h"

namespace joulemap::page {

// The page up to its first section: head with the style, title, one paragraph.
std::string sections_page_begin(std::string_view title, std::string_view paragraph);
inline constexpr std::string_view kSectionsPageEnd = "</main>\n</body>\n</html>\n";

// `content` is HTML; an empty one gives no section.
std::string html_section(std::string_view id, std::string_view title, const std::string& content);
std::string html_table(const report::TextTable& table);
std::string table_section(std::string_view id, std::string_view title, const report::TextTable& table);
// An SVG for embedding, without its XML declaration; empty for an empty SVG.
std::string strip_xml_declaration(const std::string& svg);

}  // namespace joulemap::page
