# Embeds a folder of text files into a library, so that programs find them from
# anywhere.
#
#   octavo_embed_data(octavo_sim ${PROJECT_SOURCE_DIR}/sim/data
#                     HEADER sim/catalogue/embedded.hpp NAMESPACE octavo::sim
#                     ENDINGS json)
#
# generates embedded_data.cpp, which defines NAMESPACE::embedded_files(), declared
# in HEADER, with each file's path relative to the folder and its text.
function(octavo_embed_data target folder)
  cmake_parse_arguments(ARG "" "HEADER;NAMESPACE" "ENDINGS" ${ARGN})
  list(TRANSFORM ARG_ENDINGS PREPEND ${folder}/*. OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${folder} ${patterns})
  list(SORT files)
  set(code "// Generated from the data folder; do not edit.\n")
  string(APPEND code "#include \"${ARG_HEADER}\"\n\nnamespace ${ARG_NAMESPACE} {\n\n")
  string(APPEND code "std::span<const embedded_file> embedded_files() {\n")
  string(APPEND code "  static constexpr embedded_file files[] = {\n")
  foreach(name ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
    file(READ ${folder}/${name} text)
    string(APPEND code "    {\"${name}\", R\"octavo_data(${text})octavo_data\"},\n")
  endforeach()
  string(APPEND code "  };\n  return files;\n}\n\n}  // namespace ${ARG_NAMESPACE}\n")
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/embedded_data.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "${code}" @ONLY)
  target_sources(${target} PRIVATE ${generated})
endfunction()
