// A libcuda.so.1 without a GPU, for the libraries that sit on it, unmodified: lazy streams and memory of its own.
//
// Nothing that a stream is given runs before an event is waited for, and then only what that depends on. Memory of the
// device is ordinary memory, filled with 0xCD. A call fails that a real driver may forgive: without a current context,
// on the null stream, on memory that is not pinned or not allocated. What else a program should not do is counted and
// can be asked for, with all that the streams were given and ran. For one thread at a time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Result;
enum { OK, INVALID, NO_MEMORY, NO_CONTEXT = 201, NO_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, BAD_ADDRESS = 700 };

enum Kind { COPY, WAIT, MARK };
typedef struct Stream Stream;
typedef struct {
    enum Kind kind;
    void* target;
    const void* source;
    size_t bytes, rows, target_pitch, source_pitch;
    Stream* after;
    size_t count;
} Work;
struct Stream {
    Work* work;
    size_t given, ran, number;
};
typedef struct {
    Stream* stream;
    size_t count;
    int timed;
} Event;
typedef struct {
    char* first;
    size_t bytes;
    int pinned;
} Block;

static struct {
    long allocations, frees, pinned, unpinned, pushes, pops, retains, releases, synchronises, contexts, streams, events;
} counts;
static size_t free_bytes = 1 << 28, streams_made;
static Block blocks[256];
static Result broken;  // by work that failed: as with a real GPU, nothing goes on after that
static __thread void* current[16];
static __thread int depth;
static char said[1 << 16];

static void say(const char* what, enum Kind kind, Stream* stream) {
    const char* kinds[] = {"copy", "wait", "mark"};
    size_t used = strlen(said);
    snprintf(said + used, sizeof said - used, "%s %s on %zu\n", what, kinds[kind], stream->number);
}

static Block* block_of(const void* address, size_t bytes, int pinned) {
    for (Block* block = blocks; block < blocks + 256; ++block)
        if (block->first && block->pinned == pinned && (char*)address >= block->first &&
            (char*)address + bytes <= block->first + block->bytes)
            return block;
    return NULL;
}
static int known(const void* address, size_t bytes) {
    return block_of(address, bytes, 0) || block_of(address, bytes, 1);
}

static void run_copy(const Work* work) {
    for (size_t row = 0; row < work->rows; ++row) {
        char* target = (char*)work->target + row * work->target_pitch;
        const char* source = (const char*)work->source + row * work->source_pitch;
        if (known(target, work->bytes) && known(source, work->bytes))
            memcpy(target, source, work->bytes);
        else
            broken = BAD_ADDRESS;
    }
}

static void run_to(Stream* stream, size_t count) {
    while (stream->ran < count) {
        Work* work = &stream->work[stream->ran];
        if (work->kind == WAIT) run_to(work->after, work->count);
        if (work->kind == COPY) run_copy(work);
        say("ran", work->kind, stream);
        ++stream->ran;
    }
}

static Work* push(Stream* stream, enum Kind kind) {
    stream->work = realloc(stream->work, (stream->given + 1) * sizeof(Work));
    Work* work = &stream->work[stream->given++];
    *work = (Work){.kind = kind, .rows = 1};
    say("given", kind, stream);
    return work;
}

static Result ready(void) { return depth ? broken : NO_CONTEXT; }
#define DEMAND(condition, otherwise) \
    do { \
        if (ready()) return ready(); \
        if (!(condition)) return otherwise; \
    } while (0)

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
Result cuDeviceComputeCapability(int* major, int* minor, int device) {
    (void)device;
    return *major = 8, *minor = 6, OK;
}
Result cuDeviceGetPCIBusId(char* text, int length, int device) {
    (void)device;
    return snprintf(text, length, "0000:01:00.0"), OK;
}
Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
    (void)device;
    return *bytes = 1 << 28, OK;
}
Result cuDeviceGetUuid_v2(char* uuid, int device) {
    (void)device;
    return memset(uuid, 0xAB, 16), OK;
}

// The primary context is the only one; a program that makes its own is counted, and gets none.
Result cuDevicePrimaryCtxRetain(void** context, int device) {
    (void)device;
    ++counts.retains;
    return *context = &counts, OK;
}
Result cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    if (counts.releases == counts.retains) return NO_CONTEXT;
    return ++counts.releases, OK;
}
Result cuCtxCreate_v2(void) { return ++counts.contexts, INVALID; }
Result cuCtxCreate_v4(void) { return ++counts.contexts, INVALID; }
Result cuCtxPushCurrent_v2(void* context) {
    if (context != &counts || counts.releases == counts.retains || depth == 16) return INVALID;
    current[depth++] = context;
    return ++counts.pushes, OK;
}
Result cuCtxPopCurrent_v2(void** context) {
    if (!depth) return NO_CONTEXT;
    *context = current[--depth];
    return ++counts.pops, OK;
}
Result cuCtxGetDevice(int* device) { return *device = 0, ready(); }
Result cuCtxSynchronize(void) { return ++counts.synchronises, ready(); }
Result cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = -5, ready(); }
Result cuMemGetInfo_v2(size_t* unused, size_t* total) { return *unused = free_bytes, *total = 1 << 28, ready(); }

Result cuStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
    (void)priority;
    DEMAND(flags == 1, INVALID);  // not one that waits for the null stream
    ++counts.streams;
    *stream = calloc(1, sizeof(Stream));
    (*stream)->number = ++streams_made;
    return OK;
}
Result cuStreamCreate(Stream** stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }
Result cuStreamSynchronize(Stream* stream) {
    ++counts.synchronises;
    run_to(stream, stream->given);
    return ready();
}
Result cuStreamDestroy_v2(Stream* stream) {
    DEMAND(stream, NO_HANDLE);
    free(stream->work);
    free(stream);
    return --counts.streams, OK;
}
Result cuStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
    (void)flags;
    DEMAND(stream && event, NO_HANDLE);
    if (!event->stream) return OK;
    Work* work = push(stream, WAIT);
    work->after = event->stream;
    work->count = event->count;
    return OK;
}

