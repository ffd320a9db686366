# Embeds a folder of JSON files into a library, so that programs find them from
# anywhere.
#
#   octavo_embed_data(octavo_sim ${PROJECT_SOURCE_DIR}/sim/data)
#
# generates embedded_data.cpp, which defines octavo::sim::embedded_files() with
# each file's path relative to the folder and its text.
function(octavo_embed_data target folder)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.json)
  list(SORT files)
  set(code "// Generated from the data folder; do not edit.\n")
  string(APPEND code "#include \"sim/catalogue/embedded.hpp\"\n\nnamespace octavo::sim {\n\n")
  string(APPEND code "std::span<const embedded_file> embedded_files() {\n")
  string(APPEND code "  static constexpr embedded_file files[] = {\n")
  foreach(name ${files})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/${name})
    file(READ ${folder}/${name} text)
    string(APPEND code "    {\"${name}\", R\"octavo_data(${text})octavo_data\"},\n")
  endforeach()
  string(APPEND code "  };\n  return files;\n}\n\n}  // namespace octavo::sim\n")
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/embedded_data.cpp)
  file(CONFIGURE OUTPUT ${generated} CONTENT "${code}" @ONLY)
  target_sources(${target} PRIVATE ${generated})
endfunction()
