// A libcuda.so.1 without a GPU, for the libraries that sit on it, unmodified: lazy streams and memory of its own.
//
// Nothing that a stream is given runs before an event is waited for, and then only what that depends on. Memory of the
// device is ordinary memory, filled with 0xCD. What the program may not do is counted and can be asked for.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600 };

typedef struct Stream Stream;
typedef struct {
    enum { COPY, WAIT, MARK } kind;
    void* target;
    const void* source;
    size_t bytes, rows, target_pitch, source_pitch;
    Stream* after;
    size_t count;
} Work;
struct Stream {
    Work work[4096];
    size_t given, ran;
};
typedef struct {
    Stream* stream;
    size_t count;
} Event;

static struct {
    long allocations, frees, pinned, unpinned, pushes, pops, retains, releases, synchronises, streams, events;
} counts;
static size_t free_bytes = 1 << 28;

static void run_to(Stream* stream, size_t count) {
    while (stream->ran < count) {
        Work* work = &stream->work[stream->ran];
        if (work->kind == WAIT) run_to(work->after, work->count);
        if (work->kind == COPY)
            for (size_t row = 0; row < work->rows; ++row)
                memcpy((char*)work->target + row * work->target_pitch, (const char*)work->source + row * work->source_pitch,
                       work->bytes);
        ++stream->ran;
    }
}

static Work* push(Stream* stream, int kind) {
    Work* work = &stream->work[stream->given++];
    work->kind = kind;
    work->rows = 1;
    return work;
}

Result cuInit(unsigned flags) { return flags ? INVALID : OK; }
Result cuDriverGetVersion(int* version) { return *version = 13000, OK; }
Result cuDeviceGetCount(int* count) { return *count = 1, OK; }
Result cuDeviceGet(int* device, int number) { return *device = 0, number ? INVALID : OK; }
Result cuDeviceGetName(char* name, int length, int device) {
    (void)device;
    snprintf(name, length, "Fake GPU");
    return OK;
}
Result cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 8 : attribute == 76 ? 6 : 1;
    return OK;
}
Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
    (void)device;
    return *bytes = 1 << 28, OK;
}
Result cuDeviceGetUuid_v2(char* uuid, int device) {
    (void)device;
    return memset(uuid, 0xAB, 16), OK;
}
Result cuDevicePrimaryCtxRetain(void** context, int device) {
    (void)device;
    ++counts.retains;
    return *context = &counts, OK;
}
Result cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return ++counts.releases, OK;
}
Result cuCtxPushCurrent_v2(void* context) { return context == &counts ? (++counts.pushes, OK) : INVALID; }
Result cuCtxPopCurrent_v2(void** context) { return *context = &counts, ++counts.pops, OK; }
Result cuCtxSynchronize(void) { return ++counts.synchronises, OK; }
Result cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, OK; }
Result cuMemGetInfo_v2(size_t* unused, size_t* total) { return *unused = free_bytes, *total = 1 << 28, OK; }

Result cuStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
    (void)priority;
    if (flags != 1) return INVALID;  // not one that waits for the null stream
    ++counts.streams;
    return *stream = calloc(1, sizeof(Stream)), OK;
}
Result cuStreamCreate(Stream** stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
Result cuStreamSynchronize(Stream* stream) { return ++counts.synchronises, run_to(stream, stream->given), OK; }
Result cuStreamDestroy_v2(Stream* stream) { return --counts.streams, free(stream), OK; }
Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
    (void)flags;
    if (!event->stream) return OK;
    Work* work = push(stream, WAIT);
    work->after = event->stream;
    work->count = event->count;
    return OK;
}

Result cuEventCreate(Event** event, unsigned flags) {
    (void)flags;
    return ++counts.events, *event = calloc(1, sizeof(Event)), OK;
}
Result cuEventDestroy_v2(Event* event) { return --counts.events, free(event), OK; }
Result cuEventRecord(Event* event, Stream* stream) {
    push(stream, MARK);
    event->stream = stream;
    event->count = stream->given;
    return OK;
}
Result cuEventQuery(Event* event) { return !event->stream || event->stream->ran >= event->count ? OK : NOT_READY; }
Result cuEventSynchronize(Event* event) {
    if (event->stream) run_to(event->stream, event->count);
    return OK;
}
Result cuEventElapsedTime(float* ms, Event* from, Event* to) {
    if (cuEventQuery(from) || cuEventQuery(to)) return NOT_READY;
    return *ms = (float)(to->count - from->count), OK;
}
Result cuEventElapsedTime_v2(float* ms, Event* from, Event* to) { return cuEventElapsedTime(ms, from, to); }

