// Starts the program, main.wasm, and posts what it writes and its exit status.
"use strict";
importScripts("wasm_exec.js");
const decoders = { 1: new TextDecoder(), 2: new TextDecoder() };
fs.writeSync = (fd, bytes) => {
	postMessage({ fd, text: decoders[fd].decode(bytes, { stream: true }) });
	return bytes.length;
};
fs.write = (fd, bytes, offset, length, position, done) => done(null,
	fs.writeSync(fd, bytes.subarray(offset, offset + length)));
(async () => {
	const go = new Go();
	let status = 0;
	go.exit = (code) => { status = code; };
	Object.assign(go, await (await fetch("start.json")).json());
	try {
		const { instance } = await WebAssembly.instantiateStreaming(fetch("main.wasm"), go.importObject);
		await go.run(instance);
		postMessage({ exit: status });
	} catch (e) {
		postMessage({ fd: 2, text: e + "\n", exit: 2 });
	}
})();
