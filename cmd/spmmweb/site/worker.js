// Unpacks the program, spmm.wasm.lzma, and starts it; it then takes the page's messages itself (main.go).
"use strict";
importScripts("wasm_exec.js", "lzma.js", "webgpu.js");
let said = "";
const decoder = new TextDecoder();
fs.writeSync = (fd, bytes) => { // what the program says when it panics
	said = (said + decoder.decode(bytes, { stream: true })).slice(0, 2000);
	return bytes.length;
};
const crashed = (error) =>
	postMessage(JSON.stringify({ what: "crashed", error: said.split("\n")[0] || String(error) }));
(async () => {
	const answer = await fetch("spmm.wasm.lzma");
	if (!answer.ok) throw Error("spmm.wasm.lzma: " + answer.status + " " + answer.statusText);
	const go = new Go();
	const { instance } = await WebAssembly.instantiate(unlzma(new Uint8Array(await answer.arrayBuffer())),
		go.importObject);
	await go.run(instance);
	crashed("it ended");
})().catch(crashed);
