/* Faults of memory accesses: those of Go code are Go's, which makes errors of them, those of other code the program's.
 * Go installs its handlers when the library is loaded, and passes on what is not its own to the handlers before. A
 * handler that the program installs later, as Python's faulthandler does, would take Go's faults. So spmm_guard puts
 * one in front of it that tells them apart. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include "entry.h"

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <link.h>
#include <ucontext.h>

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction go[SIGNALS], host[SIGNALS];
static volatile int known; /* go holds Go's handlers */
static uintptr_t from, to; /* the library's code */

static int code(struct dl_phdr_info *o, size_t size, void *data)
{
	(void)size, (void)data;
	for (int i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		uintptr_t at = o->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && p->p_flags & PF_X && (uintptr_t)code - at < p->p_memsz) {
			from = at, to = at + p->p_memsz;
			return 1;
		}
	}
	return 0;
}

static int ours(uintptr_t p) { return p >= from && p < to; }

static void on_fault(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
#ifdef __x86_64__
	uintptr_t pc = (uintptr_t)c->uc_mcontext.gregs[REG_RIP];
#else
	uintptr_t pc = c->uc_mcontext.pc;
#endif
	int i = 0;
	while (i < SIGNALS - 1 && signals[i] != sig)
		i++;
	const struct sigaction *a = ours(pc) ? &go[i] : &host[i];
	if (a->sa_flags & SA_SIGINFO)
		a->sa_sigaction(sig, info, context);
	else if (a->sa_handler == SIG_DFL)
		sigaction(sig, a, NULL); /* the fault comes again */
	else if (a->sa_handler != SIG_IGN)
		a->sa_handler(sig);
}

void spmm_guard(void)
{
	if (!to)
		dl_iterate_phdr(code, NULL);
	for (int i = 0; i < SIGNALS; i++) {
		struct sigaction now;
		sigaction(signals[i], NULL, &now);
		uintptr_t handler = (uintptr_t)(now.sa_flags & SA_SIGINFO ? (void *)now.sa_sigaction : (void *)now.sa_handler);
		if (handler == (uintptr_t)on_fault)
			continue;
		if (ours(handler)) {
			go[i] = now;
			known |= 1 << i;
		} else if (known >> i & 1) {
			host[i] = now;
			now.sa_sigaction = on_fault;
			now.sa_flags |= SA_SIGINFO | SA_ONSTACK;
			now.sa_flags &= ~(int)SA_RESETHAND;
			sigaction(signals[i], &now, NULL);
		}
	}
}

__attribute__((constructor)) static void load(void) { spmm_guard(); }
#else
void spmm_guard(void) {}
#endif
