# One library and one test binary per folder.
#
#   octavo_library(core)                       core/**.cpp -> target octavo_core
#   octavo_library(actors DEPS octavo_core CAF::core)
#
# Files named *.test.cpp sit beside their source and become <folder>_tests,
# every TEST_CASE its own ctest test. The link dependencies are the folder
# table of ARCHITECTURE.md: what is not listed cannot be used.
include(Catch)

function(octavo_library folder)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS" ${ARGN})
  set(root ${PROJECT_SOURCE_DIR}/${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "\\.test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\.test\\.cpp$")
  string(REPLACE "/" "_" name ${folder})
  if(sources)
    add_library(octavo_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(octavo_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(octavo_${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(octavo_${name} ${scope} ${ARG_DEPS} octavo_options)
  if(BUILD_TESTING AND tests)
    octavo_tests(${name}_tests SOURCES ${tests} DEPS octavo_${name} ${ARG_TEST_DEPS})
  endif()
endfunction()

function(octavo_tests target)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} octavo_catch octavo_options)
  target_compile_definitions(${target} PRIVATE
    OCTAVO_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    OCTAVO_SHARED_DIR="${OCTAVO_SHARED_DIR}")
  catch_discover_tests(${target} TEST_PREFIX "${target}: " PROPERTIES TIMEOUT 300)
endfunction()
