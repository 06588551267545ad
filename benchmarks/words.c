/* What the machine can do with text: words of two or more ASCII letters, digits and underscores, lower-cased, looked up
   in tables that never grow. No other alphabet, no missing text, no check. Documents from .. to of an order, so that
   threads can share them. */

#include <stdint.h>
#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

/* A word: its first eight letters, the hash of all, and where they stand. */
typedef struct {
    u64 first, hash;
    const u8 *letters;
    u32 length;
} Token;

/* One slot of a table; place: where the letters stand in its store, after their number. value: a word's number, or its count. */
typedef struct {
    u64 first;
    u32 place, value;
} Slot;

typedef struct {
    Slot *slots; /* empty where place is 0 */
    u64 mask;
    u8 *store;
    int64_t *used; /* words, and bytes of the store from 8 on */
} Table;

static inline u64 load(const u8 *from, u32 length) {
    u64 word;
    memcpy(&word, from, 8);
    return length >= 8 ? word : word & ((1ull << 8 * length) - 1);
}

static inline u64 mixed(u64 x) {
    x *= 0x9E3779B97F4A7C15ull;
    return x ^ x >> 32;
}

/* Which of 64 bytes belong to words; lower gets them in lower case. */
static inline u64 classified(const u8 *text, u8 *lower) {
#ifdef __AVX2__
    u64 found = 0;
    for (int half = 0; half < 64; half += 32) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(text + half));
        __m256i folded = _mm256_or_si256(x, _mm256_set1_epi8(0x20));
        __m256i letter = _mm256_and_si256(_mm256_cmpgt_epi8(folded, _mm256_set1_epi8('a' - 1)),
                                          _mm256_cmpgt_epi8(_mm256_set1_epi8('z' + 1), folded));
        __m256i digit = _mm256_and_si256(_mm256_cmpgt_epi8(x, _mm256_set1_epi8('0' - 1)),
                                         _mm256_cmpgt_epi8(_mm256_set1_epi8('9' + 1), x));
        __m256i line = _mm256_cmpeq_epi8(x, _mm256_set1_epi8('_'));
        _mm256_storeu_si256((__m256i *)(lower + half), _mm256_blendv_epi8(x, folded, letter));
        u32 bits = _mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(letter, digit), line));
        found |= (u64)bits << half;
    }
    return found;
#else
    u64 found = 0;
    for (int i = 0; i < 64; i++) {
        u8 x = text[i], folded = x | 0x20, letter = (u8)(folded - 'a') < 26;
        lower[i] = letter ? folded : x;
        found |= (u64)(letter | ((u8)(x - '0') < 10) | (x == '_')) << i;
    }
    return found;
#endif
}

/* The words of a text, which is copied in lower case to `lower` (as long as the longest text, and 80 bytes more). */
static int64_t tokens_of(const u8 *text, int64_t length, u8 *lower, Token *out) {
    int64_t n = 0, start = 0;
    u64 before = 0; /* whether the last byte belonged to a word */
    for (int64_t at = 0; at <= length; at += 64) {
        u64 inside;
        if (at + 64 <= length) {
            inside = classified(text + at, lower + at);
        } else {
            u8 rest[64] = {0};
            memcpy(rest, text + at, length - at);
            inside = classified(rest, lower + at);
        }
        u64 edges = inside ^ (inside << 1 | before);
        before = inside >> 63;
        while (edges) {
            int64_t edge = at + __builtin_ctzll(edges);
            if (inside >> (edge - at) & 1) {
                start = edge;
            } else if (edge - start > 1) {
                Token *made = out + n++;
                made->letters = lower + start;
                made->length = edge - start;
            }
            edges &= edges - 1;
        }
    }
    return n;
}

static inline void hash(Token *token) {
    u32 length = token->length;
    u64 sum = token->first = load(token->letters, length);
    for (u32 at = 8; at < length; at += 8)
        sum = mixed(sum) ^ load(token->letters + at, length - at);
    token->hash = mixed(sum + length);
}

