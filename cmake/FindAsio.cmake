# Finds standalone Asio, which is headers only. Defines Asio::asio.
find_path(Asio_INCLUDE_DIR asio.hpp)
if(Asio_INCLUDE_DIR)
  file(STRINGS ${Asio_INCLUDE_DIR}/asio/version.hpp version_line
       REGEX "#define ASIO_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" version_digits "${version_line}")
  math(EXPR version_major "${version_digits} / 100000")
  math(EXPR version_minor "(${version_digits} / 100) % 1000")
  math(EXPR version_patch "${version_digits} % 100")
  set(Asio_VERSION ${version_major}.${version_minor}.${version_patch})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Asio REQUIRED_VARS Asio_INCLUDE_DIR VERSION_VAR Asio_VERSION)

if(Asio_FOUND AND NOT TARGET Asio::asio)
  add_library(Asio::asio INTERFACE IMPORTED)
  # Whether Asio sees aligned_alloc depends on what was included before it; without
  # this, one file would allocate by new what another frees by free.
  set_target_properties(Asio::asio PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES ${Asio_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS
      "ASIO_STANDALONE;ASIO_NO_DEPRECATED;ASIO_DISABLE_STD_ALIGNED_ALLOC")
  # GCC before 13 takes a coroutine frame's own new and delete for a mismatch.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(Asio::asio INTERFACE
                           $<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>)
  endif()
endif()
