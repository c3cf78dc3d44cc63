# The loss of docs/adding-a-loss.md, taken out of the page and built as written: its file, and the table
# of losses with its row. A page that no longer builds fails here.
set(page ${CMAKE_SOURCE_DIR}/docs/adding-a-loss.md)
set(overlay ${CMAKE_CURRENT_BINARY_DIR}/documented)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page}
                                       ${CMAKE_SOURCE_DIR}/src/objective/loss/table.def)

# The code block that follows a marker line.
function(take_block text marker ret)
  string(FIND "${text}" "${marker}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "docs/adding-a-loss.md has no '${marker}'")
  endif()
  string(SUBSTRING "${text}" ${at} -1 rest)
  string(FIND "${rest}" "```c\n" begin)
  math(EXPR begin "${begin} + 5")
  string(SUBSTRING "${rest}" ${begin} -1 rest)
  string(FIND "${rest}" "```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  set(${ret} "${block}" PARENT_SCOPE)
endfunction()

file(READ ${page} text)
take_block("${text}" "<!-- file: src/objective/loss/sigmoid.c -->" loss)
take_block("${text}" "<!-- row: src/objective/loss/table.def -->" row)
file(READ ${CMAKE_SOURCE_DIR}/src/objective/loss/table.def table)
file(CONFIGURE OUTPUT ${overlay}/objective/loss/sigmoid.c CONTENT "${loss}" @ONLY)
file(CONFIGURE OUTPUT ${overlay}/objective/loss/table.def CONTENT "${table}${row}" @ONLY)

add_executable(test_objective_documented objective/documented_loss.c ${overlay}/objective/loss/sigmoid.c
                                         ${CMAKE_SOURCE_DIR}/src/objective/tables.c)
# Before everything else, so that this table of losses is the one that is included.
target_include_directories(test_objective_documented BEFORE PRIVATE ${overlay})
target_link_libraries(test_objective_documented PRIVATE kith_testing kith_static)
set_target_properties(test_objective_documented PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
add_test(NAME test_objective_documented COMMAND test_objective_documented
         WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/test)
