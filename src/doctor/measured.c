/* How often the doctor's lists were right where errors had been planted: what the page says of how sure a list is.
 *
 * Measured with `general` by bench/doctor.sh WORK 1; docs/data.md has the table. Caltech-101 has the same picture several times itself,
 * and those count as wrong here. Rows go when the rule of their kind changes, until it was measured again. */
#include "doctor/doctor.h"

#define CUB "CUB-200-2011"
#define FLOWERS "51 classes of Flowers-102"
#define CALTECH "50 classes of Caltech-101"
enum { N_CUB = 6156, N_FLOWERS = 4321, N_CALTECH = 3447 };

static const struct {
    kith_finding_kind kind;
    kith_finding_measured measured; /* images, planted, named, right */
} rows[] = {
    {KITH_FINDING_MISLABELLED, {CUB, N_CUB, 293, 228, 194}},
    {KITH_FINDING_MISLABELLED, {FLOWERS, N_FLOWERS, 205, 199, 177}},
    {KITH_FINDING_MISLABELLED, {CALTECH, N_CALTECH, 164, 168, 131}},
    {KITH_FINDING_ODD, {CUB, N_CUB, 117, 46, 34}},
    {KITH_FINDING_ODD, {FLOWERS, N_FLOWERS, 82, 13, 12}},
    {KITH_FINDING_ODD, {CALTECH, N_CALTECH, 65, 5, 4}},
    {KITH_FINDING_BLURRED, {CUB, N_CUB, 117, 123, 115}},
    {KITH_FINDING_BLURRED, {FLOWERS, N_FLOWERS, 82, 92, 82}},
    {KITH_FINDING_BLURRED, {CALTECH, N_CALTECH, 65, 67, 63}},
    {KITH_FINDING_DUPLICATE, {CUB, N_CUB, 111, 115, 111}},
    {KITH_FINDING_DUPLICATE, {FLOWERS, N_FLOWERS, 75, 84, 76}},
    {KITH_FINDING_DUPLICATE, {CALTECH, N_CALTECH, 60, 152, 64}},
    {KITH_FINDING_CONFLICT, {CUB, N_CUB, 28, 29, 28}},
    {KITH_FINDING_CONFLICT, {FLOWERS, N_FLOWERS, 26, 28, 26}},
    {KITH_FINDING_CONFLICT, {CALTECH, N_CALTECH, 22, 34, 22}},
    {KITH_FINDING_LEAK, {CUB, N_CUB, 36, 37, 36}},
    {KITH_FINDING_LEAK, {FLOWERS, N_FLOWERS, 22, 30, 23}},
    {KITH_FINDING_LEAK, {CALTECH, N_CALTECH, 16, 63, 18}},
};

bool kith_finding_measured_at(kith_finding_kind kind, int64_t i, kith_finding_measured *ret_measured) {
    if (!ret_measured || i < 0) return false;
    for (size_t at = 0; at < sizeof rows / sizeof rows[0]; at++) {
        if (rows[at].kind != kind || i-- > 0) continue;
        *ret_measured = rows[at].measured;
        return true;
    }
    return false;
}
