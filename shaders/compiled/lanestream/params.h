// Generated from the kernel's table. Do not edit.
#pragma once
struct Params {
    unsigned int rows;
    unsigned int cols;
    unsigned int n;
    unsigned int ldb;
    unsigned int ldc;
    unsigned int groups;
    unsigned int each;
    unsigned int parts;
    unsigned int pieces;
    unsigned int steps;
    unsigned int window;
    unsigned int store;
    float alpha;
    float beta;
    unsigned int width;
    unsigned int masklayout;
};
