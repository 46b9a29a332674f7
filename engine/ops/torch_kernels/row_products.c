/* y = W·x + b for one row x: each row of the matrix W is read once, from its first to its last number.

   That is how memory is fastest (docs/results/performance.md): a single stream, which the processor reads
   ahead of the loop. Several accumulators keep the additions from waiting for each other.

   The vectors are those of GCC and Clang, so that one source serves every processor: 32 bytes where it has
   AVX, 16 (NEON, SSE) elsewhere. W's rows are `stride` bytes apart; `bias` may be null. */

#include <stddef.h>
#include <stdint.h>

#ifdef __AVX__
#define LANES 8
#else
#define LANES 4
#endif
#define SUMS 4
#define STEP (SUMS * LANES)

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef float unaligned_floats __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));
typedef uint16_t halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* Numbers of each format as floats. */
static inline floats load_f32(const float *at) { return *(const unaligned_floats *)at; }
static inline floats load_bf16(const uint16_t *at) {
    return (floats)(__builtin_convertvector(*(const halves *)at, bits) << 16);
}
static inline float one_f32(const float *at) { return *at; }
static inline float one_bf16(const uint16_t *at) {
    union { uint32_t number; float value; } both = {(uint32_t)*at << 16};
    return both.value;
}

static inline float total(const floats sums[SUMS]) {
    floats all = sums[0];
    for (int k = 1; k < SUMS; k++) all += sums[k];
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += all[lane];
    return sum;
}

#define DOT(format, number)                                                                         \
    static inline float dot_##format(const number *row, const float *x, ptrdiff_t inputs) {        \
        floats sums[SUMS] = {{0}};                                                                  \
        ptrdiff_t i = 0;                                                                            \
        for (; i + STEP <= inputs; i += STEP)                                                       \
            for (int k = 0; k < SUMS; k++)                                                          \
                sums[k] += load_##format(row + i + k * LANES) * load_f32(x + i + k * LANES);        \
        for (; i + LANES <= inputs; i += LANES) sums[0] += load_##format(row + i) * load_f32(x + i); \
        float sum = total(sums);                                                                    \
        for (; i < inputs; i++) sum += one_##format(row + i) * x[i];                                \
        return sum;                                                                                 \
    }
DOT(f32, float)
DOT(bf16, uint16_t)

#define ROWS(format, number)                                                                         \
    void row_##format(const char *w, ptrdiff_t stride, const float *x, const float *bias, float *y, \
                      ptrdiff_t outputs, ptrdiff_t inputs) {                                        \
        for (ptrdiff_t r = 0; r < outputs; r++) {                                                   \
            const number *row = (const number *)(w + r * stride);                                   \
            y[r] = dot_##format(row, x, inputs) + (bias ? bias[r] : 0);                             \
        }                                                                                           \
    }

ROWS(f32, float)
ROWS(bf16, uint16_t)
