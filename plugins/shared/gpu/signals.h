/* What is done on a signal, put back after calls in which a driver or a compiler takes signals
 * over: LLVM, in most of them, does so with those that end a process as soon as it first
 * compiles. They belong to the program. */
#ifndef TNI_PLUGINS_SHARED_GPU_SIGNALS_H
#define TNI_PLUGINS_SHARED_GPU_SIGNALS_H

/* Round each such call, on any number of threads: the actions are kept by the first to come, since a
 * later one would take for the program's what has just been changed, and put back by the last to go. */
void gpu_signals_keep(void);
void gpu_signals_restore(void);

#endif
