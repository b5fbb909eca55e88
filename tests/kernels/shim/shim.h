// Lets g++ build the CUDA kernels: what the compiler of CUDA knows by itself, as plain C++, one thread after the other.
//
// All state belongs to the calling thread, so that several may launch at the same time.
#pragma once

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __shared__ static thread_local
#define __forceinline__ inline

struct dim3 {
    unsigned x, y, z;
};

static thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

static inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

using std::max;
using std::min;

static inline unsigned long long atomicMin(unsigned long long* at, unsigned long long value) {
    unsigned long long before = *at;
    if (value < before) *at = value;
    return before;
}

// Barriers: the threads of a block are fibres, and one that waits lets the others run up to the same place.
namespace fibres {

struct Fibre {
    ucontext_t context;
    dim3 thread;
    bool ended;
    std::unique_ptr<char[]> stack;
};

const size_t STACK = 64 * 1024;
static thread_local std::vector<Fibre> all;  // kept: a launch has many blocks
static thread_local ucontext_t scheduler;
static thread_local Fibre* current;
static thread_local void (*body)(void*);
static thread_local void* arguments;

static void enter() {
    body(arguments);
    current->ended = true;
    swapcontext(&current->context, &scheduler);
}

static void wait() { swapcontext(&current->context, &scheduler); }

static void run_block(void (*kernel)(void*), void* given) {
    body = kernel;
    arguments = given;
    size_t threads = blockDim.x * blockDim.y * blockDim.z;
    while (all.size() < threads) all.push_back({{}, {}, false, std::unique_ptr<char[]>(new char[STACK])});
    for (size_t n = 0; n < threads; ++n) {
        Fibre& fibre = all[n];
        fibre.ended = false;
        fibre.thread = {(unsigned)(n % blockDim.x), (unsigned)(n / blockDim.x % blockDim.y),
                        (unsigned)(n / blockDim.x / blockDim.y)};
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.get();
        fibre.context.uc_stack.ss_size = STACK;
        fibre.context.uc_link = &scheduler;
        makecontext(&fibre.context, enter, 0);
    }
    for (size_t left = threads; left > 0;) {
        for (size_t n = 0; n < threads; ++n) {
            Fibre& fibre = all[n];
            if (fibre.ended) continue;
            current = &fibre;
            threadIdx = fibre.thread;
            swapcontext(&scheduler, &fibre.context);
            left -= fibre.ended;
        }
    }
}

static void run_plain(void (*kernel)(void*), void* given) {
    for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y)
            for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel(given);
}

template <typename F>
static void launch(const unsigned* grid, const unsigned* block, bool barriers, F&& kernel) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    void (*call)(void*) = [](void* given) { (*static_cast<typename std::remove_reference<F>::type*>(given))(); };
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; ++blockIdx.z)
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
                barriers ? run_block(call, &kernel) : run_plain(call, &kernel);
}

}  // namespace fibres

#define __syncthreads() fibres::wait()
