# headers_selfcontained: compiles each header of the given folders on its own,
# which proves that it includes what it uses. Built by ./dev tidy only.
function(octavo_selfcontained_headers)
  cmake_parse_arguments(ARG "" "" "FOLDERS;DEPS" ${ARGN})
  set(sources)
  foreach(folder ${ARG_FOLDERS})
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
         ${PROJECT_SOURCE_DIR}/${folder}/*.hpp)
    foreach(header ${headers})
      set(source ${CMAKE_BINARY_DIR}/headers/${header}.cpp)
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
      list(APPEND sources ${source})
    endforeach()
  endforeach()
  if(sources)
    add_library(headers_selfcontained OBJECT EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(headers_selfcontained PRIVATE ${ARG_DEPS} octavo_options)
    target_include_directories(headers_selfcontained PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(headers_selfcontained PRIVATE
      OCTAVO_SOURCE_DIR="${PROJECT_SOURCE_DIR}" OCTAVO_SHARED_DIR="${OCTAVO_SHARED_DIR}")
  endif()
endfunction()
