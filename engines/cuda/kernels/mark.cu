// Adds a pattern of light to a picture, coarse cells smoothly joined; knows no code and nothing of what it says.
//
// The hook for an invisible mark. One thread a pixel, in a grid-stride loop.
#include "params.h"

extern "C" __global__ void mark(unsigned char* picture, const MarkBlock* blocks, const float* cells) {
    const MarkBlock block = *blocks;
    const float across = (float)block.columns / (float)block.width, down = (float)block.rows / (float)block.height;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < block.width * block.height; i += gridDim.x * blockDim.x) {
        int x = i % block.width, y = i / block.width;
        float px = fminf(fmaxf(((float)x + 0.5f) * across - 0.5f, 0.0f), (float)(block.columns - 1));
        float py = fminf(fmaxf(((float)y + 0.5f) * down - 0.5f, 0.0f), (float)(block.rows - 1));
        int left = (int)px, top = (int)py, right = min(left + 1, block.columns - 1), below = min(top + 1, block.rows - 1);
        float fx = px - (float)left, fy = py - (float)top;
        float upper = fmaf(fx, cells[top * block.columns + right], (1.0f - fx) * cells[top * block.columns + left]);
        float lower = fmaf(fx, cells[below * block.columns + right], (1.0f - fx) * cells[below * block.columns + left]);
        float step = fmaf(fy, lower, (1.0f - fy) * upper);
        unsigned char* pixel = picture + (size_t)y * block.pitch + 3 * x;
        for (int channel = 0; channel < 3; ++channel)
            pixel[channel] = (unsigned char)fminf(fmaxf(floorf((float)pixel[channel] + step + 0.5f), 0.0f), 255.0f);
    }
}
