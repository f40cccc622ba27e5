// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int items;
    unsigned int quads;
    unsigned int srcrow;
    unsigned int dstrow;
    unsigned int place;
    unsigned int width;
};
