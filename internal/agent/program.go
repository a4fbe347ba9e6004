//go:build linux

package agent

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A machineCode is what one architecture needs to make two calls.
type machineCode struct {
	machine uint16 // e_machine
	loader  string // glibc's, beside which alone libcuda runs
	reloc   uint64 // GLOB_DAT: a symbol's address
	text    func(slots func(at int) int) []byte
}

// codes make, for each architecture, the code that calls the first function with
// 0, the second with a pointer to an int, writes the first's result and that int
// to standard output, and exits. slots tells how far the addresses of the
// functions are from the code's beginning.
var codes = map[string]machineCode{
	"amd64": {62, "/lib64/ld-linux-x86-64.so.2", 6, func(slot func(int) int) []byte {
		b := []byte{0x48, 0x83, 0xec, 0x10, 0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0, 0x31, 0xff} // sub rsp,16; mov dword [rsp+4],0; xor edi,edi
		call := func(at int) {
			b = append(b, 0xff, 0x15) // call [rip+...]
			b = binary.LittleEndian.AppendUint32(b, uint32(slot(at)-len(b)-4))
		}
		call(0)
		b = append(b, 0x89, 0x04, 0x24, 0x48, 0x8d, 0x7c, 0x24, 0x04) // mov [rsp],eax; lea rdi,[rsp+4]
		call(1)
		return append(b,
			0xbf, 1, 0, 0, 0, 0x48, 0x89, 0xe6, 0xba, 8, 0, 0, 0, // mov edi,1; mov rsi,rsp; mov edx,8
			0xb8, 1, 0, 0, 0, 0x0f, 0x05, // write
			0x31, 0xff, 0xb8, 231, 0, 0, 0, 0x0f, 0x05) // exit_group(0)
	}},
	"arm64": {183, "/lib/ld-linux-aarch64.so.1", 1025, func(slot func(int) int) []byte {
		var b []byte
		put := func(words ...uint32) {
			for _, w := range words {
				b = binary.LittleEndian.AppendUint32(b, w)
			}
		}
		call := func(at int) {
			put(0x58000008|uint32((slot(at)-len(b))/4)<<5, 0xd63f0100) // ldr x8, ...; blr x8
		}
		put(0xd10043ff, 0xb90007ff, 0x52800000) // sub sp,sp,16; str wzr,[sp,4]; mov w0,0
		call(0)
		put(0xb90003e0, 0x910013e0) // str w0,[sp]; add x0,sp,4
		call(1)
		put(0xd2800020, 0x910003e1, 0xd2800102, 0xd2800808, 0xd4000001) // write(1, sp, 8)
		put(0xd2800000, 0xd2800bc8, 0xd4000001)                         // exit_group(0)
		return b
	}},
}

const (
	headSize = 64 + 6*56 // ELF header and six program headers
	pageMost = 0x10000   // the largest page there is
)

// A layout says where the parts of a program are in its file. What the loader
// writes to, from dynamic on, is mapped pageMost further.
type layout struct {
	text, interp, names, symbols, hash, reloc, dynamic, slots, end int
}

func layOut(text, loader, names int) (l layout) {
	align := func(n int) int { return (n + 15) &^ 15 }
	l.text = align(headSize)
	l.interp = align(l.text + text)
	l.names = align(l.interp + loader + 1)
	l.symbols = align(l.names + names)
	l.hash = l.symbols + 3*24
	l.reloc = align(l.hash + 24)
	l.dynamic = align(l.reloc + 2*24)
	l.slots = l.dynamic + 12*16
	l.end = l.slots + 16
	return l
}

// A sheet is a program that is being written.
type sheet []byte

func (b sheet) put(at int, values ...any) {
	for _, v := range values {
		n, _ := binary.Encode(b[at:], binary.LittleEndian, v) // fixed sizes only
		at += n
	}
}

// headers writes what the kernel and the loader read first.
func (b sheet) headers(l layout, machine uint16, loader int) {
	copy(b, "\x7fELF\x02\x01\x01")
	b.put(16, uint16(3), machine, uint32(1), uint64(l.text), uint64(64), uint64(0), uint32(0), uint16(64), uint16(56), uint16(6))
	header := func(i int, kind, flags uint32, offset, address, size, alignment int) {
		b.put(64+i*56, kind, flags, uint64(offset), uint64(address), uint64(address), uint64(size), uint64(size), uint64(alignment))
	}
	const load, dynamic, interp, headers, stack, read, write, execute = 1, 2, 3, 6, 0x6474e551, 4, 2, 1
	header(0, headers, read, 64, 64, headSize-64, 8) // by it the loader knows where it put the program
	header(1, interp, read, l.interp, l.interp, loader+1, 1)
	header(2, load, read|execute, 0, 0, l.dynamic, pageMost)
	header(3, load, read|write, l.dynamic, l.dynamic+pageMost, l.end-l.dynamic, pageMost)
	header(4, dynamic, read|write, l.dynamic, l.dynamic+pageMost, l.slots-l.dynamic, 8)
	header(5, stack, read|write, 0, 0, 0, 16)
}

// program returns an executable that links a library and calls two functions of
// it, and the loader that it needs. The agent itself links nothing, so that it
// runs on any image, and can therefore not call a library.
func program(arch, library, first, second string) (image []byte, loader string, err error) {
	code, ok := codes[arch]
	if !ok {
		return nil, "", fmt.Errorf("no code for %s", arch)
	}
	names := "\x00" + library + "\x00libc.so.6\x00" + first + "\x00" + second + "\x00"
	at := func(name string) uint64 { return uint64(bytes.Index([]byte(names), []byte("\x00"+name+"\x00")) + 1) }
	l := layOut(len(code.text(func(int) int { return 0 })), len(code.loader), len(names))
	slot := func(i int) int { return l.slots + pageMost + 8*i }
	b := make(sheet, l.end)
	b.headers(l, code.machine, len(code.loader))
	copy(b[l.text:], code.text(func(i int) int { return slot(i) - l.text }))
	copy(b[l.interp:], code.loader)
	copy(b[l.names:], names)
	for i, name := range []string{first, second} {
		b.put(l.symbols+24*(i+1), uint32(at(name)), uint8(0x12), uint8(0), uint16(0)) // a function, defined elsewhere
		b.put(l.reloc+24*i, uint64(slot(i)), uint64(i+1)<<32|code.reloc, uint64(0))
	}
	b.put(l.hash, uint32(1), uint32(3)) // one empty bucket: nobody looks for anything here
	needed, hash, strings, symbols, stringsSize, symbolSize := uint64(1), uint64(4), uint64(5), uint64(6), uint64(10), uint64(11)
	reloc, relocSize, relocEntry, flags, bindNow := uint64(7), uint64(8), uint64(9), uint64(30), uint64(8)
	b.put(
		l.dynamic,
		needed, at(library), needed, at("libc.so.6"), hash, uint64(l.hash), strings, uint64(l.names), symbols, uint64(l.symbols),
		stringsSize, uint64(len(names)), symbolSize, uint64(24), reloc, uint64(l.reloc), relocSize, uint64(48), relocEntry, uint64(24),
		flags, bindNow,
	)
	return b, code.loader, nil
}