static inline int same(const Slot *slot, const Token *token, const u8 *store) {
    if (slot->first != token->first)
        return 0;
    if (!(token->first >> 56)) /* fewer than eight letters */
        return 1;
    u32 length;
    memcpy(&length, store + slot->place, 4);
    return length == token->length && (length <= 8 || !memcmp(store + slot->place + 12, token->letters + 8, length - 8));
}

/* The slot of a word, or the empty one where it belongs. */
static inline Slot *find(const Table *table, const Token *token) {
    for (u64 at = token->hash & table->mask;; at = (at + 1) & table->mask) {
        Slot *slot = table->slots + at;
        if (!slot->place || same(slot, token, table->store))
            return slot;
    }
}

static inline Slot *find_or_add(const Table *table, const Token *token, u32 value) {
    Slot *slot = find(table, token);
    if (!slot->place) {
        int64_t place = table->used[1] ? table->used[1] : 8;
        memcpy(table->store + place, &token->length, 4);
        memcpy(table->store + place + 4, token->letters, token->length);
        table->used[1] = place + 4 + token->length;
        table->used[0]++;
        *slot = (Slot){token->first, place, value};
    }
    return slot;
}

static inline void hash_all(const Table *table, Token *tokens, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        hash(tokens + i);
        __builtin_prefetch(table->slots + (tokens[i].hash & table->mask));
    }
}

/* Tokenises and hashes; out: the number of tokens, and the sum of their hashes. */
void words_only(const u8 **text, const int64_t *length, const int64_t *order, int64_t from, int64_t to, u8 *lower,
                Token *tokens, u64 *out) {
    for (int64_t i = from; i < to; i++) {
        int64_t n = tokens_of(text[order[i]], length[order[i]], lower, tokens);
        for (int64_t j = 0; j < n; j++) {
            hash(tokens + j);
            out[1] += tokens[j].hash;
        }
        out[0] += n;
    }
}

/* Counts all words in one table. */
void words_total(const u8 **text, const int64_t *length, const int64_t *order, int64_t from, int64_t to, u8 *lower,
                 Token *tokens, Slot *slots, int64_t size, u8 *store, int64_t *used) {
    Table table = {slots, size - 1, store, used};
    for (int64_t i = from; i < to; i++) {
        int64_t n = tokens_of(text[order[i]], length[order[i]], lower, tokens);
        hash_all(&table, tokens, n);
        for (int64_t j = 0; j < n; j++)
            find_or_add(&table, tokens + j, 0)->value++;
    }
}

/* Adds the counts of one table to those of another. */
void words_add(Slot *slots, int64_t size, u8 *store, int64_t *used, const Slot *more, const u8 *its_store) {
    Table table = {slots, size - 1, store, used};
    for (int64_t i = 0; i < size; i++) {
        if (!more[i].place)
            continue;
        Token token = {.letters = its_store + more[i].place + 4};
        memcpy(&token.length, its_store + more[i].place, 4);
        hash(&token);
        find_or_add(&table, &token, 0)->value += more[i].value;
    }
}

/* A table per class: slots (classes, size), store (classes, bytes), used (classes, 2). */
void words_tables(const u8 **text, const int64_t *length, const int64_t *order, int64_t from, int64_t to, u8 *lower,
                  Token *tokens, const int64_t *classes, Slot *slots, int64_t size, u8 *store, int64_t bytes, int64_t *used) {
    for (int64_t i = from; i < to; i++) {
        int64_t c = classes[order[i]], n = tokens_of(text[order[i]], length[order[i]], lower, tokens);
        Table table = {slots + c * size, size - 1, store + c * bytes, used + 2 * c};
        hash_all(&table, tokens, n);
        for (int64_t j = 0; j < n; j++)
            find_or_add(&table, tokens + j, 0)->value++;
    }
}

/* One table from words to numbers, and per class a dense row: rows (classes, most, 2) counts occurrences and documents.
   The order brings documents class by class; the row of the class at hand, now (most), stays in the cache meanwhile. */
typedef struct {
    u32 occurrences, documents, last, spare; /* last: the last document with this word */
} Now;

