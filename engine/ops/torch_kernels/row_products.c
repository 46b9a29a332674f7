/* y = W·x + b for one row x: each row of the matrix W is read once, from its first to its last number.

   That is how memory is fastest (docs/results/performance.md): a single stream, which the processor reads
   ahead of the loop. Several accumulators keep the additions from waiting for each other.

   The vectors are those of GCC and Clang, so that one source serves every processor: 32 bytes where it has
   AVX, 16 (NEON, SSE) elsewhere. W's rows are `stride` bytes apart; `bias` may be null. */

#include <stddef.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers of 8 and 4 bits are taken out of words from their lowest bits"
#endif

#ifdef __AVX__
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

#define ROWS(format, number)                                                                         \
    void row_##format(const char *w, ptrdiff_t stride, const float *x, const float *bias, float *y,  \
                      ptrdiff_t outputs, ptrdiff_t inputs) {                                         \
        for (ptrdiff_t r = 0; r < outputs; r++) {                                                    \
            const number *row = (const number *)(w + r * stride);                                    \
            y[r] = dot_##format(row, x, inputs) + (bias ? bias[r] : 0);                              \
        }                                                                                            \
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
