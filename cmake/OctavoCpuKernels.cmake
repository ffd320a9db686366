# Compile flags of the CPU kernels, one file per instruction set; which one runs is
# decided at run time. Other processors than x86 get the portable kernels only.
set(kernels ${PROJECT_SOURCE_DIR}/cpu/kernels)
# Unrolled loops with a check at every access take minutes to optimize.
if(OCTAVO_SANITIZE)
  set(optimize -O1)
else()
  set(optimize -O3)
endif()
set_source_files_properties(${kernels}/kernels_portable.cpp PROPERTIES
                            COMPILE_OPTIONS "${optimize}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64|i[3-6]86")
  set(avx2 ${optimize} -mavx2 -mfma -mf16c)
  set_source_files_properties(${kernels}/kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "${avx2}")
  # GCC warns of its own header's undefined registers.
  set(vnni ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -Wno-maybe-uninitialized)
  set_source_files_properties(${kernels}/kernels_vnni.cpp PROPERTIES COMPILE_OPTIONS "${vnni}")
endif()
