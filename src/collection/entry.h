/* An entry of the cache: the folder that holds the index of a folder of photos by one model (kith/photos.h). */
#ifndef KI_COLLECTION_ENTRY_H
#define KI_COLLECTION_ENTRY_H

#include "base/arena.h"
#include "base/path.h"
#include "kith/model.h"

/* What entry.json says. Texts live as long as the arena they were read into. */
typedef struct ki_entry_record {
    const char *folder; /* of the photos */
    const char *model;  /* in words for people */
    const char *hash;   /* of the model's file */
    const char *words;  /* of its identity */
} ki_entry_record;

/* "photos-0a1b2c3d4e5f-0a1b2c3d4e5f", into ret_name [KI_ENTRY_NAME]. */
enum { KI_ENTRY_NAME = 80, KI_ENTRY_DIGITS = 12 };
void ki_entry_name(const ki_entry_record *record, char ret_name[KI_ENTRY_NAME]);

/* Is the record the one of that folder of the cache? JSON holds UTF-8 alone: where the photos' path is not, the model decides. */
bool ki_entry_fits(const char *entry, const ki_entry_record *record);

/* KITH_EFORMAT: it is not a record of this kith. */
kith_status ki_entry_read(const char *entry, ki_arena *arena, ki_entry_record *ret_record, kith_error *err);

/* The entry of the record in CACHE/photos: made if it is not there, and held as used, until *ret_used is closed. KITH_EFORMAT: an entry of
 * that name has another record. */
kith_status ki_entry_open(const char *cache, const ki_entry_record *record, ki_path *ret_entry, int *ret_used,
                          kith_error *err);

/* Is the entry used by some process? */
bool ki_entry_is_used(const char *entry);
/* Remove it; false: some process uses it. */
bool ki_entry_remove(const char *entry);

#endif
