# The shared runtime, and the files for other build systems: find_package(ampc) and pkg-config.
# The build folder has a working ampcConfig.cmake too: -Dampc_DIR=BUILD_FOLDER.
include(CMakePackageConfigHelpers)

# What a program that links the runtime links besides it. Debian has the link libdnnl.so for one architecture only.
file(STRINGS ${DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h major REGEX "define DNNL_VERSION_MAJOR")
string(REGEX REPLACE ".* " "" major "${major}")
set(AMPC_LIBRARIES z :libdnnl.so.${major} gomp jansson xxhash pthread dl m)
set(AMPC_OWN_LIBRARIES ${AMPC_LIBRARIES}) # of programs without oneDNN
list(REMOVE_ITEM AMPC_OWN_LIBRARIES :libdnnl.so.${major} gomp)
# Of programs that read text. The linker leaves these out of all others: one option, so that nothing comes between.
set(AMPC_TEXT_LIBRARIES --push-state,--as-needed,-lpcre2-8,-lutf8proc,--pop-state)
foreach(kind "" OWN_)
  list(TRANSFORM AMPC_${kind}LIBRARIES PREPEND -l OUTPUT_VARIABLE AMPC_${kind}LINE)
  list(JOIN AMPC_${kind}LINE " " AMPC_${kind}LINE)
endforeach()
set_source_files_properties(compiler/cli/build_line.c PROPERTIES COMPILE_DEFINITIONS
  "AMPC_LIBRARIES=\"${AMPC_LINE}\";AMPC_OWN_LIBRARIES=\"${AMPC_OWN_LINE}\";AMPC_TEXT_LIBRARIES=\"${AMPC_TEXT_LIBRARIES}\";AMPC_LIBDIR=\"${CMAKE_INSTALL_LIBDIR}\"")

set(ranks "no, built without MPI")
if(TARGET ampcmpi)
  set(ranks "MPI ${MPI_C_VERSION}")
endif()
set_source_files_properties(compiler/cli/version.c PROPERTIES COMPILE_DEFINITIONS
  "AMPC_BUILT_BY=\"${CMAKE_C_COMPILER_ID} C ${CMAKE_C_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}\";AMPC_BUILT_RANKS=\"${ranks}\"")

# A release may change the functions until version 1.0, so the SONAME has two numbers.
set(AMPC_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
file(STRINGS ${EXPORTED} names)
list(JOIN names ";\n  " names)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${EXPORTED})
file(CONFIGURE OUTPUT ${GENERATED}/exports.map CONTENT "AMPC_${AMPC_SOVERSION} {\nglobal:\n  @names@;\nlocal:\n  *;\n};\n")
# In a folder of its own, so that -lampcrt with the build folder means the archive.
add_library(ampc_shared SHARED ${LINKED_OBJECT} $<TARGET_OBJECTS:ampconednn> ${TEXTS_OBJECT})
set_target_properties(ampc_shared PROPERTIES OUTPUT_NAME ampcrt LINKER_LANGUAGE C VERSION ${PROJECT_VERSION}
  SOVERSION ${AMPC_SOVERSION} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/shared)
target_link_libraries(ampc_shared PRIVATE pcre2-8 utf8proc ${AMPC_LIBRARIES})
target_link_options(ampc_shared PRIVATE -Wl,--version-script=${GENERATED}/exports.map)
set_property(TARGET ampc_shared APPEND PROPERTY LINK_DEPENDS ${GENERATED}/exports.map)
install(TARGETS ampc_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

set(places PROGRAMS LIBRARY SHARED HEADERS)
set(PROGRAMS ${CMAKE_INSTALL_BINDIR})
set(LIBRARY ${CMAKE_INSTALL_LIBDIR})
set(SHARED ${CMAKE_INSTALL_LIBDIR})
set(HEADERS ${CMAKE_INSTALL_INCLUDEDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/ampc)
configure_package_config_file(cmake/ampcConfig.cmake.in ${GENERATED}/ampcConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS ${places} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
set(PROGRAMS ${CMAKE_BINARY_DIR})
set(LIBRARY ${CMAKE_BINARY_DIR})
set(SHARED ${CMAKE_BINARY_DIR}/shared)
set(HEADERS ${CMAKE_BINARY_DIR}/include)
configure_package_config_file(cmake/ampcConfig.cmake.in ${CMAKE_BINARY_DIR}/ampcConfig.cmake
  INSTALL_DESTINATION ${CMAKE_BINARY_DIR} PATH_VARS ${places} NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ampcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${GENERATED}/ampcConfig.cmake ${CMAKE_BINARY_DIR}/ampcConfigVersion.cmake DESTINATION ${package})

file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/ampc.pc.in ${GENERATED}/ampc.pc @ONLY)
install(FILES ${GENERATED}/ampc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
