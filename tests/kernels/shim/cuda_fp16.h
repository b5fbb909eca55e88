// Half precision for g++, in the place of CUDA's own header.
#pragma once

typedef _Float16 __half;

static inline __half __float2half(float value) { return (__half)value; }
static inline float __half2float(__half value) { return (float)value; }
