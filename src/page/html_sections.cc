// SPDX-License-Identifier: Apache-2.0
#include "page/html_sections.h"

#include <fmt/format.h>

#include "page/page_html.h"
#include "page/static_page.h"

namespace joulemap::page {
namespace {

constexpr std::string_view kContentSecurityPolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

// CSS in addition to that of the static page. Plots have a light background: in dark mode a filter inverts their
// lightness and keeps the hues.
constexpr std::string_view kSectionsStyle =
    "td{white-space:normal;max-width:46em}td.n,th.n{text-align:right;white-space:nowrap}tbody "
    "tr:hover{background:#8882}"
    "li{margin:4px 0}code{background:#8883;padding:0 4px;border-radius:3px}"
    "@media (prefers-color-scheme:dark){svg{filter:invert(1) hue-rotate(180deg)}}";

}  // namespace

std::string sections_page_begin(std::string_view title, std::string_view paragraph) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
      "<title>{} · Joulemap</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n<p>{}</p>\n",
      kContentSecurityPolicy, escape_html(title), static_page_css(), kSectionsStyle, escape_html(title),
      escape_html(paragraph));
}

std::string html_table(const report::TextTable& table) {
  std::string out = fmt::format("<table><caption>{}</caption><thead><tr>", escape_html(table.caption));
  for (std::size_t i = 0; i < table.column_headers.size(); ++i) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", table.is_number[i] ? " class=\"n\"" : "",
                       escape_html(table.column_headers[i]));
  }
  out += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += fmt::format("<td{}>{}</td>", table.is_number[i] ? " class=\"n\"" : "", escape_html(row[i]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table>\n";
}

std::string html_section(std::string_view id, std::string_view title, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, escape_html(title), content);
}

std::string table_section(std::string_view id, std::string_view title, const report::TextTable& table) {
  return table.rows.empty() ? "" : html_section(id, title, html_table(table));
}

std::string strip_xml_declaration(const std::string& svg) {
  const std::size_t begin = svg.find("<svg");  // HTML must not contain an XML declaration
  return begin == std::string::npos ? "" : svg.substr(begin) + "\n";
}

}  // namespace joulemap::page
