// What the package must do, on the device of a name. It is given open, throws what is wrong, and returns the device.

const equal = (got, want, what) => {
	if (JSON.stringify(got) !== JSON.stringify(want)) {
		throw new Error(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
	}
};

// refused checks that f throws, or what it returns rejects, with this in its message.
const refused = async (f, want) => {
	let text = "no error";
	try {
		await f();
	} catch (e) {
		text = e instanceof Error ? e.message : `${e} is no Error`;
	}
	if (!text.includes(want)) throw new Error(`${JSON.stringify(text)}, want an error with ${JSON.stringify(want)}`);
};

const same = (rows, cols, got, want, what) => {
	equal([got.rows, got.cols, got.data.length], [rows, cols, rows * cols], what);
	for (let i = 0; i < want.length; i++) {
		const off = Math.abs(got.data[i] - want[i]);
		if (!(off <= 1e-4)) throw new Error(`${what}: [${i}] is ${got.data[i]}, want ${want[i]}`);
	}
};

// random is a matrix of rows×cols in which every seventh element is an entry, and its elements.
const random = (rows, cols) => {
	const a = { rows, cols, rowPtr: [0], colIdx: [], values: [] }, dense = new Float64Array(rows * cols);
	for (let i = 0, x = 1; i < rows; i++) {
		for (let j = 0; j < cols; j++) {
			x = (x * 48271) % 2147483647;
			if (x % 7) continue;
			const v = (x % 64 - 32) / 16;
			a.colIdx.push(j);
			a.values.push(v);
			dense[i * cols + j] = v;
		}
		a.rowPtr.push(a.colIdx.length);
	}
	return [a, dense];
};

const product = (m, k, n, a, b) => {
	const c = new Float64Array(m * n);
	for (let i = 0; i < m; i++) {
		for (let l = 0; l < k; l++) {
			for (let j = 0; j < n; j++) c[i * n + j] += a[i * k + l] * b[l * n + j];
		}
	}
	return c;
};

export const check = async (open, name) => {
	const small = { rows: 3, cols: 3, rowPtr: [0, 2, 3, 4], colIdx: [0, 2, 1, 2], values: [1, 2, 3, 4] };
	const six = { rows: 3, cols: 2, data: [1, 4, 2, 5, 3, 6] };
	const c = await (await open(name)).prepare(small).multiply(six);
	same(3, 2, c, [7, 16, 6, 15, 12, 24], "as README says");
	equal(c.data instanceof Float32Array, true, "a Float32Array");

	const device = await open(name);
	const [m, k, n] = [70, 50, 9];
	const [a, dense] = random(m, k), b = Float32Array.from({ length: k * n }, (_, i) => (i % 11) - 5);
	const want = product(m, k, n, dense, b);
	const arrays = {
		...a, rowPtr: Uint32Array.from(a.rowPtr), colIdx: Int32Array.from(a.colIdx), values: Float32Array.from(a.values),
	};
	const plan = device.prepare(arrays, { columns: n });
	arrays.values.fill(0); // they were copied
	const info = await plan.info();
	equal([info.rows, info.cols, info.precision, typeof info.why], [m, k, "f32", "string"], "info");
	const several = await Promise.all([1, 2].map((alpha) => plan.multiply({ rows: k, cols: n, data: b }, { alpha })));
	same(m, n, several[0], want, "A·B");
	same(m, n, several[1], want.map((x) => 2 * x), "2·A·B");
	const positive = await plan.multiply({ rows: k, cols: n, data: b }, { activation: "relu" });
	same(m, n, positive, want.map((x) => Math.max(0, x)), "relu");
	await plan.setValues(a.values.map((x) => -x));
	same(m, n, await plan.multiply({ rows: k, cols: n, data: b }), want.map((x) => -x), "new values");

	const reproducible = device.prepare(a, { reproducible: 23 });
	same(m, n, await reproducible.multiply({ rows: k, cols: n, data: b }), want, "reproducible");
	const g = Float32Array.from({ length: m * n }, (_, i) => (i % 5) - 2);
	const t = Float64Array.from({ length: k * m }, (_, i) => dense[(i % m) * k + Math.floor(i / m)]);
	const transposed = device.prepare(a, { transpose: true }), right = device.prepare(a, { right: true });
	same(k, n, await transposed.multiply({ rows: m, cols: n, data: g }), product(k, m, n, t, g), "Aᵀ·B");
	same(n, k, await right.multiply({ rows: n, cols: m, data: g }), product(n, m, k, g, dense), "B·A");

	await refused(() => open("gpu"), "gpu");
	await refused(() => device.prepare({ ...small, colIdx: ["a"] }).multiply(six), "");
	await refused(() => device.prepare({ ...small, colIdx: [0, 2, 1, 9] }).multiply(six), "column 9");
	await refused(() => device.prepare({ ...small, rowPtr: [0, 2] }).multiply(six), "row pointers");
	await refused(() => device.prepare({ ...small, rows: 2.5 }), "rows 2.5: want an integer");
	await refused(() => device.prepare({ ...small, values: "1234" }), "values: want a Float32Array");
	await refused(() => device.prepare({ ...small, values: new Float32Array(3) }).multiply(six), "3");
	await refused(() => device.prepare(small, { format: "none" }).multiply(six), "none");
	await refused(() => plan.multiply({ rows: k, cols: n, data: b.slice(1) }), `want ${k * n}`);
	await refused(() => plan.multiply({ rows: n, cols: k, data: b }), "shapes");
	const tanh = () => plan.multiply({ rows: k, cols: n, data: b }, { activation: "tanh" });
	await refused(tanh, "want none, relu, gelu or silu");
	await refused(() => plan.setValues([1]), "values");
	await plan.close();
	await refused(() => plan.multiply({ rows: k, cols: n, data: b }), "the plan is closed");
	await refused(() => plan.close(), "closed already");

	const doubles = device.prepare({ ...small, values: Float64Array.of(1, 2, 3, 1 + 2 ** -40) });
	const eye = { rows: 3, cols: 3, data: Float64Array.of(1, 0, 0, 0, 1, 0, 0, 0, 1) };
	if (device.info.backend === "cpu") {
		equal((await doubles.multiply(eye)).data[8], 1 + 2 ** -40, "64 bits");
	} else {
		await refused(() => doubles.multiply(eye), "f64");
	}
	await device.close();
	await refused(async () => device.prepare(small).multiply(six), "the device is closed");
	return device.info.backend;
};
