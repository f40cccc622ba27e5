// The beginning of main in kernel.comp and double.comp: it finds the row or row segment of an invocation, `row`, and
// adds up its sums, acc. The including file then stores the columns from col on, x in units of the invocation's
// columns: to C, or to row `slot` of the workspace where that is not NO_SLOT. It defines entries, pieces, reduce,
// FIRST_COLUMN(x), PIECES_FROM (x or col, which pieces takes) and CLEAR, which sets acc to 0.

uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
#ifdef ROWS
const bool team = false;
#else
bool team = p.phase == 0 && block < p.pieces; // the workgroup does a piece
#endif
uint group = gl_LocalInvocationID.x / p.across; // of the workgroup's
uint lane = gl_LocalInvocationID.x % p.across;
uint along = team ? gl_WorkGroupSize.x / p.across : p.along, first = PIECE_WORDS * block;
#ifndef ROWS
if (p.phase == 0) block -= p.pieces;
#endif
uint item = block * p.per + group / p.along;
group %= along; // of the item's
uint x = gl_WorkGroupID.y * p.across + lane, col = FIRST_COLUMN(x);
CLEAR;

bool busy = (team || item < p.items) && col < p.n;
uint row = item, slot = NO_SLOT;
if (busy && p.phase == 1) {
    uint r = PIECE_WORDS * p.pieces + 3 * item;
    row = p.heavy.v[r];
    pieces(p.heavy.v[r + 1], p.heavy.v[r + 2], group, PIECES_FROM);
} else if (busy) {
    uint begin, end;
    if (team) {
        begin = p.heavy.v[first], end = p.heavy.v[first + 1], row = p.heavy.v[first + 2], slot = p.heavy.v[first + 3];
    } else {
        begin = p.rowptr.v[row], end = p.rowptr.v[row + 1];
        busy = end - begin <= p.longest; // else it is done in pieces
    }
    if (busy) entries(begin, end, group, along, x);
}
if (along > 1) reduce(group, along);
if (!busy || group != 0) return;
