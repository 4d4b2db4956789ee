#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bundle_page.sh NPM WEB WORK OUT.cc: the script and style of the page as C++. Without npm, or without its packages (no
# network), both are empty and the page is static: never a reason for the build to fail. Sources that do not bundle are.
set -eu
npm=$1 web=$2 work=$3 out=$4

static() {
    echo "bundle_page: the page will be static: $1" >&2
    printf '// Generated: there was no npm.\n#include "page/page_bundle.h"\n\nnamespace joulemap::page {\nPageBundle page_bundle() { return {}; }\n}  // namespace joulemap::page\n' >"$out"
    exit 0
}

[ -n "$npm" ] || static "npm is not installed"
mkdir -p "$work"
cp "$web/package.json" "$web/package-lock.json" "$web/.npmrc" "$web/build.mjs" "$work/"
rm -rf "$work/src"
cp -r "$web/src" "$work/src"
cd "$work"
if ! cmp -s package-lock.json .installed-lock.json; then
    timeout 120 "$npm" ci --ignore-scripts --prefer-offline --fetch-retries=1 --loglevel=error >npm.log 2>&1 || static "npm ci failed, see $work/npm.log"
    cp package-lock.json .installed-lock.json
fi
node build.mjs "$out"
