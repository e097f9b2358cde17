# Debian packages, from a finished build: cpack --config build/CPackConfig.cmake -B FOLDER
#   ampc       programs, libraries, headers. What emitted programs link is among its dependencies, because amp compiles
#              kernels when it runs, and ampc --build-line links libampcrt.a
#   ampc-mpi   the library that connects ranks
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ampc)
set(CPACK_PACKAGE_CONTACT "the developers of ampc <ampc@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiler for training networks in mixed precision")
set(CPACK_COMPONENTS_ALL ampc)
set(CPACK_COMPONENT_AMPC_DESCRIPTION "ampc compiles a job, a text file with data, model and optimizer, into a whole training
step in CUDA C or C. amp compiles the same step just in time and trains.")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_AMPC_PACKAGE_NAME ampc)
set(CPACK_DEBIAN_AMPC_PACKAGE_DEPENDS "gcc, libc6-dev, zlib1g-dev, libjansson-dev, libxxhash-dev, libpcre2-dev, libutf8proc-dev")
set(CPACK_DEBIAN_AMPC_PACKAGE_RECOMMENDS "libjpeg62-turbo, libpng16-16, libwebp7, libtiff6") # amp loads them when a job reads pictures
set(CPACK_DEBIAN_AMPC_PACKAGE_SUGGESTS "ampc-mpi, cmake, pkg-config, dataset-fashion-mnist")
if(TARGET ampcmpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  set(CPACK_COMPONENT_MPI_DESCRIPTION "The library with which amp trains on several devices, through MPI.")
  set(CPACK_DEBIAN_MPI_PACKAGE_NAME ampc-mpi)
  set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "ampc (= ${PROJECT_VERSION})")
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ampc RENAME copyright)
include(CPack)
