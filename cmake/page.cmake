# Writes the page's files as C arrays, with their paths, types and ETags:
# -DFOLDER= -DOUTPUT= (a script)
file(GLOB files ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.js ${FOLDER}/*.svg)
list(SORT files)
set(arrays "")
set(rows "")
set(n 0)
foreach(file IN LISTS files)
  get_filename_component(name ${file} NAME)
  get_filename_component(ending ${file} LAST_EXT)
  if(ending STREQUAL ".html")
    set(type "text/html; charset=utf-8")
  elseif(ending STREQUAL ".css")
    set(type "text/css; charset=utf-8")
  elseif(ending STREQUAL ".js")
    set(type "text/javascript; charset=utf-8")
  else()
    set(type "image/svg+xml")
  endif()
  set(path "/page/${name}")
  if(name STREQUAL "index.html")
    set(path "/")
  endif()
  file(READ ${file} bytes HEX)
  file(SHA256 ${file} hash)
  string(SUBSTRING ${hash} 0 16 hash)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file_${n}[] = {\n${bytes}0x00};\n")
  string(APPEND rows "    {\"${path}\", \"${type}\", \"\\\"${hash}\\\"\", file_${n}, sizeof file_${n} - 1},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUTPUT}.new "/* Made from the files of src/serve/page by cmake/page.cmake. */
#include \"serve/routes/page.h\"

${arrays}
const ki_page_file ki_page_files[] = {
${rows}};
const int ki_n_page_files = ${n};
")
configure_file(${OUTPUT}.new ${OUTPUT} COPYONLY)
