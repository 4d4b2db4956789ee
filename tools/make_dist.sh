#!/usr/bin/env bash
# make_dist.sh [OBJECTS OUT MACHINE]
# Puts what `make dist` built into a folder, an archive and a Python wheel that run where none of our libraries are installed,
# and checks every binary: no library beyond glibc and libgcc, no symbol of a glibc newer than 2.28, and of the
# libraries, which are loaded into other programs, no symbol but our own interface. XGBoost, which is in the folder but not in the
# wheel, needs glibc 2.34 and libstdc++ of GCC 11.
set -euo pipefail
cd "$(dirname "$0")/.."
newest_glibcxx=3.4.29
objects=${1:-build/dist-objects} out=${2:-build/dist} machine=${3:-$(uname -m)}
version=$(sed -n 's/^project(joulemap VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=joulemap-$version-linux-$machine
folder=$out/$name

fail() { echo "make_dist: $*" >&2; exit 1; }

# cached NAME: what CMake found. The tools are those of the compiler, which may be one for another machine.
cached() { sed -n "s/^$1:FILEPATH=//p" $objects/CMakeCache.txt; }
strip=$(cached CMAKE_STRIP) objdump=$(cached CMAKE_OBJDUMP) nm=$(cached CMAKE_NM)

needed_by() { $objdump -p "$1" | awk '/NEEDED/ { print $2 }'; }
everywhere='libc|libm|libdl|libgcc_s|libpthread|ld-linux.*'

# check FILE [PATTERN OF NAMES THAT MAY BE NEEDED [NEWEST GLIBC]]
check() {
  local file=$1 also=${2:-libc} newest_glibc=${3:-2.28}
  local needed newest newest_cxx
  needed=$(needed_by "$file" | grep -vE "^($everywhere|$also)\.so" || true)
  [[ -z $needed ]] || fail "$file needs libraries that other distributions may not have: $needed"
  newest=$($objdump -T "$file" | grep -o 'GLIBC_2\.[0-9]*' | sort -Vu | tail -1 || true)
  [[ -n $newest ]] || newest=GLIBC_2.2.5  # it calls nothing of it
  [[ $(printf '%s\n%s\n' "GLIBC_$newest_glibc" "$newest" | sort -V | tail -1) == "GLIBC_$newest_glibc" ]] ||
    fail "$file needs $newest, newer than $newest_glibc"
  newest_cxx=$($objdump -T "$file" | grep -o 'GLIBCXX_3\.4[.0-9]*' | sort -Vu | tail -1 || true)
  [[ $(printf '%s\n%s\n' "GLIBCXX_$newest_glibcxx" "$newest_cxx" | sort -V | tail -1) == "GLIBCXX_$newest_glibcxx" ]] ||
    fail "$file needs $newest_cxx, newer than $newest_glibcxx"
  echo "make_dist: $file needs $newest"
}

# check_exports FILE PATTERN: nothing else can be seen from outside.
check_exports() {
  local others
  others=$($nm -D --defined-only "$1" | awk '{ print $3 }' | grep -vE "^($2)$" || true)
  [[ -z $others ]] || fail "$1 exports symbols that may clash: $(head -3 <<<"$others" | tr '\n' ' ')"
}

rm -rf "$folder" "$out"/joulemap-*.whl
package=$folder/python/joulemap
mkdir -p "$folder/bin" "$folder/lib" "$folder/include" "$package/inject" "$package/_bench_serve" "$package/_collect" "$package/_predict"
$strip -o "$folder/bin/joulemap" $objects/bin/joulemap
mkdir -p "$package/bin"
ln -s ../../../bin/joulemap "$package/bin/joulemap"  # jm.attach and jm.load start it from there
for library in libjoulemap.so libjoulemap_capture.so; do
  $strip --strip-unneeded -o "$folder/lib/$library" "$objects/lib/$library"
  ln -s "../../lib/$library" "$package/$library"  # one file, so that a process that loads both has one copy
done
# put_beside LIBRARY: into lib/, where the program looks for it, with what it needs itself and its licence.
put_beside() {
  local library=$1 soname package need
  soname=$($objdump -p "$library" | awk '/SONAME/ { print $2 }')
  [[ ! -e $folder/lib/$soname ]] || return 0
  $strip --strip-unneeded -o "$folder/lib/$soname" "$(readlink -f "$library")"
  package=${soname/.so./}  # Debian names its packages so
  cp "/usr/share/doc/$package/copyright" "$folder/lib/${soname%%.*}.LICENSE"
  for need in $(needed_by "$library" | grep -vE "^($everywhere|libstdc\+\+)\.so" || true); do
    put_beside "$(dirname "$library")/$need"
  done
}
# Debian has no static ISA-L, and XGBoost is loaded by those only who fit models.
put_beside "$(cached ISAL_LIBRARY)"
put_beside "$(cached XGBOOST_LIBRARY)"
# The package as the wheel has it: what `record` injects into Python programs lies in it.
for extension in _hot.abi3.so _capture.abi3.so; do
  $strip --strip-unneeded -o "$package/$extension" "$objects/python/joulemap/$extension"
done
cp python/joulemap/*.py python/joulemap/*.pyi python/joulemap/py.typed "$package/"
cp python/joulemap/inject/sitecustomize.py "$package/inject/"
cp python/joulemap/_collect/*.py python/joulemap/_collect/*.csv "$package/_collect/"
cp python/joulemap/_bench_serve/*.py "$package/_bench_serve/"
cp python/joulemap/_predict/*.py "$package/_predict/"
cp -r include/joulemap "$folder/include/"
cp README.md LICENSE CHANGELOG.md "$folder/"

check "$folder/bin/joulemap" libisal
check "$folder"/lib/libisal.so.*
for library in "$folder"/lib/lib{xgboost,dmlc,gomp}.so.*; do check "$library" 'libdmlc|libgomp|libstdc\+\+' 2.34; done
check "$folder/lib/libjoulemap.so" libjoulemap_capture
check "$folder/lib/libjoulemap_capture.so"
check "$package/_hot.abi3.so" 'libjoulemap|libjoulemap_capture'
check "$package/_capture.abi3.so" libjoulemap_capture
check_exports "$folder/lib/libjoulemap.so" 'jm_.*'
check_exports "$folder/lib/libjoulemap_capture.so" 'jmc_.*|InitializeInjection.*'
check_exports "$package/_hot.abi3.so" 'PyInit__hot'
check_exports "$package/_capture.abi3.so" 'PyInit__capture'

tar -C "$out" -czf "$out/$name.tar.gz" "$name"
echo "make_dist: $folder, $out/$name.tar.gz"
python3 tools/make_wheel.py --build "$objects" --out "$out" --beside "$folder/lib" --machine "$machine" --strip "$strip" \
  ${JOULEMAP_SOURCE_URL:+--source-url "$JOULEMAP_SOURCE_URL"}
python3 tools/check_wheel.py "$out"/joulemap-"$version"-*_"$machine".whl
