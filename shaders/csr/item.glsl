// The beginning of main in kernel.comp and double.comp. It finds the invocation's row or row segment, `row`, and
// computes its sums, acc. The including file then stores the invocation's columns, from col on: to C, or, unless slot
// is NO_SLOT, to row `slot` of the workspace. x is col in units of the invocation's columns. The including file defines
// entries, slots, reduce, FIRST_COLUMN(x), SLOTS_FROM (x or col, the argument of slots) and CLEAR, which sets acc to 0.

uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
#ifdef ROWS
const bool team = false;
#else
bool team = p.phase == 0 && block < p.segments; // the workgroup computes one segment
#endif
uint group = gl_LocalInvocationID.x / p.across; // the lane group, of those in the workgroup
uint lane = gl_LocalInvocationID.x % p.across;
uint along = team ? gl_WorkGroupSize.x / p.across : p.along, first = SEGMENT_WORDS * block;
#ifndef ROWS
if (p.phase == 0) block -= p.segments;
#endif
uint item = block * p.per + group / p.along;
group %= along; // of those with the same item
uint x = gl_WorkGroupID.y * p.across + lane, col = FIRST_COLUMN(x);
CLEAR;

bool busy = (team || item < p.items) && col < p.n;
uint row = item, slot = NO_SLOT;
if (busy && p.phase == 1) {
    uint r = SEGMENT_WORDS * p.segments + 3 * item;
    row = p.heavy.v[r];
    slots(p.heavy.v[r + 1], p.heavy.v[r + 2], group, SLOTS_FROM);
} else if (busy) {
    uint begin, end;
    if (team) {
        begin = p.heavy.v[first], end = p.heavy.v[first + 1], row = p.heavy.v[first + 2], slot = p.heavy.v[first + 3];
    } else {
        begin = p.rowptr.v[row], end = p.rowptr.v[row + 1];
        busy = end - begin <= p.longest; // a heavy row is computed in segments
    }
    if (busy) entries(begin, end, group, along, x);
}
if (along > 1) reduce(group, along);
if (!busy || group != 0) return;
