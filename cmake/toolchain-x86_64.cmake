# `make dist-x86_64` on a machine of another architecture.
set(CMAKE_SYSTEM_PROCESSOR x86_64)
include(${CMAKE_CURRENT_LIST_DIR}/cross.cmake)
