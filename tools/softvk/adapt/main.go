// Command adapt copies a dynamically linked program so that the copy runs with another dynamic
// loader and finds its libraries in another folder first.
//
//	adapt PROGRAM COPY LOADER LIBRARIES
//
// Starting the program through the loader would do nearly the same, but /proc/self/exe would then
// be the loader, and a program that starts itself again (tests do) would fail.
//
// Exit status 4 says that PROGRAM may run as it is: it needs no libraries, or is no ELF file for amd64.
package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
)

const exitStatic = 4

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: adapt PROGRAM COPY LOADER LIBRARIES")
		os.Exit(2)
	}
	err := adaptFile(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	switch {
	case errors.Is(err, errStatic):
		os.Exit(exitStatic)
	case err != nil:
		fmt.Fprintf(os.Stderr, "adapt: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func adaptFile(program, dst, loader, libs string) error {
	f, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	if f, err = adapt(f, loader, libs); err != nil {
		return err
	}
	return os.WriteFile(dst, f, 0o700)
}

var (
	errStatic = errors.New("not a program for amd64 that needs libraries")
	errBroken = errors.New("broken ELF file")
)

const (
	headerSize = 64 // of an ELF64 file
	progSize   = 56 // of a program header
	dynSize    = 16 // of an entry of the dynamic section
	pageSize   = 4096
)

var le = binary.LittleEndian

// adapt returns the program f changed to use a loader and to search the folder libs, for itself and
// for every library it loads, before the loader's own folders.
//
// The two names, and a copy of the dynamic string table, go into a segment behind the file's end.
// Its program header takes the place of a note's, which nothing needs to run: so nothing else moves.
func adapt(f []byte, loader, libs string) ([]byte, error) {
	h, err := parse(f)
	if err != nil {
		return nil, err
	}
	d, err := parseDynamic(f, h)
	if err != nil {
		return nil, err
	}
	note := find(h.progs, elf.PT_NOTE)
	if note < 0 {
		return nil, errors.New("has no note whose program header could be used")
	}
	off := (uint64(len(f)) + pageSize - 1) &^ (pageSize - 1)
	addr := (h.end + pageSize - 1) &^ (pageSize - 1)

	// The segment: strings, then search path, then loader.
	if d.path != "" {
		libs += ":" + d.path
	}
	seg := bytes.Clone(d.strings)
	pathAt := len(seg)
	seg = append(append(seg, libs...), 0)
	strSize := len(seg)
	seg = append(append(seg, loader...), 0)

	interp := &h.progs[find(h.progs, elf.PT_INTERP)]
	interp.Off, interp.Vaddr, interp.Paddr = off+uint64(strSize), addr+uint64(strSize), addr+uint64(strSize)
	interp.Filesz, interp.Memsz = uint64(len(loader)+1), uint64(len(loader)+1)

	load := elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Align: pageSize,
		Off: off, Vaddr: addr, Paddr: addr, Filesz: uint64(len(seg)), Memsz: uint64(len(seg)),
	}
	progs := replace(h.progs, note, load)
	out := make([]byte, off, off+uint64(len(seg)))
	copy(out, f)
	out = append(out, seg...)
	for i, p := range progs {
		if _, err := binary.Encode(out[h.progsOff+uint64(i)*progSize:], le, p); err != nil {
			return nil, err
		}
	}
	d.set(out, d.strtab, elf.DT_STRTAB, addr)
	d.set(out, d.strsz, elf.DT_STRSZ, uint64(strSize))
	d.set(out, d.pathSlot, elf.DT_RPATH, uint64(pathAt))
	return out, nil
}

// replace returns the program headers with load instead of number note. Loads must ascend: it comes behind
// the last.
func replace(progs []elf.Prog64, note int, load elf.Prog64) []elf.Prog64 {
	out := slices.Delete(slices.Clone(progs), note, note+1)
	at := 0
	for i, p := range out {
		if p.Type == uint32(elf.PT_LOAD) {
			at = i + 1
		}
	}
	return slices.Insert(out, at, load)
}

// header has the fields of a program's headers that adapt needs.
type header struct {
	progs    []elf.Prog64
	progsOff uint64
	end      uint64 // of the memory that the program's segments take
}

func parse(f []byte) (h header, err error) {
	if len(f) < headerSize || string(f[:4]) != elf.ELFMAG {
		return h, errStatic
	}
	var e elf.Header64
	if _, err := binary.Decode(f, le, &e); err != nil {
		return h, errBroken
	}
	if e.Ident[elf.EI_CLASS] != byte(elf.ELFCLASS64) || e.Ident[elf.EI_DATA] != byte(elf.ELFDATA2LSB) ||
		e.Machine != uint16(elf.EM_X86_64) {
		return h, errStatic
	}
	table, ok := slice(f, e.Phoff, uint64(e.Phnum)*progSize)
	if !ok || e.Phentsize != progSize {
		return h, errBroken
	}
	h.progsOff = e.Phoff
	h.progs = make([]elf.Prog64, e.Phnum)
	for i := range h.progs {
		p := &h.progs[i]
		if _, err := binary.Decode(table[i*progSize:], le, p); err != nil {
			return h, errBroken
		}
		if p.Vaddr+p.Memsz < p.Vaddr {
			return h, errBroken
		}
		if p.Type == uint32(elf.PT_LOAD) {
			h.end = max(h.end, p.Vaddr+p.Memsz)
		}
	}
	if find(h.progs, elf.PT_INTERP) < 0 || find(h.progs, elf.PT_DYNAMIC) < 0 {
		return h, errStatic
	}
	return h, nil
}

// find returns the position of the first program header of a type, -1 if there is none.
func find(progs []elf.Prog64, t elf.ProgType) int {
	for i, p := range progs {
		if p.Type == uint32(t) {
			return i
		}
	}
	return -1
}

// slice returns n bytes of f from off, if f has them.
func slice(f []byte, off, n uint64) ([]byte, bool) {
	if off > uint64(len(f)) || n > uint64(len(f))-off {
		return nil, false
	}
	return f[off : off+n], true
}

// dynamic has the fields of the dynamic section that adapt needs. Entries are told by their position.
type dynamic struct {
	off                     uint64 // of the section in the file
	strtab, strsz, pathSlot int
	strings                 []byte
	path                    string // the search path the program has
}

// parseDynamic reads the dynamic section. pathSlot is the entry of the present search path, or a
// free one (linkers leave some behind the end).
func parseDynamic(f []byte, h header) (d dynamic, err error) {
	p := h.progs[find(h.progs, elf.PT_DYNAMIC)]
	sec, ok := slice(f, p.Off, p.Filesz)
	if !ok {
		return d, errBroken
	}
	d = dynamic{off: p.Off, strtab: -1, strsz: -1, pathSlot: -1}
	value := func(i int) uint64 { return le.Uint64(sec[i*dynSize+8:]) }
	needs := false // a library
	i, n := 0, len(sec)/dynSize
	for ; i < n; i++ {
		tag := elf.DynTag(le.Uint64(sec[i*dynSize:]))
		if tag == elf.DT_NULL {
			break
		}
		switch tag {
		case elf.DT_NEEDED:
			needs = true
		case elf.DT_STRTAB:
			d.strtab = i
		case elf.DT_STRSZ:
			d.strsz = i
		case elf.DT_RPATH, elf.DT_RUNPATH:
			d.pathSlot = i
		}
	}
	if !needs {
		return d, errStatic
	}
	if d.strtab < 0 || d.strsz < 0 {
		return d, errBroken
	}
	if d.strings, err = atAddress(f, h, value(d.strtab), value(d.strsz)); err != nil {
		return d, err
	}
	if d.pathSlot >= 0 {
		if at := value(d.pathSlot); at < uint64(len(d.strings)) {
			path, _, _ := bytes.Cut(d.strings[at:], []byte{0})
			d.path = string(path)
		}
		return d, nil
	}
	if i+1 >= n {
		return d, errors.New("has no free entry in its dynamic section")
	}
	d.pathSlot = i
	return d, nil
}

// atAddress returns what the file has for n bytes of memory.
func atAddress(f []byte, h header, addr, n uint64) ([]byte, error) {
	for _, p := range h.progs {
		if p.Type == uint32(elf.PT_LOAD) && addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			if b, ok := slice(f, p.Off+addr-p.Vaddr, n); ok {
				return b, nil
			}
		}
	}
	return nil, errBroken
}

// set writes entry i of the dynamic section.
func (d dynamic) set(f []byte, i int, tag elf.DynTag, value uint64) {
	e := f[d.off+uint64(i)*dynSize:]
	le.PutUint64(e, uint64(tag))
	le.PutUint64(e[8:], value)
}
