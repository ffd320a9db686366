# Compile options that every target shares (target octavo_options), and the
# Catch2 main that works with both major versions (target octavo_catch).
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# Assertions stay on in every build: a wrong count must not go unseen.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")

add_library(octavo_options INTERFACE)
target_compile_options(octavo_options INTERFACE -Wall -Wextra -Wshadow -Wconversion
                       -Wno-sign-conversion -Wno-restrict -ffp-contract=off)
if(OCTAVO_WERROR)
  target_compile_options(octavo_options INTERFACE -Werror)
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  target_link_options(octavo_options INTERFACE -fuse-ld=mold)
endif()

if(OCTAVO_SANITIZE)
  string(REPLACE ";" "," sanitizers "${OCTAVO_SANITIZE}")
  target_compile_options(octavo_options INTERFACE -fsanitize=${sanitizers}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(octavo_options INTERFACE -fsanitize=${sanitizers})
  if("undefined" IN_LIST OCTAVO_SANITIZE)
    # The actor framework's headers bind references through null pointers and cast
    # the end mark of an empty queue to a message.
    target_compile_options(octavo_options INTERFACE -fno-sanitize=null,vptr)
  endif()
endif()

if(BUILD_TESTING)
  find_package(Catch2 REQUIRED)
  if(Catch2_VERSION VERSION_LESS 3)
    add_library(octavo_catch STATIC ${PROJECT_SOURCE_DIR}/tests/support/catch_main.cpp)
    target_link_libraries(octavo_catch PUBLIC Catch2::Catch2)
  else()
    add_library(octavo_catch INTERFACE)
    target_link_libraries(octavo_catch INTERFACE Catch2::Catch2WithMain)
  endif()
endif()
