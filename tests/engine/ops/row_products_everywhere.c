/* Prints the largest error of every product of `row_products.c`, relative to the sizes of its terms. */

#include "row_products.c"

#include <stdio.h>
#include <stdlib.h>

static float draw(void) { return (float)rand() / RAND_MAX * 2 - 1; }

static double worst;

static void compare(float got, double exact, double sizes) {
    double error = fabs(got - exact) / (sizes + 1e-30);
    if (!(error <= worst)) worst = error;
}

int main(void) {
    enum { MOST = 700 };
    static float x[MOST], w[MOST], arranged[MOST], y[5];
    static uint16_t halves[MOST], scales[MOST];
    static uint8_t packed[MOST];
    for (int inputs = 1; inputs < MOST; inputs += 1 + inputs / 7) {
        for (int first = 0; first < 128; first += 22) {
            double f32 = 0, f32s = 0, bf16 = 0, bf16s = 0, i8 = 0, i8s = 0, i4 = 0, i4s = 0;
            for (int i = 0; i < inputs; i++) {
                x[i] = draw(), w[i] = draw(), halves[i] = 0x3C00 + rand() % 0x400, packed[i] = rand();
                scales[i] = 0x1C00 + rand() % 0x800;
            }
            for (int i = 0; i < inputs; i++) {
                float half = as_float((uint32_t)halves[i] << 16);
                float scale = scale_of(scales[(first + i) / 128], 4) * 0x1p28f;
                float nibble = (float)((int)(packed[i / 2] >> i % 2 * 4 & 15) - (packed[i / 2] >> i % 2 * 4 & 8) * 2) * scale;
                float byte = (float)(int8_t)packed[i] * (scale_of(scales[0], 8) * 0x1p24f);
                f32 += (double)w[i] * x[i], f32s += fabs((double)w[i] * x[i]);
                bf16 += (double)half * x[i], bf16s += fabs((double)half * x[i]);
                i8 += (double)byte * x[i], i8s += fabs((double)byte * x[i]);
                i4 += (double)nibble * x[i], i4s += fabs((double)nibble * x[i]);
            }
            for (int four = 0; four < 2; four++) { /* the same row five times, the first four in turn */
                read_four_rows_from(four ? 1 : PTRDIFF_MAX);
                row_f32((const char *)w, 0, x, NULL, y, 5, inputs);
                for (int r = 0; r < 5; r++) compare(y[r], f32, f32s);
                row_bf16((const char *)halves, 0, x, NULL, y, 5, inputs);
                for (int r = 0; r < 5; r++) compare(y[r], bf16, bf16s);
            }
            row_i8((const char *)packed, 0, scales, 0, 0, MOST, x, arranged, y, NULL, 1, inputs);
            compare(y[0], i8, i8s);
            row_i4((const char *)packed, 0, scales, 0, first, 128, x, arranged, y, NULL, 1, inputs);
            compare(y[0], i4, i4s);
        }
    }
    printf("%g\n", worst);
    return 0;
}
