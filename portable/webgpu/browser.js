// The browser's WebGPU for browser.go, which evaluates this file, unless its value is spmmWebGPU already: an expression
// whose value is a function that opens a device. Its steps are WebGPU's put together, as native.c's are. A step that
// takes time ends with one call of settled(run, failure, nanoseconds, text): 1 if it was a run, what went wrong (0:
// nothing) in words, and how long the device worked. Besides a run, one other step may be on its way. What Go refers to
// later lies in a table, by number; 0 is nothing.
(settled, launches, transfer) => {
	"use strict";
	const REFUSED = 1, NO_MEMORY = 2, LOST = 3; // device.go: failureKind
	const MAP_READ = 1, COPY_SRC = 4, COPY_DST = 8, RESOLVE = 512, COMPUTE = 4, READ = 1;
	const WORDS = 7; // of a launch: pipeline, group, whether there are parameters, their offset, grid
	const batch = new Uint32Array(launches.buffer);
	const objects = [null], free = [];
	let device, timer, closed = false, lost = "", stray = "";
	const waiting = [false, false]; // for a step, for a run
	const gpu = { limits: null, mapped: null, dot4: false };

	const keep = (object) => {
		const i = free.pop() ?? objects.length;
		objects[i] = object;
		return i;
	};
	const drop = (i) => {
		objects[i] = null;
		free.push(i);
	};
	const finish = (run, kind, text, nanoseconds) => {
		if (!waiting[run]) return; // a loss has ended it
		waiting[run] = false;
		if (!kind && stray) [kind, text] = [REFUSED, stray];
		stray = "";
		settled(run, kind, nanoseconds, kind ? String(text || "no reason given") : "");
	};

	// step begins what start begins: start calls all that may fail before it returns a promise, whose value is
	// nanoseconds.
	const step = (start, run = 0) => {
		waiting[run] = true;
		if (lost) {
			queueMicrotask(() => finish(run, LOST, lost, 0));
			return;
		}
		const scopes = ["internal", "out-of-memory", "validation"];
		let work;
		for (const s of scopes) device.pushErrorScope(s);
		try {
			work = Promise.resolve(start());
		} catch (e) {
			work = Promise.reject(e);
		}
		const errors = scopes.map(() => device.popErrorScope()); // validation first
		Promise.allSettled([work, ...errors]).then(async ([work, ...errors]) => {
			// Mapping is given up when the device is lost, and that is told a little later.
			if (work.reason?.name === "AbortError") await Promise.race([device.lost, new Promise((r) => setTimeout(r, 1000))]);
			const [validation, memory, internal] = errors.map((e) => e.value);
			const why = work.reason ?? validation ?? internal;
			if (lost) finish(run, LOST, lost, 0);
			else if (memory) finish(run, NO_MEMORY, memory.message, 0);
			else if (why) finish(run, REFUSED, why.message ?? why, 0);
			else finish(run, 0, "", work.value || 0);
		});
	};

	const makeTimer = () => {
		timer = {
			queries: device.createQuerySet({ type: "timestamp", count: 2 }),
			resolved: device.createBuffer({ usage: RESOLVE | COPY_SRC, size: 16 }),
			stamps: device.createBuffer({ usage: MAP_READ | COPY_DST, size: 16 }),
		};
		timer.pass = { timestampWrites: { querySet: timer.queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } };
	};
	const readTimer = async () => {
		await timer.stamps.mapAsync(READ);
		const [begin, end] = new BigUint64Array(timer.stamps.getMappedRange());
		timer.stamps.unmap();
		return end > begin ? Number(end - begin) : 0;
	};

	// open asks for the adapter anew, since one gives a device once, and opens it with all of these limits.
	gpu.open = async (names) => {
		waiting[0] = true;
		try {
			const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
			const limits = {}, timed = adapter.features.has("timestamp-query");
			for (const n of names) limits[n] = adapter.limits[n];
			device = await adapter.requestDevice({ requiredLimits: limits, requiredFeatures: timed ? ["timestamp-query"] : [] });
			device.lost.then((info) => {
				if (closed) return;
				lost = info.message || info.reason || "no reason given";
				for (const run of [0, 1]) finish(run, LOST, lost, 0);
			});
			device.addEventListener("uncapturederror", (e) => { // of what is not part of a step
				e.preventDefault();
				stray ||= e.error.message;
			});
			gpu.limits = device.limits;
			gpu.dot4 = navigator.gpu.wgslLanguageFeatures?.has("packed_4x8_integer_dot_product") ?? false;
			if (timed) makeTimer();
			finish(0, 0, "", 0);
		} catch (e) {
			finish(0, REFUSED, e?.message ?? e, 0);
		}
	};
	gpu.close = () => {
		closed = true;
		if (device) device.destroy();
		objects.length = 1;
	};

	gpu.buffer = (usage, size) => {
		const i = keep(null);
		step(() => { objects[i] = device.createBuffer({ usage, size }); });
		return i;
	};
	gpu.freeBuffer = (i) => {
		objects[i]?.destroy();
		drop(i);
	};
	// write copies bytes of data, or of what was put into transfer; the remaining bytes of the last word are padding.
	gpu.write = (i, offset, size, data) =>
		device.queue.writeBuffer(objects[i], offset, data ?? transfer, 0, size + 3 & ~3);
	gpu.flush = () => step(async () => { await device.queue.onSubmittedWorkDone(); });
	// read leaves the bytes in mapped, until unmap.
	gpu.read = (i, offset, staging, size) => step(async () => {
		const to = objects[staging], words = size + 3 & ~3, encoder = device.createCommandEncoder();
		encoder.copyBufferToBuffer(objects[i], offset, to, 0, words);
		device.queue.submit([encoder.finish()]);
		await to.mapAsync(READ, 0, words);
		gpu.mapped = new Uint8Array(to.getMappedRange(0, words));
	});
	gpu.unmap = (staging) => {
		gpu.mapped = null;
		objects[staging].unmap(); // also where mapping has failed
	};

	// load compiles a kernel; what the compiler has against it is said before what follows from that.
	gpu.load = (code, entryPoint, args, readonly, params) => {
		const k = keep({});
		step(() => {
			const module = device.createShaderModule({ code }), said = module.getCompilationInfo(), entries = [];
			const add = (type, hasDynamicOffset) =>
				entries.push({ binding: entries.length, visibility: COMPUTE, buffer: { type, hasDynamicOffset } });
			for (let i = 0; i < args; i++) add(readonly >> i & 1 ? "read-only-storage" : "storage", false);
			if (params) add("uniform", true);
			const layout = device.createBindGroupLayout({ entries });
			const pipeline = device.createComputePipelineAsync({
				layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }), compute: { module, entryPoint },
			});
			return Promise.allSettled([said, pipeline]).then(([said, pipeline]) => {
				const m = said.value?.messages.find((m) => m.type === "error");
				if (m) throw Error(m.lineNum + ":" + m.linePos + ": " + m.message);
				if (pipeline.reason) throw pipeline.reason;
				objects[k] = { layout, pipeline: pipeline.value };
			});
		});
		return k;
	};
	gpu.drop = drop;
	// group makes a bind group of buffers, and of the parameters' first bytes if there are any. Its errors are the run's.
	gpu.group = (k, params, size, ...buffers) => {
		const entries = buffers.map((b, binding) => ({ binding, resource: { buffer: objects[b] } }));
		if (size) entries.push({ binding: entries.length, resource: { buffer: objects[params], size } });
		return keep(device.createBindGroup({ layout: objects[k].layout, entries }));
	};

	// run submits the first n launches.
	gpu.run = (n) => step(() => {
		const encoder = device.createCommandEncoder(), pass = encoder.beginComputePass(timer?.pass);
		for (let i = 0; i < n * WORDS; i += WORDS) {
			pass.setPipeline(objects[batch[i]].pipeline);
			pass.setBindGroup(0, objects[batch[i + 1]], batch, i + 3, batch[i + 2]);
			pass.dispatchWorkgroups(batch[i + 4], batch[i + 5], batch[i + 6]);
		}
		pass.end();
		if (timer) {
			encoder.resolveQuerySet(timer.queries, 0, 2, timer.resolved, 0);
			encoder.copyBufferToBuffer(timer.resolved, 0, timer.stamps, 0, 16);
		}
		device.queue.submit([encoder.finish()]);
		return timer ? readTimer() : device.queue.onSubmittedWorkDone().then(() => 0);
	}, 1);
	return gpu;
}
