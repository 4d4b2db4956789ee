# joulemap_module(<folder> SOURCES ... TESTS ... MAIN ... LINKS ...)
#
# One target per folder of src/: a static library `joulemap_<folder>`, compiled once, linked into the program and into
# the folder's own test program. LINKS are the folders it may use (ARCHITECTURE.md has the table) and the third-party
# libraries it is the face of. MAIN holds the folder's main(), for an executable of its own. A source or test that lies in the folder but in no list fails the configure step.
include(GoogleTest OPTIONAL)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# joulemap_unity(<target> <source>...): compiles the sources of a folder in a few groups (unity_groups.py), which takes a
# third of the time of compiling each by itself. JOULEMAP_UNITY=OFF compiles each by itself.
function(joulemap_unity target)
  if(NOT JOULEMAP_UNITY)
    return()
  endif()
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py ${JOULEMAP_UNITY_LINES} ${ARGN}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE grouping OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" grouping "${grouping}")
  foreach(line IN LISTS grouping)
    string(REGEX MATCH "^([0-9]+) (.+)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(joulemap_module name)
  cmake_parse_arguments(MODULE "" "" "SOURCES;TESTS;MAIN;LINKS" ${ARGN})

  file(GLOB_RECURSE present RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cc)
  foreach(file IN LISTS present)
    if(NOT file IN_LIST MODULE_SOURCES AND NOT file IN_LIST MODULE_TESTS AND NOT file IN_LIST MODULE_MAIN)
      message(FATAL_ERROR "src/${name}/${file} is in no list of src/${name}/CMakeLists.txt")
    endif()
  endforeach()

  if(MODULE_SOURCES)
    add_library(joulemap_${name} STATIC ${MODULE_SOURCES})
    joulemap_unity(joulemap_${name} ${MODULE_SOURCES})
    target_include_directories(joulemap_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(joulemap_${name} PUBLIC joulemap_options ${MODULE_LINKS})
  else()
    add_library(joulemap_${name} INTERFACE)
    target_include_directories(joulemap_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(joulemap_${name} INTERFACE joulemap_options ${MODULE_LINKS})
  endif()

  if(MODULE_TESTS AND JOULEMAP_TESTS)
    add_executable(joulemap_${name}_test ${MODULE_TESTS})
    joulemap_unity(joulemap_${name}_test ${MODULE_TESTS})
    # Tests spend their time in the libraries: optimising what calls those takes a third of the time of compiling it.
    target_compile_options(joulemap_${name}_test PRIVATE -O0)
    target_link_libraries(joulemap_${name}_test PRIVATE joulemap_${name} joulemap_test_support GTest::gtest_main)
    gtest_discover_tests(joulemap_${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 120 PROPERTIES LABELS unit)
  endif()
endfunction()
