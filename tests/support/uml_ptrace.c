/* Lets user-mode Linux run on processors with more registers than it has room for.

   The kernel of Debian's package (6.1) reads and writes its processes' extended registers in a buffer of fixed
   size. Where the processor has more of them (AMX), the host refuses to write fewer, and every process in the
   kernel dies. Preloaded into it, this `ptrace` writes the whole set: the first part as asked, the rest as it is.

   Built and preloaded by tests/emulator/network/test_netem.py: cc -shared -fPIC -o OUT uml_ptrace.c -ldl */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { ROOM_BYTES = 64 * 1024 };

long ptrace(enum __ptrace_request request, ...)
{
    static long (*host)(enum __ptrace_request, pid_t, void *, void *);
    static char all[ROOM_BYTES];
    va_list arguments;
    va_start(arguments, request);
    pid_t pid = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);
    if (!host)
        host = (long (*)(enum __ptrace_request, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
    if (request != PTRACE_SETREGSET || address != (void *)NT_X86_XSTATE)
        return host(request, pid, address, data);

    const struct iovec *asked = data;
    struct iovec whole = {all, sizeof all};
    if (host(PTRACE_GETREGSET, pid, address, &whole) < 0)
        return -1;
    size_t part = asked->iov_len < whole.iov_len ? asked->iov_len : whole.iov_len;
    memcpy(all, asked->iov_base, part);
    return host(PTRACE_SETREGSET, pid, address, &whole);
}
