// unlzma unpacks an .lzma file whose header says how long the contents are, as the LZMA specification has it (Igor
// Pavlov, 2015). Browsers unpack gzip themselves, which takes half as many bytes again for the program.
function unlzma(src) {
	"use strict";
	const properties = src[0], lc = properties % 9, lp = (properties / 9 | 0) % 5, pb = properties / 45 | 0;
	if (properties >= 225) throw Error("not an .lzma file");
	const view = new DataView(src.buffer, src.byteOffset, src.byteLength);
	const size = view.getUint32(5, true);
	if (view.getUint32(9, true) !== 0 || size > 1 << 28) throw Error("an .lzma file of unknown or too great length");
	const out = new Uint8Array(size);
	let at = 18, code = view.getUint32(14), range = 0xffffffff, n = 0;

	// One probability for each binary choice; where each kind's begin:
	const MATCH = 0, REP = 192, REP0 = 204, REP1 = 216, REP2 = 228, LONG = 240, SLOT = 432, PLACE = 688, ALIGN = 802,
		LENGTH = 818, REP_LENGTH = 1332, LITERAL = 1846;
	const p = new Uint16Array(LITERAL + (0x300 << lc + lp)).fill(1024);

	const bit = (i) => {
		const v = p[i], bound = (range >>> 11) * v;
		let b;
		if (code < bound) {
			range = bound;
			p[i] = v + (2048 - v >>> 5);
			b = 0;
		} else {
			range -= bound;
			code -= bound;
			p[i] = v - (v >>> 5);
			b = 1;
		}
		if (range < 0x1000000) {
			range = range * 256;
			code = (code * 256 + src[at++]) % 0x100000000;
		}
		return b;
	};
	const tree = (base, bits) => {
		let m = 1;
		for (let i = 0; i < bits; i++) m = m << 1 | bit(base + m);
		return m - (1 << bits);
	};
	const reverse = (base, bits) => {
		let m = 1, v = 0;
		for (let i = 0; i < bits; i++) {
			const b = bit(base + m);
			m = m << 1 | b;
			v |= b << i;
		}
		return v;
	};
	const direct = (bits) => {
		let v = 0;
		for (; bits > 0; bits--) {
			range = Math.floor(range / 2);
			let b = 0;
			if (code >= range) {
				code -= range;
				b = 1;
			}
			v = v * 2 + b;
			if (range < 0x1000000) {
				range = range * 256;
				code = (code * 256 + src[at++]) % 0x100000000;
			}
		}
		return v;
	};
	const length = (base, place) => {
		if (!bit(base)) return 2 + tree(base + 2 + (place << 3), 3);
		if (!bit(base + 1)) return 10 + tree(base + 130 + (place << 3), 3);
		return 18 + tree(base + 258, 8);
	};

	let state = 0, rep0 = 0, rep1 = 0, rep2 = 0, rep3 = 0;
	const places = (1 << pb) - 1, low = (1 << lp) - 1;
	while (n < size) {
		if (at > src.length) throw Error("the .lzma file is cut off");
		const place = n & places;
		if (!bit(MATCH + (state << 4) + place)) {
			const base = LITERAL + 0x300 * (((n & low) << lc) + ((n ? out[n - 1] : 0) >> 8 - lc));
			let m = 1;
			if (state >= 7) {
				let other = out[n - rep0 - 1];
				do {
					const o = other >> 7 & 1, b = bit(base + (1 + o << 8) + m);
					other <<= 1;
					m = m << 1 | b;
					if (o !== b) break;
				} while (m < 0x100);
			}
			while (m < 0x100) m = m << 1 | bit(base + m);
			out[n++] = m;
			state = state < 4 ? 0 : state < 10 ? state - 3 : state - 6;
			continue;
		}
		let len;
		if (bit(REP + state)) {
			if (!bit(REP0 + state)) {
				if (!bit(LONG + (state << 4) + place)) {
					state = state < 7 ? 9 : 11;
					if (rep0 >= n) throw Error("the .lzma file is damaged");
					out[n] = out[n - rep0 - 1];
					n++;
					continue;
				}
			} else {
				let far;
				if (!bit(REP1 + state)) far = rep1;
				else {
					if (!bit(REP2 + state)) far = rep2;
					else [far, rep3] = [rep3, rep2];
					rep2 = rep1;
				}
				rep1 = rep0;
				rep0 = far;
			}
			len = length(REP_LENGTH, place);
			state = state < 7 ? 8 : 11;
		} else {
			[rep3, rep2, rep1] = [rep2, rep1, rep0];
			len = length(LENGTH, place);
			state = state < 7 ? 7 : 10;
			const slot = tree(SLOT + (Math.min(len - 2, 3) << 6), 6);
			rep0 = slot;
			if (slot >= 4) {
				const bits = (slot >> 1) - 1, high = (2 | slot & 1) * 2 ** bits;
				rep0 = high + (slot < 14 ? reverse(PLACE + high - slot - 1, bits) : direct(bits - 4) * 16 + reverse(ALIGN, 4));
			}
		}
		if (rep0 >= n || n + len > size) throw Error("the .lzma file is damaged");
		for (let from = n - rep0 - 1; len > 0; len--) out[n++] = out[from++];
	}
	return out;
}
