/* y = W·x + b for one row x: each row of the matrix W is read once, from its first to its last number.

   One row of W after the other is a single stream, which the processor reads ahead of the loop. Some
   processors read four long rows faster in turn than one: from which length on, the probe finds
   (docs/results/performance.md). Several accumulators keep the additions from waiting for each other.

   The vectors are those of GCC and Clang, so that one source serves every processor: 32 bytes where it has
   AVX, 16 (NEON, SSE) elsewhere. W's rows are `stride` bytes apart; `bias` may be null. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers of 8 and 4 bits are taken out of words from their lowest bits"
#endif

#ifdef __AVX512F__
#define LANES 16
#elif defined __AVX__
#define LANES 8
#else
#define LANES 4
#endif
#define SUMS 4
#define STEP (SUMS * LANES)

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef float unaligned_floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));
typedef uint32_t unaligned_bits __attribute__((vector_size(4 * LANES), aligned(1), may_alias));
typedef uint16_t halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* Numbers of each format as floats. */
static inline floats load_f32(const float *at) { return *(const unaligned_floats *)at; }
static inline floats load_bf16(const uint16_t *at) {
    return (floats)(__builtin_convertvector(*(const halves *)at, bits) << 16);
}
static inline float as_float(uint32_t number) {
    union { uint32_t number; float value; } both = {number};
    return both.value;
}
static inline float one_f32(const float *at) { return *at; }
static inline float one_bf16(const uint16_t *at) { return as_float((uint32_t)*at << 16); }

static inline float total(floats all) {
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += all[lane];
    return sum;
}

#define DOT(format, number)                                                                          \
    static inline float dot_##format(const number *row, const float *x, ptrdiff_t inputs) {         \
        floats sums[SUMS] = {{0}};                                                                   \
        ptrdiff_t i = 0;                                                                             \
        for (; i + STEP <= inputs; i += STEP)                                                        \
            for (int k = 0; k < SUMS; k++)                                                           \
                sums[k] += load_##format(row + i + k * LANES) * load_f32(x + i + k * LANES);         \
        for (; i + LANES <= inputs; i += LANES) sums[0] += load_##format(row + i) * load_f32(x + i); \
        float sum = total(sums[0] + sums[1] + sums[2] + sums[3]);                                    \
        for (; i < inputs; i++) sum += one_##format(row + i) * x[i];                                 \
        return sum;                                                                                  \
    }
DOT(f32, float)
DOT(bf16, uint16_t)

/* Rows of so many numbers and more are read four in turn. */
static ptrdiff_t four_from = PTRDIFF_MAX;

void read_four_rows_from(ptrdiff_t inputs) { four_from = inputs; }

#define ROWS(format, number)                                                                         \
    static inline void four_##format(const char *w, ptrdiff_t stride, const float *x, float *y,      \
                                     ptrdiff_t inputs) {                                             \
        const number *rows[4];                                                                       \
        floats sums[4][2] = {{{0}}};                                                                 \
        ptrdiff_t i = 0;                                                                             \
        for (int r = 0; r < 4; r++) rows[r] = (const number *)(w + r * stride);                      \
        for (; i + 2 * LANES <= inputs; i += 2 * LANES)                                              \
            for (int k = 0; k < 2; k++)                                                              \
                for (int r = 0; r < 4; r++)                                                          \
                    sums[r][k] += load_##format(rows[r] + i + k * LANES) * load_f32(x + i + k * LANES); \
        for (int r = 0; r < 4; r++) {                                                                \
            y[r] = total(sums[r][0] + sums[r][1]);                                                   \
            for (ptrdiff_t at = i; at < inputs; at++) y[r] += one_##format(rows[r] + at) * x[at];    \
        }                                                                                            \
    }                                                                                                \
    void row_##format(const char *w, ptrdiff_t stride, const float *x, const float *bias, float *y,  \
                      ptrdiff_t outputs, ptrdiff_t inputs) {                                         \
        ptrdiff_t r = 0;                                                                             \
        if (inputs >= four_from)                                                                     \
            for (; r + 4 <= outputs; r += 4) four_##format(w + r * stride, stride, x, y + r, inputs); \
        for (; r < outputs; r++) y[r] = dot_##format((const number *)(w + r * stride), x, inputs);   \
        if (bias)                                                                                    \
            for (r = 0; r < outputs; r++) y[r] += bias[r];                                           \
    }
