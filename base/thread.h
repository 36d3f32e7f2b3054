/* Thread-local state, and its end. */
#ifndef TNI_BASE_THREAD_H
#define TNI_BASE_THREAD_H

/* Initial-exec: one instruction per access instead of a call to __tls_get_addr, about 10 ns a call
 * of an operator. The price is room in the static TLS block, so keep such variables small. */
#define TNI_TLS _Thread_local __attribute__((tls_model("initial-exec")))

#define TNI_LIKELY(x) __builtin_expect(!!(x), 1)
#define TNI_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Calls `fn` when the calling thread ends, in reverse order of registration; false when there is no
 * memory to remember it. The main thread's functions run at exit() only if tn_shutdown asks. */
_Bool tni_thread_at_exit(void (*fn)(void));

/* Runs the calling thread's functions now (tn_shutdown does). */
void tni_thread_run_exit(void);

#endif
