// Instructions that Go's assembler lacks: they widen 16-bit elements.

#define F16LO(n, d) WORD $(0x0E217800 | n<<5 | d)  // FCVTL Vd.4S, Vn.4H
#define F16HI(n, d) WORD $(0x4E217800 | n<<5 | d)  // FCVTL2 Vd.4S, Vn.8H
#define BF16LO(n, d) WORD $(0x2E613800 | n<<5 | d) // SHLL Vd.4S, Vn.4H, #16
#define BF16HI(n, d) WORD $(0x6E613800 | n<<5 | d) // SHLL2 Vd.4S, Vn.8H, #16
