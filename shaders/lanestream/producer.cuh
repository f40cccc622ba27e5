// The producer warp of A, which loads some of the streams. That saves the consumer warps of these streams a tenth to a
// quarter of their instructions. A multiprocessor has four schedulers and WARPS is not a multiple of four, so two of
// the schedulers have one consumer warp more. The producer loads the streams of the warps on these two, and itself runs
// on another one, as does the producer of B. (It takes about 220 cycles for a segment: all streams are too many for one
// producer.)

#pragma once
#include "stages.cuh"
#include "stream.cuh"

#if A_PRODUCERS
static_assert(WARPS % 4 == 2 && B_PRODUCERS == 1 && A_PRODUCERS == 1, "the producer of A is on the last scheduler");
#endif

// is_produced reports whether the producer of A loads a warp's stream.
__device__ __forceinline__ bool is_produced(u32 warp) { return A_PRODUCERS > 0 && warp % 4 < 2; }

// produced_stream returns the consumer warp whose stream a lane of the producer loads; there may be none of that
// number.
__device__ __forceinline__ u32 produced_stream(u32 lane) { return lane / 2 * 4 + lane % 2; }

// emptied returns the barrier at which the stream's warp says that it has used a slot.
__device__ __forceinline__ u32 emptied(const Stream &stream, u32 slot) {
    return stream.barriers + 8 * (MOST_SLOTS + slot);
}

// done_with releases the slots of a segment to the next one.
__device__ __forceinline__ void done_with(Stream &stream, bool produced, u32 slot, u32 mask_slot) {
    if (!produced) {
        if (stream.coming < stream.total) stream.fetch(slot, mask_slot);
    } else if (StageBuffer::elected()) {
        barrier_arrive_here(emptied(stream, slot));
    }
}

// produce_a: body of the producer warp of A. Each lane loads a stream if `any` says that it has one.
__device__ __forceinline__ void produce_a(Stream &stream, bool any) {
    u32 total = any && stream.count > 0 ? stream.total : 0, slot = 0, mask_slot = 0, parity = 1;
    while (__any_sync(~0u, stream.coming < total)) {
        bool go = stream.coming < total && barrier_test(emptied(stream, slot), parity);
        if (go) {
            bool masked = stream.fetch(slot, mask_slot, true);
            if (++slot == stream.slots) slot = 0, parity ^= 1;
            if (masked && ++mask_slot == stream.mask_slots) mask_slot = 0;
        }
        if (!__any_sync(~0u, go)) __nanosleep(20);
    }
}
