// What the WGSL source gets besides its table: sums with names of their own, since an array would lie in
// memory, and the steps on them.

package rfx

import (
	"fmt"
	"strings"

	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
)

// cuts tells into how many digits of how many bits A and B are cut for 32-bit sums.
func cuts(p rfx.P) (a, b, bits int) {
	switch p {
	case rfx.P15:
		return 2, 1, 8 // all of B's 16 bits
	case rfx.P23:
		return 2, 2, 12
	case rfx.P31:
		return 3, 3, 12
	}
	return 4, 4, 12
}

// wgsl returns the defines of the source.
func wgsl(p rfx.P) map[string]string {
	na, nb, bits := cuts(p)
	var declare, add, settle, clear strings.Builder
	for d := range na + nb - 1 {
		fmt.Fprintf(&declare, "var<private> sum%d: vec4<i32>;\n", d)
		fmt.Fprintf(&clear, "    sum%d = vec4<i32>(0);\n", d)
	}
	for i := range na {
		for j := range nb {
			fmt.Fprintf(&add, "    sum%d += a%d * b%d;\n", i+j, i, j)
		}
	}
	for d := na + nb - 2; d >= 0; d-- {
		fmt.Fprintf(&settle, "    push(sum%d);\n", d)
	}
	return map[string]string{
		"PARTS": fmt.Sprint(4 * local), "HALF": include.HalfWGSL, "FIXED": include.FixedWGSL, "STORE": storeWGSL,
		"DIGIT": fmt.Sprintf("%du", bits), "REST": fmt.Sprintf("%du", 32-bits),
		"SUMS": declare.String(), "ADD": strings.TrimRight(add.String(), "\n"), "SETTLE": settle.String() +
			strings.TrimRight(clear.String(), "\n"),
	}
}
