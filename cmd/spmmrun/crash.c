//go:build cgo && linux

// Handlers for the signals of crashes, installed before Go's runtime, which hands on to them what happens in C code,
// and its own SIGABRT. See crash.go.

#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { exit_crash = 70 };

static void say(const char *text) {
	ssize_t n = write(2, text, strlen(text));
	(void)n;
}

static void crashed(int signal, siginfo_t *info, void *context) {
	(void)info;
	(void)context;
	say("spmmrun: crashed by ");
	say(signal == SIGSEGV ? "SIGSEGV" : signal == SIGBUS ? "SIGBUS" : signal == SIGFPE ? "SIGFPE" : "SIGABRT");
	say(": this is a mistake of spmmrun's or of a GPU's driver, not of the input; --backend cpu uses no driver\n");
	_exit(exit_crash);
}

__attribute__((constructor)) static void handle(void) {
	const char *go = getenv("GOTRACEBACK");
	if (go && go[0])
		return;
	const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
	struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		sigaction(signals[i], &action, NULL);
}
