# Finds wslay, the WebSocket framing library. Defines Wslay::wslay.
find_path(Wslay_INCLUDE_DIR wslay/wslay.h)
find_library(Wslay_LIBRARY wslay)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Wslay REQUIRED_VARS Wslay_LIBRARY Wslay_INCLUDE_DIR)

if(Wslay_FOUND AND NOT TARGET Wslay::wslay)
  add_library(Wslay::wslay UNKNOWN IMPORTED)
  set_target_properties(Wslay::wslay PROPERTIES
    IMPORTED_LOCATION ${Wslay_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Wslay_INCLUDE_DIR})
endif()
