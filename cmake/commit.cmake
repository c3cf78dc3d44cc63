# Written at every build, touched only when it changes: generated/kith_commit.h says which commit this is.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=40 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define KITH_COMMIT \"${commit}\"\n")
