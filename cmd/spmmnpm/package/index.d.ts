/** A sparse matrix in compressed rows: row i has colIdx and values at rowPtr[i] to rowPtr[i+1]. Its columns ascend. */
export interface CSR {
	rows: number;
	cols: number;
	rowPtr: Int32Array | Uint32Array | number[];
	colIdx: Int32Array | Uint32Array | number[];
	/** Numbers in an array are taken as 32-bit ones. */
	values: Float32Array | Float64Array | number[];
}

/** A dense matrix, row by row. */
export interface Dense<T extends Float32Array | Float64Array | number[] = Float32Array | Float64Array | number[]> {
	rows: number;
	cols: number;
	data: T;
}

export interface Options {
	/** A format of the library, in place of the one that is predicted to be the fastest. */
	format?: string;
	/** The number of B's columns to choose the format for. */
	columns?: number;
	/** Multiply with Aᵀ. */
	transpose?: boolean;
	/** Compute B·A. */
	right?: boolean;
	/** The same bits on every device: a precision of 15, 23, 31 or 47 bits, or -1 for as many as are needed. */
	reproducible?: 15 | 23 | 31 | 47 | -1;
}

export interface Product {
	alpha?: number;
	activation?: "none" | "relu" | "gelu" | "silu";
}

/** What was chosen. */
export interface PlanInfo {
	rows: number;
	cols: number;
	format: string;
	variant: string;
	why: string;
	precision: string;
	bytes: number;
}

export interface Plan {
	/** Of the matrix as it multiplies. */
	readonly rows: number;
	readonly cols: number;
	info(): Promise<PlanInfo>;
	/** activation(alpha·A·B), or of B·A with `right`, with elements of B's type. */
	multiply(b: Dense<Float64Array>, how?: Product): Promise<Dense<Float64Array>>;
	multiply(b: Dense<Float32Array | number[]>, how?: Product): Promise<Dense<Float32Array>>;
	/** Replaces the values of A's entries; the pattern stays. */
	setValues(values: Float32Array | Float64Array | number[]): Promise<void>;
	/** Frees it. Later products reject. */
	close(): Promise<void>;
}

export interface Device {
	readonly info: { backend: string; name: string; driver: string };
	/** Packs A, whose arrays are copied before it returns. Errors come from the plan's methods. */
	prepare(a: CSR, options?: Options): Plan;
	/** Frees the device with all plans on it. */
	close(): Promise<void>;
}

/**
 * Opens a device: "auto", "webgpu" in browsers that have it, or "cpu". Products on the CPU keep the thread busy until
 * they are done: call from a worker if they are long.
 */
export function open(name?: string): Promise<Device>;