static void put_away(Now *now, int64_t words, u32 *row) {
    for (int64_t i = 0; i < words; i++) {
        row[2 * i] = now[i].occurrences;
        row[2 * i + 1] = now[i].documents;
    }
    memset(now, 0, words * sizeof(Now));
}

void words_rows(const u8 **text, const int64_t *length, const int64_t *order, int64_t from, int64_t to, u8 *lower,
                Token *tokens, const int64_t *classes, Slot *slots, int64_t size, u8 *store, int64_t *used, u32 *rows,
                int64_t most, Now *now) {
    Table table = {slots, size - 1, store, used};
    for (int64_t i = from; i < to; i++) {
        int64_t c = classes[order[i]], n = tokens_of(text[order[i]], length[order[i]], lower, tokens);
        hash_all(&table, tokens, n);
        for (int64_t j = 0; j < n; j++) {
            tokens[j].hash = find_or_add(&table, tokens + j, used[0])->value;
            __builtin_prefetch(now + tokens[j].hash, 1);
        }
        for (int64_t j = 0; j < n; j++) {
            Now *word = now + tokens[j].hash;
            word->occurrences++;
            word->documents += word->last != (u32)i + 1;
            word->last = i + 1;
        }
        if (i + 1 == to || classes[order[i + 1]] != c)
            put_away(now, used[0], rows + c * most * 2);
    }
}

/* What the words of another table are numbered here; those it has alone are added. numbers (words of the other). */
void words_join(Slot *slots, int64_t size, u8 *store, int64_t *used, const u8 *its_store, const int64_t *its_used, u32 *numbers) {
    Table table = {slots, size - 1, store, used};
    int64_t place = 8;
    for (int64_t i = 0; i < its_used[0]; i++) {
        Token token = {.letters = its_store + place + 4};
        memcpy(&token.length, its_store + place, 4);
        hash(&token);
        numbers[i] = find_or_add(&table, &token, used[0])->value;
        place += 4 + token.length;
    }
}

/* Puts the rows of classes from .. to in the order of the joined table; spare (most, 2) is zero, and zero again. */
void words_reorder(u32 *rows, int64_t from, int64_t to, int64_t most, const u32 *numbers, int64_t words, u32 *spare) {
    for (int64_t c = from; c < to; c++) {
        u32 *row = rows + c * most * 2;
        for (int64_t i = 0; i < words; i++)
            memcpy(spare + 2 * numbers[i], row + 2 * i, 8);
        memcpy(row, spare, most * 8);
        memset(spare, 0, most * 8);
    }
}

/* weights (words, classes); prior (classes,). Unknown words are skipped. */
void words_predict(const u8 **text, const int64_t *length, const int64_t *order, int64_t from, int64_t to, u8 *lower,
                   Token *tokens, Slot *slots, int64_t size, u8 *store, int64_t *used, const double *weights,
                   const double *prior, int64_t classes, int32_t *out) {
    Table table = {slots, size - 1, store, used};
    for (int64_t i = from; i < to; i++) {
        int64_t n = tokens_of(text[order[i]], length[order[i]], lower, tokens);
        double scores[64];
        memcpy(scores, prior, classes * sizeof(double));
        hash_all(&table, tokens, n);
        for (int64_t j = 0; j < n; j++) {
            Slot *slot = find(&table, tokens + j);
            tokens[j].letters = slot->place ? (const u8 *)(weights + slot->value * classes) : 0;
            __builtin_prefetch(tokens[j].letters);
            __builtin_prefetch(tokens[j].letters + 64);
            __builtin_prefetch(tokens[j].letters + 128);
        }
        for (int64_t j = 0; j < n; j++) {
            const double *row = (const double *)tokens[j].letters;
            if (row)
                for (int64_t c = 0; c < classes; c++)
                    scores[c] += row[c];
        }
        out[order[i]] = 0;
        for (int64_t c = 1; c < classes; c++)
            out[order[i]] = scores[c] > scores[out[order[i]]] ? c : out[order[i]];
    }
}
