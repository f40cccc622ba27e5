// What a SPIR-V module says about how it is launched.

package shaderlock

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// SPIRV holds the declarations of a blob that are compared with the kernel's table.
type SPIRV struct {
	Entry     string            // the compute entry point
	Spec      map[uint32]uint32 // specialisation constants: default by id
	PushBytes int               // of the push constant block; 0 if there is none
	Matrix    bool              // uses cooperative matrices
	local     [3]scalar
}

// scalar is a constant, or a specialisation constant if id >= 0.
type scalar struct {
	value uint32
	id    int64
}

// Local returns the size of a workgroup under specialisation constants.
func (m *SPIRV) Local(spec map[uint32]uint32) [3]uint32 {
	var l [3]uint32
	for i, s := range m.local {
		l[i] = s.value
		if v, ok := spec[uint32(s.id)]; ok && s.id >= 0 {
			l[i] = v
		}
	}
	return l
}

// The parts of SPIR-V's vocabulary that are read here; numbers from the SPIR-V specification.
const (
	spirvMagic = 0x07230203

	opEntryPoint            = 15
	opExecutionMode         = 16
	opCapability            = 17
	opTypeInt               = 21
	opTypeFloat             = 22
	opTypeVector            = 23
	opTypeArray             = 28
	opTypeStruct            = 30
	opTypePointer           = 32
	opConstant              = 43
	opConstantComposite     = 44
	opSpecConstantTrue      = 48
	opSpecConstantFalse     = 49
	opSpecConstant          = 50
	opSpecConstantComposite = 51
	opDecorate              = 71
	opMemberDecorate        = 72
	opExecutionModeID       = 331

	executionModelGLCompute  = 5
	capabilityMatrixKHR      = 6022
	executionModeLocalSize   = 17
	executionModeLocalSizeID = 38
	decorationSpecID         = 1
	decorationArrayStride    = 6
	decorationBuiltIn        = 11
	decorationOffset         = 35
	builtInWorkgroupSize     = 25
	storagePushConstant      = 9

	headerWords    = 5
	wordBytes      = 4
	bytesOfAddress = 8
	maxNesting     = 16 // of types in the push constants
)

type spirvType struct {
	op   uint32
	args []uint32
}

type spirvReader struct {
	types       map[uint32]*spirvType
	consts      map[uint32]uint32
	specIDs     map[uint32]uint32 // SpecId by result id
	strides     map[uint32]uint32
	offsets     map[uint32]map[uint32]uint32
	composites  map[uint32][]uint32
	sizeBuiltIn uint32 // id of the constant that is WorkgroupSize
	localIDs    []uint32
	local       [3]uint32
	push        []uint32 // types that push constant pointers point to
	out         SPIRV
}

var errSPIRV = errors.New("not a SPIR-V module, or cut short")

// ReadSPIRV reads a module with one compute entry point.
func ReadSPIRV(b []byte) (*SPIRV, error) {
	if len(b) < headerWords*wordBytes || len(b)%wordBytes != 0 || binary.LittleEndian.Uint32(b) != spirvMagic {
		return nil, errSPIRV
	}
	words := make([]uint32, len(b)/wordBytes)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[i*wordBytes:])
	}
	r := &spirvReader{
		types: map[uint32]*spirvType{}, consts: map[uint32]uint32{}, specIDs: map[uint32]uint32{},
		strides: map[uint32]uint32{}, offsets: map[uint32]map[uint32]uint32{}, composites: map[uint32][]uint32{},
	}
	for words = words[headerWords:]; len(words) > 0; {
		n := int(words[0] >> 16)
		if n == 0 || n > len(words) {
			return nil, errSPIRV
		}
		if err := r.instruction(words[0]&0xffff, words[1:n]); err != nil {
			return nil, err
		}
		words = words[n:]
	}
	return r.finish()
}

// least number of operands of the instructions that are read.
var leastOperands = map[uint32]int{
	opEntryPoint: 3, opExecutionMode: 2, opExecutionModeID: 2, opCapability: 1, opTypeInt: 3, opTypeFloat: 2,
	opTypeVector: 3, opTypeArray: 3, opTypeStruct: 1, opTypePointer: 3, opConstant: 3, opSpecConstant: 3,
	opSpecConstantTrue: 2, opSpecConstantFalse: 2, opConstantComposite: 2, opSpecConstantComposite: 2,
	opDecorate: 2, opMemberDecorate: 3,
}

