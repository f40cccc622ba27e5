// Keeps the page's files, so that it works without a network. A new version of the page has other contents and another
// name here.
"use strict";
const NAME = "spmm-VERSION";
const FILES = ["./", "page.css", "page.js", "worker.js", "wasm_exec.js", "lzma.js", "webgpu.js", "spmm.wasm.lzma",
	"digests.json", "icon.svg"];

addEventListener("install", (e) => {
	skipWaiting();
	e.waitUntil(caches.open(NAME).then((c) => c.addAll(FILES.map((f) => new Request(f, { cache: "no-cache" })))));
});
addEventListener("activate", (e) => e.waitUntil((async () => {
	for (const name of await caches.keys()) if (name.startsWith("spmm-") && name !== NAME) await caches.delete(name);
	await clients.claim();
})()));
addEventListener("fetch", (e) => {
	if (e.request.method !== "GET" || new URL(e.request.url).origin !== location.origin) return;
	const stored = async (c) => await c.match(e.request, { ignoreSearch: true });
	e.respondWith(caches.open(NAME).then(async (c) => await stored(c) ?? fetch(e.request)));
});