Result cuMemAlloc_v2(void** address, size_t bytes) {
    if (bytes > free_bytes) return NO_MEMORY;
    free_bytes -= bytes;
    size_t* memory = malloc(bytes + 64);
    *memory = bytes;
    *address = (char*)memory + 64;
    memset(*address, 0xCD, bytes);
    return ++counts.allocations, OK;
}
Result cuMemFree_v2(void* address) {
    size_t* memory = (size_t*)((char*)address - 64);
    free_bytes += *memory;
    free(memory);
    return ++counts.frees, OK;
}
Result cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
    (void)flags;
    *address = malloc(bytes);
    memset(*address, 0xCD, bytes);
    return ++counts.pinned, OK;
}
Result cuMemFreeHost(void* address) { return free(address), ++counts.unpinned, OK; }

static Result copy(void* target, const void* source, size_t bytes, Stream* stream) {
    if (!stream) return INVALID;  // the null stream orders everything, and hides every mistake
    Work* work = push(stream, COPY);
    work->target = target;
    work->source = source;
    work->bytes = bytes;
    return OK;
}
Result cuMemcpyHtoDAsync_v2(void* target, const void* source, size_t bytes, Stream* stream) {
    return copy(target, source, bytes, stream);
}
Result cuMemcpyDtoHAsync_v2(void* target, void* source, size_t bytes, Stream* stream) {
    return copy(target, source, bytes, stream);
}

typedef struct {
    size_t source_x, source_y;
    int source_kind;
    const void* source_host;
    void* source_device;
    void* source_array;
    size_t source_pitch, target_x, target_y;
    int target_kind;
    void* target_host;
    void* target_device;
    void* target_array;
    size_t target_pitch, bytes, rows;
} Copy2d;

Result cuMemcpy2DAsync_v2(const Copy2d* what, Stream* stream) {
    if (what->source_kind != 2 || what->target_kind != 1 || what->source_x || what->target_x) return INVALID;
    if (copy(what->target_host, what->source_device, what->bytes, stream)) return INVALID;
    Work* work = &stream->work[stream->given - 1];
    work->rows = what->rows;
    work->target_pitch = what->target_pitch;
    work->source_pitch = what->source_pitch;
    return OK;
}

Result cuDeviceComputeCapability(int* major, int* minor, int device) {
    (void)device;
    return *major = 8, *minor = 6, OK;
}
Result cuDeviceGetPCIBusId(char* text, int length, int device) {
    (void)device;
    return snprintf(text, length, "0000:01:00.0"), OK;
}
Result cuCtxGetDevice(int* device) { return *device = 0, OK; }
Result cuGetErrorString(Result status, const char** text) {
    *text = status == NO_MEMORY ? "out of memory" : "fake error";
    return OK;
}
Result cuGetErrorName(Result status, const char** name) {
    (void)status;
    return *name = "FAKE", OK;
}

Result cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* status) {
    (void)version;
    (void)flags;
    char name[128];
    const char* endings[] = {"_v2", ""};
    for (int n = 0; n < 2; ++n) {
        snprintf(name, sizeof name, "%s%s", symbol, endings[n]);
        if ((*function = dlsym(RTLD_DEFAULT, name)) != NULL) break;
        void* self = dlopen("libcuda.so.1", RTLD_LAZY);
        if ((*function = dlsym(self, name)) != NULL) break;
    }
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}
Result cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

// What the program did, one line of JSON.
void fake_counts(char* text, int length) {
    snprintf(text, length,
             "{\"allocations\": %ld, \"frees\": %ld, \"pinned\": %ld, \"unpinned\": %ld, \"pushes\": %ld, \"pops\": %ld, "
             "\"retains\": %ld, \"releases\": %ld, \"synchronises\": %ld, \"streams\": %ld, \"events\": %ld}",
             counts.allocations, counts.frees, counts.pinned, counts.unpinned, counts.pushes, counts.pops,
             counts.retains, counts.releases, counts.synchronises, counts.streams, counts.events);
}
