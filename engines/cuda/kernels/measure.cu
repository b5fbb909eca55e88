// Measures what a network was given and what it made: tone of both, range of the result; judges nothing.
//
// Two kernels, so that the order of additions never depends on the machine: `extent` leaves the range of each block's
// share in a list (blocks of 256, as many as the list has room for), `measure` sums the list and the tone up (one block
// of 256). Both need barriers.
#include <cuda_fp16.h>

#include "params.h"
#include "tensor.h"

#define THREADS 256
#define TONE_STEP 4  // as engines.contract.TONE_STEP

#define ENDLESS __int_as_float(0x7f800000)
#define NO_NUMBER __int_as_float(0x7fffffff)

struct Extent {
    float low, high;
    int broken;  // a value is not finite
    int spare;
};

__device__ __forceinline__ void widen(Extent& one, const Extent& other) {
    one.low = fminf(one.low, other.low);
    one.high = fmaxf(one.high, other.high);
    one.broken |= other.broken;
}

template <typename T>
__device__ void extent(const T* output, Extent* extents, const Layout& layout) {
    __shared__ Extent shared[THREADS];
    const int plane = layout.width * layout.height, total = layout.tiles * layout.tiles * plane * 3;
    Extent mine = {ENDLESS, -ENDLESS, 0, 0};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        float value = load(output, i);
        int k = layout.nhwc ? i % 3 : i / plane % 3;
        float level = fmaf(value, one_of(layout.factor, k), one_of(layout.mean, k));
        widen(mine, isfinite(value) ? Extent{level, level, 0, 0} : Extent{ENDLESS, -ENDLESS, 1, 0});
    }
    shared[threadIdx.x] = mine;
    for (int reach = THREADS / 2; reach > 0; reach /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < reach) widen(shared[threadIdx.x], shared[threadIdx.x + reach]);
    }
    if (threadIdx.x == 0) extents[blockIdx.x] = shared[0];
}

// Sums THREADS numbers; every thread gets the sum.
__device__ float total_of(float mine, float* shared) {
    __syncthreads();
    shared[threadIdx.x] = mine;
    for (int reach = THREADS / 2; reach > 0; reach /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < reach) shared[threadIdx.x] += shared[threadIdx.x + reach];
    }
    __syncthreads();
    return shared[0];
}

// Mean and deviation in two passes: single precision would lose the difference of two large sums.
template <typename T>
__device__ void tone(const T* tensor, const Layout& layout, const float* weight, float* mean, float* deviation,
                     float* shared) {
    const int columns = (layout.width + TONE_STEP - 1) / TONE_STEP;
    const int cells = columns * ((layout.height + TONE_STEP - 1) / TONE_STEP);
    for (int channel = 0; channel < 3; ++channel) {
        int k = layout.rgb ? 2 - channel : channel;
        float all = 0, sum = 0, spread = 0;
        for (int i = threadIdx.x; i < cells; i += THREADS) {
            int x = i % columns * TONE_STEP, y = i / columns * TONE_STEP;
            float level = fmaf(load(tensor, place(layout, 0, x, y, channel)), one_of(layout.factor, k), one_of(layout.mean, k));
            all += weight[i];
            sum = fmaf(weight[i], level, sum);
        }
        float share = total_of(all, shared), middle = total_of(sum, shared) / share;
        for (int i = threadIdx.x; i < cells; i += THREADS) {
            int x = i % columns * TONE_STEP, y = i / columns * TONE_STEP;
            float level = fmaf(load(tensor, place(layout, 0, x, y, channel)), one_of(layout.factor, k), one_of(layout.mean, k));
            spread = fmaf(weight[i], (level - middle) * (level - middle), spread);
        }
        float variance = total_of(spread, shared) / share;
        if (threadIdx.x == 0) {
            mean[channel] = middle;
            deviation[channel] = sqrtf(fmaxf(variance, 0.0f));
        }
    }
}

// `weight` is null where only the range is asked for: then the tones stay as they are.
template <typename T>
__device__ void measure(const T* target, const T* output, const Extent* extents, int count, const float* weight,
                        Measured* measured, const Layout& before, const Layout& after) {
    __shared__ float shared[THREADS];
    if (weight) {
        tone(target, before, weight, measured->before_mean, measured->before_deviation, shared);
        tone(output, after, weight, measured->after_mean, measured->after_deviation, shared);
    }
    if (threadIdx.x == 0) {
        Extent whole = {ENDLESS, -ENDLESS, 0, 0};
        for (int i = 0; i < count; ++i) widen(whole, extents[i]);
        measured->low = whole.broken ? NO_NUMBER : whole.low;
        measured->high = whole.broken ? NO_NUMBER : whole.high;
        measured->painted = 0;
    }
}

#define MEASURE(SUFFIX, T)                                                                                           \
    extern "C" __global__ void extent_##SUFFIX(const T* output, Extent* extents, LAYOUT_ARGUMENTS) {                 \
        const Layout layout = LAYOUT;                                                                                \
        extent(output, extents, layout);                                                                             \
    }                                                                                                                \
    extern "C" __global__ void measure_##SUFFIX(                                                                     \
        const T* target, const T* output, const Extent* extents, int count, const float* weight, Measured* measured, \
        int given_nhwc, int given_rgb, float given_factor0, float given_factor1, float given_factor2,                \
        float given_mean0, float given_mean1, float given_mean2, LAYOUT_ARGUMENTS) {                                 \
        const Layout after = LAYOUT;                                                                                 \
        const Layout before = {tiles, width, height, given_nhwc, given_rgb,                                          \
                               {given_factor0, given_factor1, given_factor2},                                        \
                               {given_mean0, given_mean1, given_mean2}};                                             \
        measure(target, output, extents, count, weight, measured, before, after);                                    \
    }

MEASURE(f32, float)
MEASURE(f16, __half)
