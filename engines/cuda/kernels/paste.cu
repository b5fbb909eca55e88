// Blends what a network made into a picture, inside its rectangle: tone, mask, scaling and blending in one kernel.
//
// It refuses an output that is no picture: then not a pixel changes, and `painted` stays 0. One thread a pixel of the
// rectangle, in a grid-stride loop: blocks of 256, at most as many as cover the largest rectangle. The picture is read
// and written by the same thread only.
#include <cuda_fp16.h>

#include "params.h"
#include "tensor.h"

#define MOST_LEVEL 9  // as blocks.py

__device__ __forceinline__ int rounded(float level) { return (int)fminf(fmaxf(level + 0.5f, 0.0f), 255.0f); }

__device__ bool is_picture(const Measured& measured, const PasteBlock& block) {
    if (!(measured.high - measured.low >= block.least_range)) return false;  // NaN is none either
    const float* deviation = measured.after_deviation;
    float most = fmaxf(fmaxf(deviation[0], deviation[1]), deviation[2]);
    return block.least_deviation <= 0.0f || most >= block.least_deviation;
}

// Bits 0, 2, 4, ... of a number.
__device__ __forceinline__ int every_other_bit(unsigned n) {
    n &= 0x55555555u;
    n = (n | n >> 1) & 0x33333333u;
    n = (n | n >> 2) & 0x0f0f0f0fu;
    n = (n | n >> 4) & 0x00ff00ffu;
    return (int)((n | n >> 8) & 0x0000ffffu);
}

// A pixel of a plane that was halved `level` times as engines/paste.py does it, averages of four, each time rounded.
// The pixels under it come in the order of a quadtree, so that one sum a level is all there is to keep.
template <typename Plane>
__device__ int halved(const Plane& plane, int level, int x, int y) {
    int sums[MOST_LEVEL] = {}, value = 0;
    for (unsigned n = 0; n < 1u << 2 * level; ++n) {
        value = plane((x << level) + every_other_bit(n), (y << level) + every_other_bit(n >> 1));
#pragma unroll
        for (int depth = 0; depth < MOST_LEVEL; ++depth) {
            if (depth >= level) break;
            sums[depth] += value;
            if ((n >> 2 * depth) % 4 != 3) break;
            value = (sums[depth] + 2) / 4;
            sums[depth] = 0;
        }
    }
    return value;
}

// One channel of what the network made, as bytes of the new tone, its tiles woven.
template <typename T>
struct Developed {
    const T* output;
    const Layout& layout;
    int channel;
    float times, plus;

    __device__ Developed(const T* output, const Layout& layout, const PasteBlock& block, int channel)
        : output(output), layout(layout), channel(channel) {
        int k = layout.rgb ? 2 - channel : channel;
        float gain = one_of(block.gain, channel);
        times = one_of(layout.factor, k) * gain;
        plus = fmaf(one_of(layout.mean, k), gain, one_of(block.offset, channel));
    }

    __device__ int operator()(int x, int y) const {
        int tile = y % layout.tiles * layout.tiles + x % layout.tiles;
        float value = load(output, place(layout, tile, x / layout.tiles, y / layout.tiles, channel));
        return rounded(fmaf(value, times, plus));
    }
};

// How much of the patch is shown, as bytes.
struct Opacity {
    const unsigned char* bytes;
    int side;

    __device__ int operator()(int x, int y) const { return bytes[y * side + x]; }
};

// The part of a halved plane that counts, right and bottom just outside; beyond it everything is 0.
struct Bounds {
    int first, right, bottom;
};

// A bilinear sample, as a byte. One body for all four neighbours: halving is too long to have four times.
template <typename Plane>
__device__ int sampled(const Plane& plane, int level, const Bounds& bounds, int left, int top, float fx, float fy) {
    float sum = 0;
#pragma unroll 1
    for (int n = 0; n < 4; ++n) {
        int x = left + n % 2, y = top + n / 2;
        if (x < bounds.first || y < bounds.first || x >= bounds.right || y >= bounds.bottom) continue;
        float share = (n % 2 ? fx : 1.0f - fx) * (n / 2 ? fy : 1.0f - fy);
        sum = fmaf(share, (float)halved(plane, level, x, y), sum);
    }
    return rounded(sum);
}

template <typename T>
__device__ void paste(unsigned char* picture, const PasteBlock* blocks, const T* output, const unsigned char* opacity,
                      Measured* measured, const Layout& layout) {
    const PasteBlock block = *blocks;
    if (!is_picture(*measured, block)) return;
    if (blockIdx.x == 0 && threadIdx.x == 0) measured->painted = 1;
    const float* m = block.patch_from_picture;
    const Opacity shown = {opacity, layout.tiles * layout.width};
    const Bounds whole = {0, shown.side >> block.level, layout.tiles * layout.height >> block.level};
    const Bounds inner = {1, whole.right - 1, whole.bottom - 1};  // the outermost pixels are never shown, at any level
    const int width = block.right - block.left, total = width * (block.bottom - block.top);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int x = block.left + i % width, y = block.top + i / width;
        float px = fmaf(m[0], (float)x, fmaf(m[1], (float)y, m[2]));
        float py = fmaf(m[3], (float)x, fmaf(m[4], (float)y, m[5]));
        if (!(px > -1.0f && py > -1.0f && px < (float)whole.right && py < (float)whole.bottom)) continue;
        int left = (int)floorf(px), top = (int)floorf(py);
        float fx = px - (float)left, fy = py - (float)top;
        int over = sampled(shown, block.level, inner, left, top, fx, fy);
        if (over == 0) continue;
        for (int channel = 0; channel < 3; ++channel) {
            const Developed<T> developed(output, layout, block, channel);
            int level = sampled(developed, block.level, whole, left, top, fx, fy);
            unsigned char* pixel = picture + (size_t)y * block.pitch + 3 * x + channel;
            int sum = level * over + *pixel * (255 - over) + 128;
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
