// SPDX-License-Identifier: Apache-2.0
// Bundles the page's script and style and writes them as C++: node build.mjs OUT.cc
import { readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2];
const result = await build({
  entryPoints: ["src/main.js"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  legalComments: "none",
  charset: "utf8",
  outdir: "dist",
  write: false,
  loader: { ".css": "css" },
});

const text = (suffix) => result.outputFiles.find((file) => file.path.endsWith(suffix)).text;
// An end tag inside the script would close its element.
const script = text(".js").replaceAll("</script", "<\\/script");
const licence = readFileSync("node_modules/uplot/LICENSE", "utf8").trim().replaceAll("*/", "* /");
const literal = (content) => {
  if (content.includes(')jmpage"')) throw new Error("the bundle holds the end of its literal");
  return `R"jmpage(${content})jmpage"`;
};
writeFileSync(
  out,
  `// Generated from web/.
#include "page/page_bundle.h"

namespace joulemap::page {
PageBundle page_bundle() {
  return {${literal(`/* uPlot: ${licence} */\n${script}`)},
          ${literal(text(".css"))}};
}
}  // namespace joulemap::page
`,
);
