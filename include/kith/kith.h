/* kith, all of it: deep metric learning in C.
 *
 *     #include <kith/kith.h>
 *
 * The headers in kith/experimental may change in any release; they are included if KITH_EXPERIMENTAL is defined before
 * this line. docs/api.md has the rules that all functions follow: errors, ownership, options, threads, versions. */
#ifndef KITH_KITH_H
#define KITH_KITH_H

#include "kith/array.h"
#include "kith/calibration.h"
#include "kith/card.h"
#include "kith/collection.h"
#include "kith/data.h"
#include "kith/doctor.h"
#include "kith/duplicates.h"
#include "kith/eval.h"
#include "kith/explain.h"
#include "kith/export.h"
#include "kith/groups.h"
#include "kith/identify.h"
#include "kith/index.h"
#include "kith/items.h"
#include "kith/knn.h"
#include "kith/labels.h"
#include "kith/log.h"
#include "kith/map.h"
#include "kith/model.h"
#include "kith/objective.h"
#include "kith/photos.h"
#include "kith/pull.h"
#include "kith/reliability.h"
#include "kith/report.h"
#include "kith/rerank.h"
#include "kith/status.h"
#include "kith/suspects.h"
#include "kith/text.h"
#include "kith/threads.h"
#include "kith/train.h"
#include "kith/tune.h"
#include "kith/vectors.h"
#include "kith/version.h"
#include "kith/worst.h"

#ifdef KITH_EXPERIMENTAL
#include "kith/experimental/bench.h"
#include "kith/experimental/found.h"
#include "kith/experimental/json.h"
#include "kith/experimental/list.h"
#include "kith/experimental/reproduce.h"
#endif

#endif
