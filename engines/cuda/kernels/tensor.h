// Where a pixel lies in an engine's tensor, and what it is worth in grey levels; knows layouts, no pictures.
#pragma once

#include <cuda_fp16.h>

struct Layout {
    int tiles, width, height;  // of a tile; tiles along one side
    int nhwc, rgb;
    float factor[3], mean[3];  // by plane: grey level = value * factor + mean
};

__device__ __forceinline__ float load(const float* tensor, size_t at) { return tensor[at]; }
__device__ __forceinline__ float load(const __half* tensor, size_t at) { return __half2float(tensor[at]); }

// One of three, without an index that would put them into memory.
__device__ __forceinline__ float one_of(const float* three, int k) {
    return k == 0 ? three[0] : k == 1 ? three[1] : three[2];
}

// Place of a channel (0 blue, 1 green, 2 red) of a pixel of one tile.
__device__ __forceinline__ size_t place(const Layout& layout, int tile, int x, int y, int channel) {
    int k = layout.rgb ? 2 - channel : channel, plane = layout.width * layout.height, at = y * layout.width + x;
    return layout.nhwc ? 3 * ((size_t)tile * plane + at) + k : ((size_t)tile * 3 + k) * plane + at;
}

// Arguments of a kernel that make a Layout. They follow from the card and so never change within a captured graph.
#define LAYOUT_ARGUMENTS                                                                                            \
    int tiles, int width, int height, int nhwc, int rgb, float factor0, float factor1, float factor2, float mean0, \
        float mean1, float mean2
#define LAYOUT {tiles, width, height, nhwc, rgb, {factor0, factor1, factor2}, {mean0, mean1, mean2}}