Result cuEventCreate(Event** event, unsigned flags) {
    DEMAND(1, INVALID);
    *event = calloc(1, sizeof(Event));
    (*event)->timed = !(flags & 2);
    return ++counts.events, OK;
}
Result cuEventDestroy_v2(Event* event) {
    DEMAND(event, NO_HANDLE);
    return --counts.events, free(event), OK;
}
Result cuEventRecord(Event* event, Stream* stream) {
    DEMAND(stream && event, NO_HANDLE);
    push(stream, MARK);
    event->stream = stream;
    event->count = stream->given;
    return OK;
}
Result cuEventQuery(Event* event) {
    DEMAND(!event->stream || event->stream->ran >= event->count, NOT_READY);
    return OK;
}
Result cuEventSynchronize(Event* event) {
    DEMAND(event, NO_HANDLE);
    if (event->stream) run_to(event->stream, event->count);
    return ready();
}
Result cuEventElapsedTime(float* ms, Event* from, Event* to) {
    DEMAND(from->timed && to->timed && from->stream && to->stream, NO_HANDLE);
    if (cuEventQuery(from) || cuEventQuery(to)) return NOT_READY;
    return *ms = (float)to->count - (float)from->count, OK;
}
Result cuEventElapsedTime_v2(float* ms, Event* from, Event* to) { return cuEventElapsedTime(ms, from, to); }

static Result allocate(void** address, size_t bytes, int pinned) {
    Block* block = blocks;
    while (block->first) ++block;
    if (block == blocks + 255 || (!pinned && bytes > free_bytes)) return NO_MEMORY;
    if (!(block->first = bytes < 1ul << 40 ? malloc(bytes) : NULL)) return NO_MEMORY;
    block->bytes = bytes;
    block->pinned = pinned;
    *address = memset(block->first, 0xCD, bytes);
    return OK;
}
static Result release(void* address, int pinned) {
    Block* block = block_of(address, 1, pinned);
    if (!block || block->first != address) return INVALID;
    if (!pinned) free_bytes += block->bytes;
    free(block->first);
    block->first = NULL;
    return OK;
}
Result cuMemAlloc_v2(void** address, size_t bytes) {
    DEMAND(bytes, INVALID);
    if (allocate(address, bytes, 0)) return NO_MEMORY;
    free_bytes -= bytes;
    return ++counts.allocations, OK;
}
Result cuMemFree_v2(void* address) {
    DEMAND(!release(address, 0), INVALID);
    return ++counts.frees, OK;
}
Result cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
    (void)flags;
    DEMAND(bytes, INVALID);
    if (allocate(address, bytes, 1)) return NO_MEMORY;
    return ++counts.pinned, OK;
}
Result cuMemFreeHost(void* address) {
    DEMAND(!release(address, 1), INVALID);
    return ++counts.unpinned, OK;
}

static Result copy(void* target, const void* source, size_t bytes, Stream* stream, int target_pinned) {
    DEMAND(stream, INVALID);  // the null stream orders everything, and hides every mistake
    if (!block_of(target, bytes, target_pinned) || !block_of(source, bytes, !target_pinned)) return INVALID;
    Work* work = push(stream, COPY);
    work->target = target;
    work->source = source;
    work->bytes = bytes;
    return OK;
}
Result cuMemcpyHtoDAsync_v2(void* target, const void* source, size_t bytes, Stream* stream) {
    return copy(target, source, bytes, stream, 0);
}
Result cuMemcpyDtoHAsync_v2(void* target, void* source, size_t bytes, Stream* stream) {
    return copy(target, source, bytes, stream, 1);
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
    DEMAND(what->source_kind == 2 && what->target_kind == 1 && !what->source_x && !what->target_x, INVALID);
    if (copy(what->target_host, what->source_device, what->bytes, stream, 1)) return INVALID;
    Work* work = &stream->work[stream->given - 1];
    work->rows = what->rows;
    work->target_pitch = what->target_pitch;
    work->source_pitch = what->source_pitch;
    return OK;
}

Result cuGetErrorString(Result status, const char** text) {
    *text = status == NO_MEMORY ? "out of memory"
          : status == BAD_ADDRESS ? "an illegal memory access was encountered"
          : "invalid argument";
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
    void* self = dlopen("libcuda.so.1", RTLD_LAZY);
    for (int n = 0; n < 2; ++n) {
        snprintf(name, sizeof name, "%s%s", symbol, endings[n]);
        if ((*function = dlsym(self, name)) != NULL) break;
    }
    if (status) *status = *function ? 0 : 1;
    return *function ? OK : NOT_FOUND;
}
Result cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

// What the program did: one line of JSON; and what the streams were given and ran, a line for each, oldest first.
void fake_counts(char* text, int length) {
    snprintf(text, length,
             "{\"allocations\": %ld, \"frees\": %ld, \"pinned\": %ld, \"unpinned\": %ld, \"pushes\": %ld, "
             "\"pops\": %ld, \"retains\": %ld, \"releases\": %ld, \"synchronises\": %ld, \"contexts\": %ld, "
             "\"streams\": %ld, \"events\": %ld}",
             counts.allocations, counts.frees, counts.pinned, counts.unpinned, counts.pushes, counts.pops,
             counts.retains, counts.releases, counts.synchronises, counts.contexts, counts.streams, counts.events);
}
const char* fake_log(void) { return said; }