ROWS(f32, float)
ROWS(bf16, uint16_t)

/* Whole numbers of 8 or 4 bits, several to a word of 32. A vector of words is read at once; shifts bring the
   k-th number of every word to the top, where it is the number times 2^(32 - size), sign included. So lane l
   has number l * per_word + k of the words, and x is arranged to match, once per product.

   A row has groups of `group` numbers with a scale each. It may begin within a group, whose first `first`
   numbers are not there. Scales are positive halves of 16 bits; a row's are `scales_stride` numbers apart. */

static inline float scale_of(uint16_t half, int size) {
    return as_float((uint32_t)half << 13) * (size == 8 ? 0x1p88f : 0x1p84f); /* 2^112, less the shift */
}

static inline ptrdiff_t end_of_group(ptrdiff_t at, ptrdiff_t first, ptrdiff_t group, ptrdiff_t inputs) {
    ptrdiff_t left = at ? group : group - first;
    return left < inputs - at ? at + left : inputs;
}

static void arrange(const float *x, float *arranged, ptrdiff_t first, ptrdiff_t group, ptrdiff_t inputs,
                    int per_word) {
    ptrdiff_t block = per_word * LANES;
    for (ptrdiff_t at = 0, end; at < inputs; at = end) {
        end = end_of_group(at, first, group, inputs);
        for (; at + block <= end; at += block)
            for (int k = 0; k < per_word; k++)
                for (int lane = 0; lane < LANES; lane++)
                    arranged[at + k * LANES + lane] = x[at + lane * per_word + k];
        for (; at < end; at++) arranged[at] = x[at];
    }
}

#define PACKED(size)                                                                                  \
    static inline float dot_i##size(const uint8_t *row, const uint16_t *scales, const float *x,       \
                                    ptrdiff_t first, ptrdiff_t group, ptrdiff_t inputs) {             \
        enum { PER_WORD = 32 / size, BLOCK = PER_WORD * LANES };                                      \
        floats all = {0};                                                                             \
        float rest = 0;                                                                               \
        for (ptrdiff_t at = 0, end; at < inputs; at = end, scales++) {                                \
            end = end_of_group(at, first, group, inputs);                                             \
            float scale = scale_of(*scales, size), few = 0;                                           \
            floats sums[SUMS] = {{0}};                                                                \
            for (; at + BLOCK <= end; at += BLOCK) {                                                  \
                bits words = *(const unaligned_bits *)(row + at * size / 8);                          \
                for (int k = 0; k < PER_WORD; k++) {                                                  \
                    ints top = (ints)(words << (32 - size * (k + 1)) & 0xFFFFFFFFu << (32 - size));   \
                    sums[k % SUMS] += __builtin_convertvector(top, floats) * load_f32(x + at + k * LANES); \
                }                                                                                     \
            }                                                                                         \
            for (; at < end; at++) {                                                                  \
                uint32_t word = (uint32_t)row[at * size / 8] << (32 - size - at * size % 8);          \
                few += (float)(int32_t)(word & 0xFFFFFFFFu << (32 - size)) * x[at];                   \
            }                                                                                         \
            all += (sums[0] + sums[1] + sums[2] + sums[3]) * scale;                                   \
            rest += few * scale;                                                                      \
        }                                                                                             \
        return total(all) + rest;                                                                     \
    }                                                                                                 \
    void row_i##size(const char *w, ptrdiff_t stride, const uint16_t *scales, ptrdiff_t scales_stride, \
                     ptrdiff_t first, ptrdiff_t group, const float *x, float *arranged,               \
                     float *y, const float *bias, ptrdiff_t outputs, ptrdiff_t inputs) {              \
        arrange(x, arranged, first, group, inputs, 32 / size);                                        \
        for (ptrdiff_t r = 0; r < outputs; r++) {                                                     \
            const uint8_t *row = (const uint8_t *)(w + r * stride);                                   \
            y[r] = dot_i##size(row, scales + r * scales_stride, arranged, first, group, inputs) +     \
                   (bias ? bias[r] : 0);                                                              \
        }                                                                                             \
    }
