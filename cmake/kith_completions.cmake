# Writes the shells' completion scripts, as the program prints them: cmake -DKITH=PROGRAM -DOUT=FOLDER -P this.
# EMULATOR runs a program that was built for another machine.
foreach(pair IN ITEMS "bash kith" "zsh _kith" "fish kith.fish")
  separate_arguments(pair)
  list(GET pair 0 shell)
  list(GET pair 1 name)
  file(MAKE_DIRECTORY ${OUT}/${shell})
  execute_process(COMMAND ${EMULATOR} ${KITH} completion ${shell} OUTPUT_FILE ${OUT}/${shell}/${name} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "kith completion ${shell}: ${failed}")
  endif()
endforeach()
