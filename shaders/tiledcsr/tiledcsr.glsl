// Where the GLSL kernels find their work. Needs V and ELEM.

#define PTR p.tileptr
#include "../include/panel.glsl"

// panelOf returns the panel that comes at a place of the order.
uint panelOf(uint slot) { return slot; }

const uint TILE = 16;

// locate finds the workgroup's panel and the first of its cols columns of C.
bool locate(uint cols, out Panel a, out uint base) {
    uint i = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    uint group = i / p.strip;
    base = (gl_WorkGroupID.y * p.strip + i % p.strip) * cols;
    if (group >= p.panels || base >= p.n) return false;
    a = panelAt(TILE * p.tileptr.v[group], TILE * p.tileptr.v[group + 1], group * V);
    return true;
}

// rowOf returns the row of C that row r of a panel is.
uint rowOf(Panel a, uint r) { return p.rowidx.v[a.rows + r]; }
