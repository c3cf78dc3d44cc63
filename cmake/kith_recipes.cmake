# The shipped recipes as a list for `kith list recipes`: name (path without recipes/ and .yaml) and summary
# (its first comment line).
file(GLOB_RECURSE recipes CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/recipes ${CMAKE_SOURCE_DIR}/recipes/*.yaml)
list(FILTER recipes EXCLUDE REGEX "(^|/)tables\\.yaml$") # lists of recipes, for kith reproduce
list(SORT recipes)
set(recipe_rows "")
foreach(recipe IN LISTS recipes)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/recipes/${recipe})
  file(STRINGS ${CMAKE_SOURCE_DIR}/recipes/${recipe} summary LIMIT_COUNT 1)
  if(NOT summary MATCHES "^# (.+)$")
    message(FATAL_ERROR "recipes/${recipe} does not begin with a line of comment that sums it up")
  endif()
  string(REPLACE "\\;" ";" summary "${CMAKE_MATCH_1}")
  string(REPLACE "\"" "\\\"" summary "${summary}")
  string(REGEX REPLACE "\\.yaml$" "" name "${recipe}")
  string(APPEND recipe_rows "X(\"${name}\", \"${summary}\")\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/kith_recipes.def CONTENT "${recipe_rows}" @ONLY)
