# Finds the C++ Actor Framework where the distribution ships headers and
# libraries but no CMake package. Defines one imported target per component:
# CAF::core, CAF::io.
find_path(CAF_INCLUDE_DIR caf/config.hpp)
if(CAF_INCLUDE_DIR)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp version_line REGEX "#define CAF_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+$" version_digits "${version_line}")
  math(EXPR version_major "${version_digits} / 10000")
  math(EXPR version_minor "(${version_digits} / 100) % 100")
  math(EXPR version_patch "${version_digits} % 100")
  set(CAF_VERSION ${version_major}.${version_minor}.${version_patch})
endif()

set(required_variables CAF_INCLUDE_DIR)
foreach(component ${CAF_FIND_COMPONENTS})
  find_library(CAF_${component}_LIBRARY caf_${component})
  list(APPEND required_variables CAF_${component}_LIBRARY)
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS ${required_variables}
                                  VERSION_VAR CAF_VERSION)

foreach(component ${CAF_FIND_COMPONENTS})
  if(CAF_FOUND AND NOT TARGET CAF::${component})
    add_library(CAF::${component} UNKNOWN IMPORTED)
    set_target_properties(CAF::${component} PROPERTIES
      IMPORTED_LOCATION ${CAF_${component}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
    if(NOT component STREQUAL core)
      set_target_properties(CAF::${component} PROPERTIES INTERFACE_LINK_LIBRARIES CAF::core)
    endif()
  endif()
endforeach()
