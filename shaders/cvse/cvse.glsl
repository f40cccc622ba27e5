// Where the GLSL kernels find their work. Needs V and ELEM.

#define PTR p.vecptr
#include "../include/panel.glsl"

// panelOf returns the panel that comes at a place of the order.
uint panelOf(uint slot) { return p.order.v[slot]; }

// locate finds the workgroup's panel and the first of its cols columns of C.
bool locate(uint cols, out Panel a, out uint base) {
    uint slot = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (slot >= p.panels) return false;
    uint number = panelOf(slot);
    a = panelAt(p.vecptr.v[number], p.vecptr.v[number + 1], number * V);
    base = gl_WorkGroupID.y * cols;
    return true;
}

// rowOf returns the row of C that row r of a panel is.
uint rowOf(Panel a, uint r) { return a.rows + r; }
