// The page: what is asked of the worker, and how its answers are shown.
"use strict";
const $ = (id) => document.getElementById(id);

// --- the GPU

const helpful = "WebGPU is in Chrome and Edge from version 113 (on Android 121), in Safari from version 26, and in Firefox from version 141 " +
	"on Windows and 145 on a Mac.";

async function findGPU() {
	if (!isSecureContext) return ["Browsers show a GPU only to pages of https: or of localhost. Open this page at such an address.", null];
	if (!navigator.gpu) return ["This browser has no WebGPU, so that nothing can run here. " + helpful, null];
	const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
	if (adapter) return ["", adapter];
	return ["This browser has WebGPU and shows no GPU. Turn its hardware acceleration on, or update the GPU's driver. " + helpful, null];
}

async function showGPU() {
	const [trouble, adapter] = await findGPU().catch((e) =>
		["The browser could not be asked for a GPU: " + e.message, null]);
	if (trouble) {
		$("trouble").textContent = trouble;
		$("trouble").hidden = false;
		$("adapter").textContent = "None.";
		return;
	}
	const { vendor, architecture, description } = adapter.info;
	$("adapter").textContent = description || [vendor, architecture].filter(Boolean).join(" ") || "A GPU that the browser does not name";
	const names = [];
	for (const n in adapter.limits) if (typeof adapter.limits[n] === "number") names.push(n);
	fill($("limits"), [["features", [...adapter.features].sort().join(", ") || "none"]].concat(names.sort().map((n) => [n, adapter.limits[n].toLocaleString("en")])));
	$("run").disabled = false;
}

// fill puts rows of a heading and texts into a table.
function fill(table, rows) {
	table.replaceChildren(...rows.map(([name, ...texts]) => {
		const tr = document.createElement("tr"), th = document.createElement("th");
		th.scope = "row";
		th.textContent = name;
		tr.append(th, ...texts.map((text) => {
			const td = document.createElement("td");
			td.textContent = text;
			return td;
		}));
		return tr;
	}));
}

function list(ul, texts) {
	ul.replaceChildren(...texts.map((text) => {
		const li = document.createElement("li");
		li.textContent = text;
		return li;
	}));
}

// --- the worker

let worker, ready, busy = false;

// start starts the worker, once.
function start() {
	return ready ??= new Promise((resolve, reject) => {
		say("Loading the program…");
		worker = new Worker("worker.js");
		worker.onerror = (e) => crashed(e.message || "the program could not be loaded", reject);
		worker.onmessage = (e) => {
			const a = JSON.parse(e.data);
			if (a.what === "ready") resolve();
			else if (a.what === "crashed") crashed(a.error, reject);
			else answers[a.what](a);
		};
	});
}

function crashed(error, reject) {
	reject(Error(error));
	worker.terminate();
	ready = undefined;
	answers.error({ error: "The program ended: " + error });
}

// ask asks for a job.
async function ask(request, transfer = []) {
	if (busy) return;
	setBusy(true);
	try {
		await start();
		worker.postMessage(request, transfer);
	} catch (e) {
		ready = undefined;
		answers.error({ error: e.message });
	}
}

function setBusy(on) {
	busy = on;
	for (const id of ["run", "example", "file", "tier", "cols", "precision"]) $(id).disabled = on;
	for (const id of ["stop", "stop-product"]) $(id).hidden = !on;
	$("progress").hidden = !on;
	if (on) $("progress").removeAttribute("value");
	stayAwake(on);
}

let awake;

// stayAwake keeps a phone's screen on while a job runs, since a page in the dark is stopped.
async function stayAwake(on) {
	awake?.release();
	awake = undefined;
	if (on) awake = await navigator.wakeLock?.request("screen").catch(() => undefined);
}

function say(text) { $("status").textContent = text; }

const answers = {
	progress(a) {
		if (a.all > 1) {
			$("progress").max = a.all;
			$("progress").value = a.done;
			say(a.done + " of " + a.all + ": " + a.step);
		} else {
			$("progress").removeAttribute("value");
			say(a.step + "…");
		}
	},
	error(a) {
		setBusy(false);
		say(a.error);
	},
	stopped() {
		setBusy(false);
		say("Stopped.");
	},
	suite(a) {
		setBusy(false);
		say("");
		showSuite(a);
	},
	spy: showSpy,
	product(a) {
		setBusy(false);
		say("");
		showProduct(a);
	},
};

// --- the suite

$("run").onclick = async () => {
	if (busy) return;
	$("result").hidden = true;
	const digests = await fetch("digests.json").then((r) => r.ok ? r.text() : Promise.reject(Error(r.status + " " + r.statusText)))
		.catch((e) => say("digests.json: " + e.message));
	if (digests) ask({ do: "suite", filter: $("tier").value, digests });
};
// While the program loads, a job and its end wait for it in turn.
$("stop").onclick = $("stop-product").onclick = () => ready?.then(() => worker.postMessage({ do: "stop" }), () => {});

let manifestURL;

