// Writing new values where the entries' slots are listed: coalesced reads, scattered writes.

#pragma once

typedef unsigned int u32;

// listed writes EACH entries to the slots that are listed for them, one behind the other of the CTA's: all loads of
// a kind are under way at once. fetch(i) returns value i of src as an X, and store(slot, x) writes it to a slot of dst.
template <class X, class F, class S>
__device__ __forceinline__ void listed(u32 first, const u32 *slots, const u32 *sources, const Params &p, F fetch,
                                       S store) {
    u32 slot[EACH], i[EACH];
    X x[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        u32 n = first + 128 * k;
        bool in = n < p.listed;
        slot[k] = p.run ? p.first + n : in ? slots[n] : 0;
        i[k] = in ? sources[n] - p.lo : 0xffffffffu;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) x[k] = i[k] < p.count ? fetch(i[k]) : 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (i[k] < p.count) store(slot[k], x[k]);
}
