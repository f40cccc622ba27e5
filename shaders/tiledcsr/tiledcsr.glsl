// Where the GLSL kernels find their work. Needs V and ELEM.

#include "../include/panel.glsl"

// panelIn returns the panel that comes at a place of the order in which a kernel takes them that has B in shared
// memory.
uint panelIn(uint slot) { return slot; }

// locate finds the workgroup's panel and the first of its cols columns of C.
bool locate(uint cols, out Panel a, out uint base) {
    uint i = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    uint group = i / p.strip;
    base = (gl_WorkGroupID.y * p.strip + i % p.strip) * cols;
    if (group >= p.panels || base >= p.n) return false;
    a = panelOf(group);
    return true;
}

// rowOf returns the row of C that row r of a panel is.
uint rowOf(Panel a, uint r) { return p.work.v[p.places + a.rows + r]; }
