// The packages, and who imports whom.

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
	block(0, 78, 730, door, "spmm", "Open, Prepare, Multiply; Plan, Tensor, Sequence")
	c.arrow(365, 78+h, 365, 154)
	block(0, 156, 730, inside, "many", "one device, or several that share a product")
	c.arrow(365, 156+h, 365, 232)
	block(0, 234, 730, inside, "plan", "tries the ways to multiply; plans and sequences of one device")
	// Every arrow is an import: packages stand below one that imports them.
	columns := [3]struct{ x, w int }{{0, 240}, {250, 235}, {495, 235}}
	place := func(column, y int, name, what string) {
		block(columns[column].x, y, columns[column].w, inside, name, what)
	}
	into := func(y int, of ...int) {
		for _, i := range of {
			x := columns[i].x + columns[i].w/2
			c.arrow(x, y-32, x, y-2)
		}
	}
	into(312, 0, 1)
	place(0, 312, "reproducible", "products in fixed point")
	place(1, 312, "values", "new values, their places")
	place(2, 312, "rowcopy, sddmm", "rows for dist; sampled products")
	into(390, 0, 1, 2)
	place(0, 390, "choose", "which kernel, and why")
	block(250, 390, 480, inside, "launch", "composes and keeps launches")
	into(468, 0, 1, 2)
	place(0, 468, "work", "matrix and options, resolved once")
	place(1, 468, "tensor", "dense matrices, copies")
	place(2, 468, "resident", "the matrix on the device")
	into(546, 1, 2)
	place(0, 546, "model", "rates, costs, predictions")
	place(1, 546, "device", "kernels, buffers, speed")
	place(2, 546, "stream", "row panels in host memory")
	c.arrow(248, 546+h/2, 242, 546+h/2)
	const low = 624
	c.arrow(120, low-32, 120, low-2)
	c.arrow(550, low-32, 550, low-2)
	block(0, low, 350, inside, "formats", "csr, dense and a package for each system's format; codecs")
	block(380, low, 350, inside, "shaders", "kernels: a table, sources, compiled code, a form in Go")
	c.arrow(378, low+23, 352, low+23)
	c.arrow(365, low-32, 365, low+76)
	block(0, low+78, 730, door, "backend", "Device, Buffer, Kernel, Launch: no kernel's name, no format")
	for i, b := range strings.Fields("cuda vulkan webgpu cpu") {
		x := i * 185
		c.arrow(x+87, low+154, x+87, low+78+h+2)
		what := []string{"driver API, PTX", "SPIR-V, cooperative matrices", "wgpu-native, browsers",
			"Go, AVX-512, AVX2, NEON"}[i]
		block(x, low+156, 175, device, b, what)
	}
	c.box(750, 0, 180, low+156+h, proof, "#999")
	c.words(840, 180, middle+" "+bold, "conformance")
	for i, line := range []string{"cases of every format", "on every device,", "an exact oracle,", "manifests that anyone",
		"can verify and compare"} {
		c.words(840, 200+16*i, middle+" "+small, line)
	}
	return c.text()
}
