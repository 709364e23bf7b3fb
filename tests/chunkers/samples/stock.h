/* Example code for tests. */
#ifndef STOCK_H
#define STOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Longest name of an article. */
#define STOCK_NAME_MAX 64

typedef struct stock_shelf {
    char article[STOCK_NAME_MAX];
    uint32_t count;
} stock_shelf_t;

typedef enum {
    STOCK_OK = 0,
    STOCK_TOO_FEW,
    STOCK_UNKNOWN
} stock_result_t;

/* Take pieces from a shelf; the count that is left goes to `left`. */
stock_result_t stock_take(stock_shelf_t *shelves, size_t length,
                          const char *article, uint32_t pieces,
                          uint32_t *left);

static inline int
stock_is_low(const stock_shelf_t *shelf)
{
    return shelf->count < 5;
}

static const char *const stock_texts[] = {
    "ok",
    "too few are left",
    "there is no such shelf",
};

#ifdef __cplusplus
}
#endif
#endif
