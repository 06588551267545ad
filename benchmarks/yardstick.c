/* What the machine can do: the loops that a careful C programmer would write for exactly these data, with no missing
   values, no checks and no exact sums. Each works on rows from .. to, so that threads can share the rows. */

#include <stdint.h>
#include <string.h>

#define MOST_CLASSES 8
#define MOST_COLUMNS 128

/* Reads every word once: the speed of memory. */
uint64_t read_all(const uint64_t *x, int64_t from, int64_t to) {
    uint64_t sum = 0;
    for (int64_t i = from; i < to; i++)
        sum += x[i];
    return sum;
}

/* out: per class and column the sum of x, then of x squared. */
void gaussian_fit(const double *x, const int64_t *y, int64_t from, int64_t to, int64_t columns, double *out) {
    for (int64_t i = from; i < to; i++) {
        const double *row = x + i * columns;
        double *sum = out + y[i] * 2 * columns, *square = sum + columns;
        for (int64_t j = 0; j < columns; j++) {
            sum[j] += row[j];
            square[j] += row[j] * row[j];
        }
    }
}

/* The same of rows that count for their weights. */
void gaussian_fit_weighted(const double *x, const int64_t *y, const double *weight, int64_t from, int64_t to,
                           int64_t columns, double *out) {
    for (int64_t i = from; i < to; i++) {
        const double *row = x + i * columns;
        double *sum = out + y[i] * 2 * columns, *square = sum + columns;
        for (int64_t j = 0; j < columns; j++) {
            double share = weight[i] * row[j];
            sum[j] += share;
            square[j] += share * row[j];
        }
    }
}

/* Adds the products of four rows at once, so that each sum is fetched and put away once for all of them. */
static void add_products(const double *const rows[4], int64_t columns, double *restrict product) {
    const double *restrict a = rows[0], *restrict b = rows[1], *restrict c = rows[2], *restrict d = rows[3];
    for (int64_t j = 0; j < columns; j++)
        for (int64_t k = 0; k < columns; k++)
            product[j * columns + k] += a[j] * a[k] + b[j] * b[k] + c[j] * c[k] + d[j] * d[k];
}

/* out: per class the sums of x, then those of the products of its columns, (columns, columns). */
void block_fit(const double *x, const int64_t *y, int64_t from, int64_t to, int64_t columns, int64_t classes,
               double *out) {
    static const double nothing[MOST_COLUMNS];
    const double *waiting[MOST_CLASSES][4];
    int64_t n[MOST_CLASSES] = {0};
    for (int64_t i = from; i < to; i++) {
        const double *row = x + i * columns;
        double *sum = out + y[i] * (columns + 1) * columns;
        for (int64_t j = 0; j < columns; j++)
            sum[j] += row[j];
        waiting[y[i]][n[y[i]]++] = row;
        if (n[y[i]] == 4) {
            add_products(waiting[y[i]], columns, sum + columns);
            n[y[i]] = 0;
        }
    }
    for (int64_t c = 0; c < classes; c++) {
        while (n[c] < 4)
            waiting[c][n[c]++] = nothing;
        add_products(waiting[c], columns, out + (c * (columns + 1) + 1) * columns);
    }
}

/* mean, precision: (classes, columns); constant: (classes,). */
void gaussian_predict(const double *x, int64_t from, int64_t to, int64_t columns, int64_t classes, const double *mean,
                      const double *precision, const double *constant, int32_t *out) {
    for (int64_t i = from; i < to; i++) {
        const double *row = x + i * columns;
        double best = -1e308;
        for (int64_t c = 0; c < classes; c++) {
            double score = 0;
            for (int64_t j = 0; j < columns; j++) {
                double away = row[j] - mean[c * columns + j];
                score += precision[c * columns + j] * away * away;
            }
            score = constant[c] - score;
            out[i] = score > best ? c : out[i];
            best = score > best ? score : best;
        }
    }
}

/* out: (columns, values, classes). */
void categorical_fit(const int64_t *x, const int64_t *y, int64_t from, int64_t to, int64_t columns, int64_t values,
                     int64_t classes, int64_t *out) {
    for (int64_t i = from; i < to; i++)
        for (int64_t j = 0; j < columns; j++)
            out[(j * values + x[i * columns + j]) * classes + y[i]]++;
}

/* table: (columns, values, classes). */
void categorical_predict(const int64_t *x, int64_t from, int64_t to, int64_t columns, int64_t values, int64_t classes,
                         const double *table, const double *prior, int32_t *out) {
    for (int64_t i = from; i < to; i++) {
        double scores[MOST_CLASSES];
        memcpy(scores, prior, classes * sizeof(double));
        for (int64_t j = 0; j < columns; j++) {
            const double *add = table + (j * values + x[i * columns + j]) * classes;
            for (int64_t c = 0; c < classes; c++)
                scores[c] += add[c];
        }
        out[i] = 0;
        for (int64_t c = 1; c < classes; c++)
            out[i] = scores[c] > scores[out[i]] ? c : out[i];
    }
}

/* Flags of any type: out (classes, columns) counts the ones. Bytes are summed in bytes, 255 rows at a time. */
void bernoulli_fit_bytes(const uint8_t *x, const int64_t *y, int64_t from, int64_t to, int64_t columns, int64_t *out) {
    uint8_t small[MOST_CLASSES][MOST_COLUMNS];
    for (int64_t start = from; start < to; start += 255) {
        int64_t end = start + 255 < to ? start + 255 : to;
        memset(small, 0, sizeof small);
        for (int64_t i = start; i < end; i++) {
            uint8_t *into = small[y[i]];
            for (int64_t j = 0; j < columns; j++)
                into[j] += x[i * columns + j];
        }
        for (int64_t c = 0; c < MOST_CLASSES; c++)
            for (int64_t j = 0; j < columns; j++)
                if (small[c][j])
                    out[c * columns + j] += small[c][j];
    }
}

void bernoulli_fit_doubles(const double *x, const int64_t *y, int64_t from, int64_t to, int64_t columns, double *out) {
    for (int64_t i = from; i < to; i++) {
        double *into = out + y[i] * columns;
        for (int64_t j = 0; j < columns; j++)
            into[j] += x[i * columns + j];
    }
}

/* weight: (classes, columns), log yes - log no; constant: (classes,), the prior and every log no. */
#define BERNOULLI_PREDICT(name, type)                                                                                  \
    void name(const type *x, int64_t from, int64_t to, int64_t columns, int64_t classes, const double *weight,         \
              const double *constant, int32_t *out) {                                                                  \
        for (int64_t i = from; i < to; i++) {                                                                          \
            double best = -1e308;                                                                                      \
            for (int64_t c = 0; c < classes; c++) {                                                                    \
                double score = constant[c];                                                                            \
                for (int64_t j = 0; j < columns; j++)                                                                  \
                    score += weight[c * columns + j] * x[i * columns + j];                                             \
                out[i] = score > best ? c : out[i];                                                                    \
                best = score > best ? score : best;                                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }
BERNOULLI_PREDICT(bernoulli_predict_bytes, uint8_t)
BERNOULLI_PREDICT(bernoulli_predict_doubles, double)
