// The producer warp of A: it loads some of the streams, which takes their own warps a tenth to a quarter of their
// instructions. A multiprocessor has four schedulers, and WARPS is not a multiple of four: two schedulers have one
// stream more. The producer loads the streams of these two, and runs on another scheduler, as does the producer of B.
// (It takes about 220 cycles for a piece: all streams are too many for one producer.)

#pragma once
#include "stages.cuh"
#include "stream.cuh"

#if FEEDERS
static_assert(WARPS % 4 == 2 && PRODUCERS == 1 && FEEDERS == 1, "the feeder is on the last scheduler");
#endif

// is_fed tells whether the producer of A loads a warp's stream.
__device__ __forceinline__ bool is_fed(u32 warp) { return FEEDERS > 0 && warp % 4 < 2; }

// fed_by is the stream that a lane of the producer loads: its warp, or one past the last.
__device__ __forceinline__ u32 fed_by(u32 lane) { return lane / 2 * 4 + lane % 2; }

// emptied is the barrier at which the stream's warp says that it has done with a slot.
__device__ __forceinline__ u32 emptied(const Stream &stream, u32 slot) {
    return stream.barriers + 8 * (MOST_SLOTS + slot);
}

// done_with releases the slots of a piece for the next one.
__device__ __forceinline__ void done_with(Stream &stream, bool fed, u32 slot, u32 mask_slot) {
    if (!fed) {
        if (stream.coming < stream.total) stream.fetch(slot, mask_slot);
    } else if (Ring::elected()) {
        barrier_arrive_here(emptied(stream, slot));
    }
}

// feed: body of the producer warp of A, each lane with a stream, if it has any.
__device__ __forceinline__ void feed(Stream &stream, bool any) {
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
