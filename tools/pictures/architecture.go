// The packages, and who calls whom.

package main

import "strings"

func architecture() []byte {
	var c canvas
	const h = 46
	block := func(x, y, w int, fill, name, what string) {
		c.box(x, y, w, h, fill, "#999")
		c.words(x+w/2, y+19, middle+" "+bold, name)
		c.words(x+w/2, y+36, middle+" "+small, what)
	}
	const program, door, inside, device, proof = "#dce9f7", "#fbe6c2", "#f2f2f2", "#d5efd6", "#f3dcf0"
	block(0, 0, 170, program, "your program", "go get, or examples/")
	block(180, 0, 170, program, "cmd/spmmrun", "files, shells, mpirun")
	block(360, 0, 170, program, "cmd/spmmweb", "the page in a browser")
	block(540, 0, 190, program, "dist, comm", "ranks: MPI, NCCL")
	for _, x := range []int{85, 265, 445, 635} {
		c.arrow(x, h, x, 76)
	}
	block(0, 78, 730, door, "spmm", "Open, Prepare, Multiply; tensors, sequences, groups of devices")
	c.arrow(365, 78+h, 365, 154)
	block(0, 156, 730, inside, "internal/plan", "predicts, chooses, packs, cuts into blocks, lays out launches")
	c.arrow(170, 156+h, 170, 232)
	c.arrow(550, 156+h, 550, 232)
	block(0, 234, 350, inside, "formats", "csr, dense and a package for each system's format; codecs")
	block(380, 234, 350, inside, "shaders", "kernels: a table, sources, compiled code, a form in Go")
	c.arrow(378, 257, 352, 257)
	c.arrow(365, 156+h, 365, 310)
	block(0, 312, 730, door, "backend", "Device, Buffer, Kernel, Launch: no kernel's name, no format")
	for i, b := range strings.Fields("cuda vulkan webgpu cpu") {
		x := i * 185
		c.arrow(x+87, 388, x+87, 312+h+2)
		what := []string{"driver API, PTX", "SPIR-V, cooperative matrices", "wgpu-native, browsers",
			"Go, AVX-512, AVX2, NEON"}[i]
		block(x, 390, 175, device, b, what)
	}
	c.box(750, 0, 180, 390+h, proof, "#999")
	c.words(840, 180, middle+" "+bold, "conformance")
	for i, line := range []string{"cases of every format", "on every device,", "an exact oracle,", "manifests that anyone",
		"can verify and compare"} {
		c.words(840, 200+16*i, middle+" "+small, line)
	}
	return c.text()
}