function showSuite(a) {
	const n = (s) => a.counts[s] ?? 0;
	$("result").hidden = false;
	$("verdict").textContent = (n("fail") ? n("fail") + " cases failed" : "All right") + ": " + n("pass") + " passed, " +
		n("unsupported") + " not supported by this device";
	$("verdict").className = n("fail") ? "bad" : "good";
	const compared = a.same.filter((d) => d.compared);
	list($("same"), compared.length ? compared.map((d) => (d.same === d.compared ? "Same bits as " : "Not the same bits as ") + d.device + ": " +
		d.same + " of " + d.compared + " cases" + (d.different.length ? ", not " + d.different.slice(0, 3).join(", ") : ""))
		: ["No manifest has these cases yet."]);
	showCases(a);
	$("failures").hidden = !a.failed.length;
	list($("failed"), a.failed);
	URL.revokeObjectURL(manifestURL);
	manifestURL = URL.createObjectURL(new Blob([a.manifest], { type: "application/json" }));
	$("download").href = manifestURL;
	$("download").download = a.file;
	$("contribute").hidden = !a.whole;
	$("text").value = a.report;
	const issue = { title: "Manifest of " + a.device.name, body: a.report };
	$("issue").href = "https://github.com/spmmrun/spmm/issues/new?" + new URLSearchParams(issue);
	$("verdict").focus();
}

function showCases(a) {
	const classes = a.classes.filter((c) => a.rows.some((r) => r.cells[c])); // a sample has few, which fit a phone
	const head = document.createElement("thead"), row = head.insertRow();
	for (const text of ["Format", ...classes]) {
		const th = document.createElement("th");
		th.scope = "col";
		th.textContent = text;
		row.append(th);
	}
	const body = document.createElement("tbody");
	for (const r of a.rows) {
		const tr = body.insertRow(), th = document.createElement("th");
		th.scope = "row";
		th.textContent = r.format;
		tr.append(th);
		for (const c of classes) {
			const td = tr.insertCell(), cell = r.cells[c];
			if (!cell) continue;
			td.textContent = cell.fail ? cell.pass + " passed, " + cell.fail + " failed" : cell.pass || "not supported";
			td.className = cell.fail ? "bad" : cell.pass ? "good" : "faint";
		}
	}
	$("cases").replaceChildren(head, body);
}

// --- products

const mostBytes = 2 ** 30; // of a file

async function multiply(name, file) {
	if (busy) return;
	$("outcome").hidden = true;
	if (file?.size > mostBytes)
		return say(name + ": has " + (file.size / 2 ** 30).toFixed(1) + " GiB, and at most 1 fits here");
	const bytes = file && await file.arrayBuffer().catch((e) => say(name + ": " + e.message));
	if (file && !bytes) return;
	const request = { do: "multiply", name, cols: $("cols").valueAsNumber || 0, precision: $("precision").value };
	if (bytes) request.bytes = bytes;
	ask(request, bytes ? [bytes] : []);
}

function showSpy(a) {
	$("outcome").hidden = false;
	$("answer").textContent = "";
	$("figures").replaceChildren();
	const canvas = $("spy");
	canvas.width = Math.max(1, a.w);
	canvas.height = Math.max(1, a.h);
	const text = a.name + ": " + a.rows + " × " + a.cols + ", " + a.nnz.toLocaleString("en") + " entries";
	$("caption").textContent = text;
	canvas.setAttribute("aria-label", "Where the entries are in " + text);
	if (!a.w || !a.h) return;
	const shades = Uint8Array.from(atob(a.shades), (c) => c.charCodeAt(0)), context = canvas.getContext("2d");
	const image = context.createImageData(a.w, a.h);
	const grey = (s) => s ? Array(3).fill(160 - 160 * s / 255).concat(255) : [255, 255, 255, 255];
	shades.forEach((s, i) => image.data.set(grey(s), 4 * i));
	context.putImageData(image, 0, 0);
}

function showProduct(a) {
	const time = (us) => us >= 1e4 ? (us / 1e3).toPrecision(3) + " ms" : us.toPrecision(3) + " µs";
	$("answer").textContent = a.ok ? "Right: " + a.checked.toLocaleString("en") + " outputs checked" : "Wrong: " + a.wrong;
	$("answer").className = a.ok ? "good" : "bad";
	fill($("figures"), [
		["Time", time(a.median) + " (least " + time(a.least) + ")"],
		["Attainable", time(a.attainable) + ", " + (100 * a.attainable / a.median).toPrecision(2) + " % attained"],
		["Rate", a.gflops.toPrecision(3) + " GFLOP/s"],
		["Format", a.format + ", " + a.variant + ": " + a.why],
		["Precision", a.precision + ", N = " + a.n],
		["Largest error", a.ratio.toPrecision(2) + " of its bound"],
		["GPU", a.device],
	]);
	$("answer").focus();
}

$("file").onchange = (e) => {
	const file = e.target.files[0];
	if (file) multiply(file.name, file);
	e.target.value = "";
};
$("example").onclick = () => multiply("gen:powerlaw,rows=4000,cols=4000,nnz-per-row=10", null);
for (const kind of ["dragover", "dragleave", "drop"]) addEventListener(kind, (e) => {
	e.preventDefault();
	$("drop").classList.toggle("over", kind === "dragover");
	const file = kind === "drop" && e.dataTransfer.files[0];
	if (!file) return;
	select($("tab-product"));
	multiply(file.name, file);
});

// --- tabs

const tabs = [...document.querySelectorAll("[role=tab]")];

function select(tab, focus) {
	for (const t of tabs) {
		const on = t === tab;
		t.setAttribute("aria-selected", on);
		t.tabIndex = on ? 0 : -1;
		$(t.getAttribute("aria-controls")).hidden = !on;
	}
	if (focus) tab.focus();
}
tabs.forEach((tab, i) => {
	tab.onclick = () => select(tab);
	tab.onkeydown = (e) => {
		const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 }[e.key];
		if (to === undefined) return;
		e.preventDefault();
		select(tabs.at(to % tabs.length), true);
	};
});

showGPU();
if ("serviceWorker" in navigator && isSecureContext) navigator.serviceWorker.register("service.js").catch((e) => console.warn(e));
