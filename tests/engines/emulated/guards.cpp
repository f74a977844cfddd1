/* Looks at what lies around arrays. */
#include <cstring>

struct Place {
    const unsigned char *at;
    long size;
};

/* Return the first of places whose bytes near an array are not all as given, -1 for none.
 * Each array has two: before it and past it. */
extern "C" long damaged(const Place *places, long count, long byte, long near) {
    for (long k = 0; k < count; k++) {
        const long size = places[k].size < near ? places[k].size : near;
        const unsigned char *at = places[k].at + (k % 2 ? 0 : places[k].size - size);
        if (size && (*at != byte || memcmp(at, at + 1, size - 1))) return k;
    }
    return -1;
}
