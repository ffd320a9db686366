# The CUDA part in two flavours from the same sources:
#
#   octavo_gpu    static; a C++ compiler and the emulator of gpu/simt. What tests run.
#   octavo_cuda   module library; nvcc, for devices. Only where nvcc is found.
#
# Files *.emulated.cpp, and those of gpu/simt, belong to the first only; *.cuda.cpp and
# *.cuda.cu to the second only. Both need the toolkit's headers.
find_package(CUDAToolkit QUIET)
find_path(OCTAVO_CUDA_INCLUDE_DIR cuda_fp8.h
          HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS /usr/local/cuda/include /usr/include)
set(OCTAVO_GPU_FOUND OFF)
if(OCTAVO_CUDA STREQUAL "OFF" OR NOT OCTAVO_CUDA_INCLUDE_DIR)
  message(STATUS "no CUDA headers (cuda_fp8.h), or OCTAVO_CUDA is OFF: building without gpu/")
  return()
endif()
set(OCTAVO_GPU_FOUND ON)
add_subdirectory(gpu)
