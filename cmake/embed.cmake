# ampc_embed(OUT files...): generates a C file that defines
#   const EmbeddedFile embedded_files[] = {{"map.cu", "text..."}, ...};  (compiler/base/embedded.h)
# so that the programs need no files at run time. The base name is the key.
function(ampc_embed out)
  set(inputs "")
  foreach(f ${ARGN})
    get_filename_component(full ${f} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
    list(APPEND inputs ${full})
  endforeach()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} "-DFILES=${inputs}" -P ${CMAKE_SOURCE_DIR}/cmake/embed_run.cmake
    DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/cmake/embed_run.cmake VERBATIM)
endfunction()

# ampc_embed_text(OUT NAME file): generates a C file that defines `const char NAME[]`, the text of the file.
function(ampc_embed_text out name file)
  set(run ${CMAKE_SOURCE_DIR}/cmake/embed_text_run.cmake)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAME=${name} -DFILE=${CMAKE_SOURCE_DIR}/${file} -P ${run}
    DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${run} VERBATIM)
endfunction()
