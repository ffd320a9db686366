# CUDA, which is optional: the language is enabled only where gpu/ has sources
# and a compiler is found. Sets OCTAVO_CUDA_FOUND for the folder's target.
set(OCTAVO_CUDA AUTO CACHE STRING
    "CUDA executor: AUTO (where nvcc is found), ON (fail without nvcc) or OFF")
set_property(CACHE OCTAVO_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT OCTAVO_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "OCTAVO_CUDA is \"${OCTAVO_CUDA}\"; allowed are AUTO, ON and OFF")
endif()

set(OCTAVO_CUDA_FOUND OFF)
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gpu/*.cu)
if(OCTAVO_CUDA STREQUAL "OFF" OR NOT cuda_sources)
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(OCTAVO_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OCTAVO_CUDA is ON and no nvcc was found: put it on PATH, name it with "
                        "CUDACXX=/path/to/nvcc, or configure with -DOCTAVO_CUDA=AUTO")
  endif()
  message(STATUS "no nvcc on PATH: building without the CUDA executor")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90-real 90-virtual)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
# CMake before 3.26 does not know that nvcc 12 and later speak C++20.
if(CMAKE_VERSION VERSION_LESS 3.26 AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
find_package(CUDAToolkit REQUIRED)
set(OCTAVO_CUDA_FOUND ON)
