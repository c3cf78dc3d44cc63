# Tests whose working memory lies between fences (fenced_work.c): --wrap sends the calls of objective/work.h there.
foreach(name IN ITEMS test_loss_small test_miner_pairs test_objective_compose test_objective_golden test_reg_finite)
  target_sources(${name} PRIVATE objective/fenced_work.c)
  foreach(function IN ITEMS take rewind reset release)
    target_link_options(${name} PRIVATE LINKER:--wrap=ki_work_${function})
  endforeach()
endforeach()
