# For a machine of another architecture: Debian's cross compiler and the libraries that tools/make_sysroot.sh unpacked. The
# toolchain file sets CMAKE_SYSTEM_PROCESSOR and includes this one.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_CXX_COMPILER ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-${CMAKE_SYSTEM_PROCESSOR} ABSOLUTE)

# Programs run here; libraries and headers of this machine are never the right ones.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# CMake would ask this machine's Python where its headers are.
file(GLOB Python3_INCLUDE_DIR ${CMAKE_SYSROOT}/usr/include/python3.*)
