#!/usr/bin/env bash
# release.sh [--dry-run] VERSION: builds, checks and tags a release from a clean tree. build/release-VERSION/ then contains the
# wheels, the portable folders, the Debian package, the source archive and SHA256SUMS. --dry-run does all but tag, and accepts a
# version that CHANGELOG.md calls unreleased. It never pushes or uploads; it prints the commands that do.
set -euo pipefail
cd "$(dirname "$0")/.."
python=build/venv/bin/python
dry_run=
[[ ${1:-} != --dry-run ]] || { dry_run=yes; shift; }
version=${1:-}

fail() { echo "release: $*" >&2; exit 1; }
say() { echo "release: $*"; }
is_clean() { [[ -z $(git status --porcelain) ]]; }

[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "usage: tools/release.sh [--dry-run] X.Y.Z"
is_clean || fail "the tree has changes that are not committed: git status"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "the tag v$version exists"
in_cmake=$(sed -n 's/^project(joulemap VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[[ $in_cmake == "$version" ]] || fail "CMakeLists.txt is of version $in_cmake"
heading=$(grep -m1 "^## $version\b" CHANGELOG.md) || fail "CHANGELOG.md has no heading '## $version'"
if [[ $heading == *unreleased* ]]; then
  [[ -n $dry_run ]] || fail "CHANGELOG.md calls $version unreleased; write the date there"
  say "CHANGELOG.md calls $version unreleased; a release needs the date there"
fi

make --no-print-directory wheel deb
for wheel in build/wheels/*.whl; do
  [[ $(basename "$wheel") == joulemap-$version-* ]] || fail "$wheel is of another version"
done
in_program=$(build/dist/joulemap-"$version"-linux-"$(uname -m)"/bin/joulemap --version)
[[ $in_program == "joulemap $version" ]] || fail "the program prints '$in_program'"

out=build/release-$version
rm -rf "$out"
mkdir "$out"
cp build/wheels/*.whl build/deb/*.deb build/dist*/joulemap-"$version"-linux-*.tar.gz "$out/"
git archive --format=tar --prefix="joulemap-$version/" HEAD | gzip -9n >"$out/joulemap-$version.tar.gz"
(cd "$out" && sha256sum -- * >SHA256SUMS && sha256sum --quiet --check SHA256SUMS)

$python -m twine check --strict "$out"/*.whl
JOULEMAP_WHEEL=$(ls "$PWD/$out"/*_"$(uname -m)".whl) $python -m pytest -q -rs tests/wheel
is_clean || fail "the build changed files of the tree: git status"

say "$out contains:"
(cd "$out" && ls -l | awk 'NR > 1 { printf "  %10d  %s\n", $5, $9 }')
if [[ -n $dry_run ]]; then
  say "dry run: v$version is not tagged"
else
  git tag -a "v$version" -m "Joulemap $version"
  say "tagged v$version. Publish it with:"
  echo "  git push origin v$version"
  echo "  $python -m twine upload $out/*.whl"
fi
