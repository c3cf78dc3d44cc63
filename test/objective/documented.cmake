# The loss of docs/adding-a-loss.md, taken out of the page and built as written: its files, and the tables of
# losses with its row, for the CPU and for CUDA (emulated, or real where kith is built with CUDA). A page that no
# longer builds fails here. Beside it stands the same loss as a row without a device twin.
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
set(loss_dir ${overlay}/objective/loss)
foreach(ending h c cu)
  take_block("${text}" "<!-- file: src/objective/loss/sigmoid.${ending} -->" code)
  file(CONFIGURE OUTPUT ${loss_dir}/sigmoid.${ending} CONTENT "${code}" @ONLY)
  if(NOT ending STREQUAL cu)
    string(REPLACE "sigmoid" "sigmoid_alone" code "${code}")
    string(REPLACE "SIGMOID" "SIGMOID_ALONE" code "${code}")
    file(CONFIGURE OUTPUT ${loss_dir}/sigmoid_alone.${ending} CONTENT "${code}" @ONLY)
  endif()
endforeach()
take_block("${text}" "<!-- row: src/objective/loss/table.def -->" row)
file(READ ${CMAKE_SOURCE_DIR}/src/objective/loss/table.def table)
file(CONFIGURE OUTPUT ${loss_dir}/table.def CONTENT "${table}${row}X(sigmoid_alone, HOST)\n" @ONLY)

set(sources ${loss_dir}/sigmoid.c ${loss_dir}/sigmoid_alone.c ${CMAKE_SOURCE_DIR}/src/objective/tables.c)
set(kernels ${loss_dir}/sigmoid.cu)
add_executable(test_objective_documented objective/documented_loss.c ${sources})
target_link_libraries(test_objective_documented PRIVATE kith_testing kith_static)

# On a device the methods are found by a table of their own, made from the same rows.
add_executable(test_objective_documented_cuda objective/documented_loss_cuda.c ${sources}
                                              ${CMAKE_SOURCE_DIR}/src/objective/cuda/tables.c)
target_link_libraries(test_objective_documented_cuda PRIVATE kith_testing_cuda)
if(KITH_DEVICE_TESTS)
  target_sources(test_objective_documented_cuda PRIVATE ${kernels})
else()
  enable_language(CXX)
  kith_emulate_kernels(kith_documented_kernels ${kernels})
  target_include_directories(kith_documented_kernels BEFORE PRIVATE ${overlay})
  target_sources(test_objective_documented_cuda PRIVATE $<TARGET_OBJECTS:kith_documented_kernels>)
endif()

foreach(name test_objective_documented test_objective_documented_cuda)
  # Before everything else, so that this table of losses is the one that is included.
  target_include_directories(${name} BEFORE PRIVATE ${overlay})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  target_compile_definitions(${name} PRIVATE KITH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(${name} kith_test_needs)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT "OMP_WAIT_POLICY=passive")
endforeach()