func (r *spirvReader) instruction(op uint32, a []uint32) error {
	least, known := leastOperands[op]
	if !known {
		return nil
	}
	if len(a) < least {
		return errSPIRV
	}
	switch op {
	case opCapability:
		r.out.Matrix = r.out.Matrix || a[0] == capabilityMatrixKHR
	case opEntryPoint:
		if a[0] != executionModelGLCompute || r.out.Entry != "" {
			return errors.New("has not exactly one compute entry point")
		}
		r.out.Entry = literal(a[2:])
	case opExecutionMode:
		if a[1] == executionModeLocalSize && len(a) == 5 {
			r.local = [3]uint32(a[2:])
		}
	case opExecutionModeID:
		if a[1] == executionModeLocalSizeID && len(a) == 5 {
			r.localIDs = a[2:]
		}
	case opTypeInt, opTypeFloat, opTypeVector, opTypeArray, opTypeStruct:
		r.types[a[0]] = &spirvType{op: op, args: a[1:]}
	case opTypePointer:
		r.types[a[0]] = &spirvType{op: op, args: a[1:]}
		if a[1] == storagePushConstant {
			r.push = append(r.push, a[2])
		}
	case opConstant, opSpecConstant:
		r.consts[a[1]] = a[2]
	case opSpecConstantTrue:
		r.consts[a[1]] = 1
	case opSpecConstantFalse:
		r.consts[a[1]] = 0
	case opConstantComposite, opSpecConstantComposite:
		r.composites[a[1]] = a[2:]
	case opDecorate:
		if len(a) > 2 {
			r.decorate(a[0], a[1], a[2])
		}
	case opMemberDecorate:
		if a[2] == decorationOffset && len(a) > 3 {
			if r.offsets[a[0]] == nil {
				r.offsets[a[0]] = map[uint32]uint32{}
			}
			r.offsets[a[0]][a[1]] = a[3]
		}
	}
	return nil
}

func (r *spirvReader) decorate(id, decoration, value uint32) {
	switch {
	case decoration == decorationSpecID:
		r.specIDs[id] = value
	case decoration == decorationArrayStride:
		r.strides[id] = value
	case decoration == decorationBuiltIn && value == builtInWorkgroupSize:
		r.sizeBuiltIn = id
	}
}

// literal decodes a string: UTF-8, zero-terminated, in words.
func literal(words []uint32) string {
	var s []byte
	for _, w := range words {
		for i := 0; i < 32; i += 8 {
			c := byte(w >> i)
			if c == 0 {
				return string(s)
			}
			s = append(s, c)
		}
	}
	return string(s)
}

func (r *spirvReader) finish() (*SPIRV, error) {
	if r.out.Entry == "" {
		return nil, errors.New("has no compute entry point")
	}
	for i, v := range r.local {
		r.out.local[i] = scalar{v, -1}
	}
	ids := r.localIDs
	if c, ok := r.composites[r.sizeBuiltIn]; ok { // takes precedence
		ids = c
	}
	if ids != nil && len(ids) != 3 {
		return nil, errSPIRV
	}
	for i, id := range ids {
		r.out.local[i] = scalar{r.consts[id], -1}
		if s, ok := r.specIDs[id]; ok {
			r.out.local[i].id = int64(s)
		}
	}
	r.out.Spec = map[uint32]uint32{}
	for id, s := range r.specIDs {
		r.out.Spec[s] = r.consts[id]
	}
	for _, t := range r.push { // pointers to members are push constant pointers too
		n, err := r.size(t, 0)
		if err != nil {
			return nil, err
		}
		r.out.PushBytes = max(r.out.PushBytes, n)
	}
	return &r.out, nil
}

// size returns the bytes that a type takes in a buffer.
func (r *spirvReader) size(id uint32, depth int) (int, error) {
	t := r.types[id]
	if t == nil || depth > maxNesting {
		return 0, fmt.Errorf("push constants hold a type that is not understood")
	}
	switch t.op {
	case opTypeInt, opTypeFloat:
		return int(t.args[0] / 8), nil
	case opTypePointer:
		return bytesOfAddress, nil
	case opTypeVector:
		n, err := r.size(t.args[0], depth+1)
		return n * int(t.args[1]), err
	case opTypeArray:
		return int(r.strides[id]) * int(r.consts[t.args[1]]), nil
	}
	end := 0
	for i, m := range t.args {
		n, err := r.size(m, depth+1)
		if err != nil {
			return 0, err
		}
		end = max(end, int(r.offsets[id][uint32(i)])+n)
	}
	return end, nil
}
