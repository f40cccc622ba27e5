// spmm for JavaScript: the classes, over the functions of spmm.wasm (main.go).

import "./webgpu.js";

const integers = (a, name) => {
	if (a instanceof Int32Array) return a;
	if (a instanceof Uint32Array || Array.isArray(a)) return Int32Array.from(a);
	throw new TypeError(`${name}: want an Int32Array, a Uint32Array or an array of integers`);
};
const floats = (a, name) => {
	if (a instanceof Float32Array || a instanceof Float64Array) return a;
	if (Array.isArray(a)) return Float32Array.from(a);
	throw new TypeError(`${name}: want a Float32Array, a Float64Array or an array of numbers`);
};
const count = (n, name) => {
	if (Number.isInteger(n) && n >= 0 && n < 2 ** 31) return n;
	throw new RangeError(`${name} ${n}: want an integer from 0 to 2³¹−1`);
};

// node imports a module of Node's; bundlers for browsers do not look for it.
const node = (name) => import(/* @vite-ignore */ "node:" + name);

// bytes returns the program: over the network in a browser, from its file elsewhere.
const bytes = async () => {
	const url = new URL("./spmm.wasm", import.meta.url);
	if (url.protocol === "file:") return (await node("fs/promises")).readFile(url);
	const answer = await fetch(url);
	if (!answer.ok) throw new Error(`${url}: ${answer.status} ${answer.statusText}`);
	return answer.arrayBuffer();
};

// start runs the program once, and returns its functions.
let started;
const start = () => started ??= (async () => {
	globalThis.crypto ??= (await node("crypto")).webcrypto; // Node 18
	await import("./wasm_exec.js");
	const go = new globalThis.Go();
	const { instance } = await WebAssembly.instantiate(await bytes(), go.importObject);
	return new Promise((resolve, reject) => {
		globalThis.spmmStarted = (functions) => {
			delete globalThis.spmmStarted;
			resolve(functions);
		};
		go.run(instance).then(() => reject(new Error("spmm.wasm ended")), reject);
	});
})();

export async function open(name = "auto") {
	const functions = await start();
	return new Device(functions, await functions.open(name));
}

class Device {
	#functions;
	#number;

	constructor(functions, { number, ...info }) {
		this.#functions = functions;
		this.#number = number;
		this.info = info;
	}

	prepare(a, options = {}) {
		const rows = count(a.rows, "rows"), cols = count(a.cols, "cols");
		const made = this.#functions.prepare(this.#number, rows, cols, integers(a.rowPtr, "rowPtr"),
			integers(a.colIdx, "colIdx"), floats(a.values, "values"), JSON.stringify(options));
		const [m, k] = options.transpose ? [cols, rows] : [rows, cols];
		return new Plan(this.#functions, made, m, k, options.right);
	}

	async close() {
		await this.#functions.close(this.#number);
	}
}

class Plan {
	#functions;
	#made;
	#right;

	constructor(functions, made, rows, cols, right = false) {
		this.#functions = functions;
		this.#made = made;
		this.#right = right;
		this.rows = rows;
		this.cols = cols;
		made.catch(() => {}); // what awaits it throws
	}

	async info() {
		const { number, ...info } = await this.#made;
		return info;
	}

	async multiply(b, { alpha = 1, activation = "none" } = {}) {
		const rows = count(b.rows, "rows of B"), cols = count(b.cols, "columns of B");
		const data = floats(b.data, "B").slice(); // it may change while the plan is made
		if (data.length !== rows * cols) {
			throw new RangeError(`B of ${rows}×${cols} has ${data.length} elements: want ${rows * cols}`);
		}
		const [m, n] = this.#right ? [rows, this.cols] : [this.rows, cols];
		const { number } = await this.#made;
		return { rows: m, cols: n, data: await this.#functions.multiply(number, rows, cols, m, n, data, alpha, activation) };
	}

	async setValues(values) {
		const copy = floats(values, "values").slice();
		await this.#functions.setValues((await this.#made).number, copy);
	}

	async close() {
		await this.#functions.close((await this.#made).number);
	}
}
