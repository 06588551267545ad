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
