// What wasm_exec.js needs and Node 18 has elsewhere.
globalThis.crypto ??= (await import("node:crypto")).webcrypto;
