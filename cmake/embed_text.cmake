# cmake -DINPUT=FILE -DOUTPUT=FILE.cc -DNAMESPACE=a::b -DFUNCTION=name -P embed_text.cmake
# Makes a text a part of the program: a function that returns it.
file(READ "${INPUT}" text)
# clang warns of literals longer than compilers must accept.
file(WRITE "${OUTPUT}" "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#include <string_view>\nnamespace ${NAMESPACE} {\nstd::string_view ${FUNCTION}();\nstd::string_view ${FUNCTION}() {\n  return R\"joulemap_text(${text})joulemap_text\";\n}\n}  // namespace ${NAMESPACE}\n")
