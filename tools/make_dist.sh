#!/usr/bin/env bash
# Puts what `make dist` built into a folder, an archive and a Python wheel that run where none of our libraries are installed,
# and proves it of every binary: no library beyond glibc and libgcc, no symbol of a glibc newer than 2.34, and of the
# libraries, which are loaded into other programs, no symbol but our own interface.
set -euo pipefail
cd "$(dirname "$0")/.."
newest_glibc=2.34
objects=build/dist-objects
version=$(sed -n 's/^project(joulemap VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=joulemap-$version-linux-$(uname -m)
folder=build/dist/$name

fail() { echo "make_dist: $*" >&2; exit 1; }

# check FILE [PATTERN OF NAMES THAT MAY BE NEEDED]
check() {
  local file=$1 also=${2:-libc}
  local needed newest
  needed=$(objdump -p "$file" | awk '/NEEDED/ { print $2 }' | grep -vE "^(libc|libm|libgcc_s|libpthread|ld-linux.*|$also)\.so" || true)
  [[ -z $needed ]] || fail "$file needs libraries that may be missing elsewhere: $needed"
  newest=$(objdump -T "$file" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -1 || true)
  [[ -n $newest ]] || newest=GLIBC_2.2.5  # it calls nothing of it
  [[ $(printf '%s\n%s\n' "GLIBC_$newest_glibc" "$newest" | sort -V | tail -1) == "GLIBC_$newest_glibc" ]] ||
    fail "$file needs $newest, newer than $newest_glibc"
  echo "make_dist: $file needs $newest"
}

# check_exports FILE PATTERN: nothing else can be seen from outside.
check_exports() {
  local others
  others=$(nm -D --defined-only "$1" | awk '{ print $3 }' | grep -vE "^($2)$" || true)
  [[ -z $others ]] || fail "$1 shows names that may clash: $(head -3 <<<"$others" | tr '\n' ' ')"
}

rm -rf "$folder"
package=$folder/python/joulemap
mkdir -p "$folder/bin" "$folder/lib" "$folder/include" "$package/inject" "$package/_collect" "$package/_predict"
strip -o "$folder/bin/joulemap" $objects/bin/joulemap
mkdir -p "$package/bin"
ln -s ../../../bin/joulemap "$package/bin/joulemap"  # jm.attach and jm.load start it from there
for library in libjoulemap.so libjoulemap_capture.so; do
  strip --strip-unneeded -o "$folder/lib/$library" "$objects/lib/$library"
  ln -s "../../lib/$library" "$package/$library"  # one file, so that a process that loads both has one copy
done
# Debian has no static ISA-L: it lies beside the program, which looks for it there.
isal=$(ldd $objects/bin/joulemap | awk '/libisal/ { print $3 }')
if [[ -n $isal ]]; then
  strip --strip-unneeded -o "$folder/lib/libisal.so.2" "$(readlink -f "$isal")"
  cp /usr/share/doc/libisal2/copyright "$folder/lib/libisal.LICENSE"
fi
# The package as the wheel has it: what `record` injects into Python programs lies in it.
for extension in _hot.abi3.so _capture.abi3.so; do
  strip --strip-unneeded -o "$package/$extension" "$objects/python/joulemap/$extension"
done
cp python/joulemap/*.py python/joulemap/*.pyi python/joulemap/py.typed "$package/"
cp python/joulemap/inject/sitecustomize.py "$package/inject/"
cp python/joulemap/_collect/*.py python/joulemap/_collect/*.csv "$package/_collect/"
cp python/joulemap/_predict/*.py "$package/_predict/"
cp -r include/joulemap "$folder/include/"
cp README.md LICENSE CHANGELOG.md "$folder/"

check "$folder/bin/joulemap" libisal
[[ -z $isal ]] || check "$folder/lib/libisal.so.2"
check "$folder/lib/libjoulemap.so" libjoulemap_capture
check "$folder/lib/libjoulemap_capture.so"
check "$package/_hot.abi3.so" 'libjoulemap|libjoulemap_capture'
check "$package/_capture.abi3.so" libjoulemap_capture
check_exports "$folder/lib/libjoulemap.so" 'jm_.*'
check_exports "$folder/lib/libjoulemap_capture.so" 'jmc_.*|InitializeInjection.*'
check_exports "$package/_hot.abi3.so" 'PyInit__hot'
check_exports "$package/_capture.abi3.so" 'PyInit__capture'

tar -C build/dist -czf "build/dist/$name.tar.gz" "$name"
echo "make_dist: $folder, build/dist/$name.tar.gz"
python3 tools/make_wheel.py --build $objects --out build/dist