PACKED(8)
PACKED(4)

/* Y = X·W + b of whole numbers. X has `rows` rows of `inputs` numbers from -127 to 127 of 8 bits, of which every
   `group` share a scale, W's rows one each. Products are added up as whole numbers within a group, and the sums,
   scaled, as floats. */
typedef int8_t bytes __attribute__((vector_size(16), aligned(1), may_alias));
typedef int16_t shorts __attribute__((vector_size(32)));
typedef int32_t wide_ints __attribute__((vector_size(64)));
typedef float wide_floats __attribute__((vector_size(64)));

static inline shorts shorts_at(const int8_t *at) { return __builtin_convertvector(*(const bytes *)at, shorts); }

/* Groups of 32. A lane adds two products, at most 2·127² < 2¹⁵, and the lanes of a group have one scale. */
static inline float int8_dot_32(const int8_t *w, const int8_t *x, const float *scales, ptrdiff_t groups) {
    wide_floats sums = {0};
    for (ptrdiff_t g = 0; g < groups; g++, w += 32, x += 32) {
        shorts two = shorts_at(w) * shorts_at(x) + shorts_at(w + 16) * shorts_at(x + 16);
        sums += __builtin_convertvector(__builtin_convertvector(two, wide_ints), wide_floats) * scales[g];
    }
    float sum = 0;
    for (int lane = 0; lane < 16; lane++) sum += sums[lane];
    return sum;
}

static inline float int8_dot(const int8_t *w, const int8_t *x, const float *scales, ptrdiff_t groups,
                             ptrdiff_t group) {
    float sum = 0;
    for (ptrdiff_t g = 0; g < groups; g++, w += group, x += group) {
        int32_t whole = 0;
        for (ptrdiff_t i = 0; i < group; i++) whole += (int32_t)w[i] * x[i];
        sum += (float)whole * scales[g];
    }
    return sum;
}

void int8_product(const int8_t *w, ptrdiff_t stride, const float *w_scales, const int8_t *x,
                  const float *x_scales, const float *bias, float *y, ptrdiff_t rows, ptrdiff_t outputs,
                  ptrdiff_t inputs, ptrdiff_t group) {
    ptrdiff_t groups = inputs / group;
    for (ptrdiff_t o = 0; o < outputs; o++)
        for (ptrdiff_t r = 0; r < rows; r++) {
            const int8_t *row = x + r * inputs;
            const float *scales = x_scales + r * groups;
            float sum = group == 32 ? int8_dot_32(w + o * stride, row, scales, groups)
                                    : int8_dot(w + o * stride, row, scales, groups, group);
            y[r * outputs + o] = sum * w_scales[o] + (bias ? bias[o] : 0);
        }
}

/* One row through both parts of a layer, without going back to the caller between its products
   (`row_layer.py`): RMS norm, attention over the rows of a KV cache, and the gated feed-forward part. */

struct matrix {
    int64_t format; /* 32: floats; 8 or 4: whole numbers with scales */
    const char *packed;
    int64_t stride;
    const uint16_t *scales;
    int64_t scales_stride, first, group;
    const float *bias;
    int64_t outputs, inputs;
};

static void multiply(const struct matrix *m, const float *x, float *arranged, const float *added, float *y) {
    if (m->format == 32) row_f32(m->packed, m->stride, x, added, y, m->outputs, m->inputs);
    else (m->format == 8 ? row_i8 : row_i4)(m->packed, m->stride, m->scales, m->scales_stride, m->first,
                                           m->group, x, arranged, y, added, m->outputs, m->inputs);
}

/* Without `weight` the row is one that was normalised before. */
static const float *normed(const float *x, const float *weight, float eps, ptrdiff_t size, float *into) {
    if (!weight) return x;
    float scale = 1 / sqrtf(dot_f32(x, x, size) / size + eps);
    for (ptrdiff_t i = 0; i < size; i++) into[i] = x[i] * scale * weight[i];
    return into;
}

