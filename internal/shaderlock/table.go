// Does a compiled variant do what its kernel's table says?

package shaderlock

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// CheckVariant returns how a variant's code differs from its table: entry point, workgroup, arguments,
// parameter block, specialisation constants, architecture.
func CheckVariant(k *spec.Program, v *spec.Variant) []error {
	b, err := k.Binary(v)
	if err != nil {
		return []error{err}
	}
	var errs []error
	if b.Args > backend.MaxArgs || b.ParamBytes > backend.MaxParams {
		errs = append(errs, fmt.Errorf("has %d arguments and %d bytes of parameters; at most %d and %d are passed",
			b.Args, b.ParamBytes, backend.MaxArgs, backend.MaxParams))
	}
	switch b.Kind {
	case backend.CodeGo:
		if b.Func == nil {
			errs = append(errs, errors.New("has no function"))
		}
	case backend.CodePTX:
		errs = append(errs, checkPTX(b, v)...)
	case backend.CodeSPIRV:
		errs = append(errs, checkSPIRV(b)...)
	case backend.CodeWGSL:
		errs = append(errs, checkWGSL(b)...)
	default:
		errs = append(errs, fmt.Errorf("has code of unknown kind %v", b.Kind))
	}
	for i, err := range errs {
		errs[i] = fmt.Errorf("%s: %w", b.Name, err)
	}
	return errs
}

func checkSPIRV(b backend.Binary) []error {
	m, err := ReadSPIRV(b.Code)
	if err != nil {
		return []error{err}
	}
	var errs []error
	differ := func(what string, code, table any) {
		errs = append(errs, fmt.Errorf("%s: the code has %v, the table %v", what, code, table))
	}
	if m.Entry != b.Entry {
		differ("entry point", m.Entry, b.Entry)
	}
	table := map[uint32]uint32{}
	for _, c := range b.Spec {
		table[c.ID] = c.Value
	}
	if have, want := slices.Sorted(maps.Keys(m.Spec)), slices.Sorted(maps.Keys(table)); !slices.Equal(have, want) {
		differ("ids of specialisation constants", have, want)
	}
	if l := m.Local(table); l != b.Local {
		differ("workgroup", l, b.Local)
	}
	if want := 8*b.Args + b.ParamBytes; m.PushBytes != want {
		differ("bytes of push constants", m.PushBytes, want)
	}
	if m.Matrix != b.Matrix {
		differ("use of cooperative matrices", m.Matrix, b.Matrix)
	}
	return errs
}

func checkPTX(b backend.Binary, v *spec.Variant) []error {
	p, err := ReadPTX(b.Code, b.Entry)
	if err != nil {
		return []error{err}
	}
	var errs []error
	differ := func(what string, code, table any) {
		errs = append(errs, fmt.Errorf("%s: the code has %v, the table %v", what, code, table))
	}
	want := slices.Repeat([]int{8}, b.Args)
	if b.ParamBytes > 0 {
		want = append(want, b.ParamBytes)
	}
	want = append(want, slices.Repeat([]int{128}, b.Maps)...)
	if !slices.Equal(p.Params, want) {
		differ("bytes of parameters", p.Params, want)
	}
	if n := b.Local[0] * b.Local[1] * b.Local[2]; p.Threads != 0 && p.Threads != n {
		differ("threads of a block", p.Threads, n)
	}
	if arch := strings.TrimPrefix(v.Unit.Arch, "compute_"); p.Target != "sm_"+arch {
		differ("architecture", p.Target, v.Unit.Arch)
	} else if n, err := strconv.Atoi(strings.TrimRight(arch, "af")); err != nil || v.Need.Arch < n || v.Need.Exact != strings.HasSuffix(arch, "a") {
		differ("architecture", p.Target, fmt.Sprintf("%d, exact: %t", v.Need.Arch, v.Need.Exact))
	}
	return errs
}

var wgslEntry = regexp.MustCompile(`@workgroup_size\(([^)]*)\)[^{}]*\bfn\s+(\w+)`)

func checkWGSL(b backend.Binary) []error {
	m := wgslEntry.FindAllSubmatch(b.Code, -1)
	if len(m) != 1 {
		return []error{fmt.Errorf("has %d functions with @workgroup_size before fn, not one", len(m))}
	}
	var errs []error
	if have := string(m[0][2]); have != b.Entry {
		errs = append(errs, fmt.Errorf("entry point: the code has %s, the table %s", have, b.Entry))
	}
	local := [3]uint32{1, 1, 1}
	for i, s := range strings.Split(strings.TrimRight(string(m[0][1]), ", \n"), ",") {
		n, err := strconv.ParseUint(strings.TrimRight(strings.TrimSpace(s), "u"), 10, 32)
		if err != nil || i >= len(local) {
			return append(errs, fmt.Errorf("cannot read @workgroup_size(%s)", m[0][1]))
		}
		local[i] = uint32(n)
	}
	if local != b.Local {
		errs = append(errs, fmt.Errorf("workgroup: the code has %v, the table %v", local, b.Local))
	}
	return errs
}
