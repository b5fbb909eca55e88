// Draws a textured triangle mesh into a picture, nearest surface first; knows triangles and textures, not what they show.
//
// Four kernels in this order, as engines/raster.py does it on the processor: `mesh_begin` sets the rectangle aside and
// forgets old depths (a thread a pixel), `mesh_rasterise` finds the nearest triangle of each pixel (a block of 64 a
// triangle), `mesh_planes` makes each attribute a linear function of the pixel (a thread a triangle and attribute),
// `mesh_paint` blends (a thread a pixel). All in grid-stride loops.
#include "params.h"

#define ATTRIBUTES 8
#define NOTHING 0xFFFFFFFFFFFFFFFFull

// A depth as a number that is ordered as it is, above the triangle's number: one atomic minimum settles both.
__device__ __forceinline__ unsigned long long packed(float depth, int triangle) {
    unsigned bits;
    memcpy(&bits, &depth, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (unsigned long long)bits << 32 | (unsigned)triangle;
}

struct Corners {
    const float *a, *b, *c;
};

__device__ __forceinline__ Corners corners(const float* xyz, const int* triangles, int t) {
    return {xyz + 3 * triangles[3 * t], xyz + 3 * triangles[3 * t + 1], xyz + 3 * triangles[3 * t + 2]};
}

__device__ __forceinline__ float area_of(const Corners& k) {
    return (k.b[0] - k.a[0]) * (k.c[1] - k.a[1]) - (k.b[1] - k.a[1]) * (k.c[0] - k.a[0]);
}

extern "C" __global__ void mesh_begin(const unsigned char* picture, const MeshBlock* blocks, unsigned char* original,
                                      unsigned long long* nearest) {
    const MeshBlock block = *blocks;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < block.width * block.height; i += gridDim.x * blockDim.x) {
        int x = i % block.width, y = i / block.width;
        const unsigned char* pixel = picture + (size_t)(block.top + y) * block.pitch + 3 * (block.left + x);
        for (int channel = 0; channel < 3; ++channel) original[3 * i + channel] = pixel[channel];
        nearest[i] = NOTHING;
    }
}

extern "C" __global__ void mesh_rasterise(const float* xyz, const int* triangles, const MeshBlock* blocks,
                                          unsigned long long* nearest) {
    const MeshBlock block = *blocks;
    for (int t = blockIdx.x; t < block.triangles; t += gridDim.x) {
        Corners k = corners(xyz, triangles, t);
        float area = area_of(k);
        if (!(area > 1e-6f)) continue;
        float inverse = 1.0f / area;
        // Clipped as floats: a point may lie farther away than an integer can say.
        int x0 = (int)ceilf(fmaxf(fminf(k.a[0], fminf(k.b[0], k.c[0])), 0.0f));
        int y0 = (int)ceilf(fmaxf(fminf(k.a[1], fminf(k.b[1], k.c[1])), 0.0f));
        int x1 = (int)floorf(fminf(fmaxf(k.a[0], fmaxf(k.b[0], k.c[0])), (float)(block.width - 1)));
        int y1 = (int)floorf(fminf(fmaxf(k.a[1], fmaxf(k.b[1], k.c[1])), (float)(block.height - 1)));
        if (x1 < x0 || y1 < y0) continue;
        int across = x1 - x0 + 1;
        for (int i = threadIdx.x; i < across * (y1 - y0 + 1); i += blockDim.x) {
            int x = x0 + i % across, y = y0 + i / across;
            float px = (float)x - k.a[0], py = (float)y - k.a[1];
            float wb = (px * (k.c[1] - k.a[1]) - py * (k.c[0] - k.a[0])) * inverse;
            float wc = (py * (k.b[0] - k.a[0]) - px * (k.b[1] - k.a[1])) * inverse;
            if (fminf(1.0f - wb - wc, fminf(wb, wc)) < -1e-4f) continue;  // a hair of overlap closes the seams
            float z = k.a[2] + wb * (k.b[2] - k.a[2]) + wc * (k.c[2] - k.a[2]);
            atomicMin(&nearest[y * block.width + x], packed(z, t));
        }
    }
}

