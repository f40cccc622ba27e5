//go:build cgo && linux && amd64

// wgpu-native panics where a submission or a wait fails (a lost device, above all). A Rust panic unwinds the
// stack like a C++ exception, dropping locks on its way; reaching Go's frames, which have no unwind tables, it
// would end the process. wg_guard is a frame that stops it: its personality routine claims every exception and
// goes on at the frame's second exit. The exception object is left alone (freeing it is an abort by design).

#include "guard.h"
#include <unwind.h>

__attribute__((visibility("hidden"))) extern const char wg_guard_caught[];

__attribute__((visibility("hidden"), used))
_Unwind_Reason_Code wg_guard_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
		struct _Unwind_Exception *e, struct _Unwind_Context *context) {
	(void)version; (void)class; (void)e;
	if (actions & _UA_SEARCH_PHASE)
		return _URC_HANDLER_FOUND;
	if (!(actions & _UA_HANDLER_FRAME))
		return _URC_CONTINUE_UNWIND;
	_Unwind_SetIP(context, (_Unwind_Ptr)wg_guard_caught);
	return _URC_INSTALL_CONTEXT;
}

__asm__(
	".text\n"
	".globl wg_guard\n"
	".hidden wg_guard\n"
	".type wg_guard, @function\n"
	"wg_guard:\n"
	"	.cfi_startproc\n"
	"	.cfi_personality 0x1b, wg_guard_personality\n" // pc-relative, 4 bytes
	"	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	callq *%rax\n"
	"	movl $1, %eax\n"
	"	popq %rbp\n"
	"	.cfi_remember_state\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	retq\n"
	"	.cfi_restore_state\n"
	".globl wg_guard_caught\n"
	".hidden wg_guard_caught\n"
	"wg_guard_caught:\n"
	"	xorl %eax, %eax\n"
	"	popq %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	retq\n"
	"	.cfi_endproc\n"
	".size wg_guard, .-wg_guard\n"
	".section .note.GNU-stack,\"\",@progbits\n"
	".text\n");
