// What PTX text says about how its kernel is launched.

package shaderlock

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// PTX holds the declarations of a blob that are compared with the kernel's table.
type PTX struct {
	Version string   // of the PTX language
	Target  string   // "sm_80"
	Entries []string // all kernels
	Entry   string
	Params  []int  // bytes of each parameter of the entry
	Threads uint32 // bound on a block's threads (.maxntid or .reqntid); 0 if none is given
}

var (
	ptxVersion = regexp.MustCompile(`(?m)^\.version\s+(\S+)`)
	ptxTarget  = regexp.MustCompile(`(?m)^\.target\s+([a-z0-9_]+)`)
	ptxEntry   = regexp.MustCompile(`(?m)^\s*(?:\.visible\s+|\.weak\s+)?\.entry\s+([A-Za-z_$%][\w$]*)\s*(?:\(([^)]*)\))?([^{]*)\{`)
	ptxParam   = regexp.MustCompile(`^\.param\s+(?:\.align\s+\d+\s+)?\.([busf])(8|16|32|64)\s+(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?)?[\w$%]+(?:\[(\d+)\])?$`)
	ptxThreads = regexp.MustCompile(`\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?`)
)

// ReadPTX reads the text of the kernel of that name.
func ReadPTX(text []byte, entry string) (*PTX, error) {
	p := &PTX{Entry: entry}
	m := ptxVersion.FindSubmatch(text)
	t := ptxTarget.FindSubmatch(text)
	if m == nil || t == nil {
		return nil, errors.New("not PTX: no .version or no .target")
	}
	p.Version, p.Target = string(m[1]), string(t[1])
	found := false
	for _, e := range ptxEntry.FindAllSubmatch(text, -1) {
		p.Entries = append(p.Entries, string(e[1]))
		if string(e[1]) != entry {
			continue
		}
		found = true
		if err := p.params(string(e[2])); err != nil {
			return nil, err
		}
		if err := p.threads(string(e[3])); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, fmt.Errorf("has no .entry %s (it has %s)", entry, strings.Join(p.Entries, ", "))
	}
	return p, nil
}

func (p *PTX) params(list string) error {
	for _, s := range strings.Split(list, ",") {
		s = strings.TrimSpace(s)
		if s == "" {
			continue
		}
		m := ptxParam.FindStringSubmatch(s)
		if m == nil {
			return fmt.Errorf("cannot read parameter %q", s)
		}
		bits, err := strconv.Atoi(m[2])
		if err != nil {
			return err
		}
		n := 1
		if m[3] != "" {
			if n, err = strconv.Atoi(m[3]); err != nil {
				return err
			}
		}
		p.Params = append(p.Params, n*bits/8)
	}
	return nil
}

func (p *PTX) threads(directives string) error {
	m := ptxThreads.FindStringSubmatch(directives)
	if m == nil {
		return nil
	}
	p.Threads = 1
	for _, s := range m[1:] {
		if s == "" {
			continue
		}
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil {
			return err
		}
		p.Threads *= uint32(n)
	}
	return nil
}