extern "C" __global__ void mesh_planes(const float* xyz, const float* attributes, const int* triangles,
                                       const MeshBlock* blocks, float* planes) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < blocks->triangles * ATTRIBUTES;
         i += gridDim.x * blockDim.x) {
        int t = i / ATTRIBUTES, attribute = i % ATTRIBUTES;
        Corners k = corners(xyz, triangles, t);
        float area = area_of(k);
        if (!(area > 1e-6f)) continue;
        float inverse = 1.0f / area, value = attributes[ATTRIBUTES * triangles[3 * t] + attribute];
        float along_b = attributes[ATTRIBUTES * triangles[3 * t + 1] + attribute] - value;
        float along_c = attributes[ATTRIBUTES * triangles[3 * t + 2] + attribute] - value;
        float p = (along_b * (k.c[1] - k.a[1]) - along_c * (k.b[1] - k.a[1])) * inverse;
        float q = (along_c * (k.b[0] - k.a[0]) - along_b * (k.c[0] - k.a[0])) * inverse;
        planes[3 * i] = p;
        planes[3 * i + 1] = q;
        planes[3 * i + 2] = value - p * k.a[0] - q * k.a[1];
    }
}

struct Sample {
    int i, j;  // top left pixel, and how far beyond it
    float fx, fy;
};

__device__ __forceinline__ Sample corner(float x, float y, float width, float height) {
    x = fminf(fmaxf(x, 0.0f), width - 1.001f);
    y = fminf(fmaxf(y, 0.0f), height - 1.001f);
    int i = (int)x, j = (int)y;
    return {i, j, x - (float)i, y - (float)j};
}

template <typename T>
__device__ __forceinline__ float sampled(const T* picture, int width, int channels, const Sample& s, int channel) {
    const T* at = picture + ((size_t)s.j * width + s.i) * channels + channel;
    const T* below = at + (size_t)width * channels;
    float upper = fmaf(s.fx, (float)at[channels], (1.0f - s.fx) * (float)at[0]);
    float lower = fmaf(s.fx, (float)below[channels], (1.0f - s.fx) * (float)below[0]);
    return fmaf(s.fy, lower, (1.0f - s.fy) * upper);
}

extern "C" __global__ void mesh_paint(unsigned char* picture, const unsigned char* original,
                                      const unsigned long long* nearest, const float* planes,
                                      const unsigned char* texture, const float* opacity, const MeshBlock* blocks) {
    const MeshBlock block = *blocks;
    const float none = 1.0f / 256.0f;  // a share below it changes no grey level
    const float side = (float)block.texture_side, fine = (float)block.opacity_side;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < block.width * block.height; i += gridDim.x * blockDim.x) {
        if (nearest[i] == NOTHING) continue;
        const float* plane = planes + (size_t)(unsigned)nearest[i] * ATTRIBUTES * 3;
        float x = (float)(i % block.width), y = (float)(i / block.width), at[ATTRIBUTES];
        for (int k = 0; k < ATTRIBUTES; ++k) at[k] = fmaf(plane[3 * k], x, fmaf(plane[3 * k + 1], y, plane[3 * k + 2]));
        Sample o = corner(at[0] * fine - 0.5f, at[1] * fine - 0.5f, fine, fine);
        float share = at[2] * sampled(opacity, block.opacity_side, 2, o, 0);
        float moved = sampled(opacity, block.opacity_side, 2, o, 1), dx = moved * at[3], dy = moved * at[4];
        if (share < none && fabsf(dx) + fabsf(dy) < 0.02f) continue;
        Sample t = corner(at[0] * side - 0.5f, at[1] * side - 0.5f, side, side);
        Sample under = corner(x + dx, y + dy, (float)block.width, (float)block.height);
        unsigned char* pixel = picture + (size_t)(block.top + i / block.width) * block.pitch +
                               3 * (block.left + i % block.width);
        for (int channel = 0; channel < 3; ++channel) {
            float lit = fminf(sampled(texture, block.texture_side, 3, t, channel) * at[5 + channel], 255.0f);
            float below = sampled(original, block.width, 3, under, channel);
            float level = share > 1.0f - none ? lit : below + share * (lit - below);
            pixel[channel] = (unsigned char)fminf(fmaxf(level + 0.5f, 0.0f), 255.0f);
        }
    }
}
