/* What a photo's file says of the photo: EXIF's date, camera, lens and place.
 *
 * The bytes are anybody's. Whatever they are, reading takes time and memory in proportion to the file at most and cannot fail: a fact that is
 * damaged, impossible or absent is simply not there (docs/adr/0182). */
#ifndef KI_IMAGE_FACTS_H
#define KI_IMAGE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KI_FACT_BYTES = 128 };

typedef struct ki_photo_facts {
    char taken[32]; /* "2021-05-03T14:07:22", with "+02:00" behind it where the file says so; "": not known */
    char camera[KI_FACT_BYTES], lens[KI_FACT_BYTES]; /* UTF-8; "": not known */
    double latitude, longitude; /* degrees, south and west negative; NaN: not known, and then both */
    double altitude;            /* metres above the sea; NaN: not known */
} ki_photo_facts;

/* Of a whole file, or as much of a JPEG as reaches its pixels. */
void ki_photo_facts_read(const uint8_t *bytes, size_t n_bytes, ki_photo_facts *ret_facts);
/* Of the file at a path; a file that cannot be read has no facts. */
void ki_photo_facts_of_file(const char *path, ki_photo_facts *ret_facts);

/* ---- between the files of this folder ---- */

typedef struct ki_span {
    const uint8_t *bytes;
    size_t n;
} ki_span;

/* Where the EXIF block (from "II" or "MM" on) lies in a JPEG, PNG, WebP, HEIC or AVIF file; empty: there is none (exif_block.c). */
ki_span ki_exif_block(const uint8_t *bytes, size_t n_bytes);

#endif
