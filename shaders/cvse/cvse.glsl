// Where the GLSL kernels find their work. Needs V and ELEM.

#include "../include/panel.glsl"

// locate finds the workgroup's panel and the first of its cols columns of C.
bool locate(uint cols, out Panel a, out uint base) {
    uint slot = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (slot >= p.panels) return false;
    uint number = p.order.v[slot];
    a = panelAt(p.vecptr.v[number], p.vecptr.v[number + 1], number * V);
    base = gl_WorkGroupID.y * cols;
    return true;
}

// rowOf returns the row of C that row r of a panel is.
uint rowOf(Panel a, uint r) { return a.rows + r; }