/* Both halves of the first `turned` numbers of every head; the first half of `sin` is negative. */
static void rotate(float *x, ptrdiff_t heads, ptrdiff_t wide, const float *cos, const float *sin,
                   ptrdiff_t turned) {
    for (ptrdiff_t half = turned / 2; heads--; x += wide)
        for (ptrdiff_t i = 0; i < half; i++) {
            float a = x[i], b = x[i + half];
            x[i] = a * cos[i] + b * sin[i];
            x[i + half] = b * cos[i + half] + a * sin[i + half];
        }
}

/* softmax(q·k·scale)·v of one head over `rows` rows; `scores` has room for them. */
static void attend(const float *q, const float *keys, const float *values, ptrdiff_t rows, ptrdiff_t wide,
                   float scale, float *scores, float *context) {
    float most = -INFINITY, sum = 0;
    for (ptrdiff_t s = 0; s < rows; s++) {
        scores[s] = scale * dot_f32(keys + s * wide, q, wide);
        most = scores[s] > most ? scores[s] : most;
    }
    for (ptrdiff_t i = 0; i < wide; i++) context[i] = 0;
    for (ptrdiff_t s = 0; s < rows; s++) {
        float share = expf(scores[s] - most);
        sum += share;
        for (ptrdiff_t i = 0; i < wide; i++) context[i] += share * values[s * wide + i];
    }
    for (ptrdiff_t i = 0; i < wide; i++) context[i] /= sum;
}

struct attention {
    const float *norm;
    double eps, scale;
    struct matrix q, k, v, o;
    int64_t hidden, heads, keys, wide, turned;
};

/* The new keys and values become row `seen` of the cache, whose heads have room for `room` rows each; rows
   before `first` are hidden. `work`
   has room for 2·hidden, (heads + 2·keys)·wide, heads·wide twice and seen + 1 numbers. */
void row_attention(const struct attention *a, const float *x, float *keys, float *values, int64_t first,
                   int64_t seen, int64_t room, const float *cos, const float *sin, float *work, const float *added, float *y) {
    ptrdiff_t wide = a->wide, group = a->keys ? a->heads / a->keys : 1;
    float *h = work, *arranged = h + a->hidden, *q = arranged + a->hidden + a->heads * wide;
    float *k = q + a->heads * wide, *v = k + a->keys * wide, *context = v + a->keys * wide;
    float *scores = context + a->heads * wide;
    const float *in = normed(x, a->norm, a->eps, a->hidden, h);
    multiply(&a->q, in, arranged, a->q.bias, q);
    multiply(&a->k, in, arranged, a->k.bias, k);
    multiply(&a->v, in, arranged, a->v.bias, v);
    if (a->turned) rotate(q, a->heads + a->keys, wide, cos, sin, a->turned);
    for (ptrdiff_t head = 0; head < a->keys; head++)
        for (ptrdiff_t i = 0, at = (head * room + seen) * wide; i < wide; i++) {
            keys[at + i] = k[head * wide + i];
            values[at + i] = v[head * wide + i];
        }
    for (ptrdiff_t head = 0; head < a->heads; head++) {
        ptrdiff_t from = (head / group * room + first) * wide;
        attend(q + head * wide, keys + from, values + from, seen + 1 - first, wide, a->scale, scores,
               context + head * wide);
    }
    multiply(&a->o, context, arranged, added, y);
}

struct feed_forward {
    const float *norm;
    double eps;
    struct matrix up, gate, down;
    int64_t hidden;
};

/* `work` has room for hidden, the larger of hidden and columns, and 2·columns numbers. */
void row_feed_forward(const struct feed_forward *f, const float *x, float *work, const float *added, float *y) {
    ptrdiff_t columns = f->up.outputs;
    float *h = work, *up = h + f->hidden, *gate = up + columns, *arranged = gate + columns;
    const float *in = normed(x, f->norm, f->eps, f->hidden, h);
    multiply(&f->up, in, arranged, f->up.bias, up);
    multiply(&f->gate, in, arranged, f->gate.bias, gate);
    for (ptrdiff_t i = 0; i < columns; i++) up[i] *= gate[i] / (1 + expf(-gate[i]));
    multiply(&f->down, up, arranged, added, y);
}
