// Blends what a network made into a picture, inside its rectangle: tone, mask, scaling and blending in one kernel.
//
// It refuses an output that is no picture: then not a pixel changes, and `painted` stays 0. One thread a pixel of the
// rectangle, in a grid-stride loop: blocks of 256, at most as many as cover the largest rectangle. The picture is read
// and written by the same thread only.
#include <cuda_fp16.h>

#include "params.h"
#include "tensor.h"

__device__ __forceinline__ int rounded(float level) { return (int)fminf(fmaxf(level + 0.5f, 0.0f), 255.0f); }

__device__ bool is_picture(const Measured& measured, const PasteBlock& block) {
    if (!(measured.high - measured.low >= block.least_range)) return false;  // NaN is none either
    const float* deviation = measured.after_deviation;
    float most = fmaxf(fmaxf(deviation[0], deviation[1]), deviation[2]);
    return block.least_deviation <= 0.0f || most >= block.least_deviation;
}

// One channel of the developed patch at a level: the rounded average of the pixels that it halves together.
template <typename T>
__device__ int developed(const T* output, const Layout& layout, const PasteBlock& block, int x, int y, int channel) {
    int k = layout.rgb ? 2 - channel : channel, span = 1 << block.level, sum = 0;
    float times = one_of(layout.factor, k) * one_of(block.gain, channel);
    float plus = fmaf(one_of(layout.mean, k), one_of(block.gain, channel), one_of(block.offset, channel));
    for (int j = y * span; j < (y + 1) * span; ++j)
        for (int i = x * span; i < (x + 1) * span; ++i) {
            int tile = j % layout.tiles * layout.tiles + i % layout.tiles;
            float value = load(output, place(layout, tile, i / layout.tiles, j / layout.tiles, channel));
            sum += rounded(fmaf(value, times, plus));
        }
    return (sum + span * span / 2) >> (2 * block.level);
}

__device__ int shown(const unsigned char* opacity, int side_x, int side_y, int level, int x, int y) {
    int span = 1 << level, across = side_x >> level, down = side_y >> level, sum = 0;
    if (x <= 0 || y <= 0 || x >= across - 1 || y >= down - 1) return 0;
    for (int j = y * span; j < (y + 1) * span; ++j)
        for (int i = x * span; i < (x + 1) * span; ++i) sum += opacity[j * side_x + i];
    return (sum + span * span / 2) >> (2 * level);
}

template <typename T>
__device__ void paste(unsigned char* picture, const PasteBlock* blocks, const T* output, const unsigned char* opacity,
                      Measured* measured, const Layout& layout) {
    const PasteBlock block = *blocks;
    if (!is_picture(*measured, block)) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) measured->painted = 1;
    const float* m = block.patch_from_picture;
    const int side_x = layout.tiles * layout.width, side_y = layout.tiles * layout.height;
    const int across = side_x >> block.level, down = side_y >> block.level;
    const int width = block.right - block.left, total = width * (block.bottom - block.top);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int x = block.left + i % width, y = block.top + i / width;
        float px = fmaf(m[0], (float)x, fmaf(m[1], (float)y, m[2]));
        float py = fmaf(m[3], (float)x, fmaf(m[4], (float)y, m[5]));
        if (!(px > -1.0f && py > -1.0f && px < (float)across && py < (float)down)) continue;
        int left = (int)floorf(px), top = (int)floorf(py);
        float fx = px - (float)left, fy = py - (float)top;
        float share[4] = {(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy};
        float opaque = 0;
#pragma unroll
        for (int n = 0; n < 4; ++n)
            opaque = fmaf(share[n], (float)shown(opacity, side_x, side_y, block.level, left + n % 2, top + n / 2), opaque);
        int over = rounded(opaque);
        if (over == 0) continue;
        for (int channel = 0; channel < 3; ++channel) {
            float level = 0;
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                int at_x = left + n % 2, at_y = top + n / 2;
                if (at_x < 0 || at_y < 0 || at_x >= across || at_y >= down) continue;
                level = fmaf(share[n], (float)developed(output, layout, block, at_x, at_y, channel), level);
            }
            unsigned char* pixel = picture + (size_t)y * block.pitch + 3 * x + channel;
            int sum = rounded(level) * over + *pixel * (255 - over) + 128;
            *pixel = (unsigned char)((sum + (sum >> 8)) >> 8);
        }
    }
}

#define PASTE(NAME, T)                                                                                               \
    extern "C" __global__ void NAME(unsigned char* picture, const PasteBlock* block, const T* output,                \
                                    const unsigned char* opacity, Measured* measured, LAYOUT_ARGUMENTS) {            \
        const Layout layout = LAYOUT;                                                                                \
        paste(picture, block, output, opacity, measured, layout);                                                    \
    }

PASTE(paste_f32, float)
PASTE(paste_f16, __half)
