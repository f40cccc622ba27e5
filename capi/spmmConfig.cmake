# find_package(spmm) defines the target spmm::spmm.
get_filename_component(_spmm_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET spmm::spmm)
  add_library(spmm::spmm SHARED IMPORTED)
  set_target_properties(spmm::spmm PROPERTIES
    IMPORTED_LOCATION "${_spmm_prefix}/lib/libspmm.so"
    IMPORTED_SONAME "libspmm.so.1"
    INTERFACE_INCLUDE_DIRECTORIES "${_spmm_prefix}/include")
endif()
set(spmm_FOUND TRUE)
unset(_spmm_prefix)
