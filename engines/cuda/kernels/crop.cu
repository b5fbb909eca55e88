// Cuts an upright crop out of a picture and normalises it into an engine's input; knows no engine and no face.
//
// One thread a pixel of the input, in a grid-stride loop: blocks of 256, as many as cover the input or fewer. Letterboxes
// are crops too: a plain scaling whose rest is black. What is bilinear stays unrounded, so a value is up to half a grey
// level from that of the processor, which rounds to bytes first.
#include <cuda_fp16.h>

#include "params.h"
#include "tensor.h"

__device__ __forceinline__ float tap(const unsigned char* picture, const CropBlock& block, int x, int y, int channel) {
    bool inside = x >= 0 && y >= 0 && x < block.width && y < block.height;
    return inside ? (float)picture[(size_t)y * block.pitch + 3 * x + channel] : 0.0f;
}

__device__ __forceinline__ void store(float* out, size_t at, float value) { out[at] = value; }
__device__ __forceinline__ void store(__half* out, size_t at, float value) { out[at] = __float2half(value); }

// Several tiles are woven: tile n holds the rows from n / tiles on and the columns from n % tiles on, every tiles-th.
template <typename T>
__device__ void crop(const unsigned char* picture, const CropBlock* blocks, T* out, int tiles, int width, int height,
                     int nhwc, int rgb, const float* mean, const float* scale) {
    const CropBlock block = *blocks;
    const float* m = block.picture_from_crop;
    const int plane = width * height, total = tiles * tiles * plane;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
        int tile = i / plane, at = i % plane, y = at / width, x = at % width;
        float crop_x = (float)(x * tiles + tile % tiles), crop_y = (float)(y * tiles + tile / tiles);
        float px = fmaf(m[0], crop_x, fmaf(m[1], crop_y, m[2])), py = fmaf(m[3], crop_x, fmaf(m[4], crop_y, m[5]));
        // Far outside everything is black; before the conversion, because a float may exceed every integer.
        px = fminf(fmaxf(px, -2.0f), (float)block.width + 1.0f);
        py = fminf(fmaxf(py, -2.0f), (float)block.height + 1.0f);
        int left = (int)floorf(px), top = (int)floorf(py);
        float fx = px - (float)left, fy = py - (float)top;
        for (int channel = 0; channel < 3; ++channel) {
            float upper = fmaf(fx, tap(picture, block, left + 1, top, channel),
                               (1.0f - fx) * tap(picture, block, left, top, channel));
            float lower = fmaf(fx, tap(picture, block, left + 1, top + 1, channel),
                               (1.0f - fx) * tap(picture, block, left, top + 1, channel));
            float pixel = fmaf(fy, lower, (1.0f - fy) * upper);
            int k = rgb ? 2 - channel : channel;
            size_t to = nhwc ? 3 * (size_t)i + k : ((size_t)tile * 3 + k) * plane + at;
            store(out, to, (pixel - one_of(mean, k)) * one_of(scale, k));
        }
    }
}

#define CROP(NAME, T)                                                                                              \
    extern "C" __global__ void NAME(const unsigned char* picture, const CropBlock* block, T* out, int tiles,       \
                                    int width, int height, int nhwc, int rgb, float mean0, float mean1,            \
                                    float mean2, float scale0, float scale1, float scale2) {                       \
        const float mean[3] = {mean0, mean1, mean2}, scale[3] = {scale0, scale1, scale2};                          \
        crop(picture, block, out, tiles, width, height, nhwc, rgb, mean, scale);                                   \
    }

CROP(crop_f32, float)
CROP(crop_f16, __half)
