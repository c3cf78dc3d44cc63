# Tests whose working memory lies between fences (fenced_work.c): --wrap sends the calls of objective/work.h there.
set(fenced_tests test_loss_small test_miner_pairs test_objective_compose test_objective_golden test_reg_finite)
function(fence program)
  target_sources(${program} PRIVATE objective/fenced_work.c)
  foreach(function IN ITEMS take rewind reset release)
    target_link_options(${program} PRIVATE LINKER:--wrap=ki_work_${function})
  endforeach()
endfunction()
