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
	block(0, 156, 730, inside, "plan", "tries the ways to multiply; plans, sequences, groups")
	layer := func(y int, packages ...[2]string) {
		w := (730 - 10*(len(packages)-1)) / len(packages)
		for i, p := range packages {
			x := i * (w + 10)
			c.arrow(x+w/2, y-32, x+w/2, y-2)
			block(x, y, w, inside, p[0], p[1])
		}
	}
	layer(234, [2]string{"reproducible", "products in fixed point"}, [2]string{"values", "new values, their places"},
		[2]string{"rowcopy", "rows of tensors, for ranks"})
	layer(312, [2]string{"choose", "which kernel, and why"}, [2]string{"launch", "composes and keeps launches"})
	layer(390, [2]string{"resident", "the matrix on the device"}, [2]string{"stream", "panels in host memory"},
		[2]string{"tensor", "dense matrices, copies"})
	layer(468, [2]string{"work", "matrix and options, resolved once"}, [2]string{"model", "rates, costs, predictions"},
		[2]string{"device", "kernels, buffers, speed"})
	const low = 546
	c.arrow(170, low-32, 170, low-2)
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
