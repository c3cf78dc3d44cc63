# The code of docs/adding-*.md, cut out of the pages and built exactly as it is written there: new files, rows of tables, and the
# files of the tree that read those tables. A page that no longer builds fails here. The programs are those of this folder's tests
# (test_adding_*.c, _f64.c, _cuda.c); they have all pages at once, so that a page costs the building of its own code alone.
set(pages_dir ${CMAKE_CURRENT_LIST_DIR})
set(overlay ${CMAKE_CURRENT_BINARY_DIR}/pages)
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/adding-*.md ${pages_dir}/*.md)
execute_process(COMMAND awk -v root=${CMAKE_SOURCE_DIR} -v out=${overlay} -f ${pages_dir}/cut.awk ${pages}
                OUTPUT_VARIABLE cut ERROR_VARIABLE why RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${why}")
endif()
string(REPLACE "\n" ";" cut "${cut}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages} ${pages_dir}/cut.awk)
file(GLOB_RECURSE old RELATIVE ${overlay} ${overlay}/*)
list(REMOVE_ITEM old ${cut})
foreach(path IN LISTS old)
  file(REMOVE ${overlay}/${path})
endforeach()

# A file that is new here hides one of the tree, which no dependency tells ninja: then everything is compiled again.
string(MD5 list_hash "${cut}")

set(host "")
set(f64 "")
set(device "")
set(kernels "")
foreach(path IN LISTS cut)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${path})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${path})
  endif()
  if(path MATCHES "\\.cu$")
    list(APPEND kernels ${overlay}/${path})
  elseif(path MATCHES "/cuda/.*\\.c$")
    list(APPEND device ${overlay}/${path})
  elseif(path MATCHES "\\.c$")
    list(APPEND host ${overlay}/${path})
    # What the library in double has, too (src/CMakeLists.txt).
    if(path MATCHES "^(test/support|src/(nn|objective|backend/ref))/")
      list(APPEND f64 ${overlay}/${path})
    endif()
  endif()
endforeach()
# Who reads the tables: compiled again, with the rows of the pages.
set(source_dir ${CMAKE_SOURCE_DIR}/src)
list(APPEND f64 ${source_dir}/device/op.c ${source_dir}/nn/op/table.c ${source_dir}/backend/ref/backend.c
                ${source_dir}/objective/tables.c)
list(APPEND host ${source_dir}/device/op.c ${source_dir}/nn/op/table.c ${source_dir}/backend/ref/backend.c
                 ${source_dir}/objective/tables.c ${source_dir}/backend/cpu/backend.c ${source_dir}/net/backbone.c
                 ${source_dir}/search/store_types.c)
list(APPEND device ${source_dir}/backend/cuda/backend.c ${source_dir}/objective/cuda/tables.c)

target_sources(tests_pages PRIVATE ${host})
target_sources(tests_pages_f64 PRIVATE ${f64})
target_sources(tests_pages_cuda PRIVATE ${host} ${device})
if(KITH_DEVICE_TESTS)
  target_sources(tests_pages_cuda PRIVATE ${kernels})
else()
  enable_language(CXX)
  kith_emulate_kernels(kith_page_kernels ${kernels})
  target_include_directories(kith_page_kernels BEFORE PRIVATE ${overlay}/src)
  target_compile_definitions(kith_page_kernels PRIVATE KITH_PAGES_LIST=${list_hash})
  target_sources(tests_pages_cuda PRIVATE $<TARGET_OBJECTS:kith_page_kernels>)
endif()
# Before everything else, so that the tables of the pages are the ones that are included.
foreach(program IN ITEMS tests_pages tests_pages_f64 tests_pages_cuda)
  target_include_directories(${program} BEFORE PRIVATE ${overlay}/src ${overlay}/test)
  target_compile_definitions(${program} PRIVATE KITH_PAGES_DIR="${overlay}" KITH_PAGES_LIST=${list_hash})
endforeach()
